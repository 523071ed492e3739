//! Random expressions: comparisons, calls, lists and EXISTS, in sequence and nested.

use super::maker::Maker;
use super::recipe::{Recipe, all};

/// Operators and calls: the text before and after their argument.
const CALLS: [(&str, &str); 24] = [
    ("(", ")"),
    ("!", ""),
    ("- ", ""),
    ("STR(", ")"),
    ("(1 + ", ")"),
    ("(?o * ", ")"),
    ("(? n = ", ")"),
    ("(1 < ", ")"),
    ("IF(?n, 1, ", ")"),
    ("IF(", ", ?s, 2)"),
    ("COALESCE(?u, ", ")"),
    ("CONCAT(\"a\", ", ")"),
    ("REGEX(", ", \"a\")"),
    ("REPLACE(", ", \"a\", \"b\")"),
    ("SUBSTR(", ", 1)"),
    ("IRI(", ")"),
    ("STRDT(STR(", "), <http://e/d>)"),
    ("<http://www.w3.org/2001/XMLSchema#integer>(", ")"),
    ("(1 IN (2, ", "))"),
    ("TRIPLE(?s, <http://e/p>, ", ")"),
    ("NOT EXISTS { ?s ?p ?o FILTER(", ") }"),
    (
        "EXISTS { { SELECT ?s { ?s <http://e/p1> ?o FILTER(",
        ") } } }",
    ),
    ("isBlank(", ")"),
    ("sameTerm(?o, ", ")"),
];

