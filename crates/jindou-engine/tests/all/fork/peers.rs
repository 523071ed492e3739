//! Servers that send invalid messages, many queries on few places, and starts of every size.

use super::faults::{run, some_shards, tag, within};
use super::{MODES, Shards, hashed, wide};
use jindou_cluster::shards::ShardRequest;
use jindou_engine::{ExecOptions, Main, ShardMode, Sink, WorkerPool};
use jindou_graph::shard::Posts;
use jindou_model::{CancelToken, Error, MemoryBudget, Result};
use jindou_testing::{Rng, Stopwatch, answer, quads, query};
use oxrdf::{GraphName, NamedNode, Quad};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const BEGIN: u8 = 0;
const START: u8 = 1;
const RUN: u8 = 7;

const CHAIN: &str = "PREFIX : <http://e/> SELECT * { ?a :p ?b . ?b :p ?c . ?c a :C1 }";

/// The bytes of a message: the query's name, a tag, and numbers of eight or four bytes.
struct Said(Vec<u8>);

impl Said {
    fn new(name: &[u8], tag: u8) -> Self {
        Self([name, &[tag]].concat())
    }

    fn long(mut self, all: &[u64]) -> Self {
        all.iter().for_each(|n| self.0.extend(n.to_le_bytes()));
        self
    }

    fn short(mut self, all: &[u32]) -> Self {
        all.iter().for_each(|n| self.0.extend(n.to_le_bytes()));
        self
    }
}

/// Messages that a faulty server which knows a query's name may send to a part or to the coordinator.
fn odd_messages(name: &[u8], begin: &[u8]) -> Vec<Vec<u8>> {
    let said = |tag| Said::new(name, tag);
    let report = |from| said(3).short(&[from]);
    let none = [0, 0];
    vec![
        begin.to_vec(),
        said(1).long(&[7]).0.into_iter().chain([0]).collect(),
        said(1).long(&[7]).0.into_iter().chain([1]).collect(),
        // Messages with rows: number, step, number of rows, columns.
        said(2)
            .long(&[9])
            .short(&[1])
            .long(&[u64::MAX])
            .short(&[0])
            .0,
        said(2).long(&[9]).short(&[0]).long(&[1]).short(&[0]).0,
        said(2)
            .long(&[9])
            .short(&[u32::MAX])
            .long(&[0])
            .short(&[0])
            .0,
        said(2)
            .long(&[9])
            .short(&[1])
            .long(&[1])
            .short(&[1])
            .long(&[1])
            .short(&[u32::MAX])
            .0,
        said(2)
            .long(&[9])
            .short(&[2])
            .long(&[1])
            .short(&[2])
            .long(&[1])
            .short(&[0])
            .long(&[1])
            .short(&[u32::MAX - 1])
            .0,
        // Reports: numbers of processed messages, numbers of sent messages, rows, columns, counts.
        report(0)
            .long(&none)
            .long(&[u64::MAX])
            .short(&[0])
            .long(&[0; 7])
            .0,
        report(9)
            .long(&none)
            .long(&[1])
            .short(&[1])
            .long(&[1])
            .short(&[5])
            .long(&[0; 7])
            .0,
        report(1)
            .long(&none)
            .long(&[0])
            .short(&[0])
            .long(&[2])
            .long(&[u64::MAX; 14])
            .long(&[u64::MAX; 6])
            .0,
        report(1)
            .long(&none)
            .long(&[0])
            .short(&[0])
            .long(&[2])
            .long(&[u64::MAX; 14])
            .long(&[u64::MAX; 6])
            .0,
        report(u32::MAX)
            .long(&[1, 3, 1, 4])
            .long(&[0])
            .short(&[0])
            .long(&[0; 7])
            .0,
        said(5).0,
        said(6).0,
    ]
}

