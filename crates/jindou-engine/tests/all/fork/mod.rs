//! Fork-join over shards that are open in this process. Compares random queries with `spareval`, with rows sent to the
//! data always, by cost, or never. Also tests shards that fail, vanish or forget a query, cancellation, limits, and
//! early ends. No part of a query may be left behind.

mod early;
mod faults;
mod heavy;
mod odd_steps;
mod peers;
mod shared_lists;
mod top;
mod top_costs;

use crate::edits::Edits;
use crate::support::{answer_of, in_memory, plan_of, sharding, within};
use jindou_cluster::shards::{
    InProcessShards, Reply, ShardClient, ShardRequest, post, snapshot_at_shard, snapshot_of_shard,
};
use jindou_cluster::testing::near_of_terms;
use jindou_engine::{
    CollectSink, ExecOptions, Execution, ExecutionOutcome, ExecutorChoice, Hub, LocalShards,
    QueryTerms, ShardMode, Sink, Spawned, WorkerPool,
};
use jindou_graph::Graph;
use jindou_graph::shard::{Far, Posts};
use jindou_model::{CancelToken, Charge, Error, Holder, MemoryBudget, Result};
use jindou_plan::Plan;
use jindou_store::shard::{Placement, Sharding};
use jindou_store::{Base, Snapshot, testing};
use jindou_testing::{
    Answer, Rng, Stopwatch, answer, from_environment, named, quads, query, triple,
};
use oxrdf::vocab::rdf;
use oxrdf::{GraphName, Literal, Quad};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

/// Called with each round of messages before it is sent. May make it fail, wait, or panic.
type Look = dyn Fn(&[(u32, ShardRequest)]) -> Result<()> + Send + Sync;

/// The connection between shards, which can be made to fail.
struct Wire {
    near: InProcessShards,
    /// Number of rounds before one fails; none fails if it is negative.
    left: AtomicI64,
    /// True if all messages fail.
    is_dead: AtomicBool,
    /// The number that identifies the connection to every shard.
    link: AtomicU64,
    /// Number of replies with lists as ids, and with lists as runs of ids.
    lists: [AtomicU64; 2],
    /// True if each round takes 20 ms longer.
    slow: AtomicBool,
    look: Mutex<Option<Arc<Look>>>,
}

impl ShardClient for Wire {
    fn ask(&self, requests: &[(u32, ShardRequest)], cancel: &CancelToken) -> Result<Vec<Reply>> {
        let away = || Err(Error::shard(requests[0].0, "it is away"));
        if self.is_dead.load(Ordering::SeqCst) {
            return away();
        }
        if self.slow.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let look = self.look.lock().unwrap().clone();
        if let Some(look) = look {
            look(requests)?;
        }
        if self.left.load(Ordering::SeqCst) >= 0 && self.left.fetch_sub(1, Ordering::SeqCst) == 0 {
            return away();
        }
        let replies = self.near.ask(requests, cancel)?;
        for reply in &replies {
            match reply {
                Reply::Lists { .. } => self.lists[0].fetch_add(1, Ordering::SeqCst),
                Reply::Runs { .. } => self.lists[1].fetch_add(1, Ordering::SeqCst),
                _ => 0,
            };
        }
        Ok(replies)
    }
}

impl Far for Wire {
    fn post(&self, messages: Vec<(u32, Vec<u8>)>, cancel: &CancelToken) -> Result<Vec<Vec<u8>>> {
        post(self, messages, cancel)
    }

    fn link(&self, _: u32) -> Result<u64> {
        Ok(self.link.load(Ordering::SeqCst))
    }
}

#[derive(Clone)]
struct Local {
    bases: Vec<Arc<Base>>,
    client: Arc<OnceLock<Weak<dyn ShardClient>>>,
}

impl LocalShards for Local {
    fn open(
        &self,
        shard: u32,
        state: Option<&dyn Graph>,
        cancel: CancelToken,
    ) -> Result<(Arc<dyn Graph>, CancelToken)> {
        let client = self.client.get().and_then(Weak::upgrade).unwrap();
        let base = Arc::clone(&self.bases[shard as usize]);
        let snapshot = snapshot_at_shard(state, base, client)?;
        snapshot.begin(&cancel);
        let cancel = cancel.watching(snapshot.watch());
        Ok((Arc::new(snapshot), cancel))
    }
}

