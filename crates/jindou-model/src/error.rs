//! Errors that reach a user: what is wrong, where, what to do.

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
    /// A text that is not SPARQL, with all faults that were found.
    #[error("not valid SPARQL\n{0}")]
    Sparql(Box<Diagnostics>),
    /// A query that cannot be run as it is, with the position in the query inside the message where there is one.
    #[error("the query is not valid SPARQL: {0}")]
    Query(String),
    /// Valid, but not done by this version.
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
    /// A store directory that cannot be served: foreign, newer, truncated, damaged or in use.
    #[error("{0}")]
    Store(String),
    /// A limit was reached (memory, time, ids, disk room); the message names it and the way round.
    #[error("{0}")]
    Limit(String),
    /// There is no room now that others have what they share; the message says which.
    #[error("{0}")]
    Busy(String),
    /// The deadline passed.
    #[error("the query passed its time limit of {0:?}; raise --timeout or narrow the query")]
    Timeout(std::time::Duration),
    /// A change that does not go with what is there.
    #[error("{0}")]
    Conflict(String),
    /// Another endpoint, which a SERVICE names, may not be asked, cannot be reached, or gave no answer.
    #[error("SERVICE <{endpoint}>: {message}")]
    Service {
        /// Its IRI.
        endpoint: String,
        /// Description of the failure.
        message: String,
    },
    /// A document that a LOAD names may not be read, cannot be reached, or is no RDF.
    #[error("LOAD <{iri}>: {message}")]
    Document {
        /// Its IRI.
        iri: String,
        /// Description of the failure.
        message: String,
    },
    /// Somebody cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The receiving end went away (a closed pipe).
    #[error("the reader of the results went away")]
    SinkClosed,
    /// A bug of ours; the message is for the report.
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
}

/// Shorthand used everywhere.
pub type Result<T, E = Error> = std::result::Result<T, E>;
