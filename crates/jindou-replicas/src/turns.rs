//! The order of operations on the store (the apply queue). Evaluations take long, so later operations do not wait for
//! them: groups are published meanwhile, and evaluations are cancelled when the head is rolled back. Applying groups
//! does block the queue: a group is applied before any later operation starts.

use crate::application::{Application, Evaluated, Report};
use crate::driver::{Done, Driver, Stopped};
use crate::evaluations::Evaluations;
use crate::machine::{Base, Blob, Evaluation, Event, Group, RequestKey, Time};
use crate::peers::Peers;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// An operation on the store. Operations are executed in order.
pub(crate) enum Turn<S> {
    Evaluate(u64, RequestKey, Blob),
    /// This server's group was put: it consists of the oldest evaluated records.
    Take(Arc<Group>),
    Lay(Arc<Group>),
    Publish(u64),
    Fall,
    Serve(u64),
    /// Install a downloaded store.
    Install(Base, S),
    /// Rebase all snapshots onto the files that were last saved.
    OverSaved,
}

/// The snapshots of the store, and the queue of operations on it.
pub(crate) struct Turns<S> {
    pub published: (u64, S),
    head: S,
    /// The head after each evaluated record that is in no group yet, oldest first.
    layers: VecDeque<S>,
    /// The head after each applied group that is not published yet, by group number.
    groups: BTreeMap<u64, S>,
    evaluating: Evaluations<S>,
    /// Queued operations, each with the time at which it was added.
    waiting: VecDeque<(Time, Turn<S>)>,
    /// Total bytes of the queued groups.
    waiting_bytes: usize,
    /// True while groups are being applied or snapshots are being rebased.
    laying: bool,
    /// True if snapshots will be rebased once the running evaluations have finished; new evaluations wait in `held`
    /// until then.
    moves: bool,
    held: VecDeque<(u64, RequestKey, Blob)>,
    /// Numbers of unpublished groups after which all servers merge.
    merging: BTreeSet<u64>,
    /// The newest groups that were applied to the head, from which spans are written.
    recent: VecDeque<Arc<Group>>,
    recent_bytes: usize,
}

impl<S: Clone + Send + Sync + 'static> Turns<S> {
    /// Creates the queue. Evaluation pauses once `most` bytes of records wait for their groups.
    pub fn new(number: u64, snapshot: S, most: usize) -> Self {
        Self {
            head: snapshot.clone(),
            published: (number, snapshot),
            layers: VecDeque::new(),
            groups: BTreeMap::new(),
            evaluating: Evaluations::new(most),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            laying: false,
            moves: false,
            held: VecDeque::new(),
            merging: BTreeSet::new(),
            recent: VecDeque::new(),
            recent_bytes: 0,
        }
    }

    fn fall(&mut self) {
        self.head = self.published.1.clone();
        self.layers.clear();
        self.groups.clear();
        self.cancel();
    }

    pub fn cancel(&mut self) {
        self.evaluating.cancel();
        self.held.clear();
    }

    /// All snapshots that are held, in the order that [`Self::put_back`] expects.
    fn all(&self) -> Vec<S> {
        let [published, head] = [&self.published.1, &self.head];
        let held = [published, head].into_iter();
        let held = held.chain(&self.layers).chain(self.groups.values());
        held.cloned().collect()
    }

    fn put_back(&mut self, moved: Vec<S>) {
        let mut moved = moved.into_iter();
        let [published, head] = [&mut self.published.1, &mut self.head];
        let held = [published, head].into_iter();
        let held = held.chain(&mut self.layers).chain(self.groups.values_mut());
        for (held, moved) in held.zip(&mut moved) {
            *held = moved;
        }
    }

    /// Time for which the oldest operation has been queued; zero if the queue is empty.
    pub fn behind(&self, now: Time) -> Duration {
        (self.waiting.front()).map_or(Duration::ZERO, |(since, _)| now.since(*since))
    }

    /// True if the queued groups have so many bytes that no more groups should be fetched.
    pub fn is_full(&self) -> bool {
        self.waiting_bytes >= FULL
    }

    fn push(&mut self, turn: Turn<S>) {
        if let Turn::Lay(group) = &turn {
            self.waiting_bytes += size(group);
        }
        self.waiting.push_back((crate::clock::now(), turn));
    }

    fn pop(&mut self) -> Option<Turn<S>> {
        let (_, turn) = self.waiting.pop_front()?;
        if let Turn::Lay(group) = &turn {
            self.waiting_bytes -= size(group);
        }
        Some(turn)
    }

    /// The groups to apply in one batch: `first` and those queued directly after it. Also the last of them that is
    /// published afterwards, if any.
    fn together(&mut self, first: Arc<Group>) -> (Vec<Arc<Group>>, Option<u64>) {
        let (mut groups, mut publish, mut bytes) = (vec![first], None, 0);
        while groups.len() < TOGETHER && bytes < TOGETHER_BYTES {
            // A merge starts when this group is published. A later group in the batch could be the commit of that merge
            // and wait for it forever.
            let merges = (groups.last()).is_some_and(|group| self.merging.contains(&group.number));
            match self.waiting.front() {
                Some((_, Turn::Lay(group))) if !merges => {
                    bytes += size(group);
                    groups.push(group.clone());
                }
                Some((_, Turn::Publish(number))) => publish = Some(*number),
                _ => break,
            }
            self.pop();
        }
        (groups, publish)
    }

    /// The groups of a span, if all of them were applied here and are still in memory. The groups' objects are not read
    /// back, because names that were trimmed may have been created again with other content.
    pub fn span(&self, first: u64, last: u64) -> Option<Vec<Arc<Group>>> {
        let groups: Vec<_> = (self.recent.iter())
            .filter(|group| (first..=last).contains(&group.number))
            .cloned()
            .collect();
        let numbers = groups.iter().map(|group| group.number);
        numbers.eq(first..=last).then_some(groups)
    }

    /// Remembers an applied group, and drops the oldest ones beyond `most` bytes and groups.
    fn remember(&mut self, group: Arc<Group>, most: (usize, u64)) {
        // A group that was rolled back is replaced by a later one with the same number.
        while self.recent.back().is_some_and(|g| g.number >= group.number) {
            self.recent_bytes -= self.recent.pop_back().map_or(0, |g| size(&g));
        }
        self.recent_bytes += size(&group);
        self.recent.push_back(group);
        while self.recent_bytes > most.0 || self.recent.len() as u64 > most.1 {
            self.recent_bytes -= self.recent.pop_front().map_or(0, |g| size(&g));
        }
    }
}

