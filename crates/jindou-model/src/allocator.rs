//! An allocator that reports to scopes the memory that their threads take and give back.

use crate::scope::{gave, took};
use std::alloc::{GlobalAlloc, Layout, System};

/// Global allocator that wraps another one, by default the system's, and counts for [`Scope`](crate::Scope)s. Outside
/// of scopes it only costs a thread one look at a thread-local pointer.
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
    /// Wraps this allocator.
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

/// Largest allocation in bytes that [`BySize`] requests from the allocator for small ones.
const SMALL: usize = 4096;

/// Global allocator that combines two: one for pieces of up to 4 KiB, such as a plan's nodes, and by default the
/// system's for larger ones, whose memory is returned as described at [`set_up_allocator`](crate::set_up_allocator).
#[derive(Clone, Copy, Debug, Default)]
pub struct BySize<S, L = System> {
    small: S,
    large: L,
}

impl<S> BySize<S> {
    /// Uses this allocator for small pieces, and the system's for others.
    #[must_use]
    pub const fn new(small: S) -> Self {
        Self {
            small,
            large: System,
        }
    }
}

// SAFETY: each piece is given back to the allocator that it came from, since its layout, which the caller must repeat, says which.
// A piece that is resized across the border is allocated again, copied and freed, as the default of `realloc` does it.
unsafe impl<S: GlobalAlloc, L: GlobalAlloc> GlobalAlloc for BySize<S, L> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps this function's contract, which is both allocators'.
        unsafe {
            match layout.size() <= SMALL {
                true => self.small.alloc(layout),
                false => self.large.alloc(layout),
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: as above; `piece` came from the allocator that its size names.
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
        // SAFETY: as above. The new layout is valid: the caller promises that `new_size` fits the alignment. Both pieces have the
        // bytes that are copied, and are apart.
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
