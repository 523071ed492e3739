//! Expected answers, and comparing answers up to the names of blank nodes.

use jindou::Answer;
use oxrdf::dataset::CanonicalizationAlgorithm;
use oxrdf::vocab::rdf;
use oxrdf::{BlankNode, Graph, Literal, NamedNode, NamedNodeRef, Term, Triple};
use oxrdfio::{RdfFormat, RdfParser};
use sparesults::{QueryResultsFormat, QueryResultsParser, ReaderQueryResultsParserOutput};
use std::path::Path;

const RS: &str = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#";

/// Reads an expected answer; true beside it if its rows are in order.
pub fn read(path: &Path) -> Option<(Answer, bool)> {
    let text = std::fs::read(path).ok()?;
    let extension = path.extension()?.to_str()?;
    if let Some(format) = QueryResultsFormat::from_extension(extension) {
        return match QueryResultsParser::from_format(format)
            .for_reader(&text[..])
            .ok()?
        {
            ReaderQueryResultsParserOutput::Boolean(b) => Some((Answer::Boolean(b), false)),
            ReaderQueryResultsParserOutput::Solutions(s) => {
                let variables: Vec<String> = s
                    .variables()
                    .iter()
                    .map(|v| v.as_str().to_owned())
                    .collect();
                let rows = s
                    .map(|r| r.ok().map(|r| r.values().to_vec()))
                    .collect::<Option<Vec<_>>>()?;
                Some((Answer::Solutions { variables, rows }, false))
            }
        };
    }
    let format = RdfFormat::from_extension(extension)?;
    let graph: Graph = RdfParser::from_format(format)
        .with_base_iri(super::manifest::iri_of(path))
        .ok()?
        .for_reader(&text[..])
        .map(|q| q.ok().map(Triple::from))
        .collect::<Option<_>>()?;
    result_set(&graph).or_else(|| {
        Some((
            Answer::Graph(graph.iter().map(Triple::from).collect()),
            false,
        ))
    })
}

fn rs(local: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{RS}{local}"))
}

/// An answer written in the result-set vocabulary.
fn result_set(graph: &Graph) -> Option<(Answer, bool)> {
    let set = graph.subject_for_predicate_object(rdf::TYPE, rs("ResultSet").as_ref())?;
    if let Some(b) = graph.object_for_subject_predicate(set, rs("boolean").as_ref()) {
        let truth = matches!(b, oxrdf::TermRef::Literal(l) if l.value() == "true");
        return Some((Answer::Boolean(truth), false));
    }
    let mut variables: Vec<String> = graph
        .objects_for_subject_predicate(set, rs("resultVariable").as_ref())
        .filter_map(|t| match t {
            oxrdf::TermRef::Literal(l) => Some(l.value().to_owned()),
            _ => None,
        })
        .collect();
    variables.sort();
    let mut rows: Vec<(i64, Vec<Option<Term>>)> = Vec::new();
    let mut ordered = false;
    for s in graph.objects_for_subject_predicate(set, rs("solution").as_ref()) {
        let node = match s {
            oxrdf::TermRef::BlankNode(b) => oxrdf::NamedOrBlankNodeRef::from(b),
            oxrdf::TermRef::NamedNode(n) => n.into(),
            _ => return None,
        };
        let mut row = vec![None; variables.len()];
        for b in graph.objects_for_subject_predicate(node, rs("binding").as_ref()) {
            let oxrdf::TermRef::BlankNode(b) = b else {
                return None;
            };
            let oxrdf::TermRef::Literal(v) =
                graph.object_for_subject_predicate(b, rs("variable").as_ref())?
            else {
                return None;
            };
            let value = graph.object_for_subject_predicate(b, rs("value").as_ref())?;
            let at = variables.iter().position(|x| x == v.value())?;
            row[at] = Some(value.into_owned());
        }
        let index = match graph.object_for_subject_predicate(node, rs("index").as_ref()) {
            Some(oxrdf::TermRef::Literal(l)) => {
                ordered = true;
                l.value().parse().ok()?
            }
            _ => 0,
        };
        rows.push((index, row));
    }
    rows.sort_by_key(|r| r.0);
    Some((
        Answer::Solutions {
            variables,
            rows: rows.into_iter().map(|r| r.1).collect(),
        },
        ordered,
    ))
}

/// Whether two answers are the same up to blank node names (and row order unless `ordered`).
pub fn same(got: &Answer, want: &Answer, ordered: bool) -> bool {
    match (got, want) {
        (Answer::Boolean(a), Answer::Boolean(b)) => a == b,
        (Answer::Graph(a), Answer::Graph(b)) => {
            canonical(a.iter().cloned().collect()) == canonical(b.iter().cloned().collect())
        }
        (Answer::Solutions { .. }, Answer::Solutions { .. }) => {
            canonical(as_graph(got, ordered)) == canonical(as_graph(want, ordered))
        }
        _ => false,
    }
}

fn canonical(mut g: Graph) -> Graph {
    g.canonicalize(CanonicalizationAlgorithm::Unstable);
    g
}

/// A table as a graph, one node a row, so that graph isomorphism compares tables. A repeated row's count is
/// kept apart, since a graph cannot hold a triple twice.
fn as_graph(answer: &Answer, ordered: bool) -> Graph {
    let mut graph = Graph::new();
    let Answer::Solutions { variables, rows } = answer else {
        return graph;
    };
    for v in variables {
        graph.insert(&Triple::new(
            rs("set"),
            rs("resultVariable"),
            Literal::from(v.as_str()),
        ));
    }
    for (i, row) in rows.iter().enumerate() {
        let node = BlankNode::default();
        graph.insert(&Triple::new(rs("set"), rs("solution"), node.clone()));
        if ordered {
            graph.insert(&Triple::new(
                node.clone(),
                rs("index"),
                Literal::from(i as i64),
            ));
        }
        for (v, cell) in variables.iter().zip(row) {
            if let Some(t) = cell {
                let p = NamedNode::new_unchecked(format!("{RS}value-{v}"));
                graph.insert(&Triple::new(
                    node.clone(),
                    NamedNodeRef::from(&p),
                    t.clone(),
                ));
            }
        }
    }
    graph
}
