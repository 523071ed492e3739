//! Effects of edits on index vertices: predicates of single vertices beyond their characteristic sets, graphs and their
//! subjects.

use super::list::CowVec;
use crate::segment::{CowTree, Finger};
use crate::sets::CharacteristicSets;
use jindou_model::Direction;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// `vertex << 32 | predicate`.
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

/// Effects of edits on index vertices. All of it is a superset of the actual state: what an edge added is removed with
/// the last edge that an update added, but the base's part stays.
#[derive(Clone, Debug, Default)]
pub struct VertexDelta {
    /// By direction: predicates that a vertex has beyond its characteristic set.
    more: [CowTree<u64>; 2],
    wide: WideSets,
    /// `[graph, predicate, subject]` of added edges of named graphs.
    graphs: CowTree<[u32; 3]>,
    /// Named graphs that lost edges.
    shrunk: CowTree<u32>,
}

/// Changes of vertices' predicates in one direction: `vertex << 32 | predicate`, ascending.
#[derive(Debug, Default)]
pub struct MoreChange {
    /// Pairs to add.
    pub inserts: Vec<u64>,
    /// Pairs to remove.
    pub removals: Vec<u64>,
}

impl VertexDelta {
    /// The predicates of a vertex, ascending.
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

    /// Returns true if edits gave the vertex the predicate.
    #[must_use]
    pub fn has_more(&self, v: u32, p: u32, direction: Direction) -> bool {
        self.more[direction as usize].contains(&pair(v, p))
    }

    /// Vertices with predicates beyond their sets, ascending.
    #[must_use]
    pub fn widened(&self, direction: Direction) -> Vec<u32> {
        let mut out: Vec<u32> = self.more[direction as usize]
            .iter()
            .map(|e| (e >> 32) as u32)
            .collect();
        out.dedup();
        out
    }

    /// The distinct out-lists of those vertices, and the number of vertices with each.
    pub fn widened_sets(&self) -> impl Iterator<Item = (&[u32], u32)> {
        self.wide.iter()
    }

    /// Pairs, `vertex << 32 | predicate`, to add for one predicate: those keys with new edges that lack the predicate
    /// so far.
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

    /// Changes the predicates of vertices. Returns true if a set was added that no vertex had before.
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

    /// Adds and removes `[graph, predicate, subject]`, ascending, and graphs that lost edges.
    pub fn change_graphs(&mut self, inserts: &[[u32; 3]], removals: &[[u32; 3]], shrunk: &[u32]) {
        self.graphs.apply(inserts, removals);
        self.shrunk.apply(shrunk, &[]);
    }

    /// Returns true if edits added edges to the graph.
    #[must_use]
    pub fn has_graph(&self, graph: u32) -> bool {
        let first = self.graphs.first_from(&[graph, 0, 0]);
        first.is_some_and(|f| f[0] == graph)
    }

    /// Returns true if the graph may have lost its last edge.
    #[must_use]
    pub fn may_be_empty(&self, graph: u32) -> bool {
        self.shrunk.contains(&graph)
    }

    /// Graphs that may have lost their last edge, ascending.
    pub fn shrunk(&self) -> impl Iterator<Item = u32> + '_ {
        self.shrunk.iter()
    }

    /// Graphs that edits added edges to, ascending. O(log edits) each, and less where they have few edges.
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

    /// Predicates of edges that edits added to a graph, ascending. O(log edits) each.
    pub fn graph_predicates(&self, graph: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = Some([graph, 0, 0]);
        std::iter::from_fn(move || {
            let [g, p, _] = self.graphs.first_from(&at?)?;
            at = p.checked_add(1).map(|p| [graph, p, 0]);
            (g == graph).then_some(p)
        })
    }

    /// Subjects of such edges, ascending.
    pub fn graph_subjects(&self, graph: u32, predicate: u32) -> impl Iterator<Item = u32> + '_ {
        let all = self
            .graphs
            .range([graph, predicate, 0], [graph, predicate, u32::MAX]);
        all.flatten().map(|e| e[2])
    }

    /// The predicates that a vertex has beyond its set, all of one direction: `vertex << 32 | predicate`, ascending.
    #[must_use]
    pub fn more(&self, direction: Direction) -> &CowTree<u64> {
        &self.more[direction as usize]
    }

    /// `[graph, predicate, subject]` of edges that edits added to named graphs, ascending.
    #[must_use]
    pub fn graph_entries(&self) -> &CowTree<[u32; 3]> {
        &self.graphs
    }

    /// Restores the delta from a file: all lists ascending, and [`Self::widened_sets`]. The caller has checked the ids.
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

    /// Bytes on the heap, including what other snapshots share.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let more: usize = self.more.iter().map(CowTree::bytes).sum();
        more + self.graphs.bytes() + self.shrunk.bytes() + self.wide.bytes()
    }
}

/// The distinct predicate lists of widened vertices with counts, so that planning never walks the vertices.
#[derive(Clone, Debug, Default)]
struct WideSets {
    lists: CowVec<Arc<[u32]>>,
    /// Hash, number in `lists`, vertices.
    counts: CowTree<(u64, u32, u32)>,
}

impl WideSets {
    /// Changes the count of a list. Returns true if it was not counted before.
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
                // A list is kept, so that one that is repeatedly added and removed does not take room each time.
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
