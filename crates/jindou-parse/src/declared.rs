//! Passes the prefixes that a document declares to the sink: each name once, with its first IRI, and hardly more than a
//! store keeps.

use jindou_model::prefixes::{LONGEST_NAMESPACE, LONGEST_PREFIX, MOST_PREFIXES};
use jindou_model::{QuadSink, Result};
use std::collections::HashSet;

/// A parser's table of prefixes is examined whenever it has grown, as long as it has at most this many entries. After
/// that it must have grown by an eighth, so that a document that consists of declarations is read in linear time.
const FEW: usize = 64;

/// The prefixes of a document that were passed to the sink so far.
pub(crate) struct Declared {
    document: u64,
    names: HashSet<Box<str>>,
    /// Size of the parser's table from which on it is examined again.
    due: usize,
}

impl Declared {
    pub(crate) fn new(document: u64) -> Self {
        Self {
            document,
            names: HashSet::new(),
            due: 1,
        }
    }

    /// True if a parser's table of this size must be examined.
    #[inline]
    pub(crate) fn is_due(&self, size: usize) -> bool {
        size >= self.due
    }

    /// Passes a declaration to the sink, unless its name was declared before.
    pub(crate) fn one(&mut self, name: &str, iri: &str, sink: &mut dyn QuadSink) -> Result<()> {
        // One prefix more than a store keeps is passed on, so that the store notices that there are too many.
        let full = self.names.len() > MOST_PREFIXES;
        let too_long = name.len() > LONGEST_PREFIX || iri.len() > LONGEST_NAMESPACE;
        if full || too_long || self.names.contains(name) {
            return Ok(());
        }
        let place = [self.document, self.names.len() as u64];
        self.names.insert(name.into());
        sink.prefix(place, name, iri)
    }

    /// Passes the new prefixes in a parser's table to the sink.
    #[cold]
    pub(crate) fn all<'p>(
        &mut self,
        table: impl Iterator<Item = (&'p str, &'p str)>,
        sink: &mut dyn QuadSink,
    ) -> Result<()> {
        let mut size = 0;
        let mut new: Vec<(&str, &str)> = Vec::new();
        for (name, iri) in table {
            size += 1;
            if !self.names.contains(name) {
                new.push((name, iri));
            }
        }
        // The table is a hash map, whose order differs between runs, so the prefixes are sorted.
        new.sort_unstable();
        for (name, iri) in new {
            self.one(name, iri, sink)?;
        }
        self.due = match size {
            _ if self.names.len() > MOST_PREFIXES => usize::MAX,
            few if few < FEW => few + 1,
            many => many + many / 8,
        };
        Ok(())
    }
}
