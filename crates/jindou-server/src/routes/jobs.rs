//! `/admin/recluster` and `/admin/backup`: start a job on the whole store (POST), show its progress (GET), cancel it
//! (DELETE).

use super::input::Parameters;
use super::{answered, text};
use crate::jobs::{self, Job};
use crate::problem::Problem;
use crate::shared::AppState;
use crate::write::refusal;
use axum::body::Body;
use axum::extract::{Request, State};
use http::{Method, Response, StatusCode};
use jindou::{BACKUP_PHASES, RECLUSTER_PHASES, ReclusterOptions, Result, time_text};
use serde_json::{Value, json};
use std::sync::Arc;

fn page(value: &Value, status: StatusCode) -> Response<Body> {
    let mut response = text("application/json", format!("{value:#}\n"));
    *response.status_mut() = status;
    response
}

/// Answers a request about the job `name`; `begin` starts the job.
fn answer(
    shared: &Arc<AppState>,
    name: &'static str,
    method: &Method,
    begin: impl FnOnce() -> Result<(), Problem>,
) -> Result<Response<Body>, Problem> {
    match *method {
        Method::GET | Method::HEAD => Ok(page(&shared.jobs.document(name), StatusCode::OK)),
        Method::POST => {
            if let Some(problem) = refusal(shared) {
                return Err(problem);
            }
            begin()?;
            Ok(page(&shared.jobs.document(name), StatusCode::ACCEPTED))
        }
        Method::DELETE => {
            if shared.jobs.cancel(Some(name)) {
                Ok(page(&shared.jobs.document(name), StatusCode::ACCEPTED))
            } else {
                Err(Problem::new(
                    StatusCode::NOT_FOUND,
                    "no-job",
                    format!("no {name} is in progress; it may have ended"),
                ))
            }
        }
        _ => Err(Problem::method("GET, HEAD, POST, DELETE")),
    }
}

/// The parameter `memory` in bytes. The default is the limit of a query, the maximum that of all queries.
fn memory(shared: &AppState, parameters: &Parameters) -> Result<u64, Problem> {
    let most = shared.options.memory;
    let asked = number(parameters, "memory", "a number of bytes")?;
    Ok(asked.unwrap_or(shared.options.query_memory).min(most))
}

/// The value of a numeric parameter.
fn number(parameters: &Parameters, name: &str, what: &str) -> Result<Option<u64>, Problem> {
    let Some(text) = parameters.one(name)? else {
        return Ok(None);
    };
    let number = text.parse::<u64>();
    number
        .map(Some)
        .map_err(|_| Problem::bad_request(format!("{name}={text} is not {what}")))
}

/// Answers a request about a job, once its parameters are parsed.
async fn handle(
    shared: &Arc<AppState>,
    name: &'static str,
    request: Request,
    begin: impl FnOnce(&Parameters) -> Result<(), Problem>,
) -> Response<Body> {
    let headers = request.headers().clone();
    let (parts, content) = request.into_parts();
    let most = shared.options.max_request_bytes;
    let answer = match Parameters::of_request(&parts, content, most).await {
        Ok(parameters) => answer(shared, name, &parts.method, || begin(&parameters)),
        Err(problem) => Err(problem),
    };
    answered(answer, &headers)
}

pub(super) async fn recluster(
    State(shared): State<Arc<AppState>>,
    request: Request,
) -> Response<Body> {
    let begin = |parameters: &Parameters| -> Result<(), Problem> {
        // If the store can never be reclustered, the request is refused, rather than only the job's state showing it.
        let may = shared.upkeep.may_recluster();
        may.map_err(|e| Problem::from_error(&e))?;
        let memory = memory(&shared, parameters)?;
        let work = move |shared: &AppState, job: &Job| {
            // The job's memory is charged, so that queries cannot use it meanwhile.
            let budget = shared.memory.part(memory);
            budget.charge(memory)?;
            let options = ReclusterOptions::default()
                .with_memory(memory)
                .with_threads(shared.options.threads)
                .with_cancel(job.cancel.clone());
            let done = shared.upkeep.recluster(&options, &job.progress);
            budget.release(memory);
            let r = done?;
            Ok(json!({
                "quads": r.quads, "terms": r.terms, "bytes": r.bytes, "epoch": format!("{:016x}", r.epoch),
                "snapshot": r.snapshot, "caught_up": r.caught_up,
                "load_seconds": r.load_time.as_secs_f64(),
                "catch_up_seconds": r.catch_up_time.as_secs_f64(),
                "held_seconds": r.held.as_secs_f64(), "left": r.left,
            }))
        };
        jobs::begin(&shared, "recluster", &RECLUSTER_PHASES, work)
            .map_err(|e| Problem::from_error(&e))
    };
    handle(&shared, "recluster", request, begin).await
}

pub(super) async fn backup(
    State(shared): State<Arc<AppState>>,
    request: Request,
) -> Response<Body> {
    let Some(target) = shared.options.backup_to.clone() else {
        let headers = request.headers();
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            // GET succeeds even without a backup target, so that pages that show jobs get no error.
            let state = json!({ "job": "backup", "state": "unavailable" });
            return answered(Ok(page(&state, StatusCode::OK)), headers);
        }
        let why = match shared.upkeep.replica() {
            // Such a server cannot have a backup folder.
            Some(_) => {
                "the log of this server has the store's bases and every update: copy its bucket, or restore from it with jindou restore"
            }
            None => "this server was started without a backup folder (--backup-to)",
        };
        let problem = Problem::new(StatusCode::NOT_FOUND, "no-backups", why);
        return problem.response(headers);
    };
    let begin = |parameters: &Parameters| -> Result<(), Problem> {
        let keep = number(parameters, "keep", "a number of backups")?;
        if keep == Some(0) {
            return Err(Problem::bad_request("keep=0 would keep no backup at all"));
        }
        let work = move |shared: &AppState, job: &Job| {
            let r = shared.upkeep.backup(&target, &job.cancel, &job.progress)?;
            let removed = match keep {
                Some(keep) => {
                    target
                        .prune(usize::try_from(keep).unwrap_or(usize::MAX))?
                        .backups
                }
                None => 0,
            };
            Ok(json!({
                "name": r.info.name, "time": time_text(r.info.time), "snapshot": r.info.snapshot,
                "bytes": r.info.bytes, "new_bytes": r.new_bytes, "new_files": r.new_files,
                "removed_backups": removed,
            }))
        };
        jobs::begin(&shared, "backup", &BACKUP_PHASES, work).map_err(|e| Problem::from_error(&e))
    };
    handle(&shared, "backup", request, begin).await
}
