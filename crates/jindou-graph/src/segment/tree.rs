//! A sorted set with cheap versions: a change copies only the nodes that it touches. Patches, tail terms and all other
//! data that snapshots share are stored in such sets.
//!
//! A B+tree of reference-counted nodes. Leaves are sorted arrays that are rewritten when they change. Inner nodes are
//! changed in place if no other tree shares them, otherwise copied. Old versions of a tree keep their content.

use std::sync::Arc;

/// Largest number of values in a leaf. A single change rewrites one leaf, about a kilobyte.
const LEAF: usize = 128;
/// Largest number of children of an inner node.
const FAN: usize = 32;

/// A sorted set, a B+tree of reference-counted nodes, which copies the nodes that a change touches. Cloning is O(1).
#[derive(Clone, Debug)]
pub struct CowTree<T> {
    root: Option<TreeNode<T>>,
    len: usize,
}

#[derive(Debug)]
enum TreeNode<T> {
    Leaf(Arc<[T]>),
    Inner(Arc<InnerNode<T>>),
}

/// Children with their smallest values and sizes. All leaves are at the same depth.
#[derive(Clone, Debug)]
struct InnerNode<T> {
    firsts: Vec<T>,
    lens: Vec<usize>,
    children: Vec<TreeNode<T>>,
}

impl<T> Clone for TreeNode<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(l) => Self::Leaf(Arc::clone(l)),
            Self::Inner(i) => Self::Inner(Arc::clone(i)),
        }
    }
}

impl<T> Default for CowTree<T> {
    fn default() -> Self {
        Self { root: None, len: 0 }
    }
}

impl<T: Copy + Ord> InnerNode<T> {
    fn with_room() -> Self {
        Self {
            firsts: Vec::with_capacity(FAN),
            lens: Vec::with_capacity(FAN),
            children: Vec::with_capacity(FAN),
        }
    }

    /// Appends a child. If it is new, and it or the previous child is small, the two are merged if they fit into one
    /// node.
    fn push(&mut self, child: TreeNode<T>, is_new: bool) {
        let Some(first) = child.first() else { return };
        if is_new
            && let Some(before) = self.children.last()
            && let Some(joined) = before.joined(&child)
        {
            if let (Some(slot), Some(len)) = (self.children.last_mut(), self.lens.last_mut()) {
                *len = joined.len();
                *slot = joined;
            }
            return;
        }
        self.firsts.push(first);
        self.lens.push(child.len());
        self.children.push(child);
    }

    /// Appends the children to `out`, in nodes of at most [`FAN`] children each.
    fn split(self, out: &mut Vec<TreeNode<T>>) {
        if self.children.len() <= FAN {
            if !self.children.is_empty() {
                out.push(TreeNode::Inner(Arc::new(self)));
            }
            return;
        }
        let parts = self.children.len().div_ceil(FAN);
        let each = self.children.len().div_ceil(parts);
        let mut part = Self::with_room();
        for ((first, len), child) in self.firsts.into_iter().zip(self.lens).zip(self.children) {
            part.firsts.push(first);
            part.lens.push(len);
            part.children.push(child);
            if part.children.len() == each {
                let full = std::mem::replace(&mut part, Self::with_room());
                out.push(TreeNode::Inner(Arc::new(full)));
            }
        }
        if !part.children.is_empty() {
            out.push(TreeNode::Inner(Arc::new(part)));
        }
    }
}

