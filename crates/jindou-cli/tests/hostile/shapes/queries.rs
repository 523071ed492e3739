//! Hostile queries: every construct, repeated in sequence or nested.

use super::{Shape, To, flat};

/// Expressions: name, repeated text, middle, text repeated after it.
#[rustfmt::skip]
const EXPRESSIONS: &[(&str, &str, &str, &str)] = &[
    ("parentheses", "(", "1", ")"),
    ("not", "!", "1", ""),
    ("minus", "- ", "1", ""),
    ("plus", "+ ", "1", ""),
    ("or", "?n = # || ", "false", ""),
    ("and", "?n != # && ", "true", ""),
    ("and-or", "(ISBLANK(?s) && ISBLANK(?n)) || ", "false", ""),
    ("sum", "# + ", "1", ""),
    ("difference", "?n - ", "1", ""),
    ("product", "1 * ", "1", ""),
    ("quotient", "?n / ", "1", ""),
    ("less", "(# < ", "1", ")"),
    ("equal", "(?n = ", "1", ")"),
    ("if", "IF(?n,1,", "1", ")"),
    ("coalesce-deep", "COALESCE(?u,", "1", ")"),
    ("coalesce", "COALESCE(?u) || ", "1", ""),
    ("bound", "BOUND(?n) || ", "1", ""),
    ("str", "STR(", "1", ")"),
    ("regex-deep", "REGEX(", "\"a\"", ",\"a\")"),
    ("regex", "REGEX(?t,\"a#\") || ", "1", ""),
    ("replace", "REPLACE(", "\"a\"", ",\"a\",\"b\")"),
    ("substr", "SUBSTR(", "\"abc\"", ",1)"),
    ("concat-deep", "CONCAT(\"a\",", "\"b\"", ")"),
    ("exists", "EXISTS{?s ?p# ?o} || ", "1", ""),
    ("not-exists-deep", "NOT EXISTS{?s ?p ?o FILTER(", "1", ")}"),
    ("custom", "<http://e/f#>(?n) || ", "1", ""),
    ("cast", "<http://www.w3.org/2001/XMLSchema#integer>(", "1", ")"),
    ("iri", "IRI(", "\"a\"", ")"),
    ("triple", "TRIPLE(?s,<http://e/p>,", "1", ")"),
    ("in-deep", "(1 IN (", "1", "))"),
    ("same-term", "sameTerm(?n,#) || ", "1", ""),
    ("lang", "LANGMATCHES(LANG(?t),\"en\") || ", "1", ""),
    ("strings", "?t = \"text #\" || ", "1", ""),
];

/// Groups: name, repeated text, middle, text repeated after it.
#[rustfmt::skip]
const PATTERNS: &[(&str, &str, &str, &str)] = &[
    ("triples", "?s <http://e/p#> ?o# . ", "", ""),
    ("triples-one-subject", "<http://e/p#> ?o# ; ", "", ""),
    ("objects", "<http://e/s#> , ", "<http://e/s1>", ""),
    ("product", "?a# ?b# ?c# . ", "", ""),
    ("star", "?s <http://e/p1> ?o# . ", "", ""),
    ("chain", "?x# <http://e/p1> ?x . ?x <http://e/p2> ?y# . ", "", ""),
    ("groups-deep", "{ ", "?s ?p ?o", " }"),
    ("groups", "{ ?s ?p ?o } ", "", ""),
    ("union", "{ ?s <http://e/p#> ?o } UNION ", "{ ?s ?p ?o }", ""),
    ("union-deep", "{ ?s ?p ?o } UNION { ", "?s ?p ?o", " }"),
    ("optional", "OPTIONAL { ?s <http://e/p1> ?o# } ", "", ""),
    ("optional-deep", "OPTIONAL { ?s <http://e/p1> ?o ", "", "}"),
    ("minus", "MINUS { ?s <http://e/p1> ?o } ", "", ""),
    ("minus-deep", "?s ?p ?o MINUS { ", "?s ?p ?o", " }"),
    ("filter", "FILTER(?n != #) ", "", ""),
    ("bind", "BIND(1 AS ?b#) ", "", ""),
    ("graph", "GRAPH <http://e/g#> { ?s ?p ?o } ", "", ""),
    ("graph-deep", "GRAPH ?g { ", "?s ?p ?o", " }"),
    ("graph-variables", "GRAPH ?g# { ?s ?p ?o } ", "", ""),
    ("service", "SERVICE SILENT <http://e/#> { ?s ?p ?o } ", "", ""),
    ("sub-select", "{ SELECT ?s { ?s ?p ?o } } ", "", ""),
    ("sub-select-deep", "{ SELECT * { ", "?s ?p ?o", " } }"),
    ("values-blocks", "VALUES ?v# { # } ", "", ""),
    ("filters-of-exists", "FILTER EXISTS { ?s <http://e/p1> ?o# } ", "", ""),
    ("blank-nodes", "[] <http://e/p1> [] . ", "", ""),
    ("blank-nodes-deep", "[ <http://e/p1> ", "1", " ]"),
    ("triple-terms", "?s ?p <<( ?a# ?b ?c )>> . ", "", ""),
    ("triple-terms-deep", "<<( <http://e/a> <http://e/b> ", "?x", " )>>"),
    ("reifiers", "<< ?a# ?b ?c >> ?p ?o . ", "", ""),
    ("annotations", "?s# ?p ?o {| ?a ?b |} . ", "", ""),
    ("comments", "# comment #\n", "", ""),
    ("spaces", "    ", "", ""),
    ("long-iri", "a", "", ""),
];

