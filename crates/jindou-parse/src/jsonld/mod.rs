//! JSON-LD 1.1: expansion and conversion to RDF by the algorithms of [JSON-LD 1.1 API], from a stream to quads.
//!
//! Large documents are not held in memory: if a document is an array, or an object with an array in `@graph`, the items
//! of that array are processed one at a time. Such an object is first read without its `@graph`, since entries after
//! the array may name the graph, or be the context.
//!
//! [JSON-LD 1.1 API]: https://www.w3.org/TR/json-ld11-api/

mod context;
mod fault;
mod json;
mod walk;

use crate::document::ReadContext;
use crate::emit::QuadEmitter;
use crate::format::Compression;
use crate::guard::Tail;
use crate::input::{self, LineCounter, OpenedDocument, Origin};
use crate::limits::Limits;
use crate::rdfxml::DocumentEnd;
use crate::report::{BadStatement, LineNumbers};
use crate::restart::Restart;
use crate::sources::SourceDocument;
use context::{Context, Contexts};
use fault::{Fault, Step, Stop, bad};
use jindou_model::{Charge, Error, Holder, Result};
use json::{JsonReader, JsonText, Top};
use oxiri::Iri;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::io::{Cursor, Read};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use walk::{Graph, Indexes, Walk, Walker};

/// Number of bytes that are read at a time to find a line.
const PIECE: usize = 1 << 16;

/// Reads a document.
pub(crate) fn read(
    opened: OpenedDocument,
    base: Option<Iri<String>>,
    document: &SourceDocument,
    run: &ReadContext<'_>,
    out: &mut QuadEmitter<'_>,
) -> Result<DocumentEnd> {
    let reading = JsonLdReading {
        document,
        run,
        tail: Rc::default(),
        restart: RefCell::new(None),
    };
    let report = |fault: Fault| reading.report(&fault);
    let mut walker = Walker {
        contexts: Contexts::new(base.map(Rc::new), run.limits, run.contexts),
        out,
        skipped: match run.lenient {
            true => Some(&report),
            false => None,
        },
        valid: FxHashMap::default(),
        object: Vec::new(),
        looked: 0,
        indexes: Indexes::new(run.limits),
    };
    match reading.document(opened, &mut walker) {
        Ok(()) | Err(Stop::Ended) => Ok(DocumentEnd::Whole),
        Err(Stop::Bad(fault)) => {
            reading.report(&fault)?;
            Ok(DocumentEnd::GivenUp(fault.at))
        }
        Err(Stop::Failed(e)) => Err(e),
        Err(Stop::Unreadable(e)) => Err(document.origin.error(e)),
    }
}

/// Reads a whole JSON document into memory, for a context.
fn whole(source: Box<dyn Read + Send>, limits: &Limits) -> Step<JsonText> {
    let source = input::unmarked(source).map_err(Stop::Unreadable)?;
    let charge = Charge::new(Holder::Text, &limits.memory);
    let mut reader = JsonReader::new(source, 0, Rc::default(), &limits.cancel, charge, None);
    let mut text = JsonText::default();
    reader.any(&mut text)?;
    reader.ended()?;
    Ok(text)
}

struct JsonLdReading<'a> {
    document: &'a SourceDocument,
    run: &'a ReadContext<'a>,
    tail: Rc<RefCell<Tail>>,
    /// How to read the document again, if that is necessary.
    restart: RefCell<Option<Again>>,
}

/// A document that is read a second time, from `@graph` on.
struct Again {
    restart: Restart,
    /// Position in the document of the first byte that can be read again.
    start: u64,
    /// Number of bytes that were counted during the first reading.
    counted: u64,
    /// True if the bytes of the second reading count towards progress, too.
    counts: bool,
}

