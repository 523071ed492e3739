//! Examples from the specifications, and expected results from the W3C's tests.

use super::{evaluate, same};
use oxrdf::Term;
use spargebra::SparqlParser;
use spargebra::algebra::{Expression, GraphPattern};
use std::str::FromStr;

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

fn parsed(text: &str) -> Expression {
    let query =
        format!("PREFIX xsd: <{XSD}> PREFIX e: <http://e/> SELECT ({text} AS ?result) {{}}");
    let query = SparqlParser::new()
        .parse_query(&query)
        .unwrap_or_else(|e| panic!("{text}: {e}"));
    let spargebra::Query::Select { pattern, .. } = query else {
        panic!("no SELECT");
    };
    let GraphPattern::Project { inner, .. } = pattern else {
        panic!("no projection");
    };
    let GraphPattern::Extend { expression, .. } = *inner else {
        panic!("no expression");
    };
    expression
}

/// Parses a term in Turtle's syntax, with `xsd:` as prefix.
fn term(text: &str) -> Term {
    let text = match text.split_once("^^xsd:") {
        Some((form, local)) => format!("{form}^^<{XSD}{local}>"),
        None => match text {
            "true" | "false" => format!("\"{text}\"^^<{XSD}boolean>"),
            t if t.starts_with(['"', '<', '_']) => t.to_owned(),
            t if t.contains(['e', 'E']) => format!("\"{t}\"^^<{XSD}double>"),
            t if t.contains('.') => format!("\"{t}\"^^<{XSD}decimal>"),
            t => format!("\"{t}\"^^<{XSD}integer>"),
        },
    };
    Term::from_str(&text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn examples_have_their_values() {
    let lines = include_str!("examples.txt").lines();
    for line in lines.filter(|l| !l.is_empty() && !l.starts_with("# ")) {
        let (expression, want) = line.split_once(" => ").expect("an arrow");
        let outcome = evaluate(&parsed(expression), &|_| None);
        let got = outcome.value.as_ref();
        let right = match want {
            "error" => got.is_none(),
            want => got.is_some_and(|v| same(&term(want), v)),
        };
        assert!(right, "{expression} is {got:?}, not {want}");
    }
}

/// Converts days to dates and back, over eight centuries that include the year 0.
#[test]
fn every_day_has_one_date() {
    use super::temporal::{Temporal, days_in};
    let mut last = None;
    for year in (-401..=401).chain([9999, 10_000, 99_999]) {
        let sign = if year < 0 { "-" } else { "" };
        for month in 1..=12 {
            for day in 1..=days_in(year, month) {
                let text = format!("{sign}{:04}-{month:02}-{day:02}", i64::abs(year));
                let t = Temporal::parse(&text, "date").expect("a date");
                assert_eq!(t.text(), text);
                if (-401..=401).contains(&year) {
                    let days = (t.local
                        / num_rational::BigRational::from(num_bigint::BigInt::from(86_400)))
                    .to_integer();
                    if let Some(last) = last {
                        assert_eq!(&days - 1, last, "{text}");
                    }
                    last = Some(days);
                }
            }
        }
    }
}
