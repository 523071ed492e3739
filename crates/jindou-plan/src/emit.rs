//! Moves → steps: turns the order that the search found into the steps that executors run.

use crate::condition::for_each_slot;
use crate::model::{
    CostModel, SearchMove, SearchState, StartOrigin, SubStep, SubStepKind, edges_of,
};
use crate::resolve::{Edge, PatternGraph, ResolvedPredicate, ResolvedTerm};
use crate::slots::binds;
use crate::{
    Condition, EdgeList, FarEnd, GraphRef, IdFilter, Operand, PredicateRef, Slot, StartSource,
    Step, StepKind, show,
};
use jindou_graph::Graph;
use jindou_model::Direction;

pub(crate) struct StepEmitter<'a> {
    pub model: &'a CostModel<'a>,
    pub snapshot: &'a dyn Graph,
    /// Names of the plan's slots, to which steps add hidden ones.
    pub slots: &'a mut Vec<String>,
    pub steps: Vec<Step>,
    state: SearchState,
    /// Slots bound by the rows that the steps extend; empty if the exploration starts by itself.
    given: u128,
    /// True if the steps extend existing rows.
    goes_on: bool,
}

impl<'a> StepEmitter<'a> {
    pub(crate) fn new(
        model: &'a CostModel<'a>,
        snapshot: &'a dyn Graph,
        slots: &'a mut Vec<String>,
        given: Option<(u128, f64)>,
    ) -> Self {
        Self {
            model,
            snapshot,
            slots,
            steps: vec![],
            state: SearchState::with_rows(given.map_or(1.0, |g| g.1)),
            given: given.map_or(0, |g| g.0),
            goes_on: given.is_some(),
        }
    }

    /// Converts all moves to steps; returns the estimated rows and cost.
    pub(crate) fn run(&mut self, moves: &[SearchMove]) -> (f64, f64) {
        for m in moves {
            let mut subs = vec![];
            let next = self.model.apply(&self.state, m, Some(&mut subs));
            for sub in &subs {
                match &sub.what {
                    SubStepKind::Main => self.main(m, sub),
                    SubStepKind::Restrict(slot) => self.restrict(*slot, sub),
                    SubStepKind::Check(e, d) => self.check(*e, *d, sub),
                    SubStepKind::CheckAny(e, d) => {
                        let edge = &self.model.edges[*e];
                        let (anchor, other) = ends(edge, *d);
                        let why = "every part of the pattern is bound".into();
                        let kind = StepKind::ExpandAny {
                            anchor: operand(anchor),
                            direction: *d,
                            predicate: match edge.predicate {
                                ResolvedPredicate::Slot(p) => PredicateRef::Slot(p),
                                // Edges with a known predicate are checked by `SubStepKind::Check` instead.
                                ResolvedPredicate::Known(_) => continue,
                            },
                            far: FarEnd::Known(operand(other)),
                            graph: self.graph(edge, next.bound),
                        };
                        self.push(kind, vec![], sub, why);
                    }
                }
            }
            self.state = next;
        }
        if self.steps.is_empty() {
            self.unit();
        }
        self.filters();
        (self.state.rows, self.state.cost)
    }

    fn push(&mut self, kind: StepKind, filters: Vec<Condition>, sub: &SubStep, why: String) {
        self.steps.push(Step {
            kind,
            filters,
            live: vec![],
            rows: sub.rows,
            cost: sub.cost,
            why,
        });
    }

    fn unit(&mut self) {
        if !self.goes_on {
            let step = Step::unit("what follows starts from constants");
            self.steps.push(step);
        }
    }

    fn main(&mut self, m: &SearchMove, sub: &SubStep) {
        match m {
            SearchMove::Given(_) => {}
            SearchMove::Start(slot, source) => self.start(*slot, *source, sub),
            SearchMove::Bind(slot, lists) => self.bind(*slot, *lists, sub),
            SearchMove::Graph(e) => self.bind_graph(*e, sub),
            SearchMove::Any(e) => self.any(*e, sub),
            SearchMove::Scan(e) => self.scan(*e, sub),
        }
    }

