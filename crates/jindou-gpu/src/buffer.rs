//! Memory that frees itself: on the device, optionally within a limit ([`DeviceMemory`]), and pinned on the host.

use crate::backend::{CopyLane, Mark};
use crate::device::{ALIGN, Device, PinnedBlock};
use jindou_model::{CancelToken, Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Device memory that frees itself on drop. If it was allocated through a [`DeviceMemory`], its bytes count against
/// that limit.
pub struct DeviceBuffer {
    device: Arc<Device>,
    at: u64,
    bytes: usize,
    used: Option<Arc<AtomicU64>>,
}

impl DeviceBuffer {
    /// Allocates memory that no [`DeviceMemory`] counts.
    pub fn new(device: &Arc<Device>, bytes: usize) -> Result<Self> {
        let bytes = bytes.max(1);
        Ok(Self {
            device: Arc::clone(device),
            at: device.take(bytes)?,
            bytes,
            used: None,
        })
    }

    /// Allocates memory and uploads this content.
    pub fn with<T: bytemuck::NoUninit>(device: &Arc<Device>, content: &[T]) -> Result<Self> {
        let b = Self::new(device, size_of_val(content))?;
        b.write(0, bytemuck::cast_slice(content))?;
        Ok(b)
    }

    /// Address of the memory.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Always false: a buffer has at least one byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Waits for the queued work and copies the first `entries` entries to the host; fewer if the buffer is shorter.
    pub fn read<T: bytemuck::Pod>(&self, entries: usize) -> Result<Vec<T>> {
        self.read_unless(entries, &CancelToken::new())
    }

    /// As [`Self::read`]; returns an error if the query is cancelled while waiting.
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

    /// Copies `content` into the buffer from `offset` on; an error if it does not fit.
    pub fn write(&self, offset: usize, content: &[u8]) -> Result<()> {
        self.write_packed(&[(offset, content)])
    }

    /// Copies slices into the buffer, each to its offset. Offsets must ascend; the bytes between slices become
    /// undefined.
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
        unsafe {
            self.device
                .upload_packed(self.at, slices, CopyLane::Ordered)
        }
    }

    /// Fills the buffer with zeros.
    pub fn clear(&self) -> Result<()> {
        self.clear_first(self.bytes)
    }

    /// Fills the buffer's first `bytes` bytes with zeros.
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
        // is ordered after it.
        unsafe { self.device.put_back(self.at, self.bytes) };
    }
}

/// Arrays that will be placed in one buffer, one after the other.
#[derive(Default)]
pub(crate) struct Packer<'a> {
    slices: Vec<(usize, &'a [u8])>,
    bytes: usize,
}

impl<'a> Packer<'a> {
    /// Adds an array; returns its offset in the buffer to be.
    pub fn add<T: bytemuck::NoUninit>(&mut self, content: &'a [T]) -> ArrayOffset {
        self.add_bytes(bytemuck::cast_slice(content))
    }

    /// As [`Self::add`], for bytes.
    pub fn add_bytes(&mut self, bytes: &'a [u8]) -> ArrayOffset {
        if bytes.is_empty() {
            return ArrayOffset(None);
        }
        let at = self.bytes;
        self.slices.push((at, bytes));
        self.bytes = (at + bytes.len()).next_multiple_of(ALIGN);
        ArrayOffset(Some(at))
    }

    /// Allocates the buffer and uploads the arrays; `None` if they are all empty.
    pub fn finish(self, device: &Arc<Device>) -> Result<Option<DeviceBuffer>> {
        let [buffer] = Self::finish_all(device, [self])?;
        Ok(buffer)
    }

    /// As [`Self::finish`] for several packers, whose arrays are uploaded together.
    pub fn finish_all<const N: usize>(
        device: &Arc<Device>,
        all: [Self; N],
    ) -> Result<[Option<DeviceBuffer>; N]> {
        let mut buffers = [const { None }; N];
        let mut places = Vec::with_capacity(N);
        for (buffer, packed) in buffers.iter_mut().zip(all) {
            if packed.bytes > 0 {
                let made = DeviceBuffer::new(device, packed.bytes)?;
                places.push((made.at(), packed.slices));
                *buffer = Some(made);
            }
        }
        // SAFETY: each buffer was made for its slices, which a packer places one after the other.
        unsafe { device.upload_all(&places, CopyLane::Ordered)? };
        Ok(buffers)
    }
}

