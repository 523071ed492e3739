//! Restores a store from a log as of a point in time. The log is only read, and servers may follow it meanwhile.

use super::folder::IncomingFiles;
use super::inspect::existing;
use super::log_threads;
use crate::backup::restore::{NewLog, put_in_place, refuse_occupied};
use crate::backup::{RestoreReport, RestoreTo, time_text};
use crate::create;
use crate::database::guarded;
use jindou_model::{CancelToken, Error, Progress, Resource, Result};
use jindou_replicas::{Base, Beginning, Bucket, Failure, Group, Identity, Incoming, Limits, Name};
use jindou_store::LoadOptions;
use jindou_store::directory::{Building, Manifest};
use jindou_store::shard::Cluster;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time limit of a request to the bucket.
const REQUEST: Duration = Duration::from_secs(10);
/// Interval at which the cancel token is checked.
const CANCEL_LOOK: Duration = Duration::from_millis(100);
/// Time that pending requests get to end when the restore ends.
const LEAVE: Duration = Duration::from_secs(2);

/// True if `place` is that of a shared log: a location in S3, or a directory that contains a log.
#[must_use]
pub fn is_log(place: &str) -> bool {
    Bucket::is_place(place)
}

/// Restores a store from a log as of a time or snapshot, atomically, into a folder that is empty or does not exist yet.
/// The new store has a log of its own. [`RestoreTo::Snapshot`] is the number of a group; [`RestoreTo::Time`] is by the
/// bucket's clock. Must not be called from a tokio task.
///
/// # Errors
/// [`Error::Conflict`] if the folder is not empty, or if objects were removed from the log meanwhile; [`Error::Usage`]
/// if there is no log, or the log does not cover that time or snapshot; [`Error::Damaged`]; [`Error::Cancelled`];
/// [`Error::Io`].
pub fn restore(
    place: &str,
    dir: impl AsRef<Path>,
    to: RestoreTo,
    cancel: &CancelToken,
    progress: &Progress,
) -> Result<RestoreReport> {
    guarded(|| restore_into(place, dir.as_ref(), to, cancel, progress))
}

fn restore_into(
    place: &str,
    dir: &Path,
    to: RestoreTo,
    cancel: &CancelToken,
    progress: &Progress,
) -> Result<RestoreReport> {
    refuse_occupied(dir)?;
    let building = Building::begin(dir, false)?;
    let new = building.dir().to_owned();
    let runtime = log_threads().map_err(|e| {
        Error::limit(
            Resource::Threads,
            format!("no threads to read the log: {e}"),
        )
    })?;
    let done = runtime.block_on(async {
        let read = async {
            let limits = Limits {
                request: REQUEST,
                ..Limits::default()
            };
            let (bucket, identity) = existing(place, limits).await.map_err(Error::Usage)?;
            let past = LogReader {
                bucket,
                identity,
                place,
                cancel,
                progress,
            };
            past.write(to, &new).await
        };
        let cancelled = async {
            while !cancel.is_cancelled() {
                tokio::time::sleep(CANCEL_LOOK).await;
            }
        };
        tokio::select! {
            done = read => done,
            () = cancelled => Err(Error::Cancelled),
        }
    });
    runtime.shutdown_timeout(LEAVE);
    let done = done?;
    let wrong = || {
        Error::damaged(
            place,
            "damaged: the groups of the log do not match its base",
        )
    };
    let quads = put_in_place(building, done.epoch, done.own, wrong)?;
    Ok(RestoreReport {
        backup: place.to_owned(),
        warnings: done.warnings,
        snapshot: done.group,
        committed: done.written,
        quads,
        bytes: progress.done.load(Ordering::Relaxed),
    })
}

/// A store that was restored into a folder.
struct RestoredStore {
    /// Number of the last group that the store contains.
    group: u64,
    /// Time at which that group was written, if known.
    written: Option<u64>,
    /// Id epoch of the base.
    epoch: u64,
    /// Number of the newest snapshot in the restored store's own numbering.
    own: u64,
    /// A sentence for each damaged base that was skipped.
    warnings: Vec<String>,
}

