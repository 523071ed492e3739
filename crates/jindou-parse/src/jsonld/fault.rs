//! Reasons to stop reading a JSON-LD document or a part of it.

use jindou_model::Error;

/// Number of characters of a name that a message quotes.
const LONGEST: usize = 100;

/// A mistake in a document.
#[derive(Debug)]
pub(super) struct Fault {
    /// The byte position of the mistake in the document.
    pub(super) at: u64,
    pub(super) message: String,
}

/// Reason why reading stops.
#[derive(Debug)]
pub(super) enum Stop {
    /// The document has a mistake.
    Bad(Box<Fault>),
    /// A limit is reached, or the sink failed.
    Failed(Error),
    /// The document's bytes cannot be read.
    Unreadable(std::io::Error),
    /// The run was ended by another worker.
    Ended,
}

pub(super) type Step<T> = std::result::Result<T, Stop>;

/// The error for a mistake at a byte position.
#[cold]
pub(super) fn bad(at: u64, message: impl Into<String>) -> Stop {
    Stop::Bad(Box::new(Fault {
        at,
        message: message.into(),
    }))
}

impl From<Error> for Stop {
    fn from(e: Error) -> Self {
        Self::Failed(e)
    }
}

/// A name, shortened for messages.
pub(super) fn shorten(name: &str) -> String {
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}
