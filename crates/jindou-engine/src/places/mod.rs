//! Threads that compute for heavy queries: each query has its caller's thread, and gets the help of other threads while
//! cores are free.
//!
//! A thread computes while it holds one of as many *places* as there are cores. Callers' threads wait for a place,
//! first come first served. Helpers take free places, and leave at the end of a morsel when a caller waits. A thread
//! that waits for something other than a core, such as the client that reads the result, gives up its place meanwhile.

mod help;
mod sync;

pub use help::HelpCalls;

use crate::{HELPERS_STACK, Main, WorkerPool};
use jindou_model::{CancelToken, Result};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

thread_local! {
    /// Address of the pool in which this thread holds a place; 0 for none.
    static PLACE_OF: Cell<usize> = const { Cell::new(0) };
}

/// One place per core, and the threads that help in free places. Cheap to clone; the helper threads end when the last
/// clone is dropped.
#[derive(Clone)]
pub struct Workers {
    shared: Arc<WorkersShared>,
    /// Ends the helper threads on drop. Separate from `shared`, which the helpers hold themselves.
    _helpers: Arc<Helpers>,
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.shared.lock();
        f.debug_struct("Workers")
            .field("places", &self.shared.places)
            .field("taken", &state.taken)
            .field("waiting", &state.waiting.len())
            .finish_non_exhaustive()
    }
}

/// Ends the helper threads on drop.
struct Helpers(Arc<WorkersShared>);

impl Drop for Helpers {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.work.notify_all();
    }
}

struct WorkersShared {
    places: usize,
    state: Mutex<WorkersState>,
    /// Condition variable on which helpers sleep.
    work: Condvar,
    calls: HelpCalls,
    /// Number of threads that need a place now: waiting callers, and threads with an extra place. Helpers leave while
    /// it is above 0.
    pressed: AtomicUsize,
    /// Number of extra places in use ([`Workers::enter_at_once`]).
    over: AtomicUsize,
}

#[derive(Default)]
struct WorkersState {
    /// Number of threads that hold a place, also an extra one.
    taken: usize,
    /// Callers that wait for a place.
    waiting: VecDeque<Arc<Waiter>>,
    /// Number of helper threads.
    helpers: usize,
    closed: bool,
}

/// A waiting caller. `given` is set under the lock of the state when it gets a place.
struct Waiter {
    thread: Thread,
    given: AtomicBool,
}

impl WorkersShared {
    fn lock(&self) -> MutexGuard<'_, WorkersState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes `over` and `pressed`; called after each change of the state.
    fn count(&self, state: &WorkersState) {
        let over = state.taken.saturating_sub(self.places);
        self.over.store(over, Ordering::Relaxed);
        self.pressed
            .store(over + state.waiting.len(), Ordering::Relaxed);
    }

    /// Passes this thread's place to the caller that has waited longest. Frees it if no caller waits, or it was an
    /// extra place.
    fn free(&self) {
        let mut state = self.lock();
        match state.waiting.pop_front() {
            Some(next) if state.taken <= self.places => {
                next.given.store(true, Ordering::Release);
                next.thread.unpark();
            }
            next => {
                if let Some(next) = next {
                    state.waiting.push_front(next);
                }
                state.taken -= 1;
            }
        }
        self.count(&state);
        drop(state);
        if self.calls.are_wanted() {
            self.work.notify_one();
        }
    }

    /// Waits for a place, before all other callers if `first`.
    fn wait(&self, cancel: &CancelToken, first: bool) -> Result<()> {
        let waiter = {
            let mut state = self.lock();
            if state.taken < self.places && state.waiting.is_empty() {
                state.taken += 1;
                return Ok(());
            }
            let waiter = Arc::new(Waiter {
                thread: std::thread::current(),
                given: AtomicBool::new(false),
            });
            if first {
                state.waiting.push_front(Arc::clone(&waiter));
            } else {
                state.waiting.push_back(Arc::clone(&waiter));
            }
            self.count(&state);
            waiter
        };
        loop {
            if waiter.given.load(Ordering::Acquire) {
                return Ok(());
            }
            if let Err(e) = cancel.check() {
                let mut state = self.lock();
                state.waiting.retain(|w| !Arc::ptr_eq(w, &waiter));
                self.count(&state);
                drop(state);
                if waiter.given.load(Ordering::Acquire) {
                    self.free();
                }
                return Err(e);
            }
            cancel.park_unless(|| waiter.given.load(Ordering::Acquire));
        }
    }

