//! A connection between two servers: greeting, sending and receiving.

use super::memory_limit::MemoryLimit;
use super::queue::{BATCH, Queue};
use super::table::{Joined, Table};
use super::wire::{self, Broken, FRAME, NAME, Reader, begin_frame, end_frame, kind};
use crate::machine::{Message, ServerName};
use crate::peers::MessageMemory;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout};

const MAGIC: &[u8; 8] = b"JDPEERS\n";
/// Protocol version of connections between servers.
pub(super) const VERSION: u32 = 2;
/// Length in bytes of the head of a greeting, whose layout is the same in all versions: magic number, version, and
/// length of the rest.
const HEAD: usize = 14;
/// Largest length in bytes of a greeting after its head.
const REST: usize = 1024;
/// Largest number of large messages that are received concurrently.
const AT_ONCE: usize = 32;
/// Messages with at least this many bytes are decoded on a separate thread.
const LONG: usize = 1 << 20;

/// The first message that each side sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Greeting {
    /// One of the constants in [`answer`].
    pub answer: u8,
    /// The sender's name.
    pub name: ServerName,
    /// The name of the server that the sender wants to reach.
    pub to: ServerName,
    /// Size of the largest message that the sender accepts, in bytes.
    pub most: usize,
}

/// Answers to a greeting.
pub(super) mod answer {
    /// The connection is accepted.
    pub const WELCOME: u8 = 0;
    /// The two processes have another connection, which is kept instead of this one.
    pub const SECOND: u8 = 1;
    /// The receiver is not the server that the caller wants to reach, or the caller's certificate is not the one in its
    /// entry.
    pub const STRANGER: u8 = 2;
}

impl Greeting {
    pub fn write(&self) -> Vec<u8> {
        self.write_as(VERSION)
    }

    pub fn write_as(&self, version: u32) -> Vec<u8> {
        let mut rest = vec![self.answer];
        for name in [&self.name, &self.to] {
            // Names longer than the limit are not in the list, so this truncated name is rejected anyway.
            let name = &name.as_bytes()[..name.len().min(NAME)];
            rest.push(name.len() as u8);
            rest.extend_from_slice(name);
        }
        rest.extend_from_slice(&(self.most as u64).to_le_bytes());
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&version.to_le_bytes());
        out.extend_from_slice(&(rest.len() as u16).to_le_bytes());
        out.extend_from_slice(&rest);
        out
    }

    /// Reads a greeting. Returns the peer's protocol version if that differs from ours.
    pub async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Result<Self, u32>> {
        let mut head = [0; HEAD];
        from.read_exact(&mut head).await?;
        let mut reader = Reader(&head);
        if reader.take(8)? != MAGIC {
            return Err(Broken("not a server's greeting").into());
        }
        let version = reader.u32()?;
        if version != VERSION {
            return Ok(Err(version));
        }
        let length = usize::from(u16::from_le_bytes([head[12], head[13]]));
        if length > REST {
            return Err(Broken("a greeting that is too long").into());
        }
        let mut rest = vec![0; length];
        from.read_exact(&mut rest).await?;
        let mut rest = Reader(&rest);
        Ok(Ok(Self {
            answer: rest.u8()?,
            name: rest.name()?,
            to: rest.name()?,
            most: usize::try_from(rest.u64()?).unwrap_or(usize::MAX),
        }))
    }
}

/// Runs an accepted connection until it ends.
pub(super) async fn run<S>(table: &Arc<Table>, name: &ServerName, joined: Joined, stream: S)
where
    S: AsyncRead + AsyncWrite + Send,
{
    let (read, write) = tokio::io::split(stream);
    let close = joined.close.clone();
    let (number, queue) = (joined.number, joined.queue.clone());
    let mut incoming = Incoming {
        table,
        name,
        number,
        queue: joined.queue,
        memory: joined.memory,
        large: HashMap::new(),
    };
    // The first of these that ends closes the connection.
    tokio::select! {
        _ = incoming.read(read) => {}
        _ = send(table, &queue, write) => {}
        () = close.notified() => {}
    }
    table.leave(name, number).await;
}

fn silent() -> io::Error {
    ErrorKind::TimedOut.into()
}

/// Sends queued messages, and pings while the queue is empty.
async fn send(table: &Table, queue: &Queue, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
    let times = table.limits.times;
    let mut out = Vec::with_capacity(2 * BATCH);
    let mut last = Instant::now();
    loop {
        out.clear();
        queue.take(&mut out);
        if out.is_empty() {
            tokio::select! {
                () = queue.filled.notified() => continue,
                () = sleep_until(last + times.ping) => {
                    let at = begin_frame(&mut out, kind::PING);
                    end_frame(&mut out, at);
                }
            }
        }
        let mut rest = &out[..];
        while !rest.is_empty() {
            let written = timeout(times.silence, to.write(rest)).await;
            match written.map_err(|_| silent())?? {
                0 => return Err(ErrorKind::WriteZero.into()),
                written => rest = &rest[written..],
            }
        }
        timeout(times.silence, to.flush())
            .await
            .map_err(|_| silent())??;
        last = Instant::now();
    }
}

