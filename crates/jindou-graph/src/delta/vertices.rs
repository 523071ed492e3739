//! Effects of updates on vertices and graphs: predicates of single vertices that their characteristic sets lack, and
//! named graphs with their subjects.

use super::list::CowVec;
use crate::segment::{CowTree, Finger};
use crate::sets::CharacteristicSets;
use jindou_model::Direction;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A pair as one integer: `vertex << 32 | predicate`.
fn pair(vertex: u32, predicate: u32) -> u64 {
    u64::from(vertex) << 32 | u64::from(predicate)
}

/// The characteristic sets of a base, and the number of vertices that they cover.
#[derive(Clone, Copy, Debug)]
pub struct BaseSets<'a> {
    /// The sets.
    pub sets: CharacteristicSets<'a>,
    /// Vertices of the base: `1..=vertices`.
    pub vertices: u32,
}

impl<'a> BaseSets<'a> {
    /// The predicates of a vertex in the base, ascending.
    #[inline]
    #[must_use]
    pub fn list(self, v: u32, direction: Direction) -> &'a [u32] {
        if v > self.vertices {
            return &[];
        }
        match direction {
            Direction::Out => self.sets.out_predicates(v),
            Direction::In => self.sets.in_predicates(v),
        }
    }
}

/// Effects of updates on vertices and graphs. Entries may be supersets of the current content: an entry that an update
/// added is removed with the last added edge that needs it, but predicates and graphs of the base stay even if all
/// their edges were removed.
#[derive(Clone, Debug, Default)]
pub struct VertexDelta {
    /// By direction: pairs of a vertex and a predicate that its characteristic set lacks.
    more: [CowTree<u64>; 2],
    wide: WideSets,
    /// `[graph, predicate, subject]` of the edges that updates added to named graphs.
    graphs: CowTree<[u32; 3]>,
    /// Named graphs that lost edges, and may therefore be empty.
    shrunk: CowTree<u32>,
}

/// Changes of vertices' predicates in one direction. Pairs are `vertex << 32 | predicate`, ascending.
#[derive(Debug, Default)]
pub struct MoreChange {
    /// Pairs to add.
    pub inserts: Vec<u64>,
    /// Pairs to remove.
    pub removals: Vec<u64>,
}

