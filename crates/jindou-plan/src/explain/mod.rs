//! A plan in words.

mod parts;

use crate::condition::selectivity;
use crate::{ApplyKind, Endpoint, Form, JoinKind, Operator, Plan, Slot, Weight, cost};
use jindou_store::Graph;
use std::fmt::Write;

/// The plan as text: the tree of operators, indented, one a line with estimated rows and time; below explorations
/// their steps: what each does, what it keeps, why it comes there.
#[must_use]
pub fn explain(plan: &Plan, snapshot: &dyn Graph) -> String {
    let e = Explainer { plan, snapshot };
    let weight = match plan.weight {
        Weight::Light => "light",
        Weight::Heavy => "heavy",
    };
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{}, native, {weight}: about {} on one core",
        form(plan),
        time(plan.cost)
    );
    let columns: Vec<String> = plan.output.iter().map(|s| e.slot(*s)).collect();
    let _ = writeln!(
        out,
        "gives {}",
        none_if_empty(columns.join(" "), "no column")
    );
    let mut stack = vec![(e.node(&plan.root, 1.0), 1)];
    while let Some((node, depth)) = stack.pop() {
        let pad = "  ".repeat(depth);
        let _ = writeln!(
            out,
            "{pad}{}  (~{} rows, ~{})",
            node.text,
            count(node.rows),
            time(node.cost)
        );
        for (i, s) in node.steps.iter().enumerate() {
            let _ = writeln!(out, "{pad}  {:>2}. {}", i + 1, s.text);
            for f in &s.filters {
                let _ = writeln!(out, "{pad}      keep if {f}");
            }
            let _ = writeln!(
                out,
                "{pad}      ~{} rows, ~{}; {}; keeps {}",
                count(s.rows),
                time(s.cost),
                s.why,
                none_if_empty(s.live.join(" "), "no column")
            );
        }
        stack.extend(node.inputs.into_iter().rev().map(|n| (n, depth + 1)));
    }
    out
}

/// The same as a document: `form`, `weight`, `cost_ns`, `output`, and `plan`, a tree of nodes with `operator` (its
/// number in preorder is `node`), `rows`, `cost_ns` (both estimates, of the node with its inputs), `steps` and `inputs`.
#[must_use]
pub fn explain_json(plan: &Plan, snapshot: &dyn Graph) -> serde_json::Value {
    let e = Explainer { plan, snapshot };
    let output: Vec<String> = plan.output.iter().map(|s| e.slot(*s)).collect();
    let mut number = 0;
    serde_json::json!({
        "form": form(plan),
        "weight": if plan.weight == Weight::Light { "light" } else { "heavy" },
        "cost_ns": plan.cost,
        "output": output,
        "plan": json(e.node(&plan.root, 1.0), &mut number),
    })
}

fn json(node: Node, number: &mut usize) -> serde_json::Value {
    let own = *number;
    *number += 1;
    let steps: Vec<serde_json::Value> = node
        .steps
        .into_iter()
        .map(|s| {
            serde_json::json!({
                "step": s.text, "filters": s.filters, "rows": s.rows, "cost_ns": s.cost, "why": s.why, "live": s.live,
            })
        })
        .collect();
    let inputs: Vec<serde_json::Value> = node.inputs.into_iter().map(|n| json(n, number)).collect();
    serde_json::json!({
        "node": own, "operator": node.text, "rows": node.rows, "cost_ns": node.cost, "steps": steps, "inputs": inputs,
    })
}

fn form(plan: &Plan) -> &'static str {
    match plan.form {
        Form::Ask => "ASK",
        Form::Select => "SELECT",
        Form::Construct(_) => "CONSTRUCT",
        Form::Describe(_) => "DESCRIBE",
    }
}

fn none_if_empty(text: String, none: &str) -> String {
    if text.is_empty() { none.into() } else { text }
}

/// An operator in words. Rows and cost are of it and its inputs together.
struct Node {
    text: String,
    rows: f64,
    cost: f64,
    steps: Vec<StepText>,
    inputs: Vec<Node>,
}

struct StepText {
    text: String,
    filters: Vec<String>,
    rows: f64,
    cost: f64,
    why: String,
    live: Vec<String>,
}

struct Explainer<'a> {
    plan: &'a Plan,
    snapshot: &'a dyn Graph,
}

