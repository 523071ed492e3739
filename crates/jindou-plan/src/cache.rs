//! Plans by query text: a bounded cache, least recently used out first.

use crate::{Plan, PlanOptions};
use jindou_store::Snapshot;
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// What a plan depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey<'a> {
    /// The query.
    pub text: &'a str,
    /// The options.
    pub options: PlanOptions,
}

struct Entry {
    text: Box<str>,
    options: PlanOptions,
    stamp: u64,
    planned: Arc<Plan>,
}

#[derive(Default)]
struct Inner {
    by_hash: FxHashMap<u64, Entry>,
    by_stamp: BTreeMap<u64, u64>,
    clock: u64,
    bytes: usize,
}

/// Plans of recent queries. Safe to share: one short lock a call. Two texts with the same 64-bit hash displace
/// each other and never get each other's plan.
pub struct PlanCache {
    inner: Mutex<Inner>,
    entries: usize,
    bytes: usize,
}

impl PlanCache {
    /// A cache of at most `entries` plans whose texts have at most `bytes` bytes together.
    #[must_use]
    pub fn new(entries: usize, bytes: usize) -> Self {
        Self {
            inner: Mutex::default(),
            entries,
            bytes,
        }
    }

    /// The plan, if it is there and may run on the snapshot. No allocation; O(log entries).
    #[must_use]
    pub fn get(&self, key: &CacheKey<'_>, snapshot: &Snapshot) -> Option<Arc<Plan>> {
        self.get_if(key, |plan| plan.validity.holds(snapshot))
    }

    fn get_if(&self, key: &CacheKey<'_>, holds: impl Fn(&Plan) -> bool) -> Option<Arc<Plan>> {
        let hash = hash(key);
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *inner;
        let entry = inner.by_hash.get_mut(&hash)?;
        let same =
            *entry.text == *key.text && entry.options == key.options && holds(&entry.planned);
        if !same {
            return None;
        }
        inner.by_stamp.remove(&entry.stamp);
        inner.clock += 1;
        entry.stamp = inner.clock;
        inner.by_stamp.insert(entry.stamp, hash);
        Some(Arc::clone(&entry.planned))
    }

    /// Keeps a plan; the least recently used go when there is no room. A text longer than all of the room is
    /// not kept.
    pub fn insert(&self, key: &CacheKey<'_>, planned: Arc<Plan>) {
        if self.entries == 0 || key.text.len() > self.bytes {
            return;
        }
        let hash = hash(key);
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *inner;
        inner.clock += 1;
        let entry = Entry {
            text: key.text.into(),
            options: key.options,
            stamp: inner.clock,
            planned,
        };
        inner.bytes += key.text.len();
        inner.by_stamp.insert(inner.clock, hash);
        if let Some(old) = inner.by_hash.insert(hash, entry) {
            inner.by_stamp.remove(&old.stamp);
            inner.bytes -= old.text.len();
        }
        while inner.by_hash.len() > self.entries || inner.bytes > self.bytes {
            let Some((_, oldest)) = inner.by_stamp.pop_first() else {
                break;
            };
            if let Some(old) = inner.by_hash.remove(&oldest) {
                inner.bytes -= old.text.len();
            }
        }
    }

    /// Plans held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .by_hash
            .len()
    }

    /// True without plans.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn hash(key: &CacheKey<'_>) -> u64 {
    let mut h = FxHasher::default();
    key.hash(&mut h);
    h.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> CacheKey<'_> {
        CacheKey {
            text,
            options: PlanOptions::default(),
        }
    }

    fn plan(name: &str) -> Arc<Plan> {
        Arc::new(Plan {
            form: crate::Form::Ask,
            slots: vec![],
            output: vec![],
            columns: vec![name.to_owned()],
            root: crate::Operator::Outer(vec![]),
            cost: 0.0,
            weight: crate::Weight::Light,
            validity: crate::Validity {
                epoch: 7,
                shape: 0,
                version: None,
            },
        })
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let cache = PlanCache::new(2, 100);
        cache.insert(&key("a"), plan("a"));
        cache.insert(&key("b"), plan("b"));
        assert!(cache.get_if(&key("a"), |_| true).is_some());
        cache.insert(&key("c"), plan("c"));
        assert!(cache.get_if(&key("b"), |_| true).is_none());
        assert_eq!(cache.get_if(&key("a"), |_| true), Some(plan("a")));
        assert!(
            cache.get_if(&key("a"), |_| false).is_none(),
            "another snapshot needs another plan"
        );
        cache.insert(&key("a"), plan("a2"));
        assert_eq!(cache.len(), 2);
        assert_eq!(cache.get_if(&key("a"), |_| true), Some(plan("a2")));
    }

    #[test]
    fn texts_are_bounded() {
        let cache = PlanCache::new(10, 8);
        let plan = plan("");
        cache.insert(&key("123456789"), Arc::clone(&plan));
        assert!(cache.is_empty());
        cache.insert(&key("12345"), Arc::clone(&plan));
        cache.insert(&key("54321"), plan);
        assert_eq!(cache.len(), 1);
    }
}
