//! Filters that equate two variables: what nothing else connects, they do.
//!
//! `sameTerm(?a, ?b)`, and `?a = ?b` where one is equal to nothing but itself (an IRI or a blank node, since it is a subject, or
//! a string: where all objects of its predicate are such), make one slot of two ([`unified`]), so that the search explores
//! through it. Any other `?a = ?b` between groups of patterns that share no slot ([`components`]) is a join on values.

use crate::Slot;
use crate::expression::Expr;
use crate::logical::{Bgp, End, Pattern, Place};
use crate::set::SlotSet;
use jindou_store::{Graph, ObjectTerms};
use jindou_syntax::algebra::{Expression, Variable};
use std::sync::Arc;

/// The two slots of which `=` (or `sameTerm`: then the third says true) must hold. They differ.
pub(crate) fn pair(f: &Expr) -> Option<(Slot, Slot, bool)> {
    let (a, b, same) = match &*f.expression {
        Expression::Equal(a, b) => (a, b, false),
        Expression::SameTerm(a, b) => (a, b, true),
        _ => return None,
    };
    let (Expression::Variable(a), Expression::Variable(b)) = (&**a, &**b) else {
        return None;
    };
    let (a, b) = (f.slot(a)?, f.slot(b)?);
    (a != b && !f.per_row).then_some((a, b, same))
}

/// A filter that connects the rows on one side with those on the other: its slot of the left and of the right.
pub(crate) fn between(f: &Expr, left: &SlotSet, right: &SlotSet) -> Option<(Slot, Slot)> {
    let (a, b, _) = pair(f)?;
    if left.has(a) && right.has(b) {
        Some((a, b))
    } else if left.has(b) && right.has(a) {
        Some((b, a))
    } else {
        None
    }
}

/// Slots that are gone from a group, each with the value that it had there.
type Copies = Vec<(Slot, Arc<Expr>)>;

/// The group with one slot in place of two wherever a filter lets only one and the same term through, and what each
/// slot that is gone is a copy of; `None` if there is no such filter.
pub(crate) fn unified(group: &Bgp, snapshot: &dyn Graph) -> Option<(Bgp, Copies)> {
    let mut out: Option<(Bgp, Copies)> = None;
    loop {
        let at = out.as_ref().map_or(group, |o| &o.0);
        if !at.filters.iter().any(|f| pair(f).is_some()) {
            return out;
        }
        let identical = identical(&at.patterns, snapshot);
        let bound: SlotSet = at.patterns.iter().flat_map(Pattern::slots).collect();
        // Predicates and graphs keep their slots: patterns treat those in their own way.
        let fixed: SlotSet = at.patterns.iter().flat_map(fixed).collect();
        let next = at.filters.iter().enumerate().find_map(|(i, f)| {
            let (a, b, same) = pair(f)?;
            let one_term = same || identical.has(a) || identical.has(b);
            if !one_term || !bound.has(a) || !bound.has(b) {
                return None;
            }
            let (keep, gone) = if fixed.has(b) { (b, a) } else { (a, b) };
            (!fixed.has(gone)).then_some((i, keep, gone))
        });
        let Some((filter, keep, gone)) = next else {
            return out;
        };
        let (group, copies) = out.get_or_insert_with(|| (group.clone(), vec![]));
        group.filters.remove(filter);
        for p in &mut group.patterns {
            for end in [&mut p.subject, &mut p.object] {
                if *end == End::Slot(gone) {
                    *end = End::Slot(keep);
                }
            }
        }
        for i in (1..group.patterns.len()).rev() {
            if group.patterns[..i].contains(&group.patterns[i]) {
                group.patterns.remove(i);
            }
        }
        for f in group
            .filters
            .iter_mut()
            .chain(copies.iter_mut().map(|c| &mut c.1))
        {
            if f.variables.iter().any(|v| v.1 == gone) {
                *f = Arc::new(f.renamed(|s| if s == gone { keep } else { s }));
            }
        }
        copies.push((gone, Arc::new(copy(keep))));
    }
}

/// The term of another slot.
pub(crate) fn copy(of: Slot) -> Expr {
    let v = Variable::new_unchecked("same");
    Expr::plain(v.clone().into(), [(v, of)])
}

fn fixed(p: &Pattern) -> impl Iterator<Item = Slot> {
    let predicate = match p.predicate {
        End::Slot(s) => Some(s),
        End::Term(_) => None,
    };
    let graph = match p.place {
        Place::Slot(g) => Some(g),
        _ => None,
    };
    predicate.into_iter().chain(graph)
}

/// Slots that are equal to nothing but the same term, wherever the patterns match.
fn identical(patterns: &[Pattern], snapshot: &dyn Graph) -> SlotSet {
    let slot = |e: &End| match e {
        End::Slot(s) => Some(*s),
        End::Term(_) => None,
    };
    let object = |p: &Pattern| {
        let (object, End::Term(predicate)) = (slot(&p.object)?, &p.predicate) else {
            return None;
        };
        let known = snapshot.predicate_of(snapshot.lookup(predicate)?)?;
        (snapshot.object_terms(known) >= ObjectTerms::Texts).then_some(object)
    };
    patterns
        .iter()
        .flat_map(|p| {
            slot(&p.subject)
                .into_iter()
                .chain(fixed(p))
                .chain(object(p))
        })
        .collect()
}

/// The parts of a group that share no slot, each with the filters that it can decide, and the filters over several.
/// With `by_graph` being in the same graph connects too.
pub(crate) fn components(group: &Bgp, by_graph: bool) -> (Vec<Bgp>, Vec<Arc<Expr>>) {
    let mut parts: Vec<(Bgp, SlotSet)> = vec![];
    for p in &group.patterns {
        let graph = match p.place {
            Place::Slot(g) if !by_graph => Some(g),
            _ => None,
        };
        let ends = [&p.subject, &p.predicate, &p.object];
        let is_end = |s: Slot| ends.iter().any(|e| **e == End::Slot(s));
        let mut slots: SlotSet = p
            .slots()
            .filter(|s| graph != Some(*s) || is_end(*s))
            .collect();
        let mut one = Bgp::new(vec![p.clone()], vec![]);
        for i in (0..parts.len()).rev() {
            if parts[i].1.meets(&slots) {
                let (mut old, had) = parts.remove(i);
                old.patterns.append(&mut one.patterns);
                one = old;
                slots.add(&had);
            }
        }
        parts.push((one, slots));
    }
    let mut over = vec![];
    for f in &group.filters {
        let slots = f.slots();
        match parts.iter_mut().find(|p| slots.is_within(&p.1)) {
            Some(p) => p.0.filters.push(f.clone()),
            None => over.push(f.clone()),
        }
    }
    (parts.into_iter().map(|p| p.0).collect(), over)
}
