//! Segments: all edges of one predicate in one direction, in compressed-sparse-row form (predicate-based grouping, ATC
//! '18 §4.2).
//!
//! A lookup has two parts. The [`KeyFinder`] maps a vertex to the number of its key; it has several forms, and a
//! segment uses the cheapest one that suits its keys. The offsets then give the key's neighbours:
//!
//! ```text
//! vertex ──finder──► key number k ──offsets[k], offsets[k+1]──► neighbours[a..b]   (sorted)
//!                                └─ no offsets: every key has one neighbour ──► neighbours[k]
//! ```
//!
//! Segments of named graphs have the same form, but with a graph next to each neighbour, and are sorted by (neighbour,
//! graph) and compressed to fewer bits ([`NamedSegment`]). Segments of the default graph store no graphs.

mod access;
mod build;
mod derived;
mod dirty;
mod finder;
mod merged_lists;
mod packed;
mod patch;
mod ranks;
mod sorted;
mod tree;
mod view;
#[cfg(test)]
mod view_tests;

pub use build::{SegmentArrays, SegmentBuilder};
pub use dirty::Dirty;
pub use finder::{
    FinderArrays, Interval, KeyFinder, NO_KEY, PlainDirectory, RankBlock, build_folded,
    fold_behind, folded,
};
pub use packed::{
    BitWriter, NamedList, NamedSegment, OffsetBlock, PackedEdges, Packing, SLACK, pack_offsets,
};
pub use patch::{KeyChange, Patch, PatchBuilder, PatchChange, PatchFinger};
pub(crate) use ranks::distinct_keys;
pub(crate) use sorted::merge_runs;
pub use tree::{CowTree, Finger, Slices};
pub(crate) use view::merge_edges;
pub use view::{EdgeView, GraphScope};

use std::ops::Range;

use jindou_model::NO_VERTEX;
use jindou_model::mapped::contradicts;

/// The data structure in which a segment looks keys up. The numbers are part of the file format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum FinderKind {
    /// No keys.
    Empty = 0,
    /// Few intervals of keys, which are searched; no cache miss outside the interval table.
    Intervals = 1,
    /// Dense keys: one bit per id from the first to the last key, next to counts of earlier bits; one cache miss.
    Bitmap = 2,
    /// Sparse keys: a sorted array, and a directory that divides it into buckets; two cache misses.
    Directory = 3,
    /// A bitmap in which ids of the tail are moved to follow those of the base, so that it does not span the gap
    /// between.
    FoldedBitmap = 4,
    /// A directory in which ids of the tail are moved to follow those of the base.
    FoldedDirectory = 5,
}

impl FinderKind {
    /// The kind with a number in the file format; `None` for other numbers.
    #[must_use]
    pub fn from_byte(b: u8) -> Option<Self> {
        Some(match b {
            0 => Self::Empty,
            1 => Self::Intervals,
            2 => Self::Bitmap,
            3 => Self::Directory,
            4 => Self::FoldedBitmap,
            5 => Self::FoldedDirectory,
            _ => return None,
        })
    }

    /// Bytes per entry of the table in which keys are looked up: of an interval, a block of the bitmap, or a bucket.
    #[must_use]
    pub fn entry_bytes(self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Intervals => 12,
            Self::Bitmap | Self::FoldedBitmap => 16,
            Self::Directory | Self::FoldedDirectory => 4,
        }
    }

    /// The name in the output of `jindou info`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Intervals => "intervals",
            Self::Bitmap => "bitmap",
            Self::Directory => "directory",
            Self::FoldedBitmap => "folded bitmap",
            Self::FoldedDirectory => "folded directory",
        }
    }
}

/// A segment of the default graph, borrowed from mapped, heap or device-visible memory. Copying a `Segment` is cheap.
/// Views are created once per query step, never once per row.
///
/// The content may be damaged: reading then returns wrong or empty lists, but never out-of-bounds memory.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Finds keys.
    pub finder: KeyFinder<'a>,
    /// Number of keys.
    pub key_count: u32,
    /// `key_count + 1` offsets into `neighbours`; `None` when every key has exactly one neighbour.
    pub offsets: Option<&'a [u32]>,
    /// Neighbour lists of all keys in key order, each sorted ascending.
    pub neighbours: &'a [u32],
}

