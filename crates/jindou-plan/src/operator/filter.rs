//! FILTER.

use super::Operator;
use super::facts::{EachId, OperatorFacts, Order, prune};
use crate::condition::selectivity;
use crate::explain::{ExplainNode, Explainer};
use crate::set::SlotSet;
use crate::{Condition, condition, cost, parameters, weigh};

/// Keeps rows for which the condition is true.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// Input.
    pub input: Box<Operator>,
    /// The condition.
    pub condition: Condition,
}

impl OperatorFacts for Filter {
    fn name(&self) -> &'static str {
        "filter"
    }

    one_input!();

    fn prune(&mut self, wanted: &SlotSet) -> SlotSet {
        let mut needed = wanted.clone();
        condition::add_slots(&self.condition, &mut needed);
        prune(&mut self.input, &needed)
    }

    fn is_never_by_itself(&self) -> bool {
        self.condition.is_false()
    }

    fn is_by_row(&self) -> bool {
        true
    }

    fn order(&self) -> Order {
        Order::Keeps
    }

    fn each_id(&mut self, f: &mut EachId<'_>) {
        parameters::ids_of_condition(&mut self.condition, f);
    }

    fn own_bytes(&self, held: &mut crate::weigh::CountedTexts) -> u64 {
        weigh::condition(&self.condition, held)
    }

    fn explain(&self, e: &Explainer<'_>, outer: f64) -> ExplainNode {
        let share = selectivity(&self.condition);
        let text = format!("keep if {}", e.condition(&self.condition));
        let each = cost::condition(&self.condition);
        ExplainNode::over(e.node(&self.input, outer), text, |n| n * share, each)
    }
}
