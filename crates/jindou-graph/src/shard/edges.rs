//! The edges of one predicate in one direction on all shards, as read by one shard, which has some of them.
//!
//! A list is read from the base of this shard or of another one, and merged with the patch. Every shard has the whole
//! patch, whose keys are ids.

use super::{FarKey, LocalKey, OwnEdges, Sharded};
use crate::segment::{GraphScope, NamedSegment, Patch, Segment, merge_edges, merge_runs};
use jindou_model::{DEFAULT_GRAPH, Direction, PredicateId};

/// The shard whose base has the edges of a key.
pub(crate) enum KeyOwner {
    /// This shard, under a local key.
    Own(LocalKey),
    /// Another shard.
    Far(FarKey),
    /// No shard: no base contains the id.
    Nobody,
}

/// The result of looking an edge up without a request to other shards.
pub(super) enum Presence {
    Known(bool),
    /// The edge exists if another shard's base has it.
    Far(FarKey),
    /// Several graphs are read, and the patch removed the edge from some of them: the key's list must be read with its
    /// graphs, to find whether the edge remains in another graph.
    InSomeGraphs,
}

/// The edges of one predicate in one direction on all shards: this shard's edges, access to those of other shards, and
/// the changes by updates to all of them. Keys are ids.
#[derive(Clone, Copy, Debug)]
pub struct ShardEdges<'a> {
    pub(super) own: OwnEdges<'a>,
    pub(super) sharded: &'a Sharded,
    patch: Option<&'a Patch>,
    pub(super) predicate: u32,
    pub(super) direction: Direction,
}

impl<'a> ShardEdges<'a> {
    /// Creates the edges of a predicate in one direction from this shard's two segments, whose keys are local.
    #[must_use]
    pub fn new(
        (default, named): (Segment<'a>, NamedSegment<'a>),
        patch: Option<&'a Patch>,
        sharded: &'a Sharded,
        (predicate, direction): (PredicateId, Direction),
    ) -> Self {
        let owner = (sharded.number(), sharded.blocks());
        Self {
            own: OwnEdges::new(default, named, owner),
            sharded,
            patch,
            predicate: predicate.0,
            direction,
        }
    }

