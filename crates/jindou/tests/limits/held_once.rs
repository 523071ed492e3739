//! A long IRI that a query uses many times must be held in memory only once, also in the plan; measured by a counting
//! allocator.

use jindou::testing::Store;
use jindou::{Error, QueryOptions, UpdateOptions, Value};
use jindou_testing::{counted, turn};

/// Length of a long IRI, in bytes.
const LONG: usize = 1 << 20;
/// Number of uses; a copy for each would take a gibibyte.
const USES: usize = 1_000;
/// Largest memory in bytes: some copies of the text and the IRI, and structures in proportion to the text.
const ALLOWED: usize = 80 << 20;

/// Returns the result and the largest number of bytes that were allocated at any time.
fn most<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let (out, taken) = counted(run);
    (out, taken.most_copied)
}

fn long() -> String {
    format!("http://e/{}", "x".repeat(LONG))
}

/// [`USES`] copies of a part, with the copy's number in place of `#`.
fn often(part: &str) -> String {
    (0..USES)
        .map(|i| part.replace('#', &i.to_string()))
        .collect()
}

fn store() -> Store {
    Store::of_trig("@prefix : <http://e/> . :s :p 1 , 2 . :t :p :s .")
}

/// A text with `l:` declared as a prefix with a long IRI, and a long base.
fn prefixed(rest: &str) -> String {
    format!(
        "PREFIX : <http://e/> PREFIX l: <{}> BASE <{}/> {rest}",
        long(),
        long()
    )
}

/// Queries that use a long IRI many times: name, text before the repeated part, the repeated part, text after it.
#[rustfmt::skip]
const QUERIES: [(&str, &str, &str, &str); 24] = [
    ("objects", "ASK { l:a :p ", "#, ", " 1 }"),
    ("predicates", "ASK { l:a ", ":p# # ; ", " }"),
    ("values of one predicate", "ASK { :s l:p ", "#, ", " 1 }"),
    ("a relative name", "ASK { ", ":s <a> # . ", " }"),
    ("GRAPH", "ASK { GRAPH l:a { ", "?s :p # . ", " } }"),
    ("GRAPH of each", "ASK { ", "GRAPH l:a { ?s :p # } ", " }"),
    ("alternatives", "ASK { ?s (", "l:a|", "l:a) ?o }"),
    ("a sequence", "ASK { ?s ", "l:a/", "l:a ?o }"),
    ("repeated paths", "ASK { { ", "{ ?s l:a+ # } UNION ", " } }"),
    ("a negated set", "ASK { ?s !(", "l:a|^l:a|", "l:a) ?o }"),
    ("conditions", "SELECT * { ?s :p ?o ", "FILTER(?o != l:a) ", " }"),
    ("comparisons", "SELECT * { ?s :p ?o FILTER(", "?o < 'x'^^l:d || ?o = l:a || ", "true) }"),
    ("IRI()", "SELECT * { ?s :p ?o FILTER(", "IRI('#') = ?s || ", "true) }"),
    ("IN", "SELECT * { ?s :p ?o FILTER(?o IN (", "l:a, ", "1)) }"),
    ("values", "ASK { VALUES ?v { ", "l:a ", " } FILTER(?v = 1) }"),
    ("rows", "ASK { VALUES (?v ?w) { ", "(l:a 'x'^^l:a) ", " } FILTER(?v = 1) }"),
    ("BIND", "ASK { ", "BIND(l:a AS ?v#) ", " FILTER(?v1 = 1) }"),
    ("branches", "SELECT * { { ", "{ ?s l:a # } UNION ", " } }"),
    ("a template", "CONSTRUCT { ", "?s l:a # . ", " } { ?s :none ?o }"),
    ("a list", "ASK { ?s l:a (", "l:a ", ") }"),
    ("DESCRIBE", "DESCRIBE ", "l:a ", ""),
    ("reifiers", "ASK { l:a :p :o ", "~_:a ", " }"),
    ("annotations", "ASK { l:a :p :o ", "~_:a {| :q # |} ", " }"),
    ("FROM", "ASK ", "FROM l:a ", " { ?s ?p ?o }"),
];

