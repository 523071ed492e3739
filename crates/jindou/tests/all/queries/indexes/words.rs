//! An index of the words of texts: the example of an index that a program adds to its stores (`docs/adding.md`).
//!
//! It supports two conditions on a variable `?t`:
//!
//! - the function [`HAS_WORD`]`(?t, "word")`, exactly. A program that uses the index also registers the function
//!   itself, as [`has_word`], which is called for texts that are not in the index.
//! - `CONTAINS(?t, "… word …")` with a whole word inside the constant: only texts with that word can contain the
//!   constant, and each of these is read to decide.
//!
//! ```text
//! index-words.jd   1  words      bytes of all words, ascending, without separators
//!                  2  ends       u64 per word: its end in section 1
//!                  3  list ends  u64 per word: the end of its list in section 4
//!                  4  lists      u32: ids of the texts that have the word, ascending
//! ```

use jindou::index::{
    Call, Dictionary, Estimate, Index, IndexFile, IndexWriter, OpenIndex, Probe, Question,
    QuestionPart, Terms, Verdict,
};
use jindou_model::term::{self, LANG, Parts, STRING};
use jindou_model::{Charge, Error, Holder, Result, VertexId};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// IRI of the function that is true if a text, with or without a language, has a word, regardless of case. Other terms
/// are an error.
pub const HAS_WORD: &str = "http://example.org/fn#word";

/// Sections of the file.
mod section {
    pub const WORDS: u32 = 1;
    pub const ENDS: u32 = 2;
    pub const LIST_ENDS: u32 = 3;
    pub const LISTS: u32 = 4;
}

/// The words of a text, in lower case.
pub fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|run| !run.is_empty())
        .map(str::to_lowercase)
}

/// The function [`HAS_WORD`]. Returns `None`, an error, unless `word` is a single word.
pub fn has_word(text: &str, word: &str) -> Option<bool> {
    let word = one_word(word)?;
    Some(words(text).any(|w| w == word))
}

/// The text in lower case if it is a single word, otherwise `None`.
fn one_word(text: &str) -> Option<String> {
    let is_word = !text.is_empty() && text.chars().all(char::is_alphanumeric);
    is_word.then(|| text.to_lowercase())
}

/// The longest whole word inside a text, with a separator on both sides; `None` if there is none.
pub fn inner_word(text: &str) -> Option<String> {
    let runs: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
    let inner = runs.get(1..runs.len().checked_sub(1)?)?;
    let words = inner.iter().filter_map(|run| one_word(run));
    words.max_by_key(String::len)
}

/// The kind of index.
#[derive(Clone, Copy, Debug, Default)]
pub struct Words;

impl Index for Words {
    fn name(&self) -> &str {
        "words"
    }

    /// Builds the index with all lists in memory. For large stores an index should sort in parts on disk, as
    /// `jindou-text` does with `jindou_model::spill`.
    fn build(&self, terms: &Terms<'_>, file: &mut IndexWriter) -> Result<()> {
        /// Bytes charged per word and per id in a list, including the growth of maps and vectors.
        const EACH: u64 = 128;
        let mut charge = Charge::new(Holder::Rest, terms.memory());
        let mut lists: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for tag in [STRING, LANG] {
            terms.for_each(terms.tag_ranges().range(tag), |id, canonical| {
                let Some(Parts::String(text) | Parts::Lang(text, _)) = term::parts(canonical)
                else {
                    return Ok(());
                };
                for word in words(text) {
                    charge.add(EACH + word.len() as u64)?;
                    lists.entry(word).or_default().push(id.0);
                }
                Ok(())
            })?;
        }
        for list in lists.values_mut() {
            // Ids were added out of order, because strings come before texts with a language, and ids are not in the
            // order of texts. A text may have a word more than once.
            list.sort_unstable();
            list.dedup();
        }
        file.begin(section::WORDS)?;
        for word in lists.keys() {
            file.write(word.as_bytes())?;
        }
        for (section, lengths) in [
            (section::ENDS, lists.keys().map(String::len).collect()),
            (section::LIST_ENDS, lists.values().map(Vec::len).collect()),
        ] {
            let lengths: Vec<usize> = lengths;
            file.begin(section)?;
            let mut end = 0;
            for length in lengths {
                end += length as u64;
                file.write_u64s(&[end])?;
            }
        }
        file.begin(section::LISTS)?;
        for list in lists.values() {
            file.write_u32s(list)?;
        }
        Ok(())
    }

    fn open(
        &self,
        file: Option<Arc<IndexFile>>,
        dictionary: &Dictionary,
    ) -> Result<Box<dyn OpenIndex>> {
        let file = file.ok_or_else(|| Error::Internal("the words are in a file".into()))?;
        let ends = [section::ENDS, section::LIST_ENDS].map(|s| file.u64s(s).len());
        if ends[0] != ends[1] {
            return Err(file.damaged("numbers of words and lists"));
        }
        let texts = dictionary.tag_range(STRING).len() + dictionary.tag_range(LANG).len();
        Ok(Box::new(OpenWords {
            file,
            texts: texts as u64,
        }))
    }
}

