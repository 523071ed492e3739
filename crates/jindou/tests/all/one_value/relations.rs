//! Tests of operations that compare rows with each other: all pairs of values, joins by value, ORDER BY, DISTINCT.

use super::case::Case;
use super::judge::{Disagreement, Report};
use super::stores::{Store, VALUE, ask, number_of, vertex};
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

fn add(
    report: &mut Report,
    position: &'static str,
    store: &Store,
    query: &str,
    data: String,
    expected: String,
    got: String,
) {
    report.note(Disagreement {
        position,
        store: store.name,
        query: query.to_owned(),
        expression: data.clone(),
        cause: data.clone(),
        data,
        expected,
        got,
    });
}

/// Tests every operator on every two values, in every store. As constants, each store gets only one value in `one_in`.
pub fn of_all_pairs(values: &[Term], stores: &[Store], one_in: usize, report: &mut Report) {
    let relations = Relations::from_values(values);
    for (which, store) in stores.iter().enumerate() {
        for (o, op) in OPERATORS.iter().enumerate() {
            let truth = |a: usize, b: usize| relations.truths[o][a][b];
            let query = format!(
                "SELECT ?x ?y {{ ?x {VALUE} ?a . ?y {VALUE} ?b FILTER({}) }}",
                applied(op, "?a", "?b")
            );
            pairs(
                "FILTER of two patterns",
                report,
                store,
                values,
                op,
                &query,
                &truth,
            );
            let query = format!(
                "SELECT ?x ?y {{ ?x {VALUE} ?a . ?y {VALUE} ?b BIND(({}) AS ?t) FILTER(BOUND(?t) && ?t) }}",
                applied(op, "?a", "?b")
            );
            pairs(
                "BIND of two patterns",
                report,
                store,
                values,
                op,
                &query,
                &truth,
            );
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
                    let found = match ask(&store.db, &query, None) {
                        Err(e) => {
                            add(
                                report,
                                "FILTER with a constant",
                                store,
                                &query,
                                applied(op, a, b),
                                "an answer".into(),
                                e,
                            );
                            continue;
                        }
                        Ok(rows) => rows
                            .iter()
                            .filter_map(|r| number_of(r[0].as_ref()))
                            .collect::<BTreeSet<_>>(),
                    };
                    for (j, other) in values.iter().enumerate() {
                        report.compared += 1;
                        let t = if left { truth(j, i) } else { truth(i, j) };
                        if t.free.is_none() && found.contains(&j) != (t.value == Some(true)) {
                            let other = other.to_string();
                            let data = if left {
                                applied(op, &other, b)
                            } else {
                                applied(op, a, &other)
                            };
                            add(
                                report,
                                "FILTER with a constant",
                                store,
                                &query,
                                data,
                                format!("{:?}", t.value),
                                format!("passing: {}", found.contains(&j)),
                            );
                        }
                    }
                }
            }
        }
    }
}

