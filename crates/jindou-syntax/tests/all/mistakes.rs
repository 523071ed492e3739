//! Typical mistakes with their messages, in a file for reading. `JINDOU_REWRITE=1` writes the file again.

use jindou_syntax::{ParseFailure, ParserOptions, parse_query, parse_update};
use std::fmt::Write;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mistakes/mistakes.txt");

#[test]
fn mistakes_are_explained() {
    let file = std::fs::read_to_string(FILE).unwrap();
    let mut written = String::new();
    let mut count = 0;
    for entry in file.split("==== ").skip(1) {
        let (head, rest) = entry.split_once('\n').unwrap();
        let (text, _) = rest.split_once("\n----\n").unwrap();
        let update = head.starts_with("update: ");
        let failure = if update {
            parse_update(text, &ParserOptions::default()).map(drop)
        } else {
            parse_query(text, &ParserOptions::default()).map(drop)
        };
        let Err(ParseFailure::Text(faults)) = failure else {
            panic!("{head}: {text}: {failure:?}");
        };
        for fault in faults.all() {
            assert!(fault.end <= text.len() && fault.start <= fault.end);
            for s in &fault.suggestions {
                // A remedy that can be applied changes the text, and leaves fewer errors or others.
                let Some(r) = &s.replacement else { continue };
                let mended = format!("{}{}{}", &text[..r.start], r.with, &text[r.end..]);
                assert_ne!(mended, text, "{head}");
            }
        }
        let _ = write!(written, "==== {head}\n{text}\n----\n{faults}\n\n");
        count += 1;
    }
    if std::env::var_os("JINDOU_REWRITE").is_some() {
        std::fs::write(FILE, &written).unwrap();
    }
    assert!(count >= 60);
    assert!(
        file == written,
        "the messages changed; look at them and run again with JINDOU_REWRITE=1:\n{written}"
    );
}

/// Remedies that an editor can apply correct the text.
#[test]
fn remedies_help() {
    for (text, update) in [
        ("SELEC * WHERE { ?s ?p ?o }", false),
        ("SELECT * WHERE { ?s foaf:name ?o }", false),
        ("SELECT DISTINCT COUNT(?x) WHERE { ?x a ?t }", false),
        ("SELECT COUNT(?x) AS ?n WHERE { ?x a ?t }", false),
        ("SELECT * WHERE { ?s ?p ?o ?a ?b ?c }", false),
        ("SELECT * WHERE { ?s ?p ?o", false),
        ("SELECT * WHERE { ?s ?p ?o FILTER(?o == 3) }", false),
        ("SELECT * WHERE { ?s ?p ?o FILTER(?o <> 3) }", false),
        (
            "SELECT * WHERE { ?s ?p ?o FILTER(?o = 1 or ?o = 2) }",
            false,
        ),
        ("SELECT * WHERE { ?s ?p ?o FILTER(?o = 1 & ?o = 2) }", false),
        ("SELECT ?s, ?p WHERE { ?s ?p ?o }", false),
        ("SELECT WHERE { ?s ?p ?o }", false),
        ("SELECT * WHERE { ?s <http://e/a b> ?o }", false),
        ("SELECT * WHERE { ?s ?p ?o } ORDERBY ?s", false),
        ("SELECT * WHERE { ?s ?p ?o } ORDER BY DESC ?s", false),
        ("SELECT * WHERE { ?s ?p ?o };", false),
        ("SELECT * WHERE { ?s ?p ?o NOT EXISTS { ?s a ?t } }", false),
        ("PREFIX e: <http://e/> ASK { ?s e:a#b ?o\n ?c }", false),
        ("INSRT DATA { <http://e/a> <http://e/b> 1 }", true),
    ] {
        let read = |text: &str| {
            if update {
                parse_update(text, &ParserOptions::default()).map(drop)
            } else {
                parse_query(text, &ParserOptions::default()).map(drop)
            }
        };
        let mut now = text.to_owned();
        for _ in 0..4 {
            let Err(ParseFailure::Text(faults)) = read(&now) else {
                break;
            };
            let fault = faults.first();
            let r = fault.suggestions.iter().find_map(|s| s.replacement.clone());
            let r = r.unwrap_or_else(|| panic!("no remedy: {faults}"));
            now.replace_range(r.start..r.end, &r.with);
        }
        if let Err(e) = read(&now) {
            panic!("{text}\nbecame\n{now}\n{e}");
        }
    }
}