impl Maker<'_> {
    /// An expression of about `bytes` bytes.
    pub fn expression(&mut self, bytes: usize) -> Recipe {
        if self.is_small(bytes) {
            return self.comparison();
        }
        match self.rng.below(20) {
            0..5 => self.chain(bytes),
            5..7 => self.list(bytes),
            7..9 => {
                let (open, close) = self.rng.one(&CALLS);
                let open = open.replace("? n", "?n");
                let (a, b) = (bytes / 10 * 9, bytes / 10);
                let (a, b) = if self.rng.chance(20) { (b, a) } else { (a, b) };
                let inner = self.deeper(|m| m.expression(b));
                self.deep(a, open, inner, close)
            }
            9..11 => {
                let not = self.rng.one(&["", "NOT "]);
                let group = self.deeper(|m| m.group(bytes));
                all![not, "EXISTS ", group]
            }
            11 => {
                let name = self
                    .rng
                    .one(&["COALESCE", "COALESCE", "CONCAT", "<http://e/f>"]);
                all![name, "(", self.many(bytes, ", ", Self::value), ")"]
            }
            12 => self.regular(bytes),
            13 => {
                let parts = self.split(bytes, 2);
                let operator = self.rng.one(&[" = ", " != ", " < ", " + ", " && ", " || "]);
                let a = self.deeper(|m| m.expression(parts[0]));
                let b = self.deeper(|m| m.expression(parts[1]));
                all!["(", a, operator, b, ")"]
            }
            14 => all!["?o = ", self.term(bytes, true)],
            15 => all!["IRI(", self.term(bytes, true), ") = ?s"],
            // CONCAT may get arguments that are not strings, since only the length of the text matters here.
            16 => all![
                "STRLEN(CONCAT(\"",
                self.filler(bytes, &["a", "é"]),
                "\", STR(?o))) > §"
            ],
            17 if self.rng.chance(20) => {
                all!["<http://e/", self.filler(bytes, &["a", "f/"]), ">(?o)"]
            }
            _ => self.deeper(|m| m.chain(bytes)),
        }
    }

    /// A short condition or value.
    pub fn comparison(&mut self) -> Recipe {
        let v = self.variable();
        match self.rng.below(24) {
            0..5 => all![v, " != §"],
            5..8 => all![v, " = §"],
            8 => all![v, " != ", self.iri()],
            9 => all![v, " = ", self.iri()],
            10 => all!["(?o != § && ?s = §)"],
            11 => all!["(", v, " < § || ?n > §)"],
            12 => all![v, " != ", self.variable()],
            13 => all!["!BOUND(", v, ")"],
            14 => all!["isBlank(", v, ")"],
            15 => all!["REGEX(STR(", v, "), \"a§\")"],
            16 => all!["CONTAINS(STR(", v, "), \"§\")"],
            17 => all!["EXISTS { ?s <http://e/p§> ", v, " }"],
            18 => all!["NOT EXISTS { ", v, " <http://e/p1> ?x§ }"],
            19 => all![v, " IN (1, §, ?n)"],
            20 => all!["IRI(\"§\") = ", v],
            21 => all!["LANGMATCHES(LANG(", v, "), \"f§\")"],
            22 => all!["sameTerm(", v, ", \"text §\")"],
            _ => self.value(0),
        }
    }

    /// An expression whose value is a term rather than a truth value.
    pub fn value(&mut self, bytes: usize) -> Recipe {
        if !self.is_small(bytes) {
            return self.expression(bytes);
        }
        let v = self.variable();
        match self.rng.below(12) {
            0..3 => v,
            3 => all![v, " + §"],
            4 => all!["CONCAT(STR(", v, "), \"§\")"],
            5 => all!["IF(BOUND(", v.clone(), "), §, ", v, ")"],
            6 => all!["COALESCE(?u§, ", v, ")"],
            7 => all!["IRI(CONCAT(\"http://e/s\", STR(§)))"],
            8 => "BNODE(\"§\")".into(),
            9 => all!["STRLEN(STR(", v, ")) * §"],
            10 => self.iri(),
            _ => self
                .rng
                .one(&["§", "\"text §\"", "RAND()", "NOW()", "UUID()", "§.§"])
                .into(),
        }
    }

    /// Many operands, joined by one operator or by two operators alternately.
    fn chain(&mut self, bytes: usize) -> Recipe {
        let operator = self.rng.one(&[
            " && ", " && ", " || ", " || ", " + ", " - ", " * ", " / ", ") && (", ") || (",
        ]);
        let joins = operator.contains(['&', '|']);
        let operands = self.many(bytes, operator, |m, each| {
            let operand = m.expression(each);
            // A comparison cannot be an operand of arithmetic.
            if joins {
                operand
            } else {
                all!["(", operand, ")"]
            }
        });
        all!["(", operands, ")"]
    }

    /// IN or NOT IN with a long list.
    fn list(&mut self, bytes: usize) -> Recipe {
        let not = self.rng.one(&["", "NOT "]);
        let v = self.variable();
        let list = match self.rng.below(6) {
            0..3 => {
                let blanks = std::mem::replace(&mut self.blanks, false);
                let list = self.many(bytes, ", ", |m, each| m.term(each, true));
                self.blanks = blanks;
                list
            }
            3 => Recipe::times((bytes / 8).max(1), "§", ", "),
            4 => Recipe::times((bytes / 20).max(1), "<http://e/s§>", ", "),
            _ => self.many(bytes, ", ", Self::value),
        };
        all![v, " ", not, "IN (", list, ")"]
    }

    /// REGEX with a pattern that is long, nested or has many repetitions.
    fn regular(&mut self, bytes: usize) -> Recipe {
        let pattern = match self.rng.below(7) {
            0 => Recipe::times((bytes / 7).max(1), "\\\\p{L}", ""),
            1 => Recipe::times((bytes / 6).max(1), "a§", "|"),
            2 => Recipe::times((bytes / 12).max(1), "(a{99}){99}", ""),
            3 => self.deep(bytes, "(a|", "b", ")*"),
            4 => Recipe::times((bytes / 4).max(1), "(a?)", ""),
            5 => Recipe::times((bytes / 10).max(1), "[^a-z§]", ""),
            _ => self.filler(bytes, &["a", ".*", "é", "\\\\d"]),
        };
        let flags = self.rng.one(&["", ", \"i\"", ", \"x\"", ", \"q\""]);
        match self.rng.below(3) {
            0 => all![
                "REGEX(STR(?o), CONCAT(STR(?n), \"",
                pattern,
                "\")",
                flags,
                ")"
            ],
            1 => all!["REPLACE(STR(?o), \"", pattern, "\", \"$1\"", flags, ")"],
            _ => all!["REGEX(STR(?o), \"", pattern, "\"", flags, ")"],
        }
    }
}
