//! Merges sorted rows, which are in memory or in runs.

use super::row_order::RowOrder;
use super::rows::{FlatRows, SortColumn};
use super::runs::{CALL, Run, RunFiles, RunReader, RunWriter};
use crate::batch::Batch;
use crate::explore::QueryContext;
use crate::values::SortKeys;
use jindou_model::Result;
use std::cmp::Ordering;
use std::sync::Arc;

/// Rows between two checks of the query's token.
const CHECK: u64 = 1 << 12;
/// Largest number of runs that are merged at once.
const MOST_RUNS: usize = 256;
/// Smallest and largest number of rows of a run that are read at once.
const BLOCK: [usize; 2] = [64, 8192];
/// Rows of a run from which on reading is fast enough that more runs are not merged at once instead.
const FAIR_BLOCK: usize = 1024;
/// Smallest number of bytes of values that are read by one call.
const LEAST_CALL: usize = 1 << 12;
/// Smallest and largest number of bytes for the blocks of all runs.
const MEMORY: [u64; 2] = [1 << 16, 1 << 26];

/// How the rows of runs are read.
#[derive(Clone, Copy)]
pub(super) struct RunRows<'m> {
    pub by: &'m [SortColumn],
    pub width: usize,
    /// Number of computed keys.
    pub values: usize,
    /// Keys of all ids in the runs.
    pub keys: &'m SortKeys<'m>,
    /// True if a sort column of any run has terms that are not in the base, or triple terms.
    pub added: bool,
}

/// Number of rows of a run, and bytes of their values, that are read at once.
#[derive(Clone, Copy)]
struct Blocks {
    rows: usize,
    call: usize,
}

impl RunRows<'_> {
    /// The number of runs that can be merged at once, and how each is read.
    fn plan(&self, runs: &[Run], ctx: &QueryContext<'_>) -> (usize, Blocks) {
        let rows: u64 = runs.iter().map(|r| r.rows).sum();
        let bytes: u64 = runs.iter().map(|r| r.values.end - r.values.start).sum();
        // The keys of a computed value take 16 bytes, and its content half again while it grows.
        let values = 20 * self.values + 2 * (bytes / rows.max(1)) as usize;
        let each = 4 * self.width + values + RowOrder::bytes_of_row(self.by, true);
        let [least, most] = MEMORY;
        let mut memory = most;
        while memory > least && !ctx.budget.has_headroom(memory) {
            memory /= 2;
        }
        let scarce = ctx.budget.is_scarce();
        let rows = if scarce { 1 } else { memory as usize / each };
        let fan = (rows / FAIR_BLOCK).clamp(4, MOST_RUNS).min(runs.len());
        let least = if scarce { 1 } else { BLOCK[0] };
        let blocks = Blocks {
            rows: (rows / fan.max(1)).clamp(least, BLOCK[1]),
            call: (memory as usize / 8 / fan.max(1)).clamp(LEAST_CALL, CALL),
        };
        (fan, blocks)
    }

    /// Merges runs into fewer ones until all that are left can be read at once.
    pub fn merge<'m>(&'m self, mut runs: Vec<Run>, ctx: &QueryContext<'_>) -> Result<RowMerge<'m>> {
        loop {
            let (fan, blocks) = self.plan(&runs, ctx);
            if runs.len() <= fan {
                return RowMerge::of_runs(self, runs, blocks, ctx);
            }
            let Some(temp) = ctx.temp else {
                unreachable!("runs are in temporary files");
            };
            let files = RunFiles::new(temp, self.values > 0)?;
            let mut longer = Vec::with_capacity(runs.len().div_ceil(fan));
            let mut left = runs.into_iter();
            while left.len() > 0 {
                let group = left.by_ref().take(fan).collect();
                let mut merge = RowMerge::of_runs(self, group, blocks, ctx)?;
                longer.push(merge.write(&files, ctx)?);
            }
            runs = longer;
        }
    }
}

/// Sorted rows that are being merged.
pub(super) struct SortedPart {
    pub rows: FlatRows,
    pub order: RowOrder,
    /// Position of the next row in the order.
    at: usize,
    /// The rest of the rows, of which `rows` is a block.
    rest: Option<RunReader>,
}

impl SortedPart {
    pub fn of_rows(rows: FlatRows, order: RowOrder) -> Self {
        Self {
            rows,
            order,
            at: 0,
            rest: None,
        }
    }

    #[inline]
    fn row(&self) -> u32 {
        self.order.row(self.at)
    }
}

/// Merges the rows of several sorted parts.
pub(super) struct RowMerge<'m> {
    by: &'m [SortColumn],
    parts: Vec<SortedPart>,
    /// The next row of each part that has more: a heap with the first one on top.
    heap: Vec<MergeHead>,
    /// How runs are read, and the number of rows in a block.
    blocks: Option<(&'m RunRows<'m>, usize)>,
}

