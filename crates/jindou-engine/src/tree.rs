//! The shape of an operator tree: inputs, numbers of nodes, what a dependent part reads of its outer rows.

use crate::explore::layout_after;
use jindou_model::{Error, Result};
use jindou_plan::{ApplyKind, Condition, Endpoint, FarEnd, GraphRef, JoinKind, Operator, Slot};

/// Deepest tree that is run.
const MAX_DEPTH: usize = 20_000;

/// A tree's nodes in preorder.
pub(crate) struct Nodes {
    /// Nodes of the subtree, itself included, by node.
    sizes: Vec<u32>,
    pub depth: usize,
}

impl Nodes {
    /// # Errors
    /// `Limit` for a tree deeper than any sensible query's.
    pub fn of(root: &Operator) -> Result<Self> {
        if let Operator::Explore(_) = root {
            // A light query is shorter than looking closer takes.
            return Ok(Self {
                sizes: vec![1],
                depth: 1,
            });
        }
        let mut depths: Vec<u32> = Vec::new();
        let mut depth = 0;
        let mut open = vec![(root, 1u32)];
        while let Some((op, d)) = open.pop() {
            depths.push(d);
            depth = depth.max(d as usize);
            if depth > MAX_DEPTH {
                return Err(Error::Limit(format!(
                    "the query's plan nests deeper than {MAX_DEPTH} operators; split the query"
                )));
            }
            open.extend(op.inputs().into_iter().rev().map(|i| (i, d + 1)));
        }
        let mut sizes = vec![1u32; depths.len()];
        for at in (0..depths.len()).rev() {
            let mut child = at + 1;
            while depths.get(child).is_some_and(|d| *d == depths[at] + 1) {
                sizes[at] += sizes[child];
                child += sizes[child] as usize;
            }
        }
        Ok(Self { sizes, depth })
    }

    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// The node after the subtree of `node`: the next input of the same operator, if there is one.
    pub fn after(&self, node: usize) -> usize {
        node + self.sizes.get(node).map_or(1, |s| *s as usize)
    }
}

/// True for the condition that the planner writes where nothing can match.
pub(crate) fn is_false(condition: &Condition) -> bool {
    matches!(condition, Condition::Or(list) if list.is_empty())
}

/// True if the planner saw that the operator has no rows, whatever its outer row is. Its rows' columns need not be there.
pub(crate) fn is_never(op: &Operator) -> bool {
    match op {
        Operator::Explore(e) => e.empty.is_some(),
        Operator::Values { rows, .. } => rows.is_empty(),
        Operator::Filter(input, condition) => is_false(condition) || is_never(input),
        Operator::Union(list) => list.iter().all(is_never),
        Operator::Join {
            kind, left, right, ..
        } => {
            is_never(left) || (matches!(kind, JoinKind::Inner | JoinKind::Semi) && is_never(right))
        }
        Operator::Apply {
            input, inner, kind, ..
        } => is_never(input) || (needs_inner(*kind) && is_never(inner)),
        Operator::Group { input, by, .. } => !by.is_empty() && is_never(input),
        Operator::Count { input, group, .. } => !group.is_empty() && is_never(input),
        Operator::Outer(_) | Operator::Service(_) => false,
        Operator::Steps { input, .. }
        | Operator::Path { input, .. }
        | Operator::Extend { input, .. }
        | Operator::Slice { input, .. }
        | Operator::Reduced(input, _)
        | Operator::Distinct(input, _)
        | Operator::OrderBy(input, _) => is_never(input),
    }
}

/// True if an outer row without inner rows has no row in the answer.
pub(crate) fn needs_inner(kind: ApplyKind) -> bool {
    matches!(kind, ApplyKind::Inner | ApplyKind::Semi)
}

/// True if the inner part of an `Apply` can run on many outer rows at once: it makes rows from single outer rows only.
pub(crate) fn row_wise(inner: &Operator) -> bool {
    let mut open = vec![inner];
    while let Some(op) = open.pop() {
        match op {
            Operator::Outer(_) => {}
            Operator::Values { rows, .. } if rows.is_empty() => {}
            Operator::Explore(e) if e.empty.is_some() => {}
            Operator::Filter(_, condition) if is_false(condition) => {}
            Operator::Steps { .. }
            | Operator::Path { .. }
            | Operator::Filter(..)
            | Operator::Extend { .. }
            | Operator::Union(_) => open.extend(op.inputs()),
            // Its inner part reads the inner rows: that is its own business.
            Operator::Apply { input, .. } => open.push(input),
            _ => return false,
        }
    }
    true
}

