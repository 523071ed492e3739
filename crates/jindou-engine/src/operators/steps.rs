//! Exploration, from the start or from rows.

use super::stage::{Rest, Spec, Work};
use crate::batch::View;
use crate::compile::{Builder, Source};
use crate::executor::columns_after;
use crate::explore::{Flow, Halt, Pipeline, Run, StepStats};
use jindou_model::Result;
use jindou_plan::{Exploration, Slot, Step, operator};

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
            let rest = e.steps.get(first..).unwrap_or(&[]);
            if rest.is_empty() {
                return Ok(slots);
            }
            self.link(StepsSpec(rest, node), &slots, node);
            return Ok(columns_after(&slots, rest));
        }
        self.leaf(Source::Explore(e), node);
        Ok(columns_after(&[], &e.steps))
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
