//! Numbering a whole store again, in a new id epoch, also while it is read and changed.
//!
//! ```text
//! snapshot S ─► load ─► base-N ─► what was committed since, from the log, by terms ─► turn held: the rest ─► current.jd
//! ```
//!
//! The new base gets a log of its own with the same transactions under the same numbers, so nothing but the ids is different
//! afterwards. Until `current.jd` is replaced the old base and log are all that counts; from then on the new ones are.

use super::durable::{Disk, Switching};
use crate::database::{Database, guarded, watching};
use jindou_dictionary::index::Indexes;
use jindou_log::Log;
use jindou_model::{
    CancelToken, Error, Progress, QuadBatch, QuadSink, QuadSource, Result, setters,
};
use jindou_store::delta::{committed_at, stamp};
use jindou_store::directory::{BaseLocation, open_at};
use jindou_store::{LoadOptions, PHASES, Snapshot, SnapshotQuads, Successor, load_successor};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How to recluster.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReclusterOptions {
    /// Bytes of memory to stay within, as [`LoadOptions::memory`]. What is larger goes through files.
    pub memory: u64,
    /// Threads.
    pub threads: usize,
    /// Ends it from elsewhere: the store stays as it was.
    pub cancel: CancelToken,
    /// The indexes of the new base. `None`: those that the database was opened with, without those that are built on demand
    /// ([`Index::on_demand`](crate::index::Index::on_demand)) and that the store does not have.
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
    /// Quads of the new base.
    pub quads: u64,
    /// Its terms.
    pub terms: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// The new id epoch.
    pub epoch: u64,
    /// The snapshot that was published with the new base.
    pub snapshot: u32,
    /// Transactions that were committed while the base was made, and brought into it.
    pub caught_up: u64,
    /// Making the base.
    pub load_time: Duration,
    /// Catching up.
    pub catch_up_time: Duration,
    /// How long updates had to wait.
    pub held: Duration,
    /// Why files of the old base are still there; they go when the store is opened next.
    pub left: Option<String>,
}

/// Names of the phases, by [`Progress::phase`]: those of a load, and one more.
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

/// With so few transactions to bring over, updates may wait for it.
const FEW: u32 = 64;
/// Rounds before updates wait whatever is left.
const ROUNDS: usize = 16;
/// Numbers from here on begin again: an epoch has so many that this leaves room for the time that reclustering takes.
const HIGH: u32 = 1 << 31;

impl Database {
    /// Numbers the store again, so that the order of ids suits the data as it is now, and nothing lies over the base any more.
    /// Queries and updates go on meanwhile; updates wait while the last few transactions are brought over. Needs the room
    /// of a second store on the disk until the last reader of the old base is gone.
    ///
    /// # Errors
    /// [`Error::Usage`] for a database without a directory, [`Error::ReadOnly`] for one that cannot be changed; [`Error::Conflict`] if its files are being
    /// worked on; [`Error::Cancelled`]; what loading may give. The store stays as it was.
    pub fn recluster(
        &self,
        options: &ReclusterOptions,
        progress: &Progress,
    ) -> Result<ReclusterReport> {
        self.is_writable()?;
        let disk =
            self.inner.disk.as_deref().ok_or_else(|| {
                Error::Usage("only a store in a directory can be reclustered".into())
            })?;
        let _work = disk.begin("reclustering")?;
        guarded(|| self.recluster_alone(disk, options, progress))
    }

