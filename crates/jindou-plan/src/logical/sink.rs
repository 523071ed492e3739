//! Pushes filters down as far as their slots are certain to be bound: all conditions of a group together, in one walk.
//!
//! A condition over a UNION is tested in each branch, and a condition over a join in each part that binds its slots.
//! That is better than testing it above, unless there are too many copies: a thousand conditions in a thousand branches
//! are a million tests. So the total weight of additional copies is limited ([`MOST_REPEATED`]); conditions beyond that
//! are tested above.

use super::{LogicalNode, NodeKind};
use crate::expression::Expr;
use crate::keyed;
use crate::set::SlotSet;
use crate::{ApplyKind, Slot};
use jindou_model::scope;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Largest total weight of additional copies of conditions in one part of a query, on top of [`REPEATED_A_NODE`] for
/// each of its nodes.
const MOST_REPEATED: usize = 1 << 14;
/// Weight of additional copies that each node of the part allows.
const REPEATED_A_NODE: usize = 4;
/// Number of conditions up to which a list is searched rather than indexed.
const FEW: usize = 16;
/// Largest product of a join's parts and conditions for which every condition is tried at every part.
const EACH: usize = 1 << 14;
/// In a larger join, the number of parts at which a condition is tried.
const TRIED: usize = 16;

/// Conditions that are being pushed down. Their values depend only on their slots (no RAND or the like).
struct SinkingConditions {
    /// The conditions in the order of the query; `None` for those that were taken out.
    list: Vec<Option<Arc<Expr>>>,
    left: usize,
    /// A superset of the slots that they read.
    slots: SlotSet,
    /// Positions of the conditions that read each slot, if there are many conditions.
    readers: Option<FxHashMap<Slot, Vec<usize>>>,
    /// Conditions that read no slot.
    constant: Vec<Arc<Expr>>,
}

impl SinkingConditions {
    fn new(conditions: Vec<Arc<Expr>>) -> Self {
        let mut out = Self {
            list: Vec::with_capacity(conditions.len()),
            left: 0,
            slots: SlotSet::default(),
            readers: (conditions.len() > FEW).then(FxHashMap::default),
            constant: vec![],
        };
        for c in conditions {
            if c.variables.is_empty() {
                out.constant.push(c);
                continue;
            }
            for (_, slot) in c.variables.iter() {
                out.slots.insert(*slot);
                if let Some(readers) = &mut out.readers {
                    readers.entry(*slot).or_default().push(out.list.len());
                }
            }
            out.list.push(Some(c));
        }
        out.left = out.list.len();
        out
    }

    fn is_empty(&self) -> bool {
        self.left == 0 && self.constant.is_empty()
    }

    /// Takes out the conditions that read a slot outside `there`.
    fn split_off(&mut self, there: &SlotSet) -> Vec<Arc<Expr>> {
        let missing = self.slots.minus(there);
        if missing.is_empty() {
            return vec![];
        }
        self.slots = self.slots.and(there);
        let mut out = vec![];
        match &self.readers {
            Some(readers) => {
                let readers = missing.iter().filter_map(|s| readers.get(&s));
                let mut places: Vec<usize> = readers.flatten().copied().collect();
                places.sort_unstable();
                out.extend(places.into_iter().filter_map(|i| self.list[i].take()));
            }
            None => {
                for place in &mut self.list {
                    let misses = |c: &mut Arc<Expr>| c.variables.iter().any(|v| missing.has(v.1));
                    out.extend(place.take_if(misses));
                }
            }
        }
        self.left -= out.len();
        out
    }

    /// The remaining conditions that read at least one slot.
    fn open(&self) -> impl Iterator<Item = &Arc<Expr>> {
        self.list.iter().flatten()
    }

    /// All conditions, those without slots last.
    fn all(&self) -> Vec<Arc<Expr>> {
        self.open().chain(&self.constant).cloned().collect()
    }

    fn into_all(self) -> impl Iterator<Item = Arc<Expr>> {
        self.list.into_iter().flatten().chain(self.constant)
    }
}

/// Weight of additional copies of conditions that a walk may still make.
struct RepeatBudget(usize);

impl RepeatBudget {
    /// Deducts `each` for every one of `places` beyond the first; returns false, deducting nothing, if too little is
    /// left.
    fn take(&mut self, places: usize, each: usize) -> bool {
        let more = places.saturating_sub(1).saturating_mul(each);
        let fits = more <= self.0;
        if fits {
            self.0 -= more;
        }
        fits
    }
}

