//! Encoding of messages between servers.
//!
//! A frame consists of a 32-bit length, a kind, and content that depends on the kind. A message that fits into a frame
//! is sent as one frame, whose kind is that of the message. A larger message is sent in pieces, each in a frame, and
//! frames of other messages may be sent between them.

use crate::machine::{
    Beat, Blob, Echo, Group, Message, Outcome, Record, Request, RequestKey, ServerName, Time,
    Writer,
};
use std::sync::Arc;
use std::time::Duration;

/// Number of bytes of a large message in one frame.
pub(super) const PIECE: usize = 64 << 10;
/// Largest length in bytes of a frame, without its length field.
pub(super) const FRAME: usize = PIECE + 16;
/// Largest length in bytes of a server's name.
pub(super) const NAME: usize = 255;

/// Kinds of frames. The first seven are also kinds of messages.
pub(super) mod kind {
    pub const BEAT: u8 = 1;
    pub const COMMITTED: u8 = 2;
    pub const ACKNOWLEDGED: u8 = 3;
    pub const NOT_WRITER: u8 = 4;
    pub const OUTCOME: u8 = 5;
    pub const PROPOSED: u8 = 6;
    pub const FORWARD: u8 = 7;
    /// A ping, without content.
    pub const PING: u8 = 16;
    /// First piece of a large message: the message's number and size, and its first bytes.
    pub const FIRST: u8 = 17;
    /// Further piece of a large message: the message's number, and its next bytes.
    pub const MORE: u8 = 18;
    /// Rejection of a large message by the receiver, for lack of memory: the message's number.
    pub const STOP: u8 = 19;
}

/// Protocol error: bytes that a server of this version does not send.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Broken(pub &'static str);

impl From<Broken> for std::io::Error {
    fn from(broken: Broken) -> Self {
        Self::new(std::io::ErrorKind::InvalidData, broken.0)
    }
}

/// A message that is being sent. Its bodies are encoded piece by piece, without copying them first.
pub(super) struct Outgoing {
    message: Message,
    /// The encoded fields before the bodies, or the whole message if it has none.
    head: Vec<u8>,
    /// Index of the next part to send, and the number of its bytes that were already sent.
    part: usize,
    offset: usize,
    left: usize,
}

impl Outgoing {
    /// Encodes a message; `None` if a length exceeds the format's limits.
    pub fn new(message: Message) -> Option<Self> {
        let head = head(&message)?;
        let bodies = match &message {
            Message::Proposed(group) => {
                let records = group.records.iter();
                records
                    .map(|r| FIXED + r.report.len() + r.bytes.len())
                    .sum()
            }
            Message::Forward(_, body, _)
            | Message::Outcome(_, Outcome::Done { report: body, .. } | Outcome::Refused(body)) => {
                body.len()
            }
            _ => 0,
        };
        let left = head.len() + bodies;
        Some(Self {
            message,
            head,
            part: 0,
            offset: 0,
            left,
        })
    }

    /// The message that is being sent.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// Number of bytes that were not sent yet.
    pub fn left(&self) -> usize {
        self.left
    }

    /// True if no byte was sent yet.
    pub fn is_new(&self) -> bool {
        (self.part, self.offset) == (0, 0)
    }

    /// Encodes and appends up to `most` further bytes to `out`.
    pub fn take(&mut self, most: usize, out: &mut Vec<u8>) {
        let mut most = most.min(self.left);
        self.left -= most;
        while most > 0 {
            let fixed;
            let part: &[u8] = match (self.part, &self.message) {
                (0, _) => &self.head,
                (part, Message::Proposed(group)) => {
                    let Some(record) = group.records.get((part - 1) / 3) else {
                        return;
                    };
                    match (part - 1) % 3 {
                        0 => {
                            fixed = fixed_part(record);
                            &fixed
                        }
                        1 => &record.report,
                        _ => &record.bytes,
                    }
                }
                (
                    1,
                    Message::Forward(_, body, _)
                    | Message::Outcome(
                        _,
                        Outcome::Done { report: body, .. } | Outcome::Refused(body),
                    ),
                ) => body,
                _ => return,
            };
            let rest = part.get(self.offset..).unwrap_or_default();
            let taken = rest.len().min(most);
            out.extend_from_slice(&rest[..taken]);
            most -= taken;
            self.offset += taken;
            if taken == rest.len() {
                self.part += 1;
                self.offset = 0;
            }
        }
    }
}

