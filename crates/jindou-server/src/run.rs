//! Runs one query from admission to its last byte. If it is not answered at once ([`inline`]), it runs on a thread of
//! its own, from a bounded pool, where it may block: it waits for a slot, and for its reader.

use crate::admission::limits::{Refusal, WorkClass};
use crate::admission::{self, AdmissionRequest, Admitted};
use crate::auth::Caller;
use crate::base;
use crate::conditions::NEGOTIATED;
use crate::consistency;
use crate::inline::{self, Attempt};
use crate::live::{CancelCause, LiveQuery, QueryState, shown};
use crate::metrics;
use crate::negotiate::{Coding, Offer};
use crate::piece;
use crate::problem::Problem;
use crate::profile::{self, ProfileStep};
use crate::registry::{RegisteredQuery, Registry};
use crate::response::{self, ResponseHead, ResponseWriter};
use crate::routes::BaseAddress;
use crate::shared::AppState;
use crate::sinks::{
    AnswerDestination, CountingSink, GraphNames, HttpSink, QuadRowSink, RowCounter,
};
use crate::slots::QuerySlot;
use axum::body::Body;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY};
use http::{HeaderValue, Response};
use jindou::results::GraphWriter;
use jindou::{
    DatasetChoice, Error, PlannedQuery, QueryOptions, QueryWatch, Result, ResultFormat, Snapshot,
    Value,
};
use oxrdf::Term;
use oxrdfio::RdfFormat;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The connection of a request, and the sender of the request.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) peer: Arc<str>,
    /// The number of the client of requests without a token: see [`client_of`].
    pub(crate) client: u64,
    /// Notified when an answer breaks off, so that the connection is closed even if the client has stopped reading.
    pub(crate) cut: Arc<Notify>,
    pub(crate) caller: Caller,
}

impl Connection {
    /// The same connection, for a request by this caller.
    pub(crate) fn by(&self, caller: Caller) -> Self {
        Self {
            peer: Arc::clone(&self.peer),
            client: self.client,
            cut: Arc::clone(&self.cut),
            caller,
        }
    }
}

/// Time between an answer's failure and the closing of its connection, in which the client can notice the failure.
const CUT_AFTER: Duration = Duration::from_secs(1);

/// The kind of answer that a request asks for.
pub(crate) enum QueryTask {
    /// A query's results.
    Query(String),
    /// A prepared query's results.
    Bound(BoundQuery),
    /// Results of a query with values for its variables; the query must be prepared first.
    Values(Valued),
    /// A query's profile; its results are discarded.
    Profile(String),
    /// The graph whose quads are the rows (of three or four columns) of these SELECT queries, in this format.
    Graph(Vec<String>, Offer),
}

/// A prepared query and the values of its parameters.
pub(crate) struct BoundQuery {
    pub(crate) prepared: RegisteredQuery,
    pub(crate) values: Vec<Term>,
}

/// A query, the names of some of its variables, and values for them in the same order.
pub(crate) struct Valued {
    pub(crate) text: String,
    pub(crate) names: Vec<String>,
    pub(crate) values: Vec<Term>,
}

/// The number that identifies a client without a token: a hash of its address without the port.
pub(crate) fn client_of(peer: &str) -> u64 {
    let host = peer.rsplit_once(':').map_or(peer, |(host, _)| host);
    let mut hasher = std::hash::DefaultHasher::new();
    host.hash(&mut hasher);
    hasher.finish()
}

impl QueryTask {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Query(text) | Self::Profile(text) => text,
            Self::Bound(b) => b.prepared.text(),
            Self::Values(v) => &v.text,
            Self::Graph(texts, _) => texts.first().map_or("", String::as_str),
        }
    }
}

/// A client's request for a query's answer.
pub(crate) struct ClientRequest {
    pub(crate) work: QueryTask,
    pub(crate) timeout: Option<Duration>,
    pub(crate) dataset: Option<DatasetChoice>,
    pub(crate) union_default: Option<bool>,
    pub(crate) coding: Coding,
    pub(crate) tables: Option<Offer>,
    pub(crate) graphs: Option<Offer>,
    pub(crate) connection: Arc<Connection>,
    /// The base for relative IRIs of a query without BASE: the endpoint's address.
    pub(crate) base: Option<BaseAddress>,
    /// The tag by which the client can find the query in the list of queries.
    pub(crate) tag: Option<String>,
    /// True if the progress of the query's steps should be visible while it runs.
    pub(crate) watched: bool,
    /// The snapshot to read; `None` for the published one.
    pub(crate) snapshot: Option<Snapshot>,
}

