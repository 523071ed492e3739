//! One run: clients in the process, workers of a scheduler, latencies from intended arrival to the last row.

use super::classes::Class;
use super::histogram::Histogram;
use crate::bench::measure::{cpu_time, resident_memory};
use jindou::{Crew, Database, Error, PlannedQuery, QueryOptions, Result, Session, Value};
use jindou_scheduler::{
    Class as Weight, Counts, Dropped, Job, Options, Ran, Scheduler, Submit, Work,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// What is asked.
pub struct Setup {
    pub db: Database,
    pub classes: Vec<Class>,
    /// Sums of the classes' weights.
    pub sums: Vec<f64>,
    pub heavy: Vec<(String, PlannedQuery)>,
    /// A light query that takes longer is moved.
    pub light_limit: Duration,
    /// A job that waits longer is dropped.
    pub deadline: Option<Duration>,
}

impl Setup {
    /// A class and a start point, drawn by the classes' weights.
    pub fn draw(&self, random: &mut Random) -> Task {
        let all = self.sums.last().copied().unwrap_or(0.0);
        let x = random.unit() * all;
        let class = self.sums.partition_point(|s| *s <= x);
        let class = class.min(self.classes.len() - 1);
        let start = random.below(self.classes[class].starts.len());
        Task::Light {
            class: class as u16,
            start: start as u32,
        }
    }

    /// Names of light classes, then of heavy queries.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let light = self.classes.iter().map(|c| c.name.as_str());
        light.chain(self.heavy.iter().map(|h| h.0.as_str()))
    }
}

/// A query.
#[derive(Clone, Copy, Debug)]
pub enum Task {
    Light { class: u16, start: u32 },
    Heavy(u16),
}

/// xorshift64*.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

/// How light queries come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// None.
    None,
    /// So many clients, each of which keeps so many queries under way.
    Closed { clients: usize, window: usize },
    /// So many a second, at random intended times (a Poisson process), whatever becomes of earlier ones.
    Open { rate: f64, clients: usize },
}

/// What is measured.
#[derive(Clone, Debug)]
pub struct Plan {
    pub arrivals: Arrivals,
    /// Clients that send heavy queries, one after the other.
    pub heavy_clients: usize,
    pub warm_up: Duration,
    pub duration: Duration,
    /// After an open loop: so many queries a second for [`AFTER`], to see how soon all is well again.
    pub then: Option<f64>,
    pub seed: u64,
}

/// How long is looked at what comes after an overload, and in which steps.
pub const AFTER: Duration = Duration::from_secs(2);
pub const STEP: Duration = Duration::from_millis(100);
const STEPS: usize = (AFTER.as_millis() / STEP.as_millis()) as usize;
/// A client that is later than this leaves out what it should have sent: not to the queries' loss, but it is said.
const MOST_BEHIND: Duration = Duration::from_millis(5);

/// What one worker saw.
#[derive(Default)]
struct Stats {
    latencies: Vec<Histogram>,
    /// By steps of the time after.
    after: Vec<Histogram>,
    rows: u64,
    late: u64,
    /// Jobs that were let in and are neither run nor answered.
    unfinished: u64,
    /// Some queries' rows, to be compared.
    samples: Vec<(u16, u32, u64)>,
    error: Option<Error>,
    turn: u64,
}

/// What a run gave.
pub struct Outcome {
    pub seconds: f64,
    /// By class: light ones, then heavy ones.
    pub latencies: Vec<Histogram>,
    pub light: Histogram,
    pub heavy: Histogram,
    pub refused: u64,
    /// Queries that the clients of an open loop did not manage to send.
    pub unsent: u64,
    /// Of each step after an open loop: latencies, and queries that were refused.
    pub after: Vec<(Histogram, u64)>,
    pub late: u64,
    pub unfinished: u64,
    pub counts: Counts,
    /// Processor time of all threads, clients included, in seconds.
    pub processor: f64,
    /// Own memory at the begin and at the end, in bytes.
    pub memory: [u64; 2],
    pub checked: usize,
}

impl Outcome {
    pub fn light_rate(&self) -> f64 {
        self.light.count() as f64 / self.seconds
    }

