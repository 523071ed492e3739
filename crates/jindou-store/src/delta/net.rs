//! The net effect of changes: terms become ids, of several changes to one quad the last one counts, and changes that
//! are already in effect are left out.

use super::changes::{Changes, QuadChange};
use crate::snapshot::Snapshot;
use crate::threads::on_threads;
use jindou_graph::delta::count_of_runs;
use jindou_graph::segment::GraphScope;
use jindou_model::{
    CancelToken, DEFAULT_GRAPH, Direction, Error, FIRST_QUERY_ID, FIRST_TAIL_ID, NO_VERTEX,
    PredicateId, Resource, Result, VertexId,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// The net effect of a transaction on one snapshot. Quads are `[graph, dense predicate, subject, object]`,
/// ascending, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NetChanges {
    /// Number of ids of the tail before the transaction.
    pub tail_before: u32,
    /// Runs `[first, end)` of free numbers of the tail, ascending. The first ones of `terms` get these numbers, the
    /// others the numbers from `tail_before` on.
    pub reused: Vec<[u32; 2]>,
    pub terms: Vec<Vec<u8>>,
    /// Number of predicates before the transaction. The vertices in `predicates` get the dense ids from this number on.
    pub predicates_before: u32,
    pub predicates: Vec<u32>,
    /// The removed quads; all of them were present.
    pub removed: Vec<[u32; 4]>,
    /// The added quads; all of them were absent.
    pub added: Vec<[u32; 4]>,
}

/// Number of changes below which a second thread does not pay.
const ALONE: usize = 4096;
/// Number of steps between two checks of the deadline.
const CHECK_EVERY: usize = 1 << 16;

/// Calls `f` for consecutive parts of `0 .. len`, on at most this many threads. Returns the results in order.
fn in_parts<T: Send>(
    len: usize,
    threads: usize,
    f: impl Fn(std::ops::Range<usize>) -> T + Sync,
) -> Vec<T> {
    let threads = if len < ALONE { 1 } else { threads.clamp(1, 64) };
    let part = len.div_ceil(threads).max(1);
    let bounds = |i: usize| (i * part).min(len)..((i + 1) * part).min(len);
    on_threads(threads, |i| f(bounds(i)))
}

impl Snapshot {
    /// Looks up what the net effects of several transactions on this snapshot, or on later ones over the same base, need
    /// from other shards: one round of requests for terms and one for quads. The answers are kept with the base. Does
    /// nothing if the store is not sharded.
    ///
    /// # Errors
    /// Those of `cancel`, and [`Error::Shard`] for a shard that does not answer.
    pub fn prefetch(&self, transactions: &[Changes], cancel: &CancelToken) -> Result<()> {
        let Some(sharded) = self.as_sharded() else {
            return Ok(());
        };
        sharded.share_lookups(true);
        let all = |changes: &'_ Changes| 0..changes.term_count();
        let terms = transactions.iter().flat_map(|c| all(c).map(|n| c.term(n)));
        let mut ids = Vec::new();
        self.vocabulary()
            .lookup_many(&terms.collect::<Vec<_>>(), &mut ids);
        let mut rest = &mut ids[..];
        let mut quads = Vec::new();
        for changes in transactions {
            let (own, others) = rest.split_at_mut(changes.term_count() as usize);
            rest = others;
            number_new(own, 0);
            quads.extend(sorted(self, changes.list(), own, cancel)?);
        }
        quads.sort_unstable();
        quads.dedup();
        present(self, &quads, cancel)?;
        self.check_shards()
    }
}