/// The shards of one store, in this process. Queries are coordinated at one of them.
struct Shards {
    _folder: tempfile::TempDir,
    wire: Arc<Wire>,
    hub: Hub,
    snapshot: Snapshot,
    memory: MemoryBudget,
}

impl Shards {
    fn new(data: &[Quad], sharding: Sharding, own: u32, threads: usize) -> Self {
        Self::in_places(data, sharding, own, threads, Arc::new(Spawned))
    }

    fn in_places(
        data: &[Quad],
        sharding: Sharding,
        own: u32,
        threads: usize,
        pool: Arc<dyn WorkerPool>,
    ) -> Self {
        let terms: Vec<testing::TermQuad> = data.iter().map(testing::canonical).collect();
        let (folder, near) = near_of_terms(&terms, sharding);
        let near = near.expect("more than one shard");
        let local = Local {
            bases: near.shards().to_vec(),
            client: Arc::default(),
        };
        let memory = MemoryBudget::new(1 << 30);
        let hub = Hub::new(Box::new(local.clone()), own, memory.clone(), pool, threads);
        let base = Arc::clone(&near.shards()[own as usize]);
        let wire = Arc::new(Wire {
            near: near.with_posts(Arc::new(hub.clone())),
            left: AtomicI64::new(-1),
            is_dead: AtomicBool::new(false),
            link: AtomicU64::new(0),
            lists: Default::default(),
            slow: AtomicBool::new(false),
            look: Mutex::new(None),
        });
        let client: Arc<dyn ShardClient> = wire.clone();
        let far: Arc<dyn Far> = wire.clone();
        hub.connect(&far);
        local.client.set(Arc::downgrade(&client)).unwrap();
        Self {
            _folder: folder,
            snapshot: snapshot_of_shard(base, client).unwrap(),
            wire,
            hub,
            memory,
        }
    }

    fn plan(&self, text: &str) -> Plan {
        plan_of(&*self.snapshot.for_new_query(), text)
    }

    /// Calls this before each round of messages from now on.
    fn watch(&self, look: impl Fn(&[(u32, ShardRequest)]) -> Result<()> + Send + Sync + 'static) {
        *self.wire.look.lock().unwrap() = Some(Arc::new(look));
    }

    fn unwatch(&self) {
        *self.wire.look.lock().unwrap() = None;
    }

    fn run(
        &self,
        plan: &Plan,
        mode: ShardMode,
        options: &ExecOptions,
        sink: &mut dyn Sink,
    ) -> Result<ExecutionOutcome> {
        let snapshot = self.snapshot.for_new_query();
        let ran = self.stream(&snapshot, plan, mode, options, &QueryTerms::new(), sink)?;
        snapshot.check_shards()?;
        Ok(ran)
    }

    fn stream(
        &self,
        snapshot: &Snapshot,
        plan: &Plan,
        mode: ShardMode,
        options: &ExecOptions,
        terms: &QueryTerms,
        sink: &mut dyn Sink,
    ) -> Result<ExecutionOutcome> {
        snapshot.begin(&options.cancel);
        let options = ExecOptions {
            cancel: options.cancel.clone().watching(snapshot.watch()),
            ..options.clone()
        };
        let execution = Execution {
            plan,
            snapshot,
            options: &options,
            terms,
            executor: &ExecutorChoice::Shards(Arc::new(self.hub.executor(mode))),
        };
        execution.stream(sink)
    }

    fn answer(
        &self,
        text: &str,
        mode: ShardMode,
        options: &ExecOptions,
    ) -> Result<(Answer, ExecutionOutcome)> {
        let plan = self.plan(text);
        let (terms, mut sink) = (QueryTerms::new(), CollectSink::default());
        let snapshot = self.snapshot.for_new_query();
        let ran = self.stream(&snapshot, &plan, mode, options, &terms, &mut sink)?;
        let answer = answer_of(&plan.form, &*snapshot, &terms, &sink)?;
        snapshot.check_shards()?;
        Ok((answer, ran))
    }

