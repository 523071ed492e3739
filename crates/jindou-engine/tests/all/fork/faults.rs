//! Failures of connections, other servers and memory during queries that run in parts at shards.

use super::{Shards, hashed, wide};
use jindou_cluster::shards::ShardRequest;
use jindou_engine::{CollectSink, ExecOptions, Main, ShardMode, WorkerPool};
use jindou_model::{CancelToken, Error, MemoryBudget, Result};
use jindou_testing::{Stopwatch, answer};
use oxrdf::Quad;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

pub fn some_shards(data: &[Quad], shards: u32, threads: usize) -> Shards {
    Shards::new(data, hashed(shards), 0, threads)
}

pub fn within(time: Duration) -> ExecOptions {
    ExecOptions {
        cancel: CancelToken::with_deadline(time),
        ..ExecOptions::default()
    }
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
            *shards.wire.look.lock().unwrap() =
                Some(Arc::new(move |all: &[(u32, ShardRequest)]| {
                    // Delay the message about the failure, so that the incomplete rows could arrive first.
                    if tag(&all[0].1) == Some(FAILED) {
                        std::thread::sleep(Duration::from_millis(30));
                    }
                    let is_list = tag(&all[0].1).is_none();
                    if is_list && lists.fetch_sub(1, Ordering::SeqCst) == 0 {
                        return Err(Error::shard(all[0].0, "it is away"));
                    }
                    Ok(())
                }));
            match run(&shards, TRIANGLES, mode, &within(Duration::from_secs(20))) {
                Ok(rows) => wrong += usize::from(rows != want),
                Err(Error::Shard { .. }) => failures += 1,
                Err(e) => panic!("list {at}: {e}"),
            }
            *shards.wire.look.lock().unwrap() = None;
            shards.is_left_clean();
        }
    }
    assert!(
        wrong == 0 && failures > 4,
        "{wrong} wrong, {failures} failed"
    );
}

/// The coordinator reaches a part, but the part's messages do not reach the coordinator: the query fails within
/// seconds.
#[test]
fn a_part_that_cannot_be_heard_fails_the_query() {
    let data = wide(60);
    let shards = some_shards(&data, 3, 1);
    *shards.wire.look.lock().unwrap() = Some(Arc::new(|all: &[(u32, ShardRequest)]| {
        match all
            .iter()
            .any(|r| matches!(tag(&r.1), Some(REPORT | FAILED)))
        {
            true => Err(Error::shard(all[0].0, "it is away")),
            false => Ok(()),
        }
    }));
    let begun = Stopwatch::start();
    let got = run(
        &shards,
        TRIANGLES,
        ShardMode::Fork,
        &within(Duration::from_secs(20)),
    );
    assert!(matches!(got, Err(Error::Shard { .. })), "{got:?}");
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
    *shards.wire.look.lock().unwrap() = None;
    shards.is_left_clean();
}

/// A pool that counts the threads which hold a place.
#[derive(Debug, Default)]
struct Counted(AtomicI64);

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

impl WorkerPool for Counted {
    fn work(&self, help: &(dyn Fn() + Sync), main: &mut Main<'_>) {
        let _ = help;
        main(&mut |_| {});
    }

    fn is_inside(&self) -> bool {
        INSIDE.get()
    }

    fn enter(&self, cancel: &CancelToken) -> Result<bool> {
        cancel.check()?;
        if INSIDE.replace(true) {
            return Ok(false);
        }
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(true)
    }

    fn leave(&self) {
        if INSIDE.replace(false) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// If a worker panics, it gives up its place in the pool, and the query fails.
#[test]
fn a_worker_that_panics_gives_its_place_back() {
    let data = wide(60);
    let pool = Arc::new(Counted::default());
    let shards = Shards::in_places(&data, hashed(3), 0, 2, Arc::<Counted>::clone(&pool));
    *shards.wire.look.lock().unwrap() = Some(Arc::new(|all: &[(u32, ShardRequest)]| {
        let is_part = std::thread::current().name() == Some("jindou-part");
        assert!(
            !is_part || tag(&all[0].1) == Some(FAILED),
            "a list of a part"
        );
        Ok(())
    }));
    let got = run(
        &shards,
        TRIANGLES,
        ShardMode::Fork,
        &within(Duration::from_secs(20)),
    );
    assert!(matches!(got, Err(Error::Internal(_))), "{got:?}");
    *shards.wire.look.lock().unwrap() = None;
    shards.is_left_clean();
    let begun = Instant::now();
    while pool.0.load(Ordering::SeqCst) > 0 && begun.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(pool.0.load(Ordering::SeqCst), 0);
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
