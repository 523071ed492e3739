//! Patches: the changes that updates made to a segment since it was built (OSDI '16 §6, snapshots).
//!
//! The segment's arrays are never changed. A patch has a bit per key that tells whether the key was touched, and the
//! net effect of all edits in sorted sets: edges that the base lacks, and edges of the base that were removed. A loop
//! therefore needs one bit test for an untouched key. A patch is immutable; the patch of the next snapshot shares all
//! unchanged data with it.

use super::derived::Derived;
use super::dirty::{Dirty, DirtyBits};
use super::tree::{CowTree, Finger, Slices};
use jindou_model::{DEFAULT_GRAPH, FIRST_TAIL_ID};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// All edits of one predicate in one direction. Cloning is O(1).
#[derive(Debug, Clone, Default)]
pub struct Patch {
    dirty: Arc<DirtyBits>,
    /// Added edges of the default graph, which the base lacks, as encoded by [`edge`].
    added: CowTree<u64>,
    /// Edges of the base's default graph that were removed.
    removed: CowTree<u64>,
    /// Added edges of named graphs, which the base lacks: `[key, neighbour, graph]`.
    named_added: CowTree<[u32; 3]>,
    named_removed: CowTree<[u32; 3]>,
    /// Upper bound on the number of keys that have added edges but no edges in the base. Keys whose added edges were
    /// all removed again may be counted.
    more_keys: u32,
    /// Number of edges when cached plans were last invalidated because counts had changed much.
    noted: u64,
    derived: Derived,
}

/// The position of a reader's last search in a patch, which makes lookups of ascending keys fast.
#[derive(Clone, Copy, Debug, Default)]
pub struct PatchFinger<'a> {
    added: Finger<'a, u64>,
    removed: Finger<'a, u64>,
}

/// Encodes an edge of the default graph as one integer, which sorts by key, then by neighbour.
#[inline]
#[must_use]
pub fn edge(key: u32, neighbour: u32) -> u64 {
    u64::from(key) << 32 | u64::from(neighbour)
}

/// The changes of one transaction to one patch. Edges to add must not exist yet, and edges to remove must exist.
#[derive(Debug, Default)]
pub struct PatchChange {
    /// Edges of the default graph to add, as encoded by [`edge`].
    pub added: Vec<u64>,
    /// Edges of the default graph to remove.
    pub removed: Vec<u64>,
    /// Edges of named graphs to add: key, neighbour, graph.
    pub named_added: Vec<[u32; 3]>,
    /// Edges of named graphs to remove.
    pub named_removed: Vec<[u32; 3]>,
}

impl PatchChange {
    /// Sorts all lists, as [`Patch::apply`] requires.
    pub fn sort(&mut self) {
        self.added.sort_unstable();
        self.removed.sort_unstable();
        self.named_added.sort_unstable();
        self.named_removed.sort_unstable();
    }

    /// Keys that gain edges, ascending, each once.
    #[must_use]
    pub fn keys_added(&self) -> Vec<u32> {
        keys_of(&self.added, &self.named_added)
    }
}

/// Changes of one key's edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyChange {
    /// The key.
    pub key: u32,
    /// Number of added edges, which the base lacks.
    pub added: u64,
    /// Number of removed edges, which the base has.
    pub removed: u64,
}

fn keys_of(default: &[u64], named: &[[u32; 3]]) -> Vec<u32> {
    let mut keys: Vec<u32> = default.iter().map(|e| (e >> 32) as u32).collect();
    keys.dedup();
    if !named.is_empty() {
        keys.extend(named.iter().map(|e| e[0]));
        keys.sort();
        keys.dedup();
    }
    keys
}

/// Splits an ascending list into the values that the tree contains and those that it lacks.
fn split<T: Copy + Ord>(list: &[T], tree: &CowTree<T>) -> (Vec<T>, Vec<T>) {
    if tree.is_empty() {
        return (Vec::new(), list.to_vec());
    }
    list.iter().partition(|x| tree.contains(x))
}

