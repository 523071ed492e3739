//! The machine: `(event, now) → actions`.
//!
//! `committed` is the newest group of the unbroken prefix that is known to be in the log; the published snapshot is
//! always that one. `heard` is the newest number that any server or listing spoke of. Three moments say how much is
//! known about the bucket, all of this server's clock:
//!
//! - *evidence* `(at, number)`: no group after `number` existed at `at`. A listing gives it with the time at which it was
//!   begun, a successful put likewise, and a beat with the time of ours that it echoes, less the age of the sender's own
//!   knowledge. So no two clocks are compared, and what waited in a paused server's buffers is as old as it is.
//! - `settled` is the latest evidence about `committed` or an earlier number. Freshness of reads is its age; names behind
//!   `committed` were created after it. Nothing younger than `keep` is trimmed, hence what the bucket says about those
//!   names within an eighth of `keep` is about their first creation.
//! - `vouched`: beyond that age, a listing of the bases that was begun after the bucket's answer decides. Trimming goes
//!   up to the second newest base. If that is not behind `committed`, nothing behind `committed` was ever trimmed, and
//!   the answer counts; otherwise the store is replaced by the newest base.

mod gaps;
mod keeping;
mod log;
mod peers;
mod reads;
mod writing;

use crate::event::{Action, Base, Echo, Event, Fetch, Gap, Outcome};
use crate::group::{Author, Blob, Group, Record, Request, RequestKey, ServerName};
use crate::settings::{Settings, Time};
#[cfg(any(test, feature = "testing"))]
use crate::simulate::Fault;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// A state that must not be: a mistake in the machine or its driver. The server must stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Impossible(pub &'static str);

impl std::fmt::Display for Impossible {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "replication is in a state that must not be: {}", self.0)
    }
}

impl std::error::Error for Impossible {}

/// True if a test planted this fault; shipped builds have no such thing.
#[cfg(any(test, feature = "testing"))]
macro_rules! planted {
    ($machine:expr, $fault:ident) => {
        $machine.fault == Some($crate::simulate::Fault::$fault)
    };
}
#[cfg(not(any(test, feature = "testing")))]
macro_rules! planted {
    ($machine:expr, $fault:ident) => {
        false
    };
}
pub(crate) use planted;

/// Decisions of one run of a server.
#[derive(Debug)]
pub struct Machine {
    settings: Settings,
    /// Id epoch of the store, in names and groups.
    epoch: u64,
    me: Author,
    random: u64,
    /// Start of this process.
    began: Time,
    now: Time,
    out: Vec<Action>,
    /// Time for which this process has run. A pause between two events counts for at most four [`SCAN`]s, so that time for which the
    /// process was suspended does not count as waiting for the bucket.
    running: Duration,
    next_beat: Time,
    next_scan: Time,
    gathering: writing::Gathering,
    pauses: writing::Pauses,
    draining: bool,

    phase: Phase,
    /// True if a store is in the bucket that this log began with, so that an empty folder must be filled by a base.
    needs_base: bool,
    /// True as long as nothing is in the folder.
    empty: bool,
    committed: u64,
    /// Author of the group `committed`, if it was seen: the writer.
    author: Option<Author>,
    /// Version of that group.
    newest_version: u32,
    /// The newest version of groups that every listed server reads.
    format: u32,
    hashes: keeping::Hashes,
    heard: u64,
    head: Head,
    /// Groups after `committed` that their authors proposed.
    proposed: BTreeMap<u64, Arc<Group>>,
    /// Authors of groups after `committed` of which other servers say that they are in the log.
    confirmed: BTreeMap<u64, Author>,
    /// Groups after `committed` from the bucket.
    fetched: BTreeMap<u64, FromBucket>,
    fetching: BTreeSet<Fetch>,
    fetch_pause: Pause,
    spans: BTreeSet<(u64, u64)>,
    /// Groups after `committed` whose own objects are missing, or may be others. A span may have the groups.
    absent: BTreeSet<u64>,

