//! The rows of an ORDER BY, and their order by keys.

use crate::batch::{OperatorCharge, View};
use crate::explore::QueryContext;
use crate::tree::SlotLayout;
use crate::values::{BEYOND, Looked, PLACE_BITS, SortKeys, ValueKeys, sorted};
use jindou_model::{Holder, MemoryBudget, Result};
use jindou_plan::{Operator, Slot, operator};
use std::cmp::Ordering;

/// Number of rows between two checks of the deadline.
const CHECK: usize = 1 << 16;
/// Share of the rows, as a divisor, from which on rows are sorted to find the first ones.
const MANY: usize = 8;
/// Number of rows from which on their values are sorted by parts of their bytes.
const FEW: usize = 8;
/// Largest number of parts, of eight bytes each, by which values are sorted. Values that differ only behind these are
/// compared as a whole. Otherwise values of which each is a prefix of the next would be read once for every part.
const MOST_PARTS: usize = 16;
/// Number of rows from which on they are written to files when memory is short.
const LEAST_RUN: usize = 1 << 10;
/// Bytes per row for sorting long values.
const LONG_ORDER: usize = 64;
/// Bits of a base term's key that are not the position of an added term.
const BASE_BITS: u32 = 64 - PLACE_BITS;

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
    of_row: Vec<u32>,
}

impl ValueColumn {
    #[inline]
    fn number(&self, row: u32) -> u64 {
        self.keys.number(self.of_row[row as usize])
    }

    #[inline]
    fn content(&self, row: u32) -> &[u8] {
        self.keys.content(self.of_row[row as usize])
    }

    #[inline]
    fn order_of_contents(&self, row: u32, other: &Self, other_row: u32) -> Ordering {
        let (a, b) = (self.of_row[row as usize], other.of_row[other_row as usize]);
        if std::ptr::eq(self, other) && a == b {
            return Ordering::Equal;
        }
        self.keys.order_of_contents(a, &other.keys, b)
    }

