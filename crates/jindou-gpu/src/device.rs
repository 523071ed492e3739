//! A backend with the conveniences that the rest of the crate needs: a limit on memory, copies through pinned memory,
//! and waits that end at a time limit or a cancellation.
//!
//! ```text
//! small uploads  slices ─► staging (pinned, two halves, filled in turn) ─► device    nothing waits unless both are full
//! large uploads  slices ─► pieces of the ring, filled by several threads ─► device   the next piece is filled meanwhile
//! downloads      device ─► pinned block of the pool ─► wait ─► the caller's
//! ```
//!
//! Pinning memory costs much more than a copy, so pinned blocks are reused. If the owner of a block drops it while the
//! device may still write to it (a query was cancelled during a copy), the block is parked until the device has done
//! that work.

use crate::backend::{Backend, CopyLane, Mark};
use crate::buffer::HostBuffer;
use crate::ring::{Part, Placed, Ring, RingOptions};
use jindou_model::sync;
use jindou_model::{CancelToken, Error, Resource, Result};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of one half of the staging memory.
const STAGE: usize = 4 << 20;
/// Alignment in bytes of arrays that are packed into one buffer.
pub(crate) const ALIGN: usize = 256;
/// Largest number of bytes of idle pinned blocks that are kept for reuse.
const KEPT_PINNED: usize = 64 << 20;
/// Size in bytes of the smallest pinned block.
const LEAST_PINNED: usize = 4096;

/// A block of pinned memory. It is not freed on drop.
pub(crate) struct PinnedBlock {
    pub at: NonNull<u8>,
    pub bytes: usize,
}

// SAFETY: plain memory that nothing else points to but the device.
unsafe impl Send for PinnedBlock {}
// SAFETY: as above; through a shared reference, only the address can be read.
unsafe impl Sync for PinnedBlock {}

#[derive(Default)]
struct Pinned {
    idle: Vec<PinnedBlock>,
    /// Blocks that the device may still write to, each with the marker after which it no longer does. `None`: not set
    /// yet.
    parked: Vec<(PinnedBlock, Option<Mark>)>,
}

/// One half of the staging memory of a queue. While the device copies from one half, the host fills the other.
struct StagingHalf {
    block: PinnedBlock,
    used: usize,
    /// The marker after the last copy from this half; set when the half is full.
    mark: Option<Mark>,
}

/// A backend with a limit on memory, copies through pinned memory, and bounded waits.
pub struct Device {
    backend: Arc<dyn Backend>,
    /// Limit on the bytes of all allocations, and the bytes in use.
    limit: u64,
    taken: AtomicU64,
    pinned: Mutex<Pinned>,
    /// Staging memory by [`CopyLane`]. The half that is being filled comes first.
    staging: [Mutex<Vec<StagingHalf>>; 2],
    ring: Ring,
}

impl Deref for Device {
    type Target = dyn Backend;

    fn deref(&self) -> &Self::Target {
        &*self.backend
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    sync::lock(of)
}

impl Device {
    /// A device without a limit on memory.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>) -> Arc<Self> {
        Self::limited(backend, u64::MAX)
    }

    /// A device of which at most `limit` bytes of memory are used.
    #[must_use]
    pub fn limited(backend: Arc<dyn Backend>, limit: u64) -> Arc<Self> {
        Self::with_ring(backend, limit, RingOptions::default())
    }

    /// As [`Self::limited`], with the size of the ring for large uploads.
    #[must_use]
    pub fn with_ring(backend: Arc<dyn Backend>, limit: u64, ring: RingOptions) -> Arc<Self> {
        Arc::new(Self {
            backend,
            limit,
            taken: AtomicU64::new(0),
            pinned: Mutex::default(),
            staging: Default::default(),
            ring: Ring::new(ring),
        })
    }

    /// Pins the ring for large uploads now. Without this call, the first uploads pin its pieces.
    ///
    /// # Errors
    /// Errors of the device; `Limit` if the ring's memory budget is too small.
    pub fn prepare(&self) -> Result<()> {
        self.ring.prepare(self)
    }

    /// The underlying backend.
    #[must_use]
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Bytes of device memory that may still be allocated, and the total, both within the limit.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn memory(&self) -> Result<(u64, u64)> {
        let (free, total) = self.backend.memory()?;
        let left = self
            .limit
            .saturating_sub(self.taken.load(Ordering::Relaxed));
        Ok((free.min(left), total.min(self.limit)))
    }

