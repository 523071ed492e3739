//! The ends of pipelines: each worker collects a part of the result from its rows; at the end the parts are merged.

use super::BATCH;
use super::count::GroupCounter;
use super::group::Grouping;
use super::group_files::GroupRows;
use super::order::{SortInput, Sorter};
use crate::batch::View;
use crate::explore::{Consumer, Flow, Halt, QueryContext};
use crate::row_buffer::RowBuffer;
use crate::sink::{SinkFactory, WorkerSink};
use crate::tree::SlotLayout;
use jindou_model::{Holder, Result};
use jindou_plan::{Aggregate, Count, Slot, operator};

/// Specification of a pipeline's end, which collects the rows.
pub(crate) trait EndSpec: Copy + Sync {
    /// A worker's part while it still gets rows.
    type Part;
    /// A worker's part after its last row.
    type Done: Send;

    /// True if one row is enough, so that the pipeline stops after it.
    const ENDS_EARLY: bool = false;

    /// An empty part, for rows with these slots.
    fn part(self, layout: &[Slot], ctx: &QueryContext<'_>) -> Result<Self::Part>;

    fn batch(part: &mut Self::Part, ctx: &QueryContext<'_>, rows: View<'_>) -> Flow;

    /// Called after the last row of a worker's part.
    fn done(part: Self::Part, ctx: &QueryContext<'_>) -> Result<Self::Done>;

    fn merge(whole: &mut Self::Done, ctx: &QueryContext<'_>, part: Self::Done) -> Result<()>;

    /// Bytes held.
    fn bytes(_: &Self::Done) -> u64 {
        0
    }
}

/// Passes the columns of the query's result to the sinks; the number of rows remains.
#[derive(Clone, Copy)]
pub(crate) struct ToSinks<'s>(pub &'s [Slot], pub &'s dyn SinkFactory);

impl<'s> EndSpec for ToSinks<'s> {
    type Part = OutputEnd<'s>;
    type Done = u64;

    fn part(self, layout: &[Slot], _: &QueryContext<'_>) -> Result<OutputEnd<'s>> {
        Ok(OutputEnd::new(self.0, layout, self.1.worker()))
    }

    fn batch(part: &mut OutputEnd<'s>, _: &QueryContext<'_>, rows: View<'_>) -> Flow {
        part.batch(rows)
    }

    fn done(part: OutputEnd<'s>, _: &QueryContext<'_>) -> Result<u64> {
        part.done()
    }

    fn merge(whole: &mut u64, _: &QueryContext<'_>, part: u64) -> Result<()> {
        *whole += part;
        Ok(())
    }
}

/// Buffers rows in memory, charged to this holder.
#[derive(Clone, Copy)]
pub(crate) struct ToBuffer(pub Holder);

impl EndSpec for ToBuffer {
    type Part = RowBuffer;
    type Done = RowBuffer;

    fn part(self, layout: &[Slot], ctx: &QueryContext<'_>) -> Result<RowBuffer> {
        Ok(RowBuffer::new(layout.len(), ctx, self.0))
    }

    fn batch(part: &mut RowBuffer, _: &QueryContext<'_>, rows: View<'_>) -> Flow {
        Ok(part.push(rows)?)
    }

    fn done(part: RowBuffer, _: &QueryContext<'_>) -> Result<RowBuffer> {
        Ok(part)
    }

    fn merge(whole: &mut RowBuffer, _: &QueryContext<'_>, part: RowBuffer) -> Result<()> {
        whole.append(part)
    }

    fn bytes(done: &RowBuffer) -> u64 {
        done.bytes()
    }
}

/// Determines whether there is a row.
#[derive(Clone, Copy)]
pub(crate) struct ToAny;

impl EndSpec for ToAny {
    type Part = bool;
    type Done = bool;

    const ENDS_EARLY: bool = true;

    fn part(self, _: &[Slot], _: &QueryContext<'_>) -> Result<bool> {
        Ok(false)
    }

    fn batch(any: &mut bool, _: &QueryContext<'_>, rows: View<'_>) -> Flow {
        *any |= rows.rows > 0;
        if *any { Err(Halt::Stop) } else { Ok(()) }
    }

    fn done(any: bool, _: &QueryContext<'_>) -> Result<bool> {
        Ok(any)
    }

    fn merge(any: &mut bool, _: &QueryContext<'_>, part: bool) -> Result<()> {
        *any |= part;
        Ok(())
    }
}

/// COUNT, grouped by these slots.
#[derive(Clone, Copy)]
pub(crate) struct ToCounts<'a>(pub &'a [Slot], pub &'a [Count]);

impl<'a> EndSpec for ToCounts<'a> {
    type Part = GroupRows<GroupCounter<'a>>;
    type Done = Self::Part;

    fn part(self, layout: &[Slot], ctx: &QueryContext<'_>) -> Result<Self::Part> {
        let groups = GroupCounter::new(self.0, self.1, layout, ctx);
        Ok(GroupRows::new(groups, self.0.len(), ctx))
    }

    fn batch(part: &mut Self::Part, ctx: &QueryContext<'_>, rows: View<'_>) -> Flow {
        Ok(part.add(ctx, rows)?)
    }

    fn done(part: Self::Part, _: &QueryContext<'_>) -> Result<Self::Done> {
        Ok(part)
    }

    fn merge(whole: &mut Self::Done, ctx: &QueryContext<'_>, part: Self::Done) -> Result<()> {
        whole.merge(ctx, part)
    }

    fn bytes(done: &Self::Done) -> u64 {
        done.bytes()
    }
}

/// GROUP BY these slots.
#[derive(Clone, Copy)]
pub(crate) struct ToGroups<'a>(pub &'a [Slot], pub &'a [Aggregate]);

impl EndSpec for ToGroups<'_> {
    type Part = GroupRows<Grouping>;
    type Done = Self::Part;

    fn part(self, layout: &[Slot], ctx: &QueryContext<'_>) -> Result<Self::Part> {
        let groups = Grouping::new(self.0, self.1, layout, ctx);
        Ok(GroupRows::new(groups, self.0.len(), ctx))
    }

    fn batch(part: &mut Self::Part, ctx: &QueryContext<'_>, rows: View<'_>) -> Flow {
        Ok(part.add(ctx, rows)?)
    }

    fn done(part: Self::Part, _: &QueryContext<'_>) -> Result<Self::Done> {
        Ok(part)
    }

    fn merge(whole: &mut Self::Done, ctx: &QueryContext<'_>, part: Self::Done) -> Result<()> {
        whole.merge(ctx, part)
    }

    fn bytes(done: &Self::Done) -> u64 {
        done.bytes()
    }
}

/// Rows sorted by the keys of this ORDER BY; with a number, only that many of the first rows.
#[derive(Clone, Copy)]
pub(crate) struct ToOrder<'a>(pub &'a operator::OrderBy, pub Option<u64>);

impl EndSpec for ToOrder<'_> {
    type Part = SortInput;
    type Done = Sorter;

    fn part(self, layout: &[Slot], ctx: &QueryContext<'_>) -> Result<SortInput> {
        SortInput::new(self.0, layout, self.1, ctx)
    }

    fn batch(part: &mut SortInput, ctx: &QueryContext<'_>, rows: View<'_>) -> Flow {
        Ok(part.add(ctx, rows)?)
    }

    fn done(part: SortInput, ctx: &QueryContext<'_>) -> Result<Sorter> {
        part.done(ctx)
    }

    fn merge(whole: &mut Sorter, _: &QueryContext<'_>, part: Sorter) -> Result<()> {
        whole.merge(part)
    }

    fn bytes(done: &Sorter) -> u64 {
        done.bytes()
    }
}

/// Passes the plan's output columns to a sink.
pub(crate) struct OutputEnd<'s> {
    sink: Box<dyn WorkerSink + 's>,
    /// Column of each output position; `None` for a slot that is never bound.
    columns: Vec<Option<usize>>,
    zeros: Vec<u32>,
    rows: u64,
}