    /// The answer of a query whose rows are sent to their data.
    fn forked(&self, text: &str) -> (Answer, ExecutionOutcome) {
        let answer = self.answer(text, ShardMode::Fork, &ExecOptions::default());
        answer.unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    /// Waits until all parts have ended and released their memory.
    fn is_left_clean(&self) {
        let begun = Instant::now();
        while (self.hub.parts() > 0 || self.memory.used() > 0)
            && begun.elapsed() < Duration::from_secs(10)
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(self.hub.parts(), 0, "parts are left");
        assert_eq!(self.memory.used(), 0, "memory is left");
    }
}

fn cut(rng: &mut Rng) -> (Sharding, u32) {
    sharding(rng, [Some(0), None, Some(1), Some(4)])
}

/// Shards by hash, with blocks that are as small as possible.
fn hashed(shards: u32) -> Sharding {
    Sharding::new(shards)
        .with_placement(Placement::Hash)
        .with_block_shift(Some(0))
}

const MODES: [ShardMode; 3] = [ShardMode::Fork, ShardMode::Dynamic, ShardMode::InPlace];

/// Runs random queries over random data in shards. Returns how many were compared, how many of them ran in parts, and
/// how many sent rows to other shards.
fn random(seeds: std::ops::Range<u64>, queries: usize, edited: bool) -> [usize; 3] {
    let [mut compared, mut parted, mut sent] = [0; 3];
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let data = quads(&mut rng);
        let (sharding, own) = cut(&mut rng);
        let threads = 1 + rng.below(3);
        let shards = if edited {
            let edits = Edits::to(&mut rng, &data, quads);
            let mut shards = Shards::new(&edits.first, sharding, own, threads);
            [_, shards.snapshot] = edits.apply(&mut rng, shards.snapshot.clone());
            shards
        } else {
            Shards::new(&data, sharding, own, threads)
        };
        for _ in 0..queries {
            let q = query(&mut rng, &data);
            let Ok(want) = answer(&data, &q.oracle) else {
                continue;
            };
            for mode in [ShardMode::Fork, MODES[rng.below(3)]] {
                let (got, ran) = shards
                    .answer(&q.text, mode, &ExecOptions::default())
                    .unwrap_or_else(|e| panic!("seed {seed}, {mode:?}: {}\n{e}", q.text));
                let (got, want) = (got.bag(), want.bag());
                let same = if q.counts_only {
                    got.len() == want.len()
                } else {
                    got == want
                };
                assert!(
                    same,
                    "seed {seed}, {mode:?}, {sharding:?} at {own}:\n{}\ngot {got:#?}\nwant {want:#?}",
                    q.text
                );
                parted += usize::from(!ran.details.is_empty());
                sent += usize::from(ran.details.contains("sent to their data"));
                compared += 1;
            }
        }
        shards.is_left_clean();
    }
    [compared, parted, sent]
}

#[test]
fn random_queries_over_shards() {
    let seed = from_environment("JINDOU_SEED", 1);
    let found = random(seed..seed + 20, 20, false);
    are_more(found, [600, 100, 5]);
}

/// Checks numbers that [`random`] returns.
fn are_more(found: [usize; 3], than: [usize; 3]) {
    println!("answers, run in parts, with rows that were sent: {found:?}");
    assert!(
        found.iter().zip(than).all(|(n, least)| *n > least),
        "{found:?}"
    );
}

#[test]
fn random_queries_over_changed_shards() {
    let found = random(7000..7030, 20, true);
    are_more(found, [900, 100, 5]);
}

/// A long test; docs/testing.md describes how to run it.
#[test]
#[ignore = "long: 20,000 random queries"]
fn many_random_queries_over_shards() {
    many_random_queries(false);
}

/// A long test; docs/testing.md describes how to run it.
#[test]
#[ignore = "long: 20,000 random queries"]
fn many_random_queries_over_changed_shards() {
    many_random_queries(true);
}

fn many_random_queries(edited: bool) {
    let seed = from_environment("JINDOU_SEED", 1000);
    let found = random(seed..seed + 500, 25, edited);
    are_more(found, [20_000, 3000, 200]);
}

/// A graph for queries with many rows on all shards.
fn wide(nodes: usize) -> Vec<Quad> {
    let mut out = Vec::new();
    for i in 0..nodes {
        let node = format!("n{i}");
        for j in 1..6 {
            let to = named(&format!("n{}", (i * 7 + j * 13) % nodes));
            out.push(triple(&node, "p", to));
        }
        let (default, class) = (GraphName::DefaultGraph, named(&format!("C{}", i % 3)));
        out.push(Quad::new(named(&node), rdf::TYPE, class, default));
        out.push(triple(&node, "v", Literal::from(i as i64 % 17)));
    }
    out
}

const FAR: &str = "PREFIX : <http://e/> SELECT * { ?a :p ?b . ?b :p ?c . ?c :p ?d . ?d a :C1 }";

