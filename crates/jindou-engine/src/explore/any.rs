//! The step `ExpandAny`: one end of the edge is known, and the predicate is a variable. Only the predicates in the
//! known vertex's characteristic set are read.

use super::lists::{RowGraph, constant_list};
use super::views::{RowPredicate, RowPredicates};
use super::{Anchor, Emit, QueryContext, StepLayout};
use crate::batch::View;
use crate::explore::expand::WORK_PER_CHECK;
use jindou_graph::shard::Sharded;
use jindou_graph::{Graph, Predicates};
use jindou_model::{Direction, PredicateId, Result, VertexId};
use jindou_plan::{FarEnd, GraphRef, Operand, PredicateRef};
use std::borrow::Cow;

/// A predicate variable: bound by this step, to an output column if later steps read it, or bound earlier, in an input
/// column.
#[derive(Clone, Copy)]
pub(crate) enum AnyPredicate {
    Bind(Option<usize>),
    Column(usize),
}

impl AnyPredicate {
    pub fn new(predicate: PredicateRef, layout: &StepLayout<'_, '_>) -> Self {
        match predicate {
            PredicateRef::Bind(s) => Self::Bind(layout.output(s)),
            PredicateRef::Slot(s) => Self::Column(layout.column(s)),
        }
    }

    /// The output column that gets the predicate, if there is one.
    pub fn output(self) -> Option<usize> {
        match self {
            Self::Bind(to) => to,
            Self::Column(_) => None,
        }
    }
}

enum FarVertex {
    Bind(Option<usize>),
    Known(Anchor),
}

pub(crate) struct ExpandAnyStep<'a> {
    /// Finds predicates by the vertex that has them, and by their own term.
    known: Predicates<'a>,
    snapshot: &'a dyn Graph,
    views: RowPredicates<'a>,
    anchor: Anchor,
    direction: Direction,
    predicate: AnyPredicate,
    far: FarVertex,
    graph: RowGraph<'a>,
    graph_to: Option<usize>,
    bind_graph: bool,
    row: usize,
    /// Predicates to follow for the current row. `begun` is the number of those whose lists were started; for a
    /// predicate that is known, `one` is used instead.
    predicates: Cow<'a, [u32]>,
    one: [u32; 1],
    use_one: bool,
    begun: usize,
    opened: bool,
    /// The predicate whose list was started last, and its list.
    term: u32,
    list: Cow<'a, [u32]>,
    graphs: Vec<u32>,
    place: usize,
    work: usize,
    pub touched: u64,
}

impl<'a> ExpandAnyStep<'a> {
    pub fn new(
        anchor: Operand,
        direction: Direction,
        predicate: PredicateRef,
        far: FarEnd,
        graph: &'a GraphRef,
        layout: &StepLayout<'a, '_>,
    ) -> Self {
        let (bind_graph, graph_to) = match graph {
            GraphRef::Bind(s, _) => (true, layout.output(*s)),
            _ => (false, None),
        };
        Self {
            known: layout.snapshot.predicates(),
            snapshot: layout.snapshot,
            views: RowPredicates::new(layout.snapshot, direction),
            anchor: layout.anchor(anchor),
            direction,
            predicate: AnyPredicate::new(predicate, layout),
            far: match far {
                FarEnd::Bind(s) => FarVertex::Bind(layout.output(s)),
                FarEnd::Known(o) => FarVertex::Known(layout.anchor(o)),
            },
            graph: RowGraph::new(graph, layout),
            graph_to,
            bind_graph,
            row: 0,
            predicates: Cow::Borrowed(&[]),
            one: [0],
            use_one: false,
            begun: 0,
            opened: false,
            term: 0,
            list: Cow::Borrowed(&[]),
            graphs: vec![],
            place: 0,
            work: 0,
            touched: 0,
        }
    }

    pub fn begin(&mut self, input: View<'_>) {
        self.row = 0;
        self.opened = false;
        if let Some(sharded) = self.snapshot.as_sharded() {
            self.fetch(sharded, input);
        }
    }

