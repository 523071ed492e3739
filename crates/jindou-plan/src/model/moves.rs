//! The moves of the search for an order of edges, and what is known between them.

use crate::Slot;
use jindou_model::Direction;

/// One sub-step that a move makes.
#[derive(Clone, Debug)]
pub(crate) struct Sub {
    pub what: What,
    pub rows: f64,
    pub cost: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// The move itself.
    Main,
    /// The interval test of a slot that the main step cannot make.
    Restrict(Slot),
    /// An edge between bound ends, looked up from this end.
    Check(usize, Direction),
    /// A pattern with a predicate variable whose slots are all bound, from this end.
    CheckAny(usize, Direction),
}

/// How the search goes on from a state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Move {
    /// Slots that were bound before the search (a mask): everything that they settle is tested.
    Given(u128),
    /// Binds a slot that nothing bound reaches.
    Start(Slot, Source),
    /// Binds a slot by the lists of these edges (a mask).
    Bind(Slot, u128),
    /// Binds the graph variable, and an unbound end if there is one.
    Graph(usize),
    /// A pattern with a predicate variable and a known end.
    Any(usize),
    /// The same without one.
    Scan(usize),
}

/// Values for [`Move::Start`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source {
    IdFilter,
    Keys(usize, Direction),
}

/// A partial plan.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub bound: u128,
    pub rows: f64,
    pub cost: f64,
    /// The slot whose values ascend from row to row.
    pub ascending: Option<Slot>,
    /// The slot that began as the keys of an edge's segment, which are known to have that edge.
    pub keys: Option<(Slot, usize)>,
}

/// The part of a state that estimates depend on: bound slots, and [`State::keys`].
#[derive(Clone, Copy)]
pub(super) struct Facts {
    pub bound: u128,
    pub keys: Option<(Slot, usize)>,
}

impl State {
    /// Before any move, with this many rows to go on from.
    pub(crate) fn of(rows: f64) -> Self {
        Self {
            bound: 0,
            rows,
            cost: 0.0,
            ascending: None,
            keys: None,
        }
    }

    pub(super) fn facts(&self, bound: u128) -> Facts {
        Facts {
            bound,
            keys: self.keys,
        }
    }
}

/// The numbers of the set bits.
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

/// The same, as edge numbers.
pub(crate) fn edges_of(mask: u128) -> impl Iterator<Item = usize> {
    bits(mask).map(usize::from)
}
