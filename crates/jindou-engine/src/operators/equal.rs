//! Before a join by `=`: each row once for each held term that equals its own.

use super::stage::{Rest, Spec, Work, hand_all, hand_on};
use crate::batch::{Batch, View, pick};
use crate::explore::{Flow, Run};
use crate::row_buffer::RowBuffer;
use crate::values::{Equals, Partners};
use jindou_model::{Holder, Result};
use jindou_plan::Slot;
use rustc_hash::FxHashSet;

/// Specification of the stage.
pub(crate) struct EqualSpec {
    /// The column whose value is looked up.
    column: usize,
    set: Equals,
    /// One partner is enough: who asks for rows with any.
    first: bool,
}

impl EqualSpec {
    /// Of the terms that the held rows have in a column.
    pub fn new(
        column: usize,
        held: &RowBuffer,
        of: usize,
        first: bool,
        run: &Run<'_>,
    ) -> Result<Self> {
        let mut seen = FxHashSet::default();
        let mut charge = crate::batch::Charge::of(Holder::HashJoin, run.budget);
        for chunk in held.chunks() {
            run.check()?;
            seen.extend(chunk.view().column(of));
            charge.set(seen.capacity() * 9)?;
        }
        let ids: Vec<u32> = seen.into_iter().collect();
        Ok(Self {
            column,
            set: Equals::new(&ids, Holder::HashJoin, run)?,
            first,
        })
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> u64 {
        self.set.held()
    }
}

impl Spec for EqualSpec {
    fn work<'w>(&'w self, input: &'w [Slot], run: &Run<'w>) -> Result<Box<dyn Work + 'w>> {
        Ok(Box::new(Equal::new(self, input.len(), run)))
    }
}

/// The stage: rows come out with a last column, the partner.
struct Equal<'a> {
    spec: &'a EqualSpec,
    partners: Partners,
    rows: Vec<u32>,
    found: Vec<u32>,
    out: Batch,
}

impl<'a> Equal<'a> {
    fn new(spec: &'a EqualSpec, width: usize, run: &Run<'a>) -> Self {
        Self {
            spec,
            partners: Partners::new(run),
            rows: vec![],
            found: vec![],
            out: Batch::new(width + 1, run.budget),
        }
    }
}

impl Work for Equal<'_> {
    fn batch(&mut self, run: &Run<'_>, rows: View<'_>, rest: &mut Rest<'_, '_, '_>) -> Flow {
        run.check()?;
        self.rows.clear();
        self.found.clear();
        let most = if self.spec.first { 1 } else { usize::MAX };
        for (row, &id) in (0u32..).zip(rows.column(self.spec.column)) {
            let partners = self.partners.of(run, &self.spec.set, id)?;
            let mut partners = partners.get(..most.min(partners.len())).unwrap_or(&[]);
            while !partners.is_empty() {
                let room = run.batch_rows.saturating_sub(self.found.len()).max(1);
                let (now, later) = partners.split_at(room.min(partners.len()));
                partners = later;
                self.found.extend_from_slice(now);
                self.rows.resize(self.found.len(), row);
                if self.found.len() >= run.batch_rows {
                    write(&mut self.out, rows, &mut self.rows, &mut self.found, run)?;
                    hand_on(&mut self.out, run, rest)?;
                }
            }
        }
        write(&mut self.out, rows, &mut self.rows, &mut self.found, run)?;
        hand_on(&mut self.out, run, rest)
    }

    fn finish(&mut self, _run: &Run<'_>, rest: &mut Rest<'_, '_, '_>) -> Flow {
        hand_all(&mut self.out, rest)
    }

    fn clear(&mut self) {
        self.out.rows = 0;
    }
}

fn write(
    out: &mut Batch,
    rows: View<'_>,
    index: &mut Vec<u32>,
    found: &mut Vec<u32>,
    run: &Run<'_>,
) -> Result<()> {
    let (from, n) = (out.rows, index.len());
    if n > 0 {
        out.ensure((from + n).max(run.batch_rows * 2))?;
        if let Some((last, columns)) = out.columns.split_last_mut() {
            for (c, column) in columns.iter_mut().enumerate() {
                pick(rows.column(c), index, &mut column[from..from + n]);
            }
            last[from..from + n].copy_from_slice(found);
        }
        out.rows = from + n;
    }
    index.clear();
    found.clear();
    Ok(())
}
