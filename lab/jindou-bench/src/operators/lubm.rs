//! Questions to the Lehigh University Benchmark.

use super::questions::{Check, Question, Questions, question};

/// The Lehigh University Benchmark.
pub const LUBM: Questions = Questions {
    data: "LUBM",
    prefixes: "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#> ",
    is_there: "ASK { ?x ub:takesCourse ?c }",
    list: LUBM_LIST,
};

const TAKES: &str = "SELECT ?s ?c { ?s ub:takesCourse ?c }";
const MEMBER: &str = "SELECT ?s ?d { ?s ub:memberOf ?d }";
const ADVISOR: &str = "SELECT ?s ?a { ?s ub:advisor ?a }";
const NAMES: &str = "SELECT ?s ?n { ?s ub:name ?n }";
const EMAILS: &str = "SELECT ?s ?e { ?s ub:emailAddress ?e }";
const ASSISTANTS: &str = "SELECT ?s ?t { ?s ub:teachingAssistantOf ?t }";
const TYPES: &str = "SELECT ?s ?t { ?s a ?t }";
const AUTHORS: &str = "SELECT ?d ?a { ?d ub:publicationAuthor ?a }";
const HEADS: &str = "SELECT ?x ?e { ?x ub:headOf ?d ; ub:emailAddress ?e }";
/// Assistants with their advisor and the head of their department.
const ABOVE: &str = "SELECT ?s ?b ?c { ?s ub:teachingAssistantOf ?t ; ub:advisor ?b ; ub:memberOf ?o . ?c ub:headOf ?o }";
const PAIRS_BY_TERM: &str = "SELECT in0.c0 AS x, in1.c0 AS y FROM in0 JOIN in1 ON in0.c1 = in1.c1";
/// Check of the questions about equality, by a join.
const ADVISED: Check =
    Check::Same("SELECT ?d ?s { ?d ub:publicationAuthor ?a . ?s ub:advisor ?a }");

