//! Constructs for which the standard is followed rather than `spargebra`, and those that no other test covers.

use crate::{Escapes, ParseFailure, ParserOptions, parse_query, parse_update};
use spargebra::Query;
use spargebra::algebra::GraphPattern;

const PREFIXES: &str =
    "PREFIX e: <http://e/> PREFIX ec: <http://purl.uniprot.org/enzyme/> PREFIX : <http://d/> ";

fn read(text: &str) -> Query {
    let text = format!("{PREFIXES}{text}");
    let query = parse_query(&text, &ParserOptions::default());
    Query::from(&query.unwrap_or_else(|e| panic!("{text}\n{e}")))
}

fn refused(text: &str) -> String {
    let text = format!("{PREFIXES}{text}");
    match parse_query(&text, &ParserOptions::default()) {
        Err(e) => e.to_string(),
        Ok(q) => panic!("{text}: {q}"),
    }
}

fn same(a: &str, b: &str) {
    assert_eq!(read(a).to_string(), read(b).to_string(), "{a}");
}

#[test]
fn local_names_hold_dots() {
    same(
        "ASK { e:a.b.c e:p ec:1.1.1.353 , ec:1.-.-.- }",
        "ASK { <http://e/a.b.c> <http://e/p> <http://purl.uniprot.org/enzyme/1.1.1.353> , <http://purl.uniprot.org/enzyme/1.-.-.-> }",
    );
    same(
        "ASK { e:a e:p e:b.c.}",
        "ASK { <http://e/a> <http://e/p> <http://e/b.c> . }",
    );
    same(
        "ASK { e:a\\.\\,b e:%41 :x:y }",
        "ASK { <http://e/a.,b> <http://e/%41> <http://d/x:y> }",
    );
    same(
        "ASK { e:𝒳 e:p 'x' }",
        "ASK { <http://e/𝒳> <http://e/p> 'x' }",
    );
}

#[test]
fn codepoint_escapes_stand_anywhere() {
    same(
        "ASK { \\u003Fs e:\\u0070 \\u0022x\\u0022 }",
        "ASK { ?s e:p \"x\" }",
    );
    same(
        "ASK { ?s e:p \"\\u0022 \\U0001F47E\" }",
        "ASK { ?s e:p '\" 👾' }",
    );
    let strict = ParserOptions {
        escapes: Escapes::InTerms,
        ..ParserOptions::default()
    };
    assert!(parse_query("ASK { \\u003Fs ?p ?o }", &strict).is_err());
    assert!(parse_query("ASK { ?s ?p <http://e/\\u0041> }", &strict).is_ok());
    // An error after an escape has the correct place.
    let e = parse_query("ASK { \\u003Fs ?p }", &ParserOptions::default()).unwrap_err();
    let ParseFailure::Text(d) = e else { panic!() };
    assert_eq!(d.first().start, 17, "{d}");
}

#[test]
fn spaces_and_comments_stand_between_tokens() {
    same(
        "SELECT (CONCAT (\"a\",\"b\") AS ?a) (COALESCE (1,2) AS ?b) (BNODE () AS ?c) {}",
        "SELECT (CONCAT(\"a\",\"b\") AS ?a) (COALESCE(1,2) AS ?b) (BNODE() AS ?c) {}",
    );
    same(
        "SELECT (NOW( # x\n ) AS ?n) { ?s ?p ( # y\n ) }",
        "SELECT (NOW() AS ?n) { ?s ?p () }",
    );
}

#[test]
fn keywords_have_no_case() {
    same(
        "select * where { filter(TRUE && nOt eXists { ?s A:x False }) }"
            .replace("A:x", "a")
            .as_str(),
        "SELECT * WHERE { FILTER(true && NOT EXISTS { ?s a false }) }",
    );
    assert!(refused("ASK { ?s A ?o }").contains('A'));
}

#[test]
fn grouped_queries_use_what_they_chose() {
    read("SELECT ?t (COUNT(*) AS ?a) (?a*3 AS ?b) { ?s a ?t } GROUP BY ?t");
    let e = refused("SELECT ?t ?s (COUNT(*) AS ?a) (?o AS ?x) { ?s a ?t ; e:p ?o } GROUP BY ?t");
    assert!(
        e.contains("?s is neither grouped") && e.contains("?o is neither grouped"),
        "{e}"
    );
    let Query::Select { pattern, .. } = read("SELECT ?y { ?s a ?x } GROUP BY (?x AS ?y)") else {
        panic!()
    };
    assert!(pattern.to_string().contains("AS ?y"), "{pattern}");
    read("CONSTRUCT { ?t e:n ?t } WHERE { ?s a ?t } GROUP BY ?t HAVING (COUNT(*) > 1)");
    read("ASK { ?s a ?t } GROUP BY ?t HAVING (COUNT(*) > 1)");
    read("DESCRIBE ?t { ?s a ?t } GROUP BY ?t HAVING (COUNT(*) > 1) ORDER BY COUNT(?s)");
}

