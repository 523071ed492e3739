//! A link: access to the memory of one peer.

use super::bindings::{UCS_ERR_INVALID_PARAM, UCS_ERR_NO_MEMORY, UCS_ERR_UNSUPPORTED};
use super::core::Core;
use super::worker::{MAX_BUFFER, RemoteRead};
use crate::transport::{
    ByteRange, Link, RegionDescriptor, RemoteRegion, Result, TransportError, check_read,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// A UCX endpoint to a peer. Closed on drop.
pub(super) struct UcxLink {
    core: Arc<Core>,
    /// Number of the UCX endpoint.
    endpoint: u32,
    failure: OnceLock<String>,
    closed: AtomicBool,
}

impl UcxLink {
    pub(super) fn new(core: Arc<Core>, endpoint: u32) -> Self {
        Self {
            core,
            endpoint,
            failure: OnceLock::new(),
            closed: AtomicBool::new(false),
        }
    }

    /// Considers the peer dead from now on, and makes UCX end all operations in progress. Only the first reason is
    /// kept.
    pub(super) fn fail(&self, reason: String) {
        if self.failure.set(reason).is_ok() {
            self.core.worker().disconnect(self.endpoint);
        }
    }

    /// The reason why this link cannot be used; `None` if it can.
    fn failure_reason(&self) -> Option<TransportError> {
        if self.closed.load(Ordering::Acquire) || self.core.is_closed() {
            return Some(TransportError::Closed);
        }
        self.failure.get().cloned().map(TransportError::PeerDead)
    }

    /// Replaces the error for a closed endpoint by the reason for closing.
    fn explained(&self, e: TransportError) -> TransportError {
        match e {
            TransportError::Closed => self.failure_reason().unwrap_or(TransportError::Closed),
            e => e,
        }
    }

    /// Reads several parts in one round, at most [`MAX_BUFFER`] bytes in total.
    fn read_round(
        &self,
        slot: u32,
        parts: &[RemoteRead],
        into: &mut [u8],
        deadline: Instant,
    ) -> Result<()> {
        let mut worker = self.core.worker();
        let operation = worker.operation(into.len());
        let started = worker.read(self.endpoint, slot, parts, &operation);
        started.map_err(|e| self.explained(e))?;
        if !operation.done() {
            let failure = || self.failure_reason();
            let (w, result) = self.core.finish(worker, &operation, deadline, failure);
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
                    .failure_reason()
                    .unwrap_or(TransportError::PeerDead(reason)),
            });
        }
        // SAFETY: no part is pending, so nothing writes to the landing buffer; the buffer has at least `into.len()`
        // bytes, and all of them are initialised.
        let landed = unsafe { std::slice::from_raw_parts(operation.buffer(), into.len()) };
        into.copy_from_slice(landed);
        worker.recycle(operation);
        Ok(())
    }
}

impl Link for UcxLink {
    fn attach(&self, descriptor: &RegionDescriptor) -> Result<RemoteRegion> {
        let slot = self
            .core
            .worker()
            .attach(self.endpoint, &descriptor.key, descriptor.base)
            .map_err(|e| self.explained(e))?;
        Ok(RemoteRegion {
            slot,
            len: descriptor.len,
        })
    }

    fn read_many(
        &self,
        region: RemoteRegion,
        ranges: &[ByteRange],
        into: &mut [u8],
        deadline: Instant,
    ) -> Result<()> {
        if let Some(e) = self.failure_reason() {
            return Err(e);
        }
        check_read(region, ranges, into)?;
        // Fast path: the clock is read only if the caller must wait.
        if let [r] = ranges
            && r.len as usize <= MAX_BUFFER
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
        let mut rest = into;
        let mut parts = Vec::with_capacity(ranges.len());
        let mut ranges = ranges.iter().copied().filter(|r| r.len > 0).peekable();
        while ranges.peek().is_some() {
            parts.clear();
            let mut total = 0;
            while let Some(r) = ranges.peek_mut() {
                let len = (r.len as usize).min(MAX_BUFFER - total);
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
                if total == MAX_BUFFER {
                    break;
                }
            }
            let (now, later) = rest.split_at_mut(total);
            rest = later;
            self.read_round(region.slot, &parts, now, deadline)?;
        }
        Ok(())
    }

    fn close(&self) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            self.core.worker().disconnect(self.endpoint);
        }
    }
}

impl Drop for UcxLink {
    fn drop(&mut self) {
        self.close();
    }
}
