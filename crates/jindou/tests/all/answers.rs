//! Reading expected answers, and comparing answers regardless of the labels of blank nodes.

use jindou::Answer;
use jindou::algebra::{GraphPattern, Query};
use oxrdf::dataset::CanonicalizationAlgorithm;
use oxrdf::vocab::rdf;
use oxrdf::{BlankNode, Graph, Literal, NamedNode, NamedNodeRef, Term, Triple};
use oxrdfio::{RdfFormat, RdfParser};
use oxsdatatypes::{Decimal, Double, Float, Integer};
use sparesults::{QueryResultsFormat, QueryResultsParser, ReaderQueryResultsParserOutput};
use std::collections::HashSet;
use std::path::Path;
use std::str::FromStr;

const RS: &str = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#";

/// Reads an expected answer from a file, and whether the order of its rows matters.
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
        .with_base_iri(jindou_testing::w3c::manifest::iri_of(path))
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

/// Reads an answer written in the W3C's result-set vocabulary (`rs:ResultSet`).
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

/// The variables to which a query assigns computed values. An expression may return a number in any lexical form, so
/// these are compared by value; other variables must have exactly the terms of the data.
pub fn computed(query: &Query) -> Vec<String> {
    fn walk(p: &GraphPattern, out: &mut Vec<String>) {
        match p {
            GraphPattern::Extend {
                inner, variable, ..
            } => {
                out.push(variable.as_str().to_owned());
                walk(inner, out);
            }
            GraphPattern::Group {
                inner, aggregates, ..
            } => {
                out.extend(aggregates.iter().map(|a| a.0.as_str().to_owned()));
                walk(inner, out);
            }
            GraphPattern::Join { left, right }
            | GraphPattern::Union { left, right }
            | GraphPattern::Minus { left, right }
            | GraphPattern::LeftJoin { left, right, .. } => {
                walk(left, out);
                walk(right, out);
            }
            GraphPattern::Filter { inner, .. }
            | GraphPattern::Graph { inner, .. }
            | GraphPattern::OrderBy { inner, .. }
            | GraphPattern::Project { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::Slice { inner, .. } => walk(inner, out),
            _ => {}
        }
    }
    let mut out = Vec::new();
    if let Query::Select { pattern, .. } = query {
        walk(pattern, &mut out);
    }
    out
}

/// True if a query is SELECT REDUCED.
pub fn is_reduced(query: &Query) -> bool {
    let is_select = matches!(query, Query::Select { .. });
    is_select && matches!(**query.pattern(), GraphPattern::Reduced { .. })
}

/// Removes duplicate rows.
pub fn drop_duplicates(answer: &mut Answer) {
    if let Answer::Solutions { rows, .. } = answer {
        let mut seen = HashSet::new();
        rows.retain(|r| seen.insert(r.clone()));
    }
}

/// An answer as text, for reports.
pub fn show(answer: &Answer) -> String {
    match answer {
        Answer::Boolean(b) => b.to_string(),
        Answer::Graph(g) => g.iter().map(|t| format!("\n      {t} .")).collect(),
        Answer::Solutions { variables, rows } => {
            let mut out = variables.join(" ");
            for row in rows {
                out.push_str("\n     ");
                for cell in row {
                    out.push(' ');
                    match cell {
                        Some(t) => out.push_str(&t.to_string()),
                        None => out.push('-'),
                    }
                }
            }
            out
        }
    }
}

/// True if two answers are the same, regardless of the labels of blank nodes, of the order of rows (unless `ordered`),
/// and of the lexical form of numbers in the variables `lax`.
pub fn same(got: &Answer, want: &Answer, ordered: bool, lax: &[String]) -> bool {
    match (got, want) {
        (Answer::Boolean(a), Answer::Boolean(b)) => a == b,
        (Answer::Graph(a), Answer::Graph(b)) => {
            canonical(a.iter().cloned().collect()) == canonical(b.iter().cloned().collect())
        }
        (Answer::Solutions { .. }, Answer::Solutions { .. }) => {
            canonical(as_graph(got, ordered, lax)) == canonical(as_graph(want, ordered, lax))
        }
        _ => false,
    }
}

fn canonical(mut g: Graph) -> Graph {
    g.canonicalize(CanonicalizationAlgorithm::Unstable);
    g
}

/// A number in its canonical lexical form; any other term as it is.
fn by_value(term: &Term) -> Term {
    let Term::Literal(l) = term else {
        return term.clone();
    };
    let d = l.datatype();
    let text = match d.as_str().strip_prefix("http://www.w3.org/2001/XMLSchema#") {
        Some("integer") => Integer::from_str(l.value()).ok().map(|v| v.to_string()),
        Some("decimal") => Decimal::from_str(l.value()).ok().map(|v| v.to_string()),
        Some("double") => Double::from_str(l.value()).ok().map(|v| v.to_string()),
        Some("float") => Float::from_str(l.value()).ok().map(|v| v.to_string()),
        _ => None,
    };
    text.map_or_else(
        || term.clone(),
        |t| Literal::new_typed_literal(t, d.into_owned()).into(),
    )
}

/// A table as a graph with a node per row, so that tables can be compared by graph isomorphism. Equal rows stay
/// distinct because each has its own node.
fn as_graph(answer: &Answer, ordered: bool, lax: &[String]) -> Graph {
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
                let value = if lax.contains(v) {
                    by_value(t)
                } else {
                    t.clone()
                };
                graph.insert(&Triple::new(node.clone(), NamedNodeRef::from(&p), value));
            }
        }
    }
    graph
}
