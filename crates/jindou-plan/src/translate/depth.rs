//! How deep and how large a query's algebra is.

use super::*;

enum Part<'a> {
    Pattern(&'a GraphPattern),
    Expression(&'a Expression),
    Path(&'a PropertyPathExpression),
}

/// True if the algebra, expressions included, is at most so deep. Does not recurse.
pub(crate) fn depth_is_within(p: &GraphPattern, limit: usize) -> bool {
    walk(p, |_, depth| depth <= limit)
}

/// True if there are at most so many triple and path patterns in the algebra, those in expressions included. Does not recurse.
pub(crate) fn patterns_are_within(p: &GraphPattern, limit: usize) -> bool {
    let mut left = limit;
    walk(p, |part, _| {
        let here = match part {
            Part::Pattern(GraphPattern::Bgp { patterns }) => patterns.len(),
            Part::Pattern(GraphPattern::Path { .. }) => 1,
            _ => 0,
        };
        let enough = here <= left;
        left = left.saturating_sub(here);
        enough
    })
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
                    stack.push((Part::Pattern(inner), d));
                    stack.extend(expression.iter().map(|e| match e {
                        OrderExpression::Asc(e) | OrderExpression::Desc(e) => {
                            (Part::Expression(e), d)
                        }
                    }));
                }
                GraphPattern::Group {
                    inner, aggregates, ..
                } => {
                    stack.push((Part::Pattern(inner), d));
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
