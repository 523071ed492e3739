//! A device as the rest of the crate uses it: memory that frees itself, copies through pinned memory, bounded waits.
//!
//! ```text
//! upload    slices ─► staging (pinned, two halves, filled in turn) ─► device         nothing waits unless both are full
//! download  device ─► pinned block of the pool ─► wait ─► the caller's
//! ```
//!
//! Pinning costs the driver much more than a copy, so pinned blocks are kept. One that the device may still write to when its
//! owner goes (a query was cancelled in mid-copy) is parked until the queue has passed it.

use crate::backend::{Backend, Mark};
use jindou_model::sync;
use jindou_model::{CancelToken, Error, Result};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of one half of the staging memory.
const STAGE: usize = 4 << 20;
/// Arrays packed into one buffer start at multiples of this.
const ALIGN: usize = 256;
/// Idle pinned memory that is kept.
const KEPT_PINNED: usize = 64 << 20;
/// Smallest pinned block.
const LEAST_PINNED: usize = 4096;

/// Pinned memory, without an owner.
struct Block {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: plain memory that nothing else points to but the device.
unsafe impl Send for Block {}

#[derive(Default)]
struct Pinned {
    idle: Vec<Block>,
    /// Blocks that the device may still write to, and since when it surely does not.
    parked: Vec<(Block, Option<Mark>)>,
}

/// One half of the staging memory.
struct Half {
    block: Block,
    used: usize,
    /// When its copies are done; set when it is full.
    mark: Option<Mark>,
}

/// A device: memory that frees itself, copies through pinned memory, bounded waits.
pub struct Device {
    backend: Arc<dyn Backend>,
    pinned: Mutex<Pinned>,
    /// The half being filled comes first.
    staging: Mutex<Vec<Half>>,
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
    /// A backend with its pinned memory.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>) -> Arc<Self> {
        Arc::new(Self {
            backend,
            pinned: Mutex::default(),
            staging: Mutex::default(),
        })
    }

    /// The backend that it is made of.
    #[must_use]
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Waits for all work queued so far.
    ///
    /// # Errors
    /// Those of that work; `Cancelled` and `Timeout` (the work goes on); `Internal` when the device takes longer
    /// than its patience, after which it is lost.
    pub fn wait(&self, cancel: &CancelToken) -> Result<()> {
        let mark = self.mark()?;
        let done = self.wait_for(&mark, cancel);
        self.unmark(mark);
        done
    }

    /// As [`Self::wait`], whoever cancels.
    pub fn sync(&self) -> Result<()> {
        self.wait(&CancelToken::new())
    }

