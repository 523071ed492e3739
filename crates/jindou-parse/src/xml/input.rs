//! The text that is being read: a window over the document, or the replacement text of an entity.

use crate::xml::chars;
use crate::xml::encoding::{DocumentDecoder, Family, Unfit, family};
use crate::xml::error::{Error, Fault, Position, Result};
use std::io::Read;
use std::ops::Range;

/// Number of bytes that are read at a time.
const CHUNK: usize = 64 << 10;
/// Length in bytes of the longest XML declaration.
const LONGEST_DECLARATION: usize = 4 << 10;
/// Largest number of bytes of a line that a message shows on each side of its position.
const SHOWN: usize = 400;

/// Where the bytes of a document come from, and how they are decoded.
struct ByteSource<'r> {
    reader: Box<dyn Read + 'r>,
    /// Bytes that were read but not yet decoded.
    raw: Vec<u8>,
    decoder: DocumentDecoder,
    /// True if the reader has reached its end.
    ended: bool,
    /// Number of bytes read.
    bytes: u64,
    /// True if the encoding was given from outside, as by HTTP. The declaration in the document is then ignored.
    told: bool,
}

/// Decoded text with the current position. All of its characters are allowed in XML.
#[derive(Default)]
pub(crate) struct DecodedInput<'r> {
    text: String,
    /// Position of the byte that is read next.
    pub(crate) at: usize,
    /// Start of the current token; the text from here on is kept.
    pub(crate) start: usize,
    /// True once a carriage return was read, so that line ends must be normalised.
    pub(crate) has_returns: bool,
    source: Option<ByteSource<'r>>,
    /// An error in the document right after the text.
    fault: Option<String>,
    /// Position of the text's first byte in the document.
    place: TextPosition,
}

/// A position in a document, counted from 0, that can be advanced over text.
#[derive(Clone, Copy, Default)]
struct TextPosition {
    line: u64,
    column: u64,
    offset: u64,
    after_return: bool,
}

impl TextPosition {
    fn pass(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let Some(&last) = bytes.last() else { return };
        let mut lines = memchr::memchr_iter(b'\n', bytes).count() as u64;
        if self.after_return && bytes.first() == Some(&b'\n') {
            lines = lines.saturating_sub(1);
        }
        for at in memchr::memchr_iter(b'\r', bytes) {
            lines += u64::from(bytes.get(at + 1) != Some(&b'\n'));
        }
        let tail = match memchr::memrchr2(b'\n', b'\r', bytes) {
            Some(end) => {
                self.column = 0;
                bytes.get(end + 1..).unwrap_or_default()
            }
            None => bytes,
        };
        // Counts bytes that begin a character.
        self.column += tail.iter().filter(|&&b| b & 0xC0 != 0x80).count() as u64;
        self.line += lines;
        self.after_return = last == b'\r';
    }
}

impl<'r> DecodedInput<'r> {
    /// An input with the text of an entity.
    pub(crate) fn entity(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }

    /// Begins a document: determines its encoding (or uses `told`, given from outside), and skips a byte order mark.
    pub(crate) fn open(reader: Box<dyn Read + 'r>, told: Option<&str>) -> Result<Self> {
        let mut source = ByteSource {
            reader,
            raw: Vec::new(),
            decoder: DocumentDecoder::Utf8,
            ended: false,
            bytes: 0,
            told: told.is_some(),
        };
        let mut input = Self::default();
        while source.raw.len() < 4 && source.read()? {}
        let (family, mark) = match family(&source.raw) {
            Ok(found) => found,
            Err(why) => return Err(input.fault(0, format!("the document {why}"))),
        };
        source.raw.drain(..mark);
        input.place.offset = mark as u64;
        if let Some(told) = told {
            source.decoder = match DocumentDecoder::told(family, mark > 0, told) {
                Some(decoder) => decoder,
                None => {
                    let why = format!(
                        "the document came with the encoding `{told}`, which is not read: expected UTF-8, UTF-16 or another that is usual on the web"
                    );
                    return Err(input.fault(0, why));
                }
            };
            input.source = Some(source);
            return Ok(input);
        }
        let declared = match family {
            Family::Ascii | Family::Utf8Marked => source.declared_encoding()?,
            Family::Utf16Le | Family::Utf16Be => None,
        };
        source.decoder = match DocumentDecoder::new(family, declared.as_deref()) {
            Ok(decoder) => decoder,
            Err(why) => return Err(input.unfit(&declared.unwrap_or_default(), &why)),
        };
        input.source = Some(source);
        Ok(input)
    }

