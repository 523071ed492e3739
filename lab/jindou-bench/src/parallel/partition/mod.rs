//! Cuts a graph into parts: assigns an owner to each vertex, and decides which triples a part holds so that the
//! neighbourhood of each owned vertex is complete.
//!
//! With *h* hops of replication (Huang, Abadi, Ren: Scalable SPARQL querying of large RDF graphs, VLDB '11, section 3)
//! a part holds every triple within *h* hops of a vertex that it owns, in either direction. Two kinds of edges are
//! one-way: they are not followed from object to subject and are stored only with their subject, since following them
//! would copy a large part of the graph everywhere. These are the edges of `rdf:type`, and of predicates with an object
//! that very many subjects have. Literals are never followed. With 0 hops no edge is followed: a part holds the triples
//! of the subjects that it owns, and no triple is in two parts.

mod mincut;
mod star;

use crate::args::parallel::Partition;
use jindou::{Error, Result, VertexId};
use jindou_graph::segment::GraphScope;
use jindou_model::term::{BLANK, IRI};
use jindou_model::{Direction, PredicateId};
use jindou_store::Snapshot;
use oxrdf::vocab::rdf;
use xxhash_rust::xxh3::xxh3_64;

/// Owner of literals, which belong to no part.
pub const NOBODY: u8 = u8::MAX;

/// The graph of a snapshot by ids.
pub struct Graph<'a> {
    pub snapshot: &'a Snapshot,
    scope: GraphScope<'a>,
}

impl<'a> Graph<'a> {
    /// The default graph, as queries of this store see it.
    pub fn new(snapshot: &'a Snapshot) -> Result<Self> {
        if !snapshot.is_as_loaded() {
            return Err(Error::Unsupported(
                "partitions of a store with updates: `jindou recluster` it first".into(),
            ));
        }
        let scope = if snapshot.base().union_default() {
            GraphScope::Union
        } else {
            GraphScope::Default
        };
        Ok(Self { snapshot, scope })
    }

    /// Exclusive upper bound of the ids of vertices.
    pub fn ids(&self) -> usize {
        self.snapshot.vertices() as usize + 1
    }

    /// Number of predicates.
    pub fn predicates(&self) -> u32 {
        self.snapshot.predicate_count()
    }

    /// Calls `f` with subject and object of every edge of a predicate once, ordered by subject.
    pub fn edges(&self, predicate: u32, mut f: impl FnMut(u32, u32)) {
        let view = self.snapshot.edges(PredicateId(predicate), Direction::Out);
        let mut subjects = vec![];
        view.candidate_keys(self.scope, &mut subjects);
        for s in subjects {
            let mut last = 0;
            view.for_each(s, self.scope, |o, _| {
                // A triple in several named graphs is one edge.
                if o != last {
                    f(s, o);
                }
                last = o;
            });
        }
    }

    /// Number of distinct triples.
    pub fn triples(&self) -> u64 {
        let mut n = 0;
        for p in 0..self.predicates() {
            self.edges(p, |_, _| n += 1);
        }
        n
    }

    /// Appends the canonical bytes of the term of a vertex.
    pub fn term(&self, v: u32, out: &mut Vec<u8>) {
        self.snapshot.term(VertexId(v), out);
    }

    /// The IRI of a predicate.
    pub fn predicate_iri(&self, p: u32) -> String {
        let mut bytes = vec![];
        self.term(self.snapshot.vertex_of(PredicateId(p)).0, &mut bytes);
        String::from_utf8_lossy(bytes.get(1..).unwrap_or(&[])).into_owned()
    }

    /// Calls `f` with every IRI and blank node, and its canonical bytes.
    fn entities(&self, mut f: impl FnMut(u32, &[u8])) {
        let mut bytes = vec![];
        for v in 1..self.ids() as u32 {
            bytes.clear();
            self.term(v, &mut bytes);
            if matches!(bytes.first(), Some(&(IRI | BLANK))) {
                f(v, &bytes);
            }
        }
    }
}

