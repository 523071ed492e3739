//! Manifests of the test suites for queries and updates.

use oxrdf::vocab::rdf;
use oxrdf::{Graph, NamedNode, NamedNodeRef, NamedOrBlankNode, TermRef};
use oxrdfio::{RdfFormat, RdfParser};
use std::path::{Path, PathBuf};

pub(super) const MF: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#";
const UT: &str = "http://www.w3.org/2009/sparql/tests/test-update#";
const QT: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#";

/// One test of a manifest.
#[derive(Debug, Clone)]
pub struct Test {
    /// IRI of the test, for reports.
    pub name: String,
    /// Local name of the test's type, such as `QueryEvaluationTest`.
    pub kind: String,
    /// The file of the query or update.
    pub query: PathBuf,
    /// Files of the default graph.
    pub data: Vec<PathBuf>,
    /// Files of named graphs, with their names.
    pub graphs: Vec<(String, PathBuf)>,
    /// Endpoints for SERVICE, each with the file of its data.
    pub endpoints: Vec<(String, PathBuf)>,
    /// The file with the expected answer, if any.
    pub result: Option<PathBuf>,
    /// The expected data after an update: files of the default graph, and files of named graphs with their names.
    pub after: (Vec<PathBuf>, Vec<(String, PathBuf)>),
    /// True if the test requires an entailment regime.
    pub entailment: bool,
}

