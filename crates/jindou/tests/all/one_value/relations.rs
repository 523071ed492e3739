//! Tests of operations that compare rows with each other: all pairs of values, joins by value, ORDER BY, DISTINCT.

use super::case::Case;
use super::judge::{Disagreement, Report};
use super::stores::{Store, Table, VALUE, ask, number_of, vertex};
use jindou_testing::Rng;
use jindou_testing::reference::{self, Truth, Value, same};
use oxrdf::Term;
use oxrdf::vocab::xsd;
use std::collections::BTreeSet;

const OPERATORS: [&str; 7] = ["=", "!=", "<", "<=", ">", ">=", "sameTerm"];

fn applied(op: &str, a: &str, b: &str) -> String {
    if op == "sameTerm" {
        format!("sameTerm({a}, {b})")
    } else {
        format!("{a} {op} {b}")
    }
}

/// Expected truth of each comparison: indexed by operator, left value and right value.
struct Relations {
    truths: Vec<Vec<Vec<Truth>>>,
}

impl Relations {
    fn from_values(values: &[Term]) -> Self {
        let truths = OPERATORS
            .iter()
            .map(|op| {
                let e = jindou_testing::algebra(&applied(op, "?a", "?b"));
                values
                    .iter()
                    .map(|a| {
                        values
                            .iter()
                            .map(|b| {
                                reference::truth(&e, &|v| {
                                    Some(if v == "a" { a.clone() } else { b.clone() })
                                })
                            })
                            .collect()
                    })
                    .collect()
            })
            .collect();
        Self { truths }
    }
}

/// A query of a store in a position, and where disagreements about its answer are noted.
struct Question<'r> {
    report: &'r mut Report,
    position: &'static str,
    store: &'r Store,
    query: String,
}

impl<'r> Question<'r> {
    fn new(
        report: &'r mut Report,
        position: &'static str,
        store: &'r Store,
        query: String,
    ) -> Self {
        Self {
            report,
            position,
            store,
            query,
        }
    }

    /// The rows of the answer. An error is noted.
    fn rows(&mut self, data: &str) -> Option<Table> {
        ask(&self.store.db, &self.query, None)
            .map_err(|e| self.note(data, "an answer", e))
            .ok()
    }

    fn note(&mut self, data: &str, expected: impl Into<String>, got: impl Into<String>) {
        self.report.note(Disagreement {
            position: self.position,
            store: self.store.name,
            query: self.query.clone(),
            expression: data.to_owned(),
            cause: data.to_owned(),
            data: data.to_owned(),
            expected: expected.into(),
            got: got.into(),
        });
    }

    /// Compares whether something passed a condition with the condition's truth.
    fn passing(&mut self, truth: Truth, passes: bool, data: impl FnOnce() -> String) {
        self.report.compared += 1;
        if truth.free.is_none() && passes != (truth.value == Some(true)) {
            let (expected, got) = (format!("{:?}", truth.value), format!("passing: {passes}"));
            self.note(&data(), expected, got);
        }
    }
}

/// Tests every operator on every two values, in every store. As constants, each store gets only one value in `one_in`.
pub fn of_all_pairs(values: &[Term], stores: &[Store], one_in: usize, report: &mut Report) {
    let relations = Relations::from_values(values);
    for (which, store) in stores.iter().enumerate() {
        for (o, op) in OPERATORS.iter().enumerate() {
            let truth = |a: usize, b: usize| relations.truths[o][a][b];
            let compared = applied(op, "?a", "?b");
            for (position, condition) in [
                ("FILTER of two patterns", format!("FILTER({compared})")),
                (
                    "BIND of two patterns",
                    format!("BIND(({compared}) AS ?t) FILTER(BOUND(?t) && ?t)"),
                ),
            ] {
                let query = format!("SELECT ?x ?y {{ ?x {VALUE} ?a . ?y {VALUE} ?b {condition} }}");
                let question = Question::new(report, position, store, query);
                pairs(question, values, op, &truth);
            }
            for (i, v) in values.iter().enumerate() {
                if matches!(v, Term::BlankNode(_)) || (i + which + o) % one_in != 0 {
                    continue;
                }
                for left in [true, false] {
                    let constant = v.to_string();
                    let (a, b) = if left {
                        ("?a", constant.as_str())
                    } else {
                        (constant.as_str(), "?a")
                    };
                    let query = format!(
                        "SELECT ?x {{ ?x {VALUE} ?a FILTER({}) }}",
                        applied(op, a, b)
                    );
                    let mut question =
                        Question::new(report, "FILTER with a constant", store, query);
                    let Some(rows) = question.rows(&applied(op, a, b)) else {
                        continue;
                    };
                    let numbers = rows.iter().filter_map(|r| number_of(r[0].as_ref()));
                    let found: BTreeSet<_> = numbers.collect();
                    for (j, other) in values.iter().enumerate() {
                        let t = if left { truth(j, i) } else { truth(i, j) };
                        question.passing(t, found.contains(&j), || match left {
                            true => applied(op, &other.to_string(), b),
                            false => applied(op, a, &other.to_string()),
                        });
                    }
                }
            }
        }
    }
}

