//! The local directory of an unsharded store that follows a shared log: an ordinary store directory without a log of
//! its own, and notes that say which groups of the shared log the store contains.

use super::application::LogFolder;
use super::notes::{Notes, sync};
use crate::update::{VerificationHandle, Verify, durable};
use jindou_dictionary::index::Indexes;
use jindou_log::{Directory, StoreLock};
use jindou_model::{Error, Progress, Result, private, sync};
use jindou_replicas::Base as LogBase;
use jindou_replicas::{BaseFiles, Incoming, Local};
use jindou_store::directory::{
    BaseLocation, LOG, MANIFEST, Manifest, ManifestState, REPLICA, open_after, open_at,
    remove_leftovers,
};
use jindou_store::shard::{CLUSTER, Cluster, shard_folder};
use jindou_store::{Base, LoadOptions, MergeOptions, Merging, Snapshot};
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Number of recent merges that are remembered, so that snapshots over the bases before them can be moved to the newest
/// base.
const MERGES: usize = 4;

/// A store directory that follows, or will follow, a shared log.
pub(super) struct Folder {
    dir: PathBuf,
    notes: Notes,
    indexes: Indexes,
    load: LoadOptions,
    merge: MergeOptions,
    _lock: StoreLock,
    state: Mutex<State>,
}

struct State {
    /// The base in use; `None` while the directory contains no store.
    open: Option<(BaseLocation, Arc<Base>)>,
    /// Id of the shared log, and the number of its newest group in the base.
    log: Option<(u64, u64)>,
    merges: VecDeque<Merging>,
}

impl Folder {
    /// Locks the directory, which is created if it is missing.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process has locked it; [`Error::Io`].
    pub(super) fn open_locked(
        dir: &Path,
        indexes: &Indexes,
        load: LoadOptions,
        merge: MergeOptions,
    ) -> Result<Self> {
        if !dir.exists() {
            private::create_folder(dir).map_err(|e| Error::io(dir, e))?;
        }
        Ok(Self {
            _lock: StoreLock::acquire(dir)?,
            dir: dir.to_owned(),
            notes: Notes::of(dir),
            indexes: indexes.clone(),
            load,
            merge,
            state: Mutex::new(State {
                open: None,
                log: None,
                merges: VecDeque::new(),
            }),
        })
    }

    /// Makes the base in the complete folder `place` the store's current one.
    fn use_base(
        &self,
        place: BaseLocation,
        log: u64,
        base: &LogBase,
        before: Option<&Base>,
    ) -> Result<Snapshot> {
        // Held to the end, because a merge that ends meanwhile would remove the new note.
        let mut state = sync::lock(&self.state);
        let manifest = Manifest::of_store(&place.folder())?;
        self.notes
            .write(place.number(), manifest.holds(), (log, base))?;
        let uncertain = place.make_current()?;
        if let Some(e) = uncertain {
            return Err(e);
        }
        let (opened, place) = open_after(&self.dir, &self.indexes, before)?;
        let _ = place.remove_others();
        self.notes.remove_others(place.number(), manifest.holds());
        state.log = Some((log, base.number));
        state.open = Some((place, Arc::clone(&opened)));
        state.merges.clear();
        Ok(Snapshot::of_base(opened).at_group(base.number))
    }
}

impl LogFolder for Folder {
    fn trust(&self, verify: Verify, snapshot: &Snapshot) -> Result<VerificationHandle> {
        let state = sync::lock(&self.state);
        // A base that was downloaded into an empty folder was verified during the download.
        match &state.open {
            Some((place, _)) => {
                durable::start_verification(verify, &place.folder(), snapshot.base())
            }
            None => Ok(VerificationHandle(Arc::default())),
        }
    }

