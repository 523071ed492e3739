//! Records a query over shards that are all in this process and work in turn: the processor time of every thread
//! between two messages, and the bytes and the work of each message.

use super::trace::{Job, Message, Op, PartTrace, Trace, TraceKind};
use jindou::{
    CancelToken, Database, OpenOptions, PlannedQuery, QueryOptions, Result, Runtime, ShardMode,
};
use jindou_cluster::shards::{Reply, ShardClient, ShardRequest, post};
use jindou_engine::{Activity, Observer, Told};
use jindou_graph::shard::Far;
use jindou_model::sync::lock;
use jindou_testing::thread_time;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Time that rounds under way have when a query has ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// One thread of a query.
struct Thread {
    /// Its processor time when it was last looked at.
    since: Duration,
    /// Its part's query and shard; none for the coordinator.
    part: Option<(u64, u32)>,
    /// The work of a part's thread at the moment.
    job: Option<(TraceKind, Option<u32>)>,
    /// Work that was done; of answers that are being made, the innermost last.
    done: Vec<Vec<Op>>,
    /// Numbers of the messages that are about to be sent.
    tells: VecDeque<Option<u32>>,
}

impl Thread {
    fn new(since: Duration, part: Option<(u64, u32)>) -> Self {
        Self {
            since,
            part,
            job: None,
            done: vec![Vec::new()],
            tells: VecDeque::new(),
        }
    }

    fn push(&mut self, op: Op) {
        if let Some(ops) = self.done.last_mut() {
            ops.push(op);
        }
    }

    /// Notes the time since the last look.
    fn look(&mut self) {
        let now = thread_time();
        let time = now.saturating_sub(self.since).as_nanos() as u64;
        self.since = now;
        if time > 0 {
            self.push(Op::Work(time));
        }
    }
}

#[derive(Default)]
struct RecorderState {
    running: bool,
    /// Rounds under way.
    asking: usize,
    home: u32,
    threads: FxHashMap<ThreadId, Thread>,
    parts: Vec<PartTrace>,
    /// Queries that were begun, so that a thread of an earlier one is known.
    queries: Vec<u64>,
    /// Numbers of messages with rows, as the trace counts them.
    numbers: FxHashMap<u64, u32>,
    /// By query and shard: the number of the message that starts it.
    starts: FxHashMap<(u64, u32), u32>,
    /// By number: the part that waits for it.
    waits: Vec<Option<u32>>,
    /// Reports that have rows which were not taken, and all that the coordinator has not waited for.
    reports: VecDeque<u32>,
    open: Vec<u32>,
    /// The place of the part of each query and shard.
    places: FxHashMap<(u64, u32), u32>,
}

impl RecorderState {
    fn next(&mut self) -> u32 {
        self.waits.push(None);
        self.waits.len() as u32 - 1
    }

    fn number(&mut self, of: u64) -> u32 {
        match self.numbers.get(&of) {
            Some(&n) => n,
            None => {
                let n = self.next();
                self.numbers.insert(of, n);
                n
            }
        }
    }

    fn place(&mut self, part: (u64, u32)) -> u32 {
        let next = self.parts.len() as u32;
        let place = *self.places.entry(part).or_insert(next);
        if place == next {
            self.parts.push(PartTrace {
                shard: part.1,
                jobs: Vec::new(),
            });
        }
        place
    }

    fn end_job(&mut self, id: ThreadId) {
        let Some(thread) = self.threads.get_mut(&id) else {
            return;
        };
        let (Some(part), Some((kind, cause))) = (thread.part, thread.job.take()) else {
            return;
        };
        let ops = thread.done.first_mut().map(std::mem::take);
        let place = self.place(part);
        if let Some(n) = cause
            && let Some(waits) = self.waits.get_mut(n as usize)
        {
            *waits = Some(place);
        }
        if let Some(to) = self.parts.get_mut(place as usize) {
            to.jobs.push(Job {
                kind,
                cause,
                ops: ops.unwrap_or_default(),
            });
        }
    }

