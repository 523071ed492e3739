//! Data about a merged base that its segments do not contain: counts, classes, the planner's characteristic sets, and
//! entries of vertices and graphs that lost all their edges.
//!
//! For a sharded store, the data is first gathered from each shard's segments and then combined for the whole store.

use crate::base::Base;
use crate::delta::MergeCommitted;
use crate::directory::{IndexBuilder, class_runs};
use crate::snapshot::Snapshot;
use jindou_graph::delta::{BaseSets, MoreChange, VertexDelta, push_number};
use jindou_graph::segment::{EdgeView, GraphScope, NO_KEY};
use jindou_graph::statistics::{
    MAX_PLANNER_SETS, PlannerSet, PredicateStatistics, Statistics, merge_sets,
};
use jindou_model::{Direction, FIRST_TAIL_ID, PredicateId, Result};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

impl Base {
    fn view(&self, p: u32, direction: Direction) -> EdgeView<'_> {
        let (default, named) = self.segments(p, direction);
        EdgeView::new(default, named, None)
    }

    /// Number of predicates of the load, whose dense ids are the smallest ones.
    pub(crate) fn loaded_predicates(&self) -> u32 {
        let loaded = self.sets.first();
        loaded.map_or(0, |set| set.files[0][0].records().len() as u32)
    }

    /// True if a merge has written the predicate's edges.
    pub(crate) fn has_merged_edges(&self, p: u32) -> bool {
        self.set_of(p).generation > 0
    }

    /// Number of edges of a predicate in all graphs, and on all shards.
    pub(crate) fn edge_count(&self, p: u32) -> u64 {
        let known = self.statistics.predicates.get(p as usize);
        known.map_or(0, |s| s.edges + s.named_edges)
    }

    /// True if a named graph may have an edge of the predicate from the subject that a merge added.
    pub(crate) fn has_merged(&self, graph: u32, p: u32, subject: u32) -> bool {
        self.has_merged_edges(p) && self.named_segment(p, 0).has(subject, graph)
    }

    /// True if vertex `v` has an edge of the predicate in any graph.
    pub(crate) fn is_key(&self, v: u32, p: u32, direction: Direction) -> bool {
        let view = self.view(p, direction);
        view.default.finder.find(v) != NO_KEY || view.named.finder.find(v) != NO_KEY
    }
}

/// Counts of one predicate's edges in one base: `[default graph, named graphs]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EdgeCounts {
    pub edges: [u64; 2],
    /// Indexed by `[named][direction]`.
    pub keys: [[u32; 2]; 2],
    pub longest: [[u32; 2]; 2],
}

/// A class in one base, with its members.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CountedClass {
    pub class: u32,
    /// Number of members; 0 if the class has lost all.
    pub members: u64,
    /// Members as intervals `[start, end)`, ascending and not adjacent; `None` if they are too many to be stored.
    pub runs: Option<Vec<[u32; 2]>>,
}

/// Differences between the new and the old segments of one base: of the whole store, or of the vertices that a shard
/// owns. A class belongs to the shard that has its incoming edges; the edges of a subject are all on one shard.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MergeStatistics {
    /// Counts of each predicate that was written.
    pub edges: Vec<EdgeCounts>,
    /// The classes whose members changed, ascending.
    pub classes: Vec<CountedClass>,
    /// For each of the planner's sets that subjects left, by its number: these subjects, with their classes.
    pub left: BTreeMap<u32, PlannerSet>,
    /// Subjects that joined a set of predicates; ascending by these predicates.
    pub joined: Vec<PlannerSet>,
    /// Ids of new terms of a shard that had edges and have none now, as runs `[first, end)`.
    pub idle: Vec<[u32; 2]>,
}

/// Gathers the statistics of one base. `held` are the predicates that were written. O(members of changed classes, and
/// vertices whose predicates or classes changed).
pub(super) fn gather(
    snapshot: &Snapshot,
    held: &[u32],
    rdf_type: Option<u32>,
    [old, new]: [&Base; 2],
) -> MergeStatistics {
    let mut gathered = MergeStatistics {
        edges: held.iter().map(|&p| count_edges(new, p)).collect(),
        ..MergeStatistics::default()
    };
    if let Some(p) = rdf_type
        && let Some(patch) = snapshot.patch(p, Direction::In)
    {
        let view = new.view(p, Direction::In);
        let mut scratch = Vec::new();
        for class in patch.keys() {
            let Some(key) = new.key_of(class) else {
                continue;
            };
            let members = view.read(key, GraphScope::Union, &mut scratch);
            gathered.classes.push(CountedClass {
                class,
                members: members.len() as u64,
                runs: class_runs(members),
            });
        }
    }
    gather_subjects(snapshot, rdf_type, [old, new], &mut gathered);
    if new.shard.is_some() {
        gathered.idle = ids_without_edges(snapshot, new);
    }
    gathered
}

