//! Samples a few neighbour lists where counts alone mislead: the ends of an edge are often correlated with the classes
//! of both (a part of a university is a department, a part of a department is not).

use jindou_graph::segment::{NO_KEY, Segment};

/// Number of sampled lists; reading one takes about two cache misses.
const LISTS: u32 = 16;
/// Number of sampled values on which a comparison is tried; each takes a few cache misses.
const VALUES: u32 = 32;
/// Number of intervals up to which the ids of a list that they contain are counted; for more, they are sampled.
const MAX_COUNTED: usize = 8;

/// The mean length of the lists of keys in `anchors`, if given, and the share of these lists' members that are in
/// `far`, if given. `None` also if all sampled lists are empty. O(lists × intervals × log degree).
pub(crate) fn sample(
    segment: &Segment<'_>,
    anchors: Option<&[[u32; 2]]>,
    far: Option<&[[u32; 2]]>,
) -> (Option<f64>, Option<f64>) {
    if anchors.is_none() && far.is_none() {
        return (None, None);
    }
    let (mut lists, mut total, mut inside_total) = (0.0, 0.0, 0.0);
    let population = match anchors {
        Some(w) => crate::intervals::count(w),
        None => f64::from(segment.key_count),
    };
    for i in 0..LISTS {
        // Sampled keys are evenly spread, each with a different offset, so that no period in the data distorts the
        // sample.
        let offset = (f64::from(i) * 0.618_034).fract();
        let at = ((f64::from(i) + offset) / f64::from(LISTS) * population) as u32;
        let k = match anchors {
            Some(w) => nth(w, at).map_or(NO_KEY, |v| segment.finder.find(v)),
            None => at,
        };
        let list = segment.list(k);
        if !list.is_empty() {
            lists += 1.0;
            total += list.len() as f64;
            inside_total += far.map_or(0.0, |w| inside(list, w));
        }
    }
    if lists == 0.0 {
        return (None, None);
    }
    // That no sampled member is in `far` does not mean that none is, so half a member is assumed.
    let share = far.map(|_| (f64::max(inside_total, 0.5) / total).min(1.0));
    (anchors.map(|_| total / lists), share)
}

/// One neighbour of each of some evenly spread keys. O(`VALUES`).
pub(crate) fn values(segment: &Segment<'_>) -> Vec<u32> {
    let keys = segment.key_count;
    (0..VALUES.min(keys))
        .filter_map(|i| {
            let offset = (f64::from(i) * 0.618_034).fract();
            let at = (f64::from(i) + offset) / f64::from(VALUES.min(keys)) * f64::from(keys);
            let list = segment.list(at as u32);
            list.get(i as usize % list.len().max(1)).copied()
        })
        .collect()
}

/// Number of ids of a sorted list that are in `within`: counted for few intervals, otherwise estimated from a sample.
pub(crate) fn inside(list: &[u32], within: &[[u32; 2]]) -> f64 {
    const PROBES: usize = 32;
    if within.len() <= MAX_COUNTED {
        let n: usize = within
            .iter()
            .map(|r| {
                list.partition_point(|&v| v < r[1])
                    .saturating_sub(list.partition_point(|&v| v < r[0]))
            })
            .sum();
        return n as f64;
    }
    let step = (list.len() / PROBES).max(1);
    let probes = list.iter().step_by(step);
    let tried = probes.len().max(1) as f64;
    let hits = probes.filter(|v| contains(within, **v)).count() as f64;
    hits / tried * list.len() as f64
}

fn contains(within: &[[u32; 2]], v: u32) -> bool {
    let at = within.partition_point(|r| r[1] <= v);
    within.get(at).is_some_and(|r| r[0] <= v)
}

/// The `n`-th id of the intervals, from 0; `None` if they have fewer ids.
fn nth(within: &[[u32; 2]], mut n: u32) -> Option<u32> {
    for r in within {
        let len = r[1].saturating_sub(r[0]);
        if n < len {
            return Some(r[0] + n);
        }
        n -= len;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use jindou_graph::segment::SegmentBuilder;

    #[test]
    fn correlated_ends_are_seen() {
        // Keys 1..=100 have 20 neighbours each, from 1000 on; keys 101..=900 have one each, from 5000 on.
        let mut b = SegmentBuilder::new(false);
        for k in 1..=900u32 {
            for i in 0..if k <= 100 { 20 } else { 1 } {
                b.push(
                    k,
                    if k <= 100 {
                        1_000 + k * 20 + i
                    } else {
                        5_000 + k
                    },
                    0,
                );
            }
        }
        let arrays = b.finish().unwrap();
        let (mean, share) = sample(&arrays.view(), Some(&[[1, 101]]), Some(&[[1_000, 5_000]]));
        assert_eq!((mean, share), (Some(20.0), Some(1.0)));
        let (mean, share) = sample(&arrays.view(), Some(&[[101, 901]]), Some(&[[1_000, 5_000]]));
        assert_eq!(mean, Some(1.0));
        assert!(share.unwrap() < 0.05);
        assert_eq!(sample(&arrays.view(), None, None), (None, None));
        assert_eq!(
            sample(&arrays.view(), Some(&[[2_000, 2_100]]), None),
            (None, None)
        );
    }

    #[test]
    fn lists_are_counted() {
        let list: Vec<u32> = (0..1_000).collect();
        assert_eq!(inside(&list, &[[10, 20], [500, 2_000]]), 510.0);
        let many: Vec<[u32; 2]> = (0..50).map(|i| [i * 20, i * 20 + 10]).collect();
        let n = inside(&list, &many);
        assert!((300.0..700.0).contains(&n), "{n}");
    }
}
