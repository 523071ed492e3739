//! A small graph in all shapes of segments, and its truth as a set.

use jindou_model::term;
use jindou_store::Base;
use jindou_store::testing::{TermQuad, store_of_terms};
use std::collections::BTreeSet;
use std::sync::Arc;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        jindou_model::random::splitmix64(&mut self.0) % n
    }
}

/// (subject, predicate, object, graph) in ids.
pub type IdQuad = (u32, u32, u32, u32);

fn iri(kind: &str, n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    term::push_iri(&format!("http://e/{kind}{n}"), &mut out);
    out
}

/// Some thousand quads: functions, long lists, sparse predicates, a hub, and one predicate with named graphs.
pub fn graph() -> Vec<TermQuad> {
    let mut random = Random(7);
    let mut quads = Vec::new();
    for v in 0..1500 {
        let s = iri("v", v);
        // (predicate, one vertex in this many, longest list, objects)
        let shapes = [
            (0, 1, 1, 700),
            (1, 1, 5, 1500),
            (2, 3, 8, 300),
            (3, 40, 60, 1500),
            (4, 2, 1, 2),
        ];
        for (p, one_in, longest, objects) in shapes {
            if random.below(one_in) > 0 {
                continue;
            }
            for _ in 0..=random.below(longest) {
                let o = iri("v", random.below(objects));
                quads.push([s.clone(), iri("p", p), o, vec![]]);
            }
        }
        if v % 7 == 0 {
            let graph = if v % 14 == 0 { vec![] } else { iri("g", v % 3) };
            quads.push([s, iri("p", 9), iri("v", v / 7), graph]);
        }
    }
    quads
}

#[derive(Clone)]
pub struct Store {
    pub folder: Arc<tempfile::TempDir>,
    pub base: Arc<Base>,
    pub truth: BTreeSet<IdQuad>,
}

/// Loads the graph; the truth comes from its text and the dictionary, not from the segments.
pub fn store() -> Store {
    let quads = graph();
    let (folder, base) = store_of_terms(&quads);
    let id = |t: &[u8]| base.dictionary().lookup(t).map_or(0, |v| v.0);
    let plain = jindou_store::Snapshot::of_base(Arc::clone(&base));
    let truth = quads
        .iter()
        .map(|[s, p, o, g]| {
            let p = plain.predicate_of(jindou_model::VertexId(id(p))).unwrap();
            (id(s), p.0, id(o), if g.is_empty() { 0 } else { id(g) })
        })
        .collect();
    Store {
        folder: Arc::new(folder),
        base,
        truth,
    }
}

/// The neighbours of a key in the default graph by brute force: ascending, each once.
pub fn neighbours(truth: &BTreeSet<IdQuad>, p: u32, out: bool, key: u32) -> Vec<u32> {
    let ends = truth.iter().filter(|q| q.1 == p && q.3 == 0);
    let ends = ends.map(|q| if out { (q.0, q.2) } else { (q.2, q.0) });
    let found: BTreeSet<u32> = ends.filter(|e| e.0 == key).map(|e| e.1).collect();
    found.into_iter().collect()
}
