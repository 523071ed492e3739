//! Collects the neighbour lists of a batch. Each list is a range in one of two arrays: the own segment's neighbours,
//! and `more`, which gets the lists of other shards and the lists of keys that updates changed. Ranges in `more` are
//! counted from the end of the first array.

use super::edges::KeyOwner;
use super::{FarKey, LocalKey, ShardEdges};
use crate::segment::{GraphScope, NO_KEY, merge_runs};
use jindou_model::DEFAULT_GRAPH;
use rustc_hash::FxHashMap;

/// Largest number of neighbours collected for a batch; lists that do not fit are read one by one.
pub const MAX_APPENDED: usize = 1 << 20;

/// Placeholder range of a row whose list was not collected.
const NOT_APPENDED: [u32; 2] = [1, 0];

/// The position of a range of `more` behind the first array, which has the length `end`.
fn behind(end: usize, [from, to]: [usize; 2]) -> [u32; 2] {
    match (to - from, u32::try_from(end + to)) {
        (0, _) => [0, 0],
        (_, Ok(last)) => [(end + from) as u32, last],
        (_, Err(_)) => NOT_APPENDED,
    }
}

impl<'a> ShardEdges<'a> {
    /// Collects the lists of a batch. `ranges` gets a range for each id: in the array that is returned or, counted from
    /// its end, in `more`. Lists that did not fit get the range `[1, 0]`; the caller reads them by [`Self::read`].
    /// Lists of other shards may lack neighbours outside the half-open interval `within`. Takes one round trip, and
    /// if named graphs are read another one for edited keys, whose lists are needed with the graphs.
    pub fn collect_lists(
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
        if end + 2 * MAX_APPENDED > u32::MAX as usize {
            ranges.resize(ids.len(), NOT_APPENDED);
            return array;
        }
        // First this shard's lists, and the owners of all other keys.
        let mut wanted: FxHashMap<u32, usize> = FxHashMap::default();
        let mut keys: Vec<FarKey> = Vec::new();
        let mut rows: Vec<(usize, usize)> = Vec::new();
        let mut edited: Vec<usize> = Vec::new();
        // If only the default graph is read, another shard's list is merged with the patch after it was collected.
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
            let mut places = others.append_lists(&keys, (scope, within), more);
            for (of, place) in keys.iter().zip(&mut places) {
                self.merge_collected(of.key, place, more);
            }
            for (row, at) in rows {
                ranges[row] = match places.get(at) {
                    Some(&[from, to]) if from <= to => behind(end, [from as usize, to as usize]),
                    _ => {
                        left.extend(ids.get(row).map(|&v| (v, scope)));
                        NOT_APPENDED
                    }
                };
            }
        }
        left.extend(
            edited
                .iter()
                .filter_map(|&row| Some((*ids.get(row)?, scope))),
        );
        // The caller reads lists that did not fit one by one; all are requested together here.
        self.fetch(left.into_iter());
        self.lay_edited(ids, &edited, scope, end, (ranges, more));
        array
    }

    /// Appends the ranges of this shard's lists of keys without edits; `end` is the length of the array before `more`.
    fn lay_own(
        &self,
        own: &[LocalKey],
        scope: GraphScope<'_>,
        end: usize,
        (ranges, more): (&mut Vec<[u32; 2]>, &mut Vec<u32>),
    ) {
        if let Some(s) = self.own.plain(scope) {
            // Rows of other keys have key 0, which is not a key: their range becomes empty.
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
            if more.len() + list.len() > MAX_APPENDED {
                ranges.push(NOT_APPENDED);
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
            *range = NOT_APPENDED;
            if from <= MAX_APPENDED {
                self.append_merged(v, scope, more);
                *range = behind(end, [from, more.len()]);
            }
            last = Some((v, *range));
        }
    }

    /// Merges a list collected from the default graph's base with the patch, if this has edits of the key. The merged
    /// list is appended to `more`, and `place` becomes its range.
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
            _ => NOT_APPENDED,
        };
    }
}
