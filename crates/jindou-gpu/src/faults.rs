//! Fault injection: a device that fails at a chosen call, to reproduce rare driver failures in tests. It can also have
//! small pages, so that little data has many of them: the pages of a GPU have 2 MiB.

use crate::backend::{Backend, CopyLane, Kernel, Mark};
use jindou_model::sync;
use jindou_model::{Error, Resource, Result};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The injected behaviour of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceFault {
    /// An error after which the device continues to work.
    Error,
    /// Out of memory.
    OutOfMemory,
    /// The loss of the context.
    Lost,
    /// Success, but work queued from here on never completes.
    Hang,
}

impl DeviceFault {
    /// All faults.
    pub const ALL: [Self; 4] = [Self::Error, Self::OutOfMemory, Self::Lost, Self::Hang];
}

/// A device with at most one planned fault.
pub struct DeviceFaults {
    inner: Arc<dyn Backend>,
    fault: DeviceFault,
    /// Number of the call that fails; 0 for none.
    at: AtomicU64,
    calls: AtomicU64,
    hung: AtomicBool,
    lost: OnceLock<String>,
    patience: Duration,
    /// Size in bytes of simulated pages; `None` for those of `inner`. Reserved addresses are then memory from the start,
    /// and unmapping a page overwrites it.
    page: Option<usize>,
    /// Memory and marks that their owners released after the loss. On a real device the context would have freed them;
    /// here they are released on drop.
    orphans: Mutex<Vec<Orphan>>,
}

enum Orphan {
    Device(u64, usize),
    Host(NonNull<u8>, usize),
    Page(u64, usize),
    Addresses(u64, usize),
    Mark(Mark),
}

// SAFETY: the pointers are only stored, to be released later.
unsafe impl Send for DeviceFaults {}
// SAFETY: as above.
unsafe impl Sync for DeviceFaults {}

