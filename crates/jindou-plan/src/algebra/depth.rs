//! Depth of an algebra tree, computed without recursion except into triple terms, whose nesting the parser limits.

use jindou_syntax::algebra::{
    Expression, GraphPattern, GraphUpdateOperation, PropertyPathExpression, Query, TermPattern,
};

/// Levels of an algebra tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Depth {
    /// Levels of nested patterns, expressions and paths.
    pub all: usize,
    /// Levels of nested expressions alone.
    pub expressions: usize,
}

enum AlgebraPart<'a> {
    Pattern(&'a GraphPattern),
    /// An expression, with its depth below the outermost expression around it.
    Expression(&'a Expression, usize),
    Path(&'a PropertyPathExpression),
}

/// Levels that a pattern with a triple term adds to the tree when `translate/triples.rs` replaces it by operators: a
/// filter, and an extension and a join for each part of the triple term.
const OPENED: usize = 7;

/// The depth of a query. O(query).
pub(super) fn of_query(query: &Query) -> Depth {
    let mut depth = of_pattern(query.pattern());
    if let Query::Construct { template, .. } = query {
        let ends = template.iter().flat_map(|t| [&t.subject, &t.object]);
        depth.all = depth.all.max(deepest_term(ends));
    }
    depth
}

/// The depth of an update's operation. O(operation).
pub(super) fn of_operation(operation: &GraphUpdateOperation) -> Depth {
    let GraphUpdateOperation::DeleteInsert {
        insert, pattern, ..
    } = operation
    else {
        return Depth::default();
    };
    let mut depth = of_pattern(pattern);
    let ends = insert.iter().flat_map(|q| [&q.subject, &q.object]);
    depth.all = depth.all.max(deepest_term(ends));
    depth
}

fn of_pattern(pattern: &GraphPattern) -> Depth {
    let mut levels = Depth::default();
    let mut stacked = 0;
    walk(pattern, |part, depth| {
        stacked += operators_stacked(part);
        levels.all = levels.all.max(depth + deepest_term(terms(part)));
        if let AlgebraPart::Expression(_, nested) = part {
            levels.expressions = levels.expressions.max(*nested);
        }
        true
    });
    levels.all += stacked;
    levels
}

/// True if the algebra, expressions included, is at most `limit` levels deep, counting also the levels that the plan
/// adds for triple terms, joins and EXISTS.
pub(crate) fn is_within(pattern: &GraphPattern, limit: usize) -> bool {
    let mut opened = 0;
    let mut stacked = 0;
    walk(pattern, |part, depth| {
        stacked += operators_stacked(part);
        opened += terms(part).map(triples_in).sum::<usize>();
        depth + stacked + OPENED * opened <= limit
    })
}

/// Operators that the plan nests even if the algebra is flat: each EXISTS processes the rows of the previous one, and
/// so does each join.
fn operators_stacked(part: &AlgebraPart<'_>) -> usize {
    usize::from(matches!(
        part,
        AlgebraPart::Pattern(GraphPattern::Join { .. })
            | AlgebraPart::Expression(Expression::Exists(_), _)
    ))
}

/// Subjects and objects of a pattern's triples.
fn terms<'a>(part: &AlgebraPart<'a>) -> impl Iterator<Item = &'a TermPattern> {
    let (triples, path) = match part {
        AlgebraPart::Pattern(GraphPattern::Bgp { patterns }) => (&patterns[..], None),
        AlgebraPart::Pattern(GraphPattern::Path {
            subject, object, ..
        }) => (&[][..], Some([subject, object])),
        _ => (&[][..], None),
    };
    let ends = triples.iter().flat_map(|t| [&t.subject, &t.object]);
    ends.chain(path.into_iter().flatten())
}

fn triples_in(t: &TermPattern) -> usize {
    match t {
        TermPattern::Triple(t) => 1 + triples_in(&t.subject) + triples_in(&t.object),
        _ => 0,
    }
}

/// The deepest nesting of triple terms in these terms; 0 if none of them is a triple term.
fn deepest_term<'a>(all: impl IntoIterator<Item = &'a TermPattern>) -> usize {
    let levels = all.into_iter().map(|t| match t {
        TermPattern::Triple(t) => 1 + deepest_term([&t.subject, &t.object]),
        _ => 0,
    });
    levels.max().unwrap_or(0)
}

/// Visits every part with its depth until the visitor returns false; then returns false as well.
fn walk(pattern: &GraphPattern, mut visit: impl FnMut(&AlgebraPart<'_>, usize) -> bool) -> bool {
    // The part that was added last is kept outside the list, so that a chain (each part has one child) allocates
    // nothing.
    let mut last = Some((AlgebraPart::Pattern(pattern), 1));
    let mut others = Vec::new();
    while let Some((part, depth)) = last.take().or_else(|| others.pop()) {
        if !visit(&part, depth) {
            return false;
        }
        let inner = depth + 1;
        let mut open = |part, depth| {
            if let Some(before) = last.replace((part, depth)) {
                others.push(before);
            }
        };
        match part {
            AlgebraPart::Expression(Expression::Exists(p), _) => {
                open(AlgebraPart::Pattern(p), inner);
            }
            AlgebraPart::Expression(e, nested) => {
                e.each_part(|e| open(AlgebraPart::Expression(e, nested + 1), inner));
            }
            AlgebraPart::Path(p) => paths_in(p).for_each(|p| open(AlgebraPart::Path(p), inner)),
            AlgebraPart::Pattern(p) => {
                if let GraphPattern::Path { path, .. } = p {
                    open(AlgebraPart::Path(path), inner);
                }
                let below = inner + bound_one_by_one(p);
                p.inputs()
                    .for_each(|p| open(AlgebraPart::Pattern(p), below));
                p.each_expression(|e| open(AlgebraPart::Expression(e, 1), inner));
            }
        }
    }
    true
}

fn paths_in(p: &PropertyPathExpression) -> impl Iterator<Item = &PropertyPathExpression> {
    use PropertyPathExpression as P;
    let (first, second) = match p {
        P::NamedNode(_) | P::NegatedPropertySet(_) => (None, None),
        P::Reverse(p) | P::ZeroOrMore(p) | P::OneOrMore(p) | P::ZeroOrOne(p) => (Some(p), None),
        P::Sequence(a, b) | P::Alternative(a, b) => (Some(a), Some(b)),
    };
    first.into_iter().chain(second).map(|p| &**p)
}

/// The number of sort keys or aggregated expressions: the plan binds each by a nested operator of its own.
fn bound_one_by_one(p: &GraphPattern) -> usize {
    match p {
        GraphPattern::OrderBy { expression, .. } => expression.len(),
        GraphPattern::Group { aggregates, .. } => aggregates.len(),
        _ => 0,
    }
}
