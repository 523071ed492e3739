//! Quads on their way from a parser or generator into a loader: some thousands at a time, as spans
//! over one buffer, so that no term costs an allocation or a virtual call.

use crate::prefixes::PrefixPlace;
use crate::{CancelToken, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// A term's canonical bytes ([`crate::term`]) inside [`QuadBatch::bytes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// Length in bytes; 0 in the graph position means the default graph.
    pub len: u32,
}

/// Some quads. `bytes` may be the input text itself: an N-Triples IRI without its closing `>` and a
/// plain literal without its closing quote already are canonical bytes, so most terms need no copy.
/// Terms that do (escapes, datatypes) are appended after the text.
#[derive(Default, Debug)]
pub struct QuadBatch {
    /// Text and appended terms; at most `u32::MAX` bytes.
    pub bytes: Vec<u8>,
    /// Subject, predicate, object, graph. Equal spans in consecutive quads mean equal terms (a
    /// hint); different spans may be equal terms as well.
    pub quads: Vec<[Span; 4]>,
}

impl QuadBatch {
    /// The bytes of a span.
    #[must_use]
    pub fn term(&self, span: Span) -> &[u8] {
        &self.bytes[span.start as usize..span.start as usize + span.len as usize]
    }

    /// Appends a term's canonical bytes.
    pub fn push_term(&mut self, canonical: &[u8]) -> Span {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(canonical);
        Span {
            start,
            len: canonical.len() as u32,
        }
    }

    /// Removes the content, but keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.quads.clear();
    }
}

/// Receives batches; one sink per worker thread.
pub trait QuadSink {
    /// Processes the batch's content; the batch may be cleared and reused afterwards.
    fn batch(&mut self, batch: &QuadBatch) -> Result<()>;

    /// Takes a prefix that a document declares, without its colon, with an absolute IRI. Most sinks have no use for it.
    ///
    /// # Errors
    /// As [`Self::batch`].
    fn prefix(&mut self, place: PrefixPlace, name: &str, iri: &str) -> Result<()> {
        let _ = (place, name, iri);
        Ok(())
    }
}

/// A source that can be loaded: files, standard input, a generator. `run` is called once on each of `workers` threads,
/// at the same time; together the calls deliver every quad exactly once.
pub trait QuadSource: Sync {
    /// Delivers this worker's share. Returns early with the sink's error.
    fn run(
        &self,
        worker: usize,
        workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()>;

    /// Total input in the unit that [`Progress::done`] counts, if known.
    fn size_hint(&self) -> Option<u64> {
        None
    }
}

/// A source that ends with an error once a token is cancelled.
pub struct CancellableSource<'c, S> {
    source: S,
    cancel: &'c CancelToken,
}

impl<'c, S: QuadSource> CancellableSource<'c, S> {
    /// A source, and the token that is checked before each batch.
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
    /// Input consumed (bytes for files, universities for LUBM …), against `size_hint`.
    pub done: AtomicU64,
    /// Quads read so far.
    pub quads: AtomicU64,
    /// Bad statements skipped (`--lenient`).
    pub skipped: AtomicU64,
    /// Phase number of the load, 0 = reading; named by the store.
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
