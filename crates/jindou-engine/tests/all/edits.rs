//! Transactions that make a store hold certain data, whatever it held before.

use jindou_store::{ChangeTerm, Changes, Snapshot, testing};
use jindou_testing::Rng;
use oxrdf::Quad;

/// Data for a store to be loaded with, and what transactions do to it.
pub struct Edits {
    /// To be loaded: a part of the data, and other quads.
    pub first: Vec<Quad>,
    /// Quads that come and go.
    churn: Vec<Quad>,
    data: Vec<Quad>,
}

impl Edits {
    pub fn to(rng: &mut Rng, data: &[Quad], quads: fn(&mut Rng) -> Vec<Quad>) -> Self {
        // Other stores' quads have the same kinds of terms.
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

    /// The snapshot that holds the data, and the one before the last transaction.
    pub fn apply(&self, rng: &mut Rng, loaded: Snapshot) -> [Snapshot; 2] {
        let mut before = loaded;
        let mut now = before.clone();
        let transactions = 1 + rng.below(4);
        for i in 0..transactions {
            let mut changes = Changes::new();
            let mut change = |q: &Quad, insert: bool| {
                let t = testing::canonical(q);
                let [s, p, o, g] = t.each_ref().map(|b| ChangeTerm::Bytes(b));
                let g = (!t[3].is_empty()).then_some(g);
                if insert {
                    changes.insert(s, p, o, g);
                } else {
                    changes.remove(s, p, o, g);
                }
            };
            let last = i + 1 == transactions;
            // Everything takes part in some transactions; the last one makes it the data.
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
