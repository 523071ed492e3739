//! A store directory's log as the journal of its database.

use super::journal::{Journal, Ticket};
use super::merge::MergePlace;
use super::writer::Writer;
use jindou_log::{Directory, Durability, Files, Log, Options, Recovery, StoreLock};
use jindou_model::{Error, Result};
use jindou_store::directory::{Manifest, remove_leftovers};
use jindou_store::{CheckReport, Damage, Snapshot};
use std::path::Path;
use std::sync::Arc;

/// The folder of the log in a store directory.
const FOLDER: &str = "log";

/// Whether a database that is opened will be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// It can be changed if no other process changes it and its files can be written; else it can be read, as it is when it is
    /// opened.
    #[default]
    Any,
    /// It must be possible to change it.
    Write,
    /// It is only read, as it is when it is opened; nothing in its directory is touched.
    Read,
}

/// How to open a database.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// Whether it will be changed.
    pub access: Access,
    /// When an update counts as done.
    pub durability: Durability,
}

struct LogJournal {
    log: Log,
    lock: StoreLock,
}

impl Journal for LogJournal {
    fn append(&self, number: u32, record: Vec<u8>) -> Result<Box<dyn Ticket>> {
        self.check_alone()?;
        Ok(Box::new(self.log.append(number, record)?))
    }

    fn reset(&self, number: u32) -> Result<()> {
        match number.checked_add(1) {
            Some(next) => self.log.reset(next),
            None => Err(Error::Limit("snapshot numbers are used up".into())),
        }
    }

    fn begin_file(&self) {
        self.log.begin_file();
    }

    fn sync(&self) -> Result<()> {
        self.log.sync()
    }

    fn forget(&self, upto: u32) -> Result<()> {
        self.log.truncate(upto)
    }

    fn check_alone(&self) -> Result<()> {
        if self.lock.holds() {
            return Ok(());
        }
        Err(Error::Store(
            "somebody removed the lock of the store directory, and another process may write to it now; nothing was changed: stop both, then start one".into(),
        ))
    }

    fn status(&self) -> Option<jindou_log::Status> {
        Some(self.log.status())
    }
}

impl Ticket for jindou_log::Ticket {
    fn wait(self: Box<Self>) -> Result<()> {
        jindou_log::Ticket::wait(&self)
    }
}

/// Adds what is wrong with the log of a store directory, if it has one, to what is known of its other files.
///
/// # Errors
/// [`Error::Io`] if a file cannot be read.
pub(crate) fn check_log(dir: &Path, report: &mut CheckReport) -> Result<()> {
    let folder = dir.join(FOLDER);
    if !folder.is_dir() {
        return Ok(());
    }
    let files = Directory::open(&folder).map_err(|e| Error::io(&folder, e))?;
    let found = jindou_log::check(&files)?;
    report.files += found.files;
    report.bytes += found.bytes;
    report
        .damages
        .extend(found.damages.into_iter().map(|d| Damage {
            file: format!("{FOLDER}/{}", d.file),
            bytes: None,
            what: format!("from byte {} on: {}", d.offset, d.what),
        }));
    Ok(())
}

/// Keeps others from changing a store directory that has a log, if it is one.
///
/// # Errors
/// [`Error::Store`] when another process may be changing it.
pub(crate) fn alone(dir: &Path) -> Result<Option<StoreLock>> {
    if dir.join(FOLDER).is_dir() {
        StoreLock::acquire(dir).map(Some)
    } else {
        Ok(None)
    }
}

/// A store directory that was opened.
pub(crate) struct Opened {
    pub writer: Writer,
    /// What was found in its log, if it has one.
    pub recovery: Option<Recovery>,
    /// Where changes are merged, if it can be written.
    pub merges: Option<MergePlace>,
}

/// The writer of a store directory over its base, with all that its log holds replayed; and what was found there.
///
/// # Errors
/// [`Error::Store`] when there is no store or the log is damaged, and for [`Access::Write`] when another process has the store;
/// [`Error::Io`].
pub(crate) fn open(dir: &Path, options: &OpenOptions) -> Result<Opened> {
    let manifest = Manifest::of_store(dir)?;
    let lock = match options.access {
        Access::Read => Err("the database was opened for reading only".to_owned()),
        Access::Any => StoreLock::acquire(dir).map_err(|e| e.to_string()),
        Access::Write => Ok(StoreLock::acquire(dir)?),
    };
    match lock {
        // Nobody merges now but this process.
        Ok(lock) => write(dir, lock, options),
        Err(why) => read(dir, manifest, &why),
    }
}

/// Reads a store that another process may be writing.
fn read(dir: &Path, mut manifest: Manifest, why: &str) -> Result<Opened> {
    loop {
        let opened = read_once(dir, why);
        match Manifest::of_store(dir) {
            // Merged meanwhile: the log may have forgotten what the base lacked.
            Ok(now) if now != manifest => manifest = now,
            _ => return opened,
        }
    }
}

fn read_once(dir: &Path, why: &str) -> Result<Opened> {
    let mut head = Snapshot::of_base(jindou_store::open(dir)?);
    let (epoch, after) = (head.base().epoch(), head.number());
    let folder = dir.join(FOLDER);
    let recovery = match Directory::open(&folder) {
        Ok(files) => {
            let mut replay = |_: u32, record: &[u8]| -> Result<()> {
                head = head.replay(record)?;
                Ok(())
            };
            Some(jindou_log::replay(&files, epoch, after, &mut replay)?)
        }
        // No log yet.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => return Err(Error::io(&folder, e)),
    };
    Ok(Opened {
        writer: Writer::new(head, Err(why.to_owned())),
        recovery,
        merges: None,
    })
}

fn write(dir: &Path, lock: StoreLock, options: &OpenOptions) -> Result<Opened> {
    // What a merge left that did not end. It is tried again when the next one begins.
    let _ = remove_leftovers(dir);
    let mut head = Snapshot::of_base(jindou_store::open(dir)?);
    let (epoch, after) = (head.base().epoch(), head.number());
    let folder = dir.join(FOLDER);
    let files: Arc<dyn Files> = match Directory::create(&folder) {
        Ok(files) => Arc::new(files),
        // A full disk, say: there is no log to read, and none can be begun.
        Err(e) if options.access == Access::Any && !folder.exists() => {
            let why = format!("{}: {e}", folder.display());
            return Ok(Opened {
                writer: Writer::new(head, Err(why)),
                recovery: None,
                merges: None,
            });
        }
        Err(e) => return Err(Error::io(&folder, e)),
    };
    let log_options = Options {
        durability: options.durability,
        ..Options::default()
    };
    let mut replay = |_: u32, record: &[u8]| -> Result<()> {
        head = head.replay(record)?;
        Ok(())
    };
    let (log, recovery) = Log::open(files, epoch, after, log_options, &mut replay)?;
    // Of a process that ended between merging and this.
    if after > 0 {
        let _ = log.truncate(after);
    }
    let store = Directory::open(dir).map_err(|e| Error::io(dir, e))?;
    let journal = LogJournal { log, lock };
    Ok(Opened {
        writer: Writer::new(head, Ok(Box::new(journal))),
        recovery: Some(recovery),
        merges: Some(MergePlace::new(dir.to_owned(), Arc::new(store))),
    })
}
