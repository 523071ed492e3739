//! Servers that each have some shards of the store.
//!
//! The machine knows nothing of shards, and neither do the rest of the world and the oracle: an answer is a hash of all
//! registers, whichever servers they came from. What a server decides about its bases is [`HeldBases`], as in real
//! servers. The rest is modelled after `jindou/src/replica/shards` and `jindou-cluster/src/servers`:
//!
//! - `store.rs`: bases, patches, terms, and what records do to them;
//! - `reads.rs`: base data from other servers, in place or by parts of queries, for queries and evaluations;
//! - `merges.rs`: both records of a merge, files and results, uploads, downloads;
//! - here: announcements, proposals, the release of bases.
//!
//! Not modelled: contents of messages, hashes of files that were damaged on disk, and transports.

mod merges;
mod reads;
mod store;

pub(super) use reads::NO_HOLDER;
pub(super) use store::{Files, Snapshot};

use super::Counted;
use super::bucket::Op;
use super::world::{MS, S, ScheduledEvent, World};
use crate::bases::HeldBases;
use crate::machine::event::{Action, Base, Event};
use crate::machine::group::{Request, RequestKey};
use merges::Merge;
use reads::Job;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;
use store::{FREED, MERGE_COMMITTED, MERGE_STARTED, NOTHING, ShardResult, ShardedBase, View};

/// Time between two announcements, and the silence after which a server counts as not connected.
const BEAT: u64 = 500 * MS;
const SILENCE: u64 = 2500 * MS;
/// Time for which parts of queries find a snapshot after the next was published.
const KEPT: u64 = 2 * S;
/// Longest time for which a replaced base is kept.
const PATIENCE: Duration = Duration::from_secs(30);

/// State of all servers together, and what only the simulation knows.
#[derive(Debug)]
pub(super) struct Shards {
    count: usize,
    holders: Vec<Holder>,
    /// Results of merges by their hash. Records have hashes only.
    results: BTreeMap<u64, ShardResult>,
    /// Result of each shard of each base, at the first server that has it.
    first: BTreeMap<(u64, usize), u64>,
    jobs: BTreeMap<u64, Job>,
    /// Numbers of jobs, announcements and proposals.
    last: u64,
    /// Queries in the history that have no result.
    unanswered: BTreeSet<usize>,
    /// Shards in the bucket, by group.
    uploaded: BTreeMap<(u64, usize), Rc<Files>>,
}

/// A server's shards.
#[derive(Debug, Default)]
struct Holder {
    held: Vec<usize>,
    /// Results of the own shards of the base on disk.
    results: Vec<(usize, u64)>,
    bases: HeldBases,
    served: BTreeMap<u64, Rc<ShardedBase>>,
    /// The merge whose files are being written, or written and not complete.
    merge: Option<Merge>,
    /// A merge that is complete and not committed.
    done: Option<(Rc<View>, Rc<ShardedBase>)>,
    /// The last merge that the log committed, with the results of all shards.
    committed: (u64, Vec<u64>),
    /// The other servers' last announcements.
    peers: BTreeMap<usize, Seen>,
    announced: (u64, Announcement),
    /// Base data that evaluations read from other servers, by shard, with the base.
    lookups: BTreeMap<usize, (u64, Rc<Files>)>,
    /// Published snapshots, and when they were replaced.
    parts: VecDeque<(Snapshot, Option<u64>)>,
    /// Actions on the store that wait for the files of a merge.
    waiting: VecDeque<Action>,
    proposed: u64,
    /// The base after whose merge terms were freed.
    freed: u64,
}

/// As `Announcement` of `jindou-cluster`, with the results that peers would request.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Announcement {
    oldest_in_use: u64,
    open: Vec<(u32, u64)>,
    written: Vec<(u64, usize, u64)>,
}

#[derive(Debug)]
struct Seen {
    at: u64,
    number: u64,
    what: Announcement,
}

/// The job and the shard of a request or an answer, and its sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobMessage {
    job: u64,
    from: usize,
    attempt: u32,
    shard: usize,
}

/// An event of a process that is about its shards.
#[derive(Clone, Debug)]
pub(super) enum ShardEvent {
    Tidy,
    Announced(usize, u64, Announcement),
    /// The files of the base with this number are written.
    Written(u64),
    /// Uploads the shards of the base with this group.
    Upload(u64),
    /// Creates the document of a base.
    Document(Base),
    /// A request for a shard of the base with this number.
    Ask(JobMessage, u64),
    /// A request for the rows that a shard has of the snapshot with this number; the time until which it waits.
    AskPart(JobMessage, u64, u64),
    /// The answers; `None` if the base or the snapshot is not there.
    Answer(JobMessage, Option<Rc<Files>>),
    Rows(JobMessage, Option<Vec<(u8, u64)>>),
    /// Looks how far a job is.
    Look(u64),
}

