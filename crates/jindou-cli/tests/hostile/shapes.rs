//! What is thrown at the server: each construct of SPARQL and of RDF's syntaxes, repeated until the text is as long as wanted.

use std::fmt::Write as _;

/// Where a text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    Query,
    Prepared,
    Update,
    /// A graph is put, in this format.
    Store(&'static str),
}

/// A text: `head`, then `open` n times, `middle`, `close` n times, `tail`. `#` stands for the number of the repetition.
#[derive(Clone, Debug)]
pub struct Shape {
    pub name: String,
    pub to: To,
    head: String,
    open: String,
    middle: String,
    close: String,
    tail: String,
}

impl Shape {
    fn new(
        to: To,
        name: &str,
        head: &str,
        open: &str,
        middle: &str,
        close: &str,
        tail: &str,
    ) -> Self {
        let own = |s: &str| s.to_owned();
        Self {
            name: own(name),
            to,
            head: own(head),
            open: own(open),
            middle: own(middle),
            close: own(close),
            tail: own(tail),
        }
    }

    /// The text of about so many bytes.
    pub fn text(&self, bytes: usize) -> String {
        let mut out = String::with_capacity(bytes + bytes / 8);
        out += &self.head;
        let most = bytes.saturating_sub(self.head.len() + self.middle.len() + self.tail.len());
        let mut n = 0usize;
        // Closings are as long as openings, or shorter by the digits of a number.
        let from = out.len();
        while (out.len() - from) + n * self.close.len() < most || n == 0 {
            piece(&self.open, n, &mut out);
            n += 1;
        }
        out += &self.middle;
        for _ in 0..n {
            out += &self.close;
        }
        out += &self.tail;
        out
    }
}

fn piece(text: &str, n: usize, out: &mut String) {
    let mut parts = text.split('#');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let _ = write!(out, "{n}");
        out.push_str(part);
    }
}

/// A list of one thing after the other.
fn flat(to: To, name: &str, head: &str, unit: &str, tail: &str) -> Shape {
    Shape::new(to, name, head, unit, "", "", tail)
}

/// Expressions by what is repeated around or behind `1`.
const EXPRESSIONS: &[(&str, &str, &str, &str)] = &[
    ("parentheses", "(", "1", ")"),
    ("not", "!", "1", ""),
    ("minus", "- ", "1", ""),
    ("plus", "+ ", "1", ""),
    ("or", "?n = # || ", "false", ""),
    ("and", "?n != # && ", "true", ""),
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
    (
        "cast",
        "<http://www.w3.org/2001/XMLSchema#integer>(",
        "1",
        ")",
    ),
    ("iri", "IRI(", "\"a\"", ")"),
    ("triple", "TRIPLE(?s,<http://e/p>,", "1", ")"),
    ("in-deep", "(1 IN (", "1", "))"),
    ("same-term", "sameTerm(?n,#) || ", "1", ""),
    ("lang", "LANGMATCHES(LANG(?t),\"en\") || ", "1", ""),
    ("strings", "?t = \"text #\" || ", "1", ""),
];

/// Groups by what is repeated in them.
const PATTERNS: &[(&str, &str, &str, &str)] = &[
    ("triples", "?s <http://e/p#> ?o# . ", "", ""),
    ("triples-one-subject", "<http://e/p#> ?o# ; ", "", ""),
    ("objects", "<http://e/s#> , ", "<http://e/s1>", ""),
    ("product", "?a# ?b# ?c# . ", "", ""),
    ("star", "?s <http://e/p1> ?o# . ", "", ""),
    (
        "chain",
        "?x# <http://e/p1> ?x . ?x <http://e/p2> ?y# . ",
        "",
        "",
    ),
    ("groups-deep", "{ ", "?s ?p ?o", " }"),
    ("groups", "{ ?s ?p ?o } ", "", ""),
    (
        "union",
        "{ ?s <http://e/p#> ?o } UNION ",
        "{ ?s ?p ?o }",
        "",
    ),
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
    (
        "service",
        "SERVICE SILENT <http://e/#> { ?s ?p ?o } ",
        "",
        "",
    ),
    ("sub-select", "{ SELECT ?s { ?s ?p ?o } } ", "", ""),
    ("sub-select-deep", "{ SELECT * { ", "?s ?p ?o", " } }"),
    ("values-blocks", "VALUES ?v# { # } ", "", ""),
    (
        "filters-of-exists",
        "FILTER EXISTS { ?s <http://e/p1> ?o# } ",
        "",
        "",
    ),
    ("blank-nodes", "[] <http://e/p1> [] . ", "", ""),
    ("blank-nodes-deep", "[ <http://e/p1> ", "1", " ]"),
    ("triple-terms", "?s ?p <<( ?a# ?b ?c )>> . ", "", ""),
    (
        "triple-terms-deep",
        "<<( <http://e/a> <http://e/b> ",
        "?x",
        " )>>",
    ),
    ("reifiers", "<< ?a# ?b ?c >> ?p ?o . ", "", ""),
    ("annotations", "?s# ?p ?o {| ?a ?b |} . ", "", ""),
    ("comments", "# comment #\n", "", ""),
    ("spaces", "    ", "", ""),
    ("long-iri", "a", "", ""),
];

