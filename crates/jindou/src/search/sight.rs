//! The graph as labels and searches see it.

use super::LabelOptions;
use crate::default_graph::DefaultGraph;
use crate::{Database, Snapshot};
use jindou_graph::{Edges, Graph};
use jindou_model::{CancelToken, Direction, PredicateId, Result, VertexId, term};

/// Predicates of one resource, in each direction, that are looked at to see how often it is used.
const MOST_PREDICATES: usize = 32;
/// Classes of one resource that are looked at.
const MOST_CLASSES: usize = 64;

pub(super) struct LabelSight<'a> {
    pub snapshot: &'a Snapshot,
    pub graphs: DefaultGraph,
    /// Label properties that the data has, with their place in the list.
    pub labels: Vec<(usize, PredicateId)>,
    rdf_type: Option<PredicateId>,
    pub cancel: CancelToken,
}

/// The id of an IRI.
pub(crate) fn id_of(snapshot: &Snapshot, iri: &str) -> Option<VertexId> {
    let mut canonical = Vec::with_capacity(iri.len() + 1);
    term::push_iri(iri, &mut canonical);
    snapshot.lookup(&canonical)
}

impl<'a> LabelSight<'a> {
    pub fn new(
        snapshot: &'a Snapshot,
        options: &LabelOptions,
        cancel: CancelToken,
    ) -> Result<Self> {
        let union = Database::union_default(snapshot, &options.query);
        let dataset = match &options.query.dataset {
            Some(chosen) => Some(chosen.dataset()?),
            None => None,
        };
        let predicate = |iri: &str| Graph::predicate_of(snapshot, id_of(snapshot, iri)?);
        let labels = options.properties.iter().enumerate();
        Ok(Self {
            snapshot,
            graphs: DefaultGraph::for_query(snapshot, dataset.as_ref(), union),
            labels: labels
                .filter_map(|(i, iri)| Some((i, predicate(iri)?)))
                .collect(),
            rdf_type: predicate(oxrdf::vocab::rdf::TYPE.as_str()),
            cancel,
        })
    }

    pub fn edges(&self, p: PredicateId, direction: Direction) -> Edges<'a> {
        Graph::edges(self.snapshot, p, direction)
    }

    /// About how often a resource occurs, in all graphs; `None` if it does not in those that are read.
    pub fn uses(&self, v: u32, scratch: &mut Vec<u32>) -> Option<u64> {
        let (mut uses, mut is_seen) = (0u64, false);
        for direction in [Direction::In, Direction::Out] {
            let predicates = Graph::predicates_of(self.snapshot, v, direction);
            for (i, &p) in predicates.iter().enumerate() {
                if is_seen && i >= MOST_PREDICATES {
                    break;
                }
                let edges = self.edges(PredicateId(p), direction);
                is_seen = is_seen || !edges.read(v, self.graphs.scope(), scratch).is_empty();
                let each = edges
                    .default_degree(v)
                    .saturating_add(edges.named_degree(v));
                uses = uses.saturating_add(each);
            }
        }
        if !is_seen && let Some(p) = Graph::predicate_of(self.snapshot, VertexId(v)) {
            let out = self.edges(p, Direction::Out);
            is_seen = out.edge_estimate(self.graphs.scope()) > 0;
            uses = uses.saturating_add(out.edge_estimate(self.graphs.scope()));
        }
        is_seen.then_some(uses)
    }

    /// The smallest of a resource's classes.
    pub fn class(&self, v: u32, scratch: &mut Vec<u32>) -> Option<String> {
        let edges = self.edges(self.rdf_type?, Direction::Out);
        let instances = self.edges(self.rdf_type?, Direction::In);
        let classes = edges.read(v, self.graphs.scope(), scratch);
        let classes = classes.iter().take(MOST_CLASSES);
        let named = classes.filter_map(|&c| {
            let [own, named] = [instances.default_degree(c), instances.named_degree(c)];
            let size = own.saturating_add(named);
            Some((size, self.iri(c)?))
        });
        named.min().map(|(_, iri)| iri)
    }

    /// The IRI that a vertex is; `None` for other terms.
    pub fn iri(&self, v: u32) -> Option<String> {
        let mut canonical = Vec::new();
        if !self.snapshot.term(VertexId(v), &mut canonical) {
            return None;
        }
        match term::parts(&canonical)? {
            term::Parts::Iri(iri) => Some(iri.to_owned()),
            _ => None,
        }
    }
}