    /// Opens the store in the directory.
    ///
    /// # Errors
    /// Those of opening a store, and [`Error::Unsupported`] for one with shards.
    fn open(&self) -> Result<Local<Snapshot>> {
        let place = BaseLocation::find(&self.dir)?;
        if Manifest::read(&place.folder())? == ManifestState::None {
            let entries = std::fs::read_dir(&self.dir).map_err(|e| Error::io(&self.dir, e))?;
            for entry in entries {
                let name = entry.map_err(|e| Error::io(&self.dir, e))?.file_name();
                let known = name.to_str().is_some_and(|n| {
                    n == "lock"
                        || n == REPLICA
                        || n.starts_with("base-")
                        || n.starts_with("current.jd")
                });
                if !known {
                    // Fails with an error that says what the directory contains instead of a store.
                    Manifest::of_store(&self.dir)?;
                }
            }
            return Ok(Local::Empty);
        }
        let (base, place) = open_at(&self.dir, &self.indexes)?;
        place.confirm()?;
        let _ = place.remove_others();
        let _ = remove_leftovers(&place.folder());
        let snapshot = Snapshot::of_base(Arc::clone(&base));
        let note = self.notes.read(place.number(), snapshot.number())?;
        let mut state = sync::lock(&self.state);
        state.log = note.as_ref().map(|(log, base)| (*log, base.number));
        state.open = Some((place, base));
        drop(state);
        Ok(match note {
            Some((log, base)) => Local::Following {
                log,
                snapshot: snapshot.at_group(base.number),
                base,
            },
            None => Local::Other {
                loaded: (snapshot.number() == 0).then(|| snapshot.base().epoch()),
                begins: self.notes.id_of_new_log()?,
                snapshot,
            },
        })
    }

    /// Creates an empty store in an empty directory. With `log`, the store is written to disk and follows that log;
    /// without, it is in memory only.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn empty(&self, log: Option<u64>) -> Result<Snapshot> {
        let Some(log) = log else {
            return Ok(Snapshot::of_base(Base::empty(
                super::random() as u64,
                false,
            )?));
        };
        let place = BaseLocation::find(&self.dir)?.next();
        let folder = place.folder();
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|e| Error::io(&folder, e))?;
        }
        crate::create::unless_there(&folder, &self.load)?;
        self.use_base(place, log, &LogBase::default(), None)
    }

    /// Notes that the store, which followed no log so far, follows this log and contains none of its groups yet.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn follow(&self, log: u64) -> Result<()> {
        let mut state = sync::lock(&self.state);
        let Some((place, base)) = &state.open else {
            return Err(Error::Internal("no store to follow a log".into()));
        };
        let nothing = LogBase::default();
        self.notes
            .write(place.number(), base.number(), (log, &nothing))?;
        state.log = Some((log, 0));
        Ok(())
    }

    /// Merges a snapshot into the files, together with the request keys that `base` remembers.
    ///
    /// # Errors
    /// Those of a merge; then the files are unchanged.
    fn save(&self, base: &LogBase, snapshot: &Snapshot) -> Result<()> {
        let mut state = sync::lock(&self.state);
        let snapshot = &state.rebased(snapshot)?;
        let (Some((place, _)), Some((log, _))) = (&state.open, state.log) else {
            return Err(Error::Internal("no store to save into".into()));
        };
        let (place, folder) = (place.clone(), place.folder());
        self.notes
            .write(place.number(), snapshot.number(), (log, base))?;
        if snapshot.number() > snapshot.base().number() {
            let files = Directory::open(&folder).map_err(|e| Error::io(&folder, e))?;
            let progress = Progress::default();
            let merging = Merging::write(&folder, &files, snapshot, &self.merge, &progress)?;
            merging.remove_replaced(&files);
            state.open = Some((place.clone(), Arc::clone(merging.base())));
            state.merges.push_back(merging);
            if state.merges.len() > MERGES {
                state.merges.pop_front();
            }
        }
        state.log = Some((log, base.number));
        self.notes.remove_others(place.number(), snapshot.number());
        Ok(())
    }

    /// The same snapshot, rebased onto the files of the newest merge.
    ///
    /// # Errors
    /// [`Error::Internal`] if the snapshot belongs to another store.
    fn rebase(&self, snapshot: &Snapshot) -> Result<Snapshot> {
        sync::lock(&self.state).rebased(snapshot)
    }

    fn release_expired(&self) {
        // While a merge is being written, this can wait.
        if let Ok(mut state) = self.state.try_lock() {
            state.forget_merges();
        }
    }

    /// The files of the base; `None` if the base's last group is not `number`.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn files(&self, number: u64) -> Result<Option<Arc<dyn BaseFiles>>> {
        let state = sync::lock(&self.state);
        let (Some((place, _)), Some((_, now))) = (&state.open, state.log) else {
            return Ok(None);
        };
        if now != number {
            return Ok(None);
        }
        let folder = place.folder();
        let names = Manifest::of_store(&folder)?.names();
        Ok(Some(Arc::new(OpenFiles::open(&folder, names, 0)?)))
    }

    /// Starts to receive the store of a log into a new folder.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn receive(self: Arc<Self>, log: u64) -> Result<Box<dyn Incoming<Snapshot>>> {
        let place = BaseLocation::find(&self.dir)?.next();
        let folder = place.folder();
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|e| Error::io(&folder, e))?;
        }
        private::create_folder(&folder).map_err(|e| Error::io(&folder, e))?;
        Ok(Box::new(IncomingStore {
            into: self,
            log,
            place,
            files: IncomingFiles::into(folder),
            done: false,
        }))
    }
}