const PATHS: &[(&str, &str, &str, &str)] = &[
    ("sequence", "<http://e/p1>/", "<http://e/p2>", ""),
    ("alternative", "<http://e/p#>|", "<http://e/p2>", ""),
    ("inverse", "^", "<http://e/p1>", ""),
    ("star-deep", "(", "<http://e/p1>", ")*"),
    ("plus-deep", "(", "<http://e/p1>", ")+"),
    ("optional", "<http://e/p1>?/", "<http://e/p2>", ""),
    ("closures", "<http://e/p#>*/", "<http://e/p2>", ""),
    ("parentheses", "(", "<http://e/p1>", ")"),
    (
        "star-of-alternatives",
        "<http://e/p#>|",
        "<http://e/p2>",
        "",
    ),
];

/// Queries.
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
    for (name, head, unit, tail) in [
        ("values integers", "SELECT * { VALUES ?v { ", "# ", "} }"),
        ("values short", "SELECT * { VALUES ?v { ", "1 ", "} }"),
        (
            "values iris",
            "SELECT * { VALUES ?v { ",
            "<http://e/s#> ",
            "} ?v ?p ?o }",
        ),
        (
            "values strings",
            "SELECT * { VALUES ?v { ",
            "\"text #\" ",
            "} }",
        ),
        (
            "values pairs",
            "SELECT * { VALUES (?v ?w) { ",
            "(# <http://e/s#>) ",
            "} }",
        ),
        ("values empty rows", "SELECT * { VALUES () { ", "() ", "} }"),
        (
            "values undef",
            "SELECT * { VALUES (?a ?b) { ",
            "(UNDEF 1) ",
            "} }",
        ),
        (
            "values typed",
            "SELECT * { VALUES ?v { ",
            "\"#\"^^<http://e/d#> ",
            "} }",
        ),
        (
            "values triples",
            "SELECT * { VALUES ?v { ",
            "<<( <http://e/s#> <http://e/p> 1 )>> ",
            "} }",
        ),
        (
            "values behind",
            "SELECT * { ?v ?p ?o } VALUES ?v { ",
            "<http://e/s#> ",
            "}",
        ),
        ("values columns", "SELECT * { VALUES (", "?v# ", ") { } }"),
        (
            "in integers",
            "SELECT * { ?s <http://e/n> ?n FILTER(?n IN (1",
            ",#",
            ")) }",
        ),
        (
            "in iris",
            "SELECT * { ?s ?p ?o FILTER(?o IN (1",
            ",<http://e/s#>",
            ")) }",
        ),
        (
            "in strings",
            "SELECT * { ?s ?p ?o FILTER(?o IN (1",
            ",\"text #\"",
            ")) }",
        ),
        (
            "in variables",
            "SELECT * { ?s <http://e/n> ?n FILTER(?n IN (1",
            ",?v#",
            ")) }",
        ),
        (
            "in sums",
            "SELECT * { ?s <http://e/n> ?n FILTER(?n IN (1",
            ",?n+#",
            ")) }",
        ),
        (
            "not in",
            "SELECT * { ?s <http://e/n> ?n FILTER(?n NOT IN (1",
            ",#",
            ")) }",
        ),
        (
            "bind in",
            "SELECT * { ?s <http://e/n> ?n BIND(?n IN (1",
            ",#",
            ") AS ?b) }",
        ),
        ("describe iris", "DESCRIBE", " <http://e/s#>", ""),
        ("describe variables", "DESCRIBE", " ?v#", " { ?v1 ?p ?o }"),
        (
            "describe where",
            "DESCRIBE ?s",
            " <http://e/s#>",
            " { ?s <http://e/p1> ?o }",
        ),
        (
            "construct",
            "CONSTRUCT { ",
            "?s <http://e/p#> ?o . ",
            "} { ?s ?p ?o }",
        ),
        (
            "construct blank nodes",
            "CONSTRUCT { ",
            "[] <http://e/p#> ?o . ",
            "} { ?s ?p ?o }",
        ),
        (
            "construct collection",
            "CONSTRUCT { ?s <http://e/p> (",
            "# ",
            ") } { ?s ?p ?o }",
        ),
        (
            "construct constants",
            "CONSTRUCT { ",
            "<http://e/s#> <http://e/p> # . ",
            "} { ?s ?p ?o }",
        ),
        (
            "construct where",
            "CONSTRUCT WHERE { ",
            "?s <http://e/p#> ?o . ",
            "}",
        ),
        ("select variables", "SELECT", " ?v#", " { ?v1 ?p ?o }"),
        (
            "select expressions",
            "SELECT",
            " (# AS ?v#)",
            " { ?s ?p ?o }",
        ),
        (
            "select counts",
            "SELECT",
            " (COUNT(?s) AS ?v#)",
            " { ?s ?p ?o }",
        ),
        (
            "select concats",
            "SELECT",
            " (GROUP_CONCAT(?t) AS ?v#)",
            " { ?s <http://e/t> ?t }",
        ),
        (
            "group by",
            "SELECT (COUNT(*) AS ?c) { ?s ?p ?o } GROUP BY",
            " ?v#",
            "",
        ),
        (
            "group by expressions",
            "SELECT (COUNT(*) AS ?c) { ?s ?p ?o } GROUP BY",
            " (?o+# AS ?g#)",
            "",
        ),
        (
            "having",
            "SELECT ?s { ?s ?p ?o } GROUP BY ?s HAVING",
            " (COUNT(?o) > #)",
            "",
        ),
        ("order by", "SELECT * { ?s ?p ?o } ORDER BY", " ?v#", ""),
        (
            "order by expressions",
            "SELECT * { ?s ?p ?o } ORDER BY",
            " DESC(?o+#)",
            "",
        ),
        ("from", "SELECT *", " FROM <http://e/g#>", " { ?s ?p ?o }"),
        (
            "from named",
            "SELECT *",
            " FROM NAMED <http://e/g#>",
            " { GRAPH ?g { ?s ?p ?o } }",
        ),
        ("prefixes", "", "PREFIX p#: <http://e/> ", "ASK { }"),
        ("prefix again", "", "PREFIX p: <http://e/#> ", "ASK { }"),
        ("bases", "", "BASE <http://e/#/> ", "ASK { }"),
        (
            "relative bases",
            "BASE <http://e/> ",
            "BASE <a/> ",
            "ASK { }",
        ),
        ("collection", "SELECT * { ?s ?p (", "# ", ") }"),
        ("string", "SELECT * { ?s ?p \"", "text ", "\" }"),
        ("long string", "SELECT * { ?s ?p '''", "text\n", "''' }"),
        ("escapes", "SELECT * { ?s ?p \"", "\\u0041", "\" }"),
        (
            "escapes in names",
            "SELECT * { ?s ?p <http://e/",
            "\\u0041",
            "> }",
        ),
        ("language", "SELECT * { ?s ?p \"a\"@en", "-ab", " }"),
        ("integer", "SELECT * { ?s ?p ", "1234567890", " }"),
        ("decimal", "SELECT * { ?s ?p 0.", "1234567890", " }"),
        ("variable", "SELECT * { ?s ?p ?", "variable", " }"),
        (
            "name",
            "PREFIX e: <http://e/> SELECT * { ?s ?p e:",
            "name",
            " }",
        ),
        ("comment", "ASK { } # ", "comment ", ""),
        (
            "regex classes",
            "SELECT * { ?s <http://e/t> ?t FILTER REGEX(?t, \"",
            "\\\\p{L}",
            "\") }",
        ),
        (
            "regex alternatives",
            "SELECT * { ?s <http://e/t> ?t FILTER REGEX(?t, \"",
            "a#|",
            "b\") }",
        ),
        (
            "regex counts",
            "SELECT * { ?s <http://e/t> ?t FILTER REGEX(?t, \"",
            "(a{99}){99}",
            "\") }",
        ),
        (
            "regex groups",
            "SELECT * { ?s <http://e/t> ?t BIND(REPLACE(?t, \"",
            "(a?)",
            "\", \"$1\") AS ?x) }",
        ),
        (
            "regex flags",
            "SELECT * { ?s <http://e/t> ?t FILTER REGEX(?t, \"a\", \"",
            "i",
            "\") }",
        ),
        (
            "regex of rows",
            "SELECT * { ?s <http://e/t> ?t BIND(CONCAT(?t, \"",
            "\\\\p{L}",
            "\") AS ?r) FILTER REGEX(?t, ?r) }",
        ),
        ("nothing", "", "\u{1}", ""),
        ("brackets", "SELECT * { ", "[", ""),
        ("braces", "SELECT * ", "{", ""),
        ("parens", "SELECT * { FILTER ", "(", ""),
        ("quotes", "SELECT * { ", "'", ""),
        ("less", "SELECT * { FILTER (1 ", "< 1 ", ") }"),
        ("less iris", "SELECT * { FILTER (1 ", "<1>(", ") }"),
        ("words", "SELECT * { ", "SELECT ", "}"),
        ("question marks", "SELECT ", "? ", ""),
    ] {
        all.push(flat(q, name, head, unit, tail));
    }
    // A name that stands for much: short names of a long prefix.
    let long = "a".repeat(1 << 16);
    let head = format!("PREFIX e: <http://e/{long}> SELECT * {{ VALUES ?v {{ ");
    all.push(flat(q, "values of a long prefix", &head, "e:# ", "} }"));
    let head = format!("BASE <http://e/{long}/> SELECT * {{ VALUES ?v {{ ");
    all.push(flat(q, "values of a long base", &head, "<#> ", "} }"));
    for (name, head, unit, tail) in [
        ("values integers", "SELECT * { VALUES ?v { ", "# ", "} }"),
        (
            "union",
            "SELECT * { { ?s ?p ?o }",
            " UNION { ?s <http://e/p#> ?o }",
            " }",
        ),
        (
            "in integers",
            "SELECT * { ?s <http://e/n> ?n FILTER(?n IN (1",
            ",#",
            ")) }",
        ),
        ("describe iris", "DESCRIBE", " <http://e/s#>", ""),
        ("string", "SELECT * { ?s ?p \"", "text ", "\" }"),
    ] {
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

/// Updates.
pub fn updates() -> Vec<Shape> {
    let u = To::Update;
    [
        (
            "insert data",
            "INSERT DATA { ",
            "<http://e/s#> <http://e/p> # . ",
            "}",
        ),
        (
            "insert data objects",
            "INSERT DATA { <http://e/s> <http://e/p> 0",
            ",#",
            " }",
        ),
        (
            "insert data graphs",
            "INSERT DATA { ",
            "GRAPH <http://e/g#> { <http://e/s> <http://e/p> # } ",
            "}",
        ),
        (
            "insert data blank nodes",
            "INSERT DATA { ",
            "[] <http://e/p> [] . ",
            "}",
        ),
        (
            "insert data string",
            "INSERT DATA { <http://e/s> <http://e/p> \"",
            "text ",
            "\" }",
        ),
        (
            "delete data",
            "DELETE DATA { ",
            "<http://e/s#> <http://e/p> # . ",
            "}",
        ),
        (
            "in",
            "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(?o IN (1",
            ",#",
            ")) }",
        ),
        (
            "values",
            "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o VALUES ?o { ",
            "# ",
            "} }",
        ),
        (
            "template",
            "INSERT { ",
            "?s <http://e/p#> ?o . ",
            "} WHERE { ?s ?p ?o }",
        ),
        (
            "delete where",
            "DELETE WHERE { ",
            "?s <http://e/p#> ?o . ",
            "}",
        ),
        (
            "operations",
            "",
            "INSERT DATA { <http://e/s#> <http://e/p> # } ;\n",
            "",
        ),
        ("clear", "", "CLEAR SILENT GRAPH <http://e/g#> ;\n", ""),
        (
            "copy",
            "",
            "COPY SILENT <http://e/g#> TO <http://e/h#> ;\n",
            "",
        ),
        ("create", "", "CREATE SILENT GRAPH <http://e/g#> ;\n", ""),
        (
            "using",
            "DELETE { ?s ?p ?o } ",
            "USING <http://e/g#> ",
            "WHERE { ?s ?p ?o }",
        ),
        (
            "bind",
            "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o ",
            "BIND(# AS ?b#) ",
            "}",
        ),
        (
            "union",
            "DELETE { ?s ?p ?o } WHERE { { ?s ?p 1 }",
            " UNION { ?s ?p # }",
            " }",
        ),
        ("prefixes", "", "PREFIX p#: <http://e/> ", "CLEAR DEFAULT"),
    ]
    .into_iter()
    .map(|(name, head, unit, tail)| flat(u, &format!("update {name}"), head, unit, tail))
    .collect()
}

/// Documents.
pub fn documents() -> Vec<Shape> {
    const TTL: &str = "text/turtle";
    const TRIG: &str = "application/trig";
    const NT: &str = "application/n-triples";
    const NQ: &str = "application/n-quads";
    const XML: &str = "application/rdf+xml";
    const JSON: &str = "application/ld+json";
    let rdf =
        "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"http://e/\"";
    let mut all = vec![];
    for (media, name, head, open, middle, close, tail) in [
        (
            NT,
            "nt triples",
            "",
            "<http://e/s#> <http://e/p> \"#\" .\n",
            "",
            "",
            "",
        ),
        (
            NT,
            "nt literal",
            "<http://e/s> <http://e/p> \"",
            "text ",
            "\" .\n",
            "",
            "",
        ),
        (NT, "nt comment", "# ", "comment ", "\n", "", ""),
        (NT, "nt comments", "", "#\n", "", "", ""),
        (NT, "nt lines", "", "\n", "", "", ""),
        (
            NT,
            "nt iri",
            "<http://e/",
            "a",
            "> <http://e/p> <http://e/o> .\n",
            "",
            "",
        ),
        (
            NT,
            "nt escapes",
            "<http://e/s> <http://e/p> \"",
            "\\u0041",
            "\" .\n",
            "",
            "",
        ),
        (
            NT,
            "nt triple terms",
            "<http://e/s> <http://e/p> ",
            "<<( <http://e/s> <http://e/p> ",
            "<http://e/o>",
            " )>>",
            " .\n",
        ),
        (NT, "nt errors", "", "x\n", "", "", ""),
        (
            NQ,
            "nq graphs",
            "",
            "<http://e/s#> <http://e/p> \"#\" <http://e/g#> .\n",
            "",
            "",
            "",
        ),
        (
            TTL,
            "ttl triples",
            "",
            "<http://e/s#> <http://e/p> # .\n",
            "",
            "",
            "",
        ),
        (
            TTL,
            "ttl objects",
            "<http://e/s> <http://e/p> 0",
            " , #",
            " .",
            "",
            "",
        ),
        (
            TTL,
            "ttl predicates",
            "<http://e/s> <http://e/p> 0",
            " ; <http://e/p#> 1",
            " .",
            "",
            "",
        ),
        (
            TTL,
            "ttl literal",
            "<http://e/s> <http://e/p> \"",
            "text ",
            "\" .",
            "",
            "",
        ),
        (
            TTL,
            "ttl long literal",
            "<http://e/s> <http://e/p> \"\"\"",
            "text\n",
            "\"\"\" .",
            "",
            "",
        ),
        (TTL, "ttl comment", "# ", "comment ", "\n", "", ""),
        (TTL, "ttl comments", "", "# comment\n", "", "", ""),
        (TTL, "ttl spaces", "", "    ", "", "", ""),
        (
            TTL,
            "ttl iri",
            "<http://e/",
            "a",
            "> <http://e/p> 1 .",
            "",
            "",
        ),
        (
            TTL,
            "ttl name",
            "@prefix e: <http://e/> . e:",
            "name",
            " e:p 1 .",
            "",
            "",
        ),
        (
            TTL,
            "ttl collection",
            "<http://e/s> <http://e/p> ( ",
            "# ",
            ") .",
            "",
            "",
        ),
        (
            TTL,
            "ttl collections deep",
            "<http://e/s> <http://e/p> ",
            "( ",
            "1",
            " )",
            " .",
        ),
        (
            TTL,
            "ttl blank nodes deep",
            "<http://e/s> <http://e/p> ",
            "[ <http://e/p> ",
            "1",
            " ]",
            " .",
        ),
        (
            TTL,
            "ttl triple terms deep",
            "<http://e/s> <http://e/p> ",
            "<<( <http://e/s> <http://e/p> ",
            "1",
            " )>>",
            " .",
        ),
        (
            TTL,
            "ttl reifiers deep",
            "",
            "<< ",
            "<http://e/s> <http://e/p> 1",
            " >> <http://e/p> 1",
            " .",
        ),
        (
            TTL,
            "ttl prefixes",
            "",
            "@prefix p#: <http://e/#/> .\n",
            "",
            "",
            "",
        ),
        (
            TTL,
            "ttl bases",
            "@base <http://e/> .\n",
            "@base <a#/> .\n",
            "<s> <p> 1 .",
            "",
            "",
        ),
        (
            TTL,
            "ttl base chains",
            "@base <http://e/> .\n",
            "@base <aaaaaaaa/> .\n<s> <p> 1 .\n",
            "",
            "",
            "",
        ),
        (
            TTL,
            "ttl integer",
            "<http://e/s> <http://e/p> ",
            "1234567890",
            " .",
            "",
            "",
        ),
        (
            TTL,
            "ttl language",
            "<http://e/s> <http://e/p> \"a\"@en",
            "-ab",
            " .",
            "",
            "",
        ),
        (
            TTL,
            "ttl labels",
            "",
            "_:b# <http://e/p> _:c# .\n",
            "",
            "",
            "",
        ),
        (TTL, "ttl quotes", "", "\"", "", "", ""),
        (
            TTL,
            "ttl brackets",
            "<http://e/s> <http://e/p> ",
            "[",
            "",
            "",
            "",
        ),
        (
            TRIG,
            "trig graphs",
            "",
            "<http://e/g#> { <http://e/s> <http://e/p> # }\n",
            "",
            "",
            "",
        ),
        (
            TRIG,
            "trig graph",
            "<http://e/g> { ",
            "<http://e/s#> <http://e/p> # .\n",
            "}",
            "",
            "",
        ),
        (
            JSON,
            "json objects",
            "[{}",
            ",{\"@id\":\"http://e/s#\",\"http://e/p\":#}",
            "]",
            "",
            "",
        ),
        (
            JSON,
            "json keys",
            "{\"@id\":\"http://e/s\"",
            ",\"http://e/p#\":1",
            "}",
            "",
            "",
        ),
        (
            JSON,
            "json arrays deep",
            "{\"@id\":\"http://e/s\",\"http://e/p\":",
            "[",
            "1",
            "]",
            "}",
        ),
        (
            JSON,
            "json objects deep",
            "{\"@id\":\"http://e/s\"",
            ",\"http://e/p\":{\"@id\":\"http://e/#\"",
            "",
            "}",
            "}",
        ),
        (
            JSON,
            "json list",
            "{\"@id\":\"http://e/s\",\"http://e/p\":{\"@list\":[0",
            ",#",
            "]}}",
            "",
            "",
        ),
        (
            JSON,
            "json string",
            "{\"@id\":\"http://e/s\",\"http://e/p\":\"",
            "text ",
            "\"}",
            "",
            "",
        ),
        (
            JSON,
            "json context",
            "{\"@context\":{\"a\":\"http://e/a\"",
            ",\"k#\":\"http://e/k#\"",
            "},\"@id\":\"http://e/s\",\"k1\":1}",
            "",
            "",
        ),
        (
            JSON,
            "json contexts",
            "{\"@context\":[{}",
            ",{\"k#\":\"http://e/k#\"}",
            "],\"@id\":\"http://e/s\",\"k1\":1}",
            "",
            "",
        ),
        (
            JSON,
            "json graphs",
            "{\"@graph\":[{}",
            ",{\"@id\":\"http://e/s#\",\"http://e/p\":#}",
            "]}",
            "",
            "",
        ),
        (
            JSON,
            "json context last",
            "{\"@id\":\"http://e/s\"",
            ",\"k#\":1",
            ",\"@context\":{\"@vocab\":\"http://e/\"}}",
            "",
            "",
        ),
        (JSON, "json spaces", "", "    ", "{}", "", ""),
    ] {
        all.push(Shape::new(
            To::Store(media),
            name,
            head,
            open,
            middle,
            close,
            tail,
        ));
    }
    for (name, head, open, middle, close, tail) in [
        (
            "xml attributes",
            "><rdf:Description",
            " e:a#=\"1\"",
            "/></rdf:RDF>",
            "",
            "",
        ),
        (
            "xml namespaces",
            "",
            " xmlns:n#=\"http://e/#/\"",
            "></rdf:RDF>",
            "",
            "",
        ),
        (
            "xml nodes",
            ">",
            "<rdf:Description rdf:about=\"http://e/s#\"><e:p>#</e:p></rdf:Description>",
            "</rdf:RDF>",
            "",
            "",
        ),
        (
            "xml properties",
            "><rdf:Description>",
            "<e:p>#</e:p>",
            "</rdf:Description></rdf:RDF>",
            "",
            "",
        ),
        (
            "xml deep",
            ">",
            "<rdf:Description><e:p>",
            "",
            "</e:p></rdf:Description>",
            "</rdf:RDF>",
        ),
        (
            "xml text",
            "><rdf:Description><e:p>",
            "text ",
            "</e:p></rdf:Description></rdf:RDF>",
            "",
            "",
        ),
        (
            "xml entities",
            "><rdf:Description><e:p>",
            "&amp;",
            "</e:p></rdf:Description></rdf:RDF>",
            "",
            "",
        ),
        (
            "xml attribute",
            "><rdf:Description e:a=\"",
            "text ",
            "\"/></rdf:RDF>",
            "",
            "",
        ),
        (
            "xml literal",
            "><rdf:Description><e:p rdf:parseType=\"Literal\">",
            "<b>#</b>",
            "</e:p></rdf:Description></rdf:RDF>",
            "",
            "",
        ),
        (
            "xml literal attributes",
            "><rdf:Description><e:p rdf:parseType=\"Literal\"><b",
            " a#=\"1\"",
            "/></e:p></rdf:Description></rdf:RDF>",
            "",
            "",
        ),
        (
            "xml collection",
            "><rdf:Description><e:p rdf:parseType=\"Collection\">",
            "<rdf:Description/>",
            "</e:p></rdf:Description></rdf:RDF>",
            "",
            "",
        ),
        ("xml comment", "><!-- ", "comment ", "--></rdf:RDF>", "", ""),
        ("xml comments", ">", "<!--c-->", "</rdf:RDF>", "", ""),
        ("xml instruction", "><?x ", "text ", "?></rdf:RDF>", "", ""),
        (
            "xml name",
            "><rdf:Description><e:",
            "name",
            "/></rdf:Description></rdf:RDF>",
            "",
            "",
        ),
        (
            "xml cdata",
            "><rdf:Description><e:p><![CDATA[",
            "text ",
            "]]></e:p></rdf:Description></rdf:RDF>",
            "",
            "",
        ),
        (
            "xml ids",
            ">",
            "<rdf:Description rdf:ID=\"i#\"/>",
            "</rdf:RDF>",
            "",
            "",
        ),
        (
            "xml bases",
            "><rdf:Description>",
            "<e:p><rdf:Description xml:base=\"http://e/#/\"/></e:p>",
            "</rdf:Description></rdf:RDF>",
            "",
            "",
        ),
    ] {
        let head = format!("{rdf}{head}");
        all.push(Shape::new(
            To::Store(XML),
            name,
            &head,
            open,
            middle,
            close,
            tail,
        ));
    }
    all
}
