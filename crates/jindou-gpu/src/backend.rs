//! What a device must be able to do. Two implementations: a GPU through the CUDA driver ([`crate::Cuda`])
//! and the same kernels on the CPU ([`crate::shim`]). Everything above this line is the same for both.

use jindou_model::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! kernels {
    ($($name:ident = $symbol:literal : $params:ident),* $(,)?) => {
        /// The kernels of `kernels/*.cu`.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[repr(usize)]
        pub enum Kernel {
            $(#[doc = concat!("`", $symbol, "`")] $name),*
        }

        impl Kernel {
            /// All of them, in order of their numbers.
            pub const ALL: &'static [Kernel] = &[$(Kernel::$name),*];

            /// The name in the compiled code.
            #[must_use]
            pub fn symbol(self) -> &'static str {
                match self { $(Self::$name => $symbol),* }
            }

            /// Bytes of its parameters.
            #[must_use]
            pub fn params_size(self) -> usize {
                match self { $(Self::$name => size_of::<crate::params::$params>()),* }
            }
        }
    };
}

kernels! {
    StartIntervals = "jd_start_intervals": StartIntervals,
    StartRuns = "jd_start_runs": StartKeys,
    StartBits = "jd_start_bits": StartKeys,
    Restrict = "jd_restrict": Restrict,
    Same = "jd_same": Same,
    Check = "jd_check": Check,
    Measure = "jd_measure": Measure,
    MeasureMany = "jd_measure_many": MeasureMany,
    Partition = "jd_partition": Partition,
    Expand = "jd_expand": Expand,
    ExpandWithin = "jd_expand_within": Expand,
    Intersect = "jd_intersect": Expand,
    ExpandOne = "jd_expand_one": ExpandOne,
    Checksum = "jd_checksum": Checksum,
    CheckAny = "jd_check_any": CheckAny,
    MeasureAny = "jd_measure_any": MeasureAny,
    ExpandAny = "jd_expand_any": ExpandAny,
}

/// A moment on the device's time line.
#[derive(Debug)]
pub struct Mark(pub(crate) u64);

/// A device. Work is queued in order; `download` and `sync` wait for it.
///
/// Addresses are the device's. The `unsafe` calls trust that ranges lie inside live allocations of this
/// backend.
pub trait Backend: Send + Sync {
    /// The device's name, for people.
    fn name(&self) -> String;
    /// Free and total bytes of device memory.
    fn memory(&self) -> Result<(u64, u64)>;
    /// Memory with undefined content, aligned to 256 bytes; `Error::Limit` when there is none.
    fn alloc(&self, bytes: usize) -> Result<u64>;
    /// Gives memory back, once work queued so far is done with it.
    ///
    /// # Safety
    /// `at` came from [`Self::alloc`] of this backend with these `bytes`, and no later work uses it.
    unsafe fn free(&self, at: u64, bytes: usize);
    /// Host memory that the device copies to and from at full speed.
    fn alloc_host(&self, bytes: usize) -> Result<*mut u8>;
    /// Gives it back.
    ///
    /// # Safety
    /// `at` came from [`Self::alloc_host`] of this backend with these `bytes`, and no copy is under way.
    unsafe fn free_host(&self, at: *mut u8, bytes: usize);
    /// Copies to the device; `from` may be reused on return.
    ///
    /// # Safety
    /// `to ..` of that length is live device memory.
    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<()>;
    /// Copies from the device and waits.
    ///
    /// # Safety
    /// `from ..` of that length is live device memory.
    unsafe fn download(&self, to: &mut [u8], from: u64) -> Result<()>;
    /// Fills with zeros.
    ///
    /// # Safety
    /// `at ..` of that length is live device memory.
    unsafe fn zero(&self, at: u64, bytes: usize) -> Result<()>;
    /// Copies inside the device.
    ///
    /// # Safety
    /// Both ranges are live device memory and do not overlap.
    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()>;
    /// Starts a kernel of `grid` blocks.
    ///
    /// # Safety
    /// `params` is the kernel's parameter struct, and every range it names is live until the work is done.
    unsafe fn launch(&self, kernel: Kernel, grid: u32, params: &[u8]) -> Result<()>;
    /// Waits for all queued work and reports what went wrong in it.
    fn sync(&self) -> Result<()>;
    /// The moment when all work queued so far is done.
    fn mark(&self) -> Result<Mark>;
    /// Seconds from one mark to a later one; waits for it.
    fn between(&self, from: Mark, to: Mark) -> Result<f64>;
}

