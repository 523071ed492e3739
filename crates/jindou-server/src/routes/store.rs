//! `/store`: reads by the SPARQL 1.1 Graph Store HTTP Protocol; `change` handles writes. A graph is named by a
//! parameter (section 4.2) or, below `/store/`, by its own address (section 4.1).

use super::change;
use super::input::{Parameters, address};
use crate::conditions::{Conditions, Representation};
use crate::negotiate::{self, Coding, DATASETS, GRAPHS, Offer};
use crate::problem::Problem;
use crate::run::{self, Connection, QueryTask};
use crate::shared::AppState;
use axum::body::Body;
use axum::extract::Request;
use http::header::{CONTENT_ENCODING, ETAG};
use http::{HeaderMap, Method, Response, StatusCode};
use jindou::{Database, GraphName, ResultFormat, Snapshot};
use oxrdfio::RdfFormat;
use sha2::{Digest, Sha256};
use std::sync::Arc;

pub(super) async fn answer(
    shared: &Arc<AppState>,
    connection: Arc<Connection>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let headers = request.headers();
    let reads = match *request.method() {
        Method::GET | Method::HEAD => true,
        Method::PUT | Method::POST | Method::DELETE | Method::PATCH => false,
        _ => {
            return Err(Problem::method(
                "GET, HEAD, PUT, POST, DELETE, PATCH, OPTIONS",
            ));
        }
    };
    let parameters = Parameters::of_url(request.uri())?;
    let path = request.uri().path();
    let graph = match parameters.one("graph")? {
        Some(_) if path != "/store" => {
            return Err(Problem::bad_request(
                "the address names a graph, and 'graph' another; use only one",
            ));
        }
        None if path != "/store" => Some(
            address(shared, headers, path)
                .ok_or_else(|| {
                    Problem::bad_request("this address is not an IRI that could name a graph")
                })?
                .into_string(),
        ),
        graph => graph,
    };
    let default = parameters.one("default")?.is_some();
    if graph.is_some() && default {
        return Err(Problem::bad_request(
            "'default' and 'graph' name two graphs; use only one",
        ));
    }
    if let Some(iri) = &graph {
        oxrdf::NamedNode::new(iri)
            .map_err(|e| Problem::bad_request(format!("graph={iri} is not an IRI: {e}")))?;
    }
    if !reads {
        // Relative IRIs are resolved against the graph's IRI, or against the address of the store.
        let base = match &graph {
            Some(iri) => iri.clone(),
            None => address(shared, headers, path)
                .ok_or_else(|| {
                    Problem::bad_request("the request's Host header is not a host name")
                })?
                .into_string(),
        };
        let graph = match graph {
            Some(iri) => Some(GraphName::Named(iri)),
            None => default.then_some(GraphName::Default),
        };
        return change::answer(shared, &connection, &parameters, graph, base, request).await;
    }
    let target = match graph {
        Some(iri) => Some(GraphName::Named(iri)),
        None => default.then_some(GraphName::Default),
    };
    read(shared, connection, &parameters, target, headers).await
}

/// Answers a GET of a graph, or of the whole store, from one snapshot.
async fn read(
    shared: &Arc<AppState>,
    connection: Arc<Connection>,
    parameters: &Parameters,
    graph: Option<GraphName>,
    headers: &HeaderMap,
) -> Result<Response<Body>, Problem> {
    let offers: &[_] = match &graph {
        None => &DATASETS,
        Some(_) => &GRAPHS,
    };
    let offer = match parameters.format()? {
        Some(format) => negotiate::named(&format, offers),
        None => negotiate::accept(headers, offers),
    };
    let offer = offer.ok_or_else(|| Problem::not_acceptable(offers))?;
    let conditions = Conditions::from_headers(headers)?;
    let snapshot = shared.upkeep.snapshot();
    let queries = match &graph {
        Some(GraphName::Named(iri)) => {
            let name = oxrdf::NamedNodeRef::new_unchecked(iri);
            exists(shared, &connection, parameters, name, &snapshot).await?;
            vec![format!("SELECT ?s ?p ?o {{ GRAPH {name} {{ ?s ?p ?o }} }}")]
        }
        Some(GraphName::Default) => vec!["SELECT ?s ?p ?o { ?s ?p ?o }".into()],
        None => vec![
            "SELECT ?s ?p ?o { ?s ?p ?o }".into(),
            "SELECT ?s ?p ?o ?g { GRAPH ?g { ?s ?p ?o } }".into(),
        ],
    };
    let represented = representation(shared, &snapshot, graph.as_ref(), offer)?;
    let coding = negotiate::coding(headers);
    if let Some(unchanged) = conditions.read(&represented, coding)? {
        return Ok(unchanged);
    }
    let request = run::ClientRequest {
        work: QueryTask::Graph(queries, offer),
        timeout: parameters.timeout()?,
        dataset: None,
        // The default graph as it is stored, without the named graphs.
        union_default: Some(false),
        coding,
        tables: None,
        graphs: Some(offer),
        connection,
        base: None,
        tag: None,
        watched: false,
        snapshot: Some(snapshot),
    };
    let mut response = run::answer(shared, request).await?;
    let coding = match response.headers().contains_key(CONTENT_ENCODING) {
        true => coding,
        false => Coding::Identity,
    };
    let tag = represented.tag(coding);
    response.headers_mut().insert(ETAG, tag);
    Ok(response)
}

/// The content of a graph, or of the whole store, in this format.
fn representation(
    shared: &AppState,
    snapshot: &Snapshot,
    graph: Option<&GraphName>,
    (_, format): Offer,
) -> Result<Representation, Problem> {
    let format = match format {
        ResultFormat::Rdf(format) => format,
        _ => RdfFormat::NTriples,
    };
    let declares = matches!(format, RdfFormat::Turtle | RdfFormat::TriG)
        && shared.options.store_prefixes
        && !snapshot.prefixes().is_empty();
    let mut hash = Sha256::new();
    for (name, iri, _) in snapshot.prefixes().iter().filter(|_| declares) {
        for text in [name, " ", iri, "\n"] {
            hash.update(text);
        }
    }
    let hash = hash.finalize();
    let hash = hash.first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
    let revision = Database::revision_in(snapshot, graph);
    Ok(Representation {
        revision: revision.map_err(|e| Problem::from_error(&e))?,
        format: format.file_extension(),
        prefixes: if declares { hash } else { 0 },
    })
}

/// 404 for a graph without triples, since the store does not store empty graphs.
async fn exists(
    shared: &Arc<AppState>,
    connection: &Arc<Connection>,
    parameters: &Parameters,
    name: oxrdf::NamedNodeRef<'_>,
    snapshot: &Snapshot,
) -> Result<(), Problem> {
    let request = run::ClientRequest {
        work: QueryTask::Query(format!("ASK {{ GRAPH {name} {{ ?s ?p ?o }} }}")),
        timeout: parameters.timeout()?,
        dataset: None,
        union_default: None,
        coding: Coding::Identity,
        tables: Some(("text/csv", jindou::ResultFormat::Csv)),
        graphs: None,
        connection: Arc::clone(connection),
        base: None,
        tag: None,
        watched: false,
        snapshot: Some(snapshot.clone()),
    };
    let response = run::answer(shared, request).await?;
    let body = super::input::body(response.into_body(), 64).await?;
    if body.starts_with(b"true") {
        Ok(())
    } else {
        Err(Problem::new(
            StatusCode::NOT_FOUND,
            "no-graph",
            format!("no graph {name}"),
        ))
    }
}