impl VertexDelta {
    /// The predicates of a vertex in a direction, ascending: those of the base, and those that updates added.
    #[must_use]
    pub fn predicates_of<'a>(
        &self,
        base: BaseSets<'a>,
        v: u32,
        direction: Direction,
    ) -> Cow<'a, [u32]> {
        let list = base.list(v, direction);
        let more = &self.more[direction as usize];
        if more.is_empty() {
            return Cow::Borrowed(list);
        }
        let more = more.range(pair(v, 0), pair(v, u32::MAX));
        if more.is_empty() {
            return Cow::Borrowed(list);
        }
        let mut all = list.to_vec();
        all.extend(more.flatten().map(|&e| e as u32));
        all.sort();
        Cow::Owned(all)
    }

    /// Returns true if updates added the predicate to the vertex.
    #[must_use]
    pub fn has_more(&self, v: u32, p: u32, direction: Direction) -> bool {
        self.more[direction as usize].contains(&pair(v, p))
    }

    /// Vertices with predicates that their characteristic sets lack, ascending.
    #[must_use]
    pub fn widened(&self, direction: Direction) -> Vec<u32> {
        let mut out: Vec<u32> = self.more[direction as usize]
            .iter()
            .map(|e| (e >> 32) as u32)
            .collect();
        out.dedup();
        out
    }

    /// The distinct predicate lists of the vertices in [`Self::widened`] for edges that leave, and the number of
    /// vertices with each.
    pub fn widened_sets(&self) -> impl Iterator<Item = (&[u32], u32)> {
        self.wide.iter()
    }

    /// Pairs, `vertex << 32 | predicate`, to insert for one predicate: those of the `keys` that do not have the
    /// predicate yet. `keys` are the keys of added edges.
    pub fn fresh_keys<'k>(
        &'k self,
        base: BaseSets<'k>,
        keys: &'k [u32],
        p: u32,
        direction: Direction,
    ) -> impl Iterator<Item = u64> + use<'k> {
        keys.iter()
            .copied()
            .filter(move |&v| {
                base.list(v, direction).binary_search(&p).is_err()
                    && !self.has_more(v, p, direction)
            })
            .map(move |v| pair(v, p))
    }

    /// Changes the predicates of vertices. Returns true if a vertex now has a list of predicates for edges that leave
    /// that no vertex had before, so that plans should be made again.
    pub fn change(&mut self, base: BaseSets<'_>, changes: [MoreChange; 2]) -> bool {
        let mut came = false;
        for (direction, change) in [Direction::Out, Direction::In].into_iter().zip(changes) {
            let mut before: Vec<(u32, Cow<'_, [u32]>)> = vec![];
            if direction == Direction::Out {
                let mut vertices: Vec<u32> = change
                    .inserts
                    .iter()
                    .chain(&change.removals)
                    .map(|e| (e >> 32) as u32)
                    .collect();
                vertices.sort();
                vertices.dedup();
                before = vertices
                    .iter()
                    .map(|&v| (v, self.predicates_of(base, v, direction)))
                    .collect();
            }
            self.more[direction as usize].apply(&change.inserts, &change.removals);
            if direction == Direction::Out && !before.is_empty() {
                let mut counts: FxHashMap<Cow<'_, [u32]>, i64> = FxHashMap::default();
                for (v, old) in before {
                    if let Cow::Owned(_) = old {
                        *counts.entry(old).or_default() -= 1;
                    }
                    let new = self.predicates_of(base, v, direction);
                    if let Cow::Owned(_) = new {
                        *counts.entry(new).or_default() += 1;
                    }
                }
                for (list, by) in counts {
                    came |= self.wide.count(&list, by);
                }
            }
        }
        came
    }

    /// Inserts and removes triples `[graph, predicate, subject]`, and adds graphs that lost edges. All slices are
    /// ascending.
    pub fn change_graphs(&mut self, inserts: &[[u32; 3]], removals: &[[u32; 3]], shrunk: &[u32]) {
        self.graphs.apply(inserts, removals);
        self.shrunk.apply(shrunk, &[]);
    }

    /// Removes what is known about the vertices in runs of ids `[first, end)`, ascending, none of which has an edge or
    /// is a graph's name. O(log edits) a run, and O(log edits) an entry.
    pub fn forget(&mut self, base: BaseSets<'_>, runs: &[[u32; 2]]) {
        let changes = self.more.each_ref().map(|more| {
            let entries = |r: &[u32; 2]| more.range(pair(r[0], 0), pair(r[1], 0)).flatten();
            let entries = runs.iter().flat_map(|r| {
                let end = r[1];
                entries(r)
                    .copied()
                    .filter(move |&e| ((e >> 32) as u32) < end)
            });
            MoreChange {
                inserts: Vec::new(),
                removals: entries.collect(),
            }
        });
        self.change(base, changes);
        let mut graphs: Vec<[u32; 3]> = Vec::new();
        let mut shrunk: Vec<u32> = Vec::new();
        for &[first, end] in runs {
            let entries = self.graphs.range([first, 0, 0], [end, 0, 0]).flatten();
            graphs.extend(entries.filter(|e| e[0] < end));
            let graphs = self.shrunk.range(first, end).flatten();
            shrunk.extend(graphs.filter(|&&g| g < end));
        }
        self.graphs.apply(&[], &graphs);
        self.shrunk.apply(&[], &shrunk);
    }

    /// Returns true if edits added edges to the graph.
    #[must_use]
    pub fn has_graph(&self, graph: u32) -> bool {
        let first = self.graphs.first_from(&[graph, 0, 0]);
        first.is_some_and(|f| f[0] == graph)
    }

    /// Returns true if updates removed edges of the graph, so that it may be empty.
    #[must_use]
    pub fn may_be_empty(&self, graph: u32) -> bool {
        self.shrunk.contains(&graph)
    }

    /// Graphs from which updates removed edges, so that they may be empty; ascending.
    pub fn shrunk(&self) -> impl Iterator<Item = u32> + '_ {
        self.shrunk.iter()
    }

    /// Graphs to which updates added edges, ascending. At most O(log edits) per graph.
    pub fn graphs(&self) -> impl Iterator<Item = u32> + '_ {
        let mut at = Some([0; 3]);
        let mut finger = Finger::default();
        std::iter::from_fn(move || {
            let mut from = finger.range(&self.graphs, at?, [u32::MAX; 3]);
            let graph = from.next()?.first()?[0];
            at = graph.checked_add(1).map(|g| [g, 0, 0]);
            Some(graph)
        })
    }

    /// Predicates of edges that updates added to a graph, ascending. O(log edits) per predicate.
    pub fn graph_predicates(&self, graph: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = Some([graph, 0, 0]);
        std::iter::from_fn(move || {
            let [g, p, _] = self.graphs.first_from(&at?)?;
            at = p.checked_add(1).map(|p| [graph, p, 0]);
            (g == graph).then_some(p)
        })
    }

    /// Subjects of the edges of one predicate that updates added to a graph, ascending.
    pub fn graph_subjects(&self, graph: u32, predicate: u32) -> impl Iterator<Item = u32> + '_ {
        let all = self
            .graphs
            .range([graph, predicate, 0], [graph, predicate, u32::MAX]);
        all.flatten().map(|e| e[2])
    }

    /// Pairs of a vertex and a predicate in one direction that its characteristic set lacks: `vertex << 32 |
    /// predicate`, ascending.
    #[must_use]
    pub fn more(&self, direction: Direction) -> &CowTree<u64> {
        &self.more[direction as usize]
    }

    /// `[graph, predicate, subject]` of the edges that updates added to named graphs, ascending.
    #[must_use]
    pub fn graph_entries(&self) -> &CowTree<[u32; 3]> {
        &self.graphs
    }

    /// Restores the delta from a file. All lists are ascending; `wide` has the values of [`Self::widened_sets`]. The
    /// caller has checked the ids.
    #[must_use]
    pub fn from_parts<'a>(
        more: [&[u64]; 2],
        wide: impl Iterator<Item = (&'a [u32], u32)>,
        graphs: &[[u32; 3]],
        shrunk: &[u32],
    ) -> Self {
        let mut out = Self::default();
        for (tree, list) in out.more.iter_mut().zip(more) {
            tree.apply(list, &[]);
        }
        for (list, n) in wide {
            out.wide.count(list, i64::from(n));
        }
        out.graphs.apply(graphs, &[]);
        out.shrunk.apply(shrunk, &[]);
        out
    }

    /// Bytes on the heap, including data that other snapshots share.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let more: usize = self.more.iter().map(CowTree::bytes).sum();
        more + self.graphs.bytes() + self.shrunk.bytes() + self.wide.bytes()
    }
}

