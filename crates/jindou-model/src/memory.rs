//! Hints to the memory system: prefetches and huge pages. The system may ignore them.

/// Prefetches the cache line at `p`. Any address is allowed: a prefetch never faults.
#[inline(always)]
fn prefetch<T>(p: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint; the instruction (SSE, part of x86-64) reads nothing that the
    // program can see and does not fault on a bad address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(p.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// Prefetches the element `i` of a slice; any `i` is allowed, even beyond the end.
#[inline(always)]
pub fn prefetch_at<T>(slice: &[T], i: usize) {
    prefetch(slice.as_ptr().wrapping_add(i));
}

/// Asks the kernel to back a vector's whole capacity with huge pages, so that random reads rarely miss the TLB. Does
/// nothing below 4 MiB.
pub fn advise_huge<T>(v: &Vec<T>) {
    const PAGE: usize = 4096;
    const WORTH: usize = 4 << 20;
    let (start, len) = (v.as_ptr() as usize, v.capacity() * size_of::<T>());
    if len < WORTH {
        return;
    }
    let first = start.next_multiple_of(PAGE);
    let last = (start + len) / PAGE * PAGE;
    #[cfg(target_os = "linux")]
    if last > first {
        // SAFETY: MADV_HUGEPAGE changes how pages are backed, never their content. The range is inside one live
        // allocation. A failure (say, an unsupported call) has no consequence.
        unsafe {
            libc::madvise(
                first as *mut libc::c_void,
                last - first,
                libc::MADV_HUGEPAGE,
            );
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (first, last);
}

/// A vector of zeros, like `vec![0; len]`, backed by huge pages if it is large and the kernel agrees, so that random
/// reads and writes rarely miss the TLB. Pages are allocated when they are first written.
#[must_use]
pub fn huge_zeroed<T: bytemuck::Zeroable>(len: usize) -> Vec<T> {
    // The allocator gets large zeroed memory from the kernel without touching it, so the advice precedes the first page
    // fault.
    let v: Vec<T> = bytemuck::allocation::zeroed_vec(len);
    advise_huge(&v);
    v
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_any_length_are_zeros_and_may_be_written() {
        for len in [0, 1, 1000, (4 << 20) / 8 + 3] {
            let mut v: Vec<u64> = huge_zeroed(len);
            assert!(v.len() == len && v.iter().all(|n| *n == 0));
            v.iter_mut().for_each(|n| *n = 7);
            advise_huge(&v);
            prefetch_at(&v, usize::MAX);
            assert_eq!(v.iter().sum::<u64>(), 7 * len as u64);
        }
    }
}