/// Largest number of output columns for which no vector is allocated per batch.
const WIDE: usize = 24;

impl<'s> OutputEnd<'s> {
    pub fn new(output: &[Slot], layout: &[Slot], sink: Box<dyn WorkerSink + 's>) -> Self {
        let layout = SlotLayout::new(layout);
        let columns = output.iter().map(|s| layout.position_of(*s)).collect();
        Self {
            sink,
            columns,
            zeros: vec![],
            rows: 0,
        }
    }

    /// Tells the sink that it has got all rows. Returns their number.
    pub fn done(self) -> Result<u64> {
        self.sink.done()?;
        Ok(self.rows)
    }
}

impl Consumer for OutputEnd<'_> {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        let unbound = self.columns.iter().any(Option::is_none);
        if unbound && rows.columns.is_empty() && rows.rows > BATCH {
            // There may be any number of rows without columns, but a column of zeros needs memory for each row.
            let mut left = rows.rows;
            while left > 0 {
                let n = left.min(BATCH);
                left -= n;
                self.batch(View {
                    columns: &[],
                    rows: n,
                })?;
            }
            return Ok(());
        }
        self.rows += rows.rows as u64;
        if unbound && self.zeros.len() < rows.rows {
            self.zeros.resize(rows.rows, 0);
        }
        let zeros = self.zeros.get(..rows.rows).unwrap_or(&[]);
        let column = |c: &Option<usize>| c.map_or(zeros, |c| rows.column(c));
        let result = if self.columns.len() <= WIDE {
            let mut refs: [&[u32]; WIDE] = [&[]; WIDE];
            for (r, c) in refs.iter_mut().zip(&self.columns) {
                *r = column(c);
            }
            self.sink.batch(&refs[..self.columns.len()], rows.rows)
        } else {
            let refs: Vec<&[u32]> = self.columns.iter().map(column).collect();
            self.sink.batch(&refs, rows.rows)
        };
        Ok(result?)
    }
}
