//! UNION: leaves and stages of several inputs that end in one place.

use super::stage::{Rest, Spec, Work};
use crate::batch::{Batch, View};
use crate::compile::{Builder, Open};
use crate::explore::{Consumer, Flow, Halt, Run};
use crate::tree::SlotList;
use jindou_model::Result;
use jindou_plan::{Slot, operator};

/// Ids in a batch of a wide union at most: its batches have the fewer rows the more columns it has.
const IDS: usize = 1 << 20;

/// Columns of an input, each with its place among the union's.
type Columns = Vec<(usize, usize)>;

/// Specification of [`Widen`].
struct WidenSpec {
    /// By input: only what it binds, so that a union of many inputs with columns of their own is as long as its text.
    inputs: Vec<Columns>,
    width: usize,
}

impl<'a> Builder<'_, 'a> {
    pub(super) fn union(
        &mut self,
        op: &'a operator::Union,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        let list = &op.inputs;
        let before = std::mem::take(&mut self.open);
        debug_assert!(before.is_empty(), "a union begins where nothing is open");
        let mut parts: Vec<(Vec<Slot>, Vec<Open>)> = Vec::with_capacity(list.len());
        let mut all = SlotList::default();
        let mut at = node + 1;
        for input in list {
            self.exec.run.check()?;
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
            let places = slots.iter().map(|s| all.of(*s));
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

impl Spec for WidenSpec {
    fn work<'w>(&'w self, _input: &'w [Slot], run: &Run<'w>) -> Result<Box<dyn Work + 'w>> {
        Ok(Box::new(Widen {
            spec: self,
            out: Batch::new(self.width, run.budget),
            filled: &[],
            used: 0,
        }))
    }
}

/// Gives the rows of each input the columns that the union's rows have. All inputs of a worker share one batch: a column that
/// the last input filled is emptied before the next one, so that no batch costs more than what is bound in it.
struct Widen<'a> {
    spec: &'a WidenSpec,
    out: Batch,
    /// Columns that are not empty in the first `used` rows.
    filled: &'a [(usize, usize)],
    used: usize,
}

impl Work for Widen<'_> {
    fn batch(&mut self, run: &Run<'_>, rows: View<'_>, rest: &mut Rest<'_, '_, '_>) -> Flow {
        self.batch_of(0, run, rows, rest)
    }

    fn batch_of(
        &mut self,
        input: usize,
        run: &Run<'_>,
        rows: View<'_>,
        rest: &mut Rest<'_, '_, '_>,
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
                run.check()?;
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
