//! The front door: a list of inputs becomes a [`QuadSource`].

use crate::blocks::{BlockAt, Blocks, FileBlocks, StreamBlocks};
use crate::document::{self, Run};
use crate::folder::folder;
use crate::format::{Compression, Format, from_name};
use crate::input::{self, LineCounter, Opened, Origin};
use crate::labels::LabelScope;
use crate::limits::{Limits, unwrapped};
use crate::line::{LineError, LineParser};
use crate::report::{BadStatement, Line, Rest, Skipped};
use jindou_model::{
    Error, Location, Progress, QuadBatch, QuadSink, QuadSource, Resource, Result, term,
};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// One thing to load, with what differs from the builder's defaults.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// A file, a folder, or `-` for standard input.
    pub path: PathBuf,
    /// Its syntax, whatever its name says. For a folder it is not looked at.
    pub format: Option<Format>,
    /// IRI of the graph that its statements go to when they name none.
    pub graph: Option<String>,
}

/// Collects inputs and options for [`Sources`].
#[derive(Clone, Debug, Default)]
pub struct SourcesBuilder {
    inputs: Vec<(Wanted, Option<Format>, Option<String>)>,
    format: Option<Format>,
    graph: Option<String>,
    base: Option<String>,
    lenient: bool,
    limits: Limits,
    first_document: Option<u64>,
}

#[derive(Clone, Debug)]
enum Wanted {
    Path(PathBuf),
    Text(String, Arc<[u8]>),
}

impl SourcesBuilder {
    /// Adds a file, a folder (its files with a known extension, recursively, by name), or `-`.
    #[must_use]
    pub fn path(self, path: impl Into<PathBuf>) -> Self {
        self.input(Input {
            path: path.into(),
            ..Input::default()
        })
    }

    /// Adds an input with a format or graph of its own.
    #[must_use]
    pub fn input(mut self, input: Input) -> Self {
        self.inputs
            .push((Wanted::Path(input.path), input.format, input.graph));
        self
    }

    /// Adds text in memory (it may be compressed); `name` is shown in errors.
    #[must_use]
    pub fn text(
        mut self,
        name: impl Into<String>,
        text: impl Into<Arc<[u8]>>,
        format: Format,
    ) -> Self {
        self.inputs
            .push((Wanted::Text(name.into(), text.into()), Some(format), None));
        self
    }

    /// The format of inputs that have none of their own: it overrides names, except in folders,
    /// where the names decide.
    #[must_use]
    pub fn format(mut self, format: Option<Format>) -> Self {
        self.format = format;
        self
    }

    /// IRI of the graph of statements that name none, for inputs without a graph of their own.
    #[must_use]
    pub fn graph(mut self, graph: Option<String>) -> Self {
        self.graph = graph;
        self
    }

    /// Base IRI of relative IRIs. The default is the `file://` URL of each file.
    #[must_use]
    pub fn base_iri(mut self, base: Option<String>) -> Self {
        self.base = base;
        self
    }

    /// Skips bad statements, counts them and remembers the first ones, instead of stopping. In line
    /// formats a bad line is skipped; in Turtle everything to the next line that ends in a dot; in
    /// TriG and RDF/XML the rest of the document; in JSON-LD a bad value, or the rest when the JSON
    /// itself is broken. Statements before the error stay.
    #[must_use]
    pub fn lenient(mut self, lenient: bool) -> Self {
        self.lenient = lenient;
        self
    }

    /// Ends the reading when its time is over, and charges what a parser has to hold of a long token or line.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Numbers the documents from here, for labels of blank nodes that must differ from those of an
    /// earlier load; labels then are never kept as they are.
    #[must_use]
    pub fn documents_from(mut self, first: u64) -> Self {
        self.first_document = Some(first);
        self
    }

