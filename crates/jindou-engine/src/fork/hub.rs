//! All parts of queries in one process, and the queries that the process coordinates. The hub receives messages of
//! other servers and passes each to the part or coordinated query that it is for.

mod bound;
mod execute;
mod observe;

use super::gather::{GatheredRows, Gathering, NO_FIT};
use super::line::layouts;
use super::message::{
    Columns, PartAnswer, PartFailure, PartMessage, PartProgram, PartReport, QueryName, ShardMode,
    put, put_answer, read, read_answer,
};
use super::part::{QueryPart, failure};
use super::route::{Starts, costs, is_forkable, starts};
use super::run_now::{own_terms, run_now};
use crate::executor::{Executor, Needs, PulledRows, Ready, Task};
use crate::options::WorkerPool;
use crate::sink::Sink;
use jindou_graph::Graph;
use jindou_graph::shard::{Far, Posts};
use jindou_model::sync::{lock, read as read_lock, write as write_lock};
use jindou_model::{CancelToken, Charge, Error, Holder, MemoryBudget, Result};
use jindou_plan::wire::is_exploration;
use jindou_plan::{Slot, Step};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};
use std::time::{Duration, Instant};

pub use execute::ForkExecutor;
pub use observe::{Activity, Observer, Told};

/// Largest number of parts in a process.
const PARTS: usize = 4096;
/// Largest number of light explorations that are executed for other servers at the same time.
const RUNS: usize = 2;
/// Time limit of a light exploration for another server, since it occupies one of the few threads that handle messages.
const RUN_TIME: Duration = Duration::from_millis(250);
/// Number of parts remembered as ended before they began: `End` may arrive before `Begin`, which must then start
/// nothing.
const ENDED: usize = 1024;
/// Idle time after which a part asks whether its query still exists, and the shortest time between two such sweeps.
const FORGOTTEN: Duration = Duration::from_secs(10);
/// Assumed nanoseconds of a round trip to another server, until one was measured.
const FIRST_ROUND: u64 = 100_000;
/// Messages of at most this many bytes are accepted even if there is not enough memory for them.
const SHORT: usize = 4096;
/// Bytes that a message counts in addition to its content, for the profile.
const HEAD: u64 = 16;

/// Access to the shards of this process.
///
/// An opened shard serves one query, which may read it on any number of threads. If a read from another shard fails,
/// that query's token is cancelled; later queries are not affected. All shards must come from the same load.
pub trait LocalShards: Send + Sync {
    /// Opens a shard for one query, with access to the other shards. The query reads `state`, a snapshot over which it
    /// is coordinated; without one, the shard as it was loaded. The returned token is cancelled when `cancel` is, and
    /// when a read from another shard fails.
    ///
    /// # Errors
    /// [`Error::Shard`] for a shard that is not in this process.
    fn open(
        &self,
        shard: u32,
        state: Option<&dyn Graph>,
        cancel: CancelToken,
    ) -> Result<(Arc<dyn Graph>, CancelToken)>;

    /// The number that names a snapshot to other servers; `None` if they do not have the snapshot, so that no part can
    /// run there.
    fn name_of(&self, graph: &dyn Graph) -> Option<u64> {
        Some(graph.identity().version)
    }

    /// The snapshot with this number, if this process has it for queries that other servers coordinate.
    fn state(&self, name: u64) -> Option<Arc<dyn Graph>> {
        let _ = name;
        None
    }
}

/// A snapshot over which queries are starting, and the number of these queries.
struct KeptGraph {
    graph: Arc<dyn Graph>,
    queries: usize,
}

/// Keeps a snapshot in [`HubState::kept`] while the parts of a query are being opened.
struct KeptState<'h> {
    hub: &'h HubState,
    name: u64,
}

impl Drop for KeptState<'_> {
    fn drop(&mut self) {
        let mut kept = lock(&self.hub.kept);
        if let Entry::Occupied(mut entry) = kept.entry(self.name) {
            entry.get_mut().queries -= 1;
            if entry.get().queries == 0 {
                entry.remove();
            }
        }
    }
}

/// The parts of queries in a process.
#[derive(Default)]
struct ProcessParts {
    open: FxHashMap<(QueryName, u32), Arc<QueryPart>>,
    /// Parts whose end arrived before their beginning.
    ended: VecDeque<(QueryName, u32)>,
}

