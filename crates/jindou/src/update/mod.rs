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
//! | `limit` | the limit of the memory of changes that wait for a merge |
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
//! | `change` | changes as values, prepared without a lock and evaluated over a snapshot |
//! | `sink` | where changes are put in order and made durable: here, or in a log that several servers share |

mod batch;
mod change;
mod condition;
mod documents;
pub(crate) mod durable;
mod follow;
mod graphs;
mod journal;
mod limit;
mod merge;
pub(crate) mod note;
mod open;
mod operations;
mod recluster;
mod repeated;
mod shards;
mod sink;
mod target;
mod template;
mod transaction;
mod trust;
mod writer;

pub use batch::Batch;
pub(crate) use change::{Change, QuadChange};
pub use condition::{Condition, RevisionSet};
pub use documents::Documents;
pub use durable::{Access, OpenOptions};
pub(crate) use durable::{OpenedStore, WritableStore, alone, check_log, log_in, log_size, micros};
pub(crate) use follow::Followed;
pub use follow::Following;
pub use journal::{Journal, NullJournal, Ticket};
pub(crate) use limit::ChangesLimit;
pub(crate) use merge::Merges;
pub use merge::{BackgroundMerges, MergePolicy, MergeStatus};
pub(crate) use note::follows_log;
pub use open::OpenTransaction;
pub use recluster::{RECLUSTER_PHASES, ReclusterOptions, ReclusterReport};
pub(crate) use shards::{ShardHost, open, open_shards_at, shard_hub};
pub(crate) use sink::{LocalSink, SinkTurn, UpdateSink, WholeStoreWork};
pub use target::GraphName;
pub(crate) use trust::Held;
pub use trust::{Trust, Verify};
pub(crate) use writer::Writer;
#[cfg(feature = "replicas")]
pub(crate) use {
    change::Changed, limit::pause, merge::FileLayer, shards::open_part, transaction::ChangeCounts,
};

use crate::database::{Database, guarded};
use crate::options::DatasetChoice;
use crate::runtime::Settled;
use jindou_engine::ServiceCaller;
use jindou_model::{CancelToken, MemoryBudget, Progress, QuadSource, Result, setters};
use jindou_parse::{DocumentSource, SkipReport};
use jindou_plan::Functions;
use jindou_store::Snapshot;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
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
        let cancel = options.token();
        let options = &self.inner.runtime.settle_update(options);
        self.submit(Change::Update(text.into()), options, &cancel)
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
        let change = gathered.into_change(None, options.only.clone());
        self.submit(Change::Quads(change), options, &cancel)
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
        let change = gathered.into_change(Some(graph.clone()), None);
        self.submit(Change::Quads(change), options, &cancel)
    }

    /// Removes all quads of a graph. [`UpdateOptions::condition`] does not matter for a named graph that does not exist.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn clear_graph(&self, graph: &GraphName, options: &UpdateOptions) -> Result<UpdateReport> {
        let options = &self.inner.runtime.settle_update(options);
        self.submit(Change::Clear(graph.clone()), options, &options.token())
    }

    /// Applies a batch of insertions and removals in one transaction.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn apply(&self, batch: &Batch, options: &UpdateOptions) -> Result<UpdateReport> {
        let options = &self.inner.runtime.settle_update(options);
        let change = QuadChange {
            changes: Cow::Borrowed(&batch.changes),
            ..QuadChange::default()
        };
        self.submit(Change::Quads(change), options, &options.token())
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
        self.inner.sink.probe(&self.inner)
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
}
