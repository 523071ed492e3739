//! What parsing a text takes at most, from a look at its bytes: tokens become nodes of some size, names become IRIs with their
//! whole prefix.

use crate::parse::string_len;

/// Bytes that a token becomes, about, at most: a term of inline data is a row with a literal and its datatype.
const TOKEN: u64 = 320;
/// Short texts are charged so much in any case.
const LEAST: u64 = 16 << 10;

/// Bytes that parsing takes. O(text).
pub(super) fn of(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let (mut tokens, mut names, mut longest) = (0u64, 0u64, 0usize);
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        let rest = &bytes[at..];
        at += match b {
            b' ' | b'\t' | b'\r' | b'\n' => 1,
            b'#' => rest
                .iter()
                .position(|c| matches!(c, b'\n' | b'\r'))
                .unwrap_or(rest.len()),
            b'"' | b'\'' => {
                tokens += 1;
                string_len(rest)
            }
            b'<' => {
                tokens += 1;
                let iri = rest[1..].iter().position(|&c| {
                    c <= b' ' || matches!(c, b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`')
                });
                match iri {
                    Some(end) if rest[end + 1] == b'>' => {
                        longest = longest.max(end);
                        names += 1;
                        end + 2
                    }
                    _ => 1,
                }
            }
            b if b.is_ascii_alphanumeric() || b >= 0x80 || matches!(b, b'_' | b'?' | b'$') => {
                tokens += 1;
                1 + rest[1..]
                    .iter()
                    .position(|&c| !(c.is_ascii_alphanumeric() || c >= 0x80 || c == b'_'))
                    .unwrap_or(rest.len() - 1)
            }
            b => {
                tokens += 1;
                names += u64::from(b == b':');
                1
            }
        };
    }
    // A name of a long prefix or under a long base has all of it.
    let expanded = names.saturating_mul(longest as u64);
    LEAST + tokens * TOKEN + expanded + 2 * text.len() as u64
}

/// Terms that DESCRIBE names, at least. O(text).
pub(super) fn described(text: &str) -> usize {
    let bytes = text.as_bytes();
    let word = |at: usize| {
        bytes
            .get(at..at + 8)
            .is_some_and(|w| w.eq_ignore_ascii_case(b"describe"))
    };
    let Some(at) = (0..bytes.len()).find(|&at| word(at)) else {
        return 0;
    };
    let rest = &bytes[at..];
    let end = rest.iter().position(|&b| b == b'{').unwrap_or(rest.len());
    // Each term has one of these.
    let begins = |b: &&u8| matches!(**b, b'<' | b'?' | b'$' | b':');
    rest[..end].iter().filter(begins).count()
}
