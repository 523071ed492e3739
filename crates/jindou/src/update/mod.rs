//! SPARQL 1.1 Update, and the other ways to change a database: each call is one transaction.
//!
//! ```text
//! request ─► operations, in order: each reads the snapshot that the one before made
//!         ─► one record for the journal ─► durable ─► published: queries that begin now see it
//! ```
//!
//! | module | job |
//! |---|---|
//! | `writer` | one writer at a time; snapshots wait for the journal and are published in order |
//! | `merge` | changes into the segments of a store directory |
//! | `journal`, `durable` | what makes a transaction last: the seam, and a store directory's log behind it |
//! | `transaction` | changes on their way to the next snapshot, within a memory budget |
//! | `operations` | the operations of a request |
//! | `template` | rows of a pattern → quads to remove and to insert |
//! | `graphs` | the quads of whole graphs |
//! | `open` | a transaction of several calls |
//! | `documents` | LOAD, and quads from any source |
//! | `recluster` | the whole store numbered again, also while it is changed |
//! | `target` | a request that may change one graph only |
//! | `condition` | conditions under which a request is made |
//! | `repeated` | requests with a key, which are done once |
//! | `change` | changes as values, for a store with a shared log |

mod batch;
#[cfg(feature = "replicas")]
mod change;
mod condition;
mod documents;
mod durable;
mod follow;
mod graphs;
mod journal;
mod merge;
mod note;
mod open;
mod operations;
mod recluster;
mod repeated;
#[cfg(feature = "cluster")]
mod servers;
mod shards;
mod target;
mod template;
mod transaction;
mod trust;
mod writer;

pub use batch::Batch;
#[cfg(feature = "replicas")]
pub(crate) use change::{Change, Changed};
pub use condition::{Condition, RevisionSet};
pub use documents::Documents;
#[cfg(feature = "replicas")]
pub(crate) use durable::trust;
pub use durable::{Access, OpenOptions};
pub(crate) use durable::{OpenedStore, WritableStore, alone, check_log, log_in, log_size, micros};
pub(crate) use follow::Followed;
pub use follow::Following;
pub use journal::{Journal, NullJournal, Ticket};
pub(crate) use merge::Merges;
pub use merge::{BackgroundMerges, MergePolicy, MergeStatus};
pub(crate) use note::follows_log;
#[cfg(feature = "replicas")]
pub(crate) use note::note_path;
pub use open::OpenTransaction;
pub use recluster::{RECLUSTER_PHASES, ReclusterOptions, ReclusterReport};
#[cfg(feature = "cluster")]
pub(crate) use servers::open_server;
pub(crate) use shards::{open, open_shards_at};
pub use target::GraphName;
pub(crate) use trust::Held;
pub use trust::{Trust, Verify};
pub(crate) use writer::Writer;

use crate::database::{Database, guarded, watching};
use crate::options::DatasetChoice;
use crate::runtime::Settled;
use jindou_engine::ServiceCaller;
use jindou_model::prefixes::PrefixTable;
use jindou_model::{CancelToken, MemoryBudget, Progress, QuadSource, Result, Scope, setters};
use jindou_parse::{DocumentSource, SkipReport};
use jindou_plan::{Functions, ParsedUpdate, SyntaxOptions, read_update, with_stack};
use jindou_store::Snapshot;
use std::sync::Arc;
use std::time::{Duration, Instant};
pub(crate) use transaction::Transaction;

