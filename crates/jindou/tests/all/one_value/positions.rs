//! The positions at which a query may contain an expression. Each has a query that evaluates many expressions for many
//! rows at once.

use super::case::{Case, NAMES, Row};
use super::stores::{Scripted, VALUE, ask, vertex};
use jindou::{Database, QueryOptions, Value as Parameter};
use jindou_testing::reference::{self, Outcome, Value};
use oxrdf::{Literal, Term};
use std::fmt::Write;
use std::sync::Arc;

/// The expressions and rows to evaluate, and the database and endpoint to use.
pub struct Setting<'s> {
    pub case: &'s Case<'s>,
    pub db: &'s Database,
    pub service: &'s Arc<Scripted>,
    /// A random number that selects the rows or the aggregate, for positions that do not use all of them.
    pub turn: usize,
}

/// The result that a query returned for an expression in a row.
pub struct Got {
    pub expression: usize,
    pub row: usize,
    pub what: What,
    /// Index into [`Asked::queries`].
    pub query: usize,
}

pub enum What {
    /// The expression's value, `None` for unbound.
    Value(Option<Term>),
    /// Its effective boolean value, `None` for an error.
    Truth(Option<bool>),
    /// True if the row passed the expression as a condition.
    Holds(bool),
    /// True if the row passed the negated expression as a condition.
    Fails(bool),
    /// A value computed from the expression's value, such as a sum, with its expected value.
    Made(Option<Term>, Outcome),
}

/// Queries and what they returned.
#[derive(Default)]
pub struct Asked {
    pub queries: Vec<String>,
    pub got: Vec<Got>,
    /// Queries that ended with an error, with its message.
    pub refused: Vec<(String, String)>,
}

pub type Position = (&'static str, fn(&Setting<'_>) -> Asked);

/// All positions: name, and the function that evaluates a case there.
pub const POSITIONS: [Position; 25] = [
    ("BIND", |s| s.values(&s.bound_rows(), "")),
    ("SELECT", selected),
    ("BIND after VALUES", |s| {
        s.short(|s| s.values(&s.named_rows(), ""))
    }),
    ("BIND after SERVICE", after_service),
    ("constants", constants),
    ("subquery", |s| {
        s.values(
            &format!("{{ SELECT ?n ?a ?b ?c {{ {} }} }}", s.bound_rows()),
            "<http://e/one> <http://e/is> ?here .",
        )
    }),
    ("inside a subquery", inside),
    ("BIND in OPTIONAL", |s| s.optional(&s.binds())),
    ("IF and COALESCE", |s| {
        s.wrapped(&s.bound_rows(), |e| {
            format!("IF(?n >= 0, COALESCE({e}, ?unbound), 1)")
        })
    }),
    ("MIN, MAX and SAMPLE", least),
    ("SUM", |s| {
        s.aggregated("SUM", |v| reference::add(&Value::from_term(&integer(0)), v))
    }),
    ("AVG", averaged),
    ("COUNT", counted),
    ("GROUP BY", grouped),
    ("prepared", prepared),
    ("FILTER", |s| {
        s.conditions(&s.bound_rows(), "FILTER(·)", true)
    }),
    ("FILTER of not", |s| {
        s.conditions(&s.bound_rows(), "FILTER(!·)", false)
    }),
    ("FILTER after VALUES", |s| {
        s.short(|s| s.conditions(&s.named_rows(), "FILTER(·)", true))
    }),
    ("FILTER EXISTS", |s| {
        s.conditions(
            &s.bound_rows(),
            "FILTER EXISTS { <http://e/one> <http://e/is> ?here FILTER(·) }",
            true,
        )
    }),
    ("FILTER in OPTIONAL", |s| {
        s.conditions(
            &s.bound_rows(),
            "OPTIONAL { <http://e/one> <http://e/is> ?here FILTER(·) } FILTER(BOUND(?here))",
            true,
        )
    }),
    ("FILTER NOT EXISTS", |s| {
        s.conditions(
            &s.bound_rows(),
            "FILTER NOT EXISTS { <http://e/one> <http://e/is> ?here FILTER(!·) } FILTER(·)",
            true,
        )
    }),
    ("HAVING", having),
    ("condition of IF", |s| {
        s.truths(|e| format!("IF({e}, 1, 0)"))
    }),
    ("SUM of IF", summed),
    ("&& and ||", |s| {
        s.truths(|e| format!("IF(({e} && true) || ({e} && {e}), 1, 0)"))
    }),
];

pub fn integer(n: i64) -> Term {
    Literal::from(n).into()
}

