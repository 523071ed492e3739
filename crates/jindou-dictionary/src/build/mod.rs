//! From batches of quads to the files of a dictionary.
use crate::TagRanges;
use crate::spill::SpillDir;
use jindou_model::{Error, QuadBatch, Result};
use std::path::Path;

/// What stands for the default graph in the graph position of [`Interner::intern`]'s output.
pub const LOCAL_DEFAULT_GRAPH: u32 = u32::MAX;

fn soon<T>() -> Result<T> {
    Err(Error::Unsupported("dictionary building".into()))
}

/// One per worker.
#[derive(Debug, Default)]
pub struct Interner {}
/// A sorted run.
#[derive(Debug)]
pub struct Run {}
/// A run and where its local ids went.
#[derive(Debug)]
pub struct ClosedRun {
    /// The run.
    pub run: Run,
    /// `position[local id]` = index in the run's order.
    pub position: Vec<u32>,
}
impl Run {
    /// Number of terms.
    #[must_use]
    pub fn terms(&self) -> u32 {
        0
    }
    /// Stored bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        0
    }
}
impl Interner {
    /// New.
    #[must_use]
    pub fn new(_max_bytes: usize) -> Self {
        Self {}
    }
    /// Takes a batch.
    pub fn intern(&mut self, _batch: &QuadBatch, _out: &mut Vec<[u32; 4]>) -> bool {
        false
    }
    /// Terms.
    #[must_use]
    pub fn len(&self) -> usize {
        0
    }
    /// No terms.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        true
    }
    /// Bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        0
    }
    /// Close.
    ///
    /// # Errors
    /// Spill.
    pub fn close(&mut self, _spill: &SpillDir) -> Result<ClosedRun> {
        soon()
    }
}
/// Writes `strings.jd`.
#[derive(Debug)]
pub struct StringsWriter {}
impl StringsWriter {
    /// Begins.
    ///
    /// # Errors
    /// Io.
    pub fn create(_dir: &Path) -> Result<Self> {
        soon()
    }
}
/// Result of a merge.
#[derive(Debug)]
pub struct Merged {
    /// Number of distinct terms.
    pub terms: u32,
    /// Per run, sorted index → lex index.
    pub maps: Vec<Vec<u32>>,
    /// Intervals of lex indexes.
    pub tag_ranges: TagRanges,
}
/// Merges.
///
/// # Errors
/// Io, limits.
pub fn merge_runs(_runs: Vec<Run>, _strings: StringsWriter, _threads: usize) -> Result<Merged> {
    soon()
}
/// Writes `dictionary.jd`.
///
/// # Errors
/// Io, limits.
pub fn write_dictionary(_dir: &Path, _id_of_lex: &[u32], _threads: usize) -> Result<()> {
    soon()
}