impl NetChanges {
    /// Computes the net effect. O(changes log changes), plus a lookup for each distinct term and quad. In a sharded
    /// store all lookups of terms take one round of requests, and those of quads another.
    ///
    /// # Errors
    /// [`Error::Limit`] when ids run out, [`Error::Usage`] for ids that the snapshot does not have; the errors of
    /// `cancel`, and [`Error::Shard`] for a shard that does not answer.
    pub(super) fn compute(
        snapshot: &Snapshot,
        changes: &Changes,
        threads: usize,
        cancel: &CancelToken,
    ) -> Result<Self> {
        // One thread: parts on several threads would take several rounds.
        let threads = snapshot.as_sharded().map_or(threads, |_| 1);
        let share = |shares| {
            if let Some(sharded) = snapshot.as_sharded() {
                sharded.share_lookups(shares);
            }
        };
        share(true);
        let mut ids = Vec::with_capacity(changes.term_count() as usize);
        for part in in_parts(changes.term_count() as usize, threads, |range| {
            lookup(snapshot, changes, range, cancel)
        }) {
            ids.extend(part?);
        }
        if ids.len() >= (u32::MAX - FIRST_QUERY_ID) as usize {
            return Err(Error::limit(
                Resource::Numbers,
                "one transaction uses too many distinct terms; split it",
            ));
        }
        let quads = sorted(snapshot, changes.list(), &ids, cancel)?;
        let mut there: Vec<bool> = Vec::with_capacity(quads.len());
        for part in in_parts(quads.len(), threads, |range| {
            present(snapshot, &quads[range], cancel)
        }) {
            there.extend(part?);
        }
        share(false);
        snapshot.check_shards()?;

        // New terms get ids in the order in which the changes name them, so the order of quads is preserved.
        let mut used = vec![false; ids.len()];
        let mut effective: Vec<(u128, bool)> = Vec::with_capacity(quads.len());
        for (at, (&(quad, insert), there)) in quads.iter().zip(there).enumerate() {
            now_and_then(at, cancel)?;
            if insert == there {
                continue;
            }
            effective.push((quad, insert));
            for id in parts(quad) {
                if let Some(n) = id.checked_sub(FIRST_QUERY_ID)
                    && let Some(u) = used.get_mut(n as usize)
                {
                    *u = true;
                }
            }
        }
        let mut net = Self {
            tail_before: snapshot.tail().len(),
            predicates_before: snapshot.predicate_count(),
            ..Self::default()
        };
        let count = used.iter().filter(|&&used| used).count() as u32;
        let numbers = new_numbers(snapshot, count)?;
        let is_reused = |r: &&[u32; 2]| r[0] < net.tail_before;
        net.reused = numbers.iter().take_while(is_reused).copied().collect();
        let mut numbers = numbers.into_iter().flat_map(|r| r[0]..r[1]);
        let mut place = vec![0u32; ids.len()];
        for (n, _) in used.iter().enumerate().filter(|u| *u.1) {
            now_and_then(net.terms.len(), cancel)?;
            if let Some(number) = numbers.next() {
                place[n] = FIRST_TAIL_ID + number;
                net.terms.push(changes.term(n as u32).to_vec());
            }
        }
        let final_id = |id: u32| match id.checked_sub(FIRST_QUERY_ID) {
            Some(n) => place[n as usize],
            None => id,
        };
        let mut fresh: FxHashMap<u32, u32> = FxHashMap::default();
        let mut last = (NO_VERTEX, 0);
        for (at, (quad, insert)) in effective.into_iter().enumerate() {
            now_and_then(at, cancel)?;
            let [g, p, s, o] = parts(quad).map(final_id);
            if last.0 != p {
                let known = snapshot.predicate_of(VertexId(p)).map(|p| p.0);
                let dense = known.unwrap_or_else(|| {
                    *fresh.entry(p).or_insert_with(|| {
                        net.predicates.push(p);
                        net.predicates_before + net.predicates.len() as u32 - 1
                    })
                });
                last = (p, dense);
            }
            let to = if insert {
                &mut net.added
            } else {
                &mut net.removed
            };
            to.push([g, last.1, s, o]);
        }
        net.added.sort_unstable();
        net.removed.sort_unstable();
        Ok(net)
    }

