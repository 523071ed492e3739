//! Ranges of ids that contain all values of a variable, derived from a plan. They bound the size of tables that are
//! indexed by id.

use super::scope_of;
use crate::resident::alone;
use jindou_dictionary::NO_RANK;
use jindou_graph::Graph;
use jindou_graph::segment::KeyFinder;
use jindou_model::{Direction, PredicateId};
use jindou_plan::{EdgeList, GraphRef, IdFilter, Operator, Slot, StartSource, Step, StepKind};

/// Largest number of a patch's changed keys that are read to widen a range.
const MOST_TOUCHED: usize = 1 << 20;

/// The first id and the id after the last one. Covers ids of the base only: neither the tail nor 0 (unbound).
pub(crate) type Hull = [u32; 2];

fn meet(a: Hull, b: Hull) -> Hull {
    [a[0].max(b[0]), a[1].min(b[1]).max(a[0].max(b[0]))]
}

/// The ids of a snapshot's base.
fn all(snapshot: &dyn Graph) -> Hull {
    [1, snapshot.dense_ids().saturating_add(1)]
}

/// A range that contains the base's ids of a slot in the rows of an operator. O(operators + steps + changed keys of
/// patches).
pub(crate) fn hull(op: &Operator, slot: Slot, snapshot: &dyn Graph) -> Hull {
    let mut out = all(snapshot);
    let mut open = vec![(op, false)];
    while let Some((op, inner)) = open.pop() {
        let steps = match op {
            Operator::Explore(e) => e.steps.as_slice(),
            Operator::Steps(s) => s.steps.as_slice(),
            _ => &[],
        };
        for step in steps {
            // Conditions inside an OPTIONAL do not restrict the outer rows that have no inner rows.
            if inner && matches!(step.kind, StepKind::Restrict { .. }) {
                continue;
            }
            if let Some(found) = of_step(step, slot, snapshot) {
                out = meet(out, found);
            }
        }
        // If several operators bind a variable, its values agree, so all of their ranges hold.
        op.each_input(&mut |role, input| open.push((input, inner || role.is_dependent())));
    }
    out
}

/// Number of ids that are sampled to estimate the share of numbers.
const SAMPLE: u32 = 64;

/// The approximate share of numeric literals, from 0 to 1, among a slot's values in the rows of an operator.
pub(crate) fn number_share(op: &Operator, slot: Slot, snapshot: &dyn Graph) -> f64 {
    let [first, end] = hull(op, slot, snapshot);
    let Some(dictionary) = snapshot.vocabulary().ranks().filter(|_| first < end) else {
        return 0.0;
    };
    let step = ((end - first) / SAMPLE).max(1);
    let ids: Vec<u32> = (first..end).step_by(step as usize).collect();
    let mut ranks = Vec::with_capacity(ids.len());
    dictionary.numeric_rank_many(&ids, &mut ranks);
    let numbers = ranks.iter().filter(|&&r| r != NO_RANK).count();
    numbers as f64 / ids.len().max(1) as f64
}

/// A range that contains the ids that a step binds to a slot; `None` if the step does not bind it or no range is known.
fn of_step(step: &Step, slot: Slot, snapshot: &dyn Graph) -> Option<Hull> {
    let filtered = |within: Option<&IdFilter>| within.and_then(|w| of_filter(w, snapshot));
    match &step.kind {
        StepKind::Start { to, source, within } if *to == Some(slot) => {
            both(of_source(source, snapshot), filtered(within.as_ref()))
        }
        StepKind::Cross { to, source, within } if *to == slot => {
            both(of_source(source, snapshot), filtered(within.as_ref()))
        }
        StepKind::Expand { to, lists, within } if *to == slot => {
            let ends = lists.iter().map(|l| of_far_end(l, snapshot));
            both(ends.fold(None, both), filtered(within.as_ref()))
        }
        StepKind::Restrict { slot: of, within } if *of == slot => of_filter(within, snapshot),
        _ => None,
    }
}

fn both(a: Option<Hull>, b: Option<Hull>) -> Option<Hull> {
    match (a, b) {
        (Some(a), Some(b)) => Some(meet(a, b)),
        (a, b) => a.or(b),
    }
}

fn of_filter(within: &IdFilter, snapshot: &dyn Graph) -> Option<Hull> {
    if !within.is_exact() {
        return None;
    }
    let ids = within.of_terms(snapshot);
    let end = snapshot.dense_ids().saturating_add(1);
    let base = ids.iter().filter(|i| i[0] < end);
    let first = base.clone().map(|i| i[0]).min()?;
    let last = base.map(|i| i[1].min(end)).max()?;
    Some([first, last])
}

fn of_source(source: &StartSource, snapshot: &dyn Graph) -> Option<Hull> {
    match source {
        StartSource::List(list) => of_far_end(list, snapshot),
        StartSource::Keys {
            predicate,
            direction,
            graph,
        } => of_keys(*predicate, *direction, graph, snapshot),
        StartSource::Unit | StartSource::IdFilter | StartSource::Graphs(_) => None,
    }
}

/// A range that contains all neighbours of a segment, which are the keys of the opposite direction.
fn of_far_end(list: &EdgeList, snapshot: &dyn Graph) -> Option<Hull> {
    of_keys(
        list.predicate,
        list.direction.reverse(),
        &list.graph,
        snapshot,
    )
}

/// The range of a segment's keys.
fn of_keys(
    predicate: PredicateId,
    direction: Direction,
    graph: &GraphRef,
    snapshot: &dyn Graph,
) -> Option<Hull> {
    let scope = scope_of(graph).ok()?;
    let view = snapshot.edges(predicate, direction);
    let segment = alone(&view, scope).ok()?;
    let mut hull = match segment.finder {
        KeyFinder::Empty => [u32::MAX, 0],
        KeyFinder::Intervals(runs) => [runs.first()?.start, runs.last()?.end],
        KeyFinder::Bitmap { first, blocks } => {
            let ids = u32::try_from(blocks.len()).ok()?.checked_mul(64)?;
            [first, first.checked_add(ids)?]
        }
        KeyFinder::Directory { keys, .. } => [*keys.first()?, keys.last()?.checked_add(1)?],
        KeyFinder::FoldedBitmap { .. } | KeyFinder::FoldedDirectory { .. } => return None,
    };
    if let Some(patch) = view.patch() {
        if patch.len() > MOST_TOUCHED {
            return None;
        }
        let end = snapshot.dense_ids().saturating_add(1);
        for key in patch.keys().into_iter().filter(|&k| k < end) {
            hull = [hull[0].min(key), hull[1].max(key + 1)];
        }
    }
    let all = all(snapshot);
    Some(meet(all, [hull[0].min(all[1]), hull[1]]))
}