/// The receiving side of a connection.
struct Incoming<'a> {
    table: &'a Arc<Table>,
    name: &'a ServerName,
    number: u64,
    queue: Arc<Queue>,
    memory: Arc<MemoryLimit>,
    /// Large messages that are partly received, by number.
    large: HashMap<u32, Large>,
}

struct Large {
    bytes: Vec<u8>,
    size: usize,
    /// Memory reserved for the message's bytes.
    held: MessageMemory,
}

impl Incoming<'_> {
    async fn read(&mut self, mut from: impl AsyncRead + Unpin) -> io::Result<()> {
        let silence = self.table.limits.times.silence;
        let mut buffer = Vec::with_capacity(2 * FRAME);
        let mut begin = 0;
        loop {
            while let Some(length) = frame(&buffer[begin..])? {
                let from = begin + 4;
                begin = from + length;
                self.frame(&buffer[from..begin]).await?;
            }
            buffer.drain(..begin);
            begin = 0;
            let read = timeout(silence, from.read_buf(&mut buffer)).await;
            if read.map_err(|_| silent())?? == 0 {
                return Ok(());
            }
        }
    }

    /// Handles a complete frame.
    async fn frame(&mut self, frame: &[u8]) -> io::Result<()> {
        match frame.first().copied().unwrap_or_default() {
            kind::PING => Ok(()),
            kind::FIRST => self.first(frame),
            kind::MORE => self.more(frame),
            kind::STOP => {
                self.queue.stop(Reader(&frame[1..]).u32()?);
                Ok(())
            }
            kind::PROPOSED | kind::FORWARD | kind::OUTCOME => {
                match self.memory.reserve(wire::weight(frame)?) {
                    Some(held) => self.deliver(wire::read(frame)?, held).await,
                    None => self.refuse(frame),
                }
                Ok(())
            }
            _ => {
                self.deliver(wire::read(frame)?, MessageMemory::default())
                    .await;
                Ok(())
            }
        }
    }

    async fn deliver(&self, message: Message, held: MessageMemory) {
        let table = self.table;
        self.queue.answered(&message);
        table.deliver(self.name, self.number, message, held).await;
    }

    /// Drops a message for lack of memory. If it is a forwarded update, answers [`Message::NotWriter`], although this
    /// server may be the writer: the sender then routes the update again.
    fn refuse(&self, beginning: &[u8]) {
        if let Some(key) = wire::forwarded(beginning) {
            let _ = self.queue.push(Message::NotWriter(key, 0, false));
        }
    }

    fn first(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut rest = Reader(&frame[1..]);
        let (number, size) = (rest.u32()?, rest.u32()? as usize);
        if size > self.table.limits.message {
            return Err(Broken("a message that is larger than what is taken").into());
        }
        if self.large.len() >= AT_ONCE {
            return Err(Broken("too many large messages at once").into());
        }
        let Some(held) = self.memory.reserve(size) else {
            self.refuse(rest.0);
            self.queue.refuse(number);
            return Ok(());
        };
        let mut bytes = Vec::with_capacity(size.max(rest.0.len()));
        bytes.extend_from_slice(rest.0);
        let large = Large { bytes, size, held };
        if self.large.insert(number, large).is_some() {
            return Err(Broken("a large message that begins twice").into());
        }
        self.complete(number)
    }

    fn more(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut rest = Reader(&frame[1..]);
        let number = rest.u32()?;
        // Pieces of a rejected message may still arrive; they are ignored.
        if let Some(large) = self.large.get_mut(&number) {
            if rest.0.len() > large.size - large.bytes.len() {
                return Err(Broken("a message that is longer than it said").into());
            }
            large.bytes.extend_from_slice(rest.0);
        }
        self.complete(number)
    }

    /// Delivers a large message once it is complete.
    fn complete(&mut self, number: u32) -> io::Result<()> {
        let there = self.large.get(&number);
        if there.is_none_or(|large| large.bytes.len() < large.size) {
            return Ok(());
        }
        let Some(large) = self.large.remove(&number) else {
            return Ok(());
        };
        if large.bytes.len() > large.size {
            return Err(Broken("a message that is longer than it said").into());
        }
        let Some(held) = self.memory.reserve(wire::weight(&large.bytes)?) else {
            self.refuse(&large.bytes);
            return Ok(());
        };
        let (table, name, number) = (self.table.clone(), self.name.clone(), self.number);
        let queue = self.queue.clone();
        // Later messages may overtake this one while it is decoded.
        self.table.spawn(async move {
            let read = move || {
                let message = wire::read(&large.bytes);
                drop((large.bytes, large.held));
                message
            };
            let message = match large.size >= LONG {
                true => tokio::task::spawn_blocking(read).await.ok(),
                false => Some(read()),
            };
            if let Some(Ok(message)) = message {
                queue.answered(&message);
                table.deliver(&name, number, message, held).await;
            }
        });
        Ok(())
    }
}

/// Length of the frame at the beginning of `bytes`; `None` if the frame is incomplete.
fn frame(bytes: &[u8]) -> Result<Option<usize>, Broken> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*length) as usize;
    match length {
        0 => Err(Broken("an empty frame")),
        1..=FRAME => Ok((rest.len() >= length).then_some(length)),
        _ => Err(Broken("a frame that is too long")),
    }
}
