//! Tests that comparisons have the same result at every position of a query, and whether terms are in the base, in the
//! tail, or computed by the query; also after merging and reclustering.

use jindou::testing::load_nquads;
use jindou::{
    Access, Database, Durability, MergeOptions, OpenOptions, Progress, ReclusterOptions,
    UpdateOptions,
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

/// Values of each datatype in ascending order; values in a group separated by `|` from the others are equal.
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

/// Each value with the number of its group; equal values have equal numbers.
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
                // Comparisons of two columns in a FILTER; through BIND; inside an IF; negated twice; and with COALESCE.
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
            // Comparisons with a constant, and with VALUES.
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

/// A third of the values is loaded, a third is inserted before a merge, and a third after it.
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
