//! Jindou: an in-memory RDF store that answers SPARQL by exploring the graph.

pub mod dataset;
pub mod results;
