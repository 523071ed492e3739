//! Checks that partitions of random graphs answer random queries as `spareval` answers them over the whole graph.

use super::build::{Parts, parts};
use super::data::{Prepared, estimate, gathered, prepare};
use super::decompose::{PartQuery, Rules};
use super::wire::Table;
use super::worker::{Opened, options, size_of_answer};
use crate::args::parallel::Partition;
use jindou::{Database, LoadOptions, Progress};
use jindou_parse::Sources;
use jindou_testing::{Answer, Rng, answer, quads};
use oxrdf::{GraphName, Quad, Term};
use oxrdfio::{RdfFormat, RdfParser};
use std::collections::BTreeMap;
use std::path::Path;

/// Quads of a connected graph of entities that refer to each other. It has more joins than the graphs of
/// `jindou-testing`, and IRIs with common prefixes.
fn entities(rng: &mut Rng) -> Vec<Quad> {
    let vertex = |n: usize| format!("<http://e/group{}/thing_{}>", n % 4, n);
    let mut text = String::new();
    for n in 0..40 {
        text += &format!("{} <http://e/number> {} .\n", vertex(n), n % 5);
        text += &format!("{} a <http://e/Class{}> .\n", vertex(n), n % 3);
        for _ in 0..rng.below(4) {
            let p = rng.below(3);
            text += &format!(
                "{} <http://e/p{p}> {} .\n",
                vertex(n),
                vertex(rng.below(40))
            );
        }
    }
    let mut out: Vec<Quad> = vec![];
    for q in RdfParser::from_format(RdfFormat::Turtle).for_slice(text.as_bytes()) {
        let q = q.unwrap();
        if !out.contains(&q) {
            out.push(q);
        }
    }
    out
}

/// Triple patterns that some quads match together: the edges of a random walk, with most terms replaced by variables.
fn patterns(rng: &mut Rng, data: &[Quad]) -> (String, usize) {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut walk: Vec<&Quad> = vec![&data[rng.below(data.len())]];
    for _ in 0..rng.below(4) {
        let touches = |q: &&Quad| {
            walk.iter().any(|w| {
                let ends = [Term::from(w.subject.clone()), w.object.clone()];
                ends.contains(&q.subject.clone().into()) || ends.contains(&q.object)
            })
        };
        let near: Vec<&Quad> = data.iter().filter(touches).collect();
        walk.push(near[rng.below(near.len())]);
    }
    let mut text = String::new();
    for q in walk {
        let mut name = |t: Term, percent: usize| {
            let written = t.to_string();
            let next = names.len();
            let constant = !matches!(t, Term::BlankNode(_)) && rng.chance(percent);
            let new = if constant {
                written.clone()
            } else {
                format!("?v{next}")
            };
            names.entry(written).or_insert(new).clone()
        };
        let s = name(q.subject.clone().into(), 20);
        let o = name(q.object.clone(), 35);
        let p = name(q.predicate.clone().into(), 85);
        text += &format!("{s} {p} {o} . ");
    }
    (text, names.len())
}

fn query(rng: &mut Rng, data: &[Quad]) -> String {
    let (one, n) = patterns(rng, data);
    let columns = match rng.below(3) {
        0 => "*".to_owned(),
        1 => "DISTINCT ?v0 ?v1".to_owned(),
        _ => format!("?v{}", rng.below(n)),
    };
    match rng.below(6) {
        0 => {
            let (two, _) = patterns(rng, data);
            format!("SELECT {columns} {{ {{ {one} }} UNION {{ {two} }} }}")
        }
        1 => {
            let (two, _) = patterns(rng, data);
            format!("SELECT {columns} {{ {one} OPTIONAL {{ {two} }} }}")
        }
        2 => {
            let (two, _) = patterns(rng, data);
            format!("SELECT (COUNT(*) AS ?n) {{ {one} FILTER NOT EXISTS {{ {two} }} }}")
        }
        _ => format!("SELECT {columns} {{ {one} }}"),
    }
}

fn load(data: &[Quad], dir: &Path) -> Database {
    let lines: String = data.iter().map(|q| format!("{q} .\n")).collect();
    let file = dir.join("data.nq");
    std::fs::write(&file, lines).unwrap();
    let sources = Sources::builder().path(&file).build().unwrap();
    let store = dir.join("store");
    Database::load(
        &store,
        &sources,
        &LoadOptions::default(),
        &Progress::default(),
    )
    .unwrap();
    Database::open(&store).unwrap()
}

