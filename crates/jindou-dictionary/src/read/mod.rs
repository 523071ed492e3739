//! Reading.
mod strings;
use crate::{Comparison, Number, NumericBounds, TagRanges, TemporalBounds};
use jindou_model::{Error, Result, VertexId};
use std::ops::{Range, RangeInclusive};
use std::path::Path;
pub use strings::Strings;

/// Dictionary.
#[derive(Debug)]
pub struct Dictionary {
    strings: Strings,
}
/// Decodes.
#[derive(Debug)]
pub struct Decoder<'a> {
    _d: &'a Dictionary,
}
impl Decoder<'_> {
    /// Term.
    pub fn term(&mut self, _id: VertexId) -> Option<&[u8]> {
        None
    }
}
/// Sort key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortKey {
    /// Class.
    pub class: u8,
    /// Rank in the class.
    pub rank: u32,
}
/// Kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TermKind {
    Blank,
    Iri,
    Literal,
    Triple,
}
#[allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    clippy::len_without_is_empty
)]
impl Dictionary {
    pub fn open(dir: &Path) -> Result<Self> {
        Ok(Self {
            strings: Strings::open(dir)?,
        })
    }
    pub fn len(&self) -> u32 {
        0
    }
    pub fn sections(&self) -> Vec<(&'static str, u64)> {
        vec![]
    }
    pub fn lookup(&self, _c: &[u8]) -> Option<VertexId> {
        None
    }
    pub fn lookup_many(&self, _c: &[&[u8]], _out: &mut Vec<u32>) {}
    pub fn term(&self, _id: VertexId, _out: &mut Vec<u8>) -> bool {
        false
    }
    pub fn decoder(&self) -> Decoder<'_> {
        Decoder { _d: self }
    }
    pub fn lex(&self, _id: VertexId) -> Option<u32> {
        None
    }
    pub fn lex_many(&self, _ids: &[u32], _out: &mut Vec<u32>) {}
    pub fn tag_range(&self, tag: u8) -> Range<u32> {
        self.strings.tag_ranges().range(tag)
    }
    pub fn tag_span(&self, tags: RangeInclusive<u8>) -> Range<u32> {
        self.strings.tag_ranges().span(tags)
    }
    pub fn strings(&self) -> &Strings {
        &self.strings
    }
    pub fn kind(&self, _id: VertexId) -> Option<TermKind> {
        None
    }
    pub fn sort_key(&self, _id: VertexId) -> SortKey {
        SortKey { class: 0, rank: 0 }
    }
    pub fn numeric_rank(&self, _id: VertexId) -> Option<u32> {
        None
    }
    pub fn numeric_rank_many(&self, _ids: &[u32], _out: &mut Vec<u32>) {}
    pub fn numeric_value(&self, _id: VertexId) -> Option<Number> {
        None
    }
    pub fn numeric_f64(&self, _rank: u32) -> Option<f64> {
        None
    }
    pub fn value_rank(&self, _lex: u32) -> u32 {
        0
    }
    pub fn numeric_bounds(&self, _c: Comparison, _n: &Number) -> NumericBounds {
        NumericBounds::default()
    }
    pub fn temporal_bounds(&self, _t: u8, _c: Comparison, _l: &str) -> Option<TemporalBounds> {
        None
    }
    pub fn string_bounds(&self, _c: Comparison, _l: &str) -> Range<u32> {
        0..0
    }
}
/// Terms added later.
#[derive(Debug, Default)]
pub struct DictionaryOverlay {}
#[allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    clippy::len_without_is_empty
)]
impl DictionaryOverlay {
    pub fn tail() -> Self {
        Self {}
    }
    pub fn query() -> Self {
        Self {}
    }
    pub fn insert(&mut self, _c: &[u8]) -> Result<VertexId> {
        Err(Error::Unsupported("overlay".into()))
    }
    pub fn lookup(&self, _c: &[u8]) -> Option<VertexId> {
        None
    }
    pub fn term(&self, _id: VertexId) -> Option<&[u8]> {
        None
    }
    pub fn len(&self) -> u32 {
        0
    }
}
