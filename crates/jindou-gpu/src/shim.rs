//! The kernels on the CPU, through `shim/`: for tests, and for `JINDOU_GPU=shim`. Slow and exact.
//!
//! A card does queued work at any time before it is waited for. By default the shim does it at once; with
//! [`ShimOptions::delay`] it does it as late as possible, so that code that forgets to wait sees memory in its earlier
//! state.

mod clock;
mod work;

use crate::backend::{Backend, Kernel, Mark};
use jindou_model::sync;
use jindou_model::{Error, Resource, Result};
use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock};
use std::time::Instant;
use work::{Delayed, DeviceClock, DeviceWork, ShimQueue};

pub use clock::{Figures, HostCall};
pub use work::{Speeds, Times};

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
    /// Ids of lists that were walked, before any test.
    pub candidates: u64,
}

impl KernelCounts {
    /// All bytes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.streamed + self.random + self.written
    }
}

/// The host's requests so far: those that cost microseconds on a card, whatever the kernels do.
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
    /// Bytes of copies to the device from pinned pages of others.
    pub registered_bytes: u64,
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

/// Memory and marks of a shim that are held at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Bytes of device memory.
    pub device: u64,
    /// Bytes of device memory that the pool holds, used or not.
    pub reserved: u64,
    /// Bytes of pinned host memory.
    pub pinned: u64,
    /// Bytes of pinned pages of others.
    pub registered: u64,
    /// Marks.
    pub marks: u64,
}

/// Device memory that kernels may access.
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
    /// 0: blocks and threads run in order. Otherwise they are interleaved in an order drawn from this seed.
    pub seed: u64,
    /// Number of a planted bug ([`planted_bugs`]), 0 for none. For tests of the tests.
    pub bug: u32,
    /// Bytes of its pages, a power of two of at least 256; 0 for 64 KiB.
    pub page: usize,
    /// Device memory that it pretends to have; 0 for 4 GiB.
    pub memory: u64,
    /// True to record what each launch moved, for [`Shim::take_log`].
    pub log: bool,
    /// True to count the accesses of whole warps and their sectors too, which takes several times as long.
    pub sectors: bool,
    /// True to do queued work only when it is waited for.
    pub delay: bool,
    /// Number, from 1, of the query of a moment that is answered with yes although its work is not done; 0 for none. It
    /// removes a wait from the program, for tests of the tests: with `delay` this must be noticed.
    pub unwaited: u64,
    /// Number, from 1, of the order to begin after a copy aside that is ignored; 0 for none. It removes an event from
    /// the program, for tests of the tests: with `delay` this must be noticed.
    pub unordered: u64,
    /// True to record the host's calls, for [`Shim::take_calls`].
    pub calls: bool,
    /// With `delay`: keeps a time line of a device with these speeds, for [`Shim::take_times`].
    pub speeds: Option<Speeds>,
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

/// A device that runs the kernels on the CPU: slow and exact.
pub struct Shim {
    options: ShimOptions,
    numbers: Vec<u32>,
    state: Mutex<ShimState>,
    /// Held by the thread that does delayed work.
    working: Mutex<()>,
    lost: OnceLock<String>,
    began: Instant,
}

#[derive(Default)]
struct ShimState {
    held: Holdings,
    traffic: HostTraffic,
    /// End by start of each allocation.
    live: BTreeMap<u64, u64>,
    /// Bytes by beginning of pinned pages of others.
    registered: BTreeMap<usize, usize>,
    launches: u64,
    log: Vec<(Kernel, KernelCounts)>,
    delayed: Delayed,
    clock: DeviceClock,
    calls: Vec<HostCall>,
}

impl ShimState {
    /// Counts a copy to the device; an error if only a part of it is pinned, as a driver refuses that.
    fn uploads(&mut self, from: NonNull<u8>, bytes: usize) -> Result<()> {
        let from = from.addr().get();
        let below = self.registered.range(..from + bytes).next_back();
        if let Some((at, pinned)) = below.filter(|(at, pinned)| *at + *pinned > from) {
            if from < *at || from + bytes > at + pinned {
                return Err(Error::Internal("a part of what is copied is pinned".into()));
            }
            self.traffic.registered_bytes += bytes as u64;
        }
        self.traffic.uploads += 1;
        self.traffic.upload_bytes += bytes as u64;
        Ok(())
    }

    /// Returns an error unless this range is live device memory: one allocation, or adjacent pages.
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
    /// Opens the shim; an error if its kernels' parameters differ from those on this side.
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

