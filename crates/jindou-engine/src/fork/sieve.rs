//! ORDER BY with LIMIT at the parts: rows that cannot be in the result are not sent to the coordinator.
//!
//! A sieve remembers the first `most` of the rows that it has let pass, in the order of the first sort column. The last
//! of them is its *bound*. Since the coordinator gets `most` rows up to the bound, it needs no row that sorts strictly
//! after the bound, and no row equal to it if there is no other sort column. Terms are compared by their content
//! ([`Added`]), as at the coordinator. Terms of other shards are fetched, unless the id alone decides ([`Beyond`]).
//! Rows whose term is unknown pass, and are not among the `most`.

use super::beyond::{Beyond, OrderedRuns};
use super::message::{Columns, FirstByColumn};
use crate::batch::OperatorCharge;
use crate::values::{Added, each_term};
use jindou_graph::TermDecoding;
use jindou_model::sync::lock;
use jindou_model::{FIRST_QUERY_ID, Holder, MemoryBudget, NO_VERTEX, term};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Largest LIMIT for which sieves are used. Above it, all rows are sent and only the coordinator compares terms.
pub(crate) const MOST: u64 = 1 << 16;
/// Rows that pass without comparison at the beginning: at least this many, and at least this many times the LIMIT. A
/// part with fewer rows has little to gain.
const EARLY: usize = 256;
const EARLY_TIMES: usize = 4;
/// When comparisons begin, the last of the [`EARLY`] rows are compared as well: this many times the LIMIT, so that the
/// first bound rejects about half of the following rows.
const COMPARED_TIMES: usize = 2;
/// Number of ids of a batch whose terms are compared first; the intervals learned from them may decide other ids.
const SAMPLE: usize = 512;
/// Batches with fewer undecided rows than this pass without comparison.
const FEW: usize = 32;
/// Number of compared terms after which a sieve checks its benefit. If it has rejected less than one row per [`WORTH`]
/// terms, it stops comparing.
const TRIED: u64 = 1 << 15;
const WORTH: u64 = 4;
/// Number of entries in the cache of ids; a power of two.
const SEEN: usize = 1 << 14;
/// In the cache, in place of the bound's version: the id's rows are never needed, however the bound is tightened.
const BEYOND: u32 = u32::MAX;
/// In place of the number of rows of an id that pass: all of them.
const ALL: u64 = u64::MAX;
/// Stands for the tag of a term that is not a string.
const NO_TEXT: u8 = term::FIRST_DATATYPE;
/// Granularity of memory charges in bytes.
const STEP: usize = 1 << 16;

/// The sieves of a part's workers.
pub(crate) struct Sieves {
    first: FirstByColumn,
    budget: MemoryBudget,
    /// Sieves of workers that have ended, for the next workers.
    spare: Mutex<Vec<Sieve>>,
    /// The tightest bound of all workers.
    bound: Mutex<Option<Arc<Added<'static>>>>,
}

impl Sieves {
    pub fn new(first: FirstByColumn, budget: &MemoryBudget) -> Self {
        Self {
            first,
            budget: budget.clone(),
            spare: Mutex::default(),
            bound: Mutex::default(),
        }
    }

    /// A sieve for a worker: that of a worker which has ended, with the rows that it remembers, or a new one.
    pub fn take(&self) -> Sieve {
        let spare = lock(&self.spare).pop();
        spare.unwrap_or_else(|| Sieve::new(self.first, &self.budget))
    }

    pub fn give_back(&self, sieve: Sieve) {
        lock(&self.spare).push(sieve);
    }
}

/// Rows with the same id that passed and are among the first `most`.
struct TopEntry {
    key: Arc<Added<'static>>,
    /// Bytes of the term.
    bytes: usize,
    rows: u64,
    /// Position of the id in the current batch; `None` if the rows are from an earlier batch.
    at: Option<usize>,
    is_descending: bool,
}

impl Ord for TopEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        directed(&self.key, &other.key, self.is_descending)
    }
}

impl PartialOrd for TopEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for TopEntry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for TopEntry {}

