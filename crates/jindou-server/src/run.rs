//! One query from admission to its last byte. It runs on a thread of its own (of a bounded pool), so that it may wait: for
//! a slot to compute in, and for its reader.

use crate::live::{Admitted, Cause, LiveQuery, Newcomer, State};
use crate::negotiate::{Coding, GRAPHS, Offer, TABLES};
use crate::outlet::{self, Outlet};
use crate::problem::Problem;
use crate::quads;
use crate::shared::Shared;
use axum::body::Body;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY};
use http::{HeaderValue, Response};
use jindou::results::{RowText, Rows};
use jindou::{
    AnswerSink, DatasetChoice, Error, PlannedQuery, ProfileNode, QueryOptions, QueryReport, Result,
    ResultFormat, ResultWriter,
};
use oxrdfio::{RdfFormat, RdfSerializer, WriterQuadSerializer};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::Notify;

/// The connection a request came by.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) peer: String,
    /// Told when an answer broke off: the connection is cut even if its reader has stopped reading.
    pub(crate) cut: Notify,
}

/// How long a broken answer's reader has to notice before its connection is cut.
const CUT_AFTER: Duration = Duration::from_secs(1);

/// What to answer.
pub(crate) enum Work {
    /// A query's results.
    Query(String),
    /// A query's profile; its results are thrown away.
    Profile(String),
    /// The graph that these SELECT queries' rows of three or four columns are, in this format.
    Graph(Vec<String>, Offer),
}

impl Work {
    fn text(&self) -> &str {
        match self {
            Self::Query(text) | Self::Profile(text) => text,
            Self::Graph(texts, _) => texts.first().map_or("", String::as_str),
        }
    }
}

/// What the client asked for.
pub(crate) struct Request {
    pub(crate) work: Work,
    pub(crate) timeout: Option<Duration>,
    pub(crate) dataset: Option<DatasetChoice>,
    pub(crate) union_default: Option<bool>,
    pub(crate) coding: Coding,
    pub(crate) tables: Option<Offer>,
    pub(crate) graphs: Option<Offer>,
    pub(crate) connection: Arc<Connection>,
    /// What a query's relative IRIs stand under where it has no BASE of its own (the endpoint's address).
    pub(crate) base: Option<String>,
}

/// Why there is no whole answer.
struct Failure {
    error: Error,
    planning: bool,
    /// The client takes none of these formats.
    unacceptable: Option<&'static [Offer]>,
}

impl Failure {
    fn running(error: Error) -> Self {
        Self {
            error,
            planning: false,
            unacceptable: None,
        }
    }

    fn problem(&self, query: &LiveQuery) -> Problem {
        if let Some(offers) = self.unacceptable {
            return Problem::not_acceptable(offers);
        }
        let mut problem = Problem::of(&self.error, self.planning);
        match (&self.error, query.cause()) {
            (Error::Cancelled, Some(Cause::Admin)) => {
                problem.detail = "somebody cancelled the query at /admin/queries".into();
            }
            (Error::Cancelled, Some(Cause::Shutdown)) => {
                problem.detail = "the server is shutting down".into();
            }
            _ => {}
        }
        problem
    }

    fn outcome(&self, query: &LiveQuery) -> &'static str {
        match (&self.error, query.cause()) {
            _ if self.unacceptable.is_some() => "not-acceptable",
            (Error::Cancelled | Error::SinkClosed, Some(Cause::ClientGone) | None) => "client-gone",
            (Error::Cancelled | Error::SinkClosed, Some(Cause::Admin)) => "cancelled",
            (Error::Cancelled | Error::SinkClosed, Some(Cause::Shutdown)) => "shutdown",
            (Error::Timeout(_), _) => "timeout",
            (Error::Limit(_), _) => "limit",
            (Error::Query(_), _) => "syntax",
            (Error::Unsupported(_), _) => "unsupported",
            _ => "error",
        }
    }
}