    fn begins(&mut self, id: ThreadId, query: u64, shard: u32, work: Activity) {
        if !self.running || !self.queries.contains(&query) {
            return;
        }
        let kind = match work {
            Activity::Gathered | Activity::Over => return self.gathers(id, work),
            Activity::Idle => None,
            Activity::Rows(_) | Activity::Page => Some(TraceKind::Rows),
            Activity::Flush => Some(TraceKind::Flush),
        };
        let part = Some((query, shard));
        let thread = self.threads.entry(id);
        let thread = thread.or_insert_with(|| Thread::new(Duration::ZERO, part));
        if thread.part != part {
            return;
        }
        thread.look();
        // Time without a job is that of waking up: it belongs to the next one, and stays where it is.
        self.end_job(id);
        let cause = match work {
            Activity::Rows(number) => Some(self.number(number)),
            Activity::Page => self.starts.get(&(query, shard)).copied(),
            _ => None,
        };
        if let Some(thread) = self.threads.get_mut(&id) {
            thread.job = kind.map(|k| (k, cause));
        }
    }

    fn gathers(&mut self, id: ThreadId, work: Activity) {
        let wanted = match work {
            Activity::Gathered => self.reports.pop_front().into_iter().collect(),
            _ => std::mem::take(&mut self.open),
        };
        self.open.retain(|r| !wanted.contains(r));
        let Some(thread) = self.threads.get_mut(&id) else {
            return;
        };
        thread.look();
        wanted.into_iter().for_each(|r| thread.push(Op::Await(r)));
    }

    fn sends(&mut self, id: ThreadId, query: u64, [from, to]: [u32; 2], told: Told) {
        if !self.running || !self.threads.contains_key(&id) {
            return;
        }
        let number = match told {
            Told::Begin => {
                if !self.queries.contains(&query) {
                    self.queries.push(query);
                }
                None
            }
            Told::Start(n) => {
                let n = self.number(n);
                self.starts.insert((query, to), n);
                Some(n)
            }
            Told::Rows(n) => Some(self.number(n)),
            Told::Report { with_rows } => {
                let n = self.next();
                if with_rows {
                    self.reports.push_back(n);
                }
                self.open.push(n);
                Some(n)
            }
            Told::Other => None,
        };
        let Some(thread) = self.threads.get_mut(&id) else {
            return;
        };
        if from != to {
            thread.tells.push_back(number);
        } else if let Some(n) = number {
            // It is taken by the thread that sends it.
            thread.look();
            thread.push(Op::Tell(n));
        }
    }
}

/// All shards of a store, and what is recorded of a query.
pub struct Recorder {
    far: Arc<dyn ShardClient>,
    state: Mutex<RecorderState>,
    /// Nanoseconds that a round takes at least.
    round: AtomicU64,
}

impl Recorder {
    fn with<T>(&self, f: impl FnOnce(&mut RecorderState, ThreadId) -> T) -> T {
        let id = std::thread::current().id();
        let mut state = lock(&self.state);
        let out = f(&mut state, id);
        // What recording took counts as work of no server.
        if let Some(thread) = state.threads.get_mut(&id) {
            thread.since = thread_time();
        }
        out
    }

    fn begin(&self, home: u32) {
        self.with(|state, id| {
            *state = RecorderState {
                running: true,
                home,
                ..RecorderState::default()
            };
            state.threads.insert(id, Thread::new(thread_time(), None));
        });
    }

