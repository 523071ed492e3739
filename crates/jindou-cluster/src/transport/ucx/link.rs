//! One connection: the [`Peer`] that callers see, and the way back for answers to the other end's requests.

use super::bindings::{UCS_ERR_INVALID_PARAM, UCS_ERR_NO_MEMORY, UCS_ERR_UNSUPPORTED};
use super::core::Core;
use super::direct::{Window, Windows};
use super::frame::{GatherRange, Incoming, UcxFrame, outcome, what};
use super::mapped::FileName;
use super::worker::{LANDING, RemoteRead};
use crate::transport::{
    ByteRange, Epoch, MAX_MESSAGE, Moment, Peer, RegionDescriptor, RemoteRegion, Result,
    TransportError, check_read,
};
use jindou_model::sync::lock;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// A connection to another server; callers see it as a [`Peer`].
pub(super) struct UcxLink {
    pub(super) core: Arc<Core>,
    /// The other end's address.
    pub(super) name: String,
    /// The peer's number of this connection.
    pub(super) there: u32,
    /// Number of the UCX endpoint.
    pub(super) endpoint: u32,
    /// The newest epoch heard of.
    epoch: AtomicU64,
    failure: OnceLock<String>,
    closed: AtomicBool,
    /// Control stream, for ending the control thread.
    control: TcpStream,
    /// Region numbers by slot, for gathering.
    regions: Mutex<Vec<u64>>,
    /// Regions visible in this process, through mappings of `core`'s worker.
    windows: Windows,
}

impl UcxLink {
    pub(super) fn new(
        core: Arc<Core>,
        name: String,
        there: u32,
        endpoint: u32,
        epoch: Epoch,
        control: TcpStream,
    ) -> Self {
        Self {
            core,
            name,
            there,
            endpoint,
            epoch: AtomicU64::new(epoch.0),
            failure: OnceLock::new(),
            closed: AtomicBool::new(false),
            control,
            regions: Mutex::default(),
            windows: Windows::default(),
        }
    }

    /// Records the epoch that the peer has announced.
    pub(super) fn heard(&self, epoch: Epoch) {
        self.epoch.fetch_max(epoch.0, Ordering::AcqRel);
    }

    /// Treats the peer as dead from here on, and has UCX end all operations in progress. The first reason is kept.
    pub(super) fn fail(&self, reason: String) {
        if self.failure.set(reason).is_ok() {
            self.core.worker().disconnect(self.endpoint);
            let _ = self.control.shutdown(Shutdown::Both);
        }
    }

