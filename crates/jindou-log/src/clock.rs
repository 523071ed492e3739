//! When the log's thread syncs, how long it waits for more records, and when it marks the log as durable.

use crate::options::{Durability, LogOptions};
use std::time::{Duration, Instant};

/// The points in time and the waiting times of the log's thread.
pub(crate) struct ThreadClock {
    /// Time by which acknowledged records must be synced.
    pub sync_at: Option<Instant>,
    pub idle_since: Instant,
    /// True once the log itself records that its last group is durable ([`LogOptions::idle`]).
    pub marked: bool,
    /// Number of queued records at which the next group is written without waiting for more.
    pub wanted: usize,
    /// Longest time to wait for more records before a group is written.
    longest: Duration,
    /// Number of consecutive groups for which fewer than `wanted` records arrived in the waiting time. Each one halves
    /// the next waiting time.
    failed_waits: u32,
}

/// Longest interval between syncs, since an [`Instant`] cannot be arbitrarily far in the future.
const FOREVER: Duration = Duration::from_secs(1 << 32);
/// Number of consecutive waits without success after which groups are written at once.
const MAX_FAILED_WAITS: u32 = 4;
/// Number of consecutive groups without a successful wait after which the thread waits again.
const RETRY_AFTER: u32 = 64;

impl Default for ThreadClock {
    fn default() -> Self {
        Self {
            sync_at: None,
            idle_since: Instant::now(),
            marked: true,
            wanted: 0,
            longest: Duration::ZERO,
            failed_waits: 0,
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
        match self.failed_waits {
            n @ 0..MAX_FAILED_WAITS => self.longest / (1 << n),
            _ => Duration::ZERO,
        }
    }

    pub fn gathered(&mut self, all: bool) {
        self.failed_waits = match self.failed_waits + 1 {
            _ if all => 0,
            RETRY_AFTER => 0,
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
