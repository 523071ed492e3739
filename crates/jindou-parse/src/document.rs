//! Turtle, TriG, RDF/XML and JSON-LD: one thread reads a whole document. Turtle and TriG are parsed by `oxttl`, the
//! others by this crate's own readers.

use crate::declared::Declared;
use crate::emit::QuadEmitter;
use crate::fetch::DocumentSource;
use crate::format::Format;
use crate::guard::{Guard, Tail};
use crate::input::{self, LineCounter, OpenedDocument};
use crate::jsonld;
use crate::labels::LabelScope;
use crate::limits::{Limits, Meter};
use crate::rdfxml::{self, DocumentEnd};
use crate::report::{BadStatement, LineNumbers, Skipped};
use crate::restart::Restart;
use crate::sources::SourceDocument;
use jindou_model::{Error, Progress, QuadBatch, QuadSink, Resource, Result, Span};
use oxiri::Iri;
use oxttl::{TriGParser, TurtleParseError, TurtleParser, TurtleSyntaxError};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Number of prefixes that are passed on between two checks of the deadline.
const LOOK: usize = 4096;

/// State and limits that all documents of a run share.
pub(crate) struct ReadContext<'a> {
    pub(crate) progress: &'a Progress,
    /// Raw bytes that were read but not yet added to `progress`.
    pub(crate) counter: &'a Arc<AtomicU64>,
    /// Set when a worker has failed, so that the other workers stop.
    pub(crate) stop: &'a AtomicBool,
    pub(crate) skipped: &'a Skipped,
    pub(crate) lenient: bool,
    pub(crate) limits: &'a Limits,
    /// Finds the contexts to which JSON-LD documents refer; `None` if none may be loaded.
    pub(crate) contexts: Option<&'a dyn DocumentSource>,
}

impl ReadContext<'_> {
    /// Passes a batch to the sink and counts it. `Ok(false)` if the run was stopped.
    pub(crate) fn deliver(&self, batch: &QuadBatch, sink: &mut dyn QuadSink) -> Result<bool> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if !batch.quads.is_empty() {
            sink.batch(batch)?;
        }
        self.progress.add(
            self.counter.swap(0, Ordering::Relaxed),
            batch.quads.len() as u64,
        );
        Ok(true)
    }

    /// Reports a bad statement: records it in a lenient run, otherwise returns it as an error.
    pub(crate) fn bad(
        &self,
        document: u64,
        offset: u64,
        describe: impl Fn(LineNumbers) -> Result<BadStatement>,
    ) -> Result<()> {
        if !self.lenient {
            return Err(describe(LineNumbers::Wanted)?.into());
        }
        self.progress.skipped.fetch_add(1, Ordering::Relaxed);
        self.skipped.add(document, offset, describe)
    }
}

/// Parses a whole document. Also returns `Ok` if the run was stopped because another worker failed.
pub(crate) fn parse(
    document: &SourceDocument,
    labels: LabelScope,
    run: &ReadContext<'_>,
    batch: &mut QuadBatch,
    sink: &mut dyn QuadSink,
) -> Result<()> {
    batch.clear();
    let opened = input::open(
        &document.origin,
        document.compression,
        run.counter,
        run.limits,
    )?;
    let meter = Rc::new(Meter::new(run.limits));
    let out = QuadEmitter {
        meter: Rc::clone(&meter),
        labels,
        batch,
        graph: &document.graph,
        default_graph: None,
        last: [Span::default(); 4],
        worked: 0,
        declared: Declared::new(document.number),
        run,
        sink,
    };
    let mut reading = DocumentReading {
        document,
        run,
        out,
        meter,
    };
    match document.format {
        Format::Turtle => reading.turtle(opened)?,
        Format::TriG | Format::NQuads | Format::NTriples => reading.trig(opened)?,
        Format::RdfXml => reading.rdf_xml(opened)?,
        Format::JsonLd => reading.json_ld(opened)?,
    }
    reading.out.flush().map(|_| ())
}

struct DocumentReading<'a> {
    document: &'a SourceDocument,
    run: &'a ReadContext<'a>,
    out: QuadEmitter<'a>,
    meter: Rc<Meter>,
}

type SharedTail = Rc<RefCell<Tail>>;

