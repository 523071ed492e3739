//! The simulated world: time, events, servers, bucket and clients.

use super::bucket::{Bucket, Op};
use super::chaos::FaultSchedule;
use super::clients::{Reading, Update};
use super::oracle::History;
use super::server::Server;
use super::shards::{ShardEvent, Shards, Snapshot};
use super::state::{Random, mix};
use super::{Counted, Counts, Fault, Run, Setup};
use crate::machine::event::{Event, Message};
use crate::machine::group::ServerName;
use crate::machine::settings::Settings;
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) const MS: u64 = 1000;
pub(super) const S: u64 = 1_000_000;
/// Id epoch of the simulated log.
pub const EPOCH: u64 = 0xe0;
/// Largest number of servers in a run, including those that have left.
pub(super) const SERVERS: usize = 6;

/// An event that is scheduled for a time.
#[derive(Clone, Debug)]
pub(super) enum ScheduledEvent {
    /// An event for the process of a server that has this start number. A base is accompanied by its store.
    Deliver(usize, u64, Event, Option<Snapshot>),
    /// An event for such a process that is about its shards.
    Shard(usize, u64, ShardEvent),
    /// An evaluation with this ticket has finished at a process of a server.
    Evaluated(usize, u64, u64),
    Message {
        from: usize,
        to: usize,
        start: u64,
        message: Message,
    },
    Wake(usize, u64),
    /// A request arrives at the bucket.
    Arrive {
        server: usize,
        start: u64,
        op: Op,
        answered: bool,
    },
    /// An update arrives at a server.
    Ask(usize, usize, u32),
    /// A client sends an update.
    Send(usize),
    TimeOut(usize, u32),
    /// A query arrives at a server.
    Query(usize),
    /// A client sends a query with [`crate::Consistency::Any`] to a server.
    QueryAny(usize),
    /// Create the next update, and the next query.
    MakeUpdate,
    MakeQuery,
    Chaos,
    Resume(usize),
    Start(usize),
    Leave(usize),
    Merge,
    Peers,
}

pub(super) struct World<'a> {
    pub now: u64,
    pub random: Random,
    pub settings: Settings,
    pub fault: Option<Fault>,
    /// Events by their time and the order in which they were scheduled.
    queue: BTreeMap<(u64, u64), ScheduledEvent>,
    order: u64,
    pub hash: u64,
    pub counts: Counts,
    pub lines: Option<&'a mut Vec<String>>,
    pub servers: Vec<Server>,
    pub names: Vec<ServerName>,
    pub bucket: Bucket,
    pub fault_schedule: FaultSchedule,
    /// None if all servers have the whole store.
    pub shards: Option<Shards>,
    /// Servers at the beginning, and how many of them have each shard.
    pub copies: (usize, usize),
    pub updates: Vec<Update>,
    pub queries: Vec<Reading>,
    pub history: History,
    pub violation: Option<String>,
    /// Time at which faults end.
    pub until: u64,
}

impl<'a> World<'a> {
    pub fn new(seed: u64, setup: Setup, lines: Option<&'a mut Vec<String>>) -> Self {
        let mut random = Random(mix(seed ^ 0x6a69_6e64_6f75));
        let settings = Settings {
            // These values are shorter than the defaults, so that runs of some minutes include trims and pauses longer
            // than `keep`. Requests are remembered for longer than clients retry them and servers hold them.
            keys_for: Duration::from_secs(60),
            keep: Duration::from_secs(40),
            audit_every: Duration::from_secs(10),
            group_bytes: 256,
            span_groups: 4,
            ..Settings::default()
        };
        let fault_schedule = FaultSchedule::new(&mut random);
        let mut world = Self {
            now: 0,
            random,
            settings,
            fault: setup.fault,
            queue: BTreeMap::new(),
            order: 0,
            hash: 0,
            counts: Counts::default(),
            lines,
            servers: Vec::new(),
            names: (0..SERVERS).map(|i| format!("server-{i}").into()).collect(),
            bucket: Bucket::default(),
            until: fault_schedule.length,
            fault_schedule,
            shards: None,
            copies: (1, 1),
            updates: Vec::new(),
            queries: Vec::new(),
            history: History::default(),
            violation: None,
        };
        let count = [1, 2, 3, 3, 3, 4][world.random.below(6) as usize];
        if setup.shards {
            let shards = world.random.between(1, 4) as usize;
            world.shards = Some(Shards::new(shards));
            let replicas = if world.random.chance(80) { 2 } else { 1 };
            world.copies = (count, replicas.min(count));
        }
        for _ in 0..count {
            world.add_server(true);
        }
        world.after(300 * MS, ScheduledEvent::MakeUpdate);
        world.after(300 * MS, ScheduledEvent::MakeQuery);
        world.after(S, ScheduledEvent::Chaos);
        world.after(2 * S, ScheduledEvent::Merge);
        world.after(5 * S, ScheduledEvent::Peers);
        world
    }