/// The distinct out-lists of the vertices in [`VertexDelta::widened`], with counts, so that planning need not read each
/// vertex.
#[derive(Clone, Debug, Default)]
struct WideSets {
    lists: CowVec<Arc<[u32]>>,
    /// Hash of a list, its index in `lists`, and the number of vertices that have it.
    counts: CowTree<(u64, u32, u32)>,
}

impl WideSets {
    /// Adds `by` to the number of vertices with a list. Returns true if the number was 0 and is not now.
    fn count(&mut self, list: &[u32], by: i64) -> bool {
        if by == 0 {
            return false;
        }
        let mut hasher = rustc_hash::FxHasher::default();
        list.hash(&mut hasher);
        let hash = hasher.finish();
        let known = self
            .counts
            .range((hash, 0, 0), (hash, u32::MAX, u32::MAX))
            .flatten()
            .copied()
            .find(|c| self.lists.get(c.1 as usize).is_some_and(|l| **l == *list));
        match known {
            Some(old) => {
                let count = (i64::from(old.2) + by).clamp(0, i64::from(u32::MAX)) as u32;
                let new = (old.0, old.1, count);
                if new != old {
                    self.counts.apply(&[new], &[old]);
                }
                // A list without vertices stays in `lists`, so that adding and removing a list repeatedly does not grow
                // the array.
                old.2 == 0 && count > 0
            }
            None => {
                let at = self.lists.len() as u32;
                self.lists.push(list.into());
                self.counts.apply(&[(hash, at, by.max(0) as u32)], &[]);
                by > 0
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = (&[u32], u32)> {
        let live = self.counts.iter().filter(|c| c.2 > 0);
        live.filter_map(|c| Some((&**self.lists.get(c.1 as usize)?, c.2)))
    }

    fn bytes(&self) -> usize {
        let lists: usize = self.lists.iter().map(|l| 40 + l.len() * 4).sum();
        lists + self.counts.bytes()
    }
}
