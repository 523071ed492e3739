//! Transactions after which a store has given data, whatever data was loaded before.

use jindou_store::{Changes, Snapshot, testing};
use jindou_testing::Rng;
use oxrdf::Quad;

/// The quads that a store is loaded with, and the transactions that follow.
pub struct Edits {
    /// The quads to load: a part of the data, and other quads.
    pub first: Vec<Quad>,
    /// Quads that some transactions add and others remove.
    churn: Vec<Quad>,
    data: Vec<Quad>,
}

impl Edits {
    pub fn to(rng: &mut Rng, data: &[Quad], quads: fn(&mut Rng) -> Vec<Quad>) -> Self {
        // Taken from other random data, so that they have the same kinds of terms.
        let others = quads(&mut Rng::new(rng.below(1 << 40) as u64));
        let keep = [10, 50, 90][rng.below(3)];
        let mut first: Vec<Quad> = vec![];
        let mut churn: Vec<Quad> = vec![];
        for q in data {
            if rng.chance(keep) {
                first.push(q.clone());
            }
        }
        for q in others {
            match rng.below(5) {
                0 => first.push(q),
                1 => churn.push(q),
                _ => {}
            }
        }
        Self {
            first,
            churn,
            data: data.to_vec(),
        }
    }

    /// Applies the transactions. Returns the snapshot before the last one, and the one with the data.
    pub fn apply(&self, rng: &mut Rng, loaded: Snapshot) -> [Snapshot; 2] {
        let mut before = loaded;
        let mut now = before.clone();
        let transactions = 1 + rng.below(4);
        for i in 0..transactions {
            let mut changes = Changes::new();
            let mut change = |q: &Quad, insert: bool| {
                testing::edit(&mut changes, &testing::canonical(q), insert);
            };
            let last = i + 1 == transactions;
            // Each transaction changes some of the quads; the last one adds the missing data and removes all other
            // quads.
            for q in self.first.iter().chain(&self.churn) {
                if last || rng.chance(30) {
                    change(q, !last && rng.chance(50));
                }
            }
            for q in &self.data {
                if last || rng.chance(60) {
                    change(q, last || rng.chance(70));
                }
            }
            before = now;
            now = before.apply(&changes, 1).unwrap().snapshot;
        }
        [before, now]
    }
}