/// The parts in this process, and the queries that it coordinates.
pub(crate) struct HubState {
    shards: Box<dyn LocalShards>,
    /// The shard at which this process's queries are coordinated.
    home: u32,
    far: RwLock<Option<Weak<dyn Far>>>,
    /// For queries bound to one of several servers per shard, their connections, by the query's number.
    bound: Mutex<FxHashMap<u64, Arc<dyn Far>>>,
    /// Snapshots for whose queries parts are being opened, by [name](LocalShards::name_of).
    kept: Mutex<FxHashMap<u64, KeptGraph>>,
    parts: Mutex<ProcessParts>,
    gatherings: Mutex<FxHashMap<QueryName, Arc<Gathering>>>,
    pub memory: MemoryBudget,
    pub pool: Arc<dyn WorkerPool>,
    /// Largest number of workers per part.
    pub threads: usize,
    next: AtomicU64,
    runs: AtomicUsize,
    /// Mean nanoseconds of a round trip to another shard.
    round: AtomicU64,
    swept: Mutex<Instant>,
    observer: OnceLock<Arc<dyn Observer>>,
}

impl HubState {
    /// A message number that is unique in the cluster with high probability: a counter with a random start.
    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Estimated nanoseconds of a round trip to another shard.
    pub fn round(&self) -> f64 {
        self.round.load(Ordering::Relaxed) as f64
    }

    /// Estimated nanoseconds of a round trip to another shard, and of reading an edge list from another server.
    pub fn waits(&self) -> [f64; 2] {
        let round = self.round();
        let reading = self.far().and_then(|far| far.reading());
        [round, reading.map_or(round, |list| list.min(round))]
    }

    fn measured(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let before = self.round.load(Ordering::Relaxed);
        // Moving average with weight 1/8. A sample is limited to eight times the mean, so that one long delay cannot
        // dominate.
        let time = time.min(before.saturating_mul(8));
        self.round
            .store(before - before / 8 + time / 8, Ordering::Relaxed);
    }

    /// The connection to other shards; `None` once it is closed.
    fn far(&self) -> Option<Arc<dyn Far>> {
        read_lock(&self.far).as_ref().and_then(Weak::upgrade)
    }

    pub fn link(&self, query: QueryName, shard: u32) -> Result<u64> {
        self.far_of(query, shard)?.link(shard)
    }

    /// Sends a message from one shard to another, or to itself; returns the answer, and the number of bytes sent.
    pub fn post(
        self: &Arc<Self>,
        query: QueryName,
        [from, to]: [u32; 2],
        message: PartMessage,
        cancel: &CancelToken,
    ) -> Result<(PartAnswer, u64)> {
        let mut answers = self.posts(query, from, vec![(to, message)], cancel)?;
        let (_, answer, bytes) = answers
            .pop()
            .ok_or_else(|| Error::shard(to, "it did not answer"))?;
        Ok((answer, bytes))
    }

    /// Sends messages from a shard to shards in one round trip; those to the sender itself are handled at once. Returns
    /// the shard, answer and bytes sent of each.
    pub fn posts(
        self: &Arc<Self>,
        query: QueryName,
        from: u32,
        messages: Vec<(u32, PartMessage)>,
        cancel: &CancelToken,
    ) -> Result<Vec<(u32, PartAnswer, u64)>> {
        let (own, others): (Vec<_>, Vec<_>) = messages.into_iter().partition(|m| m.0 == from);
        let sent: Vec<(u32, Vec<u8>)> = others
            .iter()
            .map(|(shard, m)| (*shard, put(query, m)))
            .collect();
        // Messages that take long to process are not used to measure the round trip.
        let is_short = |m: &PartMessage| !matches!(m, PartMessage::Begin(_) | PartMessage::Run(_));
        let is_short = others.iter().all(|(_, m)| is_short(m));
        let mut answers = Vec::with_capacity(own.len() + sent.len());
        for (shard, message) in own {
            self.sends(query, [from, shard], &message);
            answers.push((shard, self.answered(shard, query, message), 0));
        }
        if sent.is_empty() {
            return Ok(answers);
        }
        for (shard, message) in &others {
            self.sends(query, [from, *shard], message);
        }
        drop(others);
        let to: Vec<(u32, u64)> = sent
            .iter()
            .map(|(s, m)| (*s, HEAD + m.len() as u64))
            .collect();
        let begun = Instant::now();
        let far = self.far_of(query, to[0].0)?;
        let replies = far.post(sent, &cancel.unwatched())?;
        if is_short {
            self.measured(begun.elapsed());
        }
        for ((shard, bytes), reply) in to.into_iter().zip(replies) {
            let answer = read_answer(&reply)
                .ok_or_else(|| Error::shard(shard, "its answer does not match its request"))?;
            answers.push((shard, answer, bytes));
        }
        Ok(answers)
    }

