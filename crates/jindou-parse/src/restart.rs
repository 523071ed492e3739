//! Continuing to parse a Turtle document after a bad statement.

use crate::input::{self, LineCounter, OpenedDocument, Origin};
use crate::limits::{Limits, unwrapped};
use jindou_model::{Charge, Error, Holder, Result};
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::sync::Arc;

/// Lets a lenient run parse a document again from a position in it. Input in which it cannot seek (compressed input and
/// standard input) is held in memory as a whole.
pub(crate) struct Restart {
    document: Whole,
    limits: Limits,
    /// Charges the memory of a document that is held here.
    _held: Charge,
}

enum Whole {
    File(std::path::PathBuf),
    Memory(Arc<[u8]>),
}

/// Number of bytes that are read at a time.
const PIECE: usize = 1 << 16;
/// Memory needed to read a document into memory, as a multiple of its size: a vector doubles, and is copied once.
const COPIES: u64 = 3;

impl Restart {
    /// # Errors
    /// Exceeded limits, and errors of reading.
    pub(crate) fn new(origin: &Origin, opened: OpenedDocument, limits: &Limits) -> Result<Self> {
        let mut held = Charge::new(Holder::Text, &limits.memory);
        let document = match origin {
            Origin::File(path) if opened.plain => Whole::File(path.clone()),
            Origin::Memory(_, text) if opened.plain => Whole::Memory(Arc::clone(text)),
            _ => {
                let (mut text, mut reader) = (Vec::new(), opened.reader);
                loop {
                    limits.cancel.check()?;
                    held.set(COPIES * (text.len() + PIECE) as u64)?;
                    let read = input::read_more(&mut reader, &mut text, PIECE);
                    let failed = |e| match unwrapped(e) {
                        Ok(limit) => limit,
                        Err(e) => origin.error(e),
                    };
                    if read.map_err(failed)? == 0 {
                        break;
                    }
                }
                let text: Arc<[u8]> = text.into();
                held.set(text.len() as u64)?;
                Whole::Memory(text)
            }
        };
        Ok(Self {
            document,
            limits: limits.clone(),
            _held: held,
        })
    }

    pub(crate) fn from(&mut self, offset: u64) -> Result<Box<dyn Read + Send>> {
        Ok(match &self.document {
            Whole::File(path) => {
                let mut file = input::open_file(path)?;
                file.seek(SeekFrom::Start(offset))
                    .map_err(|e| Error::io(path, e))?;
                Box::new(file)
            }
            Whole::Memory(text) => {
                let mut cursor = Cursor::new(Arc::clone(text));
                cursor.set_position(offset);
                Box::new(cursor)
            }
        })
    }

    /// The position after the first line end, at `offset` or later, that follows a dot: the probable end of the
    /// statement that is bad at `offset`. `None` if there is none.
    pub(crate) fn after_statement(&mut self, offset: u64) -> Result<Option<u64>> {
        // The error may be the line end itself, as for an unclosed string, so the text before it is examined, too.
        let mut at = offset.saturating_sub(256);
        let mut dot = false;
        let mut found = None;
        self.scan(at, u64::MAX, &mut |bytes| {
            for &b in bytes {
                match b {
                    b'\n' | b'\r' if dot && at >= offset => {
                        found = Some(at + 1);
                        return false;
                    }
                    b'.' => dot = true,
                    b' ' | b'\t' => {}
                    _ => dot = false,
                }
                at += 1;
            }
            true
        })?;
        Ok(found)
    }

    /// If the error at `offset` is a string that was not closed: the position after the line in which it began. What
    /// follows is then parsed as statements; if it is not, the parser reports another error. `at_end` is true if the
    /// document ended inside the string.
    pub(crate) fn after_open_string(&mut self, offset: u64, at_end: bool) -> Result<Option<u64>> {
        let (mut first, mut at, mut found) = (None, offset, None);
        self.scan(offset, u64::MAX, &mut |bytes| {
            let first = *first.get_or_insert(bytes.first().copied().unwrap_or_default());
            let is_open = match first {
                b'\n' | b'\r' => true,
                b'"' | b'\'' => at_end,
                _ => false,
            };
            if is_open && let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
                found = Some(at + end as u64 + 1);
            }
            at += bytes.len() as u64;
            is_open && found.is_none()
        })?;
        Ok(found)
    }

    pub(crate) fn count_lines(
        &mut self,
        from: u64,
        to: u64,
        lines: &mut LineCounter,
    ) -> Result<()> {
        self.scan(from, to, &mut |bytes| {
            lines.add(bytes);
            true
        })
    }

    /// Passes the bytes of a range to `each`, piece by piece, until `each` returns false.
    fn scan(&mut self, from: u64, to: u64, each: &mut dyn FnMut(&[u8]) -> bool) -> Result<()> {
        if let Whole::Memory(text) = &self.document {
            let place = |at: u64| usize::try_from(at).map_or(text.len(), |at| at.min(text.len()));
            let range = text.get(place(from)..place(to)).unwrap_or_default();
            for piece in range.chunks(PIECE) {
                self.limits.cancel.check()?;
                if !each(piece) {
                    break;
                }
            }
            return Ok(());
        }
        let mut reader = self.from(from)?.take(to - from);
        let mut piece = Vec::with_capacity(PIECE);
        loop {
            self.limits.cancel.check()?;
            piece.clear();
            let read = input::read_more(&mut reader, &mut piece, PIECE);
            let n = read.map_err(|e| match &self.document {
                Whole::File(path) => Error::io(path, e),
                Whole::Memory(_) => Error::Internal(e.to_string()),
            })?;
            if n == 0 || !each(&piece) {
                return Ok(());
            }
        }
    }
}
