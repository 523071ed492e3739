//! The store as the driver uses it: evaluates changes over snapshots, applies groups, and publishes committed
//! snapshots.

use super::request::{self, SentChange};
use crate::database::{Database, DatabaseState};
use crate::update::{Changed, UpdateOptions, UpdateReport, VerificationHandle, Verify, micros};
use jindou_cluster::servers::ShardFigures;
use jindou_cluster::shards::ShardClient;
use jindou_engine::Hub;
use jindou_model::invariant::guarded;
use jindou_model::{CancelToken, Error, Result, sync};
use jindou_replicas::{
    Application, Base, BaseFiles, Blob, Evaluated, Group, Incoming, Local, Report, RequestKey,
    ShardFiles,
};
use jindou_store::delta::stamp;
use jindou_store::{MergeReport, Snapshot};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::SystemTime;

/// Callback that receives messages for the operator.
pub type OperatorLog = Arc<dyn Fn(&str) + Send + Sync>;

/// The local directory of a replica's store: [`super::folder::Folder`] or [`super::shards::ShardFolder`]. Methods
/// without a comment are those of [`Application`].
pub(super) trait LogFolder: Send + Sync {
    fn open(&self) -> Result<Local<Snapshot>>;

    fn follow(&self, log: u64) -> Result<()>;

    /// Applies a record of an update that another server evaluated.
    fn replay(&self, head: &Snapshot, record: &[u8]) -> Result<Snapshot> {
        head.replay(record)
    }

    fn empty(&self, _: Option<u64>) -> Result<Snapshot> {
        Err(not_of_shards())
    }

    fn save(&self, _: &Base, _: &Snapshot) -> Result<()> {
        Err(not_of_shards())
    }

    fn rebase(&self, snapshot: &Snapshot) -> Result<Snapshot> {
        Ok(snapshot.clone())
    }

    fn files(&self, _: u64) -> Result<Option<Arc<dyn BaseFiles>>> {
        Ok(None)
    }

    fn receive(self: Arc<Self>, _: u64) -> Result<Box<dyn Incoming<Snapshot>>> {
        Err(not_of_shards())
    }

    /// True if the record starts a merge by all servers.
    fn starts_merge(&self, _: &[u8]) -> bool {
        false
    }

    /// Writes this server's part of a merge that was started. The snapshot is the base of that merge. Returns when the
    /// new base is complete here.
    fn merge(&self, _: &Base, _: &Snapshot) -> Result<()> {
        Ok(())
    }

    /// Starts a merge by all servers over the base with this number. Returns the snapshot that records this, and its
    /// log record.
    fn start_merge(&self, _: &Snapshot, _: u64) -> Result<(Snapshot, Vec<u8>)> {
        Err(not_of_shards())
    }

    /// Commits a merge with these encoded results. Returns the snapshot over the new base, and its log record.
    fn commit_merge(&self, _: &Snapshot, _: &[u8]) -> Result<(Snapshot, Vec<u8>)> {
        Err(not_of_shards())
    }

    /// The open merge, if this server should propose now to commit it.
    fn due_commit(&self, _: &Snapshot, _: bool) -> Result<Option<DueCommit>> {
        Ok(None)
    }

    /// Releases what is kept only for a limited time. Called regularly.
    fn release_expired(&self) {}

    /// Metrics of each shard of a sharded store.
    fn shard_figures(&self) -> Vec<ShardFigures> {
        Vec::new()
    }

    /// Numbers of the shards that this server holds.
    fn held(&self) -> Vec<u32> {
        Vec::new()
    }

    /// The files that this server should upload now of the shards of the base with this number; `None` if this server's
    /// base has another number.
    fn shard_files(&self, _: u64) -> Result<Option<ShardFiles>> {
        Ok(None)
    }

    /// Last group in the base of a merge that was committed since the last call; `None` if no merge was.
    fn committed_merge(&self) -> Option<u64> {
        None
    }

    /// The service that evaluates parts of queries at this server's shards.
    fn hub(&self) -> Option<Hub> {
        None
    }

    /// Client for the shards of the newest base at all servers.
    fn client(&self) -> Option<Arc<dyn ShardClient>> {
        None
    }

    /// Result of verifying the files of a snapshot that was just opened, according to `verify`.
    fn trust(&self, verify: Verify, snapshot: &Snapshot) -> Result<VerificationHandle>;

    /// Called with each snapshot that is published.
    fn published(&self, _: &Snapshot) {}

    /// Report of this server's part in the last merge by all servers.
    fn last_merge(&self) -> MergeReport {
        MergeReport::default()
    }

    /// Ends all waits, because the server stops.
    fn stop(&self) {}
}

/// Number of the base to commit, and the encoded results of its merge.
pub(super) type DueCommit = (u64, Vec<u8>);