/// Offset of an array in a packed buffer; `None` inside for an empty array.
#[derive(Clone, Copy)]
pub(crate) struct ArrayOffset(Option<usize>);

impl ArrayOffset {
    /// The device address of the array; 0 for an empty one.
    pub fn in_buffer(self, buffer: Option<&DeviceBuffer>) -> u64 {
        match (self.0, buffer) {
            (Some(at), Some(b)) => b.at() + at as u64,
            _ => 0,
        }
    }
}

/// A limit on the device memory that a run's tables may take: allocations beyond it fail without asking the device.
#[derive(Clone)]
pub struct DeviceMemory {
    device: Arc<Device>,
    limit: u64,
    used: Arc<AtomicU64>,
    /// The most bytes in use at once so far.
    peak: Arc<AtomicU64>,
}

impl DeviceMemory {
    /// A limit of `limit` bytes.
    #[must_use]
    pub fn new(device: &Arc<Device>, limit: u64) -> Self {
        Self {
            device: Arc::clone(device),
            limit,
            used: Arc::default(),
            peak: Arc::default(),
        }
    }

    /// The most bytes in use at once so far.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Remaining bytes.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    /// Allocates memory that counts against the limit; `None` if the limit or the device's memory does not suffice.
    pub fn alloc(&self, bytes: u64) -> Result<Option<DeviceBuffer>> {
        let bytes = bytes.max(4);
        if bytes > self.left() {
            return Ok(None);
        }
        match DeviceBuffer::new(&self.device, bytes as usize) {
            Ok(mut buffer) => {
                let before = self.used.fetch_add(bytes, Ordering::Relaxed);
                self.peak.fetch_max(before + bytes, Ordering::Relaxed);
                buffer.used = Some(Arc::clone(&self.used));
                Ok(Some(buffer))
            }
            Err(Error::Limit(_)) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// State of a host buffer: until when the device may still write to it.
enum Busy {
    No,
    /// Until it has passed this marker.
    Until(Mark),
    /// A copy was queued, but no marker after it yet.
    Unknown,
}

/// Pinned host memory from the device's pool, to which it returns on drop.
pub struct HostBuffer {
    device: Arc<Device>,
    block: Option<PinnedBlock>,
    busy: Busy,
}

impl HostBuffer {
    /// Takes at least `bytes` bytes, whose content is arbitrary.
    pub fn new(device: &Arc<Device>, bytes: usize) -> Result<Self> {
        Ok(Self {
            block: Some(device.pinned_block(bytes)?),
            device: Arc::clone(device),
            busy: Busy::No,
        })
    }

    /// The content; empty while a copy is in progress.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match (&self.block, &self.busy) {
            // SAFETY: owned, initialised when it was allocated, and no copy is under way.
            (Some(b), Busy::No) => unsafe { std::slice::from_raw_parts(b.at.as_ptr(), b.bytes) },
            _ => &[],
        }
    }

    /// The content for writing; empty while a copy is in progress.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match (&self.block, &self.busy) {
            // SAFETY: as above, and borrowed for writing.
            (Some(b), Busy::No) => unsafe {
                std::slice::from_raw_parts_mut(b.at.as_ptr(), b.bytes)
            },
            _ => &mut [],
        }
    }

    /// Queues a copy from the device into the buffer at `offset`; [`Self::bytes`] is empty until [`Self::wait`]
    /// returns.
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

    /// Sets the marker for which [`Self::wait`] waits; to be called once the last copy into this buffer is queued.
    /// Without it, `wait` sets the marker itself, after whatever else was queued since.
    pub fn queued(&mut self) -> Result<()> {
        let mark = self.device.mark()?;
        if let Busy::Until(old) = std::mem::replace(&mut self.busy, Busy::Until(mark)) {
            self.device.unmark(old);
        }
        Ok(())
    }

    /// Waits until all copies into this buffer are done.
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
        self.device.park(block, mark);
    }
}
