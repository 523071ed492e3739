//! Depth of a query's algebra.

use super::*;

enum AlgebraPart<'a> {
    Pattern(&'a GraphPattern),
    Expression(&'a Expression),
    Path(&'a PropertyPathExpression),
}

/// Levels that opening a triple term adds to a tree (`triples.rs`): a filter, and an extension and a join for each of
/// its parts.
const OPENED: usize = 7;

/// True if the algebra, expressions included, is at most `limit` levels deep, and so are the operators for its triple
/// terms, joins and EXISTS: each of these nests the previous one, even if the algebra is flat. Recurses into triple
/// terms only, whose nesting the parser limits.
pub(crate) fn depth_is_within(p: &GraphPattern, limit: usize) -> bool {
    let mut opened = 0;
    let mut stacked = 0;
    walk(p, |part, depth| {
        stacked += usize::from(matches!(
            part,
            AlgebraPart::Pattern(GraphPattern::Join { .. })
                | AlgebraPart::Expression(Expression::Exists(_))
        ));
        opened += match part {
            AlgebraPart::Pattern(GraphPattern::Bgp { patterns }) => patterns
                .iter()
                .map(|t| triples_in(&t.subject) + triples_in(&t.object))
                .sum(),
            AlgebraPart::Pattern(GraphPattern::Path {
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

/// Visits every part with its depth until the visitor returns false; then returns false as well.
fn walk(p: &GraphPattern, mut visit: impl FnMut(&AlgebraPart<'_>, usize) -> bool) -> bool {
    let mut stack = vec![(AlgebraPart::Pattern(p), 1usize)];
    while let Some((part, depth)) = stack.pop() {
        if !visit(&part, depth) {
            return false;
        }
        let d = depth + 1;
        match part {
            AlgebraPart::Expression(e) => {
                if let Expression::Exists(p) = e {
                    stack.push((AlgebraPart::Pattern(p), d));
                }
                stack.extend(
                    crate::expression::parts(e)
                        .into_iter()
                        .map(|e| (AlgebraPart::Expression(e), d)),
                );
            }
            AlgebraPart::Path(p) => {
                use PropertyPathExpression as P;
                match p {
                    P::NamedNode(_) | P::NegatedPropertySet(_) => {}
                    P::Reverse(p) | P::ZeroOrMore(p) | P::OneOrMore(p) | P::ZeroOrOne(p) => {
                        stack.push((AlgebraPart::Path(p), d));
                    }
                    P::Sequence(a, b) | P::Alternative(a, b) => {
                        stack.extend([(AlgebraPart::Path(a), d), (AlgebraPart::Path(b), d)]);
                    }
                }
            }
            AlgebraPart::Pattern(p) => match p {
                GraphPattern::Bgp { .. } | GraphPattern::Values { .. } => {}
                GraphPattern::Path { path, .. } => stack.push((AlgebraPart::Path(path), d)),
                GraphPattern::Join { left, right }
                | GraphPattern::Lateral { left, right }
                | GraphPattern::Union { left, right }
                | GraphPattern::Minus { left, right } => {
                    stack.extend([
                        (AlgebraPart::Pattern(left), d),
                        (AlgebraPart::Pattern(right), d),
                    ]);
                }
                GraphPattern::LeftJoin {
                    left,
                    right,
                    expression,
                } => {
                    stack.extend([
                        (AlgebraPart::Pattern(left), d),
                        (AlgebraPart::Pattern(right), d),
                    ]);
                    stack.extend(expression.iter().map(|e| (AlgebraPart::Expression(e), d)));
                }
                GraphPattern::Filter { expr, inner } => {
                    stack.extend([
                        (AlgebraPart::Expression(expr), d),
                        (AlgebraPart::Pattern(inner), d),
                    ]);
                }
                GraphPattern::Extend {
                    inner, expression, ..
                } => {
                    stack.extend([
                        (AlgebraPart::Expression(expression), d),
                        (AlgebraPart::Pattern(inner), d),
                    ]);
                }
                GraphPattern::OrderBy { inner, expression } => {
                    // Each key is bound over the rows of the previous one.
                    stack.push((AlgebraPart::Pattern(inner), d + expression.len()));
                    stack.extend(expression.iter().map(|e| match e {
                        OrderExpression::Asc(e) | OrderExpression::Desc(e) => {
                            (AlgebraPart::Expression(e), d)
                        }
                    }));
                }
                GraphPattern::Group {
                    inner, aggregates, ..
                } => {
                    // So is each aggregated expression.
                    stack.push((AlgebraPart::Pattern(inner), d + aggregates.len()));
                    stack.extend(aggregates.iter().filter_map(|a| match &a.1 {
                        AggregateExpression::FunctionCall { expr, .. } => {
                            Some((AlgebraPart::Expression(expr), d))
                        }
                        AggregateExpression::CountSolutions { .. } => None,
                    }));
                }
                GraphPattern::Graph { inner, .. }
                | GraphPattern::Project { inner, .. }
                | GraphPattern::Distinct { inner }
                | GraphPattern::Reduced { inner }
                | GraphPattern::Slice { inner, .. }
                | GraphPattern::Service { inner, .. } => {
                    stack.push((AlgebraPart::Pattern(inner), d))
                }
            },
        }
    }
    true
}
