//! The rows of an ORDER BY, and the values of its computed keys.

use super::row_order::RowOrder;
use crate::batch::{OperatorCharge, View};
use crate::tree::SlotLayout;
use crate::values::{BEYOND, Looked, ValueKeys};
use jindou_model::{Holder, MemoryBudget, Result};
use jindou_plan::{Operator, Slot, operator};
use std::cmp::Ordering;

/// Number of rows from which on they are written to files when memory is short; in tests in which all that can is written,
/// and otherwise.
const LEAST_RUN: [usize; 2] = [8, 1 << 10];
/// Bytes per row for sorting long values.
pub(super) const LONG_ORDER: usize = 64;

/// A sort key.
#[derive(Clone, Copy)]
pub(super) struct SortColumn {
    pub from: KeySource,
    pub descending: bool,
}

/// Where the values of a sort key are.
#[derive(Clone, Copy)]
pub(super) enum KeySource {
    /// A column of ids.
    Ids(usize),
    /// A column of [`FlatRows::values`].
    Values(usize),
}

/// The expressions that an ORDER BY computes itself, in no particular order.
pub(super) fn computed(op: &operator::OrderBy) -> impl Iterator<Item = &operator::Extend> {
    let mut below = &*op.input;
    let chain = std::iter::from_fn(move || match below {
        Operator::Extend(e) => {
            below = &e.input;
            Some(e)
        }
        _ => None,
    });
    chain.filter(|e| e.is_computed_above)
}

/// The sort keys of an ORDER BY over rows with these slots. Slots that are never bound are left out, since they do not
/// affect the order.
pub(super) fn sort_columns(op: &operator::OrderBy, layout: &[Slot]) -> Vec<SortColumn> {
    let places = SlotLayout::new(layout);
    let from = |slot: Slot| match computed(op).position(|e| e.to == slot) {
        Some(n) => Some(KeySource::Values(n)),
        None => places.position_of(slot).map(KeySource::Ids),
    };
    let keys = op.keys.iter();
    keys.filter_map(|&(slot, descending)| {
        Some(SortColumn {
            from: from(slot)?,
            descending,
        })
    })
    .collect()
}

/// The values of an expression in the rows.
pub(super) struct ValueColumn {
    pub keys: ValueKeys,
    pub of_row: Vec<u32>,
}

impl ValueColumn {
    #[inline]
    pub fn number(&self, row: u32) -> u64 {
        self.keys.number(self.of_row[row as usize])
    }

    #[inline]
    pub fn content(&self, row: u32) -> &[u8] {
        self.keys.content(self.of_row[row as usize])
    }

    #[inline]
    pub fn order_of_contents(&self, row: u32, other: &Self, other_row: u32) -> Ordering {
        let (a, b) = (self.of_row[row as usize], other.of_row[other_row as usize]);
        if std::ptr::eq(self, other) && a == b {
            return Ordering::Equal;
        }
        self.keys.order_of_contents(a, &other.keys, b)
    }

    /// A row's value as a sort key: see [`ValueKeys`].
    #[inline]
    pub fn value(&self, row: u32) -> (u64, &[u8]) {
        (self.number(row), self.content(row))
    }

    /// Adds a row with a value of this number and content.
    pub fn push(&mut self, number: u64, content: &[u8]) -> Result<()> {
        self.of_row.push(self.keys.add_key(number, content)?);
        Ok(())
    }

    /// The value that sorts last.
    pub fn last(&self, descending: bool) -> Option<u32> {
        let order = |a: &u32, b: &u32| {
            let order = self.keys.order(*a, &self.keys, *b);
            if descending { order.reverse() } else { order }
        };
        self.of_row.iter().copied().max_by(order)
    }
}

/// Rows, stored row by row.
pub(super) struct FlatRows {
    pub width: usize,
    pub ids: Vec<u32>,
    pub len: usize,
    /// Values of the sort keys that are computed here.
    pub values: Vec<ValueColumn>,
    /// If the rows can be written to files: bytes per row that are charged in advance, so that the rows can be sorted
    /// when there is no memory for more.
    order_bytes: Option<usize>,
    charge: OperatorCharge,
}

