//! Interning: the terms of quads become dense numbers, with one table per worker and no locks.
//!
//! A lookup in a large table misses the cache three times: for the bucket, for the candidate's record, and for the
//! second line of its string. Quads are therefore processed in groups: first the hashes of all terms of a group
//! (buckets are prefetched), then all tags (records are prefetched), then all comparisons. Two kinds of terms need no
//! lookup: a term that equals the one in the same position of the previous quad, and predicates, of which there are
//! few.

use super::arena::{Arena, record_bytes};
use super::run::{ClosedRun, RunWriter};
use super::sort;
use crate::hash::{HashKeys, equal, hash};
use jindou_model::memory::{huge_zeroed, prefetch_at};
use jindou_model::spill::SpillDir;
use jindou_model::{QuadBatch, Result, Span};

/// Number for the default graph in the graph position of [`Interner::intern`]'s output.
pub const LOCAL_DEFAULT_GRAPH: u32 = u32::MAX;

/// Quads in a group: up to 256 prefetches, which fit an L1 cache.
const GROUP: usize = 64;
/// Entries of the predicate cache.
const CACHE: usize = 256;
/// Smallest size of the table, as log2 of its entries.
const MIN_BITS: u32 = 12;
/// Bytes per term needed to close a run: 16 for sorting, 4 for the position.
const CLOSE_BYTES: usize = 20;
/// Largest arena in bytes: a `u32` names a record in units of 4 bytes.
const MAX_ARENA: usize = (u32::MAX as usize) * 4;

/// Where the id for a position of a quad comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IdRule {
    /// The id is already in the output.
    Known,
    /// The id is that of the same position in the row before.
    Above,
    /// The id is that of the group's next pending term.
    Pending,
}

/// A term of a group that must still be looked up.
#[derive(Clone, Copy, Default)]
struct PendingTerm {
    hash: u64,
    span: Span,
    /// First record with the same tag; 0 when there is none.
    candidate: u32,
}

/// Assigns dense numbers to the terms of quads, in order of arrival, within a memory limit. One per worker thread.
#[derive(Debug)]
pub struct Interner {
    arena: Arena,
    /// Hash table with open addressing and linear probing. Entries are `hash tag << 32 | record`; 0 is empty. The upper
    /// bits of the tag give the slot, so that growing the table moves entries in order and reads no strings.
    table: Vec<u64>,
    bits: u32,
    len: u32,
    max_bytes: usize,
    keys: HashKeys,
    /// Records of recently used predicates, by [`cache_slot`].
    cache: Vec<u32>,
}

