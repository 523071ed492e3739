//! Options and report of a merge.

use crate::base::Base;
use jindou_model::{CancelToken, setters};
use std::fmt;
use std::time::Duration;

/// Choices that decide which files a merge writes, besides the snapshot. All servers with shards of a store have to make
/// the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergePlan {
    /// The generation of the new files; higher than that of any file of the base.
    pub generation: u32,
    /// True if the predicates that earlier merges wrote are written again, which leaves one generation.
    pub all: bool,
}

impl MergePlan {
    /// The plan for the next merge into a base. All generations are merged when there would be `generations` of them.
    #[must_use]
    pub fn next(base: &Base, generations: usize) -> Self {
        Self {
            generation: base.manifest().merged.newest().saturating_add(1),
            all: base.generations() + 1 >= generations.max(1),
        }
    }
}

/// Options for merging.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MergeOptions {
    /// Bytes of memory that keys of predicates may take while they are written: 16 bytes per key, one predicate per
    /// thread.
    pub memory: u64,
    /// Bytes per second that may be written; `None` for no limit.
    pub bytes_per_second: Option<u64>,
    /// Threads, at least 1; more than 4 are not used.
    pub threads: usize,
    /// Number of generations of files from which all are merged into one.
    pub generations: usize,
    /// Token that ends the merge; the store then stays as it was.
    pub cancel: CancelToken,
    /// True if the terms that no quad uses keep their ids: for tests, which compare the two.
    #[doc(hidden)]
    pub keeps_terms: bool,
}

impl Default for MergeOptions {
    /// 1 GiB, two threads, eight generations.
    fn default() -> Self {
        Self {
            memory: 1 << 30,
            bytes_per_second: None,
            threads: 2,
            generations: 8,
            cancel: CancelToken::new(),
            keeps_terms: false,
        }
    }
}

impl MergeOptions {
    setters! {
        with_memory: memory = u64;
        with_bytes_per_second: bytes_per_second = impl Into<Option<u64>>;
        with_threads: threads = usize;
        with_generations: generations = usize;
        with_cancel: cancel = CancelToken;
        with_keeps_terms: keeps_terms = bool;
    }
}

/// Counts, sizes and times of a merge.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MergeReport {
    /// The last snapshot that is now in the segments.
    pub snapshot: u64,
    /// Edits that were merged.
    pub edits: u64,
    /// Predicates whose segments were written.
    pub predicates: usize,
    /// Edges written, each direction counted.
    pub edges: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Number of generations besides the load's files.
    pub generations: usize,
    /// Time until the manifest named the new files.
    pub time: Duration,
    /// Time for which updates that arrived meanwhile waited for the new base.
    pub pause: Duration,
    /// Terms of updates that no quad uses any more and whose ids were freed first. Servers with a shared log free them
    /// together, and do not count them here.
    pub freed: u64,
}

impl fmt::Display for MergeReport {
    /// One line.
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
