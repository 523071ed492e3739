//! Options of the parser, and its limits.

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
    /// More of them, of the store that is asked. [`Self::prefixes`] win over them.
    pub table: Option<Arc<PrefixTable>>,
    /// True if the [common prefixes](crate::COMMON_PREFIXES) are known without a declaration.
    pub common_prefixes: bool,
    /// Places in which codepoint escapes (`\u003F`) are decoded.
    pub escapes: Escapes,
    /// Functions that may be called by IRI; `None` allows all names.
    pub calls: Option<Arc<dyn Calls>>,
}

/// Deepest nesting of brackets and calls in a text.
pub const MOST_NESTING: u32 = 256;
/// Deepest algebra: chains that cannot be balanced (`+`, OPTIONAL, BIND) count as well.
pub(crate) const MOST_DEPTH: u32 = 5_000;
/// Most errors that are reported.
pub(crate) const MOST_FAULTS: usize = 20;

/// Places in which codepoint escapes are decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Escapes {
    /// Everywhere (SPARQL 1.1 §19.2). An escape inside a string or IRI never ends it.
    #[default]
    Anywhere,
    /// Only in strings and IRIs (SPARQL 1.2).
    InTerms,
}

impl ParserOptions {
    /// Options with this base for relative IRIs, if it is a valid IRI.
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
