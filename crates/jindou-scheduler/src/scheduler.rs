//! The workers.

use crate::crew::Heavy;
use crate::queue::Queue;
use crate::{Admission, Class, Options, Policy, Reason, Refused};
use jindou_engine::Crew;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Runs tasks.
pub trait Work: Send + Sync + 'static {
    /// What is to be done.
    type Task: Send + 'static;
    /// What each worker keeps from task to task.
    type Local;

    /// A worker's own state, made on its thread.
    fn local(&self, worker: usize) -> Self::Local;

    /// Does it. Of a heavy task the `crew` are other workers that may be asked to help, `threads` at most with this one.
    fn run(
        &self,
        job: Job<Self::Task>,
        local: &mut Self::Local,
        crew: &Arc<dyn Crew>,
        threads: usize,
    ) -> Ran<Self::Task>;

    /// A job was let in but will not be run.
    fn dropped(&self, job: Job<Self::Task>, why: Dropped);
}

/// A task on its way.
#[derive(Clone, Debug)]
pub struct Job<T> {
    /// What is to be done.
    pub task: T,
    /// How much it is.
    pub class: Class,
    /// Whose.
    pub client: u64,
    /// When it came: deadlines and latencies count from here.
    pub arrived: Instant,
    /// When nobody wants it any more.
    pub deadline: Option<Instant>,
    /// It began as a light one.
    pub moved: bool,
}

impl<T> Job<T> {
    /// A job that comes now.
    pub fn new(task: T, class: Class, client: u64) -> Self {
        Self {
            task,
            class,
            client,
            arrived: Instant::now(),
            deadline: None,
            moved: false,
        }
    }
}

/// Submits jobs from anywhere.
pub type Submit<T> = Arc<dyn Fn(Job<T>) -> Result<(), Refused> + Send + Sync>;

/// What became of a job that was run.
pub enum Ran<T> {
    /// It is over.
    Done,
    /// It was called light and is not: nothing of it was given out, and it begins again as a heavy one.
    TooLong(Job<T>),
}

/// Why a job was not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Its deadline passed while it waited.
    Late,
    /// It turned out heavy, and no heavy one is let in.
    Refused(Refused),
    /// The scheduler ends.
    Closed,
}

/// What workers did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Light jobs that were run.
    pub light: u64,
    /// Heavy jobs that were run.
    pub heavy: u64,
    /// Light jobs that were taken from another worker's queue.
    pub taken: u64,
    /// Light jobs that became heavy ones.
    pub moved: u64,
    /// Jobs whose deadline passed while they waited.
    pub late: u64,
    /// Times a worker helped a heavy query.
    pub helped: u64,
}

#[derive(Default)]
struct Counters {
    light: AtomicU64,
    heavy: AtomicU64,
    taken: AtomicU64,
    moved: AtomicU64,
    late: AtomicU64,
    helped: AtomicU64,
}

/// See [`crate`].
pub struct Scheduler<W: Work> {
    inner: Arc<Inner<W>>,
    threads: Vec<JoinHandle<()>>,
}

struct Inner<W: Work> {
    work: W,
    options: Options,
    admission: Admission,
    queues: Box<[Queue<W::Task>]>,
    heavy_queue: Queue<W::Task>,
    heavy: Arc<Heavy>,
    /// The same, as the engine knows it.
    crew: Arc<dyn Crew>,
    /// Workers that take light queries: the first so many.
    light_workers: usize,
    turn: AtomicUsize,
    closed: AtomicBool,
    counters: Counters,
}

/// Longest sleep of a worker that nobody wakes.
const NAP: Duration = Duration::from_millis(100);

impl<W: Work> Scheduler<W> {
    /// Starts the workers.
    ///
    /// # Errors
    /// The system's, when it gives no threads.
    pub fn start(work: W, options: Options) -> std::io::Result<Self> {
        let workers = options.workers.max(1);
        let light_workers = if options.isolate && workers > 1 {
            workers - (workers / 2).max(1)
        } else {
            workers
        };
        let heavy = Arc::new(Heavy::new(options.heavy_workers.clamp(1, workers)));
        let inner = Arc::new(Inner {
            work,
            admission: Admission::new(options.limits.clone()),
            queues: (0..workers).map(Queue::new).collect(),
            heavy_queue: Queue::new(usize::MAX),
            crew: Arc::clone(&heavy) as Arc<dyn Crew>,
            heavy,
            light_workers,
            turn: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            counters: Counters::default(),
            options,
        });
        let weak = Arc::downgrade(&inner);
        inner.heavy.on_wanted(Box::new(move |n| {
            if let Some(inner) = weak.upgrade() {
                inner.wake_for_heavy(n);
            }
        }));
        let mut scheduler = Self {
            inner,
            threads: Vec::with_capacity(workers),
        };
        for worker in 0..workers {
            let inner = Arc::clone(&scheduler.inner);
            scheduler.threads.push(
                std::thread::Builder::new()
                    .name(format!("worker-{worker}"))
                    .stack_size(8 << 20)
                    .spawn(move || inner.serve(worker))?,
            );
        }
        Ok(scheduler)
    }

