//! Terms that updates brought: ids without gaps from the first tail id on, shared by snapshots.

use crate::segment::CowTree;
use jindou_model::{FIRST_TAIL_ID, VertexId};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Terms a chunk.
const CHUNK: usize = 128;
/// Chunks a shelf.
const SHELF: usize = 256;

/// Some terms, one behind the other.
#[derive(Clone, Debug, Default)]
struct Chunk {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Chunk {
    fn get(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)?;
        let start = match at.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start as usize..end as usize)
    }
}

type Shelf = Vec<Arc<Chunk>>;

/// See the module. Cloning is O(1); adding a term copies a chunk, a shelf's pointers and a path of the index.
#[derive(Clone, Debug, Default)]
pub struct TailTerms {
    len: u32,
    shelves: Arc<Vec<Arc<Shelf>>>,
    /// Upper half: hash of the term; lower half: its number.
    numbers: CowTree<u64>,
}

fn hash_of(term: &[u8]) -> u64 {
    xxh3_64(term) & 0xFFFF_FFFF_0000_0000
}

impl TailTerms {
    /// Number of terms.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// True without a term.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Gives the terms the next ids. The caller has made sure that they are new, different, and that ids are left.
    pub(super) fn extend(&mut self, terms: &[Vec<u8>]) {
        let mut index: Vec<u64> = Vec::with_capacity(terms.len());
        let shelves = Arc::make_mut(&mut self.shelves);
        for term in terms {
            index.push(hash_of(term) | u64::from(self.len));
            let at = self.len as usize;
            if at.is_multiple_of(CHUNK * SHELF) {
                shelves.push(Arc::default());
            }
            let Some(shelf) = shelves.last_mut() else {
                return;
            };
            let shelf = Arc::make_mut(shelf);
            if at.is_multiple_of(CHUNK) {
                shelf.push(Arc::default());
            }
            let Some(chunk) = shelf.last_mut() else {
                return;
            };
            let chunk = Arc::make_mut(chunk);
            chunk.bytes.extend_from_slice(term);
            chunk.ends.push(chunk.bytes.len() as u32);
            if chunk.ends.len() == CHUNK {
                chunk.bytes.shrink_to_fit();
                chunk.ends.shrink_to_fit();
            }
            self.len += 1;
        }
        index.sort_unstable();
        self.numbers.apply(&index, &[]);
    }

    /// The id of a term that is in here. O(log terms).
    #[must_use]
    pub fn lookup(&self, canonical: &[u8]) -> Option<VertexId> {
        if self.len == 0 {
            return None;
        }
        let hash = hash_of(canonical);
        self.numbers
            .range(hash, hash | 0xFFFF_FFFF)
            .flatten()
            .map(|&x| x as u32)
            .find(|&n| self.get(n) == Some(canonical))
            .map(|n| VertexId(FIRST_TAIL_ID + n))
    }

    fn get(&self, n: u32) -> Option<&[u8]> {
        let n = n as usize;
        let shelf = self.shelves.get(n / (CHUNK * SHELF))?;
        shelf.get(n / CHUNK % SHELF)?.get(n % CHUNK)
    }

    /// The canonical bytes of a tail id.
    #[must_use]
    pub fn term(&self, id: VertexId) -> Option<&[u8]> {
        self.get(id.0.checked_sub(FIRST_TAIL_ID)?)
    }

    /// Bytes on the heap, what other snapshots share included. O(terms / 100).
    #[must_use]
    pub fn bytes(&self) -> usize {
        let chunk = |c: &Arc<Chunk>| 64 + c.bytes.capacity() + c.ends.capacity() * 4;
        let chunks: usize = self.shelves.iter().flat_map(|s| s.iter()).map(chunk).sum();
        chunks + self.numbers.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_found_and_old_versions_stay() {
        let mut tail = TailTerms::default();
        let mut kept = vec![];
        let name = |i: u32| format!("<http://e/{i}").into_bytes();
        let mut n = 0;
        for round in 0..60 {
            let terms: Vec<Vec<u8>> = (n..n + round * 29).map(name).collect();
            tail.extend(&terms);
            n += round * 29;
            if round % 20 == 7 {
                kept.push((tail.clone(), n));
            }
        }
        kept.push((tail, n));
        for (tail, n) in kept {
            assert_eq!(tail.len(), n);
            for i in 0..n {
                let id = VertexId(FIRST_TAIL_ID + i);
                assert_eq!(tail.lookup(&name(i)), Some(id));
                assert_eq!(tail.term(id), Some(&name(i)[..]));
            }
            assert_eq!(tail.lookup(&name(n)), None);
            assert_eq!(tail.term(VertexId(FIRST_TAIL_ID + n)), None);
            assert!(tail.bytes() > 20 * n as usize);
        }
    }
}
