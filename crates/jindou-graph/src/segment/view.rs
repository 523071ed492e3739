//! The edges of one predicate in one direction if all of them are in this process: the default graph's segment, the
//! named graphs' segment and the patch, merged for a choice of graphs.

use super::merged_lists::{MergedLists, MergedLookup};
use super::sorted::{MergedIter, merge_distinct, merge_runs};
use super::{NamedSegment, Patch, PatchFinger, Segment, Slices};
use jindou_model::DEFAULT_GRAPH;
use std::sync::Arc;

/// The graphs that a triple pattern reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphScope<'a> {
    /// The default graph only.
    Default,
    /// One named graph.
    Named(u32),
    /// All named graphs, but not the default graph. An edge in several graphs is read once.
    AnyNamed,
    /// The default graph and all named graphs. An edge in several graphs is read once.
    Union,
    /// Several graphs (ascending ids, `DEFAULT_GRAPH` for the default graph). An edge in several graphs is read once.
    Set(&'a [u32]),
}

impl GraphScope<'_> {
    /// The scope of one graph, the default graph or a named one.
    #[inline]
    #[must_use]
    pub fn of(graph: u32) -> Self {
        match graph {
            DEFAULT_GRAPH => Self::Default,
            graph => Self::Named(graph),
        }
    }

    /// Returns true if edges of `graph` are visible.
    #[inline]
    #[must_use]
    pub fn sees(&self, graph: u32) -> bool {
        match *self {
            Self::Default => graph == DEFAULT_GRAPH,
            Self::Named(g) => graph == g,
            Self::AnyNamed => graph != DEFAULT_GRAPH,
            Self::Union => true,
            Self::Set(gs) => gs.binary_search(&graph).is_ok(),
        }
    }

    /// Returns true if edges of a named graph are visible.
    #[must_use]
    pub fn sees_named(&self) -> bool {
        match *self {
            Self::Default => false,
            Self::Set(gs) => gs.iter().any(|&g| g != DEFAULT_GRAPH),
            _ => true,
        }
    }
}

/// The edges of one predicate in one direction, if all are in this process: two segments and a patch.
#[derive(Clone, Copy, Debug)]
pub struct EdgeView<'a> {
    /// Edges of the default graph.
    pub default: Segment<'a>,
    /// Edges of named graphs, each with its graph.
    pub named: NamedSegment<'a>,
    /// Changes by updates in the reader's snapshot.
    pub patch: Option<&'a Patch>,
}

/// Calls `f` with every (neighbour, graph) of a key that is visible in `scope`, sorted. The edges are those of a base,
/// `default` and `named`, changed by the edits of the key in a patch.
pub(crate) fn merge_edges<'p>(
    (default, named): (impl Iterator<Item = u32>, impl Iterator<Item = (u32, u32)>),
    edits: Option<(&'p Patch, u32)>,
    scope: GraphScope<'_>,
    mut f: impl FnMut(u32, u32),
) {
    let of_default = edits.filter(|_| scope.sees(DEFAULT_GRAPH));
    let (added, removed) = of_default.map(|(p, key)| p.edits_of(key)).unzip();
    let neighbours = |s: Option<Slices<'p, u64>>| s.into_iter().flatten().flatten();
    let mut d = MergedIter::new(
        default,
        neighbours(added).map(|&e| e as u32),
        neighbours(removed).map(|&e| e as u32),
    )
    .peekable();
    if !scope.sees_named() {
        d.for_each(|n| f(n, DEFAULT_GRAPH));
        return;
    }
    let (added, removed) = edits.map(|(p, key)| p.named_edits_of(key)).unzip();
    let pairs =
        |s: Option<Slices<'p, [u32; 3]>>| s.into_iter().flatten().flatten().map(|e| (e[1], e[2]));
    let named = MergedIter::new(named, pairs(added), pairs(removed));
    for (n, g) in named.filter(|e| scope.sees(e.1)) {
        while let Some(x) = d.next_if(|&x| x <= n) {
            f(x, DEFAULT_GRAPH);
        }
        f(n, g);
    }
    d.for_each(|n| f(n, DEFAULT_GRAPH));
}

