//! Queries with parameters: variables that get a term before the query is evaluated.
//!
//! A parameter is *substituted*: the term replaces its variable wherever it occurs (RDF4J calls this the bindings of a
//! prepared query). If all parameters are subjects and objects of triple patterns, the query is planned once, with a
//! *placeholder* for each parameter: an id that no vertex has, whose neighbour lists are assumed to have mean length.
//! Executions then replace the placeholders by ids ([`Parametric::bind`]). Otherwise, each combination of terms is
//! substituted in the query and planned.

mod ids;
mod substitution;

pub(crate) use ids::{ids_of_condition, ids_of_end, ids_of_graph, ids_of_steps};

use crate::planner::plan_over;
use crate::{Plan, PlanOptions};
use jindou_graph::Graph;
use jindou_model::{Error, FIRST_QUERY_ID, Resource, Result};
use jindou_syntax::algebra::{NamedNode, NamedOrBlankNode, Query, Term, Variable};

/// Largest number of parameters of a query.
pub const MAX_PARAMETERS: usize = 64;

/// Largest depth of a plan that is shared by all combinations of terms: executions copy the plan recursively.
const MAX_PARAMETRIC_DEPTH: usize = 200;

/// Start of a placeholder's IRI, before its number. No real IRI contains a zero byte.
const PLACEHOLDER: &str = "\0parameter ";

/// True for ids of placeholders.
pub(crate) fn is_parameter(id: u32) -> bool {
    id >= FIRST_QUERY_ID
}

/// The id of a placeholder with these canonical bytes; `None` for other terms.
pub(crate) fn placeholder_of(canonical: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(canonical.get(1..)?).ok()?;
    let number: u32 = text.strip_prefix(PLACEHOLDER)?.parse().ok()?;
    Some(FIRST_QUERY_ID + number)
}

/// A parsed query and the names of its parameters.
#[derive(Debug)]
pub struct ParametrizedQuery {
    query: Query,
    names: Vec<Variable>,
    /// The query with placeholders, if they occur only where ids can be replaced.
    placed: Option<Query>,
}

impl ParametrizedQuery {
    /// Prepares a query and its parameters' names, without `?` and `$`.
    ///
    /// # Errors
    /// [`Error::Query`] for a name that is not a variable or occurs twice, a parameter that the query does not have, or
    /// one to which the query itself gives a value (BIND, VALUES, an aggregate, `AS`). [`Error::Limit`] for more than
    /// [`MAX_PARAMETERS`].
    pub fn new(query: Query, names: &[impl AsRef<str>]) -> Result<Self> {
        if names.len() > MAX_PARAMETERS {
            return Err(Error::limit(
                Resource::Form,
                format!("a query has at most {MAX_PARAMETERS} parameters"),
            ));
        }
        let mut variables: Vec<Variable> = Vec::with_capacity(names.len());
        for name in names {
            let name = name.as_ref();
            let variable = oxrdf::Variable::new(name)
                .map_err(|_| Error::Query(format!("'{name}' is not a variable's name")))?;
            let variable = Variable::from(variable);
            if variables.contains(&variable) {
                return Err(Error::Query(format!(
                    "the parameter ${name} is listed twice"
                )));
            }
            variables.push(variable);
        }
        let placeholders: Vec<(Variable, Term)> = variables
            .iter()
            .enumerate()
            .map(|(i, v)| {
                let iri = NamedNode::new_unchecked(format!("{PLACEHOLDER}{i}"));
                (v.clone(), iri.into())
            })
            .collect();
        let (placed, uses) = substitution::substitute(&query, &placeholders)?;
        for (name, used) in variables.iter().zip(&uses.of) {
            if !used {
                return Err(Error::Query(format!(
                    "the query has no variable ?{} for this parameter",
                    name.as_str()
                )));
            }
        }
        Ok(Self {
            query,
            names: variables,
            placed: uses.only_ends.then_some(placed),
        })
    }

