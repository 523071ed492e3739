//! Stands between a document's bytes and the parser of a nesting format (Turtle, TriG, RDF/XML,
//! JSON-LD), because those parsers build, drop or walk nested things recursively or in quadratic
//! time. It looks at the text just enough to know how deep it nests and refuses what is absurd, and
//! it keeps the last stretch of text, so that an error can show the line it is in.

use crate::format::Format;
use crate::input::LineCounter;
use crate::limits::Meter;
use crate::line::MAX_NESTING;
use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;

/// How deep JSON values and XML elements may nest.
const MAX_DEPTH: usize = 1000;
/// Longest value of an XML entity after its own references are resolved. Namespaces are some
/// hundred bytes; entities made of entities grow exponentially.
const MAX_ENTITY: u64 = 4096;
/// Longest XML document type declaration.
const MAX_DOCTYPE: usize = 1 << 20;
/// Most attributes of an XML element, namespaces included: parsers look each up among all of them.
const MAX_ATTRIBUTES: usize = 1000;
/// Longest IRI that Turtle's relative @base directives may grow to: each IRI of the document may begin with it.
const MAX_BASE: usize = 1 << 16;
/// How much text is kept behind for messages: more than the parsers read ahead.
const KEPT: usize = 1 << 19;

/// Why the guard stopped, and where.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    /// Byte position in the document.
    pub(crate) offset: u64,
    /// "…, expected …".
    pub(crate) message: String,
}

/// The last text that was read.
#[derive(Default)]
pub(crate) struct Tail {
    text: Vec<u8>,
    /// Position of `text` in the document.
    start: u64,
    /// Line ends before `text`.
    lines: LineCounter,
    /// Set when the guard stopped the reading.
    pub(crate) refused: Option<Refused>,
}

impl Tail {
    fn add(&mut self, bytes: &[u8]) {
        if self.text.len() > 2 * KEPT {
            let cut = self.text.len() - KEPT;
            self.lines.add(&self.text[..cut]);
            self.start += cut as u64;
            self.text.drain(..cut);
        }
        self.text.extend_from_slice(bytes);
    }

    /// Line number from 1, that line's text and the offset's byte position in it, if still known.
    pub(crate) fn line_at(&self, offset: u64) -> Option<(u64, &[u8], usize)> {
        let at = usize::try_from(offset.checked_sub(self.start)?)
            .ok()?
            .min(self.text.len());
        let from = memchr::memrchr2(b'\n', b'\r', &self.text[..at]).map_or(0, |n| n + 1);
        let to =
            memchr::memchr2(b'\n', b'\r', &self.text[at..]).map_or(self.text.len(), |n| at + n);
        let mut lines = self.lines;
        lines.add(&self.text[..from]);
        Some((lines.lines + 1, &self.text[from..to], at - from))
    }

    /// Text of a line (from 1), if still known.
    pub(crate) fn line(&self, number: u64) -> Option<&[u8]> {
        let mut skip = number.checked_sub(self.lines.lines + 1)?;
        let mut rest = self.text.as_slice();
        while skip > 0 {
            let end = memchr::memchr2(b'\n', b'\r', rest)?;
            let crlf = usize::from(rest[end..].starts_with(b"\r\n"));
            rest = &rest[end + 1 + crlf..];
            skip -= 1;
        }
        Some(&rest[..memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len())])
    }
}

/// Reads through, watching.
pub(crate) struct Guard<R> {
    inner: R,
    watch: Watch,
    offset: u64,
    tail: Rc<RefCell<Tail>>,
    meter: Rc<Meter>,
}

impl<R: Read> Guard<R> {
    pub(crate) fn new(
        inner: R,
        format: Format,
        start: u64,
        lines: LineCounter,
        meter: &Rc<Meter>,
    ) -> Self {
        let watch = match format {
            Format::Turtle | Format::TriG | Format::NTriples | Format::NQuads => {
                Watch::Turtle(Turtle::default())
            }
            Format::RdfXml => Watch::Xml(Xml::default()),
            Format::JsonLd => Watch::Json(Json::default()),
        };
        let tail = Tail {
            text: Vec::new(),
            start,
            lines,
            refused: None,
        };
        Self {
            inner,
            watch,
            offset: start,
            tail: Rc::new(RefCell::new(tail)),
            meter: Rc::clone(meter),
        }
    }

    pub(crate) fn tail(&self) -> Rc<RefCell<Tail>> {
        Rc::clone(&self.tail)
    }
}

