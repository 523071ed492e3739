//! Evaluation of updates, one after another on a dedicated thread. Each update is evaluated on the snapshot that the
//! previous one produced, without a round trip through the driver.

use crate::application::{Application, Evaluated};
use crate::driver::Done;
use crate::machine::{Blob, RequestKey};
use jindou_model::invariant::guarded;
use jindou_model::{CancelToken, sync};
use std::collections::VecDeque;
use std::iter;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use tokio::sync::mpsc::UnboundedSender;

struct Job {
    ticket: u64,
    key: RequestKey,
    body: Blob,
    cancel: CancelToken,
}

/// State shared by the thread and the driver.
struct EvaluatorState<S> {
    /// Snapshot for the next evaluation: the result of the last finished one. `None` while no evaluation is queued, so
    /// that no snapshot is kept alive.
    head: Option<S>,
    /// Total bytes of evaluated records that are in no group yet.
    bytes: usize,
}

struct Shared<S> {
    state: Mutex<EvaluatorState<S>>,
    /// Notified when record bytes are released or jobs are cancelled.
    changed: Condvar,
    /// While the records have at least this many bytes, no further update is evaluated.
    max_record_bytes: usize,
}

/// Queued evaluations, and the sizes of finished ones whose records are in no group yet.
pub(crate) struct Evaluations<S> {
    begun: VecDeque<(u64, CancelToken)>,
    /// Size in bytes of each record that is in no group yet, oldest first.
    sizes: VecDeque<usize>,
    shared: Arc<Shared<S>>,
    /// Sender of the evaluation thread's job queue; `None` until the thread is started.
    jobs: Option<Sender<Job>>,
}