impl Shards {
    pub fn new(count: usize) -> Self {
        Self {
            count,
            holders: Vec::new(),
            results: BTreeMap::new(),
            first: BTreeMap::new(),
            jobs: BTreeMap::new(),
            last: 0,
            unanswered: BTreeSet::new(),
            uploaded: BTreeMap::new(),
        }
    }

    /// Adds the holder of shards: each shard is at `replicas` of the first `servers`.
    pub fn add(&mut self, (servers, replicas): (usize, usize)) {
        let number = self.holders.len() % servers;
        let held =
            (0..self.count).filter(|s| (s % servers + servers - number) % servers < replicas);
        let mut held: Vec<usize> = held.collect();
        // With fewer shards than servers.
        if held.is_empty() {
            held.push(number % self.count);
        }
        self.holders.push(Holder {
            held,
            ..Holder::default()
        });
    }

    /// The store before the first group at a server.
    fn empty(&self, index: usize) -> Snapshot {
        let base = ShardedBase::empty(self.count).held(&self.holders[index].held);
        Snapshot {
            view: Some(Rc::new(View::new(base))),
            ..Snapshot::default()
        }
    }

    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

impl Holder {
    /// The newest announcement of each connected server.
    fn connected(&self, now: u64) -> impl Iterator<Item = (usize, &Announcement)> {
        let recent = move |seen: &&Seen| now.saturating_sub(seen.at) < SILENCE;
        let all = self.peers.iter();
        all.filter_map(move |(peer, seen)| Some((*peer, &Some(seen).filter(recent)?.what)))
    }

    fn open(&self) -> Vec<(u32, u64)> {
        let bases = self.served.values();
        let one = |base: &Rc<ShardedBase>| {
            let number = base.number;
            let shards = base.shards().map(move |(shard, _)| (shard as u32, number));
            shards.collect::<Vec<_>>()
        };
        bases.flat_map(one).collect()
    }

    fn newest(&self) -> Option<&Rc<ShardedBase>> {
        self.served.last_key_value().map(|(_, base)| base)
    }

    /// True if no connected server with a smaller name has the shard's newest base.
    fn is_first(&self, index: usize, shard: usize, now: u64) -> bool {
        let Some(base) = self.newest().map(|base| (shard as u32, base.number)) else {
            return false;
        };
        let mut others = self.connected(now);
        !others.any(|(peer, what)| peer < index && what.open.contains(&base))
    }
}

impl World<'_> {
    /// Parts of this world for a store in shards.
    fn parts(&mut self, index: usize) -> Option<(&mut super::server::Server, &mut Holder)> {
        let shards = self.shards.as_mut()?;
        Some((&mut self.servers[index], &mut shards.holders[index]))
    }

    pub fn empty_store(&self, index: usize) -> Snapshot {
        (self.shards.as_ref()).map_or_else(Snapshot::default, |shards| shards.empty(index))
    }

    /// Begins the process of a server with the store in its folder.
    pub fn start_shards(&mut self, index: usize) {
        let fault = self.fault;
        let Some((server, holder)) = self.parts(index) else {
            return;
        };
        let Some(view) = &server.published.1.view else {
            return;
        };
        let view = view.opened(view.base.held(&holder.held), fault);
        let base = Rc::clone(&view.base);
        server.published.1.view = Some(Rc::new(view));
        server.head = server.published.1.clone();
        *holder = Holder {
            held: std::mem::take(&mut holder.held),
            results: match base.number {
                0 => Vec::new(),
                _ => std::mem::take(&mut holder.results),
            },
            bases: HeldBases::default().with_fault(fault),
            served: BTreeMap::from([(base.number, base)]),
            ..Holder::default()
        };
        let start = server.start;
        self.published_view(index);
        self.after(0, ScheduledEvent::Shard(index, start, ShardEvent::Tidy));
    }

