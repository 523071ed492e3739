//! Summaries of segments, which readers keep in memory.
//!
//! The server encodes a summary when a reader requests it: a [`SegmentEntry`], followed by 64-bit words. The words
//! depend on the kind of summary:
//!
//! ```text
//! intervals  n, n × (start | end << 32, key number of start); unless every   key sets of a few runs
//!            key has one neighbour: an entry per 64 keys, blocks
//! bitmap     first id, n, n × (64 bits, entry), blocks                       at least one id in 4 of the range
//! buckets    first id | log2 of ids per bucket << 32, n, n × entry, blocks   all other key sets
//!
//! entry      base | block << 32
//! ```
//!
//! In an entry, `base` is the number of edges before the first key of the entry, and `block` is the position of a block
//! ([`blocks`]) with the bounds of the lists. The last entry is followed by another one with the number of all edges.
//! So a lookup reads the summary's struct, an entry and a block: its cost is that of its few cache misses. (Elias–Fano
//! offsets and keys take two thirds of the space on LUBM and 0.9 of it on the ugly graph, but cost four to six
//! dependent misses.)

use super::blocks::{self, BitString, NONE};
use bytemuck::{Pod, Zeroable};
use jindou_graph::segment::{KeyFinder, Segment, prefetch};
use jindou_model::{Direction, PredicateId};
use jindou_store::Base;

/// Properties of a segment that a reader needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SegmentEntry {
    /// Byte offset of the neighbours in the segment file.
    pub neighbours_at: u64,
    /// Number of neighbours.
    pub edges: u64,
    /// Number of the segment file.
    pub file: u32,
    /// Number of keys.
    pub keys: u32,
    /// Kind of summary. 1: intervals, 2: bitmap, 3: buckets; 0: no summary, because the segment has no edges or is too
    /// large. Without a summary, lists are requested by message.
    pub finder: u32,
    /// 1 if the intervals are followed by entries and blocks; 0 if every key has one neighbour.
    pub offsets: u32,
    /// Number of keys with edges in named graphs. The summary does not cover these edges.
    pub named_keys: u32,
    /// Padding, always zero.
    pub zero: u32,
}

impl SegmentEntry {
    /// Decodes the bytes that [`summarise`] encodes; `None` if they are invalid.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<(Self, Box<[u64]>)> {
        let (entry, words) = bytes.split_at_checked(size_of::<Self>())?;
        let words = words.len().is_multiple_of(8).then_some(words)?;
        let words: Vec<u64> = bytemuck::pod_collect_to_vec(words);
        Some((bytemuck::pod_read_unaligned(entry), words.into()))
    }
}

const INTERVALS: u32 = 1;
const BITMAP: u32 = 2;
const BUCKETS: u32 = 3;

/// Largest number of ids per key for which a bitmap is used; it then takes at most 8 bits per key.
const DENSE: u64 = 4;
/// Largest mean number of keys per bucket. More keys per bucket make the directory smaller, so that it stays in the
/// caches. A block may have several cache lines, because they are fetched together.
const BUCKET: u64 = 48;
/// Number of keys per entry after intervals.
const GROUP: u32 = 64;

/// Encodes the entry and the summary of a base's segment (default graph). O(keys). Needs 8 bytes per key in addition to
/// the result.
#[must_use]
pub fn summarise(base: &Base, p: PredicateId, direction: Direction) -> Vec<u8> {
    let number = base.segment_file_of(p);
    let mut entry = SegmentEntry {
        file: number as u32,
        named_keys: base.named_keys(p, direction),
        ..SegmentEntry::default()
    };
    let mut words = Vec::new();
    if let Some(file) = base.segment_file(number, direction)
        && let Some(record) = file.records().get(p.0 as usize)
    {
        let segment = file.segment(p.0);
        entry.neighbours_at = record.neighbours_at;
        entry.edges = segment.edge_count();
        entry.keys = segment.key_count;
        if !segment.is_empty() {
            entry.finder = push_summary(&segment, &mut words).unwrap_or(0);
        }
        if entry.finder == 0 {
            words.clear();
        }
        entry.offsets = u32::from(entry.finder == INTERVALS && segment.offsets.is_some());
    }
    let mut out = bytemuck::bytes_of(&entry).to_vec();
    out.extend_from_slice(bytemuck::cast_slice(&words));
    out
}

