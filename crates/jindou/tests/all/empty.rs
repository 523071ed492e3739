//! Tests of the reasons why queries have no answer: against brute force over small random graphs, and for extreme
//! texts.

use jindou::{Answer, CancelToken, Database, Error, QueryOptions, ReasonKind, UpdateOptions};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;

/// Longest time of an explanation: 200 ms, plus parsing and a late end on a loaded machine without optimisation.
const MOST: Duration = Duration::from_secs(5);

const NAMES: [&str; 6] = ["alpha", "alpah", "beta", "gamma", "Gamma", "delta"];

fn name(n: usize) -> String {
    format!("http://e/{}", NAMES[n % NAMES.len()])
}

fn object(n: usize) -> String {
    match n % 9 {
        0 => "\"text\"".into(),
        1 => "\"text\"@en".into(),
        2 => "7".into(),
        n => format!("<{}>", name(n)),
    }
}

/// Numbers of a triple's subject, predicate and object, and of its graph (0 is the default graph).
type Numbers = (usize, usize, usize, usize);

fn quads() -> impl Strategy<Value = Vec<Numbers>> {
    prop::collection::vec((0..6usize, 0..3usize, 0..9usize, 0..3usize), 0..8)
}

/// Random triple patterns; numbers greater than those of the terms stand for variables.
fn patterns() -> impl Strategy<Value = Vec<Numbers>> {
    prop::collection::vec((0..9usize, 0..7usize, 0..13usize, 0..2usize), 1..4)
}

fn pattern(&(s, p, o, _): &Numbers) -> String {
    let subject = match s {
        s if s >= 6 => format!("?v{}", s - 6),
        s => format!("<{}>", name(s)),
    };
    let predicate = match p {
        p if p >= 6 => "?p".to_owned(),
        p => format!("<{}>", name(p)),
    };
    let object = match o {
        o if o >= 9 => format!("?v{}", o - 9),
        o => object(o),
    };
    format!("{subject} {predicate} {object}")
}

fn database(quads: &[Numbers]) -> (Database, BTreeSet<String>) {
    let db = Database::in_memory();
    let mut terms = BTreeSet::new();
    let mut text = String::from("INSERT DATA {");
    for &(s, p, o, g) in quads {
        let (s, p, o) = (
            format!("<{}>", name(s)),
            format!("<{}>", name(p)),
            object(o),
        );
        let triple = format!("{s} {p} {o} .");
        text += &match g {
            0 => triple,
            g => format!(" GRAPH <http://e/graph{g}> {{ {triple} }} "),
        };
        terms.extend([s, p, o]);
    }
    text.push('}');
    db.update(&text, &UpdateOptions::default()).unwrap();
    (db, terms)
}