impl<R: Read> Read for Guard<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = loop {
            match self.inner.read(buf) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.meter.read(n)?;
        let bytes = &buf[..n];
        self.tail.borrow_mut().add(bytes);
        let (seen, tokens) = match &mut self.watch {
            Watch::Turtle(w) => {
                let seen = w.see(bytes);
                self.meter.levels(w.open as u64);
                (seen, 0)
            }
            Watch::Xml(w) => (w.see(bytes), std::mem::take(&mut w.elements)),
            Watch::Json(w) => (w.see(bytes), std::mem::take(&mut w.tokens)),
        };
        self.meter.tokens(tokens);
        if let Err((at, message)) = seen {
            let refused = Refused {
                offset: self.offset + at as u64,
                message,
            };
            let e = io::Error::new(io::ErrorKind::InvalidData, refused.message.clone());
            self.tail.borrow_mut().refused = Some(refused);
            return Err(e);
        }
        self.offset += n as u64;
        Ok(n)
    }
}

enum Watch {
    Turtle(Turtle),
    Xml(Xml),
    Json(Json),
}

type Seen = Result<(), (usize, String)>;

/// Depth of `<<( … )>>`, with just enough of a lexer not to be fooled by strings, IRIs, comments.
#[derive(Default)]
struct Turtle {
    state: TurtleState,
    /// Of triple terms.
    depth: usize,
    /// Of all brackets: a parser keeps each level.
    open: usize,
    /// The last letters, lower case, if nothing but white space is behind them.
    word: [u8; 4],
    letters: usize,
    spaced: bool,
    iri: Iri,
    /// Bytes of the base that relative directives made at most.
    base: usize,
}

/// The IRI being read.
#[derive(Default)]
struct Iri {
    /// It is a new base.
    is_base: bool,
    /// Nothing but letters, digits, `+`, `-`, `.` before: it may have a scheme.
    may_be_scheme: bool,
    absolute: bool,
    len: usize,
}

impl Iri {
    fn add(&mut self, bytes: &[u8]) {
        if self.is_base && self.may_be_scheme {
            for &b in bytes {
                if b == b':' {
                    self.absolute = true;
                }
                if !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')) {
                    self.may_be_scheme = false;
                    break;
                }
            }
        }
        self.len += bytes.len();
    }
}

#[derive(Default, Clone, Copy, PartialEq)]
enum TurtleState {
    #[default]
    Plain,
    /// Behind a backslash outside strings.
    PlainEscape,
    Comment,
    /// Behind one or two `<`.
    Less(u8),
    Iri,
    /// Behind a `)`, and behind `)>`.
    Close(u8),
    /// Behind a `>` of its own.
    Greater,
    /// Behind one or two opening quotes of this kind.
    Open(u8, u8),
    /// In a string: quote, long, escape pending, closing quotes seen.
    Text(u8, bool, bool, u8),
}

impl Turtle {
    fn letter(&mut self, b: u8) {
        if self.spaced {
            self.letters = 0;
            self.spaced = false;
        }
        if let Some(place) = self.word.get_mut(self.letters) {
            *place = b.to_ascii_lowercase();
        }
        self.letters += 1;
    }

    /// The end of an IRI, which may be a new base. A relative one may add its whole length to the base before.
    fn based(&mut self) -> Result<(), String> {
        if self.iri.is_base {
            if self.iri.absolute {
                self.base = self.iri.len;
            } else {
                self.base += self.iri.len;
            }
            if self.base > MAX_BASE {
                return Err(format!(
                    "the base IRI grows with each relative @base, expected at most {MAX_BASE} bytes"
                ));
            }
        }
        Ok(())
    }

