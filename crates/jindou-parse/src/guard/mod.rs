//! A reader between a Turtle or TriG document and its `oxttl` parser, which builds, drops or walks nested structures
//! recursively or in quadratic time. The guard scans the text just enough to know its nesting depth, and refuses
//! excessive nesting. It keeps the last part of the text, so that an error message can show the line. It also replaces
//! text that the parser would interpret incorrectly ([`rewrite`]).

mod rewrite;
mod turtle;

use crate::input::LineCounter;
use crate::limits::Meter;
use rewrite::Shifts;
use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;
use turtle::Turtle;

/// Number of bytes of text that are kept for messages: more than the parsers read ahead.
const KEPT: usize = 1 << 19;

/// Reason why the guard refused the text, and the position.
#[derive(Clone, Debug)]
pub(crate) struct GuardStop {
    /// Byte position in the document.
    pub(crate) offset: u64,
    /// Message of the form "…, expected …".
    pub(crate) message: String,
}

/// The part of a document that was read last, for messages.
#[derive(Default)]
pub(crate) struct Tail {
    text: Vec<u8>,
    /// Position of `text` in the document.
    start: u64,
    /// Number of line ends before `text`.
    lines: LineCounter,
    shifts: Shifts,
    /// Set when the guard has refused the text.
    pub(crate) refused: Option<GuardStop>,
}

impl Tail {
    /// An empty tail at a position of the document, with `lines` before it.
    pub(crate) fn new(start: u64, lines: LineCounter) -> Self {
        Self {
            text: Vec::new(),
            start,
            lines,
            shifts: Shifts::default(),
            refused: None,
        }
    }

    /// The line ends before a position, or before the kept text if the position is not in it.
    pub(crate) fn lines_before(&self, offset: u64) -> LineCounter {
        let mut lines = self.lines;
        let len = offset.saturating_sub(self.start) as usize;
        lines.add(&self.text[..len.min(self.text.len())]);
        lines
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        if self.text.len() > 2 * KEPT {
            let cut = self.text.len() - KEPT;
            self.lines.add(&self.text[..cut]);
            self.start += cut as u64;
            self.text.drain(..cut);
        }
        self.text.extend_from_slice(bytes);
    }

    /// Converts a position in the text that the parser was given to one in the document; they differ after
    /// replacements.
    pub(crate) fn place(&self, given: u64) -> u64 {
        self.shifts.place(given)
    }

    /// True if any text was replaced.
    pub(crate) fn is_shifted(&self) -> bool {
        !self.shifts.is_empty()
    }

    /// The number (from 1) of the line that contains `offset`, its text, and the byte position of `offset` in it.
    /// `None` if this text is not kept any more.
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

    /// The text of the line with this number (from 1), if it is still kept.
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

/// A reader that passes a document on and watches its nesting.
pub(crate) struct Guard<R> {
    inner: R,
    watch: Turtle,
    offset: u64,
    tail: Rc<RefCell<Tail>>,
    meter: Rc<Meter>,
    /// Text that is held back until a reference in it has ended, since the reference may have to be replaced.
    held: Vec<u8>,
    /// Text with replacements. The parser was given its first `given` bytes.
    ready: Vec<u8>,
    given: usize,
    /// Position of the end of `ready` in the text that the parser is given.
    made: u64,
}

impl<R: Read> Guard<R> {
    /// `start` is the position of the text in the document, and the base IRI of its references until the first
    /// directive changes it.
    pub(crate) fn new(
        inner: R,
        (start, base): (u64, Option<&str>),
        lines: LineCounter,
        meter: &Rc<Meter>,
    ) -> Self {
        Self {
            inner,
            watch: Turtle::new(base),
            offset: start,
            tail: Rc::new(RefCell::new(Tail::new(start, lines))),
            meter: Rc::clone(meter),
            held: Vec::new(),
            ready: Vec::new(),
            given: 0,
            made: start,
        }
    }

    pub(crate) fn tail(&self) -> Rc<RefCell<Tail>> {
        Rc::clone(&self.tail)
    }

