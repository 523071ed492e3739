//! The workloads and the real data of the shared inputs over shards: every answer is one store's, whatever the number of shards
//! and their placement.

use crate::compare::{assert_same_rows, bag, round_floats, run_with};
use jindou::testing::Store;
use jindou::{Answer, Placement, QuadSource, QueryOptions, ShardMode, Sharding};
use jindou_parse::Sources;
use jindou_testing::{files_below, unpack};
use jindou_workloads::bsbm::Bsbm;
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::{bsbm, lubm, sp2b, watdiv};
use jindou_workloads::sp2b::Sp2b;
use jindou_workloads::watdiv::{Watdiv, WatdivModel};
use oxrdf::Term;
use std::time::{Duration, Instant};

/// All numbers of shards and both placements, with blocks of one id.
fn all_cuts() -> Vec<Sharding> {
    let cuts = |placement| {
        [1, 2, 3, 6, 12].map(|shards| {
            let sharding = Sharding::new(shards).with_placement(placement);
            sharding.with_block_shift(Some(0))
        })
    };
    [cuts(Placement::Range), cuts(Placement::Hash)].concat()
}

/// The answer to a query to all graphs together.
fn ask(store: &Store, text: &str) -> Answer {
    ask_in(store, text, ShardMode::Dynamic)
}

/// The same, with rows sent to data or data asked for.
fn ask_in(store: &Store, text: &str, mode: ShardMode) -> Answer {
    let options = QueryOptions::default()
        .with_union_default(true)
        .with_shard_mode(mode);
    run_with(&store.db, text, &options)
}

/// Rows, sorted; of floats four digits, as the order of a sum is undefined.
fn rows(mut answer: Answer) -> Vec<String> {
    round_floats(&mut answer);
    bag(&answer)
}

/// Asks one store and each way to cut it the same queries; gives the rows of the one store.
fn agree(
    name: &str,
    source: &dyn Fn() -> Box<dyn QuadSource>,
    cuts: &[Sharding],
    queries: impl Fn(&Store) -> Vec<(String, String)>,
) -> usize {
    let whole = Store::load(&*source());
    let queries = queries(&whole);
    let wanted: Vec<Vec<String>> = queries
        .iter()
        .map(|(_, text)| rows(ask(&whole, text)))
        .collect();
    for &cut in cuts {
        let start = Instant::now();
        let store = Store::load_sharded(&*source(), Some(cut));
        let modes = [ShardMode::Fork, ShardMode::Dynamic, ShardMode::InPlace];
        let asked = queries.iter().zip(&wanted);
        let mut slowest = (Duration::ZERO, String::new());
        for (((query, text), want), mode) in asked.flat_map(|q| modes.map(|m| (q, m))) {
            let asked = Instant::now();
            let got = rows(ask_in(&store, text, mode));
            if asked.elapsed() > slowest.0 {
                slowest = (asked.elapsed(), format!("{query}, {mode:?}"));
            }
            let what = format!("{name}, {query} over {cut:?}, {mode:?}: {text}");
            assert_same_rows(&what, &got, want);
        }
        println!(
            "{name}: {} shards by {}: {} queries agree, {:.1} s, the slowest ({}) {:.1} s",
            cut.shards,
            cut.placement.name(),
            queries.len(),
            start.elapsed().as_secs_f64(),
            slowest.1,
            slowest.0.as_secs_f64()
        );
    }
    wanted.iter().map(Vec::len).sum()
}

fn lubm_queries() -> Vec<(String, String)> {
    let all = lubm::QUERIES.iter();
    all.map(|q| (q.name.to_string(), q.text.to_string()))
        .collect()
}

fn bsbm_queries(data: &Bsbm, each: u32) -> Vec<(String, String)> {
    let templates = bsbm::EXPLORE.iter().chain(&bsbm::BUSINESS);
    let instances = templates.flat_map(|t| t.instances(data, each));
    instances.map(|i| (i.name, i.text)).collect()
}

fn sp2b_queries() -> Vec<(String, String)> {
    let all = sp2b::QUERIES.iter();
    all.map(|q| (q.name.to_string(), q.text.to_string()))
        .collect()
}

#[test]
fn small_mixes_over_shards_are_one_store_s() {
    let cuts = [
        Sharding::new(3).with_block_shift(Some(0)),
        Sharding::new(2).with_placement(Placement::Hash),
    ];
    let data = Bsbm::new(30, 1);
    let rows = agree("BSBM", &|| Box::new(Bsbm::new(30, 1)), &cuts, |_| {
        bsbm_queries(&data, 1)
    });
    assert!(rows > 50, "{rows} rows");
    let rows = agree(
        "SP²Bench",
        &|| Box::new(Sp2b::new(2_000, 0)),
        &cuts,
        |_| sp2b_queries(),
    );
    assert!(rows > 500, "{rows} rows");
}

