//! Errors that reach a user: what is wrong, where, what to do.

use crate::Holder;
use crate::diagnostic::Diagnostics;
use std::fmt;
use std::path::PathBuf;

/// Where in an input something is wrong. Lines and columns count from 1; columns count characters.
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

/// The resource that a [`Limit`] is one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resource {
    /// Memory, in bytes.
    Memory,
    /// Room on a disk, in bytes.
    Disk,
    /// A GPU's memory.
    Device,
    /// Numbers for terms, rows, snapshots.
    Numbers,
    /// Threads of the system.
    Threads,
    /// Length, nesting or parts of a text (a query, an update, a document): another text is needed.
    Form,
    /// Length of an answer.
    Answer,
    /// Something else, which the message names.
    Other,
}

/// A limit that was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// The exhausted resource.
    pub resource: Resource,
    /// How much there is of it, where that is a number.
    pub limit: Option<u64>,
    /// Of memory: the holder of most of it, with the bytes that it would hold; `None` where none stands out.
    pub holder: Option<(Holder, u64)>,
    message: String,
}

impl Limit {
    /// A limit of a resource, with a sentence for people.
    pub fn new(resource: Resource, message: impl Into<String>) -> Self {
        Self {
            resource,
            limit: None,
            holder: None,
            message: message.into(),
        }
    }

    /// With how much there is.
    #[must_use]
    pub fn of(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }

    /// With the holder of most of it.
    #[must_use]
    pub fn held_by(mut self, holder: Option<(Holder, u64)>) -> Self {
        self.holder = holder;
        self
    }

    /// With another message, made of this one.
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

/// Everything that can go wrong for a user of the database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bad RDF.
    #[error("{at}: {message}{}", .text.as_ref().map(|t| format!("\n  in: {t}")).unwrap_or_default())]
    Syntax {
        /// File, line, column.
        at: Location,
        /// Description of the fault, and of what was expected.
        message: String,
        /// The offending text, shortened.
        text: Option<String>,
    },
    /// A text that is not valid SPARQL or calls unknown functions, with all faults that were found.
    #[error("{}\n{}", .0.headline(), .0)]
    Sparql(Box<Diagnostics>),
    /// A query that cannot be run as it is, with the position in the query inside the message where there is one.
    #[error("the query cannot be run: {0}")]
    Query(String),
    /// Valid, but not supported by this version.
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
    /// A query for which a GPU was demanded did not run there, for this reason.
    #[error("not supported on a GPU: {0}")]
    Gpu(String),
    /// The format of an RDF document is not known: its name does not say it, and nothing else did.
    #[error("{name}: cannot tell the RDF format from the name, and no format was given")]
    UnknownFormat {
        /// Name of the document.
        name: String,
    },
    /// A store directory that cannot be served: foreign, newer, truncated, damaged or in use.
    #[error("{0}")]
    Store(String),
    /// No store at the path.
    #[error("no store at {}", .path.display())]
    NoStore {
        /// The path where one was looked for.
        path: PathBuf,
    },
    /// An existing store that was not to be replaced.
    #[error("a store already exists at {}", .path.display())]
    StoreExists {
        /// Its path.
        path: PathBuf,
    },
    /// A fixed limit was reached.
    #[error("{0}")]
    Limit(Limit),
    /// A shared limit is used up by others; retrying later may succeed.
    #[error("{0}; try again later")]
    Busy(Limit),
    /// The deadline passed; the time limit.
    #[error("the query passed its time limit of {0:?}")]
    Timeout(std::time::Duration),
    /// A change that conflicts with the current state.
    #[error("{0}")]
    Conflict(String),
    /// Another endpoint, which a SERVICE names, may not be asked, cannot be reached, or gave no answer.
    #[error("SERVICE <{endpoint}>: {message}")]
    Service {
        /// Its IRI.
        endpoint: String,
        /// Description of the failure.
        message: String,
        /// Whether it may be asked at all.
        allowed: bool,
    },
    /// A document that a LOAD names may not be read, cannot be reached, or is not RDF.
    #[error("LOAD <{iri}>: {message}")]
    Document {
        /// Its IRI.
        iri: String,
        /// Description of the failure.
        message: String,
        /// Whether it may be read at all.
        allowed: bool,
    },
    /// A shard of a store could not be read, so there is no answer.
    #[error("shard {shard} of the store could not be read: {message}")]
    Shard {
        /// Its number.
        shard: u32,
        /// Description of the failure.
        message: String,
    },
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The reader disconnected (a closed pipe).
    #[error("the reader of the results disconnected")]
    SinkClosed,
    /// A bug in Jindou; the message belongs in the report.
    #[error("internal error: {0} (please report it)")]
    Internal(String),
}

impl Error {
    /// An input/output error with the path it happened on.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io {
            path: path.into(),
            source,
        }
    }

    /// A limit of a resource, with a sentence for people.
    pub fn limit(resource: Resource, message: impl Into<String>) -> Self {
        Self::Limit(Limit::new(resource, message))
    }

    /// An endpoint that failed to answer.
    pub fn service(endpoint: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Service {
            endpoint: endpoint.into(),
            message: message.into(),
            allowed: true,
        }
    }

    /// A document that could not be had.
    pub fn document(iri: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Document {
            iri: iri.into(),
            message: message.into(),
            allowed: true,
        }
    }

    /// The resource that there is not enough of, if that is the reason.
    #[must_use]
    pub fn resource(&self) -> Option<Resource> {
        match self {
            Self::Limit(limit) | Self::Busy(limit) => Some(limit.resource),
            _ => None,
        }
    }
}

/// Shorthand used everywhere.
pub type Result<T, E = Error> = std::result::Result<T, E>;
