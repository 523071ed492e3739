//! Calls for help from heavy queries, and the threads that answer them.

use super::sync::{Arc, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, PoisonError};
use crate::{Main, WorkerPool};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A queue of calls for help, the oldest first. The threads of a pool answer them with [`Self::help`].
#[derive(Default)]
pub struct HelpCalls {
    asked: Mutex<VecDeque<Arc<Help>>>,
    /// Number of helpers that all calls together still need.
    wanted: AtomicUsize,
}

impl std::fmt::Debug for HelpCalls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HelpCalls")
            .field("wanted", &self.wanted)
            .finish_non_exhaustive()
    }
}

/// One query's call for help.
struct Help {
    /// Runs a helper's share of the work. Valid while `running > 0 || wanted > 0`: see [`HelpRequest::drop`].
    call: *const (dyn Fn() + Sync),
    state: Mutex<PoolState>,
    over: Condvar,
}

#[derive(Default)]
struct PoolState {
    wanted: usize,
    running: usize,
    /// True once no more helpers may start.
    withdrawn: bool,
}

// SAFETY: `call` points to a `Sync` closure, and is only called while its owner waits (see `HelpRequest`). All other
// fields are `Send` and `Sync` themselves.
unsafe impl Send for Help {}
// SAFETY: as above.
unsafe impl Sync for Help {}

impl Help {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HelpCalls {
    /// Returns true if a helper is needed now. A cheap check, for threads without work.
    pub fn are_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst) > 0
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Help>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to the number of helpers that a call needs, and puts it in the queue; does nothing if it was withdrawn.
    fn ask(&self, help: &Arc<Help>, helpers: usize) {
        let mut all = self.lock();
        let mut state = help.lock();
        if state.withdrawn {
            return;
        }
        state.wanted += helpers;
        drop(state);
        if !all.iter().any(|h| Arc::ptr_eq(h, help)) {
            all.push_back(Arc::clone(help));
        }
        self.wanted.fetch_add(helpers, Ordering::SeqCst);
    }

    /// Helps with the oldest call; returns false if no query needs help. If `gave_way` is true afterwards, the helper
    /// ended only to give up its place in the pool, and the query still needs one.
    pub fn help(&self, gave_way: impl FnOnce() -> bool) -> bool {
        let help = {
            let mut asked = self.lock();
            loop {
                let Some(help) = asked.front() else {
                    return false;
                };
                let mut state = help.lock();
                if state.wanted > 0 {
                    state.wanted -= 1;
                    state.running += 1;
                    self.wanted.fetch_sub(1, Ordering::Relaxed);
                    drop(state);
                    break Arc::clone(help);
                }
                drop(state);
                asked.pop_front();
            }
        };
        // SAFETY: `running` was raised under the lock while `wanted` was above zero, so the owner of the call has not
        // returned, and waits in `HelpRequest::drop` until `running` is zero again.
        let call = unsafe { &*help.call };
        // The engine catches its own panics. One that got past here would leave `running` too high, and the owner would
        // wait for ever.
        let _ = catch_unwind(AssertUnwindSafe(call));
        if gave_way() {
            self.ask(&help, 1);
        }
        // The last access to `call`: the owner may return as soon as it sees the lower count.
        let mut state = help.lock();
        state.running -= 1;
        drop(state);
        help.over.notify_all();
        true
    }
}

/// On drop, withdraws a call for help and waits for the helpers that came, also if the owner panics.
struct HelpRequest<'h> {
    calls: &'h HelpCalls,
    help: Arc<Help>,
}

impl Drop for HelpRequest<'_> {
    fn drop(&mut self) {
        let mut state = self.help.lock();
        self.calls.wanted.fetch_sub(state.wanted, Ordering::Relaxed);
        (state.wanted, state.withdrawn) = (0, true);
        while state.running > 0 {
            state = self
                .help
                .over
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        self.calls.lock().retain(|h| !Arc::ptr_eq(h, &self.help));
    }
}

impl WorkerPool for HelpCalls {
    fn work(&self, help: &(dyn Fn() + Sync), main: &mut Main<'_>) {
        let call: *const (dyn Fn() + Sync + '_) = help;
        // SAFETY: only the lifetime changes. The pointer is used only while `running > 0`. `HelpRequest::drop`, which
        // runs before this function returns or unwinds, waits until `running` is 0 and cannot rise again.
        let call: *const (dyn Fn() + Sync + 'static) = unsafe { std::mem::transmute(call) };
        let asked = HelpRequest {
            calls: self,
            help: Arc::new(Help {
                call,
                state: Mutex::default(),
                over: Condvar::new(),
            }),
        };
        main(&mut |helpers| {
            if helpers > 0 {
                self.ask(&asked.help, helpers);
            }
        });
        drop(asked);
    }
}
