//! Random quads, and a comparison of a store with the quads that it was loaded from.

use super::TermQuad;
use crate::Snapshot;
use jindou_graph::segment::GraphScope;
use jindou_model::{Direction, PredicateId, VertexId, term};
use std::collections::{BTreeMap, BTreeSet};

/// A fixed sequence of draws; its quality does not matter here.
pub struct Draw(pub u64);

impl Draw {
    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// The canonical bytes of an IRI.
pub fn iri(s: &str) -> Vec<u8> {
    let mut out = vec![];
    term::push_iri(s, &mut out);
    out
}

/// Quads with repetitions, several classes a subject, literals, and (if asked) named graphs.
pub fn quads(seed: u64, n: usize, graphs: u64) -> Vec<TermQuad> {
    let mut d = Draw(seed);
    (0..n)
        .map(|_| {
            let s = match d.below(10) {
                0 => b"_:b1".to_vec(),
                _ => iri(&format!("http://e/s{}", d.below(60 + n as u64 / 50))),
            };
            let kind = d.below(12);
            let (p, o) = match kind {
                0 | 1 => (term::rdf_type(), iri(&format!("http://e/C{}", d.below(5)))),
                2 => {
                    let mut o = vec![];
                    term::push_typed(
                        &d.below(40).to_string(),
                        "http://www.w3.org/2001/XMLSchema#integer",
                        &mut o,
                    );
                    (iri("http://e/age"), o)
                }
                3 => (iri("http://e/p3"), iri("http://e/p4")),
                _ => (
                    iri(&format!("http://e/p{kind}")),
                    iri(&format!("http://e/s{}", d.below(90))),
                ),
            };
            let g = match d.below(graphs + 1) {
                0 => vec![],
                g => iri(&format!("http://e/g{g}")),
            };
            [s, p, o, g]
        })
        .collect()
}

/// Compares every answer of a store with the quads that went in.
///
/// # Panics
/// When one differs.
pub fn agree(quads: &[TermQuad], snapshot: &Snapshot) {
    let want: BTreeSet<&TermQuad> = quads.iter().collect();
    let terms: BTreeSet<&Vec<u8>> = quads.iter().flatten().filter(|t| !t.is_empty()).collect();
    let s = snapshot.statistics();
    assert_eq!(s.vertices as usize, terms.len());
    assert_eq!(s.quads as usize, want.len());
    let name = |v: u32| {
        let mut out = vec![];
        assert!(v == 0 || snapshot.term(VertexId(v), &mut out), "{v}");
        out
    };
    for t in &terms {
        let v = snapshot.lookup(t).unwrap();
        assert_eq!(&&name(v.0), t);
    }
    for direction in [Direction::Out, Direction::In] {
        let mut got: BTreeSet<TermQuad> = BTreeSet::new();
        for p in 0..snapshot.predicate_count() {
            let p = PredicateId(p);
            assert_eq!(snapshot.predicate_of(snapshot.vertex_of(p)), Some(p));
            let view = snapshot.edges(p, direction);
            let mut keys = vec![];
            view.candidate_keys(GraphScope::Union, &mut keys);
            for key in keys {
                assert!(snapshot.predicates_of(key, direction).contains(&p.0));
                view.for_each(key, GraphScope::Union, |n, g| {
                    let (s, o) = match direction {
                        Direction::Out => (key, n),
                        Direction::In => (n, key),
                    };
                    assert!(got.insert([name(s), name(snapshot.vertex_of(p).0), name(o), name(g)]));
                });
            }
        }
        assert_eq!(got.iter().collect::<BTreeSet<_>>(), want, "{direction:?}");
    }
    // Characteristic sets are exact.
    for t in &terms {
        let v = snapshot.lookup(t).unwrap().0;
        for (direction, end) in [(Direction::Out, 0), (Direction::In, 2)] {
            let got: BTreeSet<Vec<u8>> = snapshot
                .predicates_of(v, direction)
                .iter()
                .map(|&p| name(snapshot.vertex_of(PredicateId(p)).0))
                .collect();
            let want: BTreeSet<Vec<u8>> = want
                .iter()
                .filter(|q| &&q[end] == t)
                .map(|q| q[1].clone())
                .collect();
            assert_eq!(got, want);
        }
    }
    // Classes: count, and intervals where there are any.
    let rdf_type = term::rdf_type();
    let mut classes: BTreeMap<&Vec<u8>, BTreeSet<&Vec<u8>>> = BTreeMap::new();
    for q in want.iter().filter(|q| q[1] == rdf_type) {
        classes.entry(&q[2]).or_default().insert(&q[0]);
    }
    assert_eq!(s.classes.len(), classes.len());
    for (class, members) in classes {
        let v = snapshot.lookup(class).unwrap();
        assert_eq!(s.classes[&v.0], members.len() as u64);
        if let Some(runs) = snapshot.class_intervals(v) {
            let got: BTreeSet<Vec<u8>> = runs.iter().flat_map(|r| r[0]..r[1]).map(name).collect();
            assert_eq!(got.iter().collect::<BTreeSet<_>>(), members);
        }
    }
    // Predicates.
    for (p, x) in s.predicates.iter().enumerate() {
        let term = name(x.vertex);
        let of = |named: bool| {
            want.iter()
                .filter(|q| q[1] == term && q[3].is_empty() != named)
                .collect::<Vec<_>>()
        };
        assert_eq!(x.edges as usize, of(false).len());
        assert_eq!(x.named_edges as usize, of(true).len());
        let own = of(x.edges == 0);
        assert_eq!(
            x.subjects as usize,
            own.iter().map(|q| &q[0]).collect::<BTreeSet<_>>().len()
        );
        assert_eq!(
            x.objects as usize,
            own.iter().map(|q| &q[2]).collect::<BTreeSet<_>>().len()
        );
        let in_sets: u64 = s.sets_of_predicate[p]
            .iter()
            .flat_map(|&i| &s.sets[i as usize].predicates)
            .filter(|e| e.0 as usize == p)
            .map(|e| e.2)
            .sum();
        assert_eq!(in_sets, x.edges + x.named_edges);
    }
    // Planner sets: subjects by exact set of predicates.
    let mut sets: BTreeMap<&Vec<u8>, BTreeSet<&Vec<u8>>> = BTreeMap::new();
    for q in &want {
        sets.entry(&q[0]).or_default().insert(&q[1]);
    }
    let mut by_set: BTreeMap<BTreeSet<Vec<u8>>, u64> = BTreeMap::new();
    for set in sets.into_values() {
        *by_set
            .entry(set.into_iter().cloned().collect())
            .or_default() += 1;
    }
    let got: BTreeMap<BTreeSet<Vec<u8>>, u64> = s
        .sets
        .iter()
        .map(|set| {
            let names = set
                .predicates
                .iter()
                .map(|p| name(s.predicates[p.0 as usize].vertex));
            (names.collect(), set.subjects)
        })
        .collect();
    assert_eq!(got, by_set);
    // Graphs.
    // Found once for all copies, also those that were made before.
    let copy = snapshot.clone();
    assert!(std::sync::Arc::ptr_eq(
        &snapshot.named_graphs(),
        &copy.named_graphs()
    ));
    let graphs: BTreeSet<Vec<u8>> = snapshot.named_graphs().iter().copied().map(name).collect();
    assert_eq!(
        graphs,
        want.iter()
            .map(|q| q[3].clone())
            .filter(|g| !g.is_empty())
            .collect()
    );
    for g in snapshot.named_graphs().iter().copied() {
        let mut got: BTreeSet<(Vec<u8>, Vec<u8>)> = BTreeSet::new();
        let mut subjects = vec![];
        for p in snapshot.graph_predicates(g) {
            snapshot.graph_subjects(g, PredicateId(p), &mut subjects);
            for &s in &subjects {
                assert!(got.insert((name(s), name(snapshot.vertex_of(PredicateId(p)).0))));
            }
        }
        let graph = name(g);
        let want: BTreeSet<(Vec<u8>, Vec<u8>)> = want
            .iter()
            .filter(|q| q[3] == graph)
            .map(|q| (q[0].clone(), q[1].clone()))
            .collect();
        assert_eq!(got, want);
    }
}