    /// Checks that the encoding declared by a document in UTF-16 is UTF-16.
    pub(crate) fn check_encoding(&self, declared: &str) -> Result<()> {
        let source = self.source.as_ref().filter(|s| !s.told);
        let family = match source.map(|s| &s.decoder) {
            Some(DocumentDecoder::Utf16 { little: true }) => Family::Utf16Le,
            Some(DocumentDecoder::Utf16 { little: false }) => Family::Utf16Be,
            _ => return Ok(()),
        };
        match DocumentDecoder::new(family, Some(declared)) {
            Ok(_) => Ok(()),
            Err(why) => Err(self.unfit(declared, &why)),
        }
    }

    fn unfit(&self, declared: &str, why: &Unfit) -> Error {
        let message = match why {
            Unfit::Unknown => format!(
                "the document declares the unsupported encoding `{declared}`: expected UTF-8, UTF-16 or another encoding common on the web"
            ),
            Unfit::Contradicted => format!(
                "the document declares the encoding `{declared}`, but its first bytes are in another one: expected both to agree"
            ),
        };
        self.fault(self.start, message)
    }

    /// The unread part of the available text.
    #[inline(always)]
    pub(crate) fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// A range of the text.
    #[inline(always)]
    pub(crate) fn part(&self, range: Range<usize>) -> &str {
        &self.text[range]
    }

    /// The text from the start of the current token on.
    #[inline(always)]
    pub(crate) fn since_start(&self) -> &str {
        &self.text[self.start..]
    }

    /// Bytes of memory in use.
    pub(crate) fn held(&self) -> usize {
        self.text.capacity() + self.source.as_ref().map_or(0, |s| s.raw.capacity())
    }

    /// Bytes of the document that were read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.source.as_ref().map_or(0, |s| s.bytes)
    }

    /// Reads more text; `false` at the end. Drops text before `start`, so `start` and `at` change.
    #[cold]
    pub(crate) fn more(&mut self) -> Result<bool> {
        if let Some(message) = self.fault.take() {
            let at = self.text.len();
            return Err(self.fault(at, message));
        }
        if self.source.is_none() {
            return Ok(false);
        }
        self.forget();
        let Some(source) = &mut self.source else {
            return Ok(false);
        };
        loop {
            let goes_on = source.read()?;
            let before = self.text.len();
            let decoded = source.decoder.decode(&source.raw, !goes_on, &mut self.text);
            source.raw.drain(..decoded.taken);
            if decoded.malformed {
                self.fault = Some(format!(
                    "a sequence of bytes is not {}: expected the encoding that the document declares, or else UTF-8",
                    source.decoder.name()
                ));
            }
            let new = self.text.get(before..).unwrap_or_default();
            if let Some(at) = chars::first_illegal(new) {
                let c = new.get(at..).and_then(|t| t.chars().next());
                let code = c.map_or(0, u32::from);
                self.fault = Some(format!(
                    "the character U+{code:04X} is not allowed in XML, not even as a reference"
                ));
                self.text.truncate(before + at);
            }
            let new = self.text.as_bytes().get(before..).unwrap_or_default();
            self.has_returns |= memchr::memchr(b'\r', new).is_some();
            if self.text.len() > before {
                return Ok(true);
            }
            if let Some(message) = self.fault.take() {
                let at = self.text.len();
                return Err(self.fault(at, message));
            }
            if !goes_on {
                return Ok(false);
            }
        }
    }

    /// Drops the text before `start`.
    fn forget(&mut self) {
        let start = self.start;
        if start == 0 {
            return;
        }
        let gone = self.text.get(..start).unwrap_or_default();
        self.place.pass(gone);
        if let Some(source) = &self.source {
            self.place.offset += source.decoder.bytes_of(gone);
        }
        self.text.drain(..start);
        self.at -= start;
        self.start = 0;
        // After a long token, its memory is released, rather than kept until the document ends.
        if self.text.capacity() > 16 * CHUNK && self.text.len() < CHUNK {
            self.text.shrink_to(2 * CHUNK);
        }
    }

    /// The position in the document of a byte of the text.
    pub(crate) fn position(&self, at: usize) -> Position {
        let text = self.text.get(..at).unwrap_or(&self.text);
        let mut place = self.place;
        place.pass(text);
        let bytes = match &self.source {
            Some(source) => source.decoder.bytes_of(text),
            None => text.len() as u64,
        };
        Position {
            line: place.line + 1,
            column: place.column + 1,
            offset: place.offset + bytes,
        }
    }

    /// The error at a byte of the text.
    #[cold]
    pub(crate) fn fault(&self, at: usize, message: impl Into<String>) -> Error {
        let (line, at_in_line) = self.line_at(at);
        Error::Syntax(Box::new(Fault {
            at: self.position(at),
            message: message.into(),
            line,
            at_in_line,
        }))
    }

    /// The line around a byte of the text, as far as it is available and short enough to show, and the byte's position
    /// in it.
    pub(crate) fn line_at(&self, at: usize) -> (String, usize) {
        let bytes = self.text.as_bytes();
        let at = at.min(bytes.len());
        let before = bytes.get(..at).unwrap_or_default();
        let from = memchr::memrchr2(b'\n', b'\r', before).map_or(0, |n| n + 1);
        let mut from = from.max(at.saturating_sub(SHOWN));
        let behind = bytes.get(at..).unwrap_or_default();
        let to = memchr::memchr2(b'\n', b'\r', behind).map_or(bytes.len(), |n| at + n);
        let mut to = to.min(at + SHOWN);
        while !self.text.is_char_boundary(from) {
            from += 1;
        }
        while !self.text.is_char_boundary(to) {
            to += 1;
        }
        let line = self.text.get(from..to).unwrap_or_default();
        (line.to_owned(), at.saturating_sub(from))
    }
}