    gap: Option<Gap>,
    /// The newest group in the store when this run began, or was given a base.
    started_at: u64,
    /// True once that group was seen in the log, or in a base.
    rooted: bool,
    next_audit: Time,
    evidence: VecDeque<(Time, u64)>,
    settled: Option<Time>,
    look: Look,
    look_pause: Pause,
    /// Number of listings that were begun.
    looks: u64,
    last_look: Time,
    /// Answers of the bucket that came when fewer listings had been begun are about first creations.
    vouched: u64,
    bases: Bases,

    writing: Writing,
    /// Evaluated after all that `writing` has.
    pending: VecDeque<(RequestKey, Record)>,
    /// One after another, in this order.
    evaluating: VecDeque<(u64, Request)>,
    /// The requests in `writing`, `pending` and `evaluating`, whether or not their clients wait still.
    ahead: BTreeSet<RequestKey>,
    tickets: u64,
    queue: VecDeque<RequestKey>,
    waiting: BTreeMap<RequestKey, Waiting>,
    /// Requests that are answered once this number has been heard everywhere, in ascending order.
    unheard: BTreeSet<(u64, RequestKey)>,
    keys: keeping::Keys,
    marks: VecDeque<(Time, u64)>,
    /// The newest group that has been known for `keep`.
    old: u64,
    trimmed: u64,
    span: (u64, usize),

    peers: BTreeMap<ServerName, Peer>,
    reads: Vec<reads::Waiting>,
    #[cfg(any(test, feature = "testing"))]
    fault: Option<Fault>,
}

/// The local store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Not opened yet.
    Closed,
    /// An empty folder: filled by a base, if the bucket has one, and the empty store otherwise.
    Empty,
    /// Being replaced by the newest base.
    Downloading,
    /// To be asked for again, since a download failed.
    Again,
    /// The store follows the log.
    Following,
}

/// The driver's head, on which updates are evaluated.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Head {
    /// The published snapshot.
    Published,
    /// One group of this author's is laid on it.
    Proposed(Author),
    /// Updates of this server are evaluated, or being evaluated.
    Own,
}

/// A group that the bucket gave.
#[derive(Clone, Debug)]
struct FromBucket {
    group: Arc<Group>,
    /// [`Group::hash`].
    hash: u64,
    answer: Answer,
}

/// The moment of an answer of the bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Answer {
    at: Time,
    looks: u64,
}

/// The listing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Look {
    Idle,
    /// To be begun when the pause after one that failed is over.
    Wanted,
    Sent(gaps::Asked),
    /// Another one is begun when it returns.
    SentAndWanted(gaps::Asked),
}

/// A pause after requests that failed, longer with each of them in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Pause {
    length: Duration,
    until: Time,
}

impl Pause {
    /// Begins after a failure, unless it lasts still: what was begun together fails together.
    fn begin(&mut self, now: Time, least: Duration) {
        if self.is_over(now) {
            self.length = (self.length * 2).min(LONGEST_PAUSE).max(least);
            self.until = now.after(self.length);
        }
    }

    fn is_over(&self, now: Time) -> bool {
        self.until <= now
    }
}

/// The newest bases in the bucket, as the last listing had them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Bases {
    newest: Option<u64>,
    second: Option<u64>,
}

/// The group that is on its way into the log. There is one at a time, and no other number is tried until its outcome is
/// known.
#[derive(Debug)]
enum Writing {
    Idle,
    Put(Put),
}

