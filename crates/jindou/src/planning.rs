//! Parsing and planning of queries, and the use of the plan cache.

use crate::blank_nodes;
use crate::database::Database;
use crate::options::QueryOptions;
use crate::runtime::Settled;
use crate::summary::GraphCounts;
use crate::values;
use jindou_graph::Graph;
use jindou_model::{Charge, Holder, Result, Scope};
use jindou_plan::sparql::Query;
use jindou_plan::{CacheKey, Form, Parsed, Plan, PlanOptions, Weight};
use jindou_store::Snapshot;
use oxrdf::Term;
use std::fmt::Write as _;
use std::sync::Arc;

/// Form of a query, which determines the kind of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueryForm {
    /// Rows of terms.
    Select,
    /// Yes or no.
    Ask,
    /// Triples built from a template.
    Construct,
    /// Triples that describe terms.
    Describe,
}

/// A planned query, and the snapshot for which it was planned.
pub struct PlannedQuery {
    pub(crate) plan: Arc<Plan>,
    pub(crate) snapshot: Snapshot,
    pub(crate) cached: bool,
    /// Charge for the plan's memory; `None` if the plan was found in the cache, which has charged it.
    charge: Option<Charge>,
}

impl PlannedQuery {
    pub(crate) fn new(plan: Arc<Plan>, snapshot: Snapshot, cached: bool) -> Self {
        Self {
            plan,
            snapshot,
            cached,
            charge: None,
        }
    }

    /// The query's form.
    #[must_use]
    pub fn form(&self) -> QueryForm {
        match &self.plan.form {
            Form::Construct(_) => QueryForm::Construct,
            Form::Describe(_) => QueryForm::Describe,
            _ if self.plan.is_ask() => QueryForm::Ask,
            _ => QueryForm::Select,
        }
    }

    /// Bytes charged for the plan; 0 if it was found in the cache.
    #[must_use]
    pub fn charged(&self) -> u64 {
        self.charge.as_ref().map_or(0, Charge::bytes)
    }

    /// True if the query is so small that waking a second thread would not help.
    #[must_use]
    pub fn is_light(&self) -> bool {
        self.plan.weight == Weight::Light
    }

    /// True if the plan was in the cache.
    #[must_use]
    pub fn is_cached(&self) -> bool {
        self.cached
    }

    /// The plan, whose type is not part of the library's stable interface.
    #[doc(hidden)]
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The snapshot for which the query was planned; its type is not part of the library's stable interface.
    #[doc(hidden)]
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }
}

impl Database {
    pub(crate) fn union_default(snapshot: &Snapshot, options: &QueryOptions) -> bool {
        options
            .union_default
            .unwrap_or(snapshot.base().union_default())
    }

    fn plan_options(snapshot: &Snapshot, options: &QueryOptions) -> PlanOptions {
        PlanOptions {
            union_default: Self::union_default(snapshot, options),
            functions: options.functions.clone(),
            prefixes: options.prefixes_of(snapshot),
        }
    }

    /// Parses and plans a query, or finds its plan in the cache.
    pub fn plan(&self, text: &str, options: &QueryOptions) -> Result<PlannedQuery> {
        let snapshot = self.snapshot_for(&options.token())?;
        self.plan_for(text, options, snapshot)
    }

    /// As [`Self::plan`], for a snapshot that [`Self::snapshot`] returned.
    #[doc(hidden)]
    pub fn plan_in(
        &self,
        text: &str,
        options: &QueryOptions,
        snapshot: &Snapshot,
    ) -> Result<PlannedQuery> {
        let snapshot = snapshot.for_new_query().into_owned();
        snapshot.begin(&options.token());
        self.plan_for(text, options, snapshot)
    }

    fn plan_for(
        &self,
        text: &str,
        options: &QueryOptions,
        snapshot: Snapshot,
    ) -> Result<PlannedQuery> {
        self.inner.check_for_faults(&snapshot)?;
        let keyed = options.keyed(text);
        let key = CacheKey {
            text: &keyed,
            options: Self::plan_options(&snapshot, options),
        };
        let found = self.inner.plans.get(&key, &snapshot);
        let cached = found.is_some();
        let (plan, charge) = match found {
            Some(found) => (found, None),
            None => {
                let (plan, charge) = self.read_and_plan(text, options, &snapshot, &key.options)?;
                self.inner.plans.insert(&key, Arc::clone(&plan));
                (plan, Some(charge))
            }
        };
        Ok(PlannedQuery {
            plan,
            snapshot,
            cached,
            charge,
        })
    }

