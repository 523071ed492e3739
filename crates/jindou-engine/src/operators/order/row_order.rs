//! The order of an ORDER BY's rows by their keys.

use super::rows::{FlatRows, KeySource, LONG_ORDER, SortColumn, ValueColumn, directed};
use crate::batch::OperatorCharge;
use crate::explore::QueryContext;
use crate::values::{Looked, PLACE_BITS, SortKeys, sorted};
use jindou_model::{Holder, Result};
use std::cmp::Ordering;

/// Number of rows between two checks of the deadline.
const CHECK: usize = 1 << 16;
/// Share of the rows, as a divisor, from which on rows are sorted to find the first ones.
const MANY: usize = 8;
/// Largest number of parts, of eight bytes each, by which values are sorted. Values that differ only behind these are
/// compared as a whole. Otherwise values of which each is a prefix of the next would be read once for every part.
const MOST_PARTS: usize = 16;
/// Bits of a base term's key that are not the position of an added term.
const BASE_BITS: u32 = 64 - PLACE_BITS;
/// Number of rows from which on their values are sorted by parts of their bytes.
const FEW: usize = 8;

/// Rows with their keys, in sort order once [`Self::sort`] was called.
pub(super) struct RowOrder {
    keyed: Keyed,
    charge: OperatorCharge,
}

enum Keyed {
    /// At most two keys, of base terms only: 41 bits for each, then the row number, in one integer per row.
    Packed(Vec<u128>),
    /// The first key and the number of each row. `rest` has the other keys of each row, by row number. Of
    /// computed values, these are the numbers of [`ValueKeys`](crate::values::ValueKeys); the contents are in [`FlatRows::values`].
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
