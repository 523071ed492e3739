//! ORDER BY: sorts rows by a 64-bit key per sort column. The keys of a column of ids are made from value ranks, so
//! sorting reads no strings of the base. The values of an expression that nothing else reads are computed here and get
//! no ids ([`ValueKeys`](crate::values::ValueKeys)).
//!
//! Each worker sorts its own rows; at the end the sorted parts are merged while they are output. That requires keys
//! that do not depend on other workers' rows, which only terms of the base have. If a sort column has another term, all
//! rows are sorted at the end instead. Keys of descending columns are complemented.
//!
//! If the query may create temporary files, a worker that gets no memory for more rows sorts those that it has and
//! writes them as a *run* ([`runs`]). At the end all rows are in runs, which are merged ([`merge`]). Keys of ids are not
//! written, but computed again from the ids. The order of terms that only one worker has seen is the same among the
//! terms of all workers, so their runs need not be sorted again.

mod merge;
mod row_order;
mod rows;
mod runs;

use super::BATCH;
use super::end::ToOrder;
use crate::batch::{Batch, View};
use crate::compile::{LeafSource, PipelineBuilder};
use crate::explore::{Flow, Halt, QueryContext};
use crate::tree::SlotLayout;
use crate::values::{BEYOND, Evaluator, Looked, SortKeys};
use jindou_model::{Error, MemoryBudget, Resource, Result};
use jindou_plan::{Slot, operator};
use merge::{RowMerge, RunRows, SortedPart};
use row_order::RowOrder;
use rows::{FlatRows, KeySource, SortColumn, computed, directed, sort_columns};
use runs::{Run, RunFiles, RunWriter};
use rustc_hash::FxHashSet;
use std::sync::{Arc, Mutex};

/// If only the first k rows are needed, they are cut to k whenever there are this many times k, and at least [`LEAST`].
const SLACK: usize = 4;
const LEAST: usize = 4096;
/// Rows written between two checks of the query's token.
const CHECK: usize = 1 << 12;

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
    /// This worker's rows.
    own: WorkerRows,
    /// True if a sort column has a term that is not in the base, or a triple term.
    added: bool,
    /// Set when the rows were cut to `most`: the largest first key among them. Later rows with a larger key are not
    /// needed.
    bound: Option<Bound>,
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

/// The rows of one worker.
struct WorkerRows {
    rows: FlatRows,
    /// The order of `rows`, once they are sorted.
    order: Option<RowOrder>,
    /// Rows that were written to files before.
    runs: Vec<Run>,
    files: Option<Arc<RunFiles>>,
    /// Ids in sort columns of `runs` whose terms must be read for their keys.
    looked: FxHashSet<u32>,
}

impl WorkerRows {
    fn has_rows(&self) -> bool {
        self.rows.len > 0 || !self.runs.is_empty()
    }

    fn bytes(&self) -> u64 {
        self.rows.bytes() + self.order.as_ref().map_or(0, RowOrder::bytes)
    }

    /// Writes the rows in memory to a run, without those after the first `most`. Returns the largest first key if there
    /// are `most`.
    fn write(
        &mut self,
        by: &[SortColumn],
        added: bool,
        most: Option<usize>,
        ctx: &QueryContext<'_>,
    ) -> Result<Option<u64>> {
        let Some(temp) = ctx.temp.filter(|_| self.rows.len > 0) else {
            return Ok(None);
        };
        if added {
            self.looked.extend(self.rows.looked(by, Looked::new(ctx)));
        }
        let mut greatest = None;
        let order = match self.order.take() {
            Some(order) => order,
            None => {
                let mut order = RowOrder::new(by, &mut self.rows, added, ctx)?;
                if let Some(most) = most.filter(|most| *most < self.rows.len) {
                    order.cut(most, by, &self.rows, ctx)?;
                    greatest = order.greatest();
                }
                order.sort(by, &self.rows, ctx)?;
                order
            }
        };
        let files = match &self.files {
            Some(files) => files,
            None => {
                let has_values = !self.rows.values.is_empty();
                self.files.insert(RunFiles::new(temp, has_values)?)
            }
        };
        let mut writer = RunWriter::new(files);
        for at in 0..order.rows() {
            if at.is_multiple_of(CHECK) {
                ctx.check()?;
            }
            writer.push(&self.rows, order.row(at))?;
        }
        self.runs.push(writer.finish()?);
        // The memory is freed, since another worker may need it more.
        drop(order);
        self.rows.free()?;
        Ok(greatest)
    }
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

