//! Servers that send invalid messages, many queries on few places, and starts of every size.

use super::faults::{run, some_shards, tag};
use super::{MODES, Shards, hashed, wide};
use crate::support::within;
use jindou_cluster::shards::ShardRequest;
use jindou_engine::{ExecOptions, Main, ShardMode, Sink, WorkerPool};
use jindou_graph::shard::Posts;
use jindou_model::{CancelToken, Error, MemoryBudget, Result};
use jindou_testing::{Rng, Stopwatch, answer, named, quads, query, triple};
use oxrdf::Quad;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const BEGIN: u8 = 0;
const START: u8 = 1;
const RUN: u8 = 7;

const CHAIN: &str = "PREFIX : <http://e/> SELECT * { ?a :p ?b . ?b :p ?c . ?c a :C1 }";

/// A number of a message, of one, four or eight bytes.
#[derive(Clone, Copy)]
enum Number {
    Byte(u8),
    Short(u32),
    Long(u64),
}

use Number::{Byte, Long, Short};

/// The bytes of a message: the query's name, a tag, and numbers.
fn said(name: &[u8], tag: u8, numbers: &[Number]) -> Vec<u8> {
    let mut bytes = [name, &[tag]].concat();
    for number in numbers {
        match number {
            Byte(n) => bytes.push(*n),
            Short(n) => bytes.extend(n.to_le_bytes()),
            Long(n) => bytes.extend(n.to_le_bytes()),
        }
    }
    bytes
}

/// Messages that a faulty server which knows a query's name may send to a part or to the coordinator.
fn odd_messages(name: &[u8], begin: &[u8]) -> Vec<Vec<u8>> {
    let said = |tag, numbers: &[Number]| said(name, tag, numbers);
    let report = |numbers: &[Number], counts: &[Number]| said(3, &[numbers, counts].concat());
    let (zero, all, last) = (Long(0), Long(u64::MAX), Short(u32::MAX));
    let none: &[Number] = &[zero; 7];
    let two_columns = [
        Long(9),
        Short(2),
        Long(1),
        Short(2),
        Long(1),
        Short(0),
        Long(1),
        Short(u32::MAX - 1),
    ];
    let row_of_five = [Short(9), zero, zero, Long(1), Short(1), Long(1), Short(5)];
    let unknown_sender = [last, Long(1), Long(3), Long(1), Long(4), zero, Short(0)];
    vec![
        begin.to_vec(),
        said(1, &[Long(7), Byte(0)]),
        said(1, &[Long(7), Byte(1)]),
        // Messages with rows: number, step, number of rows, columns.
        said(2, &[Long(9), Short(1), all, Short(0)]),
        said(2, &[Long(9), Short(0), Long(1), Short(0)]),
        said(2, &[Long(9), last, zero, Short(0)]),
        said(2, &[Long(9), Short(1), Long(1), Short(1), Long(1), last]),
        said(2, &two_columns),
        // Reports: numbers of processed messages, numbers of sent messages, rows, columns, counts.
        report(&[Short(0), zero, zero, all, Short(0)], none),
        report(&row_of_five, none),
        report(&[Short(1), zero, zero, zero, Short(0), Long(2)], &[all; 20]),
        report(&unknown_sender, none),
        said(5, &[]),
        said(6, &[]),
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
        shards.watch(move |all| {
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
        });
        let begun = Stopwatch::start();
        let options = within(Duration::from_millis(500));
        let got = run(&shards, CHAIN, ShardMode::Fork, &options);
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
        let time = begun.elapsed();
        assert!(time < Duration::from_secs(3), "message {at} to {to}");
        shards.unwatch();
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
    shards.watch(move |all| {
        if let (Some(BEGIN), ShardRequest::Post(bytes)) = (tag(&all[0].1), &all[0].1) {
            *seen.lock().unwrap() = bytes.clone();
        }
        Ok(())
    });
    run(&shards, CHAIN, ShardMode::Fork, &ExecOptions::default()).unwrap();
    let mut begin = begin.lock().unwrap().clone();
    // Change the query's number, so that the message begins a part of another query.
    begin[4] ^= 0x55;
    let end = said(&begin[..12], 6, &[]);
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
pub struct Places {
    free: Mutex<usize>,
    wake: Condvar,
}

impl Places {
    pub fn new(places: usize) -> Self {
        Self {
            free: Mutex::new(places),
            wake: Condvar::new(),
        }
    }

    pub fn free(&self) -> usize {
        *self.free.lock().unwrap()
    }
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
            let waited = self.wake.wait_timeout(free, Duration::from_millis(5));
            free = waited.unwrap().0;
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
    let pool = Arc::new(Places::new(1));
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
                    let (got, _) = got.unwrap_or_else(|e| panic!("{mode:?}: {}\n{e}", q.text));
                    let got = got.bag();
                    let is_right = got.len() == want.len() && (q.counts_only || got == *want);
                    assert!(is_right, "{}", q.text);
                }
            });
        }
    });
    shards.is_left_clean();
    assert_eq!(pool.free(), 1);
}

/// A graph with a hub whose list is divided into pages if it is long. Most of the next edges are on other shards.
fn hub(leaves: usize) -> Vec<Quad> {
    let mut out = Vec::new();
    for i in 0..leaves {
        let leaf = format!("l{i}");
        out.push(triple("hub", "p", named(&leaf)));
        out.push(triple(&leaf, "q", named(&format!("o{}", i % 3))));
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
    let (plan, mut sink) = (shards.plan(text), Slow(0));
    let options = ExecOptions {
        memory: MemoryBudget::new(3 << 20),
        ..within(Duration::from_secs(60))
    };
    let ran = shards.run(&plan, ShardMode::Fork, &options, &mut sink);
    ran.unwrap();
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
            shards.watch(move |all| {
                let is_told = seen.load(Ordering::SeqCst);
                match tag(&all[0].1) {
                    Some(RUN) => seen.store(true, Ordering::SeqCst),
                    None if is_told && lists.swap(false, Ordering::SeqCst) => {
                        std::thread::sleep(Duration::from_millis(300));
                    }
                    _ => {}
                }
                Ok(())
            });
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
        shards.unwatch();
    }
    assert!(there > 0 && declined > 0, "{there}, {declined} declined");
    shards.is_left_clean();
}
