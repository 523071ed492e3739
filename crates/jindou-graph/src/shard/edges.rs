//! The edges of one predicate in one direction on all shards, of which this one has some.

use super::{FarKey, LocalKey, OwnEdges, Sharded};
use crate::segment::{GraphScope, NamedSegment, Segment};
use jindou_model::{DEFAULT_GRAPH, Direction, PredicateId};

/// Location of a key's edges.
pub(crate) enum KeyOwner {
    /// In this shard, under this key.
    Own(LocalKey),
    /// On another shard.
    Far(FarKey),
    /// Nowhere: not a vertex of the load.
    Nobody,
}

/// The edges of one predicate in one direction on all shards: the shard's own, and access to the others'. Keys are ids.
#[derive(Clone, Copy, Debug)]
pub struct ShardEdges<'a> {
    pub(super) own: OwnEdges<'a>,
    pub(super) sharded: &'a Sharded,
    predicate: u32,
    direction: Direction,
}

impl<'a> ShardEdges<'a> {
    /// Creates the edges of a predicate in one direction; the shard has those of two segments, under its own keys.
    #[must_use]
    pub fn new(
        (default, named): (Segment<'a>, NamedSegment<'a>),
        sharded: &'a Sharded,
        (predicate, direction): (PredicateId, Direction),
    ) -> Self {
        let owner = (sharded.number(), sharded.blocks());
        Self {
            own: OwnEdges::new(default, named, owner),
            sharded,
            predicate: predicate.0,
            direction,
        }
    }

    #[inline]
    pub(super) fn owner(&self, v: u32) -> KeyOwner {
        match self.sharded.blocks().place(v) {
            Some(p) if p.shard == self.sharded.number() => KeyOwner::Own(p.local),
            Some(p) => KeyOwner::Far(FarKey {
                shard: p.shard,
                predicate: self.predicate,
                direction: self.direction,
                key: v,
            }),
            None => KeyOwner::Nobody,
        }
    }

    /// Returns true if no shard has an edge in the scope.
    #[must_use]
    pub fn is_empty(&self, scope: GraphScope<'_>) -> bool {
        let [default, named] = self.edge_counts();
        (default == 0 || !scope.sees(DEFAULT_GRAPH)) && (named == 0 || !scope.sees_named())
    }

    /// As [`EdgeView::read`](crate::segment::EdgeView::read): fetched before, or requested individually. Nothing if
    /// that fails.
    pub fn read<'b>(&self, key: u32, scope: GraphScope<'_>, scratch: &'b mut Vec<u32>) -> &'b [u32]
    where
        'a: 'b,
    {
        match self.owner(key) {
            KeyOwner::Own(key) => self.own.read(key, scope, scratch),
            KeyOwner::Far(of) => {
                scratch.clear();
                let list = self.sharded.others().list(of, scope);
                scratch.extend(list.iter().map(|e| e.0));
                scratch.dedup();
                scratch
            }
            KeyOwner::Nobody => &[],
        }
    }

    /// As [`EdgeView::for_each`](crate::segment::EdgeView::for_each).
    pub fn for_each(&self, key: u32, scope: GraphScope<'_>, mut f: impl FnMut(u32, u32)) {
        match self.owner(key) {
            KeyOwner::Own(key) => self.own.for_each(key, scope, f),
            KeyOwner::Far(of) => {
                let list = self.sharded.others().list(of, scope);
                list.iter().for_each(|e| f(e.0, e.1));
            }
            KeyOwner::Nobody => {}
        }
    }

    /// Returns true if an edge is visible.
    #[must_use]
    pub fn contains(&self, key: u32, neighbour: u32, scope: GraphScope<'_>) -> bool {
        match self.owner(key) {
            KeyOwner::Own(key) => self.own.contains(key, neighbour, scope),
            KeyOwner::Far(of) => self.sharded.others().contains(of, neighbour, scope),
            KeyOwner::Nobody => false,
        }
    }

    /// Appends every vertex that is a key on some shard in `scope` to `out`: ascending, each once.
    pub fn candidate_keys(&self, scope: GraphScope<'_>, out: &mut Vec<u32>) {
        let start = out.len();
        self.own.keys_with_edges(scope, out);
        let p = PredicateId(self.predicate);
        self.sharded
            .others()
            .far_keys(p, self.direction, scope, out);
        // One ascending run per shard.
        out[start..].sort();
    }

    /// Appends a key of this shard, or none: see [`EdgeView::some_key`](crate::segment::EdgeView::some_key).
    pub fn some_key(&self, share: f64, out: &mut Vec<u32>) {
        self.own.some_key(share, out);
    }

    /// Numbers of edges of a key in the default graph and in named ones: fetched before, or requested individually.
    #[must_use]
    pub fn degrees(&self, key: u32) -> [u64; 2] {
        match self.owner(key) {
            KeyOwner::Own(key) => [self.own.default_degree(key), self.own.named_degree(key)],
            KeyOwner::Far(of) => self.sharded.others().degrees(of),
            KeyOwner::Nobody => [0, 0],
        }
    }

    /// Number of edges of a key in named graphs; mostly no request is needed.
    #[must_use]
    pub fn named_degree(&self, key: u32) -> u64 {
        match self.edge_counts() {
            [_, 0] => 0,
            _ => self.degrees(key)[1],
        }
    }

    /// Prefetches, in one round, the data that reading keys will need: to be called before the loop over a batch.
    pub fn fetch<'s>(&self, keys: impl Iterator<Item = (u32, GraphScope<'s>)>) {
        let of = (PredicateId(self.predicate), self.direction);
        self.sharded
            .fetch(keys.map(|(key, scope)| (of.0, of.1, key, scope)));
    }

    /// Prefetches, in one round, the data that [`Self::degrees`] will need.
    pub fn fetch_degrees(&self, keys: &[u32]) {
        let of = (PredicateId(self.predicate), self.direction);
        self.sharded
            .fetch_degrees(keys.iter().map(|&key| (of.0, of.1, key)));
    }

    /// Numbers of edges of the predicate on all shards: of the default graph, of named graphs.
    #[must_use]
    pub fn edge_counts(&self) -> [u64; 2] {
        let known = &self.sharded.others().statistics().predicates;
        let known = known.get(self.predicate as usize);
        known.map_or([0, 0], |s| [s.edges, s.named_edges])
    }

    /// Numbers of keys on all shards: of the default graph's segments, and of the named graphs' that the former lack.
    /// An upper bound for a predicate that has edges of both.
    #[must_use]
    pub fn key_counts(&self) -> [u32; 2] {
        let known = &self.sharded.others().statistics().predicates;
        let Some(s) = known.get(self.predicate as usize) else {
            return [0, 0];
        };
        let keys = match self.direction {
            Direction::Out => s.subjects,
            Direction::In => s.objects,
        };
        let named = u64::from(u32::MAX).min(s.named_edges) as u32;
        match (s.edges, s.named_edges) {
            (_, 0) => [keys, 0],
            (0, _) => [0, keys],
            _ => [keys, named],
        }
    }
}