impl<T: Copy + Ord> TreeNode<T> {
    fn first(&self) -> Option<T> {
        match self {
            Self::Leaf(l) => l.first().copied(),
            Self::Inner(i) => i.firsts.first().copied(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Leaf(l) => l.len(),
            Self::Inner(i) => i.lens.iter().sum(),
        }
    }

    /// The two nodes merged into one, if one of them is small and they fit.
    fn joined(&self, right: &Self) -> Option<Self> {
        match (self, right) {
            (Self::Leaf(a), Self::Leaf(b)) => {
                let small = a.len().min(b.len()) < LEAF / 4 && a.len() + b.len() <= LEAF;
                small.then(|| Self::Leaf(a.iter().chain(b.iter()).copied().collect()))
            }
            (Self::Inner(a), Self::Inner(b)) => {
                let (x, y) = (a.children.len(), b.children.len());
                (x.min(y) < FAN / 4 && x + y <= FAN).then(|| {
                    let mut both = InnerNode::with_room();
                    for i in [a, b] {
                        both.firsts.extend_from_slice(&i.firsts);
                        both.lens.extend_from_slice(&i.lens);
                        both.children.extend(i.children.iter().cloned());
                    }
                    Self::Inner(Arc::new(both))
                })
            }
            _ => None,
        }
    }

    /// Appends to `out` the nodes that replace this one after a change. They have the same height, and none is empty.
    fn edited(self, inserts: &[T], removals: &[T], out: &mut Vec<Self>) {
        match self {
            Self::Leaf(l) => leaves(&merged(&l, inserts, removals), out),
            Self::Inner(i) => {
                let InnerNode {
                    firsts,
                    lens,
                    children,
                } = Arc::try_unwrap(i).unwrap_or_else(|shared| (*shared).clone());
                let (mut inserts, mut removals) = (inserts, removals);
                let mut next = InnerNode::with_room();
                let mut made = Vec::new();
                for (at, child) in children.into_iter().enumerate() {
                    let split = |list: &[T]| match firsts.get(at + 1) {
                        Some(end) => list.partition_point(|x| x < end),
                        None => list.len(),
                    };
                    let (ins, more) = inserts.split_at(split(inserts));
                    let (rem, rest) = removals.split_at(split(removals));
                    (inserts, removals) = (more, rest);
                    if ins.is_empty() && rem.is_empty() {
                        next.firsts.push(firsts[at]);
                        next.lens.push(lens[at]);
                        next.children.push(child);
                        continue;
                    }
                    child.edited(ins, rem, &mut made);
                    for node in made.drain(..) {
                        next.push(node, true);
                    }
                }
                next.split(out);
            }
        }
    }
}

/// A leaf's values with changes applied. A value that is both removed and inserted is present.
fn merged<T: Copy + Ord>(old: &[T], inserts: &[T], removals: &[T]) -> Vec<T> {
    let mut out = Vec::with_capacity(old.len() + inserts.len());
    let (mut old, mut inserts, mut removals) = (old, inserts, removals);
    while let Some(&next) = [inserts.first(), removals.first()]
        .into_iter()
        .flatten()
        .min()
    {
        let (before, rest) = old.split_at(old.partition_point(|x| *x < next));
        out.extend_from_slice(before);
        old = rest;
        if old.first() == Some(&next) {
            old = &old[1..];
            if removals.first() != Some(&next) {
                out.push(next);
            }
        }
        if removals.first() == Some(&next) {
            removals = &removals[1..];
        }
        if inserts.first() == Some(&next) {
            inserts = &inserts[1..];
            if out.last() != Some(&next) {
                out.push(next);
            }
        }
    }
    out.extend_from_slice(old);
    out
}

fn leaves<T: Copy + Ord>(values: &[T], out: &mut Vec<TreeNode<T>>) {
    let parts = values.len().div_ceil(LEAF).max(1);
    let each = values.len().div_ceil(parts).max(1);
    out.extend(values.chunks(each).map(|c| TreeNode::Leaf(c.into())));
}

impl<T: Copy + Ord> CowTree<T> {
    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Inserts and removes values. Both lists are ascending without duplicates. Inserted values may already be present
    /// and removed ones absent; a value in both lists is inserted. Rewrites each touched leaf once: O(changes log
    /// size).
    pub fn apply(&mut self, inserts: &[T], removals: &[T]) {
        debug_assert!(inserts.is_sorted() && removals.is_sorted());
        if inserts.is_empty() && (removals.is_empty() || self.root.is_none()) {
            return;
        }
        let mut level = Vec::new();
        match self.root.take() {
            Some(root) => root.edited(inserts, removals, &mut level),
            None => leaves(inserts, &mut level),
        }
        while level.len() > 1 {
            let mut above = InnerNode::with_room();
            for node in level.drain(..) {
                above.push(node, true);
            }
            above.split(&mut level);
        }
        let mut root = level.pop().filter(|n| n.first().is_some());
        // A root with one child is redundant.
        while let Some(TreeNode::Inner(i)) = &root
            && let [only] = i.children.as_slice()
        {
            root = Some(only.clone());
        }
        self.len = root.as_ref().map_or(0, TreeNode::len);
        self.root = root;
    }

