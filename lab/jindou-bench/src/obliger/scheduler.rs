//! The scheduler: admission of jobs, their distribution to the workers' queues, and shutdown.

use super::counts::Counters;
use super::pool::Heavy;
use super::queue::Queue;
use super::{Counts, Dropped, Job, Options, Policy, Refusal, Submit, TaskSource, WorkClass};
use jindou::WorkerPool;
use jindou_engine::HELPERS_STACK;
use jindou_server::{Admission, RefusalReason};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The scheduler; see [`super`].
pub struct Scheduler<W: TaskSource> {
    inner: Arc<SchedulerState<W>>,
    threads: Vec<JoinHandle<()>>,
}

/// State that workers share.
pub(crate) struct SchedulerState<W: TaskSource> {
    pub work: W,
    pub options: Options,
    pub admission: Admission,
    pub queues: Box<[Queue<W::Task>]>,
    pub heavy_queue: Queue<W::Task>,
    pub heavy: Arc<Heavy>,
    /// `heavy` as the trait object that the engine takes.
    pub pool: Arc<dyn WorkerPool>,
    /// Number of workers that take light queries, which are the first ones.
    pub light_workers: usize,
    /// Counter for giving out queues in turn.
    turn: AtomicUsize,
    pub closed: AtomicBool,
    pub counters: Box<[Counters]>,
}

impl<W: TaskSource> Scheduler<W> {
    /// Starts the workers' threads.
    pub fn start(work: W, options: Options) -> std::io::Result<Self> {
        let workers = options.workers.max(1);
        let light_workers = if options.isolate && workers > 1 {
            workers - (workers / 2).max(1)
        } else {
            workers
        };
        let heavy = Arc::new(Heavy::new(options.heavy_workers.clamp(1, workers)));
        let begin = Instant::now();
        let inner = Arc::new(SchedulerState {
            work,
            admission: Admission::new(options.limits.clone()),
            queues: (0..workers).map(|w| Queue::new(w, begin)).collect(),
            heavy_queue: Queue::new(usize::MAX, begin),
            pool: Arc::clone(&heavy) as Arc<dyn WorkerPool>,
            heavy,
            light_workers,
            turn: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            counters: (0..workers).map(|_| Counters::default()).collect(),
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
                    .stack_size(HELPERS_STACK)
                    .spawn(move || inner.serve(worker))?,
            );
        }
        Ok(scheduler)
    }

    /// Admits a job and gives it to a worker.
    ///
    /// # Errors
    /// The job, with the reason why admission refused it.
    pub fn submit(&self, job: Job<W::Task>) -> Result<(), (Refusal, Job<W::Task>)> {
        self.inner.submit(job)
    }

    /// The admission, which decides which jobs are let in.
    #[cfg(test)]
    pub fn admission(&self) -> &Admission {
        &self.inner.admission
    }

    /// The [`TaskSource`] that runs tasks.
    pub fn work(&self) -> &W {
        &self.inner.work
    }

    /// A function that submits jobs without keeping the scheduler alive.
    pub fn submitter(&self) -> Submit<W::Task> {
        let weak = Arc::downgrade(&self.inner);
        Arc::new(move |job| match weak.upgrade() {
            Some(inner) if !inner.closed.load(Ordering::Relaxed) => inner.submit(job).is_ok(),
            _ => false,
        })
    }

    /// Counts of all workers so far.
    pub fn counts(&self) -> Counts {
        Counters::sum(self.inner.counters.iter())
    }

    /// Number of waiting jobs in the light queues and in the heavy one.
    #[cfg(test)]
    pub fn waiting(&self) -> (usize, usize) {
        let inner = &self.inner;
        (
            inner.queues.iter().map(Queue::len).sum(),
            inner.heavy_queue.len(),
        )
    }

    /// Stops the workers after their current jobs; waiting jobs are dropped.
    pub fn close(&mut self) {
        self.inner.closed.store(true, Ordering::Relaxed);
        // A worker that is about to sleep checks `closed` after a fence of its own, so it sees this or is woken below.
        fence(Ordering::SeqCst);
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

impl<W: TaskSource> Drop for Scheduler<W> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<W: TaskSource> SchedulerState<W> {
    fn submit(&self, job: Job<W::Task>) -> Result<(), (Refusal, Job<W::Task>)> {
        if let Err(refused) = self.enter_late(&job, job.arrived.elapsed()) {
            return Err((refused, job));
        }
        self.enqueue(job);
        Ok(())
    }

    /// Admits a job whose waiting time so far counts against the limit.
    pub(crate) fn enter_late(&self, job: &Job<W::Task>, waited: Duration) -> Result<(), Refusal> {
        let longest = match job.class {
            WorkClass::Light => self.options.limits.light_wait,
            WorkClass::Heavy => self.options.limits.heavy_wait,
        };
        if longest == Duration::MAX {
            return self.admission.enter(job.class, job.client);
        }
        match longest.checked_sub(waited) {
            Some(left) => self.admission.enter_within(job.class, job.client, left),
            None => Err(Refusal {
                reason: RefusalReason::Slow,
                retry_after: self
                    .admission
                    .expected_wait(job.class)
                    .max(Duration::from_millis(1)),
            }),
        }
    }

    /// True if the limit on light queries is so high that admission may learn of finished ones a few at a time.
    pub(crate) fn is_roomy(&self) -> bool {
        self.options.limits.light >= 1024
    }

    /// Puts an admitted job into a worker's queue, or into the heavy queue.
    pub(crate) fn enqueue(&self, job: Job<W::Task>) {
        if job.class == WorkClass::Heavy {
            self.heavy_queue.push(job);
            if self.heavy.has_place() {
                self.wake_for_heavy(1);
            }
            return;
        }
        let at = match (self.options.policy, job.home) {
            (Policy::Shared, _) => 0,
            (_, Some(home)) => home % self.light_workers,
            (_, None) => self.turn.fetch_add(1, Ordering::Relaxed) % self.light_workers,
        };
        self.queues[at].push(job);
        if self.queues[at].wake() || self.options.policy == Policy::Private {
            return;
        }
        // The queue's own worker is awake, perhaps with a long job. Wakes one that sleeps, which can take this job or
        // watch the queue.
        for q in &self.queues[..self.light_workers] {
            if q.call() {
                return;
            }
        }
    }

    /// Number of the first worker that may take heavy queries.
    pub(crate) fn heavy_from(&self) -> usize {
        if self.light_workers < self.queues.len() {
            self.light_workers
        } else {
            0
        }
    }

    pub(crate) fn wake_for_heavy(&self, n: usize) {
        let mut left = n;
        for q in &self.queues[self.heavy_from()..] {
            if left == 0 {
                break;
            }
            left -= usize::from(q.wake());
        }
    }

    pub(crate) fn drop_job(&self, job: Job<W::Task>, why: Dropped) {
        self.admission.leave(job.class, job.client, None);
        self.work.dropped(job, why);
    }
}
