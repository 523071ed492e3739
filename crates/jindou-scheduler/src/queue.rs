//! A worker's queue, and the state that says whether it is stuck (OSDI '16, fig. 11).

use crate::Job;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// See the module.
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    /// Jobs in it, to be looked at without the lock.
    len: AtomicUsize,
    /// Its worker sleeps, or is about to look whether it may.
    pub(crate) asleep: AtomicBool,
}

struct State<T> {
    jobs: VecDeque<Job<T>>,
    /// The worker that serves the queue now.
    current: usize,
    /// When what it serves counts as lengthy.
    end: Instant,
    thread: Option<Thread>,
}

impl<T> Queue<T> {
    pub(crate) fn new(worker: usize) -> Self {
        Self {
            state: Mutex::new(State {
                jobs: VecDeque::new(),
                current: worker,
                end: Instant::now(),
                thread: None,
            }),
            len: AtomicUsize::new(0),
            asleep: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who is about to sleep looks here after it has said so, and who pushes looks for sleepers after that: one of them sees
    /// the other, whence the ordering.
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::SeqCst) == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub(crate) fn push(&self, job: Job<T>) {
        let mut s = self.lock();
        s.jobs.push_back(job);
        self.len.store(s.jobs.len(), Ordering::SeqCst);
    }

    pub(crate) fn set_thread(&self, thread: Thread) {
        self.lock().thread = Some(thread);
    }

    /// Wakes its worker if that sleeps; true if it did.
    pub(crate) fn wake(&self) -> bool {
        if !self.asleep.load(Ordering::SeqCst) || !self.asleep.swap(false, Ordering::SeqCst) {
            return false;
        }
        if let Some(thread) = &self.lock().thread {
            thread.unpark();
        }
        true
    }

    fn pop(&self, s: &mut State<T>) -> Option<Job<T>> {
        let job = s.jobs.pop_front();
        self.len.store(s.jobs.len(), Ordering::Relaxed);
        job
    }

    /// The next job, whoever else serves the queue.
    pub(crate) fn take(&self) -> Option<Job<T>> {
        if self.is_empty() {
            return None;
        }
        let mut s = self.lock();
        self.pop(&mut s)
    }

    /// SELF of fig. 11: the queue's own worker takes the next job, at `now`.
    pub(crate) fn take_own(&self, worker: usize, now: Instant, t: Duration) -> Option<Job<T>> {
        let mut s = self.lock();
        (s.current, s.end) = (worker, now + t);
        self.pop(&mut s)
    }

    /// The queue's own worker goes to something that is in no queue, at `now`.
    pub(crate) fn away(&self, worker: usize, now: Instant, t: Duration) {
        let mut s = self.lock();
        (s.current, s.end) = (worker, now + t);
    }

    /// OBLIGER of fig. 11: takes a job if the queue's worker is at a lengthy one, or `worker` already stands in for it. `None`
    /// if it is not stuck; `Some(None)` if nothing waits.
    pub(crate) fn oblige(
        &self,
        worker: usize,
        now: Instant,
        t: Duration,
    ) -> Option<Option<Job<T>>> {
        if self.is_empty() {
            // Nothing waits, so it does not matter.
            return None;
        }
        let mut s = self.lock();
        if s.current != worker && s.end >= now {
            return None;
        }
        (s.current, s.end) = (worker, now + t);
        Some(self.pop(&mut s))
    }

    /// When the queue's worker counts as stuck.
    pub(crate) fn stuck_at(&self) -> Instant {
        self.lock().end
    }

    /// All that waits.
    pub(crate) fn drain(&self) -> VecDeque<Job<T>> {
        let mut s = self.lock();
        self.len.store(0, Ordering::Relaxed);
        std::mem::take(&mut s.jobs)
    }
}
