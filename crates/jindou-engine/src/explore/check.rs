//! The step `Check`: keeps the rows whose edge exists. If it binds a graph variable, it returns one row for each graph
//! with the edge.

use super::lists::NeighbourLists;
use super::{Anchor, Emit, QueryContext, StepLayout};
use crate::batch::View;
use crate::explore::expand::WORK_PER_CHECK;
use crate::id_test::IdTest;
use crate::intersect::has;
use jindou_model::Result;
use jindou_plan::{EdgeList, GraphRef, Operand};

/// If a constant's list is longer than this, the edge is looked up in the list of its other end. That list is likely
/// shorter, and its key is found without a binary search.
const LONG: usize = 64;

/// Distance, in rows, at which lists are prefetched.
const AHEAD: usize = 8;

pub(crate) struct CheckStep<'a> {
    lists: NeighbourLists<'a>,
    other: Anchor,
    /// Output column of the graph, if the step binds a graph variable that later steps read.
    graph: Option<usize>,
    bind: bool,
    row: usize,
    place: usize,
    made: bool,
    graphs: Vec<u32>,
    /// On a sharded store, whether the edge of each row of the batch exists.
    there: Vec<bool>,
    asked: bool,
    work: usize,
    pub touched: u64,
}

impl<'a> CheckStep<'a> {
    pub fn new(list: &'a EdgeList, other: Operand, layout: &StepLayout<'a, '_>) -> Self {
        let mut far = other;
        let (bind, graph) = match &list.graph {
            GraphRef::Bind(slot, _) => (true, layout.output(*slot)),
            _ => (false, None),
        };
        let long = match (list.anchor, list.graph.scope()) {
            (Operand::Const(v), Some(scope)) if !bind => {
                let view = layout.snapshot.edges(list.predicate, list.direction);
                let default = scope.sees(jindou_model::DEFAULT_GRAPH);
                let edges = if default { view.default_degree(v) } else { 0 };
                edges + view.named_degree(v) > LONG as u64
            }
            _ => false,
        };
        let lists = if long && matches!(other, Operand::Slot(_)) {
            let reverse = list.direction.reverse();
            far = list.anchor;
            NeighbourLists::for_anchor(other, list.predicate, reverse, &list.graph, layout)
        } else {
            NeighbourLists::new(list, layout)
        };
        Self {
            lists,
            other: layout.anchor(far),
            graph,
            bind,
            row: 0,
            place: 0,
            made: false,
            graphs: vec![],
            there: vec![],
            asked: false,
            work: 0,
            touched: 0,
        }
    }

    pub fn begin(&mut self, input: View<'_>) {
        (self.row, self.place, self.made) = (0, 0, false);
        if self.bind {
            self.lists.fetch(input);
            return;
        }
        let other = self.other;
        let other = |row| other.id_at(input, row);
        self.asked = self.lists.contains_many(input, other, &mut self.there);
        if !self.asked {
            self.lists.prepare(input);
        }
    }

    pub fn fill(
        &mut self,
        ctx: &QueryContext<'_>,
        input: View<'_>,
        out: &mut Emit<'_>,
    ) -> Result<bool> {
        if self.bind {
            return self.fill_graphs(ctx, input, out);
        }
        let (_, index, rows) = out.columns(None);
        let end = input.rows.min(self.row + (index.len() - *rows));
        let mut w = *rows;
        if self.asked {
            for row in self.row..end {
                index[w] = row as u32;
                w += usize::from(self.there.get(row) == Some(&true));
            }
            *rows = w;
            self.row = end;
            ctx.check()?;
            return Ok(end < input.rows);
        }
        let mut looked = 0;
        for row in self.row..end {
            self.lists.prefetch(row + AHEAD);
            let v = self.other.id_at(input, row);
            let hit = match self.lists.list(row) {
                Some(list) => has(list, v),
                None => {
                    let scope = self.lists.graph.scope_at(input, row);
                    let anchor = self.lists.anchor(input, row);
                    self.lists
                        .view
                        .contains_counting(anchor, v, scope, &mut looked)
                }
            };
            index[w] = row as u32;
            w += usize::from(hit);
        }
        *rows = w;
        self.lists.note_merged(looked);
        self.touched += 4 * (end - self.row) as u64;
        self.row = end;
        ctx.check()?;
        Ok(end < input.rows)
    }

    fn fill_graphs(
        &mut self,
        ctx: &QueryContext<'_>,
        input: View<'_>,
        out: &mut Emit<'_>,
    ) -> Result<bool> {
        while self.row < input.rows {
            if !self.made {
                self.graphs.clear();
                let graphs = &mut self.graphs;
                self.lists.view.graphs_of_edge(
                    self.lists.anchor(input, self.row),
                    self.other.id_at(input, self.row),
                    self.lists.graph.scope_at(input, self.row),
                    |g| graphs.push(g),
                );
                self.made = true;
                self.work += 64 + self.graphs.len();
                if self.work > WORK_PER_CHECK {
                    self.work = 0;
                    ctx.check()?;
                }
            }
            while let Some(&g) = self.graphs.get(self.place) {
                if out.is_full() {
                    return Ok(true);
                }
                self.place += 1;
                out.row(self.row, &[(self.graph, g)]);
            }
            (self.row, self.place, self.made) = (self.row + 1, 0, false);
        }
        Ok(false)
    }

    pub fn bytes(&self) -> usize {
        self.lists.bytes() + 4 * self.graphs.capacity() + self.there.capacity()
    }
}

/// The step `Restrict`: keeps the rows whose id in a column is in a set.
pub(crate) struct RestrictStep<'a> {
    column: usize,
    within: IdTest<'a>,
    row: usize,
}

impl<'a> RestrictStep<'a> {
    pub fn new(
        column: usize,
        within: &'a jindou_plan::IdFilter,
        layout: &StepLayout<'a, '_>,
    ) -> Self {
        Self {
            column,
            within: IdTest::new(Some(within), layout.snapshot),
            row: 0,
        }
    }

    pub fn begin(&mut self) {
        self.row = 0;
    }

    pub fn fill(&mut self, input: View<'_>, out: &mut Emit<'_>) -> bool {
        let (_, index, rows) = out.columns(None);
        let end = input.rows.min(self.row + (index.len() - *rows));
        let ids = &input.column(self.column)[self.row..end];
        *rows += self
            .within
            .select(ids, self.row as u32, &mut index[*rows..]);
        self.row = end;
        end < input.rows
    }
}
