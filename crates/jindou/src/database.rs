//! The library's main entry: opening, loading and querying a store.

use crate::create;
use crate::default_graph::DefaultGraph;
use crate::execute::PlanExecution;
use crate::options::QueryOptions;
use crate::planning::PlannedQuery;
use crate::profile::ProfileNode;
use crate::results::{Answer, AnswerSink, CheckedSink, Collector};
use crate::runtime::{Runtime, Settled};
use crate::summary::Summary;
use crate::update::{
    self, ChangesLimit, Followed, Journal, LocalSink, Merges, NullJournal, OpenOptions,
    OpenedStore, ShardHost, Trust, UpdateOptions, UpdateSink, VerificationHandle, WritableStore,
    Writer,
};
use jindou_cluster::shards::ShardClient;
use jindou_dictionary::index::Indexes;
use jindou_engine::{Hub, ShardWork};
use jindou_log::Recovery;
use jindou_model::{CancelToken, Error, Progress, QuadSource, Result};
use jindou_plan::{Form, PlanCache};
use jindou_store::{Base, CheckReport, InfoReport, LoadOptions, LoadReport, Snapshot};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A store that answers SPARQL. Cheap to clone and to share between threads; a query reads the snapshot that
/// was current when it began.
///
/// ```
/// use jindou::parse::Sources;
/// use jindou::{Database, LoadOptions, Progress};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let (file, store) = (folder.path().join("planets.ttl"), folder.path().join("my.store"));
/// std::fs::write(&file, "<http://e/mars> a <http://e/Planet> .").unwrap();
/// let source = Sources::builder().path(&file).build()?;
/// Database::load(&store, &source, &LoadOptions::default(), &Progress::default())?;
///
/// let db = Database::open(&store)?;
/// let answer = db.query("SELECT ?s WHERE { ?s a <http://e/Planet> }")?;
/// assert_eq!(answer.variables(), ["s"]);
/// for row in answer.solutions() {
///     println!("{:?}", row[0]);
/// }
/// # assert_eq!(answer.solutions().len(), 1);
/// # Ok::<(), jindou::Error>(())
/// ```
#[derive(Clone)]
pub struct Database {
    pub(crate) inner: Arc<DatabaseState>,
}

pub(crate) struct DatabaseState {
    pub(crate) writer: Writer,
    pub(crate) merges: Merges,
    pub(crate) changes: ChangesLimit,
    recovery: Option<Recovery>,
    /// The store directory, if it is open for writing.
    pub(crate) disk: Option<Arc<WritableStore>>,
    /// The store directory, if it is open for reading only.
    pub(crate) followed: Option<Mutex<Followed>>,
    trust: VerificationHandle,
    pub(crate) plans: PlanCache,
    pub(crate) runtime: Runtime,
    /// Folder of queries' temporary files; `None` if there is no suitable one.
    temp_dir: Option<Arc<Path>>,
    pub(crate) shards: Option<ShardHost>,
    /// Sends parts of queries to shards; `None` for a store without shards.
    pub(crate) hub: Option<Hub>,
    pub(crate) sink: Box<dyn UpdateSink>,
    #[cfg(feature = "text")]
    pub(crate) texts: Arc<crate::search::TailTexts>,
}

