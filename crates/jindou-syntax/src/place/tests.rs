//! Positions of cursors in many forms of queries, also in invalid ones.

use super::{CursorPlace, Slot, place};
use crate::tests::files::texts;
use jindou_testing::{Mutator, Rng};
use std::time::Duration;

/// The position of the cursor `¦`.
fn at(text: &str) -> CursorPlace {
    let (before, after) = text.split_once('¦').unwrap();
    place(before, after)
}

/// The expected kind of term, with subject and predicate if they are known.
fn slot(text: &str) -> String {
    let p = at(text);
    let slot = format!("{:?}", p.slot).to_lowercase();
    let parts = match p.slot {
        Slot::Predicate => vec![p.subject],
        Slot::Object => vec![p.subject, p.predicate],
        _ => vec![],
    };
    let inverse = if p.inverse { " ^" } else { "" };
    let parts: String = parts
        .into_iter()
        .flatten()
        .map(|p| format!(" {p}"))
        .collect();
    slot + &parts + inverse
}

fn patterns(text: &str) -> Vec<String> {
    let pattern = |p: &super::Pattern| {
        let graph = p.graph.as_ref().map_or(String::new(), |g| format!("{g}: "));
        format!("{graph}{} {} {}", p.subject, p.predicate, p.object)
    };
    at(text).patterns.iter().map(pattern).collect()
}

