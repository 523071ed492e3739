//! Stores whose data is in named graphs: what says so, and how queries see it.

use super::run::{at_terminal, run, said};
use std::path::Path;
use std::process::Command;

/// A document whose quads are all in named graphs.
const DATA: &str = "<http://e/mars> <http://e/moons> 2 <http://e/g1> .\n\
    <http://e/earth> <http://e/moons> 1 <http://e/g2> .\n\
    <http://e/earth> <http://e/name> \"Earth\"@en <http://e/g2> .\n";

fn store(folder: &Path) -> String {
    std::fs::write(
        folder.join("d.nq"),
        DATA.replace("> 2 ", "> \"2\" ").replace("> 1 ", "> \"1\" "),
    )
    .unwrap();
    said(folder, &["load", "-q", "--store", "s", "d.nq"]).0
}

/// A search looks everywhere unless it is told where.
#[test]
fn a_search_looks_in_all_graphs() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    let label = "<http://www.w3.org/2000/01/rdf-schema#label>";
    let data = format!(
        "<http://e/a> {label} \"red stone\" .\n<http://e/b> {label} \"red sand\" <http://e/g> .\n"
    );
    std::fs::write(at.join("d.nq"), data).unwrap();
    said(at, &["load", "-q", "--store", "s", "d.nq"]);
    for (chosen, want) in [
        (&[][..], [true, true]),
        (&["--graphs", "all"], [true, true]),
        (&["--graphs", "default"], [true, false]),
        (&["--graph", "http://e/g"], [false, true]),
        (
            &["--graph", "<http://e/g>", "--graph", "http://e/h"],
            [false, true],
        ),
    ] {
        let args = [&["search", "--store", "s", "red"], chosen].concat();
        let (out, _) = said(at, &args);
        let found = ["http://e/a", "http://e/b"].map(|iri| out.contains(iri));
        assert_eq!(found, want, "{chosen:?}: {out}");
    }
    let (_, err) = said(at, &["search", "--store", "s", "--timeout", "0s", "red"]);
    assert!(err.contains("jindou recluster --text"), "{err}");
}

#[test]
fn a_load_says_that_all_is_in_named_graphs() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    let out = store(at);
    let last =
        "All 3 quads are in 2 named graphs; query them with GRAPH ?g { … } or with --graphs all";
    assert_eq!(out.lines().last(), Some(last), "{out}");
    let (out, _) = said(
        at,
        &[
            "load",
            "-q",
            "--replace",
            "--store",
            "s",
            "--union-default-graph",
            "d.nq",
        ],
    );
    assert!(!out.contains("named graphs"), "{out}");
    std::fs::write(at.join("d.ttl"), "<http://e/a> <http://e/p> 1 .").unwrap();
    let (out, _) = said(at, &["load", "-q", "--store", "t", "d.ttl"]);
    assert_eq!(out.lines().count(), 1, "{out}");
    let (out, _) = said(at, &["load", "-q", "--into", "t", "d.nq"]);
    assert!(!out.contains("named graphs"), "{out}");
}

#[test]
fn the_option_chooses_what_queries_see() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    store(at);
    let count = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
    let counted = |more: &[&str]| {
        let mut args = vec!["query", "--store", "s", "--format", "csv", count];
        args.extend_from_slice(more);
        let (out, err) = said(at, &args);
        assert!(err.is_empty(), "only at a terminal: {err}");
        out
    };
    assert_eq!(counted(&[]), "n\r\n0\r\n");
    assert_eq!(counted(&["--graphs", "all"]), "n\r\n3\r\n");
    assert_eq!(counted(&["--union-default-graph"]), "n\r\n3\r\n");
    assert_eq!(counted(&["--graphs", "default"]), "n\r\n0\r\n");
    // A store that was loaded so.
    said(
        at,
        &[
            "load",
            "-q",
            "--replace",
            "--store",
            "s",
            "--union-default-graph",
            "d.nq",
        ],
    );
    assert_eq!(counted(&[]), "n\r\n3\r\n");
    assert_eq!(counted(&["--graphs", "default"]), "n\r\n0\r\n");
    let o = run(at, &["query", "--store", "s", "--graphs", "most", count]);
    let err = String::from_utf8_lossy(&o.stderr);
    assert!(err.contains("default") && err.contains("all"), "{err}");
    let o = run(
        at,
        &[
            "query",
            "--endpoint",
            "http://127.0.0.1:1/",
            "--graphs",
            "all",
            count,
        ],
    );
    let err = String::from_utf8_lossy(&o.stderr);
    assert!(err.contains("--graphs is for stores"), "{err}");
}

#[test]
fn an_empty_answer_at_a_terminal_says_where_the_data_is() {
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    store(at);
    let graphs = "all 3 quads are in 2 named graphs; query them with GRAPH ?g { … } or with";
    for (query, said) in [
        ("SELECT * { ?s ?p ?o }", true),
        ("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", true),
        ("ASK { ?s ?p ?o }", true),
        ("CONSTRUCT WHERE { ?s ?p ?o }", true),
        ("SELECT * { GRAPH ?g { ?s <http://e/none> ?o } }", false),
        (
            "SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }",
            false,
        ),
        (
            "SELECT * FROM <http://e/g1> { ?s <http://e/none> ?o }",
            false,
        ),
        ("SELECT * { VALUES ?x { 1 } }", false),
    ] {
        let Some(text) = at_terminal(at, &format!("query --store s '{query}'")) else {
            return;
        };
        assert_eq!(text.contains(graphs), said, "{query}: {text}");
        if said {
            assert!(text.contains("--graphs all"), "{query}: {text}");
        }
    }
    let all = at_terminal(
        at,
        "query --store s --graphs all 'SELECT * { ?s <http://e/none> ?o }'",
    );
    assert!(all.is_some_and(|text| !text.contains(graphs)));
}

#[test]
fn the_shell_says_it_and_switches() {
    use std::io::Write;
    let t = tempfile::tempdir().unwrap();
    let at = t.path();
    store(at);
    let mut child = Command::new(env!("CARGO_BIN_EXE_jindou"))
        .current_dir(at)
        .args(["shell", "--store", "s", "--format", "csv"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let count = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o };\n";
    let text = format!("{count}.graphs\n.graphs all\n{count}.graphs\n.graphs some\n");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let o = child.wait_with_output().unwrap();
    let [out, err] = [&o.stdout, &o.stderr].map(|b| String::from_utf8_lossy(b).replace('\r', ""));
    let counts = "all 3 quads are in 2 named graphs";
    assert_eq!(
        out,
        format!("n\n0\ndefault: {counts}\nn\n3\nall: {counts}\n"),
        "{err}"
    );
    let said = format!(
        "the default graph is empty: {counts}; query them with GRAPH ?g {{ … }} or with .graphs all\n"
    );
    assert_eq!(err.matches(&said).count(), 1, "{err}");
    assert!(
        err.contains(".graphs takes default or all, not some"),
        "{err}"
    );
}
