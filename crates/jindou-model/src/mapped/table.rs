//! The table of mapped regions, which a signal handler reads: no lock, no allocation on its side.
//!
//! Slots lie in blocks that are never freed, so a reader may walk them at any time. A slot that is not used is used again, so the
//! table is as large as the most files that were ever mapped at once.

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

/// One mapped region. A seqlock: `version` is odd while the bounds change.
#[derive(Default)]
struct RegionSlot {
    version: AtomicU32,
    start: AtomicUsize,
    end: AtomicUsize,
    /// A [`Failure`] as a number; 0 while there is none. The first one stays.
    failed: AtomicU8,
}

/// The way in which a mapped file failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Some of its bytes could not be read, and are zeros now.
    Unreadable = 1,
    /// Parts of its content contradict each other.
    Contradiction = 2,
}

impl RegionSlot {
    /// The bounds, if they do not change meanwhile; an empty range if they do.
    fn bounds(&self) -> Range<usize> {
        let before = self.version.load(Ordering::Acquire);
        let range = self.start.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed);
        // The bounds are read before the version is read again.
        fence(Ordering::Acquire);
        let after = self.version.load(Ordering::Relaxed);
        if before == after && before.is_multiple_of(2) {
            range
        } else {
            0..0
        }
    }

    /// Sets the bounds. Callers hold the lock of [`FREE`].
    fn set(&self, range: Range<usize>) {
        let version = self.version.load(Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(1), Ordering::Relaxed);
        // The odd version is seen before any of the new bounds.
        fence(Ordering::Release);
        self.start.store(range.start, Ordering::Relaxed);
        self.end.store(range.end, Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(2), Ordering::Release);
    }
}

/// Set with the first mark of all, and for good.
static ANY_FAILED: AtomicBool = AtomicBool::new(false);
static BLOCKS: AtomicPtr<SlotBlock> = AtomicPtr::new(ptr::null_mut());
/// Slots that no region has.
static FREE: Mutex<Vec<&'static RegionSlot>> = Mutex::new(Vec::new());

/// A slot of the table; released on drop, which must be before the memory is unmapped.
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

    /// Marks it as failed: its bytes are not what they were.
    pub(crate) fn fail(&self) {
        mark(self.slot, Failure::Unreadable);
    }

    /// True if it is marked only because its content contradicts itself.
    pub(crate) fn contradicts(&self) -> bool {
        self.slot.failed.load(Ordering::Relaxed) == Failure::Contradiction as u8
    }

    /// True once it is marked, and if any byte that this thread read before is one that the handler put there.
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
    // What follows a failure may be its consequence.
    let _ = (slot.failed).compare_exchange(0, failure as u8, order, order);
    ANY_FAILED.store(true, Ordering::SeqCst);
}

/// True once any file of this process has failed: certainly if a byte that this thread has read is one that the handler put there.
/// It stays true. One load.
#[inline]
#[must_use]
pub fn any_failed() -> bool {
    // The marks are set before the pages are replaced; so they are seen by every thread that has read such a page, provided that they
    // are read after that.
    fence(Ordering::AcqRel);
    ANY_FAILED.load(Ordering::Acquire)
}

/// The end of the region that an address is in; the region is marked as failed. Async-signal-safe: it only reads and writes atomics.
///
/// A region that is being read is neither entered nor left meanwhile, so its bounds are stable when a read of it faults.
pub(crate) fn fail_at(address: usize, failure: Failure) -> Option<usize> {
    let mut block = BLOCKS.load(Ordering::Acquire);
    // SAFETY: blocks are leaked, and published whole.
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
        // Never read: addresses that no mapping has.
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
        // A slot that is used again begins unmarked.
        assert!(!Region::new(mapping).has_failed());
    }

    #[test]
    fn regions_come_and_go_on_many_threads() {
        let page = crate::mapped::signal::page_size();
        // Miri is some thousand times slower.
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
