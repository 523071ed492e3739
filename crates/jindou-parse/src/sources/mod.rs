//! The main entry of this crate: makes a [`QuadSource`] of a list of inputs.

mod builder;

pub use builder::{Input, SourcesBuilder};

use crate::blocks::{BlockAt, DocumentBlocks, FileBlocks, StreamBlocks};
use crate::document::{self, ReadContext};
use crate::fetch::DocumentSource;
use crate::format::{Compression, Format};
use crate::input::{self, LineCounter, OpenedDocument, Origin};
use crate::labels::{KeptLabels, LabelScope};
use crate::limits::{Limits, unwrapped};
use crate::line::{LineError, LineParser};
use crate::report::{BadStatement, LineNumbers, Rest, SkipReport, Skipped};
use jindou_model::sync;
use jindou_model::{Charge, Error, Holder, Progress, QuadBatch, QuadSink, QuadSource, Result};
use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A document. Its blank node labels are distinct from those of other documents.
#[derive(Debug)]
pub(crate) struct SourceDocument {
    pub(crate) number: u64,
    pub(crate) origin: Origin,
    pub(crate) format: Format,
    /// The compression that its name suggests.
    pub(crate) compression: Option<Compression>,
    /// Canonical bytes of the graph for statements without a graph name; empty for the default graph.
    pub(crate) graph: Vec<u8>,
    pub(crate) base: Option<String>,
    /// The encoding that was declared with it from outside, as by HTTP.
    pub(crate) charset: Option<String>,
    bytes: u64,
}

/// Files, folders, standard input and text, as one source of quads.
///
/// N-Triples and N-Quads are parsed by all workers at once: a plain file without any lock; a compressed one is
/// decompressed by the worker that needs the next block. Documents in the other formats are distributed over the
/// workers, and each is read by one.
///
/// A source can be run again once all workers of the last run have returned; it then delivers the same quads with the
/// same blank node labels. (Standard input can be read only once.)
pub struct Sources {
    documents: Vec<SourceDocument>,
    /// The order in which documents are read, by index.
    order: Vec<usize>,
    keep_labels: KeptLabels,
    lenient: bool,
    limits: Limits,
    contexts: Option<Arc<dyn DocumentSource>>,
    size: Option<u64>,
    warnings: Vec<String>,
    skipped: Skipped,
    round: Mutex<Option<Round>>,
    /// The run that reads standard input, which cannot be read by another.
    stdin: Mutex<Option<Arc<SharedQueue>>>,
}

/// One run of the source by several workers.
struct Round {
    workers: usize,
    entered: usize,
    left: usize,
    shared: Arc<SharedQueue>,
}

struct SharedQueue {
    states: Vec<Mutex<SourceState>>,
    stop: AtomicBool,
    counter: Arc<AtomicU64>,
}

enum SourceState {
    Waiting,
    Lines(DocumentBlocks),
    Taken,
}

impl Sources {
    /// A builder for a source of some inputs.
    #[must_use]
    pub fn builder() -> SourcesBuilder {
        SourcesBuilder::default()
    }

    /// Number of documents.
    #[must_use]
    pub fn documents(&self) -> usize {
        self.documents.len()
    }

