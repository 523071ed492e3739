//! Runs one update from admission to its answer, on a thread of its own, which waits for its turn to write and for the
//! log. Queries continue meanwhile.

use crate::admission::{self, AdmissionRequest, Admitted, ClientWatch};
use crate::codings::{self, Content};
use crate::consistency::{self, UpdateKey};
use crate::live::{CancelCause, LiveQuery, QueryState, shown};
use crate::paths;
use crate::problem::Problem;
use crate::run::Connection;
use crate::shared::AppState;
use axum::body::Body;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use jindou::{Database, Error, Result, UpdateOptions, UpdateReport};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Longest wait for the next piece of a body.
const PATIENCE: Duration = Duration::from_secs(30);

/// An admitted update: it is listed, has limits, and is cancelled if its client disconnects before it has ended. Once
/// it was sent to a shared log, it is executed even if it is cancelled here.
pub(crate) struct LiveUpdate {
    shared: Arc<AppState>,
    admitted: Admitted,
    begun: Instant,
    /// The idempotency key, from the client or made up by the server.
    key: Option<UpdateKey>,
    /// The request's fingerprint, once its body has been received; 0 if the client sent no key.
    fingerprint: AtomicU64,
}

/// The reason why this server does not accept updates; `None` if it does.
pub(crate) fn refusal(shared: &AppState) -> Option<Problem> {
    let read_only = |why: String| Some(Problem::new(StatusCode::FORBIDDEN, "read-only", why));
    if shared.tokens.is_none() && !shared.options.writable {
        return read_only(
            "this server is read-only; restart it with --writable (for programs on its machine) or with --token-file to let it take updates".into(),
        );
    }
    // Damage does not depend on the server's options, so it is reported as for queries.
    if let Err(damage) = shared.upkeep.check_trust() {
        return Some(Problem::from_error(&damage));
    }
    match shared.upkeep.is_writable() {
        Ok(()) => None,
        Err(why) => read_only(format!("this server is read-only: {}", paths::told(&why))),
    }
}

impl LiveUpdate {
    /// Admits an update; `shown` is its text in lists and logs.
    pub(crate) fn admit(
        shared: &Arc<AppState>,
        connection: &Connection,
        shown: &str,
        timeout: Option<Duration>,
    ) -> Result<Self, Problem> {
        if let Some(problem) = refusal(shared) {
            return Err(problem);
        }
        let admitted =
            admission::admit(shared, connection, &AdmissionRequest::new(shown, timeout))?;
        Ok(Self {
            shared: Arc::clone(shared),
            admitted,
            begun: Instant::now(),
            key: None,
            fingerprint: AtomicU64::new(0),
        })
    }

    /// Reads the idempotency key from the request's headers.
    ///
    /// # Errors
    /// 400 for an empty key, or one that is too long.
    pub(crate) fn named(
        mut self,
        connection: &Connection,
        request: &Parts,
    ) -> Result<Self, Problem> {
        self.key = Some(consistency::key(request, connection.caller.principal)?);
        self.identify(b"");
        Ok(self)
    }

    /// Stores a fingerprint of the request, if the client sent an idempotency key.
    fn identify(&self, body: &[u8]) {
        if let Some(key) = self.key.as_ref().filter(|key| key.is_given()) {
            let fingerprint = key.fingerprint(body);
            self.fingerprint.store(fingerprint, Ordering::Relaxed);
        }
    }

    /// Sets the time limit that a form gives, measured from the update's admission.
    pub(crate) fn limit(&self, timeout: Option<Duration>) {
        if let Some(limit) = timeout {
            let most = self.shared.options.max_timeout;
            self.admitted.query.set_limit(limit.min(most));
        }
    }

    /// Sets the text that lists and logs show from now on.
    pub(crate) fn show(&self, text: &str) {
        self.admitted.query.show(text);
    }

    /// Reads the whole body, decodes its content codings, and charges it to the update's memory.
    pub(crate) async fn body(&self, body: Body, headers: &HeaderMap) -> Result<Vec<u8>, Problem> {
        let memory = &self.admitted.query.memory;
        let coded = codings::from_headers(headers)?;
        self.whole(codings::undone(body, &coded, memory)).await
    }