    /// The number and the content of a row's value.
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
    width: usize,
    ids: Vec<u32>,
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
    /// charged for the order of each row, and adding rows fails while some memory is left.
    pub fn new(
        width: usize,
        values: usize,
        order_bytes: Option<usize>,
        budget: &MemoryBudget,
    ) -> Self {
        let column = || ValueColumn {
            keys: match order_bytes {
                Some(_) => ValueKeys::sparing(budget),
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
        let least = match self.charge.budget().is_scarce() {
            true => FEW,
            false => LEAST_RUN,
        };
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
            } else if self.charge.set_sparing(moved(room)).is_err() {
                room = want.max(has + has / 4);
                self.charge.set_sparing(moved(room))?;
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
    fn order_charge(&mut self, bytes: usize) -> Result<OperatorCharge> {
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
                Some(_) => ValueKeys::sparing(self.charge.budget()),
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

/// Rows with their keys, in sort order once [`Self::sort`] was called.
pub(super) struct RowOrder {
    keyed: Keyed,
    charge: OperatorCharge,
}

enum Keyed {
    /// At most two keys, of base terms only: 41 bits for each, then the row number, in one integer per row.
    Packed(Vec<u128>),
    /// The first key and the number of each row. `rest` has the other keys of each row, by row number. Of
    /// computed values, these are the numbers of [`ValueKeys`]; the contents are in [`FlatRows::values`].
    Wide {
        rows: Vec<(u64, u32)>,
        rest: Vec<u64>,
    },
}

impl RowOrder {
    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.charge.bytes()
    }

    /// Frees the keys.
    pub fn clear(&mut self) -> Result<()> {
        self.keyed = Keyed::Packed(vec![]);
        self.charge.set(0)
    }

    /// Bytes of a row's keys; `added` as in [`Self::new`].
    pub fn bytes_of_row(by: &[SortColumn], added: bool) -> usize {
        let more = by.len().saturating_sub(1);
        let is_wide =
            more > 1 || added || by.iter().any(|by| matches!(by.from, KeySource::Values(_)));
        16 + if is_wide { more * 8 } else { 0 }
    }

    /// The rows with their keys, not sorted yet. `added`: a sort column has terms that are not in the base, or triple
    /// terms.
    pub fn new(
        by: &[SortColumn],
        rows: &mut FlatRows,
        added: bool,
        ctx: &QueryContext<'_>,
    ) -> Result<Self> {
        let mut keys = SortKeys::new(ctx);
        if added {
            // For all columns in one call, since positions from different calls are not comparable.
            keys.place_added(ctx, rows.looked(by, Looked::new(ctx)))?;
        }
        Self::with_keys(by, rows, added, &keys, ctx)
    }

    /// As [`Self::new`], with the keys of all ids.
    pub fn with_keys(
        by: &[SortColumn],
        rows: &mut FlatRows,
        added: bool,
        keys: &SortKeys<'_>,
        ctx: &QueryContext<'_>,
    ) -> Result<Self> {
        let charge = rows.order_charge(rows.len * Self::bytes_of_row(by, added))?;
        let more = by.len().saturating_sub(1);
        let is_wide = more > 1 || added || !rows.values.is_empty();
        let width = rows.width.max(1);
        if !is_wide {
            const MASK: u64 = (1 << BASE_BITS) - 1;
            let key = |row: &[u32], by: Option<&SortColumn>| match by {
                Some(SortColumn {
                    from: KeySource::Ids(column),
                    descending,
                }) => {
                    let key = keys.key(row[*column]) >> PLACE_BITS;
                    u128::from(directed(key, *descending) & MASK)
                }
                _ => 0,
            };
            let mut packed = Vec::with_capacity(rows.len);
            for (n, row) in (0u32..).zip(rows.ids.chunks_exact(width)) {
                if (n as usize).is_multiple_of(CHECK) {
                    ctx.check()?;
                }
                let (first, second) = (key(row, by.first()), key(row, by.get(1)));
                packed.push(first << (BASE_BITS + 32) | second << 32 | u128::from(n));
            }
            return Ok(Self {
                keyed: Keyed::Packed(packed),
                charge,
            });
        }
        let key = |n: u32, row: &[u32], by: &SortColumn| {
            let key = match by.from {
                KeySource::Ids(column) => keys.key(row[column]),
                KeySource::Values(column) => rows.values[column].number(n),
            };
            directed(key, by.descending)
        };
        let mut first = Vec::with_capacity(rows.len);
        let mut rest = Vec::with_capacity(rows.len * more);
        for (n, row) in (0u32..).zip(rows.ids.chunks_exact(width)) {
            if (n as usize).is_multiple_of(CHECK) {
                ctx.check()?;
            }
            first.push((by.first().map_or(0, |by| key(n, row, by)), n));
            rest.extend(by.iter().skip(1).map(|by| key(n, row, by)));
        }
        Ok(Self {
            keyed: Keyed::Wide { rows: first, rest },
            charge,
        })
    }

    pub fn rows(&self) -> usize {
        match &self.keyed {
            Keyed::Packed(rows) => rows.len(),
            Keyed::Wide { rows, .. } => rows.len(),
        }
    }

    /// The beginning of the key at a position, as a number: rows with different ones are in their order.
    #[inline]
    pub fn prefix(&self, at: usize) -> u128 {
        match &self.keyed {
            Keyed::Packed(rows) => rows[at] >> 32,
            Keyed::Wide { rows, .. } => u128::from(rows[at].0),
        }
    }

    /// The number of the row at a position of the order.
    #[inline]
    pub fn row(&self, at: usize) -> u32 {
        match &self.keyed {
            Keyed::Packed(rows) => rows[at] as u32,
            Keyed::Wide { rows, .. } => rows[at].1,
        }
    }

    /// The largest first key.
    pub fn greatest(&self) -> Option<u64> {
        match &self.keyed {
            Keyed::Packed(rows) => rows.iter().max().map(|r| {
                // Packed keys leave out the lowest `PLACE_BITS` bits, which are the same for all base terms. With ones
                // in their place, the result is at least as large as every key.
                ((r >> (BASE_BITS + 32)) as u64) << PLACE_BITS | ((1 << PLACE_BITS) - 1)
            }),
            Keyed::Wide { rows, .. } => rows.iter().map(|r| r.0).max(),
        }
    }

    /// Sorts the rows.
    pub fn sort(&mut self, by: &[SortColumn], of: &FlatRows, ctx: &QueryContext<'_>) -> Result<()> {
        ctx.check()?;
        match &mut self.keyed {
            Keyed::Packed(rows) => rows.sort_unstable(),
            Keyed::Wide { rows, rest, .. } => {
                let all = WideRows { by, of, rest };
                if of.values.is_empty() {
                    rows.sort_unstable_by(|a, b| all.order(a, all, b).then_with(|| a.1.cmp(&b.1)));
                } else if of.has_long_values() {
                    let mut charge = OperatorCharge::for_holder(Holder::OrderBy, ctx.budget);
                    charge.set(rows.len() * LONG_ORDER)?;
                    *rows = sorted(std::mem::take(rows), |a, b| {
                        all.count_work(a.1, b.1)?;
                        Ok(all.order(a, all, b))
                    })?;
                } else {
                    all.sort(rows, ctx)?;
                }
            }
        }
        ctx.check()
    }

    /// Keeps the rows that sort first, `most` of them, in any order.
    pub fn cut(
        &mut self,
        most: usize,
        by: &[SortColumn],
        of: &FlatRows,
        ctx: &QueryContext<'_>,
    ) -> Result<()> {
        if most >= self.rows() {
            return Ok(());
        }
        // Sorting values costs less than selecting many of them by comparisons, and checks the deadline.
        let sorts = of.has_long_values() || !of.values.is_empty() && most >= self.rows() / MANY;
        if sorts {
            self.sort(by, of, ctx)?;
        }
        match &mut self.keyed {
            Keyed::Packed(rows) => {
                rows.select_nth_unstable(most);
                rows.truncate(most);
            }
            Keyed::Wide { rows, rest, .. } => {
                if !sorts {
                    let all = WideRows { by, of, rest };
                    rows.select_nth_unstable_by(most, |a, b| {
                        all.order(a, all, b).then_with(|| a.1.cmp(&b.1))
                    });
                }
                rows.truncate(most);
            }
        }
        Ok(())
    }

    /// Compares rows of two orders by their keys.
    #[inline]
    pub fn compare(
        &self,
        by: &[SortColumn],
        (at, of): (usize, &FlatRows),
        other: &Self,
        (other_at, other_of): (usize, &FlatRows),
    ) -> Ordering {
        match (&self.keyed, &other.keyed) {
            (Keyed::Packed(a), Keyed::Packed(b)) => {
                let key = |rows: &[u128], at: usize| rows.get(at).map(|r| r >> 32);
                key(a, at).cmp(&key(b, other_at))
            }
            (
                Keyed::Wide { rows, rest, .. },
                Keyed::Wide {
                    rows: other_rows,
                    rest: other_rest,
                    ..
                },
            ) => match (rows.get(at), other_rows.get(other_at)) {
                (Some(a), Some(b)) => {
                    let rest = WideRows { by, of, rest };
                    let other = WideRows {
                        by,
                        of: other_of,
                        rest: other_rest,
                    };
                    rest.order(a, other, b)
                }
                (a, b) => a.is_none().cmp(&b.is_none()),
            },
            _ => Ordering::Equal,
        }
    }
}

/// Rows with the keys of [`Keyed::Wide`].
#[derive(Clone, Copy)]
struct WideRows<'r> {
    by: &'r [SortColumn],
    of: &'r FlatRows,
    rest: &'r [u64],
}

impl<'r> WideRows<'r> {
    /// The keys of a row after the first.
    #[inline]
    fn others(self, row: u32) -> &'r [u64] {
        let more = self.by.len().saturating_sub(1);
        &self.rest[row as usize * more..(row as usize + 1) * more]
    }

    #[inline]
    fn order(self, a: &(u64, u32), other: Self, b: &(u64, u32)) -> Ordering {
        a.0.cmp(&b.0).then_with(|| match self.of.values.is_empty() {
            true => self.others(a.1).cmp(other.others(b.1)),
            false => self.order_of_values(a.1, other, b.1),
        })
    }

    /// The order of two rows with computed values whose first keys have the same number.
    fn order_of_values(self, a: u32, other: Self, b: u32) -> Ordering {
        let mut numbers = self.others(a).iter().zip(other.others(b));
        for (n, by) in self.by.iter().enumerate() {
            let order = match (n > 0).then(|| numbers.next()).flatten() {
                Some((a, b)) => a.cmp(b),
                None => Ordering::Equal,
            };
            let order = order.then_with(|| match by.from {
                KeySource::Ids(_) => Ordering::Equal,
                KeySource::Values(column) => {
                    let (x, y) = (&self.of.values[column], &other.of.values[column]);
                    let order = x.order_of_contents(a, y, b);
                    if by.descending {
                        order.reverse()
                    } else {
                        order
                    }
                }
            });
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }

    /// Sorts all rows.
    fn sort(self, rows: &mut [(u64, u32)], ctx: &QueryContext<'_>) -> Result<()> {
        let Some(&SortColumn {
            from: KeySource::Values(column),
            descending,
        }) = self.by.first()
        else {
            rows.sort_unstable_by(|a, b| self.order(a, self, b));
            return Ok(());
        };
        rows.sort_unstable();
        let values = &self.of.values[column];
        for group in rows.chunk_by_mut(|a, b| a.0 == b.0) {
            let number = directed(group[0].0, descending);
            match values.keys.is_ordered_by_bytes(number) {
                true => self.sort_by_bytes(group, values, descending, [0, MOST_PARTS], ctx)?,
                false => group.sort_unstable_by(|a, b| self.order(a, self, b)),
            }
            group
                .iter_mut()
                .for_each(|row| row.0 = directed(number, descending));
        }
        Ok(())
    }

    /// Sorts rows whose first keys have the same number and the same first `depth` bytes of content, where zeros stand
    /// for bytes behind its end. Eight bytes behind those that all have in common are compared as one number, in place
    /// of the rows' first keys, which are lost; then each group of rows with the same number is sorted, by at most
    /// `parts` such numbers.
    fn sort_by_bytes(
        self,
        rows: &mut [(u64, u32)],
        values: &ValueColumn,
        descending: bool,
        [depth, parts]: [usize; 2],
        ctx: &QueryContext<'_>,
    ) -> Result<()> {
        if rows.len() >= CHECK {
            ctx.check()?;
        }
        let content = |row: &(u64, u32)| values.content(row.1);
        let first = rows.first().map_or(&[][..], content);
        let is_first = |row: &(u64, u32)| content(row) == first;
        let ends = |row: &(u64, u32)| content(row).len() < depth;
        let is_last = parts == 0 || rows.len() < FEW;
        if is_last || rows.iter().any(ends) || rows.iter().all(is_first) {
            rows.sort_unstable_by(|a, b| self.order_of_values(a.1, self, b.1));
            return Ok(());
        }
        let common = |end: usize, row: &(u64, u32)| {
            let both = first[depth..end].iter().zip(&content(row)[depth..]);
            depth + both.take_while(|(a, b)| a == b).count()
        };
        let depth = rows.iter().fold(first.len(), common);
        for row in &mut *rows {
            let rest = &content(row)[depth..];
            let mut bytes = [0; 8];
            let length = rest.len().min(8);
            bytes[..length].copy_from_slice(&rest[..length]);
            row.0 = directed(u64::from_be_bytes(bytes), descending);
        }
        rows.sort_unstable();
        for group in rows.chunk_by_mut(|a, b| a.0 == b.0) {
            self.sort_by_bytes(group, values, descending, [depth + 8, parts - 1], ctx)?;
        }
        Ok(())
    }

    fn count_work(self, a: u32, b: u32) -> Result<()> {
        for column in &self.of.values {
            let (a, b) = (column.of_row[a as usize], column.of_row[b as usize]);
            column.keys.count_work(a, b)?;
        }
        Ok(())
    }
}
