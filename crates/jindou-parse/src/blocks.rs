//! Divides a document into blocks of whole lines, which any number of workers parse.

use crate::input::{LineCounter, blank_mark, read_more};
use crate::limits::{Limits, no_room};
use jindou_model::sync;
use jindou_model::{Charge, Holder};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Usual size of a block in bytes: its lines, terms and quads then fit in a core's second-level cache.
const BLOCK: u64 = 1 << 20;
/// Longest line in bytes. Spans have 32 bits, and a block may contain copied terms as well.
const MAX_LINE: usize = 1 << 30;
/// Number of bytes by which a block grows until its last line is complete.
const GROW: usize = 1 << 16;

/// Where a block of lines is, in its buffer and in its document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockAt {
    /// Offset in the buffer of the first byte of the lines.
    pub(crate) begin: usize,
    /// Position of that byte in the document.
    pub(crate) offset: u64,
    /// Number of lines before it; `None` for a plain file, in which an error's line has to be counted.
    pub(crate) lines: Option<u64>,
}

/// The blocks of one document.
#[derive(Clone)]
pub(crate) enum DocumentBlocks {
    /// A plain file, of which workers read different parts concurrently.
    File(Arc<FileBlocks>),
    /// Any other input. A worker that needs a block locks the reader, reads (and decompresses) the block, and unlocks
    /// it.
    Stream(Arc<Mutex<StreamBlocks>>),
}

impl DocumentBlocks {
    /// Fills `buf` with the next block; `None` at the end. The bytes read from a plain file are added to `counter`. If
    /// a long line makes a plain file's block much larger than usual, its memory is charged to `held`, the buffer's
    /// charge; a stream has a charge of its own.
    pub(crate) fn next(
        &self,
        buf: &mut Vec<u8>,
        held: &mut Charge,
        counter: &AtomicU64,
    ) -> io::Result<Option<BlockAt>> {
        let block = match self {
            Self::File(file) => file.next(buf, held, counter),
            Self::Stream(stream) => sync::lock(stream).next(buf),
        }?;
        if block.as_ref().is_some_and(|b| b.offset == 0) {
            blank_mark(buf);
        }
        Ok(block)
    }
}

/// A plain file divided into equal parts; a block consists of the lines that start in its part.
pub(crate) struct FileBlocks {
    file: File,
    len: u64,
    part: u64,
    next: AtomicU64,
}

impl FileBlocks {
    pub(crate) fn new(file: File, len: u64, workers: usize) -> Self {
        let part = (len / (workers as u64 * 8 + 1)).clamp(GROW as u64, BLOCK);
        Self {
            file,
            len,
            part,
            next: AtomicU64::new(0),
        }
    }

    fn next(
        &self,
        buf: &mut Vec<u8>,
        held: &mut Charge,
        counter: &AtomicU64,
    ) -> io::Result<Option<BlockAt>> {
        loop {
            let start = self
                .next
                .fetch_add(1, Ordering::Relaxed)
                .saturating_mul(self.part);
            if start >= self.len {
                return Ok(None);
            }
            let end = (start + self.part).min(self.len);
            counter.fetch_add(end - start, Ordering::Relaxed);
            // The byte before the part is read as well: it tells whether a line starts at the part's first byte.
            let from = start.saturating_sub(1);
            buf.clear();
            self.read(buf, from, (end - from) as usize)?;
            let begin = if start == 0 {
                0
            } else {
                match memchr::memchr2(b'\n', b'\r', buf) {
                    Some(at) if from + at as u64 + 1 < end => at + 1,
                    _ => continue,
                }
            };
            let mut searched = buf.len() - 1;
            loop {
                if let Some(at) = memchr::memchr2(b'\n', b'\r', &buf[searched..]) {
                    buf.truncate(searched + at + 1);
                    break;
                }
                searched = buf.len();
                if searched - begin > MAX_LINE {
                    return Err(too_long());
                }
                charge(held, searched)?;
                let grow = GROW.max(searched / 2);
                if self.read(buf, from + searched as u64, grow)? == 0 {
                    break;
                }
            }
            return Ok(Some(BlockAt {
                begin,
                offset: from + begin as u64,
                lines: None,
            }));
        }
    }

    /// Appends up to `want` bytes from `offset`; fewer only at the end of the file.
    fn read(&self, buf: &mut Vec<u8>, offset: u64, want: usize) -> io::Result<usize> {
        let before = buf.len();
        buf.resize(before + want, 0);
        let mut got = 0;
        while got < want {
            match self
                .file
                .read_at(&mut buf[before + got..], offset + got as u64)
            {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        buf.truncate(before + got);
        if buf.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file shrank while it was being read",
            ));
        }
        Ok(got)
    }
}

