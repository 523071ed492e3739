//! The edges of one predicate in one direction on all shards: what [`EdgeView`](crate::segment::EdgeView) asks where it has a shard's keys only.

use super::kept::{GraphsName, List, ListName};
use super::session::Session;
use super::{Graphs, Reply, Request};
use crate::segment::Scope;
use jindou_model::Direction;

/// Where a key's edges are.
pub(crate) enum Owner {
    /// In this shard, under this key.
    Own(u32),
    /// On this shard.
    Far(u32),
    /// Nowhere: no vertex of the load.
    Nobody,
}

/// The edges of one predicate in one direction, of which the other shards have some.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FarEdges<'a> {
    pub session: &'a Session,
    pub predicate: u32,
    pub direction: Direction,
}

impl FarEdges<'_> {
    pub fn owner(&self, v: u32) -> Owner {
        let shard = self.session.shard();
        match shard.blocks.place(v) {
            Some(p) if p.shard == shard.number => Owner::Own(p.local),
            Some(p) => Owner::Far(p.shard),
            None => Owner::Nobody,
        }
    }

    /// Makes ids of keys that the shard has.
    pub fn to_ids(self, keys: &mut [u32]) {
        let shard = self.session.shard();
        shard.blocks.to_global(shard.number, keys);
    }

    fn name(&self, key: u32, graphs: GraphsName) -> ListName {
        ListName {
            predicate: self.predicate,
            direction: self.direction,
            graphs,
            key,
        }
    }

    fn name_in(&self, key: u32, scope: Scope<'_>) -> ListName {
        self.name(key, self.session.graphs_name(scope))
    }

    /// Fetches what [`Self::list`] will be asked for, in one round.
    pub fn fetch<'s>(self, keys: impl Iterator<Item = (u32, Scope<'s>)>) {
        let mut naming = self.session.naming();
        self.session
            .fetch(keys.map(|(key, scope)| self.name(key, naming.name(scope))));
    }

    /// The (neighbour, graph) of a key of another shard, sorted, if they are kept.
    pub fn kept(&self, key: u32, scope: Scope<'_>) -> Option<List> {
        self.session.kept(&self.name_in(key, scope))
    }

    /// The (neighbour, graph) of a key of another shard, sorted: kept, or asked for alone. Nothing if that fails.
    pub fn list(&self, key: u32, scope: Scope<'_>) -> List {
        self.session.list(self.name_in(key, scope))
    }

    /// Whether an edge of a key of another shard is there.
    pub fn contains(&self, key: u32, neighbour: u32, scope: Scope<'_>) -> bool {
        if let Some(list) = self.session.kept(&self.name_in(key, scope)) {
            let at = list.partition_point(|e| e.0 < neighbour);
            return list.get(at).is_some_and(|e| e.0 == neighbour);
        }
        let mut there = Vec::with_capacity(1);
        self.contains_many(std::iter::once((key, neighbour)), scope, &mut there);
        there.first() == Some(&true)
    }

    /// Tells which of some edges are there. Keys of this shard are left out: their places are returned with the keys here.
    pub fn contains_many(
        &self,
        edges: impl Iterator<Item = (u32, u32)>,
        scope: Scope<'_>,
        there: &mut Vec<bool>,
    ) -> Vec<(usize, u32)> {
        there.clear();
        let shards = self.session.shard().blocks.shards() as usize;
        let mut far: Vec<(Vec<usize>, Vec<u32>, Vec<u32>)> = vec![Default::default(); shards];
        let mut own = Vec::new();
        for (i, (key, neighbour)) in edges.enumerate() {
            there.push(false);
            match self.owner(key) {
                Owner::Own(local) => own.push((i, local)),
                Owner::Far(s) => {
                    if let Some(to) = far.get_mut(s as usize) {
                        to.0.push(i);
                        to.1.push(key);
                        to.2.push(neighbour);
                    }
                }
                Owner::Nobody => {}
            }
        }
        let mut places = Vec::new();
        let mut requests = Vec::new();
        for (shard, (at, keys, neighbours)) in (0..).zip(far) {
            if !at.is_empty() {
                places.push(at);
                let request = Request::Contains {
                    predicate: self.predicate,
                    direction: self.direction,
                    graphs: Graphs::of(scope),
                    keys,
                    neighbours,
                };
                requests.push((shard, request));
            }
        }
        let replies = self.session.ask(&requests);
        for ((at, (shard, _)), reply) in places.iter().zip(&requests).zip(replies) {
            match reply {
                Reply::There(found) if found.len() == at.len() => {
                    for (&i, found) in at.iter().zip(found) {
                        there[i] = found != 0;
                    }
                }
                _ => self.session.unfit(*shard),
            }
        }
        own
    }

    /// Edges of a key of another shard, in the default graph and in named ones.
    pub fn degrees(&self, shard: u32, key: u32) -> [u64; 2] {
        self.session
            .degrees((shard, self.predicate, self.direction, key))
    }

    /// Fetches what [`Self::degrees`] will be asked for, in one round.
    pub fn fetch_degrees(self, keys: &[u32]) {
        let of = keys.iter().map(|&k| (self.predicate, self.direction, k));
        self.session.fetch_degrees(of);
    }

    /// Appends the keys of all other shards that have an edge.
    pub fn far_keys(&self, scope: Scope<'_>, out: &mut Vec<u32>) {
        let Self {
            session,
            predicate,
            direction,
        } = self;
        session.far_keys(*predicate, *direction, scope, out);
    }

    /// Edges of the predicate on all shards: of the default graph, of named graphs.
    pub fn edges(&self) -> [u64; 2] {
        let known = &self.session.base().statistics.predicates;
        let known = known.get(self.predicate as usize);
        known.map_or([0, 0], |s| [s.edges, s.named_edges])
    }

    /// Keys on all shards: of the default graph's segments, of the named graphs', where the other has none. A bound from above for
    /// a predicate that has edges of both.
    pub fn key_counts(&self) -> [u32; 2] {
        let known = &self.session.base().statistics.predicates;
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
