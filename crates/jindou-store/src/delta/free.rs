//! Freeing terms that updates added and that no quad uses any more: their text is dropped, and the next new terms get
//! their ids.
//!
//! A record of the log frees ids, in the same way as records remove quads. So at every snapshot number each server has
//! the same free ids, whichever base it uses and whenever it merged. The next record may already assign a freed id
//! again, without waiting for any reader:
//!
//! - **Snapshots** have their own terms ([`TailTerms`](jindou_graph::delta::TailTerms)); versions share the unchanged
//!   parts. A query, a cursor or an export of an older snapshot reads the old term of the id.
//! - **Bases and patches** are sets of quads of ids. A base may still have quads with the id, because a patch removes
//!   them or another server has not merged. That makes no difference: base and patch together are exactly the quads of
//!   their snapshot number. Data derived from quads by id (intervals of classes, predicates of vertices, subjects of
//!   graphs) may have superfluous entries, as after any removal.
//! - **Files**: `delta.jd` of a merge has the terms of its snapshot; free ids have an empty term. The files of shards have
//!   the free ids, since the text of other terms is elsewhere. The log after the merge has the records that free and
//!   assign ids.
//! - **Plans** and other data that outlives a snapshot: freeing changes the *shape* of the snapshot, so queries are
//!   planned again. Caches of terms by id compare the terms ([`TermsMark`]).
//!
//! [`TermsMark`]: jindou_graph::delta::TermsMark
//!
//! Ids of predicates are never freed, since each predicate has a segment.

use super::record::{self, damaged};
use crate::snapshot::Snapshot;
use jindou_graph::delta::{count_of_runs, push_number};
use jindou_model::{Direction, FIRST_TAIL_ID, PredicateId, Result, VertexId};

/// Largest number of entries of a graph for which it is searched whether the graph still has a quad; the names of
/// graphs with more entries keep their ids.
const MOST_ENTRIES: usize = 1 << 12;
/// Most terms that one record frees. Updates wait for some 50 ms while this many are freed.
const MOST_FREED: u32 = 1 << 16;

impl Snapshot {
    /// The terms that updates added and that no quad uses, as runs `[first, end)` of numbers in the tail, in parts that
    /// suit [`Self::free_terms`]. In a sharded store, terms that lost quads since the last merge are left out, since
    /// only the shards that own them know whether other quads use them. O(ids of the tail, predicates of vertices of
    /// the tail, and edits).
    #[must_use]
    pub fn unused_terms(&self) -> Vec<Vec<[u32; 2]>> {
        let tail = self.tail();
        let mut used = Marks(vec![0; tail.len().div_ceil(64) as usize]);
        let first = u64::from(FIRST_TAIL_ID) << 32;
        for direction in [Direction::Out, Direction::In] {
            let entries = self.touched().more(direction).range(first, u64::MAX);
            entries
                .flatten()
                .for_each(|e| used.set((e >> 32) as u32, true));
        }
        self.touched().graphs().for_each(|g| used.set(g, true));
        (0..self.predicate_count()).for_each(|p| used.set(self.vertex_of(PredicateId(p)).0, true));
        // Edges that were merged and then removed still have entries.
        let changed = [Direction::Out, Direction::In].into_iter().flat_map(|d| {
            let patches = (0..self.predicate_count()).filter_map(move |p| self.patch(p, d));
            patches.flat_map(|patch| patch.keys())
        });
        for id in changed.chain(self.touched().shrunk()) {
            if id >= FIRST_TAIL_ID && !self.may_use(id, MOST_ENTRIES) {
                used.set(id, false);
            }
        }
        let mut parts: Vec<Vec<[u32; 2]>> = Vec::new();
        let mut room = 0;
        let free = tail.free_runs().flat_map(|[first, end]| first..end);
        free.for_each(|n| used.set(FIRST_TAIL_ID + n, true));
        for n in 0..tail.len() {
            if used.has(n) {
                continue;
            }
            if room == 0 {
                parts.push(Vec::new());
                room = MOST_FREED;
            }
            room -= 1;
            let Some(part) = parts.last_mut() else { break };
            push_number(part, n);
        }
        parts
    }

