//! DISTINCT passes a row on when it is seen for the first time. The set of rows is partitioned by hash, and a worker
//! locks each partition once per batch. A set of many ids of a single column becomes a bitmap, which needs no locks.

use super::stage::{NewWorker, NextStages, StageSpec, StageWorker};
use crate::batch::{Batch, OperatorCharge, View};
use crate::compile::PipelineBuilder;
use crate::explore::{Consumer, Flow, Halt, QueryContext};
use crate::key_table::{KeyTable, NONE, hash_rows};
use crate::table::hash;
use crate::tree::{SlotLayout, common};
use jindou_model::sync;
use jindou_model::{FIRST_TAIL_ID, Holder, MemoryBudget, Result};
use jindou_plan::{Slot, operator};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

/// Number of partitions of a set that several workers share.
const PARTS: usize = 16;
/// Number of ids from which on a set of one column becomes a bitmap, unless that would be too large.
const BITMAP_FROM: usize = 1 << 13;
/// How many rows ahead entries of the set are prefetched.
const AHEAD: usize = 8;

/// State of a DISTINCT that all workers share.
struct SharedDistinct {
    /// The columns that rows keep, by which they are compared.
    columns: Vec<usize>,
    parts: Vec<Mutex<KeyTable>>,
    /// Number of keys in all partitions.
    len: AtomicUsize,
    bits: OnceLock<SharedBitmap>,
    /// Number of ids that the bitmap covers: those of the base. Others stay in the partitions.
    span: u32,
    budget: MemoryBudget,
    /// For rows without columns: whether one was passed on.
    given: AtomicBool,
}

struct SharedBitmap {
    words: Vec<AtomicU64>,
    _charge: OperatorCharge,
}

impl SharedDistinct {
    fn new(layout: &[Slot], slots: &[Slot], ctx: &QueryContext<'_>) -> Self {
        let layout = SlotLayout::new(layout);
        let columns: Vec<usize> = slots
            .iter()
            .filter_map(|s| layout.position_of(*s))
            .collect();
        let parts = if ctx.threads > 1 { PARTS } else { 1 };
        let width = columns.len();
        Self {
            parts: (0..parts)
                .map(|_| {
                    Mutex::new(KeyTable::new(
                        width,
                        0,
                        OperatorCharge::for_holder(Holder::Distinct, ctx.budget),
                    ))
                })
                .collect(),
            columns,
            len: AtomicUsize::new(0),
            bits: OnceLock::new(),
            span: ctx
                .snapshot
                .dense_ids()
                .saturating_add(1)
                .min(FIRST_TAIL_ID),
            budget: ctx.budget.clone(),
            given: AtomicBool::new(false),
        }
    }

    /// Bytes held.
    fn bytes(&self) -> u64 {
        let parts: u64 = self.parts.iter().map(|p| lock(p).bytes()).sum();
        parts + self.bits.get().map_or(0, |b| b.words.len() as u64 * 8)
    }

    /// The bitmap of a set with one column; `None` while there are too few ids, or not enough memory.
    fn bitmap(&self) -> Option<&SharedBitmap> {
        if let Some(b) = self.bits.get() {
            return Some(b);
        }
        let n = self.len.load(Ordering::Relaxed);
        // The table takes about 12 to 40 bytes per id, the bitmap an eighth of a byte per vertex of the base.
        if self.columns.len() != 1 || n < BITMAP_FROM || n * 64 < self.span as usize / 8 {
            return None;
        }
        let words = (self.span as usize).div_ceil(64);
        let mut charge = OperatorCharge::for_holder(Holder::Distinct, &self.budget);
        charge.set(words * 8).ok()?;
        let bitmap = SharedBitmap {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            _charge: charge,
        };
        Some(self.bits.get_or_init(|| bitmap))
    }
}

fn lock(part: &Mutex<KeyTable>) -> std::sync::MutexGuard<'_, KeyTable> {
    sync::lock(part)
}

impl<'a> PipelineBuilder<'_, 'a> {
    pub(super) fn distinct(
        &mut self,
        op: &'a operator::Distinct,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        let input = self.op(&op.input, node + 1)?;
        let kept = common(&op.slots, &input);
        let shared = SharedDistinct::new(&input, &kept, &self.exec.ctx);
        self.link(shared, &input, node);
        Ok(kept)
    }

    pub(super) fn reduced(
        &mut self,
        op: &'a operator::Reduced,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        let input = self.op(&op.input, node + 1)?;
        let kept = common(&op.slots, &input);
        let layout = SlotLayout::new(&input);
        let columns = kept.iter().filter_map(|s| layout.position_of(*s)).collect();
        self.link(ReducedSpec(columns), &input, node);
        Ok(kept)
    }
}