/// Encodes the fixed-size fields of a record. Its lengths fit into 32 bits, since the group was put.
fn fixed_part(record: &Record) -> [u8; FIXED] {
    let mut fixed = [0; FIXED];
    fixed[..16].copy_from_slice(&record.key.0.to_le_bytes());
    fixed[16..24].copy_from_slice(&record.fingerprint.to_le_bytes());
    fixed[24..28].copy_from_slice(&(record.report.len() as u32).to_le_bytes());
    fixed[28..].copy_from_slice(&(record.bytes.len() as u32).to_le_bytes());
    fixed
}

/// Size in bytes of the fixed-size fields of a record.
const FIXED: usize = 32;

fn head(message: &Message) -> Option<Vec<u8>> {
    let mut out = Encoder(Vec::with_capacity(96));
    match message {
        Message::Beat(beat) => {
            out.u8(kind::BEAT);
            out.u64(beat.start);
            out.u64(beat.clock.0);
            out.echo(beat.echo);
            out.u64(beat.committed);
            out.u64(beat.newest_known);
            out.u8(beat.age.is_some().into());
            // Rounded up, so that the proof never appears younger than it is.
            let age = beat.age.unwrap_or_default().as_nanos().div_ceil(1000);
            out.u64(u64::try_from(age).unwrap_or(u64::MAX));
            out.u8(beat.draining.into());
        }
        Message::Committed(number, writer) => {
            out.u8(kind::COMMITTED);
            out.u64(*number);
            let writer = writer.as_ref().filter(|a| a.server.len() <= NAME);
            out.u8(writer.is_some().into());
            if let Some(writer) = writer {
                out.writer(writer)?;
            }
        }
        Message::Acknowledged(number) => {
            out.u8(kind::ACKNOWLEDGED);
            out.u64(*number);
        }
        Message::NotWriter(key, committed, draining) => {
            out.u8(kind::NOT_WRITER);
            out.key(*key);
            out.u64(*committed);
            out.u8((*draining).into());
        }
        Message::Outcome(key, outcome) => {
            out.u8(kind::OUTCOME);
            out.key(*key);
            match outcome {
                Outcome::Done {
                    number,
                    fingerprint,
                    ..
                } => {
                    out.u8(0);
                    out.u64(*number);
                    out.u64(*fingerprint);
                }
                Outcome::Refused(_) => out.u8(1),
                Outcome::Unknown => out.u8(2),
                Outcome::Missing(number) => {
                    out.u8(3);
                    out.u64(*number);
                }
            }
        }
        Message::Proposed(group) => {
            out.u8(kind::PROPOSED);
            out.u64(group.number);
            out.writer(&group.writer)?;
            out.u8(group.previous.is_some().into());
            out.u64(group.previous.unwrap_or(0));
            out.0
                .extend_from_slice(&u32::try_from(group.records.len()).ok()?.to_le_bytes());
        }
        Message::Forward(request, _, echo) => {
            out.u8(kind::FORWARD);
            out.key(request.key);
            out.u64(request.fingerprint);
            out.echo(*echo);
        }
    }
    Some(out.0)
}

struct Encoder(Vec<u8>);

impl Encoder {
    fn u8(&mut self, number: u8) {
        self.0.push(number);
    }

