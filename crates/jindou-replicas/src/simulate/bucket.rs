//! The simulated bucket, and requests to it.

use super::Counted;
use super::shards::{Files, Snapshot};
use super::state::Random;
use super::world::{EPOCH, MS, S, ScheduledEvent, World};
use crate::machine::event::{Base, Event, Fetch, Fetched, Listing, PutResult};
use crate::machine::group::{Blob, Group};
use crate::machine::names::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Time after which a driver treats a request as timed out, in microseconds.
const TIME_OUT: u64 = 2 * S;

/// A request to the bucket.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Put(u64, u32, Blob),
    List(u64, u64, bool),
    Fetch(Fetch),
    Span(u64, u64, Blob),
    Upload(Base, Snapshot),
    /// Uploads the files of a shard of the base with this group.
    Shard(u64, usize, Rc<Files>),
    Download,
    Trim(u64),
}

impl Op {
    /// The event for an unknown outcome of the request; `None` if the machine does not wait for an outcome.
    pub(super) fn unknown(&self) -> Option<Event> {
        match self {
            Self::Put(number, attempt, _) => {
                Some(Event::Put(*number, *attempt, PutResult::Unknown))
            }
            Self::List(listing_id, ..) => Some(Event::Listed(*listing_id, None)),
            Self::Fetch(fetch) => Some(Event::Fetched(*fetch, Fetched::Unknown)),
            Self::Download => Some(Event::Downloaded(None)),
            Self::Span(..) | Self::Upload(..) | Self::Shard(..) | Self::Trim(_) => None,
        }
    }
}

/// The bucket's objects.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    groups: BTreeMap<u64, Blob>,
    spans: BTreeMap<(u64, u64), Blob>,
    bases: BTreeMap<u64, (Base, Snapshot)>,
    /// The first object created under each group's name, with its creation time.
    first: BTreeMap<u64, (Blob, u64)>,
    pub trimmed: u64,
    /// Highest group number that an entry in `servers/` mentions.
    pub entries: u64,
    /// Groups that the bucket has lost and that were not restored.
    pub lost: BTreeSet<u64>,
    losses: u64,
}

impl Bucket {
    fn put(&mut self, number: u64, bytes: &Blob, now: u64) -> PutResult {
        if self.groups.contains_key(&number) {
            return PutResult::Exists;
        }
        self.groups.insert(number, bytes.clone());
        let first = self.first.entry(number);
        let (first, _) = first.or_insert_with(|| (bytes.clone(), now));
        // A late put of a different group does not restore the lost group.
        if *first == *bytes {
            self.lost.remove(&number);
        }
        PutResult::Created
    }

    pub fn newest(&self) -> u64 {
        self.first.last_key_value().map_or(0, |(number, _)| *number)
    }

    pub fn first_groups(&mut self) -> BTreeMap<u64, (Blob, u64)> {
        std::mem::take(&mut self.first)
    }

    /// True if the bucket has ever lost a group.
    pub fn has_lost(&self) -> bool {
        self.losses > 0
    }

    pub fn has_base(&self, number: u64) -> bool {
        self.bases.contains_key(&number)
    }

    fn second_base(&self) -> u64 {
        self.bases.keys().rev().nth(1).copied().unwrap_or(0)
    }

    /// True if a lost group is in no base and no span, so that servers without it cannot read it.
    pub fn is_broken(&self) -> bool {
        let base = self.bases.last_key_value().map_or(0, |(number, _)| *number);
        let in_span = |lost: u64| self.spans.keys().any(|(a, b)| (*a..=*b).contains(&lost));
        (self.lost.iter()).any(|lost| *lost > base && !in_span(*lost))
    }

