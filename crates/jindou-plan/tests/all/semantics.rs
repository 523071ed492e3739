//! The key test: every plan means what its query means. An interpreter carries plans out, step by step over a list of
//! quads; a nested loop over the same list answers the query. Random graphs, random queries.

use crate::interpret::Data;
use crate::nested_loops::{self as query, Case, Rng, Term};
use jindou_plan::Plan;
use oxrdf::vocab::xsd;
use oxrdf::{GraphName, Literal, NamedNode};

fn iri(t: &str) -> Option<NamedNode> {
    let iri = t.strip_prefix('<')?.strip_suffix('>')?;
    Some(NamedNode::new_unchecked(iri))
}

/// The result's rows as terms; `None` when there are too many on the way.
fn carried_out(plan: &Plan, case: &Case) -> Option<Vec<Vec<Term>>> {
    let quads: Vec<oxrdf::Quad> = case
        .quads
        .iter()
        .map(|[s, p, o, g]| {
            let object = match iri(o) {
                Some(iri) => iri.into(),
                None => oxrdf::Term::from(Literal::new_typed_literal(o, xsd::INTEGER)),
            };
            let graph = iri(g).map_or(GraphName::DefaultGraph, GraphName::NamedNode);
            oxrdf::Quad::new(iri(s).unwrap(), iri(p).unwrap(), object, graph)
        })
        .collect();
    let rows = Data::new(&case.snapshot, &quads).run(plan).ok()?;
    let text = |t: Option<oxrdf::Term>| match t {
        Some(oxrdf::Term::Literal(l)) => l.value().to_owned(),
        Some(t) => t.to_string(),
        None => Term::new(),
    };
    let rows = rows.into_iter();
    Some(rows.map(|r| r.into_iter().map(text).collect()).collect())
}

/// Runs `queries` random queries on each of `stores` random stores.
fn run(seed: u64, stores: usize, queries: usize) {
    let (mut native, mut skipped, mut rows, mut empty) = (0, 0, 0usize, 0);
    for i in 0..stores {
        let mut rng = Rng::new(seed + i as u64);
        let case = Case::random(&mut rng);
        for _ in 0..queries {
            let q = query::random(&mut rng, &case.quads);
            let text = q.text();
            let Some(want) = query::answer(&q, &case.quads) else {
                skipped += 1;
                continue;
            };
            let parsed = jindou_plan::parse(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
            let options = jindou_plan::PlanOptions {
                union_default: q.union_default,
                ..Default::default()
            };
            let plan = jindou_plan::plan(&parsed, &case.snapshot, &options)
                .unwrap_or_else(|e| panic!("seed {seed}+{i}: {e}\n{text}"));
            let Some(got) = carried_out(&plan, &case) else {
                skipped += 1;
                continue;
            };
            let explained = jindou_plan::explain(&plan, &case.snapshot);
            assert!(
                query::agree(&q, &want, &got),
                "seed {seed}+{i} union {} patched {}\n{text}\nwant {want:?}\ngot {got:?}\n{explained}\n{plan:#?}\n{:?}",
                q.union_default,
                case.snapshot.is_patched(),
                case.quads
            );
            native += 1;
            rows += want.len();
            empty += usize::from(want.is_empty());
        }
    }
    println!("{native} plans agree, {rows} rows, {empty} empty, {skipped} skipped as too large");
    assert!(
        native * 10 > stores * queries * 7,
        "most cases must be tried"
    );
    assert!(empty * 10 < native * 6, "some queries must have answers");
}

fn rows(case: &Case, text: &str) -> Vec<Vec<String>> {
    let parsed = jindou_plan::parse(text).unwrap();
    let options = jindou_plan::PlanOptions::default();
    let plan = jindou_plan::plan(&parsed, &case.snapshot, &options).unwrap();
    carried_out(&plan, case).unwrap()
}

/// No characteristic set of the base has both predicates, but an update gave them to one vertex.
#[test]
fn a_set_that_an_update_widened_is_not_empty() {
    let case = Case::new(
        &[
            ["<http://e/a>", "<http://e/p>", "<http://e/x>", ""],
            ["<http://e/b>", "<http://e/q>", "<http://e/y>", ""],
        ],
        &[["<http://e/a>", "<http://e/q>", "<http://e/y>", ""]],
    );
    let got = rows(
        &case,
        "SELECT ?s { ?s <http://e/p> ?x . ?s <http://e/q> ?y }",
    );
    assert_eq!(got, [["<http://e/a>"]]);
}

/// A graph variable that another pattern binds still ranges over the dataset's named graphs only.
#[test]
fn from_named_holds_for_graphs_bound_elsewhere() {
    let quads = [
        [
            "<http://e/g1>",
            "<http://e/q>",
            "<http://e/x>",
            "<http://e/d>",
        ],
        [
            "<http://e/g2>",
            "<http://e/q>",
            "<http://e/x>",
            "<http://e/d>",
        ],
        [
            "<http://e/s>",
            "<http://e/p>",
            "<http://e/o>",
            "<http://e/g1>",
        ],
        [
            "<http://e/s>",
            "<http://e/p>",
            "<http://e/o>",
            "<http://e/g2>",
        ],
    ];
    let case = Case::new(&quads, &[]);
    for graph in [
        "{ <http://e/s> <http://e/p> <http://e/o> }",
        "{ ?s <http://e/p> ?o }",
        "{ <http://e/s> ?p ?o }",
        "{ ?s ?p ?o }",
    ] {
        let text = format!(
            "SELECT ?g FROM <http://e/d> FROM NAMED <http://e/g1> {{ ?g <http://e/q> <http://e/x> . GRAPH ?g {graph} }}"
        );
        assert_eq!(rows(&case, &text), [["<http://e/g1>"]], "{text}");
    }
}

#[test]
fn plans_mean_what_queries_mean() {
    run(1, 12, 100);
}

/// The same for longer: `cargo test --release -- --ignored`.
#[test]
#[ignore = "minutes"]
fn plans_mean_what_queries_mean_for_long() {
    run(1_000_000, 1_000, 100);
}
