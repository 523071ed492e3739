//! Answers light queries on the network thread that has read the request. Passing a query to another thread and its
//! answer back costs two wake-ups and some fifteen system calls, which is more than most light queries take.
//!
//! A query that runs here must not occupy a network thread for long. So only short texts are planned, for [`PLANNING`]
//! at most, and only plans that the planner calls light are run, for [`TIME`] at most, with little memory and a short
//! answer. A run that exceeds one of these limits is discarded (none of its answer has been sent), and the query runs
//! again on a thread of its own, with its own limits. One network thread is always left for sockets: see
//! [`AppState::inline`].

use crate::admission::Admitted;
use crate::live::QueryState;
use crate::problem::Problem;
use crate::response::{self, ResponseHead};
use crate::run::{self, AnswerFailure, ClientRequest, QueryTask};
use crate::shared::AppState;
use crate::sinks::{AnswerDestination, CountingSink, GraphNames, HttpSink};
use axum::body::Body;
use http::Response;
use jindou::{Error, PlannedQuery, QueryOptions};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Longest text that is planned on a network thread, in bytes. That takes some 0.1 ms, but grows with the number of
/// patterns.
const LONGEST_TEXT: usize = 4 << 10;
/// Longest time for parsing and planning; a query that takes longer is planned again on a thread of its own. The
/// planner checks the time only between estimates, so a network thread may be occupied for twice this time.
const PLANNING: Duration = Duration::from_millis(1);
/// Longest time for which a query runs on a network thread.
const TIME: Duration = Duration::from_millis(2);
/// Memory limit of a query on a network thread, in bytes.
const MEMORY: u64 = 8 << 20;
/// Longest answer that is made on a network thread, in bytes.
const ROOM: usize = 64 << 10;

/// Outcome of an attempt to answer a query on the network thread.
pub(crate) enum Attempt {
    /// The query was answered, or has failed.
    Done(Result<Response<Body>, Problem>),
    /// The query must run on a thread of its own. Contains its plan, if there is one.
    Later(Option<PlannedQuery>),
}

/// A sink that collects a short answer in memory.
struct Short {
    text: Vec<u8>,
    content_type: &'static str,
}

impl Write for Short {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if self.text.len() + text.len() > ROOM {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.text.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AnswerDestination for Short {
    fn set_content_type(&mut self, content_type: &'static str) {
        self.content_type = content_type;
    }
}

/// Answers a query on this thread, if that takes only a short time.
pub(crate) fn attempt(shared: &AppState, admitted: &Admitted, request: &ClientRequest) -> Attempt {
    let query = &admitted.query;
    if !matches!(request.work, QueryTask::Query(_) | QueryTask::Bound(_)) {
        return Attempt::Later(None);
    }
    if request.work.text().len() > LONGEST_TEXT {
        return Attempt::Later(None);
    }
    let Ok(_permit) = shared.inline.try_acquire() else {
        return Attempt::Later(None);
    };
    let tried = catch_unwind(AssertUnwindSafe(|| answer(shared, admitted, request)));
    let failure = match tried {
        Ok(Ok(attempt)) => return attempt,
        Ok(Err(failure)) => failure,
        Err(panic) => AnswerFailure::running(jindou::invariant::error_of(&*panic)),
    };
    let problem = failure.problem(query);
    run::record(shared, query, Err(&failure), false);
    Attempt::Done(Err(problem))
}

fn answer(
    shared: &AppState,
    admitted: &Admitted,
    request: &ClientRequest,
) -> Result<Attempt, AnswerFailure> {
    let query = &admitted.query;
    if let QueryTask::Bound(b) = &request.work
        && !b.prepared.is_current()
    {
        // The prepared query has no valid plan; another thread may be planning it, and waiting for that may take long.
        return Ok(Attempt::Later(None));
    }
    let mut options = run::options(shared, query, request);
    options.timeout = Some(PLANNING.min(query.left()));
    let planned = match run::plan(shared, admitted, request, &options) {
        // Planning took too long here; the query is planned again with its own time limit.
        Err(Error::Timeout(_)) if !query.left().is_zero() => {
            return Ok(Attempt::Later(None));
        }
        planned => planned.map_err(AnswerFailure::running)?,
    };
    run::note_snapshot(admitted, &planned);
    if planned.is_light() {
        let _ = query.light.set(true);
        query.set_state(QueryState::Running);
        if let Some(response) = run_here(shared, admitted, request, options, &planned)? {
            run::record(shared, query, Ok(()), false);
            return Ok(Attempt::Done(Ok(response)));
        }
        query.set_state(QueryState::Queued);
    }
    Ok(Attempt::Later(Some(planned)))
}

/// Runs a plan; `None` if it needs more time or memory than is allowed here.
fn run_here(
    shared: &AppState,
    admitted: &Admitted,
    request: &ClientRequest,
    mut options: QueryOptions,
    planned: &PlannedQuery,
) -> Result<Option<Response<Body>>, AnswerFailure> {
    let query = &admitted.query;
    options.threads = Some(1);
    options.timeout = Some(TIME.min(query.left()));
    options.memory = Some(query.memory.part(MEMORY.min(query.memory.limit())));
    let mut out = Short {
        text: Vec::new(),
        content_type: "application/octet-stream",
    };
    let count = CountingSink::new(shared, query);
    let names = GraphNames::of(shared, planned, request.work.text());
    let mut sink = HttpSink::new(&mut out, request.tables, request.graphs, names, count);
    let ran = admitted.db().run_planned(planned, &options, &mut sink);
    if let Some(offers) = sink.unacceptable() {
        return Err(AnswerFailure {
            error: Error::SinkClosed,
            unacceptable: Some(offers),
            refused: None,
        });
    }
    drop(sink);
    let most = shared.options.max_result_bytes.unwrap_or(u64::MAX);
    if ran.is_err() || out.text.len() as u64 > most {
        // The second attempt, with the query's own limits, reports the error if there is one.
        query.rows.store(0, Ordering::Relaxed);
        return Ok(None);
    }
    query.bytes.store(out.text.len() as u64, Ordering::Relaxed);
    let content_type = out.content_type;
    let (body, coding) = response::coded(out.text, request.coding)
        .map_err(|e| AnswerFailure::running(Error::io("<response>", e)))?;
    let head = ResponseHead {
        content_type,
        coding,
        length: Some(body.len()),
    };
    Ok(Some(run::respond(&head, Body::from(body))))
}
