//! Facts about a merged base that its segments do not hold: counts, classes, characteristic sets for the planner, and
//! the predicates of single vertices and the subjects of graphs that were removed.

use crate::base::Base;
use crate::directory::IndexBuilder;
use crate::snapshot::Snapshot;
use jindou_graph::delta::{BaseSets, MoreChange, VertexDelta};
use jindou_graph::segment::{EdgeView, GraphScope, NO_KEY};
use jindou_graph::statistics::{PlannerSet, PredicateStatistics, Statistics, merge_sets};
use jindou_model::{Direction, term};
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

    /// Returns true if the vertex has an edge of the predicate, in any graph.
    pub(crate) fn is_key(&self, v: u32, p: u32, direction: Direction) -> bool {
        let view = self.view(p, direction);
        view.default.finder.find(v) != NO_KEY || view.named.finder.find(v) != NO_KEY
    }
}

/// Computes the statistics of `base`, whose segments are written, from the previous ones and `snapshot`; `held` are the
/// predicates that were written. Returns the classes' intervals if `rdf:type` is among them.
pub(super) fn refresh(snapshot: &Snapshot, held: &[u32], base: &mut Base) -> Option<IndexBuilder> {
    let mut s = std::mem::take(&mut base.statistics);
    for p in s.predicates.len() as u32..snapshot.predicate_count() {
        let vertex = snapshot.vertex_of(jindou_model::PredicateId(p)).0;
        s.predicates.push(PredicateStatistics {
            vertex,
            ..PredicateStatistics::default()
        });
        base.predicate_of.insert(vertex, p);
    }
    for &p in held {
        let set = base.set_of(p);
        let record = |named: usize, direction: usize| {
            let records = set.files[named][direction].records();
            records.get(p as usize).copied().unwrap_or_default()
        };
        let (edges, named_edges) = (record(0, 0).edges, record(1, 0).edges);
        let kind = usize::from(edges == 0);
        if let Some(slot) = s.predicates.get_mut(p as usize) {
            *slot = PredicateStatistics {
                vertex: slot.vertex,
                edges,
                named_edges,
                subjects: record(kind, 0).keys,
                objects: record(kind, 1).keys,
                max_out: record(kind, 0).max_degree,
                max_in: record(kind, 1).max_degree,
            };
        }
    }
    s.quads = s.predicates.iter().map(|p| p.edges + p.named_edges).sum();
    s.rdf_type = s.rdf_type.or_else(|| {
        let v = snapshot.lookup(&term::rdf_type())?;
        base.predicate_of.get(&v.0).copied()
    });
    let typed = s.rdf_type.filter(|p| held.contains(p));
    let classes = typed.map(|p| {
        let mut index = IndexBuilder::default();
        s.classes.clear();
        let view = base.view(p, Direction::In);
        let (mut ids, mut scratch) = (Vec::new(), Vec::new());
        view.candidate_keys(GraphScope::Union, &mut ids);
        for class in ids {
            let members = view.read(class, GraphScope::Union, &mut scratch);
            if !members.is_empty() {
                s.classes.insert(class, members.len() as u64);
                index.push_class(class, members);
            }
        }
        index
    });
    planner_sets(snapshot, base, &mut s);
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
    base.statistics = s;
    classes
}

/// Moves vertices whose classes or predicates changed since the last merge from their previous sets to their current
/// ones, so that "no set has both" remains a proof. O(such vertices × their predicates).
fn planner_sets(snapshot: &Snapshot, base: &Base, s: &mut Statistics) {
    let old = snapshot.base();
    let before = &old.merged.touched;
    let sets = snapshot.sets_of_base();
    let mut moved: Vec<u32> = Vec::new();
    if let Some(patch) = s.rdf_type.and_then(|p| snapshot.patch(p, Direction::Out)) {
        moved.extend(patch.keys());
    }
    let more = snapshot.touched().more(Direction::Out);
    let more = more.difference(before.more(Direction::Out));
    moved.extend(more.iter().map(|e| (e >> 32) as u32));
    moved.sort_unstable();
    moved.dedup();
    if moved.is_empty() {
        return;
    }
    let mut known: FxHashMap<Vec<u32>, usize> = FxHashMap::default();
    for (at, set) in s.sets.iter().enumerate() {
        let list: Vec<u32> = set.predicates.iter().map(|p| p.0).collect();
        known.entry(list).or_insert(at);
    }
    let mut scratch = Vec::new();
    let mut classes_of = |base: &Base, v: u32| -> Vec<u32> {
        let view = s.rdf_type.map(|p| base.view(p, Direction::Out));
        view.map_or(Vec::new(), |view| {
            view.read(v, GraphScope::Union, &mut scratch).to_vec()
        })
    };
    let mut fresh: FxHashMap<Vec<u32>, GatheredSubjects> = FxHashMap::default();
    let mut left: Vec<(usize, Vec<u32>)> = Vec::new();
    for &v in &moved {
        let was = before.predicates_of(sets, v, Direction::Out);
        if let Some(&at) = known.get(&*was) {
            left.push((at, classes_of(old, v)));
        }
        let list = snapshot.predicates_of(v, Direction::Out);
        if list.is_empty() {
            continue;
        }
        let into = fresh.entry(list.to_vec()).or_default();
        into.subjects += 1;
        for class in classes_of(base, v) {
            *into.classes.entry(class).or_default() += 1;
        }
        into.edges.resize(list.len(), 0);
        for (sum, &p) in into.edges.iter_mut().zip(list.iter()) {
            let view = base.view(p, Direction::Out);
            *sum += view.default_degree(v) + view.named_degree(v);
        }
    }
    for (at, classes) in left {
        leave(&mut s.sets[at], &classes);
    }
    for (list, gathered) in fresh {
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
