//! GROUP BY.

use super::Operator;
use super::facts::{OperatorFacts, RowSlots, prune};
use crate::explain::{ExplainNode, Explainer};
use crate::set::SlotSet;
use crate::{Slot, cost, show, weigh};

/// One aggregate.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// Slot for the value.
    pub to: Slot,
    /// The function.
    pub function: AggregateFunction,
    /// The aggregated slot; an expression is bound to one by `Extend` before. `None` only for `CountRows`. An unbound
    /// value stands for an error or a missing value, which the function treats as SPARQL 1.1 §11 says.
    pub of: Option<Slot>,
    /// True for DISTINCT.
    pub distinct: bool,
    /// The visible slots, for `COUNT(DISTINCT *)`.
    pub row: Vec<Slot>,
}

impl Aggregate {
    /// True if removing duplicate rows from the input does not change the result.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        let looks_for_one = matches!(
            self.function,
            AggregateFunction::Min | AggregateFunction::Max | AggregateFunction::Sample
        );
        self.distinct || looks_for_one
    }
}

/// The aggregate functions of SPARQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AggregateFunction {
    /// `COUNT(*)`
    CountRows,
    /// `COUNT`
    Count,
    /// `SUM`
    Sum,
    /// `AVG`
    Avg,
    /// `MIN`
    Min,
    /// `MAX`
    Max,
    /// `SAMPLE`
    Sample,
    /// `GROUP_CONCAT` with its separator.
    GroupConcat(String),
}

/// GROUP BY. Without group slots there is one group, also if there are no rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Input.
    pub input: Box<Operator>,
    /// Grouping slots; unbound values are equal to one another.
    pub by: Vec<Slot>,
    /// Aggregates.
    pub aggregates: Vec<Aggregate>,
}

impl OperatorFacts for Group {
    fn name(&self) -> &'static str {
        "group"
    }

    one_input!();

    fn binds(&self, f: &mut dyn FnMut(Slot)) {
        self.aggregates.iter().for_each(|a| f(a.to));
    }

    fn prune(&mut self, wanted: &SlotSet) -> SlotSet {
        let mut needed: SlotSet = self.by.iter().copied().collect();
        self.aggregates.retain(|a| wanted.has(a.to));
        for a in &self.aggregates {
            a.of.iter().chain(&a.row).for_each(|s| needed.insert(*s));
        }
        prune(&mut self.input, &needed)
    }

    fn columns(&self) -> SlotSet {
        self.layout(&[]).into_iter().collect()
    }

    fn layout(&self, _outer: &[Slot]) -> Vec<Slot> {
        let mut out = RowSlots::default();
        let aggregates = self.aggregates.iter().map(|a| a.to);
        let slots = self.by.iter().copied().chain(aggregates);
        slots.for_each(|s| out.add(s));
        out.slots
    }

    fn is_never(&self) -> bool {
        !self.by.is_empty() && self.input.is_never()
    }

    fn streams(&self) -> bool {
        false
    }

    fn own_bytes(&self, _: &mut crate::weigh::CountedTexts) -> u64 {
        let rows = self
            .aggregates
            .iter()
            .map(|a| weigh::list::<Slot>(a.row.len()));
        weigh::list::<Slot>(self.by.len())
            + weigh::list::<Aggregate>(self.aggregates.len())
            + rows.sum::<u64>()
    }

    fn explain(&self, e: &Explainer<'_>, outer: f64) -> ExplainNode {
        let each = show::list(&self.aggregates, ", ", |a| e.aggregate(a));
        let text = format!("group{}: {each}", e.by(&self.by));
        let groups = |n| cost::groups(n, self.by.len());
        ExplainNode::over(e.node(&self.input, outer), text, groups, cost::GROUP)
    }
}
