//! Merges: writing changes into the segments of a store directory, on request and automatically.
//!
//! ```text
//! transactions free the ids of terms that no quad uses
//! durable snapshot S ─► files of a new generation are written (updates and queries continue)
//!                    ─► the manifest names the new files
//!                    ─► with the right to write held: head and the published snapshot move to the new base
//!                    ─► records up to S are removed from the log, and replaced files are removed
//! ```

use super::background::{Background, Stop};
use super::durable::WritableStore;
use super::shards::ShardHost;
use crate::database::{Database, DatabaseState};
use jindou_log::{Directory, Files};
use jindou_model::sync;
use jindou_model::{CancelToken, Error, Progress, Result, options_struct};
use jindou_store::shard::shard_folder;
use jindou_store::{MergeOptions, MergeReport, Merging, ShardFiles};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Statistics of a database's merges, and whether one is running.
#[derive(Default)]
pub(crate) struct Merges {
    running: AtomicBool,
    done: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
    last_failure: Mutex<Option<String>>,
}

impl Merges {
    /// Runs a merge and counts its outcome. `bytes` returns the bytes that it wrote.
    pub(crate) fn count<T>(
        &self,
        merge: impl FnOnce() -> Result<T>,
        bytes: impl FnOnce(&T) -> u64,
    ) -> Result<T> {
        self.running.store(true, Ordering::Relaxed);
        let result = crate::database::guarded(merge);
        self.running.store(false, Ordering::Relaxed);
        self.ended(result.as_ref().map(bytes));
        result
    }

    /// Counts the outcome of a merge: the bytes written, or the error.
    fn ended(&self, outcome: Result<u64, &Error>) {
        match outcome {
            Ok(bytes) => {
                self.done.fetch_add(1, Ordering::Relaxed);
                self.bytes.fetch_add(bytes, Ordering::Relaxed);
                *self.failure() = None;
            }
            Err(e) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                *self.failure() = Some(e.to_string());
            }
        }
    }

    /// Reason why the last merge failed; `None` if it succeeded, or none has run.
    pub(crate) fn last_failure(&self) -> Option<String> {
        self.failure().clone()
    }

    fn failure(&self) -> MutexGuard<'_, Option<String>> {
        sync::lock(&self.last_failure)
    }
}

/// State of a database's merges, and counts since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergeStatus {
    /// True while a merge runs.
    pub running: bool,
    /// Number of successful merges.
    pub done: u64,
    /// Number of failed merges.
    pub failed: u64,
    /// Bytes that the successful merges wrote.
    pub bytes: u64,
    /// Number of the last snapshot whose changes are in the segments.
    pub merged: u64,
    /// Number of edits since the last merge.
    pub edits: u64,
    /// Memory of the changes since the last merge, in bytes.
    pub changes_bytes: u64,
    /// Limit for that memory ([`OpenOptions::changes_memory`](crate::OpenOptions::changes_memory)).
    pub changes_memory: Option<u64>,
    /// Number of generations of files that merges wrote, in addition to the load's files.
    pub generations: usize,
    /// Reason why the last merge failed; `None` if it succeeded, or none has run.
    pub last_failure: Option<String>,
}

options_struct! {
    /// Conditions for automatic merges.
    #[derive(Clone, Debug)]
    #[non_exhaustive]
    pub struct MergePolicy {
        /// Number of edits at which a merge is due; `None` means a million, or a twentieth of all quads if that is
        /// more. With a shared log, a merge is also due at 50,000 groups, if these are at least a fiftieth of the
        /// number of quads. Merges are also due at [`OpenOptions::changes_memory`](crate::OpenOptions::changes_memory).
        pub edits: Option<u64> = None, with_edits(impl Into<Option<u64>>);
        /// Options of the automatic merges; by default those of [`MergeOptions`] with one thread.
        pub options: MergeOptions = MergeOptions::default().with_threads(1), with_options(MergeOptions);
    }
}

/// Minimum number of edits for an automatic merge: on LUBM-20, this many edits slow queries and take some 40 MB.
const EDITS: u64 = 1_000_000;
/// An automatic merge also requires at least one edit per this many quads.
const SHARE: u64 = 20;
/// Interval at which a background thread checks if a merge is due. Short, since updates may wait for the merge
/// ([`super::ChangesLimit`]).
const POLL: Duration = Duration::from_millis(200);
/// Delay after a failed merge: the first value, doubled after each further failure up to the second.
const AGAIN: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(600)];

/// For tests: wraps the file layer of a folder.
pub(crate) type FileLayer<'a> = dyn Fn(Directory) -> Box<dyn Files> + 'a;

/// The file layers of a store that is merged.
struct StoreFiles {
    root: Box<dyn Files>,
    /// File layers of the shards' folders.
    shards: Vec<Box<dyn Files>>,
}