    /// Main loop of a helper thread.
    fn help(&self) {
        let mut state = self.lock();
        while !state.closed {
            let wanted = self.calls.are_wanted();
            if !wanted || state.taken >= self.places || !state.waiting.is_empty() {
                state = self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.taken += 1;
            drop(state);
            PLACE_OF.set(self.address());
            self.calls.help(|| self.pressed.load(Ordering::Relaxed) > 0);
            self.leave();
            state = self.lock();
        }
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    fn leave(&self) {
        if PLACE_OF.get() == self.address() {
            PLACE_OF.set(0);
            self.free();
        }
    }
}

impl Workers {
    /// Creates a pool with this many places, at least one. The helper threads, one fewer than places, are started on
    /// first use.
    #[must_use]
    pub fn new(places: usize) -> Self {
        let shared = Arc::new(WorkersShared {
            places: places.max(1),
            state: Mutex::default(),
            work: Condvar::new(),
            calls: HelpCalls::default(),
            pressed: AtomicUsize::new(0),
            over: AtomicUsize::new(0),
        });
        Self {
            _helpers: Arc::new(Helpers(Arc::clone(&shared))),
            shared,
        }
    }

    /// Number of places.
    #[must_use]
    pub fn places(&self) -> usize {
        self.shared.places
    }

    /// Number of threads that hold a place, and of waiting callers.
    #[must_use]
    pub fn load(&self) -> (usize, usize) {
        let state = self.shared.lock();
        (state.taken, state.waiting.len())
    }

    /// Gives this thread a place at once. If none is free, it gets an extra one, until another thread gives up its
    /// place at the end of a morsel. For urgent work that other threads wait for, which one thread at a time does.
    /// Returns false if the thread already has a place.
    pub fn enter_at_once(&self) -> bool {
        if PLACE_OF.get() != 0 {
            return false;
        }
        let mut state = self.shared.lock();
        state.taken += 1;
        self.shared.count(&state);
        PLACE_OF.set(self.shared.address());
        true
    }

    /// Starts helper threads up to this number, as far as the system can, and wakes those that sleep.
    fn call(&self, helpers: usize) {
        let shared = &self.shared;
        let mut state = shared.lock();
        let most = (shared.places - 1).min(state.helpers.max(helpers));
        while state.helpers < most {
            let own = Arc::clone(shared);
            let spawned = std::thread::Builder::new()
                .name("jindou-worker".into())
                .stack_size(HELPERS_STACK)
                .spawn(move || own.help());
            if spawned.is_err() {
                break;
            }
            state.helpers += 1;
        }
        drop(state);
        shared.work.notify_all();
    }
}

impl WorkerPool for Workers {
    fn work(&self, help: &(dyn Fn() + Sync), main: &mut Main<'_>) {
        self.shared.calls.work(help, &mut |ask| {
            main(&mut |helpers| {
                ask(helpers);
                if helpers > 0 {
                    self.call(helpers);
                }
            });
        });
    }

    fn is_crowded(&self) -> bool {
        self.shared.pressed.load(Ordering::Relaxed) > 0
    }

    fn pause(&self, cancel: &CancelToken) -> Result<()> {
        if self.shared.over.load(Ordering::Relaxed) == 0 || !self.is_inside() {
            return Ok(());
        }
        self.shared.leave();
        self.shared.wait(cancel, true)?;
        PLACE_OF.set(self.shared.address());
        Ok(())
    }

    fn is_inside(&self) -> bool {
        PLACE_OF.get() == self.shared.address()
    }

    fn enter(&self, cancel: &CancelToken) -> Result<bool> {
        if PLACE_OF.get() != 0 {
            return Ok(false);
        }
        self.shared.wait(cancel, false)?;
        PLACE_OF.set(self.shared.address());
        Ok(true)
    }

    fn leave(&self) {
        self.shared.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Number of threads inside a section of code, and the largest number so far.
    #[derive(Default)]
    struct Inside(AtomicUsize, AtomicUsize);

    impl Inside {
        fn during(&self, f: impl FnOnce()) {
            let now = self.0.fetch_add(1, Ordering::SeqCst) + 1;
            self.1.fetch_max(now, Ordering::SeqCst);
            f();
            self.0.fetch_sub(1, Ordering::SeqCst);
        }

        fn most(&self) -> usize {
            self.1.load(Ordering::SeqCst)
        }
    }

    fn until(what: &str, mut holds: impl FnMut() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed().as_secs() < 30, "never: {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Runs `units` units of work on this thread and up to `ask` helpers; returns the number of units that helpers ran.
    fn run(workers: &Workers, inside: &Inside, units: usize, ask: usize) -> usize {
        let (next, by_helpers) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |is_helper: bool| {
            loop {
                if is_helper && workers.is_crowded() {
                    return;
                }
                if !is_helper {
                    workers.pause(&CancelToken::new()).unwrap();
                }
                if next.fetch_add(1, Ordering::SeqCst) >= units {
                    return;
                }
                inside.during(|| std::thread::sleep(Duration::from_micros(300)));
                by_helpers.fetch_add(usize::from(is_helper), Ordering::SeqCst);
            }
        };
        workers.work(&|| work(true), &mut |call| {
            call(ask);
            work(false);
        });
        assert!(next.load(Ordering::SeqCst) >= units);
        by_helpers.into_inner()
    }

    #[test]
    fn callers_and_helpers_together_are_never_more_than_places() {
        for places in [1, 2, 3] {
            let (workers, inside) = (Workers::new(places), Inside::default());
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        for _ in 0..10 {
                            assert!(workers.enter(&CancelToken::new()).unwrap());
                            run(&workers, &inside, 12, places);
                            workers.leave();
                        }
                    });
                }
            });
            assert!(inside.most() <= places, "{} of {places}", inside.most());
            until("all places are free", || workers.load() == (0, 0));
        }
    }

    #[test]
    fn one_caller_gets_all_helpers_that_it_wants() {
        let (workers, inside) = (Workers::new(3), Inside::default());
        assert!(workers.enter(&CancelToken::new()).unwrap());
        assert!(!workers.enter(&CancelToken::new()).unwrap());
        assert!(run(&workers, &inside, 2000, 2) > 500);
        assert_eq!(inside.most(), 3);
        workers.leave();
        workers.leave();
        until("all places are free", || workers.load() == (0, 0));
    }

    #[test]
    fn a_helper_makes_room_for_a_caller_and_comes_back() {
        let (workers, inside) = (Workers::new(2), Inside::default());
        assert!(workers.enter(&CancelToken::new()).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                until("the helper is there", || workers.load().0 == 2);
                let begun = jindou_testing::Stopwatch::start();
                assert!(workers.enter(&CancelToken::new()).unwrap());
                assert!(begun.elapsed() < Duration::from_millis(700));
                workers.leave();
                until("it is back", || workers.load().0 == 2);
            });
            assert!(run(&workers, &inside, 3000, 1) > 100);
        });
        workers.leave();
    }

    #[test]
    fn who_waits_for_something_else_gives_the_place_back() {
        let workers = Workers::new(1);
        let cancel = CancelToken::new();
        assert!(workers.enter(&cancel).unwrap());
        let mut other = None;
        workers
            .blocking(&cancel, &mut || {
                assert!(!workers.is_inside());
                std::thread::scope(|scope| {
                    let thread = scope.spawn(|| {
                        let entered = workers.enter(&cancel).unwrap();
                        workers.leave();
                        entered
                    });
                    other = thread.join().ok();
                });
            })
            .unwrap();
        assert!(other == Some(true) && workers.is_inside());
        assert_eq!(workers.load(), (1, 0));
        workers.leave();
    }

    #[test]
    fn a_cancellation_and_a_deadline_end_the_wait() {
        let workers = Workers::new(1);
        assert!(workers.enter(&CancelToken::new()).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let token = CancelToken::with_deadline(Duration::from_millis(30));
                assert!(matches!(
                    workers.enter(&token),
                    Err(jindou_model::Error::Timeout(_))
                ));
            });
            let token = CancelToken::new();
            let same = token.clone();
            let waits = scope.spawn({
                let workers = &workers;
                move || workers.enter(&same).is_err()
            });
            until("it waits", || workers.load().1 > 0);
            token.cancel();
            assert!(waits.join().unwrap());
        });
        assert_eq!(workers.load(), (1, 0));
        workers.leave();
    }

    #[test]
    fn what_others_wait_for_begins_at_once_and_somebody_pauses() {
        let (workers, inside) = (Workers::new(1), Inside::default());
        assert!(workers.enter(&CancelToken::new()).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(workers.enter_at_once());
                until("the other one pauses", || workers.load() == (1, 1));
                std::thread::sleep(Duration::from_millis(5));
                workers.leave();
            });
            run(&workers, &inside, 500, 0);
        });
        assert_eq!(workers.load(), (1, 0));
        workers.leave();
    }
}
