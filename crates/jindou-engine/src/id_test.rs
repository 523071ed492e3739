//! Tests whether ids are in a set of intervals, such as the instances of a class or the keys of a predicate, with the
//! changes that updates made.

use jindou_graph::segment::{Dirty, GraphScope};
use jindou_graph::{Edges, Graph};
use jindou_model::FIRST_TAIL_ID;
use jindou_plan::TouchedBy;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Largest number of ids changed by updates that are merged into the intervals in advance. Loops then test intervals
/// only, as if there had been no updates.
const FEW: u64 = 64;

/// A condition on a vertex: its id is in ascending, disjoint, non-empty intervals. There is a form for each fast test.
#[derive(Clone, Debug)]
pub(crate) enum IdTest<'a> {
    /// No condition.
    All,
    /// One interval: its first id and its width.
    One(u32, u32),
    /// Several intervals.
    Many(Arc<Runs>),
    /// Intervals, except that vertices which updates touched are looked up.
    Except(Arc<Except<'a>>),
}

/// The intervals of [`IdTest::Many`].
#[derive(Debug)]
pub(crate) struct Runs {
    /// The intervals, `[start, end)`.
    runs: Vec<[u32; 2]>,
    /// The same set as bitmaps, for the ids of the base and those of the tail; used if scattered updates left many
    /// short intervals.
    bits: Option<[Bits; 2]>,
}

/// A set of ids from `first` on, as one bit per id.
#[derive(Debug)]
struct Bits {
    first: u32,
    words: Vec<u64>,
}

/// Largest number of intervals that are tested by comparing with each.
const HANDFUL: usize = 8;
/// Largest size of the bitmaps, in 64-bit words per interval: filling them then costs about as much as copying the
/// intervals.
const WORDS_A_RUN: usize = 8;

impl Bits {
    fn words(runs: &[[u32; 2]]) -> usize {
        match (runs.first(), runs.last()) {
            (Some(a), Some(b)) => (b[1] - a[0] / 64 * 64).div_ceil(64) as usize,
            _ => 0,
        }
    }

    fn new(runs: &[[u32; 2]]) -> Self {
        let first = runs.first().map_or(0, |r| r[0] / 64 * 64);
        let mut words = vec![0; Self::words(runs)];
        for r in runs {
            set(&mut words, r[0] - first, r[1] - first);
        }
        Self { first, words }
    }

    #[inline]
    fn has(&self, v: u32) -> bool {
        let d = v.wrapping_sub(self.first);
        let word = self.words.get((d / 64) as usize).copied().unwrap_or(0);
        word >> (d % 64) & 1 == 1
    }
}

impl Runs {
    fn new(runs: Vec<[u32; 2]>) -> Self {
        // No interval spans base and tail, since it would contain all ids between them.
        let (base, tail) = runs.split_at(runs.partition_point(|r| r[0] < FIRST_TAIL_ID));
        let bits = runs.len() > HANDFUL
            && Bits::words(base) + Bits::words(tail) <= WORDS_A_RUN * runs.len();
        Self {
            bits: bits.then(|| [Bits::new(base), Bits::new(tail)]),
            runs,
        }
    }

    #[inline]
    pub fn contains(&self, v: u32) -> bool {
        match &self.bits {
            Some(bits) => bits[usize::from(v >= FIRST_TAIL_ID)].has(v),
            None => in_runs(&self.runs, v),
        }
    }

    pub fn len(&self) -> usize {
        self.runs.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u32; 2]> {
        self.runs.iter()
    }
}

/// Sets the bits `from..to`; there must be at least one.
fn set(bits: &mut [u64], from: u32, to: u32) {
    let (a, b) = ((from / 64) as usize, ((to - 1) / 64) as usize);
    let low = !0u64 << (from % 64);
    let high = !0u64 >> (63 - (to - 1) % 64);
    if a == b {
        bits[a] |= low & high;
        return;
    }
    bits[a] |= low;
    bits[a + 1..b].fill(!0);
    bits[b] |= high;
}

/// The tests of [`IdTest::Except`]: one by intervals, and lookups for vertices that updates touched.
#[derive(Debug)]
pub(crate) struct Except<'a> {
    /// Test for vertices that no patch marks as changed.
    clean: IdTest<'a>,
    dirty: Vec<Dirty<'a>>,
    members: Vec<MemberTest<'a>>,
}

#[derive(Debug)]
struct MemberTest<'a> {
    intervals: IdTest<'a>,
    touched: Option<(&'a TouchedBy, Edges<'a>, GraphScope<'a>)>,
    /// Number of edges that were looked up.
    looked: AtomicU64,
}

