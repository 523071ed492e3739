//! Moving snapshots that were made while a merge ran to its base: their patches keep only the edits that the merge does
//! not contain.

use super::Merging;
use crate::snapshot::{Delta, Snapshot};
use jindou_graph::delta::CowVec;
use jindou_graph::segment::Patch;
use jindou_model::{Direction, Error, Result};
use std::sync::Arc;

impl Merging {
    /// The same content over the new base. `now` must be the merged snapshot or a later one of the same base. Its
    /// number stays; its version and shape are new. O(edits since, plus the nodes of the patches' trees).
    ///
    /// # Errors
    /// [`Error::Internal`] for a snapshot of another base, or one from before the merge.
    pub fn lay_over(&self, now: &Snapshot) -> Result<Snapshot> {
        let then = &self.then;
        if !Arc::ptr_eq(now.base(), then.base()) || now.number() < then.number() {
            return Err(Error::Internal(
                "a merge's base does not fit the present snapshot; open the store again".into(),
            ));
        }
        let (was, is) = (then.delta(), now.delta());
        let known = was.predicates.len();
        let predicates: Vec<u32> = is.predicates.iter().skip(known).copied().collect();
        let first = self.base.statistics.predicates.len() as u32;
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
        now.with_base(Arc::clone(&self.base), None, delta)
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
        let keys = patch.added_keys();
        let fresh = keys.iter().filter(|&&k| !self.base.is_key(k, p, direction));
        patch.count_keys(fresh.count(), 0);
        let d = direction as usize;
        let edges = self.base.default_segment(p, d).edge_count()
            + self.base.named_segment(p, d).edge_count();
        let (plus, minus) = patch.default_counts();
        let (named_plus, named_minus) = patch.named_counts();
        patch.note((edges + plus + named_plus).saturating_sub(minus + named_minus));
        out.set(p as usize, Some(Arc::new(patch)));
    }
}