    /// The control connection, for writing.
    pub(super) fn control(&self) -> &TcpStream {
        &self.control
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) || self.core.is_closed()
    }

    /// The reason why nothing can be done over this connection, if there is one.
    fn hindrance(&self) -> Option<TransportError> {
        if self.is_closed() {
            return Some(TransportError::Closed);
        }
        self.failure.get().map(|reason| TransportError::PeerDead {
            peer: self.name.clone(),
            reason: reason.clone(),
        })
    }

    fn late(&self, began: Moment) -> TransportError {
        TransportError::Deadline {
            peer: self.name.clone(),
            waited: self.core.now().since(began),
        }
    }

    /// Adds the peer's name to an error that the worker made without knowing it.
    fn named(&self, e: TransportError) -> TransportError {
        match e {
            TransportError::PeerDead { reason, .. } => TransportError::PeerDead {
                peer: self.name.clone(),
                reason,
            },
            TransportError::Closed => self.hindrance().unwrap_or(TransportError::Closed),
            e => e,
        }
    }

    /// Sends a request and waits for its reply.
    pub(super) fn request(
        &self,
        what: u8,
        kind: u16,
        epoch: Epoch,
        payload: Vec<u8>,
        deadline: Moment,
    ) -> Result<Incoming> {
        if let Some(e) = self.hindrance() {
            return Err(e);
        }
        let began = self.core.now();
        if began >= deadline {
            return Err(self.late(began));
        }
        let mut worker = self.core.worker();
        let operation = worker.operation(0);
        let request = worker.await_reply(&operation);
        let frame = UcxFrame {
            what,
            outcome: outcome::OK,
            kind,
            connection: self.there,
            request,
            epoch: epoch.0,
        };
        let sent = worker.send(self.endpoint, frame, payload);
        let (mut worker, result) = match sent {
            Ok(_) => {
                let hindered = || self.hindrance();
                let late = || self.late(began);
                self.core
                    .finish(worker, &operation, deadline, hindered, late)
            }
            Err(e) => (worker, Err(e)),
        };
        if let Err(e) = result {
            worker.forget_reply(request);
            return Err(self.named(e));
        }
        let reply = operation.take_reply();
        worker.recycle(operation);
        drop(worker);
        let reply = reply.ok_or(TransportError::Closed)?;
        match reply.frame.outcome {
            outcome::OK => Ok(reply),
            outcome::STALE => {
                let current = Epoch(reply.frame.epoch);
                self.heard(current);
                Err(TransportError::StaleEpoch {
                    held: epoch,
                    current,
                })
            }
            _ => Err(TransportError::Refused(
                String::from_utf8_lossy(&reply.payload).into_owned(),
            )),
        }
    }

    /// One round of single reads, at most [`LANDING`] bytes.
    fn read_round(
        &self,
        slot: u32,
        parts: &[RemoteRead],
        into: &mut [u8],
        deadline: Moment,
    ) -> Result<()> {
        let mut worker = self.core.worker();
        let operation = worker.operation(into.len());
        let started = worker.read(self.endpoint, slot, parts, &operation);
        started.map_err(|e| self.named(e))?;
        if !operation.done() {
            let began = self.core.now();
            let hindered = || self.hindrance();
            let late = || self.late(began);
            let (w, result) = self
                .core
                .finish(worker, &operation, deadline, hindered, late);
            result?;
            worker = w;
        }
        if let Some(status) = operation.failure() {
            let reason = worker.text(status);
            return Err(match status {
                UCS_ERR_NO_MEMORY | UCS_ERR_INVALID_PARAM | UCS_ERR_UNSUPPORTED => {
                    TransportError::Refused(reason)
                }
                _ => self
                    .hindrance()
                    .unwrap_or_else(|| TransportError::PeerDead {
                        peer: self.name.clone(),
                        reason,
                    }),
            });
        }
        // SAFETY: no part is under way any more, so nothing writes to the landing; it has at least as many
        // bytes as were asked for, all of them initialised.
        let landed = unsafe { std::slice::from_raw_parts(operation.landing(), into.len()) };
        into.copy_from_slice(landed);
        worker.recycle(operation);
        Ok(())
    }

    /// Copies from the peer's memory: there is nothing to wait for, so the clock is read only every [`LANDING`] bytes.
    fn read_window(
        &self,
        window: &Window,
        ranges: &[ByteRange],
        into: &mut [u8],
        deadline: Moment,
    ) -> Result<()> {
        /// Ranges between a prefetch and its use.
        const AHEAD: usize = 12;
        let began = (into.len() > LANDING).then(|| self.core.now());
        let mut rest = into;
        for (i, r) in ranges.iter().enumerate() {
            if let Some(next) = ranges.get(i + AHEAD) {
                window.prefetch(next.offset);
            }
            let (now, later) = rest.split_at_mut((r.len as usize).min(rest.len()));
            rest = later;
            let mut offset = r.offset;
            for piece in now.chunks_mut(LANDING) {
                if !window.read(offset, piece) {
                    return Err(TransportError::Refused(format!(
                        "bytes {offset}..+{} are outside the region",
                        piece.len()
                    )));
                }
                offset += piece.len() as u64;
                if let Some(began) = began {
                    if let Some(e) = self.hindrance() {
                        return Err(e);
                    }
                    if self.core.now() >= deadline {
                        return Err(self.late(began));
                    }
                }
            }
        }
        Ok(())
    }

    /// One round with a gathering message, at most [`LANDING`] bytes.
    fn gather_round(
        &self,
        region: RemoteRegion,
        parts: &[RemoteRead],
        into: &mut [u8],
        deadline: Moment,
    ) -> Result<()> {
        let number = lock(&self.regions).get(region.slot as usize).copied();
        let number = number
            .ok_or_else(|| TransportError::Refused("the region belongs to another peer".into()))?;
        let mut payload = Vec::with_capacity(8 + parts.len() * size_of::<GatherRange>());
        payload.extend_from_slice(&number.to_le_bytes());
        for p in parts {
            let range = GatherRange {
                offset: p.address,
                len: p.len as u64,
            };
            payload.extend_from_slice(bytemuck::bytes_of(&range));
        }
        let reply = self.request(what::GATHER, 0, region.epoch, payload, deadline)?;
        if reply.payload.len() != into.len() {
            return Err(TransportError::Refused(
                "the peer sent another length".into(),
            ));
        }
        into.copy_from_slice(&reply.payload);
        Ok(())
    }
}

impl Peer for UcxLink {
    fn name(&self) -> &str {
        &self.name
    }

    fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    fn failure(&self) -> Option<String> {
        self.failure.get().cloned()
    }

