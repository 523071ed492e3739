//! The types that all crates of Jindou share: ids, the canonical bytes of a term, batches of quads for loading, errors
//! and limits, the machine's resources, and the creation of files. The content of files, plans and their execution are
//! the business of other crates.

mod allocator;
mod batch;
mod budget;
mod cancel;
mod charge;
mod debug_format;
pub mod diagnostic;
mod error;
mod ids;
pub mod invariant;
pub mod iri;
pub mod machine;
pub mod mapped;
pub mod memory;
mod named_enum;
pub mod prefixes;
pub mod private;
pub mod program;
pub mod random;
pub mod scope;
mod setters;
pub mod spill;
pub mod sync;
pub mod temp;
pub mod term;
pub mod units;

pub use allocator::{BySize, Tracked};
pub use batch::{CancellableSource, Progress, QuadBatch, QuadSink, QuadSource, Span};
pub use budget::{Holder, MemoryBudget};
pub use cancel::{CancelToken, Watch};
pub use charge::{Charge, TextRoom, WORTH_TRIMMING, set_up_allocator, trim};
pub use diagnostic::{Diagnostic, DiagnosticKind, Diagnostics, Suggestion};
pub use error::{Error, Limit, Location, Resource, Result};
pub use ids::{
    DEFAULT_GRAPH, Direction, FIRST_QUERY_ID, FIRST_TAIL_ID, MAX_BASE_VERTICES, NO_VERTEX,
    PredicateId, VertexId,
};
pub use invariant::Invariant;
pub use machine::Machine;
pub use scope::Scope;
pub use temp::{QueryTemp, TempFile, TempSpace};