    /// Allocates device memory within the limit.
    pub(crate) fn take(&self, bytes: usize) -> Result<u64> {
        self.within_limit(bytes, || self.alloc(bytes))
    }

    /// Runs an allocation of `bytes` bytes if the limit allows it, and counts the bytes.
    fn within_limit<T>(&self, bytes: usize, take: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
        let at = match before.checked_add(bytes as u64) {
            Some(after) if after <= self.limit => take(),
            _ => Err(Error::limit(
                Resource::Device,
                format!(
                    "the {} MiB of GPU memory that may be used are full",
                    self.limit >> 20
                ),
            )),
        };
        if at.is_err() {
            self.taken.fetch_sub(bytes as u64, Ordering::Relaxed);
        }
        at
    }

    /// Frees device memory.
    ///
    /// # Safety
    /// It came from [`Self::take`] of this device with these `bytes`, and no later work uses it.
    pub(crate) unsafe fn put_back(&self, at: u64, bytes: usize) {
        self.taken.fetch_sub(bytes as u64, Ordering::Relaxed);
        // SAFETY: guaranteed by the caller.
        unsafe { self.free(at, bytes) };
    }

    /// As [`Backend::map_page`], within the limit.
    ///
    /// # Safety
    /// As for that function.
    pub(crate) unsafe fn map_page(&self, at: u64, bytes: usize) -> Result<()> {
        self.within_limit(bytes, || {
            // SAFETY: guaranteed by the caller.
            unsafe { self.backend.map_page(at, bytes) }
        })
    }

    /// As [`Backend::unmap_page`].
    ///
    /// # Safety
    /// As for that function.
    pub(crate) unsafe fn unmap_page(&self, at: u64, bytes: usize) {
        self.taken.fetch_sub(bytes as u64, Ordering::Relaxed);
        // SAFETY: guaranteed by the caller.
        unsafe { self.backend.unmap_page(at, bytes) };
    }

    /// Waits for all work queued so far.
    ///
    /// # Errors
    /// Errors of that work; `Cancelled` and `Timeout`, after which the work continues; `Internal` if the device takes
    /// longer than [`Backend::patience`], after which it counts as lost.
    pub fn wait(&self, cancel: &CancelToken) -> Result<()> {
        let mark = self.mark()?;
        let done = self.wait_for(&mark, cancel);
        self.unmark(mark);
        done
    }

    /// As [`Self::wait`], ignoring cancellation.
    pub fn sync(&self) -> Result<()> {
        self.wait(&CancelToken::new())
    }