    /// Tells all shards that a query has ended. Errors are ignored: a shard that misses this ends its part later
    /// (`sweep`).
    pub fn end_all(&self, query: QueryName, cancel: &CancelToken) {
        let message = &PartMessage::End;
        let far = self.far_of(query, query.home);
        self.end(query, query.home);
        let Ok(far) = far else { return };
        let shards = self.shard_count();
        let one = |s: u32| (s, put(query, message));
        let others = (0..shards).filter(|&s| s != query.home);
        if far.post(others.clone().map(one).collect(), cancel).is_err() {
            // One by one, so that an unreachable shard does not keep the message from the other shards.
            for s in others {
                let _ = far.post(vec![one(s)], cancel);
            }
        }
    }

    /// Keeps a graph under its name until the returned value is dropped, so that `open` finds it for the parts of a
    /// query.
    fn keep(&self, graph: Arc<dyn Graph>, name: u64) -> KeptState<'_> {
        let mut kept = lock(&self.kept);
        let entry = kept.entry(name);
        entry.or_insert(KeptGraph { graph, queries: 0 }).queries += 1;
        KeptState { hub: self, name }
    }

    fn shard_count(&self) -> u32 {
        let graph = self.shards.open(self.home, None, CancelToken::new());
        graph.map_or(0, |(g, _)| {
            g.as_sharded().map_or(0, |s| s.blocks().shards())
        })
    }

    /// Tells the coordinator that a part failed.
    pub fn fail(self: &Arc<Self>, part: &QueryPart, error: &Error) {
        let cancel = CancelToken::with_deadline(Duration::from_secs(1));
        let message = PartMessage::Failed(failure(part, error));
        // A coordinator that this message does not reach notices the missing part itself (`Gathering::check_parts`).
        let _ = self.post(part.query, [part.shard, part.query.home], message, &cancel);
    }

    /// Removes a query that this process coordinated.
    pub fn forget(&self, query: QueryName) {
        lock(&self.gatherings).remove(&query);
        self.unbind(query);
    }

    fn part(&self, query: QueryName, shard: u32) -> Option<Arc<QueryPart>> {
        lock(&self.parts).open.get(&(query, shard)).cloned()
    }

    fn gathering(&self, query: QueryName) -> Option<Arc<Gathering>> {
        lock(&self.gatherings).get(&query).cloned()
    }

    fn begin(
        self: &Arc<Self>,
        query: QueryName,
        shard: u32,
        program: PartProgram,
    ) -> Result<PartAnswer> {
        let steps = read_steps(&program, shard)?;
        let cancel = token(&program);
        let Some(opened) = self.open(shard, &program, cancel)? else {
            return Ok(PartAnswer::Declined);
        };
        let servers = program.servers.clone();
        let part = QueryPart::new(query, shard, program, steps, opened, Arc::clone(self))?;
        let mut parts = lock(&self.parts);
        if parts.ended.contains(&(query, shard)) {
            return Ok(PartAnswer::Unknown);
        }
        if parts.open.contains_key(&(query, shard)) {
            return Err(Error::shard(shard, "a part of a query was started twice"));
        }
        if parts.open.len() >= PARTS {
            let text = format!("the server already runs {PARTS} parts of queries; try again");
            return Err(Error::Busy(jindou_model::Limit::new(
                jindou_model::Resource::Threads,
                text,
            )));
        }
        parts.open.insert((query, shard), Arc::new(part));
        drop(parts);
        // Only now: while the part is open, `unbind` keeps the query's servers even if another part of the query ends.
        if self.adopt(query, &servers).is_err() {
            // This server does not reach all servers of the query (not yet, or no longer).
            self.end(query, shard);
            return Ok(PartAnswer::Declined);
        }
        Ok(PartAnswer::Taken(0))
    }

    /// Ends idle parts whose query no longer exists, since the coordinator's `End` message was lost.
    fn sweep(self: &Arc<Self>) {
        {
            let mut swept = lock(&self.swept);
            if swept.elapsed() < FORGOTTEN {
                return;
            }
            *swept = Instant::now();
        }
        let idle: Vec<Arc<QueryPart>> = lock(&self.parts)
            .open
            .values()
            .filter(|p| p.idle_for().is_some_and(|t| t > FORGOTTEN))
            .cloned()
            .collect();
        if idle.is_empty() {
            return;
        }
        let hub = Arc::clone(self);
        // On a separate thread, since this one handles messages and must not wait for other servers.
        let asking = std::thread::Builder::new().name("jindou-sweep".into());
        let _ = asking.spawn(move || {
            for part in idle {
                let cancel = CancelToken::with_deadline(Duration::from_secs(1));
                let way = [part.shard, part.query.home];
                let message = PartMessage::Report(PartReport::nothing(part.shard));
                let answer = hub.post(part.query, way, message, &cancel);
                // A coordinator that does not answer in time is asked again at the next sweep.
                if !matches!(
                    answer,
                    Ok((PartAnswer::Taken(_), _)) | Err(Error::Timeout(_))
                ) {
                    hub.end(part.query, part.shard);
                }
            }
        });
    }

    fn end(&self, query: QueryName, shard: u32) {
        let part = {
            let mut parts = lock(&self.parts);
            let part = parts.open.remove(&(query, shard));
            if part.is_none() {
                if parts.ended.len() >= ENDED {
                    parts.ended.pop_front();
                }
                parts.ended.push_back((query, shard));
            }
            part
        };
        if let Some(part) = part {
            part.end();
        }
        self.unbind(query);
    }

    /// Handles a message and returns the answer, which may be a failure.
    fn answered(
        self: &Arc<Self>,
        shard: u32,
        query: QueryName,
        message: PartMessage,
    ) -> PartAnswer {
        let answer = self.answer(shard, query, message);
        answer.unwrap_or_else(|e| PartAnswer::Failed(PartFailure::at_shard(&e, shard)))
    }

    fn answer(
        self: &Arc<Self>,
        shard: u32,
        query: QueryName,
        message: PartMessage,
    ) -> Result<PartAnswer> {
        Ok(match message {
            PartMessage::Begin(program) => {
                self.sweep();
                self.begin(query, shard, program)?
            }
            PartMessage::Start { number, alone } => match self.part(query, shard) {
                Some(part) => part.start(number, alone)?,
                None => PartAnswer::Unknown,
            },
            PartMessage::Rows { number, step, rows } => match self.part(query, shard) {
                Some(part) => part.take(number, step, rows)?,
                None => PartAnswer::Unknown,
            },
            PartMessage::Report(report) => match self.gathering(query) {
                Some(g) => g.report(report),
                None => PartAnswer::Unknown,
            },
            PartMessage::Failed(f) => match self.gathering(query) {
                Some(g) => {
                    g.fail(f);
                    PartAnswer::Taken(0)
                }
                None => PartAnswer::Unknown,
            },
            PartMessage::Waiting => match self.part(query, shard) {
                Some(part) => part.waiting(),
                None => PartAnswer::Unknown,
            },
            PartMessage::End => {
                self.end(query, shard);
                PartAnswer::Taken(0)
            }
            PartMessage::Run(program) => {
                let before = self.runs.fetch_add(1, Ordering::Relaxed);
                // Decrements the count on drop, so that a panic does not leave it too high.
                let _running = RunningLight(&self.runs);
                if before >= RUNS {
                    return Ok(PartAnswer::Declined);
                }
                self.run(shard, &program)?
            }
        })
    }

    fn run(&self, shard: u32, program: &PartProgram) -> Result<PartAnswer> {
        let steps = read_steps(program, shard)?;
        let (time, is_short) = match program.time {
            Some(left) if left <= RUN_TIME => (left, true),
            _ => (RUN_TIME, false),
        };
        let opened = self.open(shard, program, CancelToken::with_deadline(time))?;
        let Some((graph, cancel)) = opened else {
            return Ok(PartAnswer::Declined);
        };
        let memory = self.memory.part(program.memory);
        if let Some(sharded) = graph.as_sharded() {
            sharded.charge_to(&memory);
        }
        Ok(match run_now(&*graph, &steps, &cancel, &memory) {
            Ok(Some((rows, counts))) => {
                let terms = own_terms(&*graph, &rows);
                PartAnswer::Ran(rows, counts, terms)
            }
            Ok(None) => PartAnswer::Declined,
            // The time limit was this server's: the exploration is not as light as estimated. The coordinator runs it
            // otherwise.
            Err(Error::Timeout(_)) if !is_short => PartAnswer::Declined,
            Err(e) => return Err(e),
        })
    }
}