/// Reason why there is no complete answer.
pub(crate) struct AnswerFailure {
    pub(crate) error: Error,
    /// The available formats, if the client accepts none of them.
    pub(crate) unacceptable: Option<&'static [Offer]>,
    /// The refusal, if admission has refused the query.
    pub(crate) refused: Option<Box<Refusal>>,
}

impl AnswerFailure {
    /// The failure of a query that admission control refused.
    pub(crate) fn refused(refused: Refusal) -> Self {
        Self {
            refused: Some(Box::new(refused)),
            ..Self::running(Error::Cancelled)
        }
    }

    pub(crate) fn running(error: Error) -> Self {
        Self {
            error,
            unacceptable: None,
            refused: None,
        }
    }

    /// The same failure; a timeout reports the query's own time limit, whichever shorter limit has passed.
    pub(crate) fn during(mut self, query: &LiveQuery) -> Self {
        if let Error::Timeout(_) = self.error {
            self.error = Error::Timeout(query.limit());
        }
        self
    }

    pub(crate) fn problem(&self, query: &LiveQuery) -> Problem {
        if let Some(refused) = &self.refused {
            return Problem::refused(refused);
        }
        if let Some(offers) = self.unacceptable {
            return Problem::no_format(offers);
        }
        let mut problem = Problem::from_error(&self.error);
        match (&self.error, query.cause()) {
            (Error::Cancelled, Some(CancelCause::Admin)) => {
                problem.detail = "the query was cancelled at /admin/queries".into();
            }
            (Error::Cancelled, Some(CancelCause::Shutdown)) => {
                problem.detail = "the server is shutting down".into();
            }
            _ => {}
        }
        problem
    }

    fn outcome(&self, query: &LiveQuery) -> &'static str {
        match (&self.error, query.cause()) {
            _ if self.refused.is_some() => "refused",
            _ if self.unacceptable.is_some() => "not-acceptable",
            (Error::Cancelled | Error::SinkClosed, Some(CancelCause::ClientGone) | None) => {
                "client-gone"
            }
            (Error::Cancelled | Error::SinkClosed, Some(CancelCause::Admin)) => "cancelled",
            (Error::Cancelled | Error::SinkClosed, Some(CancelCause::Shutdown)) => "shutdown",
            (Error::Timeout(_), _) => "timeout",
            (Error::Limit(_), _) => "limit",
            (Error::Busy(_), _) => "refused",
            (Error::Query(_) | Error::Sparql(_), _) => "syntax",
            (Error::Unsupported(_), _) => "unsupported",
            _ => "error",
        }
    }
}

/// Runs a request. Returns the response when its status is known; its body is written while the query runs.
pub(crate) async fn answer(
    shared: &Arc<AppState>,
    request: ClientRequest,
) -> Result<Response<Body>, Problem> {
    let asked = AdmissionRequest::new(request.work.text(), request.timeout);
    let admitted = admission::admit(shared, &request.connection, &asked)?;
    let query = Arc::clone(&admitted.query);
    if let Some(tag) = &request.tag {
        let _ = query.tag.set(tag.clone());
    }
    if request.watched || matches!(request.work, QueryTask::Profile(_)) {
        let _ = query.watch.set(QueryWatch::default());
    }
    let planned = match inline::attempt(shared, &admitted, &request) {
        Attempt::Done(done) => return done.map(|response| numbered(response, &query)),
        Attempt::Later(planned) => planned,
    };
    let (writer, response) = response::pair(shared, &query, request.coding).map_err(|e| {
        let failure = AnswerFailure::running(e);
        record(shared, &query, Err(&failure), false);
        failure.problem(&query)
    })?;
    let shared = Arc::clone(shared);
    let job =
        tokio::task::spawn_blocking(move || work(&shared, admitted, request, planned, writer));
    let body = response.body;
    let Ok(head) = response.head.await else {
        return Err(match job.await {
            Ok(Err(failure)) => failure.problem(&query),
            // The thread has panicked; the message is on standard error.
            Ok(Ok(())) | Err(_) => {
                Problem::from_error(&Error::Internal("the query ended without an answer".into()))
            }
        });
    };
    Ok(numbered(respond(&head, Body::new(body)), &query))
}

/// Adds the number of the snapshot that the query reads to a response, if it is known.
fn numbered(mut response: Response<Body>, query: &LiveQuery) -> Response<Body> {
    if let Some(number) = query.snapshot.get() {
        let headers = response.headers_mut();
        headers.insert(consistency::SNAPSHOT, consistency::value(*number));
    }
    response
}

