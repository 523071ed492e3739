//! GROUP BY.

use super::Operator;
use super::facts::{EachInput, Facts, Role, Row, prune};
use crate::explain::{Explainer, Node};
use crate::set::SlotSet;
use crate::{Slot, cost, show, weigh};

/// One aggregate.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// Where the value goes.
    pub to: Slot,
    /// The function that it computes.
    pub function: AggregateFunction,
    /// The input: a slot (expressions were bound to one by `Extend`); `None` only for `CountRows`. Unbound is an error or absent,
    /// which the functions treat as the standard says.
    pub of: Option<Slot>,
    /// Over distinct values.
    pub distinct: bool,
    /// The visible slots, for `COUNT(DISTINCT *)`.
    pub row: Vec<Slot>,
}

impl Aggregate {
    /// True if rows that are the same may be taken once: it looks at distinct values, or for one of them.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        let looks_for_one = matches!(
            self.function,
            AggregateFunction::Min | AggregateFunction::Max | AggregateFunction::Sample
        );
        self.distinct || looks_for_one
    }
}

/// SPARQL's set functions.
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

/// Groups by slots and aggregates. No group slots: one row, also for no input.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Input.
    pub input: Box<Operator>,
    /// Grouping slots; unbound is a value like any other.
    pub by: Vec<Slot>,
    /// Aggregates.
    pub aggregates: Vec<Aggregate>,
}

impl Facts for Group {
    fn name(&self) -> &'static str {
        "group"
    }

    fn each_input<'a>(&'a self, f: &mut EachInput<'_, 'a>) {
        f(Role::Streams, &self.input);
    }

    fn each_input_mut<'a>(&'a mut self, f: &mut dyn FnMut(&'a mut Operator)) {
        f(&mut self.input);
    }

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
        let mut out = Row::default();
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

    fn own_bytes(&self, _: &mut crate::weigh::Held) -> u64 {
        let rows = self
            .aggregates
            .iter()
            .map(|a| weigh::list::<Slot>(a.row.len()));
        weigh::list::<Slot>(self.by.len())
            + weigh::list::<Aggregate>(self.aggregates.len())
            + rows.sum::<u64>()
    }

    fn explain(&self, e: &Explainer<'_>, outer: f64) -> Node {
        let each = show::list(&self.aggregates, ", ", |a| e.aggregate(a));
        let text = format!("group{}: {each}", e.by(&self.by));
        let groups = |n| cost::groups(n, self.by.len());
        Node::over(e.node(&self.input, outer), text, groups, cost::GROUP)
    }
}
