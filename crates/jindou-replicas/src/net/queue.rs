//! The send queue of a connection. Messages without bodies (heartbeats, commits, acknowledgements, outcomes) go first;
//! then bodies that fit into a frame; then pieces of larger bodies, round robin.

use super::wire::{FRAME, Outgoing, PIECE, begin_frame, end_frame, kind};
use crate::machine::{Group, Message, RequestKey};
use jindou_model::sync;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Capacity in bytes for messages without bodies and for outcomes.
const CONTROL: usize = 64 << 20;
/// Capacity in bytes for proposed groups. A single larger group is accepted.
const PROPOSED: usize = 64 << 20;
/// Capacity in bytes for forwarded updates. A single larger update is accepted. The bodies share memory with the
/// pending requests.
const FORWARDED: usize = 512 << 20;
/// Number of queued large messages at which no further outcome is accepted.
const LARGE: usize = 1024;
/// Time for which a large update is not sent again, unless it was answered. The machine repeats updates every few
/// seconds, even while the writer evaluates them.
const RESEND_AFTER: Duration = Duration::from_secs(30);
/// Each message counts as at least this many bytes.
const LEAST: usize = 128;
/// Number of large messages of each kind that are sent concurrently.
const AT_ONCE: usize = 8;
/// After this many bytes of small bodies, one piece of a large message is sent.
const SMALL_BYTES_PER_PIECE: usize = 256 << 10;
/// Approximate size of a write in bytes.
pub(super) const BATCH: usize = 64 << 10;

/// Reason why a message was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NotQueued {
    /// The queue is full.
    Full,
    /// The message has this many bytes, which exceeds the receiver's limit.
    TooLarge(usize),
}

pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    /// Notified when a message or a rejection is queued.
    pub filled: Notify,
    /// Size in bytes of the largest message that the receiver accepts.
    most: usize,
}

#[derive(Default)]
struct Waiting {
    control: VecDeque<Outgoing>,
    control_bytes: usize,
    /// Messages whose bodies fit into a frame.
    small: VecDeque<Outgoing>,
    /// Messages whose bodies do not fit into a frame, and of which nothing was sent yet.
    large: VecDeque<Outgoing>,
    proposed_bytes: usize,
    forwarded_bytes: usize,
    /// Larger messages that are partly sent, with their numbers. The next piece is of the first one.
    partly_sent: VecDeque<(u32, Outgoing)>,
    next: u32,
    /// Large updates that were sent over this connection and not answered yet, with the time of sending.
    sent: HashMap<RequestKey, Instant>,
    /// Numbers of the peer's large messages that this server rejected for lack of memory.
    refused: Vec<u32>,
    /// Bytes of small bodies sent since the last piece of a large message.
    since: usize,
}

fn size(message: &Outgoing) -> usize {
    message.left().max(LEAST)
}

fn forward(message: &Outgoing) -> Option<RequestKey> {
    match message.message() {
        Message::Forward(request, ..) => Some(request.key),
        _ => None,
    }
}

fn proposed(message: &Outgoing) -> Option<&Group> {
    match message.message() {
        Message::Proposed(group) => Some(group),
        _ => None,
    }
}

impl Queue {
    /// Creates an empty queue to a server that accepts messages of up to `most` bytes.
    pub fn new(most: usize) -> Self {
        Self {
            waiting: Mutex::default(),
            filled: Notify::new(),
            most,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        sync::lock(&self.waiting)
    }

    /// Adds a message, if the queue has capacity.
    pub fn push(&self, message: Message) -> Result<(), NotQueued> {
        let Some(message) = Outgoing::new(message) else {
            return Ok(());
        };
        if message.left() > self.most {
            return Err(NotQueued::TooLarge(message.left()));
        }
        let mut waiting = self.lock();
        match message.message() {
            Message::Proposed(_) => waiting.propose(message),
            Message::Forward(..) => waiting.forward(message)?,
            Message::Outcome(..) if message.left() > PIECE => {
                if waiting.large.len() >= LARGE {
                    return Err(NotQueued::Full);
                }
                waiting.add_large(message);
            }
            _ => waiting.add_control(message)?,
        }
        drop(waiting);
        self.filled.notify_one();
        Ok(())
    }

    /// Appends the next frames to `out`, approximately [`BATCH`] bytes.
    pub fn take(&self, out: &mut Vec<u8>) {
        let mut waiting = self.lock();
        for number in waiting.refused.drain(..) {
            let at = begin_frame(out, kind::STOP);
            out.extend_from_slice(&number.to_le_bytes());
            end_frame(out, at);
        }
        while out.len() < BATCH
            && let Some(message) = waiting.control.pop_front()
        {
            waiting.control_bytes -= size(&message);
            whole(message, out);
        }
        while out.len() < BATCH {
            let large = !waiting.partly_sent.is_empty() || !waiting.large.is_empty();
            let small = !large || waiting.since < SMALL_BYTES_PER_PIECE;
            if let Some(message) = small.then(|| waiting.small.pop_front()).flatten() {
                waiting.since += size(&message);
                waiting.taken(&message);
                whole(message, out);
            } else if large {
                waiting.since = 0;
                waiting.piece(out);
            } else {
                return;
            }
        }
    }

    /// Notifies the peer that its large message with this number was rejected for lack of memory.
    pub fn refuse(&self, number: u32) {
        let mut waiting = self.lock();
        // Further rejections are dropped; the peer's messages then reach the memory limit, and the connection is
        // closed.
        if waiting.refused.len() < LARGE {
            waiting.refused.push(number);
        }
        drop(waiting);
        self.filled.notify_one();
    }

    /// Stops sending the large message with this number, which the receiver has rejected.
    pub fn stop(&self, number: u32) {
        self.lock().partly_sent.retain(|(of, _)| *of != number);
    }

    /// Records that an update was answered, so that it may be sent again.
    pub fn answered(&self, message: &Message) {
        if let Message::Outcome(key, _) | Message::NotWriter(key, ..) = message {
            self.lock().sent.remove(key);
        }
    }
}

impl Waiting {
    fn add_control(&mut self, message: Outgoing) -> Result<(), NotQueued> {
        // A newer heartbeat or acknowledgement replaces a queued one.
        match message.message() {
            Message::Beat(_) => {
                let there = |m: &&mut Outgoing| matches!(m.message(), Message::Beat(_));
                if let Some(earlier) = self.control.iter_mut().find(there) {
                    *earlier = message;
                    return Ok(());
                }
            }
            Message::Acknowledged(number) => {
                for earlier in &mut self.control {
                    if let Message::Acknowledged(before) = earlier.message() {
                        if before < number {
                            *earlier = message;
                        }
                        return Ok(());
                    }
                }
            }
            _ => {}
        }
        if self.control_bytes + size(&message) > CONTROL {
            return Err(NotQueued::Full);
        }
        self.control_bytes += size(&message);
        self.control.push_back(message);
        Ok(())
    }

