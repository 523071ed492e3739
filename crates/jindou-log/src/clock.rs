//! Timing of the log's thread.

use crate::options::{Durability, LogOptions};
use std::time::{Duration, Instant};

/// The thread's times.
pub(crate) struct ThreadClock {
    /// Time by which acknowledged records must be synced.
    pub sync_at: Option<Instant>,
    pub idle_since: Instant,
    /// True once the last group is proven durable.
    pub marked: bool,
    /// Number of records that make a group worth starting before `gather` is over.
    pub wanted: usize,
    /// The longest time to gather records for a group.
    longest: Duration,
    /// Number of consecutive waits in vain; each one halves the time.
    in_vain: u32,
}

/// The longest interval between syncs: clocks do not reach arbitrarily far.
const FOREVER: Duration = Duration::from_secs(1 << 32);
/// Number of consecutive waits in vain after which waiting is given up.
const GIVEN_UP: u32 = 4;
/// Number of groups after which waiting is tried again.
const TRIED_AGAIN: u32 = 64;

impl Default for ThreadClock {
    fn default() -> Self {
        Self {
            sync_at: None,
            idle_since: Instant::now(),
            marked: true,
            wanted: 0,
            longest: Duration::ZERO,
            in_vain: 0,
        }
    }
}

impl ThreadClock {
    pub fn sync_after(&mut self, durability: Durability) {
        if let Durability::Interval(time) = durability {
            self.sync_at = Some(Instant::now() + time.min(FOREVER));
        }
    }

    pub fn gather(&self) -> Duration {
        match self.in_vain {
            n @ 0..GIVEN_UP => self.longest / (1 << n),
            _ => Duration::ZERO,
        }
    }

    pub fn gathered(&mut self, all: bool) {
        self.in_vain = match self.in_vain + 1 {
            _ if all => 0,
            TRIED_AGAIN => 0,
            n => n,
        };
    }

    pub fn wrote(&mut self, time: Duration, options: &LogOptions) {
        self.idle_since = Instant::now();
        self.marked = false;
        self.longest = match options.durability {
            Durability::Batch => options.gather.min(time / 4 * 3),
            _ => Duration::ZERO,
        };
    }
}
