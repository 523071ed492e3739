//! ORDER BY: sorts rows by a 64-bit key per sort column, made from value ranks. Sorting reads no strings.
//!
//! Each worker sorts its own rows; at the end the sorted parts are merged while they are output. That requires keys
//! that do not depend on other workers' rows, which only terms of the base have. If a sort column has another term, all
//! rows are sorted at the end instead. Keys of descending columns are complemented.

use super::BATCH;
use super::end::ToOrder;
use crate::batch::{Batch, OperatorCharge, View};
use crate::compile::{LeafSource, PipelineBuilder};
use crate::explore::{Flow, Halt, QueryContext};
use crate::tree::SlotLayout;
use crate::values::{Looked, PLACE_BITS, SortKeys};
use jindou_model::{Error, Holder, MemoryBudget, Resource, Result};
use jindou_plan::{Slot, operator};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Mutex;

/// If only the first k rows are needed, they are cut to k whenever there are this many times k, and at least [`LEAST`].
const SLACK: usize = 4;
const LEAST: usize = 4096;
/// Number of rows between two checks of the deadline.
const CHECK: usize = 1 << 16;
/// Bits of a base term's key that are not the position of an added term.
const BASE_BITS: u32 = 64 - PLACE_BITS;

impl<'a> PipelineBuilder<'_, 'a> {
    pub(super) fn order_by(
        &mut self,
        op: &'a operator::OrderBy,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        self.sorted(op, None, node)
    }

    /// Adds the sorted rows as a leaf; with `most`, only that many of the first rows.
    pub(super) fn sorted(
        &mut self,
        op: &'a operator::OrderBy,
        most: Option<u64>,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        let end = ToOrder(&op.keys, most);
        let (sorter, slots) = self.exec.run_into(&op.input, node + 1, end, node)?;
        // If there are no rows, no leaf is added, and operators above add no stages: they may read slots that are
        // missing.
        if !sorter.is_empty() {
            self.leaf(LeafSource::Sorted(Box::new(Mutex::new(sorter))), node);
        }
        Ok(slots)
    }
}

pub(crate) struct Sorter {
    /// Sort columns, with true for descending. Slots that are never bound are left out, since they do not affect the
    /// order.
    by: Vec<(usize, bool)>,
    width: usize,
    /// Number of leading rows that a LIMIT above needs; `None` for all.
    most: Option<usize>,
    rows: FlatRows,
    /// True if a sort column has a term that is not in the base, or a triple term.
    added: bool,
    /// Set when the rows were cut to `most`: the largest first key among them. Later rows with a larger key are not
    /// needed.
    bound: Option<u64>,
    /// The order of this worker's rows, once they are sorted.
    order: Option<RowOrder>,
    /// Rows of other workers.
    parts: Vec<WorkerRows>,
    /// Number of rows, if they have no columns.
    bare: u64,
    kept: Batch,
    index: Vec<u32>,
    budget: MemoryBudget,
}

/// Rows of another worker, and their order if they were sorted.
struct WorkerRows {
    rows: FlatRows,
    order: Option<RowOrder>,
}

/// Rows, stored row by row.
struct FlatRows {
    width: usize,
    ids: Vec<u32>,
    len: usize,
    charge: OperatorCharge,
}

impl FlatRows {
    fn new(width: usize, budget: &MemoryBudget) -> Self {
        Self {
            width,
            ids: vec![],
            len: 0,
            charge: OperatorCharge::for_holder(Holder::OrderBy, budget),
        }
    }

    fn reserve(&mut self, more: usize) -> Result<()> {
        let want = (self.len + more) * self.width;
        if want > self.ids.capacity() {
            let room = want.max(self.ids.capacity() * 2);
            // While the rows are moved, the old and the new memory exist together.
            self.charge.set((room + self.ids.capacity()) * 4)?;
            self.ids.reserve_exact(room - self.ids.len());
            self.charge.set(self.ids.capacity() * 4)?;
        }
        Ok(())
    }

