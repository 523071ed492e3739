//! A graph that was not loaded from files: quads in ordinary memory, terms behind a source that answers requests in
//! batches, ids without an order, no value ranks. It tests that planner and engine rely only on what `Graph` promises.

use jindou_graph::segment::{EdgeView, Packing, Segment, SegmentArrays, SegmentBuilder};
use jindou_graph::sets::{CharacteristicSets, SetRun};
use jindou_graph::statistics::{PlannerSet, PredicateStatistics, Statistics};
use jindou_graph::{Edges, Graph, Identity, ObjectTerms, Predicates, TermSource, Vocabulary};
use jindou_model::{Direction, PredicateId, VertexId, term};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Subject, dense predicate, object, graph.
type IdQuad = [u32; 4];

pub struct HeapGraph {
    terms: SlowTerms,
    /// Vertex id of each predicate.
    predicates: Vec<u32>,
    numbers: FxHashMap<u32, u32>,
    quads: BTreeSet<IdQuad>,
    /// For each predicate and direction: the segment of the default graph, and that of the named graphs.
    segments: Vec<[[SegmentArrays; 2]; 2]>,
    packing: Packing,
    graphs: Vec<u32>,
    runs: Vec<SetRun>,
    set_offsets: Vec<u32>,
    set_predicates: Vec<u32>,
    classes: FxHashMap<u32, Vec<[u32; 2]>>,
    statistics: Statistics,
}

/// A source of terms as another process could be, with a count of requests.
struct SlowTerms {
    /// Canonical bytes by id, beginning with id 1.
    terms: Vec<Vec<u8>>,
    ids: FxHashMap<Vec<u8>, u32>,
    requests: AtomicUsize,
}

impl TermSource for SlowTerms {
    fn lookup_many(&self, terms: &[&[u8]], out: &mut Vec<u32>) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        out.extend(terms.iter().map(|t| self.ids.get(*t).copied().unwrap_or(0)));
    }

    fn prefetch(&self, _ids: &[u32]) {}

    fn terms_many(&self, ids: &[u32], take: &mut dyn FnMut(usize, &[u8])) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        // In reverse order, since answers may come in any order.
        for (at, &id) in ids.iter().enumerate().rev() {
            if let Some(t) = (id as usize).checked_sub(1).and_then(|i| self.terms.get(i)) {
                take(at, t);
            }
        }
    }
}

fn longest<'a>(keys: impl Iterator<Item = &'a u32>) -> u32 {
    let mut counts = BTreeMap::new();
    for key in keys {
        *counts.entry(*key).or_insert(0) += 1;
    }
    counts.values().copied().max().unwrap_or(0)
}

fn distinct(keys: impl Iterator<Item = u32>) -> u32 {
    keys.collect::<BTreeSet<_>>().len() as u32
}

