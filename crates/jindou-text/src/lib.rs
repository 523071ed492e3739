//! A full-text index of a store's terms, for searches by words of labels and of IRIs. Based on tantivy.
//!
//! ```text
//! load, reclustering   Text::build ─► index-text.jd            literals and IRIs of the base
//! updates              Growing::grown                          those of the tail, in memory, within a budget
//! a search             WordQuery::new(text) ─► search ─► ids   texts with few words first; callers rank them
//! ```
//!
//! Indexed literals are strings with or without a language tag, of at most [`MAX_TEXT`] bytes. Of an IRI, the words of
//! its local name are indexed. Words are folded ([`Folder`]). A query consists of words all of which must occur, the
//! last one as a word's prefix ([`WordQuery`]).
//!
//! ```text
//! index-text.jd   1  files   tantivy's files, one after the other
//!                 2  table   u64: for each segment its kind (0 literals, 1 IRIs), its number of documents,
//!                            and start and end of each of its files
//!                 3  ids     u32 per document: the id of its term; segment by segment
//!                 4  hash    u64: hash of the sections before it
//! ```
//!
//! Tantivy does not verify its files. So the file is compared with its hash before it is first searched, and a panic
//! inside tantivy becomes an error.

mod build;
mod directory;
mod docs;
mod growing;
mod open;
mod segment;
mod words;

pub use growing::{BLOCK, Growing};
pub use open::OpenText;
pub use words::{Fit, Folder, MAX_TEXT, VERSION, WordQuery, count, local_name};

use jindou_dictionary::Dictionary;
use jindou_dictionary::index::{Index, IndexFile, IndexWriter, OpenIndex, Terms};
use jindou_model::term::{self, IRI, LANG, Parts, STRING};
use jindou_model::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The index's name.
pub const NAME: &str = "text";

/// Sections of the file.
mod section {
    pub const FILES: u32 = 1;
    pub const TABLE: u32 = 2;
    pub const IDS: u32 = 3;
    pub const HASH: u32 = 4;
}

/// Kinds of terms, of which each search covers one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchedTerms {
    /// Strings, with or without a language tag.
    Literals,
    /// IRIs.
    Iris,
}

impl SearchedTerms {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Literals, Self::Iris];
}

/// Sets `out` to a term's folded text, and returns the kind of the term; `None` for terms that are not indexed.
pub fn folded(canonical: &[u8], folder: &mut Folder, out: &mut String) -> Option<SearchedTerms> {
    if canonical.len() > MAX_TEXT + 64 {
        return None;
    }
    let kind = match term::parts(canonical)? {
        Parts::String(s) | Parts::Lang(s, _) if s.len() <= MAX_TEXT => {
            folder.text(s, out);
            SearchedTerms::Literals
        }
        Parts::Iri(iri) => {
            folder.iri(iri, out);
            SearchedTerms::Iris
        }
        _ => return None,
    };
    (!out.is_empty()).then_some(kind)
}

/// Tests single terms for the words of a query.
pub struct TermJudge<'a> {
    asked: &'a WordQuery,
    kind: SearchedTerms,
    folder: Folder,
    text: String,
}

impl<'a> TermJudge<'a> {
    /// A test for terms of this kind.
    #[must_use]
    pub fn new(asked: &'a WordQuery, kind: SearchedTerms) -> Self {
        Self {
            asked,
            kind,
            folder: Folder::default(),
            text: String::new(),
        }
    }

    /// The tags of canonical bytes that terms of this kind have.
    #[must_use]
    pub fn tags(&self) -> &'static [u8] {
        match self.kind {
            SearchedTerms::Literals => &[STRING, LANG],
            SearchedTerms::Iris => &[IRI],
        }
    }

    /// How well a term matches the query, and the number of the term's words; `None` if a word is missing, or the term
    /// is of the other kind.
    pub fn fit(&mut self, canonical: &[u8]) -> Option<(Fit, usize)> {
        let tag = canonical.first()?;
        if !self.tags().contains(tag) {
            return None;
        }
        folded(canonical, &mut self.folder, &mut self.text)?;
        Some((self.asked.fit(&self.text)?, count(&self.text)))
    }
}

/// Runs code that calls tantivy; a panic becomes an error.
pub(crate) fn caught<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(f))
        .unwrap_or_else(|_| Err(Error::Internal("the index of words panicked".into())))
}

/// The full-text index, as a kind of index of a store.
#[derive(Clone, Copy, Debug, Default)]
pub struct Text;

impl Index for Text {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn on_demand(&self) -> bool {
        true
    }

    fn in_shards(&self) -> bool {
        true
    }

    fn build(&self, terms: &Terms<'_>, file: &mut IndexWriter) -> Result<()> {
        build::build(terms, file)
    }

    fn open(&self, file: Option<Arc<IndexFile>>, _: &Dictionary) -> Result<Box<dyn OpenIndex>> {
        let file = file.ok_or_else(|| Error::Internal("the words are in a file".into()))?;
        Ok(Box::new(OpenText::new(file)?))
    }
}
