//! Taking a backup.

use super::document::{BackupDocument, BaseFile};
use super::{BackupInfo, BackupTarget, parts};
use crate::database::{Database, guarded};
use crate::update::{WholeStoreWork, log_in, micros};
use jindou_log::{Files, LogPart, is_part, record_after};
use jindou_model::{CancelToken, Error, Progress, Result, private};
use jindou_store::delta::committed_at;
use jindou_store::directory::{
    BaseLocation, CHECKSUMS, Checksums, LOG, MANIFEST, Manifest, current,
};
use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

/// Names of the phases, as numbered by [`Progress::phase`].
pub const BACKUP_PHASES: [&str; 2] = ["copying the base", "copying the log"];

/// Number of attempts at a consistent copy of a store that another process changes.
const TRIES: usize = 10;
/// Longest wait for proof that the records in another process's log are durable.
const PROOF: Duration = Duration::from_secs(3);

/// Report on a backup that was taken.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BackupReport {
    /// Description of the backup.
    pub info: BackupInfo,
    /// Number of files that the backup target did not have yet.
    pub new_files: u64,
    /// Total bytes of the files that the backup target did not have yet.
    pub new_bytes: u64,
    /// Number of records at the log's end that another process had not yet made durable. The backup does not contain
    /// them.
    pub left_out: u64,
    /// Duration of the backup.
    pub time: Duration,
}

impl Database {
    /// Backs up the store's state as of the end of the copying, while queries and updates continue. The backup contains
    /// every update acknowledged before the call. Only files that the target lacks are copied.
    ///
    /// # Errors
    /// [`Error::Usage`] for a database without a directory, or one that cannot be changed; [`Error::Damaged`];
    /// [`Error::Conflict`] if other work on its files is in progress; [`Error::Cancelled`]; [`Error::Io`].
    pub fn backup(
        &self,
        target: &BackupTarget,
        cancel: &CancelToken,
        progress: &Progress,
    ) -> Result<BackupReport> {
        self.inner.sink.supports(WholeStoreWork::Backup)?;
        let disk = self.inner.disk.as_deref().ok_or_else(|| {
            Error::Usage(
                "this database is read-only or has no directory; back it up from the process that can change it".into(),
            )
        })?;
        let _work = disk.begin("a backup")?;
        let acknowledged = || Some(self.snapshot().number());
        let copy = Copy {
            dir: disk.dir(),
            target,
            acknowledged: &acknowledged,
            cancel,
            progress,
        };
        guarded(|| copy.run())
    }

    /// Backs up a store that another process may have open; files of a store never change once they are written. Only
    /// log records that are proven to be durable are copied. For records that are in the log when the copying reaches
    /// it, this waits some seconds for the proof.
    ///
    /// # Errors
    /// As [`Self::backup`].
    pub fn backup_of(
        dir: impl AsRef<Path>,
        target: &BackupTarget,
        cancel: &CancelToken,
        progress: &Progress,
    ) -> Result<BackupReport> {
        if Self::is_copy_of_log(&dir) {
            return Err(in_the_log());
        }
        let copy = Copy {
            dir: dir.as_ref(),
            target,
            acknowledged: &|| None,
            cancel,
            progress,
        };
        guarded(|| copy.run())
    }
}

/// The error for a store with a shared log, whose newest updates are only in the log.
pub(crate) fn in_the_log() -> Error {
    Error::Unsupported(
        "backups of a store with a shared log: the log's bucket holds the store's bases and every update; copy the bucket".into(),
    )
}

struct Copy<'a> {
    dir: &'a Path,
    target: &'a BackupTarget,
    /// Function that returns the number of the last acknowledged snapshot; `None` if another process may be writing to
    /// the store.
    acknowledged: &'a dyn Fn() -> Option<u64>,
    cancel: &'a CancelToken,
    progress: &'a Progress,
}

/// Numbers of copied files and bytes.
#[derive(Default)]
struct Copied {
    files: u64,
    bytes: u64,
}

