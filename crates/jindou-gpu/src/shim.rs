//! The shim: the kernels compiled for the CPU (`shim/`), for tests and for `JINDOU_GPU=shim`. It is slow, and checks
//! every access.
//!
//! A GPU may execute queued work at any time before the host waits for it. By default the shim executes it at once.
//! With [`ShimOptions::delay`] it executes it as late as possible, so that code that lacks a wait reads memory before
//! it was written.

mod calls;
mod counts;
mod work;

use crate::backend::{CopyLane, Kernel, Mark};
use jindou_model::sync;
use jindou_model::{Error, Resource, Result};
use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;
use work::{Delayed, DeviceClock, DeviceWork};

pub use counts::{Holdings, HostTraffic, KernelCounts};
pub use work::{Speeds, Times};

/// A range of device memory that kernels may access.
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
        sectors: i32,
        live: *const Live,
        live_count: usize,
        counts: *mut KernelCounts,
        error: *mut c_char,
        error_len: usize,
    ) -> i32;
}

/// Options of the shim.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShimOptions {
    /// Seed for a random interleaving of blocks and threads; 0 to run them in order.
    pub seed: u64,
    /// Number of a bug to inject ([`planted_bugs`]); 0 for none. For testing that the checks detect it.
    pub bug: u32,
    /// Size of pages in bytes, a power of two of at least 256; 0 for 64 KiB.
    pub page: usize,
    /// Size of the simulated device memory in bytes; 0 for 4 GiB.
    pub memory: u64,
    /// True to record the bytes that each launch moves, for [`Shim::take_log`].
    pub log: bool,
    /// True to also count accesses by warp and the sectors that they touch, which takes several times as long.
    pub sectors: bool,
    /// True to execute queued work only when the host waits for it.
    pub delay: bool,
    /// Number, from 1, of the query of a marker that falsely reports completion; 0 for none. This removes one wait from
    /// the program. With `delay`, the missing wait must become visible; for testing that it does.
    pub unwaited: u64,
    /// Number, from 1, of the call of [`crate::Backend::after`] that is ignored; 0 for none. This removes one ordering
    /// from the program. With `delay`, that must become visible; for testing that it does.
    pub unordered: u64,
    /// With `delay`: simulates the time that a device with these speeds would take, for [`Shim::take_times`].
    pub speeds: Option<Speeds>,
}

/// The bugs that can be injected, by number and name.
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

/// A device that runs the kernels on the CPU.
pub struct Shim {
    options: ShimOptions,
    numbers: Vec<u32>,
    state: Mutex<ShimState>,
    /// Locked by the thread that executes delayed work.
    working: Mutex<()>,
    lost: OnceLock<String>,
    began: Instant,
}

#[derive(Default)]
struct ShimState {
    held: Holdings,
    traffic: HostTraffic,
    /// Start and end of each allocation.
    live: BTreeMap<u64, u64>,
    launches: u64,
    log: Vec<(Kernel, KernelCounts)>,
    delayed: Delayed,
    clock: DeviceClock,
}

impl ShimState {
    /// Counts a copy to the device in the statistics.
    fn uploads(&mut self, bytes: usize) {
        self.traffic.uploads += 1;
        self.traffic.upload_bytes += bytes as u64;
    }

    /// Returns an error unless the range is live device memory: inside one allocation, or adjacent pages.
    fn inside(&self, at: u64, bytes: usize) -> Result<()> {
        let out = || {
            Err(Error::Internal(format!(
                "{bytes} bytes outside the device's memory are copied or filled"
            )))
        };
        let Some(end) = at.checked_add(bytes as u64) else {
            return out();
        };
        let mut from = at;
        loop {
            match self.live.range(..=from).next_back() {
                Some((_, &to)) if end <= to => return Ok(()),
                Some((_, &to)) if from < to => from = to,
                _ => return out(),
            }
        }
    }
}

