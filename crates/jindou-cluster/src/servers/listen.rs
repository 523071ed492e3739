//! The answering side of connections: other servers dial, are admitted after a greeting, and get their requests
//! answered on blocking threads.

use super::frame::{self, FrameKind, FramePart};
use super::members::Accepted;
use super::own::Own;
use super::{CHUNK, MAX_REQUEST, SILENCE};
use crate::shards::{Reply, SearchTurns, ShardRequest, wire};
use jindou_model::{Charge, Error, Holder, MemoryBudget, Result};
use std::io;
use std::sync::Arc;
use tokio::io::{BufReader, BufWriter};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::timeout;

/// Largest number of requests of a connection that are read but not answered yet.
const IN_WORK: usize = 16;
/// Largest size of a greeting in bytes.
const MAX_HELLO: usize = 4096;

/// State that is needed to answer the requests of an admitted server.
#[derive(Clone)]
pub struct AdmittedAccess {
    pub own: Own,
    /// Memory budget for incoming requests.
    pub memory: MemoryBudget,
}

/// Admits the server `other` to this server (`name`) if its store has the id epoch `epoch`, and answers its requests
/// until the connection ends.
pub async fn serve(
    mut stream: Accepted,
    inside: AdmittedAccess,
    epoch: u64,
    [name, other]: [Arc<str>; 2],
) {
    let welcome = async {
        let hello = frame::read(&mut stream, MAX_HELLO).await?;
        let refusal = match (hello.kind, hello.body.first_chunk()) {
            (FrameKind::Hello, Some(theirs)) if u64::from_le_bytes(*theirs) == epoch => None,
            (FrameKind::Hello, Some(_)) => Some(format!(
                "server {other} has shards of another load than server {name}; use shards of a single load"
            )),
            _ => Some("a server must send its greeting first".into()),
        };
        let (kind, why) = match &refusal {
            None => (FrameKind::Welcome, ""),
            Some(why) => (FrameKind::Refusal, why.as_str()),
        };
        frame::send(&mut stream, kind, why.as_bytes().to_vec()).await?;
        Ok::<bool, io::Error>(refusal.is_none())
    };
    if let Ok(Ok(true)) = timeout(SILENCE, welcome).await {
        // The error is ignored: the dialling side notices the end of the connection as well, and dials again.
        let _ = answer(stream, inside).await;
    }
}

/// Sends this server's holdings and readable files, now and whenever they change.
async fn announce(own: &Own, out: &Sender<FramePart>) -> Option<()> {
    let mut changes = own.changes();
    loop {
        let all = own.announcement().to_bytes();
        reply(out, FrameKind::Holdings, 0, all).await?;
        if let Some(offered) = own.offered() {
            reply(out, FrameKind::Memory, 0, offered.to_bytes()).await?;
        }
        changes.changed().await.ok()?;
    }
}

