//! Where SPARQL is subtle: answers worked out by hand from the specification.

use jindou::testing::Store;
use jindou::{Database, UpdateOptions};
use oxrdf::Term;

fn store() -> Store {
    Store::of_trig(
        r#"@prefix : <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
        :a :price "12.50"^^xsd:decimal . :b :price "012"^^xsd:integer . :c :price 1.0e0 . :d :price :free .
        :e :price _:secret .
        :g1 { :x :p :y . :x :p :z . :y :q :z } :g2 { :x :p :y } :g3 { :z :q :x }"#,
    )
}

/// All cells of the rows, sorted.
fn cells(store: &Store, query: &str) -> Vec<String> {
    let query = format!("PREFIX : <http://e/> {query}");
    let answer = store
        .db
        .query(&query)
        .unwrap_or_else(|e| panic!("{query}: {e}"));
    let mut out: Vec<String> = answer
        .solutions()
        .iter()
        .map(|row| {
            let cells: Vec<&str> = row
                .iter()
                .map(|c| match c {
                    Some(Term::Literal(l)) => l.value(),
                    Some(Term::NamedNode(n)) => n.as_str().trim_start_matches("http://e/"),
                    Some(_) => "_",
                    None => "-",
                })
                .collect();
            cells.join(" ")
        })
        .collect();
    out.sort();
    out
}

#[test]
fn str_is_the_text_of_the_data() {
    let s = store();
    for filter in [
        "STR(?o) = \"12.50\"",
        "STRLEN(STR(?o)) = 5 && CONTAINS(STR(?o), \"2.\")",
    ] {
        let native = format!("SELECT ?s {{ ?s :price ?o FILTER({filter}) }}");
        assert_eq!(cells(&s, &native), ["a"], "{filter}");
        let other =
            format!("SELECT ?s {{ ?s :price ?o OPTIONAL {{ ?o :none ?n }} FILTER({filter}) }}");
        assert_eq!(cells(&s, &other), ["a"], "{filter}");
    }
    let texts = ["a 12.50", "b 012", "c 1.0e0", "d http://e/free", "e -"];
    let got = cells(&s, "SELECT ?s (STR(?o) AS ?t) { ?s :price ?o }");
    assert_eq!(got, texts);
    let got = cells(
        &s,
        "SELECT ?s ?t { ?s :price ?o BIND(CONCAT(\"\", STR(?o)) AS ?t) }",
    );
    assert_eq!(got, texts);
    // In groups, in graphs, of an unbound variable, twice, and in the order.
    let got = cells(
        &s,
        "SELECT (GROUP_CONCAT(STR(?o)) AS ?t) { ?s :price ?o FILTER(?s = :b) }",
    );
    assert_eq!(got, ["012"]);
    let got = cells(
        &s,
        "SELECT ?g (STR(?o) AS ?t) { GRAPH ?g { ?s :q ?o BIND(STR(?o) AS ?u) FILTER(?u = STR(?o)) } }",
    );
    assert_eq!(got, ["g1 http://e/z", "g3 http://e/x"]);
    let got = cells(
        &s,
        "SELECT (STR(?no) AS ?t) { :a :price ?o OPTIONAL { :a :none ?no } }",
    );
    assert_eq!(got, ["-"]);
    let answer = s
        .db
        .query("PREFIX : <http://e/> SELECT ?s { ?s :price ?o FILTER(isLiteral(?o)) BIND(1 AS ?one) } ORDER BY STR(?o)")
        .unwrap();
    let order: Vec<String> = answer
        .solutions()
        .iter()
        .map(|r| r[0].as_ref().unwrap().to_string())
        .collect();
    assert_eq!(order, ["<http://e/b>", "<http://e/c>", "<http://e/a>"]);
}

#[test]
fn graph_is_one_graph_at_a_time() {
    let s = store();
    let counts = "SELECT ?g ?n { GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?s :p ?o } } }";
    assert_eq!(cells(&s, counts), ["g1 2", "g2 1", "g3 0"]);
    let minus = "SELECT ?g ?o { GRAPH ?g { ?s :p ?o MINUS { ?s :p ?o . ?o :q ?z } } }";
    assert_eq!(cells(&s, minus), ["g1 z", "g2 y"]);
    let first = "SELECT ?g { GRAPH ?g { SELECT ?s { ?s ?p ?o } LIMIT 1 } }";
    assert_eq!(cells(&s, first), ["g1", "g2", "g3"]);
    let inside = "SELECT ?g { GRAPH ?g { FILTER(BOUND(?g)) } }";
    assert_eq!(cells(&s, inside), Vec::<String>::new());
    let distinct = "SELECT ?g ?s { GRAPH ?g { SELECT DISTINCT ?s { ?s :p ?o } } }";
    assert_eq!(cells(&s, distinct), ["g1 x", "g2 x"]);
    let joined =
        "SELECT ?g ?n { VALUES ?g { :g2 :g3 } GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } } }";
    assert_eq!(cells(&s, joined), ["g2 1", "g3 1"]);
    let from = "SELECT ?g ?n FROM NAMED :g2 { GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } } }";
    assert_eq!(cells(&s, from), ["g2 1"]);
    let none = "SELECT ?n { GRAPH :nowhere { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } } }";
    assert!(cells(&s, none).len() <= 1);
}

