//! Writes numbers to byte buffers without `format!` and without allocation.

/// Appends `value` in decimal.
pub(crate) fn push(out: &mut Vec<u8>, value: u64) {
    push_padded(out, value, 1);
}

/// Appends `value` in decimal, with leading zeros up to `width` (at most 20) digits.
pub(crate) fn push_padded(out: &mut Vec<u8>, mut value: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    while value > 0 {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    at = at.min(digits.len() - width.min(digits.len()));
    out.extend_from_slice(&digits[at..]);
}

/// Appends `value` in base 36.
pub(crate) fn push_base36(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [b'0'; 13];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b"0123456789abcdefghijklmnopqrstuvwxyz"[(value % 36) as usize];
        value /= 36;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_like_the_standard_library_does() {
        for v in [0, 1, 9, 10, 35, 36, 4_294_967_296, u64::MAX] {
            let mut out = vec![];
            push(&mut out, v);
            assert_eq!(out, v.to_string().into_bytes());
            out.clear();
            push_padded(&mut out, v, 6);
            assert_eq!(out, format!("{v:06}").into_bytes());
            out.clear();
            push_base36(&mut out, v);
            let text = std::str::from_utf8(&out).unwrap();
            assert_eq!(u64::from_str_radix(text, 36).unwrap(), v);
        }
    }
}
