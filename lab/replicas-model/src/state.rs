//! The state of the model of several servers.

/// Number of servers.
pub const SERVERS: usize = 3;

/// A state of the log and all servers. Servers are sorted, since they have no names: states that differ only by a
/// permutation of the servers are the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct State {
    /// Number of groups in the log.
    pub log: u8,
    /// Number of the group that contains the watched update; 0 if there is none.
    pub watched: u8,
    /// Pending puts of dead processes, which may still create the next group.
    pub late: Late,
    /// The answer that the client of the watched update has received.
    pub answer: Answer,
    /// The first violation in this run, if any.
    pub broken: Option<Broken>,
    /// The servers.
    pub servers: [Server; SERVERS],
}

/// Pending puts of dead processes; at most one of each kind is distinguished.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Late {
    /// True if a put without the watched update is pending.
    pub other: bool,
    /// True if a put with the watched update is pending.
    pub watched: bool,
}

/// The answer to the client of the watched update.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Answer {
    /// No answer, or "unknown".
    #[default]
    None,
    /// The update is acknowledged.
    Done,
    /// The client was told that the update is not done and never will be.
    Refused,
}

/// A violation of a property.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Broken {
    /// The watched update is in two groups.
    Twice,
    /// A server applied a group that is not the log's group of that number.
    Content,
    /// A group was evaluated on a state other than that after the group before it.
    OtherBase,
    /// A strict read did not see all groups that existed when it arrived.
    StrictIsOld,
}

/// The state of one server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Server {
    /// Number of groups that the server has applied and published.
    pub committed: u8,
    /// True if the server knows that the watched update's group, or a later one, exists.
    pub knows_of_group: bool,
    /// True if the server remembers the watched update as done.
    pub remembers_update: bool,
    /// The server's put of group `committed + 1`, whose outcome the server does not know yet.
    pub put: Option<Put>,
    /// True if the server has evaluated the watched update on top of `put`.
    pub next: bool,
    /// True if the server acknowledges the watched update: it has committed the update, a client waits for it there,
    /// and the server collects the confirmations of the others.
    pub acknowledges: bool,
    /// True if this process has confirmed to the acknowledging server that it knows of the update.
    pub confirmed: bool,
    /// True if default reads at this server are watched: they must see the watched update.
    pub is_watched: bool,
    /// The watched freshness proof, if this server has it.
    pub proof: Proof,
    /// The watched strict read, if it is at this server.
    pub strict: StrictRead,
}

/// A put of a group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Put {
    /// The effect of the put in the bucket.
    pub effect: PutEffect,
    /// The effect of the put as far as its server knows.
    pub outcome: Outcome,
    /// True if the put contains the watched update.
    pub watched: bool,
    /// True if the group was evaluated before the group of another server was applied. Only a planted mistake sets
    /// this.
    pub stale: bool,
}

/// The effect of a put in the bucket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PutEffect {
    /// Pending: the put may take effect at any time, whatever the server is told.
    Pending,
    /// In effect: the log's group is this one.
    TookEffect,
    /// Void: the group of another server has the name.
    Void,
}

/// The effect of a put as far as its server knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Outcome {
    /// An attempt was sent, and its answer may still arrive.
    Sent,
    /// Unknown, and no answer will arrive: the put must be retried.
    Unknown,
    /// The name is taken, possibly by an earlier attempt; the server reads the object.
    Taken,
}

/// A freshness proof: at some moment no group existed after a certain one. A moment is given by the number of groups
/// that existed then.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Proof {
    /// The server does not have the watched proof.
    #[default]
    None,
    /// A listing that was started at this moment is running.
    Listing(u8),
    /// A heartbeat, or the end of a listing: at the moment given first, no group after the second number existed. The
    /// proof is on its way, or waits until that group is applied.
    Pending(u8, u8),
    /// No group after `committed` existed at this moment, so default reads are answered.
    Valid(u8),
}

/// A strict read. The first number is the number of groups when the read arrived.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum StrictRead {
    /// The server has no strict read.
    #[default]
    None,
    /// A listing that was started before the read is running; the one that the read needs starts afterwards.
    WaitingForListing(u8),
    /// The listing that the read needs is running; the second number is the number of groups when the listing started.
    Listing(u8, u8),
    /// The read waits until the group of the second number is applied.
    WaitingForGroup(u8, u8),
}

impl Server {
    /// True if the server's put may become the log's next group.
    pub fn may_land(&self) -> bool {
        self.put.is_some_and(|put| put.effect == PutEffect::Pending)
    }
}