fn directed(a: &Added<'_>, b: &Added<'_>, is_descending: bool) -> Ordering {
    match is_descending {
        true => b.order(a),
        false => a.order(b),
    }
}

/// The first `most` of the rows that passed: a heap with the row that sorts last on top.
struct TopRows {
    first: FirstByColumn,
    heap: BinaryHeap<TopEntry>,
    /// Total number of rows of the entries.
    rows: u64,
    /// Total bytes of the entries' terms.
    bytes: usize,
}

impl TopRows {
    fn most(&self) -> u64 {
        u64::from(self.first.most)
    }

    fn order(&self, a: &Added<'_>, b: &Added<'_>) -> Ordering {
        directed(a, b, self.first.is_descending)
    }

    /// Adds rows. Entries of the current batch that are no longer among the first `most` are appended to `out`.
    fn push(&mut self, entry: TopEntry, out: &mut Vec<TopEntry>) {
        self.rows += entry.rows;
        self.bytes += entry.bytes;
        self.heap.push(entry);
        let most = self.most();
        while let Some(mut last) = self.heap.peek_mut() {
            let before = self.rows - last.rows;
            if before < most {
                // The last entry's rows are equal, so without another sort column any of them may be omitted.
                if self.first.is_alone && self.rows > most {
                    last.rows = most - before;
                    self.rows = most;
                }
                return;
            }
            self.rows = before;
            self.bytes -= last.bytes;
            let last = PeekMut::pop(last);
            if last.at.is_some() {
                out.push(last);
            }
        }
    }

    /// The bound: the key of the last of `most` rows; `None` while there are fewer rows.
    fn bound(&self) -> Option<&Arc<Added<'static>>> {
        let last = self.heap.peek()?;
        (self.rows >= self.most()).then_some(&last.key)
    }

    fn holds(&self) -> usize {
        const ARC: usize = 16;
        let entry = size_of::<TopEntry>() + size_of::<Added<'static>>() + ARC;
        self.heap.len() * entry + self.bytes
    }
}

/// The distinct ids of a batch, ascending, with the state of each.
struct IdBatch {
    ids: Vec<u32>,
    /// For each id, the number of its rows.
    counts: Vec<u64>,
    /// For each id, the number of its rows that pass; [`ALL`] for all of them.
    passes: Vec<u64>,
    /// For each id, the tag of its term's canonical bytes.
    tags: Vec<u8>,

    inside: Vec<usize>,
    /// Rows that were added and are no longer among the first `most`.
    out: Vec<TopEntry>,
    /// Number of rows whose terms were compared.
    compared: u64,
}

impl IdBatch {
    /// Groups ids and rows by id.
    fn from_groups(groups: &[&[(u32, u32)]]) -> Self {
        Self {
            ids: groups.iter().filter_map(|g| Some(g.first()?.0)).collect(),
            counts: groups.iter().map(|g| g.len() as u64).collect(),
            passes: vec![ALL; groups.len()],
            tags: vec![NO_TEXT; groups.len()],
            inside: Vec::new(),
            out: Vec::new(),
            compared: 0,
        }
    }
}

/// One worker's sieve.
pub(crate) struct Sieve {
    best: TopRows,
    bound: Option<Arc<Added<'static>>>,
    /// Version of the bound, increased when it is tightened.
    version: u32,
    /// Ids of the rows that passed before comparisons began.
    early: Vec<u32>,
    /// Cache of comparison results: an id, and either [`BEYOND`] or, for an id whose term equals the bound, the version
    /// of that bound.
    seen: Vec<[u32; 2]>,
    beyond: Beyond,
    /// The ids of a batch that neither the cache nor an interval decides, each with its row.
    order: Vec<(u32, u32)>,
    keep: Vec<bool>,
    /// Number of rows whose terms were compared (`tried`) and that were rejected (`held`) since the last check of the
    /// benefit.
    tried: u64,
    held: u64,
    is_over: bool,
    charge: OperatorCharge,
}

