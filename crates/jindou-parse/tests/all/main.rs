//! Readers of RDF: their formats, their errors, compressed and damaged input.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/documents.rs"]
mod documents;

mod cut;
mod jsonld;
mod line_formats;
mod rdfxml;
mod real_data;
mod sources;
mod w3c;
mod write;
