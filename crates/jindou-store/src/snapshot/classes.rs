//! The classes of a snapshot and their members.

use super::Snapshot;
use jindou_graph::Edges;
use jindou_graph::segment::{GraphScope, Patch};
use jindou_model::{Direction, PredicateId, VertexId, term};

/// Number of list entries that can be read in the time of one lookup.
const LOOKUP: u64 = 32;

impl Snapshot {
    /// Number of members of a class in all graphs, each counted once; `None` for a term that is not a class. O(log
    /// edits); for a class with members in named graphs, O(its edits log members).
    #[must_use]
    pub fn class_members(&self, class: VertexId) -> Option<u64> {
        let base = self.base.statistics.classes.get(&class.0).copied();
        let Some(typing) = self.typing() else {
            return base;
        };
        let count = self.members(class.0, base.unwrap_or(0), typing, &mut Vec::new());
        (base.is_some() || count > 0).then_some(count)
    }

    /// The classes that have members, each with their number as given by [`Self::class_members`], in no particular
    /// order.
    #[must_use]
    pub fn classes(&self) -> Vec<(u32, u64)> {
        let known = &self.base.statistics.classes;
        let mut all: Vec<(u32, u64)> = known.iter().map(|(&c, &n)| (c, n)).collect();
        if let Some(typing) = self.typing() {
            let mut next = typing.1.next_added_key_of_all(0);
            while let Some(class) = next {
                if !known.contains_key(&class) {
                    all.push((class, 0));
                }
                let after = class.checked_add(1);
                next = after.and_then(|from| typing.1.next_added_key_of_all(from));
            }
            let mut scratch = Vec::new();
            for (class, n) in &mut all {
                *n = self.members(*class, *n, typing, &mut scratch);
            }
        }
        all.retain(|(_, n)| *n > 0);
        all
    }

    /// The predicate `rdf:type` and its patch from objects to subjects, if it has one.
    fn typing(&self) -> Option<(PredicateId, &Patch)> {
        if !self.is_patched() {
            return None;
        }
        let loaded = self.base.statistics.rdf_type.map(PredicateId);
        let p = loaded.or_else(|| self.predicate_of(self.lookup(&term::rdf_type())?))?;
        Some((p, self.patch(p.0, Direction::In)?))
    }

    /// Number of members of a class, given that it has `base` members without the patch.
    fn members(
        &self,
        class: u32,
        base: u64,
        (p, patch): (PredicateId, &Patch),
        scratch: &mut Vec<u32>,
    ) -> u64 {
        if !patch.is_dirty(class) {
            return base;
        }
        let now = self.edges(p, Direction::In);
        if now.named_degree(class) == 0 {
            return now.default_degree(class);
        }
        let (added, removed) = patch.edits_of(class);
        let (named_added, named_removed) = patch.named_edits_of(class);
        scratch.clear();
        scratch.extend(added.chain(removed).flatten().map(|&e| e as u32));
        scratch.extend(named_added.chain(named_removed).flatten().map(|e| e[1]));
        scratch.sort_unstable();
        scratch.dedup();
        // Reading the list is faster than many lookups; for another shard it is a single request.
        if scratch.len() as u64 > base / LOOKUP || self.sharded.is_some() {
            return now.read(class, GraphScope::Union, scratch).len() as u64;
        }
        let before = self.edges_of_base(p, Direction::In);
        let counted = |view: &Edges<'_>| {
            let is_member = |&&v: &&u32| view.contains(class, v, GraphScope::Union);
            scratch.iter().filter(is_member).count() as u64
        };
        (base + counted(&now)).saturating_sub(counted(&before))
    }
}
