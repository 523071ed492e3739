//! `/query` (SPARQL 1.1 Protocol, section 2.1). Also handles queries at `/sparql`.

use super::input::{BaseAddress, Parameters, address, body, media_type, utf8};
use super::prepared::bindings;
use super::{describe, page, text};
use crate::admission::AdmissionRequest;
use crate::base::{known, under, unmarked};
use crate::live::shown;
use crate::negotiate::{self, GRAPH_ANSWERS, TABLES};
use crate::piece;
use crate::problem::Problem;
use crate::run::{self, BoundQuery, Connection, QueryTask, Valued};
use crate::shared::AppState;
use axum::body::Body;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method, Response};
use oxrdf::{NamedNode, Term};
use std::sync::Arc;
use std::time::Duration;

/// Forms of at least this many bytes are decoded on a thread where that does not delay other requests.
const LONG_FORM: usize = 64 << 10;

/// Header that asks for a profile, as the parameter `profile` does.
const PROFILE: HeaderName = HeaderName::from_static("x-jindou-profile");

/// Longest planning time if only the plan is requested.
const LONGEST_EXPLANATION: Duration = Duration::from_secs(1);

/// Answers a query, whichever route it was sent to. A browser that sends no query gets the page.
pub(super) async fn answer(
    shared: &Arc<AppState>,
    connection: Arc<Connection>,
    parts: &Parts,
    content: Body,
) -> Result<Response<Body>, Problem> {
    let headers = &parts.headers;
    let mut parameters = Parameters::of_url(&parts.uri)?;
    let text = match parts.method {
        Method::GET | Method::HEAD => match parameters.one("query")? {
            // A browser that follows a link with a query gets the page, which shows the answer.
            Some(_) if page::is_wanted(headers) && !chooses_document(&parameters) => {
                return Ok(page::answer());
            }
            Some(text) => unmarked(text),
            None if parameters.has("update") => {
                return Err(Problem::bad_request(
                    "this is an update: send it by POST, to /update or /sparql",
                ));
            }
            None if page::is_wanted(headers) => return Ok(page::answer()),
            None => return Box::pin(describe::answer(shared, &connection, parts)).await,
        },
        Method::POST => {
            let most = shared.options.max_request_bytes;
            Box::pin(posted(&mut parameters, headers, content, most)).await?
        }
        _ => return Err(Problem::method("GET, HEAD, POST, OPTIONS")),
    };
    let profile = parameters.switch("profile")? || headers.contains_key(&PROFILE);
    let values = bindings(&parameters)?;
    if parameters.switch("explain")? {
        let base = address(shared, headers, parts.uri.path()).map(NamedNode::into_string);
        return Box::pin(explained(shared, &connection, &parameters, text, base)).await;
    }
    if parameters.switch("why-empty")? {
        if !values.is_empty() {
            return Err(Problem::bad_request(
                "why-empty takes no values ($name=term); write the terms into the query's text",
            ));
        }
        let base = address(shared, headers, parts.uri.path()).map(NamedNode::into_string);
        let found = super::empty::answer(shared, &connection, &parameters, text, base);
        return Box::pin(found).await;
    }
    let work = if profile && values.is_empty() {
        QueryTask::Profile(text)
    } else if profile {
        return Err(Problem::bad_request(
            "a query with values ($name=term) cannot be profiled; write the terms into the query's text",
        ));
    } else if values.is_empty() {
        QueryTask::Query(text)
    } else {
        let base = BaseAddress::of(shared, parts);
        let chooses = parameters.dataset().is_some() || parameters.union_default()?.is_some();
        bound(shared, chooses, text, values, &base)
    };
    run(shared, &parameters, parts, connection, work).await
}

/// True if the parameters select a document, which a browser then gets instead of the page.
fn chooses_document(parameters: &Parameters) -> bool {
    let names = ["format", "explain", "profile", "why-empty"];
    names.into_iter().any(|name| parameters.has(name))
}