#[derive(Debug)]
struct Put {
    group: Arc<Group>,
    bytes: Blob,
    attempt: u32,
    /// The time of this attempt.
    begun: Time,
    state: PutState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PutState {
    /// The bucket has not answered.
    Sent,
    /// Unknown: repeated then.
    Again(Time),
    /// The name is taken; the object is being read.
    Taken,
    /// The object is ours, but the name may have been trimmed before.
    Unproven(Answer),
}

/// An update that was not answered yet.
#[derive(Debug)]
struct Waiting {
    fingerprint: u64,
    body: Blob,
    asked: Time,
    /// True if a client of this server waits.
    client: bool,
    /// Servers that forwarded it.
    peers: BTreeSet<ServerName>,
    /// Times that it was forwarded and not sent back.
    forwarded: u32,
    stage: Stage,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Stage {
    /// To be evaluated here, or being evaluated, or evaluated and not in the log yet.
    Here,
    /// Sent to the writer at this time.
    Forwarded(ServerName, Time),
    /// Looks for the writer again then.
    Pausing(Time),
    /// In the log; the answer waits until it has been heard.
    Committed,
}

/// Another server.
#[derive(Debug, Default)]
struct Peer {
    start: u64,
    /// The last message.
    last: Option<Time>,
    /// Our newest time that it has seen.
    round: Option<Time>,
    /// Its newest time that we have seen.
    clock: Option<Echo>,
    heard: u64,
    draining: bool,
}

impl Machine {
    /// A machine of the store with this id epoch. `seed` should be random; `me.start` must be, and as long as this run
    /// lasts.
    pub fn new(settings: Settings, epoch: u64, me: Author, seed: u64, now: Time) -> Self {
        Self {
            settings,
            epoch,
            me,
            random: seed,
            began: now,
            now,
            out: Vec::new(),
            running: Duration::ZERO,
            next_beat: now,
            next_scan: now,
            gathering: writing::Gathering::default(),
            pauses: writing::Pauses::default(),
            draining: false,
            phase: Phase::Closed,
            needs_base: false,
            empty: false,
            committed: 0,
            author: None,
            newest_version: 1,
            format: 1,
            hashes: keeping::Hashes::default(),
            heard: 0,
            head: Head::Published,
            proposed: BTreeMap::new(),
            confirmed: BTreeMap::new(),
            fetched: BTreeMap::new(),
            fetching: BTreeSet::new(),
            fetch_pause: Pause::default(),
            spans: BTreeSet::new(),
            absent: BTreeSet::new(),
            gap: None,
            started_at: 0,
            rooted: false,
            next_audit: now,
            evidence: VecDeque::new(),
            settled: None,
            look: Look::Idle,
            look_pause: Pause::default(),
            looks: 0,
            last_look: now,
            vouched: 0,
            bases: Bases::default(),
            writing: Writing::Idle,
            pending: VecDeque::new(),
            evaluating: VecDeque::new(),
            ahead: BTreeSet::new(),
            tickets: 0,
            queue: VecDeque::new(),
            waiting: BTreeMap::new(),
            unheard: BTreeSet::new(),
            keys: keeping::Keys::default(),
            marks: VecDeque::new(),
            old: 0,
            trimmed: 0,
            span: (1, 0),
            peers: BTreeMap::new(),
            reads: Vec::new(),
            #[cfg(any(test, feature = "testing"))]
            fault: None,
        }
    }

    /// The same for a log that began with a store, which is in the bucket, and not with the empty one.
    #[must_use]
    pub fn with_first_base(mut self, needed: bool) -> Self {
        self.needs_base = needed;
        self
    }

    /// A machine with a fault, which tests must find.
    #[cfg(any(test, feature = "testing"))]
    pub fn with_fault(mut self, fault: Option<Fault>) -> Self {
        self.fault = fault;
        self
    }

    /// The newest group that is published.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// True if acknowledgements wait for every server that it knows of.
    pub fn counts_all(&self) -> bool {
        self.peers.values().all(|peer| self.counted(peer))
    }

    /// Number of other servers that acknowledgements wait for: they speak, and hear.
    pub fn in_contact(&self) -> usize {
        self.peers.values().filter(|p| self.counted(p)).count()
    }

    /// The newest group that was heard of.
    pub fn heard(&self) -> u64 {
        self.heard
    }

    /// The last moment at which no group after the newest one existed; zero before the first.
    pub fn settled(&self) -> Time {
        self.settled.unwrap_or_default()
    }