impl HeapGraph {
    /// Builds a graph from quads as canonical bytes; the graph is empty for the default graph.
    pub fn new<'q>(quads: impl IntoIterator<Item = &'q [Vec<u8>; 4]>) -> Self {
        let quads: Vec<&[Vec<u8>; 4]> = quads.into_iter().collect();
        let all: BTreeSet<&Vec<u8>> = quads.iter().flat_map(|q| q.iter()).collect();
        let mut terms: Vec<Vec<u8>> = all.into_iter().filter(|t| !t.is_empty()).cloned().collect();
        terms.sort_by_key(|t| xxhash_rust::xxh3::xxh3_64(t));
        let ids: FxHashMap<Vec<u8>, u32> = terms.iter().cloned().zip(1..).collect();
        let id = |t: &Vec<u8>| ids.get(t).copied().unwrap_or(0);
        let mut predicates: Vec<u32> = vec![];
        let mut numbers = FxHashMap::default();
        let mut own: BTreeSet<IdQuad> = BTreeSet::new();
        for q in &quads {
            let p = *numbers.entry(id(&q[1])).or_insert_with(|| {
                predicates.push(id(&q[1]));
                predicates.len() as u32 - 1
            });
            own.insert([id(&q[0]), p, id(&q[2]), id(&q[3])]);
        }
        let graphs: BTreeSet<u32> = own.iter().map(|q| q[3]).filter(|&g| g != 0).collect();
        let graphs: Vec<u32> = graphs.into_iter().collect();
        let packing = Packing::new(terms.len() as u32, graphs.clone());
        let segments = (0..predicates.len() as u32)
            .map(|p| [0, 2].map(|key| segments(&own, p, key, &packing)))
            .collect();
        let rdf_type = numbers.get(&id(&term::rdf_type())).copied();
        let mut it = Self {
            terms: SlowTerms {
                terms,
                ids,
                requests: AtomicUsize::new(0),
            },
            predicates,
            numbers,
            quads: own,
            segments,
            packing,
            graphs,
            runs: vec![],
            set_offsets: vec![0],
            set_predicates: vec![],
            classes: FxHashMap::default(),
            statistics: Statistics {
                rdf_type,
                ..Statistics::default()
            },
        };
        it.know_sets();
        it.count();
        it
    }

    /// Sets the characteristic sets: each vertex is a run of its own with two sets, as if there were no clustering at
    /// all.
    fn know_sets(&mut self) {
        for v in 1..=self.terms.terms.len() as u32 {
            let mut set = |at: usize| {
                let has = self.quads.iter().filter(|q| q[at] == v).map(|q| q[1]);
                let has: BTreeSet<u32> = has.collect();
                self.set_predicates.extend(has);
                self.set_offsets.push(self.set_predicates.len() as u32);
                self.set_offsets.len() as u32 - 2
            };
            let (out_set, in_set) = (set(0), set(2));
            self.runs.push(SetRun {
                start: v,
                out_set,
                in_set,
            });
        }
    }

    fn count(&mut self) {
        let s = &mut self.statistics;
        s.vertices = self.terms.terms.len() as u32;
        s.quads = self.quads.len() as u64;
        for (p, &vertex) in (0..).zip(&self.predicates) {
            let all: Vec<&IdQuad> = self.quads.iter().filter(|q| q[1] == p).collect();
            let (named, default): (Vec<&IdQuad>, Vec<&IdQuad>) =
                all.iter().partition(|q| q[3] != 0);
            let counted = if default.is_empty() { &named } else { &default };
            s.predicates.push(PredicateStatistics {
                vertex,
                edges: default.len() as u64,
                named_edges: named.len() as u64,
                subjects: distinct(counted.iter().map(|q| q[0])),
                objects: distinct(counted.iter().map(|q| q[2])),
                max_out: longest(all.iter().map(|q| &q[0])),
                max_in: longest(all.iter().map(|q| &q[2])),
            });
        }
        let mut members: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for q in self.quads.iter().filter(|q| Some(q[1]) == s.rdf_type) {
            members.entry(q[2]).or_default().insert(q[0]);
        }
        for (&class, instances) in &members {
            s.classes.insert(class, instances.len() as u64);
            let mut runs: Vec<[u32; 2]> = vec![];
            for &v in instances {
                match runs.last_mut() {
                    Some(last) if last[1] == v => last[1] += 1,
                    _ => runs.push([v, v + 1]),
                }
            }
            self.classes.insert(class, runs);
        }
        let mut sets: BTreeMap<(Vec<u32>, Vec<u32>), PlannerSet> = BTreeMap::new();
        for v in self.quads.iter().map(|q| q[0]).collect::<BTreeSet<_>>() {
            let classes = members.iter().filter(|m| m.1.contains(&v));
            let classes: Vec<u32> = classes.map(|m| *m.0).collect();
            let own = self.quads.iter().filter(|q| q[0] == v);
            let edges: BTreeSet<(u32, u32)> = own.map(|q| (q[1], q[2])).collect();
            let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
            for e in edges {
                *counts.entry(e.0).or_default() += 1;
            }
            let key = (classes, counts.keys().copied().collect());
            let set = sets.entry(key.clone()).or_default();
            set.subjects += 1;
            if set.subjects == 1 {
                set.classes = key.0.iter().map(|&c| (c, 0)).collect();
                set.predicates = key.1.iter().map(|&p| (p, 0, 0)).collect();
            }
            set.classes.iter_mut().for_each(|c| c.1 += 1);
            for p in &mut set.predicates {
                p.1 += 1;
                p.2 += counts.get(&p.0).copied().unwrap_or(0);
            }
        }
        s.sets = sets.into_values().collect();
        s.index();
    }
}

/// The segments of a predicate for the default graph and for the named graphs; keys are at position `key` of a quad.
fn segments(quads: &BTreeSet<IdQuad>, p: u32, key: usize, packing: &Packing) -> [SegmentArrays; 2] {
    let mut edges: Vec<[u32; 3]> = quads
        .iter()
        .filter(|q| q[1] == p)
        .map(|q| [q[key], q[2 - key], q[3]])
        .collect();
    edges.sort_unstable();
    let mut both = [SegmentBuilder::new(false), SegmentBuilder::new(true)];
    for [k, n, g] in edges {
        both[usize::from(g != 0)].push(k, n, g);
    }
    let [default, named] = both;
    [
        default.finish().unwrap(),
        named.finish_named(packing).unwrap(),
    ]
}

impl Graph for HeapGraph {
    fn identity(&self) -> Identity {
        Identity {
            epoch: 0x4845_4150,
            version: 7,
            shape: 7,
        }
    }

