//! The hints at a terminal if all data is in named graphs.

use super::run::{at_terminal, said};
use std::path::Path;

/// A document whose quads are all in named graphs.
const DATA: &str = "<http://e/mars> <http://e/moons> \"2\" <http://e/g1> .\n\
    <http://e/earth> <http://e/moons> \"1\" <http://e/g2> .\n\
    <http://e/earth> <http://e/name> \"Earth\"@en <http://e/g2> .\n";

fn store(folder: &Path) {
    std::fs::write(folder.join("d.nq"), DATA).unwrap();
    said(folder, &["load", "-q", "--store", "s", "d.nq"]);
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
