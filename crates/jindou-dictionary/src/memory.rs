//! Hints to the memory system: prefetches and huge pages. All are safe to ignore.

/// Asks for the cache line at `p`. Any address is allowed: a prefetch never faults.
#[inline(always)]
pub(crate) fn prefetch<T>(p: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint; the instruction (SSE, part of x86-64) reads nothing that the
    // program can see and does not fault on a bad address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(p.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// Prefetches the element `i` of a slice; nothing happens beyond its end.
#[inline(always)]
pub(crate) fn prefetch_at<T>(slice: &[T], i: usize) {
    prefetch(slice.as_ptr().wrapping_add(i));
}

/// Asks the kernel to back this memory with huge pages: a random read then seldom misses the TLB.
pub(crate) fn advise_huge(start: *const u8, len: usize) {
    const PAGE: usize = 4096;
    const WORTH: usize = 4 << 20;
    if len < WORTH {
        return;
    }
    let first = (start as usize).next_multiple_of(PAGE);
    let last = (start as usize + len) / PAGE * PAGE;
    if last > first {
        // SAFETY: MADV_HUGEPAGE changes how pages are backed, never their content; the range lies
        // inside an allocation of ours, and an error (unsupported) is of no consequence.
        unsafe {
            libc::madvise(
                first as *mut libc::c_void,
                last - first,
                libc::MADV_HUGEPAGE,
            );
        }
    }
}

/// A vector of zeros, backed by huge pages where it is large and the kernel agrees: random reads and writes then seldom miss
/// the TLB. Other than `vec![0; len]` in nothing else.
#[must_use]
pub fn huge_zeroed<T: bytemuck::Zeroable + Clone>(len: usize) -> Vec<T> {
    // The allocator takes large zeroed memory untouched from the kernel, so that the advice comes
    // before the first page fault.
    let v: Vec<T> = bytemuck::allocation::zeroed_vec(len);
    advise_huge(v.as_ptr().cast(), std::mem::size_of_val(v.as_slice()));
    v
}