fn number(t: Option<&Term>) -> Option<usize> {
    match t? {
        Term::Literal(l) => l.value().parse().ok(),
        _ => None,
    }
}

impl Setting<'_> {
    fn count(&self) -> usize {
        self.case.expressions.len()
    }

    fn text(&self, k: usize) -> &str {
        &self.case.expressions[k].text
    }

    /// A pattern that binds each row's number and values, where the values come from the store.
    fn bound_rows(&self) -> String {
        let mut out = String::from("VALUES (?n ?va ?vb ?vc) {");
        let mut unbound = false;
        for (n, row) in self.case.rows.iter().enumerate() {
            let _ = write!(out, " ({n}");
            for v in row {
                unbound |= v.is_none();
                let _ = match v {
                    Some(i) => write!(out, " {}", vertex(*i)),
                    None => write!(out, " <http://e/none>"),
                };
            }
            out += ")";
        }
        out += " } ";
        for name in NAMES {
            if unbound {
                let _ = write!(out, "OPTIONAL {{ ?v{name} {VALUE} ?{name} }} ");
            } else {
                let _ = write!(out, "?v{name} {VALUE} ?{name} . ");
            }
        }
        out
    }

    /// Evaluates a position that has the rows' terms in the query's text, unless there are too many rows for that.
    fn short(&self, ask: impl Fn(&Self) -> Asked) -> Asked {
        if self.case.rows.len() < 500 {
            ask(self)
        } else {
            Asked::default()
        }
    }

    /// A VALUES with each row's number and values; rows with blank nodes are left out.
    fn named_rows(&self) -> String {
        let mut out = String::from("VALUES (?n ?a ?b ?c) {");
        for (n, row) in self.case.rows.iter().enumerate() {
            if !self.case.has_names(row) {
                continue;
            }
            let _ = write!(out, " ({n}");
            for v in row {
                let _ = match v {
                    Some(i) => write!(out, " {}", self.case.matrix[*i]),
                    None => write!(out, " UNDEF"),
                };
            }
            out += ")";
        }
        out + " } "
    }

    fn columns(&self) -> String {
        (0..self.count()).map(|k| format!(" ?x{k}")).collect()
    }

    /// The columns of a SELECT or the keys of a GROUP BY that compute the expressions. In the template `·` stands for
    /// the expression.
    fn computed(&self, template: &str) -> String {
        (0..self.count())
            .map(|k| format!(" ({} AS ?x{k})", template.replace('·', self.text(k))))
            .collect()
    }

    /// A query of computed columns, as above, for groups of one row each.
    fn grouped(&self, template: &str) -> String {
        let (columns, rows) = (self.computed(template), self.bound_rows());
        format!("SELECT ?n{columns} {{ {rows} }} GROUP BY ?n")
    }

    fn binds(&self) -> String {
        self.binds_of(ToOwned::to_owned)
    }

    fn binds_of(&self, wrap: impl Fn(&str) -> String) -> String {
        (0..self.count())
            .map(|k| format!(" BIND({} AS ?x{k})", wrap(self.text(k))))
            .collect()
    }

    /// Runs a query whose first column is the row's number, and whose column `k + 1` has the value of expression `k`.
    fn table(
        &self,
        query: String,
        what: impl Fn(usize, usize, Option<Term>) -> Option<What>,
    ) -> Asked {
        let mut asked = Asked::default();
        self.fill_from(&mut asked, query, what);
        asked
    }

    fn fill_from(
        &self,
        asked: &mut Asked,
        query: String,
        what: impl Fn(usize, usize, Option<Term>) -> Option<What>,
    ) {
        match ask(self.db, &query, Some(self.service)) {
            Err(e) => asked.refused.push((query, e)),
            Ok(rows) => {
                asked.queries.push(query);
                for mut row in rows {
                    let Some(n) = number(row[0].as_ref()) else {
                        continue;
                    };
                    for k in 0..self.count() {
                        if let Some(what) = what(k, n, row[k + 1].take()) {
                            asked.got.push(Got {
                                expression: k,
                                row: n,
                                what,
                                query: asked.queries.len() - 1,
                            });
                        }
                    }
                }
            }
        }
    }

    fn values(&self, rows: &str, then: &str) -> Asked {
        let query = format!(
            "SELECT ?n{} {{ {rows}{}{then} }}",
            self.columns(),
            self.binds()
        );
        self.table(query, |_, _, t| Some(What::Value(t)))
    }

    fn wrapped(&self, rows: &str, wrap: impl Fn(&str) -> String) -> Asked {
        let query = format!(
            "SELECT ?n{} {{ {rows}{} }}",
            self.columns(),
            self.binds_of(wrap)
        );
        self.table(query, |_, _, t| Some(What::Value(t)))
    }

    fn optional(&self, binds: &str) -> Asked {
        let query = format!(
            "SELECT ?n{} {{ <http://e/one> <http://e/is> ?here OPTIONAL {{ {}{binds} }} }}",
            self.columns(),
            self.bound_rows(),
        );
        self.table(query, |_, _, t| Some(What::Value(t)))
    }

    fn truths(&self, wrap: impl Fn(&str) -> String) -> Asked {
        let query = format!(
            "SELECT ?n{} {{ {}{} }}",
            self.columns(),
            self.bound_rows(),
            self.binds_of(wrap)
        );
        self.table(query, |_, _, t| {
            Some(What::Truth(number(t.as_ref()).map(|n| n == 1)))
        })
    }

    /// Evaluates an aggregate over groups of one row each; `made` computes its expected result from the row's value.
    fn aggregated(&self, name: &str, made: impl Fn(&Value) -> Outcome) -> Asked {
        self.table(self.grouped(&format!("{name}(·)")), |k, n, t| {
            let mut want = self.case.expressions[k].values[n].clone();
            if let Some(v) = &want.value {
                let Outcome { value, free } = made(v);
                want = Outcome {
                    value,
                    free: want.free.or(free),
                };
            }
            Some(What::Made(t, want))
        })
    }

    /// Determines which rows pass each expression as a condition. In the template `·` stands for the expression.
    fn conditions(&self, rows: &str, template: &str, wanted: bool) -> Asked {
        let branches: Vec<String> = (0..self.count())
            .map(|k| {
                format!(
                    "{{ {rows}{} BIND({k} AS ?k) }}",
                    template.replace('·', self.text(k))
                )
            })
            .collect();
        let query = format!("SELECT ?k ?n {{ {} }}", branches.join(" UNION "));
        self.passing(query, wanted, rows.contains("?va"))
    }

    fn passing(&self, query: String, wanted: bool, all: bool) -> Asked {
        let mut asked = Asked::default();
        let mut passed = vec![vec![false; self.case.rows.len()]; self.count()];
        match ask(self.db, &query, Some(self.service)) {
            Err(e) => asked.refused.push((query, e)),
            Ok(rows) => {
                asked.queries.push(query);
                for row in rows {
                    if let (Some(k), Some(n)) = (number(row[0].as_ref()), number(row[1].as_ref())) {
                        passed[k][n] = true;
                    }
                }
                for (expression, rows) in passed.into_iter().enumerate() {
                    for (row, holds) in rows.into_iter().enumerate() {
                        if !all && !self.case.has_names(&self.case.rows[row]) {
                            continue;
                        }
                        let what = if wanted {
                            What::Holds(holds)
                        } else {
                            What::Fails(holds)
                        };
                        asked.got.push(Got {
                            expression,
                            row,
                            what,
                            query: 0,
                        });
                    }
                }
            }
        }
        asked
    }
}

