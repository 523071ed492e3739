//! Reclustering: writes a whole store again with new ids, while queries and updates continue.
//!
//! ```text
//! snapshot S ─► load ─► base-N ─► later transactions from the log, by terms ─► writers blocked: the rest ─► current.jd
//! ```
//!
//! The new base gets its own log with the same transactions under the same numbers, so only the ids differ. The old
//! base and log are valid until `current.jd` is replaced; from then on the new ones are.

use super::WholeStoreWork;
use super::durable::{SwitchError, WritableStore};
use crate::database::{Database, guarded, watching};
use jindou_dictionary::index::Indexes;
use jindou_log::Log;
use jindou_model::{CancelToken, CancellableSource, Error, Progress, Result, setters};
use jindou_store::delta::{committed_at, stamp};
use jindou_store::directory::{BaseLocation, open_at};
use jindou_store::{LoadOptions, PHASES, Snapshot, SnapshotQuads, Successor, load_successor};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Options of a reclustering.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReclusterOptions {
    /// Memory limit in bytes, as for [`LoadOptions::memory`]. Larger intermediate data is written to files.
    pub memory: u64,
    /// Number of threads.
    pub threads: usize,
    /// Cancels the reclustering from another thread. The store is then unchanged.
    pub cancel: CancelToken,
    /// The indexes of the new base. `None` means those that the database was opened with, except indexes built on
    /// demand ([`Index::on_demand`](crate::index::Index::on_demand)) that the store does not have.
    pub indexes: Option<Indexes>,
}

impl Default for ReclusterOptions {
    fn default() -> Self {
        let load = LoadOptions::default();
        Self {
            memory: load.memory,
            threads: load.threads,
            cancel: CancelToken::new(),
            indexes: None,
        }
    }
}

impl ReclusterOptions {
    setters! {
        with_memory: memory = u64;
        with_threads: threads = usize;
        with_cancel: cancel = CancelToken;
        with_indexes: indexes = impl Into<Option<Indexes>>;
    }
}

/// Report on a reclustering.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReclusterReport {
    /// Number of quads in the new base.
    pub quads: u64,
    /// Number of terms in the new base.
    pub terms: u64,
    /// Size of the new base's files in bytes.
    pub bytes: u64,
    /// The new id epoch.
    pub epoch: u64,
    /// Number of the snapshot that was published with the new base.
    pub snapshot: u64,
    /// Number of transactions that were committed while the base was written, and then applied to it.
    pub caught_up: u64,
    /// Time for writing the base.
    pub load_time: Duration,
    /// Time for applying the transactions committed meanwhile.
    pub catch_up_time: Duration,
    /// Time for which updates were blocked.
    pub held: Duration,
    /// Reason why the old base's files could not be removed; they are removed when the store is opened next.
    pub left: Option<String>,
}

/// Names of the phases, by number ([`Progress::phase`]): those of a load, and catching up.
pub const RECLUSTER_PHASES: [&str; 9] = [
    PHASES[0],
    PHASES[1],
    PHASES[2],
    PHASES[3],
    PHASES[4],
    PHASES[5],
    PHASES[6],
    PHASES[7],
    "catching up",
];

/// Number of remaining transactions at which updates may be blocked for the last round.
const FEW: u64 = 64;
/// Number of rounds after which updates are blocked even if more transactions remain.
const ROUNDS: usize = 16;

impl Database {
    /// Writes the store again with new ids, so that their order suits the present data and the base has no patches.
    /// Queries and updates continue; updates are only blocked while the last few transactions are applied. Takes the
    /// disk space of a second store until the last reader of the old base is gone.
    ///
    /// # Errors
    /// [`Error::Usage`] for a database without a directory; [`Error::ReadOnly`] for one that cannot be changed;
    /// [`Error::Conflict`] if other exclusive work on its files is in progress; [`Error::Cancelled`]; the errors of
    /// loading. The store is then unchanged.
    pub fn recluster(
        &self,
        options: &ReclusterOptions,
        progress: &Progress,
    ) -> Result<ReclusterReport> {
        self.may_recluster()?;
        self.is_writable()?;
        let disk =
            self.inner.disk.as_deref().ok_or_else(|| {
                Error::Usage("only a store in a directory can be reclustered".into())
            })?;
        let _work = disk.begin("reclustering")?;
        guarded(|| self.recluster_alone(disk, options, progress))
    }

    /// Checks that [`Self::recluster`] is possible for this kind of store.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a store with a shared log.
    #[doc(hidden)]
    pub fn may_recluster(&self) -> Result<()> {
        self.inner.sink.supports(WholeStoreWork::Recluster)
    }

