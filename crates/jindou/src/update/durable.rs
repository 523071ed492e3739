//! An open store directory: its base, its log as the journal of its database, and the lock that keeps other processes
//! out.

use super::journal::{Journal, Ticket};
use super::shards::ShardHost;
use super::trust::{Held, Trust, Verify, compare};
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
/// Failures in a row for the same reason after which the reason is no longer attributed to changes by another process.
const SAME: usize = 3;

/// Intended use of a database that is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// The database can be changed if no other process is changing it and its files can be written. Otherwise it can
    /// only be read, in its state at the time of opening.
    #[default]
    Any,
    /// The database must be open for changes, or opening fails.
    Write,
    /// The database is only read, in its state at the time of opening; its directory is not touched.
    Read,
}

/// Options for opening a database.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Intended use of the database.
    pub access: Access,
    /// The point at which an update counts as done.
    pub durability: Durability,
    /// The time at which files are verified.
    pub verify: Verify,
    /// Threads, memory and devices, which several databases may share; `None` creates them for this database, with this
    /// machine's defaults.
    pub runtime: Option<Runtime>,
    /// Indexes to use, and to build when the store is reclustered. An index that the store was not loaded with is not
    /// used until then; answers are the same.
    pub indexes: Indexes,
    /// True to create an empty store if nothing exists there yet. Ignored with [`Access::Read`].
    pub create: bool,
    /// Bytes of changes since the last merge at which a merge is due ([`Database::merge_in_background`]); at twice as many,
    /// updates wait for it, and end with [`Error::Busy`] once their time is over. `None` for no limit.
    ///
    /// [`Database::merge_in_background`]: crate::Database::merge_in_background
    pub changes_memory: Option<u64>,
    /// The log of a store that several servers keep. The directory is then this server's copy, which is filled where it is
    /// empty; `access`, `durability` and `create` are ignored.
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

    /// True if an empty store is to be created when nothing exists yet.
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
    /// Name of the current work on the files as a whole.
    work: Mutex<Option<&'static str>>,
    /// Time of the last record.
    last: AtomicU64,
}

/// The base in use, and its log.
struct OpenBase {
    place: BaseLocation,
    log: Arc<Log>,
    /// Reason why updates are no longer accepted.
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
    /// Begins exclusive work on the files. Until it ends, other such work is rejected, and the whole log is kept.
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

    /// The store directory.
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

    /// Switches to another base and log, both of which are durable. No records may be passed to the log meanwhile.
    ///
    /// # Errors
    /// [`Error::Io`] if that is not possible, in which case nothing has changed, or if it is uncertain which base would
    /// be found after a power loss; then updates are no longer accepted, and both bases stay.
    pub(crate) fn switch(&self, place: BaseLocation, log: Log) -> Result<(), Switching> {
        let mut open = sync::write(&self.open);
        if let Some(e) = place.make_current().map_err(Switching::Not)? {
            let why = "the store has a new base, but it might not survive a power failure; updates are \
                refused until the store is reopened";
            open.refused = Some(format!("{why} ({e})"));
            return Err(Switching::Uncertain(e));
        }
        (open.place, open.log) = (place, Arc::new(log));
        Ok(())
    }
}

/// Reason why a base was not replaced by another.
pub(crate) enum Switching {
    /// The old base stays.
    Not(Error),
    /// Either base may be found later.
    Uncertain(Error),
}

struct LogJournal(Arc<WritableStore>);

