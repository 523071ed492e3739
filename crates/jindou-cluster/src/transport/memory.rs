//! The transport in one process, for tests: seeded delays, losses, reorderings and crashes.
//!
//! Time is virtual. An operation runs to its end inside the caller's call and advances the clock by its duration, so
//! that a test with second-long deadlines takes microseconds, and one thread with one seed sees the same events each
//! time. One-way messages wait in a queue and are delivered when the clock passes their arrival, which reorders them as
//! their delays differ.

use super::{
    ByteRange, Epoch, Handler, Memory, Message, Moment, Peer, RegionDescriptor, RemoteRegion,
    Result, Transport, TransportError, check_read,
};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The network's faults and delays.
#[derive(Clone, Copy, Debug)]
pub struct NetworkFaults {
    /// Shortest delay in one direction.
    pub delay_min: Duration,
    /// Longest delay in one direction.
    pub delay_max: Duration,
    /// Number of packets lost in one direction out of 1,000.
    pub drop_permille: u32,
    /// Time after a crash until connected peers learn of it; `None` means never (a silent partition).
    pub notice: Option<Duration>,
}

impl Default for NetworkFaults {
    fn default() -> Self {
        Self {
            delay_min: Duration::from_micros(5),
            delay_max: Duration::from_micros(5),
            drop_permille: 0,
            notice: Some(Duration::from_millis(5)),
        }
    }
}

/// The network, and all ends that are connected to it.
#[derive(Clone)]
pub struct Network {
    state: Arc<Mutex<MemoryState>>,
}

struct MemoryState {
    now: Duration,
    random: u64,
    faults: NetworkFaults,
    nodes: Vec<MemoryNode>,
    cuts: Vec<(usize, usize)>,
    waiting: BinaryHeap<Reverse<Parcel>>,
    sequence: u64,
    trace: Vec<String>,
}

struct MemoryNode {
    name: String,
    epoch: Epoch,
    regions: FxHashMap<u64, (Epoch, Arc<dyn Memory>)>,
    next_region: u64,
    handlers: FxHashMap<u16, Arc<dyn Handler>>,
    crashed: Option<Duration>,
    stopped: bool,
    closed: bool,
}

/// A one-way message in transit; ordered by arrival.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Parcel {
    arrival: Duration,
    sequence: u64,
    from: usize,
    to: usize,
    kind: u16,
    epoch: Epoch,
    payload: Vec<u8>,
}

impl Network {
    /// A network whose faults follow from `seed`.
    #[must_use]
    pub fn new(seed: u64, faults: NetworkFaults) -> Self {
        Self {
            state: Arc::new(Mutex::new(MemoryState {
                now: Duration::ZERO,
                random: seed,
                faults,
                nodes: Vec::new(),
                cuts: Vec::new(),
                waiting: BinaryHeap::new(),
                sequence: 0,
                trace: Vec::new(),
            })),
        }
    }

    /// A new end; `name` is its address.
    #[must_use]
    pub fn node(&self, name: &str) -> Arc<dyn Transport> {
        let mut s = self.lock();
        s.nodes.push(MemoryNode {
            name: name.to_owned(),
            epoch: Epoch::default(),
            regions: FxHashMap::default(),
            next_region: 1,
            handlers: FxHashMap::default(),
            crashed: None,
            stopped: false,
            closed: false,
        });
        let node = s.nodes.len() - 1;
        Arc::new(NodeHandle {
            network: self.clone(),
            node,
        })
    }

    /// Kills the end: it no longer answers anything.
    pub fn crash(&self, name: &str) {
        let mut s = self.lock();
        let now = s.now;
        s.each(name, |n| n.crashed = Some(now));
    }

    /// Stops an endpoint, or lets it continue. A stopped endpoint does not answer, and its peers are not notified.
    pub fn stop(&self, name: &str, stopped: bool) {
        self.lock().each(name, |n| n.stopped = stopped);
    }

    /// Cuts the connection between two ends, or restores it.
    pub fn cut(&self, a: &str, b: &str, cut: bool) {
        let mut s = self.lock();
        let (Some(a), Some(b)) = (s.find(a), s.find(b)) else {
            return;
        };
        s.cuts.retain(|&c| c != (a, b) && c != (b, a));
        if cut {
            s.cuts.push((a, b));
        }
    }

