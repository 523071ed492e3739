//! The order of operations on the store (the apply queue). Evaluations take long, so later operations do not wait for
//! them: groups are published meanwhile, and evaluations are cancelled when the head is rolled back. Applying groups
//! does block the queue: a group is applied before any later operation starts.

use crate::application::{Application, Evaluated, Report};
use crate::blocking::blocking;
use crate::driver::{Done, Driver, Stopped};
use crate::evaluations::Evaluations;
use crate::machine::{Base, Blob, Evaluation, Event, Group, RequestKey, Time};
use crate::peers::Peers;
use crate::uploads::AGAIN;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// An operation on the store. Operations are executed in order.
pub(crate) enum ApplyTask<S> {
    Evaluate(u64, RequestKey, Blob),
    /// A put of this server's group is about to start: the group consists of the oldest evaluated records.
    Adopt(Arc<Group>),
    Apply(Arc<Group>),
    Publish(u64),
    Rollback,
    Read(u64),
    /// Install a downloaded store.
    Install(Base, S),
    /// Rebase all snapshots onto the files that were last saved.
    Rebase,
}

/// The snapshots of the store, and the queue of operations on it.
pub(crate) struct ApplyQueue<S> {
    pub published: (u64, S),
    head: S,
    /// The head after each evaluated record that is in no group yet, oldest first.
    speculative_heads: VecDeque<S>,
    /// The head after each applied group that is not published yet, by group number.
    unpublished_heads: BTreeMap<u64, S>,
    evaluating: Evaluations<S>,
    /// Queued operations, each with the time at which it was added.
    waiting: VecDeque<(Time, ApplyTask<S>)>,
    /// Total bytes of the queued groups.
    waiting_bytes: usize,
    /// True while groups are being applied or snapshots are being rebased.
    applying: bool,
    /// True if snapshots will be rebased once the running evaluations have finished; new evaluations wait in `held`
    /// until then.
    rebase_pending: bool,
    held: VecDeque<(u64, RequestKey, Blob)>,
    /// Numbers of unpublished groups after which all servers merge.
    merging: BTreeSet<u64>,
    /// The newest groups that were applied to the head, from which spans are written.
    recent: VecDeque<Arc<Group>>,
    recent_bytes: usize,
}