impl JsonLdReading<'_> {
    /// A reader of the document from a position on.
    fn reader(
        &self,
        source: Box<dyn Read + Send>,
        start: u64,
        lines: LineCounter,
        counts: bool,
    ) -> Step<JsonReader<'_>> {
        let source = match start {
            0 => input::unmarked(source).map_err(Stop::Unreadable)?,
            _ => source,
        };
        *self.tail.borrow_mut() = Tail::new(start, lines);
        Ok(JsonReader::new(
            source,
            start,
            Rc::clone(&self.tail),
            &self.run.limits.cancel,
            Charge::new(Holder::Text, &self.run.limits.memory),
            counts.then_some(&**self.run.counter),
        ))
    }

    fn document(&self, opened: OpenedDocument, walker: &mut Walker<'_, '_>) -> Step<()> {
        let initial = walker.contexts.initial();
        let mut reader = self.reader(opened.reader, 0, LineCounter::default(), false)?;
        match reader.top()? {
            Top::Nothing => Err(bad(
                reader.position(),
                "the document is empty, expected a JSON object or array",
            )),
            Top::Array => {
                self.items(&mut reader, walker, &initial, &Graph::Default)?;
                reader.ended()
            }
            Top::Other => self.object(reader, opened.plain, walker, &initial),
        }
    }

    /// Processes the items of an array that the reader has entered.
    fn items(
        &self,
        reader: &mut JsonReader<'_>,
        walker: &mut Walker<'_, '_>,
        context: &Rc<Context>,
        graph: &Graph,
    ) -> Step<()> {
        let mut text = JsonText::default();
        let mut first = true;
        while reader.item(first, &mut text)? {
            first = false;
            Walk::new(walker).top(text.root(), context, graph)?;
        }
        Ok(())
    }

    /// Processes a document that is an object.
    fn object(
        &self,
        reader: JsonReader<'_>,
        plain: bool,
        walker: &mut Walker<'_, '_>,
        initial: &Rc<Context>,
    ) -> Step<()> {
        let (skipped, head, rest) = reader.into_parts();
        let origin = &self.document.origin;
        let again = plain && matches!(origin, Origin::File(_) | Origin::Memory(..));
        // The first bytes were read to detect compression.
        let counted = (skipped + head.len() as u64).max(Compression::MAGIC_LEN as u64);
        let opened = OpenedDocument {
            reader: Box::new(Cursor::new(head).chain(rest)),
            plain,
        };
        let start = if again { 0 } else { skipped };
        let mut restart = Restart::new(origin, opened, self.run.limits)?;
        let source = restart.from(0)?;
        *self.restart.borrow_mut() = Some(Again {
            restart,
            start,
            counted,
            counts: again,
        });
        let mut lines = self.tail.borrow().lines_before(start);
        let mut reader = self.reader(source, start, lines, false)?;
        let mut text = JsonText::default();
        let mut array = None;
        let read = reader.object_without("@graph", &mut text, &mut array);
        // In a lenient run, a mistake after the beginning of the array is reported only after the items before it were
        // processed.
        let later = match read.and_then(|()| reader.ended()) {
            Err(Stop::Bad(fault)) if walker.skipped.is_some() && array.is_some() => Some(fault),
            read => {
                read?;
                None
            }
        };
        let found = Walk::new(walker).root(text.root(), initial, array.is_some())?;
        let Some(at) = array else {
            return self.count_rest(0);
        };
        let source = self.read_again(at, &mut lines)?;
        let mut reader = self.reader(source, at, lines, again)?;
        if let (Some((context, graph)), Top::Array) = (found, reader.top()?) {
            self.items(&mut reader, walker, &context, &graph)?;
        }
        if let Some(fault) = later {
            return Err(Stop::Bad(fault));
        }
        self.count_rest(reader.read_bytes(at))
    }

    /// Reads the document again from a position on. `lines` receives the line ends before it.
    fn read_again(&self, at: u64, lines: &mut LineCounter) -> Result<Box<dyn Read + Send>> {
        let mut again = self.restart.borrow_mut();
        let Some(again) = &mut *again else {
            return Err(Error::Internal("the document is not kept".into()));
        };
        let to = at - again.start;
        again.restart.count_lines(0, to, lines)?;
        again.restart.from(to)
    }

    /// Counts those bytes of a document that were read but not counted yet.
    fn count_rest(&self, counted: u64) -> Step<()> {
        if let Some(again) = &*self.restart.borrow()
            && again.counts
            && let Some(size) = self.document.origin.size()
        {
            let rest = size.saturating_sub(again.counted + counted);
            self.run.counter.fetch_add(rest, Ordering::Relaxed);
        }
        Ok(())
    }

    fn report(&self, fault: &Fault) -> Result<()> {
        self.run.bad(self.document.number, fault.at, |lines| {
            let mut message = fault.message.clone();
            if !message.contains("expected") {
                message.push_str(", expected valid JSON-LD");
            }
            let file = self.document.origin.name();
            let tail = self.tail.borrow();
            let known = tail.line_at(fault.at);
            let scanned = match (&known, lines) {
                (None, LineNumbers::Wanted) => self.scan(fault.at)?,
                _ => None,
            };
            let found = known.or_else(|| scanned.as_ref()?.line_at(fault.at));
            let (line, text, at) = found.unwrap_or((0, b"", 0));
            Ok(BadStatement::in_line(file, line, text, at, message))
        })
    }

    /// Reads the document again up to a position, so that a message can show the line; `None` if that is impossible.
    fn scan(&self, at: u64) -> Result<Option<Tail>> {
        let again = &mut *self.restart.borrow_mut();
        let (mut source, start) = match (again, &self.document.origin) {
            (Some(again), _) => (again.restart.from(0)?, again.start),
            (None, origin @ (Origin::File(_) | Origin::Memory(..))) => {
                let counter = Arc::default();
                let compression = self.document.compression;
                let opened = input::open(origin, compression, &counter, self.run.limits)?;
                (opened.reader, 0)
            }
            _ => return Ok(None),
        };
        let mut tail = Tail::new(start, LineCounter::default());
        let (mut piece, mut read) = (Vec::with_capacity(PIECE), start);
        // Some text after the position is read as well, since the message shows the whole line.
        while read < at + PIECE as u64 {
            self.run.limits.cancel.check()?;
            piece.clear();
            match input::read_more(&mut source, &mut piece, PIECE) {
                Ok(n) if n > 0 => read += n as u64,
                _ => break,
            }
            tail.add(&piece);
        }
        Ok(Some(tail))
    }
}
