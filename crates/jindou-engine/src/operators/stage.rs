//! Stages and how batches go through them.

use super::apply::{Apply, ApplySpec};
use super::distinct::{Distinct, Recent, SharedDistinct};
use super::each::{Each, EachSpec};
use super::equal::{Equal, EqualSpec};
use super::extend::{Extend, Project};
use super::join::Probe;
use super::join_table::JoinTable;
use super::path::PathStage;
use super::slice::{Slice, SliceState};
use crate::batch::{Batch, View};
use crate::explore::{Consumer, Flow, Pipeline, Run, StepStats};
use crate::filter::{Filters, TRUE};
use jindou_model::{Error, Result};
use jindou_plan::operator::FollowPath;
use jindou_plan::{Condition, GeneralExpression, Slot, Step};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After the last stage.
pub(crate) const END: usize = usize::MAX;

/// Specification of a stage, made once for all workers.
pub(crate) enum Spec<'a> {
    Filter(&'a Condition),
    Extend(&'a GeneralExpression),
    Steps(&'a [Step]),
    Path(&'a FollowPath),
    Probe(Box<JoinTable<'a>>),
    Equal(Box<EqualSpec>),
    Apply(Box<ApplySpec<'a>>),
    Each(Box<EachSpec<'a>>),
    Distinct(SharedDistinct),
    /// The columns to keep.
    Reduced(Vec<usize>),
    Slice(Arc<SliceState>),
    /// For each column to give, where it comes from; `None` is unbound.
    Project(Vec<Option<usize>>),
}

/// A stage's place.
pub(crate) struct Link<'a> {
    pub spec: Spec<'a>,
    /// Slots of the rows that come in.
    pub input: Vec<Slot>,
    /// The stage that gets its rows: a later one, or [`END`].
    pub next: usize,
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

/// A stage at work. Boxed where large: made once a worker.
pub(crate) enum Body<'a> {
    Filter(Filters<'a>, Batch),
    Extend(Box<Extend>),
    Steps(Box<Pipeline<'a>>),
    Path(Box<PathStage<'a>>),
    Probe(Box<Probe<'a>>),
    Equal(Box<Equal<'a>>),
    Apply(Box<Apply<'a>>),
    Each(Box<Each<'a>>),
    Distinct(Box<Distinct<'a>>),
    Reduced(Box<Recent>),
    Slice(Slice<'a>),
    Project(Project),
}

pub(crate) struct Stage<'a> {
    pub body: Body<'a>,
    next: usize,
    pub node: usize,
    pub stats: StageStats,
}

impl<'a> Stage<'a> {
    pub fn new(link: &'a Link<'a>, run: &Run<'a>) -> Result<Self> {
        let width = link.input.len();
        let body = match &link.spec {
            Spec::Filter(condition) => Body::Filter(
                Filters::new(std::slice::from_ref(*condition), &link.input, run)?,
                Batch::new(width, run.budget),
            ),
            Spec::Extend(value) => Body::Extend(Box::new(Extend::new(value, &link.input, run)?)),
            Spec::Steps(steps) => Body::Steps(Box::new(Pipeline::after(&link.input, steps, run)?)),
            Spec::Path(path) => Body::Path(Box::new(PathStage::new(path, &link.input, run)?)),
            Spec::Probe(table) => Body::Probe(Box::new(Probe::new(table, run)?)),
            Spec::Equal(spec) => Body::Equal(Box::new(Equal::new(spec, width, run))),
            Spec::Apply(spec) => Body::Apply(Box::new(Apply::new(spec, run)?)),
            Spec::Each(spec) => Body::Each(Box::new(Each::new(spec, run))),
            Spec::Distinct(shared) => Body::Distinct(Box::new(Distinct::new(shared, run))),
            Spec::Reduced(columns) => Body::Reduced(Box::new(Recent::new(columns, run))),
            Spec::Slice(state) => Body::Slice(Slice::new(state, width, run)),
            Spec::Project(columns) => Body::Project(Project::new(columns, run)),
        };
        Ok(Self {
            body,
            next: link.next,
            node: link.node,
            stats: StageStats::default(),
        })
    }

    /// Forgets rows that are held back.
    pub fn clear(&mut self) {
        match &mut self.body {
            Body::Steps(p) => p.clear(),
            Body::Path(p) => p.clear(),
            Body::Probe(p) => p.clear(),
            Body::Equal(e) => e.clear(),
            Body::Apply(a) => a.clear(),
            Body::Each(e) => e.clear(),
            Body::Filter(..)
            | Body::Extend(_)
            | Body::Distinct(_)
            | Body::Reduced(_)
            | Body::Slice(_)
            | Body::Project(_) => {}
        }
    }

    /// Calls `each` with the node's number, the stage's counts and, of a `Steps`, those of each step; for an `Apply`, then also
    /// for the stages inside it.
    pub fn inside(&self, each: &mut dyn FnMut(usize, &StageStats, &[StepStats])) {
        match &self.body {
            // The first entry is the start, which there is none of.
            Body::Steps(p) => each(self.node, &self.stats, p.stats().get(1..).unwrap_or(&[])),
            Body::Apply(a) => {
                each(self.node, &self.stats, &[]);
                for s in a.inner() {
                    s.inside(each);
                }
            }
            _ => each(self.node, &self.stats, &[]),
        }
    }
}

/// The rest of a pipeline after a stage.
pub(crate) struct Rest<'x, 's, 'r> {
    stages: &'x mut [Stage<'s>],
    /// Number of the first of `stages`.
    base: usize,
    at: usize,
    pub run: &'x Run<'r>,
    end: &'x mut dyn Consumer,
    rows: u64,
    spent: Duration,
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

/// Pushes a batch into stage `at`; `base` is the number of the first of `stages`.
pub(crate) fn push(
    stages: &mut [Stage<'_>],
    base: usize,
    at: usize,
    run: &Run<'_>,
    rows: View<'_>,
    end: &mut dyn Consumer,
) -> Flow {
    if rows.rows == 0 {
        return Ok(());
    }
    if at == END {
        return end.batch(rows);
    }
    visit(stages, base, at, run, end, |stage, run, rest| {
        stage.stats.rows_in += rows.rows as u64;
        let bounded = matches!(
            stage.body,
            Body::Filter(..)
                | Body::Steps(_)
                | Body::Distinct(_)
                | Body::Reduced(_)
                | Body::Slice(_)
        );
        if bounded || !rows.columns.is_empty() || rows.rows <= run.batch_rows {
            return stage.body.batch(run, rows, rest);
        }
        // Rows without columns have no bound; what gives them columns needs one.
        let mut left = rows.rows;
        while left > 0 {
            let rows = left.min(run.batch_rows);
            left -= rows;
            run.check()?;
            stage.body.batch(run, View { columns: &[], rows }, rest)?;
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
        stage.body.finish(run, rest)
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
        return Err(internal("a stage that is not there").into());
    }
    let (before, after) = stages.split_at_mut(place + 1);
    let Some(stage) = before.last_mut() else {
        return Err(internal("a stage that is not there").into());
    };
    let clock = run.profile.then(Instant::now);
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
        stage.stats.time += c.elapsed().saturating_sub(rest.spent);
    }
    flow
}

fn internal(what: &str) -> Error {
    Error::Internal(format!("the plan leads to {what}"))
}

impl Body<'_> {
    fn batch(&mut self, run: &Run<'_>, rows: View<'_>, rest: &mut Rest<'_, '_, '_>) -> Flow {
        match self {
            Self::Filter(filters, kept) => filter(filters, kept, run, rows, rest),
            Self::Extend(e) => rest.batch(e.rows(run, rows)?),
            Self::Steps(p) => {
                let steps = 0..p.steps();
                p.rows(run, rows, steps, rest)
            }
            Self::Path(p) => p.batch(run, rows, rest),
            Self::Probe(p) => p.batch(run, rows, rest),
            Self::Equal(e) => e.batch(run, rows, rest),
            Self::Apply(a) => a.batch(run, rows, rest),
            Self::Each(e) => e.batch(run, rows, rest),
            Self::Distinct(d) => rest.batch(d.new_rows(rows)?),
            Self::Reduced(r) => rest.batch(r.pass(rows)?),
            Self::Slice(s) => s.batch(rows, rest),
            Self::Project(p) => rest.batch(p.rows(rows)?),
        }
    }

    fn finish(&mut self, run: &Run<'_>, rest: &mut Rest<'_, '_, '_>) -> Flow {
        match self {
            Self::Steps(p) => {
                let steps = 0..p.steps();
                p.flush(run, steps, rest)
            }
            Self::Path(p) => p.finish(rest),
            Self::Probe(p) => p.finish(rest),
            Self::Equal(e) => e.finish(rest),
            Self::Apply(a) => a.finish(rest),
            Self::Each(e) => e.finish(rest),
            Self::Filter(..)
            | Self::Extend(_)
            | Self::Distinct(_)
            | Self::Reduced(_)
            | Self::Slice(_)
            | Self::Project(_) => Ok(()),
        }
    }
}

fn filter(
    filters: &mut Filters<'_>,
    kept: &mut Batch,
    run: &Run<'_>,
    rows: View<'_>,
    rest: &mut Rest<'_, '_, '_>,
) -> Flow {
    if rows.columns.is_empty() {
        // A condition without variables: one value for all rows.
        let one = View {
            columns: &[],
            rows: 1,
        };
        let keep = filters.flags(run, one)?.first() == Some(&TRUE);
        return if keep { rest.batch(rows) } else { Ok(()) };
    }
    kept.rows = 0;
    kept.append(rows)?;
    filters.apply(run, kept, 0)?;
    rest.batch(kept.view())
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
