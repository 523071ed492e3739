//! Options for running a plan, and its profile.

use crate::live::LiveProfile;
use jindou_model::sync;
use jindou_model::{CancelToken, MemoryBudget, QueryTemp, Result};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// Longest time for which a thread keeps its place in the pool while it waits for a lock on shared state.
const WRITING: Duration = Duration::from_millis(2);
/// Interval at which such a thread tries to get the lock.
const LOOK: Duration = Duration::from_micros(20);

/// Default number of rows in a batch. A dozen columns of that length fit in the second-level cache, and the fixed cost
/// of a batch (some hundred nanoseconds per step) is spread over enough rows.
pub const DEFAULT_BATCH_ROWS: usize = 2048;

/// Receives one solution from an endpoint: the canonical bytes of each variable's term, `None` if unbound.
pub type TakeRow<'r> = &'r mut dyn FnMut(&[Option<Vec<u8>>]) -> Result<()>;

/// Sends queries to other endpoints, for `SERVICE`. The engine itself does not use the network; the caller of the
/// engine decides which endpoints may be reached.
pub trait ServiceCaller: Debug + Send + Sync {
    /// Sends `query` to `endpoint`. Calls `row` for each solution, with the canonical bytes of the term of each of
    /// `variables`; `None` for an unbound variable.
    ///
    /// # Errors
    /// Any failure that makes the answer incomplete, with the endpoint's name; errors of `row`; `Cancelled` and
    /// `Timeout` of `cancel`.
    fn call(
        &self,
        endpoint: &str,
        query: &str,
        variables: &[&str],
        cancel: &CancelToken,
        row: TakeRow<'_>,
    ) -> Result<()>;
}

/// The work of the thread that runs the plan. The function that it gets requests up to a number of helpers.
pub type Main<'m> = dyn FnMut(&mut dyn FnMut(usize)) + 'm;

/// Threads that help with a heavy plan. Without a pool, each query starts its own threads.
///
/// A pool may limit how many threads compute at the same time. Then a thread needs a *place* for that, whether it is a
/// helper's or a caller's.
pub trait WorkerPool: Debug + Send + Sync {
    /// Runs `main` on this thread. Whenever `main` requests a number of helpers, up to this many other threads call
    /// `help` once each, if any are free. Returns when `main` and all calls of `help` have returned; no call begins
    /// afterwards. Neither function may panic.
    fn work(&self, help: &(dyn Fn() + Sync), main: &mut Main<'_>);

    /// True if other work needs a place: helpers then return at the end of their morsel, and may be called again later.
    fn is_crowded(&self) -> bool {
        false
    }

    /// Gives up this thread's place for urgent work if necessary, and waits for a place again. The thread that runs the
    /// plan calls this between two morsels.
    ///
    /// # Errors
    /// Those of `cancel` while it waits; the thread then has no place.
    fn pause(&self, cancel: &CancelToken) -> Result<()> {
        cancel.check()
    }

    /// True if this thread holds a place of this pool.
    fn is_inside(&self) -> bool {
        false
    }

    /// Waits for a place for this thread. Returns false if it already has one.
    ///
    /// # Errors
    /// Those of `cancel`.
    fn enter(&self, cancel: &CancelToken) -> Result<bool> {
        cancel.check()?;
        Ok(false)
    }

    /// Gives up this thread's place, if it has one.
    fn leave(&self) {}

    /// Calls a closure that waits rather than computes. Meanwhile, this thread gives up its place.
    ///
    /// # Errors
    /// Those of `cancel` while waiting for a place afterwards; the thread then has none.
    fn blocking(&self, cancel: &CancelToken, wait: &mut dyn FnMut()) -> Result<()> {
        let inside = self.is_inside();
        if inside {
            self.leave();
        }
        wait();
        if inside {
            self.enter(cancel)?;
        }
        Ok(())
    }
}

/// Bytes of stack of a thread that helps with a plan. The threads of a [pool](WorkerPool) must have at least as much.
pub const HELPERS_STACK: usize = 8 << 20;

/// Starts new system threads for each plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spawned;

impl WorkerPool for Spawned {
    fn work(&self, help: &(dyn Fn() + Sync), main: &mut Main<'_>) {
        std::thread::scope(|scope| {
            main(&mut |helpers| {
                for _ in 0..helpers {
                    // If the system cannot start a thread, the query runs on fewer threads.
                    let _ = std::thread::Builder::new()
                        .stack_size(HELPERS_STACK)
                        .spawn_scoped(scope, help);
                }
            });
        });
    }
}

/// Options for running a plan.
#[derive(Clone, Debug)]
pub struct ExecOptions {
    /// Largest number of threads, including the caller's. A light plan starts on one thread, and uses more only if it
    /// takes longer than expected.
    pub threads: usize,
    /// Cancellation and deadline, checked once per batch.
    pub cancel: CancelToken,
    /// Budget to which batches, tables and sort buffers are charged.
    pub memory: MemoryBudget,
    /// Rows in a batch; clamped to `16 ..= 65536`.
    pub batch_rows: usize,
    /// True to measure the time of each step and operator.
    pub profile: bool,
    /// Counts that other threads may read while the plan runs; implies the measurements of `profile`.
    pub live: Option<Arc<LiveProfile>>,
    /// Sends queries to other endpoints; without it, a plan with `SERVICE` is an error.
    pub service: Option<Arc<dyn ServiceCaller>>,
    /// Pool of threads for heavy plans; `None` to start new threads.
    pub pool: Option<Arc<dyn WorkerPool>>,
    /// Temporary files for operators that need more memory than the budget has; with `None`, the query ends instead.
    pub temp: Option<QueryTemp>,
}

impl ExecOptions {
    /// Locks state that all workers of a plan share, and that one of them may hold for long, such as a sink with a slow
    /// reader. If the wait is long, this thread gives up its place in the pool meanwhile.
    ///
    /// # Errors
    /// Those of the options' token.
    pub fn lock<'m, T>(&self, shared: &'m Mutex<T>) -> Result<MutexGuard<'m, T>> {
        match shared.try_lock() {
            Ok(guard) => return Ok(guard),
            Err(TryLockError::Poisoned(p)) => return Ok(p.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
        let plain = || sync::lock(shared);
        let Some(pool) = self.pool.as_ref().filter(|pool| pool.is_inside()) else {
            return Ok(plain());
        };
        // A worker that does not wait for a reader holds the lock only briefly.
        let begun = Instant::now();
        while begun.elapsed() < WRITING {
            std::thread::sleep(LOOK);
            match shared.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(p)) => return Ok(p.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        let mut guard = None;
        pool.blocking(&self.cancel, &mut || {
            guard = Some(plain());
        })?;
        Ok(guard.unwrap_or_else(plain))
    }
}

impl Default for ExecOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            cancel: CancelToken::new(),
            memory: MemoryBudget::unlimited(),
            batch_rows: DEFAULT_BATCH_ROWS,
            profile: false,
            live: None,
            service: None,
            pool: None,
            temp: None,
        }
    }
}

