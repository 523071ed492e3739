//! Access to documents that requests or other documents refer to by IRI.

use crate::Format;
use jindou_model::{CancelToken, Error, MemoryBudget, Result};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A document that was fetched by its IRI.
#[derive(Clone, Debug)]
pub enum Document {
    /// A file; its name determines its syntax.
    File(PathBuf),
    /// The bytes, plain or compressed; their syntax; and the encoding that was declared with them
    /// ([`Format::charset`]).
    Text(Arc<[u8]>, Format, Option<String>),
}

/// Fetches documents that requests refer to. The implementation decides which documents may be read, since requests may
/// come from any client.
pub trait DocumentSource: Send + Sync + fmt::Debug {
    /// Fetches the document of an IRI.
    ///
    /// [`Error::Document`] if the document may not be read, cannot be reached, or is not RDF; [`Error::Limit`] if it
    /// does not fit in the budget; [`Error::Timeout`], [`Error::Cancelled`].
    /// room for it; [`Error::Timeout`], [`Error::Cancelled`].
    ///
    /// [`Error::Document`]: jindou_model::Error::Document
    /// [`Error::Limit`]: jindou_model::Error::Limit
    /// [`Error::Timeout`]: jindou_model::Error::Timeout
    /// [`Error::Cancelled`]: jindou_model::Error::Cancelled
    fn fetch(&self, iri: &str, cancel: &CancelToken, memory: &MemoryBudget) -> Result<Document>;
}

/// Contexts of JSON-LD for documents given on a command line: copies in files, by the IRI of the original, and any file
/// by its own IRI.
#[derive(Clone, Debug, Default)]
pub struct ContextFiles {
    named: Vec<(String, PathBuf)>,
}

impl ContextFiles {
    /// Uses these files as copies of the contexts with these IRIs.
    #[must_use]
    pub fn new(named: &[(String, PathBuf)]) -> Self {
        Self {
            named: named.to_vec(),
        }
    }
}

impl DocumentSource for ContextFiles {
    fn fetch(&self, iri: &str, _: &CancelToken, _: &MemoryBudget) -> Result<Document> {
        let named = self.named.iter().find(|(name, _)| name == iri);
        let own = || iri.strip_prefix("file:").and_then(file_path);
        match named.map(|(_, path)| path.clone()).or_else(own) {
            Some(path) if path.is_file() => Ok(Document::File(path)),
            Some(path) => Err(no_context(format!("there is no file {}", path.display()))),
            None => Err(no_context(
                "no --context IRI=FILE names a copy of it".into(),
            )),
        }
    }
}

fn no_context(message: String) -> Error {
    Error::Unsupported(message)
}

/// The path of a `file:` IRI, given what follows the colon: `///path`, `//localhost/path` or `/path`, percent-encoded.
/// `None` for other forms.
#[must_use]
pub fn file_path(rest: &str) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let path = match rest.strip_prefix("//") {
        Some(after) => {
            let at = after.find('/')?;
            let host = &after[..at];
            (host.is_empty() || host.eq_ignore_ascii_case("localhost")).then_some(&after[at..])?
        }
        None => rest,
    };
    let mut bytes = Vec::with_capacity(path.len());
    let mut at = path.bytes();
    while let Some(b) = at.next() {
        match b {
            b'%' => {
                let digits = [at.next()?, at.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
            }
            b'?' | b'#' => break,
            b => bytes.push(b),
        }
    }
    let path = PathBuf::from(std::ffi::OsString::from_vec(bytes));
    path.is_absolute().then_some(path)
}
