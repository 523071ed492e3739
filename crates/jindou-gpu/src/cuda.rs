//! A GPU through the CUDA driver, which is loaded on demand.

use crate::backend::{Backend, Kernel, Mark};
use cudarc::driver::{result, sys};
use jindou_model::sync;
use jindou_model::{Error, Resource, Result};
use std::borrow::Cow;
use std::ffi::{CString, c_void};
use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock};

/// Bytes with the alignment that the driver prefers.
#[repr(align(64))]
struct Aligned<T: ?Sized>(T);

static ALIGNED: &Aligned<[u8]> = &Aligned(*include_bytes!("../kernels/jindou.fatbin"));

/// The kernels, compiled by `kernels/build.sh`: machine code from Turing to Blackwell, and PTX for newer chips.
pub static FATBIN: &[u8] = &ALIGNED.0;

/// The driver interface for which the kernels and the bindings were made, and the first driver that has it.
const NEEDED: (i32, &str) = (13_000, "580");

/// Threads per block, as in the kernels.
const THREADS: u32 = 256;

/// Every driver function that is called here. The bindings panic, which ends the query, if one is missing, so all are
/// looked up first.
const SYMBOLS: [&str; 43] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetUuid_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxSetCurrent",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamWaitEvent",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuMemPoolCreate",
    "cuMemPoolDestroy",
    "cuMemPoolTrimTo",
    "cuMemPoolGetAttribute",
    "cuMemPoolSetAttribute",
    "cuMemAllocFromPoolAsync",
    "cuMemFreeAsync",
    "cuMemGetAllocationGranularity",
    "cuMemAddressReserve",
    "cuMemAddressFree",
    "cuMemCreate",
    "cuMemMap",
    "cuMemSetAccess",
    "cuMemUnmap",
    "cuMemRelease",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuMemGetInfo_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemsetD8Async",
    "cuLaunchKernel",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventQuery",
    "cuEventElapsedTime_v2",
];

/// A GPU with two streams. The first orders all work, including allocations; the second has the copies of
/// [`Backend::upload_aside`].
///
/// Memory comes from a pool that keeps freed memory until [`Backend::trim`], since plans allocate all the time.
pub struct Cuda {
    device: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
    aside: sys::CUstream,
    module: sys::CUmodule,
    pool: sys::CUmemoryPool,
    functions: Vec<sys::CUfunction>,
    /// Bytes of a page.
    page: usize,
    /// Events not in use.
    events: Mutex<Vec<u64>>,
    name: String,
    identity: String,
    lost: OnceLock<String>,
}

// SAFETY: the driver's handles may be used from any thread that has made the context current, which every
// method does first.
unsafe impl Send for Cuda {}
// SAFETY: the driver synchronises its own calls.
unsafe impl Sync for Cuda {}

/// True for errors after which the context still works: the call was wrong or came at a bad time. For all others the
/// context, the device or the driver is gone.
fn is_harmless(e: sys::CUresult) -> bool {
    use sys::cudaError_enum as e_;
    matches!(
        e,
        e_::CUDA_ERROR_INVALID_VALUE
            | e_::CUDA_ERROR_OUT_OF_MEMORY
            | e_::CUDA_ERROR_INVALID_HANDLE
            | e_::CUDA_ERROR_NOT_FOUND
            | e_::CUDA_ERROR_NOT_READY
            | e_::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
            | e_::CUDA_ERROR_NOT_PERMITTED
            | e_::CUDA_ERROR_NOT_SUPPORTED
    )
}

fn says(e: result::DriverError) -> String {
    format!("the NVIDIA driver says {:?}", e.0)
}