    /// Reads the whole body of a document, and charges it to the update's memory. If the body has a single coding that
    /// the RDF parsers can read, it stays encoded, so that its text is never in memory as a whole.
    pub(crate) async fn document(
        &self,
        body: Body,
        headers: &HeaderMap,
    ) -> Result<Vec<u8>, Problem> {
        let magic: &[u8] = match *codings::from_headers(headers)? {
            [Content::Gzip] => &[0x1f, 0x8b],
            [Content::Zstd] => &[0x28, 0xb5, 0x2f, 0xfd],
            _ => return self.body(body, headers).await,
        };
        let kept = self.whole(body).await?;
        if kept.is_empty() || kept.starts_with(magic) {
            return Ok(kept);
        }
        Err(Problem::bad_request(
            "the body is not compressed as its Content-Encoding says: it does not begin like such data",
        ))
    }

    /// Charges bytes that the update holds in addition to its body, until the update ends.
    pub(crate) fn hold(&self, bytes: u64) -> Result<(), Problem> {
        let held = self.admitted.query.memory.charge(bytes);
        held.map_err(|e| Problem::from_error(&e))?;
        self.admitted
            .query
            .check()
            .map_err(|e| Problem::from_error(&e))
    }

    async fn whole(&self, mut body: Body) -> Result<Vec<u8>, Problem> {
        let most = self.shared.options.max_update_bytes;
        let query = &self.admitted.query;
        let mut kept: Vec<u8> = Vec::new();
        let mut seen = 0usize;
        loop {
            let frame = match tokio::time::timeout(PATIENCE.min(query.left()), body.frame()).await {
                Ok(None) => break,
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(e))) => return Err(codings::broken(&e)),
                Err(_) => {
                    return Err(Problem::new(
                        StatusCode::REQUEST_TIMEOUT,
                        "slow-request",
                        "the request's body did not arrive in time",
                    ));
                }
            };
            query.check().map_err(|e| Problem::from_error(&e))?;
            let data: Bytes = frame.into_data().unwrap_or_default();
            seen = seen.saturating_add(data.len());
            // Up to four times the limit is read and discarded, since many clients send everything before they read the
            // answer.
            if seen > most.saturating_mul(4) {
                break;
            }
            if seen <= most {
                // A growing vector may have twice the capacity, and the text is copied once.
                query
                    .memory
                    .charge(data.len() as u64 * 3)
                    .map_err(|e| Problem::from_error(&e))?;
                kept.extend_from_slice(&data);
            }
        }
        if seen > most {
            return Err(Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "request-size",
                format!("the request's body is longer than the server's limit of {most} bytes"),
            ));
        }
        self.identify(&kept);
        Ok(kept)
    }

    /// A number for the IRI of a graph that the update creates. With a client's key, a retry gets the same number.
    pub(crate) fn graph_number(&self) -> u64 {
        match self.key.as_ref().filter(|key| key.is_given()) {
            Some(key) => key.graph_number(self.fingerprint.load(Ordering::Relaxed)),
            None => Database::document_number(),
        }
    }

    /// Runs the update on a thread of its own.
    pub(crate) async fn run(
        self,
        job: impl FnOnce(&Database, UpdateOptions) -> Result<UpdateReport> + Send + 'static,
    ) -> Result<UpdateReport, Problem> {
        let query = Arc::clone(&self.admitted.query);
        let watch = ClientWatch::new(&query);
        let named = self.key.clone();
        let done = tokio::task::spawn_blocking(move || {
            let Self {
                shared,
                admitted,
                begun,
                key,
                fingerprint,
            } = self;
            let query = &admitted.query;
            query.set_state(QueryState::Running);
            let mut options = UpdateOptions::default()
                .with_threads(shared.options.threads)
                .with_timeout(query.left())
                .with_memory(query.memory.clone())
                .with_cancel(query.token())
                .with_union_default(shared.options.union_default)
                .with_common_prefixes(shared.options.common_prefixes)
                .with_store_prefixes(shared.options.store_prefixes)
                .with_functions(shared.options.functions.clone());
            // A key that the server made up is needed only between servers that forward updates to each other.
            let is_shared = shared.upkeep.replica().is_some();
            let key = key.filter(|key| is_shared || key.is_given());
            options.key = key.as_ref().map(UpdateKey::of_all);
            options.fingerprint = fingerprint.into_inner();
            options.service.clone_from(&shared.options.service);
            options.documents.clone_from(&shared.options.documents);
            let done = query.check().and_then(|()| job(admitted.db(), options));
            let done = done.map_err(|e| match e {
                Error::Timeout(_) => Error::Timeout(query.limit()),
                e => e,
            });
            record(&shared, query, &done, begun.elapsed());
            done
        })
        .await;
        watch.done();
        match done {
            Ok(Ok(report)) => Ok(report),
            Ok(Err(e)) => {
                let mut problem = Problem::from_error(&e);
                if let (Error::OutcomeUnknown(_), Some(key)) = (&e, &named) {
                    problem.detail = format!("{}: {}", problem.detail, key.advice());
                    // Only a client that sent a key may retry automatically; without a key the update might be made
                    // twice.
                    if key.is_given() {
                        problem = problem.retried_after(1);
                    }
                }
                match (&e, query.cause()) {
                    (Error::Cancelled, Some(CancelCause::Admin)) => {
                        problem.detail = "the update was cancelled at /admin/queries".into();
                    }
                    (Error::Cancelled, Some(CancelCause::Shutdown)) => {
                        problem.detail = "the server is shutting down".into();
                    }
                    _ => {}
                }
                Err(problem)
            }
            // The thread has panicked; the message is on standard error.
            Err(_) => Err(Problem::from_error(&Error::Internal(
                "the update ended without an answer".into(),
            ))),
        }
    }
}

