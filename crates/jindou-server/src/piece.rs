//! Requests that are answered with a single document: plans, prepared queries, descriptions, completions, batches. They
//! are admitted, listed and cancelled like queries; only their answers are not streamed.

use crate::admission::limits::WorkClass;
use crate::admission::{self, AdmissionRequest, Admitted, ClientWatch};
use crate::live::{LiveQuery, QueryState};
use crate::problem::Problem;
use crate::run::{self, AnswerFailure, Connection, client_of};
use crate::shared::AppState;
use crate::slots::QuerySlot;
use jindou::{Error, QueryOptions, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest time for which a text is planned without a slot of heavy queries. Few texts take longer.
const QUICK: Duration = Duration::from_millis(10);

/// Runs a piece of work on a thread of its own, for an admitted query that is cancelled when its client leaves.
///
/// # Errors
/// 503 when there are too many queries; otherwise the work's own errors.
pub(crate) async fn run<T: Send + 'static>(
    shared: &Arc<AppState>,
    connection: &Connection,
    asked: &AdmissionRequest<'_>,
    tag: Option<String>,
    work: impl FnOnce(&AppState, &Admitted) -> Result<T, AnswerFailure> + Send + 'static,
) -> Result<T, Problem> {
    let admitted = admission::admit(shared, connection, asked)?;
    let query = Arc::clone(&admitted.query);
    if let Some(tag) = tag {
        let _ = query.tag.set(tag);
    }
    let watch = ClientWatch::new(&query);
    let shared = Arc::clone(shared);
    let job = tokio::task::spawn_blocking(move || {
        let query = &admitted.query;
        let done = query.check().map_err(AnswerFailure::running);
        let done = done.and_then(|()| work(&shared, &admitted));
        let done = done.map_err(|failure| failure.during(query));
        run::record(&shared, query, done.as_ref().map(drop), false);
        done
    });
    let done = job.await;
    watch.done();
    match done {
        Ok(Ok(made)) => Ok(made),
        Ok(Err(failure)) => Err(failure.problem(&query)),
        // Panics end here; their message is on standard error.
        Err(_) => Err(Problem::from_error(&Error::Internal(
            "the request ended without an answer".into(),
        ))),
    }
}

/// A light slot, for work that is known to be small.
pub(crate) fn light_slot(shared: &AppState, query: &LiveQuery) -> Result<QuerySlot, AnswerFailure> {
    let _ = query.light.set(true);
    slot(shared, query, WorkClass::Light)
}

/// Waits for a slot of this class, unless it is not expected before the query's time is over.
pub(crate) fn slot(
    shared: &AppState,
    query: &LiveQuery,
    class: WorkClass,
) -> Result<QuerySlot, AnswerFailure> {
    let place = shared
        .admission
        .admit_within(class, client_of(&query.client), query.left())
        .map_err(|refused| {
            shared.metrics.refused.inc();
            AnswerFailure::refused(refused)
        })?;
    let mut slot = shared.slots.slot(class == WorkClass::Light);
    slot.take(query).map_err(AnswerFailure::running)?;
    drop(place);
    Ok(slot)
}

/// Plans a text. Few texts are planned concurrently, each for a short time. A text that takes longer is planned again
/// in a heavy slot, which is released when the plan is done. So texts that are expensive to plan wait only for each
/// other, and nothing else waits for them. `plan` is called with the options that it must observe, at most twice.
pub(crate) fn planned<T>(
    shared: &AppState,
    query: &LiveQuery,
    options: &QueryOptions,
    plan: impl Fn(&QueryOptions) -> Result<T>,
) -> Result<(T, Option<QuerySlot>), AnswerFailure> {
    let turn = shared
        .slots
        .planning(query)
        .map_err(AnswerFailure::running)?;
    let quick = QUICK.min(query.left());
    let first = plan(&options.clone().with_timeout(quick));
    drop(turn);
    match first {
        Err(Error::Timeout(_)) if !query.left().is_zero() => {}
        done => return Ok((done.map_err(AnswerFailure::running)?, None)),
    }
    let slot = slot(shared, query, WorkClass::Heavy)?;
    query.set_state(QueryState::Running);
    let begin = Instant::now();
    let made = plan(&options.clone().with_timeout(query.left()));
    if made.is_err() {
        // Nothing else will be computed in this slot.
        shared.admission.served(WorkClass::Heavy, begin.elapsed());
    }
    Ok((made.map_err(AnswerFailure::running)?, Some(slot)))
}