    /// Waits for all work in both queues.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub(crate) fn wait_for_all(&self, cancel: &CancelToken) -> Result<()> {
        let mark = self.mark_in(CopyLane::Aside)?;
        let done = self.wait_for(&mark, cancel);
        self.unmark(mark);
        done?;
        self.wait(cancel)
    }

    pub(crate) fn wait_for(&self, mark: &Mark, cancel: &CancelToken) -> Result<()> {
        let began = Instant::now();
        loop {
            for _ in 0..64 {
                if self.reached(mark)? {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            cancel.check()?;
            let waited = began.elapsed();
            if waited > self.patience() {
                let why = format!("it did not finish its work in {:?}", self.patience());
                self.lose(&why);
                return Err(Error::Internal(format!("the GPU is lost: {why}")));
            }
            // Kernels take microseconds, so a short wait is a loop. During a longer one the thread sleeps, so that
            // others can use the core.
            if waited > Duration::from_millis(1) {
                std::thread::sleep(Duration::from_micros(50));
            } else if waited > Duration::from_micros(100) {
                std::thread::yield_now();
            }
        }
    }

    /// Takes an idle pinned block of at least this many bytes, or pins one. Its content is initialised but arbitrary.
    pub(crate) fn pinned_block(&self, bytes: usize) -> Result<PinnedBlock> {
        let bytes = bytes.max(LEAST_PINNED).next_power_of_two();
        let mut pinned = locked(&self.pinned);
        self.reclaim(&mut pinned);
        let fits = |b: &PinnedBlock| b.bytes >= bytes && b.bytes <= bytes * 4;
        let fitting = pinned.idle.iter().enumerate().filter(|(_, b)| fits(b));
        // The smallest fitting block is taken, so that large ones remain for large requests.
        if let Some((i, _)) = fitting.min_by_key(|(_, b)| b.bytes) {
            return Ok(pinned.idle.swap_remove(i));
        }
        drop(pinned);
        self.pin(bytes)
    }

    /// Pins a new block of this size, filled with zeros.
    pub(crate) fn pin(&self, bytes: usize) -> Result<PinnedBlock> {
        let at = self.alloc_host(bytes)?;
        // SAFETY: the backend returned `bytes` bytes, to which nothing else has a pointer.
        unsafe { at.write_bytes(0, bytes) };
        Ok(PinnedBlock { at, bytes })
    }

    /// Moves parked blocks to which the device no longer writes back to the idle ones.
    fn reclaim(&self, pinned: &mut Pinned) {
        for (block, mark) in std::mem::take(&mut pinned.parked) {
            match mark {
                Some(m) => match self.reached(&m) {
                    Ok(true) => {
                        self.unmark(m);
                        pinned.idle.push(block);
                    }
                    _ => pinned.parked.push((block, Some(m))),
                },
                None => pinned.parked.push((block, self.mark().ok())),
            }
        }
    }

    pub(crate) fn give_back(&self, block: PinnedBlock) {
        let mut pinned = locked(&self.pinned);
        let kept: usize = pinned.idle.iter().map(|b| b.bytes).sum();
        if kept + block.bytes <= KEPT_PINNED {
            pinned.idle.push(block);
            return;
        }
        drop(pinned);
        // SAFETY: the block is from this backend, and nothing is copied to it any more.
        unsafe { self.free_host(block.at, block.bytes) };
    }

    /// Parks a block until the device no longer writes to it: until it has passed `mark`, or, without one, a marker
    /// that [`Self::reclaim`] sets later.
    pub(crate) fn park(&self, block: PinnedBlock, mark: Option<Mark>) {
        locked(&self.pinned).parked.push((block, mark));
    }

    /// Copies slices to several destinations, each as [`Self::upload_packed`] copies to one.
    ///
    /// # Safety
    /// As for that function, for each place.
    pub(crate) unsafe fn upload_all(&self, places: &[Placed<'_>], lane: CopyLane) -> Result<()> {
        let parts: Vec<Part<'_>> = places
            .iter()
            .flat_map(|(to, slices)| slices.iter().map(move |&(at, s)| (to + at as u64, s)))
            .collect();
        if self.is_for_ring(parts.iter().map(|p| p.1)) {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.ring.upload(self, &parts, lane) };
        }
        places.iter().try_for_each(|(to, slices)| {
            // SAFETY: guaranteed by the caller.
            unsafe { self.upload_packed(*to, slices, lane) }
        })
    }

    fn is_for_ring<'s>(&self, slices: impl Iterator<Item = &'s [u8]>) -> bool {
        slices.map(<[u8]>::len).sum::<usize>() >= self.ring.least() && self.ring.is_usable()
    }

    /// Copies slices to device memory from the address `to` on, each at its offset. The bytes between them may be
    /// overwritten. Returns once the slices have been copied to pinned memory, in as few queued copies as possible.
    ///
    /// # Safety
    /// Device memory from `to` to the end of the last slice is live. Offsets ascend and slices do not overlap. In
    /// [`CopyLane::Aside`], no work touches that memory unless it is known to be done.
    pub(crate) unsafe fn upload_packed(
        &self,
        to: u64,
        slices: &[(usize, &[u8])],
        lane: CopyLane,
    ) -> Result<()> {
        if self.is_for_ring(slices.iter().map(|s| s.1)) {
            let parts: Vec<Part<'_>> = slices.iter().map(|&(at, s)| (to + at as u64, s)).collect();
            // SAFETY: guaranteed by the caller.
            return unsafe { self.ring.upload(self, &parts, lane) };
        }
        let mut staging = locked(&self.staging[lane as usize]);
        // A range of the half that is filled but not yet queued: its address on the device, and its start in the half.
        let mut open: Option<(u64, usize)> = None;
        for &(offset, slice) in slices {
            let mut at = to + offset as u64;
            let mut left = slice;
            while !left.is_empty() {
                let half = self.half_with_room(&mut staging, &mut open, lane)?;
                let (from, start) = *open.get_or_insert((at, half.used));
                // The gap between two slices is copied as well if it fits in the half, since one copy is cheaper than
                // two.
                let gap = (at - from) as usize - (half.used - start);
                if half.used + gap >= half.block.bytes {
                    self.flush(half, open.take(), lane)?;
                    half.used = half.block.bytes;
                    continue;
                }
                half.used += gap;
                let n = left.len().min(half.block.bytes - half.used);
                // SAFETY: the half has room for `n` bytes, and no copy reads that part of it.
                unsafe {
                    half.block
                        .at
                        .add(half.used)
                        .copy_from_nonoverlapping(NonNull::from(left).cast(), n);
                }
                half.used += n;
                at += n as u64;
                left = &left[n..];
            }
        }
        match staging.first_mut() {
            Some(half) => {
                let flushed = self.flush(half, open, lane);
                // The next upload starts at an aligned offset.
                half.used = half.used.next_multiple_of(ALIGN);
                flushed
            }
            None => Ok(()),
        }
    }

    /// Queues the copy of the bytes that were staged since `open`, if there are any.
    fn flush(
        &self,
        half: &mut StagingHalf,
        open: Option<(u64, usize)>,
        lane: CopyLane,
    ) -> Result<()> {
        let Some((to, start)) = open else {
            return Ok(());
        };
        let bytes = half.used - start;
        // SAFETY: the caller of `upload_packed` vouches for the device's memory; the half is not written to there until it
        // has been waited for.
        unsafe { self.upload(to, half.block.at.add(start), bytes, lane) }
    }

    /// The half to fill: the first one or, once that is full, the other one, after its copies are done.
    fn half_with_room<'s>(
        &self,
        staging: &'s mut Vec<StagingHalf>,
        open: &mut Option<(u64, usize)>,
        lane: CopyLane,
    ) -> Result<&'s mut StagingHalf> {
        if let Some(half) = staging.first_mut()
            && half.used >= half.block.bytes
        {
            self.flush(half, open.take(), lane)?;
            half.mark = Some(self.mark_in(lane)?);
            if staging.len() == 2 {
                staging.swap(0, 1);
                let half = &mut staging[0];
                match half.mark.take() {
                    Some(mark) => {
                        let waited = self.wait_for(&mark, &CancelToken::new());
                        self.unmark(mark);
                        waited?;
                    }
                    None => self.wait_for_all(&CancelToken::new())?,
                }
                half.used = 0;
            }
        }
        let full = staging.first().is_none_or(|h| h.used >= h.block.bytes);
        if full {
            // Gaps between slices are copied from it, too, so it must be initialised, as blocks from `pin` are.
            let half = StagingHalf {
                block: self.pin(STAGE)?,
                used: 0,
                mark: None,
            };
            staging.insert(0, half);
        }
        staging
            .first_mut()
            .ok_or_else(|| Error::Internal("no staging memory".into()))
    }

    /// Copies from the device to `to`, after the work queued so far, and waits.
    ///
    /// # Safety
    /// `from ..` of that length is live device memory.
    pub(crate) unsafe fn fetch(
        self: &Arc<Self>,
        to: &mut [u8],
        from: u64,
        cancel: &CancelToken,
    ) -> Result<()> {
        let mut buffer = HostBuffer::new(self, to.len().min(STAGE))?;
        for (i, part) in to.chunks_mut(STAGE).enumerate() {
            // SAFETY: the caller promises the device's range; the buffer is read only after the wait.
            unsafe { buffer.download(0, from + (i * STAGE) as u64, part.len())? };
            buffer.wait(cancel)?;
            part.copy_from_slice(&buffer.bytes()[..part.len()]);
        }
        Ok(())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // Pinned memory must not be freed during a copy. If the device does not finish, it is declared lost, and
        // freeing has no effect.
        if self.failure().is_none() && self.wait_for_all(&CancelToken::new()).is_err() {
            self.lose("it failed while it was being closed");
        }
        let pinned = std::mem::take(
            self.pinned
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner),
        );
        let staging = self
            .staging
            .each_mut()
            .map(|lane| std::mem::take(lane.get_mut().unwrap_or_else(PoisonError::into_inner)));
        let (parked, marks): (Vec<_>, Vec<_>) = pinned.parked.into_iter().unzip();
        let (halves, more): (Vec<_>, Vec<_>) = staging
            .into_iter()
            .flatten()
            .map(|h| (h.block, h.mark))
            .unzip();
        let (pieces, their_marks) = self.ring.take_all();
        let all_marks = marks.into_iter().chain(more).flatten();
        for mark in all_marks.chain(their_marks) {
            self.unmark(mark);
        }
        let blocks = pinned.idle.into_iter().chain(parked).chain(halves);
        for block in blocks.chain(pieces) {
            // SAFETY: from this backend; all copies were waited for, or the device is lost.
            unsafe { self.free_host(block.at, block.bytes) };
        }
    }
}
