//! BIND, and columns put in another order.

use super::stage::{Rest, Spec, Work};
use crate::batch::{Batch, View};
use crate::compile::Builder;
use crate::explore::{Consumer, Flow, Halt, Run};
use crate::tree::{Layout, with};
use crate::values::Evaluator;
use jindou_model::Result;
use jindou_plan::{GeneralExpression, Slot, operator};

struct ExtendSpec<'a>(&'a GeneralExpression);

/// For each column to give, the one that it comes from.
struct ProjectSpec(Vec<usize>);

impl<'a> Builder<'_, 'a> {
    pub(super) fn extend(
        &mut self,
        op: &'a operator::Extend,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        let slots = self.op(&op.input, node + 1)?;
        let slots = self.without(op.to, slots, node);
        self.link(ExtendSpec(&op.value), &slots, node);
        Ok(with(slots, [op.to]))
    }

    /// Drops a column that is about to be bound: rows may have it without a value in any (a group by what is never bound).
    pub(super) fn without(&mut self, slot: Slot, slots: Vec<Slot>, node: usize) -> Vec<Slot> {
        if !slots.contains(&slot) {
            return slots;
        }
        let columns = (0..slots.len())
            .filter(|&c| slots.get(c) != Some(&slot))
            .collect();
        self.link(ProjectSpec(columns), &slots, node);
        slots.into_iter().filter(|s| *s != slot).collect()
    }
}

impl Spec for ExtendSpec<'_> {
    fn work<'w>(&'w self, input: &'w [Slot], run: &Run<'w>) -> Result<Box<dyn Work + 'w>> {
        Ok(Box::new(Extend::new(self.0, input, run)?))
    }
}

impl Work for Extend {
    fn batch(&mut self, run: &Run<'_>, rows: View<'_>, rest: &mut Rest<'_, '_, '_>) -> Flow {
        rest.batch(self.rows(run, rows)?)
    }
}

impl Spec for ProjectSpec {
    fn work<'w>(&'w self, _input: &'w [Slot], run: &Run<'w>) -> Result<Box<dyn Work + 'w>> {
        Ok(Box::new(Project::new(&self.0, run)))
    }
}

impl Work for Project {
    fn batch(&mut self, _run: &Run<'_>, rows: View<'_>, rest: &mut Rest<'_, '_, '_>) -> Flow {
        rest.batch(self.rows(rows)?)
    }
}

/// Adds a column with an expression's values.
struct Extend {
    evaluator: Evaluator,
    out: Batch,
}

impl Extend {
    fn new(value: &GeneralExpression, layout: &[Slot], run: &Run<'_>) -> Result<Self> {
        Ok(Self {
            evaluator: Evaluator::new(value, &Layout::new(layout), run)?,
            out: Batch::new(layout.len() + 1, run.budget),
        })
    }

    fn rows(&mut self, run: &Run<'_>, rows: View<'_>) -> Result<View<'_>> {
        self.out.ensure(rows.rows)?;
        self.out.rows = rows.rows;
        if let Some((new, old)) = self.out.columns.split_last_mut() {
            for (c, column) in old.iter_mut().enumerate() {
                column[..rows.rows].copy_from_slice(rows.column(c));
            }
            self.evaluator.column(run, rows, &mut new[..rows.rows])?;
        }
        Ok(self.out.view())
    }
}

/// Gives rows some of their columns.
struct Project {
    columns: Vec<usize>,
    out: Batch,
}

impl Project {
    fn new(columns: &[usize], run: &Run<'_>) -> Self {
        Self {
            columns: columns.to_vec(),
            out: Batch::new(columns.len(), run.budget),
        }
    }

    fn rows(&mut self, rows: View<'_>) -> Result<View<'_>> {
        self.out.ensure(rows.rows)?;
        self.out.rows = rows.rows;
        for (out, from) in self.out.columns.iter_mut().zip(&self.columns) {
            out[..rows.rows].copy_from_slice(rows.column(*from));
        }
        Ok(self.out.view())
    }
}
