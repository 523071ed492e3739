//! Structures that stay on the device between plans: segments, and those read by steps with a predicate variable.

use crate::device::Device;
use crate::index::{Catalog, IndexKey};
use crate::ranks::RankTable;
use crate::resident::{Arrays, ResidentSegment, alone, locked};
use jindou_graph::Graph;
use jindou_graph::segment::GraphScope;
use jindou_model::{Direction, Error, PredicateId, Result};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The segment, over all of its versions, to which arrays belong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct ArraysKey {
    epoch: u64,
    predicate: u32,
    direction: Direction,
}

/// A segment over all of its versions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct SegmentKey {
    arrays: ArraysKey,
    /// For segments with a patch, whether edits of named graphs count.
    patched: Option<bool>,
}

/// One of the versions of a segment: the generation of its file (merging replaces files), and with a patch the snapshot's
/// version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Version {
    generation: u32,
    snapshot: u64,
}

/// Segments that stay on the device between plans: the newest requested version of each. Older ones live as long as
/// plans hold them.
#[derive(Default)]
pub struct SegmentCache {
    arrays: Mutex<FxHashMap<ArraysKey, (u32, Arc<Arrays>)>>,
    held: Mutex<FxHashMap<SegmentKey, (Version, Arc<ResidentSegment>)>>,
    index: Mutex<PredicateIndex>,
}

/// The structures that steps with a predicate variable read ([`crate::index`]).
#[derive(Default)]
pub(crate) struct PredicateIndex {
    pub sets: FxHashMap<IndexKey, Arc<ResidentSegment>>,
    pub subjects: FxHashMap<IndexKey, Arc<ResidentSegment>>,
    pub catalogs: FxHashMap<IndexKey, Arc<Catalog>>,
    /// By epoch and number of ids.
    pub ranks: FxHashMap<(u64, u32), Arc<RankTable>>,
}

impl SegmentCache {
    pub(crate) fn index(&self) -> MutexGuard<'_, PredicateIndex> {
        locked(&self.index)
    }

    /// Uploads a structure. If the device is full, structures that no plan uses are evicted first.
    pub(crate) fn with_room<T>(&self, bring: impl Fn() -> Result<T>) -> Result<T> {
        match bring() {
            Err(Error::Limit(_)) => {
                self.clear();
                bring()
            }
            other => other,
        }
    }

    /// The segment, uploaded if it is not on the device. If the device is full, segments that no plan uses are evicted
    /// first.
    pub fn get(
        &self,
        device: &Arc<Device>,
        snapshot: &dyn Graph,
        predicate: PredicateId,
        direction: Direction,
        scope: GraphScope<'_>,
    ) -> Result<Arc<ResidentSegment>> {
        let view = snapshot.edges(predicate, direction);
        let segment = alone(&view, scope)?;
        let generation = snapshot.generation_of(predicate);
        let identity = snapshot.identity();
        let whose = ArraysKey {
            epoch: identity.epoch,
            predicate: predicate.0,
            direction,
        };
        let key = SegmentKey {
            arrays: whose,
            patched: view.patch().map(|_| scope == GraphScope::Union),
        };
        let version = Version {
            generation,
            snapshot: view.patch().map_or(0, |_| identity.version),
        };
        if let Some((v, s)) = locked(&self.held).get(&key)
            && *v == version
        {
            return Ok(Arc::clone(s));
        }
        let there = locked(&self.arrays)
            .get(&whose)
            .filter(|(g, _)| *g == generation)
            .map(|(_, a)| Arc::clone(a));
        let arrays = match there {
            Some(a) => a,
            None => {
                let brought = Arc::new(self.with_room(|| Arrays::bring(device, &segment))?);
                // If two threads uploaded it at the same time, one of them is kept.
                newest(&mut locked(&self.arrays), whose, generation, brought)
            }
        };
        let over = || ResidentSegment::over(device, &arrays, &view, scope);
        let brought = Arc::new(self.with_room(over)?);
        if key.patched.is_some() {
            // The cached version may hold the old neighbours, from before they were copied to a larger buffer.
            locked(&self.held).remove(&SegmentKey {
                patched: None,
                ..key
            });
        }
        Ok(newest(&mut locked(&self.held), key, version, brought))
    }

    /// True if the arrays of a segment are on the device, in any version.
    pub(crate) fn has(
        &self,
        snapshot: &dyn Graph,
        predicate: PredicateId,
        direction: Direction,
    ) -> bool {
        let key = ArraysKey {
            epoch: snapshot.identity().epoch,
            predicate: predicate.0,
            direction,
        };
        let generation = snapshot.generation_of(predicate);
        locked(&self.arrays)
            .get(&key)
            .is_some_and(|(g, _)| *g == generation)
    }

    /// Device memory of all held segments, characteristic sets, index vertices and value ranks.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let arrays: u64 = locked(&self.arrays).values().map(|a| a.1.bytes()).sum();
        let held = locked(&self.held);
        let segments = arrays + held.values().map(|s| s.1.own_bytes()).sum::<u64>();
        drop(held);
        let index = self.index();
        let more = index.sets.values().chain(index.subjects.values());
        let ranks: u64 = index.ranks.values().map(|r| r.bytes()).sum();
        segments + ranks + more.map(|s| s.bytes()).sum::<u64>()
    }

    /// Evicts everything that no running plan uses.
    pub fn clear(&self) {
        let mut index = self.index();
        // Catalogs hold segments, so they are dropped first.
        index.catalogs.retain(|_, c| Arc::strong_count(c) > 1);
        index.sets.retain(|_, s| Arc::strong_count(s) > 1);
        index.subjects.retain(|_, s| Arc::strong_count(s) > 1);
        index.ranks.retain(|_, r| Arc::strong_count(r) > 1);
        drop(index);
        // Segments hold arrays.
        locked(&self.held).retain(|_, s| Arc::strong_count(&s.1) > 1);
        locked(&self.arrays).retain(|_, a| Arc::strong_count(&a.1) > 1);
    }
}

/// Stores `new` in the map unless a version at least as new is there. Returns the entry of this version.
fn newest<K: std::hash::Hash + Eq, V: Copy + Ord, T>(
    map: &mut FxHashMap<K, (V, Arc<T>)>,
    key: K,
    version: V,
    new: Arc<T>,
) -> Arc<T> {
    match map.get(&key) {
        Some((v, there)) if *v == version => Arc::clone(there),
        Some((v, _)) if *v > version => new,
        _ => {
            map.insert(key, (version, Arc::clone(&new)));
            new
        }
    }
}
