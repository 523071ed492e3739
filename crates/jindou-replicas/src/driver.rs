//! The event loop, which owns the machine.

mod done;

pub(crate) use done::Done;

use crate::application::{Application, Report};
use crate::apply_queue::{ApplyQueue, ApplyTask};
use crate::blocking::blocking;
use crate::bucket::{Bucket, ServerEntry};
use crate::clock;
use crate::downloads::UnusableBases;
use crate::handle::{Command, Inbox, ReadReply, Status, Unready};
use crate::machine::{
    Action, Base, Consistency, Event, Fetch, Impossible, Machine, Message, Name, Outcome, Refusal,
    RequestKey, ServerName, Settings, Time,
};
use crate::peers::{FromPeer, Peers};
use crate::uploads::Uploads;
use jindou_model::CancelToken;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::task::JoinSet;

/// Reason why a driver ended.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Stopped {
    /// A bug in the machine or the driver.
    #[error(transparent)]
    Impossible(Impossible),
    /// The store cannot apply the log any further.
    #[error("the store cannot follow the log: {0}")]
    Store(String),
    /// Another process uses this server's name.
    #[error("another server was started under this one's name")]
    Replaced,
}

impl Stopped {
    pub(crate) fn impossible(why: &'static str) -> Self {
        Self::Impossible(Impossible(why))
    }
}

/// A query that waits for a snapshot.
pub(crate) struct Reading<S> {
    pub asked: Time,
    /// True for [`crate::Consistency::Any`].
    pub any: bool,
    pub reply: ReadReply<S>,
}

/// The channel to a client that waits for an update's outcome, and the permit for the update's bytes.
type Waiting = (oneshot::Sender<Outcome>, OwnedSemaphorePermit);

/// A running server: the machine, the store, and the background tasks.
pub struct Driver<A: Application, P: Peers> {
    pub(crate) machine: Machine,
    pub(crate) store: Arc<A>,
    pub(crate) bucket: Bucket,
    pub(crate) epoch: u64,
    pub(crate) me: ServerEntry,
    pub(crate) apply_queue: ApplyQueue<A::Snapshot>,
    pub(crate) reads: HashMap<u64, Reading<A::Snapshot>>,
    read_limit: Duration,
    max_staleness: Duration,
    /// Fetches that are postponed until fewer groups wait to be applied.
    pub(crate) fetches: VecDeque<Fetch>,
    /// Events for the machine that were caused by executing its actions.
    pub(crate) pending_events: VecDeque<Event>,
    /// Largest size in bytes of a span, and largest number of its groups.
    pub(crate) span_limits: (usize, u64),
    pub(crate) uploads: Uploads,
    pub(crate) unusable_bases: UnusableBases,
    pub(crate) trimming: bool,
    /// Number up to which the machine allows trimming.
    pub(crate) trim_to: u64,
    /// Number up to which groups were trimmed.
    pub(crate) trimmed: u64,
    /// Length of the period within which every snapshot can be restored.
    pub(crate) keep: Duration,
    pub(crate) saving: bool,
    /// True if this server must upload the next base that it saves, even if that is usually done by another server.
    pub(crate) upload_saved: bool,
    /// Time at which the entry in `servers/` is written again if it mentions an older group than the newest.
    next_entry_write: Time,
    writing_entry: bool,
    next_read: u64,
    updates: HashMap<RequestKey, Vec<Waiting>>,
    peers: P,
    incoming: Option<mpsc::Receiver<FromPeer>>,
    pub(crate) inbox: Inbox<A::Snapshot>,
    cancel: CancelToken,
    refresh: Duration,
    next_refresh: Time,
    /// After this time, requests no longer wait for connections to the listed servers.
    join_until: Time,
    /// Requests that wait for connections to the listed servers.
    waiting_for_peers: VecDeque<Command<A::Snapshot>>,
    /// Random number of the process of each server that sent the latest message.
    processes: HashMap<ServerName, u64>,
    refreshed: Time,
    refreshing: bool,
    /// Delay after a failed listing of the servers.
    refresh_pause: Duration,
    /// Kinds of requests to the bucket whose latest request failed.
    failing: BTreeSet<&'static str>,
    pub(crate) sender: mpsc::UnboundedSender<Done<A::Snapshot>>,
    done: mpsc::UnboundedReceiver<Done<A::Snapshot>>,
    pub(crate) tasks: JoinSet<()>,
}

