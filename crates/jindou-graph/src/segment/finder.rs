//! Finds the number of a key in a segment.
//!
//! | kind | chosen when | memory | a lookup touches |
//! |---|---|---|---|
//! | intervals | at most [`MAX_INTERVALS`] runs of consecutive ids | 12 B per run | the interval table (cached) |
//! | bitmap and rank | at least one id in 16 of the range is a key | 2 bits per id in range | 1 line |
//! | directory | otherwise | 4.5 B per key | 1 line of the directory, 1 of keys |
//!
//! Segments that a merge wrote may have keys among the base's ids and among those of the tail, with a very large gap in
//! between. Their bitmaps and directories are over *folded* ids, in which the ids of the tail follow those of the base
//! without a gap.

use super::{FIRST_KEY, FinderKind, prefetch};
use bytemuck::{Pod, Zeroable};
use jindou_model::FIRST_TAIL_ID;
use jindou_model::mapped::contradicts;

/// The result for a vertex that is not a key.
pub const NO_KEY: u32 = u32::MAX;

/// Largest number of runs of keys for which a segment uses intervals. Sixteen runs of 12 bytes are three cache lines,
/// which stay in the first-level cache. A branch-free scan of them costs less than one cache miss.
pub const MAX_INTERVALS: usize = 16;

/// Mean number of keys in a bucket of a directory: the keys of two buckets fill a cache line.
const BUCKET_KEYS: u32 = 8;

/// A run of consecutive keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Interval {
    /// First id.
    pub start: u32,
    /// The id after the last one.
    pub end: u32,
    /// Key number of `start`.
    pub base: u32,
}

/// A block of 64 ids of a bitmap: a bit for each id, and the number of keys before the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RankBlock {
    /// Bit `i` is set if id `first + 64 * block + i` is a key, where `block` is the block's index.
    pub bits: u64,
    /// Number of keys before this block.
    pub rank: u32,
    /// Padding, always 0.
    pub pad: u32,
}

/// An index from a vertex to the number of its key in a segment.
#[derive(Clone, Copy, Debug)]
pub enum KeyFinder<'a> {
    /// No keys.
    Empty,
    /// Ascending, disjoint runs of keys.
    Intervals(&'a [Interval]),
    /// A bitmap of the ids from `first` (a multiple of 64) on.
    Bitmap {
        /// Id of bit 0.
        first: u32,
        /// The bits.
        blocks: &'a [RankBlock],
    },
    /// Sorted keys; bucket `b` contains the keys with `(key - first) >> shift == b`.
    Directory {
        /// The smallest key.
        first: u32,
        /// log2 of the number of ids in a bucket.
        shift: u32,
        /// Number of the first key of each bucket, and the number of keys.
        buckets: &'a [u32],
        /// All keys, ascending.
        keys: &'a [u32],
    },
    /// As `Bitmap`, of folded ids.
    FoldedBitmap {
        /// Folded id of the first tail id.
        fold: u32,
        /// Folded id of bit 0.
        first: u32,
        /// The bits.
        blocks: &'a [RankBlock],
    },
    /// As `Directory`, with buckets of folded ids. The keys are not folded.
    FoldedDirectory {
        /// Folded id of the first tail id.
        fold: u32,
        /// The smallest key, folded.
        first: u32,
        /// log2 of the number of folded ids in a bucket.
        shift: u32,
        /// Number of the first key of each bucket, and the number of keys.
        buckets: &'a [u32],
        /// All keys, ascending.
        keys: &'a [u32],
    },
}

/// The folded id of `v`: ids of the tail are mapped to `fold` and the following numbers; other ids stay unchanged.
/// `fold` must be above all ids of the base.
#[inline]
#[must_use]
pub fn folded(v: u32, fold: u32) -> u32 {
    match v.checked_sub(FIRST_TAIL_ID) {
        Some(n) => n.saturating_add(fold),
        None => v,
    }
}