impl Journal for LogJournal {
    fn append(&self, number: u64, mut record: Vec<u8>) -> Result<Box<dyn Ticket>> {
        self.check_alone()?;
        // Records are handed over one at a time, and times never go back.
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

/// Microseconds since 1970, UTC.
pub(crate) fn micros(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

impl Ticket for jindou_log::Ticket {
    fn wait(self: Box<Self>) -> Result<()> {
        jindou_log::Ticket::wait(&self)
    }
}

/// Adds damage in the log of a store directory, if it has one, to the known damage of its other files.
///
/// # Errors
/// [`Error::Io`] if a file cannot be read.
pub(crate) fn check_log(dir: &Path, report: &mut CheckReport) -> Result<()> {
    let found = match found_in_log(dir)? {
        FoundStore::None => return Ok(()),
        FoundStore::Gone(what) => {
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

/// Number of transactions in the log of a store directory after number `after`, and bytes of its files.
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
    /// The whole log is missing; a description.
    Gone(String),
    Read(jindou_log::LogReport),
}

/// Reads the log of a store directory.
fn found_in_log(dir: &Path) -> Result<FoundStore> {
    let mut tries = 0;
    loop {
        tries += 1;
        let place = match BaseLocation::find(dir) {
            Ok(place) => place,
            // Reported already.
            Err(Error::Damaged { .. }) => return Ok(FoundStore::None),
            Err(e) => return Err(e),
        };
        let manifest = Manifest::read(&place.folder())?;
        let found = found_at(&place.folder().join(LOG), &manifest);
        // Another process may merge or recluster meanwhile, and remove files that were needed before.
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
                    FoundStore::Gone(gone())
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

/// The message that a log's whole folder is missing.
fn gone() -> String {
    format!(
        "the store's log folder is missing, along with acknowledged updates: restore the store from a \
            backup, or put the folder back as it was. To continue without those updates, remove {} next \
            to it",
        jindou_log::END
    )
}

/// The log in a folder; `None` if there is none yet.
///
/// # Errors
/// [`Error::Damaged`] if there was one, [`Error::Io`].
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

/// Locks a store directory with a log, its own or a shared one, against changes by other processes. `None` if it is not
/// a store.
///
/// # Errors
/// [`Error::InUse`] when another process may be changing it.
pub(crate) fn alone(dir: &Path) -> Result<Option<StoreLock>> {
    if dir.join(LOG).is_dir() || dir.join(CURRENT).exists() || dir.join(REPLICA).is_dir() {
        StoreLock::acquire(dir).map(Some)
    } else {
        Ok(None)
    }
}

/// An opened store directory.
pub(crate) struct OpenedStore {
    pub writer: Writer,
    /// The findings in its log, if it has one.
    pub recovery: Option<Recovery>,
    /// `None` if it is only read.
    pub disk: Option<Arc<WritableStore>>,
    /// Set for a store that is only read.
    pub reader: Option<ReadOnlyStore>,
    /// The state of the verification of its files.
    pub trust: Held,
    /// The shards of a sharded store in this process.
    pub shards: Option<ShardHost>,
    /// Runs parts of queries at shards, if that is not the task of `shards`.
    pub hub: Option<Hub>,
}

/// A store directory that is only read.
#[derive(Clone, Debug)]
pub(crate) struct ReadOnlyStore {
    pub dir: PathBuf,
    /// Commit time of the last replayed record.
    pub last: Option<u64>,
    pub verify: Verify,
    pub indexes: Indexes,
}

/// Verifies a base as requested: now, later or not at all.
pub(crate) fn trust(verify: Verify, folder: &Path, base: &Arc<Base>) -> Result<Held> {
    Ok(Held(match verify {
        Verify::Off => Arc::default(),
        Verify::Background => Trust::begin(folder.to_owned(), Arc::clone(base)),
        Verify::Eager => Trust::of_verified(compare(folder, base, None, &|| false)?),
    }))
}

/// Opens a store directory and replays its log.
///
/// # Errors
/// As [`current`]; [`Error::Damaged`] when the log is damaged, and for [`Access::Write`] [`Error::InUse`] when another process has the
/// store; [`Error::Io`].
pub(crate) fn open(dir: &Path, options: &OpenOptions) -> Result<OpenedStore> {
    // Nothing must be written to a folder that is not a store.
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
        // Now only this process changes the files.
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
    // Files that cannot be removed now can be removed later: bases before this one, and leftovers of a merge that did
    // not complete.
    let _ = place.remove_others();
    let _ = remove_leftovers(&place.folder());
    let trust = trust(options.verify, &place.folder(), &base)?;
    with_log(dir, lock, place, Snapshot::of_base(base), trust, options)
}

/// Opens the log of a store whose base, or bases, are open, and replays it.
///
/// # Errors
/// As [`open`].
pub(super) fn with_log(
    dir: &Path,
    lock: StoreLock,
    place: BaseLocation,
    mut head: Snapshot,
    trust: Held,
    options: &OpenOptions,
) -> Result<OpenedStore> {
    let folder = place.folder().join(LOG);
    let (epoch, after) = (head.base().epoch(), head.number());
    log_in(&folder, epoch)?;
    let files: Arc<dyn Files> = match Directory::create(&folder) {
        Ok(files) => Arc::new(files),
        // A full disk, for example: there is no log to read, and none can be created.
        Err(e) if options.access == Access::Any && !folder.exists() => {
            let why = format!("{}: {e}", folder.display());
            return Ok(OpenedStore {
                shards: None,
                hub: None,
                writer: Writer::new(head, Err(why)),
                recovery: None,
                disk: None,
                reader: None,
                trust,
            });
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
    // Left by a process that ended between merging and this step.
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
    Ok(OpenedStore {
        shards: None,
        hub: None,
        writer: Writer::new(head, Ok(Box::new(LogJournal(Arc::clone(&disk))))),
        recovery: Some(recovery),
        disk: Some(disk),
        reader: None,
        trust,
    })
}

/// Opens a store in its present state, read-only for this reason.
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

/// A store that was read.
pub(crate) struct StoreContents {
    pub head: Snapshot,
    recovery: Option<Recovery>,
    /// Commit time of the last record in the log.
    pub last: Option<u64>,
    trust: Held,
}

/// Reads a store that another process may be changing, in its present state. `before` is the base that it replaces,
/// whose files were verified.
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
        // Another process may put a new base in place and remove the old one's files. Or it may merge, which leaves the
        // base's name as it is and removes files of its log: a listed file is then missing, and another listing no
        // longer has it.
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
            Held(Trust::of_verified(compare(&folder, &base, known, &|| {
                false
            })?))
        }
        _ => trust(verify, &place.folder(), &base)?,
    };
    let mut whole = StoreContents::of_base(Snapshot::of_base(base), trust);
    whole.read_log(&place.folder().join(LOG))?;
    Ok(whole)
}

impl StoreContents {
    /// A base, or the bases of all shards, without the log.
    pub(super) fn of_base(head: Snapshot, trust: Held) -> Self {
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

    /// The store, read-only for this reason.
    pub(super) fn into_store(self, why: String, reader: Option<ReadOnlyStore>) -> OpenedStore {
        OpenedStore {
            shards: None,
            hub: None,
            writer: Writer::new(self.head, Err(why)),
            recovery: self.recovery,
            disk: None,
            reader,
            trust: self.trust,
        }
    }
}
