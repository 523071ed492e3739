//! Moving snapshots to the base that a merge made: their patches keep only the edits that the base does not contain.

use super::Merging;
use crate::snapshot::{Delta, Snapshot};
use jindou_graph::delta::CowVec;
use jindou_graph::segment::Patch;
use jindou_graph::shard::OtherShards;
use jindou_model::{Direction, Error, Result};
use rustc_hash::FxHashMap;
use std::sync::Arc;

impl Merging {
    /// A snapshot with the content of `now` over the new base. `now` must be the merged snapshot or a later one of the
    /// same base. The number is the same; version and shape are new. O(edits since the merged snapshot, plus the nodes
    /// of the patches' trees).
    ///
    /// # Errors
    /// [`Error::Internal`] for a snapshot of another base, or one from before the merge.
    pub fn rebase(&self, now: &Snapshot) -> Result<Snapshot> {
        self.rebase_with(now, None)
    }

    /// As [`Self::rebase`], for a shard's snapshot; `others` are the other shards of the new base.
    ///
    /// # Errors
    /// As [`Self::rebase`].
    pub fn rebase_shards(&self, now: &Snapshot, others: Arc<dyn OtherShards>) -> Result<Snapshot> {
        self.rebase_with(now, Some(others))
    }

    fn rebase_with(
        &self,
        now: &Snapshot,
        others: Option<Arc<dyn OtherShards>>,
    ) -> Result<Snapshot> {
        let then = &self.then;
        if !Arc::ptr_eq(now.base(), then.base()) || now.number() < then.number() {
            return Err(Error::Internal(
                "a merge's base does not fit the present snapshot; open the store again".into(),
            ));
        }
        let (was, is) = (then.delta(), now.delta());
        let known = was.predicates.len();
        let predicates: Vec<u32> = is.predicates.iter().skip(known).copied().collect();
        let first = self.base().statistics.predicates.len() as u32;
        let mut delta = Delta {
            touched: is.touched.clone(),
            tail: is.tail.over(&was.tail, &self.base().merged.tail),
            predicate_of: Arc::new((first..).zip(&predicates).map(|(p, &v)| (v, p)).collect()),
            predicates: Arc::new(predicates),
            added: is.added.saturating_sub(was.added),
            removed: is.removed.saturating_sub(was.removed),
            revisions: is.revisions.clone(),
            requests: is.requests.clone(),
            open_merge: is.open_merge,
            ..Delta::default()
        };
        for (d, direction) in [Direction::Out, Direction::In].into_iter().enumerate() {
            delta.patches[d] = self.patches(now, direction);
        }
        let mut next = now.with_base(Arc::clone(self.base()), others, delta)?;
        let mut touched = next.touched().clone();
        self.gone.prune_of(&next, &mut touched);
        *next.touched_mut() = touched;
        Ok(next)
    }

    fn patches(&self, now: &Snapshot, direction: Direction) -> CowVec<Option<Arc<Patch>>> {
        let mut out = CowVec::default();
        let gained = self.gained_keys(now, direction);
        for p in 0..now.predicate_count() {
            let patch = now.patch(p, direction).filter(|p| !p.is_empty());
            let since = match (patch, self.then.patch(p, direction)) {
                (Some(patch), None) => {
                    out.set(p as usize, Some(Arc::clone(patch)));
                    continue;
                }
                (Some(patch), Some(then)) if Arc::ptr_eq(then, patch) => continue,
                (Some(patch), Some(then)) => patch.since(then),
                // An edge that was merged and then removed is an edit over the new base.
                (None, Some(then)) => Patch::default().since(then),
                (None, None) => Patch::default(),
            };
            self.set(&mut out, (p, direction), since, &gained);
        }
        out
    }

    /// For each predicate of a sharded store, the number of vertices that gained it since the merge. Only a vertex's
    /// owner knows exactly whether the base has edges of it, and all servers must count the same.
    fn gained_keys(&self, now: &Snapshot, direction: Direction) -> FxHashMap<u32, usize> {
        let mut gained = FxHashMap::default();
        if now.as_sharded().is_some() {
            let merged = self.base().merged.touched.more(direction);
            let more = now.touched().more(direction);
            more.for_each_beyond(merged, |pair| *gained.entry(pair as u32).or_default() += 1);
        }
        gained
    }

    fn set(
        &self,
        out: &mut CowVec<Option<Arc<Patch>>>,
        (p, direction): (u32, Direction),
        mut patch: Patch,
        gained: &FxHashMap<u32, usize>,
    ) {
        let gained = gained.get(&p).copied().unwrap_or(0);
        if patch.is_empty() && gained == 0 {
            return;
        }
        let base = self.base();
        let more = match self.then.as_sharded() {
            None => {
                let keys = patch.added_keys();
                keys.iter()
                    .filter(|&&k| !base.is_key(k, p, direction))
                    .count()
            }
            Some(_) => gained,
        };
        patch.count_keys(more, 0);
        let edges = base.edge_count(p);
        let (plus, minus) = patch.default_counts();
        let (named_plus, named_minus) = patch.named_counts();
        patch.note((edges + plus + named_plus).saturating_sub(minus + named_minus));
        out.set(p as usize, Some(Arc::new(patch)));
    }
}
