//! The lock that allows one process per store.

use jindou_model::{Error, Result, private};
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The lock's file in a store directory. It stays there; its presence means nothing.
const NAME: &str = "lock";
/// Number of attempts to take a lock whose file was replaced meanwhile.
const TRIES: usize = 10;

/// The right to write to a store directory, until dropped. The operating system holds it (`flock`), so it ends with the
/// process, in whatever way that ends.
#[derive(Debug)]
pub struct StoreLock {
    file: File,
    path: PathBuf,
}

impl StoreLock {
    /// Takes the lock of an existing directory.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process (or another part of this one) has it; the message names it if it is known.
    /// [`Error::Io`] if the file cannot be created or the file system does not support locks.
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
            // Between opening and locking the file may have been removed: then this locks nothing.
            if lock.holds() {
                lock.sign();
                return Ok(lock);
            }
        }
        Err(Error::in_use(path, "the lock file keeps being removed"))
    }

    /// True while the lock keeps others out: false once its file was removed or replaced.
    #[must_use]
    pub fn holds(&self) -> bool {
        match (self.file.metadata(), std::fs::metadata(&self.path)) {
            (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
            _ => false,
        }
    }

    /// Records the holder in the file. Only for messages: a full disk does not matter.
    fn sign(&mut self) {
        let _ = self.file.set_len(0);
        let _ = self.file.rewind();
        let _ = writeln!(self.file, "{}", std::process::id());
    }
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        // A child that another thread is just starting has the descriptor until it runs its program: closing ours would leave the
        // lock to it.
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
