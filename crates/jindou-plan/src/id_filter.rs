//! The set of vertices that a variable can be: intervals of ids, and conditions to look up for vertices that updates
//! changed.
//!
//! Ids are clustered, so the instances of a class and the keys of a predicate are a few intervals of the base. Updates
//! do not change the intervals; they mark vertices as dirty in patches (docs/internals/graph.md, "Ids"). For a vertex
//! that no patch of the conditions marks, the intervals decide. For a dirty vertex, the class or the edge is looked up.

use crate::{GraphRef, Intervals, intervals};
use jindou_graph::Edges;
use jindou_graph::Graph;
use jindou_graph::segment::{GraphScope, Patch};
use jindou_model::{DEFAULT_GRAPH, Direction, FIRST_TAIL_ID, PredicateId};
use std::borrow::Cow;

/// The set of vertices that a variable can be. It is valid for every snapshot of one base in which the same predicates
/// have patches ([`crate::Validity`]).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct IdFilter {
    /// The ids that satisfy all conditions in the base.
    pub intervals: Intervals,
    /// The single conditions, if updates changed the data of any of them. Empty if the intervals are exact.
    pub members: Vec<Member>,
}

/// One condition on a vertex.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Ids that satisfy the condition in the base.
    pub intervals: Intervals,
    /// The edges to look up for vertices that updates changed; `None` if the intervals are exact.
    pub touched: Option<TouchedBy>,
}

/// The condition of a [`Member`] as "the vertex has an edge of this predicate", for a predicate that updates changed.
#[derive(Clone, Debug, PartialEq)]
pub struct TouchedBy {
    /// The predicate.
    pub predicate: PredicateId,
    /// `Out` if the vertex is the subject of the edge, `In` if it is the object.
    pub direction: Direction,
    /// The graphs that are read; never `Bind` or `Slot`.
    pub graph: GraphRef,
    /// For a class, the vertex that must be at the other end of the edge; otherwise `None`, and any edge counts.
    pub neighbour: Option<u32>,
}

impl TouchedBy {
    /// The edges of the vertices, and the graphs in which they count.
    #[must_use]
    pub fn view<'s>(&'s self, snapshot: &'s dyn Graph) -> (Edges<'s>, GraphScope<'s>) {
        let scope = self.graph.scope().unwrap_or(GraphScope::Default);
        (snapshot.edges(self.predicate, self.direction), scope)
    }

    /// False if a vertex that the patch marks as dirty cannot satisfy the condition. The edge to a class is looked up,
    /// since no later step does that. Whether a key has any edge is not looked up, since the step that reads its edges
    /// finds out. O(log edits + log degree).
    #[inline]
    #[must_use]
    pub fn may_hold(&self, view: &Edges<'_>, scope: GraphScope<'_>, v: u32) -> bool {
        self.may_hold_counting(view, scope, v, &mut 0)
    }

    /// As [`Self::may_hold`]; adds to `looked` as [`Edges::contains_counting`] does.
    #[inline]
    pub fn may_hold_counting(
        &self,
        view: &Edges<'_>,
        scope: GraphScope<'_>,
        v: u32,
        looked: &mut u64,
    ) -> bool {
        self.neighbour
            .is_none_or(|n| view.contains_counting(v, n, scope, looked))
    }

    /// Number of edits that must be read to find the vertices that edits added or removed. O(log edits).
    fn edits(&self, snapshot: &dyn Graph) -> u64 {
        let Some(p) = self.deciding(snapshot).patch() else {
            return 0;
        };
        match self.neighbour {
            Some(n) if !p.is_dirty(n) => 0,
            Some(n) => {
                let ((a, b), (c, d)) = (p.degree_change(n), p.named_degree_change(n));
                a + b + c + d
            }
            None => p.default_counts().0 + p.named_counts().0,
        }
    }

    /// Segments whose edits determine which vertices changed: the instances for a class, otherwise the keys.
    fn deciding<'s>(&self, snapshot: &'s dyn Graph) -> Edges<'s> {
        match self.neighbour {
            Some(_) => snapshot.edges(self.predicate, self.direction.reverse()),
            None => snapshot.edges(self.predicate, self.direction),
        }
    }

    /// Calls `brought` with vertices that may satisfy the condition since edits added edges, and `took` with those that
    /// may no longer satisfy it since edits removed edges. The vertices come in a few ascending runs. O(edits).
    fn changed(
        &self,
        snapshot: &dyn Graph,
        mut brought: impl FnMut(u32),
        mut took: impl FnMut(u32),
    ) {
        let Some(p) = self.deciding(snapshot).patch() else {
            return;
        };
        match self.neighbour {
            Some(n) => {
                let (added, removed) = p.edits_of(n);
                let (named_added, named_removed) = p.named_edits_of(n);
                added.flatten().for_each(|&e| brought(e as u32));
                named_added.flatten().for_each(|e| brought(e[1]));
                removed.flatten().for_each(|&e| took(e as u32));
                named_removed.flatten().for_each(|e| took(e[1]));
            }
            // A key without edges left may stay in the set, since the step that reads its edges finds none.
            None => p.for_each_added_key(brought),
        }
    }

    /// Estimated numbers of vertices that edits may have added to the set, those of the base and those of the tail.
    /// O(log edits).
    fn brought(&self, snapshot: &dyn Graph) -> [f64; 2] {
        let Some(p) = self.deciding(snapshot).patch() else {
            return [0.0; 2];
        };
        let (all, tail) = match self.neighbour {
            Some(n) => {
                let all = p.degree_change(n).0 + p.named_degree_change(n).0;
                (all as f64, p.tail_share(n..=n, true))
            }
            None => (
                f64::from(p.more_keys()),
                p.tail_share(FIRST_TAIL_ID..=u32::MAX, false),
            ),
        };
        [all * (1.0 - tail), all * tail]
    }
}

