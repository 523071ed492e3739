//! A shard's answers to the requests of other shards.

use super::uses::uses_at;
#[cfg(feature = "text")]
use super::words::OwnSearch;
use super::{Reply, ShardRequest};
use jindou_graph::ObjectTerms;
use jindou_graph::segment::{GraphScope, NO_KEY, prefetch};
use jindou_graph::shard::{LocalKey, OwnEdges, OwnLists};
use jindou_model::{DEFAULT_GRAPH, Direction, Error, PredicateId, Result};
use jindou_store::Base;
use jindou_store::shard::OwnData;
#[cfg(feature = "text")]
use std::time::Duration;

/// Answers a request from one shard's base. O(size of the request), except for the keys of selected named graphs:
/// O(keys), and for searches of words: up to the request's time limit.
///
/// # Errors
/// [`Error::Shard`] for ids that the shard does not own, and if the base is not a shard; [`Error::Damaged`] if reading
/// the shard's files failed.
pub fn answer(base: &Base, request: &ShardRequest) -> Result<Reply> {
    let own = base
        .own_data()
        .ok_or_else(|| Error::shard(0, "it is a whole store, not a shard"))?;
    let reply = ShardAnswer { base, own }.answer(request)?;
    // A file that cannot be read appears as zeros, so check before the reply is used.
    base.check_files()?;
    Ok(reply)
}

/// Edges of a looked-up constant are counted only if it has at most this many predicates.
const MOST_PREDICATES: usize = 64;

struct ShardAnswer<'a> {
    base: &'a Base,
    own: OwnData<'a>,
}