fn pairs(
    mut question: Question<'_>,
    values: &[Term],
    op: &str,
    truth: &dyn Fn(usize, usize) -> Truth,
) {
    let Some(rows) = question.rows(op) else {
        return;
    };
    let found: BTreeSet<_> = rows
        .iter()
        .filter_map(|r| Some((number_of(r[0].as_ref())?, number_of(r[1].as_ref())?)))
        .collect();
    for (i, a) in values.iter().enumerate() {
        for (j, b) in values.iter().enumerate() {
            let data = || applied(op, &a.to_string(), &b.to_string());
            question.passing(truth(i, j), found.contains(&(i, j)), data);
        }
    }
}

/// Tests a random expression of the case in ORDER BY, DISTINCT, SUM, MIN and MAX over all rows, and joins it with
/// another one by value.
pub fn of_expressions(case: &Case<'_>, stores: &[Store], rng: &mut Rng, report: &mut Report) {
    let store = &stores[rng.below(stores.len())];
    let k = rng.below(case.expressions.len());
    let e = &case.expressions[k];
    if case.rows.len() > 100 || e.values.iter().any(|o| o.free.is_some()) {
        return;
    }
    let rows: String = case
        .rows
        .iter()
        .enumerate()
        .map(|(n, row)| {
            let cells: String = row
                .iter()
                .map(|v| match v {
                    Some(i) => format!(" {}", vertex(*i)),
                    None => " <http://e/none>".into(),
                })
                .collect();
            format!(" ({n}{cells})")
        })
        .collect();
    let rows = format!(
        "VALUES (?n ?va ?vb ?vc) {{{rows} }} OPTIONAL {{ ?va {VALUE} ?a }} OPTIONAL {{ ?vb {VALUE} ?b }} OPTIONAL {{ ?vc {VALUE} ?c }}"
    );
    let wants: Vec<Option<&Value>> = e.values.iter().map(|o| o.value.as_ref()).collect();
    for descending in [false, true] {
        let by = if descending { "DESC" } else { "ASC" };
        let query = format!("SELECT ?n {{ {rows} }} ORDER BY {by}({})", e.text);
        ordered(
            Question::new(report, "ORDER BY", store, query),
            &e.text,
            &wants,
            descending,
        );
    }
    let query = format!("SELECT DISTINCT ?x {{ {rows} BIND({} AS ?x) }}", e.text);
    distinct(
        Question::new(report, "DISTINCT", store, query),
        &wants,
        &e.text,
    );
    let query = format!(
        "SELECT (SUM({0}) AS ?sum) (MIN({0}) AS ?min) (MAX({0}) AS ?max) {{ {rows} }}",
        e.text
    );
    aggregated(
        Question::new(report, "aggregates of rows", store, query),
        &e.text,
        &wants,
    );
    let other = &case.expressions[rng.below(case.expressions.len())];
    if other.values.iter().all(|o| o.free.is_none()) {
        let query = format!(
            "SELECT ?n ?m {{ {{ SELECT ?n (({}) AS ?x) {{ {rows} }} }} {{ SELECT (?n AS ?m) (({}) AS ?y) {{ {rows} }} }} FILTER(?x = ?y) }}",
            e.text, other.text
        );
        let others: Vec<_> = other.values.iter().map(|o| o.value.as_ref()).collect();
        let text = format!("{} = {}", e.text, other.text);
        joined(
            Question::new(report, "join on values", store, query),
            &wants,
            &others,
            &text,
        );
    }
}

