//! All ids in a plan that stand for terms of the query, so that placeholders of parameters can be replaced.

use crate::{
    Condition, EdgeList, FarEnd, GraphRef, IdFilter, Intervals, Operand, Operator, StartSource,
    Step, StepKind,
};

/// Calls `f` with each id, always in the same order. The flag is true if the id can be replaced by another one (an
/// operand); false if the planner has drawn conclusions from the value (graphs, intervals, inline data).
pub(super) fn each(op: &mut Operator, f: &mut dyn FnMut(&mut u32, bool)) {
    op.walk_mut(&mut |op| op.facts_mut().each_id(f));
}

/// As [`each`], for steps.
pub(crate) fn ids_of_steps(list: &mut [Step], f: &mut dyn FnMut(&mut u32, bool)) {
    for step in list {
        match &mut step.kind {
            StepKind::Start { source, within, .. } | StepKind::Cross { source, within, .. } => {
                start(source, f);
                inside(within.as_mut(), f);
            }
            StepKind::Expand { lists, within, .. } => {
                lists.iter_mut().for_each(|l| edge(l, f));
                inside(within.as_mut(), f);
            }
            StepKind::Check { list, other } => {
                edge(list, f);
                operand(other, f);
            }
            StepKind::Restrict { within, .. } => inside(Some(within), f),
            StepKind::ExpandAny {
                anchor,
                far: end,
                graph: g,
                ..
            } => {
                operand(anchor, f);
                ids_of_end(end, f);
                ids_of_graph(g, f);
            }
            StepKind::ScanAll { graph: g, .. } => ids_of_graph(g, f),
        }
        step.filters.iter_mut().for_each(|c| ids_of_condition(c, f));
    }
}

fn start(source: &mut StartSource, f: &mut dyn FnMut(&mut u32, bool)) {
    match source {
        StartSource::Unit | StartSource::IdFilter | StartSource::Graphs(None) => {}
        StartSource::List(list) => edge(list, f),
        StartSource::Keys { graph: g, .. } => ids_of_graph(g, f),
        StartSource::Graphs(Some(list)) => list.iter_mut().for_each(|id| f(id, false)),
    }
}

fn edge(list: &mut EdgeList, f: &mut dyn FnMut(&mut u32, bool)) {
    operand(&mut list.anchor, f);
    ids_of_graph(&mut list.graph, f);
}

fn operand(o: &mut Operand, f: &mut dyn FnMut(&mut u32, bool)) {
    if let Operand::Const(id) = o {
        f(id, true);
    }
}

/// As [`each`], for an end of an edge or path.
pub(crate) fn ids_of_end(end: &mut FarEnd, f: &mut dyn FnMut(&mut u32, bool)) {
    if let FarEnd::Known(o) = end {
        operand(o, f);
    }
}

/// As [`each`], for graphs.
pub(crate) fn ids_of_graph(g: &mut GraphRef, f: &mut dyn FnMut(&mut u32, bool)) {
    match g {
        GraphRef::Named(id) => f(id, false),
        GraphRef::Set(list) | GraphRef::Bind(_, Some(list)) => {
            list.iter_mut().for_each(|id| f(id, false));
        }
        GraphRef::Default
        | GraphRef::AnyNamed
        | GraphRef::Union
        | GraphRef::Slot(_)
        | GraphRef::Bind(_, None) => {}
    }
}

fn inside(within: Option<&mut IdFilter>, f: &mut dyn FnMut(&mut u32, bool)) {
    let Some(within) = within else { return };
    intervals(&mut within.intervals, f);
    for m in &mut within.members {
        intervals(&mut m.intervals, f);
        if let Some(by) = &mut m.touched {
            ids_of_graph(&mut by.graph, f);
            by.neighbour.iter_mut().for_each(|id| f(id, false));
        }
    }
}

fn intervals(list: &mut Intervals, f: &mut dyn FnMut(&mut u32, bool)) {
    // The largest id suffices to find a placeholder, since placeholders' ids are above all others.
    if let Some([_, end]) = list.last_mut() {
        let mut last = end.saturating_sub(1);
        f(&mut last, false);
    }
}

/// As [`each`], for a condition.
pub(crate) fn ids_of_condition(c: &mut Condition, f: &mut dyn FnMut(&mut u32, bool)) {
    match c {
        // Not replaceable: how the comparison was compiled may depend on the kind of the term.
        Condition::Same(a, b) => {
            for o in [a, b] {
                if let Operand::Const(id) = o {
                    f(id, false);
                }
            }
        }
        Condition::And(list) | Condition::Or(list) => {
            list.iter_mut().for_each(|c| ids_of_condition(c, f));
        }
        Condition::Not(c) => ids_of_condition(c, f),
        Condition::Compare(..)
        | Condition::Kind(..)
        | Condition::Bound(_)
        | Condition::General(_) => {}
    }
}
