//! Merging changes into the segments of a store directory, when asked to and by itself.
//!
//! ```text
//! snapshot S, all of it durable ─► files of a new generation (updates and queries go on)
//!                               ─► the manifest names them
//!                               ─► one turn: head and the published snapshot get over the new base
//!                               ─► the log forgets what is merged, replaced files go
//! ```

use super::durable::Disk;
use crate::database::Database;
use jindou_log::{Directory, Files};
use jindou_model::sync;
use jindou_model::{CancelToken, Error, Progress, Resource, Result, setters};
use jindou_store::{MergeOptions, MergeReport, Merging};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The merges of a database: whether one runs, and counts of those that ended.
#[derive(Default)]
pub(crate) struct Merges {
    running: AtomicBool,
    done: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
    last_failure: Mutex<Option<String>>,
}

impl Merges {
    fn failure(&self) -> MutexGuard<'_, Option<String>> {
        sync::lock(&self.last_failure)
    }
}

/// State of a database's merges, and counts since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergeStatus {
    /// One runs now.
    pub running: bool,
    /// Merges that ended well.
    pub done: u64,
    /// Merges that did not.
    pub failed: u64,
    /// Bytes that those that ended well wrote.
    pub bytes: u64,
    /// The last snapshot that is in the segments.
    pub merged: u32,
    /// Edits that wait for the next merge.
    pub edits: u64,
    /// Generations of files alongside the load's.
    pub generations: usize,
    /// Why the last one failed, if none has ended well since.
    pub last_failure: Option<String>,
}

/// When a database merges by itself.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MergePolicy {
    /// With this many edits; `None`: with a million, and at least a twentieth of all quads.
    pub edits: Option<u64>,
    /// How.
    pub options: MergeOptions,
}

impl Default for MergePolicy {
    /// One thread, and else as [`MergeOptions`].
    fn default() -> Self {
        Self {
            edits: None,
            options: MergeOptions::default().with_threads(1),
        }
    }
}

impl MergePolicy {
    setters! {
        with_edits: edits = impl Into<Option<u64>>;
        with_options: options = MergeOptions;
    }
}

/// Edits that are worth a merge whatever a store's size: on LUBM-20 they slow queries and take some 40 MB.
const EDITS: u64 = 1_000_000;
/// One of this many quads.
const SHARE: u64 = 20;
/// Bytes of the log that are worth a merge: opening the store reads them.
const LOG_BYTES: u64 = 1 << 30;
/// How often a database looks whether it should merge.
const LOOK: Duration = Duration::from_secs(1);
/// Waits after merges that failed: doubled each time, up to the last.
const AGAIN: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(600)];

impl Database {
    /// Folds what updates changed into the store's segments: queries and updates go on, opening the store gets fast, and memory is
    /// given back. Ids stay. Blocks until it is done. Nothing to merge is not an error.
    ///
    /// # Errors
    /// [`Error::Conflict`] while another merge, a reclustering or a backup runs; [`Error::Usage`] for a database in memory, [`Error::ReadOnly`] for one that cannot be written;
    /// [`Error::Cancelled`], [`Error::Limit`] for memory or room on the disk, [`Error::Io`]. The store is as it was then.
    pub fn merge(&self, options: &MergeOptions, progress: &Progress) -> Result<MergeReport> {
        self.merge_in(None, options, progress)
    }

    /// As [`Self::merge`], writing through another file layer of the folder of the base: for disks that fail in tests.
    ///
    /// # Errors
    /// As [`Self::merge`].
    #[doc(hidden)]
    pub fn merge_through(
        &self,
        files: &dyn Files,
        options: &MergeOptions,
        progress: &Progress,
    ) -> Result<MergeReport> {
        self.merge_in(Some(files), options, progress)
    }

    fn merge_in(
        &self,
        through: Option<&dyn Files>,
        options: &MergeOptions,
        progress: &Progress,
    ) -> Result<MergeReport> {
        let disk = self.merge_place()?;
        let _work = disk.begin("a merge")?;
        let merges = &self.inner.merges;
        merges.running.store(true, Ordering::Relaxed);
        let folder = disk.place().folder();
        let result = crate::database::guarded(|| match through {
            Some(files) => self.merge_alone(&folder, files, options, progress),
            None => {
                let files = Directory::open(&folder).map_err(|e| Error::io(&folder, e))?;
                self.merge_alone(&folder, &files, options, progress)
            }
        });
        merges.running.store(false, Ordering::Relaxed);
        match &result {
            Ok(report) => {
                merges.done.fetch_add(1, Ordering::Relaxed);
                merges.bytes.fetch_add(report.bytes, Ordering::Relaxed);
                *merges.failure() = None;
            }
            Err(e) => {
                merges.failed.fetch_add(1, Ordering::Relaxed);
                *merges.failure() = Some(e.to_string());
            }
        }
        result
    }

