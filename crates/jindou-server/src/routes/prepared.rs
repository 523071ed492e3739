//! `/prepared` and `/batch`: queries that are planned once and run with different terms, one or many per request.

use super::input::{Parameters, address, body, media_type};
use super::{answered, query, text};
use crate::admission::AdmissionRequest;
use crate::base::under;
use crate::batch;
use crate::live::shown;
use crate::piece;
use crate::problem::Problem;
use crate::registry::RegisteredQuery;
use crate::run::{self, BoundQuery, Connection, QueryTask};
use crate::shared::AppState;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use http::{Method, Response, StatusCode};
use oxrdf::{NamedNode, Term};
use std::str::FromStr;
use std::sync::Arc;

/// Prepares a query, given with its parameters' names.
pub(super) async fn prepared(
    shared: &Arc<AppState>,
    connection: &Connection,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let (parts, content) = request.into_parts();
    if parts.method != Method::POST {
        return Err(Problem::method("POST, OPTIONS"));
    }
    let mut parameters = Parameters::of_url(&parts.uri)?;
    let most = shared.options.max_request_bytes;
    let query = query::posted(&mut parameters, &parts.headers, content, most).await?;
    refuse_graphs(&parameters)?;
    let names = parameters.all("parameter");
    let base = address(shared, &parts.headers, parts.uri.path()).map(NamedNode::into_string);
    let (timeout, tag) = (parameters.timeout()?, parameters.tag()?);
    let text_of = shown(&query).into_owned();
    let asked = AdmissionRequest::new(&text_of, timeout);
    let made = piece::run(shared, connection, &asked, tag, move |shared, admitted| {
        let options = run::limited(shared, &admitted.query);
        let prepare = |options: &_| {
            under(
                &query,
                || base.clone(),
                |text| shared.prepared.prepare(admitted, text, &names, options),
            )
        };
        let (made, _slot) = piece::planned(shared, &admitted.query, &options, prepare)?;
        Ok(made)
    });
    let (id, prepared) = made.await?;
    let document = serde_json::json!({
        "id": format!("{id:016x}"), "parameters": prepared.parameters(),
        "planned": prepared.is_planned(), "light": prepared.is_light(),
    });
    let mut response = text("application/json", format!("{document}\n"));
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// Runs one prepared query, with its values given as `$name=term`.
pub(super) async fn one(
    State(shared): State<Arc<AppState>>,
    Extension(connection): Extension<Arc<Connection>>,
    Path(id): Path<String>,
    request: Request,
) -> Response<Body> {
    let headers = request.headers().clone();
    let answer = async {
        let (parts, content) = request.into_parts();
        if !matches!(parts.method, Method::GET | Method::HEAD | Method::POST) {
            return Err(Problem::method("GET, HEAD, POST, OPTIONS"));
        }
        let most = shared.options.max_request_bytes;
        let parameters = Parameters::of_request(&parts, content, most).await?;
        refuse_graphs(&parameters)?;
        let prepared = find(&shared, &id)?;
        let mut values = bindings(&parameters)?;
        let ordered = prepared
            .parameters()
            .iter()
            .map(|name| {
                let at = values.iter().position(|(n, _)| n == name);
                at.map(|at| values.swap_remove(at).1).ok_or_else(|| {
                    Problem::bad_request(format!("no value for the parameter ${name}"))
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        if let Some((name, _)) = values.first() {
            return Err(Problem::bad_request(format!(
                "the query has no parameter ${name}"
            )));
        }
        let work = QueryTask::Bound(BoundQuery {
            prepared,
            values: ordered,
        });
        query::run(&shared, &parameters, &parts, connection, work).await
    };
    answered(answer.await, &headers)
}

/// Runs many queries of a batch.
pub(super) async fn many(
    shared: &Arc<AppState>,
    connection: &Connection,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let (parts, content) = request.into_parts();
    if parts.method != Method::POST {
        return Err(Problem::method("POST, OPTIONS"));
    }
    let parameters = Parameters::of_url(&parts.uri)?;
    refuse_graphs(&parameters)?;
    match media_type(&parts.headers)?.as_deref() {
        Some("application/x-ndjson" | "application/ndjson" | "application/json") => {}
        _ => {
            return Err(Problem::media_type(
                "send a batch as application/x-ndjson or application/json",
            ));
        }
    }
    let text = body(content, shared.options.max_request_bytes).await?;
    let (timeout, tag) = (parameters.timeout()?, parameters.tag()?);
    batch::answer(shared, text, timeout, tag, connection).await
}

/// Refuses parameters that select graphs, since prepared queries are planned for the server's default graph.
fn refuse_graphs(parameters: &Parameters) -> Result<(), Problem> {
    match parameters.union_default()? {
        None => Ok(()),
        Some(_) => Err(Problem::bad_request(
            "the parameter 'graphs' is not for prepared queries; send the query to /query",
        )),
    }
}

fn find(shared: &AppState, id: &str) -> Result<RegisteredQuery, Problem> {
    u64::from_str_radix(id, 16)
        .ok()
        .filter(|_| id.len() == 16)
        .and_then(|id| shared.prepared.get(id))
        .ok_or_else(|| batch::unknown(id))
}

/// Values for variables in a request: `$name=<iri>`, `$name="literal"@en`, and so on; terms are written as in
/// N-Triples.
pub(super) fn bindings(parameters: &Parameters) -> Result<Vec<(String, Term)>, Problem> {
    let mut out: Vec<(String, Term)> = vec![];
    for (name, value) in parameters.prefixed('$') {
        let term = Term::from_str(value.trim()).map_err(|e| {
            Problem::bad_request(format!(
                "${name}: '{value}' is not a term as in N-Triples (<iri>, \"text\", \"7\"^^<datatype>): {e}"
            ))
        })?;
        if out.iter().any(|(n, _)| n == name) {
            return Err(Problem::bad_request(format!("${name} is given twice")));
        }
        out.push((name.to_owned(), term));
    }
    Ok(out)
}