    fn push(&mut self, rows: View<'_>) -> Result<()> {
        self.reserve(rows.rows)?;
        let at = self.ids.len();
        self.ids.resize(at + rows.rows * self.width, 0);
        let out = &mut self.ids[at..];
        for c in 0..self.width {
            for (row, &v) in out.chunks_exact_mut(self.width).zip(rows.column(c)) {
                row[c] = v;
            }
        }
        self.len += rows.rows;
        Ok(())
    }

    fn append(&mut self, other: &Self) -> Result<()> {
        self.reserve(other.len)?;
        self.ids.extend_from_slice(&other.ids);
        self.len += other.len;
        Ok(())
    }

    #[inline]
    fn row(&self, row: u32) -> &[u32] {
        let at = row as usize * self.width;
        &self.ids[at..at + self.width]
    }

    /// Replaces the rows by those of an order, in that order.
    fn keep(&mut self, order: &RowOrder) -> Result<()> {
        let n = order.rows();
        let mut charge = OperatorCharge::for_holder(Holder::OrderBy, self.charge.budget());
        charge.set(n * self.width * 4)?;
        let mut kept = Vec::with_capacity(n * self.width);
        for at in 0..n {
            kept.extend_from_slice(self.row(order.row(at)));
        }
        self.ids.clear();
        self.ids.extend_from_slice(&kept);
        self.len = n;
        Ok(())
    }
}

