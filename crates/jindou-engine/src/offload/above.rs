//! The rows that operators need of the operator below them, where another executor runs that operator.

use crate::executor::{Needs, Repeats, Top};
use jindou_plan::operator::{ApplyKind, JoinKind};
use jindou_plan::{Aggregate, AggregateFunction, Operator, Slot};

/// The rows of an operator that the operators above it need.
#[derive(Clone, Copy, Default)]
pub(super) struct Above {
    pub needs: Needs,
    /// If the operator is an ORDER BY directly below a LIMIT: LIMIT plus OFFSET.
    sliced: Option<u64>,
}

impl Above {
    pub fn from_repeats(repeats: Repeats) -> Self {
        Self {
            needs: Needs { repeats, top: None },
            sliced: None,
        }
    }

    /// The rows of its first input that the operator needs, if `self` are the needs for its own rows.
    pub fn below(self, op: &Operator) -> Self {
        let mut below = Self::from_repeats(needed(op));
        // True if each row of the first input results in at least one row of the operator, with the same id in `slot`.
        let keeps = |slot: Slot| match op {
            Operator::Extend(e) => e.to != slot,
            Operator::Apply(a) => a.kind == ApplyKind::Left,
            Operator::Join(j) => {
                // If unbound in the input's row, the slot would get the id of the joined row.
                let is_own = j.on.iter().all(|k| k.slot != slot || k.left_bound);
                j.kind == JoinKind::Left && is_own
            }
            _ => false,
        };
        match op {
            Operator::Slice(s) => {
                let most = s.limit.map(|limit| s.offset.saturating_add(limit));
                below.sliced = most.filter(|_| matches!(*s.input, Operator::OrderBy(_)));
            }
            Operator::OrderBy(o) => {
                let top = |most, &(slot, is_descending): &(Slot, bool)| Top {
                    slot,
                    is_descending,
                    is_alone: o.keys.len() == 1,
                    most,
                };
                let first = self.sliced.zip(o.keys.first());
                below.needs.top = first.map(|(most, key)| top(most, key));
            }
            _ => below.needs.top = self.needs.top.filter(|top| keeps(top.slot)),
        }
        below
    }
}

/// How the operator allows duplicate rows of its first input to be treated.
fn needed(op: &Operator) -> Repeats {
    let counted = |once: bool| {
        if once {
            Repeats::Once
        } else {
            Repeats::Counted
        }
    };
    match op {
        Operator::Distinct(_) | Operator::Reduced(_) => Repeats::Once,
        Operator::Count(c) => counted(c.counts.iter().all(|c| c.distinct)),
        // GROUP_CONCAT would repeat the text of a counted row as often as the count says, without checks in between.
        Operator::Group(g) if g.aggregates.iter().any(joins_texts) => Repeats::Each,
        Operator::Group(g) => counted(g.aggregates.iter().all(Aggregate::is_idempotent)),
        _ => Repeats::Each,
    }
}

fn joins_texts(a: &Aggregate) -> bool {
    matches!(a.function, AggregateFunction::GroupConcat(_)) && !a.distinct
}
