//! Measures the cost of reading one neighbour list, for random vertices and random predicates that they have.

use jindou::{Database, Result};
use jindou_graph::segment::GraphScope;
use jindou_model::{Direction, PredicateId};
use jindou_store::Snapshot;
use std::time::Instant;

/// Nanoseconds per list for each direction, and the number of lists that were read.
#[derive(Clone, Debug)]
pub struct Lookup {
    pub out_ns: f64,
    pub in_ns: f64,
    pub lists: usize,
    /// Costs of both directions together, for each shape of the segment that holds the list.
    pub shapes: Vec<Shape>,
}

/// Cost of lists in segments of one shape. Only the default graph's clean segments have a shape.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The kind of the index that finds keys, and whether there are offsets.
    pub name: String,
    pub lists: usize,
    /// Nanoseconds per list when no lookup depends on the result of the one before, as in a step of a plan.
    pub apart_ns: f64,
    /// Nanoseconds per list when each key depends on the list before, as when a chain is followed.
    pub chained_ns: f64,
}

impl Lookup {
    pub fn print(&self) {
        println!(
            "neighbour lists: {:.1} ns out, {:.1} ns in ({} random ones each)",
            self.out_ns, self.in_ns, self.lists
        );
        for s in &self.shapes {
            println!(
                "  {:<28} {:>6.1} ns, one after the other {:>6.1} ns ({} lists)",
                s.name, s.apart_ns, s.chained_ns, s.lists
            );
        }
    }
}

/// Pseudorandom numbers; a seed always gives the same sequence.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(jindou_model::random::splitmix64(&mut self.0)) * u128::from(n)) >> 64) as u64
    }
}

/// Reads `lists` lists in each direction, grouped by predicate as a step of a plan reads them: many keys of one
/// segment, one after the other. No lookup's address depends on the lookup before.
pub fn measure(db: &Database, scope: GraphScope<'_>, lists: usize) -> Result<Lookup> {
    let snapshot = db.snapshot();
    let n = u64::from(snapshot.base().vertices());
    let mut random = Random(7);
    let mut cost = [0.0; 2];
    let mut shapes: Vec<(Shape, [f64; 2])> = vec![];
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
        by_shape(&snapshot, direction, scope, &keys, &mut shapes);
    }
    Ok(Lookup {
        out_ns: cost[0],
        in_ns: cost[1],
        lists,
        shapes: shapes
            .into_iter()
            .map(|(shape, seconds)| Shape {
                apart_ns: seconds[0] * 1e9 / shape.lists as f64,
                chained_ns: seconds[1] * 1e9 / shape.lists as f64,
                ..shape
            })
            .collect(),
    })
}

/// Reads the same lists twice more: once as before, and once so that each lookup waits for the list before. `keys` is
/// sorted by predicate.
fn by_shape(
    snapshot: &Snapshot,
    direction: Direction,
    scope: GraphScope<'_>,
    keys: &[(u32, u32)],
    shapes: &mut Vec<(Shape, [f64; 2])>,
) {
    for of_predicate in keys.chunk_by(|a, b| a.0 == b.0) {
        let edges = snapshot.edges(PredicateId(of_predicate[0].0), direction);
        let Some(segment) = edges.plain(scope) else {
            continue;
        };
        let name = format!(
            "{}, {}",
            segment.finder.kind().name(),
            if segment.offsets.is_some() {
                "offsets"
            } else {
                "one neighbour a key"
            }
        );
        let at = shapes
            .iter()
            .position(|s| s.0.name == name)
            .unwrap_or_else(|| {
                let shape = Shape {
                    name,
                    lists: 0,
                    apart_ns: 0.0,
                    chained_ns: 0.0,
                };
                shapes.push((shape, [0.0; 2]));
                shapes.len() - 1
            });
        let (shape, seconds) = &mut shapes[at];
        shape.lists += of_predicate.len();
        let start = Instant::now();
        let mut sum = 0;
        for &(_, v) in of_predicate {
            sum ^= segment.neighbours_of(v).first().copied().unwrap_or(0);
        }
        std::hint::black_box(sum);
        seconds[0] += start.elapsed().as_secs_f64();
        // Zero, which the compiler cannot know, so that the next key waits for this list.
        let zero = std::hint::black_box(0);
        let start = Instant::now();
        let mut last = 0;
        for &(_, v) in of_predicate {
            let v = v ^ (last & zero);
            last = segment.neighbours_of(v).first().copied().unwrap_or(0);
        }
        std::hint::black_box(last);
        seconds[1] += start.elapsed().as_secs_f64();
    }
}
