//! Comparing alternative plans over the same input without copying the input's operators.

use super::Built;
use crate::operator::{self, Operator};
use crate::{Condition, Slot, Step};

/// Weight of operators up to which they are copied, since that is simpler.
const SMALL: usize = 32;

/// Operators removed from a [`Built`], which temporarily contains a placeholder (a shell) in their place.
pub(crate) struct TakenOperators {
    op: Option<Operator>,
    shell: Slot,
}

impl Built {
    /// Removes the operators if they are expensive to copy. What remains, with a placeholder, is copied for each
    /// alternative; [`Self::refilled`] puts the operators back into the chosen one. `number` distinguishes placeholders
    /// in one tree.
    pub(crate) fn hollowed(&mut self, number: Slot) -> TakenOperators {
        // Plans never have this many variables, so the slot is unused.
        let shell = Slot::MAX - number;
        let op = is_large(&self.op).then(|| {
            let values = operator::Values {
                slots: vec![shell],
                rows: vec![],
            };
            std::mem::replace(&mut self.op, values.into())
        });
        TakenOperators { op, shell }
    }

    pub(crate) fn refilled(mut self, mut taken: TakenOperators) -> Self {
        if taken.op.is_some() {
            fill(&mut self.op, &mut taken);
        }
        self
    }
}

/// Puts the operators back in place of their placeholder. Recurses through the operators above the placeholder.
fn fill(op: &mut Operator, taken: &mut TakenOperators) {
    if let Operator::Values(v) = op
        && v.slots == [taken.shell]
    {
        if let Some(real) = taken.op.take() {
            *op = real;
        }
        return;
    }
    let mut here = false;
    op.each_input_mut(&mut |i| {
        if taken.op.is_some() {
            fill(i, taken);
            here |= taken.op.is_none();
        }
    });
    if here {
        join_lists(op);
    }
}

/// Merges steps over steps into one list, and conditions over conditions.
fn join_lists(op: &mut Operator) {
    match op {
        Operator::Steps(over) => {
            let steps = match &mut *over.input {
                Operator::Explore(e) if e.empty.is_none() => &mut e.steps,
                Operator::Steps(s) => &mut s.steps,
                _ => return,
            };
            steps.append(&mut over.steps);
            *op = over.input.take();
        }
        // A filter that nothing passes stays separate, so that operators above recognize it ([`super::filtered`]).
        Operator::Filter(over) if over.condition.is_false() => {}
        Operator::Filter(over) => {
            let Operator::Filter(operator::Filter {
                condition: Condition::And(list),
                ..
            }) = &mut *over.input
            else {
                return;
            };
            list.push(std::mem::replace(
                &mut over.condition,
                Condition::And(vec![]),
            ));
            *op = over.input.take();
        }
        _ => {}
    }
}

/// Returns true for operators that are expensive to copy. O(1).
fn is_large(op: &Operator) -> bool {
    let steps = |steps: &[Step]| {
        let filters = steps.iter().take(8 * SMALL).map(|s| s.filters.len());
        steps.len() / 8 + filters.sum::<usize>()
    };
    let parts = |c: &Condition| match c {
        Condition::And(list) | Condition::Or(list) => list.len(),
        _ => 1,
    };
    let (mut weight, mut open) = (0, vec![op]);
    while let Some(op) = open.pop() {
        weight += 1 + match op {
            Operator::Explore(e) => steps(&e.steps),
            Operator::Steps(s) => steps(&s.steps),
            Operator::Values(v) => v.rows.len() / 8,
            Operator::Filter(f) => parts(&f.condition),
            Operator::Union(u) => u.inputs.len(),
            _ => 0,
        };
        if weight > SMALL {
            return true;
        }
        op.each_input(&mut |_, i| open.push(i));
    }
    false
}
