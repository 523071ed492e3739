//! Neighbour lists of a batch in two arrays: the segment's own, followed by those that other shards sent.

use super::edges::KeyOwner;
use super::{FarKey, LocalKey, ShardEdges};
use crate::segment::{GraphScope, NO_KEY};
use rustc_hash::FxHashMap;

/// Largest number of neighbours collected for a batch; the lists of further rows are read one by one.
pub const MOST_LAID: usize = 1 << 20;

/// Placeholder range of a row whose list was not collected.
const NOT_LAID: [u32; 2] = [1, 0];

impl<'a> ShardEdges<'a> {
    /// Collects the lists of a batch: one range per id, in the array that is returned or, counted from its end, in
    /// `more`. The range is `[1, 0]` for lists that did not fit, which [`Self::read`] reads. From other shards' lists,
    /// neighbours outside the half-open interval `within` may be missing.
    pub fn lay(
        &self,
        ids: &[u32],
        (scope, within): (GraphScope<'_>, [u32; 2]),
        ranges: &mut Vec<[u32; 2]>,
        more: &mut Vec<u32>,
    ) -> &'a [u32] {
        ranges.clear();
        more.clear();
        let plain = self.own.plain(scope);
        let array = plain.map_or(&[][..], |s| s.neighbours());
        let end = array.len();
        if end + 2 * MOST_LAID > u32::MAX as usize {
            ranges.resize(ids.len(), NOT_LAID);
            return array;
        }
        let behind = |from: usize, to: usize| match (to - from, u32::try_from(end + to)) {
            (0, _) => [0, 0],
            (_, Ok(last)) => [(end + from) as u32, last],
            (_, Err(_)) => NOT_LAID,
        };
        // Own lists, and the owners of the others.
        let mut scratch = Vec::new();
        let mut wanted: FxHashMap<u32, usize> = FxHashMap::default();
        let mut keys: Vec<FarKey> = Vec::new();
        let mut rows: Vec<(usize, usize)> = Vec::new();
        let mut own = Vec::with_capacity(ids.len());
        for (row, &v) in ids.iter().enumerate() {
            own.push(match self.owner(v) {
                KeyOwner::Own(key) => key,
                KeyOwner::Far(of) => {
                    let next = keys.len();
                    let at = *wanted.entry(v).or_insert(next);
                    if at == next {
                        keys.push(of);
                    }
                    rows.push((row, at));
                    LocalKey(0)
                }
                KeyOwner::Nobody => LocalKey(0),
            });
        }
        match plain {
            Some(s) => {
                // No key is 0.
                let mut numbers = Vec::new();
                s.find_many(&own, &mut numbers);
                ranges.extend(numbers.iter().map(|&k| match k {
                    NO_KEY => [0, 0],
                    k => {
                        let (a, b) = s.range(k);
                        [a as u32, b as u32]
                    }
                }));
            }
            None => {
                for &key in &own {
                    if key == LocalKey(0) {
                        ranges.push([0, 0]);
                        continue;
                    }
                    let list = self.own.read(key, scope, &mut scratch);
                    if more.len() + list.len() > MOST_LAID {
                        ranges.push(NOT_LAID);
                        continue;
                    }
                    let from = more.len();
                    more.extend_from_slice(list);
                    ranges.push(behind(from, more.len()));
                }
            }
        }
        if !keys.is_empty() {
            let others = self.sharded.others();
            let places = others.lay(&keys, (scope, within), more);
            let mut left = Vec::new();
            for (row, at) in rows {
                ranges[row] = match places.get(at) {
                    Some(&[from, to]) if from <= to => behind(from as usize, to as usize),
                    _ => {
                        left.extend(ids.get(row).map(|&v| (v, scope)));
                        NOT_LAID
                    }
                };
            }
            // They are read one by one, but must not be requested one by one.
            self.fetch(left.into_iter());
        }
        array
    }

    /// Tests which edges exist, in one round: `there[i]` is the result for the `i`th.
    pub fn contains_many(
        &self,
        edges: impl Iterator<Item = (u32, u32)>,
        scope: GraphScope<'_>,
        there: &mut Vec<bool>,
    ) {
        there.clear();
        let mut others = Vec::new();
        for (i, (key, neighbour)) in edges.enumerate() {
            there.push(match self.owner(key) {
                KeyOwner::Own(key) => self.own.contains(key, neighbour, scope),
                KeyOwner::Far(of) => {
                    others.push((of, neighbour, i));
                    false
                }
                KeyOwner::Nobody => false,
            });
        }
        self.sharded.others().contains_many(&others, scope, there);
    }
}