fn not_of_shards() -> Error {
    Error::Unsupported("not possible for this kind of store with a shared log".into())
}

/// The store of a database that follows a shared log.
#[derive(Clone)]
pub(super) struct Store(pub Arc<Inner>);

pub(super) struct Inner {
    pub folder: Arc<dyn LogFolder>,
    /// The database; unset until it was opened.
    pub database: OnceLock<Weak<DatabaseState>>,
    /// The newest published snapshot, kept for the database while it is not open yet.
    pub latest: Mutex<Option<Snapshot>>,
    /// Options of the updates that this server evaluates: their limits, and the HTTP clients for SERVICE and LOAD.
    pub options: UpdateOptions,
    pub report: OperatorLog,
    /// Time of the newest record.
    pub last_commit_time: AtomicU64,
}

impl Store {
    fn database(&self) -> Option<Database> {
        let inner = self.0.database.get()?.upgrade()?;
        Some(Database { inner })
    }

    /// Evaluates a change over the snapshot `head`.
    ///
    /// # Errors
    /// Those of the change.
    fn run(&self, head: &Snapshot, body: &[u8], cancel: &CancelToken) -> Result<Changed> {
        let db = self.database().ok_or(Error::Cancelled)?;
        let (change, asked) = request::read(body)?;
        let options = asked.options(&self.0.options).with_cancel(cancel.clone());
        if matches!(change, SentChange::Change(_) | SentChange::Record { .. }) {
            db.inner.changes.check(head)?;
        }
        let made = match change {
            SentChange::Change(change) => {
                let options = &db.inner.runtime.settle_update(&options);
                let cancel = options.token();
                let change = Database::prepare_change(change, options, head.prefixes(), &cancel)?;
                return db.evaluate(head, change, options, &cancel);
            }
            SentChange::Record {
                after,
                record,
                added,
                removed,
            } => {
                let fits = head.number() == after;
                let snapshot = fits.then(|| head.replay(record).ok()).flatten();
                let snapshot = snapshot.ok_or_else(|| {
                    Error::Conflict(
                        "the store was changed after the transaction had begun; nothing was changed: begin again".into(),
                    )
                })?;
                let mut report = UpdateReport::default();
                (report.operations, report.added, report.removed) = (1, added, removed);
                let made = Some((snapshot, record.to_vec()));
                return Ok(Changed { made, report });
            }
            SentChange::StartMerge(base) => Some(self.0.folder.start_merge(head, base)?),
            SentChange::CommitMerge(_, result) => Some(self.0.folder.commit_merge(head, result)?),
            SentChange::FreeTerms(runs) => {
                db.inner.computed_from(head, || head.free_terms(&runs))?
            }
        };
        let report = UpdateReport::default();
        Ok(Changed { made, report })
    }

    /// Runs a merge, and counts its outcome once the database is open.
    fn counted(&self, merge: impl FnOnce() -> Result<()>) -> io::Result<()> {
        let merged = match self.database() {
            Some(db) => db.inner.merges.count(merge, |()| 0),
            None => merge(),
        };
        merged.map_err(io::Error::other)
    }
}

/// Longest body in bytes that is read before its evaluation.
const PREFETCHED: usize = 1 << 16;

impl Store {
    /// Requests what other shards know about the terms and quads that several small changes name.
    fn prefetch_named(&self, head: &Snapshot, bodies: &[Blob], cancel: &CancelToken) -> Result<()> {
        let (true, Some(db)) = (head.as_sharded().is_some(), self.database()) else {
            return Ok(());
        };
        let head = head.for_new_query();
        head.begin(cancel);
        let mut all = Vec::with_capacity(bodies.len());
        for body in bodies.iter().filter(|body| body.len() <= PREFETCHED) {
            let Ok((SentChange::Change(change), asked)) = request::read(body) else {
                continue;
            };
            let options = asked.options(&self.0.options);
            let options = &db.inner.runtime.settle_update(&options);
            let limited = options.token();
            all.extend(Database::named_quads(&head, change, options, &limited));
        }
        head.prefetch(&all, cancel)
    }
}

impl Application for Store {
    type Snapshot = Snapshot;

    fn open(&self) -> io::Result<Local<Snapshot>> {
        self.0.folder.open().map_err(io::Error::other)
    }

    fn empty(&self, log: Option<u64>) -> io::Result<Snapshot> {
        self.0.folder.empty(log).map_err(io::Error::other)
    }

    fn follow(&self, log: u64) -> io::Result<()> {
        self.0.folder.follow(log).map_err(io::Error::other)
    }

