//! Options of the reader: limits, and handling of external entities.

use jindou_model::MemoryBudget;

/// Options of a reader. The default limits are far above what documents need, and memory is not charged.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReaderOptions {
    /// Largest nesting depth of elements.
    pub depth: usize,
    /// Largest number of attributes of an element, including declarations of namespaces and defaults.
    pub attributes: usize,
    /// Largest length of a name in bytes.
    pub name: usize,
    /// Largest length in bytes of a tag, comment or processing instruction, which must be in memory as a whole.
    pub markup: usize,
    /// Largest length of the document type declaration in bytes.
    pub doctype: usize,
    /// Number of bytes to which entities may expand in any document. A long document may exceed it, up to
    /// [`ReaderOptions::AMPLIFICATION`] times the bytes read so far.
    pub expansion: u64,
    /// Largest nesting depth of entities.
    pub entities: usize,
    /// True to process namespaces. Otherwise colons in names have no meaning.
    pub namespaces: bool,
    /// True to omit references to entities that may be declared in an external part of the document type, as the
    /// specification allows. Otherwise such references are errors, since text would be lost unnoticed.
    pub skip_external: bool,
    /// The encoding given from outside, as by HTTP's `charset`. It takes precedence over the document's declaration,
    /// but not over a byte order mark (RFC 7303).
    pub encoding: Option<String>,
    /// Budget to which memory beyond some hundred kilobytes is charged.
    pub memory: MemoryBudget,
}

impl ReaderOptions {
    /// Largest ratio of the bytes to which entities expand to the bytes of the document.
    pub const AMPLIFICATION: u64 = 100;
}

impl Default for ReaderOptions {
    fn default() -> Self {
        Self {
            depth: 1000,
            attributes: 1000,
            name: 64 << 10,
            markup: 256 << 20,
            doctype: 4 << 20,
            expansion: 8 << 20,
            entities: 64,
            namespaces: true,
            skip_external: false,
            encoding: None,
            memory: MemoryBudget::unlimited(),
        }
    }
}
