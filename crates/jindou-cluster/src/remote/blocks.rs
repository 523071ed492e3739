//! Keys and bounds of lists in small packed blocks. A lookup reads a directory entry (the directory is small and mostly
//! cached) and then one or two adjacent cache lines of a block.
//!
//! ```text
//! block   n (26 bits), w (6 bits); of n ascending keys the low 8 bits; their other bits; n + 1 fields of w bits
//! ```
//!
//! A block begins at a multiple of 32 bits. Its directory entry contains its base, which is the first bound of the
//! block's first list. The list of key `j` has the bounds `base + j + field[j]` and `base + j + 1 + field[j + 1]`:
//! lists are never empty, so the fields grow by degree − 1 only, and `w` is 0 if every list has one neighbour. The keys
//! are left out if `j` is known otherwise. Their low 8 bits are stored next to each other so that many are compared at
//! once; a binary search among so few keys would cost more in mispredicted branches than a cache miss.

/// Number of bits of `n`, the number of keys in a block.
const COUNT_BITS: u32 = 26;
/// Number of bits before the keys.
const HEAD: u64 = 32;
/// Position that means "no block".
pub const NONE: u32 = u32::MAX;
/// Number of keys that are compared at once.
const CHUNK: usize = 32;
/// Minimum number of keys for which a binary search first narrows down the range.
const MANY: u64 = 128;
/// Largest number of bits of a key. With this limit, a block never has more keys than `n` can express.
pub const MAX_LOW: u32 = 25;

/// A string to which bits are appended.
#[derive(Debug, Default)]
pub struct BitString {
    words: Vec<u64>,
    bits: u64,
}

impl BitString {
    fn put(&mut self, value: u64, width: u32) {
        let (word, shift) = ((self.bits / 64) as usize, self.bits % 64);
        self.bits += u64::from(width);
        self.words
            .resize(self.bits.div_ceil(64).max(word as u64 + 1) as usize, 0);
        let wide = u128::from(value) << shift;
        if let Some(w) = self.words.get_mut(word) {
            *w |= wide as u64;
        }
        if let Some(w) = self.words.get_mut(word + 1) {
            *w |= (wide >> 64) as u64;
        }
    }

    /// Appends a block. `bounds` are the lists' bounds (one more than lists, strictly ascending); `lows` are the lists'
    /// keys of `low_bits` bits each, ascending, or empty for a block without keys. Returns the block's position in
    /// units of 32 bits; `None` if the position exceeds 32 bits.
    pub fn block(&mut self, lows: &[u32], low_bits: u32, bounds: &[u32]) -> Option<u32> {
        self.bits = self.bits.next_multiple_of(32);
        let at = u32::try_from(self.bits / 32)
            .ok()
            .filter(|&at| at != NONE)?;
        let base = bounds.first().copied().unwrap_or(0);
        let field =
            |(j, &b): (usize, &u32)| u64::from(b.saturating_sub(base)).saturating_sub(j as u64);
        let most = bounds.iter().enumerate().map(field).max().unwrap_or(0);
        let width = 64 - most.leading_zeros();
        self.put(lows.len() as u64 | u64::from(width) << COUNT_BITS, 32);
        lows.iter().for_each(|&l| self.put(u64::from(l & 0xFF), 8));
        let rest = low_bits.saturating_sub(8);
        lows.iter().for_each(|&l| self.put(u64::from(l >> 8), rest));
        if width > 0 {
            bounds
                .iter()
                .enumerate()
                .for_each(|b| self.put(field(b), width));
        }
        Some(at)
    }

    /// The words of all blocks, followed by some zeros, so that reading at the end needs no special case.
    pub fn finish(mut self) -> Vec<u64> {
        self.words.extend([0; 1 + CHUNK / 8]);
        self.words
    }
}

/// The 64 bits that start at `bit`; `None` if they are not within the words.
#[inline]
fn window(words: &[u64], bit: u64) -> Option<u64> {
    let at = usize::try_from(bit / 64).ok()?;
    let &[a, b] = words.get(at..)?.first_chunk::<2>()?;
    Some(((u128::from(a) | u128::from(b) << 64) >> (bit % 64)) as u64)
}

/// The lowest `width` bits.
#[inline]
fn low(x: u64, width: u32) -> u64 {
    x & !(u64::MAX << width.min(63))
}

/// Decodes the head of the block at `at`: number of keys, bits per field, and the bit position of the first key.
#[inline]
fn head(words: &[u64], at: u32) -> Option<(u64, u32, u64)> {
    let bit = u64::from(at) * 32;
    let head = window(words, bit)?;
    let width = (head >> COUNT_BITS) as u32 & 63;
    Some((low(head, COUNT_BITS), width.min(32), bit + HEAD))
}

/// Bounds of list `j` relative to the block's base. `fields` is the bit position of the fields.
#[inline]
fn bounds(words: &[u64], fields: u64, width: u32, j: u64) -> Option<(u64, u64)> {
    if width == 0 {
        return Some((j, j + 1));
    }
    let two = window(words, fields + j * u64::from(width))?;
    Some((
        j + low(two, width),
        j + 1 + low(two.checked_shr(width).unwrap_or(0), width),
    ))
}

