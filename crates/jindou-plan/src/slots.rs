//! The slots that a step binds and those that it reads.

use crate::{EdgeList, FarEnd, GraphRef, Operand, PredicateRef, Slot, StepKind};

/// Calls `f` with every slot that a step binds.
pub(crate) fn binds(kind: &StepKind, f: &mut impl FnMut(Slot)) {
    let graph = |g: &GraphRef, f: &mut dyn FnMut(Slot)| {
        if let GraphRef::Bind(s, _) = g {
            f(*s);
        }
    };
    match kind {
        StepKind::Start { to, .. } => to.iter().for_each(|s| f(*s)),
        StepKind::Cross { to, .. } => f(*to),
        StepKind::Expand { to, lists, .. } => {
            f(*to);
            lists.iter().for_each(|l| graph(&l.graph, f));
        }
        StepKind::Check { list, .. } => graph(&list.graph, f),
        StepKind::Restrict { .. } => {}
        StepKind::ExpandAny {
            predicate,
            far,
            graph: g,
            ..
        } => {
            if let PredicateRef::Bind(s) = predicate {
                f(*s);
            }
            if let FarEnd::Bind(s) = far {
                f(*s);
            }
            graph(g, f);
        }
        StepKind::ScanAll {
            subject,
            predicate,
            object,
            graph: g,
        } => {
            f(*subject);
            f(*object);
            if let PredicateRef::Bind(s) = predicate {
                f(*s);
            }
            graph(g, f);
        }
    }
}

/// Calls `f` with every slot that a step reads from earlier ones.
pub(crate) fn reads(kind: &StepKind, f: &mut impl FnMut(Slot)) {
    fn operand(o: &Operand, f: &mut impl FnMut(Slot)) {
        if let Operand::Slot(s) = o {
            f(*s);
        }
    }
    fn graph(g: &GraphRef, f: &mut impl FnMut(Slot)) {
        if let GraphRef::Slot(s) = g {
            f(*s);
        }
    }
    fn list(l: &EdgeList, f: &mut impl FnMut(Slot)) {
        operand(&l.anchor, f);
        graph(&l.graph, f);
    }
    match kind {
        StepKind::Start { .. } | StepKind::Cross { .. } => {}
        StepKind::Expand { lists, .. } => lists.iter().for_each(|l| list(l, f)),
        StepKind::Check { list: l, other } => {
            list(l, f);
            operand(other, f);
        }
        StepKind::Restrict { slot, .. } => f(*slot),
        StepKind::ExpandAny {
            anchor,
            predicate,
            far,
            graph: g,
            ..
        } => {
            operand(anchor, f);
            if let PredicateRef::Slot(s) = predicate {
                f(*s);
            }
            if let FarEnd::Known(o) = far {
                operand(o, f);
            }
            graph(g, f);
        }
        StepKind::ScanAll {
            predicate,
            graph: g,
            ..
        } => {
            if let PredicateRef::Slot(s) = predicate {
                f(*s);
            }
            graph(g, f);
        }
    }
}
