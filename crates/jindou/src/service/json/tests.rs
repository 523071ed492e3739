use super::*;
use crate::service::tests::{self, Rows};
use oxrdf::{BaseDirection, BlankNode, NamedNode, Term, Triple};
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

fn blank(label: &str) -> Option<Term> {
    Some(BlankNode::new(label).unwrap().into())
}

#[test]
fn terms_are_what_the_json_says() {
    let iri = |text: &str| NamedNode::new(text).unwrap();
    for (json, expected) in [
        (r#"{"type":"literal","value":" \u00e9\n"}"#, text(" é\n")),
        (r#"{"value":"a","type":"literal"}"#, text("a")),
        (r#"{"type":"literal","value":"a","xml:lang":""}"#, text("a")),
        (
            r#"{"xml:lang":null,"datatype":null,"type":"literal","value":"a"}"#,
            text("a"),
        ),
        (r#"{"type":"literal","value":"a","datatype":""}"#, text("a")),
        (
            r#"{"type":"literal","value":"a","datatype":"http://www.w3.org/2001/XMLSchema#string"}"#,
            text("a"),
        ),
        (
            r#"{"type":"literal","value":"a","xml:lang":"EN","datatype":"http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"}"#,
            Some(
                Literal::new_language_tagged_literal("a", "en")
                    .unwrap()
                    .into(),
            ),
        ),
        (
            r#"{"type":"literal","value":"a","xml:lang":"ar","its:dir":"rtl"}"#,
            Some(
                Literal::new_directional_language_tagged_literal("a", "ar", BaseDirection::Rtl)
                    .unwrap()
                    .into(),
            ),
        ),
        (
            r#"{"type":"typed-literal","value":"1","datatype":"http://www.w3.org/2001/XMLSchema#integer"}"#,
            Some(Literal::from(1).into()),
        ),
        (
            r#"{"type":"uri","value":"http://e/a","more":[{"x":1}]}"#,
            Some(iri("http://e/a").into()),
        ),
        (r#"{"type":"bnode","value":"b0"}"#, blank("b0")),
        (
            r#"{"value":"nodeID:\/\/b1","type":"bnode"}"#,
            blank("nodeID.b1"),
        ),
        ("null", None),
        (
            r#"{"type":"triple","value":{"object":{"type":"literal","value":"o"},"subject":{"type":"bnode","value":"s"},"predicate":{"type":"uri","value":"http://e/p"}}}"#,
            Some(
                Triple::new(
                    BlankNode::new("s").unwrap(),
                    iri("http://e/p"),
                    Literal::new_simple_literal("o"),
                )
                .into(),
            ),
        ),
    ] {
        let found = read(&one(json));
        assert_eq!(
            found,
            Ok((vec!["v".into()], vec![vec![expected]])),
            "{json}"
        );
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

#[test]
fn what_is_no_answer_is_an_error_that_says_why() {
    for (bad, why) in [
        (String::new(), ""),
        ("[]".into(), "it is not an object"),
        ("{}".into(), "it has no results"),
        (r#"{"head":{"vars":["v"]}}"#.into(), "it has no results"),
        (r#"{"head":[]}"#.into(), "its head is not an object"),
        (
            r#"{"head":{"vars":"v"}}"#.into(),
            "`vars` of its head is not an array",
        ),
        (
            r#"{"head":{"vars":["v","v"]},"results":{"bindings":[]}}"#.into(),
            "names a variable twice",
        ),
        (r#"{"boolean":"yes"}"#.into(), "neither true nor false"),
        (
            r#"{"boolean":true,"results":{"bindings":[]}}"#.into(),
            "two results",
        ),
        (
            r#"{"head":{"vars":[]},"results":{"bindings":[]},"boolean":true}"#.into(),
            "two results",
        ),
        (
            r#"{"head":{"vars":["v"]},"results":{"bindings":[[]]}}"#.into(),
            "a row is not an object",
        ),
        (
            r#"{"head":{"vars":["v"]},"results":{"bindings":{}}}"#.into(),
            "is not an array",
        ),
        (
            r#"{"head":{"vars":["v"]},"results":{"bindings":[]}} x"#.into(),
            "",
        ),
        (
            one(r#"{"type":"uri","value":"not an iri"}"#),
            "row 1, variable v: `not an iri` is not a valid IRI",
        ),
        (
            one(r#"{"type":"literal","value":"x","xml:lang":"a b"}"#),
            "not a valid language tag",
        ),
        (
            one(r#"{"type":"literal","value":"x","datatype":"x y"}"#),
            "not a valid IRI of a datatype",
        ),
        (
            one(r#"{"type":"literal","value":"x","xml:lang":"ar","its:dir":"up"}"#),
            "neither `ltr` nor `rtl`",
        ),
        (one(r#"{"type":"literal"}"#), "a term has no `value`"),
        (
            one(r#"{"type":"literal","value":5}"#),
            "`value` is not a string",
        ),
        (one(r#"{"type":"bnode","value":""}"#), "no label"),
        (
            one(r#"{"type":"thing","value":"x"}"#),
            "a term has the type `thing`",
        ),
        (one(r#"{"value":"x"}"#), "a term has the type ``"),
        (
            one(r#"{"type":"triple","value":{}}"#),
            "a part of a triple is missing",
        ),
        (one(r#""x""#), "a term is not an object"),
        (
            one(r#"null,"w":null"#),
            "the variable `w` is not in the head",
        ),
        (
            one(r#"{"type":"literal","value":"x"},"v":{"type":"literal","value":"y"}"#),
            "row 1 has two values for a variable",
        ),
    ] {
        let e = read(&bad).expect_err(&bad);
        assert!(e.contains(why), "{bad}: {e}");
    }
}
