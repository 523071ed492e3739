//! Steps and properties.

use crate::state::{
    Answer, Broken, Evidence, Fate, Late, Outcome, Put, SERVERS, Server, State, Strict,
};
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
    /// That listing has returned, and the next one is begun.
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
        let mut properties = vec![
            Property::always(ONE_CONTENT, |_, state: &State| {
                let laid = state.servers.iter().all(|s| s.committed <= state.log);
                laid && state.broken != Some(Broken::Content)
            }),
            Property::always(IN_ORDER, |_, state: &State| {
                state.broken != Some(Broken::OtherBase)
            }),
            Property::sometimes("the log is full", |model: &Self, state: &State| {
                state.log == model.groups
            }),
            Property::sometimes("two servers race for a number", |_, state: &State| {
                racing(state).count() >= 2
            }),
            Property::sometimes("three servers race for a number", |_, state: &State| {
                racing(state).count() == SERVERS
            }),
            Property::sometimes("a put of unknown outcome has landed", |_, state: &State| {
                let unknown = |p: Put| p.fate == Fate::Landed && p.outcome == Outcome::Unknown;
                state.servers.iter().any(|s| s.put.is_some_and(unknown))
            }),
            Property::sometimes(
                "a server takes over while the put of one that died is on its way",
                |_, state: &State| {
                    state.log > 0 && state.late.other && racing(state).next().is_some()
                },
            ),
        ];
        match self.watch {
            Watch::Update => properties.extend([
                Property::always(ONCE, |_, state: &State| {
                    state.broken != Some(Broken::Twice)
                }),
                Property::always(NOT_LOST, |_, state: &State| {
                    state.answer != Answer::Done || state.watched != 0
                }),
                Property::always(NOT_DONE, |_, state: &State| {
                    state.answer != Answer::Refused || state.watched == 0
                }),
                Property::always(SEEN, |model: &Self, state: &State| {
                    (state.servers.iter()).all(|s| !s.owes || model.default_read_sees(s, state.watched))
                }),
                Property::sometimes(
                    "two servers put the same update at the same time",
                    |_, state: &State| {
                        let watched = |s: &&Server| s.put.is_some_and(|put| put.watched);
                        racing(state).filter(watched).count() >= 2
                    },
                ),
                Property::sometimes(
                    "an acknowledged update was not heard of by a server that was not counted",
                    |_, state: &State| {
                        state.answer == Answer::Done && state.servers.iter().any(|s| !s.heard)
                    },
                ),
                Property::sometimes("a server that was counted is watched", |_, state: &State| {
                    state.servers.iter().any(|s| s.owes && !s.knows)
                }),
                Property::sometimes(
                    "the put of one that died has the update while another puts it",
                    |_, state: &State| {
                        let watched = |s: &Server| s.put.is_some_and(|put| put.watched);
                        state.late.watched && racing(state).any(watched)
                    },
                ),
            ]),
            Watch::Evidence => properties.extend([
                Property::always(EVIDENCE, |_, state: &State| {
                    let sees = |s: &Server| match s.evidence {
                        Evidence::Settled(moment) => s.committed >= moment,
                        _ => true,
                    };
                    state.servers.iter().all(sees)
                }),
                Property::sometimes("a default read misses later groups", |_, state: &State| {
                    let behind = |s: &Server| {
                        matches!(s.evidence, Evidence::Settled(moment) if moment > 0)
                            && s.committed < state.log
                    };
                    state.servers.iter().any(behind)
                }),
            ]),
            Watch::Strict => properties.extend([
                Property::always(STRICT, |_, state: &State| {
                    state.broken != Some(Broken::StrictIsOld)
                }),
                Property::sometimes("a strict read waits for groups", |_, state: &State| {
                    let waits = |s: &Server| matches!(s.strict, Strict::Found(_, number) if number > s.committed);
                    state.servers.iter().any(waits)
                }),
            ]),
        }
        properties
    }
}

