//! Errors that reach a user, with the problem, its position and the remedy.

use crate::Holder;
use crate::diagnostic::Diagnostics;
use std::fmt;
use std::path::PathBuf;

/// Position of an error in an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The file, or `<stdin>`.
    pub file: String,
    /// Line, from 1; 0 when unknown.
    pub line: u64,
    /// Column in characters, from 1; 0 when unknown.
    pub column: u64,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
            if self.column > 0 {
                write!(f, ":{}", self.column)?;
            }
        }
        Ok(())
    }
}

/// The resource of a [`Limit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resource {
    /// Memory, in bytes.
    Memory,
    /// Space on a disk, in bytes.
    Disk,
    /// A GPU's memory.
    Device,
    /// Ids and other numbers for terms, rows or snapshots.
    Numbers,
    /// Threads of the system.
    Threads,
    /// Length, nesting or number of parts of a text (a query, an update, a document): only a different text can
    /// succeed.
    Form,
    /// Length of an answer.
    Answer,
    /// Memory of changes that wait for a merge, in bytes.
    Changes,
}

/// A limit that was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// The exhausted resource.
    pub resource: Resource,
    /// The size of the limit; `None` if it is not a number.
    pub limit: Option<u64>,
    /// For memory: the use with the most bytes, and these bytes; `None` if no use dominates.
    pub holder: Option<(Holder, u64)>,
    message: String,
}

impl Limit {
    /// A reached limit of a resource, with a message for people.
    pub fn new(resource: Resource, message: impl Into<String>) -> Self {
        Self {
            resource,
            limit: None,
            holder: None,
            message: message.into(),
        }
    }

    /// Sets the size of the limit.
    #[must_use]
    pub fn of(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Sets the use that has the most bytes, with these bytes.
    #[must_use]
    pub fn held_by(mut self, holder: Option<(Holder, u64)>) -> Self {
        self.holder = holder;
        self
    }

    /// Replaces the message by the result of `message` for it.
    #[must_use]
    pub fn told(mut self, message: impl FnOnce(&str) -> String) -> Self {
        self.message = message(&self.message);
        self
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Every error that a user of the database may get.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Invalid RDF.
    #[error("{at}: {message}{}", .text.as_ref().map(|t| format!("\n  in: {t}")).unwrap_or_default())]
    Syntax {
        /// File, line, column.
        at: Location,
        /// Description of the error, and of the expected syntax.
        message: String,
        /// The offending text, shortened.
        text: Option<String>,
    },
    /// A text that is not valid SPARQL or calls unknown functions, with all errors found in it.
    #[error("{}\n{}", .0.headline(), .0)]
    Sparql(Box<Diagnostics>),
    /// A query that cannot be run as it is; the message includes the position in the query, if there is one.
    #[error("the query cannot be run: {0}")]
    Query(String),
    /// A valid query or request that this version does not support.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// A file or folder could not be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A query that was required to run on a GPU could not run there, for this reason.
    #[error("not supported on a GPU: {0}")]
    Gpu(String),
    /// The format of an RDF document is unknown: it was not given, and the document's name does not indicate it.
    #[error("{name}: cannot tell the RDF format from the name, and no format was given")]
    UnknownFormat {
        /// Name of the document.
        name: String,
    },
    /// A store or a log that another process, or another part of this process, has open for writing.
    #[error("{}: {message}", .path.display())]
    InUse {
        /// Path of the store or the log.
        path: PathBuf,
        /// Description of the process that has it open, and of the remedy.
        message: String,
    },
    /// A file of a store, a log or a backup that is missing, truncated, or has changed since it was written.
    #[error("{}{}: {message}", .file.display(), .offset.map(|o| format!(", byte {o}")).unwrap_or_default())]
    Damaged {
        /// The file, with its folder if that is known.
        file: PathBuf,
        /// The byte at which the damage was noticed, if that is known.
        offset: Option<u64>,
        /// Description of the damage, and of the remedy.
        message: String,
    },
    /// A store, or a file of one, in the format of another version of Jindou.
    #[error(
        "{}: format version {found}, but this jindou reads version {supported}; {}",
        .file.display(),
        if found > supported { "use a newer jindou" } else { "use an older jindou, or load the data again" }
    )]
    Version {
        /// The store's folder, or the file.
        file: PathBuf,
        /// The version found.
        found: u64,
        /// The version that this program reads.
        supported: u64,
    },
    /// The path of a store has something else, or only a part of a store.
    #[error("{}: {message}", .path.display())]
    NotAStore {
        /// The path.
        path: PathBuf,
        /// Description of what was found there, and of the remedy.
        message: String,
    },
    /// A change to a database that cannot be changed, for the reason in the message.
    #[error("{0}")]
    ReadOnly(String),
    /// An argument, option, setting or configuration file is wrong.
    #[error("{0}")]
    Usage(String),
    /// An error of the caller's own code, such as a source, a sink, a function or an index.
    #[error(transparent)]
    External(Box<dyn std::error::Error + Send + Sync>),
    /// The path has no store.
    #[error("no store at {}", .path.display())]
    NoStore {
        /// The path that was searched.
        path: PathBuf,
    },
    /// A store exists already, and replacing it was not requested.
    #[error("a store already exists at {}", .path.display())]
    StoreExists {
        /// Path of the store.
        path: PathBuf,
    },
    /// A fixed limit was reached.
    #[error("{0}")]
    Limit(Limit),
    /// A shared limit is used up by other clients; retrying later may succeed.
    #[error("{0}; try again later")]
    Busy(Limit),
    /// The deadline passed; the duration is the time limit.
    #[error("the query passed its time limit of {0:?}")]
    Timeout(std::time::Duration),
    /// A change that conflicts with the current state.
    #[error("{0}")]
    Conflict(String),
    /// A change whose condition on the current state does not hold.
    #[error("{0}")]
    Precondition(String),
    /// A request with the idempotency key of a different request.
    #[error("{0}")]
    KeyReused(String),
    /// An endpoint named by SERVICE may not be contacted, cannot be reached, or did not answer as required.
    #[error("SERVICE <{endpoint}>: {message}")]
    Service {
        /// IRI of the endpoint.
        endpoint: String,
        /// Description of the failure.
        message: String,
        /// False if the endpoint may not be contacted at all.
        allowed: bool,
    },
    /// A document named by LOAD may not be read, cannot be reached, or is not RDF.
    #[error("LOAD <{iri}>: {message}")]
    Document {
        /// IRI of the document.
        iri: String,
        /// Description of the failure.
        message: String,
        /// False if the document may not be read at all.
        allowed: bool,
    },
    /// A shard of a store could not be read, so there is no answer.
    #[error("shard {shard} of the store could not be read: {message}")]
    Shard {
        /// Number of the shard.
        shard: u32,
        /// Description of the failure.
        message: String,
    },
    /// The available snapshot may be older than the query allows, for the reason in the message.
    #[error("{0}")]
    Stale(String),
    /// Unknown outcome: the update may or may not have been executed. Repeating it with the same idempotency key tells.
    #[error("{0}")]
    OutcomeUnknown(String),
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The reader of the results disconnected (a closed pipe).
    #[error("the reader of the results disconnected")]
    SinkClosed,
    /// A bug in Jindou. The message should be included in a bug report.
    #[error("internal error: {0} (please report it)")]
    Internal(String),
}

