//! The local folder of a store that follows a shared log: any store directory, without a log of its own, and notes that say
//! what of the shared log is in it.
//!
//! ```text
//! replica/B-N.jd  for snapshot N of base B: the log, the newest group in the snapshot, the requests that it knows
//! replica/begins  the log that this store begins if there is none
//! ```
//!
//! A note is written before the manifest names the snapshot, so that whichever manifest a crash leaves has its note.

use crate::update::note::note_path;
use jindou_dictionary::index::Indexes;
use jindou_log::{Directory, StoreLock};
use jindou_model::{Error, Progress, Result, private, sync};
use jindou_replicas::Base as LogBase;
use jindou_replicas::{BaseFiles, Incoming, Local, read_known, write_known};
use jindou_store::directory::{
    BaseLocation, LOG, MANIFEST, Manifest, ManifestState, REPLICA, open_after, open_at,
    remove_leftovers,
};
use jindou_store::{Base, LoadOptions, MergeOptions, Merging, Snapshot};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use xxhash_rust::xxh3::xxh3_64;

/// First bytes of a note: a file that says which group of the log the store contains.
const MAGIC: &[u8; 8] = b"JDREPL1\n";
/// File with the random number of the log that is created from this store if there is none yet.
const BEGINS: &str = "begins";
/// Number of merges whose snapshots may still use the previous base.
const MERGES: usize = 4;

/// A store directory that follows, or will follow, a shared log.
pub(super) struct Folder {
    dir: PathBuf,
    indexes: Indexes,
    load: LoadOptions,
    merge: MergeOptions,
    _lock: StoreLock,
    state: Mutex<State>,
}

struct State {
    /// The base in use; `None` before there is a store.
    open: Option<(BaseLocation, Arc<Base>)>,
    /// The log, and the number of its newest group in the base.
    log: Option<(u64, u64)>,
    merges: VecDeque<Merging>,
}

fn sync(path: &Path) -> Result<()> {
    let synced = File::open(path).and_then(|f| f.sync_all());
    synced.map_err(|e| Error::io(path, e))
}

/// Writes a file of the notes' folder, all or nothing.
fn write_durably(path: &Path, bytes: &[u8]) -> Result<()> {
    let new = path.with_extension("new");
    let written = private::create(&new).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(e) = written.and_then(|()| std::fs::rename(&new, path)) {
        let _ = std::fs::remove_file(&new);
        return Err(Error::io(path, e));
    }
    path.parent().map_or(Ok(()), sync)
}

