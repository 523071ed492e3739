//! Loads small data and compares every answer of the store with the quads that went in.

use jindou_model::{Direction, PredicateId, Progress, VertexId, term};
use jindou_store::segment::Scope;
use jindou_store::testing::{QuadList, TermQuad, store_of_terms};
use jindou_store::{LoadOptions, Snapshot, check, info, load, open};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A fixed sequence of draws; its quality does not matter here.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn iri(s: &str) -> Vec<u8> {
    let mut out = vec![];
    term::push_iri(s, &mut out);
    out
}

/// Quads with repetitions, several classes a subject, literals, and (if asked) named graphs.
fn quads(seed: u64, n: usize, graphs: u64) -> Vec<TermQuad> {
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

fn agree(quads: &[TermQuad], snapshot: &Snapshot) {
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
            view.candidate_keys(Scope::Union, &mut keys);
            for key in keys {
                assert!(snapshot.predicates_of(key, direction).contains(&p.0));
                view.for_each(key, Scope::Union, |n, g| {
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
    let graphs: BTreeSet<Vec<u8>> = snapshot.named_graphs().into_iter().map(name).collect();
    assert_eq!(
        graphs,
        want.iter()
            .map(|q| q[3].clone())
            .filter(|g| !g.is_empty())
            .collect()
    );
    for g in snapshot.named_graphs() {
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

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap())
        .map(|e| {
            (
                e.file_name().into_string().unwrap(),
                std::fs::read(e.path()).unwrap(),
            )
        })
        .collect()
}

#[test]
fn a_store_answers_with_what_was_loaded() {
    for (seed, n, graphs) in [
        (1, 0, 0),
        (2, 1, 0),
        (3, 1, 3),
        (4, 700, 0),
        (5, 900, 4),
        (6, 2000, 40),
        (7, 9000, 2),
    ] {
        let data = quads(seed, n, graphs);
        let (folder, base) = store_of_terms(&data);
        agree(&data, &Snapshot::of_base(base));
        let report = check(&folder.path().join("store")).unwrap();
        assert!(report.is_sound(), "{seed}: {:?}", report.damages);
        let info = info(&folder.path().join("store")).unwrap();
        assert_eq!(
            info.quads as usize,
            data.iter().collect::<BTreeSet<_>>().len()
        );
    }
}

#[test]
fn order_threads_and_memory_leave_no_trace() {
    let data = quads(7, 3000, 9);
    let (folder, _) = store_of_terms(&data);
    let want = files(&folder.path().join("store"));
    let mut shuffled = data.clone();
    let mut d = Draw(8);
    for i in (1..shuffled.len()).rev() {
        shuffled.swap(i, d.below(i as u64 + 1) as usize);
    }
    for (i, (list, threads, memory)) in [
        (&shuffled, 2, 64 << 20),
        (&data, 1, 64 << 20),
        (&shuffled, 5, 0),
    ]
    .into_iter()
    .enumerate()
    {
        let dir = folder.path().join(format!("other{i}"));
        let options = LoadOptions::default()
            .with_threads(threads)
            .with_memory(memory);
        load(&dir, &QuadList(list), &options, &Progress::default()).unwrap();
        let got = files(&dir);
        assert_eq!(
            got.keys().collect::<Vec<_>>(),
            want.keys().collect::<Vec<_>>()
        );
        for (name, bytes) in got {
            assert!(bytes == want[&name], "{name} differs in load {i}");
        }
    }
}

#[test]
fn the_union_flag_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    let options = LoadOptions::default().with_union_default(true);
    load(
        &dir,
        &QuadList(&quads(1, 10, 2)),
        &options,
        &Progress::default(),
    )
    .unwrap();
    assert!(open(&dir).unwrap().union_default());
}
