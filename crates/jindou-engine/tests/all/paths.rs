//! Compares random property paths with the definitions of SPARQL 1.1 §18, and checks that searches start from a known
//! end.

use crate::support::{HeapGraph, run};
use jindou_engine::{CollectSink, ExecOptions, QueryTerms, execute_streaming};
use jindou_graph::Graph;
use jindou_plan::PlanOptions;
use jindou_store::{Snapshot, testing};
use jindou_testing::{Rng, from_environment, path_data, path_query};
use oxrdf::{GraphName, NamedNode, Quad};

fn rows(snapshot: &dyn Graph, text: &str, options: &ExecOptions) -> Vec<String> {
    let parsed = jindou_plan::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let plan = jindou_plan::plan(&parsed, snapshot, &PlanOptions::default()).unwrap();
    run(snapshot, &plan, options).unwrap().bag()
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
            let options = ExecOptions {
                threads: 1,
                batch_rows: rng.one(&[16, 2048]),
                ..ExecOptions::default()
            };
            let got = rows(snapshot, &q.text, &options);
            empty += u32::from(q.answer.is_empty());
            if got == q.answer {
                same += 1;
                continue;
            }
            wrong += 1;
            if wrong <= 3 {
                let parsed = jindou_plan::parse(&q.text).unwrap();
                let plan = jindou_plan::plan(&parsed, snapshot, &PlanOptions::default()).unwrap();
                println!(
                    "seed {seed}\n{}\nwant {:#?}\ngot {got:#?}\n{}\n{}",
                    q.text,
                    q.answer,
                    jindou_plan::explain(&plan, snapshot),
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
    let name = |kind: &str, i: usize| NamedNode::new_unchecked(format!("http://e/{kind}{i}"));
    let edge = |s: NamedNode, p: &str, o: NamedNode| {
        let p = NamedNode::new_unchecked(format!("http://e/{p}"));
        Quad::new(s, p, o, GraphName::DefaultGraph)
    };
    let mut out = vec![];
    for i in 0..n {
        if i > 0 {
            out.push(edge(name("c", i), "broader", name("c", (i - 1) / 5)));
        }
        out.push(edge(name("c", i), "scheme", name("s", i % 7)));
        if i % 3 == 0 {
            out.push(edge(name("c", i), "role", name("r", i % 10)));
        }
        if i % 2 == 0 {
            out.push(edge(name("c", i), "part", name("g", i % (n / 20))));
            out.push(edge(name("g", i % (n / 20)), "member", name("c", i)));
        }
    }
    for i in 1..10 {
        out.push(edge(name("r", i), "role", name("r", i / 2)));
    }
    for i in 1..n / 20 {
        out.push(edge(name("g", i), "part", name("g", i / 2)));
        out.push(edge(name("g", i / 2), "member", name("g", i)));
    }
    out
}

/// Runs queries, and checks that all operators of each together output at most the given number of rows.
fn do_little(snapshot: &Snapshot, queries: &[(&str, u64)]) {
    let mut wrong = 0;
    for (text, most) in queries {
        let whole = format!("PREFIX : <http://e/> {text}");
        let parsed = jindou_plan::parse(&whole).unwrap_or_else(|e| panic!("{text}: {e}"));
        let plan = jindou_plan::plan(&parsed, snapshot, &PlanOptions::default()).unwrap();
        let options = ExecOptions {
            threads: 1,
            profile: true,
            ..ExecOptions::default()
        };
        let mut sink = CollectSink::default();
        let profile =
            execute_streaming(&plan, snapshot, &options, &QueryTerms::new(), &mut sink).unwrap();
        let work = profile.nodes.iter().map(|n| n.rows_out).sum::<u64>();
        println!("{work:6} for {:4} rows: {text}", sink.rows);
        if work > *most {
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
        ("SELECT * { ?x (:member*/:role*) :c7 }", 60),
        ("SELECT * { ?x (:member?/:part*) :g150 }", 200),
        (
            "SELECT * { :c3990 :broader ?x . ?x (:broader*/:role) ?y }",
            60,
        ),
        (
            "SELECT * { VALUES ?a { :c3990 :c17 } VALUES ?b { :c0 :c3 } ?a :broader* ?b }",
            60,
        ),
        (
            "SELECT * { VALUES (?a ?b) { (:c3990 :c0) (:c17 :c3) } ?a (:broader*/:part*) ?b }",
            100,
        ),
        ("SELECT * { :c3990 (:broader*/:part?) ?y }", 60),
        (
            "SELECT * { VALUES ?a { :c3990 :c17 } ?a (:broader*/:part?) ?y }",
            60,
        ),
        (
            "SELECT * { ?a :scheme :s3 ; :role :r6 . :c3990 :broader* ?a }",
            800,
        ),
        ("SELECT * { { BIND(:c3990 AS ?a) } ?a :broader* ?b }", 40),
        ("SELECT * { ?a :broader* ?b FILTER(?a = :c3990) }", 40),
        (
            "SELECT * { ?a :broader* ?b FILTER(?a IN (:c3990, :c17)) }",
            40,
        ),
        (
            "SELECT * { { SELECT ?a { :c3990 :broader ?a } LIMIT 1 } ?a (:broader*/:part?) ?y }",
            60,
        ),
        (
            "SELECT * { :c3990 :broader ?a OPTIONAL { ?a (:broader*/:part*) ?y } }",
            100,
        ),
        (
            "SELECT * { :c3990 :broader ?a FILTER EXISTS { ?a (:broader*/:part*) :c0 } }",
            20,
        ),
        (
            "SELECT * { :c3990 :broader ?a FILTER NOT EXISTS { ?a (:broader+/:role) :r9 } }",
            60,
        ),
        (
            "SELECT * { :c3990 :broader ?a MINUS { ?a (:broader+/:part*) :c0 } }",
            60,
        ),
        (
            "SELECT * { VALUES ?a { :c3990 } { ?a (:broader*/:part?) ?y } UNION { ?a :broader+/:scheme ?y } }",
            100,
        ),
        (
            "SELECT * { :c3990 :broader ?a . ?a (:broader|:part)* ?y . ?y :scheme ?s }",
            200,
        ),
        (
            "SELECT * { :c3990 :broader* ?y . ?y :scheme ?s . ?y :part* ?z . ?z :member :c0 }",
            200,
        ),
        ("SELECT * { :c3990 (:broader*/!(:broader|:part)) ?y }", 60),
        ("SELECT * { :c3990 (:broader/(^:broader)?/:role) ?y }", 60),
        ("SELECT * { :nowhere (:broader*/:part?) ?y }", 20),
        (
            "SELECT DISTINCT ?x { ?x (:broader*/:scheme) :s3 . :c3990 :broader ?x }",
            4_000,
        ),
        ("ASK { :c3990 (:broader*/:part*) :c0 }", 20),
    ];
    do_little(&snapshot, &queries);
}

/// In GRAPH ?g, a path and the patterns next to it share the graph variable. That must not make the planner join them
/// by a product.
#[test]
fn searches_begin_where_an_end_is_known_in_graphs() {
    let mut data = hierarchy(2_000);
    for (i, q) in data.iter_mut().enumerate() {
        let g = NamedNode::new_unchecked(format!("http://e/graph{}", i % 2));
        q.graph_name = g.into();
    }
    let (_folder, base) = testing::store_of(&data);
    let snapshot = Snapshot::of_base(base);
    let queries = [
        (
            "SELECT * { GRAPH :graph0 { ?x (:member*/:role*) :c7 } }",
            100,
        ),
        (
            "SELECT * { GRAPH ?g { :c1990 :broader ?x . ?x (:broader*/:role) ?y } }",
            100,
        ),
        (
            "SELECT * { GRAPH ?g { VALUES ?a { :c1990 :c17 } ?a (:broader*/:part?) ?y } }",
            100,
        ),
        (
            "SELECT * { VALUES ?a { :c1990 :c17 } GRAPH ?g { ?a (:broader*/:part?) ?y } }",
            100,
        ),
        (
            "SELECT * { GRAPH ?g { :c1990 :broader ?a OPTIONAL { ?a (:broader*/:part*) ?y } } }",
            100,
        ),
    ];
    do_little(&snapshot, &queries);
}

/// A label in one language, otherwise in another, otherwise any: the second and third OPTIONAL may find ?l already
/// bound.
#[test]
fn optionals_of_one_variable_go_on_from_their_rows() {
    let mut data = hierarchy(2_000);
    for i in 0..2_000 {
        let label =
            |l: &str| oxrdf::Literal::new_language_tagged_literal_unchecked(format!("n{i}"), l);
        let all = ["en", "de", "fr"];
        for l in all.iter().skip(i % 4) {
            data.push(Quad::new(
                NamedNode::new_unchecked(format!("http://e/c{i}")),
                NamedNode::new_unchecked("http://e/label"),
                label(l),
                GraphName::DefaultGraph,
            ));
        }
    }
    let (_folder, base) = testing::store_of(&data);
    let snapshot = Snapshot::of_base(base);
    let labels = "OPTIONAL { ?s :label ?l FILTER(LANG(?l) = \"en\") } \
        OPTIONAL { ?s :label ?l FILTER(LANG(?l) = \"de\") } OPTIONAL { ?s :label ?l }";
    let one = format!("SELECT ?s ?l {{ :c1990 :broader* ?s {labels} }}");
    let none = format!("SELECT ?s {{ :c1990 :broader* ?s {labels} }}");
    let counted = format!("SELECT (COUNT(*) AS ?n) {{ :c1990 :broader* ?s {labels} }}");
    do_little(&snapshot, &[(&one, 100), (&none, 100), (&counted, 100)]);
    for text in [one, none, counted] {
        let text = format!("PREFIX : <http://e/> {text}");
        let want = jindou_testing::answer(&data, &text).unwrap().bag();
        assert_eq!(
            rows(&snapshot, &text, &ExecOptions::default()),
            want,
            "{text}"
        );
    }
}