impl Copy<'_> {
    fn run(&self) -> Result<BackupReport> {
        self.target.outside(self.dir)?;
        let _alone = self.target.alone()?;
        let mut tries = 0;
        loop {
            tries += 1;
            let seen = current(self.dir)?;
            let done = self.once(&seen.0, &seen.1);
            // Another process may have replaced the base or trimmed the log. Old files that are missing are then not an
            // error, and the copying starts again.
            let moved = !matches!(current(self.dir), Ok(now) if now == seen);
            match done {
                Err(e @ (Error::Cancelled | Error::Limit(_))) => return Err(e),
                Err(e) if tries == TRIES || (!moved && tries > 2) => return Err(e),
                Ok(report) if !moved => return Ok(report),
                Ok(_) if tries == TRIES => {
                    return Err(Error::Conflict(
                        "the store's base was replaced repeatedly while it was being copied; try again".into(),
                    ));
                }
                _ => {}
            }
        }
    }

    fn once(&self, place: &BaseLocation, manifest: &Manifest) -> Result<BackupReport> {
        let begun = Instant::now();
        let target = &*self.target.files;
        let there = target.list().map_err(|e| Error::io(target.path(""), e))?;
        let mut there: HashSet<String> = there.into_iter().collect();
        let mut copied = Copied::default();
        let folder = place.folder();
        let files = self.base(&folder, manifest, &mut there, &mut copied)?;
        self.progress.phase.store(1, Ordering::Relaxed);
        let (log, left_out, first) = self.log(&folder, manifest, &mut there, &mut copied)?;
        let snapshot = log.last().map_or(manifest.holds(), |p| p.next - 1);
        let path = folder.join(MANIFEST);
        let made = std::fs::metadata(&path).and_then(|m| m.modified());
        let made = micros(made.map_err(|e| Error::io(path, e))?);
        let time = micros(SystemTime::now());
        let document = BackupDocument {
            info: BackupInfo {
                name: BackupDocument::next_name(there.iter(), time, snapshot),
                time,
                snapshot,
                base: manifest.holds(),
                from: first.map_or(made, |t| t.min(made)),
                epoch: manifest.epoch,
                bytes: BackupDocument::bytes(&files, &log),
            },
            files,
            log,
        };
        // The base was not replaced during the copying, so all copied files belong to the same state.
        if current(self.dir)? != (place.clone(), manifest.clone()) {
            return Err(Error::Conflict("the store's base was replaced".into()));
        }
        let name = document.info.name.clone();
        self.put(
            &name,
            document.to_text().as_bytes(),
            &mut there,
            &mut copied,
        )?;
        Ok(BackupReport {
            info: document.info,
            new_files: copied.files,
            new_bytes: copied.bytes,
            left_out,
            time: begun.elapsed(),
        })
    }

    fn put(
        &self,
        name: &str,
        bytes: &[u8],
        there: &mut HashSet<String>,
        copied: &mut Copied,
    ) -> Result<()> {
        self.cancel.check()?;
        let target = &*self.target.files;
        match target.put(name, bytes) {
            // Another backup that runs at the same time has written the same file.
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(Error::io(target.path(name), e)),
            Ok(()) => {
                copied.files += 1;
                copied.bytes += bytes.len() as u64;
            }
        }
        there.insert(name.to_owned());
        Ok(())
    }

    /// Copies the files of the base that the target lacks.
    fn base(
        &self,
        folder: &Path,
        manifest: &Manifest,
        there: &mut HashSet<String>,
        copied: &mut Copied,
    ) -> Result<Vec<BaseFile>> {
        let damaged = |name: &str| {
            Error::damaged(
                folder.join(name),
                "damaged, so the store cannot be backed up; earlier backups are unchanged",
            )
        };
        let small = |name: &str| {
            let path = folder.join(name);
            private::read(&path).map_err(|e| Error::io(path, e))
        };
        let (text, sums) = (small(MANIFEST)?, small(CHECKSUMS)?);
        if text != manifest.to_text().as_bytes() {
            return Err(damaged(MANIFEST));
        }
        let checksums =
            Checksums::parse(&sums, &manifest.files).ok_or_else(|| damaged(CHECKSUMS))?;
        let own = |name: &str, bytes: &[u8]| {
            let file = (name.to_owned(), bytes.len() as u64);
            (file, parts::blocks_of(bytes))
        };
        let mut all = vec![own(MANIFEST, &text), own(CHECKSUMS, &sums)];
        all.extend(manifest.files.iter().cloned().zip(checksums.blocks));
        for group in &manifest.merged.groups {
            let name = group.checksums_name();
            let sums = small(&name)?;
            let checksums = Checksums::parse(&sums, &group.files).ok_or_else(|| damaged(&name))?;
            all.push(own(&name, &sums));
            all.extend(group.files.iter().cloned().zip(checksums.blocks));
        }
        let total: u64 = all.iter().map(|(f, _)| f.1).sum();
        let mut done = 0;
        let mut files = Vec::with_capacity(all.len());
        for ((name, length), blocks) in all {
            let path = folder.join(&name);
            let names = parts::names(length, &blocks);
            let mut file = None;
            for (i, part) in names.iter().enumerate() {
                self.cancel.check()?;
                if !there.contains(part) {
                    let file = match &file {
                        Some(file) => file,
                        None => file.insert(private::open(&path).map_err(|e| Error::io(&path, e))?),
                    };
                    let bytes = parts::read(file, &path, length, i, part)?;
                    self.put(part, &bytes, there, copied)?;
                }
                let n = parts::part_length(length, i);
                done += n;
                self.progress.add(n, 0);
                let permille = 1000 * done / total.max(1);
                self.progress
                    .phase_permille
                    .store(permille, Ordering::Relaxed);
            }
            files.push(BaseFile {
                name,
                length,
                parts: names,
            });
        }
        Ok(files)
    }

    /// Copies the parts of the log that the target lacks. Returns all parts that belong to the backup, the number of
    /// records that were left out because they were not proven durable, and the commit time of the first record after
    /// the base.
    fn log(
        &self,
        folder: &Path,
        manifest: &Manifest,
        there: &mut HashSet<String>,
        copied: &mut Copied,
    ) -> Result<(Vec<LogPart>, u64, Option<u64>)> {
        let folder = folder.join(LOG);
        let (epoch, after) = (manifest.epoch, manifest.holds());
        let Some(files) = log_in(&folder, epoch)? else {
            return Ok((vec![], 0, None));
        };
        let last = |parts: &[LogPart]| parts.last().map_or(after, |p| p.next - 1);
        let take = |acknowledged| jindou_log::parts(&files, epoch, after, acknowledged);
        let acknowledged = (self.acknowledged)();
        let mut parts = take(acknowledged)?;
        let mut left_out = 0;
        if acknowledged.is_none() {
            // Number of the last complete record that is now in the log, proven durable or not.
            let wanted = last(&take(Some(u64::MAX))?);
            let begun = Instant::now();
            while last(&parts) < wanted && begun.elapsed() < PROOF {
                self.cancel.check()?;
                std::thread::sleep(Duration::from_millis(50));
                parts = take(None)?;
            }
            left_out = wanted.saturating_sub(last(&parts));
        }
        if acknowledged.is_some_and(|n| last(&parts) < n) {
            return Err(Error::damaged(
                folder,
                "the log ends before the last acknowledged update; its newest records are in memory only: recluster the store",
            ));
        }
        let mut first = None;
        for (i, part) in parts.iter().enumerate() {
            let name = BackupDocument::name_of_log(part);
            let known = there.contains(&name);
            if known && i > 0 {
                continue;
            }
            let path = folder.join(&part.name);
            let bytes = files
                .read(&part.name, part.length)
                .map_err(|e| Error::io(&path, e))?;
            if i == 0 {
                let record = record_after(&bytes, part, after);
                first = record.and_then(|r| committed_at(&r));
            }
            if known {
                continue;
            }
            if !is_part(&bytes, part) {
                return Err(Error::damaged(
                    path,
                    "damaged, so it cannot be backed up (`jindou check` shows details); earlier backups are unchanged",
                ));
            }
            self.progress.add(part.length, 0);
            self.put(&name, &bytes, there, copied)?;
        }
        Ok((parts, left_out, first))
    }
}
