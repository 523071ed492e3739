//! Statistics for the planner: counts per predicate and class, and characteristic sets with counts.

use bytemuck::{Pod, Zeroable};
use jindou_model::Direction;
use rustc_hash::FxHashMap;

/// Counts of one predicate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PredicateStatistics {
    /// The predicate's term.
    pub vertex: u32,
    /// Edges in the default graph.
    pub edges: u64,
    /// Edges in named graphs (one edge in two graphs counts twice).
    pub named_edges: u64,
    /// Distinct subjects (in the default graph; in the named graphs where the default graph has none).
    pub subjects: u32,
    /// Distinct objects, likewise.
    pub objects: u32,
    /// Length of the longest list of objects of one subject.
    pub max_out: u32,
    /// Length of the longest list of subjects of one object.
    pub max_in: u32,
}

/// A characteristic set as the planner sees it: exact, or several similar ones merged. `predicates` and `classes` are
/// then supersets of every member's, so "no set has both" proves emptiness.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlannerSet {
    /// Number of subjects that have it.
    pub subjects: u64,
    /// Classes (vertex ids) and how many of the subjects are in each; ascending ids.
    pub classes: Vec<(u32, u64)>,
    /// Predicates (dense ids), the number of subjects that have each, and edges; ascending ids.
    pub predicates: Vec<(u32, u64, u64)>,
}

/// A key of the default graph with so many neighbours that moving rows to its list costs less than moving the list to
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct HeavyKey {
    /// Twice the dense predicate id, plus 1 for edges that enter.
    segment: u32,
    /// The vertex.
    pub key: u32,
    /// Number of its neighbours.
    pub edges: u32,
}

impl HeavyKey {
    /// Smallest number of neighbours: a list of 32 KiB.
    pub const LEAST: u32 = 1 << 13;
    /// Largest number of keys that are stored, those with the most neighbours: 768 KiB.
    pub const MOST: usize = 1 << 16;

    /// The key of an edge list.
    #[must_use]
    pub fn new(predicate: u32, direction: Direction, key: u32, edges: u32) -> Self {
        Self {
            segment: predicate << 1 | direction as u32,
            key,
            edges,
        }
    }

    /// Dense id of its predicate.
    #[must_use]
    pub fn predicate(self) -> u32 {
        self.segment >> 1
    }
}

/// Largest number of sets; rarer ones are merged. Keeps every estimate well under a millisecond.
pub const MAX_PLANNER_SETS: usize = 10_000;

/// Read-only statistics of a base, on the heap.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Vertices of the base.
    pub vertices: u32,
    /// Quads of the base.
    pub quads: u64,
    /// Dense id of `rdf:type`, if it occurs.
    pub rdf_type: Option<u32>,
    /// By dense predicate id.
    pub predicates: Vec<PredicateStatistics>,
    /// Number of members of each class (default and named graphs merged).
    pub classes: FxHashMap<u32, u64>,
    /// Characteristic sets of subjects, most frequent first.
    pub sets: Vec<PlannerSet>,
    /// By predicate, direction and key, ascending; only in sharded stores.
    pub heavy: Vec<HeavyKey>,
    /// For each predicate the ascending numbers of the sets that have it.
    pub sets_of_predicate: Vec<Vec<u32>>,
    /// For each class the ascending numbers of the sets that have it.
    pub sets_of_class: FxHashMap<u32, Vec<u32>>,
}

impl Statistics {
    /// The heavy keys of a predicate in one direction, ascending. O(log of all of them).
    #[must_use]
    pub fn heavy_keys(&self, predicate: u32, direction: Direction) -> &[HeavyKey] {
        let segment = predicate << 1 | direction as u32;
        let from = self.heavy.partition_point(|h| h.segment < segment);
        let rest = &self.heavy[from..];
        let len = rest.partition_point(|h| h.segment == segment);
        &rest[..len]
    }

    /// Fills the two indexes from `sets`. O(total size).
    pub fn index(&mut self) {
        self.sets_of_predicate = vec![Vec::new(); self.predicates.len()];
        self.sets_of_class.clear();
        for (i, set) in self.sets.iter().enumerate() {
            for &(p, _, _) in &set.predicates {
                if let Some(list) = self.sets_of_predicate.get_mut(p as usize) {
                    list.push(i as u32);
                }
            }
            for &(c, _) in &set.classes {
                self.sets_of_class.entry(c).or_default().push(i as u32);
            }
        }
    }
}

/// Merges exact sets down to at most `most`, at least 1: the most frequent stay unchanged; the others are grouped by
/// their classes and their rarest predicates.
///
/// `frequency` is the number of subjects by predicate. O(sets log sets).
#[must_use]
pub fn merge_sets(mut exact: Vec<PlannerSet>, frequency: &[u64], most: usize) -> Vec<PlannerSet> {
    exact.sort_by(|a, b| {
        b.subjects
            .cmp(&a.subjects)
            .then_with(|| a.predicates.cmp(&b.predicates))
            .then_with(|| a.classes.cmp(&b.classes))
    });
    if exact.len() <= most {
        return exact;
    }
    let room = (most / 10).max(1);
    let rest = exact.split_off(most.saturating_sub(room));
    let freq = |p: u32| frequency.get(p as usize).copied().unwrap_or(0);
    let mut groups: FxHashMap<u64, PlannerSet> = FxHashMap::default();
    for set in rest {
        // Similar sets: the same most frequent class, and the same rarest predicate, folded into the room.
        let class = set.classes.first().map_or(0, |c| u64::from(c.0));
        let rare = set
            .predicates
            .iter()
            .map(|p| p.0)
            .min_by_key(|&p| (freq(p), p))
            .map_or(0, u64::from);
        let key = (class.wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ rare.wrapping_mul(0xC2B2_AE3D_27D4_EB4F))
            >> 32;
        let into = groups.entry(key % room as u64).or_default();
        into.subjects += set.subjects;
        into.classes.extend(set.classes);
        into.predicates.extend(set.predicates);
    }
    let mut merged: Vec<PlannerSet> = groups.into_values().collect();
    for set in &mut merged {
        set.classes.sort_unstable();
        set.classes.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            kept.1 += if same { later.1 } else { 0 };
            same
        });
        set.predicates.sort_unstable();
        set.predicates.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            kept.1 += if same { later.1 } else { 0 };
            kept.2 += if same { later.2 } else { 0 };
            same
        });
    }
    merged.sort_by(|a, b| {
        b.subjects
            .cmp(&a.subjects)
            .then_with(|| a.predicates.cmp(&b.predicates))
    });
    exact.extend(merged);
    exact
}
