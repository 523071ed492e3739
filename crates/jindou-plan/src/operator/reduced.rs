//! REDUCED.

use super::Operator;
use super::facts::{OperatorFacts, Order, common, prune};
use crate::explain::{ExplainNode, Explainer};
use crate::set::SlotSet;
use crate::{Slot, cost, weigh};

/// Keeps only these slots; may remove duplicate rows, but need not.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduced {
    /// Input.
    pub input: Box<Operator>,
    /// The columns of the result.
    pub slots: Vec<Slot>,
}

impl OperatorFacts for Reduced {
    fn name(&self) -> &'static str {
        "reduced"
    }

    one_input!();

    fn prune(&mut self, wanted: &SlotSet) -> SlotSet {
        self.slots.retain(|s| wanted.has(*s));
        let needed: SlotSet = self.slots.iter().copied().collect();
        prune(&mut self.input, &needed)
    }

    fn columns(&self) -> SlotSet {
        self.slots.iter().copied().collect()
    }

    fn layout(&self, outer: &[Slot]) -> Vec<Slot> {
        common(&self.slots, &self.input.layout(outer))
    }

    fn order(&self) -> Order {
        Order::Keeps
    }

    fn own_bytes(&self, _: &mut crate::weigh::CountedTexts) -> u64 {
        weigh::list::<Slot>(self.slots.len())
    }

    fn explain(&self, e: &Explainer<'_>, outer: f64) -> ExplainNode {
        let text = format!("reduced {}", e.slots(&self.slots));
        ExplainNode::over(e.node(&self.input, outer), text, |n| n, cost::OUT)
    }
}