impl Folder {
    /// Takes the folder, which is created if it is missing.
    ///
    /// # Errors
    /// [`Error::InUse`]; [`Error::Io`].
    pub(super) fn take(
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

    fn notes(&self) -> Result<PathBuf> {
        let notes = self.dir.join(REPLICA);
        if !notes.exists() {
            private::create_folder(&notes).map_err(|e| Error::io(&notes, e))?;
            sync(&self.dir)?;
        }
        Ok(notes)
    }

    /// The folder of the base in use, if there is one.
    pub(super) fn base_folder(&self) -> Option<PathBuf> {
        let state = sync::lock(&self.state);
        state.open.as_ref().map(|(place, _)| place.folder())
    }

    /// Opens the folder's store.
    ///
    /// # Errors
    /// Those of opening a store, and [`Error::Unsupported`] for one with shards.
    pub(super) fn open(&self) -> Result<Local<Snapshot>> {
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
                    // Says what is there instead.
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
        let note = self.read_note(&place, snapshot.number())?;
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
                begins: self.begins()?,
                snapshot,
            },
        })
    }

    /// Id epoch of the log that is created from this store if there is none: a random number, the same at each start.
    fn begins(&self) -> Result<u64> {
        let path = self.notes()?.join(BEGINS);
        if let Ok(text) = private::read(&path)
            && let Some(log) = std::str::from_utf8(&text)
                .ok()
                .and_then(|t| u64::from_str_radix(t.trim(), 16).ok())
        {
            return Ok(log);
        }
        let log = random();
        write_durably(&path, format!("{log:016x}\n").as_bytes())?;
        Ok(log)
    }

    fn read_note(&self, place: &BaseLocation, snapshot: u64) -> Result<Option<(u64, LogBase)>> {
        let path = note_path(&self.dir, place.number(), snapshot);
        let bytes = match private::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io(path, e)),
        };
        let damaged = || {
            Error::damaged(
                &path,
                "damaged: it says what of the shared log is in the store; start with an empty folder, which is then filled",
            )
        };
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(damaged)?;
        let (sum, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        if xxh3_64(rest).to_le_bytes() != *sum {
            return Err(damaged());
        }
        let (log, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        let (number, keys) = rest.split_first_chunk().ok_or_else(damaged)?;
        let base = read_known(u64::from_le_bytes(*number), keys).ok_or_else(damaged)?;
        Ok(Some((u64::from_le_bytes(*log), base)))
    }

    fn write_note(&self, place: u64, snapshot: u64, log: u64, base: &LogBase) -> Result<()> {
        let mut rest = Vec::new();
        rest.extend_from_slice(&log.to_le_bytes());
        rest.extend_from_slice(&base.number.to_le_bytes());
        rest.extend_from_slice(&write_known(base));
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&xxh3_64(&rest).to_le_bytes());
        bytes.append(&mut rest);
        self.notes()?;
        write_durably(&note_path(&self.dir, place, snapshot), &bytes)
    }

    /// Removes the notes of other states, which are not needed.
    fn remove_other_notes(&self, place: u64, snapshot: u64) {
        let kept = note_path(&self.dir, place, snapshot);
        let entries = std::fs::read_dir(self.dir.join(REPLICA));
        for entry in entries.into_iter().flatten().flatten() {
            if entry.path() != kept {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    /// An empty store in an empty folder. With a log it is one on disk that follows it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn empty(&self, log: Option<u64>) -> Result<Snapshot> {
        let Some(log) = log else {
            return Ok(Snapshot::of_base(Base::empty(random(), false)?));
        };
        let place = BaseLocation::find(&self.dir)?.next();
        let folder = place.folder();
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|e| Error::io(&folder, e))?;
        }
        crate::create::unless_there(&folder, &self.load)?;
        self.use_base(place, log, &LogBase::default(), None)
    }

    /// Makes the complete folder of a base the store's.
    fn use_base(
        &self,
        place: BaseLocation,
        log: u64,
        base: &LogBase,
        before: Option<&Base>,
    ) -> Result<Snapshot> {
        // A merge that ends meanwhile must not remove the new note.
        let mut state = sync::lock(&self.state);
        let manifest = Manifest::of_store(&place.folder())?;
        self.write_note(place.number(), manifest.holds(), log, base)?;
        let uncertain = place.make_current()?;
        if let Some(e) = uncertain {
            return Err(e);
        }
        let (opened, place) = open_after(&self.dir, &self.indexes, before)?;
        let _ = place.remove_others();
        self.remove_other_notes(place.number(), manifest.holds());
        state.log = Some((log, base.number));
        state.open = Some((place, Arc::clone(&opened)));
        state.merges.clear();
        Ok(Snapshot::of_base(opened).at_group(base.number))
    }

    /// Notes that the store, which followed no log, is this log's without a group.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn follow(&self, log: u64) -> Result<()> {
        let mut state = sync::lock(&self.state);
        let Some((place, base)) = &state.open else {
            return Err(Error::Internal("no store to follow a log".into()));
        };
        self.write_note(place.number(), base.number(), log, &LogBase::default())?;
        state.log = Some((log, 0));
        Ok(())
    }

    /// Merges a snapshot into the files, with the remembered requests.
    ///
    /// # Errors
    /// Those of a merge; the files are then unchanged.
    pub(super) fn save(&self, base: &LogBase, snapshot: &Snapshot) -> Result<()> {
        let mut state = sync::lock(&self.state);
        let snapshot = &state.over(snapshot)?;
        let (Some((place, _)), Some((log, _))) = (&state.open, state.log) else {
            return Err(Error::Internal("no store to save into".into()));
        };
        let (place, folder) = (place.clone(), place.folder());
        self.write_note(place.number(), snapshot.number(), log, base)?;
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
        self.remove_other_notes(place.number(), snapshot.number());
        Ok(())
    }

    /// A snapshot over the files as they are.
    ///
    /// # Errors
    /// [`Error::Internal`] for a snapshot of another store.
    pub(super) fn over_saved(&self, snapshot: &Snapshot) -> Result<Snapshot> {
        sync::lock(&self.state).over(snapshot)
    }

    /// The base's files, if it is of this number.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn files(&self, number: u64) -> Result<Option<Arc<dyn BaseFiles>>> {
        let state = sync::lock(&self.state);
        let (Some((place, _)), Some((_, now))) = (&state.open, state.log) else {
            return Ok(None);
        };
        if now != number {
            return Ok(None);
        }
        let folder = place.folder();
        let mut files = Vec::new();
        for name in Manifest::of_store(&folder)?.names() {
            let path = folder.join(&name);
            let file = private::open(&path).map_err(|e| Error::io(&path, e))?;
            let length = file.metadata().map_err(|e| Error::io(&path, e))?.len();
            files.push((name, length, file));
        }
        Ok(Some(Arc::new(OpenFiles(files))))
    }

    /// Begins to receive the store of a log.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn receive(self: Arc<Self>, log: u64) -> Result<Box<dyn Incoming<Snapshot>>> {
        let place = BaseLocation::find(&self.dir)?.next();
        let folder = place.folder();
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|e| Error::io(&folder, e))?;
        }
        private::create_folder(&folder).map_err(|e| Error::io(&folder, e))?;
        Ok(Box::new(Receiving {
            into: self,
            log,
            place,
            files: Coming::into(folder),
            done: false,
        }))
    }
}

