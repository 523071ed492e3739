//! Which slots a step binds and which it reads, as masks.

use crate::{EdgeList, FarEnd, GraphRef, Operand, PredicateRef, StepKind};

fn graph_binds(g: &GraphRef) -> u128 {
    if let GraphRef::Bind(s, _) = g {
        1 << s
    } else {
        0
    }
}

fn graph_reads(g: &GraphRef) -> u128 {
    if let GraphRef::Slot(s) = g { 1 << s } else { 0 }
}

fn operand_reads(o: &Operand) -> u128 {
    if let Operand::Slot(s) = o { 1 << s } else { 0 }
}

/// Slots that a step binds.
pub(crate) fn binds(kind: &StepKind) -> u128 {
    match kind {
        StepKind::Start { to, .. } => to.map_or(0, |s| 1 << s),
        StepKind::Cross { to, .. } => 1 << to,
        StepKind::Expand { to, lists, .. } => lists
            .iter()
            .map(|l| graph_binds(&l.graph))
            .fold(1 << to, |a, b| a | b),
        StepKind::Check { list, .. } => graph_binds(&list.graph),
        StepKind::Restrict { .. } => 0,
        StepKind::ExpandAny {
            predicate,
            far,
            graph,
            ..
        } => {
            let p = if let PredicateRef::Bind(s) = predicate {
                1 << s
            } else {
                0
            };
            let f = if let FarEnd::Bind(s) = far { 1 << s } else { 0 };
            p | f | graph_binds(graph)
        }
        StepKind::ScanAll {
            subject,
            predicate,
            object,
            graph,
        } => {
            let p = if let PredicateRef::Bind(s) = predicate {
                1 << s
            } else {
                0
            };
            1 << subject | 1 << object | p | graph_binds(graph)
        }
    }
}

/// Slots that a step reads from earlier ones.
pub(crate) fn reads(kind: &StepKind) -> u128 {
    let list = |l: &EdgeList| operand_reads(&l.anchor) | graph_reads(&l.graph);
    match kind {
        StepKind::Start { .. } | StepKind::Cross { .. } => 0,
        StepKind::Expand { lists, .. } => lists.iter().map(list).fold(0, |a, b| a | b),
        StepKind::Check { list: l, other } => list(l) | operand_reads(other),
        StepKind::Restrict { slot, .. } => 1 << slot,
        StepKind::ExpandAny {
            anchor,
            predicate,
            far,
            graph,
            ..
        } => {
            let p = if let PredicateRef::Slot(s) = predicate {
                1 << s
            } else {
                0
            };
            let f = if let FarEnd::Known(o) = far {
                operand_reads(o)
            } else {
                0
            };
            operand_reads(anchor) | p | f | graph_reads(graph)
        }
        StepKind::ScanAll {
            predicate, graph, ..
        } => {
            let p = if let PredicateRef::Slot(s) = predicate {
                1 << s
            } else {
                0
            };
            p | graph_reads(graph)
        }
    }
}