impl Error {
    /// An input/output error with the path where it occurred.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io {
            path: path.into(),
            source,
        }
    }

    /// True if a query's memory limit, or that of all queries, was reached.
    #[must_use]
    pub fn is_of_memory(&self) -> bool {
        matches!(self, Self::Limit(l) | Self::Busy(l) if l.resource == Resource::Memory)
    }

    /// A reached limit of a resource, with a message for people.
    pub fn limit(resource: Resource, message: impl Into<String>) -> Self {
        Self::Limit(Limit::new(resource, message))
    }

    /// A store or a log that is in use.
    pub fn in_use(path: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self::InUse {
            path: path.into(),
            message: message.into(),
        }
    }

    /// A damaged file.
    pub fn damaged(file: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self::Damaged {
            file: file.into(),
            offset: None,
            message: message.into(),
        }
    }

    /// A path without a store.
    pub fn not_a_store(path: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self::NotAStore {
            path: path.into(),
            message: message.into(),
        }
    }

    /// An error of the caller's own code, or a message that describes one.
    pub fn external(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::External(source.into())
    }

    /// An endpoint that failed to answer.
    pub fn service(endpoint: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Service {
            endpoint: endpoint.into(),
            message: message.into(),
            allowed: true,
        }
    }

    /// A document that could not be obtained.
    pub fn document(iri: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Document {
            iri: iri.into(),
            message: message.into(),
            allowed: true,
        }
    }

    /// A shard that could not be read.
    pub fn shard(shard: u32, message: impl Into<String>) -> Self {
        Self::Shard {
            shard,
            message: message.into(),
        }
    }

    /// True if the error is about the files at a store's path: they are damaged, in use, of another version, or not a
    /// store.
    #[must_use]
    pub fn is_of_store(&self) -> bool {
        matches!(
            self,
            Self::InUse { .. }
                | Self::Damaged { .. }
                | Self::Version { .. }
                | Self::NotAStore { .. }
        )
    }

    /// A copy of the error, for a second caller that waits for the same work. Errors of the system and of callers,
    /// which cannot be cloned, become errors of the same kind with the same text.
    #[must_use]
    #[allow(clippy::clone_on_copy, reason = "the macro copies fields of any type")]
    pub fn duplicate(&self) -> Self {
        macro_rules! copied {
            ($($variant:ident $(($part:ident))? $({ $($field:ident),* })?,)*) => {
                match self {
                    $(Self::$variant $(($part))? $({ $($field),* })? => {
                        Self::$variant $(($part.clone()))? $({ $($field: $field.clone()),* })?
                    })*
                    Self::Io { path, source } => {
                        let source = std::io::Error::new(source.kind(), source.to_string());
                        Self::io(path, source)
                    }
                    Self::External(e) => Self::external(e.to_string()),
                }
            };
        }
        copied! {
            Syntax { at, message, text },
            Sparql(faults),
            Query(m),
            Unsupported(m),
            Gpu(m),
            UnknownFormat { name },
            InUse { path, message },
            Damaged { file, offset, message },
            Version { file, found, supported },
            NotAStore { path, message },
            ReadOnly(m),
            Usage(m),
            NoStore { path },
            StoreExists { path },
            Limit(limit),
            Busy(limit),
            Timeout(limit),
            Stale(m),
            OutcomeUnknown(m),
            Conflict(m),
            Precondition(m),
            KeyReused(m),
            Service { endpoint, message, allowed },
            Document { iri, message, allowed },
            Shard { shard, message },
            Cancelled,
            SinkClosed,
            Internal(m),
        }
    }

    /// The exhausted resource if the error is a limit; otherwise `None`.
    #[must_use]
    pub fn resource(&self) -> Option<Resource> {
        match self {
            Self::Limit(limit) | Self::Busy(limit) => Some(limit.resource),
            _ => None,
        }
    }
}

/// `Result` with [`enum@Error`] as its default error.
pub type Result<T, E = Error> = std::result::Result<T, E>;
