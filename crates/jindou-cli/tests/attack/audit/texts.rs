//! The auditor's texts: ones with long values, and those of test suites, benchmarks and test cases.

use jindou_testing::attack::Recipe;
use jindou_testing::{files_below, shared_too};
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
const EXPRESSIONS: &str = include_str!("expressions.txt");

/// Aggregates of these variables.
const AGGREGATES: &str = include_str!("aggregates.txt");

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
    for e in EXPRESSIONS.lines() {
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
    for aggregate in AGGREGATES.lines() {
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
    let suites = ["w3c/sparql", "workloads"]
        .into_iter()
        .filter_map(shared_too);
    let folders = std::iter::once(root.join("crates/jindou/tests/cases")).chain(suites);
    let mut texts = vec![];
    for path in folders.flat_map(|folder| files_below(&folder)) {
        let ending = path.extension().and_then(|e| e.to_str());
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        match ending.unwrap_or_default() {
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
    texts
}
