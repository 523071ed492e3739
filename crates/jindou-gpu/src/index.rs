//! Structures in device memory that steps with a predicate variable read: the characteristic sets (which predicates a
//! vertex has), the index vertices of all predicates (which subjects a predicate has; OSDI '16 §4.1), and the catalog
//! of all segments.
//!
//! The first two have the form of a segment, so the same kernels read them: the "neighbours" of a vertex are the ids of
//! its predicates' terms, and those of a predicate's term are its subjects.

use crate::buffer::{DeviceBuffer, Packer};
use crate::cache::SegmentCache;
use crate::device::Device;
use crate::params::{self, FINDER_SETS};
use crate::resident::{ResidentSegment, alone};
use jindou_graph::Graph;
use jindou_graph::segment::{FinderKind, GraphScope};
use jindou_model::{Direction, Error, PredicateId, Result};
use std::sync::Arc;

fn term_of(snapshot: &dyn Graph, p: u32) -> u32 {
    snapshot.vertex_of(PredicateId(p)).0
}

/// A bitmap of `keys` and a mask: the bit of a key is the key's lower bits under the mask, as in a patch. There are at
/// least 16 bits per key, so few other ids share a bit with a key.
fn folded_bits(keys: &[u32]) -> (Vec<u64>, u32) {
    let bits = (keys.len() * 16).next_power_of_two().clamp(64, 1 << 31);
    let mask = bits as u32 - 1;
    let mut words = vec![0u64; bits / 64];
    for &k in keys {
        let bit = k & mask;
        words[bit as usize / 64] |= 1 << (bit % 64);
    }
    (words, mask)
}

/// Uploads the characteristic sets: the ids of each vertex's predicates as terms. O(runs + sets + vertices whose sets
/// updates
/// extended).
fn bring_sets(
    device: &Arc<Device>,
    snapshot: &dyn Graph,
    direction: Direction,
) -> Result<ResidentSegment> {
    let sets = snapshot.predicates().sets();
    // A set covers the predicates of one direction only here, so neighbouring runs of vertices may have the same one,
    // and become one run.
    let (mut starts, mut numbers): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    for run in sets.runs {
        let set = match direction {
            Direction::Out => run.out_set,
            Direction::In => run.in_set,
        };
        if numbers.last() != Some(&set) {
            starts.push(run.start);
            numbers.push(set);
        }
    }
    let mut terms: Vec<u32> = sets
        .predicates
        .iter()
        .map(|&p| term_of(snapshot, p))
        .collect();
    let mut p: params::SegmentParams = bytemuck::Zeroable::zeroed();
    p.kind = FINDER_SETS;
    p.table_len = starts.len() as u32;
    p.key_count = sets.offsets.len().saturating_sub(1) as u32;
    p.edges = terms.len() as u32;
    let (mut bits, mut keys, mut list_starts) = (Vec::new(), Vec::new(), Vec::new());
    let widened = snapshot.predicates().widened_vertices(direction);
    if !widened.is_empty() {
        keys = widened.iter().map(|w| w.0).collect();
        list_starts.push(0u32);
        for (_, list) in &widened {
            terms.extend(list.iter().map(|&p| term_of(snapshot, p)));
            list_starts.push(terms.len() as u32 - p.edges);
        }
        (bits, p.dirty_mask) = folded_bits(&keys);
        p.overlay_len = keys.len() as u32;
    }
    if terms.len() > u32::MAX as usize {
        return Err(Error::Unsupported(
            "this many characteristic sets on the GPU".into(),
        ));
    }
    let mut packed = Packer::default();
    let table = packed.add(&starts);
    let of_run = packed.add(&numbers);
    let offsets = packed.add(sets.offsets);
    let overlay = (
        packed.add(&bits),
        packed.add(&keys),
        packed.add(&list_starts),
    );
    let neighbours = packed.add(&terms);
    let buffer = packed.finish(device)?;
    let b = buffer.as_ref();
    (p.table, p.keys) = (table.in_buffer(b), of_run.in_buffer(b));
    (p.offsets, p.neighbours) = (offsets.in_buffer(b), neighbours.in_buffer(b));
    p.dirty = overlay.0.in_buffer(b);
    (p.overlay_keys, p.overlay_starts) = (overlay.1.in_buffer(b), overlay.2.in_buffer(b));
    Ok(ResidentSegment::of_parts(p, buffer.into_iter().collect()))
}

