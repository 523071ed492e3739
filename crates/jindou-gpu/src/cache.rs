//! Cache of structures in device memory that outlive a plan: segments, and the structures that steps with a predicate
//! variable read.

use crate::device::Device;
use crate::index::{Catalog, IndexKey};
use crate::ranks::RankTable;
use crate::resident::{Arrays, ResidentSegment, alone, locked};
use jindou_graph::Graph;
use jindou_graph::segment::GraphScope;
use jindou_model::{Direction, Error, PredicateId, Result};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Key of a segment's arrays, which all snapshots of an epoch share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct ArraysKey {
    epoch: u64,
    predicate: u32,
    direction: Direction,
}

/// Key of a segment as plans read it: its arrays, with or without a patch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct SegmentKey {
    arrays: ArraysKey,
    /// `None` for a segment without a patch; otherwise whether edits of named graphs count (the union of all graphs).
    patched: Option<bool>,
}

/// Version of a cached segment: the generation of its file (a merge replaces files) and, with a patch, the snapshot's
/// version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Version {
    generation: u32,
    snapshot: u64,
}

/// Segments in device memory that outlive a plan. Only the newest requested version of each is cached; older ones live
/// as long as running plans reference them.
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
    /// By epoch and number of ids in the base.
    pub ranks: FxHashMap<(u64, u32), Arc<RankTable>>,
}

impl SegmentCache {
    pub(crate) fn index(&self) -> MutexGuard<'_, PredicateIndex> {
        locked(&self.index)
    }

    /// Runs `bring`, which uploads a structure. If the device is full, evicts structures that no plan uses and runs it
    /// once more.
    pub(crate) fn with_room<T>(&self, bring: impl Fn() -> Result<T>) -> Result<T> {
        match bring() {
            Err(Error::Limit(_)) => {
                self.clear();
                bring()
            }
            other => other,
        }
    }

    /// The segment, uploaded unless it is on the device. If the device is full, segments that no plan uses are evicted
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
                // If two threads uploaded the same arrays, only one copy is cached.
                newest(&mut locked(&self.arrays), whose, generation, brought)
            }
        };
        let over = || ResidentSegment::over(device, &arrays, &view, scope);
        let brought = Arc::new(self.with_room(over)?);
        if key.patched.is_some() {
            // Uploading a patch may have moved the neighbours to a larger buffer; the cached unpatched segment still
            // references the old buffer.
            locked(&self.held).remove(&SegmentKey {
                patched: None,
                ..key
            });
        }
        Ok(newest(&mut locked(&self.held), key, version, brought))
    }

    /// True if a segment's arrays are on the device, whatever their version.
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

    /// Bytes of device memory of all cached structures: segments, characteristic sets, index vertices and value ranks.
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
        // Catalogs reference segments, so they are dropped first.
        index.catalogs.retain(|_, c| Arc::strong_count(c) > 1);
        index.sets.retain(|_, s| Arc::strong_count(s) > 1);
        index.subjects.retain(|_, s| Arc::strong_count(s) > 1);
        index.ranks.retain(|_, r| Arc::strong_count(r) > 1);
        drop(index);
        // Segments reference arrays, so they are dropped before these.
        locked(&self.held).retain(|_, s| Arc::strong_count(&s.1) > 1);
        locked(&self.arrays).retain(|_, a| Arc::strong_count(&a.1) > 1);
    }
}

/// Stores `new` in the map unless it has a version at least as new for this key. Returns an entry of the requested
/// version.
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
