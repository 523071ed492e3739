//! Random terms and variables, short and long.

use super::maker::Maker;
use super::recipe::{Recipe, all};

/// Units that are repeated to make long IRIs.
const IRI: [&str; 6] = ["a", "b/", "é", "%41", "\\u0061", "a/../"];
/// Units that are repeated to make long literals.
const TEXT: [&str; 6] = ["a", "text ", "é", "\\n", "\\u0041", "\u{1F600}"];

impl Maker<'_> {
    /// A variable that many patterns share, or one whose name contains the number of the repetition.
    pub fn variable(&mut self) -> Recipe {
        if !self.variables {
            return self.iri();
        }
        let names = [
            "?s", "?s", "?p", "?o", "?o", "?o", "?n", "?g", "?x§", "?x§", "?x§", "?y§", "?x¶", "$v",
        ];
        self.rng.one(&names).into()
    }

    /// A variable for AS, which no pattern binds.
    pub fn fresh(&mut self) -> Recipe {
        let name = self.rng.one(&["?b", "?c", "?d", "?e"]);
        let number = self.rng.below(1000);
        format!("{name}{number}_§").into()
    }

    /// An IRI of the data, or a short form of a long IRI.
    pub fn iri(&mut self) -> Recipe {
        if !self.short.is_empty() && self.rng.chance(60) {
            let short = self.short[self.rng.below(self.short.len())];
            if self.variables || !short.starts_with('$') {
                return short.into();
            }
        }
        let names = "<http://e/p1>; <http://e/p1>; <http://e/s1>; <http://e/s§>; <http://e/s¶>; \
            <http://e/t>; <http://e/n>; <http://e/g§>; e:s§; <r§>";
        self.rng.part(names).into()
    }

    /// A predicate.
    pub fn predicate(&mut self) -> Recipe {
        match self.rng.below(8) {
            0 => "a".into(),
            1 => self.variable(),
            2 => self.iri(),
            3 => "?p".into(),
            4 => "<http://e/p§>".into(),
            5 => "<http://e/n>".into(),
            _ => "<http://e/p1>".into(),
        }
    }

    /// A term of about `bytes` bytes. If `object` is true, it may be a literal.
    pub fn term(&mut self, bytes: usize, object: bool) -> Recipe {
        if bytes >= 200 {
            return self.long(bytes, object);
        }
        match self.rng.below(if object { 14 } else { 8 }) {
            0..5 => self.variable(),
            // Rarely in queries, since a label that occurs in two groups is an error.
            5 if self.blanks && (!self.variables || self.rng.chance(5)) => {
                self.rng.one(&["[]", "_:a", "_:b§"]).into()
            }
            5 if self.blanks => "[]".into(),
            5..9 => self.iri(),
            9 | 10 => "§".into(),
            11 => "\"text §\"".into(),
            12 => "\"text §\"@fr".into(),
            _ => {
                let datatypes = [
                    "\"§\"^^<http://e/d§>",
                    "§.5",
                    "1e§",
                    "true",
                    "\"2020-01-01T00:00:0§Z\"^^<http://www.w3.org/2001/XMLSchema#dateTime>",
                    "-§",
                ];
                self.rng.one(&datatypes).into()
            }
        }
    }

    /// A term of about `bytes` bytes.
    pub fn long(&mut self, bytes: usize, object: bool) -> Recipe {
        match self.rng.below(if object { 10 } else { 4 }) {
            0 | 1 => all!["<http://e/", self.filler(bytes, &IRI), ">"],
            2 => all!["e:", self.filler(bytes, &["a", "é", "%41", "\\-"])],
            3 if self.variables => all!["?", self.filler(bytes, &["a", "é", "_"])],
            3 => all!["<", self.filler(bytes, &IRI), ">"],
            4 | 5 => all!["\"", self.filler(bytes, &TEXT), "\""],
            6 => all![
                "'''",
                self.filler(bytes, &["a", "'", "\n", "\"\"\""]),
                "a'''"
            ],
            7 => all!["\"a\"@en", self.filler(bytes, &["-ab", "-abcdefgh"])],
            8 => all!["\"1\"^^<http://e/", self.filler(bytes, &IRI), ">"],
            _ => all![
                self.rng.one(&["1", "0.", "1e"]),
                self.filler(bytes, &["1", "0", "9"])
            ],
        }
    }

    /// Declares a prefix, base or variable value with a long IRI, so that the text can use the IRI by a short form.
    /// Returns the number of bytes that are left for the text.
    pub fn shorten(&mut self, bytes: usize) -> usize {
        let length = match self.rng.below(3) {
            0 => bytes / 2,
            1 => bytes / 10,
            _ => self.magnitude(bytes / 2),
        };
        let filler = self.filler(length, &IRI);
        match self.rng.below(4) {
            0 => {
                self.prologue
                    .push(all!["PREFIX l: <http://e/", filler, "/>\n"]);
                self.short.extend(["l:a", "l:§", "l:"]);
            }
            1 => {
                self.prologue.push(all!["BASE <http://e/", filler, "/>\n"]);
                self.short.extend(["<a>", "<§>", "<>", "<../§>"]);
            }
            2 if self.variables => {
                let value = match self.rng.below(2) {
                    0 => all!["<http://e/", filler, ">"],
                    _ => all!["\"", filler, "\""],
                };
                self.values.push(("v".into(), value));
                self.short.push("$v");
                // The value is passed separately from the text, so it uses none of the bytes.
                return bytes;
            }
            _ => {
                self.prologue
                    .push(all!["PREFIX : <http://e/", filler, "#>\n"]);
                self.short.extend([":a", ":§", ":"]);
            }
        }
        bytes - length
    }
}
