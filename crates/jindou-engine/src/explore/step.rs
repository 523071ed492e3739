//! The state of one step in one worker: its operation, and its buffers.

use super::any::ExpandAnyStep;
use super::check::{CheckStep, RestrictStep};
use super::expand::ExpandStep;
use super::scan::ScanAll;
use super::{Emit, QueryContext, StartReader, StepLayout};
use crate::batch::{Batch, OperatorCharge, View, widen};
use crate::filter::Filters;
use crate::live::LiveCounts;
use jindou_graph::segment::GraphScope;
use jindou_model::{Direction, PredicateId, Result};
use jindou_plan::{Slot, Step, StepKind};
use std::time::Duration;

/// Counts of a step in one worker: rows, time, and bytes read and written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StepStats {
    pub rows_in: u64,
    pub rows_out: u64,
    pub time: Duration,
    pub touched: u64,
    pub written: u64,
}

/// The operation of a step. Variants with a large state are boxed, so that steps can be moved cheaply.
pub(super) enum StepOp<'a> {
    Expand(Box<ExpandStep<'a>>),
    Check(Box<CheckStep<'a>>),
    Restrict(RestrictStep<'a>),
    Any(Box<ExpandAnyStep<'a>>),
    Scan(Box<ScanAll<'a>>),
    Cross(Box<Cross<'a>>),
}

/// The step `Cross`: combines each row with each value of a source.
pub(super) struct Cross<'a> {
    source: StartReader<'a>,
    to: Option<usize>,
    row: usize,
    place: u64,
    scratch: Vec<u32>,
}

impl Cross<'_> {
    fn fill(
        &mut self,
        ctx: &QueryContext<'_>,
        input: View<'_>,
        out: &mut Emit<'_>,
    ) -> Result<bool> {
        let (to, index, rows) = out.columns(self.to);
        ctx.check()?;
        while self.row < input.rows {
            while self.place < self.source.len() {
                let room = to.len() - *rows;
                if room == 0 {
                    return Ok(true);
                }
                let n = self
                    .source
                    .read(self.place, &mut to[*rows..], &mut self.scratch);
                index[*rows..*rows + n].fill(self.row as u32);
                *rows += n;
                self.place += room as u64;
            }
            self.row += 1;
            self.place = 0;
        }
        Ok(false)
    }
}

pub(super) struct StepState<'a> {
    pub(super) op: StepOp<'a>,
    /// Pairs (input column, output column) of slots that rows keep.
    carry: Vec<(usize, usize)>,
    filters: Filters<'a>,
    pub(super) out: Batch,
    index: Vec<u32>,
    /// Written in place of columns that nothing reads.
    spare: Vec<u32>,
    /// Number of output rows, if the output has no columns.
    pub(super) bare: usize,
    /// Number of buffered rows from which on they are passed to the next step; grows.
    pub(super) pace: usize,
    /// Bytes that the step allocates when it is built.
    plumbing: usize,
    charge: OperatorCharge,
    pub(super) stats: StepStats,
    /// Counts for clients that watch the query.
    pub(super) live: Option<&'a LiveCounts>,
    /// On a sharded store: lists that this step and later ones read, fetched in one round if there are few rows.
    pub(super) ahead: Vec<Ahead<'a>>,
}

/// A list that this step or a later one reads, at a vertex that is bound before this step.
#[derive(Clone, Copy)]
pub(super) struct Ahead<'a> {
    pub column: usize,
    pub predicate: PredicateId,
    pub direction: Direction,
    pub scope: GraphScope<'a>,
}

/// Largest number of rows for which lists of later steps are fetched. Of more rows, earlier steps may discard most.
const FEW_AHEAD: usize = 64;

impl<'a> StepState<'a> {
    /// Adds time spent in the step and, for watching clients, the number of rows that came in.
    pub(super) fn spent(&mut self, rows_in: usize, time: Duration) {
        self.stats.time += time;
        if let Some(live) = self.live {
            live.add(rows_in, 0, time);
        }
    }

    pub(super) fn new(
        step: &'a Step,
        layout: &StepLayout<'a, '_>,
        ctx: &QueryContext<'a>,
    ) -> Result<Self> {
        let op = match &step.kind {
            StepKind::Start { .. } => unreachable!("only the first step is a start"),
            StepKind::Expand { to, lists, within } => {
                let to = layout.output(*to);
                StepOp::Expand(Box::new(ExpandStep::new(
                    to,
                    lists,
                    within.as_ref(),
                    layout,
                )))
            }
            StepKind::Check { list, other } => {
                StepOp::Check(Box::new(CheckStep::new(list, *other, layout)))
            }
            StepKind::Restrict { slot, within } => {
                StepOp::Restrict(RestrictStep::new(layout.column(*slot), within, layout))
            }
            StepKind::ExpandAny {
                anchor,
                direction,
                predicate,
                far,
                graph,
            } => StepOp::Any(Box::new(ExpandAnyStep::new(
                *anchor, *direction, *predicate, *far, graph, layout,
            ))),
            StepKind::ScanAll {
                subject,
                predicate,
                object,
                graph,
            } => StepOp::Scan(Box::new(ScanAll::new(
                *subject, *predicate, *object, graph, layout,
            ))),
            StepKind::Cross { to, source, within } => StepOp::Cross(Box::new(Cross {
                source: StartReader::new(source, within.as_ref(), layout),
                to: layout.output(*to),
                row: 0,
                place: 0,
                scratch: vec![],
            })),
        };
        // A plan may have thousands of steps, each with as many columns.
        ctx.check()?;
        let carry = layout.carry();
        let plumbing = carry.len() * size_of::<(usize, usize)>()
            + layout.output.len() * (size_of::<Vec<u32>>() + 2 * size_of::<Slot>());
        let mut charge = OperatorCharge::new(ctx.budget);
        charge.set(plumbing)?;
        Ok(Self {
            op,
            carry,
            filters: Filters::new(&step.filters, layout.output, ctx)?,
            out: Batch::new(layout.output.len(), ctx.budget),
            index: vec![],
            spare: vec![],
            bare: 0,
            pace: ctx.first_batch,
            plumbing,
            charge,
            live: None,
            stats: StepStats::default(),
            ahead: Vec::new(),
        })
    }

    /// If there are few rows, fetches the lists that this step and later ones read in one round.
    pub(super) fn fetch_ahead(&self, ctx: &QueryContext<'_>, input: View<'_>) {
        if self.ahead.is_empty() || input.rows > FEW_AHEAD {
            return;
        }
        let Some(sharded) = ctx.snapshot.as_sharded() else {
            return;
        };
        let lists = self.ahead.iter().flat_map(|a| {
            let keys = input.column(a.column).iter();
            keys.map(|&key| (a.predicate, a.direction, key, a.scope))
        });
        sharded.fetch(lists);
    }

    pub(super) fn begin(&mut self, input: View<'_>) {
        match &mut self.op {
            StepOp::Expand(o) => o.begin(input),
            StepOp::Check(o) => o.begin(input),
            StepOp::Restrict(o) => o.begin(),
            StepOp::Any(o) => o.begin(input),
            StepOp::Scan(o) => o.begin(),
            StepOp::Cross(o) => (o.row, o.place) = (0, 0),
        }
    }

    pub(super) fn grow(&mut self, room: usize) -> Result<()> {
        if room > self.index.len() {
            self.out.ensure(room)?;
            // Each filling overwrites `index`, so its content need not be copied.
            widen(&mut self.index, 0, room);
        }
        let op = match &self.op {
            StepOp::Expand(o) => o.bytes(),
            StepOp::Check(o) => o.bytes(),
            StepOp::Restrict(_) => 0,
            StepOp::Any(o) => o.bytes(),
            StepOp::Scan(o) => o.bytes(),
            StepOp::Cross(o) => o.source.bytes() + o.scratch.capacity() * 4,
        };
        self.charge.set(self.plumbing + self.index.len() * 8 + op)
    }

    /// Runs the operation, gathers the columns that rows keep, and filters. Returns true if the output is full and the
    /// input is not finished.
    pub(super) fn fill(&mut self, ctx: &QueryContext<'_>, input: View<'_>) -> Result<bool> {
        let from = self.out.rows;
        let (batch, index, spare) = (&mut self.out, &mut self.index, &mut self.spare);
        let mut emit = Emit {
            batch,
            index,
            spare,
        };
        let more = match &mut self.op {
            StepOp::Expand(o) => o.fill(ctx, input, &mut emit)?,
            StepOp::Check(o) => o.fill(ctx, input, &mut emit)?,
            StepOp::Restrict(o) => o.fill(input, &mut emit),
            StepOp::Any(o) => o.fill(ctx, input, &mut emit)?,
            StepOp::Scan(o) => o.fill(ctx, input, &mut emit)?,
            StepOp::Cross(o) => o.fill(ctx, input, &mut emit)?,
        };
        let rows = self.out.rows;
        if rows > from {
            let index = &self.index[from..rows];
            for &(i, o) in &self.carry {
                self.out.gather(o, from, input.column(i), index);
            }
            self.filters.apply(ctx, &mut self.out, from)?;
        }
        if self.out.columns.is_empty() {
            self.bare += self.out.rows;
            self.out.rows = 0;
        }
        Ok(more)
    }

    /// If only the number of output rows is needed and cheap to compute, adds that of a whole batch and returns true.
    pub(super) fn count(&mut self, input: View<'_>) -> bool {
        if self.out.columns.is_empty()
            && self.filters.is_empty()
            && let StepOp::Expand(o) = &mut self.op
            && let Some(n) = o.count(input)
        {
            self.bare += n;
            return true;
        }
        false
    }

    pub(super) fn ready(&self) -> usize {
        self.out.rows + self.bare
    }

    pub(super) fn touched(&self) -> u64 {
        match &self.op {
            StepOp::Expand(o) => o.touched,
            StepOp::Check(o) => o.touched,
            StepOp::Any(o) => o.touched,
            StepOp::Scan(o) => o.touched,
            StepOp::Restrict(_) | StepOp::Cross(_) => 0,
        }
    }
}