    /// Checks that this is a net effect on the snapshot: ids are known, removed quads are present and added quads
    /// absent. Terms and quads of a sharded store's base are not looked up, so that a record can be applied without the
    /// other shards.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the record from which this was decoded is damaged or belongs to another snapshot.
    pub(super) fn check(&self, snapshot: &Snapshot) -> Result<()> {
        let wrong = |what: &str| {
            Err(Error::damaged(
                "log",
                format!(
                    "a record does not match the store: {what}; restore the store from a backup"
                ),
            ))
        };
        if self.tail_before != snapshot.tail().len()
            || self.predicates_before != snapshot.predicate_count()
        {
            return wrong("it belongs to another snapshot");
        }
        let ascending = self.reused.windows(2).all(|w| w[0][1] <= w[1][0]);
        if !ascending || !self.reused.iter().all(|&run| snapshot.tail().are_free(run)) {
            return wrong("it gives a term an id that is not free");
        }
        let reused = count_of_runs(&self.reused).map(|n| n as usize);
        let Some(fresh) = reused.and_then(|n| self.terms.len().checked_sub(n)) else {
            return wrong("it names more ids than terms");
        };
        let tail = u64::from(self.tail_before) + fresh as u64;
        if tail > u64::from(FIRST_QUERY_ID - FIRST_TAIL_ID) {
            return wrong("it adds too many terms");
        }
        let is_reused = |n: u32| {
            let after = self.reused.partition_point(|r| r[1] <= n);
            self.reused.get(after).is_some_and(|r| r[0] <= n)
        };
        let known = |v: u32| match v.checked_sub(FIRST_TAIL_ID) {
            Some(n) if n < self.tail_before => snapshot.is_known(v) || is_reused(n),
            Some(n) => u64::from(n) < tail,
            None => snapshot.is_known(v),
        };
        let is_sharded = snapshot.as_sharded().is_some();
        let is_there = |t: &[u8]| match is_sharded {
            true => snapshot.tail().lookup(t).is_some(),
            false => snapshot.lookup(t).is_some(),
        };
        let mut terms: FxHashSet<&[u8]> = FxHashSet::default();
        for t in &self.terms {
            if t.is_empty() || !terms.insert(t) || is_there(t) {
                return wrong("it adds a term that already exists");
            }
        }
        let mut fresh: FxHashSet<u32> = FxHashSet::default();
        for &v in &self.predicates {
            if !known(v) || !fresh.insert(v) || snapshot.predicate_of(VertexId(v)).is_some() {
                return wrong("it adds a predicate that already exists");
            }
        }
        let predicates = u64::from(self.predicates_before) + self.predicates.len() as u64;
        for (quads, there) in [(&self.removed, true), (&self.added, false)] {
            for &[g, p, s, o] in quads {
                let sound = u64::from(p) < predicates
                    && known(s)
                    && known(o)
                    && (g == DEFAULT_GRAPH || known(g));
                if !sound {
                    return wrong("it names an unknown id");
                }
                let view = snapshot.edges(PredicateId(p), Direction::Out);
                if !is_sharded && view.contains(s, o, GraphScope::of(g)) != there {
                    return wrong("it adds an edge that exists or removes one that does not");
                }
            }
        }
        Ok(())
    }
}

/// Chooses numbers in the tail for `count` new terms, as runs.
fn new_numbers(snapshot: &Snapshot, count: u32) -> Result<Vec<[u32; 2]>> {
    let limit = snapshot.new_ids();
    snapshot.tail().next_numbers(count, limit).ok_or_else(|| {
        let used = snapshot.tail().len() - snapshot.tail().free_count();
        Error::limit(
            Resource::Numbers,
            format!(
                "{used} of the {limit} ids for new terms are in use, and the update needs {count}; a merge frees those that no quad uses, \
                 and reclustering, or loading an export, all of them"
            ),
        )
    })
}

/// Checks the deadline if `step`, the step of a loop, is a multiple of [`CHECK_EVERY`].
fn now_and_then(step: usize, cancel: &CancelToken) -> Result<()> {
    match step % CHECK_EVERY {
        0 => cancel.check(),
        _ => Ok(()),
    }
}