/// The `file:` IRI of a path.
pub fn iri_of(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn path_of(iri: &str) -> PathBuf {
    PathBuf::from(iri.strip_prefix("file://").unwrap_or(iri))
}

/// Reads a manifest, whose relative IRIs are relative to `base`.
pub(super) fn graph_of(path: &Path, base: &str) -> Result<Graph, String> {
    let wrong = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let text = std::fs::read(path).map_err(|e| wrong(&e))?;
    let parser = RdfParser::from_format(RdfFormat::Turtle)
        .with_base_iri(base)
        .map_err(|e| wrong(&e))?;
    let triples = parser.for_slice(&text).map(|q| q.map(oxrdf::Triple::from));
    triples.collect::<Result<Graph, _>>().map_err(|e| wrong(&e))
}

/// Reads the tests that a manifest describes itself, whether it lists them or not.
pub fn described(path: &Path) -> Result<Vec<Test>, String> {
    let graph = graph_of(path, &iri_of(path))?;
    let typed = graph.triples_for_predicate(rdf::TYPE);
    let tests = typed.filter_map(|t| test(&graph, t.subject.into()));
    Ok(tests.collect())
}

/// Reads all tests of a manifest and of the manifests that it includes.
pub fn read(path: &Path) -> Result<Vec<Test>, String> {
    let graph = graph_of(path, &iri_of(path))?;
    let mut tests = Vec::new();
    for include in objects(&graph, None, &format!("{MF}include")) {
        for m in list(&graph, include) {
            tests.extend(read(&path_of(iri_text(m)))?);
        }
    }
    for entries in objects(&graph, None, &format!("{MF}entries")) {
        for t in list(&graph, entries) {
            tests.extend(test(&graph, t));
        }
    }
    Ok(tests)
}

fn test(graph: &Graph, node: TermRef<'_>) -> Option<Test> {
    let subject = subject_of(node)?;
    let one = |s: &NamedOrBlankNode, p: &str| objects(graph, Some(s), p).into_iter().next();
    let kind = graph
        .objects_for_subject_predicate(subject.as_ref(), rdf::TYPE)
        .find_map(|t| match t {
            TermRef::NamedNode(n) => n.as_str().strip_prefix(MF).map(str::to_owned),
            _ => None,
        })?;
    let action = one(&subject, &format!("{MF}action"))?;
    let action_node = subject_of(action)?;
    let query = one(&action_node, &format!("{QT}query"))
        .or_else(|| one(&action_node, &format!("{UT}request")));
    let (mut data, mut graphs) = files(graph, &action_node, QT);
    let (more, more_graphs) = files(graph, &action_node, UT);
    data.extend(more);
    graphs.extend(more_graphs);
    let result = one(&subject, &format!("{MF}result"));
    let after = result
        .and_then(subject_of)
        .map(|r| files(graph, &r, UT))
        .unwrap_or_default();
    let endpoints = objects(graph, Some(&action_node), &format!("{QT}serviceData"))
        .into_iter()
        .filter_map(|e| {
            let e = subject_of(e)?;
            let endpoint = one(&e, &format!("{QT}endpoint"))?;
            let data = one(&e, &format!("{QT}data"))?;
            Some((iri_text(endpoint).to_owned(), path_of(iri_text(data))))
        })
        .collect();
    Some(Test {
        name: iri_text(node).to_owned(),
        kind,
        query: path_of(iri_text(query.unwrap_or(action))),
        data,
        graphs,
        endpoints,
        result: result.map(|r| path_of(iri_text(r))),
        after,
        entailment: one(
            &action_node,
            "http://www.w3.org/ns/sparql-service-description#entailmentRegime",
        )
        .is_some(),
    })
}

/// The files of the default graph and of named graphs that a node of the manifest lists, in one of two vocabularies.
fn files(
    graph: &Graph,
    node: &NamedOrBlankNode,
    vocabulary: &str,
) -> (Vec<PathBuf>, Vec<(String, PathBuf)>) {
    let data = objects(graph, Some(node), &format!("{vocabulary}data"));
    let mut graphs = Vec::new();
    for g in objects(graph, Some(node), &format!("{vocabulary}graphData")) {
        let one = |s: &NamedOrBlankNode, p: &str| objects(graph, Some(s), p).into_iter().next();
        let label = subject_of(g).and_then(|g| {
            let file = one(&g, &format!("{vocabulary}graph"))?;
            let label = one(&g, "http://www.w3.org/2000/01/rdf-schema#label")?;
            match label {
                TermRef::Literal(l) => Some((l.value().to_owned(), path_of(iri_text(file)))),
                _ => None,
            }
        });
        graphs.push(label.unwrap_or_else(|| (iri_text(g).to_owned(), path_of(iri_text(g)))));
    }
    let data = data.into_iter().map(|d| path_of(iri_text(d))).collect();
    (data, graphs)
}

fn objects<'a>(graph: &'a Graph, s: Option<&NamedOrBlankNode>, p: &str) -> Vec<TermRef<'a>> {
    let p = NamedNode::new_unchecked(p);
    match s {
        Some(s) => graph
            .objects_for_subject_predicate(s.as_ref(), p.as_ref())
            .collect(),
        None => graph
            .triples_for_predicate(p.as_ref())
            .map(|t| t.object)
            .collect(),
    }
}

fn list<'a>(graph: &'a Graph, head: TermRef<'a>) -> Vec<TermRef<'a>> {
    let mut out = Vec::new();
    let mut at = subject_of(head);
    let one = |s: &NamedOrBlankNode, p: NamedNodeRef<'_>| {
        graph.objects_for_subject_predicate(s.as_ref(), p).next()
    };
    while let Some(node) = at {
        let Some(first) = one(&node, rdf::FIRST) else {
            break;
        };
        out.push(first);
        at = one(&node, rdf::REST).and_then(subject_of);
    }
    out
}

pub(super) fn subject_of(t: TermRef<'_>) -> Option<NamedOrBlankNode> {
    match t {
        TermRef::NamedNode(n) => Some(n.into_owned().into()),
        TermRef::BlankNode(b) => Some(b.into_owned().into()),
        _ => None,
    }
}

fn iri_text(t: TermRef<'_>) -> &str {
    match t {
        TermRef::NamedNode(n) => n.as_str(),
        TermRef::BlankNode(b) => b.as_str(),
        _ => "",
    }
}
