//! The choice of the server that answers a request: this one, or a peer that holds the shard. Bases never change, so a
//! request may be sent again: to another holder if the first one fails, and to a second one if the first is slow.

use super::MAX_REQUEST;
use super::own::{Holding, Own};
use super::peer::{Peer, PendingReply};
use super::reads::RemoteShard;
use crate::shards::{Reply, SearchTurns, ShardRequest, wire};
use jindou_model::sync::{lock, read, write};
use jindou_model::{CancelToken, Error, Result};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

/// Time after which a request is sent to a second holder as well.
const SLOW: Duration = Duration::from_millis(200);
/// Longest wait for a holder of a shard to appear.
const HOLDER_WAIT: Duration = Duration::from_secs(2);
/// Interval at which a request that waits for a holder checks for one.
const LOOK: Duration = Duration::from_millis(5);

/// Numbers of messages to other servers with requests for a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Number of all messages.
    pub requests: u64,
    /// Number of messages that were sent to a second server because the first one was slow.
    pub hedged: u64,
    /// Number of messages that were sent to another server because the first one failed.
    pub failed_over: u64,
}

/// This server's shards, and its peers.
pub struct Routes {
    pub own: Own,
    peers: RwLock<Vec<Arc<Peer>>>,
    /// By shard: name of a peer that held it and is no longer in the list.
    gone: RwLock<BTreeMap<u32, String>>,
    /// By shard and base: time since which no connected server has been found that holds it.
    missing: RwLock<BTreeMap<(u32, u64), Instant>>,
    /// Numbers of messages by shard.
    asked: Mutex<BTreeMap<u32, RequestCounts>>,
    /// Increases with every choice of a holder, so that equally busy holders are chosen in turn.
    rotation: AtomicUsize,
}

/// The requests of a round that were sent to one peer.
struct Sent {
    peer: Arc<Peer>,
    /// Positions in the round of the requests that were sent to the peer; at least one.
    positions: Vec<usize>,
    waiting: PendingReply,
}

/// A round: requests that are answered together.
struct Round<'r> {
    base: u64,
    requests: &'r [(u32, ShardRequest)],
    cancel: &'r CancelToken,
    /// By shard: the server that the query must use, `None` for this one. Empty if any holder may answer.
    bound: &'r [Option<Arc<Peer>>],
    /// Peers that must not get a request (again), with the reason if there is one.
    avoided: Vec<(Arc<Peer>, Option<Error>)>,
}

impl Round<'_> {
    fn shard(&self, at: usize) -> u32 {
        self.requests.get(at).map_or(0, |r| r.0)
    }

    fn avoids(&self, peer: &Arc<Peer>) -> bool {
        self.avoided.iter().any(|(p, _)| Arc::ptr_eq(p, peer))
    }

    /// True if these requests must not be sent to another peer: a message to a part of a query may already have been
    /// executed.
    fn is_not_repeatable(&self, positions: &[usize]) -> bool {
        let mut all = positions.iter().filter_map(|&at| self.requests.get(at));
        all.any(|r| matches!(r.1, ShardRequest::Post(_)))
    }
}

impl Routes {
    pub fn new(own: Own) -> Self {
        Self {
            own,
            peers: RwLock::default(),
            gone: RwLock::default(),
            missing: RwLock::default(),
            asked: Mutex::default(),
            rotation: AtomicUsize::new(0),
        }
    }

    pub fn add(&self, peer: Arc<Peer>) {
        write(&self.peers).push(peer);
    }

    pub fn remove(&self, peer: &Arc<Peer>) {
        let had = peer.last_shards().into_iter();
        write(&self.gone).extend(had.map(|shard| (shard, peer.name().to_owned())));
        write(&self.peers).retain(|p| !Arc::ptr_eq(p, peer));
    }

    pub fn peers(&self) -> Vec<Arc<Peer>> {
        read(&self.peers).clone()
    }

    /// Access to a shard of a base by reading a peer's memory; `None` if no peer allows that.
    pub fn remote(&self, shard: u32, base: u64) -> Option<Arc<RemoteShard>> {
        read(&self.peers).iter().find_map(|p| p.remote(shard, base))
    }