impl ShardAnswer<'_> {
    fn view(&self, predicate: u32, direction: Direction) -> OwnEdges<'_> {
        self.own.edges(PredicateId(predicate), direction)
    }

    fn refused(&self, message: impl Into<String>) -> Error {
        Error::shard(self.own.number(), message)
    }

    fn key(&self, id: u32) -> Result<LocalKey> {
        let key = self.own.key(id);
        key.ok_or_else(|| self.refused(format!("it was asked for id {id}, which it does not own")))
    }

    fn keys(&self, ids: &[u32]) -> Result<Vec<LocalKey>> {
        ids.iter().map(|&id| self.key(id)).collect()
    }

    fn object_terms(&self, predicate: u32) -> u8 {
        match self.base.object_terms(PredicateId(predicate)) {
            ObjectTerms::Any => 0,
            ObjectTerms::Texts => 1,
            ObjectTerms::Resources => 2,
        }
    }

    fn answer(&self, request: &ShardRequest) -> Result<Reply> {
        Ok(match request {
            ShardRequest::Lists {
                predicate,
                direction,
                graphs,
                merged,
                keys,
                within,
                most,
            } => {
                let view = self.view(*predicate, *direction);
                let keys = self.keys(keys)?;
                lists(&view, &keys, (graphs.scope(), *within), *merged, *most)
            }
            ShardRequest::Contains {
                predicate,
                direction,
                graphs,
                keys,
                neighbours,
            } => {
                let view = self.view(*predicate, *direction);
                contains(&view, &self.keys(keys)?, neighbours, graphs.scope())
            }
            ShardRequest::Degrees {
                predicate,
                direction,
                keys,
            } => {
                let view = self.view(*predicate, *direction);
                degrees(&view, &self.keys(keys)?)
            }
            ShardRequest::Keys {
                predicate,
                direction,
                graphs,
                from,
                most,
            } => {
                let (mut ids, p) = (Vec::new(), PredicateId(*predicate));
                let page = [*from, *most];
                let scope = graphs.scope();
                let more = self.own.keys(p, *direction, scope, page, &mut ids);
                Reply::Ids { ids, more }
            }
            ShardRequest::Predicates {
                direction,
                vertices,
            } => self.predicates(*direction, vertices)?,
            ShardRequest::Terms { ids } => self.terms(ids),
            ShardRequest::Lookup { ends, bytes } => {
                let ids = self.ids_of(ends, bytes);
                Reply::Ids { ids, more: false }
            }
            ShardRequest::Find { ends, bytes } => self.found(self.ids_of(ends, bytes)),
            ShardRequest::GraphSubjects { graph, predicate } => {
                let mut ids = Vec::new();
                let p = PredicateId(*predicate);
                self.own.graph_subjects(*graph, p, &mut ids);
                Reply::Ids { ids, more: false }
            }
            ShardRequest::GraphPredicates { graph } => Reply::Ids {
                ids: self.own.graph_predicates(*graph),
                more: false,
            },
            ShardRequest::ObjectTerms { predicate } => {
                Reply::Objects(self.object_terms(*predicate))
            }
            #[cfg(feature = "text")]
            ShardRequest::Words {
                words,
                iris,
                graphs,
                labels,
                from,
                micros,
            } => {
                let asked = OwnSearch {
                    words,
                    iris: *iris,
                    scope: graphs.scope(),
                    labels,
                    from: *from,
                    time: Duration::from_micros((*micros).into()),
                };
                super::words::find(self.base, self.own, &asked)?
            }
            #[cfg(not(feature = "text"))]
            ShardRequest::Words { .. } => {
                return Err(self.refused("it was built without search by words"));
            }
            ShardRequest::Uses { graphs, vertices } => self.uses(graphs.scope(), vertices)?,
            ShardRequest::Post(_) => return Err(self.refused("it runs no parts of queries")),
            ShardRequest::MergeResult => return Err(self.refused("it is not being merged")),
            #[cfg(feature = "transport")]
            &ShardRequest::Summary {
                predicate,
                direction,
            } => {
                let p = PredicateId(predicate);
                Reply::Post(crate::remote::summary::summarise(self.base, p, direction))
            }
            #[cfg(not(feature = "transport"))]
            ShardRequest::Summary { .. } => return Err(self.refused("its memory cannot be read")),
        })
    }

    fn predicates(&self, direction: Direction, vertices: &[u32]) -> Result<Reply> {
        let sets = self.own.sets();
        let (mut ends, mut predicates) = (Vec::new(), Vec::new());
        for &v in vertices {
            self.key(v)?;
            predicates.extend_from_slice(match direction {
                Direction::Out => sets.out_predicates(v),
                Direction::In => sets.in_predicates(v),
            });
            ends.push(predicates.len() as u32);
        }
        Ok(Reply::Predicates { ends, predicates })
    }

    fn terms(&self, ids: &[u32]) -> Reply {
        let (mut ends, mut bytes) = (Vec::with_capacity(ids.len()), Vec::new());
        for &id in ids {
            self.own.term(id, &mut bytes);
            ends.push(bytes.len() as u32);
        }
        Reply::Terms { ends, bytes }
    }

    fn uses(&self, scope: GraphScope<'_>, vertices: &[u32]) -> Result<Reply> {
        let (mut seen, mut uses) = (Vec::new(), Vec::new());
        let mut scratch = Vec::new();
        for &v in vertices {
            let key = (v, self.key(v)?);
            let all = (scope, self.base.statistics());
            let found = uses_at(&self.own, key, all, &mut scratch);
            seen.push(u8::from(found.is_some()));
            uses.push(found.unwrap_or(0));
        }
        Ok(Reply::Uses { seen, uses })
    }

    fn ids_of(&self, ends: &[u32], bytes: &[u8]) -> Vec<u32> {
        let mut start = 0;
        let mut terms = Vec::with_capacity(ends.len());
        for &end in ends {
            terms.push(bytes.get(start as usize..end as usize).unwrap_or(&[]));
            start = end;
        }
        let mut ids = Vec::with_capacity(terms.len());
        self.own.lookup(&terms, &mut ids);
        ids
    }

    /// The reply with these ids, and with the edge counts of those that the shard owns and that have few predicates.
    fn found(&self, ids: Vec<u32>) -> Reply {
        let (mut ends, mut predicates) = (Vec::with_capacity(ids.len()), Vec::new());
        let (mut default, mut named) = (Vec::new(), Vec::new());
        let sets = self.own.sets();
        for &id in &ids {
            if let Some(key) = self.own.key(id) {
                let (out, into) = (sets.out_predicates(id), sets.in_predicates(id));
                if out.len() + into.len() <= MOST_PREDICATES {
                    let both = [(Direction::Out, out), (Direction::In, into)];
                    for (direction, p) in
                        both.iter().flat_map(|(d, ps)| ps.iter().map(|&p| (*d, p)))
                    {
                        let view = self.view(p, direction);
                        predicates.push(2 * p + direction as u32);
                        default.push(view.default_degree(key));
                        named.push(view.named_degree(key));
                    }
                }
            }
            ends.push(predicates.len() as u32);
        }
        Reply::Found {
            ids,
            ends,
            predicates,
            default,
            named,
        }
    }
}

