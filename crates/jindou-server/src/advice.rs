//! Advice added to errors: the library says what is wrong, and the program says how to fix it with its own options.

use jindou::{Error, Resource};

/// The remedy for the client, or what to ask of the server's administrator.
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
        // Of a document; texts of queries and updates have errors of their own.
        Error::Syntax { at, .. } if at.line > 0 => {
            Some("the parameter lenient=true skips malformed statements and lists them")
        }
        _ => None,
    }
}