    /// Numbers of messages for a shard so far.
    pub fn asked(&self, shard: u32) -> RequestCounts {
        lock(&self.asked).get(&shard).copied().unwrap_or_default()
    }

    fn count(&self, shard: u32, change: impl FnOnce(&mut RequestCounts)) {
        change(lock(&self.asked).entry(shard).or_default());
    }

    /// The newest base that is open here and of which each shard is held by some connected server; if there is none,
    /// the newest base that is open here.
    pub fn common_base(&self) -> u64 {
        let (numbers, peers) = (self.own.numbers(), self.peers());
        let is_common = |base: &&u64| {
            let shards = self.own.bases(**base).map_or(0, |bases| bases.len() as u32);
            let is_there = |shard| {
                let holds = |p: &Arc<Peer>| p.outstanding().is_some() && p.holds(shard, **base);
                self.own.holds(**base, shard) || peers.iter().any(holds)
            };
            (0..shards).all(is_there)
        };
        let common = numbers.iter().rev().find(is_common);
        common.or(numbers.last()).copied().unwrap_or(0)
    }

    /// Sends requests to holders of their shards, over the base with this number. Returns the replies in the order of
    /// the requests.
    ///
    /// # Errors
    /// As [`ShardClient::ask`](crate::shards::ShardClient::ask).
    pub fn ask(
        &self,
        base: u64,
        requests: &[(u32, ShardRequest)],
        cancel: &CancelToken,
    ) -> Result<Vec<Reply>> {
        self.ask_bound(base, requests, cancel, &[])
    }