/// The kernels' machine code: built into this program, or from the file that `JINDOU_FATBIN` names, so that kernels can
/// be tried without rebuilding the program.
fn kernels() -> Result<Cow<'static, [u8]>, String> {
    let Some(file) = std::env::var_os("JINDOU_FATBIN") else {
        return Ok(Cow::Borrowed(FATBIN));
    };
    let code = std::fs::read(&file)
        .map_err(|e| format!("the kernels in {} cannot be read: {e}", file.display()))?;
    // The driver takes no length: it trusts the header.
    let length = code.get(8..16).and_then(|b| b.try_into().ok());
    let header = code.get(6..8).and_then(|b| b.try_into().ok());
    let whole = header.zip(length).is_some_and(|(h, l)| {
        let end = u64::from(u16::from_le_bytes(h)).checked_add(u64::from_le_bytes(l));
        code.starts_with(&0xBA55_ED50u32.to_le_bytes()) && end == Some(code.len() as u64)
    });
    if !whole {
        return Err(format!("{} is not a fatbin", file.display()));
    }
    Ok(Cow::Owned(code))
}

/// Calls the driver, catching panics. The bindings panic if a function is missing; all are looked up first, so this is
/// a last resort.
fn guarded<T>(what: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(what))
        .unwrap_or_else(|_| Err("the NVIDIA driver's library (libcuda) cannot be used".to_owned()))
}

impl Cuda {
    /// The first GPU, or a sentence that says why there is none.
    pub fn open() -> Result<Self, String> {
        Self::open_number(0)
    }

    /// The GPU with this number, from 0, or a sentence that says why there is none.
    pub fn open_number(number: usize) -> Result<Self, String> {
        let opened = guarded(|| Self::look(number));
        opened.map_err(|why| format!("no GPU is used: {why}"))
    }

    /// Number of GPUs that the driver finds; 0 if there is no usable driver.
    #[must_use]
    pub fn count() -> usize {
        guarded(Self::ready).unwrap_or(0)
    }

