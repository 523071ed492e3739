//! An open store directory: its base, its log (the journal of its database), and the lock that excludes other
//! processes.

use super::journal::{Journal, Ticket};
use super::shards::ShardHost;
use super::trust::{Trust, VerificationHandle, Verify, compare};
use super::writer::Writer;
use crate::runtime::Runtime;
use jindou_dictionary::index::Indexes;
use jindou_engine::Hub;
use jindou_log::{Directory, Durability, Files, Log, LogOptions, Recovery, StoreLock};
use jindou_model::sync;
use jindou_model::{Error, Resource, Result, setters};
use jindou_store::delta::{committed_at, stamp};
use jindou_store::directory::{
    BaseLocation, CURRENT, LOG, Manifest, ManifestState, REPLICA, current, open_after, open_at,
    remove_leftovers,
};
use jindou_store::shard::Cluster;
use jindou_store::{Base, CheckReport, Damage, Snapshot};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// Number of attempts to open a store for reading if its files change meanwhile.
pub(super) const TRIES: usize = 20;
/// Number of consecutive failures with the same reason after which the reason is not a concurrent change by another
/// process.
const SAME: usize = 3;

/// Intended use of a database that is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// Open for updates if no other process has the store open for updates and the files are writable. Otherwise open
    /// read-only, in the state at the time of opening.
    #[default]
    Any,
    /// Open for updates, or fail if that is not possible.
    Write,
    /// Open read-only, in the state at the time of opening. Nothing in the directory is changed.
    Read,
}

/// Options for opening a database.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Intended use of the database.
    pub access: Access,
    /// The point at which an update is acknowledged.
    pub durability: Durability,
    /// When the files' hashes are verified.
    pub verify: Verify,
    /// Threads, memory and devices, which several databases may share; `None` creates a runtime for this database, with
    /// the defaults for this machine.
    pub runtime: Option<Runtime>,
    /// Indexes to use, and to build when the store is reclustered. An index that the store was loaded without is not
    /// used before that; answers are the same.
    pub indexes: Indexes,
    /// If true, an empty store is created if nothing exists at the path. Ignored with [`Access::Read`].
    pub create: bool,
    /// Bytes of changes since the last merge at which a merge is due ([`Database::merge_in_background`]). At twice this
    /// size, updates wait for a merge, and fail with [`Error::Busy`] if their time limit passes first. `None` means no
    /// limit.
    ///
    /// [`Database::merge_in_background`]: crate::Database::merge_in_background
    pub changes_memory: Option<u64>,
    /// The shared log of a store that several servers replicate. The directory is then this server's copy, and an empty
    /// directory is filled from the log; `access`, `durability` and `create` are ignored.
    #[cfg(feature = "replicas")]
    pub log: Option<crate::replica::SharedLog>,
}

impl OpenOptions {
    setters! {
        with_access: access = Access;
        with_create: create = bool;
        with_durability: durability = Durability;
        with_verify: verify = Verify;
        with_runtime: runtime = impl Into<Option<Runtime>>;
        with_indexes: indexes = Indexes;
        with_changes_memory: changes_memory = impl Into<Option<u64>>;
    }

    /// Sets [`log`](Self::log).
    #[cfg(feature = "replicas")]
    #[must_use]
    pub fn with_log(mut self, log: impl Into<Option<crate::replica::SharedLog>>) -> Self {
        self.log = log.into();
        self
    }

    /// True if an empty store must be created where none exists.
    pub(crate) fn creates(&self) -> bool {
        self.create && self.access != Access::Read
    }
}

/// A store directory that this process may change.
pub(crate) struct WritableStore {
    dir: PathBuf,
    lock: StoreLock,
    options: LogOptions,
    open: RwLock<OpenBase>,
    /// Name of the exclusive work on the files that is in progress.
    work: Mutex<Option<&'static str>>,
    /// Commit time of the newest record, in microseconds since 1970 (UTC).
    last: AtomicU64,
}

