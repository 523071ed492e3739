//! A database as a replica: several servers follow one log in a bucket or a shared directory
//! (docs/internals/replicas.md).
//!
//! ```text
//! change ─► encoded (sink, request) ─► this server's driver ─► forwarded to the writer, unless that is this server
//!        ─► evaluated by the writer (application) ─► put into the log as part of a group
//!        ─► applied by the other servers; the writer adopts its evaluated snapshot ─► published by every server
//!        ─► acknowledged by the connected servers ─► the answer goes back to the server that received the change
//! ```
//!
//! | module | job |
//! |---|---|
//! | `folder` | the store directory of an unsharded replica: merges, uploads and downloads |
//! | `shards` | the store directory of a server that holds some shards; all servers merge at the same snapshot |
//! | `parts` | the snapshots that other servers' queries read at such a server |
//! | `peer_reads` | the transports by which such servers read each other's memory |
//! | `proposals` | changes that a server proposes by itself: the commit of a merge, freeing ids |
//! | `notes` | files that say which groups of the log a store directory contains |
//! | `application` | the store as the driver sees it: evaluates changes and applies groups |
//! | `begin` | creates a log from a store |
//! | `inspect` | lists the contents of a log |
//! | `restore` | restores a store from a log as of a point in time |
//! | `repair` | repairs a log that lost objects |
//! | `sink` | sends a database's changes to the driver |
//! | `request` | encodes changes and their answers |
//! | `wait` | blocks on a future |
//! | `wire` | connections to the other servers |

mod application;
mod begin;
mod folder;
mod inspect;
mod notes;
mod parts;
mod peer_reads;
mod proposals;
mod repair;
mod request;
mod restore;
mod shards;
mod sink;
mod wait;
mod wire;

pub use application::OperatorLog;
pub use begin::begin_log;
pub use inspect::{LogBase, LogBeginning, LogContents, LogServer, inspect};
pub use jindou_cluster::servers::{RequestCounts, ShardFigures};
pub use jindou_replicas::{
    Bucket, Consistency, FiguresNow as LogFigures, Limits as BucketLimits, Settings as LogSettings,
    Status as LogState, Unready,
};
pub use peer_reads::PeerReads;
pub use repair::{LogDamage, Repair, diagnose, repair};
pub use restore::{is_log, restore};
pub use shards::{HeldShards, shards_in};

use crate::database::Database;
use crate::runtime::Runtime;
use crate::update::{
    Access, OpenOptions, OpenedStore, UpdateOptions, UpdateReport, Writer, follows_log,
};
use application::{Inner, LogFolder, Store};
use folder::Folder;
use jindou_cluster::servers::Members;
use jindou_cluster::shards::ShardClient;
use jindou_model::{Error, MemoryBudget, Progress, Result, sync};
use jindou_replicas::{
    Driver, Fresh, Handle, NoPeers, Options, Outcome, Refusal, Request, RequestKey, ServerName, net,
};
use jindou_store::directory::{Manifest, ManifestState};
use jindou_store::shard::Cluster;
use jindou_store::{MergeOptions, Snapshot};
use request::{SentChange, SentOptions};
use shards::ShardFolder;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use wait::wait_for;
use wire::{LogNetwork, STREAMS, Wire};

/// Settings of a replica: the shared log that it follows, and this server's part in it.
#[derive(Clone)]
#[non_exhaustive]
pub struct SharedLog {
    /// The bucket or directory of the log.
    pub bucket: Bucket,
    /// This server's name, unique among the servers of the log.
    pub name: String,
    /// Time limits, intervals and sizes of the protocol.
    pub settings: LogSettings,
    /// Limits of the updates that this server evaluates, for its own clients and for other servers, and the HTTP
    /// clients that they use for SERVICE and LOAD.
    pub updates: UpdateOptions,
    /// Receives messages for the operator.
    pub report: OperatorLog,
    /// Address (HOST:PORT) at which other servers reach this one. Without it, servers exchange updates through the log
    /// only.
    pub peer_address: Option<String>,
    /// Address (HOST:PORT) that this server listens at, if it differs from `peer_address`, for example because of port
    /// forwarding. Has no effect without `peer_address`.
    pub peer_listen: Option<String>,
    /// The shards of a sharded store that this server holds.
    pub shards: HeldShards,
    /// How servers that hold shards of the same store read each other's memory.
    pub peer_reads: PeerReads,
    /// Longest time for which this server keeps the files of a base that a merge replaced, for queries and cursors that
    /// began before the merge.
    pub keep_replaced_bases: Duration,
    /// If true, queries wait until the published snapshot is fresh enough ([`Consistency::Default`]). A server whose
    /// threads must not block sets this to false and calls [`Replica::ready_for`].
    pub queries_wait: bool,
    /// If true, this server never proposes to free the ids of unused terms. For tests that count groups.
    #[doc(hidden)]
    pub keeps_terms: bool,
}

