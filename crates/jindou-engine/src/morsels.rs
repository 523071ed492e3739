//! The leaves of a pipeline, divided into morsels.

use crate::batch::{Batch, View};
use crate::compile::{Leaf, LeafSource};
use crate::executor::PulledRows;
use crate::explore::{Consumer, Flow, Halt, Pipeline, QueryContext, StartReader as Start};
use crate::offload::Streamed;
use crate::operators::{Overflow, Sorter};
use crate::row_buffer::RowBuffer;
use jindou_model::Result;
use jindou_plan::Exploration;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// If a heavy plan starts from fewer rows than this, its first steps run until there are this many, which threads then
/// share.
const SHARE_FROM: usize = 512;

/// The input that workers divide into morsels.
pub(crate) enum MorselSource<'p> {
    /// Values of the exploration's start.
    Start(Start<'p>),
    /// Rows after the step with this number, because the start was too short to share.
    After(Batch, usize),
    /// For an exploration that is one `ScanAll` step: predicates.
    Scan(Start<'p>),
    /// Chunks of a buffer. Rows without columns, if there are any, are the first morsel.
    RowBuffer(&'p RowBuffer),
    /// Rows that another executor produces while they are consumed.
    Pulled(&'p dyn PulledRows),
    /// Rows that another executor produces on the main worker's thread, and the number of pieces that may wait for
    /// other workers.
    Streamed(&'p Streamed<'p>, usize),
    /// Rows in columns of any length.
    Whole(&'p Batch),
    Sorted(&'p Mutex<Sorter>),
    /// Rows that a stage has written to files.
    Overflow(&'p dyn Overflow),
}

/// A leaf that is being run. Workers take morsels of `morsel` values from `next` on, up to `total`.
pub(crate) struct LeafJob<'p> {
    pub work: MorselSource<'p>,
    pub total: u64,
    pub morsel: u64,
    pub next: AtomicU64,
    /// True if no more of its rows are needed.
    pub done: AtomicBool,
}

/// The source of a leaf's morsels, and the number of its values. Also returns the pipeline if the leaf is an
/// exploration, since that had to be created.
pub(crate) fn job<'p, 'a>(
    leaf: &'p Leaf<'a>,
    ctx: &QueryContext<'p>,
    heavy: bool,
    threads: usize,
) -> Result<(MorselSource<'p>, u64, Option<Pipeline<'p>>), Halt> {
    Ok(match &leaf.source {
        LeafSource::Explore(e) => {
            let mut pipeline = Pipeline::new(e, ctx)?;
            pipeline.watch(ctx, leaf.node);
            let (work, total) = cut(e, &mut pipeline, ctx, heavy)?;
            (work, total, Some(pipeline))
        }
        LeafSource::RowBuffer(h) => {
            let total = h.chunks().len() as u64 + u64::from(h.bare() > 0);
            (MorselSource::RowBuffer(h), total, None)
        }
        // The number of these rows is known only after the last one.
        LeafSource::Pulled(rows) => (MorselSource::Pulled(&**rows), u64::MAX, None),
        LeafSource::Streamed(rows) => (MorselSource::Streamed(rows, threads - 1), u64::MAX, None),
        LeafSource::Whole(b) => (MorselSource::Whole(b), b.rows as u64, None),
        LeafSource::Sorted(s) => (MorselSource::Sorted(s), 1, None),
        LeafSource::Grouped(g) => (MorselSource::Overflow(&**g), g.parts(), None),
        LeafSource::Outer(_) => unreachable!("an apply takes its outer rows itself"),
    })
}

/// Collects the rows after a step, until there are enough to share.
struct CollectRows {
    rows: Batch,
    bare: usize,
}

impl Consumer for CollectRows {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        if rows.columns.is_empty() {
            self.bare += rows.rows;
            return Ok(());
        }
        Ok(self.rows.append(rows)?)
    }
}

/// The source of an exploration's morsels, and its size. If the plan is heavy and its start is short, steps are run
/// here until there are enough rows to share among threads.
fn cut<'p>(
    exploration: &'p Exploration,
    pipeline: &mut Pipeline<'p>,
    ctx: &QueryContext<'p>,
    heavy: bool,
) -> Result<(MorselSource<'p>, u64), Halt> {
    let source = Pipeline::source(exploration, ctx);
    let len = source.len();
    if heavy && source.is_unit() && pipeline.is_scan() {
        return Ok((
            MorselSource::Scan(source),
            u64::from(ctx.snapshot.predicate_count()),
        ));
    }
    if !heavy || len >= SHARE_FROM as u64 || pipeline.steps() == 0 {
        return Ok((MorselSource::Start(source), len));
    }
    let collect = |at: usize, pipeline: &Pipeline<'_>| CollectRows {
        rows: Batch::new(pipeline.layout_after(at).len(), ctx.budget),
        bare: 0,
    };
    let mut held = collect(0, pipeline);
    pipeline.morsel(ctx, &source, 0..len, 0, &mut held)?;
    let mut at = 0;
    while at < pipeline.steps() && (1..SHARE_FROM).contains(&(held.rows.rows + held.bare)) {
        let mut next = collect(at + 1, pipeline);
        let total = held.rows.rows + held.bare;
        let mut chunk = Batch::new(held.rows.columns.len(), ctx.budget);
        each_chunk(
            &held.rows,
            total,
            0..total,
            ctx.batch_rows,
            &mut chunk,
            |rows| pipeline.rows(ctx, rows, at..at + 1, &mut next),
        )?;
        pipeline.flush(ctx, at..at + 1, &mut next)?;
        held = next;
        at += 1;
    }
    let mut rows = held.rows;
    if held.bare > 0 {
        rows.rows = held.bare;
    }
    let total = rows.rows as u64;
    Ok((MorselSource::After(rows, at), total))
}

/// Calls `f` with the rows `range` of a batch, in parts of `step` rows, which are copied to `chunk`.
pub(crate) fn each_chunk(
    rows: &Batch,
    total: usize,
    range: Range<usize>,
    step: usize,
    chunk: &mut Batch,
    mut f: impl FnMut(View<'_>) -> Flow,
) -> Flow {
    let range = range.start..range.end.min(total);
    for from in range.clone().step_by(step) {
        let n = step.min(range.end - from);
        if rows.columns.is_empty() {
            f(View {
                columns: &[],
                rows: n,
            })?;
        } else {
            chunk.copy_rows(rows, from, n)?;
            f(chunk.view())?;
        }
    }
    Ok(())
}