/// The base in use, and its log.
struct OpenBase {
    place: BaseLocation,
    log: Arc<Log>,
    /// Reason why updates are no longer accepted; `None` while they are.
    refused: Option<String>,
}

/// The exclusive right to write or remove whole files of a store, until dropped.
pub(crate) struct FilesPermit<'d>(&'d WritableStore);

impl Drop for FilesPermit<'_> {
    fn drop(&mut self) {
        *sync::lock(&self.0.work) = None;
    }
}

impl WritableStore {
    /// Acquires the right to exclusive work on the files. While it is held, other such work is rejected, and no log
    /// records are removed.
    ///
    /// # Errors
    /// [`Error::Conflict`] if other work is in progress.
    pub(crate) fn begin(&self, what: &'static str) -> Result<FilesPermit<'_>> {
        let mut work = sync::lock(&self.work);
        if let Some(other) = *work {
            return Err(Error::Conflict(format!(
                "{other} is in progress; try again when it is done"
            )));
        }
        *work = Some(what);
        Ok(FilesPermit(self))
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Location of the base in use.
    pub(crate) fn place(&self) -> BaseLocation {
        self.open().place.clone()
    }

    fn open(&self) -> std::sync::RwLockReadGuard<'_, OpenBase> {
        sync::read(&self.open)
    }

    fn log(&self) -> Arc<Log> {
        Arc::clone(&self.open().log)
    }

    /// The log files of the base in use.
    ///
    /// # Errors
    /// [`Error::Io`] if they are missing.
    pub(crate) fn log_files(&self) -> Result<Directory> {
        let folder = self.place().folder().join(LOG);
        Directory::open(&folder).map_err(|e| Error::io(folder, e))
    }

    /// Creates the log of a base that is not in use yet.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn new_log(&self, place: &BaseLocation, base: &Snapshot) -> Result<Log> {
        let folder = place.folder().join(LOG);
        let files = Directory::create(&folder).map_err(|e| Error::io(&folder, e))?;
        let (epoch, after) = (base.base().epoch(), base.number());
        let none = &mut |_: u64, _: &[u8]| Ok(());
        Ok(Log::open(Arc::new(files), epoch, after, self.options, none)?.0)
    }

    /// Switches to another base and its log, which must both be durable. No records may be passed to the log during the
    /// call.
    ///
    /// # Errors
    /// [`SwitchError::Not`] if the old base stays. [`SwitchError::Uncertain`] if a power loss could leave either base
    /// current: then updates are no longer accepted, and the files of both bases stay.
    pub(crate) fn switch(&self, place: BaseLocation, log: Log) -> Result<(), SwitchError> {
        let mut open = sync::write(&self.open);
        if let Some(e) = place.make_current().map_err(SwitchError::Not)? {
            let why = "the store has a new base, but it might not survive a power failure; updates are \
                refused until the store is reopened";
            open.refused = Some(format!("{why} ({e})"));
            return Err(SwitchError::Uncertain(e));
        }
        (open.place, open.log) = (place, Arc::new(log));
        Ok(())
    }
}

/// Reason why the switch to another base failed.
pub(crate) enum SwitchError {
    /// The old base stays in use.
    Not(Error),
    /// After a power loss, either base may be the current one.
    Uncertain(Error),
}

struct LogJournal(Arc<WritableStore>);

impl Journal for LogJournal {
    fn append(&self, number: u64, mut record: Vec<u8>) -> Result<Box<dyn Ticket>> {
        self.check_alone()?;
        // Called for one record at a time. Commit times never decrease.
        let disk = &*self.0;
        let now = micros(SystemTime::now()).max(disk.last.load(Ordering::Relaxed));
        disk.last.store(now, Ordering::Relaxed);
        stamp(&mut record, now);
        Ok(Box::new(disk.log().append(number, record)?))
    }

    fn reset(&self, number: u64) -> Result<()> {
        match number.checked_add(1) {
            Some(next) => self.0.log().reset(next),
            None => Err(Error::limit(
                Resource::Numbers,
                "snapshot numbers are used up",
            )),
        }
    }

