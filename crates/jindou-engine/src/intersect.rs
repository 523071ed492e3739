//! Intersections of sorted lists.
//!
//! | shape | algorithm | cost |
//! |---|---|---|
//! | one has at most 16 ids (8 without AVX2), the other 64 | compare every pair, no branch on data | 0.5 ns per id |
//! | one is 16 times as long, or has consecutive ids | leapfrog: each seeks the other's id | matches + jumps × log |
//! | otherwise | merge, no branch on data | short + long |

use crate::id_test::clip;

const TINY: usize = 8;
const SCANNED: usize = 64;
const LOPSIDED: usize = 16;

/// Writes the ids that are in both sorted lists to `out`, ascending; returns how many. `out` must have space for the
/// shorter list.
#[inline]
pub(crate) fn intersect(a: &[u32], b: &[u32], out: &mut [u32]) -> usize {
    intersect_inside(a, b, 0, u32::MAX, out)
}

/// As [`intersect`], for the ids in `start..start + width` only.
#[inline]
pub(crate) fn intersect_inside(
    a: &[u32],
    b: &[u32],
    start: u32,
    width: u32,
    out: &mut [u32],
) -> usize {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if short.len() <= TINY && long.len() <= SCANNED && out.len() >= short.len() {
        // Copy the ids that are in the interval. The rest of the array is 0, which is not an id.
        let mut inside = [0u32; TINY + 1];
        let mut n = 0;
        for &x in short {
            inside[n] = x;
            n += usize::from(x.wrapping_sub(start) < width);
        }
        inside[n] = 0;
        let mut w = 0;
        for &x in &inside[..n] {
            let mut hit = false;
            for &y in long {
                hit |= x == y;
            }
            out[w] = x;
            w += usize::from(hit);
        }
        return w;
    }
    intersect_clipped(short, long, start, width, out)
}

/// A list as a range of an array. The array's elements after the list may be read, and are then ignored.
#[derive(Clone, Copy)]
pub(crate) struct Placed<'l> {
    pub array: &'l [u32],
    pub from: usize,
    pub len: usize,
}

impl<'l> Placed<'l> {
    /// The list with these bounds; empty if they are damaged.
    #[inline(always)]
    pub fn new(array: &'l [u32], bounds: [u32; 2]) -> Self {
        let (from, to) = (bounds[0] as usize, bounds[1] as usize);
        if from <= to && to <= array.len() {
            Self {
                array,
                from,
                len: to - from,
            }
        } else {
            Self {
                array,
                from: 0,
                len: 0,
            }
        }
    }

    #[inline(always)]
    pub fn list(self) -> &'l [u32] {
        self.array
            .get(self.from..self.from + self.len)
            .unwrap_or(&[])
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn eight(self, at: usize) -> Option<&'l [u32; TINY]> {
        self.array.get(self.from + at..)?.first_chunk()
    }
}

/// As [`intersect_inside`], for a short list of at most 16 ids, which are held in registers and compared with every id
/// of the long list. There are no loops for remainders, and only one loop end to mispredict. `None` if the lists are
/// too long.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn intersect_in_registers(
    a: Placed<'_>,
    b: Placed<'_>,
    start: u32,
    width: u32,
    out: &mut [u32],
) -> Option<usize> {
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_cmpgt_epi32,
        _mm256_min_epu32, _mm256_movemask_ps, _mm256_or_si256, _mm256_set1_epi32,
        _mm256_setr_epi32, _mm256_setzero_si256, _mm256_sub_epi32,
    };
    let (short, long) = if a.len <= b.len { (a, b) } else { (b, a) };
    if short.len == 0 {
        return Some(0);
    }
    if short.len > 2 * TINY || long.len > SCANNED || width == 0 || out.len() < short.len {
        return None;
    }
    let load = |v: &[u32; TINY]| {
        let [a, b, c, d, e, f, g, h] = v.map(|x| x as i32);
        _mm256_setr_epi32(a, b, c, d, e, f, g, h)
    };
    let bits = |v: __m256i| _mm256_movemask_ps(_mm256_castsi256_ps(v)) as u32;
    let lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    // A bit for each lane that is part of the list and whose id is in the interval.
    let counts = |v: __m256i, len: usize| {
        let d = _mm256_sub_epi32(v, _mm256_set1_epi32(start as i32));
        let inside = _mm256_cmpeq_epi32(
            _mm256_min_epu32(d, _mm256_set1_epi32((width - 1) as i32)),
            d,
        );
        bits(_mm256_and_si256(
            inside,
            _mm256_cmpgt_epi32(_mm256_set1_epi32(len as i32), lane),
        ))
    };
    let first = short.eight(0)?;
    let low = load(first);
    let low_counts = counts(low, short.len);
    let list = long.list();
    let mut w = 0;
    let mut write = |from: &[u32; TINY], mut mask: u32, w: &mut usize| {
        while mask != 0 {
            out[*w] = from[mask.trailing_zeros() as usize % TINY];
            *w += 1;
            mask &= mask - 1;
        }
    };
    if short.len <= TINY {
        if low_counts == 0 {
            return Some(0);
        }
        let mut hits = _mm256_setzero_si256();
        for &y in list {
            hits = _mm256_or_si256(hits, _mm256_cmpeq_epi32(low, _mm256_set1_epi32(y as i32)));
        }
        write(first, bits(hits) & low_counts, &mut w);
        return Some(w);
    }
    let second = short.eight(TINY)?;
    let high = load(second);
    let high_counts = counts(high, short.len - TINY);
    if low_counts | high_counts == 0 {
        return Some(0);
    }
    let (mut hits, mut high_hits) = (_mm256_setzero_si256(), _mm256_setzero_si256());
    for &y in list {
        let y = _mm256_set1_epi32(y as i32);
        hits = _mm256_or_si256(hits, _mm256_cmpeq_epi32(low, y));
        high_hits = _mm256_or_si256(high_hits, _mm256_cmpeq_epi32(high, y));
    }
    write(first, bits(hits) & low_counts, &mut w);
    write(second, bits(high_hits) & high_counts, &mut w);
    Some(w)
}

