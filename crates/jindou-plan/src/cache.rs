//! Plans by query text, in a bounded cache that evicts rarely requested ones first.

use crate::{Plan, PlanOptions};
use jindou_graph::Graph;
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Equivalent, Lifecycle, OptionsBuilder, Weighter};
use std::sync::Arc;

/// Number of shards of the cache, each with a lock and a part of the capacity. Any plan that is cached fits into a
/// shard, since [`PlanCache::insert`] accepts at most a quarter of the capacity.
const SHARDS: usize = 4;

/// The query and the options that a plan depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey<'a> {
    /// The query.
    pub text: &'a str,
    /// The options.
    pub options: PlanOptions,
}

/// A key that owns its text; it hashes like the [`CacheKey`], so that lookups need not copy the text.
#[derive(PartialEq, Eq, Hash)]
struct CachedKey {
    text: Box<str>,
    options: PlanOptions,
}

impl Equivalent<CachedKey> for CacheKey<'_> {
    fn equivalent(&self, kept: &CachedKey) -> bool {
        *self.text == *kept.text && self.options == kept.options
    }
}

fn bytes_of(text: &str, plan: &Plan) -> u64 {
    (text.len() as u64).saturating_add(plan.heap_bytes())
}

/// Weighs a plan by the bytes of the plan and its text. The minimum weight bounds the number of plans.
#[derive(Clone)]
struct PlanWeigher {
    least: u64,
}

impl Weighter<CachedKey, Arc<Plan>> for PlanWeigher {
    fn weight(&self, key: &CachedKey, plan: &Arc<Plan>) -> u64 {
        bytes_of(&key.text, plan).max(self.least)
    }
}

/// Collects evicted plans, which are dropped after the cache's lock is released: dropping large plans, or many small
/// ones that make room for a large one, takes time.
#[derive(Clone)]
struct DropUnlocked;

impl Lifecycle<CachedKey, Arc<Plan>> for DropUnlocked {
    type RequestState = Vec<(CachedKey, Arc<Plan>)>;

    fn on_evict(&self, gone: &mut Self::RequestState, key: CachedKey, plan: Arc<Plan>) {
        gone.push((key, plan));
    }
}

/// Plans of recent queries. Safe to share; a lookup takes the read lock of one of a few shards. Plans that were
/// requested only once are evicted before those that were requested again (CLOCK-PRO).
pub struct PlanCache {
    /// `None` for a cache without capacity.
    plans: Option<Cache<CachedKey, Arc<Plan>, PlanWeigher, DefaultHashBuilder, DropUnlocked>>,
    bytes: u64,
}

impl PlanCache {
    /// Creates a cache of at most `entries` plans, which together with their texts have at most `bytes` bytes.
    #[must_use]
    pub fn new(entries: usize, bytes: usize) -> Self {
        let bytes = bytes as u64;
        let options = OptionsBuilder::new()
            .estimated_items_capacity(entries)
            .weight_capacity(bytes)
            .shards(SHARDS)
            .build();
        let weight = PlanWeigher {
            least: bytes.div_ceil(entries.max(1) as u64),
        };
        Self {
            plans: options.ok().filter(|_| entries > 0).map(|options| {
                Cache::with_options(options, weight, DefaultHashBuilder::default(), DropUnlocked)
            }),
            bytes,
        }
    }

    /// The plan, if it is cached and may run on the snapshot. No allocation; O(length of the text).
    #[must_use]
    pub fn get(&self, key: &CacheKey<'_>, snapshot: &dyn Graph) -> Option<Arc<Plan>> {
        self.get_if(key, |plan| plan.validity.holds(snapshot))
    }

    fn get_if(&self, key: &CacheKey<'_>, holds: impl Fn(&Plan) -> bool) -> Option<Arc<Plan>> {
        let plan = self.plans.as_ref()?.get(key)?;
        holds(&plan).then_some(plan)
    }

    /// Caches a plan in place of the query's earlier one, evicting others if needed. A plan that needs more than a
    /// quarter of the capacity is not cached. O(plan).
    pub fn insert(&self, key: &CacheKey<'_>, planned: Arc<Plan>) {
        let Some(plans) = &self.plans else {
            return;
        };
        if bytes_of(key.text, &planned) > self.bytes / 4 {
            return;
        }
        let kept = CachedKey {
            text: key.text.into(),
            options: key.options.clone(),
        };
        plans.insert(kept, planned);
    }

    /// Number of cached plans.
    #[must_use]
    pub fn len(&self) -> usize {
        self.plans.as_ref().map_or(0, Cache::len)
    }

    /// Returns true if nothing is cached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
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
            bytes: 0,
        })
    }

    #[test]
    fn what_was_not_asked_for_again_goes_first() {
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
        let texts = ["1234567890", "2345678901", "3456789012", "4567890123", "5"];
        for text in texts {
            cache.insert(&key(text), Arc::clone(&light));
        }
        assert_eq!(cache.len(), 4);
        let held = |text: &&str| cache.get_if(&key(text), |_| true).is_some();
        assert_eq!(texts.iter().filter(|t| held(t)).count(), 4);
    }

    /// A query that is requested all the time stays cached among many that are requested once, and neither the number
    /// of plans nor their bytes exceed the bounds.
    #[test]
    fn many_queries_asked_once_do_not_displace_one_that_is_asked_for_again() {
        let light = plan("");
        let bytes = 64 * (light.heap_bytes() as usize + 100);
        for (entries, bytes) in [(64, 1 << 20), (4096, bytes)] {
            let cache = PlanCache::new(entries, bytes);
            let room = bytes as u64 / (light.heap_bytes() + 8);
            cache.insert(&key("again"), Arc::clone(&light));
            for n in 0..10_000 {
                let text = format!("once {n:>8}");
                cache.insert(&key(&text), Arc::clone(&light));
                assert!(cache.get_if(&key("again"), |_| true).is_some(), "{n}");
                assert!(cache.len() <= entries && cache.len() as u64 <= room, "{n}");
            }
            assert!(cache.len() > 32, "{}", cache.len());
        }
        let none = PlanCache::new(0, 1 << 20);
        none.insert(&key("again"), light);
        assert!(none.is_empty());
    }

    #[test]
    fn options_are_part_of_the_key() {
        let cache = PlanCache::new(100, 1 << 20);
        let options = PlanOptions {
            union_default: !PlanOptions::default().union_default,
            ..PlanOptions::default()
        };
        let other = CacheKey { text: "a", options };
        cache.insert(&key("a"), plan("a"));
        assert!(cache.get_if(&other, |_| true).is_none());
        cache.insert(&other, plan("b"));
        assert_eq!(cache.get_if(&key("a"), |_| true), Some(plan("a")));
        assert_eq!(cache.get_if(&other, |_| true), Some(plan("b")));
    }

    /// The weight of a plan includes intervals of ids, inline data, constants, and the names in nested operators.
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
            rows: vec![vec![crate::Cell::Term(vec![0; 100].into())]; 1000],
        });
        assert!((140_000..240_000).contains(&heavy.heap_bytes()));
    }

    /// Nesting that would overflow any stack if plans were dropped recursively.
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