/// Decrements the number of running light explorations on drop.
struct RunningLight<'a>(&'a AtomicUsize);

impl Drop for RunningLight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn token(program: &PartProgram) -> CancelToken {
    match program.time {
        Some(left) => CancelToken::with_deadline(left),
        None => CancelToken::new(),
    }
}

/// Decodes the steps that another server sent to this shard.
fn read_steps(program: &PartProgram, shard: u32) -> Result<Vec<Step>> {
    let steps = jindou_plan::wire::steps(&program.steps);
    let steps = steps.filter(|steps| is_exploration(steps));
    steps.ok_or_else(|| Error::shard(shard, "steps of a query that cannot be decoded"))
}

/// The fork-join of a process (OSDI '16, §5.2): sends explorations to the shards that have their data, and handles
/// other servers' messages that do the same.
#[derive(Clone)]
pub struct Hub(Arc<HubState>);

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub")
            .field("home", &self.0.home)
            .finish_non_exhaustive()
    }
}

impl Hub {
    /// Creates a hub for queries coordinated at shard `home`. Its parts share `memory` and the places of `pool`; each
    /// part has at most `threads` threads.
    #[must_use]
    pub fn new(
        shards: Box<dyn LocalShards>,
        home: u32,
        memory: MemoryBudget,
        pool: Arc<dyn WorkerPool>,
        threads: usize,
    ) -> Self {
        // Message numbers must differ from those used before the server was restarted.
        let random = RandomState::new().hash_one(0u8);
        Self(Arc::new(HubState {
            shards,
            home,
            far: RwLock::default(),
            bound: Mutex::default(),
            kept: Mutex::default(),
            parts: Mutex::default(),
            gatherings: Mutex::default(),
            memory,
            pool,
            threads: threads.max(1),
            next: AtomicU64::new(random),
            runs: AtomicUsize::new(0),
            round: AtomicU64::new(FIRST_ROUND),
            swept: Mutex::new(Instant::now()),
            observer: OnceLock::new(),
        }))
    }