#[inline(never)]
fn intersect_clipped(a: &[u32], b: &[u32], start: u32, width: u32, out: &mut [u32]) -> usize {
    let end = start.saturating_add(width);
    intersect_long(clip(a, start, end), clip(b, start, end), out)
}

fn intersect_long(a: &[u32], b: &[u32], out: &mut [u32]) -> usize {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let (Some(&s0), Some(&s1)) = (short.first(), short.last()) else {
        return 0;
    };
    // A leapfrog skips the ids outside the common range by itself.
    if short.len() * LOPSIDED < long.len() || has_runs(short) {
        return leapfrog(short, long, out);
    }
    let long = clip(long, s0, s1.saturating_add(1));
    let (Some(&l0), Some(&l1)) = (long.first(), long.last()) else {
        return 0;
    };
    let short = clip(short, l0, l1.saturating_add(1));
    if short.len() * LOPSIDED < long.len() || long.len() * LOPSIDED < short.len() {
        leapfrog(short, long, out)
    } else {
        merge(short, long, out)
    }
}

/// Estimates from a few positions whether most ids are followed by the next id.
fn has_runs(list: &[u32]) -> bool {
    let step = list.len() / 4;
    if step < 2 {
        return false;
    }
    let mut runs = 0;
    for k in 0..4 {
        let at = k * step;
        runs += u32::from(list[at + 1].wrapping_sub(list[at]) == 1);
    }
    runs >= 2
}

/// Intersects by jumps: the list whose current id is smaller jumps to the other list's id. Since ids ascend, a jump is
/// at most as far as the difference of the ids; within a run of consecutive ids it is exactly as far.
fn leapfrog(a: &[u32], b: &[u32], out: &mut [u32]) -> usize {
    let (mut i, mut j, mut w) = (0, 0, 0);
    while let (Some(&x), Some(&y)) = (a.get(i), b.get(j)) {
        if x == y {
            match out.get_mut(w) {
                Some(o) => *o = x,
                None => return w,
            }
            w += 1;
            i += 1;
            j += 1;
        } else if x < y {
            i = seek(a, i, y, (y - x) as usize);
        } else {
            j = seek(b, j, x, (x - y) as usize);
        }
    }
    w
}

/// The first position after `at` whose id is at least `v`; it is at most `at + bound`.
#[inline]
fn seek(list: &[u32], at: usize, v: u32, bound: usize) -> usize {
    if list.get(at + bound) == Some(&v) {
        return at + bound;
    }
    let mut step = 1;
    while list.get(at + step).is_some_and(|&x| x < v) {
        step *= 2;
    }
    let from = at + step / 2 + usize::from(step == 1);
    let to = (at + step).min(list.len());
    from.min(to) + list[from.min(to)..to].partition_point(|&x| x < v)
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

/// Keeps the ids of `acc` that are in `list`, in place; returns how many. Both are sorted.
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

/// Returns true if the sorted list contains `v`.
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
            range in (0u32..200, 0u32..50_000),
        ) {
            let want: Vec<u32> = a.intersection(&b).copied().collect();
            let (a, b): (Vec<_>, Vec<_>) = (a.into_iter().collect(), b.into_iter().collect());
            let mut out = vec![0; a.len().min(b.len())];
            let n = intersect(&a, &b, &mut out);
            prop_assert_eq!(&out[..n], &want[..]);
            let (start, width) = (range.0, range.1);
            let inside: Vec<u32> =
                want.iter().copied().filter(|v| v.wrapping_sub(start) < width).collect();
            let n = intersect_inside(&a, &b, start, width, &mut out);
            prop_assert_eq!(&out[..n], &inside[..]);
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                let array: Vec<u32> = a.iter().chain(&b).chain(&[0; 16]).copied().collect();
                let (m, n) = (a.len() as u32, (a.len() + b.len()) as u32);
                let (x, y) = (Placed::new(&array, [0, m]), Placed::new(&array, [m, n]));
                // SAFETY: the processor has AVX2, as tested just before.
                let got = unsafe { intersect_in_registers(x, y, start, width, &mut out) };
                if let Some(n) = got {
                    prop_assert_eq!(&out[..n], &inside[..]);
                }
            }
            for way in [merge, leapfrog] {
                let n = way(&a, &b, &mut out);
                prop_assert_eq!(&out[..n], &want[..]);
            }
            let mut acc = a.clone();
            let n = retain_in(&mut acc, &b);
            prop_assert_eq!(&acc[..n], &want[..]);
            for v in want { prop_assert!(has(&a, v) && has(&b, v)); }
        }
    }
}
