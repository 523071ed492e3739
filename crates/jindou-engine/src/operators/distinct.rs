//! DISTINCT passes a row on when it is seen for the first time. The set of rows is partitioned by hash, and a worker
//! locks each partition once per batch. A set of many ids of a single column becomes a bitmap, which needs no locks.
//!
//! If there is no memory for more rows, the set stays as it is, and rows that are not in it are written to files
//! ([`Partitions`]). After the last row each of these is a set of its own, and is divided again if that is too large.
//! Rows that must keep an order are never written, since those of a file come later than others.

use super::stage::{NewWorker, NextStages, Overflow, StageSpec, StageWorker};
use crate::batch::{Batch, OperatorCharge, View};
use crate::compile::{Leaf, LeafSource, PipelineBuilder};
use crate::explore::{Consumer, Flow, Halt, QueryContext};
use crate::key_table::{KeyTable, NONE, hash_rows};
use crate::partitions::{PARTS as FILE_PARTS, PartitionRows, Partitions};
use crate::table::hash;
use crate::tree::{SlotLayout, common};
use jindou_model::sync;
use jindou_model::{FIRST_TAIL_ID, Holder, MemoryBudget, QueryTemp, Result};
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
    parts: Vec<Mutex<DistinctPart>>,
    /// Number of keys in all partitions.
    len: AtomicUsize,
    bits: OnceLock<SharedBitmap>,
    /// Number of ids that the bitmap covers: those of the base. Others stay in the partitions.
    span: u32,
    budget: MemoryBudget,
    /// For rows without columns: whether one was passed on.
    given: AtomicBool,
    /// The files that rows may be written to; `None` if the query ends instead.
    temp: Option<QueryTemp>,
    /// Rows that are not in full partitions of the set.
    over: OnceLock<Partitions>,
}

/// A partition of the set.
struct DistinctPart {
    keys: KeyTable,
    /// True once there was no memory for a key; no more are added.
    is_full: bool,
}

impl DistinctPart {
    /// True if the table has added a key. If there is no memory for another one, and rows can be written to files, the
    /// partition becomes full.
    #[inline]
    fn inserted(&mut self, done: Result<(u32, bool)>, temp: Option<&QueryTemp>) -> Result<bool> {
        match done {
            Ok((_, fresh)) => Ok(fresh),
            Err(e) if temp.is_some() && e.is_of_memory() && self.keys.has_many() => {
                self.is_full = true;
                Ok(true)
            }
            Err(e) => Err(e),
        }
    }
}

struct SharedBitmap {
    words: Vec<AtomicU64>,
    _charge: OperatorCharge,
}

