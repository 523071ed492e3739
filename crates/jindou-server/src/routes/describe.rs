//! The service description (SPARQL 1.1 Service Description), with VoID statistics of the data.

use super::input::address;
use super::text;
use crate::admission::AdmissionRequest;
use crate::negotiate::{self, GRAPHS, TABLES};
use crate::piece;
use crate::problem::Problem;
use crate::run::{AnswerFailure, Connection};
use crate::shared::AppState;
use axum::body::Body;
use http::{Response, StatusCode};
use jindou::{Error, ResultFormat, Summary};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BlankNode, Literal, NamedNode, Term, Triple};
use oxrdfio::{RdfFormat, RdfSerializer};
use std::collections::BTreeSet;
use std::sync::Arc;

const SD: &str = "http://www.w3.org/ns/sparql-service-description#";
const VOID: &str = "http://rdfs.org/ns/void#";
const TITLE: &str = "http://purl.org/dc/terms/title";
const FORMATS: &str = "http://www.w3.org/ns/formats/";
/// Prefix of the IRIs of features that have no standard IRI.
const FEATURES: &str = "urn:jindou:feature:";
/// Label of the blank node for the dataset.
const DATASET: &str = "dataset";
/// Largest number of predicates, and of classes, that are listed; DBpedia has tens of thousands.
const LISTED: usize = 1000;

pub(super) async fn answer(
    shared: &Arc<AppState>,
    connection: &Connection,
    request: &http::request::Parts,
) -> Result<Response<Body>, Problem> {
    let (content_type, format) = negotiate::accept(&request.headers, &GRAPHS)
        // Browsers and some tools accept only result formats; they get the description as RDF all the same.
        .or_else(|| negotiate::accept(&request.headers, &TABLES).map(|_| GRAPHS[0]))
        .ok_or_else(|| Problem::not_acceptable(&GRAPHS))?;
    let ResultFormat::Rdf(format) = format else {
        return Err(internal("a service description in a result format"));
    };
    let endpoint = address(shared, &request.headers, request.uri.path())
        .or_else(|| NamedNode::new("http://localhost/query").ok())
        .ok_or_else(|| internal("no IRI for the endpoint"))?;
    let asked = AdmissionRequest::new("(the service description)", None);
    let body = piece::run(shared, connection, &asked, None, move |shared, admitted| {
        let _slot = piece::light_slot(shared, &admitted.query)?;
        let writable = crate::write::refusal(shared).is_none();
        let mut summary = admitted.db().summary();
        if let Some(own) = shared.options.union_default {
            summary.union_default = own;
        }
        let mut triples = describe(endpoint, &summary, writable);
        if let Some(name) = &shared.options.store_name {
            triples.add(
                &BlankNode::new_unchecked(DATASET),
                NamedNode::new_unchecked(TITLE),
                Literal::new_simple_literal(name),
            );
        }
        written(&triples.0, format).map_err(|e| AnswerFailure::running(Error::Internal(e)))
    });
    Ok(text(content_type, body.await?))
}

/// The triples as a document in this format.
fn written(triples: &[Triple], format: RdfFormat) -> Result<Vec<u8>, String> {
    let mut writer = RdfSerializer::from_format(format);
    if !matches!(format, RdfFormat::NTriples | RdfFormat::NQuads) {
        for (name, iri) in [("sd", SD), ("void", VOID), ("formats", FORMATS)] {
            writer = writer.with_prefix(name, iri).map_err(|e| e.to_string())?;
        }
    }
    let mut writer = writer.for_writer(Vec::new());
    for triple in triples {
        writer.serialize_triple(triple).map_err(|e| e.to_string())?;
    }
    writer.finish().map_err(|e| e.to_string())
}

fn internal(what: &str) -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", what)
}

fn sd(local: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{SD}{local}"))
}

fn void(local: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{VOID}{local}"))
}

fn number(n: u64) -> Literal {
    Literal::new_typed_literal(n.to_string(), xsd::INTEGER)
}

#[derive(Default)]
struct TripleSet(Vec<Triple>);

