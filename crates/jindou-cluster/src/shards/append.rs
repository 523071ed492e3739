//! Neighbour lists and existence of edges for a batch of rows, from other shards.

use super::cache::{GraphsName, ListName};
use super::session::ShardSession;
use super::{Reply, RequestGraphs, ShardRequest};
use jindou_graph::segment::GraphScope;
use jindou_graph::shard::{FarKey, MAX_APPENDED, OtherShards};
use jindou_store::shard::PAGE;

/// For batches with at most this many keys, the cache is searched for lists.
const FEW: usize = 256;

/// Range of a list that was not appended, because it did not fit.
const NOT_APPENDED: [u32; 2] = [1, 0];

impl ShardSession {
    /// Checks the sizes of a reply of runs: at most `keys` lists, with at most `most` neighbours. A few bytes of runs
    /// can represent very many neighbours, so this is checked before the runs are expanded. Only the first list may
    /// exceed `most`, but not the number of the predicate's edges.
    fn check_runs(
        &self,
        predicate: u32,
        [keys, most]: [usize; 2],
        (ends, runs): (&[u32], &[[u32; 2]]),
        appended: usize,
    ) -> bool {
        let known = self.statistics().predicates.get(predicate as usize);
        let edges = known.map_or(0, |s| s.edges + s.named_edges);
        let ids = |runs: &[[u32; 2]]| runs.iter().map(|r| u64::from(r[1])).sum::<u64>();
        let first = ends.first().and_then(|&end| runs.get(..end as usize));
        let (Some(first), all) = (first.map(ids), ids(runs)) else {
            return false;
        };
        ends.len() <= keys
            && ends.is_sorted()
            && ends.last() == Some(&(runs.len() as u32))
            && first <= edges
            && all - first <= most as u64
            && u32::try_from(appended as u64 + all).is_ok()
    }

