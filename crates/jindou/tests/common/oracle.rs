//! `spareval` over `oxrdf`'s own dataset: an answer that owes nothing to the store, the planner or the engine.

use jindou::Answer;
use jindou::algebra::Query;
use oxrdf::{Dataset, GraphName, NamedNode, Quad, Term};
use oxrdfio::{RdfFormat, RdfParser};
use spareval::{QueryEvaluator, QueryResults};
use std::path::{Path, PathBuf};

/// Files in a dataset: those of the default graph, and those of named graphs.
pub fn dataset(default: &[PathBuf], named: &[(String, PathBuf)]) -> Result<Dataset, String> {
    let mut data = Dataset::new();
    for f in default {
        add(&mut data, f, GraphName::DefaultGraph)?;
    }
    for (g, f) in named {
        add(&mut data, f, NamedNode::new_unchecked(g).into())?;
    }
    Ok(data)
}

fn add(data: &mut Dataset, file: &Path, graph: GraphName) -> Result<(), String> {
    let extension = file.extension().and_then(|e| e.to_str()).unwrap_or("");
    let format = RdfFormat::from_extension(extension).ok_or("unknown format")?;
    let bytes = std::fs::read(file).map_err(|e| e.to_string())?;
    let parser = RdfParser::from_format(format)
        .with_default_graph(graph)
        .rename_blank_nodes()
        .with_base_iri(format!("file://{}", file.display()))
        .map_err(|e| e.to_string())?;
    for q in parser.for_slice(&bytes) {
        let q = q.map_err(|e| e.to_string())?;
        data.insert(&lower_tags(q));
    }
    Ok(())
}

/// Language tags compare without case; the store keeps them in lower case.
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

/// `spareval`'s answer, its own FROM handling included.
pub fn answer(data: &Dataset, query: &Query) -> Result<Answer, String> {
    let evaluator = QueryEvaluator::new();
    let results = evaluator
        .prepare(&query.into())
        .execute(data)
        .map_err(|e| e.to_string())?;
    Ok(match results {
        QueryResults::Boolean(b) => Answer::Boolean(b),
        QueryResults::Solutions(s) => Answer::Solutions {
            variables: s
                .variables()
                .iter()
                .map(|v| v.as_str().to_owned())
                .collect(),
            rows: s
                .map(|r| r.map(|r| r.values().to_vec()))
                .collect::<Result<_, _>>()
                .map_err(|e| e.to_string())?,
        },
        QueryResults::Graph(g) => {
            Answer::Graph(g.collect::<Result<_, _>>().map_err(|e| e.to_string())?)
        }
    })
}
