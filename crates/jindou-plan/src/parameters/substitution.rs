//! Substitution of terms for variables in the algebra. Parts without a parameter are shared with the query.

use super::check_value;
use crate::expression::map_parts;
use jindou_model::{Error, Result};
use jindou_syntax::algebra::{
    Expression, Function, GraphPattern, NamedNode, NamedNodePattern, NamedOrBlankNode, Query,
    Rewrite, Term, TermPattern, TriplePattern, Variable,
};
use std::sync::Arc;

const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// Where a query's parameters occur.
pub(super) struct Uses {
    /// For each parameter, true if its variable occurs in the query.
    pub of: Vec<bool>,
    /// True if all parameters are subjects and objects (ends) of triple patterns whose other end is not a constant, and
    /// none is a class. Then the plan does not depend on the terms.
    pub only_ends: bool,
}

/// Substitutes the terms in the query.
pub(super) fn substitute(query: &Query, values: &[(Variable, Term)]) -> Result<(Query, Uses)> {
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
    if let Query::Construct { template, .. } = &mut query {
        let mut all = template.to_vec();
        for t in &mut all {
            s.template(t)?;
        }
        *template = all.into();
    }
    if let Query::Describe { .. } = &query {
        s.uses.only_ends = false;
    }
    if let Some(new) = s.pattern(query.pattern())? {
        *query.pattern_mut() = new;
    }
    Ok((query, s.uses))
}

/// A part of the algebra after substitution; `None` if it is unchanged, so that the old part can be shared.
type New<T> = Result<Option<Arc<T>>>;

/// The new part, or the old one.
fn or<T>(new: Option<Arc<T>>, old: &Arc<T>) -> Arc<T> {
    new.unwrap_or_else(|| Arc::clone(old))
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

    /// The value of a variable that occurs elsewhere than as subject or object of a triple pattern; `None` if it is not
    /// a parameter.
    fn elsewhere(&mut self, v: &Variable) -> Option<Term> {
        let value = self.value(v)?;
        self.uses.only_ends = false;
        Some(value)
    }

    fn not_given(&self, v: &Variable, by: &str) -> Result<()> {
        if self.values.iter().any(|(name, _)| name == v) {
            return Err(Error::Query(format!(
                "${} cannot be a parameter: {by} assigns it a value",
                v.as_str()
            )));
        }
        Ok(())
    }

    /// Substitutes a predicate or a graph. Returns true if it was a parameter.
    fn iri(&mut self, name: &mut NamedNodePattern, what: &str) -> Result<bool> {
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
            return Ok(true);
        }
        Ok(false)
    }

    /// Substitutes the subject or object of a triple pattern, or within it if it is a triple term. Returns true if the
    /// subject or object itself was a parameter.
    fn subject_or_object(&mut self, end: &mut TermPattern) -> Result<bool> {
        match end {
            TermPattern::Variable(v) => {
                let Some(value) = self.value(v) else {
                    return Ok(false);
                };
                *end = as_pattern(&value)?;
                Ok(true)
            }
            TermPattern::Triple(t) => {
                let before = self.uses.only_ends;
                let mut own = (**t).clone();
                let parts = [
                    self.subject_or_object(&mut own.subject)?,
                    self.subject_or_object(&mut own.object)?,
                    self.iri(&mut own.predicate, "a predicate")?,
                ];
                self.uses.only_ends = before && !parts.contains(&true);
                if own != **t {
                    *t = Arc::new(own);
                }
                Ok(false)
            }
            TermPattern::NamedNode(_) | TermPattern::Literal(_) | TermPattern::BlankNode(_) => {
                Ok(false)
            }
        }
    }

    fn triple(&mut self, t: &mut TriplePattern) -> Result<()> {
        self.iri(&mut t.predicate, "a predicate")?;
        let subject = self.subject_or_object(&mut t.subject)?;
        let object = self.subject_or_object(&mut t.object)?;
        if subject || object {
            let known = |e: &TermPattern| {
                !matches!(e, TermPattern::Variable(_) | TermPattern::BlankNode(_))
            };
            let is_type =
                matches!(&t.predicate, NamedNodePattern::NamedNode(p) if p.as_str() == RDF_TYPE);
            // Such a pattern depends on the term: the planner looks up edges between two constants, and the class
            // determines estimates and intervals.
            let settled = known(&t.subject) && known(&t.object) || object && is_type;
            self.uses.only_ends &= !settled;
        }
        Ok(())
    }

    fn template(&mut self, t: &mut TriplePattern) -> Result<()> {
        self.iri(&mut t.predicate, "a predicate")?;
        let parts = [
            self.subject_or_object(&mut t.subject)?,
            self.subject_or_object(&mut t.object)?,
        ];
        self.uses.only_ends &= !parts.contains(&true);
        Ok(())
    }

    /// Binds those parameters that are columns of the result to their values in every row.
    fn columns(
        &mut self,
        inner: &Arc<GraphPattern>,
        variables: &[Variable],
    ) -> Option<Arc<GraphPattern>> {
        let mut out = None;
        for v in variables {
            if let Some(value) = self.elsewhere(v) {
                out = Some(Arc::new(GraphPattern::Extend {
                    inner: or(out, inner),
                    variable: v.clone(),
                    expression: Arc::new(as_expression(&value)),
                }));
            }
        }
        out
    }

    fn value_of(&mut self, e: &Expression) -> Result<Option<Expression>> {
        match e {
            Expression::NamedNode(_) | Expression::Literal(_) => Ok(None),
            Expression::Variable(v) => Ok(self.elsewhere(v).map(|value| as_expression(&value))),
            Expression::Bound(v) => {
                let given = self.elsewhere(v);
                Ok(given.map(|_| Expression::Literal(true.into())))
            }
            Expression::Exists(p) => Ok(self.pattern(p)?.map(Expression::Exists)),
            e => map_parts(e, &mut |e| self.value_of(e)),
        }
    }
}

