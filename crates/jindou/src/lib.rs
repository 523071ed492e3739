//! **Jindou**: an RDF triple store that answers SPARQL 1.1 by exploring the graph.
//!
//! [`Database`] is the main entry: [`Database::load`] makes a store directory from RDF files or from any
//! [`QuadSource`], [`Database::open`] maps it, [`Database::in_memory`] needs none. [`Database::query`] returns a whole
//! answer, [`Database::cursor`] returns batches of rows that the caller pulls, and [`Database::run`] writes rows to a
//! sink as they come. [`Database::update`] changes the data, one transaction per request.
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
//! Every error is an [`Error`]; when a limit is reached, the error names the exhausted [`Resource`]. Messages are whole
//! sentences for users, and do not mention command-line options.
//!
//! Memory and time are limited for each query and each update ([`QueryOptions::memory`], [`QueryOptions::timeout`]).
//! The memory for parsing and planning is measured by the program's global allocator if that is [`Tracked`]:
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: jindou::Tracked = jindou::Tracked::new();
//! # fn main() {}
//! ```
//!
//! [`Tracked`] may wrap another allocator (`Tracked::over(MiMalloc)`). In a program without it that memory is estimated
//! from the length of the query's text: 256 times the length while it is parsed and planned, and an eighth of that for
//! the plan.
//!
//! Features, all off by default: `gpu` (patterns on a GPU; building needs neither CUDA nor a C++ compiler), `service`
//! (SERVICE over HTTP: the module `service`), `object-store` (backups in an object store: `Objects`),
//! `compression` (loading gzip, bzip2, xz and zstd), `text` (labels, and search by their words: the module `search`).
//! `examples/` has runnable programs.
//!
//! A store's files are mapped into memory. Reading a mapped file that has shrunk or fails raises SIGBUS, which would
//! end the process. So opening the first file installs a signal handler, which turns the failure into an
//! [`Error::Damaged`] of the query or update, with the file's name. Other causes of SIGBUS are passed to the handler
//! that was installed before. A program with its own handler calls [`mapped_files::leave_signal_alone`] first.

mod again;
mod backup;
mod blank_nodes;
pub mod complete;
mod create;
mod cursor;
mod database;
mod default_graph;
mod device;
mod execute;
mod export;
mod formatted;
mod graph_forms;
mod matching;
mod options;
mod planning;
mod prefixes;
mod prepared;
mod profile;
#[cfg(feature = "replicas")]
pub mod replica;
pub mod results;
mod row_batch;
mod runtime;
#[cfg(feature = "text")]
pub mod search;
#[cfg(feature = "service")]
pub mod service;
mod summary;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing;
mod update;
mod values;
mod warm;
mod watch;
mod why;

pub use backup::{
    BACKUP_PHASES, BackupInfo, BackupReport, BackupTarget, PruneReport, RestoreReport, RestoreTo,
    parse_time, time_text,
};
pub use cursor::Cursor;
pub use database::{Checksum, Database, QueryReport};
pub use device::GpuChoice;
pub use export::Export;
pub use jindou_dictionary::index;
pub use jindou_dictionary::index::Indexes;
pub use jindou_engine::{Main, ServiceCaller, ShardMode, ShardWork, TakeRow, WorkerPool, Workers};
pub use jindou_graph::segment::FinderKind;
pub use jindou_log::{Cut as LogCut, File as LogFile, Files, Status as LogStatus};
pub use jindou_log::{Durability, Recovery};
#[cfg(feature = "object-store")]
pub use jindou_log::{Objects, object_store};
pub use jindou_model::diagnostic::Replacement;
pub use jindou_model::mapped as mapped_files;
pub use jindou_model::prefixes::{PrefixOrigin, PrefixPlace, PrefixTable};
#[doc(hidden)]
pub use jindou_model::setters;
pub use jindou_model::term::{
    Parts as TermParts, decode as decode_term, encode as encode_term, parts as term_parts,
};
pub use jindou_model::{
    BySize, CancelToken, Charge, Diagnostic, DiagnosticKind, Diagnostics, Error, Holder, Limit,
    Location, Machine, MemoryBudget, Progress, QuadBatch, QuadSink, QuadSource, Resource, Result,
    Span, Suggestion, TempSpace, Tracked, VertexId, WORTH_TRIMMING, Watch, set_up_allocator, trim,
};
#[doc(hidden)]
pub use jindou_model::{CancellableSource, invariant};
pub use jindou_parse as parse;
pub use jindou_parse::{Document, DocumentSource};
pub use jindou_plan::{
    Argument, COMMON_PREFIXES, Function, Functions, MAX_ARGUMENTS, TextPrefixes, UpdateOperation,
    UpdateRequest, parse as parse_query, parse_update, prefixes_of,
};
pub use jindou_store::{
    CheckReport, Damage, InfoReport, LoadOptions, LoadReport, MergeOptions, MergeReport,
    PHASES as LOAD_PHASES, PredicateInfo, shard::Placement, shard::Sharding,
};
pub use matching::{QuadMatches, QuadPattern};
pub use options::{DatasetChoice, QueryOptions};
pub use planning::{PlannedQuery, QueryForm};
pub use prefixes::prefixes_in_effect;
// Re-exports of other crates whose types appear in signatures: terms and quads, graph formats, IRIs, and parsed
// queries.
pub use jindou_plan::oxiri;
pub use jindou_plan::sparql as algebra;
pub use oxrdf;
pub use oxrdfio::RdfFormat;
pub use prepared::{PreparedQuery, Session, Value};
pub use profile::ProfileNode;
pub use results::{Answer, AnswerSink, ResultFormat, ResultWriter};
pub use row_batch::{Column, RowBatch};
pub use runtime::{Runtime, RuntimeBuilder};
pub use spargebra;
pub use summary::{GraphCounts, Summary};
pub use update::{
    Access, BackgroundMerges, Batch, Condition, Documents, Following, GraphName, MergePolicy,
    MergeStatus, OpenOptions, OpenTransaction, RECLUSTER_PHASES, ReclusterOptions, ReclusterReport,
    RevisionSet, Trust, UpdateOptions, UpdateReport, Verify,
};

pub use warm::{Warm, Warming};
pub use watch::QueryWatch;
pub use why::{Reason, ReasonKind, ReasonPlace};

// For this workspace's tools and tests; not part of the library's stable interface.
#[doc(hidden)]
pub use jindou_store::Snapshot;
#[doc(hidden)]
pub use update::{Journal, NullJournal, Ticket};
