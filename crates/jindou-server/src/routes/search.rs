//! `/search`: resources by words of their labels and IRIs. `/labels`: the labels of given resources.

use super::input::Parameters;
use super::text;
use crate::admission::limits::WorkClass;
use crate::admission::{AdmissionRequest, Admitted};
use crate::documents;
use crate::live::QueryState;
use crate::piece;
use crate::problem::Problem;
use crate::run::{AnswerFailure, Connection};
use crate::shared::AppState;
use axum::body::Body;
use axum::extract::Request;
use http::{Method, Response};
use jindou::search::{Label, LabelOptions, MOST_FOUND, Search};
use jindou::{Error, QueryOptions};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Default and largest value of `timeout`. With an index of words a search takes milliseconds; without one, a shorter
/// limit would leave out most of a large store.
const LONGEST_PATIENCE: Duration = Duration::from_secs(2);
/// Time that a request may wait for a slot, in addition to its `timeout`.
const WAIT: Duration = Duration::from_millis(250);
/// Memory limit of a search, in bytes.
const MEMORY: u64 = 64 << 20;
/// Default number of resources that a search returns.
const FOUND: usize = 20;
/// Largest number of resources in one request for labels.
const LABELS: usize = 1000;
/// Largest number of preferred languages.
const LANGUAGES: usize = 32;

/// The parameters of the URL and, for POST, of a form in the body.
async fn parameters(shared: &AppState, request: Request) -> Result<Parameters, Problem> {
    let (parts, content) = request.into_parts();
    if !matches!(parts.method, Method::GET | Method::HEAD | Method::POST) {
        return Err(Problem::method("GET, HEAD, POST, OPTIONS"));
    }
    Parameters::of_request(&parts, content, shared.options.max_request_bytes).await
}

/// The languages, label properties and graphs that the parameters select.
fn options(shared: &AppState, parameters: &Parameters) -> Result<LabelOptions, Problem> {
    let languages = parameters.one("lang")?.unwrap_or_default();
    let languages = languages
        .split(',')
        .map(str::trim)
        .filter(|l| !l.is_empty());
    let query = QueryOptions::default()
        .with_union_default(parameters.union_default()?)
        .with_dataset(parameters.dataset());
    let mut options = LabelOptions::default()
        .with_languages(languages.take(LANGUAGES).map(str::to_owned).collect())
        .with_query(query);
    if !shared.options.label_properties.is_empty() {
        options.properties = shared.options.label_properties.clone().into();
    }
    Ok(options)
}

/// The options with the limits of an admitted query.
fn limited(options: LabelOptions, admitted: &Admitted) -> LabelOptions {
    let (memory, cancel) = (admitted.query.memory.clone(), admitted.query.token());
    let query = options.query.clone();
    options.with_query(query.with_memory(memory).with_cancel(cancel))
}

/// `/search`.
pub(super) async fn found(
    shared: &Arc<AppState>,
    connection: &Connection,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let parameters = parameters(shared, request).await?;
    let words = parameters.one("q")?.ok_or_else(|| {
        Problem::bad_request("the parameter 'q' is missing: the words to search for")
    })?;
    let limit = match parameters.one("limit")? {
        None => FOUND,
        Some(text) => text.trim().parse::<usize>().map_err(|_| {
            Problem::bad_request(format!("limit={text} is not a number of resources"))
        })?,
    };
    let patience = parameters.timeout()?.unwrap_or(LONGEST_PATIENCE);
    let patience = patience.min(LONGEST_PATIENCE);
    let options = options(shared, &parameters)?;
    let shown = format!("search for {}", crate::live::shown(&words));
    let admission = AdmissionRequest {
        text: &shown,
        timeout: Some(patience + WAIT),
        memory: Some(MEMORY),
    };
    let tag = parameters.tag()?;
    let made = run(shared, connection, &admission, tag, move |admitted| {
        let begun = Instant::now();
        let search = Search::new(&words)
            .with_limit(limit.min(MOST_FOUND))
            .with_patience(patience)
            .with_labels(limited(options, admitted));
        let searched = admitted.db().search(&search)?;
        Ok(documents::searched(&searched, begun.elapsed()))
    });
    Ok(text("application/json", format!("{}\n", made.await?)))
}

/// Runs a search or a lookup of labels in a light slot.
async fn run(
    shared: &Arc<AppState>,
    connection: &Connection,
    admission: &AdmissionRequest<'_>,
    tag: Option<String>,
    work: impl FnOnce(&Admitted) -> Result<Value, Error> + Send + 'static,
) -> Result<Value, Problem> {
    let work = move |shared: &AppState, admitted: &Admitted| {
        let _slot = piece::light_slot(shared, &admitted.query)?;
        admitted.query.set_state(QueryState::Running);
        let begin = Instant::now();
        let made = work(admitted);
        shared.admission.served(WorkClass::Light, begin.elapsed());
        made.map_err(AnswerFailure::running)
    };
    piece::run(shared, connection, admission, tag, work).await
}

/// `/labels`.
pub(super) async fn labelled(
    shared: &Arc<AppState>,
    connection: &Connection,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let parameters = parameters(shared, request).await?;
    let iris = parameters.all("iri");
    if iris.is_empty() {
        return Err(Problem::bad_request(
            "the parameter 'iri' is missing: a resource whose label is asked for; it may be repeated",
        ));
    }
    if iris.len() > LABELS {
        return Err(Problem::bad_request(format!(
            "the labels of {} resources are asked for; at most {LABELS} may be asked for in one request",
            iris.len()
        )));
    }
    let options = options(shared, &parameters)?;
    let shown = format!("labels of {} resources", iris.len());
    let timeout = parameters.timeout()?.unwrap_or(LONGEST_PATIENCE);
    let admission = AdmissionRequest {
        text: &shown,
        timeout: Some(timeout.min(shared.options.max_timeout) + WAIT),
        memory: Some(MEMORY),
    };
    let tag = parameters.tag()?;
    let made = run(shared, connection, &admission, tag, move |admitted| {
        let found = admitted.db().labels(&iris, &limited(options, admitted))?;
        let named = iris.into_iter().zip(found);
        let named = named.filter_map(|(iri, label)| Some((iri, value(&label?))));
        Ok(json!({ "labels": named.collect::<Map<String, Value>>() }))
    });
    Ok(text("application/json", format!("{}\n", made.await?)))
}

fn value(label: &Label) -> Value {
    let mut made = json!({ "text": label.text });
    if let Some(language) = &label.language {
        made["lang"] = json!(language);
    }
    made
}