    /// The number of GPUs, once the driver is known to be usable.
    fn ready() -> Result<usize, String> {
        // SAFETY: looks for the library and loads it; no other effect.
        if !unsafe { sys::is_culib_present() } {
            return Err("the NVIDIA driver (libcuda) is not installed".into());
        }
        // SAFETY: the library is there.
        let library = unsafe { sys::culib() };
        // SAFETY: the symbol is looked for, not called.
        let there = |name: &&str| unsafe { library.get::<*const c_void>(name.as_bytes()) }.is_ok();
        let too_old = |has: &str| {
            let (major, minor) = (NEEDED.0 / 1000, NEEDED.0 % 1000 / 10);
            format!(
                "the NVIDIA driver {has}, but CUDA {major}.{minor} is needed: install driver {} or newer",
                NEEDED.1
            )
        };
        if !there(&"cuDriverGetVersion") {
            return Err(too_old("does not report its version"));
        }
        let mut version = 0;
        // SAFETY: a place for a number.
        unsafe { sys::cuDriverGetVersion(&raw mut version) }
            .result()
            .map_err(says)?;
        if version < NEEDED.0 {
            let has = format!("is for CUDA {}.{}", version / 1000, version % 1000 / 10);
            return Err(too_old(&has));
        }
        if let Some(missing) = SYMBOLS.iter().find(|s| !there(s)) {
            return Err(format!(
                "the NVIDIA driver's library lacks {missing}: install driver {} or newer",
                NEEDED.1
            ));
        }
        result::init().map_err(says)?;
        let count = result::device::get_count().map_err(says)?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    fn look(number: usize) -> Result<Self, String> {
        let count = Self::ready()?;
        if count == 0 {
            return Err("the NVIDIA driver finds none".into());
        }
        let ordinal = i32::try_from(number)
            .ok()
            .filter(|_| number < count)
            .ok_or_else(|| {
                format!("the NVIDIA driver finds {count}, but no GPU number {number}")
            })?;
        let device = result::device::get(ordinal).map_err(says)?;
        let name = result::device::get_name(device).map_err(says)?;
        let mut driver = 0;
        // SAFETY: a place for a number.
        unsafe { sys::cuDriverGetVersion(&raw mut driver) }
            .result()
            .map_err(says)?;
        let uuid = result::device::get_uuid(device).map_err(says)?;
        let uuid: String = uuid
            .bytes
            .iter()
            .map(|b| format!("{:02x}", *b as u8))
            .collect();
        let kernels = kernels()?;
        let hash = crate::checksum::of_bytes(&kernels);
        let identity = format!("{uuid} driver {driver} kernels {hash:016x}");
        // SAFETY: a device that the driver returned; released on drop.
        let context = unsafe { result::primary_ctx::retain(device) }.map_err(says)?;
        let mut gpu = Self {
            device,
            context,
            stream: std::ptr::null_mut(),
            aside: std::ptr::null_mut(),
            module: std::ptr::null_mut(),
            pool: std::ptr::null_mut(),
            functions: Vec::new(),
            page: 0,
            events: Mutex::default(),
            name,
            identity,
            lost: OnceLock::new(),
        };
        match gpu.prepare(&kernels) {
            Ok(()) => Ok(gpu),
            Err(Error::Internal(why)) => Err(why),
            Err(e) => Err(e.to_string()),
        }
    }

    fn prepare(&mut self, kernels: &[u8]) -> Result<()> {
        self.bind()?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking);
        self.stream = self.done("make a stream", stream)?;
        let aside = result::stream::create(result::stream::StreamKind::NonBlocking);
        self.aside = self.done("make a stream", aside)?;
        let props = sys::CUmemPoolProps {
            allocType: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: self.location(),
            win32SecurityAttributes: std::ptr::null_mut(),
            maxSize: 0,
            usage: 0,
            reserved: [0; 54],
        };
        // SAFETY: complete properties of a pool on this device.
        let pool = unsafe { result::mem_pool::create(&raw const props) };
        self.pool = self.done("make a memory pool", pool)?;
        let pages = self.page_kind();
        // SAFETY: a place for a number, and complete properties.
        let granularity = unsafe {
            sys::cuMemGetAllocationGranularity(
                &raw mut self.page,
                &raw const pages,
                sys::CUmemAllocationGranularity_flags_enum::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED,
            )
        };
        self.done("report the size of its pages", granularity.result())?;
        let mut keep = u64::MAX;
        // SAFETY: the pool was just made; the attribute is a 64-bit number.
        let set = unsafe {
            result::mem_pool::set_attribute(
                self.pool,
                sys::CUmemPool_attribute_enum::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                (&raw mut keep).cast(),
            )
        };
        self.done("set up its memory pool", set)?;
        // SAFETY: a whole fatbin, copied by the driver; one from a file is as trusted as the program.
        let module = unsafe { result::module::load_data(kernels.as_ptr().cast()) };
        if let Err(result::DriverError(
            sys::cudaError_enum::CUDA_ERROR_NO_BINARY_FOR_GPU
            | sys::cudaError_enum::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        )) = module
        {
            return Err(Error::Internal(format!(
                "the kernels have no code for {}: a Turing card (compute capability 7.5) or newer is needed",
                self.name
            )));
        }
        self.module = self.done("load the kernels", module)?;
        for k in Kernel::ALL {
            let name = CString::new(k.symbol()).map_err(|e| Error::Internal(e.to_string()))?;
            // SAFETY: the module is loaded as long as `self` lives.
            let f = unsafe { result::module::get_function(self.module, name) };
            let f = self.done(&format!("find the kernel {}", k.symbol()), f)?;
            self.functions.push(f);
        }
        Ok(())
    }

