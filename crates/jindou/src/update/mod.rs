//! SPARQL 1.1 Update, and the other ways to change a database: each call is one transaction.
//!
//! ```text
//! request ─► operations, in order: each reads the snapshot that the previous one made
//!         ─► one record for the journal ─► durable ─► published: later queries see the changes
//! ```
//!
//! | module | job |
//! |---|---|
//! | `writer` | admits one writer at a time; publishes snapshots in order once the journal has confirmed them |
//! | `merge` | writes the changes into the segments of a store directory |
//! | `limit` | limits the memory of unmerged changes |
//! | `journal`, `durable` | the interface that makes transactions durable; a store directory's log behind it |
//! | `transaction` | collects changes and applies them to the next snapshot, within a memory budget |
//! | `operations` | executes the operations of a request |
//! | `template` | rows of a pattern → quads to remove and to insert |
//! | `graphs` | finds and removes the quads of whole graphs |
//! | `open` | a transaction of several calls |
//! | `documents` | reads documents for LOAD, and quads from any other source |
//! | `recluster` | writes a new base with new ids, while updates continue |
//! | `target` | restricts a request to one graph |
//! | `condition` | preconditions of a request |
//! | `repeated` | idempotency: a request with a known key is not executed again |
//! | `change` | changes as values, parsed without a lock and then evaluated over a snapshot |
//! | `sink` | orders changes and makes them durable: in this process, or in a log that several servers share |

mod background;
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

pub(crate) use background::{Background, Stop, spawn};
pub use batch::Batch;
pub(crate) use change::{Change, QuadChange};
pub use condition::{Condition, RevisionSet};
pub use documents::Documents;
pub use durable::{Access, OpenOptions};
pub(crate) use durable::{
    OpenedStore, WritableStore, check_log, lock_store, log_in, log_size, micros,
};
pub(crate) use follow::Followed;
pub use follow::Following;
pub use journal::{Journal, NullJournal, Ticket};
pub(crate) use limit::ChangesLimit;
pub(crate) use merge::Merges;
pub use merge::{BackgroundMerges, MergePolicy, MergeStatus};
pub(crate) use note::follows_log;
pub use open::OpenTransaction;
pub use recluster::{RECLUSTER_PHASES, ReclusterOptions, ReclusterReport};
pub(crate) use shards::{ShardHost, open, open_shards_at};
pub(crate) use sink::{LocalSink, OpenSinkTransaction, UpdateSink, WholeStoreWork};
pub use target::GraphName;
pub(crate) use trust::VerificationHandle;
pub use trust::{Trust, Verify};
pub(crate) use writer::Writer;
#[cfg(feature = "replicas")]
pub(crate) use {
    change::Changed,
    limit::pause,
    merge::FileLayer,
    shards::{open_part, shard_hub},
    transaction::ChangeCounts,
};

use crate::database::{Database, guarded};
use crate::options::DatasetChoice;
use jindou_engine::ServiceCaller;
use jindou_model::{CancelToken, MemoryBudget, Progress, QuadSource, Result, options_struct};
use jindou_parse::{DocumentSource, SkipReport};
use jindou_plan::Functions;
use jindou_store::Snapshot;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
pub(crate) use transaction::Transaction;

