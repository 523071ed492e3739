//! The edges of one predicate in one direction on all shards: what [`EdgeView`](crate::segment::EdgeView) asks where it has a shard's keys only.

use super::{FarKey, List, Sharded};
use crate::segment::Scope;
use jindou_model::{Direction, PredicateId};

/// Where a key's edges are.
pub(crate) enum Owner {
    /// In this shard, under this key.
    Own(u32),
    /// On another shard.
    Far(FarKey),
    /// Nowhere: no vertex of the load.
    Nobody,
}

/// The edges of one predicate in one direction, of which the other shards have some.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FarEdges<'a> {
    pub sharded: &'a Sharded,
    pub predicate: u32,
    pub direction: Direction,
}

impl FarEdges<'_> {
    #[inline]
    pub fn owner(&self, v: u32) -> Owner {
        match self.sharded.blocks().place(v) {
            Some(p) if p.shard == self.sharded.number() => Owner::Own(p.local),
            Some(p) => Owner::Far(FarKey {
                shard: p.shard,
                predicate: self.predicate,
                direction: self.direction,
                key: v,
            }),
            None => Owner::Nobody,
        }
    }

    /// Makes ids of keys that the shard has.
    pub fn to_ids(self, keys: &mut [u32]) {
        self.sharded.blocks().to_global(self.sharded.number(), keys);
    }

    /// Fetches what [`Self::list`] will be asked for, in one round.
    pub fn fetch<'s>(self, keys: impl Iterator<Item = (u32, Scope<'s>)>) {
        let of = (PredicateId(self.predicate), self.direction);
        self.sharded
            .fetch(keys.map(|(key, scope)| (of.0, of.1, key, scope)));
    }

    /// The (neighbour, graph) of a key of another shard, sorted.
    pub fn list(self, of: FarKey, scope: Scope<'_>) -> List {
        self.sharded.others().list(of, scope)
    }

    /// Whether an edge of a key of another shard is there.
    pub fn contains(self, of: FarKey, neighbour: u32, scope: Scope<'_>) -> bool {
        self.sharded.others().contains(of, neighbour, scope)
    }

    /// Edges of a key of another shard, in the default graph and in named ones.
    pub fn degrees(self, of: FarKey) -> [u64; 2] {
        self.sharded.others().degrees(of)
    }

    /// Fetches what [`Self::degrees`] will be asked for, in one round.
    pub fn fetch_degrees(self, keys: &[u32]) {
        let of = (PredicateId(self.predicate), self.direction);
        self.sharded
            .fetch_degrees(keys.iter().map(|&key| (of.0, of.1, key)));
    }

    /// Appends the keys of all other shards that have an edge.
    pub fn far_keys(self, scope: Scope<'_>, out: &mut Vec<u32>) {
        let p = PredicateId(self.predicate);
        self.sharded
            .others()
            .far_keys(p, self.direction, scope, out);
    }

    /// Edges of the predicate on all shards: of the default graph, of named graphs.
    pub fn edges(self) -> [u64; 2] {
        let known = &self.sharded.others().statistics().predicates;
        let known = known.get(self.predicate as usize);
        known.map_or([0, 0], |s| [s.edges, s.named_edges])
    }

    /// Keys on all shards: of the default graph's segments, of the named graphs', where the other has none. A bound from above for
    /// a predicate that has edges of both.
    pub fn key_counts(self) -> [u32; 2] {
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
