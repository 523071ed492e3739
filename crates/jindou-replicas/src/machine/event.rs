//! Inputs and outputs of the machine.

use crate::machine::group::{Blob, Group, Record, Request, RequestKey, ServerName, Writer};
use crate::machine::names::Name;
use crate::machine::settings::Time;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// The state of a store after a certain group, on disk or in the bucket.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Base {
    /// Number of the last group that the base contains.
    pub number: u64,
    /// [`Group::hash`] of the last group; 0 if that is unknown or there is no group.
    pub hash: u64,
    /// The remembered request keys, for deduplication.
    pub keys: Vec<KnownKey>,
}

/// A request that was executed and is remembered for deduplication.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownKey {
    /// Identity of the request.
    pub key: RequestKey,
    /// The request's fingerprint; 0 if unknown.
    pub fingerprint: u64,
    /// Number of the group that contains the request's transaction.
    pub number: u64,
    /// The answer to the request.
    pub report: Bytes,
}

impl KnownKey {
    /// The request of a record in the group with this number.
    #[must_use]
    pub fn of(record: &Record, number: u64) -> Self {
        Self {
            key: record.key,
            fingerprint: record.fingerprint,
            number,
            report: Bytes::from_owner(Arc::clone(&record.report)),
        }
    }
}

/// An input of the machine.
#[derive(Clone, Debug)]
pub enum Event {
    /// The local store was opened; `None` if the folder is empty. Always the first event, and only once.
    Opened(Option<Base>),
    /// The newest complete base in the bucket has replaced the local store; `None` if no base could be downloaded.
    Downloaded(Option<Base>),
    /// None of the bases that could replace the local store is complete. Later listings omit these bases.
    NoBase,
    /// The servers in the bucket's list, which may include this one.
    Peers(Vec<ServerName>),
    /// The newest group version that every server in the bucket's list can read. Newer versions are not written.
    Format(u32),
    /// Highest group number that an entry in `servers/` mentions.
    Known(u64),
    /// A client's update. A second update with the same key gets the outcome of the first.
    Update(Request, Blob),
    /// The evaluation with this ticket has finished.
    Evaluated(u64, Evaluation),
    /// A client's query, with the driver's number for it.
    Read(u64, Consistency),
    /// The outcome of a group's put: the group's number, the attempt, and the result.
    Put(u64, u32, PutResult),
    /// The outcome of the listing with this number; `None` if it failed.
    Listed(u64, Option<Listing>),
    /// The outcome of a fetch.
    Fetched(Fetch, Fetched),
    /// A message from another server.
    Received(ServerName, Message),
    /// The connection to another server was closed.
    Disconnected(ServerName),
    /// The local store was merged into a base whose last group is this one.
    Merged(u64),
    /// The bucket contains a base whose last group is this one.
    Uploaded(u64),
    /// The operator stops this server.
    Drain,
    /// The time returned by [`crate::machine::Machine::wake`] has come.
    Wake,
}

/// The result of evaluating an update on the speculative state (the head).
#[derive(Clone, Debug)]
pub enum Evaluation {
    /// The update was evaluated. The driver has applied its changes, possibly none, to the head.
    Record {
        /// The encoded changes.
        bytes: Blob,
        /// The answer to the client.
        report: Blob,
    },
    /// The evaluation failed: a syntax error, a limit or a full store. The update changes nothing and is not recorded
    /// in the log, so a retry is evaluated again. Contains the encoded answer.
    Refused(Blob),
}

/// Freshness that a query requires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Consistency {
    /// Sees all updates acknowledged by a writer that is connected to this server. Other data may be stale by at most
    /// `max_staleness`.
    Default,
    /// Like `Default`, and at least the snapshot with this number.
    AtLeast(u64),
    /// Linearizable.
    Strict,
    /// The published snapshot, however old it is.
    Any,
}

/// Outcome of a put with create-only semantics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PutResult {
    /// This request created the object.
    Created,
    /// The object exists, possibly because of an earlier attempt.
    Exists,
    /// The response was lost or timed out, or the server failed or answered 409.
    Unknown,
}