impl TripleSet {
    fn add(&mut self, subject: &BlankNode, predicate: NamedNode, object: impl Into<Term>) {
        self.0.push(Triple::new(subject.clone(), predicate, object));
    }

    /// Adds a blank node with this class.
    fn node(&mut self, name: &str, class: NamedNode) -> BlankNode {
        let node = BlankNode::new_unchecked(name);
        self.add(&node, rdf::TYPE.into_owned(), class);
        node
    }
}

fn describe(endpoint: NamedNode, data: &Summary, writable: bool) -> TripleSet {
    let mut g = TripleSet::default();
    let service = g.node("service", sd("Service"));
    g.add(&service, sd("endpoint"), endpoint);
    g.add(&service, sd("supportedLanguage"), sd("SPARQL10Query"));
    g.add(&service, sd("supportedLanguage"), sd("SPARQL11Query"));
    if writable {
        g.add(&service, sd("supportedLanguage"), sd("SPARQL11Update"));
    }
    let mut formats: BTreeSet<&str> = [
        "SPARQL_Results_JSON",
        "SPARQL_Results_XML",
        "SPARQL_Results_CSV",
        "SPARQL_Results_TSV",
    ]
    .into();
    for (_, format) in GRAPHS {
        if let ResultFormat::Rdf(f) = format {
            formats.insert(match f {
                RdfFormat::Turtle => "Turtle",
                RdfFormat::NTriples => "N-Triples",
                RdfFormat::NQuads => "N-Quads",
                RdfFormat::TriG => "TriG",
                RdfFormat::RdfXml => "RDF_XML",
                _ => "JSON-LD",
            });
        }
    }
    for name in formats {
        let format = NamedNode::new_unchecked(format!("{FORMATS}{name}"));
        g.add(&service, sd("resultFormat"), format);
    }
    if data.union_default {
        g.add(&service, sd("feature"), sd("UnionDefaultGraph"));
    }
    // Routes that are not in a standard, and that pages may use.
    for route in ["labels", "prefixes", "search"] {
        let feature = NamedNode::new_unchecked(format!("{FEATURES}{route}"));
        g.add(&service, sd("feature"), feature);
    }
    let dataset = g.node(DATASET, sd("Dataset"));
    g.add(&service, sd("defaultDataset"), dataset.clone());
    g.add(&dataset, rdf::TYPE.into_owned(), void("Dataset"));
    let statements = data.triples.saturating_add(data.named_quads);
    g.add(&dataset, void("triples"), number(statements));
    g.add(&dataset, void("distinctSubjects"), number(data.subjects));
    g.add(
        &dataset,
        void("properties"),
        number(data.predicates.len() as u64),
    );
    g.add(&dataset, void("classes"), number(data.classes.len() as u64));
    let default = g.node("default", sd("Graph"));
    g.add(&dataset, sd("defaultGraph"), default.clone());
    let seen = if data.union_default {
        None
    } else {
        Some(data.triples)
    };
    if let Some(n) = seen {
        g.add(&default, void("triples"), number(n));
    }
    // All named graphs together, as one subset of the dataset.
    let named = g.node("named", void("Dataset"));
    g.add(&dataset, void("subset"), named.clone());
    g.add(&named, void("triples"), number(data.named_quads));
    g.add(&named, void("documents"), number(data.graphs));
    for (i, (iri, n)) in data.predicates.iter().take(LISTED).enumerate() {
        let part = g.node(&format!("p{i}"), void("Dataset"));
        g.add(&dataset, void("propertyPartition"), part.clone());
        g.add(&part, void("property"), NamedNode::new_unchecked(iri));
        g.add(&part, void("triples"), number(*n));
    }
    for (i, (iri, n)) in data.classes.iter().take(LISTED).enumerate() {
        let part = g.node(&format!("c{i}"), void("Dataset"));
        g.add(&dataset, void("classPartition"), part.clone());
        g.add(&part, void("class"), NamedNode::new_unchecked(iri));
        g.add(&part, void("entities"), number(*n));
    }
    g
}
