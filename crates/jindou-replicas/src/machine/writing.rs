//! Updates: which server evaluates them, and how their groups are put.

use super::{Head, Impossible, Machine, Phase, Put, PutState, Stage, Waiting, planted};
use crate::machine::event::{Action, Evaluation, Message, Outcome, Problem, PutResult};
use crate::machine::group::{Blob, Group, Record, Request, RequestKey, ServerName};
use crate::machine::settings::Time;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Pauses between puts, during which other servers can put groups.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pauses {
    put_ended: Time,
    /// Length of the next pause, if one is made.
    length: Duration,
    /// End of the latest pause.
    last: Time,
}

/// Batching of updates (group commit): a put waits briefly for the next updates of the clients that were just answered.
/// If each client sends its next update after an answer, a put without this wait would contain only the updates of the
/// other clients, and every client would wait for two puts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Batching {
    /// Time until which the next put waits.
    pub until: Time,
    /// Number of updates at which the wait ends: those queued when the wait began, plus one for each answered client.
    pub expected: usize,
    /// Minimum number of updates in the put for the wait to count as useful; 0 if there is no wait.
    useful_from: usize,
    /// Number of consecutive waits that were not useful.
    useless_waits: u32,
    /// Number of puts for which the wait is skipped.
    skip: u32,
}

impl Batching {
    /// Starts a wait. Skipped after waits that were not useful, which show that clients do not wait for answers before
    /// they send updates.
    fn begin(&mut self, now: Time, took: Duration, waiting: usize, answered: usize) {
        if answered < MIN_RECORDS || took < MIN_PUT {
            return;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        self.until = now.after((took / 2).min(MAX_WAIT));
        self.expected = waiting + answered;
        self.useful_from = waiting + answered - answered / 4;
    }

    /// Judges whether a wait was useful, by the number of updates in the put.
    fn ended(&mut self, updates: usize) {
        match std::mem::take(&mut self.useful_from) {
            0 => {}
            useful_from if updates >= useful_from => self.useless_waits = 0,
            _ => {
                self.skip = 1 << self.useless_waits;
                self.useless_waits = (self.useless_waits + 1).min(6);
            }
        }
    }
}

impl Machine {
    /// Handles an update of a client, or one that another server has forwarded.
    pub(super) fn asked(&mut self, request: Request, body: Blob, peer: Option<ServerName>) {
        let Request { key, fingerprint } = request;
        let new = !self.waiting.contains_key(&key);
        let waiting = self.waiting.entry(key).or_insert_with(|| Waiting {
            fingerprint,
            body,
            asked: self.now,
            client: false,
            peers: BTreeSet::new(),
            forwarded: 0,
            stage: Stage::Pausing(self.now),
        });
        match peer {
            Some(peer) => drop(waiting.peers.insert(peer)),
            None => waiting.client = true,
        }
        if new {
            self.route(key);
        }
    }

    /// Handles a forwarded update. An update that was in transit for too long is rejected: its client may already have
    /// received another answer that this server no longer remembers.
    pub(super) fn forwarded(
        &mut self,
        from: ServerName,
        request: Request,
        body: Blob,
        sent: Option<crate::machine::event::Echo>,
    ) {
        let recent = sent.is_some_and(|echo| {
            echo.start == self.me.start && self.now.since(echo.clock) <= self.settings.forward_limit
        });
        let key = request.key;
        let known = self.keys_in_progress.contains(&key) || self.keys.get(key).is_some();
        let stopping = self.draining || self.phase != Phase::Following;
        match recent && (known || (!stopping && self.target().is_none())) {
            true => self.asked(request, body, Some(from)),
            false => self.send(&from, Message::NotWriter(key, self.committed, stopping)),
        }
    }

    /// The server to forward updates to; `None` if this server evaluates them.
    pub(super) fn target(&self) -> Option<ServerName> {
        let usable = |name: &ServerName| {
            let peer = self.peers.get(name);
            peer.is_some_and(|p| self.is_alive(p) && !p.draining)
        };
        match &self.writer {
            Some(writer) if writer.server != self.me.server && usable(&writer.server) => {
                Some(writer.server.clone())
            }
            _ if self.draining => self.peers.keys().find(|name| usable(name)).cloned(),
            _ => None,
        }
    }