/// Names of objects in the bucket. The log was listed first, then the bases.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// Names of the groups and spans that end after the requested number.
    pub log: Vec<String>,
    /// Names of bases.
    pub bases: Vec<String>,
}

/// An object to read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fetch {
    /// A group, by its number.
    Group(u64),
    /// A span, by its first and last group.
    Span(u64, u64),
}

impl Fetch {
    /// The name of the object.
    pub fn name(self) -> Name {
        match self {
            Self::Group(number) => Name::Group(number),
            Self::Span(first, last) => Name::Span(first, last),
        }
    }
}

/// Outcome of a fetch.
#[derive(Clone, Debug)]
pub enum Fetched {
    /// The object's bytes.
    Bytes(Blob),
    /// The object does not exist.
    Missing,
    /// The request failed.
    Unknown,
}

/// The outcome of an update.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The update's record is durable. It may be a record without changes: a conflict with the data and a failed
    /// precondition are recorded too, with the error as the answer, so that a retry gets the same answer.
    Done {
        /// Number of the group that contains the update's transaction.
        number: u64,
        /// Fingerprint of the executed request, which may be another request with the same key; 0 if unknown.
        fingerprint: u64,
        /// The answer to the request.
        report: Blob,
    },
    /// The update was not executed, and is not recorded in the log. Contains the encoded answer.
    Refused(Blob),
    /// The update was not evaluated, since the group with this number is missing from the log. If the request was sent
    /// before, the earlier attempt may have been executed.
    Missing(u64),
    /// Unknown outcome: the update may or may not have been executed. The client can retry with the same key.
    Unknown,
}

/// Reason why a query is not answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The latest freshness proof is older than allowed.
    Stale,
    /// Groups that the query must see have not been applied yet.
    Behind,
    /// The group with this number is missing from the log, or its object is damaged.
    Missing(u64),
}

/// A gap in the log: groups that must exist and cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// Number of the first missing group.
    pub first: u64,
    /// Number of the newest group that is known to have been in the log.
    pub newest: u64,
    /// True if this server has applied the first missing group.
    pub applied: bool,
    /// State of the first missing group's object.
    pub object: GroupObjectState,
}

/// The state of a lost group's object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupObjectState {
    /// The object does not exist.
    Missing,
    /// The object contains a different group: its hash is not the `previous` hash in the next group.
    Replaced,
    /// The object's bytes are not a valid group of this log.
    Damaged(crate::machine::group::Damage),
}

impl Gap {
    /// True if the object exists, so that a listing alone does not show the gap.
    pub fn has_wrong_object(&self) -> bool {
        self.object != GroupObjectState::Missing
    }

    /// A sentence for the operator. `epoch` is the log's id epoch.
    pub fn text(&self, epoch: u64) -> String {
        let name = Name::Group(self.first).text(epoch);
        let has = match self.newest > self.first {
            true => format!("the log had groups up to {}", self.newest),
            false => "the log had it".to_owned(),
        };
        match (self.object, self.applied) {
            (GroupObjectState::Damaged(damage), _) => format!("{name} is damaged: {damage}"),
            (GroupObjectState::Replaced, true) => format!(
                "{name} in the log is not the group {} that this server has applied, so its data are not the log's. \
                 If the log is right, start this server with an empty folder",
                self.first
            ),
            (GroupObjectState::Replaced, false) => format!(
                "{name} in the log is not the group that the next one continues: it was lost and written again"
            ),
            (GroupObjectState::Missing, true) => {
                format!("{name} is missing from the log, and this server has it")
            }
            (GroupObjectState::Missing, false) => {
                format!("{name} is missing from the log, and {has}")
            }
        }
    }
}

impl Problem {
    /// A sentence for the operator. `epoch` is the log's id epoch.
    pub fn text(&self, epoch: u64) -> String {
        match self {
            Self::Damaged(fetch, damage) => format!("{}: {damage}", fetch.name().text(epoch)),
            Self::Gap(gap) => gap.text(epoch),
            Self::Unwritable => {
                "a group that was made here has more bytes than an object can have".into()
            }
        }
    }
}