impl State {
    fn over(&self, snapshot: &Snapshot) -> Result<Snapshot> {
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

fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::time::SystemTime::now())
}

/// Files that stay readable when a merge removes them.
struct OpenFiles(Vec<(String, u64, File)>);

impl BaseFiles for OpenFiles {
    fn files(&self) -> Vec<(String, u64)> {
        let files = self.0.iter();
        files
            .map(|(name, length, _)| (name.clone(), *length))
            .collect()
    }

    fn read(&self, file: &str, at: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        let found = self.0.iter().find(|(name, ..)| name == file);
        let (.., file) = found.ok_or(std::io::ErrorKind::NotFound)?;
        file.read_exact_at(bytes, at)
    }
}

/// Files of a store that are being received, one after the other.
pub(super) struct Coming {
    folder: PathBuf,
    file: Option<(String, File)>,
    names: Vec<String>,
}

impl Coming {
    /// Files for an empty folder.
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

    /// Appends to a file, as [`Incoming::write`].
    pub(super) fn write(&mut self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        if self.file.as_ref().is_none_or(|(of, _)| of != name) {
            self.end_file()?;
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if name.starts_with('.') || !name.chars().all(plain) || name.is_empty() {
                return Err(std::io::Error::other(format!(
                    "{name:?} is not the name of a store's file"
                )));
            }
            let file = private::create_new(self.folder.join(name))?;
            self.names.push(name.to_owned());
            self.file = Some((name.to_owned(), file));
        }
        match &mut self.file {
            Some((_, file)) => file.write_all(bytes),
            None => Ok(()),
        }
    }

    /// Makes the files durable once all were received.
    ///
    /// # Errors
    /// [`Error::Damaged`] if they are not those of a store.
    pub(super) fn end(&mut self) -> Result<()> {
        let folder = &self.folder.clone();
        self.end_file().map_err(|e| Error::io(folder, e))?;
        sync(folder)?;
        let names = Manifest::of_store(folder)?.names();
        let mut got = self.names.clone();
        got.sort_unstable();
        match got.iter().eq(&names) {
            true => Ok(()),
            false => Err(Error::damaged(
                folder.join(MANIFEST),
                "the base in the bucket does not have the files that its manifest names",
            )),
        }
    }
}

/// A store that is being received into the folder.
struct Receiving {
    into: Arc<Folder>,
    log: u64,
    place: BaseLocation,
    files: Coming,
    done: bool,
}

impl Incoming<Snapshot> for Receiving {
    fn write(&mut self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        self.files.write(name, bytes)
    }

    fn finish(mut self: Box<Self>, base: &LogBase) -> std::io::Result<Snapshot> {
        let done = (|| {
            self.files.end()?;
            let folder = self.place.folder();
            // It is read once before anything relies on it.
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

impl Drop for Receiving {
    fn drop(&mut self) {
        // The folder may be in use if only what followed failed.
        let current = BaseLocation::find(&self.into.dir);
        if !self.done && current.is_ok_and(|now| now != self.place) {
            let _ = std::fs::remove_dir_all(self.place.folder());
        }
    }
}

/// True if a store directory has a log of its own.
pub(super) fn has_own_log(dir: &Path) -> Result<bool> {
    Ok(BaseLocation::find(dir)?.folder().join(LOG).is_dir())
}