impl SharedDistinct {
    /// `is_ordered`: the order of rows matters.
    fn new(layout: &[Slot], slots: &[Slot], is_ordered: bool, ctx: &QueryContext<'_>) -> Self {
        let temp = ctx.temp.filter(|_| !is_ordered).cloned();
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
                    let charge = OperatorCharge::for_holder(Holder::Distinct, ctx.budget);
                    let keys = KeyTable::new(width, 0, charge).with_headroom(temp.is_some());
                    let is_full = false;
                    Mutex::new(DistinctPart { keys, is_full })
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
            temp,
            over: OnceLock::new(),
        }
    }

    /// The files for rows that are not in full partitions of the set.
    fn over(&self, temp: &QueryTemp) -> Result<&Partitions> {
        if let Some(over) = self.over.get() {
            return Ok(over);
        }
        let new = Partitions::new(temp, self.columns.len(), 0)?;
        Ok(self.over.get_or_init(|| new))
    }

    /// Bytes held.
    fn bytes(&self) -> u64 {
        let parts: u64 = self.parts.iter().map(|p| lock(p).keys.bytes()).sum();
        parts + self.bits.get().map_or(0, |b| b.words.len() as u64 * 8)
    }

    /// The bitmap of a set with one column; `None` while there are too few ids, or not enough memory.
    fn bitmap(&self) -> Option<&SharedBitmap> {
        if let Some(b) = self.bits.get() {
            return Some(b);
        }
        // Ids that were written to files would be new to a bitmap.
        if self.over.get().is_some() {
            return None;
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

fn lock(part: &Mutex<DistinctPart>) -> std::sync::MutexGuard<'_, DistinctPart> {
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
        let is_sorted = |leaf: &Leaf<'_>| matches!(leaf.source, LeafSource::Sorted(_));
        let is_ordered = self.leaves.iter().any(is_sorted);
        let shared = SharedDistinct::new(&input, &kept, is_ordered, &self.exec.ctx);
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

    fn overflow(&self) -> Result<Option<&dyn Overflow>> {
        if self.over.get().is_none() {
            return Ok(None);
        }
        for part in &self.parts {
            lock(part).keys.free()?;
        }
        Ok(Some(self))
    }
}

impl Overflow for SharedDistinct {
    fn parts(&self) -> u64 {
        FILE_PARTS as u64
    }

    fn give(&self, part: u64, ctx: &QueryContext<'_>, to: &mut dyn Consumer) -> Flow {
        match self.over.get() {
            Some(over) => give_distinct(&[over], part as usize, Holder::Distinct, ctx, to),
            None => Ok(()),
        }
    }
}

/// Passes on each different row of a partition of several files once.
pub(super) fn give_distinct(
    files: &[&Partitions],
    part: usize,
    holder: Holder,
    ctx: &QueryContext<'_>,
    to: &mut dyn Consumer,
) -> Flow {
    let (Some(from), Some(temp)) = (files.iter().find(|f| f.has_rows(part)), ctx.temp) else {
        return Ok(());
    };
    let charge = OperatorCharge::for_holder(holder, ctx.budget);
    let mut keys = KeyTable::new(from.width(), 0, charge).with_headroom(true);
    // Rows that are not in the table, once that is full.
    let mut over: Option<(Partitions, PartitionRows)> = None;
    let (mut out, mut hashes, mut index) = (Batch::new(from.width(), ctx.budget), vec![], vec![]);
    let mut take = |rows: View<'_>| {
        let columns: Vec<&[u32]> = (0..from.width()).map(|c| rows.column(c)).collect();
        hash_rows(&columns, rows.rows, &mut hashes);
        index.clear();
        for (row, &hash) in hashes.iter().enumerate() {
            let Some((over, writing)) = &mut over else {
                match keys.insert_any(&columns, row, hash) {
                    Ok((_, true)) => index.push(row as u32),
                    Ok((_, false)) => {}
                    Err(e) if e.is_of_memory() && keys.has_many() => {
                        index.push(row as u32);
                        let deeper = Partitions::new(temp, from.width(), from.level() + 1)?;
                        over = Some((deeper, PartitionRows::new(ctx, holder)?));
                    }
                    Err(e) => return Err(e.into()),
                }
                continue;
            };
            if keys.find_any(&columns, row, hash) == NONE {
                writing.push(over, over.part_of(hash), &columns, row)?;
            }
        }
        out.ensure(index.len())?;
        for (c, column) in columns.iter().enumerate() {
            out.gather(c, 0, column, &index);
        }
        out.rows = index.len();
        to.batch(out.view())
    };
    for file in files {
        file.read(part, ctx, &mut take)?;
    }
    drop(keys);
    let Some((over, mut writing)) = over else {
        return Ok(());
    };
    writing.flush(&over)?;
    drop(writing);
    for part in 0..FILE_PARTS {
        give_distinct(&[&over], part, holder, ctx, to)?;
    }
    Ok(())
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
    /// The rows of a batch that are written to a file; kept only for its memory.
    late: Vec<u32>,
    /// Rows to be written, once a partition of the set is full.
    writing: Option<PartitionRows>,
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
            late: vec![],
            writing: None,
        }
    }

    /// Writes rows that are not in full partitions of the set.
    #[cold]
    fn write(
        &mut self,
        ctx: &QueryContext<'_>,
        columns: &[&[u32]],
        rows: &[u32],
        hashes: &[u64],
    ) -> Result<()> {
        let Some(temp) = &self.shared.temp else {
            return Ok(());
        };
        let over = self.shared.over(temp)?;
        let writing = match &mut self.writing {
            Some(writing) => writing,
            None => self
                .writing
                .insert(PartitionRows::new(ctx, Holder::Distinct)?),
        };
        for &row in rows {
            let part = over.part_of(hashes[row as usize]);
            writing.push(over, part, columns, row as usize)?;
        }
        Ok(())
    }

    /// The rows of a batch that were not seen before.
    fn new_rows(&mut self, ctx: &QueryContext<'_>, rows: View<'_>) -> Result<View<'_>> {
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
            self.ids(ctx, rows.column(column))?;
        } else {
            self.index.extend(0..rows.rows as u32);
            self.tuples(ctx, rows)?;
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

    fn ids(&mut self, ctx: &QueryContext<'_>, ids: &[u32]) -> Result<()> {
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
        let mut late = std::mem::take(&mut self.late);
        late.clear();
        for (p, rows) in parts(&self.by_part, shared.parts.len()) {
            if rows.is_empty() {
                continue;
            }
            let mut part = lock(&shared.parts[p]);
            // Read again under the lock: another worker may have created the bitmap meanwhile, and then sets a bit
            // before it looks into the partition.
            let bits = shared.bits.get();
            for &row in rows {
                // If so, the row goes to a file: one with the same id may be there already.
                let was_full = part.is_full;
                let id = ids[row as usize];
                let word = bits.and_then(|b| b.words.get((id / 64) as usize));
                let fresh = match word {
                    None if part.is_full => part.keys.find_one(id) == NONE,
                    None => {
                        let done = part.keys.insert_id(id);
                        let fresh = part.inserted(done, shared.temp.as_ref())?;
                        added += usize::from(fresh);
                        fresh
                    }
                    Some(word) => {
                        let bit = 1 << (id % 64);
                        // If this worker used the bitmap above, it set the bit there, and `rows` has only ids that were
                        // new in the bitmap.
                        let mine =
                            bitmap.is_some() || word.fetch_or(bit, Ordering::Relaxed) & bit == 0;
                        mine && part.keys.find_one(id) == NONE
                    }
                };
                if fresh && was_full {
                    late.push(row);
                } else if let Some(n) = self.new.get_mut(row as usize) {
                    *n = u8::from(fresh);
                }
            }
        }
        shared.len.fetch_add(added, Ordering::Relaxed);
        if !late.is_empty() {
            hash_rows(&[ids], ids.len(), &mut self.hashes);
            let hashes = std::mem::take(&mut self.hashes);
            self.write(ctx, &[ids], &late, &hashes)?;
            self.hashes = hashes;
        }
        self.late = late;
        Ok(())
    }

    fn tuples(&mut self, ctx: &QueryContext<'_>, rows: View<'_>) -> Result<()> {
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
        let mut late = std::mem::take(&mut self.late);
        late.clear();
        for (p, rows) in parts(&self.by_part, shared.parts.len()) {
            if rows.is_empty() {
                continue;
            }
            let mut part = lock(&shared.parts[p]);
            for (i, &row) in rows.iter().enumerate() {
                if let Some(&ahead) = rows.get(i + AHEAD) {
                    part.keys.prefetch_hash(hashes[ahead as usize]);
                }
                let h = hashes[row as usize];
                if part.is_full {
                    if part.keys.find_row(columns, row as usize, h) == NONE {
                        late.push(row);
                    }
                    continue;
                }
                let done = part.keys.insert_row(columns, row as usize, h);
                let fresh = part.inserted(done, shared.temp.as_ref())?;
                if let Some(n) = self.new.get_mut(row as usize) {
                    *n = u8::from(fresh);
                }
            }
        }
        if !late.is_empty() {
            self.write(ctx, columns, &late, &hashes)?;
        }
        (self.hashes, self.late) = (hashes, late);
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
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        rest.batch(self.new_rows(ctx, rows)?)
    }

    fn finish(&mut self, _run: &QueryContext<'_>, _rest: &mut NextStages<'_, '_, '_>) -> Flow {
        if let (Some(writing), Some(over)) = (&mut self.writing, self.shared.over.get()) {
            writing.flush(over)?;
        }
        Ok(())
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
