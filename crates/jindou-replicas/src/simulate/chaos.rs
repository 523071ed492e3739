//! Faults, and the simulated network between servers.

use super::Counted;
use super::server::Server;
use super::state::Random;
use super::world::{MS, S, SERVERS, ScheduledEvent, World};
use crate::machine::event::Message;
use crate::machine::group::ServerName;

/// End times of the current faults, and the random parameters of a run.
#[derive(Debug)]
pub(super) struct FaultSchedule {
    /// For each server, end time of the fault: the bucket is slow, and loses requests and responses.
    pub bucket_bad: [u64; SERVERS],
    /// For each server, end time of the fault: the bucket cannot be reached.
    pub bucket_cut: [u64; SERVERS],
    /// For each sender and receiver, end time of the fault: messages are slow, and some are lost.
    bad: [[u64; SERVERS]; SERVERS],
    /// For each sender and receiver, end time of the fault: all messages are lost.
    cut: [[u64; SERVERS]; SERVERS],
    /// For each server, if set: during its next put, the server will be paused for this time.
    pub ambush: [Option<u64>; SERVERS],
    /// Longest interval between two merges.
    pub merges: u64,
    /// Duration of the run.
    pub length: u64,
    /// True if pauses may be longer than `keep`.
    pub long_pauses: bool,
    /// Mean interval between two faults.
    every: u64,
    /// Interval between two updates, and between two queries.
    pub updates: u64,
    pub queries: u64,
    /// True if the bucket loses groups in this run.
    loses: bool,
    /// Time until which some server reads only group version 1.
    pub upgraded: u64,
}

impl FaultSchedule {
    pub fn new(random: &mut Random) -> Self {
        let long_pauses = random.chance(30);
        let fair = random.chance(10);
        let every = match (fair, long_pauses) {
            (true, _) => u64::MAX / 4,
            (_, true) => random.between(3 * S, 20 * S),
            _ => random.between(S, 6 * S),
        };
        let length = match long_pauses {
            true => random.between(120 * S, 240 * S),
            false => random.between(15 * S, 40 * S),
        };
        Self {
            bucket_bad: [0; SERVERS],
            bucket_cut: [0; SERVERS],
            bad: [[0; SERVERS]; SERVERS],
            cut: [[0; SERVERS]; SERVERS],
            ambush: [None; SERVERS],
            merges: match random.chance(40) {
                true => S,
                false => 8 * S,
            },
            length,
            long_pauses,
            every,
            updates: match long_pauses {
                true => random.between(500 * MS, 2 * S),
                false => random.between(20 * MS, 500 * MS),
            },
            queries: match long_pauses {
                true => random.between(500 * MS, 2 * S),
                false => random.between(10 * MS, 300 * MS),
            },
            loses: random.chance(25),
            upgraded: match random.chance(50) {
                true => 0,
                false => random.below(length),
            },
        }
    }
}

impl FaultSchedule {
    pub fn is_cut(&self, from: usize, to: usize, now: u64) -> bool {
        self.cut[from][to] > now
    }

    pub fn is_bad(&self, from: usize, to: usize, now: u64) -> bool {
        self.bad[from][to] > now
    }
}