impl ByteSource<'_> {
    /// Reads more bytes; `false` at the end.
    fn read(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let before = self.raw.len();
        self.raw.resize(before + CHUNK, 0);
        let read = loop {
            let to = self.raw.get_mut(before..).unwrap_or_default();
            match self.reader.read(to) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let n = *read.as_ref().unwrap_or(&0);
        self.raw.truncate(before + n);
        self.bytes += n as u64;
        self.ended = read? == 0;
        Ok(!self.ended)
    }

    /// The encoding that the XML declaration names, if there is a declaration and ASCII characters are single bytes.
    /// Does not check that the declaration is well-formed.
    fn declared_encoding(&mut self) -> Result<Option<String>> {
        while self.raw.len() < 6 && self.read()? {}
        if !(self.raw.starts_with(b"<?xml") && self.raw.get(5).is_some_and(|&b| chars::is_space(b)))
        {
            return Ok(None);
        }
        let end = loop {
            if let Some(end) = memchr::memchr(b'>', &self.raw) {
                break end;
            }
            if self.raw.len() > LONGEST_DECLARATION || !self.read()? {
                return Ok(None);
            }
        };
        let text = String::from_utf8_lossy(self.raw.get(..end).unwrap_or_default()).into_owned();
        let Some((_, behind)) = text.split_once("encoding") else {
            return Ok(None);
        };
        let value = behind
            .trim_ascii_start()
            .strip_prefix('=')
            .map(str::trim_ascii_start);
        let Some(value) = value else { return Ok(None) };
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let label = quote.and_then(|q| value.get(1..)?.split_once(q));
        Ok(label.map(|(label, _)| label.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_do_not_depend_on_pieces() {
        let text = "aé\r\nb\rc\n\r\nü𝄞d";
        for cut in (0..=text.len()).filter(|&c| text.is_char_boundary(c)) {
            let mut place = TextPosition::default();
            place.pass(&text[..cut]);
            place.pass(&text[cut..]);
            assert_eq!((place.line, place.column), (4, 3), "{cut}");
        }
    }

    #[test]
    fn a_window_moves_over_the_document() {
        let document = format!("<a>{}</a>", "0123456789é\n".repeat(40_000));
        let mut input = DecodedInput::open(Box::new(document.as_bytes()), None).unwrap();
        let mut seen = String::new();
        while input.more().unwrap() {
            seen.push_str(input.rest());
            input.at += input.rest().len();
            input.start = input.at;
        }
        assert!(seen == document && input.held() < 8 * CHUNK);
        let end = input.position(input.at);
        assert_eq!(
            (end.line, end.column, end.offset),
            (40_001, 5, document.len() as u64)
        );
    }
}