    fn evaluate(
        &self,
        head: &Snapshot,
        _: RequestKey,
        body: &Blob,
        cancel: &CancelToken,
    ) -> Evaluated<Snapshot> {
        let nothing = |report| Evaluated::Record {
            snapshot: head.clone(),
            bytes: Blob::from([]),
            report,
        };
        match guarded(|| self.run(head, body, cancel)) {
            Ok(Changed { made: None, report }) => {
                nothing(request::write_answer(&Ok(report)).into())
            }
            Ok(Changed {
                made: Some((snapshot, mut record)),
                report,
            }) => {
                let now = micros(SystemTime::now());
                let now = self
                    .0
                    .last_commit_time
                    .fetch_max(now, Ordering::Relaxed)
                    .max(now);
                stamp(&mut record, now);
                Evaluated::Record {
                    snapshot,
                    bytes: record.into(),
                    report: request::write_answer(&Ok(report)).into(),
                }
            }
            // These refusals depend on the data. They become part of the log, so that a repeated request gets the same
            // answer.
            Err(e @ (Error::Conflict(_) | Error::Precondition(_))) => {
                nothing(request::write_answer(&Err(e)).into())
            }
            Err(e) => Evaluated::Refused(request::write_answer(&Err(e)).into()),
        }
    }

    fn prefetch(&self, head: &Snapshot, bodies: &[Blob], cancel: &CancelToken) {
        // A failure is reported by the evaluation that meets it, too.
        let _ = guarded(|| self.prefetch_named(head, bodies, cancel));
    }

    fn apply(&self, head: &Snapshot, group: &Group) -> io::Result<Snapshot> {
        let mut next = head.clone();
        for record in group.records.iter().filter(|r| !r.bytes.is_empty()) {
            let replayed = self.0.folder.replay(&next, &record.bytes);
            next = replayed.map_err(io::Error::other)?;
        }
        Ok(next)
    }

    fn publish(&self, number: u64, snapshot: &Snapshot) {
        let snapshot = snapshot.clone().at_group(number);
        self.0.folder.published(&snapshot);
        match self.database() {
            Some(db) => db.inner.writer.follow(snapshot),
            None => *sync::lock(&self.0.latest) = Some(snapshot),
        }
    }

    fn save(&self, base: &Base, snapshot: &Snapshot) -> io::Result<()> {
        self.counted(|| self.0.folder.save(base, snapshot))
    }

    fn starts_merge(&self, group: &Group) -> bool {
        let mut records = group.records.iter();
        records.any(|r| self.0.folder.starts_merge(&r.bytes))
    }

    fn merge(&self, base: &Base, snapshot: &Snapshot) -> io::Result<()> {
        self.counted(|| self.0.folder.merge(base, snapshot))
    }

    fn rebase(&self, snapshot: &Snapshot) -> io::Result<Snapshot> {
        self.0.folder.rebase(snapshot).map_err(io::Error::other)
    }

    fn files(&self, number: u64) -> io::Result<Option<Arc<dyn BaseFiles>>> {
        self.0.folder.files(number).map_err(io::Error::other)
    }

    fn shards(&self) -> Vec<u32> {
        self.0.folder.held()
    }

    fn shard_files(&self, number: u64) -> io::Result<Option<ShardFiles>> {
        self.0.folder.shard_files(number).map_err(io::Error::other)
    }

    fn merge_everywhere(&self) -> io::Result<()> {
        match self.database() {
            Some(db) => db.replica().map_or(Ok(()), |r| r.merge_everywhere(&db)),
            None => Ok(()),
        }
        .map_err(io::Error::other)
    }

    fn committed_merge(&self) -> Option<u64> {
        self.0.folder.committed_merge()
    }

    fn receive(&self, log: u64) -> io::Result<Box<dyn Incoming<Snapshot>>> {
        let folder = Arc::clone(&self.0.folder);
        folder.receive(log).map_err(io::Error::other)
    }

    fn failed(&self, error: &Error) -> Blob {
        request::write_failure(error).into()
    }

    fn report(&self, report: Report) {
        let text = match report {
            Report::Problem(problem, log) => format!("the shared log: {}", problem.text(log)),
            Report::WrittenBack(name) => format!(
                "the shared log: {name} was missing, and was written back from this server's memory; find out what removed it"
            ),
            Report::Bucket(what, failure) => format!("the bucket: {what}: {failure}"),
            Report::BucketBack => "the bucket answers again".to_owned(),
            Report::Waiting(name) => {
                format!(
                    "waiting until the first server has uploaded the store to the log, as {name}"
                )
            }
            Report::Base(why) => format!(
                "the shared log: {why}; an older base and the groups after it are used, if they are there, until a server \
                 uploads a new one after a merge"
            ),
            Report::Disk(why) => format!("the local store: {why}"),
            Report::Peer(problem) => problem.to_string(),
        };
        (self.0.report)(&text);
    }
}
