//! Errors with their positions.

use std::fmt;
use thiserror::Error as Thiserror;

/// A position in a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
    /// Byte offset in the document, from 0. In multi-byte encodings other than UTF-8 and UTF-16, the offset in its text
    /// in UTF-8.
    pub offset: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// An error in a document: it is not well-formed XML with namespaces, or exceeds a limit of the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where the error is.
    pub at: Position,
    /// Description of the error, and of what was expected.
    pub message: String,
    /// The line of the error, as far as it was still in memory.
    pub line: String,
    /// Byte position of the error in that line.
    pub at_in_line: usize,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}

/// Reason why reading ended.
#[derive(Debug, Thiserror)]
#[non_exhaustive]
pub enum Error {
    /// The document is not well-formed.
    #[error("{0}")]
    Syntax(Box<Fault>),
    /// The bytes could not be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The memory budget is exhausted.
    #[error("{0}")]
    Limit(jindou_model::Error),
}

/// Result of reading.
pub type Result<T> = std::result::Result<T, Error>;
