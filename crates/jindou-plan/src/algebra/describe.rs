//! DESCRIBE of many IRIs. The parser binds each IRI to a variable of its own by nested BINDs, so that the algebra is as
//! deep, and its rows as wide, as there are IRIs. This module replaces them by inline data (VALUES) of one variable.

use jindou_syntax::algebra::{
    Expression, GraphPattern, GroundTerm, OrderExpression, Query, Variable,
};
use std::sync::Arc;

/// The same query with its IRIs in a VALUES, if there are several. It describes the same resources: the IRIs, provided
/// that the pattern has a solution, and the terms that the solutions bind. O(terms), without recursion.
pub(super) fn flat(mut query: Query) -> Query {
    if let Query::Describe { pattern, .. } = &mut query
        && let Some(flat) = described(pattern)
    {
        *pattern = flat;
    }
    query
}

fn described(pattern: &GraphPattern) -> Option<Arc<GraphPattern>> {
    match pattern {
        GraphPattern::Slice {
            inner,
            start,
            length,
        } => match &**inner {
            GraphPattern::Project { inner, variables } => {
                projected(inner, variables, Some((*start, *length)))
            }
            _ => None,
        },
        GraphPattern::Project { inner, variables } => projected(inner, variables, None),
        _ => None,
    }
}

type Limits = (usize, Option<usize>);

fn slice(inner: Arc<GraphPattern>, limits: Option<Limits>) -> Arc<GraphPattern> {
    match limits {
        Some((start, length)) => Arc::new(GraphPattern::Slice {
            inner,
            start,
            length,
        }),
        None => inner,
    }
}

fn projected(
    inner: &Arc<GraphPattern>,
    variables: &[Variable],
    limits: Option<Limits>,
) -> Option<Arc<GraphPattern>> {
    let (mut inner, order) = match &**inner {
        GraphPattern::OrderBy { inner, expression } => (inner, Some(expression)),
        _ => (inner, None),
    };
    // The parser nests the BINDs in the order of the variables: the last variable's is the outermost.
    let mut iris = vec![];
    let mut kept = vec![];
    for last in variables.iter().rev() {
        match &**inner {
            GraphPattern::Extend {
                inner: below,
                variable,
                expression,
            } if variable == last
                && let Expression::NamedNode(iri) = &**expression =>
            {
                iris.push((variable, iri));
                inner = below;
            }
            _ => kept.push(last.clone()),
        }
    }
    kept.reverse();
    iris.reverse();
    let (variable, _) = *iris.first()?;
    if iris.len() < 2 {
        return None;
    }
    let values = Arc::new(GraphPattern::Values {
        variables: vec![variable.clone()],
        bindings: iris
            .iter()
            .map(|(_, iri)| vec![Some(GroundTerm::NamedNode((*iri).clone()))])
            .collect(),
    });
    let is_unit = matches!(&**inner, GraphPattern::Bgp { patterns } if patterns.is_empty());
    if is_unit && limits.is_none() {
        return Some(Arc::new(GraphPattern::Project {
            inner: values,
            variables: vec![variable.clone()],
        }));
    }
    let mut all = kept.clone();
    all.push(variable.clone());
    let rows = whole(inner, order, kept, limits);
    // One row without columns if the pattern has a solution, otherwise none: joined with the IRIs, it keeps or drops
    // them.
    let any = GraphPattern::Project {
        inner: slice(Arc::clone(&rows), Some((0, Some(1)))),
        variables: vec![],
    };
    Some(Arc::new(GraphPattern::Project {
        inner: Arc::new(GraphPattern::Union {
            left: rows,
            right: Arc::new(GraphPattern::Join {
                left: Arc::new(any),
                right: values,
            }),
        }),
        variables: all,
    }))
}

fn whole(
    inner: &Arc<GraphPattern>,
    order: Option<&Vec<OrderExpression>>,
    variables: Vec<Variable>,
    limits: Option<Limits>,
) -> Arc<GraphPattern> {
    let mut inner = Arc::clone(inner);
    if let Some(keys) = order {
        let keys = keys.iter().map(|k| k.with(Arc::clone(k.expression())));
        inner = Arc::new(GraphPattern::OrderBy {
            inner,
            expression: keys.collect(),
        });
    }
    slice(Arc::new(GraphPattern::Project { inner, variables }), limits)
}
