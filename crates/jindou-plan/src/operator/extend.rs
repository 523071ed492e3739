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
}

impl OperatorFacts for Extend {
    fn name(&self) -> &'static str {
        "extend"
    }

    one_input!();

    fn binds(&self, f: &mut dyn FnMut(Slot)) {
        f(self.to);
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
        let text = format!(
            "{} = {}",
            e.slot(self.to),
            show::expression(&self.value.expression)
        );
        ExplainNode::over(e.node(&self.input, outer), text, |n| n, cost::EXPRESSION)
    }
}