/// A problem to report to the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Problem {
    /// The content of an object does not match its name.
    Damaged(Fetch, crate::machine::group::Damage),
    /// A group is missing although it cannot have been trimmed.
    Gap(Gap),
    /// A group of this server cannot be encoded.
    Unwritable,
}

/// An output of the machine, executed by the driver. Actions on the store must be executed in order.
#[derive(Clone, Debug)]
pub enum Action {
    /// Evaluate the update on the head, then send [`Event::Evaluated`] with the ticket. Updates are evaluated one at a
    /// time.
    Evaluate(u64, RequestKey, Blob),
    /// Put a group, create-only. All attempts for a number have the same bytes. The group contains the oldest evaluated
    /// records.
    Put {
        /// The group.
        group: Arc<Group>,
        /// The encoded group.
        bytes: Blob,
        /// Number of the attempt, which is returned with the outcome.
        attempt: u32,
    },
    /// Apply another server's group to the head, without publishing it.
    Apply(Arc<Group>),
    /// Publish the snapshot after the group with this number, which has been applied to the head.
    Publish(u64),
    /// Roll the head back to the published snapshot.
    Rollback,
    /// List the groups after `after`, then the bases.
    List {
        /// Number of the listing, which is returned with the outcome.
        listing_id: u64,
        /// The last group that is known already.
        after: u64,
        /// True if all names are needed; otherwise the names up to the first missing group are enough.
        all: bool,
    },
    /// Read an object.
    Fetch(Fetch),
    /// Restore the object of this group, which this server has applied; or else upload a base that contains the group.
    WriteBack(u64),
    /// Copy the groups from the first to the last number into a span. May fail without consequences.
    Span(u64, u64),
    /// Upload the store after the base's last group, with the remembered request keys.
    Upload(Base),
    /// Replace the local store by the newest base in the bucket.
    Download,
    /// Delete the groups and spans that end at or before this number, in ascending order. May fail without
    /// consequences.
    Trim(u64),
    /// Send a message if the server is connected.
    Send(ServerName, Message),
    /// Send the outcome to all clients that wait for this update.
    Answer(RequestKey, Outcome),
    /// Answer a query from the published snapshot.
    AnswerRead(u64),
    /// Refuse a query.
    Refuse(u64, Refusal),
    /// Report a problem to the operator.
    Report(Problem),
}

/// A time of the receiver's clock that the sender has received. It proves that the message was sent after that time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Echo {
    /// Random number of the receiver's process.
    pub start: u64,
    /// The echoed time.
    pub clock: Time,
}

/// A heartbeat.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Beat {
    /// Random number of the sender's process.
    pub start: u64,
    /// The sender's clock.
    pub clock: Time,
    /// The latest time of the receiver's clock that the sender has received; `None` before the first heartbeat.
    pub echo: Option<Echo>,
    /// The sender's newest committed group.
    pub committed: u64,
    /// The highest group number that the sender knows to exist.
    pub newest_known: u64,
    /// Time since the sender's latest proof that no group after `committed` existed; `None` without a proof.
    pub age: Option<Duration>,
    /// True if the sender is stopping.
    pub draining: bool,
}

/// A message between servers. Losing one costs time, never correctness.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// A heartbeat.
    Beat(Beat),
    /// A group whose put has started but not completed.
    Proposed(Arc<Group>),
    /// The group with this number is committed. Contains its writer, if the sender knows it.
    Committed(u64, Option<Writer>),
    /// Acknowledges that the sender knows that the group with this number exists. Later reads at the sender wait until
    /// it has applied the group, except those with [`Consistency::Any`]. Heartbeats acknowledge their `newest_known` in
    /// the same way.
    Acknowledged(u64),
    /// An update that is forwarded to the writer, with an echo that proves its age.
    Forward(Request, Blob, Option<Echo>),
    /// The outcome of a forwarded update.
    Outcome(RequestKey, Outcome),
    /// A forwarded update was not accepted: the server is not the writer, is stopping, cannot tell that the update is
    /// recent, or lacks memory for it. Contains that server's newest committed group (0 for lack of memory), and true
    /// if that server is stopping.
    NotWriter(RequestKey, u64, bool),
}