    pub fn at(&mut self, at: u64, scheduled: ScheduledEvent) {
        self.order += 1;
        self.queue.insert((at.max(self.now), self.order), scheduled);
    }

    pub fn after(&mut self, time: u64, scheduled: ScheduledEvent) {
        self.at(self.now + time, scheduled);
    }

    /// Adds an event to the trace and its hash.
    pub fn note(&mut self, numbers: [u64; 3], line: impl FnOnce() -> String) {
        self.hash = mix(self.hash ^ self.now);
        for number in numbers {
            self.hash = mix(self.hash ^ number);
        }
        if let Some(lines) = &mut self.lines {
            let now = self.now;
            lines.push(format!("{:>10.4} {}", now as f64 / S as f64, line()));
        }
    }

    pub fn count(&mut self, what: Counted) {
        self.counts[what] += 1;
    }

    pub fn fail(&mut self, why: String) {
        self.note([1, 1, 1], || format!("VIOLATION {why}"));
        self.violation.get_or_insert(why);
    }

    /// Runs the simulation to its end and checks the history.
    pub fn play(mut self) -> Run {
        self.run_until(self.until);
        if self.violation.is_none() {
            self.heal();
            let end = self.now + 20 * S;
            self.run_until(end);
            loop {
                let broken = self.bucket.is_broken();
                self.last_requests();
                let end = self.now + 15 * S;
                self.run_until(end);
                // The last requests may be rejected if a late put restored a lost group only after they were sent. Then
                // send them again.
                if !broken || self.bucket.is_broken() {
                    break;
                }
            }
            self.check_last();
        }
        self.history.log = self.bucket.first_groups();
        self.drop_unanswered();
        let judged = super::oracle::judge(&self.history);
        if let Err(why) = judged {
            self.fail(why);
        }
        self.counts[Counted::Servers] = self.servers.len() as u64;
        self.counts[Counted::Groups] = self.history.log.len() as u64;
        self.counts[Counted::Acknowledged] = self.history.acks.len() as u64;
        self.counts[Counted::Answered] = self.history.reads.len() as u64;
        self.counts[Counted::Trimmed] = self.bucket.trimmed;
        Run {
            trace: self.hash,
            counts: self.counts,
            violation: self.violation,
        }
    }

    fn run_until(&mut self, end: u64) {
        while self.violation.is_none()
            && let Some(next) = self.queue.first_entry()
            && next.key().0 <= end
        {
            self.now = next.key().0;
            let scheduled = next.remove();
            self.happen(scheduled);
        }
        self.now = self.now.max(end);
    }

    fn happen(&mut self, scheduled: ScheduledEvent) {
        self.count(Counted::Events);
        match scheduled {
            ScheduledEvent::Wake(server, at) => self.wake(server, at),
            ScheduledEvent::Deliver(..)
            | ScheduledEvent::Evaluated(..)
            | ScheduledEvent::Shard(..)
            | ScheduledEvent::Message { .. }
            | ScheduledEvent::Ask(..)
            | ScheduledEvent::Query(_) => self.deliver_or_buffer(scheduled),
            ScheduledEvent::Arrive {
                server,
                start,
                op,
                answered,
            } => {
                self.arrive(server, start, op, answered);
            }
            ScheduledEvent::QueryAny(server) => self.query_any(server),
            ScheduledEvent::Send(update) => self.send_update(update),
            ScheduledEvent::TimeOut(update, attempt) => self.time_out(update, attempt),
            ScheduledEvent::MakeUpdate => self.make_update(),
            ScheduledEvent::MakeQuery => self.make_query(),
            ScheduledEvent::Chaos => self.chaos(),
            ScheduledEvent::Resume(server) => self.resume(server),
            ScheduledEvent::Start(server) => self.start(server),
            ScheduledEvent::Leave(server) => {
                let members = self.servers.iter().filter(|server| server.member).count();
                if members > 1 && self.now < self.until && self.is_spare(server) {
                    self.crash(server, true);
                }
            }
            ScheduledEvent::Merge => self.merge(),
            ScheduledEvent::Peers => self.list_peers(),
        }
    }

    /// After faults have ended, checks that every server is up, has applied the whole log, and agrees with the oracle.
    fn check_last(&mut self) {
        let head = self.bucket.newest();
        for index in 0..self.servers.len() {
            let server = &self.servers[index];
            if !server.member {
                continue;
            }
            let gap = server.machine.as_ref().and_then(|machine| machine.gap());
            if gap.is_some() && self.bucket.is_broken() {
                continue;
            }
            let number = server.published.0;
            if server.machine.is_none() || number != head {
                self.fail(format!("{index} ends at {number}, the log at {head}"));
                return;
            }
            if self.shards.is_none() {
                let digest = server.published.1.state.digest();
                self.history.ends.push((index, number, digest));
            }
        }
        if !self.bucket.is_broken() {
            self.check_uploads();
            self.check_last_requests();
        }
    }
}