    fn wait_for(&self, mark: &Mark, cancel: &CancelToken) -> Result<()> {
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
            // Kernels take microseconds; who waits longer than that leaves the core to others.
            if waited > Duration::from_millis(1) {
                std::thread::sleep(Duration::from_micros(50));
            } else if waited > Duration::from_micros(100) {
                std::thread::yield_now();
            }
        }
    }

    /// A pinned block of at least so many bytes, initialised.
    fn pinned_block(&self, bytes: usize) -> Result<Block> {
        let bytes = bytes.max(LEAST_PINNED).next_power_of_two();
        let mut pinned = locked(&self.pinned);
        self.reclaim(&mut pinned);
        let fits = |b: &Block| b.bytes >= bytes && b.bytes <= bytes * 4;
        if let Some(i) = pinned.idle.iter().position(fits) {
            return Ok(pinned.idle.swap_remove(i));
        }
        drop(pinned);
        let at = self.alloc_host(bytes)?;
        // SAFETY: a backend gives `bytes` bytes that are ours alone.
        unsafe { at.write_bytes(0, bytes) };
        Ok(Block { at, bytes })
    }

    /// Takes back parked blocks that the queue has passed.
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

    fn give_back(&self, block: Block) {
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

    /// Copies slices to `to`, each at its offset, in as few copies as the staging memory allows. What lies between
    /// them is overwritten. Returns before the device has them.
    ///
    /// # Safety
    /// `to ..` is live device memory, up to the end of the last slice. Offsets ascend and slices do not overlap.
    unsafe fn upload_packed(&self, to: u64, slices: &[(usize, &[u8])]) -> Result<()> {
        let mut staging = locked(&self.staging);
        // Bytes staged and not yet queued: from where in the device's memory and in the half on.
        let mut open: Option<(u64, usize)> = None;
        for &(offset, slice) in slices {
            let mut at = to + offset as u64;
            let mut left = slice;
            while !left.is_empty() {
                let half = self.half_with_room(&mut staging, &mut open)?;
                let (from, start) = *open.get_or_insert((at, half.used));
                // Padding between two slices goes along, if it has room.
                let gap = (at - from) as usize - (half.used - start);
                if half.used + gap >= half.block.bytes {
                    self.flush(half, open.take())?;
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
                let flushed = self.flush(half, open);
                // The next upload's copies start on a line of their own.
                half.used = half.used.next_multiple_of(ALIGN);
                flushed
            }
            None => Ok(()),
        }
    }

    /// Queues the copy of what is staged from `open` on.
    fn flush(&self, half: &mut Half, open: Option<(u64, usize)>) -> Result<()> {
        let Some((to, start)) = open else {
            return Ok(());
        };
        // SAFETY: the caller of `upload_packed` vouches for the device's memory; the half is not written to there until it
        // has been waited for.
        unsafe { self.upload(to, half.block.at.add(start), half.used - start) }
    }

    /// The half that is filled: the first one, or the other one once the first is full.
    fn half_with_room<'s>(
        &self,
        staging: &'s mut Vec<Half>,
        open: &mut Option<(u64, usize)>,
    ) -> Result<&'s mut Half> {
        if let Some(half) = staging.first_mut()
            && half.used >= half.block.bytes
        {
            self.flush(half, open.take())?;
            half.mark = Some(self.mark()?);
            if staging.len() == 2 {
                staging.swap(0, 1);
                let half = &mut staging[0];
                match half.mark.take() {
                    Some(mark) => {
                        let waited = self.wait_for(&mark, &CancelToken::new());
                        self.unmark(mark);
                        waited?;
                    }
                    None => self.sync()?,
                }
                half.used = 0;
            }
        }
        let full = staging.first().is_none_or(|h| h.used >= h.block.bytes);
        if full {
            let at = self.alloc_host(STAGE)?;
            // SAFETY: a backend gives as many bytes as asked for. Padding is copied from here: it must be initialised.
            unsafe { at.write_bytes(0, STAGE) };
            let block = Block { at, bytes: STAGE };
            let half = Half {
                block,
                used: 0,
                mark: None,
            };
            staging.insert(0, half);
        }
        staging
            .first_mut()
            .ok_or_else(|| Error::Internal("no staging memory".into()))
    }

    /// Copies from the device and waits.
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
            // SAFETY: the caller vouches for the device's range; the buffer is looked at after the wait only.
            unsafe { buffer.download(0, from + (i * STAGE) as u64, part.len())? };
            buffer.wait(cancel)?;
            part.copy_from_slice(&buffer.bytes()[..part.len()]);
        }
        Ok(())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // Nothing may be copied to or from memory that goes. A device that does not answer is lost, and frees nothing.
        if self.failure().is_none() && self.sync().is_err() {
            self.lose("it failed while it was closed");
        }
        let pinned = std::mem::take(
            self.pinned
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner),
        );
        let staging = std::mem::take(
            self.staging
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner),
        );
        let (parked, marks): (Vec<_>, Vec<_>) = pinned.parked.into_iter().unzip();
        let (halves, more): (Vec<_>, Vec<_>) =
            staging.into_iter().map(|h| (h.block, h.mark)).unzip();
        for mark in marks.into_iter().chain(more).flatten() {
            self.unmark(mark);
        }
        for block in pinned.idle.into_iter().chain(parked).chain(halves) {
            // SAFETY: from this backend; all copies were waited for, or the device is lost.
            unsafe { self.free_host(block.at, block.bytes) };
        }
    }
}

/// Device memory that frees itself, and counts in a [`Memory`].
pub struct DeviceBuffer {
    device: Arc<Device>,
    at: u64,
    bytes: usize,
    used: Option<Arc<AtomicU64>>,
}

impl DeviceBuffer {
    /// Uncounted memory.
    pub fn new(device: &Arc<Device>, bytes: usize) -> Result<Self> {
        let bytes = bytes.max(1);
        Ok(Self {
            device: Arc::clone(device),
            at: device.alloc(bytes)?,
            bytes,
            used: None,
        })
    }

