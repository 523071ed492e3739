//! One server while the log is trimmed: names that were deleted can be created again.
//!
//! The other servers are the log's own doing: it grows, bases are uploaded, groups that the second newest base has are
//! deleted ([`Step::Trim`]), and a process that knows less creates a deleted name again ([`Step::Recreate`]). The server
//! must not take such an object for the log's group, whether it is another's or its own put. What it goes by is in
//! `machine/log.rs`: `counts`, `learn_listing`, `gap`, `got`, `advance`.
//!
//! Time is told by what must have passed. Nothing is trimmed that is younger than `keep`. A server whose evidence is about
//! less than a trimmed group has it from before that group's creation, so it is older than an eighth of `keep` from then
//! on ([`Settled::Old`]). Evidence of groups that are not trimmed may be of any age.
//!
//! Of the names up to the last that was trimmed, the state has the next one only: no other is read.

use stateright::{Model, Property};

/// A model of one server and a bucket that is trimmed.
#[derive(Clone, Copy, Debug)]
pub struct Trimming {
    /// Number of groups with which the log is full.
    pub groups: u8,
    /// A mistake.
    pub planted: Option<Mistake>,
}

/// A mistake that must be found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// A put counts although its proof is old.
    NoProof,
    /// A group that was read counts although the proof is old.
    ReadWithoutProof,
    /// Trimming goes up to the newest base.
    TrimsBelowNewest,
    /// Trimming does not wait for `keep`.
    TrimsTheYoung,
    /// A listing vouches for answers that came after it was begun.
    VouchedBefore,
    /// A listing goes by bases that were listed before it was begun.
    OldBases,
}

/// A moment of the bucket and the server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Moment {
    /// Number of groups that were ever in the log.
    pub log: u8,
    /// The last group that was trimmed.
    pub trimmed: u8,
    /// The newest base.
    pub newest: u8,
    /// The second newest base.
    pub second: u8,
    /// The object under the name of the server's next group, if that name was trimmed.
    pub again: Again,
    /// True if the log's group after `committed` is this process's put.
    pub mine: bool,
    /// Groups that the server has laid.
    pub committed: u8,
    /// The server's latest evidence about `committed` or less.
    pub settled: Settled,
    /// Its put of the next group.
    pub put: Put,
    /// The next group as the bucket gave it, if it is not this process's.
    pub read: Option<Read>,
    /// Its listing.
    pub look: Look,
    /// The first thing that must not be.
    pub broken: Option<Wrong>,
}

/// An object under a name that was trimmed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Again {
    /// None.
    #[default]
    Nothing,
    /// One of another process's.
    Others,
    /// One that this process has put.
    Mine,
}

/// The age of a server's knowledge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Settled {
    /// No knowledge.
    #[default]
    None,
    /// More than an eighth of `keep`.
    Old,
    /// Less.
    Young,
}

/// An answer of the bucket about the next name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reply {
    /// True if it came within an eighth of `keep` after the latest evidence.
    pub in_time: bool,
    /// A listing that was begun after it.
    pub after: After,
}

/// A listing that was begun after an answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum After {
    /// None was.
    None,
    /// One is on its way.
    Begun,
    /// One has returned, and found that nothing after `committed` was ever trimmed.
    Vouched,
}

/// The server's put.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Put {
    /// None.
    #[default]
    Idle,
    /// Sent, with no answer yet, or sent again.
    Sent,
    /// The name is taken, possibly by itself.
    Taken,
    /// The object is this process's; whether it is the log's group depends on the answer that said so.
    Unproven(Reply),
}

/// A group that was read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Read {
    /// True if it is the log's.
    pub right: bool,
    /// The answer that brought it.
    pub reply: Reply,
}

