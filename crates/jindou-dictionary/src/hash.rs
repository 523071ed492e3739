//! The in-memory hash of interning: quick on terms of some tens of bytes. Never stored; the stored
//! table uses XXH3 (`crate::format::stored_hash`).

const K0: u64 = 0x9E37_79B9_7F4A_7C15;
const K1: u64 = 0xD6E8_FEB8_6659_FD93;
const K2: u64 = 0xA076_1D64_78BD_642F;

#[inline(always)]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    match bytes[at..].first_chunk::<8>() {
        Some(c) => u64::from_le_bytes(*c),
        None => 0,
    }
}

/// A 64-bit hash whose upper half is as good as its lower one. O(length), no setup cost.
#[inline]
pub(crate) fn hash(bytes: &[u8], seed: u64) -> u64 {
    let len = bytes.len();
    let mut state = seed ^ K0;
    let (a, b);
    if len > 16 {
        let mut at = 0;
        while at + 16 < len {
            state = mix(word(bytes, at) ^ K1, word(bytes, at + 8) ^ state);
            at += 16;
        }
        a = word(bytes, len - 16);
        b = word(bytes, len - 8);
    } else if len >= 8 {
        a = word(bytes, 0);
        b = word(bytes, len - 8);
    } else {
        let mut padded = [0u8; 8];
        padded[..len].copy_from_slice(bytes);
        a = u64::from_le_bytes(padded);
        b = 0;
    }
    mix(mix(a ^ K1, b ^ state) ^ K2, K0 ^ len as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn near_strings_differ_in_both_halves() {
        let (mut upper, mut lower) = (HashSet::new(), HashSet::new());
        let n = 20_000u32;
        for i in 0..n {
            for text in [
                format!("{i}"),
                format!("<http://www.University{i}.edu/Course"),
            ] {
                let h = hash(text.as_bytes(), 1);
                upper.insert((h >> 32) as u32);
                lower.insert(h as u32);
            }
        }
        // 40,000 draws from 2^32: about 0.2 collisions expected.
        assert!(upper.len() > 2 * n as usize - 10, "{}", upper.len());
        assert!(lower.len() > 2 * n as usize - 10, "{}", lower.len());
    }

    #[test]
    fn length_matters_when_the_padding_does_not_show() {
        assert_ne!(hash(b"a", 0), hash(b"a\0", 0));
        assert_ne!(hash(b"", 0), hash(b"\0", 0));
    }
}
