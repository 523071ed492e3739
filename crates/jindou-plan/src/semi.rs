//! DISTINCT asks which rows there are, not how often, and ASK only whether there is one: a join below whose one side gives
//! nothing that is read need only say whether there is a partner, and an OPTIONAL that gives nothing is left out.

use crate::condition::add_slots;
use crate::operator::{Apply, Distinct, Filter, Join, Slice};
use crate::set::SlotSet;
use crate::{ApplyKind, JoinKind, Operator};

/// Makes semi-joins of such joins in a tree whose unread columns were dropped ([`crate::operator::prune`]). Says whether
/// there was one. `wanted` is what is read of the root's rows. O(operators × columns).
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

/// The left side of an OPTIONAL whose right side gives nothing that is needed: each left row is there once at least.
fn without_optional(op: &mut Operator, needed: &SlotSet) -> Option<Operator> {
    let (left, given) = match op {
        Operator::Join(Join {
            kind: JoinKind::Left,
            left,
            right,
            on,
            ..
        }) => {
            // What the left side binds in every row, the right side cannot change.
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

/// The rows of `op` are only looked at for what is in `needed`, and each once.
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
                // The other way round the larger side, which streams now, would be held.
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
