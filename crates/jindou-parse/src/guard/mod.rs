//! A guard between a document's bytes and the parser of a nesting format (Turtle, TriG), because those parsers
//! build, drop or walk nested structures recursively or in quadratic time. It scans the text just enough to know its
//! nesting depth and refuses absurd nesting, and it keeps the last stretch of text, so that an error message can show
//! its line.

mod turtle;

use crate::input::LineCounter;
use crate::limits::Meter;
use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;
use turtle::Turtle;

/// Bytes of text that are kept for messages: more than the parsers read ahead.
const KEPT: usize = 1 << 19;

/// Reason why the guard stopped, and where.
#[derive(Clone, Debug)]
pub(crate) struct GuardStop {
    /// Byte position in the document.
    pub(crate) offset: u64,
    /// Message of the form "…, expected …".
    pub(crate) message: String,
}

/// The text that was read last.
#[derive(Default)]
pub(crate) struct Tail {
    text: Vec<u8>,
    /// Position of `text` in the document.
    start: u64,
    /// Line ends before `text`.
    lines: LineCounter,
    /// Set when the guard has stopped the reading.
    pub(crate) refused: Option<GuardStop>,
}

impl Tail {
    /// No text yet, at a position with some line ends before it.
    pub(crate) fn new(start: u64, lines: LineCounter) -> Self {
        Self {
            text: Vec::new(),
            start,
            lines,
            refused: None,
        }
    }

    /// The line ends before a position; those before the kept text if the position is not in it.
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

    /// Line number from 1, that line's text and the offset's byte position in it, if the text is still kept.
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

    /// Text of a line (from 1), if it is still kept.
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

/// Reads through, watching the nesting.
pub(crate) struct Guard<R> {
    inner: R,
    watch: Turtle,
    offset: u64,
    tail: Rc<RefCell<Tail>>,
    meter: Rc<Meter>,
}

impl<R: Read> Guard<R> {
    pub(crate) fn new(inner: R, start: u64, lines: LineCounter, meter: &Rc<Meter>) -> Self {
        Self {
            inner,
            watch: Turtle::default(),
            offset: start,
            tail: Rc::new(RefCell::new(Tail::new(start, lines))),
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
        let seen = self.watch.see(bytes);
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
        self.offset += n as u64;
        Ok(n)
    }
}

type Seen = Result<(), (usize, String)>;
