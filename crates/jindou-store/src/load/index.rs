//! Seventh phase: index vertices, characteristic sets by run of ids, and the planner's statistics, all read from the
//! segments that were just written.

use super::clusters::Clusters;
use crate::directory::{IndexBuilder, SegmentFile};
use crate::threads::on_threads;
use jindou_graph::segment::{EdgeView, GraphScope, KeyRows};
use jindou_graph::sets::SetRun;
use jindou_graph::shard::{Blocks, LocalKey};
use jindou_graph::statistics::{
    HeavyKey, MAX_PLANNER_SETS, PlannerSet, PredicateStatistics, Statistics, merge_sets,
};
use jindou_model::memory::huge_zeroed;
use jindou_model::sync::lock;
use jindou_model::{Direction, Error, Result};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The segment files that this phase reads.
pub(super) struct SegmentFiles {
    /// The files of each shard, `[named][direction]`; one entry for an unsharded store.
    pub parts: Vec<[[SegmentFile; 2]; 2]>,
    /// The block table that converts a shard's keys to ids; `None` for an unsharded store.
    pub blocks: Option<Blocks>,
}

impl SegmentFiles {
    /// Checks that each predicate has equally many edges in both directions, over all shards.
    ///
    /// # Errors
    /// [`Error::Internal`] if the numbers differ: a load that lost edges must not become a store.
    pub fn check(&self, predicates: u32) -> Result<()> {
        for p in 0..predicates {
            let [out, into] = [0, 1].map(|direction| {
                let views = (0..self.parts.len()).map(|shard| self.view(shard, p, direction));
                views.fold([0, 0], |sum, view| {
                    [
                        sum[0] + view.default.edge_count(),
                        sum[1] + view.named.edge_count(),
                    ]
                })
            });
            if out != into {
                return Err(Error::Internal(format!(
                    "predicate {p} has {out:?} edges by subject but {into:?} by object in the new store, \
                        which was discarded (please report it)"
                )));
            }
        }
        Ok(())
    }

    /// The edges of a predicate on a shard, under the shard's keys.
    fn view(&self, shard: usize, p: u32, direction: usize) -> EdgeView<'_> {
        let segments = &self.parts[shard];
        EdgeView::new(
            segments[0][direction].segment(p),
            segments[1][direction].named(p),
            None,
        )
    }

    /// The id of a shard's key.
    fn id(&self, shard: usize, key: u32) -> u32 {
        match &self.blocks {
            Some(blocks) => blocks.global(shard as u32, LocalKey(key)),
            None => key,
        }
    }
}