    fn merge_place(&self) -> Result<&Disk> {
        self.inner.may_write()?;
        self.inner.disk.as_deref().ok_or_else(|| {
            Error::Usage("an in-memory database has no files to merge changes into".into())
        })
    }

    fn merge_alone(
        &self,
        folder: &Path,
        files: &dyn Files,
        options: &MergeOptions,
        progress: &Progress,
    ) -> Result<MergeReport> {
        let writer = &self.inner.writer;
        let journal = writer.journal()?;
        // The log's file ends where the merge does, so that it can go whole.
        let snapshot = writer.quiet(&options.cancel, |head| {
            journal.begin_file();
            Ok((None, head.clone()))
        })?;
        if snapshot.number() == snapshot.base().number() {
            let mut nothing = MergeReport::default();
            nothing.snapshot = snapshot.number();
            nothing.generations = snapshot.base().generations();
            return Ok(nothing);
        }
        // Best if the log has it first. Where its file was removed in use, merging is what saves what was acknowledged.
        let _ = journal.sync();
        journal.check_alone()?;
        let merging = Merging::write(folder, files, &snapshot, options, progress)?;
        drop(snapshot);
        // From here on the store is merged, and nothing may end this half-way.
        let pause = writer.quiet(&CancelToken::new(), |head| {
            let begun = Instant::now();
            let next = merging.lay_over(head)?;
            // The files and the log are right, and what was read for the snapshot in memory may not be.
            // Then everything is refused from here on.
            let _ = self.inner.check_files(head);
            let _ = self.inner.check_files(&next);
            Ok((Some(next), begun.elapsed()))
        })?;
        let mut report = merging.report().clone();
        report.pause = pause;
        // Records and files that cannot be removed now are when the store is opened, or with the next merge.
        let _ = journal.forget(report.snapshot);
        merging.remove_replaced(files);
        Ok(report)
    }

    /// State of the merges, and counts since the database was opened; `None` for a database that cannot be merged.
    #[must_use]
    pub fn merge_status(&self) -> Option<MergeStatus> {
        self.inner.disk.as_ref()?;
        let place = &self.inner.merges;
        let snapshot = self.snapshot();
        Some(MergeStatus {
            running: place.running.load(Ordering::Relaxed),
            done: place.done.load(Ordering::Relaxed),
            failed: place.failed.load(Ordering::Relaxed),
            bytes: place.bytes.load(Ordering::Relaxed),
            merged: snapshot.base().merged(),
            edits: snapshot.edit_count(),
            generations: snapshot.base().generations(),
            last_failure: place.failure().clone(),
        })
    }

    /// True if a policy asks for a merge now.
    fn is_merge_due(&self, policy: &MergePolicy) -> bool {
        let snapshot = self.snapshot();
        let edits = policy
            .edits
            .unwrap_or_else(|| EDITS.max(snapshot.quads() / SHARE))
            .max(1);
        let log = self.log_status().map_or(0, |s| s.bytes);
        snapshot.edit_count() >= edits
            || (log >= LOG_BYTES && snapshot.number() > snapshot.base().number())
    }

    /// Merges by itself, on a thread of its own, until the result is dropped; `each` is told what became of each merge.
    ///
    /// # Errors
    /// [`Error::Usage`] or [`Error::ReadOnly`] if the database cannot be merged, [`Error::Limit`] if there is no thread.
    pub fn merge_in_background(
        &self,
        policy: MergePolicy,
        each: impl Fn(&Result<MergeReport>) + Send + 'static,
    ) -> Result<BackgroundMerges> {
        self.merge_place()?;
        let cancel = policy.options.cancel.clone();
        let stop: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let (db, told) = (self.clone(), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("jindou-merge".into())
            .spawn(move || db.merge_while(&policy, &told, &each))
            .map_err(|e| {
                Error::limit(
                    Resource::Threads,
                    format!("cannot start a thread for merging: {e}"),
                )
            })?;
        Ok(BackgroundMerges {
            cancel,
            stop,
            thread: Some(thread),
        })
    }

    fn merge_while(
        &self,
        policy: &MergePolicy,
        stop: &(Mutex<bool>, Condvar),
        each: &dyn Fn(&Result<MergeReport>),
    ) {
        let mut again = AGAIN[0];
        let mut wait = LOOK;
        loop {
            let stopped = sync::lock(&stop.0);
            let waited = stop
                .1
                .wait_timeout_while(stopped, wait, |stopped| !*stopped);
            if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                return;
            }
            wait = LOOK;
            if !self.is_merge_due(policy) {
                continue;
            }
            let result = self.merge(&policy.options, &Progress::default());
            match &result {
                Err(Error::Cancelled) => return,
                // Something else is done to the files; it ends.
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

/// A thread that merges; dropped, it ends, and a merge that runs is thrown away.
#[must_use = "dropped, it merges no more"]
pub struct BackgroundMerges {
    cancel: CancelToken,
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for BackgroundMerges {
    fn drop(&mut self) {
        self.cancel.cancel();
        *sync::lock(&self.stop.0) = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
