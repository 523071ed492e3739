//! Each construct repeated for megabytes or nested 100,000 levels deep is parsed or rejected in time, on a small stack.

use crate::{ParseFailure, ParserOptions, parse_query, parse_update};
use std::time::{Duration, Instant};

fn on_small_stack(f: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(f)
        .unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn both(text: &str) -> (Result<(), ParseFailure>, Result<(), ParseFailure>) {
    let start = Instant::now();
    let options = ParserOptions::default();
    let out = (
        parse_query(text, &options).map(drop),
        parse_update(text, &options).map(drop),
    );
    let took = start.elapsed();
    assert!(
        took < Duration::from_secs(20),
        "{took:?}: {}",
        text.chars().take(100).collect::<String>()
    );
    for e in [&out.0, &out.1]
        .into_iter()
        .filter_map(|r| r.as_ref().err())
    {
        assert!(e.to_string().len() < 20_000);
    }
    out
}

#[test]
fn deep_texts_are_refused() {
    on_small_stack(|| {
        let opens = "\
            {·(·[·!·! ·<<·<<(·[ <a:p> ·{ ?s ?p ?o . {·1<((·-(·NOT EXISTS {·REPLACE(·COUNT(·CONCAT(·<a:f>(·\
            OPTIONAL {·{ SELECT * {·{ SELECT (1 AS ?x) {·GRAPH ?g {·SERVICE ?g {·MINUS {·?s ?p ?o {| ?q ·\
            ?s ?p << ?a ?b ·?s ?p ( ( ·?s (^(·FILTER EXISTS { FILTER EXISTS {·1 IN (·IF(·COALESCE(·\
            VALUES ?x { <<( <a:b> <a:b> ·{} UNION {·1 + (·\\u0028";
        let heads = "\
            SELECT * { ·SELECT * { FILTER( ·SELECT * { ?s ?p ·SELECT (·ASK ·INSERT DATA { ?s ?p ·\
            DELETE WHERE { ·INSERT { } WHERE { ·SELECT * { } ORDER BY ·CONSTRUCT { ?s ?p ";
        for open in opens.split('·') {
            for head in heads.split('·') {
                let (query, update) = both(&format!("{head}{}", open.repeat(100_000)));
                assert!(query.is_err() && update.is_err(), "{head}{open}");
            }
        }
    });
}

#[test]
fn long_chains_are_read_or_refused() {
    on_small_stack(|| {
        for (head, link, tail) in [
            ("ASK { FILTER(", "1 || ", "1) }"),
            ("ASK { FILTER(", "1 + ", "1) }"),
            ("ASK { FILTER(", "1 - ", "1) }"),
            ("ASK { FILTER(", "1*2/", "1) }"),
            ("ASK { FILTER(", "!", "1) }"),
            ("ASK { FILTER(", "- ", "1) }"),
            ("ASK { FILTER(1 IN (", "1,", "1)) }"),
            ("ASK { FILTER(CONCAT(", "1,", "1)) }"),
            ("ASK { ", "{} UNION ", "{} }"),
            ("ASK { ", "{ ?s ?p ?o } ", "}"),
            ("ASK { ", "FILTER(1) ", "}"),
            ("ASK { ", "OPTIONAL {} ", "}"),
            ("ASK { ", "MINUS {} ", "}"),
            ("ASK { ", "LATERAL {} ", "}"),
            ("ASK { ", "BIND(1 AS ?x) ", "}"),
            ("ASK { ", "GRAPH ?g { ?s ?p ?o } ", "}"),
            ("ASK { ", "VALUES ?x { 1 2 } ", "}"),
            ("ASK { ", "?s ?p ?o . ", "}"),
            ("ASK { ?s ?p ", "?o , ", "?o }"),
            ("ASK { ?s ", "?p ?o ; ", "}"),
            ("ASK { ?s ?p (", "1 ", ") }"),
            ("ASK { ?s ?p ", "[] , ", "[] }"),
            ("ASK { ?s ?p ?o ", "~ ?r {| ?a ?b |} ", "}"),
            ("ASK { ?s ", "<a:p>/", "<a:p> ?o }"),
            ("ASK { ?s (", "<a:p>|", "<a:p>) ?o }"),
            ("ASK { ?s !(", "^<a:p>|", "<a:p>) ?o }"),
            ("ASK { VALUES ?x { ", "1 UNDEF 'x'@en ", "} }"),
            ("ASK { VALUES (?x ?y) { ", "(1 <a:b>) ", "} }"),
            ("SELECT ", "?x ", "{}"),
            ("SELECT ", "(COUNT(?x) AS ?y) ", "{}"),
            ("SELECT ?x {} GROUP BY ", "STR(?x) ", ""),
            ("SELECT ?x {} GROUP BY ?x HAVING ", "(COUNT(?x) > 1) ", ""),
            ("SELECT ?x {} ORDER BY ", "DESC(?x) ", ""),
            ("DESCRIBE ", "<a:b> ", ""),
            ("", "PREFIX a: <a:b> ", "ASK {}"),
            ("ASK ", "FROM <a:b> ", "{}"),
            ("CONSTRUCT { ", "?s ?p ?o . ", "} {}"),
            ("INSERT DATA { ", "<a:a> <a:b> 'c' . ", "}"),
            ("INSERT DATA { ", "GRAPH <a:g> { <a:a> <a:b> _:c } ", "}"),
            ("DELETE WHERE { ", "GRAPH ?g { ?s ?p ?o } ", "}"),
            ("", "CLEAR ALL ; ", ""),
            ("ASK { ?s ?p '", "x", "' }"),
            ("ASK { ?s ?p '", "\\n", "' }"),
            ("ASK { ?s ?p <a:", "x", "> }"),
            ("ASK { ?s ?p ?", "x", " }"),
            ("ASK { ?s ?p ", "a.", " }"),
            ("ASK { ?s ?p ", "1<a", " }"),
            ("ASK { ?s ?p ", "'''", " }"),
            ("ASK { ?s ?p ", "'\n", " }"),
            ("# ", "x", "\nASK {}"),
            ("", "\n", "ASK {}"),
            ("ASK { ", "; ", "}"),
            ("ASK { ", "§ ", "}"),
            ("ASK { ", "foo ", "}"),
            ("ASK { ", "?s ?p ", "}"),
            ("ASK { ", "?s ?p x:y . ", "}"),
            ("ASK { ", "\\u0020", "}"),
            ("SELECT ", ", ?x ", "{}"),
            ("", "SELECT * {} ", ""),
            ("", "FILTER ", ""),
        ] {
            let text = format!("{head}{}{tail}", link.repeat((4 << 20) / link.len()));
            let _ = both(&text);
        }
    });
}

#[test]
fn big_texts_are_read() {
    let n = 20_000;
    for text in [
        format!("ASK {{ {} {{}} }}", "{ ?s <a:p> ?o } UNION ".repeat(n)),
        format!("ASK {{ ?s {}<a:p> ?o }}", "<a:p>/".repeat(n)),
        format!(
            "ASK {{ VALUES ?x {{ {} }} }}",
            "<http://example.org/x> ".repeat(200_000)
        ),
        format!("ASK {{ ?s ?p '''{}''' }}", "a\\tb\n".repeat(1 << 20)),
        format!("ASK {{ {} }}", "?s <a:p> ?o . ".repeat(300_000)),
        format!("DESCRIBE {}", "<a:b> ".repeat(40_000)),
        format!(
            "ASK {{ FILTER({}?x{}) }}",
            "REPLACE(".repeat(100),
            ", 'a', 'b')".repeat(100)
        ),
        format!("ASK {{ FILTER({}1) }}", "!".repeat(1000)),
    ] {
        let (query, _) = both(&text);
        query.unwrap_or_else(|e| panic!("{}: {e}", &text[..60]));
    }
    let data = format!(
        "INSERT DATA {{ {} }}",
        "<http://e/s> <http://e/p> \"o\" , [ <http://e/q> 1 ] .\n".repeat(500_000)
    );
    let (_, update) = both(&data);
    update.unwrap_or_else(|e| panic!("{e}"));
}

/// Counts the memory of all unit tests of this crate.
#[global_allocator]
static ALLOCATOR: jindou_model::Tracked = jindou_model::Tracked::new();

#[test]
fn limits_hold() {
    use jindou_model::{CancelToken, Holder, MemoryBudget, Scope};
    let text = format!("ASK {{ VALUES ?x {{ {} }} }}", "1 ".repeat(2 << 20));
    let cancel = CancelToken::new();
    let budget = MemoryBudget::new(64 << 20);
    let parse = |budget: &MemoryBudget, cancel: &CancelToken| {
        let scope = Scope::new(Holder::Text, budget, cancel);
        scope.run(|| parse_query(&text, &ParserOptions::default()))
    };
    let refused = parse(&budget, &cancel);
    assert!(matches!(
        refused,
        Err(ParseFailure::Limit(jindou_model::Error::Limit(_)))
    ));
    assert_eq!(budget.used(), 0);
    assert!(budget.peak() < 65 << 20, "{}", budget.peak());
    let late = CancelToken::with_deadline(Duration::ZERO);
    let whole = MemoryBudget::unlimited();
    let refused = parse(&whole, &late);
    assert!(matches!(
        refused,
        Err(ParseFailure::Limit(jindou_model::Error::Timeout(_)))
    ));
}