// Reported only on drop: the patch builds lists for later queries once there were enough lookups, and `note_merged`
// expects this query's own share of them.
impl Drop for MemberTest<'_> {
    fn drop(&mut self) {
        let looked = *self.looked.get_mut();
        if let Some((_, view, _)) = self.touched.as_ref().filter(|_| looked > 0) {
            view.note_merged(looked, looked);
        }
    }
}

impl Except<'_> {
    #[inline]
    fn contains(&self, v: u32) -> bool {
        if self.dirty.iter().any(|d| d.has(v)) {
            return self.look_up(v);
        }
        self.clean.contains(v)
    }

    #[cold]
    fn look_up(&self, v: u32) -> bool {
        self.members.iter().all(|m| match &m.touched {
            Some((by, view, scope)) if view.patch().is_some_and(|p| p.is_dirty(v)) => {
                let mut looked = 0;
                let may = by.may_hold_counting(view, *scope, v, &mut looked);
                if looked > 0 {
                    // A test is nearly always used by one thread, and a few lost counts do not matter.
                    m.looked.store(m.looked.load(Relaxed) + looked, Relaxed);
                }
                may
            }
            _ => m.intervals.contains(v),
        })
    }
}

/// The exact intervals of a filter's ids, for callers that list the ids. Takes O(ids changed by updates).
pub(crate) fn exact_runs(within: &jindou_plan::IdFilter, snapshot: &dyn Graph) -> Vec<[u32; 2]> {
    let exact = match within.is_exact() {
        true => within.of_terms(snapshot),
        false => Cow::Owned(within.exact(snapshot)),
    };
    let some = exact.iter().copied().filter(|r| r[0] < r[1]);
    some.collect()
}

impl<'a> IdTest<'a> {
    pub fn new(within: Option<&'a jindou_plan::IdFilter>, snapshot: &'a dyn Graph) -> Self {
        let Some(within) = within else {
            return Self::All;
        };
        if within.is_exact() {
            return Self::from_intervals(&within.of_terms(snapshot));
        }
        if within.most_exceptions(snapshot) <= FEW {
            return Self::from_intervals(&exact_runs(within, snapshot));
        }
        let members: Vec<MemberTest<'a>> = within
            .members
            .iter()
            .map(|m| MemberTest {
                intervals: Self::from_intervals(&m.intervals),
                touched: m.touched.as_ref().map(|by| {
                    let (view, scope) = by.view(snapshot);
                    (by, view, scope)
                }),
                looked: AtomicU64::new(0),
            })
            .collect();
        let views = members.iter().filter_map(|m| m.touched.as_ref());
        Self::Except(Arc::new(Except {
            clean: Self::from_intervals(&within.intervals),
            dirty: views.filter_map(|t| Some(t.1.patch()?.dirty())).collect(),
            members,
        }))
    }

    /// A test for exactly these intervals of ids.
    pub fn from_intervals(intervals: &[[u32; 2]]) -> Self {
        let some: Vec<[u32; 2]> = intervals.iter().copied().filter(|r| r[0] < r[1]).collect();
        match some[..] {
            [[a, b]] => Self::One(a, b - a),
            [] => Self::One(0, 0),
            _ => Self::Many(Arc::new(Runs::new(some))),
        }
    }

    pub fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    #[inline]
    pub fn contains(&self, v: u32) -> bool {
        match self {
            Self::All => true,
            Self::One(start, width) => v.wrapping_sub(*start) < *width,
            Self::Many(runs) => runs.contains(v),
            Self::Except(e) => e.contains(v),
        }
    }

    /// The smallest interval `[start, end)` that contains all ids of the set; `(0, u32::MAX)` if any id may be in it.
    pub fn hull(&self) -> (u32, u32) {
        match self {
            Self::All | Self::Except(_) => (0, u32::MAX),
            Self::One(start, width) => (*start, start + width),
            Self::Many(many) => (
                many.runs.first().map_or(0, |r| r[0]),
                many.runs.last().map_or(0, |r| r[1]),
            ),
        }
    }

