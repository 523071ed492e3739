//! The two columns that every lookup reads, in their stored form: term → id, id → lex index.

use crate::format::{
    Bucket, COMPACT_LEX_BYTES, COMPACT_SLOTS, CompactBucket, SLOTS, compact_entry, fingerprint_of,
};
use jindou_model::NO_VERTEX;
use jindou_model::memory::prefetch_at;

/// The stored hash table; the file's head says which kind it is.
#[derive(Clone, Copy)]
pub(super) enum HashTable<'a> {
    /// Buckets with 12 ids and one-byte fingerprints.
    Wide(&'a [Bucket]),
    /// Compact buckets of 16 words, each with an id and a part of the fingerprint; the number is that of an id's bits.
    Compact(&'a [CompactBucket], u32),
}

impl HashTable<'_> {
    /// Number of buckets.
    #[inline(always)]
    pub(super) fn len(self) -> usize {
        match self {
            Self::Wide(b) => b.len(),
            Self::Compact(b, _) => b.len(),
        }
    }

    #[inline(always)]
    pub(super) fn prefetch(self, at: usize) {
        match self {
            Self::Wide(b) => prefetch_at(b, at),
            Self::Compact(b, _) => prefetch_at(b, at),
        }
    }

    /// Bit `i` is set if fingerprint `i` of bucket `at` matches and the slot is used.
    #[inline(always)]
    pub(super) fn matching(self, at: usize, hash: u64) -> u32 {
        let mut mask = 0;
        match self {
            Self::Wide(buckets) => {
                let Some(bucket) = buckets.get(at) else {
                    return 0;
                };
                let print = fingerprint_of(hash);
                for slot in 0..SLOTS {
                    let same = bucket.prints[slot] == print && bucket.ids[slot] != NO_VERTEX;
                    mask |= u32::from(same) << slot;
                }
            }
            Self::Compact(buckets, bits) => {
                let Some(bucket) = buckets.get(at) else {
                    return 0;
                };
                let want = compact_entry(hash, 0, bits);
                for slot in 0..COMPACT_SLOTS {
                    let entry = bucket.0[slot];
                    mask |= u32::from((entry ^ want) >> bits == 0 && entry != 0) << slot;
                }
            }
        }
        mask
    }

    #[inline(always)]
    pub(super) fn id(self, at: usize, slot: u32) -> u32 {
        match self {
            Self::Wide(b) => b.get(at).and_then(|b| b.ids.get(slot as usize)).copied(),
            Self::Compact(b, bits) => b
                .get(at)
                .and_then(|b| b.0.get(slot as usize))
                .map(|e| e & ((1u32 << bits) - 1)),
        }
        .unwrap_or(NO_VERTEX)
    }

    /// True if a term that belongs in bucket `at` may be stored in the next bucket.
    #[inline(always)]
    pub(super) fn may_overflow(self, at: usize) -> bool {
        match self {
            Self::Wide(b) => b.get(at).is_some_and(|b| b.overflow != 0),
            Self::Compact(b, _) => b.get(at).is_some_and(|b| b.0[COMPACT_SLOTS - 1] != 0),
        }
    }
}

/// Lex indexes by id, in 3 or 4 bytes each.
#[derive(Clone, Copy)]
pub(super) struct LexColumn<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) narrow: bool,
}

impl LexColumn<'_> {
    #[inline(always)]
    pub(super) fn get(self, id: u32) -> Option<u32> {
        let (width, mask) = if self.narrow {
            (COMPACT_LEX_BYTES, 0xFF_FFFF)
        } else {
            (4, u32::MAX)
        };
        let entry = self.bytes.get(id as usize * width..)?.first_chunk::<4>()?;
        Some(u32::from_le_bytes(*entry) & mask)
    }

    #[inline(always)]
    pub(super) fn prefetch(self, id: u32) {
        let width = if self.narrow { COMPACT_LEX_BYTES } else { 4 };
        prefetch_at(self.bytes, id as usize * width);
    }
}