    /// Changes the faults from now on.
    pub fn set_faults(&self, faults: NetworkFaults) {
        self.lock().faults = faults;
    }

    /// Lets time pass, delivering messages that arrive meanwhile.
    pub fn run(&self, wait: Duration) {
        let until = self.lock().now + wait;
        self.run_until(until);
    }

    /// The events so far, one per line: equal for equal seeds and equal calls.
    #[must_use]
    pub fn trace(&self) -> Vec<String> {
        self.lock().trace.clone()
    }

    fn lock(&self) -> MutexGuard<'_, MemoryState> {
        // A handler's panic in one test thread must not hide the first failure behind a second one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_until(&self, until: Duration) {
        loop {
            let mut s = self.lock();
            if s.waiting.peek().is_none_or(|p| p.0.arrival > until) {
                s.now = s.now.max(until);
                return;
            }
            let Some(Reverse(p)) = s.waiting.pop() else {
                return;
            };
            s.now = s.now.max(p.arrival);
            let reachable = s.reachable(p.from, p.to);
            let Some(node) = s
                .nodes
                .get(p.to)
                .filter(|n| reachable && n.epoch == p.epoch)
            else {
                s.note(p.from, p.to, "lost");
                continue;
            };
            let handler = node.handlers.get(&p.kind).cloned();
            let from = s
                .nodes
                .get(p.from)
                .map_or(String::new(), |n| n.name.clone());
            s.note(p.from, p.to, "delivered");
            drop(s);
            if let Some(h) = handler {
                let message = Message {
                    kind: p.kind,
                    epoch: p.epoch,
                    from: &from,
                    peer: None,
                    payload: &p.payload,
                };
                let _ = h.handle(&message, &mut Vec::new());
            }
        }
    }
}

impl MemoryState {
    fn find(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|n| n.name == name)
    }

    fn each(&mut self, name: &str, f: impl Fn(&mut MemoryNode)) {
        self.nodes.iter_mut().filter(|n| n.name == name).for_each(f);
    }

    /// SplitMix64.
    fn draw(&mut self) -> u64 {
        jindou_model::random::splitmix64(&mut self.random)
    }

    /// The time of one packet in one direction, or `None` if it is lost.
    fn flight(&mut self) -> Option<Duration> {
        let f = self.faults;
        let span = f.delay_max.saturating_sub(f.delay_min).as_nanos() as u64;
        let delay = f.delay_min + Duration::from_nanos(self.draw() % (span + 1));
        let lost = self.draw() % 1000 < u64::from(f.drop_permille);
        (!lost).then_some(delay)
    }

    fn reachable(&self, a: usize, b: usize) -> bool {
        let up = |i: usize| {
            self.nodes.get(i).is_some_and(|n| {
                n.crashed.is_none_or(|at| at > self.now) && !n.stopped && !n.closed
            })
        };
        up(a) && up(b) && !self.cuts.contains(&(a, b)) && !self.cuts.contains(&(b, a))
    }

    fn note(&mut self, from: usize, to: usize, what: &str) {
        let name = |i: usize| self.nodes.get(i).map_or("?", |n| &n.name);
        let line = format!("{:?} {}->{} {what}", self.now, name(from), name(to));
        self.trace.push(line);
    }
}

/// One node's handle.
struct NodeHandle {
    network: Network,
    node: usize,
}

/// A node as seen by another one.
struct NodeLink {
    network: Network,
    from: usize,
    to: usize,
    name: String,
    attached: Mutex<Vec<u64>>,
    closed: Mutex<bool>,
}

impl NodeHandle {
    fn with<R>(&self, f: impl FnOnce(&mut MemoryNode) -> Result<R>) -> Result<R> {
        match self.network.lock().nodes.get_mut(self.node) {
            Some(n) if !n.closed => f(n),
            _ => Err(TransportError::Closed),
        }
    }
}

impl Transport for NodeHandle {
    fn address(&self) -> String {
        let s = self.network.lock();
        s.nodes
            .get(self.node)
            .map_or(String::new(), |n| n.name.clone())
    }

    fn now(&self) -> Moment {
        Moment(self.network.lock().now)
    }

    fn epoch(&self) -> Epoch {
        let s = self.network.lock();
        s.nodes.get(self.node).map_or(Epoch::default(), |n| n.epoch)
    }

