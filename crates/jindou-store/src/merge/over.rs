//! Moving snapshots that were made while a merge ran to its base: their patches keep only the edits that the merge does
//! not contain.

use super::Merging;
use crate::snapshot::{Delta, Snapshot};
use jindou_graph::delta::CowVec;
use jindou_graph::segment::Patch;
use jindou_graph::shard::OtherShards;
use jindou_model::{Direction, Error, Result};
use std::sync::Arc;

impl Merging {
    /// The same content over the new base. `now` must be the merged snapshot or a later one of the same base. Its
    /// number stays; its version and shape are new. O(edits since, plus the nodes of the patches' trees).
    ///
    /// # Errors
    /// [`Error::Internal`] for a snapshot of another base, or one from before the merge.
    pub fn lay_over(&self, now: &Snapshot) -> Result<Snapshot> {
        self.over(now, None)
    }

    /// As [`Self::lay_over`], for a shard's snapshot; `others` are the other shards of the new base.
    ///
    /// # Errors
    /// As [`Self::lay_over`].
    pub fn lay_over_shards(
        &self,
        now: &Snapshot,
        others: Arc<dyn OtherShards>,
    ) -> Result<Snapshot> {
        self.over(now, Some(others))
    }

    fn over(&self, now: &Snapshot, others: Option<Arc<dyn OtherShards>>) -> Result<Snapshot> {
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
            tail: is.tail.clone(),
            predicate_of: Arc::new((first..).zip(&predicates).map(|(p, &v)| (v, p)).collect()),
            predicates: Arc::new(predicates),
            added: is.added.saturating_sub(was.added),
            removed: is.removed.saturating_sub(was.removed),
            revisions: is.revisions.clone(),
            requests: is.requests.clone(),
            ..Delta::default()
        };
        for (d, direction) in [Direction::Out, Direction::In].into_iter().enumerate() {
            delta.patches[d] = self.patches(now, direction);
        }
        let patch = |p: u32, d: Direction| -> Option<&Arc<Patch>> {
            delta.patches[d as usize].get(p as usize)?.as_ref()
        };
        let mut touched = delta.touched.clone();
        self.gone.prune(
            &mut touched,
            now.sets_of_base(),
            |v, p, d| patch(p, d).is_some_and(|patch| patch.adds_to(v)),
            |[g, p, s]| {
                patch(p, Direction::Out).is_some_and(|patch| {
                    let (added, _) = patch.named_edits_of(s);
                    added.flatten().any(|e| e[2] == g)
                })
            },
        );
        delta.touched = touched;
        now.with_base(Arc::clone(self.base()), others, delta)
    }

    fn patches(&self, now: &Snapshot, direction: Direction) -> CowVec<Option<Arc<Patch>>> {
        let mut out = CowVec::default();
        for p in 0..now.predicate_count() {
            let Some(patch) = now.patch(p, direction).filter(|p| !p.is_empty()) else {
                // Edges that were merged and removed since are an edit, too.
                if let Some(then) = self.then.patch(p, direction).filter(|p| !p.is_empty()) {
                    self.set(&mut out, p, direction, Patch::default().since(then));
                }
                continue;
            };
            match self.then.patch(p, direction).filter(|p| !p.is_empty()) {
                None => out.set(p as usize, Some(Arc::clone(patch))),
                Some(then) if Arc::ptr_eq(then, patch) => {}
                Some(then) => self.set(&mut out, p, direction, patch.since(then)),
            }
        }
        out
    }

    fn set(
        &self,
        out: &mut CowVec<Option<Arc<Patch>>>,
        p: u32,
        direction: Direction,
        mut patch: Patch,
    ) {
        if patch.is_empty() {
            return;
        }
        let base = self.base();
        let is_key = |k: u32| match self.then.as_sharded() {
            None => base.is_key(k, p, direction),
            // Only the vertex's owner knows exactly.
            Some(_) => {
                let sets = self.then.sets_of_base();
                let known = base.merged.touched.predicates_of(sets, k, direction);
                known.binary_search(&p).is_ok()
            }
        };
        let keys = patch.added_keys();
        patch.count_keys(keys.iter().filter(|&&k| !is_key(k)).count(), 0);
        let edges = base.edge_count(p);
        let (plus, minus) = patch.default_counts();
        let (named_plus, named_minus) = patch.named_counts();
        patch.note((edges + plus + named_plus).saturating_sub(minus + named_minus));
        out.set(p as usize, Some(Arc::new(patch)));
    }
}
