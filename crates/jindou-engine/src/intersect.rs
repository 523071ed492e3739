//! Intersections of sorted lists.
//!
//! | shape | way | cost |
//! |---|---|---|
//! | both at most 8 long | every pair compared, no branch on data | a few ns |
//! | one is a run of consecutive ids | the other, clipped | O(log) + copy |
//! | one 16 times the other | each id of the short one sought by galloping | short × log |
//! | else | merge, no branch on data | short + long |

use crate::within::clip;

const TINY: usize = 8;
const LOPSIDED: usize = 16;

/// Writes the ids in both sorted lists to `out` (ascending; `out` must hold the shorter list's length)
/// and returns how many.
#[inline]
pub(crate) fn intersect(a: &[u32], b: &[u32], out: &mut [u32]) -> usize {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if long.len() <= TINY {
        let mut w = 0;
        for &x in short {
            let mut hit = false;
            for &y in long {
                hit |= x == y;
            }
            if let Some(o) = out.get_mut(w) {
                *o = x;
            }
            w += usize::from(hit);
        }
        return w;
    }
    intersect_long(short, long, out)
}

fn intersect_long(short: &[u32], long: &[u32], out: &mut [u32]) -> usize {
    let (Some(&s0), Some(&s1)) = (short.first(), short.last()) else {
        return 0;
    };
    let long = clip(long, s0, s1.saturating_add(1));
    let (Some(&l0), Some(&l1)) = (long.first(), long.last()) else {
        return 0;
    };
    let short = clip(short, l0, l1.saturating_add(1));
    // Either may be the shorter one now.
    let (short, long) = if short.len() <= long.len() {
        (short, long)
    } else {
        (long, short)
    };
    let (Some(&first), Some(&last)) = (long.first(), long.last()) else {
        return 0;
    };
    if last.wrapping_sub(first) as usize + 1 == long.len() {
        let inside = clip(short, first, last.saturating_add(1));
        // Lists in a damaged file may be unsorted and so longer than `out`.
        let n = inside.len().min(out.len());
        out[..n].copy_from_slice(&inside[..n]);
        return n;
    }
    if short.len() * LOPSIDED < long.len() {
        gallop(short, long, out)
    } else {
        merge(short, long, out)
    }
}

fn gallop(short: &[u32], mut long: &[u32], out: &mut [u32]) -> usize {
    let mut w = 0;
    for &x in short {
        let mut step = 1;
        while step < long.len() && long[step] < x {
            step *= 2;
        }
        let from = step / 2;
        let to = (step + 1).min(long.len());
        let at = from + long[from..to].partition_point(|&y| y < x);
        long = &long[at..];
        match long.first() {
            None => break,
            Some(&y) if y == x => {
                if let Some(o) = out.get_mut(w) {
                    *o = x;
                }
                w += 1;
            }
            Some(_) => {}
        }
    }
    w
}

fn merge(a: &[u32], b: &[u32], out: &mut [u32]) -> usize {
    let (mut i, mut j, mut w) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        if let Some(o) = out.get_mut(w) {
            *o = x;
        }
        w += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    w
}

/// Keeps the first `len` ids of `acc` that are in `list`, in place; returns how many.
pub(crate) fn retain_in(acc: &mut [u32], list: &[u32]) -> usize {
    let mut w = 0;
    if acc.len() * LOPSIDED < list.len() {
        let mut rest = list;
        for i in 0..acc.len() {
            let x = acc[i];
            let at = rest.partition_point(|&y| y < x);
            rest = &rest[at..];
            acc[w] = x;
            w += usize::from(rest.first() == Some(&x));
        }
        return w;
    }
    let (mut i, mut j) = (0, 0);
    while i < acc.len() && j < list.len() {
        let (x, y) = (acc[i], list[j]);
        acc[w] = x;
        w += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    w
}

/// True if the sorted list has `v`.
#[inline]
pub(crate) fn has(list: &[u32], v: u32) -> bool {
    if list.len() <= TINY {
        let mut hit = false;
        for &x in list {
            hit |= x == v;
        }
        return hit;
    }
    list.binary_search(&v).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(max: u32, len: usize) -> impl Strategy<Value = BTreeSet<u32>> {
        prop_oneof![
            prop::collection::btree_set(0..max, 0..len),
            (0..max, 0..len as u32).prop_map(|(a, n)| (a..a + n).collect()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn all_ways_agree_with_sets(
            a in prop_oneof![set(60, 8), set(300, 200), set(100_000, 400)],
            b in prop_oneof![set(60, 8), set(300, 200), set(100_000, 400)],
        ) {
            let want: Vec<u32> = a.intersection(&b).copied().collect();
            let (a, b): (Vec<_>, Vec<_>) = (a.into_iter().collect(), b.into_iter().collect());
            let mut out = vec![0; a.len().min(b.len())];
            let n = intersect(&a, &b, &mut out);
            prop_assert_eq!(&out[..n], &want[..]);
            let mut acc = a.clone();
            let n = retain_in(&mut acc, &b);
            prop_assert_eq!(&acc[..n], &want[..]);
            for v in want { prop_assert!(has(&a, v) && has(&b, v)); }
        }
    }
}