    /// Requests the lists that a batch reads from the shards that own them.
    fn fetch(&self, sharded: &Sharded, input: View<'_>) {
        let mut rows = Vec::new();
        for row in 0..input.rows {
            let v = self.anchor.id_at(input, row);
            let scope = self.graph.scope_at(input, row);
            let mut push = |p| rows.push((PredicateId(p), self.direction, v, scope));
            match self.predicate {
                AnyPredicate::Bind(_) => {
                    let known = self.known.of_vertex(v, self.direction);
                    known.iter().for_each(|&p| push(p));
                }
                AnyPredicate::Column(c) => {
                    let term = input.column(c)[row];
                    let known = self.known.of_term(VertexId(term));
                    known.iter().for_each(|p| push(p.0));
                }
            }
        }
        sharded.fetch(rows.into_iter());
    }

    fn open_row(&mut self, input: View<'_>) {
        self.opened = true;
        self.begun = 0;
        self.place = 0;
        self.list = Cow::Borrowed(&[]);
        self.graphs.clear();
        self.use_one = false;
        match self.predicate {
            AnyPredicate::Bind(_) => {
                let v = self.anchor.id_at(input, self.row);
                self.predicates = self.known.of_vertex(v, self.direction);
            }
            AnyPredicate::Column(c) => {
                let term = input.column(c)[self.row];
                self.predicates = Cow::Borrowed(&[]);
                if let Some(p) = self.known.of_term(VertexId(term)) {
                    self.one = [p.0];
                    self.use_one = true;
                }
            }
        }
    }

    fn next_predicate(&mut self) -> Option<PredicateId> {
        let all = if self.use_one {
            &self.one[..]
        } else {
            &self.predicates[..]
        };
        let p = all.get(self.begun).copied()?;
        self.begun += 1;
        Some(PredicateId(p))
    }

    /// Sets `list` to the row's neighbours along the predicate and, if graphs are bound, `graphs` to the graph of each.
    fn open_list(&mut self, p: PredicateId, input: View<'_>) {
        let RowPredicate {
            term, edges: view, ..
        } = self.views.get(p);
        let v = self.anchor.id_at(input, self.row);
        let scope = self.graph.scope_at(input, self.row);
        self.term = *term;
        self.place = 0;
        self.graphs.clear();
        match (&self.far, self.bind_graph) {
            (FarVertex::Bind(_), false) => self.list = constant_list(view, v, scope).into_cow(),
            (FarVertex::Bind(_), true) => {
                let mut list = std::mem::take(&mut self.list).into_owned();
                list.clear();
                view.read_with_graphs(v, scope, &mut list, &mut self.graphs);
                self.list = Cow::Owned(list);
            }
            (FarVertex::Known(other), bind) => {
                let far = other.id_at(input, self.row);
                let mut list = std::mem::take(&mut self.list).into_owned();
                list.clear();
                if bind {
                    let graphs = &mut self.graphs;
                    view.graphs_of_edge(v, far, scope, |g| {
                        graphs.push(g);
                        list.push(far);
                    });
                } else if view.contains(v, far, scope) {
                    list.push(far);
                }
                self.list = Cow::Owned(list);
            }
        }
    }

    pub fn fill(
        &mut self,
        ctx: &QueryContext<'_>,
        input: View<'_>,
        out: &mut Emit<'_>,
    ) -> Result<bool> {
        let to = match self.far {
            FarVertex::Bind(to) => to,
            FarVertex::Known(_) => None,
        };
        while self.row < input.rows {
            if !self.opened {
                self.open_row(input);
            }
            loop {
                let taken = out.list(
                    self.row,
                    to,
                    &self.list[self.place..],
                    &[(self.predicate.output(), self.term)],
                    self.bind_graph
                        .then(|| (self.graph_to, self.graphs.get(self.place..).unwrap_or(&[]))),
                );
                self.place += taken;
                self.work += taken + 16;
                self.touched += 4 * taken as u64;
                if self.place < self.list.len() {
                    return Ok(true);
                }
                if self.work > WORK_PER_CHECK {
                    self.work = 0;
                    ctx.check()?;
                }
                let Some(p) = self.next_predicate() else {
                    break;
                };
                self.open_list(p, input);
            }
            self.row += 1;
            self.opened = false;
        }
        Ok(false)
    }

    pub fn bytes(&self) -> usize {
        let own = if let Cow::Owned(l) = &self.list {
            l.capacity()
        } else {
            0
        };
        4 * (own + self.graphs.capacity())
    }
}
