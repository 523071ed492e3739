//! One shard's part of a query: the rows that wait for their next step, the shard's start rows, and the workers that
//! pass both through the steps.
//!
//! Rows that have passed the most steps go first. No start rows are produced while another part's queue is full. Parts
//! never wait for another part to accept rows, so they cannot deadlock. If too many rows wait, the query fails because
//! of its memory limit.

mod outbox;

use super::hub::{Activity, HubState};
use super::line::{RowDestination, StepLine, layouts};
use super::message::{
    Columns, PartAnswer, PartCounts, PartFailure, PartMessage, PartProgram, PartReport, QueryName,
    StepCounts,
};
use super::route::ROWS_A_MESSAGE;
use super::sieve::{Sieve, Sieves};
use super::start::{Page, PagedStart, PagedValues};
use crate::batch::{Batch, View};
use crate::eval::EvalContext;
use crate::executor::Repeats;
use crate::explore::{Flow, Halt, QueryContext};
use crate::options::Spawned;
use crate::table::TupleSet;
use crate::terms::QueryTerms;
use crate::worker::guarded;
use jindou_graph::Graph;
use jindou_graph::shard::Sharded;
use jindou_model::sync::lock;
use jindou_model::{CancelToken, Charge, Error, Holder, Invariant, MemoryBudget, Resource, Result};
use jindou_plan::{Exploration, Slot, Step};
use outbox::Outbox;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Bytes from which a queue counts as full. The other parts then stop producing start rows if it is a part's queue, and
/// stop sending rows if it is the coordinator's.
pub(crate) const ENOUGH: u64 = 16 << 20;
/// A queue counts as full at this fraction (1/n) of the query's memory at the latest.
const ENOUGH_SHARE: u64 = 8;
/// Idle time after which a worker's thread ends.
const LINGER: Duration = Duration::from_millis(2);
/// Interval at which a part asks whether a full queue has shrunk.
const POLL: Duration = Duration::from_millis(2);
/// Number of processed messages after which a worker sends a report.
const REPORTED: usize = 256;
/// Number of distinct rows after which a worker no longer removes duplicates.
const KNOWN: usize = 1 << 20;
/// Fraction (1/n) of the query's memory for the distinct rows of all workers. Without memory for them duplicates are
/// sent, which the coordinator accepts.
const KNOWN_SHARE: u64 = 4;
/// Largest number of distinct rows that one worker counts before it sends them. A table of that size fits into the CPU
/// caches.
const COUNTED: usize = 1 << 16;
/// Rows in a batch.
const BATCH: usize = crate::options::DEFAULT_BATCH_ROWS;

/// Rows that wait for a step, and the number of the message that they came in.
struct QueuedRows {
    number: u64,
    rows: Columns,
}

struct PartState {
    /// Rows that wait, by the index of their next step.
    queue: Vec<VecDeque<QueuedRows>>,
    charge: Charge,
    workers: usize,
    /// Number of workers that wait for work.
    idle: usize,
    start: Option<PagedStart>,
    ended: bool,
    /// The last time at which the part had work.
    busy: Instant,
}

/// A query's part at one shard.
pub(crate) struct QueryPart {
    pub query: QueryName,
    pub shard: u32,
    program: PartProgram,
    steps: Vec<Step>,
    layouts: Vec<Vec<Slot>>,
    graph: Arc<dyn Graph>,
    cancel: CancelToken,
    memory: MemoryBudget,
    hub: Arc<HubState>,
    state: Mutex<PartState>,
    wake: Condvar,
    /// Bytes waiting at each shard's part, as last reported; by shard number.
    full: Vec<AtomicU64>,
    /// Bytes from which another queue counts as full: [`ENOUGH`], or less for a query with little memory.
    enough: u64,
    /// Requests for data of other shards as last reported: round trips, messages, bytes.
    asked: Mutex<[u64; 3]>,
    /// Present if the query needs only the first rows in some order.
    sieves: Option<Sieves>,
}

