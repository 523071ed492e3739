//! The slots that a step binds and reads, and the columns after it.

use crate::condition::for_each_slot;
use crate::{EdgeList, FarEnd, GraphRef, Operand, PredicateRef, Slot, Step, StepKind};
use std::borrow::Cow;

/// Calls `f` with every slot that a step binds.
pub(crate) fn binds(kind: &StepKind, f: &mut (impl FnMut(Slot) + ?Sized)) {
    fn graph(g: &GraphRef, f: &mut (impl FnMut(Slot) + ?Sized)) {
        if let GraphRef::Bind(s, _) = g {
            f(*s);
        }
    }
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

/// Calls `f` with every slot that a step reads, that is, that earlier steps must have bound.
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

/// First slot reserved for the engine, which uses such slots to number the outer rows of an `Apply`. They remain
/// columns although no step lists them as needed.
pub const FIRST_HIDDEN: Slot = 0xFF00;

/// The columns after a step, in order: the bound slots that its filters or later steps and operators need.
#[must_use]
pub fn layout_of(before: &[Slot], step: &Step) -> Vec<Slot> {
    let mut needed = Cow::Borrowed(&step.live[..]);
    if !step.filters.is_empty() || !needed.is_sorted() {
        let needed = needed.to_mut();
        for c in &step.filters {
            for_each_slot(c, &mut |s| needed.push(s));
        }
        needed.sort_unstable();
    }
    let is_needed = |s: Slot| s >= FIRST_HIDDEN || needed.binary_search(&s).is_ok();
    // `out` has no duplicates, since each slot is a column only once.
    let mut out: Vec<Slot> = Vec::with_capacity(before.len() + 3);
    out.extend(before.iter().copied().filter(|&s| is_needed(s)));
    binds(&step.kind, &mut |s| {
        if is_needed(s) && !out.contains(&s) {
            out.push(s);
        }
    });
    out
}