struct OpenWords {
    file: Arc<IndexFile>,
    /// Number of texts in the dictionary.
    texts: u64,
}

impl OpenWords {
    /// The range of entry `at` in an array whose entries end at `ends`; empty if the file is damaged.
    fn range(ends: &[u64], at: usize) -> Range<usize> {
        let start = at.checked_sub(1).and_then(|b| ends.get(b));
        let range = start.copied().unwrap_or(0)..ends.get(at).copied().unwrap_or(0);
        range.start as usize..range.end as usize
    }

    fn len(&self) -> usize {
        self.file.u64s(section::ENDS).len()
    }

    fn word(&self, at: usize) -> &[u8] {
        let range = Self::range(self.file.u64s(section::ENDS), at);
        self.file.bytes(section::WORDS).get(range).unwrap_or(&[])
    }

    fn list(&self, at: usize) -> &[u32] {
        let range = Self::range(self.file.u64s(section::LIST_ENDS), at);
        self.file.u32s(section::LISTS).get(range).unwrap_or(&[])
    }

    /// Ids of the texts with a word. O(log words).
    fn find(&self, word: &str) -> &[u32] {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.word(middle).cmp(word.as_bytes()) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return self.list(middle),
                Ordering::Greater => high = middle,
            }
        }
        &[]
    }
}

/// The word on which a call's result depends, and true if the call is true for exactly the texts with that word. `None`
/// for an unsupported call.
fn asked(call: &Call) -> Option<(String, bool)> {
    let [QuestionPart::Variable, QuestionPart::Constant(constant)] = &call.arguments[..] else {
        return None;
    };
    match (call.name.as_str(), term::parts(constant)?) {
        (HAS_WORD, Parts::String(s) | Parts::Lang(s, _)) => Some((one_word(s)?, true)),
        ("CONTAINS", Parts::String(s)) => Some((inner_word(s)?, false)),
        _ => None,
    }
}

/// True if the term is a text; `None` for an id that is not in the dictionary.
fn is_text(dictionary: &Dictionary, id: u32) -> Option<bool> {
    let tag = dictionary.tag(VertexId(id))?;
    Some(matches!(tag, STRING | LANG))
}

impl OpenIndex for OpenWords {
    fn probe<'a>(
        &'a self,
        question: &Question<'_>,
        dictionary: &'a Dictionary,
    ) -> Option<Box<dyn Probe + 'a>> {
        let Question::Holds(call) = question else {
            return None;
        };
        let (word, exact) = asked(call)?;
        Some(Box::new(WordProbe {
            list: self.find(&word),
            exact,
            texts: self.texts,
            dictionary,
        }))
    }

    fn check(&self, dictionary: &Dictionary, damage: &mut dyn FnMut(String)) {
        let ascend = |list: &[u32]| list.windows(2).all(|w| w[0] < w[1]);
        let mut before: &[u8] = &[];
        for at in 0..self.len() {
            let (word, list) = (self.word(at), self.list(at));
            if word <= before {
                damage(format!("word {at} does not follow the one before"));
            }
            let known = list.iter().all(|&id| is_text(dictionary, id) == Some(true));
            if list.is_empty() || !ascend(list) || !known {
                damage(format!(
                    "the list of word {at} is not one of texts, ascending"
                ));
            }
            before = word;
        }
    }

    fn describe(&self) -> String {
        format!("{} words of {} texts", self.len(), self.texts)
    }
}

/// The texts that have a word, as the index's answer to a condition.
struct WordProbe<'a> {
    /// Ids of the texts; ascending, unless the file is damaged.
    list: &'a [u32],
    /// True if the condition holds for exactly the texts in `list`; otherwise each of these must be read.
    exact: bool,
    texts: u64,
    dictionary: &'a Dictionary,
}

impl Probe for WordProbe<'_> {
    fn estimate(&self) -> Estimate {
        Estimate {
            passing: self.list.len() as u64,
            of: self.texts,
            exact: self.exact,
        }
    }

    fn explain(&self) -> String {
        let texts = format!("{} of {} texts", self.list.len(), self.texts);
        match self.exact {
            true => format!("by index words: {texts}"),
            false => format!("by index words: {texts} are read"),
        }
    }

    fn test_many(&mut self, ids: &[u32], out: &mut [Verdict]) {
        for (verdict, &id) in out.iter_mut().zip(ids) {
            let in_list = || self.list.binary_search(&id).is_ok();
            *verdict = match is_text(self.dictionary, id) {
                // Not in the dictionary: a term of an update or of the query, or unbound.
                None => Verdict::Unsettled,
                Some(false) => Verdict::Error,
                Some(true) if !in_list() => Verdict::False,
                Some(true) if self.exact => Verdict::True,
                Some(true) => Verdict::Unsettled,
            };
        }
    }

    fn ids(&mut self, limit: usize) -> Option<Vec<u32>> {
        (self.list.len() <= limit).then(|| self.list.to_vec())
    }
}
