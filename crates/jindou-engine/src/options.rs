//! How to run a plan, and what running it took.

use jindou_model::{CancelToken, MemoryBudget, Result};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// Rows in a batch by default: a dozen columns of it stay in the second-level cache, and the fixed cost of a
/// batch (some hundred nanoseconds a step) is spread over enough rows.
pub const DEFAULT_BATCH_ROWS: usize = 2048;

/// Takes one row of an endpoint's answer: canonical bytes of its terms.
pub type TakeRow<'r> = &'r mut dyn FnMut(&[Option<Vec<u8>>]) -> Result<()>;

/// Asks other endpoints for rows, for `SERVICE`. The engine knows no network: who runs it says what may be reached.
pub trait ServiceCaller: Debug + Send + Sync {
    /// Sends `query` to `endpoint` and calls `row` with the canonical bytes of each solution's terms: one cell for each of
    /// `variables`, `None` where it is unbound.
    ///
    /// # Errors
    /// Whatever keeps the answer from being complete, with the endpoint's name; what `row` returns; `Cancelled` and
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

/// Work of the thread that was called; its argument asks for helpers.
pub type Main<'m> = dyn FnMut(&mut dyn FnMut(usize)) + 'm;

/// Threads that help a heavy plan. Without one of its own a query starts threads for itself.
pub trait WorkerPool: Debug + Send + Sync {
    /// Runs `main` on this thread. Whenever `main` calls its argument with a number, up to so many further threads call `help`
    /// once each, if there are any to spare. Returns when `main` and all calls of `help` that began have returned; none
    /// begins afterwards. Neither of them panics.
    fn work(&self, help: &(dyn Fn() + Sync), main: &mut Main<'_>);
}

/// Stack of a thread that works on a plan: as much as the deepest tree that runs on its caller's needs.
const STACK: usize = 8 << 20;

/// Threads of the system's, made for one plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spawned;

impl WorkerPool for Spawned {
    fn work(&self, help: &(dyn Fn() + Sync), main: &mut Main<'_>) {
        std::thread::scope(|scope| {
            main(&mut |helpers| {
                for _ in 0..helpers {
                    // A system without threads to give runs the query on fewer.
                    let _ = std::thread::Builder::new()
                        .stack_size(STACK)
                        .spawn_scoped(scope, help);
                }
            });
        });
    }
}

/// How to run a plan.
#[derive(Clone, Debug)]
pub struct ExecOptions {
    /// Threads at most, this one included. Light plans start on one and take more only when they turn out
    /// not to be light.
    pub threads: usize,
    /// Cancellation and deadline, looked at once a batch.
    pub cancel: CancelToken,
    /// The budget that batches, tables and sort buffers are charged to.
    pub memory: MemoryBudget,
    /// Rows in a batch; clamped to `16 ..= 65536`.
    pub batch_rows: usize,
    /// Measure the time of each step and operator.
    pub profile: bool,
    /// The caller of other endpoints; without one, a plan with `SERVICE` is an error.
    pub service: Option<Arc<dyn ServiceCaller>>,
    /// Threads that a heavy plan uses besides this one; `None`: its own.
    pub pool: Option<Arc<dyn WorkerPool>>,
}

impl Default for ExecOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            cancel: CancelToken::new(),
            memory: MemoryBudget::unlimited(),
            batch_rows: DEFAULT_BATCH_ROWS,
            profile: false,
            service: None,
            pool: None,
        }
    }
}

/// Rows, time and bytes of one step, all workers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepProfile {
    /// Rows that came in; for the start, values that were looked at.
    pub rows_in: u64,
    /// Rows that went out, after the step's filters.
    pub rows_out: u64,
    /// Time in the step, summed over threads; zero unless profiling.
    pub time: Duration,
    /// Estimate of the bytes that were read: of segments on a CPU, of the table as well on a device.
    pub bytes: u64,
    /// Estimate of the bytes of the table that were written.
    pub written: u64,
}

/// Rows, time and memory of one operator of the tree, all workers together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeProfile {
    /// Rows that came in, of all inputs; of a join, those of the side that streams.
    pub rows_in: u64,
    /// Rows that went out.
    pub rows_out: u64,
    /// Time in the operator itself, without its inputs and what its rows were given to, summed over threads; zero unless
    /// profiling.
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

/// Counts and times of one run of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// By operator: preorder, inputs as they are written in [`jindou_plan::Operator`] (a join's left before its right, an
    /// apply's input before its inner).
    pub nodes: Vec<NodeProfile>,
    /// By step of the exploration at the bottom of a plan that is a chain, the start first. Empty for other plans and when
    /// the exploration is known to be empty.
    pub steps: Vec<StepProfile>,
    /// Rows given to the sink.
    pub rows: u64,
    /// From call to return.
    pub elapsed: Duration,
    /// Threads that took part, at most at once.
    pub threads: usize,
    /// Where the first steps ran, and how many: `None` for this CPU alone.
    pub offloaded: Option<(String, usize)>,
}

impl Profile {
    /// Where a step ran, for people.
    #[must_use]
    pub fn place(&self, step: usize) -> &str {
        match &self.offloaded {
            Some((place, steps)) if step < *steps => place,
            _ => "cpu",
        }
    }
}