/// The parts from which a driver is built.
pub(crate) struct Parts<A: Application, P: Peers> {
    pub machine: Machine,
    pub store: Arc<A>,
    pub bucket: Bucket,
    pub epoch: u64,
    pub me: ServerEntry,
    pub published: (u64, A::Snapshot),
    pub settings: Settings,
    pub peers: P,
    pub incoming: mpsc::Receiver<FromPeer>,
    pub inbox: Inbox<A::Snapshot>,
    pub cancel: CancelToken,
    pub refresh: Duration,
    /// The base to upload first, if the log begins with this store.
    pub first: Option<Base>,
    /// Events that the machine handles at the start.
    pub events: Vec<Event>,
}

/// Shortest time between two listings of the servers, and the longest delay after a failed listing.
const REFRESH: Duration = Duration::from_secs(1);
const REFRESH_AGAIN: Duration = Duration::from_secs(15);
/// Longest time after the start for which requests wait for connections. Until the servers are connected, updates
/// acknowledged here may be unknown to the others, and vice versa.
const JOIN: Duration = Duration::from_secs(2);
/// Additional time for which requests wait while another server refuses this one's connections. That server reads the
/// list of servers again, and meanwhile acknowledges updates without waiting for this server.
const REFUSED: Duration = Duration::from_secs(3);
/// Largest number of waiting queries.
const READS: usize = 100_000;
/// A server counts as behind if a group has waited this long to be applied.
const BEHIND: Duration = Duration::from_secs(1);
/// Interval at which the cancel token is checked.
const CANCEL: Duration = Duration::from_millis(100);

impl<A: Application, P: Peers> Driver<A, P> {
    pub(crate) fn new(parts: Parts<A, P>) -> Self {
        let (sender, done) = mpsc::unbounded_channel();
        let settings = &parts.settings;
        let (number, snapshot) = parts.published;
        Self {
            machine: parts.machine,
            store: parts.store,
            bucket: parts.bucket,
            epoch: parts.epoch,
            me: parts.me,
            apply_queue: ApplyQueue::new(number, snapshot, settings.group_bytes),
            reads: HashMap::new(),
            read_limit: settings.read_limit,
            max_staleness: settings.max_staleness,
            fetches: VecDeque::new(),
            pending_events: parts.events.into(),
            span_limits: (
                settings
                    .span_bytes
                    .saturating_add(settings.group_bytes)
                    .saturating_mul(2),
                settings.span_groups.saturating_mul(2),
            ),
            uploads: Uploads::new(parts.first),
            unusable_bases: UnusableBases::default(),
            trimming: false,
            trim_to: 0,
            trimmed: 0,
            keep: settings.keep,
            saving: false,
            upload_saved: false,
            next_entry_write: clock::now(),
            writing_entry: false,
            next_read: 0,
            updates: HashMap::new(),
            peers: parts.peers,
            incoming: Some(parts.incoming),
            inbox: parts.inbox,
            cancel: parts.cancel,
            refresh: parts.refresh,
            next_refresh: clock::now().after(parts.refresh),
            join_until: clock::now().after(JOIN),
            waiting_for_peers: VecDeque::new(),
            // Allows a listing at once: the first list was read before other servers could see this server's entry.
            refreshed: clock::now().before(REFRESH),
            refreshing: false,
            refresh_pause: REFRESH,
            failing: BTreeSet::new(),
            processes: HashMap::new(),
            sender,
            done,
            tasks: JoinSet::new(),
        }
    }

