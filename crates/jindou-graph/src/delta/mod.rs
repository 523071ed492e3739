//! Changes by updates since the base, apart from edges: terms, and the predicates and graphs of single vertices.
//!
//! All of it is shared by snapshots: cloning is O(1), and a change copies what it touches.

mod list;
mod tail;
mod vertices;

pub use list::CowVec;
pub use tail::TailTerms;
pub use vertices::{BaseSets, MoreChange, VertexDelta};