    /// Parses and plans a query. Returns the plan with a charge for its memory; memory used meanwhile is charged as
    /// well.
    fn read_and_plan(
        &self,
        text: &str,
        options: &QueryOptions,
        snapshot: &Snapshot,
        plan_options: &PlanOptions,
    ) -> Result<(Arc<Plan>, Charge)> {
        let (settled, cancel) = (self.settle(options), options.token());
        Scope::for_text(text.len(), &settled.memory, &cancel)?.make(|| {
            let query = Self::parse(text, &settled, snapshot)?;
            Self::plan_in_scope(&query, snapshot, plan_options)
        })
    }

    fn plan_in_scope(
        query: &Query,
        snapshot: &Snapshot,
        plan_options: &PlanOptions,
    ) -> Result<Arc<Plan>> {
        let plan = jindou_plan::plan(query, snapshot, plan_options)?;
        // If a shard could not be read, the plan lacks statistics, and must not be cached.
        snapshot.check_shards()?;
        Ok(Arc::new(plan))
    }

    /// Plans a prepared query with these terms, or finds its plan in the cache. `prefixes` is the version of the
    /// store's prefixes with which the text was parsed.
    pub(crate) fn plan_with(
        &self,
        text: &str,
        query: &jindou_plan::ParametrizedQuery,
        depth: usize,
        terms: Vec<Term>,
        options: &QueryOptions,
        prefixes: u64,
    ) -> Result<PlannedQuery> {
        let snapshot = self.snapshot_for(&options.token())?;
        self.inner.check_for_faults(&snapshot)?;
        // The key differs from those of other queries, since a valid query contains no zero byte.
        let mut keyed = String::from("\0p");
        for (name, term) in query.names().zip(&terms) {
            let _ = write!(keyed, "{name} {term}\0");
        }
        keyed.push_str(text);
        let keyed = options.keyed(&keyed);
        let key = CacheKey {
            text: &keyed,
            options: PlanOptions {
                prefixes,
                ..Self::plan_options(&snapshot, options)
            },
        };
        if let Some(plan) = self.inner.plans.get(&key, &snapshot) {
            return Ok(PlannedQuery::new(plan, snapshot, true));
        }
        let (options, cancel) = (self.settle(options), options.token());
        let scope = Scope::for_text(keyed.len(), &options.memory, &cancel)?;
        let (plan, charge) = scope.make(|| {
            let query = jindou_plan::with_stack(depth, || query.with(&terms))??;
            let query = Parsed::from_query(query)?;
            Self::plan_in_scope(&query, &snapshot, &key.options)
        })?;
        self.inner.plans.insert(&key, Arc::clone(&plan));
        Ok(PlannedQuery {
            plan,
            snapshot,
            cached: false,
            charge: Some(charge),
        })
    }

    /// Parses a query, over the dataset that the options choose. Memory and time are limited by the current thread's
    /// scope.
    pub(crate) fn parse(
        text: &str,
        options: &Settled<'_, QueryOptions>,
        snapshot: &Snapshot,
    ) -> Result<Parsed> {
        let mut query = jindou_plan::read(text, &options.syntax(snapshot))?;
        if blank_nodes::may_be_called_in(text) {
            let depth = query.depth();
            jindou_plan::with_stack(depth, || blank_nodes::of_each_solution(&mut query))?;
        }
        if let Some(dataset) = &options.dataset {
            dataset.apply(&mut query)?;
        }
        if options.values.is_empty() {
            return Ok(query);
        }
        let depth = query.depth();
        let query = jindou_plan::with_stack(depth, || {
            values::restricted(query.into_query(), &options.values)
        })??;
        Parsed::from_query(query)
    }

    /// Number of plans in the cache.
    #[must_use]
    pub fn cached_plans(&self) -> usize {
        self.inner.plans.len()
    }

    /// Parses and plans a query without using the cache.
    pub fn plan_uncached(&self, text: &str, options: &QueryOptions) -> Result<PlannedQuery> {
        let snapshot = self.snapshot_for(&options.token())?;
        let plan_options = Self::plan_options(&snapshot, options);
        let (plan, charge) = self.read_and_plan(text, options, &snapshot, &plan_options)?;
        Ok(PlannedQuery {
            plan,
            snapshot,
            cached: false,
            charge: Some(charge),
        })
    }

    /// Plans a parsed query without using the cache.
    pub fn plan_parsed(&self, query: &Query, options: &QueryOptions) -> Result<PlannedQuery> {
        let snapshot = self.snapshot_for(&options.token())?;
        self.plan_over(query, snapshot, options)
    }