/// Runs what was asked for; the response's body is written while the query runs.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let options = &shared.options;
    let limit = request
        .timeout
        .unwrap_or(options.timeout)
        .min(options.max_timeout);
    let newcomer = Newcomer {
        text: request.work.text().to_owned(),
        client: request.connection.peer.clone(),
        limit,
        memory: shared.memory.part(options.query_memory),
    };
    let Some(admitted) = shared.live.admit(newcomer) else {
        shared.metrics.refused.inc();
        return Err(Problem::busy(format!(
            "{} queries exist already, the most this server allows; try again",
            options.max_queries
        )));
    };
    let query = Arc::clone(&admitted.query);
    let (outlet, inlet) = outlet::pair(
        &query,
        shared.slots.slot(true),
        request.coding,
        options.max_result_bytes,
    );
    let shared = Arc::clone(shared);
    let job = tokio::task::spawn_blocking(move || work(&shared, admitted, request, outlet));
    let body = inlet.body;
    let Ok(head) = inlet.head.await else {
        return Err(match job.await {
            Ok(Err(failure)) => failure.problem(&query),
            // Panics end here; their message is on standard error.
            Ok(Ok(())) | Err(_) => Problem::of(
                &Error::Internal("the query ended without an answer".into()),
                false,
            ),
        });
    };
    let mut response = Response::new(Body::new(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(head.content_type));
    headers.insert(
        VARY,
        HeaderValue::from_static("accept, accept-encoding, origin"),
    );
    if let Some(coding) = head.coding.name() {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    if let Some(length) = head.length {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    Ok(response)
}

/// The query's thread.
fn work(
    shared: &Shared,
    admitted: Admitted,
    request: Request,
    mut outlet: Outlet,
) -> Result<(), Failure> {
    let query = &admitted.query;
    let done = carry_out(shared, query, &request, &mut outlet);
    let started = outlet.is_started();
    let done = match done {
        Ok(()) => outlet.finish().map_err(Failure::running),
        Err(mut failure) => {
            if let Some(better) = outlet.take_failure() {
                failure.error = better;
            }
            drop(outlet);
            Err(failure)
        }
    };
    let done = done.map_err(|mut failure| {
        if let Error::Timeout(_) = failure.error {
            failure.error = Error::Timeout(query.limit);
        }
        failure
    });
    record(shared, query, &done, started);
    if done.is_err() && started {
        let connection = Arc::clone(&request.connection);
        tokio::runtime::Handle::current().spawn(async move {
            tokio::time::sleep(CUT_AFTER).await;
            connection.cut.notify_one();
        });
    }
    done
}

fn record(shared: &Shared, query: &LiveQuery, done: &Result<(), Failure>, started: bool) {
    let class = match query.light.get() {
        Some(true) => "light",
        Some(false) => "heavy",
        None => "unplanned",
    };
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
    m.seconds
        .with_label_values(&[class])
        .observe(took.as_secs_f64());
    m.queries.with_label_values(&[class, outcome]).inc();
    m.rows.inc_by(rows);
    m.bytes.inc_by(bytes);
    let ms = took.as_secs_f64() * 1e3;
    let id = query.id;
    if let Err(failure) = done
        && (started || outcome == "error")
    {
        let broken = if started {
            "answer broken off"
        } else {
            "query failed"
        };
        tracing::warn!(id, class, outcome, rows, bytes, ms, reason = %failure.error, client = %query.client, "{broken}");
    } else {
        tracing::debug!(id, class, outcome, rows, bytes, ms, client = %query.client, "query");
    }
    if shared.options.slow_query.is_some_and(|slow| took >= slow) {
        tracing::warn!(id, class, outcome, rows, bytes, ms, client = %query.client, text = %query.text, "slow query");
    }
}

fn carry_out(
    shared: &Shared,
    query: &Arc<LiveQuery>,
    request: &Request,
    outlet: &mut Outlet,
) -> Result<(), Failure> {
    let mut options = QueryOptions {
        threads: shared.options.threads,
        timeout: Some(query.left()),
        memory: query.memory.clone(),
        cancel: query.token(),
        union_default: request.union_default.or(shared.options.union_default),
        profile: matches!(request.work, Work::Profile(_)),
        gpu: shared.options.gpu,
        dataset: request.dataset.clone(),
    };
    query.check().map_err(Failure::running)?;
    let (text, planned) = plan(shared, request, &options).map_err(|error| Failure {
        error,
        planning: true,
        unacceptable: None,
    })?;
    let counter = if planned.is_cached() {
        &shared.metrics.plan_hits
    } else {
        &shared.metrics.plan_misses
    };
    counter.inc();
    // A graph is read from end to end, whatever its plan looks like.
    let light = planned.is_light() && !matches!(request.work, Work::Graph(..));
    let _ = query.light.set(light);
    let mut slot = shared.slots.slot(light);
    slot.take(query).map_err(Failure::running)?;
    outlet.set_slot(slot);
    query.set_state(State::Running);
    options.timeout = Some(query.left());
    match &request.work {
        Work::Query(_) => {
            let mut sink = HttpSink {
                outlet: Some(outlet),
                writer: None,
                tables: request.tables,
                graphs: request.graphs,
                count: Count::new(shared, query),
                unacceptable: None,
            };
            let ran = shared.db.run(&text, &options, &mut sink);
            let unacceptable = sink.unacceptable;
            ran.map(drop).map_err(|error| Failure {
                error,
                planning: false,
                unacceptable,
            })
        }
        Work::Profile(_) => {
            let mut sink = Counter(Count::new(shared, query));
            let report = shared
                .db
                .run(&text, &options, &mut sink)
                .map_err(Failure::running)?;
            outlet.set_content_type("application/json");
            let text = serde_json::to_vec_pretty(&profile(&report, planned.is_cached()))
                .map_err(|e| Failure::running(Error::Internal(e.to_string())))?;
            std::io::Write::write_all(outlet, &text)
                .map_err(|e| Failure::running(Error::io("<response>", e)))
        }
        Work::Graph(texts, (content_type, format)) => {
            outlet.set_content_type(content_type);
            let format = match format {
                ResultFormat::Rdf(format) => *format,
                _ => RdfFormat::NTriples,
            };
            let mut sink = QuadSink {
                writer: RdfSerializer::from_format(format).for_writer(outlet),
                count: Count::new(shared, query),
            };
            for text in texts {
                options.timeout = Some(query.left());
                shared
                    .db
                    .run(text, &options, &mut sink)
                    .map_err(Failure::running)?;
            }
            sink.writer
                .finish()
                .map(drop)
                .map_err(|_| Failure::running(Error::SinkClosed))
        }
    }
}

/// The plan, and the text that it is of. A text that is not valid by itself is tried under the request's base; the error is
/// that of the text as it came, so that its position is right.
fn plan<'r>(
    shared: &Shared,
    request: &'r Request,
    options: &QueryOptions,
) -> Result<(Cow<'r, str>, PlannedQuery)> {
    let text = request.work.text();
    let error = match shared.db.plan(text, options) {
        Ok(planned) => return Ok((text.into(), planned)),
        Err(error) => error,
    };
    if let (Error::Query(_), Some(base)) = (&error, &request.base) {
        let based = format!("BASE <{base}> {text}");
        if let Ok(planned) = shared.db.plan(&based, options) {
            return Ok((based.into(), planned));
        }
    }
    Err(error)
}

/// Counts rows up to the server's limit.
struct Count {
    query: Arc<LiveQuery>,
    most: u64,
}

impl Count {
    fn new(shared: &Shared, query: &Arc<LiveQuery>) -> Self {
        Self {
            query: Arc::clone(query),
            most: shared.options.max_result_rows.unwrap_or(u64::MAX),
        }
    }

    fn add(&self, rows: u64) -> Result<()> {
        let before = self.query.rows.fetch_add(rows, Ordering::Relaxed);
        if before.saturating_add(rows) > self.most {
            return Err(Error::Limit(format!(
                "the answer has more rows than the server's limit of {}; narrow the query or use LIMIT",
                self.most
            )));
        }
        Ok(())
    }
}

/// Writes an answer in the format that suits its form, which is known only when it starts.
struct HttpSink<'o> {
    outlet: Option<&'o mut Outlet>,
    writer: Option<ResultWriter<&'o mut Outlet>>,
    tables: Option<Offer>,
    graphs: Option<Offer>,
    count: Count,
    unacceptable: Option<&'static [Offer]>,
}