    fn start(&mut self, slot: Slot, source: StartOrigin, sub: &SubStep) {
        let mut within = self.model.resolved.within[usize::from(slot)].clone();
        let (source, why) = match source {
            StartOrigin::IdFilter => {
                let why = self.model.resolved.within_why[usize::from(slot)].join(" and ");
                (
                    StartSource::IdFilter,
                    format!("fewest starting points: ?{} {why}", self.name(slot)),
                )
            }
            StartOrigin::Keys(e, direction) => {
                let edge = &self.model.edges[e];
                within = self.beyond(within, e, slot);
                let ResolvedPredicate::Known(predicate) = edge.predicate else {
                    return;
                };
                let graph = edge.graph_ref(self.model.resolved.named.as_deref());
                let why = format!(
                    "fewest starting points: ends of {}",
                    show::predicate(self.snapshot, predicate)
                );
                (
                    StartSource::Keys {
                        predicate,
                        direction,
                        graph,
                    },
                    why,
                )
            }
        };
        let kind = if self.steps.is_empty() && !self.goes_on {
            StepKind::Start {
                to: Some(slot),
                source,
                within,
            }
        } else {
            StepKind::Cross {
                to: slot,
                source,
                within,
            }
        };
        self.push(kind, vec![], sub, why);
    }

    fn bind(&mut self, slot: Slot, lists: u128, sub: &SubStep) {
        let mut within = self.model.resolved.within[usize::from(slot)].clone();
        let mut out = vec![];
        for e in edges_of(lists) {
            let Some((anchor, direction)) = self.model.anchor(e, slot, self.state.bound) else {
                continue;
            };
            let edge = &self.model.edges[e];
            let ResolvedPredicate::Known(predicate) = edge.predicate else {
                continue;
            };
            within = self.beyond(within, e, slot);
            let graph = self.graph(edge, self.state.bound);
            out.push(EdgeList {
                anchor: operand(anchor),
                predicate,
                direction,
                graph,
            });
        }
        let first = self.steps.is_empty() && !self.goes_on;
        if first && out.len() == 1 {
            let list = out.remove(0);
            let why = format!(
                "neighbour list of a constant, about {:.0} members",
                sub.rows
            );
            let kind = StepKind::Start {
                to: Some(slot),
                source: StartSource::List(list),
                within,
            };
            self.push(kind, vec![], sub, why);
            return;
        }
        if first {
            self.unit();
        }
        let each = sub.rows / self.state.rows.max(1e-9);
        let why = if out.len() > 1 {
            format!(
                "{} lists meet in ?{}: about {each:.2} a row",
                out.len(),
                self.name(slot)
            )
        } else {
            format!(
                "cheapest next: about {each:.2} of ?{} a row",
                self.name(slot)
            )
        };
        self.push(
            StepKind::Expand {
                to: slot,
                lists: out,
                within,
            },
            vec![],
            sub,
            why,
        );
    }

    /// The part of `within` that must still be tested when edge `e` binds a slot; `None` if the edge implies it.
    fn beyond(&self, within: Option<IdFilter>, e: usize, slot: Slot) -> Option<IdFilter> {
        if self.is_redundant(e, slot) {
            return None;
        }
        let edge = &self.model.edges[e];
        let is_object = edge.object == ResolvedTerm::Slot(slot);
        within?.forget(|t| {
            ResolvedPredicate::Known(t.predicate) == edge.predicate
                && (t.direction == Direction::In) == is_object
                && PatternGraph::Fixed(t.graph.clone()) == edge.graph
        })
    }

    /// Returns true if all vertices that the edge has at the slot's end are in the slot's intervals.
    fn is_redundant(&self, e: usize, slot: Slot) -> bool {
        let Some(info) = &self.model.info[e] else {
            return false;
        };
        let side = &info.sides[usize::from(self.model.edges[e].object == ResolvedTerm::Slot(slot))];
        matches!(side.overlap, Some((n, true)) if n >= side.keys)
    }