    fn see(&mut self, bytes: &[u8]) -> Seen {
        use TurtleState as S;
        let mut i = 0;
        while let Some(&b) = bytes.get(i) {
            match self.state {
                S::Plain => match b {
                    b'a'..=b'z' | b'A'..=b'Z' => self.letter(b),
                    b' ' | b'\t' | b'\r' | b'\n' => self.spaced = true,
                    b'#' => self.state = S::Comment,
                    b'<' => self.state = S::Less(1),
                    b'"' | b'\'' => self.state = S::Open(b, 1),
                    b'[' | b'(' => self.open += 1,
                    b']' => self.open = self.open.saturating_sub(1),
                    b')' => {
                        self.open = self.open.saturating_sub(1);
                        self.state = S::Close(1);
                    }
                    b'>' => self.state = S::Greater,
                    b'\\' => self.state = S::PlainEscape,
                    _ => {}
                },
                S::PlainEscape => self.state = S::Plain,
                S::Comment => match memchr::memchr2(b'\n', b'\r', &bytes[i..]) {
                    Some(n) => {
                        i += n;
                        self.state = S::Plain;
                    }
                    None => return Ok(()),
                },
                S::Less(1) => {
                    self.state = match b {
                        b'<' => S::Less(2),
                        b'>' => S::Plain,
                        _ => S::Iri,
                    };
                    if self.state == S::Iri {
                        self.iri = Iri {
                            is_base: self.letters == 4 && &self.word == b"base",
                            may_be_scheme: true,
                            ..Iri::default()
                        };
                        self.iri.add(&bytes[i..=i]);
                    }
                    self.letters = 0;
                }
                S::Greater => {
                    self.state = S::Plain;
                    if b != b'>' {
                        continue;
                    }
                    self.open = self.open.saturating_sub(1);
                }
                S::Less(_) => {
                    self.state = S::Plain;
                    self.open += 1;
                    if b != b'(' {
                        continue; // `<<` and then something of its own
                    }
                    // Its `)` counts by itself, as that of a collection does.
                    self.open += 1;
                    self.depth += 1;
                    if self.depth > MAX_NESTING {
                        let m = format!(
                            "triple terms nest too deep, expected at most {MAX_NESTING} levels"
                        );
                        return Err((i, m));
                    }
                }
                S::Iri => match memchr::memchr(b'>', &bytes[i..]) {
                    Some(n) => {
                        self.iri.add(&bytes[i..i + n]);
                        i += n;
                        self.state = S::Plain;
                        self.based().map_err(|m| (i, m))?;
                    }
                    None => {
                        self.iri.add(&bytes[i..]);
                        return Ok(());
                    }
                },
                S::Close(1) if b == b'>' => self.state = S::Close(2),
                S::Close(n) => {
                    self.state = S::Plain;
                    if n == 2 && b == b'>' {
                        self.depth = self.depth.saturating_sub(1);
                        self.open = self.open.saturating_sub(1);
                    } else {
                        continue;
                    }
                }
                S::Open(q, 1) if b == q => self.state = S::Open(q, 2),
                S::Open(q, 2) if b == q => self.state = S::Text(q, true, false, 0),
                S::Open(q, 1) => {
                    self.state = S::Text(q, false, false, 0);
                    continue;
                }
                S::Open(..) => {
                    self.state = S::Plain; // the empty string
                    continue;
                }
                S::Text(q, long, true, _) => self.state = S::Text(q, long, false, 0),
                S::Text(q, long, false, closing) => {
                    if b == b'\\' {
                        self.state = S::Text(q, long, true, 0);
                    } else if b == q {
                        self.state = match (long, closing) {
                            (false, _) | (true, 2) => S::Plain,
                            (true, n) => S::Text(q, true, false, n + 1),
                        };
                    } else {
                        if closing > 0 {
                            self.state = S::Text(q, long, false, 0);
                        }
                        match memchr::memchr2(q, b'\\', &bytes[i..]) {
                            Some(n) => {
                                i += n;
                                continue;
                            }
                            None => return Ok(()),
                        }
                    }
                }
            }
            i += 1;
        }
        Ok(())
    }
}

/// Depth of objects and arrays.
#[derive(Default)]
struct Json {
    depth: usize,
    in_string: bool,
    escape: bool,
    /// Values and keys since somebody asked.
    tokens: u64,
}

