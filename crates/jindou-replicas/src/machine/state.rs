//! The parts of the machine's state.

use super::{Author, Blob, Echo, Group, ServerName, Time};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Longest retry delay after failed requests.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// State of the local store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Not opened yet.
    Closed,
    /// The folder is empty. It is filled from a base if the bucket has one, otherwise the store starts empty.
    Empty,
    /// The store is being replaced by the newest base.
    Downloading,
    /// A download failed and will be retried.
    Again,
    /// The store follows the log.
    Following,
}

/// The driver's speculative state (the head), on which updates are evaluated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Head {
    /// Equal to the published snapshot.
    Published,
    /// One proposed group of this writer is applied to it.
    Proposed(Author),
    /// Updates of this server were evaluated or are being evaluated on it.
    Own,
}

/// A group fetched from the bucket.
#[derive(Clone, Debug)]
pub(super) struct FromBucket {
    pub(super) group: Arc<Group>,
    pub(super) hash: u64,
    pub(super) answer: Answer,
}

/// The time of a response of the bucket, and the number of listings begun by then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    pub(super) at: Time,
    pub(super) looks: u64,
}

/// State of the listing of the bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Look {
    Idle,
    /// To be begun after the pause that follows a failed listing.
    Wanted,
    Sent(super::gaps::Asked),
    /// Running; another listing is begun when it returns.
    SentAndWanted(super::gaps::Asked),
}

/// Retry delay after failed requests, longer with each failure in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pause {
    pub(super) length: Duration,
    pub(super) until: Time,
}

impl Pause {
    /// Begins a pause after a failure. Does nothing during a pause, since requests begun together fail together.
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

/// The group being written to the log. There is one at a time, and no other number is put until its outcome is known.
#[derive(Debug)]
pub(super) enum Writing {
    Idle,
    Put(Put),
}

#[derive(Debug)]
pub(super) struct Put {
    pub(super) group: Arc<Group>,
    pub(super) bytes: Blob,
    pub(super) attempt: u32,
    /// Start time of this attempt.
    pub(super) begun: Time,
    pub(super) state: PutState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PutState {
    /// Waiting for the bucket's response.
    Sent,
    /// The outcome is unknown; the put is repeated at this time.
    Again(Time),
    /// The name exists; its object is being read.
    Taken,
    /// The object is ours, but an earlier object of this name may have been trimmed before.
    Unproven(Answer),
}

/// An update that was not answered yet.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) fingerprint: u64,
    pub(super) body: Blob,
    pub(super) asked: Time,
    /// True if a client of this server waits for it.
    pub(super) client: bool,
    /// Servers that forwarded the update.
    pub(super) peers: BTreeSet<ServerName>,
    /// Number of times it was forwarded and not rejected.
    pub(super) forwarded: u32,
    pub(super) stage: Stage,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Queued here, being evaluated, or evaluated and not committed yet.
    Here,
    /// Forwarded to this server at this time.
    Forwarded(ServerName, Time),
    /// To be routed again at this time.
    Pausing(Time),
    /// Committed; the acknowledgement waits until the counted servers know the group.
    Committed,
}

/// Another server.
#[derive(Debug, Default)]
pub(super) struct Peer {
    pub(super) start: u64,
    /// Time of its last message.
    pub(super) last: Option<Time>,
    /// Latest value of our clock that it has echoed.
    pub(super) round: Option<Time>,
    /// Latest value of its clock that we have received.
    pub(super) clock: Option<Echo>,
    pub(super) heard: u64,
    pub(super) draining: bool,
}