/// A stream, which is divided at the last line end before a block's usual size.
pub(crate) struct StreamBlocks {
    reader: Option<Box<dyn Read + Send>>,
    limits: Limits,
    /// Charge for the longest line so far.
    charge: Charge,
    /// The beginning of a line whose end has not been read yet.
    rest: Vec<u8>,
    offset: u64,
    lines: LineCounter,
}

impl StreamBlocks {
    pub(crate) fn new(reader: Box<dyn Read + Send>, limits: &Limits) -> Self {
        Self {
            reader: Some(reader),
            charge: Charge::new(Holder::Text, &limits.memory),
            limits: limits.clone(),
            rest: Vec::new(),
            offset: 0,
            lines: LineCounter::default(),
        }
    }

    fn next(&mut self, buf: &mut Vec<u8>) -> io::Result<Option<BlockAt>> {
        buf.clear();
        buf.append(&mut self.rest);
        while let Some(reader) = &mut self.reader {
            let searched = buf.len();
            self.limits.cancel.check().map_err(io::Error::other)?;
            charge(&mut self.charge, searched)?;
            let read = read_more(reader, buf, BLOCK as usize);
            if !matches!(read, Ok(n) if n == BLOCK as usize) {
                self.reader = None;
                read?;
                break;
            }
            if let Some(at) = memchr::memrchr2(b'\n', b'\r', &buf[searched..]) {
                self.rest.extend_from_slice(&buf[searched + at + 1..]);
                buf.truncate(searched + at + 1);
                break;
            }
            if buf.len() > MAX_LINE {
                self.reader = None;
                return Err(too_long());
            }
        }
        if buf.is_empty() {
            return Ok(None);
        }
        let at = BlockAt {
            begin: 0,
            offset: self.offset,
            lines: Some(self.lines.lines),
        };
        self.lines.add(buf);
        self.offset += buf.len() as u64;
        Ok(Some(at))
    }
}

/// Charges a block whose last line is not complete, if it is larger than usual. The factor 4: the buffer doubles when
/// it grows, and the line is copied.
fn charge(held: &mut Charge, bytes: usize) -> io::Result<()> {
    if bytes <= 2 * BLOCK as usize {
        return Ok(());
    }
    let bytes = bytes as u64;
    let charged = held.set(4 * bytes);
    charged.map_err(|e| io::Error::other(no_room(e, bytes)))
}

fn too_long() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "a line is longer than 1 GiB, expected N-Triples or N-Quads",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Whatever the size of the parts, the blocks together contain the text, in whole lines.
    #[test]
    fn blocks_are_the_text_in_whole_lines() {
        let mut text = Vec::new();
        for i in 0..4000u32 {
            text.extend(std::iter::repeat_n(b'x', (i * 7919 % 97) as usize));
            text.extend_from_slice([&b"\n"[..], b"\r\n", b"\r"][(i % 3) as usize]);
        }
        text.extend(std::iter::repeat_n(b'y', 300_000));
        text.extend_from_slice(b"\nend");
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&text).unwrap();
        for part in [1, 2, 3, 100, 4096, 1 << 20] {
            let blocks = FileBlocks {
                file: file.try_clone().unwrap(),
                len: text.len() as u64,
                part,
                next: AtomicU64::new(0),
            };
            check(&DocumentBlocks::File(Arc::new(blocks)), &text);
        }
        let stream = StreamBlocks::new(Box::new(io::Cursor::new(text.clone())), &Limits::default());
        check(&DocumentBlocks::Stream(Arc::new(Mutex::new(stream))), &text);
    }

    fn check(blocks: &DocumentBlocks, text: &[u8]) {
        let counter = AtomicU64::new(0);
        let (mut buf, mut all) = (Vec::new(), Vec::new());
        let mut counted = LineCounter::default();
        let mut held = Charge::new(Holder::Text, &Limits::default().memory);
        while let Some(at) = blocks.next(&mut buf, &mut held, &counter).unwrap() {
            assert_eq!(at.offset, all.len() as u64);
            if let Some(lines) = at.lines {
                assert_eq!(lines, counted.lines);
            }
            counted.add(&buf[at.begin..]);
            all.extend_from_slice(&buf[at.begin..]);
            assert!(all.len() == text.len() || matches!(all.last(), Some(b'\n' | b'\r')));
        }
        assert!(all == text);
    }
}
