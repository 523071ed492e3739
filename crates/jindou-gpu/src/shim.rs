//! The kernels on the CPU, through `shim/`: for tests, and for `JINDOU_GPU=shim`. Slow and exact.

use crate::backend::{Backend, Kernel, Mark};
use jindou_model::{Error, Result};
use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Bytes that a kernel moved, as its own accesses counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    /// Read in order.
    pub streamed: u64,
    /// Read without order.
    pub random: u64,
    /// Accesses that `random` came in.
    pub random_accesses: u64,
    /// Written.
    pub written: u64,
}

impl Counts {
    /// All bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.streamed + self.random + self.written
    }
}

/// Device memory that kernels may touch.
#[derive(Clone, Copy)]
#[repr(C)]
struct Live {
    start: u64,
    end: u64,
}

unsafe extern "C" {
    fn jindou_shim_kernel(name: *const c_char, size: *mut usize) -> i32;
    fn jindou_shim_bug(bug: u32) -> *const c_char;
    fn jindou_shim_launch(
        kernel: u32,
        grid: u32,
        params: *const c_void,
        seed: u64,
        bug: u32,
        live: *const Live,
        live_count: usize,
        counts: *mut Counts,
        error: *mut c_char,
        error_len: usize,
    ) -> i32;
}

/// How the shim runs kernels.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShimOptions {
    /// 0: blocks and threads in order. Else threads and blocks are interleaved in an order drawn from it.
    pub seed: u64,
    /// Number of a planted bug ([`planted_bugs`]), 0 for none. For tests of tests.
    pub bug: u32,
    /// Device memory that it pretends to have; 0 for 4 GiB.
    pub memory: u64,
    /// Keep what each launch moved, for [`Shim::take_log`].
    pub log: bool,
}

/// The bugs that can be planted: number and name.
#[must_use]
pub fn planted_bugs() -> Vec<(u32, String)> {
    (1..)
        .map_while(|i| {
            // SAFETY: the function returns null or a static string for every number.
            let name = unsafe { jindou_shim_bug(i) };
            // SAFETY: not null, so a static string that ends in 0.
            if name.is_null() {
                return None;
            }
            // SAFETY: not null, so a static string that ends in 0.
            let name = unsafe { CStr::from_ptr(name) };
            Some((i, name.to_string_lossy().into_owned()))
        })
        .collect()
}

/// See the module.
pub struct Shim {
    options: ShimOptions,
    numbers: Vec<u32>,
    state: Mutex<State>,
    began: Instant,
}

#[derive(Default)]
struct State {
    used: u64,
    /// End by start of each allocation.
    live: BTreeMap<u64, u64>,
    launches: u64,
    log: Vec<(Kernel, Counts)>,
}

impl Shim {
    /// The shim; an error if its kernels' parameters are not as this side knows them.
    pub fn open(options: ShimOptions) -> Result<Self> {
        let mut numbers = Vec::new();
        for k in Kernel::ALL {
            let name =
                std::ffi::CString::new(k.symbol()).map_err(|e| Error::Internal(e.to_string()))?;
            let mut size = 0;
            // SAFETY: a string that ends in 0 and a place for a size.
            let number = unsafe { jindou_shim_kernel(name.as_ptr(), &raw mut size) };
            if number < 0 || size != k.params_size() {
                return Err(Error::Internal(format!(
                    "kernel {}: parameters of {size} bytes, not {}",
                    k.symbol(),
                    k.params_size()
                )));
            }
            numbers.push(number as u32);
        }
        Ok(Self {
            options,
            numbers,
            state: Mutex::default(),
            began: Instant::now(),
        })
    }

    /// What each launch since the last call moved.
    #[must_use]
    pub fn take_log(&self) -> Vec<(Kernel, Counts)> {
        std::mem::take(&mut self.state().log)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limit(&self) -> u64 {
        if self.options.memory == 0 {
            4 << 30
        } else {
            self.options.memory
        }
    }
}

fn layout(bytes: usize) -> Result<Layout> {
    Layout::from_size_align(bytes, 256)
        .map_err(|_| Error::Limit("an allocation too large for the device".into()))
}

impl Backend for Shim {
    fn name(&self) -> String {
        "the CPU, through the shim".into()
    }

