//! The protocol's state machine: `(event, now) → actions`.
//!
//! `committed` is the newest group of the contiguous prefix of the log that is known to be in the bucket. The machine
//! requests that each such group is published; the driver's apply queue does so later, so the published snapshot may be
//! an earlier one. `newest_known` is the highest group number that any server or listing has mentioned. Three values,
//! all by this server's clock, describe how fresh this knowledge is:
//!
//! - `freshness_proofs` is a list of freshness proofs `(at, number)`: no group after `number` existed at time `at`. A
//!   listing proves this for the time at which the listing began, and a successful put for the time at which the put
//!   began. A heartbeat proves it for the time of this server's clock that the heartbeat echoes, minus the age of the
//!   sender's own proof. So clocks of different servers are never compared, and a message that was buffered while a
//!   server was paused proves nothing about later times.
//! - `fresh_as_of` ("fresh as of") is the time of the latest proof for `committed` or an earlier number. The staleness
//!   of reads is measured from it. All groups after `committed` were created later than `fresh_as_of`. No group younger
//!   than `keep` is trimmed. So within an eighth of `keep` after `fresh_as_of`, the bucket's responses about those
//!   groups concern the first object created under each name.
//! - `validated_before_listing` validates responses after that period, when a name may have been trimmed and created
//!   again. A response is validated by a listing of the bases that begins after it. Trimming goes up to the second
//!   newest base; so if that base is not after `committed`, no group after `committed` was ever trimmed, and the
//!   response is valid. Otherwise the store is replaced by the newest base.

pub(crate) mod event;
mod gaps;
pub(crate) mod group;
mod log;
pub(crate) mod names;
mod peers;
mod reads;
mod retention;
pub(crate) mod settings;
mod state;
mod writing;

pub use event::{
    Action, Base, Beat, Consistency, Echo, Evaluation, Event, Fetch, Fetched, Gap,
    GroupObjectState, KnownKey, Listing, Message, Outcome, Problem, PutResult, Refusal,
};
pub use group::{
    Blob, Damage, GROUP_VERSION, Group, Record, Request, RequestKey, ServerName, Writer, read_span,
    write_span,
};
pub use names::Name;
pub use settings::{Settings, Time};
use state::{
    Bases, FromBucket, Head, ListingState, Pause, Peer, Phase, Put, PutState, ResponseTime, Stage,
    Waiting,
};

