//! Assignment of blocks by range: every shard gets the same fraction of each cluster, and all shards get the same
//! number of bytes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Fraction by which a shard's piece of a large cluster may differ from an equal one, so that all shards have equally
/// many bytes in the end.
const SLACK: f64 = 0.1;
/// Number of blocks per shard at which a cluster counts as large: a tenth of a piece is then more than a block.
const LARGE: u32 = 16;
/// The fractional part of the golden ratio: the fractional parts of its multiples are spread evenly.
const GOLDEN: f64 = 0.618_033_988_749_895;

/// Divides the blocks that begin in each cluster into one piece per shard, of equal weight and in the shards' order, so
/// that vertices at the same relative positions of their clusters mostly have the same owner. Some blocks cannot be
/// divided in this way, since a cluster has fewer blocks than shards or one block is heavier than a piece (in a large
/// cluster, than an eighth of one). Those are assigned to the lightest shard, the heaviest first. The pieces of large
/// clusters then compensate for differences, within [`SLACK`].
///
/// `clusters` has the number of ids of each cluster, `weights` the weight of each of `count` blocks; if it is empty,
/// all weigh the same. O(blocks log shards).
pub(super) fn ranges(
    shards: u32,
    shift: u32,
    count: u32,
    clusters: impl Iterator<Item = u32>,
    weights: &[u64],
) -> Vec<u8> {
    // Blocks without edges count as well; otherwise one shard might get all of them.
    let weight = |&b: &u32| weights.get(b as usize).map_or(1, |&w| w.max(1));
    let mut owners = vec![0u8; count as usize];
    let mut have = vec![0u64; shards as usize];
    let (mut single, mut middle, mut large) = (Vec::new(), Vec::new(), Vec::new());
    for blocks in spans(shift, count, clusters) {
        let all: u64 = blocks.clone().map(|b| weight(&b)).sum();
        // A large cluster is divided evenly, as long as every block is a small part of a piece.
        let is_large = blocks.len() as u64 >= u64::from(LARGE) * u64::from(shards);
        let parts = u128::from(if is_large { shards * LARGE / 2 } else { shards });
        let is_heavy = |b: &u32| u128::from(weight(b)) * parts > u128::from(all);
        let (heavy, rest): (Vec<u32>, Vec<u32>) = blocks.partition(is_heavy);
        single.extend(heavy);
        match rest.len() as u64 {
            n if n < u64::from(shards) => single.extend(rest),
            _ if is_large => large.push(rest),
            _ => middle.push(rest),
        }
    }
    single.sort_by_key(|b| (Reverse(weight(b)), *b));
    let mut lightest: BinaryHeap<Reverse<(u64, usize)>> =
        (0..have.len()).map(|s| Reverse((0, s))).collect();
    for b in single {
        let Some(Reverse((sum, shard))) = lightest.pop() else {
            break;
        };
        owners[b as usize] = shard as u8;
        have[shard] = sum + weight(&b);
        lightest.push(Reverse((have[shard], shard)));
    }
    let mut cut = |pieces: Vec<Vec<u32>>, shares: &[f64], have: &mut [u64]| {
        for (number, blocks) in pieces.iter().enumerate() {
            let all: u64 = blocks.iter().map(weight).sum();
            // If the division leaves a remainder, it goes to a different shard in each cluster.
            let turn = (number as f64 + 0.5) * GOLDEN % 1.0;
            let (mut shard, mut before, mut end) = (0, 0u64, shares[0]);
            for b in blocks {
                let at = (before as f64 + turn * weight(b) as f64) / all as f64;
                while at >= end && shard + 1 < shares.len() {
                    shard += 1;
                    end += shares[shard];
                }
                owners[*b as usize] = shard as u8;
                have[shard] += weight(b);
                before += weight(b);
            }
        }
    };
    cut(
        middle,
        &vec![1.0 / f64::from(shards); shards as usize],
        &mut have,
    );
    let left: u64 = large.iter().flatten().map(weight).sum();
    cut(large, &shares(&have, left), &mut have);
    owners
}