/// Each of these messages is sent to each shard while the query runs. The query fails or has the right answer, and
/// leaves nothing behind.
#[test]
fn a_peer_may_say_anything() {
    let data = wide(200);
    let shards = Arc::new(some_shards(&data, 3, 2));
    let want = answer(&data, CHAIN).unwrap().bag().len();
    let count = odd_messages(&[0; 12], &[]).len();
    let (mut right, mut failed, mut odd) = (0, 0, Vec::new());
    for (to, at) in (0..3).flat_map(|to| (0..count).map(move |at| (to, at))) {
        let said = Arc::new(AtomicBool::new(false));
        let (hub, said_here) = (shards.hub.clone(), Arc::clone(&said));
        let begin = Mutex::new(Vec::new());
        *shards.wire.look.lock().unwrap() = Some(Arc::new(move |all: &[(u32, ShardRequest)]| {
            let ShardRequest::Post(bytes) = &all[0].1 else {
                return Ok(());
            };
            match bytes[12] {
                BEGIN => *begin.lock().unwrap() = bytes.clone(),
                // The part has begun, but has no work yet.
                START if !said_here.swap(true, Ordering::SeqCst) => {
                    let begin = begin.lock().unwrap().clone();
                    let odd = odd_messages(&bytes[..12], &begin);
                    let _ = hub.take(to, &odd[at]);
                }
                _ => {}
            }
            Ok(())
        }));
        let begun = Stopwatch::start();
        let got = run(
            &shards,
            CHAIN,
            ShardMode::Fork,
            &within(Duration::from_millis(500)),
        );
        assert!(said.load(Ordering::SeqCst));
        match got {
            Ok(rows) if rows == want => right += 1,
            Ok(rows) => odd.push((to, at, rows)),
            // After a report about a message that was never sent, the ledger never becomes balanced, and the time limit
            // ends the query.
            Err(Error::Timeout(_)) => failed += 1,
            Err(Error::Shard { .. } | Error::Internal(_) | Error::Cancelled) => failed += 1,
            Err(e) => panic!("message {at} to {to}: {e}"),
        }
        assert!(
            begun.elapsed() < Duration::from_secs(3),
            "message {at} to {to}"
        );
        *shards.wire.look.lock().unwrap() = None;
        shards.is_left_clean();
    }
    // Messages 6 and 7 have rows that fit the query; these are accepted, but the steps find no matches for them.
    assert!(odd.is_empty(), "{odd:?}, {want} rows");
    assert!(right > 10 && failed > 10, "{right} right, {failed} failed");
}

/// A part whose `End` message arrives before its `Begin` message, as may happen if a query ends while it begins.
#[test]
fn a_part_that_ended_before_it_began_is_not_begun() {
    let data = wide(60);
    let shards = some_shards(&data, 3, 1);
    let begin: Arc<Mutex<Vec<u8>>> = Arc::default();
    let seen = Arc::clone(&begin);
    *shards.wire.look.lock().unwrap() = Some(Arc::new(move |all: &[(u32, ShardRequest)]| {
        if let (Some(BEGIN), ShardRequest::Post(bytes)) = (tag(&all[0].1), &all[0].1) {
            *seen.lock().unwrap() = bytes.clone();
        }
        Ok(())
    }));
    run(&shards, CHAIN, ShardMode::Fork, &ExecOptions::default()).unwrap();
    let mut begin = begin.lock().unwrap().clone();
    // Change the query's number, so that the message begins a part of another query.
    begin[4] ^= 0x55;
    let end = Said::new(&begin[..12], 6).0;
    shards.hub.take(1, &end).unwrap();
    shards.hub.take(1, &begin).unwrap();
    assert_eq!(shards.hub.parts(), 0);
    shards.hub.take(2, &begin).unwrap();
    assert_eq!(shards.hub.parts(), 1);
    shards.hub.take(2, &end).unwrap();
    shards.is_left_clean();
}

/// A pool with a number of places. A thread holds at most one.
#[derive(Debug)]
struct Places {
    free: Mutex<usize>,
    wake: Condvar,
}