#[cfg(any(test, feature = "testing"))]
use crate::simulate::Fault;
use jindou_model::random::splitmix64;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// A violated invariant: a bug in the machine or its driver. The server must stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("replication is in a state that must not be: {0}")]
pub struct Impossible(pub &'static str);

/// True if a test injected this fault; always false in release builds.
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

/// The protocol state of one run of a server.
#[derive(Debug, Default)]
pub struct Machine {
    settings: Settings,
    /// The store's id epoch, part of object names and groups.
    epoch: u64,
    me: Writer,
    random: u64,
    /// Time at which this process started.
    began: Time,
    now: Time,
    out: Vec<Action>,
    /// Time for which this process has been running. A pause between two events counts as at most four [`SCAN`]s, so
    /// that time during which the process was suspended is not counted as waiting for the bucket.
    running: Duration,
    next_beat: Time,
    next_scan: Time,
    batching: writing::Batching,
    pauses: writing::Pauses,
    draining: bool,

    phase: Phase,
    /// True if the log began with a store in the bucket, so that an empty folder must be filled from a base.
    needs_base: bool,
    /// True while the folder is empty.
    empty: bool,
    committed: u64,
    /// Writer of group `committed`, if known. Updates are forwarded to this server.
    writer: Option<Writer>,
    /// Format version of group `committed`.
    newest_version: u32,
    /// The newest group version that every listed server can read.
    format: u32,
    hashes: retention::Hashes,
    newest_known: u64,
    head: Head,
    /// Groups after `committed` that their writers have announced by message before the put completed.
    proposed: BTreeMap<u64, Arc<Group>>,
    /// Groups after `committed` that other servers have reported as committed, with their writers.
    confirmed: BTreeMap<u64, Writer>,
    /// Groups after `committed` that were fetched from the bucket.
    fetched: BTreeMap<u64, FromBucket>,
    fetching: BTreeSet<Fetch>,
    fetch_pause: Pause,
    spans: BTreeSet<(u64, u64)>,
    /// Groups after `committed` whose objects are missing or possibly wrong. A span may contain a copy.
    absent: BTreeSet<u64>,

    gap: Option<Gap>,
    /// The last group in the store that this process started with, or in the base that replaced that store.
    started_at: u64,
    /// True once group `started_at` was found in the log or in a base.
    rooted: bool,
    next_audit: Time,
    freshness_proofs: VecDeque<(Time, u64)>,
    fresh_as_of: Option<Time>,
    listing_state: ListingState,
    listing_pause: Pause,
    /// Number of listings started so far.
    listings_started: u64,
    last_listing: Time,
    /// A response is valid if it was received before this many listings had started: it then concerns the first object
    /// created under its name.
    validated_before_listing: u64,
    bases: Bases,

    writing: Option<Put>,
    /// Evaluated records for the group after the one being written.
    pending: VecDeque<(RequestKey, Record)>,
    /// Updates that the driver evaluates, in order of evaluation, with their tickets.
    evaluating: VecDeque<(u64, Request)>,
    /// Keys of the requests in `writing`, `pending` and `evaluating`, including those whose clients no longer wait.
    keys_in_progress: BTreeSet<RequestKey>,
    last_ticket: u64,
    queue: VecDeque<RequestKey>,
    waiting: BTreeMap<RequestKey, Waiting>,
    /// Requests to answer once every counted server has acknowledged this group number, in ascending order.
    unacknowledged: BTreeSet<(u64, RequestKey)>,
    keys: retention::Keys,
    commit_times: VecDeque<(Time, u64)>,
    /// The newest group that has been known for at least `keep`; trimming goes up to this group.
    trimmable: u64,
    trimmed: u64,
    span: (u64, usize),

    peers: BTreeMap<ServerName, Peer>,
    reads: Vec<reads::Waiting>,
    #[cfg(any(test, feature = "testing"))]
    fault: Option<Fault>,
}

impl Machine {
    /// Creates a machine for the log with this id epoch. `seed` should be random. `me.start` must be random and
    /// constant for this run.
    pub fn new(settings: Settings, epoch: u64, me: Writer, seed: u64, now: Time) -> Self {
        Self {
            settings,
            epoch,
            me,
            random: seed,
            began: now,
            now,
            next_beat: now,
            next_scan: now,
            newest_version: 1,
            format: 1,
            next_audit: now,
            last_listing: now,
            span: (1, 0),
            ..Self::default()
        }
    }

    /// Sets whether the log began with a store in the bucket rather than with the empty store.
    #[must_use]
    pub fn with_first_base(mut self, needed: bool) -> Self {
        self.needs_base = needed;
        self
    }

    /// Injects a fault, for checking that the tests detect it.
    #[cfg(any(test, feature = "testing"))]
    pub fn with_fault(mut self, fault: Option<Fault>) -> Self {
        self.fault = fault;
        self
    }

    /// Number of the newest group of the contiguous prefix of the log that is known to be in the bucket. The driver may
    /// publish it later.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// True if acknowledgements currently wait for all known servers.
    pub fn counts_all(&self) -> bool {
        self.peers
            .values()
            .all(|peer| self.awaits_acknowledgements(peer))
    }

    /// Number of other servers that acknowledgements wait for.
    pub fn in_contact(&self) -> usize {
        self.peers
            .values()
            .filter(|p| self.awaits_acknowledgements(p))
            .count()
    }

    /// The other servers, with the time of the latest message from each, and the newest group that it has acknowledged.
    pub fn others(&self) -> impl Iterator<Item = (&ServerName, Option<Time>, u64)> {
        (self.peers.iter()).map(|(name, peer)| (name, peer.last, peer.newest_known))
    }

    /// The highest group number known to exist.
    pub fn newest_known(&self) -> u64 {
        self.newest_known
    }

    /// Time of the latest proof that no group after `committed` existed; zero if there was none.
    pub fn fresh_as_of(&self) -> Time {
        self.fresh_as_of.unwrap_or_default()
    }

    /// The newest base in the bucket, according to the last listing.
    pub fn newest_base(&self) -> Option<u64> {
        self.bases.newest
    }

    /// The writer: the server that wrote the newest committed group. Other servers forward updates to it while it is
    /// alive and not stopping. There is no election: a server without such a writer evaluates updates itself, and
    /// becomes the writer by creating the next group, which only one server can do.
    pub fn writer(&self) -> Option<&ServerName> {
        self.writer.as_ref().map(|writer| &writer.server)
    }

    /// True if a query with the default consistency would be answered without waiting.
    pub fn is_ready(&self, now: Time) -> bool {
        self.is_complete()
            && (self.fresh_as_of).is_some_and(|at| now.since(at) <= self.settings.max_staleness)
    }

    /// True if all groups that are known to exist are committed.
    fn is_complete(&self) -> bool {
        self.phase == Phase::Following
            && self.committed >= self.newest_known
            && !self.gap_blocks_reads()
    }

    /// True while the folder is empty and the bucket has no base to fill it from.
    pub fn awaits_base(&self) -> bool {
        self.phase == Phase::Empty && self.needs_base
    }

    /// True while the store is being replaced by the newest base.
    pub fn is_downloading(&self) -> bool {
        matches!(self.phase, Phase::Downloading | Phase::DownloadFailed)
    }

    /// Time of the latest freshness proof, whether or not its group has been applied here; `None` before the first
    /// proof.
    pub fn informed(&self) -> Option<Time> {
        self.newest_proof()
    }

    /// Makes the machine send heartbeats with the next event. Drivers call this when the first message of a new process
    /// arrives, because that process waits for a heartbeat that echoes its own.
    pub fn beat_soon(&mut self) {
        self.next_beat = self.now;
    }

    /// Time until which queries with the default consistency would be answered without waiting, if no event arrives;
    /// `None` if they would have to wait now.
    pub fn fresh_until(&self) -> Option<Time> {
        let fresh_as_of = self.fresh_as_of.filter(|_| self.is_complete())?;
        Some(fresh_as_of.after(self.settings.staleness_while_available))
    }

    /// Time by which [`Event::Wake`] must be handled if no other event arrives.
    pub fn wake(&self) -> Time {
        let busy = !self.waiting.is_empty()
            || !self.reads.is_empty()
            || self.writing.is_some()
            || matches!(self.phase, Phase::DownloadFailed)
            || self.committed < self.newest_known;
        let is_batching = self.writing.is_none() && !self.pending.is_empty();
        let next = match self.listing_state {
            ListingState::Wanted => self.next_beat.min(self.listing_pause.until),
            _ => self.next_beat,
        };
        match busy {
            true if is_batching => next.min(self.next_scan).min(self.batching.until),
            true => next.min(self.next_scan),
            false => next,
        }
    }

    /// Handles an event and appends the resulting actions.
    ///
    /// # Errors
    /// [`Impossible`] for a violated invariant: the server must stop.
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
            Event::Peers(names) => self.set_servers(names),
            Event::Format(version) => self.format = version,
            Event::Known(number) => self.note_exists(number),
            Event::Update(request, body) => self.asked(request, body, None),
            Event::Evaluated(ticket, evaluation) => self.evaluated(ticket, evaluation)?,
            Event::Read(read, consistency) => self.read(read, consistency),
            Event::Put(number, attempt, result) => self.put_returned(number, attempt, result),
            Event::Listed(listing_id, listing) => self.listed(listing_id, listing),
            Event::Fetched(fetch, fetched) => self.got(fetch, fetched),
            Event::Received(from, message) => self.received(from, message),
            Event::Disconnected(peer) => self.disconnected(&peer),
            Event::Merged(number) => self.merged(number),
            Event::Uploaded(_) => self.request_listing(),
            Event::Drain => self.drain(),
            Event::Wake => {}
        }
        Ok(())
    }

    /// Performs all actions that are due by the clock.
    fn regularly(&mut self) -> Result<(), Impossible> {
        if self.listing_state == ListingState::Wanted {
            self.request_listing();
        }
        if self.now >= self.next_scan {
            self.next_scan = self.now.after(SCAN);
            self.scan_updates();
            if self.gap.is_none() || planted!(self, WriterTrustsGap) {
                self.scan_put();
            }
            if self.phase == Phase::DownloadFailed {
                self.download();
            }
        }
        if self.now >= self.next_beat {
            self.next_beat = self.now.after(self.settings.beat);
            self.beat();
            self.list_if_due();
            self.keys.expire(self.now, self.settings.keys_for);
            self.trim();
        }
        Ok(())
    }

    /// Performs all actions that the last event has made possible.
    fn proceed(&mut self) -> Result<(), Impossible> {
        if self.phase == Phase::Following {
            self.advance()?;
            self.apply_proposed();
            self.fetch();
            if self.gap.is_none() || planted!(self, WriterTrustsGap) {
                self.evaluate_next();
                self.put_pending()?;
            } else {
                self.refuse_updates();
            }
        }
        self.acknowledge();
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
        self.request_listing();
        Ok(())
    }

    /// Continues from a base: sets `committed` to the base's last group.
    fn start_from(&mut self, base: Base) {
        self.committed = base.number;
        self.started_at = base.number;
        self.rooted = base.number == 0;
        self.gap = None;
        self.newest_known = self.newest_known.max(base.number);
        self.writer = None;
        self.hashes.restart(base.number, base.hash);
        self.span = (base.number.saturating_add(1), 0);
        for known in base.keys {
            self.keys.remember(known, self.now);
        }
        self.forget_groups();
        self.note_commit_time();
    }

    /// Drops the groups up to `committed` that were waiting to be applied.
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

    fn response_time(&self) -> ResponseTime {
        ResponseTime {
            at: self.now,
            listings_started: self.listings_started,
        }
    }

    /// A random duration between `least` and `most`, by SplitMix64.
    fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let random = splitmix64(&mut self.random);
        let range = most.saturating_sub(least);
        least + range.mul_f64((random >> 11) as f64 / (1_u64 << 53) as f64)
    }

    fn send(&mut self, to: &ServerName, message: Message) {
        self.out.push(Action::Send(to.clone(), message));
    }

    fn finish(&mut self, key: RequestKey, outcome: Outcome) {
        let Some(waiting) = self.waiting.remove(&key) else {
            return;
        };
        for peer in &waiting.peers {
            self.send(peer, Message::Outcome(key, outcome.clone()));
        }
        if waiting.client {
            self.out.push(Action::Answer(key, outcome));
        }
    }
}

/// Interval of the scans over waiting requests.
const SCAN: Duration = Duration::from_millis(50);
