//! The auditor's texts: ones with long values, and those of test suites, benchmarks and test cases.

use jindou_testing::attack::Recipe;
use jindou_testing::shared_too;
use std::fmt::Write as _;
use std::path::Path;

/// An expression whose value is a string of ten million bytes.
fn long() -> String {
    let mut text = "\"aaaaaaaaaa\"".to_owned();
    for _ in 0..6 {
        text = format!("REPLACE({text},\"a\",\"aaaaaaaaaa\")");
    }
    text
}

/// Expressions with `?x`, a long string; `?d`, a long number; and `?v`, a short string.
const EXPRESSIONS: &[&str] = &[
    "STRLEN(?x)",
    "UCASE(?x)",
    "LCASE(?x)",
    "SUBSTR(?x, 3)",
    "SUBSTR(?x, 9000000, 10)",
    "STRSTARTS(?x, \"b\")",
    "STRENDS(?x, \"b\")",
    "CONTAINS(?x, \"ab\")",
    "STRBEFORE(?x, \"b\")",
    "STRAFTER(?x, \"b\")",
    "STRBEFORE(?x, ?x)",
    "ENCODE_FOR_URI(?x)",
    "ENCODE_FOR_URI(REPLACE(?x, \"a\", \"ä\"))",
    "CONCAT(?x, ?x, ?x)",
    "MD5(?x)",
    "SHA1(?x)",
    "SHA256(?x)",
    "SHA384(?x)",
    "SHA512(?x)",
    "REGEX(?x, \"b$\")",
    "REGEX(?x, \"(a|aa)+b\")",
    "REGEX(?x, \"(a*)b\\\\1\")",
    "REGEX(?x, ?x)",
    "REPLACE(?x, \"a\", \"\")",
    "REPLACE(?x, \"a\", \"bb\")",
    "REPLACE(?x, \"a{1000}\", \"$0$0\")",
    "REPLACE(?x, \"(a)(a)\", \"$2\", \"i\")",
    "STR(?x)",
    "STRDT(?x, <http://e/t>)",
    "STRDT(?x, <http://www.w3.org/2001/XMLSchema#integer>)",
    "STRLANG(?x, \"en\")",
    "IRI(?x)",
    "IRI(CONCAT(\"http://e/\", ?x))",
    "BNODE(?x)",
    "?x = ?x",
    "?x < CONCAT(?x, \"b\")",
    "?x != CONCAT(?x, \"b\")",
    "?x IN (\"a\", CONCAT(?x, \"b\"), ?x)",
    "sameTerm(?x, CONCAT(?x, \"\"))",
    "LANGMATCHES(?x, \"*\")",
    "IF(?x, 1, 2)",
    "COALESCE(?u, ?x)",
    "!?x",
    "?x && ?x",
    "<http://www.w3.org/2001/XMLSchema#integer>(?x)",
    "<http://www.w3.org/2001/XMLSchema#double>(?x)",
    "<http://www.w3.org/2001/XMLSchema#dateTime>(?x)",
    "<http://www.w3.org/2001/XMLSchema#boolean>(?x)",
    "<http://www.w3.org/2001/XMLSchema#string>(?x)",
    "<http://www.w3.org/2001/XMLSchema#dayTimeDuration>(?x)",
    "TRIPLE(<http://e/s>, <http://e/p>, ?x)",
    "STR(OBJECT(TRIPLE(<http://e/s>, <http://e/p>, ?x)))",
    "DATATYPE(?x)",
    "LANG(?x)",
    "isNUMERIC(STRDT(?x, <http://www.w3.org/2001/XMLSchema#decimal>))",
    "?d + ?v",
    "?d - ?d",
    "?d * ?d",
    "?d / ?d",
    "?d / ?v",
    "-?d",
    "ABS(?d)",
    "ROUND(?d)",
    "CEIL(?d)",
    "FLOOR(?d)",
    "?d = ?d + 1",
    "?d < ?v",
    "?d > ?d * 2",
    "STR(?d)",
    "<http://www.w3.org/2001/XMLSchema#integer>(?d)",
    "<http://www.w3.org/2001/XMLSchema#double>(?d)",
    "<http://www.w3.org/2001/XMLSchema#string>(?d)",
    "<http://www.w3.org/2001/XMLSchema#float>(?d)",
    "SUBSTR(?x, ?d)",
    "?d IN (1, 2.5, ?v, ?d)",
];

/// Aggregates of these variables.
const AGGREGATES: &[&str] = &[
    "GROUP_CONCAT(?x)",
    "GROUP_CONCAT(DISTINCT ?y)",
    "GROUP_CONCAT(?v; SEPARATOR = \"§\")",
    "SAMPLE(?y)",
    "MIN(?y)",
    "MAX(?y)",
    "COUNT(DISTINCT ?y)",
    "SUM(?d)",
    "AVG(?d)",
    "MIN(?d)",
    "MAX(?d)",
    "SUM(?e)",
    "AVG(?e)",
    "MIN(?e)",
    "MAX(?e)",
    "GROUP_CONCAT(?d)",
    "COUNT(DISTINCT *)",
];