#[test]
fn a_path_of_length_zero_keeps_its_constant() {
    let s = store();
    assert_eq!(cells(&s, "SELECT ?o { :nowhere :p* ?o }"), ["nowhere"]);
    assert_eq!(cells(&s, "SELECT ?o { ?o :p? \"x\" }"), ["x"]);
    assert_eq!(cells(&s, "SELECT ?o { :a :price? ?o }"), ["12.50", "a"]);
    assert_eq!(
        cells(&s, "SELECT (1 AS ?one) { :nowhere :p* :nowhere }"),
        ["1"]
    );
    assert_eq!(
        cells(&s, "SELECT (1 AS ?one) { :nowhere :p* :a }"),
        Vec::<String>::new()
    );
    assert_eq!(
        cells(&s, "SELECT ?g ?o { GRAPH ?g { :x :p* ?o } }"),
        ["g1 x", "g1 y", "g1 z", "g2 x", "g2 y", "g3 x"]
    );
    assert_eq!(
        cells(&s, "SELECT ?o { GRAPH :g2 { :x :p* ?o } }"),
        ["x", "y"]
    );
    assert_eq!(
        cells(&s, "SELECT ?o { GRAPH :nowhere { :x :p* ?o } }"),
        Vec::<String>::new()
    );
}

#[test]
fn bnode_is_one_a_text_and_solution() {
    let s = store();
    let answer = s
        .db
        .query("PREFIX : <http://e/> SELECT (BNODE(\"a b\") AS ?x) (BNODE(\"a b\") AS ?y) (BNODE(\"c\") AS ?z) { GRAPH :g1 { ?s ?p ?o } }")
        .unwrap();
    let rows = answer.solutions();
    assert_eq!(rows.len(), 3);
    for r in rows {
        assert!(matches!(r[0], Some(Term::BlankNode(_))));
        assert_eq!(r[0], r[1]);
        assert_ne!(r[0], r[2]);
    }
    assert_ne!(rows[0][0], rows[1][0]);
    assert_ne!(rows[1][0], rows[2][0]);
}

#[test]
fn a_union_within_a_graph_binds_the_graph_in_a_union() {
    let s = store();
    for ends in ["SELECT", "SELECT DISTINCT"] {
        let got = cells(
            &s,
            &format!(
                "{ends} ?g ?a {{ {{ GRAPH ?g {{ {{ ?a :q :z }} UNION {{ ?a :q :x }} }} }} UNION {{ ?a :price 1.0e0 }} }}"
            ),
        );
        assert_eq!(got, ["- c", "g1 y", "g3 z"], "{ends}");
    }
}

#[test]
fn terms_that_the_store_lacks_are_found_among_values() {
    let s = store();
    for filter in [
        "sameTerm(?v, 77)",
        "sameTerm(?v, 77) || ?v = :nobody",
        "?v IN (77, 78)",
        "!sameTerm(?v, :absent)",
    ] {
        let query = format!("SELECT ?v {{ VALUES ?v {{ 77 :absent }} FILTER({filter}) }}");
        assert_eq!(cells(&s, &query), ["77"], "{filter}");
    }
    for filter in [
        "?v = :absent",
        "sameTerm(?v, :absent)",
        "?v IN (:absent, :nobody)",
        "?v IN (:absent, 78)",
        "?v != 77 && ?v = :absent",
    ] {
        let query = format!("SELECT ?v {{ VALUES ?v {{ 77 :absent }} FILTER({filter}) }}");
        assert_eq!(cells(&s, &query), ["absent"], "{filter}");
    }
    let made = "SELECT ?v { :a :price ?o BIND(IRI(CONCAT(STR(:a), \"bsent\")) AS ?v) FILTER(?v = :absent) }";
    assert_eq!(cells(&s, made), ["absent"]);
}

