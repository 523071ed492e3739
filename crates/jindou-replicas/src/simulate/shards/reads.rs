//! Base data of other servers: for queries, in place or by parts, and for evaluations.

use super::store::{Files, REGISTERS, is_register};
use super::{Counted, Holder, JobMessage, MS, S, ShardEvent, Snapshot, View, World};
use crate::machine::event::{Evaluation, Event};
use crate::simulate::Fault;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Answer to an update that needs a shard which no connected server has.
pub const NO_HOLDER: &[u8] = b"no holder";
/// Interval at which a job looks for holders and answers; time after which another holder is asked as well.
const LOOK: u64 = 200 * MS;
/// Time for which a part waits for its snapshot.
const PART_WAIT: u64 = 100 * MS;
/// Time after which the server of a part counts as dead.
const DEAD: u64 = 2500 * MS;
/// Attempts of a query that runs by parts.
const ATTEMPTS: u32 = 3;
/// Time limits of evaluations and queries.
const EVALUATION: u64 = 3 * S;
const QUERY: u64 = 10 * S;

/// Reads from other servers, for a query or an evaluation.
#[derive(Debug)]
pub struct Job {
    server: usize,
    start: u64,
    purpose: Purpose,
    pub view: Rc<View>,
    snapshot: Snapshot,
    begun: u64,
    attempt: u32,
    attempt_begun: u64,
    /// True if the rows are made by parts.
    by_parts: bool,
    /// Shards whose rows are not here yet.
    missing: BTreeSet<usize>,
    rows: Vec<(u8, u64)>,
    /// Servers that said that they do not have the base.
    refused: BTreeSet<usize>,
}

#[derive(Clone, Copy, Debug)]
enum Purpose {
    /// A query, and the place of its answer in the history.
    Query(u64, usize),
    /// An evaluation of an update of a register.
    Evaluation(u64, u8),
}

impl Job {
    pub fn is_of(&self, server: usize, start: u64) -> bool {
        (self.server, self.start) == (server, start)
    }
}

/// The rows of a shard with their terms. `newest` is what the server has published last.
fn rows_of(
    (view, newest): (&View, &View),
    (shard, files): (usize, &Files),
    fault: Option<Fault>,
) -> Vec<(u8, u64)> {
    let terms = match fault {
        Some(Fault::ReusedWhileRead) => newest,
        _ => view,
    };
    let rows = view.rows(shard, files, fault).into_iter();
    rows.map(|(key, id)| (key, terms.term(id).unwrap_or(0)))
        .collect()
}