    fn attach(&self, descriptor: &RegionDescriptor) -> Result<RemoteRegion> {
        if let Some(file) = FileName::of_key(&descriptor.key) {
            let mapped = file.map().map_err(TransportError::Refused)?;
            return Ok(RemoteRegion {
                slot: self.windows.map(mapped).ok_or_else(|| {
                    TransportError::Refused("too many files of one peer are mapped".into())
                })?,
                epoch: descriptor.epoch,
                len: descriptor.len,
            });
        }
        let mut worker = self.core.worker();
        let slot = worker
            .attach(self.endpoint, &descriptor.key, descriptor.base)
            .map_err(|e| self.named(e))?;
        let options = &self.core.options;
        let window = if options.direct && options.fabric.copies_memory() {
            worker.pointer(self.endpoint, slot)
        } else {
            None
        };
        drop(worker);
        if let Some(pointer) = window {
            // SAFETY: mapped as long as the worker lives, which `core` holds; the registration has `len` bytes,
            // as its owner says (see the trust boundary), and they do not change.
            unsafe { self.windows.open(slot, pointer, descriptor.len) };
        }
        let mut regions = lock(&self.regions);
        // Two threads may attach at once: each slot gets its own region's number.
        if regions.len() <= slot as usize {
            regions.resize(slot as usize + 1, u64::MAX);
        }
        if let Some(r) = regions.get_mut(slot as usize) {
            *r = descriptor.region;
        }
        drop(regions);
        Ok(RemoteRegion {
            slot,
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
        if let Some(e) = self.hindrance() {
            return Err(e);
        }
        check_read(self, region, ranges, into)?;
        if let Some(window) = self.windows.get(region.slot) {
            self.read_window(window, ranges, into, deadline)?;
            return match window.is_whole() {
                true => Ok(()),
                false => Err(TransportError::Refused(
                    "the peer's file has changed or cannot be read".into(),
                )),
            };
        }
        // The clock is read only if the caller must wait: a read of shared memory is done when it is started.
        if let [r] = ranges
            && r.len as usize <= LANDING
        {
            let part = RemoteRead {
                address: r.offset,
                len: r.len as usize,
            };
            return match r.len {
                0 => Ok(()),
                _ => self.read_round(region.slot, &[part], into, deadline),
            };
        }
        let gather_from = self.core.options.fabric.gather_from();
        let mut rest = into;
        let mut parts = Vec::with_capacity(ranges.len());
        let mut ranges = ranges.iter().copied().filter(|r| r.len > 0).peekable();
        while ranges.peek().is_some() {
            parts.clear();
            let mut total = 0;
            while let Some(r) = ranges.peek_mut() {
                let len = (r.len as usize).min(LANDING - total);
                parts.push(RemoteRead {
                    address: r.offset,
                    len,
                });
                total += len;
                r.offset += len as u64;
                r.len -= len as u32;
                if r.len == 0 {
                    ranges.next();
                }
                if total == LANDING {
                    break;
                }
            }
            let (now, later) = rest.split_at_mut(total);
            rest = later;
            if parts.len() >= gather_from {
                self.gather_round(region, &parts, now, deadline)?;
            } else {
                self.read_round(region.slot, &parts, now, deadline)?;
            }
        }
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
        check_length(payload)?;
        let answer = self.request(what::REQUEST, kind, epoch, payload.to_vec(), deadline)?;
        reply.extend_from_slice(&answer.payload);
        Ok(())
    }

    fn send(&self, kind: u16, epoch: Epoch, payload: &[u8], deadline: Moment) -> Result<()> {
        check_length(payload)?;
        if let Some(e) = self.hindrance() {
            return Err(e);
        }
        let now = self.core.now();
        if now >= deadline {
            return Err(self.late(now));
        }
        let frame = UcxFrame {
            what: what::ONE_WAY,
            outcome: outcome::OK,
            kind,
            connection: self.there,
            request: 0,
            epoch: epoch.0,
        };
        let sent = self
            .core
            .worker()
            .send(self.endpoint, frame, payload.to_vec());
        if sent.map_err(|e| self.named(e))? {
            self.core.wake();
        }
        Ok(())
    }

    fn close(&self) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            self.core.worker().disconnect(self.endpoint);
            let _ = self.control.shutdown(Shutdown::Both);
        }
    }
}

fn check_length(payload: &[u8]) -> Result<()> {
    if payload.len() > MAX_MESSAGE {
        return Err(TransportError::Refused(format!(
            "a message of {} bytes; at most {MAX_MESSAGE} are allowed",
            payload.len()
        )));
    }
    Ok(())
}