#[test]
fn equal_objects_join_as_terms_or_as_values() {
    let s = Store::of_trig(
        r#"@prefix : <http://e/> . :a :made :x , :y . :b :made :y . :c :by _:n . :d :by _:n . :a :size 1 . :b :size 1.0 .
        :g { :e :made :y }"#,
    );
    let made = "SELECT ?p ?q { ?p :made ?x . ?q :made ?y FILTER(?x = ?y && ?p != ?q) }";
    assert_eq!(cells(&s, made), ["a b", "b a"]);
    let by = "SELECT ?p ?q { ?p :by ?x . ?q :by ?y FILTER(?x = ?y && ?p != ?q) }";
    assert_eq!(cells(&s, by), ["c d", "d c"]);
    // Numbers are equal though the terms are not.
    let size = "SELECT ?p ?q { ?p :size ?x . ?q :size ?y FILTER(?x = ?y && ?p != ?q) }";
    assert_eq!(cells(&s, size), ["a b", "b a"]);
    // Strings are equal to themselves, and to literals of derived types.
    let texts = Store::of_trig(
        r#"@prefix : <http://e/> . :a :name "x", "y"@en . :b :name "x", "y"@EN, "x"@de, :n . :c :name :n, "1" .
        :a :is "x", "x"^^:t . :c :is 1, "1"^^<http://www.w3.org/2001/XMLSchema#token>, :n . :b :is "1", "y"@fr ."#,
    );
    let name = "SELECT ?p ?q ?y { ?p :name ?x . ?q :name ?y FILTER(?x = ?y && ?p != ?q) }";
    assert_eq!(
        cells(&texts, name),
        ["a b x", "a b y", "b a x", "b a y", "b c n", "c b n"]
    );
    let is = "SELECT ?p ?q ?y { ?p :name ?x . ?q :is ?y FILTER(?y = ?x) }";
    assert_eq!(
        cells(&texts, is),
        ["a a x", "b a x", "b c n", "c b 1", "c c 1", "c c n"]
    );
    // A literal that comes by an update makes it a comparison of values.
    let insert = "PREFIX : <http://e/> INSERT DATA { :a :made 1 . :b :made 1.0 }";
    s.db.update(insert, &UpdateOptions::default()).unwrap();
    assert_eq!(cells(&s, made), ["a b", "a b", "b a", "b a"]);
}

#[test]
fn many_triple_terms_are_planned_and_run_on_a_small_stack() {
    let s = store();
    let some = "<< :a :q ?O ~ :iri >> . ".repeat(400);
    for query in [
        format!("SELECT * {{ {some} }}"),
        format!("SELECT * {{ OPTIONAL {{ {some} }} }}"),
    ] {
        std::thread::scope(|scope| {
            let small = std::thread::Builder::new().stack_size(1 << 20);
            let run = small.spawn_scoped(scope, || cells(&s, &query).len());
            assert!(run.unwrap().join().unwrap() < 2);
        });
    }
}

#[test]
fn a_graph_variable_is_in_scope_beside_its_graph() {
    assert_eq!(
        cells(
            &store(),
            "SELECT DISTINCT ?g ?s { GRAPH ?g { { :x :p ?o } :x :p* ?o } ?s :price :free }"
        ),
        ["g1 d", "g2 d"]
    );
}

#[test]
fn triple_terms_in_patterns_are_opened() {
    let s = Store::of_trig(
        r#"@prefix : <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
        :r1 :says <<( :a :knows :b )>> . :r2 :says <<( :a :knows "01"^^xsd:integer )>> .
        :r3 :says <<( :b :knows <<( :c :knows :c )>> )>> . :r4 :says :a . :a :age 7 .
        :g1 { :r5 :says <<( :g1 :knows :r5 )>> }"#,
    );
    for (query, want) in [
        (
            "SELECT ?r ?s ?o { ?r :says <<( ?s :knows ?o )>> }",
            &["r1 a b", "r2 a 01", "r3 b _"][..],
        ),
        (
            "SELECT ?r ?p { ?r :says <<( :a ?p ?o )>> FILTER(isLiteral(?o)) }",
            &["r2 knows"],
        ),
        (
            "SELECT ?r ?x { ?r :says <<( ?s ?p <<( ?x :knows ?x )>> )>> }",
            &["r3 c"],
        ),
        ("SELECT ?r { ?r :says <<( ?s :knows ?s )>> }", &[]),
        (
            "SELECT ?r ?n { ?r :says <<( ?s :knows ?o )>> . ?s :age ?n }",
            &["r1 7", "r2 7"],
        ),
        (
            "SELECT ?x ?r { ?x :age ?n OPTIONAL { ?r :says <<( ?x :knows :b )>> } }",
            &["a r1"],
        ),
        (
            "SELECT ?g ?r { GRAPH ?g { ?r :says <<( ?g ?p ?r )>> } }",
            &["g1 r5"],
        ),
        (
            "SELECT ?o { ?x :age ?n FILTER NOT EXISTS { ?r :says <<( ?x :likes ?y )>> } :r4 :says ?o }",
            &["a"],
        ),
    ] {
        assert_eq!(cells(&s, query), want, "{query}");
    }
}

