//! The shape of a plan: its text without constants. Plans of the same shape are expected to have the same ratio of
//! measured to predicted time.

use jindou_graph::Graph;
use jindou_plan::{
    EdgeList, Exploration, FarEnd, IdFilter, Operand, Operator, Plan, StartSource, Step, StepKind,
};
use std::fmt::Write;

/// Largest length of a shape's text in bytes; plans that differ only beyond it have the same shape.
const LONGEST: usize = 400;

/// A plan's operators and steps without constants, with their hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Operators and steps, such as `count(keys expand expand2)`.
    pub text: String,
    /// A hash of the text and of the predicate ids, which are those of one store.
    pub exact: u64,
}

/// FNV-1a: the same in every version of the program.
fn fnv(text: &str, seed: u64) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Text that stops growing at [`LONGEST`]; the predicates are collected separately.
#[derive(Default)]
struct ShapeText {
    text: String,
    predicates: String,
}

impl ShapeText {
    fn push(&mut self, part: &str) {
        if self.text.len() + part.len() <= LONGEST {
            self.text.push_str(part);
        }
    }

    fn list(&mut self, list: &EdgeList) {
        self.predicate(list.predicate.0, list.direction as u32);
        if matches!(list.anchor, Operand::Const(_)) {
            self.push("c");
        }
    }

    fn predicate(&mut self, predicate: u32, direction: u32) {
        if self.predicates.len() < LONGEST {
            let _ = write!(self.predicates, "{predicate}.{direction} ");
        }
    }

    fn source(&mut self, source: &StartSource, within: Option<&IdFilter>) {
        match source {
            StartSource::Unit => self.push("one"),
            StartSource::IdFilter => self.push("ids"),
            StartSource::List(list) => {
                self.push("list");
                self.list(list);
            }
            StartSource::Keys {
                predicate,
                direction,
                ..
            } => {
                self.push("keys");
                self.predicate(predicate.0, *direction as u32);
            }
            StartSource::Graphs(_) => self.push("graphs"),
        }
        if within.is_some() && !matches!(source, StartSource::IdFilter) {
            self.push("'");
        }
    }

    fn step(&mut self, step: &Step) {
        match &step.kind {
            StepKind::Start { source, within, .. } => self.source(source, within.as_ref()),
            StepKind::Cross { source, within, .. } => {
                self.push("cross-");
                self.source(source, within.as_ref());
            }
            StepKind::Expand { lists, within, .. } => {
                self.push("expand");
                if lists.len() > 1 {
                    self.push(&lists.len().to_string());
                }
                lists.iter().for_each(|l| self.list(l));
                if within.is_some() {
                    self.push("'");
                }
            }
            StepKind::Check { list, .. } => {
                self.push("check");
                self.list(list);
            }
            StepKind::Restrict { .. } => self.push("restrict"),
            StepKind::ExpandAny { far, .. } => self.push(match far {
                FarEnd::Bind(_) => "any",
                FarEnd::Known(_) => "any-check",
            }),
            StepKind::ScanAll { .. } => self.push("all"),
        }
        for _ in &step.filters {
            self.push("?");
        }
    }

    fn exploration(&mut self, e: &Exploration) {
        for (i, step) in e.steps.iter().enumerate() {
            if i > 0 {
                self.push(" ");
            }
            self.step(step);
        }
    }

    fn operator(&mut self, op: &Operator) {
        match op {
            Operator::Explore(e) => self.exploration(e),
            Operator::Steps(s) => {
                self.push("steps[");
                s.steps.iter().for_each(|s| self.step(s));
                self.push("]");
            }
            Operator::Count(c) if c.group.is_empty() => {
                let distinct = c.counts.iter().any(|c| c.distinct);
                self.push(if distinct { "count-distinct" } else { "count" });
            }
            other => self.push(name(other)),
        }
    }
}

fn name(op: &Operator) -> &'static str {
    match op {
        Operator::Explore(_) => "explore",
        Operator::Outer(_) => "outer",
        Operator::Values(_) => "values",
        Operator::Service(_) => "service",
        Operator::Steps(_) => "steps",
        Operator::Path(_) => "path",
        Operator::Join(_) => "join",
        Operator::Apply(_) => "apply",
        Operator::Union(_) => "union",
        Operator::Extend(_) => "extend",
        Operator::Group(_) => "group",
        Operator::Reduced(_) => "reduced",
        Operator::Filter(_) => "filter",
        Operator::Distinct(_) => "distinct",
        Operator::Count(_) => "group-count",
        Operator::OrderBy(_) => "order",
        Operator::Slice(_) => "slice",
    }
}

impl Shape {
    /// The shape of a plan.
    pub fn of_plan(plan: &Plan, snapshot: &dyn Graph) -> Self {
        let mut out = ShapeText::default();
        if plan.is_ask() {
            out.push("ask ");
        }
        // `None` closes the operator whose inputs are complete. An explicit stack avoids recursion for deep trees.
        let mut open = vec![Some(&plan.root)];
        while let Some(next) = open.pop() {
            let Some(op) = next else {
                out.push(")");
                continue;
            };
            out.operator(op);
            let inputs = op.inputs();
            if inputs.is_empty() {
                out.push(";");
            } else if out.text.len() < LONGEST {
                out.push("(");
                open.push(None);
                open.extend(inputs.into_iter().rev().map(Some));
            }
        }
        let exact = fnv(&out.predicates, snapshot.identity().epoch);
        Self {
            exact: fnv(&out.text, exact),
            text: out.text,
        }
    }

    /// A shape from recorded text. `name`, that of the query, takes the place of the predicates.
    #[cfg(any(test, feature = "testing"))]
    pub fn recorded(text: &str, name: &str) -> Self {
        Self {
            text: text.into(),
            exact: fnv(name, fnv(text, 1)),
        }
    }

    /// The shape of a plan with one more operator on top.
    #[cfg(any(test, feature = "testing"))]
    pub fn inside(&self, operator: &str) -> Self {
        Self {
            text: format!("{operator}({})", self.text),
            exact: fnv(operator, self.exact),
        }
    }

    /// A hash of the shape without predicates.
    pub fn general(&self) -> u64 {
        fnv(&self.text, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_differ_by_text_and_by_predicates() {
        let (a, b) = (Shape::recorded("keys;", "x"), Shape::recorded("keys;", "y"));
        assert_eq!(a.general(), b.general());
        assert_ne!(a.exact, b.exact);
        assert_ne!(a.general(), Shape::recorded("ids;", "x").general());
        let mut long = ShapeText::default();
        (0..1000).for_each(|_| long.push("expand "));
        assert!(long.text.len() <= LONGEST);
    }
}
