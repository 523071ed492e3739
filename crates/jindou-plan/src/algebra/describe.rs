//! DESCRIBE of many IRIs. The parser binds each to a variable of its own, one BIND over the other: as deep as there are IRIs, and
//! as wide. They are inline data of one variable instead, which is as long.

use spargebra::Query;
use spargebra::algebra::{Expression, GraphPattern};
use spargebra::term::{GroundTerm, Variable};

/// The same query with its IRIs in a VALUES, if there are several. What is described is the same: the IRIs if there is a solution,
/// and what the solutions bind. O(terms), without recursion but for copying the pattern.
pub(super) fn flat(query: Query) -> Query {
    match query {
        Query::Describe {
            dataset,
            pattern,
            base_iri,
        } => Query::Describe {
            dataset,
            pattern: described(pattern),
            base_iri,
        },
        other => other,
    }
}

fn described(pattern: GraphPattern) -> GraphPattern {
    match pattern {
        GraphPattern::Slice {
            inner,
            start,
            length,
        } => match *inner {
            GraphPattern::Project { inner, variables } => {
                projected(*inner, variables, Some((start, length)))
            }
            other => GraphPattern::Slice {
                inner: Box::new(other),
                start,
                length,
            },
        },
        GraphPattern::Project { inner, variables } => projected(*inner, variables, None),
        other => other,
    }
}

type Limits = (usize, Option<usize>);

fn slice(inner: GraphPattern, limits: Option<Limits>) -> GraphPattern {
    match limits {
        Some((start, length)) => GraphPattern::Slice {
            inner: Box::new(inner),
            start,
            length,
        },
        None => inner,
    }
}

fn projected(
    inner: GraphPattern,
    mut variables: Vec<Variable>,
    limits: Option<Limits>,
) -> GraphPattern {
    let (mut inner, order) = match inner {
        GraphPattern::OrderBy { inner, expression } => (*inner, Some(expression)),
        other => (other, None),
    };
    // The parser's binds are in the order of the variables: the last one is the outermost.
    let mut iris = vec![];
    let mut kept = vec![];
    while let Some(last) = variables.pop() {
        match inner {
            GraphPattern::Extend {
                inner: below,
                variable,
                expression: Expression::NamedNode(iri),
            } if variable == last => {
                iris.push((variable, iri));
                inner = *below;
            }
            other => {
                inner = other;
                kept.push(last);
            }
        }
    }
    kept.reverse();
    iris.reverse();
    if iris.len() < 2 {
        // As it was; the order of columns means nothing here.
        for (variable, iri) in iris {
            kept.push(variable.clone());
            inner = GraphPattern::Extend {
                inner: Box::new(inner),
                variable,
                expression: Expression::NamedNode(iri),
            };
        }
        return whole(inner, order, kept, limits);
    }
    let variable = iris[0].0.clone();
    let values = GraphPattern::Values {
        variables: vec![variable.clone()],
        bindings: iris
            .into_iter()
            .map(|(_, iri)| vec![Some(GroundTerm::NamedNode(iri))])
            .collect(),
    };
    let is_unit = matches!(&inner, GraphPattern::Bgp { patterns } if patterns.is_empty());
    if is_unit && limits.is_none() {
        return GraphPattern::Project {
            inner: Box::new(values),
            variables: vec![variable],
        };
    }
    let mut all = kept.clone();
    all.push(variable);
    let rows = whole(inner, order, kept, limits);
    // One row without columns, if there is a solution.
    let any = GraphPattern::Project {
        inner: Box::new(slice(rows.clone(), Some((0, Some(1))))),
        variables: vec![],
    };
    GraphPattern::Project {
        inner: Box::new(GraphPattern::Union {
            left: Box::new(rows),
            right: Box::new(GraphPattern::Join {
                left: Box::new(any),
                right: Box::new(values),
            }),
        }),
        variables: all,
    }
}

fn whole(
    inner: GraphPattern,
    order: Option<Vec<spargebra::algebra::OrderExpression>>,
    variables: Vec<Variable>,
    limits: Option<Limits>,
) -> GraphPattern {
    let inner = match order {
        Some(expression) => GraphPattern::OrderBy {
            inner: Box::new(inner),
            expression,
        },
        None => inner,
    };
    let inner = GraphPattern::Project {
        inner: Box::new(inner),
        variables,
    };
    slice(inner, limits)
}
