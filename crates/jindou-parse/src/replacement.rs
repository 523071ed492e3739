//! Documents that replace stored data while malformed statements are skipped.

use crate::Sources;
use jindou_model::{
    Error, Location, Progress, QuadBatch, QuadSink, QuadSource, Result, prefixes::PrefixPlace,
};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Documents that replace the content of a graph or of a store. Reading them fails if statements were skipped and no
/// statement is left: a document in a different format than declared must not delete the stored data. An empty document
/// may.
pub struct Replacement<'s> {
    source: &'s dyn QuadSource,
    documents: &'s Sources,
    /// Name of the replaced data for errors: "the graph" or "the store".
    replaced: &'static str,
    quads: AtomicU64,
    /// Number of workers that have read their part.
    ended: AtomicUsize,
}

impl<'s> Replacement<'s> {
    /// The `documents`, which are read once, through `source`. `replaced` is "the graph" or "the store".
    pub fn new(source: &'s dyn QuadSource, documents: &'s Sources, replaced: &'static str) -> Self {
        Self {
            source,
            documents,
            replaced,
            quads: AtomicU64::new(0),
            ended: AtomicUsize::new(0),
        }
    }

    fn check(&self) -> Result<()> {
        let skipped = self.documents.skipped();
        if skipped == 0 || self.quads.load(Ordering::Acquire) > 0 {
            return Ok(());
        }
        let Some(first) = self.documents.first_skipped().into_iter().next() else {
            return Ok(());
        };
        let place = match first.at.line {
            0 => String::new(),
            line => format!(" (line {line}, column {})", first.at.column),
        };
        Err(Error::Syntax {
            // The line is omitted, because an error with a line advises to skip bad statements.
            at: Location {
                line: 0,
                column: 0,
                ..first.at
            },
            message: format!(
                "no statement is valid, so {} was left as it was; {skipped} malformed, the first one{place}: {}",
                self.replaced, first.message
            ),
            text: first.text,
        })
    }
}

impl QuadSource for Replacement<'_> {
    fn run(
        &self,
        worker: usize,
        workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        let mut sink = Counting {
            sink,
            quads: &self.quads,
        };
        self.source.run(worker, workers, &mut sink, progress)?;
        match self.ended.fetch_add(1, Ordering::AcqRel) + 1 == workers.max(1) {
            true => self.check(),
            false => Ok(()),
        }
    }

    fn size_hint(&self) -> Option<u64> {
        self.source.size_hint()
    }
}

/// A sink that counts the quads that pass through it.
struct Counting<'a> {
    sink: &'a mut dyn QuadSink,
    quads: &'a AtomicU64,
}

impl QuadSink for Counting<'_> {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        let quads = batch.quads.len() as u64;
        self.quads.fetch_add(quads, Ordering::AcqRel);
        self.sink.batch(batch)
    }

    fn prefix(&mut self, place: PrefixPlace, name: &str, iri: &str) -> Result<()> {
        self.sink.prefix(place, name, iri)
    }
}
