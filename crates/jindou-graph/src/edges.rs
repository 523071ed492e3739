//! The edges of one predicate in one direction as a query sees them.

use crate::segment::{EdgeView, GraphScope, Patch, PatchFinger, Segment};
use crate::shard::ShardEdges;
use jindou_model::DEFAULT_GRAPH;
use std::sync::Arc;

/// The edges of one predicate in one direction: all in this process, or spread over several shards. Loops over rows
/// match on the variant once per step; lookups that happen once per step, or seldom, are methods of this type. Keys are
/// ids.
#[derive(Clone, Copy, Debug)]
pub enum Edges<'a> {
    /// All edges are in this view.
    Here(EdgeView<'a>),
    /// The edges are spread over shards; this shard has some of them.
    Sharded(ShardEdges<'a>),
}

impl<'a> From<EdgeView<'a>> for Edges<'a> {
    fn from(view: EdgeView<'a>) -> Self {
        Self::Here(view)
    }
}

/// Calls the same method of either variant.
macro_rules! either {
    ($self:ident.$method:ident($($argument:ident),*)) => {
        match $self {
            Self::Here(view) => view.$method($($argument),*),
            Self::Sharded(edges) => edges.$method($($argument),*),
        }
    };
}

impl<'a> Edges<'a> {
    /// The view of the edges, if it has all of them.
    #[inline]
    #[must_use]
    pub fn here(&self) -> Option<&EdgeView<'a>> {
        match self {
            Self::Here(view) => Some(view),
            Self::Sharded(_) => None,
        }
    }

    /// The edges on several shards.
    #[inline]
    #[must_use]
    pub fn sharded(&self) -> Option<&ShardEdges<'a>> {
        match self {
            Self::Here(_) => None,
            Self::Sharded(edges) => Some(edges),
        }
    }

    /// Returns true if other shards have some of the edges, so that reading a key may cost a round trip.
    #[inline]
    #[must_use]
    pub fn is_sharded(&self) -> bool {
        matches!(self, Self::Sharded(_))
    }

    /// Changes by updates in the reader's snapshot.
    #[inline]
    #[must_use]
    pub fn patch(&self) -> Option<&'a Patch> {
        match self {
            Self::Here(view) => view.patch,
            Self::Sharded(edges) => edges.patch(),
        }
    }

    /// The segment that contains all edges visible in `scope`, if there is one, as [`EdgeView::plain`]. On several
    /// shards there is one only if no edge is visible.
    #[inline]
    #[must_use]
    pub fn plain(&self, scope: GraphScope<'_>) -> Option<Segment<'a>> {
        match self {
            Self::Here(view) => view.plain(scope),
            Self::Sharded(edges) => edges.is_empty(scope).then_some(Segment::EMPTY),
        }
    }

    /// As [`EdgeView::plain_but_dirty`].
    #[inline]
    #[must_use]
    pub fn plain_but_dirty(&self, scope: GraphScope<'_>) -> Option<(Segment<'a>, &'a Patch)> {
        self.here()?.plain_but_dirty(scope)
    }

    /// As [`EdgeView::read`].
    #[inline]
    pub fn read<'b>(&self, key: u32, scope: GraphScope<'_>, scratch: &'b mut Vec<u32>) -> &'b [u32]
    where
        'a: 'b,
    {
        either!(self.read(key, scope, scratch))
    }

    /// As [`EdgeView::read_counting`].
    #[inline]
    pub fn read_counting<'b>(
        &self,
        key: u32,
        scope: GraphScope<'_>,
        scratch: &'b mut Vec<u32>,
        looked: &mut usize,
    ) -> &'b [u32]
    where
        'a: 'b,
    {
        match self {
            Self::Here(view) => view.read_counting(key, scope, scratch, looked),
            Self::Sharded(edges) => edges.read(key, scope, scratch),
        }
    }

    /// As [`EdgeView::append_touched`].
    #[inline]
    pub fn append_touched(
        &self,
        key: u32,
        scope: GraphScope<'_>,
        at: &mut PatchFinger<'a>,
        out: &mut Vec<u32>,
        merged: &mut u64,
    ) -> bool {
        self.here()
            .is_some_and(|view| view.append_touched(key, scope, at, out, merged))
    }

    /// As [`EdgeView::note_merged`].
    pub fn note_merged(&self, lists: u64, all: u64) {
        if let Self::Here(view) = self {
            view.note_merged(lists, all);
        }
    }

    /// As [`EdgeView::shared_list`].
    #[must_use]
    pub fn shared_list(&self, key: u32, scope: GraphScope<'_>) -> Option<Arc<[u32]>> {
        self.here()?.shared_list(key, scope)
    }

    /// As [`EdgeView::shared_keys`].
    #[must_use]
    pub fn shared_keys(&self, scope: GraphScope<'_>) -> Option<Arc<[u32]>> {
        self.here()?.shared_keys(scope)
    }

    /// As [`EdgeView::read_with_graphs`].
    pub fn read_with_graphs(
        &self,
        key: u32,
        scope: GraphScope<'_>,
        neighbours: &mut Vec<u32>,
        graphs: &mut Vec<u32>,
    ) {
        self.for_each(key, scope, |n, g| {
            neighbours.push(n);
            graphs.push(g);
        });
    }

    /// As [`EdgeView::for_each`].
    #[inline]
    pub fn for_each(&self, key: u32, scope: GraphScope<'_>, f: impl FnMut(u32, u32)) {
        either!(self.for_each(key, scope, f))
    }

    /// As [`EdgeView::contains`].
    #[inline]
    #[must_use]
    pub fn contains(&self, key: u32, neighbour: u32, scope: GraphScope<'_>) -> bool {
        self.contains_counting(key, neighbour, scope, &mut 0)
    }

    /// As [`EdgeView::contains_counting`].
    #[inline]
    pub fn contains_counting(
        &self,
        key: u32,
        neighbour: u32,
        scope: GraphScope<'_>,
        looked: &mut u64,
    ) -> bool {
        match self {
            Self::Here(view) => view.contains_counting(key, neighbour, scope, looked),
            Self::Sharded(edges) => edges.contains(key, neighbour, scope),
        }
    }

    /// As [`EdgeView::graphs_of_edge`].
    pub fn graphs_of_edge(
        &self,
        key: u32,
        neighbour: u32,
        scope: GraphScope<'_>,
        mut f: impl FnMut(u32),
    ) {
        match self {
            Self::Here(view) => view.graphs_of_edge(key, neighbour, scope, f),
            Self::Sharded(edges) => edges.for_each(key, scope, |n, g| {
                if n == neighbour {
                    f(g);
                }
            }),
        }
    }

    /// As [`EdgeView::candidate_keys`].
    pub fn candidate_keys(&self, scope: GraphScope<'_>, out: &mut Vec<u32>) {
        either!(self.candidate_keys(scope, out))
    }

    /// Removes the keys without an edge in `scope` from a list of keys returned by [`Self::candidate_keys`]. O(keys),
    /// and also the length of their lists where named graphs are read or a patch may have edits.
    pub fn retain_with_edges(&self, scope: GraphScope<'_>, keys: &mut Vec<u32>) {
        /// Number of keys whose lists are fetched together.
        const PART: usize = 8192;
        let patch = match self {
            // Where all edges of untouched keys are in one segment, each of these keys has an edge.
            Self::Here(view) => view.plain_but_dirty(scope).map(|(_, patch)| patch.dirty()),
            // A base returns only keys that have an edge; other candidates are touched by the patch.
            Self::Sharded(edges) => match edges.patch() {
                Some(patch) => Some(patch.dirty()),
                None => return,
            },
        };
        let is_sure = |key: u32| patch.as_ref().is_some_and(|dirty| !dirty.has(key));
        let mut scratch = Vec::new();
        let mut kept = 0;
        for start in (0..keys.len()).step_by(PART) {
            let end = keys.len().min(start + PART);
            let unsure = keys[start..end].iter().filter(|&&key| !is_sure(key));
            self.fetch(unsure.map(|&key| (key, scope)));
            for at in start..end {
                let key = keys[at];
                if is_sure(key) || !self.read(key, scope, &mut scratch).is_empty() {
                    keys[kept] = key;
                    kept += 1;
                }
            }
        }
        keys.truncate(kept);
    }

    /// Returns true if one of the keys has an edge in `scope`. Lists of other shards are fetched in parts.
    #[must_use]
    pub fn any_has_edges(&self, keys: &[u32], scope: GraphScope<'_>) -> bool {
        let mut scratch = Vec::new();
        let mut part = 1;
        let mut rest = keys;
        // The first batch has one key, and later ones more: mostly the first key has an edge.
        while !rest.is_empty() {
            let (now, later) = rest.split_at(part.min(rest.len()));
            self.fetch(now.iter().map(|&key| (key, scope)));
            if now
                .iter()
                .any(|&key| !self.read(key, scope, &mut scratch).is_empty())
            {
                return true;
            }
            (rest, part) = (later, (part * 8).min(8192));
        }
        false
    }

    /// As [`EdgeView::default_edges`], of all shards.
    #[must_use]
    pub fn default_edges(&self) -> u64 {
        match self {
            Self::Here(view) => view.default_edges(),
            Self::Sharded(edges) => edges.edge_counts()[0],
        }
    }

    /// As [`EdgeView::named_edges`], of all shards.
    #[must_use]
    pub fn named_edges(&self) -> u64 {
        match self {
            Self::Here(view) => view.named_edges(),
            Self::Sharded(edges) => edges.edge_counts()[1],
        }
    }

    /// Number of edges in the scope, from counts alone; `None` if edges would have to be read.
    #[must_use]
    pub fn exact_edges(&self, scope: GraphScope<'_>) -> Option<u64> {
        let default = if scope.sees(DEFAULT_GRAPH) {
            self.default_edges()
        } else {
            0
        };
        (!scope.sees_named() || self.named_edges() == 0).then_some(default)
    }

    /// As [`EdgeView::default_degree`].
    #[must_use]
    pub fn default_degree(&self, key: u32) -> u64 {
        match self {
            Self::Here(view) => view.default_degree(key),
            Self::Sharded(edges) => edges.degrees(key)[0],
        }
    }

    /// As [`EdgeView::named_degree`].
    #[must_use]
    pub fn named_degree(&self, key: u32) -> u64 {
        either!(self.named_degree(key))
    }

    /// Number of edges in the scope for the planner: an upper bound, since an edge counts in each graph that has it,
    /// and all named graphs count.
    #[must_use]
    pub fn edge_estimate(&self, scope: GraphScope<'_>) -> u64 {
        let d = if scope.sees(DEFAULT_GRAPH) {
            self.default_edges()
        } else {
            0
        };
        let n = if scope.sees_named() {
            self.named_edges()
        } else {
            0
        };
        d + n
    }

    /// As [`EdgeView::key_counts`], on all shards.
    #[must_use]
    pub fn key_counts(&self) -> [u32; 2] {
        either!(self.key_counts())
    }

    /// As [`EdgeView::some_key`]; on several shards a key of this shard, or none.
    pub fn some_key(&self, share: f64, out: &mut Vec<u32>) {
        either!(self.some_key(share, out))
    }

    /// Returns true if no named graph has an edge in a segment.
    #[must_use]
    pub fn has_no_named(&self) -> bool {
        either!(self.has_no_named())
    }

    /// Prefetches, in one round trip, the data that [`Self::read`], [`Self::for_each`] and [`Self::graphs_of_edge`]
    /// will need; called before the loop over a batch. Does nothing if all edges are here.
    pub fn fetch<'s>(&self, keys: impl Iterator<Item = (u32, GraphScope<'s>)>) {
        if let Self::Sharded(edges) = self {
            edges.fetch(keys);
        }
    }

    /// Prefetches, in one round trip, the data that [`Self::default_degree`] and [`Self::named_degree`] will need. Does
    /// nothing if all edges are here.
    pub fn fetch_degrees(&self, keys: &[u32]) {
        if let Self::Sharded(edges) = self {
            edges.fetch_degrees(keys);
        }
    }
}
