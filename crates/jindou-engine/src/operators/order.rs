//! ORDER BY: sorts rows by a 64-bit key per sort column. The keys of a column of ids are made from value ranks, so
//! sorting reads no strings of the base. The values of an expression that nothing else reads are computed here and get
//! no ids ([`ValueKeys`](crate::values::ValueKeys)).
//!
//! Each worker sorts its own rows; at the end the sorted parts are merged while they are output. That requires keys
//! that do not depend on other workers' rows, which only terms of the base have. If a sort column has another term, all
//! rows are sorted at the end instead. Keys of descending columns are complemented.

mod rows;

use super::BATCH;
use super::end::ToOrder;
use crate::batch::{Batch, View};
use crate::compile::{LeafSource, PipelineBuilder};
use crate::explore::{Flow, Halt, QueryContext};
use crate::tree::SlotLayout;
use crate::values::{BEYOND, Evaluator, Looked, SortKeys};
use jindou_model::{Error, MemoryBudget, Resource, Result};
use jindou_plan::{Slot, operator};
use rows::{FlatRows, KeySource, RowOrder, SortColumn, computed, directed, sort_columns};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Mutex;

/// If only the first k rows are needed, they are cut to k whenever there are this many times k, and at least [`LEAST`].
const SLACK: usize = 4;
const LEAST: usize = 4096;

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
        let end = ToOrder(op, most);
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
    by: Vec<SortColumn>,
    width: usize,
    /// Number of leading rows that a LIMIT above needs; `None` for all.
    most: Option<usize>,
    rows: FlatRows,
    /// True if a sort column has a term that is not in the base, or a triple term.
    added: bool,
    /// Set when the rows were cut to `most`: the largest first key among them. Later rows with a larger key are not
    /// needed.
    bound: Option<Bound>,
    /// The order of this worker's rows, once they are sorted.
    order: Option<RowOrder>,
    /// Rows of other workers.
    parts: Vec<WorkerRows>,
    /// Number of rows, if they have no columns.
    bare: u64,
    budget: MemoryBudget,
}

/// The first key of the last row, in the order of the sort, that is needed.
#[derive(Clone, Copy)]
enum Bound {
    /// The key of an id.
    Id(u64),
    /// The number of a computed value.
    Value(u32),
}

/// A [`Sorter`] that still gets rows, in one worker.
pub(crate) struct SortInput {
    sorter: Sorter,
    /// Evaluate the sort keys that are expressions, one for each column of [`FlatRows::values`].
    evaluators: Vec<Evaluator>,
    /// Scratch memory: for each such column, the numbers that the values of the current batch have in its
    /// [`ValueKeys`](crate::values::ValueKeys).
    values: Vec<Vec<u32>>,
    kept: Batch,
    index: Vec<u32>,
}

/// Rows of another worker, and their order if they were sorted.
struct WorkerRows {
    rows: FlatRows,
    order: Option<RowOrder>,
}

impl SortInput {
    /// # Errors
    /// `Limit` for an expression that is nested too deep.
    pub fn new(
        op: &operator::OrderBy,
        layout: &[Slot],
        most: Option<u64>,
        ctx: &QueryContext<'_>,
    ) -> Result<Self> {
        let slots = SlotLayout::new(layout);
        let evaluators = computed(op)
            .map(|e| Evaluator::new(&e.value, &slots, ctx))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            sorter: Sorter::new(op, layout, most, ctx),
            values: vec![vec![]; evaluators.len()],
            evaluators,
            kept: Batch::new(layout.len(), ctx.budget),
            index: vec![],
        })
    }

    /// The rows, sorted if their keys do not depend on other workers' rows.
    pub fn done(mut self, ctx: &QueryContext<'_>) -> Result<Sorter> {
        self.sorter.done(ctx)?;
        Ok(self.sorter)
    }

    /// Adds rows, except those that are certainly not needed.
    pub fn add(&mut self, ctx: &QueryContext<'_>, rows: View<'_>) -> Result<()> {
        let sorter = &mut self.sorter;
        if sorter.width == 0 {
            sorter.bare += rows.rows as u64;
            return Ok(());
        }
        let looked = Looked::new(ctx);
        let is_added = |by: &SortColumn| match by.from {
            KeySource::Ids(c) => rows.column(c).iter().any(|&v| looked.has(v)),
            KeySource::Values(_) => false,
        };
        sorter.added |= sorter.by.iter().any(is_added);
        if let Some(bound) = sorter.bound {
            self.push_within(ctx, rows, bound)?;
        } else {
            self.compute(ctx, rows, None)?;
            self.sorter.rows.push(rows, &self.values)?;
        }
        let sorter = &mut self.sorter;
        if let Some(most) = sorter.most
            && sorter.rows.len >= most.saturating_mul(SLACK).max(LEAST)
        {
            sorter.cut(ctx, most)?;
            // The values have other numbers now.
            self.evaluators.iter_mut().for_each(Evaluator::forget);
        }
        Ok(())
    }

    /// Computes the values of the columns, except those of the column `but`.
    fn compute(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        but: Option<usize>,
    ) -> Result<()> {
        let columns = self.sorter.rows.values.iter_mut().zip(&mut self.values);
        for (n, (evaluator, (column, out))) in self.evaluators.iter_mut().zip(columns).enumerate() {
            if Some(n) != but {
                out.resize(rows.rows, 0);
                evaluator.keys(ctx, rows, out, &mut column.keys, None)?;
            }
        }
        Ok(())
    }

    /// Adds the rows whose first key does not exceed the bound.
    fn push_within(&mut self, ctx: &QueryContext<'_>, rows: View<'_>, bound: Bound) -> Result<()> {
        self.index.clear();
        let mut first = None;
        match (self.sorter.by.first(), bound) {
            (
                Some(&SortColumn {
                    from: KeySource::Values(column),
                    descending,
                }),
                Bound::Value(bound),
            ) => {
                first = Some(column);
                let out = &mut self.values[column];
                out.resize(rows.rows, 0);
                let keys = &mut self.sorter.rows.values[column].keys;
                let bound = Some((bound, descending));
                self.evaluators[column].keys(ctx, rows, out, keys, bound)?;
                let within = (0u32..).zip(&*out).filter(|(_, v)| **v != BEYOND);
                self.index.extend(within.map(|(row, _)| row));
            }
            (
                Some(&SortColumn {
                    from: KeySource::Ids(column),
                    descending,
                }),
                Bound::Id(bound),
            ) if !self.sorter.added => {
                let keys = SortKeys::new(ctx);
                let rows = (0u32..).zip(rows.column(column));
                let within = rows.filter(|(_, id)| directed(keys.key(**id), descending) <= bound);
                self.index.extend(within.map(|(row, _)| row));
            }
            _ => self.index.extend(0..rows.rows as u32),
        }
        if self.index.len() == rows.rows {
            self.compute(ctx, rows, first)?;
            return self.sorter.rows.push(rows, &self.values);
        }
        let mut kept = std::mem::replace(&mut self.kept, Batch::new(0, ctx.budget));
        kept.ensure(self.index.len())?;
        for c in 0..self.sorter.width {
            kept.gather(c, 0, rows.column(c), &self.index);
        }
        kept.rows = self.index.len();
        self.compute(ctx, kept.view(), first)?;
        self.sorter.rows.push(kept.view(), &self.values)?;
        self.kept = kept;
        Ok(())
    }
}