    /// Adds rows, except those that are certainly not needed. If there is no memory for them, the rows so far are written
    /// to a file.
    pub fn add(&mut self, ctx: &QueryContext<'_>, rows: View<'_>) -> Result<()> {
        if self.sorter.width == 0 {
            self.sorter.bare += rows.rows as u64;
            return Ok(());
        }
        match self.add_in_memory(ctx, rows) {
            Err(e) if e.is_of_memory() && self.can_write(ctx) => {
                self.write(ctx)?;
                match self.add_in_memory(ctx, rows) {
                    Err(e) if e.is_of_memory() && rows.rows > 1 => self.add_halves(ctx, rows),
                    done => done,
                }
            }
            Err(e)
                if e.is_of_memory()
                    && ctx.temp.is_some()
                    && rows.rows > 1
                    && self.sorter.own.rows.len == 0 =>
            {
                self.add_halves(ctx, rows)
            }
            done => done,
        }
    }

    /// Adds rows of a batch whose values are too long for the memory together. There are no rows in memory.
    fn add_halves(&mut self, ctx: &QueryContext<'_>, rows: View<'_>) -> Result<()> {
        // Values of some of the rows were computed.
        self.sorter.own.rows.free()?;
        self.evaluators.iter_mut().for_each(Evaluator::forget);
        let mut part = Batch::new(self.sorter.width, ctx.budget);
        let columns: Vec<&[u32]> = (0..self.sorter.width).map(|c| rows.column(c)).collect();
        let half = rows.rows / 2;
        for rows in [0..half, half..rows.rows] {
            part.copy_columns(&columns, rows.start, rows.len())?;
            self.add(ctx, part.view())?;
        }
        Ok(())
    }

    fn can_write(&self, ctx: &QueryContext<'_>) -> bool {
        ctx.temp.is_some() && self.sorter.own.rows.is_worth_writing()
    }

    /// Writes the rows in memory to a file.
    fn write(&mut self, ctx: &QueryContext<'_>) -> Result<()> {
        let Sorter {
            by,
            own,
            added,
            most,
            bound,
            ..
        } = &mut self.sorter;
        let greatest = own.write(by, *added, *most, ctx)?;
        // Values are numbered from 0 again, and keys of added terms are comparable only within a run.
        let is_kept = matches!(bound, Some(Bound::Id(_))) && !*added;
        if !is_kept {
            *bound = None;
        }
        if let (Some(greatest), Some(KeySource::Ids(_)), false) =
            (greatest, by.first().map(|by| by.from), *added)
        {
            *bound = Some(Bound::Id(greatest));
        }
        self.evaluators.iter_mut().for_each(Evaluator::forget);
        Ok(())
    }