impl World<'_> {
    fn some_server(&mut self) -> usize {
        self.random.below(self.servers.len() as u64) as usize
    }

    fn disturb(&mut self, index: usize, until: u64) {
        let server = &mut self.servers[index];
        server.disturbed = server.disturbed.max(until);
    }

    /// Starts a random fault.
    pub fn chaos(&mut self) {
        if self.now >= self.until || self.fault_schedule.every > self.until {
            return;
        }
        let time = self.random.between(
            self.fault_schedule.every / 2,
            self.fault_schedule.every * 3 / 2,
        );
        self.after(time, ScheduledEvent::Chaos);
        let index = self.some_server();
        let other = self.some_server();
        let length = self.random.delay(500 * MS, 15 * S);
        let until = self.now + length;
        if self.fault_schedule.loses && self.random.chance(30) {
            self.lose();
        }
        match self.random.below(20) {
            0..3 => {
                self.crash(index, false);
                if self.random.chance(30) {
                    self.count(Counted::Emptied);
                    self.servers[index].disk = None;
                }
                if self.shards.is_some() && self.random.chance(20) {
                    self.add_shard(index);
                }
                let time = self.random.delay(100 * MS, 10 * S);
                self.after(time, ScheduledEvent::Start(index));
            }
            3..7 => {
                let time = match self.fault_schedule.long_pauses && self.random.chance(80) {
                    true => self.random.between(45 * S, 110 * S),
                    false => self.random.delay(100 * MS, 20 * S),
                };
                match self.random.chance(50) {
                    true => self.pause(index, time),
                    false => self.fault_schedule.ambush[index] = Some(time),
                }
            }
            7..9 => {
                // The link is cut in one direction only.
                self.count(Counted::CutOneWay);
                self.fault_schedule.cut[index][other] = until;
                self.disturb(index, until);
                self.disturb(other, until);
            }
            9..11 => {
                self.count(Counted::CutOff);
                for other in 0..self.servers.len() {
                    self.fault_schedule.cut[index][other] = until;
                    self.fault_schedule.cut[other][index] = until;
                    self.disturb(other, until);
                }
                self.disturb(index, until);
            }
            11..13 => {
                self.count(Counted::SlowLinks);
                for other in 0..self.servers.len() {
                    self.fault_schedule.bad[index][other] = until;
                    self.fault_schedule.bad[other][index] = until;
                    self.disturb(other, until);
                }
            }
            13 => self.cut_bucket(index, until),
            14 => {
                for index in 0..self.servers.len() {
                    self.cut_bucket(index, until);
                }
            }
            15..18 => {
                for index in 0..self.servers.len() {
                    if self.random.chance(60) {
                        self.count(Counted::BucketBad);
                        self.fault_schedule.bucket_bad[index] = until + length;
                        let server = &mut self.servers[index];
                        server.cut_off = server.cut_off.max(until + length);
                    }
                }
            }
            18 => {
                let had = self.servers.len();
                self.add_server(false);
                self.counts[Counted::Joined] += (self.servers.len() - had) as u64;
            }
            _ => {
                if self.servers[index].machine.is_some() && self.servers[index].paused.is_none() {
                    self.deliver(index, crate::machine::event::Event::Drain);
                    self.after(S, ScheduledEvent::Leave(index));
                }
            }
        }
        self.note([11, index as u64, other as u64], || {
            format!("trouble for {index} and {other}, {} ms", length / MS)
        });
    }

    /// Makes the bucket lose a group. Very recent groups are never lost, since a server that puts the same number might
    /// not know of them, and the loss could not be detected.
    fn lose(&mut self) {
        let before = self.now.saturating_sub(6 * S);
        let machines = self
            .servers
            .iter()
            .filter_map(|server| server.machine.as_ref());
        let newest_known = machines
            .map(|machine| machine.newest_known())
            .min()
            .unwrap_or(0);
        if let Some(number) = self.bucket.lose(&mut self.random, before, newest_known) {
            self.count(Counted::Lost);
            self.note([16, number, 0], || format!("bucket: lost group {number}"));
        }
    }

    fn cut_bucket(&mut self, index: usize, until: u64) {
        self.count(Counted::BucketCut);
        self.fault_schedule.bucket_cut[index] = until;
        let server = &mut self.servers[index];
        server.cut_off = server.cut_off.max(until);
    }

    /// Ends all faults.
    pub fn heal(&mut self) {
        let now = self.now;
        self.note([12, 0, 0], || "all trouble ends".to_owned());
        let fault_schedule = &mut self.fault_schedule;
        fault_schedule.bucket_bad = [now; SERVERS];
        fault_schedule.bucket_cut = [now; SERVERS];
        fault_schedule.bad = [[now; SERVERS]; SERVERS];
        fault_schedule.cut = [[now; SERVERS]; SERVERS];
        fault_schedule.ambush = [None; SERVERS];
        for index in 0..self.servers.len() {
            let server: &mut Server = &mut self.servers[index];
            server.disturbed = server.disturbed.min(now);
            server.cut_off = server.cut_off.min(now);
            if server.paused.is_some() {
                server.paused = Some(now);
            }
            self.resume(index);
            self.start(index);
        }
    }

    pub fn send_message(&mut self, from: usize, to: &ServerName, message: Message) {
        let Some(to) = self.names.iter().position(|name| name == to) else {
            return;
        };
        let now = self.now;
        let lost = self.fault_schedule.bad[from][to] > now && self.random.chance(25);
        let Some(server) = self.servers.get(to) else {
            return;
        };
        if server.machine.is_none() || self.fault_schedule.cut[from][to] > now || lost {
            self.count(Counted::LostMessages);
            return;
        }
        let start = server.start;
        let time = match self.fault_schedule.bad[from][to] > now {
            true => self.random.delay(MS, 3 * S),
            false => self.random.delay(100, 60 * MS),
        };
        self.after(
            time,
            ScheduledEvent::Message {
                from,
                to,
                start,
                message,
            },
        );
    }
}
