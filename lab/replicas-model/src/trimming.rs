//! A model of one server while the log is trimmed: deleted names can be created again.
//!
//! The other servers are modelled by what happens in the bucket: the log grows, bases are uploaded, groups that the
//! second newest base includes are deleted ([`Step::Trim`]), and a process that does not know this creates a deleted
//! name again ([`Step::Recreate`]). The server must not take such an object, or its own put of that name, for the log's
//! group. The functions `concerns_first_object`, `learn_listing`, `gap`, `got` and `advance` of `machine/log.rs` decide
//! this.
//!
//! Time is modelled by what it rules out. Groups younger than `keep` are not trimmed. If a group after the server's
//! newest freshness proof was trimmed, the proof is older than the creation of that group, so it is older than an
//! eighth of `keep` from then on ([`ProofAge::Old`]). Proofs about groups that are not trimmed may have any age.
//!
//! Of the names up to the last trimmed one, the state contains only the server's next one, since no other is read.

use stateright::{Model, Property};

/// A model of one server and a bucket whose log is trimmed.
#[derive(Clone, Copy, Debug)]
pub struct Trimming {
    /// Number of groups at which the log is full.
    pub groups: u8,
    /// Mistake in the protocol; `None` for the correct protocol.
    pub planted: Option<Mistake>,
}

/// A mistake in the protocol that the properties must detect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// A put counts although the server's freshness proof is old.
    NoProof,
    /// A group that was read counts although the server's freshness proof is old.
    ReadWithoutProof,
    /// Groups are trimmed up to the newest base instead of the second newest.
    TrimsBelowNewest,
    /// Groups younger than `keep` are trimmed.
    TrimsTheYoung,
    /// A listing validates answers that arrived after the listing had started.
    ValidatedBefore,
    /// A listing is combined with bases that were listed before it started.
    OldBases,
}

/// A state of the bucket and the server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TrimmingState {
    /// Number of groups that were ever in the log.
    pub log: u8,
    /// Number of the last trimmed group.
    pub trimmed: u8,
    /// Number of the last group that the newest base includes.
    pub newest: u8,
    /// Number of the last group that the second newest base includes.
    pub second: u8,
    /// The object under the name of the server's next group, if that name was trimmed.
    pub recreated: Recreated,
    /// True if the log's group `committed + 1` was put by this process.
    pub mine: bool,
    /// Number of groups that the server has applied.
    pub committed: u8,
    /// Age of the server's newest freshness proof, which is about group `committed` or an earlier one.
    pub proof_age: ProofAge,
    /// The server's put of the next group.
    pub put: Put,
    /// The next group as it was read from the bucket, if another process wrote it.
    pub read: Option<Read>,
    /// The server's listing.
    pub listing: Listing,
    /// The first violation in this run, if any.
    pub broken: Option<Wrong>,
}

/// An object under a trimmed name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Recreated {
    /// The object does not exist.
    #[default]
    Nothing,
    /// Another process has created the object.
    Others,
    /// This process has created the object.
    Mine,
}

/// The age of a server's newest freshness proof.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ProofAge {
    /// The server has no freshness proof.
    #[default]
    None,
    /// Older than an eighth of `keep`.
    Old,
    /// At most an eighth of `keep`.
    Young,
}

/// An answer of the bucket about the server's next name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reply {
    /// True if the answer arrived within an eighth of `keep` after the newest freshness proof.
    pub in_time: bool,
    /// State of a listing that started after the answer.
    pub after: After,
}

/// State of a listing that started after an answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum After {
    /// No listing has started since the answer.
    None,
    /// The listing is running.
    Begun,
    /// The listing has returned, and found that no group after `committed` was ever trimmed.
    Validated,
}

/// State of the server's put.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Put {
    /// No put was sent.
    #[default]
    Idle,
    /// The put was sent or retried, and has not been answered.
    Sent,
    /// The name is taken, possibly by an earlier attempt.
    Taken,
    /// The object was created by this process. The answer that said so decides whether the object counts as the log's
    /// group.
    Unproven(Reply),
}

/// A group that was read from the bucket.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Read {
    /// True if the group is the log's.
    pub right: bool,
    /// The answer that contained the group.
    pub reply: Reply,
}

/// Progress of the server's listing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Listing {
    /// No listing is running.
    #[default]
    Idle,
    /// The listing started when the log had this many groups.
    Begun(u8),
    /// The listing has also read the log, when the second number was trimmed and the third was the newest group.
    Log(u8, u8, u8),
    /// The listing has also read the bases; the last number is that of the second newest base. It has not returned yet.
    Bases(u8, u8, u8, u8),
}

/// A violation of a property.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Wrong {
    /// The server applied a group that is not the log's.
    Content,
    /// A freshness proof names an older group than the newest one at its moment.
    Evidence,
}

