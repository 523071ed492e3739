//! The edges of one predicate in one direction as a query sees them: the default graph's segment, the
//! named graphs' segment and the patch as one, at one snapshot and for one choice of graphs.

use super::{Edit, NamedSegment, Patch, Segment};
use jindou_model::DEFAULT_GRAPH;

/// Which graphs a triple pattern looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// The default graph only.
    Default,
    /// One named graph.
    Named(u32),
    /// Every named graph, not the default one; an edge counts once.
    AnyNamed,
    /// The default graph and every named one, merged: an edge counts once.
    Union,
    /// These graphs merged (ascending ids, `DEFAULT_GRAPH` for the default graph): an edge counts once.
    Set(&'a [u32]),
}

impl Scope<'_> {
    /// True if edges of `graph` are seen.
    #[inline]
    #[must_use]
    pub fn sees(&self, graph: u32) -> bool {
        match *self {
            Self::Default => graph == DEFAULT_GRAPH,
            Self::Named(g) => graph == g,
            Self::AnyNamed => graph != DEFAULT_GRAPH,
            Self::Union => true,
            Self::Set(gs) => gs.binary_search(&graph).is_ok(),
        }
    }

    fn sees_named(&self) -> bool {
        match *self {
            Self::Default => false,
            Self::Set(gs) => gs.iter().any(|&g| g != DEFAULT_GRAPH),
            _ => true,
        }
    }
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct EdgeView<'a> {
    /// Edges of the default graph.
    pub default: Segment<'a>,
    /// Edges of named graphs, with a graph column.
    pub named: NamedSegment<'a>,
    /// What updates changed.
    pub patch: Option<&'a Patch>,
    /// The snapshot that the reader sees.
    pub snapshot: u32,
}

