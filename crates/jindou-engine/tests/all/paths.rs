//! Compares random property paths with the definitions of SPARQL 1.1 §18, and checks that searches start from a known
//! end.

use crate::support::{HeapGraph, in_batches, plan_of, run, with_threads};
use jindou_engine::{CollectSink, ExecOptions, QueryTerms, execute_streaming};
use jindou_graph::Graph;
use jindou_store::{Snapshot, testing};
use jindou_testing::{Rng, from_environment, named, path_data, path_query, triple};
use oxrdf::{Literal, Quad};

fn rows(snapshot: &dyn Graph, text: &str, options: &ExecOptions) -> Vec<String> {
    run(snapshot, &plan_of(snapshot, text), options)
        .unwrap()
        .bag()
}

fn agree(seeds: std::ops::Range<u64>, queries: usize, on_heap: bool) {
    let (mut same, mut empty, mut wrong) = (0, 0, 0);
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let data = path_data(&mut rng);
        let (_folder, base) = testing::store_of(&data);
        let canonical: Vec<_> = data.iter().map(testing::canonical).collect();
        let (stored, heap) = (Snapshot::of_base(base), HeapGraph::new(&canonical));
        let snapshot: &dyn Graph = if on_heap { &heap } else { &stored };
        for _ in 0..queries {
            let q = path_query(&mut rng, &data);
            let got = rows(snapshot, &q.text, &in_batches(1, rng.one(&[16, 2048])));
            empty += u32::from(q.answer.is_empty());
            if got == q.answer {
                same += 1;
                continue;
            }
            wrong += 1;
            if wrong <= 3 {
                println!(
                    "seed {seed}\n{}\nwant {:#?}\ngot {got:#?}\n{}\n{}",
                    q.text,
                    q.answer,
                    jindou_plan::explain(&plan_of(snapshot, &q.text), snapshot),
                    data.iter().map(|q| format!("{q} .\n")).collect::<String>()
                );
            }
        }
    }
    println!("{same} answers agree ({empty} have no rows), {wrong} are wrong");
    assert_eq!(wrong, 0);
    assert!(same > 2 * empty);
}

#[test]
fn random_paths_agree_with_the_definitions() {
    agree(1..100, 20, false);
}

#[test]
fn random_paths_over_a_graph_that_is_no_store_agree_with_the_definitions() {
    agree(2_000..2_060, 20, true);
}

/// `cargo test --release -p jindou-engine --test all paths:: -- --ignored --nocapture`; `JINDOU_SEED` and
/// `JINDOU_STORES` (of 50 queries each) choose other queries.
#[test]
#[ignore = "long: 100,000 queries"]
fn a_hundred_thousand_random_paths_agree_with_the_definitions() {
    let first = from_environment("JINDOU_SEED", 1_000_000);
    let seeds = first..first + from_environment("JINDOU_STORES", 2_000);
    agree(seeds.clone(), 50, false);
    agree(seeds, 50, true);
}

/// A hierarchy of `n` concepts with five top concepts, collections of concepts, and roles.
fn hierarchy(n: usize) -> Vec<Quad> {
    let mut out = vec![];
    let mut add = |s: (&str, usize), p: &str, o: (&str, usize)| {
        let [s, o] = [s, o].map(|(kind, i)| format!("{kind}{i}"));
        out.push(triple(&s, p, named(&o)));
    };
    for i in 0..n {
        if i > 0 {
            add(("c", i), "broader", ("c", (i - 1) / 5));
        }
        add(("c", i), "scheme", ("s", i % 7));
        if i % 3 == 0 {
            add(("c", i), "role", ("r", i % 10));
        }
        if i % 2 == 0 {
            add(("c", i), "part", ("g", i % (n / 20)));
            add(("g", i % (n / 20)), "member", ("c", i));
        }
    }
    for i in 1..10 {
        add(("r", i), "role", ("r", i / 2));
    }
    for i in 1..n / 20 {
        add(("g", i), "part", ("g", i / 2));
        add(("g", i / 2), "member", ("g", i));
    }
    out
}

/// Runs queries, and checks that all operators of each together output at most the number of rows before the query.
fn do_little(snapshot: &Snapshot, queries: &[&str]) {
    let mut wrong = 0;
    for line in queries {
        let (most, text) = line.split_once(' ').unwrap();
        let most: u64 = most.parse().unwrap();
        let plan = plan_of(snapshot, &format!("PREFIX : <http://e/> {text}"));
        let options = ExecOptions {
            profile: true,
            ..with_threads(1)
        };
        let mut sink = CollectSink::default();
        let profile =
            execute_streaming(&plan, snapshot, &options, &QueryTerms::new(), &mut sink).unwrap();
        let work = profile.nodes.iter().map(|n| n.rows_out).sum::<u64>();
        println!("{work:6} for {:4} rows: {text}", sink.rows);
        if work > most {
            wrong += 1;
            println!("{most} expected\n{}", jindou_plan::explain(&plan, snapshot));
        }
    }
    assert_eq!(wrong, 0);
}

