//! GROUP BY: numbers the groups, and passes each row with its group's number to the aggregates.

use super::end::ToGroups;
use super::group_files::PartialGroups;
use crate::batch::{Batch, OperatorCharge, View};
use crate::compile::{LeafSource, PipelineBuilder};
use crate::executor::GroupedRows;
use crate::explore::{Halt, QueryContext};
use crate::key_table::KeyTable;
use crate::offload::Offload;
use crate::partitions::{TakeDistinct, Words};
use crate::tree::SlotLayout;
use crate::values::Accumulators;
use jindou_model::{FIRST_TAIL_ID, Holder, Result};
use jindou_plan::{Aggregate, Operator, Slot, operator};

impl<'a> PipelineBuilder<'_, 'a> {
    pub(super) fn group(
        &mut self,
        whole: &'a Operator,
        op: &'a operator::Group,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        let values = op.aggregates.iter().map(|a| a.to);
        let slots = || op.by.iter().copied().chain(values).collect();
        let ctx = &self.exec.ctx;
        if let Some((mut groups, offload)) = self.grouped(whole, node, |layout, ctx| {
            Grouping::new(&op.by, &op.aggregates, layout, ctx)
        }) {
            let mut add = |rows: View<'_>, times: &[u32]| groups.add_times(ctx, rows, times);
            if offload.groups(self.exec, whole, node, &mut add)? {
                self.exec.holds(node, groups.bytes());
                let rows = groups.finish(ctx)?;
                self.leaf(LeafSource::Whole(rows), node);
                return Ok(slots());
            }
        }
        let rows = if let Some((counted, slots)) = self.counted(&op.input, node + 1)? {
            let mut groups = Grouping::new(&op.by, &op.aggregates, &slots, ctx);
            counted.each(ctx, |rows, times| groups.add_times(ctx, rows, times))?;
            self.exec.holds(node, groups.bytes());
            LeafSource::Whole(groups.finish(ctx)?)
        } else {
            let end = ToGroups(&op.by, &op.aggregates);
            let (groups, _) = self.exec.run_into(&op.input, node + 1, end, node)?;
            groups.into_leaf(ctx, |ctx: &QueryContext<'_>| {
                Grouping::new(&op.by, &op.aggregates, &op.by, ctx)
            })?
        };
        self.leaf(rows, node);
        Ok(slots())
    }
}

impl<'a> PipelineBuilder<'_, 'a> {
    /// For a GROUP BY or COUNT whose input rows another executor produces: the state, created by `state`, and the
    /// executor. `None` if the rows are produced here.
    pub(super) fn grouped<T>(
        &self,
        op: &Operator,
        node: usize,
        state: impl FnOnce(&[Slot], &QueryContext<'a>) -> T,
    ) -> Option<(T, &'a Offload<'a>)> {
        let offload = self.exec.offload.filter(|o| o.runs_all(node))?;
        let rows = GroupedRows::of(op)?;
        Some((state(&rows.slots(), &self.exec.ctx), offload))
    }
}

/// Groups of rows by certain columns.
pub(crate) struct Groups {
    /// Column of each grouping slot; `None` for a slot that is never bound.
    columns: Vec<Option<usize>>,
    keys: KeyTable,
    zeros: Vec<u32>,
    /// Group number of each row of the batch.
    pub of_row: Vec<u32>,
}

impl Groups {
    pub fn new(by: &[Slot], layout: &[Slot], ctx: &QueryContext<'_>) -> Self {
        let vertices = ctx.snapshot.dense_ids().saturating_add(1);
        let layout = SlotLayout::new(layout);
        Self {
            columns: by.iter().map(|s| layout.position_of(*s)).collect(),
            keys: KeyTable::new(
                by.len(),
                vertices.min(FIRST_TAIL_ID),
                OperatorCharge::for_holder(Holder::GroupBy, ctx.budget),
            ),
            zeros: vec![],
            of_row: vec![],
        }
    }