/// The server's listing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Look {
    /// None.
    #[default]
    Idle,
    /// Begun when there were this many groups.
    Begun(u8),
    /// The log was read as well, when the second number was trimmed, up to the third.
    Log(u8, u8, u8),
    /// The bases were read as well: the last number is the second newest. The answer is on its way.
    Bases(u8, u8, u8, u8),
}

/// Something that must not be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Wrong {
    /// The server laid a group that is not the log's.
    Content,
    /// Evidence names a lower number than there were groups at its moment.
    Evidence,
}

/// A step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Another server's put becomes the log's next group.
    Grow,
    /// A base of this number is uploaded.
    Upload(u8),
    /// The next group is deleted that the second newest base has, and that is older than `keep`.
    Trim,
    /// A name that was trimmed is created again by another process, or late.
    Recreate,
    /// The same object is deleted by another trim.
    Delete,
    /// An eighth of `keep` passes.
    Age,
    /// A beat, or a put of this server's, is evidence.
    Evidence,
    /// Other servers say of the next group that it is in the log, and its content is known.
    Confirmed,
    /// The server puts its next group.
    Put,
    /// The put lands.
    Land,
    /// The answer that it created the object.
    Created,
    /// The answer that the name is taken.
    Exists,
    /// The next group is read.
    Read,
    /// The group that was read or put is laid, if it counts.
    Lay,
    /// A listing is begun.
    Look,
    /// The listing reads the log.
    ReadLog,
    /// The listing reads the bases.
    ReadBases,
    /// The listing returns; true if it saw the next name where that was trimmed and created again.
    Listed(bool),
    /// The listing fails.
    LookFails,
    /// The server starts again with this many groups.
    Crash(u8),
}

/// Nothing but the log's groups is laid.
pub const RIGHT: &str = "a server lays the log's groups, although their names can be created again";
/// Evidence is true.
pub const TRUE_EVIDENCE: &str = "no listing is taken for more than it says";

impl Model for Trimming {
    type State = Moment;
    type Action = Step;

    fn init_states(&self) -> Vec<Moment> {
        vec![Moment::default()]
    }

    fn actions(&self, state: &Moment, steps: &mut Vec<Step>) {
        if state.broken.is_some() {
            return;
        }
        steps.extend([
            Step::Grow,
            Step::Trim,
            Step::Recreate,
            Step::Delete,
            Step::Age,
            Step::Evidence,
            Step::Confirmed,
            Step::Put,
            Step::Land,
            Step::Created,
            Step::Exists,
            Step::Read,
            Step::Lay,
            Step::Look,
            Step::ReadLog,
            Step::ReadBases,
            Step::Listed(false),
            Step::Listed(true),
            Step::LookFails,
        ]);
        steps.extend((1..=state.log).map(Step::Upload));
        steps.extend((0..=state.committed).map(Step::Crash));
    }

    fn next_state(&self, state: &Moment, step: Step) -> Option<Moment> {
        let mut next = *state;
        match step {
            Step::Put | Step::Land | Step::Created | Step::Exists | Step::Read | Step::Lay => {
                self.of_groups(&mut next, step)?;
            }
            Step::Look | Step::ReadLog | Step::ReadBases | Step::Listed(_) | Step::LookFails => {
                self.of_listings(&mut next, step)?;
            }
            _ => self.of_others(&mut next, step)?,
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(RIGHT, |_, s: &Moment| s.broken != Some(Wrong::Content)),
            Property::always(TRUE_EVIDENCE, |_, s: &Moment| {
                s.broken != Some(Wrong::Evidence)
            }),
            Property::sometimes(
                "the log is full, and trimmed but for its last group",
                |m: &Self, s: &Moment| s.log == m.groups && s.trimmed + 1 == s.log,
            ),
            Property::sometimes(
                "the server has created a trimmed name again",
                |_, s: &Moment| s.again == Again::Mine && matches!(s.put, Put::Unproven(_)),
            ),
            Property::sometimes(
                "the server has read a group that is not the log's",
                |_, s: &Moment| s.read.is_some_and(|read| !read.right),
            ),
            Property::sometimes(
                "a put counts because a listing vouches for it",
                |_, s: &Moment| matches!(s.put, Put::Unproven(r) if !r.in_time && r.after == After::Vouched),
            ),
            Property::sometimes(
                "a base takes the server over trimmed groups",
                |_, s: &Moment| {
                    s.settled == Settled::None && s.trimmed > 0 && s.committed == s.newest
                },
            ),
        ]
    }
}

