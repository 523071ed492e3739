//! Queries, and the operations of updates.

use super::pattern::{GraphPattern, GraphTarget, QueryDataset};
use super::term::{
    GraphName, GroundQuad, GroundQuadPattern, NamedNode, Quad, QuadPattern, TriplePattern,
};
use oxiri::Iri;
use std::sync::Arc;

/// An IRI against which relative IRIs are resolved.
pub type BaseIri = Iri<Arc<str>>;

/// A query. Cloning it shares the algebra.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// SELECT.
    Select {
        /// FROM, FROM NAMED.
        dataset: Option<QueryDataset>,
        /// The algebra.
        pattern: Arc<GraphPattern>,
        /// Base for `IRI()`.
        base_iri: Option<BaseIri>,
    },
    /// CONSTRUCT.
    Construct {
        /// The triples to create for each solution.
        template: Arc<[TriplePattern]>,
        /// FROM, FROM NAMED.
        dataset: Option<QueryDataset>,
        /// The algebra.
        pattern: Arc<GraphPattern>,
        /// Base for `IRI()`.
        base_iri: Option<BaseIri>,
    },
    /// DESCRIBE.
    Describe {
        /// FROM, FROM NAMED.
        dataset: Option<QueryDataset>,
        /// The algebra.
        pattern: Arc<GraphPattern>,
        /// Base for `IRI()`.
        base_iri: Option<BaseIri>,
    },
    /// ASK.
    Ask {
        /// FROM, FROM NAMED.
        dataset: Option<QueryDataset>,
        /// The algebra.
        pattern: Arc<GraphPattern>,
        /// Base for `IRI()`.
        base_iri: Option<BaseIri>,
    },
}

/// A field that every variant of `Query` has.
macro_rules! of_all {
    ($query:expr, $part:ident) => {
        match $query {
            Query::Select { $part, .. }
            | Query::Construct { $part, .. }
            | Query::Describe { $part, .. }
            | Query::Ask { $part, .. } => $part,
        }
    };
}

impl Query {
    /// The algebra.
    #[must_use]
    pub fn pattern(&self) -> &Arc<GraphPattern> {
        of_all!(self, pattern)
    }

    /// The algebra, mutable.
    pub fn pattern_mut(&mut self) -> &mut Arc<GraphPattern> {
        of_all!(self, pattern)
    }

    /// FROM and FROM NAMED; `None` if the query has neither.
    #[must_use]
    pub fn dataset(&self) -> Option<&QueryDataset> {
        of_all!(self, dataset).as_ref()
    }

    /// FROM and FROM NAMED, mutable.
    pub fn dataset_mut(&mut self) -> &mut Option<QueryDataset> {
        of_all!(self, dataset)
    }

    /// The base IRI.
    #[must_use]
    pub fn base_iri(&self) -> Option<&BaseIri> {
        of_all!(self, base_iri).as_ref()
    }
}

/// An operation of an update.
#[derive(Debug, PartialEq, Eq)]
pub enum GraphUpdateOperation {
    /// INSERT DATA.
    InsertData {
        /// Quads.
        data: Vec<Quad>,
    },
    /// DELETE DATA.
    DeleteData {
        /// Quads.
        data: Vec<GroundQuad>,
    },
    /// DELETE and INSERT by a pattern.
    DeleteInsert {
        /// Template of the quads to delete.
        delete: Vec<GroundQuadPattern>,
        /// Template of the quads to insert.
        insert: Vec<QuadPattern>,
        /// USING, USING NAMED.
        using: Option<QueryDataset>,
        /// The algebra.
        pattern: Arc<GraphPattern>,
    },
    /// LOAD.
    Load {
        /// True if a failure is not an error.
        silent: bool,
        /// The document.
        source: NamedNode,
        /// The graph.
        destination: GraphName,
    },
    /// CLEAR.
    Clear {
        /// True if a failure is not an error.
        silent: bool,
        /// The graphs.
        graph: GraphTarget,
    },
    /// CREATE.
    Create {
        /// True if an existing graph is not an error.
        silent: bool,
        /// The graph.
        graph: NamedNode,
    },
    /// DROP.
    Drop {
        /// True if a failure is not an error.
        silent: bool,
        /// The graphs.
        graph: GraphTarget,
    },
}
