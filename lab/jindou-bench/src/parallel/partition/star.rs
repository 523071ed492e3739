//! Semantic hashing: subjects whose IRIs have a common prefix go to the same part.

use super::{Graph, spread};
use jindou_model::term::IRI;

/// A group may weigh at most this fraction (one in this many) of a worker's share; heavier groups are split at the next
/// separator of their IRIs.
const PARTS_A_WORKER: u64 = 8;

/// True for a byte that ends a step of an IRI's hierarchy.
fn is_separator(b: u8) -> bool {
    matches!(b, b'/' | b'#' | b'_' | b'-' | b'.' | b':' | b'?' | b'=')
}

/// Groups entities by the shortest prefixes, ending at a separator, with which no group is too heavy, and spreads the
/// groups over the workers. `weights` has the number of triples of each subject. O(n log n) in the number of entities,
/// with all of their IRIs in memory.
pub fn owners(graph: &Graph<'_>, weights: &[u32], workers: u32, owners: &mut [u8]) {
    let mut text = vec![];
    let mut entities: Vec<(usize, u32)> = vec![];
    graph.entities(|v, term| {
        entities.push((text.len(), v));
        text.extend_from_slice(term);
        text.push(0);
    });
    let of = |start: usize| {
        let rest = &text[start..];
        let end = memchr(rest);
        &rest[..end]
    };
    entities.sort_unstable_by(|a, b| of(a.0).cmp(of(b.0)));
    let weight = |v: u32| u64::from(weights[v as usize]);
    let total: u64 = entities.iter().map(|e| weight(e.1)).sum();
    let limit = (total / (PARTS_A_WORKER * u64::from(workers))).max(1);
    // A group is a range of the sorted entities.
    let mut groups: Vec<std::ops::Range<usize>> = vec![];
    let mut open = vec![(0..entities.len(), 0)];
    while let Some((range, common)) = open.pop() {
        let mut at = range.start;
        while at < range.end {
            let first = of(entities[at].0);
            let next = (common..first.len())
                .find(|&i| is_separator(first[i]))
                .filter(|_| first.first() == Some(&IRI));
            let Some(next) = next else {
                // No separator is left to split at.
                groups.push(at..at + 1);
                at += 1;
                continue;
            };
            let beginning = &first[..=next];
            let n = entities[at..range.end].partition_point(|e| of(e.0).starts_with(beginning));
            let group = at..at + n.max(1);
            at = group.end;
            let heavy = entities[group.clone()]
                .iter()
                .map(|e| weight(e.1))
                .sum::<u64>()
                > limit;
            if heavy && group.len() > 1 {
                open.push((group, next + 1));
            } else {
                groups.push(group);
            }
        }
    }
    let weighed = groups
        .iter()
        .enumerate()
        .map(|(g, range)| {
            let sum = entities[range.clone()].iter().map(|e| weight(e.1)).sum();
            (sum, g as u32)
        })
        .collect();
    spread(weighed, workers, |g, worker| {
        for (_, v) in &entities[groups[g as usize].clone()] {
            owners[*v as usize] = worker;
        }
    });
}

/// Index of the first zero byte, which ends an IRI.
fn memchr(bytes: &[u8]) -> usize {
    bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len())
}