impl LogicalNode {
    /// Keeps solutions for which all conditions are true, and pushes the conditions down.
    pub(crate) fn filter(mut self, conditions: Vec<Arc<Expr>>) -> Self {
        if conditions.is_empty() {
            return self;
        }
        let (mut here, sinking): (Vec<_>, Vec<_>) = conditions.into_iter().partition(|c| c.per_row);
        if !sinking.is_empty() {
            let most = MOST_REPEATED + REPEATED_A_NODE * self.size.nodes;
            let room = most.saturating_sub(self.size.repeated);
            let mut left = RepeatBudget(room);
            here.extend(self.absorb(SinkingConditions::new(sinking), &mut left));
            self.size.repeated += room - left.0;
        }
        self.filter_here(here)
    }

    /// As [`Self::filter`], for conditions that are being pushed down.
    fn sink(&mut self, set: SinkingConditions, room: &mut RepeatBudget) {
        let here = self.absorb(set, room);
        if !here.is_empty() {
            self.replace(|node| node.filter_here(here));
        }
    }

    /// Pushes conditions below the node's operator and returns those that cannot be pushed down.
    fn absorb(&mut self, mut set: SinkingConditions, room: &mut RepeatBudget) -> Vec<Arc<Expr>> {
        let mut here = vec![];
        // The product of conditions and branches is limited only by time.
        if scope::is_over() {
            return here;
        }
        match &mut self.kind {
            NodeKind::Bgp(b) => {
                here = set.split_off(&self.certain);
                b.filters.extend(set.into_all());
            }
            NodeKind::Join(parts) => {
                here = into_parts(parts, set, room);
            }
            NodeKind::Union(branches) => {
                here = split_heavy(&mut set, branches.len(), room);
                self.uses.add(&set.slots);
                if set.is_empty() {
                    return here;
                }
                // A slot that a branch lacks is unbound in the branch, just as it is in the branch's rows above the
                // union.
                let all = set.all();
                for b in branches.iter_mut() {
                    b.sink(SinkingConditions::new(all.clone()), room);
                }
            }
            NodeKind::LeftJoin { left: inner, .. } | NodeKind::Minus { left: inner, .. } => {
                here = set.split_off(&inner.certain);
                inner.sink_some(set, room);
            }
            NodeKind::Apply {
                input,
                kind: ApplyKind::Semi | ApplyKind::Anti | ApplyKind::Mark(_),
                ..
            } => {
                here = set.split_off(&input.certain);
                input.sink_some(set, room);
            }
            NodeKind::Extend { inner, to, value } if !value.per_row => {
                if inner.certain.has(*to) {
                    let mut there = inner.certain.clone();
                    there.remove(*to);
                    here = set.split_off(&there);
                } else {
                    here = set.split_off(&inner.certain);
                }
                inner.sink_some(set, room);
                // With the variable replaced by its expression, the condition may become a join key of two parts below.
                let mut through = vec![];
                here.retain(|c| {
                    let made = keyed::through(c, *to, value);
                    let made = made.filter(|f| room.take(2, f.weight()));
                    let stays = made.is_none();
                    through.extend(made.map(Arc::new));
                    stays
                });
                for c in &through {
                    self.uses.add(&c.slots());
                }
                inner.sink_some(SinkingConditions::new(through), room);
            }
            NodeKind::Filter { inner, filters } => {
                let mut stay = set.split_off(&inner.certain);
                stay.append(&mut set.constant);
                if !set.is_empty() {
                    stay.extend(inner.absorb(set, room));
                }
                // Conditions that cannot be pushed down are added to this node, so that filters do not pile up.
                for c in &stay {
                    self.uses.add(&c.slots());
                }
                filters.append(&mut stay);
            }
            NodeKind::Distinct { inner, .. }
            | NodeKind::Reduced { inner, .. }
            | NodeKind::OrderBy { inner, .. }
            | NodeKind::Project(inner) => {
                here = set.split_off(&inner.certain);
                here.append(&mut set.constant);
                inner.sink_some(set, room);
            }
            NodeKind::Group { inner, by, .. } => {
                let keys: SlotSet = by.iter().copied().collect();
                here = set.split_off(&inner.certain.and(&keys));
                here.append(&mut set.constant);
                inner.sink_some(set, room);
            }
            _ => here.extend(set.into_all()),
        }
        here
    }

