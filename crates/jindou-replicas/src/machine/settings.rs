//! Settings: times and sizes.

use std::time::Duration;

/// A time of one server's clock, in microseconds. The clock must advance while the machine sleeps (`CLOCK_BOOTTIME`).
/// Clocks of different servers are never compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(pub u64);

impl Time {
    /// This time plus `time`, saturating.
    pub fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(micros(time)))
    }

    /// This time minus `time`, saturating.
    pub fn before(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(micros(time)))
    }

    /// The time that passed since `earlier`; zero if `earlier` is in the future.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Times and sizes of the protocol. All servers of a log should use the same values.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Interval between heartbeats.
    pub beat: Duration,
    /// A server that has sent no message for this time is not waited for before an acknowledgement.
    pub ack_timeout: Duration,
    /// A server whose latest round trip is older than this is not waited for either: its messages arrive, but this
    /// server's messages may not reach it.
    pub round_trip_timeout: Duration,
    /// Updates are not forwarded to a writer that has sent no message for this time. A forwarded update that has no
    /// outcome after this time is routed again, even if the writer is alive.
    pub forward_timeout: Duration,
    /// Age of the latest freshness proof at which the writer lists the bucket.
    pub prove_every: Duration,
    /// Age of the latest freshness proof at which other servers list the bucket; longer, since the writer's heartbeats
    /// carry its proof.
    pub list_after: Duration,
    /// Shortest interval between two listings that no query requires.
    pub list_every: Duration,
    /// Largest staleness of an answer while the bucket is available.
    pub staleness_while_available: Duration,
    /// Time that a query waits for the bucket before an answer with staleness up to `max_staleness` is allowed.
    pub list_wait: Duration,
    /// Largest staleness of an answer while the bucket is not available.
    pub max_staleness: Duration,
    /// Time after which a waiting query is rejected.
    pub read_limit: Duration,
    /// Time after which the outcome of an update is reported as unknown. The crate `jindou` sets an hour, since an
    /// update has a time limit of its own there.
    pub update_limit: Duration,
    /// Largest age of a forwarded update that is accepted.
    pub forward_limit: Duration,
    /// Time for which a request is remembered for deduplication: a retry gets the first answer.
    pub keys_for: Duration,
    /// Interval between two listings of all groups after the newest base.
    pub audit_every: Duration,
    /// Groups younger than this are not trimmed.
    pub keep: Duration,
    /// Largest size of a group in bytes. A group with a single transaction may be larger.
    pub group_bytes: usize,
    /// Number of groups that are copied into one span.
    pub span_groups: u64,
    /// A span ends earlier when it reaches this number of bytes.
    pub span_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            beat: Duration::from_millis(500),
            ack_timeout: Duration::from_secs(1),
            round_trip_timeout: Duration::from_secs(2),
            forward_timeout: Duration::from_millis(2500),
            prove_every: Duration::from_secs(2),
            list_after: Duration::from_millis(2500),
            list_every: Duration::from_secs(1),
            staleness_while_available: Duration::from_millis(3500),
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
    /// Age of the latest freshness proof after which an unused name may have been created and trimmed in the meantime.
    pub(crate) fn proof(&self) -> Duration {
        self.keep / 8
    }

    /// Age of the latest freshness proof after which a name without an object may be that of a lost group. Before this
    /// age, messages or listings would have shown that a later group exists.
    pub(crate) fn recent(&self) -> Duration {
        self.proof().min(self.staleness_while_available)
    }
}
