//! Patches: what updates changed in a segment since it was built (OSDI '16 §6, snapshots).
//!
//! A patch never changes a segment's arrays. It says with one bit a key whether the key was touched, and
//! keeps the touched keys' edits sorted beside. Loops over untouched keys therefore cost one bit test.

use std::collections::BTreeMap;

/// One change of one edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edit {
    /// The other end.
    pub neighbour: u32,
    /// The graph, or `DEFAULT_GRAPH`.
    pub graph: u32,
    /// First snapshot that sees the change.
    pub snapshot: u32,
    /// Added, or removed.
    pub added: bool,
}

/// All edits of one predicate in one direction.
#[derive(Debug, Clone, Default)]
pub struct Patch {
    /// Folded bitmap: bit `v & mask`. A clear bit means untouched; a set one means look.
    dirty: Vec<u64>,
    mask: u32,
    keys: Vec<u32>,
    starts: Vec<u32>,
    edits: Vec<Edit>,
}

impl Patch {
    /// True if `v` may have been touched: one bit, false positives at most 1 in 16.
    #[inline]
    #[must_use]
    pub fn is_dirty(&self, v: u32) -> bool {
        let bit = v & self.mask;
        self.dirty
            .get((bit / 64) as usize)
            .is_some_and(|w| w >> (bit % 64) & 1 == 1)
    }

    /// The folded dirty bits and the mask to fold an id with (for devices and remote readers).
    #[must_use]
    pub fn dirty_bits(&self) -> (&[u64], u32) {
        (&self.dirty, self.mask)
    }

    /// The edits of a key, sorted by (neighbour, graph, snapshot); empty if untouched.
    #[must_use]
    pub fn edits_of(&self, v: u32) -> &[Edit] {
        if !self.is_dirty(v) {
            return &[];
        }
        match self.keys.binary_search(&v) {
            Ok(i) => &self.edits[self.starts[i] as usize..self.starts[i + 1] as usize],
            Err(_) => &[],
        }
    }

    /// Touched keys, ascending.
    #[must_use]
    pub fn keys(&self) -> &[u32] {
        &self.keys
    }

    /// Number of edits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.edits.len()
    }

    /// True without edits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }
}

/// Collects edits into a [`Patch`].
#[derive(Debug, Default, Clone)]
pub struct PatchBuilder {
    by_key: BTreeMap<u32, Vec<Edit>>,
}

impl PatchBuilder {
    /// Adds one edit of `key`.
    pub fn push(&mut self, key: u32, edit: Edit) {
        self.by_key.entry(key).or_default().push(edit);
    }

    /// True without edits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The patch. O(edits log edits).
    #[must_use]
    pub fn finish(self) -> Patch {
        let bits = (self.by_key.len() * 16).next_power_of_two().max(64);
        let mask = (bits - 1) as u32;
        let mut p = Patch {
            dirty: vec![0; bits / 64],
            mask,
            ..Patch::default()
        };
        for (key, mut edits) in self.by_key {
            edits.sort_unstable();
            let bit = key & mask;
            p.dirty[(bit / 64) as usize] |= 1 << (bit % 64);
            p.keys.push(key);
            p.starts.push(p.edits.len() as u32);
            p.edits.append(&mut edits);
        }
        p.starts.push(p.edits.len() as u32);
        p
    }
}