/// See docs/testing.md.
#[test]
#[ignore = "long: every number of shards and placement"]
fn mixes_over_any_shards_are_one_store_s() {
    let cuts = all_cuts();
    agree("LUBM", &|| Box::new(Lubm::new(1, 0)), &cuts, |_| {
        lubm_queries()
    });
    let data = Bsbm::new(200, 1);
    agree("BSBM", &|| Box::new(Bsbm::new(200, 1)), &cuts, |_| {
        bsbm_queries(&data, 3)
    });
    agree(
        "SP²Bench",
        &|| Box::new(Sp2b::new(10_000, 0)),
        &cuts,
        |_| sp2b_queries(),
    );
}

/// See docs/testing.md.
#[test]
#[ignore = "long: loads eleven stores of 1.1 million triples"]
fn watdiv_over_any_shards_is_one_store_s() {
    let data = || -> Box<dyn QuadSource> {
        Box::new(Watdiv::new(&WatdivModel::standard(), 10, 0).unwrap())
    };
    let rows = agree("WatDiv", &data, &all_cuts(), |_| {
        let all = watdiv::instances(10, 1, 2).unwrap();
        all.into_iter().map(|i| (i.name, i.text)).collect()
    });
    assert!(rows > 10_000, "{rows} rows");
}

/// The first column of an answer.
fn column(store: &Store, text: &str) -> Vec<Term> {
    match ask(store, text) {
        Answer::Solutions { rows, .. } => {
            let first = rows.into_iter().filter_map(|r| r.into_iter().next());
            first.flatten().collect()
        }
        _ => panic!("{text} is a SELECT"),
    }
}

/// Questions to data of which nothing is known: what it has, how often, next to what, and what single things say.
fn questions(store: &Store) -> Vec<(String, String)> {
    let mut all: Vec<String> = [
        "SELECT ?p (COUNT(*) AS ?n) (COUNT(DISTINCT ?s) AS ?m) { ?s ?p ?o } GROUP BY ?p",
        "SELECT ?c (COUNT(*) AS ?n) { ?s a ?c } GROUP BY ?c",
        "SELECT ?c ?p (COUNT(*) AS ?n) { ?s a ?c ; ?p ?o } GROUP BY ?c ?p",
        "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g",
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o . ?o ?q ?x }",
        "SELECT (COUNT(*) AS ?n) { ?s a ?c OPTIONAL { ?s ?p ?o . ?o a ?d } FILTER(?c != ?d) }",
        "SELECT (MIN(STR(?o)) AS ?least) (MAX(STRLEN(STR(?o))) AS ?longest) { ?s ?p ?o }",
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o FILTER(isLiteral(?o)) MINUS { ?s a ?c } }",
        "SELECT DISTINCT ?o { ?s ?p ?o FILTER(LANG(?o) = 'en') } ORDER BY ?o LIMIT 100",
    ]
    .map(String::from)
    .to_vec();
    let common = "SELECT ?p { ?s ?p ?o } GROUP BY ?p ORDER BY DESC(COUNT(*)) ?p LIMIT 12";
    let predicates = column(store, common);
    for pair in predicates.windows(2) {
        let (p, q) = (&pair[0], &pair[1]);
        all.push(format!(
            "SELECT (COUNT(*) AS ?n) (COUNT(DISTINCT ?a) AS ?m) {{ ?s {p} ?a ; {q} ?b }}"
        ));
        all.push(format!(
            "SELECT (COUNT(*) AS ?n) {{ ?s {p} ?a . ?a {q} ?b }}"
        ));
        all.push(format!("SELECT (COUNT(*) AS ?n) {{ ?s ({p}|{q})+ ?a }}"));
    }
    let things = column(
        store,
        "SELECT DISTINCT ?s { ?s ?p ?o FILTER(isIRI(?s)) } ORDER BY MD5(STR(?s)) LIMIT 40",
    );
    for s in &things {
        all.push(format!("SELECT * {{ {s} ?p ?o OPTIONAL {{ ?o ?q ?x }} }}"));
        all.push(format!("SELECT * {{ ?s ?p {s} }}"));
        all.push(format!("DESCRIBE {s}"));
    }
    let numbered = all.into_iter().enumerate();
    numbered.map(|(i, text)| (format!("{i}"), text)).collect()
}

/// See docs/testing.md.
#[test]
#[ignore = "long: the real data of the shared inputs, eleven stores of each"]
fn real_data_over_any_shards_is_one_store_s() {
    for name in ["zazuko-vocabularies", "ted", "mir-rdf"] {
        let Some(archive) = jindou_testing::shared(&format!("data/{name}.tar.gz")) else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        unpack(&archive, folder.path());
        let mut all = files_below(folder.path());
        all.retain(|path| Sources::builder().path(path).build().is_ok());
        // Files of the archive that are damaged are loaded as far as they go: the same part each time.
        let sources = || -> Box<dyn QuadSource> {
            let builder = Sources::builder().lenient(true);
            let all = all.iter().fold(builder, |b, path| b.path(path));
            Box::new(all.build().unwrap())
        };
        let rows = agree(name, &sources, &all_cuts(), questions);
        println!("{name}: {} files, {rows} rows", all.len());
        assert!(rows > 200, "{rows} rows");
    }
}
