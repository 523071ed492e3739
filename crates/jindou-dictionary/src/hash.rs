//! The hash and the equality of terms for interning; both are fast for some tens of bytes. The number of steps depends
//! only on the class of the length (up to 8, 16, 32, 64, more), so that the processor predicts the branches although
//! lengths vary. This hash is never stored; the stored table uses XXH3 (`crate::format::stored_hash`).

use std::hash::{BuildHasher, RandomState};

/// Randomly drawn keys of the hash function, so that input cannot be made to collide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashKeys([u64; 4]);

impl HashKeys {
    pub(crate) fn random() -> Self {
        let state = RandomState::new();
        Self([0, 1, 2, 3].map(|i: u64| state.hash_one(i) | 1))
    }

    #[cfg(test)]
    fn fixed() -> Self {
        Self([
            0x9E37_79B9_7F4A_7C15,
            0xD6E8_FEB8_6659_FD93,
            0xA076_1D64_78BD_642F,
            0xE703_7ED1_A0B4_28DB,
        ])
    }
}

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

/// Up to 7 bytes as a number, not including the length.
#[inline(always)]
fn short(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    if let (Some(a), Some(b)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        return u64::from(u32::from_le_bytes(*a)) << 32 | u64::from(u32::from_le_bytes(*b));
    }
    match len {
        0 => 0,
        _ => u64::from(bytes[0]) << 16 | u64::from(bytes[len / 2]) << 8 | u64::from(bytes[len - 1]),
    }
}

/// A 64-bit hash whose halves are of equal quality. O(length), no setup cost.
#[inline]
pub(crate) fn hash(bytes: &[u8], keys: &HashKeys) -> u64 {
    let [k0, k1, k2, k3] = keys.0;
    let len = bytes.len();
    let (mut a, mut b) = (k0, k3);
    if len < 8 {
        b ^= short(bytes);
    } else if len <= 16 {
        a ^= word(bytes, 0);
        b ^= word(bytes, len - 8);
    } else if len <= 32 {
        a ^= mix(word(bytes, 0) ^ k1, word(bytes, 8) ^ k2);
        b ^= mix(word(bytes, len - 16) ^ k2, word(bytes, len - 8) ^ k1);
    } else {
        let mut at = 0;
        while at + 64 < len {
            a = mix(a ^ word(bytes, at), word(bytes, at + 8) ^ k1)
                ^ mix(word(bytes, at + 16) ^ k2, word(bytes, at + 24) ^ k1);
            b = mix(b ^ word(bytes, at + 32), word(bytes, at + 40) ^ k2)
                ^ mix(word(bytes, at + 48) ^ k1, word(bytes, at + 56) ^ k2);
            at += 64;
        }
        // The last 33 to 64 bytes as two overlapping halves.
        let first = at.min(len - 32);
        a ^= mix(word(bytes, first) ^ k1, word(bytes, first + 8) ^ k2);
        b ^= mix(word(bytes, first + 16) ^ k2, word(bytes, first + 24) ^ k3);
        a = a.rotate_left(23) ^ mix(word(bytes, len - 32) ^ k3, word(bytes, len - 24) ^ k1);
        b = b.rotate_left(23) ^ mix(word(bytes, len - 16) ^ k0, word(bytes, len - 8) ^ k2);
    }
    mix(mix(a ^ len as u64, b) ^ k2, k1 ^ a)
}

#[inline(always)]
fn wide(bytes: &[u8], at: usize) -> u128 {
    match bytes[at..].first_chunk::<16>() {
        Some(c) => u128::from_le_bytes(*c),
        None => 0,
    }
}

/// True if the bytes are equal; makes no call for lengths up to 64.
#[inline(always)]
pub(crate) fn equal(x: &[u8], y: &[u8]) -> bool {
    let n = x.len();
    if n != y.len() {
        return false;
    }
    if n < 8 {
        return short(x) == short(y);
    }
    if n <= 16 {
        return word(x, 0) == word(y, 0) && word(x, n - 8) == word(y, n - 8);
    }
    let d = |at: usize| wide(x, at) ^ wide(y, at);
    // The last bytes are compared first, since ends differ more often than beginnings.
    if n <= 32 {
        return d(n - 16) | d(0) == 0;
    }
    if n <= 64 {
        return d(n - 16) | d(n - 32) | d(16) | d(0) == 0;
    }
    d(n - 16) == 0 && x == y
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn near_strings_differ_in_both_halves() {
        let (mut upper, mut lower) = (HashSet::new(), HashSet::new());
        let n = 20_000u32;
        let keys = HashKeys::fixed();
        let long = "x".repeat(150);
        for i in 0..n {
            for text in [
                format!("{i}"),
                format!("<http://e.org/{i}"),
                format!("<http://www.University{i}.edu/Course"),
                format!("<http://www.University{i}.edu/{long}"),
                format!("<{long}{i}"),
            ] {
                let h = hash(text.as_bytes(), &keys);
                upper.insert((h >> 32) as u32);
                lower.insert(h as u32);
            }
        }
        // 100,000 draws from 2^32: about 1.2 collisions expected.
        assert!(upper.len() > 5 * n as usize - 12, "{}", upper.len());
        assert!(lower.len() > 5 * n as usize - 12, "{}", lower.len());
    }

    #[test]
    fn every_byte_and_the_length_count() {
        let keys = HashKeys::random();
        for len in 0..200 {
            let a: Vec<u8> = (0..len as u8).collect();
            let h = hash(&a, &keys);
            assert!(equal(&a, &a.clone()));
            assert_ne!(h, hash(&[&a[..], &[0]].concat(), &keys));
            for i in 0..len {
                let mut b = a.clone();
                b[i] ^= 1;
                assert_ne!(h, hash(&b, &keys), "{len} {i}");
                assert!(!equal(&a, &b), "{len} {i}");
            }
        }
        assert_ne!(hash(b"", &keys), hash(b"\0", &keys));
    }
}
