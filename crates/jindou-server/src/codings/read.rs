//! Decoders as [`Read`]ers that may return `WouldBlock` at any time without losing input.

use super::Content;
use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use bytes::{Buf, Bytes};
use flate2::{Decompress, FlushDecompress, Status};
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Largest accepted window of `br`, as a power of two; the maximum of RFC 7932.
pub(super) const BROTLI_WINDOW: u32 = 24;
/// Largest accepted window of `zstd`, as a power of two; the maximum that RFC 9659 allows for a content coding.
pub(super) const ZSTD_WINDOW: u32 = 23;
/// Size of the buffer in front of each decoder, in bytes.
const BUFFER: usize = 1 << 14;
/// Number of bytes that a body's decoders may produce in one turn, which takes a millisecond or two.
const WORK: u64 = 1 << 18;

/// The bytes of a body that have arrived and were not decoded yet. Clones share them.
#[derive(Clone, Default)]
pub(super) struct EncodedBytes(Arc<Mutex<WaitingPiece>>);

#[derive(Default)]
struct WaitingPiece {
    pieces: VecDeque<Bytes>,
    taken: u64,
    ended: bool,
}

impl EncodedBytes {
    fn lock(&self) -> MutexGuard<'_, WaitingPiece> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, piece: Bytes) {
        if !piece.is_empty() {
            self.lock().pieces.push_back(piece);
        }
    }

    pub(super) fn end(&self) {
        self.lock().ended = true;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().pieces.is_empty()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    /// Total number of bytes that decoders have read.
    pub(super) fn taken(&self) -> u64 {
        self.lock().taken
    }
}

impl Read for EncodedBytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut waiting = self.lock();
        let Some(piece) = waiting.pieces.front_mut() else {
            return match waiting.ended {
                true => Ok(0),
                false => Err(io::ErrorKind::WouldBlock.into()),
            };
        };
        let n = piece.len().min(out.len());
        piece.copy_to_slice(&mut out[..n]);
        if piece.is_empty() {
            waiting.pieces.pop_front();
        }
        waiting.taken += n as u64;
        Ok(n)
    }
}

/// Number of bytes that a body's decoders have produced in the current turn, that is, since the body was last polled.
#[derive(Clone, Default)]
pub(super) struct DecodeTurn(Arc<AtomicU64>);

impl DecodeTurn {
    pub(super) fn begin(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= WORK
    }
}

/// A decoder that returns `WouldBlock` once the turn's work is done. Without this, a decoder that reads another one's
/// output could consume gibibytes before it produces a byte.
struct Paced {
    inner: Box<dyn Read + Send>,
    turn: DecodeTurn,
}

impl Read for Paced {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.turn.is_over() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let n = self.inner.read(out)?;
        self.turn.0.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// A chain of decoders for these codings; the last coding is decoded first.
pub(super) fn chain(
    codings: &[Content],
    input: &EncodedBytes,
    turn: &DecodeTurn,
) -> io::Result<Box<dyn Read + Send>> {
    let mut inner: Box<dyn Read + Send> = Box::new(input.clone());
    for coding in codings.iter().rev() {
        let source = BufReader::with_capacity(BUFFER, inner);
        let decoder: Box<dyn Read + Send> = match coding {
            Content::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(source)),
            Content::Deflate => Box::new(Stepwise::new(source, Inflate::default())),
            Content::Brotli => Box::new(Stepwise::new(source, Brotli::default())),
            Content::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(source)?;
                decoder.window_log_max(ZSTD_WINDOW)?;
                Box::new(decoder)
            }
        };
        inner = Box::new(Paced {
            inner: decoder,
            turn: turn.clone(),
        });
    }
    Ok(inner)
}

/// Result of one step of a decoder.
struct DecodeStep {
    read: usize,
    written: usize,
    ended: bool,
}

/// A decoder of one compressed stream.
trait Decode {
    /// Decodes a beginning of `text`, which is not empty.
    fn step(&mut self, text: &[u8], out: &mut [u8]) -> io::Result<DecodeStep>;
}