    /// Finds the first value for which `before` is false, and returns the values from there to the end of its leaf.
    /// `before` must be true for a prefix of all values. Empty if there is no such value.
    fn seek(&self, before: impl Fn(&T) -> bool) -> &[T] {
        let Some(mut at) = self.root.as_ref() else {
            return &[];
        };
        let mut right: Option<&TreeNode<T>> = None;
        loop {
            match at {
                TreeNode::Inner(i) => {
                    let child = i.firsts.partition_point(&before).saturating_sub(1);
                    right = i.children.get(child + 1).or(right);
                    let Some(next) = i.children.get(child) else {
                        return &[];
                    };
                    at = next;
                }
                TreeNode::Leaf(l) => {
                    let from = l.partition_point(&before);
                    if from < l.len() {
                        return &l[from..];
                    }
                    // All later values are in the subtree to the right, and `before` is false for the first of these.
                    let Some(mut next) = right else { return &[] };
                    loop {
                        match next {
                            TreeNode::Leaf(l) => return l,
                            TreeNode::Inner(i) => match i.children.first() {
                                Some(child) => next = child,
                                None => return &[],
                            },
                        }
                    }
                }
            }
        }
    }

    /// Returns true if the value is present. O(log size).
    #[must_use]
    pub fn contains(&self, value: &T) -> bool {
        self.seek(|x| x < value).first() == Some(value)
    }

    /// The smallest value that is at least `from`.
    #[must_use]
    pub fn first_from(&self, from: &T) -> Option<T> {
        self.seek(|x| x < from).first().copied()
    }

    /// The values `from ..= to`, ascending, as one slice per leaf; no slice is empty.
    #[must_use]
    pub fn range(&self, from: T, to: T) -> Slices<'_, T> {
        Slices {
            tree: self,
            next: self.seek(|x| *x < from),
            to,
        }
    }

