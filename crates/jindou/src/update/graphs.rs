//! The quads of whole graphs: CLEAR, DROP, and tests for existence. A graph is read through its index vertex, so that
//! other graphs are not read.

use super::transaction::Transaction;
use jindou_graph::segment::GraphScope;
use jindou_model::{DEFAULT_GRAPH, Direction, PredicateId, Result};
use jindou_plan::sparql::{Canonical, GraphTarget, NamedNode};
use jindou_store::{ChangeTerm, Snapshot};

/// Number of changes between two checks of the deadline and the memory budget.
const CHECK_EVERY: usize = 1 << 12;
/// Number of subjects whose edges are fetched from other shards at a time.
const PAGE: usize = 1 << 13;

/// The graphs to which an operation applies.
#[derive(Clone, Debug)]
pub(super) enum TargetGraphs {
    Default,
    Named(Canonical),
    AllNamed,
    All,
}

impl TargetGraphs {
    pub(super) fn named(name: &NamedNode) -> Self {
        Self::Named(name.canonical())
    }
}

impl From<&GraphTarget> for TargetGraphs {
    fn from(target: &GraphTarget) -> Self {
        match target {
            GraphTarget::NamedNode(n) => Self::named(n),
            GraphTarget::DefaultGraph => Self::Default,
            GraphTarget::NamedGraphs => Self::AllNamed,
            GraphTarget::AllGraphs => Self::All,
        }
    }
}

/// Removes all quads of the target graphs. O(removed quads); for all graphs or the default graph also O(keys of all
/// predicates).
pub(super) fn clear(tx: &mut Transaction, target: &TargetGraphs) -> Result<()> {
    let snapshot = tx.current()?;
    let mut keys = Vec::new();
    let scope = match target {
        TargetGraphs::Default => GraphScope::Default,
        TargetGraphs::AllNamed => GraphScope::AnyNamed,
        TargetGraphs::All => GraphScope::Union,
        TargetGraphs::Named(name) => {
            let Some(graph) = snapshot.lookup(name) else {
                return Ok(());
            };
            for p in snapshot.graph_predicates(graph.0) {
                snapshot.graph_subjects(graph.0, PredicateId(p), &mut keys);
                remove(
                    tx,
                    &snapshot,
                    PredicateId(p),
                    &keys,
                    GraphScope::Named(graph.0),
                )?;
            }
            return Ok(());
        }
    };
    for p in (0..snapshot.predicate_count()).map(PredicateId) {
        keys.clear();
        snapshot
            .edges(p, Direction::Out)
            .candidate_keys(scope, &mut keys);
        remove(tx, &snapshot, p, &keys, scope)?;
    }
    Ok(())
}

fn remove(
    tx: &mut Transaction,
    snapshot: &Snapshot,
    predicate: PredicateId,
    subjects: &[u32],
    scope: GraphScope<'_>,
) -> Result<()> {
    let edges = snapshot.edges(predicate, Direction::Out);
    let p = ChangeTerm::Id(snapshot.vertex_of(predicate).0);
    let mut next = tx.changes.len() + CHECK_EVERY;
    for (i, &s) in subjects.iter().enumerate() {
        if i.is_multiple_of(PAGE) {
            let page = subjects[i..].iter().take(PAGE);
            edges.fetch(page.map(|&s| (s, scope)));
        }
        edges.for_each(s, scope, |o, graph| {
            let graph = (graph != DEFAULT_GRAPH).then_some(ChangeTerm::Id(graph));
            tx.changes
                .remove(ChangeTerm::Id(s), p, ChangeTerm::Id(o), graph);
        });
        if tx.changes.len() >= next {
            tx.check()?;
            next = tx.changes.len() + CHECK_EVERY;
        }
    }
    Ok(())
}

/// True if a graph has a quad. [`TargetGraphs::All`] always exists. At worst O(subjects of the graph), like
/// [`Snapshot::has_graph`].
pub(super) fn graph_exists(snapshot: &Snapshot, target: &TargetGraphs) -> bool {
    match target {
        TargetGraphs::Default => {
            let mut keys = Vec::new();
            (0..snapshot.predicate_count()).map(PredicateId).any(|p| {
                keys.clear();
                let edges = snapshot.edges(p, Direction::Out);
                edges.candidate_keys(GraphScope::Default, &mut keys);
                edges.any_has_edges(&keys, GraphScope::Default)
            })
        }
        TargetGraphs::Named(name) => {
            let graph = snapshot.lookup(name);
            graph.is_some_and(|graph| snapshot.has_graph(graph.0))
        }
        TargetGraphs::AllNamed | TargetGraphs::All => true,
    }
}
