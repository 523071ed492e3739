//! Operations that a device must offer. There are two implementations: a GPU through the CUDA driver ([`crate::Cuda`]),
//! and the same kernels compiled for the CPU (the module `shim`, behind a feature). [`crate::faults`] wraps either of
//! them and makes a chosen call fail. The rest of the crate does not call a backend directly but through
//! [`crate::Device`].

use crate::params::{CUT_TILE, STRIP_TILE, TILE};
use jindou_model::Result;
use std::ptr::NonNull;
use std::time::Duration;

macro_rules! kernels {
    ($($name:ident = $symbol:literal : $params:ident),* $(,)?) => {
        /// The kernels of `kernels/*.cu`.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[repr(usize)]
        pub enum Kernel {
            $(#[doc = concat!("`", $symbol, "`")] $name),*
        }

        impl Kernel {
            /// All kernels, in order of their numbers.
            pub const ALL: &'static [Kernel] = &[$(Kernel::$name),*];

            /// The symbol in the compiled code.
            #[must_use]
            pub fn symbol(self) -> &'static str {
                match self { $(Self::$name => $symbol),* }
            }

            /// Size of the kernel's parameter struct in bytes.
            #[must_use]
            pub fn params_size(self) -> usize {
                match self { $(Self::$name => size_of::<crate::params::$params>()),* }
            }
        }
    };
}

kernels! {
    StartIntervals = "jd_start_intervals": StartIntervalsParams,
    StartRuns = "jd_start_runs": StartKeysParams,
    StartBits = "jd_start_bits": StartKeysParams,
    Restrict = "jd_restrict": RestrictParams,
    Same = "jd_same": SameParams,
    Check = "jd_check": CheckParams,
    Measure = "jd_measure": MeasureParams,
    MeasureMany = "jd_measure_many": MeasureManyParams,
    MeasureCut = "jd_measure_cut": MeasureManyParams,
    Expand = "jd_expand": ExpandParams,
    ExpandWithin = "jd_expand_within": ExpandParams,
    Intersect = "jd_intersect": ExpandParams,
    ExpandOne = "jd_expand_one": ExpandOneParams,
    Checksum = "jd_checksum": ChecksumParams,
    CheckAny = "jd_check_any": CheckAnyParams,
    MeasureAny = "jd_measure_any": MeasureAnyParams,
    ExpandAny = "jd_expand_any": ExpandAnyParams,
    Compare = "jd_compare": CompareParams,
    Mark = "jd_mark": MarkParams,
    Test = "jd_test": TestParams,
    Distinct = "jd_distinct": DistinctParams,
    Gather = "jd_gather": GatherParams,
    GroupAdd = "jd_group_add": GroupAddParams,
    GroupBest = "jd_group_best": GroupBestParams,
    GroupEnds = "jd_group_ends": GroupEndsParams,
    GroupSlots = "jd_group_slots": GroupSlotsParams,
    GroupRows = "jd_group_rows": GroupRowsParams,
    GroupKeys = "jd_group_keys": GroupKeysParams,
    GroupIds = "jd_group_ids": GroupIdsParams,
    SortKeys = "jd_sort_keys": SortKeysParams,
    SortBins = "jd_sort_bins": SortBinsParams,
    SortPick = "jd_sort_pick": SortPickParams,
    SortKeep = "jd_sort_keep": SortKeepParams,
}

impl Kernel {
    /// Number of rows, or of units of an expansion, that one block of threads handles: `Narrow` and `Wide` in
    /// `kernels/device.cuh`.
    #[must_use]
    pub fn tile(self) -> u64 {
        match self {
            Self::Expand | Self::ExpandWithin | Self::ExpandAny | Self::Intersect => STRIP_TILE,
            Self::MeasureCut => CUT_TILE,
            _ => TILE,
        }
    }

    /// Number of blocks for this many rows or units; `None` if a launch cannot have that many.
    #[must_use]
    pub fn grid(self, units: u64) -> Option<u32> {
        let grid = u32::try_from(units.div_ceil(self.tile())).ok()?;
        (grid <= i32::MAX as u32).then_some(grid)
    }
}

/// A marker (a CUDA event) in the device's queue of work. Release it with [`Backend::unmark`].
#[derive(Debug)]
pub struct Mark(pub(crate) u64);

/// The queue in which a copy to the device is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyLane {
    /// In order with all other work.
    Ordered,
    /// In the second queue, in which copies follow each other but run concurrently with all other work. Work that reads
    /// the copied data must be ordered after the copy by [`Backend::after`].
    Aside,
}

