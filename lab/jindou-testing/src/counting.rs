//! A global allocator that counts, and what a piece of work took of it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The system's allocator, counted for [`counted`] and [`counted_of_thread`]. It counts nothing unless it is the program's
/// `#[global_allocator]`.
pub struct Counting;

/// Bytes that live, and the most that did: with a piece that is resized counted once, and with its old and new size.
static LIVE: AtomicIsize = AtomicIsize::new(0);
static MOST: AtomicIsize = AtomicIsize::new(0);
static MOST_COPIED: AtomicIsize = AtomicIsize::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static NUMBER: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// A thread's bytes that live, and the most that did, copies included.
    static OF_THREAD: Cell<[isize; 2]> = const { Cell::new([0; 2]) };
}

/// Counts a piece of this size in place of one of the old size.
fn count(size: usize, old: usize) {
    let (size, old) = (size as isize, old as isize);
    NUMBER.fetch_add(1, Relaxed);
    BYTES.fetch_add(size as u64, Relaxed);
    let now = LIVE.fetch_add(size - old, Relaxed) + size - old;
    MOST.fetch_max(now, Relaxed);
    MOST_COPIED.fetch_max(now + old, Relaxed);
    // A thread that ends has none any more.
    let _ = OF_THREAD.try_with(|live| {
        let [now, most] = live.get();
        live.set([now + size - old, most.max(now + size)]);
    });
}

// SAFETY: everything is handed on to the system's allocator; only sizes are counted.
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

/// Memory that a piece of work took, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// The most at once.
    pub most: usize,
    /// The most at once, where a piece that is resized is copied: old and new size live together.
    pub most_copied: usize,
    /// Bytes that still live, less those that were freed of earlier ones.
    pub kept: isize,
    /// All that was ever asked for.
    pub bytes: u64,
    /// How often something was asked for.
    pub number: u64,
}

/// Runs something, and counts what the whole process took meanwhile: tests that do so take their [`turn`].
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

/// Runs something, and counts the most that this thread took at once, copies included.
pub fn counted_of_thread<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let live = OF_THREAD.get()[0];
    OF_THREAD.set([live; 2]);
    let done = run();
    (done, (OF_THREAD.get()[1] - live) as usize)
}

/// Held by one test at a time of those that measure their process.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