    fn end(&self) -> Trace {
        self.with(|state, id| {
            if let Some(thread) = state.threads.get_mut(&id) {
                thread.look();
            }
        });
        // The coordinator knows a part's last report before the part knows that it does.
        let begun = Instant::now();
        while self.with(|state, _| state.asking > 0) && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_micros(50));
        }
        self.with(|state, id| {
            let mut trace = Trace {
                home: state.home,
                ..Trace::default()
            };
            if let Some(mut thread) = state.threads.remove(&id) {
                trace.ops = thread.done.swap_remove(0);
            }
            // A part's thread may not have heard that it has nothing more to do.
            let ids: Vec<ThreadId> = state.threads.keys().copied().collect();
            ids.into_iter().for_each(|id| state.end_job(id));
            let RecorderState { parts, waits, .. } = std::mem::take(state);
            (trace.parts, trace.waits) = (parts, waits);
            trace
        })
    }

    /// Asks one shard, as the work of that shard.
    fn ask_one(
        &self,
        requests: &[(u32, ShardRequest)],
        tells: Vec<u32>,
        cancel: &CancelToken,
    ) -> Result<(Vec<Reply>, Message)> {
        self.with(|state, id| {
            if let Some(thread) = state.threads.get_mut(&id) {
                thread.done.push(Vec::new());
            }
        });
        let replies = self.far.ask(requests, cancel);
        let answer = self.with(|state, id| {
            let Some(thread) = state.threads.get_mut(&id) else {
                return Vec::new();
            };
            thread.look();
            thread.done.pop().unwrap_or_default()
        });
        let replies = replies?;
        let message = Message {
            to: requests.first().map_or(0, |r| r.0),
            tells,
            sent: requests.iter().map(|r| r.1.bytes()).sum(),
            received: replies.iter().map(Reply::bytes).sum(),
            answer,
        };
        Ok((replies, message))
    }
}

impl Recorder {
    /// Asks the shards of a round one after the other.
    fn ask_each(
        &self,
        requests: &[(u32, ShardRequest)],
        tells: &[Option<u32>],
        cancel: &CancelToken,
    ) -> Result<(Vec<Reply>, Vec<Message>)> {
        let mut replies: Vec<Option<Reply>> = Vec::new();
        replies.resize_with(requests.len(), || None);
        let mut messages = Vec::new();
        let mut shards: Vec<u32> = Vec::new();
        for (shard, _) in requests {
            if !shards.contains(shard) {
                shards.push(*shard);
            }
        }
        // Requests for one shard are one message.
        for shard in shards {
            let (places, of_it): (Vec<usize>, Vec<(u32, ShardRequest)>) = (0..)
                .zip(requests)
                .filter(|(_, r)| r.0 == shard)
                .map(|(i, r)| (i, r.clone()))
                .unzip();
            let told = places.iter().filter_map(|&i| tells[i]).collect();
            let (answers, message) = self.ask_one(&of_it, told, cancel)?;
            for (i, answer) in places.into_iter().zip(answers) {
                replies[i] = Some(answer);
            }
            messages.push(message);
        }
        Ok((replies.into_iter().flatten().collect(), messages))
    }
}

impl ShardClient for Recorder {
    fn ask(&self, requests: &[(u32, ShardRequest)], cancel: &CancelToken) -> Result<Vec<Reply>> {
        // The number that each request tells, of a thread that is recorded.
        let tells = self.with(|state, id| {
            let thread = state.threads.get_mut(&id).filter(|_| state.running)?;
            thread.look();
            let mut of = |r: &(u32, ShardRequest)| match r.1 {
                ShardRequest::Post(_) => thread.tells.pop_front().flatten(),
                _ => None,
            };
            let tells: Vec<Option<u32>> = requests.iter().map(&mut of).collect();
            thread.tells.clear();
            state.asking += 1;
            Some(tells)
        });
        let begun = Instant::now();
        let replies = match tells {
            Some(tells) => {
                let asked = self.ask_each(requests, &tells, cancel);
                self.with(|state, id| {
                    state.asking = state.asking.saturating_sub(1);
                    if let (Ok((_, messages)), Some(thread)) = (&asked, state.threads.get_mut(&id))
                    {
                        thread.push(Op::Round(messages.clone()));
                    }
                });
                asked?.0
            }
            None => self.far.ask(requests, cancel)?,
        };
        // Sleeping would take much longer than this.
        let round = Duration::from_nanos(self.round.load(Ordering::Relaxed));
        while begun.elapsed() < round {
            std::hint::spin_loop();
        }
        self.with(|_, _| ());
        Ok(replies)
    }
}

