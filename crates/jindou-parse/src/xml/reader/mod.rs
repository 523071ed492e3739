//! The reader: its state, and what is allowed at each place of a document.

mod content;
mod start;

use crate::xml::chars;
use crate::xml::declaration::{self, Declaration};
use crate::xml::dtd::{self, Dtd, Notation};
use crate::xml::error::{Error, Position, Result};
use crate::xml::event::{Event, Name, Start, local};
use crate::xml::input::DecodedInput;
use crate::xml::names::{Bindings, NONE};
use crate::xml::options::ReaderOptions;
use crate::xml::tag::{Attr, Tag};
use jindou_model::{Charge, Holder};
use std::io::Read;
use std::ops::Range;

/// Bytes of memory that a reader may use without a charge.
const FREE: usize = 512 << 10;
/// Incomplete markup of up to this many bytes is parsed again whenever more was read; longer markup only after it has
/// grown by half.
const EAGER: usize = 16 << 10;

/// Reads a document, one [`Event`] at a time.
pub struct Reader<'r> {
    /// The current input: the document, or the text of an entity.
    input: DecodedInput<'r>,
    /// The inputs that continue when the current entity ends; the first one is the document.
    outer: Vec<EntityFrame<'r>>,
    options: ReaderOptions,
    stage: DocumentStage,
    dtd: Dtd,
    standalone: bool,
    bindings: Bindings,
    /// Concatenated names of the open elements.
    names: String,
    elements: Vec<OpenElement>,
    attributes: Vec<Attr>,
    /// Normalised values of the last tag's attributes.
    values: String,
    /// Text that differs from the input, such as text with normalised line ends.
    scratch: String,
    in_cdata: bool,
    /// True if the last tag was that of an empty element, whose end is the next event.
    ends_next: bool,
    /// Number of bytes to which entities have expanded.
    expanded: u64,
    charge: Charge,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DocumentStage {
    /// At the beginning of the document, before anything was read.
    Begin,
    /// Before the root element; true if a document type declaration may still follow.
    Prolog(bool),
    Content,
    /// After the root element.
    Epilog,
    /// After an error or the end.
    Over,
}

/// An open element.
struct OpenElement {
    /// Range of its name in [`Reader::names`].
    name: Range<usize>,
    /// Number of bindings in scope outside of it.
    bindings: usize,
}

/// The reader's state at the reference to an entity.
struct EntityFrame<'r> {
    input: DecodedInput<'r>,
    /// Number of elements that were open, which must be open again at the end of the entity.
    depth: usize,
    entity: Box<str>,
}

/// An event, whose texts are ranges of the input, or `None` for text in the scratch buffer.
#[derive(Clone)]
enum RawEvent {
    Start(Tag, u32),
    End(Range<usize>),
    Text(Option<Range<usize>>),
    Comment(Option<Range<usize>>),
    /// The target, and the data.
    Instruction(Range<usize>, Option<Range<usize>>),
    Skipped(Range<usize>),
    Eof,
}

impl<'r> Reader<'r> {
    /// A reader of a document. Detects the encoding.
    ///
    /// # Errors
    /// Fails if the first bytes cannot be read, or the encoding is unknown.
    pub fn new(source: impl Read + 'r, options: ReaderOptions) -> Result<Self> {
        let charge = Charge::new(Holder::Text, &options.memory);
        Ok(Self {
            input: DecodedInput::open(Box::new(source), options.encoding.as_deref())?,
            outer: Vec::new(),
            options,
            stage: DocumentStage::Begin,
            dtd: Dtd::default(),
            standalone: false,
            bindings: Bindings::new(),
            names: String::new(),
            elements: Vec::new(),
            attributes: Vec::new(),
            values: String::new(),
            scratch: String::new(),
            in_cdata: false,
            ends_next: false,
            expanded: 0,
            charge,
        })
    }

