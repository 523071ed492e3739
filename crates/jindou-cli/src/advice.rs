//! Advice added to errors: the library says what is wrong, and the command which option fixes it.

use jindou::{Error, Resource};

/// Advice on an error, in the command's words.
pub(crate) fn advice_for(error: &Error) -> Option<String> {
    Some(match error {
        Error::Timeout(_) => "raise --timeout or narrow the query".into(),
        Error::Limit(limit) if limit.resource == Resource::Memory => {
            "raise --memory or narrow the query".into()
        }
        Error::Gpu(_) => "omit --gpu on to run it on the CPU".into(),
        Error::UnknownFormat { .. } => "name it with --format nt|nq|ttl|trig|rdf|jsonld".into(),
        Error::StoreExists { .. } => "pass --replace to overwrite it".into(),
        Error::NoStore { path } => {
            format!(
                "create one with `jindou load --store {} FILE…`",
                path.display()
            )
        }
        Error::Service { allowed: false, .. } => "allow an endpoint with --service-allow".into(),
        Error::Document { allowed: false, .. } => {
            "allow folders with --load-from and hosts with --load-allow".into()
        }
        _ => return None,
    })
}
