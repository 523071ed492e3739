//! Models, their mistakes and steps.

use crate::properties;
use crate::state::{Evidence, SERVERS, Server, State, Strict};
use stateright::{Model, Property};

/// A model of servers.
#[derive(Clone, Copy, Debug)]
pub struct Replicas {
    /// Number of groups with which the log is full.
    pub groups: u8,
    /// The observer.
    pub watch: Watch,
    /// A mistake.
    pub planted: Option<Planted>,
}

/// An observer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watch {
    /// An update, its repetitions, its acknowledgement, and default reads at servers that heard of it.
    Update,
    /// Evidence and the default reads that it allows.
    Evidence,
    /// A strict read.
    Strict,
}

/// A mistake that must be found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Planted {
    /// After a put of unknown outcome, the group is put under the next number.
    NextNumberAfterUnknown,
    /// A put of unknown outcome is told as "not done".
    UnknownIsNotDone,
    /// An acknowledgement does not wait for the servers that count.
    AnsweredUnheard,
    /// A strict read takes a listing that was begun before it was asked.
    StrictLooksBefore,
    /// A name that is taken is taken for this server's own put.
    ExistsIsOurs,
    /// A server publishes what another one proposed.
    ProposedIsRead,
    /// Requests in others' groups are not remembered.
    KeysForgotten,
    /// A server that starts again has its groups, but not the requests in them.
    KeysForgottenByCrash,
    /// A server that loses a name puts the same group under the next one.
    NotEvaluatedAgain,
    /// Default reads do not wait for what was heard of.
    HeardIsApplied,
    /// A beat counts as of its arrival.
    BeatsAreFresh,
    /// A listing counts as of its end.
    ListingsAreFresh,
    /// An evaluation that fails on one server only (its memory, its time) is told as "not done".
    RefusedHere,
}

/// A step. Servers are named by their places in the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// A put lands in the bucket.
    Land(usize),
    /// A put of a dead process lands; true if it has the watched update.
    LandLate(bool),
    /// A server evaluates an update at its head, puts it, and proposes it to the others; true for the watched one. The
    /// machine's `route`, `evaluate_next`, `put_pending`.
    Evaluate(usize, bool),
    /// An evaluation of the watched update on top of the server's own put. (Another update there is as if it came
    /// afterwards.)
    EvaluateNext(usize),
    /// The bucket's answer is that this attempt created the object: `PutResult::Created`.
    Created(usize),
    /// The answer to a put is lost, an error or 409: `PutResult::Unknown`.
    Unknown(usize),
    /// A put of unknown outcome is sent again, same name and bytes: `scan_put`.
    Repeat(usize),
    /// The name is taken, by itself or by another: `PutResult::Exists`. The object is read ([`Action::Lay`]).
    Exists(usize),
    /// The log's next group is laid: read from the bucket, or proposed by its author and confirmed by any server. Where
    /// it is not its own, its put is void, and what was on it is to be evaluated again: `advance`, `commit`, `fall_back`.
    Lay(usize),
    /// A server hears of the watched update's group or a later one: by *committed*, a beat, an outcome, a listing. `hear`.
    Hear(usize),
    /// A server dies and starts with this many of its groups: `opened`.
    Crash(usize, u8),
    /// A server knows the watched update as done, a client waits there, and the others are told: `tell_committed`.
    Tell(usize),
    /// Its *heard*, or a beat that says so, comes to the server that tells.
    Say(usize),
    /// The watched update is acknowledged. All servers that are counted have said that they heard (`answer_heard`); which
    /// are counted is free, so what is required of those that are not is nothing. Reads of one server are watched from
    /// then on: of one that was counted, or of the one that acknowledges.
    Answer(usize),
    /// The same, and the answer goes by way of this server, which forwarded the update: `outcome`.
    AnswerBy(usize),
    /// The watched update fails, for reasons of this server's alone.
    Refuse(usize),
    /// A listing is begun: `want_look`.
    Look(usize),
    /// A listing returns, with any tail between what there was at its beginning and what there is: `learn_listing`.
    Listed(usize, u8),
    /// A beat of the first server, sent now, is on its way to the second: `beat`, `beaten`.
    Beat(usize, usize),
    /// Evidence has come, and the groups that it speaks of are laid: `settle`.
    Settle(usize),
    /// A strict read is asked; true if a listing is on its way that was begun before it.
    Ask(usize, bool),
    /// Return of that listing, and the beginning of the next one.
    LookAgain(usize),
    /// The strict read's listing returns: `looked`.
    Looked(usize, u8),
    /// The strict read is answered: `serve`.
    Serve(usize),
    /// With a planted mistake, the first server publishes what the second one proposed.
    Publish(usize, usize),
}

impl Model for Replicas {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend([false, true].map(Action::LandLate));
        for at in 0..SERVERS {
            let server = &state.servers[at];
            match server.put {
                None => actions.extend([false, true].map(|watched| Action::Evaluate(at, watched))),
                Some(_) => actions.extend([
                    Action::Land(at),
                    Action::EvaluateNext(at),
                    Action::Created(at),
                    Action::Unknown(at),
                    Action::Repeat(at),
                    Action::Exists(at),
                ]),
            }
            actions.extend([Action::Lay(at), Action::Hear(at)]);
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
    match state.servers[at].evidence {
        Evidence::None => actions.push(Action::Look(at)),
        Evidence::Looking(begun) => {
            actions.extend((begun..=state.log).map(|tail| Action::Listed(at, tail)));
        }
        Evidence::Waiting(..) => actions.push(Action::Settle(at)),
        Evidence::Settled(_) => actions.extend((0..SERVERS).map(|to| Action::Beat(at, to))),
    }
}

fn strict_actions(state: &State, at: usize, actions: &mut Vec<Action>) {
    match state.servers[at].strict {
        Strict::None => actions.extend([false, true].map(|queued| Action::Ask(at, queued))),
        Strict::Queued(_) => actions.push(Action::LookAgain(at)),
        Strict::Looking(_, begun) => {
            actions.extend((begun..=state.log).map(|tail| Action::Looked(at, tail)));
        }
        Strict::Found(..) => actions.push(Action::Serve(at)),
    }
}

impl Replicas {
    pub(crate) fn is(&self, planted: Planted) -> bool {
        self.planted == Some(planted)
    }

    fn update_actions(&self, at: usize, actions: &mut Vec<Action>) {
        actions.extend([Action::Tell(at), Action::Say(at)]);
        if self.is(Planted::RefusedHere) {
            actions.push(Action::Refuse(at));
        }
        actions.extend([Action::Answer(at), Action::AnswerBy(at)]);
    }

    /// True if a default read that is asked now sees the watched update: it waits for what was heard of.
    pub(crate) fn default_read_sees(&self, server: &Server, watched: u8) -> bool {
        match self.is(Planted::HeardIsApplied) {
            true => watched <= server.committed,
            false => server.heard,
        }
    }

    /// True if the server may evaluate the watched update.
    pub(crate) fn is_new(&self, server: &Server) -> bool {
        let ahead = server.next || server.put.is_some_and(|put| put.watched);
        self.watch == Watch::Update && !server.knows && !ahead
    }
}
