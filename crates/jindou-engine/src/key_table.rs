//! Numbers the distinct keys of rows: groups of a GROUP BY, keys of a hash join, rows of a DISTINCT. Gets batches of
//! columns and returns numbers. The table's entries are prefetched some rows ahead.

use crate::batch::OperatorCharge;
use jindou_graph::segment::prefetch;
use jindou_model::memory::huge_zeroed;
use jindou_model::{Error, Resource, Result};

/// 2^64 divided by the golden ratio: multiplying by it spreads consecutive ids over all bits.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
/// How many rows ahead entries are prefetched.
const AHEAD: usize = 16;
/// Number of keys from which on an array over all vertices may replace the table.
const DIRECT_FROM: usize = 1 << 13;
/// Number of keys from which on a table that [keeps headroom](KeyTable::with_headroom) does so: in tests in which all that
/// can is written to files, and otherwise.
const FEW: u32 = 8;
const MANY: u32 = 256;
/// In place of a key's number: the key is not in the table.
pub(crate) const NONE: u32 = u32::MAX;

/// Hashes of rows, computed column by column. The upper bits choose the entry; the lower 32 bits are compared, and the
/// lowest of them also choose a partition.
pub(crate) fn hash_rows(columns: &[&[u32]], rows: usize, out: &mut Vec<u64>) {
    out.clear();
    out.resize(rows, 0);
    for column in columns {
        for (h, &v) in out.iter_mut().zip(*column) {
            *h = (h.rotate_left(23) ^ u64::from(v)).wrapping_mul(SPREAD);
        }
    }
    for h in out {
        *h ^= *h >> 29;
    }
}

/// The distinct keys of rows, numbered from 0 in the order of their insertion. All keys have `width` ids.
///
/// An entry of the hash table has 32 bits to compare, and the key's number + 1. The 32 bits are the id itself for keys
/// of one column. Otherwise they are part of the hash, and the key is compared only if they are equal. For keys of one
/// column, an array indexed by id may replace the hash table.
pub(crate) struct KeyTable {
    width: usize,
    /// The keys by number, `width` ids each.
    keys: Vec<u32>,
    len: u32,
    table: Vec<u64>,
    /// Number of entries in `table`.
    hashed: u32,
    shift: u32,
    /// The array for keys of one column: number + 1 of the key `base + i` at position `i`; 0 for none.
    direct: Vec<u32>,
    base: u32,
    /// Length of an array over all vertices; 0 if the table must not become one.
    span: u32,
    /// True if growing leaves other operators the headroom: see [`Self::with_headroom`].
    keeps_headroom: bool,
    charge: OperatorCharge,
    hashes: Vec<u64>,
}

impl KeyTable {
    /// Creates a table for keys of `width` ids. For keys of one column, an array of `span` entries, indexed by id,
    /// replaces the table once there are so many keys that the array is not much larger. 0 if that should not happen.
    pub fn new(width: usize, span: u32, charge: OperatorCharge) -> Self {
        Self {
            width,
            keys: vec![],
            len: 0,
            table: vec![],
            hashed: 0,
            shift: 64,
            direct: vec![],
            base: 0,
            span: if width == 1 { span } else { 0 },
            keeps_headroom: false,
            charge,
            hashes: vec![],
        }
    }

    /// For an operator that can write rows to files: once there are many keys, growing leaves other operators the
    /// headroom ([`MemoryBudget::charge_with_headroom`]). If adding a key fails, the key is in the table, and further ones
    /// must not be added.
    pub fn with_headroom(self, keeps_headroom: bool) -> Self {
        Self {
            keeps_headroom,
            ..self
        }
    }

    /// As [`Self::with_headroom`], for a table that exists.
    pub fn keep_headroom(&mut self) {
        self.keeps_headroom = true;
    }

