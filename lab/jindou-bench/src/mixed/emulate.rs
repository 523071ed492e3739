//! One run: clients in this process send queries to a scheduler's workers. Latencies are from intended arrival to the
//! last row.

use super::arrivals::{Arrivals, Look, Next, Random, Sources};
use super::classes::Class;
use super::machine::{Neighbour, Reading};
use super::outcome::{MOST_SAMPLES, Outcome, SAMPLE, STEP, STEPS, Stats, step_of};
use crate::measure::{cpu_time, resident_memory};
use crate::obliger::{
    Drawn, Dropped, Job, Options, Ran, Refusal, Scheduler, Submit, TaskSource, WorkClass as Weight,
};
use jindou::{
    Database, Error, PlannedQuery, QueryOptions, Resource, Result, Session, Value, WorkerPool,
};
use jindou_model::sync::lock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// A heavy query.
pub struct Heavy {
    pub name: String,
    pub text: String,
    pub planned: PlannedQuery,
    /// Its relative frequency among the heavy queries. If all are 0, they run in turn.
    pub weight: f64,
}

/// The database, the queries that clients ask, and their limits.
pub struct Setup {
    pub db: Database,
    pub classes: Vec<Class>,
    pub heavy: Vec<Heavy>,
    /// Running sums of the classes' weights, followed by those of the heavy queries if clients of light queries send
    /// them as well.
    pub sums: Vec<f64>,
}

impl Setup {
    /// A random class and start point by the classes' weights; or a heavy query, if clients send both kinds.
    pub fn draw(&self, random: &mut Random) -> Task {
        let all = self.sums.last().copied().unwrap_or(0.0);
        let x = random.unit() * all;
        let at = self.sums.partition_point(|s| *s <= x);
        let at = at.min(self.sums.len().saturating_sub(1));
        match self.classes.get(at) {
            Some(class) => Task::Light {
                class: at as u16,
                start: random.below(class.starts.len()) as u32,
            },
            None => Task::Heavy((at - self.classes.len()) as u16),
        }
    }

    /// The query that a heavy client sends after the heavy query `query`.
    pub fn after(&self, query: u16, random: &mut Random) -> Task {
        let sum: f64 = self.heavy.iter().map(|h| h.weight).sum();
        if sum <= 0.0 {
            return Task::Heavy((query + 1) % self.heavy.len().max(1) as u16);
        }
        let mut x = random.unit() * sum;
        let at = self.heavy.iter().position(|h| {
            x -= h.weight;
            x < 0.0
        });
        Task::Heavy(at.unwrap_or(0) as u16)
    }

    /// Names of the light classes, then of the heavy queries.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let light = self.classes.iter().map(|c| c.name);
        light.chain(self.heavy.iter().map(|h| h.name.as_str()))
    }
}

/// A query to run, by its index in [`Setup`].
#[derive(Clone, Copy, Debug)]
pub enum Task {
    Light { class: u16, start: u32 },
    Heavy(u16),
}

impl Task {
    pub fn weight(self) -> Weight {
        match self {
            Self::Light { .. } => Weight::Light,
            Self::Heavy(_) => Weight::Heavy,
        }
    }
}

/// A run's parameters: how queries arrive, and for how long.
#[derive(Clone, Debug)]
pub struct Plan {
    pub arrivals: Arrivals,
    /// Number of clients that send heavy queries, each one after the other.
    pub heavy_clients: usize,
    pub warm_up: Duration,
    pub duration: Duration,
    /// If given, an open loop is followed by one of this many queries per second, to see how soon latencies recover
    /// from an overload.
    pub then: Option<f64>,
    pub seed: u64,
}

/// Length of the windows in which the rate of light queries is sampled.
const WINDOW: Duration = Duration::from_millis(10);
/// Time after which a light query is stopped and started again as a heavy one.
const LIGHT_LIMIT: Duration = Duration::from_millis(2);
/// Client numbers from here on are those of heavy clients.
const HEAVY: u64 = 1 << 32;

/// A value on cache lines of its own, so that workers do not contend for them.
#[repr(align(128))]
struct Apart<T>(T);

/// The scheduler's [`TaskSource`]: runs queries, and generates those that follow.
pub struct Emulator {
    setup: Arc<Setup>,
    stats: Box<[Apart<Mutex<Stats>>]>,
    recording: AtomicBool,
    /// Beginning and end of the recording, set at the end.
    recorded: OnceLock<(Instant, Instant)>,
    /// End of the overload, from which recovery counts.
    over: OnceLock<Instant>,
    /// True in a closed loop, where each answer is followed at once by the client's next query.
    closed_loop: bool,
    sources: Option<Sources>,
    /// Submits a client's next query after its last one was dropped.
    again: OnceLock<Submit<Task>>,
    seed: u64,
}

/// State of one worker.
pub struct Local {
    worker: usize,
    sessions: Vec<Session>,
    random: Random,
    look: Look,
    light: QueryOptions,
    heavy: QueryOptions,
}

