//! Character classes of XML 1.0, fifth edition. Beyond ASCII, its names have the characters of SPARQL's.

use jindou_model::prefixes::{is_name_char, is_name_start};

/// May begin a name, as a single byte.
const NAME_START: u8 = 1;
/// May occur in a name, as a single byte.
const NAME: u8 = 2;
/// Blank, tab, line feed, carriage return.
const SPACE: u8 = 4;
/// Ends a part of an attribute's value that is copied unchanged: quotation marks, `<`, `&`, white space except the
/// blank.
const VALUE_STOP: u8 = 8;

static CLASS: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        // Bytes of longer characters are classified as characters, not here.
        if b.is_ascii_alphabetic() || b == b'_' || b == b':' {
            table[i] |= NAME_START | NAME;
        }
        if b.is_ascii_digit() || b == b'-' || b == b'.' {
            table[i] |= NAME;
        }
        if matches!(b, b' ' | b'\t' | b'\n' | b'\r') {
            table[i] |= SPACE;
        }
        if matches!(b, b'"' | b'\'' | b'<' | b'&' | b'\t' | b'\n' | b'\r') {
            table[i] |= VALUE_STOP;
        }
        i += 1;
    }
    table
};

/// True for white space (`S` of the specification).
#[inline(always)]
pub(crate) fn is_space(b: u8) -> bool {
    CLASS[b as usize] & SPACE != 0
}

/// Length of the white space that `bytes` start with.
#[inline]
pub(crate) fn spaces(bytes: &[u8]) -> usize {
    let count = bytes.iter().position(|&b| !is_space(b));
    count.unwrap_or(bytes.len())
}

/// Position of the first byte of an attribute's value that cannot be copied unchanged.
#[inline]
pub(crate) fn value_stop(bytes: &[u8]) -> usize {
    let stop = bytes
        .iter()
        .position(|&b| CLASS[b as usize] & VALUE_STOP != 0);
    stop.unwrap_or(bytes.len())
}

/// Length of the name that `text` starts with; 0 if there is none. `Name` of the specification.
#[inline]
pub(crate) fn name(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes.first() {
        Some(&b) if CLASS[b as usize] & NAME_START != 0 => nmtoken(text),
        Some(&b) if b >= 0x80 && text.chars().next().is_some_and(is_name_start) => nmtoken(text),
        _ => 0,
    }
}

/// Length of the name token that `text` starts with; 0 if there is none. `Nmtoken` of the specification.
#[inline]
pub(crate) fn nmtoken(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        match bytes.get(at) {
            Some(&b) if CLASS[b as usize] & NAME != 0 => at += 1,
            Some(&b) if b >= 0x80 => match text.get(at..).and_then(|t| t.chars().next()) {
                Some(c) if is_name_char(c) => at += c.len_utf8(),
                _ => return at,
            },
            _ => return at,
        }
    }
}

/// True if the whole text is a name without a colon (`NCName`).
#[must_use]
pub fn is_ncname(text: &str) -> bool {
    !text.is_empty() && name(text) == text.len() && !text.contains(':')
}

/// True for characters that XML 1.0 documents may contain. References to other characters are not allowed either.
#[must_use]
pub fn is_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Position of the first character of `text` that XML does not allow.
pub(crate) fn first_illegal(text: &str) -> Option<usize> {
    // Searches without branches, many bytes at a time, since usually there is none.
    let mut found = false;
    for &b in text.as_bytes() {
        found |= b < 0x20 && b != b'\n' && b != b'\t' && b != b'\r';
    }
    let control = match found {
        true => text
            .bytes()
            .position(|b| b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r')),
        false => None,
    };
    // U+FFFE and U+FFFF: EF BF BE and EF BF BF.
    let bytes = text.as_bytes();
    let other = memchr::memchr_iter(0xEF, bytes)
        .find(|&at| matches!(bytes.get(at + 1..at + 3), Some([0xBF, 0xBE | 0xBF])));
    match (control, other) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// True if a byte may occur in a public identifier.
pub(crate) fn is_public(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b" \r\n-'()+,./:=?;!*#@$_%".contains(&b)
}

/// The character of a numeric reference; `digits` is the text between `&#` and `;`. `None` if XML does not allow it.
pub(crate) fn referred(digits: &str) -> Option<char> {
    let (digits, radix) = match digits.strip_prefix('x') {
        Some(hex) => (hex, 16),
        None => (digits, 10),
    };
    // `from_str_radix` would accept a sign.
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let trimmed = digits.trim_start_matches('0');
    let code = match (digits, trimmed) {
        ("", _) => return None,
        (_, "") => 0,
        _ => u32::from_str_radix(trimmed, radix).ok()?,
    };
    char::from_u32(code).filter(|&c| is_char(c))
}

/// Appends text, with all line ends converted to line feeds.
pub(crate) fn push_lines(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\r', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        out.push('\n');
        rest = &rest[at + 1..];
        rest = rest.strip_prefix('\n').unwrap_or(rest);
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_mean_characters_that_xml_allows() {
        let all = [
            ("65", Some('A')),
            ("x41", Some('A')),
            ("x00000000000000000000041", Some('A')),
            ("9", Some('\t')),
            ("x10FFFF", Some('\u{10FFFF}')),
            ("0", None),
            ("x1", None),
            ("xD800", None),
            ("xFFFE", None),
            ("x110000", None),
            ("4294967361", None),
            ("", None),
            ("x", None),
            ("+65", None),
            ("X41", None),
            ("4A", None),
        ];
        for (digits, expected) in all {
            assert_eq!(referred(digits), expected, "{digits}");
        }
    }

    #[test]
    fn names_end_where_they_end() {
        for (text, length) in [
            ("a b", 1),
            ("a:b=", 3),
            ("é·x/", 5),
            ("-a", 0),
            ("\u{300}a", 0),
            ("", 0),
            ("a\u{300}-.9\u{D7}", 6),
        ] {
            assert_eq!(name(text), length, "{text}");
        }
        assert_eq!(nmtoken("-9a b"), 3);
        assert!(is_ncname("a") && !is_ncname("a:b") && !is_ncname("1") && !is_ncname("a b"));
    }

    #[test]
    fn illegal_characters_are_found() {
        assert_eq!(first_illegal("a\tb\r\n\u{FFFD}\u{7F}\u{85}"), None);
        assert_eq!(first_illegal("ab\u{1}"), Some(2));
        assert_eq!(first_illegal("é\u{FFFE}\u{0}"), Some(2));
        assert_eq!(first_illegal("é\u{0}\u{FFFF}"), Some(2));
        for code in 0..=u32::from(char::MAX) {
            if let Some(c) = char::from_u32(code) {
                let text = c.to_string();
                assert_eq!(first_illegal(&text).is_none(), is_char(c), "{code:x}");
            }
        }
    }

    #[test]
    fn line_ends_become_line_feeds() {
        let mut out = String::new();
        push_lines("a\r\nb\rc\n\r\r\nd\r", &mut out);
        assert_eq!(out, "a\nb\nc\n\n\nd\n");
    }
}
