//! Evaluations of updates, one after another on a thread of their own. Each is on the snapshot that the one before it made, so that
//! none waits until the driver has heard of that.

use crate::application::{Application, Evaluated};
use crate::driver::Done;
use jindou_model::{CancelToken, sync};
use jindou_replicas::{Blob, RequestKey};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc::UnboundedSender;

/// Report of an update whose evaluation panicked.
const FAILED: &str = "the evaluation failed";

/// An update to evaluate.
struct Job {
    ticket: u64,
    key: RequestKey,
    body: Blob,
    cancel: CancelToken,
}

/// Evaluations that are begun and of whose end the driver has not heard.
pub(crate) struct Evaluations<S> {
    begun: VecDeque<(u64, CancelToken)>,
    /// The snapshot after the last evaluation that is over, or before the first. `None` if nothing is begun, so that no snapshot is held.
    head: Arc<Mutex<Option<S>>>,
    /// The thread's, once there is one.
    jobs: Option<Sender<Job>>,
}

impl<S: Clone + Send + Sync + 'static> Evaluations<S> {
    pub fn new() -> Self {
        Self {
            begun: VecDeque::new(),
            head: Arc::default(),
            jobs: None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }

    /// Begins an evaluation: on what the last one makes, or else on `head`. `done` hears of its end. Must be called in a runtime.
    pub fn begin<A: Application<Snapshot = S>>(
        &mut self,
        (ticket, key, body): (u64, RequestKey, Blob),
        head: &S,
        store: &Arc<A>,
        done: &UnboundedSender<Done<S>>,
    ) {
        if self.begun.is_empty() {
            *sync::lock(&self.head) = Some(head.clone());
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
            let (store, head, done) = (store.clone(), self.head.clone(), done.clone());
            tokio::task::spawn_blocking(move || work(&*store, &head, &waiting, &done));
            jobs
        });
        // The thread ends with this sender, or with the driver that would hear of the end.
        let _ = jobs.send(job);
    }

    /// The driver hears that an evaluation is over. False if it was dropped.
    pub fn end(&mut self, ticket: u64) -> bool {
        if (self.begun.front()).is_none_or(|(of, _)| *of != ticket) {
            return false;
        }
        self.begun.pop_front();
        if self.begun.is_empty() {
            *sync::lock(&self.head) = None;
        }
        true
    }

    /// Drops all that are begun.
    pub fn cancel(&mut self) {
        for (_, cancel) in self.begun.drain(..) {
            cancel.cancel();
        }
        *sync::lock(&self.head) = None;
    }
}

/// Evaluates until there is no sender.
fn work<A: Application>(
    store: &A,
    head: &Mutex<Option<A::Snapshot>>,
    jobs: &Receiver<Job>,
    done: &UnboundedSender<Done<A::Snapshot>>,
) {
    while let Ok(job) = jobs.recv() {
        let Some(on) = head_of(head, &job) else {
            continue;
        };
        let evaluate = || store.evaluate(&on, job.key, &job.body, &job.cancel);
        let evaluated = catch_unwind(AssertUnwindSafe(evaluate))
            .unwrap_or_else(|_| Evaluated::Refused(FAILED.as_bytes().into()));
        if let Evaluated::Record { snapshot, .. } = &evaluated {
            let mut head = sync::lock(head);
            // After a cancellation it is another one's.
            if !job.cancel.is_cancelled() {
                *head = Some(snapshot.clone());
            }
        }
        if done.send(Done::Evaluated(job.ticket, evaluated)).is_err() {
            return;
        }
    }
}

/// The snapshot on which a job is evaluated; `None` for one that is dropped.
fn head_of<S: Clone>(head: &Mutex<Option<S>>, job: &Job) -> Option<S> {
    let head = sync::lock(head);
    head.clone().filter(|_| !job.cancel.is_cancelled())
}
