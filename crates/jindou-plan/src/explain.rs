//! A plan in words.

use crate::{
    Condition, EdgeList, Exploration, FarEnd, Form, GraphRef, Operand, Operator, Plan,
    PredicateRef, Relation, Slot, StartSource, Step, StepKind, TermTest, Weight, intervals, show,
};
use jindou_model::Direction;
use jindou_store::Snapshot;
use std::fmt::Write;

/// The plan as text, one step a line: what it does, estimated rows and cost, why it comes there.
#[must_use]
pub fn explain(plan: &Plan, snapshot: &Snapshot) -> String {
    let e = Explainer { plan, snapshot };
    let mut out = String::new();
    let weight = match plan.weight {
        Weight::Light => "light",
        Weight::Heavy => "heavy",
    };
    let kind = match plan.form {
        Form::Ask => "ASK",
        Form::Select => "SELECT",
        Form::Construct(_) => "CONSTRUCT",
        Form::Describe => "DESCRIBE",
    };
    let _ = writeln!(
        out,
        "{kind}, native, {weight}: about {} on one core",
        time(plan.cost)
    );
    let nothing = Exploration::default();
    let exploration = plan.exploration().unwrap_or(&nothing);
    if let Some(why) = &exploration.empty {
        let _ = writeln!(out, "  nothing matches: {why}");
    }
    for (i, step) in exploration.steps.iter().enumerate() {
        let _ = writeln!(out, "  {:>2}. {}", i + 1, e.step(step));
        for c in &step.filters {
            let _ = writeln!(out, "      keep if {}", e.condition(c));
        }
        let live: Vec<String> = step.live.iter().map(|s| e.slot(*s)).collect();
        let _ = writeln!(
            out,
            "      ~{} rows, ~{}; {}; keeps {}",
            count(step.rows),
            time(step.cost),
            step.why,
            if live.is_empty() {
                "no column".into()
            } else {
                live.join(" ")
            }
        );
    }
    e.operators(&plan.root, &mut out);
    out
}

struct Explainer<'a> {
    plan: &'a Plan,
    snapshot: &'a Snapshot,
}

