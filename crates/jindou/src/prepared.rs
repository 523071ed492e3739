//! Prepared queries: planned once, run many times with different terms for their parameters.

use crate::database::{Checksum, Database, QueryReport, guarded, watching};
use crate::default_graph::DefaultGraph;
use crate::execute::{MeasuredProfile, PlanExecution};
use crate::options::{DatasetChoice, QueryOptions};
use crate::planning::PlannedQuery;
use crate::results::{Answer, AnswerSink, Collector};
use jindou_model::sync;
use jindou_model::{CancelToken, Charge, Error, Result, Scope, term};
use jindou_plan::{Form, Functions, Parametric, Plan, PlanOptions, Validity, Weight};
use jindou_store::Snapshot;
use oxrdf::{NamedNode, Term};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Value of a query's parameter for one run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Value<'a> {
    /// A term. Blank nodes are refused, since they are variables in a query.
    Term(&'a Term),
    /// An IRI.
    Iri(&'a str),
    /// A term as the store has it, so that a blank node is the store's one with this label. Refused where the plan
    /// depends on the term.
    Node(&'a Term),
}

/// A query with parameters that each run replaces by terms. Cheap to clone and to share; each thread creates its own
/// [`Session`] from it.
///
/// ```
/// use jindou::{Database, QueryOptions, Value};
///
/// # let db = Database::in_memory();
/// # let data = "INSERT DATA { <http://example.org/Phobos> <http://example.org/near> <http://example.org/Mars> }";
/// # db.update(data, &Default::default())?;
/// let query = "SELECT ?s WHERE { ?s <http://example.org/near> $planet }";
/// let prepared = db.prepare(query, &["planet"], &QueryOptions::default())?;
/// let mut session = prepared.session();
/// for planet in ["http://example.org/Mars", "http://example.org/Venus"] {
///     let answer = session.query(&[Value::Iri(planet)], &QueryOptions::default())?;
///     println!("{planet}: {} rows", answer.solutions().len());
///     # assert_eq!(answer.solutions().len(), usize::from(planet.ends_with("Mars")));
/// }
/// # Ok::<(), jindou::Error>(())
/// ```
#[derive(Clone)]
pub struct PreparedQuery {
    shared: Arc<PreparedShared>,
}

struct PreparedShared {
    db: Database,
    text: String,
    query: jindou_plan::ParametrizedQuery,
    /// Nesting depth of the query's algebra.
    depth: usize,
    /// Charge for the memory of the text and the algebra.
    charge: Charge,
    names: Vec<String>,
    union_default: Option<bool>,
    dataset: Option<DatasetChoice>,
    common_prefixes: bool,
    store_prefixes: bool,
    prefixes: Vec<(String, String)>,
    /// Version of the store's prefixes with which the text was parsed.
    table: u64,
    base: Option<String>,
    values: Vec<(String, Vec<Term>)>,
    functions: Functions,
    planned: Mutex<Option<Arc<Planned>>>,
}

/// Result of planning, with the snapshots for which it is valid.
struct Planned {
    validity: Validity,
    /// The plan; `None` if the query cannot be planned without the parameters' terms.
    plan: Option<Parametric>,
    charge: Charge,
}

impl Database {
    /// Prepares a query with these variables (without `?` or `$`) as parameters, which each run replaces by terms. The
    /// query is planned now for average terms, unless a parameter occurs in an expression, a path, a predicate, a class
    /// or a column of the result; such queries are planned when they first run with a combination of terms. Dataset and
    /// default graph of these options apply to all runs.
    ///
    /// # Errors
    /// [`Error::Query`] for bad SPARQL, and for names that are not variables of the query or are assigned a value in
    /// it; those of [`Self::plan`].
    pub fn prepare(
        &self,
        text: &str,
        parameters: &[impl AsRef<str>],
        options: &QueryOptions,
    ) -> Result<PreparedQuery> {
        let (settled, cancel) = (self.settle(options), options.token());
        let scope = Scope::for_text(text.len(), &settled.memory, &cancel)?;
        let snapshot = self.snapshot_for(&cancel)?;
        let ((query, depth, names, text), charge) = scope.make(|| {
            let parsed = Self::parse(text, &settled, &snapshot)?;
            let (depth, query) = (parsed.depth(), parsed.into_query());
            let names: Vec<&str> = parameters.iter().map(AsRef::as_ref).collect();
            let query = jindou_plan::with_stack(depth, || {
                jindou_plan::ParametrizedQuery::new(query, &names)
            })??;
            let names = query.names().map(str::to_owned).collect();
            Ok((query, depth, names, text.to_owned()))
        })?;
        let shared = PreparedShared {
            db: self.clone(),
            text,
            query,
            depth,
            charge,
            names,
            union_default: options.union_default,
            dataset: options.dataset.clone(),
            common_prefixes: options.common_prefixes,
            store_prefixes: options.store_prefixes,
            prefixes: options.prefixes.clone(),
            table: options.prefixes_of(&snapshot),
            base: options.base.clone(),
            values: options.values.clone(),
            functions: options.functions.clone(),
            planned: Mutex::new(None),
        };
        shared.planned(&snapshot, &cancel)?;
        Ok(PreparedQuery {
            shared: Arc::new(shared),
        })
    }
}

impl PreparedShared {
    /// The options with the dataset, prefixes, functions and values with which the query was prepared.
    fn over(&self, options: &QueryOptions) -> QueryOptions {
        options
            .clone()
            .with_union_default(self.union_default)
            .with_dataset(self.dataset.clone())
            .with_common_prefixes(self.common_prefixes)
            .with_store_prefixes(self.store_prefixes)
            .with_prefixes(self.prefixes.clone())
            .with_base(self.base.clone())
            .with_values(self.values.clone())
            .with_functions(self.functions.clone())
    }

    fn planned(&self, snapshot: &Snapshot, cancel: &CancelToken) -> Result<Arc<Planned>> {
        let mut planned = sync::lock(&self.planned);
        if let Some(p) = &*planned
            && p.validity.holds(snapshot)
        {
            return Ok(Arc::clone(p));
        }
        let options = PlanOptions {
            union_default: self
                .union_default
                .unwrap_or(snapshot.base().union_default()),
            functions: self.functions.clone(),
            prefixes: self.table,
        };
        let before = planned.take();
        drop(before);
        let scope = Scope::for_text(self.text.len(), self.charge.budget(), cancel)?;
        let (plan, charge) = scope.make(|| {
            let plan = self.query.plan(snapshot, &options)?;
            // If a shard could not be read, the plan lacks statistics, and must not be kept.
            snapshot.check_shards()?;
            Ok(plan)
        })?;
        // A query that cannot be planned for this snapshot may be planned for another version of the data.
        let validity = match &plan {
            Some(p) => p.plan().validity,
            None => Validity::for_snapshot(snapshot),
        };
        let fresh = Arc::new(Planned {
            validity,
            plan,
            charge,
        });
        *planned = Some(Arc::clone(&fresh));
        Ok(fresh)
    }
}

impl PreparedQuery {
    /// The parameters' names, in the order in which values must be given.
    #[must_use]
    pub fn parameters(&self) -> &[String] {
        &self.shared.names
    }

    /// The query's text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.shared.text
    }

    /// Bytes charged for the query's text, algebra and plan.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let planned = sync::lock(&self.shared.planned);
        let plan = planned.as_ref().map_or(0, |p| p.charge.bytes());
        self.shared.charge.bytes() + plan
    }

    /// True if the store's prefixes have not changed since the text was parsed. Otherwise the same text may now mean
    /// another query.
    #[must_use]
    pub fn has_present_prefixes(&self) -> bool {
        let shared = &self.shared;
        !shared.store_prefixes || shared.db.snapshot().prefixes().version() == shared.table
    }

    /// True if there is a plan for all terms. Runs then need no planning, unless the data has changed too much.
    #[must_use]
    pub fn is_planned(&self) -> bool {
        let planned = sync::lock(&self.shared.planned);
        planned.as_ref().is_some_and(|p| p.plan.is_some())
    }

    /// True if planning for all terms is neither in progress nor needed for the current snapshot, so that a run does
    /// not wait for it. A query that depends on its terms may still be planned for each. Never blocks.
    #[must_use]
    pub fn is_current(&self) -> bool {
        match self.shared.planned.try_lock() {
            Ok(planned) => planned
                .as_ref()
                .is_some_and(|p| p.validity.holds(&self.shared.db.snapshot())),
            Err(_) => false,
        }
    }

    /// True if a run is expected to be so short that a second thread would not pay; `None` if that depends on the
    /// terms.
    #[must_use]
    pub fn is_light(&self) -> Option<bool> {
        let planned = sync::lock(&self.shared.planned);
        let plan = planned.as_ref()?.plan.as_ref()?;
        Some(plan.plan().weight == Weight::Light)
    }

    /// Plans the query with these values, for [`Database::run_planned`]. If there is a plan already, copies it:
    /// O(plan). A [`Session`] avoids the copy.
    ///
    /// # Errors
    /// As [`Session::run`], for errors that occur before running.
    pub fn plan(&self, values: &[Value<'_>], options: &QueryOptions) -> Result<PlannedQuery> {
        let cancel = options.token();
        self.session()
            .with_plan(values, options, &cancel, |plan, snapshot, cached| {
                let plan = Arc::new(plan.clone());
                Ok(PlannedQuery::new(plan, snapshot.clone(), cached))
            })
    }

    /// A session for one thread. Its first run copies the plan.
    #[must_use]
    pub fn session(&self) -> Session {
        Session {
            shared: Arc::clone(&self.shared),
            planned: None,
            plan: None,
            ids: Vec::with_capacity(self.shared.names.len()),
            bytes: Vec::new(),
        }
    }
}

/// A prepared query for one thread: its own copy of the plan, into which each run writes the terms.
pub struct Session {
    shared: Arc<PreparedShared>,
    /// The result of planning from which `plan` was copied.
    planned: Option<Arc<Planned>>,
    plan: Option<Parametric>,
    ids: Vec<Option<u32>>,
    bytes: Vec<u8>,
}

impl Session {
    /// The prepared query of this session.
    #[must_use]
    pub fn prepared(&self) -> PreparedQuery {
        PreparedQuery {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Answers the query into a sink, with these values for the parameters in their order. A term that the store does
    /// not contain matches nothing.
    ///
    /// # Errors
    /// As [`Database::run`]; [`Error::Query`] for too few or too many values, or for one that is not allowed in the
    /// parameter's position.
    pub fn run(
        &mut self,
        values: &[Value<'_>],
        options: &QueryOptions,
        sink: &mut dyn AnswerSink,
    ) -> Result<QueryReport> {
        let begin = Instant::now();
        let cancel = options.token();
        guarded(|| {
            let shared = Arc::clone(&self.shared);
            let options = &shared.db.settle(options);
            let inner = &shared.db.inner;
            self.with_plan(values, options, &cancel, |plan, snapshot, planned| {
                let own = match &plan.form {
                    // Only DESCRIBE reads edges that are not part of the plan.
                    Form::Describe(dataset) => {
                        let union = shared
                            .union_default
                            .unwrap_or(snapshot.base().union_default());
                        DefaultGraph::for_query(snapshot, dataset.as_ref(), union)
                    }
                    _ => DefaultGraph::Own,
                };
                let ran = inner.checking_files(snapshot, &cancel, sink, |cancel, sink| {
                    let execution = PlanExecution {
                        plan,
                        snapshot,
                        options,
                        cancel,
                    };
                    execution.into_sink(&own, sink)
                })?;
                report(ran, begin, planned)
            })
        })
    }

    /// As [`Self::run`], but returns the whole answer, whose memory is charged to the query's budget.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn query(&mut self, values: &[Value<'_>], options: &QueryOptions) -> Result<Answer> {
        let memory = self.shared.db.settle(options).memory;
        let options = options.clone().with_memory(memory.clone());
        let mut collector = Collector::new(memory);
        self.run(values, &options, &mut collector)?;
        Ok(collector.into_answer())
    }

    /// As [`Database::checksum`]: computes a checksum of all rows, without decoding and writing them.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn checksum(&mut self, values: &[Value<'_>], options: &QueryOptions) -> Result<Checksum> {
        let cancel = options.token();
        guarded(|| {
            let shared = Arc::clone(&self.shared);
            self.with_plan(values, options, &cancel, |plan, snapshot, _| {
                let cancel = watching(cancel.clone(), snapshot);
                shared.db.inner.computed_from(snapshot, || {
                    let execution = PlanExecution {
                        plan,
                        snapshot,
                        options: &shared.db.settle(options),
                        cancel,
                    };
                    execution.into_checksum()
                })
            })
        })
    }

    fn with_plan<T>(
        &mut self,
        values: &[Value<'_>],
        options: &QueryOptions,
        cancel: &CancelToken,
        run: impl FnOnce(&Plan, &Snapshot, bool) -> Result<T>,
    ) -> Result<T> {
        let shared = &self.shared;
        if values.len() != shared.names.len() {
            return Err(Error::Query(format!(
                "the query has {} parameters and was given {} values",
                shared.names.len(),
                values.len()
            )));
        }
        let snapshot = shared.db.snapshot_for(cancel)?;
        shared.db.inner.check_for_faults(&snapshot)?;
        let known = self.planned.as_ref();
        if !known.is_some_and(|p| p.validity.holds(&snapshot)) {
            let planned = shared.planned(&snapshot, cancel)?;
            self.plan.clone_from(&planned.plan);
            self.planned = Some(planned);
        }
        if let Some(plan) = &mut self.plan {
            self.ids.clear();
            for (name, value) in shared.names.iter().zip(values) {
                self.ids
                    .push(id_of(name, *value, &snapshot, &mut self.bytes)?);
            }
            // A term that another shard did not look up is not an unknown one.
            snapshot.check_shards()?;
            plan.bind(&self.ids);
            return run(plan.plan(), &snapshot, true);
        }
        let terms = values
            .iter()
            .map(|v| term_of(*v))
            .collect::<Result<Vec<_>>>()?;
        let options = shared.over(options);
        let planned = shared.db.plan_with(
            &shared.text,
            &shared.query,
            shared.depth,
            terms,
            &options,
            shared.table,
        )?;
        run(planned.plan(), planned.snapshot(), planned.is_cached())
    }
}

fn report(
    (rows, measured): (u64, MeasuredProfile),
    begin: Instant,
    plan_cached: bool,
) -> Result<QueryReport> {
    Ok(QueryReport {
        rows,
        plan_time: Duration::ZERO,
        run_time: begin.elapsed(),
        profile: measured.text,
        profile_tree: measured.tree,
        plan_cached,
    })
}

/// The id to write into the plan for a parameter; `None` for a term that the store does not contain.
fn id_of(
    name: &str,
    value: Value<'_>,
    snapshot: &Snapshot,
    bytes: &mut Vec<u8>,
) -> Result<Option<u32>> {
    bytes.clear();
    match value {
        Value::Node(t) => term::push_term(t, bytes),
        Value::Iri(iri) => term::push_iri(iri, bytes),
        Value::Term(Term::BlankNode(_)) => {
            return Err(Error::Query(format!(
                "the parameter ${name} cannot be a blank node: in a query a blank node is a variable"
            )));
        }
        Value::Term(t) => term::push_term(t, bytes),
    }
    Ok(snapshot.lookup(bytes).map(|v| v.0))
}

fn term_of(value: Value<'_>) -> Result<Term> {
    match value {
        Value::Term(t) | Value::Node(t) => Ok(t.clone()),
        Value::Iri(iri) => NamedNode::new(iri)
            .map(Term::from)
            .map_err(|e| Error::Query(format!("<{iri}> is not an IRI: {e}"))),
    }
}
