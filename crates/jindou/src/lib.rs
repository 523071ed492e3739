//! **Jindou**: an in-memory RDF store that answers SPARQL by exploring the graph.
//!
//! [`Database`] is the front door: [`Database::load`] makes a store directory of RDF files or of any
//! [`QuadSource`], [`Database::open`] maps it, [`Database::in_memory`] needs none. [`Database::query`] gives a whole answer,
//! [`Database::cursor`] batches of rows that the caller pulls, [`Database::run`] writes to a sink as rows come.
//! [`Database::update`] changes it, a request a transaction.
//!
//! ```
//! use jindou::{Database, UpdateOptions};
//!
//! let db = Database::in_memory();
//! let planets = "PREFIX : <http://example.org/> INSERT DATA { :mars a :Planet . :venus a :Planet }";
//! let report = db.update(planets, &UpdateOptions::default())?;
//! assert_eq!(report.added, 2);
//! let answer = db.query("SELECT ?s { ?s a <http://example.org/Planet> } ORDER BY ?s")?;
//! let first = answer.solutions()[0][0].as_ref().map(ToString::to_string);
//! assert_eq!(first.as_deref(), Some("<http://example.org/mars>"));
//! # Ok::<(), jindou::Error>(())
//! ```
//!
//! Every error is an [`Error`]; a limit that was reached says which [`Resource`] there was no more of. Messages are whole
//! sentences for people, and name no options of a program.
//!
//! Features, all off by default: `gpu` (patterns on a GPU; building needs neither CUDA nor a C++ compiler), `service` (SERVICE
//! over HTTP: the module `service`), `object-store` (backups and logs in an object store: `Objects`), `compression` (loading gzip, bzip2, xz and zstd), `cluster` (transport between
//! servers: the module `cluster`). `examples/` has runnable programs.
//!
//! A store's files are mapped. One that shrinks or cannot be read meanwhile raises SIGBUS, which would end the process; so the first
//! file that is opened installs a handler for that signal, and queries and updates get an [`Error::Store`] that names
//! the file. Other faults go to the handler that was there before. A program that handles the signal itself says so
//! first: [`mapped_files::leave_signal_alone`].

mod backup;
mod blank_nodes;
mod cursor;
mod database;
mod default_graph;
mod device;
mod execute;
mod formatted;
#[cfg(feature = "gpu")]
mod gpu;
#[cfg(not(feature = "gpu"))]
#[path = "no_gpu.rs"]
mod gpu;
mod graph_forms;
mod options;
mod prepared;
mod profile;
pub mod results;
mod runtime;
mod summary;
mod update;

pub use backup::{
    BACKUP_PHASES, BackupInfo, BackupReport, BackupTarget, RestoreReport, RestoreTo, parse_time,
    time_text,
};
pub use cursor::{Column, Cursor, RowBatch};
pub use database::{Checksum, Database, PlannedQuery, QueryReport};
pub use device::GpuChoice;
#[cfg(feature = "cluster")]
pub use jindou_cluster as cluster;
pub use jindou_engine::{ServiceCaller, TakeRow, WorkerPool};
#[cfg(feature = "object-store")]
pub use jindou_log::Objects;
pub use jindou_log::{Durability, Recovery, Status as LogStatus};
pub use jindou_log::{File as LogFile, Files};
pub use jindou_mapped as mapped_files;
pub use jindou_model::term::decode as decode_term;
pub use jindou_model::{
    CancelToken, Charge, Diagnostic, DiagnosticKind, Diagnostics, Error, Holder, Limit, Location,
    MemoryBudget, Progress, QuadBatch, QuadSink, QuadSource, Resource, Result, Span, VertexId,
    WORTH_TRIMMING, set_up_allocator, trim,
};
pub use jindou_parse as parse;
pub use jindou_parse::{Document, DocumentSource};
pub use jindou_plan::{
    Argument, COMMON_PREFIXES, Function, Functions, MAX_ARGUMENTS, parse as parse_query,
    parse_update,
};
pub use jindou_scheduler::Workers;
#[cfg(feature = "service")]
pub use jindou_service as service;
pub use jindou_store::{
    CheckReport, Damage, InfoReport, LoadOptions, LoadReport, MergeOptions, MergeReport,
    PHASES as LOAD_PHASES, PredicateInfo, Snapshot, segment::FinderKind,
};
pub use options::{DatasetChoice, QueryOptions};
// Their types stand in signatures: terms and quads, and parsed queries.
pub use oxrdf;
pub use prepared::{PreparedQuery, Session, Value};
pub use profile::ProfileNode;
pub use results::{Answer, AnswerSink, ResultFormat, ResultWriter};
pub use runtime::{Runtime, RuntimeBuilder};
pub use spargebra;
pub use summary::Summary;
pub use update::{
    Access, BackgroundMerges, Batch, Documents, Following, GraphName, Journal, MergePolicy,
    MergeStatus, NullJournal, OpenOptions, RECLUSTER_PHASES, ReclusterOptions, ReclusterReport,
    Ticket, Trust, UpdateOptions, UpdateReport, Verify,
};
