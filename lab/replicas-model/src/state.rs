//! What a state is.

/// Number of servers.
pub const SERVERS: usize = 3;

/// A moment of everything. Servers are in ascending order, since they have no names: states that differ only by which is
/// which are one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct State {
    /// Number of groups in the log.
    pub log: u8,
    /// The group that has the watched update; 0 if there is none.
    pub watched: u8,
    /// Puts of dead processes that may land as the next group.
    pub late: Late,
    /// The answer to the client of the watched update.
    pub answer: Answer,
    /// The first thing that must not be, if any.
    pub broken: Option<Broken>,
    /// The servers.
    pub servers: [Server; SERVERS],
}

/// Puts of dead processes, which differ in whether they have the watched update.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Late {
    /// One without it.
    pub other: bool,
    /// One with it.
    pub watched: bool,
}

/// What a client was told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Answer {
    /// Nothing, or "unknown".
    #[default]
    None,
    /// Done.
    Done,
    /// Not done.
    Refused,
}

/// Something that must not be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Broken {
    /// The watched update is in a second group.
    Twice,
    /// A server laid a group that is not the log's of that number.
    Content,
    /// A group was evaluated on something else than the group before it.
    OtherBase,
    /// A strict read saw less than the log had when it was asked.
    StrictIsOld,
}

/// A server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Server {
    /// Groups that are laid and published.
    pub committed: u8,
    /// The newest group that it heard of.
    pub heard: u8,
    /// True if it knows the watched update as done.
    pub knows: bool,
    /// Its group `committed + 1`, which is on its way into the log.
    pub put: Option<Put>,
    /// True if the watched update was evaluated on top of `put`.
    pub next: bool,
    /// True if its client waits for the watched update, which this server has committed: it tells the others.
    pub tells: bool,
    /// True if this process told the server that tells that it has heard of the watched update.
    pub said: bool,
    /// True if the watched update was acknowledged by this process, by way of it, or because it had said that it heard:
    /// default reads here must see it.
    pub owes: bool,
    /// Watched evidence.
    pub evidence: Evidence,
    /// The watched strict read, if it is here.
    pub strict: Strict,
}

/// A put.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Put {
    /// True if it has the watched update.
    pub watched: bool,
    /// True if it has landed: it is the log's group. Nobody has told the server yet.
    pub landed: bool,
    /// What the server knows.
    pub outcome: Outcome,
    /// True if it was evaluated before another's group was laid. Only by a planted mistake.
    pub stale: bool,
}

/// What a server knows of its put.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Outcome {
    /// An attempt was sent. Once it has heard of the group, the name is taken and the object is being read.
    #[default]
    Sent,
    /// Nobody knows: it is repeated.
    Unknown,
}

/// Evidence: at a moment no later group existed than a certain one. A moment is told by the number of groups there were.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Evidence {
    /// None that is watched.
    #[default]
    None,
    /// A listing is on its way that was begun at this moment.
    Looking(u8),
    /// A listing's tail or a beat: at this moment, nothing after the second number. On its way, or waits for that group.
    Waiting(u8, u8),
    /// Nothing after `committed` or an earlier number existed at this moment: default reads are answered.
    Settled(u8),
}

/// A strict read. The first number is that of the groups there were when it was asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Strict {
    /// None here.
    #[default]
    None,
    /// A listing that was begun earlier is on its way; the one that counts comes after it.
    Queued(u8),
    /// The listing that counts was begun when there were as many groups as the second number says.
    Looking(u8, u8),
    /// Waits for the group of the second number.
    Found(u8, u8),
}

impl Server {
    /// True if its group may still land in this log.
    pub fn may_land(&self, log: u8) -> bool {
        self.committed == log && self.put.is_some_and(|put| !put.landed)
    }

    /// Hears of a group.
    pub fn hear(&mut self, number: u8) {
        self.heard = self.heard.max(number);
    }
}