    fn is_as_loaded(&self) -> bool {
        true
    }

    fn predicate_count(&self) -> u32 {
        self.predicates.len() as u32
    }

    fn vertex_of(&self, p: PredicateId) -> VertexId {
        VertexId(self.predicates.get(p.0 as usize).copied().unwrap_or(0))
    }

    fn edges(&self, p: PredicateId, direction: Direction) -> Edges<'_> {
        let Some(both) = self.segments.get(p.0 as usize) else {
            let named = jindou_graph::segment::NamedSegment::EMPTY;
            return EdgeView::new(Segment::EMPTY, named, None).into();
        };
        let [default, named] = &both[direction as usize];
        let named = named.named_view(&self.packing, &self.graphs);
        EdgeView::new(default.view(), named, None).into()
    }

    fn generation_of(&self, _: PredicateId) -> u32 {
        0
    }

    fn predicates(&self) -> Predicates<'_> {
        let sets = CharacteristicSets {
            runs: &self.runs,
            offsets: &self.set_offsets,
            predicates: &self.set_predicates,
        };
        Predicates::new(&self.numbers, sets, self.statistics.vertices)
    }

    fn class_intervals(&self, class: VertexId) -> Option<&[[u32; 2]]> {
        self.classes.get(&class.0).map(Vec::as_slice)
    }

    fn object_terms(&self, p: PredicateId) -> ObjectTerms {
        let objects = self.quads.iter().filter(|q| q[1] == p.0).map(|q| q[2]);
        let kinds = objects.map(|o| match self.terms.terms[o as usize - 1].first() {
            Some(&(term::IRI | term::BLANK)) => ObjectTerms::Resources,
            Some(&(term::STRING | term::LANG)) => ObjectTerms::Texts,
            _ => ObjectTerms::Any,
        });
        kinds.min().unwrap_or(ObjectTerms::Resources)
    }

    fn dense_ids(&self) -> u32 {
        self.statistics.vertices
    }

    fn has_graph(&self, graph: u32) -> bool {
        self.graphs.binary_search(&graph).is_ok()
    }

    fn named_graphs(&self) -> Arc<[u32]> {
        self.graphs.as_slice().into()
    }

    fn graph_predicates(&self, graph: u32) -> Vec<u32> {
        let inside = self.quads.iter().filter(|q| q[3] == graph);
        let predicates: BTreeSet<u32> = inside.map(|q| q[1]).collect();
        predicates.into_iter().collect()
    }

    fn graph_subjects(&self, graph: u32, predicate: PredicateId, out: &mut Vec<u32>) {
        let inside = |q: &&IdQuad| q[3] == graph && q[1] == predicate.0;
        let subjects: BTreeSet<u32> = self.quads.iter().filter(inside).map(|q| q[0]).collect();
        out.clear();
        out.extend(subjects);
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    fn predicate_statistics(&self, p: PredicateId) -> PredicateStatistics {
        let known = self.statistics.predicates.get(p.0 as usize);
        known.copied().unwrap_or_default()
    }

    fn quads(&self) -> u64 {
        self.statistics.quads
    }

    fn vertices(&self) -> u32 {
        self.statistics.vertices
    }

    fn vocabulary(&self) -> Vocabulary<'_> {
        Vocabulary::other(&self.terms)
    }
}

#[test]
fn terms_of_elsewhere_are_asked_in_batches() {
    let name = |i: usize| {
        let mut out = vec![];
        term::push_iri(&format!("http://e/{i}"), &mut out);
        out
    };
    let quads: Vec<[Vec<u8>; 4]> = (0..100)
        .map(|i| [name(i), name(i + 1), name(i + 2), vec![]])
        .collect();
    let graph = HeapGraph::new(&quads);
    let requests = || graph.terms.requests.load(Ordering::Relaxed);
    let names: Vec<Vec<u8>> = (0..110).map(name).collect();
    let asked: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let mut ids = vec![];
    graph.vocabulary().lookup_many(&asked, &mut ids);
    assert_eq!(requests(), 1);
    assert!(ids[102..].iter().all(|&id| id == 0));
    let terms = jindou_engine::QueryTerms::new();
    let mut decoder = jindou_engine::TermDecoder::new(&graph, &terms);
    decoder.prefetch(&ids);
    for (&id, name) in ids.iter().zip(&names).take(102) {
        assert_eq!(decoder.canonical(id).unwrap(), Some(&name[..]));
    }
    assert_eq!(requests(), 2);
    // A term that was not prefetched needs a request of its own.
    decoder.prefetch(&ids[..5]);
    assert_eq!(decoder.canonical(ids[7]).unwrap(), Some(&names[7][..]));
    assert_eq!(requests(), 4);
}
