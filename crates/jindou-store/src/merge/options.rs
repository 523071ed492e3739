//! Options and report of a merge.

use crate::base::Base;
use jindou_model::{CancelToken, options_struct};
use std::fmt;
use std::time::Duration;

/// The options that decide, together with the snapshot, which files a merge writes. All servers with shards of a store
/// must use the same plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergePlan {
    /// The generation of the new files; higher than that of any file of the base.
    pub generation: u32,
    /// True if the predicates of earlier generations are written again as well, so that one generation remains.
    pub all: bool,
    /// True if each shard keeps the text of the new terms that it owns, and of few others; false in the logs of versions
    /// in which each kept the text of all. Without meaning in an unsharded store.
    pub texts_at_owners: bool,
}

impl MergePlan {
    /// All fields except for the generation, as one number.
    pub(crate) fn to_flags(self) -> u64 {
        u64::from(self.all) | u64::from(self.texts_at_owners) << 1
    }

    /// Decodes the output of [`Self::to_flags`]; `None` for anything else.
    pub(crate) fn from_flags(generation: u32, flags: u64) -> Option<Self> {
        (flags < 4).then_some(Self {
            generation,
            all: flags & 1 == 1,
            texts_at_owners: flags & 2 == 2,
        })
    }

    /// The plan of the next merge of a base. All generations are merged if this one would be number `generations`.
    #[must_use]
    pub fn next(base: &Base, generations: usize) -> Self {
        Self {
            generation: base.manifest().merged.newest().saturating_add(1),
            all: base.generations() + 1 >= generations.max(1),
            texts_at_owners: true,
        }
    }
}

options_struct! {
    /// Options for merging: by default 1 GiB of memory, two threads and eight generations.
    #[derive(Clone, Debug)]
    #[non_exhaustive]
    pub struct MergeOptions {
        /// Bytes of memory for the keys of the predicates being written: 16 bytes per key, one predicate per thread.
        pub memory: u64 = 1 << 30, with_memory(u64);
        /// Number of bytes per second that may be written; `None` for no limit.
        pub bytes_per_second: Option<u64> = None, with_bytes_per_second(impl Into<Option<u64>>);
        /// Threads, at least 1; more than 4 are not used.
        pub threads: usize = 2, with_threads(usize);
        /// Number of generations at which all are merged into one.
        pub generations: usize = 8, with_generations(usize);
        /// Token that ends the merge; the store then stays as it was.
        pub cancel: CancelToken = CancelToken::new(), with_cancel(CancelToken);
        /// True if terms that no quad uses keep their ids. For tests, which compare both.
        #[doc(hidden)]
        pub keeps_terms: bool = false, with_keeps_terms(bool);
    }
}

/// Counts, sizes and times of a completed merge.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MergeReport {
    /// Number of the last snapshot that is now in the segments.
    pub snapshot: u64,
    /// Number of edits that were merged.
    pub edits: u64,
    /// Number of predicates whose segments were written.
    pub predicates: usize,
    /// Number of edges written, each direction counted.
    pub edges: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Number of generations, without the load's files.
    pub generations: usize,
    /// Time from the start until the manifest named the new files.
    pub time: Duration,
    /// Time for which updates that arrived during the merge waited for the new base.
    pub pause: Duration,
    /// Number of terms that updates added and no quad uses any more, whose ids were freed before the merge. Servers
    /// with a shared log free ids by a record, and do not count them here.
    pub freed: u64,
}

impl fmt::Display for MergeReport {
    /// Prints the report on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bytes == 0 {
            return write!(f, "snapshot {}: nothing to merge", self.snapshot);
        }
        let counted = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        write!(
            f,
            "merged snapshot {}: {}, {} with {}, {} bytes in {:.3} s; updates waited {:.3} ms at the end; {}",
            self.snapshot,
            counted(self.edits, "edit"),
            counted(self.predicates as u64, "predicate"),
            counted(self.edges, "edge"),
            self.bytes,
            self.time.as_secs_f64(),
            self.pause.as_secs_f64() * 1e3,
            counted(self.generations as u64, "generation"),
        )?;
        match self.freed {
            0 => Ok(()),
            n => write!(f, "; {} freed", counted(n, "unused term")),
        }
    }
}
