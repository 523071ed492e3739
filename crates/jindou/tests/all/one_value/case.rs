//! Expressions with rows of values, and the values that the reference evaluator computes for them.

use jindou_testing::reference::{Outcome, Truth, evaluate, truth};
use jindou_testing::{Rng, Theme, Tree, tree};
use oxrdf::Term;

/// Values of `?a`, `?b` and `?c`, as indexes into [`Case::matrix`]; `None` is unbound.
pub type Row = [Option<usize>; 3];

pub const NAMES: [&str; 3] = ["a", "b", "c"];

/// One expression with its expected value and effective boolean value in each row.
pub struct Judged {
    pub tree: Tree,
    pub text: String,
    pub values: Vec<Outcome>,
    pub truths: Vec<Truth>,
}

/// Expressions and rows that the same queries evaluate.
pub struct Case<'v> {
    pub matrix: &'v [Term],
    pub rows: Vec<Row>,
    pub expressions: Vec<Judged>,
}

impl<'v> Case<'v> {
    pub fn random(rng: &mut Rng, matrix: &'v [Term], expressions: usize, rows: usize) -> Self {
        // Cases with many rows use arithmetic: numbers are short, so that a query's text can contain that many.
        let many = rows > 1000;
        let theme = if many {
            Theme::Arithmetic
        } else {
            Theme::one(rng)
        };
        let of_theme: Vec<usize> = (0..matrix.len())
            .filter(|&i| theme.has(&matrix[i]))
            .collect();
        let unbound = rng.chance(30);
        let rows = (0..rows)
            .map(|_| {
                let mut one = || {
                    if many || rng.chance(92) {
                        Some(rng.one(&of_theme))
                    } else {
                        Some(rng.below(matrix.len()))
                    }
                };
                let mut row = [one(), one(), one()];
                if unbound && rng.chance(20) {
                    row[2] = None;
                }
                row
            })
            .collect();
        let trees = (0..expressions)
            .map(|_| {
                let depth = 1 + rng.below(3);
                tree(rng, theme, matrix, depth)
            })
            .collect();
        Self::new(matrix, trees, rows)
    }

    pub fn new(matrix: &'v [Term], trees: Vec<Tree>, rows: Vec<Row>) -> Self {
        let mut case = Self {
            matrix,
            rows,
            expressions: vec![],
        };
        case.expressions = trees
            .into_iter()
            .map(|tree| {
                let algebra = tree.algebra();
                Judged {
                    text: tree.text(),
                    values: case.each_row(|r| evaluate(&algebra, &|v| case.term(r, v))),
                    truths: case.each_row(|r| truth(&algebra, &|v| case.term(r, v))),
                    tree,
                }
            })
            .collect();
        case
    }

    fn each_row<T>(&self, f: impl Fn(&Row) -> T) -> Vec<T> {
        self.rows.iter().map(f).collect()
    }

    /// The term that a variable has in a row.
    pub fn term(&self, row: &Row, name: &str) -> Option<Term> {
        let at = NAMES.iter().position(|n| *n == name)?;
        Some(self.matrix[row[at]?].clone())
    }

    /// True if a query's text can contain all terms of the row, that is, unless one is a blank node.
    pub fn has_names(&self, row: &Row) -> bool {
        row.iter()
            .flatten()
            .all(|&i| !matches!(self.matrix[i], Term::BlankNode(_)))
    }

    /// The expression with a row's terms instead of its variables.
    pub fn folded(&self, text: &str, row: &Row) -> String {
        let mut out = text.to_owned();
        for (name, value) in NAMES.iter().zip(row) {
            if let Some(i) = value {
                // BOUND allows only a variable as its argument.
                out = out.replace(&format!("BOUND(?{name})"), "true");
                out = out.replace(&format!("?{name}"), &self.matrix[*i].to_string());
            } else {
                out = out.replace(&format!("?{name}"), "?unbound");
            }
        }
        out
    }
}