/// The arrays of a directory without folded ids, for readers such as device kernels that do not implement folding.
#[derive(Clone, Debug, Default)]
pub struct PlainDirectory {
    /// The smallest key.
    pub first: u32,
    /// log2 of the number of ids in a bucket.
    pub shift: u32,
    /// Number of the first key of each bucket, and the number of keys.
    pub buckets: Vec<u32>,
    /// All keys, ascending.
    pub keys: Vec<u32>,
}

impl KeyFinder<'_> {
    /// A directory of the same keys without folded ids; `None` if this finder does not fold ids. O(keys). If keys are
    /// both in the base and in the tail, most of its buckets are empty, and the other ones very large.
    #[must_use]
    pub fn unfolded(&self, key_count: u32) -> Option<PlainDirectory> {
        if !matches!(
            self,
            Self::FoldedBitmap { .. } | Self::FoldedDirectory { .. }
        ) {
            return None;
        }
        let mut keys = Vec::new();
        self.keys_into(0, key_count, &mut keys);
        let (&first, &last) = (keys.first()?, keys.last()?);
        let (shift, buckets) = buckets_of(&keys, first, last, |k| k);
        Some(PlainDirectory {
            first,
            shift,
            buckets,
            keys,
        })
    }

    /// The number of key `v`; [`NO_KEY`] if `v` is not a key.
    #[inline]
    #[must_use]
    pub fn find(&self, v: u32) -> u32 {
        match *self {
            Self::Empty => NO_KEY,
            Self::Intervals(runs) => find_interval(runs, v),
            Self::Bitmap { first, blocks } => find_bitmap(first, blocks, v),
            Self::Directory {
                first,
                shift,
                buckets,
                keys,
            } => find_directory(first, shift, buckets, keys, v),
            Self::FoldedBitmap {
                fold,
                first,
                blocks,
            } => find_bitmap(first, blocks, folded(v, fold)),
            Self::FoldedDirectory {
                fold,
                first,
                shift,
                buckets,
                keys,
            } => find_in_bucket(first, shift, buckets, keys, folded(v, fold), v),
        }
    }

    /// [`Self::find`] of every id: `out[i] = find(ids[i])`. The kind is matched once per batch, and cache lines are
    /// prefetched for all kinds except intervals.
    pub fn find_many(&self, ids: &[u32], out: &mut Vec<u32>) {
        out.clear();
        out.reserve(ids.len());
        match *self {
            Self::Empty => out.resize(ids.len(), NO_KEY),
            Self::Intervals(&[run]) => {
                let width = run.end.wrapping_sub(run.start);
                out.extend(ids.iter().map(|&v| {
                    let d = v.wrapping_sub(run.start);
                    if d < width {
                        run.base.wrapping_add(d)
                    } else {
                        NO_KEY
                    }
                }));
            }
            Self::Intervals(runs) => out.extend(ids.iter().map(|&v| find_interval(runs, v))),
            Self::Bitmap { first, blocks } => find_all_in_bitmap(first, blocks, ids, |v| v, out),
            Self::FoldedBitmap {
                fold,
                first,
                blocks,
            } => find_all_in_bitmap(first, blocks, ids, |v| folded(v, fold), out),
            Self::Directory {
                first,
                shift,
                buckets,
                keys,
            } => find_all_in_directory(first, shift, buckets, keys, ids, |v| v, out),
            Self::FoldedDirectory {
                fold,
                first,
                shift,
                buckets,
                keys,
            } => {
                let at = |v| folded(v, fold);
                find_all_in_directory(first, shift, buckets, keys, ids, at, out);
            }
        }
    }

    /// Appends the keys numbered `from .. to`, ascending; never more than `to - from` keys, even if the file is
    /// damaged. O(log runs + keys); for bitmaps O(log blocks + blocks read).
    pub fn keys_into(&self, from: u32, to: u32, out: &mut Vec<u32>) {
        if from >= to {
            return;
        }
        let most = out.len() + (to - from) as usize;
        match *self {
            Self::Empty => {}
            Self::Intervals(runs) => {
                let at = runs.partition_point(|r| r.base <= from).saturating_sub(1);
                for r in &runs[at..] {
                    if r.base >= to || out.len() >= most {
                        break;
                    }
                    let len = r.end.saturating_sub(r.start);
                    let a = from.saturating_sub(r.base).min(len);
                    let b = (to - r.base).min(len);
                    out.extend(r.start.saturating_add(a)..r.start.saturating_add(b));
                }
            }
            Self::Bitmap { first, blocks } => {
                bits_into(first, blocks, from..to, most, |v| v, out);
            }
            Self::FoldedBitmap {
                fold,
                first,
                blocks,
            } => {
                let id = |f: u32| match f.checked_sub(fold) {
                    Some(n) => n.saturating_add(FIRST_TAIL_ID),
                    None => f,
                };
                bits_into(first, blocks, from..to, most, id, out);
            }
            Self::Directory { keys, .. } | Self::FoldedDirectory { keys, .. } => {
                let b = (to as usize).min(keys.len());
                let a = (from as usize).min(b);
                out.extend_from_slice(&keys[a..b]);
            }
        }
        out.truncate(most);
    }

    /// The kind of this finder.
    #[must_use]
    pub fn kind(&self) -> FinderKind {
        match self {
            Self::Empty => FinderKind::Empty,
            Self::Intervals(_) => FinderKind::Intervals,
            Self::Bitmap { .. } => FinderKind::Bitmap,
            Self::Directory { .. } => FinderKind::Directory,
            Self::FoldedBitmap { .. } => FinderKind::FoldedBitmap,
            Self::FoldedDirectory { .. } => FinderKind::FoldedDirectory,
        }
    }
}

