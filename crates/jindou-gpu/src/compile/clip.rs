//! Clipping of neighbour lists to the intervals that a step's results must lie in, so that ids outside are neither
//! counted nor read.
//!
//! A list is sorted, so its ids within the hull of the intervals (from the start of the first one to the end of the
//! last one) are contiguous. The list of a constant is clipped here on the host; lists of keys in a column are clipped
//! on the device when they are measured, if that is estimated to be faster. With a single interval, ids of a clipped
//! list need no further test.

use super::{DeviceList, DeviceWithin, StepCompiler, intervals_of, scope_of};
use crate::params;
use crate::resident::alone;
use jindou_graph::Graph;
use jindou_graph::segment::{GraphScope, KeyFinder, Segment};
use jindou_model::{Direction, PredicateId, Result};
use jindou_plan::{EdgeList, IdFilter, Operand};

/// A list is clipped if on average at least this many of its ids lie outside. Clipping reads four to six sectors of 32
/// bytes (both ends of the list, and a binary search for one bound), as the test
/// `cutting_lists_pays_where_they_are_long` counts. Reading one unneeded id costs as much as half a sector on an H200.
const LEAST_OUTSIDE: f64 = 12.0;
/// As above, if rows come in the order of their keys, so that adjacent rows share sectors.
const LEAST_IN_ORDER: f64 = 2.0;
/// A list whose clipped length is more than this many times that of the shortest one is not clipped, since it is
/// searched rather than read.
const LONGER: f64 = 8.0;
/// Assumed share of a list's neighbours that lie in the intervals, if it is unknown.
const UNKNOWN: f64 = 0.5;

/// How many of a segment's neighbours lie in given intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FarShare {
    /// Share of the distinct neighbours that lie inside, from 0 to 1.
    pub inside: f64,
    /// True if no neighbour lies outside.
    pub is_all: bool,
}

/// Number of a segment's keys below an id; `None` for finders in which counting would read all keys.
fn keys_below(segment: &Segment<'_>, id: u32) -> Option<u32> {
    Some(match segment.finder {
        KeyFinder::Empty => 0,
        KeyFinder::Intervals(runs) => runs
            .iter()
            .map(|r| id.min(r.end).saturating_sub(r.start))
            .fold(0, u32::saturating_add),
        KeyFinder::Bitmap { first, blocks } => {
            let bit = id.saturating_sub(first);
            match blocks.get((bit / 64) as usize) {
                Some(b) => b.rank + (b.bits & ((1 << (bit % 64)) - 1)).count_ones(),
                None => segment.key_count,
            }
        }
        KeyFinder::Directory { keys, .. } => keys.partition_point(|&k| k < id) as u32,
        KeyFinder::FoldedBitmap { .. } | KeyFinder::FoldedDirectory { .. } => return None,
    })
}

/// The share of a segment's neighbours that lie in intervals, computed from the keys of the opposite direction (which
/// are the same vertices). `None` if that would read many of them. O(intervals log keys).
pub(crate) fn far_share(
    predicate: PredicateId,
    direction: Direction,
    scope: GraphScope<'_>,
    intervals: &[[u32; 2]],
    snapshot: &dyn Graph,
) -> Option<FarShare> {
    let view = snapshot.edges(predicate, direction.reverse());
    let segment = alone(&view, scope).ok()?;
    let mut inside = 0u64;
    for &[a, b] in intervals {
        let (below, until) = (keys_below(&segment, a)?, keys_below(&segment, b)?);
        inside += u64::from(until.saturating_sub(below));
    }
    let all = u64::from(segment.key_count);
    Some(FarShare {
        inside: inside as f64 / all.max(1) as f64,
        is_all: view.patch().is_none() && inside == all,
    })
}

impl FarShare {
    /// True if lists of mean length `degree` are to be clipped. `this` is the share of ids inside, if known; `in_order`
    /// is true if rows come in the order of their keys.
    pub fn pays(this: Option<Self>, degree: f64, in_order: bool) -> bool {
        let outside = this.map_or(UNKNOWN, |s| 1.0 - s.inside);
        degree * outside
            >= if in_order {
                LEAST_IN_ORDER
            } else {
                LEAST_OUTSIDE
            }
    }
}

/// The index of the first id of an ascending list that is inside a hull, and the number of ids inside.
fn cut(ids: &[u32], hull: [u32; 2]) -> (u32, u32) {
    let [from, to] = hull.map(|bound| ids.partition_point(|&id| id < bound) as u32);
    (from, to.saturating_sub(from))
}

impl DeviceWithin {
    /// The test that candidates must still pass: none if there is a single interval and all lists are clipped to it.
    pub fn left(&self, lists: &[DeviceList]) -> params::Within {
        let is_cut = |l: &DeviceList| match l.constant {
            // The only list of an expansion is measured for each row even if its key is a constant, so `clips` applies
            // to it.
            Some(_) if lists.len() > 1 => l.cut,
            _ => l.clips,
        };
        if self.params.count == 1 && lists.iter().all(is_cut) {
            return bytemuck::Zeroable::zeroed();
        }
        self.params
    }
}

