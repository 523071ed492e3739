//! Restoring a store from a backup.

use super::document::BackupDocument;
use super::{BackupTarget, parts, time_text};
use crate::database::{Database, guarded};
use crate::update::{Access, OpenOptions};
use jindou_log::{Directory, Durability, Log, LogOptions, Ticket};
use jindou_model::{CancelToken, Error, Progress, Result, private};
use jindou_store::delta::committed_at;
use jindou_store::directory::{Building, CHECKSUMS, LOG, MANIFEST, Manifest};
use jindou_store::shard::{CLUSTER, Cluster};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Folder into which log files of the backup are written before their records are appended to the new store's log.
const FROM: &str = "log-of-backup";

/// The point to which a store is restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RestoreTo {
    /// The newest state: the last snapshot of the newest backup, or the end of a shared log.
    #[default]
    Newest,
    /// The snapshot with this number.
    Snapshot(u64),
    /// Everything that was committed up to this time, in microseconds since 1970 (UTC), and nothing later.
    Time(u64),
}

/// Report on a restore and the restored store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RestoreReport {
    /// Name of the backup, or location of the shared log, from which the store was restored.
    pub backup: String,
    /// Number of the restored snapshot in the backup. For a shared log, the number of the group; the restored store
    /// numbers its snapshots independently.
    pub snapshot: u64,
    /// Commit time of that snapshot in microseconds since 1970 (UTC); `None` if the log does not contain it.
    pub committed: Option<u64>,
    /// Quads of the restored store.
    pub quads: u64,
    /// Bytes that were read from the backup.
    pub bytes: u64,
    /// Doubts about the choice of the backup, one sentence each.
    pub warnings: Vec<String>,
}

impl Database {
    /// Restores a store from a backup into a folder that does not exist yet or is empty; all or nothing. Every byte is
    /// verified against its checksum, and every transaction is replayed, before the store appears at its final path.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the folder is not empty; [`Error::Usage`] if no backup reaches the requested point,
    /// [`Error::Damaged`] if the backup is damaged; [`Error::Cancelled`]; [`Error::Io`].
    pub fn restore(
        from: &BackupTarget,
        dir: impl AsRef<Path>,
        to: RestoreTo,
        cancel: &CancelToken,
        progress: &Progress,
    ) -> Result<RestoreReport> {
        guarded(|| restore(from, dir.as_ref(), to, cancel, progress))
    }
}

/// Warnings, one sentence each, if the clock was set back between backups, so that another backup than the chosen one
/// may be meant. `whole` has the intact backups in the order in which they were taken.
fn doubts(whole: &[BackupDocument], to: RestoreTo) -> Vec<String> {
    let of = |d: &BackupDocument| {
        let i = &d.info;
        format!(
            "{} ({}, snapshot {})",
            i.name,
            time_text(i.time),
            i.snapshot
        )
    };
    let mut doubts = Vec::new();
    let Some((newest, older)) = whole.split_last() else {
        return doubts;
    };
    match to {
        RestoreTo::Snapshot(_) => {}
        RestoreTo::Newest => {
            let same = |d: &&BackupDocument| d.info.epoch == newest.info.epoch;
            let most = older.iter().filter(same).max_by_key(|d| d.info.snapshot);
            doubts.extend(
                most.filter(|d| d.info.snapshot > newest.info.snapshot)
                    .map(|most| {
                        format!(
                            "the backup taken last is {}, but {} has a later snapshot; if that one is wanted, restore it with `--backup {}`",
                            of(newest),
                            of(most),
                            most.info.name
                        )
                    }),
            );
        }
        RestoreTo::Time(_) => {
            let back = whole.windows(2).find(|w| w[1].info.time < w[0].info.time);
            doubts.extend(back.map(|w| {
                format!(
                    "times and snapshots disagree: the clock was set back between the backups {} and {}; choose with --snapshot to be sure",
                    of(&w[0]),
                    of(&w[1])
                )
            }));
        }
    }
    doubts
}

