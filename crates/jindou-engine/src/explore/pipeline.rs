//! The steps of an exploration, as one worker runs them.

use super::step::{Ahead, StepOp, StepState, StepStats};
use super::{Consumer, Flow, QueryContext, StartReader, StepLayout};
use crate::batch::{Batch, View};
use crate::filter::Filters;
use crate::live::{LiveCounts, LiveNode};
use jindou_model::{Invariant, Result};
use jindou_plan::{EdgeList, Exploration, Operand, Slot, Step, StepKind, layout_of};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Initial capacity of a step's output, in rows. Enough for most light queries.
const FIRST_ROOM: usize = 64;
/// Factor by which batches grow, from `QueryContext::first_batch` to `QueryContext::batch_rows`.
const GROWTH: usize = 4;

/// Number of steps that are flushed between two checks of the deadline and the cancel flag.
const FLUSHED: usize = 8;

/// One worker's steps.
pub(crate) struct Pipeline<'a> {
    start: Batch,
    /// Number of source rows for the next batch.
    start_batch: usize,
    start_filters: Filters<'a>,
    start_stats: StepStats,
    /// True if the first step is a start; false for [`Pipeline::after`].
    start_is_own: bool,
    /// Counts of the start for clients that watch the query.
    start_live: Option<&'a LiveCounts>,
    steps: Vec<StepState<'a>>,
    layouts: Vec<Vec<Slot>>,
    spare: Vec<u32>,
    scratch: Vec<u32>,
}