    /// The bytes that each launch since the last call moved.
    #[must_use]
    pub fn take_log(&self) -> Vec<(Kernel, KernelCounts)> {
        std::mem::take(&mut self.state().log)
    }

    /// The host's requests since the last call.
    #[must_use]
    pub fn take_traffic(&self) -> HostTraffic {
        std::mem::take(&mut self.state().traffic)
    }

    /// The memory and marks that are held now.
    #[must_use]
    pub fn holdings(&self) -> Holdings {
        self.state().held
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ShimState> {
        sync::lock(&self.state)
    }

    /// Number of queries so far if a moment has come; with [`ShimOptions::delay`].
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.state().delayed.asked
    }

    /// Number of orders so far to begin after a copy aside that was not done yet; with [`ShimOptions::delay`].
    #[must_use]
    pub fn ordered(&self) -> u64 {
        self.state().delayed.ordered
    }

    /// The times since the last call, for a device with [`ShimOptions::speeds`].
    #[must_use]
    pub fn take_times(&self) -> Times {
        self.state().clock.times()
    }

    /// The host's calls since the last time, with [`ShimOptions::calls`].
    #[must_use]
    pub fn take_calls(&self) -> Vec<HostCall> {
        std::mem::take(&mut self.state().calls)
    }

    fn call(&self, state: &mut ShimState, call: HostCall) {
        if self.options.calls {
            state.calls.push(call);
        }
    }

    /// Does work, or keeps it for later.
    fn queue(&self, work: DeviceWork) -> Result<()> {
        self.queue_in(ShimQueue::Ordered, work)
    }

    fn queue_in(&self, lane: ShimQueue, work: DeviceWork) -> Result<()> {
        if self.options.delay {
            let mut state = self.state();
            let now = state.clock.host;
            state.delayed.push(lane, work, now);
            return Ok(());
        }
        self.work(lane, work, 0.0)
    }

