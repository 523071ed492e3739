//! Questions to the Waterloo SPARQL Diversity Test Suite.

use super::questions::{Check, Question, Questions, question};

/// The Waterloo SPARQL Diversity Test Suite.
pub const WATDIV: Questions = Questions {
    data: "WatDiv",
    prefixes: "PREFIX w: <http://db.uwaterloo.ca/~galuc/wsdbm/> PREFIX gr: <http://purl.org/goodrelations/> \
         PREFIX rev: <http://purl.org/stuff/rev#> PREFIX s: <http://schema.org/> \
         PREFIX gn: <http://www.geonames.org/ontology#> PREFIX dc: <http://purl.org/dc/terms/> \
         PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> ",
    is_there: "ASK { ?x w:friendOf ?c }",
    list: WATDIV_LIST,
};

const FRIENDS: &str = "SELECT ?a ?b { ?a w:friendOf ?b }";
const FOLLOWS: &str = "SELECT ?a ?b { ?a w:follows ?b }";
const PRICES: &str = "SELECT ?x ?p { ?x gr:price ?p }";
const TEXTS: &str = "SELECT ?x ?t { ?x rev:text ?t }";
const DATES: &str = "SELECT ?x ?d { ?x w:purchaseDate ?d }";

const WATDIV_LIST: &[Question] = &[
    question(
        "join",
        "pattern with groups, many to one",
        "SELECT ?a ?b ?n { ?a w:follows ?b { SELECT ?b (COUNT(*) AS ?n) { ?b w:friendOf ?c } GROUP BY ?b } }",
        &[
            FOLLOWS,
            "SELECT ?b (COUNT(*) AS ?n) { ?b w:friendOf ?c } GROUP BY ?b",
        ],
        Check::Same(
            "SELECT ?a ?b ?n { { SELECT ?b (SUM(1) AS ?n) { ?b w:friendOf ?c } GROUP BY ?b } ?a w:follows ?b }",
        ),
    ),
    question(
        "join",
        "two keys, two large sides",
        "SELECT ?a ?b { { SELECT DISTINCT ?a ?b { ?a w:friendOf ?b } } { SELECT DISTINCT ?a ?b { ?a w:follows ?b } } }",
        &[FRIENDS, FOLLOWS],
        Check::Same("SELECT ?a ?b { ?a w:friendOf ?b . ?a w:follows ?b }"),
    ),
    question(
        "OPTIONAL",
        "often there, one to many",
        "SELECT ?a ?b ?l { ?a w:follows ?b OPTIONAL { ?b w:likes ?l } }",
        &[FOLLOWS],
        Check::Same(
            "SELECT ?a ?b ?l { { ?a w:follows ?b . ?b w:likes ?l } UNION \
             { ?a w:follows ?b FILTER NOT EXISTS { ?b w:likes ?l } } }",
        ),
    ),
    question(
        "OPTIONAL",
        "nested",
        "SELECT ?x ?p ?q ?g { ?x w:makesPurchase ?p OPTIONAL { ?p w:purchaseFor ?q OPTIONAL { ?q w:hasGenre ?g } } }",
        &["SELECT ?x ?p { ?x w:makesPurchase ?p }"],
        Check::Same(
            "SELECT ?x ?p ?q ?g { { ?x w:makesPurchase ?p . ?p w:purchaseFor ?q . ?q w:hasGenre ?g } UNION \
             { ?x w:makesPurchase ?p . ?p w:purchaseFor ?q FILTER NOT EXISTS { ?q w:hasGenre ?g } } UNION \
             { ?x w:makesPurchase ?p FILTER NOT EXISTS { ?p w:purchaseFor ?q } } }",
        ),
    ),
    question(
        "UNION",
        "two patterns",
        "SELECT ?a ?b { { ?a w:follows ?b } UNION { ?a w:friendOf ?b } }",
        &[FOLLOWS, FRIENDS],
        Check::Same("SELECT ?a ?b { ?a ?p ?b FILTER(?p IN (w:follows, w:friendOf)) }"),
    ),
    question(
        "MINUS",
        "two keys",
        "SELECT ?a ?b { ?a w:follows ?b MINUS { ?a w:friendOf ?b } }",
        &[FOLLOWS],
        Check::Same("SELECT ?a ?b { ?a w:follows ?b FILTER NOT EXISTS { ?a w:friendOf ?b } }"),
    ),
    question(
        "EXISTS",
        "other direction of an edge",
        "SELECT ?a ?b { ?a w:follows ?b FILTER EXISTS { ?b w:follows ?a } }",
        &[FOLLOWS],
        Check::Same("SELECT ?a ?b { ?a w:follows ?b . ?b w:follows ?a }"),
    ),
    question(
        "GROUP BY",
        "count, one pattern",
        "SELECT ?b (COUNT(*) AS ?n) { ?a w:friendOf ?b } GROUP BY ?b",
        &[FRIENDS],
        Check::Same("SELECT ?b (SUM(1) AS ?n) { ?a w:friendOf ?b } GROUP BY ?b"),
    ),
    question(
        "GROUP BY",
        "sum of casts, few groups",
        "SELECT ?r (SUM(xsd:integer(?p)) AS ?n) { ?x gr:price ?p . ?x s:eligibleRegion ?r } GROUP BY ?r",
        &["SELECT ?r ?p { ?x gr:price ?p . ?x s:eligibleRegion ?r }"],
        Check::Same(
            "SELECT ?r (SUM(?k * xsd:integer(?p)) AS ?n) { SELECT ?r ?p (COUNT(*) AS ?k) \
             { ?x gr:price ?p . ?x s:eligibleRegion ?r } GROUP BY ?r ?p } GROUP BY ?r",
        ),
    ),
    question(
        "DISTINCT",
        "two columns, two steps",
        "SELECT DISTINCT ?a ?g { ?a w:likes ?p . ?p w:hasGenre ?g }",
        &["SELECT ?a ?g { ?a w:likes ?p . ?p w:hasGenre ?g }"],
        Check::Same("SELECT ?a ?g { ?a w:likes ?p . ?p w:hasGenre ?g } GROUP BY ?a ?g"),
    ),
    question(
        "ORDER BY",
        "strings, all rows",
        "SELECT ?t ?x { ?x rev:text ?t } ORDER BY ?t",
        &[TEXTS],
        Check::Ascending("SELECT ?t ?x { ?x rev:text ?t }"),
    ),
    question(
        "ORDER BY",
        "two keys, all rows",
        "SELECT ?b ?a { ?a w:friendOf ?b } ORDER BY ?b ?a",
        &[FRIENDS],
        Check::Ascending("SELECT ?b ?a { ?a w:friendOf ?b }"),
    ),
    question(
        "filter",
        "CONTAINS, long strings",
        "SELECT ?x { ?x rev:text ?t FILTER(CONTAINS(?t, \"stroamm\")) }",
        &[TEXTS],
        Check::Same("SELECT ?x { ?x rev:text ?t FILTER(REGEX(?t, \"stroamm\")) }"),
    ),
    question(
        "filter",
        "REGEX without case, long strings",
        "SELECT ?x { ?x rev:text ?t FILTER(REGEX(?t, \"STROAMM\", \"i\")) }",
        &[TEXTS],
        Check::Same("SELECT ?x { ?x rev:text ?t FILTER(CONTAINS(LCASE(?t), \"stroamm\")) }"),
    ),
    question(
        "expression",
        "arithmetic on casts",
        "SELECT ?x ?v { ?x gr:price ?p BIND(xsd:integer(?p) * 119 / 100 AS ?v) }",
        &[PRICES],
        Check::Same("SELECT ?x ?v { ?x gr:price ?p BIND((119 * xsd:integer(?p)) / 100 AS ?v) }"),
    ),
    question(
        "expression",
        "dates compared",
        "SELECT ?x { ?x w:purchaseDate ?d FILTER(xsd:dateTime(CONCAT(?d, \"T00:00:00Z\")) < \"2012-07-01T00:00:00Z\"^^xsd:dateTime) }",
        &[DATES],
        Check::Same("SELECT ?x { ?x w:purchaseDate ?d FILTER(?d < \"2012-07-01\") }"),
    ),
    question(
        "expression",
        "months of dates",
        "SELECT ?m (COUNT(*) AS ?n) { ?x w:purchaseDate ?d BIND(MONTH(xsd:dateTime(CONCAT(?d, \"T00:00:00\"))) AS ?m) } GROUP BY ?m",
        &[DATES],
        Check::Same(
            "SELECT ?m (COUNT(*) AS ?n) { ?x w:purchaseDate ?d BIND(xsd:integer(SUBSTR(?d, 6, 2)) AS ?m) } GROUP BY ?m",
        ),
    ),
    question(
        "comparison",
        "EXISTS by = of numbers",
        "SELECT ?x ?p { ?x gr:price ?p FILTER EXISTS { ?y gr:price ?q FILTER(xsd:integer(?p) = xsd:decimal(?q) * 2) } }",
        &[PRICES, PRICES],
        Check::Same(
            "SELECT ?x ?p { { SELECT ?x ?p (xsd:integer(?p) AS ?v) { ?x gr:price ?p } } \
             { SELECT DISTINCT (xsd:integer(?q) * 2 AS ?v) { ?y gr:price ?q } } }",
        ),
    ),
    question(
        "comparison",
        "NOT EXISTS by < of numbers",
        "SELECT ?x ?p { ?x gr:price ?p FILTER NOT EXISTS { ?y gr:price ?q FILTER(xsd:integer(?p) < xsd:integer(?q) * 0.9) } }",
        &[PRICES, PRICES],
        Check::Same(
            "SELECT ?x ?p { { SELECT (MAX(xsd:integer(?q)) * 0.9 AS ?most) { ?y gr:price ?q } } ?x gr:price ?p \
             FILTER(COALESCE(xsd:integer(?p) >= ?most, false)) }",
        ),
    ),
    question(
        "path",
        "+ forwards from one end",
        "SELECT ?b { w:User1 w:follows+ ?b }",
        &[FOLLOWS],
        Check::Same("SELECT DISTINCT ?b { w:User1 w:follows ?x . ?x w:follows* ?b }"),
    ),
    question(
        "path",
        "+ backwards from one end",
        "SELECT ?a { ?a w:follows+ w:User1 }",
        &[FOLLOWS],
        Check::Same("SELECT DISTINCT ?a { ?x w:follows w:User1 . ?a w:follows* ?x }"),
    ),
    question(
        "path",
        "+ over two predicates",
        "SELECT ?b { w:User1 (w:follows|w:friendOf)+ ?b }",
        &[FOLLOWS, FRIENDS],
        Check::Same(
            "SELECT DISTINCT ?b { { w:User1 w:follows ?x } UNION { w:User1 w:friendOf ?x } ?x (w:friendOf|w:follows)* ?b }",
        ),
    ),
    question(
        "path",
        "+ between both ends",
        "SELECT ?a ?b { VALUES ?a { w:User1 w:User7 w:User13 w:User99 } VALUES ?b { w:User2 w:User50 w:User1000 w:User4444 } \
         ?a w:follows+ ?b }",
        &[FOLLOWS],
        Check::Same(
            "SELECT ?a ?b { { SELECT DISTINCT ?a ?b { VALUES ?a { w:User1 w:User7 w:User13 w:User99 } ?a w:follows/w:follows* ?b } } \
             FILTER(?b IN (w:User2, w:User50, w:User1000, w:User4444)) }",
        ),
    ),
    question(
        "path",
        "* from each of 100",
        "SELECT ?p (COUNT(*) AS ?n) { { SELECT ?p { ?p a w:Role2 } ORDER BY ?p LIMIT 100 } ?p w:follows* ?b } GROUP BY ?p",
        &[FOLLOWS],
        Check::Same(
            "SELECT ?p (COUNT(DISTINCT ?b) AS ?n) { { SELECT ?p { ?p a w:Role2 } ORDER BY ?p LIMIT 100 } \
             ?p ((w:follows/w:follows)*|(w:follows/(w:follows/w:follows)*))? ?b } GROUP BY ?p",
        ),
    ),
    question(
        "path",
        "+ with both ends free",
        "SELECT ?x ?y { ?x (gn:parentCountry|dc:Location|s:nationality)+ ?y }",
        &[
            "SELECT ?x ?y { { ?x gn:parentCountry ?y } UNION { ?x dc:Location ?y } UNION { ?x s:nationality ?y } }",
        ],
        Check::Same(
            "SELECT DISTINCT ?x ?y { { ?x gn:parentCountry ?y } UNION { ?x dc:Location ?y } UNION { ?x s:nationality ?y } UNION \
             { ?x dc:Location ?z . ?z gn:parentCountry ?y } }",
        ),
    ),
    question(
        "result",
        "everything",
        "SELECT * { ?s ?p ?o }",
        &["SELECT * { ?s ?p ?o }"],
        Check::Count("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"),
    ),
];
