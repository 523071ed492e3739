//! All syntax tests of the W3C, and the queries and updates of all of its evaluation tests.

use crate::{Escapes, ParserOptions};
use oxiri::Iri;
use oxrdf::vocab::rdf;
use oxrdf::{Graph, NamedNodeRef, TermRef};
use std::path::{Path, PathBuf};

const MF: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#";

fn manifests(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            manifests(&path, out);
        } else if path.extension().is_some_and(|e| e == "ttl")
            && path
                .file_name()
                .is_some_and(|n| n.to_string_lossy().contains("manifest"))
        {
            out.push(path);
        }
    }
}

/// The tests of a manifest: file, true for an update, and true if the text must be rejected.
fn tests(manifest: &Path) -> Vec<(PathBuf, bool, bool)> {
    let text = std::fs::read(manifest).unwrap();
    let iri = format!("file://{}", manifest.display());
    let Ok(graph) = oxttl::TurtleParser::new()
        .with_base_iri(&iri)
        .unwrap()
        .for_slice(&text)
        .collect::<Result<Graph, _>>()
    else {
        println!("not read: {}", manifest.display());
        return vec![];
    };
    let mut out = vec![];
    for triple in graph.triples_for_predicate(rdf::TYPE) {
        let TermRef::NamedNode(kind) = triple.object else {
            continue;
        };
        let Some(kind) = kind.as_str().strip_prefix(MF) else {
            continue;
        };
        let is_test = kind.contains("Syntax") || kind.contains("EvaluationTest");
        if !is_test {
            continue;
        }
        let action = NamedNodeRef::new_unchecked(
            "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#action",
        );
        let file = match graph.object_for_subject_predicate(triple.subject, action) {
            Some(TermRef::NamedNode(n)) => Some(n.as_str().to_owned()),
            Some(TermRef::BlankNode(b)) => [
                "http://www.w3.org/2001/sw/DataAccess/tests/test-query#query",
                "http://www.w3.org/2009/sparql/tests/test-update#request",
            ]
            .iter()
            .find_map(|p| {
                match graph.object_for_subject_predicate(b, NamedNodeRef::new_unchecked(p))? {
                    TermRef::NamedNode(n) => Some(n.as_str().to_owned()),
                    _ => None,
                }
            }),
            _ => None,
        };
        let Some(file) = file else { continue };
        let path = PathBuf::from(file.strip_prefix("file://").unwrap_or(&file));
        let update = path.extension().is_some_and(|e| e == "ru");
        out.push((path, update, kind.contains("Negative")));
    }
    out
}

#[test]
fn syntax_tests_pass() {
    let Some(suites) = jindou_testing::shared("w3c/sparql") else {
        return;
    };
    let mut files = vec![];
    manifests(&suites, &mut files);
    files.sort();
    let (mut passed, mut wrong) = ([0, 0], vec![]);
    for manifest in &files {
        // SPARQL 1.2 requires that codepoint escapes outside strings and IRIs are rejected, SPARQL 1.1 that they are
        // decoded.
        let twelve = manifest.to_string_lossy().contains("sparql12");
        for (path, update, negative) in tests(manifest) {
            let ending = path.extension().and_then(|e| e.to_str());
            if !matches!(ending, Some("rq" | "ru")) {
                continue;
            }
            let Ok(bytes) = std::fs::read(&path) else {
                wrong.push(format!("{} is missing", path.display()));
                continue;
            };
            let Ok(text) = String::from_utf8(bytes) else {
                wrong.push(format!("{} is not UTF-8", path.display()));
                continue;
            };
            let options = ParserOptions {
                base: Iri::parse(format!("file://{}", path.display())).ok(),
                escapes: if twelve {
                    Escapes::InTerms
                } else {
                    Escapes::Anywhere
                },
                ..ParserOptions::default()
            };
            let read = if update {
                crate::parse_update(&text, &options).map(drop)
            } else {
                crate::parse_query(&text, &options).map(drop)
            };
            match (read, negative) {
                (Ok(()), false) | (Err(_), true) => passed[usize::from(negative)] += 1,
                (Ok(()), true) => wrong.push(format!("{} is accepted:\n{text}", path.display())),
                (Err(e), false) => wrong.push(format!("{} is refused:\n{e}", path.display())),
            }
        }
    }
    println!(
        "{} accepted, {} refused as they should be",
        passed[0], passed[1]
    );
    assert!(
        wrong.is_empty(),
        "{}:\n{}",
        wrong.len(),
        wrong.join("\n----\n")
    );
    assert!(passed[0] > 900 && passed[1] > 150, "{passed:?}");
}
