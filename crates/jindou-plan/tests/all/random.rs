//! Plans of random queries, and of counts.

use jindou_plan::{JoinKind, MatchBy, Operator, Plan, PlanOptions, Walk};
use jindou_store::{Snapshot, testing};
use jindou_testing::{Query, Rng, comparing_quads, comparing_query, quads};
use oxrdf::Quad;
use std::collections::BTreeSet;

fn snapshot(data: &[Quad]) -> (tempfile::TempDir, Snapshot) {
    let (folder, base) = testing::store_of(data);
    (folder, Snapshot::of_base(base))
}

fn plan(text: &str, snapshot: &Snapshot) -> Plan {
    let parsed = jindou_plan::parse(text).unwrap();
    jindou_plan::plan(&parsed, snapshot, &PlanOptions::default())
        .unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Adds the kind and the comparison of each join in the plan that matches by comparisons, such as `Anti by Value`.
fn note(plan: &Plan, matched: &mut BTreeSet<String>) {
    plan.root.walk(&mut |op| {
        if let Operator::Join(join) = op {
            let kind = match join.kind {
                JoinKind::Mark(_) => "Mark".to_owned(),
                other => format!("{other:?}"),
            };
            for m in &join.matches {
                let by = match m.by {
                    MatchBy::Order(_) => "Order".to_owned(),
                    other => format!("{other:?}"),
                };
                matched.insert(format!("{kind} by {by}"));
            }
            if !join.either.is_empty() {
                matched.insert(format!("{kind} by either"));
            }
        }
        Walk::Into
    });
}

/// The random queries that the engine's tests execute contain every combination of a kind of join and a comparison.
#[test]
fn random_comparisons_make_every_kind_of_join() {
    let mut matched = BTreeSet::new();
    for seed in 1..41 {
        let mut rng = Rng::new(seed);
        let data = comparing_quads(&mut rng);
        let (_folder, snapshot) = snapshot(&data);
        for _ in 0..20 {
            let Query { text, .. } = comparing_query(&mut rng, &data);
            note(&plan(&text, &snapshot), &mut matched);
        }
    }
    for kind in ["Inner", "Left", "Semi", "Anti", "Mark"] {
        for by in ["Term", "Value", "Order", "either"] {
            let join = format!("{kind} by {by}");
            assert!(matched.contains(&join), "no {join}: {matched:?}");
        }
    }
}

/// Queries that counts can answer have no exploration. Their answers are tested by `random_overviews` of `jindou-engine`
/// and by `tests/cases/patterns/counted.test` of `jindou`.
#[test]
fn counts_come_from_the_segments() {
    for seed in 0..20 {
        let (_folder, snapshot) = snapshot(&quads(&mut Rng::new(seed)));
        for text in [
            "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
            "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p",
            "SELECT DISTINCT ?p { ?s ?p ?o }",
            "SELECT (COUNT(DISTINCT ?p) AS ?n) { ?s ?p ?o }",
            "SELECT (COUNT(DISTINCT ?s) AS ?n) (COUNT(DISTINCT ?o) AS ?m) { ?s ?p ?o }",
            "SELECT (COUNT(*) AS ?n) { SELECT DISTINCT ?s { ?s ?p ?o } }",
            "SELECT (COUNT(DISTINCT ?s) AS ?n) { ?s ?p ?o FILTER(isIRI(?p) && ?p != rdf:type) }",
            "SELECT (COUNT(DISTINCT ?s) AS ?n) { GRAPH ?g { ?s ?p ?o } }",
            "SELECT (COUNT(DISTINCT ?s) AS ?n) (COUNT(DISTINCT ?o) AS ?m) { ?s rdf:type ?o }",
            "SELECT (COUNT(DISTINCT ?s) AS ?n) { VALUES ?p { rdf:type } ?s ?p ?o }",
            "SELECT ?p (COUNT(DISTINCT ?s) AS ?n) (COUNT(DISTINCT ?o) AS ?m) (COUNT(*) AS ?k) { ?s ?p ?o } \
             GROUP BY ?p ORDER BY DESC(?n)",
            "SELECT ?x (COUNT(DISTINCT ?y) AS ?n) { ?s ?p ?o BIND(?s AS ?y) } GROUP BY (?p AS ?x)",
            "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o FILTER(STRSTARTS(STR(?p), \"http://e/\")) } GROUP BY ?p",
            "SELECT ?t (COUNT(*) AS ?n) { ?s ?p ?o BIND(isIRI(?p) AS ?t) } GROUP BY ?t",
            "SELECT (COUNT(*) AS ?n) { ?s ?p ?o FILTER(CONTAINS(STR(?p), \"p1\")) }",
            "SELECT (COUNT(*) AS ?n) { ?s ?p ?o FILTER(isLITERAL(?o)) }",
            "SELECT (COUNT(*) AS ?n) { ?s ?p ?o FILTER(isBLANK(?s)) }",
            "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o FILTER(!isIRI(?o) && ?p != rdf:type) } GROUP BY ?p",
            "SELECT ?l (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY (LANG(?o) AS ?l)",
            "SELECT ?p ?d (COUNT(*) AS ?n) (COUNT(DISTINCT ?o) AS ?m) { ?s ?p ?o BIND(DATATYPE(?o) AS ?d) } GROUP BY ?p ?d",
            "SELECT (SUM(IF(isLITERAL(?o), 1, 0)) AS ?n) (COUNT(DATATYPE(?o)) AS ?m) { ?s ?p ?o }",
            "SELECT (COUNT(DISTINCT LANG(?o)) AS ?n) { ?s ?p ?x BIND(?x AS ?o) }",
            "SELECT DISTINCT (DATATYPE(?o) AS ?d) { ?s ?p ?o }",
            "SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH <http://e/none> { ?s ?p ?o } } }",
            "SELECT ?l (COUNT(*) AS ?n) { { ?s ?p ?o FILTER(isLITERAL(?o)) BIND(LANG(?o) AS ?l) } UNION \
             { ?s ?p ?o FILTER(!isLITERAL(?o)) } } GROUP BY ?l",
            "SELECT (COUNT(DISTINCT ?s) AS ?n) { BIND(rdf:type AS ?p) ?s ?p ?o }",
        ] {
            let plan = plan(&format!("{RDF}{text}"), &snapshot);
            assert!(!explores(&plan), "{text}: {:#?}", plan.root);
        }
    }
}

const RDF: &str = "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> ";

fn explores(plan: &Plan) -> bool {
    let mut found = false;
    plan.root.walk(&mut |op| {
        found |= matches!(op, Operator::Explore(_) | Operator::Steps(_));
        Walk::Into
    });
    found
}

/// The counts of a class come from its intervals, however the class is written.
#[test]
fn counts_of_a_class_come_from_the_segments() {
    let mut data = quads(&mut Rng::new(3));
    for q in &mut data {
        q.graph_name = oxrdf::GraphName::DefaultGraph;
    }
    let class = oxrdf::NamedNode::new_unchecked("http://e/c0");
    assert!(data.iter().any(|q| q.object == class.clone().into()));
    let (_folder, snapshot) = snapshot(&data);
    for body in [
        "?s a <http://e/c0> . ?s ?p ?o",
        "?s ?p ?o . ?s a <http://e/c0>",
        "?o a <http://e/c0> . ?s ?p ?o",
        "VALUES ?c { <http://e/c0> } ?s a ?c ; ?p ?o",
        "?s a ?c ; ?p ?o FILTER(?c = <http://e/c0>)",
        "?s ?p ?o FILTER EXISTS { ?s a <http://e/c0> }",
        "{ SELECT ?s { ?s a <http://e/c0> } } ?s ?p ?o",
        "{ SELECT DISTINCT ?s { ?s a <http://e/c0> } } ?s ?p ?o",
    ] {
        let text = format!("SELECT ?p (COUNT(*) AS ?n) {{ {body} }} GROUP BY ?p");
        let plan = plan(&text, &snapshot);
        assert!(!explores(&plan), "{text}: {:#?}", plan.root);
    }
}
