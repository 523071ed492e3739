//! Jobs, and what runs them.

use super::{Refusal, WorkClass};
use jindou::WorkerPool;
use std::sync::Arc;
use std::time::Instant;

/// Runs tasks.
pub trait TaskSource: Send + Sync + 'static {
    /// A task to be done.
    type Task: Send + 'static;
    /// State that each worker keeps from task to task.
    type Local;

    /// A worker's own state, made on its thread.
    fn local(&self, worker: usize) -> Self::Local;

    /// Runs the task. Of a heavy one the `pool` are other workers that may be asked to help, `threads` at most with this one.
    fn run(
        &self,
        job: Job<Self::Task>,
        local: &mut Self::Local,
        pool: &Arc<dyn WorkerPool>,
        threads: usize,
    ) -> Ran<Self::Task>;

    /// A job was let in but will not be run.
    fn dropped(&self, job: Job<Self::Task>, why: Dropped);

    /// Draws a job that has come by itself: workers ask between two jobs and while they are idle, so that no thread besides them
    /// is needed for jobs to arrive. They ask again until it says that nothing more is there at `now`.
    fn draw(&self, _local: &mut Self::Local, _now: Instant) -> Drawn<Self::Task> {
        Drawn::Never
    }

    /// A job that was drawn is not let in.
    fn refused(&self, _local: &mut Self::Local, job: Job<Self::Task>, why: Refusal) {
        self.dropped(job, Dropped::Refused(why));
    }
}

/// Result of [`TaskSource::draw`].
#[derive(Debug)]
pub enum Drawn<T> {
    /// A job that has come.
    Job(Job<T>),
    /// Nothing now; something at this time.
    At(Instant),
    /// Nothing, as far as is known.
    Never,
}

/// A task on its way.
#[derive(Clone, Debug)]
pub struct Job<T> {
    /// The task to be done.
    pub task: T,
    /// How much it is.
    pub class: WorkClass,
    /// Number of the client that it comes from.
    pub client: u64,
    /// The worker in whose queue it waits, counted round; `None`: each in turn.
    pub home: Option<usize>,
    /// When it came: deadlines, latencies and what it has waited already count from here.
    pub arrived: Instant,
    /// When it is no longer wanted.
    pub deadline: Option<Instant>,
    /// True if the job began as a light one.
    pub moved: bool,
}

impl<T> Job<T> {
    /// A job that comes now.
    #[cfg(test)]
    pub fn new(task: T, class: WorkClass, client: u64) -> Self {
        Self {
            task,
            class,
            client,
            home: None,
            arrived: Instant::now(),
            deadline: None,
            moved: false,
        }
    }
}

/// Submits jobs from anywhere; false for one that is not let in, or comes too late.
pub type Submit<T> = Arc<dyn Fn(Job<T>) -> bool + Send + Sync>;

/// Outcome of a job that was run.
pub enum Ran<T> {
    /// The job is over.
    Done,
    /// The job is over, and its client sends the next one, which takes its place: one of the same client and class is let in without
    /// being counted again.
    Next(Job<T>),
    /// The job was called light and is not: nothing of it was given out, and it begins again as a heavy one.
    TooLong(Job<T>),
}

/// Reason why a job was not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Its deadline passed while it waited.
    Late,
    /// The job turned out heavy, or came by itself, and is not let in.
    Refused(Refusal),
    /// The scheduler ends.
    Closed,
}