    /// The part of a sorted list inside the hull. For `All` and `One` these are exactly the ids that pass the test;
    /// otherwise each must still be tested. O(log list), or one pass over a short list.
    #[inline]
    pub fn clip<'l>(&self, list: &'l [u32]) -> &'l [u32] {
        if matches!(self, Self::All | Self::Except(_)) {
            return list;
        }
        let (a, b) = self.hull();
        clip(list, a, b)
    }

    /// The intervals; `None` if there is no condition, or intervals alone do not decide.
    pub fn runs(&self) -> Option<Vec<[u32; 2]>> {
        match self {
            Self::All | Self::Except(_) => None,
            Self::One(_, 0) => Some(Vec::new()),
            Self::One(start, width) => Some(vec![[*start, start + width]]),
            Self::Many(many) => Some(many.runs.clone()),
        }
    }

    /// Writes `base + i` to `index` for every `ids[i]` that passes; returns how many.
    pub fn select(&self, ids: &[u32], base: u32, index: &mut [u32]) -> usize {
        let mut w = 0;
        match self {
            Self::One(start, width) => {
                let (start, width) = (*start, *width);
                for (i, &v) in ids.iter().enumerate() {
                    index[w] = base + i as u32;
                    w += usize::from(v.wrapping_sub(start) < width);
                }
            }
            _ => {
                for (i, &v) in ids.iter().enumerate() {
                    index[w] = base + i as u32;
                    w += usize::from(self.contains(v));
                }
            }
        }
        w
    }

    /// Keeps the ids that pass, with their rows, in place; returns how many.
    pub fn retain_rows(&self, ids: &mut [u32], rows: &mut [u32]) -> usize {
        let mut w = 0;
        for i in 0..ids.len().min(rows.len()) {
            let (v, row) = (ids[i], rows[i]);
            ids[w] = v;
            rows[w] = row;
            w += usize::from(self.contains(v));
        }
        w
    }

    /// Keeps the ids that pass, in place; returns how many.
    pub fn retain(&self, ids: &mut [u32]) -> usize {
        if self.is_all() {
            return ids.len();
        }
        let mut w = 0;
        for i in 0..ids.len() {
            let v = ids[i];
            ids[w] = v;
            w += usize::from(self.contains(v));
        }
        w
    }
}

#[inline]
fn in_runs(runs: &[[u32; 2]], v: u32) -> bool {
    if runs.len() <= HANDFUL {
        // A handful of independent comparisons costs less than a binary search with mispredicted branches.
        let mut hit = false;
        for r in runs {
            hit |= v.wrapping_sub(r[0]) < r[1] - r[0];
        }
        return hit;
    }
    let at = runs.partition_point(|r| r[1] <= v);
    runs.get(at).is_some_and(|r| r[0] <= v)
}

/// Length up to which lists are scanned; longer ones are searched.
const SHORT: usize = 12;

/// The part of a sorted list in `[a, b)`.
#[inline]
pub(crate) fn clip(list: &[u32], a: u32, b: u32) -> &[u32] {
    let (from, to) = if list.len() <= SHORT {
        let mut from = 0;
        let mut to = 0;
        for &v in list {
            from += usize::from(v < a);
            to += usize::from(v < b);
        }
        (from, to)
    } else {
        let from = match list.first() {
            Some(&first) if first < a => list.partition_point(|&v| v < a),
            _ => 0,
        };
        let rest = &list[from..];
        // Often no search is needed: the neighbours by a predicate are mostly of one class, whose interval contains
        // them all.
        let to = match rest.last() {
            Some(&last) if last >= b => from + rest.partition_point(|&v| v < b),
            _ => list.len(),
        };
        (from, to)
    };
    &list[from..to]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn runs(gaps: &[(u32, u32)]) -> Vec<[u32; 2]> {
        let mut at = 0;
        gaps.iter()
            .map(|&(gap, len)| {
                let r = [at + gap, at + gap + len];
                at = r[1];
                r
            })
            .collect()
    }

    proptest! {
        #[test]
        fn every_form_agrees_with_a_scan(
            a in prop_oneof![
                prop::collection::vec((1u32..9, 1u32..9), 0..20),
                prop::collection::vec((1u32..90, 1u32..200), 0..40),
                prop::collection::vec((1u32..2000, 1u32..9), 0..40),
            ],
            list in prop::collection::btree_set(0u32..300, 0..60),
        ) {
            let a = runs(&a);
            let inside = |r: &[[u32; 2]], v: u32| r.iter().any(|r| r[0] <= v && v < r[1]);
            let w = IdTest::from_intervals(&a);
            let list: Vec<u32> = list.into_iter().collect();
            for v in 0..9000 {
                prop_assert_eq!(w.contains(v), inside(&a, v));
            }
            let want: Vec<u32> = list.iter().copied().filter(|&v| inside(&a, v)).collect();
            let mut got = list.clone();
            let n = w.retain(&mut got);
            prop_assert_eq!(&got[..n], &want[..]);
            let clipped: Vec<u32> =
                w.clip(&list).iter().copied().filter(|&v| w.contains(v)).collect();
            prop_assert_eq!(clipped, want);
            let mut index = vec![0; list.len()];
            let n = w.select(&list, 0, &mut index);
            prop_assert!(index[..n].iter().all(|&i| inside(&a, list[i as usize])));
        }
    }
}
