//! The shim's implementation of [`Backend`].

use super::work::DeviceWork;
use super::{Shim, layout};
use crate::backend::{Backend, CopyLane, Kernel, Mark};
use jindou_model::{Error, Resource, Result};
use std::ptr::NonNull;

fn full() -> Error {
    Error::limit(Resource::Device, "the device's memory is full")
}

// SAFETY: memory of both kinds comes from the process's allocator, with the layout's size (at least one byte) and
// alignment, and is freed only when the caller releases it.
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
            return Err(full());
        }
        // SAFETY: the layout's size is not 0.
        let at = unsafe { std::alloc::alloc(layout) };
        if at.is_null() {
            return Err(full());
        }
        // Filled with garbage, so that a read of memory that was not written to becomes visible.
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
            // The bytes count as free at once, since work that is queued after this may use them.
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
            // SAFETY: allocated by `reserve` with this size, and freed once.
            unsafe { std::alloc::dealloc(at as *mut u8, layout) };
        }
    }

    unsafe fn map_page(&self, at: u64, bytes: usize) -> Result<()> {
        let mut state = self.state();
        state.traffic.pages += 1;
        let used = state.held.device + bytes as u64;
        if used > self.limit() {
            return Err(full());
        }
        // Filled with garbage, so that a read of memory that was not written to becomes visible.
        // SAFETY: the address is reserved, so it is memory of this process.
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

    unsafe fn upload(
        &self,
        to: u64,
        from: NonNull<u8>,
        bytes: usize,
        lane: CopyLane,
    ) -> Result<()> {
        self.state().uploads(bytes);
        self.queue_in(lane, DeviceWork::Upload { to, from, bytes })
    }

    fn after(&self, mark: &Mark) -> Result<()> {
        let mut state = self.state();
        // Without `delay`, or if the work before the marker is done, there is nothing to order.
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
        // The CUDA driver rejects these grids, too.
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

    fn mark_in(&self, lane: CopyLane) -> Result<Mark> {
        Ok(self.marked(lane))
    }

    fn reached(&self, mark: &Mark) -> Result<bool> {
        let mut state = self.state();
        state.traffic.syncs += 1;
        state.delayed.asked += 1;
        let unwaited = state.delayed.asked == self.options.unwaited;
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
