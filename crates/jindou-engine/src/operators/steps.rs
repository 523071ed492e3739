//! Explorations: leaves if they begin with a start, stages if they extend rows.

use super::stage::{NewWorker, NextStages, StageSpec, StageWorker};
use crate::batch::View;
use crate::compile::{LeafSource, PipelineBuilder};
use crate::executor::{PulledRows, columns_after};
use crate::explore::{Flow, Halt, Pipeline, QueryContext, StepStats};
use crate::worker::next_pulled;
use jindou_model::Result;
use jindou_plan::{Exploration, Operator, Slot, Step, operator};
use std::sync::Arc;

struct StepsSpec<'a>(&'a [Step], usize);

/// The steps of an exploration that extend rows, in one worker.
struct StepsStage<'a>(Pipeline<'a>);

impl<'a> PipelineBuilder<'_, 'a> {
    pub(super) fn exploration(
        &mut self,
        e: &'a Exploration,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        if e.empty.is_some() {
            return Ok(vec![]);
        }
        let snapshot = self.exec.ctx.snapshot;
        let there = match self.exec.offload {
            Some(offload) => match offload.pull(snapshot, e, node)? {
                Some((rows, slots, first)) => Some((LeafSource::Pulled(rows), slots, first)),
                None => offload.rows(self.exec, e, node)?,
            },
            None => None,
        };
        if let Some((source, slots, first)) = there {
            self.leaf(source, node);
            let rest = &e.steps[first..];
            if rest.is_empty() {
                return Ok(slots);
            }
            self.link(StepsSpec(rest, node), &slots, node);
            return Ok(columns_after(&slots, rest, || self.exec.ctx.check())?);
        }
        self.leaf(LeafSource::Explore(e), node);
        Ok(columns_after(&[], &e.steps, || self.exec.ctx.check())?)
    }

    /// Starts an exploration on another executor that removes duplicates and counts them. Returns its rows and their
    /// slots; `None` if it does not support that.
    pub(super) fn counted(
        &self,
        op: &'a Operator,
        node: usize,
    ) -> Result<Option<(CountedRows, Vec<Slot>)>> {
        let (Operator::Explore(e), Some(offload)) = (op, self.exec.offload) else {
            return Ok(None);
        };
        let pulled = offload.pull_counted(self.exec.ctx.snapshot, e, node)?;
        Ok(pulled.map(|(rows, slots, _)| (CountedRows(rows), slots)))
    }

    pub(super) fn steps(
        &mut self,
        op: &'a operator::Steps,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        let slots = self.op(&op.input, node + 1)?;
        self.link(StepsSpec(&op.steps, node), &slots, node);
        Ok(columns_after(&slots, &op.steps, || self.exec.ctx.check())?)
    }
}

/// Rows of another executor, which may have a count each.
pub(super) struct CountedRows(Arc<dyn PulledRows>);

impl CountedRows {
    /// Calls `f` with all rows and their counts; the counts are empty if each row counts once.
    pub fn each(
        &self,
        ctx: &QueryContext<'_>,
        mut f: impl FnMut(View<'_>, &[u32]) -> Result<()>,
    ) -> Result<()> {
        while let Some(batch) = next_pulled(ctx, &*self.0)? {
            ctx.check()?;
            let rows = batch.view();
            match rows.columns.split_last() {
                Some((times, columns)) if self.0.is_counted() => {
                    let rows = View {
                        columns,
                        rows: rows.rows,
                    };
                    f(rows, &times[..rows.rows])?;
                }
                _ => f(rows, &[])?,
            }
        }
        Ok(())
    }
}

impl StageSpec for StepsSpec<'_> {
    fn work<'w>(&'w self, input: &'w [Slot], ctx: &QueryContext<'w>) -> NewWorker<'w> {
        let mut pipeline = Pipeline::after(input, self.0, ctx)?;
        pipeline.watch(ctx, self.1);
        Ok(Box::new(StepsStage(pipeline)))
    }
}

impl StageWorker for StepsStage<'_> {
    fn batch(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        let steps = 0..self.0.steps();
        self.0.rows(ctx, rows, steps, rest)
    }

    fn finish(&mut self, ctx: &QueryContext<'_>, rest: &mut NextStages<'_, '_, '_>) -> Flow {
        let steps = 0..self.0.steps();
        self.0.flush(ctx, steps, rest)
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn takes_bare_rows(&self) -> bool {
        true
    }

    fn steps(&self) -> Vec<StepStats> {
        // Leave out the entry for the start, which this pipeline does not have.
        self.0.stats().split_off(1)
    }
}