    /// True if there are enough keys that further ones are written to files when memory is short. With fewer, the
    /// query's limit is too small.
    pub fn has_many(&self) -> bool {
        self.len
            >= match self.charge.budget().is_scarce() {
                true => FEW,
                false => MANY,
            }
    }

    /// Removes all keys and frees their memory.
    pub fn free(&mut self) -> Result<()> {
        (self.keys, self.table, self.direct) = (vec![], vec![], vec![]);
        (self.len, self.hashed, self.shift, self.base) = (0, 0, 64, 0);
        self.recharge(0)
    }

    /// For keys of one column, creates the array for the keys `first..=last` now.
    pub fn lay_out(&mut self, first: u32, last: u32) -> Result<()> {
        self.base = first;
        let len = (last - first) as usize + 1;
        self.recharge(len * 4)?;
        self.direct = huge_zeroed(len);
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.len as usize
    }

    pub fn bytes(&self) -> u64 {
        self.charge.bytes()
    }

    /// The key with this number.
    #[inline]
    pub fn key(&self, number: u32) -> &[u32] {
        let at = number as usize * self.width;
        &self.keys[at..at + self.width]
    }

    /// The ids of all keys, concatenated in the order of their numbers.
    pub fn keys(&self) -> &[u32] {
        &self.keys
    }

    /// Sets `out[row]` to the number of each row's key; new keys are added. The columns have `rows` entries.
    pub fn insert(&mut self, columns: &[&[u32]], rows: usize, out: &mut Vec<u32>) -> Result<()> {
        out.clear();
        match columns {
            [] => {
                self.len = self.len.max(u32::from(rows > 0));
                out.resize(rows, 0);
                Ok(())
            }
            [ids] => self.insert_ids(ids, out),
            _ => {
                let mut hashes = std::mem::take(&mut self.hashes);
                hash_rows(columns, rows, &mut hashes);
                for row in 0..rows {
                    if let Some(&ahead) = hashes.get(row + AHEAD) {
                        prefetch(&self.table, self.slot(ahead));
                    }
                    let h = hashes[row];
                    out.push(self.insert_row(columns, row, h)?.0);
                }
                self.hashes = hashes;
                Ok(())
            }
        }
    }

    fn insert_ids(&mut self, ids: &[u32], out: &mut Vec<u32>) -> Result<()> {
        let mut last = (0, NONE);
        for (row, &id) in ids.iter().enumerate() {
            // Consecutive rows often have the same key.
            if (id, true) == (last.0, last.1 != NONE) {
                out.push(last.1);
                continue;
            }
            if let Some(&ahead) = ids.get(row + AHEAD) {
                let d = ahead.wrapping_sub(self.base) as usize;
                if d < self.direct.len() {
                    prefetch(&self.direct, d);
                } else {
                    prefetch(&self.table, self.slot(hash_id(ahead)));
                }
            }
            let n = self.insert_id(id)?.0;
            out.push(n);
            last = (id, n);
        }
        Ok(())
    }

    /// The number of a key of one column, and whether it was added now.
    #[inline]
    pub fn insert_id(&mut self, id: u32) -> Result<(u32, bool)> {
        let number = self.len;
        if let Some(e) = self.direct.get_mut(id.wrapping_sub(self.base) as usize) {
            if *e != 0 {
                return Ok((*e - 1, false));
            }
            *e = number + 1;
            self.keys.push(id);
            self.len = number + 1;
            if self.keys.len() == self.keys.capacity() {
                self.recharge(0)?;
            }
            return Ok((number, true));
        }
        if self.table.is_empty() {
            self.rehash(16)?;
        }
        let mask = self.table.len() - 1;
        let mut at = self.slot(hash_id(id));
        loop {
            let entry = self.table[at];
            if entry == 0 {
                break;
            }
            if (entry >> 32) as u32 == id {
                return Ok((entry as u32 - 1, false));
            }
            at = (at + 1) & mask;
        }
        self.table[at] = u64::from(id) << 32 | u64::from(number + 1);
        self.keys.push(id);
        self.added()?;
        Ok((number, true))
    }

