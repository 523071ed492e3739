//! How to run a plan, and what running it took.

use jindou_model::{CancelToken, MemoryBudget};
use std::time::Duration;

/// Rows in a batch by default: a dozen columns of it stay in the second-level cache, and the fixed cost of a
/// batch (some hundred nanoseconds a step) is spread over enough rows.
pub const DEFAULT_BATCH_ROWS: usize = 2048;

/// How to run a plan.
#[derive(Clone, Debug)]
pub struct ExecOptions {
    /// Threads at most, this one included. Light plans start on one and take more only when they turn out
    /// not to be light.
    pub threads: usize,
    /// Cancellation and deadline, looked at once a batch.
    pub cancel: CancelToken,
    /// What batches, tables and sort buffers are charged to.
    pub memory: MemoryBudget,
    /// Rows in a batch; clamped to `16 ..= 65536`.
    pub batch_rows: usize,
    /// Measure the time of each step.
    pub profile: bool,
}

impl Default for ExecOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            cancel: CancelToken::new(),
            memory: MemoryBudget::unlimited(),
            batch_rows: DEFAULT_BATCH_ROWS,
            profile: false,
        }
    }
}

/// What one step did, all workers together.
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

/// What running a plan took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// By exploration step, the start first. Empty when the plan is known to be empty.
    pub steps: Vec<StepProfile>,
    /// Rows given to the sink.
    pub rows: u64,
    /// From call to return.
    pub elapsed: Duration,
    /// Threads that took part.
    pub threads: usize,
    /// Where the first steps ran, and how many: `None` for this CPU alone.
    pub elsewhere: Option<(String, usize)>,
}

impl Profile {
    /// Where a step ran, for people.
    #[must_use]
    pub fn place(&self, step: usize) -> &str {
        match &self.elsewhere {
            Some((place, steps)) if step < *steps => place,
            _ => "cpu",
        }
    }
}