fn size(group: &Group) -> usize {
    let records = group.records.iter();
    records.map(|r| 64 + r.report.len() + r.bytes.len()).sum()
}

impl<A: Application, P: Peers> Driver<A, P> {
    /// Queues an operation and executes everything that can be executed.
    pub(crate) fn turn(&mut self, turn: Turn<A::Snapshot>) -> Result<(), Stopped> {
        // A rolled-back group may be followed by another one with the same number, so the entry is updated.
        if let Turn::Take(group) | Turn::Lay(group) = &turn {
            match self.store.starts_merge(group) {
                true => self.turns.merging.insert(group.number),
                false => self.turns.merging.remove(&group.number),
            };
        }
        self.turns.push(turn);
        self.take_turns()
    }

    pub(crate) fn take_turns(&mut self) -> Result<(), Stopped> {
        while !self.turns.laying
            && let Some(turn) = self.turns.pop()
        {
            self.take_turn(turn)?;
        }
        Ok(())
    }

    fn take_turn(&mut self, turn: Turn<A::Snapshot>) -> Result<(), Stopped> {
        let turns = &mut self.turns;
        match turn {
            Turn::Evaluate(ticket, key, body) if turns.moves => {
                turns.held.push_back((ticket, key, body));
            }
            Turn::Evaluate(ticket, key, body) => {
                let (store, done) = (&self.store, &self.sender);
                let update = (ticket, key, body);
                (turns.evaluating).begin(update, &turns.head, store, done);
            }
            Turn::Take(group) => {
                let count = group.records.len();
                if turns.layers.len() < count {
                    return Err(Stopped::impossible(
                        "a group of updates that were not evaluated",
                    ));
                }
                turns.evaluating.taken(count);
                if let Some(snapshot) = turns.layers.drain(..count).next_back() {
                    turns.groups.insert(group.number, snapshot);
                }
                turns.remember(group, self.span_room);
            }
            Turn::Lay(group) => {
                turns.laying = true;
                let (groups, publish) = turns.together(group);
                for group in &groups {
                    turns.remember(group.clone(), self.span_room);
                }
                let (mut head, store) = (turns.head.clone(), self.store.clone());
                self.spawn(async move {
                    let first = groups[0].number;
                    let work = move || {
                        let mut laid = Vec::with_capacity(groups.len());
                        for group in &groups {
                            let next = store.lay(&head, group).map_err(|e| (group.number, e))?;
                            laid.push((group.number, next.clone()));
                            head = next;
                        }
                        Ok(laid)
                    };
                    let laid = match tokio::task::spawn_blocking(work).await {
                        Ok(laid) => laid,
                        Err(e) => Err((first, std::io::Error::other(e))),
                    };
                    Some(Done::Laid(laid, publish))
                });
            }
            Turn::Publish(number) => self.publish(number)?,
            Turn::Fall => {
                turns.fall();
                self.move_now();
            }
            Turn::Serve(read) => self.serve(read),
            // Wait for running evaluations: their results must be based on the same files as the head.
            Turn::OverSaved if !turns.evaluating.is_empty() => turns.moves = true,
            Turn::OverSaved => {
                (turns.laying, turns.moves) = (true, false);
                let (held, store) = (turns.all(), self.store.clone());
                self.spawn(async move {
                    let work = move || held.iter().map(|s| store.over_saved(s)).collect();
                    let moved = match tokio::task::spawn_blocking(work).await {
                        Ok(moved) => moved,
                        Err(e) => Err(std::io::Error::other(e)),
                    };
                    Some(Done::OverSaved(moved))
                });
            }
            Turn::Install(base, snapshot) => {
                turns.published = (base.number, snapshot);
                turns.fall();
                self.store.publish(base.number, &turns.published.1);
                self.happened.push_back(Event::Downloaded(Some(base)));
                self.me.shards = self.store.shards();
                self.refresh_soon();
                self.move_now();
            }
        }
        Ok(())
    }