impl<'a> EdgeView<'a> {
    /// The segment that alone contains all edges visible in `scope`, if there is one: the patch must not change any
    /// visible edge, and no named graph may have a visible edge. Loops then use this segment only.
    #[inline]
    #[must_use]
    pub fn plain(&self, scope: GraphScope<'_>) -> Option<Segment<'a>> {
        if let Some(p) = self.patch
            && ((p.has_default() && scope.sees(DEFAULT_GRAPH))
                || (p.has_named() && scope.sees_named()))
        {
            return None;
        }
        if !scope.sees(DEFAULT_GRAPH) {
            return self.named.is_empty().then_some(Segment::EMPTY);
        }
        (!scope.sees_named() || self.named.is_empty()).then_some(self.default)
    }

    /// The default graph's segment, if it contains all visible edges of all keys that the patch does not mark as dirty,
    /// since no named graph is read or none has edges. Only dirty keys then need [`Self::read`].
    #[inline]
    #[must_use]
    pub fn plain_but_dirty(&self, scope: GraphScope<'_>) -> Option<(Segment<'a>, &'a Patch)> {
        let patch = self.patch?;
        let alone = scope.sees(DEFAULT_GRAPH) && (!scope.sees_named() || self.named.is_empty());
        alone.then_some((self.default, patch))
    }

    /// The patch, if it may have added or removed edges of a key.
    #[inline]
    fn touched(&self, key: u32) -> Option<&'a Patch> {
        self.patch.filter(|p| p.is_dirty(key))
    }

    /// Returns true if a named graph may have edges in this view.
    fn has_named(&self) -> bool {
        !self.named.is_empty() || self.patch.is_some_and(Patch::adds_named)
    }

    /// The neighbours of `key` in `scope`: ascending, each once. Borrowed from a segment if nothing has to be merged,
    /// otherwise written to `scratch`. O(degree); parts of a list between edits are copied at once.
    #[inline]
    pub fn read<'b>(&self, key: u32, scope: GraphScope<'_>, scratch: &'b mut Vec<u32>) -> &'b [u32]
    where
        'a: 'b,
    {
        self.read_counting(key, scope, scratch, &mut 0)
    }