/// Terms that updates brought have no ranks; here one stands in both sort columns.
#[test]
fn rows_are_ordered_by_several_columns_of_terms_that_updates_brought() {
    let db = Database::in_memory();
    let data = "PREFIX : <http://e/> INSERT DATA { :a :p :b, :c, :d, :z . :z :p :b }";
    db.update(data, &Default::default()).unwrap();
    let answer = db
        .query("SELECT ?s ?o { ?s <http://e/p> ?o } ORDER BY ?s ?o")
        .unwrap();
    let rows = answer.solutions().iter().map(|row| {
        let name = |i: usize| row[i].as_ref().map(ToString::to_string);
        let cells = [name(0), name(1)].map(Option::unwrap_or_default);
        cells.concat().replace("http://e/", "")
    });
    let rows: Vec<String> = rows.collect();
    assert_eq!(rows, ["<a><b>", "<a><c>", "<a><d>", "<a><z>", "<z><b>"]);
}

/// Case 13: the answers that XPath's dialect has, each in FILTER by a constant pattern and by one that is computed.
#[test]
fn regular_expressions_are_those_of_xpath() {
    let s = store();
    for (call, expected) in [
        (r#"REGEX("a", "^[a-z-[aeiou]]$")"#, "false"),
        (r#"REGEX("&", "^[a&&b]$")"#, "true"),
        (r#"REPLACE("a#b", "a#b", "X", "x")"#, "X"),
        (r#"REGEX(" ", "^[ ]$", "x")"#, "true"),
        (r#"REGEX("a\rb", "a.b")"#, "false"),
        (r#"REGEX("\u00A0", "^\\s$")"#, "false"),
        (r#"REGEX("ab1", "^\\i\\c*$")"#, "true"),
        (r#"REGEX("abab", "^(ab)\\1$")"#, "true"),
        (r#"REGEX("a", "^\\p{IsBasicLatin}$")"#, "true"),
        (r#"REGEX("A", "(?i)a")"#, "-"),
        (r#"REGEX("a", "\\ba")"#, "-"),
        (r#"REGEX("a", "[[:alpha:]]")"#, "-"),
        (r#"REGEX("a", "a", "u")"#, "-"),
        (r#"REPLACE("abcabc", "(b)c", "[$1$2$12]")"#, "a[bb2]a[bb2]"),
        (r#"REPLACE("aabc", "(.)\\1", "<$1>")"#, "<a>bc"),
        (r#"REPLACE("abc", "b*", "")"#, "-"),
        (r#"REPLACE("abc", "b", "$")"#, "-"),
    ] {
        assert_eq!(
            cells(&s, &format!("SELECT ({call} AS ?v) {{}}")),
            [expected],
            "{call}"
        );
        let (before, rest) = call.split_once("\", \"").unwrap();
        let (pattern, after) = rest.split_once('"').unwrap();
        let computed = format!("{before}\", ?p{after}");
        let query = format!("SELECT ({computed} AS ?v) {{ VALUES ?p {{ \"{pattern}\" }} }}");
        assert_eq!(cells(&s, &query), [expected], "{query}");
        let filter = format!(
            "SELECT (1 AS ?v) {{ VALUES ?p {{ \"{pattern}\" }} FILTER(STR({computed}) = \"{expected}\") }}"
        );
        let rows: &[&str] = if expected == "-" { &[] } else { &["1"] };
        assert_eq!(cells(&s, &filter), rows, "{filter}");
    }
}

/// A search that would take exponential time ends with an error that says what it was.
#[test]
fn references_to_groups_have_their_limits() {
    let s = store();
    let text = "a".repeat(5_000);
    let query = format!(
        r#"SELECT ?x {{ BIND(REGEX("{text}", "^(.*)(.*)(.*)(.*)\\4\\3\\2\\1b$") AS ?x) }}"#
    );
    // The automaton sees that there is no b at the end.
    assert_eq!(cells(&s, &query), ["false"]);
    let query =
        format!(r#"SELECT ?x {{ BIND(REGEX("{text}b", "^(.*)(.*)(.*)\\3\\2\\1ab$") AS ?x) }}"#);
    match s.db.query(&query) {
        Ok(answer) => assert_eq!(answer.solutions().len(), 1),
        Err(e) => assert!(e.to_string().contains("references to groups"), "{e}"),
    };
}
