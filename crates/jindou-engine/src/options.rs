//! Options for running a plan, and its profile.

use crate::live::LiveProfile;
use jindou_model::sync;
use jindou_model::{CancelToken, MemoryBudget, Result};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// Longest time for which a thread holds its slot while another one writes to a shared sink.
const WRITING: Duration = Duration::from_millis(2);
/// Interval between checks meanwhile.
const LOOK: Duration = Duration::from_micros(20);

/// Default number of rows in a batch: a dozen columns of it fit in the second-level cache, and the fixed cost of a
/// batch (some hundred nanoseconds per step) is spread over enough rows.
pub const DEFAULT_BATCH_ROWS: usize = 2048;

/// Receives one row of an endpoint's answer: canonical bytes of its terms.
pub type TakeRow<'r> = &'r mut dyn FnMut(&[Option<Vec<u8>>]) -> Result<()>;

/// Requests rows from other endpoints, for `SERVICE`. The engine itself does not use the network: its caller decides
/// which endpoints may be reached.
pub trait ServiceCaller: Debug + Send + Sync {
    /// Sends `query` to `endpoint` and calls `row` with the canonical bytes of each solution's terms: one cell for each
    /// of `variables`, `None` where it is unbound.
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

/// The calling thread's work; its argument requests helpers.
pub type Main<'m> = dyn FnMut(&mut dyn FnMut(usize)) + 'm;

/// Threads that help with a heavy plan. Without a pool, a query starts its own threads.
///
/// A pool may limit how many threads compute at once, counting helpers and callers: each then holds a *slot* (place).
pub trait WorkerPool: Debug + Send + Sync {
    /// Runs `main` on this thread. Whenever `main` calls its argument with a number, up to this many further threads
    /// call `help` once each, if any are free. Returns when `main` and all calls of `help` that began have returned;
    /// none begins afterwards. Neither of them panics.
    fn work(&self, help: &(dyn Fn() + Sync), main: &mut Main<'_>);

    /// True if other work needs a helper's slot: helpers return at the end of their morsels, and may be started again.
    fn is_crowded(&self) -> bool {
        false
    }

    /// Yields this thread's slot to urgent work if necessary; called between two morsels by the thread that runs the
    /// plan.
    ///
    /// # Errors
    /// Those of `cancel` before a slot is available again; the thread then has none.
    fn pause(&self, cancel: &CancelToken) -> Result<()> {
        cancel.check()
    }

    /// True if this thread holds a slot of this pool.
    fn is_inside(&self) -> bool {
        false
    }

    /// Waits for a slot for this thread. Returns false if it already has one.
    ///
    /// # Errors
    /// Those of `cancel`.
    fn enter(&self, cancel: &CancelToken) -> Result<bool> {
        cancel.check()?;
        Ok(false)
    }

    /// Releases this thread's slot, if it has one.
    fn leave(&self) {}

    /// Calls a closure that waits rather than computes, without this thread's slot.
    ///
    /// # Errors
    /// Those of `cancel` while waiting for a slot afterwards; the thread then has none.
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

/// Stack of a thread that helps with a plan, in bytes. A [pool](WorkerPool) gives its threads at least as much.
pub const HELPERS_STACK: usize = 8 << 20;

/// A pool that starts system threads for each plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spawned;

impl WorkerPool for Spawned {
    fn work(&self, help: &(dyn Fn() + Sync), main: &mut Main<'_>) {
        std::thread::scope(|scope| {
            main(&mut |helpers| {
                for _ in 0..helpers {
                    // If the system cannot start a thread, the query runs on fewer.
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
    /// Largest number of threads, this one included. Light plans start on one and use more only if they turn out not to
    /// be light.
    pub threads: usize,
    /// Cancellation and deadline, checked once per batch.
    pub cancel: CancelToken,
    /// Budget that batches, tables and sort buffers are charged to.
    pub memory: MemoryBudget,
    /// Rows in a batch; clamped to `16 ..= 65536`.
    pub batch_rows: usize,
    /// True to measure the time of each step and operator.
    pub profile: bool,
    /// Counts that other threads may read while the plan runs; implies the measurements of `profile`.
    pub live: Option<Arc<LiveProfile>>,
    /// The caller of other endpoints; without one, a plan with `SERVICE` is an error.
    pub service: Option<Arc<dyn ServiceCaller>>,
    /// Pool of threads for heavy plans; `None`: threads of their own.
    pub pool: Option<Arc<dyn WorkerPool>>,
}

impl ExecOptions {
    /// Locks state that all workers of a plan share and that one may hold for long, such as a sink with a slow reader.
    /// While a pool's thread waits, another thread may use its slot.
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
        // A thread that only writes is done in a moment.
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
        }
    }
}

/// Rows, time and bytes of one step, all workers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepProfile {
    /// Input rows; for the start, values that were read.
    pub rows_in: u64,
    /// Rows that went out, after the step's filters.
    pub rows_out: u64,
    /// Time in the step, summed over threads; zero unless profiling.
    pub time: Duration,
    /// Estimated bytes read: of segments on a CPU, and of the table as well on a device.
    pub bytes: u64,
    /// Estimated bytes of the table that were written.
    pub written: u64,
}

/// Rows, time and memory of one operator of the tree, all workers together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeProfile {
    /// Input rows of all inputs; for a join, those of the streaming side.
    pub rows_in: u64,
    /// Rows that went out.
    pub rows_out: u64,
    /// Time in the operator itself, without its inputs and without the consumers of its rows, summed over threads; zero
    /// unless profiling.
    pub time: Duration,
    /// Most bytes that its tables held at once.
    pub held: u64,
    /// Threads that worked on it.
    pub threads: usize,
    /// By step, for explorations (the start first) and `Steps`.
    pub steps: Vec<StepProfile>,
    /// Where the first steps ran, and how many: `None` for this CPU alone.
    pub there: Option<(String, usize)>,
}

/// Counts and times of one execution of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// By operator: preorder, inputs in the order of [`jindou_plan::Operator`] (a join's left before its right, an
    /// apply's input before its inner).
    pub nodes: Vec<NodeProfile>,
    /// The node of the exploration at the bottom of a plan that is a chain; `None` for other plans.
    pub bottom: Option<usize>,
    /// Rows given to the sink.
    pub rows: u64,
    /// Time from call to return.
    pub elapsed: Duration,
    /// Largest number of threads at once.
    pub threads: usize,
}

impl Profile {
    /// The steps of the exploration at the bottom of a plan that is a chain, the start first. Empty for other plans and when
    /// the exploration is known to be empty.
    #[must_use]
    pub fn steps(&self) -> &[StepProfile] {
        self.at_bottom().map_or(&[], |node| &node.steps)
    }

    /// Where the first of [`Self::steps`] ran, and how many: `None` for this CPU alone.
    #[must_use]
    pub fn offloaded(&self) -> Option<(&str, usize)> {
        let (place, steps) = self.at_bottom()?.there.as_ref()?;
        Some((place, *steps))
    }

    /// Where a step ran, for people.
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