    fn add_in_memory(&mut self, ctx: &QueryContext<'_>, rows: View<'_>) -> Result<()> {
        let sorter = &mut self.sorter;
        let looked = Looked::new(ctx);
        let is_added = |by: &SortColumn| match by.from {
            KeySource::Ids(c) => rows.column(c).iter().any(|&v| looked.has(v)),
            KeySource::Values(_) => false,
        };
        if !sorter.added && sorter.by.iter().any(is_added) {
            sorter.added = true;
            let bytes = RowOrder::bytes_of_row(&sorter.by, true);
            sorter.own.rows.charge_for_order(bytes);
        }
        if let Some(bound) = sorter.bound {
            self.push_within(ctx, rows, bound)?;
        } else {
            self.compute(ctx, rows, None)?;
            self.sorter.own.rows.push(rows, &self.values)?;
        }
        let sorter = &mut self.sorter;
        if let Some(most) = sorter.most
            && sorter.own.rows.len >= most.saturating_mul(SLACK).max(LEAST)
        {
            match sorter.cut(ctx, most) {
                Err(e) if e.is_of_memory() && self.can_write(ctx) => self.write(ctx)?,
                done => done?,
            }
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
        let columns = self.sorter.own.rows.values.iter_mut().zip(&mut self.values);
        for (n, (evaluator, (column, out))) in self.evaluators.iter_mut().zip(columns).enumerate() {
            if Some(n) != but {
                out.resize(rows.rows, 0);
                evaluator.keys(ctx, rows, out, &mut column.keys, None)?;
            }
        }
        Ok(())
    }

    /// Adds the rows with the numbers `self.index`, which are copied to `kept`. The values of the column `first` are
    /// computed already.
    fn push_kept(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        first: Option<usize>,
        kept: &mut Batch,
    ) -> Result<()> {
        kept.ensure(self.index.len())?;
        for c in 0..self.sorter.width {
            kept.gather(c, 0, rows.column(c), &self.index);
        }
        kept.rows = self.index.len();
        self.compute(ctx, kept.view(), first)?;
        self.sorter.own.rows.push(kept.view(), &self.values)
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
                let keys = &mut self.sorter.own.rows.values[column].keys;
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
            return self.sorter.own.rows.push(rows, &self.values);
        }
        let mut kept = std::mem::replace(&mut self.kept, Batch::new(0, ctx.budget));
        let done = self.push_kept(ctx, rows, first, &mut kept);
        self.kept = kept;
        done
    }
}

impl Sorter {
    fn new(
        op: &operator::OrderBy,
        layout: &[Slot],
        most: Option<u64>,
        ctx: &QueryContext<'_>,
    ) -> Self {
        let by = sort_columns(op, layout);
        let order_bytes = ctx.temp.map(|_| RowOrder::bytes_of_row(&by, false));
        let values = computed(op).count();
        Self {
            by,
            width: layout.len(),
            most: most.and_then(|m| usize::try_from(m).ok()),
            own: WorkerRows {
                rows: FlatRows::new(layout.len(), values, order_bytes, ctx.budget),
                order: None,
                runs: vec![],
                files: None,
                looked: FxHashSet::default(),
            },
            added: false,
            bound: None,
            parts: vec![],
            bare: 0,
            budget: ctx.budget.clone(),
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        let parts: u64 = self.parts.iter().map(WorkerRows::bytes).sum();
        parts + self.own.bytes()
    }

    /// Removes all but the first `most` rows in sort order.
    fn cut(&mut self, ctx: &QueryContext<'_>, most: usize) -> Result<()> {
        let rows = &mut self.own.rows;
        let mut order = RowOrder::new(&self.by, rows, self.added, ctx)?;
        order.cut(most, &self.by, rows, ctx)?;
        rows.keep(&order)?;
        if order.rows() < most {
            return Ok(());
        }
        self.bound = match self.by.first() {
            Some(&SortColumn {
                from: KeySource::Values(column),
                descending,
            }) => rows.values[column].last(descending).map(Bound::Value),
            _ if self.added => None,
            _ => order.greatest().map(Bound::Id),
        };
        Ok(())
    }

    /// Sorts this worker's rows, if their keys do not depend on other workers' rows. If some were written to files, the
    /// others are written as well.
    fn done(&mut self, ctx: &QueryContext<'_>) -> Result<()> {
        if !self.own.runs.is_empty() {
            self.own.write(&self.by, self.added, self.most, ctx)?;
            return Ok(());
        }
        if self.width == 0 || self.added || u32::try_from(self.own.rows.len).is_err() {
            return Ok(());
        }
        if let Some(most) = self.most
            && most < self.own.rows.len
        {
            self.cut(ctx, most)?;
        }
        let mut order = RowOrder::new(&self.by, &mut self.own.rows, false, ctx)?;
        order.sort(&self.by, &self.own.rows, ctx)?;
        self.own.order = Some(order);
        Ok(())
    }

    /// Takes over the rows of another worker.
    pub fn merge(&mut self, other: Self) -> Result<()> {
        self.bare += other.bare;
        self.added |= other.added;
        self.parts.push(other.own);
        self.parts.extend(other.parts);
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.bare == 0 && !self.own.has_rows() && !self.parts.iter().any(WorkerRows::has_rows)
    }

    /// Outputs all rows in order.
    pub fn give(&mut self, ctx: &QueryContext<'_>, to: &mut dyn FnMut(View<'_>) -> Flow) -> Flow {
        if self.width == 0 {
            let rows = usize::try_from(self.bare).unwrap_or(usize::MAX);
            return to(View { columns: &[], rows });
        }
        self.parts.retain(WorkerRows::has_rows);
        let all = || std::iter::once(&self.own).chain(&self.parts);
        if all().any(|p| !p.runs.is_empty()) {
            return self.give_runs(ctx, to);
        }
        if !all().all(|p| p.order.is_some()) {
            if !self.has_room_to_join(ctx) {
                return self.give_runs(ctx, to);
            }
            self.join(ctx)?;
        }
        let mut parts = Vec::with_capacity(1 + self.parts.len());
        let empty = || FlatRows::new(self.width, 0, None, &self.budget);
        for part in std::iter::once(&mut self.own).chain(&mut self.parts) {
            if let Some(order) = part.order.take().filter(|o| o.rows() > 0) {
                let rows = std::mem::replace(&mut part.rows, empty());
                parts.push(SortedPart::of_rows(rows, order));
            }
        }
        self.give_merged(&mut RowMerge::new(&self.by, parts), ctx, to)
    }