impl StageSpec for SharedDistinct {
    fn work<'w>(&'w self, _input: &'w [Slot], ctx: &QueryContext<'w>) -> NewWorker<'w> {
        Ok(Box::new(DistinctStage::new(self, ctx)))
    }

    fn held(&self) -> u64 {
        self.bytes()
    }
}

/// The columns that a REDUCED keeps.
struct ReducedSpec(Vec<usize>);

impl StageSpec for ReducedSpec {
    fn work<'w>(&'w self, _input: &'w [Slot], ctx: &QueryContext<'w>) -> NewWorker<'w> {
        Ok(Box::new(Recent::new(&self.0, ctx)))
    }
}

/// One worker's part of a DISTINCT.
struct DistinctStage<'a> {
    shared: &'a SharedDistinct,
    out: Batch,
    hashes: Vec<u64>,
    /// For each row of the batch, 1 if it is new.
    new: Vec<u8>,
    index: Vec<u32>,
    /// The end of each partition's rows, then the rows, sorted by partition.
    by_part: Vec<u32>,
}

impl<'a> DistinctStage<'a> {
    fn new(shared: &'a SharedDistinct, ctx: &QueryContext<'_>) -> Self {
        Self {
            shared,
            out: Batch::new(shared.columns.len(), ctx.budget),
            hashes: vec![],
            new: vec![],
            index: vec![],
            by_part: vec![],
        }
    }

    /// The rows of a batch that were not seen before.
    fn new_rows(&mut self, rows: View<'_>) -> Result<View<'_>> {
        let shared = self.shared;
        if shared.columns.is_empty() {
            let first = rows.rows > 0 && !shared.given.swap(true, Ordering::Relaxed);
            return Ok(View {
                columns: &[],
                rows: usize::from(first),
            });
        }
        self.new.clear();
        self.new.resize(rows.rows, 0);
        self.index.clear();
        if let [column] = shared.columns[..] {
            self.ids(rows.column(column))?;
        } else {
            self.index.extend(0..rows.rows as u32);
            self.tuples(rows)?;
        }
        self.index.clear();
        self.index.extend(
            (0u32..)
                .zip(&self.new)
                .filter(|(_, n)| **n == 1)
                .map(|(i, _)| i),
        );
        self.out.ensure(self.index.len())?;
        for (o, &c) in shared.columns.iter().enumerate() {
            self.out.gather(o, 0, rows.column(c), &self.index);
        }
        self.out.rows = self.index.len();
        Ok(self.out.view())
    }

    fn ids(&mut self, ids: &[u32]) -> Result<()> {
        let shared = self.shared;
        let bitmap = shared.bitmap();
        match bitmap {
            None => self.index.extend(0..ids.len() as u32),
            Some(b) => {
                for (row, &id) in (0u32..).zip(ids) {
                    match b.words.get((id / 64) as usize) {
                        Some(word) => {
                            let bit = 1 << (id % 64);
                            if word.load(Ordering::Relaxed) & bit == 0
                                && word.fetch_or(bit, Ordering::Relaxed) & bit == 0
                            {
                                self.index.push(row);
                            }
                        }
                        None => self.index.push(row),
                    }
                }
            }
        }
        // Ids that were added before there was a bitmap are only in the table.
        self.split(|row| hash(&[ids[row as usize]]));
        let mut added = 0;
        for (p, rows) in parts(&self.by_part, shared.parts.len()) {
            if rows.is_empty() {
                continue;
            }
            let mut part = lock(&shared.parts[p]);
            // Read again under the lock: another worker may have created the bitmap meanwhile, and then sets a bit
            // before it looks into the partition.
            let bits = shared.bits.get();
            for &row in rows {
                let id = ids[row as usize];
                let word = bits.and_then(|b| b.words.get((id / 64) as usize));
                let fresh = match word {
                    None => {
                        let fresh = part.insert_id(id)?.1;
                        added += usize::from(fresh);
                        fresh
                    }
                    Some(word) => {
                        let bit = 1 << (id % 64);
                        // If this worker used the bitmap above, it set the bit there, and `rows` has only ids that were
                        // new in the bitmap.
                        let mine =
                            bitmap.is_some() || word.fetch_or(bit, Ordering::Relaxed) & bit == 0;
                        mine && part.find_one(id) == NONE
                    }
                };
                if let Some(n) = self.new.get_mut(row as usize) {
                    *n = u8::from(fresh);
                }
            }
        }
        shared.len.fetch_add(added, Ordering::Relaxed);
        Ok(())
    }

    fn tuples(&mut self, rows: View<'_>) -> Result<()> {
        let shared = self.shared;
        // A result rarely has more columns than this; then a vector is allocated.
        const FEW: usize = 16;
        let mut few: [&[u32]; FEW] = [&[]; FEW];
        let many: Vec<&[u32]>;
        let columns: &[&[u32]] = if shared.columns.len() <= FEW {
            for (f, &c) in few.iter_mut().zip(&shared.columns) {
                *f = rows.column(c);
            }
            &few[..shared.columns.len()]
        } else {
            many = shared.columns.iter().map(|&c| rows.column(c)).collect();
            &many
        };
        let mut hashes = std::mem::take(&mut self.hashes);
        hash_rows(columns, rows.rows, &mut hashes);
        self.split(|row| hashes[row as usize]);
        for (p, rows) in parts(&self.by_part, shared.parts.len()) {
            if rows.is_empty() {
                continue;
            }
            let mut part = lock(&shared.parts[p]);
            for (i, &row) in rows.iter().enumerate() {
                if let Some(&ahead) = rows.get(i + AHEAD) {
                    part.prefetch_hash(hashes[ahead as usize]);
                }
                let h = hashes[row as usize];
                let fresh = part.insert_row(columns, row as usize, h)?.1;
                if let Some(n) = self.new.get_mut(row as usize) {
                    *n = u8::from(fresh);
                }
            }
        }
        self.hashes = hashes;
        Ok(())
    }

    /// Sorts the rows of `self.index` by partition into `by_part`.
    fn split(&mut self, hash: impl Fn(u32) -> u64) {
        let n = self.shared.parts.len();
        let mask = n as u64 - 1;
        self.by_part.clear();
        self.by_part.resize(n + self.index.len(), 0);
        let (ends, places) = self.by_part.split_at_mut(n);
        if let [end] = ends {
            *end = places.len() as u32;
            places.copy_from_slice(&self.index);
            return;
        }
        for &row in &self.index {
            ends[(hash(row) & mask) as usize] += 1;
        }
        let mut sum = 0;
        for e in ends.iter_mut() {
            let count = *e;
            *e = sum;
            sum += count;
        }
        for &row in &self.index {
            let e = &mut ends[(hash(row) & mask) as usize];
            places[*e as usize] = row;
            *e += 1;
        }
    }
}

/// The partitions of `by_part` with their rows.
fn parts(by_part: &[u32], n: usize) -> impl Iterator<Item = (usize, &[u32])> {
    let (ends, places) = by_part.split_at(n.min(by_part.len()));
    let mut from = 0;
    ends.iter().enumerate().map(move |(p, &end)| {
        let rows = &places[from..end as usize];
        from = end as usize;
        (p, rows)
    })
}

/// Number of rows in a worker's table of recent rows.
const RECENT: usize = 1 << 12;

/// REDUCED: drops rows that equal a recent row. The table has one entry per hash; a newer row overwrites an older one.
struct Recent {
    columns: Vec<usize>,
    /// Ids of the entries, `columns.len()` for each. All 0 means empty; rows of unbound values only are always passed
    /// on.
    slots: Vec<u32>,
    out: Batch,
    tuple: Vec<u32>,
    index: Vec<u32>,
}

impl Recent {
    fn new(columns: &[usize], ctx: &QueryContext<'_>) -> Self {
        Self {
            slots: vec![0; RECENT * columns.len()],
            columns: columns.to_vec(),
            out: Batch::new(columns.len(), ctx.budget),
            tuple: vec![],
            index: vec![],
        }
    }

