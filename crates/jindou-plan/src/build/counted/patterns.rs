//! Operators between a group and the patterns below it, and the conjunction of these patterns.

use super::triples::Layer;
use super::*;
use crate::joins;
use crate::logical::{LogicalPattern, add_new};

/// Largest number of patterns, and of parts of a join, that are considered.
const FEW: usize = 4;

impl PlanBuilder<'_> {
    /// Removes the operators at the top of a node that only filter its rows, add to them, or remove duplicates. Returns
    /// the former two from the top down, the slots of which rows are different if duplicates were removed, and the node
    /// below. Branches of a union that have no solutions are removed as well.
    pub(super) fn unwrapped<'n>(
        &self,
        node: &'n LogicalNode,
    ) -> (Vec<Layer>, Option<Vec<Slot>>, &'n LogicalNode) {
        let (mut layers, mut distinct, mut at) = (vec![], None, node);
        loop {
            at = match &at.kind {
                NodeKind::Project(inner) | NodeKind::OrderBy { inner, .. } => inner,
                NodeKind::Filter { inner, filters } => {
                    layers.extend(filters.iter().cloned().map(Layer::Filter));
                    inner
                }
                NodeKind::Extend { inner, to, value } => {
                    layers.push(Layer::Extend(*to, value.clone()));
                    inner
                }
                // Only the uppermost of several decides.
                NodeKind::Distinct { inner, slots } => {
                    distinct.get_or_insert_with(|| slots.clone());
                    inner
                }
                NodeKind::Group { inner, by, .. } if !by.is_empty() => {
                    distinct.get_or_insert_with(|| by.clone());
                    inner
                }
                NodeKind::Union(branches) => match self.only_branch(branches) {
                    Some(one) => one,
                    None => return (layers, distinct, at),
                },
                _ => return (layers, distinct, at),
            };
        }
    }

    /// The branch of a union that may have solutions, if it is the only one.
    fn only_branch<'n>(&self, branches: &'n [LogicalNode]) -> Option<&'n LogicalNode> {
        let is_empty = |b: &LogicalNode| match &b.kind {
            NodeKind::Bgp(b) => b.patterns.iter().any(|p| self.sees_no_graph(&p.place)),
            _ => false,
        };
        let mut others = branches.iter().filter(|b| !is_empty(b));
        let one = others.next()?;
        others.next().is_none().then_some(one)
    }

    fn sees_no_graph(&self, place: &PatternGraphTerm) -> bool {
        match place {
            PatternGraphTerm::Named(name) if self.dataset.graph(name, self.snapshot).is_none() => {
                true
            }
            place => {
                let graphs = self.seen_graphs(place);
                graphs.is_some_and(|g| !g.of.default && !g.of.named)
            }
        }
    }
}

pub(super) type Conjunction = (Vec<LogicalPattern>, Vec<Arc<Expr>>);

/// The patterns and filters whose conjunction a node is, with one solution for each combination of matches.
pub(super) fn joined_patterns(node: &LogicalNode) -> Option<Conjunction> {
    match &node.kind {
        NodeKind::Bgp(b) if b.patterns.len() <= FEW => {
            Some((b.patterns.clone(), b.filters.clone()))
        }
        NodeKind::Join(parts) if parts.len() <= FEW => {
            let mut out: Conjunction = (vec![], vec![]);
            for part in joins::constants(parts) {
                let (patterns, filters) = joined_patterns(without_modifiers(&part))?;
                add_new(&mut out.0, &patterns);
                out.1.extend(filters);
            }
            Some(out)
        }
        // Without slots of its own, the body has at most one solution for a row.
        NodeKind::Apply {
            input,
            body,
            kind: ApplyKind::Semi,
        } if body.uses.is_within(&input.certain) => {
            let (mut patterns, mut filters) = joined_patterns(input)?;
            let (more, over) = joined_patterns(without_modifiers(body))?;
            add_new(&mut patterns, &more);
            filters.extend(over);
            (patterns.len() <= FEW).then_some((patterns, filters))
        }
        _ => None,
    }
}

/// The node without sub-selects, DISTINCT and ORDER BY at its top that hide no slot and so remove no duplicates.
fn without_modifiers(node: &LogicalNode) -> &LogicalNode {
    let mut at = node;
    loop {
        at = match &at.kind {
            NodeKind::Project(inner) if inner.uses.is_within(&at.certain) => inner,
            NodeKind::OrderBy { inner, .. } => inner,
            NodeKind::Distinct { inner, slots }
                if inner.uses.is_within(&slots.iter().copied().collect()) =>
            {
                inner
            }
            _ => return at,
        };
    }
}

/// Replaces variables that a filter equates with an IRI by the IRI.
pub(super) fn with_constants(
    patterns: Vec<LogicalPattern>,
    filters: Vec<Arc<Expr>>,
) -> Conjunction {
    let (mut patterns, mut rest) = (patterns, vec![]);
    for f in filters {
        let Some((slot, term)) = equated(&f) else {
            rest.push(f);
            continue;
        };
        for p in &mut patterns {
            for end in [&mut p.subject, &mut p.predicate, &mut p.object] {
                if *end == PatternTerm::Slot(slot) {
                    *end = PatternTerm::Term(term.clone());
                }
            }
        }
    }
    (patterns, rest)
}

/// The slot and the IRI that a filter equates, if that is all it does.
fn equated(f: &Expr) -> Option<(Slot, Canonical)> {
    let (v, name) = match &*f.expression {
        Expression::Equal(a, b) | Expression::SameTerm(a, b) => match (&**a, &**b) {
            (Expression::Variable(v), Expression::NamedNode(n))
            | (Expression::NamedNode(n), Expression::Variable(v)) => (v, n),
            _ => return None,
        },
        Expression::In(a, list) => match (&**a, list.as_slice()) {
            (Expression::Variable(v), [Expression::NamedNode(n)]) => (v, n),
            _ => return None,
        },
        _ => return None,
    };
    Some((f.slot(v)?, name.canonical()))
}
