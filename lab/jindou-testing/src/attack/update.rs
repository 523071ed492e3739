//! Random updates, with every operation, and with many operations in one request.

use super::maker::Maker;
use super::recipe::{Recipe, all};

impl Maker<'_> {
    /// An update of about `bytes` bytes.
    pub fn update(&mut self, bytes: usize) -> Recipe {
        let mut left = bytes;
        if bytes > 1000 && self.rng.chance(15) {
            left = self.shorten(left);
            // Only queries accept values of variables.
            self.values.clear();
            self.short.retain(|s| !s.starts_with('$'));
        }
        let body = match self.rng.below(11) {
            10 => self.grown_update(),
            0..2 => self.many(left, " ;\n", Self::operation),
            2 => {
                let n = 2 + self.rng.below(3);
                let mut parts = vec![];
                for size in self.split(left, n) {
                    parts.push(self.operation(size));
                    parts.push(" ;\n".into());
                }
                Recipe::All(parts)
            }
            _ => self.operation(left),
        };
        self.with_prologue(body)
    }

    fn operation(&mut self, bytes: usize) -> Recipe {
        if self.is_small(bytes) {
            let small = "\
                INSERT DATA { <http://e/s§> <http://e/p1> § }; DELETE DATA { <http://e/s§> <http://e/p1> § }; \
                CLEAR SILENT GRAPH <http://e/g§>; DROP SILENT GRAPH <http://e/h§>; \
                CREATE SILENT GRAPH <http://e/h§>; COPY SILENT <http://e/g§> TO <http://e/h§>; \
                MOVE SILENT <http://e/h§> TO <http://e/i§>; ADD SILENT DEFAULT TO <http://e/h1>; \
                LOAD SILENT <file:///nothing§>; DELETE WHERE { <http://e/s§> <http://e/p1> ?o }; \
                INSERT { ?s <http://e/q> ?o } WHERE { ?s <http://e/p§> ?o }";
            return self.rng.part(small).into();
        }
        match self.rng.below(12) {
            0 | 1 => all!["INSERT DATA { ", self.ground(bytes, true), " }"],
            2 => all!["DELETE DATA { ", self.ground(bytes, false), " }"],
            3 => {
                (self.blanks, self.paths) = (false, false);
                let pattern = self.triples(bytes);
                (self.blanks, self.paths) = (true, true);
                all!["DELETE WHERE { ", pattern, " }"]
            }
            4 => {
                let one = self
                    .rng
                    .one(&["USING <http://e/g§> ", "USING NAMED <http://e/g§> "]);
                let n = (bytes / one.len()).max(1);
                let using = Recipe::times(n, one, "");
                all!["DELETE { ?s ?p ?o } ", using, "WHERE { ?s ?p ?o }"]
            }
            _ => {
                let sizes = self.split(bytes, 3);
                let with = self.rng.one(&["", "", "WITH <http://e/g1> ", "WITH e:g2 "]);
                self.blanks = false;
                let delete = self.in_graph(sizes[0]);
                self.blanks = true;
                let insert = self.in_graph(sizes[1]);
                let pattern = self.group(sizes[2]);
                match self.rng.below(3) {
                    0 => all![with, "DELETE { ", delete, " } WHERE ", pattern],
                    1 => all![with, "INSERT { ", insert, " } WHERE ", pattern],
                    _ => all![
                        with,
                        "DELETE { ",
                        delete,
                        " } INSERT { ",
                        insert,
                        " } WHERE ",
                        pattern
                    ],
                }
            }
        }
    }

    fn in_graph(&mut self, bytes: usize) -> Recipe {
        let name = self.rng.one(&["", "", "<http://e/g§>", "?g"]);
        if name.is_empty() {
            return self.template(bytes);
        }
        all!["GRAPH ", name, " { ", self.template(bytes), " }"]
    }

    /// Triples without variables, in named graphs or in the default graph.
    fn ground(&mut self, bytes: usize, blanks: bool) -> Recipe {
        (self.variables, self.blanks) = (false, blanks);
        let made = match self.rng.below(3) {
            0 => self.many(bytes, " ", |m, each| {
                all!["GRAPH <http://e/g§> { ", m.triples(each), " }"]
            }),
            _ => self.triples(bytes),
        };
        (self.variables, self.blanks) = (true, true);
        made
    }
}
