//! Jobs, and the trait that runs them.

use super::{Refusal, WorkClass};
use jindou::WorkerPool;
use std::sync::Arc;
use std::time::Instant;

/// Source of tasks for the scheduler's workers, which also runs them.
pub trait TaskSource: Send + Sync + 'static {
    /// A task to be done.
    type Task: Send + 'static;
    /// State that a worker keeps between tasks.
    type Local;

    /// Makes a worker's state; called on its thread.
    fn local(&self, worker: usize) -> Self::Local;

    /// Runs the task. A heavy task may ask other workers for help through `pool`; at most `threads` threads, including
    /// this one, work on it.
    fn run(
        &self,
        job: Job<Self::Task>,
        local: &mut Self::Local,
        pool: &Arc<dyn WorkerPool>,
        threads: usize,
    ) -> Ran<Self::Task>;

    /// Called for a job that was admitted but will not be run.
    fn dropped(&self, job: Job<Self::Task>, why: Dropped);

    /// Generates the next job that has arrived by `now`. Workers call this between two jobs and while idle, until it
    /// returns no job, so that arrivals need no thread of their own.
    fn draw(&self, _local: &mut Self::Local, _now: Instant) -> Drawn<Self::Task> {
        Drawn::Never
    }

    /// Called for a job from [`Self::draw`] that admission refused.
    fn refused(&self, _local: &mut Self::Local, job: Job<Self::Task>, why: Refusal) {
        self.dropped(job, Dropped::Refused(why));
    }
}

/// Result of [`TaskSource::draw`].
#[derive(Debug)]
pub enum Drawn<T> {
    /// A job that has come.
    Job(Job<T>),
    /// No job now; the next one arrives at this time.
    At(Instant),
    /// No job now, and the time of the next is unknown.
    Never,
}

/// A task with what the scheduler needs to know about it.
#[derive(Clone, Debug)]
pub struct Job<T> {
    /// The task to be done.
    pub task: T,
    /// Class of the task: light or heavy.
    pub class: WorkClass,
    /// Number of the client that it comes from.
    pub client: u64,
    /// The worker in whose queue it waits, modulo the number of workers; `None`: the scheduler picks the workers in
    /// turn.
    pub home: Option<usize>,
    /// Time of arrival, from which latencies and waiting times count.
    pub arrived: Instant,
    /// True if the job began as a light one.
    pub moved: bool,
}

impl<T> Job<T> {
    /// A job that arrives now.
    #[cfg(test)]
    pub fn new(task: T, class: WorkClass, client: u64) -> Self {
        Self {
            task,
            class,
            client,
            home: None,
            arrived: Instant::now(),
            moved: false,
        }
    }
}

/// Submits jobs from any thread; returns false if the job is refused or the scheduler is closed.
pub type Submit<T> = Arc<dyn Fn(Job<T>) -> bool + Send + Sync>;

/// Outcome of a job that was run.
pub enum Ran<T> {
    /// The job is over.
    Done,
    /// The job is over, and its client sends this next one. If both have the same client and class, the next one takes
    /// over the place that the first had in admission, and is not counted again.
    Next(Job<T>),
    /// The job was classed as light but takes too long. It has returned no results, and starts again as a heavy one.
    TooLong(Job<T>),
}

/// Reason why a job was not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Admission refused it, when a light job became heavy or when it was drawn.
    Refused(Refusal),
    /// The scheduler ends.
    Closed,
}
