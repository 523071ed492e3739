//! The merged lists of all keys that a patch touches, stored as a small segment, so that readers of one version of a
//! patch need not merge a list repeatedly.
//!
//! Building it costs about as much as merging each touched key's list once, so it is built when readers have merged
//! this number of lists ([`EdgeView::note_merged`]). The work is then at most twice the least possible.

use super::finder::{FinderArrays, build_folded, fold_behind};
use super::{EdgeView, NO_KEY, Patch, PatchFinger};
use jindou_model::FIRST_TAIL_ID;

/// Lists longer than this number of ids are not stored but merged on request: they are few, and take much memory.
const LONG: usize = 1 << 16;

/// Merged lists of all keys that a patch of the default graph touches.
#[derive(Debug, Default)]
pub(super) struct MergedLists {
    finder: FinderArrays,
    offsets: Vec<u32>,
    neighbours: Vec<u32>,
    /// Numbers of keys whose lists are not stored here, ascending.
    long: Vec<u32>,
    /// The last key that is not in the tail. The finder maps keys of the tail to the ids after this one, so it must not
    /// look up vertices of the base after it.
    last: u32,
}

/// Result of looking a key up in merged lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MergedLookup<'a> {
    /// The patch has no edit of this key in the default graph: the base's list is valid.
    Untouched,
    /// The merged list.
    List(&'a [u32]),
    /// The list is not stored: the caller must merge it.
    Unknown,
}

impl MergedLists {
    /// Merges the lists of all keys that the view's patch touches, or copies them from an earlier version where they
    /// are valid; `None` if they have more than `room` ids. O(edits + lengths of the lists).
    pub fn new(view: &EdgeView<'_>, patch: &Patch, room: usize) -> Option<Self> {
        let alone = EdgeView {
            patch: Some(patch),
            ..*view
        };
        let mut it = Self {
            offsets: vec![0],
            ..Self::default()
        };
        let mut keys = Vec::new();
        let mut at = PatchFinger::default();
        for key in patch.default_keys() {
            if let MergedLookup::List(list) = patch.derived().find(key) {
                it.neighbours.extend_from_slice(list);
            } else {
                let (added, removed) = patch.degree_change(key);
                let degree = view.default.neighbours_of(key).len() + (added + removed) as usize;
                if degree > LONG {
                    it.long.push(keys.len() as u32);
                } else {
                    alone.append_merged(key, &mut at, &mut it.neighbours);
                }
            }
            if it.neighbours.len() + 2 * keys.len() > room {
                return None;
            }
            keys.push(key);
            it.offsets.push(it.neighbours.len() as u32);
        }
        let base = keys.partition_point(|&k| k < FIRST_TAIL_ID);
        let last = base.checked_sub(1).and_then(|i| keys.get(i)).copied();
        it.last = last.unwrap_or(0);
        it.finder = build_folded(keys, last.map(fold_behind));
        Some(it)
    }

    /// Looks a key up. O(1).
    #[inline]
    pub fn find(&self, key: u32) -> MergedLookup<'_> {
        if key > self.last && key < FIRST_TAIL_ID {
            return MergedLookup::Untouched;
        }
        let k = self.finder.view().find(key);
        if k == NO_KEY {
            return MergedLookup::Untouched;
        }
        let at = self.offsets.get(k as usize..).and_then(|o| o.first_chunk());
        let Some(&[a, b]) = at else {
            return MergedLookup::Unknown;
        };
        if a == b && self.long.binary_search(&k).is_ok() {
            return MergedLookup::Unknown;
        }
        MergedLookup::List(&self.neighbours[a as usize..b as usize])
    }

    /// Number of keys.
    pub fn keys(&self) -> u64 {
        self.offsets.len().saturating_sub(1) as u64
    }

    /// Memory of the lists, in ids.
    pub fn room(&self) -> usize {
        self.neighbours.len() + 2 * self.offsets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{GraphScope, PatchBuilder, SegmentBuilder};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn lists_are_those_of_the_view(
            base in prop::collection::btree_set((1u32..60, 1u32..9), 0..90),
            edits in prop::collection::btree_set((1u32..60, 1u32..9, any::<bool>()), 0..60),
            scattered: bool,
        ) {
            // Some keys are in the base, some in the tail, and some are far apart.
            let id = |k: u32| if k > 40 { FIRST_TAIL_ID + 7 * k } else if scattered { k * 5_000 } else { k };
            let mut d = SegmentBuilder::new(false);
            let base: BTreeSet<(u32, u32)> = base.into_iter().filter(|e| e.0 <= 40).collect();
            base.iter().for_each(|&(k, n)| d.push(id(k), n, 0));
            let d = d.finish().unwrap();
            let mut pb = PatchBuilder::default();
            let mut last = None;
            for &(k, n, _) in &edits {
                if last != Some((k, n)) {
                    pb.push(id(k), n, 0, !base.contains(&(k, n)));
                    last = Some((k, n));
                }
            }
            let patch = pb.finish();
            let view = EdgeView::new(d.view(), super::super::NamedSegment::EMPTY, Some(&patch));
            let merged = MergedLists::new(&view, &patch, 1 << 20).unwrap();
            // Key finders map ids of the tail to the ids after the base's last key. Vertices of the base with these ids
            // must not be mistaken for keys of the tail.
            for v in (0..400).chain(195_000..205_000) {
                if !edits.iter().any(|e| id(e.0) == v) {
                    prop_assert_eq!(merged.find(v), MergedLookup::Untouched);
                }
            }
            for k in 0..70 {
                let mut scratch = vec![];
                let want = view.read(id(k), GraphScope::Default, &mut scratch);
                match merged.find(id(k)) {
                    MergedLookup::Untouched => {
                        prop_assert!(edits.iter().all(|e| e.0 != k));
                        prop_assert_eq!(want, d.view().neighbours_of(id(k)));
                    }
                    MergedLookup::List(list) => prop_assert_eq!(want, list),
                    MergedLookup::Unknown => prop_assert!(false),
                }
            }
            prop_assert!(edits.len() < 9 || MergedLists::new(&view, &patch, 4).is_none());
        }
    }
}
