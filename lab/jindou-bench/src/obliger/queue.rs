//! A worker's queue, and the state that says whether it is stuck (OSDI '16, fig. 11).

use super::Job;
use super::sync::{
    AtomicU8, AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering, PoisonError, Thread, fence,
};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The worker works, or looks for work.
const AWAKE: u8 = 0;
/// The worker sleeps until a time at which it can take something that it knows of: only a job in its own queue is a reason to wake it.
const WATCHES: u8 = 1;
/// The worker sleeps: wake it for whatever it may take.
const SLEEPS: u8 = 2;

/// A worker's queue, and what others may know of that worker. Queues of different workers share no cache line.
#[repr(align(128))]
pub(crate) struct Queue<T> {
    jobs: Mutex<VecDeque<Job<T>>>,
    /// Jobs in it, to be looked at without the lock.
    len: AtomicUsize,
    /// State of its worker: awake, asleep or watching.
    state: AtomicU8,
    thread: Mutex<Option<Thread>>,
    /// The worker that serves the queue now. This and `end` are hints: who reads an old one takes a job a little early or late.
    current: AtomicUsize,
    /// When what that one serves counts as lengthy, in nanoseconds after `begin`.
    end: AtomicU64,
    begin: Instant,
}

impl<T> Queue<T> {
    /// `begin`: the time that all queues count from.
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

    /// True if no job waits in it. A worker that is about to sleep looks here after [`Self::lie_down`], and a thread
    /// that pushes looks for sleepers after [`Self::push`]: the fences in both have one order, so one of the two sees
    /// the other.
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

    /// The worker is about to sleep: [`Self::wake`] and [`Self::call`] wake it from now on. It must look for work once more.
    pub(crate) fn lie_down(&self) {
        self.state.store(SLEEPS, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The worker will wake by itself when it can take what waits elsewhere: only [`Self::wake`] wakes it from now on.
    pub(crate) fn watch(&self) {
        // Who has seen it asleep wakes it: that stays.
        let _ = self
            .state
            .compare_exchange(SLEEPS, WATCHES, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(crate) fn get_up(&self) {
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// Wakes its worker if that sleeps: there is something in this queue, or something that only it can see to. True if it slept.
    /// The new work must have been announced before, with a fence after it as in [`Self::push`].
    pub(crate) fn wake(&self) -> bool {
        self.rouse(WATCHES)
    }

    /// Wakes its worker if that knows of nothing to do: there is something elsewhere. True if it slept.
    pub(crate) fn call(&self) -> bool {
        self.rouse(SLEEPS)
    }

    fn rouse(&self, from: u8) -> bool {
        // Tried again where the worker steps from one way of sleeping to the other meanwhile.
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

    /// The next job, regardless of other threads that serve the queue.
    pub(crate) fn take(&self) -> Option<Job<T>> {
        if self.is_empty() {
            return None;
        }
        let mut jobs = self.lock();
        let job = jobs.pop_front();
        self.len.store(jobs.len(), Ordering::Relaxed);
        job
    }

    /// When the first of those that wait came.
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

    /// SELF of fig. 11: the queue's own worker takes the next job, at `now`.
    pub(crate) fn take_own(&self, worker: usize, now: Instant, t: Duration) -> Option<Job<T>> {
        let job = self.take()?;
        self.serve(worker, self.after(now, t));
        Some(job)
    }

    /// The queue's own worker goes to a heavy query at `now`: that is lengthy, as is known without waiting for T.
    pub(crate) fn away(&self, worker: usize, now: Instant) {
        self.serve(worker, self.at(now));
    }

    /// OBLIGER of fig. 11: takes a job if the queue's worker is at a lengthy one, or `worker` already stands in for it. A worker that is
    /// `idle` also takes what has waited for longer than T, though each query of a slow worker (another process has its core)
    /// may take less. `None` if there is no need; `Some(None)` if nothing waits.
    pub(crate) fn oblige(
        &self,
        worker: usize,
        now: Instant,
        t: Duration,
        idle: bool,
    ) -> Option<Option<Job<T>>> {
        if self.is_empty() {
            // Nothing waits, so it does not matter.
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

    /// How long after `now` it is till something else may take what waits here.
    pub(crate) fn stuck_in(&self, now: Instant, t: Duration) -> Duration {
        let end = self.end.load(Ordering::Relaxed);
        Duration::from_nanos(end.saturating_sub(self.at(now))).min(t)
    }

    /// All that waits.
    pub(crate) fn drain(&self) -> VecDeque<Job<T>> {
        let mut jobs = self.lock();
        self.len.store(0, Ordering::Relaxed);
        std::mem::take(&mut *jobs)
    }
}
