//! Stages, and how batches pass through them.

use super::slice::SliceState;
use crate::batch::{Batch, View};
use crate::compile::StageInput;
use crate::explore::{Consumer, Flow, QueryContext, StepStats};
use jindou_model::{Invariant, Result};
use jindou_plan::Slot;
use std::time::{Duration, Instant};

/// Stands for the pipeline's end, which follows the last stage.
pub(crate) const END: usize = usize::MAX;

/// A worker's state of a stage, if it could be created.
pub(crate) type NewWorker<'w> = Result<Box<dyn StageWorker + 'w>>;

/// Specification of a stage, which all workers share. Each worker creates its own [`StageWorker`] from it.
pub(crate) trait StageSpec: Send + Sync {
    /// Creates a worker's state, for rows with these slots.
    fn work<'w>(&'w self, input: &'w [Slot], ctx: &QueryContext<'w>) -> NewWorker<'w>;

    /// Bytes that all workers together hold after the last row.
    fn held(&self) -> u64 {
        0
    }

    /// The rows that the stage has written to files, if any. Called after the last row of all workers.
    fn overflow(&self) -> Result<Option<&dyn Overflow>> {
        Ok(None)
    }

    /// If it is a slice, its counter of rows.
    fn slice(&self) -> Option<&SliceState> {
        None
    }
}

/// Rows in files that a stage outputs after all workers have got their last row, in parts that workers share.
pub(crate) trait Overflow: Sync {
    fn parts(&self) -> u64;

    /// Passes the rows of one part on.
    fn give(&self, part: u64, ctx: &QueryContext<'_>, to: &mut dyn Consumer) -> Flow;
}

/// State of a stage in one worker. Called once per batch.
pub(crate) trait StageWorker {
    /// Processes a batch. The results are passed on to `rest`, unless the stage buffers them.
    fn batch(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow;

    /// As [`Self::batch`], for a stage with several inputs: a batch of the given input.
    fn batch_of(
        &mut self,
        _input: usize,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        self.batch(ctx, rows, rest)
    }

    /// Called after the last batch: passes on the rows that the stage has buffered.
    fn finish(&mut self, _run: &QueryContext<'_>, _rest: &mut NextStages<'_, '_, '_>) -> Flow {
        Ok(())
    }

    /// Drops the rows that the stage has buffered.
    fn clear(&mut self) {}

    /// True if a batch of rows without columns may have any number of rows.
    fn takes_bare_rows(&self) -> bool {
        false
    }

    /// If it runs an exploration, the counts of each step.
    fn steps(&self) -> Vec<StepStats> {
        vec![]
    }

    /// Calls `each` for the stages that run inside this one.
    fn inside(&self, _each: &mut dyn FnMut(usize, &StageStats, &[StepStats])) {}
}

/// A stage's specification and its position in the pipeline.
pub(crate) struct Link<'a> {
    pub spec: Box<dyn StageSpec + 'a>,
    /// Slots of the input rows.
    pub input: Vec<Slot>,
    /// The stage or end that gets its rows.
    pub next: StageInput,
    /// Number of the operator's node, for the profile.
    pub node: usize,
}

/// Rows and time of a stage in one worker.
#[derive(Clone, Copy, Default)]
pub(crate) struct StageStats {
    pub rows_in: u64,
    pub rows_out: u64,
    pub time: Duration,
}

/// A stage in one worker, with its counts.
pub(crate) struct CountedStage<'a> {
    work: Box<dyn StageWorker + 'a>,
    next: StageInput,
    pub node: usize,
    pub stats: StageStats,
}

impl<'a> CountedStage<'a> {
    pub fn new(link: &'a Link<'a>, ctx: &QueryContext<'a>) -> Result<Self> {
        // A plan may have thousands of stages, each with as many columns as there are stages before it.
        if jindou_model::scope::was_over() {
            jindou_model::scope::look()?;
        }
        Ok(Self {
            work: link.spec.work(&link.input, ctx)?,
            next: link.next,
            node: link.node,
            stats: StageStats::default(),
        })
    }

    /// Drops the rows that the stage has buffered.
    pub fn clear(&mut self) {
        self.work.clear();
    }

    /// Calls `each` with the node's number, the counts of the stage and those of its steps; then, for an `Apply`, also
    /// for the stages inside it.
    pub fn inside(&self, each: &mut dyn FnMut(usize, &StageStats, &[StepStats])) {
        each(self.node, &self.stats, &self.work.steps());
        self.work.inside(each);
    }
}

