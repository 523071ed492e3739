//! Segments in device memory: the host's arrays, byte for byte, and beside them the merged lists of keys that a
//! patch touches.
//!
//! The patch is merged here, on the host, when a segment is brought: each dirty key's whole list at the
//! snapshot is laid behind the segment's neighbours. Kernels then need one bit test and, for dirty keys, one
//! search of the overlay's keys; no kernel merges edits. That costs O(edges of dirty keys) once a snapshot.

use crate::backend::{Backend, DeviceBuffer};
use crate::index::{Catalog, IndexKey};
use crate::params;
use jindou_model::{Direction, Error, PredicateId, Result};
use jindou_store::Snapshot;
use jindou_store::segment::{EdgeView, FinderKind, KeyFinder, Scope, Segment};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// One segment on the device.
pub struct ResidentSegment {
    /// What kernels get.
    pub params: params::Segment,
    buffers: Vec<DeviceBuffer>,
    overlay_keys: Vec<u32>,
    overlay_starts: Vec<u32>,
    /// Keys of a patched segment that have a neighbour, made when a plan starts from them.
    patched_keys: OnceLock<(Arc<DeviceBuffer>, u32)>,
    bytes: u64,
}

impl ResidentSegment {
    /// Brings the edges of a view that one segment answers, with its patch. `Unsupported` where named graphs
    /// must be merged.
    pub fn bring(
        backend: &Arc<dyn Backend>,
        view: &EdgeView<'_>,
        scope: Scope<'_>,
    ) -> Result<Self> {
        let segment = alone(view, scope)?;
        let edges = u32::try_from(segment.neighbours.len())
            .map_err(|_| Error::Store("a segment with more than 2^32 neighbours".into()))?;
        let mut buffers = Vec::new();
        let mut bytes = 0;
        let mut bring = |content: &[u8]| -> Result<u64> {
            if content.is_empty() {
                return Ok(0);
            }
            let b = DeviceBuffer::with(backend, content)?;
            bytes += b.len() as u64;
            let at = b.at();
            buffers.push(b);
            Ok(at)
        };
        let mut p: params::Segment = bytemuck::Zeroable::zeroed();
        // Kernels know no folded ids.
        let unfolded = segment.finder.unfolded(segment.key_count);
        let finder = match &unfolded {
            Some(d) => KeyFinder::Directory {
                first: d.first,
                shift: d.shift,
                buckets: &d.buckets,
                keys: &d.keys,
            },
            None => segment.finder,
        };
        p.kind = finder.kind() as u32;
        p.key_count = segment.key_count;
        p.edges = edges;
        match finder {
            KeyFinder::Empty
            | KeyFinder::FoldedBitmap { .. }
            | KeyFinder::FoldedDirectory { .. } => {}
            KeyFinder::Intervals(runs) => {
                p.table = bring(bytemuck::cast_slice(runs))?;
                p.table_len = runs.len() as u32;
                for (to, r) in p.runs.iter_mut().zip(runs) {
                    *to = params::Run {
                        start: r.start,
                        end: r.end,
                        base: r.base,
                    };
                }
            }
            KeyFinder::Bitmap { first, blocks } => {
                p.table = bring(bytemuck::cast_slice(blocks))?;
                p.table_len = blocks.len() as u32;
                p.first = first;
            }
            KeyFinder::Directory {
                first,
                shift,
                buckets,
                keys,
            } => {
                p.table = bring(bytemuck::cast_slice(buckets))?;
                p.table_len = buckets.len() as u32;
                p.keys = bring(bytemuck::cast_slice(keys))?;
                p.first = first;
                p.shift = shift;
            }
        }
        if let Some(offsets) = segment.offsets {
            p.offsets = bring(bytemuck::cast_slice(offsets))?;
        }
        let (mut overlay_keys, mut overlay_starts) = (Vec::new(), Vec::new());
        if let Some(patch) = view.patch {
            let mut lists: Vec<u32> = Vec::new();
            let mut scratch = Vec::new();
            overlay_keys = patch.keys();
            for &key in &overlay_keys {
                overlay_starts.push(lists.len() as u32);
                lists.extend_from_slice(view.read(key, scope, &mut scratch));
                if u64::from(edges) + lists.len() as u64 > u64::from(u32::MAX) {
                    return Err(Error::Unsupported("a patch this large on the GPU".into()));
                }
            }
            overlay_starts.push(lists.len() as u32);
            let (dirty, mask) = patch.dirty_bits();
            p.dirty = bring(bytemuck::cast_slice(&dirty))?;
            p.dirty_mask = mask;
            p.overlay_keys = bring(bytemuck::cast_slice(&overlay_keys))?;
            p.overlay_len = overlay_keys.len() as u32;
            p.overlay_starts = bring(bytemuck::cast_slice(&overlay_starts))?;
            let b = DeviceBuffer::new(backend, (segment.neighbours.len() + lists.len()) * 4)?;
            b.write(0, bytemuck::cast_slice(segment.neighbours))?;
            b.write(segment.neighbours.len() * 4, bytemuck::cast_slice(&lists))?;
            p.neighbours = b.at();
            bytes += b.len() as u64;
            buffers.push(b);
        } else {
            p.neighbours = bring(bytemuck::cast_slice(segment.neighbours))?;
        }
        Ok(Self {
            params: p,
            buffers,
            overlay_keys,
            overlay_starts,
            patched_keys: OnceLock::new(),
            bytes,
        })
    }

