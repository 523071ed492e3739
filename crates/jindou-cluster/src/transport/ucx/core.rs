//! The UCX worker behind a lock, and how threads share it.
//!
//! A caller starts its operations and then drives UCX's progress itself for a while, which is the fastest way. After
//! that the caller sleeps, and the progress thread ([`super::progress`]) takes over.

use super::library::load;
use super::operation::UcxOperation;
use super::worker::{MemoryHandle, Worker};
use crate::transport::{Result, TransportError};
use jindou_model::sync::lock;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Longest wait, when closing, for UCX to complete operations in progress.
const CLOSE_WAIT: Duration = Duration::from_millis(2000);
/// When closing: time without progress after which all operations are assumed to be complete.
const CLOSE_QUIET: Duration = Duration::from_millis(100);
/// Time for which a caller drives progress itself before it sleeps. Longer than a round trip over TCP, so that callers
/// rarely sleep.
const SPIN_BEFORE_SLEEP: Duration = Duration::from_micros(100);

/// The worker, and the state that its users share.
pub(super) struct Core {
    worker: Mutex<Worker>,
    /// Number of threads that wait for the lock while another one drives progress.
    wanted: AtomicU32,
    /// Number of callers that drive progress themselves. While there are some, the progress thread pauses.
    pub(super) spinning: AtomicU32,
    /// Broken endpoints that the links have not been notified of: number and reason.
    pub(super) broken: Mutex<Vec<(u32, String)>>,
    wake: OwnedFd,
    /// Becomes readable when UCX has an event, after the worker was armed.
    pub(super) events: RawFd,
    pub(super) closed: AtomicBool,
}

impl Core {
    /// Loads UCX and creates a worker.
    pub(super) fn new(devices: &str) -> Result<Arc<Self>> {
        let mut worker = Worker::new(load()?, devices)?;
        let events = worker.event_descriptor()?;
        // SAFETY: a system call without pointers; nothing else owns the descriptor that it returns.
        let wake = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if wake < 0 {
            let e = std::io::Error::last_os_error();
            return Err(TransportError::Unavailable(format!("eventfd: {e}")));
        }
        Ok(Arc::new(Self {
            worker: Mutex::new(worker),
            wanted: AtomicU32::new(0),
            spinning: AtomicU32::new(0),
            broken: Mutex::default(),
            // SAFETY: `wake` was just created, and nothing else owns it.
            wake: unsafe { OwnedFd::from_raw_fd(wake) },
            events,
            closed: AtomicBool::new(false),
        }))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Locks the worker, for one or a few UCX calls.
    pub(super) fn worker(&self) -> MutexGuard<'_, Worker> {
        /// Number of attempts to lock before the thread sleeps. A thread that drives progress releases the lock about
        /// every microsecond.
        const TRIES: u32 = 500;
        if let Ok(w) = self.worker.try_lock() {
            return w;
        }
        self.wanted.fetch_add(1, Ordering::Relaxed);
        let spun = (0..TRIES).find_map(|_| {
            std::hint::spin_loop();
            self.worker.try_lock().ok()
        });
        let w = spun.unwrap_or_else(|| lock(&self.worker));
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        w
    }

    /// Wakes up the progress thread.
    pub(super) fn wake(&self) {
        let one = 1u64;
        // SAFETY: writes eight bytes from a local variable to a descriptor that `self` owns. The write can only fail if
        // the counter is full, and then the sleeping thread wakes up anyway.
        unsafe { libc::write(self.wake.as_raw_fd(), ptr::from_ref(&one).cast(), 8) };
    }

    /// Sleeps until [`Self::wake`], a UCX event (if `events` is true), or the end of `wait`.
    pub(super) fn sleep(&self, events: bool, wait: Duration) {
        let poll = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut fds = [poll(self.wake.as_raw_fd()), poll(self.events)];
        let wait = libc::timespec {
            tv_sec: wait.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(wait.subsec_nanos()),
        };
        // SAFETY: both descriptors are open while the core lives; the pointers are to locals.
        unsafe {
            libc::ppoll(
                fds.as_mut_ptr(),
                if events { 2 } else { 1 },
                &wait,
                ptr::null(),
            );
            if fds[0].revents != 0 {
                let mut count = 0u64;
                libc::read(self.wake.as_raw_fd(), ptr::from_mut(&mut count).cast(), 8);
            }
        }
    }