/// Number of lookups that are prefetched ahead: enough to reach the machine's maximum rate of random reads.
const AHEAD: usize = 16;

#[inline(always)]
fn find_all_in_bitmap(
    first: u32,
    blocks: &[RankBlock],
    ids: &[u32],
    at: impl Fn(u32) -> u32,
    out: &mut Vec<u32>,
) {
    for (i, &v) in ids.iter().enumerate() {
        if let Some(&w) = ids.get(i + AHEAD) {
            prefetch(blocks, (at(w).wrapping_sub(first) / 64) as usize);
        }
        out.push(find_bitmap(first, blocks, at(v)));
    }
}

#[inline(always)]
fn find_all_in_directory(
    first: u32,
    shift: u32,
    buckets: &[u32],
    keys: &[u32],
    ids: &[u32],
    at: impl Fn(u32) -> u32,
    out: &mut Vec<u32>,
) {
    for (i, &v) in ids.iter().enumerate() {
        if let Some(&w) = ids.get(i + 2 * AHEAD) {
            prefetch(buckets, (at(w).wrapping_sub(first) >> shift) as usize);
        }
        if let Some(&w) = ids.get(i + AHEAD)
            && at(w) >= first
            && let Some(&k) = buckets.get(((at(w) - first) >> shift) as usize)
        {
            prefetch(keys, k as usize);
        }
        out.push(find_in_bucket(first, shift, buckets, keys, at(v), v));
    }
}

/// Appends the ids of the set bits numbered in a range, until `out` has `most` ids.
#[inline(always)]
fn bits_into(
    first: u32,
    blocks: &[RankBlock],
    numbers: std::ops::Range<u32>,
    most: usize,
    id: impl Fn(u32) -> u32,
    out: &mut Vec<u32>,
) {
    let at = blocks
        .partition_point(|b| b.rank <= numbers.start)
        .saturating_sub(1);
    for (i, b) in blocks.iter().enumerate().skip(at) {
        if b.rank >= numbers.end || out.len() >= most {
            break;
        }
        let mut bits = b.bits;
        let mut number = b.rank;
        while bits != 0 {
            if numbers.contains(&number) {
                let start = first.wrapping_add((i as u32).wrapping_mul(64));
                out.push(id(start.wrapping_add(bits.trailing_zeros())));
            }
            number = number.wrapping_add(1);
            bits &= bits - 1;
        }
    }
}

