//! Published workloads, and queries with variable predicates: numbers of rows are compared with published ones, and
//! answers with `spareval`'s over `oxrdf`'s dataset. Also checks that queries have a plan that the engine runs itself.

use crate::compare::{assert_equal, run};
use crate::oracle;
use jindou::testing::Store;
use jindou::{Answer, QueryOptions, parse_query};
use jindou_testing::shared;
use jindou_workloads::queries::lubm::QUERIES;
use oxrdf::Dataset;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Rows of a query that must have a native plan.
fn native_rows(store: &Store, name: &str, text: &str) -> u64 {
    let options = QueryOptions::default();
    let plan = store.db.plan(text, &options).unwrap();
    let sum = store.db.checksum(&plan, &options);
    sum.unwrap_or_else(|e| panic!("{name}: {e}")).rows
}

#[test]
fn watdiv_counts_are_the_published_ones_and_every_plan_is_native() {
    let Some(folder) = shared("workloads/watdiv/sf10") else {
        return;
    };
    let store = Store::of_files(&[folder.join("watdiv-sf10-seed1024.nt.gz")]);
    let counts = std::fs::read_to_string(folder.join("expected-counts-sf10.tsv")).unwrap();
    let mut seen = 0;
    for line in counts.lines().skip(1).filter(|l| !l.is_empty()) {
        let cells: Vec<&str> = line.split('\t').collect();
        let name = format!("{}-{}", cells[0], cells[1]);
        let text = std::fs::read_to_string(folder.join(format!("queries/{name}.rq"))).unwrap();
        let want: u64 = cells[2].parse().unwrap();
        assert_eq!(native_rows(&store, &name, &text), want, "{name}");
        seen += 1;
    }
    assert!(seen > 50, "{seen} queries");
}

#[test]
fn lubm_counts_are_the_published_ones_and_every_plan_is_native() {
    let Some(file) = shared("workloads/lubm/reference/lubm1-seed0.sorted.nt.gz") else {
        return;
    };
    let store = Store::of_files(&[file]);
    let mut known = 0;
    for q in &QUERIES {
        let rows = native_rows(&store, q.name, q.text);
        if let Some(want) = q.rows(1) {
            assert_eq!(rows, want, "{}", q.name);
            known += 1;
        }
    }
    assert!(known >= 7, "{known} counts known");
}

/// TriG of a small graph in which predicates are also subjects and objects, some edges are in several graphs, and a
/// vertex has an edge to itself.
fn varied_trig() -> String {
    let mut x = 7u64;
    let mut draw = |n: u64| {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) % n
    };
    let mut text = String::from("@prefix : <http://e/> .\n");
    for _ in 0..700 {
        let s = match draw(12) {
            0 => format!(":p{}", draw(7)),
            1 => format!("_:b{}", draw(4)),
            _ => format!(":v{}", draw(40)),
        };
        let o = match draw(8) {
            0 => format!(":p{}", draw(7)),
            1 => format!("{}", draw(5)),
            2 => format!("\"{}\"@en", draw(5)),
            3 => format!(":C{}", draw(3)),
            _ => format!(":v{}", draw(40)),
        };
        let p = match draw(7) {
            0 => "a".to_owned(),
            p => format!(":p{p}"),
        };
        match draw(3) {
            0 => writeln!(text, ":g{} {{ {s} {p} {o} . }}", draw(3)),
            _ => writeln!(text, "{s} {p} {o} ."),
        }
        .unwrap();
    }
    text.push_str(":v1 :p1 :v1 . :p1 :p1 :p1 . :g0 { :v2 :p2 :v2 . }\n");
    text
}

fn dataset_of_trig(text: &str) -> Dataset {
    oxttl::TriGParser::new()
        .for_slice(text.as_bytes())
        .map(|q| oracle::lower_tags(q.unwrap()))
        .collect()
}