/// Options of an update. The defaults are those of the database's [`Runtime`](crate::Runtime), without a deadline, LOAD
/// and SERVICE.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpdateOptions {
    /// Threads for patterns, for parsing documents, and for applying changes; `None` means all of the runtime's.
    pub threads: Option<usize>,
    /// Time limit, measured from the call and including the wait for other updates. It no longer applies once the
    /// changes are handed to the journal, since they cannot be taken back.
    pub timeout: Option<Duration>,
    /// Memory for patterns and changes together; `None` means the rest of the runtime's. An update that does not fit is
    /// rejected and changes nothing.
    pub memory: Option<MemoryBudget>,
    /// Cancels the update from another thread, until its changes are handed to the journal.
    pub cancel: CancelToken,
    /// True if patterns see the union of all graphs as their default graph; `None` keeps the setting of the store's
    /// load.
    pub union_default: Option<bool>,
    /// The graphs that patterns read in place of the store's default graph and named graphs (SPARQL 1.1 Protocol
    /// §2.2.3). With it, a request with its own USING or WITH is rejected.
    pub using: Option<DatasetChoice>,
    /// The IRI that relative IRIs are resolved against where the request has no BASE.
    pub base: Option<String>,
    /// The only graph that the request may change. Operations without a graph name refer to it (Graph Store Protocol,
    /// PATCH).
    pub only: Option<GraphName>,
    /// The client for `SERVICE`. Without one, patterns with SERVICE are refused.
    pub service: Option<Arc<dyn ServiceCaller>>,
    /// Functions that the request may call by IRI, in addition to the casts.
    pub functions: Functions,
    /// Source of the documents for `LOAD`. Without one, LOAD is refused.
    pub documents: Option<Arc<dyn DocumentSource>>,
    /// True if LOAD skips malformed statements; [`UpdateReport::skipped`] lists them.
    pub lenient: bool,
    /// True if the common prefixes are known where a request does not declare them. They are by default.
    pub common_prefixes: bool,
    /// True (the default) if the store's prefixes ([`Database::prefixes`]) apply to requests that do not declare them.
    /// They take precedence over the common ones.
    pub store_prefixes: bool,
    /// Prefixes with their IRIs for requests that do not declare them; they take precedence over the store's.
    pub prefixes: Vec<(String, String)>,
    /// The caller's key for the request. A request with a key that was used within the last ten minutes is not executed
    /// and gets the first one's report. Not for calls of an [`OpenTransaction`].
    pub key: Option<String>,
    /// A hash of the request. A request with the key of another request, as shown by this hash, is rejected
    /// ([`Error::KeyReused`]). 0 matches any request.
    ///
    /// [`Error::KeyReused`]: crate::Error::KeyReused
    pub fingerprint: u64,
    /// A condition on the present content of a graph, tested atomically with the update. Not for calls of an
    /// [`OpenTransaction`].
    pub condition: Option<Condition>,
}

impl Default for UpdateOptions {
    fn default() -> Self {
        Self {
            threads: None,
            timeout: None,
            memory: None,
            cancel: CancelToken::default(),
            union_default: None,
            using: None,
            base: None,
            only: None,
            service: None,
            functions: Functions::default(),
            documents: None,
            lenient: false,
            common_prefixes: true,
            store_prefixes: true,
            prefixes: Vec::new(),
            key: None,
            fingerprint: 0,
            condition: None,
        }
    }
}

impl UpdateOptions {
    setters! {
        with_threads: threads = impl Into<Option<usize>>;
        with_timeout: timeout = impl Into<Option<Duration>>;
        with_memory: memory = impl Into<Option<MemoryBudget>>;
        with_cancel: cancel = CancelToken;
        with_union_default: union_default = impl Into<Option<bool>>;
        with_using: using = impl Into<Option<DatasetChoice>>;
        with_only: only = impl Into<Option<GraphName>>;
        with_service: service = Arc<dyn ServiceCaller>;
        with_functions: functions = Functions;
        with_documents: documents = Arc<dyn DocumentSource>;
        with_lenient: lenient = bool;
        with_common_prefixes: common_prefixes = bool;
        with_store_prefixes: store_prefixes = bool;
        with_prefixes: prefixes = Vec<(String, String)>;
        with_key: key = impl Into<Option<String>>;
        with_fingerprint: fingerprint = u64;
        with_condition: condition = impl Into<Option<Condition>>;
    }

    /// Sets [`base`](Self::base).
    #[must_use]
    pub fn with_base(mut self, base: impl Into<String>) -> Self {
        self.base = Some(base.into());
        self
    }

    /// The content that the condition's graph has in a snapshot.
    fn revision_after(&self, snapshot: &Snapshot) -> Result<Option<u64>> {
        match &self.condition {
            Some(condition) => condition::present(snapshot, condition.graph.as_ref()),
            None => Ok(None),
        }
    }

    /// The cancellation token with the deadline counted from now.
    #[must_use]
    pub fn token(&self) -> CancelToken {
        match self.timeout {
            Some(limit) => self.cancel.limited(limit),
            None => self.cancel.clone(),
        }
    }
}

