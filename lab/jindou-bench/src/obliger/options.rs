//! How to schedule.

use super::AdmissionLimits;
use std::time::Duration;

/// Rule for choosing the worker that takes a light query that waits in a worker's queue. All but [`Policy::Oblige`] are there to be compared with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// One queue for all workers.
    Shared,
    /// The worker whose queue it is, however long its current query takes; heavy queries and light ones first come, first served.
    Private,
    /// Any worker whose own queue is empty.
    Stealing,
    /// The worker whose queue it is, or the one before it once the current query has taken longer than [`Options::stuck_after`] (the
    /// worker-obliger of OSDI '16, §5.4 and fig. 11). Beyond the paper: a worker at a heavy query counts as stuck at once, and
    /// who has nothing else to do takes what has waited that long.
    Oblige,
}

/// How to schedule; the default is for one process that has the machine.
#[derive(Clone, Debug)]
pub struct Options {
    /// Worker threads.
    pub workers: usize,
    /// The rule for choosing the worker that takes waiting light queries.
    pub policy: Policy,
    /// The threshold T of fig. 11.
    pub stuck_after: Duration,
    /// How long a worker that finds nothing to do keeps looking before it sleeps. Waking a sleeper costs it some 50 µs and the waker
    /// some; looking costs the processor to others.
    pub spin: Duration,
    /// Threads that one heavy query may use (`mt_threshold` of OSDI '16, §7.5).
    pub heavy_threads: usize,
    /// Workers that may be at heavy queries at once, all of these together.
    pub heavy_workers: usize,
    /// Half of the workers, at least one, take heavy queries only, and the others light ones only ("isolation" of ATC '18,
    /// §6.6).
    pub isolate: bool,
    /// Bounds on the queries that are let in.
    pub limits: AdmissionLimits,
}

impl Default for Options {
    fn default() -> Self {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let heavy = (workers / 2).max(1);
        Self {
            workers,
            policy: Policy::Oblige,
            stuck_after: Duration::from_micros(200),
            spin: Duration::from_micros(50),
            heavy_threads: heavy,
            heavy_workers: heavy,
            isolate: false,
            limits: AdmissionLimits {
                light_workers: workers,
                heavy_workers: heavy,
                ..AdmissionLimits::default()
            },
        }
    }
}