/// Uploads the index vertices: by the term of each predicate, the keys of its segment, which the device copies one
/// after the other. Segments that are not on the device are uploaded, too. O(predicates) on the host.
fn bring_subjects(
    device: &Arc<Device>,
    cache: &SegmentCache,
    snapshot: &dyn Graph,
    scope: GraphScope<'_>,
) -> Result<ResidentSegment> {
    let mut predicates: Vec<(u32, u32)> = (0..snapshot.predicate_count())
        .map(|p| (term_of(snapshot, p), p))
        .collect();
    predicates.sort_unstable();
    let (mut terms, mut offsets, mut keys_of) = (Vec::new(), vec![0u32], Vec::new());
    let mut all = 0u32;
    for (term, p) in predicates {
        let view = snapshot.edges(PredicateId(p), Direction::Out);
        let host = alone(&view, scope)?;
        if host.is_empty() && view.patch().is_none() {
            continue;
        }
        let segment = cache.get(device, snapshot, PredicateId(p), Direction::Out, scope)?;
        let keys = segment.live_keys(device, &host)?;
        if keys.1 == 0 {
            continue;
        }
        terms.push(term);
        all = all.checked_add(keys.1).ok_or_else(|| {
            Error::Unsupported("a scan of more than 2^32 subjects on the GPU".into())
        })?;
        offsets.push(all);
        keys_of.push((segment, keys));
    }
    let mut p: params::SegmentParams = bytemuck::Zeroable::zeroed();
    let Some(&first) = terms.first() else {
        return Ok(ResidentSegment::of_parts(p, Vec::new()));
    };
    p.kind = FinderKind::Directory as u32;
    // The finder is a directory with two buckets, one for each half of the id space.
    let split = terms.partition_point(|t| (t - first) >> 31 == 0) as u32;
    let buckets = [0, split, terms.len() as u32];
    p.table_len = buckets.len() as u32;
    (p.first, p.shift) = (first, 31);
    p.key_count = terms.len() as u32;
    p.edges = all;
    let mut packed = Packer::default();
    let (table, keys) = (packed.add(&buckets), packed.add(&terms));
    let bounds = packed.add(&offsets);
    let buffer = packed.finish(device)?;
    let b = buffer.as_ref();
    (p.table, p.keys) = (table.in_buffer(b), keys.in_buffer(b));
    p.offsets = bounds.in_buffer(b);
    let subjects = DeviceBuffer::new(device, all as usize * 4)?;
    p.neighbours = subjects.at();
    for ((segment, (patched, count)), &before) in keys_of.iter().zip(&offsets) {
        let out = subjects.at() + u64::from(before) * 4;
        match patched {
            // SAFETY: a buffer of that many keys, and room for them.
            Some(keys) => unsafe { device.copy(out, keys.at(), *count as usize * 4)? },
            None => segment.base_keys(device, out)?,
        }
    }
    let buffers = buffer.into_iter().chain([subjects]).collect();
    Ok(ResidentSegment::of_parts(p, buffers))
}

/// The segments of several predicates in one direction. Kernels that read the predicate from a column find its segment
/// here.
pub struct Catalog {
    /// The catalog in the form of kernel parameters.
    pub params: params::CatalogParams,
    /// All segments of the catalog.
    pub segments: Vec<Arc<ResidentSegment>>,
    buffer: Arc<DeviceBuffer>,
}

impl Catalog {
    /// Creates a catalog of the segments of these predicates. Segments that are not on the device are uploaded.
    fn bring(
        device: &Arc<Device>,
        cache: &SegmentCache,
        snapshot: &dyn Graph,
        direction: Direction,
        scope: GraphScope<'_>,
        predicates: impl Iterator<Item = u32>,
    ) -> Result<Self> {
        let mut sorted: Vec<(u32, u32)> = predicates.map(|p| (term_of(snapshot, p), p)).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let (mut heads, mut terms, mut segments) = (Vec::new(), Vec::new(), Vec::new());
        for (term, p) in sorted {
            let p = PredicateId(p);
            let view = snapshot.edges(p, direction);
            if alone(&view, scope)?.is_empty() && view.patch().is_none() {
                continue;
            }
            let s = cache.get(device, snapshot, p, direction, scope)?;
            heads.push(s.params.head);
            terms.push(term);
            segments.push(s);
        }
        let mut packed = Packer::default();
        let (heads_at, terms_at) = (packed.add(&heads), packed.add(&terms));
        let buffer = match packed.finish(device)? {
            Some(b) => b,
            None => DeviceBuffer::new(device, size_of::<params::SegmentHead>())?,
        };
        let params = params::CatalogParams {
            heads: heads_at.in_buffer(Some(&buffer)),
            terms: terms_at.in_buffer(Some(&buffer)),
            count: terms.len() as u32,
            pad: 0,
        };
        Ok(Self {
            params,
            segments,
            buffer: Arc::new(buffer),
        })
    }

