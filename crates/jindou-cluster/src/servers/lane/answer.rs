//! The answering side of a lane.

use super::super::frame::{self, Kind};
use super::super::listen::{Own, message_for};
use super::super::{MAX_REQUEST, SILENCE};
use super::parts::{Assembly, Part};
use super::{End, IN_WORK, secret};
use crate::transport::Peer;
use jindou_model::sync::lock;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;

/// Bytes of requests of which only parts came.
const MAX_PARTIAL: usize = 2 * MAX_REQUEST;
/// Requests of which only parts came: parts may overtake one another, but not those of this many requests.
const MAX_BEGUN: usize = 4;

/// The lane of a connection on which a peer asks.
pub struct Answering {
    own: Own,
    /// The way over TLS.
    out: Sender<frame::Part>,
    /// Where requests are answered.
    runtime: Handle,
    /// Stands before replies.
    theirs: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Requests that are being answered.
    in_work: usize,
    /// The one that was begun last comes last.
    partial: VecDeque<(u64, Assembly)>,
    has_ended: bool,
}

impl State {
    /// Forgets parts of requests that the peer has given up: it sends one request in parts at a time.
    fn forget_old(&mut self) {
        let held = |all: &VecDeque<(u64, Assembly)>| all.iter().map(|p| p.1.bytes()).sum::<usize>();
        while self.partial.len() > 1
            && (self.partial.len() > MAX_BEGUN || held(&self.partial) > MAX_PARTIAL)
        {
            self.partial.pop_front();
        }
    }
}

/// A lane in its end's table, until it is dropped.
pub struct Open {
    end: Arc<End>,
    /// Stands before requests.
    pub number: u64,
    lane: Arc<Answering>,
}

impl Drop for Open {
    fn drop(&mut self) {
        lock(&self.end.tables.answering).remove(&self.number);
        self.lane.end();
    }
}

impl Answering {
    /// Opens a lane to a peer that reads replies behind a number.
    pub fn open(end: &Arc<End>, own: &Own, out: &Sender<frame::Part>, theirs: u64) -> Option<Open> {
        let number = secret()?;
        let lane = Arc::new(Self {
            own: own.clone(),
            out: out.clone(),
            runtime: Handle::current(),
            theirs,
            state: Mutex::default(),
        });
        lock(&end.tables.answering).insert(number, Arc::clone(&lane));
        Some(Open {
            end: Arc::clone(end),
            number,
            lane,
        })
    }

    /// Takes a part of a request, and has the request answered once it is whole.
    ///
    /// # Errors
    /// For one that is none, which ends the lane.
    pub(super) fn take(
        self: &Arc<Self>,
        end: &Arc<End>,
        peer: &Arc<dyn Peer>,
        part: &Part<'_>,
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
                // The peer has to know that nothing more is taken here.
                self.runtime.spawn(async move {
                    for part in frame::parts(Kind::Lane, 0, Vec::new()) {
                        let _ = out.send(part).await;
                    }
                });
                Err(what)
            }
        }
    }

    fn whole(&self, part: &Part<'_>) -> Result<Option<Vec<u8>>, &'static str> {
        let mut state = lock(&self.state);
        if state.has_ended {
            return Err("the lane has ended");
        }
        if part.kind != Kind::Requests {
            return Err("a part that belongs to no request");
        }
        let known = state.partial.iter().position(|p| p.0 == part.number);
        let at = known.unwrap_or_else(|| {
            state.partial.push_back((part.number, Assembly::default()));
            state.partial.len() - 1
        });
        let whole = match state.partial.get_mut(at) {
            Some((_, assembly)) => assembly.put(part, MAX_REQUEST)?,
            None => None,
        };
        let Some(request) = whole else {
            state.forget_old();
            return Ok(None);
        };
        state.partial.remove(at);
        if state.in_work == IN_WORK {
            return Err("more requests than allowed at a time");
        }
        state.in_work += 1;
        Ok(Some(request))
    }

    fn answer(&self, end: &End, peer: &dyn Peer, number: u64, request: Vec<u8>) {
        let (kind, body) = message_for(&self.own, &request);
        drop(request);
        let has_ended = {
            // Before the peer can have the reply and send the next request.
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

    /// Takes nothing any more; false if that was so before.
    fn end(&self) -> bool {
        let mut state = lock(&self.state);
        state.partial.clear();
        !std::mem::replace(&mut state.has_ended, true)
    }
}
