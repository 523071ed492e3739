//! COUNT with and without groups.

use super::end::{End, EndSpec};
use super::group::Groups;
use crate::batch::{Batch, Charge, View};
use crate::compile::{Builder, Source, internal};
use crate::explore::{Halt, Run};
use crate::table::{IdSet, TupleSet};
use crate::tree::Layout;
use jindou_model::{Holder, Result, term};
use jindou_plan::{Count, Operator, Slot, operator};

/// Rows without columns that are looked at together.
const MOST_BARE: usize = 1 << 16;

impl<'a> Builder<'_, 'a> {
    pub(super) fn count(
        &mut self,
        whole: &'a Operator,
        op: &'a operator::GroupCount,
        node: usize,
    ) -> Result<Vec<Slot>, Halt> {
        if let Some(offload) = self.exec.offload
            && let Some(numbers) = offload.counts(self.exec, whole, node)?
        {
            let rows = one_row(&numbers, &self.exec.run)?;
            self.leaf(Source::Whole(rows), node);
            return Ok(op.counts.iter().map(|c| c.to).collect());
        }
        let run = &self.exec.run;
        let rows = if let Some((counted, slots)) = self.counted(&op.input, node + 1)? {
            let mut counter = Counter::new(&op.group, &op.counts, &slots, run);
            counted.each(run, |rows, times| counter.add_times(rows, times))?;
            self.exec.holds(node, counter.bytes());
            counter.finish(run)?
        } else {
            let end = EndSpec::Count(&op.group, &op.counts);
            let (End::Count(counter), _) = self.exec.run_into(&op.input, node + 1, end, node)?
            else {
                return Err(internal("ends in something else"));
            };
            counter.finish(run)?
        };
        self.leaf(Source::Whole(rows), node);
        let counts = op.counts.iter().map(|c| c.to);
        Ok(op.group.iter().copied().chain(counts).collect())
    }
}

/// The distinct values so far, in the form that one count needs.
enum Distinct {
    /// Counts every row.
    No,
    /// Distinct ids; only without groups.
    Ids(IdSet),
    /// (group, values…).
    Rows(TupleSet),
}

struct One {
    /// Column of the counted slot; `None` for rows.
    of: Option<usize>,
    /// The counted slot is never bound.
    never: bool,
    /// Columns of a distinct row.
    row: Vec<usize>,
    distinct: Distinct,
    /// By group.
    numbers: Vec<u64>,
}

pub(crate) struct Counter<'a> {
    group: &'a [Slot],
    groups: Groups,
    counts: Vec<One>,
    tuple: Vec<u32>,
    charge: Charge,
}