options_struct! {
    /// Options of an update. By default, the limits are those of the database's [`Runtime`](crate::Runtime), there is
    /// no deadline, and LOAD and SERVICE are refused.
    #[derive(Clone, Debug)]
    #[non_exhaustive]
    pub struct UpdateOptions {
        /// Threads for patterns, for parsing documents, and for applying changes; `None` means all threads of the
        /// runtime.
        pub threads: Option<usize> = None, with_threads(impl Into<Option<usize>>);
        /// Time limit, measured from the call and including the wait for other updates. The limit no longer applies
        /// once the changes are handed to the journal, since they cannot be undone then.
        pub timeout: Option<Duration> = None, with_timeout(impl Into<Option<Duration>>);
        /// Memory budget for patterns and changes together; `None` means the runtime's remaining memory. An update that
        /// needs more is rejected and changes nothing.
        pub memory: Option<MemoryBudget> = None, with_memory(impl Into<Option<MemoryBudget>>);
        /// Cancels the update from another thread, until its changes are handed to the journal.
        pub cancel: CancelToken = CancelToken::default(), with_cancel(CancelToken);
        /// If true, patterns see the union of all graphs as their default graph; `None` means the setting with which
        /// the store was loaded.
        pub union_default: Option<bool> = None, with_union_default(impl Into<Option<bool>>);
        /// The graphs that patterns read instead of the store's default graph and named graphs (SPARQL 1.1 Protocol
        /// 2.2.3). If set, a request with its own USING or WITH is rejected.
        pub using: Option<DatasetChoice> = None, with_using(impl Into<Option<DatasetChoice>>);
        /// Base IRI for relative IRIs of a request without BASE.
        pub base: Option<String> = None;
        /// The only graph that the request may change. Operations without a graph name refer to it (Graph Store
        /// Protocol, PATCH).
        pub only: Option<GraphName> = None, with_only(impl Into<Option<GraphName>>);
        /// The client for `SERVICE`. Without one, patterns with SERVICE are refused.
        pub service: Option<Arc<dyn ServiceCaller>> = None, with_service(Arc<dyn ServiceCaller>);
        /// Functions that the request may call by IRI, in addition to the casts.
        pub functions: Functions = Functions::default(), with_functions(Functions);
        /// Source of the documents for `LOAD`. Without one, LOAD is refused.
        pub documents: Option<Arc<dyn DocumentSource>> = None, with_documents(Arc<dyn DocumentSource>);
        /// If true, LOAD skips malformed statements, and [`UpdateReport::skipped`] lists them.
        pub lenient: bool = false, with_lenient(bool);
        /// If true (the default), common prefixes such as `rdf:` are known in requests that do not declare them.
        pub common_prefixes: bool = true, with_common_prefixes(bool);
        /// If true (the default), the store's prefixes ([`Database::prefixes`]) apply to requests that do not declare
        /// them. They take precedence over the common prefixes.
        pub store_prefixes: bool = true, with_store_prefixes(bool);
        /// Prefixes and their IRIs for requests that do not declare them. They take precedence over the store's
        /// prefixes.
        pub prefixes: Vec<(String, String)> = Vec::new(), with_prefixes(Vec<(String, String)>);
        /// Idempotency key. A request whose key was used within the last ten minutes is not executed; it gets the
        /// report of the first request with that key. Ignored by calls of an [`OpenTransaction`].
        pub key: Option<String> = None, with_key(impl Into<Option<String>>);
        /// A hash of the request. If a request has the same key but another hash than an earlier request, it is
        /// rejected ([`Error::KeyReused`]). 0 matches any request.
        ///
        /// [`Error::KeyReused`]: crate::Error::KeyReused
        pub fingerprint: u64 = 0, with_fingerprint(u64);
        /// A condition on the present content of a graph, tested atomically with the update. Ignored by calls of an
        /// [`OpenTransaction`].
        pub condition: Option<Condition> = None, with_condition(impl Into<Option<Condition>>);
    }
}

impl UpdateOptions {
    /// Sets [`base`](Self::base).
    #[must_use]
    pub fn with_base(mut self, base: impl Into<String>) -> Self {
        self.base = Some(base.into());
        self
    }

    /// Revision that the condition's graph has in a snapshot; `None` without a condition, or if the graph does not
    /// exist.
    fn revision_after(&self, snapshot: &Snapshot) -> Result<Option<u64>> {
        match &self.condition {
            Some(condition) => condition::revision_if_exists(snapshot, condition.graph.as_ref()),
            None => Ok(None),
        }
    }

    /// The cancel token, with a deadline if a time limit is set. The time starts now.
    #[must_use]
    pub fn token(&self) -> CancelToken {
        match self.timeout {
            Some(limit) => self.cancel.limited(limit),
            None => self.cancel.clone(),
        }
    }
}

