//! Data that readers computed from a version of a patch, cached for later readers of the same version: merged lists,
//! and keys.

use super::dirty::DirtyBits;
use super::merged_lists::{MergedLists, MergedLookup};
use jindou_model::sync;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

/// Largest number of ids cached for one version of a patch: 16 MiB.
const ROOM: usize = 4 << 20;

/// Merged lists and keys that readers computed from one version of a patch. A patch is cloned to be changed, so a clone
/// starts with empty caches; it keeps the previous version's merged lists for those keys that do not change.
#[derive(Debug, Default)]
pub(super) struct Derived {
    lists: Mutex<FxHashMap<u32, Arc<[u32]>>>,
    keys: OnceLock<Arc<[u32]>>,
    /// The merged lists of all keys, once a thread has computed them; the inner `None` means that they exceed [`ROOM`].
    merged: OnceLock<Option<Arc<MergedLists>>>,
    /// Lists of an earlier version, which remain valid for unchanged keys.
    older: Option<OlderVersion>,
    /// Number of lists that readers of this version merged so far.
    spent: AtomicU64,
    /// True while a thread computes `merged`.
    making: AtomicBool,
    kept: AtomicUsize,
}

/// Merged lists of an earlier version, and the keys that were changed since. All later versions share `changed`, like a
/// patch's dirty bits: a version may also see bits that later versions set, and then merges lists needlessly.
#[derive(Clone, Debug)]
struct OlderVersion {
    lists: Arc<MergedLists>,
    changed: Arc<DirtyBits>,
}

/// Lists of an earlier version are discarded when the number of changed keys is about the number of their keys divided
/// by this.
const OUTLASTS: u64 = 2;

impl Clone for Derived {
    fn clone(&self) -> Self {
        let older = match self.merged.get() {
            Some(Some(lists)) => Some(OlderVersion {
                lists: Arc::clone(lists),
                changed: Arc::new(DirtyBits::for_keys(lists.keys() / OUTLASTS)),
            }),
            _ => self.older.clone(),
        };
        Self {
            older,
            ..Self::default()
        }
    }
}

impl Derived {
    /// A key's merged list, computed by `make` if it is not cached.
    pub fn list(&self, key: u32, make: impl FnOnce() -> Vec<u32>) -> Arc<[u32]> {
        let lists = || sync::lock(&self.lists);
        if let Some(list) = lists().get(&key) {
            return Arc::clone(list);
        }
        let made: Arc<[u32]> = make().into();
        if self.take_room(made.len()) {
            lists().insert(key, Arc::clone(&made));
        }
        made
    }

    /// The keys that have an edge, computed by `make` if they are not cached.
    pub fn keys(&self, make: impl FnOnce() -> Vec<u32>) -> Arc<[u32]> {
        if let Some(keys) = self.keys.get() {
            return Arc::clone(keys);
        }
        let made: Arc<[u32]> = make().into();
        if self.take_room(made.len()) {
            return Arc::clone(self.keys.get_or_init(|| made));
        }
        made
    }

    /// Looks a key up in the merged lists; `Unknown` if no valid list for it is stored.
    #[inline]
    pub fn find(&self, key: u32) -> MergedLookup<'_> {
        match (self.merged.get(), &self.older) {
            (Some(Some(lists)), _) => lists.find(key),
            (_, Some(o)) if !o.changed.has(key) => o.lists.find(key),
            _ => MergedLookup::Unknown,
        }
    }

    /// Invalidates the earlier version's lists of keys that are about to change.
    pub fn change(&mut self, keys: impl Iterator<Item = u32>) {
        let Some(o) = &self.older else { return };
        keys.for_each(|key| o.changed.add(key));
        if o.changed.is_full() {
            self.older = None;
        }
    }

    /// Number of lists that readers must have merged before it pays off to merge and cache the lists of all `keys`
    /// keys.
    pub fn worth(&self, keys: u64) -> u64 {
        /// Cost of merging a list relative to copying a list that remains valid.
        const COPY: u64 = 4;
        match self.older {
            Some(_) => keys / COPY,
            None => keys,
        }
    }

    /// Returns true until the lists of this version have been merged or found too large.
    #[inline]
    pub fn may_be_merged(&self) -> bool {
        self.merged.get().is_none()
    }

    /// Adds to the number of lists that readers merged; returns the total.
    pub fn spend(&self, lists: u64) -> u64 {
        self.spent.fetch_add(lists, Relaxed) + lists
    }

    /// Caches the result of `make`, unless another thread computes it. `make` gets the largest number of ids that fit.
    pub fn merge(&self, make: impl FnOnce(usize) -> Option<MergedLists>) {
        if self.making.swap(true, Relaxed) || !self.may_be_merged() {
            return;
        }
        let made = make(ROOM.saturating_sub(self.kept.load(Relaxed)));
        let made = made.filter(|m| self.take_room(m.room()));
        let _ = self.merged.set(made.map(Arc::new));
    }

    fn take_room(&self, ids: usize) -> bool {
        let fits = self.kept.fetch_add(ids, Relaxed) + ids <= ROOM;
        if !fits {
            self.kept.fetch_sub(ids, Relaxed);
        }
        fits
    }

    pub fn bytes(&self) -> usize {
        let older = self.older.as_ref();
        self.kept.load(Relaxed) * 4 + older.map_or(0, |o| o.lists.room() * 4 + o.changed.bytes())
    }
}
