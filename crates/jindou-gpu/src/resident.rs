//! Segments in device memory: the arrays of the store, byte for byte, followed by an overlay with the neighbours of the
//! keys that a patch changes.
//!
//! When a version of a segment is uploaded, the host merges its patch: the overlay contains the whole neighbour list of
//! each changed ("dirty") key, as of the snapshot. So kernels merge nothing; they test one bit per key, and search the
//! overlay's keys if the bit is set. That costs O(edges of dirty keys) once per snapshot.
//!
//! ```text
//! Arrays (a generation)     index: finder, keys, offsets     neighbours | space for overlays of several versions
//! ResidentSegment (a version)   dirty bits, keys, starts ────────────────────┘
//! ```
//!
//! All versions of a generation share its arrays, so after an update only the new overlay is uploaded. If the space for
//! overlays after the neighbours is too small, the device copies the neighbours to a larger buffer.

use crate::backend::Kernel;
use crate::buffer::{DeviceBuffer, Packer};
use crate::device::Device;
use crate::pages::{Described, PagedSegment};
use crate::params;
use jindou_graph::Edges;
use jindou_graph::segment::{FinderKind, GraphScope, KeyFinder, Segment};
use jindou_model::sync;
use jindou_model::{Error, Invariant, Result};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Largest number of keys for which the length of the longest list is computed, which takes a few milliseconds.
const MOST_LOOKED: usize = 1 << 22;
/// Smallest space for overlays, in ids, of a segment that has an overlay.
const LEAST_ROOM: u64 = 1 << 14;

pub(crate) fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    sync::lock(of)
}

/// The neighbours of a segment, followed by space for overlays.
struct Neighbours {
    buffer: Option<DeviceBuffer>,
    /// Size of the space for overlays, in number of ids.
    room: u32,
    /// The ranges of that space that overlays occupy, ascending.
    taken: Mutex<Vec<Range<u32>>>,
}

impl Neighbours {
    fn at(&self) -> u64 {
        self.buffer.as_ref().map_or(0, DeviceBuffer::at)
    }

    fn bytes(&self) -> u64 {
        self.buffer.as_ref().map_or(0, |b| b.len() as u64)
    }

    /// Reserves the first free range of `ids` ids, which is released when the returned share is dropped. `None` if
    /// there is no such range.
    fn take(self: &Arc<Self>, ids: u32) -> Option<OverlayShare> {
        let mut taken = locked(&self.taken);
        let mut from = 0u32;
        let mut place = taken.len();
        for (i, t) in taken.iter().enumerate() {
            if t.start - from >= ids {
                place = i;
                break;
            }
            from = t.end;
        }
        let end = from.checked_add(ids).filter(|&end| end <= self.room)?;
        taken.insert(place, from..end);
        drop(taken);
        Some(OverlayShare {
            neighbours: Arc::clone(self),
            range: from..end,
        })
    }
}

/// The range of the space that one overlay occupies, released on drop.
struct OverlayShare {
    neighbours: Arc<Neighbours>,
    range: Range<u32>,
}

impl Drop for OverlayShare {
    fn drop(&mut self) {
        // Another overlay may be written to this range at once: that write is queued after all kernels that read this
        // one.
        let mut taken = locked(&self.neighbours.taken);
        if let Some(i) = taken.iter().position(|t| *t == self.range) {
            taken.remove(i);
        }
    }
}

/// A segment's arrays without a patch, which all versions of its generation share.
pub(crate) struct Arrays {
    params: params::SegmentParams,
    /// Finder, keys and offsets.
    index: Option<DeviceBuffer>,
    /// The neighbours. Replaced by a larger buffer when an overlay needs more space.
    neighbours: Mutex<Arc<Neighbours>>,
    /// Length of the longest list, computed on first use; `None` inside if that would take long.
    most: OnceLock<Option<u32>>,
}