impl Shim {
    /// Opens the shim. An error if the kernels' parameter structs have other sizes than the Rust ones.
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
            working: Mutex::default(),
            lost: OnceLock::new(),
            began: Instant::now(),
        })
    }

    /// The bytes that each launch since the last call of this function moved.
    #[must_use]
    pub fn take_log(&self) -> Vec<(Kernel, KernelCounts)> {
        std::mem::take(&mut self.state().log)
    }

    /// The host's requests since the last call of this function.
    #[must_use]
    pub fn take_traffic(&self) -> HostTraffic {
        std::mem::take(&mut self.state().traffic)
    }

    /// Memory and markers that are allocated now.
    #[must_use]
    pub fn holdings(&self) -> Holdings {
        self.state().held
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ShimState> {
        sync::lock(&self.state)
    }

    /// Number of queries of markers so far, with [`ShimOptions::delay`].
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.state().delayed.asked
    }

    /// Number of calls of [`crate::Backend::after`] so far for work that was not done yet, with [`ShimOptions::delay`].
    #[must_use]
    pub fn ordered(&self) -> u64 {
        self.state().delayed.ordered
    }

    /// The simulated times since the last call of this function, with [`ShimOptions::speeds`].
    #[must_use]
    pub fn take_times(&self) -> Times {
        self.state().clock.times()
    }

    /// Executes work at once, or delays it.
    fn queue(&self, work: DeviceWork) -> Result<()> {
        self.queue_in(CopyLane::Ordered, work)
    }

    fn queue_in(&self, lane: CopyLane, work: DeviceWork) -> Result<()> {
        if self.options.delay {
            let mut state = self.state();
            let now = state.clock.host;
            state.delayed.push(lane, work, now);
            return Ok(());
        }
        self.work(lane, work, 0.0)
    }

    /// Executes work. `queued` is the simulated time at which the host queued it.
    fn work(&self, lane: CopyLane, work: DeviceWork, queued: f64) -> Result<()> {
        let mut state = self.state();
        match work {
            DeviceWork::Upload { to, from, bytes } => {
                state.inside(to, bytes)?;
                if let Some(speeds) = self.options.speeds {
                    state.clock.copied(lane, queued, bytes, speeds);
                }
                // SAFETY: live memory, as checked above; the caller that queued the copy promised that the host's
                // memory is valid.
                unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to as *mut u8, bytes) };
            }
            DeviceWork::Download { to, from, bytes } => {
                state.inside(from, bytes)?;
                // SAFETY: as above.
                unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to.as_ptr(), bytes) };
            }
            DeviceWork::Zero { at, bytes } => {
                state.inside(at, bytes)?;
                // SAFETY: the caller passes a live range.
                unsafe { (at as *mut u8).write_bytes(0, bytes) };
            }
            DeviceWork::Copy { to, from, bytes } => {
                state.inside(from, bytes)?;
                state.inside(to, bytes)?;
                // SAFETY: live memory; the caller that queued the copy promised that the ranges do not overlap.
                unsafe {
                    std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes);
                }
            }
            DeviceWork::Launch {
                kernel,
                grid,
                params,
            } => {
                drop(state);
                let counts = self.run(kernel, grid, &params)?;
                if let Some(speeds) = self.options.speeds {
                    let bytes = counts.streamed + counts.written + 32 * counts.random_accesses;
                    self.state().clock.ran(queued, bytes, speeds);
                }
            }
            DeviceWork::After { moment } => {
                drop(state);
                self.catch_up_with(moment)?;
                self.state().clock.after(moment);
            }
            DeviceWork::Free { at, bytes } => {
                drop(state);
                self.release(at, bytes);
            }
        }
        Ok(())
    }

    fn release(&self, at: u64, bytes: usize) {
        if let Ok(layout) = layout(bytes) {
            self.state().live.remove(&at);
            // SAFETY: allocated by `alloc` with this size, and freed once.
            unsafe { std::alloc::dealloc(at as *mut u8, layout) };
        }
    }

    /// Drops all delayed work, as when a device is lost, except that queued frees are executed.
    fn forget(&self) {
        let _alone = sync::lock(&self.working);
        loop {
            let next = self.state().delayed.next();
            match next {
                Some(DeviceWork::Free { at, bytes }) => self.release(at, bytes),
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Executes the delayed work before a marker.
    fn catch_up(&self, moment: u64) -> Result<()> {
        let _alone = sync::lock(&self.working);
        self.catch_up_with(moment)?;
        self.state().clock.waited(moment);
        Ok(())
    }

    /// As [`Self::catch_up`], for a thread that is executing delayed work already.
    fn catch_up_with(&self, moment: u64) -> Result<()> {
        let lane = work::lane_of(moment);
        loop {
            let next = self.state().delayed.next_before(moment);
            match next {
                Some((work, queued)) => self.work(lane, work, queued)?,
                None => return Ok(()),
            }
        }
    }

    /// Runs a kernel. `params` is its parameter struct as words.
    fn run(&self, kernel: Kernel, grid: u32, params: &[u64]) -> Result<KernelCounts> {
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
        let live: Vec<Live> = self
            .state()
            .live
            .iter()
            .map(|(&start, &end)| Live { start, end })
            .collect();
        let mut counts = KernelCounts::default();
        let mut error = [0u8; 200];
        // SAFETY: the kernel's number is known, parameters have its size, and the caller that queued it promised that
        // what they point to is valid.
        let rc = unsafe {
            jindou_shim_launch(
                self.numbers[kernel as usize],
                grid,
                params.as_ptr().cast(),
                seed,
                self.options.bug,
                i32::from(self.options.sectors),
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
            return Ok(counts);
        }
        let text = CStr::from_bytes_until_nul(&error)
            .unwrap_or_default()
            .to_string_lossy();
        Err(Error::Internal(format!("{}: {text}", kernel.symbol())))
    }

    fn marked(&self, lane: CopyLane) -> Mark {
        let mut state = self.state();
        state.held.marks += 1;
        // With `delay`, markers are positions in a queue; otherwise they are times.
        Mark(if self.options.delay {
            state.delayed.now(lane)
        } else {
            self.began.elapsed().as_nanos() as u64
        })
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
    Layout::from_size_align(bytes.max(1), 256)
        .map_err(|_| Error::limit(Resource::Device, "an allocation too large for the device"))
}

impl Drop for Shim {
    fn drop(&mut self) {
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend;

    #[test]
    fn an_allocation_of_nothing_is_memory_like_any_other() {
        let shim = Shim::open(ShimOptions::default()).unwrap();
        let (a, b) = (shim.alloc(0).unwrap(), shim.alloc(0).unwrap());
        let host = shim.alloc_host(0).unwrap();
        assert!(a != b && a % 256 == 0 && b % 256 == 0);
        assert_eq!(shim.holdings().device, 2);
        // SAFETY: each of them is one byte, and is freed once.
        unsafe {
            shim.zero(a, 1).unwrap();
            shim.free(a, 0);
            shim.free(b, 0);
            shim.free_host(host, 0);
        }
        let held = shim.holdings();
        assert_eq!((held.device, held.pinned), (0, 0));
    }
}
