//! Terms for variables, in the algebra.

use super::check_value;
use crate::expression::parts_mut;
use jindou_model::{Error, Result};
use oxrdf::{NamedNode, Term, Variable};
use spargebra::Query;
use spargebra::algebra::{AggregateExpression, Expression, GraphPattern, OrderExpression};
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern};

const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// Where the variables were.
pub(super) struct Uses {
    /// True for those that the query has, in the order of the values.
    pub of: Vec<bool>,
    /// All are subjects and objects of triple patterns that have another end to find, and no classes: there an id means the
    /// same whatever the term.
    pub only_ends: bool,
}

/// The query with the terms.
pub(super) fn of(query: &Query, values: &[(Variable, Term)]) -> Result<(Query, Uses)> {
    for (name, value) in values {
        check_value(name, value)?;
    }
    let mut s = Substitution {
        values,
        uses: Uses {
            of: vec![false; values.len()],
            only_ends: true,
        },
    };
    let mut query = query.clone();
    match &mut query {
        Query::Construct {
            template, pattern, ..
        } => {
            for t in template {
                s.template(t)?;
            }
            s.pattern(pattern)?;
        }
        Query::Describe { pattern, .. } => {
            s.uses.only_ends = false;
            s.pattern(pattern)?;
        }
        Query::Select { pattern, .. } | Query::Ask { pattern, .. } => s.pattern(pattern)?,
    }
    Ok((query, s.uses))
}

struct Substitution<'a> {
    values: &'a [(Variable, Term)],
    uses: Uses,
}

