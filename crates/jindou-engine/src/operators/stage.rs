//! Stages and how batches go through them.

use super::slice::SliceState;
use crate::batch::{Batch, View};
use crate::compile::To;
use crate::explore::{Consumer, Flow, Run, StepStats};
use jindou_model::{Error, Result};
use jindou_plan::Slot;
use std::time::{Duration, Instant};

/// After the last stage.
pub(crate) const END: usize = usize::MAX;

/// Specification of a stage, made once for all workers, each of which makes its own [`Work`] of it.
pub(crate) trait Spec: Send + Sync {
    /// One worker's state, for rows with these columns.
    fn work<'w>(&'w self, input: &'w [Slot], run: &Run<'w>) -> Result<Box<dyn Work + 'w>>;

    /// Bytes that all workers together hold, once the rows have passed.
    fn held(&self) -> u64 {
        0
    }

    /// Its count of rows, if it is a slice.
    fn slice(&self) -> Option<&SliceState> {
        None
    }
}

/// A stage at work, in one worker. Called once a batch.
pub(crate) trait Work {
    /// Takes a batch, and gives what comes of it to the rest of the pipeline, unless it holds it back for now.
    fn batch(&mut self, run: &Run<'_>, rows: View<'_>, rest: &mut Rest<'_, '_, '_>) -> Flow;

    /// Takes a batch of one of several inputs.
    fn batch_of(
        &mut self,
        _input: usize,
        run: &Run<'_>,
        rows: View<'_>,
        rest: &mut Rest<'_, '_, '_>,
    ) -> Flow {
        self.batch(run, rows, rest)
    }

    /// The input is done: gives what is held back.
    fn finish(&mut self, _run: &Run<'_>, _rest: &mut Rest<'_, '_, '_>) -> Flow {
        Ok(())
    }

    /// Forgets rows that are held back.
    fn clear(&mut self) {}

    /// True if rows without columns may come in any number at once.
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

/// A stage's place.
pub(crate) struct Link<'a> {
    pub spec: Box<dyn Spec + 'a>,
    /// Slots of the rows that come in.
    pub input: Vec<Slot>,
    /// The stage that gets its rows: a later one, if any.
    pub next: To,
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

/// A stage of one worker.
pub(crate) struct Stage<'a> {
    work: Box<dyn Work + 'a>,
    next: To,
    pub node: usize,
    pub stats: StageStats,
}

impl<'a> Stage<'a> {
    pub fn new(link: &'a Link<'a>, run: &Run<'a>) -> Result<Self> {
        // A chain has thousands of stages, each with as many columns as there are stages before it.
        if jindou_model::scope::was_over() {
            jindou_model::scope::look()?;
        }
        Ok(Self {
            work: link.spec.work(&link.input, run)?,
            next: link.next,
            node: link.node,
            stats: StageStats::default(),
        })
    }

    /// Forgets rows that are held back.
    pub fn clear(&mut self) {
        self.work.clear();
    }

    /// Calls `each` with the node's number, the stage's counts and, of a `Steps`, those of each step; for an `Apply`, then also
    /// for the stages inside it.
    pub fn inside(&self, each: &mut dyn FnMut(usize, &StageStats, &[StepStats])) {
        each(self.node, &self.stats, &self.work.steps());
        self.work.inside(each);
    }
}

/// The rest of a pipeline after a stage.
pub(crate) struct Rest<'x, 's, 'r> {
    stages: &'x mut [Stage<'s>],
    /// Number of the first of `stages`.
    base: usize,
    at: To,
    pub run: &'x Run<'r>,
    end: &'x mut dyn Consumer,
    rows: u64,
    spent: Duration,
}

impl Rest<'_, '_, '_> {
    /// Counts time that is another node's, where times are measured: one that the same stage does the work of.
    pub fn spent_for_another(&mut self, time: Duration) {
        self.spent += time;
    }
}

impl Consumer for Rest<'_, '_, '_> {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        if rows.rows == 0 {
            return Ok(());
        }
        self.rows += rows.rows as u64;
        let clock = self.run.profile.then(Instant::now);
        let flow = push(
            self.stages,
            self.base,
            self.at,
            self.run,
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
    stages: &mut [Stage<'_>],
    base: usize,
    at: To,
    run: &Run<'_>,
    rows: View<'_>,
    end: &mut dyn Consumer,
) -> Flow {
    if rows.rows == 0 {
        return Ok(());
    }
    let To { stage, input } = at;
    if stage == END {
        return end.batch(rows);
    }
    visit(stages, base, stage, run, end, |stage, run, rest| {
        stage.stats.rows_in += rows.rows as u64;
        if stage.work.takes_bare_rows() || !rows.columns.is_empty() || rows.rows <= run.batch_rows {
            return stage.work.batch_of(input, run, rows, rest);
        }
        // Rows without columns have no bound; what gives them columns needs one.
        let mut left = rows.rows;
        while left > 0 {
            let rows = left.min(run.batch_rows);
            left -= rows;
            run.check()?;
            let rows = View { columns: &[], rows };
            stage.work.batch_of(input, run, rows, rest)?;
        }
        Ok(())
    })
}

/// Tells stage `at` that its input is done: it gives what it holds back.
pub(crate) fn finish(
    stages: &mut [Stage<'_>],
    at: usize,
    run: &Run<'_>,
    end: &mut dyn Consumer,
) -> Flow {
    visit(stages, 0, at, run, end, |stage, run, rest| {
        stage.work.finish(run, rest)
    })
}

fn visit(
    stages: &mut [Stage<'_>],
    base: usize,
    at: usize,
    run: &Run<'_>,
    end: &mut dyn Consumer,
    f: impl FnOnce(&mut Stage<'_>, &Run<'_>, &mut Rest<'_, '_, '_>) -> Flow,
) -> Flow {
    let place = at.wrapping_sub(base);
    if place >= stages.len() {
        return Err(internal("a stage that does not exist").into());
    }
    let (before, after) = stages.split_at_mut(place + 1);
    let Some(stage) = before.last_mut() else {
        return Err(internal("a stage that does not exist").into());
    };
    let clock = run.profile.then(Instant::now);
    let before_rows = stage.stats.rows_in;
    let mut rest = Rest {
        stages: after,
        base: at + 1,
        at: stage.next,
        run,
        end,
        rows: 0,
        spent: Duration::ZERO,
    };
    let flow = f(stage, run, &mut rest);
    stage.stats.rows_out += rest.rows;
    if let Some(c) = clock {
        let (spent, rows) = (rest.spent, rest.rows);
        let time = c.elapsed().saturating_sub(spent);
        stage.stats.time += time;
        if let Some(live) = run.live.and_then(|l| l.node(stage.node)) {
            let rows_in = stage.stats.rows_in - before_rows;
            live.counts().add(rows_in as usize, rows as usize, time);
        }
    }
    flow
}

fn internal(what: &str) -> Error {
    Error::Internal(format!("the plan leads to {what}"))
}

/// Pushes an output on when it has a batch's worth of rows, or where few may be enough, some.
pub(crate) fn hand_on(out: &mut Batch, run: &Run<'_>, rest: &mut dyn Consumer) -> Flow {
    if out.rows >= run.first_batch.max(out.given.min(run.batch_rows)) {
        run.check()?;
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