fn selected(s: &Setting<'_>) -> Asked {
    let query = format!("SELECT ?n{} {{ {} }}", s.computed("·"), s.bound_rows());
    s.table(query, |_, _, t| Some(What::Value(t)))
}

fn after_service(s: &Setting<'_>) -> Asked {
    let rows = s
        .case
        .rows
        .iter()
        .enumerate()
        .map(|(n, row)| {
            let mut out = vec![Some(integer(n as i64))];
            out.extend(NAMES.iter().map(|name| s.case.term(row, name)));
            out
        })
        .collect();
    s.service.script(vec!["n", "a", "b", "c"], rows);
    let rows =
        "SERVICE <http://e/service> { ?n <http://e/a> ?a ; <http://e/b> ?b ; <http://e/c> ?c }";
    s.values(rows, "")
}

/// Evaluates each expression for one row, whose terms replace the variables in the text.
fn constants(s: &Setting<'_>) -> Asked {
    let rows: Vec<usize> = (0..s.count())
        .map(|k| (k + s.turn) % s.case.rows.len())
        .collect();
    let named = |n: usize| s.case.has_names(&s.case.rows[n]);
    let columns: String = (0..s.count())
        .map(|k| {
            let row = &s.case.rows[rows[k]];
            let text = if named(rows[k]) {
                s.case.folded(s.text(k), row)
            } else {
                "1".into()
            };
            format!(" ({text} AS ?x{k})")
        })
        .collect();
    let query = format!("SELECT (0 AS ?n){columns} {{}}");
    let mut asked = s.table(query, |k, _, t| named(rows[k]).then_some(What::Value(t)));
    for got in &mut asked.got {
        got.row = rows[got.expression];
    }
    asked
}

