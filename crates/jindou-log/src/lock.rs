//! The lock that ensures that only one process uses a store.

use jindou_model::{Error, Result, private};
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Name of the lock file in a store directory. The file is never removed; whether it exists says nothing.
const NAME: &str = "lock";
/// Number of attempts to take the lock if the lock file keeps being replaced.
const TRIES: usize = 10;

/// The exclusive right to write to a store directory, until this is dropped. It is a lock of the operating system
/// (`flock`), which ends with the process, however the process ends.
#[derive(Debug)]
pub struct StoreLock {
    file: File,
    path: PathBuf,
}

impl StoreLock {
    /// Takes the lock of an existing directory.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process (or another part of this one) has the lock; the message names the process if
    /// it is known. [`Error::Io`] if the file cannot be created or the file system does not support locks.
    pub fn acquire(directory: &Path) -> Result<Self> {
        let path = directory.join(NAME);
        for _ in 0..TRIES {
            let mut file = private::open_or_create(&path).map_err(|e| Error::io(&path, e))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(in_use(directory, &mut file)),
                Err(TryLockError::Error(e)) => return Err(Error::io(&path, e)),
            }
            let mut lock = Self {
                file,
                path: path.clone(),
            };
            // If the file was removed between opening and locking it, this lock does not exclude processes that create
            // a new one.
            if lock.holds() {
                lock.sign();
                return Ok(lock);
            }
        }
        Err(Error::in_use(path, "the lock file keeps being removed"))
    }

    /// True while the lock excludes others; false once its file was removed or replaced.
    #[must_use]
    pub fn holds(&self) -> bool {
        match (self.file.metadata(), std::fs::metadata(&self.path)) {
            (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
            _ => false,
        }
    }

    /// Writes the process id to the file, for messages of other processes. Errors, such as a full disk, are ignored.
    fn sign(&mut self) {
        let _ = self.file.set_len(0);
        let _ = self.file.rewind();
        let _ = writeln!(self.file, "{}", std::process::id());
    }
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        // A child process that another thread is just starting has a copy of the descriptor until it executes its
        // program. If only our descriptor were closed, the lock would last until then.
        let _ = self.file.unlock();
    }
}

fn in_use(directory: &Path, file: &mut File) -> Error {
    let mut text = String::new();
    let _ = file.take(32).read_to_string(&mut text);
    let who = match text.trim().parse::<u32>() {
        Ok(pid) if pid == std::process::id() => format!("this process ({pid})"),
        Ok(pid) => format!("process {pid}"),
        Err(_) => "another process".to_owned(),
    };
    Error::in_use(
        directory,
        format!("the store is in use by {who}; stop it first, or send updates to it"),
    )
}