/// Answers with the plan of a query as JSON, without running the query. Editors request it while a text is being
/// written, since it also reports syntax errors.
async fn explained(
    shared: &Arc<AppState>,
    connection: &Connection,
    parameters: &Parameters,
    query: String,
    base: Option<String>,
) -> Result<Response<Body>, Problem> {
    let timeout = parameters.timeout()?.unwrap_or(shared.options.timeout);
    let text_of = shown(&query).into_owned();
    let asked = AdmissionRequest::new(&text_of, Some(timeout.min(LONGEST_EXPLANATION)));
    let (tag, dataset) = (parameters.tag()?, parameters.dataset());
    let union_default = parameters.union_default()?;
    let plan = piece::run(shared, connection, &asked, tag, move |shared, admitted| {
        let own = union_default.or(shared.options.union_default);
        let options = run::limited(shared, &admitted.query)
            .with_dataset(dataset)
            .with_union_default(own);
        let explain = |options: &_| {
            under(
                &query,
                || base.clone(),
                |text| admitted.db().explain(text, options),
            )
        };
        let (plan, _slot) = piece::planned(shared, &admitted.query, &options, explain)?;
        Ok(plan)
    });
    let plan = plan.await?;
    let lines: Vec<&str> = plan.lines().collect();
    let document = serde_json::json!({ "text": lines });
    Ok(text("application/json", format!("{document:#}\n")))
}

/// The task for a query with values for variables. If it was prepared before, it need not be parsed again.
fn bound(
    shared: &AppState,
    chooses_graphs: bool,
    text: String,
    mut values: Vec<(String, Term)>,
    base: &BaseAddress,
) -> QueryTask {
    // Sorted, so that the order of the values in the request does not matter.
    values.sort_by(|a, b| a.0.cmp(&b.0));
    let (names, values): (Vec<String>, Vec<Term>) = values.into_iter().unzip();
    let found = match chooses_graphs {
        true => None,
        false => known(
            &text,
            || base.iri(),
            |text| shared.prepared.find(text, &names).1,
        ),
    };
    match found {
        Some(prepared) => QueryTask::Bound(BoundQuery { prepared, values }),
        None => QueryTask::Values(Valued {
            text,
            names,
            values,
        }),
    }
}

/// Runs a query as the request's parameters and headers specify.
pub(super) async fn run(
    shared: &Arc<AppState>,
    parameters: &Parameters,
    parts: &Parts,
    connection: Arc<Connection>,
    work: QueryTask,
) -> Result<Response<Body>, Problem> {
    let headers = &parts.headers;
    let (tables, graphs) = match parameters.format()? {
        Some(format) => (
            negotiate::named(&format, &TABLES),
            negotiate::named(&format, &GRAPH_ANSWERS),
        ),
        None => (
            negotiate::accept(headers, &TABLES),
            negotiate::accept(headers, &GRAPH_ANSWERS),
        ),
    };
    let request = run::ClientRequest {
        work,
        timeout: parameters.timeout()?,
        dataset: parameters.dataset(),
        union_default: parameters.union_default()?,
        coding: negotiate::coding(headers),
        tables,
        graphs,
        connection,
        base: Some(BaseAddress::of(shared, parts)),
        tag: parameters.tag()?,
        watched: parameters.switch("watch")?,
        snapshot: None,
    };
    run::answer(shared, request).await
}

/// The query of a POST, which is in a form, or is the body itself.
pub(super) async fn posted(
    parameters: &mut Parameters,
    headers: &HeaderMap,
    content: Body,
    most: usize,
) -> Result<String, Problem> {
    match media_type(headers)?.as_deref() {
        Some("application/x-www-form-urlencoded") => {
            let form = body(content, most).await?;
            let form_is_long = form.len() > LONG_FORM;
            let mut read = || parameters.add(&form);
            if form_is_long {
                tokio::task::block_in_place(read)?;
            } else {
                read()?;
            }
            let query = parameters.one("query")?.map(unmarked);
            query.ok_or_else(|| {
                Problem::bad_request(if parameters.has("update") {
                    "this is an update: send it to /update or /sparql"
                } else {
                    "the form has no parameter 'query'"
                })
            })
        }
        Some("application/sparql-query") => {
            if parameters.has("query") {
                return Err(Problem::bad_request(
                    "there is a query in the URL and another in the body; send only one",
                ));
            }
            utf8(body(content, most).await?).map(unmarked)
        }
        Some("application/sparql-update") => Err(Problem::media_type(
            "this is an update: send it to /update or /sparql",
        )),
        other => Err(Problem::media_type(format!(
            "send a query as application/x-www-form-urlencoded or application/sparql-query, not as {}",
            other.unwrap_or("a body without Content-Type")
        ))),
    }
}
