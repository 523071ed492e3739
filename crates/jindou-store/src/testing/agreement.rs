//! Random quads, and a comparison of a store with the quads from which it was loaded.

use super::TermQuad;
use crate::Snapshot;
use jindou_graph::segment::GraphScope;
use jindou_model::{Direction, PredicateId, VertexId, term};
use std::collections::{BTreeMap, BTreeSet};

/// A pseudo-random sequence with a fixed seed; its quality does not matter.
pub struct Draw(pub u64);

impl Draw {
    /// A number below `n`, which must not be 0.
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

/// The canonical bytes of an integer.
pub fn integer(n: impl ToString) -> Vec<u8> {
    let mut out = vec![];
    let datatype = "http://www.w3.org/2001/XMLSchema#integer";
    term::push_typed(&n.to_string(), datatype, &mut out);
    out
}

/// Random quads: some are repeated, subjects have several classes, objects may be literals, and with `graphs` > 0 some
/// are in named graphs.
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
                    let age = integer(d.below(40));
                    (iri("http://e/age"), age)
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

/// Compares every kind of answer of a store with the quads that were loaded.
///
/// # Panics
/// When an answer differs.
pub fn agree(quads: &[TermQuad], snapshot: &Snapshot) {
    let expected = Expected {
        quads: quads.iter().collect(),
        snapshot,
    };
    expected.has_terms();
    expected.has_edges();
    expected.has_characteristic_sets();
    expected.has_classes();
    expected.has_predicates();
    expected.has_planner_sets();
    expected.has_graphs();
}

/// The quads that were loaded, and the store that must have them.
struct Expected<'a> {
    quads: BTreeSet<&'a TermQuad>,
    snapshot: &'a Snapshot,
}