impl<'a> EdgeView<'a> {
    /// The segment that alone answers `scope`, when there is one: no patch, and only the default graph's
    /// edges or (if the default graph has none) nothing to merge. Loops take it and never look back.
    #[inline]
    #[must_use]
    pub fn plain(&self, scope: Scope<'_>) -> Option<Segment<'a>> {
        if self.patch.is_some() {
            return None;
        }
        if !scope.sees(DEFAULT_GRAPH) {
            return self.named.is_empty().then_some(Segment::EMPTY);
        }
        (!scope.sees_named() || self.named.is_empty()).then_some(self.default)
    }

    /// The default graph's segment when only keys the patch marks dirty need [`Self::read`]: no named
    /// graph is looked at (or there are none).
    #[inline]
    #[must_use]
    pub fn plain_but_dirty(&self, scope: Scope<'_>) -> Option<(Segment<'a>, &'a Patch)> {
        let patch = self.patch?;
        let alone = scope.sees(DEFAULT_GRAPH) && (!scope.sees_named() || self.named.is_empty());
        alone.then_some((self.default, patch))
    }

    /// The neighbours of `key` in `scope`: ascending, each once. Borrowed from the segment when nothing has
    /// to be merged, else built in `scratch`. O(degree).
    pub fn read<'b>(&self, key: u32, scope: Scope<'_>, scratch: &'b mut Vec<u32>) -> &'b [u32]
    where
        'a: 'b,
    {
        let edits = self.patch.map_or(&[][..], |p| p.edits_of(key));
        if edits.is_empty() {
            let d = if scope.sees(DEFAULT_GRAPH) {
                self.default.neighbours_of(key)
            } else {
                &[]
            };
            if !scope.sees_named() {
                return d;
            }
            let n = self.named.edges_of(key);
            if n.len() == 0 {
                return d;
            }
            scratch.clear();
            if matches!(scope, Scope::Union | Scope::AnyNamed) {
                merge_distinct(d, n.neighbours(), scratch);
            } else {
                let seen = n.filter(|e| scope.sees(e.1));
                merge_distinct(d, seen.map(|e| e.0), scratch);
            }
            return scratch;
        }
        scratch.clear();
        self.for_each(key, scope, |n, _| {
            if scratch.last() != Some(&n) {
                scratch.push(n);
            }
        });
        scratch
    }

    /// The neighbours of `key` with their graphs, sorted by (neighbour, graph), appended to two columns.
    pub fn read_with_graphs(
        &self,
        key: u32,
        scope: Scope<'_>,
        neighbours: &mut Vec<u32>,
        graphs: &mut Vec<u32>,
    ) {
        self.for_each(key, scope, |n, g| {
            neighbours.push(n);
            graphs.push(g);
        });
    }

    /// Calls `f` with every (neighbour, graph) of `key` that `scope` and the snapshot see, sorted.
    pub fn for_each(&self, key: u32, scope: Scope<'_>, mut f: impl FnMut(u32, u32)) {
        let mut d = if scope.sees(DEFAULT_GRAPH) {
            self.default.neighbours_of(key)
        } else {
            &[]
        };
        let named = if scope.sees_named() {
            self.named
        } else {
            NamedSegment::EMPTY
        };
        let mut n = named.edges_of(key).peekable();
        let mut edits = self.patch.map_or(&[][..], |p| p.edits_of(key));
        loop {
            // The smallest (neighbour, graph) of the three sorted lists.
            let base_d = d.first().map(|&x| (x, DEFAULT_GRAPH));
            let base_n = n.peek().copied();
            let edit = edits.first().map(|e| (e.neighbour, e.graph));
            let Some(at) = [base_d, base_n, edit].into_iter().flatten().min() else {
                break;
            };
            let mut present = false;
            if base_d == Some(at) {
                d = &d[1..];
                present = true;
            }
            if base_n == Some(at) {
                n.next();
                present = true;
            }
            while let Some(Edit {
                neighbour,
                graph,
                snapshot,
                added,
            }) = edits.first().copied()
            {
                if (neighbour, graph) != at {
                    break;
                }
                if snapshot <= self.snapshot {
                    present = added;
                }
                edits = &edits[1..];
            }
            if present && scope.sees(at.1) {
                f(at.0, at.1);
            }
        }
    }

    /// True if an edge `key`–`neighbour` is seen. O(log degree), or O(degree) for touched keys.
    #[must_use]
    pub fn contains(&self, key: u32, neighbour: u32, scope: Scope<'_>) -> bool {
        if self.patch.is_some_and(|p| !p.edits_of(key).is_empty()) {
            let mut found = false;
            self.for_each(key, scope, |n, _| found |= n == neighbour);
            return found;
        }
        if scope.sees(DEFAULT_GRAPH) && self.default.contains(key, neighbour) {
            return true;
        }
        if !scope.sees_named() {
            return false;
        }
        self.named
            .edges_of(key)
            .from_neighbour(neighbour)
            .take_while(|e| e.0 == neighbour)
            .any(|e| scope.sees(e.1))
    }

    /// Calls `f` with every graph that `scope` sees and that has the edge `key`–`neighbour`, ascending.
    /// O(log degree), or O(degree) for touched keys.
    pub fn graphs_of_edge(
        &self,
        key: u32,
        neighbour: u32,
        scope: Scope<'_>,
        mut f: impl FnMut(u32),
    ) {
        if self.patch.is_some_and(|p| !p.edits_of(key).is_empty()) {
            self.for_each(key, scope, |n, g| {
                if n == neighbour {
                    f(g);
                }
            });
            return;
        }
        if scope.sees(DEFAULT_GRAPH) && self.default.contains(key, neighbour) {
            f(DEFAULT_GRAPH);
        }
        if scope.sees_named() {
            self.named
                .edges_of(key)
                .from_neighbour(neighbour)
                .take_while(|e| e.0 == neighbour)
                .filter(|e| scope.sees(e.1))
                .for_each(|e| f(e.1));
        }
    }

    /// Every vertex that may be a key here in `scope`: ascending, each once, appended to `out`. A superset
    /// where graphs are chosen or a patch removed a key's last edge: [`Self::read`] tells.
    pub fn candidate_keys(&self, scope: Scope<'_>, out: &mut Vec<u32>) {
        if let Some(s) = self.plain(scope) {
            s.keys_into(0, s.key_count, out);
            return;
        }
        let start = out.len();
        if scope.sees(DEFAULT_GRAPH) {
            self.default.keys_into(0, self.default.key_count, out);
        }
        if scope.sees_named() {
            self.named.keys_into(0, self.named.key_count, out);
        }
        if let Some(p) = self.patch {
            out.extend_from_slice(p.keys());
        }
        out[start..].sort_unstable();
        let mut last = None;
        let mut write = start;
        for i in start..out.len() {
            if last != Some(out[i]) {
                last = Some(out[i]);
                out[write] = out[i];
                write += 1;
            }
        }
        out.truncate(write);
    }

    /// Edges in the scope, ignoring patches and overlaps: an upper bound for the planner.
    #[must_use]
    pub fn edge_estimate(&self, scope: Scope<'_>) -> u64 {
        let d = if scope.sees(DEFAULT_GRAPH) {
            self.default.edge_count()
        } else {
            0
        };
        let n = if scope.sees_named() {
            self.named.edge_count()
        } else {
            0
        };
        d + n + self.patch.map_or(0, |p| p.len() as u64)
    }
}

/// Appends the union of two ascending sequences, each value once.
fn merge_distinct(a: &[u32], b: impl Iterator<Item = u32>, out: &mut Vec<u32>) {
    let mut a = a.iter().copied().peekable();
    let mut b = b.peekable();
    loop {
        let next = match (a.peek(), b.peek()) {
            (Some(&x), Some(&y)) if x <= y => a.next(),
            (Some(_), None) => a.next(),
            (_, Some(_)) => b.next(),
            (None, None) => return,
        };
        if next != out.last().copied()
            && let Some(v) = next
        {
            out.push(v);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Packing, PatchBuilder, SegmentBuilder};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    type E = (u32, u32, u32);

    proptest! {
        /// Base and patch against a set of (key, neighbour, graph) replayed edit by edit.
        #[test]
        fn patched_views_agree_with_a_set(
            base in prop::collection::btree_set((1u32..8, 1u32..8, 0u32..4), 0..60),
            edits in prop::collection::vec((1u32..9, 1u32..8, 0u32..4, any::<bool>()), 0..40),
            see in 0u32..50,
        ) {
            let packing = Packing::new(9, vec![1, 2, 3]);
            let graphs = packing.graph_ids();
            let mut d = SegmentBuilder::new(false);
            let mut n = SegmentBuilder::new(true);
            for &(k, x, g) in &base {
                if g == 0 { d.push(k, x, 0) } else { n.push(k, x, g) }
            }
            let (d, n) = (d.finish().unwrap(), n.finish_named(&packing).unwrap());
            let mut pb = PatchBuilder::default();
            let mut truth: BTreeSet<E> = base.clone();
            for (i, &(k, x, g, added)) in edits.iter().enumerate() {
                let snapshot = i as u32 + 1;
                pb.push(k, Edit { neighbour: x, graph: g, snapshot, added });
                if snapshot <= see {
                    if added { truth.insert((k, x, g)); } else { truth.remove(&(k, x, g)); }
                }
            }
            let patch = pb.finish();
            let view = EdgeView {
                default: d.view(), named: n.named_view(&packing, &graphs),
                patch: (!edits.is_empty()).then_some(&patch), snapshot: see,
            };
            let set = [0, 2];
            for scope in [Scope::Default, Scope::Named(2), Scope::AnyNamed, Scope::Union, Scope::Set(&set)] {
                let mut candidates = vec![];
                view.candidate_keys(scope, &mut candidates);
                for key in 0..10 {
                    let want: BTreeSet<u32> = truth.iter()
                        .filter(|e| e.0 == key && scope.sees(e.2)).map(|e| e.1).collect();
                    let mut scratch = vec![];
                    prop_assert_eq!(
                        view.read(key, scope, &mut scratch), want.iter().copied().collect::<Vec<_>>());
                    let (mut ns, mut gs) = (vec![], vec![]);
                    view.read_with_graphs(key, scope, &mut ns, &mut gs);
                    let got: Vec<_> = ns.into_iter().zip(gs).collect();
                    let all: Vec<_> = truth.iter()
                        .filter(|e| e.0 == key && scope.sees(e.2)).map(|e| (e.1, e.2)).collect();
                    prop_assert_eq!(&got, &all);
                    for x in 0..9 {
                        prop_assert_eq!(view.contains(key, x, scope), want.contains(&x));
                        let mut of_edge = vec![];
                        view.graphs_of_edge(key, x, scope, |g| of_edge.push(g));
                        let graphs: Vec<u32> =
                            all.iter().filter(|e| e.0 == x).map(|e| e.1).collect();
                        prop_assert_eq!(of_edge, graphs);
                    }
                    prop_assert!(want.is_empty() || candidates.contains(&key));
                }
            }
        }
    }
}