    fn publish(&mut self, number: u64) -> Result<(), Stopped> {
        if self.turns.merging.remove(&number)
            && let Some(snapshot) = self.turns.groups.get(&number).cloned()
        {
            self.merge(number, snapshot);
        }
        let turns = &mut self.turns;
        if let Some(snapshot) = turns.groups.remove(&number) {
            turns.groups = turns.groups.split_off(&number);
            turns.published = (number, snapshot);
            self.store.publish(number, &turns.published.1);
        } else if turns.published.0 != number {
            return Err(Stopped::impossible("a group to publish that was not laid"));
        }
        if let Some(base) = self.store.committed_merge() {
            self.upload_shards(base);
            self.saved(base);
        }
        Ok(())
    }

    /// Starts this server's part of a merge by all servers, in the background.
    fn merge(&mut self, number: u64, snapshot: A::Snapshot) {
        let (base, store) = (self.machine.base(number), self.store.clone());
        self.spawn(async move {
            let work = move || store.merge(&base, &snapshot);
            let failed = match tokio::task::spawn_blocking(work).await {
                Ok(Ok(())) => return None,
                Ok(Err(e)) => e.to_string(),
                Err(e) => e.to_string(),
            };
            Some(Done::Report(Report::Disk(failed)))
        });
    }

    /// Handles the result of applying groups. Snapshots up to group `publish` become visible to queries.
    pub(crate) fn laid(
        &mut self,
        laid: Laid<A::Snapshot>,
        publish: Option<u64>,
    ) -> Result<(), Stopped> {
        let laid = laid.map_err(|(n, e)| Stopped::Store(format!("group {n}: {e}")))?;
        if let Some((_, last)) = laid.last() {
            self.turns.head = last.clone();
        }
        self.turns.groups.extend(laid);
        self.turns.laying = false;
        if let Some(number) = publish {
            self.publish(number)?;
        }
        self.take_turns()
    }

    pub(crate) fn moved(
        &mut self,
        moved: std::io::Result<Vec<A::Snapshot>>,
    ) -> Result<(), Stopped> {
        let moved = moved.map_err(|e| Stopped::Store(e.to_string()))?;
        self.turns.put_back(moved);
        let (number, published) = &self.turns.published;
        self.store.publish(*number, published);
        self.turns.laying = false;
        let now = crate::clock::now();
        for (ticket, key, body) in std::mem::take(&mut self.turns.held).into_iter().rev() {
            let turn = Turn::Evaluate(ticket, key, body);
            self.turns.waiting.push_front((now, turn));
        }
        self.take_turns()
    }

    /// Queues the postponed rebase once no evaluation is running.
    fn move_now(&mut self) {
        if self.turns.moves && self.turns.evaluating.is_empty() {
            self.turns.moves = false;
            let now = crate::clock::now();
            self.turns.waiting.push_front((now, Turn::OverSaved));
        }
    }

    /// The machine's event for a finished evaluation; `None` if the head was rolled back meanwhile.
    pub(crate) fn evaluated(
        &mut self,
        ticket: u64,
        evaluated: Evaluated<A::Snapshot>,
    ) -> Option<Event> {
        if !self.turns.evaluating.end(ticket, &evaluated) {
            return None;
        }
        self.move_now();
        let evaluation = match evaluated {
            Evaluated::Record {
                snapshot,
                bytes,
                report,
            } => {
                self.turns.head = snapshot.clone();
                self.turns.layers.push_back(snapshot);
                Evaluation::Record { bytes, report }
            }
            Evaluated::Refused(report) => Evaluation::Refused(report),
        };
        Some(Event::Evaluated(ticket, evaluation))
    }
}

/// The head after each applied group, by number; or the number of a group that could not be applied, and the error.
pub(crate) type Laid<S> = Result<Vec<(u64, S)>, (u64, std::io::Error)>;

/// Limits of the groups that are applied in one batch: their number, and approximately their bytes. Batches save
/// overhead while a server catches up; otherwise a batch has one or two groups.
const TOGETHER: usize = 64;
const TOGETHER_BYTES: usize = 1 << 20;
/// Bytes of queued groups at which fetching of groups stops.
const FULL: usize = 64 << 20;
