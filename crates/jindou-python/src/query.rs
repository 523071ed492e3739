//! Queries on a database or in a transaction.

use crate::errors::{exception, named};
use crate::loading::Keywords;
use crate::options::of_query;
use crate::prepared::{self, Bindings, Kept};
use crate::solutions::Solutions;
use crate::terms;
use crate::triples::{Triples, unexpected};
use crate::wait::interruptible;
use jindou::oxrdf::Term;
use jindou::results::{Collector, Prefixes as Names};
use jindou::{Answer, Database, PlannedQuery, QueryForm, QueryOptions, ResultFormat};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PySet, PyTuple};
use std::sync::Arc;

/// The prefixes with which a graph is written. There are none for tables, in which IRIs are not abbreviated.
pub fn names(db: &Database, text: &str, options: &QueryOptions, format: ResultFormat) -> Names {
    if !matches!(format, ResultFormat::Rdf(_)) {
        return Names::new();
    }
    let mut names = match options.common_prefixes {
        true => Names::common(),
        false => Names::new(),
    };
    if options.store_prefixes {
        names.declare_all(&db.prefixes());
    }
    names.declare_of(text);
    names
}

/// Texts up to this length in bytes are planned on the calling thread.
const SHORT: usize = 1 << 14;

/// The query forms that a method accepts.
#[derive(Clone, Copy)]
pub enum Asked {
    Any,
    Select,
    Ask,
    Construct,
}

impl Asked {
    fn check(self, form: QueryForm) -> PyResult<()> {
        let (method, forms) = match (self, form) {
            (Self::Any, _)
            | (Self::Select, QueryForm::Select)
            | (Self::Ask, QueryForm::Ask)
            | (Self::Construct, QueryForm::Construct | QueryForm::Describe) => return Ok(()),
            (Self::Select, _) => ("select", "a SELECT"),
            (Self::Ask, _) => ("ask", "an ASK"),
            (Self::Construct, _) => ("construct", "a CONSTRUCT or a DESCRIBE"),
        };
        let form = format!("{form:?}").to_uppercase();
        let why = format!("{method}() takes {forms}, and this query is {form}: query() takes all");
        Err(named("QueryError", &why))
    }
}

/// Variables, each with the terms that it may take.
type Lists = Vec<(String, Vec<Term>)>;

/// Sorts a call's bindings: variables with a single term, and variables with a list of terms.
fn bound(bindings: Option<&Bound<'_, PyDict>>) -> PyResult<(Bindings, Lists)> {
    let (mut one, mut many) = (Bindings::new(), Lists::new());
    for (name, value) in bindings.into_iter().flatten() {
        let name: String = name.extract()?;
        let name = name.trim_start_matches(['?', '$']).to_owned();
        let of = |value: &Bound<'_, PyAny>| {
            terms::term_of(value).map_err(|e| {
                let py = value.py();
                match e.is_instance_of::<PyTypeError>(py) {
                    true => {
                        PyTypeError::new_err(format!("the binding of ?{name}: {}", e.value(py)))
                    }
                    false => e,
                }
            })
        };
        let is_list = value.is_instance_of::<PyList>()
            || value.is_instance_of::<PyTuple>()
            || value.is_instance_of::<PySet>()
            || value.is_instance_of::<PyFrozenSet>();
        if is_list {
            let terms = value.try_iter()?.map(|item| of(&item?));
            many.push((name.clone(), terms.collect::<PyResult<_>>()?));
        } else {
            one.push((name.clone(), of(&value)?));
        }
    }
    Ok((one, many))
}

/// Answers a query. The keyword `keep` is handled here, the others by the library.
pub fn run_query<'py>(
    py: Python<'py>,
    db: &Database,
    kept: Option<&Kept>,
    asked: Asked,
    text: &str,
    bindings: Option<&Bound<'py, PyDict>>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut keywords = Keywords::new(keywords)?;
    let keep = match keywords.take("keep")? {
        Some(keep) => keep.extract()?,
        None => true,
    };
    let (bound, lists) = bound(bindings)?;
    // A query with lists is not cached, since the lists are part of the plan.
    let kept = kept.filter(|_| lists.is_empty());
    let options = of_query(keywords.rest())?.with_values(lists);
    let plan = || prepared::plan(db, kept, text, &bound, &options);
    let planned: PlannedQuery = if text.len() <= SHORT {
        py.detach(plan).map_err(exception)?
    } else {
        interruptible(py, &options.cancel, plan)?
    };
    asked.check(planned.form())?;
    match planned.form() {
        QueryForm::Select => {
            let cursor = py
                .detach(|| db.cursor_planned(planned, &options))
                .map_err(exception)?;
            let solutions = Solutions::new(py, cursor, options.cancel.clone(), keep)?;
            Ok(Bound::new(py, solutions)?.into_any())
        }
        QueryForm::Ask | QueryForm::Construct | QueryForm::Describe => {
            let answer = interruptible(py, &options.cancel, || {
                let memory = options.memory.clone();
                let memory = memory.unwrap_or_else(|| {
                    let all = db.runtime().memory();
                    all.part(all.limit())
                });
                let mut collector = Collector::new(memory.clone());
                let options = options.clone().with_memory(memory);
                db.run_planned(&planned, &options, &mut collector)?;
                Ok(collector.into_answer())
            })?;
            match answer {
                Answer::Boolean(yes) => Ok(yes.into_pyobject(py)?.to_owned().into_any()),
                Answer::Graph(triples) => {
                    let triples = Arc::new(triples);
                    Ok(Bound::new(py, Triples { triples })?.into_any())
                }
                Answer::Solutions { .. } => Err(unexpected()),
            }
        }
    }
}
