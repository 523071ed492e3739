//! Failures of connections, other servers and memory during queries that run in parts at shards.

use super::peers::Places;
use super::{Shards, hashed, wide};
use crate::support::within;
use jindou_cluster::shards::ShardRequest;
use jindou_engine::{CollectSink, ExecOptions, ShardMode};
use jindou_model::{Error, MemoryBudget, Result};
use jindou_testing::{Stopwatch, answer};
use oxrdf::Quad;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

pub fn some_shards(data: &[Quad], shards: u32, threads: usize) -> Shards {
    Shards::new(data, hashed(shards), 0, threads)
}

pub fn run(shards: &Shards, text: &str, mode: ShardMode, options: &ExecOptions) -> Result<usize> {
    let plan = shards.plan(text);
    let mut sink = CollectSink::default();
    shards.run(&plan, mode, options, &mut sink)?;
    Ok(sink.rows)
}

/// Tags of messages, at byte 12: after the query's name.
const REPORT: u8 = 3;
const FAILED: u8 = 4;

pub fn tag(request: &ShardRequest) -> Option<u8> {
    match request {
        ShardRequest::Post(bytes) => bytes.get(12).copied(),
        _ => None,
    }
}

const TRIANGLES: &str = "PREFIX : <http://e/> SELECT * { ?a :p ?b . ?b :p ?c . ?a :p ?c }";

/// If a part cannot read a list, the query fails, since the rows that the part has produced are incomplete.
#[test]
fn a_list_that_a_part_cannot_read_fails_the_query() {
    let data = wide(60);
    let shards = some_shards(&data, 4, 1);
    let want = answer(&data, TRIANGLES).unwrap().bag().len();
    let (mut failures, mut wrong) = (0, 0);
    for mode in [ShardMode::Fork, ShardMode::Dynamic] {
        for at in 0..20 {
            let lists = AtomicI64::new(at);
            shards.watch(move |all| {
                // Delay the message about the failure, so that the incomplete rows could arrive first.
                if tag(&all[0].1) == Some(FAILED) {
                    std::thread::sleep(Duration::from_millis(30));
                }
                let is_list = tag(&all[0].1).is_none();
                if is_list && lists.fetch_sub(1, Ordering::SeqCst) == 0 {
                    return Err(Error::shard(all[0].0, "it is away"));
                }
                Ok(())
            });
            match run(&shards, TRIANGLES, mode, &within(Duration::from_secs(20))) {
                Ok(rows) => wrong += usize::from(rows != want),
                Err(Error::Shard { .. }) => failures += 1,
                Err(e) => panic!("list {at}: {e}"),
            }
            shards.unwatch();
            shards.is_left_clean();
        }
    }
    assert_eq!(wrong, 0);
    assert!(failures > 4, "{failures} failed");
}

/// The coordinator reaches a part, but the part's messages do not reach the coordinator: the query fails within
/// seconds.
#[test]
fn a_part_that_cannot_be_heard_fails_the_query() {
    let data = wide(60);
    let shards = some_shards(&data, 3, 1);
    shards.watch(|all| {
        let mut tags = all.iter().map(|r| tag(&r.1));
        match tags.any(|tag| matches!(tag, Some(REPORT | FAILED))) {
            true => Err(Error::shard(all[0].0, "it is away")),
            false => Ok(()),
        }
    });
    let begun = Stopwatch::start();
    let options = within(Duration::from_secs(20));
    let got = run(&shards, TRIANGLES, ShardMode::Fork, &options);
    assert!(matches!(got, Err(Error::Shard { .. })), "{got:?}");
    let time = begun.elapsed();
    assert!(time < Duration::from_secs(4), "{time:?}");
    shards.unwatch();
    shards.is_left_clean();
}

/// If a worker panics, it gives up its place in the pool, and the query fails.
#[test]
fn a_worker_that_panics_gives_its_place_back() {
    let data = wide(60);
    const MANY: usize = 1000;
    let pool = Arc::new(Places::new(MANY));
    let shards = Shards::in_places(&data, hashed(3), 0, 2, Arc::<Places>::clone(&pool));
    shards.watch(|all| {
        let is_part = std::thread::current().name() == Some("jindou-part");
        let is_failure = tag(&all[0].1) == Some(FAILED);
        assert!(!is_part || is_failure, "a list of a part");
        Ok(())
    });
    let options = within(Duration::from_secs(20));
    let got = run(&shards, TRIANGLES, ShardMode::Fork, &options);
    assert!(matches!(got, Err(Error::Internal(_))), "{got:?}");
    shards.unwatch();
    shards.is_left_clean();
    let begun = Instant::now();
    while pool.free() < MANY && begun.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(pool.free(), MANY);
}

/// A part keeps rows to remove duplicates only as far as there is memory. With less, it sends duplicates, or the query
/// fails.
#[test]
fn distinct_rows_end_or_come_with_any_memory() {
    let data = wide(400);
    let shards = some_shards(&data, 3, 1);
    let text = "PREFIX : <http://e/> SELECT DISTINCT ?a ?b ?c { ?a :p ?b . ?b :p ?c }";
    let want = answer(&data, text).unwrap().bag().len();
    let (mut refused, mut done) = (0, 0);
    for kib in (16..400).step_by(8) {
        let options = ExecOptions {
            memory: MemoryBudget::new(kib << 10),
            ..within(Duration::from_secs(5))
        };
        match run(&shards, text, ShardMode::Fork, &options) {
            Ok(rows) => {
                assert_eq!(rows, want, "{kib} KiB");
                done += 1;
            }
            Err(Error::Limit(_)) => refused += 1,
            Err(e) => panic!("{kib} KiB: {e}"),
        }
        shards.is_left_clean();
    }
    assert!(refused > 0, "{refused} refused, {done} done");
}