    /// As [`Self::read`]. Adds the number of edges in named graphs that were read to `looked`: they may be many even if
    /// few of them are in `scope`.
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
        let d = if scope.sees(DEFAULT_GRAPH) {
            self.default.neighbours_of(key)
        } else {
            &[]
        };
        let sees_named = scope.sees_named() && self.has_named();
        if let Some(patch) = self.touched(key) {
            if sees_named {
                scratch.clear();
                *looked += self.named.edges_of(key).len();
                self.for_each(key, scope, |n, _| {
                    if scratch.last() != Some(&n) {
                        scratch.push(n);
                    }
                });
                return scratch;
            }
            if !scope.sees(DEFAULT_GRAPH) {
                return &[];
            }
            match patch.derived().find(key) {
                MergedLookup::Untouched => return d,
                MergedLookup::List(list) => return list,
                MergedLookup::Unknown => {}
            }
            let (added, removed) = patch.edits_of(key);
            if added.is_empty() && removed.is_empty() {
                return d;
            }
            scratch.clear();
            merge_runs(d, added, removed, scratch);
            return scratch;
        }
        if !sees_named {
            return d;
        }
        let n = self.named.edges_of(key);
        if n.len() == 0 {
            return d;
        }
        *looked += n.len();
        scratch.clear();
        if matches!(scope, GraphScope::Union | GraphScope::AnyNamed) {
            merge_distinct(d, n.neighbours(), scratch);
        } else {
            let seen = n.filter(|e| scope.sees(e.1));
            merge_distinct(d, seen.map(|e| e.0), scratch);
        }
        scratch
    }

    /// Appends the neighbours of a key to `out`, as returned by [`Self::read`], if the patch may have changed them.
    /// Otherwise returns false and appends nothing: the caller reads the segment. `at` must be used with this view
    /// only; it makes lookups of ascending keys fast. `merged` counts lists of the default graph that were merged, for
    /// [`Self::note_merged`].
    pub fn append_touched(
        &self,
        key: u32,
        scope: GraphScope<'_>,
        at: &mut PatchFinger<'a>,
        out: &mut Vec<u32>,
        merged: &mut u64,
    ) -> bool {
        let Some(patch) = self.touched(key) else {
            return false;
        };
        if scope.sees_named() && self.has_named() {
            let start = out.len();
            self.for_each(key, scope, |n, _| {
                if out.len() == start || out.last() != Some(&n) {
                    out.push(n);
                }
            });
            return true;
        }
        if !scope.sees(DEFAULT_GRAPH) {
            return true;
        }
        match patch.derived().find(key) {
            MergedLookup::Untouched => false,
            MergedLookup::List(list) => {
                out.extend_from_slice(list);
                true
            }
            MergedLookup::Unknown => {
                *merged += 1;
                self.append_merged(key, at, out)
            }
        }
    }

    /// Appends the neighbours of a key in the default graph, merged with its edits. If it has no edits, returns false
    /// and appends nothing.
    pub(super) fn append_merged(
        &self,
        key: u32,
        at: &mut PatchFinger<'a>,
        out: &mut Vec<u32>,
    ) -> bool {
        let Some(patch) = self.patch else {
            return false;
        };
        let (added, removed) = patch.edits_at(key, at);
        if added.is_empty() && removed.is_empty() {
            return false;
        }
        merge_runs(self.default.neighbours_of(key), added, removed, out);
        true
    }

    /// Records that a reader merged, or searched, the lists of `lists` more touched keys; `all` is the number that it
    /// merged so far. The lists of all touched keys are merged and cached for later readers once all readers of this
    /// version together have merged enough lists for this to pay off, and this reader a sixteenth of that number. The
    /// second condition limits the time that a reader spends on the cache to a small multiple of the time that it spent
    /// on merging anyway.
    pub fn note_merged(&self, lists: u64, all: u64) {
        let Some(patch) = self.patch.filter(|p| p.derived().may_be_merged()) else {
            return;
        };
        let least = patch.derived().worth(patch.touched_keys());
        if patch.derived().spend(lists) >= least && all >= least / 16 {
            patch
                .derived()
                .merge(|room| MergedLists::new(self, patch, room));
        }
    }

    /// The patch, if only edges of the default graph are visible.
    fn default_alone(&self, scope: GraphScope<'_>) -> Option<&'a Patch> {
        let alone = scope.sees(DEFAULT_GRAPH) && !(scope.sees_named() && self.has_named());
        self.patch.filter(|_| alone)
    }

    /// The merged neighbours of a touched key, cached for later readers of the same version of the patch; `None` if the
    /// list is short, or need not be merged.
    #[must_use]
    pub fn shared_list(&self, key: u32, scope: GraphScope<'_>) -> Option<Arc<[u32]>> {
        /// Shorter lists are merged in about the time of a lookup in the cache.
        const LONG: u64 = 256;
        let patch = self.default_alone(scope)?;
        if !patch.is_dirty(key) || self.default_degree(key) < LONG {
            return None;
        }
        Some(patch.derived().list(key, || {
            let mut list = Vec::new();
            self.read(key, GraphScope::Default, &mut list).to_vec()
        }))
    }

    /// The keys that have an edge, cached for later readers of the same version of the patch; `None` unless there is a
    /// patch and only edges of the default graph are visible. O(keys) the first time.
    #[must_use]
    pub fn shared_keys(&self, scope: GraphScope<'_>) -> Option<Arc<[u32]>> {
        let patch = self.default_alone(scope)?;
        Some(patch.derived().keys(|| {
            let mut keys = Vec::new();
            self.candidate_keys(GraphScope::Default, &mut keys);
            keys.retain(|&k| !patch.is_dirty(k) || self.default_degree(k) > 0);
            keys
        }))
    }

    /// Appends the neighbours of `key` and their graphs to two columns, sorted by (neighbour, graph).
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

    /// Calls `f` with every (neighbour, graph) of `key` that is visible in `scope`, sorted.
    pub fn for_each(&self, key: u32, scope: GraphScope<'_>, f: impl FnMut(u32, u32)) {
        let default = if scope.sees(DEFAULT_GRAPH) {
            self.default.neighbours_of(key)
        } else {
            &[]
        };
        let base = (default.iter().copied(), self.named.edges_of(key));
        merge_edges(base, self.touched(key).map(|p| (p, key)), scope, f);
    }

    /// Returns true if the edge `key`–`neighbour` is visible in `scope`. O(log degree + log edits), plus the number of
    /// graphs that have the edge.
    #[must_use]
    pub fn contains(&self, key: u32, neighbour: u32, scope: GraphScope<'_>) -> bool {
        self.contains_counting(key, neighbour, scope, &mut 0)
    }

    /// As [`Self::contains`]. Adds 1 to `looked` if the key's edits were searched, for [`Self::note_merged`].
    pub fn contains_counting(
        &self,
        key: u32,
        neighbour: u32,
        scope: GraphScope<'_>,
        looked: &mut u64,
    ) -> bool {
        let touched = self.touched(key);
        if scope.sees(DEFAULT_GRAPH) {
            let there = match touched.map(|p| (p, p.derived().find(key))) {
                Some((_, MergedLookup::List(list))) => list.binary_search(&neighbour).is_ok(),
                Some((p, MergedLookup::Unknown)) => {
                    *looked += 1;
                    p.says(key, neighbour, DEFAULT_GRAPH)
                        .unwrap_or_else(|| self.default.contains(key, neighbour))
                }
                Some((_, MergedLookup::Untouched)) | None => self.default.contains(key, neighbour),
            };
            if there {
                return true;
            }
        }
        if !scope.sees_named() {
            return false;
        }
        if let (Some(p), GraphScope::Named(g)) = (touched, scope)
            && let Some(there) = p.says(key, neighbour, g)
        {
            return there;
        }
        self.named_graphs_of(key, neighbour).any(|g| scope.sees(g))
    }

    /// The named graphs that have the edge `key`–`neighbour`, ascending.
    fn named_graphs_of(&self, key: u32, neighbour: u32) -> impl Iterator<Item = u32> + use<'a> {
        let base = self.named.edges_of(key);
        let base = base
            .from_neighbour(neighbour)
            .take_while(move |e| e.0 == neighbour)
            .map(|e| e.1);
        let edits = self
            .touched(key)
            .map(|p| p.named_edits_of_edge(key, neighbour));
        let (added, removed) = edits.unzip();
        let graphs =
            |s: Option<Slices<'a, [u32; 3]>>| s.into_iter().flatten().flatten().map(|e| e[2]);
        MergedIter::new(base, graphs(added), graphs(removed))
    }

    /// Calls `f` with every graph in `scope` that has the edge `key`–`neighbour`, ascending. O(log degree + log edits),
    /// plus the number of graphs that have the edge.
    pub fn graphs_of_edge(
        &self,
        key: u32,
        neighbour: u32,
        scope: GraphScope<'_>,
        mut f: impl FnMut(u32),
    ) {
        if scope.sees(DEFAULT_GRAPH) && self.contains(key, neighbour, GraphScope::Default) {
            f(DEFAULT_GRAPH);
        }
        if scope.sees_named() {
            self.named_graphs_of(key, neighbour)
                .filter(|&g| scope.sees(g))
                .for_each(f);
        }
    }

    /// Appends every vertex that may have an edge as a key in `scope` to `out`: ascending, each once. Some have no edge
    /// if a patch removed a key's last edge, or if only some named graphs are visible: [`Self::read`] then returns an
    /// empty list.
    pub fn candidate_keys(&self, scope: GraphScope<'_>, out: &mut Vec<u32>) {
        if let Some(s) = self.plain(scope) {
            s.keys_into(0, s.key_count, out);
            return;
        }
        let start = out.len();
        if scope.sees(DEFAULT_GRAPH) {
            self.default.keys_into(0, self.default.key_count, out);
        }
        if scope.sees_named() {
            self.named.keys_into(0, self.named.key_count, out);
        }
        if let Some(p) = self.patch {
            out.extend(p.keys());
        }
        // `out` consists of a few ascending runs, which a stable sort merges.
        out[start..].sort();
        let mut last = None;
        let mut write = start;
        for i in start..out.len() {
            if last != Some(out[i]) {
                last = Some(out[i]);
                out[write] = out[i];
                write += 1;
            }
        }
        out.truncate(write);
    }

    /// Number of edges in the default graph, including the patch. O(1).
    #[must_use]
    pub fn default_edges(&self) -> u64 {
        let (added, removed) = self.patch.map_or((0, 0), Patch::default_counts);
        (self.default.edge_count() + added).saturating_sub(removed)
    }

    /// Number of edges in named graphs, including the patch; an edge counts once for each graph. O(1).
    #[must_use]
    pub fn named_edges(&self) -> u64 {
        let (added, removed) = self.patch.map_or((0, 0), Patch::named_counts);
        (self.named.edge_count() + added).saturating_sub(removed)
    }

    /// Number of edges of a key in the default graph. O(log edits), without reading the list.
    #[must_use]
    pub fn default_degree(&self, key: u32) -> u64 {
        let base = self.default.neighbours_of(key).len() as u64;
        match self.touched(key) {
            Some(p) => {
                let (added, removed) = p.degree_change(key);
                (base + added).saturating_sub(removed)
            }
            None => base,
        }
    }

    /// Number of edges of a key in named graphs; an edge counts once for each graph. O(log edits), without reading the
    /// list.
    #[must_use]
    pub fn named_degree(&self, key: u32) -> u64 {
        let range = self.named.range(self.named.finder.find(key));
        let base = range.end.saturating_sub(range.start);
        match self.touched(key) {
            Some(p) => {
                let (added, removed) = p.named_degree_change(key);
                (base + added).saturating_sub(removed)
            }
            None => base,
        }
    }
}