/// Appends a segment's summary. Returns its kind; `None` if its blocks take more than 16 gigabytes.
fn push_summary(segment: &Segment<'_>, words: &mut Vec<u64>) -> Option<u32> {
    // Bounds of the lists of keys number `from` up to, not including, `to`.
    let bounds = |from: usize, to: usize| match segment.offsets {
        Some(offsets) => offsets.get(from..=to).unwrap_or(&[]).to_vec(),
        None => (from as u32..=to as u32).collect(),
    };
    let mut writer = BitString::default();
    let end = u64::from(u32::try_from(segment.edge_count()).ok()?) | u64::from(NONE) << 32;
    if let KeyFinder::Intervals(runs) = segment.finder {
        words.push(runs.len() as u64);
        for r in runs {
            words.push(u64::from(r.start) | u64::from(r.end) << 32);
            words.push(u64::from(r.base));
        }
        if segment.offsets.is_some() {
            for from in (0..segment.key_count).step_by(GROUP as usize) {
                let to = segment.key_count.min(from.saturating_add(GROUP));
                let ends = bounds(from as usize, to as usize);
                words.push(numbered(&mut writer, &ends)?);
            }
            words.push(end);
            words.extend(writer.finish());
        }
        return Some(INTERVALS);
    }
    if let KeyFinder::Bitmap { first, blocks } = segment.finder
        && blocks.len() as u64 * 64 <= DENSE * u64::from(segment.key_count)
    {
        words.extend([u64::from(first), blocks.len() as u64]);
        let mut from = 0;
        for b in blocks {
            let to = from + b.bits.count_ones() as usize;
            let ends = bounds(from, to);
            words.extend([b.bits, numbered(&mut writer, &ends)?]);
            from = to;
        }
        words.extend([0, end]);
        words.extend(writer.finish());
        return Some(BITMAP);
    }
    let mut all = Vec::new();
    let keys = match segment.finder {
        KeyFinder::Directory { keys, .. } | KeyFinder::FoldedDirectory { keys, .. } => keys,
        _ => {
            segment.keys_into(0, segment.key_count, &mut all);
            &all[..]
        }
    };
    let (first, last) = (keys.first().copied()?, keys.last().copied()?);
    let range = u64::from(last.saturating_sub(first)) + 1;
    let shift = (range * BUCKET / keys.len() as u64)
        .max(1)
        .ilog2()
        .min(blocks::MAX_LOW);
    let bucket_of = |key: u32| key.wrapping_sub(first) >> shift;
    let buckets = u64::from(bucket_of(last)) + 1;
    words.extend([u64::from(first) | u64::from(shift) << 32, buckets]);
    let mut from = 0;
    let mut lows = Vec::new();
    for bucket in 0..=bucket_of(last) {
        let of = keys.get(from..).unwrap_or(&[]);
        let of = of.iter().take_while(|&&k| bucket_of(k) == bucket);
        lows.clear();
        lows.extend(of.map(|k| k.wrapping_sub(first) & ((1 << shift) - 1)));
        let to = from + lows.len();
        let ends = bounds(from, to);
        let at = if lows.is_empty() {
            NONE
        } else {
            writer.block(&lows, shift, &ends)?
        };
        words.push(entry(&ends, at));
        from = to;
    }
    words.push(end);
    words.extend(writer.finish());
    Some(BUCKETS)
}

