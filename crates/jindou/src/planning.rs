//! Queries on the way from their text to a plan, and the plans that are kept.

use crate::blank_nodes;
use crate::database::Database;
use crate::options::QueryOptions;
use crate::runtime::Settled;
use jindou_model::{CancelToken, Charge, Holder, MemoryBudget, Result};
use jindou_plan::sparql::Query;
use jindou_plan::{CacheKey, Form, Parsed, Plan, PlanLimits, PlanOptions, Weight};
use jindou_store::{Graph, Snapshot};
use oxrdf::Term;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

/// Form of a query, which determines the kind of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueryForm {
    /// Rows of terms.
    Select,
    /// Yes or no.
    Ask,
    /// Triples made by a template.
    Construct,
    /// Triples that describe terms.
    Describe,
}

/// A parsed and planned query. It belongs to the snapshot it was planned for.
pub struct PlannedQuery {
    pub(crate) plan: Arc<Plan>,
    pub(crate) snapshot: Snapshot,
    pub(crate) cached: bool,
    /// Of the plan's bytes, if the cache has it not.
    charge: Option<Charge>,
}

impl PlannedQuery {
    pub(crate) fn of(plan: Arc<Plan>, snapshot: Snapshot, cached: bool) -> Self {
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

    /// Bytes that the plan is charged for.
    #[must_use]
    pub fn charged(&self) -> u64 {
        self.charge.as_ref().map_or(0, Charge::bytes)
    }

    /// True if it is so small that waking a second thread would gain nothing.
    #[must_use]
    pub fn is_light(&self) -> bool {
        self.plan.weight == Weight::Light
    }

    /// True if the plan was in the cache.
    #[must_use]
    pub fn is_cached(&self) -> bool {
        self.cached
    }

    /// The plan, whose type is no part of the library's promise.
    #[doc(hidden)]
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The snapshot it was planned for, whose type is no part of the library's promise.
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
        }
    }

    /// Parses and plans a query, or finds its plan in the cache.
    pub fn plan(&self, text: &str, options: &QueryOptions) -> Result<PlannedQuery> {
        let snapshot = self.snapshot_for(&options.token());
        self.inner.check_for_faults(&snapshot)?;
        let keyed = match &options.dataset {
            Some(d) => Cow::Owned(d.key(text)),
            None => Cow::Borrowed(text),
        };
        // No valid query begins with a zero byte, so this is no other's key.
        let keyed = if options.common_prefixes {
            Cow::Owned(format!("\0c{keyed}"))
        } else {
            keyed
        };
        let keyed = match options.prefixes.as_slice() {
            [] => keyed,
            // IRIs and names have no zero byte, and neither has what comes before the text.
            some => {
                let all: String = some.iter().map(|(n, i)| format!("\0p{n}\0{i}")).collect();
                Cow::Owned(format!("{all}\0\0{keyed}"))
            }
        };
        let key = CacheKey {
            text: &keyed,
            options: Self::plan_options(&snapshot, options),
        };
        let found = self.inner.plans.get(&key, &snapshot);
        let cached = found.is_some();
        let (plan, charge) = match found {
            Some(found) => (found, None),
            None => {
                let (options, cancel) = (self.settle(options), options.token());
                let query = Self::parse(text, &options, &cancel)?;
                let (plan, charge) =
                    Self::make(query, &snapshot, &key.options, &options.memory, &cancel)?;
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

    /// Plans a query, all of it charged: the algebra and what planning takes until there is the plan, the plan as long as it is
    /// used.
    fn make(
        mut query: Parsed,
        snapshot: &Snapshot,
        plan_options: &PlanOptions,
        memory: &MemoryBudget,
        cancel: &CancelToken,
    ) -> Result<(Arc<Plan>, Charge)> {
        query.charge_planning()?;
        let limits = PlanLimits { cancel, memory };
        let plan = jindou_plan::plan_within(&query, snapshot, plan_options, limits)?;
        drop(query);
        // No plan is kept that was made of what could not be read.
        snapshot.check_shards()?;
        let mut charge = Charge::new(Holder::Text, memory);
        charge.set(plan.heap_bytes())?;
        Ok((Arc::new(plan), charge))
    }

    /// Plans a prepared query with these terms, or finds its plan in the cache.
    pub(crate) fn plan_with(
        &self,
        text: &str,
        query: &jindou_plan::Prepared,
        depth: usize,
        terms: Vec<Term>,
        options: &QueryOptions,
    ) -> Result<PlannedQuery> {
        let snapshot = self.snapshot_for(&options.token());
        self.inner.check_for_faults(&snapshot)?;
        // No valid query begins with a zero byte, nor has one, so this is no other's key.
        let mut keyed = String::from("\0p");
        for (name, term) in query.names().zip(&terms) {
            let _ = write!(keyed, "{name} {term}\0");
        }
        keyed.push_str(text);
        let keyed = match &options.dataset {
            Some(d) => d.key(&keyed),
            None => keyed,
        };
        let key = CacheKey {
            text: &keyed,
            options: Self::plan_options(&snapshot, options),
        };
        if let Some(plan) = self.inner.plans.get(&key, &snapshot) {
            return Ok(PlannedQuery::of(plan, snapshot, true));
        }
        let (options, cancel) = (self.settle(options), options.token());
        let query = jindou_plan::with_stack(depth, || query.with(&terms))??;
        let query = Parsed::of(query, &options.memory)?;
        let (plan, charge) = Self::make(query, &snapshot, &key.options, &options.memory, &cancel)?;
        self.inner.plans.insert(&key, Arc::clone(&plan));
        Ok(PlannedQuery {
            plan,
            snapshot,
            cached: false,
            charge: Some(charge),
        })
    }

    /// The query over the dataset that the options choose, charged to their memory.
    pub(crate) fn parse(
        text: &str,
        options: &Settled<'_, QueryOptions>,
        cancel: &CancelToken,
    ) -> Result<Parsed> {
        let syntax = options.syntax();
        let mut query = jindou_plan::read(text, &syntax, &options.memory, cancel)?;
        if blank_nodes::may_be_called_in(text) {
            let depth = query.depth();
            jindou_plan::with_stack(depth, || blank_nodes::of_each_solution(&mut query))?;
        }
        if let Some(dataset) = &options.dataset {
            dataset.apply(&mut query)?;
        }
        Ok(query)
    }

    /// Plans in the cache.
    #[must_use]
    pub fn cached_plans(&self) -> usize {
        self.inner.plans.len()
    }

    /// Parses and plans a query, the cache aside.
    pub fn plan_uncached(&self, text: &str, options: &QueryOptions) -> Result<PlannedQuery> {
        let cancel = options.token();
        let snapshot = self.snapshot_for(&cancel);
        let settled = self.settle(options);
        let query = Self::parse(text, &settled, &cancel)?;
        let plan_options = Self::plan_options(&snapshot, options);
        let (plan, charge) = Self::make(query, &snapshot, &plan_options, &settled.memory, &cancel)?;
        Ok(PlannedQuery {
            plan,
            snapshot,
            cached: false,
            charge: Some(charge),
        })
    }

    /// Plans a parsed query, the cache aside.
    pub fn plan_parsed(&self, query: &Query, options: &QueryOptions) -> Result<PlannedQuery> {
        let cancel = options.token();
        let snapshot = self.snapshot_for(&cancel);
        self.inner.check_for_faults(&snapshot)?;
        let plan_options = Self::plan_options(&snapshot, options);
        let limits = PlanLimits {
            cancel: &cancel,
            memory: &self.settle(options).memory,
        };
        let plan = jindou_plan::plan_within(query, &snapshot, &plan_options, limits)?;
        snapshot.check_shards()?;
        Ok(PlannedQuery::of(Arc::new(plan), snapshot, false))
    }

    /// How a query would run: each step, its estimate, why it comes there; where a GPU may run it, what it would take on either; over
    /// shards, where each exploration is run, and why.
    pub fn explain(&self, text: &str, options: &QueryOptions) -> Result<String> {
        let planned = self.plan(text, options)?;
        let settled = self.settle(options);
        let devices = settled.runtime.devices();
        self.inner.made_of(&planned.snapshot, || {
            let (plan, snapshot) = (&planned.plan, &planned.snapshot);
            let mut text =
                jindou_plan::with_stack(plan.depth(), || jindou_plan::explain(plan, snapshot))?;
            text.push_str(&devices.explain(plan, snapshot, options.gpu, settled.threads));
            if let Some(hub) = settled.hub.filter(|_| snapshot.is_sharded()) {
                let executor = hub.executor(settled.shard_mode);
                text.push_str(&executor.explain(plan, snapshot));
            }
            Ok(text)
        })
    }
}
