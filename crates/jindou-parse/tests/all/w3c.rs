//! The W3C's RDF test suites: all tests of RDF 1.1 must pass; for RDF 1.2, the passing ones are counted.

use crate::common::{canonical, collect};
use jindou_parse::{Format, Sources};
use jindou_testing::shared;
use oxrdf::vocab::rdf;
use oxrdf::{Graph, NamedNodeRef, TermRef};
use oxrdfio::{RdfFormat, RdfParser};
use std::path::{Path, PathBuf};

const ROOT: &str = "https://w3c.github.io/rdf-tests/rdf/";
const MF: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#";

fn manifests(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            manifests(&path, found);
        } else if path.file_name().is_some_and(|n| n == "manifest.ttl") {
            found.push(path);
        }
    }
}

/// Runs all syntax and evaluation tests below a folder; returns the number of passed ones and the names of the failed
/// ones.
fn run(root: &Path, suite: &str) -> (usize, Vec<String>) {
    let mut files = Vec::new();
    manifests(&root.join(suite), &mut files);
    files.sort();
    let (mut passed, mut failed) = (0, Vec::new());
    for manifest in files {
        let relative = manifest.strip_prefix(root).unwrap().to_str().unwrap();
        let text = std::fs::read(&manifest).unwrap();
        let graph: Graph = oxttl::TurtleParser::new()
            .with_base_iri(format!("{ROOT}{relative}"))
            .unwrap()
            .for_slice(&text)
            .map(|t| t.unwrap())
            .collect();
        let action = format!("{MF}action");
        for triple in graph.triples_for_predicate(NamedNodeRef::new_unchecked(&action)) {
            let TermRef::NamedNode(kind) = graph
                .object_for_subject_predicate(triple.subject, rdf::TYPE)
                .unwrap()
            else {
                panic!()
            };
            let TermRef::NamedNode(action) = triple.object else {
                panic!()
            };
            let kind = kind.as_str().rsplit('#').next().unwrap();
            let result = format!("{MF}result");
            let result = graph
                .object_for_subject_predicate(triple.subject, NamedNodeRef::new_unchecked(&result));
            match verdict(root, kind, action.as_str(), result) {
                Ok(()) => passed += 1,
                Err(why) => failed.push(format!("{} ({kind}): {why}", triple.subject)),
            }
        }
    }
    (passed, failed)
}

fn verdict(
    root: &Path,
    kind: &str,
    action: &str,
    result: Option<TermRef<'_>>,
) -> Result<(), String> {
    let file = root.join(action.strip_prefix(ROOT).unwrap());
    let format = Format::from_extension(file.extension().unwrap().to_str().unwrap()).unwrap();
    let text = std::fs::read(&file).map_err(|e| e.to_string())?;
    let sources = Sources::builder()
        .text(action, text, format)
        .base_iri(Some(action.to_owned()))
        .build()
        .unwrap();
    let parsed = collect(&sources);
    if kind.contains("Negative") {
        return match parsed {
            Ok(_) => Err("accepted".into()),
            Err(e) => {
                let e = e.to_string();
                if e.contains("expected") {
                    Ok(())
                } else {
                    Err(format!("says nothing of what it expected: {e}"))
                }
            }
        };
    }
    let quads = parsed.map_err(|e| e.to_string())?;
    if let Some(TermRef::NamedNode(result)) = result {
        let file = root.join(result.as_str().strip_prefix(ROOT).unwrap());
        let format =
            RdfFormat::from_extension(file.extension().unwrap().to_str().unwrap()).unwrap();
        let expected = RdfParser::from_format(format)
            .with_base_iri(result.as_str())
            .unwrap()
            .for_slice(&std::fs::read(&file).map_err(|e| e.to_string())?)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| format!("result file: {e}"))?;
        if canonical(&quads) != canonical(&expected) {
            return Err(format!("other quads: {quads:?}, not {expected:?}"));
        }
    } else if kind.contains("Eval") {
        return Err("evaluation test without result".into());
    }
    Ok(())
}

const SUITES: [&str; 5] = [
    "rdf-n-triples",
    "rdf-n-quads",
    "rdf-turtle",
    "rdf-trig",
    "rdf-xml",
];

#[test]
fn rdf_1_1_passes() {
    let Some(root) = shared("w3c/rdf") else {
        return;
    };
    for suite in SUITES {
        let (passed, failed) = run(&root, &format!("rdf11/{suite}"));
        println!("RDF 1.1 {suite}: {passed} passed, {} failed", failed.len());
        assert!(passed > 50, "{suite}: too few tests were found");
        assert!(failed.is_empty(), "{suite}:\n{}", failed.join("\n"));
    }
}

#[test]
fn rdf_1_2_is_counted() {
    let Some(root) = shared("w3c/rdf") else {
        return;
    };
    for suite in SUITES {
        let (passed, failed) = run(&root, &format!("rdf12/{suite}"));
        println!("RDF 1.2 {suite}: {passed} passed, {} failed", failed.len());
        for f in &failed {
            println!("  {}", f.chars().take(300).collect::<String>());
        }
        assert!(passed > failed.len(), "{suite}: most of RDF 1.2 must pass");
    }
}