    fn begin_file(&self) {
        self.0.log().begin_file();
    }

    fn sync(&self) -> Result<()> {
        self.0.log().sync()
    }

    fn forget(&self, upto: u64) -> Result<()> {
        self.0.log().truncate(upto)
    }

    fn check_alone(&self) -> Result<()> {
        if let Some(why) = &self.0.open().refused {
            return Err(Error::ReadOnly(why.clone()));
        }
        if self.0.lock.holds() {
            return Ok(());
        }
        Err(Error::in_use(
            self.0.dir(),
            "the lock of the store directory was removed, so another process may be writing to it; nothing was changed: stop both processes, then start one",
        ))
    }

    fn probe(&self) -> Result<()> {
        self.check_alone()?;
        self.0.log().probe()
    }

    fn status(&self) -> Option<jindou_log::Status> {
        Some(self.0.log().status())
    }
}

/// Converts to microseconds since 1970 (UTC).
pub(crate) fn micros(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

impl Ticket for jindou_log::Ticket {
    fn wait(self: Box<Self>) -> Result<()> {
        jindou_log::Ticket::wait(&self)
    }
}

/// Adds any damage of a store directory's log to the report on the store's other files.
///
/// # Errors
/// [`Error::Io`] if a file cannot be read.
pub(crate) fn check_log(dir: &Path, report: &mut CheckReport) -> Result<()> {
    let found = match found_in_log(dir)? {
        FoundStore::None => return Ok(()),
        FoundStore::LogMissing(what) => {
            report.damages.push(Damage::new(LOG, what));
            return Ok(());
        }
        FoundStore::Read(found) => found,
    };
    report.files += found.files;
    report.bytes += found.bytes;
    report.damages.extend(
        found
            .damages
            .into_iter()
            .map(|d| (d.is_of_whole_file() || d.file == jindou_log::END, d))
            .map(|(whole, d)| {
                let file = match &*d.file {
                    jindou_log::END => d.file,
                    file => format!("{LOG}/{file}"),
                };
                let what = match whole {
                    true => d.what,
                    false => format!("from byte {} on: {}", d.offset, d.what),
                };
                Damage::new(file, what)
            }),
    );
    Ok(())
}

/// Number of transactions after snapshot `after` in the log of a store directory, and the size of the log files in
/// bytes.
///
/// # Errors
/// [`Error::Io`] if a file cannot be read.
pub(crate) fn log_size(dir: &Path, epoch: u64, after: u64) -> Result<[u64; 2]> {
    let FoundStore::Read(found) = found_in_log(dir)? else {
        return Ok([0; 2]);
    };
    let of_epoch = found.epochs.iter().filter(|e| e.0 == epoch);
    let count = of_epoch.filter_map(|e| e.1.as_ref()).map(|numbers| {
        let first = (*numbers.start()).max(after.saturating_add(1));
        numbers.end().saturating_add(1).saturating_sub(first)
    });
    Ok([count.sum(), found.bytes])
}

enum FoundStore {
    /// No log exists, and none is needed.
    None,
    /// The whole log is missing although the store needs it; contains a description.
    LogMissing(String),
    Read(jindou_log::LogReport),
}

/// Reads the log of a store directory, repeating that if another process changes the files meanwhile.
fn found_in_log(dir: &Path) -> Result<FoundStore> {
    let mut tries = 0;
    loop {
        tries += 1;
        let place = match BaseLocation::find(dir) {
            Ok(place) => place,
            // This damage is already in the report on the other files.
            Err(Error::Damaged { .. }) => return Ok(FoundStore::None),
            Err(e) => return Err(e),
        };
        let manifest = Manifest::read(&place.folder())?;
        let found = found_at(&place.folder().join(LOG), &manifest);
        // True if another process has merged or reclustered meanwhile, which removes files of the state that was read.
        let moved = || {
            Ok::<_, Error>(
                BaseLocation::find(dir)? != place || Manifest::read(&place.folder())? != manifest,
            )
        };
        match found {
            Ok(FoundStore::Read(ref report)) if report.is_sound() => return found,
            found if tries == TRIES || !moved()? => return found,
            _ => {}
        }
    }
}

fn found_at(folder: &Path, manifest: &ManifestState) -> Result<FoundStore> {
    let cluster = folder.parent().map(Cluster::read);
    let base = match (manifest, cluster) {
        (ManifestState::Store(m), _) => Some((m.epoch, m.holds())),
        (_, Some(Ok(Some(cluster)))) => Some((cluster.epoch, cluster.merged)),
        _ => None,
    };
    let files = match Directory::open(folder) {
        Ok(files) => files,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Ok(match base {
                Some((epoch, _)) if jindou_log::was_begun(folder, epoch)? => {
                    FoundStore::LogMissing(gone())
                }
                _ => FoundStore::None,
            });
        }
        Err(e) => return Err(Error::io(folder, e)),
    };
    match base {
        Some((epoch, after)) => jindou_log::check_for(&files, epoch, after),
        None => jindou_log::check(&files),
    }
    .map(FoundStore::Read)
}

