//! The W3C's XML conformance suite: documents must be accepted or refused as the suite says, and accepted ones must
//! have the given canonical text.

use super::common::{canonical, skipping, suite};
use jindou_parse::xml::{Event, Reader};
use std::fs;
use std::path::{Path, PathBuf};

/// A test of the suite.
#[derive(Clone, Debug, Default)]
struct Case {
    id: String,
    kind: String,
    entities: String,
    uri: PathBuf,
    output: Option<PathBuf>,
    recommendation: String,
    version: String,
    edition: String,
    namespaces: bool,
}

const CATALOGUES: &str = "\
    xmltest/xmltest.xml japanese/japanese.xml sun/sun-valid.xml sun/sun-invalid.xml sun/sun-not-wf.xml \
    sun/sun-error.xml oasis/oasis.xml ibm/ibm_oasis_invalid.xml ibm/ibm_oasis_not-wf.xml \
    ibm/ibm_oasis_valid.xml eduni/errata-2e/errata2e.xml eduni/errata-3e/errata3e.xml \
    eduni/errata-4e/errata4e.xml eduni/namespaces/1.0/rmt-ns10.xml eduni/namespaces/errata-1e/errata1e.xml \
    eduni/misc/ht-bh.xml";

fn cases(suite: &Path) -> Vec<Case> {
    let mut all = Vec::new();
    for catalogue in CATALOGUES.split(' ') {
        let path = suite.join(catalogue);
        let text = fs::read_to_string(&path).unwrap();
        // Some catalogues are parts of a document, without a root element.
        let text = match text.split_once("?>") {
            Some((declaration, rest)) if declaration.starts_with("<?xml") => rest,
            _ => &text,
        };
        let text = format!("<all>{text}</all>");
        let folder = path.parent().unwrap();
        let mut reader = Reader::new(text.as_bytes(), skipping(true)).unwrap();
        loop {
            match reader.next_event().unwrap() {
                Event::Start(start) if start.name().local == "TEST" => {
                    let mut case = Case {
                        namespaces: true,
                        ..Case::default()
                    };
                    for a in start.attributes() {
                        let value = a.value.to_owned();
                        match a.name.local {
                            "ID" => case.id = value,
                            "TYPE" => case.kind = value,
                            "ENTITIES" => case.entities = value,
                            "URI" => case.uri = folder.join(value),
                            "OUTPUT" => case.output = Some(folder.join(value)),
                            "RECOMMENDATION" => case.recommendation = value,
                            "VERSION" => case.version = value,
                            "EDITION" => case.edition = value,
                            "NAMESPACE" => case.namespaces = value != "no",
                            _ => {}
                        }
                    }
                    all.push(case);
                }
                Event::Eof => break,
                _ => {}
            }
        }
    }
    all
}

#[test]
fn the_w3c_suite() {
    let Some(suite) = suite() else {
        println!("skipped: the W3C's XML suite is not here; scripts/xml-suite.sh fetches it");
        return;
    };
    let (mut accepted, mut refused, mut texts, mut elsewhere, mut other) = (0, 0, 0, 0, 0);
    let mut wrong = Vec::new();
    for case in cases(&suite) {
        let is_other = case.recommendation.contains("1.1")
            || !case.version.is_empty() && !case.version.contains("1.0")
            || !case.edition.is_empty() && !case.edition.contains('5')
            || case.kind == "error";
        if is_other {
            other += 1;
            continue;
        }
        let uri = case.uri.display();
        let document = fs::read(&case.uri).unwrap_or_else(|e| panic!("{uri}: {e}"));
        // The document may refer to another one, which is wrong although the document itself is well-formed.
        let is_whole = ["none", ""].contains(&case.entities.as_str());
        let is_of_namespaces = case.recommendation.starts_with("NS");
        let read = |namespaces| canonical(document.as_slice(), skipping(namespaces));
        // Namespaces are ignored unless the test is about them, so that their errors do not hide others.
        let result = read(is_of_namespaces);
        match (case.kind.as_str(), result) {
            ("not-wf", Err(_)) => refused += 1,
            ("not-wf", Ok(_)) if !is_whole => elsewhere += 1,
            ("not-wf", Ok(text)) => wrong.push(format!("{} is accepted: {text:.60}", case.id)),
            (_, Err(e)) => wrong.push(format!("{} ({uri}): {e}", case.id)),
            (_, Ok(text)) => {
                accepted += 1;
                if let Some(output) = case.output.as_ref().filter(|_| is_whole) {
                    let expected = fs::read_to_string(output).unwrap();
                    match text == expected {
                        true => texts += 1,
                        false => wrong.push(format!("{}:\n  {text:?}\n  {expected:?}", case.id)),
                    }
                }
                if case.namespaces
                    && !is_of_namespaces
                    && let Err(e) = read(true)
                {
                    wrong.push(format!("{} with namespaces: {e}", case.id));
                }
            }
        }
    }
    println!(
        "{accepted} accepted, {texts} of them with their canonical text, {refused} refused; {elsewhere} well-formed themselves, with a fault in an external entity; {other} of XML 1.1, of other editions, or free to processors"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(accepted > 800 && refused > 900 && texts > 250);
}
