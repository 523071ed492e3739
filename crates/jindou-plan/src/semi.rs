//! Semi-joins. DISTINCT ignores how often rows occur, and ASK only tests whether there is a row. Below them, a join
//! with a side whose columns nothing reads only has to test whether rows have a partner, and an OPTIONAL whose columns
//! nothing reads can be removed.

use crate::condition::add_slots;
use crate::operator::{Apply, Distinct, Filter, Join, Slice};
use crate::set::SlotSet;
use crate::{ApplyKind, JoinKind, Operator};

/// Replaces joins by semi-joins, and removes OPTIONALs, in a tree without unread columns ([`crate::operator::prune`]).
/// Returns true if it changed anything. `wanted` are the slots of the root's rows that are read. O(operators ×
/// columns).
pub(crate) fn reduce(root: &mut Operator, wanted: &SlotSet) -> bool {
    let mut changed = false;
    if let Operator::Slice(Slice {
        input,
        offset: 0,
        limit: Some(1),
    }) = root
    {
        changed |= partners(input, wanted.clone());
    }
    root.walk_mut(&mut |op| {
        if let Operator::Distinct(Distinct { input, slots }) = op {
            let needed = slots.iter().copied().collect();
            changed |= partners(input, needed);
        }
    });
    changed
}

/// The left side of an OPTIONAL whose right side binds no slot in `needed`: it can replace the OPTIONAL, which returns
/// each left row at least once.
fn without_optional(op: &mut Operator, needed: &SlotSet) -> Option<Operator> {
    let (left, given) = match op {
        Operator::Join(Join {
            kind: JoinKind::Left,
            left,
            right,
            on,
            ..
        }) => {
            // The right side cannot change slots that the left side binds in every row.
            let sure = on.iter().filter(|k| k.left_bound).map(|k| k.slot);
            (left, right.columns().minus(&sure.collect()))
        }
        Operator::Apply(Apply {
            kind: ApplyKind::Left,
            input,
            inner,
            ..
        }) => (input, inner.columns()),
        _ => return None,
    };
    (!given.meets(needed)).then(|| left.take())
}

/// As [`reduce`] below `op`, of whose rows only the slots in `needed` are read, and whose duplicates do not matter.
fn partners(mut op: &mut Operator, mut needed: SlotSet) -> bool {
    let mut changed = false;
    loop {
        while let Some(left) = without_optional(op, &needed) {
            *op = left;
            changed = true;
        }
        match op {
            Operator::Filter(Filter { input, condition }) => {
                add_slots(condition, &mut needed);
                op = input;
            }
            Operator::Union(union) => {
                for branch in &mut union.inputs {
                    changed |= partners(branch, needed.clone());
                }
                return changed;
            }
            Operator::Join(Join {
                kind: kind @ JoinKind::Inner,
                left,
                right,
                on,
                condition: None,
                matches,
                either,
            }) if on.iter().all(|k| k.left_bound && k.right_bound) => {
                let mut keys: SlotSet = on.iter().map(|k| k.slot).collect();
                // A semi-join with exchanged sides would have to store the larger side, whose rows now pass through.
                if right.columns().minus(&keys).meets(&needed) {
                    return changed;
                }
                let compared = matches.iter().chain(&*either);
                compared.for_each(|m| keys.insert(m.left));
                *kind = JoinKind::Semi;
                changed = true;
                needed.add(&keys);
                op = left;
            }
            _ => return changed,
        }
    }
}