impl StoreFiles {
    fn open(
        folder: &Path,
        shards: Option<&ShardHost>,
        through: Option<&FileLayer<'_>>,
    ) -> Result<Self> {
        let open = |folder: &Path| -> Result<Box<dyn Files>> {
            let files = Directory::open(folder).map_err(|e| Error::io(folder, e))?;
            Ok(match through {
                Some(layer) => layer(files),
                None => Box::new(files),
            })
        };
        let count = shards.map_or(0, ShardHost::shards);
        Ok(Self {
            root: open(folder)?,
            shards: (0..count)
                .map(|s| open(&folder.join(shard_folder(s))))
                .collect::<Result<_>>()?,
        })
    }

    fn of_shards<'f>(&'f self, dir: &'f Path) -> ShardFiles<'f> {
        ShardFiles {
            dir,
            root: &*self.root,
            shards: self.shards.iter().map(|files| Some(&**files)).collect(),
        }
    }
}

impl DatabaseState {
    pub(super) fn merge_place(&self) -> Result<&WritableStore> {
        self.check_writable()?;
        self.disk.as_deref().ok_or_else(|| {
            Error::Usage("an in-memory database has no files to merge changes into".into())
        })
    }
}

impl Database {
    /// Writes the changes of updates into the store's segments. Queries and updates continue. Afterwards the store
    /// opens fast, and memory is released. Ids do not change. Blocks until the merge is complete. If there is nothing
    /// to merge, that is not an error.
    ///
    /// # Errors
    /// [`Error::Conflict`] while another merge, a reclustering or a backup runs; [`Error::Usage`] for a database in
    /// memory; [`Error::ReadOnly`] for one that cannot be written; [`Error::Cancelled`]; [`Error::Limit`] for memory or
    /// disk space; [`Error::Io`]. The store is then unchanged.
    pub fn merge(&self, options: &MergeOptions, progress: &Progress) -> Result<MergeReport> {
        self.merge_in(None, options, progress)
    }

    /// Like [`Self::merge`], but writes through the given file layer. For tests with failing disks.
    ///
    /// # Errors
    /// As [`Self::merge`].
    #[doc(hidden)]
    pub fn merge_through(
        &self,
        layer: &dyn Fn(Directory) -> Box<dyn Files>,
        options: &MergeOptions,
        progress: &Progress,
    ) -> Result<MergeReport> {
        self.merge_in(Some(layer), options, progress)
    }

    fn merge_in(
        &self,
        through: Option<&FileLayer<'_>>,
        options: &MergeOptions,
        progress: &Progress,
    ) -> Result<MergeReport> {
        self.inner.sink.merge(self, through, options, progress)
    }

    /// Merges changes that are in this process's own log into the store's files.
    pub(super) fn merge_files(
        &self,
        through: Option<&FileLayer<'_>>,
        options: &MergeOptions,
        progress: &Progress,
    ) -> Result<MergeReport> {
        let disk = self.inner.merge_place()?;
        let _work = disk.begin("a merge")?;
        let folder = disk.place().folder();
        let merge = || {
            let files = StoreFiles::open(&folder, self.inner.shards.as_ref(), through)?;
            self.merge_alone(&folder, &files, options, progress)
        };
        self.inner.merges.count(merge, |report| report.bytes)
    }

    fn merge_alone(
        &self,
        folder: &Path,
        files: &StoreFiles,
        options: &MergeOptions,
        progress: &Progress,
    ) -> Result<MergeReport> {
        let writer = &self.inner.writer;
        let journal = writer.journal()?;
        let freed = match options.keeps_terms {
            true => 0,
            false => self.free_unused_terms(&options.cancel),
        };
        // Start a new log file at the merged snapshot, so that the older files can be removed as a whole.
        let snapshot = writer.exclusively(&options.cancel, |head| {
            journal.begin_file();
            Ok((None, head.clone()))
        })?;
        if snapshot.number() == snapshot.base().number() {
            let mut nothing = MergeReport::default();
            nothing.snapshot = snapshot.number();
            nothing.generations = snapshot.base().generations();
            return Ok(nothing);
        }
        // Preferably the log is synced first. If that fails, for example because a log file was removed while in use,
        // the merge itself saves the acknowledged data.
        let _ = journal.sync();
        journal.check_alone()?;
        let shards = self.inner.shards.as_ref();
        let merging = match shards {
            None => Merging::write(folder, &*files.root, &snapshot, options, progress)?,
            Some(host) => {
                let bases = host.bases_of(&snapshot);
                let files = files.of_shards(folder);
                Merging::write_shards(&files, &snapshot, &bases, options, progress)?
            }
        };
        drop(snapshot);
        // From here on the merge is committed; the remaining steps must not be interrupted.
        let others = match shards {
            None => None,
            Some(host) => Some(host.serve_merged(merging.bases(), merging.base())?),
        };
        let pause = writer.exclusively(&CancelToken::new(), |head| {
            let begun = Instant::now();
            let next = match &others {
                None => merging.rebase(head)?,
                Some(others) => merging.rebase_shards(head, Arc::clone(others))?,
            };
            // The new files and the log are intact, but the data read for the snapshots in memory may be damaged. If
            // so, these checks make the database refuse all further requests.
            let _ = self.inner.check_files(head);
            let _ = self.inner.check_files(&next);
            Ok((Some(next), begun.elapsed()))
        })?;
        let mut report = merging.report().clone();
        (report.pause, report.freed) = (pause, freed);
        // Log files and replaced files that cannot be removed now are removed by the next merge or opening.
        let _ = journal.forget(report.snapshot);
        match shards {
            None => merging.remove_replaced(&*files.root),
            Some(_) => merging.remove_replaced_in(&files.of_shards(folder).shards),
        }
        Ok(report)
    }

