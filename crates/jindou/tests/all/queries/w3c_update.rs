//! The W3C SPARQL 1.1 Update suite: loads each test's files, runs its request, and compares the store with the expected
//! graphs.

use super::w3c_sparql::run_suite;
use crate::quads;
use jindou::testing::load_nquads;
use jindou::{Database, UpdateOptions};
use jindou_testing::w3c::manifest::{Test, iri_of};
use jindou_testing::w3c::{dataset, same, shared, show};

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
    let lines: String = before.iter().map(|q| format!("{q} .\n")).collect();
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
    if let Some(manifest) = shared("w3c/sparql/sparql11/manifest-sparql11-update.ttl") {
        let failed = run_suite(&manifest, run_test).failed;
        assert!(
            failed.is_empty(),
            "{} failed:\n{}",
            failed.len(),
            failed.join("\n")
        );
    }
}

/// Counts the SPARQL 1.2 tests that pass with what `spargebra` supports; failures are allowed.
#[test]
fn sparql_1_2_updates_are_counted() {
    if let Some(manifest) = shared("w3c/sparql/sparql12/manifest.ttl") {
        run_suite(&manifest, run_test);
    }
}
