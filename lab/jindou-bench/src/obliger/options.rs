//! Options of the scheduler.

use super::AdmissionLimits;
use std::time::Duration;

/// Rule for choosing the worker that runs a light query that waits in a worker's queue. All but [`Policy::Oblige`]
/// exist for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// One queue for all workers.
    Shared,
    /// The queue's own worker, however long its current query takes. It takes heavy and light queries in the order of
    /// their arrival.
    Private,
    /// Any worker whose own queue is empty.
    Stealing,
    /// The queue's own worker, or the worker before it if the current query has taken longer than
    /// [`Options::stuck_after`] (the worker-obliger of OSDI '16, §5.4 and fig. 11). Beyond the paper, a worker that
    /// starts a heavy query counts as stuck at once, and an idle worker takes queries that have waited that long.
    Oblige,
}

/// Options of the scheduler.
#[derive(Clone, Debug)]
pub struct Options {
    /// Worker threads.
    pub workers: usize,
    /// The rule for choosing the worker that takes waiting light queries.
    pub policy: Policy,
    /// The threshold T of fig. 11, after which a query's worker counts as stuck.
    pub stuck_after: Duration,
    /// Time for which an idle worker keeps polling before it sleeps. Waking costs the sleeper some 50 µs and the waker
    /// some time; polling takes a core from other processes.
    pub spin: Duration,
    /// Threads that one heavy query may use (`mt_threshold` of OSDI '16, §7.5).
    pub heavy_threads: usize,
    /// Workers that may work on heavy queries at once, over all such queries.
    pub heavy_workers: usize,
    /// Half of the workers, at least one, take heavy queries only, and the others light ones only ("isolation" of ATC '18,
    /// §6.6).
    pub isolate: bool,
    /// Bounds on the number of queries that are admitted.
    pub limits: AdmissionLimits,
}