/// Chooses the backup to restore among the intact ones. Also returns warnings about the choice.
fn choose(from: &BackupTarget, to: RestoreTo) -> Result<(BackupDocument, Vec<String>)> {
    let mut all = from.documents()?;
    let place = from.files.path("");
    let none = |what: String| Error::Usage(format!("{}: {what}", place.display()));
    if all.is_empty() {
        return Err(none(match &from.only {
            Some(name) => format!("no backup {name}; list the backups with `jindou backup --list`"),
            None => "no backups".into(),
        }));
    }
    // If backups newer than the last intact one are damaged, the choice is an error: they may have the requested state.
    let mut damaged = None;
    let mut newest = None;
    while newest.is_none() {
        match all.pop() {
            Some(Ok(whole)) => newest = Some(whole),
            Some(Err(e)) => damaged = damaged.or(Some(e)),
            None => break,
        }
    }
    if let Some(e) = damaged {
        return Err(match newest {
            Some(older) => Error::damaged(
                place,
                format!(
                    "the newest backup cannot be read: {e}; to restore an older one, name it, for example `--backup {}` \
                        (snapshot {}, {})",
                    older.info.name,
                    older.info.snapshot,
                    time_text(older.info.time)
                ),
            ),
            None => e,
        });
    }
    let Some(newest) = newest else {
        return Err(none("no backups".into()));
    };
    // Damaged backups older than the newest intact one are ignored.
    let mut whole: Vec<BackupDocument> = all.into_iter().flatten().collect();
    whole.push(newest);
    let doubts = doubts(&whole, to);
    let reach = |d: &BackupDocument| {
        let i = &d.info;
        format!(
            "{} has snapshots {} to {}, from {} to {}",
            i.name,
            i.base,
            i.snapshot,
            time_text(i.from),
            time_text(i.time)
        )
    };
    let ends: Vec<String> = whole.iter().rev().take(3).map(reach).collect();
    let found = match to {
        RestoreTo::Newest => whole.len().checked_sub(1),
        RestoreTo::Snapshot(n) => whole
            .iter()
            .rposition(|d| (d.info.base..=d.info.snapshot).contains(&n)),
        // The first backup taken after the time contains everything that was committed until then.
        RestoreTo::Time(t) => whole
            .iter()
            .position(|d| d.info.from <= t && t <= d.info.time),
    };
    match found {
        Some(at) => Ok((whole.swap_remove(at), doubts)),
        None => Err(none(format!(
            "no backup includes {}; the newest ones: {}",
            match to {
                RestoreTo::Snapshot(n) => format!("snapshot {n}"),
                RestoreTo::Time(t) => time_text(t),
                RestoreTo::Newest => String::new(),
            },
            ends.join("; ")
        ))),
    }
}

fn restore(
    from: &BackupTarget,
    dir: &Path,
    to: RestoreTo,
    cancel: &CancelToken,
    progress: &Progress,
) -> Result<RestoreReport> {
    refuse_occupied(dir)?;
    let (backup, warnings) = choose(from, to)?;
    let building = Building::begin(dir, false)?;
    let new = building.dir();
    let restoring = Restoring {
        from,
        backup: &backup,
        cancel,
        progress,
    };
    restoring.base(new)?;
    progress.phase.store(1, Ordering::Relaxed);
    let (last, committed) = restoring.log(new, to)?;
    let wanted = match to {
        RestoreTo::Newest => backup.info.snapshot,
        RestoreTo::Snapshot(n) => n,
        RestoreTo::Time(_) => last,
    };
    let quads = put_in_place(building, backup.info.epoch, wanted, || damaged(&backup))?;
    Ok(RestoreReport {
        snapshot: wanted,
        committed,
        quads,
        bytes: backup.info.bytes,
        backup: backup.info.name,
        warnings,
    })
}

/// Returns an error if a file or a non-empty folder exists at the path.
pub(crate) fn refuse_occupied(dir: &Path) -> Result<()> {
    let occupied = match std::fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_some(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => false,
        Err(e) => return Err(Error::io(dir, e)),
    };
    match occupied {
        false => Ok(()),
        true => Err(Error::Conflict(format!(
            "{} is not empty; restore into a new folder",
            dir.display()
        ))),
    }
}

/// Moves a restored store to its final path after reading all of it once and checking its epoch and snapshot number;
/// `wrong` makes the error if these differ. Returns the number of its quads.
pub(crate) fn put_in_place(
    building: Building,
    epoch: u64,
    number: u64,
    wrong: impl FnOnce() -> Error,
) -> Result<u64> {
    let new = building.dir();
    let reader = OpenOptions::default().with_access(Access::Read);
    let snapshot = Database::open_with(new, &reader)?.snapshot();
    if (snapshot.number(), snapshot.base().epoch()) != (number, epoch) {
        return Err(wrong());
    }
    let names = match Cluster::read(new)? {
        Some(cluster) => cluster.files_in(new)?,
        None => Manifest::of_store(new)?.names(),
    };
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    // A folder counts as a store once these three files exist, so they are synced last.
    names.sort_by_key(|n| {
        [CHECKSUMS, MANIFEST, CLUSTER]
            .iter()
            .position(|last| last == n)
    });
    building.put_in_place(&names)?;
    Ok(snapshot.quads())
}

/// The log of a store that is being restored.
pub(crate) struct NewLog {
    log: Log,
    last: Option<Ticket>,
}