impl Substitution<'_> {
    fn value(&mut self, v: &Variable) -> Option<Term> {
        let at = self.values.iter().position(|(name, _)| name == v)?;
        self.uses.of[at] = true;
        Some(self.values[at].1.clone())
    }

    /// The value, somewhere else than at the end of a triple pattern.
    fn elsewhere(&mut self, v: &Variable) -> Option<Term> {
        let value = self.value(v)?;
        self.uses.only_ends = false;
        Some(value)
    }

    fn not_given(&self, v: &Variable, by: &str) -> Result<()> {
        if self.values.iter().any(|(name, _)| name == v) {
            return Err(Error::Query(format!(
                "${} cannot be a parameter: {by} gives it a value",
                v.as_str()
            )));
        }
        Ok(())
    }

    fn iri(&mut self, name: &mut NamedNodePattern, what: &str) -> Result<()> {
        if let NamedNodePattern::Variable(v) = name
            && let Some(value) = self.elsewhere(v)
        {
            let Term::NamedNode(iri) = value else {
                return Err(Error::Query(format!(
                    "${} is {what}, so it must be an IRI, not {value}",
                    v.as_str()
                )));
            };
            *name = NamedNodePattern::NamedNode(iri);
        }
        Ok(())
    }

    /// True if it was a parameter.
    fn end(&mut self, end: &mut TermPattern) -> Result<bool> {
        match end {
            TermPattern::Variable(v) => {
                let Some(value) = self.value(v) else {
                    return Ok(false);
                };
                *end = as_pattern(value)?;
                Ok(true)
            }
            TermPattern::Triple(t) => {
                let before = self.uses.only_ends;
                let parts = [
                    self.end(&mut t.subject)?,
                    self.end(&mut t.object)?,
                    matches!(&t.predicate, NamedNodePattern::Variable(v)
                        if self.values.iter().any(|(name, _)| name == v)),
                ];
                self.iri(&mut t.predicate, "a predicate")?;
                self.uses.only_ends = before && !parts.contains(&true);
                Ok(false)
            }
            TermPattern::NamedNode(_) | TermPattern::Literal(_) | TermPattern::BlankNode(_) => {
                Ok(false)
            }
        }
    }

    fn triple(&mut self, t: &mut TriplePattern) -> Result<()> {
        self.iri(&mut t.predicate, "a predicate")?;
        let subject = self.end(&mut t.subject)?;
        let object = self.end(&mut t.object)?;
        if subject || object {
            let known = |e: &TermPattern| {
                !matches!(e, TermPattern::Variable(_) | TermPattern::BlankNode(_))
            };
            let is_type =
                matches!(&t.predicate, NamedNodePattern::NamedNode(p) if p.as_str() == RDF_TYPE);
            // Edges between constants are settled by the planner, and classes change estimates and sets.
            let settled = known(&t.subject) && known(&t.object) || object && is_type;
            self.uses.only_ends &= !settled;
        }
        Ok(())
    }

    fn template(&mut self, t: &mut TriplePattern) -> Result<()> {
        self.iri(&mut t.predicate, "a predicate")?;
        let parts = [self.end(&mut t.subject)?, self.end(&mut t.object)?];
        self.uses.only_ends &= !parts.contains(&true);
        Ok(())
    }

    fn pattern(&mut self, p: &mut GraphPattern) -> Result<()> {
        match p {
            GraphPattern::Bgp { patterns } => {
                patterns.iter_mut().try_for_each(|t| self.triple(t))?;
            }
            GraphPattern::Path {
                subject, object, ..
            } => {
                let parts = [self.end(subject)?, self.end(object)?];
                self.uses.only_ends &= !parts.contains(&true);
            }
            GraphPattern::Join { left, right }
            | GraphPattern::Lateral { left, right }
            | GraphPattern::Union { left, right }
            | GraphPattern::Minus { left, right } => {
                self.pattern(left)?;
                self.pattern(right)?;
            }
            GraphPattern::LeftJoin {
                left,
                right,
                expression,
            } => {
                self.pattern(left)?;
                self.pattern(right)?;
                if let Some(e) = expression {
                    self.expression(e)?;
                }
            }
            GraphPattern::Filter { expr, inner } => {
                self.pattern(inner)?;
                self.expression(expr)?;
            }
            GraphPattern::Graph { name, inner } => {
                self.iri(name, "a graph")?;
                self.pattern(inner)?;
            }
            GraphPattern::Service { name, inner, .. } => {
                self.iri(name, "an endpoint")?;
                let before = self.uses.of.clone();
                self.pattern(inner)?;
                self.uses.only_ends &= before == self.uses.of;
            }
            GraphPattern::Extend {
                inner,
                variable,
                expression,
            } => {
                self.not_given(variable, "BIND or AS")?;
                self.pattern(inner)?;
                self.expression(expression)?;
            }
            GraphPattern::Values { variables, .. } => {
                for v in variables {
                    self.not_given(v, "VALUES")?;
                }
            }
            GraphPattern::OrderBy { inner, expression } => {
                self.pattern(inner)?;
                for e in expression {
                    let (OrderExpression::Asc(e) | OrderExpression::Desc(e)) = e;
                    self.expression(e)?;
                }
            }
            GraphPattern::Project { inner, variables } => {
                self.pattern(inner)?;
                self.columns(inner, variables);
            }
            GraphPattern::Group {
                inner,
                variables,
                aggregates,
            } => {
                self.pattern(inner)?;
                self.columns(inner, variables);
                for (to, aggregate) in aggregates {
                    self.not_given(to, "an aggregate")?;
                    if let AggregateExpression::FunctionCall { expr, .. } = aggregate {
                        self.expression(expr)?;
                    }
                }
            }
            GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::Slice { inner, .. } => self.pattern(inner)?,
        }
        Ok(())
    }

    /// A parameter that is a column has its value in every row.
    fn columns(&mut self, inner: &mut GraphPattern, variables: &[Variable]) {
        for v in variables {
            if let Some(value) = self.elsewhere(v) {
                let empty = GraphPattern::Bgp { patterns: vec![] };
                *inner = GraphPattern::Extend {
                    inner: Box::new(std::mem::replace(inner, empty)),
                    variable: v.clone(),
                    expression: as_expression(value),
                };
            }
        }
    }

    fn expression(&mut self, e: &mut Expression) -> Result<()> {
        match e {
            Expression::NamedNode(_) | Expression::Literal(_) => {}
            Expression::Variable(v) => {
                if let Some(value) = self.elsewhere(v) {
                    *e = as_expression(value);
                }
            }
            Expression::Bound(v) => {
                if self.elsewhere(v).is_some() {
                    *e = Expression::Literal(true.into());
                }
            }
            Expression::Exists(p) => self.pattern(p)?,
            e => parts_mut(e)
                .into_iter()
                .try_for_each(|e| self.expression(e))?,
        }
        Ok(())
    }
}

fn as_pattern(value: Term) -> Result<TermPattern> {
    Ok(match value {
        Term::NamedNode(n) => TermPattern::NamedNode(n),
        Term::Literal(l) => TermPattern::Literal(l),
        Term::Triple(t) => TermPattern::Triple(Box::new(TriplePattern {
            subject: as_pattern(t.subject.into())?,
            predicate: NamedNodePattern::NamedNode(t.predicate),
            object: as_pattern(t.object)?,
        })),
        Term::BlankNode(_) => {
            return Err(Error::Query(
                "a parameter's triple term has a blank node: in a query a blank node is a variable"
                    .into(),
            ));
        }
    })
}

fn as_expression(value: Term) -> Expression {
    match value {
        Term::NamedNode(n) => Expression::NamedNode(n),
        Term::Literal(l) => Expression::Literal(l),
        Term::Triple(t) => Expression::FunctionCall(
            spargebra::algebra::Function::Triple,
            vec![
                as_expression(t.subject.into()),
                Expression::NamedNode(t.predicate),
                as_expression(t.object),
            ],
        ),
        // Refused before.
        Term::BlankNode(_) => Expression::NamedNode(NamedNode::new_unchecked("")),
    }
}
