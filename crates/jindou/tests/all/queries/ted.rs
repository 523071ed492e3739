//! Twenty questions to Europe's procurement notices (`lab/jindou-workloads/queries/ted`): numbers of rows are compared
//! with those of Oxigraph 0.5.13 (`counts.tsv`), answers with `spareval`'s over `oxrdf`'s dataset.

use crate::compare::{assert_equal, run};
use crate::oracle;
use jindou::parse_query;
use jindou::testing::Store;
use jindou_testing::{files_below, shared, unpack};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const QUERIES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../lab/jindou-workloads/queries/ted"
);

/// The queries by name.
fn queries() -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for e in std::fs::read_dir(QUERIES).unwrap() {
        let path = e.unwrap().path();
        if path.extension().is_some_and(|e| e == "rq") {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            out.insert(name, std::fs::read_to_string(&path).unwrap());
        }
    }
    out
}

/// Number of rows that Oxigraph returned for each query.
fn counts() -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(Path::new(QUERIES).join("counts.tsv")).unwrap();
    let lines = text.lines().skip(1);
    lines
        .map(|l| {
            let (name, rows) = l.split_once('\t').unwrap();
            (name.to_owned(), rows.parse().unwrap())
        })
        .collect()
}

/// The notices of the shared archive, unpacked: Turtle files in `mappings/*/output`.
fn notices() -> Option<(TempDir, Vec<PathBuf>)> {
    let archive = shared("data/ted.tar.gz")?;
    let folder = tempfile::tempdir().unwrap();
    unpack(&archive, folder.path());
    let mappings = folder.path().join("ted/mappings");
    let mut files = files_below(&mappings);
    files.retain(|path| {
        let mut names = path.strip_prefix(&mappings).unwrap().iter();
        names.nth(1).is_some_and(|name| name == "output")
            && path.extension().is_some_and(|e| e == "ttl")
    });
    Some((folder, files))
}

#[test]
fn questions_say_who_asks_and_each_has_a_count() {
    let (queries, counts) = (queries(), counts());
    assert_eq!(queries.len(), 20);
    assert!(queries.keys().eq(counts.keys()));
    for (name, text) in &queries {
        let comments = text.lines().take_while(|l| l.starts_with("# ")).count();
        assert_eq!(comments, 1, "{name} says who asks it and why in one line");
        parse_query(text).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(counts[name] > 0, "{name} has an answer");
    }
}

#[test]
fn counts_are_oxigraphs() {
    let Some((_folder, files)) = notices() else {
        return;
    };
    let store = Store::of_files(&files);
    let counts = counts();
    for (name, text) in queries() {
        let answer = run(&store.db, &text);
        assert_eq!(answer.solutions().len(), counts[&name], "{name}");
    }
}

#[test]
#[ignore = "long: evaluates every question by nested loops"]
fn answers_are_spareval_s() {
    let Some((_folder, files)) = notices() else {
        return;
    };
    let store = Store::of_files(&files);
    let data = oracle::dataset(&files, &[]).unwrap();
    for (name, text) in queries() {
        let want = oracle::answer(&data, &parse_query(&text).unwrap()).unwrap();
        assert_equal(&name, &run(&store.db, &text), &want);
    }
}