impl Sieve {
    fn new(first: FirstByColumn, budget: &MemoryBudget) -> Self {
        Self {
            best: TopRows {
                first,
                heap: BinaryHeap::new(),
                rows: 0,
                bytes: 0,
            },
            bound: None,
            version: 0,
            early: Vec::new(),
            seen: Vec::new(),
            beyond: Beyond::default(),
            order: Vec::new(),
            keep: Vec::new(),
            tried: 0,
            held: 0,
            is_over: false,
            charge: OperatorCharge::for_holder(Holder::Shards, budget),
        }
    }

    /// Removes unneeded rows from position `from` on; returns how many. The caller must send the remaining rows, since
    /// the bound relies on them.
    pub fn sift(
        &mut self,
        rows: &mut Columns,
        from: usize,
        (terms, runs): (&mut TermDecoding<'_>, &OrderedRuns<'_>),
        all: &Sieves,
    ) -> u64 {
        let column = rows.columns.get(self.best.first.column as usize);
        let column = column.and_then(|c| c.get(from..)).unwrap_or(&[]);
        if self.is_over || column.is_empty() {
            return 0;
        }
        if self.seen.is_empty() {
            let enough = EARLY.max(EARLY_TIMES * self.best.first.most as usize);
            if self.early.len() + column.len() < enough {
                self.early.extend_from_slice(column);
                self.is_charged();
                return 0;
            }
            self.seen.resize(SEEN, [NO_VERTEX, 0]);
            self.take_early(terms);
        }
        self.adopt(all);
        self.keep.clear();
        self.keep.resize(column.len(), true);
        self.order.clear();
        for ((row, &id), keep) in (0..).zip(column).zip(&mut self.keep) {
            match self.seen[place(id)] {
                [known, BEYOND] if known == id => *keep = false,
                [known, version] if known == id && version == self.version => {}
                // Unbound values and ids of this query's own terms pass without being counted, since only the
                // coordinator knows what they sort as.
                _ if id == NO_VERTEX || id >= FIRST_QUERY_ID => {}
                _ if self.beyond.has(runs, id) => *keep = false,
                _ => self.order.push((id, row)),
            }
        }
        if self.order.len() >= FEW {
            self.judge(terms, runs);
            self.publish(all);
        }
        let kept = retain(rows, from, &self.keep);
        let out = (self.keep.len() - kept) as u64;
        self.is_charged();
        self.held += out;
        if self.tried >= TRIED {
            if self.held * WORTH < self.tried {
                self.end();
            }
            (self.tried, self.held) = (0, 0);
        }
        out
    }

    /// Adds the early rows to the first `most`, which sets the first bound.
    fn take_early(&mut self, terms: &mut TermDecoding<'_>) {
        let mut early = std::mem::take(&mut self.early);
        let compared = EARLY.max(COMPARED_TIMES * self.best.first.most as usize);
        early.drain(..early.len().saturating_sub(compared));
        early.retain(|&id| id != NO_VERTEX && id < FIRST_QUERY_ID);
        early.sort_unstable();
        let groups: Vec<usize> = early.chunk_by(|a, b| a == b).map(<[u32]>::len).collect();
        early.dedup();
        each_term(terms, &early, |at, term| {
            if let Some(term) = term
                && !self.is_over
            {
                self.insert(term, groups[at] as u64, None, &mut Vec::new());
            }
        });
        self.bound = self.best.bound().cloned();
        self.version += 1;
    }

    /// Adds rows with this term if it sorts before the bound; returns its order relative to the bound.
    fn insert(
        &mut self,
        term: &[u8],
        rows: u64,
        at: Option<usize>,
        out: &mut Vec<TopEntry>,
    ) -> Ordering {
        let key = Added::new(None, term.into());
        let bound = self.bound.as_deref();
        let order = bound.map_or(Ordering::Less, |b| self.best.order(&key, b));
        if order == Ordering::Less {
            let entry = TopEntry {
                key: Arc::new(key.into_owned()),
                bytes: term.len(),
                rows,
                at,
                is_descending: self.best.first.is_descending,
            };
            self.best.push(entry, out);
            // Charged at once, since terms may be long and the caller may add many before it charges.
            if self.holds() as u64 > self.charge.bytes() {
                self.is_charged();
            }
        }
        order
    }