    /// The number of the key of a row with one or more columns, and whether it was added now.
    #[inline]
    pub fn insert_any(&mut self, columns: &[&[u32]], row: usize, hash: u64) -> Result<(u32, bool)> {
        match columns {
            [ids] => self.insert_id(ids[row]),
            _ => self.insert_row(columns, row, hash),
        }
    }

    /// As [`Self::find_row`], for one or more columns.
    #[inline]
    pub fn find_any(&self, columns: &[&[u32]], row: usize, hash: u64) -> u32 {
        match columns {
            [ids] => self.find_one(ids[row]),
            _ => self.find_row(columns, row, hash),
        }
    }

    /// The number of the key of a row with two or more columns, and whether it was added now.
    #[inline]
    pub fn insert_row(&mut self, columns: &[&[u32]], row: usize, hash: u64) -> Result<(u32, bool)> {
        if self.table.is_empty() {
            self.rehash(16)?;
        }
        let mask = self.table.len() - 1;
        let mut at = self.slot(hash);
        let tag = hash << 32;
        loop {
            let entry = self.table[at];
            if entry == 0 {
                break;
            }
            if entry & 0xFFFF_FFFF_0000_0000 == tag {
                let n = entry as u32 - 1;
                if same(self.key(n), columns, row) {
                    return Ok((n, false));
                }
            }
            at = (at + 1) & mask;
        }
        let number = self.len;
        self.table[at] = tag | u64::from(number + 1);
        self.keys.extend(columns.iter().map(|c| c[row]));
        self.added()?;
        Ok((number, true))
    }

    /// Sets `out[row]` to the number of each row's key; [`NONE`] for a key that is not in the table.
    pub fn find(&self, columns: &[&[u32]], rows: usize, hashes: &mut Vec<u64>, out: &mut Vec<u32>) {
        out.clear();
        match columns {
            [] => out.resize(rows, if self.len > 0 { 0 } else { NONE }),
            [ids] => {
                let mask = self.table.len().wrapping_sub(1);
                for (row, &id) in ids.iter().enumerate() {
                    if let Some(&ahead) = ids.get(row + AHEAD) {
                        let d = ahead.wrapping_sub(self.base) as usize;
                        if d < self.direct.len() {
                            prefetch(&self.direct, d);
                        } else {
                            prefetch(&self.table, self.slot(hash_id(ahead)));
                        }
                    }
                    out.push(self.find_id(id, mask));
                }
            }
            _ => {
                hash_rows(columns, rows, hashes);
                for (row, &h) in hashes.iter().enumerate() {
                    if let Some(&ahead) = hashes.get(row + AHEAD) {
                        prefetch(&self.table, self.slot(ahead));
                    }
                    out.push(self.find_row(columns, row, h));
                }
            }
        }
    }

    #[inline]
    fn find_id(&self, id: u32, mask: usize) -> u32 {
        if let Some(&e) = self.direct.get(id.wrapping_sub(self.base) as usize) {
            return e.wrapping_sub(1);
        }
        if self.table.is_empty() {
            return NONE;
        }
        let mut at = self.slot(hash_id(id));
        loop {
            let entry = self.table[at];
            if entry == 0 {
                return NONE;
            }
            if (entry >> 32) as u32 == id {
                return entry as u32 - 1;
            }
            at = (at + 1) & mask;
        }
    }

    /// The number of a key of one column; [`NONE`] if it is not in the table.
    #[inline]
    pub fn find_one(&self, id: u32) -> u32 {
        self.find_id(id, self.table.len().wrapping_sub(1))
    }