/// Tests SUM, MIN and MAX of an expression over all rows. Sums whose steps are rounded are skipped, since they depend
/// on the order of the rows.
fn aggregated(mut question: Question<'_>, text: &str, wants: &[Option<&Value>]) {
    let Some(all) = wants.iter().copied().collect::<Option<Vec<&Value>>>() else {
        return;
    };
    let row = match ask(&question.store.db, &question.query, None) {
        Ok(mut answer) if answer.len() == 1 => answer.remove(0),
        other => return question.note(text, "a row", format!("{other:?}")),
    };
    question.report.compared += 3;
    let shown = |t: &Option<Term>| t.as_ref().map_or("unbound".into(), ToString::to_string);
    let floating = |v: &&Value| match v.term() {
        Term::Literal(l) => matches!(l.datatype(), xsd::FLOAT | xsd::DOUBLE),
        _ => false,
    };
    if !all.iter().any(floating) {
        let mut sum = Some(Value::from_term(&super::positions::integer(0)));
        let mut free = false;
        for v in &all {
            let next = sum.as_ref().map(|s| reference::add(s, v));
            free |= next.as_ref().is_some_and(|n| n.free.is_some());
            sum = next.and_then(|n| n.value);
        }
        let right = match (&sum, &row[0]) {
            (None, None) => true,
            (Some(v), Some(t)) => same(t, v),
            _ => false,
        };
        if !right && !free {
            let want = sum.as_ref().map(|v| v.term().clone());
            question.position = "SUM of rows";
            question.note(text, shown(&want), shown(&row[0]));
        }
    }
    for (got, name) in [(&row[1], "MIN of rows"), (&row[2], "MAX of rows")] {
        let better = |v: &Value, t: &Term| {
            let (a, b) = if name.starts_with("MIN") {
                (v.term(), t)
            } else {
                (t, v.term())
            };
            reference::less(a, b).value == Some(true)
        };
        let right = got
            .as_ref()
            .is_some_and(|t| all.iter().any(|v| same(t, v)) && !all.iter().any(|v| better(v, t)));
        if !right {
            let all: Vec<String> = all.iter().map(|v| v.term().to_string()).collect();
            let text = format!("{text} of {}", all.join(", "));
            question.position = name;
            question.note(&text, "the least or greatest of them", shown(got));
        }
    }
}

/// Rank of a term's kind in ORDER BY (SPARQL 1.1 §15.1), with triple terms last.
fn class(v: Option<&Value>) -> u8 {
    match v.map(Value::term) {
        None => 0,
        Some(Term::BlankNode(_)) => 1,
        Some(Term::NamedNode(_)) => 2,
        Some(Term::Literal(_)) => 3,
        Some(Term::Triple(_)) => 4,
    }
}

fn index(t: Option<&Term>) -> usize {
    match t {
        Some(Term::Literal(l)) => l.value().parse().expect("a row"),
        other => panic!("{other:?} is not a row"),
    }
}

fn ordered(mut question: Question<'_>, text: &str, wants: &[Option<&Value>], descending: bool) {
    let Some(rows) = question.rows(text) else {
        return;
    };
    let mut order: Vec<usize> = rows.iter().map(|r| index(r[0].as_ref())).collect();
    question.report.compared += order.len() as u64;
    if order.len() != wants.len() {
        let [wanted, got] = [wants.len(), order.len()].map(|n| format!("{n} rows"));
        return question.note(text, wanted, got);
    }
    if descending {
        order.reverse();
    }
    for (i, &first) in order.iter().enumerate() {
        for &then in &order[i + 1..] {
            let (a, b) = (wants[first], wants[then]);
            let wrong = class(a) > class(b)
                || match (a, b) {
                    (Some(a), Some(b)) => reference::less(b.term(), a.term()).value == Some(true),
                    _ => false,
                };
            if wrong {
                let shown =
                    |v: Option<&Value>| v.map_or("unbound".into(), |v| v.term().to_string());
                let expected = format!("{} before {}", shown(b), shown(a));
                let got = match descending {
                    true => "the other order, descending",
                    false => "the other order",
                };
                return question.note(text, expected, got);
            }
        }
    }
}

fn distinct(mut question: Question<'_>, wants: &[Option<&Value>], text: &str) {
    let Some(rows) = question.rows(text) else {
        return;
    };
    question.report.compared += rows.len() as u64;
    let is = |got: &Option<Term>, want: &Option<&Value>| match (got, want) {
        (None, None) => true,
        (Some(t), Some(v)) => same(t, v),
        _ => false,
    };
    for (i, row) in rows.iter().enumerate() {
        let shown = row[0]
            .as_ref()
            .map_or("unbound".into(), ToString::to_string);
        if !wants.iter().any(|w| is(&row[0], w)) {
            question.note(text, "a value of a row", shown);
        } else if rows[..i].contains(row) {
            question.note(text, "each once", format!("{shown} again"));
        }
    }
    for w in wants {
        if !rows.iter().any(|r| is(&r[0], w)) {
            let shown = w.map_or("unbound".into(), |v| v.term().to_string());
            question.note(text, shown, "no such row");
        }
    }
}

fn joined(
    mut question: Question<'_>,
    left: &[Option<&Value>],
    right: &[Option<&Value>],
    text: &str,
) {
    let Some(rows) = question.rows(text) else {
        return;
    };
    let found: BTreeSet<(usize, usize)> = rows
        .iter()
        .map(|r| (index(r[0].as_ref()), index(r[1].as_ref())))
        .collect();
    for (i, a) in left.iter().enumerate() {
        for (j, b) in right.iter().enumerate() {
            let (Some(a), Some(b)) = (a, b) else {
                question.report.compared += 1;
                continue;
            };
            let data = || format!("{text}: {} = {}", a.term(), b.term());
            question.passing(reference::equal(a, b), found.contains(&(i, j)), data);
        }
    }
}