    /// Adds a proposed group. If there is no capacity, older groups are dropped, since receivers can read them from the
    /// log.
    fn propose(&mut self, message: Outgoing) {
        let size = size(&message);
        while self.proposed_bytes > 0 && self.proposed_bytes + size > PROPOSED {
            let all = [&mut self.large, &mut self.small];
            let Some((at, from)) = all.into_iter().find_map(|from| {
                let at = from.iter().position(|m| proposed(m).is_some())?;
                Some((at, from))
            }) else {
                break;
            };
            if let Some(dropped) = from.remove(at) {
                self.taken(&dropped);
            }
        }
        self.proposed_bytes += size;
        self.add(message);
    }

    /// Adds a forwarded update, unless it is being sent. A queued copy is replaced by the newer one.
    fn forward(&mut self, message: Outgoing) -> Result<(), NotQueued> {
        let key = forward(&message);
        let sent = key.and_then(|key| self.sent.get(&key));
        if sent.is_some_and(|at| at.elapsed() < RESEND_AFTER)
            || self
                .partly_sent
                .iter()
                .any(|(_, there)| forward(there) == key)
        {
            return Ok(());
        }
        let mut there = self.small.iter_mut().chain(&mut self.large);
        if let Some(earlier) = there.find(|there| forward(there) == key) {
            // Replaced only if the lengths are equal. A client that sends two bodies with one key gets the answer to
            // one of them.
            if earlier.left() == message.left() {
                *earlier = message;
            }
            return Ok(());
        }
        if self.forwarded_bytes > 0 && self.forwarded_bytes + size(&message) > FORWARDED {
            return Err(NotQueued::Full);
        }
        self.forwarded_bytes += size(&message);
        self.add(message);
        Ok(())
    }

    fn add(&mut self, message: Outgoing) {
        match message.left() <= PIECE {
            true => self.small.push_back(message),
            false => self.add_large(message),
        }
    }

    /// Adds a large message. Forwarded updates are queued after all other large messages.
    fn add_large(&mut self, message: Outgoing) {
        let at = match forward(&message) {
            Some(_) => None,
            None => self.large.iter().position(|m| forward(m).is_some()),
        };
        self.large.insert(at.unwrap_or(self.large.len()), message);
    }

    /// Updates the byte counts for a message that leaves the queue.
    fn taken(&mut self, message: &Outgoing) {
        if forward(message).is_some() {
            self.forwarded_bytes -= size(message);
        } else if proposed(message).is_some() {
            self.proposed_bytes -= size(message);
        }
    }

    /// Appends a piece of a large message to `out`, as a frame.
    fn piece(&mut self, out: &mut Vec<u8>) {
        for forwards in [false, true] {
            let kind = |m: &Outgoing| forward(m).is_some() == forwards;
            while self.partly_sent.iter().filter(|(_, m)| kind(m)).count() < AT_ONCE
                && let Some(at) = self.large.iter().position(kind)
                && let Some(message) = self.large.remove(at)
            {
                self.taken(&message);
                self.partly_sent.push_back((self.next, message));
                self.next = self.next.wrapping_add(1);
            }
        }
        let Some((number, mut message)) = self.partly_sent.pop_front() else {
            return;
        };
        let first = message.is_new();
        let at = begin_frame(out, if first { kind::FIRST } else { kind::MORE });
        out.extend_from_slice(&number.to_le_bytes());
        if first {
            out.extend_from_slice(&(message.left() as u32).to_le_bytes());
        }
        message.take(PIECE, out);
        end_frame(out, at);
        if message.left() > 0 {
            self.partly_sent.push_back((number, message));
        } else if let Some(key) = forward(&message) {
            if self.sent.len() >= LARGE {
                self.sent.retain(|_, at| at.elapsed() < RESEND_AFTER);
            }
            self.sent.insert(key, Instant::now());
        }
    }
}

/// Appends a message as a single frame.
fn whole(mut message: Outgoing, out: &mut Vec<u8>) {
    let at = out.len();
    // The first byte of a message is its kind, which becomes the frame's kind.
    out.extend_from_slice(&[0; 4]);
    message.take(FRAME, out);
    end_frame(out, at);
}
