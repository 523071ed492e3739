//! Characteristic sets (Neumann and Moerkotte 2011): the predicates that leave and enter a vertex.
//!
//! Ids are assigned at load so that vertices with the same sets are contiguous. A table of runs gives the out-set and
//! the in-set of all vertices in a run of ids. The table is exact for the base; predicates that a patch added to a
//! vertex are stored separately ([`crate::delta`]). Patterns with a variable predicate read only the edges of these
//! predicates.

use bytemuck::{Pod, Zeroable};
use jindou_model::mapped::contradicts;

/// A run of consecutive ids with the same sets. It ends where the next run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SetRun {
    /// First id.
    pub start: u32,
    /// Number of the list with the predicates of edges that leave the vertices.
    pub out_set: u32,
    /// Number of the list with the predicates of edges that enter the vertices.
    pub in_set: u32,
}

/// Characteristic sets in borrowed arrays: runs, and predicate lists in compressed-row form. Default and named graphs
/// together.
#[derive(Clone, Copy, Debug, Default)]
pub struct CharacteristicSets<'a> {
    /// Ascending by `start`.
    pub runs: &'a [SetRun],
    /// Start of each list in `predicates`, and the end of the last one.
    pub offsets: &'a [u32],
    /// Dense predicate ids, ascending inside a list.
    pub predicates: &'a [u32],
}

impl<'a> CharacteristicSets<'a> {
    /// The run that contains a vertex. O(log runs).
    #[must_use]
    pub fn run_of(&self, v: u32) -> Option<SetRun> {
        let at = self.runs.partition_point(|r| r.start <= v);
        self.runs.get(at.checked_sub(1)?).copied()
    }

    /// The predicates of a set, ascending. Empty for an invalid set number or invalid bounds, which mark the file as
    /// damaged.
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
