//! The operations that a device must offer. Two implementations: a GPU through the CUDA driver ([`crate::Cuda`]) and
//! the same kernels on the CPU (the module `shim`, a feature); [`crate::faults`] makes either fail at a chosen call.
//! All code above this interface is the same for all devices. [`crate::Device`] is the layer that the rest of the crate
//! uses.

use crate::params::{CUT_TILE, STRIP_TILE, TILE};
use jindou_model::{Error, Result};
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

            /// Size of its parameters in bytes.
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
    /// Rows, or units of an expansion, that a block handles: `Narrow` and `Wide` in `kernels/device.cuh`.
    #[must_use]
    pub fn tile(self) -> u64 {
        match self {
            Self::Expand | Self::ExpandWithin | Self::ExpandAny | Self::Intersect => STRIP_TILE,
            Self::MeasureCut => CUT_TILE,
            _ => TILE,
        }
    }

    /// Blocks for this many rows or units; `None` if there are more than a launch may have.
    #[must_use]
    pub fn grid(self, units: u64) -> Option<u32> {
        let grid = u32::try_from(units.div_ceil(self.tile())).ok()?;
        (grid <= i32::MAX as u32).then_some(grid)
    }
}

/// A marker (event) in the device's queue. Released by [`Backend::unmark`].
#[derive(Debug)]
pub struct Mark(pub(crate) u64);

/// A device. Work is queued in order and calls do not wait: [`Self::mark`] and [`Self::reached`] tell when it is done.
///
/// Addresses are the device's. The `unsafe` calls trust that ranges lie inside live allocations of this
/// backend.
///
/// A device whose context is lost stays lost: from the first such error on, or from [`Self::lose`], [`Self::failure`]
/// returns the reason, every call fails at once, and releasing handles has no effect (they vanished with the context).
///
/// # Safety
/// Safe code reads and writes the memory from [`Self::alloc_host`], and leaves that from [`Self::alloc`] to the device.
/// So both must be as long as requested, aligned as promised, overlap no other live allocation, and stay until they are
/// released; host memory stays readable and writable even when the device is lost.
///
/// Only `unsafe` code can implement it:
///
/// ```compile_fail
/// struct Mine;
/// impl jindou_gpu::Backend for Mine {}
/// ```
pub unsafe trait Backend: Send + Sync {
    /// The device's name, for people.
    fn name(&self) -> String;
    /// The device, its driver and its kernels as one unique word, which identifies measured speeds.
    fn identity(&self) -> String {
        self.name()
    }
    /// Free and total bytes of device memory.
    fn memory(&self) -> Result<(u64, u64)>;
    /// Allocates at least one byte of memory with undefined content, aligned to 256 bytes; `Error::Limit` when there is
    /// none.
    fn alloc(&self, bytes: usize) -> Result<u64>;
    /// Frees memory once the work queued so far no longer uses it.
    ///
    /// # Safety
    /// `at` came from [`Self::alloc`] of this backend with these `bytes`, and no later work uses it.
    unsafe fn free(&self, at: u64, bytes: usize);
    /// Size in bytes of a page for [`Self::map_page`]; `None` for a device that does not map pages.
    fn page(&self) -> Option<usize> {
        None
    }
    /// Reserves addresses for a whole number of pages, without memory.
    fn reserve(&self, bytes: usize) -> Result<u64> {
        let _ = bytes;
        Err(Error::Unsupported("this device maps no pages".into()))
    }
    /// Releases reserved addresses.
    ///
    /// # Safety
    /// `at` came from [`Self::reserve`] with these `bytes`, and no page of them is mapped.
    unsafe fn unreserve(&self, at: u64, bytes: usize) {
        let _ = (at, bytes);
    }
    /// Backs a page of reserved addresses with memory of undefined content, at once; `Error::Limit` when there is none.
    ///
    /// # Safety
    /// `at` is the beginning of a page of reserved addresses that is not mapped; `bytes` is [`Self::page`].
    unsafe fn map_page(&self, at: u64, bytes: usize) -> Result<()> {
        let _ = (at, bytes);
        Err(Error::Unsupported("this device maps no pages".into()))
    }
    /// Removes the memory of a page, at once.
    ///
    /// # Safety
    /// `at` was mapped with these `bytes`, and all work that uses it is done, unless the device is lost.
    unsafe fn unmap_page(&self, at: u64, bytes: usize) {
        let _ = (at, bytes);
    }
    /// Allocates host memory that the device copies to and from at full speed, at least one byte, aligned to 256 bytes.
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
    /// not written to until the copy is done.
    unsafe fn upload(&self, to: u64, from: NonNull<u8>, bytes: usize) -> Result<()>;
    /// Queues a copy to the device on a second queue, after earlier such copies and concurrently with all other work.
    /// Work that reads the copied data must be ordered after it by [`Self::after`].
    ///
    /// # Safety
    /// As [`Self::upload`]; and no work that is queued and not known to be done touches `to ..`.
    unsafe fn upload_aside(&self, to: u64, from: NonNull<u8>, bytes: usize) -> Result<()>;
    /// A marker after all copies in the second queue so far.
    fn mark_aside(&self) -> Result<Mark>;
    /// Makes all work that is queued from here on wait for a marker, except copies in the second queue.
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
    /// A marker after all work queued so far.
    fn mark(&self) -> Result<Mark>;
    /// True once the device has reached a marker. Failures of the work before it are errors here.
    fn reached(&self, mark: &Mark) -> Result<bool>;
    /// Releases a mark.
    fn unmark(&self, mark: Mark);
    /// Seconds between two markers that the device has reached.
    fn between(&self, from: &Mark, to: &Mark) -> Result<f64>;
    /// Returns unused memory to the system.
    fn trim(&self);
    /// Longest time that queued work may take before the device is considered lost.
    fn patience(&self) -> Duration {
        Duration::from_secs(30)
    }
    /// Marks the device as lost. The first reason is kept.
    fn lose(&self, why: &str);
    /// The reason why the device is lost, if it is.
    fn failure(&self) -> Option<String>;
}