    /// Decides which rows of `order` pass, and records it in `keep`.
    fn judge(&mut self, terms: &mut TermDecoding<'_>, runs: &OrderedRuns<'_>) {
        self.order.sort_unstable();
        let order = std::mem::take(&mut self.order);
        let same = |a: &(u32, u32), b: &(u32, u32)| a.0 == b.0;
        let groups: Vec<&[(u32, u32)]> = order.chunk_by(same).collect();
        let mut batch = IdBatch::from_groups(&groups);
        let n = groups.len();
        if n < 2 * SAMPLE {
            self.compare(&mut batch, &(0..n).collect::<Vec<_>>(), terms);
        } else {
            // The ids are sorted, so an evenly spaced sample has ids of all runs.
            let step = n / SAMPLE;
            let sample: Vec<usize> = (0..n).step_by(step).collect();
            self.compare(&mut batch, &sample, terms);
            if !self.is_over {
                self.learn(&batch, runs);
            }
            let mut rest: Vec<usize> = (0..n).filter(|at| at % step != 0).collect();
            rest.retain(|&at| {
                let is_beyond = self.beyond.has(runs, batch.ids[at]);
                if is_beyond {
                    batch.passes[at] = 0;
                }
                !is_beyond
            });
            self.compare(&mut batch, &rest, terms);
        }
        if !self.is_over {
            self.settle(&mut batch);
        }
        for (at, group) in groups.iter().enumerate() {
            let pass = usize::try_from(batch.passes[at]).unwrap_or(usize::MAX);
            for &(_, row) in group.get(pass..).unwrap_or(&[]) {
                self.keep[row as usize] = false;
            }
            if pass == 0 {
                let id = batch.ids[at];
                self.seen[place(id)] = [id, BEYOND];
                self.beyond.insert(runs, id, batch.tags[at]);
            }
        }
        self.tried += batch.compared;
        self.order = order;
    }

    /// Compares the terms of some ids of a batch with the bound, and adds the rows of those that sort before it.
    fn compare(&mut self, batch: &mut IdBatch, some: &[usize], terms: &mut TermDecoding<'_>) {
        let ids: Vec<u32> = some.iter().map(|&at| batch.ids[at]).collect();
        each_term(terms, &ids, |place_of, term| {
            let at = some[place_of];
            let Some(term) = term else { return };
            if self.is_over {
                return;
            }
            batch.compared += batch.counts[at];
            batch.tags[at] = term.first().copied().unwrap_or(NO_TEXT);
            match self.insert(term, batch.counts[at], Some(at), &mut batch.out) {
                Ordering::Less => batch.inside.push(at),
                Ordering::Equal if !self.best.first.is_alone => {
                    self.seen[place(batch.ids[at])] = [batch.ids[at], self.version];
                }
                _ => batch.passes[at] = 0,
            }
        });
        // Rows added later in the batch may have displaced earlier ones; `settle` lets only the remaining ones pass.
        if let Some(bound) = self.best.bound().cloned() {
            self.tighten(&bound);
        }
    }

    /// Extends the intervals of [`Beyond`] by the ids of a batch that are known to sort after the bound.
    fn learn(&mut self, batch: &IdBatch, runs: &OrderedRuns<'_>) {
        let not_passing = batch.passes.iter().enumerate().filter(|p| *p.1 == 0);
        for (at, _) in not_passing {
            self.beyond.insert(runs, batch.ids[at], batch.tags[at]);
        }
        for entry in &batch.out {
            if let Some(at) = entry.at
                && !self.passes_as_tie(entry)
            {
                self.beyond.insert(runs, batch.ids[at], batch.tags[at]);
            }
        }
    }

