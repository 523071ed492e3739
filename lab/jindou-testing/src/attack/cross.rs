//! Groups with many rows and many conditions on these rows. They are the smallest texts that reveal time or memory
//! quadratic in the text's length.

use super::maker::Maker;
use super::recipe::{Recipe, all};

/// Branches of a UNION, of which one is chosen and repeated; `§` is replaced by the number of the repetition.
const BRANCHES: &str = "\
    { ?s ?p ?o }; { ?s ?p ?o }; { ?x§ ?p ?o }; { ?x§ ?p ?o }; { ?s <http://e/p1> ?x§ }; { ?s ?p § }; \
    { <http://e/s§> ?p ?o }; { GRAPH ?g { ?s ?p ?o } }; { BIND(§ AS ?o) }; { VALUES ?o { § } }; \
    { SELECT ?s ?o { ?s ?p ?o } }; { ?s <http://e/p1>+ ?o }; { GRAPH ?g { } }; { ?s ?p ?o FILTER(?o = §) }";

/// Other patterns that produce rows; many are joined in sequence.
const ROWS: &str = "\
    { SELECT ?s { ?s ?p ?o } }; { SELECT ?s ?x§ { ?s <http://e/p1> ?x§ } }; { ?s ?p ?o }; \
    ?s <http://e/p1> ?x§ .; ?x§ <http://e/p1> ?o .; GRAPH ?g { ?s ?p ?o }; GRAPH <http://e/g§> { ?s ?p ?o }; \
    BIND(§ AS ?x§); VALUES ?x§ { § }";

/// Elements that follow rows in a group. In a repeated element, `§` is replaced by the number of the repetition.
const BEHIND: &str = "\
    FILTER(?o != §); FILTER(?o != §); FILTER(?s != <http://e/s§>); FILTER(?x§ != §); \
    FILTER(?o != § && ?s != §); FILTER(?o != § || ?s = §); FILTER EXISTS { ?s <http://e/p1> ?y§ }; \
    FILTER NOT EXISTS { ?s ?p § }; OPTIONAL { ?s <http://e/p1> ?y§ }; OPTIONAL { ?s <http://e/n> ?y }; \
    OPTIONAL { ?s ?p ?o FILTER(?o != §) }; MINUS { ?s <http://e/p1> § }; MINUS { ?x§ ?p ?o }; \
    BIND(?o AS ?y§); { SELECT ?s { ?s ?p ?o } }; ?s <http://e/p1> ?y§ .";

/// Operands of `&&` or `||` in one condition. In a repeated operand, `§` is replaced by the number of the repetition.
const OPERANDS: &str = "\
    ?o != §; ?o = §; ?o; (?o != § && ?s = §); (?o != § || ?s = §); EXISTS { ?s ?p § }; REGEX(STR(?o), \"§\"); \
    ?x§ = §";

impl Maker<'_> {
    /// Some patterns that produce rows, followed by elements that filter or extend the rows.
    pub fn cross(&mut self, bytes: usize) -> Recipe {
        let first = match self.rng.below(4) {
            0 => bytes / 100,
            1 => self.magnitude(bytes),
            _ => bytes / 2,
        };
        let rows = self.rows(first);
        let behind = self.behind(bytes.saturating_sub(rows.bytes()));
        let both = all![rows, " ", behind];
        match self.rng.below(10) {
            0 => all!["?s ?p ?o OPTIONAL { ", both, " }"],
            1 => all!["?s ?p ?o MINUS { ", both, " }"],
            2 => all!["?s ?p ?o FILTER EXISTS { ", both, " }"],
            3 => all!["{ SELECT * { ", both, " } } FILTER(?o != 1)"],
            _ => both,
        }
    }

    fn as_many(&mut self, bytes: usize, between: &str, one: Recipe) -> Recipe {
        let most = (bytes / (one.bytes() + between.len()).max(1)).max(1);
        let n = if self.rng.chance(70) {
            most
        } else {
            self.magnitude(most)
        };
        Recipe::times(n, one, between)
    }

    fn rows(&mut self, bytes: usize) -> Recipe {
        match self.rng.below(12) {
            0..5 => {
                let branch = self.rng.part(BRANCHES).into();
                self.as_many(bytes, " UNION ", branch)
            }
            5 => {
                let step = self
                    .rng
                    .one(&["a", "<http://e/p1>", "e:p1", "<http://e/p§>", "^e:p1"]);
                let between = self.rng.one(&["|", "|", "/"]);
                let path = self.as_many(bytes, between, step.into());
                all![
                    "?s (",
                    path,
                    self.rng.one(&[") ?o .", ")+ ?o .", ")* ?o ."])
                ]
            }
            6 => all!["VALUES ?o { ", self.as_many(bytes, " ", "§".into()), " }"],
            7..10 => {
                let row = self.rng.part(ROWS).into();
                self.as_many(bytes, " ", row)
            }
            _ => self
                .rng
                .one(&["?s ?p ?o .", "?s <http://e/p1>+ ?o .", "{ ?s ?p ?o }"])
                .into(),
        }
    }

    fn behind(&mut self, bytes: usize) -> Recipe {
        match self.rng.below(10) {
            0..6 => {
                let one = self.rng.part(BEHIND).into();
                self.as_many(bytes, " ", one)
            }
            6 => {
                let list = self.rng.one(&["§", "<http://e/s§>", "?x§"]).into();
                let not = self.rng.one(&["", "NOT "]);
                all![
                    "FILTER(?o ",
                    not,
                    "IN (",
                    self.as_many(bytes, ", ", list),
                    "))"
                ]
            }
            _ => {
                let one = self.rng.part(OPERANDS).into();
                let between = self.rng.one(&[" && ", " || "]);
                all!["FILTER(", self.as_many(bytes, between, one), ")"]
            }
        }
    }
}
