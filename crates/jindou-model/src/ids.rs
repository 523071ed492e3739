//! Ids and what their ranges mean (the design's data model; OSDI '16 §4.1 names the vertex and
//! predicate ids).

use bytemuck::{Pod, Zeroable};

/// A term that occurs as subject, object, predicate or graph name. 32 bits: 4.29 billion a store.
///
/// | range | meaning |
/// |---|---|
/// | 0 | no vertex: unbound, and in a graph column the default graph |
/// | `1 ..= MAX_BASE_VERTICES` | numbered at bulk load, clustered by class and characteristic set |
/// | `FIRST_TAIL_ID ..` | brought by updates after the load |
/// | `FIRST_QUERY_ID ..` | made by one query (an expression's result), never stored |
///
/// The newtype is the place to widen the id; hot arrays hold plain `u32`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct VertexId(pub u32);

/// The dense number of a predicate, `0 .. predicates`. Segments are found by it; the same term's
/// [`VertexId`] is what a variable in predicate position binds to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub struct PredicateId(pub u32);

/// No vertex; the value of an unbound slot in an id column.
pub const NO_VERTEX: u32 = 0;
/// The default graph in a graph column.
pub const DEFAULT_GRAPH: u32 = 0;
/// Highest id a bulk load may give out.
pub const MAX_BASE_VERTICES: u32 = FIRST_TAIL_ID - 1;
/// First id of the tail: terms that updates bring.
pub const FIRST_TAIL_ID: u32 = 0xE000_0000;
/// First id that a query may give to a term it makes.
pub const FIRST_QUERY_ID: u32 = 0xF000_0000;

/// The end of an edge that is the key of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum Direction {
    /// Key = subject, neighbours = objects.
    Out = 0,
    /// Key = object, neighbours = subjects.
    In = 1,
}

impl Direction {
    /// The other direction.
    #[must_use]
    pub const fn reverse(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
        }
    }
}