/// The new terms of a shard that have entries in [`VertexDelta`], but no edges in the shard's merged segments.
/// O(entries of new terms).
fn ids_without_edges(snapshot: &Snapshot, new: &Base) -> Vec<[u32; 2]> {
    let mut used = vec![false; snapshot.tail().len() as usize];
    let mut idle = used.clone();
    for direction in [Direction::Out, Direction::In] {
        let more = snapshot.touched().more(direction);
        let entries = more.range(u64::from(FIRST_TAIL_ID) << 32, u64::MAX);
        for &entry in entries.flatten() {
            let (v, p) = ((entry >> 32) as u32, entry as u32);
            let n = (v - FIRST_TAIL_ID) as usize;
            let (Some(key), Some(used)) = (new.key_of(v), used.get_mut(n)) else {
                continue;
            };
            *used |= new.is_key(key, p, direction);
            idle[n] = true;
        }
    }
    let idle = (FIRST_TAIL_ID..).zip(idle.into_iter().zip(used));
    let mut runs: Vec<[u32; 2]> = Vec::new();
    for (v, _) in idle.filter(|(_, (had, has))| *had && !has) {
        push_number(&mut runs, v);
    }
    runs
}

fn count_edges(base: &Base, p: u32) -> EdgeCounts {
    let set = base.set_of(p);
    let mut counts = EdgeCounts::default();
    for (named, direction) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let records = set.files[named][direction].records();
        let record = records.get(p as usize).copied().unwrap_or_default();
        counts.edges[named] = record.edges;
        counts.keys[named][direction] = record.keys;
        counts.longest[named][direction] = record.max_degree;
    }
    counts
}

/// Finds the sets that vertices left and joined, for vertices whose classes or predicates changed since the last merge.
/// All must be counted, so that the planner may conclude from the sets that no subject has two given predicates. O(such
/// vertices × their predicates).
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
    let known = numbers_of(&old.statistics.sets);
    let mut scratch = Vec::new();
    let mut count_in = |set: &mut PlannerSet, base: &Base, v: u32| {
        set.subjects += 1;
        if let (Some(p), Some(key)) = (rdf_type, base.key_of(v)) {
            let view = base.view(p, Direction::Out);
            for &class in view.read(key, GraphScope::Union, &mut scratch) {
                add_class(set, class, 1);
            }
        }
    };
    let mut joined: BTreeMap<Vec<u32>, PlannerSet> = BTreeMap::new();
    for &v in &moved {
        let was = before.predicates_of(sets, v, Direction::Out);
        if let Some(&number) = known.get(&*was) {
            count_in(to.left.entry(number).or_default(), old, v);
        }
        let list = snapshot.predicates_of(v, Direction::Out);
        let Some(key) = new.key_of(v).filter(|_| !list.is_empty()) else {
            continue;
        };
        let into = joined.entry(list.to_vec()).or_insert_with(|| PlannerSet {
            predicates: list.iter().map(|&p| (p, 0, 0)).collect(),
            ..PlannerSet::default()
        });
        count_in(into, new, v);
        for (p, subjects, edges) in &mut into.predicates {
            let view = new.view(*p, Direction::Out);
            *subjects += 1;
            *edges += view.default_degree(key) + view.named_degree(key);
        }
    }
    to.joined = joined.into_values().collect();
}

/// Number of each of the planner's sets, by its predicates.
fn numbers_of(sets: &[PlannerSet]) -> FxHashMap<Vec<u32>, u32> {
    let mut known = FxHashMap::default();
    for (number, set) in (0..).zip(sets) {
        known.entry(predicates_of(set)).or_insert(number);
    }
    known
}

fn predicates_of(set: &PlannerSet) -> Vec<u32> {
    set.predicates.iter().map(|p| p.0).collect()
}

fn add_class(set: &mut PlannerSet, class: u32, members: u64) {
    match set.classes.binary_search_by_key(&class, |c| c.0) {
        Ok(at) => set.classes[at].1 += members,
        Err(at) => set.classes.insert(at, (class, members)),
    }
}

/// Adds the subjects of `more`, a set with the same predicates.
fn add_subjects(set: &mut PlannerSet, more: &PlannerSet) {
    set.subjects += more.subjects;
    for (p, more) in set.predicates.iter_mut().zip(&more.predicates) {
        p.1 += more.1;
        p.2 += more.2;
    }
    for &(class, members) in &more.classes {
        add_class(set, class, members);
    }
}