/// A step of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A put of another server becomes the log's next group.
    Grow,
    /// A base that includes the groups up to this number is uploaded.
    Upload(u8),
    /// The oldest group is deleted, if the second newest base includes it and it is older than `keep`.
    Trim,
    /// The server's next name, which was trimmed, is created again by another process or by a delayed put.
    Recreate,
    /// The object that was created again is deleted by another trim.
    Delete,
    /// The server's freshness proof becomes older than an eighth of `keep`.
    Age,
    /// The server gets a freshness proof, from a heartbeat or from a put of its own.
    Evidence,
    /// Other servers confirm that the next group is in the log; its content is known.
    Confirmed,
    /// The server puts its next group.
    Put,
    /// The put takes effect: its object is created in the bucket.
    Land,
    /// The bucket answers that the put created the object.
    Created,
    /// The bucket answers that the name is taken.
    Exists,
    /// The server reads the next group.
    Read,
    /// The server applies the group that it read or put, if that counts as the log's.
    Apply,
    /// The server starts a listing.
    StartListing,
    /// The listing reads the names of groups.
    ReadLog,
    /// The listing reads the names of bases.
    ReadBases,
    /// The listing returns; true if it found the next name, which was trimmed and created again.
    Listed(bool),
    /// The listing fails.
    ListingFails,
    /// The server restarts with this many groups.
    Crash(u8),
}

/// Agreement: the server applies the log's groups only.
pub const RIGHT: &str = "a server lays the log's groups, although their names can be created again";
/// Freshness proofs are right.
pub const TRUE_EVIDENCE: &str = "no listing is taken for more than it says";

impl Model for Trimming {
    type State = TrimmingState;
    type Action = Step;

    fn init_states(&self) -> Vec<TrimmingState> {
        vec![TrimmingState::default()]
    }

    fn actions(&self, state: &TrimmingState, steps: &mut Vec<Step>) {
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
            Step::Apply,
            Step::StartListing,
            Step::ReadLog,
            Step::ReadBases,
            Step::Listed(false),
            Step::Listed(true),
            Step::ListingFails,
        ]);
        steps.extend((1..=state.log).map(Step::Upload));
        steps.extend((0..=state.committed).map(Step::Crash));
    }

    fn next_state(&self, state: &TrimmingState, step: Step) -> Option<TrimmingState> {
        let mut next = *state;
        match step {
            Step::Put | Step::Land | Step::Created | Step::Exists | Step::Read | Step::Apply => {
                self.of_groups(&mut next, step)?;
            }
            Step::StartListing
            | Step::ReadLog
            | Step::ReadBases
            | Step::Listed(_)
            | Step::ListingFails => {
                self.of_listings(&mut next, step)?;
            }
            _ => self.of_others(&mut next, step)?,
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(RIGHT, |_, s: &TrimmingState| {
                s.broken != Some(Wrong::Content)
            }),
            Property::always(TRUE_EVIDENCE, |_, s: &TrimmingState| {
                s.broken != Some(Wrong::Evidence)
            }),
            Property::sometimes(
                "the log is full, and trimmed but for its last group",
                |m: &Self, s: &TrimmingState| s.log == m.groups && s.trimmed + 1 == s.log,
            ),
            Property::sometimes(
                "the server has created a trimmed name again",
                |_, s: &TrimmingState| {
                    s.recreated == Recreated::Mine && matches!(s.put, Put::Unproven(_))
                },
            ),
            Property::sometimes(
                "the server has read a group that is not the log's",
                |_, s: &TrimmingState| s.read.is_some_and(|read| !read.right),
            ),
            Property::sometimes(
                "a put counts because a listing vouches for it",
                |_, s: &TrimmingState| matches!(s.put, Put::Unproven(r) if !r.in_time && r.after == After::Validated),
            ),
            Property::sometimes(
                "a base takes the server over trimmed groups",
                |_, s: &TrimmingState| {
                    s.proof_age == ProofAge::None && s.trimmed > 0 && s.committed == s.newest
                },
            ),
        ]
    }
}

impl TrimmingState {
    fn next(&self) -> u8 {
        self.committed + 1
    }

    /// The object of the next group: whether it is the log's group, and whether this process created it. `None` if
    /// there is no such object.
    fn object(&self) -> Option<(bool, bool)> {
        match (self.next() <= self.trimmed, self.recreated) {
            (true, Recreated::Nothing) => None,
            (true, Recreated::Others) => Some((false, false)),
            (true, Recreated::Mine) => Some((self.mine, true)),
            (false, _) => (self.next() <= self.log).then_some((true, self.mine)),
        }
    }

