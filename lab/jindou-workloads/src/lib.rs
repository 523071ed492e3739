//! Workloads: generators for the graphs on which Jindou is measured, which need no files, and the queries over them.
//!
//! - [`bsbm`]: the Berlin SPARQL Benchmark, by its published rules.
//! - [`sp2b`]: a bibliography by SP²Bench's published rules.
//! - [`lubm`]: the Lehigh University Benchmark, exactly the same graph as that of the original generator.
//! - [`ugly`]: a graph with properties of real graphs that benchmark data usually lacks.
//! - [`watdiv`]: the Waterloo SPARQL Diversity Test Suite, equal to the original in distribution.
//! - [`queries`]: texts of queries, their known row counts, and templates with random constants.
//! - [`client`]: an HTTP client that sends them.
//!
//! All generators are [`jindou_model::QuadSource`]s: a loader reads them like files, and `jindou_parse::write` writes
//! them as text.

// Also exported under this name because `guard.rs` of the library is built against older versions, too.
pub use jindou_parse::write as ntriples;

pub mod bsbm;
pub mod client;
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
