//! Ascending numbers in few bits: Elias–Fano, with what is needed to find one in one or two cache misses.
//!
//! `n` numbers below `u` take about `2 + log2(u / n)` bits each: the low `l = log2(u / n)` bits of each lie in
//! one array, the high parts in a bitmap (number `i` sets bit `high + i`). Every `SAMPLE`th one and zero of
//! the bitmap has its position noted, so finding the `i`th number is a look at a note and a count over
//! `SAMPLE * 2` bits on average.
//!
//! A reader keeps offsets (for lists) and keys (for directories) in this form; 4-byte arrays take 5 to 10
//! times as much.

use jindou_store::segment::prefetch;
use std::ops::Range;

/// Ones, and zeros, between two notes.
const SAMPLE: u64 = 128;
/// Words before the arrays: count, low bits, words of low, high, ones' and zeros' notes.
const HEADER: usize = 6;

/// Borrowed words; see the module. Damaged words give wrong numbers, never a fault.
#[derive(Clone, Copy, Debug)]
pub struct Monotone<'a> {
    count: u64,
    low_bits: u32,
    low: &'a [u64],
    high: &'a [u64],
    ones: &'a [u64],
    zeros: &'a [u64],
}

/// Appends `values` (ascending; equal ones may repeat) in this form. O(values).
pub fn build(values: &[u32], out: &mut Vec<u64>) {
    let n = values.len() as u64;
    let top = u64::from(values.last().copied().unwrap_or(0)) + 1;
    let low_bits = (top / n.max(1)).max(1).ilog2().min(31);
    let mut low = vec![0u64; (n * u64::from(low_bits)).div_ceil(64) as usize];
    let bits = n + (top >> low_bits) + 1;
    let mut high = vec![0u64; bits.div_ceil(64) as usize];
    for (i, &v) in values.iter().enumerate() {
        let i = i as u64;
        let v = u64::from(v);
        let at = (v >> low_bits) + i;
        high[(at / 64) as usize] |= 1 << (at % 64);
        if low_bits > 0 {
            let part = v & ((1 << low_bits) - 1);
            let at = i * u64::from(low_bits);
            let (word, shift) = ((at / 64) as usize, at % 64);
            low[word] |= part << shift;
            if shift + u64::from(low_bits) > 64 {
                low[word + 1] |= part >> (64 - shift);
            }
        }
    }
    // A note: the number of the word that holds the sample, and (upper half) the ones or zeros before it.
    let notes = |flip: u64| {
        let mut notes = Vec::new();
        let mut seen = 0u64;
        for (w, &word) in high.iter().enumerate() {
            let count = u64::from((word ^ flip).count_ones());
            while notes.len() as u64 * SAMPLE < seen + count {
                notes.push(w as u64 | (seen & 0xFFFF_FFFF) << 32);
            }
            seen += count;
        }
        notes
    };
    let (ones, zeros) = (notes(0), notes(u64::MAX));
    let lens = [&low, &high, &ones, &zeros].map(|a| a.len() as u64);
    out.extend_from_slice(&[n, u64::from(low_bits)]);
    out.extend_from_slice(&lens);
    for part in [low, high, ones, zeros] {
        out.extend(part);
    }
}

/// Where the arrays of a [`Monotone`] lie in some words: what a reader keeps beside them.
#[derive(Clone, Debug)]
pub struct Shape {
    count: u64,
    low_bits: u32,
    parts: [Range<usize>; 4],
}

impl Shape {
    /// Reads the header at word `at`; also gives the word behind the arrays. `None` if they are cut short or
    /// no such thing.
    #[must_use]
    pub fn parse(words: &[u64], at: usize) -> Option<(Self, usize)> {
        let &[count, low_bits, a, b, c, d] = words.get(at..)?.first_chunk::<HEADER>()?;
        let mut end = at + HEADER;
        let mut take = |n: u64| {
            let start = end;
            end = start.checked_add(usize::try_from(n).ok()?)?;
            (end <= words.len()).then_some(start..end)
        };
        let parts = [take(a)?, take(b)?, take(c)?, take(d)?];
        if low_bits >= 32 || count.checked_mul(low_bits)?.div_ceil(64) > a {
            return None;
        }
        let shape = Self {
            count,
            low_bits: low_bits as u32,
            parts,
        };
        Some((shape, end))
    }