    /// Sends an event over the connection between two servers.
    fn send_to_peer(&mut self, from: usize, to: usize, event: ShardEvent) {
        if self.fault_schedule.is_cut(from, to, self.now) || self.servers[to].machine.is_none() {
            return self.count(Counted::LostMessages);
        }
        let bad = self.fault_schedule.is_bad(from, to, self.now);
        if bad && self.random.chance(25) {
            return self.count(Counted::LostMessages);
        }
        let start = self.servers[to].start;
        let most = if bad { 3 * S } else { 60 * MS };
        // What is sent again after a connection was lost arrives twice.
        for _ in 0..=u64::from(bad && self.random.chance(10)) {
            let time = self.random.delay(100, most);
            self.after(time, ScheduledEvent::Shard(to, start, event.clone()));
        }
    }

    pub fn handle_shard_event(&mut self, index: usize, event: ShardEvent) {
        self.note([17, index as u64, 0], || format!("{index}: {event:?}"));
        match event {
            ShardEvent::Tidy => self.tidy(index),
            ShardEvent::Announced(from, number, what) => {
                let at = self.now;
                if let Some((_, holder)) = self.parts(index) {
                    let seen = holder.peers.get(&from);
                    if seen.is_none_or(|seen| seen.number < number) {
                        holder.peers.insert(from, Seen { at, number, what });
                    }
                }
                self.complete_merge(index);
            }
            ShardEvent::Written(number) => self.written(index, number),
            ShardEvent::Upload(group) => self.upload_shards(index, group),
            ShardEvent::Document(base) => self.create_document(index, base),
            ShardEvent::Ask(..) | ShardEvent::AskPart(..) => self.answer_peer(index, event),
            ShardEvent::Answer(..) | ShardEvent::Rows(..) => self.take_answer(event),
            ShardEvent::Look(job) => self.look_at_job(job),
        }
    }

    fn again(&mut self, index: usize, time: u64, event: ShardEvent) {
        let start = self.servers[index].start;
        self.after(time, ScheduledEvent::Shard(index, start, event));
    }

    /// Does the regular work of a server.
    fn tidy(&mut self, index: usize) {
        self.again(index, BEAT / 2, ShardEvent::Tidy);
        let now = self.now;
        if let Some((server, holder)) = self.parts(index) {
            let kept = |at: &Option<u64>| at.is_none_or(|at| now - at < KEPT);
            holder.parts.retain(|(_, replaced)| kept(replaced));
            let local = server.local(now);
            let oldest = holder
                .connected(now)
                .map(|(_, what)| what.oldest_in_use)
                .min();
            let oldest = oldest.unwrap_or(u64::MAX).min(self.oldest_in_use(index));
            let Some((_, holder)) = self.parts(index) else {
                return;
            };
            let served: Vec<u64> = holder.served.keys().copied().collect();
            let due = holder.bases.due((served, oldest), PATIENCE, local);
            holder.served.retain(|base, _| !due.contains(base));
            self.counts[Counted::Released] += due.len() as u64;
        }
        self.announce(index);
        self.complete_merge(index);
        self.propose(index);
    }

    /// The oldest base that a snapshot of a server reads.
    fn oldest_in_use(&self, index: usize) -> u64 {
        let (server, Some(shards)) = (&self.servers[index], &self.shards) else {
            return 0;
        };
        let holder = &shards.holders[index];
        let jobs = shards
            .jobs
            .values()
            .filter(|job| job.is_of(index, server.start));
        let views = (holder.parts.iter().map(|(snapshot, _)| snapshot))
            .chain(server.snapshots())
            .filter_map(|snapshot| snapshot.view.as_ref())
            .chain(jobs.map(|job| &job.view))
            .chain(holder.done.iter().map(|(then, _)| then))
            .chain(holder.merge.iter().map(|merge| &merge.view));
        views.map(|view| view.base.number).min().unwrap_or(0)
    }

    /// Sends an announcement to the other servers if it changed or some time has passed.
    fn announce(&mut self, index: usize) {
        let (now, oldest_in_use) = (self.now, self.oldest_in_use(index));
        let Some((_, holder)) = self.parts(index) else {
            return;
        };
        let results = holder.newest().map(|base| base.number).into_iter();
        let results =
            results.flat_map(|base| holder.results.iter().map(move |(s, r)| (base, *s, *r)));
        let merge = holder.merge.iter().flat_map(Merge::results);
        let what = Announcement {
            oldest_in_use,
            open: holder.open(),
            written: results.chain(merge).collect(),
        };
        let (last, before) = &holder.announced;
        if now - last < BEAT && *before == what {
            return;
        }
        holder.announced = (now, what.clone());
        let Some(number) = self.shards.as_mut().map(Shards::number) else {
            return;
        };
        for other in (0..self.servers.len()).filter(|other| *other != index) {
            self.send_to_peer(
                index,
                other,
                ShardEvent::Announced(index, number, what.clone()),
            );
        }
    }

