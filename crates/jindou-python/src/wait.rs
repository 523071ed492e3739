//! Runs work without the interpreter's lock, so that Ctrl-C and exceptions in callbacks can cancel it.

use crate::errors::{exception, lost};
use jindou::{CancelToken, Error, Resource, Result};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Interval at which signals are checked.
pub const LOOK: Duration = Duration::from_millis(50);

/// Locks a mutex. Detaches from the interpreter while it waits, so that the mutex's holder can go on.
pub fn locked<'m, T>(py: Python<'_>, mutex: &'m Mutex<T>) -> MutexGuard<'m, T> {
    let locked = mutex.lock_py_attached(py);
    locked.unwrap_or_else(PoisonError::into_inner)
}

/// Runs work on another thread and waits for it. Handles signals meanwhile.
///
/// # Errors
/// Errors of the work; what a signal handler raised (such as `KeyboardInterrupt`), after the work has ended.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    cancel: &CancelToken,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    ticking(py, cancel, work, |_| Ok(()))
}

/// As [`interruptible`], with a callback every [`LOOK`], whose exceptions also cancel the work.
///
/// # Errors
/// As [`interruptible`], and exceptions of the callback.
pub fn ticking<T: Send>(
    py: Python<'_>,
    cancel: &CancelToken,
    work: impl FnOnce() -> Result<T> + Send,
    mut tick: impl FnMut(Python<'_>) -> PyResult<()> + Send,
) -> PyResult<T> {
    let (outcome, raised) = py.detach(|| {
        thread::scope(|scope| {
            let (tell, told) = channel();
            let started = thread::Builder::new()
                .name("jindou-python".into())
                .spawn_scoped(scope, move || {
                    // The receiver exists until this thread has ended.
                    let _ = tell.send(work());
                });
            if let Err(e) = started {
                let none = format!("cannot start a thread to compute in: {e}");
                return (Some(Err(Error::limit(Resource::Threads, none))), None);
            }
            let mut raised = None;
            loop {
                match told.recv_timeout(LOOK) {
                    Ok(outcome) => return (Some(outcome), raised),
                    Err(RecvTimeoutError::Disconnected) => return (None, raised),
                    Err(RecvTimeoutError::Timeout) if raised.is_some() => {}
                    Err(RecvTimeoutError::Timeout) => {
                        let looked = Python::attach(|py| {
                            py.check_signals()?;
                            tick(py)
                        });
                        if let Err(e) = looked {
                            cancel.cancel();
                            raised = Some(e);
                        }
                    }
                }
            }
        })
    });
    match (outcome, raised) {
        (_, Some(e)) => Err(e),
        (Some(outcome), None) => outcome.map_err(exception),
        (None, None) => Err(lost()),
    }
}
