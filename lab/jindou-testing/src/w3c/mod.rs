//! The W3C's test suites: their manifests and data, and the requests of their protocol tests.

pub mod manifest;
pub mod requests;

pub use crate::inputs::{find, shared};

use oxrdf::dataset::CanonicalizationAlgorithm;
use oxrdf::{Dataset, GraphName, NamedNode, Quad, Term};
use oxrdfio::{RdfFormat, RdfParser};
use std::path::{Path, PathBuf};

/// Reads files into a dataset: those of the default graph, and those of named graphs.
pub fn dataset(default: &[PathBuf], named: &[(String, PathBuf)]) -> Result<Dataset, String> {
    let mut data = Dataset::new();
    for file in default {
        add(&mut data, file, GraphName::DefaultGraph)?;
    }
    for (graph, file) in named {
        add(&mut data, file, NamedNode::new_unchecked(graph).into())?;
    }
    Ok(data)
}

fn add(data: &mut Dataset, file: &Path, graph: GraphName) -> Result<(), String> {
    let extension = file.extension().and_then(|e| e.to_str()).unwrap_or("");
    let format = RdfFormat::from_extension(extension).ok_or("unknown format")?;
    let bytes = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let parser = RdfParser::from_format(format)
        .with_default_graph(graph)
        .rename_blank_nodes()
        .with_base_iri(manifest::iri_of(file))
        .map_err(|e| e.to_string())?;
    for quad in parser.for_slice(&bytes) {
        let quad = quad.map_err(|e| format!("{}: {e}", file.display()))?;
        data.insert(&lower_tags(quad));
    }
    Ok(())
}

/// The quad with language tags in lower case, as the store returns them; tags compare without case.
pub fn lower_tags(mut quad: Quad) -> Quad {
    if let Term::Literal(l) = &quad.object
        && let (Some(tag), None) = (l.language(), l.direction())
    {
        quad.object = oxrdf::Literal::new_language_tagged_literal_unchecked(
            l.value(),
            tag.to_ascii_lowercase(),
        )
        .into();
    }
    quad
}

/// Parses a document.
pub fn quads_of(text: &[u8], format: RdfFormat) -> Result<Dataset, String> {
    let parser = RdfParser::from_format(format)
        .with_base_iri("http://localhost/")
        .map_err(|e| e.to_string())?;
    let quads = parser.for_slice(text);
    quads.collect::<Result<_, _>>().map_err(|e| e.to_string())
}

/// True if two datasets are the same up to the labels of blank nodes.
pub fn same(a: &Dataset, b: &Dataset) -> bool {
    let canonical = |d: &Dataset| {
        let mut d = d.clone();
        d.canonicalize(CanonicalizationAlgorithm::Unstable);
        d
    };
    a.len() == b.len() && canonical(a) == canonical(b)
}

/// Quads as sorted lines, for failure messages.
pub fn show(data: &Dataset) -> String {
    let mut all: Vec<String> = data.iter().map(|q| q.to_string()).collect();
    all.sort();
    all.join("\n     ")
}