impl<'a> Segment<'a> {
    /// A segment without edges.
    pub const EMPTY: Segment<'static> = Segment {
        finder: KeyFinder::Empty,
        key_count: 0,
        offsets: None,
        neighbours: &[],
    };

    /// Number of edges.
    #[inline]
    #[must_use]
    pub fn edge_count(&self) -> u64 {
        self.neighbours.len() as u64
    }

    /// Returns true if there are no edges.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.neighbours.is_empty()
    }

    /// Range of the neighbours of key number `k` in `neighbours`. Empty for `NO_KEY`, and for invalid offsets, which
    /// mark the file as damaged.
    #[inline]
    #[must_use]
    pub fn range(&self, k: u32) -> (usize, usize) {
        let k = k as usize;
        match self.offsets {
            None => {
                if k < self.neighbours.len() {
                    (k, k + 1)
                } else {
                    self.no_range(k)
                }
            }
            Some(offsets) => match offsets.get(k..).and_then(|o| o.first_chunk::<2>()) {
                Some(&[a, b]) if a <= b && b as usize <= self.neighbours.len() => {
                    (a as usize, b as usize)
                }
                _ => self.no_range(k),
            },
        }
    }

    #[inline]
    fn no_range(&self, k: usize) -> (usize, usize) {
        if k != NO_KEY as usize {
            contradicts(self.neighbours);
        }
        (0, 0)
    }

    /// The neighbours of key number `k`, sorted.
    #[inline]
    #[must_use]
    pub fn list(&self, k: u32) -> &'a [u32] {
        let (a, b) = self.range(k);
        &self.neighbours[a..b]
    }

    /// The neighbours of a vertex, sorted; empty if it is not a key.
    #[inline]
    #[must_use]
    pub fn neighbours_of(&self, v: u32) -> &'a [u32] {
        self.list(self.finder.find(v))
    }

    /// Returns true if the edge exists. O(log degree).
    #[must_use]
    pub fn contains(&self, key: u32, neighbour: u32) -> bool {
        self.neighbours_of(key).binary_search(&neighbour).is_ok()
    }

    /// Prefetches the cache lines that [`Self::list`] of `k` reads first.
    #[inline]
    pub fn prefetch_list(&self, k: u32) {
        match self.offsets {
            None => prefetch(self.neighbours, k as usize),
            Some(offsets) => prefetch(offsets, k as usize),
        }
    }

    /// Appends the keys with numbers `from .. to` to `out`, ascending.
    #[inline]
    pub fn keys_into(&self, from: u32, to: u32, out: &mut Vec<u32>) {
        let (to, before) = (to.min(self.key_count), out.len());
        self.finder.keys_into(from, to, out);
        if out.len() - before != to.saturating_sub(from) as usize {
            contradicts(self.neighbours);
        }
    }
}

/// Common interface of both types of segments, for loading and checking, which read whole segments.
pub trait KeyRows {
    /// The key finder.
    fn finder(&self) -> KeyFinder<'_>;
    /// Number of keys.
    fn key_count(&self) -> u32;
    /// Number of edges.
    fn edges(&self) -> u64;
    /// The range of the edges of key number `k`; empty for invalid offsets.
    fn range_of(&self, k: u32) -> Range<u64>;
    /// Neighbour and graph (0 for the default graph) of edge `i`; zeros if there is no such edge.
    fn edge(&self, i: u64) -> (u32, u32);

    /// Number of keys in the interval `[from, to)` of ids, and number of their edges. O(log keys).
    fn count_between(&self, [from, to]: [u32; 2]) -> [u64; 2] {
        let keys = self.key_count();
        let [a, b] = [from, to].map(|v| self.finder().rank(v).min(keys));
        let start = |k: u32| match k < keys {
            true => self.range_of(k).start,
            false => self.edges(),
        };
        [
            u64::from(b.saturating_sub(a)),
            start(b).saturating_sub(start(a)),
        ]
    }

    /// Calls `f` with the number of each key and the key; returns false if the finder does not have all keys.
    fn for_each_key(&self, mut f: impl FnMut(u32, u32)) -> bool {
        /// Number of keys enumerated per call of the finder.
        const PART: u32 = 1 << 16;
        let mut keys = Vec::new();
        let mut whole = true;
        for from in (0..self.key_count()).step_by(PART as usize) {
            let to = from.saturating_add(PART).min(self.key_count());
            keys.clear();
            self.finder().keys_into(from, to, &mut keys);
            whole &= keys.len() as u32 == to - from;
            for (k, &key) in (from..).zip(&keys) {
                f(k, key);
            }
        }
        whole
    }
}

impl KeyRows for Segment<'_> {
    #[inline]
    fn finder(&self) -> KeyFinder<'_> {
        self.finder
    }

    #[inline]
    fn key_count(&self) -> u32 {
        self.key_count
    }

    #[inline]
    fn edges(&self) -> u64 {
        self.edge_count()
    }

    #[inline]
    fn range_of(&self, k: u32) -> Range<u64> {
        let (a, b) = self.range(k);
        a as u64..b as u64
    }

    #[inline]
    fn edge(&self, i: u64) -> (u32, u32) {
        (self.neighbours.get(i as usize).copied().unwrap_or(0), 0)
    }
}

impl KeyRows for NamedSegment<'_> {
    #[inline]
    fn finder(&self) -> KeyFinder<'_> {
        self.finder
    }

    #[inline]
    fn key_count(&self) -> u32 {
        self.key_count
    }

    #[inline]
    fn edges(&self) -> u64 {
        self.edge_count()
    }

    #[inline]
    fn range_of(&self, k: u32) -> Range<u64> {
        self.range(k)
    }

    #[inline]
    fn edge(&self, i: u64) -> (u32, u32) {
        (self.neighbour(i), self.graph(i))
    }
}

/// Asks the processor to prefetch `slice[at]`; does nothing out of bounds, or if the processor has no such instruction.
#[inline(always)]
pub fn prefetch<T>(slice: &[T], at: usize) {
    // Prefetching an invalid address is harmless, but an unmapped one costs a walk of the page table.
    if at < slice.len() {
        jindou_model::memory::prefetch_at(slice, at);
    }
}

/// The smallest id that can be a key.
pub(crate) const FIRST_KEY: u32 = NO_VERTEX + 1;
