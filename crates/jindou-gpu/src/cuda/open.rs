//! Opening of a GPU: loads the driver's library, checks its version and functions, and loads the kernels.

use super::{Cuda, FATBIN};
use crate::backend::Kernel;
use cudarc::driver::{result, sys};
use jindou_model::{Error, Result};
use std::borrow::Cow;
use std::ffi::{CString, c_void};
use std::sync::{Mutex, OnceLock};

/// The CUDA version for which the kernels and the bindings were made, and the first driver version that offers it.
const NEEDED: (i32, &str) = (13_000, "580");

/// Every driver function that is called here. The bindings would panic if one were missing, so all are looked up first.
const SYMBOLS: &str = "\
    cuInit cuDriverGetVersion cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceGetUuid_v2 \
    cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2 cuCtxSetCurrent cuStreamCreate cuStreamDestroy_v2 \
    cuStreamWaitEvent cuModuleLoadData cuModuleUnload cuModuleGetFunction cuMemPoolCreate cuMemPoolDestroy \
    cuMemPoolTrimTo cuMemPoolGetAttribute cuMemPoolSetAttribute cuMemAllocFromPoolAsync cuMemFreeAsync \
    cuMemGetAllocationGranularity cuMemAddressReserve cuMemAddressFree cuMemCreate cuMemMap cuMemSetAccess \
    cuMemUnmap cuMemRelease cuMemHostAlloc cuMemFreeHost cuMemGetInfo_v2 cuMemcpyHtoDAsync_v2 \
    cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2 cuMemsetD8Async cuLaunchKernel cuEventCreate cuEventDestroy_v2 \
    cuEventRecord cuEventQuery cuEventElapsedTime_v2";

fn says(e: result::DriverError) -> String {
    format!("the NVIDIA driver says {:?}", e.0)
}

/// The kernels' machine code: that built into this program, or the file that `JINDOU_FATBIN` names, with which kernels
/// can be tried without rebuilding the program.
fn kernels() -> Result<Cow<'static, [u8]>, String> {
    let Some(file) = std::env::var_os("JINDOU_FATBIN") else {
        return Ok(Cow::Borrowed(FATBIN));
    };
    let code = std::fs::read(&file)
        .map_err(|e| format!("the kernels in {} cannot be read: {e}", file.display()))?;
    // The driver is not told the length: it trusts the length in the header, which is therefore checked here.
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

/// Calls the driver and converts a panic to an error. The bindings panic if a function is missing; since all are looked
/// up first, this is only a second line of defence.
fn guarded<T>(what: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(what))
        .unwrap_or_else(|_| Err("the NVIDIA driver's library (libcuda) cannot be used".to_owned()))
}

impl Cuda {
    /// Opens the first GPU. The error is a sentence that says why there is none.
    pub fn open() -> Result<Self, String> {
        Self::open_number(0)
    }

    /// Opens the GPU with this number, from 0. The error is a sentence that says why there is none.
    pub fn open_number(number: usize) -> Result<Self, String> {
        let opened = guarded(|| Self::look(number));
        opened.map_err(|why| format!("no GPU is used: {why}"))
    }

    /// Number of GPUs that the driver reports; 0 if there is no usable driver.
    #[must_use]
    pub fn count() -> usize {
        guarded(Self::ready).unwrap_or(0)
    }

    /// Checks that the driver is usable; returns the number of GPUs.
    fn ready() -> Result<usize, String> {
        // SAFETY: searches for the library and loads it, without any other effect.
        if !unsafe { sys::is_culib_present() } {
            return Err("the NVIDIA driver (libcuda) is not installed".into());
        }
        // SAFETY: the library was found.
        let library = unsafe { sys::culib() };
        // SAFETY: the symbol is only looked up, not called.
        let there = |name: &str| unsafe { library.get::<*const c_void>(name.as_bytes()) }.is_ok();
        let too_old = |has: &str| {
            let (major, minor) = (NEEDED.0 / 1000, NEEDED.0 % 1000 / 10);
            format!(
                "the NVIDIA driver {has}, but CUDA {major}.{minor} is needed: install driver {} or newer",
                NEEDED.1
            )
        };
        if !there("cuDriverGetVersion") {
            return Err(too_old("does not report its version"));
        }
        let mut version = 0;
        // SAFETY: a valid pointer for a number.
        unsafe { sys::cuDriverGetVersion(&raw mut version) }
            .result()
            .map_err(says)?;
        if version < NEEDED.0 {
            let has = format!("is for CUDA {}.{}", version / 1000, version % 1000 / 10);
            return Err(too_old(&has));
        }
        if let Some(missing) = SYMBOLS.split(' ').find(|s| !there(s)) {
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
        // SAFETY: a valid pointer for a number.
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
        // SAFETY: a valid pointer for a number, and complete properties.
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
        // SAFETY: a whole fatbin, as checked when it was read; the driver copies it. A file named by the user is
        // trusted as the program is.
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
}
