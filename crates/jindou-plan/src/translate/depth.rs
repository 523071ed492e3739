//! How deep a query's algebra is.

use super::*;

enum Part<'a> {
    Pattern(&'a GraphPattern),
    Expression(&'a Expression),
    Path(&'a PropertyPathExpression),
}

/// Levels that opening a triple term adds to a tree (`triples.rs`): a filter, and for each part an extension and a join.
const OPENED: usize = 7;

/// True if the algebra, expressions included, is at most so deep, and so is what becomes of its triple terms, its joins and its EXISTS: each
/// of these stands on the one before, however shallow the algebra is. Recurses into triple terms only, which the parser does not let nest
/// deep.
pub(crate) fn depth_is_within(p: &GraphPattern, limit: usize) -> bool {
    let mut opened = 0;
    let mut stacked = 0;
    walk(p, |part, depth| {
        stacked += usize::from(matches!(
            part,
            Part::Pattern(GraphPattern::Join { .. }) | Part::Expression(Expression::Exists(_))
        ));
        opened += match part {
            Part::Pattern(GraphPattern::Bgp { patterns }) => patterns
                .iter()
                .map(|t| triples_in(&t.subject) + triples_in(&t.object))
                .sum(),
            Part::Pattern(GraphPattern::Path {
                subject, object, ..
            }) => triples_in(subject) + triples_in(object),
            _ => 0,
        };
        depth + stacked + OPENED * opened <= limit
    })
}

fn triples_in(t: &TermPattern) -> usize {
    match t {
        TermPattern::Triple(t) => 1 + triples_in(&t.subject) + triples_in(&t.object),
        _ => 0,
    }
}

/// Shows all parts, each with its depth, until the visitor has seen enough: then false.
fn walk(p: &GraphPattern, mut visit: impl FnMut(&Part<'_>, usize) -> bool) -> bool {
    let mut stack = vec![(Part::Pattern(p), 1usize)];
    while let Some((part, depth)) = stack.pop() {
        if !visit(&part, depth) {
            return false;
        }
        let d = depth + 1;
        match part {
            Part::Expression(e) => {
                if let Expression::Exists(p) = e {
                    stack.push((Part::Pattern(p), d));
                }
                stack.extend(
                    crate::expression::parts(e)
                        .into_iter()
                        .map(|e| (Part::Expression(e), d)),
                );
            }
            Part::Path(p) => {
                use PropertyPathExpression as P;
                match p {
                    P::NamedNode(_) | P::NegatedPropertySet(_) => {}
                    P::Reverse(p) | P::ZeroOrMore(p) | P::OneOrMore(p) | P::ZeroOrOne(p) => {
                        stack.push((Part::Path(p), d));
                    }
                    P::Sequence(a, b) | P::Alternative(a, b) => {
                        stack.extend([(Part::Path(a), d), (Part::Path(b), d)]);
                    }
                }
            }
            Part::Pattern(p) => match p {
                GraphPattern::Bgp { .. } | GraphPattern::Values { .. } => {}
                GraphPattern::Path { path, .. } => stack.push((Part::Path(path), d)),
                GraphPattern::Join { left, right }
                | GraphPattern::Lateral { left, right }
                | GraphPattern::Union { left, right }
                | GraphPattern::Minus { left, right } => {
                    stack.extend([(Part::Pattern(left), d), (Part::Pattern(right), d)]);
                }
                GraphPattern::LeftJoin {
                    left,
                    right,
                    expression,
                } => {
                    stack.extend([(Part::Pattern(left), d), (Part::Pattern(right), d)]);
                    stack.extend(expression.iter().map(|e| (Part::Expression(e), d)));
                }
                GraphPattern::Filter { expr, inner } => {
                    stack.extend([(Part::Expression(expr), d), (Part::Pattern(inner), d)]);
                }
                GraphPattern::Extend {
                    inner, expression, ..
                } => {
                    stack.extend([(Part::Expression(expression), d), (Part::Pattern(inner), d)]);
                }
                GraphPattern::OrderBy { inner, expression } => {
                    // Each key is bound over the rows before.
                    stack.push((Part::Pattern(inner), d + expression.len()));
                    stack.extend(expression.iter().map(|e| match e {
                        OrderExpression::Asc(e) | OrderExpression::Desc(e) => {
                            (Part::Expression(e), d)
                        }
                    }));
                }
                GraphPattern::Group {
                    inner, aggregates, ..
                } => {
                    // So is what is aggregated.
                    stack.push((Part::Pattern(inner), d + aggregates.len()));
                    stack.extend(aggregates.iter().filter_map(|a| match &a.1 {
                        AggregateExpression::FunctionCall { expr, .. } => {
                            Some((Part::Expression(expr), d))
                        }
                        AggregateExpression::CountSolutions { .. } => None,
                    }));
                }
                GraphPattern::Graph { inner, .. }
                | GraphPattern::Project { inner, .. }
                | GraphPattern::Distinct { inner }
                | GraphPattern::Reduced { inner }
                | GraphPattern::Slice { inner, .. }
                | GraphPattern::Service { inner, .. } => stack.push((Part::Pattern(inner), d)),
            },
        }
    }
    true
}
