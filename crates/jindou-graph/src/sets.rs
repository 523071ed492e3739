//! Characteristic sets (Neumann and Moerkotte 2011): the predicates that leave and enter a vertex.
//!
//! Ids are assigned at load so that vertices with the same sets are contiguous; a run table gives the out-set and
//! in-set of the vertices of each run of ids. It is exact for the base; vertices touched by a patch are looked up
//! separately. Patterns with an unknown predicate probe only these predicates.

use bytemuck::{Pod, Zeroable};
use jindou_model::mapped::contradicts;

/// A run of consecutive ids with the same sets; ends where the next one starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SetRun {
    /// First id.
    pub start: u32,
    /// Number of the predicate list of edges that leave.
    pub out_set: u32,
    /// Number of the predicate list of edges that enter.
    pub in_set: u32,
}

/// Borrowed arrays: runs, and predicate lists in compressed-row form. Default and named graphs together.
#[derive(Clone, Copy, Debug, Default)]
pub struct CharacteristicSets<'a> {
    /// Ascending by `start`.
    pub runs: &'a [SetRun],
    /// Bounds of each list in `predicates`, and one more entry.
    pub offsets: &'a [u32],
    /// Dense predicate ids, ascending inside a list.
    pub predicates: &'a [u32],
}

impl<'a> CharacteristicSets<'a> {
    /// The run of a vertex. O(log runs).
    #[must_use]
    pub fn run_of(&self, v: u32) -> Option<SetRun> {
        let at = self.runs.partition_point(|r| r.start <= v);
        self.runs.get(at.checked_sub(1)?).copied()
    }

    /// The predicates of a set, ascending; empty for damaged numbers, which mark the file.
    #[must_use]
    pub fn list(&self, set: u32) -> &'a [u32] {
        let bounds = self.offsets.get(set as usize..);
        let list = match bounds.and_then(|o| o.first_chunk::<2>()) {
            Some(&[a, b]) => self.predicates.get(a as usize..b as usize),
            None => None,
        };
        list.unwrap_or_else(|| {
            contradicts(self.runs);
            &[]
        })
    }

    /// Predicates of edges that leave `v`.
    #[must_use]
    pub fn out_predicates(&self, v: u32) -> &'a [u32] {
        self.run_of(v).map_or(&[], |r| self.list(r.out_set))
    }

    /// Predicates of edges that enter `v`.
    #[must_use]
    pub fn in_predicates(&self, v: u32) -> &'a [u32] {
        self.run_of(v).map_or(&[], |r| self.list(r.in_set))
    }
}