impl SharedLog {
    /// Settings for a server with this name that follows the log in `bucket`; the other fields have their defaults.
    #[must_use]
    pub fn new(bucket: Bucket, name: impl Into<String>) -> Self {
        Self {
            bucket,
            name: name.into(),
            settings: LogSettings {
                update_limit: Duration::from_secs(3600),
                ..LogSettings::default()
            },
            updates: UpdateOptions::default(),
            report: Arc::new(|_| {}),
            peer_address: None,
            peer_listen: None,
            shards: HeldShards::InFolder,
            peer_reads: PeerReads::Off,
            keep_replaced_bases: Duration::from_secs(600),
            queries_wait: true,
            keeps_terms: false,
        }
    }
}

jindou_model::debug_format!(
    SharedLog,
    |this| "SharedLog {{ bucket: {:?}, name: {:?}, .. }}",
    this.bucket,
    this.name
);

/// Time that a client waits for an update's outcome beyond the update's own time limit.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longest time to wait for the driver to end when the database is closed.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(5);

/// A database's connection to the shared log and its other servers.
pub struct Replica {
    name: ServerName,
    handle: Handle<Snapshot>,
    fresh: Fresh,
    folder: Arc<dyn LogFolder>,
    queries_wait: bool,
    runtime: Option<tokio::runtime::Runtime>,
    /// Reason why the driver ended; `None` while it runs.
    ended: Arc<Mutex<Option<String>>>,
}

jindou_model::debug_format!(Replica, |_| "Replica");

/// Records the reason why the driver ended when it is dropped, also by a panic.
struct RecordEnd(Arc<Mutex<Option<String>>>, String);

impl Drop for RecordEnd {
    fn drop(&mut self) {
        *sync::lock(&self.0) = Some(std::mem::take(&mut self.1));
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.handle.stop();
        self.folder.stop();
        if let Some(runtime) = self.runtime.take() {
            // Wait for the driver: before it ends, it writes to the bucket what other servers may lack, such as lost
            // groups.
            let begun = Instant::now();
            while self.ended().is_none() && begun.elapsed() < SHUTDOWN_WAIT {
                std::thread::sleep(Duration::from_millis(5));
            }
            runtime.shutdown_background();
        }
    }
}

impl Replica {
    /// Waits until the published snapshot is fresh enough for a query that arrives now. If it already is, the call
    /// costs an atomic load and a read of the clock.
    ///
    /// # Errors
    /// [`Error::Stale`] if the snapshot does not become fresh in time.
    #[inline]
    pub async fn ready_for(&self, consistency: Consistency) -> Result<()> {
        if consistency == Consistency::Default && self.fresh.is_now() {
            return Ok(());
        }
        self.wait_until_fresh(consistency).await
    }

    #[cold]
    async fn wait_until_fresh(&self, consistency: Consistency) -> Result<()> {
        match self.handle.read(consistency).await {
            Ok(_) => Ok(()),
            Err(refusal) => Err(self.refused(refusal, consistency)),
        }
    }

    fn refused(&self, refusal: Refusal, consistency: Consistency) -> Error {
        Error::Stale(match (self.ended(), refusal) {
            (Some(why), _) => why,
            (None, Refusal::Stale) if consistency == Consistency::Strict => {
                "the log did not answer in time, which consistency=strict asks first; other queries may be answered all the same".into()
            }
            (None, Refusal::Stale) => {
                "neither the log nor the other servers can be reached, so the data here may be too old; consistency=any reads it all the same".into()
            }
            (None, Refusal::Missing(group)) => missing(group),
            (None, Refusal::Behind) => {
                "this server has not caught up with the log; try again, or ask another server".into()
            }
        })
    }