    /// Appends the lists of keys of one predicate and direction to `more`. Returns the range of each list in `more`;
    /// [`NOT_APPENDED`] for a list that did not fit.
    pub(super) fn request_lists(
        &self,
        keys: &[FarKey],
        (scope, within): (GraphScope<'_>, [u32; 2]),
        more: &mut Vec<u32>,
    ) -> Vec<[u32; 2]> {
        let mut places = vec![NOT_APPENDED; keys.len()];
        let Some(&FarKey {
            predicate,
            direction,
            ..
        }) = keys.first()
        else {
            return places;
        };
        let mut order: Vec<usize> = (0..keys.len()).collect();
        if keys.len() <= FEW {
            // The lists may have been fetched in advance.
            let graphs = self.graphs_name(scope);
            order.retain(|&i| match self.append_kept(keys[i], graphs, more) {
                Some(range) => {
                    places[i] = range;
                    false
                }
                None => true,
            });
        }
        order.sort_unstable_by_key(|&i| keys[i]);
        while !order.is_empty() {
            let most = MAX_APPENDED.saturating_sub(more.len()).min(PAGE as usize) as u32;
            if most == 0 {
                break;
            }
            let groups: Vec<&[usize]> = order
                .chunk_by(|&a, &b| keys[a].shard == keys[b].shard)
                .collect();
            let share = (most / groups.len() as u32).max(1);
            let request = |group: &&[usize]| {
                let request = ShardRequest::Lists {
                    predicate,
                    direction,
                    graphs: RequestGraphs::from_scope(scope),
                    merged: true,
                    keys: group.iter().map(|&i| keys[i].key).collect(),
                    within,
                    most: share,
                };
                (keys[group[0]].shard, request)
            };
            let requests: Vec<(u32, ShardRequest)> = groups.iter().map(request).collect();
            let replies = self.ask(&requests);
            if replies.is_empty() {
                // The query has failed, so all of its results are invalid.
                places.fill([0, 0]);
                break;
            }
            let mut rest = Vec::new();
            for ((group, (shard, _)), reply) in groups.into_iter().zip(&requests).zip(replies) {
                let limits = [group.len(), share as usize];
                match self.append_reply(predicate, limits, &reply, more) {
                    Some(ranges) => {
                        rest.extend_from_slice(&group[ranges.len()..]);
                        for (&i, range) in group.iter().zip(ranges) {
                            places[i] = range;
                        }
                    }
                    None => self.fail_invalid_reply(*shard),
                }
            }
            order = rest;
        }
        places
    }

    /// Appends a cached list and returns its range in `more`; `None` if the list is not cached or does not fit.
    fn append_kept(
        &self,
        key: FarKey,
        graphs: GraphsName,
        more: &mut Vec<u32>,
    ) -> Option<[u32; 2]> {
        let list = self.cached(&ListName::new(key, graphs))?;
        let from = more.len();
        if from + list.len() > MAX_APPENDED {
            return None;
        }
        // An edge that is in several graphs counts as one neighbour.
        let mut last = None;
        for &(neighbour, _) in &*list {
            if last.replace(neighbour) != Some(neighbour) {
                more.push(neighbour);
            }
        }
        Some([from as u32, more.len() as u32])
    }

    /// Appends the lists of a reply and returns the range of each. `limits` are the largest number of lists and of
    /// neighbours. `None` if the reply does not match the request.
    fn append_reply(
        &self,
        predicate: u32,
        limits: [usize; 2],
        reply: &Reply,
        more: &mut Vec<u32>,
    ) -> Option<Vec<[u32; 2]>> {
        match reply {
            Reply::Lists {
                ends, neighbours, ..
            } if !ends.is_empty()
                && ends.len() <= limits[0]
                && ends.is_sorted()
                && u32::try_from(more.len() + neighbours.len()).is_ok()
                && ends.last() == Some(&(neighbours.len() as u32)) =>
            {
                let base = more.len() as u32;
                more.extend_from_slice(neighbours);
                let starts = std::iter::once(0).chain(ends.iter().copied());
                let ranges = starts.zip(ends).map(|(from, to)| [base + from, base + to]);
                Some(ranges.collect())
            }
            Reply::Runs { ends, runs }
                if self.check_runs(predicate, limits, (ends, runs), more.len()) =>
            {
                let mut start = 0;
                let mut ranges = Vec::with_capacity(ends.len());
                for &end in ends {
                    let from = more.len() as u32;
                    for &[first, number] in &runs[start..end as usize] {
                        more.extend(first..first.saturating_add(number));
                    }
                    ranges.push([from, more.len() as u32]);
                    start = end as usize;
                }
                Some(ranges)
            }
            _ => None,
        }
    }

    /// Tests which edges exist. The result for each edge is stored in `there`, at the position that the edge contains.
    pub(super) fn ask_edges(
        &self,
        edges: &[(FarKey, u32, GraphScope<'_>, usize)],
        there: &mut [bool],
    ) {
        // All edges in a request have the same shard, predicate, direction and graphs.
        let kind = |&(of, _, scope, _): &(FarKey, u32, GraphScope<'_>, usize)| {
            (
                of.shard,
                of.predicate,
                of.direction,
                self.graphs_name(scope),
            )
        };
        let kinds: Vec<_> = edges.iter().map(kind).collect();
        let mut order: Vec<usize> = (0..edges.len()).collect();
        // The sort is stable, so that edges of one kind stay in their order.
        order.sort_by_key(|&i| kinds[i]);
        let same = |a: &usize, b: &usize| kinds[*a] == kinds[*b];
        let request = |group: &[usize]| {
            let (first, _, scope, _) = edges[group[0]];
            let request = ShardRequest::Contains {
                predicate: first.predicate,
                direction: first.direction,
                graphs: RequestGraphs::from_scope(scope),
                keys: group.iter().map(|&i| edges[i].0.key).collect(),
                neighbours: group.iter().map(|&i| edges[i].1).collect(),
            };
            (first.shard, request)
        };
        let requests: Vec<(u32, ShardRequest)> = order.chunk_by(same).map(request).collect();
        let replies = self.ask(&requests);
        let groups = order.chunk_by(same).zip(&requests);
        for ((group, (shard, _)), reply) in groups.zip(replies) {
            match reply {
                Reply::There(found) if found.len() == group.len() => {
                    for (&i, found) in group.iter().zip(found) {
                        if let Some(slot) = there.get_mut(edges[i].3) {
                            *slot = found != 0;
                        }
                    }
                }
                _ => self.fail_invalid_reply(*shard),
            }
        }
    }
}