impl IdFilter {
    /// The set of exactly these ids, in every snapshot.
    #[must_use]
    pub fn exactly(intervals: Intervals) -> Self {
        Self {
            intervals,
            members: vec![],
        }
    }

    pub(crate) fn one(member: Member) -> Self {
        Self {
            intervals: member.intervals.clone(),
            members: if member.touched.is_some() {
                vec![member]
            } else {
                vec![]
            },
        }
    }

    /// Returns true if the set is empty in every snapshot.
    pub(crate) fn is_never(&self) -> bool {
        self.is_exact() && self.intervals.is_empty()
    }

    /// Returns true if no update touched the data that the intervals come from.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.members.is_empty()
    }

    /// Intersects with another condition.
    pub(crate) fn and(&mut self, member: Member) {
        if self.is_exact() && member.touched.is_some() {
            self.members.push(Member {
                intervals: self.intervals.clone(),
                touched: None,
            });
        }
        self.intervals = intervals::intersect(&self.intervals, &member.intervals);
        if !self.is_exact() || member.touched.is_some() {
            self.members.push(member);
        }
    }

    /// Removes conditions on the existence of edges for which `is_known` is true: the vertex is reached along such an
    /// edge. Conditions on classes and exact conditions stay. `None` if no condition remains.
    pub(crate) fn forget(self, is_known: impl Fn(&TouchedBy) -> bool) -> Option<Self> {
        if self.is_exact() {
            return Some(self);
        }
        let is_kept = |m: &Member| {
            let t = m.touched.as_ref();
            t.is_none_or(|t| t.neighbour.is_some() || !is_known(t))
        };
        Self::all(self.members.into_iter().filter(is_kept))
    }

    /// Removes inexact conditions on keys that exclude few ids: looking up dirty vertices would cost more than it
    /// saves.
    pub(crate) fn pruned(self) -> Self {
        /// A condition is removed if at most this many times as many ids pass without it.
        const LITTLE: f64 = 1.25;
        let mut it = self;
        let mut at = 0;
        while let Some(m) = it.members.get(at) {
            let is_key = m.touched.as_ref().is_some_and(|t| t.neighbour.is_none());
            let others = it.members.iter().enumerate().filter(|(i, _)| *i != at);
            let without = is_key.then(|| Self::all(others.map(|(_, m)| m.clone())));
            match without.flatten() {
                Some(w)
                    if intervals::count(&w.intervals)
                        <= LITTLE * intervals::count(&it.intervals) =>
                {
                    it = w;
                    at = 0;
                }
                _ => at += 1,
            }
        }
        it
    }

    /// Vertices that satisfy all these conditions; `None` without conditions.
    fn all(mut members: impl Iterator<Item = Member>) -> Option<Self> {
        let mut all = Self::one(members.next()?);
        members.for_each(|m| all.and(m));
        Some(all)
    }

    /// Approximate number of ids in the set. O(intervals + members log edits).
    pub(crate) fn count(&self, snapshot: &dyn Graph) -> f64 {
        // Vertices of the base that edits added: estimated by the condition with most of them. Vertices of the tail
        // have to satisfy all conditions: estimated by the condition with fewest.
        let (mut base, mut tail) = (0.0, f64::from(snapshot.vertices()));
        for m in &self.members {
            let touched = m.touched.as_ref();
            let came = touched.map_or([0.0; 2], |t| t.brought(snapshot));
            base = f64::max(base, came[0]);
            tail = f64::min(tail, intervals::from(&m.intervals, FIRST_TAIL_ID) + came[1]);
        }
        if self.is_exact() {
            tail = 0.0;
        }
        let ids = self.of_terms(snapshot);
        let known = intervals::from(&ids, FIRST_TAIL_ID);
        intervals::count(&ids) + base + f64::max(tail - known, 0.0)
    }

    /// The intervals without ids that have no term yet: an index returns intervals that include the ids of future
    /// terms.
    #[must_use]
    pub fn of_terms(&self, snapshot: &dyn Graph) -> Cow<'_, [[u32; 2]]> {
        intervals::of_terms(&self.intervals, snapshot)
    }

    /// Upper bound on the vertices for which the intervals are wrong. O(members log edits).
    #[must_use]
    pub fn most_exceptions(&self, snapshot: &dyn Graph) -> u64 {
        let touched = self.members.iter().filter_map(|m| m.touched.as_ref());
        touched.map(|t| t.edits(snapshot)).sum()
    }

    /// Returns true if the vertex is in the set.
    #[must_use]
    pub fn holds(&self, snapshot: &dyn Graph, v: u32) -> bool {
        if self.is_exact() {
            return inside(&self.intervals, v);
        }
        self.tests(snapshot).iter().all(|t| t.holds(v))
    }

    fn tests<'s>(&'s self, snapshot: &'s dyn Graph) -> Vec<MemberLookup<'s>> {
        let test = |m: &'s Member| MemberLookup {
            intervals: &m.intervals,
            touched: m.touched.as_ref().and_then(|by| {
                let (view, scope) = by.view(snapshot);
                Some((by, view, view.patch()?, scope))
            }),
        };
        self.members.iter().map(test).collect()
    }

    /// The ids in the set in this snapshot. O(intervals + exceptions × (log edits + log intervals)), or, for a class
    /// with few instances, O(instances × (log edits + log intervals)).
    #[must_use]
    pub fn exact(&self, snapshot: &dyn Graph) -> Intervals {
        let tests = self.tests(snapshot);
        if let Some(found) = self.of_smallest_class(&tests, snapshot) {
            return found;
        }
        // If no interval contains vertices of the tail, such a vertex is in the set only if edits added it to every
        // condition: the lists of added vertices are intersected, without lookups.
        let apart = !self.members.iter().any(|m| reaches_tail(&m.intervals));
        let mut flips = if apart {
            self.tail(&tests, snapshot)
        } else {
            vec![]
        };
        let mut gone = vec![];
        for (i, m) in self.members.iter().enumerate() {
            let Some(by) = &m.touched else { continue };
            // If only the default graph counts, an edit tells whether the edge exists now. Otherwise another graph may
            // have the edge.
            let is_sure = tests[i].reads_default_alone();
            by.changed(
                snapshot,
                |v| {
                    if apart && v >= FIRST_TAIL_ID {
                        return;
                    }
                    let others = || tests.iter().enumerate().all(|(j, t)| j == i || t.holds(v));
                    if !inside(&m.intervals, v) && others() && (is_sure || tests[i].holds(v)) {
                        flips.push(v);
                    }
                },
                |v| {
                    if inside(&self.intervals, v) && (is_sure || !tests[i].holds(v)) {
                        gone.push(v);
                    }
                },
            );
        }
        flips.append(&mut gone);
        flips.sort();
        flips.dedup();
        flipped(&self.of_terms(snapshot), &flips)
    }
}

