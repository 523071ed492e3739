//! What can happen, and what must hold.

use crate::state::{Answer, Broken, Evidence, Outcome, Put, SERVERS, Server, State, Strict};
use stateright::{Model, Property};

/// A model of servers.
#[derive(Clone, Copy, Debug)]
pub struct Replicas {
    /// Number of groups with which the log is full.
    pub groups: u8,
    /// What is observed.
    pub watch: Watch,
    /// A mistake.
    pub planted: Option<Planted>,
}

/// What is observed.
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
    /// Who loses a name puts the same group under the next one.
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
    /// It evaluates the watched update on top of its own put. (What else it may evaluate there is as if it were done
    /// afterwards.)
    EvaluateNext(usize),
    /// The bucket's answer is that this attempt created the object: `PutResult::Created`.
    Created(usize),
    /// The answer is lost, an error or 409: `PutResult::Unknown`.
    Unknown(usize),
    /// The put is repeated: `scan_put`.
    Repeat(usize),
    /// The name is taken, by itself or by another: `PutResult::Exists`.
    Exists(usize),
    /// The next group, of which it has heard, is laid: read from the bucket, or proposed by its author and confirmed by
    /// any server. Where it is not its own, its put is void, and what was on it is to be evaluated again. `advance`,
    /// `commit`, `fall_back`.
    Lay(usize),
    /// It hears of a group in the log: by *committed*, a beat, an outcome, a listing. `hear`.
    Hear(usize, u8),
    /// It dies and starts with so many of its groups. The machine's `opened`.
    Crash(usize, u8),
    /// It knows the watched update as done, a client waits here, and the others are told: `tell_committed`.
    Tell(usize),
    /// Its *heard*, or a beat that says so, comes to the server that tells.
    Say(usize),
    /// The watched update is acknowledged. The first number has the bits of the servers that count; all of them must have
    /// said that they heard. The answer goes by way of the second server, which hears of the group. `answer_heard`,
    /// `outcome`.
    Answer(u8, usize),
    /// The watched update fails, for reasons of this server's alone.
    Refuse(usize),
    /// A listing is begun: `want_look`.
    Look(usize),
    /// It returns, with any tail between what there was at its beginning and what there is: `learn_listing`.
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
            actions.extend([Action::Land(at), Action::Lay(at)]);
            match server.put {
                None => actions.extend([false, true].map(|watched| Action::Evaluate(at, watched))),
                Some(put) if put.outcome == Outcome::Sent => actions.extend([
                    Action::EvaluateNext(at),
                    Action::Created(at),
                    Action::Unknown(at),
                    Action::Exists(at),
                ]),
                Some(_) => actions.extend([Action::EvaluateNext(at), Action::Repeat(at)]),
            }
            actions.extend((server.heard + 1..=state.log).map(|number| Action::Hear(at, number)));
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
                let unknown = |p: Put| p.landed && p.outcome == Outcome::Unknown;
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
                    let sees = |s: &Server| model.default_read(s) >= state.watched;
                    state.servers.iter().all(|s| !s.owes || sees(s))
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
                        let behind = |s: &Server| s.heard < state.watched;
                        state.answer == Answer::Done && state.servers.iter().any(behind)
                    },
                ),
                Property::sometimes(
                    "all servers have heard of an acknowledged update",
                    |_, state: &State| state.servers.iter().all(|s| s.owes),
                ),
                Property::sometimes(
                    "the put of one that died has the update while another puts it",
                    |_, state: &State| {
                        let watched = |s: &Server| s.put.is_some_and(|put| put.watched);
                        state.late.watched && racing(state).any(watched)
                    },
                ),
            ]),
            Watch::Evidence => properties.extend([
                Property::always(EVIDENCE, |model: &Self, state: &State| {
                    let sees = |s: &Server| match s.evidence {
                        Evidence::Settled(moment) => model.default_read(s) >= moment,
                        _ => true,
                    };
                    state.servers.iter().all(sees)
                }),
                Property::sometimes("a default read misses later groups", |_, state: &State| {
                    let behind = |s: &Server| {
                        matches!(s.evidence, Evidence::Settled(moment) if moment > 0)
                            && s.heard == s.committed
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
    let log = state.log;
    state.servers.iter().filter(move |s| s.may_land(log))
}

fn evidence_actions(state: &State, at: usize, actions: &mut Vec<Action>) {
    match state.servers[at].evidence {
        Evidence::None => {
            actions.push(Action::Look(at));
            actions.extend((0..SERVERS).map(|from| Action::Beat(from, at)));
        }
        Evidence::Looking(begun) => {
            actions.extend((begun..=state.log).map(|tail| Action::Listed(at, tail)));
        }
        Evidence::Waiting(..) => actions.push(Action::Settle(at)),
        Evidence::Settled(_) => {}
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
        actions.extend((0..1 << SERVERS).map(|counted| Action::Answer(counted, at)));
    }

    /// The least number from which a default read is answered that is asked now: it waits for what was heard of.
    fn default_read(&self, server: &Server) -> u8 {
        match self.is(Planted::HeardIsApplied) {
            true => server.committed,
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
                let log = state.log;
                let server = &mut state.servers[at];
                if !server.may_land(log) {
                    return None;
                }
                let put = server.put.as_mut()?;
                put.landed = true;
                let (watched, stale) = (put.watched, put.stale);
                land(state, watched, stale);
            }
            Action::LandLate(watched) => {
                let late = &mut state.late;
                let there = match watched {
                    true => late.watched,
                    false => late.other,
                };
                if !there {
                    return None;
                }
                land(state, watched, false);
            }
            Action::Evaluate(at, watched) => {
                let server = &mut state.servers[at];
                let full = server.committed >= self.groups;
                if full || server.put.is_some() || (watched && !self.is_new(server)) {
                    return None;
                }
                server.put = Some(sent(watched));
            }
            Action::EvaluateNext(at) => {
                let server = &mut state.servers[at];
                let full = server.committed + 1 >= self.groups;
                if full || server.put.is_none() || !self.is_new(server) {
                    return None;
                }
                server.next = true;
            }
            Action::Created(at) => {
                let before = state.servers[at].committed;
                state.servers[at].put.filter(|put| put.landed)?;
                self.lay(state, at)?;
                let server = &mut state.servers[at];
                // The attempt that created the object was begun when the group before it was the last.
                if self.watch == Watch::Evidence && server.evidence == Evidence::None {
                    server.evidence = Evidence::Settled(before);
                }
            }
            Action::Unknown(at) => self.unknown(state, at)?,
            Action::Repeat(at) => {
                let put = state.servers[at].put.as_mut()?;
                if put.outcome == Outcome::Sent {
                    return None;
                }
                put.outcome = Outcome::Sent;
            }
            Action::Exists(at) => {
                let number = state.servers[at].committed + 1;
                if state.log < number {
                    return None;
                }
                if self.is(Planted::ExistsIsOurs) {
                    return self.lay_own(state, at);
                }
                state.servers[at].hear(number);
            }
            Action::Lay(at) => {
                let server = &state.servers[at];
                if server.heard <= server.committed {
                    return None;
                }
                self.lay(state, at)?;
            }
            Action::Hear(at, number) => state.servers[at].hear(number),
            Action::Crash(at, number) => self.crash(state, at, number),
            Action::Tell(_) | Action::Say(_) | Action::Answer(..) | Action::Refuse(_) => {
                return self.step_of_update(state, action);
            }
            Action::Look(_) | Action::Listed(..) | Action::Beat(..) | Action::Settle(_) => {
                return self.step_of_evidence(state, action);
            }
            Action::Ask(..) | Action::LookAgain(_) | Action::Looked(..) | Action::Serve(_) => {
                return self.step_of_strict(state, action);
            }
            Action::Publish(at, author) => {
                let (reader, author) = (state.servers[at], state.servers[author]);
                let put = author.put.filter(|_| author.committed == reader.committed)?;
                let landed = put.landed;
                let server = &mut state.servers[at];
                server.committed += 1;
                server.hear(reader.committed + 1);
                (server.put, server.next) = (None, false);
                if !landed {
                    state.broken = state.broken.or(Some(Broken::Content));
                }
            }
        }
        Some(())
    }

    fn unknown(&self, state: &mut State, at: usize) -> Option<()> {
        let log = state.log;
        let groups = self.groups;
        let server = &mut state.servers[at];
        let put = server.put.as_mut()?;
        if put.outcome == Outcome::Unknown {
            return None;
        }
        if !self.is(Planted::NextNumberAfterUnknown) {
            put.outcome = Outcome::Unknown;
            return Some(());
        }
        if server.committed + 1 >= groups {
            return None;
        }
        put.landed = false;
        server.committed += 1;
        server.hear(server.committed);
        if server.committed > log {
            state.broken = state.broken.or(Some(Broken::Content));
        }
        Some(())
    }

    /// Lays the log's next group.
    fn lay(&self, state: &mut State, at: usize) -> Option<()> {
        let server = &mut state.servers[at];
        let number = server.committed + 1;
        if state.log < number {
            return None;
        }
        if server.put.is_some_and(|put| put.landed) {
            return self.lay_own(state, at);
        }
        server.committed = number;
        server.hear(number);
        server.knows |= number == state.watched && !self.is(Planted::KeysForgotten);
        match &mut server.put {
            Some(put) if self.is(Planted::NotEvaluatedAgain) && number < self.groups => {
                put.stale = true;
            }
            _ => (server.put, server.next) = (None, false),
        }
        Some(())
    }

    /// Lays its own group, as it believes.
    fn lay_own(&self, state: &mut State, at: usize) -> Option<()> {
        let server = &mut state.servers[at];
        let put = server.put.take()?;
        server.committed += 1;
        server.hear(server.committed);
        server.knows |= put.watched;
        if server.next && server.committed < self.groups {
            server.put = Some(sent(true));
        }
        server.next = false;
        if !put.landed {
            state.broken = state.broken.or(Some(Broken::Content));
        }
        Some(())
    }

    fn crash(&self, state: &mut State, at: usize, number: u8) {
        let (log, watched) = (state.log, state.watched);
        let server = &mut state.servers[at];
        if server.may_land(log)
            && let Some(put) = server.put
        {
            match put.watched {
                true => state.late.watched = true,
                false => state.late.other = true,
            }
        }
        let tells = server.tells;
        let knows = watched != 0 && watched <= number && !self.is(Planted::KeysForgottenByCrash);
        *server = Server {
            committed: number,
            heard: number,
            knows,
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
                let to = telling.filter(|to| *to != at)?;
                if server.said || server.heard < state.watched {
                    return None;
                }
                server.said = true;
                debug_assert!(to < SERVERS);
            }
            Action::Answer(counted, via) => {
                let by = telling?;
                for (at, server) in state.servers.iter().enumerate() {
                    let counts = counted >> at & 1 == 1;
                    let heard = server.said || self.is(Planted::AnsweredUnheard);
                    if counts && (at == by || !heard) {
                        return None;
                    }
                }
                state.answer = Answer::Done;
                for (at, server) in state.servers.iter_mut().enumerate() {
                    let counts = counted >> at & 1 == 1;
                    server.owes = counts || at == by || at == via;
                    (server.tells, server.said) = (false, false);
                }
                state.servers[via].hear(state.watched);
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
                if log == 0 {
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
                server.hear(tail);
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
                server.hear(tail);
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

fn sent(watched: bool) -> Put {
    Put {
        watched,
        landed: false,
        outcome: Outcome::Sent,
        stale: false,
    }
}

/// Makes a put the log's next group. All other puts of its number are void.
fn land(state: &mut State, watched: bool, stale: bool) {
    state.log += 1;
    state.late = crate::state::Late::default();
    if stale {
        state.broken = state.broken.or(Some(Broken::OtherBase));
    }
    if watched {
        match state.watched {
            0 => state.watched = state.log,
            _ => state.broken = state.broken.or(Some(Broken::Twice)),
        }
    }
}
