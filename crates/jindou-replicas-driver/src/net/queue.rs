//! Messages that wait for a connection. Beats, what is committed, heard and done go first; then bodies that fit into a
//! frame; then pieces of larger ones in turn.

use super::wire::{FRAME, Outgoing, PIECE, begin_frame, end_frame, kind};
use jindou_replicas::{Group, Message, RequestKey};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Bytes of messages without bodies, and of outcomes, that wait at most.
const CONTROL: usize = 64 << 20;
/// Bytes of proposed groups that wait at most, unless one is larger.
const PROPOSED: usize = 64 << 20;
/// Bytes of forwarded updates that wait at most, unless one is larger. They are shared with those who asked.
const FORWARDED: usize = 512 << 20;
/// Large messages of which one may be an outcome that is added, at most.
const LARGE: usize = 1024;
/// Time for which a large update that was sent is not sent again, unless it was answered: the machine repeats updates every
/// few seconds, also while the writer evaluates them.
const SENT: Duration = Duration::from_secs(30);
/// Bytes that a message counts for at least.
const LEAST: usize = 128;
/// Large messages of each kind that are on their way at once.
const AT_ONCE: usize = 8;
/// Bytes of bodies after which a piece of a larger one goes first.
const FAIR: usize = 256 << 10;
/// Bytes that are written at once, about.
pub(super) const BATCH: usize = 64 << 10;

/// Reason why a message is not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lost {
    /// Too much waits already.
    Full,
    /// The receiver takes less. The message has this number of bytes.
    TooLarge(usize),
}

pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    /// Told when there is something to send.
    pub filled: Notify,
    /// Most bytes of a message that the receiver takes.
    most: usize,
}

#[derive(Default)]
struct Waiting {
    control: VecDeque<Outgoing>,
    control_bytes: usize,
    /// Bodies that fit into a frame.
    small: VecDeque<Outgoing>,
    /// Larger ones, before their first piece.
    large: VecDeque<Outgoing>,
    proposed_bytes: usize,
    forwarded_bytes: usize,
    /// Larger ones on their way, with their numbers; the next piece is of the first.
    going: VecDeque<(u32, Outgoing)>,
    next: u32,
    /// Large updates that were sent over this connection and not answered, and when.
    sent: HashMap<RequestKey, Instant>,
    /// Numbers of the other side's that there is no room for.
    refused: Vec<u32>,
    /// Bytes of small bodies since the last piece.
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
    /// An empty queue to a server that takes messages of this size at most.
    pub fn new(most: usize) -> Self {
        Self {
            waiting: Mutex::default(),
            filled: Notify::new(),
            most,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a message, if there is room.
    pub fn push(&self, message: Message) -> Result<(), Lost> {
        let Some(message) = Outgoing::new(message) else {
            return Ok(());
        };
        if message.left() > self.most {
            return Err(Lost::TooLarge(message.left()));
        }
        let mut waiting = self.lock();
        match message.message() {
            Message::Proposed(_) => waiting.propose(message),
            Message::Forward(..) => waiting.forward(message)?,
            Message::Outcome(..) if message.left() > PIECE => {
                if waiting.large.len() >= LARGE {
                    return Err(Lost::Full);
                }
                waiting.add_large(message);
            }
            _ => waiting.add_control(message)?,
        }
        drop(waiting);
        self.filled.notify_one();
        Ok(())
    }

    /// Adds frames of what is next, some tens of KiB.
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
            let large = !waiting.going.is_empty() || !waiting.large.is_empty();
            let small = !large || waiting.since < FAIR;
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

    /// Tells the other side that there is no room for its large message of this number.
    pub fn refuse(&self, number: u32) {
        let mut waiting = self.lock();
        // Its connection has an end of its own if this is not enough.
        if waiting.refused.len() < LARGE {
            waiting.refused.push(number);
        }
        drop(waiting);
        self.filled.notify_one();
    }

    /// Drops the large message of this number, for which the receiver has no room.
    pub fn stop(&self, number: u32) {
        self.lock().going.retain(|(of, _)| *of != number);
    }

    /// Notes an answer to an update.
    pub fn answered(&self, message: &Message) {
        if let Message::Outcome(key, _) | Message::NotHere(key, ..) = message {
            self.lock().sent.remove(key);
        }
    }
}

impl Waiting {
    fn add_control(&mut self, message: Outgoing) -> Result<(), Lost> {
        // Of beats and of numbers heard, the newest says all.
        match message.message() {
            Message::Beat(_) => {
                let there = |m: &&mut Outgoing| matches!(m.message(), Message::Beat(_));
                if let Some(earlier) = self.control.iter_mut().find(there) {
                    *earlier = message;
                    return Ok(());
                }
            }
            Message::Heard(number) => {
                for earlier in &mut self.control {
                    if let Message::Heard(before) = earlier.message() {
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
            return Err(Lost::Full);
        }
        self.control_bytes += size(&message);
        self.control.push_back(message);
        Ok(())
    }

    /// Adds a group. Earlier ones go to make room: the log has them.
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

    /// Adds an update, once: one that waits is replaced by the same with a later time, and one that is on its way goes on.
    fn forward(&mut self, message: Outgoing) -> Result<(), Lost> {
        let key = forward(&message);
        let sent = key.and_then(|key| self.sent.get(&key));
        if sent.is_some_and(|at| at.elapsed() < SENT)
            || self.going.iter().any(|(_, there)| forward(there) == key)
        {
            return Ok(());
        }
        let mut there = self.small.iter_mut().chain(&mut self.large);
        if let Some(earlier) = there.find(|there| forward(there) == key) {
            // A client that gives two bodies one key gets the answer to either.
            if earlier.left() == message.left() {
                *earlier = message;
            }
            return Ok(());
        }
        if self.forwarded_bytes > 0 && self.forwarded_bytes + size(&message) > FORWARDED {
            return Err(Lost::Full);
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

    /// Adds a large message; forwarded updates are behind all others.
    fn add_large(&mut self, message: Outgoing) {
        let at = match forward(&message) {
            Some(_) => None,
            None => self.large.iter().position(|m| forward(m).is_some()),
        };
        self.large.insert(at.unwrap_or(self.large.len()), message);
    }

    /// Counts a body that waits no longer.
    fn taken(&mut self, message: &Outgoing) {
        if forward(message).is_some() {
            self.forwarded_bytes -= size(message);
        } else if proposed(message).is_some() {
            self.proposed_bytes -= size(message);
        }
    }

    /// Adds a piece of a large message.
    fn piece(&mut self, out: &mut Vec<u8>) {
        for forwards in [false, true] {
            let kind = |m: &Outgoing| forward(m).is_some() == forwards;
            while self.going.iter().filter(|(_, m)| kind(m)).count() < AT_ONCE
                && let Some(at) = self.large.iter().position(kind)
                && let Some(message) = self.large.remove(at)
            {
                self.taken(&message);
                self.going.push_back((self.next, message));
                self.next = self.next.wrapping_add(1);
            }
        }
        let Some((number, mut message)) = self.going.pop_front() else {
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
            self.going.push_back((number, message));
        } else if let Some(key) = forward(&message) {
            if self.sent.len() >= LARGE {
                self.sent.retain(|_, at| at.elapsed() < SENT);
            }
            self.sent.insert(key, Instant::now());
        }
    }
}

/// Adds the frame of a message that fits into one.
fn whole(mut message: Outgoing, out: &mut Vec<u8>) {
    let at = out.len();
    // The message's kind is its first byte, and the frame's.
    out.extend_from_slice(&[0; 4]);
    message.take(FRAME, out);
    end_frame(out, at);
}