impl<'a> Pipeline<'a> {
    /// The values that the start step reads, shared by all workers.
    pub fn source(exploration: &'a Exploration, ctx: &QueryContext<'a>) -> StartReader<'a> {
        let layout = StepLayout {
            snapshot: ctx.snapshot,
            input: &[],
            output: &[],
        };
        match exploration.steps.first().map(|s| &s.kind) {
            Some(StepKind::Start { source, within, .. }) => {
                StartReader::new(source, within.as_ref(), &layout)
            }
            _ => unreachable!("an exploration begins with a start"),
        }
    }

    pub fn new(exploration: &'a Exploration, ctx: &QueryContext<'a>) -> Result<Self> {
        let mut layouts: Vec<Vec<Slot>> = Vec::with_capacity(exploration.steps.len());
        let mut steps = Vec::with_capacity(exploration.steps.len().saturating_sub(1));
        let mut start_filters = None;
        for (i, step) in exploration.steps.iter().enumerate() {
            // Building a step takes time proportional to its columns.
            ctx.check()?;
            let input = layouts.last().map_or(&[][..], Vec::as_slice);
            let output = layout_of(input, step);
            if i == 0 {
                start_filters = Some(Filters::new(&step.filters, &output, ctx)?);
            } else {
                let layout = StepLayout {
                    snapshot: ctx.snapshot,
                    input,
                    output: &output,
                };
                steps.push(StepState::new(step, &layout, ctx)?);
            }
            layouts.push(output);
        }
        let start_filters = start_filters.invariant("an exploration has steps");
        if ctx.snapshot.is_sharded() {
            for (i, step) in steps.iter_mut().enumerate() {
                step.ahead = ahead(&layouts[i], &exploration.steps[i + 1..]);
            }
        }
        Ok(Self {
            start: Batch::new(layouts[0].len(), ctx.budget),
            start_batch: ctx.first_batch,
            start_filters,
            start_stats: StepStats::default(),
            start_is_own: true,
            start_live: None,
            steps,
            layouts,
            spare: vec![],
            scratch: vec![],
        })
    }

    /// Steps without a start, which extend rows with these slots. Slots from [`jindou_plan::FIRST_HIDDEN`] on are kept
    /// even if no step lists them as live.
    pub fn after(slots: &[Slot], steps: &'a [Step], ctx: &QueryContext<'a>) -> Result<Self> {
        let mut layouts = Vec::with_capacity(steps.len() + 1);
        layouts.push(slots.to_vec());
        let mut states = Vec::with_capacity(steps.len());
        for step in steps {
            // Building a step takes time proportional to its columns.
            ctx.check()?;
            let input = layouts.last().map_or(&[][..], Vec::as_slice);
            let output = layout_of(input, step);
            let layout = StepLayout {
                snapshot: ctx.snapshot,
                input,
                output: &output,
            };
            states.push(StepState::new(step, &layout, ctx)?);
            layouts.push(output);
        }
        Ok(Self {
            start: Batch::new(0, ctx.budget),
            start_batch: ctx.first_batch,
            start_filters: Filters::new(&[], &[], ctx)?,
            start_stats: StepStats::default(),
            start_is_own: false,
            start_live: None,
            steps: states,
            layouts,
            spare: vec![],
            scratch: vec![],
        })
    }

    /// If clients watch the query, counts for the operator `node` from now on.
    #[inline]
    pub fn watch(&mut self, ctx: &QueryContext<'a>, node: usize) {
        if let Some(live) = ctx.live.and_then(|l| l.node(node)) {
            self.count(live);
        }
    }

    fn count(&mut self, live: &'a LiveNode) {
        // A pipeline without a start has no entry for one.
        let own = self.steps.len() + usize::from(self.start_is_own);
        let counts = live.steps(own);
        let skip = usize::from(self.start_is_own);
        self.start_live = counts.first().filter(|_| self.start_is_own);
        for (step, counts) in self.steps.iter_mut().zip(counts.iter().skip(skip)) {
            step.live = Some(counts);
        }
    }

    /// Slots of the columns that reach the consumer.
    pub fn layout(&self) -> &[Slot] {
        self.layouts.last().invariant("a pipeline has a layout")
    }

    /// Slots after step `at`.
    pub fn layout_after(&self, at: usize) -> &[Slot] {
        &self.layouts[at]
    }

    /// Number of steps after the start.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Returns true if the exploration is one `ScanAll` step; its morsels are then ranges of predicates.
    pub fn is_scan(&self) -> bool {
        self.layouts.first().is_some_and(Vec::is_empty)
            && matches!(self.steps.first().map(|s| &s.op), Some(StepOp::Scan(_)))
    }

    /// Limits a `ScanAll` step to some predicates: those of a morsel.
    pub fn scan_only(&mut self, predicates: Range<u32>) {
        if let Some(StepState {
            op: StepOp::Scan(s),
            ..
        }) = self.steps.first_mut()
        {
            s.only = predicates;
        }
    }

    /// Passes the source's values `range` through the start and the first `until` steps after it.
    pub fn morsel(
        &mut self,
        ctx: &QueryContext<'_>,
        source: &StartReader<'_>,
        range: Range<u64>,
        until: usize,
        end: &mut dyn Consumer,
    ) -> Flow {
        let mut at = range.start;
        while at < range.end {
            ctx.check()?;
            let n = (range.end - at).min(self.start_batch as u64) as usize;
            let clock = ctx.profile.then(Instant::now);
            let written = if self.start.columns.is_empty() {
                self.spare.resize(n, 0);
                source.read(at, &mut self.spare, &mut self.scratch)
            } else {
                self.start.ensure(n)?;
                source.read(at, &mut self.start.columns[0][..n], &mut self.scratch)
            };
            self.start.rows = written;
            if written > 0 {
                self.start_filters.apply(ctx, &mut self.start, 0)?;
            }
            self.start_stats.rows_in += n as u64;
            self.start_stats.rows_out += self.start.rows as u64;
            self.start_stats.touched += 4 * n as u64;
            if let Some(c) = clock {
                let time = c.elapsed();
                self.start_stats.time += time;
                if let Some(live) = self.start_live {
                    live.add(n, self.start.rows, time);
                }
            }
            if self.start.rows > 0 {
                push(&mut self.steps[..until], ctx, self.start.view(), end)?;
            }
            self.grow_batch(ctx, 0..until, end)?;
            at += n as u64;
        }
        Ok(())
    }

    /// Passes rows through some of the steps after the start. Their columns are those before the first of these steps.
    pub fn rows(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        steps: Range<usize>,
        end: &mut dyn Consumer,
    ) -> Flow {
        push(&mut self.steps[steps.clone()], ctx, rows, end)?;
        self.grow_batch(ctx, steps, end)
    }

    /// While batches are smaller than full size, enlarges the next one and flushes the steps, so that the first rows
    /// arrive early.
    fn grow_batch(
        &mut self,
        ctx: &QueryContext<'_>,
        steps: Range<usize>,
        end: &mut dyn Consumer,
    ) -> Flow {
        if self.start_batch < ctx.batch_rows {
            self.start_batch = (self.start_batch * GROWTH).min(ctx.batch_rows);
            self.flush(ctx, steps, end)?;
        }
        Ok(())
    }

    /// Passes the rows that are still buffered in steps on to the end.
    pub fn flush(
        &mut self,
        ctx: &QueryContext<'_>,
        steps: Range<usize>,
        end: &mut dyn Consumer,
    ) -> Flow {
        let mut rest = &mut self.steps[steps];
        while let Some((step, after)) = rest.split_first_mut() {
            // A plan may have thousands of steps, each with a batch to pass on.
            if after.len() % FLUSHED == FLUSHED - 1 {
                ctx.check()?;
            }
            hand_on(step, after, ctx, end)?;
            rest = after;
        }
        Ok(())
    }

    /// Drops the rows that are still buffered in steps.
    pub fn clear(&mut self) {
        for step in &mut self.steps {
            step.out.rows = 0;
            step.bare = 0;
        }
    }

    /// Counts and times of each step, beginning with the start.
    pub fn stats(&self) -> Vec<StepStats> {
        std::iter::once(self.start_stats)
            .chain(self.steps.iter().map(|s| StepStats {
                touched: s.touched(),
                ..s.stats
            }))
            .zip(&self.layouts)
            .map(|(s, columns)| StepStats {
                written: 4 * s.rows_out * columns.len() as u64,
                ..s
            })
            .collect()
    }
}