/// Reads one compressed stream to its end, and refuses bytes after it.
struct Stepwise<R, D> {
    source: R,
    decoder: D,
    ended: bool,
}

impl<R, D> Stepwise<R, D> {
    fn new(source: R, decoder: D) -> Self {
        Self {
            source,
            decoder,
            ended: false,
        }
    }
}

impl<R: BufRead, D: Decode> Read for Stepwise<R, D> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let text = self.source.fill_buf()?;
            match (self.ended, text.is_empty()) {
                (true, true) => return Ok(0),
                (true, false) => {
                    return Err(invalid(
                        "there is data after the end of the compressed text",
                    ));
                }
                (false, true) => {
                    // The input has ended early. The decoder may still hold decoded text, which is returned before the
                    // error.
                    let step = self.decoder.step(&[], out)?;
                    self.ended = step.ended;
                    if step.written > 0 {
                        return Ok(step.written);
                    }
                    if !step.ended {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                (false, false) => {
                    let step = self.decoder.step(text, out)?;
                    self.source.consume(step.read);
                    self.ended = step.ended;
                    if step.written > 0 {
                        return Ok(step.written);
                    }
                }
            }
        }
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Decoder of `deflate`: the zlib format (RFC 9110, section 8.4.1.2), or a bare deflate stream, which some clients
/// send.
#[derive(Default)]
struct Inflate {
    /// The first byte, until the second one has arrived: the two tell which format it is.
    first: Option<u8>,
    inflate: Option<Decompress>,
}

impl Inflate {
    fn run(inflate: &mut Decompress, text: &[u8], out: &mut [u8]) -> io::Result<DecodeStep> {
        let (read, written) = (inflate.total_in(), inflate.total_out());
        let status = inflate
            .decompress(text, out, FlushDecompress::None)
            .map_err(|e| invalid(&e.to_string()))?;
        Ok(DecodeStep {
            read: (inflate.total_in() - read) as usize,
            written: (inflate.total_out() - written) as usize,
            ended: status == Status::StreamEnd,
        })
    }
}

impl Decode for Inflate {
    fn step(&mut self, text: &[u8], out: &mut [u8]) -> io::Result<DecodeStep> {
        if let Some(inflate) = &mut self.inflate {
            return Self::run(inflate, text, out);
        }
        let step = |read| DecodeStep {
            read,
            written: 0,
            ended: false,
        };
        let first = match (self.first, text) {
            (_, []) => return Ok(step(0)),
            (None, [first, ..]) => {
                self.first = Some(*first);
                return Ok(step(1));
            }
            (Some(first), _) => first,
        };
        let head = u16::from_be_bytes([first, text[0]]);
        let is_zlib = first & 0x0f == 8 && first >> 4 <= 7 && head.is_multiple_of(31);
        let mut inflate = Decompress::new(is_zlib);
        let begun = Self::run(&mut inflate, &[first], out)?;
        self.inflate = Some(inflate);
        // The first byte by itself, decoded above, produces no text.
        Ok(DecodeStep { read: 0, ..begun })
    }
}

/// Decoder of `br` (RFC 7932), without the extension for large windows.
struct Brotli(BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>);

impl Default for Brotli {
    fn default() -> Self {
        let alloc = StandardAlloc::default;
        Self(BrotliState::new_strict(alloc(), alloc(), alloc()))
    }
}

impl Decode for Brotli {
    fn step(&mut self, text: &[u8], out: &mut [u8]) -> io::Result<DecodeStep> {
        let (mut left, mut read) = (text.len(), 0);
        let (mut room, mut written, mut total) = (out.len(), 0, 0);
        let result = BrotliDecompressStream(
            &mut left,
            &mut read,
            text,
            &mut room,
            &mut written,
            out,
            &mut total,
            &mut self.0,
        );
        match result {
            BrotliResult::ResultFailure => Err(invalid("its blocks are damaged")),
            _ => Ok(DecodeStep {
                read,
                written,
                ended: matches!(result, BrotliResult::ResultSuccess),
            }),
        }
    }
}
