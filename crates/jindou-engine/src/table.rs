//! Hash tables over tuples of ids: sets of rows, and sets of ids.

use crate::batch::OperatorCharge;
use jindou_model::{FIRST_TAIL_ID, MemoryBudget, Result};

/// 2^64 divided by the golden ratio: multiplying by it spreads consecutive ids over all bits.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Hash of a tuple. The upper bits are mixed best.
#[inline]
pub(crate) fn hash(tuple: &[u32]) -> u64 {
    let mut h = 0u64;
    for &x in tuple {
        h = (h.rotate_left(23) ^ u64::from(x)).wrapping_mul(SPREAD);
    }
    h ^ h >> 29
}

/// Distinct tuples of one width, numbered in the order of their insertion. Uses open addressing: an entry has 32 bits
/// of the hash and the tuple's number + 1, so that a tuple is compared only if it is almost certainly equal.
pub(crate) struct TupleSet {
    width: usize,
    tuples: Vec<u32>,
    len: u32,
    table: Vec<u64>,
    shift: u32,
    charge: OperatorCharge,
}

impl TupleSet {
    pub fn new(width: usize, budget: &MemoryBudget) -> Self {
        Self {
            width,
            tuples: vec![],
            len: 0,
            table: vec![0; 16],
            shift: 60,
            charge: OperatorCharge::new(budget),
        }
    }

    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// The tuple's number, and whether it was added now.
    #[inline]
    pub fn insert(&mut self, tuple: &[u32]) -> Result<(u32, bool)> {
        let h = hash(tuple);
        let mask = self.table.len() - 1;
        let tag = h << 32;
        let mut at = (h >> self.shift) as usize;
        loop {
            let entry = self.table[at & mask];
            if entry == 0 {
                break;
            }
            if entry & (u64::from(u32::MAX) << 32) == tag {
                let number = (entry as u32 - 1) as usize;
                let w = self.width;
                if self.tuples.get(number * w..(number + 1) * w) == Some(tuple) {
                    return Ok((number as u32, false));
                }
            }
            at += 1;
        }
        let number = self.len;
        if number == u32::MAX - 1 {
            return Err(jindou_model::Error::limit(
                jindou_model::Resource::Numbers,
                "a query may hold at most 4 billion distinct rows",
            ));
        }
        self.table[at & mask] = tag | u64::from(number + 1);
        self.tuples.extend_from_slice(tuple);
        self.len += 1;
        if self.len as usize * 3 > self.table.len() * 2 {
            self.grow()?;
        }
        Ok((number, true))
    }

    fn grow(&mut self) -> Result<()> {
        let room = self.table.len() * 4;
        // For the old table, the new one, and the tuples until the next growth.
        self.charge
            .set(room * 8 + self.table.len() * 8 + room * 2 / 3 * self.width * 4)?;
        let mut table: Vec<u64> = jindou_model::memory::huge_zeroed(room);
        self.shift = 64 - room.trailing_zeros();
        for n in 0..self.len {
            let h = hash(self.get(n));
            let mut at = (h >> self.shift) as usize;
            while table[at & (room - 1)] != 0 {
                at += 1;
            }
            table[at & (room - 1)] = h << 32 | u64::from(n + 1);
        }
        self.table = table;
        Ok(())
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.charge.bytes()
    }

    /// False if adding this many tuples may fail, or leave too little memory for other operators.
    pub fn has_room(&self, tuples: usize) -> bool {
        let (want, mut room) = (self.len() + tuples, self.table.len());
        if want * 3 <= room * 2 {
            return true;
        }
        while want * 3 > room * 2 {
            room *= 4;
        }
        let bytes = (room * 10 + room * 2 / 3 * self.width * 4) as u64;
        let more = bytes.saturating_sub(self.charge.bytes());
        self.charge.budget().has_headroom(more)
    }

    /// Removes all tuples and frees their memory.
    pub fn clear(&mut self) -> Result<()> {
        (self.tuples, self.len, self.table, self.shift) = (vec![], 0, vec![0; 16], 60);
        self.charge.set(0)
    }

    /// The tuple with this number.
    #[inline]
    pub fn get(&self, number: u32) -> &[u32] {
        let at = number as usize * self.width;
        &self.tuples[at..at + self.width]
    }

    /// All tuples in the order of their numbers.
    pub fn tuples(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len).map(|n| self.get(n))
    }
}

/// Number of ids from which on a set becomes a bitmap, unless that would be too large.
const BITMAP_FROM: usize = 1 << 13;

