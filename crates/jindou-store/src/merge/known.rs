//! Facts about a merged base that its segments do not hold: counts, classes, characteristic sets for the planner, and
//! the predicates of single vertices and the subjects of graphs that were removed.
//!
//! In a sharded store they are gathered from each shard's segments, and then combined: they are about the whole store.

use crate::base::Base;
use crate::directory::{IndexBuilder, class_runs};
use crate::snapshot::Snapshot;
use jindou_graph::delta::{BaseSets, MoreChange, VertexDelta};
use jindou_graph::segment::{EdgeView, GraphScope, NO_KEY};
use jindou_graph::shard::LocalKey;
use jindou_graph::statistics::{PlannerSet, PredicateStatistics, Statistics, merge_sets};
use jindou_model::{Direction, PredicateId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

impl Base {
    fn view(&self, p: u32, direction: Direction) -> EdgeView<'_> {
        let (default, named) = self.segments(p, direction);
        EdgeView::new(default, named, None)
    }

    /// Returns true if a merge has written the predicate's edges.
    pub(crate) fn has_merged_edges(&self, p: u32) -> bool {
        self.set_of(p).generation > 0
    }

    /// Number of edges of a predicate in all graphs, and on all shards.
    pub(crate) fn edge_count(&self, p: u32) -> u64 {
        let known = self.statistics.predicates.get(p as usize);
        known.map_or(0, |s| s.edges + s.named_edges)
    }

    /// Returns true if the vertex has an edge of the predicate in a named graph, and a merge may have added it.
    pub(crate) fn has_merged(&self, graph: u32, p: u32, subject: u32) -> bool {
        self.has_merged_edges(p) && self.named_segment(p, 0).has(subject, graph)
    }

    /// The key under which the segments have a vertex; `None` if another shard owns it.
    fn key_of(&self, v: u32) -> Option<u32> {
        match &self.shard {
            None => Some(v),
            Some(shard) => shard.key(v).map(|key| key.0),
        }
    }

    /// The vertex that a key of the segments stands for.
    fn id_of_key(&self, key: u32) -> u32 {
        match &self.shard {
            None => key,
            Some(shard) => shard.blocks.global(shard.number, LocalKey(key)),
        }
    }

    /// Returns true if the vertex has an edge of the predicate, in any graph. For an unsharded store.
    pub(crate) fn is_key(&self, v: u32, p: u32, direction: Direction) -> bool {
        let view = self.view(p, direction);
        view.default.finder.find(v) != NO_KEY || view.named.finder.find(v) != NO_KEY
    }
}

/// Counts of one predicate's edges in one base: of the default graph, and of named graphs.
#[derive(Clone, Copy, Debug, Default)]
struct HeldCounts {
    edges: [u64; 2],
    /// `[named][direction]`
    keys: [[u32; 2]; 2],
    longest: [[u32; 2]; 2],
}

/// A class in one base.
struct CountedClass {
    class: u32,
    members: u64,
    runs: Option<Vec<[u32; 2]>>,
}

/// Statements of the new segments of one base: of the whole store, or of the vertices that a shard owns. A class belongs to
/// the shard that has its incoming edges, and a subject's edges are all on one shard.
pub(super) struct MergeStatistics {
    held: Vec<HeldCounts>,
    /// Ascending; `None` if `rdf:type` was not written.
    classes: Option<Vec<CountedClass>>,
    /// Numbers of the planner's sets that subjects left, with the subjects' classes.
    left: Vec<(usize, Vec<u32>)>,
    /// By list of predicates.
    joined: BTreeMap<Vec<u32>, GatheredSubjects>,
}