impl Json {
    fn see(&mut self, bytes: &[u8]) -> Seen {
        for (i, &b) in bytes.iter().enumerate() {
            if self.escape {
                self.escape = false;
            } else if self.in_string {
                match b {
                    b'"' => self.in_string = false,
                    b'\\' => self.escape = true,
                    _ => {}
                }
            } else {
                match b {
                    b'"' => self.in_string = true,
                    b',' | b':' => self.tokens += 1,
                    b'[' | b'{' => {
                        self.tokens += 1;
                        self.depth += 1;
                        if self.depth > MAX_DEPTH {
                            let m =
                                format!("JSON nests too deep, expected at most {MAX_DEPTH} levels");
                            return Err((i, m));
                        }
                    }
                    b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// Depth of elements, and the entities of the document type declaration.
#[derive(Default)]
struct Xml {
    depth: usize,
    /// The markup being read, from behind its `<`; only as much of it as is needed.
    markup: Vec<u8>,
    in_markup: bool,
    quote: u8,
    last: u8,
    /// Of the element being read.
    attributes: usize,
    /// Elements since somebody asked.
    elements: u64,
    /// Open `<` inside a document type declaration.
    open: usize,
}

impl Xml {
    fn see(&mut self, bytes: &[u8]) -> Seen {
        let mut i = 0;
        while i < bytes.len() {
            if !self.in_markup {
                let Some(n) = memchr::memchr(b'<', &bytes[i..]) else {
                    return Ok(());
                };
                i += n + 1;
                self.in_markup = true;
                self.markup.clear();
                self.quote = 0;
                self.attributes = 0;
                self.open = 1;
                continue;
            }
            let b = bytes[i];
            if self.step(b).map_err(|m| (i, m))? {
                self.in_markup = false;
            }
            self.last = b;
            i += 1;
        }
        Ok(())
    }

    /// Takes a byte of markup; true at its end.
    fn step(&mut self, b: u8) -> Result<bool, String> {
        let m = &mut self.markup;
        let doctype = m.first() == Some(&b'!') && !m.starts_with(b"!-") && !m.starts_with(b"![");
        if doctype || m.len() < 16 {
            m.push(b);
        } else {
            // The last bytes decide where comments, CDATA and instructions end.
            m.copy_within(9.., 8);
            m[15] = b;
        }
        match m[0] {
            b'!' if m.starts_with(b"!--") => Ok(m.len() >= 6 && m.ends_with(b"-->")),
            b'!' if m.starts_with(b"![") => Ok(m.ends_with(b"]]>")),
            b'!' => {
                if m.len() > MAX_DOCTYPE {
                    return Err(
                        "the XML document type declaration is too long, expected at most 1 MiB"
                            .into(),
                    );
                }
                match b {
                    b'<' => self.open += 1,
                    b'>' => self.open -= 1,
                    _ => {}
                }
                if self.open > 0 || m.len() < 2 {
                    return Ok(false);
                }
                check_entities(&self.markup)?;
                Ok(true)
            }
            b'?' => Ok(m.len() >= 3 && m.ends_with(b"?>")),
            first => {
                if self.quote != 0 {
                    if b == self.quote {
                        self.quote = 0;
                    }
                    return Ok(false);
                }
                match b {
                    b'"' | b'\'' => {
                        self.quote = b;
                        self.attributes += 1;
                        if self.attributes > MAX_ATTRIBUTES {
                            return Err(format!(
                                "an XML element has too many attributes, expected at most {MAX_ATTRIBUTES}"
                            ));
                        }
                    }
                    b'>' if first == b'/' => {
                        self.depth = self.depth.saturating_sub(1);
                        return Ok(true);
                    }
                    b'>' => {
                        self.elements += 1;
                        if self.last != b'/' || m.len() < 2 {
                            self.depth += 1;
                        }
                        if self.depth > MAX_DEPTH {
                            return Err(format!(
                                "XML elements nest too deep, expected at most {MAX_DEPTH} levels"
                            ));
                        }
                        return Ok(true);
                    }
                    _ => {}
                }
                Ok(false)
            }
        }
    }
}

/// Refuses entities whose references make them huge.
fn check_entities(doctype: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(doctype);
    let mut sizes: Vec<(&str, u64)> = Vec::new();
    for part in text.split("<!ENTITY").skip(1) {
        let part = part.trim_start().trim_start_matches('%').trim_start();
        let Some((name, rest)) = part.split_once(|c: char| c.is_ascii_whitespace()) else {
            continue;
        };
        let rest = rest.trim_start();
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            continue;
        };
        let value = rest[1..].split(quote).next().unwrap_or_default();
        let mut size = value.len() as u64;
        for reference in value.split('&').skip(1) {
            let name = reference.split(';').next().unwrap_or_default();
            // The last definition wins in the parser; take the largest to be safe.
            let of = sizes
                .iter()
                .filter(|(n, _)| *n == name)
                .map(|(_, s)| *s)
                .max();
            size = size.saturating_add(of.unwrap_or(0));
        }
        if size > MAX_ENTITY {
            return Err(format!(
                "the XML entity `{name}` becomes {size} bytes long, expected at most {MAX_ENTITY}"
            ));
        }
        sizes.push((name, size));
        if sizes.len() > 1000 {
            return Err(
                "the document type declares too many XML entities, expected at most 1000".into(),
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_that_close_leave_none_open() {
        let open = |text: &str| {
            let mut turtle = Turtle::default();
            assert!(turtle.see(text.as_bytes()).is_ok(), "{text}");
            turtle.open
        };
        for (text, want) in [
            ("<s> <p> [ <q> ( 1 2 ) ] .", 0),
            ("<s> <p> <<( <a> <b> <c> )>> , <<( <a> <b> <c> ) >> .", 0),
            ("<< <a> <b> <c> >> <p> <> .", 0),
            ("[ <p> <<( <a> <b> <c> )>> , [ <q> (", 3),
            ("<s> <p> \"[[\" , '((' , <http://e/[> . # [[[", 0),
            ("<s> <p> <<( <a> <b> <<( <c> <d> (", 5),
        ] {
            assert_eq!(open(text), want, "{text}");
        }
    }
}
