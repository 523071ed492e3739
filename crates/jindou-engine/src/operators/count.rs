//! COUNT with and without groups.

use super::end::ToCounts;
use super::group::Groups;
use super::group_files::PartialGroups;
use crate::batch::{Batch, OperatorCharge, View};
use crate::compile::{LeafSource, PipelineBuilder};
use crate::explore::{Halt, QueryContext};
use crate::partitions::{TakeDistinct, Words, push_u64};
use crate::table::{IdSet, TupleSet};
use crate::tree::SlotLayout;
use jindou_model::{Holder, Result, term};
use jindou_plan::{Count, Operator, Slot, operator};

/// Number of distinct values from which on they are written to files when memory is short.
const MANY_VALUES: usize = 1 << 10;
/// Largest number of rows without columns that are processed together.
const MOST_BARE: usize = 1 << 16;

impl<'a> PipelineBuilder<'_, 'a> {
    pub(super) fn count(
        &mut self,
        whole: &'a Operator,
        op: &'a operator::GroupCount,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        let counts = op.counts.iter().map(|c| c.to);
        let slots = || op.group.iter().copied().chain(counts).collect();
        if let Some((mut counter, offload)) = self.grouped(whole, node, |layout, ctx| {
            GroupCounter::new(&op.group, &op.counts, layout, ctx)
        }) {
            let mut add = |rows: View<'_>, times: &[u32]| counter.add_times(rows, times);
            if offload.groups(self.exec, whole, node, &mut add)? {
                self.exec.holds(node, counter.bytes());
                let rows = counter.finish(&self.exec.ctx)?;
                self.leaf(LeafSource::Whole(rows), node);
                return Ok(slots());
            }
        }
        if let Some(offload) = self.exec.offload
            && let Some(numbers) = offload.counts(self.exec, whole, node)?
        {
            let rows = one_row(&numbers, &self.exec.ctx)?;
            self.leaf(LeafSource::Whole(rows), node);
            return Ok(op.counts.iter().map(|c| c.to).collect());
        }
        let ctx = &self.exec.ctx;
        let rows = if let Some((counted, slots)) = self.counted(&op.input, node + 1)? {
            let mut counter = GroupCounter::new(&op.group, &op.counts, &slots, ctx);
            counted.each(ctx, |rows, times| counter.add_times(rows, times))?;
            self.exec.holds(node, counter.bytes());
            LeafSource::Whole(counter.finish(ctx)?)
        } else {
            let end = ToCounts(&op.group, &op.counts);
            let (counter, _) = self.exec.run_into(&op.input, node + 1, end, node)?;
            counter.into_leaf(ctx, |ctx: &QueryContext<'_>| {
                GroupCounter::new(&op.group, &op.counts, &op.group, ctx)
            })?
        };
        self.leaf(rows, node);
        Ok(slots())
    }
}

/// The distinct values that one count has seen, in the form that it needs.
enum DistinctValues {
    /// Not a COUNT(DISTINCT): every row counts.
    No,
    /// Ids of a single column; only without GROUP BY.
    Ids(IdSet),
    /// Tuples of the group number and the counted values.
    Rows(TupleSet),
}

struct CountState {
    /// Column of the counted slot; `None` if rows are counted.
    of: Option<usize>,
    /// True if the counted slot is never bound.
    never: bool,
    /// Columns that must differ for a row to be distinct.
    row: Vec<usize>,
    distinct: DistinctValues,
    /// The count of each group.
    numbers: Vec<u64>,
}

pub(crate) struct GroupCounter<'a> {
    group: &'a [Slot],
    groups: Groups,
    counts: Vec<CountState>,
    tuple: Vec<u32>,
    charge: OperatorCharge,
}