    /// The numbers, in the words that the shape was parsed from.
    #[inline]
    #[must_use]
    pub fn over<'a>(&self, words: &'a [u64]) -> Monotone<'a> {
        let part = |i: usize| words.get(self.parts[i].clone()).unwrap_or(&[]);
        Monotone {
            count: self.count,
            low_bits: self.low_bits,
            low: part(0),
            high: part(1),
            ones: part(2),
            zeros: part(3),
        }
    }
}

impl Monotone<'_> {
    /// How many numbers.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.count
    }

    /// True without numbers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Position of the `i`th one (or zero, with `flip` all ones) in the bitmap.
    #[inline]
    fn select(&self, notes: &[u64], flip: u64, i: u64) -> Option<u64> {
        let note = *notes.get((i / SAMPLE) as usize)?;
        let mut word = (note & 0xFFFF_FFFF) as usize;
        let mut left = i.wrapping_sub(note >> 32) & 0xFFFF_FFFF;
        loop {
            let bits = self.high.get(word)? ^ flip;
            let count = u64::from(bits.count_ones());
            if left < count {
                return Some(word as u64 * 64 + u64::from(select_in_word(bits, left as u32)));
            }
            left -= count;
            word += 1;
        }
    }

    #[inline]
    fn low(&self, i: u64) -> u64 {
        if self.low_bits == 0 {
            return 0;
        }
        let at = i.wrapping_mul(u64::from(self.low_bits));
        let (word, shift) = ((at / 64) as usize, at % 64);
        let first = self.low.get(word).copied().unwrap_or(0) >> shift;
        let rest = if shift + u64::from(self.low_bits) > 64 {
            self.low.get(word + 1).copied().unwrap_or(0) << (64 - shift)
        } else {
            0
        };
        (first | rest) & ((1 << self.low_bits) - 1)
    }

    /// Number `i`; `None` behind the last. O(1).
    #[inline]
    #[must_use]
    pub fn get(&self, i: u64) -> Option<u64> {
        if i >= self.count {
            return None;
        }
        let at = self.select(self.ones, 0, i)?;
        Some(at.wrapping_sub(i) << self.low_bits | self.low(i))
    }

    /// Numbers `i` and `i + 1`, for little more than one. O(1), and O(gap) bits between the two.
    #[inline]
    #[must_use]
    pub fn pair(&self, i: u64) -> Option<(u64, u64)> {
        if i + 1 >= self.count {
            return None;
        }
        // First, so that its cache misses run beside those of the bitmap.
        let (low, low_next) = (self.low(i), self.low(i + 1));
        let at = self.select(self.ones, 0, i)?;
        let mut word = ((at + 1) / 64) as usize;
        let mut bits = self.high.get(word)? & (u64::MAX << ((at + 1) % 64));
        while bits == 0 {
            word += 1;
            bits = *self.high.get(word)?;
        }
        let next = word as u64 * 64 + u64::from(bits.trailing_zeros());
        let value = |at: u64, i: u64, low: u64| at.wrapping_sub(i) << self.low_bits | low;
        Some((value(at, i, low), value(next, i + 1, low_next)))
    }

    /// Starts fetching what [`Self::pair`] of `i` reads first.
    #[inline]
    pub fn prefetch(&self, i: u64) {
        prefetch(self.ones, (i / SAMPLE) as usize);
        prefetch(
            self.low,
            (i.wrapping_mul(u64::from(self.low_bits)) / 64) as usize,
        );
    }

    /// Starts fetching what it reads next; reads what [`Self::prefetch`] fetched.
    #[inline]
    pub fn prefetch_bits(&self, i: u64) {
        if let Some(note) = self.ones.get((i / SAMPLE) as usize) {
            // Half the bits are ones or so; the note is up to SAMPLE ones behind.
            let ahead = (i.wrapping_sub(note >> 32) & 0xFFFF_FFFF) / 32;
            prefetch(self.high, (note & 0xFFFF_FFFF) as usize + ahead as usize);
        }
    }

    /// The index of `v` (the first, if it repeats), or `None` if it is not there. O(1) and O(log) of the
    /// numbers that share its high part.
    #[inline]
    #[must_use]
    pub fn find(&self, v: u64) -> Option<u64> {
        let high = v >> self.low_bits;
        // Zero number h ends the numbers with high part h.
        let mut from = match high.checked_sub(1) {
            None => 0,
            Some(h) => self.select(self.zeros, u64::MAX, h)?.wrapping_sub(h),
        };
        let mut to = self.select(self.zeros, u64::MAX, high)?.wrapping_sub(high);
        let (end, low) = (to, v & ((1u64 << self.low_bits) - 1));
        while from < to {
            let middle = from + (to - from) / 2;
            if self.low(middle) < low {
                from = middle + 1
            } else {
                to = middle
            }
        }
        (from < end && from < self.count && self.low(from) == low).then_some(from)
    }
}

