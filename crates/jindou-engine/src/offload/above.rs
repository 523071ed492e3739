//! Needs of the operators above for the rows of an operator that another executor runs.

use crate::executor::{Needs, Repeats, Top};
use jindou_plan::operator::{ApplyKind, JoinKind};
use jindou_plan::{Aggregate, AggregateFunction, Operator, Slot};

/// Needs of the operators above for an operator's rows.
#[derive(Clone, Copy, Default)]
pub(super) struct Above {
    pub needs: Needs,
    /// Number of rows of an ORDER BY that are shown or skipped, if that comes next.
    sliced: Option<u64>,
}

impl Above {
    pub fn from_repeats(repeats: Repeats) -> Self {
        Self {
            needs: Needs { repeats, top: None },
            sliced: None,
        }
    }

    /// The needs below the operator, for its first input.
    pub fn below(self, op: &Operator) -> Self {
        let mut below = Self::from_repeats(needed(op));
        // Each row of the input gives at least one of these rows, with all its columns.
        let keeps = |slot: Slot| match op {
            Operator::Extend(e) => e.to != slot,
            Operator::Apply(a) => a.kind == ApplyKind::Left,
            Operator::Join(j) => {
                // If unbound there, it would get the other side's value.
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

/// Treatment of duplicate rows by the operator.
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
        // Concatenated texts would be repeated as often as they are counted, all at once.
        Operator::Group(g) if g.aggregates.iter().any(joins_texts) => Repeats::Each,
        Operator::Group(g) => counted(g.aggregates.iter().all(Aggregate::is_idempotent)),
        _ => Repeats::Each,
    }
}

fn joins_texts(a: &Aggregate) -> bool {
    matches!(a.function, AggregateFunction::GroupConcat(_)) && !a.distinct
}