impl<'a> GroupCounter<'a> {
    pub fn new(
        group: &'a [Slot],
        counts: &'a [Count],
        layout: &[Slot],
        ctx: &QueryContext<'_>,
    ) -> Self {
        let places = SlotLayout::new(layout);
        let column = |s: &Slot| places.position_of(*s);
        let counts = counts
            .iter()
            .map(|c| {
                let of = c.of.as_ref().and_then(column);
                let row: Vec<usize> = match (&c.of, of) {
                    (Some(_), Some(of)) => vec![of],
                    (Some(_), None) => vec![],
                    (None, _) => c.row.iter().filter_map(column).collect(),
                };
                let distinct = match (c.distinct, group.is_empty(), row.len()) {
                    (false, ..) => DistinctValues::No,
                    (true, true, 1) => {
                        DistinctValues::Ids(IdSet::new(ctx.snapshot.dense_ids(), ctx.budget))
                    }
                    (true, ..) => DistinctValues::Rows(TupleSet::new(row.len() + 1, ctx.budget)),
                };
                CountState {
                    of,
                    never: c.of.is_some() && of.is_none(),
                    row,
                    distinct,
                    numbers: vec![],
                }
            })
            .collect();
        Self {
            group,
            groups: Groups::new(group, layout, ctx),
            counts,
            tuple: vec![],
            charge: OperatorCharge::for_holder(Holder::Count, ctx.budget),
        }
    }

    pub fn add(&mut self, rows: View<'_>) -> Result<()> {
        if rows.columns.is_empty() && rows.rows > MOST_BARE && !self.group.is_empty() {
            let mut left = rows.rows;
            while left > 0 {
                let rows = left.min(MOST_BARE);
                left -= rows;
                self.add(View { columns: &[], rows })?;
            }
            return Ok(());
        }
        self.number(rows)?;
        self.add_numbered(rows)
    }

    /// Finds or adds the groups of rows.
    fn number(&mut self, rows: View<'_>) -> Result<()> {
        if self.group.is_empty() {
            for c in &mut self.counts {
                c.numbers.resize(1, 0);
            }
        } else if rows.columns.is_empty() && rows.rows > 1 {
            // Without columns all rows belong to one group.
            self.groups.find(View {
                columns: &[],
                rows: 1,
            })?;
            let g = self.groups.of_row[0];
            self.groups.of_row.resize(rows.rows, g);
            self.room()?;
        } else {
            self.groups.find(rows)?;
            self.room()?;
        }
        Ok(())
    }

