//! The strings of an interner, one after the other, each preceded by its id and length.

use jindou_model::memory::{advise_huge, prefetch_at};

/// Bytes kept after the last record, so that fixed-size reads at any byte of a record stay inside
/// the arena.
const SLACK: usize = 16;
/// Bytes before a record's content: id and length.
const HEAD: usize = 8;

/// Bytes that a record takes in the arena for a term of this length.
pub(crate) fn record_bytes(len: usize) -> usize {
    HEAD + len.next_multiple_of(4)
}

/// Strings of terms, stored as records `[id: u32][length: u32][bytes][padding to 4]`. A record's handle is its offset
/// in units of 4 bytes, so that a `u32` can address 16 GiB; 0 is never a handle.
#[derive(Debug)]
pub(crate) struct Arena {
    /// Records up to `end`, then free space.
    bytes: Vec<u8>,
    end: usize,
}

impl Arena {
    pub(crate) fn new() -> Self {
        Self {
            bytes: vec![0; 4 + SLACK],
            end: 4,
        }
    }

    /// Bytes used.
    pub(crate) fn len(&self) -> usize {
        self.end + SLACK
    }

    /// Removes all records, but keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.end = 4;
    }

    /// Appends a record and returns its handle.
    #[inline]
    pub(crate) fn push(&mut self, id: u32, term: &[u8]) -> u32 {
        let at = self.end;
        let end = at + record_bytes(term.len());
        if self.bytes.len() < end + SLACK {
            self.grow(end + SLACK);
        }
        let record = &mut self.bytes[at..end];
        record[..4].copy_from_slice(&id.to_le_bytes());
        record[4..8].copy_from_slice(&(term.len() as u32).to_le_bytes());
        record[HEAD..HEAD + term.len()].copy_from_slice(term);
        self.end = end;
        (at / 4) as u32
    }

    /// Enlarges the buffer in steps of an eighth, so that little memory is wasted. The allocator enlarges large blocks
    /// by remapping pages, without copying.
    #[cold]
    fn grow(&mut self, needed: usize) {
        let len = needed + (needed / 8).max(1 << 16);
        if self.bytes.capacity() < len {
            self.bytes
                .reserve_exact(len.max(self.bytes.len() * 2) - self.bytes.len());
            advise_huge(&self.bytes);
        }
        self.bytes.resize(len, 0);
    }

    #[inline(always)]
    fn u32_at(&self, at: usize) -> u32 {
        match self.bytes[at..].first_chunk::<4>() {
            Some(c) => u32::from_le_bytes(*c),
            None => 0,
        }
    }

    #[inline(always)]
    pub(crate) fn id(&self, record: u32) -> u32 {
        self.u32_at(record as usize * 4)
    }

    /// The length of a record's term.
    #[inline(always)]
    pub(crate) fn term_len(&self, record: u32) -> usize {
        self.u32_at(record as usize * 4 + 4) as usize
    }

    #[inline(always)]
    pub(crate) fn term(&self, record: u32) -> &[u8] {
        let at = record as usize * 4 + HEAD;
        &self.bytes[at..at + self.term_len(record)]
    }

    /// 8 bytes from `depth` on in a record's term, big-endian; bytes after the term's end belong to padding or the next
    /// record and must be masked by the caller.
    #[inline(always)]
    pub(crate) fn word_be(&self, record: u32, depth: usize) -> u64 {
        match self.bytes[record as usize * 4 + HEAD + depth..].first_chunk::<8>() {
            Some(c) => u64::from_be_bytes(*c),
            None => 0,
        }
    }

    /// Prefetches the line that holds byte `depth` of a record's term.
    #[inline(always)]
    pub(crate) fn prefetch(&self, record: u32, depth: usize) {
        prefetch_at(&self.bytes, record as usize * 4 + HEAD + depth);
    }

    /// The handles of all records, in the order in which they were appended.
    pub(crate) fn records(&self) -> impl Iterator<Item = u32> + '_ {
        let end = self.end;
        let mut at = 4;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let record = (at / 4) as u32;
            at += record_bytes(self.term_len(record));
            Some(record)
        })
    }
}