    /// Drives progress once; returns true if anything happened.
    pub(super) fn progress(&self, worker: &mut Worker) -> bool {
        let some = worker.progress();
        if some {
            let broken = worker.take_broken();
            if !broken.is_empty() {
                let reasons = broken.iter().map(|&(n, s)| (n, worker.text(s)));
                lock(&self.broken).extend(reasons);
                // The progress thread, which may not be the caller, notifies the links.
                self.wake();
            }
        }
        some
    }

    /// Waits until `operation` is complete: first by driving progress, then asleep. `failure` returns a reason to give
    /// up, if there is one.
    pub(super) fn finish<'a>(
        &'a self,
        mut worker: MutexGuard<'a, Worker>,
        operation: &UcxOperation,
        deadline: Instant,
        failure: impl Fn() -> Option<TransportError>,
    ) -> (MutexGuard<'a, Worker>, Result<()>) {
        /// Number of progress calls between two checks of the clock.
        const TURNS: u32 = 8;
        if operation.done() {
            return (worker, Ok(()));
        }
        let began = Instant::now();
        let late = || TransportError::Deadline(began.elapsed());
        let mut refused = 0u32;
        self.spinning.fetch_add(1, Ordering::Relaxed);
        let result = loop {
            for _ in 0..TURNS {
                self.progress(&mut worker);
                if operation.done() {
                    break;
                }
            }
            if operation.done() {
                break Ok(());
            }
            if let Some(e) = failure() {
                break Err(e);
            }
            let now = Instant::now();
            if now >= deadline {
                break Err(late());
            }
            if self.wanted.load(Ordering::Relaxed) > 0 {
                drop(worker);
                refused += 1;
                if refused.is_multiple_of(32) {
                    // The thread that must run may be waiting for this core.
                    std::thread::yield_now();
                } else {
                    (0..16).for_each(|_| std::hint::spin_loop());
                }
                worker = self.worker();
            }
            if now.duration_since(began) > SPIN_BEFORE_SLEEP {
                drop(worker);
                self.spinning.fetch_sub(1, Ordering::Relaxed);
                self.wake();
                let slept = loop {
                    // Short enough that a reason to give up is noticed soon.
                    let wait = deadline.saturating_duration_since(Instant::now());
                    let wait = wait.min(Duration::from_millis(5));
                    operation.park(wait);
                    if operation.done() {
                        break Ok(());
                    }
                    if let Some(e) = failure() {
                        break Err(e);
                    }
                    if Instant::now() >= deadline {
                        break Err(late());
                    }
                };
                return (self.worker(), slept);
            }
        };
        self.spinning.fetch_sub(1, Ordering::Relaxed);
        (worker, result)
    }

    /// Closes endpoints, registrations, worker and context. Waits [`CLOSE_WAIT`] at most.
    pub(super) fn shut(&self, registrations: Vec<MemoryHandle>) {
        let mut w = self.worker();
        w.disconnect_all();
        let until = Instant::now() + CLOSE_WAIT;
        // A worker that has not yet answered a peer's connection request must not be destroyed, because UCX 1.13 would
        // then abort the process. The answer is sent when the peer has accepted the connection, which takes the peer's
        // thread a time slice or two. This cannot be observed, so the worker is destroyed after a period without
        // progress.
        let mut quiet = Instant::now() + CLOSE_QUIET;
        while Instant::now() < quiet && Instant::now() < until {
            if self.progress(&mut w) {
                quiet = Instant::now() + CLOSE_QUIET;
            } else {
                std::thread::yield_now();
            }
        }
        w.destroy(&registrations);
    }
}