    fn advance(&self, epoch: Epoch) -> Result<()> {
        self.with(|n| {
            if epoch < n.epoch {
                return Err(TransportError::StaleEpoch {
                    held: epoch,
                    current: n.epoch,
                });
            }
            n.epoch = epoch;
            Ok(())
        })
    }

    fn register(&self, memory: Arc<dyn Memory>) -> Result<RegionDescriptor> {
        self.with(|n| {
            let region = n.next_region;
            n.next_region += 1;
            let len = memory.bytes().len() as u64;
            n.regions.insert(region, (n.epoch, memory));
            Ok(RegionDescriptor {
                region,
                epoch: n.epoch,
                base: 0,
                len,
                key: Vec::new(),
            })
        })
    }

    fn release(&self, region: u64) -> Result<()> {
        self.with(|n| match n.regions.remove(&region) {
            Some(_) => Ok(()),
            None => Err(TransportError::Refused(format!("no region {region}"))),
        })
    }

    fn handle(&self, kind: u16, handler: Arc<dyn Handler>) -> Result<()> {
        self.with(|n| match n.handlers.entry(kind) {
            std::collections::hash_map::Entry::Occupied(_) => Err(TransportError::Refused(
                format!("messages of kind {kind} already have a handler"),
            )),
            std::collections::hash_map::Entry::Vacant(slot) => {
                slot.insert(handler);
                Ok(())
            }
        })
    }

    fn connect(&self, address: &str, deadline: Moment) -> Result<Arc<dyn Peer>> {
        self.with(|_| Ok(()))?;
        let mut s = self.network.lock();
        let start = s.now;
        let to = s.find(address);
        match to.filter(|&to| s.reachable(self.node, to)) {
            Some(to) => Ok(Arc::new(NodeLink {
                network: self.network.clone(),
                from: self.node,
                to,
                name: address.to_owned(),
                attached: Mutex::default(),
                closed: Mutex::new(false),
            })),
            None => {
                s.now = s.now.max(deadline.0);
                Err(TransportError::Deadline {
                    peer: address.to_owned(),
                    waited: s.now.saturating_sub(start),
                })
            }
        }
    }

    fn close(&self) {
        let _ = self.with(|n| {
            n.closed = true;
            n.regions.clear();
            n.handlers.clear();
            Ok(())
        });
    }
}

impl NodeLink {
    fn open(&self, s: &MemoryState) -> Result<()> {
        let gone = *self.closed.lock().unwrap_or_else(PoisonError::into_inner)
            || s.nodes.get(self.from).is_none_or(|n| n.closed);
        if gone {
            return Err(TransportError::Closed);
        }
        match self.dead(s) {
            Some(reason) => Err(TransportError::PeerDead {
                peer: self.name.clone(),
                reason,
            }),
            None => Ok(()),
        }
    }

    fn dead(&self, s: &MemoryState) -> Option<String> {
        let node = s.nodes.get(self.to)?;
        let known = node
            .crashed
            .zip(s.faults.notice)
            .is_some_and(|(at, n)| s.now >= at + n);
        (known || node.closed).then(|| "its connection broke".to_owned())
    }

    /// Simulates a round trip with `work` at the far end: advances the clock to the answer's arrival, or to the
    /// deadline.
    fn round_trip<R>(
        &self,
        deadline: Moment,
        what: &str,
        work: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let (start, there, back) = {
            let mut s = self.network.lock();
            self.open(&s)?;
            (s.now, s.flight(), s.flight())
        };
        let deadline = deadline.0;
        if let Some(arrival) = there.map(|d| start + d).filter(|&a| a <= deadline) {
            self.network.run_until(arrival);
            let reached = {
                let mut s = self.network.lock();
                let reached = s.reachable(self.from, self.to);
                s.note(
                    self.from,
                    self.to,
                    if reached { what } else { "unreachable" },
                );
                reached
            };
            if reached {
                let result = work();
                if let Some(end) = back.map(|d| arrival + d).filter(|&e| e <= deadline) {
                    self.network.run_until(end);
                    // An answer in transit still arrives after its sender has died.
                    return result;
                }
            }
        }
        let crash = {
            let s = self.network.lock();
            let at = s.nodes.get(self.to).and_then(|n| n.crashed);
            at.zip(s.faults.notice).map(|(at, n)| (at + n).max(s.now))
        };
        if let Some(noticed) = crash.filter(|&c| c < deadline) {
            self.network.run_until(noticed);
            return self
                .open(&self.network.lock())
                .and(Err(TransportError::Closed));
        }
        self.network.run_until(deadline);
        let mut s = self.network.lock();
        s.note(self.from, self.to, "deadline");
        Err(TransportError::Deadline {
            peer: self.name.clone(),
            waited: s.now.saturating_sub(start),
        })
    }
}

