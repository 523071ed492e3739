//! Property paths from each row: the stage around the search.

use super::stage::{Rest, hand_all, hand_on};
use crate::batch::{Batch, View};
use crate::explore::{Anchor, Flow, Run};
use crate::path::PathSearch;
use crate::tree::{path_slots, with};
use jindou_model::{Error, Result};
use jindou_plan::{FarEnd, GraphRef, Operand, Path, Slot};

/// What it is made from.
pub(crate) struct PathSpec<'a> {
    pub subject: &'a FarEnd,
    pub path: &'a Path,
    pub object: &'a FarEnd,
    pub graph: &'a GraphRef,
}

impl PathSpec<'_> {
    pub fn output(&self, input: &[Slot]) -> Vec<Slot> {
        let new = path_slots(self.subject, self.object, self.graph);
        with(input.to_vec(), new)
    }
}

/// An end of the path.
#[derive(Clone, Copy)]
enum PathEnd {
    Known(Anchor),
    /// Written to this column.
    Free(usize),
}

/// Which graphs a row's search looks at.
enum Graphs {
    Fixed,
    Column(usize),
    /// Each of these, written to this column.
    Each(usize, Vec<u32>),
}

pub(crate) struct PathStage<'a> {
    search: PathSearch<'a>,
    subject: PathEnd,
    object: PathEnd,
    graphs: Graphs,
    width: usize,
    out: Batch,
    found: Vec<u32>,
    starts: Vec<u32>,
    /// What `found` is for: the known end and the graph.
    last: Option<(u32, Option<u32>)>,
}

impl<'a> PathStage<'a> {
    pub fn new(spec: &PathSpec<'a>, input: &[Slot], run: &Run<'_>) -> Result<Self> {
        let output = spec.output(input);
        let place = |s: Slot| output.iter().position(|o| *o == s);
        let missing = || Error::Internal("the plan's path reads a slot that is not there".into());
        let end = |e: &FarEnd| {
            Ok::<_, Error>(match e {
                FarEnd::Known(Operand::Const(v)) => PathEnd::Known(Anchor::Const(*v)),
                FarEnd::Known(Operand::Slot(s)) => {
                    let column = input.iter().position(|i| i == s).ok_or_else(missing)?;
                    PathEnd::Known(Anchor::Column(column))
                }
                FarEnd::Bind(s) => PathEnd::Free(place(*s).ok_or_else(missing)?),
            })
        };
        let graphs = match spec.graph {
            GraphRef::Slot(s) => {
                Graphs::Column(input.iter().position(|i| i == s).ok_or_else(missing)?)
            }
            GraphRef::Bind(s, list) => Graphs::Each(
                place(*s).ok_or_else(missing)?,
                match list {
                    Some(list) => list.clone(),
                    None => run.snapshot.named_graphs(),
                },
            ),
            _ => Graphs::Fixed,
        };
        Ok(Self {
            search: PathSearch::new(spec.path, spec.graph, run)?,
            subject: end(spec.subject)?,
            object: end(spec.object)?,
            graphs,
            width: input.len(),
            out: Batch::new(output.len(), run.budget),
            found: vec![],
            starts: vec![],
            last: None,
        })
    }

    pub fn clear(&mut self) {
        self.out.rows = 0;
    }

    pub fn finish(&mut self, rest: &mut Rest<'_, '_, '_>) -> Flow {
        hand_all(&mut self.out, rest)
    }

    pub fn batch(&mut self, run: &Run<'_>, rows: View<'_>, rest: &mut Rest<'_, '_, '_>) -> Flow {
        for row in 0..rows.rows {
            run.check()?;
            match &self.graphs {
                Graphs::Fixed => self.row(run, rows, row, None, &[], rest)?,
                Graphs::Column(c) => {
                    let g = rows.column(*c).get(row).copied().unwrap_or(0);
                    self.row(run, rows, row, Some(g), &[], rest)?;
                }
                Graphs::Each(to, list) => {
                    let (to, list) = (*to, list.clone());
                    for g in list {
                        self.row(run, rows, row, Some(g), &[(to, g)], rest)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn row(
        &mut self,
        run: &Run<'_>,
        rows: View<'_>,
        row: usize,
        graph: Option<u32>,
        more: &[(usize, u32)],
        rest: &mut Rest<'_, '_, '_>,
    ) -> Flow {
        match (self.subject, self.object) {
            (PathEnd::Known(s), PathEnd::Known(o)) => {
                let (s, o) = (s.of(rows, row), o.of(rows, row));
                if self.search.holds(run, s, o, graph)? {
                    self.give(run, rows, row, None, &[0], more, rest)?;
                }
                Ok(())
            }
            (PathEnd::Known(end), PathEnd::Free(to)) | (PathEnd::Free(to), PathEnd::Known(end)) => {
                let from = end.of(rows, row);
                if self.last != Some((from, graph)) {
                    self.found.clear();
                    self.last = None;
                    if matches!(self.subject, PathEnd::Known(_)) {
                        self.search.forward(run, from, graph, &mut self.found)?;
                    } else {
                        self.search.backward(run, from, graph, &mut self.found)?;
                    }
                    self.last = Some((from, graph));
                }
                let found = std::mem::take(&mut self.found);
                let flow = self.give(run, rows, row, Some(to), &found, more, rest);
                self.found = found;
                flow
            }
            (PathEnd::Free(s), PathEnd::Free(o)) => {
                let mut starts = std::mem::take(&mut self.starts);
                starts.clear();
                self.search.starts(run, graph, &mut |v| {
                    starts.push(v);
                    Ok(())
                })?;
                for &from in &starts {
                    if s == o {
                        if self.search.holds(run, from, from, graph)? {
                            self.give(run, rows, row, Some(s), &[from], more, rest)?;
                        }
                        continue;
                    }
                    self.last = None;
                    let mut found = std::mem::take(&mut self.found);
                    found.clear();
                    self.search.forward(run, from, graph, &mut found)?;
                    let mut both = more.to_vec();
                    both.push((s, from));
                    let flow = self.give(run, rows, row, Some(o), &found, &both, rest);
                    self.found = found;
                    flow?;
                }
                self.starts = starts;
                Ok(())
            }
        }
    }

    /// Gives the row once for each of `list`, written to column `to`, with `more` columns of one value.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call, all of it the row's state"
    )]
    fn give(
        &mut self,
        run: &Run<'_>,
        rows: View<'_>,
        row: usize,
        to: Option<usize>,
        list: &[u32],
        more: &[(usize, u32)],
        rest: &mut Rest<'_, '_, '_>,
    ) -> Flow {
        for part in list.chunks(run.batch_rows) {
            let (from, n) = (self.out.rows, part.len());
            self.out.ensure((from + n).next_power_of_two())?;
            for (c, column) in self.out.columns.iter_mut().enumerate() {
                let column = &mut column[from..from + n];
                if c < self.width {
                    column.fill(rows.column(c).get(row).copied().unwrap_or(0));
                } else if Some(c) == to {
                    column.copy_from_slice(part);
                } else {
                    let value = more.iter().find(|m| m.0 == c).map_or(0, |m| m.1);
                    column.fill(value);
                }
            }
            self.out.rows = from + n;
            hand_on(&mut self.out, run, rest)?;
        }
        Ok(())
    }
}