impl<S> Drop for Evaluations<S> {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl<S> Evaluations<S> {
    /// Cancels all queued evaluations and forgets the finished records.
    pub fn cancel(&mut self) {
        for (_, cancel) in self.begun.drain(..) {
            cancel.cancel();
        }
        self.sizes.clear();
        *sync::lock(&self.shared.state) = EvaluatorState {
            head: None,
            bytes: 0,
        };
        self.shared.changed.notify_all();
    }
}

impl<S: Clone + Send + Sync + 'static> Evaluations<S> {
    /// Creates a queue. Evaluation pauses once `max_record_bytes` bytes of records wait for their groups.
    pub fn new(max_record_bytes: usize) -> Self {
        let state = Mutex::new(EvaluatorState {
            head: None,
            bytes: 0,
        });
        Self {
            begun: VecDeque::new(),
            sizes: VecDeque::new(),
            shared: Arc::new(Shared {
                state,
                changed: Condvar::new(),
                max_record_bytes,
            }),
            jobs: None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }

    /// Queues an evaluation on the result of the previous one, or on `head` if the queue is empty. The result is sent
    /// to `done`. Must be called within a tokio runtime.
    pub fn begin<A: Application<Snapshot = S>>(
        &mut self,
        (ticket, key, body): (u64, RequestKey, Blob),
        head: &S,
        store: &Arc<A>,
        done: &UnboundedSender<Done<S>>,
    ) {
        if self.begun.is_empty() {
            sync::lock(&self.shared.state).head = Some(head.clone());
        }
        let cancel = CancelToken::new();
        self.begun.push_back((ticket, cancel.clone()));
        let job = Job {
            ticket,
            key,
            body,
            cancel,
        };
        let jobs = self.jobs.get_or_insert_with(|| {
            let (jobs, waiting) = channel();
            let (store, shared, done) = (store.clone(), self.shared.clone(), done.clone());
            tokio::task::spawn_blocking(move || work(&*store, &shared, &waiting, &done));
            jobs
        });
        // The thread ends when this sender or the driver's receiver is dropped.
        let _ = jobs.send(job);
    }

    /// Removes a finished evaluation from the queue. Returns false if it was cancelled.
    pub fn end(&mut self, ticket: u64, evaluated: &Evaluated<S>) -> bool {
        if (self.begun.front()).is_none_or(|(of, _)| *of != ticket) {
            return false;
        }
        self.begun.pop_front();
        self.sizes.extend(size(evaluated));
        if self.begun.is_empty() {
            sync::lock(&self.shared.state).head = None;
        }
        true
    }

    /// Removes the sizes of the oldest `count` records, which are in a group now.
    pub fn release_records(&mut self, count: usize) {
        let bytes: usize = self.sizes.drain(..count.min(self.sizes.len())).sum();
        let mut state = sync::lock(&self.shared.state);
        state.bytes = state.bytes.saturating_sub(bytes);
        drop(state);
        self.shared.changed.notify_all();
    }
}

/// Bytes of an evaluation's record and answer; `None` if the update was refused.
fn size<S>(evaluated: &Evaluated<S>) -> Option<usize> {
    match evaluated {
        Evaluated::Record { bytes, report, .. } => Some(bytes.len() + report.len()),
        Evaluated::Refused(_) => None,
    }
}

/// Evaluates jobs until the sender is dropped.
fn work<A: Application>(
    store: &A,
    shared: &Shared<A::Snapshot>,
    jobs: &Receiver<Job>,
    done: &UnboundedSender<Done<A::Snapshot>>,
) {
    let mut waiting = VecDeque::new();
    while let Some(job) = waiting.pop_front().or_else(|| jobs.recv().ok()) {
        let Some(on) = shared.head_for(&job) else {
            continue;
        };
        if waiting.is_empty() {
            waiting.extend(jobs.try_iter());
            if !waiting.is_empty() {
                let bodies = iter::once(&job).chain(&waiting);
                let bodies: Vec<Blob> = bodies.map(|job| job.body.clone()).collect();
                store.prefetch(&on, &bodies, &job.cancel);
            }
        }
        let evaluate = || Ok(store.evaluate(&on, job.key, &job.body, &job.cancel));
        let evaluated =
            guarded(evaluate).unwrap_or_else(|error| Evaluated::Refused(store.failed(&error)));
        if let Evaluated::Record { snapshot, .. } = &evaluated {
            let mut state = sync::lock(&shared.state);
            // After a cancellation, `head` belongs to later jobs.
            if !job.cancel.is_cancelled() {
                state.head = Some(snapshot.clone());
                state.bytes += size(&evaluated).unwrap_or(0);
            }
        }
        if done.send(Done::Evaluated(job.ticket, evaluated)).is_err() {
            return;
        }
    }
}

impl<S: Clone> Shared<S> {
    /// Waits until the waiting records are below the limit. Returns the snapshot to evaluate the job on, or `None` if
    /// the job was cancelled.
    fn head_for(&self, job: &Job) -> Option<S> {
        let mut state = sync::lock(&self.state);
        while state.bytes >= self.max_record_bytes && !job.cancel.is_cancelled() {
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.head.clone().filter(|_| !job.cancel.is_cancelled())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_is_made_is_bounded() {
        let mut evaluations = Evaluations::<u32>::new(10);
        let shared = evaluations.shared.clone();
        let job = |ticket| Job {
            ticket,
            key: RequestKey(0),
            body: Blob::from([]),
            cancel: CancelToken::new(),
        };
        let (tell, told) = channel();
        let ask = |job: Job| {
            let (shared, tell) = (shared.clone(), tell.clone());
            std::thread::spawn(move || tell.send(shared.head_for(&job)));
        };
        let full = |evaluations: &mut Evaluations<u32>| {
            evaluations.sizes.extend([4, 6]);
            *sync::lock(&shared.state) = EvaluatorState {
                head: Some(7),
                bytes: 10,
            };
        };
        let short = Duration::from_millis(50);
        let long = Duration::from_secs(30);
        full(&mut evaluations);
        ask(job(1));
        assert!(told.recv_timeout(short).is_err());
        evaluations.release_records(1);
        assert_eq!(told.recv_timeout(long), Ok(Some(7)));
        evaluations.release_records(1);
        assert_eq!(sync::lock(&shared.state).bytes, 0);
        // A cancelled job must not wait forever.
        full(&mut evaluations);
        let dropped = job(2);
        evaluations.begun.push_back((2, dropped.cancel.clone()));
        ask(dropped);
        assert!(told.recv_timeout(short).is_err());
        drop(evaluations);
        assert_eq!(told.recv_timeout(long), Ok(None));
    }
}
