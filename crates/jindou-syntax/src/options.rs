//! Options and limits of the parser.

use jindou_model::prefixes::PrefixTable;
use oxiri::Iri;
use std::fmt;
use std::sync::Arc;

/// Options of the parser.
#[derive(Clone, Debug)]
pub struct ParserOptions {
    /// Base for relative IRIs if the text has no BASE.
    pub base: Option<Iri<String>>,
    /// Prefixes that are known without a declaration, with their IRIs. A declaration in the text takes precedence.
    pub prefixes: Vec<(String, String)>,
    /// Further prefixes that are known without a declaration: those of a store. [`Self::prefixes`] take precedence.
    pub table: Option<Arc<PrefixTable>>,
    /// True if the [common prefixes](crate::COMMON_PREFIXES) are known without a declaration.
    pub common_prefixes: bool,
    /// Where codepoint escapes (`\u003F`) are decoded.
    pub escapes: Escapes,
    /// Functions that may be called by IRI; `None` accepts any IRI.
    pub calls: Option<Arc<dyn Calls>>,
}

/// Deepest nesting of brackets and calls in a text.
pub const MOST_NESTING: u32 = 256;
/// Deepest algebra. It can be deeper than the text nests, by chains that cannot be balanced (`+`, OPTIONAL, BIND).
pub(crate) const MOST_DEPTH: u32 = 5_000;
/// Largest number of errors that are reported.
pub(crate) const MOST_FAULTS: usize = 20;

/// Where codepoint escapes are decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Escapes {
    /// Everywhere (SPARQL 1.1 §19.2). An escape inside a string or IRI never ends it.
    #[default]
    Anywhere,
    /// Only in strings and IRIs (SPARQL 1.2).
    InTerms,
}

impl ParserOptions {
    /// Options with this base IRI, or without one if it is `None` or invalid.
    #[must_use]
    pub fn under(base: Option<&str>) -> Self {
        Self {
            base: base.and_then(|b| Iri::parse(b.to_owned()).ok()),
            ..Self::default()
        }
    }
}

impl Default for ParserOptions {
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