impl State {
    /// Forgets the oldest merges, as long as no snapshot is left over the base before them: the merge's own is the only
    /// one. A merge holds all changes and new terms of its time.
    fn forget_merges(&mut self) {
        let is_unused = |merging: &Merging| Arc::strong_count(merging.before()) == 1;
        while self.merges.front().is_some_and(is_unused) {
            self.merges.pop_front();
        }
    }

    fn rebased(&self, snapshot: &Snapshot) -> Result<Snapshot> {
        let mut snapshot = snapshot.clone();
        for merging in &self.merges {
            if Arc::ptr_eq(merging.before(), snapshot.base()) {
                snapshot = merging.rebase(&snapshot)?;
            }
        }
        match &self.open {
            Some((_, base)) if Arc::ptr_eq(base, snapshot.base()) => Ok(snapshot),
            _ => Err(Error::Internal("the snapshot is of another store".into())),
        }
    }
}

/// Open files, which stay readable when a merge unlinks them.
pub(super) struct OpenFiles {
    files: Vec<(String, u64, File)>,
    /// Number of shards whose files their own holders upload; 0 for an unsharded store.
    shards: u32,
}

impl OpenFiles {
    /// Opens the named files of a folder.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn open(
        folder: &Path,
        names: impl IntoIterator<Item = String>,
        shards: u32,
    ) -> Result<Self> {
        let mut files = Vec::new();
        for name in names {
            let path = folder.join(&name);
            let file = private::open(&path).map_err(|e| Error::io(&path, e))?;
            let length = file.metadata().map_err(|e| Error::io(&path, e))?.len();
            files.push((name, length, file));
        }
        Ok(Self { files, shards })
    }
}

impl BaseFiles for OpenFiles {
    fn shards(&self) -> u32 {
        self.shards
    }

    fn files(&self) -> Vec<(String, u64)> {
        let files = self.files.iter();
        files
            .map(|(name, length, _)| (name.clone(), *length))
            .collect()
    }

    fn read(&self, file: &str, at: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        let found = self.files.iter().find(|(name, ..)| name == file);
        let (.., file) = found.ok_or(std::io::ErrorKind::NotFound)?;
        file.read_exact_at(bytes, at)
    }
}

/// Files of a store that are being received one after the other.
pub(super) struct IncomingFiles {
    folder: PathBuf,
    file: Option<(String, File)>,
    names: Vec<String>,
}

