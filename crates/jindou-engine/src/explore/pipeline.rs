//! The pipeline of one worker.

use super::step::{Ahead, Op, StepState, StepStats};
use super::{Consumer, Flow, Plumb, Run, Source};
use crate::batch::{Batch, View};
use crate::filter::Filters;
use crate::live::{LiveCounts, LiveNode};
use jindou_model::{Error, Invariant, Result};
use jindou_plan::{EdgeList, Exploration, Operand, Slot, Step, StepKind, layout_of};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Rows that an output has room for at first: light queries never touch more.
const FIRST_ROOM: usize = 64;
/// How much larger each batch is than the one before it, from `Run::first_batch` to `Run::batch_rows`.
const FASTER: usize = 4;

/// One worker's steps.
pub(crate) struct Pipeline<'a> {
    start: Batch,
    /// Rows that are carried to the end before more are taken at once.
    look: usize,
    start_filters: Filters<'a>,
    start_stats: StepStats,
    /// Whether it has a start of its own.
    start_is_own: bool,
    /// The start's counts in a watched run.
    start_live: Option<&'a LiveCounts>,
    steps: Vec<StepState<'a>>,
    layouts: Vec<Vec<Slot>>,
    spare: Vec<u32>,
    scratch: Vec<u32>,
}

impl<'a> Pipeline<'a> {
    /// The source of step 0, shared by all workers.
    pub fn source(exploration: &'a Exploration, run: &Run<'a>) -> Result<Source<'a>> {
        let plumb = Plumb {
            snapshot: run.snapshot,
            input: &[],
            output: &[],
        };
        match exploration.steps.first().map(|s| &s.kind) {
            Some(StepKind::Start { source, within, .. }) => {
                Source::new(source, within.as_ref(), &plumb)
            }
            _ => Err(Error::Internal(
                "the plan does not begin with a start".into(),
            )),
        }
    }

    pub fn new(exploration: &'a Exploration, run: &Run<'a>) -> Result<Self> {
        let mut layouts: Vec<Vec<Slot>> = Vec::with_capacity(exploration.steps.len());
        let mut steps = Vec::with_capacity(exploration.steps.len().saturating_sub(1));
        let mut start_filters = None;
        for (i, step) in exploration.steps.iter().enumerate() {
            let input = layouts.last().map_or(&[][..], Vec::as_slice);
            let output = layout_of(input, step);
            if i == 0 {
                start_filters = Some(Filters::new(&step.filters, &output, run)?);
            } else {
                let plumb = Plumb {
                    snapshot: run.snapshot,
                    input,
                    output: &output,
                };
                steps.push(StepState::new(step, &plumb, run)?);
            }
            layouts.push(output);
        }
        let Some(start_filters) = start_filters else {
            return Err(Error::Internal("the plan has no steps".into()));
        };
        if run.snapshot.is_sharded() {
            for (i, step) in steps.iter_mut().enumerate() {
                step.ahead = ahead(&layouts[i], &exploration.steps[i + 1..]);
            }
        }
        Ok(Self {
            start: Batch::new(layouts[0].len(), run.budget),
            look: run.first_batch,
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

    /// Steps that go on from rows with these columns; there is no start. Slots from [`jindou_plan::FIRST_HIDDEN`] on stay whether or
    /// not a step calls them live.
    pub fn after(slots: &[Slot], steps: &'a [Step], run: &Run<'a>) -> Result<Self> {
        let mut layouts = Vec::with_capacity(steps.len() + 1);
        layouts.push(slots.to_vec());
        let mut states = Vec::with_capacity(steps.len());
        for step in steps {
            let input = layouts.last().map_or(&[][..], Vec::as_slice);
            let output = layout_of(input, step);
            let plumb = Plumb {
                snapshot: run.snapshot,
                input,
                output: &output,
            };
            states.push(StepState::new(step, &plumb, run)?);
            layouts.push(output);
        }
        Ok(Self {
            start: Batch::new(0, run.budget),
            look: run.first_batch,
            start_filters: Filters::new(&[], &[], run)?,
            start_stats: StepStats::default(),
            start_is_own: false,
            start_live: None,
            steps: states,
            layouts,
            spare: vec![],
            scratch: vec![],
        })
    }

    /// Counts for the operator `node`, if the run is watched.
    #[inline]
    pub fn watch(&mut self, run: &Run<'a>, node: usize) {
        if let Some(live) = run.live.and_then(|l| l.node(node)) {
            self.count(live);
        }
    }

    fn count(&mut self, live: &'a LiveNode) {
        // Without an exploration's start there is no entry for one.
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

    /// True if the whole exploration is one scan of everything: then predicates are the morsels.
    pub fn is_scan(&self) -> bool {
        self.layouts.first().is_some_and(Vec::is_empty)
            && matches!(self.steps.first().map(|s| &s.op), Some(Op::Scan(_)))
    }

    /// Limits a scan to some predicates.
    pub fn scan_only(&mut self, predicates: Range<u32>) {
        if let Some(StepState {
            op: Op::Scan(s), ..
        }) = self.steps.first_mut()
        {
            s.only = predicates;
        }
    }

    /// Runs the source's values `from .. to` through steps `.. until` (0 = the start alone).
    pub fn morsel(
        &mut self,
        run: &Run<'_>,
        source: &Source<'_>,
        range: Range<u64>,
        until: usize,
        end: &mut dyn Consumer,
    ) -> Flow {
        let mut at = range.start;
        while at < range.end {
            run.check()?;
            let n = (range.end - at).min(self.look as u64) as usize;
            let clock = run.profile.then(Instant::now);
            let written = if self.start.columns.is_empty() {
                self.spare.resize(n, 0);
                source.read(at, &mut self.spare, &mut self.scratch)
            } else {
                self.start.ensure(n)?;
                source.read(at, &mut self.start.columns[0][..n], &mut self.scratch)
            };
            self.start.rows = written;
            if written > 0 {
                self.start_filters.apply(run, &mut self.start, 0)?;
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
                push(&mut self.steps[..until], run, self.start.view(), end)?;
            }
            self.look_further(run, 0..until, end)?;
            at += n as u64;
        }
        Ok(())
    }

    /// Runs rows (columns as after step `from`) through steps `from + 1 ..`.
    pub fn rows(
        &mut self,
        run: &Run<'_>,
        rows: View<'_>,
        steps: Range<usize>,
        end: &mut dyn Consumer,
    ) -> Flow {
        push(&mut self.steps[steps.clone()], run, rows, end)?;
        self.look_further(run, steps, end)
    }

    /// While batches are still small, what there is goes to the end; the next time it is more.
    fn look_further(&mut self, run: &Run<'_>, steps: Range<usize>, end: &mut dyn Consumer) -> Flow {
        if self.look < run.batch_rows {
            self.look = (self.look * FASTER).min(run.batch_rows);
            self.flush(run, steps, end)?;
        }
        Ok(())
    }

    /// Pushes on what steps still hold.
    pub fn flush(&mut self, run: &Run<'_>, steps: Range<usize>, end: &mut dyn Consumer) -> Flow {
        let mut rest = &mut self.steps[steps];
        while let Some((step, after)) = rest.split_first_mut() {
            hand_on(step, after, run, end)?;
            rest = after;
        }
        Ok(())
    }

    /// Forgets the rows that steps still hold.
    pub fn clear(&mut self) {
        for step in &mut self.steps {
            step.out.rows = 0;
            step.bare = 0;
        }
    }

    /// Counts and times of each step, the start first.
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

/// Lists that a step and later ones read at vertices that are bound before it, where they are several.
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

/// Pushes a batch through steps. Steps keep small outputs until more rows come; see `Pipeline::flush`.
fn push(
    steps: &mut [StepState<'_>],
    run: &Run<'_>,
    input: View<'_>,
    end: &mut dyn Consumer,
) -> Flow {
    let Some((step, rest)) = steps.split_first_mut() else {
        return end.batch(input);
    };
    if input.columns.is_empty() && input.rows > run.batch_rows {
        let mut left = input.rows;
        while left > 0 {
            let rows = left.min(run.batch_rows);
            left -= rows;
            push_one(step, rest, run, View { columns: &[], rows }, end)?;
        }
        return Ok(());
    }
    push_one(step, rest, run, input, end)
}

fn push_one(
    step: &mut StepState<'_>,
    rest: &mut [StepState<'_>],
    run: &Run<'_>,
    input: View<'_>,
    end: &mut dyn Consumer,
) -> Flow {
    let mut cap = 2 * step.pace;
    step.stats.rows_in += input.rows as u64;
    let mut clock = run.profile.then(Instant::now);
    // Rows that those who watch have not been told of.
    let mut fresh = input.rows;
    step.fetch_ahead(run, input);
    step.begin(input);
    step.grow(cap.min(FIRST_ROOM.max(input.rows)))?;
    if step.count(input) {
        if clock.is_some() {
            step.spent(fresh, Duration::ZERO);
        }
        // Counts have no room to fill, but whoever wants few rows must hear of them.
        if step.ready() >= step.pace {
            run.check()?;
            return hand_on(step, rest, run, end);
        }
        return Ok(());
    }
    loop {
        let more = step.fill(run, input)?;
        let full = more && step.out.room() >= cap;
        if full || step.ready() >= step.pace {
            if let Some(c) = clock {
                step.spent(std::mem::take(&mut fresh), c.elapsed());
            }
            run.check()?;
            hand_on(step, rest, run, end)?;
            cap = 2 * step.pace;
            clock = run.profile.then(Instant::now);
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

/// Pushes a step's output on and empties it.
fn hand_on(
    step: &mut StepState<'_>,
    rest: &mut [StepState<'_>],
    run: &Run<'_>,
    end: &mut dyn Consumer,
) -> Flow {
    let rows = step.ready();
    if rows == 0 {
        return Ok(());
    }
    step.stats.rows_out += rows as u64;
    step.pace = (step.pace * FASTER).min(run.batch_rows);
    if let Some(live) = step.live {
        live.add(0, rows, Duration::ZERO);
    }
    let view = View {
        columns: &step.out.columns,
        rows,
    };
    let flow = push(rest, run, view, end);
    step.out.rows = 0;
    step.bare = 0;
    flow
}
