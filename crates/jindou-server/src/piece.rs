//! Requests that are answered with one document: plans, prepared queries, descriptions, completions, batches. They are
//! admitted, listed and cancelled like queries, but their answers are not streamed.

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

/// Longest time for which a text is planned outside of a heavy slot. Few texts take longer.
const QUICK: Duration = Duration::from_millis(10);

/// Runs a function on a thread of its own, for an admitted query that is cancelled if its client disconnects.
///
/// # Errors
/// 503 if there are too many queries; otherwise the function's own errors.
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
        // The function has panicked; the message is on standard error.
        Err(_) => Err(Problem::from_error(&Error::Internal(
            "the request ended without an answer".into(),
        ))),
    }
}

/// Waits for a light slot, for work that is known to be short.
pub(crate) fn light_slot(shared: &AppState, query: &LiveQuery) -> Result<QuerySlot, AnswerFailure> {
    let _ = query.light.set(true);
    slot(shared, query, WorkClass::Light)
}

/// Waits for a slot of this class. Refuses at once if the expected wait exceeds the query's remaining time.
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

/// Plans a text. A few texts are planned at the same time, each for a short time; one that takes longer is planned
/// again in a heavy slot, which is returned with the plan. So texts that are expensive to plan wait only for heavy
/// work, and other texts do not wait for them. `plan` is called once or twice, with options that limit its time.
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
        // Planning failed, so the query ends here, and planning was all of its computing in the slot.
        shared.admission.served(WorkClass::Heavy, begin.elapsed());
    }
    Ok((made.map_err(AnswerFailure::running)?, Some(slot)))
}