    /// Properties of pages on this device.
    fn page_kind(&self) -> sys::CUmemAllocationProp {
        sys::CUmemAllocationProp {
            type_: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            requestedHandleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: self.location(),
            win32HandleMetaData: std::ptr::null_mut(),
            allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
                compressionType: 0,
                gpuDirectRDMACapable: 0,
                usage: 0,
                reserved: [0; 4],
            },
        }
    }

    fn location(&self) -> sys::CUmemLocation {
        sys::CUmemLocation {
            type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: self.device,
        }
    }

    /// Converts a call's outcome. Errors that the context does not survive make the device lost.
    fn done<T>(&self, what: &str, outcome: Result<T, result::DriverError>) -> Result<T> {
        outcome.map_err(|result::DriverError(e)| {
            if e == sys::cudaError_enum::CUDA_ERROR_OUT_OF_MEMORY {
                return Error::limit(Resource::Device, "the GPU's memory is full");
            }
            if !is_harmless(e) {
                self.lose(&format!("it failed to {what} ({e:?})"));
            }
            Error::Internal(format!("the GPU failed to {what} ({e:?})"))
        })
    }

    /// Makes the context current for this thread; an error for a lost device.
    fn bind(&self) -> Result<()> {
        if let Some(why) = self.lost.get() {
            return Err(Error::Internal(format!("the GPU is lost: {why}")));
        }
        // SAFETY: the context is retained as long as `self` lives.
        let bound = unsafe { result::ctx::set_current(self.context) };
        self.done("answer", bound)
    }

    fn pool_bytes(&self, what: sys::CUmemPool_attribute_enum) -> Result<u64> {
        let mut n = 0u64;
        // SAFETY: these attributes are 64-bit numbers.
        let got = unsafe { result::mem_pool::get_attribute(self.pool, what, (&raw mut n).cast()) };
        self.done("query its memory", got)?;
        Ok(n)
    }

    /// A marker after all work of a stream so far.
    fn record(&self, stream: sys::CUstream) -> Result<Mark> {
        self.bind()?;
        let kept = self.events().pop();
        let event = match kept {
            Some(e) => e,
            None => {
                let event = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT);
                self.done("make an event", event)? as u64
            }
        };
        // SAFETY: event and stream belong to this context.
        let recorded = unsafe { result::event::record(event as sys::CUevent, stream) };
        match self.done("record an event", recorded) {
            Ok(()) => Ok(Mark(event)),
            Err(e) => {
                self.events().push(event);
                Err(e)
            }
        }
    }

    fn events(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        sync::lock(&self.events)
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // All handles of a lost context vanish with it.
        let close = |gpu: &Self, handle: &dyn Fn() -> Result<(), result::DriverError>| {
            if gpu.lost.get().is_none() {
                let _ = gpu.done("close", handle());
            }
        };
        let _ = self.bind();
        for e in std::mem::take(&mut *self.events()) {
            // SAFETY: made by this driver, not in use.
            close(self, &|| unsafe {
                result::event::destroy(e as sys::CUevent)
            });
        }
        // Nothing uses the others after this: the code that queued work has waited for it.
        if !self.module.is_null() {
            // SAFETY: loaded in `prepare`, unloaded once.
            close(self, &|| unsafe { result::module::unload(self.module) });
        }
        for stream in [self.aside, self.stream] {
            if !stream.is_null() {
                // SAFETY: made in `prepare`, destroyed once.
                close(self, &|| unsafe { result::stream::destroy(stream) });
            }
        }
        if !self.pool.is_null() {
            // SAFETY: as above.
            close(self, &|| unsafe { result::mem_pool::destroy(self.pool) });
        }
        let device = self.device;
        let release = move || {
            // SAFETY: retained in `look`, released once. Errors at the end change nothing.
            let _ = unsafe { result::primary_ctx::release(device) };
        };
        if self.lost.get().is_none() {
            release();
            return;
        }
        // Releasing a lost context may take a broken driver for ever, so nothing waits for it.
        let _ = std::thread::Builder::new()
            .name("gpu-release".into())
            .spawn(release);
    }
}

