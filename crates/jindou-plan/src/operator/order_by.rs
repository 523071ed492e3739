//! ORDER BY.

use super::Operator;
use super::extend::compute_above;
use super::facts::{OperatorFacts, Order, prune};
use crate::explain::{ExplainNode, Explainer};
use crate::set::SlotSet;
use crate::{Slot, cost, show, weigh};

/// Sorts by slots, in SPARQL's order; the order of ties is unspecified.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderBy {
    /// Input.
    pub input: Box<Operator>,
    /// Slots to sort by; true for descending order.
    pub keys: Vec<(Slot, bool)>,
}

impl OperatorFacts for OrderBy {
    fn name(&self) -> &'static str {
        "order by"
    }

    one_input!();

    fn prune(&mut self, wanted: &SlotSet) -> SlotSet {
        let mut needed = wanted.clone();
        self.keys.iter().for_each(|k| needed.insert(k.0));
        let used = prune(&mut self.input, &needed);
        let is_key = |slot| self.keys.iter().any(|k| k.0 == slot);
        compute_above(&mut self.input, |slot| is_key(slot) && !wanted.has(slot));
        used
    }

    fn streams(&self) -> bool {
        false
    }

    fn order(&self) -> Order {
        Order::Makes
    }

    fn own_bytes(&self, _: &mut crate::weigh::CountedTexts) -> u64 {
        weigh::list::<(Slot, bool)>(self.keys.len())
    }

    fn explain(&self, e: &Explainer<'_>, outer: f64) -> ExplainNode {
        let one = |(s, descending): &(Slot, bool)| {
            let way = if *descending { " descending" } else { "" };
            format!("{}{way}", e.slot(*s))
        };
        let each = show::list(&self.keys, ", ", one);
        let input = e.node(&self.input, outer);
        let share = cost::SORT * (2.0 + input.rows).log2();
        ExplainNode::over(input, format!("order by {each}"), |n| n, share)
    }
}