impl Emulator {
    fn stats(&self, worker: usize) -> MutexGuard<'_, Stats> {
        lock(&self.stats[worker % self.stats.len()].0)
    }

    /// Counts an answer, and returns the client's next query.
    fn ended(&self, local: &mut Local, job: &Job<Task>, done: Result<u64>) -> Option<Job<Task>> {
        let now = Instant::now();
        let mut s = self.stats(local.worker);
        let latency = now.saturating_duration_since(job.arrived);
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
                s.latencies[at].add(latency);
            }
            Ok(_) => {
                if let Some(over) = self.over.get()
                    && let Some(since) = job.arrived.checked_duration_since(*over)
                    && let Some(step) = s.after.get_mut(step_of(since))
                {
                    step.add(latency);
                }
            }
            Err(e) => s.error = Some(e),
        }
        drop(s);
        self.next(job, &mut local.random, now)
    }

    /// The next query of the job's client if it is a closed loop's or a heavy client; otherwise `None`.
    fn next(&self, job: &Job<Task>, random: &mut Random, now: Instant) -> Option<Job<Task>> {
        let task = if job.client >= HEAVY {
            let Task::Heavy(query) = job.task else {
                return None;
            };
            self.setup.after(query, random)
        } else if self.closed_loop {
            self.setup.draw(random)
        } else {
            return None;
        };
        Some(self.job(task, job.client, job.home, now))
    }

    /// A job for a query that arrives at `now`.
    pub fn job(&self, task: Task, client: u64, home: Option<usize>, now: Instant) -> Job<Task> {
        Job {
            task,
            class: task.weight(),
            client,
            home,
            arrived: now,
            moved: false,
        }
    }

    /// Counts a query that admission refused.
    pub fn count_refused(&self, worker: usize, arrived: Instant, why: Refusal) {
        let mut s = self.stats(worker);
        if self.recording.load(Ordering::Relaxed) {
            s.refused += 1;
            s.retry = s.retry.max(why.retry_after);
        } else if let Some(over) = self.over.get()
            && let Some(since) = arrived.checked_duration_since(*over)
            && let Some(step) = s.refused_after.get_mut(step_of(since))
        {
            *step += 1;
        }
    }
}

impl TaskSource for Emulator {
    type Task = Task;
    type Local = Local;

    fn local(&self, worker: usize) -> Local {
        let options = QueryOptions::default().with_threads(1);
        let sessions = self.setup.classes.iter().map(|c| c.prepared.session());
        Local {
            worker,
            sessions: sessions.collect(),
            random: Random::new(self.seed + 1000 + worker as u64),
            look: Look::new(Instant::now()),
            light: options.clone().with_timeout(LIGHT_LIMIT),
            heavy: options,
        }
    }

    fn run(
        &self,
        job: Job<Task>,
        local: &mut Local,
        pool: &Arc<dyn WorkerPool>,
        threads: usize,
    ) -> Ran<Task> {
        let light = job.class == Weight::Light;
        if !light {
            local.heavy.threads = Some(threads);
            local.heavy.pool = Some(Arc::clone(pool));
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
                    let planned = &self.setup.heavy[usize::from(q)].planned;
                    self.setup.db.checksum(planned, options)
                }
            };
            match ran {
                // The first timeout may be due to another process on this core, so the query is tried again.
                Err(Error::Timeout(_)) if again => again = false,
                Err(Error::Timeout(_)) if light => return Ran::TooLong(job),
                ran => break ran,
            }
        };
        match self.ended(local, &job, ran.map(|c| c.rows)) {
            Some(next) => Ran::Next(next),
            None => Ran::Done,
        }
    }

    fn dropped(&self, job: Job<Task>, why: Dropped) {
        match why {
            Dropped::Closed => {
                let mut s = self.stats(job.client as usize);
                s.unfinished += 1;
                // A light query that still waits counts with the time that it has waited. Otherwise a queue that is
                // never served would have good latencies.
                let span = self.recorded.get().copied();
                if let (Task::Light { class, .. }, Some((from, to))) = (job.task, span)
                    && (from..to).contains(&job.arrived)
                {
                    s.latencies[usize::from(class)].add(to - job.arrived);
                }
            }
            Dropped::Refused(why) => {
                self.count_refused(job.client as usize, job.arrived, why);
                let now = Instant::now();
                let seed = now.saturating_duration_since(job.arrived).as_nanos() as u64;
                let next = self.next(&job, &mut Random::new(seed), now);
                if let (Some(next), Some(submit)) = (next, self.again.get()) {
                    let _ = submit(next);
                }
            }
        }
    }

    fn draw(&self, local: &mut Local, now: Instant) -> Drawn<Task> {
        let Some(sources) = &self.sources else {
            return Drawn::Never;
        };
        let draw = |random: &mut Random| self.setup.draw(random);
        match sources.next(draw, local.worker, &mut local.look, now) {
            Next::Now(a) => Drawn::Job(self.job(a.task, a.client, Some(a.home), a.at)),
            Next::At(at) => Drawn::At(at),
        }
    }

    fn refused(&self, local: &mut Local, job: Job<Task>, why: Refusal) {
        self.count_refused(local.worker, job.arrived, why);
    }
}