fn contains(
    view: &OwnEdges<'_>,
    keys: &[LocalKey],
    neighbours: &[u32],
    scope: GraphScope<'_>,
) -> Reply {
    let edges = keys.iter().zip(neighbours);
    Reply::There(
        edges
            .map(|(&k, &n)| u8::from(view.contains(k, n, scope)))
            .collect(),
    )
}

fn degrees(view: &OwnEdges<'_>, keys: &[LocalKey]) -> Reply {
    Reply::Degrees {
        default: keys.iter().map(|&k| view.default_degree(k)).collect(),
        named: keys.iter().map(|&k| view.named_degree(k)).collect(),
    }
}

/// The range of positions of a sorted list's ids that are in the half-open interval.
fn inside(list: &[u32], [from, to]: [u32; 2]) -> std::ops::Range<usize> {
    let a = list.partition_point(|&v| v < from);
    let b = list.partition_point(|&v| v < to);
    a..b.max(a)
}

fn lists(
    view: &OwnEdges<'_>,
    keys: &[LocalKey],
    (scope, within): (GraphScope<'_>, [u32; 2]),
    merged: bool,
    most: u32,
) -> Reply {
    if let Some(lists) = view.plain(scope).filter(|_| merged) {
        return plain_lists(lists, keys, within, most as usize);
    }
    let mut ends = Vec::with_capacity(keys.len());
    let (mut neighbours, mut graphs, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
    let most = most as usize;
    for &key in keys {
        let from = neighbours.len();
        if merged || scope == GraphScope::Default {
            let list = view.read(key, scope, &mut scratch);
            neighbours.extend_from_slice(list.get(inside(list, within)).unwrap_or(&[]));
        } else {
            view.read_with_graphs(key, scope, &mut neighbours, &mut graphs);
            let kept = inside(&neighbours[from..], within);
            for column in [&mut neighbours, &mut graphs] {
                column.truncate(from + kept.end);
                column.drain(from..from + kept.start);
            }
        }
        // The first list is sent completely, even if it is longer than `most`.
        if neighbours.len() > most && from > 0 {
            neighbours.truncate(from);
            graphs.truncate(from);
            break;
        }
        ends.push(neighbours.len() as u32);
    }
    if !merged && scope == GraphScope::Default {
        graphs.resize(neighbours.len(), DEFAULT_GRAPH);
    }
    Reply::Lists {
        ends,
        neighbours,
        graphs,
    }
}

/// Number of lists that are examined to decide whether to send runs, and number of runs that are examined in each.
const SAMPLED_LISTS: usize = 16;
/// Minimum mean length of a segment's runs for which lists are sent as runs.
const MIN_RUN: usize = 4;

/// Lists of one segment, encoded as runs if the first lists have long runs. If later lists have short ones, runs take
/// up to twice the bytes of ids.
fn plain_lists(lists: OwnLists<'_>, keys: &[LocalKey], within: [u32; 2], most: usize) -> Reply {
    let mut numbers = Vec::new();
    lists.find_many(keys, &mut numbers);
    let list = |number: u32| {
        let (a, b) = lists.range(number);
        let list = lists.neighbours().get(a..b).unwrap_or(&[]);
        list.get(inside(list, within)).unwrap_or(&[])
    };
    let (mut ids, mut found) = (0, 0);
    let some = numbers.iter().take(SAMPLED_LISTS);
    for run in some.flat_map(|&number| runs(list(number)).take(SAMPLED_LISTS)) {
        ids += run[1] as usize;
        found += 1;
    }
    let are_runs = found * MIN_RUN < ids;
    let (mut ends, mut neighbours) = (Vec::with_capacity(keys.len()), Vec::new());
    let (mut sent, mut all) = (0, Vec::new());
    for (at, &number) in numbers.iter().enumerate() {
        fetch_ahead(lists, &numbers, at);
        let list = list(number);
        // The first list is sent completely. The following lists stop before the total exceeds `most`; the asking side
        // relies on this limit.
        if at > 0 && !list.is_empty() && sent + list.len() > most {
            break;
        }
        sent += list.len();
        if are_runs {
            all.extend(runs(list));
            ends.push(all.len() as u32);
        } else {
            neighbours.extend_from_slice(list);
            ends.push(neighbours.len() as u32);
        }
    }
    if are_runs {
        return Reply::Runs { ends, runs: all };
    }
    Reply::Lists {
        ends,
        neighbours,
        graphs: Vec::new(),
    }
}

/// The runs of a sorted list without duplicates: the first id of each, and the number of consecutive ids that follow.
/// O(log length) per run.
fn runs(mut list: &[u32]) -> impl Iterator<Item = [u32; 2]> {
    std::iter::from_fn(move || {
        let &first = list.first()?;
        let follows = |at: usize| {
            let id = list.get(at);
            id.is_some_and(|v| v.wrapping_sub(first) as usize == at)
        };
        // `last`: offset of an id that is known to belong to the run. `step`: distance from there of the next id to
        // test; it doubles until the test fails.
        let (mut last, mut step) = (0, 1);
        while follows(last + step) {
            last += step;
            step *= 2;
        }
        while step > 1 {
            step /= 2;
            if follows(last + step) {
                last += step;
            }
        }
        list = list.get(last + 1..)?;
        Some([first, last as u32 + 1])
    })
}

/// Prefetches data for the keys after the one at `at`: the offsets of their lists, the beginnings of the lists, and the
/// positions in a list that searches read first.
#[inline]
fn fetch_ahead(lists: OwnLists<'_>, numbers: &[u32], at: usize) {
    const OFFSETS: usize = 16;
    const LISTS: usize = 8;
    const PLACES: usize = 8;
    let known = |ahead: usize| numbers.get(at + ahead).copied().filter(|&n| n != NO_KEY);
    if let (Some(offsets), Some(number)) = (lists.offsets(), known(OFFSETS)) {
        prefetch(offsets, number as usize);
    }
    if let Some(number) = known(LISTS) {
        let (a, b) = lists.range(number);
        for place in 0..=PLACES {
            prefetch(lists.neighbours(), a + b.saturating_sub(a) * place / PLACES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_that_follow_one_another_are_a_run() {
        let of = |list: &[u32]| runs(list).collect::<Vec<_>>();
        assert!(of(&[]).is_empty());
        assert_eq!(of(&[7]), [[7, 1]]);
        assert_eq!(of(&[1, 2, 3, 5, 9, 10]), [[1, 3], [5, 1], [9, 2]]);
        assert_eq!(of(&[u32::MAX - 1, u32::MAX]), [[u32::MAX - 1, 2]]);
    }

    proptest! {
        #[test]
        fn runs_have_the_ids_of_the_list(list in proptest::collection::btree_set(0..400u32, 0..300)) {
            let list: Vec<u32> = list.into_iter().collect();
            let found: Vec<[u32; 2]> = runs(&list).collect();
            let ids: Vec<u32> = found.iter().flat_map(|&[first, n]| first..first + n).collect();
            prop_assert_eq!(ids, list);
            prop_assert!(found.windows(2).all(|two| two[0][0] + two[0][1] < two[1][0]));
        }
    }
}
