//! One expression has one value: wherever it stands, and wherever its terms are (in the base, in the tail that updates bring, made
//! by the query), before and after merging and reclustering.

use jindou::testing::load_nquads;
use jindou::{
    Access, Database, Durability, Error, MergeOptions, OpenOptions, Progress, QueryOptions,
    ReclusterOptions, UpdateOptions,
};

const PREFIXES: &str = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> ";

fn update(db: &Database, text: &str) {
    let options = UpdateOptions::default().with_threads(1);
    db.update(&format!("{PREFIXES}{text}"), &options)
        .expect(text);
}

/// Rows as sorted lines of terms; `-` for unbound.
fn rows(db: &Database, query: &str) -> Vec<String> {
    let answer = db
        .query(&format!("{PREFIXES}{query}"))
        .unwrap_or_else(|e| panic!("{query}: {e}"));
    let mut out: Vec<String> = answer
        .solutions()
        .iter()
        .map(|row| {
            let cells = row.iter().map(|t| match t {
                Some(t) => t.to_string(),
                None => "-".to_owned(),
            });
            cells.collect::<Vec<_>>().join(" ")
        })
        .collect();
    out.sort();
    out
}

/// Values of each type in ascending order; those after one `|` are equal.
const ASCENDING: [(&str, &str); 14] = [
    (
        "date",
        "-0044-03-15 2019-12-31 2020-01-01+10:00 2020-01-01|2020-01-01Z 2020-01-01-10:00 12020-01-01",
    ),
    (
        "dateTime",
        "2019-12-31T23:59:59.999Z 2020-01-01T00:00:00|2019-12-31T24:00:00Z|2020-01-01T01:00:00+01:00 2020-01-01T00:00:00.000000000000000001",
    ),
    (
        "time",
        "24:00:00|00:00:00Z 01:00:00 09:00:00-05:00|14:00:00Z",
    ),
    ("gYear", "-0001 0000 1999 2020|2020Z 12020"),
    ("gYearMonth", "1999-12 2020-01|2020-01Z 2020-02"),
    ("gMonth", "--01|--01Z --12"),
    ("gMonthDay", "--02-28 --02-29 --12-31"),
    ("gDay", "---01 ---31"),
    (
        "dayTimeDuration",
        "-P1D PT0S|P0D PT24H|P1D P1DT0.000000000000000001S",
    ),
    ("yearMonthDuration", "-P1Y P0M P12M|P1Y P13M"),
    (
        "integer",
        "-123456789012345678901234567890 -1 0 01|1|+1 9223372036854775807 9223372036854775808 123456789012345678901234567890",
    ),
    (
        "decimal",
        "-1.00000000000000000000000001 -1|-1.0 0.12345678901234567890 0.12345678901234567891 123456789012345678901234567890.5",
    ),
    ("double", "-INF -1e300 -0|0 1e-320 1|1.0E0 INF|1E400"),
    ("boolean", "false|0 true|1"),
];

/// Each value with its number in the order.
fn values(ascending: &str) -> Vec<(usize, String)> {
    ascending
        .split(' ')
        .enumerate()
        .flat_map(|(n, equal)| equal.split('|').map(move |v| (n, v.to_owned())))
        .collect()
}

