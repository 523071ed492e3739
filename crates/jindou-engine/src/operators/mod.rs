//! Operators above the exploration: a chain, from the exploration upwards.
//!
//! ```text
//! explore ─► filter ─► … ─► [count | sort] ─► distinct ─► slice ─► sink
//! └── in every worker ──┘    one part a worker,   └── behind one lock, batch by batch
//!                            merged at the end
//! ```

mod count;
mod distinct;
mod order;

pub(crate) use distinct::{Distinct, Seen};
pub(crate) use order::Places;

use crate::batch::{Batch, View};
use crate::explore::{Consumer, Flow, Halt, Run};
use crate::filter::Filters;
use crate::sink::Sink;
use count::Counter;
use jindou_model::{Error, Result};
use jindou_plan::{Operator, Plan, Slot};
use order::Sorter;

/// Rows in a batch that an operator makes.
const BATCH: usize = 2048;

/// One operator at work.
pub(crate) enum Stage<'a> {
    Filter(Filters<'a>, Batch),
    Distinct(Distinct),
    Count(Counter<'a>),
    Order(Sorter),
    Slice {
        skip: u64,
        left: Option<u64>,
        rest: Batch,
    },
}

/// The operators of a plan from the exploration up, without it.
pub(crate) fn chain(plan: &Plan) -> Result<Vec<&Operator>> {
    let mut out = Vec::new();
    let mut at = &plan.root;
    loop {
        match at {
            Operator::Explore(_) => break,
            Operator::Filter(input, _)
            | Operator::Distinct(input, _)
            | Operator::OrderBy(input, _)
            | Operator::Count { input, .. }
            | Operator::Slice { input, .. } => {
                out.push(at);
                at = input;
            }
            _ => return Err(not_yet()),
        }
    }
    out.reverse();
    Ok(out)
}

fn not_yet() -> Error {
    Error::Unsupported("an operator that the engine does not have yet".into())
}

impl<'a> Stage<'a> {
    /// The operator over input columns `layout`, and its output's columns. `above` are the operators after
    /// it: a slice makes a sort keep only what it can show.
    pub fn new(
        operator: &'a Operator,
        above: &[&'a Operator],
        layout: &[Slot],
        run: &Run<'a>,
    ) -> Result<(Self, Vec<Slot>)> {
        Ok(match operator {
            Operator::Explore(_) => {
                return Err(Error::Internal("an exploration above an operator".into()));
            }
            Operator::Outer(_)
            | Operator::Values { .. }
            | Operator::Service(_)
            | Operator::Steps { .. }
            | Operator::Path { .. }
            | Operator::Join { .. }
            | Operator::Apply { .. }
            | Operator::Union(_)
            | Operator::Extend { .. }
            | Operator::Group { .. }
            | Operator::Reduced(..) => return Err(not_yet()),
            Operator::Filter(_, condition) => (
                Self::Filter(
                    Filters::new(std::slice::from_ref(condition), layout, run)?,
                    Batch::new(layout.len(), run.budget),
                ),
                layout.to_vec(),
            ),
            Operator::Distinct(_, slots) => {
                let mut kept: Vec<Slot> = Vec::new();
                for s in slots {
                    if layout.contains(s) && !kept.contains(s) {
                        kept.push(*s);
                    }
                }
                (Self::Distinct(Distinct::new(layout, &kept, run)), kept)
            }
            Operator::Count { group, counts, .. } => {
                let out = group
                    .iter()
                    .copied()
                    .chain(counts.iter().map(|c| c.to))
                    .collect();
                (Self::Count(Counter::new(group, counts, layout, run)), out)
            }
            Operator::OrderBy(_, by) => {
                let most = match above.first() {
                    Some(Operator::Slice {
                        offset,
                        limit: Some(limit),
                        ..
                    }) => Some(offset.saturating_add(*limit)),
                    _ => None,
                };
                (
                    Self::Order(Sorter::new(by, layout, most, run)),
                    layout.to_vec(),
                )
            }
            Operator::Slice { offset, limit, .. } => (
                Self::Slice {
                    skip: *offset,
                    left: *limit,
                    rest: Batch::new(layout.len(), run.budget),
                },
                layout.to_vec(),
            ),
        })
    }

    /// Adds what another worker's part of this blocking operator holds.
    pub fn merge(&mut self, other: Self) -> Result<()> {
        match (self, other) {
            (Self::Count(a), Self::Count(b)) => a.merge(&b),
            (Self::Order(a), Self::Order(b)) => a.merge(b),
            _ => Err(Error::Internal(
                "operators of two kinds do not merge".into(),
            )),
        }
    }
}

/// Pushes a batch through the stages into the sink.
pub(crate) fn push(
    stages: &mut [Stage<'_>],
    run: &Run<'_>,
    rows: View<'_>,
    end: &mut dyn Consumer,
) -> Flow {
    if rows.rows == 0 {
        return Ok(());
    }
    let Some((stage, above)) = stages.split_first_mut() else {
        return end.batch(rows);
    };
    match stage {
        Stage::Filter(filters, kept) => {
            if rows.columns.is_empty() {
                // A condition without variables: one value for all rows.
                let one = View {
                    columns: &[],
                    rows: 1,
                };
                let keep = filters.flags(run, one)?.first() == Some(&crate::filter::TRUE);
                return if keep {
                    push(above, run, rows, end)
                } else {
                    Ok(())
                };
            }
            kept.rows = 0;
            kept.append(rows)?;
            filters.apply(run, kept, 0)?;
            push(above, run, kept.view(), end)
        }
        Stage::Distinct(d) => {
            let new = d.new_rows(rows)?;
            push(above, run, new, end)
        }
        Stage::Count(c) => Ok(c.add(rows)?),
        Stage::Order(s) => Ok(s.add(run, rows)?),
        Stage::Slice { skip, left, rest } => {
            let n = rows.rows as u64;
            if *left == Some(0) {
                return Err(Halt::Stop);
            }
            if *skip >= n {
                *skip -= n;
                return Ok(());
            }
            let take = (n - *skip).min(left.unwrap_or(u64::MAX));
            let view = if *skip == 0 {
                View {
                    columns: rows.columns,
                    rows: take as usize,
                }
            } else {
                let from = *skip as usize;
                rest.ensure(take as usize)?;
                for (i, c) in rest.columns.iter_mut().enumerate() {
                    let part = rows
                        .column(i)
                        .get(from..from + take as usize)
                        .unwrap_or(&[]);
                    c[..part.len()].copy_from_slice(part);
                }
                rest.rows = take as usize;
                rest.view()
            };
            *skip = 0;
            if let Some(l) = left {
                *l -= take;
            }
            push(above, run, view, end)?;
            if *left == Some(0) {
                Err(Halt::Stop)
            } else {
                Ok(())
            }
        }
    }
}

/// Tells the stages that their input is done: blocking ones give what they hold.
pub(crate) fn finish(stages: &mut [Stage<'_>], run: &Run<'_>, end: &mut dyn Consumer) -> Flow {
    let Some((stage, above)) = stages.split_first_mut() else {
        return Ok(());
    };
    match stage {
        Stage::Count(c) => c.give(run, &mut |rows| push(above, run, rows, end))?,
        Stage::Order(s) => s.give(run, &mut |rows| push(above, run, rows, end))?,
        Stage::Filter(..) | Stage::Distinct(_) | Stage::Slice { .. } => {}
    }
    finish(above, run, end)
}

/// The end of a chain: gives the plan's output columns to a sink.
pub(crate) struct Output<'s> {
    sink: &'s mut dyn Sink,
    /// Column by output position; `None` for one that is never bound.
    columns: Vec<Option<usize>>,
    zeros: Vec<u32>,
    pub rows: u64,
}

/// Results with at most so many columns need no allocation a batch.
const WIDE: usize = 24;

impl<'s> Output<'s> {
    pub fn new(plan: &Plan, layout: &[Slot], sink: &'s mut dyn Sink) -> Self {
        let columns = plan
            .output
            .iter()
            .map(|s| layout.iter().position(|l| l == s))
            .collect::<Vec<_>>();
        Self {
            sink,
            columns,
            zeros: vec![],
            rows: 0,
        }
    }
}

impl Consumer for Output<'_> {
    fn batch(&mut self, rows: View<'_>) -> Flow {
        self.rows += rows.rows as u64;
        let unbound = self.columns.iter().any(Option::is_none);
        if unbound && rows.columns.is_empty() && rows.rows > BATCH {
            // Bare rows have no bound; zeros have.
            self.rows -= rows.rows as u64;
            let mut left = rows.rows;
            while left > 0 {
                let n = left.min(BATCH);
                left -= n;
                self.batch(View {
                    columns: &[],
                    rows: n,
                })?;
            }
            return Ok(());
        }
        if unbound && self.zeros.len() < rows.rows {
            self.zeros.resize(rows.rows, 0);
        }
        let zeros = self.zeros.get(..rows.rows).unwrap_or(&[]);
        let column = |c: &Option<usize>| c.map_or(zeros, |c| rows.column(c));
        let result = if self.columns.len() <= WIDE {
            let mut refs: [&[u32]; WIDE] = [&[]; WIDE];
            for (r, c) in refs.iter_mut().zip(&self.columns) {
                *r = column(c);
            }
            self.sink.batch(&refs[..self.columns.len()], rows.rows)
        } else {
            let refs: Vec<&[u32]> = self.columns.iter().map(column).collect();
            self.sink.batch(&refs, rows.rows)
        };
        Ok(result?)
    }
}