/// A worker's next task.
enum PartJob {
    Rows(u64, usize, Columns),
    Page(Page),
    /// Nothing to do now.
    Idle,
    /// The queue of this shard's part is full; wait for it.
    Full(u32),
    /// The query has ended.
    End,
}

impl QueryPart {
    /// Creates a part without work.
    ///
    /// # Errors
    /// `Shard` for a sort column that the steps do not produce.
    pub fn new(
        query: QueryName,
        shard: u32,
        program: PartProgram,
        steps: Vec<Step>,
        (graph, cancel): (Arc<dyn Graph>, CancelToken),
        hub: Arc<HubState>,
    ) -> Result<Self> {
        let sharded = graph.as_sharded();
        let sharded = sharded.invariant("parts run over a sharded store");
        let memory = hub.memory.part(program.memory);
        sharded.charge_to(&memory);
        let shards = sharded.blocks().shards();
        let layouts = layouts(&steps);
        let width = layouts.last().map_or(0, Vec::len);
        if program
            .first
            .is_some_and(|first| first.column as usize >= width)
        {
            let why = "the first rows by a column that the steps do not give";
            return Err(Error::shard(shard, why));
        }
        let full = (0..shards).map(|_| AtomicU64::new(0)).collect();
        let mut queue = Vec::new();
        queue.resize_with(steps.len(), VecDeque::new);
        Ok(Self {
            query,
            shard,
            layouts,
            steps,
            sieves: program.first.map(|first| Sieves::new(first, &memory)),
            enough: ENOUGH.min(program.memory / ENOUGH_SHARE),
            program,
            graph,
            cancel,
            hub,
            state: Mutex::new(PartState {
                queue,
                charge: Charge::new(Holder::Shards, &memory),
                workers: 0,
                idle: 0,
                start: None,
                ended: false,
                busy: Instant::now(),
            }),
            memory,
            wake: Condvar::new(),
            full,
            asked: Mutex::new([0; 3]),
        })
    }

    /// Starts to produce the start rows, page by page.
    ///
    /// # Errors
    /// `Shard` if this shard cannot produce them, or if the part was started before.
    pub fn start(self: &Arc<Self>, number: u64, alone: bool) -> Result<PartAnswer> {
        let start = PagedStart::new(&*self.graph, &self.steps, number, alone);
        let start =
            start.ok_or_else(|| Error::shard(self.shard, "a start that no shard can make"))?;
        let mut state = lock(&self.state);
        if state.ended {
            return Ok(PartAnswer::Unknown);
        }
        if state.start.replace(start).is_some() {
            return Err(Error::shard(self.shard, "a part was started twice"));
        }
        self.wake_one(&mut state)?;
        Ok(PartAnswer::Taken(state.charge.bytes()))
    }

    /// Queues rows that continue at a step.
    ///
    /// # Errors
    /// `Shard` for rows that do not fit the step; the limit of the query's memory.
    pub fn take(self: &Arc<Self>, number: u64, step: u32, rows: Columns) -> Result<PartAnswer> {
        let step = step as usize;
        // Rows without columns have no id whose owner they could be sent to, so no part sends them.
        let fits = step > 0
            && step < self.steps.len()
            && !rows.columns.is_empty()
            && self
                .layouts
                .get(step - 1)
                .is_some_and(|l| l.len() == rows.columns.len());
        if !fits {
            return Err(Error::shard(self.shard, "rows that do not match the query"));
        }
        let mut state = lock(&self.state);
        if state.ended {
            return Ok(PartAnswer::Unknown);
        }
        state.charge.add(rows.bytes())?;
        state.queue[step].push_back(QueuedRows { number, rows });
        self.wake_one(&mut state)?;
        Ok(PartAnswer::Taken(state.charge.bytes()))
    }

    /// Answers with the number of bytes that wait to be processed here.
    pub fn waiting(&self) -> PartAnswer {
        let state = lock(&self.state);
        if state.ended {
            return PartAnswer::Unknown;
        }
        PartAnswer::Taken(state.charge.bytes())
    }

    /// Time since the part last had work; `None` while it has workers.
    pub fn idle_for(&self) -> Option<Duration> {
        let state = lock(&self.state);
        (state.workers == 0).then(|| state.busy.elapsed())
    }