/// The statistics of the merged store: the previous ones, updated by those gathered from each base. Also returns the
/// classes' intervals if `rdf:type` was written.
pub(super) fn combine(
    snapshot: &Snapshot,
    held: &[u32],
    rdf_type: Option<u32>,
    parts: Vec<MergeStatistics>,
) -> (Statistics, Option<IndexBuilder>) {
    let old = snapshot.base();
    let mut s = old.statistics.clone();
    for p in s.predicates.len() as u32..snapshot.predicate_count() {
        s.predicates.push(PredicateStatistics {
            vertex: snapshot.vertex_of(PredicateId(p)).0,
            ..PredicateStatistics::default()
        });
    }
    for (i, &p) in held.iter().enumerate() {
        let all = parts.iter().filter_map(|part| part.edges.get(i));
        if let Some(slot) = s.predicates.get_mut(p as usize) {
            *slot = sum_edges(slot.vertex, all);
        }
    }
    s.quads = s.predicates.iter().map(|p| p.edges + p.named_edges).sum();
    s.rdf_type = rdf_type;
    let mut counted: BTreeMap<u32, CountedClass> = BTreeMap::new();
    let mut left: BTreeMap<u32, PlannerSet> = BTreeMap::new();
    let mut joined: BTreeMap<Vec<u32>, PlannerSet> = BTreeMap::new();
    for part in parts {
        counted.extend(part.classes.into_iter().map(|c| (c.class, c)));
        for (number, set) in &part.left {
            add_subjects(left.entry(*number).or_default(), set);
        }
        for set in part.joined {
            match joined.entry(predicates_of(&set)) {
                Entry::Occupied(mut known) => add_subjects(known.get_mut(), &set),
                Entry::Vacant(new) => {
                    new.insert(set);
                }
            }
        }
    }
    let is_written = rdf_type.is_some_and(|p| held.contains(&p));
    let classes = is_written.then(|| combine_classes(&mut s, old, &counted));
    move_subjects(&mut s, &left, joined);
    within_counts(&mut s);
    let frequency = frequency_of(&s.sets, s.predicates.len());
    s.sets = merge_sets(std::mem::take(&mut s.sets), &frequency, MAX_PLANNER_SETS);
    s.index();
    (s, classes)
}

/// The statistics of a predicate, summed over its counts in each base.
fn sum_edges<'a>(
    vertex: u32,
    all: impl Iterator<Item = &'a EdgeCounts> + Clone,
) -> PredicateStatistics {
    let edges = |named: usize| all.clone().map(|c| c.edges[named]).sum::<u64>();
    let kind = usize::from(edges(0) == 0);
    let keys = |d: usize| {
        let keys = all.clone().map(|c| c.keys[kind][d]);
        keys.fold(0u32, u32::saturating_add)
    };
    let longest = |d: usize| all.clone().map(|c| c.longest[kind][d]).max().unwrap_or(0);
    PredicateStatistics {
        vertex,
        edges: edges(0),
        named_edges: edges(1),
        subjects: keys(0),
        objects: keys(1),
        max_out: longest(0),
        max_in: longest(1),
    }
}

/// Updates the counts and intervals of the classes that were counted again; the other classes keep those of the old
/// base.
fn combine_classes(
    s: &mut Statistics,
    old: &Base,
    counted: &BTreeMap<u32, CountedClass>,
) -> IndexBuilder {
    let mut ids: Vec<u32> = s.classes.keys().chain(counted.keys()).copied().collect();
    ids.sort_unstable();
    ids.dedup();
    let mut index = IndexBuilder::default();
    for class in ids {
        let runs = match counted.get(&class) {
            None => old.class_intervals(class),
            Some(counted) if counted.members == 0 => {
                s.classes.remove(&class);
                None
            }
            Some(counted) => {
                s.classes.insert(class, counted.members);
                counted.runs.as_deref()
            }
        };
        if let Some(runs) = runs {
            index.push_class_runs(class, runs);
        }
    }
    index
}

/// Number of subjects of each predicate.
pub(super) fn frequency_of(sets: &[PlannerSet], predicates: usize) -> Vec<u64> {
    let mut frequency = vec![0u64; predicates];
    for &(p, subjects, _) in sets.iter().flat_map(|set| &set.predicates) {
        if let Some(f) = frequency.get_mut(p as usize) {
            *f += subjects;
        }
    }
    frequency
}

/// Moves subjects from their previous sets to their current ones.
fn move_subjects(
    s: &mut Statistics,
    left: &BTreeMap<u32, PlannerSet>,
    joined: BTreeMap<Vec<u32>, PlannerSet>,
) {
    let known = numbers_of(&s.sets);
    for (&number, gone) in left {
        if let Some(set) = s.sets.get_mut(number as usize) {
            remove_subjects(set, gone);
        }
    }
    for (list, set) in joined {
        match known.get(&list).and_then(|&n| s.sets.get_mut(n as usize)) {
            Some(known) => add_subjects(known, &set),
            None => s.sets.push(set),
        }
    }
}