impl Sorter {
    fn new(
        op: &operator::OrderBy,
        layout: &[Slot],
        most: Option<u64>,
        ctx: &QueryContext<'_>,
    ) -> Self {
        Self {
            by: sort_columns(op, layout),
            width: layout.len(),
            most: most.and_then(|m| usize::try_from(m).ok()),
            rows: FlatRows::new(layout.len(), computed(op).count(), ctx.budget),
            added: false,
            bound: None,
            order: None,
            parts: vec![],
            bare: 0,
            budget: ctx.budget.clone(),
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        let of = |rows: &FlatRows, order: &Option<RowOrder>| {
            rows.bytes() + order.as_ref().map_or(0, RowOrder::bytes)
        };
        let parts: u64 = self.parts.iter().map(|p| of(&p.rows, &p.order)).sum();
        parts + of(&self.rows, &self.order)
    }

    /// Removes all but the first `most` rows in sort order.
    fn cut(&mut self, ctx: &QueryContext<'_>, most: usize) -> Result<()> {
        let mut order = RowOrder::new(&self.by, &self.rows, self.added, ctx)?;
        order.cut(most, &self.by, &self.rows, ctx)?;
        self.rows.keep(&order)?;
        if order.rows() < most {
            return Ok(());
        }
        self.bound = match self.by.first() {
            Some(&SortColumn {
                from: KeySource::Values(column),
                descending,
            }) => self.rows.values[column].last(descending).map(Bound::Value),
            _ if self.added => None,
            _ => order.greatest().map(Bound::Id),
        };
        Ok(())
    }

    /// Sorts this worker's rows, if their keys do not depend on other workers' rows.
    fn done(&mut self, ctx: &QueryContext<'_>) -> Result<()> {
        if self.width == 0 || self.added || u32::try_from(self.rows.len).is_err() {
            return Ok(());
        }
        if let Some(most) = self.most
            && most < self.rows.len
        {
            self.cut(ctx, most)?;
        }
        let mut order = RowOrder::new(&self.by, &self.rows, false, ctx)?;
        order.sort(&self.by, &self.rows, ctx)?;
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
            order.sort(&self.by, &self.rows, ctx)?;
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
        let mut next = RowMerge::new(&self.by, &parts);
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
    fn new(by: &'m [SortColumn], parts: &'m [(&'m FlatRows, &'m RowOrder)]) -> Self {
        let mut heads = BinaryHeap::new();
        if parts.len() > 1 {
            for (part, (rows, order)) in parts.iter().enumerate() {
                heads.extend((order.rows() > 0).then_some(Reverse(MergeHead {
                    by,
                    part,
                    at: 0,
                    rows,
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
        let MergeHead {
            at, rows, order, ..
        } = head.0;
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
    by: &'m [SortColumn],
    part: usize,
    at: usize,
    rows: &'m FlatRows,
    order: &'m RowOrder,
}

impl Ord for MergeHead<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order
            .compare(
                self.by,
                (self.at, self.rows),
                other.order,
                (other.at, other.rows),
            )
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
