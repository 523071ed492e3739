//! Compilation of GROUP BY and COUNT as the last device step: the device counts the rows of each distinct combination
//! of some columns, and only the combinations with their counts are copied back.

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

/// Slots of the rows that are copied back, above all slots of plans. `LOW` and `HIGH` are the two words of a
/// combination's count.
pub(crate) const NUMBER: Slot = Slot::MAX;
pub(crate) const LOW: Slot = Slot::MAX - 1;
pub(crate) const HIGH: Slot = Slot::MAX - 2;
/// The ids with the smallest and the largest value of [`GroupPlan::best`] in a combination.
pub(crate) const FIRST: Slot = Slot::MAX - 5;
pub(crate) const LAST: Slot = Slot::MAX - 6;

/// A GROUP BY, compiled for a device.
pub(crate) struct GroupPlan {
    /// Columns whose ids form the combinations, and how ids are numbered; the addresses are filled in at run time.
    pub columns: Vec<(Slot, GroupColumnParams)>,
    /// Columns that may be unbound, of which only whether they are bound matters.
    pub tested: Vec<Slot>,
    /// Columns that are always bound and whose ids do not matter.
    pub sure: Vec<Slot>,
    /// The column of which only the smallest and largest values are needed, and the ranks by which numbers are
    /// compared.
    pub best: Option<(Slot, Arc<RankTable>)>,
    /// True if the last attempt met a term without a rank in that column.
    pub unranked: Cell<bool>,
    /// Estimated number of rows to be grouped.
    pub rows: f64,
    /// Number of slots of each hash table at the next attempt, as a power of two.
    pub log_slots: Cell<u32>,
    /// True if the last attempt filled a hash table. The run is then repeated with more slots.
    pub full: Cell<bool>,
}

impl GroupPlan {
    /// Number of possible combinations, saturating.
    pub fn combinations(&self) -> u64 {
        let widths = self.columns.iter().map(|(_, c)| width(c));
        let ids = widths.fold(1u64, u64::saturating_mul);
        ids.saturating_mul(1 << self.tested.len())
    }

    /// Slots of the rows that are copied back, in this order.
    pub fn output(&self) -> Vec<Slot> {
        let ids = self.columns.iter().map(|c| c.0);
        let tested = self.tested.iter().copied();
        let ends = self.best.iter().flat_map(|_| [FIRST, LAST]);
        ids.chain(tested).chain(ends).chain([LOW, HIGH]).collect()
    }
}

/// Number of different values of a column, unbound included.
pub(crate) fn width(c: &GroupColumnParams) -> u64 {
    1 + u64::from(c.dense) + u64::from(c.tail)
}

/// How the ids of a slot are numbered: by an interval of the base's ids that contains all of them, and the tail's ids.
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

/// Upper bound on the number of combinations of ids that the rows of an operator can have in these slots.
pub(crate) fn combinations(op: &Operator, ids: &[Slot], snapshot: &dyn Graph) -> f64 {
    let widths = ids.iter().map(|s| width(&column(op, *s, snapshot)) as f64);
    widths.product()
}

/// Estimated number of rows of an operator.
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
    /// Appends the step that counts the rows of `op` by combination. `rows` are the slots that `op` binds.
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
                "this many GROUP BY variables on the GPU".into(),
            ));
        }
        let best = match best {
            None => None,
            Some(slot) if rows.contains(&slot) => {
                Some((slot, self.cache.ranks_of(self.device, self.snapshot)?))
            }
            Some(_) => {
                return Err(Error::Unsupported(
                    "MIN or MAX of an unbound variable on the GPU".into(),
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

/// The numbering of a column that contains numbers from 0 to `numbers - 1` rather than ids; they are used unchanged.
pub(crate) fn plain(operand: params::OperandParams, numbers: u64) -> GroupColumnParams {
    GroupColumnParams {
        operand,
        first: 1,
        dense: numbers.saturating_sub(1) as u32,
        ..bytemuck::Zeroable::zeroed()
    }
}
