//! Sources of documents that requests name.

use crate::Format;
use jindou_model::{CancelToken, MemoryBudget, Result};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A document that a request names.
#[derive(Clone, Debug)]
pub enum Document {
    /// A file; its name determines its syntax.
    File(PathBuf),
    /// Its bytes, plain or compressed, their syntax, and the encoding declared with them ([`Format::charset`]).
    Text(Arc<[u8]>, Format, Option<String>),
}

/// Finds the documents that requests name. The source decides which may be read, since a request's text can come from
/// anyone.
pub trait DocumentSource: Send + Sync + fmt::Debug {
    /// Fetches the document of an IRI.
    ///
    /// # Errors
    /// [`Error::Document`] when it may not be read, cannot be reached, or is not RDF; [`Error::Limit`] when the budget has no
    /// room for it; [`Error::Timeout`], [`Error::Cancelled`].
    ///
    /// [`Error::Document`]: jindou_model::Error::Document
    /// [`Error::Limit`]: jindou_model::Error::Limit
    /// [`Error::Timeout`]: jindou_model::Error::Timeout
    /// [`Error::Cancelled`]: jindou_model::Error::Cancelled
    fn fetch(&self, iri: &str, cancel: &CancelToken, memory: &MemoryBudget) -> Result<Document>;
}