    fn u64(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn key(&mut self, key: RequestKey) {
        self.0.extend_from_slice(&key.0.to_le_bytes());
    }

    fn echo(&mut self, echo: Option<Echo>) {
        self.u8(echo.is_some().into());
        self.u64(echo.map_or(0, |echo| echo.start));
        self.u64(echo.map_or(0, |echo| echo.clock.0));
    }

    fn writer(&mut self, writer: &Writer) -> Option<()> {
        self.u64(writer.start);
        self.u8(u8::try_from(writer.server.len()).ok()?);
        self.0.extend_from_slice(writer.server.as_bytes());
        Some(())
    }
}

/// Upper bound on the memory of the decoded message, in bytes.
pub(super) fn weight(bytes: &[u8]) -> Result<usize, Broken> {
    let mut rest = Reader(bytes);
    if rest.u8()? != kind::PROPOSED {
        return Ok(bytes.len());
    }
    rest.u64()?;
    rest.writer()?;
    rest.previous()?;
    Ok(bytes.len() + RECORD * rest.count()?)
}

/// Upper bound on the memory of a decoded record in addition to its bytes: the struct, and the overhead of two
/// allocations.
const RECORD: usize = size_of::<Record>() + 64;

/// Key of the request, if `bytes` begins with a forwarded update.
pub(super) fn forwarded(bytes: &[u8]) -> Option<RequestKey> {
    let mut rest = Reader(bytes);
    (rest.u8() == Ok(kind::FORWARD)).then(|| rest.key().ok())?
}

/// Decodes a message.
pub(super) fn read(bytes: &[u8]) -> Result<Message, Broken> {
    let mut rest = Reader(bytes);
    let message = match rest.u8()? {
        kind::BEAT => {
            let (start, clock) = (rest.u64()?, Time(rest.u64()?));
            let echo = rest.echo()?;
            let (committed, newest_known) = (rest.u64()?, rest.u64()?);
            let (known, age) = (rest.flag()?, Duration::from_micros(rest.u64()?));
            Message::Beat(Beat {
                start,
                clock,
                echo,
                committed,
                newest_known,
                age: known.then_some(age),
                draining: rest.flag()?,
            })
        }
        kind::COMMITTED => {
            let number = rest.u64()?;
            let writer = match rest.flag()? {
                true => Some(rest.writer()?),
                false => None,
            };
            Message::Committed(number, writer)
        }
        kind::ACKNOWLEDGED => Message::Acknowledged(rest.u64()?),
        kind::NOT_WRITER => Message::NotWriter(rest.key()?, rest.u64()?, rest.flag()?),
        kind::OUTCOME => {
            let key = rest.key()?;
            let outcome = match rest.u8()? {
                0 => Outcome::Done {
                    number: rest.u64()?,
                    fingerprint: rest.u64()?,
                    report: rest.all(),
                },
                1 => Outcome::Refused(rest.all()),
                2 => Outcome::Unknown,
                3 => Outcome::Missing(rest.u64()?),
                _ => return Err(Broken("an outcome of an unknown kind")),
            };
            Message::Outcome(key, outcome)
        }
        kind::PROPOSED => {
            let number = rest.u64()?;
            let writer = rest.writer()?;
            let previous = rest.previous()?;
            let count = rest.count()?;
            let mut records = Vec::with_capacity(count);
            for _ in 0..count {
                let (key, fingerprint) = (rest.key()?, rest.u64()?);
                let (report, bytes) = (rest.u32()?, rest.u32()?);
                records.push(Record {
                    key,
                    fingerprint,
                    report: rest.take(report as usize)?.into(),
                    bytes: rest.take(bytes as usize)?.into(),
                });
            }
            Message::Proposed(Arc::new(Group {
                number,
                writer,
                previous,
                records,
            }))
        }
        kind::FORWARD => {
            let request = Request {
                key: rest.key()?,
                fingerprint: rest.u64()?,
            };
            let echo = rest.echo()?;
            Message::Forward(request, rest.all(), echo)
        }
        _ => return Err(Broken("a message of an unknown kind")),
    };
    match rest.0.is_empty() {
        true => Ok(message),
        false => Err(Broken("a message that is longer than what is in it")),
    }
}

/// Reader of the bytes that are not decoded yet.
pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Broken> {
        let short = Broken("a message that is shorter than what should be in it");
        let (first, rest) = self.0.split_at_checked(count).ok_or(short)?;
        self.0 = rest;
        Ok(first)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| Broken("a number's length"))
    }

    pub fn u8(&mut self) -> Result<u8, Broken> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32, Broken> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, Broken> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn key(&mut self) -> Result<RequestKey, Broken> {
        Ok(RequestKey(u128::from_le_bytes(self.array()?)))
    }

    fn flag(&mut self) -> Result<bool, Broken> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Broken("neither true nor false")),
        }
    }

    fn echo(&mut self) -> Result<Option<Echo>, Broken> {
        let there = self.flag()?;
        let (start, clock) = (self.u64()?, Time(self.u64()?));
        Ok(there.then_some(Echo { start, clock }))
    }

    pub fn name(&mut self) -> Result<ServerName, Broken> {
        let length = self.u8()?;
        let name = std::str::from_utf8(self.take(length.into())?);
        Ok(name.map_err(|_| Broken("a name that is not text"))?.into())
    }

    fn writer(&mut self) -> Result<Writer, Broken> {
        let start = self.u64()?;
        let server = self.name()?;
        Ok(Writer { server, start })
    }

    /// Decodes the hash of a group's predecessor; `None` if the group has none.
    fn previous(&mut self) -> Result<Option<u64>, Broken> {
        let there = self.flag()?;
        let hash = self.u64()?;
        Ok(there.then_some(hash))
    }

    /// Decodes the number of records, and rejects a number that exceeds the remaining bytes.
    fn count(&mut self) -> Result<usize, Broken> {
        let count = self.u32()? as usize;
        match count <= self.0.len() / FIXED {
            true => Ok(count),
            false => Err(Broken("more records than there is room for")),
        }
    }

    fn all(&mut self) -> Blob {
        std::mem::take(&mut self.0).into()
    }
}

/// Starts a frame. Returns its position, for [`end_frame`].
pub(super) fn begin_frame(out: &mut Vec<u8>, kind: u8) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    out.push(kind);
    at
}

/// Writes the length of the frame that begins at `at`.
pub(super) fn end_frame(out: &mut [u8], at: usize) {
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}
