//! Marks the keys that a patch touches. A test reads one bit and may be a false positive.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Bits per touched key: at most one in 32 bits is set, so at most about one in 32 untouched keys is a false positive.
const BITS_A_KEY: u64 = 32;
/// Largest number of bits.
const MAX_BITS: u64 = 1 << 31;

/// A bitmap of keys modulo its length, shared by all versions of a patch. Bits are only ever set, and the bits of a
/// version are set before it is published. Older versions see the bits of newer ones as false positives.
#[derive(Debug)]
pub(super) struct DirtyBits {
    words: Box<[AtomicU64]>,
    mask: u32,
    set: AtomicU32,
}

impl Default for DirtyBits {
    fn default() -> Self {
        Self::for_keys(1)
    }
}

impl DirtyBits {
    pub fn for_keys(keys: u64) -> Self {
        let bits = (keys * BITS_A_KEY).next_power_of_two().clamp(64, MAX_BITS);
        Self {
            words: (0..bits / 64).map(|_| AtomicU64::new(0)).collect(),
            mask: (bits - 1) as u32,
            set: AtomicU32::new(0),
        }
    }

    #[inline]
    pub fn has(&self, v: u32) -> bool {
        self.reader().has(v)
    }

    #[inline]
    pub fn reader(&self) -> Dirty<'_> {
        Dirty {
            words: &self.words,
            mask: self.mask,
        }
    }

    /// The current bits, and the mask that maps a key to its bit.
    pub fn copy(&self) -> (Vec<u64>, u32) {
        let words = self.words.iter().map(|w| w.load(Relaxed)).collect();
        (words, self.mask)
    }

    pub fn bytes(&self) -> usize {
        self.words.len() * 8
    }

    pub fn add(&self, v: u32) {
        let bit = v & self.mask;
        if let Some(w) = self.words.get((bit / 64) as usize) {
            let one = 1 << (bit % 64);
            if w.fetch_or(one, Relaxed) & one == 0 {
                self.set.fetch_add(1, Relaxed);
            }
        }
    }

    /// Number of bits that are set.
    pub fn count(&self) -> u64 {
        u64::from(self.set.load(Relaxed))
    }

    pub fn is_full(&self) -> bool {
        let bits = u64::from(self.mask) + 1;
        u64::from(self.set.load(Relaxed)) * BITS_A_KEY > bits && bits < MAX_BITS
    }
}

/// The dirty bits of a [`super::Patch`]. Each test reads one bit.
#[derive(Clone, Copy, Debug)]
pub struct Dirty<'a> {
    words: &'a [AtomicU64],
    mask: u32,
}

impl Dirty<'_> {
    /// As [`super::Patch::is_dirty`].
    #[inline]
    #[must_use]
    pub fn has(self, v: u32) -> bool {
        let bit = v & self.mask;
        self.words
            .get((bit / 64) as usize)
            .is_some_and(|w| w.load(Relaxed) >> (bit % 64) & 1 == 1)
    }
}
