//! The answering side of a lane.

use super::super::frame::{self, FrameKind};
use super::super::listen::{failure, message_for};
use super::super::own::Own;
use super::super::{MAX_REQUEST, SILENCE};
use super::parts::{Assembly, LanePart};
use super::{IN_WORK, LaneEnd, secret};
use crate::transport::Peer;
use jindou_model::sync::lock;
use jindou_model::{Charge, Holder, MemoryBudget};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;

/// Most bytes of incompletely received requests.
const MAX_PARTIAL: usize = 2 * MAX_REQUEST;
/// Most incompletely received requests: parts may overtake one another, but not across this many requests.
const MAX_BEGUN: usize = 4;

/// The lane of a connection on which a peer sends requests.
pub struct RequestLane {
    own: Own,
    /// Channel for replies over TLS.
    out: Sender<frame::FramePart>,
    /// Runtime on which requests are answered.
    runtime: Handle,
    /// Number that precedes replies.
    theirs: u64,
    /// Budget that is charged for requests from their arrival until they are answered.
    memory: MemoryBudget,
    state: Mutex<AnswerState>,
}

#[derive(Default)]
struct AnswerState {
    /// Number of requests being answered.
    in_work: usize,
    /// Incomplete requests, the most recently begun one last.
    partial: VecDeque<Begun>,
    has_ended: bool,
}

/// A partly received request, charged as it grows. If memory is exhausted, its parts are counted to the end but not
/// stored.
struct Begun {
    number: u64,
    assembly: Assembly,
    charge: Charge,
    /// Set if memory is exhausted, with the reason.
    refused: Option<String>,
}

impl Begun {
    fn new(number: u64, memory: &MemoryBudget) -> Self {
        Self {
            number,
            assembly: Assembly::default(),
            charge: Charge::new(Holder::Rest, memory),
            refused: None,
        }
    }

    /// As [`Assembly::put`].
    fn put(&mut self, part: &LanePart<'_>) -> Result<Option<Vec<u8>>, &'static str> {
        if self.refused.is_none() {
            // A list doubles: for a moment the old and the new one exist together. Afterwards it is parsed into
            // requests.
            let length = self.assembly.bytes() + part.body.len();
            let room = 2 * length.next_power_of_two() as u64;
            if let Err(e) = self.charge.set(room) {
                self.assembly.throw_away();
                let _ = self.charge.set(0);
                self.refused = Some(e.to_string());
            }
        }
        self.assembly.put(part, MAX_REQUEST)
    }
}

/// A completely received request.
struct WholeRequest {
    /// Its bytes, or the reason why there was no memory for it.
    bytes: Result<Vec<u8>, String>,
    _charge: Charge,
}

impl AnswerState {
    /// Drops the parts of requests that the peer has given up: it sends one multi-part request at a time.
    fn forget_old(&mut self) {
        let held = |all: &VecDeque<Begun>| all.iter().map(|p| p.assembly.bytes()).sum::<usize>();
        while self.partial.len() > 1
            && (self.partial.len() > MAX_BEGUN || held(&self.partial) > MAX_PARTIAL)
        {
            self.partial.pop_front();
        }
    }
}

/// A lane in its end's table, until it is dropped.
pub struct AnsweringLane {
    end: Arc<LaneEnd>,
    /// Number that precedes requests.
    pub number: u64,
    lane: Arc<RequestLane>,
}

impl Drop for AnsweringLane {
    fn drop(&mut self) {
        lock(&self.end.tables.answering).remove(&self.number);
        self.lane.end();
    }
}

impl RequestLane {
    /// Opens a lane to a peer that expects its number before replies. Its requests are charged to `memory`.
    pub fn open(
        end: &Arc<LaneEnd>,
        own: &Own,
        out: &Sender<frame::FramePart>,
        theirs: u64,
        memory: &MemoryBudget,
    ) -> Option<AnsweringLane> {
        let number = secret()?;
        let lane = Arc::new(Self {
            own: own.clone(),
            out: out.clone(),
            runtime: Handle::current(),
            theirs,
            memory: memory.clone(),
            state: Mutex::default(),
        });
        lock(&end.tables.answering).insert(number, Arc::clone(&lane));
        Some(AnsweringLane {
            end: Arc::clone(end),
            number,
            lane,
        })
    }

    /// Accepts a part of a request, and starts answering the request once it is complete.
    ///
    /// # Errors
    /// For an invalid part, which ends the lane.
    pub(super) fn take(
        self: &Arc<Self>,
        end: &Arc<LaneEnd>,
        peer: &Arc<dyn Peer>,
        part: &LanePart<'_>,
    ) -> Result<(), &'static str> {
        let taken = self.whole(part);
        match taken {
            Ok(Some(request)) => {
                let (lane, end, peer) = (Arc::clone(self), Arc::clone(end), Arc::clone(peer));
                let number = part.number;
                let answering = move || lane.answer(&end, &*peer, number, request);
                self.runtime.spawn_blocking(answering);
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(what) => {
                if !self.end() {
                    return Err(what);
                }
                let out = self.out.clone();
                // The peer has to know that nothing more is accepted here.
                self.runtime.spawn(async move {
                    for part in frame::parts(FrameKind::Lane, 0, Vec::new()) {
                        let _ = out.send(part).await;
                    }
                });
                Err(what)
            }
        }
    }

