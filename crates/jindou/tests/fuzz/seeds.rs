//! Texts to begin with.

use crate::shared::shared;
use jindou_syntax::algebra::Function;
use jindou_testing::{Rng, quads, query};
use std::path::Path;

/// Words of SPARQL with its functions, and names of the data.
pub fn words() -> Vec<&'static str> {
    let functions = Function::all().iter().flat_map(|d| d.names);
    WORDS.iter().chain(functions).copied().collect()
}

/// Words that are not names of functions.
const WORDS: &[&str] = &[
    "SELECT",
    "CONSTRUCT",
    "DESCRIBE",
    "ASK",
    "WHERE",
    "FROM",
    "FROM NAMED",
    "DISTINCT",
    "REDUCED",
    "OPTIONAL",
    "UNION",
    "MINUS",
    "FILTER",
    "BIND",
    "VALUES",
    "GRAPH",
    "SERVICE",
    "SILENT",
    "EXISTS",
    "NOT EXISTS",
    "GROUP BY",
    "HAVING",
    "ORDER BY",
    "ASC",
    "DESC",
    "LIMIT",
    "OFFSET",
    "AS",
    "IN",
    "NOT IN",
    "UNDEF",
    "a",
    "true",
    "false",
    "BASE",
    "PREFIX",
    "COUNT",
    "SUM",
    "MIN",
    "MAX",
    "AVG",
    "SAMPLE",
    "GROUP_CONCAT",
    "SEPARATOR",
    "BOUND",
    "COALESCE",
    "IF",
    "sameTerm",
    "LATERAL",
    "<<(",
    ")>>",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<<",
    ">>",
    "|",
    "||",
    "&&",
    "^",
    "!",
    "*",
    "+",
    "?",
    "/",
    "=",
    "!=",
    "<",
    ">",
    "<=",
    ">=",
    "-",
    ";",
    ",",
    ".",
    "?s",
    "?p",
    "?o",
    "?x0",
    "?x1",
    "?g",
    "_:b",
    "<http://e/v0>",
    "<http://e/p0>",
    "<http://e/p1>",
    "<http://e/p2>",
    "<http://e/g0>",
    "<http://e/c0>",
    "<nowhere>",
    "\"\"",
    "\"a\"@en",
    "\"a\"@en--ltr",
    "'''x'''",
    "\"1\"^^<http://www.w3.org/2001/XMLSchema#integer>",
    "<http://www.w3.org/2001/XMLSchema#double>",
    "<http://www.w3.org/2001/XMLSchema#dateTime>",
    "xsd:integer",
    "?x0 ?x1 ?x2 .",
    "# comment\n",
    "\"(a|aa)+$\"",
    "\"^(.*)*$\"",
    "\"[\\\\p{L}]{1,1000}\"",
    "\"$1$2\"",
    "\\u0000",
    "\\U0010FFFF",
];