/// The next row of a part, and the beginning of its key.
#[derive(Clone, Copy)]
struct MergeHead {
    prefix: u128,
    part: u32,
}

impl<'m> RowMerge<'m> {
    /// Merges parts, of which each has rows. Of rows with equal keys, those of earlier parts come first.
    pub fn new(by: &'m [SortColumn], parts: Vec<SortedPart>) -> Self {
        let heads = (0u32..).zip(&parts).map(|(part, p)| MergeHead {
            prefix: p.order.prefix(p.at),
            part,
        });
        let mut merge = Self {
            by,
            heap: heads.collect(),
            parts,
            blocks: None,
        };
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sift(at);
        }
        merge
    }

    fn of_runs(
        of: &'m RunRows<'m>,
        runs: Vec<Run>,
        blocks: Blocks,
        ctx: &QueryContext<'_>,
    ) -> Result<Self> {
        let mut parts = Vec::with_capacity(runs.len());
        for run in runs.into_iter().filter(|run| run.rows > 0) {
            let mut rest = RunReader::new(run, blocks.call, ctx.budget)?;
            let mut rows = FlatRows::new(of.width, of.values, None, ctx.budget);
            rest.next(&mut rows, blocks.rows)?;
            let order = RowOrder::with_keys(of.by, &mut rows, of.added, of.keys, ctx)?;
            parts.push(SortedPart {
                rest: Some(rest),
                ..SortedPart::of_rows(rows, order)
            });
        }
        Ok(Self {
            blocks: Some((of, blocks.rows)),
            ..Self::new(of.by, parts)
        })
    }

    /// Replaces the content of `out` by the next rows, at most `most`.
    pub fn fill(&mut self, out: &mut Batch, most: usize, ctx: &QueryContext<'_>) -> Result<()> {
        out.rows = 0;
        while out.rows < most
            && let Some(head) = self.heap.first()
        {
            let part = &self.parts[head.part as usize];
            for (column, &v) in out.columns.iter_mut().zip(part.rows.row(part.row())) {
                column[out.rows] = v;
            }
            out.rows += 1;
            self.advance(ctx)?;
        }
        Ok(())
    }

    /// Writes all rows as one run.
    fn write(&mut self, files: &Arc<RunFiles>, ctx: &QueryContext<'_>) -> Result<Run> {
        let mut writer = RunWriter::new(files);
        let mut rows = 0;
        while let Some(head) = self.heap.first() {
            if rows % CHECK == 0 {
                ctx.check()?;
            }
            rows += 1;
            let part = &self.parts[head.part as usize];
            writer.push(&part.rows, part.row())?;
            self.advance(ctx)?;
        }
        writer.finish()
    }

    /// Moves on to the next row of the part whose row is the first one.
    #[inline]
    fn advance(&mut self, ctx: &QueryContext<'_>) -> Result<()> {
        let Some(head) = self.heap.first_mut() else {
            return Ok(());
        };
        let part = &mut self.parts[head.part as usize];
        part.at += 1;
        if part.at == part.order.rows() {
            return self.end_block(ctx);
        }
        if self.heap.len() > 1 {
            self.heap[0].prefix = part.order.prefix(part.at);
            self.sift(0);
        }
        Ok(())
    }

    /// Reads the next block of the part whose row was the first one, or removes the part.
    #[cold]
    fn end_block(&mut self, ctx: &QueryContext<'_>) -> Result<()> {
        let Some(head) = self.heap.first_mut() else {
            return Ok(());
        };
        let part = &mut self.parts[head.part as usize];
        if let (Some(rest), Some((of, block))) = (&mut part.rest, self.blocks)
            && rest.next(&mut part.rows, block)?
        {
            part.order.clear()?;
            part.order = RowOrder::with_keys(of.by, &mut part.rows, of.added, of.keys, ctx)?;
            part.at = 0;
            head.prefix = part.order.prefix(0);
        } else {
            part.rest = None;
            self.heap.swap_remove(0);
        }
        self.sift(0);
        Ok(())
    }

    /// Moves the head at a position of the heap down, behind all that come before it.
    #[inline]
    fn sift(&mut self, mut at: usize) {
        loop {
            let mut first = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.is_before(child, first) {
                    first = child;
                }
            }
            if first == at {
                return;
            }
            self.heap.swap(at, first);
            at = first;
        }
    }

    #[inline]
    fn is_before(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.heap[a], self.heap[b]);
        if a.prefix != b.prefix {
            return a.prefix < b.prefix;
        }
        let (x, y) = (&self.parts[a.part as usize], &self.parts[b.part as usize]);
        let order = (x.order).compare(self.by, (x.at, &x.rows), &y.order, (y.at, &y.rows));
        order.then_with(|| a.part.cmp(&b.part)) == Ordering::Less
    }
}