const LUBM_LIST: &[Question] = &[
    question(
        "join",
        "pattern with groups, many to one",
        "SELECT ?s ?a ?k { ?s ub:advisor ?a { SELECT ?a (COUNT(*) AS ?k) { ?a ub:teacherOf ?c } GROUP BY ?a } }",
        &[
            ADVISOR,
            "SELECT ?a (COUNT(*) AS ?k) { ?a ub:teacherOf ?c } GROUP BY ?a",
        ],
        Check::Same(
            "SELECT ?s ?a (COUNT(?c) AS ?k) { ?s ub:advisor ?a . ?a ub:teacherOf ?c } GROUP BY ?s ?a",
        ),
    ),
    question(
        "join",
        "two large sides, one to one",
        "SELECT ?s ?n ?m { { SELECT ?s (COUNT(*) AS ?n) { ?s ub:takesCourse ?c } GROUP BY ?s } \
         { SELECT ?s (COUNT(*) AS ?m) { ?s ub:memberOf ?d } GROUP BY ?s } }",
        &[
            "SELECT ?s (COUNT(*) AS ?n) { ?s ub:takesCourse ?c } GROUP BY ?s",
            "SELECT ?s (COUNT(*) AS ?m) { ?s ub:memberOf ?d } GROUP BY ?s",
        ],
        Check::Same(
            "SELECT ?s (COUNT(DISTINCT ?c) AS ?n) (COUNT(DISTINCT ?d) AS ?m) \
             { ?s ub:takesCourse ?c . ?s ub:memberOf ?d } GROUP BY ?s",
        ),
    ),
    question(
        "join",
        "two keys",
        "SELECT ?s ?d ?a { ?s ub:memberOf ?d . ?s ub:advisor ?a \
         { SELECT DISTINCT ?d ?a { ?a ub:worksFor ?d . ?a a ub:FullProfessor } } }",
        &[
            "SELECT ?s ?d ?a { ?s ub:memberOf ?d . ?s ub:advisor ?a }",
            "SELECT DISTINCT ?d ?a { ?a ub:worksFor ?d . ?a a ub:FullProfessor }",
        ],
        Check::Same(
            "SELECT ?s ?d ?a { ?s ub:memberOf ?d . ?s ub:advisor ?a . ?a ub:worksFor ?d . ?a a ub:FullProfessor }",
        ),
    ),
    question(
        "join",
        "every pair",
        "SELECT ?x ?y { { SELECT ?x { ?x a ub:Department } } { SELECT ?y { ?y a ub:University } } }",
        &[
            "SELECT ?x { ?x a ub:Department }",
            "SELECT ?y { ?y a ub:University }",
        ],
        Check::Count(
            "SELECT (?n * ?m AS ?r) { { SELECT (COUNT(?x) AS ?n) { ?x a ub:Department } } \
             { SELECT (COUNT(?y) AS ?m) { ?y a ub:University } } }",
        ),
    ),
    question(
        "OPTIONAL",
        "rarely there",
        "SELECT ?s ?d ?t { ?s ub:memberOf ?d OPTIONAL { ?s ub:teachingAssistantOf ?t } }",
        &[MEMBER],
        Check::Same(
            "SELECT ?s ?d ?t { { ?s ub:memberOf ?d . ?s ub:teachingAssistantOf ?t } UNION \
             { ?s ub:memberOf ?d FILTER NOT EXISTS { ?s ub:teachingAssistantOf ?t } } }",
        ),
    ),
    question(
        "OPTIONAL",
        "filter over both sides",
        "SELECT ?s ?c ?t { ?s ub:takesCourse ?c OPTIONAL { ?s ub:teachingAssistantOf ?t FILTER(?t != ?c) } }",
        &[TAKES],
        Check::Same(
            "SELECT ?s ?c ?t { { ?s ub:takesCourse ?c . ?s ub:teachingAssistantOf ?t FILTER(?t != ?c) } UNION \
             { ?s ub:takesCourse ?c FILTER NOT EXISTS { ?s ub:teachingAssistantOf ?t FILTER(?t != ?c) } } }",
        ),
    ),
    question(
        "UNION",
        "two patterns",
        "SELECT ?s ?c { { ?s ub:takesCourse ?c } UNION { ?s ub:teacherOf ?c } }",
        &[TAKES, "SELECT ?s ?c { ?s ub:teacherOf ?c }"],
        Check::Same("SELECT ?s ?c { ?s ?p ?c FILTER(?p IN (ub:takesCourse, ub:teacherOf)) }"),
    ),
    question(
        "MINUS",
        "one key",
        "SELECT ?s ?c { ?s ub:takesCourse ?c MINUS { ?s ub:teachingAssistantOf ?t } }",
        &[TAKES, ASSISTANTS],
        Check::Same(
            "SELECT ?s ?c { ?s ub:takesCourse ?c OPTIONAL { ?s ub:teachingAssistantOf ?t } FILTER(!BOUND(?t)) }",
        ),
    ),
    question(
        "EXISTS",
        "edge of the row",
        "SELECT ?s ?c { ?s ub:takesCourse ?c FILTER EXISTS { ?t ub:teachingAssistantOf ?c } }",
        &[TAKES],
        Check::Same(
            "SELECT ?s ?c { { SELECT DISTINCT ?c { ?t ub:teachingAssistantOf ?c } } ?s ub:takesCourse ?c }",
        ),
    ),
    question(
        "EXISTS",
        "not, over two steps",
        "SELECT ?s ?a { ?s ub:advisor ?a FILTER NOT EXISTS { ?a ub:teacherOf ?c . ?s ub:takesCourse ?c } }",
        &[ADVISOR],
        Check::Same(
            "SELECT ?s ?a { ?s ub:advisor ?a MINUS { ?s ub:advisor ?a . ?a ub:teacherOf ?c . ?s ub:takesCourse ?c } }",
        ),
    ),
    question(
        "GROUP BY",
        "count, one pattern",
        "SELECT ?c (COUNT(*) AS ?n) { ?s ub:takesCourse ?c } GROUP BY ?c",
        &[TAKES],
        Check::Same("SELECT ?c (SUM(1) AS ?n) { ?s ub:takesCourse ?c } GROUP BY ?c"),
    ),
    question(
        "GROUP BY",
        "count, few groups",
        "SELECT ?t (COUNT(*) AS ?n) { ?s ub:name ?m . ?s a ?t } GROUP BY ?t",
        &["SELECT ?s ?t { ?s ub:name ?m . ?s a ?t }"],
        Check::Same("SELECT ?t (SUM(1) AS ?n) { ?s ub:name ?m . ?s a ?t } GROUP BY ?t"),
    ),
    question(
        "GROUP BY",
        "count, many groups of two",
        "SELECT ?d ?c (COUNT(*) AS ?n) { ?s ub:memberOf ?d . ?s ub:takesCourse ?c } GROUP BY ?d ?c",
        &["SELECT ?d ?c { ?s ub:memberOf ?d . ?s ub:takesCourse ?c }"],
        Check::Same(
            "SELECT ?d ?c (SUM(1) AS ?n) { ?s ub:memberOf ?d . ?s ub:takesCourse ?c } GROUP BY ?d ?c",
        ),
    ),
    question(
        "GROUP BY",
        "distinct values a group",
        "SELECT ?d (COUNT(DISTINCT ?c) AS ?n) { ?s ub:memberOf ?d . ?s ub:takesCourse ?c } GROUP BY ?d",
        &["SELECT ?d ?c { ?s ub:memberOf ?d . ?s ub:takesCourse ?c }"],
        Check::Same(
            "SELECT ?d (COUNT(*) AS ?n) { SELECT DISTINCT ?d ?c { ?s ub:memberOf ?d . ?s ub:takesCourse ?c } } GROUP BY ?d",
        ),
    ),
    question(
        "GROUP BY",
        "least of strings, many groups",
        "SELECT ?s (MIN(?c) AS ?m) { ?s ub:takesCourse ?c } GROUP BY ?s",
        &[TAKES],
        Check::Same(
            "SELECT ?s (MIN(?c) AS ?m) { SELECT DISTINCT ?s ?c { ?s ub:takesCourse ?c } } GROUP BY ?s",
        ),
    ),
    question(
        "COUNT",
        "one pattern",
        "SELECT (COUNT(*) AS ?n) { ?s ub:takesCourse ?c }",
        &[TAKES],
        Check::Same("SELECT (SUM(1) AS ?n) { ?s ub:takesCourse ?c }"),
    ),
    question(
        "COUNT",
        "distinct, one pattern",
        "SELECT (COUNT(DISTINCT ?c) AS ?n) { ?s ub:takesCourse ?c }",
        &[TAKES],
        Check::Same("SELECT (COUNT(*) AS ?n) { { SELECT DISTINCT ?c { ?s ub:takesCourse ?c } } }"),
    ),
    question(
        "DISTINCT",
        "one column of one pattern",
        "SELECT DISTINCT ?c { ?s ub:takesCourse ?c }",
        &[TAKES],
        Check::Same("SELECT ?c { ?s ub:takesCourse ?c } GROUP BY ?c"),
    ),
    question(
        "DISTINCT",
        "one column, many values",
        "SELECT DISTINCT ?s { ?s ub:memberOf ?d . ?s ub:takesCourse ?c }",
        &["SELECT ?s { ?s ub:memberOf ?d . ?s ub:takesCourse ?c }"],
        Check::Same("SELECT ?s { ?s ub:memberOf ?d . ?s ub:takesCourse ?c } GROUP BY ?s"),
    ),
    question(
        "DISTINCT",
        "two columns, few values",
        "SELECT DISTINCT ?d ?t { ?s ub:memberOf ?d . ?s a ?t }",
        &["SELECT ?d ?t { ?s ub:memberOf ?d . ?s a ?t }"],
        Check::Same("SELECT ?d ?t { ?s ub:memberOf ?d . ?s a ?t } GROUP BY ?d ?t"),
    ),
    question(
        "DISTINCT",
        "two columns, many values",
        "SELECT DISTINCT ?a ?c { ?s ub:advisor ?a . ?s ub:takesCourse ?c }",
        &["SELECT ?a ?c { ?s ub:advisor ?a . ?s ub:takesCourse ?c }"],
        Check::Same("SELECT ?a ?c { ?s ub:advisor ?a . ?s ub:takesCourse ?c } GROUP BY ?a ?c"),
    ),
    question(
        "ORDER BY",
        "strings, all rows",
        "SELECT ?n ?s { ?s ub:name ?n } ORDER BY ?n",
        &[NAMES],
        Check::Ascending("SELECT ?n ?s { ?s ub:name ?n }"),
    ),
    question(
        "ORDER BY",
        "two keys, all rows",
        "SELECT ?c ?s { ?s ub:takesCourse ?c } ORDER BY ?c ?s",
        &[TAKES],
        Check::Ascending("SELECT ?c ?s { ?s ub:takesCourse ?c }"),
    ),
    question(
        "ORDER BY",
        "first 10",
        "SELECT ?e ?s { ?s ub:emailAddress ?e } ORDER BY ?e ?s LIMIT 10",
        &[EMAILS],
        Check::First(10, "SELECT ?e ?s { ?s ub:emailAddress ?e }"),
    ),
    question(
        "ORDER BY",
        "first 100,000",
        "SELECT ?e ?s { ?s ub:emailAddress ?e } ORDER BY ?e ?s LIMIT 100000",
        &[EMAILS],
        Check::First(100_000, "SELECT ?e ?s { ?s ub:emailAddress ?e }"),
    ),
    question(
        "filter",
        "CONTAINS",
        "SELECT ?s ?e { ?s ub:emailAddress ?e FILTER(CONTAINS(?e, \"Student77@\")) }",
        &[EMAILS],
        Check::Same("SELECT ?s ?e { ?s ub:emailAddress ?e FILTER(REGEX(?e, \"Student77@\")) }"),
    ),
    question(
        "filter",
        "REGEX, few values",
        "SELECT ?s ?n { ?s ub:name ?n FILTER(REGEX(?n, \"^Under.*7$\")) }",
        &[NAMES],
        Check::Same(
            "SELECT ?s ?n { ?s ub:name ?n FILTER(STRSTARTS(?n, \"Under\") && STRENDS(?n, \"7\")) }",
        ),
    ),
    question(
        "filter",
        "REGEX, many values",
        "SELECT ?s ?e { ?s ub:emailAddress ?e FILTER(REGEX(?e, \"^Full.*y5[.]edu$\")) }",
        &[EMAILS],
        Check::Same(
            "SELECT ?s ?e { ?s ub:emailAddress ?e FILTER(STRSTARTS(?e, \"Full\") && STRENDS(?e, \"y5.edu\")) }",
        ),
    ),
    question(
        "filter",
        "order of strings",
        "SELECT ?s ?e { ?s ub:emailAddress ?e FILTER(?e < \"C\") }",
        &[EMAILS],
        Check::Same("SELECT ?s ?e { ?s ub:emailAddress ?e FILTER(STR(?e) < \"C\") }"),
    ),
    question(
        "filter",
        "two columns differ",
        "SELECT ?s ?a { ?s ub:advisor ?a . ?s ub:memberOf ?d . ?a ub:worksFor ?w FILTER(?d != ?w) }",
        &["SELECT ?s ?a ?d ?w { ?s ub:advisor ?a . ?s ub:memberOf ?d . ?a ub:worksFor ?w }"],
        Check::Same(
            "SELECT ?s ?a { ?s ub:advisor ?a . ?s ub:memberOf ?d . ?a ub:worksFor ?w FILTER(STR(?d) != STR(?w)) }",
        ),
    ),
    question(
        "expression",
        "arithmetic on lengths",
        "SELECT (SUM(STRLEN(?n) * 2 + 1) AS ?x) { ?s ub:name ?n }",
        &[NAMES],
        Check::Same(
            "SELECT (2 * ?l + ?k AS ?x) { SELECT (SUM(STRLEN(?n)) AS ?l) (COUNT(*) AS ?k) { ?s ub:name ?n } }",
        ),
    ),
    question(
        "expression",
        "strings made, few",
        "SELECT ?s ?m { ?s ub:name ?n BIND(CONCAT(?n, \"!\") AS ?m) }",
        &[NAMES],
        Check::Same("SELECT ?s ?m { ?s ub:name ?n BIND(REPLACE(?n, \"$\", \"!\") AS ?m) }"),
    ),
    question(
        "expression",
        "strings made, many",
        "SELECT ?s ?m { ?s ub:emailAddress ?e BIND(CONCAT(\"mailto:\", ?e) AS ?m) }",
        &[EMAILS],
        Check::Same(
            "SELECT ?s ?m { ?s ub:emailAddress ?e BIND(CONCAT(\"mail\", CONCAT(\"to:\", ?e)) AS ?m) }",
        ),
    ),
    question(
        "comparison",
        "?a = ?b",
        "SELECT ?d ?s { ?d ub:publicationAuthor ?a . ?s ub:advisor ?b FILTER(?a = ?b) }",
        &[AUTHORS, ADVISOR],
        ADVISED,
    )
    .in_sql(PAIRS_BY_TERM),
    question(
        "comparison",
        "STR(?a) = STR(?b)",
        "SELECT ?d ?s { ?d ub:publicationAuthor ?a . ?s ub:advisor ?b FILTER(STR(?a) = STR(?b)) }",
        &[AUTHORS, ADVISOR],
        ADVISED,
    )
    .in_sql("SELECT in0.c0 AS x, in1.c0 AS y FROM in0 JOIN in1 ON str(in0.c1) = str(in1.c1)"),
    question(
        "comparison",
        "?a IN (?b)",
        "SELECT ?d ?s { ?d ub:publicationAuthor ?a . ?s ub:advisor ?b FILTER(?a IN (?b)) }",
        &[AUTHORS, ADVISOR],
        ADVISED,
    )
    .in_sql(PAIRS_BY_TERM),
    question(
        "comparison",
        "LANG(?a) = LANG(?b)",
        "SELECT ?s ?k { ?s ub:emailAddress ?e VALUES (?k ?m) { (1 \"a\"@en) (2 \"b\") (3 \"c\"@de) (4 \"d\"@fr) (5 \"e\"@it) } \
         FILTER(LANG(?e) = LANG(?m)) }",
        &[EMAILS],
        Check::Same("SELECT ?s ?k { ?s ub:emailAddress ?e BIND(2 AS ?k) }"),
    )
    .in_sql("SELECT c0 AS x, k AS y FROM in0 JOIN (VALUES (1, '\"a\"@en'), (2, '\"b\"'), (3, '\"c\"@de'), (4, '\"d\"@fr'), \
         (5, '\"e\"@it')) v(k, m) ON lang(c1) = lang(m)"),
    question(
        "comparison",
        "OPTIONAL by ?a = ?b",
        "SELECT ?d ?s { ?d ub:publicationAuthor ?a OPTIONAL { ?s ub:advisor ?b FILTER(?a = ?b) } }",
        &[AUTHORS, ADVISOR],
        Check::Same("SELECT ?d ?s { ?d ub:publicationAuthor ?a OPTIONAL { ?s ub:advisor ?a } }"),
    )
    .in_sql("SELECT in0.c0 AS x, in1.c0 AS y FROM in0 LEFT JOIN in1 ON in0.c1 = in1.c1"),
    question(
        "comparison",
        "NOT EXISTS by STR",
        "SELECT ?d ?a { ?d ub:publicationAuthor ?a FILTER NOT EXISTS { ?s ub:advisor ?b FILTER(STR(?a) = STR(?b)) } }",
        &[AUTHORS, ADVISOR],
        Check::Same(
            "SELECT ?d ?a { ?d ub:publicationAuthor ?a FILTER NOT EXISTS { ?s ub:advisor ?a } }",
        ),
    )
    .in_sql("SELECT c0 AS x, c1 AS y FROM in0 WHERE NOT EXISTS (SELECT 1 FROM in1 WHERE str(in0.c1) = str(in1.c1))"),
    question(
        "comparison",
        "?a IN (?b, ?c)",
        "SELECT ?d ?s { ?d ub:publicationAuthor ?a . \
         ?s ub:teachingAssistantOf ?t ; ub:advisor ?b ; ub:memberOf ?o . ?c ub:headOf ?o FILTER(?a IN (?b, ?c)) }",
        &[AUTHORS, ABOVE],
        Check::Same(
            "SELECT ?d ?s { { ?s ub:teachingAssistantOf ?t ; ub:advisor ?b ; ub:memberOf ?o . ?c ub:headOf ?o . ?d ub:publicationAuthor ?b } \
             UNION { ?s ub:teachingAssistantOf ?t ; ub:advisor ?b ; ub:memberOf ?o . ?c ub:headOf ?o . ?d ub:publicationAuthor ?c \
             FILTER(?b != ?c) } }",
        ),
    )
    .in_sql(
        "SELECT in0.c0 AS x, in1.c0 AS y FROM in0 JOIN in1 ON in0.c1 = in1.c1 OR in0.c1 = in1.c2",
    ),
    question(
        "comparison",
        "whether EXISTS by STR",
        "SELECT ?d ?y { ?d ub:publicationAuthor ?a BIND(EXISTS { ?s ub:advisor ?b FILTER(STR(?a) = STR(?b)) } AS ?y) }",
        &[AUTHORS, ADVISOR],
        Check::Same(
            "SELECT ?d ?y { ?d ub:publicationAuthor ?a OPTIONAL { SELECT DISTINCT ?a (1 AS ?one) { ?s ub:advisor ?a } } \
             BIND(BOUND(?one) AS ?y) }",
        ),
    )
    .in_sql("SELECT c0 AS x, EXISTS (SELECT 1 FROM in1 WHERE str(in0.c1) = str(in1.c1)) AS y FROM in0"),
    question(
        "comparison",
        "?a < ?b, pairs",
        "SELECT ?x ?y { ?x ub:headOf ?d ; ub:emailAddress ?e . ?y ub:headOf ?c ; ub:emailAddress ?f FILTER(?e < ?f) }",
        &[HEADS, HEADS],
        Check::Same(
            "SELECT ?x ?y { ?x ub:headOf ?d ; ub:emailAddress ?e . ?y ub:headOf ?c ; ub:emailAddress ?f \
             FILTER(COALESCE(?e < ?f, false)) }",
        ),
    )
    .in_sql("SELECT in0.c0 AS x, in1.c0 AS y FROM in0 JOIN in1 ON str(in0.c1) < str(in1.c1)"),
    question(
        "comparison",
        "?a < ?b, EXISTS",
        "SELECT ?s ?e { ?s ub:emailAddress ?e FILTER EXISTS { ?x ub:headOf ?d ; ub:emailAddress ?f FILTER(?f < ?e) } }",
        &[EMAILS, HEADS],
        Check::Same(
            "SELECT ?s ?e { { SELECT (MIN(?f) AS ?least) { ?x ub:headOf ?d ; ub:emailAddress ?f } } \
             ?s ub:emailAddress ?e FILTER(COALESCE(?e > ?least, false)) }",
        ),
    )
    .in_sql("SELECT c0 AS x, c1 AS y FROM in0 WHERE EXISTS (SELECT 1 FROM in1 WHERE str(in1.c1) < str(in0.c1))"),
    question(
        "path",
        "+ from one end, backwards",
        "SELECT ?x { ?x ub:subOrganizationOf+ <http://www.University0.edu> }",
        &["SELECT ?x { ?x ub:subOrganizationOf ?y }"],
        Check::Same(
            "SELECT DISTINCT ?x { { ?x ub:subOrganizationOf <http://www.University0.edu> } UNION \
             { ?x ub:subOrganizationOf/ub:subOrganizationOf <http://www.University0.edu> } }",
        ),
    ),
    question(
        "path",
        "* from each row",
        "SELECT ?s ?u { ?s ub:memberOf ?d . ?d ub:subOrganizationOf* ?u }",
        &[MEMBER],
        Check::Same(
            "SELECT ?s ?u { ?s ub:memberOf ?d { SELECT DISTINCT ?d ?u { { ?x ub:memberOf ?d BIND(?d AS ?u) } UNION \
             { ?d ub:subOrganizationOf ?u } } } }",
        ),
    ),
    question(
        "path",
        "+ with both ends free",
        "SELECT ?x ?y { ?x ub:subOrganizationOf+ ?y }",
        &["SELECT ?x ?y { ?x ub:subOrganizationOf ?y }"],
        Check::Same(
            "SELECT DISTINCT ?x ?y { { ?x ub:subOrganizationOf ?y } UNION \
             { ?x ub:subOrganizationOf/ub:subOrganizationOf ?y } }",
        ),
    ),
    question(
        "path",
        "+ between both ends of each row",
        "SELECT ?s ?u { ?s ub:memberOf ?d . ?s ub:undergraduateDegreeFrom ?u . ?d ub:subOrganizationOf+ ?u }",
        &["SELECT ?s ?d ?u { ?s ub:memberOf ?d . ?s ub:undergraduateDegreeFrom ?u }"],
        Check::Same(
            "SELECT ?s ?u { ?s ub:memberOf ?d . ?s ub:undergraduateDegreeFrom ?u . ?d ub:subOrganizationOf ?u }",
        ),
    ),
    question(
        "result",
        "one predicate",
        TAKES,
        &[TAKES],
        Check::Count("SELECT (COUNT(*) AS ?n) { ?s ub:takesCourse ?c }"),
    ),
    question(
        "result",
        "types by two scans",
        TYPES,
        &[TYPES],
        Check::Count("SELECT (COUNT(*) AS ?n) { ?s a ?t }"),
    ),
];
