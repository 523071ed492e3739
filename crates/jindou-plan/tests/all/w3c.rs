//! Every query of the W3C's SPARQL 1.0 and 1.1 suites that parses can be planned, unless it calls an unknown function,
//! as some syntax tests do.

use jindou_model::Error;
use jindou_plan::{PlanOptions, explain, parse, plan};
use jindou_store::{Snapshot, testing};
use std::path::{Path, PathBuf};

fn queries(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            queries(&path, out);
        } else if path.extension().is_some_and(|e| e == "rq") {
            out.push(path);
        }
    }
}

/// Plans queries and asserts that every one that parses has a plan, unless it calls an unknown function. Returns the
/// numbers of planned queries and of those with unknown functions.
fn plan_all(texts: impl Iterator<Item = (String, String)>) -> (usize, usize) {
    let mut rng = jindou_testing::Rng::new(7);
    let (_folder, base) = testing::store_of(&jindou_testing::quads(&mut rng));
    let snapshot = Snapshot::of_base(base);
    let (mut native, mut refused, mut nameless, mut wrong) = (0, 0, 0, vec![]);
    for (place, text) in texts {
        let Ok(query) = parse(&format!("BASE <http://example.org/>\n{text}")) else {
            refused += 1;
            continue;
        };
        match plan(&query, &snapshot, &PlanOptions::default()) {
            Ok(p) => {
                native += 1;
                assert!(explain(&p, &snapshot).contains("native"));
            }
            Err(Error::Query(why)) if why.contains("unknown function") => {
                nameless += 1;
            }
            Err(why) => wrong.push(format!("{place}: {why}")),
        }
    }
    println!(
        "{native} native, {refused} that do not parse (negative syntax tests among them), {nameless} with functions that are not there"
    );
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    (native, nameless)
}

#[test]
fn every_query_has_a_native_plan() {
    let Some(shared) = jindou_testing::shared("w3c/sparql") else {
        return;
    };
    let mut files = vec![];
    for suite in ["sparql10", "sparql11"] {
        queries(&shared.join(suite), &mut files);
    }
    files.sort();
    let (native, nameless) = plan_all(files.into_iter().map(|file| {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        (file.display().to_string(), text)
    }));
    assert!(native > 400 && nameless < 10);
}

#[test]
fn every_query_of_the_cases_has_a_native_plan() {
    let cases = jindou_testing::case_texts("query").into_iter();
    let cases = cases.filter(|c| !c.fails);
    let cases = cases.map(|c| (format!("{}:{}", c.file.display(), c.line), c.text));
    let seeds = jindou_testing::seeds::QUERIES.iter();
    let seeds = seeds.map(|text| ("jindou_testing::seeds".to_owned(), (*text).to_owned()));
    let (native, _) = plan_all(cases.chain(seeds));
    assert!(native > 100);
}