    /// Appends the text that was just read to `ready`, with its replacements, except for an unfinished reference at its
    /// end. Returns false, and changes nothing, if the text can be passed to the parser as it is.
    fn rewrite(&mut self, bytes: &[u8]) -> bool {
        let waits_from = self.watch.waits_from().filter(|_| !bytes.is_empty());
        let rewriter = &mut self.watch.rewriter;
        if self.held.is_empty() && rewriter.edits.is_empty() && waits_from.is_none() {
            self.made += bytes.len() as u64;
            return false;
        }
        let end = self.offset + bytes.len() as u64;
        let mut text = std::mem::take(&mut self.held);
        let start = self.offset - text.len() as u64;
        text.extend_from_slice(bytes);
        let mut from = start;
        let part = |from: u64, to: u64| (from - start) as usize..(to - start) as usize;
        self.ready.clear();
        self.given = 0;
        let before = self.made;
        for edit in rewriter.edits.drain(..) {
            self.ready.extend_from_slice(&text[part(from, edit.from)]);
            self.ready.extend_from_slice(&edit.text);
            self.tail
                .borrow_mut()
                .shifts
                .add(before + self.ready.len() as u64, edit.to);
            from = edit.to;
        }
        let until = waits_from.unwrap_or(end);
        self.ready.extend_from_slice(&text[part(from, until)]);
        self.made = before + self.ready.len() as u64;
        text.drain(part(start, until));
        self.held = text;
        true
    }

    /// Reads a piece of the document and scans it.
    fn read_piece(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = loop {
            match self.inner.read(buf) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.meter.read(n)?;
        let bytes = &buf[..n];
        self.tail.borrow_mut().add(bytes);
        let seen = self.watch.see(bytes, self.offset);
        self.meter.levels(self.watch.open as u64);
        if let Err((at, message)) = seen {
            let refused = GuardStop {
                offset: self.offset + at as u64,
                message,
            };
            let e = io::Error::new(io::ErrorKind::InvalidData, refused.message.clone());
            self.tail.borrow_mut().refused = Some(refused);
            return Err(e);
        }
        Ok(n)
    }
}

impl<R: Read> Read for Guard<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let rest = &self.ready[self.given..];
            if !rest.is_empty() {
                let n = rest.len().min(buf.len());
                buf[..n].copy_from_slice(&rest[..n]);
                self.given += n;
                return Ok(n);
            }
            let n = self.read_piece(buf)?;
            let is_rewritten = self.rewrite(&buf[..n]);
            self.offset += n as u64;
            if !is_rewritten || n == 0 && self.ready.is_empty() {
                return Ok(n);
            }
        }
    }
}

type Seen = Result<(), (usize, String)>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    /// A reader that returns a few bytes at a time.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(buf.len());
            let (piece, rest) = self.0.split_at(n);
            buf[..n].copy_from_slice(piece);
            self.0 = rest;
            Ok(n)
        }
    }

    #[test]
    fn pieces_of_any_size_give_the_same() {
        const TEXT: &str = "@base <http://h/a/../b/> .\n<x> <#p> \"<y>\" . <http://e/> <//g/./m> <> {| <a> 1 |}\t{| <b> 2 |}{| <\\u002e/c> 3 |} . # <d>\nBASE <../f/>\n<<( <s> <p> <http://h/../> )>> <<<u> <v> <>>> <op";
        const GIVEN: &str = "@base <http://h/a/../b/> .\n<http://h/b/x> <http://h/a/../b/#p> \"<y>\" . <http://e/> <http://g/m> <http://h/a/../b/> {| <http://h/b/a> 1 |}\t~ {| <http://h/b/b> 2 |}~ {| <http://h/b/c> 3 |} . # <d>\nBASE <http://h/f/>\n<<( <s> <p> <http://h/../> )>> <<<u> <v> <>>> <op";
        for size in 1..=TEXT.len() {
            let meter = Rc::new(Meter::new(&Limits::default()));
            let pieces = Pieces(TEXT.as_bytes(), size);
            let lines = LineCounter::default();
            let mut guard = Guard::new(pieces, (0, None), lines, &meter);
            let tail = guard.tail();
            let mut given = String::new();
            guard.read_to_string(&mut given).unwrap();
            assert_eq!(given, GIVEN, "{size} bytes at a time");
            for mark in ["<http://e/>", "\"<y>\"", " . #", "<<(", "<op"] {
                let [at, there] = [GIVEN, TEXT].map(|t| t.find(mark).unwrap() as u64);
                assert_eq!(tail.borrow().place(at), there, "{mark}");
            }
        }
    }
}
