//! Advice added to error messages: the library says what is wrong, and the server says what a client can do about it.

use jindou::{Error, Resource};

/// A remedy for the client, or what to ask the server's administrator for; `None` if there is none.
pub(crate) fn for_clients(error: &Error) -> Option<&'static str> {
    match error {
        Error::Timeout(_) => Some("narrow the query"),
        Error::Limit(limit) if limit.resource == Resource::Memory => Some("narrow the query"),
        Error::Service { allowed: false, .. } => {
            Some("the server allows endpoints with its option --service-allow")
        }
        Error::Document { allowed: false, .. } => Some(
            "the server allows folders and hosts to load from with its options --load-from and --load-allow",
        ),
        // An error in a document; texts of queries and updates have other errors.
        Error::Syntax { at, .. } if at.line > 0 => {
            Some("the parameter lenient=true skips malformed statements and lists them")
        }
        _ => None,
    }
}