fn wide_shards(shards: u32) -> (Vec<Quad>, Shards) {
    let data = wide(300);
    let shards = Shards::new(&data, hashed(shards), 1, 2);
    (data, shards)
}

/// Each round of messages of a query fails in turn. The query then fails with an error that names the shard, never
/// returns incomplete rows, and leaves nothing behind.
#[test]
fn a_message_that_fails_fails_the_query() {
    let (data, shards) = wide_shards(4);
    let text = "PREFIX : <http://e/> SELECT * { ?a a :C0 . ?a :p ?b . ?b :p ?c . ?c a :C1 }";
    let want = answer(&data, text).unwrap().bag();
    let mut failures = 0;
    for at in 0..4000 {
        let options = within(Duration::from_secs(20));
        // Planning also sends messages, which must not fail.
        let plan = shards.plan(text);
        shards.wire.left.store(at, Ordering::SeqCst);
        let mut sink = CollectSink::default();
        let got = shards.run(&plan, ShardMode::Fork, &options, &mut sink);
        let used_up = shards.wire.left.swap(-1, Ordering::SeqCst) < 0;
        match got {
            Ok(_) => assert_eq!(sink.rows, want.len(), "message {at}"),
            Err(Error::Shard { shard, .. }) => {
                assert!(shard < 4);
                failures += 1;
            }
            Err(e) => panic!("message {at}: {e}"),
        }
        shards.is_left_clean();
        if !used_up {
            break;
        }
    }
    assert!(failures > 10, "{failures} failures");
    let (got, _) = shards.forked(text);
    assert_eq!(got.bag(), want);
}

/// A server that was unreachable for a moment has lost its part, so the query fails within seconds, although all later
/// messages arrive.
#[test]
fn a_connection_that_was_made_again_fails_the_query() {
    let (data, shards) = wide_shards(3);
    let want = answer(&data, FAR).unwrap().bag();
    let plan = shards.plan(FAR);
    shards.wire.slow.store(true, Ordering::SeqCst);
    let begun = Stopwatch::start();
    let got = std::thread::scope(|s| {
        let query = s.spawn(|| {
            let mut sink = CollectSink::default();
            let done = shards.run(&plan, ShardMode::Fork, &ExecOptions::default(), &mut sink);
            done.map(|_| sink.rows)
        });
        while shards.hub.parts() < 3 {
            std::thread::sleep(Duration::from_millis(1));
        }
        shards.wire.link.store(1, Ordering::SeqCst);
        query.join().unwrap()
    });
    match got {
        // It may end before it looks at the connection again.
        Ok(rows) => assert_eq!(rows, want.len()),
        Err(e) => {
            assert!(matches!(e, Error::Shard { .. }), "{e}");
            assert!(begun.elapsed() < Duration::from_secs(3));
        }
    }
    shards.wire.slow.store(false, Ordering::SeqCst);
    shards.is_left_clean();
}

#[test]
fn queries_end_when_they_are_told_to() {
    let (_, shards) = wide_shards(3);
    let plan = shards.plan(FAR);
    shards.wire.slow.store(true, Ordering::SeqCst);
    // The query's deadline passes.
    let fork = |plan: &Plan, options: &ExecOptions| {
        let mut sink = CollectSink::default();
        let ran = shards.run(plan, ShardMode::Fork, options, &mut sink);
        ran.map(|_| sink.rows)
    };
    let begun = Stopwatch::start();
    let got = fork(&plan, &within(Duration::from_millis(50)));
    assert!(matches!(got, Err(Error::Timeout(_))), "{got:?}");
    assert!(begun.elapsed() < Duration::from_secs(2));
    shards.is_left_clean();
    // The caller cancels the query.
    let options = ExecOptions::default();
    let got = std::thread::scope(|s| {
        let query = s.spawn(|| fork(&plan, &options));
        while shards.hub.parts() < 3 {
            std::thread::sleep(Duration::from_millis(1));
        }
        options.cancel.cancel();
        query.join().unwrap()
    });
    assert!(matches!(got, Err(Error::Cancelled)), "{got:?}");
    shards.is_left_clean();
    // The query needs only a few rows.
    shards.wire.slow.store(false, Ordering::SeqCst);
    let few = shards.plan(&format!("{FAR} LIMIT 3"));
    assert_eq!(fork(&few, &ExecOptions::default()).unwrap(), 3);
    shards.is_left_clean();
    let ask = shards.plan("PREFIX : <http://e/> ASK { ?a :p ?b . ?b :p ?c . ?c a :C1 }");
    assert!(fork(&ask, &ExecOptions::default()).unwrap() > 0);
    shards.is_left_clean();
}

