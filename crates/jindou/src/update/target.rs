//! Requests that may change one graph only (SPARQL 1.1 Graph Store HTTP Protocol, PATCH).

use super::graphs::TargetGraphs;
use jindou_model::{Error, Result};
use jindou_plan::UpdateRequest;
use jindou_plan::sparql::{
    GraphName as Name, GraphNamePattern, GraphTarget, GraphUpdateOperation as Op, NamedNode,
    QueryDataset,
};

/// One graph of the database.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum GraphName {
    /// The default graph.
    Default,
    /// The graph with this IRI.
    Named(String),
}

impl GraphName {
    /// # Errors
    /// [`Error::Query`] if the name is not an IRI.
    pub(super) fn target(&self) -> Result<TargetGraphs> {
        Ok(match self.node()? {
            None => TargetGraphs::Default,
            Some(name) => TargetGraphs::named(&name),
        })
    }

    /// # Errors
    /// As [`Self::target`].
    #[cfg(feature = "replicas")]
    pub(crate) fn check(&self) -> Result<()> {
        self.node().map(drop)
    }

    fn node(&self) -> Result<Option<NamedNode>> {
        match self {
            Self::Default => Ok(None),
            Self::Named(iri) => oxrdf::NamedNode::new(iri)
                .map(|n| Some(n.into()))
                .map_err(|e| Error::Query(format!("the graph <{iri}> is not an IRI: {e}"))),
        }
    }
}

/// Replaces the default graph by this one, if it is a named graph. Returns true.
fn rename<G: From<NamedNode>>(graph: &mut G, node: Option<&NamedNode>) -> bool {
    if let Some(node) = node {
        *graph = node.clone().into();
    }
    true
}

/// Replaces references to the default graph in the request by `only`.
///
/// # Errors
/// [`Error::Conflict`] for an operation that could change another graph, with the operation's position.
pub(super) fn restrict(request: &mut UpdateRequest, only: &GraphName) -> Result<()> {
    let node = only.node()?;
    for operation in &mut request.operations {
        let (line, column) = operation.at;
        let refused = || {
            Error::Conflict(format!(
                "line {line}, column {column}: the operation could change a graph other than the one the request was sent to"
            ))
        };
        if operation.whole_graph {
            return Err(refused());
        }
        let is_own = |g: &NamedNode| Some(g) == node.as_ref();
        let name = |g: &mut Name| match g {
            Name::DefaultGraph => rename(g, node.as_ref()),
            Name::NamedNode(n) => is_own(n),
        };
        let pattern = |g: &mut GraphNamePattern| match g {
            GraphNamePattern::DefaultGraph => rename(g, node.as_ref()),
            GraphNamePattern::NamedNode(n) => is_own(n),
            GraphNamePattern::Variable(_) => false,
        };
        let target = |g: &mut GraphTarget| match g {
            GraphTarget::DefaultGraph => rename(g, node.as_ref()),
            GraphTarget::NamedNode(n) => is_own(n),
            GraphTarget::NamedGraphs | GraphTarget::AllGraphs => false,
        };
        let stays = match &mut operation.operation {
            Op::InsertData { data } => data.iter_mut().all(|q| name(&mut q.graph_name)),
            Op::DeleteData { data } => data.iter_mut().all(|q| name(&mut q.graph_name)),
            Op::DeleteInsert {
                delete,
                insert,
                using,
                ..
            } => {
                if using.is_none()
                    && let Some(n) = &node
                {
                    *using = Some(QueryDataset {
                        default: vec![n.clone()],
                        named: None,
                    });
                }
                delete.iter_mut().all(|q| pattern(&mut q.graph_name))
                    && insert.iter_mut().all(|q| pattern(&mut q.graph_name))
            }
            Op::Load { destination, .. } => name(destination),
            Op::Clear { graph, .. } | Op::Drop { graph, .. } => target(graph),
            Op::Create { graph, .. } => is_own(graph),
        };
        if !stays {
            return Err(refused());
        }
    }
    Ok(())
}