    /// The rows that may not have been seen before.
    fn pass(&mut self, rows: View<'_>) -> Result<View<'_>> {
        let w = self.columns.len();
        if w == 0 {
            return Ok(View {
                columns: &[],
                rows: rows.rows,
            });
        }
        self.index.clear();
        for row in 0..rows.rows {
            self.tuple.clear();
            self.tuple
                .extend(self.columns.iter().map(|&c| rows.column(c)[row]));
            let at = (hash(&self.tuple) >> 52) as usize % RECENT * w;
            let slot = &mut self.slots[at..at + w];
            if slot != &self.tuple[..] || self.tuple.iter().all(|&v| v == 0) {
                slot.copy_from_slice(&self.tuple);
                self.index.push(row as u32);
            }
        }
        self.out.ensure(self.index.len())?;
        for (o, &c) in self.columns.iter().enumerate() {
            self.out.gather(o, 0, rows.column(c), &self.index);
        }
        self.out.rows = self.index.len();
        Ok(self.out.view())
    }
}

impl StageWorker for DistinctStage<'_> {
    fn batch(
        &mut self,
        _run: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        rest.batch(self.new_rows(rows)?)
    }

    fn takes_bare_rows(&self) -> bool {
        true
    }
}

impl StageWorker for Recent {
    fn batch(
        &mut self,
        _run: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        rest.batch(self.pass(rows)?)
    }

    fn takes_bare_rows(&self) -> bool {
        true
    }
}
