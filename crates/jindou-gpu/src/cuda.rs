//! A GPU through the CUDA driver, which is loaded when asked for.

use crate::backend::{Backend, Kernel, Mark};
use cudarc::driver::{result, sys};
use jindou_model::{Error, Result};
use std::ffi::{CString, c_void};
use std::sync::{Mutex, PoisonError};

/// The kernels, compiled by `kernels/build.sh`: code for sm_90 and PTX for newer chips.
pub static FATBIN: &[u8] = include_bytes!("../kernels/jindou.fatbin");

/// Threads of a block, as in the kernels.
const THREADS: u32 = 256;

/// One GPU, one stream. Work is ordered by the stream, memory included.
pub struct Cuda {
    device: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
    pool: sys::CUmemoryPool,
    functions: Vec<sys::CUfunction>,
    /// Events not in use.
    events: Mutex<Vec<u64>>,
    name: String,
}

// SAFETY: the driver's handles may be used from any thread that has made the context current, which every
// method does first.
unsafe impl Send for Cuda {}
// SAFETY: the driver synchronises its own calls.
unsafe impl Sync for Cuda {}

fn failed(what: &str, e: result::DriverError) -> Error {
    if e.0 == sys::cudaError_enum::CUDA_ERROR_OUT_OF_MEMORY {
        Error::Limit("the GPU's memory is full".into())
    } else {
        Error::Internal(format!("the GPU failed to {what}: {e:?}"))
    }
}

impl Cuda {
    /// The first GPU; else a sentence that says why there is none.
    pub fn open() -> Result<Self, String> {
        // SAFETY: looks for the library and loads it; no other effect.
        if !unsafe { sys::is_culib_present() } {
            return Err("no GPU is used: the NVIDIA driver (libcuda) is not installed".into());
        }
        let why = |e: result::DriverError| format!("no GPU is used: the NVIDIA driver says {e:?}");
        result::init().map_err(why)?;
        if result::device::get_count().map_err(why)? == 0 {
            return Err("no GPU is used: the NVIDIA driver finds none".into());
        }
        let device = result::device::get(0).map_err(why)?;
        let name = result::device::get_name(device).map_err(why)?;
        // SAFETY: a device that the driver returned; released on drop.
        let context = unsafe { result::primary_ctx::retain(device) }.map_err(why)?;
        let mut gpu = Self {
            device,
            context,
            stream: std::ptr::null_mut(),
            pool: std::ptr::null_mut(),
            functions: Vec::new(),
            events: Mutex::default(),
            name,
        };
        gpu.prepare().map_err(|e| format!("no GPU is used: {e}"))?;
        Ok(gpu)
    }

    fn prepare(&mut self) -> Result<()> {
        self.bind()?;
        self.stream = result::stream::create(result::stream::StreamKind::NonBlocking)
            .map_err(|e| failed("make a stream", e))?;
        // SAFETY: the device is valid. Freed memory stays in the pool: plans allocate all the time.
        unsafe {
            self.pool = result::device::get_default_mem_pool(self.device)
                .map_err(|e| failed("give a memory pool", e))?;
            let mut keep = u64::MAX;
            result::mem_pool::set_attribute(
                self.pool,
                sys::CUmemPool_attribute_enum::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                (&raw mut keep).cast(),
            )
            .map_err(|e| failed("set up its memory pool", e))?;
        }
        // SAFETY: a whole fatbin, copied by the driver.
        let module = unsafe { result::module::load_data(FATBIN.as_ptr().cast()) }
            .map_err(|e| failed("load the kernels", e))?;
        for k in Kernel::ALL {
            let name = CString::new(k.symbol()).map_err(|e| Error::Internal(e.to_string()))?;
            // SAFETY: the module was just loaded and is never unloaded.
            let f = unsafe { result::module::get_function(module, name) }
                .map_err(|e| failed(&format!("find the kernel {}", k.symbol()), e))?;
            self.functions.push(f);
        }
        Ok(())
    }

    fn bind(&self) -> Result<()> {
        // SAFETY: the context is retained as long as `self` lives.
        unsafe { result::ctx::set_current(self.context) }.map_err(|e| failed("answer", e))
    }

