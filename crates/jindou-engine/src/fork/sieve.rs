//! ORDER BY with LIMIT at the parts: rows that cannot be in the answer are not sent.
//!
//! Among the rows that it has let pass, a sieve remembers the first `most` by the first sort column; the last of these
//! is its *bound*. The coordinator then has `most` rows up to the bound. So it needs no row that sorts strictly after
//! the bound, and no row equal to it if there is no other sort column. Terms are compared as at the coordinator, by
//! their content ([`Added`]). Terms of other shards are fetched, unless their ids are sufficient ([`Beyond`]). Rows
//! whose term is unknown pass and do not count.

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

/// Largest LIMIT for which sieves are used; for a larger one, terms are compared at the coordinator only.
pub(crate) const MOST: u64 = 1 << 16;
/// Number of rows that pass before terms are compared: at least this many, and at least this many times the LIMIT. With
/// fewer rows there is little to gain.
const EARLY: usize = 256;
const EARLY_TIMES: usize = 4;
/// When comparisons begin, the last rows that passed are compared as well: this many times the LIMIT, so that half of
/// the following rows are rejected.
const COMPARED_TIMES: usize = 2;
/// Number of ids of a batch whose terms are compared first. Their result may decide the other ids as well.
const SAMPLE: usize = 512;
/// Batches with fewer rows than this are not worth comparing.
const FEW: usize = 32;
/// Number of compared terms after which a sieve checks its benefit. If it rejected less than one row per [`WORTH`]
/// terms, it stops.
const TRIED: u64 = 1 << 15;
const WORTH: u64 = 4;
/// Number of ids whose result is cached; a power of two.
const SEEN: usize = 1 << 14;
/// The version of ids whose rows are never needed.
const BEYOND: u32 = u32::MAX;
/// In place of a number of rows: all rows of an id pass.
const ALL: u64 = u64::MAX;
/// The tag of a term that is not a string.
const NO_TEXT: u8 = term::FIRST_DATATYPE;
/// Granularity of memory charges in bytes.
const STEP: usize = 1 << 16;

/// The sieves of a part's workers.
pub(crate) struct Sieves {
    first: FirstByColumn,
    budget: MemoryBudget,
    /// Sieves of workers that have ended, for reuse.
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

    /// A sieve for a worker: one that another worker has returned, with the rows that it remembers, or a new one.
    pub fn take(&self) -> Sieve {
        let spare = lock(&self.spare).pop();
        spare.unwrap_or_else(|| Sieve::new(self.first, &self.budget))
    }

    pub fn give_back(&self, sieve: Sieve) {
        lock(&self.spare).push(sieve);
    }
}

/// Rows with one id that passed and are among the first `most`.
struct TopEntry {
    key: Arc<Added<'static>>,
    /// Bytes of the term.
    bytes: usize,
    rows: u64,
    /// Position of the id in the current batch; `None` if it is from an earlier batch.
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

/// The first `most` of the rows that passed, as a heap with the last of them on top.
struct TopRows {
    first: FirstByColumn,
    heap: BinaryHeap<TopEntry>,
    /// Number of rows of the entries.
    rows: u64,
    /// Bytes of their terms.
    bytes: usize,
}

impl TopRows {
    fn most(&self) -> u64 {
        u64::from(self.first.most)
    }

    fn order(&self, a: &Added<'_>, b: &Added<'_>) -> Ordering {
        directed(a, b, self.first.is_descending)
    }

    /// Adds rows. Appends those of the current batch that are no longer among the first to `out`.
    fn push(&mut self, entry: TopEntry, out: &mut Vec<TopEntry>) {
        self.rows += entry.rows;
        self.bytes += entry.bytes;
        self.heap.push(entry);
        let most = self.most();
        while let Some(mut last) = self.heap.peek_mut() {
            let before = self.rows - last.rows;
            if before < most {
                // Without another sort column, any of several equal rows may be omitted.
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

    /// The bound: the key of the last of `most` rows; `None` while there are fewer.
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

/// The distinct ids of a batch, ascending, with the results for each.
struct IdBatch {
    ids: Vec<u32>,
    /// For each id, the number of its rows.
    counts: Vec<u64>,
    /// For each id, the number of its rows that pass.
    passes: Vec<u64>,
    /// For each id, the tag of its term.
    tags: Vec<u8>,
    /// Positions of ids whose rows were added to the first `most`.
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
    /// Ids of rows that passed before comparisons began.
    early: Vec<u32>,
    /// Cache of comparisons with the bound: an id, and either [`BEYOND`] or, for an id whose term equals the bound, the
    /// version of that bound.
    seen: Vec<[u32; 2]>,
    beyond: Beyond,
    /// Ids and rows of a batch.
    order: Vec<(u32, u32)>,
    keep: Vec<bool>,
    /// Since the last check of the benefit: number of rows whose terms were compared, and number of rejected rows.
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

    /// Removes unneeded rows from position `from` on; returns their number. The caller must send the others.
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
                // Unbound values do not count, since operators above may bind them.
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

    /// Compares rows that passed before comparisons began.
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

    /// Adds rows unless their term sorts after the bound; returns the result of the comparison.
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
            // Terms may be long, and many may be added before memory is checked again.
            if self.holds() as u64 > self.charge.bytes() {
                self.is_charged();
            }
        }
        order
    }

    /// Decides which rows of `order` pass.
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
            // The sample is spread evenly over all runs.
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

    /// Compares the terms of some ids of a batch with the bound, and adds those that sort before it.
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
        // Rows of the batch tighten the bound for each other; those that are among the first at the end pass.
        if let Some(bound) = self.best.bound().cloned() {
            self.tighten(&bound);
        }
    }

    /// Caches the ids of a batch whose terms sort after the bound.
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

    /// True for rows equal to the bound if other sort columns decide.
    fn passes_as_tie(&self, entry: &TopEntry) -> bool {
        let bound = self.best.bound();
        let is_tie = bound.is_some_and(|b| entry.key.order(b) == Ordering::Equal);
        is_tie && !self.best.first.is_alone
    }

    /// Lets those added rows pass that are still among the first `most`.
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
            // For the next batch these are rows that passed earlier.
            if let Some(at) = entry.at.take() {
                batch.passes[at] = match self.best.first.is_alone {
                    true => entry.rows,
                    false => ALL,
                };
            }
        }
        self.best.heap = entries.into();
    }

    /// Adopts another worker's bound if it is tighter. A bound is valid for all workers, since enough rows up to it
    /// passed in the worker that published it.
    fn adopt(&mut self, all: &Sieves) {
        if let Some(other) = &*lock(&all.bound) {
            self.tighten(other);
        }
    }

    /// Publishes this worker's bound to the others.
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
            // Increased at most once per batch, so it cannot reach the limit in practice.
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

    /// Charges the memory held. Returns false if there is none left; the sieve then lets all rows pass.
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

/// Keeps the rows from `from` on that `keep` accepts; returns their number.
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
