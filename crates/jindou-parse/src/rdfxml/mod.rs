//! RDF/XML 1.1 and 1.2 on top of [`crate::xml`]: from XML events to statements. Only open elements are in memory.
//!
//! Each open element has a frame, whose role follows from the grammar of the specification: nodes and properties
//! alternate. Terms are canonical bytes in an arena that grows and shrinks with the frames, so that a statement needs
//! no allocation.

mod attributes;
mod frames;
mod literal;
mod node;
mod property;
mod terms;

use crate::document::{ReadContext, bad_base};
use crate::emit::QuadEmitter;
use crate::limits::unwrapped;
use crate::report::BadStatement;
use crate::sources::SourceDocument;
use crate::xml::{Event, Fault, Reader, ReaderOptions};
use frames::{ElementFrame, ElementKind};
use jindou_model::{Charge, Error, Holder, Resource, Result};
use literal::CanonicalContent;
use oxiri::Iri;
use std::io::{self, Read};
use terms::{ElementTerm, Ids};

/// Deepest nesting of elements.
const MAX_DEPTH: usize = 1000;
/// Largest number of attributes of an element, namespace declarations included.
const MAX_ATTRIBUTES: usize = 1000;
/// Bytes of text and terms that are not charged.
const FREE: usize = 1 << 20;
/// Estimated bytes of an error with its position and its line.
const BAD: usize = 1 << 10;

/// How a document ended.
pub(crate) enum DocumentEnd {
    /// The whole document was read, or another worker stopped the run.
    Whole,
    /// The document was abandoned: the text from this byte position on cannot be interpreted.
    GivenUp(u64),
}

/// Reads a document.
pub(crate) fn read(
    bytes: Box<dyn Read + Send>,
    document: &SourceDocument,
    run: &ReadContext<'_>,
    out: &mut QuadEmitter<'_>,
) -> Result<DocumentEnd> {
    let base = document.base.clone().map(Iri::parse).transpose();
    let base = base.map_err(|e| bad_base(document, e))?;
    let options = ReaderOptions {
        depth: MAX_DEPTH,
        attributes: MAX_ATTRIBUTES,
        memory: run.limits.memory.clone(),
        encoding: document.charset.clone(),
        ..ReaderOptions::default()
    };
    let source = Cancelled { bytes, run };
    let mut parser = RdfXmlParser {
        document,
        run,
        state: StatementState {
            out,
            frames: Vec::new(),
            arena: Vec::new(),
            text: String::new(),
            bases: base.map(Ok).into_iter().collect(),
            bads: Vec::new(),
            new_bads: 0,
            lost: Vec::new(),
            ids: Ids::default(),
            captures: Vec::new(),
            literal: CanonicalContent::default(),
            scratch: Vec::new(),
            resolved: String::new(),
            goes_on: true,
        },
        charge: Charge::new(Holder::Text, &run.limits.memory),
    };
    match Reader::new(source, options) {
        Ok(mut reader) => parser.run(&mut reader),
        Err(e) => parser.ended(e),
    }
}

/// A reader that fails when the run is cancelled.
struct Cancelled<'a> {
    bytes: Box<dyn Read + Send>,
    run: &'a ReadContext<'a>,
}

impl Read for Cancelled<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.run.limits.cancel.check().map_err(io::Error::other)?;
        self.bytes.read(to)
    }
}

/// A term, attribute or element that is not valid.
#[derive(Clone)]
struct BadElement {
    message: String,
    /// Position of the invalid statement, and its byte offset, once they are known.
    at: Option<(BadStatement, u64)>,
}

/// An element that is not allowed at its place. The document cannot be interpreted from there on.
struct Stray(String);

type Meaning<T> = std::result::Result<T, Stray>;