    /// Number of groups so far; without grouping slots always one.
    pub fn len(&self) -> usize {
        self.keys.len().max(usize::from(self.columns.is_empty()))
    }

    pub fn bytes(&self) -> u64 {
        self.keys.bytes()
    }

    /// See [`KeyTable::with_headroom`].
    pub fn keep_headroom(&mut self) {
        self.keys.keep_headroom();
    }

    /// The keys of the groups by number.
    pub fn keys(&self) -> &KeyTable {
        &self.keys
    }

    /// Removes all groups and frees their memory.
    pub fn clear(&mut self) -> Result<()> {
        self.keys.free()
    }

    /// Sets `of_row` to the group numbers of the rows.
    pub fn find(&mut self, rows: View<'_>) -> Result<()> {
        if self.columns.iter().any(Option::is_none) && self.zeros.len() < rows.rows {
            self.zeros.resize(rows.rows, 0);
        }
        let zeros = self.zeros.get(..rows.rows).unwrap_or(&[]);
        let columns: Vec<&[u32]> = self
            .columns
            .iter()
            .map(|c| c.map_or(zeros, |c| rows.column(c)))
            .collect();
        self.keys.insert(&columns, rows.rows, &mut self.of_row)
    }

    /// Merges another worker's groups. Returns the number here of each of its groups.
    pub fn merge(&mut self, other: &Self) -> Result<Vec<u32>> {
        let width = self.columns.len();
        let mut map = Vec::with_capacity(other.len());
        if width == 0 {
            map.push(0);
            return Ok(map);
        }
        let mut columns = vec![Vec::new(); width];
        for part in other.keys.keys().chunks(width * super::BATCH) {
            for (c, column) in columns.iter_mut().enumerate() {
                column.clear();
                column.extend(part.iter().skip(c).step_by(width));
            }
            let refs: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
            self.keys
                .insert(&refs, part.len() / width, &mut self.of_row)?;
            map.extend_from_slice(&self.of_row);
        }
        Ok(map)
    }

    /// Writes the keys of the groups to the first columns of a batch, which must be large enough.
    pub fn write_keys(&self, columns: &mut [Vec<u32>]) {
        let width = self.columns.len();
        for (c, column) in columns.iter_mut().enumerate().take(width) {
            let keys = self.keys.keys().iter().skip(c).step_by(width.max(1));
            for (o, &k) in column.iter_mut().zip(keys) {
                *o = k;
            }
        }
    }
}

/// One worker's state of a GROUP BY.
pub(crate) struct Grouping {
    groups: Groups,
    aggregates: Accumulators,
    width: usize,
}

impl Grouping {
    pub fn new(
        by: &[Slot],
        aggregates: &[Aggregate],
        layout: &[Slot],
        ctx: &QueryContext<'_>,
    ) -> Self {
        Self {
            groups: Groups::new(by, layout, ctx),
            aggregates: Accumulators::new(aggregates, layout, ctx),
            width: by.len() + aggregates.len(),
        }
    }

    pub fn add(&mut self, ctx: &QueryContext<'_>, rows: View<'_>) -> Result<()> {
        if rows.columns.is_empty() && rows.rows > ctx.batch_rows {
            let mut left = rows.rows;
            while left > 0 {
                let rows = left.min(ctx.batch_rows);
                left -= rows;
                ctx.check()?;
                self.add(ctx, View { columns: &[], rows })?;
            }
            return Ok(());
        }
        self.number(rows)?;
        self.add_numbered(ctx, rows)?;
        self.aggregates.recharge()
    }

    fn number(&mut self, rows: View<'_>) -> Result<()> {
        self.groups.find(rows)?;
        self.aggregates.grow(self.groups.len())
    }

    fn add_numbered(&mut self, ctx: &QueryContext<'_>, rows: View<'_>) -> Result<()> {
        self.aggregates.add(ctx, rows, &self.groups.of_row)
    }

