//! Ends of pipelines: one part per worker, merged when all are done.

use super::BATCH;
use super::count::GroupCounter;
use super::group::Grouping;
use super::order::Sorter;
use crate::batch::View;
use crate::explore::{Consumer, Flow, Halt, QueryContext};
use crate::row_buffer::RowBuffer;
use crate::sink::{SinkFactory, WorkerSink};
use crate::tree::SlotLayout;
use jindou_model::{Error, Holder, Result};
use jindou_plan::{Aggregate, Count, Slot};

/// Specification of a pipeline's end: what its rows become.
#[derive(Clone, Copy)]
pub(crate) enum EndSpec<'a, 's> {
    /// The query's result, with these columns.
    Output(&'a [Slot], &'s dyn SinkFactory),
    /// Rows in memory, held by an operator of this name.
    RowBuffer(Holder),
    /// Tells if there is a row.
    Any,
    Count(&'a [Slot], &'a [Count]),
    Group(&'a [Slot], &'a [Aggregate]),
    /// Sorted rows, with an optional limit.
    Order(&'a [(Slot, bool)], Option<u64>),
}

/// One worker's part of an end.
pub(crate) enum PipelineEnd<'a, 's> {
    Output(OutputEnd<'s>),
    RowBuffer(RowBuffer),
    Any(bool),
    Count(Box<GroupCounter<'a>>),
    Group(Box<Grouping>),
    Order(Box<Sorter>),
}

impl<'a, 's> PipelineEnd<'a, 's> {
    pub fn new(spec: EndSpec<'a, 's>, layout: &[Slot], ctx: &QueryContext<'_>) -> Self {
        match spec {
            EndSpec::Output(output, sinks) => {
                Self::Output(OutputEnd::new(output, layout, sinks.worker()))
            }
            EndSpec::RowBuffer(holder) => {
                Self::RowBuffer(RowBuffer::new(layout.len(), ctx, holder))
            }
            EndSpec::Any => Self::Any(false),
            EndSpec::Count(group, counts) => {
                Self::Count(Box::new(GroupCounter::new(group, counts, layout, ctx)))
            }
            EndSpec::Group(by, aggregates) => {
                Self::Group(Box::new(Grouping::new(by, aggregates, layout, ctx)))
            }
            EndSpec::Order(by, most) => Self::Order(Box::new(Sorter::new(by, layout, most, ctx))),
        }
    }

    pub fn batch(&mut self, ctx: &QueryContext<'_>, rows: View<'_>) -> Flow {
        match self {
            Self::Output(o) => o.batch(rows),
            Self::RowBuffer(h) => Ok(h.push(rows)?),
            Self::Any(any) => {
                *any |= rows.rows > 0;
                if *any { Err(Halt::Stop) } else { Ok(()) }
            }
            Self::Count(c) => Ok(c.add(rows)?),
            Self::Group(g) => Ok(g.add(ctx, rows)?),
            Self::Order(o) => Ok(o.add(ctx, rows)?),
        }
    }

    /// Merges another worker's part.
    pub fn merge(&mut self, ctx: &QueryContext<'_>, other: Self) -> Result<()> {
        match (self, other) {
            (Self::Output(a), Self::Output(b)) => a.rows += b.rows,
            (Self::RowBuffer(a), Self::RowBuffer(b)) => a.append(b)?,
            (Self::Any(a), Self::Any(b)) => *a |= b,
            (Self::Count(a), Self::Count(b)) => a.merge(&b)?,
            (Self::Group(a), Self::Group(b)) => a.merge(ctx, *b)?,
            (Self::Order(a), Self::Order(b)) => a.merge(*b)?,
            _ => return Err(Error::Internal("ends of two kinds do not merge".into())),
        }
        Ok(())
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::RowBuffer(h) => h.bytes(),
            Self::Count(c) => c.bytes(),
            Self::Group(g) => g.bytes(),
            Self::Order(o) => o.bytes(),
            Self::Output(_) | Self::Any(_) => 0,
        }
    }
}

/// Passes the plan's output columns to a sink.
pub(crate) struct OutputEnd<'s> {
    /// `None` once it is handed back.
    sink: Option<Box<dyn WorkerSink + 's>>,
    /// Column by output position; `None` for one that is never bound.
    columns: Vec<Option<usize>>,
    zeros: Vec<u32>,
    pub rows: u64,
}

/// Number of columns up to which a result needs no allocation per batch.
const WIDE: usize = 24;

impl<'s> OutputEnd<'s> {
    fn new(output: &[Slot], layout: &[Slot], sink: Box<dyn WorkerSink + 's>) -> Self {
        let layout = SlotLayout::new(layout);
        let columns = output.iter().map(|s| layout.position_of(*s)).collect();
        Self {
            sink: Some(sink),
            columns,
            zeros: vec![],
            rows: 0,
        }
    }

    /// Hands the sink back: all rows were taken.
    pub fn done(mut self) -> Result<Self> {
        if let Some(sink) = self.sink.take() {
            sink.done()?;
        }
        Ok(self)
    }
}

impl Consumer for OutputEnd<'_> {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        let unbound = self.columns.iter().any(Option::is_none);
        if unbound && rows.columns.is_empty() && rows.rows > BATCH {
            // Rows without columns are unbounded in number; columns of zeros are not.
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
        let Some(sink) = &mut self.sink else {
            return Ok(());
        };
        let column = |c: &Option<usize>| c.map_or(zeros, |c| rows.column(c));
        let result = if self.columns.len() <= WIDE {
            let mut refs: [&[u32]; WIDE] = [&[]; WIDE];
            for (r, c) in refs.iter_mut().zip(&self.columns) {
                *r = column(c);
            }
            sink.batch(&refs[..self.columns.len()], rows.rows)
        } else {
            let refs: Vec<&[u32]> = self.columns.iter().map(column).collect();
            sink.batch(&refs, rows.rows)
        };
        Ok(result?)
    }
}
