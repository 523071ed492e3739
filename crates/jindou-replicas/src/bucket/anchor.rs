//! Protection against a log directory that is moved or unmounted while a server follows the log. Its path may then lead
//! to an empty mount point, or to a new directory in place of a renamed one. Writes there would lose acknowledged
//! updates, and an empty listing would be a wrong proof of freshness.

use super::{Bucket, Failure, IDENTITY, Limits, generic};
use crate::blocking::blocking;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tokio::time::{Instant, timeout_at};

/// Device and inode of the directory, and of `log.json` in it.
type Identity = [(u64, u64); 2];

/// A directory, with its identity once that was recorded.
#[derive(Debug)]
pub(super) struct Anchor {
    folder: PathBuf,
    identity: OnceLock<Identity>,
}

impl Anchor {
    pub fn new(folder: &Path) -> Arc<Self> {
        Arc::new(Self {
            folder: folder.to_owned(),
            identity: OnceLock::new(),
        })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn read_identity(&self) -> io::Result<Identity> {
        let identity = |path: &Path| std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino()));
        Ok([
            identity(&self.folder)?,
            identity(&self.folder.join(IDENTITY))?,
        ])
    }

    fn record_identity(&self) -> io::Result<()> {
        let _ = self.identity.set(self.read_identity()?);
        Ok(())
    }

    /// # Errors
    /// If the path now leads to another directory.
    fn check(&self) -> io::Result<()> {
        let Some(recorded) = self.identity.get() else {
            return Ok(());
        };
        match self.read_identity() {
            Ok(now) if now == *recorded => Ok(()),
            Ok(_) => Err(io::Error::other(
                "another directory is in the place of the log's; put the log's back, or restart the server",
            )),
            Err(e) => Err(io::Error::other(format!(
                "the log's directory is away: {e}"
            ))),
        }
    }

    /// Runs [`Self::check`] on a thread that may block.
    pub async fn is_there(self: Arc<Self>) -> object_store::Result<()> {
        if self.identity.get().is_none() {
            return Ok(());
        }
        blocking(move || self.check()).await.map_err(generic)
    }
}

impl Bucket {
    /// Records the directory's identity. From now on, requests fail if the path leads to another directory. Does
    /// nothing for an object store.
    ///
    /// # Errors
    /// If the log does not exist.
    pub async fn record_identity(&self) -> Result<(), Failure> {
        let Some(anchor) = self.0.anchor.clone() else {
            return Ok(());
        };
        let end = Instant::now() + Limits::default().request;
        match timeout_at(end, blocking(move || anchor.record_identity())).await {
            Ok(recorded) => recorded.map_err(|e| Failure::Unknown(e.to_string())),
            Err(_) => Err(Failure::Unknown(
                "the directory does not answer in time".into(),
            )),
        }
    }
}