    /// Looks at names and folders; opens nothing yet.
    ///
    /// # Errors
    /// A path that does not exist, a file whose format is unknown, an invalid IRI, no input at all.
    pub fn build(self) -> Result<Sources> {
        let mut found = Vec::new();
        let mut warnings = Vec::new();
        if let Some(base) = &self.base {
            absolute_iri("base", base)?;
        }
        let mut stdin = false;
        for (wanted, format, graph) in &self.inputs {
            let graph = match graph.as_ref().or(self.graph.as_ref()) {
                Some(iri) => {
                    let iri = absolute_iri("graph", iri)?;
                    let mut bytes = Vec::new();
                    term::push_iri(iri, &mut bytes);
                    bytes
                }
                None => Vec::new(),
            };
            let chosen = format.or(self.format);
            match wanted {
                Wanted::Text(name, text) => {
                    let origin = Origin::Memory(name.clone(), Arc::clone(text));
                    found.push((origin, chosen.unwrap_or(Format::NQuads), None, graph));
                }
                Wanted::Path(path) if path.as_os_str() == "-" => {
                    let format = chosen.ok_or_else(|| Error::UnknownFormat {
                        name: "<stdin>".into(),
                    })?;
                    if std::mem::replace(&mut stdin, true) {
                        return Err(Error::Unsupported("standard input (-) named twice".into()));
                    }
                    found.push((Origin::Stdin, format, None, graph));
                }
                Wanted::Path(path) => {
                    let meta = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
                    if meta.is_dir() {
                        folder(path, &graph, &mut found, &mut warnings)?;
                    } else {
                        let (named, compression) = from_name(path);
                        let format = chosen.or(named).ok_or_else(|| unknown_format(path))?;
                        found.push((Origin::File(path.clone()), format, compression, graph));
                    }
                }
            }
        }
        if found.is_empty() {
            return Err(Error::limit(Resource::Other, match warnings.first() {
                Some(_) => format!(
                    "there is nothing to load: no file there has the extension of an RDF format (.nt, .nq, .ttl, .trig, \
                     .rdf, .owl, .jsonld; also .gz, .bz2, .xz, .zst): {}",
                    warnings.join("; ")
                ),
                None => "there is nothing to load: name at least one file, a folder with RDF files in it, or - for standard input"
                    .into(),
            }));
        }
        let first = self.first_document.unwrap_or(0);
        let mut size = Some(0u64);
        let documents: Vec<Document> = found
            .into_iter()
            .enumerate()
            .map(|(i, (origin, format, compression, graph))| {
                let bytes = origin.size();
                size = size.zip(bytes).map(|(a, b)| a + b);
                let base = self.base.clone().or_else(|| file_url(&origin));
                Document {
                    number: first + i as u64,
                    origin,
                    format,
                    compression,
                    graph,
                    base,
                    bytes: bytes.unwrap_or(0),
                }
            })
            .collect();
        // Whole documents first and the long ones of them first, then what all workers share.
        let mut order: Vec<usize> = (0..documents.len()).collect();
        order.sort_by_key(|&i| {
            let d = &documents[i];
            (
                d.format.is_line_format(),
                if d.format.is_line_format() {
                    0
                } else {
                    u64::MAX - d.bytes
                },
            )
        });
        Ok(Sources {
            keep_labels: documents.len() == 1 && self.first_document.is_none(),
            documents,
            order,
            lenient: self.lenient,
            limits: self.limits,
            size,
            warnings,
            skipped: Skipped::default(),
            round: Mutex::new(None),
            stdin: Mutex::new(None),
        })
    }
}

fn unknown_format(path: &Path) -> Error {
    let name = path.display().to_string();
    if name.contains(".tar") || name.ends_with(".zip") || name.ends_with(".tgz") {
        return Error::Unsupported(format!("{name}: an archive; unpack it and load the folder"));
    }
    Error::UnknownFormat { name }
}

fn absolute_iri<'a>(what: &str, iri: &'a str) -> Result<&'a str> {
    match oxiri::Iri::parse(iri) {
        Ok(_) => Ok(iri),
        Err(e) => Err(Error::Syntax {
            at: Location {
                file: format!("--{what}"),
                line: 0,
                column: 0,
            },
            message: format!(
                "`{iri}` is not a valid IRI ({e}), expected an absolute one such as http://example.org/g"
            ),
            text: None,
        }),
    }
}