    /// Lets a job in and gives it to a worker.
    ///
    /// # Errors
    /// [`Refused`], and the job.
    pub fn submit(&self, job: Job<W::Task>) -> Result<(), (Refused, Job<W::Task>)> {
        self.inner.submit(job)
    }

    /// What is let in.
    #[must_use]
    pub fn admission(&self) -> &Admission {
        &self.inner.admission
    }

    /// What runs tasks.
    #[must_use]
    pub fn work(&self) -> &W {
        &self.inner.work
    }

    /// A means to submit that holds the scheduler no longer than it lives.
    #[must_use]
    pub fn submitter(&self) -> Submit<W::Task> {
        let weak = Arc::downgrade(&self.inner);
        Arc::new(move |job| match weak.upgrade() {
            Some(inner) if !inner.closed.load(Ordering::Relaxed) => {
                inner.submit(job).map_err(|(refused, _)| refused)
            }
            _ => Err(Refused {
                reason: Reason::Closed,
                retry_after: Duration::from_secs(1),
            }),
        })
    }

    /// What workers did so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let c = &self.inner.counters;
        let of = |n: &AtomicU64| n.load(Ordering::Relaxed);
        Counts {
            light: of(&c.light),
            heavy: of(&c.heavy),
            taken: of(&c.taken),
            moved: of(&c.moved),
            late: of(&c.late),
            helped: of(&c.helped),
        }
    }

    /// Jobs that wait: of the light queues, and of the heavy one.
    #[must_use]
    pub fn waiting(&self) -> (usize, usize) {
        let inner = &self.inner;
        (
            inner.queues.iter().map(Queue::len).sum(),
            inner.heavy_queue.len(),
        )
    }

    /// Ends the workers when they are through with what they are at; what waits is dropped.
    pub fn close(&mut self) {
        self.inner.closed.store(true, Ordering::SeqCst);
        for t in self.threads.drain(..) {
            for q in &self.inner.queues {
                q.wake();
            }
            t.thread().unpark();
            let _ = t.join();
        }
        let inner = &self.inner;
        for q in inner.queues.iter().chain([&inner.heavy_queue]) {
            for job in q.drain() {
                inner.drop_job(job, Dropped::Closed);
            }
        }
    }
}

impl<W: Work> Drop for Scheduler<W> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<W: Work> Inner<W> {
    fn submit(&self, job: Job<W::Task>) -> Result<(), (Refused, Job<W::Task>)> {
        if let Err(refused) = self.admission.enter(job.class, job.client) {
            return Err((refused, job));
        }
        self.enqueue(job);
        Ok(())
    }

    fn enqueue(&self, job: Job<W::Task>) {
        if job.class == Class::Heavy {
            self.heavy_queue.push(job);
            if self.heavy.has_place() {
                self.wake_for_heavy(1);
            }
            return;
        }
        let at = match self.options.policy {
            Policy::Shared => 0,
            _ => self.turn.fetch_add(1, Ordering::Relaxed) % self.light_workers,
        };
        self.queues[at].push(job);
        if self.queues[at].wake() || self.options.policy == Policy::Private {
            return;
        }
        // Its worker is at something. One that sleeps can take the job, or see when it may.
        for q in &self.queues[..self.light_workers] {
            if q.wake() {
                return;
            }
        }
    }

    /// The workers that may take heavy queries.
    fn heavy_from(&self) -> usize {
        if self.light_workers < self.queues.len() {
            self.light_workers
        } else {
            0
        }
    }

    fn wake_for_heavy(&self, n: usize) {
        let mut left = n;
        for q in &self.queues[self.heavy_from()..] {
            if left == 0 {
                break;
            }
            left -= usize::from(q.wake());
        }
    }

    fn serve(&self, worker: usize) {
        let own = &self.queues[worker];
        own.set_thread(std::thread::current());
        let mut local = self.work.local(worker);
        let mut next = 1;
        while !self.closed.load(Ordering::Relaxed) {
            if self.heavy_turn(worker, &mut local) {
                continue;
            }
            match self.next_light(worker, &mut next) {
                Some(job) => self.run(job, &mut local),
                None => self.sleep(worker),
            }
        }
    }

    /// Works on a heavy query if there is one and few enough are at it.
    fn heavy_turn(&self, worker: usize, local: &mut W::Local) -> bool {
        let wanted = self.heavy.wanted.load(Ordering::Relaxed) > 0;
        if worker < self.heavy_from() || !wanted && self.heavy_queue.is_empty() {
            return false;
        }
        if !self.heavy.enter() {
            return false;
        }
        let is_light = worker < self.light_workers;
        if is_light {
            self.admission.go_away(true);
        }
        let t = self.options.stuck_after;
        self.queues[worker].away(worker, Instant::now(), t);
        let helped = wanted && self.heavy.help();
        if helped {
            self.counters.helped.fetch_add(1, Ordering::Relaxed);
        }
        let job = if helped {
            None
        } else {
            self.heavy_queue.take()
        };
        let did = helped || job.is_some();
        if let Some(job) = job {
            self.run(job, local);
        }
        self.heavy.leave();
        if is_light {
            self.admission.go_away(false);
        }
        let more = !self.heavy_queue.is_empty() || self.heavy.wanted.load(Ordering::Relaxed) > 0;
        if did && more {
            self.wake_for_heavy(1);
        }
        did
    }