impl Interner {
    /// An interner that keeps strings, table and the memory needed for closing within `max_bytes`. Memory is allocated
    /// as it is needed.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self {
            arena: Arena::new(),
            table: huge_zeroed(1 << MIN_BITS),
            bits: MIN_BITS,
            len: 0,
            max_bytes,
            keys: HashKeys::random(),
            cache: vec![0; CACHE],
        }
    }

    /// Number of distinct terms so far; the next new term gets this number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// True before the first term.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes used of the limit: strings, table, and the memory needed to close the run.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.arena.len() + self.table.len() * 8 + self.len() * CLOSE_BYTES
    }

    /// Appends `[s, p, o, g]` in run-local ids for every quad, `g` = [`LOCAL_DEFAULT_GRAPH`] for the default graph.
    /// Returns false, without adding anything, if the batch might not fit: the caller must then close the run and offer
    /// the batch again. An empty interner accepts any batch.
    ///
    /// Amortised O(bytes of the batch).
    #[must_use]
    pub fn intern(&mut self, batch: &QuadBatch, out: &mut Vec<[u32; 4]>) -> bool {
        let (mut terms, bytes) = rough_upper_bounds(batch);
        if !self.is_empty() && !self.fits(terms, bytes) {
            let (t, bytes) = most(batch);
            if !self.fits(t, bytes) {
                return false;
            }
            terms = t;
        }
        while (self.len() + terms) * 3 > self.table.len() * 2 && self.worth_growing(terms) {
            self.grow();
        }
        out.reserve(batch.quads.len());
        let mut pending = [PendingTerm::default(); GROUP * 4];
        let mut how = [[IdRule::Known; 4]; GROUP];
        for group in batch.quads.chunks(GROUP) {
            let n = self.prepare(batch, group, out, &mut how, &mut pending);
            self.probe(&mut pending[..n]);
            self.resolve(batch, group, out, &how, &pending[..n]);
        }
        true
    }

    /// True if this many more terms and bytes stay within the limit, including the memory for a larger table.
    fn fits(&self, terms: usize, bytes: usize) -> bool {
        let len = self.len() + terms;
        let arena = self.arena.len() + bytes;
        let mut table = self.table.len();
        let mut growing = 0;
        while len * 3 > table * 2 {
            growing = table;
            table *= 2;
        }
        len < (1 << 31)
            && arena <= MAX_ARENA
            && arena + (table + growing) * 8 + len * CLOSE_BYTES <= self.max_bytes
    }

    /// True if the table should grow before a batch is added. `terms` is an upper bound of the new terms, since most
    /// terms of a batch occur before; so the table grows early only if its present entries are close to its limit as
    /// well. Otherwise `find_or_insert` grows it.
    fn worth_growing(&self, terms: usize) -> bool {
        (self.len() + terms / 4) * 3 > self.table.len() * 2
    }

    /// First pass over a group: appends output rows, fills positions with known ids, and hashes the other terms, whose
    /// buckets are prefetched. Returns the number of pending terms.
    #[inline]
    fn prepare(
        &mut self,
        batch: &QuadBatch,
        group: &[[Span; 4]],
        out: &mut Vec<[u32; 4]>,
        how: &mut [[IdRule; 4]; GROUP],
        pending: &mut [PendingTerm; GROUP * 4],
    ) -> usize {
        let mut n = 0;
        let shift = 32 - self.bits;
        let mut before: Option<&[Span; 4]> = None;
        for (quad, how) in group.iter().zip(how.iter_mut()) {
            let mut row = [LOCAL_DEFAULT_GRAPH; 4];
            for place in 0..4 {
                let span = quad[place];
                if place == 3 && span.len == 0 {
                    how[3] = IdRule::Known;
                    continue;
                }
                if let Some(before) = before {
                    let above = before[place];
                    if above == span
                        || (place != 2 && above.len == span.len && same(batch, above, span))
                    {
                        how[place] = IdRule::Above;
                        continue;
                    }
                }
                let term = batch.term(span);
                if place == 1
                    && let Some(id) = self.cached(term)
                {
                    row[1] = id;
                    how[1] = IdRule::Known;
                    continue;
                }
                let hash = hash(term, &self.keys);
                prefetch_at(&self.table, ((hash >> 32) as u32 >> shift) as usize);
                how[place] = IdRule::Pending;
                pending[n] = PendingTerm {
                    hash,
                    span,
                    candidate: 0,
                };
                n += 1;
            }
            out.push(row);
            before = Some(quad);
        }
        n
    }

    /// Second pass: finds the first entry with the same tag, and prefetches its record.
    #[inline]
    fn probe(&self, pending: &mut [PendingTerm]) {
        let mask = self.table.len() - 1;
        for p in pending {
            let tag = (p.hash >> 32) as u32;
            let mut at = (tag >> (32 - self.bits)) as usize;
            loop {
                let entry = self.table[at & mask];
                if entry == 0 {
                    break;
                }
                if (entry >> 32) as u32 == tag {
                    p.candidate = entry as u32;
                    self.arena.prefetch(p.candidate, 0);
                    if p.span.len > 56 {
                        self.arena.prefetch(p.candidate, 56);
                    }
                    break;
                }
                at += 1;
            }
        }
    }

    /// Third pass: compares candidates, inserts new terms, and completes the rows, in the order of the quads.
    #[inline]
    fn resolve(
        &mut self,
        batch: &QuadBatch,
        group: &[[Span; 4]],
        out: &mut [[u32; 4]],
        how: &[[IdRule; 4]; GROUP],
        pending: &[PendingTerm],
    ) {
        let first = out.len() - group.len();
        let mut next = pending.iter();
        let mut above = [LOCAL_DEFAULT_GRAPH; 4];
        for (out, how) in out[first..].iter_mut().zip(how) {
            let mut row = *out;
            for place in 0..4 {
                match how[place] {
                    IdRule::Known => {}
                    IdRule::Above => row[place] = above[place],
                    IdRule::Pending => {
                        let Some(p) = next.next() else { return };
                        let term = batch.term(p.span);
                        let record = p.candidate;
                        let record = if record != 0 && equal(self.arena.term(record), term) {
                            record
                        } else {
                            self.find_or_insert(p.hash, term)
                        };
                        row[place] = self.arena.id(record);
                        if place == 1 {
                            self.cache[cache_slot(term)] = record;
                        }
                    }
                }
            }
            *out = row;
            above = row;
        }
    }

    #[inline]
    fn cached(&self, term: &[u8]) -> Option<u32> {
        let record = self.cache[cache_slot(term)];
        (record != 0 && equal(self.arena.term(record), term)).then(|| self.arena.id(record))
    }

    /// The record of a term, which is inserted if it is new.
    fn find_or_insert(&mut self, hash: u64, term: &[u8]) -> u32 {
        let tag = (hash >> 32) as u32;
        let mask = self.table.len() - 1;
        let mut at = (tag >> (32 - self.bits)) as usize;
        loop {
            let entry = self.table[at & mask];
            if entry == 0 {
                break;
            }
            if (entry >> 32) as u32 == tag && equal(self.arena.term(entry as u32), term) {
                return entry as u32;
            }
            at += 1;
        }
        let record = self.arena.push(self.len, term);
        self.table[at & mask] = u64::from(tag) << 32 | u64::from(record);
        self.len += 1;
        if self.len() * 3 > self.table.len() * 2 {
            self.grow();
        }
        record
    }

    /// Doubles the table. The slot is given by the upper bits of the tag, so an entry moves to about twice its slot:
    /// one sequential pass over both tables.
    #[cold]
    fn grow(&mut self) {
        let bits = self.bits + 1;
        let mut table: Vec<u64> = huge_zeroed(1 << bits);
        let mask = table.len() - 1;
        for &entry in self.table.iter().filter(|&&e| e != 0) {
            let mut at = ((entry >> 32) as u32 >> (32 - bits)) as usize;
            while table[at & mask] != 0 {
                at += 1;
            }
            table[at & mask] = entry;
        }
        self.table = table;
        self.bits = bits;
    }

    /// Sorts the terms by canonical bytes and writes them as a run. Afterwards the interner is empty and ready for the
    /// next run; its memory is kept.
    ///
    /// O(bytes) plus O(n log n) on cached 7-byte keys.
    ///
    /// # Errors
    /// The errors of [`SpillDir`]'s writers.
    pub fn close(&mut self, spill: &SpillDir) -> Result<ClosedRun> {
        let items = sort::sorted(&self.arena, self.len());
        let mut position = vec![0u32; self.len()];
        let mut run = RunWriter::new(spill);
        let mut before = 0;
        for (i, item) in items.iter().enumerate() {
            if let Some(ahead) = items.get(i + 12) {
                self.arena.prefetch(ahead.record, 0);
                self.arena.prefetch(ahead.record, 56);
            }
            let term = self.arena.term(item.record);
            let previous = if before == 0 {
                &[]
            } else {
                self.arena.term(before)
            };
            run.push(previous, term)?;
            position[item.id as usize] = i as u32;
            before = item.record;
        }
        drop(items);
        self.arena.clear();
        self.table.fill(0);
        self.cache.fill(0);
        self.len = 0;
        Ok(ClosedRun {
            run: run.finish()?,
            position,
        })
    }
}

