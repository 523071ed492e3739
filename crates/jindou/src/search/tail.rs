//! The word index of the terms that updates added, and the thread that builds it.

use crate::Snapshot;
use jindou_graph::delta::{TailTerms, TermsMark};
use jindou_model::{FIRST_TAIL_ID, MemoryBudget, Result, VertexId, sync};
use jindou_text::{BLOCK, Growing, OpenText};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Divisor of the runtime's memory that gives the memory limit of the index.
const SHARE: u64 = 8;

/// Word index of the tail's terms, which a background thread extends. Each database has one.
#[derive(Default)]
pub(crate) struct TailTexts {
    state: Mutex<State>,
    /// True while the background thread runs.
    working: AtomicBool,
}

/// The index, and the identity of the terms in it, since freed ids are assigned to other terms.
#[derive(Clone, Default)]
pub(super) struct IndexedTail {
    pub words: Growing,
    /// For each part of the tail, the identity of its terms when they were indexed.
    marks: Arc<Vec<TermsMark>>,
}

impl IndexedTail {
    /// The parts, of [`TailTerms::PART`] numbers each, whose terms have changed since they were indexed. O(parts).
    fn changed<'t>(&'t self, tail: &'t TailTerms) -> impl Iterator<Item = u32> + 't {
        let marks = (0u32..).zip(self.marks.iter());
        marks.filter_map(|(part, mark)| (!tail.is_marked(part, mark)).then_some(part))
    }

    /// The block with the most changed parts.
    fn most_changed(&self, tail: &TailTerms) -> Option<[u32; 2]> {
        let changed: Vec<u32> = self
            .changed(tail)
            .map(|part| part * TailTerms::PART)
            .collect();
        let of = |range: &[u32; 2]| {
            let [from, to] = range.map(|n| changed.partition_point(|&first| first < n));
            to - from
        };
        self.words
            .ranges()
            .max_by_key(of)
            .filter(|range| of(range) > 0)
    }

    /// The numbers of the terms that a search has to scan.
    pub fn unindexed_numbers<'t>(&'t self, tail: &'t TailTerms) -> impl Iterator<Item = u32> + 't {
        let part = |part: u32| part * TailTerms::PART..(part + 1) * TailTerms::PART;
        let changed = self.changed(tail).flat_map(part);
        changed.chain(self.words.len()..tail.len())
    }

    /// Number of terms that a search has to scan.
    fn unindexed(&self, tail: &TailTerms) -> u32 {
        let changed = self.changed(tail).count() as u32 * TailTerms::PART;
        changed.saturating_add(tail.len().saturating_sub(self.words.len()))
    }

    /// The index with one more block, or with one block indexed again; `None` if neither pays.
    fn improved(&self, tail: &TailTerms, memory: &MemoryBudget) -> Result<Option<Self>> {
        let term = |n: u32| tail.term(VertexId(FIRST_TAIL_ID + n));
        let grown = self.words.grown(tail.len(), FIRST_TAIL_ID, &term, memory)?;
        let made = match grown {
            Some(words) => {
                let range = words.ranges().next_back();
                range.map(|range| (words, range))
            }
            None => match self.most_changed(tail) {
                None => None,
                Some(range) => {
                    let words = &self.words;
                    let words = words.with_block_of(range, FIRST_TAIL_ID, &term, memory)?;
                    Some((words, range))
                }
            },
        };
        Ok(made.map(|(words, [first, end])| {
            let mut marks = self.marks.to_vec();
            let [first, end] = [first, end].map(|n| (n / TailTerms::PART) as usize);
            let rest = marks.split_off(end.min(marks.len()));
            marks.truncate(first);
            marks.extend((first as u32..end as u32).map(|part| tail.mark(part)));
            marks.extend(rest);
            Self {
                words,
                marks: Arc::new(marks),
            }
        }))
    }
}

#[derive(Default)]
struct State {
    /// Id epoch of the indexed terms.
    epoch: u64,
    index: IndexedTail,
    /// The part of the runtime's budget for the index; `None` until indexing begins.
    memory: Option<MemoryBudget>,
    /// Number of terms in the tail when memory was last too small to index more of them.
    full: Option<u32>,
}

