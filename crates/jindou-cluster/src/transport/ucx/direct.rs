//! Regions of a peer that this process sees: read with plain loads.

use std::ptr;
use std::sync::OnceLock;

/// Regions of one connection that can be seen; those attached later are read by calls of UCX. (A store has
/// six, and a connection lives about as long as an epoch.)
const WINDOWS: usize = 256;

/// A mapped region.
#[derive(Debug)]
pub(super) struct Window {
    pointer: *const u8,
    len: u64,
}

// SAFETY: the memory behind `pointer` is only read, never changes, and belongs to no thread.
unsafe impl Send for Window {}
// SAFETY: as above.
unsafe impl Sync for Window {}

impl Window {
    /// Copies the bytes from `offset` on; false if they are not all in the region.
    #[inline]
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> bool {
        let end = offset.checked_add(into.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return false;
        }
        // SAFETY: in bounds (just checked) of memory that `Windows::open` was promised to be readable; `into`
        // is ours alone and in no mapping of the peer.
        unsafe {
            let from = self.pointer.add(offset as usize);
            ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len());
        }
        true
    }

    /// Starts fetching the byte at `offset`.
    #[inline]
    pub(super) fn prefetch(&self, offset: u64) {
        #[cfg(target_arch = "x86_64")]
        if offset < self.len {
            // SAFETY: in bounds; a prefetch never faults. SSE is part of the x86-64 baseline.
            unsafe {
                use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(self.pointer.add(offset as usize).cast());
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = offset;
    }

    /// Starts fetching the cache lines around `offset`, which is a guess.
    #[inline]
    pub(super) fn prefetch_around(&self, offset: u64) {
        /// Half a line.
        const NEAR: u64 = 32;
        self.prefetch(offset.saturating_sub(NEAR));
        self.prefetch(offset.saturating_add(NEAR));
    }
}

/// Windows by a region's slot; looked up without a lock.
#[derive(Debug, Default)]
pub(super) struct Windows(OnceLock<Box<[OnceLock<Window>]>>);

impl Windows {
    /// Notes a window; without effect beyond [`WINDOWS`].
    ///
    /// # Safety
    ///
    /// `len` bytes from `pointer` on must be readable and not change as long as `self` lives.
    pub(super) unsafe fn open(&self, slot: u32, pointer: *const u8, len: u64) {
        let windows = self
            .0
            .get_or_init(|| (0..WINDOWS).map(|_| OnceLock::new()).collect());
        if let Some(w) = windows.get(slot as usize) {
            // A slot is given out once.
            let _ = w.set(Window { pointer, len });
        }
    }

    /// The window of a slot.
    #[inline]
    pub(super) fn get(&self, slot: u32) -> Option<&Window> {
        self.0.get()?.get(slot as usize)?.get()
    }
}
