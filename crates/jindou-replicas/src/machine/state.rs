//! Types of the machine's state.

use super::{Blob, Echo, Group, ServerName, Time, Writer};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Longest delay after repeated failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// State of the local store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Phase {
    /// The store has not been opened yet.
    #[default]
    Closed,
    /// The folder is empty. It is filled from a base if the bucket has one; otherwise the store starts empty.
    Empty,
    /// The store is being replaced by the newest base.
    Downloading,
    /// A download failed and will be retried.
    DownloadFailed,
    /// The store follows the log.
    Following,
}

/// The driver's speculative state (the head), on which updates are evaluated.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum Head {
    /// Equal to the published snapshot.
    #[default]
    Published,
    /// One proposed group, by this writer, is applied to the published snapshot.
    Proposed(Writer),
    /// Updates of this server have been evaluated, or are being evaluated, on the head.
    Own,
}

/// A group fetched from the bucket.
#[derive(Clone, Debug)]
pub(super) struct FromBucket {
    pub(super) group: Arc<Group>,
    pub(super) hash: u64,
    pub(super) answer: ResponseTime,
}

/// The time of a response from the bucket, and the number of listings started by then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ResponseTime {
    pub(super) at: Time,
    pub(super) listings_started: u64,
}

/// State of the machine's listings of the bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum ListingState {
    #[default]
    Idle,
    /// A listing will start after the delay that follows a failed listing.
    Wanted,
    Sent(super::gaps::Asked),
    /// A listing is running, and another one will start when it returns.
    SentAndWanted(super::gaps::Asked),
}

/// Delay after failed requests, which grows with each consecutive failure.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pause {
    pub(super) length: Duration,
    pub(super) until: Time,
}

impl Pause {
    /// Starts a delay after a failure. Does nothing during a delay, since requests that were started together fail
    /// together.
    pub(super) fn begin(&mut self, now: Time, least: Duration) {
        if self.is_over(now) {
            self.length = (self.length * 2).min(LONGEST_PAUSE).max(least);
            self.until = now.after(self.length);
        }
    }

    pub(super) fn is_over(&self, now: Time) -> bool {
        self.until <= now
    }
}

/// The two newest bases in the bucket, according to the last listing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Bases {
    pub(super) newest: Option<u64>,
    pub(super) second: Option<u64>,
}

/// The group that is being put. There is at most one, and no other number is put until the outcome of the put is known.
#[derive(Debug)]
pub(super) struct Put {
    pub(super) group: Arc<Group>,
    pub(super) bytes: Blob,
    pub(super) attempt: u32,
    /// Start time of the current attempt.
    pub(super) begun: Time,
    pub(super) state: PutState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PutState {
    /// Waiting for the bucket's response.
    Sent,
    /// The outcome is unknown; the put will be repeated at this time.
    Again(Time),
    /// An object with the name exists; it is being read to find out which group it contains.
    NameExists,
    /// The object is this server's group, but an earlier object with the same name may have been trimmed.
    Unproven(ResponseTime),
}

/// An update that has not been answered yet.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) fingerprint: u64,
    pub(super) body: Blob,
    pub(super) asked: Time,
    /// True if a client of this server waits for the update.
    pub(super) client: bool,
    /// Servers that forwarded the update.
    pub(super) peers: BTreeSet<ServerName>,
    /// Number of times the update was forwarded and not rejected.
    pub(super) forwarded: u32,
    pub(super) stage: Stage,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The update is queued here, being evaluated, or evaluated and not committed yet.
    Here,
    /// The update was forwarded to this server at this time.
    Forwarded(ServerName, Time),
    /// The update will be routed again at this time.
    Pausing(Time),
    /// The update is committed; its acknowledgement waits until all counted servers know the group.
    Committed,
}

/// Another server, as known from its messages.
#[derive(Debug, Default)]
pub(super) struct Peer {
    pub(super) start: u64,
    /// Time of the latest message from the server.
    pub(super) last: Option<Time>,
    /// Latest time of this process's clock that the server has echoed.
    pub(super) last_round_trip: Option<Time>,
    /// Latest time of the server's clock that this process has received.
    pub(super) clock: Option<Echo>,
    pub(super) newest_known: u64,
    pub(super) draining: bool,
}