/// The message for a missing log folder.
fn gone() -> String {
    format!(
        "the store's log folder is missing, along with acknowledged updates: restore the store from a \
            backup, or put the folder back as it was. To continue without those updates, remove {} next \
            to it",
        jindou_log::END
    )
}

/// Opens the log in a folder; `None` if no log was created there yet.
///
/// # Errors
/// [`Error::Damaged`] if there was a log; [`Error::Io`].
pub(crate) fn log_in(folder: &Path, epoch: u64) -> Result<Option<Directory>> {
    match Directory::open(folder) {
        Ok(files) => Ok(Some(files)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            if jindou_log::was_begun(folder, epoch)? {
                return Err(Error::damaged(folder, gone()));
            }
            Ok(None)
        }
        Err(e) => Err(Error::io(folder, e)),
    }
}

/// Locks a store directory that has a log, its own or a shared one, against changes by other processes. `None` if the
/// directory is not such a store.
///
/// # Errors
/// [`Error::InUse`] if another process may be changing the store.
pub(crate) fn lock_store(dir: &Path) -> Result<Option<StoreLock>> {
    if dir.join(LOG).is_dir() || dir.join(CURRENT).exists() || dir.join(REPLICA).is_dir() {
        StoreLock::acquire(dir).map(Some)
    } else {
        Ok(None)
    }
}

pub(crate) struct OpenedStore {
    pub writer: Writer,
    /// Findings of the recovery of the store's log, if it has one.
    pub recovery: Option<Recovery>,
    /// The store's directory, if it has one.
    pub dir: Option<PathBuf>,
    /// The directory, open for updates; `None` if the store is read-only.
    pub disk: Option<Arc<WritableStore>>,
    /// Set if the store is read-only.
    pub reader: Option<ReadOnlyStore>,
    /// State of the verification of the store's files.
    pub trust: VerificationHandle,
    /// The shards in this process, if the store is sharded.
    pub shards: Option<ShardHost>,
    /// Evaluates parts of queries at this process's shards, if `shards` does not do that.
    pub hub: Option<Hub>,
}