    /// Does work that was queued at this time of the host.
    fn work(&self, lane: ShimQueue, work: DeviceWork, queued: f64) -> Result<()> {
        let mut state = self.state();
        match work {
            DeviceWork::Upload { to, from, bytes } => {
                state.inside(to, bytes)?;
                self.call(&mut state, HostCall::Link(bytes));
                if let Some(speeds) = self.options.speeds {
                    state.clock.copied(lane, queued, bytes, speeds);
                }
                // SAFETY: live memory, as was just looked up, and who queued it vouches for the host's.
                unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to as *mut u8, bytes) };
            }
            DeviceWork::Download { to, from, bytes } => {
                state.inside(from, bytes)?;
                self.call(&mut state, HostCall::back(bytes));
                // SAFETY: as above.
                unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to.as_ptr(), bytes) };
            }
            DeviceWork::Zero { at, bytes } => {
                state.inside(at, bytes)?;
                self.call(&mut state, HostCall::Moved(bytes));
                // SAFETY: live memory.
                unsafe { (at as *mut u8).write_bytes(0, bytes) };
            }
            DeviceWork::Copy { to, from, bytes } => {
                state.inside(from, bytes)?;
                state.inside(to, bytes)?;
                self.call(&mut state, HostCall::Moved(2 * bytes));
                // SAFETY: live memory; who queued it vouches that the ranges do not overlap.
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
                self.call(&mut self.state(), HostCall::Kernel(kernel, counts));
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
            // SAFETY: from `alloc` with this size, and given back once.
            unsafe { std::alloc::dealloc(at as *mut u8, layout) };
        }
    }

    /// Drops all delayed work, as when a device is lost, but frees its memory.
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

    /// Does the delayed work that must be done before this moment.
    fn catch_up(&self, moment: u64) -> Result<()> {
        let _alone = sync::lock(&self.working);
        self.catch_up_with(moment)?;
        self.state().clock.waited(moment);
        Ok(())
    }

    /// As [`Self::catch_up`], on a thread that already does delayed work.
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

    /// Runs a kernel whose parameters have its size.
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
        // SAFETY: the kernel number is known, parameters have its size, and the caller vouches for what they
        // point to.
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

    fn marked(&self, lane: ShimQueue) -> Mark {
        let mut state = self.state();
        state.held.marks += 1;
        // Delayed work has no time of its own, but an order.
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

// SAFETY: memory of both kinds comes from the process' allocator, with the layout's size (at least one byte) and
// alignment, and goes back there only when it is given back.
unsafe impl Backend for Shim {
    fn name(&self) -> String {
        "the CPU, through the shim".into()
    }

    fn memory(&self) -> Result<(u64, u64)> {
        let limit = self.limit();
        Ok((limit.saturating_sub(self.state().held.device), limit))
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        let layout = layout(bytes)?;
        let mut state = self.state();
        state.traffic.allocations += 1;
        let used = state.held.device + layout.size() as u64;
        if used > self.limit() {
            return Err(Error::limit(
                Resource::Device,
                "the device's memory is full",
            ));
        }
        // SAFETY: the layout's size is not 0.
        let at = unsafe { std::alloc::alloc(layout) };
        if at.is_null() {
            return Err(Error::limit(
                Resource::Device,
                "the device's memory is full",
            ));
        }
        // Rubbish, so that what nothing wrote is seen.
        // SAFETY: just allocated with this size.
        unsafe { at.write_bytes(0xA5, layout.size()) };
        state.held.device = used;
        state.held.reserved = state.held.reserved.max(used);
        state
            .live
            .insert(at as u64, at as u64 + layout.size() as u64);
        Ok(at as u64)
    }

    unsafe fn free(&self, at: u64, bytes: usize) {
        if let Ok(layout) = layout(bytes) {
            // It can be allocated again at once, for work that is queued after this.
            self.state().held.device -= layout.size() as u64;
            if self.lost.get().is_some() || self.queue(DeviceWork::Free { at, bytes }).is_err() {
                self.release(at, bytes);
            }
        }
    }

    fn page(&self) -> Option<usize> {
        Some(match self.options.page {
            0 => 64 << 10,
            page => page,
        })
    }

    fn reserve(&self, bytes: usize) -> Result<u64> {
        let layout = layout(bytes)?;
        // SAFETY: the layout's size is not 0.
        let at = unsafe { std::alloc::alloc_zeroed(layout) };
        if at.is_null() {
            return Err(Error::limit(Resource::Device, "no addresses are left"));
        }
        Ok(at as u64)
    }

    unsafe fn unreserve(&self, at: u64, bytes: usize) {
        if let Ok(layout) = layout(bytes) {
            // SAFETY: from `reserve` with this size, and given back once.
            unsafe { std::alloc::dealloc(at as *mut u8, layout) };
        }
    }

    unsafe fn map_page(&self, at: u64, bytes: usize) -> Result<()> {
        let mut state = self.state();
        state.traffic.pages += 1;
        let used = state.held.device + bytes as u64;
        if used > self.limit() {
            return Err(Error::limit(
                Resource::Device,
                "the device's memory is full",
            ));
        }
        // Rubbish, so that what nothing wrote is seen.
        // SAFETY: reserved, so it is this process' memory.
        unsafe { (at as *mut u8).write_bytes(0xA5, bytes) };
        state.held.device = used;
        state.held.reserved = state.held.reserved.max(used);
        state.live.insert(at, at + bytes as u64);
        Ok(())
    }

    unsafe fn unmap_page(&self, at: u64, bytes: usize) {
        let mut state = self.state();
        if state.live.remove(&at).is_some() {
            state.held.device -= bytes as u64;
        }
    }

    fn alloc_host(&self, bytes: usize) -> Result<NonNull<u8>> {
        let layout = layout(bytes)?;
        // SAFETY: the layout's size is not 0.
        let at = NonNull::new(unsafe { std::alloc::alloc(layout) });
        let at = at.ok_or_else(|| Error::limit(Resource::Memory, "no memory for results"))?;
        let mut state = self.state();
        state.traffic.pinned += 1;
        state.held.pinned += layout.size() as u64;
        Ok(at)
    }

    unsafe fn free_host(&self, at: NonNull<u8>, bytes: usize) {
        if let Ok(layout) = layout(bytes) {
            self.state().held.pinned -= layout.size() as u64;
            // SAFETY: the caller got it from `alloc_host` with this size.
            unsafe { std::alloc::dealloc(at.as_ptr(), layout) };
        }
    }

    unsafe fn register(&self, at: NonNull<u8>, bytes: usize) -> Result<()> {
        let at = at.addr().get();
        let mut state = self.state();
        let below = state.registered.range(..at + bytes).next_back();
        if below.is_some_and(|(from, bytes)| from + bytes > at) || (at | bytes) % 4096 != 0 {
            return Err(Error::Internal("pages are pinned twice, or in part".into()));
        }
        state.registered.insert(at, bytes);
        state.held.registered += bytes as u64;
        Ok(())
    }

    unsafe fn unregister(&self, at: NonNull<u8>) {
        let mut state = self.state();
        let at = at.addr().get();
        let bytes = state.registered.remove(&at).unwrap_or_default();
        state.held.registered -= bytes as u64;
        if bytes == 0 || state.delayed.reads(at..at + bytes) {
            drop(state);
            self.lose("pages were released that are not pinned, or are being copied");
        }
    }

    unsafe fn upload(&self, to: u64, from: NonNull<u8>, bytes: usize) -> Result<()> {
        self.state().uploads(from, bytes)?;
        self.queue(DeviceWork::Upload { to, from, bytes })
    }

    unsafe fn upload_aside(&self, to: u64, from: NonNull<u8>, bytes: usize) -> Result<()> {
        self.state().uploads(from, bytes)?;
        self.queue_in(ShimQueue::Aside, DeviceWork::Upload { to, from, bytes })
    }

    fn mark_aside(&self) -> Result<Mark> {
        Ok(self.marked(ShimQueue::Aside))
    }

    fn after(&self, mark: &Mark) -> Result<()> {
        let mut state = self.state();
        // Work that is done need not be waited for.
        if !self.options.delay || !state.delayed.is_open(mark.0) {
            return Ok(());
        }
        state.delayed.ordered += 1;
        if state.delayed.ordered == self.options.unordered {
            return Ok(());
        }
        drop(state);
        self.queue(DeviceWork::After { moment: mark.0 })
    }

    unsafe fn download(&self, to: NonNull<u8>, from: u64, bytes: usize) -> Result<()> {
        let mut state = self.state();
        state.traffic.downloads += 1;
        state.traffic.download_bytes += bytes as u64;
        drop(state);
        self.queue(DeviceWork::Download { to, from, bytes })
    }

    unsafe fn zero(&self, at: u64, bytes: usize) -> Result<()> {
        self.state().traffic.fills += 1;
        self.queue(DeviceWork::Zero { at, bytes })
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        let mut state = self.state();
        state.traffic.copies += 1;
        state.traffic.copy_bytes += bytes as u64;
        drop(state);
        self.queue(DeviceWork::Copy { to, from, bytes })
    }

    unsafe fn launch(&self, kernel: Kernel, grid: u32, params: &[u8]) -> Result<()> {
        if params.len() != kernel.params_size() {
            return Err(Error::Internal(format!(
                "wrong parameters for {}",
                kernel.symbol()
            )));
        }
        // As the driver does.
        if grid == 0 || grid > i32::MAX as u32 {
            return Err(Error::Internal(format!(
                "the device failed to run {} (a grid of {grid} blocks)",
                kernel.symbol()
            )));
        }
        self.state().traffic.launches += 1;
        let mut aligned = vec![0u64; params.len().div_ceil(8)];
        bytemuck::cast_slice_mut::<u64, u8>(&mut aligned)[..params.len()].copy_from_slice(params);
        self.queue(DeviceWork::Launch {
            kernel,
            grid,
            params: aligned,
        })
    }

    fn mark(&self) -> Result<Mark> {
        Ok(self.marked(ShimQueue::Ordered))
    }

    fn reached(&self, mark: &Mark) -> Result<bool> {
        let mut state = self.state();
        state.traffic.syncs += 1;
        state.delayed.asked += 1;
        let unwaited = state.delayed.asked == self.options.unwaited;
        self.call(&mut state, HostCall::Waited);
        drop(state);
        if self.options.delay && !unwaited {
            self.catch_up(mark.0)?;
        }
        Ok(true)
    }

    fn unmark(&self, _mark: Mark) {
        self.state().held.marks -= 1;
    }

    fn between(&self, from: &Mark, to: &Mark) -> Result<f64> {
        Ok(to.0.saturating_sub(from.0) as f64 * 1e-9)
    }

    fn trim(&self) {
        let mut state = self.state();
        state.traffic.trims += 1;
        state.held.reserved = state.held.device;
    }

    fn lose(&self, why: &str) {
        let _ = self.lost.set(why.to_owned());
        self.forget();
    }

    fn failure(&self) -> Option<String> {
        self.lost.get().cloned()
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocation_of_nothing_is_memory_like_any_other() {
        let shim = Shim::open(ShimOptions::default()).unwrap();
        let (a, b) = (shim.alloc(0).unwrap(), shim.alloc(0).unwrap());
        let host = shim.alloc_host(0).unwrap();
        assert!(a != b && a % 256 == 0 && b % 256 == 0);
        assert_eq!(shim.holdings().device, 2);
        // SAFETY: each of them is one byte, and is given back once.
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