/// Answers the requests of a connection until it ends.
async fn answer(stream: Accepted, inside: AdmittedAccess) -> io::Result<()> {
    let AdmittedAccess { own, memory } = inside;
    let (from, to) = tokio::io::split(stream);
    let (mut from, mut to) = (
        BufReader::with_capacity(CHUNK, from),
        BufWriter::with_capacity(CHUNK, to),
    );
    let (out, mut parts) = channel::<FramePart>(4);
    let in_work = Arc::new(Semaphore::new(IN_WORK));
    let reading = async {
        let mut message: Option<IncomingMessage> = None;
        loop {
            let frame = frame::read(&mut from, CHUNK).await?;
            let current = match (frame.kind, message.take()) {
                (FrameKind::Beat, before) => {
                    message = before;
                    continue;
                }
                (FrameKind::Requests, None) => {
                    let mut begun = IncomingMessage::new(frame.number, &memory);
                    begun.add(&frame.body);
                    begun
                }
                (FrameKind::Requests, Some(mut begun))
                    if begun.number == frame.number
                        && begun.length + frame.body.len() <= MAX_REQUEST =>
                {
                    begun.add(&frame.body);
                    begun
                }
                _ => {
                    let what = "a frame that belongs to no request";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
            };
            if !frame.last {
                message = Some(current);
                continue;
            }
            let IncomingMessage {
                number,
                bytes,
                charge,
                refused,
                ..
            } = current;
            if let Some(why) = refused {
                let _ = reply(&out, FrameKind::Failure, number, failure(0, &why)).await;
                continue;
            }
            // No more requests are read while many are being answered. This ends, because the asking side always reads
            // replies.
            let Ok(permit) = Arc::clone(&in_work).acquire_owned().await else {
                return Ok(());
            };
            let (own, out) = (own.clone(), out.clone());
            tokio::spawn(async move {
                let answered = tokio::task::spawn_blocking(move || message_for(&own, &bytes));
                if let Ok((kind, body)) = answered.await {
                    let _ = reply(&out, kind, number, body).await;
                }
                drop((permit, charge));
            });
        }
    };
    let writing = frame::write_all(&mut to, |cx| parts.poll_recv(cx));
    tokio::select! {
        ended = reading => ended,
        ended = writing => ended,
        _ = announce(&own, &out) => Ok(()),
    }
}

/// A message that is being received in frames. Its memory is charged as it grows. If the budget is exhausted, the rest
/// of the message is read and discarded.
struct IncomingMessage {
    number: u64,
    bytes: Vec<u8>,
    /// Number of bytes received so far, including discarded ones.
    length: usize,
    charge: Charge,
    /// Set if the memory budget was exhausted, with the reason.
    refused: Option<String>,
}

impl IncomingMessage {
    fn new(number: u64, memory: &MemoryBudget) -> Self {
        Self {
            number,
            bytes: Vec::new(),
            length: 0,
            charge: Charge::new(Holder::Rest, memory),
            refused: None,
        }
    }

    fn add(&mut self, body: &[u8]) {
        self.length += body.len();
        if self.refused.is_some() {
            return;
        }
        if self.length > self.bytes.capacity() {
            // Charge twice the capacity: while the buffer grows, the old and the new one exist together, and later the
            // buffer and the requests parsed from it.
            let room = self.length.next_power_of_two();
            if let Err(e) = self.charge.set(2 * room as u64) {
                self.bytes = Vec::new();
                let _ = self.charge.set(0);
                self.refused = Some(e.to_string());
                return;
            }
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        self.bytes.extend_from_slice(body);
    }
}

/// Encodes the reason why a shard does not answer.
fn failure(shard: u32, why: &str) -> Vec<u8> {
    let mut out = shard.to_le_bytes().to_vec();
    out.extend_from_slice(why.as_bytes());
    out
}

/// Sends a message frame by frame, so that short messages can overtake long ones.
async fn reply(out: &Sender<FramePart>, kind: FrameKind, number: u64, body: Vec<u8>) -> Option<()> {
    for part in frame::parts(kind, number, body) {
        out.send(part).await.ok()?;
    }
    Some(())
}

/// Answers a message of requests, with replies or a failure.
fn message_for(own: &Own, bytes: &[u8]) -> (FrameKind, Vec<u8>) {
    let mut out = Vec::new();
    match replies(own, bytes) {
        Ok(replies) => {
            wire::put_replies(&replies, &mut out);
            (FrameKind::Replies, out)
        }
        Err(e) => {
            let (shard, why) = match e {
                Error::Shard { shard, message } => (shard, message),
                e => (0, e.to_string()),
            };
            (FrameKind::Failure, failure(shard, &why))
        }
    }
}

fn replies(own: &Own, bytes: &[u8]) -> Result<Vec<Reply>> {
    let (base, requests) =
        wire::requests(bytes).ok_or_else(|| Error::Usage("the request cannot be read".into()))?;
    let mut turns = SearchTurns::new(requests.iter().map(|r| &r.1));
    let one =
        |(shard, request): &(u32, ShardRequest)| own.answer(base, *shard, &turns.next(request));
    requests.iter().map(one).collect()
}
