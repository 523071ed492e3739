//! Algebra taken apart with a stack of its own: dropped as the compiler would drop it, a text that nests deep would overflow
//! the thread's.

use crate::expression::parts_mut;
use spargebra::algebra::{
    AggregateExpression, Expression, GraphPattern, OrderExpression, PropertyPathExpression,
};
use spargebra::term::{
    GroundTerm, GroundTermPattern, GroundTriple, GroundTriplePattern, TermPattern, TriplePattern,
};
use spargebra::{GraphUpdateOperation, Query};

/// Parts that are still to be taken apart.
#[derive(Default)]
struct Open {
    patterns: Vec<GraphPattern>,
    expressions: Vec<Expression>,
    paths: Vec<PropertyPathExpression>,
    triples: Vec<TriplePattern>,
    ground: Vec<GroundTriple>,
    ground_patterns: Vec<GroundTriplePattern>,
}

/// Drops a query. O(query), whatever its depth.
pub(super) fn query(query: Query) {
    let mut open = Open::default();
    match query {
        Query::Select { pattern, .. }
        | Query::Describe { pattern, .. }
        | Query::Ask { pattern, .. } => open.patterns.push(pattern),
        Query::Construct {
            template, pattern, ..
        } => {
            open.patterns.push(pattern);
            template.into_iter().for_each(|t| open.triple(t));
        }
    }
    open.all();
}

/// Drops an update's operation. O(operation), whatever its depth.
pub(super) fn operation(operation: GraphUpdateOperation) {
    let mut open = Open::default();
    if let GraphUpdateOperation::DeleteInsert {
        delete,
        insert,
        pattern,
        ..
    } = operation
    {
        open.patterns.push(*pattern);
        for q in insert {
            open.term(q.subject);
            open.term(q.object);
        }
        for q in delete {
            open.ground_pattern(q.subject);
            open.ground_pattern(q.object);
        }
    }
    // Data's terms are not deeper than the parser of terms lets them be.
    open.all();
}

impl Open {
    fn all(&mut self) {
        loop {
            if let Some(p) = self.patterns.pop() {
                self.pattern(p);
            } else if let Some(e) = self.expressions.pop() {
                self.expression(e);
            } else if let Some(p) = self.paths.pop() {
                self.path(p);
            } else if let Some(t) = self.triples.pop() {
                self.triple(t);
            } else if let Some(t) = self.ground.pop() {
                self.ground(t.object);
            } else if let Some(t) = self.ground_patterns.pop() {
                self.ground_pattern(t.subject);
                self.ground_pattern(t.object);
            } else {
                return;
            }
        }
    }

    fn pattern(&mut self, p: GraphPattern) {
        match p {
            GraphPattern::Bgp { patterns } => patterns.into_iter().for_each(|t| self.triple(t)),
            GraphPattern::Path {
                subject,
                path,
                object,
            } => {
                self.term(subject);
                self.term(object);
                self.paths.push(path);
            }
            GraphPattern::Join { left, right }
            | GraphPattern::Lateral { left, right }
            | GraphPattern::Union { left, right }
            | GraphPattern::Minus { left, right } => self.patterns.extend([*left, *right]),
            GraphPattern::LeftJoin {
                left,
                right,
                expression,
            } => {
                self.patterns.extend([*left, *right]);
                self.expressions.extend(expression);
            }
            GraphPattern::Filter { expr, inner } => {
                self.patterns.push(*inner);
                self.expressions.push(expr);
            }
            GraphPattern::Extend {
                inner, expression, ..
            } => {
                self.patterns.push(*inner);
                self.expressions.push(expression);
            }
            GraphPattern::OrderBy { inner, expression } => {
                self.patterns.push(*inner);
                self.expressions.extend(expression.into_iter().map(|e| {
                    let (OrderExpression::Asc(e) | OrderExpression::Desc(e)) = e;
                    e
                }));
            }
            GraphPattern::Group {
                inner, aggregates, ..
            } => {
                self.patterns.push(*inner);
                self.expressions
                    .extend(aggregates.into_iter().filter_map(|a| match a.1 {
                        AggregateExpression::FunctionCall { expr, .. } => Some(expr),
                        AggregateExpression::CountSolutions { .. } => None,
                    }));
            }
            GraphPattern::Values { bindings, .. } => {
                for term in bindings.into_iter().flatten().flatten() {
                    self.ground(term);
                }
            }
            GraphPattern::Graph { inner, .. }
            | GraphPattern::Project { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::Slice { inner, .. }
            | GraphPattern::Service { inner, .. } => self.patterns.push(*inner),
        }
    }

    fn expression(&mut self, mut e: Expression) {
        // Most parts are leaves, which need no place on the stack.
        let leaf = |e: &Expression| {
            use Expression as E;
            matches!(
                e,
                E::NamedNode(_) | E::Literal(_) | E::Variable(_) | E::Bound(_)
            )
        };
        for part in parts_mut(&mut e) {
            if !leaf(part) {
                let nothing = Expression::Coalesce(vec![]);
                self.expressions.push(std::mem::replace(part, nothing));
            }
        }
        if let Expression::Exists(p) = e {
            self.patterns.push(*p);
        }
    }

    fn path(&mut self, p: PropertyPathExpression) {
        use PropertyPathExpression as P;
        match p {
            P::NamedNode(_) | P::NegatedPropertySet(_) => {}
            P::Reverse(p) | P::ZeroOrMore(p) | P::OneOrMore(p) | P::ZeroOrOne(p) => {
                self.paths.push(*p);
            }
            P::Sequence(a, b) | P::Alternative(a, b) => self.paths.extend([*a, *b]),
        }
    }

    fn triple(&mut self, t: TriplePattern) {
        self.term(t.subject);
        self.term(t.object);
    }

    fn term(&mut self, t: TermPattern) {
        if let TermPattern::Triple(t) = t {
            self.triples.push(*t);
        }
    }

    fn ground(&mut self, t: GroundTerm) {
        if let GroundTerm::Triple(t) = t {
            self.ground.push(*t);
        }
    }

    fn ground_pattern(&mut self, t: GroundTermPattern) {
        if let GroundTermPattern::Triple(t) = t {
            self.ground_patterns.push(*t);
        }
    }
}