/// Appends a block without keys, for lists whose numbers are found by intervals or a bitmap, and returns its entry. If
/// every key has one neighbour, no block is needed.
fn numbered(writer: &mut BitString, bounds: &[u32]) -> Option<u64> {
    let single = match bounds {
        [a, .., z] => z.saturating_sub(*a) as usize == bounds.len() - 1,
        _ => true,
    };
    let at = if single {
        NONE
    } else {
        writer.block(&[], 0, bounds)?
    };
    Some(entry(bounds, at))
}

/// A directory entry: the first list's first bound, and the position of the block.
fn entry(bounds: &[u32], at: u32) -> u64 {
    u64::from(bounds.first().copied().unwrap_or(0)) | u64::from(at) << 32
}

/// A segment's summary in the reader's memory. Small enough that a hash table's entry fits into a cache line.
#[derive(Debug)]
pub struct SegmentSummary {
    words: Box<[u64]>,
    finder: SummaryFinder,
    edges: u64,
    neighbours_at: u64,
}

#[derive(Debug)]
enum SummaryFinder {
    /// Number of runs; number of entries, which is 0 if every key has one neighbour.
    Intervals(u32, u32),
    /// First id; number of entries, of two words each.
    Bitmap(u32, u32),
    /// First id; log2 of the ids per bucket; number of buckets.
    Buckets(u32, u32, u32),
}

/// The result of the first half of a lookup, which costs the first cache miss.
#[derive(Clone, Copy, Debug)]
struct HalfLookup {
    /// Number of edges before the block's first list.
    base: u64,
    /// Position of the block; [`NONE`] if the entry's lists have one neighbour each.
    block: u32,
    /// Number of the list in its block, or the low bits of its key.
    key: u32,
}

impl HalfLookup {
    /// The result for `key`, from the directory entry of its block.
    #[inline]
    fn from_entry(entry: u64, key: u32) -> Self {
        Self {
            base: entry & 0xFFFF_FFFF,
            block: (entry >> 32) as u32,
            key,
        }
    }
}