    fn memory(&self) -> Result<(u64, u64)> {
        let limit = self.limit();
        Ok((limit.saturating_sub(self.state().used), limit))
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        let layout = layout(bytes)?;
        let mut state = self.state();
        if state.used + bytes as u64 > self.limit() {
            return Err(Error::Limit("the device's memory is full".into()));
        }
        // SAFETY: the layout's size is not 0: buffers have at least one byte.
        let at = unsafe { std::alloc::alloc(layout) };
        if at.is_null() {
            return Err(Error::Limit("the device's memory is full".into()));
        }
        // Rubbish, so that what nobody wrote is seen.
        // SAFETY: just allocated with this size.
        unsafe { at.write_bytes(0xA5, bytes) };
        state.used += bytes as u64;
        state.live.insert(at as u64, at as u64 + bytes as u64);
        Ok(at as u64)
    }

    unsafe fn free(&self, at: u64, bytes: usize) {
        if let Ok(layout) = layout(bytes) {
            let mut state = self.state();
            state.used -= bytes as u64;
            state.live.remove(&at);
            drop(state);
            // SAFETY: the caller got it from `alloc` with this size.
            unsafe { std::alloc::dealloc(at as *mut u8, layout) };
        }
    }

    fn alloc_host(&self, bytes: usize) -> Result<*mut u8> {
        // SAFETY: the size is not 0.
        let at = unsafe { std::alloc::alloc(layout(bytes)?) };
        if at.is_null() {
            return Err(Error::Limit("no memory for results".into()));
        }
        Ok(at)
    }

    unsafe fn free_host(&self, at: *mut u8, bytes: usize) {
        if let Ok(layout) = layout(bytes) {
            // SAFETY: the caller got it from `alloc_host` with this size.
            unsafe { std::alloc::dealloc(at, layout) };
        }
    }

    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        // SAFETY: the caller vouches for the range.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to as *mut u8, from.len()) };
        Ok(())
    }

    unsafe fn download(&self, to: &mut [u8], from: u64) -> Result<()> {
        // SAFETY: the caller vouches for the range.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    unsafe fn zero(&self, at: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller vouches for the range.
        unsafe { (at as *mut u8).write_bytes(0, bytes) };
        Ok(())
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller vouches for the ranges.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes) };
        Ok(())
    }

    unsafe fn launch(&self, kernel: Kernel, grid: u32, params: &[u8]) -> Result<()> {
        if params.len() != kernel.params_size() {
            return Err(Error::Internal(format!(
                "wrong parameters for {}",
                kernel.symbol()
            )));
        }
        let seed = if self.options.seed == 0 {
            0
        } else {
            let mut state = self.state();
            state.launches += 1;
            self.options
                .seed
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .wrapping_add(state.launches)
                | 1
        };
        // Kernels read their parameters as aligned structs.
        let mut aligned = vec![0u64; params.len().div_ceil(8)];
        bytemuck::cast_slice_mut::<u64, u8>(&mut aligned)[..params.len()].copy_from_slice(params);
        let live: Vec<Live> = self
            .state()
            .live
            .iter()
            .map(|(&start, &end)| Live { start, end })
            .collect();
        let mut counts = Counts::default();
        let mut error = [0u8; 200];
        // SAFETY: the kernel number is known, parameters have its size, and the caller vouches for what they
        // point to.
        let rc = unsafe {
            jindou_shim_launch(
                self.numbers[kernel as usize],
                grid,
                aligned.as_ptr().cast(),
                seed,
                self.options.bug,
                live.as_ptr(),
                live.len(),
                &raw mut counts,
                error.as_mut_ptr().cast(),
                error.len(),
            )
        };
        if self.options.log {
            self.state().log.push((kernel, counts));
        }
        if rc == 0 {
            return Ok(());
        }
        let text = CStr::from_bytes_until_nul(&error)
            .unwrap_or_default()
            .to_string_lossy();
        Err(Error::Internal(format!("{}: {text}", kernel.symbol())))
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn mark(&self) -> Result<Mark> {
        Ok(Mark(self.began.elapsed().as_nanos() as u64))
    }

    fn between(&self, from: Mark, to: Mark) -> Result<f64> {
        Ok(to.0.saturating_sub(from.0) as f64 * 1e-9)
    }
}