    /// True if the rows equal the bound and must pass, since other sort columns decide between equal rows.
    fn passes_as_tie(&self, entry: &TopEntry) -> bool {
        let bound = self.best.bound();
        let is_tie = bound.is_some_and(|b| entry.key.order(b) == Ordering::Equal);
        is_tie && !self.best.first.is_alone
    }

    /// Of the rows added in this batch, lets those pass that are still among the first `most`.
    fn settle(&mut self, batch: &mut IdBatch) {
        for &at in &batch.inside {
            batch.passes[at] = 0;
        }
        for entry in &batch.out {
            if let Some(at) = entry.at
                && self.passes_as_tie(entry)
            {
                batch.passes[at] = ALL;
            }
        }
        let mut entries = std::mem::take(&mut self.best.heap).into_vec();
        for entry in &mut entries {
            // `at` is a position in this batch, so it is removed before the next batch.
            if let Some(at) = entry.at.take() {
                batch.passes[at] = match self.best.first.is_alone {
                    true => entry.rows,
                    false => ALL,
                };
            }
        }
        self.best.heap = entries.into();
    }

    /// Adopts the bound of all workers if it is tighter. It is valid for each of them: the worker that published it let
    /// enough rows up to it pass.
    fn adopt(&mut self, all: &Sieves) {
        if let Some(other) = &*lock(&all.bound) {
            self.tighten(other);
        }
    }

    /// Publishes this worker's bound to the other workers if it is tighter than theirs.
    fn publish(&mut self, all: &Sieves) {
        if let Some(own) = self.best.bound().cloned() {
            self.tighten(&own);
        }
        let Some(own) = &self.bound else { return };
        let mut bound = lock(&all.bound);
        let other = bound.as_deref();
        if other.is_none_or(|o| self.best.order(own, o) == Ordering::Less) {
            *bound = Some(Arc::clone(own));
        }
    }

    fn tighten(&mut self, other: &Arc<Added<'static>>) {
        let own = self.bound.as_deref();
        if own.is_none_or(|own| self.best.order(other, own) == Ordering::Less) {
            self.bound = Some(Arc::clone(other));
            // At most one increase per batch, so the limit is not reached in practice.
            self.version = self.version.saturating_add(1).min(BEYOND - 1);
        }
    }

    fn holds(&self) -> usize {
        let pairs = self.seen.capacity() + self.order.capacity();
        self.best.holds()
            + self.beyond.bytes()
            + 4 * self.early.capacity()
            + 8 * pairs
            + self.keep.capacity()
    }

    /// Charges the memory held. If the budget has too little, ends the sieve, which then lets all rows pass, and
    /// returns false.
    fn is_charged(&mut self) -> bool {
        let holds = self.holds().next_multiple_of(STEP);
        if holds as u64 != self.charge.bytes() && self.charge.set(holds).is_err() {
            self.end();
        }
        !self.is_over
    }

    fn end(&mut self) {
        self.is_over = true;
        self.best.heap = BinaryHeap::new();
        (self.best.rows, self.best.bytes) = (0, 0);
        self.early = Vec::new();
        self.beyond = Beyond::default();
        // Reducing a charge never fails.
        let _ = self.charge.set(0);
    }
}

/// Position of an id in [`Sieve::seen`].
#[inline]
fn place(id: u32) -> usize {
    const SHIFT: u32 = u32::BITS - SEEN.ilog2();
    (id.wrapping_mul(0x9E37_79B9) >> SHIFT) as usize
}

/// Removes the rows from position `from` on for which `keep` is false; returns the number of kept rows.
fn retain(rows: &mut Columns, from: usize, keep: &[bool]) -> usize {
    let kept = keep.iter().filter(|k| **k).count();
    if kept == keep.len() {
        return kept;
    }
    for column in &mut rows.columns {
        let mut at = from;
        let all: Range<usize> = from..column.len();
        for (row, &keep) in all.zip(keep) {
            column[at] = column[row];
            at += usize::from(keep);
        }
        column.truncate(at);
    }
    rows.rows -= (keep.len() - kept) as u64;
    kept
}

#[cfg(test)]
mod tests;