impl Arrays {
    pub fn bring(device: &Arc<Device>, segment: &Segment<'_>) -> Result<Self> {
        // Kernels do not read folded finders, so they are converted to directories.
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
        let described = describe_as(segment, finder)?;
        let mut p = described.params;
        let mut packed = Packer::default();
        let table = packed.add_bytes(described.table);
        let keys = packed.add(described.keys);
        let offsets = packed.add(described.offsets);
        let mut ids = Packer::default();
        ids.add(segment.neighbours);
        let [index, buffer] = Packer::finish_all(device, [packed, ids])?;
        p.table = table.in_buffer(index.as_ref());
        p.keys = keys.in_buffer(index.as_ref());
        p.offsets = offsets.in_buffer(index.as_ref());
        let neighbours = Neighbours {
            buffer,
            room: 0,
            taken: Mutex::default(),
        };
        p.neighbours = neighbours.at();
        Ok(Self {
            params: p,
            index,
            neighbours: Mutex::new(Arc::new(neighbours)),
            most: OnceLock::new(),
        })
    }

    /// Bytes of device memory of the arrays.
    pub fn bytes(&self) -> u64 {
        let index = self.index.as_ref().map_or(0, |b| b.len() as u64);
        index + locked(&self.neighbours).bytes()
    }

    /// Reserves space for an overlay of `ids` ids. If necessary, first copies the neighbours to a larger buffer.
    fn room_for(&self, device: &Arc<Device>, ids: u32) -> Result<OverlayShare> {
        let mut neighbours = locked(&self.neighbours);
        if let Some(share) = neighbours.take(ids) {
            return Ok(share);
        }
        let edges = u64::from(self.params.edges);
        let most = u64::from(u32::MAX) - edges;
        if u64::from(ids) > most {
            return Err(Error::Unsupported("a patch this large on the GPU".into()));
        }
        // The overlays of an old and a new version may be needed at the same time, and grow, so there is space for
        // several.
        let room = (4 * u64::from(ids))
            .max(edges / 16)
            .max(LEAST_ROOM)
            .min(most);
        let buffer = DeviceBuffer::new(device, (edges + room) as usize * 4)?;
        if edges > 0 {
            // SAFETY: both buffers hold the edges; the new one is used by nothing else.
            unsafe { device.copy(buffer.at(), neighbours.at(), edges as usize * 4)? };
        }
        // Versions of the segment that use the old buffer keep it alive.
        *neighbours = Arc::new(Neighbours {
            buffer: Some(buffer),
            room: room as u32,
            taken: Mutex::default(),
        });
        neighbours
            .take(ids)
            .ok_or_else(|| Error::Internal("no room for an overlay".into()))
    }
}

/// The arrays of a segment in the device's form, with the finder that the store uses.
pub(crate) fn describe<'a>(segment: &Segment<'a>) -> Result<Described<'a>> {
    describe_as(segment, segment.finder)
}

/// As [`describe`], with another finder for the same keys.
fn describe_as<'a>(segment: &Segment<'a>, finder: KeyFinder<'a>) -> Result<Described<'a>> {
    let mut p: params::SegmentParams = bytemuck::Zeroable::zeroed();
    p.edges = u32::try_from(segment.neighbours.len())
        .map_err(|_| Error::Gpu("a segment has more than 2^32 neighbours".into()))?;
    p.kind = finder.kind() as u32;
    p.key_count = segment.key_count;
    let (none, is_made): (&[u32], bool) = (
        &[],
        matches!(
            finder,
            KeyFinder::FoldedBitmap { .. } | KeyFinder::FoldedDirectory { .. }
        ),
    );
    let (table, keys): (&[u8], &[u32]) = match finder {
        KeyFinder::Empty | KeyFinder::FoldedBitmap { .. } | KeyFinder::FoldedDirectory { .. } => {
            (&[], none)
        }
        KeyFinder::Intervals(runs) => {
            p.table_len = runs.len() as u32;
            for (to, r) in p.runs.iter_mut().zip(runs) {
                *to = params::Run {
                    start: r.start,
                    end: r.end,
                    base: r.base,
                };
            }
            (bytemuck::cast_slice(runs), none)
        }
        KeyFinder::Bitmap { first, blocks } => {
            p.table_len = blocks.len() as u32;
            p.first = first;
            (bytemuck::cast_slice(blocks), none)
        }
        KeyFinder::Directory {
            first,
            shift,
            buckets,
            keys,
        } => {
            p.table_len = buckets.len() as u32;
            p.first = first;
            p.shift = shift;
            (bytemuck::cast_slice(buckets), keys)
        }
    };
    Ok(Described {
        params: p,
        table,
        keys,
        offsets: segment.offsets.unwrap_or(none),
        is_made,
    })
}