/// The blocks that begin in each cluster; the blocks after the last cluster form another span.
fn spans(
    shift: u32,
    count: u32,
    clusters: impl Iterator<Item = u32>,
) -> impl Iterator<Item = Range<u32>> {
    let (mut end, mut from) = (1u64, 0);
    let ends = clusters.map(move |len| {
        end += u64::from(len);
        end.div_ceil(1 << shift).min(u64::from(count)) as u32
    });
    ends.chain([count]).filter_map(move |to| {
        let span = from..to;
        from = from.max(to);
        (!span.is_empty()).then_some(span)
    })
}

/// Fractions of the remaining weight for each shard, which compensate for the shards' present weights, within
/// [`SLACK`]. Their sum is 1.
fn shares(have: &[u64], left: u64) -> Vec<f64> {
    let n = have.len() as f64;
    let each = (have.iter().sum::<u64>() + left) as f64 / n;
    let mut shares: Vec<f64> = have
        .iter()
        .map(|&h| {
            let share = (each - h as f64) / (left.max(1)) as f64;
            share.clamp((1.0 - SLACK) / n, (1.0 + SLACK) / n)
        })
        .collect();
    let sum: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|s| *s /= sum);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shards_have_the_same_weight_and_pieces_lie_in_order(
            clusters in prop::collection::vec((1u32..400, 1u64..50), 1..12),
            heavy in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
            shards in 1u32..14,
        ) {
            let count = clusters.iter().map(|c| c.0).sum::<u32>() + 1;
            let mut weights = vec![1];
            for &(len, weight) in &clusters {
                weights.extend((0..u64::from(len)).map(|i| weight + i % 3));
            }
            for h in heavy {
                weights[h.index(count as usize)] *= 1000;
            }
            let owners = ranges(shards, 0, count, clusters.iter().map(|c| c.0), &weights);
            prop_assert_eq!(owners.len(), count as usize);
            prop_assert!(owners.iter().all(|&o| u32::from(o) < shards));
            let mut have = vec![0u64; shards as usize];
            for (&owner, &w) in owners.iter().zip(&weights) {
                have[usize::from(owner)] += w;
            }
            // Block 0, before the first id, belongs to the first cluster. Blocks heavier than a piece are assigned
            // separately.
            let (mut from, mut cut, n) = (0, 0, shards as usize);
            for (number, &(len, _)) in clusters.iter().enumerate() {
                let len = len as usize + usize::from(number == 0);
                let (span, blocks) = (&owners[from..from + len], &weights[from..from + len]);
                let pieces = if len >= 16 * n { 8 * n } else { n } as u64;
                let all: u64 = blocks.iter().sum();
                let light = blocks.iter().filter(|&&w| w * pieces <= all);
                let uncut = len - light.clone().count();
                cut += light.max().unwrap_or(&0);
                // Owners descend only at blocks that are assigned separately, and in clusters with fewer other blocks
                // than shards.
                let down = span.windows(2).filter(|w| w[0] > w[1]).count();
                prop_assert!(len - uncut < n || down <= 2 * uncut, "{owners:?}");
                from += len;
            }
            // The pieces of a cluster differ by at most one of its blocks; a block that is assigned separately goes to
            // the lightest shard.
            let (most, least) = (have.iter().max().unwrap(), have.iter().min().unwrap());
            let heaviest = weights.iter().max().unwrap();
            prop_assert!(most - least <= 2 * cut + heaviest, "{have:?}");
        }
    }

    #[test]
    fn one_heavy_id_is_made_up_for() {
        let mut weights = vec![10u64; 6001];
        weights[3000] = 3000;
        let owners = ranges(6, 0, 6001, [6000].into_iter(), &weights);
        let mut have = [0u64; 6];
        for (&o, &w) in owners.iter().zip(&weights) {
            have[usize::from(o)] += w;
        }
        let each = weights.iter().sum::<u64>() / 6;
        for h in have {
            assert!(h * 100 < each * 125 && h * 100 > each * 93, "{have:?}");
        }
    }
}