#[test]
fn aggregates_stand_where_they_may() {
    for (text, why) in [
        (
            "SELECT * { ?s ?p ?o FILTER(COUNT(?o) > 1) }",
            "in a pattern",
        ),
        ("SELECT * { BIND(SUM(1) AS ?x) }", "in a pattern"),
        (
            "SELECT ?x { ?s ?p ?o } GROUP BY (MAX(?o) AS ?x)",
            "in GROUP BY",
        ),
        (
            "SELECT (SUM(COUNT(?o)) AS ?x) { ?s ?p ?o }",
            "inside another",
        ),
        (
            "SELECT (EXISTS { FILTER(COUNT(*) > 1) } AS ?x) { ?s ?p ?o }",
            "in a pattern",
        ),
    ] {
        assert!(refused(text).contains(why), "{text}: {}", refused(text));
    }
}

#[test]
fn a_star_gives_columns_in_the_order_of_the_text() {
    for (text, expected) in [
        ("SELECT * { ?z ?y ?x . ?a ?z ?b }", "z y x a b"),
        (
            "SELECT * { { SELECT * { ?c ?b ?a } } ?a ?d ?e }",
            "c b a d e",
        ),
        (
            "SELECT * { ?b e:p ?a MINUS { ?c ?b ?d } FILTER NOT EXISTS { ?f ?g ?b } }",
            "b a",
        ),
    ] {
        let Query::Select {
            pattern: GraphPattern::Project { variables, .. },
            ..
        } = read(text)
        else {
            panic!()
        };
        let names: Vec<_> = variables.iter().map(|v| v.as_str()).collect();
        assert_eq!(names.join(" "), expected);
    }
}

