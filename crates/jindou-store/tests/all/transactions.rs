//! Random transactions in small numbers, and all that a snapshot holds.

use jindou_graph::segment::GraphScope;
use jindou_model::{Direction, PredicateId, VertexId};
use jindou_store::testing::TermQuad;
use jindou_store::{ChangeTerm, Changes, Snapshot};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A quad in numbers: subject, predicate, object, graph. Small numbers are in the base.
pub type Q = [u8; 4];
pub type Op = (Q, bool, bool);

pub fn iri(kind: &str, n: u8) -> Vec<u8> {
    format!("<http://e/{kind}{n}").into_bytes()
}

/// One term serves as vertex, predicate and graph.
pub fn bytes(q: Q) -> TermQuad {
    let graph = if q[3] == 0 { vec![] } else { iri("v", q[3]) };
    // One of the predicates is rdf:type.
    let predicate = match q[1] % 5 {
        1 => jindou_model::term::rdf_type(),
        n => iri("v", n),
    };
    [iri("v", q[0]), predicate, iri("v", q[2]), graph]
}

pub fn change(c: &mut Changes, at: &Snapshot, (q, insert, by_id): Op) {
    let b = bytes(q);
    let known = b.each_ref().map(|t| at.lookup(t).filter(|_| by_id));
    let term = |i: usize| match known[i] {
        Some(v) => ChangeTerm::Id(v.0),
        None => ChangeTerm::Bytes(&b[i]),
    };
    let graph = (!b[3].is_empty()).then(|| term(3));
    if insert {
        c.insert(term(0), term(1), term(2), graph);
    } else {
        c.remove(term(0), term(1), term(2), graph);
    }
}

pub fn changes(at: &Snapshot, ops: &[Op]) -> Changes {
    let mut changes = Changes::new();
    for &op in ops {
        change(&mut changes, at, op);
    }
    changes
}

/// Makes the changes to a set of quads.
pub fn change_set(quads: &mut BTreeSet<TermQuad>, ops: &[Op]) {
    for (q, insert, _) in ops {
        if *insert {
            quads.insert(bytes(*q));
        } else {
            quads.remove(&bytes(*q));
        }
    }
}

/// All that a snapshot has, read in every way.
pub fn quads_of(s: &Snapshot) -> BTreeSet<TermQuad> {
    let name = |v: u32| {
        let mut out = vec![];
        if v != 0 {
            assert!(s.term(VertexId(v), &mut out));
            assert_eq!(s.lookup(&out), Some(VertexId(v)));
        }
        out
    };
    let mut all = [BTreeSet::new(), BTreeSet::new()];
    for p in (0..s.predicate_count()).map(PredicateId) {
        let vertex = s.vertex_of(p);
        assert_eq!(s.predicate_of(vertex), Some(p));
        for d in [Direction::Out, Direction::In] {
            let view = s.edges(p, d);
            let mut keys = vec![];
            view.candidate_keys(GraphScope::Union, &mut keys);
            assert!(keys.is_sorted());
            for key in keys {
                let (mut ns, mut gs) = (vec![], vec![]);
                view.read_with_graphs(key, GraphScope::Union, &mut ns, &mut gs);
                if !ns.is_empty() {
                    assert!(s.predicates_of(key, d).contains(&p.0));
                }
                for (n, g) in ns.into_iter().zip(gs) {
                    let (from, to) = if d == Direction::Out {
                        (key, n)
                    } else {
                        (n, key)
                    };
                    assert!(all[d as usize].insert([
                        name(from),
                        name(vertex.0),
                        name(to),
                        name(g)
                    ]));
                    if g != 0 && d == Direction::Out {
                        assert!(s.named_graphs().contains(&g));
                        assert!(s.graph_predicates(g).contains(&p.0));
                        let mut subjects = vec![];
                        s.graph_subjects(g, p, &mut subjects);
                        assert!(subjects.contains(&key));
                    }
                }
            }
        }
    }
    let [out, into] = all;
    assert_eq!(out, into);
    out
}

pub fn op() -> impl Strategy<Value = Op> {
    let quad = (0u8..12, 0u8..7, 0u8..12, prop_oneof![Just(0u8), 0u8..9])
        .prop_map(|(s, p, o, g)| [s, p, o, g]);
    (quad, prop::bool::weighted(0.6), any::<bool>())
}