    /// Sets the connection to other shards for all later messages.
    pub fn connect(&self, far: &Arc<dyn Far>) {
        *write_lock(&self.0.far) = Some(Arc::downgrade(far));
    }

    /// An executor that runs queries in this mode: sending rows, requesting data, or choosing by cost.
    #[must_use]
    pub fn executor(&self, mode: ShardMode) -> ForkExecutor {
        ForkExecutor {
            hub: Arc::clone(&self.0),
            mode,
        }
    }

    /// Number of parts of queries in this process.
    #[must_use]
    pub fn parts(&self) -> usize {
        lock(&self.0.parts).open.len()
    }
}

impl Posts for Hub {
    fn take(&self, shard: u32, message: &[u8]) -> Result<Vec<u8>> {
        // Until its rows are charged to the query, a message is in memory twice: encoded and decoded. Short messages
        // are always accepted, since the end of a query releases memory.
        let mut read_twice = Charge::new(Holder::Shards, &self.0.memory);
        if message.len() > SHORT
            && let Err(e) = read_twice.add(2 * message.len() as u64)
        {
            return Ok(put_answer(&PartAnswer::Failed(PartFailure::at_shard(
                &e, shard,
            ))));
        }
        let (query, message) = read(message)
            .ok_or_else(|| Error::shard(shard, "it was sent an unreadable message"))?;
        Ok(put_answer(&self.0.answered(shard, query, message)))
    }
}
