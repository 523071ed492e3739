//! BIND.

use super::Operator;
use super::facts::{OperatorFacts, Order, prune};
use crate::explain::{ExplainNode, Explainer};
use crate::set::SlotSet;
use crate::{GeneralExpression, Slot, cost, show, weigh};

/// Binds `to` to the value of an expression; an error leaves it unbound.
#[derive(Clone, Debug, PartialEq)]
pub struct Extend {
    /// Input.
    pub input: Box<Operator>,
    /// The new slot.
    pub to: Slot,
    /// The expression.
    pub value: GeneralExpression,
    /// True if the next operator above that is not a BIND computes the expression itself, since nothing else reads the
    /// value. Then no row has a column for the slot, and the value needs no id.
    pub is_computed_above: bool,
}

/// Marks the BINDs directly below an operator whose slots satisfy `is_own`, which nothing but that operator reads, as
/// computed by the operator. A BIND that another one reads, or whose expression reads a slot that a BIND above it binds
/// (as an outer row of EXISTS may), remains an operator.
pub(super) fn compute_above(mut input: &mut Operator, is_own: impl Fn(Slot) -> bool) {
    let (mut read, mut bound) = (SlotSet::default(), SlotSet::default());
    while let Operator::Extend(e) = input {
        let reads = || e.value.variables.iter().map(|v| v.1);
        e.is_computed_above = is_own(e.to) && !read.has(e.to) && !reads().any(|s| bound.has(s));
        reads().for_each(|s| read.insert(s));
        bound.insert(e.to);
        input = &mut e.input;
    }
}

impl OperatorFacts for Extend {
    fn name(&self) -> &'static str {
        "extend"
    }

    one_input!();

    fn binds(&self, f: &mut dyn FnMut(Slot)) {
        if !self.is_computed_above {
            f(self.to);
        }
    }

    fn prune(&mut self, wanted: &SlotSet) -> SlotSet {
        let mut needed = wanted.clone();
        needed.remove(self.to);
        self.value.variables.iter().for_each(|v| needed.insert(v.1));
        prune(&mut self.input, &needed)
    }

    fn is_unread(&self, wanted: &SlotSet) -> bool {
        !wanted.has(self.to)
    }

    fn is_by_row(&self) -> bool {
        true
    }

    fn order(&self) -> Order {
        Order::Keeps
    }

    fn own_bytes(&self, held: &mut crate::weigh::CountedTexts) -> u64 {
        weigh::general(&self.value, held)
    }

    fn explain(&self, e: &Explainer<'_>, outer: f64) -> ExplainNode {
        let value = show::expression(&self.value.expression);
        let place = match self.is_computed_above {
            true => ", computed above",
            false => "",
        };
        let text = format!("{} = {value}{place}", e.slot(self.to));
        ExplainNode::over(e.node(&self.input, outer), text, |n| n, cost::EXPRESSION)
    }
}
