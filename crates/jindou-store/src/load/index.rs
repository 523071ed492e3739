//! Last phase: index vertices, characteristic sets by run of ids, and the planner's statistics, read from
//! the segments just written.

use super::clusters::Clusters;
use crate::directory::{IndexBuilder, SegmentFile};
use crate::segment::{EdgeView, Scope, Segment};
use crate::sets::SetRun;
use crate::statistics::{PlannerSet, PredicateStatistics, Statistics, merge_sets};
use rustc_hash::FxHashMap;

/// Keys enumerated at once.
const PART: u32 = 1 << 16;

/// The files that the phase reads.
pub(super) struct Written {
    /// `[named][direction]`
    pub segments: [[SegmentFile; 2]; 2],
}

impl Written {
    fn view(&self, p: u32, direction: usize) -> EdgeView<'_> {
        EdgeView {
            default: self.segments[0][direction].segment(p),
            named: self.segments[1][direction].segment(p),
            patch: None,
            snapshot: 0,
        }
    }
}

/// Calls `f` with every (key number, key).
fn for_each_key(segment: &Segment<'_>, mut f: impl FnMut(u32, u32)) {
    let mut keys = Vec::new();
    for from in (0..segment.key_count).step_by(PART as usize) {
        keys.clear();
        segment.keys_into(from, from.saturating_add(PART), &mut keys);
        for (k, &key) in (from..).zip(&keys) {
            f(k, key);
        }
    }
}

/// The index: characteristic sets, classes, graphs.
pub(super) fn index(
    clusters: &Clusters,
    written: &Written,
    predicates: u32,
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
        let view = written.view(p, 1);
        let (mut classes, mut scratch) = (Vec::new(), Vec::new());
        view.candidate_keys(Scope::Union, &mut classes);
        for class in classes {
            index.push_class(class, view.read(class, Scope::Union, &mut scratch));
        }
    }
    graphs(written, predicates, &mut index);
    index
}

/// Groups (graph, predicate, subject) by graph: predicates and subjects come ascending, so a counting sort
/// by graph is all.
fn graphs(written: &Written, predicates: u32, index: &mut IndexBuilder) {
    let mut counts: FxHashMap<u32, u64> = FxHashMap::default();
    let each = |f: &mut dyn FnMut(u32, u32, u32)| {
        let mut graphs = Vec::new();
        for p in 0..predicates {
            let segment = written.segments[1][0].segment(p);
            for_each_key(&segment, |k, subject| {
                let (a, b) = segment.range(k);
                graphs.clear();
                graphs.extend_from_slice(segment.graphs.and_then(|g| g.get(a..b)).unwrap_or(&[]));
                graphs.sort_unstable();
                graphs.dedup();
                graphs.iter().for_each(|&g| f(g, p, subject));
            });
        }
    };
    each(&mut |g, _, _| *counts.entry(g).or_default() += 1);
    let mut ids: Vec<u32> = counts.keys().copied().collect();
    ids.sort_unstable();
    let mut sum = 0;
    // Start of each graph, moved to its end while the entries are placed.
    let mut at: FxHashMap<u32, u64> = FxHashMap::default();
    for &g in &ids {
        at.insert(g, sum);
        sum += counts[&g];
    }
    let mut entries: Vec<[u32; 2]> = super::memory::zeroed(sum as usize);
    each(&mut |g, p, subject| {
        if let Some(next) = at.get_mut(&g) {
            entries[*next as usize] = [p, subject];
            *next += 1;
        }
    });
    let mut subjects = Vec::new();
    for g in ids {
        let end = at[&g] as usize;
        let own = &entries[end - counts[&g] as usize..end];
        for part in own.chunk_by(|a, b| a[0] == b[0]) {
            subjects.clear();
            subjects.extend(part.iter().map(|e| e[1]));
            index.push_graph_part(g, part[0][0], &subjects);
        }
    }
}