/// Property paths: name, repeated text, middle, text repeated after it.
#[rustfmt::skip]
const PATHS: &[(&str, &str, &str, &str)] = &[
    ("sequence", "<http://e/p1>/", "<http://e/p2>", ""),
    ("alternative", "<http://e/p#>|", "<http://e/p2>", ""),
    ("inverse", "^", "<http://e/p1>", ""),
    ("star-deep", "(", "<http://e/p1>", ")*"),
    ("plus-deep", "(", "<http://e/p1>", ")+"),
    ("optional", "<http://e/p1>?/", "<http://e/p2>", ""),
    ("closures", "<http://e/p#>*/", "<http://e/p2>", ""),
    ("parentheses", "(", "<http://e/p1>", ")"),
    ("star-of-alternatives", "<http://e/p#>|", "<http://e/p2>", ""),
];

/// Queries with a list: name, head, repeated text, tail.
#[rustfmt::skip]
const LISTS: &[(&str, &str, &str, &str)] = &[
    ("values integers", "SELECT * { VALUES ?v { ", "# ", "} }"),
    ("values short", "SELECT * { VALUES ?v { ", "1 ", "} }"),
    ("values iris", "SELECT * { VALUES ?v { ", "<http://e/s#> ", "} ?v ?p ?o }"),
    ("values strings", "SELECT * { VALUES ?v { ", "\"text #\" ", "} }"),
    ("values pairs", "SELECT * { VALUES (?v ?w) { ", "(# <http://e/s#>) ", "} }"),
    ("values empty rows", "SELECT * { VALUES () { ", "() ", "} }"),
    ("values undef", "SELECT * { VALUES (?a ?b) { ", "(UNDEF 1) ", "} }"),
    ("values typed", "SELECT * { VALUES ?v { ", "\"#\"^^<http://e/d#> ", "} }"),
    ("values triples", "SELECT * { VALUES ?v { ", "<<( <http://e/s#> <http://e/p> 1 )>> ", "} }"),
    ("values behind", "SELECT * { ?v ?p ?o } VALUES ?v { ", "<http://e/s#> ", "}"),
    ("values columns", "SELECT * { VALUES (", "?v# ", ") { } }"),
    ("in integers", "SELECT * { ?s <http://e/n> ?n FILTER(?n IN (1", ",#", ")) }"),
    ("in iris", "SELECT * { ?s ?p ?o FILTER(?o IN (1", ",<http://e/s#>", ")) }"),
    ("in strings", "SELECT * { ?s ?p ?o FILTER(?o IN (1", ",\"text #\"", ")) }"),
    ("in variables", "SELECT * { ?s <http://e/n> ?n FILTER(?n IN (1", ",?v#", ")) }"),
    ("in sums", "SELECT * { ?s <http://e/n> ?n FILTER(?n IN (1", ",?n+#", ")) }"),
    ("not in", "SELECT * { ?s <http://e/n> ?n FILTER(?n NOT IN (1", ",#", ")) }"),
    ("bind in", "SELECT * { ?s <http://e/n> ?n BIND(?n IN (1", ",#", ") AS ?b) }"),
    ("describe iris", "DESCRIBE", " <http://e/s#>", ""),
    ("describe variables", "DESCRIBE", " ?v#", " { ?v1 ?p ?o }"),
    ("describe where", "DESCRIBE ?s", " <http://e/s#>", " { ?s <http://e/p1> ?o }"),
    ("construct", "CONSTRUCT { ", "?s <http://e/p#> ?o . ", "} { ?s ?p ?o }"),
    ("construct blank nodes", "CONSTRUCT { ", "[] <http://e/p#> ?o . ", "} { ?s ?p ?o }"),
    ("construct collection", "CONSTRUCT { ?s <http://e/p> (", "# ", ") } { ?s ?p ?o }"),
    ("construct constants", "CONSTRUCT { ", "<http://e/s#> <http://e/p> # . ", "} { ?s ?p ?o }"),
    ("construct where", "CONSTRUCT WHERE { ", "?s <http://e/p#> ?o . ", "}"),
    ("select variables", "SELECT", " ?v#", " { ?v1 ?p ?o }"),
    ("select expressions", "SELECT", " (# AS ?v#)", " { ?s ?p ?o }"),
    ("select counts", "SELECT", " (COUNT(?s) AS ?v#)", " { ?s ?p ?o }"),
    ("select concats", "SELECT", " (GROUP_CONCAT(?t) AS ?v#)", " { ?s <http://e/t> ?t }"),
    ("group by", "SELECT (COUNT(*) AS ?c) { ?s ?p ?o } GROUP BY", " ?v#", ""),
    ("group by expressions", "SELECT (COUNT(*) AS ?c) { ?s ?p ?o } GROUP BY", " (?o+# AS ?g#)", ""),
    ("having", "SELECT ?s { ?s ?p ?o } GROUP BY ?s HAVING", " (COUNT(?o) > #)", ""),
    ("order by", "SELECT * { ?s ?p ?o } ORDER BY", " ?v#", ""),
    ("order by expressions", "SELECT * { ?s ?p ?o } ORDER BY", " DESC(?o+#)", ""),
    ("from", "SELECT *", " FROM <http://e/g#>", " { ?s ?p ?o }"),
    ("from named", "SELECT *", " FROM NAMED <http://e/g#>", " { GRAPH ?g { ?s ?p ?o } }"),
    ("prefixes", "", "PREFIX p#: <http://e/> ", "ASK { }"),
    ("prefix again", "", "PREFIX p: <http://e/#> ", "ASK { }"),
    ("bases", "", "BASE <http://e/#/> ", "ASK { }"),
    ("relative bases", "BASE <http://e/> ", "BASE <a/> ", "ASK { }"),
    ("collection", "SELECT * { ?s ?p (", "# ", ") }"),
    ("string", "SELECT * { ?s ?p \"", "text ", "\" }"),
    ("long string", "SELECT * { ?s ?p '''", "text\n", "''' }"),
    ("escapes", "SELECT * { ?s ?p \"", "\\u0041", "\" }"),
    ("escapes in names", "SELECT * { ?s ?p <http://e/", "\\u0041", "> }"),
    ("language", "SELECT * { ?s ?p \"a\"@en", "-ab", " }"),
    ("integer", "SELECT * { ?s ?p ", "1234567890", " }"),
    ("decimal", "SELECT * { ?s ?p 0.", "1234567890", " }"),
    ("variable", "SELECT * { ?s ?p ?", "variable", " }"),
    ("name", "PREFIX e: <http://e/> SELECT * { ?s ?p e:", "name", " }"),
    ("comment", "ASK { } # ", "comment ", ""),
    ("regex classes", "SELECT * { ?s <http://e/t> ?t FILTER REGEX(?t, \"", "\\\\p{L}", "\") }"),
    ("regex alternatives", "SELECT * { ?s <http://e/t> ?t FILTER REGEX(?t, \"", "a#|", "b\") }"),
    ("regex counts", "SELECT * { ?s <http://e/t> ?t FILTER REGEX(?t, \"", "(a{99}){99}", "\") }"),
    ("regex groups", "SELECT * { ?s <http://e/t> ?t BIND(REPLACE(?t, \"", "(a?)", "\", \"$1\") AS ?x) }"),
    ("regex flags", "SELECT * { ?s <http://e/t> ?t FILTER REGEX(?t, \"a\", \"", "i", "\") }"),
    ("regex of rows", "SELECT * { ?s <http://e/t> ?t BIND(CONCAT(?t, \"", "\\\\p{L}", "\") AS ?r) FILTER REGEX(?t, ?r) }"),
    ("nothing", "", "\u{1}", ""),
    ("brackets", "SELECT * { ", "[", ""),
    ("braces", "SELECT * ", "{", ""),
    ("parens", "SELECT * { FILTER ", "(", ""),
    ("quotes", "SELECT * { ", "'", ""),
    ("less", "SELECT * { FILTER (1 ", "< 1 ", ") }"),
    ("less iris", "SELECT * { FILTER (1 ", "<1>(", ") }"),
    ("words", "SELECT * { ", "SELECT ", "}"),
    ("question marks", "SELECT ", "? ", ""),
];

