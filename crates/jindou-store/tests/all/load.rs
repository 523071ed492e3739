//! Loads small data and compares every answer of the store with the quads that went in.

use jindou_model::{Direction, PredicateId, Progress, VertexId, term};
use jindou_store::segment::Scope;
use jindou_store::shard::{CLUSTER, Cluster, Placement, Sharding};
use jindou_store::testing::{QuadList, TermQuad, shards_of_terms, store_of_terms, varied_quads};
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

fn shardings() -> impl Iterator<Item = Sharding> {
    [2, 3, 12].into_iter().flat_map(|shards| {
        let placements = [Placement::Range, Placement::Hash].into_iter();
        placements.flat_map(move |placement| {
            let shifts = [None, Some(0), Some(3)].into_iter();
            shifts.map(move |shift| {
                let sharding = Sharding::new(shards).with_placement(placement);
                sharding.with_block_shift(shift)
            })
        })
    })
}

#[test]
fn shards_together_have_all_the_quads() {
    for (i, sharding) in (0..).zip(shardings()) {
        let quads = match i % 3 {
            0 => quads(i, 900, 3),
            1 => varied_quads(),
            _ => quads(i, 12, 0),
        };
        let own = sharding.shards - 1;
        let (folder, snapshot) = shards_of_terms(&quads, sharding, own);
        agree(&quads, &snapshot);
        snapshot.check_shards().unwrap();
        assert!(snapshot.session().unwrap().traffic().bytes > 0);
        let report = check(&folder.path().join("store")).unwrap();
        assert!(report.is_sound(), "{sharding:?}: {:?}", report.damages);
        // By id, both directions: each edge twice.
        let distinct: BTreeSet<&TermQuad> = quads.iter().collect();
        assert_eq!(report.edges, 2 * distinct.len() as u64);
    }
}

fn load_into(dir: &Path, quads: &[TermQuad], options: &LoadOptions) {
    load(dir, &QuadList(quads), options, &Progress::default()).unwrap();
}

/// Every file below a folder, by its path there.
fn files_in(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut out = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            let below = files_in(&path).into_iter();
            out.extend(below.map(|(n, b)| (format!("{name}/{n}"), b)));
        } else {
            out.insert(name, std::fs::read(&path).unwrap());
        }
    }
    out
}

#[test]
fn shards_do_not_depend_on_order_threads_or_memory_and_one_is_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let data = quads(3, 3_000, 2);
    let mut turned = data.clone();
    turned.reverse();
    let cut = |shards| LoadOptions::default().with_sharding(Some(Sharding::new(shards)));
    let [a, b, one, plain] = ["a", "b", "one", "plain"].map(|n| folder.path().join(n));
    load_into(&a, &data, &cut(3).with_threads(2));
    load_into(&b, &turned, &cut(3).with_threads(1).with_memory(1));
    assert_eq!(files_in(&a), files_in(&b));
    load_into(&one, &data, &cut(1));
    load_into(&plain, &data, &LoadOptions::default());
    assert_eq!(files_in(&one), files_in(&plain));
    // Ids are those of the store that is not cut.
    let shard = Cluster::read(&a).unwrap().unwrap();
    assert_eq!(shard.terms, u64::from(open(&plain).unwrap().vertices()));
}

#[test]
fn shards_take_the_place_of_a_store_and_make_room_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    let data = quads(4, 300, 1);
    let cut = LoadOptions::default().with_sharding(Some(Sharding::new(4)));
    let whole = LoadOptions::default();
    load_into(&dir, &data, &whole);
    assert!(load(&dir, &QuadList(&data), &cut, &Progress::default()).is_err());
    load_into(&dir, &data, &cut.clone().with_replace(true));
    assert!(dir.join(CLUSTER).exists() && !dir.join("manifest.jd").exists());
    let e = open(&dir).unwrap_err().to_string();
    assert!(e.contains("sharded store"), "{e}");
    let e = open(&dir.join("shard-2")).unwrap_err().to_string();
    assert!(e.contains("shard 2 of 4"), "{e}");
    load_into(&dir, &data, &whole.clone().with_replace(true));
    assert!(!dir.join(CLUSTER).exists());
    open(&dir).unwrap();
    // A foreign file alongside shards stays, and so do they.
    load_into(&dir, &data, &cut.clone().with_replace(true));
    std::fs::write(dir.join("shard-9"), "mine").unwrap();
    let refused = load(
        &dir,
        &QuadList(&data),
        &whole.with_replace(true),
        &Progress::default(),
    );
    assert!(refused.unwrap_err().to_string().contains("shard-9"));
    for shards in [0, 256] {
        let options = LoadOptions::default().with_sharding(Some(Sharding::new(shards)));
        let other = folder.path().join("other");
        assert!(load(&other, &QuadList(&data), &options, &Progress::default()).is_err());
        assert!(!other.exists());
    }
}

#[test]
fn a_damaged_shard_is_named() {
    let sharding = Sharding::new(3).with_block_shift(Some(0));
    let (folder, _) = shards_of_terms(&varied_quads(), sharding, 0);
    let dir = folder.path().join("store");
    for (name, bytes) in files_in(&dir) {
        let path = dir.join(&name);
        for at in [0, bytes.len() / 2, bytes.len() - 1] {
            let mut bad = bytes.clone();
            bad[at] ^= 0x55;
            std::fs::write(&path, &bad).unwrap();
            let report = check(&dir).unwrap();
            let named = report.damages.iter().any(|d| d.file == name);
            assert!(named, "{name}, byte {at}: {:?}", report.damages);
        }
        std::fs::remove_file(&path).unwrap();
        if name != CLUSTER {
            assert!(!check(&dir).unwrap().is_sound(), "{name}");
        }
        std::fs::write(&path, &bytes).unwrap();
    }
    assert!(check(&dir).unwrap().is_sound());
}