fn inside(s: &Setting<'_>) -> Asked {
    let query = format!(
        "SELECT ?n{} {{ <http://e/one> <http://e/is> ?here {{ SELECT ?n{} {{ {} }} }} }}",
        s.columns(),
        s.computed("·"),
        s.bound_rows()
    );
    s.table(query, |_, _, t| Some(What::Value(t)))
}

fn least(s: &Setting<'_>) -> Asked {
    let name = ["MIN", "MAX", "SAMPLE", "MIN"][s.turn % 4];
    s.table(s.grouped(&format!("{name}(·)")), |_, _, t| {
        Some(What::Value(t))
    })
}

fn averaged(s: &Setting<'_>) -> Asked {
    s.aggregated("AVG", |v| {
        let sum = reference::add(&Value::from_term(&integer(0)), v);
        match &sum.value {
            Some(value) => {
                let mean = reference::divide(value, &Value::from_term(&integer(1)));
                Outcome {
                    value: mean.value,
                    free: mean.free.or(sum.free),
                }
            }
            None => sum,
        }
    })
}

fn counted(s: &Setting<'_>) -> Asked {
    s.table(s.grouped("COUNT(·)"), |k, n, t| {
        let Outcome { value, free } = &s.case.expressions[k].values[n];
        let want = Outcome {
            value: Some(Value::from_term(&integer(i64::from(value.is_some())))),
            free: *free,
        };
        Some(What::Made(t, want))
    })
}

fn grouped(s: &Setting<'_>) -> Asked {
    // COALESCE because GROUP BY does not accept `(?a AS ?x)` with a variable alone.
    let query = format!(
        "SELECT ?n{} {{ {} }} GROUP BY ?n{}",
        s.columns(),
        s.bound_rows(),
        s.computed("COALESCE(·)")
    );
    s.table(query, |_, _, t| Some(What::Value(t)))
}

/// Evaluates the expressions for two rows, whose terms are the parameters of a prepared query.
fn prepared(s: &Setting<'_>) -> Asked {
    let mut asked = Asked::default();
    let query = format!(
        "SELECT{} (COALESCE(?a, ?b, ?c) AS ?all) {{ <http://e/one> <http://e/is> ?here }}",
        s.computed("·")
    );
    let options = QueryOptions::default().with_threads(1);
    let prepared = match s.db.prepare(&query, &NAMES, &options) {
        Ok(p) => p,
        Err(e) => {
            asked.refused.push((query, e.to_string()));
            return asked;
        }
    };
    let mut session = prepared.session();
    for i in 0..2 {
        let n = (s.turn + i) % s.case.rows.len();
        let row: &Row = &s.case.rows[n];
        if !s.case.has_names(row) || row.contains(&None) {
            continue;
        }
        let terms: Vec<Term> = NAMES.iter().filter_map(|v| s.case.term(row, v)).collect();
        let given: Vec<Parameter<'_>> = terms.iter().map(Parameter::Term).collect();
        let text = format!(
            "{query}\n  with {}",
            terms
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        );
        match session.query(&given, &options) {
            Err(e) => asked.refused.push((text, e.to_string())),
            Ok(answer) => {
                asked.queries.push(text);
                if let Some(cells) = answer.solutions().first() {
                    for (expression, cell) in cells.iter().enumerate().take(s.count()) {
                        asked.got.push(Got {
                            expression,
                            row: n,
                            what: What::Value(cell.clone()),
                            query: asked.queries.len() - 1,
                        });
                    }
                }
            }
        }
    }
    asked
}

fn having(s: &Setting<'_>) -> Asked {
    let branches: Vec<String> = (0..s.count())
        .map(|k| {
            format!(
                "{{ SELECT ?n ({k} AS ?k) {{ {} }} GROUP BY ?n ?a ?b ?c HAVING({}) }}",
                s.bound_rows(),
                s.text(k)
            )
        })
        .collect();
    let query = format!("SELECT ?k ?n {{ {} }}", branches.join(" UNION "));
    s.passing(query, true, true)
}

fn summed(s: &Setting<'_>) -> Asked {
    s.table(s.grouped("SUM(IF(·, 1, 0))"), |_, _, t| {
        Some(What::Truth(number(t.as_ref()).map(|n| n == 1)))
    })
}
