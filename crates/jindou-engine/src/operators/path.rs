//! The stage that follows a property path from each row.

use super::stage::{NewWorker, NextStages, StageSpec, StageWorker, hand_all, hand_on};
use crate::batch::{Batch, OperatorCharge, View};
use crate::compile::PipelineBuilder;
use crate::explore::{Anchor, Flow, Halt, QueryContext};
use crate::path::PathSearch;
use crate::tree::with;
use jindou_model::{Holder, Invariant, Result};
use jindou_plan::operator::FollowPath;
use jindou_plan::{FarEnd, GraphRef, Operand, Slot};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

struct PathSpec<'a>(&'a FollowPath);

impl<'a> PipelineBuilder<'_, 'a> {
    pub(super) fn path(&mut self, op: &'a FollowPath, node: usize) -> Result<Vec<Slot>, Halt> {
        let slots = self.op(&op.input, node + 1)?;
        self.link(PathSpec(op), &slots, node);
        Ok(with(slots, op.new_slots()))
    }
}

impl StageSpec for PathSpec<'_> {
    fn work<'w>(&'w self, input: &'w [Slot], ctx: &QueryContext<'w>) -> NewWorker<'w> {
        Ok(Box::new(PathStage::new(self.0, input, ctx)?))
    }
}

/// An end of the path: known in the row, or found by the search.
#[derive(Clone, Copy)]
enum PathEnd {
    Known(Anchor),
    /// The search writes it to this column.
    Free(usize),
}

/// The graphs that a row's search reads.
enum PathGraphs {
    Fixed,
    Column(usize),
    /// Each of these graphs in turn; its id is written to this column.
    Each(usize, Arc<[u32]>),
}

/// Number of nodes of earlier searches from which on the cache is cleared.
const KEPT: usize = 1 << 20;
/// Number of rows between two checks of the deadline.
const CHECK: usize = 256;

/// Cache of the nodes that searches found, by the node they started from and the graph.
struct Memo {
    ids: Vec<u32>,
    places: FxHashMap<(u32, Option<u32>), Range<usize>>,
    charge: OperatorCharge,
}

impl Memo {
    fn recharge(&mut self) -> Result<()> {
        self.charge
            .set(self.ids.capacity() * 4 + self.places.capacity() * 40)
    }

    /// Clears the cache if it is large.
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
    graphs: PathGraphs,
    nodes: bool,
    width: usize,
    out: Batch,
    memo: Memo,
}

impl<'a> PathStage<'a> {
    pub fn new(spec: &'a FollowPath, input: &[Slot], ctx: &QueryContext<'_>) -> Result<Self> {
        let output = with(input.to_vec(), spec.new_slots());
        let place = |s: Slot| output.iter().position(|o| *o == s);
        let place = |s: Slot| place(s).invariant("a path's new slots are columns");
        let column = |s: Slot| input.iter().position(|i| *i == s);
        let column = |s: Slot| column(s).invariant("a path reads slots that are columns");
        let end = |e: &FarEnd| match e {
            FarEnd::Known(Operand::Const(v)) => PathEnd::Known(Anchor::Const(*v)),
            FarEnd::Known(Operand::Slot(s)) => PathEnd::Known(Anchor::Column(column(*s))),
            FarEnd::Bind(s) => PathEnd::Free(place(*s)),
        };
        let graphs = match &spec.graph {
            GraphRef::Slot(s) => PathGraphs::Column(column(*s)),
            GraphRef::Bind(s, list) => PathGraphs::Each(
                place(*s),
                match list {
                    Some(list) => list.as_slice().into(),
                    None => ctx.snapshot.named_graphs(),
                },
            ),
            _ => PathGraphs::Fixed,
        };
        Ok(Self {
            search: PathSearch::new(&spec.path, &spec.graph, ctx)?,
            subject: end(&spec.subject),
            object: end(&spec.object),
            graphs,
            nodes: spec.nodes,
            width: input.len(),
            out: Batch::new(output.len(), ctx.budget),
            memo: Memo {
                ids: vec![],
                places: FxHashMap::default(),
                charge: OperatorCharge::for_holder(Holder::Path, ctx.budget),
            },
        })
    }