impl Rewrite for Substitution<'_> {
    type Error = Error;

    fn expression(&mut self, e: &Expression) -> New<Expression> {
        Ok(self.value_of(e)?.map(Arc::new))
    }

    fn pattern(&mut self, p: &GraphPattern) -> New<GraphPattern> {
        use GraphPattern as P;
        let new = match p {
            P::Bgp { patterns } => {
                let mut own = patterns.clone();
                own.iter_mut().try_for_each(|t| self.triple(t))?;
                (own != *patterns).then_some(P::Bgp { patterns: own })
            }
            P::Path {
                subject,
                path,
                object,
            } => {
                let mut ends = [subject.clone(), object.clone()];
                let [s, o] = &mut ends;
                let parts = [self.subject_or_object(s)?, self.subject_or_object(o)?];
                self.uses.only_ends &= !parts.contains(&true);
                let [subject, object] = ends;
                Some(P::Path {
                    subject,
                    path: path.clone(),
                    object,
                })
            }
            P::Graph { name, inner } => {
                let mut own = name.clone();
                let named = self.iri(&mut own, "a graph")?;
                let below = self.pattern(inner)?;
                (named || below.is_some()).then(|| P::Graph {
                    name: own,
                    inner: or(below, inner),
                })
            }
            P::Service {
                name,
                inner,
                silent,
            } => {
                let mut own = name.clone();
                let named = self.iri(&mut own, "an endpoint")?;
                let before = self.uses.of.clone();
                let below = self.pattern(inner)?;
                self.uses.only_ends &= before == self.uses.of;
                (named || below.is_some()).then(|| P::Service {
                    name: own,
                    inner: or(below, inner),
                    silent: *silent,
                })
            }
            P::Extend { variable, .. } => {
                self.not_given(variable, "BIND or AS")?;
                p.rewritten(self)?
            }
            P::Values { variables, .. } => {
                for v in variables {
                    self.not_given(v, "VALUES")?;
                }
                None
            }
            P::Project { inner, variables } => {
                let below = self.pattern(inner)?;
                let bound = self.columns(below.as_ref().unwrap_or(inner), variables);
                bound.or(below).map(|inner| P::Project {
                    inner,
                    variables: variables.clone(),
                })
            }
            P::Group {
                variables,
                aggregates,
                ..
            } => {
                for (to, _) in aggregates {
                    self.not_given(to, "an aggregate")?;
                }
                let new = p.rewritten(self)?;
                let P::Group {
                    inner, aggregates, ..
                } = new.as_ref().unwrap_or(p)
                else {
                    return Ok(None);
                };
                match self.columns(inner, variables) {
                    Some(inner) => Some(P::Group {
                        inner,
                        variables: variables.clone(),
                        aggregates: aggregates
                            .iter()
                            .map(|(v, a)| (v.clone(), a.shared()))
                            .collect(),
                    }),
                    None => new,
                }
            }
            p => p.rewritten(self)?,
        };
        Ok(new.map(Arc::new))
    }
}

fn subject(n: &NamedOrBlankNode) -> Term {
    n.clone().into()
}

fn as_pattern(value: &Term) -> Result<TermPattern> {
    Ok(match value {
        Term::NamedNode(n) => n.clone().into(),
        Term::Literal(l) => l.clone().into(),
        Term::Triple(t) => TriplePattern {
            subject: as_pattern(&subject(&t.subject))?,
            predicate: t.predicate.clone().into(),
            object: as_pattern(&t.object)?,
        }
        .into(),
        Term::BlankNode(_) => {
            return Err(Error::Query(
                "a parameter's triple term has a blank node: in a query a blank node is a variable"
                    .into(),
            ));
        }
    })
}

fn as_expression(value: &Term) -> Expression {
    match value {
        Term::NamedNode(n) => n.clone().into(),
        Term::Literal(l) => l.clone().into(),
        Term::Triple(t) => Expression::FunctionCall(
            Function::Triple,
            vec![
                as_expression(&subject(&t.subject)),
                t.predicate.clone().into(),
                as_expression(&t.object),
            ],
        ),
        // [`check_value`] has rejected blank nodes.
        Term::BlankNode(_) => NamedNode::new_unchecked("").into(),
    }
}