    /// The buffer that `params` points to.
    pub(crate) fn buffer(&self) -> &Arc<DeviceBuffer> {
        &self.buffer
    }

    /// Mean of `f` over the segments, for estimating how many bytes a kernel reads per row.
    pub(crate) fn mean(&self, f: impl Fn(&ResidentSegment) -> f64) -> f64 {
        let n = self.segments.len().max(1) as f64;
        self.segments.iter().map(|s| f(s)).sum::<f64>() / n
    }
}

/// Key of these structures in the cache: snapshot, direction, and default graph or union. Those of old snapshots are
/// evicted when memory is needed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct IndexKey {
    epoch: u64,
    snapshot: u64,
    direction: Direction,
    union: bool,
}

impl IndexKey {
    fn new(snapshot: &dyn Graph, direction: Direction, scope: GraphScope<'_>) -> Self {
        let identity = snapshot.identity();
        Self {
            epoch: identity.epoch,
            snapshot: identity.version,
            direction,
            union: scope == GraphScope::Union,
        }
    }
}

impl SegmentCache {
    /// The characteristic sets of a direction, uploaded unless they are cached.
    pub(crate) fn sets(
        &self,
        device: &Arc<Device>,
        snapshot: &dyn Graph,
        direction: Direction,
    ) -> Result<Arc<ResidentSegment>> {
        // The vertices are the same for every set of graphs.
        let key = IndexKey::new(snapshot, direction, GraphScope::Default);
        if let Some(s) = self.index().sets.get(&key) {
            return Ok(Arc::clone(s));
        }
        let brought = self.with_room(|| bring_sets(device, snapshot, direction))?;
        let brought = Arc::new(brought);
        self.index().sets.insert(key, Arc::clone(&brought));
        Ok(brought)
    }

    /// The index vertices of all predicates, uploaded unless they are cached.
    pub(crate) fn subjects(
        &self,
        device: &Arc<Device>,
        snapshot: &dyn Graph,
        scope: GraphScope<'_>,
    ) -> Result<Arc<ResidentSegment>> {
        let key = IndexKey::new(snapshot, Direction::Out, scope);
        if let Some(s) = self.index().subjects.get(&key) {
            return Ok(Arc::clone(s));
        }
        let brought = self.with_room(|| bring_subjects(device, self, snapshot, scope))?;
        let brought = Arc::new(brought);
        self.index().subjects.insert(key, Arc::clone(&brought));
        Ok(brought)
    }

    /// The catalog of the segments of all predicates in a direction; if the anchor is a constant, only those of the
    /// constant's predicates.
    pub(crate) fn catalog(
        &self,
        device: &Arc<Device>,
        snapshot: &dyn Graph,
        direction: Direction,
        scope: GraphScope<'_>,
        anchor: Option<u32>,
    ) -> Result<Arc<Catalog>> {
        if let Some(v) = anchor {
            let few = snapshot.predicates_of(v, direction);
            let few = few.iter().copied();
            let c = Catalog::bring(device, self, snapshot, direction, scope, few)?;
            return Ok(Arc::new(c));
        }
        let key = IndexKey::new(snapshot, direction, scope);
        if let Some(c) = self.index().catalogs.get(&key) {
            return Ok(Arc::clone(c));
        }
        let all = 0..snapshot.predicate_count();
        let c = Arc::new(Catalog::bring(
            device, self, snapshot, direction, scope, all,
        )?);
        self.index().catalogs.insert(key, Arc::clone(&c));
        Ok(c)
    }
}
