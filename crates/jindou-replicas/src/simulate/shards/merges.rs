//! Merges by all servers, the bases that they make, and the evaluation of the records between.

use super::store::{
    FREED, Files, MERGE_COMMITTED, MERGE_STARTED, NOTHING, ShardResult, decode, encode,
};
use super::{
    Counted, Holder, MS, Op, S, ScheduledEvent, ShardEvent, ShardedBase, Snapshot, View, World,
};
use crate::machine::event::{Action, Base, Event};
use crate::machine::group::{Blob, Record, RequestKey};
use crate::simulate::Fault;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Time after which the rest of an upload is tried again.
const UPLOAD_AGAIN: u64 = 5 * S;

/// A merge on one server.
#[derive(Debug)]
pub struct Merge {
    /// The snapshot to merge, its number, and what the machine stores with it.
    pub view: Rc<View>,
    snapshot: Snapshot,
    base: Base,
    /// Files and results of the server's shards, once they are written.
    written: BTreeMap<usize, (Rc<Files>, ShardResult)>,
}

impl Merge {
    fn number(&self) -> u64 {
        self.snapshot.state.count
    }

    /// Base, shard and result of what is written.
    pub fn results(&self) -> impl Iterator<Item = (u64, usize, u64)> {
        let all = self.written.iter();
        all.map(|(shard, (_, result))| (self.number(), *shard, result.hash))
    }
}

impl Holder {
    /// The results of all shards of a base, from the log, this server or connected ones.
    pub fn all_results(&self, base: u64, shards: usize, now: u64) -> Option<Vec<u64>> {
        if self.committed.0 == base {
            return Some(self.committed.1.clone());
        }
        let own = self.newest().filter(|newest| newest.number == base);
        let own = own.into_iter().flat_map(|_| &self.results);
        let own = own.map(|(shard, result)| (base, *shard, *result));
        let peers = self
            .connected(now)
            .flat_map(|(_, what)| what.written.iter().copied());
        let merge = self.merge.iter().flat_map(Merge::results);
        let all: BTreeMap<usize, u64> = (own.chain(merge).chain(peers))
            .filter(|(of, ..)| *of == base)
            .map(|(_, shard, result)| (shard, result))
            .collect();
        (all.len() == shards).then(|| all.into_values().collect())
    }
}