/// One version of a segment on the device.
pub struct ResidentSegment {
    /// The segment in the form of kernel parameters.
    pub params: params::SegmentParams,
    /// The arrays that versions of the same generation share; `None` for structures that are not segments of the store.
    arrays: Option<Arc<Arrays>>,
    /// The buffer of neighbours that `params` points to.
    neighbours: Option<Arc<Neighbours>>,
    _share: Option<OverlayShare>,
    /// The segment's blocks if it is paged; then only some of them are on the device, uploaded before each step.
    pages: Option<Arc<PagedSegment>>,
    /// Buffers that are freed with this version.
    buffers: Vec<DeviceBuffer>,
    overlay_keys: Vec<u32>,
    overlay_starts: Vec<u32>,
    /// The keys that have a neighbour, and their number, if there is a patch; computed when a plan starts from them.
    patched_keys: OnceLock<(Arc<DeviceBuffer>, u32)>,
}

impl ResidentSegment {
    /// Uploads the arrays of the segment that answers a view in this scope, and its patch. `Unsupported` if several
    /// named graphs must be merged.
    pub fn bring(device: &Arc<Device>, view: &Edges<'_>, scope: GraphScope<'_>) -> Result<Self> {
        let arrays = Arrays::bring(device, &alone(view, scope)?)?;
        Self::over(device, &Arc::new(arrays), view, scope)
    }

    /// Uploads the patch of a view whose arrays are already on the device.
    pub(crate) fn over(
        device: &Arc<Device>,
        arrays: &Arc<Arrays>,
        view: &Edges<'_>,
        scope: GraphScope<'_>,
    ) -> Result<Self> {
        let mut segment = Self {
            params: arrays.params,
            arrays: Some(Arc::clone(arrays)),
            neighbours: None,
            _share: None,
            pages: None,
            buffers: Vec::new(),
            overlay_keys: Vec::new(),
            overlay_starts: Vec::new(),
            patched_keys: OnceLock::new(),
        };
        let Some(patch) = view.patch() else {
            let neighbours = Arc::clone(&locked(&arrays.neighbours));
            segment.params.neighbours = neighbours.at();
            segment.neighbours = Some(neighbours);
            return Ok(segment);
        };
        let (mut lists, mut starts): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut scratch = Vec::new();
        let keys = patch.keys();
        for &key in &keys {
            starts.push(lists.len() as u32);
            lists.extend_from_slice(view.read(key, scope, &mut scratch));
            if u64::from(segment.params.edges) + lists.len() as u64 > u64::from(u32::MAX) {
                return Err(Error::Unsupported("a patch this large on the GPU".into()));
            }
        }
        starts.push(lists.len() as u32);
        let share = arrays.room_for(device, lists.len() as u32)?;
        starts.iter_mut().for_each(|s| *s += share.range.start);
        let (dirty, mask) = patch.dirty_bits();
        let mut packed = Packer::default();
        let places = (packed.add(&dirty), packed.add(&keys), packed.add(&starts));
        let overlay = packed.finish(device)?;
        let p = &mut segment.params;
        p.dirty = places.0.in_buffer(overlay.as_ref());
        p.dirty_mask = mask;
        p.overlay_keys = places.1.in_buffer(overlay.as_ref());
        p.overlay_len = keys.len() as u32;
        p.overlay_starts = places.2.in_buffer(overlay.as_ref());
        p.neighbours = share.neighbours.at();
        if let Some(b) = &share.neighbours.buffer {
            let at = (u64::from(p.edges) + u64::from(share.range.start)) * 4;
            b.write(at as usize, bytemuck::cast_slice(&lists))?;
        }
        segment.buffers.extend(overlay);
        segment.neighbours = Some(Arc::clone(&share.neighbours));
        segment._share = Some(share);
        (segment.overlay_keys, segment.overlay_starts) = (keys, starts);
        Ok(segment)
    }