// SAFETY: the driver gives whole allocations that overlap no other, on 256 bytes in its pool and on pages in host memory; host
// memory stays mapped until it is freed or the context is destroyed, which happens when `self` goes.
unsafe impl Backend for Cuda {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn memory(&self) -> Result<(u64, u64)> {
        use sys::CUmemPool_attribute_enum::{
            CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
        };
        self.bind()?;
        let (free, total) = self.done("query its memory", result::mem_get_info())?;
        // Unused memory in the pool is free as well.
        let held = self.pool_bytes(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?;
        let used = self.pool_bytes(CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?;
        Ok((free as u64 + held.saturating_sub(used), total as u64))
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        self.bind()?;
        // SAFETY: freed through `free`, ordered by the same stream.
        let at = unsafe { result::mem_pool::alloc_async(self.pool, bytes.max(1), self.stream) };
        self.done("give memory", at)
    }

    unsafe fn free(&self, at: u64, _bytes: usize) {
        if self.bind().is_ok() {
            // SAFETY: the caller got it from `alloc`.
            let freed = unsafe { result::free_async(at, self.stream) };
            // An error can only be reported to the next caller.
            let _ = self.done("take memory back", freed);
        }
    }

    fn page(&self) -> Option<usize> {
        (self.page > 0).then_some(self.page)
    }

    fn reserve(&self, bytes: usize) -> Result<u64> {
        self.bind()?;
        let mut at = 0;
        // SAFETY: a place for an address; freed through `unreserve`.
        let reserved = unsafe { sys::cuMemAddressReserve(&raw mut at, bytes, 0, 0, 0) };
        self.done("reserve addresses", reserved.result())?;
        Ok(at)
    }

    unsafe fn unreserve(&self, at: u64, bytes: usize) {
        if self.bind().is_ok() {
            // SAFETY: the caller got it from `reserve`.
            let freed = unsafe { sys::cuMemAddressFree(at, bytes) };
            let _ = self.done("take addresses back", freed.result());
        }
    }

    unsafe fn map_page(&self, at: u64, bytes: usize) -> Result<()> {
        self.bind()?;
        let (mut handle, kind) = (0, self.page_kind());
        // SAFETY: a place for a handle, and complete properties.
        let made = unsafe { sys::cuMemCreate(&raw mut handle, bytes, &raw const kind, 0) };
        self.done("give memory", made.result())?;
        // SAFETY: the caller vouches for the addresses; the memory is a page, just made.
        let mapped = unsafe { sys::cuMemMap(at, bytes, 0, handle, 0) };
        let mapped = self.done("map a page", mapped.result());
        // SAFETY: just made. The mapping keeps the memory; without one it goes.
        let released = unsafe { sys::cuMemRelease(handle) };
        let released = self.done("map a page", released.result());
        mapped?;
        let access = sys::CUmemAccessDesc {
            location: self.location(),
            flags: sys::CUmemAccess_flags_enum::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        let allowed = released.and_then(|()| {
            // SAFETY: the page that was just mapped, and one description.
            let allowed = unsafe { sys::cuMemSetAccess(at, bytes, &raw const access, 1) };
            self.done("map a page", allowed.result())
        });
        if allowed.is_err() {
            // SAFETY: mapped above, and nothing uses it.
            unsafe { self.unmap_page(at, bytes) };
        }
        allowed
    }

    unsafe fn unmap_page(&self, at: u64, bytes: usize) {
        if self.bind().is_ok() {
            // SAFETY: the caller mapped it, and nothing uses it any more.
            let unmapped = unsafe { sys::cuMemUnmap(at, bytes) };
            let _ = self.done("take a page back", unmapped.result());
        }
    }

    fn alloc_host(&self, bytes: usize) -> Result<NonNull<u8>> {
        self.bind()?;
        // Flags 0: not write-combined, since the host reads it.
        // SAFETY: freed through `free_host`.
        let at = unsafe { result::malloc_host(bytes.max(1), 0) };
        NonNull::new(self.done("pin host memory", at)?.cast())
            .ok_or_else(|| Error::Internal("the GPU failed to pin host memory".into()))
    }

    unsafe fn free_host(&self, at: NonNull<u8>, _bytes: usize) {
        if self.bind().is_ok() {
            // SAFETY: the caller got it from `alloc_host`.
            let freed = unsafe { result::free_host(at.as_ptr().cast()) };
            let _ = self.done("take pinned memory back", freed);
        }
    }

    unsafe fn upload(&self, to: u64, from: NonNull<u8>, bytes: usize) -> Result<()> {
        self.bind()?;
        let from = from.as_ptr().cast();
        // SAFETY: the caller vouches for both ranges.
        let queued = unsafe { sys::cuMemcpyHtoDAsync_v2(to, from, bytes, self.stream) };
        self.done("take data", queued.result())
    }

    unsafe fn upload_aside(&self, to: u64, from: NonNull<u8>, bytes: usize) -> Result<()> {
        self.bind()?;
        let from = from.as_ptr().cast();
        // SAFETY: the caller vouches for both ranges.
        let queued = unsafe { sys::cuMemcpyHtoDAsync_v2(to, from, bytes, self.aside) };
        self.done("take data", queued.result())
    }

    fn mark_aside(&self) -> Result<Mark> {
        self.record(self.aside)
    }

    fn after(&self, mark: &Mark) -> Result<()> {
        self.bind()?;
        // SAFETY: stream and event belong to this context, and the event was recorded.
        let queued = unsafe { sys::cuStreamWaitEvent(self.stream, mark.0 as sys::CUevent, 0) };
        self.done("wait for a copy", queued.result())
    }

    unsafe fn download(&self, to: NonNull<u8>, from: u64, bytes: usize) -> Result<()> {
        self.bind()?;
        let to = to.as_ptr().cast();
        // SAFETY: the caller vouches for both ranges.
        let queued = unsafe { sys::cuMemcpyDtoHAsync_v2(to, from, bytes, self.stream) };
        self.done("give data", queued.result())
    }

    unsafe fn zero(&self, at: u64, bytes: usize) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller vouches for the range.
        let queued = unsafe { result::memset_d8_async(at, 0, bytes, self.stream) };
        self.done("fill memory", queued)
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller vouches for the ranges.
        let queued = unsafe { result::memcpy_dtod_async(to, from, bytes, self.stream) };
        self.done("copy", queued)
    }

    unsafe fn launch(&self, kernel: Kernel, grid: u32, params: &[u8]) -> Result<()> {
        if params.len() != kernel.params_size() {
            return Err(Error::Internal(format!(
                "wrong parameters for {}",
                kernel.symbol()
            )));
        }
        self.bind()?;
        // One parameter, a struct; the driver copies it before the call returns.
        let mut args = [params.as_ptr() as *mut c_void];
        // SAFETY: the function takes one struct of this size; the caller vouches for what it points to.
        let queued = unsafe {
            result::launch_kernel(
                self.functions[kernel as usize],
                (grid, 1, 1),
                (THREADS, 1, 1),
                0,
                self.stream,
                &mut args,
            )
        };
        self.done(&format!("run {}", kernel.symbol()), queued)
    }

    fn mark(&self) -> Result<Mark> {
        self.record(self.stream)
    }

    fn reached(&self, mark: &Mark) -> Result<bool> {
        self.bind()?;
        // SAFETY: recorded by `mark`.
        match unsafe { result::event::query(mark.0 as sys::CUevent) } {
            Err(result::DriverError(sys::cudaError_enum::CUDA_ERROR_NOT_READY)) => Ok(false),
            done => self.done("finish its work", done).map(|()| true),
        }
    }

    fn unmark(&self, mark: Mark) {
        self.events().push(mark.0);
    }

    fn between(&self, from: &Mark, to: &Mark) -> Result<f64> {
        self.bind()?;
        // SAFETY: both events were recorded by `mark`.
        let ms = unsafe { result::event::elapsed(from.0 as sys::CUevent, to.0 as sys::CUevent) };
        Ok(f64::from(self.done("report the time", ms)?) * 1e-3)
    }

    fn trim(&self) {
        if self.bind().is_ok() {
            // SAFETY: the pool lives as long as `self`.
            let trimmed = unsafe { result::mem_pool::trim_to(self.pool, 0) };
            let _ = self.done("give memory back to the system", trimmed);
        }
    }

    fn lose(&self, why: &str) {
        let _ = self.lost.set(why.to_owned());
    }

    fn failure(&self) -> Option<String> {
        self.lost.get().cloned()
    }
}
