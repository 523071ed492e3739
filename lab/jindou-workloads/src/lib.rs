//! Workloads: the graphs that Jindou is measured on, generated without a file in between, and the
//! queries asked of them.
//!
//! - [`bsbm`]: the Berlin SPARQL Benchmark, after its rules.
//! - [`sp2b`]: bibliography after SP²Bench's published rules.
//! - [`lubm`]: the Lehigh University Benchmark, equal to the original generator draw for draw.
//! - [`ugly`]: a graph with everything that tidy benchmarks leave out.
//! - [`watdiv`]: the Waterloo SPARQL Diversity Test Suite, equal to the original in distribution.
//! - [`queries`]: query texts, their known row counts, templates with typed random constants.
//!
//! All generators are [`jindou_model::QuadSource`]s: a loader takes them like files, and `jindou_parse::write` writes them
//! as text.

// By this name guard.rs of the library builds against older versions, too.
pub use jindou_parse::write as ntriples;

pub mod bsbm;
pub mod lubm;
pub mod queries;
pub mod sp2b;
pub mod ugly;
pub mod watdiv;

mod date;
mod decimal;
mod emit;
mod random;
mod real;
mod words;
