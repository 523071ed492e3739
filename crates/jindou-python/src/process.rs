//! The process to which an object belongs. After a fork, the engine's threads exist only in the parent, so calls in the
//! child would wait for them for ever.

use crate::errors::named;
use pyo3::prelude::*;

/// The process in which an object was created.
pub struct Home(u32);

impl Home {
    /// The current process.
    pub fn here() -> Self {
        Self(std::process::id())
    }

    /// False in a child process that inherited the object.
    pub fn is_here(&self) -> bool {
        self.0 == std::process::id()
    }

    /// # Errors
    /// `UsageError` in a child process.
    pub fn check(&self) -> PyResult<()> {
        if self.is_here() {
            return Ok(());
        }
        let why = format!(
            "the database was opened in process {}, and this process {} is a fork of it, without the engine's threads: open the store \
             again here (read_only=True while the parent has it open), or start workers with multiprocessing's \"spawn\" or \"forkserver\"",
            self.0,
            std::process::id()
        );
        Err(named("UsageError", &why))
    }

    /// Drops a value. In a child process it is leaked instead, since dropping it might wait for threads, or close what
    /// the parent still uses.
    pub fn drop<T>(&self, value: T) {
        if self.is_here() {
            drop(value);
        } else {
            std::mem::forget(value);
        }
    }
}