fn check(db: &Database, data: &[Quad], parts: &Parts, queries: &[String]) {
    let rules = Rules::new(parts);
    let mut stores: Vec<Opened> = parts
        .stores()
        .map(|(store, ids)| Opened::new(Path::new(&store), Some(Path::new(&ids))).unwrap())
        .collect();
    for text in queries {
        let Ok(Answer::Rows(_, rows)) = answer(data, text) else {
            panic!("no rows: {text}");
        };
        // The costs make `prepare` choose the widest parts, those estimated as cheapest, and the narrowest.
        let narrow = |p: &PartQuery| Ok(p.columns.len() as f64 / 100.0 - 1.0);
        for prepared in [
            prepare(text, &rules, |_| Ok(1.0)).unwrap(),
            prepare(text, &rules, |p| estimate(db, p)).unwrap(),
            prepare(text, &rules, narrow).unwrap(),
        ] {
            check_one(db, (text, rows.len() as u64), parts, &mut stores, &prepared);
        }
    }
}

fn check_one(
    db: &Database,
    (text, rows): (&str, u64),
    parts: &Parts,
    stores: &mut [Opened],
    prepared: &Prepared,
) {
    let texts = prepared.texts();
    let tables: Vec<Vec<Table>> = stores
        .iter_mut()
        .map(|s| texts.iter().map(|t| s.find(t).unwrap()).collect())
        .collect();
    let found = prepared
        .finish(db, gathered(&tables, prepared.parts()), true)
        .unwrap();
    let written = prepared
        .finish(db, gathered(&tables, prepared.parts()), false)
        .unwrap();
    // The workers' text has as many rows and bytes as the single store's.
    if let Some(only) = prepared.only() {
        let written: Vec<(u64, Vec<u8>)> =
            stores.iter_mut().map(|s| s.write(only).unwrap()).collect();
        let whole = size_of_answer(db, text, &options()).unwrap();
        let found: u64 = written.iter().map(|w| w.0).sum();
        let bytes: usize = written.iter().map(|w| w.1.len()).sum();
        let names: usize = only.find(" WHERE").unwrap() - "SELECT".len();
        assert_eq!((found, (bytes + names) as u64), whole, "{only}");
    }
    let about = || {
        format!(
            "{} over {}, {} hops: {text}\n{texts:#?}",
            parts.how, parts.workers, parts.hops
        )
    };
    assert_eq!(found.0, rows, "{}", about());
    assert_eq!(written.0, found.0, "{}", about());
    assert_eq!(found, prepared.right(db, text).unwrap(), "{}", about());
}

#[test]
fn no_partition_misses_or_repeats_a_result() {
    partitions(3);
}

#[test]
#[ignore = "half a minute: more graphs"]
fn no_partition_misses_or_repeats_a_result_of_many_graphs() {
    partitions(12);
}

fn partitions(rounds: usize) {
    let mut rng = Rng::new(7);
    let mut nonempty = 0;
    for round in 0..rounds {
        let mut data = if round % 2 == 0 {
            entities(&mut rng)
        } else {
            quads(&mut rng)
        };
        data.retain(|q| q.graph_name == GraphName::DefaultGraph);
        if data.is_empty() {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let db = load(&data, dir.path());
        let queries: Vec<String> = (0..60).map(|_| query(&mut rng, &data)).collect();
        for q in &queries {
            if let Ok(Answer::Rows(_, rows)) = answer(&data, q) {
                nonempty += usize::from(!rows.is_empty());
            }
        }
        for (i, how) in [Partition::Hash, Partition::Star, Partition::Mincut]
            .into_iter()
            .enumerate()
        {
            let workers = 2 + (round + i) as u32 % 2;
            let hops = match how {
                Partition::Hash => (round as u32 / 2) % 2,
                _ => 1 + round as u32 % 2,
            };
            let made = parts(&db, &dir.path().join("work"), how, workers, hops).unwrap();
            assert!(!made.reused);
            assert_eq!(made.whole, data.len() as u64);
            assert!(made.replication() >= 1.0);
            if hops == 0 {
                assert_eq!(made.triples.iter().sum::<u64>(), made.whole);
            }
            check(&db, &data, &made, &queries);
            let again = parts(&db, &dir.path().join("work"), how, workers, hops).unwrap();
            assert!(again.reused);
            assert_eq!(again.one_way, made.one_way);
        }
    }
    assert!(
        nonempty > 33 * rounds,
        "only {nonempty} queries had an answer"
    );
}
