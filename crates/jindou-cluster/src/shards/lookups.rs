//! Answers of other shards that updates need: the ids of terms, and whether edges exist. They are about one base, which
//! never changes, so all updates over it share them.

use jindou_graph::segment::GraphScope;
use jindou_graph::shard::FarKey;
use jindou_model::DEFAULT_GRAPH;
use jindou_model::sync::lock;
use std::collections::HashMap;
use std::sync::Mutex;

/// Bytes of answers after which all are dropped.
const MOST: usize = 16 << 20;
/// Number of answers to one request beyond which none is kept: bulk updates hardly ask for the same again.
const FEW: usize = 1 << 14;
/// Approximate bytes of an entry, without a term's text.
const ENTRY: usize = 64;

/// An edge of another shard: its key, its neighbour, and its graph.
type FarEdge = (FarKey, u32, u32);

/// Cached answers of other shards about a base. The hash functions are seeded, since users choose the terms.
#[derive(Default)]
pub struct Lookups(Mutex<Answers>);

#[derive(Default)]
struct Answers {
    /// The id of each term, [`jindou_model::NO_VERTEX`] for one that no shard has.
    ids: HashMap<Box<[u8]>, u32>,
    edges: HashMap<FarEdge, bool>,
    /// Bytes of the terms' text.
    text: usize,
}

impl Answers {
    fn make_room(&mut self, more: usize) {
        let entries = self.ids.len() + self.edges.len();
        if self.text + entries * ENTRY + more > MOST {
            *self = Self::default();
        }
    }
}

/// The graph of a scope that is about one graph.
fn graph_of(scope: GraphScope<'_>) -> Option<u32> {
    match scope {
        GraphScope::Default => Some(DEFAULT_GRAPH),
        GraphScope::Named(graph) => Some(graph),
        GraphScope::AnyNamed | GraphScope::Union | GraphScope::Set(_) => None,
    }
}

/// An edge to test, as in [`jindou_graph::shard::OtherShards::contains_many`].
pub(super) type TestedEdge<'e> = (FarKey, u32, GraphScope<'e>, usize);

impl Lookups {
    /// Writes the known ids of the terms at these places to `ids`, and removes their places.
    pub(super) fn fill_ids(&self, terms: &[&[u8]], ids: &mut [u32], places: &mut Vec<usize>) {
        let answers = lock(&self.0);
        places.retain(|&at| match answers.ids.get(terms[at]) {
            Some(&id) => {
                ids[at] = id;
                false
            }
            None => true,
        });
    }

    /// Keeps the ids of the terms at these places.
    pub(super) fn keep_ids(&self, terms: &[&[u8]], ids: &[u32], places: &[usize]) {
        let bytes = |&at: &usize| terms[at].len() + ENTRY;
        let more = places.iter().map(bytes).sum::<usize>();
        if places.len() > FEW || more > MOST / 2 {
            return;
        }
        let mut answers = lock(&self.0);
        answers.make_room(more);
        for &at in places {
            if answers.ids.insert(terms[at].into(), ids[at]).is_none() {
                answers.text += terms[at].len();
            }
        }
    }

    /// Writes what is known about edges to `there`; returns the other edges.
    pub(super) fn fill_edges<'e>(
        &self,
        edges: &[TestedEdge<'e>],
        there: &mut [bool],
    ) -> Vec<TestedEdge<'e>> {
        let answers = lock(&self.0);
        let unknown = |&&(of, neighbour, scope, at): &&TestedEdge<'e>| {
            let known = graph_of(scope).and_then(|g| answers.edges.get(&(of, neighbour, g)));
            if let (Some(&known), Some(slot)) = (known, there.get_mut(at)) {
                *slot = known;
            }
            known.is_none()
        };
        edges.iter().filter(unknown).copied().collect()
    }

    /// Keeps which edges exist.
    pub(super) fn keep_edges(&self, edges: &[TestedEdge<'_>], there: &[bool]) {
        if edges.len() > FEW {
            return;
        }
        let mut answers = lock(&self.0);
        answers.make_room(edges.len() * ENTRY);
        for &(of, neighbour, scope, at) in edges {
            if let (Some(graph), Some(&is)) = (graph_of(scope), there.get(at)) {
                answers.edges.insert((of, neighbour, graph), is);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jindou_model::{Direction, NO_VERTEX};

    fn far(key: u32) -> FarKey {
        FarKey {
            shard: 1,
            predicate: 2,
            direction: Direction::Out,
            key,
        }
    }

    #[test]
    fn answers_come_back_and_what_is_unknown_stays_asked() {
        let lookups = Lookups::default();
        let terms: [&[u8]; 3] = [b"a", b"b", b"c"];
        lookups.keep_ids(&terms, &[7, NO_VERTEX, 0], &[0, 1]);
        let (mut ids, mut places) = ([9; 3], vec![0, 1, 2]);
        lookups.fill_ids(&terms, &mut ids, &mut places);
        assert_eq!((ids, places), ([7, NO_VERTEX, 9], vec![2]));

        let set = [1, 2];
        let edges = [
            (far(1), 5, GraphScope::Default, 0),
            (far(1), 5, GraphScope::Named(3), 1),
            (far(1), 6, GraphScope::Default, 2),
            (far(1), 5, GraphScope::Set(&set), 3),
        ];
        lookups.keep_edges(&edges[..2], &[true, false, true, true]);
        lookups.keep_edges(&edges[3..], &[true; 4]);
        let mut there = [false, true, false, false];
        let rest = lookups.fill_edges(&edges, &mut there);
        assert_eq!(there, [true, false, false, false]);
        assert_eq!(rest.iter().map(|e| e.3).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn memory_is_bounded() {
        let lookups = Lookups::default();
        let long = vec![0; MOST / 4];
        for i in 0..10u8 {
            let term = [&[i], &long[..]].concat();
            lookups.keep_ids(&[&term], &[1], &[0]);
            let answers = lock(&lookups.0);
            assert!(answers.text <= MOST && answers.ids.contains_key(&term[..]));
        }
        let term = vec![0; MOST];
        lookups.keep_ids(&[&term], &[1], &[0]);
        assert!(!lock(&lookups.0).ids.contains_key(&term[..]));
    }
}
