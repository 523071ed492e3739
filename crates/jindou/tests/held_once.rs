//! Long names that a query uses often are held once, and so they are in its plan: the program's memory says so.

#[path = "common/stores.rs"]
mod stores;

use jindou::{Error, QueryOptions, UpdateOptions, Value};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Counts what is allocated, and the most at once.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is left to the system's allocator; the counts are alongside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promise is that of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is that of this function.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One at a time, since all count in the same place.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|e| e.into_inner())
}

/// Length of a long name.
const LONG: usize = 1 << 20;
/// Uses of it: held at each of them, it would take a gibibyte.
const USES: usize = 1_000;
/// The memory that may be taken: some copies of the text, and what is as long as the rest of it.
const ALLOWED: usize = 80 << 20;

/// Most bytes beyond those that there were before.
fn most<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let out = run();
    (out, MOST.load(Ordering::Relaxed) - before)
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

fn store() -> stores::Store {
    stores::of_trig("@prefix : <http://e/> . :s :p 1 , 2 . :t :p :s .")
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