/// Lists of `steps` whose keys are known before the first of them runs. Empty if there is only one: fetching it ahead
/// would save no round.
fn ahead<'a>(layout: &[Slot], steps: &'a [Step]) -> Vec<Ahead<'a>> {
    let mut all = Vec::new();
    let mut add = |list: &'a EdgeList| {
        let column = match list.anchor {
            Operand::Slot(s) => layout.iter().position(|l| *l == s),
            Operand::Const(_) => None,
        };
        if let (Some(column), Some(scope)) = (column, list.graph.scope()) {
            all.push(Ahead {
                column,
                predicate: list.predicate,
                direction: list.direction,
                scope,
            });
        }
    };
    for step in steps {
        if let StepKind::Expand { lists, .. } = &step.kind {
            lists.iter().for_each(&mut add);
        }
    }
    if all.len() < 2 {
        all.clear();
    }
    all
}

/// Passes a batch through steps. A step buffers a small output until more rows come; see `Pipeline::flush`.
fn push(
    steps: &mut [StepState<'_>],
    ctx: &QueryContext<'_>,
    input: View<'_>,
    end: &mut dyn Consumer,
) -> Flow {
    let Some((step, rest)) = steps.split_first_mut() else {
        return end.batch(input);
    };
    if input.columns.is_empty() && input.rows > ctx.batch_rows {
        let mut left = input.rows;
        while left > 0 {
            let rows = left.min(ctx.batch_rows);
            left -= rows;
            push_one(step, rest, ctx, View { columns: &[], rows }, end)?;
        }
        return Ok(());
    }
    push_one(step, rest, ctx, input, end)
}

fn push_one(
    step: &mut StepState<'_>,
    rest: &mut [StepState<'_>],
    ctx: &QueryContext<'_>,
    input: View<'_>,
    end: &mut dyn Consumer,
) -> Flow {
    let mut cap = 2 * step.pace;
    step.stats.rows_in += input.rows as u64;
    let mut clock = ctx.profile.then(Instant::now);
    // Number of input rows that are not yet in the counts for watching clients.
    let mut fresh = input.rows;
    step.fetch_ahead(ctx, input);
    step.begin(input);
    step.grow(cap.min(FIRST_ROOM.max(input.rows)))?;
    if step.count(input) {
        if clock.is_some() {
            step.spent(fresh, Duration::ZERO);
        }
        // A count fills no buffer. It is passed on as early as rows would be, so that a consumer that needs few rows
        // can stop.
        if step.ready() >= step.pace {
            ctx.check()?;
            return hand_on(step, rest, ctx, end);
        }
        return Ok(());
    }
    loop {
        let more = step.fill(ctx, input)?;
        let full = more && step.out.room() >= cap;
        if full || step.ready() >= step.pace {
            if let Some(c) = clock {
                step.spent(std::mem::take(&mut fresh), c.elapsed());
            }
            ctx.check()?;
            hand_on(step, rest, ctx, end)?;
            cap = 2 * step.pace;
            clock = ctx.profile.then(Instant::now);
        } else if more {
            step.grow(cap.min(step.out.room() * 4))?;
        }
        if !more {
            break;
        }
    }
    if let Some(c) = clock {
        step.spent(fresh, c.elapsed());
    }
    Ok(())
}

/// Passes a step's output to the following steps, and empties it.
fn hand_on(
    step: &mut StepState<'_>,
    rest: &mut [StepState<'_>],
    ctx: &QueryContext<'_>,
    end: &mut dyn Consumer,
) -> Flow {
    let rows = step.ready();
    if rows == 0 {
        return Ok(());
    }
    step.stats.rows_out += rows as u64;
    step.pace = (step.pace * GROWTH).min(ctx.batch_rows);
    if let Some(live) = step.live {
        live.add(0, rows, Duration::ZERO);
    }
    let view = View {
        columns: &step.out.columns,
        rows,
    };
    let flow = push(rest, ctx, view, end);
    step.out.rows = 0;
    step.bare = 0;
    flow
}
