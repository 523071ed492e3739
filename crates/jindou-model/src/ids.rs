//! Ids of vertices and predicates (OSDI '16 §4.1), and what the ranges of vertex ids mean.

use bytemuck::{Pod, Zeroable};

/// Id of a term that occurs as subject, object, predicate or graph name. 32 bits: 4.29 billion per store.
///
/// | range | meaning |
/// |---|---|
/// | 0 | no vertex: unbound, and in a graph column the default graph |
/// | `1 ..= MAX_BASE_VERTICES` | numbered at bulk load, clustered by class and characteristic set |
/// | `FIRST_TAIL_ID ..` | added by updates after the load |
/// | `FIRST_QUERY_ID ..` | created by one query (the result of an expression), never stored |
///
/// Columns and segments store plain `u32`; this type marks single ids in interfaces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct VertexId(pub u32);

/// The dense number of a predicate, `0 .. predicates`, by which segments are found. A variable in predicate position is
/// bound to the same term's [`VertexId`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub struct PredicateId(pub u32);

/// The id of no vertex; the value of an unbound slot in a column of ids.
pub const NO_VERTEX: u32 = 0;
/// The default graph in a graph column.
pub const DEFAULT_GRAPH: u32 = 0;
/// Highest id that a bulk load may assign.
pub const MAX_BASE_VERTICES: u32 = FIRST_TAIL_ID - 1;
/// First id of the tail, whose terms updates added.
pub const FIRST_TAIL_ID: u32 = 0xE000_0000;
/// First id that a query may assign to a term that it computes.
pub const FIRST_QUERY_ID: u32 = 0xF000_0000;

/// The direction of a segment: which end of its edges is the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum Direction {
    /// Keys are subjects, neighbours are objects.
    Out = 0,
    /// Keys are objects, neighbours are subjects.
    In = 1,
}

impl Direction {
    /// The opposite direction.
    #[must_use]
    pub const fn reverse(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
        }
    }
}
