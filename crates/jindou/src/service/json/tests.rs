use super::*;
use crate::service::tests::{self, Rows};
use oxrdf::{Literal, Term};
use sparesults::QueryResultsFormat;

fn read(text: &str) -> std::result::Result<(Vec<String>, Rows), String> {
    tests::read(QueryResultsFormat::Json, text.as_bytes()).map_err(|e| e.to_string())
}

fn one(term: &str) -> String {
    format!(r#"{{"head":{{"vars":["v"]}},"results":{{"bindings":[{{"v":{term}}}]}}}}"#)
}

fn text(value: &str) -> Option<Term> {
    Some(Literal::new_simple_literal(value).into())
}

/// Descriptions of terms, each with the term in the syntax of N-Triples; nothing for an unbound variable.
const TERMS: &str = include_str!("terms.txt");

#[test]
fn terms_are_what_the_json_says() {
    let written = |cell: &Option<Term>| cell.as_ref().map_or(String::new(), Term::to_string);
    for line in TERMS.lines() {
        let (json, expected) = line.split_once(" =>").expect(line);
        let (names, rows) = read(&one(json)).expect(json);
        assert_eq!((names, rows.len()), (vec!["v".to_owned()], 1), "{json}");
        let found: Vec<String> = rows[0].iter().map(written).collect();
        assert_eq!(found, [expected.trim_start()], "{json}");
    }
}

#[test]
fn heads_may_be_missing_or_late() {
    let rows = r#""results":{"distinct":false,"bindings":[{"a":{"type":"literal","value":"x"}},{"b":{"type":"literal","value":"y"}}],"ordered":true}"#;
    let expected = |names: [&str; 2], rows: [[Option<Term>; 2]; 2]| {
        let rows = rows.map(Vec::from).to_vec();
        Ok((names.map(str::to_owned).to_vec(), rows))
    };
    let plain = || expected(["a", "b"], [[text("x"), None], [None, text("y")]]);
    for head in [r#""head":{},"#, r#""head":{"vars":null,"link":[]},"#, ""] {
        assert_eq!(read(&format!("{{{head}{rows}}}")), plain(), "{head}");
    }
    assert_eq!(read(&format!("{{{rows},\"head\":{{}}}}")), plain());
    let late = format!(r#"{{{rows},"head":{{"vars":["b","a"]}}}}"#);
    let turned = expected(["b", "a"], [[None, text("x")], [text("y"), None]]);
    assert_eq!(read(&late), turned);
    // A byte order mark is skipped.
    assert_eq!(read(&format!("\u{feff}{{{rows}}}")), plain());
    assert_eq!(
        read(r#"{"head":{},"results":{"bindings":[]}}"#),
        Ok((vec![], vec![]))
    );
}

#[test]
fn verdicts() {
    for text in [
        r#"{"head":{},"boolean":true}"#,
        r#"{"boolean":true,"head":{"link":[]}}"#,
        r#"{"boolean":true}"#,
    ] {
        let answer = JsonAnswer::open(text.as_bytes(), "").unwrap();
        assert_eq!(answer.boolean(), Some(true), "{text}");
    }
}

/// Answers, each with a part of the message that refuses it.
const REFUSED: &str = include_str!("refused.txt");

#[test]
fn what_is_no_answer_is_an_error_that_says_why() {
    for line in REFUSED.lines() {
        let (bad, why) = line.split_once(" =>").expect(line);
        let e = read(bad).expect_err(bad);
        assert!(e.contains(why.trim_start()), "{bad}: {e}");
    }
}
