//! A worker's queue, and the state that tells whether the worker is stuck (OSDI '16, fig. 11).

use super::Job;
use super::sync::{
    AtomicU8, AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering, PoisonError, Thread, fence,
};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The worker runs a job or looks for one.
const AWAKE: u8 = 0;
/// The worker sleeps until a job elsewhere, which it has seen, becomes takeable; only a job in its own queue wakes it
/// earlier.
const WATCHES: u8 = 1;
/// The worker sleeps, and any job that it may take wakes it.
const SLEEPS: u8 = 2;

/// A worker's queue, and the worker's state as others see it. Queues of different workers share no cache line.
#[repr(align(128))]
pub(crate) struct Queue<T> {
    jobs: Mutex<VecDeque<Job<T>>>,
    /// Number of jobs, readable without the lock.
    len: AtomicUsize,
    /// State of the worker: [`AWAKE`], [`WATCHES`] or [`SLEEPS`].
    state: AtomicU8,
    thread: Mutex<Option<Thread>>,
    /// Number of the worker that serves the queue now. `current` and `end` are hints: reading an old value only makes a
    /// worker take a job a little early or late.
    current: AtomicUsize,
    /// When the job that `current` runs counts as too long, in nanoseconds after `begin`.
    end: AtomicU64,
    begin: Instant,
}

impl<T> Queue<T> {
    /// `begin` is the time from which all queues count.
    pub(crate) fn new(worker: usize, begin: Instant) -> Self {
        Self {
            jobs: Mutex::default(),
            len: AtomicUsize::new(0),
            state: AtomicU8::new(AWAKE),
            thread: Mutex::new(None),
            current: AtomicUsize::new(worker),
            end: AtomicU64::new(0),
            begin,
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Job<T>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self, time: Instant) -> u64 {
        time.saturating_duration_since(self.begin).as_nanos() as u64
    }

    fn after(&self, now: Instant, t: Duration) -> u64 {
        let t = u64::try_from(t.as_nanos()).unwrap_or(u64::MAX);
        self.at(now).saturating_add(t)
    }

    /// True if no job waits. A worker that is about to sleep checks this after [`Self::lie_down`], and a thread that
    /// pushes looks for sleepers after [`Self::push`]. Both have a fence, and fences are totally ordered, so at least
    /// one of the two sees the other.
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::Relaxed) == 0
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub(crate) fn push(&self, job: Job<T>) {
        let mut jobs = self.lock();
        jobs.push_back(job);
        self.len.store(jobs.len(), Ordering::Relaxed);
        drop(jobs);
        fence(Ordering::SeqCst);
    }

    pub(crate) fn set_thread(&self, thread: Thread) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    /// Marks the worker as about to sleep, so that [`Self::wake`] and [`Self::call`] wake it from now on. It must then
    /// look for work once more.
    pub(crate) fn lie_down(&self) {
        self.state.store(SLEEPS, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Notes that the worker will wake by itself when it can take a job that waits elsewhere, so that only
    /// [`Self::wake`] wakes it from now on.
    pub(crate) fn watch(&self) {
        // Fails if the worker has been woken meanwhile, which must not be undone.
        let _ = self
            .state
            .compare_exchange(SLEEPS, WATCHES, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(crate) fn get_up(&self) {
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// Wakes the worker if it sleeps, because of a job in this queue or one that only this worker can take. True if it
    /// slept. The job must have been pushed before, with a fence after it as in [`Self::push`].
    pub(crate) fn wake(&self) -> bool {
        self.rouse(WATCHES)
    }

    /// Wakes the worker because of a job elsewhere, if it sleeps in state [`SLEEPS`]. True if it did.
    pub(crate) fn call(&self) -> bool {
        self.rouse(SLEEPS)
    }

    fn rouse(&self, from: u8) -> bool {
        // `fetch_update` retries if the worker changes from one sleeping state to the other meanwhile.
        let slept = self
            .state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |state| {
                (state >= from).then_some(AWAKE)
            })
            .is_ok();
        if slept {
            let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(thread) = &*thread {
                thread.unpark();
            }
        }
        slept
    }

    /// Removes the next job, whichever worker serves the queue.
    pub(crate) fn take(&self) -> Option<Job<T>> {
        if self.is_empty() {
            return None;
        }
        let mut jobs = self.lock();
        let job = jobs.pop_front();
        self.len.store(jobs.len(), Ordering::Relaxed);
        job
    }

    /// Arrival time of the first job in the queue.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        if self.is_empty() {
            return None;
        }
        self.lock().front().map(|j| j.arrived)
    }

    fn serve(&self, worker: usize, end: u64) {
        self.current.store(worker, Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
    }

    /// SELF of fig. 11: the queue's own worker takes the next job at `now`.
    pub(crate) fn take_own(&self, worker: usize, now: Instant, t: Duration) -> Option<Job<T>> {
        let job = self.take()?;
        self.serve(worker, self.after(now, t));
        Some(job)
    }

    /// The queue's own worker starts a heavy query at `now`, so it counts as stuck at once instead of after T.
    pub(crate) fn away(&self, worker: usize, now: Instant) {
        self.serve(worker, self.at(now));
    }

    /// OBLIGER of fig. 11: `worker` takes a job if the queue's own worker is stuck, or if `worker` already stands in
    /// for it. A worker that is `idle` also takes a job that has waited longer than T, since a slow worker (another
    /// process has its core) may have many jobs that each take less than T. `None` if the queue needs no help,
    /// `Some(None)` if it does but no job waits.
    pub(crate) fn oblige(
        &self,
        worker: usize,
        now: Instant,
        t: Duration,
        idle: bool,
    ) -> Option<Option<Job<T>>> {
        if self.is_empty() {
            // No job waits, so it does not matter whether the worker is stuck.
            return None;
        }
        let stuck = self.current.load(Ordering::Relaxed) == worker
            || self.end.load(Ordering::Relaxed) < self.at(now);
        if stuck {
            let job = self.take();
            self.serve(worker, self.after(now, t));
            return Some(job);
        }
        if !idle {
            return None;
        }
        let mut jobs = self.lock();
        let waited = jobs
            .front()
            .map(|j| now.saturating_duration_since(j.arrived));
        if waited.is_none_or(|w| w <= t) {
            return None;
        }
        let job = jobs.pop_front();
        self.len.store(jobs.len(), Ordering::Relaxed);
        Some(job)
    }

    /// Time after `now` until another worker may take jobs that wait in this queue.
    pub(crate) fn stuck_in(&self, now: Instant, t: Duration) -> Duration {
        let end = self.end.load(Ordering::Relaxed);
        Duration::from_nanos(end.saturating_sub(self.at(now))).min(t)
    }

    /// Removes all jobs.
    pub(crate) fn drain(&self) -> VecDeque<Job<T>> {
        let mut jobs = self.lock();
        self.len.store(0, Ordering::Relaxed);
        std::mem::take(&mut *jobs)
    }
}