impl IdFilter {
    /// Intersects the instances of the smallest class with the set, if the class has fewer instances than there are
    /// edits.
    fn of_smallest_class(
        &self,
        tests: &[MemberLookup<'_>],
        snapshot: &dyn Graph,
    ) -> Option<Intervals> {
        let class = |(i, t): (usize, &MemberLookup<'_>)| {
            let (by, ..) = t.touched.as_ref()?;
            let (class, instances) = (by.neighbour?, by.deciding(snapshot));
            let count = instances.default_degree(class) + instances.named_degree(class);
            Some((count, i, class, instances))
        };
        let all = tests.iter().enumerate().filter_map(class);
        let (count, i, class, instances) = all.min_by_key(|c| c.0)?;
        if count >= self.most_exceptions(snapshot) {
            return None;
        }
        let scope = tests[i].touched.as_ref()?.3;
        let mut scratch = vec![];
        let list = instances.read(class, scope, &mut scratch);
        let others = |v: u32| tests.iter().enumerate().all(|(j, t)| j == i || t.holds(v));
        Some(intervals::of_ids(
            list.iter().copied().filter(|&v| others(v)).collect(),
        ))
    }

    /// Vertices of the tail in the set, in ascending order, provided that no interval contains any. O(edits of the
    /// members).
    fn tail(&self, tests: &[MemberLookup<'_>], snapshot: &dyn Graph) -> Vec<u32> {
        let mut lists: Vec<Vec<u32>> = vec![];
        for m in &self.members {
            // The intervals are exact, and contain no vertex of the tail.
            let Some(by) = &m.touched else { return vec![] };
            let mut list = vec![];
            let keep = |v| {
                if v >= FIRST_TAIL_ID {
                    list.push(v);
                }
            };
            by.changed(snapshot, keep, |_| ());
            // Edits of the default graph and of named graphs: two ascending runs.
            list.sort();
            list.dedup();
            if list.is_empty() {
                return list;
            }
            lists.push(list);
        }
        lists.sort_by_key(Vec::len);
        let mut lists = lists.into_iter();
        let mut all = lists.next().unwrap_or_default();
        for other in lists {
            let mut at = other.iter().peekable();
            all.retain(|v| {
                while at.next_if(|o| *o < v).is_some() {}
                at.peek() == Some(&v)
            });
        }
        // If other graphs count as well, an edit alone does not tell whether an edge is visible, so the vertices are
        // looked up.
        let mut unsure = tests.iter().filter(|t| !t.reads_default_alone()).peekable();
        if unsure.peek().is_some() {
            let unsure: Vec<_> = unsure.collect();
            all.retain(|&v| unsure.iter().all(|t| t.holds(v)));
        }
        all
    }
}

/// A condition, with the edges and the patch that it reads in the snapshot.
struct MemberLookup<'s> {
    intervals: &'s [[u32; 2]],
    touched: Option<(&'s TouchedBy, Edges<'s>, &'s Patch, GraphScope<'s>)>,
}

impl MemberLookup<'_> {
    fn reads_default_alone(&self) -> bool {
        self.touched
            .as_ref()
            .is_some_and(|(_, view, patch, scope)| {
                scope.sees(DEFAULT_GRAPH) && view.has_no_named() && !patch.has_named()
            })
    }

