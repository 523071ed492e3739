//! Neighbour lists of a batch in two arrays: the segment's own, followed by those that other shards sent, and by those
//! of keys that updates changed.

use super::edges::KeyOwner;
use super::{FarKey, LocalKey, ShardEdges};
use crate::segment::{GraphScope, NO_KEY, merge_runs};
use jindou_model::DEFAULT_GRAPH;
use rustc_hash::FxHashMap;

/// Largest number of neighbours collected for a batch; the lists of further rows are read one by one.
pub const MOST_LAID: usize = 1 << 20;

/// Placeholder range of a row whose list was not collected.
const NOT_LAID: [u32; 2] = [1, 0];

/// A range of what follows an array of length `end`.
fn behind(end: usize, [from, to]: [usize; 2]) -> [u32; 2] {
    match (to - from, u32::try_from(end + to)) {
        (0, _) => [0, 0],
        (_, Ok(last)) => [(end + from) as u32, last],
        (_, Err(_)) => NOT_LAID,
    }
}

impl<'a> ShardEdges<'a> {
    /// Collects the lists of a batch: one range per id, in the array that is returned or, counted from its end, in
    /// `more`. The range is `[1, 0]` for lists that did not fit, which [`Self::read`] reads. From other shards' lists,
    /// neighbours outside the half-open interval `within` may be missing. Takes one round, and one more for edited keys
    /// where named graphs are read: their lists are needed with the graphs.
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
        // Own lists, and the owners of the others.
        let mut wanted: FxHashMap<u32, usize> = FxHashMap::default();
        let mut keys: Vec<FarKey> = Vec::new();
        let mut rows: Vec<(usize, usize)> = Vec::new();
        let mut edited: Vec<usize> = Vec::new();
        // Another shard's list of one graph can be merged after it was collected.
        let merges = scope.sees(DEFAULT_GRAPH) && !self.reads_named(scope);
        let mut own = Vec::with_capacity(ids.len());
        for (row, &v) in ids.iter().enumerate() {
            let is_edited = self.touched(v).is_some();
            own.push(match self.owner(v) {
                KeyOwner::Own(key) if !is_edited => key,
                KeyOwner::Far(of) if !is_edited || merges => {
                    let next = keys.len();
                    let at = *wanted.entry(v).or_insert(next);
                    if at == next {
                        keys.push(of);
                    }
                    rows.push((row, at));
                    LocalKey(0)
                }
                _ => {
                    if is_edited {
                        edited.push(row);
                    }
                    LocalKey(0)
                }
            });
        }
        self.lay_own(&own, scope, end, (ranges, more));
        let mut left = Vec::new();
        if !keys.is_empty() {
            let others = self.sharded.others();
            let mut places = others.lay(&keys, (scope, within), more);
            for (of, place) in keys.iter().zip(&mut places) {
                self.merge_collected(of.key, place, more);
            }
            for (row, at) in rows {
                ranges[row] = match places.get(at) {
                    Some(&[from, to]) if from <= to => behind(end, [from as usize, to as usize]),
                    _ => {
                        left.extend(ids.get(row).map(|&v| (v, scope)));
                        NOT_LAID
                    }
                };
            }
        }
        left.extend(
            edited
                .iter()
                .filter_map(|&row| Some((*ids.get(row)?, scope))),
        );
        // They are read one by one, but must not be requested one by one.
        self.fetch(left.into_iter());
        self.lay_edited(ids, &edited, scope, end, (ranges, more));
        array
    }

    /// Appends the ranges of the shard's own lists, without edits; `end` is the length of the array before `more`.
    fn lay_own(
        &self,
        own: &[LocalKey],
        scope: GraphScope<'_>,
        end: usize,
        (ranges, more): (&mut Vec<[u32; 2]>, &mut Vec<u32>),
    ) {
        if let Some(s) = self.own.plain(scope) {
            // No key is 0.
            let mut numbers = Vec::new();
            s.find_many(own, &mut numbers);
            ranges.extend(numbers.iter().map(|&k| match k {
                NO_KEY => [0, 0],
                k => {
                    let (a, b) = s.range(k);
                    [a as u32, b as u32]
                }
            }));
            return;
        }
        let mut scratch = Vec::new();
        for &key in own {
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
            ranges.push(behind(end, [from, more.len()]));
        }
    }

    /// Appends the merged lists of rows whose keys have edits; `end` is the length of the array before `more`.
    fn lay_edited(
        &self,
        ids: &[u32],
        rows: &[usize],
        scope: GraphScope<'_>,
        end: usize,
        (ranges, more): (&mut [[u32; 2]], &mut Vec<u32>),
    ) {
        let mut last = None;
        for &row in rows {
            let (Some(&v), Some(range)) = (ids.get(row), ranges.get_mut(row)) else {
                continue;
            };
            if let Some((of, known)) = last
                && of == v
            {
                *range = known;
                continue;
            }
            let from = more.len();
            *range = NOT_LAID;
            if from <= MOST_LAID {
                self.append_merged(v, scope, more);
                *range = behind(end, [from, more.len()]);
            }
            last = Some((v, *range));
        }
    }

    /// Replaces a collected list of the default graph's base by the merged one, where the patch has edits of the key.
    fn merge_collected(&self, key: u32, place: &mut [u32; 2], more: &mut Vec<u32>) {
        let &mut [from, to] = place;
        let Some(patch) = self.touched(key).filter(|_| from <= to) else {
            return;
        };
        let (added, removed) = patch.edits_of(key);
        if added.is_empty() && removed.is_empty() {
            return;
        }
        let base = more.get(from as usize..to as usize).unwrap_or(&[]).to_vec();
        let start = more.len();
        merge_runs(&base, added, removed, more);
        *place = match (u32::try_from(start), u32::try_from(more.len())) {
            (Ok(start), Ok(end)) => [start, end],
            _ => NOT_LAID,
        };
    }
}
