//! Tests that are text: `tests/cases/*.txt` contain queries and updates with the messages about them, or with a text
//! that means the same. docs/testing.md describes the format. `JINDOU_REWRITE=1` updates expected messages and
//! corrected texts.

use jindou_syntax::algebra::Query;
use jindou_syntax::{ParseFailure, ParserOptions, Update, parse_query, parse_update};
use std::fmt::Write;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases");

#[derive(Debug, PartialEq)]
enum Read {
    Query(Query),
    Update(Update),
}

fn read(kind: &str, text: &str) -> Result<Read, ParseFailure> {
    let options = ParserOptions::default();
    match kind {
        "query" => parse_query(text, &options).map(Read::Query),
        "update" => parse_update(text, &options).map(Read::Update),
        _ => panic!("neither a query nor an update: {kind}"),
    }
}

/// The messages about an invalid text.
fn message(kind: &str, text: &str) -> String {
    let Err(ParseFailure::Text(faults)) = read(kind, text) else {
        panic!("no message about {text}");
    };
    for fault in faults.all() {
        assert!(fault.end <= text.len() && fault.start <= fault.end);
        for s in &fault.suggestions {
            // A suggested replacement must change the text.
            let Some(r) = &s.replacement else { continue };
            let mended = format!("{}{}{}", &text[..r.start], r.with, &text[r.end..]);
            assert_ne!(mended, text);
        }
    }
    faults.to_string()
}

/// The text after the first remedy of the first error was applied, repeatedly until the text is valid.
fn mended(kind: &str, text: &str) -> String {
    let mut now = text.to_owned();
    for _ in 0..4 {
        let Err(ParseFailure::Text(faults)) = read(kind, &now) else {
            break;
        };
        let fault = faults.first();
        let r = fault.suggestions.iter().find_map(|s| s.replacement.clone());
        let r = r.unwrap_or_else(|| panic!("no remedy: {faults}"));
        now.replace_range(r.start..r.end, &r.with);
    }
    if let Err(e) = read(kind, &now) {
        panic!("{text}\nbecame\n{now}\n{e}");
    }
    now
}

/// A case with the expectation that the parser's behaviour yields; an error if the case itself is invalid.
fn checked(case: &str) -> Result<String, String> {
    let (name, rest) = case.split_once("\n-- ").ok_or("no section")?;
    let (kind, rest) = rest.split_once('\n').ok_or("no text")?;
    let at = rest.rfind("\n-- ").ok_or("no expectation")?;
    let text = &rest[..at];
    let (section, expected) = rest[at + 4..].split_once('\n').ok_or("no line end")?;
    let expected = match section {
        "message" => message(kind, text),
        "mended" => mended(kind, text),
        "valid" => {
            read(kind, text).map_err(|e| format!("{text}: {e}"))?;
            String::new()
        }
        "same" => {
            let both = [text, expected.trim_end()].map(|t| read(kind, t));
            match both {
                [Ok(Read::Query(a)), Ok(Read::Query(b))] if a.to_string() == b.to_string() => {}
                both => return Err(format!("not the same: {both:?}")),
            }
            expected.trim_end().to_owned()
        }
        _ => return Err(format!("unknown section {section}")),
    };
    let ends = if expected.is_empty() { "" } else { "\n" };
    Ok(format!(
        "{name}\n-- {kind}\n{text}\n-- {section}\n{expected}{ends}"
    ))
}

#[test]
fn texts_are_read_as_the_cases_say() {
    let mut count = 0;
    let mut failures = String::new();
    for entry in std::fs::read_dir(FOLDER).unwrap() {
        let path = entry.unwrap().path();
        let file = std::fs::read_to_string(&path).unwrap();
        let mut cases = file.split("\n== ");
        let mut written = cases.next().unwrap().to_owned();
        for case in cases {
            let name = case.lines().next().unwrap_or_default();
            let made = checked(case).unwrap_or_else(|e| panic!("{}: {name}: {e}", path.display()));
            if made.trim_end() != case.trim_end() {
                let _ = writeln!(failures, "{}: {made}", path.display());
            }
            let _ = write!(written, "\n== {made}");
            count += 1;
        }
        if std::env::var_os("JINDOU_REWRITE").is_some() {
            std::fs::write(&path, &written).unwrap();
        }
    }
    println!("{count} cases");
    assert!(
        failures.is_empty(),
        "messages changed; look at them and run again with JINDOU_REWRITE=1:\n{failures}"
    );
}

/// The test runner notices each kind of difference.
#[test]
fn differences_are_noticed() {
    let same = "a\n-- query\nASK {}\n-- same\nASK { }\n";
    assert_eq!(checked(same).as_deref(), Ok(same));
    for wrong in [
        "a\n-- query\nASK {}\n-- same\nASK { ?s ?p ?o }\n",
        "a\n-- query\nASK {\n-- same\nASK {\n",
        "a\n-- query\nASK {\n-- valid\n",
        "a\n-- query\nASK {}\n-- equal\nASK {}\n",
        "a\n-- query\nASK {}\n",
    ] {
        assert!(checked(wrong).is_err(), "{wrong}");
    }
    let message = "a\n-- query\nASK {\n-- message\nanything\n";
    assert_ne!(checked(message).as_deref(), Ok(message));
}