    /// [`Self::ready_for`], blocking.
    ///
    /// # Errors
    /// As [`Self::ready_for`].
    pub fn wait_for(&self, consistency: Consistency) -> Result<()> {
        if consistency == Consistency::Default && self.fresh.is_now() {
            return Ok(());
        }
        wait_for(self.wait_until_fresh(consistency), None).unwrap_or(Ok(()))
    }

    /// Reason why this server no longer follows the log; `None` while it does. The process should end then.
    #[must_use]
    pub fn ended(&self) -> Option<String> {
        sync::lock(&self.ended).clone()
    }

    /// Number of the newest group applied here, and whether queries are answered; `None` once the server no longer
    /// follows the log.
    pub async fn status(&self) -> Option<LogState> {
        self.handle.status().await
    }

    /// Waits, at most for `limit`, until a query would be answered at once. Returns false if the limit passed first, or
    /// if the server no longer follows the log.
    #[must_use]
    pub fn wait_until_ready(&self, limit: Duration) -> bool {
        let begun = Instant::now();
        while !self.fresh.is_now() {
            if begun.elapsed() >= limit || self.ended().is_some() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// This server's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name of the writer, the server that wrote the newest group of the log that is known here; `None` if that is not
    /// known.
    #[must_use]
    pub fn writer(&self) -> Option<Arc<str>> {
        self.handle.writer()
    }

    /// Metrics of the log for the operator.
    #[must_use]
    pub fn figures(&self) -> LogFigures {
        self.handle.figures()
    }

    /// Client that sends requests to the shards of the newest base at all servers, for measurements; `None` for a store
    /// that is not sharded.
    #[doc(hidden)]
    #[must_use]
    pub fn shards(&self) -> Option<Arc<dyn ShardClient>> {
        self.folder.client()
    }

    /// Metrics of each shard of a sharded store; empty for a store without shards.
    #[must_use]
    pub fn shard_figures(&self) -> Vec<ShardFigures> {
        self.folder.shard_figures()
    }

    /// Announces to the other servers that this one is stopping, so that another one becomes the writer.
    pub async fn drain(&self) {
        self.handle.drain().await;
    }

    /// Stops following the log. Pending updates end with an unknown outcome, and waiting queries are refused.
    pub fn stop(&self) {
        self.handle.stop();
    }

    /// Merges the published snapshot into the files. Returns the number of its group; `None` if that failed or a merge
    /// is already running.
    pub(crate) fn save(&self) -> Option<u64> {
        wait_for(self.handle.save(), None).flatten()
    }

    /// Executes a change, on this server or on another one, and waits for its outcome.
    fn send(
        &self,
        change: &SentChange<'_>,
        options: &UpdateOptions,
        memory: &MemoryBudget,
    ) -> Result<UpdateReport> {
        let body = request::write(change, &SentOptions::of(options)?)?;
        memory.charge(body.len() as u64)?;
        let held = body.len() as u64;
        let key = match change {
            // Every server may propose this change. All use the same request key, so it takes effect once.
            SentChange::StartMerge(base) => proposals::key("merge started", *base),
            SentChange::CommitMerge(base, _) => proposals::key("merge committed", *base),
            SentChange::Change(_) | SentChange::Record { .. } | SentChange::FreeTerms(_) => {
                options.request_key().unwrap_or_else(random)
            }
        };
        let request = Request {
            key: RequestKey(key),
            fingerprint: options.fingerprint,
        };
        let asked = Instant::now();
        let limit = options.timeout.map(|limit| limit + PATIENCE);
        let outcome = wait_for(self.handle.update(request, body.into()), limit);
        memory.release(held);
        let unknown = || {
            let mut why = "it is not known whether the update was made".to_owned();
            if let Some(ended) = self.ended() {
                why = format!("{why}: {ended}");
            }
            Error::OutcomeUnknown(why)
        };
        match outcome {
            Some(Outcome::Done {
                number,
                fingerprint,
                report,
            }) => {
                options.is_same_request(fingerprint)?;
                let mut report = request::read_answer(&report)?;
                report.snapshot = number;
                let took = report.parse_time + report.run_time;
                report.commit_time = asked.elapsed().saturating_sub(took);
                Ok(report)
            }
            Some(Outcome::Refused(report)) => Err(request::read_refusal(&report)),
            Some(Outcome::Missing(group)) => Err(match options.key {
                // An earlier attempt with the same request key may be in a group that cannot be read here. Over HTTP
                // every update has a key, since the server creates one if the client sends none. So there even a first
                // attempt is reported as unknown.
                Some(_) => Error::OutcomeUnknown(missing(group)),
                None => Error::Stale(missing(group)),
            }),
            Some(Outcome::Unknown) | None => Err(unknown()),
        }
    }
}

fn missing(group: u64) -> String {
    format!(
        "group {group} of the shared log is missing or damaged, so this server answers no query that could need it and makes no update; \
         its /ready names the object, and `jindou cluster repair` says what can be done"
    )
}

/// The threads that serve or read a log.
fn log_threads() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("jindou-log")
        .enable_all()
        .build()
}

fn random() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    let [a, b] = [0, 1].map(|n| RandomState::new().hash_one(n));
    u128::from(a) << 64 | u128::from(b)
}