thread_local! {
    static HAS_PLACE: Cell<bool> = const { Cell::new(false) };
}

impl WorkerPool for Places {
    fn work(&self, _help: &(dyn Fn() + Sync), main: &mut Main<'_>) {
        main(&mut |_| {});
    }

    fn is_inside(&self) -> bool {
        HAS_PLACE.get()
    }

    fn enter(&self, cancel: &CancelToken) -> Result<bool> {
        if HAS_PLACE.get() {
            return Ok(false);
        }
        let mut free = self.free.lock().unwrap();
        while *free == 0 {
            cancel.check()?;
            free = self
                .wake
                .wait_timeout(free, Duration::from_millis(5))
                .unwrap()
                .0;
        }
        *free -= 1;
        HAS_PLACE.set(true);
        Ok(true)
    }

    fn leave(&self) {
        if HAS_PLACE.replace(false) {
            *self.free.lock().unwrap() += 1;
            self.wake.notify_one();
        }
    }
}

/// Many random queries run at once, and all their threads share one place: none waits for ever, and all answers are
/// right.
#[test]
fn queries_share_one_place() {
    let mut rng = Rng::new(4);
    let data = quads(&mut rng);
    let pool = Arc::new(Places {
        free: Mutex::new(1),
        wake: Condvar::new(),
    });
    let shards = Shards::in_places(&data, hashed(6), 2, 2, Arc::<Places>::clone(&pool));
    let asked: Vec<_> = (0..60)
        .filter_map(|_| {
            let q = query(&mut rng, &data);
            let want = answer(&data, &q.oracle).ok()?.bag();
            Some((q, want))
        })
        .collect();
    std::thread::scope(|s| {
        for part in 0..4usize {
            let (shards, pool, asked) = (&shards, &pool, &asked);
            s.spawn(move || {
                for (at, (q, want)) in asked.iter().enumerate().skip(part) {
                    let options = ExecOptions {
                        pool: Some(Arc::<Places>::clone(pool)),
                        ..within(Duration::from_secs(60))
                    };
                    let mode = MODES[(at + part) % 2];
                    let got = shards.answer(&q.text, mode, &options);
                    let got = got
                        .unwrap_or_else(|e| panic!("{mode:?}: {}\n{e}", q.text))
                        .0
                        .bag();
                    assert!(
                        got.len() == want.len() && (q.counts_only || got == *want),
                        "{}",
                        q.text
                    );
                }
            });
        }
    });
    shards.is_left_clean();
    assert_eq!(*pool.free.lock().unwrap(), 1);
}

/// A graph with a hub whose list is divided into pages if it is long. Most of the next edges are on other shards.
fn hub(leaves: usize) -> Vec<Quad> {
    let node = |s: String| NamedNode::new_unchecked(format!("http://e/{s}"));
    let mut out = Vec::new();
    for i in 0..leaves {
        let leaf = node(format!("l{i}"));
        out.push(Quad::new(
            node("hub".into()),
            node("p".into()),
            leaf.clone(),
            GraphName::DefaultGraph,
        ));
        out.push(Quad::new(
            leaf,
            node("q".into()),
            node(format!("o{}", i % 3)),
            GraphName::DefaultGraph,
        ));
    }
    out
}

/// Starts of less than a page, of exactly one, and of several; with enough memory for all rows at once, and without.
#[test]
fn a_start_at_a_hub_is_made_in_pages() {
    for leaves in [1, 3, 65_536, 65_537, 200_000] {
        let data = hub(leaves);
        let shards = some_shards(&data, 3, 2);
        let text = "PREFIX : <http://e/> SELECT * { :hub :p ?a . ?a :q ?b }";
        for mode in MODES {
            let rows = run(&shards, text, mode, &within(Duration::from_secs(60))).unwrap();
            assert_eq!(rows, leaves, "{mode:?}");
            shards.is_left_clean();
        }
        let options = ExecOptions {
            memory: MemoryBudget::new(6 << 20),
            ..within(Duration::from_secs(60))
        };
        let count = "PREFIX : <http://e/> SELECT (COUNT(*) AS ?n) { :hub :p ?a . ?a :q ?b }";
        assert_eq!(run(&shards, count, ShardMode::Fork, &options).unwrap(), 1);
        shards.is_left_clean();
    }
}

