//! Search for bytes that must be escaped, eight bytes at a time, since most texts contain none.

/// A 64-bit word with this value in every byte.
const fn each(b: u8) -> u64 {
    u64::from_ne_bytes([b; 8])
}

/// Sets the highest bit of each byte of `word` that is below `n` (at most 128); lower bits are arbitrary. Only the
/// lowest marked byte is certain, since a borrow may mark bytes above it (Warren, Hacker's Delight, section 6-1).
#[inline(always)]
const fn below(word: u64, n: u8) -> u64 {
    word.wrapping_sub(each(n)) & !word
}

/// A byte to search for, or two bytes that differ in one bit: searching for both costs no more than for one.
#[derive(Clone, Copy)]
pub(super) struct Needle {
    differing: u8,
    with_it: u8,
}

impl Needle {
    pub(super) const fn one(b: u8) -> Self {
        Self::two(b, b)
    }

    /// A needle that matches both of two bytes, which may differ in one bit only.
    pub(super) const fn two(a: u8, b: u8) -> Self {
        assert!((a ^ b).count_ones() <= 1);
        Self {
            differing: a ^ b,
            with_it: a | b,
        }
    }

    const fn is(self, b: u8) -> bool {
        b | self.differing == self.with_it
    }
}

/// The position of the first byte that is below `control` (at most 128) or matches one of `signs`.
#[inline(always)]
pub(super) fn first_of<const N: usize>(
    text: &[u8],
    control: u8,
    signs: [Needle; N],
) -> Option<usize> {
    let special = |b: u8| b < control || signs.iter().any(|s| s.is(b));
    let marks = |word: u64| {
        let any = signs.iter().fold(below(word, control), |m, s| {
            m | below((word | each(s.differing)) ^ each(s.with_it), 1)
        });
        any & each(0x80)
    };
    let (words, rest) = text.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let found = marks(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(i * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    if rest.is_empty() {
        return None;
    }
    let from = text.len() - rest.len();
    if let Some(last) = text.last_chunk::<8>() {
        // The last eight bytes are searched at once, including some that were searched already.
        let found = marks(u64::from_le_bytes(*last));
        return (found != 0).then(|| text.len() - 8 + found.trailing_zeros() as usize / 8);
    }
    rest.iter().position(|&b| special(b)).map(|i| from + i)
}

#[cfg(test)]
mod tests {
    use super::{Needle, first_of};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_found_wherever_it_is(
            text in prop::collection::vec(prop_oneof![8 => Just(b'a'), 1 => any::<u8>(), 1 => Just(b'"'), 1 => Just(0x1F), 1 => Just(0xA2)], 0..70)
        ) {
            let json = |b: &u8| *b < 0x20 || *b == b'"' || *b == b'\\';
            let found = first_of(&text, 0x20, [b'"', b'\\'].map(Needle::one));
            prop_assert_eq!(found, text.iter().position(json));
            let csv = |b: &u8| [b'"', b',', b'\n', b'\r'].contains(b);
            let found = first_of(&text, 0, [b'"', b',', b'\n', b'\r'].map(Needle::one));
            prop_assert_eq!(found, text.iter().position(csv));
            let pairs = |b: &u8| [b'`', b'a', b'\"', 0xA2].contains(b);
            let found = first_of(&text, 0, [Needle::two(b'a', b'`'), Needle::two(0x22, 0xA2)]);
            prop_assert_eq!(found, text.iter().position(pairs));
        }
    }
}