/// The memory of a query is limited at each shard and at the coordinator.
#[test]
fn memory_is_limited_at_every_shard() {
    let data = wide(3000);
    let shards = Shards::new(&data, hashed(3), 0, 2);
    let plan = shards.plan(FAR);
    let (mut refused, mut done) = (0, 0);
    for kib in [16, 64, 256, 1024, 65_536] {
        let mut sink = CollectSink::default();
        match shards.run(&plan, ShardMode::Fork, &in_memory(kib << 10), &mut sink) {
            Ok(_) => done += 1,
            Err(Error::Limit(_)) => refused += 1,
            Err(e) => panic!("{kib} KiB: {e}"),
        }
        shards.is_left_clean();
    }
    assert!(refused > 0 && done > 0, "{refused} refused, {done} done");
}

/// Rows that the query only counts or removes duplicates of are counted or removed at the parts, so fewer bytes are
/// sent.
#[test]
fn counts_and_distinct_rows_are_made_where_the_rows_are() {
    let (data, shards) = wide_shards(4);
    let count = "PREFIX : <http://e/> SELECT (COUNT(*) AS ?n) { ?a :p ?b . ?b :p ?c . ?c :p ?d . ?d a :C1 }";
    let distinct =
        "PREFIX : <http://e/> SELECT DISTINCT ?d { ?a :p ?b . ?b :p ?c . ?c :p ?d . ?d a :C1 }";
    let bytes = |ran: &ExecutionOutcome| top::sum(ran, " bytes");
    let (got, all) = shards.forked(FAR);
    assert_eq!(got.bag(), answer(&data, FAR).unwrap().bag());
    let grouped = |what: &str| {
        format!(
            "PREFIX : <http://e/> SELECT {what} {{ ?a :p ?b . ?b :p ?c . ?c :p ?d . ?d a :C1 ; :v ?v }}"
        )
    };
    let groups = [
        grouped("?d (COUNT(*) AS ?n)") + " GROUP BY ?d",
        grouped("?d (COUNT(?v) AS ?n) (COUNT(DISTINCT ?v) AS ?m)") + " GROUP BY ?d",
        grouped("?d (SUM(?v) AS ?s) (AVG(?v) AS ?m) (MIN(?v) AS ?l) (COUNT(?v) AS ?n)")
            + " GROUP BY ?d",
        grouped("?v (MAX(?d) AS ?m) (SUM(DISTINCT ?v) AS ?s)") + " GROUP BY ?v",
        grouped("(SUM(?v) AS ?s) (COUNT(*) AS ?n)"),
    ];
    let texts = groups.iter().map(String::as_str);
    for text in [count, distinct].into_iter().chain(texts) {
        let (got, ran) = shards.forked(text);
        assert_eq!(got.bag(), answer(&data, text).unwrap().bag(), "{text}");
        let (few, all) = (bytes(&ran), bytes(&all));
        assert!(few < all, "{text}: {few} of {all}");
    }
    shards.is_left_clean();
}

/// If the budget is nearly used up, long messages are rejected with an error about memory; short ones are still read.
#[test]
fn long_messages_have_memory_before_they_are_read() {
    let (_, shards) = wide_shards(3);
    let take = |length: usize| shards.hub.take(1, &vec![0xFF; length]);
    assert!(take(1 << 20).is_err(), "it cannot be read");
    let mut held = Charge::new(Holder::Shards, &shards.memory);
    held.add((1 << 30) - (1 << 20)).unwrap();
    let refused = String::from_utf8_lossy(&take(1 << 20).unwrap()).into_owned();
    assert!(refused.contains("memory"), "{refused}");
    assert!(take(100).is_err(), "a short one is read and found wrong");
    drop(held);
    assert!(take(1 << 20).is_err());
}

/// Bytes that are not a message, and messages for unknown queries, have no effect.
#[test]
fn messages_of_strangers_do_no_harm() {
    let (_, shards) = wide_shards(3);
    let mut rng = Rng::new(7);
    for _ in 0..2000 {
        let length = rng.below(60);
        let bytes: Vec<u8> = (0..length).map(|_| rng.below(256) as u8).collect();
        let _ = shards.hub.take(rng.below(4) as u32, &bytes);
    }
    let (got, _) = shards.forked(FAR);
    assert!(!got.bag().is_empty());
}
