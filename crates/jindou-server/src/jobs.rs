//! Jobs on the whole store, such as a reclustering: one at a time, on a thread of its own. Clients can see a job's
//! progress and cancel it.

use crate::paths;
use crate::shared::AppState;
use jindou::{CancelToken, Error, Progress, Resource, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A running job.
pub(crate) struct Job {
    pub(crate) name: &'static str,
    /// Names of the phases that `progress` numbers.
    pub(crate) phases: &'static [&'static str],
    pub(crate) started: Instant,
    pub(crate) progress: Progress,
    pub(crate) cancel: CancelToken,
}

impl Job {
    fn document(&self) -> Value {
        let phase = self.progress.phase.load(Ordering::Relaxed) as usize;
        json!({
            "job": self.name, "state": "running", "phase": self.phases.get(phase),
            "permille": self.progress.phase_permille.load(Ordering::Relaxed),
            "quads": self.progress.quads.load(Ordering::Relaxed),
            "seconds": self.started.elapsed().as_secs_f64(),
        })
    }
}

/// The running job, and for each kind of job the outcome of the last one.
#[derive(Default)]
pub(crate) struct Jobs {
    inner: Mutex<JobTable>,
}

#[derive(Default)]
struct JobTable {
    running: Option<Arc<Job>>,
    ended: BTreeMap<&'static str, Value>,
}

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, JobTable> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A document with the progress, or else the last outcome, of the job `name`.
    pub(crate) fn document(&self, name: &'static str) -> Value {
        let inner = self.lock();
        match &inner.running {
            Some(job) if job.name == name => job.document(),
            _ => match inner.ended.get(name) {
                Some(ended) => ended.clone(),
                None => json!({ "job": name, "state": "idle" }),
            },
        }
    }

    /// True while a job runs.
    pub(crate) fn is_running(&self) -> bool {
        self.lock().running.is_some()
    }

    /// Cancels the running job, if it has this name or `name` is `None`. Returns false if no such job is running.
    pub(crate) fn cancel(&self, name: Option<&str>) -> bool {
        let inner = self.lock();
        let job = inner.running.as_ref();
        let job = job.filter(|job| name.is_none_or(|n| n == job.name));
        job.inspect(|job| job.cancel.cancel()).is_some()
    }
}

/// Starts a job. When it has ended, its outcome can be read from [`Jobs::document`].
///
/// # Errors
/// [`Error::Conflict`] while another job runs, [`Error::Limit`] if no thread can be started.
pub(crate) fn begin(
    shared: &Arc<AppState>,
    name: &'static str,
    phases: &'static [&'static str],
    work: impl FnOnce(&AppState, &Job) -> Result<Value> + Send + 'static,
) -> Result<()> {
    let job = Arc::new(Job {
        name,
        phases,
        started: Instant::now(),
        progress: Progress::default(),
        cancel: CancelToken::new(),
    });
    let mut inner = shared.jobs.lock();
    if let Some(other) = &inner.running {
        let other = other.name;
        return Err(Error::Conflict(format!(
            "{other} is in progress; try again when it is done"
        )));
    }
    let run = {
        let (shared, job) = (Arc::clone(shared), Arc::clone(&job));
        move || {
            let done = work(&shared, &job);
            let seconds = job.started.elapsed().as_secs_f64();
            let (outcome, ended) = match done {
                Ok(report) => {
                    tracing::info!(job = name, seconds, %report, "done");
                    let document = json!({
                        "job": name, "state": "done", "seconds": seconds, "report": report,
                    });
                    ("ok", document)
                }
                Err(e) => {
                    tracing::warn!(job = name, seconds, reason = e.to_string(), "failed");
                    let document = json!({
                        "job": name, "state": "failed", "seconds": seconds, "error": paths::told(&e),
                    });
                    ("failed", document)
                }
            };
            shared
                .metrics
                .jobs
                .with_label_values(&[name, outcome])
                .inc();
            let mut inner = shared.jobs.lock();
            inner.running = None;
            inner.ended.insert(name, ended);
        }
    };
    std::thread::Builder::new()
        .name(format!("jindou-{name}"))
        .spawn(run)
        .map_err(|e| {
            Error::limit(
                Resource::Threads,
                format!("cannot start a thread for it: {e}"),
            )
        })?;
    inner.running = Some(job);
    Ok(())
}