impl Far for Recorder {
    fn post(&self, messages: Vec<(u32, Vec<u8>)>, cancel: &CancelToken) -> Result<Vec<Vec<u8>>> {
        post(self, messages, cancel)
    }

    fn link(&self, shard: u32) -> Result<u64> {
        self.far.link(shard)
    }
}

/// Events that the hub tells.
struct Listener(Arc<Recorder>);

impl Observer for Listener {
    fn begins(&self, query: u64, shard: u32, work: Activity) {
        self.0
            .with(|state, id| state.begins(id, query, shard, work));
    }

    fn sends(&self, query: u64, way: [u32; 2], message: Told) {
        self.0
            .with(|state, id| state.sends(id, query, way, message));
    }
}

/// A store whose queries can be recorded.
pub struct Recorded {
    recorder: Arc<Recorder>,
    pub db: Database,
}

/// How queries are run that are recorded or compared with a recording.
pub fn options() -> QueryOptions {
    QueryOptions::default()
        .with_threads(1)
        .with_shard_mode(ShardMode::Dynamic)
}

impl Recorded {
    /// Opens all shards of a store, to be asked at shard 0.
    pub fn open(store: &Path) -> Result<Self> {
        Self::open_over(store, |far| far)
    }

    /// The same; `through` is given the way between shards, and gives the one that is taken.
    fn open_over(
        store: &Path,
        through: impl Fn(Arc<dyn ShardClient>) -> Arc<dyn ShardClient>,
    ) -> Result<Self> {
        let open = OpenOptions::default().with_runtime(Runtime::builder().threads(1).build());
        let recorder = OnceLock::new();
        let db = Database::open_shards_at(store, &open, 0, |far| {
            let one = recorder.get_or_init(|| {
                Arc::new(Recorder {
                    far: through(far),
                    state: Mutex::default(),
                    round: AtomicU64::new(0),
                })
            });
            Arc::clone(one) as Arc<dyn ShardClient>
        })?;
        let recorder = recorder.into_inner();
        let recorder =
            recorder.ok_or_else(|| jindou::Error::Internal("a mode was not used".into()))?;
        db.observe_parts(Arc::new(Listener(Arc::clone(&recorder))));
        Ok(Self { recorder, db })
    }

    /// Has each round take so many nanoseconds at least, so that what is chosen by its cost is chosen as over that network.
    pub fn take_so_long(&self, round: f64) {
        self.recorder.round.store(round as u64, Ordering::Relaxed);
    }

    /// Runs a plan some times. All recordings but that of the first run.
    pub fn record(&self, plan: &PlannedQuery, times: usize) -> Result<Vec<Trace>> {
        let mut all = Vec::with_capacity(times);
        let options = options();
        self.once(plan, &options)?;
        for _ in 0..times {
            all.push(self.once(plan, &options)?);
        }
        Ok(all)
    }

    fn once(&self, plan: &PlannedQuery, options: &QueryOptions) -> Result<Trace> {
        self.recorder.begin(0);
        let found = self.db.checksum(plan, options);
        let mut trace = self.recorder.end();
        trace.rows = found?.rows;
        Ok(trace)
    }

    /// The recording of the median of processor time.
    pub fn median(&self, plan: &PlannedQuery, times: usize) -> Result<Trace> {
        let mut all = self.record(plan, times.max(1))?;
        all.sort_by_key(|t| t.sums().work);
        Ok(all.swap_remove(all.len() / 2))
    }
}

#[cfg(test)]
mod tests;
