//! A device with small pages, so that little data has many pages: those of a GPU have 2 MiB, so a test would have one.

use jindou_gpu::backend::Mark;
use jindou_gpu::{Backend, Kernel};
use jindou_model::Result;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// Simulates small pages: reserved addresses are memory from the start, and unmapping a page overwrites it. Copies,
/// kernels and their order are those of the wrapped device.
pub struct SmallPages {
    inner: Arc<dyn Backend>,
    page: usize,
}

impl SmallPages {
    pub fn new(inner: Arc<dyn Backend>, page: usize) -> Self {
        Self { inner, page }
    }
}

// SAFETY: all memory is `inner`'s, which fulfils the contract; reserved addresses are memory of `inner` until they are
// released, and so is each of their pages.
unsafe impl Backend for SmallPages {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn identity(&self) -> String {
        self.inner.identity()
    }

    fn memory(&self) -> Result<(u64, u64)> {
        self.inner.memory()
    }

    fn alloc(&self, bytes: usize) -> Result<u64> {
        self.inner.alloc(bytes)
    }

    unsafe fn free(&self, at: u64, bytes: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.inner.free(at, bytes) };
    }

    fn page(&self) -> Option<usize> {
        Some(self.page)
    }

    fn reserve(&self, bytes: usize) -> Result<u64> {
        self.inner.alloc(bytes)
    }

    unsafe fn unreserve(&self, at: u64, bytes: usize) {
        // SAFETY: allocated in `reserve`, and no work uses the pages after they were unmapped.
        unsafe { self.inner.free(at, bytes) };
    }

    unsafe fn map_page(&self, _at: u64, _bytes: usize) -> Result<()> {
        Ok(())
    }

    unsafe fn unmap_page(&self, at: u64, bytes: usize) {
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

    fn alloc_host(&self, bytes: usize) -> Result<NonNull<u8>> {
        self.inner.alloc_host(bytes)
    }

    unsafe fn free_host(&self, at: NonNull<u8>, bytes: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.inner.free_host(at, bytes) };
    }

    unsafe fn upload(&self, to: u64, from: NonNull<u8>, bytes: usize) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.inner.upload(to, from, bytes) }
    }

    unsafe fn upload_aside(&self, to: u64, from: NonNull<u8>, bytes: usize) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.inner.upload_aside(to, from, bytes) }
    }

    fn mark_aside(&self) -> Result<Mark> {
        self.inner.mark_aside()
    }

    fn after(&self, mark: &Mark) -> Result<()> {
        self.inner.after(mark)
    }

    unsafe fn download(&self, to: NonNull<u8>, from: u64, bytes: usize) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.inner.download(to, from, bytes) }
    }

    unsafe fn zero(&self, at: u64, bytes: usize) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.inner.zero(at, bytes) }
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.inner.copy(to, from, bytes) }
    }

    unsafe fn launch(&self, kernel: Kernel, grid: u32, params: &[u8]) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.inner.launch(kernel, grid, params) }
    }

    fn mark(&self) -> Result<Mark> {
        self.inner.mark()
    }

    fn reached(&self, mark: &Mark) -> Result<bool> {
        self.inner.reached(mark)
    }

    fn unmark(&self, mark: Mark) {
        self.inner.unmark(mark);
    }

    fn between(&self, from: &Mark, to: &Mark) -> Result<f64> {
        self.inner.between(from, to)
    }

    fn trim(&self) {
        self.inner.trim();
    }

    fn patience(&self) -> Duration {
        self.inner.patience()
    }

    fn lose(&self, why: &str) {
        self.inner.lose(why);
    }

    fn failure(&self) -> Option<String> {
        self.inner.failure()
    }
}