impl IncomingFiles {
    /// Starts to receive files into an empty folder.
    pub(super) fn into(folder: PathBuf) -> Self {
        Self {
            folder,
            file: None,
            names: Vec::new(),
        }
    }

    fn end_file(&mut self) -> std::io::Result<()> {
        match self.file.take() {
            Some((_, file)) => file.sync_all(),
            None => Ok(()),
        }
    }

    /// Appends to the named file, like [`Incoming::write`].
    pub(super) fn append(&mut self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        if self.file.as_ref().is_none_or(|(of, _)| of != name) {
            self.end_file()?;
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            let is_name = |n: &str| !n.is_empty() && !n.starts_with('.') && n.chars().all(plain);
            let (shard, file) = name.split_once('/').unwrap_or(("shard-", name));
            if !shard.starts_with("shard-") || !is_name(shard) || !is_name(file) {
                return Err(std::io::Error::other(format!(
                    "{name:?} is not the name of a store's file"
                )));
            }
            let path = self.folder.join(name);
            let parent = path.parent().filter(|parent| !parent.exists());
            parent.map_or(Ok(()), private::create_folder)?;
            let file = private::create_new(path)?;
            self.names.push(name.to_owned());
            self.file = Some((name.to_owned(), file));
        }
        match &mut self.file {
            Some((_, file)) => file.write_all(bytes),
            None => Ok(()),
        }
    }

    /// Syncs the files after all were received.
    ///
    /// # Errors
    /// [`Error::Damaged`] if they are not the files of a store.
    pub(super) fn end(&mut self) -> Result<()> {
        let folder = &self.folder.clone();
        self.end_file().map_err(|e| Error::io(folder, e))?;
        sync(folder)?;
        let mut got = self.names.clone();
        got.sort_unstable();
        let names: BTreeSet<String> = match Cluster::read(folder)? {
            None => Manifest::of_store(folder)?.names(),
            Some(cluster) => {
                let shards = (0..cluster.shards).map(|shard| folder.join(shard_folder(shard)));
                for shard in shards.filter(|shard| shard.exists()) {
                    sync(&shard)?;
                }
                cluster.files_in(folder)?
            }
        };
        match got.iter().eq(&names) {
            true => Ok(()),
            false => Err(Error::damaged(
                folder.join(MANIFEST),
                "the base in the bucket does not have the files that its manifest names",
            )),
        }
    }
}

/// A store that is being received into a new folder of a [`Folder`].
struct IncomingStore {
    into: Arc<Folder>,
    log: u64,
    place: BaseLocation,
    files: IncomingFiles,
    done: bool,
}

impl Incoming<Snapshot> for IncomingStore {
    fn wants(&self, _: u32) -> bool {
        false
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        self.files.append(name, bytes)
    }

    fn finish(mut self: Box<Self>, base: &LogBase) -> std::io::Result<Snapshot> {
        let done = (|| {
            self.files.end()?;
            if self.place.folder().join(CLUSTER).exists() {
                return Err(Error::Usage(
                    "the log's store is sharded: say which shards this server has (--shards or --part)".into(),
                ));
            }
            let folder = self.place.folder();
            // Open the received store once, to find damage before the store becomes the current one.
            open_at(&folder, &self.into.indexes)?;
            let before = sync::lock(&self.into.state).open.clone();
            let before = before.as_ref().map(|(_, base)| &**base);
            self.into
                .use_base(self.place.clone(), self.log, base, before)
        })();
        self.done = done.is_ok();
        done.map_err(std::io::Error::other)
    }
}

impl Drop for IncomingStore {
    fn drop(&mut self) {
        // The folder is already the current one if only a later step failed; then it must stay.
        let current = BaseLocation::find(&self.into.dir);
        if !self.done && current.is_ok_and(|now| now != self.place) {
            let _ = std::fs::remove_dir_all(self.place.folder());
        }
    }
}

pub(super) fn has_own_log(dir: &Path) -> Result<bool> {
    Ok(BaseLocation::find(dir)?.folder().join(LOG).is_dir())
}
