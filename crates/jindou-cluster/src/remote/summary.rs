//! What a reader keeps of a segment.
//!
//! The server makes the summaries of one direction once, in words that others may read, and one
//! [`SegmentEntry`] a predicate that says where they lie. A summary is:
//!
//! ```text
//! intervals  n, then n × (start | end << 32, key number of start)      key sets of a few runs
//!   or       bitmap: first id, n, then n × (64 bits, keys before)       at least one id in 4 of the range
//!   or       keys, as a Monotone                                        all other key sets
//! offsets    as a Monotone                                              unless every key has one neighbour
//! ```

use super::files::StoreFiles;
use super::monotone::{self, Shape};
use bytemuck::{Pod, Zeroable};
use jindou_model::{Direction, PredicateId};
use jindou_store::Snapshot;
use jindou_store::segment::{Interval, KeyFinder, Segment, prefetch};

/// The reader's table of contents: one a predicate and direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SegmentEntry {
    /// Byte offset of the neighbours in the segment file.
    pub neighbours_at: u64,
    /// Number of neighbours.
    pub edges: u64,
    /// First word of the summary.
    pub summary_at: u64,
    /// Words of the summary.
    pub summary_words: u64,
    /// xxh3 of the summary.
    pub summary_hash: u64,
    /// Number of keys.
    pub keys: u32,
    /// Longest neighbour list.
    pub max_degree: u32,
    /// 1: intervals, 2: bitmap, 3: keys.
    pub finder: u32,
    /// 1 if there are offsets.
    pub offsets: u32,
    /// Edges of named graphs, at most `u32::MAX`.
    pub named_edges: u32,
    /// Smallest key.
    pub first_key: u32,
    /// Largest key.
    pub last_key: u32,
    /// Zero.
    pub zero: u32,
}

const INTERVALS: u32 = 1;
const BITMAP: u32 = 2;
const KEYS: u32 = 3;

/// Ids a key up to which a bitmap is kept: 8 bits a key at most, where a [`monotone`] takes 4, but found by
/// one look instead of three.
const DENSE: u64 = 4;

/// Entries and summaries of one direction.
#[derive(Debug, Default)]
pub struct Summaries {
    /// By dense predicate id.
    pub entries: Vec<SegmentEntry>,
    /// All summaries, one behind the other.
    pub words: Vec<u64>,
}

impl Summaries {
    /// Summarises the default graph's segments. O(keys); 8 bytes a key of the largest segment beside the
    /// result.
    #[must_use]
    pub fn of(files: &StoreFiles, snapshot: &Snapshot, direction: Direction) -> Self {
        let file = files.file(direction);
        let mut all = Self::default();
        for p in 0..snapshot.predicate_count() {
            let named = snapshot.edges(PredicateId(p), direction).named.edge_count();
            let mut entry = SegmentEntry {
                named_edges: u32::try_from(named).unwrap_or(u32::MAX),
                ..SegmentEntry::default()
            };
            let segment = file.segment(p);
            if let Some(record) = file.records().get(p as usize)
                && !segment.is_empty()
            {
                let at = all.words.len();
                entry.finder = push_finder(&segment, &mut all.words);
                if let Some(offsets) = segment.offsets {
                    monotone::build(offsets, &mut all.words);
                    entry.offsets = 1;
                }
                entry.neighbours_at = record.neighbours_at;
                entry.edges = segment.edge_count();
                entry.keys = segment.key_count;
                let mut ends = Vec::new();
                segment.keys_into(0, 1, &mut ends);
                segment.keys_into(segment.key_count.saturating_sub(1), u32::MAX, &mut ends);
                entry.first_key = ends.first().copied().unwrap_or(0);
                entry.last_key = ends.last().copied().unwrap_or(0);
                entry.max_degree = record.max_degree;
                entry.summary_at = at as u64;
                entry.summary_words = (all.words.len() - at) as u64;
                entry.summary_hash = hash(all.words.get(at..).unwrap_or(&[]));
            }
            all.entries.push(entry);
        }
        all
    }
}

fn push_finder(segment: &Segment<'_>, words: &mut Vec<u64>) -> u32 {
    if let KeyFinder::Intervals(runs) = segment.finder {
        words.push(runs.len() as u64);
        for r in runs {
            words.push(u64::from(r.start) | u64::from(r.end) << 32);
            words.push(u64::from(r.base));
        }
        return INTERVALS;
    }
    if let KeyFinder::Bitmap { first, blocks } = segment.finder
        && blocks.len() as u64 * 64 <= DENSE * u64::from(segment.key_count)
    {
        words.extend([u64::from(first), blocks.len() as u64]);
        words.extend(blocks.iter().flat_map(|b| [b.bits, u64::from(b.rank)]));
        return BITMAP;
    }
    if let KeyFinder::Directory { keys, .. } = segment.finder {
        monotone::build(keys, words);
    } else {
        let mut keys = Vec::with_capacity(segment.key_count as usize);
        segment.keys_into(0, segment.key_count, &mut keys);
        monotone::build(&keys, words);
    }
    KEYS
}