impl<'a> Expected<'a> {
    fn terms(&self) -> BTreeSet<&'a Vec<u8>> {
        let terms = self.quads.iter().flat_map(|q| q.iter());
        terms.filter(|t| !t.is_empty()).collect()
    }

    fn name(&self, v: u32) -> Vec<u8> {
        let mut out = vec![];
        assert!(v == 0 || self.snapshot.term(VertexId(v), &mut out), "{v}");
        out
    }

    fn has_terms(&self) {
        let (s, terms) = (self.snapshot.statistics(), self.terms());
        assert_eq!(s.vertices as usize, terms.len());
        assert_eq!(s.quads as usize, self.quads.len());
        for t in &terms {
            let v = self.snapshot.lookup(t).unwrap();
            assert_eq!(&&self.name(v.0), t);
        }
    }

    fn has_edges(&self) {
        let (snapshot, name) = (self.snapshot, |v| self.name(v));
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
                        let quad = [name(s), name(snapshot.vertex_of(p).0), name(o), name(g)];
                        assert!(got.insert(quad));
                    });
                }
            }
            assert_eq!(
                got.iter().collect::<BTreeSet<_>>(),
                self.quads,
                "{direction:?}"
            );
        }
    }

    /// Checks that characteristic sets are exact.
    fn has_characteristic_sets(&self) {
        for t in self.terms() {
            let v = self.snapshot.lookup(t).unwrap().0;
            for (direction, end) in [(Direction::Out, 0), (Direction::In, 2)] {
                let got: BTreeSet<Vec<u8>> = self
                    .snapshot
                    .predicates_of(v, direction)
                    .iter()
                    .map(|&p| self.name(self.snapshot.vertex_of(PredicateId(p)).0))
                    .collect();
                let of_term = self.quads.iter().filter(|q| &q[end] == t);
                let want: BTreeSet<Vec<u8>> = of_term.map(|q| q[1].clone()).collect();
                assert_eq!(got, want);
            }
        }
    }

    /// Checks the number of instances of each class, and the intervals of those that have any.
    fn has_classes(&self) {
        let rdf_type = term::rdf_type();
        let mut classes: BTreeMap<&Vec<u8>, BTreeSet<&Vec<u8>>> = BTreeMap::new();
        for q in self.quads.iter().filter(|q| q[1] == rdf_type) {
            classes.entry(&q[2]).or_default().insert(&q[0]);
        }
        let s = self.snapshot.statistics();
        assert_eq!(s.classes.len(), classes.len());
        for (class, members) in classes {
            let v = self.snapshot.lookup(class).unwrap();
            assert_eq!(s.classes[&v.0], members.len() as u64);
            if let Some(runs) = self.snapshot.class_intervals(v) {
                let ids = runs.iter().flat_map(|r| r[0]..r[1]);
                let got: BTreeSet<Vec<u8>> = ids.map(|v| self.name(v)).collect();
                assert_eq!(got.iter().collect::<BTreeSet<_>>(), members);
            }
        }
    }

    fn has_predicates(&self) {
        let s = self.snapshot.statistics();
        for (p, x) in s.predicates.iter().enumerate() {
            let term = self.name(x.vertex);
            let of = |named: bool| -> Vec<_> {
                let all = self.quads.iter();
                all.filter(|q| q[1] == term && q[3].is_empty() != named)
                    .collect()
            };
            assert_eq!(x.edges as usize, of(false).len());
            assert_eq!(x.named_edges as usize, of(true).len());
            let own = of(x.edges == 0);
            let distinct = |end: usize| own.iter().map(|q| &q[end]).collect::<BTreeSet<_>>().len();
            assert_eq!(x.subjects as usize, distinct(0));
            assert_eq!(x.objects as usize, distinct(2));
            let in_sets: u64 = s.sets_of_predicate[p]
                .iter()
                .flat_map(|&i| &s.sets[i as usize].predicates)
                .filter(|e| e.0 as usize == p)
                .map(|e| e.2)
                .sum();
            assert_eq!(in_sets, x.edges + x.named_edges);
        }
    }

    /// Checks the planner's sets, which count subjects by their exact set of predicates.
    fn has_planner_sets(&self) {
        let mut sets: BTreeMap<&Vec<u8>, BTreeSet<&Vec<u8>>> = BTreeMap::new();
        for q in &self.quads {
            sets.entry(&q[0]).or_default().insert(&q[1]);
        }
        let mut by_set: BTreeMap<BTreeSet<Vec<u8>>, u64> = BTreeMap::new();
        for set in sets.into_values() {
            *by_set
                .entry(set.into_iter().cloned().collect())
                .or_default() += 1;
        }
        let s = self.snapshot.statistics();
        let got: BTreeMap<BTreeSet<Vec<u8>>, u64> = s
            .sets
            .iter()
            .map(|set| {
                let names = set
                    .predicates
                    .iter()
                    .map(|p| self.name(s.predicates[p.0 as usize].vertex));
                (names.collect(), set.subjects)
            })
            .collect();
        assert_eq!(got, by_set);
    }

    fn has_graphs(&self) {
        let (snapshot, graphs) = (self.snapshot, self.snapshot.named_graphs());
        // The graphs are computed once for all copies, including those made before.
        let copy = snapshot.clone();
        assert!(std::sync::Arc::ptr_eq(&graphs, &copy.named_graphs()));
        let got: BTreeSet<Vec<u8>> = graphs.iter().map(|&g| self.name(g)).collect();
        let want = self.quads.iter().map(|q| q[3].clone());
        assert_eq!(got, want.filter(|g| !g.is_empty()).collect());
        for &g in graphs.iter() {
            let mut got: BTreeSet<(Vec<u8>, Vec<u8>)> = BTreeSet::new();
            let mut subjects = vec![];
            for p in snapshot.graph_predicates(g) {
                let p = PredicateId(p);
                snapshot.graph_subjects(g, p, &mut subjects);
                for &s in &subjects {
                    assert!(got.insert((self.name(s), self.name(snapshot.vertex_of(p).0))));
                }
            }
            let graph = self.name(g);
            let in_graph = self.quads.iter().filter(|q| q[3] == graph);
            let want: BTreeSet<(Vec<u8>, Vec<u8>)> =
                in_graph.map(|q| (q[0].clone(), q[1].clone())).collect();
            assert_eq!(got, want);
        }
    }
}