/// The rest of a pipeline after a stage, as the consumer of the stage's rows.
pub(crate) struct NextStages<'x, 's, 'r> {
    stages: &'x mut [CountedStage<'s>],
    /// Number of the first of `stages` in the pipeline.
    base: usize,
    at: StageInput,
    pub ctx: &'x QueryContext<'r>,
    end: &'x mut dyn Consumer,
    rows: u64,
    spent: Duration,
}

impl NextStages<'_, '_, '_> {
    /// If times are measured, subtracts this time from the stage's, since the stage spent it for another node.
    pub fn spent_for_another(&mut self, time: Duration) {
        self.spent += time;
    }
}

impl Consumer for NextStages<'_, '_, '_> {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        if rows.rows == 0 {
            return Ok(());
        }
        self.rows += rows.rows as u64;
        let clock = self.ctx.profile.then(Instant::now);
        let flow = push(
            self.stages,
            self.base,
            self.at,
            self.ctx,
            rows,
            &mut *self.end,
        );
        if let Some(c) = clock {
            self.spent += c.elapsed();
        }
        flow
    }
}

/// Passes a batch to a stage; `base` is the number of the first of `stages`.
pub(crate) fn push(
    stages: &mut [CountedStage<'_>],
    base: usize,
    at: StageInput,
    ctx: &QueryContext<'_>,
    rows: View<'_>,
    end: &mut dyn Consumer,
) -> Flow {
    if rows.rows == 0 {
        return Ok(());
    }
    let StageInput { stage, input } = at;
    if stage == END {
        return end.batch(rows);
    }
    visit(stages, base, stage, ctx, end, |stage, ctx, rest| {
        stage.stats.rows_in += rows.rows as u64;
        if stage.work.takes_bare_rows() || !rows.columns.is_empty() || rows.rows <= ctx.batch_rows {
            return stage.work.batch_of(input, ctx, rows, rest);
        }
        // A batch without columns may have any number of rows, but a stage that adds columns needs a limit.
        let mut left = rows.rows;
        while left > 0 {
            let rows = left.min(ctx.batch_rows);
            left -= rows;
            ctx.check()?;
            let rows = View { columns: &[], rows };
            stage.work.batch_of(input, ctx, rows, rest)?;
        }
        Ok(())
    })
}

/// Tells stage `at` that it has got all its rows, so that it passes on those that it has buffered.
pub(crate) fn finish(
    stages: &mut [CountedStage<'_>],
    at: usize,
    ctx: &QueryContext<'_>,
    end: &mut dyn Consumer,
) -> Flow {
    visit(stages, 0, at, ctx, end, |stage, ctx, rest| {
        stage.work.finish(ctx, rest)
    })
}

fn visit(
    stages: &mut [CountedStage<'_>],
    base: usize,
    at: usize,
    ctx: &QueryContext<'_>,
    end: &mut dyn Consumer,
    f: impl FnOnce(&mut CountedStage<'_>, &QueryContext<'_>, &mut NextStages<'_, '_, '_>) -> Flow,
) -> Flow {
    let (stage, after) = stages[at - base..]
        .split_first_mut()
        .invariant("rows go to a stage");
    let clock = ctx.profile.then(Instant::now);
    let before_rows = stage.stats.rows_in;
    let mut rest = NextStages {
        stages: after,
        base: at + 1,
        at: stage.next,
        ctx,
        end,
        rows: 0,
        spent: Duration::ZERO,
    };
    let flow = f(stage, ctx, &mut rest);
    stage.stats.rows_out += rest.rows;
    if let Some(c) = clock {
        let (spent, rows) = (rest.spent, rest.rows);
        let time = c.elapsed().saturating_sub(spent);
        stage.stats.time += time;
        if let Some(live) = ctx.live.and_then(|l| l.node(stage.node)) {
            let rows_in = stage.stats.rows_in - before_rows;
            live.counts().add(rows_in as usize, rows as usize, time);
        }
    }
    flow
}

/// Passes an output on if it has a batch of rows, or fewer at the beginning, where a few rows may be enough.
pub(crate) fn hand_on(out: &mut Batch, ctx: &QueryContext<'_>, rest: &mut dyn Consumer) -> Flow {
    if out.rows >= ctx.first_batch.max(out.given.min(ctx.batch_rows)) {
        ctx.check()?;
        return hand_all(out, rest);
    }
    Ok(())
}

/// Passes an output on, however few rows it has.
pub(crate) fn hand_all(out: &mut Batch, rest: &mut dyn Consumer) -> Flow {
    if out.rows == 0 {
        return Ok(());
    }
    let flow = rest.batch(out.view());
    out.given = out.given.saturating_add(out.rows);
    out.rows = 0;
    flow
}