    /// The newest base in the bucket, as the last listing had it.
    pub fn newest_base(&self) -> Option<u64> {
        self.bases.newest
    }

    /// The author of the newest group, who writes by habit.
    pub fn writer(&self) -> Option<&ServerName> {
        self.author.as_ref().map(|author| &author.server)
    }

    /// True if a query without further demands would be answered at once.
    pub fn is_ready(&self, now: Time) -> bool {
        self.phase == Phase::Following
            && self.committed >= self.heard
            && !self.gap_blocks_reads()
            && (self.settled).is_some_and(|at| now.since(at) <= self.settings.max_staleness)
    }

    /// True while the folder is empty and there is no base to fill it.
    pub fn awaits_base(&self) -> bool {
        self.phase == Phase::Empty && self.needs_base
    }

    /// True while the store is being replaced by the newest base.
    pub fn is_downloading(&self) -> bool {
        matches!(self.phase, Phase::Downloading | Phase::Again)
    }

    /// The latest moment of which it is known which group was the last, whether or not that group is here; `None` before the
    /// first.
    pub fn informed(&self) -> Option<Time> {
        self.newest_evidence()
    }

    /// Sends the next beats with the next event. For drivers, when a process is heard for the first time: it waits for a beat that
    /// echoes its own.
    pub fn beat_soon(&mut self) {
        self.next_beat = self.now;
    }

    /// The time until which a query without further demands would be answered at once, if nothing happens meanwhile;
    /// `None` where it would have to wait now.
    pub fn fresh_until(&self) -> Option<Time> {
        let there = self.phase == Phase::Following
            && self.committed >= self.heard
            && !self.gap_blocks_reads();
        let settled = self.settled.filter(|_| there)?;
        Some(settled.after(self.settings.find_out))
    }

    /// The latest time at which [`Event::Wake`] must be handled, if no event comes before.
    pub fn wake(&self) -> Time {
        let writes = !matches!(self.writing, Writing::Idle);
        let busy = !self.waiting.is_empty()
            || !self.reads.is_empty()
            || writes
            || matches!(self.phase, Phase::Again)
            || self.committed < self.heard;
        let gathers = matches!(self.writing, Writing::Idle) && !self.pending.is_empty();
        let next = match self.look {
            Look::Wanted => self.next_beat.min(self.look_pause.until),
            _ => self.next_beat,
        };
        match busy {
            true if gathers => next.min(self.next_scan).min(self.gathering.until),
            true => next.min(self.next_scan),
            false => next,
        }
    }

    /// Takes an event and appends the actions that it causes.
    ///
    /// # Errors
    /// [`Impossible`]: the server must stop.
    pub fn handle(
        &mut self,
        now: Time,
        event: Event,
        actions: &mut Vec<Action>,
    ) -> Result<(), Impossible> {
        let now = self.now.max(now);
        self.running += now.since(self.now).min(SCAN * 4);
        self.now = now;
        self.take(event)?;
        self.regularly()?;
        self.proceed()?;
        actions.append(&mut self.out);
        Ok(())
    }

    fn take(&mut self, event: Event) -> Result<(), Impossible> {
        match event {
            Event::Opened(base) => self.opened(base)?,
            Event::Downloaded(base) => self.downloaded(base),
            Event::NoBase => self.no_base(),
            Event::Peers(names) => self.know(names),
            Event::Format(version) => self.format = version,
            Event::Known(number) => self.hear(number),
            Event::Update(request, body) => self.asked(request, body, None),
            Event::Evaluated(ticket, evaluation) => self.evaluated(ticket, evaluation)?,
            Event::Read(read, consistency) => self.read(read, consistency),
            Event::Put(number, attempt, result) => self.put_returned(number, attempt, result),
            Event::Listed(look, listing) => self.listed(look, listing),
            Event::Fetched(fetch, fetched) => self.got(fetch, fetched),
            Event::Received(from, message) => self.received(from, message),
            Event::Disconnected(peer) => self.disconnected(&peer),
            Event::Merged(number) => self.merged(number),
            Event::Uploaded(_) => self.want_look(),
            Event::Drain => self.drain(),
            Event::Wake => {}
        }
        Ok(())
    }

