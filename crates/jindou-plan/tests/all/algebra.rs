//! Random queries over all operators on random small graphs: the plan, carried out by an interpreter that knows only
//! the plan's documentation, gives what `spareval` gives.

use crate::interpret;
use interpret::Data;
use jindou_plan::{Form, JoinKind, MatchBy, Operator, Plan, PlanOptions, Walk};
use jindou_store::{Snapshot, testing};
use jindou_testing::{Answer, Query, Rng, answer, comparing_quads, comparing_query, quads, query};
use oxrdf::Quad;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[derive(Default)]
struct Tally {
    same: usize,
    rows: usize,
    empty: usize,
    skipped: usize,
    wrong: Vec<String>,
    /// Comparisons that joins match by.
    matched: BTreeSet<String>,
}

impl Tally {
    /// Notes the joins by comparisons, such as `hash anti-join` by `Value`.
    fn note(&mut self, plan: &Plan) {
        plan.root.walk(&mut |op| {
            if let Operator::Join(j) = op {
                let kind = match j.kind {
                    JoinKind::Mark(_) => "Mark".to_owned(),
                    other => format!("{other:?}"),
                };
                for m in &j.matches {
                    let by = match m.by {
                        MatchBy::Order(_) => "Order".to_owned(),
                        other => format!("{other:?}"),
                    };
                    self.matched.insert(format!("{kind} by {by}"));
                }
                if !j.either.is_empty() {
                    self.matched.insert(format!("{kind} by either"));
                }
            }
            Walk::Into
        });
    }
}

/// Differences that are shown.
const SHOWN: usize = 4;

/// Random data, and random queries over it.
type Maker = (fn(&mut Rng) -> Vec<Quad>, fn(&mut Rng, &[Quad]) -> Query);

const ALL: Maker = (quads, query);
/// Parts that only comparisons of their values connect.
const COMPARING: Maker = (comparing_quads, comparing_query);

/// One store, several queries.
fn case(seed: u64, queries: usize, maker: Maker, tally: &mut Tally) {
    let mut rng = Rng::new(seed);
    let data = (maker.0)(&mut rng);
    let (_folder, base) = testing::store_of(&data);
    let snapshot = Snapshot::of_base(base);
    for _ in 0..queries {
        let q = (maker.1)(&mut rng, &data);
        let want = match answer(&data, &q.oracle) {
            Ok(a) => a,
            Err(e) => panic!("seed {seed}: {e}\n{}", q.oracle),
        };
        let parsed = jindou_plan::parse(&q.text).unwrap_or_else(|e| panic!("{}: {e}", q.text));
        let options = PlanOptions::default();
        let plan = jindou_plan::plan(&parsed, &snapshot, &options)
            .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", q.text));
        let carried_out = catch_unwind(AssertUnwindSafe(|| Data::new(&snapshot, &data).run(&plan)));
        let Ok(carried_out) = carried_out else {
            tally.wrong.push(format!(
                "seed {seed}: a contract is broken\n{}\n{:#?}",
                q.text, plan.root
            ));
            continue;
        };
        let Ok(rows) = carried_out else {
            tally.skipped += 1;
            continue;
        };
        let got = match plan.form {
            Form::Ask => Answer::Boolean(!rows.is_empty()),
            _ => Answer::Rows(vec![], rows),
        };
        let (want, got) = (want.bag(), got.bag());
        let same = if q.counts_only {
            want.len() == got.len()
        } else {
            want == got
        };
        if !same {
            tally.wrong.push(format!(
                "seed {seed}\n{}\n{}\nwant {want:#?}\ngot {got:#?}\n{}\n{:#?}\n{}",
                q.text,
                q.oracle,
                jindou_plan::explain(&plan, &snapshot),
                plan.root,
                data.iter().map(|q| format!("{q} .\n")).collect::<String>()
            ));
            continue;
        }
        tally.note(&plan);
        tally.same += 1;
        tally.rows += want.len();
        tally.empty += usize::from(want.is_empty());
    }
}

fn run(first: u64, stores: u64, queries: usize, maker: Maker) -> BTreeSet<String> {
    let mut tally = Tally::default();
    for seed in first..first + stores {
        case(seed, queries, maker, &mut tally);
        if tally.wrong.len() >= SHOWN {
            break;
        }
    }
    assert!(
        tally.wrong.is_empty(),
        "{} after {} that agree:\n{}",
        tally.wrong.len(),
        tally.same,
        tally.wrong.join("\n\n")
    );
    let Tally {
        same,
        rows,
        empty,
        skipped,
        wrong: _,
        matched,
    } = tally;
    println!("{same} plans agree, {rows} rows, {empty} empty, {skipped} skipped as too large");
    assert!(skipped * 10 < same, "most cases must be tried");
    assert!(empty * 10 < same * 7, "some queries must have answers");
    matched
}

/// Queries that the segments' counts can answer are answered without a step, and rightly.
#[test]
fn counts_come_from_the_segments() {
    let texts = [
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
        "SELECT (COUNT(?s) AS ?n) { ?s <http://e/p0> ?o }",
        "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p",
        "SELECT DISTINCT ?p { ?s ?p ?o }",
        "SELECT ?c (COUNT(?s) AS ?n) { ?s a ?c } GROUP BY ?c",
        "SELECT ?s (COUNT(*) AS ?n) { ?s <http://e/p1> ?o } GROUP BY ?s HAVING (COUNT(*) > 1)",
        // Not these: the same variable twice, and a filter.
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?s }",
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o FILTER(isIRI(?o)) }",
    ];
    for seed in 0..20 {
        let data = quads(&mut Rng::new(seed));
        let (_folder, base) = testing::store_of(&data);
        let snapshot = Snapshot::of_base(base);
        for (i, text) in texts.iter().enumerate() {
            let parsed = jindou_plan::parse(text).unwrap();
            let plan = jindou_plan::plan(&parsed, &snapshot, &PlanOptions::default())
                .unwrap_or_else(|e| panic!("{text}: {e}"));
            let known = plan.exploration().is_none();
            assert!(
                known || i != 0 && i != 2 && i != 3,
                "{text}: {:#?}",
                plan.root
            );
            let Ok(rows) = Data::new(&snapshot, &data).run(&plan) else {
                panic!("{text}: too large")
            };
            let want = answer(&data, text).unwrap().bag();
            assert_eq!(Answer::Rows(vec![], rows).bag(), want, "seed {seed} {text}");
        }
    }
}

#[test]
fn plans_mean_what_spareval_says() {
    run(1, 80, 25, ALL);
}

#[test]
fn plans_of_comparisons_mean_what_spareval_says() {
    let matched = run(1, 40, 20, COMPARING);
    for kind in ["Inner", "Left", "Semi", "Anti", "Mark"] {
        for by in ["Term", "Value", "Order", "either"] {
            let way = format!("{kind} by {by}");
            assert!(matched.contains(&way), "no {way}: {matched:?}");
        }
    }
}

/// The same for longer: `cargo test --release -p jindou-plan --test all algebra:: -- --ignored`.
#[test]
#[ignore = "minutes"]
fn plans_mean_what_spareval_says_for_long() {
    run(1_000_000, 2_000, 50, ALL);
}
