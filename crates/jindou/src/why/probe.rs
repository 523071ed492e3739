//! Runs small queries over one snapshot, within the time and memory limits of the query that is being explained.

use crate::results::Collector;
use crate::{Database, QueryOptions, Snapshot};
use jindou_model::{CancelToken, Error, term};
use jindou_plan::sparql::{
    BaseIri, GraphPattern, NamedNode, NamedNodePattern, Query, QueryDataset, Variable,
};
use oxrdf::Term;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Percentage of the total time that one query may take, so that a slow query leaves time for others.
const ONE: u32 = 30;
/// Largest number of queries in total.
const MOST: usize = 400;

/// The graphs that a probing query reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbedGraphs {
    /// The graphs that the explained query reads.
    Own,
    /// All graphs of the store, including the default graph.
    All,
}

pub(super) struct Prober<'a> {
    pub db: &'a Database,
    pub snapshot: Snapshot,
    /// The graphs of FROM and FROM NAMED in the explained query.
    pub dataset: Option<QueryDataset>,
    /// True if the default graph is the union of all graphs.
    pub union: bool,
    options: QueryOptions,
    base: Option<BaseIri>,
    end: Instant,
    /// Time limit of one query.
    one: Duration,
    asked: Cell<usize>,
    /// An error that ends the explanation: not a lack of time or memory, but cancellation, damage, or a failed shard.
    pub failed: RefCell<Option<Error>>,
    cancel: CancelToken,
}

impl<'a> Prober<'a> {
    pub(super) fn new(
        db: &'a Database,
        snapshot: Snapshot,
        options: &QueryOptions,
        query: &Query,
        patience: Duration,
    ) -> Self {
        let limit = options.timeout.map_or(patience, |left| left.min(patience));
        let mut own = options.clone().with_threads(1).with_profile(false);
        own.watch = None;
        // An explanation must not contact endpoints.
        own.service = None;
        own.dataset = None;
        let memory = db.settle(options).memory.clone();
        Self {
            db,
            dataset: query.dataset().cloned(),
            union: Database::union_default(&snapshot, options),
            snapshot,
            cancel: options.token(),
            options: own.with_memory(memory),
            base: query.base_iri().cloned(),
            end: Instant::now() + limit,
            one: patience * ONE / 100,
            asked: Cell::new(0),
            failed: RefCell::new(None),
        }
    }

    /// True if another query may be run: there was no error, and time is left.
    pub(super) fn goes_on(&self) -> bool {
        self.failed.borrow().is_none() && self.asked.get() < MOST && Instant::now() < self.end
    }

    /// Runs a query; `None` if there was no answer within the limits.
    fn run(&self, query: &Query, sight: ProbedGraphs) -> Option<Collector> {
        if !self.goes_on() {
            return None;
        }
        self.asked.set(self.asked.get() + 1);
        let left = self.end.saturating_duration_since(Instant::now());
        let left = left.min(self.one);
        let union = self.union || sight == ProbedGraphs::All;
        let options = self
            .options
            .clone()
            .with_timeout(left)
            .with_union_default(union);
        let mut collector = Collector::new(options.memory.clone()?);
        let ran = self.cancel_or(|| {
            let planned = self.db.plan_over(query, self.snapshot.clone(), &options)?;
            self.db.run_planned(&planned, &options, &mut collector)
        });
        match ran {
            Ok(_) => Some(collector),
            Err(e) => {
                if matches!(
                    e,
                    Error::Cancelled | Error::Damaged { .. } | Error::Shard { .. }
                ) {
                    *self.failed.borrow_mut() = Some(e);
                }
                None
            }
        }
    }

    fn cancel_or<T>(&self, run: impl FnOnce() -> crate::Result<T>) -> crate::Result<T> {
        if let Err(e @ Error::Cancelled) = self.cancel.check() {
            return Err(e);
        }
        run()
    }

    fn dataset(&self, sight: ProbedGraphs) -> Option<QueryDataset> {
        match sight {
            ProbedGraphs::Own => self.dataset.clone(),
            ProbedGraphs::All => None,
        }
    }

    /// True if a pattern has a solution; `None` if that is unknown because the limits were reached.
    pub(super) fn has(&self, pattern: &Arc<GraphPattern>, sight: ProbedGraphs) -> Option<bool> {
        let query = Query::Ask {
            dataset: self.dataset(sight),
            pattern: Arc::clone(pattern),
            base_iri: self.base.clone(),
        };
        match self.run(&query, sight)?.into_answer() {
            crate::Answer::Boolean(b) => Some(b),
            _ => None,
        }
    }

    /// True if a pattern has a solution over the union of these graphs; false also if that is unknown.
    pub(super) fn has_from(&self, pattern: &Arc<GraphPattern>, graphs: &[String]) -> bool {
        let default = graphs.iter().map(NamedNode::new_unchecked).collect();
        let query = Query::Ask {
            dataset: Some(QueryDataset {
                default,
                named: Some(Vec::new()),
            }),
            pattern: Arc::clone(pattern),
            base_iri: self.base.clone(),
        };
        let answer = self
            .run(&query, ProbedGraphs::Own)
            .map(Collector::into_answer);
        answer == Some(crate::Answer::Boolean(true))
    }

    /// Up to `most` distinct values of a variable; `None` if the limits were reached.
    pub(super) fn values(
        &self,
        pattern: &Arc<GraphPattern>,
        variable: &Variable,
        most: usize,
        sight: ProbedGraphs,
    ) -> Option<Vec<Term>> {
        let inner = GraphPattern::Project {
            inner: Arc::clone(pattern),
            variables: vec![variable.clone()],
        };
        let inner = GraphPattern::Distinct {
            inner: Arc::new(inner),
        };
        let pattern = GraphPattern::Slice {
            inner: Arc::new(inner),
            start: 0,
            length: Some(most),
        };
        let rows = self.rows(Arc::new(pattern), sight)?.into_iter();
        Some(
            rows.filter_map(|row| row.into_iter().next().flatten())
                .collect(),
        )
    }

    /// The rows of a pattern; `None` if the limits were reached.
    pub(super) fn rows(
        &self,
        pattern: Arc<GraphPattern>,
        sight: ProbedGraphs,
    ) -> Option<Vec<Vec<Option<Term>>>> {
        let query = Query::Select {
            dataset: self.dataset(sight),
            pattern,
            base_iri: self.base.clone(),
        };
        match self.run(&query, sight)?.into_answer() {
            crate::Answer::Solutions { rows, .. } => Some(rows),
            _ => None,
        }
    }

    /// The rows of a query given as text; empty if the limits were reached.
    pub(super) fn select(&self, text: &str, sight: ProbedGraphs) -> Vec<Vec<Option<Term>>> {
        match jindou_plan::parse(text) {
            Ok(query) => self
                .rows(Arc::clone(query.pattern()), sight)
                .unwrap_or_default(),
            Err(_) => Vec::new(),
        }
    }

    /// True if the dictionary has the term, even if no quad has it any longer.
    pub(super) fn knows(&self, t: &Term) -> bool {
        self.snapshot.lookup(&term::encode(t)).is_some()
    }
}

/// The pattern inside `GRAPH graph`; unchanged without a graph.
pub(super) fn within(
    pattern: Arc<GraphPattern>,
    graph: Option<&NamedNodePattern>,
) -> Arc<GraphPattern> {
    match graph {
        None => pattern,
        Some(name) => Arc::new(GraphPattern::Graph {
            name: name.clone(),
            inner: pattern,
        }),
    }
}
