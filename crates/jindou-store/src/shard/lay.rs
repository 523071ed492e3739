//! A batch's neighbour lists in two arrays: the segment's own, and after it those that other shards sent.

use super::far::{FarEdges, Owner};
use super::session::PAGE;
use super::{Graphs, Reply, Request};
use crate::segment::{EdgeView, NO_KEY, Scope};
use rustc_hash::FxHashMap;

/// Neighbours that are laid for a batch at most; the lists of further rows are read one by one.
pub const MOST_LAID: usize = 1 << 20;

/// Keys of a batch at most whose lists may be kept.
const FEW: usize = 256;

/// The range of a row whose list is not laid.
const NOT_LAID: [u32; 2] = [1, 0];

impl<'a> EdgeView<'a> {
    /// True if other shards have some of the edges, so that reading a key may cost a round trip.
    #[inline]
    #[must_use]
    pub fn is_sharded(&self) -> bool {
        self.far.is_some()
    }

    /// Fetches what [`Self::read`], [`Self::for_each`] and [`Self::graphs_of_edge`] will be asked for, in one round: before the loop over a
    /// batch. Nothing to do where no other shard has edges.
    pub fn fetch<'s>(&self, keys: impl Iterator<Item = (u32, Scope<'s>)>) {
        if let Some(far) = self.far {
            far.fetch(keys);
        }
    }

    /// Fetches what [`Self::default_degree`] and [`Self::named_degree`] will be asked for, in one round. Nothing to do where no other shard
    /// has edges.
    pub fn fetch_degrees(&self, keys: &[u32]) {
        if let Some(far) = self.far {
            far.fetch_degrees(keys);
        }
    }

    /// Finds the lists of a batch, for views that are [sharded](Self::is_sharded): one range an id, in the array that is returned or,
    /// counted on from its end, in `more`. `[1, 0]` for lists for which there was no room: [`Self::read`] has them. Of other shards'
    /// lists, neighbours that are not in the half-open interval `within` may be missing.
    pub fn lay(
        &self,
        ids: &[u32],
        (scope, within): (Scope<'_>, [u32; 2]),
        ranges: &mut Vec<[u32; 2]>,
        more: &mut Vec<u32>,
    ) -> &'a [u32] {
        ranges.clear();
        more.clear();
        let Some(far) = self.far else {
            return &[];
        };
        let local = self.local();
        let plain = local.plain(scope);
        let array = plain.map_or(&[][..], |s| s.neighbours);
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
        // Own lists, and who has the others.
        let mut scratch = Vec::new();
        let mut wanted: FxHashMap<u32, usize> = FxHashMap::default();
        let mut keys: Vec<(u32, u32)> = Vec::new();
        let mut rows: Vec<(usize, usize)> = Vec::new();
        let mut own = Vec::with_capacity(ids.len());
        for (row, &v) in ids.iter().enumerate() {
            own.push(match far.owner(v) {
                Owner::Own(key) => key,
                Owner::Far(shard) => {
                    let next = keys.len();
                    let at = *wanted.entry(v).or_insert(next);
                    if at == next {
                        keys.push((shard, v));
                    }
                    rows.push((row, at));
                    0
                }
                Owner::Nobody => 0,
            });
        }
        match plain {
            Some(s) => {
                // No key is 0.
                let mut numbers = Vec::new();
                s.finder.find_many(&own, &mut numbers);
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
                    if key == 0 {
                        ranges.push([0, 0]);
                        continue;
                    }
                    let list = local.read(key, scope, &mut scratch);
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
            let places = far.lay(keys, (scope, within), more);
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
            // They are read one by one, but not asked for so.
            far.fetch(left.into_iter());
        }
        array
    }

    /// Tells which edges are there, in one round: `there[i]` says it of the `i`th.
    pub fn contains_many(
        &self,
        edges: impl Iterator<Item = (u32, u32)> + Clone,
        scope: Scope<'_>,
        there: &mut Vec<bool>,
    ) {
        let Some(far) = self.far else {
            there.clear();
            there.extend(edges.map(|(key, n)| self.contains(key, n, scope)));
            return;
        };
        let local = self.local();
        let mut own = far
            .contains_many(edges.clone(), scope, there)
            .into_iter()
            .peekable();
        for (i, (_, neighbour)) in edges.enumerate() {
            if let Some((_, key)) = own.next_if(|o| o.0 == i) {
                there[i] = local.contains(key, neighbour, scope);
            }
        }
    }

    /// The edges of the shard itself, under its own keys.
    pub(crate) fn local(&self) -> Self {
        Self { far: None, ..*self }
    }
}