    /// Plans a parsed query over this snapshot without using the cache.
    pub(crate) fn plan_over(
        &self,
        query: &Query,
        snapshot: Snapshot,
        options: &QueryOptions,
    ) -> Result<PlannedQuery> {
        let cancel = options.token();
        self.inner.check_for_faults(&snapshot)?;
        let plan_options = Self::plan_options(&snapshot, options);
        let scope = Scope::new(Holder::Text, &self.settle(options).memory, &cancel);
        let (plan, charge) = scope.make(|| Self::plan_in_scope(query, &snapshot, &plan_options))?;
        Ok(PlannedQuery {
            plan,
            snapshot,
            cached: false,
            charge: Some(charge),
        })
    }

    /// Explains how a query would be executed: each step with its estimate and the reason for its position; the
    /// predicted times on CPU and GPU, if a GPU may be used; for a sharded store, where each exploration would run, and
    /// why.
    pub fn explain(&self, text: &str, options: &QueryOptions) -> Result<String> {
        let planned = self.plan(text, options)?;
        let settled = self.settle(options);
        let devices = settled.runtime.devices();
        let scope = Scope::for_text(0, &settled.memory, &options.token())?;
        scope
            .try_run(|| {
                self.inner.computed_from(&planned.snapshot, || {
                    let (plan, snapshot) = (&planned.plan, &planned.snapshot);
                    let mut text = jindou_plan::with_stack(plan.depth(), || {
                        jindou_plan::explain(plan, snapshot)
                    })?;
                    text.push_str(&devices.explain(plan, snapshot, options.gpu, settled.threads));
                    if let Some(hub) = settled.hub.filter(|_| snapshot.is_sharded()) {
                        let executor = hub.executor(settled.shard_mode);
                        text.push_str(&executor.explain(plan, snapshot));
                    }
                    Ok(text)
                })
            })
            .and_then(|mut explained| {
                for remark in self.remarks(text, options)? {
                    explained.push_str(&format!("remark: {remark}\n"));
                }
                Ok(explained)
            })
    }

    /// If a query probably misses its data, returns the store's numbers of quads: the query reads the default graph,
    /// which is empty, while named graphs are not. `None` for all other queries. O(predicates + text).
    ///
    /// ```
    /// use jindou::{Database, QueryOptions, UpdateOptions};
    ///
    /// let db = Database::in_memory();
    /// let text = "INSERT DATA { GRAPH <http://e/g> { <http://e/mars> a <http://e/Planet> } }";
    /// db.update(text, &UpdateOptions::default())?;
    /// let options = QueryOptions::default();
    /// assert!(db.overlooked_graphs("SELECT * { ?s ?p ?o }", &options)?.is_some());
    /// assert!(db.overlooked_graphs("SELECT * { GRAPH ?g { ?s ?p ?o } }", &options)?.is_none());
    /// let all = options.with_union_default(true);
    /// assert!(db.overlooked_graphs("SELECT * { ?s ?p ?o }", &all)?.is_none());
    /// # Ok::<(), jindou::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::plan`], for errors that occur before planning.
    pub fn overlooked_graphs(
        &self,
        text: &str,
        options: &QueryOptions,
    ) -> Result<Option<GraphCounts>> {
        let snapshot = self.snapshot();
        let counts = GraphCounts::of(&snapshot);
        if !counts.only_named() || Self::union_default(&snapshot, options) {
            return Ok(None);
        }
        let settled = self.settle(options);
        let scope = Scope::for_text(text.len(), &settled.memory, &options.token())?;
        scope.try_run(|| {
            let query = Self::parse(text, &settled, &snapshot)?;
            // An empty IRI in `FROM` stands for the store's default graph.
            let is_own = query
                .dataset()
                .is_none_or(|d| d.default.iter().any(|n| n.as_str().is_empty()));
            let describes = matches!(*query, Query::Describe { .. });
            let reads = describes || query.pattern().reads_default_graph();
            Ok((is_own && reads).then_some(counts))
        })
    }

    /// Warnings about a query that is valid but probably not intended, one sentence each, with positions: extensions of
    /// other engines, such as the predicate `bif:contains`, and invalid constant patterns of REGEX and REPLACE. A call
    /// with such a pattern is an error in every row, so a FILTER with one removes all rows.
    pub fn remarks(&self, text: &str, options: &QueryOptions) -> Result<Vec<String>> {
        let settled = self.settle(options);
        let scope = Scope::for_text(text.len(), &settled.memory, &options.token())?;
        let snapshot = self.snapshot();
        scope.try_run(|| jindou_plan::remarks(text, &settled.syntax(&snapshot)))
    }
}
