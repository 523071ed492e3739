//! Texts as one segment of a tantivy index, which is built in memory and searched in memory or in a store's file.
//!
//! A document is a term; its number is its position in a list of ids. Its tokens are the words of its folded text and,
//! with a mark, the first one, two and three letters of each word, so that a search for a short prefix reads one list
//! rather than many. Searches return documents in the order in which they were added, so texts with few words are added
//! first.

use crate::docs::Docs;
use crate::words::WordQuery;
use jindou_model::{Error, Result};
use std::sync::{Arc, LazyLock};
use tantivy::directory::RamDirectory;
use tantivy::index::{InvertedIndexReader, SegmentReader};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer, TokenizerManager};
use tantivy::{Directory, Index, IndexSettings, SingleSegmentIndexWriter, TantivyDocument};
use tantivy::{TERMINATED, Term};

/// Largest number of letters of a prefix that is a token.
const MARKED: usize = 3;
/// First character of a token for a prefix; words do not contain it.
const MARK: char = '\u{1}';
/// Largest number of words with a common prefix that a search reads.
const MOST_WORDS: usize = 20_000;
/// Number of words with a common prefix whose lists are merged while they are read; the lists of further words are
/// copied.
const FEW_WORDS: usize = 48;
/// Largest number of documents in such copies; beyond it, the search is cut short.
const MOST_COPIED: usize = 2_000_000;

/// Converts an error of tantivy.
pub(crate) fn failed(e: impl std::fmt::Display) -> Error {
    Error::Internal(format!("the index of words failed: {e}"))
}

/// A tokenizer that yields the words of a folded text, each followed by its marked prefixes.
#[derive(Clone, Default)]
struct FoldedTokens {
    token: Token,
}

struct FoldedStream<'a> {
    rest: &'a str,
    /// The word whose prefixes are yielded next, and the number of letters of the last prefix.
    word: &'a str,
    letters: usize,
    token: &'a mut Token,
}

impl Tokenizer for FoldedTokens {
    type TokenStream<'a> = FoldedStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> FoldedStream<'a> {
        self.token.reset();
        FoldedStream {
            rest: text,
            word: "",
            letters: MARKED,
            token: &mut self.token,
        }
    }
}

