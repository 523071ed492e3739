//! BIND, and columns put in another order.

use crate::batch::{Batch, View};
use crate::explore::Run;
use crate::values::Evaluator;
use jindou_model::Result;
use jindou_plan::{GeneralExpression, Slot};

/// Adds a column with an expression's values.
pub(crate) struct Extend {
    evaluator: Evaluator,
    out: Batch,
}

impl Extend {
    pub fn new(value: &GeneralExpression, layout: &[Slot], run: &Run<'_>) -> Result<Self> {
        Ok(Self {
            evaluator: Evaluator::new(value, layout, run)?,
            out: Batch::new(layout.len() + 1, run.budget),
        })
    }

    pub fn rows(&mut self, run: &Run<'_>, rows: View<'_>) -> Result<View<'_>> {
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

/// Gives rows the columns that a union's rows have.
pub(crate) struct Project {
    columns: Vec<Option<usize>>,
    out: Batch,
}

impl Project {
    pub fn new(columns: &[Option<usize>], run: &Run<'_>) -> Self {
        Self {
            columns: columns.to_vec(),
            out: Batch::new(columns.len(), run.budget),
        }
    }

    pub fn rows(&mut self, rows: View<'_>) -> Result<View<'_>> {
        self.out.ensure(rows.rows)?;
        self.out.rows = rows.rows;
        for (out, from) in self.out.columns.iter_mut().zip(&self.columns) {
            let out = &mut out[..rows.rows];
            match from {
                Some(c) => out.copy_from_slice(rows.column(*c)),
                None => out.fill(0),
            }
        }
        Ok(self.out.view())
    }
}
