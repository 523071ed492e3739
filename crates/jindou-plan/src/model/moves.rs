//! The moves and the states of the search for an order of edges.

use crate::Slot;
use jindou_model::Direction;

/// One part of a move.
#[derive(Clone, Debug)]
pub(crate) struct SubStep {
    pub what: SubStepKind,
    pub rows: f64,
    pub cost: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SubStepKind {
    /// The move itself.
    Main,
    /// Tests whether a slot's value is in its intervals, if the move itself cannot test it.
    Restrict(Slot),
    /// Checks an edge with known predicate whose ends are both bound, by the neighbour list in this direction.
    Check(usize, Direction),
    /// Checks a pattern with a predicate variable whose slots are all bound, by the edges of its subject (`Out`) or of
    /// its object (`In`).
    CheckAny(usize, Direction),
}

/// Ways in which the search continues from a state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SearchMove {
    /// The first move if the exploration extends rows: these slots (a mask) are bound already, and all edges and
    /// conditions that read only them are checked.
    Given(u128),
    /// Binds a slot that is not reached from any bound slot.
    Start(Slot, StartOrigin),
    /// Binds a slot by intersecting the neighbour lists of these edges (a mask).
    Bind(Slot, u128),
    /// Binds the graph variable of an edge, and its unbound end, if any.
    Graph(usize),
    /// Follows a pattern with a predicate variable and a known end.
    Any(usize),
    /// Scans a pattern with a predicate variable whose ends are both unknown.
    Scan(usize),
}

/// Source of the values of [`SearchMove::Start`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum StartOrigin {
    IdFilter,
    Keys(usize, Direction),
}

/// A partial plan.
#[derive(Clone, Debug)]
pub(crate) struct SearchState {
    pub bound: u128,
    pub rows: f64,
    pub cost: f64,
    /// The slot whose values ascend from row to row.
    pub ascending: Option<Slot>,
    /// The slot that was bound first, from the keys of an edge's segment, and this edge: every value of the slot has
    /// it.
    pub keys: Option<(Slot, usize)>,
}

/// The state after a move, before edges and conditions whose slots it has bound are checked.
pub(super) struct Moved {
    pub next: SearchState,
    /// Rows after the move per row before it.
    pub fan: f64,
    /// Edges that the move has used (a mask).
    pub used: u128,
    /// New slots whose intervals the move has tested (a mask).
    pub tested: u128,
}

/// The part of a state that estimates depend on: bound slots, and [`SearchState::keys`].
#[derive(Clone, Copy)]
pub(super) struct StateFacts {
    pub bound: u128,
    pub keys: Option<(Slot, usize)>,
}

impl SearchState {
    /// The state before any move, for this many rows to extend.
    pub(crate) fn with_rows(rows: f64) -> Self {
        Self {
            bound: 0,
            rows,
            cost: 0.0,
            ascending: None,
            keys: None,
        }
    }

    pub(super) fn facts(&self, bound: u128) -> StateFacts {
        StateFacts {
            bound,
            keys: self.keys,
        }
    }
}

/// Numbers of the set bits.
pub(crate) fn bits(mut mask: u128) -> impl Iterator<Item = Slot> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let at = mask.trailing_zeros();
        mask &= mask - 1;
        Some(at as Slot)
    })
}

/// Numbers of the set bits, as edge numbers.
pub(crate) fn edges_of(mask: u128) -> impl Iterator<Item = usize> {
    bits(mask).map(usize::from)
}
