//! Backups of a store, even while it is served, and restoring stores from them.
//!
//! A backup target is a flat folder of immutable files, or of objects. Each backup is a small text that names the files
//! that belong to it, so a later backup copies only new files.
//!
//! ```text
//! backup-<order>-<snapshot>          lists the files of one backup; written last, so every listed backup is complete
//! part-<checksum>                    up to 64 MiB of a base's file
//! log-<epoch>-<sequence>-<checksum>-<length>   the first bytes of a log file
//! ```
//!
//! `<order>` is the time in microseconds; if the clock was set back, one more than the newest backup's.
//!
//! | module | job |
//! |---|---|
//! | `document` | the text of a backup |
//! | `parts` | base files in parts, by checksum |
//! | `take` | making a backup |
//! | `prune` | removing old backups |
//! | `restore` | restoring a store from a backup, up to a snapshot or a time |

mod document;
mod parts;
mod prune;
pub(crate) mod restore;
pub(crate) mod take;
mod time;

pub use prune::PruneReport;
pub use restore::{RestoreReport, RestoreTo};
pub use take::{BACKUP_PHASES, BackupReport};
pub use time::{parse_time, time_text};

use document::BackupDocument;
use jindou_log::{Directory, Files, StoreLock};
use jindou_model::{Error, Result, private};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest backup document that is read, in bytes.
const LONGEST: u64 = 1 << 30;

/// A destination for backups.
#[derive(Clone)]
pub struct BackupTarget {
    files: Arc<dyn Files>,
    /// The local folder, which one process at a time may write to; `None` for other storage.
    folder: Option<PathBuf>,
    /// The only backup to consider, if one was named.
    only: Option<String>,
}

jindou_model::debug_format!(
    BackupTarget,
    |this| "BackupTarget({})",
    this.files.path("").display()
);

/// Description of one backup.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupInfo {
    /// The backup's name in the backup target.
    pub name: String,
    /// Time at which the backup was taken, in microseconds since 1970 (UTC).
    pub time: u64,
    /// Number of the last snapshot in the backup.
    pub snapshot: u64,
    /// Number of the snapshot in the backup's base, the first one that can be restored.
    pub base: u64,
    /// Earliest time to which the backup can be restored; every time from then on up to [`Self::time`] is possible.
    pub from: u64,
    /// Id epoch of the backup's base.
    pub epoch: u64,
    /// Total bytes of the backup's files, including those that it shares with other backups.
    pub bytes: u64,
}

impl BackupTarget {
    /// A target in a folder, which is created with its parents; given as a path, or as `file://` and an absolute path.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for other URLs, [`Error::Io`].
    pub fn folder(location: &str) -> Result<Self> {
        let path = Self::path_of(location)?;
        if let Some(parent) = Path::new(path).parent() {
            create_folders(parent).map_err(|e| Error::io(parent, e))?;
        }
        let files = Directory::create(path).map_err(|e| Error::io(path, e))?;
        Ok(Self {
            files: Arc::new(files),
            folder: Some(PathBuf::from(path)),
            only: None,
        })
    }

    /// Like [`Self::folder`], but the folder must exist, as when backups are only read.
    ///
    /// # Errors
    /// Those of [`Self::folder`]; [`Error::Usage`] if the folder does not exist.
    pub fn existing(location: &str) -> Result<Self> {
        let path = Self::path_of(location)?;
        if !std::path::Path::new(path).is_dir() {
            return Err(Error::Usage(format!(
                "no backup folder at {path}; create one with `jindou backup --store DIR --to {path}`"
            )));
        }
        Self::folder(location)
    }

    fn path_of(location: &str) -> Result<&str> {
        let path = match location.split_once("://") {
            None => location,
            Some(("file", path)) if path.starts_with('/') => path,
            Some(_) => {
                return Err(Error::Unsupported(format!(
                    "{location}: this program has no client for such a location; give a folder (other \
                        object stores: BackupTarget::of in your own program)"
                )));
            }
        };
        Ok(path)
    }

    /// A target in any storage that writes files as a whole, such as `Objects` (feature `object-store`) for an object
    /// store.
    #[must_use]
    pub fn of(files: Arc<dyn Files>) -> Self {
        Self {
            files,
            folder: None,
            only: None,
        }
    }

    /// The same target, restricted to this backup: restores ignore all others.
    #[must_use]
    pub fn only(&self, name: impl Into<String>) -> Self {
        Self {
            only: Some(name.into()),
            ..self.clone()
        }
    }

    /// All backups in the order in which they were taken. A backup with a damaged document is returned as an error.
    ///
    /// # Errors
    /// [`Error::Io`] if the backup target cannot be read.
    pub fn list(&self) -> Result<Vec<Result<BackupInfo>>> {
        let documents = self.documents()?;
        Ok(documents.into_iter().map(|d| d.map(|d| d.info)).collect())
    }

    /// Parsed texts of all backups, in the order in which they were taken.
    fn documents(&self) -> Result<Vec<Result<BackupDocument>>> {
        let files = &*self.files;
        let there = files.list().map_err(|e| Error::io(files.path(""), e))?;
        let names = self.names(&there);
        let all = files.read_many(&names, LONGEST);
        Ok(names
            .into_iter()
            .zip(all)
            .map(|(name, text)| {
                let text = text.map_err(|e| Error::io(files.path(&name), e))?;
                BackupDocument::parse(&name, &text).ok_or_else(|| {
                    Error::damaged(
                        files.path(&name),
                        "the backup is damaged; others in the same folder may be intact",
                    )
                })
            })
            .collect())
    }

    /// Selects the names of backups from names of files, in the order in which the backups were taken.
    fn names(&self, there: &[String]) -> Vec<String> {
        let is_wanted =
            |n: &&String| document::is_name(n) && self.only.as_ref().is_none_or(|only| *n == only);
        let mut names: Vec<String> = there.iter().filter(is_wanted).cloned().collect();
        names.sort_unstable();
        names
    }

    /// Locks a folder of backups against other writers, and removes incomplete files that a killed process left. `None`
    /// for storage other than a folder.
    fn alone(&self) -> Result<Option<StoreLock>> {
        let Some(folder) = &self.folder else {
            return Ok(None);
        };
        let lock = StoreLock::acquire(folder).map_err(|e| match e {
            Error::InUse { .. } => Error::Conflict(format!(
                "another backup is being written to {}; try again when it is done",
                folder.display()
            )),
            e => e,
        })?;
        let files = &*self.files;
        let names = files.list().map_err(|e| Error::io(folder, e))?;
        for name in names.iter().filter(|n| n.ends_with(".tmp")) {
            let _ = files.remove(name);
        }
        Ok(Some(lock))
    }

    /// Returns an error if the target is a folder inside the store that is backed up.
    fn outside(&self, dir: &Path) -> Result<()> {
        let inside = |a: &Path| Some(a.canonicalize().ok()?.starts_with(dir.canonicalize().ok()?));
        let path = self.files.path("");
        if inside(&path) == Some(true) {
            return Err(Error::Usage(format!(
                "{} is inside the store; choose another folder for backups, on another disk if possible",
                path.display()
            )));
        }
        Ok(())
    }
}

/// Creates a folder and its missing parents.
fn create_folders(path: &Path) -> std::io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        create_folders(parent)?;
    }
    match private::create_folder(path) {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        created => created,
    }
}