/// The conversion of XML events to statements. It does not know positions in the document; its caller adds them to
/// errors.
struct StatementState<'a, 'e> {
    out: &'a mut QuadEmitter<'e>,
    frames: Vec<ElementFrame>,
    /// Canonical bytes of the terms of open elements.
    arena: Vec<u8>,
    /// Text of open elements.
    text: String,
    /// The bases in scope, the innermost last; the first one is the document's, if it has one. `Err` has the number of
    /// an invalid term.
    bases: Vec<std::result::Result<Iri<String>, u32>>,
    /// Invalid terms of open elements, to which later statements may refer.
    bads: Vec<BadElement>,
    /// Number of these whose positions are known.
    new_bads: usize,
    /// Statements that are omitted: for each, the number of the invalid term in it.
    lost: Vec<u32>,
    ids: Ids,
    /// The triple terms that are being read, the innermost last.
    captures: Vec<Capture>,
    literal: CanonicalContent,
    /// Canonical bytes of the object of the next statement.
    scratch: Vec<u8>,
    resolved: String,
    /// False once the run was stopped.
    goes_on: bool,
}

/// A triple term that is being read. It must contain exactly one statement.
#[derive(Default)]
struct Capture {
    statements: usize,
    term: Vec<u8>,
    bad: Option<u32>,
}

struct RdfXmlParser<'a, 'e> {
    document: &'a SourceDocument,
    run: &'a ReadContext<'a>,
    state: StatementState<'a, 'e>,
    charge: Charge,
}

impl RdfXmlParser<'_, '_> {
    fn run(&mut self, reader: &mut Reader<'_>) -> Result<DocumentEnd> {
        loop {
            let event = match reader.next_event() {
                Ok(event) => event,
                Err(e) => return self.ended(e),
            };
            let state = &mut self.state;
            let meaning = match event {
                Event::Start(start) => {
                    state.declarations(&start)?;
                    state.start(&start)?
                }
                Event::End { name } => state.end(name)?,
                Event::Text(text) => state.text(text),
                Event::Comment(text) => {
                    state.comment(text);
                    Ok(())
                }
                Event::Instruction { target, data } => {
                    state.instruction(target, data);
                    Ok(())
                }
                Event::Eof => return Ok(DocumentEnd::Whole),
                _ => Ok(()),
            };
            if let Err(Stray(message)) = meaning {
                return self.ended(reader.fault(message));
            }
            if !self.state.goes_on {
                return Ok(DocumentEnd::Whole);
            }
            if self.state.new_bads < self.state.bads.len() || !self.state.lost.is_empty() {
                self.lose(reader)?;
            }
            let held = self.state.held();
            if held > FREE || self.charge.bytes() > 0 {
                self.charge(held)?;
            }
        }
    }

    /// Adds positions to new invalid terms, and reports the statements that are omitted because of them.
    #[cold]
    fn lose(&mut self, reader: &Reader<'_>) -> Result<()> {
        let state = &mut self.state;
        for bad in state.bads.iter_mut().skip(state.new_bads) {
            if let crate::xml::Error::Syntax(fault) = reader.fault(bad.message.clone()) {
                let offset = fault.at.offset;
                bad.at = Some((said(self.document, &fault), offset));
            }
        }
        let lost = match self.run.lenient {
            true => std::mem::take(&mut state.lost),
            // A strict run ends at an invalid term, even if no statement needs it.
            false => (state.new_bads as u32..state.bads.len() as u32).collect(),
        };
        state.new_bads = state.bads.len();
        for number in lost {
            if let Some(BadElement {
                at: Some((bad, offset)),
                ..
            }) = state.bads.get(number as usize)
            {
                self.run
                    .bad(self.document.number, *offset, |_| Ok(bad.clone()))?;
            }
        }
        Ok(())
    }

    #[cold]
    fn charge(&mut self, held: usize) -> Result<()> {
        let held = match held > FREE {
            true => held as u64,
            false => 0,
        };
        self.charge.set(held)
    }

