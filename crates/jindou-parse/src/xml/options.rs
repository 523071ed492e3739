//! Limits and ways of reading.

use jindou_model::MemoryBudget;

/// Limits of a reader. By default they are far above documents that people write, and memory is not charged.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReaderOptions {
    /// Largest nesting depth of elements.
    pub depth: usize,
    /// Most attributes of an element, declarations of namespaces and defaults included.
    pub attributes: usize,
    /// Most bytes of a name.
    pub name: usize,
    /// Most bytes of a tag, comment or processing instruction, which are held as a whole.
    pub markup: usize,
    /// Most bytes of the document type declaration.
    pub doctype: usize,
    /// Bytes to which entities may expand, whatever the document's length is. Beyond that, at most
    /// [`ReaderOptions::AMPLIFICATION`] times the bytes read.
    pub expansion: u64,
    /// Largest nesting depth of entities.
    pub entities: usize,
    /// True if names have prefixes, for which namespaces are declared. Otherwise colons are letters.
    pub namespaces: bool,
    /// True if references to entities that only an external part of the document type may declare are left out, as the
    /// specification allows. Otherwise they are errors: text that is not there would be lost without a word.
    pub skip_external: bool,
    /// The encoding given from outside, such as HTTP's `charset`. It takes precedence over the document's declaration,
    /// but not over a byte order mark (RFC 7303).
    pub encoding: Option<String>,
    /// Budget for memory beyond some hundred kilobytes.
    pub memory: MemoryBudget,
}

impl ReaderOptions {
    /// How many times the document's length its entities may become.
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