    /// The number of the key of a row with this hash of [`hash_rows`]; [`NONE`] if it is not in the table.
    #[inline]
    pub fn find_row(&self, columns: &[&[u32]], row: usize, hash: u64) -> u32 {
        if self.table.is_empty() {
            return NONE;
        }
        let mask = self.table.len() - 1;
        let mut at = self.slot(hash);
        let tag = hash << 32;
        loop {
            let entry = self.table[at];
            if entry == 0 {
                return NONE;
            }
            if entry & 0xFFFF_FFFF_0000_0000 == tag {
                let n = entry as u32 - 1;
                if same(self.key(n), columns, row) {
                    return n;
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Prefetches the entry for a row with this hash.
    #[inline]
    pub fn prefetch_hash(&self, hash: u64) {
        prefetch(&self.table, self.slot(hash));
    }

    #[inline]
    fn slot(&self, hash: u64) -> usize {
        (hash >> (self.shift & 63)) as usize
    }

    #[inline]
    fn added(&mut self) -> Result<()> {
        self.len += 1;
        self.hashed += 1;
        if self.hashed as usize * 3 > self.table.len() * 2 {
            return self.grow();
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self) -> Result<()> {
        if self.len >= 1 << 31 {
            return Err(Error::limit(
                Resource::Numbers,
                "a query may hold at most 2 billion distinct keys",
            ));
        }
        let n = self.len as usize;
        if self.direct.is_empty()
            && n >= DIRECT_FROM
            && n * 16 >= self.span as usize
            && self.span > 0
            && self.recharge(self.span as usize * 4).is_ok()
        {
            self.direct = huge_zeroed(self.span as usize);
            // Ids beyond the array are not in the base; they stay in the table.
            let old = std::mem::take(&mut self.table);
            let mut rest: Vec<u64> = Vec::new();
            for e in old.into_iter().filter(|&e| e != 0) {
                match self.direct.get_mut((e >> 32) as usize) {
                    Some(d) => *d = e as u32,
                    None => rest.push(e),
                }
            }
            self.hashed = rest.len() as u32;
            let room = (rest.len() * 2).next_power_of_two().max(16);
            self.table = huge_zeroed(room);
            self.shift = 64 - room.trailing_zeros();
            for e in rest {
                self.put(hash_id((e >> 32) as u32), e);
            }
            return self.recharge(0);
        }
        match self.rehash(self.table.len() * 4) {
            Err(_) if self.keeps_headroom => self.rehash(self.table.len() * 2),
            done => done,
        }
    }

    fn put(&mut self, hash: u64, entry: u64) {
        let mask = self.table.len() - 1;
        let mut at = self.slot(hash);
        while self.table[at] != 0 {
            at = (at + 1) & mask;
        }
        self.table[at] = entry;
    }

    fn rehash(&mut self, room: usize) -> Result<()> {
        let room = room.max(16);
        // For a moment there are the old and the new table; and the keys may grow until the table grows again.
        let keys = match self.keeps_headroom {
            true => room * 2 / 3 * self.width,
            false => 0,
        };
        self.recharge(room * 8 + keys * 4)?;
        // Otherwise the keys would take up to three times their size while they grow, which is not charged.
        self.keys
            .reserve_exact(keys.saturating_sub(self.keys.len()));
        let old = std::mem::replace(&mut self.table, huge_zeroed(room));
        self.shift = 64 - room.trailing_zeros();
        if self.width == 1 {
            for e in old.into_iter().filter(|&e| e != 0) {
                self.put(hash_id((e >> 32) as u32), e);
            }
        } else {
            let tuples = std::mem::take(&mut self.keys);
            for (n, tuple) in (0u32..).zip(tuples.chunks_exact(self.width.max(1))) {
                let h = hash_tuple(tuple);
                self.put(h, h << 32 | u64::from(n + 1));
            }
            self.keys = tuples;
        }
        self.recharge(0)
    }

    /// Charges the memory held, and `more` bytes for an allocation that follows.
    fn recharge(&mut self, more: usize) -> Result<()> {
        // A table with headroom has reserved the keys' memory, unless it is an array.
        let is_reserved = self.keeps_headroom && self.direct.is_empty();
        let twice = if is_reserved { 1 } else { 2 };
        let keys = (self.keys.capacity() * twice).max(self.table.len() * 2 / 3 * self.width);
        let bytes = self.table.len() * 8 + self.direct.len() * 4 + keys * 4 + more;
        match self.keeps_headroom && self.has_many() {
            true => self.charge.set_with_headroom(bytes),
            false => self.charge.set(bytes),
        }
    }
}

/// Hash of a key of one column. It lacks the last mixing of [`hash_rows`], which the upper bits do not need.
#[inline]
fn hash_id(id: u32) -> u64 {
    u64::from(id).wrapping_mul(SPREAD)
}

fn hash_tuple(tuple: &[u32]) -> u64 {
    let mut h = 0u64;
    for &x in tuple {
        h = (h.rotate_left(23) ^ u64::from(x)).wrapping_mul(SPREAD);
    }
    h ^ h >> 29
}

#[inline]
fn same(key: &[u32], columns: &[&[u32]], row: usize) -> bool {
    key.iter().zip(columns).all(|(&k, c)| c[row] == k)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jindou_model::MemoryBudget;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn key_tables_agree_with_std(
            width in 0usize..4,
            span in prop_oneof![Just(0u32), Just(5000)],
            values in prop::collection::vec(prop_oneof![0u32..60, 4990u32..5010], 0..3000),
        ) {
            let budget = MemoryBudget::unlimited();
            let mut table = KeyTable::new(width, span, OperatorCharge::new(&budget));
            let mut truth: HashMap<Vec<u32>, u32> = HashMap::new();
            for batch in values.chunks(97 * width.max(1)) {
                let rows = batch.len() / width.max(1);
                let columns: Vec<Vec<u32>> =
                    (0..width).map(|c| (0..rows).map(|r| batch[r * width + c]).collect()).collect();
                let columns: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
                let (mut numbers, mut found, mut hashes) = (vec![], vec![], vec![]);
                table.insert(&columns, rows, &mut numbers).unwrap();
                table.find(&columns, rows, &mut hashes, &mut found);
                prop_assert_eq!(&numbers, &found);
                for (row, &n) in numbers.iter().enumerate() {
                    let key: Vec<u32> = columns.iter().map(|c| c[row]).collect();
                    let next = truth.len() as u32;
                    prop_assert_eq!(*truth.entry(key.clone()).or_insert(next), n);
                    prop_assert_eq!(table.key(n), &key[..]);
                }
            }
            prop_assert_eq!(table.len(), truth.len());
            if width > 0 {
                let absent = vec![[777_777u32]; width];
                let columns: Vec<&[u32]> = absent.iter().map(|c| &c[..]).collect();
                let (mut found, mut hashes) = (vec![], vec![]);
                table.find(&columns, 1, &mut hashes, &mut found);
                prop_assert_eq!(found, vec![NONE]);
            }
        }
    }

    #[test]
    fn many_ids_turn_into_an_array_and_stay_found() {
        let budget = MemoryBudget::unlimited();
        let mut table = KeyTable::new(1, 50_000, OperatorCharge::new(&budget));
        let mut truth = HashMap::new();
        for i in 0..60_000u32 {
            let id = if i % 9 == 0 {
                0xF000_0000 + i % 400
            } else {
                i.wrapping_mul(2_654_435_761) % 50_000
            };
            let next = truth.len() as u32;
            let n = *truth.entry(id).or_insert(next);
            assert_eq!(table.insert_id(id).unwrap().0, n);
        }
        assert!(!table.direct.is_empty());
        for (&id, &n) in &truth {
            assert_eq!(table.find_one(id), n);
        }
        assert_eq!(table.find_one(0xE000_0000), NONE);
        drop(table);
        assert_eq!(budget.used(), 0);
    }
}