    fn add_numbered(&mut self, rows: View<'_>) -> Result<()> {
        for c in &mut self.counts {
            if c.never {
                continue;
            }
            match &mut c.distinct {
                DistinctValues::No if self.group.is_empty() => {
                    c.numbers[0] += match c.of {
                        None => rows.rows as u64,
                        Some(of) => rows
                            .column(of)
                            .iter()
                            .map(|&v| u64::from(v != 0))
                            .sum::<u64>(),
                    };
                }
                DistinctValues::No => match c.of {
                    None => {
                        for &g in &self.groups.of_row {
                            c.numbers[g as usize] += 1;
                        }
                    }
                    Some(of) => {
                        for (&g, &v) in self.groups.of_row.iter().zip(rows.column(of)) {
                            c.numbers[g as usize] += u64::from(v != 0);
                        }
                    }
                },
                DistinctValues::Ids(set) => {
                    let column = c.row[0];
                    for &v in rows.column(column) {
                        // COUNT(DISTINCT ?x) ignores unbound values; COUNT(DISTINCT *) counts a row with an unbound
                        // value.
                        if (v != 0 || c.of.is_none()) && set.insert(v)? {
                            c.numbers[0] += 1;
                        }
                    }
                }
                DistinctValues::Rows(set) => {
                    // Without columns all rows of a group are equal.
                    let different = if rows.columns.is_empty() {
                        1
                    } else {
                        rows.rows
                    };
                    for row in 0..different.min(rows.rows) {
                        // Without grouping slots there is one group.
                        let g = self.groups.of_row.get(row).copied().unwrap_or(0);
                        self.tuple.clear();
                        self.tuple.push(g);
                        for &column in &c.row {
                            self.tuple.push(rows.column(column)[row]);
                        }
                        if c.of.is_some() && self.tuple.get(1) == Some(&0) {
                            continue;
                        }
                        if set.insert(&self.tuple)?.1 {
                            c.numbers[g as usize] += 1;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds rows with columns, each as often as `times` says; once if `times` is empty.
    pub fn add_times(&mut self, rows: View<'_>, times: &[u32]) -> Result<()> {
        if times.is_empty() {
            return self.add(rows);
        }
        self.add(rows)?;
        // Each row was added once; this adds the other times. It does not affect distinct counts.
        for c in &mut self.counts {
            if c.never || !matches!(c.distinct, DistinctValues::No) {
                continue;
            }
            for (row, &n) in times.iter().enumerate() {
                let group = match self.group.is_empty() {
                    true => 0,
                    false => self.groups.of_row[row] as usize,
                };
                let counts = c.of.is_none_or(|of| rows.column(of).get(row) != Some(&0));
                if let Some(sum) = c.numbers.get_mut(group).filter(|_| counts) {
                    *sum = sum.wrapping_add(u64::from(n).wrapping_sub(1));
                }
            }
        }
        Ok(())
    }

    fn room(&mut self) -> Result<()> {
        let (n, each) = (self.groups.len(), 8 * self.counts.len());
        let has = self.counts.iter().map(|c| c.numbers.capacity()).min();
        let has = has.unwrap_or(n);
        if n > has {
            let room = n.next_power_of_two();
            // While the numbers are moved, the old and the new memory exist together.
            self.charge.set((has + room) * each)?;
            for c in &mut self.counts {
                c.numbers.reserve_exact(room - c.numbers.len());
            }
            self.charge.set(room * each)?;
        }
        for c in &mut self.counts {
            c.numbers.resize(n, 0);
        }
        Ok(())
    }

    /// Adds another worker's counts.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        let number = self.groups.merge(&other.groups)?;
        self.room()?;
        for (c, o) in self.counts.iter_mut().zip(&other.counts) {
            match (&mut c.distinct, &o.distinct) {
                (DistinctValues::Ids(a), DistinctValues::Ids(b)) => {
                    b.for_each(|id| a.insert(id).map(|_| ()))?;
                    c.numbers[0] = a.len();
                }
                (DistinctValues::Rows(a), DistinctValues::Rows(b)) => {
                    for t in b.tuples() {
                        self.tuple.clear();
                        self.tuple.extend_from_slice(t);
                        let Some(g) = self.tuple.first_mut() else {
                            continue;
                        };
                        *g = number[*g as usize];
                        let g = *g;
                        if a.insert(&self.tuple)?.1 {
                            c.numbers[g as usize] += 1;
                        }
                    }
                }
                _ => {
                    for (&g, &n) in number.iter().zip(&o.numbers) {
                        c.numbers[g as usize] += n;
                    }
                }
            }
        }
        Ok(())
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.groups.bytes() + self.charge.bytes()
    }

    /// The groups with their counts. Without group slots there is always one row.
    pub fn finish(mut self, ctx: &QueryContext<'_>) -> Result<Batch> {
        let width = self.group.len();
        let groups = self.groups.len();
        self.room()?;
        let mut out = Batch::new(width + self.counts.len(), ctx.budget);
        out.ensure(groups)?;
        out.rows = groups;
        self.groups.write_keys(&mut out.columns);
        let mut small = SmallNumbers::default();
        for (column, count) in out.columns.iter_mut().skip(width).zip(&self.counts) {
            for (i, (o, &n)) in column.iter_mut().zip(&count.numbers).enumerate() {
                if i % 65_536 == 0 {
                    ctx.check()?;
                }
                *o = small.id(ctx, n)?;
            }
        }
        Ok(out)
    }
}

impl PartialGroups for GroupCounter<'_> {
    fn groups(&self) -> &Groups {
        &self.groups
    }

    fn keep_headroom(&mut self) {
        self.groups.keep_headroom();
    }

    fn count_all(&mut self) {
        for c in &mut self.counts {
            c.distinct = DistinctValues::No;
        }
    }

    fn distinct_ids(&self) -> usize {
        let ids = self.counts.iter().map(|c| match &c.distinct {
            DistinctValues::No => 0,
            DistinctValues::Ids(_) => 1,
            DistinctValues::Rows(_) => c.row.len().max(1),
        });
        ids.max().unwrap_or(0)
    }

    fn are_many(&self) -> bool {
        let values = self.counts.iter().map(|c| match &c.distinct {
            DistinctValues::No | DistinctValues::Ids(_) => 0,
            DistinctValues::Rows(set) => set.len(),
        });
        let least = match self.charge.budget().is_scarce() {
            true => 8,
            false => MANY_VALUES,
        };
        self.groups.keys().has_many() || values.sum::<usize>() >= least
    }

    fn is_short(&self, _ctx: &QueryContext<'_>, rows: usize) -> bool {
        let is_full = |set: &TupleSet| !set.has_room(rows);
        (self.counts.iter())
            .any(|c| matches!(&c.distinct, DistinctValues::Rows(set) if is_full(set)))
    }

    fn add(&mut self, _ctx: &QueryContext<'_>, rows: View<'_>) -> Result<()> {
        self.add(rows)
    }

    fn number(&mut self, rows: View<'_>) -> Result<()> {
        self.number(rows)
    }

    fn add_numbered(&mut self, _ctx: &QueryContext<'_>, rows: View<'_>) -> Result<()> {
        self.add_numbered(rows)
    }

    fn recharge(&mut self) -> Result<()> {
        Ok(())
    }

    fn clear(&mut self) -> Result<()> {
        for c in &mut self.counts {
            c.numbers = vec![];
            match &mut c.distinct {
                DistinctValues::No => {}
                DistinctValues::Ids(set) => set.clear()?,
                DistinctValues::Rows(set) => set.clear()?,
            }
        }
        self.groups.clear()?;
        self.charge.set(0)
    }

    fn merge(&mut self, _ctx: &QueryContext<'_>, other: Self) -> Result<()> {
        self.merge(&other)
    }

    fn push_states(&self, group: usize, to: &mut Vec<u32>) {
        for c in &self.counts {
            let is_all = matches!(c.distinct, DistinctValues::No);
            let number = c.numbers.get(group).copied().filter(|_| is_all);
            push_u64(to, number.unwrap_or(0));
        }
    }

    fn merge_states(
        &mut self,
        _ctx: &QueryContext<'_>,
        group: usize,
        words: &mut Words<'_>,
    ) -> Result<()> {
        for c in &mut self.counts {
            c.numbers[group] += words.u64();
        }
        Ok(())
    }

    fn each_distinct(&self, f: TakeDistinct<'_>) -> Result<()> {
        for (n, c) in (0u32..).zip(&self.counts) {
            match &c.distinct {
                DistinctValues::No => {}
                DistinctValues::Ids(set) => set.for_each(|id| f(n, 0, &[id]))?,
                DistinctValues::Rows(set) => {
                    for tuple in set.tuples() {
                        if let Some((group, row)) = tuple.split_first() {
                            f(n, *group, row)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn add_distinct(
        &mut self,
        _ctx: &QueryContext<'_>,
        aggregate: u32,
        group: usize,
        _value: u32,
    ) -> Result<()> {
        if let Some(c) = self.counts.get_mut(aggregate as usize) {
            c.numbers[group] += 1;
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        let sets = self.counts.iter().map(|c| match &c.distinct {
            DistinctValues::Rows(set) => set.bytes(),
            DistinctValues::No | DistinctValues::Ids(_) => 0,
        });
        self.bytes() + sets.sum::<u64>()
    }

    fn finish(self, ctx: &QueryContext<'_>) -> Result<Batch> {
        self.finish(ctx)
    }
}

/// One row with counts that another executor computed.
fn one_row(numbers: &[u64], ctx: &QueryContext<'_>) -> Result<Batch> {
    let mut out = Batch::new(numbers.len(), ctx.budget);
    out.ensure(1)?;
    out.rows = 1;
    for (column, &n) in out.columns.iter_mut().zip(numbers) {
        if let Some(first) = column.first_mut() {
            *first = number(ctx, n)?;
        }
    }
    Ok(out)
}

/// Cache of the ids of small numbers, since most counts are small.
#[derive(Default)]
struct SmallNumbers {
    ids: Vec<u32>,
}

impl SmallNumbers {
    fn id(&mut self, ctx: &QueryContext<'_>, n: u64) -> Result<u32> {
        const SMALL: u64 = 1024;
        if n >= SMALL {
            return number(ctx, n);
        }
        let at = n as usize;
        if self.ids.len() <= at {
            self.ids.resize(at + 1, 0);
        }
        if self.ids[at] == 0 {
            self.ids[at] = number(ctx, n)?;
        }
        Ok(self.ids[at])
    }
}

/// Id of an `xsd:integer`. If the store has the term, it is the store's id, since the number may be joined with others.
fn number(ctx: &QueryContext<'_>, n: u64) -> Result<u32> {
    let mut bytes = vec![term::FIRST_DATATYPE];
    bytes.extend_from_slice(n.to_string().as_bytes());
    Ok(ctx.terms.resolve(ctx.vocabulary, &bytes, ctx.budget)?.0)
}