/// Limits the counts of sets to those of each predicate and class. Sets also count edges that were removed from
/// vertices whose lists of predicates did not change.
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

/// Removes subjects and their classes from a set. The set's predicates and classes stay, so that it remains a superset.
fn remove_subjects(set: &mut PlannerSet, gone: &PlannerSet) {
    let fewer = gone.subjects.min(set.subjects);
    let all = u128::from(set.subjects.max(1));
    for (_, subjects, edges) in &mut set.predicates {
        *subjects = subjects.saturating_sub(fewer);
        *edges -= (u128::from(*edges) * u128::from(fewer) / all) as u64;
    }
    set.subjects -= fewer;
    for (class, members) in &gone.classes {
        if let Ok(at) = set.classes.binary_search_by_key(class, |c| c.0) {
            set.classes[at].1 = set.classes[at].1.saturating_sub(*members);
        }
    }
}

/// The entries of terms that have no edges in any shard.
pub(super) fn dropped_by(touched: &VertexDelta, parts: &[MergeStatistics]) -> DroppedEntries {
    DroppedEntries::of_terms_without_edges(touched, &together(parts.iter().map(|part| &*part.idle)))
}

/// Runs of several shards, merged in ascending order.
fn together<'a>(parts: impl Iterator<Item = &'a [[u32; 2]]>) -> Vec<[u32; 2]> {
    let mut all: Vec<[u32; 2]> = parts.flatten().copied().collect();
    all.sort_unstable();
    all
}

impl Snapshot {
    /// Removes the entries of new terms that have no edges in the merged base and gained none since then. Called when a
    /// merge is committed; this snapshot must use the merged base.
    ///
    /// # Errors
    /// [`Error::Damaged`](jindou_model::Error::Damaged) for damaged statistics.
    pub(crate) fn drop_terms_without_edges(&mut self, committed: &MergeCommitted) -> Result<()> {
        let parts = committed.shards.iter();
        let parts = parts.map(|shard| MergeStatistics::idle_of(&shard.statistics));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let idle = together(parts.iter().map(Vec::as_slice));
        let gone = DroppedEntries::of_terms_without_edges(self.touched(), &idle);
        let mut touched = self.touched().clone();
        gone.prune_of(self, &mut touched);
        *self.touched_mut() = touched;
        Ok(())
    }
}

/// Entries of a snapshot's [`VertexDelta`] for which the merged segments have no edges.
#[derive(Debug, Default)]
pub(super) struct DroppedEntries {
    /// Entries `vertex << 32 | predicate`, one list per direction.
    more: [Vec<u64>; 2],
    /// Entries `[graph, predicate, subject]`.
    graphs: Vec<[u32; 3]>,
}

impl DroppedEntries {
    /// Finds the entries of a snapshot for which `base` has no edges. O(entries).
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

    /// The entries of the terms in runs `[first, end)` of a sharded store, which have lost all edges. O(entries of
    /// these terms and of named graphs).
    pub fn of_terms_without_edges(touched: &VertexDelta, idle: &[[u32; 2]]) -> Self {
        let more = [Direction::Out, Direction::In].map(|d| {
            let more = touched.more(d);
            let range =
                |r: &[u32; 2]| more.range(u64::from(r[0]) << 32, (u64::from(r[1]) << 32) - 1);
            idle.iter()
                .flat_map(|r| range(r).flatten())
                .copied()
                .collect()
        });
        let is_idle = |v: u32| {
            let after = idle.partition_point(|r| r[1] <= v);
            idle.get(after).is_some_and(|r| r[0] <= v)
        };
        let graphs = touched.graph_entries().iter();
        Self {
            more,
            graphs: match idle.is_empty() {
                true => Vec::new(),
                false => graphs.filter(|e| is_idle(e[2])).collect(),
            },
        }
    }

    /// As [`Self::prune`], for a snapshot over the base that lacks these entries.
    pub fn prune_of(&self, snapshot: &Snapshot, touched: &mut VertexDelta) {
        let patch = |p: u32, d: Direction| snapshot.patch(p, d);
        self.prune(
            touched,
            snapshot.sets_of_base(),
            |v, p, d| patch(p, d).is_some_and(|patch| patch.adds_to(v)),
            |[g, p, s]| {
                patch(p, Direction::Out).is_some_and(|patch| {
                    let (added, _) = patch.named_edits_of(s);
                    added.flatten().any(|e| e[2] == g)
                })
            },
        );
    }

    /// Removes these entries, except those for which an edit since then has added edges, according to `has_edge`
    /// (vertex, predicate, direction) and `in_graph` (graph, predicate, subject).
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