/// The outer columns that the inner part of an `Apply` reads, each once.
pub(crate) fn outer_slots(inner: &Operator) -> Vec<Slot> {
    let mut out: Vec<Slot> = Vec::new();
    let mut open = vec![inner];
    while let Some(op) = open.pop() {
        match op {
            Operator::Outer(slots) => out.extend(slots),
            Operator::Service(s) => {
                if let Endpoint::Slot(slot) = s.endpoint {
                    out.push(slot);
                }
            }
            Operator::Apply { input, .. } => open.push(input),
            _ => open.extend(op.inputs()),
        }
    }
    out.sort_unstable();
    out.dedup();
    out
}

/// The slots that leaves inside the inner part of an `Apply` bind by themselves: where the outer row has none, theirs is
/// taken.
pub(crate) fn made_slots(inner: &Operator) -> Vec<Slot> {
    let mut out: Vec<Slot> = Vec::new();
    let mut open = vec![inner];
    while let Some(op) = open.pop() {
        match op {
            Operator::Explore(_) | Operator::Values { .. } | Operator::Service(_) => {
                out.extend(slots_of(op, &[]));
            }
            Operator::Apply {
                input,
                kind: ApplyKind::Semi | ApplyKind::Anti | ApplyKind::Mark(_),
                ..
            } => open.push(input),
            _ => open.extend(op.inputs()),
        }
    }
    out
}

/// The slots of an operator's rows. `outer` are those of the rows of the nearest enclosing `Apply`.
pub(crate) fn slots_of(op: &Operator, outer: &[Slot]) -> Vec<Slot> {
    match op {
        Operator::Explore(e) if e.empty.is_some() => vec![],
        Operator::Explore(e) => layout_after(&[], &e.steps),
        Operator::Outer(slots) => common(slots, outer),
        Operator::Values { slots, .. } => slots.clone(),
        Operator::Service(s) => distinct(s.slots.iter().map(|s| s.1)),
        Operator::Steps { input, steps } => layout_after(&slots_of(input, outer), steps),
        Operator::Path {
            input,
            subject,
            object,
            graph,
            ..
        } => with(slots_of(input, outer), path_slots(subject, object, graph)),
        Operator::Filter(input, _)
        | Operator::OrderBy(input, _)
        | Operator::Slice { input, .. } => slots_of(input, outer),
        Operator::Extend { input, to, .. } => with(slots_of(input, outer), [*to]),
        Operator::Join {
            kind, left, right, ..
        } => {
            let left = slots_of(left, outer);
            match kind {
                JoinKind::Inner | JoinKind::Left => with(left, slots_of(right, outer)),
                JoinKind::Semi | JoinKind::Anti | JoinKind::Minus => left,
            }
        }
        Operator::Apply {
            input, inner, kind, ..
        } => {
            let input = slots_of(input, outer);
            match kind {
                ApplyKind::Inner | ApplyKind::Left => {
                    let inner = slots_of(inner, &input);
                    with(input, inner)
                }
                ApplyKind::Semi | ApplyKind::Anti => input,
                ApplyKind::Mark(to) => with(input, [*to]),
            }
        }
        Operator::Union(list) => list
            .iter()
            .fold(vec![], |all, i| with(all, slots_of(i, outer))),
        Operator::Group { by, aggregates, .. } => {
            distinct(by.iter().copied().chain(aggregates.iter().map(|a| a.to)))
        }
        Operator::Count { group, counts, .. } => group
            .iter()
            .copied()
            .chain(counts.iter().map(|c| c.to))
            .collect(),
        Operator::Reduced(input, slots) | Operator::Distinct(input, slots) => {
            common(slots, &slots_of(input, outer))
        }
    }
}

/// The slots that a path binds, in the order of the columns that it adds.
pub(crate) fn path_slots(subject: &FarEnd, object: &FarEnd, graph: &GraphRef) -> Vec<Slot> {
    let end = |e: &FarEnd| match e {
        FarEnd::Bind(s) => Some(*s),
        FarEnd::Known(_) => None,
    };
    let graph = match graph {
        GraphRef::Bind(s, _) => Some(*s),
        _ => None,
    };
    distinct(end(subject).into_iter().chain(end(object)).chain(graph))
}

/// The slots of `wanted` that `there` has, each once, in the order of `wanted`.
pub(crate) fn common(wanted: &[Slot], there: &[Slot]) -> Vec<Slot> {
    distinct(wanted.iter().copied().filter(|s| there.contains(s)))
}

/// The slots, those of `more` that are not there yet behind.
pub(crate) fn with(mut slots: Vec<Slot>, more: impl IntoIterator<Item = Slot>) -> Vec<Slot> {
    for s in more {
        if !slots.contains(&s) {
            slots.push(s);
        }
    }
    slots
}

fn distinct(slots: impl IntoIterator<Item = Slot>) -> Vec<Slot> {
    with(vec![], slots)
}
