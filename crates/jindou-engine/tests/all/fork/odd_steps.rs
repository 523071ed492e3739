//! Runs steps that were damaged in transfer and could still be decoded. Wrong rows and errors are acceptable, but no
//! panics, no work beyond the time limit, and no memory that stays charged.

use crate::support::{in_batches, plan_of};
use jindou_engine::{CountSink, ExecOptions, QueryTerms, execute_streaming};
use jindou_model::{CancelToken, Error, MemoryBudget};
use jindou_plan::wire::{is_exploration, is_sendable, put_steps, steps};
use jindou_plan::{Operator, Step, Weight};
use jindou_store::shard::Sharding;
use jindou_store::{Changes, Snapshot, testing};
use jindou_testing::{Rng, Stopwatch, quads, query};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

const LIMIT: Duration = Duration::from_millis(200);

/// Damages some bytes of the encoded steps and decodes the result; returns false if no damage could be decoded. The
/// steps of an exploration must fit one another, which servers check when they receive them.
fn damage(list: &mut Vec<Step>, is_whole: bool, rng: &mut Rng) -> bool {
    let mut bytes = vec![];
    if !list.iter().all(is_sendable) || put_steps(list, &mut bytes).is_err() {
        return false;
    }
    for _ in 0..30 {
        let mut bad = bytes.clone();
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(bad.len());
            match rng.below(4) {
                0 => bad[at] ^= 1 << rng.below(8),
                1 => bad[at] = rng.below(8) as u8,
                2 => bad[at] = rng.one(&[0, 1, 2, 0x7F, 0x80, 0xE0, 0xEF, 0xFF]),
                _ => {
                    let from = rng.below(bad.len());
                    let n = (1 + rng.below(8)).min(bad.len() - at.max(from));
                    bad.copy_within(from..from + n, at);
                }
            }
        }
        if bad != bytes
            && let Some(read) = steps(&bad)
            && (!is_whole || is_exploration(&read))
        {
            *list = read;
            return true;
        }
    }
    false
}

/// Runs damaged plans, and returns how many.
fn run_odd(seeds: std::ops::Range<u64>, queries: usize) -> usize {
    let mut ran = 0;
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let data = quads(&mut rng);
        let (_folder, base) = testing::store_of(&data[..data.len() * 2 / 3]);
        let plain = Snapshot::of_base(base);
        let mut changes = Changes::new();
        for (i, quad) in data.iter().enumerate() {
            testing::edit(&mut changes, &testing::canonical(quad), i % 5 != 0);
        }
        let edited = plain.apply(&changes, 1).unwrap().snapshot;
        let (_shards, sharded) = jindou_cluster::testing::shards_of(&data, Sharding::new(3), 1);
        for _ in 0..queries {
            let q = query(&mut rng, &data);
            let snapshot = [&plain, &edited, &sharded][rng.below(3)];
            let mut plan = plan_of(snapshot, &q.text);
            let mut changed = false;
            plan.root.walk_mut(&mut |op| {
                changed |= match op {
                    Operator::Explore(e) => damage(&mut e.steps, true, &mut rng),
                    Operator::Steps(s) => damage(&mut s.steps, false, &mut rng),
                    _ => false,
                };
            });
            if !changed {
                continue;
            }
            ran += 1;
            let (weight, threads, batch_rows) = rng.one(&[
                (Weight::Light, 1, 16),
                (Weight::Light, 1, 2048),
                (Weight::Heavy, 2, 64),
            ]);
            plan.weight = weight;
            let memory = MemoryBudget::new(64 << 20);
            let options = ExecOptions {
                memory: memory.clone(),
                cancel: CancelToken::with_deadline(LIMIT),
                ..in_batches(threads, batch_rows)
            };
            let at = Stopwatch::start();
            let (terms, mut sink) = (QueryTerms::new(), CountSink::default());
            let end = catch_unwind(AssertUnwindSafe(|| {
                execute_streaming(&plan, snapshot, &options, &terms, &mut sink)
            }));
            let Ok(end) = end else {
                panic!("seed {seed} panicked: {:#?}", plan.root);
            };
            // An operator may find that a column it needs is missing, and say so. Other internal errors are bugs, such
            // as an index out of range.
            if let Err(Error::Internal(said)) = end {
                assert!(
                    said.contains("invariant violated") || said.contains("unreachable code"),
                    "seed {seed}: {said}\n{:#?}",
                    plan.root
                );
            }
            let time = at.elapsed();
            assert!(time < 10 * LIMIT, "seed {seed}: {time:?}\n{:#?}", plan.root);
            drop(terms);
            assert_eq!(memory.used(), 0, "seed {seed}: {:#?}", plan.root);
        }
    }
    ran
}

#[test]
fn odd_steps_do_no_harm() {
    let ran = run_odd(1..13, 60);
    assert!(ran > 150, "{ran} plans were run");
}
