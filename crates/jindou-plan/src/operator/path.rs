//! Property paths.

use super::Operator;
use super::facts::{EachId, OperatorFacts, RowSlots, prune};
use crate::explain::{ExplainNode, Explainer};
use crate::set::SlotSet;
use crate::{FarEnd, GraphRef, Operand, Slot, cost, parameters, weigh};
use jindou_model::PredicateId;

/// A property path as a set of pairs of vertices, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Path {
    /// An edge with this predicate; `None` for a predicate that the store lacks, which matches nothing.
    Predicate(Option<PredicateId>),
    /// The path in the opposite direction (`^`).
    Inverse(Box<Path>),
    /// Paths one after the other (`/`).
    Sequence(Vec<Path>),
    /// Alternatives (`|`).
    Alternative(Vec<Path>),
    /// `?`
    ZeroOrOne(Box<Path>),
    /// `*`
    ZeroOrMore(Box<Path>),
    /// `+`
    OneOrMore(Box<Path>),
    /// An edge in forward direction with any predicate except these (`!`).
    Except(Vec<PredicateId>),
}

/// A property path with `?`, `*` or `+`, followed from each row of the input. Known ends are bound in every row. For
/// each input row, each pair of ends is returned once.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowPath {
    /// Rows to extend; one empty row if the path has no known slot.
    pub input: Box<Operator>,
    /// The subject end.
    pub subject: FarEnd,
    /// The path.
    pub path: Path,
    /// The object end. If both ends bind the same slot, only cycles match.
    pub object: FarEnd,
    /// The graphs whose edges are followed. If both ends are free, zero-length paths exist at the nodes of these
    /// graphs.
    pub graph: GraphRef,
    /// True if the operator must test that known ends are nodes of the graphs: between two variables, a zero-length
    /// path exists only at nodes of the graph (SPARQL 1.1 §18.4). False if they certainly are, or if an end is a
    /// constant.
    pub nodes: bool,
    /// Estimated number of pairs of ends per input row.
    pub each: f64,
    /// Estimated number of visited vertices per input row.
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

    one_input!();

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
