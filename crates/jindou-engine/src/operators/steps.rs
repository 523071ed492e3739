//! Exploration, from the start or from rows.

use super::stage::{Rest, Spec, Work};
use crate::batch::View;
use crate::compile::{Builder, Source};
use crate::executor::{PulledRows, columns_after};
use crate::explore::{Flow, Halt, Pipeline, Run, StepStats};
use crate::worker::next_pulled;
use jindou_model::Result;
use jindou_plan::{Exploration, Operator, Slot, Step, operator};
use std::sync::Arc;

struct StepsSpec<'a>(&'a [Step], usize);

/// Steps that go on from rows.
struct Steps<'a>(Pipeline<'a>);

impl<'a> Builder<'_, 'a> {
    pub(super) fn exploration(
        &mut self,
        e: &'a Exploration,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        if e.empty.is_some() {
            return Ok(vec![]);
        }
        let snapshot = self.exec.run.snapshot;
        let there = match self.exec.offload {
            Some(offload) => match offload.pull(snapshot, e, node)? {
                Some((rows, slots, first)) => Some((Source::Pulled(rows), slots, first)),
                None => {
                    let held = offload.rows(self.exec, e, node)?;
                    held.map(|(held, slots, first)| (Source::RowBuffer(held), slots, first))
                }
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
            return Ok(columns_after(&slots, rest));
        }
        self.leaf(Source::Explore(e), node);
        Ok(columns_after(&[], &e.steps))
    }

    /// Starts an exploration whose rows say how many they are, where another executor makes such; those rows and their slots.
    pub(super) fn counted(
        &self,
        op: &'a Operator,
        node: usize,
    ) -> Result<Option<(Counted, Vec<Slot>)>> {
        let (Operator::Explore(e), Some(offload)) = (op, self.exec.offload) else {
            return Ok(None);
        };
        let pulled = offload.pull_counted(self.exec.run.snapshot, e, node)?;
        Ok(pulled.map(|(rows, slots, _)| (Counted(rows), slots)))
    }

    pub(super) fn steps(
        &mut self,
        op: &'a operator::Steps,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        let slots = self.op(&op.input, node + 1)?;
        self.link(StepsSpec(&op.steps, node), &slots, node);
        Ok(columns_after(&slots, &op.steps))
    }
}

/// Rows of another executor that may say how many they are.
pub(super) struct Counted(Arc<dyn PulledRows>);

impl Counted {
    /// Calls `f` with all rows, and how often each counts; none of the latter where each counts once.
    pub fn each(
        &self,
        run: &Run<'_>,
        mut f: impl FnMut(View<'_>, &[u32]) -> Result<()>,
    ) -> Result<()> {
        while let Some(batch) = next_pulled(run, &*self.0)? {
            run.check()?;
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

impl Spec for StepsSpec<'_> {
    fn work<'w>(&'w self, input: &'w [Slot], run: &Run<'w>) -> Result<Box<dyn Work + 'w>> {
        let mut pipeline = Pipeline::after(input, self.0, run)?;
        pipeline.watch(run, self.1);
        Ok(Box::new(Steps(pipeline)))
    }
}

impl Work for Steps<'_> {
    fn batch(&mut self, run: &Run<'_>, rows: View<'_>, rest: &mut Rest<'_, '_, '_>) -> Flow {
        let steps = 0..self.0.steps();
        self.0.rows(run, rows, steps, rest)
    }

    fn finish(&mut self, run: &Run<'_>, rest: &mut Rest<'_, '_, '_>) -> Flow {
        let steps = 0..self.0.steps();
        self.0.flush(run, steps, rest)
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn takes_bare_rows(&self) -> bool {
        true
    }

    fn steps(&self) -> Vec<StepStats> {
        // The first entry is the start, which there is none of.
        self.0.stats().split_off(1)
    }
}