    /// The result for a document that is not well-formed, cannot be interpreted, or exceeds a limit.
    #[cold]
    fn ended(&self, e: crate::xml::Error) -> Result<DocumentEnd> {
        match e {
            crate::xml::Error::Syntax(fault) => {
                let offset = fault.at.offset;
                let bad = said(self.document, &fault);
                self.run
                    .bad(self.document.number, offset, |_| Ok(bad.clone()))?;
                Ok(DocumentEnd::GivenUp(offset))
            }
            crate::xml::Error::Io(e) => match unwrapped(e) {
                Ok(limit) => Err(limit),
                Err(e) => Err(self.document.origin.error(e)),
            },
            crate::xml::Error::Limit(limit) => Err(limit),
        }
    }
}

fn said(document: &SourceDocument, fault: &Fault) -> BadStatement {
    let mut message = fault.message.clone();
    if !message.contains("expected") {
        message.push_str(", expected valid RDF/XML");
    }
    let file = document.origin.name();
    let mut bad = BadStatement::in_line(
        file,
        fault.at.line,
        fault.line.as_bytes(),
        fault.at_in_line,
        message,
    );
    bad.at.column = fault.at.column;
    bad
}

impl StatementState<'_, '_> {
    /// Bytes in use for open elements and for the `rdf:ID`s seen so far.
    fn held(&self) -> usize {
        self.arena.len()
            + self.text.len()
            + self.literal.held()
            + self.ids.held()
            + self.frames.len() * size_of::<ElementFrame>()
            + self.bads.len() * BAD
    }

    /// Records an invalid term. Its position is added after the current event.
    #[cold]
    fn bad(&mut self, message: impl Into<String>) -> ElementTerm {
        let number = self.bads.len() as u32;
        self.bads.push(BadElement {
            message: message.into(),
            at: None,
        });
        ElementTerm::Bad(number)
    }

    /// Records an attribute that is not allowed, and ignores it.
    #[cold]
    fn refuse(&mut self, message: impl Into<String>) {
        if let ElementTerm::Bad(number) = self.bad(message) {
            self.lost.push(number);
        }
    }

    fn text(&mut self, text: &str) -> Meaning<()> {
        let Some(frame) = self.frames.last_mut() else {
            return Ok(());
        };
        match frame.kind {
            ElementKind::Literal => {
                self.literal.text(text);
                Ok(())
            }
            ElementKind::Ignored => Ok(()),
            ElementKind::Property => {
                if !frame.has_text && !is_blank(text) {
                    frame.has_text = true;
                }
                if frame.has_node {
                    return match frame.has_text {
                        true => Err(Stray("text next to an element in a property, expected either text or one element".into())),
                        false => Ok(()),
                    };
                }
                self.text.push_str(text);
                Ok(())
            }
            _ if is_blank(text) => Ok(()),
            ElementKind::Root => Err(Stray(
                "text between descriptions, expected an element".into(),
            )),
            ElementKind::Node => Err(Stray(
                "text between the properties of a node, expected an element".into(),
            )),
            ElementKind::Empty => Err(Stray(
                "text in a property whose value is given by attributes, expected its end".into(),
            )),
            ElementKind::Collection | ElementKind::Triple => Err(Stray(
                "text among the elements of a property, expected an element".into(),
            )),
        }
    }

    fn comment(&mut self, text: &str) {
        if self.is_in_literal() {
            self.literal.comment(text);
        }
    }

    fn instruction(&mut self, target: &str, data: &str) {
        if self.is_in_literal() {
            self.literal.instruction(target, data);
        }
    }

    fn is_in_literal(&self) -> bool {
        self.frames
            .last()
            .is_some_and(|f| f.kind == ElementKind::Literal)
    }

