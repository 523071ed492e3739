//! EXPLAIN: a plan as readable text.

mod parts;

use crate::{Form, Operator, Plan, Slot, Weight};
use jindou_graph::Graph;
use jindou_model::scope;
use std::fmt::Write;

/// Depth from which operators are not indented further.
const DEEPEST_INDENT: usize = 40;

/// The plan as text: the tree of operators, indented, one per line with estimated rows and time. Below an exploration
/// are its steps: what each does, which columns remain after it, and the reason for its position.
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
    let _ = writeln!(
        out,
        "gives {}",
        none_if_empty(e.slots(&plan.output), "no column")
    );
    let mut stack = vec![(e.node(&plan.root, 1.0), 1)];
    while let Some((node, depth)) = stack.pop() {
        if scope::was_over() {
            break;
        }
        let pad = "  ".repeat(depth.min(DEEPEST_INDENT));
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

fn form(plan: &Plan) -> &'static str {
    match plan.form {
        Form::Ask => "ASK",
        Form::Select => "SELECT",
        Form::Construct(_) => "CONSTRUCT",
        Form::Describe(_) => "DESCRIBE",
    }
}

pub(crate) fn none_if_empty(text: String, none: &str) -> String {
    if text.is_empty() { none.into() } else { text }
}

/// An operator as text. Rows and cost include its inputs.
pub(crate) struct ExplainNode {
    pub text: String,
    pub rows: f64,
    pub cost: f64,
    pub steps: Vec<StepText>,
    pub inputs: Vec<ExplainNode>,
}

/// A step as text.
pub(crate) struct StepText {
    text: String,
    filters: Vec<String>,
    rows: f64,
    cost: f64,
    why: String,
    live: Vec<String>,
}

/// A plan, and the store in which its ids are looked up.
pub(crate) struct Explainer<'a> {
    plan: &'a Plan,
    snapshot: &'a dyn Graph,
}

impl ExplainNode {
    pub(crate) fn leaf(text: String, rows: f64, cost: f64) -> Self {
        Self {
            text,
            rows,
            cost,
            steps: vec![],
            inputs: vec![],
        }
    }

    /// An operator over one input. `rows` computes its rows from the input's; `each` is its cost per input row.
    pub(crate) fn over(input: Self, text: String, rows: impl Fn(f64) -> f64, each: f64) -> Self {
        Self {
            rows: rows(input.rows),
            cost: input.cost + input.rows * each,
            text,
            steps: vec![],
            inputs: vec![input],
        }
    }
}

impl Explainer<'_> {
    /// Describes the operator and its inputs, for an `Apply` with `outer` rows around it. Empty if the scope's time is
    /// over, for which callers report an error.
    pub(crate) fn node(&self, op: &Operator, outer: f64) -> ExplainNode {
        if scope::was_over() {
            return ExplainNode::leaf(String::new(), 0.0, 0.0);
        }
        op.facts().explain(self, outer)
    }

    pub(crate) fn by(&self, slots: &[Slot]) -> String {
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
    } else if n < 1e9 {
        format!("{:.1}M", n / 1e6)
    } else if n < 1e12 {
        format!("{:.1}G", n / 1e9)
    } else {
        format!("{n:.0e}")
    }
}

fn time(ns: f64) -> String {
    if ns < 1e3 {
        format!("{ns:.0} ns")
    } else if ns < 1e6 {
        format!("{:.1} µs", ns / 1e3)
    } else if ns < 1e9 {
        format!("{:.1} ms", ns / 1e6)
    } else if ns < 120e9 {
        format!("{:.1} s", ns / 1e9)
    } else {
        let seconds = ns / 1e9;
        let (unit, name) = match seconds {
            ..7_200.0 => (60.0, "minutes"),
            ..172_800.0 => (3_600.0, "hours"),
            ..63_072_000.0 => (86_400.0, "days"),
            _ => (31_536_000.0, "years"),
        };
        format!("{} {name}", count(seconds / unit))
    }
}