    /// Frees the ids of tail terms that no quad uses, in several transactions, if there is something to merge. Returns
    /// the number of freed ids. Failures are ignored: the next merge frees the remaining ids. This merge must continue,
    /// because it may be the only way to save the data.
    fn free_unused_terms(&self, cancel: &CancelToken) -> u64 {
        let writer = &self.inner.writer;
        let before = writer.published();
        let is_writable = writer
            .journal()
            .is_ok_and(|journal| journal.probe().is_ok());
        if before.number() == before.base().number() || !is_writable {
            return 0;
        }
        let parts = self
            .inner
            .computed_from(&before, || Ok(before.unused_terms()));
        let mut freed = 0;
        for part in parts.unwrap_or_default() {
            match self.free_terms(&part, cancel) {
                Ok(n) => freed += n,
                Err(_) => break,
            }
        }
        freed
    }

    fn free_terms(&self, candidates: &[[u32; 2]], cancel: &CancelToken) -> Result<u64> {
        let permit = self.inner.writer.acquire(cancel)?;
        let head = permit.head().clone();
        let made = self
            .inner
            .computed_from(&head, || head.free_terms(candidates))?;
        let Some((snapshot, record)) = made else {
            return Ok(0);
        };
        let free = [&head, &snapshot].map(|s| s.tail().free_count());
        permit.commit(snapshot, record)?;
        Ok(u64::from(free[1].saturating_sub(free[0])))
    }

    /// State of the merges, and counts since the database was opened; `None` for a database that cannot be merged.
    #[must_use]
    pub fn merge_status(&self) -> Option<MergeStatus> {
        if !self.inner.sink.has_files(&self.inner) {
            return None;
        }
        let place = &self.inner.merges;
        let snapshot = self.snapshot();
        Some(MergeStatus {
            running: place.running.load(Ordering::Relaxed),
            done: place.done.load(Ordering::Relaxed),
            failed: place.failed.load(Ordering::Relaxed),
            bytes: place.bytes.load(Ordering::Relaxed),
            merged: snapshot.base().merged(),
            edits: snapshot.edit_count(),
            changes_bytes: self.inner.changes.bytes(&snapshot),
            changes_memory: self.inner.changes.limit(),
            generations: snapshot.base().generations(),
            last_failure: place.last_failure(),
        })
    }

    /// True if the policy requires a merge now.
    fn is_merge_due(&self, policy: &MergePolicy) -> bool {
        let snapshot = self.snapshot();
        let edits = policy
            .edits
            .unwrap_or_else(|| EDITS.max(snapshot.quads() / SHARE))
            .max(1);
        snapshot.edit_count() >= edits
            || self.inner.changes.is_reached(&snapshot)
            || self.inner.sink.is_log_long(&self.inner, &snapshot)
    }

    /// Starts a thread that merges automatically until the returned handle is dropped. `each` is called with the
    /// outcome of each merge.
    ///
    /// # Errors
    /// [`Error::Usage`] or [`Error::ReadOnly`] if the database cannot be merged; [`Error::Limit`] if no thread can be
    /// started.
    pub fn merge_in_background(
        &self,
        policy: MergePolicy,
        each: impl Fn(&Result<MergeReport>) + Send + 'static,
    ) -> Result<BackgroundMerges> {
        self.inner.sink.may_merge(&self.inner)?;
        let cancel = policy.options.cancel.clone();
        let db = self.clone();
        let failure = "cannot start a thread for merging";
        let work = move |stop: &Stop| db.merge_while(&policy, stop, &each);
        let _background = Background::start("jindou-merge", failure, work)?;
        Ok(BackgroundMerges {
            cancel,
            _background,
        })
    }

    fn merge_while(&self, policy: &MergePolicy, stop: &Stop, each: &dyn Fn(&Result<MergeReport>)) {
        let mut again = AGAIN[0];
        let mut wait = POLL;
        while !stop.wait(wait) {
            wait = POLL;
            if !self.is_merge_due(policy) {
                continue;
            }
            let result = self.merge(&policy.options, &Progress::default());
            match &result {
                Err(Error::Cancelled) => return,
                // Other exclusive work on the files is in progress; try again.
                Err(Error::Conflict(_)) => continue,
                Err(_) => {
                    wait = again;
                    again = (again * 2).min(AGAIN[1]);
                }
                Ok(_) => again = AGAIN[0],
            }
            each(&result);
        }
    }
}

/// Handle of a thread that merges automatically. Dropping it ends the thread and discards a running merge.
#[must_use = "dropped, it merges no more"]
pub struct BackgroundMerges {
    cancel: CancelToken,
    _background: Background,
}

impl Drop for BackgroundMerges {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
