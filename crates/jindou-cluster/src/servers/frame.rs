//! Frames: a header of 32 bytes, and up to [`CHUNK`] bytes of a message.
//!
//! | bytes | |
//! |---|---|
//! | 0..4 | `JDSV` |
//! | 4..6 | version of the protocol |
//! | 6 | kind |
//! | 7 | 1 in the last frame of a message, else 0 |
//! | 8..16 | number of the request |
//! | 16..20 | bytes of the body |
//! | 20..24 | region: 0 |
//! | 24..32 | xxh3-64 of the body |
//!
//! All numbers are little-endian. A message is a sequence of frames. A peer never announces the length of a whole
//! message, so nothing is allocated for an announced length.

use super::{BEAT, CHUNK, SILENCE};
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: [u8; 4] = *b"JDSV";
/// Version of the protocol. A server only accepts its own version.
pub const VERSION: u16 = 10;
const HEADER: usize = 32;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// The greeting of the server that has dialled, with the id epoch of its store.
    Hello = 1,
    /// Acceptance of a greeting.
    Welcome,
    /// Rejection of a greeting, with the reason as a sentence.
    Refusal,
    /// A heartbeat.
    Beat,
    /// Requests to shards, each with the shard's number.
    Requests,
    /// The replies to a message of requests.
    Replies,
    /// Failure of a message of requests: the number of the shard that could not answer, and the reason as a sentence.
    Failure,
    /// The shards and bases that a server holds. Sent by the server that accepted the connection: after the greeting,
    /// and after each change.
    Holdings,
    /// The shards and bases whose files can be read from the memory of the server that accepted the connection. Sent at
    /// the same times as [`FrameKind::Holdings`].
    Memory,
}

impl FrameKind {
    /// The kind that a byte encodes.
    pub fn from_byte(byte: u8) -> Option<Self> {
        [
            Self::Hello,
            Self::Welcome,
            Self::Refusal,
            Self::Beat,
            Self::Requests,
            Self::Replies,
            Self::Failure,
            Self::Holdings,
            Self::Memory,
        ]
        .into_iter()
        .find(|k| *k as u8 == byte)
    }
}

/// A received frame.
#[derive(Debug)]
pub struct Frame {
    pub kind: FrameKind,
    pub last: bool,
    pub number: u64,
    pub body: Vec<u8>,
}

/// A frame to send: a part of a message.
pub struct FramePart {
    pub kind: FrameKind,
    pub number: u64,
    pub last: bool,
    pub message: Arc<Vec<u8>>,
    pub range: Range<usize>,
}

/// Splits a message into frames. An empty message becomes one frame without a body.
pub fn parts(kind: FrameKind, number: u64, message: Vec<u8>) -> impl Iterator<Item = FramePart> {
    let (message, length) = (Arc::new(message), 0);
    let total = message.len();
    let count = total.div_ceil(CHUNK).max(1);
    (length..count).map(move |i| FramePart {
        kind,
        number,
        last: i + 1 == count,
        message: Arc::clone(&message),
        range: i * CHUNK..total.min((i + 1) * CHUNK),
    })
}

fn bad(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// Writes a frame, without flushing it.
pub async fn write(to: &mut (impl AsyncWrite + Unpin), part: &FramePart) -> io::Result<()> {
    let body = part
        .message
        .get(part.range.clone())
        .ok_or_else(|| bad("a frame runs past the end of its message"))?;
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&MAGIC);
    header[4..6].copy_from_slice(&VERSION.to_le_bytes());
    header[6] = part.kind as u8;
    header[7] = u8::from(part.last);
    header[8..16].copy_from_slice(&part.number.to_le_bytes());
    header[16..20].copy_from_slice(&(body.len() as u32).to_le_bytes());
    header[24..].copy_from_slice(&xxh3_64(body).to_le_bytes());
    to.write_all(&header).await?;
    to.write_all(body).await
}

/// Writes and flushes a whole message, for a greeting.
pub async fn send(
    to: &mut (impl AsyncWrite + Unpin),
    kind: FrameKind,
    message: Vec<u8>,
) -> io::Result<()> {
    for part in parts(kind, 0, message) {
        write(to, &part).await?;
    }
    to.flush().await
}

