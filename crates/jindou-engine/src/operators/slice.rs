//! LIMIT and OFFSET: workers number their rows from one shared counter, so that none takes a lock or waits.
//!
//! Once there are enough rows, a slice returns [`Halt::Stop`], which ends the exploration below it on the same thread.
//! Other workers notice it before their next morsel (`is_done` in `worker`), or in a scan, which checks the stop flag
//! ([`EvalContext::check`](crate::eval::EvalContext::check)).

use super::stage::{NewWorker, NextStages, StageSpec, StageWorker};
use crate::batch::{Batch, View};
use crate::compile::PipelineBuilder;
use crate::explore::{Consumer, Flow, Halt, QueryContext};
use jindou_model::Result;
use jindou_plan::{Operator, Slot, operator};
use std::sync::atomic::{AtomicU64, Ordering};

/// State of a slice that all workers share.
pub(crate) struct SliceState {
    skip: u64,
    /// Number of the first row that is not output any more: OFFSET plus LIMIT.
    end: u64,
    taken: AtomicU64,
}

impl SliceState {
    pub fn new(offset: u64, limit: Option<u64>) -> Self {
        Self {
            skip: offset,
            end: match limit {
                Some(0) => 0,
                Some(limit) => offset.saturating_add(limit),
                None => u64::MAX,
            },
            taken: AtomicU64::new(0),
        }
    }

    /// True if no more rows are needed.
    pub fn is_done(&self) -> bool {
        self.taken.load(Ordering::Relaxed) >= self.end
    }
}

impl<'a> PipelineBuilder<'_, 'a> {
    pub(super) fn slice(
        &mut self,
        op: &'a operator::Slice,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        let slots = match &*op.input {
            Operator::OrderBy(order) => {
                let most = op.limit.map(|l| op.offset.saturating_add(l));
                self.sorted(order, most, node + 1)?
            }
            input => self.op(input, node + 1)?,
        };
        self.link(SliceState::new(op.offset, op.limit), &slots, node);
        Ok(slots)
    }
}

impl StageSpec for SliceState {
    fn work<'w>(&'w self, input: &'w [Slot], ctx: &QueryContext<'w>) -> NewWorker<'w> {
        Ok(Box::new(SliceStage::new(self, input.len(), ctx)))
    }

    fn slice(&self) -> Option<&SliceState> {
        Some(self)
    }
}

struct SliceStage<'a> {
    state: &'a SliceState,
    out: Batch,
}

impl<'a> SliceStage<'a> {
    fn new(state: &'a SliceState, width: usize, ctx: &QueryContext<'_>) -> Self {
        Self {
            state,
            out: Batch::new(width, ctx.budget),
        }
    }
}

impl StageWorker for SliceStage<'_> {
    fn batch(
        &mut self,
        _run: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        if self.state.is_done() {
            return Err(Halt::Stop);
        }
        let n = rows.rows as u64;
        let first = self.state.taken.fetch_add(n, Ordering::Relaxed);
        let from = self.state.skip.clamp(first, first + n);
        let to = self.state.end.clamp(from, first + n);
        let (skip, take) = ((from - first) as usize, (to - from) as usize);
        if take > 0 {
            if skip == 0 {
                rest.batch(View {
                    columns: rows.columns,
                    rows: take,
                })?;
            } else {
                self.out.ensure(take)?;
                self.out.rows = take;
                for (c, out) in self.out.columns.iter_mut().enumerate() {
                    out[..take].copy_from_slice(&rows.column(c)[skip..skip + take]);
                }
                rest.batch(self.out.view())?;
            }
        }
        if self.state.is_done() {
            Err(Halt::Stop)
        } else {
            Ok(())
        }
    }
    fn takes_bare_rows(&self) -> bool {
        true
    }
}