    fn bind_graph(&mut self, e: usize, sub: &SubStep) {
        let edge = &self.model.edges[e];
        let (ResolvedPredicate::Known(predicate), PatternGraph::Slot(g)) =
            (edge.predicate, &edge.graph)
        else {
            return;
        };
        if self.steps.is_empty() {
            self.unit();
        }
        let from_subject = CostModel::is_known(edge.subject, self.state.bound);
        let direction = if from_subject {
            Direction::Out
        } else {
            Direction::In
        };
        let (anchor, other) = ends(edge, direction);
        let mut filters = vec![];
        let mut taken = 0u128;
        let other_known = CostModel::is_known(other, self.state.bound);
        if let (ResolvedTerm::Slot(to), false) = (other, other_known) {
            taken |= 1 << to;
        }
        let graph_slot = self.fresh(*g, &mut taken, &mut filters);
        let graph = GraphRef::Bind(graph_slot, self.model.resolved.named.clone());
        let list = EdgeList {
            anchor: operand(anchor),
            predicate,
            direction,
            graph,
        };
        let kind = match other {
            ResolvedTerm::Slot(to) if !other_known => {
                let within = self.model.resolved.within[usize::from(to)].clone();
                StepKind::Expand {
                    to,
                    lists: vec![list],
                    within,
                }
            }
            _ => StepKind::Check {
                list,
                other: operand(other),
            },
        };
        let why = format!(
            "one row for each graph ?{} that has the edge",
            self.name(*g)
        );
        self.push(kind, filters, sub, why);
    }

    /// The slot to bind. If this step binds `slot` already (`taken`), a hidden slot instead, with a filter that both
    /// are equal.
    fn fresh(&mut self, slot: Slot, taken: &mut u128, filters: &mut Vec<Condition>) -> Slot {
        if *taken >> slot & 1 == 0 {
            *taken |= 1 << slot;
            return slot;
        }
        let hidden = self.slots.len() as Slot;
        self.slots.push(format!("same as {}", self.name(slot)));
        filters.push(Condition::Same(Operand::Slot(hidden), Operand::Slot(slot)));
        hidden
    }

    fn any(&mut self, e: usize, sub: &SubStep) {
        let edge = &self.model.edges[e];
        if self.steps.is_empty() {
            self.unit();
        }
        let direction = self.model.any_direction(e, &self.state);
        let (anchor, other) = ends(edge, direction);
        let (mut filters, mut taken) = (vec![], 0u128);
        let far = match other {
            ResolvedTerm::Slot(s) if !CostModel::is_known(other, self.state.bound) => {
                FarEnd::Bind(self.fresh(s, &mut taken, &mut filters))
            }
            known => FarEnd::Known(operand(known)),
        };
        let predicate = self.predicate(edge, &mut taken, &mut filters);
        let graph = self.bind_or_read_graph(edge, &mut taken, &mut filters);
        let why = format!("reads only the predicates that {} has", self.end(anchor));
        let kind = StepKind::ExpandAny {
            anchor: operand(anchor),
            direction,
            predicate,
            far,
            graph,
        };
        self.push(kind, filters, sub, why);
    }

    fn scan(&mut self, e: usize, sub: &SubStep) {
        let edge = &self.model.edges[e];
        let (ResolvedTerm::Slot(s), ResolvedTerm::Slot(o)) = (edge.subject, edge.object) else {
            return;
        };
        if self.steps.is_empty() {
            self.unit();
        }
        let (mut filters, mut taken) = (vec![], 0u128);
        let subject = self.fresh(s, &mut taken, &mut filters);
        let object = self.fresh(o, &mut taken, &mut filters);
        let predicate = self.predicate(edge, &mut taken, &mut filters);
        let graph = self.bind_or_read_graph(edge, &mut taken, &mut filters);
        let kind = StepKind::ScanAll {
            subject,
            predicate,
            object,
            graph,
        };
        self.push(
            kind,
            filters,
            sub,
            "neither end of the pattern is known".into(),
        );
    }

    fn predicate(
        &mut self,
        edge: &Edge,
        taken: &mut u128,
        filters: &mut Vec<Condition>,
    ) -> PredicateRef {
        match edge.predicate {
            ResolvedPredicate::Slot(p) if self.state.bound >> p & 1 == 1 => PredicateRef::Slot(p),
            ResolvedPredicate::Slot(p) => PredicateRef::Bind(self.fresh(p, taken, filters)),
            // Never reached: only patterns with a predicate variable get here.
            ResolvedPredicate::Known(_) => PredicateRef::Slot(0),
        }
    }

