//! Stages, and how batches pass through them.

use super::slice::SliceState;
use crate::batch::{Batch, View};
use crate::compile::StageInput;
use crate::explore::{Consumer, Flow, QueryContext, StepStats};
use jindou_model::{Invariant, Result};
use jindou_plan::Slot;
use std::time::{Duration, Instant};

/// Index of the end, after the last stage.
pub(crate) const END: usize = usize::MAX;

/// Specification of a stage, shared by all workers, each of which creates its own [`StageWorker`] from it.
pub(crate) trait StageSpec: Send + Sync {
    /// Creates one worker's state, for rows with these columns.
    fn work<'w>(
        &'w self,
        input: &'w [Slot],
        ctx: &QueryContext<'w>,
    ) -> Result<Box<dyn StageWorker + 'w>>;

    /// Bytes that all workers together hold, once the rows have passed.
    fn held(&self) -> u64 {
        0
    }

    /// Its counter of rows, if it is a slice.
    fn slice(&self) -> Option<&SliceState> {
        None
    }
}

/// State of a stage in one worker. Called once per batch.
pub(crate) trait StageWorker {
    /// Processes a batch, and passes the results to the rest of the pipeline, unless it buffers them.
    fn batch(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow;

    /// Processes a batch of one of several inputs.
    fn batch_of(
        &mut self,
        _input: usize,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        self.batch(ctx, rows, rest)
    }

    /// Called at the end of the input: passes on the rows that are held back.
    fn finish(&mut self, _run: &QueryContext<'_>, _rest: &mut NextStages<'_, '_, '_>) -> Flow {
        Ok(())
    }

    /// Drops rows that are held back.
    fn clear(&mut self) {}

    /// True if any number of rows without columns may be passed at once.
    fn takes_bare_rows(&self) -> bool {
        false
    }

    /// Counts of each step, if it explores.
    fn steps(&self) -> Vec<StepStats> {
        vec![]
    }

    /// Calls `each` for the stages inside it.
    fn inside(&self, _each: &mut dyn FnMut(usize, &StageStats, &[StepStats])) {}
}

/// A stage's specification and its position in the pipeline.
pub(crate) struct Link<'a> {
    pub spec: Box<dyn StageSpec + 'a>,
    /// Slots of the input rows.
    pub input: Vec<Slot>,
    /// The stage that gets its rows: a later one, if any.
    pub next: StageInput,
    /// The operator, for the profile.
    pub node: usize,
}

/// Rows and time of a stage, in one worker.
#[derive(Clone, Copy, Default)]
pub(crate) struct StageStats {
    pub rows_in: u64,
    pub rows_out: u64,
    pub time: Duration,
}

/// A stage of one worker, with its counts.
pub(crate) struct CountedStage<'a> {
    work: Box<dyn StageWorker + 'a>,
    next: StageInput,
    pub node: usize,
    pub stats: StageStats,
}

impl<'a> CountedStage<'a> {
    pub fn new(link: &'a Link<'a>, ctx: &QueryContext<'a>) -> Result<Self> {
        // A chain has thousands of stages, each with as many columns as there are stages before it.
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

    /// Drops rows that are held back.
    pub fn clear(&mut self) {
        self.work.clear();
    }

    /// Calls `each` with the node's number, the stage's counts and, for `Steps`, those of each step; for an `Apply`,
    /// then also for the stages inside it.
    pub fn inside(&self, each: &mut dyn FnMut(usize, &StageStats, &[StepStats])) {
        each(self.node, &self.stats, &self.work.steps());
        self.work.inside(each);
    }
}

/// The rest of a pipeline after a stage.
pub(crate) struct NextStages<'x, 's, 'r> {
    stages: &'x mut [CountedStage<'s>],
    /// Number of the first of `stages`.
    base: usize,
    at: StageInput,
    pub ctx: &'x QueryContext<'r>,
    end: &'x mut dyn Consumer,
    rows: u64,
    spent: Duration,
}

impl NextStages<'_, '_, '_> {
    /// If times are measured, adds time that belongs to another node whose work the same stage does.
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

/// Pushes a batch into a stage; `base` is the number of the first of `stages`.
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
        // Any number of rows without columns may come at once; a stage that gives them columns needs a bound.
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

/// Tells stage `at` that its input is done: it passes on the rows that it holds back.
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

/// Pushes an output on when it has a batch's worth of rows, or some rows where few may be enough.
pub(crate) fn hand_on(out: &mut Batch, ctx: &QueryContext<'_>, rest: &mut dyn Consumer) -> Flow {
    if out.rows >= ctx.first_batch.max(out.given.min(ctx.batch_rows)) {
        ctx.check()?;
        return hand_all(out, rest);
    }
    Ok(())
}

/// Pushes an output on.
pub(crate) fn hand_all(out: &mut Batch, rest: &mut dyn Consumer) -> Flow {
    if out.rows == 0 {
        return Ok(());
    }
    let flow = rest.batch(out.view());
    out.given = out.given.saturating_add(out.rows);
    out.rows = 0;
    flow
}
