//! Options of a log, and its status.

use std::time::Duration;

/// The point at which a record counts as written and its ticket is fulfilled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Once it is synced: acknowledged records are never lost. Records that wait together are synced together.
    #[default]
    Batch,
    /// Once the operating system has it; it is synced after this time at the latest. A power failure loses the records
    /// acknowledged meanwhile, the end of the process loses nothing.
    Interval(Duration),
    /// Once the operating system has it; it is synced at the system's discretion (after [`LogOptions::unsynced_bytes`] at
    /// the latest). A power failure loses the unsynced records, the end of the process loses nothing.
    None,
}

/// Options of a log.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// The point at which a ticket is fulfilled.
    pub durability: Durability,
    /// Size at which a file is continued by a new one.
    pub file_bytes: u64,
    /// Number of bytes, initially zeros, by which a file grows at a time with [`Durability::Batch`]: a sync has no
    /// metadata to write if length and blocks are unchanged. With 0, it grows by the bytes written.
    pub lengthen_bytes: u64,
    /// Bytes of records that may wait; beyond them [`crate::Log::append`] blocks, unless nothing waits.
    pub queue_bytes: usize,
    /// Size beyond which a group gets no second record.
    pub group_bytes: usize,
    /// Number of unsynced bytes after which the log syncs whatever the durability; until then it keeps them in memory,
    /// to write them again if the sync fails.
    pub unsynced_bytes: usize,
    /// Idle time after which the log records that its last group is durable, so that damage to it is not taken for a
    /// torn tail.
    pub idle: Duration,
    /// Longest time that a group waits for the clients that were acknowledged just before, and never more than three
    /// quarters of the duration of a sync. Without it, two halves of the clients take turns, and each waits for the
    /// other's sync. If they do not come back in that time, it soon stops waiting.
    pub gather: Duration,
}

impl Default for LogOptions {
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

/// Current state of a log.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Status {
    /// Number of the last acknowledged record.
    pub acknowledged: u64,
    /// Number of the last record that would survive a power failure.
    pub durable: u64,
    /// Number of files.
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Number of waiting records, and their bytes.
    pub queued: (u64, u64),
    /// Groups written since the log was opened.
    pub groups: u64,
    /// Records in them.
    pub records: u64,
    /// Reason why the last group could not be written, or not synced in time: until that succeeds, or [`Log::probe`] finds
    /// room for as much.
    ///
    /// [`Log::probe`]: crate::Log::probe
    pub failure: Option<String>,
}