impl Moment {
    fn next(&self) -> u8 {
        self.committed + 1
    }

    /// The next group's object: true if it is the log's, and if it is this process's.
    fn object(&self) -> Option<(bool, bool)> {
        match (self.next() <= self.trimmed, self.again) {
            (true, Again::Nothing) => None,
            (true, Again::Others) => Some((false, false)),
            (true, Again::Mine) => Some((self.mine, true)),
            (false, _) => (self.next() <= self.log).then_some((true, self.mine)),
        }
    }

    /// An answer that comes now.
    fn reply(&self) -> Reply {
        Reply {
            in_time: self.settled == Settled::Young,
            after: After::None,
        }
    }

    fn replies(&mut self) -> impl Iterator<Item = &mut Reply> {
        let put = match &mut self.put {
            Put::Unproven(reply) => Some(reply),
            _ => None,
        };
        put.into_iter()
            .chain(self.read.as_mut().map(|read| &mut read.reply))
    }

    /// Takes evidence about `committed`.
    fn settle(&mut self) {
        // Where later groups are trimmed, it is from before their creation.
        if self.committed < self.trimmed {
            self.settled = Settled::Old;
            return;
        }
        self.settled = Settled::Young;
        for reply in self.replies() {
            reply.in_time = true;
        }
    }

    /// Has the next group laid; true if it is the log's.
    fn lay(&mut self, right: bool) {
        if !right {
            self.broken = Some(Wrong::Content);
        }
        self.move_to(self.next());
    }

    fn move_to(&mut self, committed: u8) {
        self.committed = committed;
        (self.mine, self.again, self.put, self.read) = (false, Again::Nothing, Put::Idle, None);
    }
}

impl Trimming {
    fn is(&self, mistake: Mistake) -> bool {
        self.planted == Some(mistake)
    }

    fn of_others(&self, s: &mut Moment, step: Step) -> Option<()> {
        match step {
            Step::Grow if s.log < self.groups => s.log += 1,
            Step::Upload(number) if number > s.newest => {
                (s.second, s.newest) = (s.newest, number);
            }
            Step::Upload(number) if number > s.second && number < s.newest => s.second = number,
            Step::Trim => {
                let most = match self.is(Mistake::TrimsBelowNewest) {
                    true => s.newest,
                    false => s.second,
                };
                if s.trimmed >= most {
                    return None;
                }
                s.trimmed += 1;
                let older = s.settled == Settled::Young && s.committed < s.trimmed;
                if older && !self.is(Mistake::TrimsTheYoung) {
                    s.settled = Settled::Old;
                }
            }
            Step::Recreate if s.next() <= s.trimmed && s.again == Again::Nothing => {
                s.again = Again::Others;
            }
            Step::Delete if s.again != Again::Nothing => s.again = Again::Nothing,
            Step::Age if s.settled == Settled::Young => s.settled = Settled::Old,
            Step::Evidence if s.committed >= s.trimmed && s.log > 0 => s.settle(),
            Step::Confirmed if s.next() <= s.log => s.lay(true),
            Step::Crash(number) => {
                s.move_to(number);
                (s.settled, s.look) = (Settled::None, Look::Idle);
            }
            _ => return None,
        }
        Some(())
    }

