//! Random groups and their elements: triples, paths, UNION, OPTIONAL, MINUS, GRAPH, FILTER, BIND, VALUES, sub-selects,
//! SERVICE.

use super::maker::Maker;
use super::recipe::{Recipe, all};

impl Maker<'_> {
    /// A group with its braces.
    pub fn group(&mut self, bytes: usize) -> Recipe {
        all!["{ ", self.elements(bytes), " }"]
    }

    /// The elements of a group: a few, some of them large.
    pub fn elements(&mut self, bytes: usize) -> Recipe {
        if self.is_small(bytes) {
            return self.small();
        }
        if self.depth < 3 && bytes > 2000 && self.rng.chance(50) {
            return self.cross(bytes);
        }
        // Few elements, since each further one may make the result empty, or an error, before any part becomes large.
        let n = self.rng.one(&[1, 1, 1, 2, 2, 2, 2, 2, 3, 4]);
        let mut parts = vec![];
        for (i, part) in self.split(bytes, n).into_iter().enumerate() {
            if i > 0 {
                parts.push(" ".into());
            }
            parts.push(self.deeper(|m| m.element(part)));
        }
        // Adds an element that produces rows for the elements after it.
        if self.rng.chance(50) {
            parts.insert(0, "?s ?p ?o . ".into());
        }
        Recipe::All(parts)
    }

    fn small(&mut self) -> Recipe {
        let triple = self.triple();
        match self.rng.below(20) {
            0 => all![triple, " FILTER(", self.comparison(), ")"],
            1 => all![triple, " OPTIONAL { ", self.triple(), " }"],
            2 => all!["GRAPH ", self.graph_name(), " { ", triple, " }"],
            3 => all!["BIND(", self.value(0), " AS ", self.fresh(), ")"],
            4 => "VALUES ?o { § \"text §\" }".into(),
            5 => all!["{ ", triple, " } UNION { ", self.triple(), " }"],
            6 => all!["{ SELECT ?s { ", triple, " } }"],
            7 => "GRAPH ?g { }".into(),
            8 => all![triple, " . ", self.triple()],
            _ => triple,
        }
    }

    /// A short triple pattern.
    pub fn triple(&mut self) -> Recipe {
        if self.variables && self.rng.chance(60) {
            let triples = "\
                ?s ?p ?o; ?s ?p ?o; ?x§ ?p ?o; ?x§ ?p ?o; ?s <http://e/p1> ?x§; ?s <http://e/p1> ?o; \
                ?s <http://e/n> ?o; ?s ?p §; <http://e/s§> ?p ?o; ?x§ ?y§ ?o";
            return self.rng.part(triples).into();
        }
        let s = self.term(0, false);
        let p = if self.variables && self.paths && self.rng.chance(15) {
            self.path(0)
        } else {
            self.predicate()
        };
        all![s, " ", p, " ", self.term(0, true)]
    }

    fn graph_name(&mut self) -> Recipe {
        match self.rng.below(3) {
            0 => "?g".into(),
            1 => self.iri(),
            _ => self.variable(),
        }
    }

    /// An element of a group.
    fn element(&mut self, bytes: usize) -> Recipe {
        if self.is_small(bytes) {
            let small = self.small();
            return all![small, " ."];
        }
        match self.rng.below(30) {
            0..4 => all![self.triples(bytes), " ."],
            4..8 => self.many(bytes, " UNION ", Self::group),
            8..11 => self.repeated("OPTIONAL ", bytes),
            11 | 12 => self.repeated("MINUS ", bytes),
            13..18 => self.filters(bytes),
            18 | 19 => self.bind(bytes),
            20 | 21 => self.values_block(bytes),
            22 | 23 => self.select_inside(bytes),
            24 | 25 => {
                let name = match self.rng.below(4) {
                    0 => {
                        let half = bytes / 2;
                        self.long(half, false)
                    }
                    _ => self.graph_name(),
                };
                let left = bytes.saturating_sub(name.bytes());
                let open = all!["GRAPH ", name, " "];
                self.wrapped(open, left)
            }
            26 => {
                // An address at which no server listens.
                let silent = self
                    .rng
                    .one(&["SERVICE SILENT ", "SERVICE SILENT ", "SERVICE "]);
                let to = self
                    .rng
                    .one(&["<http://127.0.0.1:9/§>", "<http://127.0.0.1:9/>", "?g"]);
                let open = all![silent, to, " "];
                self.wrapped(open, bytes)
            }
            27 => self.deeper(|m| m.group(bytes)),
            28 => self.many(bytes, " ", Self::group),
            _ => {
                let noise = self.rng.one(&["# comment §\n", "    ", "\n"]);
                let n = (bytes / noise.len()).max(1);
                all![Recipe::times(n, noise, ""), "\n?s ?p ?o ."]
            }
        }
    }

    /// Groups after a keyword such as OPTIONAL: many in sequence, nested, or one large group.
    fn repeated(&mut self, keyword: &str, bytes: usize) -> Recipe {
        match self.rng.below(4) {
            0 => {
                let inner = self.triple();
                let open = all![keyword, "{ ", self.triple(), " . "];
                self.deep(bytes, open, inner, " }")
            }
            1 => all![keyword, self.deeper(|m| m.group(bytes))],
            _ => {
                let each = |m: &mut Self, each: usize| all![keyword, m.group(each)];
                self.many(bytes, " ", each)
            }
        }
    }

    /// Groups after an opening such as `GRAPH ?g`: nested, one large group, or many in sequence.
    fn wrapped(&mut self, open: Recipe, bytes: usize) -> Recipe {
        match self.rng.below(3) {
            0 => {
                let inner = self.triple();
                self.deep(bytes, all![open, "{ "], inner, " }")
            }
            1 => all![open, self.deeper(|m| m.group(bytes))],
            _ => self.many(bytes, " ", |m, each| all![open, m.group(each)]),
        }
    }

    fn filters(&mut self, bytes: usize) -> Recipe {
        match self.rng.below(3) {
            0 => all!["FILTER(", self.expression(bytes), ")"],
            _ => self.many(bytes, " ", |m, each| {
                all!["FILTER(", m.expression(each), ")"]
            }),
        }
    }

    fn bind(&mut self, bytes: usize) -> Recipe {
        let one = |m: &mut Self, each: usize| {
            let value = m.value(each);
            all!["BIND(", value, " AS ", m.fresh(), ")"]
        };
        self.many(bytes, " ", one)
    }

    /// VALUES with many rows, many columns, or both.
    pub fn values_block(&mut self, bytes: usize) -> Recipe {
        if self.rng.chance(50) {
            let v = self.variable();
            let was = std::mem::replace(&mut self.variables, false);
            let blanks = std::mem::replace(&mut self.blanks, false);
            let rows = self.many(bytes, " ", |m, each| m.term(each, true));
            (self.variables, self.blanks) = (was, blanks);
            return all!["VALUES ", v, " { ", rows, " }"];
        }
        let most = (bytes / 8).max(1);
        let columns = match self.rng.below(3) {
            0 => 2,
            1 => self.magnitude(most),
            _ => self.magnitude(100.min(most)),
        };
        let value = self.rng.one(&["UNDEF", "§", "1", "<http://e/s§>", "e:a"]);
        let row = all!["(", Recipe::times(columns, value, " "), ") "];
        let head = Recipe::times(columns, "?x§", " ");
        let rows = bytes.saturating_sub(head.bytes()) / row.bytes().max(1);
        let name = if columns == 2 { "?s ?o".into() } else { head };
        all![
            "VALUES (",
            name,
            ") { ",
            Recipe::times(rows.max(1), row, ""),
            "}"
        ]
    }

    fn select_inside(&mut self, bytes: usize) -> Recipe {
        match self.rng.below(4) {
            0 => {
                let inner = self.triple();
                let open = self.rng.one(&[
                    "{ SELECT * { ",
                    "{ SELECT DISTINCT ?s ?o { ",
                    "{ SELECT ?s (COUNT(*) AS ?o) { ?s ?p ?o . ",
                ]);
                let close = if open.contains("COUNT") {
                    " } GROUP BY ?s }"
                } else {
                    " } }"
                };
                self.deep(bytes, open, inner, close)
            }
            1 => all!["{ ", self.deeper(|m| m.select(bytes)), " }"],
            _ => self.many(bytes, " ", |m, each| all!["{ ", m.select(each), " }"]),
        }
    }

    /// Triples of about `bytes` bytes, without the final dot.
    pub fn triples(&mut self, bytes: usize) -> Recipe {
        if self.is_small(bytes) {
            return self.triple();
        }
        match self.rng.below(14) {
            0..3 => self.many(bytes, " . ", Self::triples),
            3 | 4 => {
                // One subject, perhaps a long one, with many predicates or objects.
                let parts = self.split(bytes, 2);
                let (s, v) = (self.term(parts[0], false), self.variable());
                if self.rng.chance(50) {
                    let list = self.many(parts[1], " ; ", |m, _| {
                        let p = m.predicate();
                        all![p, " ", m.term(0, true)]
                    });
                    all![s, " ", list]
                } else {
                    let p = if self.variables { v } else { self.predicate() };
                    let list = self.many(parts[1], " , ", |m, each| m.term(each, true));
                    all![s, " ", p, " ", list]
                }
            }
            5..8 if self.variables && self.paths => {
                // A path whose ends may be long terms.
                let parts = self.split(bytes, 3);
                let (s, path) = (self.term(parts[0], false), self.path(parts[1]));
                all![s, " ", path, " ", self.term(parts[2], true)]
            }
            8 => all![
                self.triple(),
                " . ?s <http://e/p1> ",
                self.term(bytes, true)
            ],
            9 => {
                let list = self.many(bytes, " ", |m, each| m.term(each, true));
                all!["<http://e/s1> <http://e/list> (", list, ")"]
            }
            10 if self.blanks => {
                let close = self.rng.one(&[" ]", " , 1 ]", " ; <http://e/p2> 2 ]"]);
                let inner = self.deep(bytes, "[ <http://e/p1> ", "1", close);
                all!["<http://e/s1> <http://e/p1> ", inner]
            }
            11 => {
                let inner = self.deep(bytes, "<<( <http://e/a> <http://e/b> ", "1", " )>>");
                all!["<http://e/s1> <http://e/p1> ", inner]
            }
            12 if self.blanks => {
                let one = self.rng.one(&[
                    "<< <http://e/s§> <http://e/p1> 1 >> <http://e/p2> 2",
                    "<http://e/s§> <http://e/p1> 1 {| <http://e/p2> 2 |}",
                    "<http://e/s§> <http://e/p1> 1 ~ <http://e/r>",
                    "[] <http://e/p1> []",
                ]);
                Recipe::times((bytes / one.len()).max(1), one, " . ")
            }
            13 if self.blanks => {
                // Many reifiers and annotations of one triple.
                let one = self
                    .rng
                    .one(&[" ~_:a", " ~ <http://e/r§>", " {| <http://e/p2> § |}"]);
                let n = (bytes / one.len()).max(1);
                all!["<http://e/s1> <http://e/p1> 1", Recipe::times(n, one, "")]
            }
            _ => Recipe::times((bytes / 30).max(1), self.triple(), " . "),
        }
    }

    /// A property path of about `bytes` bytes.
    pub fn path(&mut self, bytes: usize) -> Recipe {
        if self.is_small(bytes) {
            let paths = "\
                <http://e/p1>; <http://e/p§>; ^<http://e/p1>; <http://e/p1>*; <http://e/p§>+; <http://e/p1>?; \
                !<http://e/p§>; (<http://e/p1>|<http://e/p2>); a; <http://e/p1>/<http://e/p2>";
            let short = self.rng.chance(30);
            return if short {
                self.iri()
            } else {
                self.rng.part(paths).into()
            };
        }
        let was = self.variables;
        // Paths cannot contain variables.
        self.variables = false;
        let made = match self.rng.below(9) {
            0..3 => self.many(bytes, "|", Self::path),
            3 => self.many(bytes, "/", Self::path),
            4 => {
                let one = self
                    .rng
                    .one(&["<http://e/p§>", "^<http://e/p§>", "a", "e:p"]);
                let n = (bytes / one.len()).max(1);
                all!["!(", Recipe::times(n, one, "|"), ")"]
            }
            5 => {
                let open = self
                    .rng
                    .one(&["(", "^(", "(<http://e/p1>/", "(<http://e/p2>|"]);
                let close = self.rng.one(&[")", ")*", ")+", ")?", "/<http://e/p1>)*"]);
                self.deep(bytes, open, "<http://e/p1>", close)
            }
            6 => self.long(bytes, false),
            7 => {
                let n = (bytes / 2).max(1);
                Recipe::times(n, "a", self.rng.one(&["|", "/"]))
            }
            _ => {
                let close = self.rng.one(&[")*", ")+", ")?"]);
                all!["(", self.deeper(|m| m.path(bytes)), close]
            }
        };
        self.variables = was;
        if self.depth == 0 {
            made
        } else {
            all!["(", made, ")"]
        }
    }
}
