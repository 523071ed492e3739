//! Batches of some thousands of quads, which a parser or generator passes to a loader. Terms are spans of one buffer,
//! so that no term costs an allocation or a virtual call.

use crate::prefixes::PrefixPlace;
use crate::{CancelToken, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// A term's canonical bytes ([`crate::term`]) inside [`QuadBatch::bytes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Length in bytes; 0 in the graph position means the default graph.
    pub len: u32,
}

/// A batch of quads. `bytes` may be the input text itself: an N-Triples IRI without its closing `>` and a plain literal
/// without its closing quote are canonical bytes already, so most terms need no copy. Other terms (with escapes or
/// datatypes) are appended after the text.
#[derive(Default, Debug)]
pub struct QuadBatch {
    /// The text and appended terms; at most `u32::MAX` bytes.
    pub bytes: Vec<u8>,
    /// Subject, predicate, object and graph of each quad. Equal spans in consecutive quads mean equal terms, which
    /// loaders use to skip lookups; different spans may also be equal terms.
    pub quads: Vec<[Span; 4]>,
}

impl QuadBatch {
    /// The bytes of a span.
    #[must_use]
    pub fn term(&self, span: Span) -> &[u8] {
        &self.bytes[span.start as usize..span.start as usize + span.len as usize]
    }

    /// Appends a term's canonical bytes and returns their span.
    pub fn push_term(&mut self, canonical: &[u8]) -> Span {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(canonical);
        Span {
            start,
            len: canonical.len() as u32,
        }
    }

    /// Appends a quad of canonical bytes; without a graph it is in the default graph.
    pub fn push_quad(&mut self, quad: [&[u8]; 4]) {
        let spans = quad.map(|term| match term {
            [] => Span::default(),
            term => self.push_term(term),
        });
        self.quads.push(spans);
    }

    /// Removes all quads, but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.quads.clear();
    }
}

/// Receives batches; one sink per worker thread.
pub trait QuadSink {
    /// Processes the batch's content; the batch may be cleared and reused afterwards.
    fn batch(&mut self, batch: &QuadBatch) -> Result<()>;

    /// Receives a prefix that a document declares: its place, its name without the colon, and its absolute IRI. The
    /// default ignores it.
    ///
    /// # Errors
    /// As [`Self::batch`].
    fn prefix(&mut self, place: PrefixPlace, name: &str, iri: &str) -> Result<()> {
        let _ = (place, name, iri);
        Ok(())
    }
}

/// A source that can be loaded: files, standard input, a generator. A load calls `run` once on each of `workers`
/// threads at the same time; together the calls deliver every quad exactly once.
pub trait QuadSource: Sync {
    /// Delivers the share of `worker`, which is below `workers`. If the sink returns an error, returns it at once.
    fn run(
        &self,
        worker: usize,
        workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()>;

    /// Total size of the input, in the unit of [`Progress::done`]; `None` if unknown.
    fn size_hint(&self) -> Option<u64> {
        None
    }
}

/// A source that ends with an error when a token is cancelled.
pub struct CancellableSource<'c, S> {
    source: S,
    cancel: &'c CancelToken,
}

impl<'c, S: QuadSource> CancellableSource<'c, S> {
    /// Wraps a source; the token is checked before each batch.
    pub fn new(source: S, cancel: &'c CancelToken) -> Self {
        Self { source, cancel }
    }
}

impl<S: QuadSource> QuadSource for CancellableSource<'_, S> {
    fn run(
        &self,
        worker: usize,
        workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        let cancel = self.cancel;
        let mut sink = CancellableSink { sink, cancel };
        self.source.run(worker, workers, &mut sink, progress)
    }

    fn size_hint(&self) -> Option<u64> {
        self.source.size_hint()
    }
}

struct CancellableSink<'c> {
    sink: &'c mut dyn QuadSink,
    cancel: &'c CancelToken,
}

impl QuadSink for CancellableSink<'_> {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        self.cancel.check()?;
        self.sink.batch(batch)
    }

    fn prefix(&mut self, place: PrefixPlace, name: &str, iri: &str) -> Result<()> {
        self.sink.prefix(place, name, iri)
    }
}

/// Progress of a running load; written by workers, read by a progress bar.
#[derive(Debug, Default)]
pub struct Progress {
    /// Input consumed so far, in a unit of the source (bytes for files, universities for LUBM).
    pub done: AtomicU64,
    /// Quads read so far.
    pub quads: AtomicU64,
    /// Invalid statements skipped so far (`--lenient`).
    pub skipped: AtomicU64,
    /// Number of the load's current phase, which the store names; 0 is reading.
    pub phase: AtomicU64,
    /// Progress within the phase, in thousandths.
    pub phase_permille: AtomicU64,
}

impl Progress {
    /// Adds to the counters of the reading phase.
    pub fn add(&self, done: u64, quads: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
        self.quads.fetch_add(quads, Ordering::Relaxed);
    }
}

impl<T: QuadSource + ?Sized> QuadSource for &T {
    fn run(
        &self,
        worker: usize,
        workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        (**self).run(worker, workers, sink, progress)
    }

    fn size_hint(&self) -> Option<u64> {
        (**self).size_hint()
    }
}