    /// Loses a group that was created before `before` and whose loss servers can detect. Returns its number. The newest
    /// group is lost only if all running servers know that it existed (`newest_known`), since they rarely read the
    /// entries in `servers/`.
    pub fn lose(&mut self, random: &mut Random, before: u64, newest_known: u64) -> Option<u64> {
        let newest = *self.groups.last_key_value()?.0;
        let version = |number: u64| {
            let bytes = self.groups.get(&number)?;
            Some(Group::read(EPOCH, bytes).ok()?.version())
        };
        let may = |number: &u64| {
            let old = self.first.get(number).is_some_and(|(_, at)| *at < before);
            old && match *number == newest {
                true => self.entries >= newest && newest_known >= newest,
                false => version(number + 1) == Some(2),
            }
        };
        let candidates: Vec<u64> = self.groups.keys().copied().filter(may).collect();
        let at = random.below(candidates.len() as u64) as usize;
        // The maximum of two random positions prefers new groups, which no base contains yet.
        let at = at.max(random.below(candidates.len() as u64) as usize);
        let number = *candidates.get(at)?;
        self.groups.remove(&number);
        self.lost.insert(number);
        self.losses += 1;
        Some(number)
    }

    /// Lists the bucket. Without `all`, groups are requested by name one after another where the driver would do so.
    fn list(&self, after: u64, all: bool) -> Listing {
        let near = !all && self.bases.keys().all(|base| *base <= after);
        let mut end = after;
        while self.groups.contains_key(&(end + 1)) {
            end += 1;
        }
        let groups = self.groups.range(after.saturating_add(1)..);
        let groups = groups.take_while(|(number, _)| !near || **number <= end);
        let spans = self.spans.keys().filter(|(_, last)| *last > after && !near);
        let names = (groups.map(|(n, _)| Name::Group(*n)))
            .chain(spans.map(|(first, last)| Name::Span(*first, *last)));
        Listing {
            log: names
                .map(|name| name.text(EPOCH))
                .chain(["log/other".to_owned()])
                .collect(),
            bases: self
                .bases
                .keys()
                .map(|n| Name::Base(*n).text(EPOCH))
                .collect(),
        }
    }

    fn fetch(&self, fetch: Fetch) -> Fetched {
        let bytes = match fetch {
            Fetch::Group(number) => self.groups.get(&number),
            Fetch::Span(first, last) => self.spans.get(&(first, last)),
        };
        bytes.map_or(Fetched::Missing, |bytes| Fetched::Bytes(bytes.clone()))
    }

    /// Deletes up to `most` groups that end at or before `number`, in ascending order.
    fn trim(&mut self, number: u64, most: usize) {
        let old: Vec<u64> = self
            .groups
            .range(..=number)
            .map(|(n, _)| *n)
            .take(most)
            .collect();
        for number in old {
            self.groups.remove(&number);
            self.trimmed += 1;
        }
        let least = self
            .groups
            .first_key_value()
            .map_or(number + 1, |(n, _)| *n);
        self.spans
            .retain(|(_, last), _| *last > number || *last >= least);
    }
}

