//! The scheduler: its workers' queues, what is let into them, and its end.

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

/// See [`crate`].
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
    /// The same, as the engine knows it.
    pub pool: Arc<dyn WorkerPool>,
    /// Workers that take light queries: the first this many.
    pub light_workers: usize,
    turn: AtomicUsize,
    pub closed: AtomicBool,
    pub counters: Box<[Counters]>,
}

impl<W: TaskSource> Scheduler<W> {
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

    /// Lets a job in and gives it to a worker.
    ///
    /// # Errors
    /// [`Refusal`], and the job.
    pub fn submit(&self, job: Job<W::Task>) -> Result<(), (Refusal, Job<W::Task>)> {
        self.inner.submit(job)
    }

    /// The admission, which decides which jobs are let in.
    #[cfg(test)]
    #[must_use]
    pub fn admission(&self) -> &Admission {
        &self.inner.admission
    }

    /// The [`TaskSource`] that runs tasks.
    #[must_use]
    pub fn work(&self) -> &W {
        &self.inner.work
    }

    /// A means to submit that holds the scheduler no longer than it lives.
    #[must_use]
    pub fn submitter(&self) -> Submit<W::Task> {
        let weak = Arc::downgrade(&self.inner);
        Arc::new(move |job| match weak.upgrade() {
            Some(inner) if !inner.closed.load(Ordering::Relaxed) => inner.submit(job).is_ok(),
            _ => false,
        })
    }

    /// Counts of what all workers did so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counters::sum(self.inner.counters.iter())
    }

    /// Jobs that wait: of the light queues, and of the heavy one.
    #[cfg(test)]
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
        self.inner.closed.store(true, Ordering::Relaxed);
        // Workers that lie down look at it after a fence of theirs.
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

    /// Lets a job in that has `waited` since it came: that counts.
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

    /// True if some light queries more or less that are in make no difference.
    pub(crate) fn is_roomy(&self) -> bool {
        self.options.limits.light >= 1024
    }

    /// Gives a job that was let in to a worker, or to its class.
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
        // Its worker is at something. One that sleeps can take the job, or see when it may.
        for q in &self.queues[..self.light_workers] {
            if q.call() {
                return;
            }
        }
    }

    /// The workers that may take heavy queries.
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
