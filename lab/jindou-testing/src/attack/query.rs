//! Random whole queries: prologue, form, dataset, pattern and solution modifiers.

use super::maker::Maker;
use super::recipe::{Recipe, all};

impl Maker<'_> {
    /// A query of about `bytes` bytes.
    pub fn query(&mut self, bytes: usize) -> Recipe {
        let mut left = bytes;
        if bytes > 1000 && self.rng.chance(25) {
            left = self.shorten(left);
        }
        let body = match self.rng.below(24) {
            20.. => self.grown_query(),
            0..12 => self.select(left),
            12..15 => self.construct(left),
            15 | 16 => self.describe(left),
            17 => all!["ASK ", self.dataset(left / 20), self.group(left)],
            _ => {
                // A large prologue in front of the smallest query.
                self.declare(left);
                "SELECT * { ?s <http://e/p1> ?o }".into()
            }
        };
        self.with_prologue(body)
    }

    /// Puts the declarations made so far in front of a text.
    pub fn with_prologue(&mut self, body: Recipe) -> Recipe {
        let mut parts = vec!["PREFIX e: <http://e/> BASE <http://e/>\n".into()];
        parts.append(&mut self.prologue);
        parts.push(body);
        Recipe::All(parts)
    }

    /// Adds many declarations of prefixes or bases, some of them relative to earlier ones.
    pub fn declare(&mut self, bytes: usize) {
        let one = self.rng.one(&[
            "PREFIX p§: <http://e/§/>\n",
            "PREFIX p: <http://e/§>\n",
            "BASE <http://e/§/>\n",
            "BASE <a/>\n",
            "PREFIX r§: <a>\n",
        ]);
        let n = (bytes / one.len()).max(1);
        self.prologue.push(Recipe::times(n, one, ""));
    }

    /// A SELECT query, which is also a valid sub-select.
    pub fn select(&mut self, bytes: usize) -> Recipe {
        if self.is_small(bytes) {
            let small = [
                "SELECT ?s { ?s ?p ?o }",
                "SELECT * { ?x§ <http://e/p1> ?o }",
                "SELECT ?s (COUNT(*) AS ?x§) { ?s ?p ?o } GROUP BY ?s HAVING(COUNT(*) > §)",
                "SELECT DISTINCT ?o { ?s <http://e/p§> ?o } ORDER BY ?o LIMIT 10",
                "SELECT ?s (MAX(?n) AS ?x§) { ?s <http://e/n> ?n } GROUP BY ?s",
            ];
            return self.rng.one(&small).into();
        }
        let groups = self.rng.chance(25);
        let sizes = match self.rng.below(10) {
            // The pattern gets all bytes, or another part is large as well.
            0..5 => vec![bytes, 0, 0, 0, 0],
            5..9 => {
                let mut sizes = vec![bytes / 40; 5];
                let other = 1 + self.rng.below(4);
                let most = if self.rng.chance(50) {
                    bytes / 2
                } else {
                    bytes
                };
                sizes[other] = self.magnitude(most);
                sizes[0] = bytes.saturating_sub(sizes[other]);
                sizes
            }
            _ => self.split(bytes, 5),
        };
        let [where_, head, grouping, having, order] = sizes[..] else {
            return "SELECT * { }".into();
        };
        let quick = self.rng.one(&["", "", "DISTINCT ", "REDUCED "]);
        let mut parts: Vec<Recipe> = vec![all!["SELECT ", quick]];
        let large = head > 200;
        match self.rng.below(4) {
            _ if groups && large => {
                let columns = self.many(head, " ", Self::aggregate);
                parts.push(all!["?s ", columns]);
            }
            _ if groups => parts.push(all!["?s ", self.aggregate(0)]),
            0 | 1 if !large => parts.push("*".into()),
            0 if large => parts.push(Recipe::times(head / 5, "?x§", " ")),
            _ => {
                let columns = self.many(head, " ", |m, each| {
                    let value = m.value(each);
                    all!["(", value, " AS ", m.fresh(), ")"]
                });
                parts.push(all!["?s ?o ", columns]);
            }
        }
        parts.push(" ".into());
        if self.depth == 0 {
            parts.push(self.dataset(bytes / 20));
        }
        parts.push(self.deeper(|m| m.group(where_)));
        if groups {
            parts.push(" GROUP BY ?s ".into());
            if grouping > 200 {
                parts.push(self.many(grouping, " ", |m, each| match m.rng.below(3) {
                    0 => m.variable(),
                    1 => all!["(", m.value(each), ")"],
                    _ => {
                        let value = m.value(each);
                        all!["(", value, " AS ", m.fresh(), ")"]
                    }
                }));
            }
        }
        if groups && having > 200 {
            parts.push(" HAVING ".into());
            parts.push(self.many(having, " ", |m, each| match m.rng.below(3) {
                0 => "(COUNT(?o) > §)".into(),
                1 => "(?s != §)".into(),
                _ => all!["(", m.expression(each), ")"],
            }));
        }
        if order > 200 {
            parts.push(" ORDER BY ".into());
            parts.push(self.many(order, " ", |m, each| match m.rng.below(3) {
                0 => m.variable(),
                1 => all!["DESC(", m.value(each), ")"],
                _ => all!["(", m.value(each), ")"],
            }));
        }
        let end = [
            "",
            "",
            "",
            " LIMIT 1",
            " LIMIT 10",
            " OFFSET 5",
            " LIMIT 1 OFFSET 1000000",
            " VALUES ?s { <http://e/s1> <http://e/s2> }",
        ];
        parts.push(self.rng.one(&end).into());
        Recipe::All(parts)
    }

    fn aggregate(&mut self, bytes: usize) -> Recipe {
        let name = self
            .rng
            .part("COUNT; SUM; MIN; MAX; AVG; SAMPLE; GROUP_CONCAT");
        let distinct = self.rng.one(&["", "DISTINCT "]);
        let value = self.value(bytes);
        all!["(", name, "(", distinct, value, ") AS ", self.fresh(), ")"]
    }

    /// FROM and FROM NAMED clauses, sometimes very many.
    fn dataset(&mut self, bytes: usize) -> Recipe {
        if !self.rng.chance(12) {
            return "".into();
        }
        let one = self.rng.one(&[
            "FROM <http://e/g§> ",
            "FROM NAMED <http://e/g§> ",
            "FROM e:g§ ",
        ]);
        let n = self.magnitude(bytes / one.len());
        all!["FROM <http://e/g1> ", Recipe::times(n, one, "")]
    }

    fn construct(&mut self, bytes: usize) -> Recipe {
        let sizes = self.split(bytes, 2);
        if self.rng.chance(15) {
            self.paths = false;
            let pattern = self.triples(bytes);
            self.paths = true;
            return all!["CONSTRUCT WHERE { ", pattern, " }"];
        }
        let template = self.template(sizes[0]);
        let dataset = self.dataset(bytes / 20);
        all![
            "CONSTRUCT { ",
            template,
            " } ",
            dataset,
            "WHERE ",
            self.group(sizes[1])
        ]
    }

    /// Triples of a template, which has no paths.
    pub fn template(&mut self, bytes: usize) -> Recipe {
        let one = match self.rng.below(7) {
            0 => "?s <http://e/p§> ?o",
            1 => "<http://e/s§> <http://e/p1> §",
            2 => "?x§ ?p ?y§",
            3 if self.blanks => "[] <http://e/p§> [ <http://e/p1> ?o ]",
            4 => "?s ?p <<( ?s ?p ?o )>>",
            5 => {
                let p = self.iri();
                return all!["?s ", p, " ", self.term(bytes, true)];
            }
            _ => {
                self.paths = false;
                let triples = self.triples(bytes);
                self.paths = true;
                return triples;
            }
        };
        Recipe::times((bytes / (one.len() + 3)).max(1), one, " . ")
    }

    fn describe(&mut self, bytes: usize) -> Recipe {
        let sizes = self.split(bytes, 2);
        let list = match self.rng.below(4) {
            0 => {
                let dataset = self.dataset(bytes / 20);
                return all!["DESCRIBE * ", dataset, "WHERE ", self.group(sizes[1])];
            }
            1 => Recipe::times((sizes[0] / 5).max(1), "?x§", " "),
            _ => self.many(sizes[0], " ", |m, each| {
                if each < 200 {
                    m.iri()
                } else {
                    m.long(each, false)
                }
            }),
        };
        let dataset = self.dataset(bytes / 20);
        if self.rng.chance(30) {
            return all!["DESCRIBE ?s ", list, " ", dataset, "{ ?s ?p ?o }"];
        }
        all![
            "DESCRIBE ",
            list,
            " ",
            dataset,
            "WHERE ",
            self.group(sizes[1])
        ]
    }
}
