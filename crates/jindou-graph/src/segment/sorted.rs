//! Merges of ascending lists: a base, added values and removed values.

use super::Slices;
use std::iter::Peekable;

/// Iterates over an ascending list, without the values of a second list and with those of a third.
pub(super) struct MergedIter<B: Iterator, A: Iterator, R: Iterator> {
    base: Peekable<B>,
    added: Peekable<A>,
    removed: Peekable<R>,
}

impl<T, B, A, R> MergedIter<B, A, R>
where
    T: Copy + Ord,
    B: Iterator<Item = T>,
    A: Iterator<Item = T>,
    R: Iterator<Item = T>,
{
    pub fn new(base: B, added: A, removed: R) -> Self {
        Self {
            base: base.peekable(),
            added: added.peekable(),
            removed: removed.peekable(),
        }
    }
}

impl<T, B, A, R> Iterator for MergedIter<B, A, R>
where
    T: Copy + Ord,
    B: Iterator<Item = T>,
    A: Iterator<Item = T>,
    R: Iterator<Item = T>,
{
    type Item = T;

    fn next(&mut self) -> Option<T> {
        loop {
            let Some(&b) = self.base.peek() else {
                return self.added.next();
            };
            if let Some(a) = self.added.next_if(|&a| a < b) {
                return Some(a);
            }
            self.base.next();
            while self.removed.next_if(|&r| r < b).is_some() {}
            if self.removed.next_if(|&r| r == b).is_none() {
                return Some(b);
            }
        }
    }
}

/// Appends an ascending list, without `removed` and with `added` values, to `out`. Parts between edits are copied at
/// once.
pub(crate) fn merge_runs(
    base: &[u32],
    added: Slices<'_, u64>,
    removed: Slices<'_, u64>,
    out: &mut Vec<u32>,
) {
    let mut base = base;
    let mut added = added.flatten().map(|&e| e as u32).peekable();
    let mut removed = removed.flatten().map(|&e| e as u32).peekable();
    out.reserve(base.len());
    loop {
        let (next, comes) = match (added.peek(), removed.peek()) {
            (None, None) => break,
            (Some(&a), r) if r.is_none_or(|&r| a < r) => (a, true),
            (_, Some(&r)) => (r, false),
            (Some(&a), None) => (a, true),
        };
        let run = gallop(base, next);
        out.extend_from_slice(&base[..run]);
        base = &base[run..];
        if comes {
            added.next();
            out.push(next);
        } else {
            removed.next();
            if base.first() == Some(&next) {
                base = &base[1..];
            }
        }
    }
    out.extend_from_slice(base);
}

/// The number of values below `to` in an ascending list: O(log of this number).
fn gallop(list: &[u32], to: u32) -> usize {
    let mut end = 1;
    while end < list.len() && list[end - 1] < to {
        end *= 2;
    }
    let end = end.min(list.len());
    let start = end / 2;
    let start = if start > 0 && list[start - 1] >= to {
        0
    } else {
        start
    };
    start + list[start..end].partition_point(|&x| x < to)
}

/// Appends the union of two ascending sequences, each value once.
pub(super) fn merge_distinct(a: &[u32], b: impl Iterator<Item = u32>, out: &mut Vec<u32>) {
    let mut a = a.iter().copied().peekable();
    let mut b = b.peekable();
    loop {
        let next = match (a.peek(), b.peek()) {
            (Some(&x), Some(&y)) if x <= y => a.next(),
            (Some(_), None) => a.next(),
            (_, Some(_)) => b.next(),
            (None, None) => return,
        };
        if next != out.last().copied()
            && let Some(v) = next
        {
            out.push(v);
        }
    }
}
