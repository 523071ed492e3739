//! The order in which slots are bound, found by a beam search.
//!
//! The cost of the remaining work depends mainly on which slots are bound, so of all states with the same bound slots
//! only the cheapest is kept (dynamic programming). The beam limits the number of states with the same number of bound
//! slots.

use crate::Slot;
use crate::model::{CostModel, SearchMove, SearchState, StartOrigin, bits};
use crate::resolve::{PatternGraph, ResolvedPredicate, ResolvedTerm};
use jindou_model::{Direction, Invariant, scope};
use rustc_hash::FxHashMap;

/// Largest number of states with the same number of bound slots; fewer in larger groups, which have more moves per
/// state.
const WIDTH: usize = 16;
/// Product of slots and edges up to which the beam has its full width.
const FULL_WIDTH: usize = 200;
/// Assumed cost of processing a row later on, roughly in nanoseconds of one core. Without it, cheap starts with many
/// rows would displace better ones.
const ROW_AHEAD: f64 = 8.0;

struct SearchNode {
    state: SearchState,
    parent: usize,
    by: Option<SearchMove>,
}

/// Finds the cheapest moves that bind the slots in `need`, beginning with `rows` rows that bind `given`. The first move
/// is [`SearchMove::Given`] if `given` is not empty. `None` if the scope's time is over.
pub(crate) fn order(
    model: &CostModel<'_>,
    need: u128,
    given: u128,
    rows: f64,
) -> Option<Vec<SearchMove>> {
    let size = need.count_ones() as usize * model.edges.len().max(1);
    let width = if size <= FULL_WIDTH {
        WIDTH
    } else {
        (WIDTH * FULL_WIDTH / size).max(1)
    };
    let mut start = SearchState::with_rows(rows);
    let mut first = None;
    if given != 0 {
        let m = SearchMove::Given(given);
        start = model.apply(&start, &m, None);
        first = Some(m);
    }
    // Most groups are small.
    let mut arena = Vec::with_capacity(8);
    arena.push(SearchNode {
        state: start,
        parent: 0,
        by: None,
    });
    let (target, begin) = (need.count_ones() as usize, given.count_ones() as usize);
    let mut levels: Vec<FxHashMap<u128, usize>> = vec![FxHashMap::default(); target + 1];
    levels[begin].insert(given, 0);
    let mut moves = Vec::with_capacity(8);
    for level in begin..target {
        let mut here: Vec<usize> = levels[level].values().copied().collect();
        let score = |i: &usize| {
            let s = &arena[*i].state;
            s.cost + s.rows * ROW_AHEAD
        };
        here.sort_by(|a, b| {
            score(a)
                .total_cmp(&score(b))
                .then_with(|| arena[*a].state.bound.cmp(&arena[*b].state.bound))
        });
        here.truncate(width);
        for at in here {
            if scope::is_over() {
                return None;
            }
            moves.clear();
            moves_from(model, need, &arena[at].state, &mut moves);
            for m in moves.drain(..) {
                let next = model.apply(&arena[at].state, &m, None);
                let size = next.bound.count_ones() as usize;
                let Some(level) = levels.get_mut(size) else {
                    continue;
                };
                let better = |old: &SearchState| {
                    next.cost + next.rows * ROW_AHEAD < old.cost + old.rows * ROW_AHEAD
                };
                match level.get(&next.bound) {
                    Some(&old) if !better(&arena[old].state) => {}
                    _ => {
                        level.insert(next.bound, arena.len());
                        arena.push(SearchNode {
                            state: next,
                            parent: at,
                            by: Some(m),
                        });
                    }
                }
            }
        }
    }
    let mut out = vec![];
    let last = levels[target].get(&need);
    let mut at = *last.invariant("some order of moves reaches every slot");
    while let Some(m) = arena[at].by.take() {
        out.push(m);
        at = arena[at].parent;
    }
    out.extend(first);
    out.reverse();
    Some(out)
}

/// All moves worth trying: along edges from bound slots, and cross products only if no other move is possible.
fn moves_from(model: &CostModel<'_>, need: u128, state: &SearchState, out: &mut Vec<SearchMove>) {
    let bound = state.bound;
    for slot in bits(need & !bound) {
        let mut all = 0u128;
        let mut shortest: Option<(f64, u128)> = None;
        for e in 0..model.edges.len() {
            if !model.is_plain(e, bound) {
                continue;
            }
            let Some((anchor, direction)) = model.anchor(e, slot, bound) else {
                continue;
            };
            let info = model.info[e].as_ref();
            let len = info.map_or(0.0, |i| {
                let side = &i.sides[direction as usize];
                if matches!(anchor, ResolvedTerm::Const(_)) {
                    side.list
                } else {
                    i.edges / side.keys
                }
            });
            all |= 1 << e;
            if shortest.is_none_or(|s| len < s.0) {
                shortest = Some((len, 1 << e));
            }
        }
        if let Some((_, driver)) = shortest {
            out.push(SearchMove::Bind(slot, all));
            if driver != all {
                out.push(SearchMove::Bind(slot, driver));
                // Also try each list alone, since mean lengths do not tell which list is best to expand.
                if all.count_ones() <= 4 {
                    out.extend(bits(all & !driver).map(|e| SearchMove::Bind(slot, 1 << e)));
                }
            }
        }
    }
    for (e, edge) in model.edges.iter().enumerate() {
        if model.masks[e] & !bound == 0 {
            continue;
        }
        let reached =
            CostModel::is_known(edge.subject, bound) || CostModel::is_known(edge.object, bound);
        match edge.predicate {
            ResolvedPredicate::Slot(_) if reached => out.push(SearchMove::Any(e)),
            ResolvedPredicate::Known(_) if reached => {
                if let PatternGraph::Slot(g) = edge.graph
                    && bound >> g & 1 == 0
                {
                    out.push(SearchMove::Graph(e));
                }
            }
            _ => {}
        }
    }
    if bound != 0 && !out.is_empty() {
        return;
    }
    for slot in bits(need & !bound) {
        starts(model, slot, out);
    }
    for (e, edge) in model.edges.iter().enumerate() {
        let open = |n: ResolvedTerm| !CostModel::is_known(n, bound);
        if matches!(edge.predicate, ResolvedPredicate::Slot(_))
            && open(edge.subject)
            && open(edge.object)
        {
            out.push(SearchMove::Scan(e));
        }
    }
}

fn starts(model: &CostModel<'_>, slot: Slot, out: &mut Vec<SearchMove>) {
    if model.within(slot).is_finite() {
        out.push(SearchMove::Start(slot, StartOrigin::IdFilter));
    }
    let mut smallest: Option<(f64, StartOrigin)> = None;
    for (e, edge) in model.edges.iter().enumerate() {
        let Some(info) = &model.info[e] else { continue };
        for (end, other, d) in [
            (edge.subject, edge.object, Direction::Out),
            (edge.object, edge.subject, Direction::In),
        ] {
            // A constant's neighbours are bound by [`SearchMove::Bind`], not by a start.
            if end != ResolvedTerm::Slot(slot)
                || matches!(other, ResolvedTerm::Const(_))
                    && matches!(edge.graph, PatternGraph::Fixed(_))
            {
                continue;
            }
            let side = &info.sides[d as usize];
            let n = side.overlap.map_or(side.keys, |o| o.0);
            if smallest.is_none_or(|s| n < s.0) {
                smallest = Some((n, StartOrigin::Keys(e, d)));
            }
        }
    }
    if let Some((n, source)) = smallest
        && n < model.within(slot)
    {
        out.push(SearchMove::Start(slot, source));
    }
}