fn hash(words: &[u64]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytemuck::cast_slice(words))
}

/// A segment's summary in the reader's memory.
#[derive(Debug)]
pub struct Summary {
    words: Box<[u64]>,
    finder: Finder,
    offsets: Option<Shape>,
    edges: u64,
    neighbours_at: u64,
}

#[derive(Debug)]
enum Finder {
    Intervals(Box<[Interval]>),
    /// First id; the blocks are the words from the third on, two a block.
    Bitmap(u32, usize),
    Keys(Shape),
}

impl Summary {
    /// Takes over the words that `entry` speaks of; `None` if they are not what it says.
    #[must_use]
    pub fn parse(entry: &SegmentEntry, words: Box<[u64]>) -> Option<Self> {
        if words.len() as u64 != entry.summary_words || hash(&words) != entry.summary_hash {
            return None;
        }
        let (finder, at) = match entry.finder {
            INTERVALS => {
                let (&n, rest) = words.split_first()?;
                let n = usize::try_from(n).ok()?;
                let runs = rest.get(..n.checked_mul(2)?)?.chunks_exact(2);
                let runs = runs.map(|r| Interval {
                    start: r[0] as u32,
                    end: (r[0] >> 32) as u32,
                    base: r[1] as u32,
                });
                (Finder::Intervals(runs.collect()), 1 + 2 * n)
            }
            BITMAP => {
                let &[first, n] = words.first_chunk::<2>()?;
                let at = usize::try_from(n).ok()?.checked_mul(2)?.checked_add(2)?;
                words.get(..at)?;
                (Finder::Bitmap(u32::try_from(first).ok()?, at), at)
            }
            KEYS => {
                let (shape, at) = Shape::parse(&words, 0)?;
                (Finder::Keys(shape), at)
            }
            _ => return None,
        };
        let offsets = match entry.offsets {
            0 => None,
            _ => Some(Shape::parse(&words, at)?.0),
        };
        Some(Self {
            words,
            finder,
            offsets,
            edges: entry.edges,
            neighbours_at: entry.neighbours_at,
        })
    }

    /// Where a vertex' neighbours lie: byte offset in the segment file and number of neighbours; `None` if it
    /// is no key. No memory but the summary is touched.
    #[inline]
    #[must_use]
    pub fn locate(&self, v: u32) -> Option<(u64, u32)> {
        self.range(self.find(v)?)
    }

    /// [`Self::locate`] of several vertices, with their cache misses in flight together: appended to `out`.
    pub fn locate_many(&self, vertices: &[u32], out: &mut Vec<Option<(u64, u32)>>) {
        /// Lookups between a prefetch and its use.
        const AHEAD: usize = 16;
        let offsets = self.offsets.as_ref().map(|shape| shape.over(&self.words));
        let mut numbers = Vec::with_capacity(vertices.len());
        for (i, &v) in vertices.iter().enumerate() {
            if let Some(&w) = vertices.get(i + AHEAD) {
                self.prefetch(w);
            }
            let number = self.find(v);
            if let (Some(k), Some(o)) = (number, &offsets) {
                o.prefetch(k);
            }
            numbers.push(number);
        }
        if let Some(o) = &offsets {
            for &k in numbers.iter().flatten() {
                o.prefetch_bits(k);
            }
        }
        out.extend(numbers.into_iter().map(|k| self.range(k?)));
    }

    #[inline]
    fn prefetch(&self, v: u32) {
        if let Finder::Bitmap(first, _) = self.finder {
            prefetch(&self.words, 2 + 2 * (v.wrapping_sub(first) / 64) as usize);
        }
    }

    /// The number of a key.
    #[inline]
    fn find(&self, v: u32) -> Option<u64> {
        match &self.finder {
            Finder::Intervals(runs) => {
                let run = runs.iter().find(|r| v >= r.start && v < r.end)?;
                Some(u64::from(run.base) + u64::from(v - run.start))
            }
            Finder::Bitmap(first, end) => {
                let d = v.checked_sub(*first)?;
                let at = 2 + 2 * (d / 64) as usize;
                let &[bits, rank] = self.words.get(at..*end)?.first_chunk::<2>()?;
                let bit = 1u64 << (d % 64);
                let before = u64::from((bits & (bit - 1)).count_ones());
                (bits & bit != 0).then(|| rank.wrapping_add(before))
            }
            Finder::Keys(shape) => shape.over(&self.words).find(u64::from(v)),
        }
    }

    /// Where the list of a key lies.
    #[inline]
    fn range(&self, k: u64) -> Option<(u64, u32)> {
        let (a, b) = match &self.offsets {
            None => (k, k.wrapping_add(1)),
            Some(shape) => shape.over(&self.words).pair(k)?,
        };
        if a > b || b > self.edges {
            return None;
        }
        Some((
            self.neighbours_at.wrapping_add(a * 4),
            u32::try_from(b - a).ok()?,
        ))
    }

    /// Bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        size_of_val(&*self.words) as u64
    }
}