    /// Queues an update for evaluation, forwards it, or answers it if it was executed before.
    pub(super) fn route(&mut self, key: RequestKey) {
        if let Some(known) = self.keys.get(key) {
            let number = known.number;
            self.tell_committed();
            return self.is_committed(key, number);
        }
        let Some(waiting) = self.waiting.get_mut(&key) else {
            return;
        };
        if waiting.stage == Stage::Committed {
            return;
        }
        if self.keys_in_progress.contains(&key) {
            waiting.stage = Stage::Here;
            return;
        }
        let peers = std::mem::take(&mut waiting.peers);
        let (client, body) = (waiting.client, waiting.body.clone());
        let fingerprint = waiting.fingerprint;
        let Some(target) = self.target() else {
            if let Some(waiting) = self.waiting.get_mut(&key) {
                waiting.peers = peers;
                waiting.stage = Stage::Here;
            }
            self.queue.push_back(key);
            return;
        };
        // Servers that forwarded the update find the writer themselves.
        for peer in &peers {
            self.send(peer, Message::NotWriter(key, self.committed, self.draining));
        }
        if !client {
            self.waiting.remove(&key);
            return;
        }
        let echo = self.peers.get(&target).and_then(|p| p.clock);
        let request = Request { key, fingerprint };
        self.send(&target, Message::Forward(request, body, echo));
        if let Some(waiting) = self.waiting.get_mut(&key) {
            waiting.forwarded += 1;
            waiting.stage = Stage::Forwarded(target, self.now);
        }
    }

    /// Handles the rejection of a forwarded update by a server that is not the writer.
    pub(super) fn not_writer(&mut self, from: &ServerName, key: RequestKey, committed: u64) {
        let forwarded = |w: &Waiting| matches!(&w.stage, Stage::Forwarded(to, _) if to == from);
        let Some(waiting) = self.waiting.get_mut(&key).filter(|w| forwarded(w)) else {
            return;
        };
        waiting.forwarded -= 1;
        let draining = self.peers.get(from).is_some_and(|p| p.draining);
        // The rejecting server knows a newer group, and thus the writer; or it considers this server the writer. Route
        // the update again after a pause, when the groups have arrived here.
        match committed <= self.committed && draining {
            true => self.route(key),
            false => self.pause(key),
        }
    }

    fn pause(&mut self, key: RequestKey) {
        let time = self.between(Duration::from_millis(20), Duration::from_millis(200));
        if let Some(waiting) = self.waiting.get_mut(&key) {
            waiting.stage = Stage::Pausing(self.now.after(time));
        }
    }

    /// Handles the outcome of a forwarded update.
    pub(super) fn outcome(&mut self, from: &ServerName, key: RequestKey, outcome: Outcome) {
        let forwarded = |w: &Waiting| matches!(&w.stage, Stage::Forwarded(to, _) if to == from);
        if let Outcome::Done { number, .. } = outcome {
            self.note_exists(number);
        }
        if self.waiting.get(&key).is_some_and(forwarded) {
            match outcome {
                // The server that executes the update gave up; another one may still execute it.
                Outcome::Unknown => self.pause(key),
                Outcome::Refused(_) | Outcome::Missing(_) => self.refused(key, outcome, 1),
                outcome => self.finish(key, outcome),
            }
        }
    }

    /// Handles the rejection of an update by a server, for example for lack of memory or time. If the update was also
    /// forwarded to another server, that server may still execute it, so the outcome is unknown. `here` is the number
    /// of times the update was forwarded to the rejecting server.
    pub(super) fn refused(&mut self, key: RequestKey, outcome: Outcome, here: u32) {
        let elsewhere = (self.waiting.get(&key)).is_some_and(|w| w.forwarded > here);
        match elsewhere {
            true => self.finish(key, Outcome::Unknown),
            false => self.finish(key, outcome),
        }
    }

    /// Repeats or gives up updates that have waited too long.
    pub(super) fn scan_updates(&mut self) {
        let limit = self.settings.update_limit;
        let (mut over, mut due) = (Vec::new(), Vec::new());
        for (key, waiting) in &self.waiting {
            if self.now.since(waiting.asked) >= limit {
                over.push(*key);
                continue;
            }
            match &waiting.stage {
                Stage::Pausing(until) if *until <= self.now => due.push(*key),
                Stage::Forwarded(to, since) => {
                    let is_alive = self.peers.get(to).is_some_and(|p| self.is_alive(p));
                    if !is_alive || self.now.since(*since) >= self.settings.forward_timeout {
                        due.push(*key);
                    }
                }
                _ => {}
            }
        }
        for key in over {
            self.finish(key, Outcome::Unknown);
        }
        for key in due {
            self.route(key);
        }
    }