impl TokenStream for FoldedStream<'_> {
    fn advance(&mut self) -> bool {
        self.token.position = self.token.position.wrapping_add(1);
        self.token.text.clear();
        if self.letters < MARKED {
            self.letters += 1;
            let end = self.word.char_indices().nth(self.letters);
            let end = end.map_or(self.word.len(), |(at, _)| at);
            if end == self.word.len() {
                self.letters = MARKED;
            }
            self.token.text.push(MARK);
            self.token.text.push_str(&self.word[..end]);
            return true;
        }
        let rest = self.rest.trim_start_matches(' ');
        let (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        (self.word, self.rest, self.letters) = (word, rest, 0);
        self.token.text.push_str(word);
        !word.is_empty()
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

const TOKENIZER: &str = "folded";

static SCHEMA: LazyLock<(Schema, Field)> = LazyLock::new(|| {
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::Basic);
    let options = TextOptions::default().set_indexing_options(indexing);
    let field = schema.add_text_field("words", options);
    (schema.build(), field)
});

/// A segment while it is built.
pub(crate) struct SegmentMaker {
    writer: SingleSegmentIndexWriter,
    directory: RamDirectory,
    ids: Vec<u32>,
    /// Bytes of memory that it used before the first document was added.
    empty: usize,
}

/// A finished segment, as tantivy's files in memory.
pub(crate) struct BuiltSegment {
    pub index: Index,
    pub directory: RamDirectory,
    /// The ids of the documents, by document number.
    pub ids: Vec<u32>,
}

impl SegmentMaker {
    /// Begins a segment. `memory` is the approximate number of bytes that it may grow to, which determines the size of
    /// tables.
    pub fn new(memory: usize) -> Result<Self> {
        let tokenizers = TokenizerManager::new();
        tokenizers.register(TOKENIZER, TextAnalyzer::from(FoldedTokens::default()));
        let settings = IndexSettings {
            docstore_compress_dedicated_thread: false,
            ..IndexSettings::default()
        };
        let directory = RamDirectory::create();
        let writer = Index::builder()
            .schema(SCHEMA.0.clone())
            .settings(settings)
            .tokenizers(tokenizers)
            .single_segment_index_writer(directory.clone(), memory.max(1 << 17));
        let mut made = Self {
            writer: writer.map_err(failed)?,
            directory,
            ids: Vec::new(),
            empty: 0,
        };
        made.empty = made.used();
        Ok(made)
    }

    /// Adds a term, given by its id and its folded text.
    pub fn add(&mut self, id: u32, folded: &str) -> Result<()> {
        let mut document = TantivyDocument::new();
        document.add_text(SCHEMA.1, folded);
        self.writer.add_document(document).map_err(failed)?;
        self.ids.push(id);
        Ok(())
    }

    /// Bytes of memory that its documents use.
    pub fn grown(&self) -> usize {
        self.used().saturating_sub(self.empty)
    }

    /// Bytes of memory that it uses.
    fn used(&self) -> usize {
        self.writer.mem_usage() + self.directory.total_mem_usage() + 4 * self.ids.capacity()
    }

    pub fn finish(self) -> Result<BuiltSegment> {
        Ok(BuiltSegment {
            index: self.writer.finalize().map_err(failed)?,
            directory: self.directory,
            ids: self.ids,
        })
    }
}

/// A reader of the only segment of an index.
fn reader(index: &Index) -> Result<Arc<InvertedIndexReader>> {
    let segments = index.searchable_segments().map_err(failed)?;
    let segment = segments.first().ok_or_else(|| failed("no segment"))?;
    let segment = SegmentReader::open(segment).map_err(failed)?;
    segment.inverted_index(SCHEMA.1).map_err(failed)
}

/// A segment that can be searched.
pub(crate) struct WordSegment {
    words: Arc<InvertedIndexReader>,
    documents: u32,
}

/// Iteration over the documents of a segment that match a query, in ascending order.
pub(crate) struct MatchWalk {
    /// Lists of documents, of which the intersection is taken; the shortest is first.
    lists: Vec<Docs>,
    documents: u32,
    /// True if matching documents may have been skipped, since the search was stopped or a limit was reached.
    pub cut: bool,
}

impl WordSegment {
    pub fn of(made: &BuiltSegment) -> Result<Self> {
        Ok(Self {
            words: reader(&made.index)?,
            documents: made.ids.len() as u32,
        })
    }

    pub fn open(directory: impl Directory, documents: u32) -> Result<Self> {
        Ok(Self {
            words: reader(&Index::open(directory).map_err(failed)?)?,
            documents,
        })
    }

    fn list(&self, word: &str) -> Result<Option<Docs>> {
        let term = Term::from_field_text(SCHEMA.1, word);
        let list = self.words.read_postings(&term, IndexRecordOption::Basic);
        Ok(list.map_err(failed)?.map(Docs::one))
    }

    /// The documents that contain all words. The last word must occur as a whole word if `whole`, otherwise as a word's
    /// prefix. `None` if there are none.
    pub fn walk(
        &self,
        asked: &WordQuery,
        whole: bool,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Option<MatchWalk>> {
        let mut lists = Vec::new();
        for word in asked.words() {
            match self.list(word)? {
                Some(list) => lists.push(list),
                None => return Ok(None),
            }
        }
        let mut cut = false;
        let beginning = asked.beginning();
        let last = if whole {
            self.list(beginning)?
        } else if beginning.chars().count() <= MARKED {
            self.list(&format!("{MARK}{beginning}"))?
        } else {
            self.beginning(beginning, stop, &mut cut)?
        };
        let Some(last) = last else {
            return Ok(None);
        };
        lists.push(last);
        lists.sort_by_key(Docs::size);
        Ok(Some(MatchWalk {
            lists,
            documents: self.documents,
            cut,
        }))
    }

    /// The documents with a word that begins with `beginning`; `None` if there are none. Sets `cut` if some are
    /// missing.
    fn beginning(
        &self,
        beginning: &str,
        stop: &mut dyn FnMut() -> bool,
        cut: &mut bool,
    ) -> Result<Option<Docs>> {
        let from = beginning.as_bytes();
        // This is greater than all words with the prefix, since UTF-8 never contains the byte 0xFF.
        let to = [from, &[0xFF]].concat();
        let range = self.words.terms().range().ge(from).lt(to);
        let mut stream = range.into_stream().map_err(failed)?;
        let mut words = Vec::new();
        while stream.advance() {
            if words.len() >= MOST_WORDS || words.len() % 256 == 255 && stop() {
                *cut = true;
                break;
            }
            words.push(stream.value().clone());
        }
        drop(stream);
        if words.is_empty() {
            return Ok(None);
        }
        // The longest lists are read during the iteration, the others are copied.
        words.sort_by_key(|w| std::cmp::Reverse(w.doc_freq));
        let read = |word| {
            let list = self
                .words
                .read_postings_from_terminfo(word, IndexRecordOption::Basic);
            list.map(Docs::one).map_err(failed)
        };
        let (long, short) = words.split_at(FEW_WORDS.min(words.len()));
        let mut lists = long.iter().map(read).collect::<Result<Vec<_>>>()?;
        let mut copied: Vec<u32> = Vec::new();
        for (i, word) in short.iter().enumerate() {
            if copied.len() > MOST_COPIED || i % 64 == 63 && stop() {
                *cut = true;
                break;
            }
            let mut list = read(word)?;
            while list.doc() < self.documents {
                copied.push(list.doc());
                let before = list.doc();
                if list.advance() <= before {
                    return Err(failed("a list does not ascend"));
                }
            }
        }
        if !copied.is_empty() {
            copied.sort_unstable();
            copied.dedup();
            lists.push(Docs::list(copied));
        }
        Ok(Some(Docs::any(lists)))
    }

    /// Calls `f` with each word, in ascending order, and its number of documents; used to check the file.
    pub fn each_word(&self, f: &mut dyn FnMut(&[u8], u32)) -> Result<()> {
        let mut stream = self.words.terms().stream().map_err(failed)?;
        while stream.advance() {
            f(stream.key(), stream.value().doc_freq);
        }
        Ok(())
    }
}

impl MatchWalk {
    /// The next document that is in all lists; `None` at the end. Sets `cut` if `stop` returned true.
    pub fn next(&mut self, stop: &mut dyn FnMut() -> bool) -> Result<Option<u32>> {
        let Some((first, others)) = self.lists.split_first_mut() else {
            return Ok(None);
        };
        let mut steps = 0u32;
        let mut at = first.doc();
        'next: loop {
            if at >= self.documents.min(TERMINATED) {
                return Ok(None);
            }
            steps += 1;
            if steps.is_multiple_of(256) && stop() {
                self.cut = true;
                return Ok(None);
            }
            for list in others.iter_mut() {
                let there = list.seek(at);
                if there < at {
                    return Err(failed("a list does not ascend"));
                }
                if there > at {
                    at = first.seek(there);
                    if at < there {
                        return Err(failed("a list does not ascend"));
                    }
                    continue 'next;
                }
            }
            if first.advance() <= at {
                return Err(failed("a list does not ascend"));
            }
            return Ok(Some(at));
        }
    }
}