impl World<'_> {
    /// Begins to read all registers for a query; its answer is at this place in the history.
    pub fn begin_query(&mut self, index: usize, query: u64, place: usize) {
        let snapshot = self.servers[index].published.1.clone();
        let by_parts = self.random.chance(50);
        if let Some(shards) = &mut self.shards {
            shards.unanswered.insert(place);
        }
        self.begin_job(index, Purpose::Query(query, place), (snapshot, by_parts));
    }

    /// The old value of the register that an update sets is in the head's `state`, or is read; returns false then.
    pub fn is_looked_up(&mut self, index: usize, ticket: u64, body: &[u8]) -> bool {
        let server = &mut self.servers[index];
        let (Some(view), Some(register)) = (server.head.view.clone(), is_register(body)) else {
            return true;
        };
        if let Some(term) = view.changed(register) {
            server.head.state.set(register, term);
            return true;
        }
        let snapshot = server.head.clone();
        let purpose = Purpose::Evaluation(ticket, register);
        self.begin_job(index, purpose, (snapshot, false));
        false
    }

    fn begin_job(
        &mut self,
        index: usize,
        purpose: Purpose,
        (snapshot, by_parts): (Snapshot, bool),
    ) {
        let (now, start) = (self.now, self.servers[index].start);
        let (Some(shards), Some(view)) = (&mut self.shards, snapshot.view.clone()) else {
            return;
        };
        let number = shards.number();
        let missing = match purpose {
            Purpose::Query(..) => (0..shards.count).collect(),
            Purpose::Evaluation(_, register) => {
                BTreeSet::from([super::store::shard_of(register, shards.count)])
            }
        };
        let job = Job {
            server: index,
            start,
            purpose,
            view,
            snapshot,
            begun: now,
            attempt: 0,
            attempt_begun: now,
            by_parts,
            missing,
            rows: Vec::new(),
            refused: BTreeSet::new(),
        };
        shards.jobs.insert(number, job);
        self.look_at_job(number);
    }

    /// Asks for what is missing, or ends the job.
    pub fn look_at_job(&mut self, number: u64) {
        let now = self.now;
        let Some(shards) = &mut self.shards else {
            return;
        };
        let Some(job) = shards.jobs.get_mut(&number) else {
            return;
        };
        let index = job.server;
        let limit = match job.purpose {
            Purpose::Query(..) => QUERY,
            Purpose::Evaluation(..) => EVALUATION,
        };
        if now - job.begun >= limit {
            return self.give_up(number);
        }
        if job.by_parts && now - job.attempt_begun >= DEAD {
            job.attempt += 1;
            if job.attempt == ATTEMPTS {
                return self.give_up(number);
            }
            self.counts[Counted::RunAgain] += 1;
            if self.fault != Some(Fault::RowsOfFirstRun) {
                job.rows.clear();
            }
            (job.attempt_begun, job.missing) = (now, (0..shards.count).collect());
        }
        let holder = &shards.holders[index];
        let (attempt, base) = (job.attempt, job.view.base.number);
        let newest = self.servers[index].published.1.view.clone();
        let newest = newest.unwrap_or_else(|| Rc::clone(&job.view));
        let sends_parts = job.by_parts && job.attempt_begun == now;
        let mut asked = Vec::new();
        for shard in job.missing.clone() {
            let kept = match job.purpose {
                Purpose::Evaluation(..) => holder.lookups.get(&shard),
                Purpose::Query(..) => None,
            };
            let is_of_base = |of: u64| of == base || self.fault == Some(Fault::LookupsKept);
            let kept = kept
                .filter(|(of, _)| is_of_base(*of))
                .map(|(_, files)| files);
            if let Some(files) = job.view.base.files[shard].as_ref().or(kept) {
                job.missing.remove(&shard);
                job.rows
                    .extend(rows_of((&job.view, &newest), (shard, files), self.fault));
                continue;
            }
            let has = |what: &super::Announcement| what.open.contains(&(shard as u32, base));
            let holders = holder.connected(now).filter(|(_, what)| has(what));
            let holders: Vec<usize> = holders.map(|(peer, _)| peer).collect();
            let fit = holders.iter().filter(|peer| !job.refused.contains(peer));
            let fit: Vec<usize> = fit.copied().collect();
            let fit = if fit.is_empty() { holders } else { fit };
            let at = self.random.below(fit.len() as u64) as usize;
            asked.extend(fit.get(at).map(|peer| (*peer, shard)));
        }
        let from = index;
        let snapshot = job.snapshot.state.count;
        let by_parts = job.by_parts;
        for (peer, shard) in asked {
            let message = JobMessage {
                job: number,
                from,
                attempt,
                shard,
            };
            let event = match by_parts {
                true if !sends_parts => continue,
                true => ShardEvent::AskPart(message, snapshot, now + PART_WAIT),
                false => ShardEvent::Ask(message, base),
            };
            self.count(match by_parts {
                true => Counted::Parts,
                false => Counted::BaseRequests,
            });
            self.send_to_peer(from, peer, event);
        }
        match self.end_job(number) {
            true => {}
            false => self.again(index, LOOK, ShardEvent::Look(number)),
        }
    }

    /// Answers a request of another server.
    pub fn answer_peer(&mut self, index: usize, event: ShardEvent) {
        let (now, fault) = (self.now, self.fault);
        let Some((server, holder)) = self.parts(index) else {
            return;
        };
        let (ShardEvent::Ask(asked, _) | ShardEvent::AskPart(asked, ..)) = event else {
            return;
        };
        let (shard, message) = (
            asked.shard,
            JobMessage {
                from: index,
                ..asked
            },
        );
        let answer = match event {
            ShardEvent::AskPart(_, number, until) => {
                let found = holder.state_of(number, fault, server.snapshots());
                if found.is_none() && now < until {
                    return self.again(index, 20 * MS, event);
                }
                let newest = server.published.1.view.as_deref();
                let found = found.as_deref().and_then(|view| {
                    let files = view.base.files[shard].as_ref()?;
                    Some(rows_of((view, newest?), (shard, files), fault))
                });
                ShardEvent::Rows(message, found)
            }
            ShardEvent::Ask(_, base) => {
                let of = match fault {
                    Some(Fault::AnsweredFromNewest) => holder.newest(),
                    _ => holder.served.get(&base),
                };
                let found = of.and_then(|base| base.files[shard].clone());
                ShardEvent::Answer(message, found)
            }
            _ => return,
        };
        self.send_to_peer(index, asked.from, answer);
    }

    pub fn take_answer(&mut self, event: ShardEvent) {
        let fault = self.fault;
        let Some(shards) = &mut self.shards else {
            return;
        };
        let (ShardEvent::Answer(message, _) | ShardEvent::Rows(message, _)) = event else {
            return;
        };
        let JobMessage {
            job,
            from,
            attempt,
            shard,
        } = message;
        let Some(of) = shards.jobs.get_mut(&job).filter(|of| of.attempt == attempt) else {
            return;
        };
        match event {
            ShardEvent::Answer(_, found) if !of.by_parts => match found {
                Some(files) if of.missing.remove(&shard) => {
                    let newest = self.servers[of.server].published.1.view.as_ref();
                    let newest = newest.unwrap_or(&of.view);
                    of.rows
                        .extend(rows_of((&of.view, newest), (shard, &files), fault));
                    if let Purpose::Evaluation(..) = of.purpose {
                        let found = (of.view.base.number, files);
                        shards.holders[of.server].lookups.insert(shard, found);
                    }
                }
                Some(_) => {}
                None => {
                    of.refused.insert(from);
                    self.counts[Counted::BasesRefused] += 1;
                    return self.must_have_been_held(job, from);
                }
            },
            ShardEvent::Rows(_, found) if of.by_parts => match found {
                Some(rows) if of.missing.remove(&shard) => of.rows.extend(rows),
                Some(_) => {}
                None => {
                    // The query runs in place.
                    (of.by_parts, of.missing) = (false, (0..shards.count).collect());
                    of.rows.clear();
                    return self.look_at_job(job);
                }
            },
            _ => return,
        }
        self.end_job(job);
    }

    /// A base may only be refused by a server that could not know that it is read, or has kept it for long.
    fn must_have_been_held(&mut self, number: u64, by: usize) {
        let Some(job) = self
            .shards
            .as_ref()
            .and_then(|shards| shards.jobs.get(&number))
        else {
            return;
        };
        let calm = job.begun.saturating_sub(13 * S);
        let is_calm = |index: usize| {
            let server = &self.servers[index];
            server.disturbed.max(server.cut_off) < calm
        };
        if is_calm(job.server) && is_calm(by) {
            let (server, base) = (job.server, job.view.base.number);
            self.fail(format!(
                "{by} does not have base {base} any more, which {server} reads"
            ));
        }
    }

    /// Ends a job whose rows are all here.
    fn end_job(&mut self, number: u64) -> bool {
        let Some(shards) = &mut self.shards else {
            return true;
        };
        match shards.jobs.get(&number) {
            None => return true,
            Some(job) if !job.missing.is_empty() => return false,
            Some(_) => {}
        }
        let Some(job) = shards.jobs.remove(&number) else {
            return true;
        };
        let index = job.server;
        if self.servers[index].start != job.start || self.servers[index].machine.is_none() {
            return true;
        }
        let mut terms: BTreeMap<u8, u64> = BTreeMap::new();
        for (key, term) in &job.rows {
            let is_new = terms.insert(*key, *term).is_none();
            if !is_new || *term == 0 {
                let what = if is_new { "no term" } else { "two rows" };
                self.fail(format!("{index} reads {what} of key {key} in {job:?}"));
            }
        }
        match job.purpose {
            Purpose::Evaluation(ticket, register) => {
                let is_current = self.servers[index].is_evaluating(ticket);
                if is_current {
                    let term = terms.get(&register).copied().unwrap_or(0);
                    self.servers[index].head.state.set(register, term);
                    self.finish_evaluation(index);
                }
            }
            Purpose::Query(query, place) => {
                let mut state = job.snapshot.state;
                let term = |key: u8| terms.get(&key).copied().unwrap_or(0);
                for register in 0..REGISTERS {
                    let other = term(register + REGISTERS);
                    state.set(register, term(register));
                    if term(register) != other {
                        self.fail(format!("{index} reads half of an update in {job:?}"));
                    }
                }
                if job.rows.len() as i64 != job.view.keys() {
                    let keys = job.view.keys();
                    self.fail(format!("{index} counts {keys} keys in {job:?}"));
                }
                if let Some(shards) = &mut self.shards {
                    shards.unanswered.remove(&place);
                }
                self.history.reads[place].digest = state.digest();
                self.queries[query as usize].answered = true;
            }
        }
        true
    }

    fn give_up(&mut self, number: u64) {
        let Some(job) = self
            .shards
            .as_mut()
            .and_then(|shards| shards.jobs.remove(&number))
        else {
            return;
        };
        self.count(Counted::Unavailable);
        let index = job.server;
        if let Purpose::Evaluation(ticket, _) = job.purpose
            && self.servers[index].start == job.start
            && self.servers[index].is_evaluating(ticket)
        {
            self.servers[index].next_evaluation();
            self.begin_evaluation(index);
            let refused = Evaluation::Refused(NO_HOLDER.into());
            self.deliver(index, Event::Evaluated(ticket, refused));
        }
    }
}

impl Holder {
    /// The published snapshot with this number, if it is still here.
    fn state_of<'a>(
        &'a self,
        number: u64,
        fault: Option<Fault>,
        mut all: impl Iterator<Item = &'a Snapshot>,
    ) -> Option<Rc<View>> {
        let is_it = |snapshot: &&Snapshot| snapshot.state.count == number;
        let mut published = self.parts.iter().rev().map(|(snapshot, _)| snapshot);
        let found = match fault {
            Some(Fault::PartsReadNewest) => published.next(),
            Some(Fault::HeadIsRead) => all.find(is_it),
            _ => published.find(is_it),
        };
        found.and_then(|snapshot| snapshot.view.clone())
    }
}
