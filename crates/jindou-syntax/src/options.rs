//! Choices of a parse, and its limits.

use jindou_model::prefixes::PrefixTable;
use oxiri::Iri;
use std::fmt;
use std::sync::Arc;

/// Choices of a parse.
#[derive(Clone, Debug)]
pub struct Options {
    /// Relative IRIs stand under it where the text has no BASE.
    pub base: Option<Iri<String>>,
    /// Prefixes that are known without a declaration, with their IRIs. A declaration in the text wins.
    pub prefixes: Vec<(String, String)>,
    /// More of them, of the store that is asked. [`Self::prefixes`] win over them.
    pub table: Option<Arc<PrefixTable>>,
    /// Whether the [common prefixes](crate::COMMON_PREFIXES) are known without a declaration.
    pub common_prefixes: bool,
    /// Where codepoint escapes (`\u003F`) are read.
    pub escapes: Escapes,
    /// Functions that may be called by IRI; `None`: all, whatever their names.
    pub calls: Option<Arc<dyn Calls>>,
}

/// Deepest nesting of brackets and calls in a text.
pub const MOST_NESTING: u32 = 256;
/// Deepest algebra: chains of what cannot be balanced (`+`, OPTIONAL, BIND) count as well.
pub(crate) const MOST_DEPTH: u32 = 5_000;
/// Most faults that are reported.
pub(crate) const MOST_FAULTS: usize = 20;

/// Where codepoint escapes are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Escapes {
    /// Everywhere (SPARQL 1.1 §19.2). Those in strings and IRIs never end them.
    #[default]
    Anywhere,
    /// Only in strings and IRIs (SPARQL 1.2).
    InTerms,
}

impl Options {
    /// With relative IRIs under this base, if it is an IRI.
    #[must_use]
    pub fn under(base: Option<&str>) -> Self {
        Self {
            base: base.and_then(|b| Iri::parse(b.to_owned()).ok()),
            ..Self::default()
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            base: None,
            prefixes: vec![],
            table: None,
            common_prefixes: false,
            escapes: Escapes::Anywhere,
            calls: None,
        }
    }
}

/// The functions that may be called by IRI.
pub trait Calls: fmt::Debug + Send + Sync {
    /// The reason why a function with this IRI cannot be called with this number of arguments; `None` if it can.
    fn fault(&self, iri: &str, arguments: usize) -> Option<String>;
}
