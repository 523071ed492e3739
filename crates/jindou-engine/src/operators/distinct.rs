//! DISTINCT: rows are given on as soon as they are seen for the first time.

use crate::batch::{Batch, View};
use crate::explore::Run;
use crate::table::{IdSet, TupleSet, hash};
use jindou_model::Result;
use jindou_plan::Slot;

enum Known {
    /// No columns: one row is all.
    None(bool),
    One(IdSet),
    More(TupleSet),
}

pub(crate) struct Distinct {
    columns: Vec<usize>,
    known: Known,
    out: Batch,
    tuple: Vec<u32>,
    index: Vec<u32>,
}

impl Distinct {
    pub fn new(layout: &[Slot], slots: &[Slot], run: &Run<'_>) -> Self {
        let columns: Vec<usize> = slots
            .iter()
            .filter_map(|s| layout.iter().position(|l| l == s))
            .collect();
        let known = match columns.len() {
            0 => Known::None(false),
            1 => Known::One(IdSet::new(run.snapshot.base().vertices(), run.budget)),
            n => Known::More(TupleSet::new(n, run.budget)),
        };
        let out = Batch::new(columns.len(), run.budget);
        Self {
            columns,
            known,
            out,
            tuple: vec![],
            index: vec![],
        }
    }

    /// The rows not seen before.
    pub fn new_rows(&mut self, rows: View<'_>) -> Result<View<'_>> {
        self.index.clear();
        match &mut self.known {
            Known::None(seen) => {
                let new = usize::from(!*seen && rows.rows > 0);
                *seen = true;
                return Ok(View {
                    columns: &[],
                    rows: new,
                });
            }
            Known::One(set) => {
                for (i, &id) in rows.column(self.columns[0]).iter().enumerate() {
                    if set.insert(id)? {
                        self.index.push(i as u32);
                    }
                }
            }
            Known::More(set) => {
                for row in 0..rows.rows {
                    self.tuple.clear();
                    self.tuple.extend(
                        self.columns
                            .iter()
                            .map(|&c| rows.column(c).get(row).copied().unwrap_or(0)),
                    );
                    if set.insert(&self.tuple)?.1 {
                        self.index.push(row as u32);
                    }
                }
            }
        }
        self.out.ensure(self.index.len())?;
        for (o, &c) in self.columns.iter().enumerate() {
            self.out.gather(o, 0, rows.column(c), &self.index);
        }
        self.out.rows = self.index.len();
        Ok(self.out.view())
    }
}

/// Slots of a worker's own filter before the shared set.
const RECENT: usize = 1 << 14;

/// Drops most repetitions before they reach the set that all workers share: a table of rows met lately, one
/// hash a slot, the newer overwriting the older. What it lets through may have been seen; what it drops has.
pub(crate) struct Seen {
    columns: Vec<usize>,
    /// The rows' ids, `columns.len()` a slot; slot 0's first id 0 means empty (rows of only unbound
    /// values pass).
    slots: Vec<u32>,
    out: Batch,
    tuple: Vec<u32>,
    index: Vec<u32>,
}

impl Seen {
    /// Over the columns of a distinct operator's slots.
    pub fn new(layout: &[Slot], slots: &[Slot], run: &Run<'_>) -> Self {
        let columns: Vec<usize> = slots
            .iter()
            .filter_map(|s| layout.iter().position(|l| l == s))
            .collect();
        Self {
            slots: vec![0; RECENT * columns.len()],
            columns,
            out: Batch::new(layout.len(), run.budget),
            tuple: vec![],
            index: vec![],
        }
    }

    /// Rows without columns need no filter.
    pub fn is_useful(&self) -> bool {
        !self.columns.is_empty()
    }

    /// The rows that may be new, all columns kept.
    pub fn pass(&mut self, rows: View<'_>) -> Result<View<'_>> {
        let w = self.columns.len();
        self.index.clear();
        for row in 0..rows.rows {
            self.tuple.clear();
            self.tuple.extend(
                self.columns
                    .iter()
                    .map(|&c| rows.column(c).get(row).copied().unwrap_or(0)),
            );
            let at = (hash(&self.tuple) >> 50) as usize % RECENT * w;
            let slot = &mut self.slots[at..at + w];
            if slot != &self.tuple[..] || self.tuple.iter().all(|&v| v == 0) {
                slot.copy_from_slice(&self.tuple);
                self.index.push(row as u32);
            }
        }
        self.out.ensure(self.index.len())?;
        for c in 0..rows.columns.len() {
            self.out.gather(c, 0, rows.column(c), &self.index);
        }
        self.out.rows = self.index.len();
        Ok(self.out.view())
    }
}