/// Position of the `i`th one of a word that has more than `i`: the byte by comparing running counts of all
/// bytes at once (Vigna 2008), the bit by a table. Branch-free: these words are random to a branch predictor.
#[inline]
fn select_in_word(word: u64, i: u32) -> u32 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut s = word - ((word >> 1) & 0x5555_5555_5555_5555);
    s = (s & 0x3333_3333_3333_3333) + ((s >> 2) & 0x3333_3333_3333_3333);
    s = ((s + (s >> 4)) & 0x0F0F_0F0F_0F0F_0F0F).wrapping_mul(LOW);
    // A byte's high bit stays where its running count is at most `i`.
    let before = ((u64::from(i) * LOW) | HIGH).wrapping_sub(s) & HIGH;
    let byte = (before.count_ones() * 8).min(56);
    let rank = i.wrapping_sub(((s << 8) >> byte & 0xFF) as u32) & 7;
    byte + u32::from(SELECT_IN_BYTE[(word >> byte & 0xFF) as usize][rank as usize])
}

/// Position of each one in each byte; 0 where there is none.
const SELECT_IN_BYTE: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut rank) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                table[byte][rank] = bit;
                rank += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn agrees(values: &[u32]) {
        let mut words = vec![7];
        build(values, &mut words);
        let (shape, end) = Shape::parse(&words, 1).unwrap();
        assert_eq!(end, words.len());
        let m = shape.over(&words);
        assert_eq!(m.len(), values.len() as u64);
        for (i, w) in values.iter().enumerate() {
            assert_eq!(m.get(i as u64), Some(u64::from(*w)));
            let pair = values.get(i + 1).map(|n| (u64::from(*w), u64::from(*n)));
            assert_eq!(m.pair(i as u64), pair);
        }
        assert_eq!(m.get(values.len() as u64), None);
        let near = values
            .iter()
            .flat_map(|&v| [v.saturating_sub(1), v, v.saturating_add(1)]);
        for v in near.chain([0, 1, u32::MAX]) {
            let want = values.partition_point(|&w| w < v);
            let want = (values.get(want) == Some(&v)).then_some(want as u64);
            assert_eq!(m.find(u64::from(v)), want, "{v}");
        }
    }

    #[test]
    fn extremes() {
        agrees(&[]);
        agrees(&[0]);
        agrees(&[0, 0, 0, 0]);
        agrees(&[u32::MAX]);
        agrees(&[0, u32::MAX]);
        agrees(&(0..1000).collect::<Vec<_>>());
        agrees(&(0..40).map(|i| i * 100_000_000).collect::<Vec<_>>());
        let mut clustered: Vec<u32> = (0..5000).collect();
        clustered.push(4_000_000_000);
        agrees(&clustered);
    }

    #[test]
    fn damaged_words_are_no_fault() {
        let mut words = Vec::new();
        build(&(0..500).map(|i| i * 37).collect::<Vec<_>>(), &mut words);
        for at in 0..words.len() {
            for bad in [0, 1, 63, u64::MAX, words[at] ^ 1 << 40] {
                let mut w = words.clone();
                w[at] = bad;
                if let Some((shape, _)) = Shape::parse(&w, 0) {
                    let m = shape.over(&w);
                    for i in [0, 1, 100, 499, 500, u64::MAX - 1] {
                        let _ = (m.get(i), m.pair(i), m.find(i));
                    }
                }
            }
        }
        for cut in 0..words.len() {
            assert!(Shape::parse(&words[..cut], 0).is_none());
        }
    }

    proptest! {
        #[test]
        fn any_ascending_numbers(gaps in prop::collection::vec(prop_oneof![0u32..1, 0u32..3, 0u32..500, 0u32..3_000_000], 1..700)) {
            let mut at = 0u32;
            agrees(&gaps.iter().map(|g| { at = at.saturating_add(*g); at }).collect::<Vec<_>>());
        }
    }
}