    /// Ends the part: its workers stop at the next batch.
    pub fn end(&self) {
        {
            let mut state = lock(&self.state);
            state.ended = true;
            state.start = None;
            state.queue.clear();
            let _ = state.charge.set(0);
        }
        self.cancel.cancel();
        self.wake.notify_all();
    }

    /// Wakes an idle worker or starts a new one, since there is work.
    ///
    /// # Errors
    /// `Limit` if no thread can be started. The caller returns the error as the answer to the message, since a receiver
    /// must not send messages itself.
    fn wake_one(self: &Arc<Self>, state: &mut PartState) -> Result<()> {
        state.busy = Instant::now();
        if state.idle > 0 {
            self.wake.notify_one();
            return Ok(());
        }
        if state.workers >= self.hub.threads {
            return Ok(());
        }
        let part = Arc::clone(self);
        let spawned = std::thread::Builder::new()
            .name("jindou-part".into())
            .stack_size(8 << 20)
            .spawn(move || part.work());
        match spawned {
            Ok(_) => state.workers += 1,
            // One of the existing workers will do the work.
            Err(_) if state.workers > 0 => {}
            Err(e) => {
                let why = format!("cannot start a thread for a part of a query: {e}");
                return Err(Error::limit(Resource::Threads, why));
            }
        }
        Ok(())
    }

    /// A worker's main loop.
    fn work(self: Arc<Self>) {
        let done = guarded(|| match self.run() {
            Ok(()) | Err(Halt::Stop) => Ok(()),
            Err(Halt::Failed(e)) => Err(e),
        });
        // The thread may still hold its place after a panic.
        self.hub.pool.leave();
        let mut failed = done.err();
        let ended = {
            let mut state = lock(&self.state);
            let ended = state.ended;
            if failed.is_some() {
                // `run` decrements the number of workers only if it ends without an error.
                state.workers -= 1;
                state.ended = true;
            }
            ended
        };
        if let Some(e) = failed.take()
            && !ended
        {
            self.hub.fail(&self, &e);
            self.end();
        }
    }

    fn run(self: &Arc<Self>) -> Flow {
        let pool = &*self.hub.pool;
        let inside = pool.enter(&self.cancel)?;
        let worked = self.compute(inside);
        if inside {
            pool.leave();
        }
        worked
    }

