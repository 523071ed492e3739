//! The table of mapped regions. The signal handler reads it, so reading takes no lock and allocates nothing.
//!
//! Slots are in blocks that are never freed, so a reader can walk them at any time. Slots of unmapped files are reused,
//! so the table has as many slots as the largest number of files that were ever mapped at once.

use crate::sync;
use std::ops::Range;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence};

const SLOTS: usize = 64;

struct SlotBlock {
    slots: [RegionSlot; SLOTS],
    next: AtomicPtr<SlotBlock>,
}

/// The slot of one mapped region. A seqlock: `version` is odd while the bounds are being changed.
#[derive(Default)]
struct RegionSlot {
    version: AtomicU32,
    start: AtomicUsize,
    end: AtomicUsize,
    /// The first [`Failure`] of the file as a number; 0 if there was none.
    failed: AtomicU8,
}

/// The way in which a mapped file has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Some of its bytes could not be read and were replaced by zeros, or its last byte has changed.
    Unreadable = 1,
    /// Parts of its content contradict each other.
    Contradiction = 2,
}

impl RegionSlot {
    /// The bounds; an empty range if they are being changed at the same time.
    fn bounds(&self) -> Range<usize> {
        let before = self.version.load(Ordering::Acquire);
        let range = self.start.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed);
        // Orders the reads of the bounds before the second read of the version.
        fence(Ordering::Acquire);
        let after = self.version.load(Ordering::Relaxed);
        if before == after && before.is_multiple_of(2) {
            range
        } else {
            0..0
        }
    }

    /// Sets the bounds. Callers must hold the lock of [`FREE`].
    fn set(&self, range: Range<usize>) {
        let version = self.version.load(Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(1), Ordering::Relaxed);
        // Makes the odd version visible before any of the new bounds.
        fence(Ordering::Release);
        self.start.store(range.start, Ordering::Relaxed);
        self.end.store(range.end, Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(2), Ordering::Release);
    }
}

/// True once any file has failed; never reset.
static ANY_FAILED: AtomicBool = AtomicBool::new(false);
static BLOCKS: AtomicPtr<SlotBlock> = AtomicPtr::new(ptr::null_mut());
/// Slots without a region.
static FREE: Mutex<Vec<&'static RegionSlot>> = Mutex::new(Vec::new());

/// A registered region of memory. Must be dropped before the memory is unmapped.
pub(crate) struct Region {
    slot: &'static RegionSlot,
}

impl Region {
    /// Registers a mapping whose first byte is at the start of a page. Faults anywhere in its pages belong to this
    /// region.
    pub(crate) fn new(mapping: &[u8]) -> Self {
        let mut free = sync::lock(&FREE);
        if free.is_empty() {
            let block: &'static SlotBlock = Box::leak(Box::new(SlotBlock {
                slots: std::array::from_fn(|_| RegionSlot::default()),
                next: AtomicPtr::new(BLOCKS.load(Ordering::Relaxed)),
            }));
            BLOCKS.store(ptr::from_ref(block).cast_mut(), Ordering::Release);
            free.extend(&block.slots);
        }
        let Some(slot) = free.pop() else {
            unreachable!("a block has slots");
        };
        let range = mapping.as_ptr_range();
        let end = range
            .end
            .addr()
            .next_multiple_of(super::signal::page_size());
        slot.failed.store(0, Ordering::Relaxed);
        slot.set(range.start.addr()..end);
        Self { slot }
    }

    /// Marks the region as failed, since its bytes have changed.
    pub(crate) fn fail(&self) {
        mark(self.slot, Failure::Unreadable);
    }

    /// True if the region is marked only because its content contradicts itself.
    pub(crate) fn contradicts(&self) -> bool {
        self.slot.failed.load(Ordering::Relaxed) == Failure::Contradiction as u8
    }

    /// True if the region is marked as failed; certainly so if this thread has read any byte that the handler put
    /// there.
    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        any_failed() && self.slot.failed.load(Ordering::Relaxed) != 0
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let mut free = sync::lock(&FREE);
        self.slot.set(0..0);
        free.push(self.slot);
    }
}

fn mark(slot: &RegionSlot, failure: Failure) {
    let order = Ordering::SeqCst;
    // Only the first failure is recorded, since later ones may be its consequences.
    let _ = (slot.failed).compare_exchange(0, failure as u8, order, order);
    ANY_FAILED.store(true, Ordering::SeqCst);
}

/// True if any file of this process has ever failed; certainly so if this thread has read a byte that the handler put
/// there. Takes one load.
#[inline]
#[must_use]
pub fn any_failed() -> bool {
    // The handler sets the marks before it replaces the pages. So a thread that has read a replaced page sees the
    // marks, provided that it reads them after the page.
    fence(Ordering::AcqRel);
    ANY_FAILED.load(Ordering::Acquire)
}

/// Marks the region that contains an address as failed, and returns the region's end; `None` if no region contains it.
/// Async-signal-safe: it only reads and writes atomics.
///
/// A region that is being read is not dropped meanwhile, so its bounds are stable while a read of it faults.
pub(crate) fn fail_at(address: usize, failure: Failure) -> Option<usize> {
    let mut block = BLOCKS.load(Ordering::Acquire);
    // SAFETY: blocks are never freed, and are complete when they are published.
    while let Some(b) = unsafe { block.as_ref() } {
        for slot in &b.slots {
            let bounds = slot.bounds();
            if bounds.contains(&address) {
                mark(slot, failure);
                return Some(bounds.end);
            }
        }
        block = b.next.load(Ordering::Relaxed);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_while_its_region_lives() {
        let page = crate::mapped::signal::page_size();
        // The memory is only used for addresses that belong to no mapping; it is never read.
        let memory = vec![0u8; 4 * page];
        let first = memory.as_ptr().addr().next_multiple_of(page) - memory.as_ptr().addr();
        let mapping = &memory[first..first + page + 1];
        let at = mapping.as_ptr().addr();
        assert_eq!(fail_at(at, Failure::Unreadable), None);
        let region = Region::new(mapping);
        assert!(!region.has_failed());
        assert_eq!(fail_at(at - 1, Failure::Unreadable), None);
        assert_eq!(fail_at(at + 2 * page, Failure::Unreadable), None);
        assert!(!region.has_failed());
        assert_eq!(
            fail_at(at + 2 * page - 1, Failure::Unreadable),
            Some(at + 2 * page)
        );
        assert!(region.has_failed());
        drop(region);
        assert_eq!(fail_at(at, Failure::Unreadable), None);
        // A reused slot is not marked.
        assert!(!Region::new(mapping).has_failed());
    }

    #[test]
    fn regions_come_and_go_on_many_threads() {
        let page = crate::mapped::signal::page_size();
        // Under Miri, the test is some thousand times slower.
        let (rounds, count) = if cfg!(miri) { (2, 70) } else { (20, 200) };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let memory = vec![0u8; (count + 1) * page];
                    let first =
                        memory.as_ptr().addr().next_multiple_of(page) - memory.as_ptr().addr();
                    for round in 0..rounds {
                        let pages = |i: usize| &memory[first + i * page..first + (i + 1) * page];
                        let regions: Vec<Region> =
                            (0..count).map(|i| Region::new(pages(i))).collect();
                        let hit = (round * 7) % count;
                        let at = pages(hit).as_ptr().addr();
                        assert_eq!(fail_at(at + 5, Failure::Unreadable), Some(at + page));
                        for (i, region) in regions.iter().enumerate() {
                            assert_eq!(region.has_failed(), i == hit);
                        }
                    }
                });
            }
        });
    }
}
