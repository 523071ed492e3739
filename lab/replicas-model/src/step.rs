//! The state that follows from each action.

use crate::model::{Action, Planted, Replicas, Watch};
use crate::state::{Answer, Broken, Evidence, Fate, Late, Outcome, Put, Server, State, Strict};

impl Replicas {
    /// Changes the state by an action; `None` if the action is not possible in this state.
    pub(crate) fn step(&self, state: &mut State, action: Action) -> Option<()> {
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
            Action::Created(at) => self.created(state, at)?,
            Action::Unknown(at) => self.unknown(state, at)?,
            Action::Repeat(at) => {
                let put = state.servers[at].put.as_mut()?;
                if put.outcome != Outcome::Unknown {
                    return None;
                }
                put.outcome = Outcome::Sent;
            }
            Action::Exists(at) => self.exists(state, at)?,
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

    fn created(&self, state: &mut State, at: usize) -> Option<()> {
        let before = state.servers[at].committed;
        let created = |p: &Put| p.fate == Fate::Landed && p.outcome == Outcome::Sent;
        state.servers[at].put.filter(created)?;
        self.lay_own(state, at)?;
        // The attempt that created the object started when the group before was the newest.
        if self.watch == Watch::Evidence && unwatched(state) {
            state.servers[at].evidence = Evidence::Settled(before);
        }
        Some(())
    }

    fn exists(&self, state: &mut State, at: usize) -> Option<()> {
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
            let told = put.watched && state.answer == Answer::None;
            if told && self.is(Planted::UnknownIsNotDone) {
                state.answer = Answer::Refused;
            }
        }
        Some(())
    }

    /// Makes a put the log's next group. All other pending puts of that number become void.
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

    /// Applies the log's next group at a server.
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

    /// Applies the group that the server has put, which the server believes to be the log's.
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

    /// Publishes a group: `true_one` says that it is the log's, `watched` that the server finds the watched update in
    /// it.
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
            // Another server may acknowledge the update later; confirmations were sent to this one only.
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
                // The running listing may have been started at any earlier moment.
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

/// A new put of a server that has applied `committed` groups.
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

/// True if no server has a freshness proof: only one proof is watched at a time, and a heartbeat moves it to the
/// receiver.
fn unwatched(state: &State) -> bool {
    let none = |s: &Server| s.evidence == Evidence::None;
    state.servers.iter().all(none)
}

/// Acknowledges the watched update; from then on, reads at this server are watched.
fn answer(state: &mut State, at: usize) {
    state.answer = Answer::Done;
    for server in &mut state.servers {
        (server.tells, server.said) = (false, false);
    }
    state.servers[at].owes = true;
}