/// The `file://` URL of a file.
fn file_url(origin: &Origin) -> Option<String> {
    use std::os::unix::ffi::OsStrExt;
    let Origin::File(path) = origin else {
        return None;
    };
    let path = std::path::absolute(path).ok()?;
    let mut url = String::from("file://");
    for &b in path.as_os_str().as_bytes() {
        if b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'.' | b'_' | b'~') {
            url.push(char::from(b));
        } else {
            url.push_str(&format!("%{b:02X}"));
        }
    }
    Some(url)
}

/// One text with its own blank nodes.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) number: u64,
    pub(crate) origin: Origin,
    pub(crate) format: Format,
    /// Compression that its name says.
    pub(crate) compression: Option<Compression>,
    /// Canonical bytes of the graph of statements that name none; empty for the default graph.
    pub(crate) graph: Vec<u8>,
    pub(crate) base: Option<String>,
    bytes: u64,
}

/// Files, folders, standard input and text, as one source of quads.
///
/// Line formats (N-Triples, N-Quads) are parsed by all workers at once, a plain file without any
/// lock; compressed ones are decompressed by whoever needs the next block. Documents of the other
/// formats are spread over the workers, one document on one worker.
///
/// A source can be run again when all workers of the last run returned; it then delivers the same
/// quads with the same blank node labels. (Standard input can be read only once.)
pub struct Sources {
    documents: Vec<Document>,
    /// The order in which documents are begun.
    order: Vec<usize>,
    keep_labels: bool,
    lenient: bool,
    limits: Limits,
    size: Option<u64>,
    warnings: Vec<String>,
    skipped: Skipped,
    round: Mutex<Option<Round>>,
    /// The run that reads standard input.
    stdin: Mutex<Option<Arc<Shared>>>,
}

/// A run of the source by several workers.
struct Round {
    workers: usize,
    entered: usize,
    left: usize,
    shared: Arc<Shared>,
}

struct Shared {
    states: Vec<Mutex<State>>,
    stop: AtomicBool,
    counter: Arc<AtomicU64>,
}

enum State {
    Waiting,
    Lines(Blocks),
    Taken,
}

impl Sources {
    /// Begins a list of inputs.
    #[must_use]
    pub fn builder() -> SourcesBuilder {
        SourcesBuilder::default()
    }

    /// How many documents there are.
    #[must_use]
    pub fn documents(&self) -> usize {
        self.documents.len()
    }

