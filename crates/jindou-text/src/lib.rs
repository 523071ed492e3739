//! Words of labels and IRIs as an index of a store's terms, on tantivy.
//!
//! ```text
//! load, reclustering   Text::build ─► index-text.jd             the base's literals and IRIs
//! updates              Growing::grow                            the tail's, in memory, within a budget
//! a search             Asked::new(text) ─► search ─► ids        of few words first; then the caller ranks
//! ```
//!
//! Literals are strings with and without a language of [`MAX_TEXT`] bytes at most; of IRIs there are the parts of the local name.
//! Words are folded ([`Folder`]). What is asked are words that must all occur, the last one as the beginning of a word ([`WordQuery`]).
//!
//! ```text
//! index-text.jd   1  files      tantivy's files, one after the other
//!                 2  table      u64: a segment's kind (0 literals, 1 IRIs), its documents, then begin and end of each file
//!                 3  ids        u32 a document: its term; of one segment after the other
//!                 4  hash       u64: of the sections before it
//! ```
//!
//! Tantivy trusts its files. So nothing is searched before all of the file was compared with its hash, which the first searches do, and
//! what panics all the same is an error.

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

/// Terms that are searched together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchedTerms {
    /// Strings, with and without a language.
    Literals,
    /// IRIs.
    Iris,
}

impl SearchedTerms {
    /// Both.
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

/// Tests terms one by one against the searched words.
pub struct TermJudge<'a> {
    asked: &'a WordQuery,
    kind: SearchedTerms,
    folder: Folder,
    text: String,
}

impl<'a> TermJudge<'a> {
    /// A test of terms of a kind.
    #[must_use]
    pub fn new(asked: &'a WordQuery, kind: SearchedTerms) -> Self {
        Self {
            asked,
            kind,
            folder: Folder::default(),
            text: String::new(),
        }
    }

    /// The tags of the kind's terms.
    #[must_use]
    pub fn tags(&self) -> &'static [u8] {
        match self.kind {
            SearchedTerms::Literals => &[STRING, LANG],
            SearchedTerms::Iris => &[IRI],
        }
    }

    /// How well a term matches the words, and its own number of words; `None` for terms that lack one or are of the
    /// other kind.
    pub fn fit(&mut self, canonical: &[u8]) -> Option<(Fit, usize)> {
        let tag = canonical.first()?;
        if !self.tags().contains(tag) {
            return None;
        }
        folded(canonical, &mut self.folder, &mut self.text)?;
        Some((self.asked.fit(&self.text)?, count(&self.text)))
    }
}

/// Runs what calls tantivy: a panic in it is an error.
pub(crate) fn caught<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(f))
        .unwrap_or_else(|_| Err(Error::Internal("the index of words panicked".into())))
}

/// The kind of index.
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
