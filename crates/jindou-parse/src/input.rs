//! Reading a document's bytes: from a file, standard input, memory or a stream; decompressed and counted.

use crate::format::Compression;
use crate::limits::Limits;
use jindou_model::{Error, Location, Result, sync};
use std::fmt;
use std::fs::File;
#[cfg(feature = "compression")]
use std::io::BufReader;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Where a document's bytes come from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    File(PathBuf),
    Stdin,
    /// A name for messages, and the bytes.
    Memory(String, Arc<[u8]>),
    /// A name for messages, and a stream, which can be read once.
    Stream(String, InputStream),
}

/// A reader, which the first run of a source takes, and the number of its bytes, if known.
#[derive(Clone)]
pub(crate) struct InputStream {
    reader: Arc<Mutex<Option<Box<dyn Read + Send>>>>,
    size: Option<u64>,
}

impl InputStream {
    pub(crate) fn new(reader: Box<dyn Read + Send>, size: Option<u64>) -> Self {
        Self {
            reader: Arc::new(Mutex::new(Some(reader))),
            size,
        }
    }
}

impl fmt::Debug for InputStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl Origin {
    /// The name shown in errors.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Stdin => "<stdin>".into(),
            Self::Memory(name, _) | Self::Stream(name, _) => name.clone(),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            _ => PathBuf::from(self.name()),
        }
    }

    /// Number of bytes as stored (compressed, if the input is compressed), if known.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            Self::File(path) => std::fs::metadata(path)
                .ok()
                .filter(std::fs::Metadata::is_file)
                .map(|m| m.len()),
            Self::Stdin => None,
            Self::Memory(_, text) => Some(text.len() as u64),
            Self::Stream(_, stream) => stream.size,
        }
    }

    /// Converts an error of a reader of this document: damaged compressed data is a mistake in the document, anything
    /// else an I/O error.
    pub(crate) fn error(&self, e: io::Error) -> Error {
        match e.get_ref().and_then(|e| e.downcast_ref::<Damaged>()) {
            Some(damaged) => Error::Syntax {
                at: Location {
                    file: self.name(),
                    ..Location::default()
                },
                message: damaged.to_string(),
                text: None,
            },
            None => Error::io(self.path(), e),
        }
    }

    fn raw(&self) -> Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::File(path) => Box::new(open_file(path)?),
            Self::Stdin => Box::new(io::stdin()),
            Self::Memory(_, text) => Box::new(Cursor::new(Arc::clone(text))),
            Self::Stream(name, stream) => sync::lock(&stream.reader)
                .take()
                .ok_or_else(|| Error::Unsupported(format!("reading {name} twice")))?,
        })
    }
}

/// Opens a file for reading; folders are refused.
pub(crate) fn open_file(path: &Path) -> Result<File> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    if file.metadata().map_err(|e| Error::io(path, e))?.is_dir() {
        return Err(Error::io(
            path,
            io::Error::new(io::ErrorKind::IsADirectory, "is a folder"),
        ));
    }
    Ok(file)
}

/// A document opened for reading.
pub(crate) struct OpenedDocument {
    /// Decompressed bytes.
    pub(crate) reader: Box<dyn Read + Send>,
    /// True when the bytes are not decompressed.
    pub(crate) plain: bool,
}

/// Opens a document. Its first bytes decide whether it is decompressed, and how. `named` is the compression that its
/// name suggests; if the content disagrees (a file called `.gz` that is not gzip), that is an error. Every raw byte
/// read is added to `counter`.
pub(crate) fn open(
    origin: &Origin,
    named: Option<Compression>,
    counter: &Arc<AtomicU64>,
    limits: &Limits,
) -> Result<OpenedDocument> {
    let source = Arc::new(RawSource::default());
    let mut raw = Counting {
        inner: origin.raw()?,
        counter: Arc::clone(counter),
        source: Arc::clone(&source),
    };
    let mut head = Vec::with_capacity(Compression::MAGIC_LEN);
    let mut limited = (&mut raw).take(Compression::MAGIC_LEN as u64);
    limited
        .read_to_end(&mut head)
        .map_err(|e| origin.error(e))?;
    let found = Compression::from_magic(&head);
    if let Some(named) = named
        && found.is_none()
    {
        let name = named.name();
        let content = match head.is_empty() {
            true => "it is empty".to_owned(),
            false => format!("its content is not {name}"),
        };
        let e = format!("its name says {name}, but {content}; rename it or compress it");
        return Err(origin.error(io::Error::new(io::ErrorKind::InvalidData, Damaged(e))));
    }
    let reader = Cursor::new(head).chain(raw);
    Ok(OpenedDocument {
        reader: match found {
            Some(c) => Box::new(Compressed {
                inner: decompress(reader, c, limits).map_err(|e| origin.error(e))?,
                compression: c,
                source,
            }),
            None => Box::new(reader),
        },
        plain: found.is_none(),
    })
}

/// The byte order mark that some editors put in front of UTF-8.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Replaces a byte order mark at the start of a document with blanks, for syntaxes that allow blanks there. Positions
/// after it do not change.
pub(crate) fn blank_mark(start: &mut [u8]) {
    if start.starts_with(MARK) {
        start[..MARK.len()].fill(b' ');
    }
}

