//! Exploration that extends the rows of another operator.

use super::Operator;
use super::facts::{EachId, OperatorFacts, after, needed_before, prune, steps_needed};
use crate::explain::{ExplainNode, Explainer};
use crate::set::SlotSet;
use crate::{Slot, Step, parameters, slots, weigh};

/// An exploration that extends the input's rows (a bind join); it has no `Start` step. Every slot that a step reads is
/// bound in every row of the input. Duplicate rows are extended separately.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// Rows to extend.
    pub input: Box<Operator>,
    /// The steps, at least one.
    pub steps: Vec<Step>,
}

impl OperatorFacts for Steps {
    fn name(&self) -> &'static str {
        "explore on"
    }

    one_input!();

    fn binds(&self, f: &mut dyn FnMut(Slot)) {
        for step in &self.steps {
            slots::binds(&step.kind, f);
        }
    }

    fn prune(&mut self, wanted: &SlotSet) -> SlotSet {
        let needed = needed_before(&self.steps, wanted);
        let used = prune(&mut self.input, &needed);
        // The input's columns are known only after it was pruned.
        steps_needed(&mut self.steps, wanted, self.input.columns());
        used
    }

    fn columns(&self) -> SlotSet {
        match self.steps.last() {
            Some(s) => s.live.iter().copied().collect(),
            None => self.input.columns(),
        }
    }

    fn layout(&self, outer: &[Slot]) -> Vec<Slot> {
        after(self.input.layout(outer), &self.steps)
    }

    fn is_by_row(&self) -> bool {
        true
    }

    fn explores(&self) -> bool {
        true
    }

    fn each_id(&mut self, f: &mut EachId<'_>) {
        parameters::ids_of_steps(&mut self.steps, f);
    }

    fn own_bytes(&self, held: &mut crate::weigh::CountedTexts) -> u64 {
        weigh::steps(&self.steps, held)
    }

    fn explain(&self, e: &Explainer<'_>, outer: f64) -> ExplainNode {
        let i = e.node(&self.input, outer);
        ExplainNode {
            text: "go on from each row".into(),
            rows: self.steps.last().map_or(i.rows, |s| s.rows),
            cost: i.cost + self.steps.iter().map(|s| s.cost).sum::<f64>(),
            steps: e.steps(&self.steps),
            inputs: vec![i],
        }
    }
}