/// A set of ids: a table while it is small, a bitmap with one bit per vertex once that is smaller.
pub(crate) struct IdSet {
    few: TupleSet,
    bits: Vec<u64>,
    len: u64,
    vertices: u32,
    charge: OperatorCharge,
}

impl IdSet {
    /// An empty set. `vertices` is the number of ids in the base, which the bitmap would cover.
    pub fn new(vertices: u32, budget: &MemoryBudget) -> Self {
        Self {
            few: TupleSet::new(1, budget),
            bits: vec![],
            len: 0,
            vertices: vertices.saturating_add(1).min(FIRST_TAIL_ID),
            charge: OperatorCharge::new(budget),
        }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// Adds an id; returns true if it is new.
    #[inline]
    pub fn insert(&mut self, id: u32) -> Result<bool> {
        let new = match self.bits.get_mut((id / 64) as usize) {
            Some(word) => {
                let bit = 1 << (id % 64);
                let new = *word & bit == 0;
                *word |= bit;
                new
            }
            None => {
                let new = self.few.insert(&[id])?.1;
                // The table takes about 12 to 40 bytes per id, the bitmap an eighth of a byte per vertex.
                let n = self.few.len();
                if new
                    && self.bits.is_empty()
                    && n >= BITMAP_FROM
                    && n * 64 >= self.vertices as usize / 8
                {
                    self.turn()?;
                }
                new
            }
        };
        self.len += u64::from(new);
        Ok(new)
    }

    fn turn(&mut self) -> Result<()> {
        let words = (self.vertices as usize).div_ceil(64);
        self.charge.set(words * 8)?;
        self.bits = jindou_model::memory::huge_zeroed(words);
        let few = std::mem::replace(&mut self.few, TupleSet::new(1, self.charge.budget()));
        for t in few.tuples() {
            let id = t[0];
            match self.bits.get_mut((id / 64) as usize) {
                Some(word) => *word |= 1 << (id % 64),
                None => {
                    self.few.insert(&[id])?;
                }
            }
        }
        Ok(())
    }

    /// Removes all ids and frees their memory.
    pub fn clear(&mut self) -> Result<()> {
        self.few.clear()?;
        (self.bits, self.len) = (vec![], 0);
        self.charge.set(0)
    }

    /// Calls `f` with every id, in no particular order.
    pub fn for_each(&self, mut f: impl FnMut(u32) -> Result<()>) -> Result<()> {
        for (i, &word) in self.bits.iter().enumerate() {
            let mut w = word;
            while w != 0 {
                f(i as u32 * 64 + w.trailing_zeros())?;
                w &= w - 1;
            }
        }
        for t in self.few.tuples() {
            f(t[0])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn tuple_sets_agree_with_std(
            width in 0usize..4,
            values in prop::collection::vec(0u32..40, 0..3000),
        ) {
            let mut set = TupleSet::new(width, &MemoryBudget::unlimited());
            let mut truth: HashSet<Vec<u32>> = HashSet::new();
            for t in values.chunks_exact(width.max(1)) {
                let t = &t[..width];
                let (n, new) = set.insert(t).unwrap();
                prop_assert_eq!(new, truth.insert(t.to_vec()));
                prop_assert_eq!(set.get(n), t);
            }
            prop_assert_eq!(set.len(), truth.len());
        }
    }

    #[test]
    fn id_sets_turn_into_bitmaps_and_keep_their_ids() {
        let mut set = IdSet::new(100_000, &MemoryBudget::unlimited());
        let mut truth = HashSet::new();
        for i in 0..60_000u32 {
            let id = if i % 10 == 0 {
                0xF000_0000 + i % 7
            } else {
                i.wrapping_mul(2_654_435_761) % 100_000
            };
            assert_eq!(set.insert(id).unwrap(), truth.insert(id));
        }
        assert!(!set.bits.is_empty());
        let mut all = HashSet::new();
        set.for_each(|id| {
            assert!(all.insert(id));
            Ok(())
        })
        .unwrap();
        assert_eq!(all, truth);
        assert_eq!(set.len(), truth.len() as u64);
    }

    #[test]
    fn a_full_budget_is_an_error_and_gives_all_back() {
        let budget = MemoryBudget::new(10_000);
        let mut set = TupleSet::new(2, &budget);
        let mut failed = false;
        for i in 0..10_000 {
            failed |= set.insert(&[i, i]).is_err();
            if failed {
                break;
            }
        }
        assert!(failed);
        drop(set);
        assert_eq!(budget.used(), 0);
    }
}
