//! Helpers of the tokeniser: errors, blanks, escapes, characters.

use jindou_model::{Result, Span};

/// An error in a line, and its position in the block.
#[derive(Clone, Debug)]
pub(crate) struct LineError {
    /// Byte offset into the block.
    pub(crate) at: usize,
    /// Message of the form "…, expected …".
    pub(crate) message: String,
}

/// Creates the error; out of line so that the hot path stays small.
#[cold]
#[inline(never)]
pub(super) fn fail<T>(at: usize, message: impl Into<String>) -> Result<T, LineError> {
    Err(LineError {
        at,
        message: message.into(),
    })
}

/// The error if something else than `expected` is at a position.
#[cold]
pub(super) fn unexpected<T>(text: &[u8], at: usize, expected: &str) -> Result<T, LineError> {
    fail(
        at,
        format!("found {}, expected {expected}", found(text, at)),
    )
}

#[inline]
pub(super) fn span(start: usize, len: usize) -> Span {
    Span {
        start: start as u32,
        len: len as u32,
    }
}

/// The position after any spaces and tabs.
#[inline(always)]
pub(super) fn blanks(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t') = text.get(at) {
        at += 1;
    }
    at
}

/// The position of the next line feed or carriage return, or the end of the text.
pub(super) fn line_end(text: &[u8], at: usize) -> usize {
    memchr::memchr2(b'\n', b'\r', &text[at..]).map_or(text.len(), |n| at + n)
}

#[cold]
pub(super) fn check_utf8(text: &[u8], from: usize, to: usize) -> Result<(), LineError> {
    match std::str::from_utf8(&text[from..to]) {
        Ok(_) => Ok(()),
        Err(e) => fail(
            from + e.valid_up_to(),
            "bytes that are not UTF-8, expected UTF-8 text",
        ),
    }
}

/// The character at the start of `bytes`, if it is UTF-8.
pub(super) fn decode_char(bytes: &[u8]) -> Option<char> {
    let head = &bytes[..bytes.len().min(4)];
    match std::str::from_utf8(head) {
        Ok(s) => s.chars().next(),
        Err(e) => std::str::from_utf8(&head[..e.valid_up_to()])
            .ok()?
            .chars()
            .next(),
    }
}

/// Decodes the escape at the backslash `at` into `out`; returns the position after it.
pub(super) fn unescape(
    text: &[u8],
    at: usize,
    in_literal: bool,
    out: &mut Vec<u8>,
) -> Result<usize, LineError> {
    let digits = match text.get(at + 1) {
        Some(b'u') => 4,
        Some(b'U') => 8,
        Some(&c) if in_literal => {
            let plain = match c {
                b't' => b'\t',
                b'b' => 8,
                b'n' => b'\n',
                b'r' => b'\r',
                b'f' => 12,
                b'"' | b'\'' | b'\\' => c,
                _ => {
                    return fail(
                        at,
                        format!(
                            "unknown escape `\\{}`, expected \\t \\b \\n \\r \\f \\\" \\' \\\\ \\uXXXX or \\UXXXXXXXX",
                            found(text, at + 1).trim_matches('`')
                        ),
                    );
                }
            };
            out.push(plain);
            return Ok(at + 2);
        }
        _ => {
            return fail(
                at,
                "unknown escape in an IRI, expected \\uXXXX or \\UXXXXXXXX",
            );
        }
    };
    let mut code = 0u32;
    for i in 0..digits {
        let Some(d) = text
            .get(at + 2 + i)
            .and_then(|b| char::from(*b).to_digit(16))
        else {
            return fail(
                at,
                format!("incomplete escape, expected {digits} hexadecimal digits"),
            );
        };
        code = code << 4 | d;
    }
    let Some(c) = char::from_u32(code) else {
        return fail(
            at,
            format!(
                "U+{code:04X} is not a character, expected a Unicode scalar value (no surrogates)"
            ),
        );
    };
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(at + 2 + digits)
}

/// The character at a position, described for a message.
pub(super) fn found(text: &[u8], at: usize) -> String {
    match text.get(at) {
        None | Some(b'\n' | b'\r') => "the end of the line".into(),
        Some(b) if b.is_ascii_graphic() => format!("`{}`", char::from(*b)),
        Some(_) => match decode_char(&text[at..]) {
            Some(c) => format!("`{}`", c.escape_debug()),
            None => "a byte that is not UTF-8".into(),
        },
    }
}

/// A token for a message: its first 80 characters if it is longer.
pub(super) fn shorten(s: &str) -> String {
    if s.chars().count() <= 80 {
        s.to_owned()
    } else {
        s.chars().take(80).chain(['…']).collect()
    }
}
