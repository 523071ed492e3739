//! Queries and updates that compute values much longer than their own text: long strings, many rows of them, numbers
//! with many digits, and long values that are [stored](super::data).

use super::maker::Maker;
use super::recipe::{Recipe, all};

/// Units that are repeated to make long strings.
const UNITS: [&str; 6] = [
    "aaaaaaaaaa",
    "7777777777",
    "éééééééééé",
    "\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"",
    "<&<&<&<&<&",
    "a b,c\\td\\\\",
];

/// Expressions over a long string `?w`, a long number `?d` and the row's number `?v`.
const VALUES: &str = "\
    ?w; ?w; ?w; CONCAT(?w, STR(?v)); CONCAT(?w, STR(?v)); CONCAT(?w, ?w, ?w, ?w); UCASE(?w); LCASE(?w); \
    STRLEN(?w); SUBSTR(?w, ?v); STRBEFORE(?w, \"b\"); STRAFTER(?w, \"a\"); ENCODE_FOR_URI(?w); SHA512(?w); \
    MD5(?w); REPLACE(?w, \"a\", \"bb\"); REPLACE(?w, \"(.)(.)\", \"$2$1\"); REGEX(?w, \"(a|aa)*b\"); \
    IRI(CONCAT(\"http://e/\", ?w)); STRDT(?w, <http://e/d>); STRLANG(?w, \"en\"); \
    TRIPLE(<http://e/s1>, <http://e/p1>, ?w); ?w = CONCAT(?w, STR(?v)); ?w < CONCAT(?w, STR(?v)); ?d; \
    ?d + ?v; ?d * ?d; ?d / ?v; ROUND(?d); <http://www.w3.org/2001/XMLSchema#double>(?d); STR(?d); \
    STRDT(?w, <http://www.w3.org/2001/XMLSchema#decimal>)";

impl Maker<'_> {
    /// An expression for a string of a thousand to ten million bytes.
    fn grown(&mut self) -> Recipe {
        let unit = self.rng.one(&UNITS);
        let times = 2 + self.rng.below(5);
        let tenfold = ", \".\", \"$0$0$0$0$0$0$0$0$0$0\")";
        Recipe::nested(times, "REPLACE(", all!["\"", unit, "\""], tenfold)
    }

    /// A pattern that binds `?w`, `?d` and `?v` in one row or in many rows.
    fn grown_pattern(&mut self) -> Recipe {
        let rows = match self.rng.below(5) {
            0 => "BIND(7 AS ?v) ".into(),
            1 => "?s <http://e/n> ?v . ".into(),
            2 => "?s <http://e/n> ?v FILTER(?v < 100) ".into(),
            _ => {
                let n = self.magnitude(20_000);
                all!["VALUES ?v { ", Recipe::times(n, "§", " "), " } "]
            }
        };
        let string = match self.rng.below(4) {
            0 => "?t <http://e/big> ?w . ".into(),
            _ => all!["BIND(", self.grown(), " AS ?w) "],
        };
        let digits = self.magnitude(10_000);
        let number = match self.rng.below(3) {
            0 => "?u <http://e/digits> ?d . ".into(),
            1 => all!["BIND(?v + ", Recipe::times(digits, "7", ""), ".5 AS ?d) "],
            _ => all!["BIND(", Recipe::times(digits, "7", ""), ".5 AS ?d) "],
        };
        all![rows, string, number]
    }

    fn grown_value(&mut self) -> Recipe {
        self.rng.part(VALUES).into()
    }

    /// A query that computes long values.
    pub fn grown_query(&mut self) -> Recipe {
        let pattern = self.grown_pattern();
        let value = self.grown_value();
        match self.rng.below(10) {
            0..3 => {
                let n = self.magnitude(3000);
                let columns = Recipe::times(n, all!["(", value, " AS ?c§)"], " ");
                all!["SELECT ", columns, " { ", pattern, "}"]
            }
            3..6 => {
                let name = self
                    .rng
                    .part("SUM; AVG; MIN; MAX; SAMPLE; GROUP_CONCAT; GROUP_CONCAT; COUNT");
                let distinct = self.rng.one(&["", "", "DISTINCT "]);
                let by = self.rng.one(&["", "", " GROUP BY ?v"]);
                all![
                    "SELECT (",
                    name,
                    "(",
                    distinct,
                    value,
                    ") AS ?c) { ",
                    pattern,
                    "}",
                    by
                ]
            }
            6 => all!["SELECT ?v { ", pattern, "} ORDER BY (", value, ")"],
            7 => all!["SELECT DISTINCT (", value, " AS ?c) { ", pattern, "}"],
            8 => all!["SELECT ?v { ", pattern, "FILTER(", value, ") }"],
            _ => {
                let n = self.magnitude(300);
                let objects = Recipe::times(n, "?c", " , ");
                let bind = all!["BIND(", value, " AS ?c) "];
                all![
                    "CONSTRUCT { <http://e/s1> <http://e/p1> ",
                    objects,
                    " } { ",
                    pattern,
                    bind,
                    "}"
                ]
            }
        }
    }

    /// An update that computes long values.
    pub fn grown_update(&mut self) -> Recipe {
        let pattern = self.grown_pattern();
        let value = self.grown_value();
        let bind = all!["BIND(", value, " AS ?c) "];
        match self.rng.below(3) {
            0 => all![
                "DELETE { ?x <http://e/grown> ?c } WHERE { ?x <http://e/n> ?v . ",
                pattern,
                bind,
                "}"
            ],
            _ => all![
                "INSERT { <http://e/s1> <http://e/grown> ?c } WHERE { ",
                pattern,
                bind,
                "}"
            ],
        }
    }
}
