//! Advice beside errors: the library says what is wrong, the command which of its options mends it.

use jindou::{Error, Resource};

/// Advice on an error, in the command's words.
pub(crate) fn of(error: &Error) -> Option<String> {
    Some(match error {
        Error::Timeout(_) => "raise --timeout or narrow the query".into(),
        Error::Limit(limit) if limit.resource == Resource::Memory => {
            "raise --memory or narrow the query".into()
        }
        Error::Gpu(_) => "leave out --gpu on to run it on the CPU".into(),
        Error::UnknownFormat { .. } => "say it with --format nt|nq|ttl|trig|rdf|jsonld".into(),
        Error::StoreExists { .. } => "--replace loads over it".into(),
        Error::NoStore { path } => {
            format!("`jindou load --store {} FILE…` makes one", path.display())
        }
        Error::Service { allowed: false, .. } => {
            "--service-allow names those that may be asked".into()
        }
        Error::Document { allowed: false, .. } => {
            "--load-from names folders and --load-allow hosts to load from".into()
        }
        _ => return None,
    })
}
