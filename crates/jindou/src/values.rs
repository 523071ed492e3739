//! Restriction of a query's variables to given terms, as by VALUES at the start of its WHERE clause.

use jindou_model::{Error, Invariant, Result};
use jindou_plan::ParametrizedQuery;
use jindou_plan::sparql::{Expression, GraphPattern, GroundTerm, Query, Rewrite, Variable};
use oxrdf::Term;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;

/// Restricts each of these variables to its list of terms. O(query + terms).
///
/// # Errors
/// [`Error::Query`] for a name that is not a variable of the query, for one to which the query assigns a value, and for
/// a blank node.
pub(crate) fn restricted(mut query: Query, lists: &[(String, Vec<Term>)]) -> Result<Query> {
    let names: Vec<&str> = lists.iter().map(|(name, _)| name.as_str()).collect();
    // Checks the names, to which the same rules as for parameters apply.
    ParametrizedQuery::new(query.clone(), &names)?;
    for (name, terms) in lists {
        let rows = terms.iter().map(|term| match ground(term) {
            Some(term) => Ok(vec![Some(term)]),
            None => Err(Error::Query(format!(
                "the list for ?{name} has the term {term}, but VALUES cannot have blank nodes"
            ))),
        });
        let values = GraphPattern::Values {
            variables: vec![Variable::new_unchecked(name.clone())],
            bindings: rows.collect::<Result<_>>()?,
        };
        let is_describe = matches!(query, Query::Describe { .. });
        let pattern = query.pattern_mut();
        *pattern = match is_describe.then(|| with_iris(pattern)).flatten() {
            Some(parts) => parts.started(values)?,
            None => started(pattern, values)?,
        };
    }
    Ok(query)
}

/// The algebra that `jindou_plan` makes of a DESCRIBE of several IRIs: a union of the WHERE clause's rows and of the
/// IRIs; the IRIs only if the WHERE clause has a row.
struct WithIris<'p> {
    rows: &'p Arc<GraphPattern>,
    iris: &'p Arc<GraphPattern>,
    variables: &'p [Variable],
}

fn with_iris(pattern: &GraphPattern) -> Option<WithIris<'_>> {
    use GraphPattern as P;
    let P::Project { inner, variables } = pattern else {
        return None;
    };
    let P::Union { left, right } = &**inner else {
        return None;
    };
    let P::Join { left: any, right } = &**right else {
        return None;
    };
    let is_any = matches!(&**any, P::Project { variables, .. } if variables.is_empty());
    is_any.then_some(WithIris {
        rows: left,
        iris: right,
        variables,
    })
}

impl WithIris<'_> {
    /// The same algebra with `values` at the start of the WHERE clause, which occurs twice in the algebra.
    fn started(&self, values: GraphPattern) -> Result<Arc<GraphPattern>> {
        use GraphPattern as P;
        let rows = started(self.rows, values)?;
        let one = P::Slice {
            inner: Arc::clone(&rows),
            start: 0,
            length: Some(1),
        };
        let any = P::Project {
            inner: Arc::new(one),
            variables: vec![],
        };
        let iris = P::Join {
            left: Arc::new(any),
            right: Arc::clone(self.iris),
        };
        let all = P::Union {
            left: rows,
            right: Arc::new(iris),
        };
        Ok(Arc::new(P::Project {
            inner: Arc::new(all),
            variables: self.variables.to_vec(),
        }))
    }
}

/// The plan cache's key for a text with these lists of terms.
pub(crate) fn key(lists: &[(String, Vec<Term>)], text: &str) -> String {
    let mut out = String::new();
    for (name, terms) in lists {
        let _ = write!(out, "\0v{name}");
        for term in terms {
            let _ = write!(out, "\0{term}");
        }
    }
    out + "\0\0" + text
}

fn ground(term: &Term) -> Option<GroundTerm> {
    let term = spargebra::term::GroundTerm::try_from(term.clone()).ok()?;
    Some(GroundTerm::from(&term))
}

/// The pattern with `values` joined to the part of the WHERE clause that is evaluated first, so that all filters, BINDs
/// and optional parts see the values.
fn started(pattern: &Arc<GraphPattern>, values: GraphPattern) -> Result<Arc<GraphPattern>> {
    let mut above: Vec<&Arc<GraphPattern>> = Vec::new();
    let (mut first, mut inside) = (pattern, false);
    while let Some(next) = first_part(first, &mut inside) {
        above.push(first);
        first = next;
    }
    let is_unit = matches!(&**first, GraphPattern::Bgp { patterns } if patterns.is_empty());
    let mut new = Arc::new(match is_unit {
        true => values,
        false => GraphPattern::Join {
            left: Arc::new(values),
            right: Arc::clone(first),
        },
    });
    while let Some(p) = above.pop() {
        let Ok(with_new) = p.rewritten(&mut First(Some(new)));
        new = Arc::new(with_new.invariant("a pattern has a part that is evaluated first"));
    }
    Ok(new)
}

/// The operand that is evaluated first; `None` if the values must be joined with `p` itself. `inside` becomes true
/// below the query's own projection; a further projection is a subquery's, which has its own variables.
fn first_part<'p>(p: &'p GraphPattern, inside: &mut bool) -> Option<&'p Arc<GraphPattern>> {
    use GraphPattern as P;
    match p {
        P::Join { left, .. }
        | P::LeftJoin { left, .. }
        | P::Lateral { left, .. }
        | P::Minus { left, .. } => Some(left),
        P::Filter { inner, .. }
        | P::Extend { inner, .. }
        | P::OrderBy { inner, .. }
        | P::Group { inner, .. } => Some(inner),
        P::Slice { inner, .. } | P::Distinct { inner } | P::Reduced { inner } if !*inside => {
            Some(inner)
        }
        P::Project { inner, .. } if !*inside => {
            *inside = true;
            Some(inner)
        }
        _ => None,
    }
}

/// Rewrites a pattern by replacing the part that is evaluated first.
struct First(Option<Arc<GraphPattern>>);

impl Rewrite for First {
    type Error = Infallible;

    fn pattern(&mut self, _: &GraphPattern) -> New<Arc<GraphPattern>> {
        Ok(self.0.take())
    }

    fn expression(&mut self, _: &Expression) -> New<Arc<Expression>> {
        Ok(None)
    }
}

type New<T> = std::result::Result<Option<T>, Infallible>;
