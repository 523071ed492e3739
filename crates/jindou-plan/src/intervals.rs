//! Sets of vertex ids as ascending, disjoint, half-open intervals, and how many keys of a segment they contain.

use crate::Intervals;
use jindou_graph::Graph;
use jindou_graph::segment::{KeyFinder, RankBlock, Segment, folded};
use jindou_model::{FIRST_QUERY_ID, FIRST_TAIL_ID};
use std::borrow::Cow;

/// Number of intervals up to which an overlap is counted. Of more intervals, this many are sampled.
const MAX_COUNTED: usize = 512;

/// All ids that terms added by updates have or may get.
const TAIL: [u32; 2] = [FIRST_TAIL_ID, FIRST_QUERY_ID];

/// Intervals of the given ids of the base, and of all ids that terms added by updates have or may get.
pub(crate) fn of_base(ids: Vec<u32>) -> Intervals {
    let mut out = of_ids(ids);
    out.push(TAIL);
    out
}

/// Intervals without ids that have no term yet: [`TAIL`] is cut off after the graph's last term. O(1), unless the
/// intervals have to be copied.
pub(crate) fn of_terms<'a>(all: &'a [[u32; 2]], graph: &dyn Graph) -> Cow<'a, [[u32; 2]]> {
    match all.split_last() {
        Some((last, rest)) if last[1] == TAIL[1] => {
            let terms = graph.vertices().saturating_sub(graph.dense_ids());
            let end = TAIL[0].saturating_add(terms).min(TAIL[1]);
            let mut out = rest.to_vec();
            if last[0] < end {
                out.push([last[0], end]);
            }
            Cow::Owned(out)
        }
        _ => Cow::Borrowed(all),
    }
}

/// Intervals without [`TAIL`], which would distort a sample.
pub(crate) fn without_open_end(all: &[[u32; 2]]) -> &[[u32; 2]] {
    match all.split_last() {
        Some((last, rest)) if last[1] == TAIL[1] => rest,
        _ => all,
    }
}

/// Intersection of two sets. O(a + b).
#[must_use]
pub fn intersect(a: &[[u32; 2]], b: &[[u32; 2]]) -> Intervals {
    let mut out = Intervals::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let (start, end) = (x[0].max(y[0]), x[1].min(y[1]));
        if start < end {
            out.push([start, end]);
        }
        if x[1] <= y[1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}

/// Number of ids in all intervals.
pub(crate) fn count(a: &[[u32; 2]]) -> f64 {
    let n: u64 = a.iter().map(|r| u64::from(r[1].saturating_sub(r[0]))).sum();
    n as f64
}

/// Number of ids that are at least `first`.
pub(crate) fn from(a: &[[u32; 2]], first: u32) -> f64 {
    count(&intersect(a, &[[first, u32::MAX]]))
}

/// Intervals of some ids, in any order.
pub(crate) fn of_ids(mut ids: Vec<u32>) -> Intervals {
    ids.sort_unstable();
    let mut out = Intervals::new();
    for id in ids {
        match out.last_mut() {
            Some(r) if id < r[1] => {}
            Some(r) if id == r[1] => r[1] += 1,
            _ => out.push([id, id.saturating_add(1)]),
        }
    }
    out
}

/// Keys of a segment whose finder consists of intervals; `None` for other finders.
pub(crate) fn of_keys(segment: &Segment<'_>) -> Option<Intervals> {
    match segment.finder {
        KeyFinder::Empty => Some(Intervals::new()),
        KeyFinder::Intervals(runs) => Some(
            runs.iter()
                .filter(|r| r.start < r.end)
                .map(|r| [r.start, r.end])
                .collect(),
        ),
        KeyFinder::Bitmap { .. }
        | KeyFinder::Directory { .. }
        | KeyFinder::FoldedBitmap { .. }
        | KeyFinder::FoldedDirectory { .. } => None,
    }
}

/// Number of the segment's keys in `within`, and whether it is exact: up to 512 intervals it is, otherwise it is
/// estimated from 512 evenly chosen ones. O(min(intervals, 512) × log keys + intervals).
pub(crate) fn overlap(segment: &Segment<'_>, within: &[[u32; 2]]) -> (f64, bool) {
    let step = within.len().div_ceil(MAX_COUNTED).max(1);
    let (mut keys, mut ids) = (0.0, 0.0);
    for r in within.iter().step_by(step) {
        keys += f64::from(rank(segment, r[1]).saturating_sub(rank(segment, r[0])));
        ids += f64::from(r[1].saturating_sub(r[0]));
    }
    if step == 1 {
        return (keys, true);
    }
    (keys / ids.max(1.0) * count(within), false)
}

/// Number of keys smaller than `v`.
fn rank(segment: &Segment<'_>, v: u32) -> u32 {
    match segment.finder {
        KeyFinder::Empty => 0,
        KeyFinder::Intervals(runs) => {
            let at = runs.partition_point(|r| r.start < v);
            match at.checked_sub(1).and_then(|i| runs.get(i)) {
                Some(r) => r.base.saturating_add(v.min(r.end).saturating_sub(r.start)),
                None => 0,
            }
        }
        KeyFinder::Bitmap { first, blocks } => rank_in_bits(segment, first, blocks, v),
        KeyFinder::FoldedBitmap {
            fold,
            first,
            blocks,
        } => rank_in_bits(segment, first, blocks, folded(v, fold)),
        KeyFinder::Directory { keys, .. } | KeyFinder::FoldedDirectory { keys, .. } => {
            keys.partition_point(|&k| k < v) as u32
        }
    }
}

fn rank_in_bits(segment: &Segment<'_>, first: u32, blocks: &[RankBlock], v: u32) -> u32 {
    let Some(d) = v.checked_sub(first) else {
        return 0;
    };
    match blocks.get((d / 64) as usize) {
        Some(b) => b
            .rank
            .saturating_add((b.bits & ((1u64 << (d % 64)) - 1)).count_ones()),
        None => segment.key_count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jindou_graph::segment::SegmentBuilder;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(a: &[[u32; 2]]) -> BTreeSet<u32> {
        a.iter().flat_map(|r| r[0]..r[1]).collect()
    }

    proptest! {
        #[test]
        fn intervals_are_sets(
            a in prop::collection::btree_set(1u32..200, 0..80),
            b in prop::collection::btree_set(1u32..200, 0..80),
            scale in prop::sample::select(vec![1u32, 3, 40]),
        ) {
            let ia = of_ids(a.iter().copied().collect());
            let ib = of_ids(b.iter().copied().collect());
            prop_assert_eq!(set(&ia), a.clone());
            let both: BTreeSet<u32> = a.intersection(&b).copied().collect();
            prop_assert_eq!(set(&intersect(&ia, &ib)), both);
            prop_assert_eq!(count(&ia), a.len() as f64);
            // With a larger `scale` the keys are sparser, so that the segment uses intervals, a bitmap or a directory.
            let mut builder = SegmentBuilder::new(false);
            for &k in &b {
                builder.push(k * scale, 1, 0);
            }
            let arrays = builder.finish().unwrap();
            let keys: BTreeSet<u32> = b.iter().map(|k| k * scale).collect();
            let (n, exact) = overlap(&arrays.view(), &ia);
            prop_assert!(exact);
            prop_assert_eq!(n, keys.iter().filter(|k| a.contains(k)).count() as f64);
            if let Some(i) = of_keys(&arrays.view()) {
                prop_assert_eq!(set(&i), keys);
            }
        }
    }
}