/// Opens the store directory of a replica; an empty directory is filled from the log.
///
/// # Errors
/// Those of opening a store, and a message if the log cannot be followed.
pub(crate) fn open(
    dir: &Path,
    log: &SharedLog,
    options: &OpenOptions,
    runtime: &Runtime,
) -> Result<Database> {
    fold_own_log(dir, options, runtime)?;
    let members = Members::new(&log.name, log.peer_reads.transport()?);
    let cluster = Cluster::read(dir)?;
    let is_empty = cluster.is_none() && Manifest::read(dir)? == ManifestState::None;
    let store = Store(Arc::new(Inner {
        folder: take_folder(dir, log, cluster.as_ref(), (options, runtime), &members)?,
        database: OnceLock::new(),
        latest: Mutex::new(None),
        options: log.updates.clone(),
        report: Arc::clone(&log.report),
        last_commit_time: AtomicU64::new(0),
    }));
    let tokio = log_threads().map_err(|e| {
        Error::limit(
            jindou_model::Resource::Threads,
            format!("no threads for the log: {e}"),
        )
    })?;
    let hub = store.0.folder.hub();
    let shards = hub.is_some().then(|| (members, runtime.memory().clone()));
    let starting = start(store.clone(), log.clone(), shards, is_empty);
    // The caller may be a task of another tokio runtime, in which `block_on` panics. So this waits on a channel.
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    tokio.spawn(async move {
        let _ = sender.send(starting.await);
    });
    let (handle, driver) = match receiver.recv() {
        Ok(Ok(started)) => started,
        Ok(Err(why)) => {
            tokio.shutdown_background();
            return Err(Error::Usage(format!("the shared log: {why}")));
        }
        Err(_) => {
            return Err(Error::Internal(
                "the start of the shared log ended early".into(),
            ));
        }
    };
    let snapshot = sync::lock(&store.0.latest).take();
    let snapshot = snapshot.ok_or_else(|| Error::Internal("no snapshot was published".into()))?;
    let trust = store.0.folder.trust(options.verify, &snapshot)?;
    let ended: Arc<Mutex<Option<String>>> = Arc::default();
    let threads = tokio.handle().clone();
    let replica = Replica {
        name: log.name.as_str().into(),
        fresh: handle.fresh().clone(),
        handle,
        folder: Arc::clone(&store.0.folder),
        queries_wait: log.queries_wait,
        runtime: Some(tokio),
        ended: Arc::clone(&ended),
    };
    let why = "changes go to the shared log".into();
    let opened = OpenedStore {
        hub,
        dir: Some(dir.to_owned()),
        ..OpenedStore::new(Writer::new(snapshot, Err(why)), trust)
    };
    let changes_memory = options.changes_memory;
    let db = Database::over_sink(opened, Box::new(replica), runtime.clone(), changes_memory);
    let _ = store.0.database.set(Arc::downgrade(&db.inner));
    threads.spawn(async move {
        let mut ends = RecordEnd(ended, "the server has stopped following the log".to_owned());
        if let Err(stopped) = driver.run().await {
            ends.1 = stopped.to_string();
        }
    });
    proposals::propose_after_merges(&db, !log.keeps_terms)?;
    Ok(db)
}