#[test]
fn variable_predicates_of_every_shape_are_native_and_right() {
    let text = varied_trig();
    let store = Store::of_trig(&text);
    let data = dataset_of_trig(&text);
    let shapes = [
        "?s ?p ?o",
        "C ?p ?o",
        "?s ?p C",
        "C ?p D",
        "?s ?p ?s",
        "?s ?p ?p",
        "?p ?p ?o",
        "?p ?p ?p",
        "C ?p ?o . ?o ?q ?x",
        "?s ?p C . ?x ?q ?s",
        "?s a C . ?s ?p ?o",
        "?s ?p D . ?s ?p ?o",
        "?s :p1 ?o . ?p ?q ?s",
        "?s ?p ?o . ?p ?q D",
        "C ?p ?x . D ?p ?y",
        "C ?p ?x . ?x ?p ?y",
        "C ?p ?x . ?y ?p ?x",
        "?x ?p ?y . ?y ?q ?x",
        "GRAPH ?g { ?s ?p C }",
        "GRAPH ?g { C ?p ?o }",
        "GRAPH ?g { ?s ?p ?o }",
        "GRAPH :g1 { ?s ?p ?o }",
        "GRAPH :g1 { C ?p ?o . ?o ?q ?x }",
        "C ?p ?o . GRAPH ?g { ?x ?p ?o }",
    ];
    let constants = [
        (":v1", ":v2"),
        (":v3", ":C1"),
        (":p1", ":v5"),
        (":p3", "1"),
        (":C0", "\"2\"@en"),
        (":v17", ":p4"),
        (":nowhere", ":v9"),
    ];
    for shape in shapes {
        for (c, d) in constants {
            // `C` may be a subject, so only `D` is ever replaced by a literal.
            let body = shape.replace('C', c).replace('D', d);
            let query = format!("PREFIX : <http://e/> SELECT * WHERE {{ {body} }}");
            let got = run(&store.db, &query);
            let want = oracle::answer(&data, &parse_query(&query).unwrap()).unwrap();
            assert_equal(&query, &got, &want);
        }
    }
}

/// Parameters for BSBM's explore queries with which every query has rows.
fn bsbm_parameters(store: &Store) -> HashMap<&'static str, String> {
    let first = |text: &str| {
        let a = store.db.query(text).unwrap();
        let cell = a.solutions().first().and_then(|r| r[0].clone());
        cell.unwrap_or_else(|| panic!("nothing for {text}"))
            .to_string()
    };
    const B: &str = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/";
    let product = first(&format!("SELECT ?x {{ ?x a <{B}Product> }} ORDER BY ?x"));
    let feature = |n: usize| {
        first(&format!(
            "SELECT ?x {{ {product} <{B}productFeature> ?x }} ORDER BY ?x OFFSET {n} LIMIT 1"
        ))
    };
    HashMap::from([
        (
            "ProductType",
            first(&format!(
                "SELECT ?x {{ {product} a ?x FILTER(?x != <{B}Product>) }} ORDER BY ?x"
            )),
        ),
        ("ProductFeature1", feature(0)),
        ("ProductFeature2", feature(1)),
        ("ProductFeature3", feature(2)),
        (
            "OfferXYZ",
            first(&format!(
                "SELECT ?x {{ ?x <{B}product> {product} }} ORDER BY ?x"
            )),
        ),
        (
            "ReviewXYZ",
            first(&format!(
                "SELECT ?x {{ ?x <{B}reviewFor> {product} }} ORDER BY ?x"
            )),
        ),
        ("ProductXYZ", product),
        ("x", "100".into()),
        ("y", "1900".into()),
        ("word1", "a".into()),
        (
            "currentDate",
            "\"2008-06-20T00:00:00\"^^<http://www.w3.org/2001/XMLSchema#dateTime>".into(),
        ),
    ])
}