impl NewLog {
    /// Creates an empty log in the folder of a base, for records after number `after`.
    pub fn begin(dir: &Path, epoch: u64, after: u64) -> Result<Self> {
        let own = dir.join(LOG);
        let files = Directory::create(&own).map_err(|e| Error::io(&own, e))?;
        let options = LogOptions {
            durability: Durability::None,
            ..LogOptions::default()
        };
        let none = &mut |_: u64, _: &[u8]| Ok(());
        let (log, _) = Log::open(Arc::new(files), epoch, after, options, none)?;
        Ok(Self { log, last: None })
    }

    pub fn append(&mut self, number: u64, record: &[u8]) -> Result<()> {
        self.last = Some(self.log.append(number, record.to_vec())?);
        Ok(())
    }

    /// Makes all records durable.
    pub fn end(self) -> Result<()> {
        if let Some(ticket) = self.last {
            ticket.wait()?;
        }
        self.log.sync()?;
        self.log.close()
    }
}

fn damaged(backup: &BackupDocument) -> Error {
    Error::damaged(
        &backup.info.name,
        "damaged: the parts of the backup do not match",
    )
}

struct Restoring<'a> {
    from: &'a BackupTarget,
    backup: &'a BackupDocument,
    cancel: &'a CancelToken,
    progress: &'a Progress,
}

impl Restoring<'_> {
    fn read(&self, name: &str, sound: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>> {
        self.cancel.check()?;
        let files = &*self.from.files;
        let path = files.path(name);
        let bytes = match files.read(name, u64::MAX) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::damaged(
                    path,
                    format!(
                        "the file is missing, but the backup {} needs it; an older backup may not",
                        self.backup.info.name
                    ),
                ));
            }
            Err(e) => return Err(Error::io(path, e)),
        };
        if !sound(&bytes) {
            return Err(Error::damaged(
                path,
                format!(
                    "damaged, but the backup {} needs it; an older backup may not",
                    self.backup.info.name
                ),
            ));
        }
        self.progress.add(bytes.len() as u64, 0);
        let done = self.progress.done.load(Ordering::Relaxed);
        let permille = 1000 * done / self.backup.info.bytes.max(1);
        self.progress
            .phase_permille
            .store(permille.min(1000), Ordering::Relaxed);
        Ok(bytes)
    }

    /// Writes the base's files.
    fn base(&self, dir: &Path) -> Result<()> {
        for file in &self.backup.files {
            let path = dir.join(&file.name);
            let wrong = |e| Error::io(&path, e);
            let mut out = private::create_new(&path).map_err(wrong)?;
            for part in &file.parts {
                let bytes = self.read(part, |b| parts::is_part(part, b))?;
                out.write_all(&bytes).map_err(wrong)?;
            }
            if out.metadata().map_err(wrong)?.len() != file.length {
                return Err(damaged(self.backup));
            }
        }
        let manifest = Manifest::of_store(dir)?;
        let known = manifest.names();
        let named: Vec<&str> = self.backup.files.iter().map(|f| f.name.as_str()).collect();
        let info = &self.backup.info;
        if named.len() != known.len()
            || !named.iter().all(|n| known.contains(*n))
            || (manifest.epoch, manifest.holds()) != (info.epoch, info.base)
        {
            return Err(damaged(self.backup));
        }
        Ok(())
    }

    /// Writes the new store's log: the backup's records up to `to`. Returns the last record's number and commit time.
    fn log(&self, dir: &Path, to: RestoreTo) -> Result<(u64, Option<u64>)> {
        let info = &self.backup.info;
        let mut last = (info.base, None);
        if self.backup.log.is_empty() {
            return Ok(last);
        }
        let folder = dir.join(FROM);
        private::create_folder(&folder).map_err(|e| Error::io(&folder, e))?;
        for part in &self.backup.log {
            let name = BackupDocument::name_of_log(part);
            let bytes = self.read(&name, |b| jindou_log::is_part(b, part))?;
            let path = folder.join(&part.name);
            private::write(&path, bytes).map_err(|e| Error::io(path, e))?;
        }
        let mut log = NewLog::begin(dir, info.epoch, info.base)?;
        let kept = Directory::open(&folder).map_err(|e| Error::io(&folder, e))?;
        let mut over = false;
        jindou_log::replay(&kept, info.epoch, info.base, &mut |number, record| {
            self.cancel.check()?;
            let time = committed_at(record);
            over |= match to {
                RestoreTo::Newest => number > info.snapshot,
                RestoreTo::Snapshot(n) => number > n,
                // Records without a time were committed before times were recorded.
                RestoreTo::Time(t) => time.is_some_and(|at| at > t),
            };
            if !over {
                log.append(number, record)?;
                last = (number, time);
            }
            Ok(())
        })?;
        log.end()?;
        std::fs::remove_dir_all(&folder).map_err(|e| Error::io(&folder, e))?;
        Ok(last)
    }
}
