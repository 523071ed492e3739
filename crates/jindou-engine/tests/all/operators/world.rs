//! A small store, and the values and rows with which the model computes.

use crate::support::Rng;
use jindou_model::term;
use jindou_plan::Slot;
use jindou_store::Snapshot;
use jindou_store::testing::store_of;
use jindou_testing::{named, triple};
use oxrdf::Quad;
use std::collections::{BTreeMap, BTreeSet};

/// A value in a row. The terms that queries create are numbers and booleans, which the store does not have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum V {
    Id(u32),
    Number(u64),
    Truth(bool),
}

pub type Row = BTreeMap<Slot, V>;

pub struct World {
    _folder: tempfile::TempDir,
    pub snapshot: Snapshot,
    pub nodes: Vec<u32>,
    /// Subject, predicate, object.
    pub edges: Vec<(u32, u32, u32)>,
    pub predicates: Vec<u32>,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let n = 4 + rng.below(9);
        let triples: BTreeSet<(usize, usize, usize)> = (0..8 + rng.below(40))
            .map(|_| (rng.below(n), rng.below(3), rng.below(n)))
            .collect();
        let quads: Vec<Quad> = triples
            .iter()
            .map(|(s, p, o)| triple(&format!("n{s}"), &format!("p{p}"), named(&format!("n{o}"))))
            .collect();
        let (folder, base) = store_of(&quads);
        let snapshot = Snapshot::of_base(base);
        let id = |s: &str| snapshot.lookup(&term::encode(&named(s).into()));
        let nodes: Vec<u32> = (0..n)
            .filter_map(|i| Some(id(&format!("n{i}"))?.0))
            .collect();
        let predicates: Vec<u32> = (0..3)
            .filter_map(|i| Some(snapshot.predicate_of(id(&format!("p{i}"))?)?.0))
            .collect();
        let edges = triples
            .iter()
            .filter_map(|(s, p, o)| {
                Some((
                    id(&format!("n{s}"))?.0,
                    snapshot.predicate_of(id(&format!("p{p}"))?)?.0,
                    id(&format!("n{o}"))?.0,
                ))
            })
            .collect();
        Self {
            _folder: folder,
            snapshot,
            nodes,
            edges,
            predicates,
        }
    }
}