    fn of_groups(&self, s: &mut Moment, step: Step) -> Option<()> {
        match (step, s.put) {
            (Step::Put, Put::Idle) => {
                if s.settled == Settled::None || s.committed >= self.groups {
                    return None;
                }
                s.put = Put::Sent;
            }
            (Step::Land, Put::Sent) => match s.object() {
                Some(_) => return None,
                None if s.next() <= s.trimmed => s.again = Again::Mine,
                None => (s.log, s.mine) = (s.next(), true),
            },
            (Step::Created, Put::Sent) => {
                // The object may have been deleted since.
                let landed = s.mine || s.again == Again::Mine;
                if !landed {
                    return None;
                }
                s.put = Put::Unproven(s.reply());
            }
            (Step::Exists, Put::Sent) => {
                s.object()?;
                s.put = Put::Taken;
            }
            (Step::Read, put) => match s.object() {
                Some((_, true)) if matches!(put, Put::Sent | Put::Taken) => {
                    s.put = Put::Unproven(s.reply());
                }
                Some((_, true)) => return None,
                Some((right, false)) if s.read.is_none() => {
                    let reply = s.reply();
                    s.read = Some(Read { right, reply });
                }
                Some(_) => return None,
                // It was there once.
                None => s.settled = Settled::None,
            },
            (Step::Lay, put) => {
                let counts = |reply: Reply| reply.in_time || reply.after == After::Vouched;
                if let Some(read) = s.read
                    && (counts(read.reply) || self.is(Mistake::ReadWithoutProof))
                {
                    s.lay(read.right);
                } else if let Put::Unproven(reply) = put
                    && (counts(reply) || self.is(Mistake::NoProof))
                {
                    s.lay(s.mine);
                } else {
                    return None;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn of_listings(&self, s: &mut Moment, step: Step) -> Option<()> {
        match (step, s.look) {
            (Step::Look, Look::Idle) => {
                s.look = Look::Begun(s.log);
                for reply in s.replies() {
                    if reply.after == After::None {
                        reply.after = After::Begun;
                    }
                }
            }
            (Step::ReadLog, Look::Begun(begun)) => {
                s.look = Look::Log(begun, s.trimmed, s.log);
            }
            (Step::ReadBases, Look::Log(begun, trimmed, log)) => {
                s.look = Look::Bases(begun, trimmed, log, s.second);
            }
            (Step::LookFails, Look::Begun(_) | Look::Log(..) | Look::Bases(..)) => {
                s.look = Look::Idle;
                forget(s);
            }
            (Step::Listed(again), Look::Bases(begun, trimmed, log, second)) => {
                let next = s.next();
                // Names that were there without a doubt need no choice.
                let seen = next > trimmed && next <= log;
                if again && next > trimmed {
                    return None;
                }
                s.look = Look::Idle;
                let stale = s.settled != Settled::Young;
                if stale {
                    let second = match self.is(Mistake::OldBases) {
                        true => 0,
                        false => second,
                    };
                    if second > s.committed {
                        s.move_to(s.newest);
                        s.settled = Settled::None;
                        return Some(());
                    }
                    let before = self.is(Mistake::VouchedBefore);
                    for reply in s.replies() {
                        if reply.after == After::Begun || before {
                            reply.after = After::Vouched;
                        }
                    }
                }
                forget(s);
                let last = match (log > trimmed, again) {
                    (true, _) => log,
                    (false, true) => next,
                    (false, false) => 0,
                };
                let tail = last.max(s.committed);
                let continues = seen || again;
                if tail > s.committed && !continues {
                    if !stale {
                        s.settled = Settled::None;
                    }
                    return Some(());
                }
                if tail < begun {
                    s.broken = Some(Wrong::Evidence);
                }
                if tail <= s.committed {
                    s.settle();
                }
            }
            _ => return None,
        }
        Some(())
    }
}

/// Forgets which answers came before a listing that is over.
fn forget(s: &mut Moment) {
    for reply in s.replies() {
        if reply.after == After::Begun {
            reply.after = After::None;
        }
    }
}