/// Mask of the bytes that equal `byte`: bit `i` for byte `i`. Branch-free, eight bytes at a time.
#[inline]
fn equal(bytes: &[u8; CHUNK], byte: u8) -> u32 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().rev().fold(0, |mask, w| {
        let x = u64::from_le_bytes(*w) ^ (u64::from(byte) * LOW);
        // Sets the high bit of each zero byte, then gathers these eight bits.
        let zero = !(((x & (LOW * 0x7F)) + LOW * 0x7F) | x) & (LOW * 0x80);
        mask << 8 | ((zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
    })
}

/// Bounds, relative to the block's base, of the list of a key of `low_bits` bits; `None` if the block does not contain
/// the key. O(1) for up to `MANY` keys, else O(log keys).
#[inline]
#[must_use]
pub fn find(words: &[u64], at: u32, low_bits: u32, key: u32) -> Option<(u64, u64)> {
    let (n, width, keys) = head(words, at)?;
    let (rest, rest_bits) = (keys + 8 * n, low_bits.saturating_sub(8));
    let rest_of = |j: u64| {
        let bits = window(words, rest + j * u64::from(rest_bits))?;
        Some(low(bits, rest_bits))
    };
    let wanted = u64::from(key >> 8);
    let (mut from, mut to) = (0, n);
    if n > MANY {
        while from < to {
            let middle = from + (to - from) / 2;
            if rest_of(middle)? < wanted {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        // At most 256 keys share the remaining bits.
        to = n.min(from + 256);
    }
    let bytes: &[u8] = bytemuck::cast_slice(words);
    while from < to {
        let at = usize::try_from(keys / 8 + from).ok()?;
        let mut found = equal(bytes.get(at..)?.first_chunk()?, key as u8);
        if to - from < CHUNK as u64 {
            found &= (1 << (to - from)) - 1;
        }
        while found != 0 {
            let j = from + u64::from(found.trailing_zeros());
            if rest_of(j)? == wanted {
                return bounds(words, rest + n * u64::from(rest_bits), width, j);
            }
            found &= found - 1;
        }
        from += CHUNK as u64;
    }
    None
}

/// Bounds, relative to the block's base, of list `j` of a block without keys.
#[inline]
#[must_use]
pub fn nth(words: &[u64], at: u32, j: u32) -> Option<(u64, u64)> {
    let (_, width, fields) = head(words, at)?;
    bounds(words, fields, width, u64::from(j))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bounds of lists with these degrees, starting at `base`.
    fn bounds_of(base: u32, degrees: &[u32]) -> Vec<u32> {
        let mut at = base;
        let rest = degrees.iter().map(|d| {
            at += d;
            at
        });
        std::iter::once(base).chain(rest).collect()
    }

    fn degree() -> impl Strategy<Value = u32> {
        prop_oneof![5 => 1u32..2, 3 => 1u32..9, 1 => 1u32..2_000_000]
    }

    proptest! {
        #[test]
        fn every_key_is_found_with_its_bounds_and_no_other(
            blocks in prop::collection::vec(
                prop_oneof![
                    prop::collection::btree_map(0u32..900, degree(), 1..70),
                    prop::collection::btree_map(0u32..900, degree(), 300..500),
                ],
                1..5,
            ),
            base in 0u32..1000,
        ) {
            let low_bits = 10;
            let mut keyed = BitString::default();
            let mut plain = BitString::default();
            let mut made = Vec::new();
            for b in &blocks {
                let lows: Vec<u32> = b.keys().copied().collect();
                let bounds = bounds_of(base, &b.values().copied().collect::<Vec<_>>());
                let at = keyed.block(&lows, low_bits, &bounds).unwrap();
                made.push((at, plain.block(&[], 0, &bounds).unwrap(), bounds));
            }
            let (keyed, plain) = (keyed.finish(), plain.finish());
            for (b, (at, plain_at, bounds)) in blocks.iter().zip(&made) {
                for key in 0..1024 {
                    let j = b.keys().position(|&k| k == key);
                    let want = j.map(|j| (u64::from(bounds[j] - base), u64::from(bounds[j + 1] - base)));
                    prop_assert_eq!(find(&keyed, *at, low_bits, key), want);
                    if let Some(j) = j {
                        prop_assert_eq!(nth(&plain, *plain_at, j as u32), want);
                    }
                }
            }
        }

        #[test]
        fn any_words_are_no_fault(words in prop::collection::vec(any::<u64>(), 0..9), at in 0u32..20, key: u32, bits in 0u32..26) {
            for at in [at, NONE, NONE - 1] {
                let _ = (find(&words, at, bits, key), nth(&words, at, key));
            }
        }
    }

    #[test]
    fn the_widest_fields() {
        let mut writer = BitString::default();
        writer.put(1, 31);
        let at = writer.block(&[3, 4], 25, &[0, 1, u32::MAX]).unwrap();
        let few = writer.block(&[0, 5], 3, &[7, 8, 9]).unwrap();
        let words = writer.finish();
        assert_eq!(find(&words, few, 3, 5), Some((1, 2)));
        assert_eq!(find(&words, few, 3, 1), None);
        assert_eq!(find(&words, at, 25, 3), Some((0, 1)));
        assert_eq!(find(&words, at, 25, 4), Some((1, u64::from(u32::MAX))));
        assert_eq!(find(&words, at, 25, 5), None);
        assert_eq!(nth(&[], 0, 0), None);
    }
}