/// Report on an update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpdateReport {
    /// Number of the snapshot after the update ([`Database::snapshot_number`]). An update that changed nothing creates
    /// none, unless it has a key.
    pub snapshot: u64,
    /// Number of operations.
    pub operations: usize,
    /// Quads added, summed over the operations.
    pub added: u64,
    /// Quads removed, summed over the operations.
    pub removed: u64,
    /// The number ([`Database::revision`]) of the content that the graph of [`UpdateOptions::condition`] has after the update;
    /// `None` if it does not exist then.
    pub revision: Option<u64>,
    /// True if the graph had a quad before; set by calls that change one graph by name.
    pub graph_was_there: Option<bool>,
    /// Statements of LOAD's documents that were skipped, with [`UpdateOptions::lenient`]. (Other sources know it themselves:
    /// [`jindou_parse::Sources::skip_report`].)
    pub skipped: Option<SkipReport>,
    /// Time for parsing the request.
    pub parse_time: Duration,
    /// Time spent waiting for other updates.
    pub wait_time: Duration,
    /// Time for evaluating and applying.
    pub run_time: Duration,
    /// Time from handing the changes to the journal to its confirmation that they are durable.
    pub commit_time: Duration,
}

/// A parsed request that is not executed yet.
struct ReadRequest {
    parsed: ParsedUpdate,
    /// Charge for the operations.
    _scope: Scope,
    documents: operations::Loaded,
    parse_time: Duration,
}

impl ReadRequest {
    fn operations(&self) -> usize {
        self.parsed.request.operations.len()
    }

    /// Statements of the documents that were skipped, in the order of the operations.
    fn skipped(&self) -> SkipReport {
        let mut all = SkipReport::default();
        for operation in 0..self.operations() {
            if let Some(Ok(read)) = self.documents.get(&operation) {
                all.add(read.skipped.clone());
            }
        }
        all
    }

    fn run(self, options: &Settled<'_, UpdateOptions>, tx: &mut Transaction) -> Result<()> {
        let (parsed, documents) = (&self.parsed, self.documents);
        with_stack(parsed.depth, || {
            operations::run(&parsed.request, documents, options, tx)
        })?
    }
}

impl Database {
    /// Runs an update request: all of its operations in order, each seeing the results of those before it, or none of
    /// them.
    ///
    /// ```
    /// use jindou::{Database, UpdateOptions};
    ///
    /// let db = Database::in_memory();
    /// let text = "INSERT DATA { <http://e/mars> a <http://example.org/Planet> }";
    /// let report = db.update(text, &UpdateOptions::default())?;
    /// assert_eq!(report.added, 1);
    /// # Ok::<(), jindou::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Query`] for bad SPARQL with its position, [`Error::Conflict`] for an operation that contradicts the
    /// data (CREATE of a graph that exists), [`Error::ReadOnly`] if the database cannot be written, [`Error::Timeout`],
    /// [`Error::Cancelled`], [`Error::Limit`] for memory, [`Error::Io`] when the journal cannot be written,
    /// [`Error::Precondition`] if [`UpdateOptions::condition`] does not hold. In these cases nothing is changed.
    ///
    /// [`Error::Query`]: crate::Error::Query
    /// [`Error::Conflict`]: crate::Error::Conflict
    /// [`Error::ReadOnly`]: crate::Error::ReadOnly
    /// [`Error::Timeout`]: crate::Error::Timeout
    /// [`Error::Cancelled`]: crate::Error::Cancelled
    /// [`Error::Limit`]: crate::Error::Limit
    /// [`Error::Io`]: crate::Error::Io
    /// [`Error::Precondition`]: crate::Error::Precondition
    pub fn update(&self, text: &str, options: &UpdateOptions) -> Result<UpdateReport> {
        self.inner.may_write()?;
        let cancel = options.token();
        let options = &self.inner.runtime.settle_update(options);
        let prefixes = self.prefixes();
        #[cfg(feature = "replicas")]
        if let Some(replica) = self.replica() {
            // Mistakes are found here.
            Self::parse_request(text, options, &prefixes, &cancel)?;
            return replica.change(&Change::Update(text.to_owned()), options, &options.memory);
        }
        let read = Self::read_request(text, options, &prefixes, &cancel)?;
        let (operations, parse_time) = (read.operations(), read.parse_time);
        let skipped = options.lenient.then(|| read.skipped());
        let mut report = self.transact(options, &cancel, operations, |tx| {
            tx.meets(options)?;
            read.run(options, tx)
        })?;
        report.parse_time = parse_time;
        report.skipped = skipped;
        Ok(report)
    }

