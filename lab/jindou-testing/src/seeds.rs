//! Texts with which fuzzing starts, so that it does not need files.

/// Queries that together contain every construct.
pub const QUERIES: &[&str] = &[
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

/// Updates that together contain every construct.
pub const UPDATES: &[&str] = &[
    "INSERT DATA { <http://e/v0> <http://e/p0> 1, -2.5, 3e0, \"a\\nb\"@en, '''x''', true ; a <http://e/c0> . _:b <http://e/p1> [] , (1 \"two\" <three>) }",
    "PREFIX : <http://e/> INSERT DATA { :v0 :p0 :v1 GRAPH :g0 { :v1 :p1 \"1\"^^<http://www.w3.org/2001/XMLSchema#byte> } . :v2 :p2 :v3 GRAPH <http://e/g1> { } }",
    "PREFIX : <http://e/> DELETE DATA { :v0 :p0 :v1 . GRAPH :g0 { :v1 :p1 2 ; :p2 3 , 4 } } ; INSERT DATA { :v0 :p0 :v2 }",
    "DELETE WHERE { ?s <http://e/p0> ?o . GRAPH ?g { ?s a ?c } }",
    "PREFIX : <http://e/> DELETE { ?s :p0 ?o } INSERT { ?s :p1 ?o ; :p2 [ :p0 ?s ] } WHERE { ?s :p0 ?o FILTER(?o > 1 && !BOUND(?none)) }",
    "PREFIX : <http://e/> WITH :g0 DELETE { ?s ?p ?o } WHERE { ?s ?p ?o OPTIONAL { ?o :p1 ?z } FILTER(!BOUND(?z)) }",
    "PREFIX : <http://e/> INSERT { GRAPH ?g { ?s :n ?n } } USING :g0 USING NAMED :g1 WHERE { { SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s } GRAPH ?g { ?s a :c0 } }",
    "BASE <http://e/> INSERT { <a> <b> ?x } WHERE { VALUES (?x ?y) { (1 UNDEF) (<c> \"d\"@fr) } BIND(CONCAT(STR(?x), \"-\") AS ?z) MINUS { ?x <b> ?y } }",
    "LOAD <http://e/data.ttl> ; LOAD SILENT <http://e/more.nt> INTO GRAPH <http://e/g0>",
    "CLEAR DEFAULT ; CLEAR SILENT GRAPH <http://e/g0> ; CLEAR NAMED ; CLEAR ALL",
    "DROP GRAPH <http://e/g0> ; DROP SILENT ALL ; CREATE GRAPH <http://e/g1> ; CREATE SILENT GRAPH <http://e/g2>",
    "ADD DEFAULT TO <http://e/g0> ; MOVE SILENT GRAPH <http://e/g0> TO DEFAULT ; COPY <http://e/g1> TO GRAPH <http://e/g2>",
    "PREFIX : <http://e/> INSERT { ?s :p2 ?o } WHERE { ?s (:p0|^:p1)+/:p2?/!(a|^:p0) ?o . { ?s :p0 ?x } UNION { GRAPH :g0 { ?s :p1 ?x } } } ;",
    "PREFIX : <http://e/> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER NOT EXISTS { ?o ?q ?r } FILTER(?p IN (:p0, :p1)) SERVICE SILENT <http://e/sparql> { ?s ?p ?o } }",
    "PREFIX : <http://e/> INSERT DATA { :v1 :p1 <<( :v0 :p0 1 )>> . :v0 :p0 :v2 ~ :r {| :p2 2 |} }",
    "# a comment\nPREFIX ns: <http://e/ns#>\n\nINSERT DATA { ns:a.b ns:c-d ns:%41 }\n;\nPREFIX ns: <http://e/other#> DELETE DATA { ns:\\~x a ns: }",
];