/// Removes the files that a damaged base left in a folder.
fn clear_folder(dir: &Path) -> Result<()> {
    let io = |e| Error::io(dir, e);
    for entry in std::fs::read_dir(dir).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let removed = match path.is_dir() {
            true => std::fs::remove_dir_all(&path),
            false => std::fs::remove_file(&path),
        };
        removed.map_err(|e| Error::io(&path, e))?;
    }
    Ok(())
}

/// The range of groups that can be restored.
struct RestorableRange {
    /// Numbers of the bases, ascending, with 0 for a log that began with the empty store.
    bases: Vec<u64>,
    first: u64,
    last: u64,
}

/// An existing log that is being read for a restore.
struct LogReader<'a> {
    bucket: Bucket,
    identity: Identity,
    place: &'a str,
    cancel: &'a CancelToken,
    progress: &'a Progress,
}

impl LogReader<'_> {
    fn failed(&self, failure: Failure) -> Error {
        match failure {
            Failure::Missing => self.removed(),
            Failure::Lost(why) => Error::Usage(format!(
                "{}: {why}; `jindou cluster repair --log {0}` says what can be done",
                self.place
            )),
            failure => Error::io(self.place, std::io::Error::other(failure)),
        }
    }

    fn removed(&self) -> Error {
        Error::Conflict(format!(
            "{}: a part of the log was removed while it was being read; try again with what is left",
            self.place
        ))
    }

    async fn written(&self, name: Name) -> Result<Option<u64>> {
        let written = self.bucket.written(self.identity.epoch, name).await;
        written.map_err(|e| self.failed(e))
    }

    async fn bases(&self) -> Result<Vec<u64>> {
        let bases = self.bucket.bases(self.identity.epoch).await;
        let mut bases = bases.map_err(|e| self.failed(e))?;
        if self.identity.beginning == Beginning::Empty && bases.first() != Some(&0) {
            bases.insert(0, 0);
        }
        Ok(bases)
    }

    /// Writes the files of the store as of `to` into an empty folder.
    async fn write(&self, to: RestoreTo, dir: &Path) -> Result<RestoredStore> {
        let held = self.bucket.record_identity().await;
        held.map_err(|e| self.failed(e))?;
        let kept = self.kept().await?;
        let group = self.last_group_of(to, &kept).await?;
        let (base, hash, warnings) = self.base_before(to, group, &kept, dir).await?;
        let written = self.written(Name::Group(group)).await?;
        self.progress.phase.store(1, Ordering::Relaxed);
        let (store, before) = match Cluster::read(dir)? {
            Some(cluster) => (cluster.epoch, cluster.merged),
            None => {
                let manifest = Manifest::of_store(dir)?;
                (manifest.epoch, manifest.holds())
            }
        };
        let mut own = before;
        if base < group {
            let log = NewLog::begin(dir, store, before)?;
            own = self.groups((base, hash), group, (log, before)).await?;
        }
        Ok(RestoredStore {
            group,
            written,
            epoch: store,
            own,
            warnings,
        })
    }

    /// Writes the files of the newest undamaged base that ends at or before `group`. Returns its number, the hash of
    /// its last group, and a sentence for each newer base that was skipped because of damage.
    async fn base_before(
        &self,
        to: RestoreTo,
        group: u64,
        kept: &RestorableRange,
        dir: &Path,
    ) -> Result<(u64, u64, Vec<String>)> {
        let epoch = self.identity.epoch;
        let mut warnings = Vec::new();
        for base in kept.bases.iter().rev().filter(|base| **base <= group) {
            match self.bucket.examine_base(epoch, *base).await {
                Ok(Ok(_)) => {}
                Ok(Err(findings)) => {
                    warnings.extend(findings.first().map(ToString::to_string));
                    continue;
                }
                Err(Failure::Missing)
                    if *base == 0 && self.identity.beginning == Beginning::Empty => {}
                Err(failure) => return Err(self.failed(failure)),
            }
            let whole = self.check_whole(to, *base, group).await;
            whole.map_err(|e| match (e, warnings.first()) {
                (Error::Usage(why), Some(warning)) => {
                    Error::Usage(format!("{why}. Also, {warning}"))
                }
                (e, _) => e,
            })?;
            match self.base(*base, dir).await? {
                Ok(hash) => return Ok((*base, hash, warnings)),
                Err(why) => {
                    warnings.push(why);
                    clear_folder(dir)?;
                }
            }
        }
        Err(match warnings.first() {
            Some(warning) => Error::Usage(format!(
                "{}: {warning}, and no base before it can be used; `jindou cluster repair --log {0}` says what can be done",
                self.place
            )),
            None => self.removed(),
        })
    }

    async fn kept(&self) -> Result<RestorableRange> {
        let bases = self.bases().await?;
        let Some(newest) = bases.last().copied() else {
            return Err(Error::Usage(format!(
                "{}: the store that the log begins with has not been uploaded yet",
                self.place
            )));
        };
        let log = self.identity.epoch;
        let listing = self.bucket.list(log, newest, true).await;
        let listing = listing.map_err(|e| self.failed(e))?;
        let names = listing.log.iter().filter_map(|name| Name::parse(log, name));
        let last = names.fold(newest, |last, name| match name {
            Name::Group(number) | Name::Span(_, number) => last.max(number),
            Name::Base(_) => last,
        });
        let mut first = newest;
        // The groups after old bases may be trimmed already.
        for base in &bases {
            let after = Name::Group(base.saturating_add(1));
            if *base == last || self.written(after).await?.is_some() {
                first = *base;
                break;
            }
        }
        Ok(RestorableRange { bases, first, last })
    }

    /// The time at which the first restorable group was written or, if that is not known, the earliest known later
    /// time.
    async fn since(&self, kept: &RestorableRange) -> Result<u64> {
        let first = kept.first;
        if let Some(written) = self.written(Name::Group(first)).await? {
            return Ok(written);
        }
        let known = match first {
            0 => self.bucket.begun().await.map_err(|e| self.failed(e))?,
            _ => {
                let base = self.written(Name::Base(first)).await?;
                let next = self.written(Name::Group(first.saturating_add(1))).await?;
                base.into_iter().chain(next).min()
            }
        };
        known.ok_or_else(|| self.removed())
    }

    /// Number of the last group that the restored store must contain.
    async fn last_group_of(&self, to: RestoreTo, kept: &RestorableRange) -> Result<u64> {
        let wanted = match to {
            RestoreTo::Newest => return Ok(kept.last),
            RestoreTo::Snapshot(number) if (kept.first..=kept.last).contains(&number) => {
                return Ok(number);
            }
            RestoreTo::Snapshot(number) => format!("snapshot {number}"),
            RestoreTo::Time(time) if self.since(kept).await? <= time => {
                return self.last_until(time, kept).await;
            }
            RestoreTo::Time(time) => time_text(time),
        };
        Err(Error::Usage(format!(
            "{}: {wanted} cannot be restored; the log has snapshots {} to {}, and every time since {}",
            self.place,
            kept.first,
            kept.last,
            time_text(self.since(kept).await?)
        )))
    }

    /// The last group that was written at or before `time`. Found by binary search: a group is put only after its
    /// predecessor exists, so the times ascend.
    async fn last_until(&self, time: u64, kept: &RestorableRange) -> Result<u64> {
        let (mut low, mut high) = (kept.first, kept.last);
        while low < high {
            let middle = high - (high - low) / 2;
            match self.written(Name::Group(middle)).await? {
                Some(written) if written > time => high = middle - 1,
                // A missing group was trimmed, so the group that is searched for is a later one.
                _ => low = middle,
            }
        }
        Ok(low)
    }

    /// Rejects a restore for which a group between its base and its end is missing.
    async fn check_whole(&self, to: RestoreTo, base: u64, group: u64) -> Result<()> {
        let epoch = self.identity.epoch;
        let survey = self.bucket.survey(epoch, base).await;
        let survey = survey.map_err(|e| self.failed(e))?;
        let Some((first, last)) = survey.missing.first().copied() else {
            return Ok(());
        };
        // For `Newest`, a gap after the newest existing group counts, too: the newest known group is then missing.
        if first > group && to != RestoreTo::Newest {
            return Ok(());
        }
        if !self.bases().await?.contains(&base) {
            // The base was trimmed meanwhile.
            return Err(self.removed());
        }
        let name = Name::Group(first).text(epoch);
        let more = match last > first {
            true => format!(" and {} more are", last - first),
            false => " is".to_owned(),
        };
        let known = match survey.newest > last {
            true => format!("{} to {} are there", last + 1, survey.newest),
            false => format!("servers knew of groups up to {}", survey.newest),
        };
        Err(Error::Usage(format!(
            "{}: {name}{more} missing from the log, and {known}. --snapshot {} restores the store before that; \
             `jindou cluster repair --log {}` says what else can be done",
            self.place,
            first - 1,
            self.place
        )))
    }

    /// Writes the files of base `number`. Returns the hash of its last group (0 if unknown), or a description of the
    /// damage in the base.
    async fn base(&self, number: u64, dir: &Path) -> Result<std::result::Result<u64, String>> {
        let epoch = self.identity.epoch;
        let document = match self.bucket.base(epoch, number).await {
            Err(Failure::Missing) if number == 0 && self.identity.beginning == Beginning::Empty => {
                return create::unless_there(dir, &LoadOptions::default()).map(|_| Ok(0));
            }
            document => document.map_err(|e| self.failed(e))?,
        };
        let files: Box<dyn Incoming<()>> = Box::new(IncomingFiles::into(dir.to_owned()));
        let (known, ()) = match self.bucket.download(&document, files).await {
            // A part may be missing because the base was deleted meanwhile.
            Err(Failure::Lost(_)) if self.written(Name::Base(number)).await?.is_none() => {
                return Err(self.removed());
            }
            Err(Failure::Lost(why)) => return Ok(Err(why)),
            downloaded => downloaded.map_err(|e| self.failed(e))?,
        };
        let names = match Cluster::read(dir)? {
            Some(cluster) => cluster.files_in(dir)?,
            None => Manifest::of_store(dir)?.names(),
        };
        for name in names {
            let path = dir.join(name);
            let meta = std::fs::metadata(&path).map_err(|e| Error::io(path, e))?;
            self.progress.add(meta.len(), 0);
        }
        Ok(Ok(known.hash))
    }

    /// Writes the records of the groups after a base into the new store's own log, after record number `own`. Returns
    /// the number of the last record.
    async fn groups(
        &self,
        (base, hash): (u64, u64),
        last: u64,
        (mut log, mut own): (NewLog, u64),
    ) -> Result<u64> {
        let mut latest: Option<u64> = None;
        let each = |group: Group, written: Option<u64>| -> Result<()> {
            self.cancel.check()?;
            latest = latest.max(written);
            for record in group.records.iter().filter(|r| !r.bytes.is_empty()) {
                own = own.checked_add(1).ok_or_else(|| {
                    Error::limit(Resource::Numbers, "the store's numbers are used up")
                })?;
                self.progress.add(record.bytes.len() as u64, 0);
                log.append(own, &record.bytes)?;
            }
            Ok(())
        };
        let numbers = base.saturating_add(1)..=last;
        let read = self
            .bucket
            .read_groups(self.identity.epoch, numbers, hash, each);
        read.await.map_err(|e| self.failed(e))??;
        log.end()?;
        self.check(base, last, latest).await?;
        Ok(own)
    }

    /// Checks that the groups that were read are those that the servers applied, since a name that was trimmed can be
    /// created again. Trimming goes up to the second newest base, and never past a base that exists, because old bases
    /// are deleted first.
    ///
    /// `latest` is the time of the newest group that was read as an object of its own; spans need no check, as they are
    /// copies of applied groups.
    async fn check(&self, base: u64, last: u64, latest: Option<u64>) -> Result<()> {
        let bases = self.bases().await?;
        if !bases.contains(&base) {
            return Err(self.removed());
        }
        let mut later = bases.into_iter().filter(|number| *number > base);
        let (Some(next), Some(_)) = (later.next(), later.next()) else {
            return Ok(());
        };
        // A base is put after its groups, which are trimmed only later. So groups written before the next base are the
        // applied ones.
        let put = self.written(Name::Base(next)).await?;
        match last <= next && latest <= put {
            true => Ok(()),
            false => Err(self.removed()),
        }
    }
}

/// Writes the received files of a store that is being restored.
impl Incoming<()> for IncomingFiles {
    fn write(&mut self, file: &str, bytes: &[u8]) -> std::io::Result<()> {
        Self::append(self, file, bytes)
    }

    fn finish(mut self: Box<Self>, _: &Base) -> std::io::Result<()> {
        self.end().map_err(std::io::Error::other)
    }
}