impl Patch {
    /// Returns true if key `v` may have been touched. Tests one bit; at most 1 in 32 untouched keys is a false
    /// positive.
    #[inline]
    #[must_use]
    pub fn is_dirty(&self, v: u32) -> bool {
        self.dirty.has(v)
    }

    /// The bits of [`Self::is_dirty`], for loops that test many keys.
    #[inline]
    #[must_use]
    pub fn dirty(&self) -> Dirty<'_> {
        self.dirty.reader()
    }

    /// The current dirty bits, and the mask that maps an id to its bit, for devices and remote readers.
    #[must_use]
    pub fn dirty_bits(&self) -> (Vec<u64>, u32) {
        self.dirty.copy()
    }

    /// The added edges of the default graph with this key, and the removed ones.
    #[must_use]
    pub fn edits_of(&self, key: u32) -> (Slices<'_, u64>, Slices<'_, u64>) {
        let (from, to) = (edge(key, 0), edge(key, u32::MAX));
        (self.added.range(from, to), self.removed.range(from, to))
    }

    /// As [`Self::edits_of`]. `at` must be used with this patch only; it makes lookups of ascending keys fast.
    pub(super) fn edits_at<'a>(
        &'a self,
        key: u32,
        at: &mut PatchFinger<'a>,
    ) -> (Slices<'a, u64>, Slices<'a, u64>) {
        let (from, to) = (edge(key, 0), edge(key, u32::MAX));
        (
            at.added.range(&self.added, from, to),
            at.removed.range(&self.removed, from, to),
        )
    }

    /// The added edges of named graphs with this key, `[key, neighbour, graph]`, and the removed ones.
    #[must_use]
    pub fn named_edits_of(&self, key: u32) -> (Slices<'_, [u32; 3]>, Slices<'_, [u32; 3]>) {
        let (from, to) = ([key, 0, 0], [key, u32::MAX, u32::MAX]);
        (
            self.named_added.range(from, to),
            self.named_removed.range(from, to),
        )
    }

    /// The edits of one edge in all named graphs: `[key, neighbour, graph]` where it was added, and where it was
    /// removed.
    #[must_use]
    pub fn named_edits_of_edge(
        &self,
        key: u32,
        neighbour: u32,
    ) -> (Slices<'_, [u32; 3]>, Slices<'_, [u32; 3]>) {
        let (from, to) = ([key, neighbour, 0], [key, neighbour, u32::MAX]);
        (
            self.named_added.range(from, to),
            self.named_removed.range(from, to),
        )
    }

    /// Looks an edge up among the edits: true if it was added, false if it was removed, `None` if neither. O(log
    /// edits).
    #[must_use]
    pub fn says(&self, key: u32, neighbour: u32, graph: u32) -> Option<bool> {
        let (there, gone) = if graph == DEFAULT_GRAPH {
            let e = edge(key, neighbour);
            (self.added.contains(&e), self.removed.contains(&e))
        } else {
            let e = [key, neighbour, graph];
            (
                self.named_added.contains(&e),
                self.named_removed.contains(&e),
            )
        };
        (there || gone).then_some(there)
    }

    /// Numbers of added edges of the default graph with this key, and of removed ones. O(log edits).
    #[must_use]
    pub fn degree_change(&self, key: u32) -> (u64, u64) {
        let (from, to) = (edge(key, 0), edge(key, u32::MAX));
        (
            self.added.count(from, to) as u64,
            self.removed.count(from, to) as u64,
        )
    }

    /// The share (0 to 1) of the added edges of the default graph whose key is in `keys`. With `far`, `keys` has one
    /// key: the share of its added edges whose neighbour is in the tail. O(log edits).
    #[must_use]
    pub fn tail_share(&self, keys: RangeInclusive<u32>, far: bool) -> f64 {
        let (a, b) = keys.into_inner();
        let least = if far { FIRST_TAIL_ID } else { 0 };
        let some = self.added.count(edge(a, least), edge(b, u32::MAX));
        let all = match far {
            true => self.added.count(edge(a, 0), edge(b, u32::MAX)),
            false => self.added.len(),
        };
        some as f64 / all.max(1) as f64
    }

    /// Numbers of added edges of named graphs with this key, and of removed ones. O(log edits).
    #[must_use]
    pub fn named_degree_change(&self, key: u32) -> (u64, u64) {
        let (from, to) = ([key, 0, 0], [key, u32::MAX, u32::MAX]);
        (
            self.named_added.count(from, to) as u64,
            self.named_removed.count(from, to) as u64,
        )
    }

    /// Keys of all edits, ascending, each once. O(edits).
    #[must_use]
    pub fn keys(&self) -> Vec<u32> {
        let mut keys = self.default_keys();
        for tree in [&self.named_added, &self.named_removed] {
            for e in tree.iter() {
                if keys.last() != Some(&e[0]) {
                    keys.push(e[0]);
                }
            }
        }
        // `keys` is three ascending runs, which a stable sort merges.
        keys.sort();
        keys.dedup();
        keys
    }

    /// The changes of each key that has edits of the default graph (`default`) or of named graphs (`named`), ascending.
    /// O(edits).
    #[must_use]
    pub fn key_changes(&self, default: bool, named: bool) -> Vec<KeyChange> {
        let mut out: Vec<KeyChange> = Vec::new();
        let mut note = |key: u32, is_added: bool| {
            let [added, removed] = [is_added, !is_added].map(u64::from);
            match out.last_mut() {
                Some(last) if last.key == key => {
                    last.added += added;
                    last.removed += removed;
                }
                _ => out.push(KeyChange {
                    key,
                    added,
                    removed,
                }),
            }
        };
        if default {
            self.added.iter().for_each(|e| note((e >> 32) as u32, true));
            let removed = self.removed.iter();
            removed.for_each(|e| note((e >> 32) as u32, false));
        }
        if named {
            self.named_added.iter().for_each(|e| note(e[0], true));
            self.named_removed.iter().for_each(|e| note(e[0], false));
        }
        // At most four ascending runs, which a stable sort merges.
        out.sort_by_key(|c| c.key);
        out.dedup_by(|later, kept| {
            let same = later.key == kept.key;
            if same {
                kept.added += later.added;
                kept.removed += later.removed;
            }
            same
        });
        out
    }

    /// The smallest key from `from` on with an added edge of the default graph. O(log edits).
    #[must_use]
    pub fn next_added_key(&self, from: u32) -> Option<u32> {
        let first = self.added.first_from(&edge(from, 0))?;
        Some((first >> 32) as u32)
    }

    /// The smallest key from `from` on with an added edge of any graph. O(log edits).
    #[must_use]
    pub fn next_added_key_of_all(&self, from: u32) -> Option<u32> {
        let named = self.named_added.first_from(&[from, 0, 0]).map(|e| e[0]);
        self.next_added_key(from).into_iter().chain(named).min()
    }

    /// Approximate number of touched keys. O(1).
    pub(super) fn touched_keys(&self) -> u64 {
        self.dirty.count()
    }

    /// Keys of edits of the default graph, ascending, each once. O(edits).
    pub(super) fn default_keys(&self) -> Vec<u32> {
        let mut keys: Vec<u32> = Vec::new();
        for tree in [&self.added, &self.removed] {
            for e in tree.iter() {
                let key = (e >> 32) as u32;
                if keys.last() != Some(&key) {
                    keys.push(key);
                }
            }
        }
        keys.sort();
        keys.dedup();
        keys
    }

    /// Calls `f` with every key that has an added edge: first the keys of the default graph's edges, then those of
    /// named graphs' edges, each ascending. O(edits).
    pub fn for_each_added_key(&self, mut f: impl FnMut(u32)) {
        let mut last = None;
        let mut each = |key: u32| {
            if last != Some(key) {
                last = Some(key);
                f(key);
            }
        };
        self.added.iter().for_each(|e| each((e >> 32) as u32));
        self.named_added.iter().for_each(|e| each(e[0]));
    }

    /// Approximate number of keys that have added edges but no edges in the base.
    #[must_use]
    pub fn more_keys(&self) -> u32 {
        self.more_keys
    }

    /// Number of added edges of the default graph, and of removed ones.
    #[must_use]
    pub fn default_counts(&self) -> (u64, u64) {
        (self.added.len() as u64, self.removed.len() as u64)
    }

    /// Number of added edges of named graphs, and of removed ones.
    #[must_use]
    pub fn named_counts(&self) -> (u64, u64) {
        (
            self.named_added.len() as u64,
            self.named_removed.len() as u64,
        )
    }

    /// Returns true if edges of the default graph were added or removed.
    #[inline]
    #[must_use]
    pub fn has_default(&self) -> bool {
        !self.added.is_empty() || !self.removed.is_empty()
    }

    /// Returns true if edges of named graphs were added or removed.
    #[inline]
    #[must_use]
    pub fn has_named(&self) -> bool {
        !self.named_added.is_empty() || !self.named_removed.is_empty()
    }

    /// Returns true if edges of named graphs were added.
    #[inline]
    #[must_use]
    pub fn adds_named(&self) -> bool {
        !self.named_added.is_empty()
    }

    /// Returns true if an edge with this key was added to any graph.
    #[must_use]
    pub fn adds_to(&self, key: u32) -> bool {
        let (default, named) = (self.edits_of(key).0, self.named_edits_of(key).0);
        !default.is_empty() || !named.is_empty()
    }

    /// Number of edits: of added and removed edges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.added.len() + self.removed.len() + self.named_added.len() + self.named_removed.len()
    }

    /// Returns true if there are no edits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes on the heap, including data that other versions share. O(edits / 100).
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.dirty.bytes()
            + self.derived.bytes()
            + self.added.bytes()
            + self.removed.bytes()
            + self.named_added.bytes()
            + self.named_removed.bytes()
    }

    pub(super) fn derived(&self) -> &Derived {
        &self.derived
    }

    /// Applies a change. Returns the keys of edges that had been added and are now removed again, ascending, and those
    /// of these edges that are in named graphs. O(change log edits).
    pub fn apply(&mut self, change: &PatchChange) -> (Vec<u32>, Vec<[u32; 3]>) {
        for list in [&change.added, &change.removed] {
            self.derived.change(list.iter().map(|e| (e >> 32) as u32));
        }
        // Adding a removed edge, or removing an added one, cancels the earlier edit.
        let (back, fresh) = split(&change.added, &self.removed);
        let (dropped, gone) = split(&change.removed, &self.added);
        self.added.apply(&fresh, &dropped);
        self.removed.apply(&gone, &back);
        let (back, named_fresh) = split(&change.named_added, &self.named_removed);
        let (named_dropped, named_gone) = split(&change.named_removed, &self.named_added);
        self.named_added.apply(&named_fresh, &named_dropped);
        self.named_removed.apply(&named_gone, &back);
        for list in [&fresh, &gone] {
            for key in keys_of(list, &[]) {
                self.dirty.add(key);
            }
        }
        for list in [&named_fresh, &named_gone] {
            for e in list {
                self.dirty.add(e[0]);
            }
        }
        if self.dirty.is_full() {
            let keys = self.keys();
            // For twice the current number of keys, so that the bits are not full again soon.
            let bits = DirtyBits::for_keys(keys.len() as u64 * 2);
            keys.iter().for_each(|&k| bits.add(k));
            self.dirty = Arc::new(bits);
        }
        (keys_of(&dropped, &named_dropped), named_dropped)
    }

    /// The edits that remain after a merge wrote the edits of `then`, an earlier version, to the base. O(edits that
    /// differ, and leaves).
    #[must_use]
    pub fn since(&self, then: &Self) -> Self {
        fn left<T: Copy + Ord>(
            (now, was): (&CowTree<T>, &CowTree<T>),
            (went_now, went_then): (&CowTree<T>, &CowTree<T>),
        ) -> Vec<T> {
            // Edges added since `then`, and edges that were removed then and added again since.
            let mut out = now.difference(was);
            out.extend(went_then.difference(went_now));
            out
        }
        let default = (&self.added, &then.added);
        let gone = (&self.removed, &then.removed);
        let named = (&self.named_added, &then.named_added);
        let named_gone = (&self.named_removed, &then.named_removed);
        let mut change = PatchChange {
            added: left(default, gone),
            removed: left(gone, default),
            named_added: left(named, named_gone),
            named_removed: left(named_gone, named),
        };
        change.sort();
        let mut out = Self::default();
        out.apply(&change);
        out
    }

    /// The edits of some keys, with other numbers for these: `key` returns the new number of a key, or `None` to drop
    /// its edits. It must preserve the order of keys. O(edits).
    #[must_use]
    pub fn with_keys(&self, key: impl Fn(u32) -> Option<u32>) -> Self {
        let default = |tree: &CowTree<u64>| {
            let edits = tree.iter();
            edits
                .filter_map(|e| Some(edge(key((e >> 32) as u32)?, e as u32)))
                .collect()
        };
        let named = |tree: &CowTree<[u32; 3]>| {
            let edits = tree.iter();
            edits
                .filter_map(|[k, n, g]| Some([key(k)?, n, g]))
                .collect()
        };
        let change = PatchChange {
            added: default(&self.added),
            removed: default(&self.removed),
            named_added: named(&self.named_added),
            named_removed: named(&self.named_removed),
        };
        let mut out = Self::default();
        out.apply(&change);
        out
    }

    /// Keys that have added edges, ascending, each once.
    #[must_use]
    pub fn added_keys(&self) -> Vec<u32> {
        let default: Vec<u64> = self.added.iter().collect();
        let named: Vec<[u32; 3]> = self.named_added.iter().collect();
        keys_of(&default, &named)
    }

    /// Changes [`Self::more_keys`] by the number of keys that it gained and lost.
    pub fn count_keys(&mut self, more: usize, fewer: usize) {
        self.more_keys = (self.more_keys + more as u32).saturating_sub(fewer as u32);
    }

    /// Compares the number of edges with the number at the last [`Self::note`]. If they differ much, notes the new
    /// number and returns true: cached plans, which were made for the old number, should be replaced.
    pub fn note_drift(&mut self, edges: u64) -> bool {
        let far = edges > 2 * self.noted + 64 || edges + 64 < self.noted / 2;
        if far {
            self.noted = edges;
        }
        far
    }

    /// Records the number of edges for which plans are made from now on.
    pub fn note(&mut self, edges: u64) {
        self.noted = edges;
    }
}

/// Collects edits into a [`Patch`].
#[derive(Debug, Default)]
pub struct PatchBuilder {
    change: PatchChange,
}

impl PatchBuilder {
    /// Adds one edit of an edge. `added` is true for an edge that the base must lack, false for a removed edge, which
    /// the base must have. At most one edit per edge.
    pub fn push(&mut self, key: u32, neighbour: u32, graph: u32, added: bool) {
        let c = &mut self.change;
        match (graph == DEFAULT_GRAPH, added) {
            (true, true) => c.added.push(edge(key, neighbour)),
            (true, false) => c.removed.push(edge(key, neighbour)),
            (false, true) => c.named_added.push([key, neighbour, graph]),
            (false, false) => c.named_removed.push([key, neighbour, graph]),
        }
    }

    /// Builds the patch. O(edits log edits).
    #[must_use]
    pub fn finish(mut self) -> Patch {
        self.change.sort();
        let mut p = Patch::default();
        p.apply(&self.change);
        p
    }
}
