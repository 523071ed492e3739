//! A GPU through the CUDA driver, which is loaded on demand.

mod open;

use crate::backend::{Backend, CopyLane, Kernel, Mark};
use cudarc::driver::{result, sys};
use jindou_model::sync;
use jindou_model::{Error, Resource, Result};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock};

/// Content with the alignment that the driver prefers for compiled kernels.
#[repr(align(64))]
struct Aligned<T: ?Sized>(T);

static ALIGNED: &Aligned<[u8]> = &Aligned(*include_bytes!("../kernels/jindou.fatbin"));

/// The kernels, compiled by `kernels/build.sh`: machine code from Turing to Blackwell, and PTX for newer chips.
pub static FATBIN: &[u8] = &ALIGNED.0;

/// Threads per block, as in the kernels.
const THREADS: u32 = 256;

/// A GPU with two streams (queues). The first orders all work, including allocations; the second has the copies of
/// [`CopyLane::Aside`].
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
    /// Size of a page in bytes; 0 if the device cannot map pages.
    page: usize,
    /// Events for reuse.
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

/// True for errors after which the context still works, because the call was invalid or the resource not available.
/// After all other errors, the context, the device or the driver is unusable.
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

impl Cuda {
    /// Properties of pages of memory on this device.
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

    /// Converts the outcome of a driver call. `what` completes the message "the GPU failed to …". An error that the
    /// context does not survive marks the device as lost.
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
        self.done("become current", bound)
    }

    fn pool_bytes(&self, what: sys::CUmemPool_attribute_enum) -> Result<u64> {
        let mut n = 0u64;
        // SAFETY: these attributes are 64-bit numbers.
        let got = unsafe { result::mem_pool::get_attribute(self.pool, what, (&raw mut n).cast()) };
        self.done("query its memory", got)?;
        Ok(n)
    }

    fn stream_of(&self, lane: CopyLane) -> sys::CUstream {
        match lane {
            CopyLane::Ordered => self.stream,
            CopyLane::Aside => self.aside,
        }
    }

    fn events(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        sync::lock(&self.events)
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // The handles of a lost context were freed with it.
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
        // Nothing uses the module, streams and pool after this: the code that queued work has waited for it.
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
            // SAFETY: retained in `look`, released once. An error is ignored, since the device is being closed.
            let _ = unsafe { result::primary_ctx::release(device) };
        };
        if self.lost.get().is_none() {
            release();
            return;
        }
        // Releasing a lost context may block for ever in a broken driver, so a thread does it and nothing waits for it.
        let _ = std::thread::Builder::new()
            .name("gpu-release".into())
            .spawn(release);
    }
}

// SAFETY: the driver returns whole allocations that overlap no other, aligned to 256 bytes in its pool and to pages in
// host memory; host memory stays mapped until it is freed or the context is destroyed, which happens when `self` is
// dropped.
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
        self.done("allocate memory", at)
    }

    unsafe fn free(&self, at: u64, _bytes: usize) {
        if self.bind().is_ok() {
            // SAFETY: the caller got it from `alloc`.
            let freed = unsafe { result::free_async(at, self.stream) };
            // There is no caller to return the error to; if the device is lost, the next call fails.
            let _ = self.done("take memory back", freed);
        }
    }

    fn page(&self) -> Option<usize> {
        (self.page > 0).then_some(self.page)
    }

    fn reserve(&self, bytes: usize) -> Result<u64> {
        self.bind()?;
        let mut at = 0;
        // SAFETY: a valid pointer for the address; freed through `unreserve`.
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
        // SAFETY: a valid pointer for the handle, and complete properties.
        let made = unsafe { sys::cuMemCreate(&raw mut handle, bytes, &raw const kind, 0) };
        self.done("allocate memory", made.result())?;
        // SAFETY: the caller promises that the addresses are reserved and unmapped; the memory is a page that was just
        // created.
        let mapped = unsafe { sys::cuMemMap(at, bytes, 0, handle, 0) };
        let mapped = self.done("map a page", mapped.result());
        // SAFETY: just created. The mapping keeps the memory alive; if mapping failed, the memory is freed here.
        let released = unsafe { sys::cuMemRelease(handle) };
        let released = self.done("map a page", released.result());
        mapped?;
        let access = sys::CUmemAccessDesc {
            location: self.location(),
            flags: sys::CUmemAccess_flags_enum::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        let allowed = released.and_then(|()| {
            // SAFETY: the page was just mapped, and there is one description.
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
            let _ = self.done("unmap a page", unmapped.result());
        }
    }

    fn alloc_host(&self, bytes: usize) -> Result<NonNull<u8>> {
        self.bind()?;
        // With flags 0, the memory is not write-combined, so that the host reads it at full speed.
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

    unsafe fn upload(
        &self,
        to: u64,
        from: NonNull<u8>,
        bytes: usize,
        lane: CopyLane,
    ) -> Result<()> {
        self.bind()?;
        let from = from.as_ptr().cast();
        // SAFETY: the caller promises that both ranges are valid.
        let queued = unsafe { sys::cuMemcpyHtoDAsync_v2(to, from, bytes, self.stream_of(lane)) };
        self.done("copy data to the device", queued.result())
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
        // SAFETY: the caller promises that both ranges are valid.
        let queued = unsafe { sys::cuMemcpyDtoHAsync_v2(to, from, bytes, self.stream) };
        self.done("copy data from the device", queued.result())
    }

    unsafe fn zero(&self, at: u64, bytes: usize) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller promises that the range is valid.
        let queued = unsafe { result::memset_d8_async(at, 0, bytes, self.stream) };
        self.done("fill memory", queued)
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller promises that the ranges are valid.
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
        // SAFETY: the function takes one struct of this size; the caller promises that what it points to is valid.
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

    fn mark_in(&self, lane: CopyLane) -> Result<Mark> {
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
        let recorded =
            unsafe { result::event::record(event as sys::CUevent, self.stream_of(lane)) };
        match self.done("record an event", recorded) {
            Ok(()) => Ok(Mark(event)),
            Err(e) => {
                self.events().push(event);
                Err(e)
            }
        }
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
            let _ = self.done("return memory to the system", trimmed);
        }
    }

    fn lose(&self, why: &str) {
        let _ = self.lost.set(why.to_owned());
    }

    fn failure(&self) -> Option<String> {
        self.lost.get().cloned()
    }
}
