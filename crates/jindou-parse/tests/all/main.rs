//! Readers of RDF: their formats, their errors, compressed and damaged input; the XML processor.

mod common;
mod cut;
mod jsonld;
mod line_formats;
mod nesting;
mod rdfxml;
mod real_data;
mod sources;
mod w3c;
mod write;
mod xml;
