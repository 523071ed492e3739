//! What readers made of a patch and the next reader of the same version need not make again: long merged lists, and keys.

use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Most ids kept for one patch: 16 megabytes.
const ROOM: usize = 4 << 20;

/// See the module. A clone starts empty: it is made to be changed.
#[derive(Debug, Default)]
pub(super) struct Derived {
    lists: Mutex<FxHashMap<u32, Arc<[u32]>>>,
    keys: OnceLock<Arc<[u32]>>,
    kept: AtomicUsize,
}

impl Clone for Derived {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Derived {
    /// A key's merged list, made by `make` if it is not kept.
    pub fn list(&self, key: u32, make: impl FnOnce() -> Vec<u32>) -> Arc<[u32]> {
        let lists = || self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = lists().get(&key) {
            return Arc::clone(list);
        }
        let made: Arc<[u32]> = make().into();
        if self.take_room(made.len()) {
            lists().insert(key, Arc::clone(&made));
        }
        made
    }

    /// The keys that have an edge, made by `make` if they are not kept.
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

    fn take_room(&self, ids: usize) -> bool {
        let fits = self.kept.fetch_add(ids, Relaxed) + ids <= ROOM;
        if !fits {
            self.kept.fetch_sub(ids, Relaxed);
        }
        fits
    }

    pub fn bytes(&self) -> usize {
        self.kept.load(Relaxed) * 4
    }
}
