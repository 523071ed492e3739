//! The model: its options, its actions, and the mistakes that can be planted in it.

use crate::properties;
use crate::state::{Proof, SERVERS, Server, State, StrictRead};
use stateright::{Model, Property};

/// A model of three servers that share a log.
#[derive(Clone, Copy, Debug)]
pub struct Replicas {
    /// Number of groups at which the log is full.
    pub groups: u8,
    /// Part of the state that is observed.
    pub watch: Watch,
    /// Mistake in the protocol; `None` for the correct protocol.
    pub planted: Option<Planted>,
}

/// Part of the state that a run of the model observes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watch {
    /// One update: its retries, its acknowledgement, and default reads at servers that know of it.
    Update,
    /// One freshness proof, and the default reads that it allows.
    Evidence,
    /// One strict read.
    Strict,
}

/// A mistake in the protocol that the properties must detect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Planted {
    /// After a put of unknown outcome, the server puts the same group under the next number.
    NextNumberAfterUnknown,
    /// The client of an update whose put has an unknown outcome is told "not done".
    UnknownIsNotDone,
    /// An update is acknowledged before the counted servers have confirmed that they know of it.
    AcknowledgedUnconfirmed,
    /// A strict read uses a listing that was started before the read arrived.
    StrictUsesEarlierListing,
    /// A server whose put finds the name taken assumes that the object is its own.
    ExistsIsOurs,
    /// A server publishes a group that another server only proposed.
    ProposedIsRead,
    /// A server does not remember the requests in groups of other servers.
    RequestsForgotten,
    /// A server that restarts has its groups, but has forgotten the requests in them.
    RequestsForgottenByCrash,
    /// A server that loses a number puts the same group under the next number, without evaluating it again.
    NotEvaluatedAgain,
    /// Default reads do not wait for groups that the server knows of but has not applied.
    ReadsIgnoreKnownGroups,
    /// A heartbeat counts as a freshness proof of the time at which it arrives, not at which it was sent.
    HeartbeatFreshOnArrival,
    /// A listing counts as a freshness proof of the time at which it ends, not at which it started.
    ListingsAreFresh,
    /// The client is told "not done" if an evaluation fails for reasons of one server, such as its memory or a time
    /// limit.
    RefusedHere,
}

/// A step of the model. Servers are given by their index in the state; backticked names are the machine's functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// A pending put takes effect: its object is created in the bucket.
    PutTakesEffect(usize),
    /// A pending put of a dead process takes effect; true if the put contains the watched update.
    LatePutTakesEffect(bool),
    /// A server evaluates an update on its newest state, puts the group, and proposes it to the others; true for the
    /// watched update. `route`, `evaluate_next`, `put_pending`.
    Evaluate(usize, bool),
    /// A server evaluates the watched update on top of its own pending put. (Evaluating any other update there is the
    /// same as evaluating it later.)
    EvaluateNext(usize),
    /// The bucket answers that this attempt created the object: `PutResult::Created`.
    Created(usize),
    /// The outcome of a put is unknown, since the answer is lost, an error or status 409: `PutResult::Unknown`.
    Unknown(usize),
    /// A put of unknown outcome is retried with the same name and bytes: `scan_put`.
    Repeat(usize),
    /// The bucket answers that the name is taken, by an earlier attempt or by another server: `PutResult::Exists`. The
    /// server then reads the object ([`Action::Apply`]).
    Exists(usize),
    /// A server applies the log's next group, which it read from the bucket, or which its writer proposed and any
    /// server confirmed. If the group is of another server, the put of this one is void, and updates evaluated on top
    /// of that put are to be evaluated again: `advance`, `commit`, `roll_back`.
    Apply(usize),
    /// A server learns that the watched update's group, or a later one, exists: by a message *committed*, a heartbeat,
    /// an outcome or a listing. `note_exists`.
    Learn(usize),
    /// A server dies and restarts with this many of its groups: `opened`.
    Crash(usize, u8),
    /// A server that has committed the watched update, and has a client that waits for it, tells the other servers:
    /// `tell_committed`.
    StartAcknowledging(usize),
    /// A server's confirmation that it knows of the update, or a heartbeat that says so, reaches the acknowledging
    /// server.
    Confirm(usize),
    /// The watched update is acknowledged. All counted servers have confirmed that they know of it; the model may
    /// choose the counted servers freely, and requires nothing of the others. From then on, reads of this server are
    /// watched: one that was counted, or the one that acknowledges. `acknowledge`.
    Answer(usize),
    /// As [`Action::Answer`], but the answer is sent through this server, which had forwarded the update: `outcome`.
    AnswerBy(usize),
    /// The watched update fails for reasons of this server alone.
    Refuse(usize),
    /// A server starts a listing: `request_listing`.
    StartListing(usize),
    /// A listing returns. The newest group that it found is any of those between the newest at its start and the newest
    /// now: `learn_listing`.
    Listed(usize, u8),
    /// The first server sends a heartbeat to the second: `beat`, `beaten`.
    Beat(usize, usize),
    /// A server has received a freshness proof and applied the groups that the proof names: `use_proofs`.
    UseProof(usize),
    /// A strict read arrives; true if a listing that was started earlier is still running.
    StrictRead(usize, bool),
    /// The earlier listing returns, and the server starts the one that the strict read needs.
    StartStrictListing(usize),
    /// The strict read's listing returns, with this newest group: `listing_succeeded`.
    StrictListed(usize, u8),
    /// The strict read is answered: `serve`.
    Serve(usize),
    /// With the planted mistake [`Planted::ProposedIsRead`], the first server publishes the group that the second
    /// proposed.
    Publish(usize, usize),
}