    fn recluster_alone(
        &self,
        disk: &WritableStore,
        options: &ReclusterOptions,
        progress: &Progress,
    ) -> Result<ReclusterReport> {
        let begun = Instant::now();
        let place = disk.place();
        // Removes files that an earlier reclustering could not remove.
        place.remove_others()?;
        let next = place.next();
        let snapshot = self.snapshot();
        let load = LoadOptions::default()
            .with_memory(options.memory)
            .with_threads(options.threads.max(1))
            .with_union_default(snapshot.base().union_default())
            .with_indexes(match &options.indexes {
                Some(indexes) => indexes.clone(),
                None => snapshot.base().indexes().to_build(),
            })
            .with_prefixes(Arc::clone(snapshot.prefixes()));
        let cancel = watching(options.cancel.clone(), &snapshot);
        let source = CancellableSource::new(SnapshotQuads::new(snapshot.clone()), &cancel);
        let of = Successor {
            snapshot: snapshot.number(),
            number: next.number(),
        };
        let folder = next.folder();
        let loaded = load_successor(&folder, &source, of, &load, &cancel, progress)?;
        drop(source);
        let mut report = ReclusterReport {
            quads: loaded.quads_stored,
            terms: loaded.terms,
            bytes: loaded.store_bytes,
            load_time: begun.elapsed(),
            ..ReclusterReport::default()
        };
        progress
            .phase
            .store(RECLUSTER_PHASES.len() as u64 - 1, Ordering::Relaxed);
        let done = self.take_over(disk, next, options, &mut report);
        match done {
            Ok(()) => {
                report.left = disk.place().remove_others().err().map(|e| e.to_string());
                Ok(report)
            }
            Err(SwitchError::Not(e)) => {
                // Files that cannot be removed now are removed when the store is opened.
                let _ = std::fs::remove_dir_all(&folder);
                Err(e)
            }
            Err(SwitchError::Uncertain(e)) => Err(e),
        }
    }

    /// Applies the transactions committed meanwhile to the new base, and replaces the old base by it.
    fn take_over(
        &self,
        disk: &WritableStore,
        next: BaseLocation,
        options: &ReclusterOptions,
        report: &mut ReclusterReport,
    ) -> Result<(), SwitchError> {
        let begun = Instant::now();
        let folder = next.folder();
        let not = SwitchError::Not;
        let kinds = self.snapshot().base().indexes().kinds().clone();
        let (base, _) = open_at(&folder, &kinds).map_err(not)?;
        let snapshot = Snapshot::of_base(base);
        report.epoch = snapshot.base().epoch();
        let log = disk.new_log(&next, &snapshot).map_err(not)?;
        let mut new = Successive {
            disk,
            snapshot,
            log,
            threads: options.threads.max(1),
        };
        for _ in 0..ROUNDS {
            options.cancel.check().map_err(not)?;
            let present = self.snapshot();
            if new.behind(&present) <= FEW {
                break;
            }
            // The log is being written concurrently. Records that cannot be read now can be read once writers are
            // blocked.
            if new.catch_up(&present).is_err() {
                break;
            }
        }
        let permit = self.inner.writer.acquire(&options.cancel).map_err(not)?;
        let held = Instant::now();
        let present = permit.wait_until_durable();
        new.catch_up(&present).map_err(not)?;
        report.caught_up = new.snapshot.number() - new.snapshot.base().number();
        new.log.sync().map_err(not)?;
        if new.snapshot.quads() != present.quads() {
            return Err(not(Error::Internal(format!(
                "the new base has {} quads but the old one {}; the store is unchanged",
                new.snapshot.quads(),
                present.quads()
            ))));
        }
        // Reports damage in the files that the new base was made from, or in the new base itself.
        self.inner.check_files(&present).map_err(not)?;
        new.snapshot.base().check_files().map_err(not)?;
        disk.switch(next, new.log)?;
        report.snapshot = new.snapshot.number();
        permit.replace(new.snapshot.with_requests_of(&present));
        (report.held, report.catch_up_time) = (held.elapsed(), begun.elapsed());
        Ok(())
    }
}

/// A new base to which the transactions committed meanwhile are applied.
struct Successive<'d> {
    disk: &'d WritableStore,
    snapshot: Snapshot,
    log: Log,
    threads: usize,
}

impl Successive<'_> {
    /// Number of transactions that are still to be applied.
    fn behind(&self, present: &Snapshot) -> u64 {
        present.number().saturating_sub(self.snapshot.number())
    }

    /// Applies the transactions up to a published snapshot of the old base, from the old base's log. On return they are
    /// durable, as defined by the durability that the database was opened with.
    fn catch_up(&mut self, present: &Snapshot) -> Result<()> {
        let from = self.snapshot.number();
        if from == present.number() {
            return Ok(());
        }
        let files = self.disk.log_files()?;
        let mut last = None;
        jindou_log::replay(
            &files,
            present.base().epoch(),
            from,
            &mut |number, record| {
                // Later records are not acknowledged yet, and may still fail.
                if number > present.number() {
                    return Ok(());
                }
                let changes = present.changes_of(record)?;
                let mut applied = self.snapshot.apply(&changes, self.threads)?;
                let mut new = applied.record;
                let prefixes = Snapshot::prefix_changes_of(record)?;
                if let Some((next, mut part)) = applied.snapshot.apply_prefixes(prefixes, true)? {
                    applied.snapshot = next;
                    new.append(&mut part);
                }
                if let Some(at) = committed_at(record) {
                    stamp(&mut new, at);
                }
                last = Some(self.log.append(applied.snapshot.number(), new)?);
                self.snapshot = applied.snapshot;
                Ok(())
            },
        )?;
        if self.snapshot.number() != present.number() {
            return Err(Error::Conflict(format!(
                "the log in {} ends at snapshot {}, but the store is at {}; it cannot be reclustered while updates run",
                self.disk.place().folder().display(),
                self.snapshot.number(),
                present.number()
            )));
        }
        if let Some(ticket) = last {
            ticket.wait()?;
        }
        Ok(())
    }
}