#[inline]
fn find_interval(runs: &[Interval], v: u32) -> u32 {
    // All runs are compared: sixteen independent comparisons cost less than one mispredicted branch.
    let mut found = NO_KEY;
    for r in runs {
        let d = v.wrapping_sub(r.start);
        let hit = d < r.end.wrapping_sub(r.start);
        found = if hit { r.base.wrapping_add(d) } else { found };
    }
    found
}

#[inline]
fn find_bitmap(first: u32, blocks: &[RankBlock], v: u32) -> u32 {
    let d = v.wrapping_sub(first);
    match blocks.get((d / 64) as usize) {
        Some(b) if b.bits >> (d % 64) & 1 == 1 => b
            .rank
            .wrapping_add((b.bits & ((1u64 << (d % 64)) - 1)).count_ones()),
        _ => NO_KEY,
    }
}

#[inline]
fn find_directory(first: u32, shift: u32, buckets: &[u32], keys: &[u32], v: u32) -> u32 {
    find_in_bucket(first, shift, buckets, keys, v, v)
}

/// The number of key `v`, which is searched in the bucket that contains the (folded) id `at`.
#[inline]
fn find_in_bucket(first: u32, shift: u32, buckets: &[u32], keys: &[u32], at: u32, v: u32) -> u32 {
    if at < first {
        return NO_KEY;
    }
    let bucket = ((at - first) >> shift) as usize;
    let Some(&[a, b]) = buckets.get(bucket..).and_then(|s| s.first_chunk::<2>()) else {
        return NO_KEY;
    };
    let Some(slice) = keys.get(a as usize..b as usize) else {
        contradicts(buckets);
        return NO_KEY;
    };
    if slice.len() <= 2 * BUCKET_KEYS as usize {
        match slice.iter().position(|&k| k >= v) {
            Some(i) if slice[i] == v => a + i as u32,
            _ => NO_KEY,
        }
    } else {
        slice.binary_search(&v).map_or(NO_KEY, |i| a + i as u32)
    }
}

/// A finder's arrays, built from keys.
#[derive(Debug, Clone, Default)]
pub struct FinderArrays {
    /// The number of the [`FinderKind`] in the file format.
    pub kind: u8,
    /// log2 of the number of ids in a bucket.
    pub shift: u32,
    /// First id of the bitmap or of the buckets, folded for folded kinds.
    pub first: u32,
    /// Folded id of the first tail id, for folded kinds.
    pub fold: u32,
    /// Intervals of keys.
    pub intervals: Vec<Interval>,
    /// The blocks of the bitmap.
    pub blocks: Vec<RankBlock>,
    /// Number of the first key of each bucket, and the number of keys.
    pub buckets: Vec<u32>,
    /// The keys, ascending. Written to the segment's file only for directories.
    pub keys: Vec<u32>,
}

/// The folded id of the first tail id for a base with this many vertices.
#[must_use]
pub fn fold_behind(vertices: u32) -> u32 {
    vertices.saturating_add(1).next_multiple_of(64)
}

/// Chooses and builds the finder of ascending, distinct `keys`. O(keys + range / 64).
pub(crate) fn build(keys: Vec<u32>) -> FinderArrays {
    build_folded(keys, None)
}

/// As [`build`]. With `fold`, there may be keys in both the base and the tail, and ids of the tail are folded to start
/// at `fold`.
#[must_use]
pub fn build_folded(keys: Vec<u32>, fold: Option<u32>) -> FinderArrays {
    let (Some(&first), Some(&last)) = (keys.first(), keys.last()) else {
        return FinderArrays {
            kind: FinderKind::Empty as u8,
            ..Default::default()
        };
    };
    debug_assert!(first >= FIRST_KEY && keys.windows(2).all(|w| w[0] < w[1]));
    let runs = 1 + keys.windows(2).filter(|w| w[0] + 1 != w[1]).count();
    if runs <= MAX_INTERVALS {
        let mut intervals: Vec<Interval> = Vec::with_capacity(runs);
        for (i, &k) in keys.iter().enumerate() {
            match intervals.last_mut() {
                Some(r) if r.end == k => r.end += 1,
                _ => intervals.push(Interval {
                    start: k,
                    end: k + 1,
                    base: i as u32,
                }),
            }
        }
        return FinderArrays {
            kind: FinderKind::Intervals as u8,
            first,
            intervals,
            ..Default::default()
        };
    }
    match fold.filter(|_| first < FIRST_TAIL_ID && last >= FIRST_TAIL_ID) {
        Some(fold) => FinderArrays {
            fold,
            ..table(
                keys,
                |v| folded(v, fold),
                [FinderKind::FoldedBitmap, FinderKind::FoldedDirectory],
            )
        },
        None => table(keys, |v| v, [FinderKind::Bitmap, FinderKind::Directory]),
    }
}