impl DatabaseState {
    /// Ok if the database accepts updates and the store's files are not damaged.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Damaged`].
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_files(&self.writer.published())?;
        self.check_accepts_updates()
    }

    /// Ok if the database accepts updates.
    ///
    /// # Errors
    /// [`Error::ReadOnly`].
    pub(crate) fn check_accepts_updates(&self) -> Result<()> {
        self.sink.is_writable(&self.writer)
    }

    /// Returns an error if damage was found in the store's files.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub(crate) fn check_trusted(&self) -> Result<()> {
        self.trust.0.check()
    }

    /// Returns an error if data read so far from a snapshot's files was invalid. After damage was found, every query
    /// fails until the store is opened again, even if a new base has replaced the damaged files: caches and a device's
    /// memory may contain invalid data.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the file that is damaged, has shrunk or could not be read.
    #[inline]
    pub(crate) fn check_files(&self, snapshot: &Snapshot) -> Result<()> {
        if self.trust.0.damage().is_none() && snapshot.is_whole() {
            return Ok(());
        }
        self.failed_files(snapshot)
    }

    #[cold]
    fn failed_files(&self, snapshot: &Snapshot) -> Result<()> {
        self.trust.0.check()?;
        // An unreachable shard fails this query only, and is not recorded as damage: the next query may reach it.
        snapshot.check_shards()?;
        let base = snapshot.base();
        base.check_files().inspect_err(|e| self.trust.0.found(e))
    }

    /// As [`Self::check_files`], but cheaper, since it misses some kinds of damage ([`Base::check_for_faults`]). For
    /// use during work at whose end [`Self::check_files`] is called.
    ///
    /// # Errors
    /// As [`Self::check_files`].
    pub(crate) fn check_for_faults(&self, snapshot: &Snapshot) -> Result<()> {
        self.trust.0.check()?;
        snapshot.check_shards()?;
        let base = snapshot.base();
        base.check_for_faults()
            .inspect_err(|e| self.trust.0.found(e))
    }

    /// Runs a query over a snapshot into a sink. Checks the snapshot's files before each batch and before the end of
    /// the answer, so that an answer from damaged files never ends as a success.
    ///
    /// # Errors
    /// As [`Self::check_files`], in preference to the query's error, which may be a consequence of the damage;
    /// otherwise the query's error.
    pub(crate) fn checking_files<T>(
        &self,
        snapshot: &Snapshot,
        cancel: &CancelToken,
        sink: &mut dyn AnswerSink,
        run: impl FnOnce(CancelToken, &mut dyn AnswerSink) -> Result<T>,
    ) -> Result<T> {
        let cancel = watching(cancel.clone(), snapshot);
        let check = || self.check_files(snapshot);
        let mut sink = CheckedSink {
            sink,
            check: &check,
            check_for_faults: &|| self.check_for_faults(snapshot),
        };
        // After a success, no check is needed: the sink has checked the files before the answer's end.
        guarded(|| run(cancel, &mut sink)).map_err(|e| check().err().unwrap_or(e))
    }

    /// Computes a value from a snapshot and checks the snapshot's files afterwards.
    ///
    /// # Errors
    /// As [`Self::checking_files`].
    pub(crate) fn computed_from<T>(
        &self,
        snapshot: &Snapshot,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let made = guarded(make);
        self.check_files(snapshot)?;
        made
    }
}

/// Limits of the plan cache: number of plans, and bytes of the plans and their texts.
const PLANS: usize = 4096;
const PLAN_BYTES: usize = 16 << 20;

/// Report on a query: its rows, times and profile.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QueryReport {
    /// Number of rows (or triples) written; 1 for ASK.
    pub rows: u64,
    /// Time for parsing and planning, or for finding the cached plan.
    pub plan_time: Duration,
    /// Time for running, decoding and writing.
    pub run_time: Duration,
    /// The profile as text, step by step, if requested.
    pub profile: String,
    /// The profile as a tree, if requested.
    pub profile_tree: Option<ProfileNode>,
    /// True if the plan was found in the cache.
    pub plan_cached: bool,
}

/// Result of [`Database::checksum`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checksum {
    /// Number of rows of the answer.
    pub rows: u64,
    /// Wrapping sum of the rows' hashes; comparable only on the same store.
    pub checksum: u64,
    /// True if the GPU's kernels ran the query, or the first steps of its patterns; also if the kernels run on the CPU
    /// because of `JINDOU_GPU=shim`. With [`GpuChoice::On`](crate::GpuChoice::On), a plan that the kernels do not
    /// support runs on the CPU.
    pub on_gpu: bool,
    /// Work of each shard; empty unless shards ran patterns of the query.
    pub shards: Vec<ShardWork>,
}