    /// Parses a request.
    fn parse_request(
        text: &str,
        options: &Settled<'_, UpdateOptions>,
        prefixes: &Arc<PrefixTable>,
        cancel: &CancelToken,
    ) -> Result<(ParsedUpdate, Scope)> {
        let syntax = SyntaxOptions {
            common_prefixes: options.common_prefixes,
            calls: Some(Arc::new(options.functions.clone())),
            prefixes: options.prefixes.clone(),
            table: options.store_prefixes.then(|| Arc::clone(prefixes)),
            ..SyntaxOptions::under(options.base.as_deref())
        };
        let scope = Scope::for_text(text.len(), &options.memory, cancel)?;
        let parsed = guarded(|| {
            scope.try_run(|| {
                let mut parsed = read_update(text, &syntax)?;
                if let Some(only) = &options.only {
                    let depth = parsed.depth;
                    with_stack(depth, || target::restrict(&mut parsed.request, only))??;
                }
                Ok(parsed)
            })
        })?;
        Ok((parsed, scope))
    }

    /// Parses a request and reads the documents of its LOADs.
    fn read_request(
        text: &str,
        options: &Settled<'_, UpdateOptions>,
        prefixes: &Arc<PrefixTable>,
        cancel: &CancelToken,
    ) -> Result<ReadRequest> {
        let started = Instant::now();
        let (parsed, scope) = Self::parse_request(text, options, prefixes, cancel)?;
        let parse_time = started.elapsed();
        let documents =
            guarded(|| Ok(operations::read_documents(&parsed.request, options, cancel)))?;
        Ok(ReadRequest {
            parsed,
            _scope: scope,
            documents,
            parse_time,
        })
    }

    /// Adds all quads of a source in one transaction; with [`UpdateOptions::only`] all must belong to that graph.
    /// Labels of blank nodes are used as the source gives them: [`Self::document_number`] helps to create new ones.
    ///
    /// # Errors
    /// As [`Self::update`], and the source's own errors.
    pub fn insert(
        &self,
        source: &dyn QuadSource,
        options: &UpdateOptions,
        progress: &Progress,
    ) -> Result<UpdateReport> {
        self.inner.takes_changes()?;
        let cancel = options.token();
        let options = &self.inner.runtime.settle_update(options);
        let gathered = self.gathered(source, options.only.as_ref(), options, &cancel, progress)?;
        #[cfg(feature = "replicas")]
        if let Some(replica) = self.replica() {
            let change = gathered.into_change(None, options.only.clone());
            return replica.change(&change, options, &options.memory);
        }
        self.one(options, &cancel, |tx| {
            tx.meets(options)?;
            if let Some(only) = &options.only {
                tx.look_for(&only.target()?);
            }
            gathered.add_to(tx)
        })
    }

    /// Replaces the quads of a graph by those of a source, in one transaction.
    ///
    /// # Errors
    /// As [`Self::insert`]; [`Error::Conflict`](crate::Error::Conflict) for a quad of another graph.
    pub fn replace_graph(
        &self,
        graph: &GraphName,
        source: &dyn QuadSource,
        options: &UpdateOptions,
        progress: &Progress,
    ) -> Result<UpdateReport> {
        self.inner.takes_changes()?;
        let cancel = options.token();
        let options = &self.inner.runtime.settle_update(options);
        let gathered = self.gathered(source, Some(graph), options, &cancel, progress)?;
        #[cfg(feature = "replicas")]
        if let Some(replica) = self.replica() {
            let change = gathered.into_change(Some(graph.clone()), None);
            return replica.change(&change, options, &options.memory);
        }
        self.one(options, &cancel, |tx| {
            tx.meets(options)?;
            let target = graph.target()?;
            tx.look_for(&target);
            graphs::clear(tx, &target)?;
            gathered.add_to(tx)
        })
    }

