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
    /// What it counts for.
    bytes: usize,
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
    /// A cache of at most `entries` plans whose texts and intervals have at most `bytes` bytes together.
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

    /// Keeps a plan; the least recently used go when there is no room. One that needs more than a quarter of all of the room
    /// is not kept. O(operators + log entries).
    pub fn insert(&self, key: &CacheKey<'_>, planned: Arc<Plan>) {
        let bytes = key.text.len() + planned.interval_bytes();
        if self.entries == 0 || bytes > self.bytes / 4 {
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
            bytes,
        };
        inner.bytes += bytes;
        inner.by_stamp.insert(inner.clock, hash);
        if let Some(old) = inner.by_hash.insert(hash, entry) {
            inner.by_stamp.remove(&old.stamp);
            inner.bytes -= old.bytes;
        }
        while inner.by_hash.len() > self.entries || inner.bytes > self.bytes {
            let Some((_, oldest)) = inner.by_stamp.pop_first() else {
                break;
            };
            if let Some(old) = inner.by_hash.remove(&oldest) {
                inner.bytes -= old.bytes;
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
    use crate::{Exploration, Operator, StartSource, Step, StepKind, Within};

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
    fn texts_and_intervals_are_bounded() {
        let cache = PlanCache::new(10, 40);
        let light = plan("");
        cache.insert(&key("12345678901"), Arc::clone(&light));
        assert!(cache.is_empty(), "more than a quarter");
        for text in ["1234567890", "2345678901", "3456789012", "4567890123", "5"] {
            cache.insert(&key(text), Arc::clone(&light));
        }
        assert_eq!(cache.len(), 4);
        assert!(cache.get_if(&key("1234567890"), |_| true).is_none());

        let step = |kind| Step {
            kind,
            filters: vec![],
            live: vec![0],
            rows: 1.0,
            cost: 1.0,
            why: String::new(),
        };
        let within = Within::exactly(vec![[1, 2], [5, 9], [11, 12]]);
        let mut heavy = (*light).clone();
        heavy.root = Operator::Slice {
            input: Box::new(Operator::Steps {
                input: Box::new(Operator::Explore(Exploration {
                    steps: vec![step(StepKind::Start {
                        to: Some(0),
                        source: StartSource::Within,
                        within: Some(within.clone()),
                    })],
                    empty: None,
                })),
                steps: vec![step(StepKind::Restrict { slot: 0, within })],
            }),
            offset: 0,
            limit: None,
        };
        assert_eq!(heavy.interval_bytes(), 48);
        let cache = PlanCache::new(10, 4 * 49);
        let heavy = Arc::new(heavy);
        cache.insert(&key("ab"), Arc::clone(&heavy));
        assert!(cache.is_empty());
        for text in ["a", "b", "c", "d", "e"] {
            cache.insert(&key(text), Arc::clone(&heavy));
        }
        assert_eq!(cache.len(), 4);
    }
}
