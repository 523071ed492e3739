//! One step's state in one worker: what it does to a batch, and what it holds.

use super::any::ExpandAny;
use super::check::{Check, Restrict};
use super::expand::Expand;
use super::scan::ScanAll;
use super::{Emit, Plumb, Run, Source};
use crate::batch::{Batch, Charge, View, widen};
use crate::filter::Filters;
use crate::live::LiveCounts;
use jindou_graph::segment::Scope;
use jindou_model::{Direction, Error, PredicateId, Result};
use jindou_plan::{Slot, Step, StepKind};
use std::time::Duration;

/// Rows, time and bytes of a step, in one worker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StepStats {
    pub rows_in: u64,
    pub rows_out: u64,
    pub time: Duration,
    pub touched: u64,
    pub written: u64,
}

/// Boxed where large: a state of a few hundred bytes, made once a query.
pub(super) enum Op<'a> {
    Expand(Box<Expand<'a>>),
    Check(Box<Check<'a>>),
    Restrict(Restrict<'a>),
    Any(Box<ExpandAny<'a>>),
    Scan(Box<ScanAll<'a>>),
    Cross(Box<Cross<'a>>),
}

/// A product with a source.
pub(super) struct Cross<'a> {
    source: Source<'a>,
    to: Option<usize>,
    row: usize,
    place: u64,
    scratch: Vec<u32>,
}

impl Cross<'_> {
    fn fill(&mut self, run: &Run<'_>, input: View<'_>, out: &mut Emit<'_>) -> Result<bool> {
        let (to, index, rows) = out.columns(self.to);
        run.check()?;
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
    pub(super) op: Op<'a>,
    /// (input column, output column) of slots that stay.
    carry: Vec<(usize, usize)>,
    filters: Filters<'a>,
    pub(super) out: Batch,
    index: Vec<u32>,
    /// For columns that nothing reads; as long as such a column needed.
    spare: Vec<u32>,
    /// Rows of an output without columns.
    pub(super) bare: usize,
    /// Rows that are handed on at once.
    pub(super) pace: usize,
    /// Bytes that the step takes before there is a row.
    plumbing: usize,
    charge: Charge,
    pub(super) stats: StepStats,
    /// Counts in a watched run.
    pub(super) live: Option<&'a LiveCounts>,
    /// Over shards: lists to fetch together where rows are few.
    pub(super) ahead: Vec<Ahead<'a>>,
}

/// A list that a later step reads at a vertex that is bound.
#[derive(Clone, Copy)]
pub(super) struct Ahead<'a> {
    pub column: usize,
    pub predicate: PredicateId,
    pub direction: Direction,
    pub scope: Scope<'a>,
}

/// Rows of which lists are fetched ahead at most: of more, earlier steps may leave few.
const FEW_AHEAD: usize = 64;

impl<'a> StepState<'a> {
    /// Notes time in the step, and in a watched run the number of rows that came in.
    pub(super) fn spent(&mut self, rows_in: usize, time: Duration) {
        self.stats.time += time;
        if let Some(live) = self.live {
            live.add(rows_in, 0, time);
        }
    }

    pub(super) fn new(step: &'a Step, plumb: &Plumb<'a, '_>, run: &Run<'a>) -> Result<Self> {
        let op = match &step.kind {
            StepKind::Start { .. } => {
                return Err(Error::Internal(
                    "the plan has a start that is not first".into(),
                ));
            }
            StepKind::Expand { to, lists, within } => {
                let to = plumb.output(*to);
                Op::Expand(Box::new(Expand::new(to, lists, within.as_ref(), plumb)?))
            }
            StepKind::Check { list, other } => {
                Op::Check(Box::new(Check::new(list, *other, plumb)?))
            }
            StepKind::Restrict { slot, within } => {
                Op::Restrict(Restrict::new(plumb.column(*slot)?, within, plumb))
            }
            StepKind::ExpandAny {
                anchor,
                direction,
                predicate,
                far,
                graph,
            } => Op::Any(Box::new(ExpandAny::new(
                *anchor, *direction, *predicate, *far, graph, plumb,
            )?)),
            StepKind::ScanAll {
                subject,
                predicate,
                object,
                graph,
            } => Op::Scan(Box::new(ScanAll::new(
                *subject, *predicate, *object, graph, plumb,
            )?)),
            StepKind::Cross { to, source, within } => Op::Cross(Box::new(Cross {
                source: Source::new(source, within.as_ref(), plumb)?,
                to: plumb.output(*to),
                row: 0,
                place: 0,
                scratch: vec![],
            })),
        };
        // A plan of thousands of patterns has as many steps, each with as many columns.
        run.check()?;
        let carry = plumb.carry();
        let plumbing = carry.len() * size_of::<(usize, usize)>()
            + plumb.output.len() * (size_of::<Vec<u32>>() + 2 * size_of::<Slot>());
        let mut charge = Charge::new(run.budget);
        charge.set(plumbing)?;
        Ok(Self {
            op,
            carry,
            filters: Filters::new(&step.filters, plumb.output, run)?,
            out: Batch::new(plumb.output.len(), run.budget),
            index: vec![],
            spare: vec![],
            bare: 0,
            pace: run.first_batch,
            plumbing,
            charge,
            live: None,
            stats: StepStats::default(),
            ahead: Vec::new(),
        })
    }

    /// Fetches the lists of few rows that this step and later ones read, in one round.
    pub(super) fn fetch_ahead(&self, run: &Run<'_>, input: View<'_>) {
        if self.ahead.is_empty() || input.rows > FEW_AHEAD {
            return;
        }
        let Some(sharded) = run.snapshot.as_sharded() else {
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
            Op::Expand(o) => o.begin(input),
            Op::Check(o) => o.begin(input),
            Op::Restrict(o) => o.begin(),
            Op::Any(o) => o.begin(input),
            Op::Scan(o) => o.begin(),
            Op::Cross(o) => (o.row, o.place) = (0, 0),
        }
    }

    pub(super) fn grow(&mut self, room: usize) -> Result<()> {
        if room > self.index.len() {
            self.out.ensure(room)?;
            // Nothing in it counts from one filling to the next.
            widen(&mut self.index, 0, room);
        }
        let op = match &self.op {
            Op::Expand(o) => o.bytes(),
            Op::Check(o) => o.bytes(),
            Op::Restrict(_) => 0,
            Op::Any(o) => o.bytes(),
            Op::Scan(o) => o.bytes(),
            Op::Cross(o) => o.source.bytes() + o.scratch.capacity() * 4,
        };
        self.charge.set(self.plumbing + self.index.len() * 8 + op)
    }

    /// Appends output rows, gathered and filtered. True if the output is full and the input not done.
    pub(super) fn fill(&mut self, run: &Run<'_>, input: View<'_>) -> Result<bool> {
        let from = self.out.rows;
        let (batch, index, spare) = (&mut self.out, &mut self.index, &mut self.spare);
        let mut emit = Emit {
            batch,
            index,
            spare,
        };
        let more = match &mut self.op {
            Op::Expand(o) => o.fill(run, input, &mut emit)?,
            Op::Check(o) => o.fill(run, input, &mut emit)?,
            Op::Restrict(o) => o.fill(input, &mut emit),
            Op::Any(o) => o.fill(run, input, &mut emit)?,
            Op::Scan(o) => o.fill(run, input, &mut emit)?,
            Op::Cross(o) => o.fill(run, input, &mut emit)?,
        };
        let rows = self.out.rows;
        if rows > from {
            let index = &self.index[from..rows];
            for &(i, o) in &self.carry {
                self.out.gather(o, from, input.column(i), index);
            }
            self.filters.apply(run, &mut self.out, from)?;
        }
        if self.out.columns.is_empty() {
            self.bare += self.out.rows;
            self.out.rows = 0;
        }
        Ok(more)
    }

    /// The rows of a whole batch when only their number matters and it is cheap to know.
    pub(super) fn count(&mut self, input: View<'_>) -> bool {
        if self.out.columns.is_empty()
            && self.filters.is_empty()
            && let Op::Expand(o) = &mut self.op
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
            Op::Expand(o) => o.touched,
            Op::Check(o) => o.touched,
            Op::Any(o) => o.touched,
            Op::Scan(o) => o.touched,
            Op::Restrict(_) | Op::Cross(_) => 0,
        }
    }
}