impl World<'_> {
    /// Sends a request from a server's driver, with random faults.
    pub fn request(&mut self, server: usize, op: Op) {
        let start = self.servers[server].start;
        let bad = self.fault_schedule.bucket_bad[server] > self.now;
        let fate = match bad {
            true => self.random.below(12),
            false => u64::MAX,
        };
        let time = match bad {
            true => self.random.delay(5 * MS, 1500 * MS),
            false => self.random.delay(3 * MS, 60 * MS),
        };
        let unknown = op.unknown();
        let give_up = |world: &mut Self, after: u64| {
            if let Some(event) = unknown.clone() {
                world.after(after, ScheduledEvent::Deliver(server, start, event, None));
            }
        };
        if self.fault_schedule.bucket_cut[server] > self.now || fate == 0 {
            self.count(Counted::LostRequests);
            return give_up(self, TIME_OUT);
        }
        match fate {
            1 | 2 => self.count(Counted::LostAnswers),
            3 | 4 => self.count(Counted::Late),
            5 | 6 => self.count(Counted::Conflicts),
            7 if matches!(op, Op::Put(..)) => self.count(Counted::Doubled),
            _ => {}
        }
        let arrive = |op, answered| ScheduledEvent::Arrive {
            server,
            start,
            op,
            answered,
        };
        match fate {
            // The response is lost.
            1 | 2 => {
                give_up(self, TIME_OUT);
                self.after(time, arrive(op, false));
            }
            // The request arrives late, rarely very late.
            3 | 4 => {
                give_up(self, TIME_OUT);
                let late = match self.random.below(8) {
                    0 => self.random.between(20 * S, 100 * S),
                    _ => self.random.between(S, 8 * S),
                };
                self.after(late, arrive(op, false));
            }
            // The response is status 409, whether or not the request is executed.
            5 => give_up(self, time),
            6 => {
                give_up(self, time);
                let late = self.random.delay(0, 500 * MS);
                self.after(late, arrive(op, false));
            }
            // The HTTP client retries: the request arrives twice, and only the second response is received.
            7 if matches!(op, Op::Put(..)) => {
                self.after(time / 2, arrive(op.clone(), false));
                self.after(time, arrive(op, true));
            }
            _ => self.after(time, arrive(op, true)),
        }
    }

    /// Executes a request that arrives at the bucket.
    pub fn arrive(&mut self, server: usize, start: u64, op: Op, answered: bool) {
        let sender = &self.servers[server];
        let lives = sender.machine.is_some() && sender.start == start;
        // A process that crashed may or may not have sent the requests that it had buffered.
        if answered && !lives && self.random.chance(50) {
            return;
        }
        if answered && lives && sender.paused.is_some() && self.random.chance(80) {
            let request = ScheduledEvent::Arrive {
                server,
                start,
                op,
                answered,
            };
            return self.servers[server].outbox.push(request);
        }
        if self.fault_schedule.bucket_cut[server] > self.now {
            if let (true, Some(event)) = (answered, op.unknown()) {
                self.after(
                    TIME_OUT,
                    ScheduledEvent::Deliver(server, start, event, None),
                );
            }
            return;
        }
        let now = self.now;
        let mut store = None;
        let event = match op {
            Op::Put(number, attempt, bytes) => {
                let result = self.bucket.put(number, &bytes, now);
                self.note([8, number, result as u64], || {
                    format!("bucket: put of {number} by {server}: {result:?}")
                });
                Event::Put(number, attempt, result)
            }
            Op::List(listing_id, after, all) => {
                Event::Listed(listing_id, Some(self.bucket.list(after, all)))
            }
            Op::Fetch(fetch) => Event::Fetched(fetch, self.bucket.fetch(fetch)),
            Op::Span(first, last, bytes) => {
                self.bucket.spans.entry((first, last)).or_insert(bytes);
                return;
            }
            Op::Shard(group, shard, files) => return self.shard_arrived((group, shard), files),
            Op::Upload(base, snapshot) => {
                let number = base.number;
                self.note([9, number, 0], || {
                    format!("bucket: base {number} by {server}")
                });
                self.bucket.bases.entry(number).or_insert((base, snapshot));
                Event::Uploaded(number)
            }
            Op::Download => {
                let newest = self.bucket.bases.last_key_value();
                store = newest.map(|(_, (_, snapshot))| snapshot.clone());
                Event::Downloaded(newest.map(|(_, (base, _))| base.clone()))
            }
            Op::Trim(number) => {
                let most = match self.random.chance(70) {
                    true => usize::MAX,
                    false => self.random.below(6) as usize,
                };
                self.note([10, number, most as u64], || {
                    format!("bucket: trimmed to {number} by {server}, at most {most}")
                });
                // Servers that are behind rely on this limit. It is checked here because a violation rarely causes a
                // wrong answer (in one of thousands of seeds): a put would have to create exactly the last trimmed
                // name, for a group of version 1.
                if number > self.bucket.second_base() {
                    self.fail(format!(
                        "{server} trims to {number}, after the second newest base"
                    ));
                }
                return self.bucket.trim(number, most);
            }
        };
        if answered {
            let time = self.random.delay(MS, 40 * MS);
            self.after(time, ScheduledEvent::Deliver(server, start, event, store));
        }
    }
}
