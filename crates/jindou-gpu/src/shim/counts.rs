//! Statistics of a shim: bytes that kernels move, requests of the host, and memory that is allocated.

/// Bytes that one launch moved, counted at each access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct KernelCounts {
    /// Bytes read sequentially.
    pub streamed: u64,
    /// Bytes read at random.
    pub random: u64,
    /// Number of random accesses.
    pub random_accesses: u64,
    /// Bytes written.
    pub written: u64,
    /// Number of accesses by whole warps: streamed, random, cached, written. Only with [`ShimOptions::sectors`].
    pub requests: [u64; 4],
    /// Number of sectors of 32 bytes that these accesses touched, by the same kinds. A sector counts once per access.
    pub sectors: [u64; 4],
    /// Number of ids of lists that were read, before conditions were tested.
    pub candidates: u64,
}

impl KernelCounts {
    /// Bytes read and written, of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.streamed + self.random + self.written
    }
}

/// The host's requests to the device. On a GPU each costs some microseconds, however little it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostTraffic {
    /// Kernels started.
    pub launches: u64,
    /// Number of times that the host waited for the device.
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
    /// Number of times that unused memory was returned to the system.
    pub trims: u64,
}

/// Memory and markers of a shim that are allocated at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Bytes of device memory.
    pub device: u64,
    /// Bytes of device memory held by the pool, whether in use or not.
    pub reserved: u64,
    /// Bytes of pinned host memory.
    pub pinned: u64,
    /// Number of markers.
    pub marks: u64,
}