/// A device. Calls queue work, which the device does in order, and return at once; [`Self::mark`] and [`Self::reached`]
/// tell when it is done.
///
/// Addresses are those of the device's memory. The `unsafe` calls do not check that ranges lie inside live allocations
/// of this backend.
///
/// A device whose context is lost stays lost. From the first such error, or from a call of [`Self::lose`],
/// [`Self::failure`] returns the reason, every call fails at once, and releasing handles has no effect, since the
/// driver freed them with the context.
///
/// # Safety
/// Safe code reads and writes the memory from [`Self::alloc_host`], and assumes that only the device touches memory
/// from [`Self::alloc`]. So an allocation of either kind must be as long as requested, aligned as promised, overlap no
/// other live allocation, and stay until it is released. Host memory stays readable and writable even when the device
/// is lost.
///
/// Therefore only `unsafe` code can implement this trait:
///
/// ```compile_fail
/// struct Mine;
/// impl jindou_gpu::Backend for Mine {}
/// ```
pub unsafe trait Backend: Send + Sync {
    /// The device's name, for messages.
    fn name(&self) -> String;
    /// An identifier of this device, its driver version and its kernels, under which measured speeds are stored.
    fn identity(&self) -> String {
        self.name()
    }
    /// Free and total bytes of device memory.
    fn memory(&self) -> Result<(u64, u64)>;
    /// Allocates at least one byte of memory with undefined content, aligned to 256 bytes; `Error::Limit` if the
    /// device's memory is full.
    fn alloc(&self, bytes: usize) -> Result<u64>;
    /// Frees memory after the work queued so far, which may still use it.
    ///
    /// # Safety
    /// `at` came from [`Self::alloc`] of this backend with these `bytes`, and no later work uses it.
    unsafe fn free(&self, at: u64, bytes: usize);
    /// Size in bytes of the pages that [`Self::map_page`] maps; `None` for a device that cannot map pages.
    fn page(&self) -> Option<usize>;
    /// Reserves an address range of a whole number of pages, none of which is backed by memory yet.
    fn reserve(&self, bytes: usize) -> Result<u64>;
    /// Releases a reserved address range.
    ///
    /// # Safety
    /// `at` came from [`Self::reserve`] with these `bytes`, and no page of them is mapped.
    unsafe fn unreserve(&self, at: u64, bytes: usize);
    /// Backs one page of a reserved range with memory of undefined content. Takes effect at once, not in queue order;
    /// `Error::Limit` if the device's memory is full.
    ///
    /// # Safety
    /// `at` is the beginning of a page of reserved addresses that is not mapped; `bytes` is [`Self::page`].
    unsafe fn map_page(&self, at: u64, bytes: usize) -> Result<()>;
    /// Unmaps a page and frees its memory, at once and not in queue order.
    ///
    /// # Safety
    /// `at` was mapped with these `bytes`, and all work that uses it is done, unless the device is lost.
    unsafe fn unmap_page(&self, at: u64, bytes: usize);
    /// Allocates pinned host memory, between which and the device copies run at full speed: at least one byte, aligned
    /// to 256 bytes.
    fn alloc_host(&self, bytes: usize) -> Result<NonNull<u8>>;
    /// Frees host memory.
    ///
    /// # Safety
    /// `at` came from [`Self::alloc_host`] of this backend with these `bytes`, and no copy is in progress, unless the
    /// device is lost.
    unsafe fn free_host(&self, at: NonNull<u8>, bytes: usize);
    /// Queues a copy to the device.
    ///
    /// # Safety
    /// `to ..` of that length is live device memory; `from ..` came from [`Self::alloc_host`] and is
    /// not written to until the copy is done. For [`CopyLane::Aside`], no work that is queued and not known to be done
    /// touches `to ..`.
    unsafe fn upload(&self, to: u64, from: NonNull<u8>, bytes: usize, lane: CopyLane)
    -> Result<()>;
    /// Makes all work queued from here on wait for a marker, except copies in the second queue.
    fn after(&self, mark: &Mark) -> Result<()>;
    /// Queues a copy from the device.
    ///
    /// # Safety
    /// `from ..` of that length is live device memory; `to ..` came from [`Self::alloc_host`] and is not touched until
    /// the copy is done.
    unsafe fn download(&self, to: NonNull<u8>, from: u64, bytes: usize) -> Result<()>;
    /// Fills a range with zeros.
    ///
    /// # Safety
    /// `at ..` of that length is live device memory.
    unsafe fn zero(&self, at: u64, bytes: usize) -> Result<()>;
    /// Copies within the device.
    ///
    /// # Safety
    /// Both ranges are live device memory and do not overlap.
    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()>;
    /// Starts a kernel of `grid` blocks.
    ///
    /// # Safety
    /// `params` is the kernel's parameter struct, and every range it names is live until the work is done.
    unsafe fn launch(&self, kernel: Kernel, grid: u32, params: &[u8]) -> Result<()>;
    /// A marker after all work in a queue so far.
    fn mark_in(&self, lane: CopyLane) -> Result<Mark>;
    /// A marker after all work queued so far, except copies in the second queue.
    fn mark(&self) -> Result<Mark> {
        self.mark_in(CopyLane::Ordered)
    }
    /// True once the device has done all work before a marker. An error of that work is returned here.
    fn reached(&self, mark: &Mark) -> Result<bool>;
    /// Releases a mark.
    fn unmark(&self, mark: Mark);
    /// Seconds between two markers that the device has reached.
    fn between(&self, from: &Mark, to: &Mark) -> Result<f64>;
    /// Returns unused memory of the device's pool to the system.
    fn trim(&self);
    /// Longest time that queued work may take; after it the device is considered lost.
    fn patience(&self) -> Duration {
        Duration::from_secs(30)
    }
    /// Marks the device as lost. The first reason is kept.
    fn lose(&self, why: &str);
    /// The reason why the device is lost, if it is.
    fn failure(&self) -> Option<String>;
}
