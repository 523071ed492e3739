//! Property paths.

use super::Operator;
use super::facts::{EachId, EachInput, InputRole, OperatorFacts, RowSlots, prune};
use crate::explain::{ExplainNode, Explainer};
use crate::set::SlotSet;
use crate::{FarEnd, GraphRef, Operand, Slot, cost, parameters, weigh};
use jindou_model::PredicateId;

/// A property path below `?`, `*`, `+`; set semantics (pairs of ends).
#[derive(Clone, Debug, PartialEq)]
pub enum Path {
    /// One edge; `None` for a predicate that the store does not have.
    Predicate(Option<PredicateId>),
    /// Backwards.
    Inverse(Box<Path>),
    /// One after the other.
    Sequence(Vec<Path>),
    /// Alternatives.
    Alternative(Vec<Path>),
    /// `?`
    ZeroOrOne(Box<Path>),
    /// `*`
    ZeroOrMore(Box<Path>),
    /// `+`
    OneOrMore(Box<Path>),
    /// An edge of any predicate except these, forwards.
    Except(Vec<PredicateId>),
}

/// A property path with `?`, `*` or `+` in it, followed from each row of the input. Known ends are bound in every row.
/// Pairs of ends are distinct for each input row.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowPath {
    /// Rows to extend; one empty row if nothing is known.
    pub input: Box<Operator>,
    /// The subject end.
    pub subject: FarEnd,
    /// The path.
    pub path: Path,
    /// The object end. The same slot bound at both ends means a cycle.
    pub object: FarEnd,
    /// The graphs that edges belong to and, for zero-length paths with both ends free, nodes.
    pub graph: GraphRef,
    /// True if known ends must be nodes of the graphs, too: between two variables a zero-length path exists only at
    /// nodes of the graph (SPARQL 1.1 §18.4). False where that is certain anyway, or an end is a constant.
    pub nodes: bool,
    /// Estimated pairs of ends for each input row.
    pub each: f64,
    /// Estimated number of visited vertices for each input row.
    pub visited: f64,
}

impl FollowPath {
    /// Slots that it binds, each once, in the order of the columns that it adds.
    #[must_use]
    pub fn new_slots(&self) -> Vec<Slot> {
        let mut out = RowSlots::default();
        self.binds(&mut |s| out.add(s));
        out.slots
    }
}

impl OperatorFacts for FollowPath {
    fn name(&self) -> &'static str {
        "path"
    }

    fn each_input<'a>(&'a self, f: &mut EachInput<'_, 'a>) {
        f(InputRole::Streams, &self.input);
    }

    fn each_input_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Operator)) {
        f(&mut self.input);
    }

    fn binds(&self, f: &mut dyn FnMut(Slot)) {
        for end in [&self.subject, &self.object] {
            if let FarEnd::Bind(s) = end {
                f(*s);
            }
        }
        if let GraphRef::Bind(s, _) = self.graph {
            f(s);
        }
    }

    fn prune(&mut self, wanted: &SlotSet) -> SlotSet {
        let mut needed = wanted.clone();
        for end in [&self.subject, &self.object] {
            match end {
                FarEnd::Bind(s) => needed.remove(*s),
                FarEnd::Known(Operand::Slot(s)) => needed.insert(*s),
                FarEnd::Known(Operand::Const(_)) => {}
            }
        }
        if let GraphRef::Slot(s) = self.graph {
            needed.insert(s);
        }
        prune(&mut self.input, &needed)
    }

    fn is_by_row(&self) -> bool {
        true
    }

    fn explores(&self) -> bool {
        true
    }

    fn each_id(&mut self, f: &mut EachId<'_>) {
        parameters::ids_of_end(&mut self.subject, f);
        parameters::ids_of_end(&mut self.object, f);
        parameters::ids_of_graph(&mut self.graph, f);
    }

    fn own_bytes(&self, _: &mut crate::weigh::CountedTexts) -> u64 {
        weigh::path(&self.path)
    }

    fn explain(&self, e: &Explainer<'_>, outer: f64) -> ExplainNode {
        let text = format!(
            "path: {} {} {}{}",
            e.end(&self.subject),
            e.path(&self.path),
            e.end(&self.object),
            e.graph(&self.graph)
        );
        let input = e.node(&self.input, outer);
        ExplainNode::over(input, text, |n| n * self.each, self.visited * cost::PATH)
    }
}
