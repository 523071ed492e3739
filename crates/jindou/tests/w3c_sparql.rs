//! The W3C SPARQL query suites against a database loaded from each test's files.

#[path = "w3c/answers.rs"]
mod answers;
#[path = "w3c/manifest.rs"]
mod manifest;

use jindou::{Database, LoadOptions, Progress, parse_query};
use jindou_parse::{Input, Sources};
use manifest::{Test, iri_of, shared};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: Vec<String>,
    other: usize,
}

fn run_suite(manifest: &Path) -> Tally {
    let mut tally = Tally::default();
    for test in manifest::read(manifest) {
        match catch_unwind(AssertUnwindSafe(|| run_test(&test))) {
            Ok(Some(Ok(()))) => tally.passed += 1,
            Ok(Some(Err(why))) => tally.failed.push(format!("{}: {why}", test.name)),
            Ok(None) => tally.other += 1,
            Err(_) => tally.failed.push(format!("{}: panicked", test.name)),
        }
    }
    tally
}

/// `None`: not a query test.
fn run_test(test: &Test) -> Option<Result<(), String>> {
    let text = || std::fs::read_to_string(&test.query).map_err(|e| e.to_string());
    Some(match test.kind.as_str() {
        "PositiveSyntaxTest" | "PositiveSyntaxTest11" | "PositiveSyntaxTest12" => {
            text().and_then(|t| parse(&test.query, &t).map(drop))
        }
        "NegativeSyntaxTest" | "NegativeSyntaxTest11" | "NegativeSyntaxTest12" => {
            match text().and_then(|t| parse(&test.query, &t)) {
                Ok(_) => Err("was accepted".into()),
                Err(_) => Ok(()),
            }
        }
        "QueryEvaluationTest" | "CSVResultFormatTest" if !test.entailment => evaluate(test),
        _ => return None,
    })
}

fn with_base(path: &Path, text: &str) -> String {
    format!("BASE <{}>\n{text}", iri_of(path))
}

fn parse(path: &Path, text: &str) -> Result<spargebra::Query, String> {
    parse_query(&with_base(path, text)).map_err(|e| e.to_string())
}

fn evaluate(test: &Test) -> Result<(), String> {
    let text = std::fs::read_to_string(&test.query).map_err(|e| e.to_string())?;
    let query = parse(&test.query, &text)?;
    let mut sources = Sources::builder();
    let mut graphs: Vec<(String, PathBuf)> = test.graphs.clone();
    if test.data.is_empty()
        && graphs.is_empty()
        && let Some(dataset) = query.dataset()
    {
        let named = dataset.named.iter().flatten();
        for n in dataset.default.iter().chain(named) {
            let file = PathBuf::from(n.as_str().trim_start_matches("file://"));
            if !graphs.iter().any(|g| g.0 == n.as_str()) {
                graphs.push((n.as_str().to_owned(), file));
            }
        }
    }
    for d in &test.data {
        sources = sources.input(Input {
            path: d.clone(),
            format: None,
            graph: None,
        });
    }
    for (name, file) in graphs {
        sources = sources.input(Input {
            path: file,
            format: None,
            graph: Some(name),
        });
    }
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let store = dir.path().join("store");
    let sources = sources.build().map_err(|e| e.to_string())?;
    let options = LoadOptions {
        threads: 1,
        memory: 1 << 28,
        ..LoadOptions::default()
    };
    Database::load(&store, &sources, &options, &Progress::default()).map_err(|e| e.to_string())?;
    let db = Database::open(&store).map_err(|e| e.to_string())?;
    let got = db
        .query(&with_base(&test.query, &text))
        .map_err(|e| e.to_string())?;
    let result = test.result.as_ref().ok_or("no expected result")?;
    let (want, ordered) = answers::read(result).ok_or("expected result unreadable")?;
    if result.extension().is_some_and(|e| e == "csv") {
        return same_csv(&db, &with_base(&test.query, &text), result);
    }
    if answers::same(&got, &want, ordered) {
        Ok(())
    } else {
        Err(format!("got {got:?}\n   want {want:?}"))
    }
}

/// CSV loses what kind of term a value is, so lines are compared, in any order.
fn same_csv(db: &Database, text: &str, result: &Path) -> Result<(), String> {
    let mut out = Vec::new();
    let mut writer = jindou::ResultWriter::new(&mut out, jindou::ResultFormat::Csv);
    db.run(text, &jindou::QueryOptions::default(), &mut writer)
        .map_err(|e| e.to_string())?;
    drop(writer);
    let lines = |b: &[u8]| {
        let mut v: Vec<String> = String::from_utf8_lossy(b)
            .lines()
            .map(|l| l.trim_end().to_owned())
            .collect();
        v.sort();
        v
    };
    let want = std::fs::read(result).map_err(|e| e.to_string())?;
    let (got, want) = (lines(&out), lines(&want));
    let blank = |l: &[String]| l.iter().any(|l| l.contains("_:"));
    if got == want || (got.len() == want.len() && blank(&want)) {
        Ok(())
    } else {
        Err(format!("got {got:?} want {want:?}"))
    }
}

fn report(name: &str, tally: &Tally) {
    println!(
        "{name}: {} passed, {} failed, {} of other kinds",
        tally.passed,
        tally.failed.len(),
        tally.other
    );
    for f in &tally.failed {
        println!("  failed: {f}");
    }
}

#[test]
fn sparql_1_0_and_1_1_queries() {
    let Some(shared) = shared() else { return };
    let suites = [
        "sparql10/manifest.ttl",
        "sparql11/manifest-sparql11-query.ttl",
        "sparql11/manifest-sparql11-results.ttl",
    ];
    let mut failed = Vec::new();
    for suite in suites {
        let tally = run_suite(&shared.join("w3c/sparql").join(suite));
        report(suite, &tally);
        assert!(tally.passed > 0, "{suite} has no test");
        failed.extend(tally.failed);
    }
    assert!(
        failed.is_empty(),
        "{} failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

/// Counted, not required: what `spargebra` has of SPARQL 1.2.
#[test]
fn sparql_1_2_queries_are_counted() {
    let Some(shared) = shared() else { return };
    let tally = run_suite(&shared.join("w3c/sparql/sparql12/manifest.ttl"));
    report("sparql12", &tally);
    assert!(tally.passed > 0);
}