    /// Adds rows, each as often as `times` says; once if `times` is empty.
    pub fn add_times(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        times: &[u32],
    ) -> Result<()> {
        if times.is_empty() {
            return self.add(ctx, rows);
        }
        self.groups.find(rows)?;
        self.aggregates.grow(self.groups.len())?;
        let times = |row: usize| times[row];
        self.aggregates
            .add_times(ctx, rows, &self.groups.of_row, times)?;
        self.aggregates.recharge()
    }

    pub fn merge(&mut self, ctx: &QueryContext<'_>, mut other: Self) -> Result<()> {
        // A worker that got no rows has no states yet.
        other.aggregates.grow(other.groups.len())?;
        let map = self.groups.merge(&other.groups)?;
        self.aggregates.grow(self.groups.len())?;
        self.aggregates.merge(ctx, other.aggregates, &map)
    }

    pub fn bytes(&self) -> u64 {
        self.groups.bytes()
    }

    /// The resulting rows, as in [`PartialGroups::finish`]: the keys of each group, then the values of its aggregates.
    pub fn finish(mut self, ctx: &QueryContext<'_>) -> Result<Batch> {
        let rows = self.groups.len();
        self.aggregates.grow(rows)?;
        let mut out = Batch::new(self.width, ctx.budget);
        out.ensure(rows)?;
        out.rows = rows;
        self.groups.write_keys(&mut out.columns);
        let values = self.aggregates.finish(ctx)?;
        let from = self.width - values.len().min(self.width);
        for (column, values) in out.columns.iter_mut().skip(from).zip(values) {
            for (o, v) in column.iter_mut().zip(values) {
                *o = v;
            }
        }
        Ok(out)
    }
}

impl PartialGroups for Grouping {
    fn groups(&self) -> &Groups {
        &self.groups
    }

    fn keep_headroom(&mut self) {
        self.groups.keep_headroom();
        self.aggregates.keep_headroom();
    }

    fn count_all(&mut self) {
        self.aggregates.count_all();
    }

    fn distinct_ids(&self) -> usize {
        self.aggregates.distinct_ids()
    }

    fn are_many(&self) -> bool {
        self.aggregates.are_many()
    }

    fn is_short(&self, ctx: &QueryContext<'_>, _rows: usize) -> bool {
        self.aggregates.has_texts() && !ctx.budget.has_headroom(0)
    }

    fn add(&mut self, ctx: &QueryContext<'_>, rows: View<'_>) -> Result<()> {
        self.add(ctx, rows)
    }

    fn number(&mut self, rows: View<'_>) -> Result<()> {
        self.number(rows)
    }

    fn add_numbered(&mut self, ctx: &QueryContext<'_>, rows: View<'_>) -> Result<()> {
        self.add_numbered(ctx, rows)
    }

    fn recharge(&mut self) -> Result<()> {
        self.aggregates.recharge()
    }

    fn clear(&mut self) -> Result<()> {
        self.groups.clear()?;
        self.aggregates.clear()
    }

    fn merge(&mut self, ctx: &QueryContext<'_>, other: Self) -> Result<()> {
        self.merge(ctx, other)
    }

    fn push_states(&self, group: usize, to: &mut Vec<u32>) {
        self.aggregates.push_states(group, to);
    }

    fn merge_states(
        &mut self,
        ctx: &QueryContext<'_>,
        group: usize,
        words: &mut Words<'_>,
    ) -> Result<()> {
        self.aggregates.merge_states(ctx, group, words)
    }

    fn each_distinct(&self, f: TakeDistinct<'_>) -> Result<()> {
        self.aggregates.each_distinct(f)
    }

    fn add_distinct(
        &mut self,
        ctx: &QueryContext<'_>,
        aggregate: u32,
        group: usize,
        value: u32,
    ) -> Result<()> {
        self.aggregates.add_distinct(ctx, aggregate, group, value)
    }

    fn bytes(&self) -> u64 {
        self.bytes()
    }

    fn finish(self, ctx: &QueryContext<'_>) -> Result<Batch> {
        self.finish(ctx)
    }
}
