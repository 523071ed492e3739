//! The data that labels and searches read: graphs, label properties and edges.

use super::{LONGEST_IRI, LabelOptions};
use crate::Snapshot;
use crate::default_graph::DefaultGraph;
use jindou_cluster::shards::uses_of;
use jindou_graph::{Edges, Graph};
use jindou_model::{CancelToken, Direction, NO_VERTEX, PredicateId, Result, VertexId, term};
use std::borrow::Cow;
use std::time::Instant;

/// Largest number of classes of one resource that are examined.
const MOST_CLASSES: usize = 64;

pub(super) struct LabelGraph<'a> {
    pub snapshot: &'a Snapshot,
    pub graphs: DefaultGraph,
    /// Label properties that occur in the data, each with its rank in the options' list (0 is the best).
    pub labels: Vec<(usize, PredicateId)>,
    rdf_type: Option<PredicateId>,
    pub cancel: CancelToken,
}

fn canonical(iri: &str) -> Vec<u8> {
    let mut canonical = Vec::with_capacity(iri.len() + 1);
    term::push_iri(iri, &mut canonical);
    canonical
}

pub(super) fn id_of(snapshot: &Snapshot, iri: &str) -> Option<VertexId> {
    snapshot.lookup(&canonical(iri))
}

/// Looks up IRIs; in a sharded store, in one round trip.
pub(super) fn lookup_many<'i>(
    snapshot: &Snapshot,
    iris: impl Iterator<Item = &'i str>,
) -> Vec<u32> {
    let canonical: Vec<Vec<u8>> = iris.map(canonical).collect();
    let terms: Vec<&[u8]> = canonical.iter().map(Vec::as_slice).collect();
    let mut ids = Vec::new();
    Graph::vocabulary(snapshot).lookup_many(&terms, &mut ids);
    ids
}

/// The ids of IRIs (`None` for unknown ones); in a sharded store, in one round trip.
pub(crate) fn ids_of<'i>(
    snapshot: &Snapshot,
    iris: impl Iterator<Item = &'i str>,
) -> Vec<Option<u32>> {
    let known = |id: u32| (id != NO_VERTEX && id != 0).then_some(id);
    lookup_many(snapshot, iris).into_iter().map(known).collect()
}

/// The predicate with this IRI. Sends no requests, since each shard has the terms of all predicates.
pub(super) fn predicate_of(snapshot: &Snapshot, iri: &str) -> Option<PredicateId> {
    let id = match snapshot.base().own_data() {
        None => id_of(snapshot, iri)?.0,
        Some(own) => {
            let mut found = Vec::with_capacity(1);
            own.lookup(&[canonical(iri).as_slice()], &mut found);
            found.pop()?
        }
    };
    Graph::predicate_of(snapshot, VertexId(id))
}

