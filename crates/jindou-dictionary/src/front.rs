//! Parts of front coding: lengths in at most 5 bytes of 7 bits each, low bits first, and common prefixes.

/// Appends an encoded length.
#[inline]
pub(crate) fn push(mut v: u32, out: &mut Vec<u8>) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

/// Decodes the length at `at` and advances `at`; `None` when the bytes end or the number is too long.
#[inline]
pub(crate) fn read(bytes: &[u8], at: &mut usize) -> Option<u32> {
    let first = *bytes.get(*at)?;
    *at += 1;
    if first < 0x80 {
        return Some(u32::from(first));
    }
    let mut v = u32::from(first & 0x7F);
    for shift in [7, 14, 21, 28] {
        let b = *bytes.get(*at)?;
        *at += 1;
        v |= u32::from(b & 0x7F) << shift;
        if b < 0x80 {
            return Some(v);
        }
    }
    None
}

/// Length of the common prefix of `a` and `b`, which are known to agree in `from` bytes.
#[inline]
pub(crate) fn common_prefix(a: &[u8], b: &[u8], from: usize) -> usize {
    let n = a.len().min(b.len());
    let mut i = from.min(n);
    while let (Some(x), Some(y)) = (a[i..].first_chunk::<8>(), b[i..].first_chunk::<8>()) {
        let differ = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differ != 0 {
            return i + differ.trailing_zeros() as usize / 8;
        }
        i += 8;
    }
    while i < n && a[i] == b[i] {
        i += 1;
    }
    i
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for v in [
            0,
            1,
            127,
            128,
            300,
            16_383,
            16_384,
            1 << 21,
            1 << 28,
            u32::MAX,
        ] {
            let mut out = vec![];
            push(v, &mut out);
            let mut at = 0;
            assert_eq!((read(&out, &mut at), at), (Some(v), out.len()));
            for cut in 0..out.len() {
                assert_eq!(read(&out[..cut], &mut 0), None);
            }
        }
        assert_eq!(read(&[0xFF; 6], &mut 0), None);
    }

    #[test]
    fn prefixes_end_where_bytes_differ() {
        for n in 0..40 {
            let a = vec![1u8; n];
            for k in 0..n {
                let mut b = a.clone();
                b[k] = 2;
                for from in 0..=k {
                    assert_eq!(common_prefix(&a, &b, from), k);
                }
            }
            assert_eq!(common_prefix(&a, &[1; 50], 0), n);
        }
    }
}