    fn next_light(&self, worker: usize, next: &mut usize) -> Option<Job<W::Task>> {
        if worker >= self.light_workers {
            return None;
        }
        let t = self.options.stuck_after;
        let queues = &self.queues[..self.light_workers];
        match self.options.policy {
            Policy::Shared => queues[0].take(),
            Policy::Private => queues[worker].take(),
            Policy::Stealing => queues[worker].take().or_else(|| {
                let job =
                    (1..queues.len()).find_map(|n| queues[(worker + n) % queues.len()].take());
                self.counters
                    .taken
                    .fetch_add(u64::from(job.is_some()), Ordering::Relaxed);
                job
            }),
            Policy::Oblige => {
                let now = Instant::now();
                if *next < queues.len() {
                    let at = (worker + *next) % queues.len();
                    if let Some(obliged) = queues[at].oblige(worker, now, t) {
                        *next += 1;
                        if obliged.is_some() {
                            self.counters.taken.fetch_add(1, Ordering::Relaxed);
                            return obliged;
                        }
                    }
                }
                *next = 1;
                queues[worker].take_own(worker, now, t)
            }
        }
    }

    /// True if something waits that this worker could take, now or soon.
    fn has_work(&self, worker: usize) -> Option<Duration> {
        let heavy = worker >= self.heavy_from()
            && self.heavy.has_place()
            && (!self.heavy_queue.is_empty() || self.heavy.wanted.load(Ordering::SeqCst) > 0);
        if heavy {
            return Some(Duration::ZERO);
        }
        if worker >= self.light_workers {
            return None;
        }
        let queues = &self.queues[..self.light_workers];
        match self.options.policy {
            Policy::Shared => (!queues[0].is_empty()).then_some(Duration::ZERO),
            Policy::Private => (!queues[worker].is_empty()).then_some(Duration::ZERO),
            Policy::Stealing => queues
                .iter()
                .any(|q| !q.is_empty())
                .then_some(Duration::ZERO),
            Policy::Oblige => {
                if !queues[worker].is_empty() {
                    return Some(Duration::ZERO);
                }
                let next = &queues[(worker + 1) % queues.len()];
                if !next.is_empty() {
                    return Some(next.stuck_at().saturating_duration_since(Instant::now()));
                }
                // Some other one is stuck, and whoever obliges it may be as well.
                queues
                    .iter()
                    .any(|q| !q.is_empty())
                    .then_some(self.options.stuck_after)
            }
        }
    }

    fn sleep(&self, worker: usize) {
        let own = &self.queues[worker];
        own.asleep.store(true, Ordering::SeqCst);
        // Who pushes after this look sees that the worker sleeps.
        match self.has_work(worker) {
            Some(Duration::ZERO) => {}
            Some(soon) => std::thread::park_timeout(soon),
            None if self.closed.load(Ordering::SeqCst) => {}
            None => std::thread::park_timeout(NAP),
        }
        own.asleep.store(false, Ordering::SeqCst);
    }

    fn run(&self, job: Job<W::Task>, local: &mut W::Local) {
        if job.deadline.is_some_and(|d| Instant::now() > d) {
            self.counters.late.fetch_add(1, Ordering::Relaxed);
            return self.drop_job(job, Dropped::Late);
        }
        let (class, client) = (job.class, job.client);
        let threads = match class {
            Class::Light => 1,
            Class::Heavy => self.options.heavy_threads.max(1),
        };
        let counter = match class {
            Class::Light => &self.counters.light,
            Class::Heavy => &self.counters.heavy,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let begin = Instant::now();
        let ran = catch_unwind(AssertUnwindSafe(|| {
            self.work.run(job, local, &self.crew, threads)
        }));
        self.admission.leave(class, client, Some(begin.elapsed()));
        // A panic's message is on standard error; its task is lost, the worker is not.
        if let Ok(Ran::TooLong(mut job)) = ran {
            self.counters.moved.fetch_add(1, Ordering::Relaxed);
            (job.class, job.moved) = (Class::Heavy, true);
            match self.admission.enter(Class::Heavy, job.client) {
                Ok(()) => self.enqueue(job),
                Err(refused) => self.work.dropped(job, Dropped::Refused(refused)),
            }
        }
    }

    fn drop_job(&self, job: Job<W::Task>, why: Dropped) {
        self.admission.leave(job.class, job.client, None);
        self.work.dropped(job, why);
    }
}