/// Locks and opens the store directory: the whole store, or some of its shards.
fn take_folder(
    dir: &Path,
    log: &SharedLog,
    cluster: Option<&Cluster>,
    (options, runtime): (&OpenOptions, &Runtime),
    members: &Members,
) -> Result<Arc<dyn LogFolder>> {
    let merge = MergeOptions::default().with_threads(1);
    let has_shards = cluster.is_some() || log.shards != HeldShards::InFolder;
    if !has_shards {
        if log.peer_reads != PeerReads::Off {
            return Err(Error::Usage(
                "--peer-reads is for servers with some shards of a store, and this server has a store that is not sharded: leave it out, or load the data with --shards".into(),
            ));
        }
        let load = runtime.load_options();
        return Ok(Arc::new(Folder::open_locked(
            dir,
            &options.indexes,
            load,
            merge,
        )?));
    }
    if cluster.is_none() && Manifest::read(dir)? != ManifestState::None {
        return Err(Error::Usage(format!(
            "the store at {} is not sharded, so a server cannot have some of its shards; load the data with --shards",
            dir.display()
        )));
    }
    let folder = ShardFolder::open_locked(dir, (log, merge), (options, runtime), members.clone())?;
    Ok(Arc::new(folder))
}

/// The shards that this server serves, and the memory budget for requests of other servers.
type OwnShards = (Members, MemoryBudget);

/// Connects to the other servers, and starts the driver that follows the log.
///
/// # Errors
/// A message for the operator.
async fn start(
    store: Store,
    log: SharedLog,
    shards: Option<OwnShards>,
    is_empty: bool,
) -> Result<(Handle<Snapshot>, Driver<Store, Wire>), String> {
    if is_empty {
        check_choice(&log).await?;
    }
    let mut settings = Options::new(&log.name);
    settings.settings = log.settings.clone();
    if shards.is_some() {
        settings.new_log = None;
    }
    let (peers, incoming) = match log.peer_address {
        None => {
            let (peers, incoming) = NoPeers::connect();
            (Wire::Alone(peers), incoming)
        }
        Some(address) => {
            let limits = net::Limits::for_updates(settings.update_bytes);
            let listen = log.peer_listen.as_deref();
            let mut listener = net::listen(&address, listen, limits).await?;
            settings.addresses = vec![listener.address().to_owned()];
            settings.certificate = Some(listener.certificate());
            let (to, accepted) = mpsc::channel(STREAMS);
            if shards.is_some() {
                listener = listener.with_shards(to);
            }
            let (peers, incoming) = listener.connect(&log.name)?;
            if let Some((members, memory)) = shards {
                let network = Arc::new(LogNetwork(peers.streams()));
                tokio::spawn(members.run(network, accepted, memory));
            }
            (Wire::Connected(peers), incoming)
        }
    };
    jindou_replicas::start(store, log.bucket, peers, incoming, settings).await
}

/// Checks, for a server with an empty folder, that its choice of shards fits the log's newest base.
///
/// # Errors
/// A message for the operator.
async fn check_choice(log: &SharedLog) -> Result<(), String> {
    let Some(identity) = log.bucket.identity().await? else {
        return Ok(());
    };
    // If the bases cannot be read now, the driver reads them later and reports the failure.
    let Ok(bases) = log.bucket.bases(identity.epoch).await else {
        return Ok(());
    };
    let Some(newest) = bases.last() else {
        return Ok(());
    };
    let Ok(base) = log.bucket.base(identity.epoch, *newest).await else {
        return Ok(());
    };
    let count = base.shards.len() as u32;
    match (count, &log.shards) {
        (0, HeldShards::InFolder) => Ok(()),
        (0, _) => Err("its store is not sharded: leave --shards and --part out".into()),
        (_, HeldShards::InFolder) => Err(
            "its store is sharded, and this server's folder is empty: say which shards the server has (--shards or --part)"
                .into(),
        ),
        (_, chosen) => {
            let held = chosen.among(count).map_err(|e| e.to_string())?;
            let has_address = log.peer_address.is_some();
            shards::check_address(count, &held, has_address).map_err(|e| e.to_string())
        }
    }
}

/// Merges a store's own log into its files, before the store follows a shared log for the first time.
fn fold_own_log(dir: &Path, options: &OpenOptions, runtime: &Runtime) -> Result<()> {
    if !dir.exists() || follows_log(dir) || !folder::has_own_log(dir)? {
        return Ok(());
    }
    let mut own = OpenOptions::default()
        .with_access(Access::Write)
        .with_verify(options.verify)
        .with_runtime(runtime.clone());
    own.indexes = options.indexes.clone();
    let db = Database::open_with(dir, &own)?;
    db.merge(&MergeOptions::default(), &Progress::default())?;
    Ok(())
}