    fn compute(self: &Arc<Self>, inside: bool) -> Flow {
        let (terms, stop) = (QueryTerms::new(), AtomicBool::new(false));
        let first = Exploration {
            steps: self.steps.iter().take(1).cloned().collect(),
            empty: None,
        };
        let ctx = QueryContext {
            eval: EvalContext {
                vocabulary: self.graph.vocabulary(),
                terms: &terms,
                cancel: &self.cancel,
                scope: None,
                budget: &self.memory,
                stop: &stop,
            },
            snapshot: &*self.graph,
            batch_rows: BATCH,
            first_batch: BATCH,
            profile: self.program.profile,
            live: None,
            threads: 1,
            heavy: true,
            service: None,
            pool: &Spawned,
            temp: None,
        };
        let waits = self.hub.waits();
        let mut line = StepLine::new(&self.steps, &self.layouts, ctx, self.program.mode, waits)?;
        let mut out = Outbox::new(self);
        let mut chunk = Batch::new(0, &self.memory);
        let mut values: Option<PagedValues<'_>> = None;
        let mut begun = Instant::now();
        loop {
            self.cancel.check()?;
            match self.next() {
                PartJob::Rows(number, step, rows) => {
                    self.begins(Activity::Rows(number));
                    let width = rows.columns.len();
                    if chunk.columns.len() != width {
                        chunk = Batch::new(width, &self.memory);
                    }
                    each_chunk(&rows, &mut chunk, |view| line.rows(step, view, &mut out))?;
                    // The resulting rows may still be buffered. `out` reports the message as processed when they have
                    // been sent.
                    out.completed.push(number);
                    let mut state = lock(&self.state);
                    let bytes = state.charge.bytes().saturating_sub(rows.bytes());
                    state.charge.set(bytes)?;
                }
                PartJob::Page(page) => {
                    self.begins(Activity::Page);
                    out.pages += 1;
                    let mut to = line.after_start(&mut out);
                    let counts = if let Page::Values(range) = page {
                        let values = match &mut values {
                            Some(values) => values,
                            none => none.insert(PagedValues::new(&first, &ctx)?),
                        };
                        self.call_others(|start| start.has(values.len()));
                        values.give(range, &ctx, &mut to)?
                    } else {
                        self.call_others(|_| {});
                        page.run(&self.steps[0], &self.layouts[0], &ctx, &mut to)?
                    };
                    drop(to);
                    out.first.rows_in += counts.0;
                    out.first.rows_out += counts.1;
                }
                PartJob::Full(shard) => {
                    self.pause(inside, || {
                        std::thread::sleep(POLL);
                        self.ask(shard)
                    })?;
                }
                PartJob::Idle => {
                    if out.has_news() {
                        self.begins(Activity::Flush);
                        line.flush(&mut out)?;
                        out.time += begun.elapsed();
                        let steps = line.news();
                        out.tell(steps, inside)?;
                        begun = Instant::now();
                        continue;
                    }
                    self.begins(Activity::Idle);
                    if self.is_over(inside)? {
                        return Ok(());
                    }
                    begun = Instant::now();
                }
                PartJob::End => return self.count_off(),
            }
            if out.completed.len() >= REPORTED {
                line.flush(&mut out)?;
                out.time += begun.elapsed();
                let steps = line.news();
                out.tell(steps, inside)?;
                begun = Instant::now();
            }
        }
    }

    /// Wakes or starts another worker to produce start rows as well, if there are more. `look` updates the start
    /// before.
    fn call_others(self: &Arc<Self>, look: impl FnOnce(&mut PagedStart)) {
        let mut state = lock(&self.state);
        let Some(start) = &mut state.start else {
            return;
        };
        look(start);
        if start.has_more() {
            // If there is no other worker, this one produces all start rows.
            let _ = self.wake_one(&mut state);
        }
    }

    fn begins(&self, work: Activity) {
        self.hub.begins(self.query, self.shard, work);
    }

    fn count_off(&self) -> Flow {
        lock(&self.state).workers -= 1;
        Ok(())
    }

    /// Gives up the place in the pool and waits for work. Returns true if there was none for [`LINGER`], so that this
    /// thread should end.
    fn is_over(&self, inside: bool) -> Result<bool, Halt> {
        let pool = &*self.hub.pool;
        if inside {
            pool.leave();
        }
        let over = {
            let mut state = lock(&self.state);
            if !state.ended && !self.has_work(&state) {
                state.idle += 1;
                let waited = self.wake.wait_timeout(state, LINGER);
                state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
                state.idle -= 1;
            }
            let over = state.ended || !self.has_work(&state);
            if over {
                state.workers -= 1;
                state.busy = Instant::now();
            }
            over
        };
        if over {
            return Ok(true);
        }
        if inside {
            pool.enter(&self.cancel)?;
        }
        Ok(false)
    }

    fn has_work(&self, state: &PartState) -> bool {
        state.queue.iter().any(|q| !q.is_empty())
            || state.start.as_ref().is_some_and(PagedStart::has_more)
    }

    /// Calls a closure that waits; meanwhile, this thread gives up its place in the pool.
    fn pause(&self, inside: bool, mut wait: impl FnMut() -> Result<()>) -> Result<()> {
        let pool = &*self.hub.pool;
        if inside {
            pool.leave();
        }
        let waited = wait();
        if inside {
            pool.enter(&self.cancel)?;
        }
        waited
    }