/// Gathers the statistics of one base. `held` are the predicates that were written. O(members of all classes, if
/// `rdf:type` was written, and vertices whose predicates or classes changed).
pub(super) fn gather(
    snapshot: &Snapshot,
    held: &[u32],
    rdf_type: Option<u32>,
    [old, new]: [&Base; 2],
) -> MergeStatistics {
    let counts = held.iter().map(|&p| {
        let set = new.set_of(p);
        let mut counts = HeldCounts::default();
        for (named, direction) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let records = set.files[named][direction].records();
            let record = records.get(p as usize).copied().unwrap_or_default();
            counts.edges[named] = record.edges;
            counts.keys[named][direction] = record.keys;
            counts.longest[named][direction] = record.max_degree;
        }
        counts
    });
    let typed = rdf_type.filter(|p| held.contains(p));
    let classes = typed.map(|p| {
        let view = new.view(p, Direction::In);
        let (mut keys, mut scratch) = (Vec::new(), Vec::new());
        view.candidate_keys(GraphScope::Union, &mut keys);
        let mut classes = Vec::new();
        for key in keys {
            let members = view.read(key, GraphScope::Union, &mut scratch);
            if !members.is_empty() {
                classes.push(CountedClass {
                    class: new.id_of_key(key),
                    members: members.len() as u64,
                    runs: class_runs(members),
                });
            }
        }
        classes
    });
    let mut gathered = MergeStatistics {
        held: counts.collect(),
        classes,
        left: Vec::new(),
        joined: BTreeMap::new(),
    };
    gather_subjects(snapshot, rdf_type, [old, new], &mut gathered);
    gathered
}

/// Finds the sets that vertices leave and join whose classes or predicates changed since the last merge, so that "no set
/// has both" remains a proof. O(such vertices × their predicates).
fn gather_subjects(
    snapshot: &Snapshot,
    rdf_type: Option<u32>,
    [old, new]: [&Base; 2],
    to: &mut MergeStatistics,
) {
    let before = &old.merged.touched;
    let sets = snapshot.sets_of_base();
    let mut moved: Vec<u32> = Vec::new();
    if let Some(patch) = rdf_type.and_then(|p| snapshot.patch(p, Direction::Out)) {
        moved.extend(patch.keys());
    }
    let more = snapshot.touched().more(Direction::Out);
    let more = more.difference(before.more(Direction::Out));
    moved.extend(more.iter().map(|e| (e >> 32) as u32));
    moved.sort_unstable();
    moved.dedup();
    moved.retain(|&v| new.key_of(v).is_some());
    if moved.is_empty() {
        return;
    }
    let mut known: FxHashMap<Vec<u32>, usize> = FxHashMap::default();
    for (at, set) in old.statistics.sets.iter().enumerate() {
        let list: Vec<u32> = set.predicates.iter().map(|p| p.0).collect();
        known.entry(list).or_insert(at);
    }
    let mut scratch = Vec::new();
    let mut classes_of = |base: &Base, v: u32| -> Vec<u32> {
        let (Some(p), Some(key)) = (rdf_type, base.key_of(v)) else {
            return Vec::new();
        };
        let view = base.view(p, Direction::Out);
        view.read(key, GraphScope::Union, &mut scratch).to_vec()
    };
    for &v in &moved {
        let was = before.predicates_of(sets, v, Direction::Out);
        if let Some(&at) = known.get(&*was) {
            to.left.push((at, classes_of(old, v)));
        }
        let list = snapshot.predicates_of(v, Direction::Out);
        let Some(key) = new.key_of(v).filter(|_| !list.is_empty()) else {
            continue;
        };
        let into = to.joined.entry(list.to_vec()).or_default();
        into.subjects += 1;
        for class in classes_of(new, v) {
            *into.classes.entry(class).or_default() += 1;
        }
        into.edges.resize(list.len(), 0);
        for (sum, &p) in into.edges.iter_mut().zip(list.iter()) {
            let view = new.view(p, Direction::Out);
            *sum += view.default_degree(key) + view.named_degree(key);
        }
    }
}