/// True if the base has no word index, or has one that was verified and can be searched; in a sharded store, for the
/// shards of this process.
pub(super) fn ready(snapshot: &Snapshot) -> bool {
    if let Some(sharded) = snapshot.as_sharded() {
        return sharded.others().prepare_search(&mut || true);
    }
    let index = snapshot.base().indexes().get::<OpenText>();
    index.is_none_or(OpenText::is_ready)
}

/// True if searches need not scan the base's terms; in a sharded store, for the shards of this process.
pub(super) fn has_index(snapshot: &Snapshot) -> bool {
    if let Some(sharded) = snapshot.as_sharded() {
        return sharded.others().has_word_index();
    }
    let base = snapshot.base();
    base.indexes().get::<OpenText>().is_some() || base.dictionary().is_empty()
}

impl TailTexts {
    /// The index of a snapshot's tail, with the terms indexed so far; empty for another id epoch.
    pub(super) fn of(&self, snapshot: &Snapshot) -> IndexedTail {
        let state = sync::lock(&self.state);
        match state.epoch == snapshot.base().epoch() {
            true => state.index.clone(),
            false => IndexedTail::default(),
        }
    }

    /// True if a whole block of terms is not indexed yet, and the memory may suffice to index it.
    pub fn is_behind(&self, snapshot: &Snapshot) -> bool {
        let tail = snapshot.tail();
        let (index, full) = {
            let state = sync::lock(&self.state);
            if state.epoch != snapshot.base().epoch() {
                return tail.len() >= BLOCK;
            }
            (state.index.clone(), state.full)
        };
        // After memory was too small, indexing is tried again once the tail has twice as many terms.
        let is_full = full.is_some_and(|at| tail.len() < at.saturating_mul(2));
        !is_full && index.unindexed(tail) >= BLOCK
    }

    /// Starts a thread that prepares the base's index and indexes the tail's remaining terms, unless one is running.
    /// The thread ends when the database is dropped.
    pub fn catch_up(this: &Arc<Self>, snapshot: &Snapshot, memory: &MemoryBudget) {
        if ready(snapshot) && !this.is_behind(snapshot) || this.working.swap(true, Ordering::AcqRel)
        {
            return;
        }
        let (weak, snapshot, memory) = (Arc::downgrade(this), snapshot.clone(), memory.clone());
        let work = move || {
            // Errors are ignored here: searches report them.
            let mut stop = || weak.strong_count() == 0;
            if let Some(sharded) = snapshot.as_sharded() {
                sharded.others().prepare_search(&mut stop);
            } else if let Some(index) = snapshot.base().indexes().get::<OpenText>() {
                index.prepare(&mut stop);
            }
            while let Some(texts) = weak.upgrade() {
                if !texts.is_behind(&snapshot) || !texts.grow(&snapshot, &memory) {
                    texts.working.store(false, Ordering::Release);
                    return;
                }
            }
        };
        let started = std::thread::Builder::new()
            .name("jindou-text".into())
            .spawn(work);
        if started.is_err() {
            this.working.store(false, Ordering::Release);
        }
    }

    /// Indexes a further block of terms, or one whose terms changed. False if there is no such block, or if memory is
    /// exhausted.
    fn grow(&self, snapshot: &Snapshot, memory: &MemoryBudget) -> bool {
        let epoch = snapshot.base().epoch();
        let (part, index) = {
            let mut state = sync::lock(&self.state);
            if state.epoch != epoch {
                *state = State {
                    epoch,
                    memory: state.memory.take(),
                    ..State::default()
                };
            }
            let part = state
                .memory
                .get_or_insert_with(|| memory.part(memory.limit() / SHARE));
            (part.clone(), state.index.clone())
        };
        let terms = snapshot.tail();
        let next = index.improved(terms, &part);
        let mut state = sync::lock(&self.state);
        if state.epoch != epoch {
            return false;
        }
        match next {
            Ok(Some(next)) => {
                state.index = next;
                state.full = None;
                true
            }
            Ok(None) => false,
            Err(_) => {
                state.full = Some(terms.len().max(1));
                false
            }
        }
    }
}

jindou_model::debug_format!(TailTexts, |_| "TailTexts {{ .. }}");