    /// The next task: the waiting rows that have passed the most steps, then start rows.
    fn next(&self) -> PartJob {
        let mut state = lock(&self.state);
        if state.ended {
            return PartJob::End;
        }
        for step in (1..state.queue.len()).rev() {
            if let Some(w) = state.queue[step].pop_front() {
                return PartJob::Rows(w.number, step, w.rows);
            }
        }
        let Some(start) = &mut state.start else {
            return PartJob::Idle;
        };
        let full = |(_, f): &(u32, &AtomicU64)| f.load(Ordering::Relaxed) > self.enough;
        if start.has_more()
            && let Some((shard, _)) = (0..).zip(&self.full).find(full)
        {
            return PartJob::Full(shard);
        }
        match start.next(&*self.graph) {
            Some(page) => PartJob::Page(page),
            None => PartJob::Idle,
        }
    }

    /// Asks another part how many bytes are waiting there, and stores the number in `full`.
    fn ask(&self, shard: u32) -> Result<()> {
        self.post(shard, PartMessage::Waiting).map(|_| ())
    }

    /// Sends a message to a shard's part, and stores how many bytes wait there. Returns the bytes sent.
    fn post(&self, shard: u32, message: PartMessage) -> Result<u64> {
        let way = [self.shard, shard];
        let (answer, bytes) = self.hub.post(self.query, way, message, &self.cancel)?;
        match answer {
            PartAnswer::Taken(waiting) => {
                if let Some(full) = self.full.get(shard as usize) {
                    full.store(waiting, Ordering::Relaxed);
                }
                Ok(bytes)
            }
            PartAnswer::Failed(f) => Err(f.error()),
            PartAnswer::Unknown if lock(&self.state).ended => Err(Error::Cancelled),
            _ => Err(Error::shard(shard, "the query has ended there")),
        }
    }

    /// Sends a report to the coordinator, and waits while its queue is full.
    ///
    /// # Errors
    /// Fails if a read from another shard has failed, since the rows produced after that are incomplete.
    fn report(&self, report: PartReport, inside: bool) -> Result<()> {
        self.cancel.check()?;
        if self.home_has_room(report)? {
            return Ok(());
        }
        self.pause(inside, || {
            loop {
                std::thread::sleep(POLL);
                self.cancel.check()?;
                if self.home_has_room(PartReport::nothing(self.shard))? {
                    return Ok(());
                }
            }
        })
    }

    /// Sends a report to the coordinator; returns false if its queue is full.
    fn home_has_room(&self, report: PartReport) -> Result<bool> {
        let message = PartMessage::Report(report);
        let way = [self.shard, self.query.home];
        match self.hub.post(self.query, way, message, &self.cancel)?.0 {
            PartAnswer::Taken(waiting) => Ok(waiting <= self.enough),
            PartAnswer::Failed(f) => Err(f.error()),
            _ => {
                self.end();
                Err(Error::Cancelled)
            }
        }
    }

    /// Requests for data of other shards since the last call: round trips, messages, bytes.
    fn newly_asked(&self) -> [u64; 3] {
        let now = self.graph.as_sharded().map(Sharded::traffic);
        let now = now.unwrap_or_default();
        let now = [now.rounds, now.messages, now.bytes];
        let mut before = lock(&self.asked);
        let news = [0, 1, 2].map(|i| now[i] - before[i]);
        *before = now;
        news
    }
}

/// Calls `f` with the rows, a batch at a time; `chunk` is the buffer for a batch.
fn each_chunk(rows: &Columns, chunk: &mut Batch, mut f: impl FnMut(View<'_>) -> Flow) -> Flow {
    if rows.columns.is_empty() {
        let rows = usize::try_from(rows.rows).unwrap_or(usize::MAX);
        return f(View { columns: &[], rows });
    }
    let total = rows.rows as usize;
    for from in (0..total).step_by(BATCH) {
        let n = BATCH.min(total - from);
        chunk.ensure(n)?;
        for (to, column) in chunk.columns.iter_mut().zip(&rows.columns) {
            to[..n].copy_from_slice(&column[from..from + n]);
        }
        chunk.rows = n;
        f(chunk.view())?;
    }
    Ok(())
}

/// Converts a part's error into the failure that its coordinator gets.
pub(crate) fn failure(part: &QueryPart, error: &Error) -> PartFailure {
    PartFailure::at_shard(error, part.shard)
}
