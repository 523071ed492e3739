//! Random segments, and their expected content, which is recorded without the segment's code.

use super::search_bytes;
use crate::random::XorShift;
use jindou_graph::Edges;
use jindou_graph::segment::{
    EdgeView, KeyFinder, NamedSegment, Patch, PatchBuilder, Segment, SegmentArrays, SegmentBuilder,
};
use jindou_model::Result;
use std::collections::{BTreeMap, BTreeSet};

/// The distribution of a segment's keys, which determines its finder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A few runs.
    Intervals,
    /// About every third id.
    Bitmap,
    /// Keys far apart.
    Directory,
}

/// A segment with its patch, and the lists that reading it must return.
pub struct Model {
    /// The distribution of its keys.
    pub shape: Shape,
    arrays: SegmentArrays,
    patch: Option<Patch>,
    /// Neighbours by key, after the patch.
    pub lists: BTreeMap<u32, Vec<u32>>,
    /// One more than the largest key.
    pub end: u32,
}

impl Model {
    /// A model with `keys` keys. If `one`, each has one neighbour; otherwise several, and one has many. With a patch if
    /// `patched`.
    pub fn new(
        r: &mut XorShift,
        shape: Shape,
        keys: u32,
        one: bool,
        patched: bool,
    ) -> Result<Self> {
        let mut key = 1 + r.below(100);
        let mut truth: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for i in 0..keys {
            let degree = match (one, i == keys / 2) {
                (true, _) => 1,
                // Longer than a tile.
                (false, true) => 2500,
                (false, false) => 1 + r.below(4) * r.below(4),
            };
            let list = truth.entry(key).or_default();
            while list.len() < degree as usize {
                list.insert(1 + r.below(4000));
            }
            key += match shape {
                Shape::Intervals => 1 + if i % (keys / 5 + 1) == 1 { 50 } else { 0 },
                Shape::Bitmap => 1 + r.below(5),
                Shape::Directory => 20 + r.below(300),
            };
        }
        let mut b = SegmentBuilder::new(false);
        for (&k, list) in &truth {
            for &n in list {
                b.push(k, n, 0);
            }
        }
        let arrays = b.finish()?;
        let patch = patched.then(|| Self::edit(r, &mut truth, key));
        let lists = truth
            .into_iter()
            .filter(|l| !l.1.is_empty())
            .map(|(k, l)| (k, l.into_iter().collect()))
            .collect();
        Ok(Self {
            shape,
            arrays,
            patch,
            lists,
            end: key + 50,
        })
    }

    /// Makes a patch of random edits, and applies them to `truth`.
    fn edit(r: &mut XorShift, truth: &mut BTreeMap<u32, BTreeSet<u32>>, end: u32) -> Patch {
        let mut b = PatchBuilder::default();
        let mut touched = BTreeSet::new();
        let keys: Vec<u32> = truth.keys().copied().collect();
        for i in 0..keys.len() / 6 + 3 {
            let key = if i % 4 == 0 {
                1 + r.below(end)
            } else {
                keys[r.below(keys.len() as u32) as usize]
            };
            let list = truth.entry(key).or_default();
            let nth = r.below(3) as usize;
            let (neighbour, added) = match list.iter().nth(nth) {
                Some(&n) if i % 3 != 0 => (n, false),
                _ => (1 + r.below(4000), true),
            };
            // A patch has at most one edit per edge, so a second one is skipped.
            if added == list.contains(&neighbour) || !touched.insert((key, neighbour)) {
                continue;
            }
            b.push(key, neighbour, 0, added);
            if added {
                list.insert(neighbour);
            } else {
                list.remove(&neighbour);
            }
        }
        b.finish()
    }

    /// The edges as the store shows them.
    #[must_use]
    pub fn view(&self) -> Edges<'_> {
        EdgeView::new(self.arrays.view(), NamedSegment::EMPTY, self.patch.as_ref()).into()
    }

    /// The segment without its patch.
    #[must_use]
    pub fn segment(&self) -> Segment<'_> {
        self.arrays.view()
    }

    /// The keys of the segment without its patch, ascending.
    #[must_use]
    pub fn base_keys(&self) -> Vec<u32> {
        let s = self.arrays.view();
        let mut out = Vec::new();
        s.keys_into(0, s.key_count, &mut out);
        out
    }

    /// The neighbours of a vertex.
    #[must_use]
    pub fn list(&self, v: u32) -> &[u32] {
        self.lists.get(&v).map_or(&[], Vec::as_slice)
    }

    /// A random vertex, usually a key.
    pub fn probe(&self, r: &mut XorShift) -> u32 {
        r.below(self.end)
    }

    /// The bytes read to find the key `v`, and its number if it is a key of the segment without its patch.
    pub fn find_bytes(&self, v: u32) -> (u64, Option<u32>) {
        let s = self.arrays.view();
        let k = s.finder.find(v);
        let bytes = match s.finder {
            KeyFinder::Empty | KeyFinder::Intervals(_) => 0,
            // The device gets them converted to directories; this model makes none.
            KeyFinder::FoldedBitmap { .. } | KeyFinder::FoldedDirectory { .. } => 0,
            KeyFinder::Bitmap { first, blocks } => {
                16 * u64::from(v >= first && ((v - first) / 64) < blocks.len() as u32)
            }
            KeyFinder::Directory {
                first,
                shift,
                buckets,
                ..
            } => {
                let bucket = (v.wrapping_sub(first) >> shift) as usize;
                if v < first || bucket + 1 >= buckets.len() {
                    0
                } else {
                    8 + search_bytes((buckets[bucket + 1] - buckets[bucket]) as usize)
                }
            }
        };
        (bytes, (k < s.key_count).then_some(k))
    }

    /// The bytes read to look up the list of `v`.
    pub fn lookup_bytes(&self, v: u32) -> u64 {
        let mut bytes = 0;
        if let Some(p) = &self.patch {
            bytes += 8;
            if p.is_dirty(v) {
                bytes += search_bytes(p.keys().len());
                if p.keys().binary_search(&v).is_ok() {
                    return bytes + 8;
                }
            }
        }
        let (find, key) = self.find_bytes(v);
        let offsets = self.arrays.view().offsets.is_some() && key.is_some();
        bytes + find + 8 * u64::from(offsets)
    }
}
