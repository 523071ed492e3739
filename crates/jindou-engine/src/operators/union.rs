//! UNION: the leaves and stages of its inputs all lead to the same next stage.

use super::stage::{NewWorker, NextStages, StageSpec, StageWorker};
use crate::batch::{Batch, View};
use crate::compile::{OpenPipe, PipelineBuilder};
use crate::explore::{Consumer, Flow, Halt, QueryContext};
use crate::tree::SlotList;
use jindou_model::Result;
use jindou_plan::{Slot, operator};

/// Largest number of ids in a batch of a union: the more columns, the fewer rows.
const IDS: usize = 1 << 20;

/// Columns of an input, each with its column in the union's rows.
type Columns = Vec<(usize, usize)>;

/// Specification of [`Widen`].
struct WidenSpec {
    /// For each input, only the columns that it binds. So a union of many inputs, each with its own variables, needs
    /// memory proportional to the query's text.
    inputs: Vec<Columns>,
    width: usize,
}

impl<'a> PipelineBuilder<'_, 'a> {
    pub(super) fn union(
        &mut self,
        op: &'a operator::Union,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        let list = &op.inputs;
        let before = std::mem::take(&mut self.open);
        debug_assert!(before.is_empty(), "a union begins where nothing is open");
        let mut parts: Vec<(Vec<Slot>, Vec<OpenPipe>)> = Vec::with_capacity(list.len());
        let mut all = SlotList::default();
        let mut at = node + 1;
        for input in list {
            self.exec.ctx.check()?;
            let slots = self.op(input, at)?;
            let open = std::mem::take(&mut self.open);
            if !open.is_empty() {
                slots.iter().for_each(|s| all.add(*s));
                parts.push((slots, open));
            }
            at = self.exec.nodes.after(at);
        }
        let mut done = Vec::new();
        let mut inputs: Vec<Columns> = Vec::new();
        for (slots, mut open) in parts {
            if slots == all.slots() {
                done.append(&mut open);
                continue;
            }
            let places = slots.iter().map(|s| all.position_of(*s));
            let columns = places.enumerate();
            let columns = columns.filter_map(|(from, to)| Some((from, to?)));
            let input = inputs.len();
            inputs.push(columns.collect());
            self.direct(open, input);
        }
        if !inputs.is_empty() {
            let width = all.slots().len();
            self.put(WidenSpec { inputs, width }, all.slots(), node);
        }
        self.open.append(&mut done);
        Ok(all.into_slots())
    }
}

impl StageSpec for WidenSpec {
    fn work<'w>(&'w self, _input: &'w [Slot], ctx: &QueryContext<'w>) -> NewWorker<'w> {
        Ok(Box::new(Widen {
            spec: self,
            out: Batch::new(self.width, ctx.budget),
            filled: &[],
            used: 0,
        }))
    }
}

/// Adds unbound columns to the rows of each input, so that they have all columns of the union. A worker's inputs share
/// one batch. When the input changes, only the columns that the last one filled are cleared, so a batch costs no more
/// than its bound values.
struct Widen<'a> {
    spec: &'a WidenSpec,
    out: Batch,
    /// Columns that may be nonzero, in the first `used` rows.
    filled: &'a [(usize, usize)],
    used: usize,
}

impl StageWorker for Widen<'_> {
    fn batch(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        self.batch_of(0, ctx, rows, rest)
    }

    fn batch_of(
        &mut self,
        input: usize,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        let columns = self.spec.inputs[input].as_slice();
        if !std::ptr::eq(columns, self.filled) {
            for &(_, to) in self.filled {
                self.out.columns[to][..self.used].fill(0);
            }
            (self.filled, self.used) = (columns, 0);
        }
        let most = (IDS / self.spec.width.max(1)).max(1);
        let mut from = 0;
        while from < rows.rows {
            if from > 0 {
                ctx.check()?;
            }
            let n = most.min(rows.rows - from);
            self.out.ensure(n)?;
            self.out.rows = n;
            self.used = self.used.max(n);
            for &(column, to) in columns {
                let ids = &rows.column(column)[from..from + n];
                self.out.columns[to][..n].copy_from_slice(ids);
            }
            from += n;
            rest.batch(self.out.view())?;
        }
        Ok(())
    }
}
