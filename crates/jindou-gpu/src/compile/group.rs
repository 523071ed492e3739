//! GROUP BY and COUNT as the last step of a program: equal rows of some columns are counted, and only the distinct
//! combinations are copied back, each with its count.

use super::hull::hull;
use super::tree::of_operator;
use super::{DeviceStep, StepCompiler, StepWork};
use crate::params::{self, GroupColumnParams, MAX_GROUP, MAX_TESTED};
use crate::ranks::{RankTable, tail_of};
use jindou_graph::Graph;
use jindou_model::{Error, FIRST_TAIL_ID, Result};
use jindou_plan::{Operator, Slot};
use std::cell::Cell;
use std::sync::Arc;

/// Slots of the rows that are copied back: a combination's number, and the words of its counter.
pub(crate) const NUMBER: Slot = Slot::MAX;
pub(crate) const LOW: Slot = Slot::MAX - 1;
pub(crate) const HIGH: Slot = Slot::MAX - 2;
/// The slots of a combination's smallest and largest values.
pub(crate) const FIRST: Slot = Slot::MAX - 5;
pub(crate) const LAST: Slot = Slot::MAX - 6;

/// A GROUP BY as a device runs it.
pub(crate) struct GroupPlan {
    /// Columns whose ids form the combinations, with the numbering of their ids; without addresses.
    pub columns: Vec<(Slot, GroupColumnParams)>,
    /// Columns for which only bound or unbound matters, if they may be unbound.
    pub tested: Vec<Slot>,
    /// Columns that are always bound and whose values do not matter.
    pub sure: Vec<Slot>,
    /// The column of which only the smallest and largest values are needed, and the ranks of numbers.
    pub best: Option<(Slot, Arc<RankTable>)>,
    /// True if that column had a term without a rank in the last attempt.
    pub unranked: Cell<bool>,
    /// Approximate number of rows.
    pub rows: f64,
    /// Number of slots of a hash table, as a power of two, at the next attempt.
    pub log_slots: Cell<u32>,
    /// True if the last attempt needed more slots than it had.
    pub full: Cell<bool>,
}

impl GroupPlan {
    /// Number of possible combinations.
    pub fn combinations(&self) -> u64 {
        let widths = self.columns.iter().map(|(_, c)| width(c));
        let ids = widths.fold(1u64, u64::saturating_mul);
        ids.saturating_mul(1 << self.tested.len())
    }

    /// Slots of the rows that are copied back.
    pub fn output(&self) -> Vec<Slot> {
        let ids = self.columns.iter().map(|c| c.0);
        let tested = self.tested.iter().copied();
        let ends = self.best.iter().flat_map(|_| [FIRST, LAST]);
        ids.chain(tested).chain(ends).chain([LOW, HIGH]).collect()
    }
}

/// Number of different values of a column.
pub(crate) fn width(c: &GroupColumnParams) -> u64 {
    1 + u64::from(c.dense) + u64::from(c.tail)
}

/// The numbering of a slot's ids in the rows of an operator.
fn column(op: &Operator, slot: Slot, snapshot: &dyn Graph) -> GroupColumnParams {
    let [first, end] = hull(op, slot, snapshot);
    GroupColumnParams {
        first,
        dense: end.saturating_sub(first),
        first_tail: FIRST_TAIL_ID,
        tail: tail_of(snapshot),
        ..bytemuck::Zeroable::zeroed()
    }
}

/// Number of combinations that rows of an operator can have in these slots.
pub(crate) fn combinations(op: &Operator, ids: &[Slot], snapshot: &dyn Graph) -> f64 {
    let widths = ids.iter().map(|s| width(&column(op, *s, snapshot)) as f64);
    widths.product()
}

/// Approximate number of rows of an operator.
fn rows_of(op: &Operator) -> f64 {
    let mut at = op;
    loop {
        let last = match at {
            Operator::Explore(e) => e.steps.last(),
            Operator::Steps(s) => s.steps.last(),
            _ => None,
        };
        if let Some(step) = last {
            return step.rows;
        }
        match at.inputs().first() {
            Some(below) => at = *below,
            None => return 1.0,
        }
    }
}

impl<'a> StepCompiler<'a> {
    /// Appends the step that counts the rows of an operator, whose slots are `rows`.
    pub(super) fn groups(
        &mut self,
        op: &Operator,
        (ids, tested, best): (&[Slot], &[Slot], Option<Slot>),
        rows: &[Slot],
        out: &mut Vec<DeviceStep<'a>>,
    ) -> Result<GroupPlan> {
        let of = |slot: &Slot| (*slot, column(op, *slot, self.snapshot));
        let there = ids.iter().filter(|s| rows.contains(s) && best != Some(**s));
        let columns: Vec<(Slot, GroupColumnParams)> = there.map(of).collect();
        let there = tested.iter().copied().filter(|s| rows.contains(s));
        let (tested, sure): (Vec<Slot>, Vec<Slot>) = there.partition(|s| self.maybe.contains(s));
        if columns.len() > MAX_GROUP || tested.len() > MAX_TESTED {
            return Err(Error::Unsupported(
                "this many grouping variables on the GPU".into(),
            ));
        }
        let best = match best {
            None => None,
            Some(slot) if rows.contains(&slot) => {
                Some((slot, self.cache.ranks_of(self.device, self.snapshot)?))
            }
            Some(_) => {
                return Err(Error::Unsupported(
                    "the least of an unbound variable on the GPU".into(),
                ));
            }
        };
        let mut slots: Vec<Slot> = columns.iter().map(|c| c.0).collect();
        slots.extend(best.as_ref().map(|b| b.0));
        out.push(of_operator((
            StepWork::Group {
                ids: slots,
                tested: tested.clone(),
            },
            "group".into(),
        )));
        Ok(GroupPlan {
            columns,
            tested,
            sure,
            best,
            unranked: Cell::new(false),
            rows: rows_of(op),
            log_slots: Cell::new(0),
            full: Cell::new(false),
        })
    }
}

/// A column of numbers from 0 on, which are used as they are.
pub(crate) fn plain(operand: params::OperandParams, numbers: u64) -> GroupColumnParams {
    GroupColumnParams {
        operand,
        first: 1,
        dense: numbers.saturating_sub(1) as u32,
        ..bytemuck::Zeroable::zeroed()
    }
}