impl Model for Replicas {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend([false, true].map(Action::LatePutTakesEffect));
        for at in 0..SERVERS {
            let server = &state.servers[at];
            match server.put {
                None => actions.extend([false, true].map(|watched| Action::Evaluate(at, watched))),
                Some(_) => actions.extend([
                    Action::PutTakesEffect(at),
                    Action::EvaluateNext(at),
                    Action::Created(at),
                    Action::Unknown(at),
                    Action::Repeat(at),
                    Action::Exists(at),
                ]),
            }
            actions.extend([Action::Apply(at), Action::Learn(at)]);
            actions.extend((0..=server.committed).map(|number| Action::Crash(at, number)));
            match self.watch {
                Watch::Update => self.update_actions(at, actions),
                Watch::Evidence => evidence_actions(state, at, actions),
                Watch::Strict => strict_actions(state, at, actions),
            }
            if self.is(Planted::ProposedIsRead) {
                actions.extend((0..SERVERS).map(|author| Action::Publish(at, author)));
            }
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = *state;
        self.step(&mut next, action)?;
        next.servers.sort_unstable();
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::of(self)
    }
}

fn evidence_actions(state: &State, at: usize, actions: &mut Vec<Action>) {
    match state.servers[at].proof {
        Proof::None => actions.push(Action::StartListing(at)),
        Proof::Listing(begun) => {
            actions.extend((begun..=state.log).map(|tail| Action::Listed(at, tail)));
        }
        Proof::Pending(..) => actions.push(Action::UseProof(at)),
        Proof::Valid(_) => actions.extend((0..SERVERS).map(|to| Action::Beat(at, to))),
    }
}

fn strict_actions(state: &State, at: usize, actions: &mut Vec<Action>) {
    match state.servers[at].strict {
        StrictRead::None => {
            actions.extend([false, true].map(|queued| Action::StrictRead(at, queued)))
        }
        StrictRead::WaitingForListing(_) => actions.push(Action::StartStrictListing(at)),
        StrictRead::Listing(_, begun) => {
            actions.extend((begun..=state.log).map(|tail| Action::StrictListed(at, tail)));
        }
        StrictRead::WaitingForGroup(..) => actions.push(Action::Serve(at)),
    }
}

impl Replicas {
    pub(crate) fn is(&self, planted: Planted) -> bool {
        self.planted == Some(planted)
    }

    fn update_actions(&self, at: usize, actions: &mut Vec<Action>) {
        actions.extend([Action::StartAcknowledging(at), Action::Confirm(at)]);
        if self.is(Planted::RefusedHere) {
            actions.push(Action::Refuse(at));
        }
        actions.extend([Action::Answer(at), Action::AnswerBy(at)]);
    }

    /// True if a default read that arrives now sees the watched update: the read waits for all groups of which the
    /// server knows.
    pub(crate) fn default_read_sees(&self, server: &Server, watched: u8) -> bool {
        match self.is(Planted::ReadsIgnoreKnownGroups) {
            true => watched <= server.committed,
            false => server.knows_of_group,
        }
    }

    /// True if the server may evaluate the watched update.
    pub(crate) fn is_new(&self, server: &Server) -> bool {
        let ahead = server.next || server.put.is_some_and(|put| put.watched);
        self.watch == Watch::Update && !server.remembers_update && !ahead
    }
}
