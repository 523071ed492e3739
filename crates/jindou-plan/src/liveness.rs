//! Columns that nobody reads are dropped: from the top down, each operator tells its inputs what it needs.

use crate::condition::for_each_slot;
use crate::set::SlotSet;
use crate::slots::{binds, reads};
use crate::watch::Watch;
use crate::{
    ApplyKind, Condition, Endpoint, Exploration, FarEnd, GraphRef, JoinKind, Operand, Operator,
    Slot, Step,
};
use rustc_hash::FxHashMap;

fn of_condition(c: &Condition, out: &mut SlotSet) {
    for_each_slot(c, &mut |s| out.insert(s));
}

/// Fills `Step::live`, narrows `Outer` and drops BINDs, given the slots that are read above. Returns the outer slots
/// that the operator reads.
pub(crate) fn prune(op: &mut Operator, wanted: &SlotSet, watch: &Watch<'_>) -> SlotSet {
    if watch.is_over() {
        return SlotSet::default();
    }
    match op {
        Operator::Explore(e) => {
            steps(&mut e.steps, wanted, None, watch);
            SlotSet::default()
        }
        Operator::Outer(slots) => {
            slots.retain(|s| wanted.has(*s));
            slots.iter().copied().collect()
        }
        Operator::Values { .. } => SlotSet::default(),
        Operator::Service(s) => match s.endpoint {
            Endpoint::Iri(_) => SlotSet::default(),
            Endpoint::Slot(slot) => SlotSet::one(slot),
        },
        Operator::Steps { input, steps: list } => {
            // Before the first step the input's columns are there; which ones, the input knows.
            let needed = steps(list, wanted, Some(()), watch);
            let used = prune(input, &needed, watch);
            clip(input, list);
            used
        }
        Operator::Path {
            input,
            subject,
            object,
            graph,
            ..
        } => {
            let mut needed = wanted.clone();
            for end in [subject, object] {
                match end {
                    FarEnd::Bind(s) => needed.remove(*s),
                    FarEnd::Known(Operand::Slot(s)) => needed.insert(*s),
                    FarEnd::Known(Operand::Const(_)) => {}
                }
            }
            if let GraphRef::Slot(s) = graph {
                needed.insert(*s);
            }
            prune(input, &needed, watch)
        }
        Operator::Join {
            kind,
            left,
            right,
            on,
            condition,
            equal,
        } => {
            let mut keys: SlotSet = on.iter().map(|k| k.slot).collect();
            if let Some((l, r)) = equal {
                keys.insert(*l);
                keys.insert(*r);
            }
            if let Some(c) = condition {
                of_condition(c, &mut keys);
            }
            let mut used = prune(left, &wanted.or(&keys), watch);
            let right_wanted = match kind {
                JoinKind::Inner | JoinKind::Left => wanted.or(&keys),
                JoinKind::Semi | JoinKind::Anti | JoinKind::Minus => keys,
            };
            used.add(&prune(right, &right_wanted, watch));
            used
        }
        Operator::Apply {
            input, inner, kind, ..
        } => {
            let (inner_wanted, compared) = match kind {
                ApplyKind::Inner | ApplyKind::Left => {
                    // What both find by themselves is compared.
                    let own = bound(inner).minus(&outer(inner));
                    let compared = if own.is_empty() {
                        own
                    } else {
                        own.and(&bound(input))
                    };
                    (wanted.or(&compared), compared)
                }
                ApplyKind::Semi | ApplyKind::Anti | ApplyKind::Mark(_) => Default::default(),
            };
            let used = prune(inner, &inner_wanted, watch);
            prune(input, &wanted.or(&used).or(&compared), watch)
        }
        Operator::Union(list) => list.iter_mut().fold(SlotSet::default(), |used, b| {
            let more = prune(b, wanted, watch);
            used.or(&more)
        }),
        Operator::Extend { input, to, value } => {
            if !wanted.has(*to) {
                let inner = std::mem::replace(&mut **input, Operator::Outer(vec![]));
                *op = inner;
                return prune(op, wanted, watch);
            }
            let mut needed = wanted.clone();
            needed.remove(*to);
            value.variables.iter().for_each(|v| needed.insert(v.1));
            prune(input, &needed, watch)
        }
        Operator::Group {
            input,
            by,
            aggregates,
        } => {
            let mut needed: SlotSet = by.iter().copied().collect();
            aggregates.retain(|a| wanted.has(a.to));
            for a in aggregates {
                a.of.iter().chain(&a.row).for_each(|s| needed.insert(*s));
            }
            prune(input, &needed, watch)
        }
        Operator::Count {
            input,
            group,
            counts,
        } => {
            let mut needed: SlotSet = group.iter().copied().collect();
            for c in counts {
                c.of.iter().chain(&c.row).for_each(|s| needed.insert(*s));
            }
            prune(input, &needed, watch)
        }
        Operator::Filter(input, c) => {
            let mut needed = wanted.clone();
            of_condition(c, &mut needed);
            prune(input, &needed, watch)
        }
        Operator::Distinct(input, slots) => {
            let needed: SlotSet = slots.iter().copied().collect();
            prune(input, &needed, watch)
        }
        Operator::Reduced(input, slots) => {
            slots.retain(|s| wanted.has(*s));
            let needed: SlotSet = slots.iter().copied().collect();
            prune(input, &needed, watch)
        }
        Operator::OrderBy(input, keys) => {
            let mut needed = wanted.clone();
            keys.iter().for_each(|k| needed.insert(k.0));
            prune(input, &needed, watch)
        }
        Operator::Slice { input, .. } => prune(input, wanted, watch),
    }
}

