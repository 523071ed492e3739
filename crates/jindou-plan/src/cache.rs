//! Plans by query text: a bounded cache, least recently used out first.

use crate::{Plan, PlanOptions};
use jindou_store::Graph;
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// The query and the options that a plan depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
    /// Bytes that it counts for: those of its text and of its plan.
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
    /// A cache of at most `entries` plans that with their texts have at most `bytes` bytes together.
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
    pub fn get(&self, key: &CacheKey<'_>, snapshot: &dyn Graph) -> Option<Arc<Plan>> {
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
    /// is not kept. O(plan + log entries).
    pub fn insert(&self, key: &CacheKey<'_>, planned: Arc<Plan>) {
        let bytes = key.text.len() + usize::try_from(planned.heap_bytes()).unwrap_or(usize::MAX);
        if self.entries == 0 || bytes > self.bytes / 4 {
            return;
        }
        let hash = hash(key);
        let mut gone = vec![];
        let mut guard = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *guard;
        inner.clock += 1;
        let entry = Entry {
            text: key.text.into(),
            options: key.options.clone(),
            stamp: inner.clock,
            planned,
            bytes,
        };
        inner.bytes += bytes;
        inner.by_stamp.insert(inner.clock, hash);
        if let Some(old) = inner.by_hash.insert(hash, entry) {
            inner.by_stamp.remove(&old.stamp);
            inner.bytes -= old.bytes;
            gone.push(old.planned);
        }
        while inner.by_hash.len() > self.entries || inner.bytes > self.bytes {
            let Some((_, oldest)) = inner.by_stamp.pop_first() else {
                break;
            };
            if let Some(old) = inner.by_hash.remove(&oldest) {
                inner.bytes -= old.bytes;
                gone.push(old.planned);
            }
        }
        drop(guard);
        // Plans may be large: they end when nobody waits for the lock.
        drop(gone);
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
    use crate::operator;
    use crate::{Exploration, IdFilter, Operator, StartSource, Step, StepKind};

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
            root: crate::Operator::Outer(operator::Outer { slots: vec![] }),
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
        let cache = PlanCache::new(2, 1 << 16);
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
    fn texts_and_plans_are_bounded() {
        let light = plan("");
        let own = light.heap_bytes() as usize;
        let cache = PlanCache::new(10, 4 * (own + 10));
        cache.insert(&key("12345678901"), Arc::clone(&light));
        assert!(cache.is_empty(), "more than a quarter");
        for text in ["1234567890", "2345678901", "3456789012", "4567890123", "5"] {
            cache.insert(&key(text), Arc::clone(&light));
        }
        assert_eq!(cache.len(), 4);
        assert!(cache.get_if(&key("1234567890"), |_| true).is_none());
    }

    /// Intervals of ids, inline data, constants and names of operators below others.
    #[test]
    fn plans_are_weighed_whole() {
        let step = |kind| Step {
            kind,
            filters: vec![],
            live: vec![0],
            rows: 1.0,
            cost: 1.0,
            why: String::new(),
        };
        let within = IdFilter::exactly((0..1000).map(|i| [i * 3, i * 3 + 1]).collect());
        let mut heavy = (*plan("")).clone();
        let before = heavy.heap_bytes();
        heavy.root = Operator::Slice(operator::Slice {
            input: Box::new(Operator::Steps(operator::Steps {
                input: Box::new(Operator::Explore(Exploration {
                    steps: vec![step(StepKind::Start {
                        to: Some(0),
                        source: StartSource::IdFilter,
                        within: Some(within.clone()),
                    })],
                    empty: None,
                })),
                steps: vec![step(StepKind::Restrict { slot: 0, within })],
            })),
            offset: 0,
            limit: None,
        });
        assert!((16_000..20_000).contains(&(heavy.heap_bytes() - before)));
        assert_eq!(heavy.depth(), 3);
        heavy.root = Operator::Values(operator::Values {
            slots: vec![0],
            rows: vec![vec![crate::Cell::Term(vec![0; 100])]; 1000],
        });
        assert!((140_000..200_000).contains(&heavy.heap_bytes()));
    }

    /// Longer than any stack is high.
    #[test]
    fn a_deep_plan_ends_without_recursion() {
        let mut deep = (*plan("")).clone();
        for _ in 0..1_000_000 {
            let inner = std::mem::replace(
                &mut deep.root,
                Operator::Outer(operator::Outer { slots: vec![] }),
            );
            deep.root = Operator::Slice(operator::Slice {
                input: Box::new(inner),
                offset: 0,
                limit: None,
            });
        }
        assert_eq!(deep.depth(), 1_000_001);
        drop(deep);
    }
}