    /// Changes by updates in the reader's snapshot, on all shards.
    #[inline]
    #[must_use]
    pub fn patch(&self) -> Option<&'a Patch> {
        self.patch
    }

    /// The patch, if it may have added or removed edges of a key.
    #[inline]
    pub(super) fn touched(&self, key: u32) -> Option<&'a Patch> {
        self.patch.filter(|p| p.is_dirty(key))
    }

    #[inline]
    pub(super) fn owner(&self, v: u32) -> KeyOwner {
        match self.sharded.blocks().place(v) {
            Some(p) if p.shard == self.sharded.number() => KeyOwner::Own(p.local),
            Some(p) => KeyOwner::Far(FarKey {
                shard: p.shard,
                predicate: self.predicate,
                direction: self.direction,
                key: v,
            }),
            None => KeyOwner::Nobody,
        }
    }

    /// Returns true if no shard has an edge in the scope.
    #[must_use]
    pub fn is_empty(&self, scope: GraphScope<'_>) -> bool {
        let [default, named] = self.edge_counts();
        (default == 0 || !scope.sees(DEFAULT_GRAPH)) && (named == 0 || !scope.sees_named())
    }

    /// Returns true if edges of named graphs may be visible.
    pub(super) fn reads_named(&self, scope: GraphScope<'_>) -> bool {
        scope.sees_named() && (!self.has_no_named() || self.patch.is_some_and(Patch::adds_named))
    }

    /// As [`EdgeView::read`](crate::segment::EdgeView::read). Another shard's list is requested individually unless it
    /// was fetched before; it is empty if the request fails.
    pub fn read<'b>(&self, key: u32, scope: GraphScope<'_>, scratch: &'b mut Vec<u32>) -> &'b [u32]
    where
        'a: 'b,
    {
        if self.touched(key).is_some() {
            scratch.clear();
            self.append_merged(key, scope, scratch);
            return scratch;
        }
        match self.owner(key) {
            KeyOwner::Own(key) => self.own.read(key, scope, scratch),
            KeyOwner::Far(of) => {
                scratch.clear();
                let list = self.sharded.others().list(of, scope);
                scratch.extend(list.iter().map(|e| e.0));
                scratch.dedup();
                scratch
            }
            KeyOwner::Nobody => &[],
        }
    }

    /// Appends the neighbours of a key that the patch may have changed: ascending, each once.
    pub(super) fn append_merged(&self, key: u32, scope: GraphScope<'_>, out: &mut Vec<u32>) {
        if let (Some(patch), KeyOwner::Own(local)) = (self.patch, self.owner(key))
            && scope.sees(DEFAULT_GRAPH)
            && !self.reads_named(scope)
        {
            let (added, removed) = patch.edits_of(key);
            merge_runs(self.own.default_list(local), added, removed, out);
            return;
        }
        let start = out.len();
        self.for_each(key, scope, |n, _| {
            if out.len() == start || out.last() != Some(&n) {
                out.push(n);
            }
        });
    }

    /// As [`EdgeView::for_each`](crate::segment::EdgeView::for_each).
    pub fn for_each(&self, key: u32, scope: GraphScope<'_>, mut f: impl FnMut(u32, u32)) {
        let edits = self.touched(key).map(|patch| (patch, key));
        match (self.owner(key), edits) {
            (KeyOwner::Own(key), None) => self.own.for_each(key, scope, f),
            (KeyOwner::Own(local), _) => {
                let default = match scope.sees(DEFAULT_GRAPH) {
                    true => self.own.default_list(local),
                    false => &[],
                };
                let base = (default.iter().copied(), self.own.named_list(local));
                merge_edges(base, edits, scope, f);
            }
            (KeyOwner::Far(of), None) => {
                let list = self.sharded.others().list(of, scope);
                list.iter().for_each(|e| f(e.0, e.1));
            }
            (KeyOwner::Far(of), _) => {
                let list = self.sharded.others().list(of, scope);
                let all = list.iter().copied();
                let default = all.clone().filter(|e| e.1 == DEFAULT_GRAPH).map(|e| e.0);
                let named = all.filter(|e| e.1 != DEFAULT_GRAPH);
                merge_edges((default, named), edits, scope, f);
            }
            (KeyOwner::Nobody, _) => {
                merge_edges((std::iter::empty(), std::iter::empty()), edits, scope, f);
            }
        }
    }

    /// Returns true if an edge is visible.
    #[must_use]
    pub fn contains(&self, key: u32, neighbour: u32, scope: GraphScope<'_>) -> bool {
        match self.presence(key, neighbour, scope) {
            Presence::Known(there) => there,
            Presence::Far(of) => self.sharded.others().contains(of, neighbour, scope),
            Presence::InSomeGraphs => {
                let mut any = false;
                self.for_each(key, scope, |n, _| any |= n == neighbour);
                any
            }
        }
    }

    /// Looks an edge up in the patch and in this shard's base. O(log edits + log degree).
    pub(super) fn presence(&self, key: u32, neighbour: u32, scope: GraphScope<'_>) -> Presence {
        if let Some(patch) = self.touched(key) {
            let one = match scope {
                GraphScope::Default => Some(DEFAULT_GRAPH),
                GraphScope::Named(graph) => Some(graph),
                _ => None,
            };
            if let Some(graph) = one {
                if let Some(there) = patch.says(key, neighbour, graph) {
                    return Presence::Known(there);
                }
            } else {
                let sees = |e: &[u32; 3]| scope.sees(e[2]);
                let (added, removed) = patch.named_edits_of_edge(key, neighbour);
                let default = match scope.sees(DEFAULT_GRAPH) {
                    true => patch.says(key, neighbour, DEFAULT_GRAPH),
                    false => None,
                };
                if default == Some(true) || added.flatten().any(sees) {
                    return Presence::Known(true);
                }
                if default.is_some() || removed.flatten().any(sees) {
                    return Presence::InSomeGraphs;
                }
            }
        }
        match self.owner(key) {
            KeyOwner::Own(key) => Presence::Known(self.own.contains(key, neighbour, scope)),
            KeyOwner::Far(of) if self.sharded.blocks().owner(neighbour).is_some() => {
                Presence::Far(of)
            }
            // Both vertices of a base's edge are in the base.
            KeyOwner::Far(_) | KeyOwner::Nobody => Presence::Known(false),
        }
    }

    /// Tests for several edges whether they exist, as [`Sharded::contain`].
    pub fn contains_many(
        &self,
        edges: impl Iterator<Item = (u32, u32)>,
        scope: GraphScope<'_>,
        there: &mut Vec<bool>,
    ) {
        let edges = edges.map(|(key, neighbour)| (self, [key, neighbour], scope));
        self.sharded.contain(edges, there);
    }

    /// Appends every vertex that may have an edge as a key on some shard in `scope` to `out`: ascending, each once.
    /// Keys that the patch marks as dirty may have no edge; all other keys have one.
    pub fn candidate_keys(&self, scope: GraphScope<'_>, out: &mut Vec<u32>) {
        let start = out.len();
        self.own.keys_with_edges(scope, out);
        let p = PredicateId(self.predicate);
        self.sharded
            .others()
            .far_keys(p, self.direction, scope, out);
        // `out` is now one ascending run per shard; the patch's keys follow as one more.
        match self.patch {
            None => out[start..].sort(),
            Some(patch) => {
                let mut keys = out.split_off(start);
                patch.for_each_added_key(|key| keys.push(key));
                keys.sort();
                keys.dedup();
                out.append(&mut keys);
            }
        }
    }

    /// Appends a page of the keys that are assigned to this shard and have an edge in `scope`: from the id `from` on,
    /// ascending, about `most`. Returns the first id of the next page, if there is one.
    pub fn own_keys(
        &self,
        scope: GraphScope<'_>,
        [from, most]: [u32; 2],
        out: &mut Vec<u32>,
    ) -> Option<u32> {
        let start = out.len();
        let most = most.max(1) as usize;
        // One more key is read to find whether there is another page.
        self.own.keys_page(scope, from, most + 1, out);
        let mut next = out.get(start + most).copied();
        out.truncate(start + most);
        let Some(patch) = self.patch else {
            return next;
        };
        let mut keys = out.split_off(start);
        let (mut at, mut added) = (Some(from), 0);
        while let Some(key) = at.and_then(|at| patch.next_added_key_of_all(at)) {
            if next.is_some_and(|next| key >= next) {
                break;
            }
            if added == most {
                next = Some(key);
                keys.retain(|&k| k < key);
                break;
            }
            if self.sharded.blocks().assigned(key) == Some(self.sharded.number()) {
                keys.push(key);
                added += 1;
            }
            at = key.checked_add(1);
        }
        keys.sort();
        keys.dedup();
        let mut scratch = Vec::new();
        keys.retain(|&key| {
            self.touched(key).is_none() || !self.read(key, scope, &mut scratch).is_empty()
        });
        out.append(&mut keys);
        next
    }

    /// Appends a key of this shard, or none: as [`EdgeView::some_key`](crate::segment::EdgeView::some_key).
    pub fn some_key(&self, share: f64, out: &mut Vec<u32>) {
        self.own.some_key(share, out);
    }

    /// Numbers of edges of a key in the default graph and in named graphs. Requested individually from another shard
    /// unless they were fetched before.
    #[must_use]
    pub fn degrees(&self, key: u32) -> [u64; 2] {
        let [default, named] = match self.owner(key) {
            KeyOwner::Own(key) => [self.own.default_degree(key), self.own.named_degree(key)],
            KeyOwner::Far(of) => self.sharded.others().degrees(of),
            KeyOwner::Nobody => [0, 0],
        };
        match self.touched(key) {
            None => [default, named],
            Some(patch) => [
                changed(default, patch.degree_change(key)),
                changed(named, patch.named_degree_change(key)),
            ],
        }
    }

    /// Number of edges of a key in named graphs. Needs no request if the predicate has no edges in named graphs, as
    /// most predicates.
    #[must_use]
    pub fn named_degree(&self, key: u32) -> u64 {
        match self.edge_counts() {
            [_, 0] => 0,
            _ => self.degrees(key)[1],
        }
    }

    /// Prefetches, in one round trip, the lists of keys that will be read; called before the loop over a batch.
    pub fn fetch<'s>(&self, keys: impl Iterator<Item = (u32, GraphScope<'s>)>) {
        let of = (PredicateId(self.predicate), self.direction);
        self.sharded
            .fetch(keys.map(|(key, scope)| (of.0, of.1, key, scope)));
    }

    /// Prefetches, in one round trip, the data that [`Self::degrees`] will need.
    pub fn fetch_degrees(&self, keys: &[u32]) {
        let of = (PredicateId(self.predicate), self.direction);
        self.sharded
            .fetch_degrees(keys.iter().map(|&key| (of.0, of.1, key)));
    }

    /// Numbers of edges of the predicate on all shards: in the default graph, and in named graphs.
    #[must_use]
    pub fn edge_counts(&self) -> [u64; 2] {
        let [default, named] = self.base_counts();
        match self.patch {
            None => [default, named],
            Some(patch) => [
                changed(default, patch.default_counts()),
                changed(named, patch.named_counts()),
            ],
        }
    }

    fn base_counts(&self) -> [u64; 2] {
        let known = &self.sharded.others().statistics().predicates;
        let known = known.get(self.predicate as usize);
        known.map_or([0, 0], |s| [s.edges, s.named_edges])
    }

    /// Returns true if no named graph has an edge in the base.
    #[must_use]
    pub fn has_no_named(&self) -> bool {
        self.base_counts()[1] == 0
    }

    /// Numbers of keys on all shards: those with edges in the default graph, and those with edges in named graphs only.
    /// Keys that a patch added do not count. An upper bound if the predicate has edges of both kinds.
    #[must_use]
    pub fn key_counts(&self) -> [u32; 2] {
        let known = &self.sharded.others().statistics().predicates;
        let Some(s) = known.get(self.predicate as usize) else {
            return [0, 0];
        };
        let keys = match self.direction {
            Direction::Out => s.subjects,
            Direction::In => s.objects,
        };
        let named = u64::from(u32::MAX).min(s.named_edges) as u32;
        match (s.edges, s.named_edges) {
            (_, 0) => [keys, 0],
            (0, _) => [0, keys],
            _ => [keys, named],
        }
    }
}

/// A number of edges after a patch added and removed some.
fn changed(edges: u64, (added, removed): (u64, u64)) -> u64 {
    (edges + added).saturating_sub(removed)
}
