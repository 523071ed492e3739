//! `/query`: SPARQL 1.1 Protocol, section 2.1.

use super::input::{Parameters, address, body, media_type, utf8};
use super::{answered, describe};
use crate::negotiate::{self, GRAPHS, TABLES};
use crate::problem::Problem;
use crate::run::{self, Connection, Work};
use crate::shared::Shared;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use http::{HeaderMap, Method, Response};
use std::sync::Arc;

pub(super) async fn handle(
    State(shared): State<Arc<Shared>>,
    Extension(connection): Extension<Arc<Connection>>,
    request: Request,
) -> Response<Body> {
    let headers = request.headers().clone();
    answered(answer(&shared, connection, request).await, &headers)
}

async fn answer(
    shared: &Arc<Shared>,
    connection: Arc<Connection>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let (parts, content) = request.into_parts();
    let headers = &parts.headers;
    let mut parameters = Parameters::of_url(&parts.uri);
    let text = match parts.method {
        Method::GET | Method::HEAD => match parameters.one("query")? {
            Some(text) => text,
            None if parameters.has("update") => {
                return Err(Problem::bad_request(
                    "an update cannot be sent by GET, and not to /query",
                ));
            }
            None => return describe::answer(shared, &parts),
        },
        Method::POST => {
            posted(
                &mut parameters,
                headers,
                content,
                shared.options.max_request_bytes,
            )
            .await?
        }
        _ => return Err(Problem::method("GET, HEAD, POST, OPTIONS")),
    };
    let profile = parameters.switch("profile")? || headers.contains_key("x-jindou-profile");
    let request = run::Request {
        work: if profile {
            Work::Profile(text)
        } else {
            Work::Query(text)
        },
        timeout: parameters.timeout()?,
        dataset: parameters.dataset(),
        union_default: None,
        coding: negotiate::coding(headers),
        tables: negotiate::accept(headers, &TABLES),
        graphs: negotiate::accept(headers, &GRAPHS),
        connection,
        base: address(shared, headers, "/query").map(|a| a.into_string()),
    };
    run::answer(shared, request).await
}

/// The query of a POST: in a form, or as the body itself.
async fn posted(
    parameters: &mut Parameters,
    headers: &HeaderMap,
    content: Body,
    most: usize,
) -> Result<String, Problem> {
    match media_type(headers)?.as_deref() {
        Some("application/x-www-form-urlencoded") => {
            let form = body(content, most).await?;
            parameters.add(utf8(form)?.as_bytes());
            parameters
                .one("query")?
                .ok_or_else(|| Problem::bad_request("the form has no parameter 'query'"))
        }
        Some("application/sparql-query") => {
            if parameters.has("query") {
                return Err(Problem::bad_request(
                    "there is a query in the URL and another in the body; one is allowed",
                ));
            }
            utf8(body(content, most).await?)
        }
        other => Err(Problem::media_type(format!(
            "a query comes as application/x-www-form-urlencoded or application/sparql-query, not as {}",
            other.unwrap_or("a body without Content-Type")
        ))),
    }
}