    /// Removes all quads of a graph. [`UpdateOptions::condition`] does not matter for a named graph that does not exist.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn clear_graph(&self, graph: &GraphName, options: &UpdateOptions) -> Result<UpdateReport> {
        let options = &self.inner.runtime.settle_update(options);
        #[cfg(feature = "replicas")]
        if let Some(replica) = self.replica() {
            graph.target()?;
            return replica.change(&Change::Clear(graph.clone()), options, &options.memory);
        }
        self.one(options, &options.token(), |tx| {
            let target = graph.target()?;
            if tx.look_for(&target) || *graph == GraphName::Default {
                tx.meets(options)?;
            }
            graphs::clear(tx, &target)
        })
    }

    /// Applies a batch of insertions and removals in one transaction.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn apply(&self, batch: &Batch, options: &UpdateOptions) -> Result<UpdateReport> {
        let options = &self.inner.runtime.settle_update(options);
        #[cfg(feature = "replicas")]
        if let Some(replica) = self.replica() {
            let change = Change::Quads {
                changes: batch.changes.clone(),
                replaced: None,
                watched: None,
                prefixes: Vec::new(),
            };
            return replica.change(&change, options, &options.memory);
        }
        self.one(options, &options.token(), |tx| {
            tx.meets(options)?;
            tx.apply(&batch.changes)
        })
    }

    /// A number for [`jindou_parse::SourcesBuilder::documents_from`] that makes a document's blank nodes new. It is
    /// random, so that a store never has a label with it already.
    #[must_use]
    pub fn document_number() -> u64 {
        transaction::LabelGenerator::new().document()
    }

    /// Ok if the database can be changed.
    ///
    /// # Errors
    /// [`Error::ReadOnly`](crate::Error::ReadOnly) with the reason, [`Error::Damaged`](crate::Error::Damaged).
    pub fn is_writable(&self) -> Result<()> {
        self.inner.may_write()
    }

    /// Ok if an update would probably become durable now: tests that the log's storage accepts a small file.
    ///
    /// # Errors
    /// As [`Self::is_writable`]; [`crate::Error::Io`] when the log's disk is full or gone.
    pub fn probe_log(&self) -> Result<()> {
        if self.inner.follows_log() {
            return self.inner.may_write();
        }
        self.inner.writer.journal()?.probe()
    }

    /// The current status of the log; `None` for a database without one.
    #[must_use]
    pub fn log_status(&self) -> Option<jindou_log::Status> {
        self.inner.writer.log_status()
    }

    /// The quads of a source, read before the turn to write.
    fn gathered(
        &self,
        source: &dyn QuadSource,
        only: Option<&GraphName>,
        options: &Settled<'_, UpdateOptions>,
        cancel: &CancelToken,
        progress: &Progress,
    ) -> Result<documents::GatheredQuads> {
        guarded(|| documents::gather(source, only, options, cancel, progress))
    }

    /// A transaction of one operation.
    pub(crate) fn one(
        &self,
        options: &Settled<'_, UpdateOptions>,
        cancel: &CancelToken,
        change: impl FnOnce(&mut Transaction) -> Result<()>,
    ) -> Result<UpdateReport> {
        self.inner.may_write()?;
        self.transact(options, cancel, 1, change)
    }

    fn transact(
        &self,
        options: &Settled<'_, UpdateOptions>,
        cancel: &CancelToken,
        operations: usize,
        change: impl FnOnce(&mut Transaction) -> Result<()>,
    ) -> Result<UpdateReport> {
        let asked = Instant::now();
        let turn = self.inner.writer.turn(cancel)?;
        let begun = Instant::now();
        let before = turn.head().clone();
        if let Some(report) = options.repeated(&before)? {
            // What the first one saw and made is durable then.
            turn.nothing()?;
            return Ok(report);
        }
        let mut tx = Transaction::new(&before, options, &watching(cancel.clone(), &before));
        // Before anything is written: the record states what was found.
        let (head, mut report) = self.inner.made_of(&before, || {
            change(&mut tx)?;
            let (made, outcome) = tx.finish()?;
            let now = made.as_ref().map_or(&before, |(snapshot, _)| snapshot);
            let report = UpdateReport {
                operations,
                added: outcome.added,
                removed: outcome.removed,
                graph_was_there: tx.graph_was_there,
                revision: options.revision_after(now)?,
                ..UpdateReport::default()
            };
            Ok((options.noted(made, &before, &report)?, report))
        })?;
        let ran = Instant::now();
        report.snapshot = match head {
            Some((snapshot, record)) => turn.commit(snapshot, record)?,
            None => turn.nothing()?,
        };
        (report.wait_time, report.run_time) = (begun - asked, ran - begun);
        report.commit_time = ran.elapsed();
        Ok(report)
    }
}
