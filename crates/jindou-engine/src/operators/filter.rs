//! FILTER.

use super::stage::{Rest, Spec, Work};
use crate::batch::{Batch, View};
use crate::compile::Builder;
use crate::explore::{Consumer, Flow, Halt, Run};
use crate::filter::{Filters, TRUE};
use jindou_model::Result;
use jindou_plan::{Condition, Slot, operator};

struct FilterSpec<'a>(&'a Condition);

/// Keeps rows on which the condition is true.
struct Filter<'a> {
    filters: Filters<'a>,
    kept: Batch,
}

impl<'a> Builder<'_, 'a> {
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

impl Spec for FilterSpec<'_> {
    fn work<'w>(&'w self, input: &'w [Slot], run: &Run<'w>) -> Result<Box<dyn Work + 'w>> {
        Ok(Box::new(Filter {
            filters: Filters::new(std::slice::from_ref(self.0), input, run)?,
            kept: Batch::new(input.len(), run.budget),
        }))
    }
}

impl Work for Filter<'_> {
    fn batch(&mut self, run: &Run<'_>, rows: View<'_>, rest: &mut Rest<'_, '_, '_>) -> Flow {
        if rows.columns.is_empty() {
            // A condition without variables: one value for all rows.
            let one = View {
                columns: &[],
                rows: 1,
            };
            let keep = self.filters.flags(run, one)?.first() == Some(&TRUE);
            return if keep { rest.batch(rows) } else { Ok(()) };
        }
        self.kept.rows = 0;
        self.kept.append(rows)?;
        self.filters.apply(run, &mut self.kept, 0)?;
        rest.batch(self.kept.view())
    }

    fn takes_bare_rows(&self) -> bool {
        true
    }
}
