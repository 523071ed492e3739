//! Queries whose operators are not native yet, through `spareval` over the same snapshot.
//!
//! `spareval` looks at a cancellation flag and knows no deadline and no memory limit; a guard thread watches
//! both and raises the flag, which the dataset's terms look at as well ([`crate::dataset`] says why). Memory is the growth of this process' anonymous memory since the query began:
//! coarse, but it ends a query before the machine suffers.

pub(crate) mod rewrite;

use crate::database::QueryOptions;
use crate::dataset::{SnapshotDataset, Stopped};
use crate::results::{AnswerSink, Rows};
use jindou_model::{CancelToken, Error, Result, term};
use spareval::{QueryEvaluationError, QueryEvaluator, QueryResults};
use spargebra::Query;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often the guard looks. A query overruns its limits by at most this and one row's work.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Rows handed on at once.
const BATCH: usize = 1024;

/// Runs a query; returns the rows (or triples) written, 1 for ASK.
pub(crate) fn run(
    data: SnapshotDataset<'_>,
    query: &Query,
    options: &QueryOptions,
    cancel: &CancelToken,
    sink: &mut dyn AnswerSink,
) -> Result<u64> {
    let theirs = spareval::CancellationToken::new();
    let guard = Guard::start(theirs.clone(), cancel.clone(), options.memory.limit());
    let evaluator = QueryEvaluator::new().with_cancellation_token(theirs.clone());
    let data = data.stopped_by(&theirs);
    let query = &rewrite::query(query, &|| data.graph_names(rewrite::MAX_GRAPHS));
    let outcome = catch_unwind(AssertUnwindSafe(|| evaluate(&evaluator, data, query, sink)))
        .unwrap_or_else(|payload| {
            if payload.is::<Stopped>() {
                Err(Error::Cancelled)
            } else {
                resume_unwind(payload)
            }
        });
    // What the guard saw explains a cancellation better than the word "cancelled" does.
    match (outcome, guard.finish()) {
        (Err(Error::Cancelled), Some(reason)) => Err(reason),
        (outcome, _) => outcome,
    }
}

fn evaluate(
    evaluator: &QueryEvaluator,
    data: SnapshotDataset<'_>,
    query: &Query,
    sink: &mut dyn AnswerSink,
) -> Result<u64> {
    let mut prepared = evaluator.prepare(query);
    // The dataset answers for FROM and FROM NAMED itself: it merges graphs without duplicates.
    *prepared.dataset_mut() = spareval::QueryDatasetSpecification::new();
    match prepared.execute(data).map_err(explain)? {
        QueryResults::Boolean(b) => {
            sink.boolean(b)?;
            sink.finish()?;
            Ok(1)
        }
        QueryResults::Solutions(solutions) => {
            let variables: Vec<String> = solutions
                .variables()
                .iter()
                .map(|v| v.as_str().to_owned())
                .collect();
            sink.solutions(&variables)?;
            let mut rows = Rows::default();
            rows.clear(variables.len());
            let mut total = 0;
            for solution in solutions {
                let solution = solution.map_err(explain)?;
                for cell in solution.values() {
                    if let Some(t) = cell {
                        term::push_term(t, &mut rows.bytes);
                    }
                    rows.end_cell();
                }
                rows.rows += 1;
                total += 1;
                if rows.rows == BATCH {
                    sink.rows(&rows)?;
                    rows.clear(variables.len());
                }
            }
            sink.rows(&rows)?;
            sink.finish()?;
            Ok(total)
        }
        QueryResults::Graph(triples) => {
            sink.graph()?;
            let mut total = 0;
            for t in triples {
                sink.triple(&t.map_err(explain)?)?;
                total += 1;
            }
            sink.finish()?;
            Ok(total)
        }
    }
}

fn explain(e: QueryEvaluationError) -> Error {
    match e {
        QueryEvaluationError::Cancelled => Error::Cancelled,
        QueryEvaluationError::Dataset(e) => Error::Store(e.to_string()),
        QueryEvaluationError::UnsupportedService(s) => {
            Error::Unsupported(format!("SERVICE {s}: this version calls no other endpoint"))
        }
        other => Error::Unsupported(other.to_string()),
    }
}

/// Watches one query from beside it.
struct Guard {
    done: Arc<AtomicBool>,
    reason: Arc<Mutex<Option<Error>>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Guard {
    fn start(theirs: spareval::CancellationToken, cancel: CancelToken, memory: u64) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let reason = Arc::new(Mutex::new(None));
        let (done2, reason2) = (Arc::clone(&done), Arc::clone(&reason));
        let before = anonymous_memory().unwrap_or(0);
        let thread = std::thread::spawn(move || {
            while !done2.load(Ordering::Acquire) {
                let over =
                    anonymous_memory().is_some_and(|now| now.saturating_sub(before) > memory);
                let verdict = match cancel.check() {
                    Err(e) => Some(e),
                    Ok(()) if over => Some(Error::Limit(format!(
                        "the query's memory limit of {} MiB is reached; raise --memory or narrow the query",
                        memory >> 20
                    ))),
                    Ok(()) => None,
                };
                if let Some(e) = verdict {
                    *reason2.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
                    theirs.cancel();
                    return;
                }
                std::thread::park_timeout(LOOK_EVERY);
            }
        });
        Self {
            done,
            reason,
            thread: Some(thread),
        }
    }

    fn finish(mut self) -> Option<Error> {
        self.stop();
        self.reason
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn stop(&mut self) {
        self.done.store(true, Ordering::Release);
        if let Some(t) = self.thread.take() {
            t.thread().unpark();
            // The thread cannot panic: it only loads, compares and stores.
            let _ = t.join();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Anonymous resident memory of this process in bytes, where the system tells (Linux).
fn anonymous_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("RssAnon:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}
