//! `/store`: the reading half of the SPARQL 1.1 Graph Store HTTP Protocol; `change` has the writing half. Graphs are
//! named indirectly (section 4.2) or, below `/store/`, by their own address (section 4.1).

use super::input::{Parameters, address};
use super::{answered, change};
use crate::negotiate::{self, Coding, DATASETS, GRAPHS};
use crate::problem::Problem;
use crate::run::{self, Connection, QueryTask};
use crate::shared::AppState;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use http::{Method, Response, StatusCode};
use jindou::GraphName;
use std::sync::Arc;

pub(super) async fn handle(
    State(shared): State<Arc<AppState>>,
    Extension(connection): Extension<Arc<Connection>>,
    request: Request,
) -> Response<Body> {
    let headers = request.headers().clone();
    answered(answer(&shared, connection, request).await, &headers)
}

async fn answer(
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
        // Relative IRIs are resolved against the graph's own name, or the address of the store.
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
    let offers: &[_] = match (&graph, default) {
        (None, false) => &DATASETS,
        _ => &GRAPHS,
    };
    let offer = match parameters.format()? {
        Some(format) => negotiate::named(&format, offers),
        None => negotiate::accept(headers, offers),
    };
    let offer = offer.ok_or_else(|| Problem::not_acceptable(offers))?;
    let mut union_default = None;
    let queries = match &graph {
        Some(iri) => {
            let name = oxrdf::NamedNode::new(iri)
                .map_err(|e| Problem::bad_request(format!("graph={iri} is not an IRI: {e}")))?;
            exists(shared, &connection, &parameters, name.as_ref()).await?;
            vec![format!("SELECT ?s ?p ?o {{ GRAPH {name} {{ ?s ?p ?o }} }}")]
        }
        None if default => vec!["SELECT ?s ?p ?o { ?s ?p ?o }".into()],
        None => {
            // The dataset as it is stored, not as queries see it.
            union_default = Some(false);
            vec![
                "SELECT ?s ?p ?o { ?s ?p ?o }".into(),
                "SELECT ?s ?p ?o ?g { GRAPH ?g { ?s ?p ?o } }".into(),
            ]
        }
    };
    let request = run::ClientRequest {
        work: QueryTask::Graph(queries, offer),
        timeout: parameters.timeout()?,
        dataset: None,
        union_default,
        coding: negotiate::coding(headers),
        tables: None,
        graphs: Some(offer),
        connection,
        base: None,
        tag: None,
        watched: false,
    };
    run::answer(shared, request).await
}

/// 404 for a graph without triples: the store keeps no empty graphs.
async fn exists(
    shared: &Arc<AppState>,
    connection: &Arc<Connection>,
    parameters: &Parameters,
    name: oxrdf::NamedNodeRef<'_>,
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