/// Fills a buffer. Fails if no byte arrives for [`SILENCE`], however many are still missing.
async fn fill(from: &mut (impl AsyncRead + Unpin), mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        let n = timeout(SILENCE, from.read(buffer)).await.map_err(|_| {
            let seconds = SILENCE.as_secs_f64();
            io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no sign of life for {seconds} s"),
            )
        })??;
        if n == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "it closed the connection",
            ));
        }
        buffer = &mut buffer[n..];
    }
    Ok(())
}

/// Reads a frame whose body has at most `most` bytes.
///
/// # Errors
/// If the bytes are not a valid frame, or no byte arrives for [`SILENCE`].
pub async fn read(from: &mut (impl AsyncRead + Unpin), most: usize) -> io::Result<Frame> {
    let mut header = [0; HEADER];
    fill(from, &mut header).await?;
    if header[..4] != MAGIC {
        return Err(bad("it does not speak Jindou's protocol"));
    }
    let version = u16::from_le_bytes([header[4], header[5]]);
    if version != VERSION {
        return Err(bad(format!(
            "it speaks version {version} of the protocol, this server version {VERSION}"
        )));
    }
    let kind = FrameKind::from_byte(header[6]).ok_or_else(|| bad("a frame of an unknown kind"))?;
    let [a, b, c, d] = [16, 17, 18, 19].map(|i| header[i]);
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length > most.min(CHUNK) || header[7] > 1 || header[20..24] != [0; 4] {
        return Err(bad("a frame with a damaged header"));
    }
    let mut body = vec![0; length];
    fill(from, &mut body).await?;
    let eight = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&header[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    if xxh3_64(&body) != eight(24) {
        return Err(bad("a frame damaged in transit"));
    }
    Ok(Frame {
        kind,
        last: header[7] == 1,
        number: eight(8),
        body,
    })
}

/// Writes the frames that `next` returns, and heartbeats while there are none. Ends when `next` returns `None`.
///
/// # Errors
/// If the peer accepts no byte for [`SILENCE`].
pub async fn write_all(
    to: &mut (impl AsyncWrite + Unpin),
    mut next: impl FnMut(&mut Context<'_>) -> Poll<Option<FramePart>>,
) -> io::Result<()> {
    let mut beat = tokio::time::interval(BEAT);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let beating = FramePart {
        kind: FrameKind::Beat,
        number: 0,
        last: true,
        message: Arc::default(),
        range: 0..0,
    };
    loop {
        let part = tokio::select! {
            part = poll_fn(&mut next) => match part {
                Some(part) => part,
                None => return Ok(()),
            },
            _ = beat.tick() => FramePart { message: Arc::clone(&beating.message), range: 0..0, ..beating },
        };
        let written = async {
            write(to, &part).await?;
            to.flush().await
        };
        timeout(2 * SILENCE, written).await.map_err(|_| {
            io::Error::new(io::ErrorKind::TimedOut, "it accepts nothing any more")
        })??;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(f: impl Future<Output = T>) -> T {
        let builder = &mut tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap().block_on(f)
    }

    fn bytes_of(message: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        block_on(async {
            for part in parts(FrameKind::Replies, 7, message.to_vec()) {
                write(&mut out, &part).await.unwrap();
            }
        });
        out
    }

    #[test]
    fn messages_of_any_length_come_back() {
        for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
            let message: Vec<u8> = (0..length).map(|i| (i / 7) as u8).collect();
            let bytes = bytes_of(&message);
            let (mut from, mut got) = (&bytes[..], Vec::new());
            loop {
                let frame = block_on(read(&mut from, CHUNK)).unwrap();
                assert_eq!((frame.kind, frame.number), (FrameKind::Replies, 7));
                got.extend(frame.body);
                if frame.last {
                    break;
                }
            }
            assert!(from.is_empty() && got == message, "{length}");
        }
    }

    /// Every truncation and every changed bit is detected, except changes of the kind, the end flag and the number,
    /// which the reader compares with its request.
    #[test]
    fn damaged_frames_are_refused() {
        let bytes = bytes_of(b"some neighbours");
        for at in (0..6).chain(16..bytes.len()) {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                assert!(block_on(read(&mut &bad[..], CHUNK)).is_err(), "{at} {bit}");
            }
        }
        for cut in 0..bytes.len() {
            assert!(block_on(read(&mut &bytes[..cut], CHUNK)).is_err(), "{cut}");
        }
        assert!(block_on(read(&mut &bytes[..], 14)).is_err());
    }
}