    fn row(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        row: usize,
        graph: Option<u32>,
        more: &[(usize, u32)],
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        match (self.subject, self.object) {
            (PathEnd::Known(s), PathEnd::Known(o)) => {
                let (s, o) = (s.id_at(rows, row), o.id_at(rows, row));
                // With `nodes`, only nodes of the graph match. Two different ends that the path connects certainly are
                // such nodes.
                let leads = (s != o || !self.nodes || self.search.is_node(ctx, s, graph)?)
                    && self.search.holds(ctx, s, o, graph)?;
                if leads {
                    self.give(ctx, rows, row, None, &[0], more, rest)?;
                }
                Ok(())
            }
            (PathEnd::Known(end), PathEnd::Free(to)) => {
                let place = self.found(ctx, end.id_at(rows, row), graph, false)?;
                self.give_found(ctx, rows, row, to, place, more, rest)
            }
            (PathEnd::Free(to), PathEnd::Known(end)) => {
                let place = self.found(ctx, end.id_at(rows, row), graph, true)?;
                self.give_found(ctx, rows, row, to, place, more, rest)
            }
            (PathEnd::Free(s), PathEnd::Free(o)) => {
                let free = self.search.free(ctx, graph)?;
                for &v in &free.alone {
                    let mut both = more.to_vec();
                    both.push((s, v));
                    self.give(ctx, rows, row, Some(o), &[v], &both, rest)?;
                }
                let (known, to) = if free.backwards { (o, s) } else { (s, o) };
                for &from in &free.starts {
                    if s == o {
                        if self.search.holds(ctx, from, from, graph)? {
                            self.give(ctx, rows, row, Some(s), &[from], more, rest)?;
                        }
                        continue;
                    }
                    let place = self.found(ctx, from, graph, free.backwards)?;
                    let mut both = more.to_vec();
                    both.push((known, from));
                    self.give_found(ctx, rows, row, to, place, &both, rest)?;
                }
                Ok(())
            }
        }
    }

    /// Position in the cache of the nodes that the path leads to from a node; searches for them if they are not cached.
    fn found(
        &mut self,
        ctx: &QueryContext<'_>,
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
        if !self.nodes || self.search.is_node(ctx, from, graph)? {
            self.search.ends(ctx, from, graph, backwards, ids)?;
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
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        row: usize,
        to: usize,
        place: Range<usize>,
        more: &[(usize, u32)],
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        let ids = std::mem::take(&mut self.memo.ids);
        let list = &ids[place];
        let flow = self.give(ctx, rows, row, Some(to), list, more, rest);
        self.memo.ids = ids;
        flow
    }

    /// Outputs the row once for each id of `list`, which is written to column `to`; `more` has values of further
    /// columns.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call, all of it the row's state"
    )]
    fn give(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        row: usize,
        to: Option<usize>,
        list: &[u32],
        more: &[(usize, u32)],
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        for part in list.chunks(ctx.batch_rows) {
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
            hand_on(&mut self.out, ctx, rest)?;
        }
        Ok(())
    }
}

impl StageWorker for PathStage<'_> {
    fn batch(
        &mut self,
        ctx: &QueryContext<'_>,
        rows: View<'_>,
        rest: &mut NextStages<'_, '_, '_>,
    ) -> Flow {
        for row in 0..rows.rows {
            if row % CHECK == 0 {
                ctx.check()?;
            }
            match &self.graphs {
                PathGraphs::Fixed => self.row(ctx, rows, row, None, &[], rest)?,
                PathGraphs::Column(c) => {
                    let g = rows.column(*c)[row];
                    self.row(ctx, rows, row, Some(g), &[], rest)?;
                }
                PathGraphs::Each(to, list) => {
                    let (to, list) = (*to, Arc::clone(list));
                    for &g in list.iter() {
                        self.row(ctx, rows, row, Some(g), &[(to, g)], rest)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, _run: &QueryContext<'_>, rest: &mut NextStages<'_, '_, '_>) -> Flow {
        hand_all(&mut self.out, rest)
    }

    fn clear(&mut self) {
        self.out.rows = 0;
    }
}
