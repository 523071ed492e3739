//! Charges that release their bytes on drop, and returning free memory to the system.

use crate::{Holder, MemoryBudget, Result, scope};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes charged to a budget, released on drop.
#[derive(Debug)]
pub struct Charge {
    budget: MemoryBudget,
    bytes: u64,
    holder: Holder,
}

impl Charge {
    /// A charge of 0 bytes for `holder`.
    #[must_use]
    pub fn new(holder: Holder, budget: &MemoryBudget) -> Self {
        Self {
            budget: budget.clone(),
            bytes: 0,
            holder,
        }
    }

    /// Wraps bytes that are charged to the budget already.
    pub(crate) fn charged(holder: Holder, budget: &MemoryBudget, bytes: u64) -> Self {
        Self {
            budget: budget.clone(),
            bytes,
            holder,
        }
    }

    /// Bytes charged at present.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The budget that is charged.
    #[must_use]
    pub fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// Changes the charge to `bytes`.
    ///
    /// # Errors [`Error::Limit`](crate::Error::Limit) if they do not fit into the budget; then the charge is unchanged.
    pub fn set(&mut self, bytes: u64) -> Result<()> {
        if bytes > self.bytes {
            self.budget.charge_for(self.holder, bytes - self.bytes)?;
        } else {
            self.budget.release_for(self.holder, self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Increases the charge by this many bytes.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn add(&mut self, bytes: u64) -> Result<()> {
        self.set(self.bytes.saturating_add(bytes))
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.release_for(self.holder, self.bytes);
    }
}

/// Smallest number of bytes that a [`TextRoom`] charges at a time.
const BLOCK: u64 = 64 << 10;

/// Memory of texts that grow, charged to a budget before they grow, in blocks, so that short texts need few charges.
/// Also counts written bytes as [work](scope::worked).
#[derive(Debug)]
pub struct TextRoom {
    charge: Charge,
    /// Bytes that the texts occupy; at most the charge.
    held: u64,
}

impl TextRoom {
    /// A room without texts.
    #[must_use]
    pub fn new(holder: Holder, budget: &MemoryBudget) -> Self {
        Self {
            charge: Charge::new(holder, budget),
            held: 0,
        }
    }

    /// Reserves capacity for `more` bytes in a text whose memory this room counts.
    ///
    /// # Errors
    /// [`Error::Limit`](crate::Error::Limit) if the budget is exhausted, and those of [`scope::worked`].
    #[inline]
    pub fn reserve(&mut self, text: &mut Vec<u8>, more: usize) -> Result<()> {
        scope::worked(more)?;
        match more <= text.capacity() - text.len() {
            true => Ok(()),
            false => self.grow(text, more),
        }
    }

    #[inline(never)]
    fn grow(&mut self, text: &mut Vec<u8>, more: usize) -> Result<()> {
        let had = text.capacity();
        let want = text.len().saturating_add(more);
        // While it is copied, both the old and the new buffer exist, so both are charged.
        let room = match want < 2 * had {
            true if had < BLOCK as usize => 2 * had,
            true => want.max(had + had / 2),
            false => want,
        };
        self.take(room as u64)?;
        text.reserve_exact(room - text.len());
        self.release(had as u64);
        Ok(())
    }

    /// Counts bytes that texts occupy without [`Self::reserve`].
    ///
    /// # Errors [`Error::Limit`](crate::Error::Limit) if they do not fit into the budget.
    pub fn take(&mut self, bytes: u64) -> Result<()> {
        let held = self.held.saturating_add(bytes);
        if held > self.charge.bytes() {
            // Blocks are proportional to the use, so that large texts need few charges, too.
            let block = BLOCK.max(held / 16);
            if self.charge.set(held.saturating_add(block)).is_err() {
                self.charge.set(held)?;
            }
        }
        self.held = held;
        Ok(())
    }

    /// Counts bytes that texts no longer occupy. They remain charged for later texts.
    pub fn release(&mut self, bytes: u64) {
        self.held = self.held.saturating_sub(bytes);
    }

    /// Counts the texts of another room here.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn append(&mut self, mut other: Self) -> Result<()> {
        let held = std::mem::take(&mut other.held);
        drop(other);
        self.take(held)
    }

    /// Bytes charged at present, which may be more than the texts occupy.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.charge.bytes()
    }
}

/// Number of released bytes from which a [`trim`] is worthwhile.
pub const WORTH_TRIMMING: u64 = 16 << 20;
/// Shortest time between two trims, in milliseconds, since each walks the allocator's free lists.
const APART: u64 = 100;

/// Returns free memory to the system, unless that was done less than 100 ms ago. Allocators keep freed memory for later
/// allocations, so after a query of hundreds of megabytes other processes could not use it. Takes some milliseconds per
/// gigabyte. Returns false if nothing was done.
pub fn trim() -> bool {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX));
    let last = LAST.load(Ordering::Relaxed);
    let mine = now.abs_diff(last) >= APART
        && LAST
            .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
    if mine {
        release_free_pages();
    }
    mine
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn release_free_pages() {
    // SAFETY: the call takes no pointers, and may be made by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn release_free_pages() {}

/// Configures glibc's allocator for a server. Large allocations return to the system as soon as they are freed; by
/// default, glibc raises that size with each one freed. Threads share eight heaps instead of having several each, since
/// free pages of one heap cannot be used in another. Must be called once, before threads start.
pub fn set_up_allocator() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the calls only set parameters of the allocator, before other threads use it.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 512 << 10);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 4 << 20);
        libc::mallopt(libc::M_ARENA_MAX, 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_is_given_back() {
        let budget = MemoryBudget::new(100);
        let mut charge = Charge::new(Holder::Text, &budget);
        charge.set(60).unwrap();
        assert!(charge.add(50).is_err());
        assert_eq!((charge.bytes(), budget.used()), (60, 60));
        charge.set(10).unwrap();
        assert_eq!(budget.used(), 10);
        drop(charge);
        assert_eq!(budget.used(), 0);
        trim();
        assert!(!trim(), "returned a moment ago");
    }
}