    /// Runs until the driver is stopped, all handles are dropped, or an error occurs. Pending requests then get an
    /// unknown outcome.
    ///
    /// # Errors
    /// The reason why the server must stop.
    pub async fn run(mut self) -> Result<(), Stopped> {
        let result = self.event_loop().await;
        if result.is_ok() {
            self.shut_down().await;
        }
        self.inbox.fresh.set(None);
        self.apply_queue.cancel();
        for (_, waiting) in self.updates.drain() {
            for (reply, _) in waiting {
                let _ = reply.send(Outcome::Unknown);
            }
        }
        for (_, reading) in self.reads.drain() {
            let _ = reading.reply.send(Err(Refusal::Stale));
        }
        result
    }

    async fn event_loop(&mut self) -> Result<(), Stopped> {
        self.upload_next();
        if self.uploads.is_first() {
            self.upload_shards(0);
        }
        self.handle_all()?;
        loop {
            if self.cancel.is_cancelled() {
                return Ok(());
            }
            while self.tasks.try_join_next().is_some() {}
            let wait = self.machine.wake().since(clock::now()).min(CANCEL);
            let incoming = async {
                match &mut self.incoming {
                    Some(incoming) => incoming.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some(done) = self.done.recv() => self.handle_done(done)?,
                from = incoming => match from {
                    Some(FromPeer::Message(from, message, _)) => {
                        if let Message::Beat(beat) = &message
                            && self.processes.insert(from.clone(), beat.start) != Some(beat.start)
                        {
                            self.machine.beat_soon();
                        }
                        self.pending_events.push_back(Event::Received(from, message));
                    }
                    Some(FromPeer::Gone(name)) => {
                        // The connection may be closed because another process uses this server's name in the list. So
                        // read the list again.
                        self.refresh_soon();
                        self.pending_events.push_back(Event::Disconnected(name));
                    }
                    Some(FromPeer::Unknown) => self.refresh_soon(),
                    Some(FromPeer::Problem(problem)) => self.store.report(Report::Peer(problem)),
                    None => self.incoming = None,
                },
                command = self.inbox.commands.recv() => match command {
                    Some(command @ (Command::Update(..) | Command::Read(..))) if self.is_waiting_for_peers() => {
                        self.waiting_for_peers.push_back(command);
                    }
                    Some(command) => self.command(command),
                    None => return Ok(()),
                },
                stopped = self.inbox.stop.changed() => {
                    if stopped.is_err() || *self.inbox.stop.borrow() {
                        return Ok(());
                    }
                }
                () = tokio::time::sleep(wait) => {}
            }
            if !self.waiting_for_peers.is_empty() && !self.is_waiting_for_peers() {
                for command in std::mem::take(&mut self.waiting_for_peers) {
                    self.command(command);
                }
            }
            let now = clock::now();
            if now >= self.next_refresh && !self.refreshing {
                self.next_refresh = now.after(self.refresh);
                self.refreshed = now;
                self.refreshing = true;
                self.list_servers();
            }
            if now >= self.next_entry_write
                && !self.writing_entry
                && self.machine.newest_known() > self.me.newest
            {
                self.next_entry_write = now.after(self.bucket.entry_interval());
                self.writing_entry = true;
                self.record_newest();
            }
            self.refuse_overdue(now);
            while !self.apply_queue.is_full()
                && let Some(fetch) = self.fetches.pop_front()
            {
                self.begin_fetch(fetch);
            }
            if self.pending_events.is_empty() && now >= self.machine.wake() {
                self.pending_events.push_back(Event::Wake);
            }
            self.handle_all()?;
        }
    }

    /// Passes events to the machine and executes the resulting actions.
    fn handle_all(&mut self) -> Result<(), Stopped> {
        let mut actions = Vec::new();
        while let Some(event) = self.pending_events.pop_front() {
            let handled = self.machine.handle(clock::now(), event, &mut actions);
            handled.map_err(Stopped::Impossible)?;
            // Must happen before an acknowledgement is sent to another server: from then on, no query here may bypass
            // the machine with a snapshot older than the acknowledged group.
            self.publish_freshness();
            for action in actions.drain(..) {
                self.act(action)?;
            }
        }
        self.publish_freshness();
        Ok(())
    }

    /// Answers a query from the published snapshot.
    pub(crate) fn serve(&mut self, read: u64) {
        if let Some(reading) = self.reads.remove(&read) {
            let _ = reading.reply.send(Ok(self.apply_queue.published.clone()));
        }
    }

    /// Refuses queries that the machine has admitted but that have waited too long for groups to be applied.
    fn refuse_overdue(&mut self, now: Time) {
        let limit = self.read_limit;
        if self.apply_queue.behind(now) < BEHIND {
            return;
        }
        let overdue = (self.reads).extract_if(|_, reading| now.since(reading.asked) >= limit);
        for (_, reading) in overdue {
            let _ = reading.reply.send(Err(Refusal::Behind));
        }
    }

    /// Lists the servers again, at most once per second.
    pub(crate) fn refresh_soon(&mut self) {
        let soon = self.refreshed.after(self.refresh_pause);
        self.next_refresh = self.next_refresh.min(soon);
    }

    /// Reason why a query with the default consistency would have to wait; `None` if it would not.
    fn unready(&self, now: Time) -> Option<Unready> {
        if self.is_waiting_for_peers() {
            return Some(Unready::Joining);
        }
        if self.machine.is_downloading() {
            return Some(Unready::Downloading);
        }
        let unusable_bases = self.unusable_bases.newest();
        if self.machine.awaits_base() {
            let first = || {
                let name = Name::Base(0).text(self.epoch);
                format!(
                    "{name} was not uploaded yet by a server whose folder has the store, or was lost with all later bases"
                )
            };
            return Some(Unready::NoBase(
                unusable_bases.map_or_else(first, |(_, why)| why),
            ));
        }
        if let Some(gap) = self.machine.gap_that_blocks() {
            // Groups that were trimmed because of an unusable base are not lost, so report the base instead of a gap.
            let of_base = unusable_bases.filter(|(number, _)| gap.first <= *number);
            return Some(match of_base {
                Some((_, why)) => Unready::NoBase(why),
                None => Unready::Gap(gap, self.epoch),
            });
        }
        let age = self.machine.informed().map(|at| now.since(at));
        if age.is_none_or(|age| age > self.max_staleness) {
            return Some(Unready::CutOff(age));
        }
        let ready = self.machine.is_ready(now) && self.apply_queue.behind(now) < BEHIND;
        (!ready).then(|| Unready::Behind(self.machine.newest_known()))
    }

    /// True while connections to listed servers are still being established.
    fn is_waiting_for_peers(&self) -> bool {
        if !self.peers.connects() || self.machine.counts_all() {
            return false;
        }
        let now = clock::now();
        let refused = now < self.join_until.after(REFUSED) && self.peers.is_rejected_by_peer();
        now < self.join_until || refused
    }

    /// Updates [`Fresh`], the time until which queries may bypass the machine, and the metrics.
    fn publish_freshness(&self) {
        let all = self.apply_queue.published.0 == self.machine.committed();
        let until = self.machine.fresh_until();
        let until = until.filter(|_| all && !self.is_waiting_for_peers());
        self.inbox.fresh.set(until);
        let figures = &self.inbox.figures;
        figures
            .committed
            .store(self.apply_queue.published.0, Relaxed);
        figures
            .newest_known
            .store(self.machine.newest_known(), Relaxed);
        figures
            .fresh_as_of
            .store(self.machine.fresh_as_of().0, Relaxed);
        let in_contact = self.machine.in_contact() as u64;
        figures.in_contact.store(in_contact, Relaxed);
        let writes = self.machine.writer().is_some_and(|w| **w == *self.me.name);
        figures.writes.store(writes.into(), Relaxed);
        figures.set_writer(self.machine.writer());
        figures.set_others(self.machine.others());
    }

    /// Starts background work whose result is sent to the event loop.
    pub(crate) fn spawn(
        &mut self,
        work: impl Future<Output = Option<Done<A::Snapshot>>> + Send + 'static,
    ) {
        let sender = self.sender.clone();
        self.tasks.spawn(async move {
            if let Some(done) = work.await {
                // Fails only after the event loop has ended.
                let _ = sender.send(done);
            }
        });
    }

    fn act(&mut self, action: Action) -> Result<(), Stopped> {
        match action {
            Action::Evaluate(ticket, key, body) => {
                self.enqueue(ApplyTask::Evaluate(ticket, key, body))?
            }
            Action::Put {
                group,
                bytes,
                attempt,
            } => {
                let number = group.number;
                if attempt == 1 {
                    self.enqueue(ApplyTask::Adopt(group))?;
                }
                self.put(number, attempt, bytes);
            }
            Action::Apply(group) => self.enqueue(ApplyTask::Apply(group))?,
            Action::Publish(number) => self.enqueue(ApplyTask::Publish(number))?,
            Action::Rollback => {
                // Counts every rollback. Most follow a lost put, but a server that takes over from a silent writer also
                // rolls back that writer's proposed group.
                self.inbox.figures.lost.fetch_add(1, Relaxed);
                self.enqueue(ApplyTask::Rollback)?;
            }
            Action::AnswerRead(read) => match self.reads.get(&read) {
                Some(reading) if reading.any => self.serve(read),
                _ => self.enqueue(ApplyTask::Read(read))?,
            },
            Action::Refuse(read, refusal) => {
                if let Some(reading) = self.reads.remove(&read) {
                    let _ = reading.reply.send(Err(refusal));
                }
            }
            Action::Answer(key, outcome) => {
                for (reply, _) in self.updates.remove(&key).into_iter().flatten() {
                    let _ = reply.send(outcome.clone());
                }
            }
            Action::Send(to, message) => self.peers.send(&to, message),
            Action::Report(problem) => {
                self.store.report(Report::Problem(problem, self.epoch));
            }
            Action::List {
                listing_id,
                after,
                all,
            } => self.list(listing_id, after, all),
            Action::WriteBack(number) => self.write_back(number),
            Action::Fetch(fetch) => self.fetch(fetch),
            Action::Span(first, last) => self.span(first, last),
            Action::Upload(base) => self.upload(base),
            Action::Download => self.download(),
            Action::Trim(number) => self.trim(number),
        }
        Ok(())
    }

    fn command(&mut self, command: Command<A::Snapshot>) {
        match command {
            // The caller has dropped the future. An HTTP client that disconnects does not cause this: the server's
            // thread keeps waiting.
            Command::Update(_, _, reply, _) if reply.is_closed() => {}
            Command::Update(request, body, reply, permit) => {
                let waiting = self.updates.entry(request.key).or_default();
                waiting.push((reply, permit));
                self.pending_events.push_back(Event::Update(request, body));
            }
            Command::Read(_, reply) if reply.is_closed() => {}
            Command::Read(_, reply) if self.reads.len() >= READS => {
                let _ = reply.send(Err(Refusal::Behind));
            }
            Command::Read(consistency, reply) => {
                self.next_read += 1;
                let reading = Reading {
                    asked: clock::now(),
                    any: consistency == Consistency::Any,
                    reply,
                };
                self.reads.insert(self.next_read, reading);
                (self.pending_events).push_back(Event::Read(self.next_read, consistency));
            }
            Command::Drain => self.pending_events.push_back(Event::Drain),
            Command::Save(reply) => match self.saving {
                true => drop(reply.send(None)),
                false => self.save(Some(reply)),
            },
            Command::Status(reply) => {
                let now = clock::now();
                let _ = reply.send(Status {
                    committed: self.apply_queue.published.0,
                    unready: self.unready(now),
                });
            }
        }
    }

    pub(crate) fn save(&mut self, reply: Option<oneshot::Sender<Option<u64>>>) {
        self.saving = true;
        let (number, snapshot) = self.apply_queue.published.clone();
        let (base, store) = (self.machine.base(number), self.store.clone());
        self.spawn(async move {
            let saved = blocking(move || store.save(&base, &snapshot)).await;
            Some(Done::Saved(number, saved, reply))
        });
    }
}
