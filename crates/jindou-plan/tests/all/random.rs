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

/// Queries that the counts of segments can answer have no exploration. Their answers are tested by
/// `tests/cases/counted.test` of `jindou`.
#[test]
fn counts_come_from_the_segments() {
    for seed in 0..20 {
        let (_folder, snapshot) = snapshot(&quads(&mut Rng::new(seed)));
        for text in [
            "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
            "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p",
            "SELECT DISTINCT ?p { ?s ?p ?o }",
        ] {
            let plan = plan(text, &snapshot);
            assert!(plan.exploration().is_none(), "{text}: {:#?}", plan.root);
        }
    }
}