/// The statistics of the merged store: the previous ones, with what was gathered from each base. Also returns the
/// classes' intervals if `rdf:type` was written.
pub(super) fn combine(
    snapshot: &Snapshot,
    held: &[u32],
    rdf_type: Option<u32>,
    parts: Vec<MergeStatistics>,
) -> (Statistics, Option<IndexBuilder>) {
    let mut s = snapshot.base().statistics.clone();
    for p in s.predicates.len() as u32..snapshot.predicate_count() {
        s.predicates.push(PredicateStatistics {
            vertex: snapshot.vertex_of(PredicateId(p)).0,
            ..PredicateStatistics::default()
        });
    }
    for (i, &p) in held.iter().enumerate() {
        let all = parts.iter().filter_map(|part| part.held.get(i));
        let edges = |named: usize| all.clone().map(|c| c.edges[named]).sum::<u64>();
        let kind = usize::from(edges(0) == 0);
        let keys = |d: usize| {
            let keys = all.clone().map(|c| c.keys[kind][d]);
            keys.fold(0u32, u32::saturating_add)
        };
        let longest = |d: usize| all.clone().map(|c| c.longest[kind][d]).max().unwrap_or(0);
        if let Some(slot) = s.predicates.get_mut(p as usize) {
            *slot = PredicateStatistics {
                vertex: slot.vertex,
                edges: edges(0),
                named_edges: edges(1),
                subjects: keys(0),
                objects: keys(1),
                max_out: longest(0),
                max_in: longest(1),
            };
        }
    }
    s.quads = s.predicates.iter().map(|p| p.edges + p.named_edges).sum();
    s.rdf_type = rdf_type;
    let (mut classes, mut left) = (None, Vec::new());
    let mut joined: BTreeMap<Vec<u32>, GatheredSubjects> = BTreeMap::new();
    for part in parts {
        if let Some(some) = part.classes {
            classes.get_or_insert_with(Vec::new).extend(some);
        }
        left.extend(part.left);
        for (list, gathered) in part.joined {
            joined.entry(list).or_default().add(gathered);
        }
    }
    let classes = classes.map(|mut classes| {
        classes.sort_unstable_by_key(|c| c.class);
        let mut index = IndexBuilder::default();
        s.classes.clear();
        for c in classes {
            s.classes.insert(c.class, c.members);
            if let Some(runs) = c.runs {
                index.push_class_runs(c.class, &runs);
            }
        }
        index
    });
    move_subjects(&mut s, &left, joined);
    within_counts(&mut s);
    let mut frequency = vec![0u64; s.predicates.len()];
    for set in &s.sets {
        for &(p, subjects, _) in &set.predicates {
            if let Some(f) = frequency.get_mut(p as usize) {
                *f += subjects;
            }
        }
    }
    s.sets = merge_sets(std::mem::take(&mut s.sets), &frequency);
    s.index();
    (s, classes)
}

/// Moves subjects from their previous sets to their current ones.
fn move_subjects(
    s: &mut Statistics,
    left: &[(usize, Vec<u32>)],
    joined: BTreeMap<Vec<u32>, GatheredSubjects>,
) {
    let mut known: FxHashMap<Vec<u32>, usize> = FxHashMap::default();
    for (at, set) in s.sets.iter().enumerate() {
        let list: Vec<u32> = set.predicates.iter().map(|p| p.0).collect();
        known.entry(list).or_insert(at);
    }
    for (at, classes) in left {
        leave(&mut s.sets[*at], classes);
    }
    for (list, gathered) in joined {
        match known.get(&list) {
            Some(&at) => gathered.join(&mut s.sets[at]),
            None => {
                let mut set = PlannerSet {
                    predicates: list.into_iter().map(|p| (p, 0, 0)).collect(),
                    ..PlannerSet::default()
                };
                gathered.join(&mut set);
                s.sets.push(set);
            }
        }
    }
}

/// Limits the counts of sets to those of each predicate and class, since sets also count edges removed from vertices
/// that kept their lists.
fn within_counts(s: &mut Statistics) {
    let mut sums = vec![0u64; s.predicates.len()];
    for set in &s.sets {
        for &(p, _, edges) in &set.predicates {
            if let Some(sum) = sums.get_mut(p as usize) {
                *sum = sum.saturating_add(edges);
            }
        }
    }
    let most: Vec<f64> = s
        .predicates
        .iter()
        .zip(sums)
        .map(|(p, sum)| (p.edges + p.named_edges) as f64 / sum.max(1) as f64)
        .collect();
    for set in &mut s.sets {
        for (p, subjects, edges) in &mut set.predicates {
            let share = most.get(*p as usize).copied().unwrap_or(0.0);
            if share < 1.0 {
                *subjects = (*subjects as f64 * share) as u64;
                *edges = (*edges as f64 * share) as u64;
            }
        }
        for (class, members) in &mut set.classes {
            *members = (*members).min(s.classes.get(class).copied().unwrap_or(0));
        }
    }
}

