//! Times and sizes.

use std::time::Duration;

/// A moment of one server's clock, in microseconds. The clock must run while the machine sleeps (`CLOCK_BOOTTIME`);
/// clocks of different servers are never compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(pub u64);

impl Time {
    /// The moment `time` later.
    pub fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(micros(time)))
    }

    /// The moment `time` earlier.
    pub fn before(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(micros(time)))
    }

    /// The time since an earlier moment; zero if that is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Times and sizes of a server. All servers of a store should have the same.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Time between beats.
    pub beat: Duration,
    /// Silence after which an acknowledgement does not wait for a server.
    pub counted: Duration,
    /// Age of the newest round trip after which it does not wait either, although the server talks: it does not hear.
    pub round: Duration,
    /// Silence after which the others do not forward to the writer.
    pub silence: Duration,
    /// Age of what a writer knows about the bucket at which it lists.
    pub prove_every: Duration,
    /// The same for the others, whom the writer's beats tell what it knows.
    pub list_after: Duration,
    /// Shortest time between two listings that no read asked for.
    pub list_every: Duration,
    /// Largest age of what a read is answered from, where the bucket can be reached.
    pub find_out: Duration,
    /// Largest time for which a read waits for the bucket before the age may be `max_staleness`.
    pub list_wait: Duration,
    /// Largest age of what a read is answered from.
    pub max_staleness: Duration,
    /// Time after which a read that waits is refused.
    pub read_limit: Duration,
    /// Time after which the outcome of an update is unknown.
    pub update_limit: Duration,
    /// Largest time that a forwarded update may have been on its way.
    pub forward_limit: Duration,
    /// Time for which a repeated request gets the first answer.
    pub keys_for: Duration,
    /// Time between two listings of all groups after the newest base.
    pub audit_every: Duration,
    /// Age below which nothing is trimmed.
    pub keep: Duration,
    /// Most bytes of a group, unless one transaction is larger.
    pub group_bytes: usize,
    /// Number of groups that are copied into one span.
    pub span_groups: u64,
    /// Number of bytes at which fewer groups are.
    pub span_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            beat: Duration::from_millis(500),
            counted: Duration::from_secs(1),
            round: Duration::from_secs(2),
            silence: Duration::from_millis(2500),
            prove_every: Duration::from_secs(2),
            list_after: Duration::from_millis(2500),
            list_every: Duration::from_secs(1),
            find_out: Duration::from_millis(3500),
            list_wait: Duration::from_secs(1),
            max_staleness: Duration::from_secs(10),
            read_limit: Duration::from_secs(5),
            update_limit: Duration::from_secs(10),
            forward_limit: Duration::from_secs(10),
            keys_for: Duration::from_secs(600),
            audit_every: Duration::from_secs(600),
            keep: Duration::from_secs(24 * 3600),
            group_bytes: 16 << 20,
            span_groups: 1000,
            span_bytes: 8 << 20,
        }
    }
}

impl Settings {
    /// Age of the last proof after which a name that was free may have been taken and trimmed.
    pub(crate) fn proof(&self) -> Duration {
        self.keep / 8
    }

    /// Age of the last proof after which a name that was free may be one that the log lost: what came after it is heard
    /// of earlier, by messages or listings.
    pub(crate) fn recent(&self) -> Duration {
        self.proof().min(self.find_out)
    }
}
