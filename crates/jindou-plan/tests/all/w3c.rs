//! Every query of the W3C's SPARQL 1.0 and 1.1 suites that parses is planned natively, but those that call a function
//! which is not there: syntax tests make some up.

use jindou_model::Error;
use jindou_plan::{PlanOptions, explain, explain_json, parse, plan};
use jindou_store::{Snapshot, testing};
use std::path::{Path, PathBuf};

fn shared() -> Option<PathBuf> {
    let root = std::env::var_os("JINDOU_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let path = root.join("w3c/sparql");
    if path.exists() {
        return Some(path);
    }
    println!("skipped: there is no {}; set JINDOU_SHARED", path.display());
    None
}

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

#[test]
fn every_query_has_a_native_plan() {
    let Some(shared) = shared() else { return };
    let mut files = vec![];
    for suite in ["sparql10", "sparql11"] {
        queries(&shared.join(suite), &mut files);
    }
    files.sort();
    let mut rng = jindou_testing::Rng::new(7);
    let (_folder, base) = testing::store_of(&jindou_testing::quads(&mut rng));
    let snapshot = Snapshot::of_base(base);
    let (mut native, mut refused, mut nameless, mut wrong) = (0, 0, 0, vec![]);
    for file in &files {
        let text = String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned();
        let Ok(query) = parse(&format!("BASE <http://example.org/>\n{text}")) else {
            refused += 1;
            continue;
        };
        match plan(&query, &snapshot, &PlanOptions::default()) {
            Ok(p) => {
                native += 1;
                assert!(explain(&p, &snapshot).contains("native"));
                assert!(explain_json(&p, &snapshot)["plan"]["operator"].is_string());
            }
            Err(Error::Query(why)) if why.contains("unknown function") => {
                nameless += 1;
            }
            Err(why) => wrong.push(format!("{}: {why}", file.display())),
        }
    }
    println!(
        "{native} native, {refused} that do not parse (negative syntax tests among them), {nameless} with functions that are not there"
    );
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(native > 400 && nameless < 10);
}