/// A number has one content: what servers lay is what the log has.
pub const ONE_CONTENT: &str = "servers lay the log's groups and nothing else";
/// Evaluated on the group before.
pub const IN_ORDER: &str = "groups were evaluated on the groups before them";
/// No key twice.
pub const ONCE: &str = "no update is twice in the log";
/// Durable.
pub const NOT_LOST: &str = "an acknowledged update is in the log";
/// Refused means not done.
pub const NOT_DONE: &str = "an update that was told as not done is not in the log";
/// Default reads where the server was counted.
pub const SEEN: &str = "servers that were counted see an acknowledged update";
/// Default reads elsewhere.
pub const EVIDENCE: &str = "default reads see what there was at the moment of their evidence";
/// Strict reads.
pub const STRICT: &str = "strict reads see what there was when they were asked";

/// The servers whose put may become the log's next group.
fn racing(state: &State) -> impl Iterator<Item = &Server> {
    state.servers.iter().filter(|s| s.may_land())
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
    fn is(&self, planted: Planted) -> bool {
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
    fn default_read_sees(&self, server: &Server, watched: u8) -> bool {
        match self.is(Planted::HeardIsApplied) {
            true => watched <= server.committed,
            false => server.heard,
        }
    }

    /// True if the server may evaluate the watched update.
    fn is_new(&self, server: &Server) -> bool {
        let ahead = server.next || server.put.is_some_and(|put| put.watched);
        self.watch == Watch::Update && !server.knows && !ahead
    }

    fn step(&self, state: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Land(at) => {
                let put = state.servers[at].put.as_mut()?;
                if put.fate != Fate::Flying {
                    return None;
                }
                put.fate = Fate::Landed;
                let (watched, stale) = (put.watched, put.stale);
                Self::land(state, watched, stale);
            }
            Action::LandLate(watched) => {
                let there = match watched {
                    true => state.late.watched,
                    false => state.late.other,
                };
                if !there {
                    return None;
                }
                Self::land(state, watched, false);
            }
            Action::Evaluate(at, watched) => {
                let log = state.log;
                let server = &mut state.servers[at];
                let full = server.committed >= self.groups;
                if full || server.put.is_some() || (watched && !self.is_new(server)) {
                    return None;
                }
                server.put = Some(sent(watched, server.committed, log));
            }
            Action::EvaluateNext(at) => {
                let server = &mut state.servers[at];
                let full = server.committed + 1 >= self.groups;
                if full || !self.is_new(server) || server.put.is_none() {
                    return None;
                }
                server.next = true;
            }
            Action::Created(at) => {
                let before = state.servers[at].committed;
                let created = |p: &Put| p.fate == Fate::Landed && p.outcome == Outcome::Sent;
                state.servers[at].put.filter(created)?;
                self.lay_own(state, at)?;
                // The attempt that created the object was begun when the group before it was the last.
                if self.watch == Watch::Evidence && unwatched(state) {
                    state.servers[at].evidence = Evidence::Settled(before);
                }
            }
            Action::Unknown(at) => self.unknown(state, at)?,
            Action::Repeat(at) => {
                let put = state.servers[at].put.as_mut()?;
                if put.outcome != Outcome::Unknown {
                    return None;
                }
                put.outcome = Outcome::Sent;
            }
            Action::Exists(at) => {
                let watched = state.watched;
                let server = &mut state.servers[at];
                let number = server.committed + 1;
                let put = server.put.as_mut()?;
                if state.log < number || put.outcome != Outcome::Sent {
                    return None;
                }
                put.outcome = Outcome::Taken;
                if self.is(Planted::ExistsIsOurs) {
                    return self.lay_own(state, at);
                }
                server.heard |= watched != 0 && watched <= number;
            }
            Action::Lay(at) => self.lay(state, at)?,
            Action::Hear(at) => {
                if state.watched == 0 {
                    return None;
                }
                state.servers[at].heard = true;
            }
            Action::Crash(at, number) => self.crash(state, at, number),
            Action::Tell(_)
            | Action::Say(_)
            | Action::Answer(_)
            | Action::AnswerBy(_)
            | Action::Refuse(_) => {
                return self.step_of_update(state, action);
            }
            Action::Look(_) | Action::Listed(..) | Action::Beat(..) | Action::Settle(_) => {
                return self.step_of_evidence(state, action);
            }
            Action::Ask(..) | Action::LookAgain(_) | Action::Looked(..) | Action::Serve(_) => {
                return self.step_of_strict(state, action);
            }
            Action::Publish(at, author) if at == author => return None,
            Action::Publish(at, author) => {
                let (reader, author) = (state.servers[at], state.servers[author]);
                let put = author
                    .put
                    .filter(|_| author.committed == reader.committed)?;
                (state.servers[at].put, state.servers[at].next) = (None, false);
                self.laid(state, at, put.fate == Fate::Landed, put.watched);
            }
        }
        Some(())
    }

    fn unknown(&self, state: &mut State, at: usize) -> Option<()> {
        let log = state.log;
        let server = &mut state.servers[at];
        let put = server.put.as_mut()?;
        if put.outcome != Outcome::Sent {
            return None;
        }
        if self.is(Planted::NextNumberAfterUnknown) {
            if server.committed + 1 >= self.groups {
                return None;
            }
            server.committed += 1;
            *put = sent(put.watched, server.committed, log);
            if server.committed > log {
                state.broken = state.broken.or(Some(Broken::Content));
            }
        } else {
            put.outcome = Outcome::Unknown;
        }
        Some(())
    }

    /// Makes a put the log's next group. All other puts of its number are void.
    fn land(state: &mut State, watched: bool, stale: bool) {
        state.log += 1;
        state.late = Late::default();
        if stale {
            state.broken = state.broken.or(Some(Broken::OtherBase));
        }
        if watched {
            match state.watched {
                0 => state.watched = state.log,
                _ => state.broken = state.broken.or(Some(Broken::Twice)),
            }
        }
        for server in &mut state.servers {
            if let Some(put) = &mut server.put
                && put.fate == Fate::Flying
            {
                put.fate = Fate::Lost;
            }
        }
    }

    /// Lays the log's next group.
    fn lay(&self, state: &mut State, at: usize) -> Option<()> {
        let log = state.log;
        let server = &mut state.servers[at];
        let number = server.committed + 1;
        if log < number {
            return None;
        }
        match &mut server.put {
            Some(put) if put.fate == Fate::Landed => return self.lay_own(state, at),
            Some(put) if self.is(Planted::NotEvaluatedAgain) && number < self.groups => {
                *put = sent(put.watched, number, log);
                put.stale = true;
            }
            _ => (server.put, server.next) = (None, false),
        }
        let watched = number == state.watched && !self.is(Planted::KeysForgotten);
        self.laid(state, at, true, watched);
        Some(())
    }

    /// Lays its own group, as it believes.
    fn lay_own(&self, state: &mut State, at: usize) -> Option<()> {
        let log = state.log;
        let server = &mut state.servers[at];
        let put = server.put.take()?;
        let number = server.committed + 1;
        if server.next && number < self.groups {
            server.put = Some(sent(true, number, log));
        }
        server.next = false;
        self.laid(state, at, put.fate == Fate::Landed, put.watched);
        Some(())
    }

    /// Publishes a group that is laid; true if it is the log's, and if it has the watched update, as the server believes.
    fn laid(&self, state: &mut State, at: usize, true_one: bool, watched: bool) {
        let server = &mut state.servers[at];
        server.committed += 1;
        server.knows |= watched;
        server.heard |= state.watched != 0 && state.watched <= server.committed;
        if !true_one {
            state.broken = state.broken.or(Some(Broken::Content));
        }
    }

    fn crash(&self, state: &mut State, at: usize, number: u8) {
        let watched = state.watched;
        let server = &mut state.servers[at];
        if let Some(put) = server.put.filter(|put| put.fate == Fate::Flying) {
            match put.watched {
                true => state.late.watched = true,
                false => state.late.other = true,
            }
        }
        let tells = server.tells;
        let has = watched != 0 && watched <= number;
        *server = Server {
            committed: number,
            heard: has,
            knows: has && !self.is(Planted::KeysForgottenByCrash),
            ..Server::default()
        };
        if tells {
            // Another server may tell; what was said was said to this one.
            for server in &mut state.servers {
                server.said = false;
            }
        }
    }

    fn step_of_update(&self, state: &mut State, action: Action) -> Option<()> {
        let telling = state.servers.iter().position(|s| s.tells);
        match action {
            Action::Tell(at) => {
                if telling.is_some() || state.answer != Answer::None || !state.servers[at].knows {
                    return None;
                }
                state.servers[at].tells = true;
            }
            Action::Say(at) => {
                let server = &mut state.servers[at];
                if telling.is_none() || server.tells || server.said || !server.heard {
                    return None;
                }
                server.said = true;
            }
            Action::Answer(at) => {
                let server = &state.servers[at];
                let may = server.tells || server.said || self.is(Planted::AnsweredUnheard);
                return (telling.is_some() && may).then(|| answer(state, at));
            }
            Action::AnswerBy(at) => {
                telling?;
                state.servers[at].heard = true;
                answer(state, at);
            }
            Action::Refuse(at) => {
                if state.answer != Answer::None || !self.is_new(&state.servers[at]) {
                    return None;
                }
                state.answer = Answer::Refused;
            }
            _ => return None,
        }
        Some(())
    }

    fn step_of_evidence(&self, state: &mut State, action: Action) -> Option<()> {
        let log = state.log;
        match action {
            Action::Look(at) => {
                if log == 0 || !unwatched(state) {
                    return None;
                }
                state.servers[at].evidence = Evidence::Looking(log);
            }
            Action::Listed(at, tail) => {
                let server = &mut state.servers[at];
                let Evidence::Looking(begun) = server.evidence else {
                    return None;
                };
                let moment = match self.is(Planted::ListingsAreFresh) {
                    true => log,
                    false => begun,
                };
                server.evidence = Evidence::Waiting(moment, tail);
            }
            Action::Beat(from, to) => {
                let sender = state.servers[from];
                let Evidence::Settled(moment) = sender.evidence else {
                    return None;
                };
                if from == to {
                    return None;
                }
                state.servers[from].evidence = Evidence::None;
                state.servers[to].evidence = Evidence::Waiting(moment, sender.committed);
            }
            Action::Settle(at) => {
                let server = &mut state.servers[at];
                let Evidence::Waiting(moment, number) = server.evidence else {
                    return None;
                };
                if server.committed < number {
                    return None;
                }
                let moment = match self.is(Planted::BeatsAreFresh) {
                    true => log,
                    false => moment,
                };
                server.evidence = Evidence::Settled(moment);
            }
            _ => return None,
        }
        Some(())
    }

    fn step_of_strict(&self, state: &mut State, action: Action) -> Option<()> {
        let log = state.log;
        match action {
            Action::Ask(at, queued) => {
                if log == 0 || state.servers.iter().any(|s| s.strict != Strict::None) {
                    return None;
                }
                state.servers[at].strict = match queued {
                    true => Strict::Queued(log),
                    false => Strict::Looking(log, log),
                };
            }
            Action::LookAgain(at) => {
                let Strict::Queued(asked) = state.servers[at].strict else {
                    return None;
                };
                // The listing that is on its way was begun at any earlier moment.
                let begun = match self.is(Planted::StrictLooksBefore) {
                    true => asked - 1,
                    false => log,
                };
                state.servers[at].strict = Strict::Looking(asked, begun);
            }
            Action::Looked(at, tail) => {
                let server = &mut state.servers[at];
                let Strict::Looking(asked, _) = server.strict else {
                    return None;
                };
                server.strict = Strict::Found(asked, tail);
            }
            Action::Serve(at) => {
                let server = &mut state.servers[at];
                let Strict::Found(asked, number) = server.strict else {
                    return None;
                };
                if server.committed < number {
                    return None;
                }
                server.strict = Strict::None;
                if server.committed < asked {
                    state.broken = state.broken.or(Some(Broken::StrictIsOld));
                }
            }
            _ => return None,
        }
        Some(())
    }
}

/// A put that is sent by a server that has laid this many groups.
fn sent(watched: bool, committed: u8, log: u8) -> Put {
    Put {
        fate: match committed < log {
            true => Fate::Lost,
            false => Fate::Flying,
        },
        outcome: Outcome::Sent,
        watched,
        stale: false,
    }
}

/// True if no evidence is watched: one piece is at a time, and a beat takes it along.
fn unwatched(state: &State) -> bool {
    let none = |s: &Server| s.evidence == Evidence::None;
    state.servers.iter().all(none)
}

/// Acknowledges the watched update; reads at this server are watched from then on.
fn answer(state: &mut State, at: usize) {
    state.answer = Answer::Done;
    for server in &mut state.servers {
        (server.tells, server.said) = (false, false);
    }
    state.servers[at].owes = true;
}