    fn pool_bytes(&self, what: sys::CUmemPool_attribute_enum) -> Result<u64> {
        let mut n = 0u64;
        // SAFETY: these attributes are 64-bit numbers.
        unsafe { result::mem_pool::get_attribute(self.pool, what, (&raw mut n).cast()) }
            .map_err(|e| failed("tell its memory", e))?;
        Ok(n)
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        if self.bind().is_err() {
            return;
        }
        for &e in self
            .events
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            // SAFETY: made by this driver, not in use. Errors at the end change nothing.
            let _ = unsafe { result::event::destroy(e as sys::CUevent) };
        }
        // SAFETY: made in `open`; nothing uses them after this.
        unsafe {
            if !self.stream.is_null() {
                let _ = result::stream::synchronize(self.stream);
                let _ = result::stream::destroy(self.stream);
            }
            let _ = result::primary_ctx::release(self.device);
        }
    }
}

impl Backend for Cuda {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn memory(&self) -> Result<(u64, u64)> {
        use sys::CUmemPool_attribute_enum::{
            CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
        };
        self.bind()?;
        let (free, total) = result::mem_get_info().map_err(|e| failed("tell its memory", e))?;
        // What the pool holds and nobody uses is free as well.
        let held = self.pool_bytes(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?;
        let used = self.pool_bytes(CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?;
        Ok((free as u64 + held.saturating_sub(used), total as u64))
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        self.bind()?;
        // SAFETY: freed through `free`, ordered by the same stream.
        unsafe { result::malloc_async(self.stream, bytes.max(1)) }
            .map_err(|e| failed("give memory", e))
    }

    unsafe fn free(&self, at: u64, _bytes: usize) {
        if self.bind().is_ok() {
            // SAFETY: the caller got it from `alloc`. There is nobody to tell about an error.
            let _ = unsafe { result::free_async(at, self.stream) };
        }
    }

    fn alloc_host(&self, bytes: usize) -> Result<*mut u8> {
        self.bind()?;
        // Flags 0: not write-combined, since the host reads it.
        // SAFETY: freed through `free_host`.
        let at =
            unsafe { result::malloc_host(bytes, 0) }.map_err(|e| failed("pin host memory", e))?;
        Ok(at.cast())
    }

    unsafe fn free_host(&self, at: *mut u8, _bytes: usize) {
        if self.bind().is_ok() {
            // SAFETY: the caller got it from `alloc_host`.
            let _ = unsafe { result::free_host(at.cast()) };
        }
    }

    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller vouches for the range; the copy is waited for, so `from` may go.
        unsafe {
            result::memcpy_htod_async(to, from, self.stream).map_err(|e| failed("take data", e))?;
            result::stream::synchronize(self.stream).map_err(|e| failed("take data", e))
        }
    }

    unsafe fn download(&self, to: &mut [u8], from: u64) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller vouches for the range; the copy is waited for.
        unsafe {
            result::memcpy_dtoh_async(to, from, self.stream).map_err(|e| failed("give data", e))?;
            result::stream::synchronize(self.stream).map_err(|e| failed("finish its work", e))
        }
    }

    unsafe fn zero(&self, at: u64, bytes: usize) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller vouches for the range.
        unsafe { result::memset_d8_async(at, 0, bytes, self.stream) }
            .map_err(|e| failed("fill memory", e))
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        self.bind()?;
        // SAFETY: the caller vouches for the ranges.
        unsafe { result::memcpy_dtod_async(to, from, bytes, self.stream) }
            .map_err(|e| failed("copy", e))
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
        unsafe {
            result::launch_kernel(
                self.functions[kernel as usize],
                (grid, 1, 1),
                (THREADS, 1, 1),
                0,
                self.stream,
                &mut args,
            )
        }
        .map_err(|e| failed(&format!("run {}", kernel.symbol()), e))
    }

    fn sync(&self) -> Result<()> {
        self.bind()?;
        // SAFETY: the stream lives as long as `self`.
        unsafe { result::stream::synchronize(self.stream) }
            .map_err(|e| failed("finish its work", e))
    }

    fn mark(&self) -> Result<Mark> {
        self.bind()?;
        let kept = self
            .events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let event = match kept {
            Some(e) => e,
            None => result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)
                .map_err(|e| failed("make an event", e))? as u64,
        };
        // SAFETY: event and stream belong to this context.
        unsafe { result::event::record(event as sys::CUevent, self.stream) }
            .map_err(|e| failed("record an event", e))?;
        Ok(Mark(event))
    }

    fn between(&self, from: Mark, to: Mark) -> Result<f64> {
        self.bind()?;
        // SAFETY: both events were recorded by `mark`.
        let ms = unsafe {
            result::event::synchronize(to.0 as sys::CUevent)
                .map_err(|e| failed("finish its work", e))?;
            result::event::elapsed(from.0 as sys::CUevent, to.0 as sys::CUevent)
        }
        .map_err(|e| failed("tell the time", e))?;
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend([from.0, to.0]);
        Ok(f64::from(ms) * 1e-3)
    }
}
