//! Inputs and outputs of the machine.

use crate::group::{Author, Blob, Group, Request, RequestKey, ServerName};
use crate::names::Name;
use crate::settings::Time;
use std::sync::Arc;
use std::time::Duration;

/// A store at a number, as it is on disk or in the bucket.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Base {
    /// The last group in it.
    pub number: u64,
    /// [`Group::hash`] of that group; 0: unknown, or there is none.
    pub hash: u64,
    /// The requests that it knows.
    pub keys: Vec<KnownKey>,
}

/// A request that was done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownKey {
    /// The request.
    pub key: RequestKey,
    /// Its fingerprint; 0: unknown.
    pub fingerprint: u64,
    /// The group that has it.
    pub number: u64,
    /// Its answer.
    pub report: Blob,
}

/// Something that happened outside.
#[derive(Clone, Debug)]
pub enum Event {
    /// The local store was opened; `None`: the folder is empty. Comes once and first.
    Opened(Option<Base>),
    /// The newest base of the bucket that is whole replaced the local store, or could not be fetched.
    Downloaded(Option<Base>),
    /// None of the bases that could replace the local store is whole. Listings leave them out from now on.
    NoBase,
    /// The servers in the bucket's list, this one possibly among them.
    Peers(Vec<ServerName>),
    /// The newest version of groups that every server in the bucket's list reads: newer ones are not written.
    Format(u32),
    /// The newest group that an entry in `servers/` names.
    Known(u64),
    /// A client's update. The same key again joins the first one.
    Update(Request, Blob),
    /// The evaluation with this ticket is over.
    Evaluated(u64, Evaluation),
    /// A client's query, of a number that the driver gave.
    Read(u64, Consistency),
    /// The outcome of a group's put: number and attempt.
    Put(u64, u32, PutResult),
    /// The outcome of a listing; `None`: it failed.
    Listed(u64, Option<Listing>),
    /// The outcome of a fetch.
    Fetched(Fetch, Fetched),
    /// A message of another server.
    Received(ServerName, Message),
    /// The connection to another server is gone.
    Disconnected(ServerName),
    /// The local store was merged into a base of this number.
    Merged(u64),
    /// A base of this number is in the bucket.
    Uploaded(u64),
    /// The operator wants to stop this server.
    Drain,
    /// The time is that of [`crate::Machine::wake`].
    Wake,
}

/// The result of evaluating an update on the head.
#[derive(Clone, Debug)]
pub enum Evaluation {
    /// Changes, possibly without any, and the answer. The driver's head has them now.
    Record {
        /// The changes.
        bytes: Blob,
        /// The answer.
        report: Blob,
    },
    /// Refused for reasons that are not in the data, such as its syntax; changes nothing.
    Refused(Blob),
}

/// Freshness that a query demands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Consistency {
    /// Everything acknowledged by a writer that reaches this server; bounded age otherwise.
    Default,
    /// The default, and at least the snapshot of this number.
    AtLeast(u64),
    /// Linearizable.
    Strict,
    /// The published snapshot, however old.
    Any,
}

/// Outcome of a put that may only create.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PutResult {
    /// This request created the object.
    Created,
    /// The name was taken, possibly by an earlier attempt.
    Exists,
    /// A lost answer, a time-out, an error of the server, or 409.
    Unknown,
}

/// Names in the bucket: first the log was listed, then the bases.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// Names of groups and spans, of all that end after the number that was asked for.
    pub log: Vec<String>,
    /// Names of bases.
    pub bases: Vec<String>,
}

/// An object to read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fetch {
    /// A group.
    Group(u64),
    /// A span, both ends included.
    Span(u64, u64),
}

impl Fetch {
    /// The object's name.
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
    /// Absence of the object.
    Missing,
    /// A failure.
    Unknown,
}

/// The outcome of an update.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Durable.
    Done {
        /// The group that has it.
        number: u64,
        /// The fingerprint of the request that was done, which may be another one with the same key; 0: unknown.
        fingerprint: u64,
        /// Its answer.
        report: Blob,
    },
    /// Not done, for reasons that are not in the data.
    Refused(Blob),
    /// Not evaluated, since the log lacks this group, which it must have. A request that was sent before may be done.
    Missing(u64),
    /// Done or not; the same key asks again.
    Unknown,
}

/// Reason why a query is not answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Knowledge of the bucket is older than allowed.
    Stale,
    /// Groups that must be visible have not come.
    Behind,
    /// The log lacks this group, which it must have, or its object is damaged.
    Missing(u64),
}

/// Groups that must be in the log and cannot be read there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// The first of them.
    pub first: u64,
    /// The newest group that is known to have been in the log.
    pub newest: u64,
    /// True if this server has applied the first one.
    pub applied: bool,
    /// The state of the first one's object.
    pub object: LostObject,
}

