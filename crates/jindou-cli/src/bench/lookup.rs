//! What one neighbour list costs: random vertices, random predicates that they have.

use jindou::{Database, Result};
use jindou_model::{Direction, PredicateId};
use jindou_store::segment::Scope;
use std::time::Instant;

/// Nanoseconds a list, by direction, and how many lists were read.
#[derive(Clone, Copy, Debug)]
pub struct Lookup {
    pub out_ns: f64,
    pub in_ns: f64,
    pub lists: usize,
}

/// A small generator of its own (splitmix64): repeatable, and no dependency.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(z ^ (z >> 31)) * u128::from(n)) >> 64) as u64
    }
}

/// Reads `lists` lists each way, grouped by predicate as a step of a plan reads them: one view, many keys, one
/// after the other (each lookup's address does not depend on the one before).
pub fn measure(db: &Database, scope: Scope<'_>, lists: usize) -> Result<Lookup> {
    let snapshot = db.snapshot();
    let n = u64::from(snapshot.base().vertices());
    let mut random = Random(7);
    let mut cost = [0.0; 2];
    for direction in [Direction::Out, Direction::In] {
        let mut keys: Vec<(u32, u32)> = Vec::with_capacity(lists);
        let mut tries = 0;
        while keys.len() < lists && tries < 20 * lists && n > 0 {
            tries += 1;
            let v = 1 + random.below(n) as u32;
            let predicates = snapshot.predicates_of(v, direction);
            if !predicates.is_empty() {
                let at = random.below(predicates.len() as u64) as usize;
                keys.push((predicates[at], v));
            }
        }
        keys.sort_unstable_by_key(|k| k.0);
        let (mut sum, mut scratch) = (0u64, Vec::new());
        let start = Instant::now();
        let mut at = 0;
        while at < keys.len() {
            let p = keys[at].0;
            let end = at + keys[at..].partition_point(|k| k.0 == p);
            let edges = snapshot.edges(PredicateId(p), direction);
            if let Some(s) = edges.plain(scope) {
                for &(_, v) in &keys[at..end] {
                    sum += u64::from(s.neighbours_of(v).first().copied().unwrap_or(0));
                }
            } else {
                for &(_, v) in &keys[at..end] {
                    sum += u64::from(
                        edges
                            .read(v, scope, &mut scratch)
                            .first()
                            .copied()
                            .unwrap_or(0),
                    );
                }
            }
            at = end;
        }
        std::hint::black_box(sum);
        cost[direction as usize] = start.elapsed().as_secs_f64() * 1e9 / keys.len().max(1) as f64;
    }
    Ok(Lookup {
        out_ns: cost[0],
        in_ns: cost[1],
        lists,
    })
}