    /// Submits the next updates for evaluation. Each is evaluated on the state after the previous one. Several are
    /// submitted ahead, so that the evaluator does not idle until this machine has handled the previous result.
    pub(super) fn evaluate_next(&mut self) {
        let full = self.pending.iter().map(|(_, r)| r.size()).sum::<usize>();
        let trusts = planted!(self, WriterTrustsGap) && self.gap.is_some();
        if self.fresh_as_of.is_none()
            || (self.committed < self.newest_known && !trusts)
            || full >= self.settings.group_bytes
        {
            return;
        }
        while self.evaluating.len() < EVALUATIONS
            && let Some(key) = self.queue.pop_front()
        {
            // The update was given up, or has been executed in the meantime.
            let Some(waiting) = self.waiting.get(&key) else {
                continue;
            };
            if waiting.stage != Stage::Here || self.keys_in_progress.contains(&key) {
                continue;
            }
            let body = waiting.body.clone();
            let request = Request {
                key,
                fingerprint: waiting.fingerprint,
            };
            if self.keys.get(key).is_some() || self.target().is_some() {
                self.route(key);
                continue;
            }
            if matches!(self.head, Head::Proposed(_)) {
                self.out.push(Action::Rollback);
            }
            self.head = Head::Own;
            self.last_ticket += 1;
            self.evaluating.push_back((self.last_ticket, request));
            self.keys_in_progress.insert(key);
            self.out.push(Action::Evaluate(self.last_ticket, key, body));
        }
    }

    pub(super) fn evaluated(
        &mut self,
        ticket: u64,
        evaluation: Evaluation,
    ) -> Result<(), Impossible> {
        let next = self.evaluating.front().filter(|(t, _)| *t == ticket);
        let Some(&(_, Request { key, fingerprint })) = next else {
            // The update was evaluated on a head that has since been rolled back.
            return Ok(());
        };
        self.evaluating.pop_front();
        if self.head != Head::Own {
            return Err(Impossible("an evaluation without a head"));
        }
        match evaluation {
            Evaluation::Record { bytes, report } => {
                let record = Record {
                    key,
                    fingerprint,
                    report,
                    bytes,
                };
                self.pending.push_back((key, record));
            }
            Evaluation::Refused(report) => {
                self.keys_in_progress.remove(&key);
                self.refused(key, Outcome::Refused(report), 0);
                let nothing = self.pending.is_empty() && self.evaluating.is_empty();
                if nothing && self.writing.is_none() {
                    self.head = Head::Published;
                }
            }
        }
        Ok(())
    }

    /// Puts a group with all evaluated records, unless a put is running or batching waits for more.
    pub(super) fn put_pending(&mut self) -> Result<(), Impossible> {
        if self.writing.is_some()
            || self.pending.is_empty()
            || (self.now < self.batching.until && self.pending.len() < self.batching.expected)
        {
            return Ok(());
        }
        if self.head != Head::Own {
            return Err(Impossible("evaluated updates that are not on the head"));
        }
        let mut records = Vec::new();
        let mut size = 0;
        while let Some((_, record)) = self.pending.front() {
            size += record.size();
            if size > self.settings.group_bytes && !records.is_empty() {
                break;
            }
            records.extend(self.pending.pop_front().map(|(_, record)| record));
        }
        let previous = match self.format.max(self.newest_version) {
            ..=1 => None,
            _ => Some(self.hashes.get(self.committed)),
        };
        if previous.is_none() {
            // Group version 1 cannot store fingerprints, so other servers will read 0. Use the same value here.
            records.iter_mut().for_each(|record| record.fingerprint = 0);
        }
        let group = Arc::new(Group {
            number: self.next(),
            writer: self.me.clone(),
            previous,
            records,
        });
        let Ok(bytes) = group.write(self.epoch) else {
            self.out.push(Action::Report(Problem::Unwritable));
            for record in &group.records {
                self.keys_in_progress.remove(&record.key);
                let report = TOO_LARGE.as_bytes().into();
                self.refused(record.key, Outcome::Refused(report), 0);
            }
            for key in self.roll_back() {
                self.route(key);
            }
            return Ok(());
        };
        if self.now.since(self.pauses.put_ended) >= self.pauses.length {
            self.pauses.last = self.now;
        }
        self.batching
            .ended(self.pending.len() + group.records.len());
        self.writing = Some(Put {
            group: group.clone(),
            bytes,
            attempt: 0,
            begun: self.now,
            state: PutState::Sent,
        });
        self.send_put();
        let live: Vec<ServerName> = (self.peers.iter())
            .filter(|(_, p)| self.is_alive(p))
            .map(|(name, _)| name.clone())
            .collect();
        for peer in live {
            self.send(&peer, Message::Proposed(group.clone()));
        }
        Ok(())
    }