impl Explainer<'_> {
    /// The operator with its inputs; `outer`: rows of the `Apply` around it.
    #[allow(clippy::too_many_lines)]
    fn node(&self, op: &Operator, outer: f64) -> Node {
        let leaf = |text: String, rows: f64, cost: f64| Node {
            text,
            rows,
            cost,
            steps: vec![],
            inputs: vec![],
        };
        let one = |input: &Operator, text: String, rows: &dyn Fn(f64) -> f64, each: f64| {
            let i = self.node(input, outer);
            Node {
                text,
                rows: rows(i.rows),
                cost: i.cost + i.rows * each,
                steps: vec![],
                inputs: vec![i],
            }
        };
        let same = |n: f64| n;
        match op {
            Operator::Explore(e) => {
                let text = match &e.empty {
                    Some(why) => format!("nothing matches: {why}"),
                    None => "explore".into(),
                };
                let rows = e.steps.last().map_or(0.0, |s| s.rows);
                let cost = e.steps.iter().map(|s| s.cost).sum();
                Node {
                    steps: self.steps(&e.steps),
                    ..leaf(text, rows, cost)
                }
            }
            Operator::Outer(slots) => {
                let columns = none_if_empty(self.slots(slots), "no column");
                leaf(format!("the outer row: {columns}"), outer, 0.0)
            }
            Operator::Values { slots, rows } => {
                let n = rows.len();
                leaf(
                    format!("values {}: {n} rows", self.slots(slots)),
                    n as f64,
                    n as f64,
                )
            }
            Operator::Service(s) => {
                let silent = if s.silent { " silently" } else { "" };
                let endpoint = match &s.endpoint {
                    Endpoint::Iri(iri) => format!("<{iri}>"),
                    Endpoint::Slot(slot) => format!("the endpoint in {}", self.slots(&[*slot])),
                };
                leaf(format!("ask {endpoint}{silent}"), 1_000.0, cost::SERVICE)
            }
            Operator::Steps { input, steps } => {
                let i = self.node(input, outer);
                Node {
                    text: "go on from each row".into(),
                    rows: steps.last().map_or(i.rows, |s| s.rows),
                    cost: i.cost + steps.iter().map(|s| s.cost).sum::<f64>(),
                    steps: self.steps(steps),
                    inputs: vec![i],
                }
            }
            Operator::Path {
                input,
                subject,
                path,
                object,
                graph,
                each,
                visited,
                ..
            } => {
                let text = format!(
                    "path: {} {} {}{}",
                    self.end(subject),
                    self.path(path),
                    self.end(object),
                    self.graph(graph)
                );
                one(input, text, &|n| n * each, visited * cost::PATH)
            }
            Operator::Join {
                kind,
                left,
                right,
                on,
                condition,
                equal,
            } => {
                let name = match kind {
                    JoinKind::Inner if on.is_empty() && equal.is_none() => "product",
                    JoinKind::Inner => "hash join",
                    JoinKind::Left => "hash left join",
                    JoinKind::Semi => "hash semi-join",
                    JoinKind::Anti => "hash anti-join",
                    JoinKind::Minus => "minus",
                };
                let keys: Vec<String> = on
                    .iter()
                    .map(|k| {
                        let maybe = if k.left_bound && k.right_bound {
                            ""
                        } else {
                            " (may be unbound)"
                        };
                        format!("{}{maybe}", self.slot(k.slot))
                    })
                    .collect();
                let on_text = if let Some((l, r)) = equal {
                    format!(" on {} = {}", self.slot(*l), self.slot(*r))
                } else if on.is_empty() {
                    String::new()
                } else {
                    format!(" on {}", keys.join(" "))
                };
                let when = condition
                    .as_ref()
                    .map_or(String::new(), |c| format!(" if {}", self.condition(c)));
                let (l, r) = (self.node(left, outer), self.node(right, outer));
                let (rows, own) = cost::join(
                    *kind,
                    l.rows,
                    r.rows,
                    on.len() + usize::from(equal.is_some()),
                );
                Node {
                    text: format!("{name}{on_text}{when}"),
                    rows,
                    cost: l.cost + r.cost + own,
                    steps: vec![],
                    inputs: vec![l, r],
                }
            }
            Operator::Apply {
                input,
                inner,
                kind,
                each_row,
            } => {
                let what = match kind {
                    ApplyKind::Inner => "for each row".into(),
                    ApplyKind::Left => "for each row, if any (OPTIONAL)".into(),
                    ApplyKind::Semi => "keep rows with (EXISTS)".into(),
                    ApplyKind::Anti => "keep rows without (NOT EXISTS)".into(),
                    ApplyKind::Mark(s) => format!("{} = whether there is (EXISTS)", self.slot(*s)),
                };
                let alone = if *each_row { ", each by itself" } else { "" };
                let i = self.node(input, outer);
                let b = self.node(inner, if *each_row { 1.0 } else { i.rows });
                let times = if *each_row { i.rows.max(1.0) } else { 1.0 };
                let (rows, own) = cost::apply(*kind, i.rows, b.rows * times);
                Node {
                    text: format!("{what}{alone}"),
                    rows,
                    cost: i.cost + b.cost * times + own,
                    steps: vec![],
                    inputs: vec![i, b],
                }
            }
            Operator::Union(list) => {
                let inputs: Vec<Node> = list.iter().map(|o| self.node(o, outer)).collect();
                Node {
                    text: "union".into(),
                    rows: inputs.iter().map(|n| n.rows).sum(),
                    cost: inputs.iter().map(|n| n.cost).sum(),
                    steps: vec![],
                    inputs,
                }
            }
            Operator::Extend { input, to, value } => {
                let text = format!("{} = {}", self.slot(*to), value.expression);
                one(input, text, &same, cost::EXPRESSION)
            }
            Operator::Group {
                input,
                by,
                aggregates,
            } => {
                let each: Vec<String> = aggregates.iter().map(|a| self.aggregate(a)).collect();
                let text = format!("group{}: {}", self.by(by), each.join(", "));
                one(input, text, &|n| cost::groups(n, by.len()), cost::GROUP)
            }
            Operator::Count {
                input,
                group,
                counts,
            } => {
                let each: Vec<String> = counts
                    .iter()
                    .map(|c| {
                        let of = c.of.map_or("rows".into(), |s| self.slot(s));
                        let distinct = if c.distinct { "distinct " } else { "" };
                        format!("{} = count of {distinct}{of}", self.slot(c.to))
                    })
                    .collect();
                let text = format!("{}{}", each.join(", "), self.by(group));
                one(input, text, &|n| cost::groups(n, group.len()), cost::OUT)
            }
            Operator::Reduced(i, slots) => one(
                i,
                format!("reduced {}", self.slots(slots)),
                &same,
                cost::OUT,
            ),
            Operator::Filter(i, c) => {
                let share = selectivity(c);
                let text = format!("keep if {}", self.condition(c));
                one(i, text, &|n| n * share, cost::condition(c))
            }
            Operator::Distinct(i, by) => one(
                i,
                format!("distinct {}", self.slots(by)),
                &same,
                cost::HASH_PROBE,
            ),
            Operator::OrderBy(i, keys) => {
                let each: Vec<String> = keys
                    .iter()
                    .map(|(s, descending)| {
                        let way = if *descending { " descending" } else { "" };
                        format!("{}{way}", self.slot(*s))
                    })
                    .collect();
                let input = self.node(i, outer);
                let own = input.rows * cost::SORT * (2.0 + input.rows).log2();
                Node {
                    text: format!("order by {}", each.join(", ")),
                    rows: input.rows,
                    cost: input.cost + own,
                    steps: vec![],
                    inputs: vec![input],
                }
            }
            Operator::Slice {
                input,
                offset,
                limit,
            } => {
                let take = limit.map_or("all".into(), |l| l.to_string());
                let most = limit.map_or(f64::INFINITY, |l| l as f64);
                one(
                    input,
                    format!("skip {offset}, take {take}"),
                    &|n| n.min(most),
                    0.0,
                )
            }
        }
    }

    fn by(&self, slots: &[Slot]) -> String {
        if slots.is_empty() {
            String::new()
        } else {
            format!(" by {}", self.slots(slots))
        }
    }
}

fn count(n: f64) -> String {
    if n < 10.0 {
        format!("{n:.1}")
    } else if n < 1e6 {
        format!("{n:.0}")
    } else {
        format!("{:.1}M", n / 1e6)
    }
}

fn time(ns: f64) -> String {
    if ns < 1e3 {
        format!("{ns:.0} ns")
    } else if ns < 1e6 {
        format!("{:.1} µs", ns / 1e3)
    } else if ns < 1e9 {
        format!("{:.1} ms", ns / 1e6)
    } else {
        format!("{:.1} s", ns / 1e9)
    }
}
