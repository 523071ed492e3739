//! Estimates of comparisons are close to the actual numbers of rows even if the values of one predicate are distributed
//! differently from the values of all predicates.

use jindou_plan::{PlanOptions, parse, plan};
use jindou_store::Snapshot;
use jindou_store::testing::store_of;
use jindou_testing::triple;
use oxrdf::Literal;

const THINGS: i64 = 3000;

/// The values that subject `i` has: a small integer, a large one, an integer that is mostly the same, and a name.
fn values(i: i64) -> [(&'static str, Literal); 4] {
    [
        ("age", Literal::from(i * 37 % 100)),
        ("price", Literal::from(1_000_000 + i * 7)),
        ("rank", Literal::from(if i % 50 == 0 { i } else { 1 })),
        (
            "name",
            Literal::from(format!("name {:04}", i * 11 % THINGS)),
        ),
    ]
}

fn number(l: &Literal) -> i64 {
    l.value().parse().unwrap()
}

fn things() -> (tempfile::TempDir, Snapshot) {
    let mut quads = vec![];
    for i in 0..THINGS {
        for (predicate, value) in values(i) {
            quads.push(triple(&format!("thing{i}"), predicate, value));
        }
    }
    let (folder, base) = store_of(&quads);
    (folder, Snapshot::of_base(base))
}

#[test]
fn comparisons_are_estimated_by_the_values_of_their_predicate() {
    let (_folder, snapshot) = things();
    type Passes = dyn Fn(&Literal) -> bool;
    let cases: [(&str, &str, &Passes); 11] = [
        ("age", "?v < 5", &|l| number(l) < 5),
        ("age", "?v >= 5", &|l| number(l) >= 5),
        ("age", "?v < 50 && ?v != 3", &|l| {
            number(l) < 50 && number(l) != 3
        }),
        ("age", "!(?v < 90)", &|l| number(l) >= 90),
        ("age", "?v < 10 || ?v > 80", &|l| {
            number(l) < 10 || number(l) > 80
        }),
        // No age is above 1000, but many values of the other predicates are.
        ("age", "?v > 1000", &|l| number(l) > 1000),
        ("price", "?v < 1000700.5", &|l| number(l) <= 1_000_700),
        ("price", "?v > 1010000", &|l| number(l) > 1_010_000),
        ("rank", "?v = 1", &|l| number(l) == 1),
        ("rank", "?v = 17", &|l| number(l) == 17),
        ("name", "?v < \"name 1000\"", &|l| l.value() < "name 1000"),
    ];
    for (predicate, filter, passes) in cases {
        let text = format!("SELECT * {{ ?s <http://e/{predicate}> ?v FILTER({filter}) }}");
        let rows = (0..THINGS)
            .flat_map(values)
            .filter(|(p, value)| *p == predicate && passes(value))
            .count() as f64;
        let parsed = parse(&text).unwrap();
        let plan = plan(&parsed, &snapshot, &PlanOptions::default()).unwrap();
        let estimate = plan.exploration().unwrap().steps.last().unwrap().rows;
        // If at most 3 % of the values pass, a sample of 32 may contain none, and half a hit is assumed.
        let slack = THINGS as f64 / 32.0;
        assert!(
            estimate <= 2.0 * rows + slack && rows <= 2.0 * estimate + slack,
            "{text}: {estimate} rows are estimated, {rows} there are"
        );
    }
}

#[test]
fn a_plan_begins_with_the_rarer_value() {
    let (_folder, snapshot) = things();
    let first = |filters: &str| {
        let text =
            format!("SELECT * {{ ?s <http://e/age> ?a ; <http://e/price> ?p FILTER({filters}) }}");
        let plan = plan(&parse(&text).unwrap(), &snapshot, &PlanOptions::default()).unwrap();
        let explained = jindou_plan::explain(&plan, &snapshot);
        let at = |name: &str| {
            explained
                .find(name)
                .unwrap_or_else(|| panic!("{explained}"))
        };
        (at("age>") < at("price>"), explained)
    };
    let (age, explained) = first("?a < 3 && ?p > 1000000");
    assert!(age, "{explained}");
    let (age, explained) = first("?a < 98 && ?p > 1020900");
    assert!(!age, "{explained}");
}
