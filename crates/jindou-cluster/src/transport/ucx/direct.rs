//! Regions of a peer that are visible in this process: read with plain loads.

use jindou_store::directory::Bytes;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Largest number of visible regions and mapped files of one connection. Of regions attached later, those that UCX
/// knows are read by calls of UCX, and files are not read at all. (A store has six, and a connection lives about as
/// long as an epoch.)
const WINDOWS: usize = 256;
/// Flag in the slot of a file, which UCX does not know.
const FILE: u32 = 1 << 31;

/// A mapped region.
#[derive(Debug)]
pub(super) struct Window {
    pointer: *const u8,
    len: u64,
    /// Keeps the memory mapped, if it was mapped here.
    file: Option<Bytes>,
}

// SAFETY: the memory after `pointer` is only read, never changes (but for a file that fails, which [`Window::is_whole`] tells), and
// belongs to no thread.
unsafe impl Send for Window {}
// SAFETY: as above.
unsafe impl Sync for Window {}

impl Window {
    /// False if the bytes read may differ from those that the owner wrote to a file.
    #[inline]
    pub(super) fn is_whole(&self) -> bool {
        self.file.as_ref().is_none_or(Bytes::is_whole)
    }

    /// Copies the bytes from `offset` on; false if they are not all in the region.
    #[inline]
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> bool {
        let end = offset.checked_add(into.len() as u64);
        if end.is_none_or(|end| end > self.len) {
            return false;
        }
        // SAFETY: in bounds (just checked) of memory that `Windows::open` was promised to be readable, or of a file's; `into`
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
}

/// Windows by a region's slot; looked up without a lock.
#[derive(Debug, Default)]
pub(super) struct Windows {
    /// Regions that UCX knows, by its slots; then files.
    all: OnceLock<Box<[OnceLock<Window>]>>,
    files: AtomicU32,
}

impl Windows {
    fn all(&self) -> &[OnceLock<Window>] {
        self.all
            .get_or_init(|| (0..2 * WINDOWS).map(|_| OnceLock::new()).collect())
    }

    /// Records a window; without effect beyond [`WINDOWS`].
    ///
    /// # Safety
    ///
    /// `len` bytes from `pointer` on must be readable and must not change as long as `self` lives.
    pub(super) unsafe fn open(&self, slot: u32, pointer: *const u8, len: u64) {
        if let Some(w) = self.all().get(..WINDOWS).and_then(|w| w.get(slot as usize)) {
            // A slot is assigned only once.
            let _ = w.set(Window {
                pointer,
                len,
                file: None,
            });
        }
    }

    /// Keeps a file; returns its slot, or `None` beyond [`WINDOWS`].
    pub(super) fn map(&self, file: Bytes) -> Option<u32> {
        let at = self.files.fetch_add(1, Ordering::Relaxed);
        let place = self.all().get(WINDOWS..)?.get(at as usize);
        let Some(place) = place else {
            self.files.fetch_sub(1, Ordering::Relaxed);
            return None;
        };
        let bytes = file.as_slice();
        // The mapping does not move with its owner.
        let window = Window {
            pointer: bytes.as_ptr(),
            len: bytes.len() as u64,
            file: Some(file),
        };
        let _ = place.set(window);
        Some(FILE | at)
    }

    /// The window of a slot.
    #[inline]
    pub(super) fn get(&self, slot: u32) -> Option<&Window> {
        let at = match slot & FILE {
            0 if slot as usize >= WINDOWS => return None,
            0 => slot as usize,
            _ => WINDOWS + (slot & !FILE) as usize,
        };
        self.all.get()?.get(at)?.get()
    }
}
