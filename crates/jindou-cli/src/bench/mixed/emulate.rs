//! One run: clients in the process, workers of a scheduler, latencies from intended arrival to the last row.

use super::classes::Class;
use super::histogram::Histogram;
use crate::bench::measure::resident_memory;
use jindou::{Crew, Database, Error, PlannedQuery, QueryOptions, Result, Session, Value};
use jindou_scheduler::{
    Class as Weight, Counts, Dropped, Job, Options, Ran, Refused, Scheduler, Work,
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
        (u128::from(self.next()) * n as u128 >> 64) as usize
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
    pub seed: u64,
}

/// What one worker saw.
#[derive(Default)]
struct Stats {
    latencies: Vec<Histogram>,
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
    pub late: u64,
    pub unfinished: u64,
    pub counts: Counts,
    /// Own memory at the begin and at the end, in bytes.
    pub memory: [u64; 2],
    pub checked: usize,
}

impl Outcome {
    pub fn light_rate(&self) -> f64 {
        self.light.count() as f64 / self.seconds
    }

    pub fn heavy_rate(&self) -> f64 {
        self.heavy.count() as f64 / self.seconds
    }
}

type Submit = Arc<dyn Fn(Job<Task>) -> Result<(), Refused> + Send + Sync>;

struct Emulator {
    setup: Arc<Setup>,
    stats: Box<[Mutex<Stats>]>,
    recording: AtomicBool,
    closed_loop: bool,
    again: OnceLock<Submit>,
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
            Ok(_) => {}
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
                    ..Stats::default()
                })
            })
            .collect(),
        recording: AtomicBool::new(false),
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
    let mut refused_before = 0;
    let end = begin + plan.warm_up + plan.duration;
    let mut recording = false;
    let mut due = begin;
    let mut turn = 0u64;
    loop {
        let now = Instant::now();
        if !recording && now >= begin + plan.warm_up {
            (recording, from) = (true, now);
            refused_before = work.refused.load(Ordering::Relaxed);
            memory[0] = resident_memory().0;
            work.recording.store(true, Ordering::Relaxed);
        }
        if now >= end {
            break;
        }
        let Arrivals::Open { rate, clients } = plan.arrivals else {
            let next = if recording { end } else { begin + plan.warm_up };
            std::thread::sleep(next.saturating_duration_since(now));
            continue;
        };
        while due <= now {
            turn += 1;
            let task = setup.draw(&mut random);
            let mut job = Job::new(task, Weight::Light, turn % clients.max(1) as u64);
            // Latency counts from here, however late this thread is.
            job.arrived = due;
            job.deadline = setup.deadline.map(|d| due + d);
            if scheduler.submit(job).is_err() {
                work.refused.fetch_add(1, Ordering::Relaxed);
            }
            due += Duration::from_secs_f64(-(1.0 - random.unit()).ln() / rate);
            if turn.is_multiple_of(4096) && Instant::now() >= end {
                break;
            }
        }
        std::thread::sleep(
            due.saturating_duration_since(Instant::now())
                .min(Duration::from_millis(1)),
        );
    }
    work.recording.store(false, Ordering::Relaxed);
    let seconds = from.elapsed().as_secs_f64();
    memory[1] = resident_memory().0;
    let refused = work.refused.load(Ordering::Relaxed) - refused_before;
    let counts = scheduler.counts();
    scheduler.close();
    collect(setup, scheduler.work(), seconds, refused, counts, memory)
}

fn collect(
    setup: &Setup,
    work: &Emulator,
    seconds: f64,
    refused: u64,
    counts: Counts,
    memory: [u64; 2],
) -> Result<Outcome> {
    let kinds = setup.names().count();
    let mut out = Outcome {
        seconds,
        latencies: vec![Histogram::default(); kinds],
        light: Histogram::default(),
        heavy: Histogram::default(),
        refused,
        late: 0,
        unfinished: 0,
        counts,
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

/// Queries a second of one thread that asks one after the other, no scheduler between; by class the mean time, and of the mix.
pub fn alone(setup: &Setup, how: How, duration: Duration, seed: u64) -> Result<Alone> {
    let mut sessions: Vec<Session> = setup.classes.iter().map(|c| c.prepared.session()).collect();
    let options = QueryOptions {
        threads: 1,
        ..QueryOptions::default()
    };
    let mut random = Random::new(seed);
    let mut times = vec![(Duration::ZERO, 0u64); setup.classes.len()];
    let mut count = 0u64;
    let begin = Instant::now();
    let mut last = begin;
    loop {
        let Task::Light { class, start } = setup.draw(&mut random) else {
            break;
        };
        let (class, start) = (usize::from(class), start as usize);
        let c = &setup.classes[class];
        let ran = match how {
            How::Prepared => {
                let start = Value::Term(&c.starts[start]);
                sessions[class].checksum(&[start], &options)?
            }
            How::Text => {
                let planned = setup.db.plan(&c.text(start), &options)?;
                setup.db.checksum(&planned, &options)?
            }
        };
        std::hint::black_box(ran);
        count += 1;
        let now = Instant::now();
        times[class].0 += now - last;
        times[class].1 += 1;
        last = now;
        if now - begin >= duration {
            break;
        }
    }
    Ok(Alone {
        rate: count as f64 / begin.elapsed().as_secs_f64(),
        means: times
            .iter()
            .map(|(t, n)| t.as_secs_f64() / (*n).max(1) as f64)
            .collect(),
    })
}

/// How [`alone`] asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Prepared queries.
    Prepared,
    /// Texts, each parsed and planned unless it was before.
    Text,
}

/// What [`alone`] measured.
pub struct Alone {
    pub rate: f64,
    /// Seconds a query, by class.
    pub means: Vec<f64>,
}
