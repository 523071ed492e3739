//! The edges of a vertex in the query's default graph, which DESCRIBE reads in addition to running its plan.

use jindou_graph::Graph;
use jindou_graph::segment::GraphScope;
use jindou_model::{Direction, PredicateId, Result};
use jindou_plan::sparql::QueryDataset;

/// The graphs that a query's default graph merges.
#[derive(Clone, Debug)]
pub(crate) enum DefaultGraph {
    /// The store's default graph.
    Own,
    /// The union of all graphs.
    Union,
    /// The union of the graphs named by `FROM`, given by their ids in ascending order.
    Set(Vec<u32>),
}

impl DefaultGraph {
    /// The graphs of the query's `FROM`. Without `FROM`, or with an empty IRI in it: the union of all graphs if `union`
    /// is set, otherwise the store's default graph. Graphs that the store does not contain count as empty.
    pub fn for_query(
        snapshot: &dyn Graph,
        from: Option<&QueryDataset>,
        union_default: bool,
    ) -> Self {
        let named = from.filter(|d| !d.default.iter().any(|n| n.as_str().is_empty()));
        match named {
            Some(d) => {
                let mut ids: Vec<u32> = d
                    .default
                    .iter()
                    .filter_map(|n| snapshot.lookup(&n.canonical()))
                    .map(|v| v.0)
                    .collect();
                ids.sort_unstable();
                ids.dedup();
                Self::Set(ids)
            }
            None if union_default => Self::Union,
            None => Self::Own,
        }
    }

    pub(crate) fn scope(&self) -> GraphScope<'_> {
        match self {
            Self::Own => GraphScope::Default,
            Self::Union => GraphScope::Union,
            Self::Set(ids) => GraphScope::Set(ids),
        }
    }

    /// Calls `each` with the predicate and object of each edge of a subject, without duplicates. O(edges).
    pub fn for_each_edge(
        &self,
        snapshot: &dyn Graph,
        subject: u32,
        mut each: impl FnMut(u32, u32) -> Result<()>,
    ) -> Result<()> {
        let mut scratch = vec![];
        for &p in snapshot.predicates_of(subject, Direction::Out).iter() {
            let p = PredicateId(p);
            let predicate = snapshot.vertex_of(p).0;
            let edges = snapshot.edges(p, Direction::Out);
            for &object in edges.read(subject, self.scope(), &mut scratch) {
                each(predicate, object)?;
            }
        }
        Ok(())
    }
}
