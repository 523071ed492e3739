//! The state.

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

/// The answer to a client.
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
    /// True if it has heard of the watched update's group or of a later one.
    pub heard: bool,
    /// True if it knows the watched update as done.
    pub knows: bool,
    /// Its group `committed + 1`, of which it does not know whether it is in the log.
    pub put: Option<Put>,
    /// True if the watched update was evaluated on top of `put`.
    pub next: bool,
    /// True if a client waits here for the watched update, which this server has committed: it tells the others.
    pub tells: bool,
    /// True if this process has told the server that tells that it heard.
    pub said: bool,
    /// True if default reads here are watched: they must see the watched update.
    pub owes: bool,
    /// The watched evidence, if it is here.
    pub evidence: Evidence,
    /// The watched strict read, if it is here.
    pub strict: Strict,
}

/// A put.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Put {
    /// Its fate.
    pub fate: Fate,
    /// Its fate as far as the server knows.
    pub outcome: Outcome,
    /// True if it has the watched update.
    pub watched: bool,
    /// True if it was evaluated before another's group was laid. Only by a planted mistake.
    pub stale: bool,
}

/// The fate of a put.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fate {
    /// On its way: it may land at any time, whatever the server is told.
    Flying,
    /// Done: the log's group is this one.
    Landed,
    /// Another's group has the name.
    Lost,
}

/// The fate of a put as its server knows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Outcome {
    /// Nothing yet: an attempt was sent.
    Sent,
    /// Nothing, and no answer will come: it is to be sent again.
    Unknown,
    /// The name is taken, possibly by itself: the object is being read.
    Taken,
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
    /// True if its put may become the log's next group.
    pub fn may_land(&self) -> bool {
        self.put.is_some_and(|put| put.fate == Fate::Flying)
    }
}