/// Device memory that frees itself, and counts in a [`Memory`].
pub struct DeviceBuffer {
    backend: Arc<dyn Backend>,
    at: u64,
    bytes: usize,
    used: Option<Arc<AtomicU64>>,
}

impl DeviceBuffer {
    /// Uncounted memory.
    pub fn new(backend: &Arc<dyn Backend>, bytes: usize) -> Result<Self> {
        let bytes = bytes.max(1);
        Ok(Self {
            backend: Arc::clone(backend),
            at: backend.alloc(bytes)?,
            bytes,
            used: None,
        })
    }

    /// Memory with this content.
    pub fn with<T: bytemuck::NoUninit>(backend: &Arc<dyn Backend>, content: &[T]) -> Result<Self> {
        let b = Self::new(backend, size_of_val(content))?;
        // SAFETY: the buffer has the length of `content`.
        unsafe { backend.upload(b.at, bytemuck::cast_slice(content))? };
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
        let mut out = vec![T::zeroed(); entries.min(self.bytes / size_of::<T>())];
        // SAFETY: at most the buffer's length is read.
        unsafe {
            self.backend
                .download(bytemuck::cast_slice_mut(&mut out), self.at)?
        };
        Ok(out)
    }

    /// Overwrites it from `offset` on; what does not fit is an error.
    pub fn write(&self, offset: usize, content: &[u8]) -> Result<()> {
        if offset
            .checked_add(content.len())
            .is_none_or(|end| end > self.bytes)
        {
            return Err(jindou_model::Error::Internal(
                "a device copy out of bounds".into(),
            ));
        }
        // SAFETY: checked above.
        unsafe { self.backend.upload(self.at + offset as u64, content) }
    }

    /// Fills it with zeros.
    pub fn clear(&self) -> Result<()> {
        // SAFETY: exactly this buffer.
        unsafe { self.backend.zero(self.at, self.bytes) }
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if let Some(used) = &self.used {
            used.fetch_sub(self.bytes as u64, Ordering::Relaxed);
        }
        // SAFETY: allocated by this backend with this length; owners outlive the work they queue, and freeing
        // is ordered behind it.
        unsafe { self.backend.free(self.at, self.bytes) };
    }
}

/// A share of device memory for tables: allocations past the limit are refused before the device is asked.
#[derive(Clone)]
pub struct Memory {
    backend: Arc<dyn Backend>,
    limit: u64,
    used: Arc<AtomicU64>,
}

impl Memory {
    /// A share of `limit` bytes.
    #[must_use]
    pub fn new(backend: &Arc<dyn Backend>, limit: u64) -> Self {
        Self {
            backend: Arc::clone(backend),
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
        match self.backend.alloc(bytes as usize) {
            Ok(at) => {
                self.used.fetch_add(bytes, Ordering::Relaxed);
                Ok(Some(DeviceBuffer {
                    backend: Arc::clone(&self.backend),
                    at,
                    bytes: bytes as usize,
                    used: Some(Arc::clone(&self.used)),
                }))
            }
            Err(jindou_model::Error::Limit(_)) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// Pinned host memory that frees itself.
pub struct HostBuffer {
    backend: Arc<dyn Backend>,
    at: *mut u8,
    bytes: usize,
}

// SAFETY: the memory is plain and owned; nothing else holds the pointer.
unsafe impl Send for HostBuffer {}

impl HostBuffer {
    /// Zeroed memory of `bytes` bytes.
    pub fn new(backend: &Arc<dyn Backend>, bytes: usize) -> Result<Self> {
        let bytes = bytes.max(8);
        let at = backend.alloc_host(bytes)?;
        // SAFETY: `at` has `bytes` bytes.
        unsafe { at.write_bytes(0, bytes) };
        Ok(Self {
            backend: Arc::clone(backend),
            at,
            bytes,
        })
    }

    /// The content.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: owned, initialised at creation.
        unsafe { std::slice::from_raw_parts(self.at, self.bytes) }
    }

    /// The content.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: owned, initialised at creation, borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.bytes) }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated by this backend with this length; copies are waited for where they are made.
        unsafe { self.backend.free_host(self.at, self.bytes) };
    }
}