impl HttpSink<'_> {
    fn start(&mut self, graph: bool) -> Result<()> {
        let (chosen, offers): (_, &'static [Offer]) = if graph {
            (self.graphs, &GRAPHS)
        } else {
            (self.tables, &TABLES)
        };
        let Some((content_type, format)) = chosen else {
            self.unacceptable = Some(offers);
            return Err(Error::SinkClosed);
        };
        let outlet = self
            .outlet
            .take()
            .ok_or_else(|| Error::Internal("an answer was started twice".into()))?;
        outlet.set_content_type(content_type);
        self.writer = Some(ResultWriter::new(outlet, format));
        Ok(())
    }

    fn started(&mut self) -> Result<&mut dyn AnswerSink> {
        match &mut self.writer {
            Some(writer) => Ok(writer),
            None => Err(Error::Internal("an answer was not started".into())),
        }
    }
}

impl AnswerSink for HttpSink<'_> {
    fn solutions(&mut self, variables: &[String]) -> Result<()> {
        self.start(false)?;
        self.started()?.solutions(variables)
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        self.count.add(rows.rows as u64)?;
        self.started()?.rows(rows)
    }

    fn row_text(&self) -> Option<RowText> {
        self.writer.as_ref()?.row_text()
    }

    fn raw(&mut self, text: &[u8], rows: u64) -> Result<()> {
        self.count.add(rows)?;
        self.started()?.raw(text, rows)
    }

    fn boolean(&mut self, value: bool) -> Result<()> {
        self.count.add(1)?;
        self.start(false)?;
        self.started()?.boolean(value)
    }

    fn graph(&mut self) -> Result<()> {
        self.start(true)?;
        self.started()?.graph()
    }

    fn triple(&mut self, triple: &oxrdf::Triple) -> Result<()> {
        self.count.add(1)?;
        self.started()?.triple(triple)
    }

    fn finish(&mut self) -> Result<()> {
        self.started()?.finish()
    }
}

