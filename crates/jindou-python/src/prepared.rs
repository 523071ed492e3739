//! Queries with bindings for some variables. Their plans are cached, since programs often run the same text with
//! different terms.

use jindou::oxrdf::Term;
use jindou::{Database, Error, PlannedQuery, PreparedQuery, QueryOptions, Result, Value};
use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};

/// Largest number of prepared queries in the cache.
const KEPT: usize = 256;

/// Variables, and the terms that replace them.
pub type Bindings = Vec<(String, Term)>;

/// Cache of the prepared queries of one database, by text, variables and options.
#[derive(Default)]
pub struct Kept {
    queries: Mutex<FxHashMap<String, PreparedQuery>>,
}

impl Kept {
    /// Empties the cache, so that it no longer keeps the database open.
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

/// Plans a query in which some variables are replaced by terms.
///
/// # Errors
/// As [`Database::prepare`]; [`Error::Query`] for a blank node if the term would have to be written into the query's
/// text, where a blank node means a variable.
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
            Term::BlankNode(_) if prepared.is_planned() => Value::Node(term),
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