    /// Names of the parameters, in the order in which values are given.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(Variable::as_str)
    }

    /// The query with terms for its parameters.
    ///
    /// # Errors
    /// As [`substitute`]; `Query` for too few or too many terms.
    pub fn with(&self, values: &[oxrdf::Term]) -> Result<Query> {
        if values.len() != self.names.len() {
            return Err(Error::Query(format!(
                "the query has {} parameters but was given {} terms",
                self.names.len(),
                values.len()
            )));
        }
        let values = values.iter().map(Term::from);
        let values: Vec<(Variable, Term)> = self.names.iter().cloned().zip(values).collect();
        Ok(substitution::substitute(&self.query, &values)?.0)
    }

    /// A plan whose constants can be replaced, or `None` if each combination of terms needs its own plan: a parameter
    /// is in an expression, a path, a predicate, a class or a column of the result, or the plan depends on data.
    ///
    /// # Errors
    /// As [`crate::plan`].
    pub fn plan(&self, snapshot: &dyn Graph, options: &PlanOptions) -> Result<Option<Parametric>> {
        let Some(query) = &self.placed else {
            return Ok(None);
        };
        let plan = plan_over(query, snapshot, options, true)?;
        // Executions copy the plan and replace its ids; both recurse.
        if plan.depth() > MAX_PARAMETRIC_DEPTH {
            return Ok(None);
        }
        Ok(Parametric::from_plan(plan))
    }
}

/// Replaces variables by terms.
///
/// # Errors
/// [`Error::Query`] for a blank node (in a query it is a variable), a predicate or a graph that is not an IRI, and a
/// variable to which the query itself gives a value.
pub fn substitute(query: &Query, values: &[(oxrdf::Variable, oxrdf::Term)]) -> Result<Query> {
    let values: Vec<(Variable, Term)> = values.iter().map(|(v, t)| (v.into(), t.into())).collect();
    Ok(substitution::substitute(query, &values)?.0)
}

/// Rejects blank nodes, also inside triple terms.
fn check_value(name: &Variable, value: &Term) -> Result<()> {
    let has_blank = match value {
        Term::BlankNode(_) => true,
        Term::Triple(t) => {
            let is_blank = matches!(t.subject, NamedOrBlankNode::BlankNode(_));
            if !is_blank {
                return check_value(name, &t.object);
            }
            true
        }
        Term::NamedNode(_) | Term::Literal(_) => false,
    };
    if has_blank {
        return Err(Error::Query(format!(
            "the parameter ${} cannot be a blank node: in a query a blank node is a variable",
            name.as_str()
        )));
    }
    Ok(())
}

/// A plan with placeholders that can be replaced by ids.
#[derive(Clone, Debug)]
pub struct Parametric {
    plan: Plan,
    /// Positions of placeholders in the order of [`ids::each`], each with the number of its parameter.
    places: Vec<(u32, u32)>,
}

impl Parametric {
    /// `None` if the plan depends on data or has a placeholder that cannot be replaced.
    fn from_plan(mut plan: Plan) -> Option<Self> {
        if plan.validity.version.is_some() {
            return None;
        }
        let (mut places, mut at, mut fixed) = (Vec::new(), 0u32, false);
        ids::each(&mut plan.root, &mut |id, is_operand| {
            if is_parameter(*id) {
                fixed |= !is_operand;
                places.push((at, *id - FIRST_QUERY_ID));
            }
            at += u32::from(is_operand);
        });
        (!fixed).then_some(Self { plan, places })
    }

    /// The plan, with the most recently bound ids; before that, with placeholders, which match nothing.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Writes the parameters' ids into the plan, in place of placeholders or of earlier ids. `None` for a term that the
    /// store lacks, which matches nothing. No allocation; O(steps).
    pub fn bind(&mut self, ids: &[Option<u32>]) {
        let mut next = self.places.iter().copied().peekable();
        let mut at = 0u32;
        ids::each(&mut self.plan.root, &mut |id, is_operand| {
            if !is_operand {
                return;
            }
            if let Some((_, parameter)) = next.next_if(|p| p.0 == at) {
                *id = ids
                    .get(parameter as usize)
                    .copied()
                    .flatten()
                    .unwrap_or(FIRST_QUERY_ID + parameter);
            }
            at += 1;
        });
    }
}
