//! Joins of very many parts: one order, found in time roughly linear in the query's length.

use super::{Filters, ROW_AHEAD, score};
use crate::build::{Built, PlanBuilder, hash_join, is_safe, row_of};
use crate::cost;
use crate::expression::Expr;
use crate::keyed::KeyedCondition;
use crate::logical::LogicalNode;
use crate::set::SlotSet;
use crate::{JoinKind, Slot};
use jindou_model::scope;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Largest number of filters that are considered for connecting parts without a shared slot.
const LINKS: usize = 64;

/// Filters that may serve as join keys, and all slots that parts may bind.
struct FilterLinks {
    list: Vec<KeyedCondition>,
    later: SlotSet,
}

impl FilterLinks {
    fn connect(&self, left: &Built, right: &Built) -> bool {
        self.list.iter().any(|c| c.links(left, right, &self.later))
    }
}

/// Filters that cannot be tested yet, since some of their slots are not bound.
struct WaitingFilters {
    filters: Vec<Option<Arc<Expr>>>,
    /// For each filter, the number of its slots that are not bound yet; `usize::MAX` if it is tested at the end.
    missing: Vec<usize>,
    readers: FxHashMap<Slot, Vec<usize>>,
    bound: SlotSet,
}

impl WaitingFilters {
    fn new(filters: Vec<Arc<Expr>>) -> Self {
        let mut readers: FxHashMap<Slot, Vec<usize>> = FxHashMap::default();
        let mut missing = vec![];
        for (i, f) in filters.iter().enumerate() {
            let slots = f.slots();
            // Filters without slots, and those whose value varies from row to row, are tested at the end.
            let waits = !f.per_row && !slots.is_empty();
            missing.push(if waits { slots.len() } else { usize::MAX });
            for s in slots.iter().filter(|_| waits) {
                readers.entry(s).or_default().push(i);
            }
        }
        Self {
            filters: filters.into_iter().map(Some).collect(),
            missing,
            readers,
            bound: SlotSet::default(),
        }
    }

    /// Marks the slots as bound, and takes out the filters that can be tested now.
    fn ready(&mut self, slots: impl Iterator<Item = Slot>) -> Vec<Arc<Expr>> {
        let mut out = vec![];
        for s in slots {
            if self.bound.has(s) {
                continue;
            }
            self.bound.insert(s);
            for &i in self.readers.get(&s).map_or(&[][..], Vec::as_slice) {
                if let Some(m) = self.missing.get_mut(i) {
                    *m -= 1;
                    if *m == 0 {
                        out.extend(self.filters[i].take().map(|f| (i, f)));
                    }
                }
            }
        }
        out.sort_unstable_by_key(|f| f.0);
        out.into_iter().map(|f| f.1).collect()
    }

    fn rest(self) -> Vec<Arc<Expr>> {
        self.filters.into_iter().flatten().collect()
    }
}

impl PlanBuilder<'_> {
    /// Joins the parts, starting with the one at `first` and always continuing with the first part that is connected to
    /// those joined before, either by extending the rows or by a hash join.
    pub(super) fn join_many(
        &mut self,
        first: usize,
        rest: Vec<(&LogicalNode, Built)>,
        filters: Filters,
    ) -> Built {
        let mut with_slot: FxHashMap<Slot, Vec<usize>> = FxHashMap::default();
        for (i, (_, b)) in rest.iter().enumerate() {
            for s in b.possible.iter() {
                with_slot.entry(s).or_default().push(i);
            }
        }
        let (links, filters): (Vec<_>, Vec<_>) = filters.into_iter().unzip();
        let links = FilterLinks {
            list: links.into_iter().flatten().take(LINKS).collect(),
            // Includes slots of parts that are joined already, for speed. So a filter is used as a join key only if
            // each side is certain to bind the slots that it reads.
            later: rest
                .iter()
                .fold(SlotSet::default(), |all, (_, b)| all.or(&b.possible)),
        };
        let mut waiting = WaitingFilters::new(filters);
        let mut parts: Vec<Option<(&LogicalNode, Built)>> = rest.into_iter().map(Some).collect();
        // Parts that share a slot with the joined ones, and a position before which no part is left.
        let mut connected: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
        let mut left = 0;
        let mut at: Option<Built> = None;
        let mut next = Some(first);
        while let Some(i) = next {
            if scope::is_over() {
                break;
            }
            if let Some((node, built)) = parts[i].take() {
                let slots = node.uses.or(&built.possible);
                let now = match at {
                    None => built,
                    Some(rows) => self.join_next(rows, node, built, &links),
                };
                for s in slots.iter() {
                    let others = with_slot.remove(&s).unwrap_or_default();
                    connected.extend(others.into_iter().map(Reverse));
                }
                let fresh: Vec<Slot> = slots.iter().filter(|s| now.certain.has(*s)).collect();
                let ready = waiting.ready(fresh.into_iter());
                at = Some(self.filter(now, &ready));
            }
            next = connected.pop().map(|i| i.0).or_else(|| {
                while parts.get(left).is_some_and(Option::is_none) {
                    left += 1;
                }
                let rows = at.as_ref()?;
                let linked = |p: &Option<(&LogicalNode, Built)>| {
                    p.as_ref().is_some_and(|p| links.connect(rows, &p.1))
                };
                let linked = (!links.list.is_empty())
                    .then(|| parts.iter().position(linked))
                    .flatten();
                linked.or((left < parts.len()).then_some(left))
            });
        }
        let rows = at.unwrap_or_else(crate::build::unit);
        self.filter(rows, &waiting.rest())
    }

    fn join_next(
        &mut self,
        mut at: Built,
        node: &LogicalNode,
        mut built: Built,
        links: &FilterLinks,
    ) -> Built {
        let shared = node.uses.and(&at.possible);
        if shared.is_empty() && links.connect(&at, &built) {
            let (rows, part) = (at.hollowed(0), built.hollowed(1));
            // The right side is stored, so it is the smaller one.
            let (left, right) = if at.rows < built.rows {
                (&built, &at)
            } else {
                (&at, &built)
            };
            let listed = links.list.iter().map(Some);
            if let Some((joined, _)) =
                self.matched(left, right, JoinKind::Inner, &links.later, listed)
            {
                return joined.refilled(rows).refilled(part);
            }
            at = at.refilled(rows);
            built = built.refilled(part);
        }
        if !shared.is_empty()
            && self.may_try(node.nodes())
            && self.can_go_on(&at.certain, &at.possible, node)
            && is_safe(node, &at.possible, None)
        {
            let keys = at.possible.and(&built.possible).len();
            let (small, large) = if at.rows < built.rows {
                (&at, &built)
            } else {
                (&built, &at)
            };
            let (rows, own) =
                cost::matching(JoinKind::Inner, large.rows, small.rows, keys, (&[], 0));
            let hashed = at.cost + built.cost + own + rows * ROW_AHEAD;
            // The cost is estimated over a placeholder for the rows, since copying their operators for each part would
            // be slow.
            let tried = self.go_on(row_of(&at, &shared), node);
            if at.cost + score(&tried) <= hashed {
                return self.go_on(at, node);
            }
        }
        if at.rows < built.rows {
            hash_join(built, at, JoinKind::Inner, None)
        } else {
            hash_join(at, built, JoinKind::Inner, None)
        }
    }
}
