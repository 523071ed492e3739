//! Hostile updates: every operation, with its lists.

use super::{Shape, To, flat};

/// Updates: name, head, repeated text, tail.
#[rustfmt::skip]
const UPDATES: &[(&str, &str, &str, &str)] = &[
    ("insert data", "INSERT DATA { ", "<http://e/s#> <http://e/p> # . ", "}"),
    ("insert data objects", "INSERT DATA { <http://e/s> <http://e/p> 0", ",#", " }"),
    ("insert data graphs", "INSERT DATA { ", "GRAPH <http://e/g#> { <http://e/s> <http://e/p> # } ", "}"),
    ("insert data blank nodes", "INSERT DATA { ", "[] <http://e/p> [] . ", "}"),
    ("insert data string", "INSERT DATA { <http://e/s> <http://e/p> \"", "text ", "\" }"),
    ("delete data", "DELETE DATA { ", "<http://e/s#> <http://e/p> # . ", "}"),
    ("in", "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(?o IN (1", ",#", ")) }"),
    ("values", "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o VALUES ?o { ", "# ", "} }"),
    ("template", "INSERT { ", "?s <http://e/p#> ?o . ", "} WHERE { ?s ?p ?o }"),
    ("delete where", "DELETE WHERE { ", "?s <http://e/p#> ?o . ", "}"),
    ("operations", "", "INSERT DATA { <http://e/s#> <http://e/p> # } ;\n", ""),
    ("clear", "", "CLEAR SILENT GRAPH <http://e/g#> ;\n", ""),
    ("copy", "", "COPY SILENT <http://e/g#> TO <http://e/h#> ;\n", ""),
    ("create", "", "CREATE SILENT GRAPH <http://e/g#> ;\n", ""),
    ("using", "DELETE { ?s ?p ?o } ", "USING <http://e/g#> ", "WHERE { ?s ?p ?o }"),
    ("bind", "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o ", "BIND(# AS ?b#) ", "}"),
    ("union", "DELETE { ?s ?p ?o } WHERE { { ?s ?p 1 }", " UNION { ?s ?p # }", " }"),
    ("prefixes", "", "PREFIX p#: <http://e/> ", "CLEAR DEFAULT"),
];

/// All hostile updates.
pub fn updates() -> Vec<Shape> {
    UPDATES
        .iter()
        .map(|(name, head, unit, tail)| {
            flat(To::Update, &format!("update {name}"), head, unit, tail)
        })
        .collect()
}