impl<'a> Counter<'a> {
    pub fn new(group: &'a [Slot], counts: &'a [Count], layout: &[Slot], run: &Run<'_>) -> Self {
        let places = Layout::new(layout);
        let column = |s: &Slot| places.of(*s);
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
                    (false, ..) => Distinct::No,
                    (true, true, 1) => {
                        Distinct::Ids(IdSet::new(run.snapshot.dense_ids(), run.budget))
                    }
                    (true, ..) => Distinct::Rows(TupleSet::new(row.len() + 1, run.budget)),
                };
                One {
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
            groups: Groups::new(group, layout, run),
            counts,
            tuple: vec![],
            charge: Charge::of(Holder::Count, run.budget),
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
        if self.group.is_empty() {
            for c in &mut self.counts {
                c.numbers.resize(1, 0);
            }
        } else if rows.columns.is_empty() && rows.rows > 1 {
            // Without columns all rows are of one group.
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
        for c in &mut self.counts {
            if c.never {
                continue;
            }
            match &mut c.distinct {
                Distinct::No if self.group.is_empty() => {
                    c.numbers[0] += match c.of {
                        None => rows.rows as u64,
                        Some(of) => rows
                            .column(of)
                            .iter()
                            .map(|&v| u64::from(v != 0))
                            .sum::<u64>(),
                    };
                }
                Distinct::No => match c.of {
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
                Distinct::Ids(set) => {
                    let column = c.row[0];
                    for &v in rows.column(column) {
                        // Unbound values do not count, but an unbound cell is part of a counted row.
                        if (v != 0 || c.of.is_none()) && set.insert(v)? {
                            c.numbers[0] += 1;
                        }
                    }
                }
                Distinct::Rows(set) => {
                    // Without columns all rows of a group are the same row.
                    let different = if rows.columns.is_empty() {
                        1
                    } else {
                        rows.rows
                    };
                    for row in 0..different.min(rows.rows) {
                        // Without keys there is one group.
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

    /// Adds rows with columns that count so often each; without such numbers, once.
    pub fn add_times(&mut self, rows: View<'_>, times: &[u32]) -> Result<()> {
        if times.is_empty() {
            return self.add(rows);
        }
        self.add(rows)?;
        // Once they were added; the rest is what they count more.
        for c in &mut self.counts {
            if c.never || !matches!(c.distinct, Distinct::No) {
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
        let n = self.groups.len();
        self.charge
            .set(n.next_power_of_two() * 8 * self.counts.len())?;
        for c in &mut self.counts {
            c.numbers.resize(n, 0);
        }
        Ok(())
    }

    /// Adds another worker's numbers.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        let number = self.groups.merge(&other.groups)?;
        self.room()?;
        for (c, o) in self.counts.iter_mut().zip(&other.counts) {
            match (&mut c.distinct, &o.distinct) {
                (Distinct::Ids(a), Distinct::Ids(b)) => {
                    b.for_each(|id| a.insert(id).map(|_| ()))?;
                    c.numbers[0] = a.len();
                }
                (Distinct::Rows(a), Distinct::Rows(b)) => {
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

    /// Bytes that it holds.
    pub fn bytes(&self) -> u64 {
        self.groups.bytes() + self.charge.bytes()
    }

    /// The groups with their numbers. Without group slots there always is one row.
    pub fn finish(mut self, run: &Run<'_>) -> Result<Batch> {
        let width = self.group.len();
        let groups = self.groups.len();
        self.room()?;
        let mut out = Batch::new(width + self.counts.len(), run.budget);
        out.ensure(groups)?;
        out.rows = groups;
        self.groups.write_keys(&mut out.columns);
        let mut small = SmallNumbers::default();
        for (column, count) in out.columns.iter_mut().skip(width).zip(&self.counts) {
            for (i, (o, &n)) in column.iter_mut().zip(&count.numbers).enumerate() {
                if i % 65_536 == 0 {
                    run.check()?;
                }
                *o = small.id(run, n)?;
            }
        }
        Ok(out)
    }
}

/// A row of numbers that another executor counted.
fn one_row(numbers: &[u64], run: &Run<'_>) -> Result<Batch> {
    let mut out = Batch::new(numbers.len(), run.budget);
    out.ensure(1)?;
    out.rows = 1;
    for (column, &n) in out.columns.iter_mut().zip(numbers) {
        if let Some(first) = column.first_mut() {
            *first = number(run, n)?;
        }
    }
    Ok(out)
}

/// Ids of small numbers, which most groups' counts are.
#[derive(Default)]
struct SmallNumbers {
    ids: Vec<u32>,
}

impl SmallNumbers {
    fn id(&mut self, run: &Run<'_>, n: u64) -> Result<u32> {
        const SMALL: u64 = 1024;
        if n >= SMALL {
            return number(run, n);
        }
        let at = n as usize;
        if self.ids.len() <= at {
            self.ids.resize(at + 1, 0);
        }
        if self.ids[at] == 0 {
            self.ids[at] = number(run, n)?;
        }
        Ok(self.ids[at])
    }
}

/// The id of an `xsd:integer`: the store's if it has the term, since the number may be joined.
fn number(run: &Run<'_>, n: u64) -> Result<u32> {
    let mut bytes = vec![term::FIRST_DATATYPE];
    bytes.extend_from_slice(n.to_string().as_bytes());
    Ok(run.terms.resolve(run.vocabulary, &bytes, run.budget)?.0)
}