impl FlatRows {
    /// No rows, with `width` columns of ids and `values` computed ones. With `order_bytes`, that number of bytes is
    /// charged for the order of each row, and adding rows leaves other operators the headroom.
    pub fn new(
        width: usize,
        values: usize,
        order_bytes: Option<usize>,
        budget: &MemoryBudget,
    ) -> Self {
        let column = || ValueColumn {
            keys: match order_bytes {
                Some(_) => ValueKeys::with_headroom(budget),
                None => ValueKeys::new(budget),
            },
            of_row: vec![],
        };
        Self {
            width,
            ids: vec![],
            len: 0,
            values: (0..values).map(|_| column()).collect(),
            order_bytes,
            charge: OperatorCharge::for_holder(Holder::OrderBy, budget),
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.charge.bytes() + self.values.iter().map(|c| c.keys.bytes()).sum::<u64>()
    }

    /// Number of ids in a row.
    pub fn row_ids(&self) -> usize {
        self.width
    }

    fn bytes_of_row(&self) -> usize {
        4 * (self.width + self.values.len())
    }

    /// Number of rows for which there is memory.
    fn room(&self) -> usize {
        self.ids.capacity() / self.width.max(1)
    }

    /// True if there are so many rows that writing them to files frees much memory.
    pub fn is_worth_writing(&self) -> bool {
        let least = LEAST_RUN[usize::from(!self.charge.budget().is_scarce())];
        self.len >= least || self.len > 0 && self.values.iter().any(|c| c.keys.are_many())
    }

    pub fn reserve(&mut self, more: usize) -> Result<()> {
        let (want, has) = (self.len + more, self.room());
        if want > has {
            let each = self.bytes_of_row();
            let order = match self.order_bytes {
                Some(bytes) if self.has_long_values() => bytes + LONG_ORDER,
                bytes => bytes.unwrap_or(0),
            };
            // While the rows are moved, the old and the new memory exist together.
            let moved = |room: usize| (room + has) * each + room * order;
            let mut room = want.max(has * 2);
            if self.order_bytes.is_none() || !self.is_worth_writing() {
                self.charge.set(moved(room))?;
            } else if self.charge.set_with_headroom(moved(room)).is_err() {
                room = want.max(has + has / 4);
                self.charge.set_with_headroom(moved(room))?;
            }
            self.ids.reserve_exact(room * self.width - self.ids.len());
            for column in &mut self.values {
                column.of_row.reserve_exact(room - column.of_row.len());
            }
            self.charge.set(room * (each + order))?;
        }
        Ok(())
    }

    /// Takes what was charged in advance for the order of the rows; the result is a charge of `bytes`.
    pub fn order_charge(&mut self, bytes: usize) -> Result<OperatorCharge> {
        let held = self.room() * self.bytes_of_row();
        let spare = (self.charge.bytes() as usize).saturating_sub(held);
        let mut charge = self.charge.split(bytes.min(spare));
        self.charge.set(held)?;
        charge.set(bytes)?;
        Ok(charge)
    }

    /// Removes all rows but keeps their memory.
    pub fn clear(&mut self) {
        self.ids.clear();
        self.len = 0;
        for column in &mut self.values {
            column.of_row.clear();
            column.keys.clear();
        }
    }

    /// Removes all rows and frees their memory.
    pub fn free(&mut self) -> Result<()> {
        self.ids = vec![];
        self.len = 0;
        for column in &mut self.values {
            column.of_row = vec![];
            column.keys = match self.order_bytes {
                Some(_) => ValueKeys::with_headroom(self.charge.budget()),
                None => ValueKeys::new(self.charge.budget()),
            };
        }
        self.charge.set(0)
    }

    /// Changes the number of bytes per row that are charged in advance for their order, if they are.
    pub fn charge_for_order(&mut self, bytes: usize) {
        if let Some(order) = &mut self.order_bytes {
            *order = bytes;
        }
    }

    /// Sets the number of rows, for which there must be memory; returns their ids, to be written.
    pub fn take_rows(&mut self, rows: usize) -> &mut [u32] {
        self.len = rows;
        self.ids.clear();
        self.ids.resize(rows * self.width, 0);
        &mut self.ids
    }

    /// Adds rows. `values` has the values in each computed column, with [`BEYOND`] in rows that `rows` leaves out.
    pub fn push(&mut self, rows: View<'_>, values: &[Vec<u32>]) -> Result<()> {
        self.reserve(rows.rows)?;
        let at = self.ids.len();
        self.ids.resize(at + rows.rows * self.width, 0);
        let out = &mut self.ids[at..];
        for c in 0..self.width {
            for (row, &v) in out.chunks_exact_mut(self.width).zip(rows.column(c)) {
                row[c] = v;
            }
        }
        for (column, values) in self.values.iter_mut().zip(values) {
            let kept = values.iter().copied().filter(|&v| v != BEYOND);
            column.of_row.extend(kept);
        }
        self.len += rows.rows;
        Ok(())
    }

    /// The ids in sort columns whose terms must be read for their keys.
    pub fn looked<'r>(
        &'r self,
        by: &'r [SortColumn],
        looked: Looked<'r>,
    ) -> impl Iterator<Item = u32> + 'r {
        let columns = by.iter().filter_map(|by| match by.from {
            KeySource::Ids(column) => Some(self.ids.iter().skip(column).step_by(self.width.max(1))),
            KeySource::Values(_) => None,
        });
        columns.flatten().copied().filter(move |&v| looked.has(v))
    }

    pub fn append(&mut self, other: &Self) -> Result<()> {
        self.reserve(other.len)?;
        self.ids.extend_from_slice(&other.ids);
        for (column, other) in self.values.iter_mut().zip(&other.values) {
            let at = column.of_row.len();
            column.of_row.extend_from_slice(&other.of_row);
            column.keys.append(&other.keys, &mut column.of_row[at..])?;
        }
        self.len += other.len;
        Ok(())
    }

    #[inline]
    pub fn row(&self, row: u32) -> &[u32] {
        let at = row as usize * self.width;
        &self.ids[at..at + self.width]
    }

    /// Replaces the rows by those of an order, in that order.
    pub fn keep(&mut self, order: &RowOrder) -> Result<()> {
        let n = order.rows();
        let mut charge = OperatorCharge::for_holder(Holder::OrderBy, self.charge.budget());
        charge.set(n * self.width.max(1) * 4)?;
        let mut kept = Vec::with_capacity(n * self.width);
        for at in 0..n {
            kept.extend_from_slice(self.row(order.row(at)));
        }
        self.ids.clear();
        self.ids.extend_from_slice(&kept);
        for column in &mut self.values {
            kept.clear();
            kept.extend((0..n).map(|at| column.of_row[order.row(at) as usize]));
            column.of_row.clear();
            column.of_row.extend_from_slice(&kept);
            column.keys.keep(&mut column.of_row)?;
        }
        self.len = n;
        Ok(())
    }

    pub fn has_long_values(&self) -> bool {
        self.values.iter().any(|c| c.keys.has_long())
    }
}

#[inline]
pub(super) fn directed(key: u64, descending: bool) -> u64 {
    if descending { !key } else { key }
}