    /// Warnings about what was found in folders and not taken, one sentence each.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Bad statements that a lenient run skipped so far.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped.total()
    }

    /// The unread rest, so far, of the documents that a lenient run had to give up at an error.
    #[must_use]
    pub fn rest(&self) -> Rest {
        self.skipped.rest()
    }

    /// Writes every statement that a lenient run skips to a file or the like, as it meets them.
    pub fn write_errors_to(&self, out: impl std::io::Write + Send + 'static) {
        self.skipped.write_to(Box::new(out));
    }

    /// Ends what [`Self::write_errors_to`] began.
    ///
    /// # Errors
    /// [`Error::Io`] if the last of them cannot be written.
    pub fn flush_errors(&self) -> Result<()> {
        let flushed = self.skipped.flush();
        flushed.map_err(|e| Error::io("the file of errors", e))
    }

    /// The first (up to ten) of them in the order of the input.
    #[must_use]
    pub fn first_skipped(&self) -> Vec<BadStatement> {
        self.skipped.first()
    }

    fn enter(&self, workers: usize) -> Arc<Shared> {
        let mut round = self.round.lock().unwrap_or_else(PoisonError::into_inner);
        let going_on = |r: &Round| r.entered < r.workers || r.left < r.entered;
        let round = match &mut *round {
            Some(r) if going_on(r) => r,
            slot => {
                self.skipped.clear();
                slot.insert(Round {
                    workers: workers.max(1),
                    entered: 0,
                    left: 0,
                    shared: Arc::new(Shared {
                        states: self
                            .documents
                            .iter()
                            .map(|_| Mutex::new(State::Waiting))
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
        shared: &Arc<Shared>,
        workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        let run = Run {
            progress,
            counter: &shared.counter,
            stop: &shared.stop,
            skipped: &self.skipped,
            lenient: self.lenient,
            limits: &self.limits,
        };
        let mut batch = QuadBatch::default();
        for &i in &self.order {
            if shared.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let (document, state) = (&self.documents[i], &shared.states[i]);
            if matches!(document.origin, Origin::Stdin) {
                let mut reader = self.stdin.lock().unwrap_or_else(PoisonError::into_inner);
                if reader.as_ref().is_some_and(|r| !Arc::ptr_eq(r, shared)) {
                    return Err(Error::Unsupported("reading standard input twice".into()));
                }
                *reader = Some(Arc::clone(shared));
            }
            let labels = LabelScope::new(document.number, self.keep_labels);
            if document.format.is_line_format() {
                self.lines(document, state, &labels, &run, workers, &mut batch, sink)?;
            } else {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                if matches!(*state, State::Waiting) {
                    *state = State::Taken;
                    drop(state);
                    document::parse(document, labels, &run, &mut batch, sink)?;
                }
            }
        }
        Ok(())
    }

    /// Parses blocks of a line document until there are none.
    #[expect(clippy::too_many_arguments, reason = "a worker's whole context")]
    fn lines(
        &self,
        document: &Document,
        state: &Mutex<State>,
        labels: &LabelScope,
        run: &Run<'_>,
        workers: usize,
        batch: &mut QuadBatch,
        sink: &mut dyn QuadSink,
    ) -> Result<()> {
        let blocks = {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            match &*state {
                State::Taken => return Ok(()),
                State::Lines(blocks) => blocks.clone(),
                State::Waiting => {
                    let blocks = open_blocks(document, run, workers)?;
                    *state = State::Lines(blocks.clone());
                    blocks
                }
            }
        };
        let mut parser =
            LineParser::new(document.format == Format::NQuads, labels, &document.graph);
        loop {
            let next = blocks.next(&mut batch.bytes, run.counter);
            run.limits.cancel.check()?;
            let failed = |e| match unwrapped(e) {
                Ok(limit) => limit,
                Err(e) => document.origin.error(e),
            };
            let Some(at) = next.map_err(failed)? else {
                *state.lock().unwrap_or_else(PoisonError::into_inner) = State::Taken;
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

fn open_blocks(document: &Document, run: &Run<'_>, workers: usize) -> Result<Blocks> {
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
                return Ok(Blocks::File(Arc::new(FileBlocks::new(
                    file,
                    meta.len(),
                    workers,
                ))));
            }
        }
    }
    let Opened { reader, .. } = input::open(
        &document.origin,
        document.compression,
        run.counter,
        run.limits,
    )?;
    let blocks = StreamBlocks::new(reader, run.limits);
    Ok(Blocks::Stream(Arc::new(Mutex::new(blocks))))
}

/// Says where a bad line is; counts the lines of a file up to it.
#[cold]
fn bad_line(
    document: &Document,
    block: BlockAt,
    text: &[u8],
    e: LineError,
    wanted: Line,
) -> Result<BadStatement> {
    let at = e.at.min(text.len());
    let from = memchr::memrchr2(b'\n', b'\r', &text[block.begin..at])
        .map_or(block.begin, |n| block.begin + n + 1);
    let to = memchr::memchr2(b'\n', b'\r', &text[at..]).map_or(text.len(), |n| at + n);
    let mut counter = LineCounter::default();
    let mut before = block.lines.unwrap_or(0);
    let known = block.lines.is_some() || wanted == Line::Wanted;
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
        let mut round = self.round.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(r) = round.as_mut()
            && Arc::ptr_eq(&r.shared, &shared)
        {
            r.left += 1;
        }
        result
    }

    /// Bytes of all inputs as they lie there; `None` with standard input.
    fn size_hint(&self) -> Option<u64> {
        self.size
    }
}