fn check(db: &Database, when: &str) {
    for (datatype, ascending) in ASCENDING {
        let all = values(ascending);
        let pairs = |keep: fn(usize, usize) -> bool| {
            let mut out = vec![];
            for (m, a) in &all {
                for (n, b) in &all {
                    if keep(*m, *n) {
                        out.push(format!("\"{a}\" \"{b}\""));
                    }
                }
            }
            out.sort();
            out
        };
        let of = |v: &str| format!("?s{v} :{datatype} {v}");
        for (op, keep) in [
            ("<", (|m, n| m < n) as fn(usize, usize) -> bool),
            ("<=", |m, n| m <= n),
            (">", |m, n| m > n),
            (">=", |m, n| m >= n),
            ("=", |m, n| m == n),
            ("!=", |m, n| m != n),
        ] {
            let want = pairs(keep);
            let (x, y) = ("?s1 :T ?x", "?s2 :T ?y");
            for query in [
                // Two columns; a value of an expression; in an IF; negated.
                format!("{x} . {y} FILTER(?x {op} ?y)"),
                format!("{x} . {y} BIND(?x {op} ?y AS ?b) FILTER(?b)"),
                format!("{x} . {y} FILTER(IF(?x {op} ?y, 1, 0) = 1)"),
                format!("{x} . {y} FILTER(!(!(?x {op} ?y)))"),
                format!(
                    "{x} {{ {y} }} OPTIONAL {{ ?none :none ?z }} FILTER(COALESCE(?z, ?x) {op} ?y)"
                ),
            ] {
                let query = format!("SELECT (STR(?x) AS ?a) (STR(?y) AS ?c) {{ {query} }}")
                    .replace(":T", &format!(":{datatype}"));
                assert_eq!(rows(db, &query), want, "{when}: {query}");
            }
            // A constant, and inline data.
            for (_, b) in &all {
                let want: Vec<&String> = want
                    .iter()
                    .filter(|w| w.ends_with(&format!(" \"{b}\"")))
                    .collect();
                let constant = format!("\"{b}\"^^xsd:{datatype}");
                for query in [
                    format!("?s :{datatype} ?x FILTER(?x {op} {constant})"),
                    format!("?s :{datatype} ?x VALUES ?y {{ {constant} }} FILTER(?x {op} ?y)"),
                    format!(
                        "{{ SELECT ?x {{ ?s :{datatype} ?x }} GROUP BY ?x HAVING(?x {op} {constant}) }}"
                    ),
                ] {
                    let query = format!("SELECT (STR(?x) AS ?a) (\"{b}\" AS ?c) {{ {query} }}");
                    assert_eq!(
                        rows(db, &query).iter().collect::<Vec<_>>(),
                        want,
                        "{when}: {query}"
                    );
                }
            }
        }
        // ORDER BY, MIN and MAX.
        let query = format!(
            "{PREFIXES}SELECT ?x {{ {} }} ORDER BY ?x",
            of("?x").replace("?s?x", "?s")
        );
        let answer = db.query(&query).unwrap();
        let places: Vec<usize> = answer
            .solutions()
            .iter()
            .map(|row| {
                let Some(Some(oxrdf::Term::Literal(l))) = row.first() else {
                    panic!("{query}")
                };
                all.iter().find(|v| v.1 == l.value()).expect("a value").0
            })
            .collect();
        assert!(
            places.is_sorted() && places.len() == all.len(),
            "{when}: {datatype}: {places:?}"
        );
        let query =
            format!("SELECT (STR(MIN(?x)) AS ?a) (STR(MAX(?x)) AS ?b) {{ ?s :{datatype} ?x }}");
        let ends = rows(db, &query);
        let (first, last) = (all[0].0, all[all.len() - 1].0);
        let fits = all.iter().filter(|v| v.0 == first).any(|a| {
            let mut ends_with = all.iter().filter(|v| v.0 == last);
            ends_with.any(|b| ends == [format!("\"{}\" \"{}\"", a.1, b.1)])
        });
        assert!(fits, "{when}: {query}: {ends:?}");
    }
}

/// Every third value is in the base from the beginning, another third comes by an update before the merge, the rest after it.
#[test]
fn values_compare_wherever_their_terms_are() {
    let part = |k: usize| {
        let mut out = String::new();
        for (datatype, ascending) in ASCENDING {
            for (i, (_, v)) in values(ascending).iter().enumerate() {
                if i % 3 == k {
                    out += &format!(
                        "<http://e/s{i}> <http://e/{datatype}> \"{v}\"^^<http://www.w3.org/2001/XMLSchema#{datatype}> .\n"
                    );
                }
            }
        }
        out
    };
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    load_nquads(&store, &part(0)).unwrap();
    let access = Access::Write;
    let durability = Durability::Batch;
    let db = Database::open_with(
        &store,
        &OpenOptions::default()
            .with_access(access)
            .with_durability(durability),
    )
    .unwrap();
    update(&db, &format!("INSERT DATA {{ {} }}", part(1)));
    db.merge(&MergeOptions::default(), &Progress::default())
        .unwrap();
    update(&db, &format!("INSERT DATA {{ {} }}", part(2)));
    check(&db, "in base, merged tail and tail");
    db.merge(&MergeOptions::default(), &Progress::default())
        .unwrap();
    let options = ReclusterOptions::default()
        .with_memory(64 << 20)
        .with_threads(2);
    db.recluster(&options, &Progress::default()).unwrap();
    check(&db, "reclustered");
}

fn one(db: &Database, expression: &str) -> String {
    rows(db, &format!("SELECT ({expression} AS ?v) {{}}")).remove(0)
}