    /// Memory with this content.
    pub fn with<T: bytemuck::NoUninit>(device: &Arc<Device>, content: &[T]) -> Result<Self> {
        let b = Self::new(device, size_of_val(content))?;
        b.write(0, bytemuck::cast_slice(content))?;
        Ok(b)
    }

    /// Where it lies.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// How long it is.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Never: a buffer has at least one byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Copies the first entries back.
    pub fn read<T: bytemuck::Pod>(&self, entries: usize) -> Result<Vec<T>> {
        self.read_unless(entries, &CancelToken::new())
    }

    /// As [`Self::read`], unless cancelled.
    pub(crate) fn read_unless<T: bytemuck::Pod>(
        &self,
        entries: usize,
        cancel: &CancelToken,
    ) -> Result<Vec<T>> {
        let mut out = vec![T::zeroed(); entries.min(self.bytes / size_of::<T>())];
        // SAFETY: at most the buffer's length is read.
        unsafe {
            self.device
                .fetch(bytemuck::cast_slice_mut(&mut out), self.at, cancel)?
        };
        Ok(out)
    }

    /// Overwrites it from `offset` on; what does not fit is an error.
    pub fn write(&self, offset: usize, content: &[u8]) -> Result<()> {
        self.write_packed(&[(offset, content)])
    }

    /// Overwrites it with slices, each at its offset; ascending, and what lies between them becomes undefined.
    pub(crate) fn write_packed(&self, slices: &[(usize, &[u8])]) -> Result<()> {
        let mut free = 0;
        for (offset, slice) in slices {
            let end = offset.checked_add(slice.len());
            match end.filter(|&end| *offset >= free && end <= self.bytes) {
                Some(end) => free = end,
                None => return Err(Error::Internal("a device copy out of bounds".into())),
            }
        }
        // SAFETY: checked above.
        unsafe { self.device.upload_packed(self.at, slices) }
    }

    /// Fills it with zeros.
    pub fn clear(&self) -> Result<()> {
        self.clear_first(self.bytes)
    }

    /// Fills its first bytes with zeros.
    pub(crate) fn clear_first(&self, bytes: usize) -> Result<()> {
        // SAFETY: at most this buffer.
        unsafe { self.device.zero(self.at, bytes.min(self.bytes)) }
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if let Some(used) = &self.used {
            used.fetch_sub(self.bytes as u64, Ordering::Relaxed);
        }
        // SAFETY: allocated by this backend with this length; owners outlive the work they queue, and freeing
        // is ordered behind it.
        unsafe { self.device.free(self.at, self.bytes) };
    }
}

/// Arrays that will lie in one buffer, one behind the other.
#[derive(Default)]
pub(crate) struct Packer<'a> {
    slices: Vec<(usize, &'a [u8])>,
    bytes: usize,
}

impl<'a> Packer<'a> {
    /// Room for an array; its place in the buffer.
    pub fn add<T: bytemuck::NoUninit>(&mut self, content: &'a [T]) -> Place {
        self.add_bytes(bytemuck::cast_slice(content))
    }

    /// As [`Self::add`].
    pub fn add_bytes(&mut self, bytes: &'a [u8]) -> Place {
        if bytes.is_empty() {
            return Place(None);
        }
        let at = self.bytes;
        self.slices.push((at, bytes));
        self.bytes = (at + bytes.len()).next_multiple_of(ALIGN);
        Place(Some(at))
    }

    /// The buffer; `None` when there is nothing to hold.
    pub fn finish(self, device: &Arc<Device>) -> Result<Option<DeviceBuffer>> {
        if self.bytes == 0 {
            return Ok(None);
        }
        let buffer = DeviceBuffer::new(device, self.bytes)?;
        buffer.write_packed(&self.slices)?;
        Ok(Some(buffer))
    }
}

/// Where an array lies in a packed buffer; nowhere if it is empty.
#[derive(Clone, Copy)]
pub(crate) struct Place(Option<usize>);

impl Place {
    /// Its address; 0 for an empty array.
    pub fn in_buffer(self, buffer: Option<&DeviceBuffer>) -> u64 {
        match (self.0, buffer) {
            (Some(at), Some(b)) => b.at() + at as u64,
            _ => 0,
        }
    }
}