impl World<'_> {
    /// Takes note of the snapshot that a server publishes.
    pub fn published_view(&mut self, index: usize) {
        let now = self.now;
        let Some((server, holder)) = self.parts(index) else {
            return;
        };
        let (group, snapshot) = server.published.clone();
        let (Some(view), Some(machine)) = (snapshot.view.clone(), &server.machine) else {
            return;
        };
        let before = holder.parts.back().map(|(last, _)| last.state.count);
        if let Some((_, replaced)) = holder.parts.back_mut() {
            replaced.get_or_insert(now);
        }
        let number = snapshot.state.count;
        holder.parts.push_back((snapshot.clone(), None));
        let newest = holder.newest().map_or(0, |base| base.number);
        let is_started = view
            .open
            .zip(before)
            .is_some_and(|(open, before)| open > before);
        if is_started && newest < number {
            holder.merge = Some(Merge {
                base: machine.base(group),
                view: Rc::clone(&view),
                snapshot,
                written: BTreeMap::new(),
            });
            let time = match self.random.below(10) {
                0 => self.random.between(S, 8 * S),
                _ => self.random.between(10 * MS, 500 * MS),
            };
            self.again(index, time, ShardEvent::Written(number));
        }
        let Some((server, holder)) = self.parts(index) else {
            return;
        };
        let base = view.base.number;
        if holder.bases.published(base, view.open) {
            holder.done.take_if(|(_, done)| done.number == base);
            let (start, group) = (server.start, view.base.group);
            self.count(Counted::Merges);
            self.again(index, 0, ShardEvent::Upload(group));
            self.after(
                0,
                ScheduledEvent::Deliver(index, start, Event::Merged(group), None),
            );
        }
    }

    /// The files of a merge are written; or that failed, and the server ends.
    pub fn written(&mut self, index: usize, number: u64) {
        let fails = self.random.chance(3) && self.now < self.until;
        let fault = self.fault;
        let Some((server, holder)) = self.parts(index) else {
            return;
        };
        let Some(merge) = holder
            .merge
            .as_mut()
            .filter(|merge| merge.number() == number)
        else {
            return;
        };
        if fails && merge.written.is_empty() {
            self.crash(index, false);
            let time = self.random.between(100 * MS, 2 * S);
            return self.after(time, ScheduledEvent::Start(index));
        }
        let published = server.published.1.view.as_ref();
        let published = published.filter(|_| fault == Some(Fault::MergesOwnSnapshot));
        let published = published.filter(|view| Rc::ptr_eq(&view.base, &merge.view.base));
        merge.written = published.unwrap_or(&merge.view).merge();
        let results = merge
            .written
            .values()
            .map(|(_, result)| (result.hash, result.clone()));
        let results: Vec<_> = results.collect();
        if let Some(shards) = &mut self.shards {
            shards.results.extend(results);
        }
        self.announce(index);
        self.complete_merge(index);
    }

    /// Completes the base of a merge once the results of all shards are known, and serves it.
    pub fn complete_merge(&mut self, index: usize) {
        let (now, fault) = (self.now, self.fault);
        let Some(shards) = &mut self.shards else {
            return;
        };
        let holder = &mut shards.holders[index];
        let all = holder
            .merge
            .as_ref()
            .filter(|merge| !merge.written.is_empty());
        let Some(mut all) = all.and_then(|m| holder.all_results(m.number(), shards.count, now))
        else {
            return;
        };
        let Some(merge) = holder.merge.take() else {
            return;
        };
        if fault == Some(Fault::StatisticsOfOneShard) {
            all.truncate(1);
        }
        let mut base = ShardedBase {
            number: merge.number(),
            group: merge.base.number,
            files: vec![None; shards.count],
            keys: 0,
        };
        holder.results.clear();
        for (shard, (files, result)) in merge.written {
            base.files[shard] = Some(files);
            holder.results.push((shard, result.hash));
        }
        let results: Vec<&ShardResult> = all.iter().filter_map(|r| shards.results.get(r)).collect();
        let view = Rc::new(merge.view.over(base, &results));
        let base = Rc::clone(&view.base);
        holder.served.insert(base.number, Rc::clone(&base));
        holder.done = Some((merge.view, base));
        let state = merge.snapshot.state;
        self.servers[index].disk = Some((
            merge.base,
            Snapshot {
                state,
                view: Some(view),
            },
        ));
        self.compare_files(index);
        self.announce(index);
        self.resume_waiting(index);
    }

    /// All holders of a shard have the same files of a base.
    fn compare_files(&mut self, index: usize) {
        let Some(shards) = &mut self.shards else {
            return;
        };
        let holder = &shards.holders[index];
        let Some(number) = holder.newest().map(|base| base.number) else {
            return;
        };
        for (shard, result) in &holder.results {
            let first = shards.first.entry((number, *shard)).or_insert(*result);
            if first != result {
                let why = format!("{index} has other files of shard {shard} in base {number}");
                return self.fail(why);
            }
        }
    }

    /// Queues an action on the store while an earlier one waits, or if it commits a merge whose files are not there.
    pub fn hold_back(&mut self, index: usize, action: Action) -> Option<Action> {
        let is_of_store = matches!(
            action,
            Action::Evaluate(..)
                | Action::Apply(_)
                | Action::Publish(_)
                | Action::Rollback
                | Action::AnswerRead(_)
        );
        let waits = self
            .parts(index)
            .is_some_and(|(_, holder)| !holder.waiting.is_empty());
        if is_of_store && (waits || self.must_wait(index, &action)) {
            self.count(Counted::HeldBack);
            if let Some((_, holder)) = self.parts(index) {
                holder.waiting.push_back(action);
            }
            // The files may only have waited for the results in the record.
            self.complete_merge(index);
            return None;
        }
        Some(action)
    }

    fn must_wait(&mut self, index: usize, action: &Action) -> bool {
        let Action::Apply(group) = action else {
            return false;
        };
        let records = group.records.iter();
        let Some(committed) = records
            .rev()
            .find_map(|r| decode(MERGE_COMMITTED, &r.bytes))
        else {
            return false;
        };
        let fault = self.fault;
        let Some((server, holder)) = self.parts(index) else {
            return false;
        };
        let number = committed[0];
        let is_over = (server.head.view.as_ref()).is_some_and(|view| view.base.number >= number);
        holder.committed = (number, committed[1..].to_vec());
        let is_done = (holder.done.as_ref()).is_some_and(|(_, base)| base.number == number);
        !is_over && !is_done && fault != Some(Fault::CommittedTooEarly)
    }

    /// Executes the actions that waited for a merge.
    fn resume_waiting(&mut self, index: usize) {
        while let Some(action) = self
            .parts(index)
            .and_then(|(_, h)| h.waiting.front().cloned())
        {
            if self.must_wait(index, &action) {
                return;
            }
            if let Some((_, holder)) = self.parts(index) {
                holder.waiting.pop_front();
            }
            self.act_now(index, action);
        }
    }

    pub fn is_waiting(&mut self, index: usize) -> bool {
        self.parts(index)
            .is_some_and(|(_, holder)| !holder.waiting.is_empty())
    }

    /// Applies a record to the head.
    pub fn apply_to_head(&mut self, index: usize, record: &Record) {
        let (fault, server) = (self.fault, &mut self.servers[index]);
        server.head.state.apply(record);
        let (Some(shards), Some(view)) = (&mut self.shards, &server.head.view) else {
            return;
        };
        let holder = &mut shards.holders[index];
        let mut next = (**view).clone();
        if let Some(number) = decode(MERGE_COMMITTED, &record.bytes).map(|numbers| numbers[0])
            && next.base.number < number
        {
            if let Some((then, base)) = holder.done.as_ref().filter(|(_, b)| b.number == number) {
                next = next.rebase(then, base);
            } else if fault == Some(Fault::CommittedTooEarly) {
                let base = ShardedBase {
                    number,
                    ..(*next.base).clone()
                };
                next.base = Rc::new(base);
                holder.served.insert(number, Rc::clone(&next.base));
            }
        }
        let applied = next.apply(record, server.head.state.count, &shards.results);
        server.head.view = Some(Rc::new(next));
        if let Err(why) = applied {
            self.fail(format!("{index}: {why}"));
        }
    }

    /// The record of a server's proposal; `None` if it is refused.
    pub fn evaluate_proposal(
        &mut self,
        index: usize,
        key: RequestKey,
        body: &Blob,
    ) -> Option<Record> {
        let fault = self.fault;
        let (server, holder) = self.parts(index)?;
        let view = server.head.view.as_ref()?;
        let bytes = if let Some(base) = decode(MERGE_STARTED, body) {
            match view.open.is_none() && view.base.number == base[0] {
                true => encode(MERGE_STARTED, &[]),
                false => encode(NOTHING, &[]),
            }
        } else if let Some(ids) = decode(FREED, body) {
            let unused = view.unused();
            let ids: Vec<u64> = ids.into_iter().filter(|id| unused.contains(id)).collect();
            match ids.is_empty() {
                true => encode(NOTHING, &[]),
                false => encode(FREED, &ids),
            }
        } else {
            let committed = decode(MERGE_COMMITTED, body)?;
            let number = committed[0];
            view.open.filter(|open| *open <= number)?;
            holder.committed = (number, committed[1..].to_vec());
            let is_done = (holder.done.as_ref()).is_some_and(|(_, base)| base.number == number);
            let has_files = view.base.number == number || is_done;
            (has_files || fault == Some(Fault::CommittedTooEarly)).then(|| body.clone())?
        };
        Some(Record {
            key,
            fingerprint: 0,
            report: Blob::from([]),
            bytes,
        })
    }

    /// Uploads those of a server's shards that it is the first to have.
    pub fn upload_shards(&mut self, index: usize, group: u64) {
        let now = self.now;
        if self.bucket.has_base(group) {
            return;
        }
        let Some(shards) = &self.shards else {
            return;
        };
        let holder = &shards.holders[index];
        let Some(base) = holder.newest().filter(|base| base.group == group) else {
            return;
        };
        let mut ops = Vec::new();
        for (shard, files) in base.shards() {
            let is_there = shards.uploaded.contains_key(&(group, shard));
            if !is_there && holder.is_first(index, shard, now) {
                ops.push(Op::Shard(group, shard, Rc::clone(files)));
            }
        }
        for op in ops {
            self.request(index, op);
        }
        self.again(index, UPLOAD_AGAIN, ShardEvent::Upload(group));
    }

    pub fn shard_arrived(&mut self, (group, shard): (u64, usize), files: Rc<Files>) {
        self.count(Counted::ShardsUploaded);
        if let Some(shards) = &mut self.shards {
            shards.uploaded.entry((group, shard)).or_insert(files);
        }
    }

    /// Creates the document of the base on disk once all its shards are uploaded.
    pub fn create_document(&mut self, index: usize, base: Base) {
        let (server, Some(shards)) = (&self.servers[index], &self.shards) else {
            return;
        };
        let Some((_, snapshot)) = server
            .disk
            .as_ref()
            .filter(|(b, _)| b.number == base.number)
        else {
            return;
        };
        let uploaded = |shard: usize| match self.fault {
            Some(Fault::DocumentOfTwoBases) => {
                let mut all = shards.uploaded.iter().filter(|((_, of), _)| *of == shard);
                all.next_back().map(|(_, files)| Rc::clone(files))
            }
            _ => shards.uploaded.get(&(base.number, shard)).cloned(),
        };
        let files: Option<Vec<_>> = (0..shards.count).map(uploaded).collect();
        let (Some(files), Some(view)) = (files, &snapshot.view) else {
            return self.again(index, S, ShardEvent::Document(base));
        };
        let files = files.into_iter().map(Some).collect();
        let whole = ShardedBase {
            files,
            ..(*view.base).clone()
        };
        let view = view.opened(Rc::new(whole), None);
        let snapshot = Snapshot {
            view: Some(Rc::new(view)),
            ..snapshot.clone()
        };
        self.request(index, Op::Upload(base, snapshot));
    }

    /// Puts a server's shards of a base from the bucket into its folder.
    pub fn received(&mut self, index: usize, snapshot: &mut Snapshot) {
        let fault = self.fault;
        let Some((_, holder)) = self.parts(index) else {
            return;
        };
        let Some(view) = &snapshot.view else {
            return;
        };
        let view = view.opened(view.base.held(&holder.held), fault);
        let number = view.base.number;
        holder.served.insert(number, Rc::clone(&view.base));
        holder.merge.take_if(|merge| merge.number() <= number);
        holder.results.clear();
        snapshot.view = Some(Rc::new(view));
    }

    /// Once faults have stopped, no merge is open, and the shards of the newest base are in the bucket.
    pub fn check_uploads(&mut self) {
        let Some(shards) = &self.shards else {
            return;
        };
        let members = (self.servers.iter()).filter(|server| server.member);
        let views: Vec<_> = members
            .filter_map(|s| s.published.1.view.as_ref())
            .collect();
        let Some(base) = views
            .iter()
            .map(|view| &view.base)
            .max_by_key(|base| base.number)
        else {
            return;
        };
        let is_open = views.iter().any(|view| view.open.is_some());
        let is_there = |shard| shards.uploaded.contains_key(&(base.group, shard));
        if is_open {
            self.fail("a merge is not committed in the end".to_owned());
        } else if base.group > 0 && !(0..shards.count).all(is_there) {
            let group = base.group;
            self.fail(format!(
                "not all shards of the base of group {group} are uploaded"
            ));
        }
    }
}