/// As [`blank_mark`], for a reader.
pub(crate) fn unmarked(mut reader: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut head = Vec::with_capacity(MARK.len());
    (&mut reader)
        .take(MARK.len() as u64)
        .read_to_end(&mut head)?;
    blank_mark(&mut head);
    Ok(Box::new(Cursor::new(head).chain(reader)))
}

/// Decompresses all members or streams of an archive, one after the other.
#[cfg(not(feature = "compression"))]
fn decompress(
    _: impl Read + Send + 'static,
    compression: Compression,
    _: &Limits,
) -> io::Result<Box<dyn Read + Send>> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!(
            "it is compressed ({}), and this program was built without decompression (the feature `compression`); decompress it first",
            compression.name()
        ),
    ))
}

/// Decompresses all members or streams of an archive, one after the other.
#[cfg(feature = "compression")]
fn decompress(
    reader: impl Read + Send + 'static,
    compression: Compression,
    limits: &Limits,
) -> io::Result<Box<dyn Read + Send>> {
    // The window of a decompressor may take an eighth of the memory.
    let window = limits.memory.limit() / 8;
    let reader = BufReader::with_capacity(1 << 18, reader);
    Ok(match compression {
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(reader)),
        Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(reader)),
        Compression::Xz => {
            let flags = liblzma::stream::CONCATENATED;
            let stream = liblzma::stream::Stream::new_stream_decoder(window, flags)?;
            Box::new(liblzma::bufread::XzDecoder::new_stream(reader, stream))
        }
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(reader)?;
            // The window that `zstd --long=31` writes; the default refuses windows over 128 MiB.
            decoder.window_log_max(window.checked_ilog2().unwrap_or(0).clamp(20, 31))?;
            Box::new(decoder)
        }
    })
}

/// The error of data that cannot be decompressed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Damaged(String);

/// State of the raw bytes below a decompressor: how many were read, and whether reading failed.
#[derive(Default)]
struct RawSource {
    read: AtomicU64,
    failed: AtomicBool,
}

/// A reader that counts bytes.
struct Counting<R> {
    inner: R,
    counter: Arc<AtomicU64>,
    source: Arc<RawSource>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buf).inspect_err(|e| {
            let again = e.kind() == io::ErrorKind::Interrupted;
            self.source.failed.fetch_or(!again, Ordering::Relaxed);
        });
        let n = read?;
        self.counter.fetch_add(n as u64, Ordering::Relaxed);
        self.source.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// A decompressing reader. Distinguishes errors of the decompressor from I/O errors.
struct Compressed {
    inner: Box<dyn Read + Send>,
    compression: Compression,
    source: Arc<RawSource>,
}

impl Read for Compressed {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buf).map_err(|e| {
            if self.source.failed.load(Ordering::Relaxed) || e.kind() == io::ErrorKind::Interrupted
            {
                return e;
            }
            let name = self.compression.name();
            let read = self.source.read.load(Ordering::Relaxed);
            let why = match e.kind() {
                io::ErrorKind::UnexpectedEof => {
                    format!(
                        "the {name} data is truncated (at byte {read}); fetch or compress it again"
                    )
                }
                _ => format!(
                    "the {name} data is damaged, or followed by other data, before byte {read}: {e}"
                ),
            };
            io::Error::new(io::ErrorKind::InvalidData, Damaged(why))
        })
    }
}

/// Appends `want` bytes to `buf`, or fewer if the input ends; returns their number.
pub(crate) fn read_more(
    reader: &mut dyn Read,
    buf: &mut Vec<u8>,
    want: usize,
) -> io::Result<usize> {
    let before = buf.len();
    reader.take(want as u64).read_to_end(buf)?;
    Ok(buf.len() - before)
}

/// Counts lines as editors do: a line feed, a carriage return, or both together end a line.
#[derive(Clone, Copy, Default)]
pub(crate) struct LineCounter {
    /// Line ends so far.
    pub(crate) lines: u64,
    after_return: bool,
}

impl LineCounter {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let Some(&last) = bytes.last() else { return };
        self.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        if self.after_return && bytes[0] == b'\n' {
            self.lines -= 1;
        }
        for at in memchr::memchr_iter(b'\r', bytes) {
            if bytes.get(at + 1) != Some(&b'\n') {
                self.lines += 1;
            }
        }
        self.after_return = last == b'\r';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_across_pieces() {
        for text in ["a\nb\nc", "a\r\nb\r\nc", "a\rb\rc", "\r\n\r\n", "\n\r\n"] {
            let expected = text
                .replace("\r\n", "\n")
                .replace('\r', "\n")
                .matches('\n')
                .count() as u64;
            for cut in 0..=text.len() {
                let mut c = LineCounter::default();
                c.add(&text.as_bytes()[..cut]);
                c.add(&text.as_bytes()[cut..]);
                assert_eq!(c.lines, expected, "{text:?} at {cut}");
            }
        }
    }
}