    /// Creates the next snapshot, in which those of the candidates that no quad uses are freed, and its record. `None`
    /// if quads use all of them. O(terms log edits).
    ///
    /// # Errors
    /// [`Error::Limit`](jindou_model::Error::Limit) when snapshot numbers run out.
    pub fn free_terms(&self, candidates: &[[u32; 2]]) -> Result<Option<(Self, Vec<u8>)>> {
        let number = self.next_number()?;
        let mut runs: Vec<[u32; 2]> = Vec::new();
        let numbers = candidates
            .iter()
            .flat_map(|r| r[0]..r[1].min(self.tail().len()));
        for n in numbers.take(MOST_FREED as usize) {
            let id = FIRST_TAIL_ID + n;
            let ascends = runs.last().is_none_or(|last| last[1] <= n);
            if ascends && self.is_known(id) && !self.may_use(id, MOST_ENTRIES) {
                push_number(&mut runs, n);
            }
        }
        Ok((!runs.is_empty()).then(|| {
            let record = record::encode_freed(&runs, number);
            (self.with_freed(&runs, number), record)
        }))
    }

    /// True if a quad may use the id of a new term. Exact in an unsharded store, except that a graph with more than
    /// `most_entries` entries is not searched for quads and counts as used.
    fn may_use(&self, id: u32, most_entries: usize) -> bool {
        self.predicate_of(VertexId(id)).is_some()
            || [Direction::Out, Direction::In]
                .iter()
                .any(|&d| self.may_have_edges(id, d))
            || self.may_be_graph(id, most_entries)
    }

    fn may_have_edges(&self, id: u32, direction: Direction) -> bool {
        let first = u64::from(id) << 32;
        let more = self.touched().more(direction);
        let mut predicates = more.range(first, first | 0xFFFF_FFFF).flatten();
        predicates.any(|&e| {
            self.as_sharded().is_some() || {
                let view = self.local_edges(PredicateId(e as u32), direction);
                view.default_degree(id) > 0 || view.named_degree(id) > 0
            }
        })
    }

    fn may_be_graph(&self, id: u32, most_entries: usize) -> bool {
        let touched = self.touched();
        let entries = || {
            touched
                .graph_entries()
                .count([id, 0, 0], [id, u32::MAX, u32::MAX])
        };
        touched.has_graph(id)
            && (self.as_sharded().is_some() || entries() > most_entries || self.has_graph(id))
    }

    /// As [`Self::free_terms`], for the runs in a record.
    pub(super) fn replay_freed(&self, runs: &[[u32; 2]], number: u64) -> Result<Self> {
        let mut numbers = runs.iter().flat_map(|r| r[0]..r[1]);
        if count_of_runs(runs).is_none_or(|n| n > self.tail().len()) {
            return Err(damaged("it frees more ids than there are"));
        }
        let sound = numbers.all(|n| {
            let id = FIRST_TAIL_ID + n;
            self.is_known(id)
                && match self.as_sharded() {
                    // Whether quads use the id is known only to the shard that owns it, so this is not checked.
                    Some(_) => self.predicate_of(VertexId(id)).is_none(),
                    // All entries are searched: their number depends on this server's merges, so it must not decide the
                    // result.
                    None => !self.may_use(id, usize::MAX),
                }
        });
        match sound {
            true => Ok(self.with_freed(runs, number)),
            false => Err(damaged("it frees the id of a term that is in use")),
        }
    }

    fn with_freed(&self, runs: &[[u32; 2]], number: u64) -> Self {
        let mut next = self.successor(number);
        next.tail_mut().free(runs);
        let ids: Vec<[u32; 2]> = runs.iter().map(|r| r.map(|n| FIRST_TAIL_ID + n)).collect();
        next.touched_mut().forget(self.sets_of_base(), &ids);
        next.revisions_mut().forget(&ids);
        next.finish(0, 0, true);
        next
    }
}

/// One bit for each number of the tail.
struct Marks(Vec<u64>);

impl Marks {
    fn set(&mut self, id: u32, to: bool) {
        if let Some(n) = id.checked_sub(FIRST_TAIL_ID)
            && let Some(word) = self.0.get_mut(n as usize / 64)
        {
            let bit = 1 << (n % 64);
            *word = if to { *word | bit } else { *word & !bit };
        }
    }

    fn has(&self, n: u32) -> bool {
        let word = self.0.get(n as usize / 64);
        word.is_some_and(|word| word >> (n % 64) & 1 == 1)
    }
}