/// Texts with a cursor, and the kind of term expected there. `\n` stands for a line break.
const SLOTS: &str = r#"
¦ => keyword
SEL¦ => keyword
PREFIX ¦ => prefix
PREFIX foaf: <¦ => nothing
PREFIX foaf: <http://e/> ¦ => keyword
SELECT ¦ => variable
SELECT (COUNT(¦ => expression
SELECT (COUNT(?x) AS ?n) ¦ => variable
SELECT * ¦ => variable
SELECT * FROM ¦ => graph
SELECT * FROM NAMED ¦ => graph
SELECT * FROM <g:g> WHERE ¦ => keyword
SELECT * { ¦ => subject
SELECT * { ?x ¦ => predicate ?x
SELECT * { $x ¦ => predicate ?x
SELECT * { ?x foaf:na¦ => predicate ?x
SELECT * { ?x foaf:name ¦ => object ?x foaf:name
SELECT * { ?x a foaf:P¦ } => object ?x a
SELECT * { ?x a foaf:Person . ¦ => subject
SELECT * { ?x a foaf:Person ; ¦ => predicate ?x
SELECT * { ?x a foaf:Person , ¦ => object ?x a
SELECT * { ?x a foaf:Person . FIL¦ => subject
SELECT * { ?x ^¦ => predicate ?x ^
SELECT * { ?x ^foaf:knows/¦ => predicate ?_1
SELECT * { ?x foaf:knows/^¦ => predicate ?_1 ^
SELECT * { ?x foaf:knows|¦ => predicate ?x
SELECT * { ?x foaf:knows/foaf:name ¦ => object ?x foaf:knows/foaf:name
SELECT * { ?x foaf:knows* ¦ => object ?x foaf:knows*
SELECT * { ?x (¦ => predicate ?x
SELECT * { ?x (a ¦ => nothing
SELECT * { ?x (a|¦ => predicate ?x
SELECT * { ?x (foaf:a|foaf:b)+ ¦ => object ?x (foaf:a|foaf:b)+
SELECT * { ?x !(foaf:a|^foaf:b) ¦ => object ?x !(foaf:a|^foaf:b)
SELECT * { ?x foaf:age +5 . ?y ¦ => predicate ?y
SELECT * { ?x a ?c FILTER(?c = ¦ => expression
SELECT * { ?x a ?c FILTER(?c < ¦ => expression
SELECT * { ?x a ?c FILTER(STRLEN(?c) > 3) ¦ => subject
SELECT * { ?x a ?c FILTER(STRLEN(?c) > 3) ?x ¦ => predicate ?x
SELECT * { ?x a ?c FILTER EXISTS { ?x ¦ => predicate ?x
SELECT * { ?x a ?c FILTER(?c > 1 || NOT EXISTS { ?x ¦ => predicate ?x
SELECT * { ?x a ?c FILTER(?c > 1 || NOT EXISTS { ?x a ?y } && ¦ => expression
SELECT * { ?x a ?c FILTER NOT EXISTS { ?x a ?y } ?x ¦ => predicate ?x
SELECT * { ?x a ?c OPTIONAL { ?x ¦ => predicate ?x
SELECT * { ?x a ?c OPTIONAL ¦ => keyword
SELECT * { ?x a ?c OPTIONAL { ?x ?p ?o } ?y ¦ => predicate ?y
SELECT * { BIND(1 AS ?z) ?y ¦ => predicate ?y
SELECT * { VALUES ¦ => variable
SELECT * { VALUES ?z { ¦ => nothing
SELECT * { VALUES ?z { 1 2 } ?y ¦ => predicate ?y
SELECT * { VALUES (?z ?y) { (1 2) (UNDEF <a:b>) } ?y ¦ => predicate ?y
SELECT * { GRAPH ¦ => graph
SELECT * { GRAPH ?g { ?x ¦ => predicate ?x
SELECT * { SERVICE <http://e/> { ?x ¦ => nothing
SELECT * { SERVICE SILENT <http://e/> { { ?x a ¦ => nothing
SELECT * { SERVICE <http://e/> { ?x ?y ?z } ?x ¦ => predicate ?x
SELECT * { ?x foaf:name "¦ => nothing
SELECT * { ?x foaf:name """a\n b ¦ => nothing
SELECT * { ?x foaf:name """a\n b""" ; ¦ => predicate ?x
SELECT * { # ?x ¦ => nothing
SELECT * { # ?x\n ?x ¦ => predicate ?x
SELECT * { ?x foaf:name "a"@en ; ¦ => predicate ?x
SELECT * { ?x foaf:age "1"^^xsd:int ; ¦ => predicate ?x
SELECT * { ?x foaf:knows [ ¦ => predicate ?_1
SELECT * { ?x foaf:knows [ a foaf:Person ] ; ¦ => predicate ?x
SELECT * { [ a foaf:Person ] ¦ => predicate ?_1
SELECT * { ?x foaf:list ( ¦ => object
SELECT * { ?x foaf:list ( ?a ?b ) ; ¦ => predicate ?x
SELECT * { ?x <http://e/p> ¦ => object ?x <http://e/p>
SELECT * { ?x <http://e¦ => predicate ?x
SELECT * { ?x <http://e#fra¦ => predicate ?x
SELECT * { ?x a <¦ => object ?x a
SELECT * { { ?x a ?y } UNION { ?z ¦ => predicate ?z
SELECT * { ?x a ?y } ORDER BY ¦ => expression
SELECT * { ?x a ?y } LIMIT ¦ => keyword
SELECT * { { SELECT ¦ => variable
INSERT DATA { <a:a> ¦ => predicate <a:a>
DELETE { ?x a ?y } WHERE { ?x ¦ => predicate ?x
WITH ¦ => graph
SELECT * { << ?a ?b ¦ => nothing
SELECT * { << ?a ?b ?c >> ¦ => predicate ?_1
SELECT * { ?x a ?y {| ¦ => predicate
SELECT * { ?x a ?y {| foaf:b 1 |} ; ¦ => predicate ?x
SELECT * { ?x } } } ¦ => keyword
SELECT * { ?x ] ) . ?x ¦ => predicate ?x
"#;

#[test]
fn the_slot_that_is_being_written() {
    for line in SLOTS.trim().lines() {
        let (text, expected) = line.split_once(" => ").unwrap();
        assert_eq!(slot(&text.replace("\\n", "\n")), expected, "{text}");
    }
}

#[test]
fn the_word_begins_where_it_is_replaced() {
    for (text, word) in [
        ("SELECT * { ?x foaf:na¦me", "foaf:na"),
        ("SELECT * { ?x foaf:¦", "foaf:"),
        ("SELECT * { ?x fo¦", "fo"),
        ("SELECT * { ?x a <http://e/ä#b¦", "<http://e/ä#b"),
        ("SELECT * { ?x a ?¦", "?"),
        ("SELECT * { ?xy¦", "?xy"),
        ("SELECT * { ?x a ¦", ""),
        ("SELECT * { ?x a <http://e/>¦", ""),
        ("SELECT * { ?x a ?y .¦", ""),
    ] {
        let before = text.split('¦').next().unwrap();
        assert_eq!(&before[at(text).from..], word, "{text}");
    }
}

/// Texts with a cursor, and the patterns that hold there, also those behind the cursor.
const PATTERNS: &str = r#"
{ ?x a c: ; p: ?y . ?y q: 'a'@en . ?x ¦ => ?x a c:, ?x p: ?y, ?y q: 'a'@en
{ ?x p: ?a, ?b ; ¦ => ?x p: ?a, ?x p: ?b
{ ?x p: '1'^^xsd:int . ?x ¦ => ?x p: '1'^^xsd:int
{ ?x p: [ q: ?z ; ¦ => ?x p: ?_1, ?_1 q: ?z
{ ?x p:/q:/¦ => ?x p:/q: ?_1
{ ?x p: _:b . _:b ¦ => ?x p: ?__bb
{ ?x a c: OPTIONAL { ?x p: ?y } ?x ¦ => ?x a c:
{ ?x a c: OPTIONAL { ?x p: ?y . ?y ¦ => ?x a c:, ?x p: ?y
{ ?x a c: { SELECT ?x { ?x p: ?y . ?x ¦ => ?x p: ?y
{ ?x a c: { SELECT ?x { ?x p: ?y . ?x ¦ } } ?x q: ?z } => ?x p: ?y
{ ?x a c: GRAPH ?g { ?x p: ?y . ?x ¦ => ?x a c:, ?g: ?x p: ?y
{ ?x ¦ . ?x a c: } => ?x a c:
{ ?x p: ¦ ; a c: . ?y q: ?x } => ?x a c:, ?y q: ?x
{ ?x ¦ } UNION { ?x a d: } =>
{ ?y a b: { ?x ¦ } ?x a c: { ?x a d: } } => ?y a b:, ?x a c:
{ ?x ¦ FILTER(?y > 3) ?x a c: } => ?x a c:
{ ?x ¦p: ?y . ?x a c: } => ?x a c:
INSERT { ?x a c: . ?x ¦ =>
"#;

#[test]
fn patterns_are_those_that_hold_here() {
    for line in PATTERNS.trim().lines() {
        let (text, expected) = line.split_once(" =>").unwrap();
        let mut found = patterns(text);
        let mut expected: Vec<&str> = expected.split(',').map(str::trim).collect();
        expected.retain(|pattern| !pattern.is_empty());
        found.sort();
        expected.sort_unstable();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn prologue_dataset_and_variables_are_known() {
    let p = at(
        "BASE <http://b/> PREFIX a: <http://a/> PREFIX : <x> SELECT ?n FROM <g:1> FROM NAMED <g:2> { ?x a:p ?y . ?y ¦ a:q ?z }",
    );
    assert_eq!(p.base.as_deref(), Some("http://b/"));
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(p.prefixes, [pair("a", "http://a/"), pair("", "x")]);
    assert_eq!(
        p.dataset,
        [vec!["<g:1>".to_owned()], vec!["<g:2>".to_owned()]]
    );
    assert_eq!(p.variables, ["?y", "?x", "?n", "?z"]);
    // Generated names of nodes differ from the variables of the text.
    assert_eq!(at("{ ?__1 a [ ¦").subject.as_deref(), Some("?___1"));
}

/// Calls `place` with the cursor at each position of a text.
fn everywhere(text: &str) {
    for (i, _) in text.char_indices() {
        let (before, after) = text.split_at(i);
        let p = place(before, after);
        assert!(p.from <= i && text.is_char_boundary(p.from));
        let _ = place(before, "");
    }
}

#[test]
fn any_prefix_of_any_query_has_a_place() {
    for (_, _, text) in texts().iter().filter(|t| t.2.len() < 2048) {
        everywhere(text);
    }
}

#[test]
fn damaged_queries_have_places() {
    let seeds = texts().into_iter().map(|t| t.2.into_bytes()).collect();
    let words = [
        "{", "}", "[", "]", "(", ")", "<", "\"", "'''", " a ", ";", ",", "^", "GRAPH ", "SELECT ",
        "_:b", "?x ", "ü", "#",
    ];
    let mutator = Mutator::new(seeds, &words);
    let mut rng = Rng::new(19);
    for _ in 0..20_000 {
        let text = mutator.text(&mut rng);
        let text = String::from_utf8_lossy(&text);
        let mut at = rng.below(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let (before, after) = text.split_at(at);
        let _ = place(before, after);
    }
}

#[test]
fn long_texts_take_linear_time() {
    let parts = "\
        {·}·(·[·<·<<·{|·?x ·a:b ·\"·\"\"\"·#·^·/·a:b/·a:b/(·?x a ?y . ·?x a [ ·SELECT ·GRAPH <g:g> { ·\
        { SELECT * { ·VALUES ?x { ·?s ?p (·;·_·?x_·'·\\";
    let heads = "·SELECT * { ·SELECT * { ?x ·SELECT * { ?x a:p ·SELECT * { FILTER(";
    for part in parts.split('·') {
        for head in heads.split('·') {
            let text = head.to_owned() + &part.repeat(50_000 / part.len());
            let start = jindou_testing::Stopwatch::start();
            let _ = place(&text, "");
            let _ = place(&text, &text);
            let took = start.elapsed();
            assert!(took < Duration::from_millis(500), "{head}{part}: {took:?}");
        }
    }
}
