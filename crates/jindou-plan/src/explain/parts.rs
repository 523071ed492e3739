//! Slots, edges, conditions, steps and paths as text.

use super::{Explainer, StepText, count};
use crate::{
    Aggregate, AggregateFunction, Condition, EdgeList, FarEnd, GraphRef, Operand, Path,
    PredicateRef, Relation, Slot, StartSource, Step, StepKind, TermTest, intervals, show,
};
use jindou_model::{Direction, scope};

/// Longest name of a column, in bytes.
const LONGEST_NAME: usize = 120;

impl Explainer<'_> {
    pub(crate) fn slot(&self, s: Slot) -> String {
        match self.plan.slots.get(usize::from(s)) {
            Some(name) => {
                let shown = show::bounded(name, LONGEST_NAME);
                if shown.contains(' ') {
                    format!("({shown})")
                } else {
                    format!("?{shown}")
                }
            }
            None => format!("?#{s}"),
        }
    }

    pub(crate) fn slots(&self, list: &[Slot]) -> String {
        show::list(list, " ", |s| self.slot(*s))
    }

    pub(super) fn operand(&self, o: Operand) -> String {
        match o {
            Operand::Slot(s) => self.slot(s),
            Operand::Const(c) => show::vertex(self.snapshot, c),
        }
    }

    pub(crate) fn graph(&self, g: &GraphRef) -> String {
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

    pub(super) fn edge(&self, l: &EdgeList, other: &str) -> String {
        let p = show::predicate(self.snapshot, l.predicate);
        let anchor = self.operand(l.anchor);
        let graph = self.graph(&l.graph);
        match l.direction {
            Direction::Out => format!("{anchor} {p} {other}{graph}"),
            Direction::In => format!("{other} {p} {anchor}{graph}"),
        }
    }

    pub(super) fn source(&self, to: Option<Slot>, source: &StartSource) -> String {
        let name = to.map_or(String::new(), |s| self.slot(s));
        match source {
            StartSource::Unit => "one empty row".into(),
            StartSource::IdFilter => format!("{name} by intervals"),
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

    pub(super) fn predicate(&self, p: PredicateRef) -> String {
        match p {
            PredicateRef::Bind(s) | PredicateRef::Slot(s) => self.slot(s),
        }
    }

    pub(super) fn step(&self, step: &Step) -> String {
        let inside = |w: &Option<crate::IdFilter>| {
            w.as_ref().map_or(String::new(), |w| {
                let ids = w.of_terms(self.snapshot);
                format!(
                    ", within {} ids in {} intervals{}",
                    count(intervals::count(&ids)),
                    ids.len(),
                    if w.is_exact() {
                        ""
                    } else {
                        ", touched vertices looked up"
                    }
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
                let each = show::list(lists, " ∩ ", |l| self.edge(l, &to));
                let verb = if lists.len() > 1 {
                    "intersect"
                } else {
                    "expand"
                };
                format!("{verb}: {each}{}", inside(within))
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

    pub(crate) fn condition(&self, c: &Condition) -> String {
        let join = |list: &[Condition], with: &str| {
            let each = show::list(list, with, |c| self.condition(c));
            show::expression(&format_args!("({each})"))
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
                format!(
                    "{} {sign} {} {}",
                    self.slot(*s),
                    show::term(bytes),
                    self.index(c).unwrap_or_else(|| "by value".into())
                )
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
            Condition::General(g) => format!(
                "{} {}",
                show::expression(&g.expression),
                self.index(c).unwrap_or_else(|| "on terms".into())
            ),
        }
    }

    /// The description of the index that answers a condition; `None` if no index does.
    fn index(&self, c: &Condition) -> Option<String> {
        let (_, question) = c.question()?;
        let probe = self.snapshot.vocabulary().probe(&question)?;
        Some(probe.explain())
    }

    pub(crate) fn steps(&self, steps: &[Step]) -> Vec<StepText> {
        steps
            .iter()
            .take_while(|_| !scope::was_over())
            .map(|s| StepText {
                text: self.step(s),
                filters: s.filters.iter().map(|c| self.condition(c)).collect(),
                rows: s.rows,
                cost: s.cost,
                why: s.why.clone(),
                live: show::listed(&s.live, |s| self.slot(*s)),
            })
            .collect()
    }

    pub(crate) fn end(&self, end: &FarEnd) -> String {
        match end {
            FarEnd::Bind(s) => self.slot(*s),
            FarEnd::Known(o) => self.operand(*o),
        }
    }

    pub(crate) fn path(&self, p: &Path) -> String {
        let all = |list: &[Path], with: &str| {
            let each = show::list(list, with, |p| self.path(p));
            show::expression(&format_args!("({each})"))
        };
        match p {
            Path::Predicate(Some(p)) => show::predicate(self.snapshot, *p),
            Path::Predicate(None) => "(no such predicate)".into(),
            Path::Inverse(p) => format!("^{}", self.path(p)),
            Path::Sequence(list) => all(list, "/"),
            Path::Alternative(list) => all(list, "|"),
            Path::ZeroOrOne(p) => format!("{}?", self.path(p)),
            Path::ZeroOrMore(p) => format!("{}*", self.path(p)),
            Path::OneOrMore(p) => format!("{}+", self.path(p)),
            Path::Except(list) => {
                let each = show::list(list, "|", |p| show::predicate(self.snapshot, *p));
                format!("!({each})")
            }
        }
    }

    pub(crate) fn aggregate(&self, a: &Aggregate) -> String {
        let name = match &a.function {
            AggregateFunction::CountRows | AggregateFunction::Count => "count",
            AggregateFunction::Sum => "sum",
            AggregateFunction::Avg => "average",
            AggregateFunction::Min => "minimum",
            AggregateFunction::Max => "maximum",
            AggregateFunction::Sample => "sample",
            AggregateFunction::GroupConcat(_) => "concatenation",
        };
        let of = a.of.map_or("rows".into(), |s| self.slot(s));
        let distinct = if a.distinct { "distinct " } else { "" };
        format!("{} = {name} of {distinct}{of}", self.slot(a.to))
    }
}