    /// Moves the rows of all workers together and sorts them.
    fn join(&mut self, ctx: &QueryContext<'_>) -> Result<()> {
        let own = &mut self.own;
        own.order = None;
        for part in std::mem::take(&mut self.parts) {
            drop(part.order);
            own.rows.append(&part.rows)?;
        }
        if u32::try_from(own.rows.len).is_err() {
            return Err(Error::limit(
                Resource::Numbers,
                "ORDER BY takes at most 4 billion rows",
            ));
        }
        if let Some(most) = self.most
            && most < self.own.rows.len
        {
            self.cut(ctx, most)?;
        }
        let mut order = RowOrder::new(&self.by, &mut self.own.rows, self.added, ctx)?;
        order.sort(&self.by, &self.own.rows, ctx)?;
        self.own.order = Some(order);
        Ok(())
    }

    /// False if [`Self::join`] might fail for lack of memory and the rows can be written to files instead.
    fn has_room_to_join(&self, ctx: &QueryContext<'_>) -> bool {
        if ctx.temp.is_none() || self.parts.is_empty() {
            return true;
        }
        let parts = self.parts.iter();
        let rows = self.own.rows.len + parts.map(|p| p.rows.len).sum::<usize>();
        let order = rows * RowOrder::bytes_of_row(&self.by, true);
        ctx.budget.has_headroom(order as u64 + 2 * self.bytes())
    }

    /// Outputs all rows in order, of which some are in files, and the others are written first.
    fn give_runs(&mut self, ctx: &QueryContext<'_>, to: &mut dyn FnMut(View<'_>) -> Flow) -> Flow {
        let values = self.own.rows.values.len();
        let (mut runs, mut looked) = (Vec::new(), FxHashSet::default());
        for part in std::iter::once(&mut self.own).chain(&mut self.parts) {
            part.write(&self.by, self.added, self.most, ctx)?;
            runs.append(&mut part.runs);
            part.files = None;
            looked.extend(part.looked.drain());
        }
        let mut keys = SortKeys::new(ctx);
        keys.place_added(ctx, looked.into_iter())?;
        let of = RunRows {
            by: &self.by,
            width: self.width,
            values,
            keys: &keys,
            added: self.added,
        };
        self.give_merged(&mut of.merge(runs, ctx)?, ctx, to)
    }

    fn give_merged(
        &self,
        rows: &mut RowMerge<'_>,
        ctx: &QueryContext<'_>,
        to: &mut dyn FnMut(View<'_>) -> Flow,
    ) -> Flow {
        let mut out = Batch::new(self.width, &self.budget);
        out.ensure(BATCH)?;
        let mut left = self.most.unwrap_or(usize::MAX);
        while left > 0 {
            ctx.check()?;
            rows.fill(&mut out, BATCH.min(left), ctx)?;
            if out.rows == 0 {
                break;
            }
            left -= out.rows;
            to(out.view())?;
        }
        Ok(())
    }
}