    fn recluster_alone(
        &self,
        disk: &Disk,
        options: &ReclusterOptions,
        progress: &Progress,
    ) -> Result<ReclusterReport> {
        let begun = Instant::now();
        let place = disk.place();
        // What an earlier one could not remove.
        place.remove_others()?;
        let next = place.next();
        let snapshot = self.snapshot();
        let back = match snapshot.number() {
            n if n < HIGH => 0,
            n => n,
        };
        let load = LoadOptions::default()
            .with_memory(options.memory)
            .with_threads(options.threads.max(1))
            .with_union_default(snapshot.base().union_default())
            .with_indexes(match &options.indexes {
                Some(indexes) => indexes.clone(),
                None => snapshot.base().indexes().to_build(),
            });
        let cancel = watching(options.cancel.clone(), &snapshot);
        let source = Cancellable {
            source: SnapshotQuads::new(snapshot.clone()),
            cancel: &cancel,
        };
        let of = Successor {
            snapshot: snapshot.number() - back,
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
        let done = self.take_over(disk, next, back, options, &mut report);
        match done {
            Ok(()) => {
                report.left = disk.place().remove_others().err().map(|e| e.to_string());
                Ok(report)
            }
            Err(Switching::Not(e)) => {
                // What stays is removed when the store is opened.
                let _ = std::fs::remove_dir_all(&folder);
                Err(e)
            }
            Err(Switching::Uncertain(e)) => Err(e),
        }
    }

    /// Brings a new base up to the present and puts it in the old one's place.
    fn take_over(
        &self,
        disk: &Disk,
        next: BaseLocation,
        back: u32,
        options: &ReclusterOptions,
        report: &mut ReclusterReport,
    ) -> Result<(), Switching> {
        let begun = Instant::now();
        let folder = next.folder();
        let not = Switching::Not;
        let kinds = self.snapshot().base().indexes().kinds().clone();
        let (base, _) = open_at(&folder, &kinds).map_err(not)?;
        let snapshot = Snapshot::of_base(base);
        report.epoch = snapshot.base().epoch();
        let log = disk.new_log(&next, &snapshot).map_err(not)?;
        let mut new = Successive {
            disk,
            snapshot,
            log,
            back,
            threads: options.threads.max(1),
        };
        for _ in 0..ROUNDS {
            options.cancel.check().map_err(not)?;
            let present = self.snapshot();
            if new.behind(&present) <= FEW {
                break;
            }
            // The log is being written: what cannot be read now can be when nothing writes.
            if new.catch_up(&present).is_err() {
                break;
            }
        }
        let turn = self.inner.writer.turn(&options.cancel).map_err(not)?;
        let held = Instant::now();
        let present = turn.settled();
        new.catch_up(&present).map_err(not)?;
        report.caught_up = u64::from(new.snapshot.number() - new.snapshot.base().number());
        new.log.sync().map_err(not)?;
        if new.snapshot.quads() != present.quads() {
            return Err(not(Error::Internal(format!(
                "the new base has {} quads but the old one {}; the store is unchanged",
                new.snapshot.quads(),
                present.quads()
            ))));
        }
        // What the new base was made of, and the new base itself.
        self.inner.check_files(&present).map_err(not)?;
        new.snapshot.base().check_files().map_err(not)?;
        disk.switch(next, new.log)?;
        report.snapshot = new.snapshot.number();
        turn.replace(new.snapshot);
        (report.held, report.catch_up_time) = (held.elapsed(), begun.elapsed());
        Ok(())
    }
}

/// A base on its way to the present.
struct Successive<'d> {
    disk: &'d Disk,
    snapshot: Snapshot,
    log: Log,
    /// Its numbers are that much smaller than the old base's.
    back: u32,
    threads: usize,
}

impl Successive<'_> {
    /// Number of the old base's snapshot that this one equals.
    fn equals(&self) -> u32 {
        self.snapshot.number() + self.back
    }

    /// Transactions that are missing.
    fn behind(&self, present: &Snapshot) -> u32 {
        present.number().saturating_sub(self.equals())
    }

    /// Applies what was committed up to a published snapshot of the old base, from the old base's log; durable when it
    /// returns, in the sense that the database was opened for.
    fn catch_up(&mut self, present: &Snapshot) -> Result<()> {
        let from = self.equals();
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
                // No one was told of what comes later, and it may still fail.
                if number > present.number() {
                    return Ok(());
                }
                let changes = present.changes_of(record)?;
                let applied = self.snapshot.apply(&changes, self.threads)?;
                let mut new = applied.record;
                if let Some(at) = committed_at(record) {
                    stamp(&mut new, at);
                }
                last = Some(self.log.append(applied.snapshot.number(), new)?);
                self.snapshot = applied.snapshot;
                Ok(())
            },
        )?;
        if self.equals() != present.number() {
            return Err(Error::Conflict(format!(
                "the log in {} ends at snapshot {}, but the store is at {}; it cannot be reclustered while updates run",
                self.disk.place().folder().display(),
                self.equals(),
                present.number()
            )));
        }
        if let Some(ticket) = last {
            ticket.wait()?;
        }
        Ok(())
    }
}

/// A source that ends with an error once the token is cancelled.
struct Cancellable<'c, S> {
    source: S,
    cancel: &'c CancelToken,
}

impl<S: QuadSource> QuadSource for Cancellable<'_, S> {
    fn run(
        &self,
        worker: usize,
        workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        struct Checked<'b> {
            sink: &'b mut dyn QuadSink,
            cancel: &'b CancelToken,
        }
        impl QuadSink for Checked<'_> {
            fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
                self.cancel.check()?;
                self.sink.batch(batch)
            }
        }
        let cancel = self.cancel;
        let checked = &mut Checked { sink, cancel };
        self.source.run(worker, workers, checked, progress)
    }

    fn size_hint(&self) -> Option<u64> {
        self.source.size_hint()
    }
}
