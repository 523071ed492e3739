//! Applies the net effect of a transaction to a snapshot: creates the next snapshot, which shares all unchanged data.

use super::net::NetChanges;
use crate::snapshot::Snapshot;
use jindou_graph::delta::MoreChange;
use jindou_graph::segment::PatchChange;
use jindou_model::{DEFAULT_GRAPH, Direction, FIRST_TAIL_ID};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

/// Number of quads below which a second thread does not pay.
const ALONE: usize = 2048;
/// Largest number of a subject's edges that are searched to find out whether it still has one in a graph.
const LOOK: usize = 64;

/// New patches of one direction, and the changes that follow from them.
struct DirectionDelta {
    patches: Vec<(u32, Arc<jindou_graph::segment::Patch>)>,
    more: MoreChange,
    /// `[subject, graph, predicate]` of edges that earlier updates added and this one removed (only with
    /// `Direction::Out`).
    dropped: Vec<[u32; 3]>,
    /// True if existing plans should be made again.
    moved: bool,
}

fn changes_of(net: &NetChanges, direction: Direction) -> BTreeMap<u32, PatchChange> {
    let mut out: BTreeMap<u32, PatchChange> = BTreeMap::new();
    for (quads, added) in [(&net.removed, false), (&net.added, true)] {
        for group in quads.chunk_by(|a, b| a[..2] == b[..2]) {
            let [graph, predicate, ..] = group[0];
            let into = out.entry(predicate).or_default();
            let ends = group.iter().map(|q| match direction {
                Direction::Out => [q[2], q[3]],
                Direction::In => [q[3], q[2]],
            });
            if graph == DEFAULT_GRAPH {
                let to = if added {
                    &mut into.added
                } else {
                    &mut into.removed
                };
                to.extend(ends.map(|[k, n]| u64::from(k) << 32 | u64::from(n)));
            } else {
                let to = if added {
                    &mut into.named_added
                } else {
                    &mut into.named_removed
                };
                to.extend(ends.map(|[k, n]| [k, n, graph]));
            }
        }
    }
    out.values_mut().for_each(PatchChange::sort);
    out
}

impl Snapshot {
    /// True if merged segments of some shard may have edges of the predicate; for sharded stores. While a merge is
    /// open, some servers use the merged base and others the previous one, and both must compute equal snapshots.
    fn may_have_merged(&self, p: u32) -> bool {
        self.open_merge().is_some() || self.base().has_merged_edges(p)
    }

    fn apply_direction<E>(
        &self,
        net: &NetChanges,
        direction: Direction,
        look: &impl Fn() -> Result<(), E>,
    ) -> Result<DirectionDelta, E> {
        let base = self.sets_of_base();
        let is_sharded = self.as_sharded().is_some();
        let mut delta = DirectionDelta {
            patches: vec![],
            more: MoreChange::default(),
            dropped: vec![],
            moved: false,
        };
        for (p, change) in changes_of(net, direction) {
            look()?;
            let old = self.patch(p, direction);
            let mut patch = old.map_or_else(Default::default, |p| (**p).clone());
            let seen = (patch.has_default(), patch.has_named());
            let (lost, dropped) = patch.apply(&change);
            look()?;
            let keys = change.keys_added();
            let before = (delta.more.inserts.len(), delta.more.removals.len());
            delta
                .more
                .inserts
                .extend(self.touched().fresh_keys(base, &keys, p, direction));
            delta.more.removals.extend(
                lost.iter()
                    .filter(|&&v| self.touched().has_more(v, p, direction) && !patch.adds_to(v))
                    // Merged segments may have further edges of the vertex. In a sharded store the entry stays if they
                    // may have any, since every shard must compute the same result.
                    .filter(|&&v| match is_sharded {
                        true => !self.may_have_merged(p),
                        false => !self.base().is_key(v, p, direction),
                    })
                    .map(|&v| u64::from(v) << 32 | u64::from(p)),
            );
            patch.count_keys(
                delta.more.inserts.len() - before.0,
                delta.more.removals.len() - before.1,
            );
            if direction == Direction::Out {
                delta
                    .dropped
                    .extend(dropped.iter().map(|e| [e[0], e[2], p]));
            }
            let base_edges = self.base().edge_count(p);
            let (plus, minus) = patch.default_counts();
            let (named_plus, named_minus) = patch.named_counts();
            let edges = (base_edges + plus + named_plus).saturating_sub(minus + named_minus);
            if old.is_none() || seen != (patch.has_default(), patch.has_named()) {
                patch.note(edges);
                delta.moved = true;
            } else {
                delta.moved |= patch.note_drift(edges);
            }
            delta.patches.push((p, Arc::new(patch)));
        }
        delta.more.inserts.sort_unstable();
        delta.more.removals.sort_unstable();
        Ok(delta)
    }