    /// When, after an overload, refusals end and 99 of a hundred queries take less than `limit`, for good.
    pub fn recovered(&self, limit: Duration) -> Option<Duration> {
        let bad = |s: &(Histogram, u64)| s.1 > 0 || s.0.quantile(0.99) > limit;
        let steps = self.after.iter().rposition(bad).map_or(0, |at| at + 1);
        (steps < self.after.len()).then(|| STEP * steps as u32)
    }

    pub fn heavy_rate(&self) -> f64 {
        self.heavy.count() as f64 / self.seconds
    }
}

struct Emulator {
    setup: Arc<Setup>,
    stats: Box<[Mutex<Stats>]>,
    recording: AtomicBool,
    /// When an overload ended.
    over: OnceLock<Instant>,
    closed_loop: bool,
    again: OnceLock<Submit<Task>>,
    refused: AtomicU64,
    seed: u64,
}

/// A worker's own.
struct Local {
    worker: usize,
    sessions: Vec<Session>,
    random: Random,
    light: QueryOptions,
    heavy: QueryOptions,
}

/// One query in so many is compared with plain execution after the run.
const SAMPLE: u64 = 512;
const MOST_SAMPLES: usize = 256;

fn step_of(since: Duration) -> usize {
    (since.as_nanos() / STEP.as_nanos()) as usize
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Emulator {
    fn ended(&self, local: &mut Local, job: &Job<Task>, done: Result<u64>) {
        let mut s = lock(&self.stats[local.worker]);
        match done {
            Ok(rows) if self.recording.load(Ordering::Relaxed) => {
                let at = match job.task {
                    Task::Light { class, start } => {
                        s.turn += 1;
                        if s.turn.is_multiple_of(SAMPLE) && s.samples.len() < MOST_SAMPLES {
                            s.samples.push((class, start, rows));
                        }
                        usize::from(class)
                    }
                    Task::Heavy(q) => self.setup.classes.len() + usize::from(q),
                };
                s.rows += rows;
                s.latencies[at].add(job.arrived.elapsed());
            }
            Ok(_) => {
                if let Some(over) = self.over.get()
                    && let Some(since) = job.arrived.checked_duration_since(*over)
                    && let Some(step) = s.after.get_mut(step_of(since))
                {
                    step.add(job.arrived.elapsed());
                }
            }
            Err(e) => s.error = Some(e),
        }
        drop(s);
        self.next(job, &mut local.random);
    }

    /// The client's next query: a closed loop's, or a heavy client's.
    fn next(&self, job: &Job<Task>, random: &mut Random) {
        let task = match job.task {
            Task::Light { .. } if self.closed_loop => self.setup.draw(random),
            Task::Light { .. } => return,
            Task::Heavy(q) => Task::Heavy((q + 1) % self.setup.heavy.len() as u16),
        };
        let class = match task {
            Task::Light { .. } => Weight::Light,
            Task::Heavy(_) => Weight::Heavy,
        };
        if let Some(submit) = self.again.get() {
            let _ = submit(self.job(task, class, job.client));
        }
    }

    fn job(&self, task: Task, class: Weight, client: u64) -> Job<Task> {
        let mut job = Job::new(task, class, client);
        job.deadline = self.setup.deadline.map(|d| job.arrived + d);
        job
    }
}

impl Work for Emulator {
    type Task = Task;
    type Local = Local;

    fn local(&self, worker: usize) -> Local {
        let options = QueryOptions {
            threads: 1,
            ..QueryOptions::default()
        };
        Local {
            worker,
            sessions: self
                .setup
                .classes
                .iter()
                .map(|c| c.prepared.session())
                .collect(),
            random: Random::new(self.seed + 1000 + worker as u64),
            light: QueryOptions {
                timeout: Some(self.setup.light_limit),
                ..options.clone()
            },
            heavy: options,
        }
    }

    fn run(
        &self,
        job: Job<Task>,
        local: &mut Local,
        crew: &Arc<dyn Crew>,
        threads: usize,
    ) -> Ran<Task> {
        let light = job.class == Weight::Light;
        if !light {
            local.heavy.threads = threads;
            local.heavy.crew = Some(Arc::clone(crew));
        }
        let options = if light { &local.light } else { &local.heavy };
        let mut again = light;
        let ran = loop {
            let ran = match job.task {
                Task::Light { class, start } => {
                    let start = &self.setup.classes[usize::from(class)].starts[start as usize];
                    local.sessions[usize::from(class)].checksum(&[Value::Term(start)], options)
                }
                Task::Heavy(q) => {
                    let planned = &self.setup.heavy[usize::from(q)].1;
                    self.setup.db.checksum(planned, options)
                }
            };
            match ran {
                // Not the query may have taken that long, but another process.
                Err(Error::Timeout(_)) if again => again = false,
                Err(Error::Timeout(_)) if light => return Ran::TooLong(job),
                ran => break ran,
            }
        };
        self.ended(local, &job, ran.map(|c| c.rows));
        Ran::Done
    }

    fn dropped(&self, job: Job<Task>, why: Dropped) {
        let at = job.client as usize % self.stats.len();
        let mut s = lock(&self.stats[at]);
        match why {
            Dropped::Late => s.late += 1,
            Dropped::Closed => s.unfinished += 1,
            Dropped::Refused(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
        drop(s);
        if why != Dropped::Closed {
            let seed = job.arrived.elapsed().as_nanos() as u64;
            self.next(&job, &mut Random::new(seed));
        }
    }
}

/// Runs the clients against a scheduler with these options.
pub fn run(setup: &Arc<Setup>, options: &Options, plan: &Plan) -> Result<Outcome> {
    let workers = options.workers.max(1);
    let kinds = setup.names().count();
    let emulator = Emulator {
        setup: Arc::clone(setup),
        stats: (0..workers)
            .map(|_| {
                Mutex::new(Stats {
                    latencies: vec![Histogram::default(); kinds],
                    after: vec![Histogram::default(); STEPS],
                    ..Stats::default()
                })
            })
            .collect(),
        recording: AtomicBool::new(false),
        over: OnceLock::new(),
        closed_loop: matches!(plan.arrivals, Arrivals::Closed { .. }),
        again: OnceLock::new(),
        refused: AtomicU64::new(0),
        seed: plan.seed,
    };
    let mut scheduler = Scheduler::start(emulator, options.clone())
        .map_err(|e| Error::Limit(format!("no threads for {workers} workers: {e}")))?;
    let _ = scheduler.work().again.set(scheduler.submitter());
    let work = scheduler.work();
    let mut random = Random::new(plan.seed);
    for client in 0..plan.heavy_clients {
        let first = Task::Heavy((client % setup.heavy.len().max(1)) as u16);
        let job = work.job(first, Weight::Heavy, 1 << 32 | client as u64);
        scheduler
            .submit(job)
            .map_err(|(r, _)| Error::Limit(r.to_string()))?;
    }
    if let Arrivals::Closed { clients, window } = plan.arrivals {
        for client in 0..clients as u64 {
            for _ in 0..window {
                let job = work.job(setup.draw(&mut random), Weight::Light, client);
                scheduler
                    .submit(job)
                    .map_err(|(r, _)| Error::Limit(r.to_string()))?;
            }
        }
    }
    let begin = Instant::now();
    let (mut from, mut memory) = (begin, [0; 2]);
    let (mut refused_before, mut unsent_before) = (0, 0);
    let end = begin + plan.warm_up + plan.duration;
    let mut recording = false;
    let mut processor = Duration::ZERO;
    let mut sender = match plan.arrivals {
        Arrivals::Open { rate, clients } => Some(Sender::new(rate, clients, begin, plan.seed)),
        _ => None,
    };
    let unsent = |s: &Option<Sender>| s.as_ref().map_or(0, |s| s.unsent);
    loop {
        let now = Instant::now();
        if !recording && now >= begin + plan.warm_up {
            (recording, from) = (true, now);
            refused_before = work.refused.load(Ordering::Relaxed);
            unsent_before = unsent(&sender);
            memory[0] = resident_memory().0;
            processor = cpu_time();
            work.recording.store(true, Ordering::Relaxed);
        }
        if now >= end {
            break;
        }
        let next = if recording { end } else { begin + plan.warm_up };
        match &mut sender {
            Some(sender) => sender.send(setup, &scheduler, next),
            None => std::thread::sleep(next.saturating_duration_since(now)),
        }
    }
    work.recording.store(false, Ordering::Relaxed);
    let seconds = from.elapsed().as_secs_f64();
    let processor = cpu_time().saturating_sub(processor);
    memory[1] = resident_memory().0;
    let refused = work.refused.load(Ordering::Relaxed) - refused_before;
    let unsent = unsent(&sender) - unsent_before;
    let mut refused_after = vec![];
    if let (Some(sender), Some(rate)) = (&mut sender, plan.then) {
        let over = Instant::now();
        let _ = work.over.set(over);
        (sender.rate, sender.due) = (rate, over);
        for step in 1..=STEPS as u32 {
            let before = work.refused.load(Ordering::Relaxed);
            while Instant::now() < over + STEP * step {
                sender.send(setup, &scheduler, over + STEP * step);
            }
            refused_after.push(work.refused.load(Ordering::Relaxed) - before);
        }
        // What came last is answered as well.
        std::thread::sleep(STEP);
    }
    let counts = scheduler.counts();
    scheduler.close();
    let mut out = collect(setup, scheduler.work(), seconds, counts, memory)?;
    (out.refused, out.unsent) = (refused, unsent);
    out.processor = processor.as_secs_f64();
    out.after.truncate(refused_after.len());
    for (step, refused) in out.after.iter_mut().zip(refused_after) {
        step.1 = refused;
    }
    Ok(out)
}

/// The clients of an open loop.
struct Sender {
    rate: f64,
    clients: usize,
    due: Instant,
    random: Random,
    turn: u64,
    unsent: u64,
}

impl Sender {
    fn new(rate: f64, clients: usize, begin: Instant, seed: u64) -> Self {
        Self {
            rate,
            clients: clients.max(1),
            due: begin,
            random: Random::new(seed + 1),
            turn: 0,
            unsent: 0,
        }
    }

    /// Sends what is due, then sleeps until something is, a millisecond at most; returns soon after `until`.
    fn send(&mut self, setup: &Setup, scheduler: &Scheduler<Emulator>, until: Instant) {
        let now = Instant::now();
        let behind = now.saturating_duration_since(self.due);
        if behind > MOST_BEHIND {
            self.unsent += (behind.as_secs_f64() * self.rate) as u64;
            self.due = now;
        }
        while self.due <= now {
            self.turn += 1;
            let task = setup.draw(&mut self.random);
            let mut job = Job::new(task, Weight::Light, self.turn % self.clients as u64);
            // Latency counts from here, however late this thread is.
            job.arrived = self.due;
            job.deadline = setup.deadline.map(|d| job.arrived + d);
            if scheduler.submit(job).is_err() {
                scheduler.work().refused.fetch_add(1, Ordering::Relaxed);
            }
            let pause = -(1.0 - self.random.unit()).ln() / self.rate;
            self.due += Duration::from_secs_f64(pause);
        }
        let now = Instant::now();
        let next = self.due.min(until).saturating_duration_since(now);
        if !next.is_zero() {
            std::thread::sleep(next.min(Duration::from_millis(1)));
        }
    }
}

fn collect(
    setup: &Setup,
    work: &Emulator,
    seconds: f64,
    counts: Counts,
    memory: [u64; 2],
) -> Result<Outcome> {
    let kinds = setup.names().count();
    let mut out = Outcome {
        seconds,
        latencies: vec![Histogram::default(); kinds],
        light: Histogram::default(),
        heavy: Histogram::default(),
        refused: 0,
        unsent: 0,
        after: vec![(Histogram::default(), 0); STEPS],
        late: 0,
        unfinished: 0,
        counts,
        processor: 0.0,
        memory,
        checked: 0,
    };
    let options = QueryOptions {
        threads: 1,
        ..QueryOptions::default()
    };
    for s in &work.stats {
        let mut s = lock(s);
        if let Some(e) = s.error.take() {
            return Err(e);
        }
        for (all, own) in out.latencies.iter_mut().zip(&s.latencies) {
            all.merge(own);
        }
        for (all, own) in out.after.iter_mut().zip(&s.after) {
            all.0.merge(own);
        }
        out.late += s.late;
        out.unfinished += s.unfinished;
        for &(class, start, rows) in &s.samples {
            let c = &setup.classes[usize::from(class)];
            let text = c.text(start as usize);
            let plain = setup
                .db
                .checksum(&setup.db.plan_uncached(&text, &options)?, &options)?;
            if plain.rows != rows {
                return Err(Error::Internal(format!(
                    "{rows} rows under load, {} alone: {text}",
                    plain.rows
                )));
            }
            out.checked += 1;
        }
    }
    for (i, h) in out.latencies.iter().enumerate() {
        if i < setup.classes.len() {
            out.light.merge(h);
        } else {
            out.heavy.merge(h);
        }
    }
    Ok(out)
}
