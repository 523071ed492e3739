//! The W3C's RDF test suites: all tests of RDF 1.1 must pass; for RDF 1.2, the passing ones are counted.

use crate::common::{based, canonical, collect};
use jindou_parse::Format;
use jindou_testing::{files_below, shared};
use oxrdf::vocab::rdf;
use oxrdf::{Graph, NamedNodeRef, TermRef};
use oxrdfio::{RdfFormat, RdfParser};
use std::path::Path;

const ROOT: &str = "https://w3c.github.io/rdf-tests/rdf/";
const MF: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#";

/// Runs all syntax and evaluation tests below a folder; returns the number of passed ones and the names of the failed
/// ones.
fn run(root: &Path, suite: &str) -> (usize, Vec<String>) {
    let mut files = files_below(&root.join(suite));
    files.retain(|f| f.ends_with("manifest.ttl"));
    let (mut passed, mut failed) = (0, Vec::new());
    for manifest in files {
        let relative = manifest.strip_prefix(root).unwrap().to_str().unwrap();
        let text = std::fs::read(&manifest).unwrap();
        let parser = oxttl::TurtleParser::new().with_base_iri(format!("{ROOT}{relative}"));
        let triples = parser.unwrap().for_slice(&text);
        let graph: Graph = triples.map(|t| t.unwrap()).collect();
        let action = format!("{MF}action");
        for triple in graph.triples_for_predicate(NamedNodeRef::new_unchecked(&action)) {
            let kind = graph.object_for_subject_predicate(triple.subject, rdf::TYPE);
            let (Some(TermRef::NamedNode(kind)), TermRef::NamedNode(action)) =
                (kind, triple.object)
            else {
                panic!("{triple}")
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
    let parsed = collect(&based(&text, format, action)).map_err(|e| e.to_string());
    if kind.contains("Negative") {
        return match parsed {
            Ok(_) => Err("accepted".into()),
            Err(e) if e.contains("expected") => Ok(()),
            Err(e) => Err(format!("says nothing of what it expected: {e}")),
        };
    }
    let quads = parsed?;
    if let Some(TermRef::NamedNode(result)) = result {
        let file = root.join(result.as_str().strip_prefix(ROOT).unwrap());
        let format =
            RdfFormat::from_extension(file.extension().unwrap().to_str().unwrap()).unwrap();
        let text = std::fs::read(&file).map_err(|e| e.to_string())?;
        let parser = RdfParser::from_format(format).with_base_iri(result.as_str());
        let expected = parser.unwrap().for_slice(&text);
        let expected: Result<Vec<_>, _> = expected.collect();
        let expected = expected.map_err(|e| format!("result file: {e}"))?;
        if canonical(&quads) != canonical(&expected) {
            return Err(format!("other quads: {quads:?}, not {expected:?}"));
        }
    } else if kind.contains("Eval") {
        return Err("evaluation test without result".into());
    }
    Ok(())
}

/// Calls `check` with each suite's name, its number of passed tests, and the failed ones.
fn each_suite(version: &str, check: impl Fn(&str, usize, &[String])) {
    let Some(root) = shared("w3c/rdf") else {
        return;
    };
    for syntax in ["n-triples", "n-quads", "turtle", "trig", "xml"] {
        let suite = format!("{version}/rdf-{syntax}");
        let (passed, failed) = run(&root, &suite);
        println!("{suite}: {passed} passed, {} failed", failed.len());
        check(&suite, passed, &failed);
    }
}

#[test]
fn rdf_1_1_passes() {
    each_suite("rdf11", |suite, passed, failed| {
        assert!(passed > 50, "{suite}: too few tests were found");
        assert!(failed.is_empty(), "{suite}: {}", failed.join("\n"));
    });
}

/// Most of RDF 1.2 must pass.
#[test]
fn rdf_1_2_is_counted() {
    each_suite("rdf12", |suite, passed, failed| {
        for f in failed {
            println!("  {}", f.chars().take(300).collect::<String>());
        }
        assert!(passed > failed.len(), "{suite}");
    });
}