    fn sink_some(&mut self, set: SinkingConditions, room: &mut RepeatBudget) {
        if !set.is_empty() {
            self.sink(set, room);
        }
    }

    fn replace(&mut self, f: impl FnOnce(Self) -> Self) {
        let own = std::mem::replace(self, Self::values(vec![], vec![]));
        *self = f(own);
    }

    /// Keeps solutions for which all conditions are true, without pushing the conditions down.
    fn filter_here(mut self, mut conditions: Vec<Arc<Expr>>) -> Self {
        if conditions.is_empty() {
            return self;
        }
        let mut reads = SlotSet::default();
        conditions.iter().for_each(|c| reads.add(&c.slots()));
        if let NodeKind::Filter { filters, .. } = &mut self.kind {
            filters.append(&mut conditions);
            self.uses.add(&reads);
            return self;
        }
        // `uses` of the inner node does not include the slots that the conditions read.
        let mut out = self.above(|inner| NodeKind::Filter {
            inner,
            filters: conditions,
        });
        out.uses.add(&reads);
        out
    }
}

/// Takes out the conditions that would be too expensive to copy into this many branches; deducts the others from
/// `room`.
fn split_heavy(
    set: &mut SinkingConditions,
    branches: usize,
    room: &mut RepeatBudget,
) -> Vec<Arc<Expr>> {
    let mut out = vec![];
    for place in &mut set.list {
        out.extend(place.take_if(|c| !room.take(branches, c.weight())));
    }
    set.left -= out.len();
    let (constant, heavy) = std::mem::take(&mut set.constant)
        .into_iter()
        .partition(|c| room.take(branches, c.weight()));
    set.constant = constant;
    out.extend::<Vec<_>>(heavy);
    out
}

/// Pushes each condition into all parts of a join that are certain to bind its slots, or only into the first of them if
/// copies would cost too much. Returns the conditions that no part can take.
fn into_parts(
    parts: &mut [LogicalNode],
    mut set: SinkingConditions,
    room: &mut RepeatBudget,
) -> Vec<Arc<Expr>> {
    let constant = std::mem::take(&mut set.constant);
    if set.left.saturating_mul(parts.len()) > EACH {
        let mut here = into_one_part(parts, set, room);
        here.extend(constant);
        return here;
    }
    let mut taken: Vec<usize> = vec![0; set.list.len()];
    for p in parts.iter_mut() {
        let mut own = vec![];
        for (c, taken) in set.list.iter().zip(&mut taken) {
            let Some(c) = c else { continue };
            let binds = c.variables.iter().all(|v| p.certain.has(v.1));
            if binds && (*taken == 0 || room.take(2, c.weight())) {
                *taken += 1;
                own.push(c.clone());
            }
        }
        if !own.is_empty() {
            p.sink(SinkingConditions::new(own), room);
        }
    }
    let rest = set.list.into_iter().zip(taken);
    let rest = rest.filter_map(|(c, taken)| c.filter(|_| taken == 0));
    rest.chain(constant).collect()
}

/// As [`into_parts`] for many conditions and parts: each condition goes to one part.
fn into_one_part(
    parts: &mut [LogicalNode],
    set: SinkingConditions,
    room: &mut RepeatBudget,
) -> Vec<Arc<Expr>> {
    // For each condition, only the first parts that bind its rarest slot are considered.
    let mut binders: FxHashMap<Slot, Vec<usize>> = FxHashMap::default();
    for (i, p) in parts.iter().enumerate() {
        for slot in p.certain.and(&set.slots).iter() {
            let binders = binders.entry(slot).or_default();
            if binders.len() < TRIED {
                binders.push(i);
            }
        }
    }
    let mut own: FxHashMap<usize, Vec<Arc<Expr>>> = FxHashMap::default();
    let mut here = vec![];
    for c in set.list.into_iter().flatten() {
        let binders = c.variables.iter().map(|v| binders.get(&v.1));
        let fewest = binders.min_by_key(|b| b.map_or(0, Vec::len)).flatten();
        let binds = |i: &&usize| c.variables.iter().all(|v| parts[**i].certain.has(v.1));
        match fewest.and_then(|b| b.iter().find(binds)) {
            Some(i) => own.entry(*i).or_default().push(c),
            None => here.push(c),
        }
    }
    for (i, p) in parts.iter_mut().enumerate() {
        if let Some(own) = own.remove(&i) {
            p.sink(SinkingConditions::new(own), room);
        }
    }
    here
}