fn record(shared: &AppState, query: &LiveQuery, done: &Result<UpdateReport>, took: Duration) {
    let m = &shared.metrics;
    let outcome = match done {
        Ok(report) => {
            for (change, quads) in [("added", report.added), ("removed", report.removed)] {
                m.update_quads.with_label_values(&[change]).inc_by(quads);
            }
            for (phase, time) in [
                ("parse", report.parse_time),
                ("wait", report.wait_time),
                ("run", report.run_time),
                ("commit", report.commit_time),
            ] {
                m.update_phases
                    .with_label_values(&[phase])
                    .observe(time.as_secs_f64());
            }
            "ok"
        }
        Err(e) => match e {
            Error::Query(_) | Error::Sparql(_) | Error::Syntax { .. } => "syntax",
            Error::Timeout(_) => "timeout",
            Error::Cancelled => match query.cause() {
                Some(CancelCause::Admin) => "cancelled",
                Some(CancelCause::Shutdown) => "shutdown",
                _ => "client-gone",
            },
            Error::Limit(_) => "limit",
            Error::Busy(_) => "refused",
            Error::OutcomeUnknown(_) => "unknown",
            Error::Conflict(_) | Error::KeyReused(_) => "conflict",
            Error::Precondition(_) => "precondition",
            Error::Unsupported(_) => "unsupported",
            Error::Document { .. } | Error::Service { .. } => "document",
            _ => "error",
        },
    };
    m.updates.with_label_values(&[outcome]).inc();
    m.update_seconds.observe(took.as_secs_f64());
    let (id, ms, client) = (query.id, crate::millis(took), &query.client);
    match done {
        Err(e) if outcome == "error" => {
            tracing::warn!(id, outcome, ms, reason = &*shown(&e.to_string()), %client, "update failed");
        }
        _ => tracing::debug!(id, outcome, ms, %client, "update"),
    }
    shared.slow.note(query, outcome, took);
    if shared.options.slow_query.is_some_and(|slow| took >= slow) {
        tracing::warn!(id, outcome, ms, %client, text = query.text(), "slow update");
    }
}