impl Sorter {
    pub fn new(
        by: &[(Slot, bool)],
        layout: &[Slot],
        most: Option<u64>,
        ctx: &QueryContext<'_>,
    ) -> Self {
        let places = SlotLayout::new(layout);
        Self {
            by: by
                .iter()
                .filter_map(|(s, d)| Some((places.position_of(*s)?, *d)))
                .collect(),
            width: layout.len(),
            most: most.and_then(|m| usize::try_from(m).ok()),
            rows: FlatRows::new(layout.len(), ctx.budget),
            added: false,
            bound: None,
            order: None,
            parts: vec![],
            bare: 0,
            kept: Batch::new(layout.len(), ctx.budget),
            index: vec![],
            budget: ctx.budget.clone(),
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        let of = |rows: &FlatRows, order: &Option<RowOrder>| {
            rows.charge.bytes() + order.as_ref().map_or(0, |o| o.charge.bytes())
        };
        let parts: u64 = self.parts.iter().map(|p| of(&p.rows, &p.order)).sum();
        parts + of(&self.rows, &self.order)
    }

    /// Adds rows, except those that are certainly not needed.
    pub fn add(&mut self, ctx: &QueryContext<'_>, rows: View<'_>) -> Result<()> {
        if self.width == 0 {
            self.bare += rows.rows as u64;
            return Ok(());
        }
        let looked = Looked::new(ctx);
        self.added |= self
            .by
            .iter()
            .any(|by| rows.column(by.0).iter().any(|&v| looked.has(v)));
        match self.bound {
            Some(bound) if !self.added => self.push_within(ctx, rows, bound)?,
            _ => self.rows.push(rows)?,
        }
        if let Some(most) = self.most
            && self.rows.len >= most.saturating_mul(SLACK).max(LEAST)
        {
            self.cut(ctx, most)?;
        }
        Ok(())
    }

    /// Adds the rows whose first key does not exceed the bound.
    fn push_within(&mut self, ctx: &QueryContext<'_>, rows: View<'_>, bound: u64) -> Result<()> {
        let Some(&(column, descending)) = self.by.first() else {
            return self.rows.push(rows);
        };
        let keys = SortKeys::new(ctx);
        self.index.clear();
        for (row, &id) in (0u32..).zip(rows.column(column)) {
            if directed(keys.key(id), descending) <= bound {
                self.index.push(row);
            }
        }
        if self.index.len() == rows.rows {
            return self.rows.push(rows);
        }
        self.kept.ensure(self.index.len())?;
        for c in 0..self.width {
            self.kept.gather(c, 0, rows.column(c), &self.index);
        }
        self.kept.rows = self.index.len();
        self.rows.push(self.kept.view())
    }

    /// Removes all but the first `most` rows in sort order.
    fn cut(&mut self, ctx: &QueryContext<'_>, most: usize) -> Result<()> {
        let mut order = RowOrder::new(&self.by, &self.rows, self.added, ctx)?;
        order.cut(most);
        if !self.added && order.rows() == most {
            self.bound = order.greatest();
        }
        self.rows.keep(&order)
    }

    /// Sorts this worker's rows, if their keys do not depend on other workers' rows.
    pub fn done(&mut self, ctx: &QueryContext<'_>) -> Result<()> {
        if self.width == 0 || self.added || u32::try_from(self.rows.len).is_err() {
            return Ok(());
        }
        if let Some(most) = self.most
            && most < self.rows.len
        {
            self.cut(ctx, most)?;
        }
        let mut order = RowOrder::new(&self.by, &self.rows, false, ctx)?;
        order.sort(ctx)?;
        self.order = Some(order);
        Ok(())
    }

    /// Takes over the rows of another worker.
    pub fn merge(&mut self, other: Self) -> Result<()> {
        self.bare += other.bare;
        self.added |= other.added;
        self.parts.push(WorkerRows {
            rows: other.rows,
            order: other.order,
        });
        self.parts.extend(other.parts);
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.bare == 0 && self.rows.len == 0 && self.parts.iter().all(|p| p.rows.len == 0)
    }

    /// Outputs all rows in order.
    pub fn give(&mut self, ctx: &QueryContext<'_>, to: &mut dyn FnMut(View<'_>) -> Flow) -> Flow {
        if self.width == 0 {
            let rows = usize::try_from(self.bare).unwrap_or(usize::MAX);
            return to(View { columns: &[], rows });
        }
        self.parts.retain(|p| p.rows.len > 0);
        let sorted = self.order.is_some() && self.parts.iter().all(|p| p.order.is_some());
        if !sorted {
            self.order = None;
            for part in std::mem::take(&mut self.parts) {
                drop(part.order);
                self.rows.append(&part.rows)?;
            }
            if u32::try_from(self.rows.len).is_err() {
                return Err(Error::limit(
                    Resource::Numbers,
                    "ORDER BY takes at most 4 billion rows",
                )
                .into());
            }
            if let Some(most) = self.most
                && most < self.rows.len
            {
                self.cut(ctx, most)?;
            }
            let mut order = RowOrder::new(&self.by, &self.rows, self.added, ctx)?;
            order.sort(ctx)?;
            self.order = Some(order);
        }
        ctx.check()?;
        let own = self.order.as_ref().map(|o| (&self.rows, o));
        let others = self.parts.iter();
        let parts: Vec<(&FlatRows, &RowOrder)> = own
            .into_iter()
            .chain(others.filter_map(|p| Some((&p.rows, p.order.as_ref()?))))
            .collect();
        let mut out = Batch::new(self.width, &self.budget);
        out.ensure(BATCH)?;
        let mut left = self.most.unwrap_or(usize::MAX);
        let mut next = RowMerge::new(&parts);
        while left > 0 {
            ctx.check()?;
            out.rows = 0;
            while out.rows < BATCH.min(left)
                && let Some(row) = next.row()
            {
                for (column, &v) in out.columns.iter_mut().zip(row) {
                    column[out.rows] = v;
                }
                out.rows += 1;
            }
            if out.rows == 0 {
                break;
            }
            left -= out.rows;
            to(out.view())?;
        }
        Ok(())
    }
}

/// Merges the rows of several sorted parts.
struct RowMerge<'m> {
    parts: &'m [(&'m FlatRows, &'m RowOrder)],
    /// Number of rows that were output of each part.
    at: Vec<usize>,
    /// If there are several parts, the next row of each.
    heads: BinaryHeap<Reverse<MergeHead<'m>>>,
}