/// The part of the index that is the same in all shards: characteristic sets and classes. [`graphs`] adds a shard's own
/// part.
pub(super) fn index(
    clusters: &Clusters,
    written: &SegmentFiles,
    rdf_type: Option<u32>,
) -> IndexBuilder {
    let mut index = IndexBuilder::default();
    let mut numbers: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
    let mut known: [FxHashMap<u32, u32>; 2] = Default::default();
    let mut list = Vec::new();
    for c in &clusters.clusters {
        let sets = [
            (0, c.out_set, &clusters.out_sets),
            (1, c.in_set, &clusters.in_sets),
        ];
        let [out_set, in_set] = sets.map(|(direction, node, trie)| {
            *known[direction].entry(node).or_insert_with(|| {
                trie.list(node, &mut list);
                match numbers.get(&list) {
                    Some(&n) => n,
                    None => {
                        let n = index.push_set(&list);
                        numbers.insert(list.clone(), n);
                        n
                    }
                }
            })
        });
        if index
            .runs
            .last()
            .is_none_or(|r| (r.out_set, r.in_set) != (out_set, in_set))
        {
            index.runs.push(SetRun {
                start: c.start,
                out_set,
                in_set,
            });
        }
    }
    if let Some(p) = rdf_type {
        let (mut classes, mut keys, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
        for shard in 0..written.parts.len() {
            keys.clear();
            written
                .view(shard, p, 1)
                .candidate_keys(GraphScope::Union, &mut keys);
            classes.extend(keys.iter().map(|&k| (written.id(shard, k), shard, k)));
        }
        classes.sort_unstable();
        for (class, shard, key) in classes {
            let view = written.view(shard, p, 1);
            index.push_class(class, view.read(key, GraphScope::Union, &mut scratch));
        }
    }
    index
}

/// Adds the index vertices of a shard's named graphs. Groups (graph, predicate, subject) by graph; predicates and
/// subjects are read in ascending order, so a counting sort by graph suffices.
pub(super) fn graphs(
    written: &SegmentFiles,
    shard: usize,
    predicates: u32,
    index: &mut IndexBuilder,
) {
    let file = &written.parts[shard][1][0];
    let each = |f: &mut dyn FnMut(usize, u32, u32)| {
        let mut graphs = Vec::new();
        for p in 0..predicates {
            let segment = file.named(p);
            segment.for_each_key(|k, key| {
                let subject = written.id(shard, key);
                graphs.clear();
                graphs.extend(segment.range(k).map(|i| segment.graph_number(i)));
                if graphs.len() > 1 {
                    graphs.sort_unstable();
                    graphs.dedup();
                }
                graphs.iter().for_each(|&g| f(g as usize, p, subject));
            });
        }
    };
    let ids = file.graph_ids();
    // Start of each graph's entries; once they are placed, their end.
    let mut at = vec![0usize; ids.len() + 1];
    each(&mut |g, _, _| at[g + 1] += 1);
    for g in 0..ids.len() {
        at[g + 1] += at[g];
    }
    let mut entries: Vec<[u32; 2]> = huge_zeroed(at[ids.len()]);
    each(&mut |g, p, subject| {
        entries[at[g]] = [p, subject];
        at[g] += 1;
    });
    let mut start = 0;
    for (&g, &end) in ids.iter().zip(&at) {
        index.push_graph(g, &entries[start..end]);
        start = end;
    }
}

/// The planner's statistics. `terms` has the vertex id of each predicate.
pub(super) fn statistics(
    clusters: &Clusters,
    written: &SegmentFiles,
    terms: &[u32],
    rdf_type: Option<u32>,
    threads: usize,
) -> Statistics {
    let mut s = Statistics {
        vertices: clusters.id_of_lex.len() as u32,
        rdf_type,
        ..Statistics::default()
    };
    for (p, &vertex) in terms.iter().enumerate() {
        // Sums of edges and keys, and the longest list, over all shards, whose keys are disjoint.
        let record = |named: usize, direction: usize| {
            let records = written.parts.iter().map(|part| {
                let records = part[named][direction].records();
                records.get(p).copied().unwrap_or_default()
            });
            records.fold((0, 0, 0), |sum: (u64, u32, u32), r| {
                (sum.0 + r.edges, sum.1 + r.keys, sum.2.max(r.max_degree))
            })
        };
        let edges = record(0, 0).0;
        let named_edges = record(1, 0).0;
        let kind = usize::from(edges == 0);
        let (out, into) = (record(kind, 0), record(kind, 1));
        s.quads += edges + named_edges;
        s.predicates.push(PredicateStatistics {
            vertex,
            edges,
            named_edges,
            subjects: out.1,
            objects: into.1,
            max_out: out.2,
            max_in: into.2,
        });
    }
    let class_ids: Vec<u32> = clusters
        .class_terms
        .iter()
        .map(|&lex| clusters.id_of_lex[lex as usize])
        .collect();
    let sets = exact_sets(clusters, written, terms.len(), &class_ids, threads);
    let mut frequency = vec![0u64; terms.len()];
    for set in &sets {
        for &(class, n) in &set.classes {
            *s.classes.entry(class).or_default() += n;
        }
        for &(p, subjects, _) in &set.predicates {
            frequency[p as usize] += subjects;
        }
    }
    s.sets = merge_sets(sets, &frequency, MAX_PLANNER_SETS);
    // Heavy keys matter only if lists may be on another shard.
    if written.parts.len() > 1 {
        s.heavy = heavy_keys(written, terms.len() as u32);
    }
    s.index();
    s
}

/// The keys with the most neighbours, if they have at least [`HeavyKey::LEAST`]. O(keys of the predicates that have
/// such a key).
fn heavy_keys(written: &SegmentFiles, predicates: u32) -> Vec<HeavyKey> {
    let mut all = Vec::new();
    for (shard, part) in written.parts.iter().enumerate() {
        for p in 0..predicates {
            for direction in [Direction::Out, Direction::In] {
                let file = &part[0][direction as usize];
                let longest = file.records().get(p as usize).map_or(0, |r| r.max_degree);
                if longest < HeavyKey::LEAST {
                    continue;
                }
                let segment = file.segment(p);
                segment.for_each_key(|k, key| {
                    let (from, to) = segment.range(k);
                    let edges = (to - from) as u32;
                    if edges >= HeavyKey::LEAST {
                        let key = written.id(shard, key);
                        all.push(HeavyKey::new(p, direction, key, edges));
                    }
                });
            }
        }
    }
    if all.len() > HeavyKey::MOST {
        all.sort_unstable_by_key(|h| (Reverse(h.edges), *h));
        all.truncate(HeavyKey::MOST);
    }
    all.sort_unstable();
    all
}

/// Clusters grouped by their list of out-predicates, with a planner's set for each list; edges are not counted yet.
struct Grouped {
    sets: Vec<PlannerSet>,
    /// Index of each cluster's set; `NO_SET` if the cluster has no out-predicates.
    set_of: Vec<u32>,
    /// Start of each predicate's clusters in `by_predicate`, and the end.
    offsets: Vec<usize>,
    /// Clusters that have each predicate, ascending.
    by_predicate: Vec<u32>,
}

const NO_SET: u32 = u32::MAX;

impl Grouped {
    fn from_clusters(clusters: &Clusters, predicates: usize, class_ids: &[u32]) -> Self {
        let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
        let mut sets: Vec<PlannerSet> = Vec::new();
        let mut list = Vec::new();
        let mut offsets = vec![0usize; predicates + 1];
        let set_of: Vec<u32> = clusters
            .clusters
            .iter()
            .map(|c| {
                if c.out_set == 0 {
                    return NO_SET;
                }
                let number = *numbers.entry(c.out_set).or_insert_with(|| {
                    clusters.out_sets.list(c.out_set, &mut list);
                    sets.push(PlannerSet {
                        predicates: list.iter().map(|&p| (p, 0, 0)).collect(),
                        ..PlannerSet::default()
                    });
                    sets.len() as u32 - 1
                });
                let set = &mut sets[number as usize];
                set.subjects += u64::from(c.len);
                for p in &mut set.predicates {
                    p.1 += u64::from(c.len);
                    offsets[p.0 as usize + 1] += 1;
                }
                clusters.class_sets.list(c.class_set, &mut list);
                let members = |&class: &u32| (class_ids[class as usize], u64::from(c.len));
                set.classes.extend(list.iter().map(members));
                number
            })
            .collect();
        for set in &mut sets {
            set.classes.sort_unstable();
            set.classes.dedup_by(|later, kept| {
                let same = later.0 == kept.0;
                kept.1 += if same { later.1 } else { 0 };
                same
            });
        }
        for p in 0..predicates {
            offsets[p + 1] += offsets[p];
        }
        let mut at = offsets.clone();
        let mut by_predicate = vec![0; offsets[predicates]];
        for (i, &set) in (0u32..).zip(&set_of) {
            if let Some(set) = sets.get(set as usize) {
                for &(p, _, _) in &set.predicates {
                    by_predicate[at[p as usize]] = i;
                    at[p as usize] += 1;
                }
            }
        }
        Self {
            sets,
            set_of,
            offsets,
            by_predicate,
        }
    }
}

/// Creates one planner's set for each distinct non-empty list of out-predicates.
fn exact_sets(
    clusters: &Clusters,
    written: &SegmentFiles,
    predicates: usize,
    class_ids: &[u32],
    threads: usize,
) -> Vec<PlannerSet> {
    let Grouped {
        mut sets,
        set_of,
        offsets,
        by_predicate,
    } = Grouped::from_clusters(clusters, predicates, class_ids);
    // Edges by (set, predicate), summed over the clusters of each predicate.
    let sums: Vec<Mutex<Vec<(u32, u64)>>> = (0..predicates).map(|_| Mutex::default()).collect();
    let next = AtomicUsize::new(0);
    on_threads(threads.min(predicates), |_| {
        let mut edges = vec![0u64; sets.len()];
        let mut keys = Vec::new();
        loop {
            let p = next.fetch_add(1, Ordering::Relaxed);
            let Some(out) = sums.get(p) else { return };
            let own = &by_predicate[offsets[p]..offsets[p + 1]];
            let mut add = |i: u32, n: u64| edges[set_of[i as usize] as usize] += n;
            for (shard, part) in written.parts.iter().enumerate() {
                let default = part[0][0].segment(p as u32);
                let named = part[1][0].named(p as u32);
                // True if no other segment or shard can have edges of the clusters with this predicate.
                let alone = written.blocks.is_none() && (default.is_empty() || named.is_empty());
                let id = |key| written.id(shard, key);
                by_cluster(&default, clusters, own, alone, &id, &mut keys, &mut add);
                by_cluster(&named, clusters, own, alone, &id, &mut keys, &mut add);
            }
            let mut found = Vec::new();
            for &i in own {
                let set = set_of[i as usize];
                match std::mem::take(&mut edges[set as usize]) {
                    0 => {}
                    n => found.push((set, n)),
                }
            }
            *lock(out) = found;
        }
    });
    // Predicates ascend both in this loop and in every set.
    let mut filled = vec![0u32; sets.len()];
    for sum in sums {
        let sum = sum
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        for (set, n) in sum {
            let at = &mut filled[set as usize];
            sets[set as usize].predicates[*at as usize].2 = n;
            *at += 1;
        }
    }
    sets
}

/// Calls `add` with the number of edges of each of the clusters `own` in a segment. `alone` is true if no other segment
/// has edges of the predicate; then every vertex of a cluster is a key. `id` converts keys to ids.
fn by_cluster(
    segment: &impl KeyRows,
    clusters: &Clusters,
    own: &[u32],
    alone: bool,
    id: &impl Fn(u32) -> u32,
    keys: &mut Vec<u32>,
    add: &mut impl FnMut(u32, u64),
) {
    if segment.edges() == 0 {
        return;
    }
    keys.clear();
    if !alone {
        segment.finder().keys_into(0, segment.key_count(), keys);
        keys.iter_mut().for_each(|k| *k = id(*k));
    }
    // Ids ascend with clusters, and positions of keys with ids.
    let mut from = 0;
    for &i in own {
        let c = &clusters.clusters[i as usize];
        let to = if alone {
            from + c.len
        } else {
            from = gallop(keys, from, c.start);
            gallop(keys, from, c.start + c.len)
        };
        if from < to {
            let end = segment.range_of(to - 1).end;
            add(i, end.saturating_sub(segment.range_of(from).start));
        }
        from = to;
    }
}

/// The number of `keys` below `id`, given that it is at least `from`. O(log of the difference).
fn gallop(keys: &[u32], from: u32, id: u32) -> u32 {
    let rest = &keys[from as usize..];
    let mut step = 1;
    while rest.get(step - 1).is_some_and(|&k| k < id) {
        step *= 2;
    }
    let low = step / 2;
    let high = (step - 1).min(rest.len());
    let within = &rest[low..high];
    from + (low + within.partition_point(|&k| k < id)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn galloping_counts_keys() {
        let keys: Vec<u32> = (0..50).map(|i| i * 3).collect();
        for from in 0..=50u32 {
            for id in 0..160 {
                let want = keys.iter().filter(|&&k| k < id).count() as u32;
                if want >= from {
                    assert_eq!(gallop(&keys, from, id), want, "{from} {id}");
                } else {
                    assert_eq!(gallop(&keys, from, id), from);
                }
            }
        }
    }
}
