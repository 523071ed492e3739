//! Compilation of conditions that ids or value ranks decide: `sameTerm`, its negation, and any combination of tests of
//! one slot against constants, which becomes a set of intervals of ids. Comparisons with numbers become intervals of
//! value ranks. Tests of a term's kind, expressions, and comparisons inside OR and NOT are left to the CPU.

use super::{CompiledStep, DeviceWithin, StepCompiler, StepWork};
use crate::ranks::{DeviceRanks, is_by_rank};
use jindou_model::{Error, Result};
use jindou_plan::{Condition, Intervals, Operand, Slot};

/// Largest number of intervals in a set of ids.
const MOST_INTERVALS: usize = 4096;
/// Every id but 0, which stands for unbound: slots of an exploration are always bound.
const ALL: [u32; 2] = [1, u32::MAX];

/// True for conditions that the device can test.
pub(crate) fn is_decided_by_ids(c: &Condition) -> bool {
    match c {
        Condition::And(all) => all.iter().all(is_decided_by_ids),
        Condition::Bound(_) | Condition::Same(..) => true,
        Condition::Compare(_, relation, constant) => is_by_rank(*relation, constant),
        Condition::Not(inner)
            if matches!(**inner, Condition::Same(Operand::Slot(_), Operand::Slot(_))) =>
        {
            true
        }
        _ => ids(c, &mut None).is_some_and(|ids| ids.len() <= MOST_INTERVALS),
    }
}

impl<'a> StepCompiler<'a> {
    /// Appends device steps that keep the rows for which a condition is true.
    pub(super) fn condition(
        &mut self,
        c: &Condition,
        out: &mut Vec<CompiledStep<'a>>,
    ) -> Result<()> {
        match c {
            Condition::And(all) => return all.iter().try_for_each(|c| self.condition(c, out)),
            Condition::Bound(_) => return Ok(()),
            Condition::Not(inner) => {
                if let Condition::Same(a @ Operand::Slot(_), b @ Operand::Slot(_)) = **inner {
                    out.push(same(a, b, true));
                    return Ok(());
                }
            }
            Condition::Same(a, b) => {
                out.push(same(*a, *b, false));
                return Ok(());
            }
            Condition::Compare(slot, relation, constant) => {
                let (device, slot) = (self.device, *slot);
                let ranks =
                    DeviceRanks::new(device, self.cache, self.snapshot, *relation, constant)?;
                out.push((
                    StepWork::Compare { slot, ranks },
                    format!("compare ?{slot}"),
                ));
                return Ok(());
            }
            _ => {}
        }
        let mut slot = None;
        let ids = ids(c, &mut slot).filter(|ids| ids.len() <= MOST_INTERVALS);
        match (ids, slot) {
            (Some(ids), Some(slot)) => {
                let within = DeviceWithin::new(self.device, Some(&ids), false)?;
                out.push((
                    StepWork::Restrict { slot, within },
                    format!("restrict ?{slot}"),
                ));
                Ok(())
            }
            _ => Err(Error::Unsupported(
                "a filter that ids alone do not decide, on the GPU".into(),
            )),
        }
    }
}

fn same<'a>(left: Operand, right: Operand, negate: bool) -> CompiledStep<'a> {
    let work = StepWork::Same {
        left,
        right,
        negate,
    };
    (work, if negate { "not same" } else { "same" }.into())
}

/// The ids of one slot for which a condition is true, as intervals; `None` if it reads several slots. `slot` is set to
/// the slot that the first test reads. Tests of a bound slot never raise an error, so two-valued logic applies.
fn ids(c: &Condition, slot: &mut Option<Slot>) -> Option<Intervals> {
    match c {
        Condition::Same(Operand::Slot(s), Operand::Const(v))
        | Condition::Same(Operand::Const(v), Operand::Slot(s)) => {
            if *slot.get_or_insert(*s) != *s || *v == u32::MAX {
                return None;
            }
            Some(vec![[*v, *v + 1]])
        }
        Condition::Bound(s) => (*slot.get_or_insert(*s) == *s).then(|| vec![ALL]),
        Condition::Not(c) => Some(complement(&ids(c, slot)?)),
        Condition::Or(list) => union(list, slot),
        // A conjunction is the complement of the union of the complements (De Morgan).
        Condition::And(list) => {
            let not: Vec<Condition> = list
                .iter()
                .map(|c| Condition::Not(Box::new(c.clone())))
                .collect();
            Some(complement(&union(&not, slot)?))
        }
        Condition::Same(..)
        | Condition::Compare(..)
        | Condition::Kind(..)
        | Condition::General(_) => None,
    }
}

fn union(list: &[Condition], slot: &mut Option<Slot>) -> Option<Intervals> {
    let mut all = Vec::new();
    for c in list {
        all.extend(ids(c, slot)?);
    }
    all.sort_unstable();
    let mut out: Intervals = Vec::new();
    for [a, b] in all {
        match out.last_mut() {
            Some(last) if a <= last[1] => last[1] = last[1].max(b),
            _ => out.push([a, b]),
        }
    }
    Some(out)
}

fn complement(list: &Intervals) -> Intervals {
    let mut out = Vec::new();
    let mut from = ALL[0];
    for &[a, b] in list {
        if from < a {
            out.push([from, a]);
        }
        from = from.max(b);
    }
    if from < ALL[1] {
        out.push([from, ALL[1]]);
    }
    out
}

/// Appends the slots that a condition reads.
pub(super) fn slots(c: &Condition, out: &mut Vec<Slot>) {
    match c {
        Condition::Same(a, b) => {
            for o in [a, b] {
                if let Operand::Slot(s) = o {
                    out.push(*s);
                }
            }
        }
        Condition::Compare(s, ..) | Condition::Kind(s, _) | Condition::Bound(s) => out.push(*s),
        Condition::And(list) | Condition::Or(list) => list.iter().for_each(|c| slots(c, out)),
        Condition::Not(c) => slots(c, out),
        Condition::General(g) => out.extend(g.variables.iter().map(|v| v.1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(slot: Slot, v: u32) -> Condition {
        Condition::Same(Operand::Slot(slot), Operand::Const(v))
    }

    #[test]
    fn conditions_on_one_slot_are_intervals() {
        let of = |c: &Condition| {
            let mut slot = None;
            ids(c, &mut slot)
        };
        let or = Condition::Or(vec![is(3, 9), is(3, 4), is(3, 5)]);
        assert_eq!(of(&or), Some(vec![[4, 6], [9, 10]]));
        let not = Condition::Not(Box::new(or.clone()));
        assert_eq!(of(&not), Some(vec![[1, 4], [6, 9], [10, u32::MAX]]));
        let and = Condition::And(vec![or.clone(), Condition::Not(Box::new(is(3, 5)))]);
        assert_eq!(of(&and), Some(vec![[4, 5], [9, 10]]));
        assert_eq!(of(&Condition::Or(vec![is(3, 1), is(4, 1)])), None);
        assert_eq!(of(&Condition::And(vec![is(3, 1), is(3, 2)])), Some(vec![]));
    }
}
