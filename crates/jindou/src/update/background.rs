//! Threads that work in the background.

use jindou_model::sync;
use jindou_model::{Error, Resource, Result};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Starts a thread. `failure` says what is not done if it cannot be started.
///
/// # Errors
/// [`Error::Limit`] if no thread can be started.
pub(crate) fn spawn(
    name: &str,
    failure: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name(name.into());
    let thread = thread.spawn(work);
    thread.map_err(|e| Error::limit(Resource::Threads, format!("{failure}: {e}")))
}

/// Tells a thread to end.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Waits, at most until the thread must end. Returns true in that case.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let stopped = sync::lock(&self.stopped);
        let waited = self.changed.wait_timeout_while(stopped, time, |s| !*s);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Handle of a thread that works until it is dropped.
#[derive(Debug)]
pub(crate) struct Background {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// # Errors
    /// As [`spawn`].
    pub(crate) fn start(
        name: &str,
        failure: &str,
        work: impl FnOnce(&Stop) + Send + 'static,
    ) -> Result<Self> {
        let stop: Arc<Stop> = Arc::default();
        let told = Arc::clone(&stop);
        let thread = spawn(name, failure, move || work(&told))?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        *sync::lock(&self.stop.stopped) = true;
        self.stop.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