    /// A structure in the form of a segment: `params` points to arrays in `buffers`, and there is nothing to share with
    /// other versions.
    pub(crate) fn of_parts(params: params::SegmentParams, buffers: Vec<DeviceBuffer>) -> Self {
        Self {
            params,
            arrays: None,
            neighbours: None,
            _share: None,
            pages: None,
            buffers,
            overlay_keys: Vec::new(),
            overlay_starts: Vec::new(),
            patched_keys: OnceLock::new(),
        }
    }

    /// A paged segment, without memory of its own.
    pub(crate) fn paged(pages: Arc<PagedSegment>) -> Self {
        let mut s = Self::of_parts(pages.params, Vec::new());
        s.pages = Some(pages);
        s
    }

    /// The blocks, if the segment is paged.
    pub(crate) fn pages(&self) -> Option<&Arc<PagedSegment>> {
        self.pages.as_ref()
    }

    /// True if there is no patch.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.params.dirty == 0
    }

    /// True if every key has exactly one neighbour and there is no patch.
    #[must_use]
    pub fn is_degree_one(&self) -> bool {
        self.is_plain() && self.params.offsets == 0
    }

    /// Bytes of device memory that reading it needs, including arrays shared with other versions.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let arrays = self.arrays.as_ref().map_or(0, |a| a.bytes());
        self.own_bytes() + arrays + self.pages.as_ref().map_or(0, |p| p.bytes())
    }

    /// Bytes of device memory that are freed with this version.
    pub(crate) fn own_bytes(&self) -> u64 {
        let keys = self.patched_keys.get().map_or(0, |(b, _)| b.len() as u64);
        keys + self.buffers.iter().map(|b| b.len() as u64).sum::<u64>()
    }

    /// Where the list of `v` starts in the neighbours on the device, and its length. `segment` is the store's arrays.
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

    /// Length of the longest list; `None` if computing it would take long. `segment` is the store's arrays. O(keys) the
    /// first time.
    #[must_use]
    pub fn most_neighbours(&self, segment: &Segment<'_>) -> Option<u32> {
        let most = self
            .arrays
            .as_ref()?
            .most
            .get_or_init(|| match segment.offsets {
                None => Some(1),
                Some(o) if o.len() > MOST_LOOKED => None,
                // Kernels treat lists with damaged offsets as empty.
                Some(o) => o.windows(2).map(|b| b[1].saturating_sub(b[0])).max(),
            });
        let overlay = self.overlay_starts.windows(2).map(|b| b[1] - b[0]).max();
        Some((*most)?.max(overlay.unwrap_or(0)))
    }

    /// With a patch: the keys that have a neighbour, in device memory, and their number. `segment` is the store's
    /// arrays. The first call costs O(changed keys) on the host and O(keys) on the device.
    pub fn patched_keys(
        &self,
        device: &Arc<Device>,
        segment: &Segment<'_>,
    ) -> Result<(Arc<DeviceBuffer>, u32)> {
        if let Some((b, n)) = self.patched_keys.get() {
            return Ok((Arc::clone(b), *n));
        }
        // Keys that the patch added, and keys whose last neighbour it removed.
        let (mut new, mut gone) = (Vec::new(), Vec::new());
        for (&key, bounds) in self.overlay_keys.iter().zip(self.overlay_starts.windows(2)) {
            let there = segment.finder.find(key) < self.params.key_count;
            match (there, bounds[0] < bounds[1]) {
                (false, true) => new.push(key),
                (true, false) => gone.push(key),
                _ => {}
            }
        }
        let base = self.params.key_count;
        let left = base - (gone.len() as u32).min(base);
        let rows = u64::from(left) + new.len() as u64;
        let rows = u32::try_from(rows)
            .map_err(|_| Error::Unsupported("this many keys on the GPU".into()))?;
        let keys = Arc::new(DeviceBuffer::new(device, rows as usize * 4)?);
        if left == base {
            self.base_keys(device, keys.at())?;
        } else if left > 0 {
            let all = DeviceBuffer::new(device, base as usize * 4)?;
            self.base_keys(device, all.at())?;
            without(device, &all, base, &gone, &keys)?;
        }
        keys.write(left as usize * 4, bytemuck::cast_slice(&new))?;
        let (b, n) = self.patched_keys.get_or_init(|| (keys, rows));
        Ok((Arc::clone(b), *n))
    }

    /// The keys that have a neighbour, and their number. `None` in place of the keys if there is no patch;
    /// [`Self::base_keys`] then writes them.
    pub(crate) fn live_keys(
        &self,
        device: &Arc<Device>,
        segment: &Segment<'_>,
    ) -> Result<(Option<Arc<DeviceBuffer>>, u32)> {
        if self.is_plain() {
            return Ok((None, self.params.key_count));
        }
        let (keys, count) = self.patched_keys(device, segment)?;
        Ok((Some(keys), count))
    }

    /// Writes the keys of the segment without its patch to device memory at `out`, which must be large enough.
    pub(crate) fn base_keys(&self, device: &Device, out: u64) -> Result<()> {
        let rows = self.params.key_count;
        let mut p = params::StartKeysParams {
            segment: self.params,
            out,
            begin: 0,
            rows,
            first_block: 0,
            blocks: 0,
        };
        let (kernel, units) = match FinderKind::from_byte(self.params.kind as u8) {
            Some(FinderKind::Intervals) => (Kernel::StartRuns, u64::from(rows)),
            Some(FinderKind::Bitmap) => {
                p.blocks = self.params.table_len;
                (Kernel::StartBits, u64::from(p.blocks) * 8)
            }
            _ if rows == 0 => return Ok(()),
            // SAFETY: a directory has `rows` keys.
            _ => return unsafe { device.copy(out, self.params.keys, rows as usize * 4) },
        };
        let grid = kernel.grid(units);
        let grid = grid.invariant("the keys of a segment fit one launch");
        if grid == 0 {
            return Ok(());
        }
        // SAFETY: `out` has room for `rows` ids; the table is this segment's.
        unsafe { device.launch(kernel, grid, bytemuck::bytes_of(&p)) }
    }

    /// Mean number of bytes that looking up a random vertex reads; see `find_key` in the kernels.
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