fn is_empty(answer: &Answer) -> bool {
    match answer {
        Answer::Boolean(b) => !b,
        other => other.solutions().is_empty(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reasons_are_true(quads in quads(), patterns in patterns(), union in any::<bool>()) {
        let (db, terms) = database(&quads);
        let options = QueryOptions::default().with_union_default(union);
        let body: Vec<String> = patterns.iter().map(pattern).collect();
        let body = match patterns[0].3 {
            0 => body.join(" . "),
            _ => format!("GRAPH ?g {{ {} }}", body.join(" . ")),
        };
        let text = format!("SELECT * {{ {body} }}");
        let answer = db.query_with(&text, &options).unwrap();
        let reasons = db.why_empty(&text, &options).unwrap();
        prop_assert_eq!(reasons.is_empty(), !is_empty(&answer), "{}: {:?}", text, reasons);
        for reason in &reasons {
            let said = reason.place.map(|p| &text[p.start..p.end]);
            if reason.message.contains("does not occur in this store") {
                prop_assert!(!terms.contains(said.unwrap()), "{}: {}", text, reason);
            }
            for suggestion in &reason.suggestions {
                let Some(r) = &suggestion.replacement else { continue };
                if matches!(reason.kind, ReasonKind::UnknownTerm | ReasonKind::OtherLiteral) {
                    prop_assert!(terms.contains(&r.with), "{}: {} is written", text, r.with);
                }
                let mut repaired = text.clone();
                repaired.replace_range(r.start..r.end, &r.with);
                prop_assert!(db.query_with(&repaired, &options).is_ok(), "{}", repaired);
            }
        }
    }
}

#[test]
fn texts_that_nobody_writes_end_in_time() {
    let (db, _) = database(&[(0, 1, 2, 0), (1, 2, 3, 1), (2, 0, 4, 0)]);
    let all = [
        format!("SELECT * {{ {} }}", "?s <http://e/alpha> ?o . ".repeat(30_000)),
        format!("SELECT * {{ {} }}", (0..20_000).map(|n| format!("?s{n} <http://e/p{n}> ?o{n} . ")).collect::<String>()),
        format!("SELECT * {{ {} {{ ?s <http://e/no> ?o }} }}", "{ ?s <http://e/no> ?o } UNION ".repeat(20_000)),
        format!("SELECT * {{ ?s <http://e/alpha> ?o {} }}", "FILTER(?o = 1) ".repeat(4_000)),
        format!("SELECT * {{ ?s {}<http://e/no> ?o }}", "<http://e/no>/".repeat(30_000)),
        format!("SELECT * {{ {} ?s <http://e/no> ?o {} }}", "{".repeat(40), "}".repeat(40)),
        format!("SELECT * {{ ?s <http://e/no> ?o {} }}", "OPTIONAL { ?s <http://e/no> ?o } ".repeat(4_000)),
        format!("SELECT * {{ ?s <http://e/alpha> \"{}\" }}", "x".repeat(500_000)),
        format!("SELECT * {{ VALUES ?s {{ {} }} ?s <http://e/alpha> ?o }}", "<http://e/none> ".repeat(20_000)),
        format!("SELECT * {} {{ ?s ?p ?o }}", "FROM <http://e/none> ".repeat(20_000)),
        "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o FILTER(?a = ?o && ?d = 9) }".to_owned(),
    ];
    for text in all {
        let begin = jindou_testing::Stopwatch::start();
        let found = db.why_empty(&text, &QueryOptions::default());
        let took = begin.elapsed();
        let start: String = text.chars().take(60).collect();
        println!("{start}… {} bytes: {took:?}, {found:.80?}", text.len());
        assert!(took < MOST, "{start}… took {took:?}");
        // The text may exceed a limit of the parser, which is an error of the query itself.
        assert!(
            matches!(&found, Ok(_) | Err(Error::Limit(_))),
            "{start}: {found:?}"
        );
        assert!(found.is_err() || found.unwrap().len() <= 8);
    }
}

#[test]
fn a_text_that_is_no_query_is_an_error() {
    let db = Database::in_memory();
    let why = |text: &str, options| db.why_empty(text, options);
    let options = QueryOptions::default();
    assert!(matches!(why("SELECT *", &options), Err(Error::Sparql(_))));
    let cancel = CancelToken::new();
    cancel.cancel();
    let options = QueryOptions::default().with_cancel(cancel);
    assert!(matches!(
        why("SELECT * { ?s ?p ?o . ?s ?q ?o }", &options),
        Err(Error::Cancelled)
    ));
}

#[test]
fn a_reason_has_the_place_and_the_text_to_write() {
    let (db, _) = database(&[(0, 0, 3, 0)]);
    let text = "SELECT * {\n  ?s <http://e/alpa> ?o\n}";
    let reasons = db.why_empty(text, &QueryOptions::default()).unwrap();
    let reason = &reasons[0];
    assert_eq!((reasons.len(), reason.kind), (1, ReasonKind::UnknownTerm));
    let place = reason.place.unwrap();
    assert_eq!((place.line, place.column), (2, 6));
    assert_eq!(&text[place.start..place.end], "<http://e/alpa>");
    let replacement = reason.suggestions[0].replacement.as_ref().unwrap();
    assert_eq!(
        (replacement.start, replacement.end),
        (place.start, place.end)
    );
    assert_eq!(replacement.with, "<http://e/alpha>");
}

#[test]
fn the_place_is_in_the_group_and_not_in_the_template() {
    let (db, _) = database(&[(0, 0, 3, 0)]);
    let text = "CONSTRUCT { ?s <http://e/no> ?o } WHERE { ?s <http://e/no> ?o }";
    let reasons = db.why_empty(text, &QueryOptions::default()).unwrap();
    assert_eq!(reasons[0].place.unwrap().start, 45);
}
