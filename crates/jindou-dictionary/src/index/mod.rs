//! Indexes of terms: which terms fulfil a condition, without looking at each.
//!
//! ```text
//! load, reclustering   Index::build ─► index-NAME.jd          all terms, in the order of their bytes
//! opening              Index::open  ─► OpenIndex               nothing in the file is trusted
//! a query              OpenIndex::probe(question) ─► Probe     its estimate and its line in EXPLAIN; ids to start at;
//!                                                              true, false, error or unsettled for ids, a batch at a time
//! ```
//!
//! An index speaks of the terms of a base only. Terms that updates brought, those that a query makes, and whatever else a probe
//! leaves unsettled are judged by the expression itself: so nothing has to be done at an update or a merge, which leave a base's
//! terms as they are, and a store without the file of an index gives the same answers. A reclustering makes a new base, with
//! every index that the database was opened with.
//!
//! The value ranks of `dictionary.jd` are an index, too: [`ValueRanks`], the one that every store has.

mod file;
mod open;
mod question;
mod ranks;
mod registry;

pub use file::{IndexFile, IndexWriter, Terms};
pub use open::{OpenIndexes, build_indexes};
pub use question::{Call, MAX_PARTS, Question, QuestionPart, Relation};
pub use ranks::ValueRanks;
pub use registry::{Indexes, file_of, name_of};

// Their types stand in signatures.
pub use crate::{Dictionary, TagRanges};
use jindou_model::Result;
use std::any::Any;
use std::sync::Arc;

/// A kind of index. Several threads use it at once. A panic in it ends the query, or the load, with an error.
pub trait Index: Send + Sync {
    /// Its name: lower-case letters, digits and hyphens, 40 bytes at most. The file is `index-NAME.jd`.
    fn name(&self) -> &str;

    /// Version of what [`Self::build`] writes. A file of another version is passed over, as if it were not there.
    fn version(&self) -> u32 {
        1
    }

    /// False for an index that needs nothing but the dictionary: it is not built, and opened without a file.
    fn has_file(&self) -> bool {
        true
    }

    /// True for an index that a reclustering builds only where the base has it, or where it is asked to. Other kinds are built
    /// whenever the database was opened with them.
    fn on_demand(&self) -> bool {
        false
    }

    /// Writes the index of a base's terms. Memory is charged to [`Terms::memory`] before it is taken. The same terms should
    /// give the same bytes.
    ///
    /// # Errors
    /// Those of [`Terms::for_each`] and of the writer, `Limit` for memory. Any of them ends the load.
    fn build(&self, terms: &Terms<'_>, file: &mut IndexWriter) -> Result<()>;

    /// The index in its file, or without one. The file is one that this kind wrote in this version for this dictionary, as far
    /// as its head says; the rest may be damaged. O(1): what is wrong deep inside is for [`OpenIndex::check`] to find.
    ///
    /// # Errors
    /// [`IndexFile::damaged`].
    fn open(
        &self,
        file: Option<Arc<IndexFile>>,
        dictionary: &Dictionary,
    ) -> Result<Box<dyn OpenIndex>>;
}

/// An index that was opened. Damage in its file may make it answer wrongly, and never fault or loop without end.
pub trait OpenIndex: Send + Sync {
    /// The answer to a question, if the index knows anything of it. Asked once by the planner, by EXPLAIN, and by each thread
    /// that runs the query: some microseconds are fine, lists are read later.
    fn probe<'a>(
        &'a self,
        question: &Question<'_>,
        dictionary: &'a Dictionary,
    ) -> Option<Box<dyn Probe + 'a>>;

    /// The index as its own type, for programs that ask it more than questions about one variable.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// Calls `damage` with whatever is wrong inside, for those who check a store and have the kind. The file's bytes were compared
    /// with their hashes already.
    fn check(&self, _dictionary: &Dictionary, _damage: &mut dyn FnMut(String)) {}

    /// A few words on what it holds, for reports on a store.
    fn describe(&self) -> String {
        String::new()
    }
}

/// An index's answer to one question, for one thread.
pub trait Probe: Send {
    /// How many terms of the base fulfil it.
    fn estimate(&self) -> Estimate;

    /// The words after the condition in EXPLAIN, such as "by index words (12 terms)".
    fn explain(&self) -> String;

    /// The verdict on each id, in as many places of `out`. Any id may come: those of updates and of the query, and 0 for an
    /// unbound variable, too. One call a batch: no allocation but of what is kept for the next.
    fn test_many(&mut self, ids: &[u32], out: &mut [Verdict]);

    /// All ids of the base that are true or unsettled, or more, in any order; `None` where they are not known or may be more
    /// than `limit`. Exploring starts at them where that is cheap.
    fn ids(&mut self, _limit: usize) -> Option<Vec<u32>> {
        None
    }
}

/// The number of terms that fulfil a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Terms of the base that satisfy the condition, or may.
    pub passing: u64,
    /// Terms that the index knows of.
    pub of: u64,
    /// Exactly `passing` are true; else about this many.
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
    /// Computing it gives an error, as SPARQL has them.
    Error = 2,
    /// Unknown to the index: the expression must be evaluated.
    #[default]
    Unsettled = 3,
}