    /// All values, ascending.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        let mut slice = self.seek(|_| false);
        let mut at = 0;
        std::iter::from_fn(move || {
            if at == slice.len() {
                let last = *slice.last()?;
                slice = self.seek(|x| *x <= last);
                at = 0;
            }
            at += 1;
            slice.get(at - 1).copied()
        })
    }

    /// The values that `other` lacks, ascending. Leaves that both trees share are skipped: O(leaves of both), plus a
    /// lookup for each value in the other leaves of this tree.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Vec<T> {
        let mut out = Vec::new();
        self.for_each_beyond(other, |x| out.push(x));
        out
    }

    /// Calls `f` with the values of [`Self::difference`], ascending.
    pub fn for_each_beyond(&self, other: &Self, mut f: impl FnMut(T)) {
        let mut theirs: rustc_hash::FxHashSet<*const T> = rustc_hash::FxHashSet::default();
        other.each_leaf(&mut |leaf| {
            theirs.insert(leaf.as_ptr());
        });
        self.each_leaf(&mut |leaf| {
            // Two leaves at the same address are the same leaf, since both trees exist during the comparison.
            if !theirs.contains(&leaf.as_ptr()) {
                let beyond = leaf.iter().copied().filter(|x| !other.contains(x));
                beyond.for_each(&mut f);
            }
        });
    }

    fn each_leaf<'a>(&'a self, f: &mut impl FnMut(&'a [T])) {
        fn walk<'a, T>(node: &'a TreeNode<T>, f: &mut impl FnMut(&'a [T])) {
            match node {
                TreeNode::Leaf(l) => f(l),
                TreeNode::Inner(i) => i.children.iter().for_each(|c| walk(c, f)),
            }
        }
        if let Some(root) = &self.root {
            walk(root, f);
        }
    }

    /// Number of values `from ..= to`. O(log size).
    #[must_use]
    pub fn count(&self, from: T, to: T) -> usize {
        if self.len == 0 {
            return 0;
        }
        self.rank(|x| *x <= to)
            .saturating_sub(self.rank(|x| *x < from))
    }

    /// Number of values for which `before` is true. These must be a prefix of all values.
    fn rank(&self, before: impl Fn(&T) -> bool) -> usize {
        let mut rank = 0;
        let mut at = self.root.as_ref();
        loop {
            match at {
                None => return rank,
                Some(TreeNode::Leaf(l)) => return rank + l.partition_point(&before),
                Some(TreeNode::Inner(i)) => {
                    let child = i.firsts.partition_point(&before).saturating_sub(1);
                    rank += i.lens.iter().take(child).sum::<usize>();
                    at = i.children.get(child);
                }
            }
        }
    }

    /// Bytes on the heap, including nodes that other trees share. O(nodes).
    #[must_use]
    pub fn bytes(&self) -> usize {
        fn node_bytes<T>(node: &TreeNode<T>) -> usize {
            match node {
                TreeNode::Leaf(l) => 16 + size_of_val(&**l),
                TreeNode::Inner(i) => {
                    let each = size_of::<T>() + size_of::<usize>() + size_of::<TreeNode<T>>();
                    let own = 16 + size_of::<InnerNode<T>>() + i.children.capacity() * each;
                    own + i.children.iter().map(node_bytes).sum::<usize>()
                }
            }
        }
        self.root.as_ref().map_or(0, node_bytes)
    }
}

/// The position of the last search in a tree. A search for a larger value in the same leaf then need not start at the
/// root.
#[derive(Clone, Copy, Debug)]
pub struct Finger<'a, T> {
    /// The value that was searched for, and the values from it to the end of its leaf.
    last: Option<(T, &'a [T])>,
}

impl<T> Default for Finger<'_, T> {
    fn default() -> Self {
        Self { last: None }
    }
}

impl<'a, T: Copy + Ord> Finger<'a, T> {
    /// As [`CowTree::range`]. A finger must always be used with the same tree. O(log distance) inside a leaf.
    pub fn range(&mut self, tree: &'a CowTree<T>, from: T, to: T) -> Slices<'a, T> {
        let next = match self.last {
            Some((before, slice))
                if before <= from && slice.last().is_some_and(|last| *last >= from) =>
            {
                let mut end = 1;
                while end < slice.len() && slice[end - 1] < from {
                    end *= 2;
                }
                let end = end.min(slice.len());
                &slice[slice[..end].partition_point(|x| *x < from)..]
            }
            _ => tree.seek(|x| *x < from),
        };
        self.last = Some((from, next));
        Slices { tree, next, to }
    }
}

/// The result of [`CowTree::range`].
#[derive(Clone, Debug)]
pub struct Slices<'a, T> {
    tree: &'a CowTree<T>,
    next: &'a [T],
    to: T,
}

impl<T: Copy + Ord> Slices<'_, T> {
    /// Returns true if all values were returned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.next.first().is_none_or(|first| *first > self.to)
    }
}

impl<'a, T: Copy + Ord> Iterator for Slices<'a, T> {
    type Item = &'a [T];