/// Other queries and updates: each line has a name and a recipe in the notation of `jindou_testing::attack::Recipe`.
const SHAPES: &str = include_str!("shapes.txt");

/// A text and its name.
pub struct Text {
    pub name: String,
    pub text: String,
}

impl Text {
    fn new(name: String, text: &str) -> Self {
        let bind = format!("BIND($long AS ?x) BIND({}.5 AS ?d)", "7".repeat(9000));
        let values = (0..3000).fold(String::new(), |all, i| all + &format!("{i} "));
        let text = text
            .replace("$stored", "?s <http://e/big> ?x . BIND(STR(?s) AS ?v)")
            .replace("$values", &format!("VALUES ?v {{ {values}}}"))
            .replace("$bind", &bind)
            .replace("$long", &long());
        Self { name, text }
    }

    /// True if the answer is requested in every format.
    pub fn is_for_every_format(&self) -> bool {
        ["wide", "stored", "construct", "describe"]
            .iter()
            .any(|start| self.name.starts_with(start))
    }

    pub fn is_graph(&self) -> bool {
        self.name.starts_with("construct") || self.name.starts_with("describe")
    }

    pub fn is_update(&self) -> bool {
        self.name.starts_with("update")
    }
}

/// All texts made from the lists in this file.
pub fn listed() -> Vec<Text> {
    let mut all = vec![];
    let mut add = |name: String, text: String| all.push(Text::new(name, &text));
    for e in EXPRESSIONS {
        add(
            format!("one {e}"),
            format!("SELECT ({e} AS ?r) {{ BIND(7 AS ?v) $bind }}"),
        );
        add(
            format!("many {e}"),
            format!("SELECT (COUNT({e}) AS ?r) {{ $values $bind }}"),
        );
        if e.contains("?x") {
            add(
                format!("stored {e}"),
                format!("SELECT ({e} AS ?r) {{ $stored }}"),
            );
            add(
                format!("filter {e}"),
                format!("SELECT ?s {{ $stored FILTER({e}) }}"),
            );
        }
    }
    for aggregate in AGGREGATES {
        let a = aggregate.replace('§', &"x".repeat(100_000));
        let more = "BIND(CONCAT(SUBSTR(?x, 1, 50000), STR(?v)) AS ?y) BIND(?d + ?v AS ?e)";
        for by in ["", " GROUP BY ?v"] {
            let text = format!("SELECT ({a} AS ?r) {{ $values $bind {more} }}{by}");
            add(format!("aggregate {aggregate}{by}"), text);
        }
        let a = a.replace("?y", "?x");
        let text = format!("SELECT ({a} AS ?r) {{ $stored . ?t <http://e/n> ?n }}");
        add(format!("aggregate stored {aggregate}"), text);
    }
    for line in SHAPES.lines() {
        let (name, recipe) = line.split_once(": ").expect("a name");
        let recipe: Recipe = recipe.parse().expect(recipe);
        add(name.to_owned(), recipe.text(16 << 20));
    }
    all
}

/// Statements whose literals have two megabytes, some of them of characters that are escaped in answers.
pub fn literals() -> String {
    (0..30).fold(String::new(), |mut all, i| {
        let text = ["y", "é", "\\\"", "\\n", "<", "\\u0001"][i % 6];
        let _ = writeln!(
            all,
            "<http://e/s{i}> <http://e/big> \"{}{i}\" .",
            text.repeat(2_000_000 / text.len())
        );
        all
    })
}

/// Queries and updates of the W3C's test suites, the benchmarks and this project's tests; `true` marks an update.
pub fn corpus() -> Vec<(bool, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut left = vec![root.join("crates/jindou/tests/cases")];
    left.extend(
        ["w3c/sparql", "workloads"]
            .iter()
            .filter_map(|part| shared_too(part)),
    );
    let mut texts = vec![];
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                left.push(path);
                continue;
            }
            let ending = path
                .extension()
                .and_then(|e| e.to_str())
                .unwrap_or_default()
                .to_owned();
            let Ok(text) = std::fs::read_to_string(&path) else {
                continue;
            };
            match ending.as_str() {
                "rq" | "sparql" | "txt" => texts.push((false, text)),
                "ru" => texts.push((true, text)),
                "test" => texts.extend(text.split("\n-- ").filter_map(|part| {
                    let (kind, text) = part.split_once('\n')?;
                    let text = text.split("\n== ").next()?;
                    matches!(kind, "query" | "update").then(|| (kind == "update", text.to_owned()))
                })),
                _ => {}
            }
        }
    }
    texts
}
