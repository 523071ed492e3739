//! Every id in a plan that stands for a term of the query.

use crate::{
    Cell, Condition, EdgeList, FarEnd, GraphRef, IdFilter, Intervals, Operand, Operator,
    StartSource, Step, StepKind,
};

/// Calls `f` with each id: true if it is an operand, which means the same whatever the id; false where the planner has drawn
/// conclusions from it (graphs, intervals, inline data). Always in the same order.
pub(super) fn each(op: &mut Operator, f: &mut dyn FnMut(&mut u32, bool)) {
    match op {
        Operator::Explore(e) => steps(&mut e.steps, f),
        Operator::Outer(_) | Operator::Service(_) => {}
        Operator::Values { rows, .. } => {
            for cell in rows.iter_mut().flatten() {
                if let Cell::Id(id) = cell {
                    f(id, false);
                }
            }
        }
        Operator::Steps { input, steps: list } => {
            each(input, f);
            steps(list, f);
        }
        Operator::Path {
            input,
            subject,
            object,
            graph: g,
            ..
        } => {
            each(input, f);
            far(subject, f);
            far(object, f);
            graph(g, f);
        }
        Operator::Join {
            left,
            right,
            condition: c,
            ..
        } => {
            each(left, f);
            each(right, f);
            if let Some(c) = c {
                condition(c, f);
            }
        }
        Operator::Apply { input, inner, .. } => {
            each(input, f);
            each(inner, f);
        }
        Operator::Union(list) => list.iter_mut().for_each(|o| each(o, f)),
        Operator::Filter(input, c) => {
            each(input, f);
            condition(c, f);
        }
        Operator::Extend { input, .. }
        | Operator::Group { input, .. }
        | Operator::Count { input, .. }
        | Operator::Slice { input, .. }
        | Operator::Reduced(input, _)
        | Operator::Distinct(input, _)
        | Operator::OrderBy(input, _) => each(input, f),
    }
}

fn steps(list: &mut [Step], f: &mut dyn FnMut(&mut u32, bool)) {
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
                far(end, f);
                graph(g, f);
            }
            StepKind::ScanAll { graph: g, .. } => graph(g, f),
        }
        step.filters.iter_mut().for_each(|c| condition(c, f));
    }
}

fn start(source: &mut StartSource, f: &mut dyn FnMut(&mut u32, bool)) {
    match source {
        StartSource::Unit | StartSource::IdFilter | StartSource::Graphs(None) => {}
        StartSource::List(list) => edge(list, f),
        StartSource::Keys { graph: g, .. } => graph(g, f),
        StartSource::Graphs(Some(list)) => list.iter_mut().for_each(|id| f(id, false)),
    }
}

fn edge(list: &mut EdgeList, f: &mut dyn FnMut(&mut u32, bool)) {
    operand(&mut list.anchor, f);
    graph(&mut list.graph, f);
}

fn operand(o: &mut Operand, f: &mut dyn FnMut(&mut u32, bool)) {
    if let Operand::Const(id) = o {
        f(id, true);
    }
}

fn far(end: &mut FarEnd, f: &mut dyn FnMut(&mut u32, bool)) {
    if let FarEnd::Known(o) = end {
        operand(o, f);
    }
}

fn graph(g: &mut GraphRef, f: &mut dyn FnMut(&mut u32, bool)) {
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
            graph(&mut by.graph, f);
            by.neighbour.iter_mut().for_each(|id| f(id, false));
        }
    }
}

fn intervals(list: &mut Intervals, f: &mut dyn FnMut(&mut u32, bool)) {
    // Their ends suffice: ids of placeholders are above all others.
    if let Some([_, end]) = list.last_mut() {
        let mut last = end.saturating_sub(1);
        f(&mut last, false);
    }
}

fn condition(c: &mut Condition, f: &mut dyn FnMut(&mut u32, bool)) {
    match c {
        // A comparison may have been drawn from what the term is.
        Condition::Same(a, b) => {
            for o in [a, b] {
                if let Operand::Const(id) = o {
                    f(id, false);
                }
            }
        }
        Condition::And(list) | Condition::Or(list) => {
            list.iter_mut().for_each(|c| condition(c, f));
        }
        Condition::Not(c) => condition(c, f),
        Condition::Compare(..)
        | Condition::Kind(..)
        | Condition::Bound(_)
        | Condition::General(_) => {}
    }
}