impl SegmentSummary {
    /// Decodes the words of a summary; `None` if they do not match `entry`.
    #[must_use]
    pub fn parse(entry: &SegmentEntry, words: Box<[u64]>) -> Option<Self> {
        let finder = match entry.finder {
            INTERVALS => {
                let n = u32::try_from(*words.first()?).ok()?;
                let groups = match entry.offsets {
                    0 => 0,
                    _ => entry.keys.div_ceil(GROUP) + 1,
                };
                words.get(..1 + 2 * n as usize + groups as usize)?;
                SummaryFinder::Intervals(n, groups)
            }
            BITMAP | BUCKETS => {
                let &[first, n] = words.first_chunk::<2>()?;
                let (id, shift, n) = (first as u32, (first >> 32) as u32, u32::try_from(n).ok()?);
                let entry_words = if entry.finder == BITMAP { 2 } else { 1 };
                // One more entry: the end.
                words.get(..2 + entry_words * (n as usize + 1))?;
                match entry.finder {
                    BITMAP => SummaryFinder::Bitmap(id, n),
                    _ if shift <= blocks::MAX_LOW => SummaryFinder::Buckets(id, shift, n),
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(Self {
            words,
            finder,
            edges: entry.edges,
            neighbours_at: entry.neighbours_at,
        })
    }

    /// Appends the location of each vertex's list to `out`: byte offset in the segment file and number of neighbours,
    /// or `None` for a vertex that is not a key. Reads only the summary. The cache misses of several lookups overlap.
    pub fn locate_many(&self, vertices: &[u32], out: &mut Vec<Option<(u64, u32)>>) {
        /// Number of lookups in flight.
        const FLIGHT: usize = 32;
        let mut halves = [None; FLIGHT];
        for group in vertices.chunks(FLIGHT) {
            group.iter().for_each(|&v| self.prefetch_entry(v));
            for (half, &v) in halves.iter_mut().zip(group) {
                *half = self.enter(v);
                half.iter().for_each(|h| self.prefetch_block(h));
            }
            out.extend(halves.iter().take(group.len()).map(|h| self.range((*h)?)));
        }
    }

    #[inline]
    fn prefetch_entry(&self, v: u32) {
        match self.finder {
            SummaryFinder::Intervals(..) => {}
            SummaryFinder::Bitmap(first, _) => {
                prefetch(&self.words, 2 + 2 * (v.wrapping_sub(first) / 64) as usize);
            }
            SummaryFinder::Buckets(first, shift, _) => {
                prefetch(&self.words, 2 + (v.wrapping_sub(first) >> shift) as usize);
            }
        }
    }

    #[inline]
    fn prefetch_block(&self, half: &HalfLookup) {
        if half.block != NONE {
            let at = self.blocks_at() + half.block as usize / 2;
            prefetch(&self.words, at);
            prefetch(&self.words, at + 8);
            prefetch(&self.words, at + 16);
        }
    }

    /// Index of the first word of the blocks.
    #[inline]
    fn blocks_at(&self) -> usize {
        match self.finder {
            SummaryFinder::Intervals(n, groups) => 1 + 2 * n as usize + groups as usize,
            SummaryFinder::Bitmap(_, n) => 2 + 2 * (n as usize + 1),
            SummaryFinder::Buckets(_, _, n) => 2 + n as usize + 1,
        }
    }

    /// First half of a lookup. `None` if `v` is already known not to be a key.
    #[inline]
    fn enter(&self, v: u32) -> Option<HalfLookup> {
        match self.finder {
            SummaryFinder::Intervals(n, groups) => {
                let runs = self.words.get(1..1 + 2 * n as usize)?.chunks_exact(2);
                let mut runs = runs.map(|r| (r[0] as u32, (r[0] >> 32) as u32, r[1] as u32));
                let (start, _, base) = runs.find(|&(start, end, _)| v >= start && v < end)?;
                let k = base.wrapping_add(v - start);
                if groups == 0 {
                    return Some(HalfLookup {
                        base: u64::from(k),
                        block: NONE,
                        key: 0,
                    });
                }
                let at = 1 + 2 * n as usize + (k / GROUP) as usize;
                Some(HalfLookup::from_entry(*self.words.get(at)?, k % GROUP))
            }
            SummaryFinder::Bitmap(first, n) => {
                let d = v.checked_sub(first)?;
                let i = d / 64;
                let at = 2 + 2 * i as usize;
                let &[bits, here] = self.words.get(at..)?.first_chunk()?;
                let bit = 1u64 << (d % 64);
                let before = (bits & (bit - 1)).count_ones();
                (i < n && bits & bit != 0).then(|| HalfLookup::from_entry(here, before))
            }
            SummaryFinder::Buckets(first, shift, n) => {
                let d = v.checked_sub(first)?;
                let i = d >> shift;
                let here = *self.words.get(2 + i as usize)?;
                let key = d & ((1 << shift) - 1);
                let empty = (here >> 32) as u32 == NONE;
                (i < n && !empty).then(|| HalfLookup::from_entry(here, key))
            }
        }
    }

    /// Second half of a lookup: byte offset and length of the list.
    #[inline]
    fn range(&self, half: HalfLookup) -> Option<(u64, u32)> {
        let words = self.words.get(self.blocks_at()..)?;
        let (a, b) = match self.finder {
            _ if half.block == NONE => (u64::from(half.key), u64::from(half.key) + 1),
            SummaryFinder::Buckets(_, shift, _) => {
                blocks::find(words, half.block, shift, half.key)?
            }
            _ => blocks::nth(words, half.block, half.key)?,
        };
        let (a, b) = (half.base + a, half.base + b);
        if a > b || b > self.edges {
            return None;
        }
        Some((
            self.neighbours_at.wrapping_add(a * 4),
            u32::try_from(b - a).ok()?,
        ))
    }

    /// Heap memory of the summary in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        size_of_val(&*self.words) as u64
    }
}