    /// A segment made of other arrays: `params` name what `buffers` hold, merged as of one snapshot.
    pub(crate) fn of_parts(
        params: params::Segment,
        buffers: Vec<DeviceBuffer>,
        bytes: u64,
    ) -> Self {
        Self {
            params,
            buffers,
            overlay_keys: Vec::new(),
            overlay_starts: Vec::new(),
            patched_keys: OnceLock::new(),
            bytes,
        }
    }

    /// True without a patch.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.params.dirty == 0
    }

    /// True if every key has one neighbour and no patch says otherwise.
    #[must_use]
    pub fn is_degree_one(&self) -> bool {
        self.is_plain() && self.params.offsets == 0
    }

    /// Device memory it takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of device buffers.
    #[must_use]
    pub fn buffers(&self) -> usize {
        self.buffers.len()
    }

    /// Start and length of a constant's list in the device's neighbours. `segment` is the host's copy.
    #[must_use]
    pub fn range_of(&self, segment: &Segment<'_>, v: u32) -> (u32, u32) {
        if let Ok(i) = self.overlay_keys.binary_search(&v)
            && let Some(&[a, b]) = self
                .overlay_starts
                .get(i..)
                .and_then(|s| s.first_chunk::<2>())
        {
            return (self.params.edges + a, b - a);
        }
        let (a, b) = segment.range(segment.finder.find(v));
        (a as u32, (b - a) as u32)
    }

    /// The keys that have a neighbour in `view`, of a patched segment, on the device. O(keys) the first time.
    pub fn patched_keys(
        &self,
        backend: &Arc<dyn Backend>,
        view: &EdgeView<'_>,
        scope: Scope<'_>,
    ) -> Result<(Arc<DeviceBuffer>, u32)> {
        if let Some((b, n)) = self.patched_keys.get() {
            return Ok((Arc::clone(b), *n));
        }
        let mut keys = Vec::new();
        live_keys(view, scope, &mut keys);
        let b = Arc::new(DeviceBuffer::with(backend, &keys)?);
        let (b, n) = self.patched_keys.get_or_init(|| (b, keys.len() as u32));
        Ok((Arc::clone(b), *n))
    }

    /// Mean bytes that the lookup of one random vertex reads, for byte floors: see `find_key` in the kernels.
    #[must_use]
    pub fn lookup_bytes(&self) -> f64 {
        let find = match FinderKind::from_byte(self.params.kind as u8) {
            _ if self.params.kind == params::FINDER_SETS => {
                4.0 * (f64::from(self.params.table_len.max(1)).log2().ceil() + 2.0)
            }
            Some(FinderKind::Bitmap) => 16.0,
            Some(FinderKind::Directory) => {
                let bucket =
                    f64::from(self.params.key_count) / f64::from(self.params.table_len.max(2) - 1);
                8.0 + 4.0 * (bucket.max(1.0).log2().ceil() + 1.0)
            }
            _ => 0.0,
        };
        find + if self.is_plain() { 0.0 } else { 8.0 }
    }
}

