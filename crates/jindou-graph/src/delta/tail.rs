//! Terms that updates added: their ids are consecutive from [`FIRST_TAIL_ID`] on. Snapshots share them.

use crate::segment::CowTree;
use jindou_model::{FIRST_TAIL_ID, VertexId};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Terms per chunk.
const CHUNK: usize = 128;
/// Chunks per shelf: the pointers to chunks are in two levels, so that adding a term does not copy all pointers.
const SHELF: usize = 256;

/// The bytes of some terms with consecutive ids, and the end of each term in these.
#[derive(Clone, Debug, Default)]
struct TermChunk {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl TermChunk {
    fn get(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)?;
        let start = match at.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start as usize..end as usize)
    }
}

type Shelf = Vec<Arc<TermChunk>>;

/// Terms that updates added, shared by snapshots. Cloning is O(1). Adding a term copies a chunk, the pointers of a
/// shelf, and a path of the index tree.
#[derive(Clone, Debug, Default)]
pub struct TailTerms {
    len: u32,
    shelves: Arc<Vec<Arc<Shelf>>>,
    /// Index of terms. Upper 32 bits: hash of the term; lower 32 bits: its number, from 0 on.
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

    /// Returns true if there are no terms.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Assigns the next ids to the terms. The terms must be new and distinct, and enough ids must be left.
    pub fn extend(&mut self, terms: &[Vec<u8>]) {
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

    /// Id of a term, if updates added it. O(log terms).
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

    /// All terms, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len).map_while(|n| self.get(n))
    }

    /// The hash (upper 32 bits) and number (lower 32 bits) of each term, ascending.
    pub fn order(&self) -> impl Iterator<Item = u64> + '_ {
        self.numbers.iter()
    }

    /// Restores terms from a file: `bytes` has all terms in sequence, `ends` the end of each, `order` the values of
    /// [`Self::order`]. `None` if these are inconsistent. O(bytes): chunks are copied, but not hashed or sorted.
    #[must_use]
    pub fn from_parts(bytes: &[u8], ends: &[u64], order: &[u64]) -> Option<Self> {
        let len = u32::try_from(ends.len()).ok()?;
        let sound = order.len() == ends.len()
            && order.windows(2).all(|w| w[0] < w[1])
            && order.iter().all(|&x| (x as u32) < len)
            && ends.is_sorted()
            && ends.last().copied().unwrap_or(0) == bytes.len() as u64;
        if !sound {
            return None;
        }
        let mut shelves: Vec<Arc<Shelf>> = Vec::new();
        let mut start = 0u64;
        for shelf in ends.chunks(CHUNK * SHELF) {
            let mut chunks: Shelf = Vec::with_capacity(shelf.len().div_ceil(CHUNK));
            for chunk in shelf.chunks(CHUNK) {
                let end = *chunk.last()?;
                let own = bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)?;
                u32::try_from(own.len()).ok()?;
                chunks.push(Arc::new(TermChunk {
                    bytes: own.to_vec(),
                    ends: chunk.iter().map(|e| (e - start) as u32).collect(),
                }));
                start = end;
            }
            shelves.push(Arc::new(chunks));
        }
        let mut numbers = CowTree::default();
        numbers.apply(order, &[]);
        Some(Self {
            len,
            shelves: Arc::new(shelves),
            numbers,
        })
    }

    fn get(&self, n: u32) -> Option<&[u8]> {
        let n = n as usize;
        let shelf = self.shelves.get(n / (CHUNK * SHELF))?;
        shelf.get(n / CHUNK % SHELF)?.get(n % CHUNK)
    }

    /// The canonical bytes of the term with an id; `None` if updates did not add this id.
    #[must_use]
    pub fn term(&self, id: VertexId) -> Option<&[u8]> {
        self.get(id.0.checked_sub(FIRST_TAIL_ID)?)
    }

    /// Bytes on the heap, including chunks that other snapshots share. O(terms / 100).
    #[must_use]
    pub fn bytes(&self) -> usize {
        let chunk = |c: &Arc<TermChunk>| 64 + c.bytes.capacity() + c.ends.capacity() * 4;
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
        let parts: Vec<&[u8]> = tail.iter().collect();
        let ends: Vec<u64> = parts
            .iter()
            .scan(0, |at, t| {
                *at += t.len() as u64;
                Some(*at)
            })
            .collect();
        let order: Vec<u64> = tail.order().collect();
        let bytes = parts.concat();
        let mut again = TailTerms::from_parts(&bytes, &ends, &order).unwrap();
        assert!(TailTerms::from_parts(&bytes[1..], &ends, &order).is_none());
        assert!(TailTerms::from_parts(&bytes, &ends[1..], &order).is_none());
        again.extend(&[name(n), name(n + 1)]);
        kept.push((again, n + 2));
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
