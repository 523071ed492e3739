//! Constructs for which this parser follows the standard rather than `spargebra`. `tests/cases` has more of them.

use crate::{Escapes, ParserOptions, parse_query, parse_update};
use spargebra::Query;
use spargebra::algebra::GraphPattern;

const PREFIXES: &str = "PREFIX e: <http://e/> ";

fn read(text: &str) -> Query {
    let text = format!("{PREFIXES}{text}");
    let query = parse_query(&text, &ParserOptions::default());
    Query::from(&query.unwrap_or_else(|e| panic!("{text}\n{e}")))
}

#[test]
fn codepoint_escapes_can_be_limited_to_terms() {
    let strict = ParserOptions {
        escapes: Escapes::InTerms,
        ..ParserOptions::default()
    };
    assert!(parse_query("ASK { \\u003Fs ?p ?o }", &strict).is_err());
    assert!(parse_query("ASK { ?s ?p <http://e/\\u0041> }", &strict).is_ok());
}

#[test]
fn grouped_queries_use_what_they_chose() {
    let Query::Select { pattern, .. } = read("SELECT ?y { ?s a ?x } GROUP BY (?x AS ?y)") else {
        panic!()
    };
    assert!(pattern.to_string().contains("AS ?y"), "{pattern}");
}

#[test]
fn updates_have_places() {
    let text = "PREFIX e: <http://e/>\nINSERT DATA { e:a e:b 'x;y' } ;\nPREFIX f: <http://f/> COPY f:g TO f:g;\nMOVE DEFAULT TO e:g ;DROP ALL;\n";
    let u = parse_update(text, &ParserOptions::default()).unwrap();
    let at: Vec<_> = u
        .operations
        .iter()
        .map(|o| (&text[o.at..o.at + 4], o.whole_graph))
        .collect();
    assert_eq!(
        at,
        [
            ("INSE", false),
            ("MOVE", true),
            ("MOVE", true),
            ("MOVE", true),
            ("DROP", false)
        ]
    );
}

#[test]
fn long_chains_are_shallow() {
    fn depth(p: &GraphPattern) -> usize {
        match p {
            GraphPattern::Union { left, right } | GraphPattern::Join { left, right } => {
                1 + depth(left).max(depth(right))
            }
            GraphPattern::Filter { inner, .. } | GraphPattern::Project { inner, .. } => {
                1 + depth(inner)
            }
            _ => 1,
        }
    }
    let n = 20_000;
    for text in [
        format!("SELECT * {{ {} {{}} }}", "{ ?s e:p ?o } UNION ".repeat(n)),
        format!(
            "SELECT * {{ {} }}",
            "{ SELECT ?s { ?s e:p ?o } } ".repeat(n)
        ),
        format!("SELECT * {{ ?s {}e:p ?o }}", "e:p/".repeat(n)),
        format!("SELECT * {{ ?s ({}e:p) ?o }}", "e:p|".repeat(n)),
        format!("SELECT * {{ FILTER({}?x) }}", "?y = 1 || ".repeat(n)),
        format!("SELECT * {{ FILTER({}?x) }}", "?y = 1 && ".repeat(n)),
        format!("SELECT * {{ {} }}", "FILTER(?x > 1) ".repeat(n)),
    ] {
        let Query::Select { pattern, .. } = read(&text) else {
            panic!()
        };
        assert!(depth(&pattern) < 25);
    }
}

#[test]
fn prefixes_are_known_when_asked_for() {
    let text = "ASK { ?x foaf:name ?n ; my:p wd:Q42 }";
    let options = ParserOptions {
        common_prefixes: true,
        prefixes: vec![("my".into(), "http://my/".into())],
        ..ParserOptions::default()
    };
    let q = parse_query(text, &options).unwrap().to_string();
    assert!(
        q.contains("<http://xmlns.com/foaf/0.1/name>") && q.contains("<http://my/p>"),
        "{q}"
    );
    let e = parse_query(text, &ParserOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        e.contains("did you mean PREFIX foaf: <http://xmlns.com/foaf/0.1/>?"),
        "{e}"
    );
    let own = parse_query("PREFIX foaf: <http://own/> ASK { ?s foaf:x ?o }", &options).unwrap();
    assert!(own.to_string().contains("<http://own/x>"));
}

#[test]
fn long_rows_of_keywords_take_linear_time() {
    let long = "AS".repeat(1 << 20);
    assert!(parse_query(&long, &ParserOptions::default()).is_err());
}