#[test]
fn the_scope_of_variables_is_the_standards() {
    for bad in [
        "SELECT * { ?s ?p ?o BIND(1 AS ?o) }",
        "SELECT * { { ?s ?p ?o } UNION { ?s ?p ?x } BIND(1 AS ?x) }",
        "SELECT * { OPTIONAL { ?s ?p ?o } BIND(1 AS ?o) }",
        "SELECT (1 AS ?o) { ?s ?p ?o }",
        "SELECT (1 AS ?o) { { SELECT ?o { ?s ?p ?o } } }",
        "SELECT (1 AS ?x) (2 AS ?x) {}",
        "SELECT * { ?s ?p ?o LATERAL { BIND(1 AS ?o) } }",
        "SELECT * { ?s ?p ?o LATERAL { SELECT (1 AS ?o) {} } }",
        "SELECT * { ?s ?p ?o } GROUP BY ?s",
        "SELECT * { ?s ?p ?o } LIMIT 1 OFFSET 2 LIMIT 3",
    ] {
        refused(bad);
    }
    for good in [
        "SELECT * { ?s ?p ?o MINUS { ?s ?p ?x } BIND(1 AS ?x) }",
        "SELECT * { { BIND(1 AS ?o) } { BIND(1 AS ?o) } }",
        "SELECT (1 AS ?o) { { SELECT ?s { ?s ?p ?o } } }",
        "SELECT * { FILTER EXISTS { ?s ?p ?o } BIND(1 AS ?o) }",
        "SELECT * { ?s ?p ?o LATERAL { SELECT ?s { BIND(1 AS ?o) } } }",
        "SELECT * { BIND(1 AS ?a) BIND(?a AS ?b) ?a ?b ?c }",
        "SELECT * { ?s ?p ?o BIND(<<( ?s ?t ?o )>> AS ?t) }",
    ] {
        read(good);
    }
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
    assert!(
        parse_update("", &ParserOptions::default())
            .unwrap()
            .operations
            .is_empty()
    );
    assert!(
        parse_update(
            "MOVESILENT DEFAULT TO <http://e/g>",
            &ParserOptions::default()
        )
        .is_ok()
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
fn several_faults_are_found() {
    let text = "SELECT * WHERE {\n ?s foaf:name ?n .\n ?s ex:p .\n FILTER(?n = ) \n OPTIONAL { ?s ?p ?o ?x } \n ?a ?b ?c }";
    let Err(ParseFailure::Text(d)) = parse_query(text, &ParserOptions::default()) else {
        panic!()
    };
    let lines: Vec<_> = d.all().iter().map(|d| d.line).collect();
    assert_eq!(lines, [2, 3, 3, 4, 5], "{d}");
}

#[test]
fn keywords_need_no_space_between_them() {
    let read = |text: &str| parse_query(text, &ParserOptions::default());
    for (glued, apart) in [
        (
            "SELECT*WHERE{?s?p?o FILTERsameTerm(?s,?o)}",
            "SELECT * WHERE { ?s ?p ?o FILTER sameTerm(?s, ?o) }",
        ),
        (
            "SELECTDISTINCT?s{?s?p?o FILTERNOTEXISTS{?o?p?s}}",
            "SELECT DISTINCT ?s { ?s ?p ?o FILTER NOT EXISTS { ?o ?p ?s } }",
        ),
        (
            "SELECT?s{?s?p?o}ORDERBYDESC(?s)LIMIT10OFFSET5",
            "SELECT ?s { ?s ?p ?o } ORDER BY DESC(?s) LIMIT 10 OFFSET 5",
        ),
        (
            "ASKWHERE{?s?p?o FILTER(?s NOTIN(1))}",
            "ASK WHERE { ?s ?p ?o FILTER(?s NOT IN (1)) }",
        ),
        ("SELECT(1AS?x){}", "SELECT (1 AS ?x) {}"),
    ] {
        assert_eq!(
            read(glued).unwrap_or_else(|e| panic!("{glued}: {e}")),
            read(apart).unwrap(),
            "{glued}"
        );
    }
    // Misspelt keywords stay one word, and names stay names.
    for wrong in [
        "SELECTT * {}",
        "SELECTx ?s {}",
        "ASKWHEREE {}",
        "SELECT * { FILTERs(true) }",
    ] {
        let e = read(wrong).unwrap_err().to_string();
        assert!(
            e.contains("SELECTT")
                || e.contains("SELECTx")
                || e.contains("ASKWHEREE")
                || e.contains("FILTERs"),
            "{e}"
        );
    }
    assert!(read("PREFIX inas: <http://e/> SELECT * { ?s inas:inas ?inas }").is_ok());
    // Long rows of them take linear time.
    let long = "AS".repeat(1 << 20);
    assert!(read(&long).is_err());
}

#[test]
fn a_sign_belongs_to_the_number_that_it_touches() {
    let read = |e: &str| {
        let query = parse_query(
            &format!("SELECT ({e} AS ?x) {{}}"),
            &ParserOptions::default(),
        )
        .unwrap();
        query.to_string()
    };
    for (text, part) in [
        (
            "-1.0",
            "\"-1.0\"^^<http://www.w3.org/2001/XMLSchema#decimal>",
        ),
        ("+01", "\"+01\"^^<http://www.w3.org/2001/XMLSchema#integer>"),
        (
            "STR(-1e0)",
            "\"-1e0\"^^<http://www.w3.org/2001/XMLSchema#double>",
        ),
        (
            "1 IN (-0, +0.50)",
            "\"+0.50\"^^<http://www.w3.org/2001/XMLSchema#decimal>",
        ),
        ("- -1", "\"-1\"^^<http://www.w3.org/2001/XMLSchema#integer>"),
        ("!-1", "\"-1\"^^<http://www.w3.org/2001/XMLSchema#integer>"),
    ] {
        let got = read(text).replace(
            "-1.0 ",
            "\"-1.0\"^^<http://www.w3.org/2001/XMLSchema#decimal> ",
        );
        let short = part.split('"').nth(1).unwrap();
        assert!(got.contains(part) || got.contains(short), "{text}: {got}");
        assert!(
            text.starts_with("- ") || !got.contains("-(") && !got.contains("+("),
            "{text}: {got}"
        );
    }
    // Separated from its number, or after an operand, a sign is an operator.
    assert_eq!(read("2-1"), read("2 - 1"));
    assert_eq!(read("- 1"), read("-(1)"));
}

#[test]
fn grouping_gives_no_variable_another_value() {
    let read = |text: &str| parse_query(text, &ParserOptions::default());
    for wrong in [
        "SELECT ?s { ?s ?p ?o } GROUP BY (?s AS ?s)",
        "SELECT ?s { ?s ?p ?o } GROUP BY (?o + 1 AS ?s)",
        "SELECT ?x { ?s ?p ?o } GROUP BY (?o AS ?x) (?s AS ?x)",
        "SELECT ?x { ?s ?p ?o } GROUP BY ?x (?s AS ?x)",
        "SELECT ?n { ?n ?p ?o { SELECT ?x { ?s ?p ?o } GROUP BY (STR(?s) AS ?o) } }",
    ] {
        let e = read(wrong).expect_err(wrong).to_string();
        assert!(e.contains("already has a value, so GROUP BY cannot"), "{e}");
    }
    for right in [
        "SELECT ?x { ?s ?p ?o } GROUP BY (?s AS ?x)",
        "SELECT ?x ?y { ?s ?p ?o } GROUP BY (?s AS ?x) (?x AS ?y)",
        "SELECT ?s { ?s ?p ?o { SELECT ?x { ?z ?p ?o } GROUP BY (?z AS ?s) ?x } }",
        "SELECT (MAX(?o) AS ?m) { ?s ?p ?o } GROUP BY (?s + 1)",
    ] {
        assert!(read(right).is_ok(), "{right}");
    }
}