    fn send_put(&mut self) {
        if let Some(put) = &mut self.writing {
            put.attempt += 1;
            put.begun = self.now;
            put.state = PutState::Sent;
            self.out.push(Action::Put {
                group: put.group.clone(),
                bytes: put.bytes.clone(),
                attempt: put.attempt,
            });
        }
    }

    pub(super) fn set_put(&mut self, state: PutState) {
        if let Some(put) = &mut self.writing {
            put.state = state;
        }
    }

    /// Handles the outcome of a put.
    pub(super) fn put_returned(&mut self, number: u64, attempt: u32, result: PutResult) {
        let answer = self.response_time();
        let Some(put) = &mut self.writing else {
            return;
        };
        if put.group.number != number || put.attempt != attempt || put.state != PutState::Sent {
            return;
        }
        match result {
            PutResult::Created => {
                put.state = PutState::Unproven(answer);
                let begun = put.begun;
                let took = self.now.since(begun);
                let waiting = self.pending.len() + self.evaluating.len() + self.queue.len();
                let answered = put.group.records.len();
                self.batching.begin(self.now, took, waiting, answered);
                self.let_others_write(took);
                // A put that created its object proves that no later group existed when the put started.
                if self.has_recent_proof(answer) {
                    self.add_proof(begun, number);
                }
            }
            PutResult::Exists if planted!(self, ExistsIsOurs) => {
                put.state = PutState::Unproven(answer);
            }
            PutResult::Exists => {
                put.state = PutState::NameExists;
                self.note_exists(number);
            }
            PutResult::Unknown if planted!(self, UnknownIsNotDone) => {
                let keys: Vec<_> = put.group.records.iter().map(|r| r.key).collect();
                put.state = PutState::Again(self.now);
                for key in keys {
                    self.finish(key, Outcome::Refused(b"not done".as_slice().into()));
                }
            }
            PutResult::Unknown if planted!(self, NextNumberAfterUnknown) => {
                let mut group = Group::clone(&put.group);
                group.number += 1;
                self.committed = number;
                put.bytes = group.write(self.epoch).unwrap_or_default();
                put.group = Arc::new(group);
                self.send_put();
            }
            PutResult::Unknown => {
                let attempts = put.attempt.min(5);
                let most = Duration::from_millis(50) * (1 << attempts);
                let time = self.between(Duration::from_millis(20), most);
                self.set_put(PutState::Again(self.now.after(time)));
            }
        }
    }

    /// Makes a pause once a second while a known server is silent. That server may be alive and have updates of its
    /// own. Without pauses it would lose every put to this server, since it must read a group before it can evaluate
    /// updates for the next number.
    fn let_others_write(&mut self, took: Duration) {
        self.pauses.put_ended = self.now;
        self.pauses.length = (took * 4).clamp(PAUSE.0, PAUSE.1);
        let silent = self.peers.values().any(|peer| !self.is_alive(peer));
        if silent && self.now.since(self.pauses.last) >= PAUSE_EVERY {
            let end = self.now.after(self.pauses.length);
            self.batching.until = self.batching.until.max(end);
            self.batching.expected = usize::MAX;
        }
    }

    /// Repeats a put with unknown outcome when its delay is over.
    pub(super) fn scan_put(&mut self) {
        if let Some(put) = &self.writing
            && matches!(put.state, PutState::Again(at) if at <= self.now)
        {
            self.send_put();
        }
    }
}

/// Largest number of updates that are submitted for evaluation. The driver limits the bytes of their results.
const EVALUATIONS: usize = 16;
/// A put waits for further updates if the last group had at least `MIN_RECORDS` records and its put took at least
/// `MIN_PUT`. The wait is half the duration of that put, and at most `MAX_WAIT`.
const MIN_RECORDS: usize = 8;
const MIN_PUT: Duration = Duration::from_millis(4);
const MAX_WAIT: Duration = Duration::from_millis(16);
/// Interval between pauses for silent servers; shortest and longest pause.
const PAUSE_EVERY: Duration = Duration::from_secs(1);
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));
/// Answer to an update that is too large for any group.
const TOO_LARGE: &str = "the changes are too large for one group";
