//! Simulated clients. They send queries and updates, and retry an update with the same key until its outcome is known.

use super::oracle::{Ack, ReadAnswer};
use super::server::Server;
use super::shards::NO_HOLDER;
use super::state::CONSTANT;
use super::world::{MS, S, ScheduledEvent, World};
use crate::machine::event::{Consistency, Outcome, Refusal};
use crate::machine::group::{Blob, RequestKey};

/// The state of an update at its client.
#[derive(Clone, Debug)]
pub(super) struct Update {
    pub key: RequestKey,
    pub body: Blob,
    first: u64,
    pub attempt: u32,
    pub attached: Attached,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Attached {
    /// The client waits before the next attempt.
    Waiting,
    To(usize),
    Done,
    GivenUp,
}

/// A query of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub server: usize,
    pub start: u64,
    pub asked: u64,
    pub consistency: Consistency,
    pub refused: Option<Refusal>,
    pub answered: bool,
    /// True if the query was sent after all faults had ended, so that it must be answered.
    last: bool,
}

/// Time after which a client stops retrying an update, in microseconds.
const PATIENCE: u64 = 30 * S;

impl World<'_> {
    fn some_living(&mut self) -> Option<usize> {
        let living: Vec<usize> = (0..self.servers.len())
            .filter(|index| self.servers[*index].machine.is_some())
            .collect();
        let at = self.random.below(living.len() as u64) as usize;
        living.get(at).copied()
    }

    pub fn make_update(&mut self) {
        if self.now >= self.until {
            return;
        }
        self.new_update();
        let time = self.random.delay(1, self.fault_schedule.updates * 3);
        self.after(time, ScheduledEvent::MakeUpdate);
    }

    fn new_update(&mut self) {
        let number = self.updates.len() as u128 + 1;
        // Register 4 does not exist; an update of it is rejected.
        let mut register = self.random.below(41) as u8 / 10;
        if self.shards.is_some() && self.random.chance(40) {
            register |= CONSTANT;
        }
        let size = self.random.delay(1, 120) as usize;
        let mut body = vec![register; 1];
        body.resize(size, 0);
        self.updates.push(Update {
            key: RequestKey(number),
            body: body.into(),
            first: self.now,
            attempt: 0,
            attached: Attached::Waiting,
        });
        self.send_update(number as usize - 1);
    }

    pub fn send_update(&mut self, index: usize) {
        let now = self.now;
        if self.updates[index].attached != Attached::Waiting {
            return;
        }
        if now - self.updates[index].first > PATIENCE {
            self.updates[index].attached = Attached::GivenUp;
            return;
        }
        let Some(server) = self.some_living() else {
            return self.after(200 * MS, ScheduledEvent::Send(index));
        };
        let update = &mut self.updates[index];
        update.attempt += 1;
        update.attached = Attached::To(server);
        let attempt = update.attempt;
        let time = self.random.between(50, 2 * MS);
        self.after(time, ScheduledEvent::Ask(server, index, attempt));
        let patience = match self.random.chance(20) {
            true => self.random.between(100 * MS, 2 * S),
            false => 12 * S,
        };
        self.after(patience, ScheduledEvent::TimeOut(index, attempt));
    }

    pub fn time_out(&mut self, index: usize, attempt: u32) {
        let update = &mut self.updates[index];
        if update.attempt == attempt && matches!(update.attached, Attached::To(_)) {
            update.attached = Attached::Waiting;
            self.send_update(index);
        }
    }

    /// Closes the clients' connections to a server that crashed.
    pub fn lose_clients(&mut self, server: usize) {
        for index in 0..self.updates.len() {
            if self.updates[index].attached == Attached::To(server) {
                self.updates[index].attached = Attached::Waiting;
                let time = self.random.between(50 * MS, 500 * MS);
                self.after(time, ScheduledEvent::Send(index));
            }
        }
    }

    /// Handles a server's answer to an update.
    pub fn answered(&mut self, server: usize, key: RequestKey, outcome: Outcome) {
        if Self::is_proposal(key) {
            return;
        }
        let Some(index) = (key.0 as usize)
            .checked_sub(1)
            .filter(|i| *i < self.updates.len())
        else {
            return self.fail(format!("{server} answers an update that was not asked"));
        };
        let number = match &outcome {
            Outcome::Done { number, .. } => *number,
            _ => 0,
        };
        self.note([13, key.0 as u64, number], || {
            format!("client {index}: {outcome:?} by {server}")
        });
        let unknown = matches!(outcome, Outcome::Unknown | Outcome::Missing(_));
        // Another server may have a holder that this one lacks, and execute an earlier attempt.
        let is_local = matches!(&outcome, Outcome::Refused(why) if **why == *NO_HOLDER);
        if !(unknown || is_local && self.updates[index].attempt > 1) {
            let now = self.now;
            let calm = |server: &Server| now.saturating_sub(server.disturbed) >= 3 * S;
            self.history.acks.push(Ack {
                time: now,
                key,
                done: match outcome {
                    Outcome::Done {
                        number,
                        fingerprint,
                        report,
                    } => Some((number, fingerprint, report)),
                    _ => None,
                },
                calm: self.servers.iter().all(calm),
            });
        }
        let update = &mut self.updates[index];
        if update.attached != Attached::To(server) {
            return;
        }
        match unknown {
            true => {
                update.attached = Attached::Waiting;
                self.after(300 * MS, ScheduledEvent::Send(index));
            }
            false => update.attached = Attached::Done,
        }
    }

    pub fn make_query(&mut self) {
        if self.now >= self.until {
            return;
        }
        if let Some(server) = self.some_living() {
            let consistency = match self.random.below(10) {
                0..6 => Consistency::Default,
                6..8 => Consistency::Strict,
                8 => Consistency::AtLeast(self.history.newest_done()),
                _ => Consistency::Any,
            };
            self.new_query(server, consistency, false);
        }
        let time = self.random.delay(1, self.fault_schedule.queries * 3);
        self.after(time, ScheduledEvent::MakeQuery);
    }

    pub fn query_any(&mut self, server: usize) {
        if self.now < self.until && self.servers[server].machine.is_some() {
            self.new_query(server, Consistency::Any, false);
        }
    }

    fn new_query(&mut self, server: usize, consistency: Consistency, last: bool) {
        self.queries.push(Reading {
            server,
            start: 0,
            asked: self.now,
            consistency,
            refused: None,
            answered: false,
            last,
        });
        self.deliver_or_buffer(ScheduledEvent::Query(self.queries.len() - 1));
    }

    /// Handles a server's answer to a query.
    pub fn served(&mut self, index: usize, query: u64) {
        let server = &self.servers[index];
        let (number, digest) = (server.published.0, server.published.1.state.digest());
        let cut_off = server.cut_off;
        let Some(reading) = self.queries.get_mut(query as usize) else {
            return self.fail(format!("{index} answers a query that was not asked"));
        };
        let is_sharded = self.shards.is_some();
        reading.answered = !is_sharded;
        let reading = *reading;
        self.note([14, query, number], || {
            format!(
                "query {query} {:?}: {number} by {index}",
                reading.consistency
            )
        });
        self.history.reads.push(ReadAnswer {
            server: index,
            start: reading.start,
            asked: reading.asked,
            time: self.now,
            consistency: reading.consistency,
            number,
            digest,
            bucket: reading.asked.saturating_sub(cut_off) >= 5 * S,
        });
        if is_sharded {
            let place = self.history.reads.len() - 1;
            self.begin_query(index, query, place);
        }
    }

    /// Sends an update, and a strict query to every server, after all faults have ended.
    pub fn last_requests(&mut self) {
        self.queries.iter_mut().for_each(|query| query.last = false);
        self.new_update();
        for index in 0..self.servers.len() {
            if self.servers[index].member {
                self.new_query(index, Consistency::Strict, true);
                self.new_query(index, Consistency::Default, true);
            }
        }
    }

    /// Fails if one of the requests of [`Self::last_requests`] was not answered.
    pub fn check_last_requests(&mut self) {
        if let Some(query) = self
            .queries
            .iter()
            .find(|query| query.last && !query.answered)
        {
            return self.fail(format!(
                "{} does not answer in the end: {query:?}",
                query.server
            ));
        }
        let waits =
            |update: &Update| matches!(update.attached, Attached::To(_) | Attached::Waiting);
        if let Some(update) = self.updates.iter().find(|update| waits(update)) {
            self.fail(format!("update {:?} has no outcome in the end", update.key));
        }
    }
}