/// The planner's statistics. `terms` has the vertex id of each predicate.
pub(super) fn statistics(
    clusters: &Clusters,
    written: &Written,
    terms: &[u32],
    rdf_type: Option<u32>,
) -> Statistics {
    let mut s = Statistics {
        vertices: clusters.id_of_lex.len() as u32,
        rdf_type,
        ..Statistics::default()
    };
    for (p, &vertex) in terms.iter().enumerate() {
        let record = |named: usize, direction: usize| {
            written.segments[named][direction]
                .records()
                .get(p)
                .copied()
                .unwrap_or_default()
        };
        let edges = record(0, 0).edges;
        let named_edges = record(1, 0).edges;
        let kind = usize::from(edges == 0);
        s.quads += edges + named_edges;
        s.predicates.push(PredicateStatistics {
            vertex,
            edges,
            named_edges,
            subjects: record(kind, 0).keys,
            objects: record(kind, 1).keys,
            max_out: record(kind, 0).max_degree,
            max_in: record(kind, 1).max_degree,
        });
    }
    let class_ids: Vec<u32> = clusters
        .class_terms
        .iter()
        .map(|&lex| clusters.id_of_lex[lex as usize])
        .collect();
    let sets = exact_sets(clusters, written, terms.len(), &class_ids);
    let mut frequency = vec![0u64; terms.len()];
    for set in &sets {
        for &(class, n) in &set.classes {
            *s.classes.entry(class).or_default() += n;
        }
        for &(p, subjects, _) in &set.predicates {
            frequency[p as usize] += subjects;
        }
    }
    s.sets = merge_sets(sets, &frequency);
    s.index();
    s
}

/// One set for each distinct non-empty list of out-predicates.
fn exact_sets(
    clusters: &Clusters,
    written: &Written,
    predicates: usize,
    class_ids: &[u32],
) -> Vec<PlannerSet> {
    let mut numbers: FxHashMap<u32, usize> = FxHashMap::default();
    let mut sets: Vec<PlannerSet> = Vec::new();
    let mut classes: Vec<FxHashMap<u32, u64>> = Vec::new();
    let mut list = Vec::new();
    // Ids ascend with clusters, and key numbers ascend with ids: one cursor a segment finds every list.
    let mut cursors = vec![[0u32; 2]; predicates];
    let segments: Vec<[Segment<'_>; 2]> = (0..predicates as u32)
        .map(|p| [0, 1].map(|named| written.segments[named][0].segment(p)))
        .collect();
    for c in &clusters.clusters {
        if c.out_set == 0 {
            continue;
        }
        let number = *numbers.entry(c.out_set).or_insert_with(|| {
            clusters.out_sets.list(c.out_set, &mut list);
            sets.push(PlannerSet {
                predicates: list.iter().map(|&p| (p, 0, 0)).collect(),
                ..PlannerSet::default()
            });
            classes.push(FxHashMap::default());
            sets.len() - 1
        });
        let set = &mut sets[number];
        set.subjects += u64::from(c.len);
        for (p, subjects, edges) in &mut set.predicates {
            *subjects += u64::from(c.len);
            let cursor = &mut cursors[*p as usize];
            let pair = &segments[*p as usize];
            for (segment, k) in pair.iter().zip(cursor) {
                if segment.is_empty() {
                    continue;
                }
                let alone = pair.iter().filter(|s| !s.is_empty()).count() == 1;
                let end = if alone {
                    // Every vertex of the cluster is a key.
                    *k + c.len
                } else {
                    keys_before(segment, *k, c.start + c.len)
                };
                *edges += edges_between(segment, *k, end);
                *k = end;
            }
        }
        clusters.class_sets.list(c.class_set, &mut list);
        for &class in &list {
            *classes[number]
                .entry(class_ids[class as usize])
                .or_default() += u64::from(c.len);
        }
    }
    for (set, classes) in sets.iter_mut().zip(classes) {
        set.classes = classes.into_iter().collect();
        set.classes.sort_unstable();
    }
    sets
}

fn edges_between(segment: &Segment<'_>, from: u32, to: u32) -> u64 {
    if from >= to {
        return 0;
    }
    (segment
        .range(to - 1)
        .1
        .saturating_sub(segment.range(from).0)) as u64
}

/// The number of keys below `id`, knowing that it is at least `from`. O(log keys).
fn keys_before(segment: &Segment<'_>, from: u32, id: u32) -> u32 {
    let mut one = Vec::new();
    let (mut low, mut high) = (from, segment.key_count);
    while low < high {
        let mid = low + (high - low) / 2;
        one.clear();
        segment.keys_into(mid, mid + 1, &mut one);
        if one.first().is_some_and(|&key| key < id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    low
}