#[test]
fn bsbm_explore_and_sp2b_equal_spareval() {
    let Some(folder) = shared("workloads") else {
        return;
    };
    let file = folder.join("bsbm/bsbm-100.ttl");
    let store = Store::of_files(std::slice::from_ref(&file));
    let data = oracle::dataset(&[file], &[]).unwrap();
    let parameters = bsbm_parameters(&store);
    let mut queries: Vec<(String, String)> = Vec::new();
    for n in 1..=12 {
        let path = folder.join(format!("bsbm/explore/query{n}.txt"));
        let mut text = std::fs::read_to_string(path).unwrap();
        for (name, value) in &parameters {
            text = text.replace(&format!("%{name}%"), value);
        }
        queries.push((format!("BSBM {n}"), text));
    }
    // SP²Bench's queries find little in BSBM's data, but must find the same as `spareval`; a small graph of its own
    // follows below.
    let mut sp2b: Vec<PathBuf> = std::fs::read_dir(folder.join("sp2b"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "txt"))
        .collect();
    sp2b.sort();
    let small = Store::of_trig(SP2B);
    let small_data = dataset_of_trig(SP2B);
    for path in sp2b {
        let name = format!("SP2B {}", path.file_name().unwrap().display());
        let text = std::fs::read_to_string(path).unwrap();
        compare_one(&small, &small_data, &name, &text);
    }
    let mut found = 0;
    for (name, text) in &queries {
        found += usize::from(compare_one(&store, &data, name, text) > 0);
    }
    assert!(found >= 8, "{found} BSBM queries found something");
}

/// Compares one query's answer with `spareval`'s; with LIMIT, where any rows may be returned, only their number.
/// Returns the number of rows.
fn compare_one(store: &Store, data: &Dataset, name: &str, text: &str) -> usize {
    let got = run(&store.db, text);
    let want = oracle::answer(data, &parse_query(text).unwrap()).unwrap();
    let rows = |a: &Answer| match a {
        Answer::Boolean(b) => usize::from(*b),
        Answer::Graph(g) => g.len(),
        Answer::Solutions { rows, .. } => rows.len(),
    };
    if text.contains("LIMIT") {
        assert_eq!(rows(&got), rows(&want), "{name}");
    } else {
        assert_equal(name, &got, &want);
    }
    rows(&got)
}

const SP2B: &str = r#"
@prefix bench: <http://localhost/vocabulary/bench/> .
@prefix dc: <http://purl.org/dc/elements/1.1/> .
@prefix dcterms: <http://purl.org/dc/terms/> .
@prefix foaf: <http://xmlns.com/foaf/0.1/> .
@prefix swrc: <http://swrc.ontoware.org/ontology#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix person: <http://localhost/persons/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix : <http://localhost/> .
bench:Article rdfs:subClassOf foaf:Document .
bench:Inproceedings rdfs:subClassOf foaf:Document .
bench:Journal rdfs:subClassOf foaf:Document .
:j1 a bench:Journal ; dc:title "Journal 1 (1940)" ; dcterms:issued "1940"^^xsd:integer .
:a1 a bench:Article ; dc:creator person:Paul_Erdoes , :ann ; swrc:pages "1" ; swrc:month "5" ;
  swrc:journal :j1 ; dcterms:issued "1940"^^xsd:integer ; dc:title "One" ; rdfs:seeAlso :x1 .
:a2 a bench:Article ; dc:creator :ann , :bob ; swrc:pages "2" ; dcterms:issued "1941"^^xsd:integer ;
  swrc:journal :j1 ; dc:title "Two" ; rdfs:seeAlso :x2 .
:a3 a bench:Article ; dc:creator :bob , :cid ; dc:title "Three" ; dcterms:issued "1950"^^xsd:integer .
:i1 a bench:Inproceedings ; dc:creator :ann ; bench:booktitle "B" ; dc:title "I" ; dcterms:partOf :pr ;
  rdfs:seeAlso :x3 ; swrc:pages "9" ; foaf:homepage :h ; dcterms:issued "1951"^^xsd:integer .
:i2 a bench:Inproceedings ; dc:creator :dan , :bob ; bench:booktitle "B" ; dc:title "I2" ; dcterms:partOf :pr ;
  rdfs:seeAlso :x4 ; swrc:pages "7" ; foaf:homepage :h2 ; dcterms:issued "1952"^^xsd:integer ;
  bench:abstract "abs" ; dcterms:references :bag .
:bag a rdf:Bag ; rdf:_1 :a1 ; rdf:_2 :i1 .
person:Paul_Erdoes a foaf:Person ; foaf:name "Paul Erdoes"^^xsd:string .
:ann a foaf:Person ; foaf:name "Ann"^^xsd:string .
:bob a foaf:Person ; foaf:name "Bob"^^xsd:string .
:cid a foaf:Person ; foaf:name "Cid"^^xsd:string .
:dan a foaf:Person ; foaf:name "Dan"^^xsd:string .
"#;
