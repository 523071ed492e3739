//! The state that follows from each action.

use crate::model::{Action, Planted, Replicas, Watch};
use crate::state::{
    Answer, Broken, Late, Outcome, Proof, Put, PutEffect, Server, State, StrictRead,
};

impl Replicas {
    /// Changes the state by an action; `None` if the action is not possible in this state.
    pub(crate) fn step(&self, state: &mut State, action: Action) -> Option<()> {
        match action {
            Action::PutTakesEffect(at) => {
                let put = state.servers[at].put.as_mut()?;
                if put.effect != PutEffect::Pending {
                    return None;
                }
                put.effect = PutEffect::TookEffect;
                let (watched, stale) = (put.watched, put.stale);
                Self::land(state, watched, stale);
            }
            Action::LatePutTakesEffect(watched) => {
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
            Action::Apply(at) => self.apply(state, at)?,
            Action::Learn(at) => {
                if state.watched == 0 {
                    return None;
                }
                state.servers[at].knows_of_group = true;
            }
            Action::Crash(at, number) => self.crash(state, at, number),
            Action::StartAcknowledging(_)
            | Action::Confirm(_)
            | Action::Answer(_)
            | Action::AnswerBy(_)
            | Action::Refuse(_) => {
                return self.step_of_update(state, action);
            }
            Action::StartListing(_)
            | Action::Listed(..)
            | Action::Beat(..)
            | Action::UseProof(_) => {
                return self.step_of_evidence(state, action);
            }
            Action::StrictRead(..)
            | Action::StartStrictListing(_)
            | Action::StrictListed(..)
            | Action::Serve(_) => {
                return self.step_of_strict(state, action);
            }
            Action::Publish(at, author) if at == author => return None,
            Action::Publish(at, author) => {
                let (reader, author) = (state.servers[at], state.servers[author]);
                let put = author
                    .put
                    .filter(|_| author.committed == reader.committed)?;
                (state.servers[at].put, state.servers[at].next) = (None, false);
                self.applied(state, at, put.effect == PutEffect::TookEffect, put.watched);
            }
        }
        Some(())
    }

    fn created(&self, state: &mut State, at: usize) -> Option<()> {
        let before = state.servers[at].committed;
        let created = |p: &Put| p.effect == PutEffect::TookEffect && p.outcome == Outcome::Sent;
        state.servers[at].put.filter(created)?;
        self.apply_own(state, at)?;
        // The attempt that created the object started when the group before was the newest.
        if self.watch == Watch::Evidence && no_proof_exists(state) {
            state.servers[at].proof = Proof::Valid(before);
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
            return self.apply_own(state, at);
        }
        server.knows_of_group |= watched != 0 && watched <= number;
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
                && put.effect == PutEffect::Pending
            {
                put.effect = PutEffect::Void;
            }
        }
    }

    /// Applies the log's next group at a server.
    fn apply(&self, state: &mut State, at: usize) -> Option<()> {
        let log = state.log;
        let server = &mut state.servers[at];
        let number = server.committed + 1;
        if log < number {
            return None;
        }
        match &mut server.put {
            Some(put) if put.effect == PutEffect::TookEffect => return self.apply_own(state, at),
            Some(put) if self.is(Planted::NotEvaluatedAgain) && number < self.groups => {
                *put = sent(put.watched, number, log);
                put.stale = true;
            }
            _ => (server.put, server.next) = (None, false),
        }
        let watched = number == state.watched && !self.is(Planted::RequestsForgotten);
        self.applied(state, at, true, watched);
        Some(())
    }

    /// Applies the group that the server has put, which the server believes to be the log's.
    fn apply_own(&self, state: &mut State, at: usize) -> Option<()> {
        let log = state.log;
        let server = &mut state.servers[at];
        let put = server.put.take()?;
        let number = server.committed + 1;
        if server.next && number < self.groups {
            server.put = Some(sent(true, number, log));
        }
        server.next = false;
        self.applied(state, at, put.effect == PutEffect::TookEffect, put.watched);
        Some(())
    }

    /// Publishes a group: `true_one` says that it is the log's, `watched` that the server finds the watched update in
    /// it.
    fn applied(&self, state: &mut State, at: usize, true_one: bool, watched: bool) {
        let server = &mut state.servers[at];
        server.committed += 1;
        server.remembers_update |= watched;
        server.knows_of_group |= state.watched != 0 && state.watched <= server.committed;
        if !true_one {
            state.broken = state.broken.or(Some(Broken::Content));
        }
    }