/// Builds a bitmap if keys are dense, otherwise a directory. `at` folds a key (it must preserve the order), and `kinds`
/// are the kinds of the bitmap and of the directory.
fn table(keys: Vec<u32>, at: impl Fn(u32) -> u32, kinds: [FinderKind; 2]) -> FinderArrays {
    let [first, last] = [keys.first(), keys.last()].map(|k| at(k.copied().unwrap_or(0)));
    let base = first & !63;
    let range = u64::from(last - base) + 1;
    if range.div_ceil(64) * 16 <= keys.len() as u64 * 4 {
        let mut blocks = vec![
            RankBlock {
                bits: 0,
                rank: 0,
                pad: 0
            };
            range.div_ceil(64) as usize
        ];
        for &k in &keys {
            let d = at(k) - base;
            blocks[(d / 64) as usize].bits |= 1 << (d % 64);
        }
        let mut rank = 0;
        for b in &mut blocks {
            b.rank = rank;
            rank += b.bits.count_ones();
        }
        return FinderArrays {
            kind: kinds[0] as u8,
            first: base,
            blocks,
            ..Default::default()
        };
    }
    let (shift, buckets) = buckets_of(&keys, first, last, at);
    FinderArrays {
        kind: kinds[1] as u8,
        shift,
        first,
        buckets,
        keys,
        ..Default::default()
    }
}

/// The shift of a directory, and the number of the first key of each bucket. `first` and `last` are the first and last
/// key, mapped by `at`.
fn buckets_of(keys: &[u32], first: u32, last: u32, at: impl Fn(u32) -> u32) -> (u32, Vec<u32>) {
    let width = u64::from(last - first) + 1;
    let wanted = (keys.len() as u64 / u64::from(BUCKET_KEYS)).max(1);
    // The smallest power of two of ids per bucket for which there are at most `wanted` buckets.
    let shift = (width.div_ceil(wanted))
        .next_power_of_two()
        .trailing_zeros()
        .min(31);
    let count = ((width - 1) >> shift) + 1;
    let mut buckets = vec![0u32; count as usize + 1];
    for &k in keys {
        buckets[((at(k) - first) >> shift) as usize + 1] += 1;
    }
    for i in 1..buckets.len() {
        buckets[i] += buckets[i - 1];
    }
    (shift, buckets)
}

impl FinderArrays {
    /// The finder over these arrays.
    #[must_use]
    pub fn view(&self) -> KeyFinder<'_> {
        match FinderKind::from_byte(self.kind) {
            Some(FinderKind::Intervals) => KeyFinder::Intervals(&self.intervals),
            Some(FinderKind::Bitmap) => KeyFinder::Bitmap {
                first: self.first,
                blocks: &self.blocks,
            },
            Some(FinderKind::Directory) => KeyFinder::Directory {
                first: self.first,
                shift: self.shift,
                buckets: &self.buckets,
                keys: &self.keys,
            },
            Some(FinderKind::FoldedBitmap) => KeyFinder::FoldedBitmap {
                fold: self.fold,
                first: self.first,
                blocks: &self.blocks,
            },
            Some(FinderKind::FoldedDirectory) => KeyFinder::FoldedDirectory {
                fold: self.fold,
                first: self.first,
                shift: self.shift,
                buckets: &self.buckets,
                keys: &self.keys,
            },
            Some(FinderKind::Empty) | None => KeyFinder::Empty,
        }
    }
}

#[cfg(test)]
mod tests;