    fn next(&mut self) -> Option<&'a [T]> {
        let slice = self.next;
        let last = *slice.last()?;
        if last < self.to {
            self.next = self.tree.seek(|x| *x <= last);
            return Some(slice);
        }
        self.next = &[];
        let slice = &slice[..slice.partition_point(|x| *x <= self.to)];
        (!slice.is_empty()).then_some(slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    // Miri takes a thousand times as long for each step.
    const CASES: u32 = if cfg!(miri) { 2 } else { 40 };
    const MOST: usize = if cfg!(miri) { 200 } else { 3_000 };
    const PROBES: usize = if cfg!(miri) { 4 } else { 20 };
    const SINGLE: usize = if cfg!(miri) { 1_200 } else { 60_000 };

    fn depth(tree: &CowTree<u32>) -> usize {
        let (mut at, mut depth) = (tree.root.as_ref(), 0);
        while let Some(TreeNode::Inner(i)) = at {
            assert!(i.children.len() <= FAN && i.firsts.is_sorted());
            let lens: Vec<usize> = i.children.iter().map(TreeNode::len).collect();
            assert_eq!(lens, i.lens);
            depth += 1;
            at = i.children.first();
        }
        depth
    }

    fn agree(tree: &CowTree<u32>, truth: &BTreeSet<u32>, probes: &[u32]) {
        assert_eq!(tree.len(), truth.len());
        assert!(tree.iter().eq(truth.iter().copied()));
        let mut finger = Finger::default();
        for pair in probes.windows(2) {
            let (a, b) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
            let slices: Vec<&[u32]> = tree.range(a, b).collect();
            assert!(slices.iter().all(|s| !s.is_empty()));
            assert!(slices.concat().iter().eq(truth.range(a..=b)));
            for from in [a, a + 3, a + 700, a] {
                let found: Vec<u32> = finger
                    .range(tree, from, from + 90)
                    .flatten()
                    .copied()
                    .collect();
                assert!(found.iter().eq(truth.range(from..=from + 90)));
            }
            assert_eq!(tree.count(a, b), truth.range(a..=b).count());
            assert_eq!(tree.contains(&a), truth.contains(&a));
            assert_eq!(tree.first_from(&a), truth.range(a..).next().copied());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(CASES))]
        #[test]
        fn trees_agree_with_sets_and_old_ones_stay(
            rounds in prop::collection::vec(
                (0u32..40_000, 0..MOST, 0..MOST, 1u32..50), 1..14),
            probes in prop::collection::vec(0u32..60_000, PROBES),
        ) {
            let mut tree = CowTree::default();
            let mut truth = BTreeSet::new();
            let mut past = vec![];
            for (i, (start, ins, rem, step)) in rounds.into_iter().enumerate() {
                let run = |n: usize, step: u32| -> Vec<u32> {
                    let mut v: Vec<u32> = (0..n as u32).map(|k| (start + k * step) % 50_000).collect();
                    v.sort_unstable();
                    v.dedup();
                    v
                };
                let (inserts, removals) = (run(ins, step), run(rem, 7));
                tree.apply(&inserts, &removals);
                for x in &removals { truth.remove(x); }
                truth.extend(inserts);
                agree(&tree, &truth, &probes);
                depth(&tree);
                if i % 3 == 0 { past.push((tree.clone(), truth.clone())); }
            }
            for (old, was) in &past {
                agree(old, was, &probes);
                let came: Vec<u32> = truth.difference(was).copied().collect();
                prop_assert_eq!(tree.difference(old), came);
                let went: Vec<u32> = was.difference(&truth).copied().collect();
                prop_assert_eq!(old.difference(&tree), went);
            }
            let all: Vec<u32> = truth.into_iter().collect();
            tree.apply(&[], &all);
            prop_assert!(tree.is_empty() && tree.iter().next().is_none());
        }
    }

    #[test]
    fn single_changes_keep_it_flat_and_small() {
        let mut tree = CowTree::default();
        let mut kept = tree.clone();
        let mut x = 1u32;
        for i in 0..SINGLE {
            x = x.wrapping_mul(2_654_435_761).wrapping_add(12_345);
            tree.apply(&[x], &[]);
            if i % 2 == 0 {
                kept = tree.clone();
            }
        }
        let least = SINGLE / 60 * 59;
        assert!(tree.len() > least && kept.len() > least);
        assert!(depth(&tree) <= 3);
        assert!(tree.bytes() < tree.len() * 10);
        let all: Vec<u32> = tree.iter().collect();
        for v in &all[10..] {
            tree.apply(&[], &[*v]);
        }
        assert_eq!((depth(&tree), tree.len()), (0, 10));
        assert!(kept.len() > least);
    }
}