    fn holds(&self, v: u32) -> bool {
        match &self.touched {
            Some((by, view, patch, scope)) if patch.is_dirty(v) => by.may_hold(view, *scope, v),
            _ => inside(self.intervals, v),
        }
    }
}

fn reaches_tail(list: &[[u32; 2]]) -> bool {
    list.last().is_some_and(|r| r[1] > FIRST_TAIL_ID)
}

fn inside(list: &[[u32; 2]], v: u32) -> bool {
    let at = list.partition_point(|r| r[1] <= v);
    list.get(at).is_some_and(|r| r[0] <= v)
}

/// The intervals, in which each of the ids changes from inside to outside or the other way round. `ids` are ascending.
/// O(runs + ids).
fn flipped(runs: &[[u32; 2]], ids: &[u32]) -> Intervals {
    let mut out = Intervals::with_capacity(runs.len() + ids.len());
    let mut push = |a: u32, b: u32| match out.last_mut() {
        _ if a >= b => {}
        Some(last) if last[1] == a => last[1] = b,
        _ => out.push([a, b]),
    };
    let mut ids = ids.iter().copied().peekable();
    for &[start, end] in runs {
        while let Some(v) = ids.next_if(|&v| v < start) {
            push(v, v.saturating_add(1));
        }
        let mut at = start;
        while let Some(v) = ids.next_if(|&v| v < end) {
            push(at, v);
            at = v.saturating_add(1);
        }
        push(at, end);
    }
    for v in ids {
        push(v, v.saturating_add(1));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn flipping_is_a_symmetric_difference(
            a in prop::collection::btree_set(1u32..200, 0..80),
            b in prop::collection::btree_set(1u32..200, 0..80),
        ) {
            let runs = intervals::of_ids(a.iter().copied().collect());
            let ids: Vec<u32> = b.iter().copied().collect();
            let got = flipped(&runs, &ids);
            let set: BTreeSet<u32> = got.iter().flat_map(|r| r[0]..r[1]).collect();
            prop_assert_eq!(set, a.symmetric_difference(&b).copied().collect());
            prop_assert!(got.windows(2).all(|w| w[0][1] < w[1][0]));
        }
    }
}
