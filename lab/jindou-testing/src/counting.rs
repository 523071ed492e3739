//! A counting global allocator, by which tests measure the memory that a function uses.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The system's allocator with counters for [`counted`] and [`counted_of_thread`]. They stay zero unless `Counting` is
/// the program's `#[global_allocator]`.
pub struct Counting;

/// Number of allocated bytes, and its maxima. While a block is being resized, `MOST` includes its new size, and
/// `MOST_COPIED` both its old and its new size.
static LIVE: AtomicIsize = AtomicIsize::new(0);
static MOST: AtomicIsize = AtomicIsize::new(0);
static MOST_COPIED: AtomicIsize = AtomicIsize::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static NUMBER: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Number of bytes that the thread has allocated, and its maximum, which includes both sizes of a block that is
    /// being resized.
    static OF_THREAD: Cell<[isize; 2]> = const { Cell::new([0; 2]) };
}

/// Counts an allocation of `size` bytes that replaces a block of `old` bytes (0 if there is none).
fn count(size: usize, old: usize) {
    let (size, old) = (size as isize, old as isize);
    NUMBER.fetch_add(1, Relaxed);
    BYTES.fetch_add(size as u64, Relaxed);
    let now = LIVE.fetch_add(size - old, Relaxed) + size - old;
    MOST.fetch_max(now, Relaxed);
    MOST_COPIED.fetch_max(now + old, Relaxed);
    // The access fails while a thread ends, when its counters no longer exist.
    let _ = OF_THREAD.try_with(|live| {
        let [now, most] = live.get();
        live.set([now + size - old, most.max(now + size)]);
    });
}

// SAFETY: all calls are passed to the system's allocator; only sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        let size = layout.size() as isize;
        LIVE.fetch_sub(size, Relaxed);
        let _ = OF_THREAD.try_with(|live| {
            let [now, most] = live.get();
            live.set([now - size, most]);
        });
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Memory that a function used, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Largest number of bytes allocated at the same time.
    pub most: usize,
    /// Largest number of bytes allocated at the same time if every resized block is copied, so that both its old and
    /// its new size are allocated.
    pub most_copied: usize,
    /// Number of bytes that are still allocated, minus bytes that were allocated before the call and freed by it.
    pub kept: isize,
    /// Sum of the sizes of all allocations.
    pub bytes: u64,
    /// Number of allocations.
    pub number: u64,
}

/// Calls `run`, and counts the allocations that the whole process makes in the meantime. Tests must hold [`turn`].
pub fn counted<T>(run: impl FnOnce() -> T) -> (T, Counted) {
    let (bytes, number) = (BYTES.load(Relaxed), NUMBER.load(Relaxed));
    let live = LIVE.load(Relaxed);
    MOST.store(live, Relaxed);
    MOST_COPIED.store(live, Relaxed);
    let done = run();
    let above = |most: &AtomicIsize| (most.load(Relaxed) - live) as usize;
    let taken = Counted {
        most: above(&MOST),
        most_copied: above(&MOST_COPIED),
        kept: LIVE.load(Relaxed) - live,
        bytes: BYTES.load(Relaxed) - bytes,
        number: NUMBER.load(Relaxed) - number,
    };
    (done, taken)
}

/// Calls `run`, and returns the largest number of bytes that this thread had allocated at the same time. While a block
/// is being resized, both its sizes count.
pub fn counted_of_thread<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let live = OF_THREAD.get()[0];
    OF_THREAD.set([live; 2]);
    let done = run();
    (done, (OF_THREAD.get()[1] - live) as usize)
}

/// The lock that tests must hold while they measure, so that they do not count each other's allocations.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
