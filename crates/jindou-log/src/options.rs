//! Options of a log, and its status.

use std::time::Duration;

/// When a record counts as written, and its ticket is good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Once it is synced: nothing acknowledged is ever lost. Records that wait together are synced together.
    #[default]
    Batch,
    /// Once the operating system has it; synced after this time at the latest. The loss of power loses what was
    /// acknowledged meanwhile, the death of the process nothing.
    Interval(Duration),
    /// Once the operating system has it; synced when it likes (after [`Options::unsynced_bytes`] at the latest). The loss
    /// of power loses what it had not got to, the death of the process nothing.
    None,
}

/// How a log works.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// When a ticket is good.
    pub durability: Durability,
    /// A file that is that long is continued by a new one.
    pub file_bytes: u64,
    /// With [`Durability::Batch`] a file grows by this many bytes at a time, zeros at first: a sync that finds length and
    /// blocks as they were has no metadata to write. 0: by what is written.
    pub lengthen_bytes: u64,
    /// Records of this many bytes may wait; [`crate::Log::append`] blocks beyond, unless nothing waits.
    pub queue_bytes: usize,
    /// No group gets larger by a second record.
    pub group_bytes: usize,
    /// After that many bytes that are not synced the log syncs whatever the durability; it keeps them in memory until
    /// then, to write them again if the sync fails.
    pub unsynced_bytes: usize,
    /// With nothing to do for that long, the log writes down that its last group was durable, so that damage to it will
    /// not pass for a torn tail.
    pub idle: Duration,
    /// At most that long, and never more than three quarters of what a sync takes, a group waits for the clients that were
    /// acknowledged just before: otherwise two halves of them take turns, and each waits for the other's sync. Where
    /// they do not come back in that time, it soon waits no more.
    pub gather: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Batch,
            file_bytes: 64 << 20,
            lengthen_bytes: 256 << 10,
            queue_bytes: 256 << 20,
            group_bytes: 16 << 20,
            unsynced_bytes: 16 << 20,
            idle: Duration::from_secs(1),
            gather: Duration::from_millis(4),
        }
    }
}

/// Present state of a log.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Status {
    /// Number of the last acknowledged record.
    pub acknowledged: u32,
    /// Number of the last record that the loss of power leaves.
    pub durable: u32,
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Records that wait, and their bytes.
    pub queued: (u64, u64),
    /// Groups written since the log was opened.
    pub groups: u64,
    /// Records in them.
    pub records: u64,
    /// Why the last group could not be written, or synced in time, until it can.
    pub failure: Option<String>,
}