impl Peer for NodeLink {
    fn name(&self) -> &str {
        &self.name
    }

    fn epoch(&self) -> Epoch {
        let s = self.network.lock();
        s.nodes.get(self.to).map_or(Epoch::default(), |n| n.epoch)
    }

    fn failure(&self) -> Option<String> {
        self.dead(&self.network.lock())
    }

    fn attach(&self, descriptor: &RegionDescriptor) -> Result<RemoteRegion> {
        let mut attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        attached.push(descriptor.region);
        Ok(RemoteRegion {
            slot: attached.len() as u32 - 1,
            epoch: descriptor.epoch,
            len: descriptor.len,
        })
    }

    fn read_many(
        &self,
        region: RemoteRegion,
        ranges: &[ByteRange],
        into: &mut [u8],
        deadline: Moment,
    ) -> Result<()> {
        self.open(&self.network.lock())?;
        check_read(self, region, ranges, into)?;
        let number = {
            let attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
            attached.get(region.slot as usize).copied()
        };
        let number = number
            .ok_or_else(|| TransportError::Refused("the region belongs to another peer".into()))?;
        let data = self.round_trip(deadline, "read", || {
            let memory = {
                let s = self.network.lock();
                s.nodes
                    .get(self.to)
                    .and_then(|n| n.regions.get(&number).cloned())
            };
            let (_, memory) =
                memory.ok_or_else(|| TransportError::Refused("the region was released".into()))?;
            let mut data = Vec::with_capacity(into.len());
            for r in ranges {
                let at = r.offset as usize;
                let part = memory.bytes().get(at..at + r.len as usize);
                data.extend_from_slice(part.ok_or_else(|| {
                    TransportError::Refused("the region is shorter than its descriptor".into())
                })?);
            }
            Ok(data)
        })?;
        into.copy_from_slice(&data);
        Ok(())
    }

    fn call(
        &self,
        kind: u16,
        epoch: Epoch,
        payload: &[u8],
        reply: &mut Vec<u8>,
        deadline: Moment,
    ) -> Result<()> {
        let answer = self.round_trip(deadline, "call", || {
            let (current, handler, from) = {
                let s = self.network.lock();
                let node = s.nodes.get(self.to).ok_or(TransportError::Closed)?;
                let from = s
                    .nodes
                    .get(self.from)
                    .map_or(String::new(), |n| n.name.clone());
                (node.epoch, node.handlers.get(&kind).cloned(), from)
            };
            if current != epoch {
                return Err(TransportError::StaleEpoch {
                    held: epoch,
                    current,
                });
            }
            let handler = handler.ok_or_else(|| {
                TransportError::Refused(format!("no handler for messages of kind {kind}"))
            })?;
            let message = Message {
                kind,
                epoch,
                from: &from,
                peer: None,
                payload,
            };
            let mut answer = Vec::new();
            handler
                .handle(&message, &mut answer)
                .map_err(TransportError::Refused)?;
            Ok(answer)
        })?;
        reply.extend_from_slice(&answer);
        Ok(())
    }

    fn send(&self, kind: u16, epoch: Epoch, payload: &[u8], _deadline: Moment) -> Result<()> {
        let mut s = self.network.lock();
        self.open(&s)?;
        let Some(delay) = s.flight() else {
            s.note(self.from, self.to, "lost");
            return Ok(());
        };
        s.sequence += 1;
        let parcel = Parcel {
            arrival: s.now + delay,
            sequence: s.sequence,
            from: self.from,
            to: self.to,
            kind,
            epoch,
            payload: payload.to_vec(),
        };
        s.waiting.push(Reverse(parcel));
        Ok(())
    }

    fn close(&self) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}