/// A response with status 200.
pub(crate) fn respond(head: &ResponseHead, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(head.content_type));
    headers.insert(VARY, NEGOTIATED);
    if let Some(coding) = head.coding.name() {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    if let Some(length) = head.length {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    response
}

/// The function that the query's thread runs.
fn work(
    shared: &AppState,
    admitted: Admitted,
    request: ClientRequest,
    planned: Option<PlannedQuery>,
    mut writer: ResponseWriter,
) -> Result<(), AnswerFailure> {
    let query = &admitted.query;
    let done = carry_out(shared, &admitted, &request, planned, &mut writer);
    let started = writer.is_started();
    let done = match done {
        Ok(()) => writer.finish().map_err(AnswerFailure::running),
        Err(mut failure) => {
            if let Some(better) = writer.take_failure() {
                failure.error = better;
            }
            drop(writer);
            Err(failure)
        }
    };
    let done = done.map_err(|failure| failure.during(query));
    record(shared, query, done.as_ref().map(drop), started);
    if done.is_err() && started {
        let connection = Arc::clone(&request.connection);
        tokio::runtime::Handle::current().spawn(async move {
            tokio::time::sleep(CUT_AFTER).await;
            connection.cut.notify_one();
        });
    }
    done
}

pub(crate) fn record(
    shared: &AppState,
    query: &LiveQuery,
    done: Result<(), &AnswerFailure>,
    started: bool,
) {
    let light = query.light.get().copied();
    let class = metrics::class(light);
    let outcome = match done {
        Ok(()) => "ok",
        Err(failure) => failure.outcome(query),
    };
    let took = query.started.elapsed();
    let (rows, bytes) = (
        query.rows.load(Ordering::Relaxed),
        query.bytes.load(Ordering::Relaxed),
    );
    let m = &shared.metrics;
    m.ended(light, outcome, took);
    m.rows.inc_by(rows);
    m.bytes.inc_by(bytes);
    let ms = crate::millis(took);
    let id = query.id;
    if let Err(failure) = done
        && (started || outcome == "error")
    {
        let broken = if started {
            "answer cut off"
        } else {
            "query failed"
        };
        tracing::warn!(id, class, outcome, rows, bytes, ms, reason = &*shown(&failure.error.to_string()), client = %query.client, "{broken}");
    } else {
        tracing::debug!(id, class, outcome, rows, bytes, ms, client = %query.client, "query");
    }
    shared.slow.note(query, outcome, took);
    if shared.options.slow_query.is_some_and(|slow| took >= slow) {
        tracing::warn!(id, class, outcome, rows, bytes, ms, client = %query.client, text = query.text(), "slow query");
    }
}

/// Options with which the database runs the request's query.
pub(crate) fn options(
    shared: &AppState,
    query: &LiveQuery,
    request: &ClientRequest,
) -> QueryOptions {
    let own = request.union_default.or(shared.options.union_default);
    let mut options = limited(shared, query);
    options.union_default = own;
    options.profile = matches!(request.work, QueryTask::Profile(_));
    options.watch = query.watch.get().cloned();
    options.dataset.clone_from(&request.dataset);
    options
}

/// The server's options for a query, with the query's limits.
pub(crate) fn limited(shared: &AppState, query: &LiveQuery) -> QueryOptions {
    let mut options = shared.query_options.clone();
    options.timeout = Some(query.left());
    options.memory = Some(query.memory.clone());
    options.cancel = query.token();
    options
}

/// Stores the number of the snapshot that the query reads, for a store with a shared log.
pub(crate) fn note_snapshot(admitted: &Admitted, planned: &PlannedQuery) {
    if admitted.db().replica().is_some() {
        let _ = admitted.query.snapshot.set(planned.snapshot().group());
    }
}

fn carry_out(
    shared: &AppState,
    admitted: &Admitted,
    request: &ClientRequest,
    planned: Option<PlannedQuery>,
    writer: &mut ResponseWriter,
) -> Result<(), AnswerFailure> {
    let query = &admitted.query;
    let options = options(shared, query, request);
    query.check().map_err(AnswerFailure::running)?;
    let planning = Instant::now();
    let (planned, slot) = match planned {
        Some(planned) => (planned, None),
        None => piece::planned(shared, query, &options, |options| {
            plan(shared, admitted, request, options)
        })?,
    };
    note_snapshot(admitted, &planned);
    let plan_time = planning.elapsed();
    // A graph is read completely, so its query is heavy even if its plan looks light.
    let light = planned.is_light() && !matches!(request.work, QueryTask::Graph(..));
    let _ = query.light.set(light);
    let class = if light {
        WorkClass::Light
    } else {
        WorkClass::Heavy
    };
    // Refuses the query if it could not begin before its time is over.
    let slot = match slot {
        Some(slot) => slot,
        None => piece::slot(shared, query, class)?,
    };
    let computing = Instant::now();
    let done = compute(
        shared, admitted, request, options, writer, slot, &planned, plan_time,
    );
    if !query.has_waited() {
        shared.admission.served(class, computing.elapsed());
    }
    done
}

#[allow(
    clippy::too_many_arguments,
    reason = "the parts of one query that has its slot"
)]
fn compute(
    shared: &AppState,
    admitted: &Admitted,
    request: &ClientRequest,
    mut options: QueryOptions,
    writer: &mut ResponseWriter,
    slot: QuerySlot,
    planned: &PlannedQuery,
    plan_time: Duration,
) -> Result<(), AnswerFailure> {
    let (db, query) = (admitted.db(), &admitted.query);
    writer.set_slot(slot);
    query.set_state(QueryState::Running);
    options.timeout = Some(query.left());
    match &request.work {
        QueryTask::Query(_) | QueryTask::Bound(_) | QueryTask::Values(_) => {
            let count = CountingSink::new(shared, query);
            let names = GraphNames::of(shared, planned, request.work.text());
            let mut sink = HttpSink::new(writer, request.tables, request.graphs, names, count);
            let ran = db.run_planned(planned, &options, &mut sink);
            let unacceptable = sink.unacceptable();
            ran.map(drop).map_err(|error| AnswerFailure {
                error,
                unacceptable,
                refused: None,
            })
        }
        QueryTask::Profile(_) => {
            let mut sink = RowCounter(CountingSink::new(shared, query));
            let mut report = db
                .run_planned(planned, &options, &mut sink)
                .map_err(AnswerFailure::running)?;
            report.plan_time = plan_time;
            writer.set_content_type("application/json");
            profile::write(writer, &report, planned)
                .map_err(|e| AnswerFailure::running(Error::io("<response>", e)))
        }
        QueryTask::Graph(texts, (content_type, format)) => {
            writer.set_content_type(content_type);
            let format = match format {
                ResultFormat::Rdf(format) => *format,
                _ => RdfFormat::NTriples,
            };
            let names = GraphNames::of(shared, planned, "")
                .filter(|_| matches!(format, RdfFormat::Turtle | RdfFormat::TriG));
            let prefixes = names.map(GraphNames::prefixes).unwrap_or_default();
            let mut sink = QuadRowSink {
                is_new: !prefixes.is_empty(),
                writer: GraphWriter::new(writer, format, prefixes),
                format,
                count: CountingSink::new(shared, query),
                memory: query.memory.clone(),
            };
            for (at, text) in texts.iter().enumerate() {
                options.timeout = Some(query.left());
                // All queries for one graph read the same snapshot.
                let ran = match at {
                    0 => db.run_planned(planned, &options, &mut sink),
                    _ => db
                        .plan_in(text, &options, planned.snapshot())
                        .and_then(|planned| db.run_planned(&planned, &options, &mut sink)),
                };
                ran.map_err(AnswerFailure::running)?;
            }
            let ended = sink.writer.finish().map(drop);
            ended.map_err(AnswerFailure::running)
        }
    }
}

