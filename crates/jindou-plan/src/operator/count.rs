//! GROUP BY whose aggregates are all counts.

use super::Operator;
use super::facts::{OperatorFacts, prune};
use crate::explain::{ExplainNode, Explainer};
use crate::set::SlotSet;
use crate::{Slot, cost, show, weigh};

/// One COUNT.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// Slot for the number (a query-local `xsd:integer` term).
    pub to: Slot,
    /// The slot that is counted; `None` for `COUNT(*)`.
    pub of: Option<Slot>,
    /// True to count distinct values, or, for `COUNT(*)`, distinct rows over the slots in `row`.
    pub distinct: bool,
    /// The visible slots, for `COUNT(DISTINCT *)`.
    pub row: Vec<Slot>,
}

/// GROUP BY with counts only. Without group slots there is one group, also if there are no rows.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupCount {
    /// Input.
    pub input: Box<Operator>,
    /// The slots to group by.
    pub group: Vec<Slot>,
    /// Counts.
    pub counts: Vec<Count>,
}

impl OperatorFacts for GroupCount {
    fn name(&self) -> &'static str {
        "count"
    }

    one_input!();

    fn binds(&self, f: &mut dyn FnMut(Slot)) {
        self.counts.iter().for_each(|c| f(c.to));
    }

    fn prune(&mut self, _wanted: &SlotSet) -> SlotSet {
        let mut needed: SlotSet = self.group.iter().copied().collect();
        for c in &self.counts {
            c.of.iter().chain(&c.row).for_each(|s| needed.insert(*s));
        }
        prune(&mut self.input, &needed)
    }

    fn columns(&self) -> SlotSet {
        self.layout(&[]).into_iter().collect()
    }

    fn layout(&self, _outer: &[Slot]) -> Vec<Slot> {
        let counts = self.counts.iter().map(|c| c.to);
        self.group.iter().copied().chain(counts).collect()
    }

    fn is_never(&self) -> bool {
        !self.group.is_empty() && self.input.is_never()
    }

    fn streams(&self) -> bool {
        false
    }

    fn own_bytes(&self, _: &mut crate::weigh::CountedTexts) -> u64 {
        weigh::list::<Slot>(self.group.len()) + weigh::list::<Count>(self.counts.len())
    }

    fn explain(&self, e: &Explainer<'_>, outer: f64) -> ExplainNode {
        let one = |c: &Count| {
            let of = c.of.map_or("rows".into(), |s| e.slot(s));
            let distinct = if c.distinct { "distinct " } else { "" };
            format!("{} = count of {distinct}{of}", e.slot(c.to))
        };
        let each = show::list(&self.counts, ", ", one);
        let text = format!("{each}{}", e.by(&self.group));
        let groups = |n| cost::groups(n, self.group.len());
        ExplainNode::over(e.node(&self.input, outer), text, groups, cost::OUT)
    }
}