/// Values by the specification where libraries give others.
#[test]
fn expressions_have_the_specified_values() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    load_nquads(&store, "<http://e/s> <http://e/p> <http://e/o> .\n").unwrap();
    let db = Database::open(&store).unwrap();
    let x = |text: &str, datatype: &str| {
        format!("\"{text}\"^^<http://www.w3.org/2001/XMLSchema#{datatype}>")
    };
    for (expression, want) in [
        ("xsd:integer(\"1.0E6\"^^xsd:float)", x("1000000", "integer")),
        ("xsd:integer(1e15)", x("1000000000000000", "integer")),
        ("xsd:decimal(1234567.25e0)", x("1234567.25", "decimal")),
        ("0/1.1", x("0", "decimal")),
        ("0/0.5", x("0", "decimal")),
        ("0.0/7.25", x("0", "decimal")),
        ("1/0", "-".into()),
        ("1/0e0", x("INF", "double")),
        ("true > false", x("true", "boolean")),
        ("1 < 0e0/0", x("false", "boolean")),
        ("0e0/0 = 0e0/0", x("false", "boolean")),
        ("0e0/0 != 0e0/0", x("true", "boolean")),
        ("-(0e0/0) <= 0e0/0", x("false", "boolean")),
        ("!\"x\"@en", x("false", "boolean")),
        ("!\"\"@en", x("true", "boolean")),
        ("!\"x\"^^xsd:integer", x("true", "boolean")),
        ("REPLACE(\"abc\", \"\", \"z\")", "-".into()),
        ("REPLACE(\"abc\", \"(b)\", \"[$1$1]\")", "\"a[bb]c\"".into()),
        ("REPLACE(\"abc\", \"b\", \"$\")", "-".into()),
        ("REPLACE(\"abc\", \"b\", \"\\\\$\")", "\"a$c\"".into()),
        (
            "9223372036854775807 + 1",
            x("9223372036854775808", "integer"),
        ),
        (
            "123456789012345678901234567890 * 2",
            x("246913578024691357802469135780", "integer"),
        ),
        (
            "xsd:integer(\"123456789012345678901234567890\") - 1",
            x("123456789012345678901234567889", "integer"),
        ),
        (
            "0.1234567890123456789 + 0.0000000000000000001",
            x("0.123456789012345679", "decimal"),
        ),
        ("xsd:string(\"01\"^^xsd:integer)", "\"1\"".into()),
        ("STR(\"01\"^^xsd:integer)", "\"01\"".into()),
        ("xsd:string(1e6 + 0)", "\"1.0E6\"".into()),
        ("xsd:integer(\" 7 \")", x("7", "integer")),
        ("xsd:byte(300)", "-".into()),
        ("isNumeric(\"300\"^^xsd:byte)", x("false", "boolean")),
        (
            "xsd:date(\"2011-01-10T14:45:13Z\"^^xsd:dateTime)",
            x("2011-01-10Z", "date"),
        ),
        (
            "xsd:dateTime(\"2011-01-10\"^^xsd:date)",
            x("2011-01-10T00:00:00", "dateTime"),
        ),
        ("YEAR(\"2011-01-10\"^^xsd:date)", x("2011", "integer")),
        ("HOURS(\"24:00:00\"^^xsd:time)", x("0", "integer")),
        (
            "SECONDS(\"2011-01-10T14:45:13.815-05:00\"^^xsd:dateTime)",
            x("13.815", "decimal"),
        ),
        (
            "TIMEZONE(\"2011-01-10-05:00\"^^xsd:date)",
            x("-PT5H", "dayTimeDuration"),
        ),
        ("TIMEZONE(\"2011-01-10\"^^xsd:date)", "-".into()),
        ("TZ(\"2011-01-10\"^^xsd:date)", "\"\"".into()),
        (
            "\"2011-01-10\"^^xsd:date - \"2010-12-31\"^^xsd:date",
            x("P10D", "dayTimeDuration"),
        ),
        (
            "\"2000-10-30T06:12:00-05:00\"^^xsd:dateTime - \"1999-11-28T09:00:00Z\"^^xsd:dateTime",
            x("P337DT2H12M", "dayTimeDuration"),
        ),
        (
            "\"2011-01-31\"^^xsd:date + \"P1M\"^^xsd:yearMonthDuration",
            x("2011-02-28", "date"),
        ),
        (
            "\"11:00:00\"^^xsd:time + \"PT25H\"^^xsd:dayTimeDuration",
            x("12:00:00", "time"),
        ),
        (
            "\"P1D\"^^xsd:dayTimeDuration * 1.5",
            x("P1DT12H", "dayTimeDuration"),
        ),
        (
            "\"P3D\"^^xsd:dayTimeDuration / \"PT12H\"^^xsd:dayTimeDuration",
            x("6", "decimal"),
        ),
        (
            "ADJUST(\"2002-03-07T10:00:00-07:00\"^^xsd:dateTime, \"-PT10H\"^^xsd:dayTimeDuration)",
            x("2002-03-07T07:00:00-10:00", "dateTime"),
        ),
        (
            "NOW() - \"P1D\"^^xsd:dayTimeDuration < NOW()",
            x("true", "boolean"),
        ),
        ("NOW() = NOW()", x("true", "boolean")),
        (
            "\"2011\"^^xsd:gYear < \"2012\"^^xsd:gYear",
            x("true", "boolean"),
        ),
        ("\"a\"@EN = \"a\"@en", x("true", "boolean")),
        ("\"x\"^^xsd:integer = \"y\"^^xsd:integer", "-".into()),
        (
            "\"x\"^^xsd:integer = \"x\"^^xsd:integer",
            x("true", "boolean"),
        ),
        ("<http://e/a> <= <http://e/a>", "-".into()),
        (
            "TRIPLE(:s, :p, 1) = TRIPLE(:s, :p, 1.0)",
            x("true", "boolean"),
        ),
        (
            "SHA1(\"abc\")",
            "\"a9993e364706816aba3e25717850c26c9cd0d89d\"".into(),
        ),
        (
            "MD5(\"abc\")",
            "\"900150983cd24fb0d6963f7d28e17f72\"".into(),
        ),
        (
            "SHA256(\"abc\")",
            "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"".into(),
        ),
        (
            "ENCODE_FOR_URI(\"Los Angeles~é\")",
            "\"Los%20Angeles~%C3%A9\"".into(),
        ),
        ("STRLANG(\"chat\", \"FR\")", "\"chat\"@fr".into()),
        ("STRLANG(\"chat\", \"-\")", "-".into()),
        ("STRDT(\"1\", xsd:integer)", x("1", "integer")),
        ("STRLEN(STRUUID())", x("36", "integer")),
        ("isIRI(UUID())", x("true", "boolean")),
        ("ROUND(-2.5)", x("-2", "decimal")),
        ("ROUND(2.5e0)", x("3", "double")),
        (
            "ABS(-9223372036854775808)",
            x("9223372036854775808", "integer"),
        ),
    ] {
        // Computed at once, over a row, and below an aggregate.
        assert_eq!(one(&db, expression), want, "{expression}");
        let over = format!("SELECT ?v {{ ?s :p ?o BIND({expression} AS ?v) }}");
        assert_eq!(rows(&db, &over), [want.as_str()], "{over}");
        let below = format!(
            "SELECT (SAMPLE(?w) AS ?v) {{ ?s :p ?o BIND({expression} AS ?w) }} GROUP BY ?s"
        );
        assert_eq!(rows(&db, &below), [want.as_str()], "{below}");
    }
    let sums = [
        (
            "SUM(?x)",
            "9223372036854775807 9223372036854775807 1",
            x("18446744073709551615", "integer"),
        ),
        (
            "AVG(?x)",
            "9223372036854775807 9223372036854775807",
            x("9223372036854775807", "decimal"),
        ),
        (
            "SUM(?x)",
            "0.1 0.00000000000000000001",
            x("0.10000000000000000001", "decimal"),
        ),
        ("SUM(?x)", "\"P1D\"^^xsd:dayTimeDuration 1", "-".into()),
    ];
    for (call, data, want) in sums {
        let query = format!(
            "SELECT ({call} AS ?v) {{ VALUES (?n ?x) {{ {} }} }}",
            data.split(' ')
                .enumerate()
                .map(|(n, v)| format!("({n} {v})"))
                .collect::<String>()
        );
        assert_eq!(rows(&db, &query), [want], "{query}");
    }
    // A blank node of a label is one a solution.
    let query = "SELECT (COUNT(DISTINCT ?a) AS ?n) (COUNT(DISTINCT ?b) AS ?m) (SUM(IF(?a = ?b, 1, 0)) AS ?k) \
                 { VALUES ?x { 1 2 3 } BIND(BNODE(\"l\") AS ?a) BIND(BNODE(\"l\") AS ?b) }";
    let three = x("3", "integer");
    assert_eq!(rows(&db, query), [format!("{three} {three} {three}")]);
}

#[test]
fn a_function_that_nobody_knows_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    load_nquads(&store, "<http://e/s> <http://e/p> <http://e/o> .\n").unwrap();
    let db = Database::open(&store).unwrap();
    for query in [
        "SELECT (<http://e/f>(1) AS ?x) {}",
        "SELECT * { ?s ?p ?o FILTER(<http://e/f>(?o)) }",
        "SELECT * { ?s ?p ?o FILTER NOT EXISTS { ?o ?q ?s BIND(<http://e/f>(?o) AS ?z) } }",
        "SELECT * { ?s ?p ?o } ORDER BY <http://e/f>(?o)",
    ] {
        match db.plan(query, &QueryOptions::default()).map(drop) {
            Err(Error::Sparql(faults)) => {
                let message = faults.to_string();
                assert!(message.contains("<http://e/f>"), "{message}")
            }
            other => panic!("{query}: {other:?}"),
        }
    }
    assert!(
        db.query("SELECT (<http://www.w3.org/2001/XMLSchema#int>(1) AS ?x) {}")
            .is_ok()
    );
}
