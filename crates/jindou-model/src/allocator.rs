//! The allocator that tells scopes what their threads take and give back.

use crate::scope::{gave, took};
use std::alloc::{GlobalAlloc, Layout, System};

/// Global allocator over another one, by default the system's, that counts for [`Scope`](crate::Scope)s. A thread that is inside no scope
/// pays for one look at a thread-local pointer.
///
/// ```
/// use jindou_model::Tracked;
///
/// #[global_allocator]
/// static ALLOCATOR: Tracked = Tracked::new();
/// # fn main() {}
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Tracked<A = System> {
    inner: A,
}

impl Tracked {
    /// Over the system's allocator.
    #[must_use]
    pub const fn new() -> Self {
        Self::over(System)
    }
}

impl<A> Tracked<A> {
    /// Over this allocator.
    #[must_use]
    pub const fn over(inner: A) -> Self {
        Self { inner }
    }
}

// SAFETY: every call goes to the inner allocator as it came, and its answer goes back as it is. Counting neither allocates nor
// unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Tracked<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps this function's contract, which is the inner one's.
        let piece = unsafe { self.inner.alloc(layout) };
        if !piece.is_null() {
            took(layout.size());
        }
        piece
    }

    #[inline]
    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: as above; `piece` came from the inner allocator.
        unsafe { self.inner.dealloc(piece, layout) };
        gave(layout.size());
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let piece = unsafe { self.inner.alloc_zeroed(layout) };
        if !piece.is_null() {
            took(layout.size());
        }
        piece
    }

    #[inline]
    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as above; `piece` came from the inner allocator.
        let moved = unsafe { self.inner.realloc(piece, layout, new_size) };
        if !moved.is_null() {
            gave(layout.size());
            took(new_size);
        }
        moved
    }
}