/// As [`most`], but counts repeated terms as well, which takes a single sum over all spans.
fn rough_upper_bounds(batch: &QuadBatch) -> (usize, usize) {
    let terms = batch.quads.len() * 4;
    let bytes: u64 = batch.quads.iter().flatten().map(|s| u64::from(s.len)).sum();
    (terms, bytes as usize + terms * record_bytes(3))
}

/// Upper bounds of the distinct terms in a batch and of their bytes in the arena.
fn most(batch: &QuadBatch) -> (usize, usize) {
    let (mut terms, mut bytes) = (0, 0);
    let mut before = [Span::default(); 4];
    for quad in &batch.quads {
        for place in 0..4 {
            if quad[place] != before[place] {
                terms += 1;
                bytes += record_bytes(quad[place].len as usize);
            }
        }
        before = *quad;
    }
    (terms, bytes)
}

#[inline(always)]
fn same(batch: &QuadBatch, a: Span, b: Span) -> bool {
    equal(batch.term(a), batch.term(b))
}

/// Slot of a predicate in `cache`, computed from its length and last bytes, in which predicates differ.
#[inline(always)]
fn cache_slot(term: &[u8]) -> usize {
    let tail = match term.last_chunk::<8>() {
        Some(c) => u64::from_le_bytes(*c),
        None => term.iter().fold(0, |h, &b| h << 8 | u64::from(b)),
    };
    let h = (tail ^ term.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (h >> 56) as usize % CACHE
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn batch(quads: &[[&str; 4]]) -> QuadBatch {
        let mut b = QuadBatch::default();
        for q in quads {
            b.push_quad(q.map(str::as_bytes));
        }
        b
    }

    #[test]
    fn ids_are_dense_in_order_of_arrival() {
        let mut interner = Interner::new(1 << 20);
        let mut out = vec![];
        let b = batch(&[
            ["<a", "<p", "<b", ""],
            ["<a", "<p", "<a", "<g"],
            ["<c", "<q", "<b", "<g"],
        ]);
        assert!(interner.intern(&b, &mut out));
        assert!(interner.intern(&b, &mut out));
        let d = LOCAL_DEFAULT_GRAPH;
        assert_eq!(out[..3], [[0, 1, 2, d], [0, 1, 0, 3], [4, 5, 2, 3]]);
        assert_eq!(out[..3], out[3..]);
        assert_eq!(interner.len(), 6);
    }

    #[test]
    fn many_terms_agree_with_a_hash_map() {
        let mut interner = Interner::new(1 << 30);
        let mut map: HashMap<String, u32> = HashMap::new();
        let mut out = vec![];
        let mut expected = vec![];
        let mut x = 1u64;
        for _ in 0..40 {
            let mut b = QuadBatch::default();
            for _ in 0..997 {
                let mut quad = [Span::default(); 4];
                let mut row = [0; 4];
                for place in 0..4 {
                    x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let r = (x >> 33) as u32 % [5000, 7, 50_000, 30][place];
                    let t = format!("<http://e/{}/{r}", ["s", "predicate", "o", "g"][place]);
                    quad[place] = b.push_term(t.as_bytes());
                    let next = map.len() as u32;
                    row[place] = *map.entry(t).or_insert(next);
                }
                b.quads.push(quad);
                expected.push(row);
            }
            assert!(interner.intern(&b, &mut out));
        }
        assert_eq!(out, expected);
        assert_eq!(interner.len(), map.len());
    }

    #[test]
    fn a_full_interner_takes_nothing_and_an_empty_one_anything() {
        let mut interner = Interner::new(100);
        let mut out = vec![];
        assert!(interner.intern(&batch(&[["<a", "<p", "<b", ""]]), &mut out));
        assert!(!interner.intern(&batch(&[["<a", "<p", "<x", ""]]), &mut out));
        assert_eq!((out.len(), interner.len()), (1, 3));
        let closed = interner.close(&SpillDir::in_memory()).unwrap();
        assert_eq!((closed.run.terms(), closed.position), (3, vec![0, 2, 1]));
        assert!(interner.is_empty());
        assert!(interner.intern(&batch(&[["<a", "<p", "<x", ""]]), &mut out));
        assert_eq!(out[1], [0, 1, 2, LOCAL_DEFAULT_GRAPH]);
    }
}
