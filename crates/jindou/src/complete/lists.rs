//! The predicates and classes of a snapshot with their names, decoded once.

use super::data::LONGEST_TERM;
use crate::{Database, Snapshot};
use jindou_graph::{Graph, Identity};
use jindou_model::{PredicateId, VertexId, term};
use rustc_hash::FxHashMap;

/// A name and the number of its occurrences.
#[derive(Clone, Debug)]
pub(crate) struct NameCount {
    pub iri: String,
    pub count: u64,
}

/// The names of a snapshot's predicates, classes and graphs; each list is sorted by descending frequency.
pub(crate) struct NameLists {
    identity: Identity,
    pub predicates: Vec<NameCount>,
    pub classes: Vec<NameCount>,
    pub graphs: Vec<String>,
    /// IRI of each predicate by its dense id.
    pub by_id: FxHashMap<u32, String>,
    /// True if a named graph has a quad.
    pub has_named: bool,
}

/// Largest number of named graphs that are offered. More would not help, and decoding them would take too long.
const GRAPHS: usize = 1000;

impl NameLists {
    /// Decodes the names of a snapshot's predicates, classes and graphs. O(predicates + classes + characteristic sets).
    pub(crate) fn from_snapshot(snapshot: &Snapshot, db: &Database) -> Self {
        let summary = db.summary();
        let counted = |list: Vec<(String, u64)>| {
            let named = list.into_iter();
            let named = named.filter(|c| c.1 > 0 && c.0.len() <= LONGEST_TERM);
            named.map(|(iri, count)| NameCount { iri, count }).collect()
        };
        let by_id = (0..snapshot.predicate_count())
            .filter_map(|p| {
                let v = Graph::vertex_of(snapshot, PredicateId(p));
                Some((p, iri(snapshot, v)?))
            })
            .collect();
        let graphs = Graph::named_graphs(snapshot);
        Self {
            identity: Graph::identity(snapshot),
            predicates: counted(summary.predicates),
            classes: counted(summary.classes),
            has_named: !graphs.is_empty(),
            graphs: graphs
                .iter()
                .take(GRAPHS)
                .filter_map(|g| iri(snapshot, VertexId(*g)))
                .collect(),
            by_id,
        }
    }

    pub(crate) fn is_of(&self, snapshot: &Snapshot) -> bool {
        self.identity == Graph::identity(snapshot)
    }
}

fn iri(graph: &dyn Graph, v: VertexId) -> Option<String> {
    let mut bytes = Vec::new();
    if !graph.term(v, &mut bytes) || bytes.len() > LONGEST_TERM {
        return None;
    }
    match term::decode(&bytes) {
        Some(oxrdf::Term::NamedNode(n)) => Some(n.into_string()),
        _ => None,
    }
}
