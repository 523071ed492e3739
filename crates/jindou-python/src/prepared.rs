//! Queries with terms for some of their variables. Their plans are kept: programs ask the same text with other terms again and again.

use jindou::oxrdf::Term;
use jindou::{Database, Error, PlannedQuery, PreparedQuery, QueryOptions, Result, Value, VertexId};
use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};

/// Prepared queries that are kept at most.
const KEPT: usize = 256;

/// Variables and the terms that stand in their places.
pub type Bindings = Vec<(String, Term)>;

/// Prepared queries of one database, by text, variables and options.
#[derive(Default)]
pub struct Kept {
    queries: Mutex<FxHashMap<String, PreparedQuery>>,
}

impl Kept {
    /// Forgets all queries, and so releases the database.
    pub fn clear(&self) {
        self.queries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    fn prepared(
        &self,
        db: &Database,
        text: &str,
        bindings: &Bindings,
        options: &QueryOptions,
    ) -> Result<PreparedQuery> {
        let names: Vec<&str> = bindings.iter().map(|(name, _)| name.as_str()).collect();
        let key = format!(
            "{names:?} {:?} {:?} {} {} {} {text}",
            options.union_default,
            options.dataset,
            options.common_prefixes,
            options.store_prefixes,
            db.prefixes().version(),
        );
        let lock = || self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = lock().get(&key) {
            return Ok(found.clone());
        }
        let prepared = db.prepare(text, &names, options)?;
        let mut queries = lock();
        if queries.len() >= KEPT {
            queries.clear();
        }
        queries.insert(key, prepared.clone());
        Ok(prepared)
    }
}

/// Plans a query with terms for some variables.
///
/// # Errors
/// As [`Database::prepare`]; [`Error::Query`] for a blank node where only a plan with its label in the text would do, since there it
/// would be a variable.
pub fn plan(
    db: &Database,
    kept: Option<&Kept>,
    text: &str,
    bindings: &Bindings,
    options: &QueryOptions,
) -> Result<PlannedQuery> {
    if bindings.is_empty() {
        return db.plan(text, options);
    }
    let prepared = match kept {
        Some(kept) => kept.prepared(db, text, bindings, options)?,
        None => {
            let names: Vec<&str> = bindings.iter().map(|(name, _)| name.as_str()).collect();
            db.prepare(text, &names, options)?
        }
    };
    let mut values = Vec::with_capacity(bindings.len());
    for (name, term) in bindings {
        values.push(match term {
            Term::BlankNode(_) if prepared.is_planned() => {
                // A vertex that no store has matches nothing.
                Value::Id(db.vertex(term).unwrap_or(VertexId(0)))
            }
            Term::BlankNode(_) => {
                return Err(Error::Query(format!(
                    "?{name} cannot be a blank node in this query: it is used in the result, in an expression, as a predicate or as a class, or the plan depends on the term"
                )));
            }
            term => Value::Term(term),
        });
    }
    prepared.plan(&values, options)
}