impl<S: Clone + Send + Sync + 'static> ApplyQueue<S> {
    /// Creates the queue. Evaluation pauses once `most` bytes of records wait for their groups.
    pub fn new(number: u64, snapshot: S, most: usize) -> Self {
        Self {
            head: snapshot.clone(),
            published: (number, snapshot),
            speculative_heads: VecDeque::new(),
            unpublished_heads: BTreeMap::new(),
            evaluating: Evaluations::new(most),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            applying: false,
            rebase_pending: false,
            held: VecDeque::new(),
            merging: BTreeSet::new(),
            recent: VecDeque::new(),
            recent_bytes: 0,
        }
    }

    fn roll_back(&mut self) {
        self.head = self.published.1.clone();
        self.speculative_heads.clear();
        self.unpublished_heads.clear();
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
        let held = held
            .chain(&self.speculative_heads)
            .chain(self.unpublished_heads.values());
        held.cloned().collect()
    }

    fn put_back(&mut self, rebased: Vec<S>) {
        let mut rebased = rebased.into_iter();
        let [published, head] = [&mut self.published.1, &mut self.head];
        let held = [published, head].into_iter();
        let held = held
            .chain(&mut self.speculative_heads)
            .chain(self.unpublished_heads.values_mut());
        for (held, rebased) in held.zip(&mut rebased) {
            *held = rebased;
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

    fn push(&mut self, task: ApplyTask<S>) {
        if let ApplyTask::Apply(group) = &task {
            self.waiting_bytes += size(group);
        }
        self.waiting.push_back((crate::clock::now(), task));
    }

    fn pop(&mut self) -> Option<ApplyTask<S>> {
        let (_, task) = self.waiting.pop_front()?;
        if let ApplyTask::Apply(group) = &task {
            self.waiting_bytes -= size(group);
        }
        Some(task)
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
                Some((_, ApplyTask::Apply(group))) if !merges => {
                    bytes += size(group);
                    groups.push(group.clone());
                }
                Some((_, ApplyTask::Publish(number))) => publish = Some(*number),
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
    pub(crate) fn enqueue(&mut self, task: ApplyTask<A::Snapshot>) -> Result<(), Stopped> {
        // A rolled-back group may be followed by another one with the same number, so the entry is updated.
        if let ApplyTask::Adopt(group) | ApplyTask::Apply(group) = &task {
            match self.store.starts_merge(group) {
                true => self.apply_queue.merging.insert(group.number),
                false => self.apply_queue.merging.remove(&group.number),
            };
        }
        self.apply_queue.push(task);
        self.run_tasks()
    }

    pub(crate) fn run_tasks(&mut self) -> Result<(), Stopped> {
        while !self.apply_queue.applying
            && let Some(task) = self.apply_queue.pop()
        {
            self.run_task(task)?;
        }
        Ok(())
    }

    fn run_task(&mut self, task: ApplyTask<A::Snapshot>) -> Result<(), Stopped> {
        let apply_queue = &mut self.apply_queue;
        match task {
            ApplyTask::Evaluate(ticket, key, body) if apply_queue.rebase_pending => {
                apply_queue.held.push_back((ticket, key, body));
            }
            ApplyTask::Evaluate(ticket, key, body) => {
                let (store, done) = (&self.store, &self.sender);
                let update = (ticket, key, body);
                (apply_queue.evaluating).begin(update, &apply_queue.head, store, done);
            }
            ApplyTask::Adopt(group) => {
                let count = group.records.len();
                if apply_queue.speculative_heads.len() < count {
                    return Err(Stopped::impossible(
                        "a group of updates that were not evaluated",
                    ));
                }
                apply_queue.evaluating.release_records(count);
                if let Some(snapshot) = apply_queue.speculative_heads.drain(..count).next_back() {
                    apply_queue.unpublished_heads.insert(group.number, snapshot);
                }
                apply_queue.remember(group, self.span_limits);
            }
            ApplyTask::Apply(group) => {
                apply_queue.applying = true;
                let (groups, publish) = apply_queue.together(group);
                for group in &groups {
                    apply_queue.remember(group.clone(), self.span_limits);
                }
                let (mut head, store) = (apply_queue.head.clone(), self.store.clone());
                self.spawn(async move {
                    let first = groups[0].number;
                    let work = move || {
                        let mut applied = Vec::with_capacity(groups.len());
                        for group in &groups {
                            let next = store.apply(&head, group).map_err(|e| (group.number, e))?;
                            applied.push((group.number, next.clone()));
                            head = next;
                        }
                        Ok(applied)
                    };
                    let applied = tokio::task::spawn_blocking(work).await;
                    let applied = applied.map_err(|e| (first, std::io::Error::other(e)));
                    Some(Done::Applied(applied.flatten(), publish))
                });
            }
            ApplyTask::Publish(number) => self.publish(number)?,
            ApplyTask::Rollback => {
                apply_queue.roll_back();
                self.queue_pending_rebase();
            }
            ApplyTask::Read(read) => self.serve(read),
            // Wait for running evaluations: their results must be based on the same files as the head.
            ApplyTask::Rebase if !apply_queue.evaluating.is_empty() => {
                apply_queue.rebase_pending = true
            }
            ApplyTask::Rebase => {
                (apply_queue.applying, apply_queue.rebase_pending) = (true, false);
                let (held, store) = (apply_queue.all(), self.store.clone());
                self.spawn(async move {
                    let work = move || held.iter().map(|s| store.rebase(s)).collect();
                    Some(Done::Rebased(blocking(work).await))
                });
            }
            ApplyTask::Install(base, snapshot) => {
                apply_queue.published = (base.number, snapshot);
                apply_queue.roll_back();
                self.store.publish(base.number, &apply_queue.published.1);
                self.pending_events.push_back(Event::Downloaded(Some(base)));
                self.me.shards = self.store.shards();
                self.refresh_soon();
                self.queue_pending_rebase();
            }
        }
        Ok(())
    }

    fn publish(&mut self, number: u64) -> Result<(), Stopped> {
        if self.apply_queue.merging.remove(&number)
            && let Some(snapshot) = self.apply_queue.unpublished_heads.get(&number).cloned()
        {
            self.merge(number, snapshot);
        }
        let apply_queue = &mut self.apply_queue;
        if let Some(snapshot) = apply_queue.unpublished_heads.remove(&number) {
            apply_queue.unpublished_heads = apply_queue.unpublished_heads.split_off(&number);
            apply_queue.published = (number, snapshot);
            self.store.publish(number, &apply_queue.published.1);
        } else if apply_queue.published.0 != number {
            return Err(Stopped::impossible(
                "a group to publish that was not applied",
            ));
        }
        if let Some(base) = self.store.committed_merge() {
            self.upload_shards(base);
            self.saved(base);
        }
        Ok(())
    }

    /// Starts this server's part of a merge by all servers, in the background. An attempt that fails is repeated, since the
    /// cause may be a full disk.
    fn merge(&mut self, number: u64, snapshot: A::Snapshot) {
        let (base, store) = (self.machine.base(number), self.store.clone());
        self.spawn(async move {
            let mut pause = AGAIN.0;
            loop {
                let (of, base, snapshot) = (store.clone(), base.clone(), snapshot.clone());
                let merge = move || of.merge(&base, &snapshot);
                match blocking(merge).await {
                    Ok(()) => return None,
                    Err(e) => store.report(Report::Disk(e.to_string())),
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(AGAIN.1);
            }
        });
    }

    /// Handles the result of applying groups. Snapshots up to group `publish` become visible to queries.
    pub(crate) fn applied(
        &mut self,
        applied: Applied<A::Snapshot>,
        publish: Option<u64>,
    ) -> Result<(), Stopped> {
        let applied = applied.map_err(|(n, e)| Stopped::Store(format!("group {n}: {e}")))?;
        if let Some((_, last)) = applied.last() {
            self.apply_queue.head = last.clone();
        }
        self.apply_queue.unpublished_heads.extend(applied);
        self.apply_queue.applying = false;
        if let Some(number) = publish {
            self.publish(number)?;
        }
        self.run_tasks()
    }

    pub(crate) fn rebased(
        &mut self,
        rebased: std::io::Result<Vec<A::Snapshot>>,
    ) -> Result<(), Stopped> {
        let rebased = rebased.map_err(|e| Stopped::Store(e.to_string()))?;
        self.apply_queue.put_back(rebased);
        let (number, published) = &self.apply_queue.published;
        self.store.publish(*number, published);
        self.apply_queue.applying = false;
        let now = crate::clock::now();
        for (ticket, key, body) in std::mem::take(&mut self.apply_queue.held).into_iter().rev() {
            let task = ApplyTask::Evaluate(ticket, key, body);
            self.apply_queue.waiting.push_front((now, task));
        }
        self.run_tasks()
    }

    /// Queues the postponed rebase once no evaluation is running.
    fn queue_pending_rebase(&mut self) {
        if self.apply_queue.rebase_pending && self.apply_queue.evaluating.is_empty() {
            self.apply_queue.rebase_pending = false;
            let now = crate::clock::now();
            self.apply_queue
                .waiting
                .push_front((now, ApplyTask::Rebase));
        }
    }

    /// The machine's event for a finished evaluation; `None` if the head was rolled back meanwhile.
    pub(crate) fn evaluated(
        &mut self,
        ticket: u64,
        evaluated: Evaluated<A::Snapshot>,
    ) -> Option<Event> {
        if !self.apply_queue.evaluating.end(ticket, &evaluated) {
            return None;
        }
        self.queue_pending_rebase();
        let evaluation = match evaluated {
            Evaluated::Record {
                snapshot,
                bytes,
                report,
            } => {
                self.apply_queue.head = snapshot.clone();
                self.apply_queue.speculative_heads.push_back(snapshot);
                Evaluation::Record { bytes, report }
            }
            Evaluated::Refused(report) => Evaluation::Refused(report),
        };
        Some(Event::Evaluated(ticket, evaluation))
    }
}

/// The head after each applied group, by number; or the number of a group that could not be applied, and the error.
pub(crate) type Applied<S> = Result<Vec<(u64, S)>, (u64, std::io::Error)>;

/// Limits of the groups that are applied in one batch: their number, and approximately their bytes. Batches save
/// overhead while a server catches up; otherwise a batch has one or two groups.
const TOGETHER: usize = 64;
const TOGETHER_BYTES: usize = 1 << 20;
/// Bytes of queued groups at which fetching of groups stops.
const FULL: usize = 64 << 20;