/// Rows, time and bytes of one step, summed over all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepProfile {
    /// Input rows; for the start, values that were read.
    pub rows_in: u64,
    /// Output rows, after the step's filters.
    pub rows_out: u64,
    /// Time in the step, summed over threads; zero unless profiling.
    pub time: Duration,
    /// Estimated bytes read: those of segments and, on a GPU, also those of the history table.
    pub bytes: u64,
    /// Estimated bytes of the history table that were written.
    pub written: u64,
}

/// Rows, time and memory of one operator of the tree, summed over all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeProfile {
    /// Input rows of all inputs; for a join, only those of the left side, which are looked up.
    pub rows_in: u64,
    /// Output rows.
    pub rows_out: u64,
    /// Time in the operator itself, without its inputs and without the consumers of its rows, summed over threads; zero
    /// unless profiling.
    pub time: Duration,
    /// Largest number of bytes that its tables held at a time.
    pub held: u64,
    /// Number of threads that worked on it.
    pub threads: usize,
    /// For explorations: the counts of each step, beginning with the start if there is one.
    pub steps: Vec<StepProfile>,
    /// Where the first steps ran, and the number of these steps; `None` if all ran on this CPU.
    pub there: Option<(String, usize)>,
}

/// Counts and times of one execution of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// By operator: preorder, inputs in the order of [`jindou_plan::Operator`] (a join's left before its right, an
    /// apply's input before its inner).
    pub nodes: Vec<NodeProfile>,
    /// The node of the exploration at the bottom of a tree whose operators have one input each; `None` for other plans.
    pub bottom: Option<usize>,
    /// Rows passed to the sink.
    pub rows: u64,
    /// Time from call to return.
    pub elapsed: Duration,
    /// Largest number of threads that took part at a time.
    pub threads: usize,
    /// Bytes written to temporary files.
    pub spilled: u64,
}

impl Profile {
    /// The steps of the exploration at the bottom of a plan ([`Self::bottom`]), beginning with the start. Empty if
    /// there is none, and if the exploration is known to have no rows.
    #[must_use]
    pub fn steps(&self) -> &[StepProfile] {
        self.at_bottom().map_or(&[], |node| &node.steps)
    }

    /// Where the first of [`Self::steps`] ran, and the number of these steps; `None` if all ran on this CPU.
    #[must_use]
    pub fn offloaded(&self) -> Option<(&str, usize)> {
        let (place, steps) = self.at_bottom()?.there.as_ref()?;
        Some((place, *steps))
    }

    /// The name of the device or server on which a step ran.
    #[must_use]
    pub fn place(&self, step: usize) -> &str {
        match self.offloaded() {
            Some((place, steps)) if step < steps => place,
            _ => "cpu",
        }
    }

    fn at_bottom(&self) -> Option<&NodeProfile> {
        self.nodes.get(self.bottom?)
    }
}