impl OpenedStore {
    /// A store without shards that has only a writer.
    pub fn new(writer: Writer, trust: VerificationHandle) -> Self {
        Self {
            writer,
            recovery: None,
            dir: None,
            disk: None,
            reader: None,
            trust,
            shards: None,
            hub: None,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ReadOnlyStore {
    pub dir: PathBuf,
    /// Commit time of the last replayed record.
    pub last: Option<u64>,
    pub verify: Verify,
    pub indexes: Indexes,
}

/// Verifies a base as requested: now, in the background, or not at all.
pub(crate) fn start_verification(
    verify: Verify,
    folder: &Path,
    base: &Arc<Base>,
) -> Result<VerificationHandle> {
    Ok(VerificationHandle(match verify {
        Verify::Off => Arc::default(),
        Verify::Background => Trust::begin(folder.to_owned(), Arc::clone(base)),
        Verify::Eager => Trust::of_verified(compare(folder, base, None, &|| false)?),
    }))
}

/// Opens a store directory and replays its log.
///
/// # Errors
/// Those of [`current`]; [`Error::Damaged`] if the log is damaged; [`Error::InUse`] for [`Access::Write`] if another
/// process has the store open; [`Error::Io`].
pub(crate) fn open(dir: &Path, options: &OpenOptions) -> Result<OpenedStore> {
    // Fail before anything is written if the folder is not a store.
    current(dir)?;
    if options.access != Access::Read && super::note::follows_log(dir) {
        let why = "the store follows a shared log, so only a server of that log changes it: send the change to one (`jindou update --endpoint URL`), or open the store with the log (`jindou serve --log`)";
        return match options.access {
            Access::Write => Err(Error::ReadOnly(why.into())),
            _ => read(dir, why.into(), options),
        };
    }
    let lock = match options.access {
        Access::Read => Err("the database was opened read-only".to_owned()),
        Access::Any => StoreLock::acquire(dir).map_err(|e| e.to_string()),
        Access::Write => Ok(StoreLock::acquire(dir)?),
    };
    match lock {
        // The lock is held, so no other process changes the files from here on.
        Ok(lock) => write(dir, lock, options),
        Err(why) => read(dir, why, options),
    }
}

fn write(dir: &Path, lock: StoreLock, options: &OpenOptions) -> Result<OpenedStore> {
    let (base, place) = open_at(dir, &options.indexes)?;
    if place.number() > 0
        && let Err(e) = place.confirm()
    {
        return match options.access {
            Access::Write => Err(e),
            _ => read(dir, e.to_string(), options),
        };
    }
    // Removes older bases, and leftovers of a merge that did not complete. Files that cannot be removed now are removed
    // at the next opening.
    let _ = place.remove_others();
    let _ = remove_leftovers(&place.folder());
    let trust = start_verification(options.verify, &place.folder(), &base)?;
    with_log(dir, lock, place, Snapshot::of_base(base), trust, options)
}

/// Opens and replays the log of a store whose bases are already open.
///
/// # Errors
/// As [`open`].
pub(super) fn with_log(
    dir: &Path,
    lock: StoreLock,
    place: BaseLocation,
    mut head: Snapshot,
    trust: VerificationHandle,
    options: &OpenOptions,
) -> Result<OpenedStore> {
    let folder = place.folder().join(LOG);
    let (epoch, after) = (head.base().epoch(), head.number());
    log_in(&folder, epoch)?;
    let files: Arc<dyn Files> = match Directory::create(&folder) {
        Ok(files) => Arc::new(files),
        // The log folder cannot be created, for example because the disk is full. Then the log is empty, and the store
        // is opened read-only.
        Err(e) if options.access == Access::Any && !folder.exists() => {
            let why = format!("{}: {e}", folder.display());
            return Ok(OpenedStore::new(Writer::new(head, Err(why)), trust));
        }
        Err(e) => return Err(Error::io(&folder, e)),
    };
    let log_options = LogOptions {
        durability: options.durability,
        ..LogOptions::default()
    };
    let mut replay = |_: u64, record: &[u8]| -> Result<()> {
        head = head.replay(record)?;
        Ok(())
    };
    let (log, recovery) = Log::open(files, epoch, after, log_options, &mut replay)?;
    // Removes records that are already merged: an earlier process ended between merging and removing them.
    if after > 0 {
        let _ = log.truncate(after);
    }
    let disk = Arc::new(WritableStore {
        dir: dir.to_owned(),
        lock,
        options: log_options,
        open: RwLock::new(OpenBase {
            place,
            log: Arc::new(log),
            refused: None,
        }),
        work: Mutex::new(None),
        last: AtomicU64::new(0),
    });
    let journal = Box::new(LogJournal(Arc::clone(&disk)));
    Ok(OpenedStore {
        recovery: Some(recovery),
        disk: Some(disk),
        ..OpenedStore::new(Writer::new(head, Ok(journal)), trust)
    })
}

/// Opens a store read-only in its present state. `why` is the reason for being read-only.
fn read(dir: &Path, why: String, options: &OpenOptions) -> Result<OpenedStore> {
    let whole = read_whole(dir, options.verify, &options.indexes, None)?;
    let reader = ReadOnlyStore {
        dir: dir.to_owned(),
        last: whole.last,
        verify: options.verify,
        indexes: options.indexes.clone(),
    };
    Ok(whole.into_store(why, Some(reader)))
}

/// A store as it was read from its files.
pub(crate) struct StoreContents {
    pub head: Snapshot,
    recovery: Option<Recovery>,
    /// Commit time of the last record in the log.
    pub last: Option<u64>,
    trust: VerificationHandle,
}

/// Reads the present state of a store that another process may be changing. `before` is the base that this process used
/// so far; files shared with it are not verified again.
pub(crate) fn read_whole(
    dir: &Path,
    verify: Verify,
    indexes: &Indexes,
    before: Option<&Base>,
) -> Result<StoreContents> {
    let mut tries = 0;
    let mut failed = (0, String::new());
    loop {
        let seen = current(dir)?;
        let whole = read_once(dir, verify, indexes, before);
        tries += 1;
        // Another process may have replaced the base and removed the old one's files. Or it may have merged, which
        // keeps the base's name but removes log files, so that a file listed before is missing. In both cases try
        // again.
        let ended = match &whole {
            Ok(_) => matches!(current(dir), Ok(now) if now == seen),
            Err(e) => {
                let text = e.to_string();
                failed = (if text == failed.1 { failed.0 + 1 } else { 1 }, text);
                failed.0 == SAME
            }
        };
        if tries == TRIES || ended {
            return whole;
        }
    }
}

fn read_once(
    dir: &Path,
    verify: Verify,
    indexes: &Indexes,
    before: Option<&Base>,
) -> Result<StoreContents> {
    let (base, place) = open_after(dir, indexes, before)?;
    let trust = match (verify, before) {
        (Verify::Eager, Some(before)) => {
            let folder = place.folder();
            let known = Some(before.manifest());
            VerificationHandle(Trust::of_verified(compare(&folder, &base, known, &|| {
                false
            })?))
        }
        _ => start_verification(verify, &place.folder(), &base)?,
    };
    let mut whole = StoreContents::of_base(Snapshot::of_base(base), trust);
    whole.read_log(&place.folder().join(LOG))?;
    Ok(whole)
}

impl StoreContents {
    /// The contents of a base, or of the bases of all shards, before the log is replayed.
    pub(super) fn of_base(head: Snapshot, trust: VerificationHandle) -> Self {
        Self {
            head,
            recovery: None,
            last: None,
            trust,
        }
    }

    /// Replays the log in a folder, if there is one.
    pub(super) fn read_log(&mut self, folder: &Path) -> Result<()> {
        let (epoch, after) = (self.head.base().epoch(), self.head.number());
        let Some(files) = log_in(folder, epoch)? else {
            return Ok(());
        };
        let recovery = jindou_log::replay(&files, epoch, after, &mut |_, record| {
            self.head = self.head.replay(record)?;
            self.last = committed_at(record);
            Ok(())
        })?;
        self.recovery = Some(recovery);
        Ok(())
    }

    /// Converts the contents to a store that is read-only for the reason `why`.
    pub(super) fn into_store(self, why: String, reader: Option<ReadOnlyStore>) -> OpenedStore {
        OpenedStore {
            recovery: self.recovery,
            reader,
            ..OpenedStore::new(Writer::new(self.head, Err(why)), self.trust)
        }
    }
}