    /// The next part of the document. After [`Event::Eof`], every call returns that event again.
    ///
    /// # Errors
    /// Fails if the document is not well-formed or ends early, a limit is exceeded, or reading fails. Stop at the first
    /// error: later calls return [`Event::Eof`].
    #[inline]
    pub fn next_event(&mut self) -> Result<Event<'_>> {
        let token = match self.advance() {
            Ok(token) => token,
            Err(e) => {
                self.stage = DocumentStage::Over;
                return Err(e);
            }
        };
        Ok(match token {
            RawEvent::Start(tag, binding) => {
                let name = self.elements.last().map_or(0..0, |e| e.name.clone());
                let qualified = &self.names[name];
                Event::Start(Start {
                    name: Name {
                        qualified,
                        prefix: &qualified[..tag.prefix],
                        local: local(qualified, tag.prefix),
                        namespace: self.bindings.uri(binding),
                    },
                    attributes: &self.attributes,
                    input: self.input.since_start(),
                    values: &self.values,
                    bindings: &self.bindings,
                })
            }
            RawEvent::End(name) => Event::End {
                name: &self.names[name],
            },
            RawEvent::Text(text) => Event::Text(self.text_of(text)),
            RawEvent::Comment(text) => Event::Comment(self.text_of(text)),
            RawEvent::Instruction(target, data) => Event::Instruction {
                target: self.input.part(target),
                data: self.text_of(data),
            },
            RawEvent::Skipped(name) => Event::Skipped(self.input.part(name)),
            RawEvent::Eof => Event::Eof,
        })
    }

    #[inline]
    fn text_of(&self, range: Option<Range<usize>>) -> &str {
        range.map_or(self.scratch.as_str(), |range| self.input.part(range))
    }

    /// The position at which the last event started; inside of an entity, that of the reference in the document.
    #[must_use]
    pub fn position(&self) -> Position {
        let document = self.document();
        document.position(document.start)
    }

    /// Number of bytes of the document that were read so far, including those not parsed yet.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.document().bytes_read()
    }

    /// Number of open elements.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.elements.len()
    }

    /// An error at the position of the last event, for the caller's own checks.
    #[cold]
    #[must_use]
    pub fn fault(&self, message: impl Into<String>) -> Error {
        let document = self.document();
        document.fault(document.start, message)
    }

    /// Name of the root element in the document type declaration; empty if there is none.
    #[must_use]
    pub fn doctype(&self) -> &str {
        &self.dtd.name
    }

    /// Notations that the document declares.
    #[must_use]
    pub fn notations(&self) -> &[Notation] {
        &self.dtd.notations
    }

    /// Targets and data of the processing instructions in the document type declaration.
    pub fn declared_instructions(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.dtd.instructions.iter();
        all.map(|(target, data)| (target.as_ref(), data.as_ref()))
    }

    fn document(&self) -> &DecodedInput<'r> {
        self.outer.first().map_or(&self.input, |f| &f.input)
    }

    /// The error at a byte of the current input.
    #[cold]
    fn bad(&self, at: usize, message: impl Into<String>) -> Error {
        match self.outer.last() {
            Some(frame) => {
                let message = format!("in the entity `{}`: {}", frame.entity, message.into());
                self.fault(message)
            }
            None => self.input.fault(at, message),
        }
    }

    /// Fails at the start of the current token.
    #[cold]
    fn refuse<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(self.bad(self.input.start, message))
    }

    /// Reads more text; `false` at the end of the current input.
    #[cold]
    fn more(&mut self) -> Result<bool> {
        let more = self.input.more()?;
        self.charge()?;
        Ok(more)
    }

    /// Charges the memory in use.
    fn charge(&mut self) -> Result<()> {
        let frames: usize = self.outer.iter().map(|f| f.input.held()).sum();
        let held = self.input.held()
            + frames
            + self.names.capacity()
            + self.elements.capacity() * size_of::<OpenElement>()
            + self.values.capacity()
            + self.scratch.capacity()
            + self.attributes.capacity() * size_of::<Attr>()
            + self.bindings.held()
            + self.dtd.held;
        let held = match held > FREE {
            true => held as u64,
            false => 0,
        };
        self.charge.set(held).map_err(Error::Limit)
    }

    fn advance(&mut self) -> Result<RawEvent> {
        if self.ends_next {
            self.ends_next = false;
            self.input.start = self.input.at;
            return Ok(self.pop());
        }
        loop {
            self.input.start = self.input.at;
            match self.stage {
                DocumentStage::Content => {
                    if let Some(token) = self.content()? {
                        return Ok(token);
                    }
                }
                DocumentStage::Begin => self.begin()?,
                DocumentStage::Prolog(_) | DocumentStage::Epilog => {
                    if let Some(token) = self.outside()? {
                        return Ok(token);
                    }
                }
                DocumentStage::Over => return Ok(RawEvent::Eof),
            }
        }
    }

    /// Parses the XML declaration, if there is one.
    fn begin(&mut self) -> Result<()> {
        while self.input.rest().len() < 6 && self.more()? {}
        // The byte order mark was skipped before decoding; another one would not be white space.
        self.stage = DocumentStage::Prolog(true);
        let rest = self.input.rest();
        if !(rest.starts_with("<?xml")
            && rest.as_bytes().get(5).is_some_and(|&b| chars::is_space(b)))
        {
            return Ok(());
        }
        let Some(end) = self.find("?>", 5)? else {
            return self.refuse("the XML declaration does not end, expected `?>`");
        };
        let (from, end) = (self.input.start + 5, self.input.start + end);
        let declaration = match declaration::parse(self.input.part(from..end)) {
            Ok(declaration) => declaration,
            Err((at, message)) => return Err(self.bad(from + at, message)),
        };
        let Declaration {
            encoding,
            standalone,
        } = declaration;
        if let Some(encoding) = encoding {
            self.input.check_encoding(&encoding)?;
        }
        self.standalone = standalone;
        self.input.at = end + 2;
        Ok(())
    }

    /// The next token before or after the root element.
    fn outside(&mut self) -> Result<Option<RawEvent>> {
        let spaces = chars::spaces(self.input.rest().as_bytes());
        self.input.at += spaces;
        self.input.start = self.input.at;
        let rest = self.input.rest().as_bytes();
        match rest.first() {
            None => {
                if self.more()? {
                    return Ok(None);
                }
                match self.stage {
                    DocumentStage::Epilog => {
                        self.stage = DocumentStage::Over;
                        Ok(Some(RawEvent::Eof))
                    }
                    _ => self.refuse("the document ends before its root element, expected `<` and the name of an element"),
                }
            }
            Some(b'<') => match rest.get(1) {
                None => match self.more()? {
                    true => Ok(None),
                    false => self.refuse("the document ends in a tag"),
                },
                Some(b'?') => self.instruction().map(Some),
                Some(b'!') => {
                    if self.begins("<!--")? {
                        self.comment().map(Some)
                    } else if self.begins("<!DOCTYPE")? && self.stage == DocumentStage::Prolog(true)
                    {
                        self.doctype_declaration()?;
                        Ok(None)
                    } else {
                        self.refuse(match self.stage {
                            DocumentStage::Prolog(true) => "expected a comment, a document type declaration or the root element",
                            _ => "expected a comment, a processing instruction or an element that is allowed here",
                        })
                    }
                }
                Some(_) if self.stage == DocumentStage::Epilog => {
                    self.refuse("a document has one root element, expected its end")
                }
                Some(_) => {
                    self.stage = DocumentStage::Content;
                    self.start_tag().map(Some)
                }
            },
            Some(_) => self.refuse(match self.stage {
                DocumentStage::Epilog => "text after the root element, expected the document's end",
                _ => "text before the root element, expected `<`",
            }),
        }
    }

    /// True if `piece` comes next. Reads as much as is needed to tell.
    fn begins(&mut self, piece: &str) -> Result<bool> {
        loop {
            let rest = self.input.rest();
            if rest.len() >= piece.len() {
                return Ok(rest.starts_with(piece));
            }
            if !piece.starts_with(rest) || !self.more()? {
                return Ok(false);
            }
        }
    }

    /// Offset of `piece` from the start of the current token, searched from `from` on; `None` if the document ends
    /// before it.
    fn find(&mut self, piece: &str, from: usize) -> Result<Option<usize>> {
        let mut searched = from;
        loop {
            let text = self.input.since_start();
            let rest = text.as_bytes().get(searched..).unwrap_or_default();
            if let Some(n) = memchr::memmem::find(rest, piece.as_bytes()) {
                return Ok(Some(searched + n));
            }
            searched = searched.max((text.len() + 1).saturating_sub(piece.len()));
            self.check_markup(text.len())?;
            if !self.more()? {
                return Ok(None);
            }
        }
    }

    fn check_markup(&self, length: usize) -> Result<()> {
        match length <= self.options.markup {
            true => Ok(()),
            false => self.refuse(format!(
                "a tag, comment or processing instruction is longer than {} MiB, the maximum",
                self.options.markup >> 20
            )),
        }
    }

    /// Reads more of incomplete markup, of which `seen` bytes were parsed, until it is worth parsing again; `false` at
    /// the end.
    #[cold]
    fn more_markup(&mut self, seen: usize) -> Result<bool> {
        loop {
            let before = self.input.since_start().len();
            self.check_markup(before)?;
            if !self.more()? {
                // Text that was read since then is parsed once more.
                return Ok(before > seen);
            }
            let text = self.input.since_start().as_bytes();
            let new = text.get(before..).unwrap_or_default();
            let is_worth = seen < EAGER || text.len() >= seen + seen / 2;
            if is_worth && (memchr::memchr(b'>', new).is_some() || before > seen) {
                return Ok(true);
            }
        }
    }

    fn doctype_declaration(&mut self) -> Result<()> {
        let mut length = None;
        loop {
            let text = self.input.since_start();
            if let Some(found) = dtd::length(text) {
                length = Some(found);
                break;
            }
            let seen = text.len();
            if seen > self.options.doctype {
                break;
            }
            if !self.more_markup(seen)? {
                break;
            }
        }
        let whole = self.input.since_start();
        let text = whole
            .get(..length.unwrap_or(whole.len()))
            .unwrap_or_default();
        if text.len() > self.options.doctype {
            return self.refuse(format!(
                "the document type declaration is longer than {} KiB, the maximum",
                self.options.doctype >> 10
            ));
        }
        let mut normal = String::with_capacity(text.len());
        chars::push_lines(text, &mut normal);
        match dtd::parse(&normal, self.standalone, &self.options) {
            Ok(dtd) => self.dtd = dtd,
            Err(bad) => {
                // Number of carriage returns that were dropped before the error's position.
                let mut place = bad.at;
                if normal.len() < text.len() {
                    let lines = normal
                        .get(..bad.at)
                        .unwrap_or_default()
                        .matches('\n')
                        .count();
                    let returns = text
                        .match_indices("\r\n")
                        .take(lines)
                        .filter(|(n, _)| *n < bad.at + lines);
                    place += returns.count();
                }
                return Err(self.bad(self.input.start + place, bad.message));
            }
        }
        self.input.at = self.input.start + length.unwrap_or(text.len());
        self.stage = DocumentStage::Prolog(false);
        self.charge()
    }

    /// Ends the innermost element.
    fn pop(&mut self) -> RawEvent {
        let Some(element) = self.elements.pop() else {
            return RawEvent::Eof;
        };
        self.bindings.truncate(element.bindings);
        if self.elements.is_empty() {
            self.stage = DocumentStage::Epilog;
        }
        // The name is kept until the next element begins, since the event refers to it.
        RawEvent::End(element.name)
    }
}

impl RawEvent {
    fn start(tag: Tag, binding: Option<u32>) -> Self {
        Self::Start(tag, binding.unwrap_or(NONE))
    }
}