impl<'a> LabelGraph<'a> {
    pub fn new(
        snapshot: &'a Snapshot,
        options: &LabelOptions,
        cancel: CancelToken,
    ) -> Result<Self> {
        let union = options.query.union_default.unwrap_or(true);
        let dataset = match &options.query.dataset {
            Some(chosen) => Some(chosen.dataset()?),
            None => None,
        };
        let predicate = |iri: &str| predicate_of(snapshot, iri);
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

    /// True if there were no updates since the load, so that the numbers of occurrences that shards return are exact.
    pub fn is_as_loaded(&self) -> bool {
        Graph::is_as_loaded(self.snapshot)
    }

    /// The vertices that have the term as their label. `of_base` are those that another shard found in its base; they
    /// are the result if no update has changed this term's edges.
    pub fn labelled<'s>(&self, term: u32, of_base: &'s [u32]) -> Cow<'s, [u32]> {
        let edges = |&(_, p): &(usize, PredicateId)| self.edges(p, Direction::In);
        let is_edited = |edges: Edges<'_>| edges.patch().is_some_and(|p| p.is_dirty(term));
        if !self.labels.iter().map(edges).any(is_edited) {
            return Cow::Borrowed(of_base);
        }
        let (mut all, mut scratch) = (Vec::new(), Vec::new());
        for edges in self.labels.iter().map(edges) {
            all.extend_from_slice(edges.read(term, self.graphs.scope(), &mut scratch));
        }
        all.sort_unstable();
        all.dedup();
        Cow::Owned(all)
    }

    /// Approximate number of occurrences of a resource in all graphs; `None` if it does not occur in the graphs that
    /// are read.
    pub fn uses(&self, v: u32, scratch: &mut Vec<u32>) -> Option<u64> {
        let scope = self.graphs.scope();
        if let Some(sharded) = self.snapshot.as_sharded()
            && self.is_as_loaded()
        {
            return sharded.others().uses(&[v], scope).pop().flatten();
        }
        let of = |direction| Graph::predicates_of(self.snapshot, v, direction);
        let (into, out) = (of(Direction::In), of(Direction::Out));
        let predicates = [(Direction::In, &*into), (Direction::Out, &*out)];
        let edges = |p, direction, is_seen| {
            let edges = self.edges(p, direction);
            let seen = is_seen || !edges.read(v, scope, scratch).is_empty();
            let each = edges.default_degree(v);
            (seen, each.saturating_add(edges.named_degree(v)))
        };
        let as_predicate = || {
            let p = Graph::predicate_of(self.snapshot, VertexId(v));
            p.map_or(0, |p| self.edges(p, Direction::Out).edge_estimate(scope))
        };
        uses_of(predicates, edges, as_predicate)
    }

    /// As [`Self::uses`] for many resources; 0 for those that do not occur. The first `first` resources are always
    /// counted, the others only until `end`.
    pub fn uses_of_many(&self, ids: &[u32], first: usize, end: Instant) -> Vec<u64> {
        let mut all = Vec::with_capacity(ids.len());
        if let Some(sharded) = self.snapshot.as_sharded()
            && self.is_as_loaded()
        {
            for part in ids.chunks(first.max(1)) {
                if !all.is_empty() && Instant::now() >= end {
                    break;
                }
                let part = sharded.others().uses(part, self.graphs.scope());
                all.extend(part.into_iter().map(Option::unwrap_or_default));
            }
        } else {
            let mut scratch = Vec::new();
            for (i, &id) in ids.iter().enumerate() {
                if i >= first && Instant::now() >= end {
                    break;
                }
                all.push(self.uses(id, &mut scratch).unwrap_or_default());
            }
        }
        all.resize(ids.len(), 0);
        all
    }

    /// Fetches the terms of vertices from other shards, in one round trip.
    pub fn fetch_terms(&self, ids: &[u32]) {
        if let Some(sharded) = self.snapshot.as_sharded() {
            sharded.fetch_terms(ids.iter().copied());
        }
    }

    /// Fetches the data that [`Self::class`] will read for these vertices from other shards, in a few round trips.
    pub fn fetch_classes(&self, ids: &[u32]) {
        let (Some(sharded), Some(p)) = (self.snapshot.as_sharded(), self.rdf_type) else {
            return;
        };
        let scope = self.graphs.scope();
        let edges = self.edges(p, Direction::Out);
        edges.fetch(ids.iter().map(|&id| (id, scope)));
        let (mut classes, mut scratch) = (Vec::new(), Vec::new());
        for &id in ids {
            let some = edges.read(id, scope, &mut scratch);
            classes.extend(some.iter().take(MOST_CLASSES));
        }
        classes.sort_unstable();
        classes.dedup();
        self.edges(p, Direction::In).fetch_degrees(&classes);
        sharded.fetch_terms(classes.into_iter());
    }

    /// Fetches the labels of vertices from other shards, in two round trips. Of each property, at most `most_each`
    /// labels per vertex are fetched.
    pub fn fetch_labels(&self, ids: &[u32], most_each: usize) {
        let Some(sharded) = self.snapshot.as_sharded() else {
            return;
        };
        let scope = self.graphs.scope();
        let out = Direction::Out;
        let of = |&(_, p): &(usize, PredicateId)| ids.iter().map(move |&id| (p, out, id, scope));
        sharded.fetch(self.labels.iter().flat_map(of));
        let (mut objects, mut scratch) = (Vec::new(), Vec::new());
        for &(_, p) in &self.labels {
            let edges = self.edges(p, out);
            for &id in ids {
                let some = edges.read(id, scope, &mut scratch);
                objects.extend(some.iter().take(most_each));
            }
        }
        sharded.fetch_terms(objects.into_iter());
    }

    /// The class with the fewest instances among a resource's classes.
    pub fn class(&self, v: u32, scratch: &mut Vec<u32>) -> Option<String> {
        let edges = self.edges(self.rdf_type?, Direction::Out);
        let instances = self.edges(self.rdf_type?, Direction::In);
        let classes = edges.read(v, self.graphs.scope(), scratch);
        let classes = classes.iter().take(MOST_CLASSES);
        let mut smallest: Option<(u64, String)> = None;
        for &c in classes {
            let [own, named] = [instances.default_degree(c), instances.named_degree(c)];
            let size = own.saturating_add(named);
            if smallest.as_ref().is_some_and(|s| s.0 < size) {
                continue;
            }
            let named = self.iri(c).filter(|iri| iri.len() <= LONGEST_IRI);
            let found = named.map(|iri| (size, iri));
            if found.is_some() && (smallest.is_none() || found < smallest) {
                smallest = found;
            }
        }
        smallest.map(|(_, iri)| iri)
    }

    /// The IRI of a vertex; `None` for a literal or blank node.
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