/// Report on an executed update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpdateReport {
    /// Number of the snapshot after the update ([`Database::snapshot_number`]). An update that changes nothing creates
    /// no snapshot, unless it has a key.
    pub snapshot: u64,
    /// Number of operations in the request.
    pub operations: usize,
    /// Quads added, summed over the operations.
    pub added: u64,
    /// Quads removed, summed over the operations.
    pub removed: u64,
    /// The revision ([`Database::revision`]) of the graph of [`UpdateOptions::condition`] after the update; `None` if
    /// the graph does not exist then.
    pub revision: Option<u64>,
    /// True if the graph had a quad before the update; set by calls that change one graph by name.
    pub graph_was_there: Option<bool>,
    /// Statements that LOAD skipped because of [`UpdateOptions::lenient`]. Other sources report theirs with
    /// [`jindou_parse::Sources::skip_report`].
    pub skipped: Option<SkipReport>,
    /// Time for parsing the request.
    pub parse_time: Duration,
    /// Time spent waiting for other updates.
    pub wait_time: Duration,
    /// Time for evaluating the operations and applying the changes.
    pub run_time: Duration,
    /// Time from handing the changes to the journal until it confirms that they are durable.
    pub commit_time: Duration,
}

impl Database {
    /// Runs an update request atomically: executes its operations in order, each seeing the results of the previous
    /// ones.
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
    /// [`Error::Query`] for invalid SPARQL, with its position; [`Error::Conflict`] for an operation that contradicts
    /// the data (CREATE of a graph that exists); [`Error::ReadOnly`] if the database cannot be written;
    /// [`Error::Timeout`]; [`Error::Cancelled`]; [`Error::Limit`] for memory; [`Error::Io`] if the journal cannot be
    /// written; [`Error::Precondition`] if [`UpdateOptions::condition`] does not hold. In all cases nothing is changed.
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

    /// Adds all quads of a source in one transaction. With [`UpdateOptions::only`], all quads must belong to that
    /// graph. Blank node labels are used as the source gives them; [`Self::document_number`] helps to create new
    /// labels.
    ///
    /// # Errors
    /// As [`Self::update`], and the source's own errors.
    pub fn insert(
        &self,
        source: &dyn QuadSource,
        options: &UpdateOptions,
        progress: &Progress,
    ) -> Result<UpdateReport> {
        self.insert_into(None, source, options, progress)
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
        self.insert_into(Some(graph), source, options, progress)
    }

    /// Removes all quads of a graph. For a named graph that does not exist, [`UpdateOptions::condition`] is not tested.
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

    /// A random number for [`jindou_parse::SourcesBuilder::documents_from`] that makes a document's blank nodes
    /// distinct from all others: the store contains no label with this number.
    #[must_use]
    pub fn document_number() -> u64 {
        transaction::LabelGenerator::new().document()
    }

    /// Ok if the database can be changed.
    ///
    /// # Errors
    /// [`Error::ReadOnly`](crate::Error::ReadOnly) with the reason, [`Error::Damaged`](crate::Error::Damaged).
    pub fn is_writable(&self) -> Result<()> {
        self.inner.check_writable()
    }

    /// Ok if an update would probably become durable now. Tests that the local log's storage accepts a small file; on a
    /// replica, tests only that the database is undamaged and takes updates.
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

    /// Adds all quads of a source, which are read before the transaction acquires the right to write. They replace those
    /// of the graph `replaced`, if there is one.
    fn insert_into(
        &self,
        replaced: Option<&GraphName>,
        source: &dyn QuadSource,
        options: &UpdateOptions,
        progress: &Progress,
    ) -> Result<UpdateReport> {
        self.inner.check_accepts_updates()?;
        let cancel = options.token();
        let options = &self.inner.runtime.settle_update(options);
        let only = replaced.or(options.only.as_ref());
        let read = || documents::read_quads(source, only, options, &cancel, progress);
        let gathered = guarded(read)?;
        let reported = options.only.clone().filter(|_| replaced.is_none());
        let change = gathered.into_change(replaced.cloned(), reported);
        self.submit(Change::Quads(change), options, &cancel)
    }
}