impl Explainer<'_> {
    fn slot(&self, s: Slot) -> String {
        match self.plan.slots.get(usize::from(s)) {
            Some(name) if name.contains(' ') => format!("({name})"),
            Some(name) => format!("?{name}"),
            None => format!("?#{s}"),
        }
    }

    fn slots(&self, list: &[Slot]) -> String {
        list.iter()
            .map(|s| self.slot(*s))
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn operand(&self, o: Operand) -> String {
        match o {
            Operand::Slot(s) => self.slot(s),
            Operand::Const(c) => show::vertex(self.snapshot, c),
        }
    }

    fn graph(&self, g: &GraphRef) -> String {
        match g {
            GraphRef::Default => String::new(),
            GraphRef::Slot(s) => format!(" in graph {}", self.slot(*s)),
            GraphRef::Bind(s, list) => {
                let of = list
                    .as_ref()
                    .map_or(String::new(), |l| format!(" (one of {})", l.len()));
                format!(" in each graph {}{of}", self.slot(*s))
            }
            other => format!(" in {}", show::graph(self.snapshot, other)),
        }
    }

    fn edge(&self, l: &EdgeList, other: &str) -> String {
        let p = show::predicate(self.snapshot, l.predicate);
        let anchor = self.operand(l.anchor);
        let graph = self.graph(&l.graph);
        match l.direction {
            Direction::Out => format!("{anchor} {p} {other}{graph}"),
            Direction::In => format!("{other} {p} {anchor}{graph}"),
        }
    }

    fn source(&self, to: Option<Slot>, source: &StartSource) -> String {
        let name = to.map_or(String::new(), |s| self.slot(s));
        match source {
            StartSource::Unit => "one empty row".into(),
            StartSource::Within => format!("{name} by intervals"),
            StartSource::List(l) => self.edge(l, &name),
            StartSource::Keys {
                predicate,
                direction,
                graph,
            } => {
                let p = show::predicate(self.snapshot, *predicate);
                let end = if *direction == Direction::Out {
                    "subjects"
                } else {
                    "objects"
                };
                format!("{name} from the {end} of {p}{}", self.graph(graph))
            }
            StartSource::Graphs(None) => format!("{name} from the named graphs"),
            StartSource::Graphs(Some(l)) => format!("{name} from {} named graphs", l.len()),
        }
    }

    fn predicate(&self, p: PredicateRef) -> String {
        match p {
            PredicateRef::Bind(s) | PredicateRef::Slot(s) => self.slot(s),
        }
    }

    fn step(&self, step: &Step) -> String {
        let inside = |w: &Option<crate::Intervals>| {
            w.as_ref().map_or(String::new(), |w| {
                format!(
                    ", within {} ids in {} intervals",
                    count(intervals::count(w)),
                    w.len()
                )
            })
        };
        match &step.kind {
            StepKind::Start { to, source, within } => {
                format!("start: {}{}", self.source(*to, source), inside(within))
            }
            StepKind::Cross { to, source, within } => {
                format!(
                    "product: {}{}",
                    self.source(Some(*to), source),
                    inside(within)
                )
            }
            StepKind::Expand { to, lists, within } => {
                let to = self.slot(*to);
                let each: Vec<String> = lists.iter().map(|l| self.edge(l, &to)).collect();
                let verb = if each.len() > 1 {
                    "intersect"
                } else {
                    "expand"
                };
                format!("{verb}: {}{}", each.join(" ∩ "), inside(within))
            }
            StepKind::Check { list, other } => {
                format!("check: {}", self.edge(list, &self.operand(*other)))
            }
            StepKind::Restrict { slot, within } => {
                format!(
                    "restrict: {}{}",
                    self.slot(*slot),
                    inside(&Some(within.clone()))
                )
            }
            StepKind::ExpandAny {
                anchor,
                direction,
                predicate,
                far,
                graph,
            } => {
                let (a, p) = (self.operand(*anchor), self.predicate(*predicate));
                let f = match far {
                    FarEnd::Bind(s) => self.slot(*s),
                    FarEnd::Known(o) => self.operand(*o),
                };
                let graph = self.graph(graph);
                match direction {
                    Direction::Out => format!("expand any: {a} {p} {f}{graph}, from the subject"),
                    Direction::In => format!("expand any: {f} {p} {a}{graph}, from the object"),
                }
            }
            StepKind::ScanAll {
                subject,
                predicate,
                object,
                graph,
            } => format!(
                "scan: {} {} {}{}",
                self.slot(*subject),
                self.predicate(*predicate),
                self.slot(*object),
                self.graph(graph)
            ),
        }
    }

    fn condition(&self, c: &Condition) -> String {
        let join = |list: &[Condition], with: &str| {
            let each: Vec<String> = list.iter().map(|c| self.condition(c)).collect();
            format!("({})", each.join(with))
        };
        match c {
            Condition::Same(a, b) => format!("{} is {}", self.operand(*a), self.operand(*b)),
            Condition::Compare(s, relation, bytes) => {
                let sign = match relation {
                    Relation::Equal => "=",
                    Relation::NotEqual => "!=",
                    Relation::Less => "<",
                    Relation::LessOrEqual => "<=",
                    Relation::Greater => ">",
                    Relation::GreaterOrEqual => ">=",
                };
                format!("{} {sign} {} by rank", self.slot(*s), show::term(bytes))
            }
            Condition::Kind(s, test) => {
                let what = match test {
                    TermTest::Iri => "an IRI",
                    TermTest::Blank => "a blank node",
                    TermTest::Literal => "a literal",
                    TermTest::Numeric => "a number",
                };
                format!("{} is {what}", self.slot(*s))
            }
            Condition::Bound(s) => format!("{} is bound", self.slot(*s)),
            Condition::And(list) if list.is_empty() => "true".into(),
            Condition::Or(list) if list.is_empty() => "false".into(),
            Condition::And(list) => join(list, " and "),
            Condition::Or(list) => join(list, " or "),
            Condition::Not(c) => format!("not {}", self.condition(c)),
            Condition::General(g) => format!("{} on terms", g.expression),
        }
    }

    /// From the inside out.
    fn operators(&self, at: &Operator, out: &mut String) {
        let (input, text) = match at {
            Operator::Explore(_) => return,
            Operator::Filter(i, c) => (i, format!("keep if {}", self.condition(c))),
            Operator::Distinct(i, by) => (i, format!("distinct {}", self.slots(by))),
            Operator::Count {
                input,
                group,
                counts,
            } => {
                let each: Vec<String> = counts
                    .iter()
                    .map(|c| {
                        let of = match c.of {
                            Some(s) => self.slot(s),
                            None => "rows".into(),
                        };
                        let distinct = if c.distinct { "distinct " } else { "" };
                        format!("{} = count of {distinct}{of}", self.slot(c.to))
                    })
                    .collect();
                let by = if group.is_empty() {
                    String::new()
                } else {
                    format!(" by {}", self.slots(group))
                };
                (input, format!("{}{by}", each.join(", ")))
            }
            Operator::OrderBy(i, keys) => {
                let each: Vec<String> = keys
                    .iter()
                    .map(|(s, descending)| {
                        format!(
                            "{}{}",
                            self.slot(*s),
                            if *descending { " descending" } else { "" }
                        )
                    })
                    .collect();
                (i, format!("order by {}", each.join(", ")))
            }
            // Not planned yet.
            Operator::Outer(_)
            | Operator::Values { .. }
            | Operator::Service(_)
            | Operator::Steps { .. }
            | Operator::Path { .. }
            | Operator::Join { .. }
            | Operator::Apply { .. }
            | Operator::Union(_)
            | Operator::Extend { .. }
            | Operator::Group { .. }
            | Operator::Reduced(..) => return,
            Operator::Slice {
                input,
                offset,
                limit,
            } => {
                let limit = limit.map_or("all".into(), |l| l.to_string());
                (input, format!("skip {offset}, take {limit}"))
            }
        };
        self.operators(input, out);
        let _ = writeln!(out, "  then {text}");
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