impl FarEdges<'_> {
    /// True if runs can be the answer for this many keys and neighbours at most. Few bytes can say that there are very many neighbours: only
    /// the first list may have more than were asked for, but no more than the predicate has edges.
    fn fit(&self, [keys, most]: [usize; 2], ends: &[u32], runs: &[[u32; 2]], laid: usize) -> bool {
        let ids = |runs: &[[u32; 2]]| runs.iter().map(|r| u64::from(r[1])).sum::<u64>();
        let first = ends.first().and_then(|&end| runs.get(..end as usize));
        let (Some(first), all) = (first.map(ids), ids(runs)) else {
            return false;
        };
        ends.len() <= keys
            && ends.is_sorted()
            && ends.last() == Some(&(runs.len() as u32))
            && first <= self.edges().iter().sum()
            && all - first <= most as u64
            && u32::try_from(laid as u64 + all).is_ok()
    }

    /// Appends the lists of keys with their shards to `more`; gives where each is, `[1, 0]` for those without room.
    fn lay(
        &self,
        keys: Vec<(u32, u32)>,
        (scope, within): (Scope<'_>, [u32; 2]),
        more: &mut Vec<u32>,
    ) -> Vec<[u32; 2]> {
        let mut places = vec![NOT_LAID; keys.len()];
        let mut order: Vec<usize> = (0..keys.len()).collect();
        if keys.len() <= FEW {
            // They may have been fetched ahead.
            order.retain(|&i| match self.kept(keys[i].1, scope) {
                Some(list) if more.len() + list.len() <= MOST_LAID => {
                    let from = more.len();
                    // An edge of several graphs is one neighbour.
                    let mut last = None;
                    for &(neighbour, _) in &*list {
                        if last.replace(neighbour) != Some(neighbour) {
                            more.push(neighbour);
                        }
                    }
                    places[i] = [from as u32, more.len() as u32];
                    false
                }
                _ => true,
            });
        }
        order.sort_unstable_by_key(|&i| keys[i]);
        while !order.is_empty() {
            let most = MOST_LAID.saturating_sub(more.len()).min(PAGE as usize) as u32;
            if most == 0 {
                break;
            }
            let groups: Vec<&[usize]> = order.chunk_by(|&a, &b| keys[a].0 == keys[b].0).collect();
            let share = (most / groups.len() as u32).max(1);
            let request = |group: &&[usize]| {
                let request = Request::Lists {
                    predicate: self.predicate,
                    direction: self.direction,
                    graphs: Graphs::of(scope),
                    merged: true,
                    keys: group.iter().map(|&i| keys[i].1).collect(),
                    within,
                    most: share,
                };
                (keys[group[0]].0, request)
            };
            let requests: Vec<(u32, Request)> = groups.iter().map(request).collect();
            let replies = self.session.ask(&requests);
            if replies.is_empty() {
                // Nothing of this query counts any more.
                places.fill([0, 0]);
                break;
            }
            let mut rest = Vec::new();
            for ((group, (shard, _)), reply) in groups.into_iter().zip(&requests).zip(replies) {
                match reply {
                    Reply::Lists {
                        ends, neighbours, ..
                    } if !ends.is_empty()
                        && ends.len() <= group.len()
                        && ends.is_sorted()
                        && u32::try_from(more.len() + neighbours.len()).is_ok()
                        && ends.last() == Some(&(neighbours.len() as u32)) =>
                    {
                        let base = more.len() as u32;
                        let mut start = 0;
                        for (&i, &end) in group.iter().zip(&ends) {
                            places[i] = [base + start, base + end];
                            start = end;
                        }
                        more.extend_from_slice(&neighbours);
                        rest.extend_from_slice(&group[ends.len()..]);
                    }
                    Reply::Runs { ends, runs }
                        if self.fit([group.len(), share as usize], &ends, &runs, more.len()) =>
                    {
                        let mut start = 0;
                        for (&i, &end) in group.iter().zip(&ends) {
                            let base = more.len() as u32;
                            for &[first, number] in &runs[start..end as usize] {
                                more.extend(first..first.saturating_add(number));
                            }
                            places[i] = [base, more.len() as u32];
                            start = end as usize;
                        }
                        rest.extend_from_slice(&group[ends.len()..]);
                    }
                    _ => self.session.unfit(*shard),
                }
            }
            order = rest;
        }
        places
    }
}
