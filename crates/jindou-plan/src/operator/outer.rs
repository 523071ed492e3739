//! The row of an enclosing `Apply`.

use super::facts::{OperatorFacts, common};
use crate::explain::{ExplainNode, Explainer, none_if_empty};
use crate::set::SlotSet;
use crate::{Slot, weigh};

/// The rows of the nearest enclosing [`super::Apply`], restricted to these columns. Occurs only inside its `inner`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outer {
    /// The columns.
    pub slots: Vec<Slot>,
}

impl OperatorFacts for Outer {
    fn name(&self) -> &'static str {
        "outer rows"
    }

    fn binds(&self, f: &mut dyn FnMut(Slot)) {
        self.slots.iter().for_each(|s| f(*s));
    }

    fn outer_slots(&self) -> Vec<Slot> {
        self.slots.clone()
    }

    fn prune(&mut self, wanted: &SlotSet) -> SlotSet {
        self.slots.retain(|s| wanted.has(*s));
        self.slots.iter().copied().collect()
    }

    fn layout(&self, outer: &[Slot]) -> Vec<Slot> {
        common(&self.slots, outer)
    }

    fn is_by_row(&self) -> bool {
        true
    }

    fn own_bytes(&self, _: &mut crate::weigh::CountedTexts) -> u64 {
        weigh::list::<Slot>(self.slots.len())
    }

    fn explain(&self, e: &Explainer<'_>, outer: f64) -> ExplainNode {
        let columns = none_if_empty(e.slots(&self.slots), "no column");
        ExplainNode::leaf(format!("the outer row: {columns}"), outer, 0.0)
    }
}