impl Database {
    /// Opens a store directory, in well under a second whatever its size. Files are mapped rather than read, so damage
    /// in them may go unnoticed and give wrong answers; [`OpenOptions::verify`] reads them first.
    ///
    /// # Errors
    /// [`Error::NoStore`]; [`Error::NotAStore`] for a foreign folder; [`Error::Version`]; [`Error::Damaged`] for a missing or truncated file.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(dir, &OpenOptions::default())
    }

    /// Opens a store directory with options. Its log is replayed, which takes seconds for a million changes.
    ///
    /// # Errors
    /// As [`Self::open`]; [`Error::Damaged`] with file and offset when the log is damaged, [`Error::InUse`] when write
    /// access is required and another process has opened the store for writing.
    pub fn open_with(dir: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        let runtime = options.runtime.clone().unwrap_or_default();
        let options = options.clone().with_runtime(runtime.clone());
        let dir = dir.as_ref();
        #[cfg(feature = "replicas")]
        if let Some(log) = &options.log {
            return crate::replica::open(dir, log, &options, &runtime);
        }
        let mut opened = match update::open(dir, &options) {
            Err(Error::NoStore { .. } | Error::NotAStore { .. }) if options.creates() => {
                create::unless_there(dir, &runtime.load_options())?;
                update::open(dir, &options)?
            }
            opened => opened?,
        };
        opened.dir = Some(dir.to_owned());
        Ok(Self::over_files(opened, runtime, options.changes_memory))
    }

    /// Opens all shards of a store in this process, for measurements and tests: shard `home` coordinates queries, and a
    /// chosen transport connects the shards.
    ///
    /// # Errors
    /// As [`Self::open`]; [`Error::NotAStore`] for a store without shards.
    #[doc(hidden)]
    pub fn open_shards_at(
        dir: impl AsRef<Path>,
        options: &OpenOptions,
        home: u32,
        through: impl FnOnce(Arc<dyn ShardClient>) -> Arc<dyn ShardClient>,
    ) -> Result<Self> {
        let dir = dir.as_ref();
        let runtime = options.runtime.clone().unwrap_or_default();
        let options = options.clone().with_runtime(runtime.clone());
        let opened = update::open_shards_at(dir, &options, home, through)?;
        Ok(Self::over(opened, runtime))
    }

    /// Lets an observer see what each thread does for queries over shards; for measurements and tests. Does nothing for
    /// a store without shards.
    #[doc(hidden)]
    pub fn observe_parts(&self, observer: Arc<dyn jindou_engine::Observer>) {
        if let Some(hub) = &self.inner.hub {
            hub.observe(observer);
        }
    }

    fn over(opened: OpenedStore, runtime: Runtime) -> Self {
        Self::over_files(opened, runtime, None)
    }

    fn over_files(opened: OpenedStore, runtime: Runtime, changes_memory: Option<u64>) -> Self {
        let sink = LocalSink {
            is_sharded: opened.shards.is_some(),
        };
        Self::over_sink(opened, Box::new(sink), runtime, changes_memory)
    }

    /// A database that passes its updates to `sink`. `changes_memory` is that of [`OpenOptions`].
    pub(crate) fn over_sink(
        opened: OpenedStore,
        sink: Box<dyn UpdateSink>,
        runtime: Runtime,
        changes_memory: Option<u64>,
    ) -> Self {
        let state = DatabaseState {
            writer: opened.writer,
            recovery: opened.recovery,
            disk: opened.disk,
            followed: opened
                .reader
                .map(|reader| Mutex::new(Followed::new(reader))),
            trust: opened.trust,
            merges: Merges::default(),
            changes: ChangesLimit::new(changes_memory),
            plans: PlanCache::new(PLANS, PLAN_BYTES),
            temp_dir: runtime.temp_dir(opened.dir.as_deref()),
            runtime,
            hub: opened
                .hub
                .or_else(|| opened.shards.as_ref().map(|s| s.hub().clone())),
            shards: opened.shards,
            sink,
            #[cfg(feature = "text")]
            texts: Arc::default(),
        };
        Self {
            inner: Arc::new(state),
        }
    }

    /// A database over one snapshot that writes its updates to a journal. Neither [`Snapshot`] nor [`Journal`] is part
    /// of the library's stable interface.
    #[doc(hidden)]
    #[must_use]
    pub fn with_journal(snapshot: Snapshot, journal: Box<dyn Journal>) -> Self {
        let trust = VerificationHandle(Arc::default());
        let opened = OpenedStore::new(Writer::new(snapshot, Ok(journal)), trust);
        Self::over(opened, Runtime::default())
    }

    /// A read-only database over a snapshot of another database.
    pub(crate) fn to_read(snapshot: Snapshot, runtime: Runtime) -> Self {
        let why = "this is the state of an open transaction, which only the transaction can change";
        let trust = VerificationHandle(Arc::default());
        let opened = OpenedStore::new(Writer::new(snapshot, Err(why.into())), trust);
        Self::over(opened, runtime)
    }

    /// True if the directory is one server's copy of a store that several servers replicate over a shared log. The
    /// directory's files have the updates up to the copy's last merge; opened without the log, the copy is read-only.
    #[must_use]
    pub fn is_copy_of_log(dir: impl AsRef<Path>) -> bool {
        update::follows_log(dir.as_ref())
    }

    /// The state of the verification of the store's files.
    #[must_use]
    pub fn trust(&self) -> &Trust {
        &self.inner.trust.0
    }

    /// Report on the recovery of the store's log when it was opened; `None` without a log.
    #[must_use]
    pub fn recovery(&self) -> Option<&Recovery> {
        self.inner.recovery.as_ref()
    }

    /// An empty database in memory, to be filled by updates ([`Self::update`], [`Self::apply`], [`Self::insert`]). Its
    /// data is lost when the last clone is dropped.
    ///
    /// Its quads are stored in patches, as those of updates are, and not in segments: about 100 bytes per quad, and the
    /// planner knows counts of predicates but no characteristic sets. For many millions of quads load a store instead.
    ///
    /// ```
    /// use jindou::{Answer, Database, UpdateOptions};
    ///
    /// let db = Database::in_memory();
    /// db.update("INSERT DATA { <http://e/mars> a <http://e/Planet> }", &UpdateOptions::default())?;
    /// assert_eq!(db.query("ASK { ?planet a <http://e/Planet> }")?, Answer::Boolean(true));
    /// # Ok::<(), jindou::Error>(())
    /// ```
    #[must_use]
    pub fn in_memory() -> Self {
        let epoch = RandomState::new().hash_one("in memory");
        let base = Base::empty(epoch, false).expect("files without a quad are readable");
        Self::of_snapshot(Snapshot::of_base(base))
    }

    /// A database in memory with the quads of a source, inserted in one transaction within the options' memory.
    ///
    /// ```
    /// use jindou::parse::{Format, Sources};
    /// use jindou::{Database, UpdateOptions};
    ///
    /// let text = "<http://e/mars> <http://e/moons> 2 .";
    /// let source = Sources::builder().text("planets.ttl", text.as_bytes(), Format::Turtle).build()?;
    /// let db = Database::in_memory_from(&source, &UpdateOptions::default())?;
    /// assert_eq!(db.query("SELECT ?n { ?planet <http://e/moons> ?n }")?.solutions().len(), 1);
    /// # Ok::<(), jindou::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::insert`].
    pub fn in_memory_from(source: &dyn QuadSource, options: &UpdateOptions) -> Result<Self> {
        let db = Self::in_memory();
        db.insert(source, options, &Progress::default())?;
        Ok(db)
    }

    /// A database in memory over one snapshot, a type that is not part of the library's stable interface. Its updates
    /// are lost when the process ends.
    #[doc(hidden)]
    #[must_use]
    pub fn of_snapshot(snapshot: Snapshot) -> Self {
        Self::with_journal(snapshot, Box::new(NullJournal))
    }

    /// Loads a source into a store directory, all or nothing; [`Self::open`] then opens it. [`LoadOptions`] can allow
    /// it to replace an existing store, unless another process may be changing that store.
    pub fn load(
        dir: impl AsRef<Path>,
        source: &dyn QuadSource,
        options: &LoadOptions,
        progress: &Progress,
    ) -> Result<LoadReport> {
        let dir = dir.as_ref();
        let _alone = update::lock_store(dir)?;
        guarded(|| jindou_store::load(dir, source, options, progress))
    }

    /// Verifies every byte of a store directory, and every record of its log. Records that a process is just writing at
    /// the log's end, and an end that a crash has torn, do not count as damage.
    ///
    /// # Errors
    /// [`Error::NoStore`] or [`Error::NotAStore`] if there is no store, [`Error::Io`] if its files cannot be read;
    /// damage is part of the report.
    pub fn check(dir: impl AsRef<Path>) -> Result<CheckReport> {
        Self::check_with(dir, &Indexes::new())
    }

    /// As [`Self::check`], and also examines the content of the indexes of these kinds. Of indexes of other kinds only
    /// checksums are verified.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn check_with(dir: impl AsRef<Path>, indexes: &Indexes) -> Result<CheckReport> {
        let mut report = jindou_store::check_with(dir.as_ref(), indexes)?;
        crate::update::check_log(dir.as_ref(), &mut report)?;
        Ok(report)
    }

    /// Counts of a store's current state, including the log's transactions, and sizes of its segments. O(bytes of the
    /// log).
    ///
    /// # Errors
    /// As [`Database::open`]; damage of the log is not an error (see [`Database::check`]).
    pub fn info(dir: impl AsRef<Path>) -> Result<InfoReport> {
        Self::info_with(dir, &Indexes::new())
    }

    /// As [`Self::info`], with the descriptions of the indexes of these kinds.
    ///
    /// # Errors
    /// As [`Self::info`], and for an index whose file is damaged.
    pub fn info_with(dir: impl AsRef<Path>, indexes: &Indexes) -> Result<InfoReport> {
        let mut report = jindou_store::info_with(dir.as_ref(), indexes)?;
        report.log = crate::update::log_size(dir.as_ref(), report.epoch, report.merged)?;
        let reader = OpenOptions::default().with_access(update::Access::Read);
        if report.log[0] > 0
            && let Ok(db) = Self::open_with(dir, &reader)
            && db.snapshot().base().epoch() == report.epoch
        {
            crate::summary::add_log(&db.snapshot(), &mut report);
        }
        Ok(report)
    }

    /// The current snapshot, whose type is not part of the library's stable interface.
    #[doc(hidden)]
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.inner.writer.published().for_new_query().into_owned()
    }

    /// The current snapshot, for a query with this cancel token.
    ///
    /// # Errors
    /// [`Error::Stale`] for a store with a shared log if this server's copy may be older than its limit allows.
    pub(crate) fn snapshot_for(&self, cancel: &CancelToken) -> Result<Snapshot> {
        self.inner.sink.wait_until_fresh()?;
        let snapshot = self.snapshot();
        snapshot.begin(cancel);
        Ok(snapshot)
    }

    /// Number of the current snapshot: the [`UpdateReport::snapshot`](crate::UpdateReport::snapshot) of the last update
    /// that changed something. O(1).
    ///
    /// ```
    /// use jindou::{Database, UpdateOptions};
    ///
    /// let db = Database::in_memory();
    /// assert_eq!((db.snapshot_number(), db.quads()), (0, 0));
    /// let text = "INSERT DATA { <http://e/mars> a <http://example.org/Planet> }";
    /// let report = db.update(text, &UpdateOptions::default())?;
    /// assert_eq!((db.snapshot_number(), db.quads()), (report.snapshot, 1));
    /// # Ok::<(), jindou::Error>(())
    /// ```
    #[must_use]
    pub fn snapshot_number(&self) -> u64 {
        self.number_of(&self.snapshot())
    }

    /// The number of a snapshot as users see it; for a store with a shared log, the number of its newest group.
    pub(crate) fn number_of(&self, snapshot: &Snapshot) -> u64 {
        self.inner.sink.number(snapshot)
    }

    /// True if the store is sharded and all of its shards are open in this process. Such a store is read-only.
    #[must_use]
    pub fn is_sharded(&self) -> bool {
        self.snapshot().as_sharded().is_some()
    }

    /// Number of quads in the current snapshot, in the default graph and in named graphs. O(1).
    #[must_use]
    pub fn quads(&self) -> u64 {
        self.snapshot().quads()
    }

    /// The threads, memory and devices that this database's queries use.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.inner.runtime
    }

    pub(crate) fn settle<'o>(&'o self, options: &'o QueryOptions) -> Settled<'o, QueryOptions> {
        let mut settled = self.inner.runtime.settle(options);
        let folder = self.inner.temp_dir.as_ref();
        settled.files = folder.and_then(|f| self.inner.runtime.temp_files(f, options.temp));
        settled.hub = self.inner.hub.as_ref();
        settled
    }

    /// Statistics of the data, for a description of it. O(predicates + classes + characteristic sets).
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary::from_snapshot(&self.snapshot())
    }

    /// Runs a planned query and computes a checksum of its rows that does not depend on their order. For measuring the
    /// engine without parsing, planning, decoding and writing.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn checksum(&self, query: &PlannedQuery, options: &QueryOptions) -> Result<Checksum> {
        let (plan, snapshot) = (&query.plan, &*query.snapshot.for_new_query());
        let cancel = watching(options.token(), snapshot);
        self.inner.computed_from(snapshot, || {
            let execution = PlanExecution {
                plan,
                snapshot,
                options: &self.settle(options),
                cancel,
            };
            execution.into_checksum()
        })
    }

    /// Answers a query with default options and keeps the whole answer in memory. For large answers or for limits use
    /// [`Self::run`].
    pub fn query(&self, text: &str) -> Result<Answer> {
        self.query_with(text, &QueryOptions::default())
    }

    /// [`Self::query`] with options; the answer's rows are charged to the query's memory.
    pub fn query_with(&self, text: &str, options: &QueryOptions) -> Result<Answer> {
        let memory = self.settle(options).memory;
        let options = options.clone().with_memory(memory.clone());
        let mut collector = Collector::new(memory);
        self.run(text, &options, &mut collector)?;
        Ok(collector.into_answer())
    }

    /// Answers a query into a sink, streaming.
    ///
    /// # Errors
    /// [`Error::Query`] for bad SPARQL, [`Error::Unsupported`] for queries that the planner does not support,
    /// [`Error::Timeout`], [`Error::Cancelled`], [`Error::Limit`] for memory, [`Error::SinkClosed`] if the sink's
    /// reader went away. Rows may have been written before an error.
    pub fn run(
        &self,
        text: &str,
        options: &QueryOptions,
        sink: &mut dyn AnswerSink,
    ) -> Result<QueryReport> {
        let start = Instant::now();
        let cancel = options.token();
        let memory = options.memory.clone();
        // Planning and running share one budget.
        let memory = memory.unwrap_or_else(|| self.settle(options).memory);
        let options = &options.clone().with_memory(memory);
        guarded(|| {
            let planned = self.plan(text, options)?;
            cancel.check()?;
            self.execute_plan(&planned, options, &cancel, start.elapsed(), sink)
        })
    }

    /// As [`Self::run`], for a query that [`Self::plan`] has planned already, over the same dataset.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_planned(
        &self,
        planned: &PlannedQuery,
        options: &QueryOptions,
        sink: &mut dyn AnswerSink,
    ) -> Result<QueryReport> {
        let cancel = options.token();
        guarded(|| self.execute_plan(planned, options, &cancel, Duration::ZERO, sink))
    }

    /// Executes a plan into a sink, with checks of the snapshot's files.
    fn execute_plan(
        &self,
        planned: &PlannedQuery,
        options: &QueryOptions,
        cancel: &CancelToken,
        plan_time: Duration,
        sink: &mut dyn AnswerSink,
    ) -> Result<QueryReport> {
        let start = Instant::now();
        // The plan may have run before, and a shard may have failed then; the new snapshot ignores such earlier
        // failures.
        let (plan, snapshot) = (&*planned.plan, &*planned.snapshot.for_new_query());
        // Only DESCRIBE reads edges that are not part of the plan.
        let described = match &plan.form {
            Form::Describe(dataset) => {
                let union = Self::union_default(snapshot, options);
                DefaultGraph::for_query(snapshot, dataset.as_ref(), union)
            }
            _ => DefaultGraph::Own,
        };
        let settled = self.settle(options);
        let (rows, measured) =
            self.inner
                .checking_files(snapshot, cancel, sink, |cancel, sink| {
                    let execution = PlanExecution {
                        plan,
                        snapshot,
                        options: &settled,
                        cancel,
                    };
                    execution.into_sink(&described, sink)
                })?;
        Ok(QueryReport {
            rows,
            plan_time,
            run_time: start.elapsed(),
            profile: measured.text,
            profile_tree: measured.tree,
            plan_cached: planned.cached,
        })
    }
}

/// A token that is also cancelled when a file of the snapshot, or a shard, has failed. Cancelling it also ends the
/// snapshot's waits for shards.
pub(crate) fn watching(cancel: CancelToken, snapshot: &Snapshot) -> CancelToken {
    snapshot.begin(&cancel);
    cancel.watching(snapshot.watch())
}

// Values read from damaged files may cause panics deep in the engine; `guarded` makes them errors of one query.
pub(crate) use jindou_model::invariant::guarded;