fn pairs(
    position: &'static str,
    report: &mut Report,
    store: &Store,
    values: &[Term],
    op: &str,
    query: &str,
    truth: &dyn Fn(usize, usize) -> Truth,
) {
    let found = match ask(&store.db, query, None) {
        Err(e) => {
            add(
                report,
                position,
                store,
                query,
                op.into(),
                "an answer".into(),
                e,
            );
            return;
        }
        Ok(rows) => rows
            .iter()
            .filter_map(|r| Some((number_of(r[0].as_ref())?, number_of(r[1].as_ref())?)))
            .collect::<BTreeSet<_>>(),
    };
    for (i, a) in values.iter().enumerate() {
        for (j, b) in values.iter().enumerate() {
            report.compared += 1;
            let t = truth(i, j);
            if t.free.is_none() && found.contains(&(i, j)) != (t.value == Some(true)) {
                add(
                    report,
                    position,
                    store,
                    query,
                    applied(op, &a.to_string(), &b.to_string()),
                    format!("{:?}", t.value),
                    format!("passing: {}", found.contains(&(i, j))),
                );
            }
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
        ordered(report, store, &query, case, k, &wants, descending);
    }
    distinct(
        report,
        store,
        &format!("SELECT DISTINCT ?x {{ {rows} BIND({} AS ?x) }}", e.text),
        &wants,
        &e.text,
    );
    aggregated(report, store, &rows, case, k, &wants);
    let other = &case.expressions[rng.below(case.expressions.len())];
    if other.values.iter().all(|o| o.free.is_none()) {
        let query = format!(
            "SELECT ?n ?m {{ {{ SELECT ?n (({}) AS ?x) {{ {rows} }} }} {{ SELECT (?n AS ?m) (({}) AS ?y) {{ {rows} }} }} FILTER(?x = ?y) }}",
            e.text, other.text
        );
        joined(
            report,
            store,
            &query,
            &wants,
            &other
                .values
                .iter()
                .map(|o| o.value.as_ref())
                .collect::<Vec<_>>(),
            &format!("{} = {}", e.text, other.text),
        );
    }
}

/// Tests SUM, MIN and MAX of an expression over all rows. Sums whose steps are rounded are skipped, since they depend
/// on the order of the rows.
fn aggregated(
    report: &mut Report,
    store: &Store,
    rows: &str,
    case: &Case<'_>,
    k: usize,
    wants: &[Option<&Value>],
) {
    let text = &case.expressions[k].text;
    let Some(all) = wants.iter().copied().collect::<Option<Vec<&Value>>>() else {
        return;
    };
    let query = format!(
        "SELECT (SUM({text}) AS ?sum) (MIN({text}) AS ?min) (MAX({text}) AS ?max) {{ {rows} }}"
    );
    let row = match ask(&store.db, &query, None) {
        Ok(mut answer) if answer.len() == 1 => answer.remove(0),
        other => {
            add(
                report,
                "aggregates of rows",
                store,
                &query,
                text.clone(),
                "a row".into(),
                format!("{other:?}"),
            );
            return;
        }
    };
    report.compared += 3;
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
            add(
                report,
                "SUM of rows",
                store,
                &query,
                text.clone(),
                shown(&want),
                shown(&row[0]),
            );
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
            let text = format!(
                "{text} of {}",
                all.iter()
                    .map(|v| v.term().to_string())
                    .collect::<Vec<_>>()
                    .join(", ")
            );
            add(
                report,
                name,
                store,
                &query,
                text,
                "the least or greatest of them".into(),
                shown(got),
            );
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

fn ordered(
    report: &mut Report,
    store: &Store,
    query: &str,
    case: &Case<'_>,
    k: usize,
    wants: &[Option<&Value>],
    descending: bool,
) {
    let text = &case.expressions[k].text;
    let mut order: Vec<usize> = match ask(&store.db, query, None) {
        Ok(rows) => rows.iter().map(|r| index(r[0].as_ref())).collect(),
        Err(e) => {
            add(
                report,
                "ORDER BY",
                store,
                query,
                text.clone(),
                "an answer".into(),
                e,
            );
            return;
        }
    };
    report.compared += order.len() as u64;
    if order.len() != wants.len() {
        add(
            report,
            "ORDER BY",
            store,
            query,
            text.clone(),
            format!("{} rows", wants.len()),
            format!("{} rows", order.len()),
        );
        return;
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
                add(
                    report,
                    "ORDER BY",
                    store,
                    query,
                    text.clone(),
                    format!("{} before {}", shown(b), shown(a)),
                    if descending {
                        "the other order, descending"
                    } else {
                        "the other order"
                    }
                    .into(),
                );
                return;
            }
        }
    }
}

fn distinct(report: &mut Report, store: &Store, query: &str, wants: &[Option<&Value>], text: &str) {
    let rows = match ask(&store.db, query, None) {
        Ok(rows) => rows,
        Err(e) => {
            add(
                report,
                "DISTINCT",
                store,
                query,
                text.to_owned(),
                "an answer".into(),
                e,
            );
            return;
        }
    };
    report.compared += rows.len() as u64;
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
            add(
                report,
                "DISTINCT",
                store,
                query,
                text.to_owned(),
                "a value of a row".into(),
                shown,
            );
        } else if rows[..i].contains(row) {
            add(
                report,
                "DISTINCT",
                store,
                query,
                text.to_owned(),
                "each once".into(),
                format!("{shown} again"),
            );
        }
    }
    for w in wants {
        if !rows.iter().any(|r| is(&r[0], w)) {
            let shown = w.map_or("unbound".into(), |v| v.term().to_string());
            add(
                report,
                "DISTINCT",
                store,
                query,
                text.to_owned(),
                shown,
                "no such row".into(),
            );
        }
    }
}

fn joined(
    report: &mut Report,
    store: &Store,
    query: &str,
    left: &[Option<&Value>],
    right: &[Option<&Value>],
    text: &str,
) {
    let found: BTreeSet<(usize, usize)> = match ask(&store.db, query, None) {
        Ok(rows) => rows
            .iter()
            .map(|r| (index(r[0].as_ref()), index(r[1].as_ref())))
            .collect(),
        Err(e) => {
            add(
                report,
                "join on values",
                store,
                query,
                text.to_owned(),
                "an answer".into(),
                e,
            );
            return;
        }
    };
    for (i, a) in left.iter().enumerate() {
        for (j, b) in right.iter().enumerate() {
            report.compared += 1;
            let (Some(a), Some(b)) = (a, b) else {
                continue;
            };
            let t = reference::equal(a, b);
            if t.free.is_none() && found.contains(&(i, j)) != (t.value == Some(true)) {
                add(
                    report,
                    "join on values",
                    store,
                    query,
                    format!("{text}: {} = {}", a.term(), b.term()),
                    format!("{:?}", t.value),
                    format!("passing: {}", found.contains(&(i, j))),
                );
            }
        }
    }
}