impl StepCompiler<'_> {
    /// The lists of an expansion, marked for clipping, and the part of the condition `within` that must still be
    /// tested: none if all neighbours of some list satisfy it.
    pub(super) fn clipped(
        &mut self,
        lists: &[EdgeList],
        within: Option<&IdFilter>,
    ) -> Result<(Vec<DeviceList>, DeviceWithin)> {
        let snapshot = self.snapshot;
        let mut intervals = within.map(|w| intervals_of(w, snapshot));
        let mut made = Vec::with_capacity(lists.len());
        let mut shares = Vec::with_capacity(lists.len());
        for list in lists {
            let scope = scope_of(&list.graph)?;
            shares.push(intervals.as_deref().and_then(|intervals| {
                far_share(list.predicate, list.direction, scope, intervals, snapshot)
            }));
            made.push(self.list(list)?);
        }
        // Every result is in all lists, so the condition is void if all ids of one list satisfy it.
        if shares.iter().flatten().any(|s| s.is_all) {
            intervals = None;
        }
        let within = DeviceWithin::new(self.device, intervals.as_deref(), false)?;
        if intervals.is_some() {
            // Mean number of ids inside the intervals. Lists much longer than the shortest are searched for its ids and
            // hardly ever read sequentially.
            let inside = |(to, share): (&DeviceList, &Option<FarShare>)| {
                let p = &to.segment.params;
                let degree = match to.constant {
                    Some((_, length)) => f64::from(length),
                    None => f64::from(p.edges) / f64::from(p.key_count.max(1)),
                };
                degree * share.map_or(UNKNOWN, |s| s.inside)
            };
            let inside: Vec<f64> = made.iter().zip(&shares).map(inside).collect();
            let least = inside.iter().copied().fold(f64::MAX, f64::min).max(1.0);
            let of_all = made.iter_mut().zip(lists).zip(shares).zip(inside);
            for (((to, list), share), inside) in of_all {
                match list.anchor {
                    Operand::Const(v) => self.cut_constant(to, list, v, within.hull)?,
                    Operand::Slot(_) => {}
                }
                let p = &to.segment.params;
                let degree = f64::from(p.edges) / f64::from(p.key_count.max(1));
                let in_order = matches!(list.anchor, Operand::Slot(s) if self.first == Some(s));
                to.clips = FarShare::pays(share, degree, in_order) && inside <= LONGER * least;
            }
        }
        Ok((made, within))
    }

    /// Clips the list of the constant `v` to `hull` by changing its start and length.
    fn cut_constant(
        &self,
        to: &mut DeviceList,
        list: &EdgeList,
        v: u32,
        hull: [u32; 2],
    ) -> Result<()> {
        let scope = scope_of(&list.graph)?;
        let view = self.snapshot.edges(list.predicate, list.direction);
        let mut scratch = Vec::new();
        let ids = view.read(v, scope, &mut scratch);
        if let Some((start, length)) = &mut to.constant
            && ids.len() == *length as usize
        {
            let (from, n) = cut(ids, hull);
            (*start, *length) = (*start + from, n);
            (to.most, to.cut) = (Some(n), true);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jindou_graph::segment::SegmentBuilder;

    #[test]
    fn lists_are_cut_where_ids_begin_and_end_to_be_inside() {
        let ids = [3, 5, 6, 90];
        for (hull, want) in [
            ([0, u32::MAX], (0, 4)),
            ([4, 7], (1, 2)),
            ([5, 6], (1, 1)),
            ([91, 100], (4, 0)),
            ([0, 3], (0, 0)),
            ([0, 0], (0, 0)),
            ([7, 5], (3, 0)),
        ] {
            assert_eq!(cut(&ids, hull), want, "{hull:?}");
        }
        assert_eq!(cut(&[], [1, 9]), (0, 0));
    }

    /// Compares `keys_below` with counting one by one, for each kind of finder.
    #[test]
    fn keys_below_an_id_are_counted() {
        for (step, runs) in [(1, 40), (3, 1), (700, 1)] {
            let mut builder = SegmentBuilder::new(false);
            let mut keys = vec![];
            for i in 0..3000u32 {
                keys.push(7 + i * step + i / (3000 / runs) * 5);
            }
            for &key in &keys {
                builder.push(key, 1, 0);
            }
            let arrays = builder.finish().unwrap();
            let segment = arrays.view();
            let last = keys[keys.len() - 1];
            for id in (0..last + 200).step_by(17).chain([u32::MAX, last, 7, 8]) {
                let want = keys.partition_point(|&k| k < id) as u32;
                assert_eq!(keys_below(&segment, id), Some(want), "{id}, step {step}");
            }
        }
    }
}