    fn bind_or_read_graph(
        &mut self,
        edge: &Edge,
        taken: &mut u128,
        filters: &mut Vec<Condition>,
    ) -> GraphRef {
        match edge.graph {
            PatternGraph::Slot(g) if self.state.bound >> g & 1 == 0 => GraphRef::Bind(
                self.fresh(g, taken, filters),
                self.model.resolved.named.clone(),
            ),
            _ => self.graph(edge, self.state.bound),
        }
    }

    /// The graph of an edge; its graph variable, if it has one, is bound already.
    fn graph(&self, edge: &Edge, bound: u128) -> GraphRef {
        match &edge.graph {
            PatternGraph::Fixed(g) => g.clone(),
            PatternGraph::Slot(g) => {
                debug_assert!(bound >> g & 1 == 1);
                GraphRef::Slot(*g)
            }
        }
    }

    fn restrict(&mut self, slot: Slot, sub: &SubStep) {
        let Some(within) = self.model.resolved.within[usize::from(slot)].clone() else {
            return;
        };
        if self.is_graph_list(slot, &within) {
            return;
        }
        let why = format!(
            "?{} {}",
            self.name(slot),
            self.model.resolved.within_why[usize::from(slot)].join(" and ")
        );
        self.push(StepKind::Restrict { slot, within }, vec![], sub, why);
    }

    /// Returns true if the previous step already restricted the slot to the graphs of `FROM NAMED`, and `within`
    /// requires no more than that.
    fn is_graph_list(&self, slot: Slot, within: &IdFilter) -> bool {
        let Some(named) = &self.model.resolved.named else {
            return false;
        };
        let graph = match self.steps.last().map(|s| &s.kind) {
            Some(StepKind::Expand { lists, .. }) => lists.first().map(|l| &l.graph),
            Some(StepKind::Check { list, .. }) => Some(&list.graph),
            Some(StepKind::ExpandAny { graph, .. } | StepKind::ScanAll { graph, .. }) => {
                Some(graph)
            }
            _ => None,
        };
        matches!(graph, Some(GraphRef::Bind(g, Some(_))) if *g == slot)
            && within.is_exact()
            && within.intervals == crate::intervals::of_ids(named.clone())
    }

    fn check(&mut self, e: usize, direction: Direction, sub: &SubStep) {
        let edge = &self.model.edges[e];
        let ResolvedPredicate::Known(predicate) = edge.predicate else {
            return;
        };
        let (anchor, other) = ends(edge, direction);
        let graph = match &edge.graph {
            PatternGraph::Fixed(g) => g.clone(),
            PatternGraph::Slot(g) => GraphRef::Slot(*g),
        };
        let list = EdgeList {
            anchor: operand(anchor),
            predicate,
            direction,
            graph,
        };
        let why = format!(
            "{} and {} are both known",
            self.end(anchor),
            self.end(other)
        );
        self.push(
            StepKind::Check {
                list,
                other: operand(other),
            },
            vec![],
            sub,
            why,
        );
    }

    fn name(&self, slot: Slot) -> &str {
        &self.slots[usize::from(slot)]
    }

    fn end(&self, node: ResolvedTerm) -> String {
        match node {
            ResolvedTerm::Slot(s) => format!("?{}", self.name(s)),
            ResolvedTerm::Const(c) => show::vertex(self.snapshot, c),
        }
    }

    /// Puts each condition on the first step after which all its slots are bound.
    fn filters(&mut self) {
        for c in &self.model.resolved.conditions {
            let mut mask = 0u128;
            for_each_slot(c, &mut |s| mask |= 1 << s);
            let mut bound = self.given;
            let Some(last) = self.steps.len().checked_sub(1) else {
                return;
            };
            for (i, step) in self.steps.iter_mut().enumerate() {
                binds(&step.kind, &mut |s| bound |= 1 << s);
                if mask & !bound == 0 || i == last {
                    step.filters.push(c.clone());
                    break;
                }
            }
        }
    }
}

fn operand(node: ResolvedTerm) -> Operand {
    match node {
        ResolvedTerm::Slot(s) => Operand::Slot(s),
        ResolvedTerm::Const(c) => Operand::Const(c),
    }
}

/// The terms at the end where a walk in this direction starts, and at the end where it arrives.
fn ends(edge: &Edge, direction: Direction) -> (ResolvedTerm, ResolvedTerm) {
    match direction {
        Direction::Out => (edge.subject, edge.object),
        Direction::In => (edge.object, edge.subject),
    }
}
