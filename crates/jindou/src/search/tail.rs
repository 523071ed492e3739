//! The index of the terms that updates added, and the thread that makes it.

use crate::Snapshot;
use jindou_model::{FIRST_TAIL_ID, MemoryBudget, VertexId, sync};
use jindou_text::{BLOCK, Growing, OpenText};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Of the runtime's memory, the part that the index of the tail may take.
const SHARE: u64 = 8;

/// The index of the tail's terms, which a background thread extends. A database has one.
#[derive(Default)]
pub(crate) struct TailTexts {
    state: Mutex<State>,
    /// True if a thread is at work.
    working: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The epoch of the terms' ids.
    epoch: u64,
    grown: Growing,
    /// A part of the runtime's memory; made when the index begins.
    memory: Option<MemoryBudget>,
    /// Terms at which there was no memory for more.
    full: Option<u32>,
}

/// True if the base's index, if it has one, can be searched immediately; in a sharded store, those of this process.
pub(super) fn ready(snapshot: &Snapshot) -> bool {
    if let Some(sharded) = snapshot.as_sharded() {
        return sharded.others().prepare_search(&mut || true);
    }
    let index = snapshot.base().indexes().get::<OpenText>();
    index.is_none_or(OpenText::is_ready)
}

/// True if no terms of the base have to be scanned; in a sharded store, those of this process.
pub(super) fn has_index(snapshot: &Snapshot) -> bool {
    if let Some(sharded) = snapshot.as_sharded() {
        return sharded.others().has_word_index();
    }
    let base = snapshot.base();
    base.indexes().get::<OpenText>().is_some() || base.dictionary().is_empty()
}

impl TailTexts {
    /// The index of a snapshot's tail, up to the terms indexed so far.
    pub fn of(&self, snapshot: &Snapshot) -> Growing {
        let state = sync::lock(&self.state);
        match state.epoch == snapshot.base().epoch() {
            true => state.grown.clone(),
            false => Growing::default(),
        }
    }

    /// True if the index lacks a block of terms that it has memory for.
    pub fn is_behind(&self, snapshot: &Snapshot) -> bool {
        let len = snapshot.tail().len();
        let state = sync::lock(&self.state);
        if state.epoch != snapshot.base().epoch() {
            return len >= BLOCK;
        }
        // Once there was no memory, it is tried again when there is twice as much to gain.
        let is_full = state.full.is_some_and(|at| len < at.saturating_mul(2));
        !is_full && len.saturating_sub(state.grown.len()) >= BLOCK
    }

    /// Starts a thread that indexes the remaining terms, unless one is running. The thread ends with the database.
    pub fn catch_up(this: &Arc<Self>, snapshot: &Snapshot, memory: &MemoryBudget) {
        if ready(snapshot) && !this.is_behind(snapshot) || this.working.swap(true, Ordering::AcqRel)
        {
            return;
        }
        let (weak, snapshot, memory) = (Arc::downgrade(this), snapshot.clone(), memory.clone());
        let work = move || {
            // Faults are reported by searches.
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

    /// Makes the next block; false if that is not possible.
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