impl DeviceFaults {
    /// `inner` with a fault at call number `at` (from 1; 0 for none).
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>, fault: DeviceFault, at: u64) -> Self {
        Self {
            inner,
            fault,
            at: AtomicU64::new(at),
            calls: AtomicU64::new(0),
            hung: AtomicBool::new(false),
            lost: OnceLock::new(),
            patience: Duration::from_millis(20),
            page: None,
            orphans: Mutex::default(),
        }
    }

    /// Returns the device with another time limit ([`Backend::patience`]) than 20 ms.
    #[must_use]
    pub fn patient(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Returns the device with simulated pages of this many bytes, and its own time limit again.
    #[must_use]
    pub fn with_page(mut self, bytes: usize) -> Self {
        self.page = Some(bytes);
        self.patience = self.inner.patience();
        self
    }

    /// Number of calls so far that could have been made to fail.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Makes the `n`th call from here on fail; 0 for none.
    pub fn arm(&self, n: u64) {
        let at = if n == 0 { 0 } else { self.calls() + n };
        self.at.store(at, Ordering::Relaxed);
    }

    /// Counts a call. Fails if it is the chosen one, or if the device is lost.
    fn call(&self, what: &str) -> Result<()> {
        if let Some(why) = self.lost.get() {
            return Err(Error::Internal(format!("the GPU is lost: {why}")));
        }
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if number != self.at.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.fault {
            DeviceFault::Error => Err(Error::Internal(format!("the GPU failed to {what}"))),
            DeviceFault::OutOfMemory => {
                Err(Error::limit(Resource::Device, "the GPU's memory is full"))
            }
            DeviceFault::Lost => {
                self.lose(&format!("it failed to {what}"));
                Err(Error::Internal(format!("the GPU failed to {what}")))
            }
            DeviceFault::Hang => {
                self.hung.store(true, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    fn orphan(&self, o: Orphan) {
        sync::lock(&self.orphans).push(o);
    }

    /// Unmaps a page of `inner`, or overwrites a simulated one.
    ///
    /// # Safety
    /// As [`Backend::unmap_page`].
    unsafe fn unmap(&self, at: u64, bytes: usize) {
        if self.page.is_none() {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.inner.unmap_page(at, bytes) };
        }
        // Work that wrongly still reads the page will find zeros. This waits, so that the zeros cannot overwrite a copy
        // on the second queue that follows when the page is mapped again.
        // SAFETY: memory of `inner`, which no work uses.
        let Ok(mark) = unsafe { self.inner.zero(at, bytes) }.and_then(|()| self.inner.mark())
        else {
            return;
        };
        while matches!(self.inner.reached(&mark), Ok(false)) {
            std::thread::yield_now();
        }
        self.inner.unmark(mark);
    }

    /// Releases addresses of `inner`, or the memory that stands for them.
    ///
    /// # Safety
    /// As [`Backend::unreserve`].
    unsafe fn release(&self, at: u64, bytes: usize) {
        // SAFETY: reserved in `reserve`, and no work uses the pages after they were unmapped.
        unsafe {
            match self.page {
                Some(_) => self.inner.free(at, bytes),
                None => self.inner.unreserve(at, bytes),
            }
        }
    }
}

impl Drop for DeviceFaults {
    fn drop(&mut self) {
        let orphans = self.orphans.get_mut();
        for o in std::mem::take(orphans.unwrap_or_else(PoisonError::into_inner)) {
            match o {
                // SAFETY: from `inner`, with these lengths; the owner released it.
                Orphan::Device(at, bytes) => unsafe { self.inner.free(at, bytes) },
                // SAFETY: as above.
                Orphan::Host(at, bytes) => unsafe { self.inner.free_host(at, bytes) },
                // SAFETY: as above.
                Orphan::Page(at, bytes) => unsafe { self.unmap(at, bytes) },
                // SAFETY: as above; its pages were unmapped before it.
                Orphan::Addresses(at, bytes) => unsafe { self.release(at, bytes) },
                Orphan::Mark(mark) => self.inner.unmark(mark),
            }
        }
    }
}

// SAFETY: all memory is `inner`'s, which fulfils the contract. Memory released after the loss stays allocated until
// this is dropped. With simulated pages, reserved addresses are memory of `inner` until they are released, and so is
// each of their pages.
unsafe impl Backend for DeviceFaults {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn identity(&self) -> String {
        self.inner.identity()
    }

    fn memory(&self) -> Result<(u64, u64)> {
        self.call("query its memory")?;
        self.inner.memory()
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        self.call("allocate memory")?;
        self.inner.alloc(bytes)
    }

    unsafe fn free(&self, at: u64, bytes: usize) {
        if self.lost.get().is_some() {
            return self.orphan(Orphan::Device(at, bytes));
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.inner.free(at, bytes) };
    }

    fn page(&self) -> Option<usize> {
        self.page.or_else(|| self.inner.page())
    }

    fn reserve(&self, bytes: usize) -> Result<u64> {
        self.call("reserve addresses")?;
        match self.page {
            Some(_) => self.inner.alloc(bytes),
            None => self.inner.reserve(bytes),
        }
    }

    unsafe fn unreserve(&self, at: u64, bytes: usize) {
        if self.failure().is_some() {
            return self.orphan(Orphan::Addresses(at, bytes));
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.release(at, bytes) };
    }

    unsafe fn map_page(&self, at: u64, bytes: usize) -> Result<()> {
        self.call("map a page")?;
        if self.page.is_some() {
            return Ok(());
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.inner.map_page(at, bytes) }
    }

    unsafe fn unmap_page(&self, at: u64, bytes: usize) {
        if self.failure().is_some() {
            return self.orphan(Orphan::Page(at, bytes));
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.unmap(at, bytes) };
    }

    fn alloc_host(&self, bytes: usize) -> Result<NonNull<u8>> {
        self.call("pin host memory")?;
        self.inner.alloc_host(bytes)
    }

    unsafe fn free_host(&self, at: NonNull<u8>, bytes: usize) {
        if self.lost.get().is_some() {
            return self.orphan(Orphan::Host(at, bytes));
        }
        // SAFETY: guaranteed by the caller.
        unsafe { self.inner.free_host(at, bytes) };
    }

    unsafe fn upload(
        &self,
        to: u64,
        from: NonNull<u8>,
        bytes: usize,
        lane: CopyLane,
    ) -> Result<()> {
        self.call("copy data to the device")?;
        // SAFETY: guaranteed by the caller.
        unsafe { self.inner.upload(to, from, bytes, lane) }
    }

    fn after(&self, mark: &Mark) -> Result<()> {
        self.call("wait for a copy")?;
        self.inner.after(mark)
    }

    unsafe fn download(&self, to: NonNull<u8>, from: u64, bytes: usize) -> Result<()> {
        self.call("copy data from the device")?;
        // SAFETY: guaranteed by the caller.
        unsafe { self.inner.download(to, from, bytes) }
    }

    unsafe fn zero(&self, at: u64, bytes: usize) -> Result<()> {
        self.call("fill memory")?;
        // SAFETY: guaranteed by the caller.
        unsafe { self.inner.zero(at, bytes) }
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        self.call("copy")?;
        // SAFETY: guaranteed by the caller.
        unsafe { self.inner.copy(to, from, bytes) }
    }

    unsafe fn launch(&self, kernel: Kernel, grid: u32, params: &[u8]) -> Result<()> {
        self.call(&format!("run {}", kernel.symbol()))?;
        // SAFETY: guaranteed by the caller.
        unsafe { self.inner.launch(kernel, grid, params) }
    }

    fn mark_in(&self, lane: CopyLane) -> Result<Mark> {
        self.call("record an event")?;
        self.inner.mark_in(lane)
    }

    fn reached(&self, mark: &Mark) -> Result<bool> {
        if self.hung.load(Ordering::Relaxed) && self.lost.get().is_none() {
            return Ok(false);
        }
        self.call("finish its work")?;
        Ok(!self.hung.load(Ordering::Relaxed) && self.inner.reached(mark)?)
    }

    fn unmark(&self, mark: Mark) {
        match self.lost.get() {
            Some(_) => self.orphan(Orphan::Mark(mark)),
            None => self.inner.unmark(mark),
        }
    }

    fn between(&self, from: &Mark, to: &Mark) -> Result<f64> {
        self.call("report the time")?;
        self.inner.between(from, to)
    }

    fn trim(&self) {
        if self.lost.get().is_none() {
            self.inner.trim();
        }
    }

    fn patience(&self) -> Duration {
        self.patience
    }

    fn lose(&self, why: &str) {
        let _ = self.lost.set(why.to_owned());
        // Other work on the device must not wait for it, either.
        if self.page.is_some() {
            self.inner.lose(why);
        }
    }

    fn failure(&self) -> Option<String> {
        self.lost.get().cloned().or_else(|| self.inner.failure())
    }
}
