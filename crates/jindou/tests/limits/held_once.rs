//! Long names that a query uses often are held once, and so they are in its plan: the program's memory says so.

use jindou::testing::Store;
use jindou::{Error, QueryOptions, UpdateOptions, Value};
use jindou_testing::{counted, turn};

/// Length of a long name.
const LONG: usize = 1 << 20;
/// Uses of it: held at each of them, it would take a gibibyte.
const USES: usize = 1_000;
/// The memory that may be taken: some copies of the text, and what is as long as the rest of it.
const ALLOWED: usize = 80 << 20;

/// The most bytes that it took.
fn most<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let (out, taken) = counted(run);
    (out, taken.most_copied)
}

fn long() -> String {
    format!("http://e/{}", "x".repeat(LONG))
}

/// The part so often, with its number in place of `#`.
fn often(part: &str) -> String {
    (0..USES)
        .map(|i| part.replace('#', &i.to_string()))
        .collect()
}

fn store() -> Store {
    Store::of_trig("@prefix : <http://e/> . :s :p 1 , 2 . :t :p :s .")
}

/// A prefix `l:` with a long IRI.
fn prefixed(rest: &str) -> String {
    format!(
        "PREFIX : <http://e/> PREFIX l: <{}> BASE <{}/> {rest}",
        long(),
        long()
    )
}

#[test]
fn queries_hold_a_name_once() {
    let _turn = turn();
    let store = store();
    let union = |part: &str| format!("{{ {} }}", often(part).trim_end_matches("UNION "));
    for (what, text) in [
        ("objects", format!("ASK {{ l:a :p {} 1 }}", often("#, "))),
        ("predicates", format!("ASK {{ l:a {} }}", often(":p# # ; "))),
        (
            "values of one predicate",
            format!("ASK {{ :s l:p {} 1 }}", often("#, ")),
        ),
        (
            "a relative name",
            format!("ASK {{ {} }}", often(":s <a> # . ")),
        ),
        (
            "GRAPH",
            format!("ASK {{ GRAPH l:a {{ {} }} }}", often("?s :p # . ")),
        ),
        (
            "GRAPH of each",
            format!("ASK {{ {} }}", often("GRAPH l:a { ?s :p # } ")),
        ),
        (
            "alternatives",
            format!("ASK {{ ?s ({}l:a) ?o }}", often("l:a|")),
        ),
        (
            "a sequence",
            format!("ASK {{ ?s {}l:a ?o }}", often("l:a/")),
        ),
        (
            "repeated paths",
            format!("ASK {{ {} }}", union("{ ?s l:a+ # } UNION ")),
        ),
        (
            "a negated set",
            format!("ASK {{ ?s !({}l:a) ?o }}", often("l:a|^l:a|")),
        ),
        (
            "conditions",
            format!("SELECT * {{ ?s :p ?o {} }}", often("FILTER(?o != l:a) ")),
        ),
        (
            "comparisons",
            format!(
                "SELECT * {{ ?s :p ?o FILTER({}true) }}",
                often("?o < 'x'^^l:d || ?o = l:a || ")
            ),
        ),
        (
            "IRI()",
            format!(
                "SELECT * {{ ?s :p ?o FILTER({}true) }}",
                often("IRI('#') = ?s || ")
            ),
        ),
        (
            "IN",
            format!(
                "SELECT * {{ ?s :p ?o FILTER(?o IN ({}1)) }}",
                often("l:a, ")
            ),
        ),
        (
            "values",
            format!("ASK {{ VALUES ?v {{ {} }} FILTER(?v = 1) }}", often("l:a ")),
        ),
        (
            "rows",
            format!(
                "ASK {{ VALUES (?v ?w) {{ {} }} FILTER(?v = 1) }}",
                often("(l:a 'x'^^l:a) ")
            ),
        ),
        (
            "BIND",
            format!("ASK {{ {} FILTER(?v1 = 1) }}", often("BIND(l:a AS ?v#) ")),
        ),
        (
            "branches",
            format!("SELECT * {{ {} }}", union("{ ?s l:a # } UNION ")),
        ),
        (
            "OPTIONAL",
            format!(
                "SELECT * {{ ?s :p ?o {} }}",
                "OPTIONAL { ?s l:a ?x } ".repeat(40)
            ),
        ),
        (
            "a template",
            format!("CONSTRUCT {{ {} }} {{ ?s :none ?o }}", often("?s l:a # . ")),
        ),
        ("a list", format!("ASK {{ ?s l:a ({}) }}", often("l:a "))),
        ("DESCRIBE", format!("DESCRIBE {}", often("l:a "))),
        (
            "reifiers",
            format!("ASK {{ l:a :p :o {} }}", often("~_:a ")),
        ),
        (
            "annotations",
            format!("ASK {{ l:a :p :o {} }}", often("~_:a {| :q # |} ")),
        ),
        ("FROM", format!("ASK {} {{ ?s ?p ?o }}", often("FROM l:a "))),
    ] {
        let text = prefixed(&text);
        let options = QueryOptions::default();
        let (done, most) = most(|| store.db.query_with(&text, &options).map(drop));
        if let Err(e) = done {
            panic!("{what}: {e}");
        }
        assert!(most < ALLOWED, "{what}: {} MiB", most >> 20);
    }
}

/// A pattern sent to another endpoint has each name in full.
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
