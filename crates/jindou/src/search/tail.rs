//! The word index of the terms that updates added, and the thread that builds it.

use crate::Snapshot;
use jindou_model::{FIRST_TAIL_ID, MemoryBudget, VertexId, sync};
use jindou_text::{BLOCK, Growing, OpenText};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The index may use the runtime's memory divided by this number.
const SHARE: u64 = 8;

/// Word index of the tail's terms, which a background thread extends. Each database has one.
#[derive(Default)]
pub(crate) struct TailTexts {
    state: Mutex<State>,
    /// True while the background thread runs.
    working: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Id epoch of the indexed terms.
    epoch: u64,
    grown: Growing,
    /// The index's part of the runtime's budget; `None` until the index begins.
    memory: Option<MemoryBudget>,
    /// Number of terms in the tail when memory was last too small to index more.
    full: Option<u32>,
}

/// True if the base has no word index, or one that has been verified and can be searched; in a sharded store, for the
/// shards of this process.
pub(super) fn ready(snapshot: &Snapshot) -> bool {
    if let Some(sharded) = snapshot.as_sharded() {
        return sharded.others().prepare_search(&mut || true);
    }
    let index = snapshot.base().indexes().get::<OpenText>();
    index.is_none_or(OpenText::is_ready)
}

/// True if searches need not scan the base's terms; in a sharded store, those of this process.
pub(super) fn has_index(snapshot: &Snapshot) -> bool {
    if let Some(sharded) = snapshot.as_sharded() {
        return sharded.others().has_word_index();
    }
    let base = snapshot.base();
    base.indexes().get::<OpenText>().is_some() || base.dictionary().is_empty()
}

impl TailTexts {
    /// The index of a snapshot's tail, with the terms indexed so far; empty for another id epoch.
    pub fn of(&self, snapshot: &Snapshot) -> Growing {
        let state = sync::lock(&self.state);
        match state.epoch == snapshot.base().epoch() {
            true => state.grown.clone(),
            false => Growing::default(),
        }
    }

    /// True if a whole block of terms is not indexed yet, and memory may suffice for it.
    pub fn is_behind(&self, snapshot: &Snapshot) -> bool {
        let len = snapshot.tail().len();
        let state = sync::lock(&self.state);
        if state.epoch != snapshot.base().epoch() {
            return len >= BLOCK;
        }
        // After memory was too small, indexing is tried again once the tail has twice as many terms.
        let is_full = state.full.is_some_and(|at| len < at.saturating_mul(2));
        !is_full && len.saturating_sub(state.grown.len()) >= BLOCK
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

    /// Indexes the next block of terms; false if there is none, or no memory for it.
    fn grow(&self, snapshot: &Snapshot, memory: &MemoryBudget) -> bool {
        let epoch = snapshot.base().epoch();
        let (part, grown) = {
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
            (part.clone(), state.grown.clone())
        };
        let terms = snapshot.tail();
        let term = |n: u32| terms.term(VertexId(FIRST_TAIL_ID + n));
        let next = grown.grown(terms.len(), FIRST_TAIL_ID, &term, &part);
        let mut state = sync::lock(&self.state);
        if state.epoch != epoch {
            return false;
        }
        match next {
            Ok(Some(next)) => {
                state.grown = next;
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

impl std::fmt::Debug for TailTexts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TailTexts").finish_non_exhaustive()
    }
}
