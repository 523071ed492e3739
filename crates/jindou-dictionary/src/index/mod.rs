//! Indexes of terms, which find the terms that satisfy a condition without looking at each.
//!
//! ```text
//! load, reclustering   Index::build ─► index-NAME.jd          all terms, in the order of their bytes
//! opening              Index::open  ─► OpenIndex               nothing in the file is trusted
//! a query              OpenIndex::probe(question) ─► Probe     its estimate and its line in EXPLAIN; ids to start at;
//!                                                              true, false, error or unsettled for ids, a batch at a time
//! ```
//!
//! An index covers only the terms of a base. Terms added by updates, those made by a query, and any others that a probe
//! leaves unsettled are decided by the expression itself. So updates and merges, which leave a base's terms as they
//! are, need not maintain it, and a store without the file of an index gives the same answers. A reclustering makes a
//! new base, with every index that the database was opened with.
//!
//! The value ranks of `dictionary.jd` are an index, too: [`ValueRanks`], which every store has.

mod file;
mod open;
mod prefix;
mod question;
mod ranks;
mod registry;

pub use file::{IndexFile, IndexWriter, Terms};
pub use open::{OpenIndexes, build_indexes};
pub use question::{Call, MAX_PARTS, Question, QuestionPart, Relation};
pub use ranks::ValueRanks;
pub use registry::{Indexes, file_of, name_of};

// Re-exported, since signatures of this module use them.
pub use crate::{Dictionary, TagRanges};
use jindou_model::Result;
use std::any::Any;
use std::sync::Arc;

/// A kind of index. Called by several threads at once. A panic in a method ends the query, or the load, with an error.
pub trait Index: Send + Sync {
    /// Name of the index: lower-case letters, digits and hyphens, 40 bytes at most. The file is `index-NAME.jd`.
    fn name(&self) -> &str;

    /// Version of the output of [`Self::build`]. A file of another version is ignored, as if it did not exist.
    fn version(&self) -> u32 {
        1
    }

    /// False for an index that needs only the dictionary: it is not built, and is opened without a file.
    fn has_file(&self) -> bool {
        true
    }

    /// True for an index that a reclustering builds only if the base has it, or on request. Other indexes are built
    /// whenever the database was opened with them.
    fn on_demand(&self) -> bool {
        false
    }

    /// True for an index that may be built over the terms of each shard of a store. Queries over shards use no index,
    /// so this suits indexes that only programs use, shard by shard ([`OpenIndex::as_any`]). Ids are then numbers of
    /// the shard's own dictionary.
    fn in_shards(&self) -> bool {
        false
    }

    /// Writes the index of a base's terms. Memory must be charged to [`Terms::memory`] before it is allocated. The same
    /// terms should give the same bytes.
    ///
    /// # Errors
    /// The errors of [`Terms::for_each`] and of the writer, `Limit` for memory. Any of them ends the load.
    fn build(&self, terms: &Terms<'_>, file: &mut IndexWriter) -> Result<()>;

    /// Opens the index, with its file if it has one. The file's head says that it was written by this kind of index, in
    /// this version and for this dictionary; the rest may be damaged. O(1): [`OpenIndex::check`] finds damage in the
    /// content.
    ///
    /// # Errors
    /// [`IndexFile::damaged`].
    fn open(
        &self,
        file: Option<Arc<IndexFile>>,
        dictionary: &Dictionary,
    ) -> Result<Box<dyn OpenIndex>>;
}

/// An opened index. If its file is damaged, its answers may be wrong, but it must not panic or loop for ever.
pub trait OpenIndex: Send + Sync {
    /// The answer to a question; `None` if the index cannot contribute to it. Called once by the planner, by EXPLAIN,
    /// and by each thread that runs the query. Should take some microseconds at most, so lists should be read later.
    fn probe<'a>(
        &'a self,
        question: &Question<'_>,
        dictionary: &'a Dictionary,
    ) -> Option<Box<dyn Probe + 'a>>;

    /// The index as its own type, for programs that use more than [`Self::probe`].
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// Calls `damage` with every fault found in the index's content. Called when a store is checked by a program that
    /// has registered this kind; the hashes of the file's bytes were verified before.
    fn check(&self, _dictionary: &Dictionary, _damage: &mut dyn FnMut(String)) {}

    /// A short description of the index's content, for reports on a store.
    fn describe(&self) -> String {
        String::new()
    }
}

/// An index's answer to one question, for one thread.
pub trait Probe: Send {
    /// Number of terms of the base that satisfy the condition.
    fn estimate(&self) -> Estimate;

    /// The text after the condition in EXPLAIN, such as "by index words (12 terms)".
    fn explain(&self) -> String;

    /// Writes the verdict on each id to the same position in `out`. Any id may occur: those of updates and of the
    /// query, and 0 for an unbound variable. Called once per batch; must not allocate except for data kept for the next
    /// call.
    fn test_many(&mut self, ids: &[u32], out: &mut [Verdict]);

    /// The ids of the base for which the answer is true or unsettled, possibly with others, in any order; `None` if
    /// they are unknown or may be more than `limit`. Exploration starts from these ids if that is cheap.
    fn ids(&mut self, _limit: usize) -> Option<Vec<u32>> {
        None
    }
}

/// The number of terms that fulfil a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Number of terms of the base that satisfy the condition, or may satisfy it.
    pub passing: u64,
    /// Number of terms that the index covers.
    pub of: u64,
    /// True if exactly `passing` terms satisfy the condition; false if about this many do.
    pub exact: bool,
}

/// The truth of a condition for one term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Verdict {
    /// The condition is false.
    False = 0,
    /// The condition is true.
    True = 1,
    /// The condition raises an error in the sense of SPARQL.
    Error = 2,
    /// The index does not know the answer: the expression must be evaluated.
    #[default]
    Unsettled = 3,
}
