//! Counts of the workers' activity.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of the activity of all workers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Light jobs that were run.
    pub light: u64,
    /// Heavy jobs that were run.
    pub heavy: u64,
    /// Light jobs taken from another worker's queue.
    pub taken: u64,
    /// Light jobs that took too long and became heavy ones.
    pub moved: u64,
    /// Times that a worker helped with a heavy query of another.
    pub helped: u64,
    /// Times that a worker went to sleep.
    pub slept: u64,
}

/// Counts of one worker, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub light: AtomicU64,
    pub heavy: AtomicU64,
    pub taken: AtomicU64,
    pub moved: AtomicU64,
    pub helped: AtomicU64,
    pub slept: AtomicU64,
}

/// Increments a counter. A plain load and store suffice, since only its own worker writes to it.
pub(crate) fn one(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

impl Counters {
    pub(crate) fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Counts {
        all.fold(Counts::default(), |mut sum, c| {
            for (sum, own) in [
                (&mut sum.light, &c.light),
                (&mut sum.heavy, &c.heavy),
                (&mut sum.taken, &c.taken),
                (&mut sum.moved, &c.moved),
                (&mut sum.helped, &c.helped),
                (&mut sum.slept, &c.slept),
            ] {
                *sum += own.load(Ordering::Relaxed);
            }
            sum
        })
    }
}