    /// Warnings about files in folders that were skipped, one sentence each.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Number of bad statements that a lenient run has skipped so far.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped.total()
    }

    /// Unread parts of documents that a lenient run had to abandon so far.
    #[must_use]
    pub fn rest(&self) -> Rest {
        self.skipped.rest()
    }

    /// Writes every statement that a lenient run skips to `out` when it occurs.
    pub fn write_errors_to(&self, out: impl std::io::Write + Send + 'static) {
        self.skipped.write_to(Box::new(out));
    }

    /// Ends the writing started by [`Self::write_errors_to`].
    ///
    /// # Errors
    /// [`Error::Io`] if buffered statements cannot be written.
    pub fn flush_errors(&self) -> Result<()> {
        let flushed = self.skipped.flush();
        flushed.map_err(|e| Error::io("the error file", e))
    }

    /// The first (up to ten) of the skipped statements in the order of the input.
    #[must_use]
    pub fn first_skipped(&self) -> Vec<BadStatement> {
        self.skipped.first()
    }

    /// A report on everything that lenient runs have skipped so far.
    #[must_use]
    pub fn skip_report(&self) -> SkipReport {
        SkipReport {
            statements: self.skipped(),
            first: self.first_skipped(),
            rest: self.rest(),
        }
    }

    fn enter(&self, workers: usize) -> Arc<SharedQueue> {
        let mut round = sync::lock(&self.round);
        let going_on = |r: &Round| r.entered < r.workers || r.left < r.entered;
        let round = match &mut *round {
            Some(r) if going_on(r) => r,
            slot => {
                self.skipped.clear();
                slot.insert(Round {
                    workers: workers.max(1),
                    entered: 0,
                    left: 0,
                    shared: Arc::new(SharedQueue {
                        states: self
                            .documents
                            .iter()
                            .map(|_| Mutex::new(SourceState::Waiting))
                            .collect(),
                        stop: AtomicBool::new(false),
                        counter: Arc::default(),
                    }),
                })
            }
        };
        round.entered += 1;
        Arc::clone(&round.shared)
    }

    fn work(
        &self,
        shared: &Arc<SharedQueue>,
        workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        let run = ReadContext {
            progress,
            counter: &shared.counter,
            stop: &shared.stop,
            skipped: &self.skipped,
            lenient: self.lenient,
            limits: &self.limits,
            contexts: self.contexts.as_deref(),
        };
        let mut batch = QuadBatch::default();
        for &i in &self.order {
            if shared.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let (document, state) = (&self.documents[i], &shared.states[i]);
            if matches!(document.origin, Origin::Stdin) {
                let mut reader = sync::lock(&self.stdin);
                if reader.as_ref().is_some_and(|r| !Arc::ptr_eq(r, shared)) {
                    return Err(Error::Unsupported("reading standard input twice".into()));
                }
                *reader = Some(Arc::clone(shared));
            }
            let labels = LabelScope::new(document.number, self.keep_labels);
            if document.format.is_line_format() {
                self.lines(document, state, &labels, &run, workers, &mut batch, sink)?;
            } else {
                let mut state = sync::lock(state);
                if matches!(*state, SourceState::Waiting) {
                    *state = SourceState::Taken;
                    drop(state);
                    document::parse(document, labels, &run, &mut batch, sink)?;
                }
            }
        }
        Ok(())
    }

    /// Parses blocks of an N-Triples or N-Quads document until there are none left.
    #[expect(clippy::too_many_arguments, reason = "a worker's whole context")]
    fn lines(
        &self,
        document: &SourceDocument,
        state: &Mutex<SourceState>,
        labels: &LabelScope,
        run: &ReadContext<'_>,
        workers: usize,
        batch: &mut QuadBatch,
        sink: &mut dyn QuadSink,
    ) -> Result<()> {
        let blocks = {
            let mut state = sync::lock(state);
            match &*state {
                SourceState::Taken => return Ok(()),
                SourceState::Lines(blocks) => blocks.clone(),
                SourceState::Waiting => {
                    let blocks = open_blocks(document, run, workers)?;
                    *state = SourceState::Lines(blocks.clone());
                    blocks
                }
            }
        };
        let mut parser =
            LineParser::new(document.format == Format::NQuads, labels, &document.graph);
        let mut held = Charge::new(Holder::Text, &run.limits.memory);
        loop {
            let next = blocks.next(&mut batch.bytes, &mut held, run.counter);
            run.limits.cancel.check()?;
            let failed = |e| match (unwrapped(e), &document.origin) {
                (Ok(Error::Limit(why)), Origin::File(path)) => {
                    Error::Limit(why.told(|why| format!("{}: {why}", path.display())))
                }
                (Ok(limit), _) => limit,
                (Err(e), _) => document.origin.error(e),
            };
            let Some(at) = next.map_err(failed)? else {
                *sync::lock(state) = SourceState::Taken;
                return Ok(());
            };
            parser.parse(batch, at.begin, &mut |text, e| {
                let offset = at.offset + (e.at - at.begin) as u64;
                run.bad(document.number, offset, |line| {
                    bad_line(document, at, text, e.clone(), line)
                })
            })?;
            if !run.deliver(batch, sink)? {
                return Ok(());
            }
        }
    }
}

fn open_blocks(
    document: &SourceDocument,
    run: &ReadContext<'_>,
    workers: usize,
) -> Result<DocumentBlocks> {
    if let Origin::File(path) = &document.origin {
        let file = input::open_file(path)?;
        let meta = file.metadata().map_err(|e| Error::io(path, e))?;
        if meta.is_file() {
            let mut head = Vec::new();
            let mut start = (&file).take(Compression::MAGIC_LEN as u64);
            start
                .read_to_end(&mut head)
                .map_err(|e| Error::io(path, e))?;
            if Compression::from_magic(&head).is_none() && document.compression.is_none() {
                return Ok(DocumentBlocks::File(Arc::new(FileBlocks::new(
                    file,
                    meta.len(),
                    workers,
                ))));
            }
        }
    }
    let OpenedDocument { reader, .. } = input::open(
        &document.origin,
        document.compression,
        run.counter,
        run.limits,
    )?;
    let blocks = StreamBlocks::new(reader, run.limits);
    Ok(DocumentBlocks::Stream(Arc::new(Mutex::new(blocks))))
}

/// Reports a bad line with its position; counts the lines of a file up to it.
#[cold]
fn bad_line(
    document: &SourceDocument,
    block: BlockAt,
    text: &[u8],
    e: LineError,
    wanted: LineNumbers,
) -> Result<BadStatement> {
    let at = e.at.min(text.len());
    let from = memchr::memrchr2(b'\n', b'\r', &text[block.begin..at])
        .map_or(block.begin, |n| block.begin + n + 1);
    let to = memchr::memchr2(b'\n', b'\r', &text[at..]).map_or(text.len(), |n| at + n);
    let mut counter = LineCounter::default();
    let mut before = block.lines.unwrap_or(0);
    let known = block.lines.is_some() || wanted == LineNumbers::Wanted;
    if block.lines.is_none()
        && known
        && let Origin::File(path) = &document.origin
    {
        let mut file = input::open_file(path)?.take(block.offset);
        let mut piece = Vec::with_capacity(1 << 20);
        while input::read_more(&mut file, &mut piece, 1 << 20).map_err(|e| Error::io(path, e))? > 0
        {
            counter.add(&piece);
            piece.clear();
        }
        before = 0;
    }
    counter.add(&text[block.begin..from]);
    let line = match known {
        true => before + counter.lines + 1,
        false => 0,
    };
    Ok(BadStatement::in_line(
        document.origin.name(),
        line,
        &text[from..to],
        at - from,
        e.message,
    ))
}

impl QuadSource for Sources {
    fn run(
        &self,
        _worker: usize,
        workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        let shared = self.enter(workers);
        let result = self.work(&shared, workers, sink, progress);
        if result.is_err() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        progress.add(shared.counter.swap(0, Ordering::Relaxed), 0);
        let mut round = sync::lock(&self.round);
        if let Some(r) = round.as_mut()
            && Arc::ptr_eq(&r.shared, &shared)
        {
            r.left += 1;
        }
        result
    }

    /// Total size of all inputs in bytes as stored; `None` with standard input.
    fn size_hint(&self) -> Option<u64> {
        self.size
    }
}
