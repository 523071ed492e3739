//! Cutting a graph into parts: who owns which vertex, and which triples a part holds so that everything near an owned vertex is in it.
//!
//! With *h* hops of replication (Huang, Abadi, Ren: Scalable SPARQL querying of large RDF graphs, VLDB '11, section 3) a part holds every triple
//! that is within *h* hops of a vertex it owns, in either direction. Two kinds of edges are not followed from object to subject, and are only
//! with their subject, since that would bring a large part of the graph everywhere: those of `rdf:type`, and those of predicates with an
//! object that very many subjects have. Literals are never followed. With 0 hops no edge is followed: a part holds the triples of the
//! subjects it owns, and no triple is in two parts.

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

/// Owner of literals: none.
pub const NOBODY: u8 = u8::MAX;

/// The graph of a snapshot by ids.
pub struct Graph<'a> {
    pub snapshot: &'a Snapshot,
    scope: GraphScope<'a>,
}

impl<'a> Graph<'a> {
    /// The default graph, as queries of this store see it.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a store that was changed since it was loaded.
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

    /// The ids of vertices are below this.
    pub fn ids(&self) -> usize {
        self.snapshot.vertices() as usize + 1
    }

    /// Predicates.
    pub fn predicates(&self) -> u32 {
        self.snapshot.predicate_count()
    }

    /// Every edge of a predicate once, as subject and object, by subject.
    pub fn edges(&self, predicate: u32, mut f: impl FnMut(u32, u32)) {
        let view = self.snapshot.edges(PredicateId(predicate), Direction::Out);
        let mut subjects = vec![];
        view.candidate_keys(self.scope, &mut subjects);
        for s in subjects {
            let mut last = 0;
            view.for_each(s, self.scope, |o, _| {
                // In several graphs it is one edge here.
                if o != last {
                    f(s, o);
                }
                last = o;
            });
        }
    }

    /// Triples.
    pub fn triples(&self) -> u64 {
        let mut n = 0;
        for p in 0..self.predicates() {
            self.edges(p, |_, _| n += 1);
        }
        n
    }

    /// Appends the canonical bytes of a vertex.
    pub fn term(&self, v: u32, out: &mut Vec<u8>) {
        self.snapshot.term(VertexId(v), out);
    }

    /// The IRI of a predicate.
    pub fn predicate_iri(&self, p: u32) -> String {
        let mut bytes = vec![];
        self.term(self.snapshot.vertex_of(PredicateId(p)).0, &mut bytes);
        String::from_utf8_lossy(bytes.get(1..).unwrap_or(&[])).into_owned()
    }

    /// Every IRI and blank node with its canonical bytes.
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

/// The owners of all vertices, and the predicates whose edges are with their subjects only.
pub struct Cut {
    pub hops: u32,
    /// The owner of each vertex by id; [`NOBODY`] for literals.
    pub owners: Vec<u8>,
    /// By number of predicate: edges are with their subject only.
    pub one_way: Vec<bool>,
    /// Edges between entities of different owners, one-way ones aside.
    pub cut: u64,
    /// Edges between entities, one-way ones aside.
    pub between: u64,
}

/// An object with more subjects than this part of all triples, and than [`FEW`], makes its predicate one-way.
const HUB: u64 = 100;
const FEW: u64 = 1000;

impl Cut {
    /// Decides who owns what. At most 64 workers.
    ///
    /// # Errors
    /// [`Error::Internal`] if METIS cannot do it.
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

    /// For each vertex a bit for each worker that has all triples within one hop of it.
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

    /// The workers that hold a triple, as bits.
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

/// Flags of the one-way predicates, and the number of triples that each vertex is the subject of.
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

/// Gives each group, heaviest first, to the worker that has least.
fn spread(mut groups: Vec<(u64, u32)>, workers: u32, mut give: impl FnMut(u32, u8)) {
    groups.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut loads = vec![0u64; workers as usize];
    for (weight, group) in groups {
        let least = (0..loads.len()).min_by_key(|&w| loads[w]).unwrap_or(0);
        loads[least] += weight.max(1);
        give(group, least as u8);
    }
}
