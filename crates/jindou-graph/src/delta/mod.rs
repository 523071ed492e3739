//! Changes by updates since the base was written, except edges: new terms, and predicates and graphs of single
//! vertices.
//!
//! Snapshots share this data: cloning is O(1), and a change copies only the parts that it touches.

mod list;
mod tail;
mod vertices;

pub use list::CowVec;
pub use tail::{TailTerms, TermRuns, TermsMark, count_of_runs, push_number};
pub use vertices::{BaseSets, MoreChange, VertexDelta};