/// The state of an object that a log must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LostObject {
    /// Absence of the object.
    Missing,
    /// A group that the next one does not continue.
    Replaced,
    /// Bytes that are not a group of this log.
    Damaged(crate::group::Damage),
}

impl Gap {
    /// True if the object is there, so that a listing does not show the gap.
    pub fn is_of_content(&self) -> bool {
        self.object != LostObject::Missing
    }

    /// One sentence for the operator of a log with this id epoch.
    pub fn text(&self, epoch: u64) -> String {
        let name = Name::Group(self.first).text(epoch);
        let has = match self.newest > self.first {
            true => format!("the log had groups up to {}", self.newest),
            false => "the log had it".to_owned(),
        };
        match (self.object, self.applied) {
            (LostObject::Damaged(damage), _) => format!("{name} is damaged: {damage}"),
            (LostObject::Replaced, true) => format!(
                "{name} in the log is not the group {} that this server has applied, so its data are not the log's. \
                 If the log is right, start this server with an empty folder",
                self.first
            ),
            (LostObject::Replaced, false) => format!(
                "{name} in the log is not the group that the next one continues: it was lost and written again"
            ),
            (LostObject::Missing, true) => {
                format!("{name} is missing from the log, and this server has it")
            }
            (LostObject::Missing, false) => format!("{name} is missing from the log, and {has}"),
        }
    }
}

impl Problem {
    /// One sentence for the operator of a log with this id epoch.
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

/// Something that an operator must be told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Problem {
    /// An object that is not what its name says.
    Damaged(Fetch, crate::group::Damage),
    /// A group is missing which no trim can have removed.
    Gap(Gap),
    /// A group that was made here cannot be written.
    Unwritable,
}

/// Something to do outside. The order matters among those that touch the store.
#[derive(Clone, Debug)]
pub enum Action {
    /// Evaluate the update on the head and answer with the ticket. There is one at a time.
    Evaluate(u64, RequestKey, Blob),
    /// Put a group, creating only. Attempts of a number have the same bytes. The records evaluated longest ago, as many
    /// as the group has, are the group.
    Put {
        /// The group.
        group: Arc<Group>,
        /// Its bytes.
        bytes: Blob,
        /// Number of the attempt; the outcome names it.
        attempt: u32,
    },
    /// Lay another's group on the head, unseen.
    Lay(Arc<Group>),
    /// Publish the snapshot after the group of this number, which is on the head.
    Publish(u64),
    /// Let the head fall back to the published snapshot.
    Fall,
    /// List the log behind this number, then the bases.
    List {
        /// Number of the listing.
        look: u64,
        /// Groups up to this one are known.
        after: u64,
        /// True if all names are needed. Otherwise those up to the first missing group are enough.
        all: bool,
    },
    /// Read an object.
    Fetch(Fetch),
    /// Create the object of this group again, which was applied here; or upload a base that has it.
    WriteBack(u64),
    /// Copy these groups, both ends included, into a span; failing is allowed.
    Span(u64, u64),
    /// Upload the store at this number with the known requests.
    Upload(Base),
    /// Replace the local store by the newest base in the bucket.
    Download,
    /// Delete groups and spans that end at this number or before, in ascending order; failing is allowed.
    Trim(u64),
    /// Send a message, if there is a connection.
    Send(ServerName, Message),
    /// Tell the clients that wait for this update.
    Answer(RequestKey, Outcome),
    /// Answer a query from the published snapshot.
    Serve(u64),
    /// Refuse a query.
    Refuse(u64, Refusal),
    /// Tell the operator.
    Report(Problem),
}

/// A moment of the receiver's clock which the sender has seen: proof that a message is later than it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Echo {
    /// The receiver's start.
    pub start: u64,
    /// Its time.
    pub clock: Time,
}

/// A regular message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Beat {
    /// The sender's start.
    pub start: u64,
    /// The sender's time.
    pub clock: Time,
    /// The receiver's newest time that the sender has seen.
    pub echo: Option<Echo>,
    /// The sender's newest committed group.
    pub committed: u64,
    /// The newest group that the sender has heard of.
    pub heard: u64,
    /// Age of the moment when no group after `committed` existed.
    pub age: Option<Duration>,
    /// True if the sender wants to stop.
    pub draining: bool,
}

/// A message between servers. Losing one costs time only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// The sender lives.
    Beat(Beat),
    /// A group whose put was begun.
    Proposed(Arc<Group>),
    /// The group of this number is in the log; its author, if the sender knows it.
    Committed(u64, Option<Author>),
    /// The sender's later reads see the group of this number.
    Heard(u64),
    /// An update for the writer.
    Forward(Request, Blob, Option<Echo>),
    /// A forwarded update is over.
    Outcome(RequestKey, Outcome),
    /// A forwarded update is not taken; the sender's newest committed group, and true if it wants to stop.
    NotHere(RequestKey, u64, bool),
}
