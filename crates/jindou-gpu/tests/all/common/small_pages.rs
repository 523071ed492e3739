//! A device whose pages are small, so that little data has many: a card's take 2 MiB, of which tests would have one.

use jindou_gpu::backend::Mark;
use jindou_gpu::{Backend, Kernel};
use jindou_model::Result;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// A device that backs reserved addresses with memory at once, and overwrites the pages that are unmapped. Copies, kernels
/// and the order of both are the device's own.
pub struct SmallPages {
    inner: Arc<dyn Backend>,
    page: usize,
}

impl SmallPages {
    pub fn new(inner: Arc<dyn Backend>, page: usize) -> Self {
        Self { inner, page }
    }
}

// SAFETY: all memory is `inner`'s, which keeps the contract; reserved addresses are memory of `inner` until they are
// released, so that a page of them is too.
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
        // SAFETY: the caller's promise.
        unsafe { self.inner.free(at, bytes) };
    }

    fn page(&self) -> Option<usize> {
        Some(self.page)
    }

    fn reserve(&self, bytes: usize) -> Result<u64> {
        self.inner.alloc(bytes)
    }

    unsafe fn unreserve(&self, at: u64, bytes: usize) {
        // SAFETY: from `reserve`, and no work uses pages that are not mapped.
        unsafe { self.inner.free(at, bytes) };
    }

    unsafe fn map_page(&self, _at: u64, _bytes: usize) -> Result<()> {
        Ok(())
    }

    unsafe fn unmap_page(&self, at: u64, bytes: usize) {
        // Who still reads the page will find other data. Copies aside to it, once it is mapped again, must not be
        // overtaken.
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
        // SAFETY: the caller's promise.
        unsafe { self.inner.free_host(at, bytes) };
    }

    unsafe fn upload(&self, to: u64, from: NonNull<u8>, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.inner.upload(to, from, bytes) }
    }

    unsafe fn upload_aside(&self, to: u64, from: NonNull<u8>, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.inner.upload_aside(to, from, bytes) }
    }

    fn mark_aside(&self) -> Result<Mark> {
        self.inner.mark_aside()
    }

    fn after(&self, mark: &Mark) -> Result<()> {
        self.inner.after(mark)
    }

    unsafe fn download(&self, to: NonNull<u8>, from: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.inner.download(to, from, bytes) }
    }

    unsafe fn zero(&self, at: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.inner.zero(at, bytes) }
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.inner.copy(to, from, bytes) }
    }

    unsafe fn launch(&self, kernel: Kernel, grid: u32, params: &[u8]) -> Result<()> {
        // SAFETY: the caller's promise.
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