/// Plans the query of a request.
pub(crate) fn plan(
    shared: &AppState,
    admitted: &Admitted,
    request: &ClientRequest,
    options: &QueryOptions,
) -> Result<PlannedQuery> {
    let bound = |prepared: &RegisteredQuery, values: &[Term]| {
        let values: Vec<Value<'_>> = values.iter().map(Value::Term).collect();
        prepared.plan(admitted, &values, options)
    };
    let text = request.work.text();
    let base = || request.base.as_ref()?.iri();
    match &request.work {
        QueryTask::Bound(b) => return bound(&b.prepared, &b.values),
        QueryTask::Values(v) => {
            let chooses_graphs = options.dataset.is_some() || request.union_default.is_some();
            let prepared = base::under(text, base, |text| match chooses_graphs {
                // A selection of graphs is rare, so the query is not registered.
                true => Registry::once(admitted, text, &v.names, options),
                false => {
                    let made = shared.prepared.prepare(admitted, text, &v.names, options);
                    made.map(|(_, prepared)| prepared)
                }
            })?;
            return bound(&prepared, &v.values);
        }
        _ => {}
    }
    let planned = base::under(text, base, |text| match &request.snapshot {
        Some(snapshot) => admitted.db().plan_in(text, options, snapshot),
        None => admitted.db().plan(text, options),
    })?;
    let counter = if planned.is_cached() {
        &shared.metrics.plan_hits
    } else {
        &shared.metrics.plan_misses
    };
    counter.inc();
    Ok(planned)
}

/// The progress of a running query that is profiled or watched, as a document like that of `?profile=true`.
pub(crate) fn so_far(query: &LiveQuery) -> Option<serde_json::Value> {
    let watch = query.watch.get()?;
    let tree = watch.tree()?;
    Some(serde_json::json!({
        "rows": query.rows.load(Ordering::Relaxed), "tree": ProfileStep(&tree), "text": watch.plan(),
    }))
}