/// Runs the clients against a scheduler with these options. `beside` is a thread of other work that runs meanwhile.
pub fn run(
    setup: &Arc<Setup>,
    options: &Options,
    plan: &Plan,
    beside: Option<&Neighbour>,
) -> Result<Outcome> {
    let workers = options.workers.max(1);
    let kinds = setup.names().count();
    let begin = Instant::now();
    let sources = match plan.arrivals {
        Arrivals::Open { rate, clients } => {
            Some(Sources::new(rate, clients, workers, begin, plan.seed))
        }
        Arrivals::Closed { .. } | Arrivals::None => None,
    };
    let emulator = Emulator {
        setup: Arc::clone(setup),
        stats: (0..workers)
            .map(|_| Apart(Mutex::new(Stats::new(kinds))))
            .collect(),
        recording: AtomicBool::new(false),
        recorded: OnceLock::new(),
        over: OnceLock::new(),
        closed_loop: matches!(plan.arrivals, Arrivals::Closed { .. }),
        sources,
        again: OnceLock::new(),
        seed: plan.seed,
    };
    let mut scheduler = Scheduler::start(emulator, options.clone()).map_err(|e| {
        Error::limit(
            Resource::Threads,
            format!("cannot start threads for {workers} workers: {e}"),
        )
    })?;
    let _ = scheduler.work().again.set(scheduler.submitter());
    let mut random = Random::new(plan.seed);
    let submit = |task, client, home| {
        let job = scheduler.work().job(task, client, home, Instant::now());
        scheduler
            .submit(job)
            .map_err(|(r, _)| Error::external(r.to_string()))
    };
    for client in 0..plan.heavy_clients {
        let first = Task::Heavy((client % setup.heavy.len().max(1)) as u16);
        submit(first, HEAVY | client as u64, None)?;
    }
    if let Arrivals::Closed { clients, window } = plan.arrivals {
        for n in 0..(clients * window) as u64 {
            let client = n % clients as u64;
            submit(setup.draw(&mut random), client, Some(client as usize))?;
        }
    }
    let mut out = Outcome::default();
    watch(&scheduler, plan, beside, &mut out);
    out.counts = scheduler.counts();
    scheduler.close();
    for s in &scheduler.work().stats {
        out.add(setup, std::mem::take(&mut *lock(&s.0)))?;
    }
    if plan.then.is_none() {
        out.after.clear();
    }
    Ok(out)
}

/// Waits for the end of a run. Records between warm-up and end, and samples the machine's state.
fn watch(
    scheduler: &Scheduler<Emulator>,
    plan: &Plan,
    beside: Option<&Neighbour>,
    out: &mut Outcome,
) {
    let work = scheduler.work();
    let unsent = || work.sources.as_ref().map_or(0, Sources::unsent);
    let mut windows = vec![];
    let until = |end: Instant, most: &mut u64, windows: &mut Vec<f64>| {
        let mut look = Instant::now();
        loop {
            let now = Instant::now();
            if now >= end {
                return;
            }
            if now >= look {
                *most = (*most).max(resident_memory().0);
                look = now + Duration::from_secs(1);
            }
            let done = scheduler.counts().light;
            std::thread::sleep(end.saturating_duration_since(now).min(WINDOW));
            let done = scheduler.counts().light - done;
            windows.push(done as f64 / now.elapsed().as_secs_f64());
        }
    };
    let rounds = || beside.map_or(0, Neighbour::rounds);
    until(Instant::now() + plan.warm_up, &mut 0, &mut windows);
    windows.clear();
    let (processor, reading, before) = (cpu_time(), Reading::now(), unsent());
    out.memory = [resident_memory().0; 3];
    let rounds_before = rounds();
    let from = Instant::now();
    work.recording.store(true, Ordering::Relaxed);
    until(from + plan.duration, &mut out.memory[2], &mut windows);
    windows.sort_by(f64::total_cmp);
    out.best_tenth = windows.get(windows.len() * 9 / 10).copied().unwrap_or(0.0);
    work.recording.store(false, Ordering::Relaxed);
    let _ = work.recorded.set((from, Instant::now()));
    out.seconds = from.elapsed().as_secs_f64();
    out.processor = cpu_time().saturating_sub(processor).as_secs_f64();
    out.taken = Reading::now().since(&reading);
    out.memory[1] = resident_memory().0;
    out.memory[2] = out.memory[2].max(out.memory[1]);
    out.unsent = unsent() - before;
    out.beside = beside.map(|_| (rounds() - rounds_before) as f64 / out.seconds);
    if let Some(rate) = plan.then {
        let over = Instant::now();
        let _ = work.over.set(over);
        if let Some(sources) = &work.sources {
            sources.set_rate(rate, over);
        }
        until(over + STEP * STEPS as u32, &mut 0, &mut windows);
        // Time for the last queries to be answered.
        std::thread::sleep(STEP);
    }
}
