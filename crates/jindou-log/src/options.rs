//! Options and status of a log.

use std::time::Duration;

/// Condition under which a record counts as written, so that its ticket reports success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// A record counts as written when it is synced: acknowledged records are never lost. Records that are waiting at
    /// the same time are synced together.
    #[default]
    Batch,
    /// A record counts as written when it was passed to the operating system. It is synced after at most this time. A
    /// power failure loses the records acknowledged since the last sync; the end of the process loses nothing.
    Interval(Duration),
    /// A record counts as written when it was passed to the operating system, which writes it to disk when it sees fit;
    /// the log itself syncs only after [`LogOptions::unsynced_bytes`]. A power failure loses records that were not on
    /// disk; the end of the process loses nothing.
    None,
}

/// Options of a log.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// When a record is acknowledged.
    pub durability: Durability,
    /// Size in bytes at which the log continues in a new file.
    pub file_bytes: u64,
    /// Number of zero bytes by which a file is extended at a time with [`Durability::Batch`]. A sync has no metadata to
    /// write if neither length nor blocks have changed. With 0, a file grows by the bytes that are written.
    pub lengthen_bytes: u64,
    /// Largest number of bytes of queued records. [`crate::Log::append`] blocks if it would be exceeded, unless the
    /// queue is empty.
    pub queue_bytes: usize,
    /// Size in bytes beyond which no further record is added to a group.
    pub group_bytes: usize,
    /// Number of unsynced bytes after which the log syncs, whatever the durability. Until then it keeps these records
    /// in memory, to write them again if the sync fails.
    pub unsynced_bytes: usize,
    /// Idle time after which the log records that its last group is durable, so that later damage to that group is not
    /// mistaken for a torn tail.
    pub idle: Duration,
    /// Longest time for which a group waits for further records of the clients that were just acknowledged; at most
    /// three quarters of the duration of a sync. Without waiting, half of the clients would wait for the sync of the
    /// other half, in turns. If records do not arrive in that time, the log soon stops waiting.
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
    /// Total size of the files in bytes.
    pub bytes: u64,
    /// Number of queued records, and their bytes.
    pub queued: (u64, u64),
    /// Number of groups written since the log was opened.
    pub groups: u64,
    /// Number of records in the groups written since the log was opened.
    pub records: u64,
    /// Reason why the last group could not be written, or not synced in time; reset when that succeeds, or when
    /// [`Log::probe`] has written a file of the same size.
    ///
    /// [`Log::probe`]: crate::Log::probe
    pub failure: Option<String>,
}