impl<'m> RowMerge<'m> {
    fn new(parts: &'m [(&'m FlatRows, &'m RowOrder)]) -> Self {
        let mut heads = BinaryHeap::new();
        if parts.len() > 1 {
            for (part, (_, order)) in parts.iter().enumerate() {
                heads.extend((order.rows() > 0).then_some(Reverse(MergeHead {
                    part,
                    at: 0,
                    order,
                })));
            }
        }
        Self {
            parts,
            at: vec![0; parts.len()],
            heads,
        }
    }

    #[inline]
    fn row(&mut self) -> Option<&'m [u32]> {
        if let [(rows, order)] = self.parts {
            let at = self.at.first_mut()?;
            if *at >= order.rows() {
                return None;
            }
            *at += 1;
            return Some(rows.row(order.row(*at - 1)));
        }
        let mut head = self.heads.peek_mut()?;
        let MergeHead { part, at, order } = head.0;
        let (rows, _) = self.parts.get(part)?;
        if at + 1 < order.rows() {
            head.0.at += 1;
        } else {
            std::collections::binary_heap::PeekMut::pop(head);
        }
        Some(rows.row(order.row(at)))
    }
}

/// The next row of a part.
#[derive(Clone, Copy)]
struct MergeHead<'m> {
    part: usize,
    at: usize,
    order: &'m RowOrder,
}

impl Ord for MergeHead<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order
            .compare(self.at, other.order, other.at)
            .then(self.part.cmp(&other.part))
    }
}

impl PartialOrd for MergeHead<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for MergeHead<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for MergeHead<'_> {}

#[inline]
fn directed(key: u64, descending: bool) -> u64 {
    if descending { !key } else { key }
}

/// Rows with their keys, in sort order once [`Self::sort`] was called.
struct RowOrder {
    keyed: Keyed,
    charge: OperatorCharge,
}

enum Keyed {
    /// At most two keys, of base terms only: 41 bits for each, then the row number, in one integer per row.
    Packed(Vec<u128>),
    /// The first key and the number of each row. `rest` has the other keys, `more` for each row, by row number.
    Wide {
        rows: Vec<(u64, u32)>,
        rest: Vec<u64>,
        more: usize,
    },
}