/// Copies the `n` ids at `from`, except those in `gone` (ascending), to `to`.
fn without(
    device: &Arc<Device>,
    from: &DeviceBuffer,
    n: u32,
    gone: &[u32],
    to: &DeviceBuffer,
) -> Result<()> {
    // The intervals of ids to keep lie between removed ones; the last interval ends at the largest id.
    let mut intervals = Vec::with_capacity(gone.len() + 1);
    let mut start = 0;
    for &key in gone {
        intervals.push([start, key]);
        start = key.saturating_add(1);
    }
    intervals.push([start, u32::MAX]);
    let table = DeviceBuffer::with(device, &intervals)?;
    let counter = DeviceBuffer::new(device, 4)?;
    counter.clear()?;
    let mut p: params::RestrictParams = bytemuck::Zeroable::zeroed();
    p.compact.rows = n;
    p.compact.counter = counter.at();
    p.compact.columns.count = 1;
    p.compact.columns.from[0] = from.at();
    p.compact.columns.to[0] = to.at();
    p.operand = params::OperandParams::column(from.at());
    p.within.table = table.at();
    p.within.count = intervals.len() as u32;
    [p.within.start, p.within.end] = intervals[0];
    let grid = Kernel::Restrict.grid(u64::from(n));
    let grid = grid.invariant("the keys of a segment fit one launch");
    // SAFETY: `from` has `n` ids, and `to` room for those that are kept: each id of `gone` is in `from` once.
    unsafe { device.launch(Kernel::Restrict, grid, bytemuck::bytes_of(&p)) }
}

/// The single segment that answers a scope of a view, apart from its patch. An error for scopes other than the default
/// graph and the union of all graphs, so that the cache need not distinguish more.
pub(crate) fn alone<'a>(view: &Edges<'a>, scope: GraphScope<'_>) -> Result<Segment<'a>> {
    let segment = match (view.plain(scope), view.plain_but_dirty(scope)) {
        (Some(s), _) | (None, Some((s, _))) => Some(s),
        (None, None) => None,
    };
    segment
        .filter(|_| matches!(scope, GraphScope::Default | GraphScope::Union))
        .ok_or_else(|| Error::Unsupported("named graphs on the GPU".into()))
}