    /// Forgets what a process said whose connections are closed.
    pub fn lose_peer(&mut self, index: usize, lost: usize) {
        if let Some((_, holder)) = self.parts(index) {
            holder.peers.remove(&lost);
        }
    }

    /// Proposes what is due: the commit of a merge, and the freeing of terms after it.
    fn propose(&mut self, index: usize) {
        let now = self.now;
        let Some(shards) = &mut self.shards else {
            return;
        };
        let (server, count) = (&self.servers[index], shards.count as u32);
        let holder = &mut shards.holders[index];
        let (Some(view), Some(machine)) = (&server.published.1.view, &server.machine) else {
            return;
        };
        let is_writer = machine.writer() == Some(&self.names[index]);
        let mut proposal = None;
        if let Some(base) = holder.newest().map(|base| base.number)
            && view.open.is_some_and(|open| open <= base)
        {
            let connected = holder.connected(now).map(|(_, what)| what.open.clone());
            let servers: Vec<_> = std::iter::once(holder.open()).chain(connected).collect();
            let local = server.local(now);
            let due = (holder.bases).proposes_commit((base, count), &servers, is_writer, local);
            let due = due && now - holder.proposed >= S;
            if let Some(results) = holder
                .all_results(base, count as usize, now)
                .filter(|_| due)
            {
                holder.proposed = now;
                let numbers: Vec<u64> = std::iter::once(base).chain(results).collect();
                proposal = Some((MERGE_COMMITTED, base, numbers));
            }
        } else if is_writer && view.base.number > holder.freed {
            holder.freed = view.base.number;
            let unused = view.unused();
            shards.last += 1;
            proposal = (!unused.is_empty()).then_some((FREED, shards.last, unused));
        }
        if let Some((kind, key, numbers)) = proposal {
            self.send_proposal(index, (kind, key), &numbers);
        }
    }

    /// An update that a server makes by itself. All servers give it the same key.
    fn send_proposal(&mut self, index: usize, (kind, key): (u8, u64), numbers: &[u64]) {
        let key = RequestKey(u128::from(kind) << 64 | u128::from(key));
        let fingerprint = super::fingerprint(key);
        let request = Request { key, fingerprint };
        self.deliver(index, Event::Update(request, store::encode(kind, numbers)));
    }

    /// True if clients did not send this update.
    pub fn is_proposal(key: RequestKey) -> bool {
        key.0 >> 64 > 0
    }

    /// A random server proposes to start a merge.
    pub fn start_merge(&mut self, index: usize) {
        if let Some(view) = self.servers[index].published.1.view.clone()
            && view.open.is_none()
            && self.now < self.until
        {
            let base = view.base.number;
            self.send_proposal(index, (MERGE_STARTED, base), &[base]);
        }
    }

    /// True if the other members have all shards of this one.
    pub fn is_spare(&self, index: usize) -> bool {
        let Some(shards) = &self.shards else {
            return true;
        };
        let others = (shards.holders.iter().zip(&self.servers).enumerate())
            .filter(|(other, (_, server))| *other != index && server.member);
        let has = |shard: &usize| {
            others
                .clone()
                .any(|(_, (holder, _))| holder.held.contains(shard))
        };
        shards.holders[index].held.iter().all(has)
    }

    /// Queries that have no answer by the end are not judged.
    pub fn drop_unanswered(&mut self) {
        if let Some(shards) = &self.shards {
            let mut place = 0..;
            let mut is_answered = || {
                !place
                    .next()
                    .is_some_and(|at| shards.unanswered.contains(&at))
            };
            self.history.reads.retain(|_| is_answered());
        }
    }

    /// Gives another shard to a server that is down, and empties its folder, which lacks it.
    pub fn add_shard(&mut self, index: usize) {
        let Some(shards) = &mut self.shards else {
            return;
        };
        let shard = self.random.below(shards.count as u64) as usize;
        let held = &mut shards.holders[index].held;
        if !held.contains(&shard) {
            held.push(shard);
            held.sort_unstable();
            self.servers[index].disk = None;
            self.count(Counted::Moved);
        }
    }
}

/// Returns true for the records of what servers propose, which set no register.
pub(super) fn is_proposal_record(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| *first >= MERGE_STARTED)
}

/// Returns true for a record without changes.
pub(super) fn is_nothing(bytes: &[u8]) -> bool {
    bytes.first() == Some(&NOTHING)
}
