//! Tests of the RDF readers: formats, errors, compressed and damaged input; and of the XML processor.

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