    fn whole(&self, part: &LanePart<'_>) -> Result<Option<WholeRequest>, &'static str> {
        let mut state = lock(&self.state);
        if state.has_ended {
            return Err("the lane has ended");
        }
        if part.kind != FrameKind::Requests {
            return Err("a part that belongs to no request");
        }
        let known = state.partial.iter().position(|p| p.number == part.number);
        let at = known.unwrap_or_else(|| {
            let begun = Begun::new(part.number, &self.memory);
            state.partial.push_back(begun);
            state.partial.len() - 1
        });
        let whole = match state.partial.get_mut(at) {
            Some(begun) => begun.put(part)?,
            None => None,
        };
        let Some(bytes) = whole else {
            state.forget_old();
            return Ok(None);
        };
        let Some(begun) = state.partial.remove(at) else {
            return Ok(None);
        };
        if state.in_work == IN_WORK {
            return Err("more requests than allowed at a time");
        }
        state.in_work += 1;
        Ok(Some(WholeRequest {
            bytes: begun.refused.map_or(Ok(bytes), Err),
            _charge: begun.charge,
        }))
    }

    fn answer(&self, end: &LaneEnd, peer: &dyn Peer, number: u64, request: WholeRequest) {
        let (kind, body) = match &request.bytes {
            Ok(bytes) => message_for(&self.own, bytes),
            Err(why) => (FrameKind::Failure, failure(0, why)),
        };
        drop(request);
        let has_ended = {
            // This is done before the peer can have the reply and send the next request.
            let mut state = lock(&self.state);
            state.in_work -= 1;
            state.has_ended
        };
        let to = (self.theirs, number, kind);
        if !has_ended && end.send(peer, to, &body, || SILENCE).is_ok() {
            return;
        }
        for part in frame::parts(kind, number, body) {
            if self.out.blocking_send(part).is_err() {
                return;
            }
        }
    }

    /// Stops accepting parts; false if that was so before.
    fn end(&self) -> bool {
        let mut state = lock(&self.state);
        state.partial.clear();
        !std::mem::replace(&mut state.has_ended, true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::{PART, parts, read, write};
    use super::*;

    /// The parts of a request.
    fn written(number: u64, message: &[u8]) -> Vec<Vec<u8>> {
        let all = parts(message);
        let count = all.len() as u32;
        all.map(|(at, body)| {
            let mut out = Vec::new();
            write(1, number, FrameKind::Requests, (at, count), body, &mut out);
            out
        })
        .collect()
    }

    #[test]
    fn parts_of_a_request_are_charged_until_it_is_answered() {
        let memory = MemoryBudget::new(1 << 30);
        let message = vec![7; 5 * PART + 1];
        let all = written(8, &message);
        let mut begun = Begun::new(8, &memory);
        for (i, bytes) in all.iter().enumerate() {
            let whole = begun.put(&read(bytes).unwrap()).unwrap();
            let came = (message.len()).min((i + 1) * PART) as u64;
            assert!(memory.used() >= 2 * came, "{} of {came}", memory.used());
            assert!(memory.used() <= 4 * came);
            assert_eq!(whole.is_some(), i + 1 == all.len());
        }
        drop(begun);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn a_request_that_there_is_no_room_for_is_not_kept() {
        let memory = MemoryBudget::new(4 * PART as u64);
        let message = vec![7; 5 * PART + 1];
        let all = written(8, &message);
        let mut begun = Begun::new(8, &memory);
        for bytes in &all {
            let whole = begun.put(&read(bytes).unwrap()).unwrap();
            assert!(whole.is_none_or(|w| w.is_empty()));
        }
        assert!(begun.refused.is_some_and(|why| why.contains("memory")));
        assert_eq!(begun.assembly.bytes(), 0);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn requests_that_are_given_up_give_their_memory_back() {
        let memory = MemoryBudget::new(1 << 30);
        let mut state = AnswerState::default();
        let message = vec![7; 3 * PART];
        for number in 0..20 {
            let mut begun = Begun::new(number, &memory);
            begun
                .put(&read(&written(number, &message)[0]).unwrap())
                .unwrap();
            state.partial.push_back(begun);
            state.forget_old();
        }
        assert_eq!(state.partial.len(), MAX_BEGUN);
        assert_eq!(memory.used(), (MAX_BEGUN * 2 * PART) as u64);
    }
}
