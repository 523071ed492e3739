//! All syntax tests of the W3C, and the queries and updates of all of its evaluation tests.

use super::files::none_is_wrong;
use crate::{Escapes, ParserOptions};
use jindou_testing::w3c::manifest::{Test, described};
use oxiri::Iri;

#[test]
fn syntax_tests_pass() {
    let Some(suites) = jindou_testing::shared("w3c/sparql") else {
        return;
    };
    let mut files = jindou_testing::files_below(&suites);
    files.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.contains("manifest") && name.ends_with(".ttl")
    });
    let (mut passed, mut wrong) = ([0, 0], vec![]);
    for manifest in &files {
        // SPARQL 1.2 requires that codepoint escapes outside strings and IRIs are rejected, SPARQL 1.1 that they are
        // decoded.
        let twelve = manifest.to_string_lossy().contains("sparql12");
        let tests = described(manifest).unwrap_or_else(|e| {
            println!("not read: {e}");
            vec![]
        });
        for Test {
            query: path, kind, ..
        } in tests
        {
            let ending = path.extension().and_then(|e| e.to_str());
            let is_test = kind.contains("Syntax") || kind.contains("EvaluationTest");
            if !is_test || !matches!(ending, Some("rq" | "ru")) {
                continue;
            }
            let (update, negative) = (ending == Some("ru"), kind.contains("Negative"));
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
    none_is_wrong(&wrong);
    assert!(passed[0] > 900 && passed[1] > 150, "{passed:?}");
}
