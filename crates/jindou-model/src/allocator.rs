//! A global allocator that reports the memory that threads allocate and free to their scopes.

use crate::scope::{gave, took};
use std::alloc::{GlobalAlloc, Layout, System};

/// Global allocator that wraps another one, by default the system's, and counts for [`Scope`](crate::Scope)s. Outside
/// of scopes it only reads a thread-local pointer.
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
    /// Wraps the system's allocator.
    #[must_use]
    pub const fn new() -> Self {
        Self::over(System)
    }
}

impl<A> Tracked<A> {
    /// Wraps the allocator `inner`.
    #[must_use]
    pub const fn over(inner: A) -> Self {
        Self { inner }
    }
}

// SAFETY: every call and its result are passed on unchanged between the caller and the inner allocator. Counting
// neither allocates nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Tracked<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils the contract of this function, which is that of the inner allocator.
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

/// Largest size in bytes of an allocation that [`BySize`] requests from the allocator for small ones.
const SMALL: usize = 4096;

/// Global allocator that combines two: one for allocations of up to 4 KiB, such as a plan's nodes, and one for larger
/// ones, by default the system's, whose memory returns to the system as [`set_up_allocator`](crate::set_up_allocator)
/// describes.
#[derive(Clone, Copy, Debug, Default)]
pub struct BySize<S, L = System> {
    small: S,
    large: L,
}

impl<S> BySize<S> {
    /// Uses this allocator for small allocations, and the system's for others.
    #[must_use]
    pub const fn new(small: S) -> Self {
        Self {
            small,
            large: System,
        }
    }
}

// SAFETY: memory is always freed by the allocator that it came from, since that depends only on the layout, which
// callers must pass again. A piece that is resized across the boundary is allocated again, copied and freed, as the
// default implementation of `realloc` does.
unsafe impl<S: GlobalAlloc, L: GlobalAlloc> GlobalAlloc for BySize<S, L> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils the contract of this function, which is that of both allocators.
        unsafe {
            match layout.size() <= SMALL {
                true => self.small.alloc(layout),
                false => self.large.alloc(layout),
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: as above; `piece` came from the allocator for its size.
        unsafe {
            match layout.size() <= SMALL {
                true => self.small.dealloc(piece, layout),
                false => self.large.dealloc(piece, layout),
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            match layout.size() <= SMALL {
                true => self.small.alloc_zeroed(layout),
                false => self.large.alloc_zeroed(layout),
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as above. The new layout is valid, since the caller promises that `new_size` fits the alignment. Both
        // pieces are at least as long as the copied bytes, and do not overlap.
        unsafe {
            match (layout.size() <= SMALL, new_size <= SMALL) {
                (true, true) => self.small.realloc(piece, layout, new_size),
                (false, false) => self.large.realloc(piece, layout, new_size),
                _ => {
                    let new = Layout::from_size_align_unchecked(new_size, layout.align());
                    let moved = self.alloc(new);
                    if !moved.is_null() {
                        piece.copy_to_nonoverlapping(moved, layout.size().min(new_size));
                        self.dealloc(piece, layout);
                    }
                    moved
                }
            }
        }
    }
}
