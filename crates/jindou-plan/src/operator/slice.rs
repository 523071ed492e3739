//! OFFSET and LIMIT.

use super::Operator;
use super::facts::{OperatorFacts, Order, prune};
use crate::explain::{ExplainNode, Explainer};
use crate::set::SlotSet;

/// Skips `offset` rows, then returns up to `limit` rows. Over `OrderBy` it is a top-k operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// Input.
    pub input: Box<Operator>,
    /// Rows to skip.
    pub offset: u64,
    /// Maximum number of rows to return; `None` for all.
    pub limit: Option<u64>,
}

impl OperatorFacts for Slice {
    fn name(&self) -> &'static str {
        "slice"
    }

    one_input!();

    fn prune(&mut self, wanted: &SlotSet) -> SlotSet {
        prune(&mut self.input, wanted)
    }

    fn order(&self) -> Order {
        Order::Keeps
    }

    fn explain(&self, e: &Explainer<'_>, outer: f64) -> ExplainNode {
        let take = self.limit.map_or("all".into(), |l| l.to_string());
        let most = self.limit.map_or(f64::INFINITY, |l| l as f64);
        let text = format!("skip {}, take {take}", self.offset);
        ExplainNode::over(e.node(&self.input, outer), text, |n| n.min(most), 0.0)
    }
}