/// Rows as quads.
struct QuadSink<'o> {
    writer: WriterQuadSerializer<&'o mut Outlet>,
    count: Count,
}

impl AnswerSink for QuadSink<'_> {
    fn solutions(&mut self, _: &[String]) -> Result<()> {
        Ok(())
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        self.count.add(rows.rows as u64)?;
        quads::push_rows(rows, &mut self.writer)
    }

    fn raw(&mut self, _: &[u8], _: u64) -> Result<()> {
        Err(Error::Internal("text rows for a graph".into()))
    }

    fn boolean(&mut self, _: bool) -> Result<()> {
        Err(Error::Internal("a truth value for a graph".into()))
    }

    fn graph(&mut self) -> Result<()> {
        Err(Error::Internal("a graph was asked for as rows".into()))
    }

    fn triple(&mut self, _: &oxrdf::Triple) -> Result<()> {
        Err(Error::Internal("a graph was asked for as rows".into()))
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Rows that only count.
struct Counter(Count);

impl AnswerSink for Counter {
    fn solutions(&mut self, _: &[String]) -> Result<()> {
        Ok(())
    }

    fn rows(&mut self, rows: &Rows) -> Result<()> {
        self.0.add(rows.rows as u64)
    }

    fn raw(&mut self, _: &[u8], rows: u64) -> Result<()> {
        self.0.add(rows)
    }

    fn boolean(&mut self, _: bool) -> Result<()> {
        self.0.add(1)
    }

    fn graph(&mut self) -> Result<()> {
        Ok(())
    }

    fn triple(&mut self, _: &oxrdf::Triple) -> Result<()> {
        self.0.add(1)
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A report as the JSON document of `?profile=true`; times in milliseconds.
fn profile(report: &QueryReport, plan_cached: bool) -> serde_json::Value {
    fn ms(d: Duration) -> f64 {
        d.as_secs_f64() * 1e3
    }
    fn node(n: &ProfileNode) -> serde_json::Value {
        serde_json::json!({
            "name": n.name, "place": n.place,
            "rows_in": n.rows_in, "rows_out": n.rows_out, "ms": n.time.map(ms), "bytes": n.bytes,
            "bytes_written": n.written, "bytes_held": n.held,
            "inputs": n.inputs.iter().map(node).collect::<Vec<_>>(),
        })
    }
    serde_json::json!({
        "way": report.way.to_string(), "rows": report.rows, "plan_cached": plan_cached,
        "plan_ms": ms(report.plan_time), "run_ms": ms(report.run_time),
        "tree": report.profile_tree.as_ref().map(node),
        "text": report.profile.lines().collect::<Vec<_>>(),
    })
}
