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
    /// Distinct subjects in the default graph, or in the named graphs if the default graph has none.
    pub subjects: u32,
    /// Distinct objects in the default graph, or in the named graphs if the default graph has none.
    pub objects: u32,
    /// Length of the longest list of objects of one subject.
    pub max_out: u32,
    /// Length of the longest list of subjects of one object.
    pub max_in: u32,
}

/// A characteristic set for the planner: exact, or several similar sets merged. `predicates` and `classes` of a merged
/// set include those of all its members. So if no set contains two given predicates, no subject has both.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlannerSet {
    /// Number of subjects that have the set.
    pub subjects: u64,
    /// Classes (vertex ids), and the number of the subjects that are in each; ascending ids.
    pub classes: Vec<(u32, u64)>,
    /// Predicates (dense ids), the number of the subjects that have each, and the number of their edges; ascending ids.
    pub predicates: Vec<(u32, u64, u64)>,
}

/// A key of the default graph that has very many neighbours. In a sharded store, sending rows to the shard that has the
/// key's list costs less than sending the list to the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub struct HeavyKey {
    /// Twice the dense predicate id; plus 1 for edges that enter the key.
    segment: u32,
    /// The key's vertex.
    pub key: u32,
    /// Number of the key's neighbours.
    pub edges: u32,
}

impl HeavyKey {
    /// Smallest number of neighbours of a heavy key: their list takes 32 KiB.
    pub const LEAST: u32 = 1 << 13;
    /// Largest number of heavy keys that are stored, which take 768 KiB. If there are more, those with the fewest
    /// neighbours are left out.
    pub const MOST: usize = 1 << 16;

    /// Creates an entry for the key of an edge list.
    #[must_use]
    pub fn new(predicate: u32, direction: Direction, key: u32, edges: u32) -> Self {
        Self {
            segment: predicate << 1 | direction as u32,
            key,
            edges,
        }
    }

    /// Dense id of the predicate.
    #[must_use]
    pub fn predicate(self) -> u32 {
        self.segment >> 1
    }
}

/// Largest number of sets; rarer ones are merged. The limit bounds the time of an estimate to well under a millisecond.
pub const MAX_PLANNER_SETS: usize = 10_000;

/// Statistics of a base.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Vertices of the base.
    pub vertices: u32,
    /// Quads of the base.
    pub quads: u64,
    /// Dense id of `rdf:type`, if it occurs.
    pub rdf_type: Option<u32>,
    /// Counts of the predicates, by dense predicate id.
    pub predicates: Vec<PredicateStatistics>,
    /// Number of members of each class (default and named graphs merged).
    pub classes: FxHashMap<u32, u64>,
    /// Characteristic sets of subjects, most frequent first.
    pub sets: Vec<PlannerSet>,
    /// Sorted by predicate, direction and key; only in sharded stores.
    pub heavy: Vec<HeavyKey>,
    /// For each predicate the ascending indexes in `sets` of the sets that have it.
    pub sets_of_predicate: Vec<Vec<u32>>,
    /// For each class the ascending indexes in `sets` of the sets that have it.
    pub sets_of_class: FxHashMap<u32, Vec<u32>>,
}

impl Statistics {
    /// The heavy keys of a predicate in one direction, ascending. O(log heavy keys).
    #[must_use]
    pub fn heavy_keys(&self, predicate: u32, direction: Direction) -> &[HeavyKey] {
        let segment = predicate << 1 | direction as u32;
        let from = self.heavy.partition_point(|h| h.segment < segment);
        let rest = &self.heavy[from..];
        let len = rest.partition_point(|h| h.segment == segment);
        &rest[..len]
    }

    /// Computes `sets_of_predicate` and `sets_of_class` from `sets`. O(total size).
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

/// Merges exact sets down to at most `most`, at least 1: the most frequent sets stay unchanged; all other sets are
/// grouped by their most frequent class and their rarest predicate, and each group is merged.
///
/// `frequency` is the number of subjects of each predicate. O(sets log sets).
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
        // Sets with the same most frequent class and the same rarest predicate are similar. A hash of the two selects
        // one of the `room` groups.
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
