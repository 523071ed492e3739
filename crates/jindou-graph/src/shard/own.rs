//! One shard's own edges. Keys are local keys of the shard, neighbours are ids of the whole store.

use super::{Blocks, LocalKey};
use crate::segment::{EdgeView, GraphScope, NamedList, NamedSegment, Segment};

/// The edges of one predicate in one direction that one shard has.
#[derive(Clone, Copy, Debug)]
pub struct OwnEdges<'a> {
    /// The view's keys are local keys. It is private so that they are not confused with ids: methods take keys as
    /// [`LocalKey`] and return them as ids.
    view: EdgeView<'a>,
    shard: u32,
    blocks: &'a Blocks,
}

impl<'a> OwnEdges<'a> {
    /// Creates the edges of shard `shard` from its segments of the default graph and of named graphs.
    #[must_use]
    pub fn new(
        default: Segment<'a>,
        named: NamedSegment<'a>,
        (shard, blocks): (u32, &'a Blocks),
    ) -> Self {
        Self {
            view: EdgeView::new(default, named, None),
            shard,
            blocks,
        }
    }

    /// As [`EdgeView::read`].
    pub fn read<'b>(
        &self,
        key: LocalKey,
        scope: GraphScope<'_>,
        scratch: &'b mut Vec<u32>,
    ) -> &'b [u32]
    where
        'a: 'b,
    {
        self.view.read(key.0, scope, scratch)
    }

    /// As [`EdgeView::for_each`].
    pub fn for_each(&self, key: LocalKey, scope: GraphScope<'_>, f: impl FnMut(u32, u32)) {
        self.view.for_each(key.0, scope, f);
    }

    /// As [`EdgeView::read_with_graphs`].
    pub fn read_with_graphs(
        &self,
        key: LocalKey,
        scope: GraphScope<'_>,
        neighbours: &mut Vec<u32>,
        graphs: &mut Vec<u32>,
    ) {
        self.view.read_with_graphs(key.0, scope, neighbours, graphs);
    }

    /// The neighbours of a key in the default graph.
    pub(super) fn default_list(&self, key: LocalKey) -> &'a [u32] {
        self.view.default.neighbours_of(key.0)
    }

    /// The edges of a key in named graphs.
    pub(super) fn named_list(&self, key: LocalKey) -> NamedList<'a> {
        self.view.named.edges_of(key.0)
    }

    /// As [`EdgeView::contains`].
    #[must_use]
    pub fn contains(&self, key: LocalKey, neighbour: u32, scope: GraphScope<'_>) -> bool {
        self.view.contains(key.0, neighbour, scope)
    }

    /// As [`EdgeView::default_degree`].
    #[must_use]
    pub fn default_degree(&self, key: LocalKey) -> u64 {
        self.view.default_degree(key.0)
    }

    /// As [`EdgeView::named_degree`].
    #[must_use]
    pub fn named_degree(&self, key: LocalKey) -> u64 {
        self.view.named_degree(key.0)
    }

    /// As [`EdgeView::key_counts`].
    #[must_use]
    pub fn key_counts(&self) -> [u32; 2] {
        self.view.key_counts()
    }

    /// The lists of the one segment that contains all edges visible in `scope`, if there is such a segment.
    #[inline]
    #[must_use]
    pub fn plain(&self, scope: GraphScope<'_>) -> Option<OwnLists<'a>> {
        self.view.plain(scope).map(OwnLists)
    }

    /// Appends the id of some key, as [`EdgeView::some_key`].
    pub fn some_key(&self, share: f64, out: &mut Vec<u32>) {
        let start = out.len();
        self.view.some_key(share, out);
        self.make_ids(out, start);
    }

    /// Appends the ids of the keys that have an edge in `scope`, ascending.
    pub fn keys_with_edges(&self, scope: GraphScope<'_>, out: &mut Vec<u32>) {
        let start = out.len();
        self.view.keys_with_edges(scope, out);
        self.make_ids(out, start);
    }

    /// Appends the ids of at most `most` keys with an edge in `scope`, from the id `from` on, ascending. O(log keys +
    /// keys of the page), and also the lists of these keys if only some named graphs are visible.
    pub fn keys_page(&self, scope: GraphScope<'_>, from: u32, most: usize, out: &mut Vec<u32>) {
        let start = out.len();
        let is_before = |key| self.blocks.global(self.shard, LocalKey(key)) < from;
        self.view.keys_page(scope, is_before, most, out);
        self.make_ids(out, start);
    }

    /// Replaces the local keys from position `from` on by their ids.
    fn make_ids(&self, keys: &mut [u32], from: usize) {
        for key in keys.iter_mut().skip(from) {
            *key = self.blocks.global(self.shard, LocalKey(*key));
        }
    }
}

/// A shard's lists of one predicate in one direction, all in one segment.
#[derive(Clone, Copy, Debug)]
pub struct OwnLists<'a>(Segment<'a>);

impl<'a> OwnLists<'a> {
    /// Writes the number of each key to `out`; [`NO_KEY`](crate::segment::NO_KEY) for a key without a list.
    pub fn find_many(&self, keys: &[LocalKey], out: &mut Vec<u32>) {
        self.0.finder.find_many(bytemuck::cast_slice(keys), out);
    }

    /// Range of the list of key number `k` in [`Self::neighbours`].
    #[inline]
    #[must_use]
    pub fn range(&self, k: u32) -> (usize, usize) {
        self.0.range(k)
    }

    /// The lists of all keys in sequence.
    #[inline]
    #[must_use]
    pub fn neighbours(&self) -> &'a [u32] {
        self.0.neighbours
    }

    /// Start of each list, as [`Segment::offsets`].
    #[inline]
    #[must_use]
    pub fn offsets(&self) -> Option<&'a [u32]> {
        self.0.offsets
    }
}
