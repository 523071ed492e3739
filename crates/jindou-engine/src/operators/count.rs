//! COUNT with and without groups.

use super::BATCH;
use crate::batch::{Batch, Charge, View};
use crate::explore::{Flow, Run};
use crate::table::{IdSet, TupleSet};
use jindou_model::Result;
use jindou_plan::{Count, Slot};

/// What one count needs to know of the distinct values so far.
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
    /// Column of each group slot; `None` when never bound.
    columns: Vec<Option<usize>>,
    groups: TupleSet,
    counts: Vec<One>,
    tuple: Vec<u32>,
    /// Group number by row of the batch.
    of_row: Vec<u32>,
    charge: Charge,
}

impl<'a> Counter<'a> {
    pub fn new(group: &'a [Slot], counts: &'a [Count], layout: &[Slot], run: &Run<'_>) -> Self {
        let column = |s: &Slot| layout.iter().position(|l| l == s);
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
                        Distinct::Ids(IdSet::new(run.snapshot.base().vertices(), run.budget))
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
            columns: group.iter().map(column).collect(),
            groups: TupleSet::new(group.len(), run.budget),
            counts,
            tuple: vec![],
            of_row: vec![],
            charge: Charge::new(run.budget),
        }
    }

    pub fn add(&mut self, rows: View<'_>) -> Result<()> {
        if self.group.is_empty() {
            self.of_row.clear();
            for c in &mut self.counts {
                c.numbers.resize(1, 0);
            }
        } else {
            self.find_groups(rows)?;
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
                        for &g in &self.of_row {
                            c.numbers[g as usize] += 1;
                        }
                    }
                    Some(of) => {
                        for (&g, &v) in self.of_row.iter().zip(rows.column(of)) {
                            c.numbers[g as usize] += u64::from(v != 0);
                        }
                    }
                },
                Distinct::Ids(set) => {
                    let column = c.row.first().copied().unwrap_or(0);
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
                        let g = self.of_row.get(row).copied().unwrap_or(0);
                        self.tuple.clear();
                        self.tuple.push(g);
                        for &column in &c.row {
                            self.tuple
                                .push(rows.column(column).get(row).copied().unwrap_or(0));
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

    /// Numbers the group of each row.
    fn find_groups(&mut self, rows: View<'_>) -> Result<()> {
        self.of_row.clear();
        if rows.columns.is_empty() {
            self.tuple.clear();
            self.tuple.resize(self.columns.len(), 0);
            let (g, _) = self.groups.insert(&self.tuple)?;
            self.of_row.resize(rows.rows, g);
        } else {
            // Consecutive rows are often of one group.
            let mut last = None;
            for row in 0..rows.rows {
                self.tuple.clear();
                for c in &self.columns {
                    let v = c.map_or(0, |c| rows.column(c).get(row).copied().unwrap_or(0));
                    self.tuple.push(v);
                }
                let g = match last {
                    Some(g) if self.groups.get(g) == &self.tuple[..] => g,
                    _ => self.groups.insert(&self.tuple)?.0,
                };
                last = Some(g);
                self.of_row.push(g);
            }
        }
        self.room()
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
        let mut number = Vec::with_capacity(other.groups.len().max(1));
        if self.group.is_empty() {
            number.push(0);
            for c in &mut self.counts {
                c.numbers.resize(1, 0);
            }
        } else {
            for t in other.groups.tuples() {
                number.push(self.groups.insert(t)?.0);
            }
            self.room()?;
        }
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
                        *g = number.get(*g as usize).copied().unwrap_or(0);
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

    /// Gives the groups with their numbers. Without group slots there always is one row.
    pub fn give(&mut self, run: &Run<'_>, to: &mut dyn FnMut(View<'_>) -> Flow) -> Flow {
        let width = self.group.len();
        let groups = if width == 0 { 1 } else { self.groups.len() };
        for c in &mut self.counts {
            c.numbers.resize(groups, 0);
        }
        let mut out = Batch::new(width + self.counts.len(), run.budget);
        out.ensure(groups.min(BATCH))?;
        let mut small = SmallNumbers::default();
        for from in (0..groups).step_by(BATCH) {
            run.check()?;
            let n = (groups - from).min(BATCH);
            for i in 0..n {
                for (column, &v) in self.groups.get((from + i) as u32).iter().enumerate() {
                    out.columns[column][i] = v;
                }
                for (c, count) in self.counts.iter().enumerate() {
                    out.columns[width + c][i] = small.id(run, count.numbers[from + i])?;
                }
            }
            out.rows = n;
            to(out.view())?;
        }
        Ok(())
    }
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
            return Ok(run.terms.integer(n)?.0);
        }
        let at = n as usize;
        if self.ids.len() <= at {
            self.ids.resize(at + 1, 0);
        }
        if self.ids[at] == 0 {
            self.ids[at] = run.terms.integer(n)?.0;
        }
        Ok(self.ids[at])
    }
}