/// Looks up the ids of the changes' terms. New terms get temporary numbers from [`FIRST_QUERY_ID`] on.
fn lookup(
    snapshot: &Snapshot,
    changes: &Changes,
    range: std::ops::Range<usize>,
    cancel: &CancelToken,
) -> Result<Vec<u32>> {
    let mut ids = Vec::with_capacity(range.len());
    for from in range.clone().step_by(CHECK_EVERY) {
        cancel.check()?;
        let part = from..(from + CHECK_EVERY).min(range.end);
        let terms: Vec<&[u8]> = part.clone().map(|n| changes.term(n as u32)).collect();
        let before = ids.len();
        snapshot.vocabulary().lookup_many(&terms, &mut ids);
        number_new(&mut ids[before..], part.start as u32);
    }
    Ok(ids)
}

/// Gives unknown terms temporary numbers; `first` is the number of the first of all these terms.
fn number_new(ids: &mut [u32], first: u32) {
    for (id, n) in ids.iter_mut().zip(first..) {
        if *id == NO_VERTEX {
            *id = FIRST_QUERY_ID + n;
        }
    }
}

fn parts(quad: u128) -> [u32; 4] {
    [96, 64, 32, 0].map(|shift| (quad >> shift) as u32)
}

/// The distinct quads (graph, predicate's vertex, subject, object), ascending, each with true if its last change
/// inserts it.
fn sorted(
    snapshot: &Snapshot,
    changes: &[QuadChange],
    ids: &[u32],
    cancel: &CancelToken,
) -> Result<Vec<(u128, bool)>> {
    let mut quads: Vec<(u128, u32)> = Vec::with_capacity(changes.len());
    for (at, c) in changes.iter().enumerate() {
        now_and_then(at, cancel)?;
        let mut terms = c.terms;
        for (place, t) in terms.iter_mut().enumerate() {
            if c.is_local(place) {
                *t = ids[*t as usize];
            } else if !snapshot.is_known(*t) && (place != 3 || *t != DEFAULT_GRAPH) {
                return Err(Error::Usage(format!(
                    "a change names the id {t}, which its snapshot does not have"
                )));
            }
        }
        let [s, p, o, g] = terms.map(u128::from);
        let insert = u32::from(c.is_insert());
        quads.push((g << 96 | p << 64 | s << 32 | o, (at as u32) << 1 | insert));
    }
    quads.sort_unstable();
    cancel.check()?;
    let mut out: Vec<(u128, bool)> = Vec::with_capacity(quads.len());
    for (quad, at) in quads {
        let insert = at & 1 == 1;
        match out.last_mut() {
            Some(last) if last.0 == quad => last.1 = insert,
            _ => out.push((quad, insert)),
        }
    }
    Ok(out)
}

/// True for each quad that is present.
fn present(snapshot: &Snapshot, quads: &[(u128, bool)], cancel: &CancelToken) -> Result<Vec<bool>> {
    let mut out = Vec::with_capacity(quads.len());
    let (mut asked, mut at) = (Vec::new(), Vec::new());
    let mut last = (NO_VERTEX, None);
    for part in quads.chunks(CHECK_EVERY) {
        cancel.check()?;
        asked.clear();
        at.clear();
        for &(quad, _) in part {
            let [g, p, s, o] = parts(quad);
            if last.0 != p {
                last = (p, snapshot.predicate_of(VertexId(p)));
            }
            // A quad with a new term, or with a new graph, is absent.
            let is_known = [g, s, o].iter().all(|&v| v < FIRST_QUERY_ID);
            if let (Some(p), true) = (last.1, is_known) {
                at.push(out.len());
                asked.push([g, p.0, s, o]);
            }
            out.push(false);
        }
        for (&at, there) in at.iter().zip(snapshot.contain(&asked)) {
            out[at] = there;
        }
    }
    Ok(out)
}
