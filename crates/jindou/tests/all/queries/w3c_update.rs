//! The W3C SPARQL 1.1 Update suite: loads each test's files, runs its request, and compares the store with the expected
//! graphs.

use crate::quads;
use jindou::testing::load_nquads;
use jindou::{Database, UpdateOptions};
use jindou_testing::w3c::manifest::{Test, iri_of};
use jindou_testing::w3c::{dataset, manifest, same, shared, show};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: Vec<String>,
    other: usize,
}

fn run_suite(suite: &str) -> Option<Tally> {
    let mut tally = Tally::default();
    let path = shared(&format!("w3c/sparql/{suite}"))?;
    for test in manifest::read(&path).unwrap() {
        match catch_unwind(AssertUnwindSafe(|| run_test(&test))) {
            Ok(Some(Ok(()))) => tally.passed += 1,
            Ok(Some(Err(why))) => tally.failed.push(format!("{}: {why}", test.name)),
            Ok(None) => tally.other += 1,
            Err(_) => tally.failed.push(format!("{}: panicked", test.name)),
        }
    }
    println!(
        "{suite}: {} passed, {} failed, {} of other kinds",
        tally.passed,
        tally.failed.len(),
        tally.other
    );
    for f in &tally.failed {
        println!("  failed: {f}");
    }
    assert!(tally.passed > 0, "{suite} has no test");
    Some(tally)
}

/// Runs a test; `None` if it is not an update test.
fn run_test(test: &Test) -> Option<Result<(), String>> {
    let text = || std::fs::read_to_string(&test.query).map_err(|e| e.to_string());
    let base = iri_of(&test.query);
    let parse =
        || text().and_then(|t| jindou::parse_update(&t, Some(&base)).map_err(|e| e.to_string()));
    Some(match test.kind.as_str() {
        "PositiveUpdateSyntaxTest" | "PositiveUpdateSyntaxTest11" => parse().map(drop),
        // The suite gives some of its updates the type of query tests.
        "NegativeSyntaxTest11" if test.query.extension().is_some_and(|e| e == "ru") => {
            match parse() {
                Ok(_) => Err("was accepted".into()),
                Err(_) => Ok(()),
            }
        }
        "NegativeUpdateSyntaxTest" | "NegativeUpdateSyntaxTest11" => match parse() {
            Ok(_) => Err("was accepted".into()),
            Err(_) => Ok(()),
        },
        "UpdateEvaluationTest" => text().and_then(|t| evaluate(test, &t, &base)),
        _ => return None,
    })
}

fn evaluate(test: &Test, text: &str, base: &str) -> Result<(), String> {
    let before = dataset(&test.data, &test.graphs)?;
    let want = dataset(&test.after.0, &test.after.1)?;
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let store = dir.path().join("store");
    let mut lines = String::new();
    for q in &before {
        let _ = writeln!(lines, "{q} .");
    }
    load_nquads(&store, &lines).map_err(|e| e.to_string())?;
    let db = Database::of_snapshot(
        Database::open(&store)
            .map_err(|e| e.to_string())?
            .snapshot(),
    );
    let options = UpdateOptions::default()
        .with_threads(2)
        .with_base(base.to_owned());
    db.update(text, &options).map_err(|e| e.to_string())?;
    let got = quads::all_quads(&db);
    if same(&got, &want) {
        return Ok(());
    }
    Err(format!("got {}\n   want {}", show(&got), show(&want)))
}

#[test]
fn sparql_1_1_updates() {
    if let Some(tally) = run_suite("sparql11/manifest-sparql11-update.ttl") {
        assert!(
            tally.failed.is_empty(),
            "{} failed:\n{}",
            tally.failed.len(),
            tally.failed.join("\n")
        );
    }
}

/// Counts the SPARQL 1.2 tests that pass with what `spargebra` supports; failures are allowed.
#[test]
fn sparql_1_2_updates_are_counted() {
    run_suite("sparql12/manifest.ttl");
}