    /// An answer that arrives now.
    fn reply(&self) -> Reply {
        Reply {
            in_time: self.proof_age == ProofAge::Young,
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

    /// Gets a freshness proof about `committed`.
    fn note_proof(&mut self) {
        // If later groups are trimmed, the proof is from before their creation.
        if self.committed < self.trimmed {
            self.proof_age = ProofAge::Old;
            return;
        }
        self.proof_age = ProofAge::Young;
        for reply in self.replies() {
            reply.in_time = true;
        }
    }

    /// Applies the next group; `right` says that the group is the log's.
    fn apply(&mut self, right: bool) {
        if !right {
            self.broken = Some(Wrong::Content);
        }
        self.move_to(self.next());
    }

    fn move_to(&mut self, committed: u8) {
        self.committed = committed;
        (self.mine, self.recreated, self.put, self.read) =
            (false, Recreated::Nothing, Put::Idle, None);
    }
}

impl Trimming {
    fn is(&self, mistake: Mistake) -> bool {
        self.planted == Some(mistake)
    }

    fn of_others(&self, s: &mut TrimmingState, step: Step) -> Option<()> {
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
                let older = s.proof_age == ProofAge::Young && s.committed < s.trimmed;
                if older && !self.is(Mistake::TrimsTheYoung) {
                    s.proof_age = ProofAge::Old;
                }
            }
            Step::Recreate if s.next() <= s.trimmed && s.recreated == Recreated::Nothing => {
                s.recreated = Recreated::Others;
            }
            Step::Delete if s.recreated != Recreated::Nothing => s.recreated = Recreated::Nothing,
            Step::Age if s.proof_age == ProofAge::Young => s.proof_age = ProofAge::Old,
            Step::Evidence if s.committed >= s.trimmed && s.log > 0 => s.note_proof(),
            Step::Confirmed if s.next() <= s.log => s.apply(true),
            Step::Crash(number) => {
                s.move_to(number);
                (s.proof_age, s.listing) = (ProofAge::None, Listing::Idle);
            }
            _ => return None,
        }
        Some(())
    }

    fn of_groups(&self, s: &mut TrimmingState, step: Step) -> Option<()> {
        match (step, s.put) {
            (Step::Put, Put::Idle) => {
                if s.proof_age == ProofAge::None || s.committed >= self.groups {
                    return None;
                }
                s.put = Put::Sent;
            }
            (Step::Land, Put::Sent) => match s.object() {
                Some(_) => return None,
                None if s.next() <= s.trimmed => s.recreated = Recreated::Mine,
                None => (s.log, s.mine) = (s.next(), true),
            },
            (Step::Created, Put::Sent) => {
                // The object may have been deleted since then.
                let landed = s.mine || s.recreated == Recreated::Mine;
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
                // The object existed before, so the server's knowledge is out of date.
                None => s.proof_age = ProofAge::None,
            },
            (Step::Apply, put) => {
                let counts = |reply: Reply| reply.in_time || reply.after == After::Validated;
                if let Some(read) = s.read
                    && (counts(read.reply) || self.is(Mistake::ReadWithoutProof))
                {
                    s.apply(read.right);
                } else if let Put::Unproven(reply) = put
                    && (counts(reply) || self.is(Mistake::NoProof))
                {
                    s.apply(s.mine);
                } else {
                    return None;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn of_listings(&self, s: &mut TrimmingState, step: Step) -> Option<()> {
        match (step, s.listing) {
            (Step::StartListing, Listing::Idle) => {
                s.listing = Listing::Begun(s.log);
                for reply in s.replies() {
                    if reply.after == After::None {
                        reply.after = After::Begun;
                    }
                }
            }
            (Step::ReadLog, Listing::Begun(begun)) => {
                s.listing = Listing::Log(begun, s.trimmed, s.log);
            }
            (Step::ReadBases, Listing::Log(begun, trimmed, log)) => {
                s.listing = Listing::Bases(begun, trimmed, log, s.second);
            }
            (Step::ListingFails, Listing::Begun(_) | Listing::Log(..) | Listing::Bases(..)) => {
                s.listing = Listing::Idle;
                forget(s);
            }
            (Step::Listed(recreated), Listing::Bases(begun, trimmed, log, second)) => {
                let next = s.next();
                // Names that are certainly in the log need no choice.
                let seen = next > trimmed && next <= log;
                if recreated && next > trimmed {
                    return None;
                }
                s.listing = Listing::Idle;
                let stale = s.proof_age != ProofAge::Young;
                if stale {
                    let second = match self.is(Mistake::OldBases) {
                        true => 0,
                        false => second,
                    };
                    if second > s.committed {
                        s.move_to(s.newest);
                        s.proof_age = ProofAge::None;
                        return Some(());
                    }
                    let before = self.is(Mistake::ValidatedBefore);
                    for reply in s.replies() {
                        if reply.after == After::Begun || before {
                            reply.after = After::Validated;
                        }
                    }
                }
                forget(s);
                let last = match (log > trimmed, recreated) {
                    (true, _) => log,
                    (false, true) => next,
                    (false, false) => 0,
                };
                let tail = last.max(s.committed);
                let continues = seen || recreated;
                if tail > s.committed && !continues {
                    if !stale {
                        s.proof_age = ProofAge::None;
                    }
                    return Some(());
                }
                if tail < begun {
                    s.broken = Some(Wrong::Evidence);
                }
                if tail <= s.committed {
                    s.note_proof();
                }
            }
            _ => return None,
        }
        Some(())
    }
}

/// For answers that arrived before a listing that has now ended, forgets that listing.
fn forget(s: &mut TrimmingState) {
    for reply in s.replies() {
        if reply.after == After::Begun {
            reply.after = After::None;
        }
    }
}