    /// Like [`Self::ask`], but sends to the servers that the query must use.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn ask_bound(
        &self,
        base: u64,
        requests: &[(u32, ShardRequest)],
        cancel: &CancelToken,
        bound: &[Option<Arc<Peer>>],
    ) -> Result<Vec<Reply>> {
        let mut found: Vec<Option<Reply>> = Vec::new();
        found.resize_with(requests.len(), || None);
        let mut round = Round {
            base,
            requests,
            cancel,
            bound,
            avoided: Vec::new(),
        };
        let is_here = |at: &usize| match bound.get(round.shard(*at) as usize) {
            Some(peer) => peer.is_none(),
            None => self.own.holds(base, round.shard(*at)),
        };
        let (here, far): (Vec<usize>, Vec<usize>) = (0..requests.len()).partition(is_here);
        let mut sent = self.send(&round, &far, HOLDER_WAIT)?;
        let mut turns = SearchTurns::new(here.iter().map(|&at| &requests[at].1));
        for at in here {
            cancel.check()?;
            let (shard, request) = &requests[at];
            found[at] = Some(self.own.answer(base, *shard, &turns.next(request))?);
        }
        while let Some(one) = sent.pop() {
            let (peer, positions) = (Arc::clone(&one.peer), one.positions.clone());
            match self.receive(&mut round, one, &mut found) {
                Ok(()) => {}
                Err(e @ Error::Shard { .. }) if !round.is_not_repeatable(&positions) => {
                    let shard = positions.first().map_or(0, |&at| round.shard(at));
                    self.count(shard, |asked| asked.failed_over += 1);
                    round.avoided.push((peer, Some(e)));
                    sent.extend(self.send(&round, &positions, HOLDER_WAIT)?);
                }
                Err(e) => return Err(e),
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// The reply of this server or, if it has none, of a peer that has written the base; peers are asked one after
    /// another. Servers keep only the results of their last merge.
    pub fn ask_writers(
        &self,
        base: u64,
        request: &[(u32, ShardRequest)],
        cancel: &CancelToken,
    ) -> Option<Reply> {
        let (shard, own) = request.first()?;
        if let Ok(reply) = self.own.answer(base, *shard, own) {
            return Some(reply);
        }
        let all: Vec<&(u32, ShardRequest)> = request.iter().collect();
        let written = |h: &Holding| (h.shard, h.base) == (*shard, base);
        for peer in self.peers() {
            if !peer.holdings().is_some_and(|all| all.iter().any(written)) {
                continue;
            }
            let body = wire::message(base, &all);
            let sent = peer.send(*shard, body);
            let body = sent.and_then(|waiting| waiting.wait(*shard, cancel)).ok();
            let replies = body.and_then(|body| wire::replies(&body));
            if let Some(reply) = replies.and_then(|mut all| all.pop()) {
                return Some(reply);
            }
        }
        None
    }

    /// Sends the requests at these positions to holders of their shards, in one message per peer.
    fn send(
        &self,
        round: &Round<'_>,
        positions: &[usize],
        patience: Duration,
    ) -> Result<Vec<Sent>> {
        let mut groups: Vec<(Arc<Peer>, Vec<usize>)> = Vec::new();
        let mut last: Option<(u32, Arc<Peer>)> = None;
        for &at in positions {
            let shard = round.shard(at);
            // All requests for one shard are sent to the same peer.
            let peer = match &last {
                Some((of, peer)) if *of == shard => Arc::clone(peer),
                _ => self.holder(round, shard, patience)?,
            };
            last = Some((shard, Arc::clone(&peer)));
            match groups.iter_mut().find(|g| Arc::ptr_eq(&g.0, &peer)) {
                Some(group) => group.1.push(at),
                None => groups.push((peer, vec![at])),
            }
        }
        let one = |(peer, positions): (Arc<Peer>, Vec<usize>)| {
            let shard = positions.first().map_or(0, |&at| round.shard(at));
            let all = positions.iter().filter_map(|&at| round.requests.get(at));
            let body = wire::message(round.base, &all.collect::<Vec<_>>());
            if body.len() > MAX_REQUEST {
                let length = body.len();
                let message = format!(
                    "a request of {length} bytes is longer than the {MAX_REQUEST} that servers accept"
                );
                return Err(Error::shard(shard, message));
            }
            self.count(shard, |asked| asked.requests += 1);
            let waiting = peer.send(shard, body)?;
            Ok(Sent {
                peer,
                positions,
                waiting,
            })
        };
        groups.into_iter().map(one).collect()
    }

    /// A connected holder of a shard. Waits up to [`HOLDER_WAIT`] for one to appear.
    ///
    /// # Errors
    /// [`Error::Shard`] if no holder appears.
    pub fn holder_of(&self, base: u64, shard: u32, cancel: &CancelToken) -> Result<Arc<Peer>> {
        let round = Round {
            base,
            requests: &[],
            cancel,
            bound: &[],
            avoided: Vec::new(),
        };
        self.holder(&round, shard, HOLDER_WAIT)
    }

    /// The holder of a shard that has the fewest pending requests of this server. Waits up to `patience` for one to
    /// appear, counted from when a request first found none, so that later requests do not wait again.
    ///
    /// # Errors
    /// [`Error::Shard`] if no holder appears; the token's error.
    fn holder(&self, round: &Round<'_>, shard: u32, patience: Duration) -> Result<Arc<Peer>> {
        if let Some(Some(peer)) = round.bound.get(shard as usize) {
            return Ok(Arc::clone(peer));
        }
        let begun = Instant::now();
        loop {
            let peers = self.peers();
            let rotation = self.rotation.fetch_add(1, Ordering::Relaxed);
            let all = (0..peers.len()).map(|i| &peers[(i + rotation) % peers.len()]);
            let fit = all.filter(|p| !round.avoids(p) && p.holds(shard, round.base));
            let fit = fit.filter_map(|p| Some((p.outstanding()?, p)));
            if let Some((_, peer)) = fit.min_by_key(|(outstanding, _)| *outstanding) {
                self.mark_found(shard, round.base);
                return Ok(Arc::clone(peer));
            }
            round.cancel.check()?;
            // If a holder exists and is only avoided, the shard is not missing.
            let since = match round.avoided.is_empty() {
                true => self.missing_since(shard, round.base),
                false => begun,
            };
            if since.elapsed() >= patience {
                return Err(self.no_holder(round, shard));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Records that a connected server holds a shard of a base.
    fn mark_found(&self, shard: u32, base: u64) {
        if !read(&self.missing).is_empty() {
            write(&self.missing).remove(&(shard, base));
        }
    }

    #[cold]
    fn missing_since(&self, shard: u32, base: u64) -> Instant {
        let mut missing = write(&self.missing);
        // No new requests are made for bases that were released here.
        let oldest = self.own.numbers().first().copied().unwrap_or(0);
        missing.retain(|(_, of), _| *of >= oldest || *of == base);
        *missing.entry((shard, base)).or_insert_with(Instant::now)
    }

    /// True if this server or a connected one holds a later base of the shard, and no longer holds this one.
    fn is_released(&self, shard: u32, base: u64) -> bool {
        let is_later = |h: &Holding| h.is_open && h.shard == shard && h.base > base;
        let has_later = |p: &Arc<Peer>| p.holdings().is_some_and(|all| all.iter().any(is_later));
        let own = self.own.numbers();
        own.first().is_some_and(|oldest| *oldest > base)
            || (own.last().is_some_and(|newest| *newest > base)
                && self.peers().iter().any(has_later))
    }

    #[cold]
    fn no_holder(&self, round: &Round<'_>, shard: u32) -> Error {
        if self.is_released(shard, round.base) {
            let message = "the query began before the last merge, whose files are no longer kept (--base-patience)";
            return Error::shard(shard, message);
        }
        let failed = round.avoided.iter().rev().find_map(|(_, e)| e.as_ref());
        if let Some(Error::Shard { message, .. }) = failed {
            return Error::shard(shard, message);
        }
        let peers = self.peers();
        // If a holder is not connected, report the reason for that.
        let down = peers.iter().find_map(|p| p.why_down(shard));
        down.unwrap_or_else(|| Error::Shard {
            shard,
            message: match (read(&self.gone).get(&shard), peers.is_empty()) {
                (Some(name), _) => {
                    format!("no server that is connected holds it; server {name} did, and is gone")
                }
                (None, true) => "no other server is known that could hold it".into(),
                (None, false) => "no server that is connected holds it".into(),
            },
        })
    }

    /// Waits for a peer's replies. If they take longer than [`SLOW`], sends the requests to other holders as well.
    fn receive(
        &self,
        round: &mut Round<'_>,
        sent: Sent,
        found: &mut [Option<Reply>],
    ) -> Result<()> {
        let mut instead: Vec<Sent> = Vec::new();
        let may_repeat = round.bound.is_empty() && !round.is_not_repeatable(&sent.positions);
        if may_repeat && !sent.waiting.is_done_within(SLOW, round.cancel)? {
            round.avoided.push((Arc::clone(&sent.peer), None));
            // Without another holder, keep waiting for this one.
            instead = self
                .send(round, &sent.positions, Duration::ZERO)
                .unwrap_or_default();
            round.avoided.pop();
            if !instead.is_empty() {
                let shard = sent.positions.first().map_or(0, |&at| round.shard(at));
                self.count(shard, |asked| asked.hedged += 1);
            }
        }
        let others = || !instead.is_empty() && instead.iter().all(|s| s.waiting.is_done());
        sent.waiting.park_until_done_or(others, round.cancel)?;
        if !instead.is_empty() && (!sent.waiting.is_done() || sent.waiting.has_failed()) {
            for other in instead {
                self.store_replies(round, other, found)?;
            }
            return Ok(());
        }
        self.store_replies(round, sent, found)
    }

    /// Waits for a peer's replies and stores each at its position in the round.
    fn store_replies(
        &self,
        round: &Round<'_>,
        sent: Sent,
        found: &mut [Option<Reply>],
    ) -> Result<()> {
        let shard = sent.positions.first().map_or(0, |&at| round.shard(at));
        let body = sent.waiting.wait(shard, round.cancel)?;
        let replies = wire::replies(&body).filter(|r| r.len() == sent.positions.len());
        let replies = replies.ok_or_else(|| sent.peer.error(shard, "its answer cannot be read"))?;
        for (at, reply) in sent.positions.into_iter().zip(replies) {
            found[at] = Some(reply);
        }
        Ok(())
    }
}