#[test]
fn queries_hold_a_name_once() {
    let _turn = turn();
    let store = store();
    let optional = "OPTIONAL { ?s l:a ?x } ".repeat(40);
    let optional = ("OPTIONAL", format!("SELECT * {{ ?s :p ?o {optional} }}"));
    let texts = QUERIES.map(|(what, head, part, tail)| {
        let parts = often(part);
        let parts = parts.trim_end_matches("UNION ");
        (what, format!("{head}{parts}{tail}"))
    });
    for (what, text) in texts.into_iter().chain([optional]) {
        let text = prefixed(&text);
        let options = QueryOptions::default();
        let (done, most) = most(|| store.db.query_with(&text, &options).map(drop));
        if let Err(e) = done {
            panic!("{what}: {e}");
        }
        assert!(most < ALLOWED, "{what}: {} MiB", most >> 20);
    }
}

/// A pattern that is sent to another endpoint contains each IRI in full, so it becomes too long.
#[test]
fn a_service_with_long_names_is_refused() {
    let _turn = turn();
    let store = store();
    let text = prefixed(&format!(
        "SELECT * {{ SERVICE <http://e/other> {{ {} }} }}",
        often("?s l:a # . ")
    ));
    let (done, most) = most(|| {
        store
            .db
            .query_with(&text, &QueryOptions::default())
            .map(drop)
    });
    let done = done.unwrap_err();
    assert!(matches!(done, Error::Unsupported(_)), "{done}");
    assert!(most < ALLOWED, "{} MiB", most >> 20);
}

#[test]
fn a_parameter_is_held_once() {
    let _turn = turn();
    let store = store();
    let text = format!(
        "PREFIX : <http://e/> SELECT * {{ ?s :p ?o {} }}",
        "FILTER(?o != ?x) OPTIONAL { ?s :q ?x } ".repeat(60)
    );
    let prepared = store.db.prepare(&text, &["x"], &QueryOptions::default());
    let prepared = prepared.unwrap_or_else(|e| panic!("{e}"));
    let name = long();
    let value = [Value::Iri(&name)];
    let (planned, most) = most(|| prepared.plan(&value, &QueryOptions::default()).map(drop));
    planned.unwrap_or_else(|e| panic!("{e}"));
    assert!(most < ALLOWED, "{} MiB", most >> 20);
}

#[test]
fn updates_hold_a_name_once() {
    let _turn = turn();
    let store = store();
    for (what, text) in [
        (
            "data",
            format!("INSERT DATA {{ GRAPH l:g {{ {} }} }}", often("l:a :p # . ")),
        ),
        (
            "data to delete",
            format!("DELETE DATA {{ GRAPH l:g {{ {} }} }}", often("l:a :p # . ")),
        ),
        (
            "templates",
            format!(
                "INSERT {{ GRAPH l:g {{ {} }} }} WHERE {{ ?s :none ?o }}",
                often("?s l:a # . ")
            ),
        ),
        (
            "a template of graphs",
            format!(
                "DELETE {{ {} }} WHERE {{ ?s :none ?o }}",
                often("GRAPH l:g { ?s l:a # } ")
            ),
        ),
        (
            "DELETE WHERE",
            format!("DELETE WHERE {{ {} }}", often("GRAPH l:g { :s l:a # } ")),
        ),
        (
            "WITH",
            format!(
                "WITH l:g DELETE {{ {} }} WHERE {{ ?s :none ?o }}",
                often("?s l:a # . ")
            ),
        ),
        ("many operations", often("CLEAR SILENT GRAPH l:g ; ")),
    ] {
        let text = prefixed(&text);
        let (done, most) = most(|| store.db.update(&text, &UpdateOptions::default()).map(drop));
        if let Err(e) = done {
            panic!("{what}: {e}");
        }
        assert!(most < ALLOWED, "{what}: {} MiB", most >> 20);
    }
}