/// Without the known end, each of these queries would compute a whole closure of 20,000 rows and more.
#[test]
fn searches_begin_where_an_end_is_known() {
    let data = hierarchy(4_000);
    let (_folder, base) = testing::store_of(&data);
    let snapshot = Snapshot::of_base(base);
    let queries = [
        "60 SELECT * { ?x (:member*/:role*) :c7 }",
        "200 SELECT * { ?x (:member?/:part*) :g150 }",
        "60 SELECT * { :c3990 :broader ?x . ?x (:broader*/:role) ?y }",
        "60 SELECT * { VALUES ?a { :c3990 :c17 } VALUES ?b { :c0 :c3 } ?a :broader* ?b }",
        "100 SELECT * { VALUES (?a ?b) { (:c3990 :c0) (:c17 :c3) } ?a (:broader*/:part*) ?b }",
        "60 SELECT * { :c3990 (:broader*/:part?) ?y }",
        "60 SELECT * { VALUES ?a { :c3990 :c17 } ?a (:broader*/:part?) ?y }",
        "800 SELECT * { ?a :scheme :s3 ; :role :r6 . :c3990 :broader* ?a }",
        "40 SELECT * { { BIND(:c3990 AS ?a) } ?a :broader* ?b }",
        "40 SELECT * { ?a :broader* ?b FILTER(?a = :c3990) }",
        "40 SELECT * { ?a :broader* ?b FILTER(?a IN (:c3990, :c17)) }",
        "60 SELECT * { { SELECT ?a { :c3990 :broader ?a } LIMIT 1 } ?a (:broader*/:part?) ?y }",
        "100 SELECT * { :c3990 :broader ?a OPTIONAL { ?a (:broader*/:part*) ?y } }",
        "20 SELECT * { :c3990 :broader ?a FILTER EXISTS { ?a (:broader*/:part*) :c0 } }",
        "60 SELECT * { :c3990 :broader ?a FILTER NOT EXISTS { ?a (:broader+/:role) :r9 } }",
        "60 SELECT * { :c3990 :broader ?a MINUS { ?a (:broader+/:part*) :c0 } }",
        "100 SELECT * { VALUES ?a { :c3990 } { ?a (:broader*/:part?) ?y } UNION { ?a :broader+/:scheme ?y } }",
        "200 SELECT * { :c3990 :broader ?a . ?a (:broader|:part)* ?y . ?y :scheme ?s }",
        "200 SELECT * { :c3990 :broader* ?y . ?y :scheme ?s . ?y :part* ?z . ?z :member :c0 }",
        "60 SELECT * { :c3990 (:broader*/!(:broader|:part)) ?y }",
        "60 SELECT * { :c3990 (:broader/(^:broader)?/:role) ?y }",
        "20 SELECT * { :nowhere (:broader*/:part?) ?y }",
        "4000 SELECT DISTINCT ?x { ?x (:broader*/:scheme) :s3 . :c3990 :broader ?x }",
        "20 ASK { :c3990 (:broader*/:part*) :c0 }",
    ];
    do_little(&snapshot, &queries);
}

/// In GRAPH ?g, a path and the patterns next to it share the graph variable. That must not make the planner join them
/// by a product.
#[test]
fn searches_begin_where_an_end_is_known_in_graphs() {
    let mut data = hierarchy(2_000);
    for (i, q) in data.iter_mut().enumerate() {
        q.graph_name = named(&format!("graph{}", i % 2)).into();
    }
    let (_folder, base) = testing::store_of(&data);
    let snapshot = Snapshot::of_base(base);
    let queries = [
        "100 SELECT * { GRAPH :graph0 { ?x (:member*/:role*) :c7 } }",
        "100 SELECT * { GRAPH ?g { :c1990 :broader ?x . ?x (:broader*/:role) ?y } }",
        "100 SELECT * { GRAPH ?g { VALUES ?a { :c1990 :c17 } ?a (:broader*/:part?) ?y } }",
        "100 SELECT * { VALUES ?a { :c1990 :c17 } GRAPH ?g { ?a (:broader*/:part?) ?y } }",
        "100 SELECT * { GRAPH ?g { :c1990 :broader ?a OPTIONAL { ?a (:broader*/:part*) ?y } } }",
    ];
    do_little(&snapshot, &queries);
}

/// A label in one language, otherwise in another, otherwise any: the second and third OPTIONAL may find ?l already
/// bound.
#[test]
fn optionals_of_one_variable_go_on_from_their_rows() {
    let mut data = hierarchy(2_000);
    for i in 0..2_000 {
        for l in ["en", "de", "fr"].into_iter().skip(i % 4) {
            let label = Literal::new_language_tagged_literal_unchecked(format!("n{i}"), l);
            data.push(triple(&format!("c{i}"), "label", label));
        }
    }
    let (_folder, base) = testing::store_of(&data);
    let snapshot = Snapshot::of_base(base);
    let labels = "OPTIONAL { ?s :label ?l FILTER(LANG(?l) = \"en\") } \
        OPTIONAL { ?s :label ?l FILTER(LANG(?l) = \"de\") } OPTIONAL { ?s :label ?l }";
    for columns in ["?s ?l", "?s", "(COUNT(*) AS ?n)"] {
        let text = format!("SELECT {columns} {{ :c1990 :broader* ?s {labels} }}");
        do_little(&snapshot, &[&format!("100 {text}")]);
        let text = format!("PREFIX : <http://e/> {text}");
        let want = jindou_testing::answer(&data, &text).unwrap().bag();
        let got = rows(&snapshot, &text, &ExecOptions::default());
        assert_eq!(got, want, "{text}");
    }
}
