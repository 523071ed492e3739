//! Matching of triple patterns in the store.

use super::facts::{EachId, OperatorFacts, after, steps_needed};
use crate::explain::{ExplainNode, Explainer};
use crate::set::SlotSet;
use crate::{Exploration, Slot, parameters, slots, weigh};

impl OperatorFacts for Exploration {
    fn name(&self) -> &'static str {
        "explore"
    }

    fn binds(&self, f: &mut dyn FnMut(Slot)) {
        for step in &self.steps {
            slots::binds(&step.kind, f);
        }
    }

    fn prune(&mut self, wanted: &SlotSet) -> SlotSet {
        steps_needed(&mut self.steps, wanted, SlotSet::default());
        SlotSet::default()
    }

    fn columns(&self) -> SlotSet {
        let live = self.steps.last().map(|s| s.live.as_slice());
        live.unwrap_or_default().iter().copied().collect()
    }

    fn layout(&self, _outer: &[Slot]) -> Vec<Slot> {
        if self.empty.is_some() {
            return vec![];
        }
        after(vec![], &self.steps)
    }

    fn is_never_by_itself(&self) -> bool {
        self.empty.is_some()
    }

    fn explores(&self) -> bool {
        true
    }

    fn each_id(&mut self, f: &mut EachId<'_>) {
        parameters::ids_of_steps(&mut self.steps, f);
    }

    fn own_bytes(&self, held: &mut crate::weigh::CountedTexts) -> u64 {
        weigh::steps(&self.steps, held) + self.empty.as_ref().map_or(0, |e| e.capacity() as u64)
    }

    fn explain(&self, e: &Explainer<'_>, _outer: f64) -> ExplainNode {
        let text = match &self.empty {
            Some(why) => format!("nothing matches: {why}"),
            None => "explore".into(),
        };
        let rows = self.steps.last().map_or(0.0, |s| s.rows);
        let cost = self.steps.iter().map(|s| s.cost).sum();
        ExplainNode {
            steps: e.steps(&self.steps),
            ..ExplainNode::leaf(text, rows, cost)
        }
    }
}
