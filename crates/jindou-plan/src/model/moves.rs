//! The moves of the search for an order of edges, and its states.

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
    /// The interval test of a slot that the main step cannot make.
    Restrict(Slot),
    /// An edge between bound ends, looked up from this end.
    Check(usize, Direction),
    /// A pattern with a predicate variable whose slots are all bound, from this end.
    CheckAny(usize, Direction),
}

/// Ways in which the search continues from a state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SearchMove {
    /// Slots that were bound before the search (a mask): everything that they decide is tested.
    Given(u128),
    /// Binds a slot that is not reached from any bound slot.
    Start(Slot, StartOrigin),
    /// Binds a slot by the lists of these edges (a mask).
    Bind(Slot, u128),
    /// Binds the graph variable, and an unbound end if there is one.
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
    /// The slot that began as the keys of an edge's segment, and that edge, which every value has.
    pub keys: Option<(Slot, usize)>,
}

/// A state after a move, before the checks that the new slots allow.
pub(super) struct Moved {
    pub next: SearchState,
    /// Rows per row before the move.
    pub fan: f64,
    /// Edges that the move has used (a mask).
    pub used: u128,
    /// New slots whose candidates the move has tested (a mask).
    pub tested: u128,
}

/// The part of a state that estimates depend on: bound slots, and [`SearchState::keys`].
#[derive(Clone, Copy)]
pub(super) struct StateFacts {
    pub bound: u128,
    pub keys: Option<(Slot, usize)>,
}

impl SearchState {
    /// The state before any move, with this many rows to extend.
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