    /// Everything that is due by the clock.
    fn regularly(&mut self) -> Result<(), Impossible> {
        if self.look == Look::Wanted {
            self.want_look();
        }
        if self.now >= self.next_scan {
            self.next_scan = self.now.after(SCAN);
            self.scan_updates();
            if self.gap.is_none() || planted!(self, WriterTrustsGap) {
                self.scan_put();
            }
            if self.phase == Phase::Again {
                self.download();
            }
        }
        if self.now >= self.next_beat {
            self.next_beat = self.now.after(self.settings.beat);
            self.beat();
            self.look_if_due();
            self.keys.forget(self.now, self.settings.keys_for);
            self.trim();
        }
        Ok(())
    }

    /// Everything that has become possible.
    fn proceed(&mut self) -> Result<(), Impossible> {
        if self.phase == Phase::Following {
            self.advance()?;
            self.lay_proposed();
            self.fetch();
            if self.gap.is_none() || planted!(self, WriterTrustsGap) {
                self.evaluate_next();
                self.put_pending()?;
            } else {
                self.refuse_updates();
            }
        }
        self.answer_heard();
        self.serve();
        Ok(())
    }

    fn opened(&mut self, base: Option<Base>) -> Result<(), Impossible> {
        if self.phase != Phase::Closed {
            return Err(Impossible("a store that is opened twice"));
        }
        self.phase = match base {
            Some(base) if base.number > log::LAST => {
                return Err(Impossible("a store of a number that no log reaches"));
            }
            Some(base) => {
                self.start_from(base);
                Phase::Following
            }
            None => {
                self.empty = true;
                Phase::Empty
            }
        };
        self.want_look();
        Ok(())
    }

    /// Continues after a base.
    fn start_from(&mut self, base: Base) {
        self.committed = base.number;
        self.started_at = base.number;
        self.rooted = base.number == 0;
        self.gap = None;
        self.heard = self.heard.max(base.number);
        self.author = None;
        self.hashes.restart(base.number, base.hash);
        self.span = (base.number.saturating_add(1), 0);
        for known in base.keys {
            self.keys.learn(known, self.now);
        }
        self.forget_groups();
        self.mark();
    }

    /// Drops groups up to `committed`.
    fn forget_groups(&mut self) {
        let next = self.committed.saturating_add(1);
        self.proposed = self.proposed.split_off(&next);
        self.confirmed = self.confirmed.split_off(&next);
        self.fetched = self.fetched.split_off(&next);
        self.absent = self.absent.split_off(&next);
        self.spans.retain(|(_, last)| *last >= next);
    }

    fn next(&self) -> u64 {
        self.committed.saturating_add(1)
    }

    fn answer(&self) -> Answer {
        Answer {
            at: self.now,
            looks: self.looks,
        }
    }

    /// A random time between `least` and `most`, by SplitMix64.
    fn between(&mut self, least: Duration, most: Duration) -> Duration {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        let range = most.saturating_sub(least);
        least + range.mul_f64((z >> 11) as f64 / (1_u64 << 53) as f64)
    }

    fn send(&mut self, to: &ServerName, message: crate::event::Message) {
        self.out.push(Action::Send(to.clone(), message));
    }

    fn finish(&mut self, key: RequestKey, outcome: Outcome) {
        let Some(waiting) = self.waiting.remove(&key) else {
            return;
        };
        for peer in &waiting.peers {
            self.send(peer, crate::event::Message::Outcome(key, outcome.clone()));
        }
        if waiting.client {
            self.out.push(Action::Answer(key, outcome));
        }
    }
}

/// Longest pause after requests that failed.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Time between looks at what waits.
const SCAN: Duration = Duration::from_millis(50);
