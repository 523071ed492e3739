//! Property paths from each row: the stage around the search.

use super::stage::{Rest, Spec, Work, hand_all, hand_on};
use crate::batch::{Batch, Charge, View};
use crate::compile::Builder;
use crate::explore::{Anchor, Flow, Halt, Run};
use crate::path::PathSearch;
use crate::tree::with;
use jindou_model::{Error, Holder, Result};
use jindou_plan::operator::FollowPath;
use jindou_plan::{FarEnd, GraphRef, Operand, Slot};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

struct PathSpec<'a>(&'a FollowPath);

impl<'a> Builder<'_, 'a> {
    pub(super) fn path(&mut self, op: &'a FollowPath, node: usize) -> Result<Vec<Slot>, Halt> {
        let slots = self.op(&op.input, node + 1)?;
        self.link(PathSpec(op), &slots, node);
        Ok(with(slots, op.new_slots()))
    }
}

impl Spec for PathSpec<'_> {
    fn work<'w>(&'w self, input: &'w [Slot], run: &Run<'w>) -> Result<Box<dyn Work + 'w>> {
        Ok(Box::new(PathStage::new(self.0, input, run)?))
    }
}

/// An end of the path.
#[derive(Clone, Copy)]
enum PathEnd {
    Known(Anchor),
    /// Written to this column.
    Free(usize),
}

/// The graphs that a row's search looks at.
enum Graphs {
    Fixed,
    Column(usize),
    /// Each of these, written to this column.
    Each(usize, Arc<[u32]>),
}

/// Nodes that earlier searches found and that are kept, at most about.
const KEPT: usize = 1 << 20;
/// Rows between two looks at the clock.
const CHECK: usize = 256;

/// Nodes that earlier searches found, by end and graph.
struct Memo {
    ids: Vec<u32>,
    places: FxHashMap<(u32, Option<u32>), Range<usize>>,
    charge: Charge,
}

impl Memo {
    fn recharge(&mut self) -> Result<()> {
        self.charge
            .set(self.ids.capacity() * 4 + self.places.capacity() * 40)
    }

    /// Forgets everything once it is much.
    fn make_room(&mut self) {
        if self.ids.len() > KEPT || self.places.len() > KEPT {
            self.places.clear();
            self.ids.clear();
            self.ids.shrink_to(KEPT);
        }
    }
}

pub(crate) struct PathStage<'a> {
    search: PathSearch<'a>,
    subject: PathEnd,
    object: PathEnd,
    graphs: Graphs,
    nodes: bool,
    width: usize,
    out: Batch,
    memo: Memo,
}

impl<'a> PathStage<'a> {
    pub fn new(spec: &'a FollowPath, input: &[Slot], run: &Run<'_>) -> Result<Self> {
        let output = with(input.to_vec(), spec.new_slots());
        let place = |s: Slot| output.iter().position(|o| *o == s);
        let missing = || Error::Internal("the plan's path reads a slot that does not exist".into());
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
        let graphs = match &spec.graph {
            GraphRef::Slot(s) => {
                Graphs::Column(input.iter().position(|i| i == s).ok_or_else(missing)?)
            }
            GraphRef::Bind(s, list) => Graphs::Each(
                place(*s).ok_or_else(missing)?,
                match list {
                    Some(list) => list.as_slice().into(),
                    None => run.snapshot.named_graphs(),
                },
            ),
            _ => Graphs::Fixed,
        };
        Ok(Self {
            search: PathSearch::new(&spec.path, &spec.graph, run)?,
            subject: end(&spec.subject)?,
            object: end(&spec.object)?,
            graphs,
            nodes: spec.nodes,
            width: input.len(),
            out: Batch::new(output.len(), run.budget),
            memo: Memo {
                ids: vec![],
                places: FxHashMap::default(),
                charge: Charge::of(Holder::Path, run.budget),
            },
        })
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
                // Other ends than these are nodes if the path leads from one to the other.
                let leads = (s != o || !self.nodes || self.search.is_node(run, s, graph)?)
                    && self.search.holds(run, s, o, graph)?;
                if leads {
                    self.give(run, rows, row, None, &[0], more, rest)?;
                }
                Ok(())
            }
            (PathEnd::Known(end), PathEnd::Free(to)) => {
                let place = self.found(run, end.of(rows, row), graph, false)?;
                self.give_found(run, rows, row, to, place, more, rest)
            }
            (PathEnd::Free(to), PathEnd::Known(end)) => {
                let place = self.found(run, end.of(rows, row), graph, true)?;
                self.give_found(run, rows, row, to, place, more, rest)
            }
            (PathEnd::Free(s), PathEnd::Free(o)) => {
                let free = self.search.free(run, graph)?;
                for &v in &free.alone {
                    let mut both = more.to_vec();
                    both.push((s, v));
                    self.give(run, rows, row, Some(o), &[v], &both, rest)?;
                }
                let (known, to) = if free.backwards { (o, s) } else { (s, o) };
                for &from in &free.starts {
                    if s == o {
                        if self.search.holds(run, from, from, graph)? {
                            self.give(run, rows, row, Some(s), &[from], more, rest)?;
                        }
                        continue;
                    }
                    let place = self.found(run, from, graph, free.backwards)?;
                    let mut both = more.to_vec();
                    both.push((known, from));
                    self.give_found(run, rows, row, to, place, &both, rest)?;
                }
                Ok(())
            }
        }
    }

    /// Where the memo has what the path leads to from an end.
    fn found(
        &mut self,
        run: &Run<'_>,
        from: u32,
        graph: Option<u32>,
        backwards: bool,
    ) -> Result<Range<usize>> {
        if let Some(place) = self.memo.places.get(&(from, graph)) {
            return Ok(place.clone());
        }
        self.memo.make_room();
        let at = self.memo.ids.len();
        let ids = &mut self.memo.ids;
        if !self.nodes || self.search.is_node(run, from, graph)? {
            self.search.ends(run, from, graph, backwards, ids)?;
        }
        let place = at..ids.len();
        self.memo.places.insert((from, graph), place.clone());
        self.memo.recharge()?;
        Ok(place)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one call, all of it the row's state"
    )]
    fn give_found(
        &mut self,
        run: &Run<'_>,
        rows: View<'_>,
        row: usize,
        to: usize,
        place: Range<usize>,
        more: &[(usize, u32)],
        rest: &mut Rest<'_, '_, '_>,
    ) -> Flow {
        let ids = std::mem::take(&mut self.memo.ids);
        let list = &ids[place];
        let flow = self.give(run, rows, row, Some(to), list, more, rest);
        self.memo.ids = ids;
        flow
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
                    column.fill(rows.column(c)[row]);
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

impl Work for PathStage<'_> {
    fn batch(&mut self, run: &Run<'_>, rows: View<'_>, rest: &mut Rest<'_, '_, '_>) -> Flow {
        for row in 0..rows.rows {
            if row % CHECK == 0 {
                run.check()?;
            }
            match &self.graphs {
                Graphs::Fixed => self.row(run, rows, row, None, &[], rest)?,
                Graphs::Column(c) => {
                    let g = rows.column(*c)[row];
                    self.row(run, rows, row, Some(g), &[], rest)?;
                }
                Graphs::Each(to, list) => {
                    let (to, list) = (*to, Arc::clone(list));
                    for &g in list.iter() {
                        self.row(run, rows, row, Some(g), &[(to, g)], rest)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, _run: &Run<'_>, rest: &mut Rest<'_, '_, '_>) -> Flow {
        hand_all(&mut self.out, rest)
    }

    fn clear(&mut self) {
        self.out.rows = 0;
    }
}