/// Queries that are prepared: name, head, repeated text, tail.
#[rustfmt::skip]
const PREPARED: &[(&str, &str, &str, &str)] = &[
    ("values integers", "SELECT * { VALUES ?v { ", "# ", "} }"),
    ("union", "SELECT * { { ?s ?p ?o }", " UNION { ?s <http://e/p#> ?o }", " }"),
    ("in integers", "SELECT * { ?s <http://e/n> ?n FILTER(?n IN (1", ",#", ")) }"),
    ("describe iris", "DESCRIBE", " <http://e/s#>", ""),
    ("string", "SELECT * { ?s ?p \"", "text ", "\" }"),
];

/// All hostile queries.
pub fn queries() -> Vec<Shape> {
    let mut all = vec![];
    let q = To::Query;
    for (name, open, middle, close) in EXPRESSIONS {
        let head = "SELECT * { ?s <http://e/n> ?n . ?s <http://e/t> ?t FILTER(";
        all.push(Shape::new(
            q,
            &format!("filter {name}"),
            head,
            open,
            middle,
            close,
            ") }",
        ));
        let head = "SELECT (";
        let tail = " AS ?x) { ?s <http://e/n> ?n . ?s <http://e/t> ?t }";
        all.push(Shape::new(
            q,
            &format!("select {name}"),
            head,
            open,
            middle,
            close,
            tail,
        ));
    }
    for (name, open, middle, close) in PATTERNS {
        let head = match *name {
            "triples-one-subject" => "SELECT * { ?s ",
            "objects" => "SELECT * { ?s <http://e/p1> ",
            "blank-nodes-deep" | "triple-terms-deep" => "SELECT * { ?s <http://e/p1> ",
            "long-iri" => "SELECT * { ?s <http://e/",
            "optional" | "minus" | "filter" | "filters-of-exists" => {
                "SELECT * { ?s <http://e/n> ?n "
            }
            _ => "SELECT * { ",
        };
        let tail = if *name == "long-iri" { "> ?o }" } else { " }" };
        all.push(Shape::new(
            q,
            &format!("where {name}"),
            head,
            open,
            middle,
            close,
            tail,
        ));
    }
    for (name, open, middle, close) in PATHS {
        let (head, tail) = match *name {
            "star-of-alternatives" => ("SELECT * { <http://e/s1> (", ")* ?o }"),
            _ => ("SELECT * { <http://e/s1> ", " ?o }"),
        };
        all.push(Shape::new(
            q,
            &format!("path {name}"),
            head,
            open,
            middle,
            close,
            tail,
        ));
    }
    for (name, head, unit, tail) in LISTS {
        all.push(flat(q, name, head, unit, tail));
    }
    // A long prefix makes short names stand for long IRIs.
    let long = "a".repeat(1 << 16);
    let head = format!("PREFIX e: <http://e/{long}> SELECT * {{ VALUES ?v {{ ");
    all.push(flat(q, "values of a long prefix", &head, "e:# ", "} }"));
    let head = format!("BASE <http://e/{long}/> SELECT * {{ VALUES ?v {{ ");
    all.push(flat(q, "values of a long base", &head, "<#> ", "} }"));
    for (name, head, unit, tail) in PREPARED {
        all.push(flat(
            To::Prepared,
            &format!("prepare {name}"),
            head,
            unit,
            tail,
        ));
    }
    all
}