/// One of each thing that queries are made of.
const OWN: &[&str] = &[
    "SELECT * { ?s ?p ?o }",
    "SELECT ?s (COUNT(DISTINCT ?o) AS ?n) (GROUP_CONCAT(?o; SEPARATOR=\", \") AS ?c) { ?s ?p ?o } GROUP BY ?s HAVING (COUNT(*) > 1) ORDER BY DESC(?n) ?s LIMIT 5 OFFSET 1",
    "SELECT * { ?s <http://e/p0> ?o OPTIONAL { ?o <http://e/p2> ?z FILTER(?z != ?s) } MINUS { ?s a <http://e/c2> } }",
    "SELECT * { { ?s <http://e/p0>+ ?o } UNION { ?s (<http://e/p0>|^<http://e/p2>)* ?o } UNION { ?s !(a|^<http://e/p1>) ?o } }",
    "SELECT * FROM <http://e/g0> FROM NAMED <http://e/g1> { ?s ?p ?o GRAPH ?g { ?s ?q ?r } }",
    "CONSTRUCT { ?s <http://e/new> ?o, [] . _:x ?p ?s } WHERE { ?s ?p ?o FILTER EXISTS { ?o ?q ?r } }",
    "CONSTRUCT WHERE { ?s a ?c }",
    "DESCRIBE ?s <http://e/v0> { ?s a <http://e/c0> }",
    "ASK { VALUES (?a ?b) { (1 UNDEF) (\"x\"@en <http://e/v0>) } FILTER(?a IN (1, 2, ?b)) }",
    "SELECT (SUBSTR(STR(?o), 2, 3) AS ?a) (REPLACE(STR(?o), \"(a+)+\", \"<$1>\", \"i\") AS ?b) (REGEX(STR(?o), \"^(a|aa)+$\") AS ?c) { ?s ?p ?o }",
    "SELECT (?a + ?b AS ?c) (?a * ?b AS ?d) (?a / ?b AS ?e) (-?a AS ?f) (ABS(?a) AS ?g) (ROUND(?b) AS ?h) { ?s <http://e/p1> ?a, ?b }",
    "SELECT (YEAR(?d) AS ?y) (TZ(?d) AS ?z) (?d + \"P1D\"^^<http://www.w3.org/2001/XMLSchema#dayTimeDuration> AS ?e) (NOW() - ?d AS ?f) { ?s <http://e/p1> ?d }",
    "SELECT (CONCAT(?x, ?x, ?x, ?x) AS ?y) { { SELECT (CONCAT(?w, ?w, ?w, ?w) AS ?x) { BIND(\"aaaaaaaaaaaaaaaa\" AS ?w) } } }",
    "SELECT (STRLANG(?o, \"en\") AS ?a) (STRDT(STR(?o), <http://e/t>) AS ?b) (IRI(STR(?o)) AS ?c) (BNODE(STR(?o)) AS ?d) (SHA256(STR(?o)) AS ?e) (ENCODE_FOR_URI(STR(?o)) AS ?f) { ?s ?p ?o }",
    "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l } ORDER BY ?a ?l",
    "SELECT DISTINCT ?a ?f ?i { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }",
    "SELECT (AVG(?o) AS ?a) (SUM(?o) AS ?b) (MIN(?o) AS ?c) (MAX(?o) AS ?d) (SAMPLE(?o) AS ?e) { ?s ?p ?o }",
    "SELECT * { ?s ?p ?o BIND(<<( ?s ?p ?o )>> AS ?t) FILTER(isTRIPLE(?t) && SUBJECT(?t) = ?s) }",
    "SELECT * { SERVICE SILENT <http://127.0.0.1:1/> { ?s ?p ?o } }",
    "SELECT (<http://www.w3.org/2001/XMLSchema#integer>(?o) AS ?i) (<http://www.w3.org/2001/XMLSchema#dateTime>(STR(?o)) AS ?d) (<http://www.w3.org/2001/XMLSchema#boolean>(?o) AS ?b) { ?s ?p ?o }",
    "SELECT ?x { ?x (<http://e/p0>/<http://e/p2>?/^<http://e/p0>)* <http://e/v0> . ?x <http://e/p0>{2} ?y }",
    "SELECT * { ?s ?p ?o . FILTER(LANGMATCHES(LANG(?o), \"*\") || DATATYPE(?o) = <http://www.w3.org/2001/XMLSchema#decimal> || STRLEN(STR(?o)) > 3) } LIMIT 4294967296",
];

/// Our own texts, random queries, and the W3C's where they are.
pub fn all(rng: &mut Rng) -> Vec<Vec<u8>> {
    let mut out: Vec<Vec<u8>> = OWN.iter().map(|t| t.as_bytes().to_vec()).collect();
    out.extend((0..200).map(|_| random(rng).into_bytes()));
    if let Some(suites) = shared("w3c/sparql") {
        let mut files = Vec::new();
        collect(&suites, &mut files);
        files.sort();
        out.extend(files);
    }
    out
}

/// A random query over names of the data.
pub fn random(rng: &mut Rng) -> String {
    let data = quads(rng);
    query(rng, &data).text
}

fn collect(folder: &Path, out: &mut Vec<Vec<u8>>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, out);
        } else if path.extension().is_some_and(|e| e == "rq")
            && let Ok(text) = std::fs::read(&path)
        {
            out.push(text);
        }
    }
}