/// Removes one subject with these classes from a set. The set's predicates and classes stay, so that it remains a
/// superset.
fn leave(set: &mut PlannerSet, classes: &[u32]) {
    let subjects = set.subjects.max(1);
    for p in &mut set.predicates {
        let mean = p.2 / subjects;
        p.1 = p.1.saturating_sub(1);
        p.2 = p.2.saturating_sub(mean);
    }
    set.subjects = set.subjects.saturating_sub(1);
    for class in classes {
        if let Ok(at) = set.classes.binary_search_by_key(class, |c| c.0) {
            set.classes[at].1 = set.classes[at].1.saturating_sub(1);
        }
    }
}

/// Subjects that are added to a set.
#[derive(Default)]
struct GatheredSubjects {
    subjects: u64,
    classes: BTreeMap<u32, u64>,
    /// By position in the list of predicates.
    edges: Vec<u64>,
}

impl GatheredSubjects {
    /// Adds subjects with the same predicates.
    fn add(&mut self, other: Self) {
        self.subjects += other.subjects;
        for (class, n) in other.classes {
            *self.classes.entry(class).or_default() += n;
        }
        self.edges.resize(other.edges.len(), 0);
        for (sum, n) in self.edges.iter_mut().zip(other.edges) {
            *sum += n;
        }
    }

    fn join(self, set: &mut PlannerSet) {
        set.subjects += self.subjects;
        for (p, edges) in set.predicates.iter_mut().zip(self.edges) {
            p.1 += self.subjects;
            p.2 += edges;
        }
        for (class, n) in self.classes {
            match set.classes.binary_search_by_key(&class, |c| c.0) {
                Ok(at) => set.classes[at].1 += n,
                Err(at) => set.classes.insert(at, (class, n)),
            }
        }
    }
}

/// Entries that a snapshot's [`VertexDelta`] has and the merged segments lack.
#[derive(Debug, Default)]
pub(super) struct DroppedEntries {
    /// `vertex << 32 | predicate`, by direction.
    more: [Vec<u64>; 2],
    /// `[graph, predicate, subject]`
    graphs: Vec<[u32; 3]>,
}

impl DroppedEntries {
    /// O(touched entries).
    pub fn at(snapshot: &Snapshot, base: &Base) -> Self {
        let touched = snapshot.touched();
        let more = [Direction::Out, Direction::In].map(|d| {
            let pairs = touched.more(d).iter();
            pairs
                .filter(|&e| !base.is_key((e >> 32) as u32, e as u32, d))
                .collect()
        });
        let graphs = touched.graph_entries().iter();
        let has = |&[g, p, s]: &[u32; 3]| base.named_segment(p, 0).has(s, g);
        Self {
            more,
            graphs: graphs.filter(|e| !has(e)).collect(),
        }
    }

    /// Removes all of these entries, except those that exist again. `has_edge` (vertex, predicate, direction) and
    /// `in_graph` (graph, predicate, subject) tell which were added by edits since.
    pub fn prune(
        &self,
        touched: &mut VertexDelta,
        sets: BaseSets<'_>,
        has_edge: impl Fn(u32, u32, Direction) -> bool,
        in_graph: impl Fn([u32; 3]) -> bool,
    ) {
        let mut d = [Direction::Out, Direction::In].into_iter();
        let changes = self.more.each_ref().map(|pairs| {
            let direction = d.next().unwrap_or(Direction::Out);
            let gone = |&e: &u64| !has_edge((e >> 32) as u32, e as u32, direction);
            MoreChange {
                inserts: Vec::new(),
                removals: pairs.iter().copied().filter(gone).collect(),
            }
        });
        touched.change(sets, changes);
        let graphs: Vec<[u32; 3]> = self
            .graphs
            .iter()
            .copied()
            .filter(|&e| !in_graph(e))
            .collect();
        touched.change_graphs(&[], &graphs, &[]);
    }
}