/// A share of device memory for tables: allocations past the limit are refused before the device is asked.
#[derive(Clone)]
pub struct Memory {
    device: Arc<Device>,
    limit: u64,
    used: Arc<AtomicU64>,
}

impl Memory {
    /// A share of `limit` bytes.
    #[must_use]
    pub fn new(device: &Arc<Device>, limit: u64) -> Self {
        Self {
            device: Arc::clone(device),
            limit,
            used: Arc::default(),
        }
    }

    /// Bytes left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    /// Memory inside the share; `None` when it does not fit, here or on the device.
    pub fn alloc(&self, bytes: u64) -> Result<Option<DeviceBuffer>> {
        let bytes = bytes.max(4);
        if bytes > self.left() {
            return Ok(None);
        }
        match DeviceBuffer::new(&self.device, bytes as usize) {
            Ok(mut buffer) => {
                self.used.fetch_add(bytes, Ordering::Relaxed);
                buffer.used = Some(Arc::clone(&self.used));
                Ok(Some(buffer))
            }
            Err(Error::Limit(_)) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// Whether the device may write to a buffer.
enum Busy {
    No,
    /// Until this moment.
    Until(Mark),
    /// Nobody knows until when.
    Unknown,
}

/// Pinned host memory from the device's pool, to which it returns.
pub struct HostBuffer {
    device: Arc<Device>,
    block: Option<Block>,
    busy: Busy,
}

impl HostBuffer {
    /// Memory of at least `bytes` bytes, whose content is whatever it held before.
    pub fn new(device: &Arc<Device>, bytes: usize) -> Result<Self> {
        Ok(Self {
            block: Some(device.pinned_block(bytes)?),
            device: Arc::clone(device),
            busy: Busy::No,
        })
    }

    /// The content; nothing while a copy is under way.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match (&self.block, &self.busy) {
            // SAFETY: owned, initialised when it was allocated, and no copy is under way.
            (Some(b), Busy::No) => unsafe { std::slice::from_raw_parts(b.at.as_ptr(), b.bytes) },
            _ => &[],
        }
    }

    /// The content, likewise.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match (&self.block, &self.busy) {
            // SAFETY: as above, and borrowed for writing.
            (Some(b), Busy::No) => unsafe {
                std::slice::from_raw_parts_mut(b.at.as_ptr(), b.bytes)
            },
            _ => &mut [],
        }
    }

    /// Queues a copy from the device to `offset`; until [`Self::wait`] the content cannot be seen.
    ///
    /// # Safety
    /// `from ..` of `bytes` is live device memory.
    pub unsafe fn download(&mut self, offset: usize, from: u64, bytes: usize) -> Result<()> {
        let Some(block) = &self.block else {
            return Err(Error::Internal("a host buffer without memory".into()));
        };
        if offset
            .checked_add(bytes)
            .is_none_or(|end| end > block.bytes)
        {
            return Err(Error::Internal("a host copy out of bounds".into()));
        }
        if let Busy::Until(mark) = std::mem::replace(&mut self.busy, Busy::Unknown) {
            self.device.unmark(mark);
        }
        // SAFETY: checked above; the content is hidden while the buffer is busy.
        unsafe { self.device.download(block.at.add(offset), from, bytes) }
    }

    /// Notes that all copies to it have been queued.
    pub fn queued(&mut self) -> Result<()> {
        let mark = self.device.mark()?;
        if let Busy::Until(old) = std::mem::replace(&mut self.busy, Busy::Until(mark)) {
            self.device.unmark(old);
        }
        Ok(())
    }

    /// Waits for the copies to it.
    ///
    /// # Errors
    /// As [`Device::wait`].
    pub fn wait(&mut self, cancel: &CancelToken) -> Result<()> {
        if let Busy::Unknown = self.busy {
            self.queued()?;
        }
        if let Busy::Until(mark) = &self.busy {
            self.device.wait_for(mark, cancel)?;
            if let Busy::Until(mark) = std::mem::replace(&mut self.busy, Busy::No) {
                self.device.unmark(mark);
            }
        }
        Ok(())
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        let Some(block) = self.block.take() else {
            return;
        };
        let mark = match std::mem::replace(&mut self.busy, Busy::No) {
            Busy::No => return self.device.give_back(block),
            Busy::Until(mark) => Some(mark),
            Busy::Unknown => None,
        };
        locked(&self.device.pinned).parked.push((block, mark));
    }
}
