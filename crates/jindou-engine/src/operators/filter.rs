//! FILTER.

use super::stage::{NewWorker, NextStages, StageSpec, StageWorker};
use crate::batch::{Batch, View};
use crate::compile::PipelineBuilder;
use crate::explore::{Consumer, Flow, Halt, QueryContext};
use crate::filter::{ConditionList, TRUE};
use jindou_model::Result;
use jindou_plan::{Condition, Slot, operator};

struct FilterSpec<'a>(&'a Condition);

/// Passes on the rows for which the condition is true.
struct FilterStage<'a> {
    filters: ConditionList<'a>,
    kept: Batch,
}

impl<'a> PipelineBuilder<'_, 'a> {
    pub(super) fn filter(
        &mut self,
        op: &'a operator::Filter,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        if op.condition.is_false() {
            return Ok(op.input.layout(self.outer_slots()));
        }
        let slots = self.op(&op.input, node + 1)?;
        self.link(FilterSpec(&op.condition), &slots, node);
        Ok(slots)
    }
}

impl StageSpec for FilterSpec<'_> {
    fn work<'w>(&'w self, input: &'w [Slot], ctx: &QueryContext<'w>) -> NewWorker<'w> {
        Ok(Box::new(FilterStage {
            filters: ConditionList::new(std::slice::from_ref(self.0), input, ctx)?,
            kept: Batch::new(input.len(), ctx.budget),
        }))
    }
}

impl StageWorker for FilterStage<'_> {
    fn batch(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        if rows.columns.is_empty() {
            // Rows without columns are equal, so the condition has the same value for all of them.
            let one = View {
                columns: &[],
                rows: 1,
            };
            let keep = self.filters.flags(ctx, one)?.first() == Some(&TRUE);
            return if keep { rest.batch(rows) } else { Ok(()) };
        }
        self.kept.rows = 0;
        self.kept.append(rows)?;
        self.filters.apply(ctx, &mut self.kept, 0)?;
        rest.batch(self.kept.view())
    }

    fn takes_bare_rows(&self) -> bool {
        true
    }
}