/// Slots that the operator or one below it binds. O(operators).
fn bound(op: &Operator) -> SlotSet {
    let mut out = SlotSet::default();
    let mut open = vec![op];
    while let Some(op) = open.pop() {
        match op {
            Operator::Explore(Exploration { steps, .. }) | Operator::Steps { steps, .. } => {
                for step in steps {
                    binds(&step.kind, &mut |s| out.insert(s));
                }
            }
            Operator::Outer(slots) | Operator::Values { slots, .. } => {
                slots.iter().for_each(|s| out.insert(*s));
            }
            Operator::Service(s) => s.slots.iter().for_each(|s| out.insert(s.1)),
            Operator::Path {
                subject, object, ..
            } => {
                for end in [subject, object] {
                    if let FarEnd::Bind(s) = end {
                        out.insert(*s);
                    }
                }
            }
            Operator::Extend { to, .. } => out.insert(*to),
            Operator::Group { aggregates, .. } => aggregates.iter().for_each(|a| out.insert(a.to)),
            Operator::Count { counts, .. } => counts.iter().for_each(|c| out.insert(c.to)),
            Operator::Apply {
                kind: ApplyKind::Mark(s),
                ..
            } => out.insert(*s),
            _ => {}
        }
        open.extend(op.inputs());
    }
    out
}

/// Slots that the inner part of an apply gets from the outer row. O(operators).
fn outer(op: &Operator) -> SlotSet {
    let mut out = SlotSet::default();
    let mut open = vec![op];
    while let Some(op) = open.pop() {
        match op {
            Operator::Outer(slots) => slots.iter().for_each(|s| out.insert(*s)),
            // The rows of its inner part are others.
            Operator::Apply { input, .. } => open.push(input),
            op => open.extend(op.inputs()),
        }
    }
    out
}

/// Fills `live` from the last step to the first; returns what the steps need of the rows they go on from.
fn steps(list: &mut [Step], wanted: &SlotSet, goes_on: Option<()>, watch: &Watch<'_>) -> SlotSet {
    // Slots that steps bind, up to the one looked at, and how many do.
    let mut there = SlotSet::default();
    let mut times: FxHashMap<Slot, usize> = FxHashMap::default();
    for step in list.iter() {
        binds(&step.kind, &mut |s| {
            there.insert(s);
            *times.entry(s).or_default() += 1;
        });
    }
    let mut needed = wanted.clone();
    for step in list.iter_mut().rev() {
        if watch.is_over() {
            break;
        }
        step.live = match goes_on {
            // Also columns of the input: `clip` takes those off that it does not have.
            Some(()) => needed.to_vec(),
            None => needed.and(&there).to_vec(),
        };
        watch.take(size_of_val(&*step.live));
        for c in &step.filters {
            of_condition(c, &mut needed);
        }
        binds(&step.kind, &mut |s| {
            needed.remove(s);
            if let Some(n) = times.get_mut(&s) {
                *n -= 1;
                if *n == 0 {
                    there.remove(s);
                }
            }
        });
        reads(&step.kind, &mut |s| needed.insert(s));
        if goes_on.is_none() {
            needed = needed.and(&there);
        }
    }
    needed
}

/// Takes slots off `live` that neither the input nor a step before binds.
fn clip(input: &Operator, list: &mut [Step]) {
    let mut there = columns(input);
    for step in list {
        binds(&step.kind, &mut |s| there.insert(s));
        step.live.retain(|s| there.has(*s));
        there = step.live.iter().copied().collect();
    }
}

/// The columns of an operator's rows.
pub(crate) fn columns(op: &Operator) -> SlotSet {
    let list = |slots: &[Slot]| slots.iter().copied().collect::<SlotSet>();
    match op {
        Operator::Explore(e) => e.steps.last().map_or(SlotSet::default(), |s| list(&s.live)),
        Operator::Steps { steps, input } => steps
            .last()
            .map_or_else(|| columns(input), |s| list(&s.live)),
        Operator::Outer(slots)
        | Operator::Values { slots, .. }
        | Operator::Distinct(_, slots)
        | Operator::Reduced(_, slots) => list(slots),
        Operator::Service(s) => s.slots.iter().map(|s| s.1).collect(),
        Operator::Path {
            input,
            subject,
            object,
            ..
        } => {
            let mut out = columns(input);
            for end in [subject, object] {
                if let FarEnd::Bind(s) = end {
                    out.insert(*s);
                }
            }
            out
        }
        Operator::Join {
            kind, left, right, ..
        } => match kind {
            JoinKind::Inner | JoinKind::Left => columns(left).or(&columns(right)),
            JoinKind::Semi | JoinKind::Anti | JoinKind::Minus => columns(left),
        },
        Operator::Apply {
            input, inner, kind, ..
        } => {
            let mut out = columns(input);
            match kind {
                ApplyKind::Inner | ApplyKind::Left => out.add(&columns(inner)),
                ApplyKind::Mark(s) => out.insert(*s),
                ApplyKind::Semi | ApplyKind::Anti => {}
            }
            out
        }
        Operator::Union(parts) => parts
            .iter()
            .fold(SlotSet::default(), |a, p| a.or(&columns(p))),
        Operator::Extend { input, to, .. } => {
            let mut out = columns(input);
            out.insert(*to);
            out
        }
        Operator::Group { by, aggregates, .. } => by
            .iter()
            .copied()
            .chain(aggregates.iter().map(|a| a.to))
            .collect(),
        Operator::Count { group, counts, .. } => group
            .iter()
            .copied()
            .chain(counts.iter().map(|c| c.to))
            .collect(),
        Operator::Filter(input, _)
        | Operator::OrderBy(input, _)
        | Operator::Slice { input, .. } => columns(input),
    }
}
