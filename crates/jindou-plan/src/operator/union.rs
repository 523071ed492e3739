//! Unions.

use super::Operator;
use super::facts::{EachInput, InputRole, OperatorFacts, prune};
use crate::explain::{ExplainNode, Explainer};
use crate::set::SlotSet;
use crate::weigh;

/// Returns all rows of all inputs; slots that an input lacks are unbound in its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Union {
    /// The inputs.
    pub inputs: Vec<Operator>,
}

impl OperatorFacts for Union {
    fn name(&self) -> &'static str {
        "union"
    }

    fn each_input<'a>(&'a self, f: &mut EachInput<'_, 'a>) {
        self.inputs.iter().for_each(|i| f(InputRole::Streams, i));
    }

    fn each_input_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Operator)) {
        self.inputs.iter_mut().for_each(f);
    }

    fn prune(&mut self, wanted: &SlotSet) -> SlotSet {
        let mut used = SlotSet::default();
        for i in &mut self.inputs {
            used.add(&prune(i, wanted));
        }
        used
    }

    fn is_never(&self) -> bool {
        self.inputs.iter().all(Operator::is_never)
    }

    fn is_by_row(&self) -> bool {
        true
    }

    fn own_bytes(&self, _: &mut crate::weigh::CountedTexts) -> u64 {
        weigh::list::<Operator>(self.inputs.capacity().saturating_sub(self.inputs.len()))
    }

    fn explain(&self, e: &Explainer<'_>, outer: f64) -> ExplainNode {
        let inputs: Vec<ExplainNode> = self.inputs.iter().map(|o| e.node(o, outer)).collect();
        ExplainNode {
            text: "union".into(),
            rows: inputs.iter().map(|n| n.rows).sum(),
            cost: inputs.iter().map(|n| n.cost).sum(),
            steps: vec![],
            inputs,
        }
    }
}