impl DocumentReading<'_> {
    /// Parses Turtle. After a bad statement, a lenient run continues after the next line that ends in a dot; after a
    /// string
    /// that is still open at the end of its line, it continues after that line. Prefixes and base stay in force.
    fn turtle(&mut self, opened: OpenedDocument) -> Result<()> {
        let mut parser = TurtleParser::new();
        if let Some(base) = &self.document.base {
            parser = parser
                .with_base_iri(base)
                .map_err(|e| bad_base(self.document, e))?;
        }
        let (mut source, mut reader) = (None, opened.reader);
        if self.run.lenient {
            let mut restart = Restart::new(
                &self.document.origin,
                OpenedDocument {
                    reader,
                    plain: opened.plain,
                },
                self.run.limits,
            )?;
            reader = restart.from(0)?;
            source = Some(restart);
        }
        reader = input::unmarked(reader).map_err(|e| self.document.origin.error(e))?;
        let (mut offset, mut lines) = (0, LineCounter::default());
        let mut base = self.document.base.clone();
        loop {
            let start = (offset, base.as_deref());
            let guard = Guard::new(reader, start, lines, &self.meter);
            let tail = guard.tail();
            let mut reading = parser.for_reader(guard);
            let error = loop {
                match reading.next() {
                    None => return self.out.prefixes(reading.prefixes()),
                    Some(Ok(t)) => {
                        self.out.due_prefixes(reading.prefixes())?;
                        if !self.out.triple(&t)? {
                            return Ok(());
                        }
                    }
                    Some(Err(TurtleParseError::Syntax(e))) => break e,
                    Some(Err(TurtleParseError::Io(e))) => {
                        return self.stopped(e, &tail);
                    }
                }
            };
            // Positions from the parser are relative to where it was started.
            let at = tail.borrow().place(offset + error.location().start.offset);
            self.turtle_error(&error, lines.lines, &tail, at)?;
            let Some(restart) = &mut source else {
                return Ok(());
            };
            // The memory of the text after the bad statement is measured from zero.
            self.meter.statement();
            let at_end = error.message() == "Unexpected end of file";
            let to = match restart.after_open_string(at, at_end)? {
                Some(to) => Some(to),
                None => restart.after_statement(at)?,
            };
            let Some(to) = to else {
                return self.out.prefixes(reading.prefixes());
            };
            self.out.due_prefixes(reading.prefixes())?;
            let mut next = TurtleParser::new();
            for (i, (name, iri)) in reading.prefixes().enumerate() {
                if i.is_multiple_of(LOOK) {
                    self.run.limits.cancel.check()?;
                }
                if oxiri::Iri::parse(iri).is_ok() {
                    let with = next.with_prefix(name, iri);
                    next = with.map_err(|e| Error::Internal(e.to_string()))?;
                }
            }
            if let Some(own) = reading.base_iri()
                && let Ok(with) = next.clone().with_base_iri(own)
            {
                next = with;
                base = Some(own.to_owned());
            }
            parser = next;
            restart.count_lines(offset, to, &mut lines)?;
            offset = to;
            reader = restart.from(to)?;
        }
    }

    /// Parses TriG. A bad statement ends the document, since the graph of the text after it is unknown.
    fn trig(&mut self, opened: OpenedDocument) -> Result<()> {
        let mut parser = TriGParser::new();
        if let Some(base) = &self.document.base {
            parser = parser
                .with_base_iri(base)
                .map_err(|e| bad_base(self.document, e))?;
        }
        let reader = input::unmarked(opened.reader);
        let reader = reader.map_err(|e| self.document.origin.error(e))?;
        let base = self.document.base.as_deref();
        let lines = LineCounter::default();
        let guard = Guard::new(reader, (0, base), lines, &self.meter);
        let tail = guard.tail();
        let mut reading = parser.for_reader(guard);
        while let Some(quad) = reading.next() {
            match quad {
                Ok(q) => {
                    self.out.due_prefixes(reading.prefixes())?;
                    if !self.out.quad(&q)? {
                        return Ok(());
                    }
                }
                Err(TurtleParseError::Syntax(e)) => {
                    self.out.prefixes(reading.prefixes())?;
                    let offset = tail.borrow().place(e.location().start.offset);
                    self.turtle_error(&e, 0, &tail, offset)?;
                    return self.give_up(offset);
                }
                Err(TurtleParseError::Io(e)) => return self.stopped(e, &tail),
            }
        }
        self.out.prefixes(reading.prefixes())
    }

    /// Parses RDF/XML. Text that is not well-formed, or an element that RDF/XML does not allow, ends the document.
    fn rdf_xml(&mut self, opened: OpenedDocument) -> Result<()> {
        match rdfxml::read(opened.reader, self.document, self.run, &mut self.out)? {
            DocumentEnd::Whole => Ok(()),
            DocumentEnd::GivenUp(offset) => self.give_up(offset),
        }
    }

    /// Parses JSON-LD. A lenient run skips entries of nodes that have mistakes; if the JSON itself is malformed, it
    /// skips the rest of the document.
    fn json_ld(&mut self, opened: OpenedDocument) -> Result<()> {
        let base = self.document.base.clone().map(Iri::parse).transpose();
        let base = base.map_err(|e| bad_base(self.document, e))?;
        match jsonld::read(opened, base, self.document, self.run, &mut self.out)? {
            DocumentEnd::Whole => Ok(()),
            DocumentEnd::GivenUp(offset) => self.give_up(offset),
        }
    }

    /// The error to return if the parser's reader failed: a limit, text that the guard refused, or an I/O error.
    fn stopped(&self, e: std::io::Error, tail: &SharedTail) -> Result<()> {
        if let Some(limit) = self.meter.failure() {
            return Err(limit);
        }
        let refused = tail.borrow().refused.clone();
        match refused {
            Some(r) => {
                self.error_at(r.offset, r.message, tail)?;
                self.give_up(r.offset)
            }
            // The parser's buffer for a token has reached its maximum.
            None if e.kind() == std::io::ErrorKind::OutOfMemory => Err(Error::limit(
                Resource::Form,
                format!(
                    "{}: a literal or name is too long: {e}",
                    self.document.origin.name()
                ),
            )),
            None => Err(self.document.origin.error(e)),
        }
    }

    fn turtle_error(
        &self,
        e: &TurtleSyntaxError,
        lines_before: u64,
        tail: &SharedTail,
        offset: u64,
    ) -> Result<()> {
        if tail.borrow().is_shifted() {
            return self.error_at(offset, e.message().into(), tail);
        }
        let start = e.location().start;
        let line = lines_before + start.line + 1;
        self.bad(offset, || {
            let tail = tail.borrow();
            let text = String::from_utf8_lossy(tail.line(line).unwrap_or_default());
            let before = text.chars().take(start.column as usize);
            let at = before.map(char::len_utf8).sum();
            let file = self.document.origin.name();
            let message = self.expected(e.message().into());
            let mut bad = BadStatement::in_line(file, line, text.as_bytes(), at, message);
            bad.at.column = start.column + 1;
            Ok(bad)
        })
    }

    /// Reports a mistake at a byte position.
    fn error_at(&self, offset: u64, message: String, tail: &SharedTail) -> Result<()> {
        self.bad(offset, || {
            let tail = tail.borrow();
            let file = self.document.origin.name();
            let message = self.expected(message.clone());
            let (line, text, at) = tail.line_at(offset).unwrap_or((0, b"", 0));
            Ok(BadStatement::in_line(file, line, text, at, message))
        })
    }

    fn bad(&self, offset: u64, describe: impl Fn() -> Result<BadStatement>) -> Result<()> {
        self.run.bad(self.document.number, offset, |_| describe())
    }

    /// Reads a document again after it was abandoned at a position, to count how much was left unread. Text that cannot
    /// be read is not counted.
    fn give_up(&self, offset: u64) -> Result<()> {
        let counter = Arc::default();
        let document = self.document;
        let Ok(opened) = input::open(
            &document.origin,
            document.compression,
            &counter,
            self.run.limits,
        ) else {
            return Ok(());
        };
        let (mut reader, mut piece) = (opened.reader, Vec::with_capacity(1 << 16));
        let (mut at, mut bytes, mut elements) = (0u64, 0u64, 0u64);
        // The last byte of the previous piece.
        let mut last = 0;
        while let Ok(n) = input::read_more(&mut reader, &mut piece, 1 << 16) {
            if n == 0 || self.run.stop.load(Ordering::Relaxed) {
                break;
            }
            self.run.limits.cancel.check()?;
            let skip = offset.saturating_sub(at).min(n as u64) as usize;
            let rest = &piece[skip..];
            bytes += rest.len() as u64;
            for &b in rest {
                if last == b'<' && (b.is_ascii_alphabetic() || b == b'_' || b >= 0x80) {
                    elements += 1;
                }
                last = b;
            }
            at += n as u64;
            piece.clear();
        }
        let xml = document.format == Format::RdfXml;
        self.run
            .skipped
            .add_rest(bytes, if xml { elements } else { 0 });
        Ok(())
    }

    /// Adds the expected syntax to a parser's message that does not state it.
    fn expected(&self, mut message: String) -> String {
        if !message.to_ascii_lowercase().contains("expected") || message.starts_with("Unexpected") {
            message.push_str(", expected valid ");
            message.push_str(self.document.format.name());
        }
        message
    }
}

/// The error for a document whose base is not an IRI.
pub(crate) fn bad_base(document: &SourceDocument, why: impl std::fmt::Display) -> Error {
    let message = format!("the base IRI is not valid ({why}), expected an absolute IRI");
    BadStatement::in_line(document.origin.name(), 0, b"", 0, message).into()
}