impl RowOrder {
    /// The rows with their keys, not sorted yet. `added`: a sort column has terms that are not in the base, or triple
    /// terms.
    fn new(
        by: &[(usize, bool)],
        rows: &FlatRows,
        added: bool,
        ctx: &QueryContext<'_>,
    ) -> Result<Self> {
        let mut charge = OperatorCharge::for_holder(Holder::OrderBy, ctx.budget);
        let more = by.len().saturating_sub(1);
        charge.set(rows.len * (16 + if more > 1 || added { more * 8 } else { 0 }))?;
        let mut keys = SortKeys::new(ctx);
        let width = rows.width.max(1);
        if !added && by.len() <= 2 {
            const MASK: u64 = (1 << BASE_BITS) - 1;
            let key = |row: &[u32], by: Option<&(usize, bool)>| {
                by.map_or(0, |by| {
                    let id = row[by.0];
                    u128::from(directed(keys.key(id) >> PLACE_BITS, by.1) & MASK)
                })
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
        if added {
            let looked = Looked::new(ctx);
            // For all columns in one call, since positions from different calls are not comparable.
            let columns = by.iter().flat_map(|&(column, _)| {
                let ids = rows.ids.iter().skip(column).step_by(width);
                ids.copied().filter(move |&v| looked.has(v))
            });
            keys.place_added(ctx, columns)?;
        }
        let key = |row: &[u32], by: &(usize, bool)| {
            let id = row[by.0];
            directed(keys.key(id), by.1)
        };
        let mut first = Vec::with_capacity(rows.len);
        let mut rest = Vec::with_capacity(rows.len * more);
        for (n, row) in (0u32..).zip(rows.ids.chunks_exact(width)) {
            if (n as usize).is_multiple_of(CHECK) {
                ctx.check()?;
            }
            first.push((by.first().map_or(0, |by| key(row, by)), n));
            rest.extend(by.iter().skip(1).map(|by| key(row, by)));
        }
        Ok(Self {
            keyed: Keyed::Wide {
                rows: first,
                rest,
                more,
            },
            charge,
        })
    }

    fn rows(&self) -> usize {
        match &self.keyed {
            Keyed::Packed(rows) => rows.len(),
            Keyed::Wide { rows, .. } => rows.len(),
        }
    }

    /// The number of the row at a position of the order.
    #[inline]
    fn row(&self, at: usize) -> u32 {
        match &self.keyed {
            Keyed::Packed(rows) => rows[at] as u32,
            Keyed::Wide { rows, .. } => rows[at].1,
        }
    }

    /// The largest first key.
    fn greatest(&self) -> Option<u64> {
        match &self.keyed {
            Keyed::Packed(rows) => rows.iter().max().map(|r| {
                // Packed keys leave out the lowest `PLACE_BITS` bits, which are the same for all base terms. With ones
                // in their place, the result is at least as large as every key.
                ((r >> (BASE_BITS + 32)) as u64) << PLACE_BITS | ((1 << PLACE_BITS) - 1)
            }),
            Keyed::Wide { rows, .. } => rows.iter().map(|r| r.0).max(),
        }
    }

    fn sort(&mut self, ctx: &QueryContext<'_>) -> Result<()> {
        ctx.check()?;
        match &mut self.keyed {
            Keyed::Packed(rows) => rows.sort_unstable(),
            Keyed::Wide { rows, rest, more } => {
                let (rest, more) = (&*rest, *more);
                rows.sort_unstable_by(|a, b| compare((rest, a), (rest, b), more));
            }
        }
        ctx.check()
    }

    /// Keeps the rows that sort first, `most` of them, in any order.
    fn cut(&mut self, most: usize) {
        if most >= self.rows() {
            return;
        }
        match &mut self.keyed {
            Keyed::Packed(rows) => {
                rows.select_nth_unstable(most);
                rows.truncate(most);
            }
            Keyed::Wide { rows, rest, more } => {
                let (rest, more) = (&*rest, *more);
                rows.select_nth_unstable_by(most, |a, b| compare((rest, a), (rest, b), more));
                rows.truncate(most);
            }
        }
    }

    /// Compares rows of two orders by their keys.
    #[inline]
    fn compare(&self, at: usize, other: &Self, other_at: usize) -> Ordering {
        match (&self.keyed, &other.keyed) {
            (Keyed::Packed(a), Keyed::Packed(b)) => {
                let key = |rows: &[u128], at: usize| rows.get(at).map(|r| r >> 32);
                key(a, at).cmp(&key(b, other_at))
            }
            (
                Keyed::Wide { rows, rest, more },
                Keyed::Wide {
                    rows: other_rows,
                    rest: other_rest,
                    ..
                },
            ) => match (rows.get(at), other_rows.get(other_at)) {
                (Some(a), Some(b)) => {
                    a.0.cmp(&b.0)
                        .then_with(|| others(rest, *more, a.1).cmp(others(other_rest, *more, b.1)))
                }
                (a, b) => a.is_none().cmp(&b.is_none()),
            },
            _ => Ordering::Equal,
        }
    }
}

#[inline]
fn others(rest: &[u64], more: usize, row: u32) -> &[u64] {
    &rest[row as usize * more..(row as usize + 1) * more]
}

#[inline]
fn compare(a: (&[u64], &(u64, u32)), b: (&[u64], &(u64, u32)), more: usize) -> Ordering {
    let ((rest_a, a), (rest_b, b)) = (a, b);
    a.0.cmp(&b.0)
        .then_with(|| others(rest_a, more, a.1).cmp(others(rest_b, more, b.1)))
        .then_with(|| a.1.cmp(&b.1))
}