/// The segment that with its patch answers a scope. Only the default graph and the union of all are asked
/// for, so that a cached segment's content depends on nothing else.
pub(crate) fn alone<'a>(view: &EdgeView<'a>, scope: Scope<'_>) -> Result<Segment<'a>> {
    let segment = match (view.plain(scope), view.plain_but_dirty(scope)) {
        (Some(s), _) | (None, Some((s, _))) => Some(s),
        (None, None) => None,
    };
    segment
        .filter(|_| matches!(scope, Scope::Default | Scope::Union))
        .ok_or_else(|| Error::Unsupported("named graphs on the GPU".into()))
}

/// Appends the keys that have a neighbour in a view that one segment answers. O(keys).
pub(crate) fn live_keys(view: &EdgeView<'_>, scope: Scope<'_>, keys: &mut Vec<u32>) {
    let mut all = Vec::new();
    view.candidate_keys(scope, &mut all);
    let mut scratch = Vec::new();
    all.retain(|&k| {
        let touched = view.patch.is_some_and(|p| p.is_dirty(k));
        !touched || !view.read(k, scope, &mut scratch).is_empty()
    });
    keys.append(&mut all);
}

/// What a resident segment is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    epoch: u64,
    /// The generation of the segment's file: merging replaces segments.
    generation: u32,
    predicate: u32,
    direction: Direction,
    /// For segments with a patch, the snapshot's version, and whether edits of named graphs count.
    patched: Option<(u64, bool)>,
}

/// Segments that stay on the device between plans.
#[derive(Default)]
pub struct SegmentCache {
    held: Mutex<FxHashMap<Key, Arc<ResidentSegment>>>,
    index: Mutex<Index>,
}

/// What steps with a predicate variable read: see [`crate::index`].
#[derive(Default)]
pub(crate) struct Index {
    pub sets: FxHashMap<IndexKey, Arc<ResidentSegment>>,
    pub subjects: FxHashMap<IndexKey, Arc<ResidentSegment>>,
    pub catalogs: FxHashMap<IndexKey, Arc<Catalog>>,
}

impl SegmentCache {
    pub(crate) fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> MutexGuard<'_, FxHashMap<Key, Arc<ResidentSegment>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings something; when the device is full, what no plan holds goes first.
    pub(crate) fn with_room<T>(&self, bring: impl Fn() -> Result<T>) -> Result<T> {
        match bring() {
            Err(Error::Limit(_)) => {
                self.clear();
                bring()
            }
            other => other,
        }
    }

    /// The segment, brought if it is not there. When the device is full, segments that no plan holds go first.
    pub fn get(
        &self,
        backend: &Arc<dyn Backend>,
        snapshot: &Snapshot,
        predicate: PredicateId,
        direction: Direction,
        scope: Scope<'_>,
    ) -> Result<Arc<ResidentSegment>> {
        let view = snapshot.edges(predicate, direction);
        alone(&view, scope)?;
        let key = Key {
            epoch: snapshot.base().epoch(),
            generation: snapshot.base().generation_of(predicate),
            predicate: predicate.0,
            direction,
            patched: view
                .patch
                .map(|_| (snapshot.version(), scope == Scope::Union)),
        };
        if let Some(s) = self.held().get(&key) {
            return Ok(Arc::clone(s));
        }
        let brought = self.with_room(|| ResidentSegment::bring(backend, &view, scope))?;
        // Of two that brought it at the same time, one keeps it.
        let brought = Arc::new(brought);
        Ok(Arc::clone(self.held().entry(key).or_insert(brought)))
    }

    /// Device memory of all held segments, characteristic sets and index vertices.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let segments: u64 = self.held().values().map(|s| s.bytes()).sum();
        let index = self.index();
        let more = index.sets.values().chain(index.subjects.values());
        segments + more.map(|s| s.bytes()).sum::<u64>()
    }

    /// Drops what no running plan holds.
    pub fn clear(&self) {
        let mut index = self.index();
        // Catalogs hold segments, so they go first.
        index.catalogs.retain(|_, c| Arc::strong_count(c) > 1);
        index.sets.retain(|_, s| Arc::strong_count(s) > 1);
        index.subjects.retain(|_, s| Arc::strong_count(s) > 1);
        drop(index);
        self.held().retain(|_, s| Arc::strong_count(s) > 1);
    }
}