    /// Passes the prefixes that an element declares on, unless it is part of an XML literal.
    #[inline]
    fn declarations(&mut self, start: &crate::xml::Start<'_>) -> Result<()> {
        if start.has_declarations() && !self.is_in_literal() {
            for (prefix, iri) in start.declarations() {
                self.out.prefix(prefix, iri)?;
            }
        }
        Ok(())
    }

    fn start(&mut self, start: &crate::xml::Start<'_>) -> Result<Meaning<()>> {
        let Some(parent) = self.frames.last_mut() else {
            return self.root(start);
        };
        match parent.kind {
            ElementKind::Literal => {
                parent.depth += 1;
                self.literal.start(start);
                Ok(Ok(()))
            }
            ElementKind::Ignored => {
                parent.depth += 1;
                Ok(Ok(()))
            }
            ElementKind::Node => self.property(start),
            ElementKind::Root
            | ElementKind::Property
            | ElementKind::Collection
            | ElementKind::Triple => self.node(start),
            ElementKind::Empty => Ok(Err(Stray(
                "an element in a property whose value is given by attributes, expected its end"
                    .into(),
            ))),
        }
    }

    fn end(&mut self, name: &str) -> Result<Meaning<()>> {
        if let Some(frame) = self.frames.last_mut()
            && frame.depth > 0
        {
            frame.depth -= 1;
            if frame.kind == ElementKind::Literal {
                self.literal.end(name);
            }
            return Ok(Ok(()));
        }
        let Some(frame) = self.frames.pop() else {
            return Ok(Ok(()));
        };
        let meaning = match frame.kind {
            ElementKind::Property
            | ElementKind::Literal
            | ElementKind::Collection
            | ElementKind::Triple => self.end_property(&frame)?,
            ElementKind::Root | ElementKind::Node | ElementKind::Empty | ElementKind::Ignored => {
                Ok(())
            }
        };
        self.arena.truncate(frame.mark);
        self.text.truncate(frame.text);
        self.bases.truncate(frame.outer_bases);
        // Invalid terms must stay recorded until their positions are known and their statements are reported.
        if self.lost.is_empty() && self.new_bads == self.bads.len() {
            self.bads.truncate(frame.bads);
            self.new_bads = self.bads.len();
        }
        Ok(meaning)
    }

    /// Emits a statement, or makes it the statement of the triple term that is being read.
    fn statement(
        &mut self,
        subject: ElementTerm,
        predicate: ElementTerm,
        object: ObjectPlace,
    ) -> Result<()> {
        let lost = [subject, predicate]
            .into_iter()
            .find_map(ElementTerm::lost)
            .or(match object {
                ObjectPlace::Term(term) => term.lost(),
                ObjectPlace::Scratch => None,
            });
        let capture = self.captures.last_mut();
        if let Some(number) = lost {
            match capture {
                Some(capture) => {
                    capture.statements += 1;
                    capture.bad = Some(number);
                }
                None => self.lost.push(number),
            }
            return Ok(());
        }
        let term = |t: ElementTerm| t.bytes(&self.arena);
        let object = match object {
            ObjectPlace::Term(object) => term(object),
            ObjectPlace::Scratch => &self.scratch,
        };
        match capture {
            None => {
                self.goes_on &= self.out.terms(term(subject), term(predicate), object)?;
            }
            Some(capture) => {
                capture.statements += 1;
                if capture.statements == 1 {
                    terms::triple(term(subject), term(predicate), object, &mut capture.term)?;
                }
            }
        }
        Ok(())
    }
}

/// Where the object of a statement is.
#[derive(Clone, Copy)]
enum ObjectPlace {
    Term(ElementTerm),
    /// In [`StatementState::scratch`].
    Scratch,
}

fn is_blank(text: &str) -> bool {
    text.bytes()
        .all(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r'))
}

/// The error for a triple term that is nested too deeply.
fn too_deep() -> Error {
    Error::limit(
        Resource::Form,
        format!(
            "a triple term nests deeper than {} levels",
            crate::line::MAX_NESTING
        ),
    )
}