    /// Numbers of the transaction's new terms whose text all shards keep: those of predicates, graphs and classes. All
    /// servers compute the same, whichever base they use.
    fn shared_terms(&self, net: &NetChanges) -> Vec<u32> {
        let number = |id: u32| {
            let n = id.checked_sub(FIRST_TAIL_ID)?;
            let after = net.reused.partition_point(|r| r[1] <= n);
            let is_reused = net.reused.get(after).is_some_and(|r| r[0] <= n);
            (n >= net.tail_before || is_reused).then_some(n)
        };
        if net.terms.is_empty() {
            return Vec::new();
        }
        // A predicate of the load has the same dense id in all bases.
        let rdf_type = self.statistics().rdf_type;
        let rdf_type = rdf_type.filter(|&p| p < self.base().loaded_predicates());
        let used = net.added.iter().flat_map(|&[g, p, _, o]| {
            let class = (Some(p) == rdf_type).then_some(o);
            [Some(g), class].into_iter().flatten()
        });
        let used = used.chain(net.predicates.iter().copied());
        let mut shared: Vec<u32> = used.filter_map(number).collect();
        shared.sort_unstable();
        shared.dedup();
        shared
    }

    /// Applies the net effect of a transaction; returns the next snapshot.
    pub(crate) fn with_net(&self, net: &NetChanges, number: u64, threads: usize) -> Self {
        let Ok(next) = self.with_net_while(net, number, threads, &|| Ok::<(), Infallible>(()));
        next
    }

    /// As [`Self::with_net`]. `look` is called between long steps and may end the work with an error.
    ///
    /// # Errors
    /// The errors of `look`.
    pub(super) fn with_net_while<E: Send>(
        &self,
        net: &NetChanges,
        number: u64,
        threads: usize,
        look: &(impl Fn() -> Result<(), E> + Sync),
    ) -> Result<Self, E> {
        let mut next = self.successor(number);
        next.revisions_mut().change(net);
        let mut moved = !net.predicates.is_empty();
        next.tail_mut().put(&net.reused, &net.terms);
        if self.as_sharded().is_some() {
            next.tail_mut().share(&self.shared_terms(net));
        }
        look()?;
        for &v in &net.predicates {
            next.add_predicate(v);
        }
        let [out, into] = if threads > 1 && net.added.len() + net.removed.len() >= ALONE {
            std::thread::scope(|scope| {
                let other = scope.spawn(|| self.apply_direction(net, Direction::In, look));
                let out = self.apply_direction(net, Direction::Out, look);
                match other.join() {
                    Ok(into) => [out, into],
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            })
        } else {
            [Direction::Out, Direction::In].map(|d| self.apply_direction(net, d, look))
        };
        let (out, into) = (out?, into?);
        look()?;
        moved |= out.moved | into.moved;
        let mut dropped = out.dropped;
        let mut more = [MoreChange::default(), MoreChange::default()];
        for (d, patches, change) in [(0, out.patches, out.more), (1, into.patches, into.more)] {
            for (p, patch) in patches {
                next.set_patch(d, p, patch);
            }
            more[d] = change;
        }
        let base = self.sets_of_base();
        moved |= next.touched_mut().change(base, more);

        let named = |q: &&[u32; 4]| q[0] != DEFAULT_GRAPH;
        let mut inserts: Vec<[u32; 3]> = net
            .added
            .iter()
            .filter(named)
            .map(|q| [q[0], q[1], q[2]])
            .collect();
        inserts.dedup();
        let mut shrunk: Vec<u32> = net.removed.iter().filter(named).map(|q| q[0]).collect();
        shrunk.dedup();
        let mut graphs: Vec<u32> = inserts.iter().map(|e| e[0]).collect();
        graphs.dedup();
        moved |= graphs
            .iter()
            .any(|&g| !self.touched().has_graph(g) && !self.is_base_graph(g));
        dropped.sort_unstable();
        dropped.dedup();
        let mut removals: Vec<[u32; 3]> = dropped
            .into_iter()
            .filter(|&[s, g, p]| {
                let Some(patch) = next.patch(p, Direction::Out) else {
                    return true;
                };
                let (there, _) = patch.named_edits_of(s);
                let mut looked = 0;
                let stays = there.flatten().any(|e| {
                    looked += 1;
                    e[2] == g || looked > LOOK
                });
                !stays
                    && match self.as_sharded() {
                        Some(_) => !self.may_have_merged(p),
                        None => !self.base().has_merged(g, p, s),
                    }
            })
            .map(|[s, g, p]| [g, p, s])
            .collect();
        removals.sort_unstable();
        next.touched_mut()
            .change_graphs(&inserts, &removals, &shrunk);
        next.finish(net.added.len() as u64, net.removed.len() as u64, moved);
        Ok(next)
    }
}