/// The owners of all vertices, and the one-way predicates.
pub struct Cut {
    pub hops: u32,
    /// The owner of each vertex by id; [`NOBODY`] for literals.
    pub owners: Vec<u8>,
    /// For each predicate number, true if its edges are stored only with their subject.
    pub one_way: Vec<bool>,
    /// Number of edges between entities with different owners, without one-way predicates.
    pub cut: u64,
    /// Number of edges between entities, without one-way predicates.
    pub between: u64,
}

/// A predicate is one-way if an object has more subjects than a [`HUB`]th of all triples, and more than [`FEW`].
const HUB: u64 = 100;
const FEW: u64 = 1000;

impl Cut {
    /// Assigns owners for at most 64 workers.
    pub fn new(graph: &Graph<'_>, how: Partition, workers: u32, hops: u32) -> Result<Self> {
        let workers = workers.clamp(1, 64);
        let (one_way, weights) = look(graph);
        let mut owners = vec![NOBODY; graph.ids()];
        match how {
            Partition::Hash => graph.entities(|v, term| {
                owners[v as usize] = (xxh3_64(term) % u64::from(workers)) as u8;
            }),
            Partition::Star => star::owners(graph, &weights, workers, &mut owners),
            Partition::Mincut => {
                mincut::owners(graph, &weights, &one_way, workers, &mut owners)?;
            }
        }
        let (mut cut, mut between) = (0, 0);
        for p in (0..graph.predicates()).filter(|&p| !one_way[p as usize]) {
            graph.edges(p, |s, o| {
                let (a, b) = (owners[s as usize], owners[o as usize]);
                between += u64::from(b != NOBODY);
                cut += u64::from(b != NOBODY && a != b);
            });
        }
        let one_way = if hops == 0 {
            vec![true; one_way.len()]
        } else {
            one_way
        };
        Ok(Self {
            hops,
            owners,
            one_way,
            cut,
            between,
        })
    }

    /// For each vertex, a bit set of the workers that hold all triples within one hop of it.
    pub fn reach(&self, graph: &Graph<'_>) -> Vec<u64> {
        let mut masks: Vec<u64> = self
            .owners
            .iter()
            .map(|&w| if w == NOBODY { 0 } else { 1 << w })
            .collect();
        for _ in 1..self.hops.max(1) {
            let before = masks.clone();
            for p in (0..graph.predicates()).filter(|&p| !self.one_way[p as usize]) {
                graph.edges(p, |s, o| {
                    if self.owners[o as usize] != NOBODY {
                        masks[s as usize] |= before[o as usize];
                        masks[o as usize] |= before[s as usize];
                    }
                });
            }
        }
        masks
    }

    /// Bit set of the workers that hold a triple.
    #[inline]
    pub fn holders(&self, reach: &[u64], p: u32, s: u32, o: u32) -> u64 {
        let with_object = if self.one_way[p as usize] {
            0
        } else {
            reach[o as usize]
        };
        reach[s as usize] | with_object
    }
}

/// For each predicate, whether it is one-way; for each vertex, the number of triples of which it is the subject.
fn look(graph: &Graph<'_>) -> (Vec<bool>, Vec<u32>) {
    let most = (graph.snapshot.quads() / HUB).max(FEW);
    let mut weights = vec![0u32; graph.ids()];
    let mut degree = vec![0u32; graph.ids()];
    let mut one_way = vec![];
    for p in 0..graph.predicates() {
        degree.fill(0);
        graph.edges(p, |s, o| {
            weights[s as usize] += 1;
            degree[o as usize] += 1;
        });
        let hub = degree.iter().max().is_some_and(|&d| u64::from(d) > most);
        one_way.push(hub || graph.predicate_iri(p) == rdf::TYPE.as_str());
    }
    (one_way, weights)
}

/// Assigns each group, heaviest first, to the worker with the least weight so far.
fn spread(mut groups: Vec<(u64, u32)>, workers: u32, mut give: impl FnMut(u32, u8)) {
    groups.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut loads = vec![0u64; workers as usize];
    for (weight, group) in groups {
        let least = (0..loads.len()).min_by_key(|&w| loads[w]).unwrap_or(0);
        loads[least] += weight.max(1);
        give(group, least as u8);
    }
}
