//! Statistics of a shim: bytes that kernels move, requests of the host, and allocated memory.

/// Bytes that a kernel moved, counted by its own accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct KernelCounts {
    /// Bytes read sequentially.
    pub streamed: u64,
    /// Bytes read at random.
    pub random: u64,
    /// Number of the random accesses.
    pub random_accesses: u64,
    /// Bytes written.
    pub written: u64,
    /// Accesses of whole warps, by kind (streamed, random, cached, written); with [`ShimOptions::sectors`].
    pub requests: [u64; 4],
    /// Sectors of 32 bytes that these accesses touched, each counted once per access.
    pub sectors: [u64; 4],
    /// Ids of lists that were read, before conditions were tested.
    pub candidates: u64,
}

impl KernelCounts {
    /// All bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.streamed + self.random + self.written
    }
}

/// The host's requests so far, which cost microseconds on a GPU, whatever the kernels do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostTraffic {
    /// Kernels started.
    pub launches: u64,
    /// Number of times the host waited.
    pub syncs: u64,
    /// Allocations of device memory.
    pub allocations: u64,
    /// Pages mapped.
    pub pages: u64,
    /// Allocations of pinned host memory.
    pub pinned: u64,
    /// Copies to the device.
    pub uploads: u64,
    /// Bytes of copies to the device.
    pub upload_bytes: u64,
    /// Copies from the device.
    pub downloads: u64,
    /// Bytes of copies from the device.
    pub download_bytes: u64,
    /// Copies inside the device.
    pub copies: u64,
    /// Bytes of copies inside the device.
    pub copy_bytes: u64,
    /// Ranges filled with zeros.
    pub fills: u64,
    /// Number of times that unused memory was returned.
    pub trims: u64,
}

/// Memory and markers of a shim that are allocated at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Bytes of device memory.
    pub device: u64,
    /// Bytes of device memory that the pool holds, used or not.
    pub reserved: u64,
    /// Bytes of pinned host memory.
    pub pinned: u64,
    /// Number of markers.
    pub marks: u64,
}