    fn crash(&self, state: &mut State, at: usize, number: u8) {
        let watched = state.watched;
        let server = &mut state.servers[at];
        if let Some(put) = server.put.filter(|put| put.effect == PutEffect::Pending) {
            match put.watched {
                true => state.late.watched = true,
                false => state.late.other = true,
            }
        }
        let acknowledges = server.acknowledges;
        let has = watched != 0 && watched <= number;
        *server = Server {
            committed: number,
            knows_of_group: has,
            remembers_update: has && !self.is(Planted::RequestsForgottenByCrash),
            ..Server::default()
        };
        if acknowledges {
            // Another server may acknowledge the update later; confirmations were sent to this one only.
            for server in &mut state.servers {
                server.confirmed = false;
            }
        }
    }

    fn step_of_update(&self, state: &mut State, action: Action) -> Option<()> {
        let telling = state.servers.iter().position(|s| s.acknowledges);
        match action {
            Action::StartAcknowledging(at) => {
                if telling.is_some()
                    || state.answer != Answer::None
                    || !state.servers[at].remembers_update
                {
                    return None;
                }
                state.servers[at].acknowledges = true;
            }
            Action::Confirm(at) => {
                let server = &mut state.servers[at];
                if telling.is_none()
                    || server.acknowledges
                    || server.confirmed
                    || !server.knows_of_group
                {
                    return None;
                }
                server.confirmed = true;
            }
            Action::Answer(at) => {
                let server = &state.servers[at];
                let may = server.acknowledges
                    || server.confirmed
                    || self.is(Planted::AcknowledgedUnconfirmed);
                return (telling.is_some() && may).then(|| answer(state, at));
            }
            Action::AnswerBy(at) => {
                telling?;
                state.servers[at].knows_of_group = true;
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
            Action::StartListing(at) => {
                if log == 0 || !no_proof_exists(state) {
                    return None;
                }
                state.servers[at].proof = Proof::Listing(log);
            }
            Action::Listed(at, tail) => {
                let server = &mut state.servers[at];
                let Proof::Listing(begun) = server.proof else {
                    return None;
                };
                let moment = match self.is(Planted::ListingsAreFresh) {
                    true => log,
                    false => begun,
                };
                server.proof = Proof::Pending(moment, tail);
            }
            Action::Beat(from, to) => {
                let sender = state.servers[from];
                let Proof::Valid(moment) = sender.proof else {
                    return None;
                };
                if from == to {
                    return None;
                }
                state.servers[from].proof = Proof::None;
                state.servers[to].proof = Proof::Pending(moment, sender.committed);
            }
            Action::UseProof(at) => {
                let server = &mut state.servers[at];
                let Proof::Pending(moment, number) = server.proof else {
                    return None;
                };
                if server.committed < number {
                    return None;
                }
                let moment = match self.is(Planted::HeartbeatFreshOnArrival) {
                    true => log,
                    false => moment,
                };
                server.proof = Proof::Valid(moment);
            }
            _ => return None,
        }
        Some(())
    }

    fn step_of_strict(&self, state: &mut State, action: Action) -> Option<()> {
        let log = state.log;
        match action {
            Action::StrictRead(at, queued) => {
                if log == 0 || state.servers.iter().any(|s| s.strict != StrictRead::None) {
                    return None;
                }
                state.servers[at].strict = match queued {
                    true => StrictRead::WaitingForListing(log),
                    false => StrictRead::Listing(log, log),
                };
            }
            Action::StartStrictListing(at) => {
                let StrictRead::WaitingForListing(asked) = state.servers[at].strict else {
                    return None;
                };
                // The running listing may have been started at any earlier moment.
                let begun = match self.is(Planted::StrictUsesEarlierListing) {
                    true => asked - 1,
                    false => log,
                };
                state.servers[at].strict = StrictRead::Listing(asked, begun);
            }
            Action::StrictListed(at, tail) => {
                let server = &mut state.servers[at];
                let StrictRead::Listing(asked, _) = server.strict else {
                    return None;
                };
                server.strict = StrictRead::WaitingForGroup(asked, tail);
            }
            Action::Serve(at) => {
                let server = &mut state.servers[at];
                let StrictRead::WaitingForGroup(asked, number) = server.strict else {
                    return None;
                };
                if server.committed < number {
                    return None;
                }
                server.strict = StrictRead::None;
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
        effect: match committed < log {
            true => PutEffect::Void,
            false => PutEffect::Pending,
        },
        outcome: Outcome::Sent,
        watched,
        stale: false,
    }
}

/// True if no server has a freshness proof: only one proof is watched at a time, and a heartbeat moves it to the
/// receiver.
fn no_proof_exists(state: &State) -> bool {
    let none = |s: &Server| s.proof == Proof::None;
    state.servers.iter().all(none)
}

/// Acknowledges the watched update; from then on, reads at this server are watched.
fn answer(state: &mut State, at: usize) {
    state.answer = Answer::Done;
    for server in &mut state.servers {
        (server.acknowledges, server.confirmed) = (false, false);
    }
    state.servers[at].is_watched = true;
}