/// With far more shards than vertices, most shards have no data, and report that.
#[test]
fn most_shards_may_be_empty() {
    let data = wide(10);
    let want = answer(&data, CHAIN).unwrap().bag().len();
    let shards = some_shards(&data, 40, 1);
    for mode in MODES {
        let rows = run(&shards, CHAIN, mode, &within(Duration::from_secs(60))).unwrap();
        assert_eq!(rows, want, "{mode:?}");
        shards.is_left_clean();
    }
}

/// A sink that takes a while for each batch, like a reader at the end of a slow connection.
struct Slow(usize);

impl Sink for Slow {
    fn batch(&mut self, _columns: &[&[u32]], rows: usize) -> Result<()> {
        std::thread::sleep(Duration::from_micros(500));
        self.0 += rows;
        Ok(())
    }
}

/// A result several times as large as the query's memory, read slowly: parts wait for the coordinator, which waits for
/// the reader.
#[test]
fn a_long_result_is_taken_slowly_in_little_memory() {
    let data = wide(3000);
    let shards = some_shards(&data, 3, 2);
    let text = "PREFIX : <http://e/> SELECT * { ?a :p ?b . ?b :p ?c . ?c :p ?d }";
    let plan = shards.plan(text);
    let options = ExecOptions {
        memory: MemoryBudget::new(3 << 20),
        ..within(Duration::from_secs(60))
    };
    let mut sink = Slow(0);
    shards
        .run(&plan, ShardMode::Fork, &options, &mut sink)
        .unwrap();
    assert_eq!(sink.0, 3000 * 5 * 5 * 5);
    assert!(options.memory.peak() < 3 << 20);
    shards.is_left_clean();
}

/// An exploration that another shard is to run at once, but that takes too long there, is run by the coordinator
/// instead.
#[test]
fn a_light_exploration_that_takes_long_is_run_in_place() {
    let data = wide(60);
    let shards = some_shards(&data, 3, 1);
    let (mut there, mut declined) = (0, 0);
    for node in 0..6 {
        let text =
            format!("PREFIX : <http://e/> SELECT * {{ :n{node} :p ?b . ?b :p ?c . ?c :p ?d }}");
        let want = answer(&data, &text).unwrap().bag();
        for is_slow in [false, true] {
            // Delay the first list that the other shard requests after it was asked to run the exploration.
            let told = Arc::new(AtomicBool::new(false));
            let lists = AtomicBool::new(is_slow);
            let seen = Arc::clone(&told);
            *shards.wire.look.lock().unwrap() =
                Some(Arc::new(move |all: &[(u32, ShardRequest)]| {
                    match tag(&all[0].1) {
                        Some(RUN) => seen.store(true, Ordering::SeqCst),
                        None if seen.load(Ordering::SeqCst)
                            && lists.swap(false, Ordering::SeqCst) =>
                        {
                            std::thread::sleep(Duration::from_millis(300));
                        }
                        _ => {}
                    }
                    Ok(())
                }));
            let options = within(Duration::from_secs(20));
            let (got, ran) = shards.answer(&text, ShardMode::Dynamic, &options).unwrap();
            assert_eq!(got.bag(), want, "{text}");
            let is_there = ran.details.contains("run at shard");
            if told.load(Ordering::SeqCst) {
                assert_eq!(is_there, !is_slow, "{text}");
                there += usize::from(is_there);
                declined += usize::from(!is_there);
            }
        }
        *shards.wire.look.lock().unwrap() = None;
    }
    assert!(
        there > 0 && declined > 0,
        "{there} there, {declined} declined"
    );
    shards.is_left_clean();
}
