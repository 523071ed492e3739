//! Destinations for the text of rows: a vector, or a writer that gets pieces while a long cell is still being
//! formatted.

use jindou_model::scope::worked;
use jindou_model::{Error, Result};

/// Number of bytes that are converted between two checks of the time limit.
pub(crate) const BLOCK: usize = 1 << 14;
/// Size in bytes of the pieces in which text is written: large enough that the system call for each costs little.
pub(crate) const PIECE: usize = 1 << 16;
/// Number of bytes at which a piece is written even in the middle of a row.
pub(crate) const FULL: usize = 2 * PIECE;

/// Writes a piece of text and clears the vector.
pub(crate) type WritePiece<'h> = dyn FnMut(&mut Vec<u8>) -> Result<()> + 'h;

/// A destination for the text of rows.
pub(crate) trait TextOut {
    /// Appends one byte.
    fn push(&mut self, byte: u8);
    /// Appends bytes.
    fn extend_from_slice(&mut self, text: &[u8]);
    /// Appends at most [`BLOCK`] bytes for which the caller has already called [`Self::is_over`].
    #[inline(always)]
    fn append(&mut self, text: &[u8]) {
        self.extend_from_slice(text);
    }
    /// Counts a block of this many bytes as work. Returns true if an error, such as a passed time limit, has ended the
    /// answer, so that the remaining text is not needed.
    fn is_over(&mut self, _bytes: usize) -> bool {
        false
    }
}

impl TextOut for Vec<u8> {
    #[inline(always)]
    fn push(&mut self, byte: u8) {
        self.push(byte);
    }

    #[inline(always)]
    fn extend_from_slice(&mut self, text: &[u8]) {
        self.extend_from_slice(text);
    }
}

/// Collects text and writes it whenever a piece is full. After an error, further text is ignored.
pub(crate) struct PieceWriter<'o, 'h> {
    buffer: &'o mut Vec<u8>,
    write_piece: &'o mut WritePiece<'h>,
    failed: Option<Error>,
}

impl<'o, 'h> PieceWriter<'o, 'h> {
    /// A destination that appends to the text in `buffer`, and writes full pieces by `write_piece`.
    pub(crate) fn new(buffer: &'o mut Vec<u8>, write_piece: &'o mut WritePiece<'h>) -> Self {
        Self {
            buffer,
            write_piece,
            failed: None,
        }
    }

    /// Returns the error, if one has occurred since the last call.
    pub(crate) fn outcome(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    #[inline(always)]
    fn write_piece_if_full(&mut self) {
        if self.buffer.len() >= FULL {
            self.write_piece();
        }
    }

    #[cold]
    fn write_piece(&mut self) {
        self.failed = (self.write_piece)(self.buffer).err();
    }
}

impl TextOut for PieceWriter<'_, '_> {
    fn push(&mut self, byte: u8) {
        if self.failed.is_none() {
            self.buffer.push(byte);
            self.write_piece_if_full();
        }
    }

    fn extend_from_slice(&mut self, text: &[u8]) {
        for block in text.chunks(BLOCK) {
            if self.is_over(block.len()) {
                return;
            }
            self.append(block);
        }
    }

    #[inline(always)]
    fn append(&mut self, text: &[u8]) {
        if self.failed.is_none() {
            self.buffer.extend_from_slice(text);
            self.write_piece_if_full();
        }
    }

    fn is_over(&mut self, bytes: usize) -> bool {
        if self.failed.is_none() {
            self.failed = worked(bytes).err();
        }
        self.failed.is_some()
    }
}

/// Copies a text with escapes. `special` finds the next byte that may need one. `escape` returns the escape for the
/// beginning of the remaining text, and the number of bytes that it replaces, or `None` if the first byte needs none.
#[inline]
pub(super) fn push_escaped<T: TextOut>(
    text: &[u8],
    special: impl Fn(&[u8]) -> Option<usize>,
    escape: impl FnMut(&[u8]) -> Option<(usize, &'static [u8])>,
    out: &mut T,
) {
    // The first block is searched at once, since most short texts need no escape.
    let mut from = 0;
    if text.len() <= BLOCK {
        match special(text) {
            None => return out.extend_from_slice(text),
            Some(run) => from = run,
        }
        out.extend_from_slice(&text[..from]);
    }
    push_escaped_from(text, from, special, escape, out);
}

/// As [`push_escaped`], from byte `from` of the text on.
fn push_escaped_from<T: TextOut>(
    text: &[u8],
    mut from: usize,
    special: impl Fn(&[u8]) -> Option<usize>,
    mut escape: impl FnMut(&[u8]) -> Option<(usize, &'static [u8])>,
    out: &mut T,
) {
    while from < text.len() {
        let end = text.len().min(from + BLOCK);
        if out.is_over(end - from) {
            return;
        }
        while from < end {
            let run = special(&text[from..end]).unwrap_or(end - from);
            if run > 0 {
                out.append(&text[from..from + run]);
                from += run;
            }
            let before = from;
            // Bytes that need an escape often follow each other, so the next byte is tried before searching again.
            while from < end
                && let Some((bytes, escaped)) = escape(&text[from..])
            {
                out.append(escaped);
                from += bytes;
            }
            if from == before && from < end {
                out.append(&text[from..=from]);
                from += 1;
            }
        }
    }
}

/// Escapes of the control characters U+0000 to U+001F. JSON writes them with lower-case digits, Turtle with upper-case
/// ones.
pub(super) const fn controls(digits: &[u8; 16]) -> [[u8; 6]; 32] {
    let mut all = [*b"\\u0000"; 32];
    let mut at = 0;
    while at < all.len() {
        all[at][4] = digits[at / 16];
        all[at][5] = digits[at % 16];
        at += 1;
    }
    all
}

/// True if `special` finds a byte.
pub(super) fn has_special<T: TextOut>(
    text: &[u8],
    special: impl Fn(&[u8]) -> Option<usize>,
    out: &mut T,
) -> bool {
    if text.len() <= BLOCK {
        return special(text).is_some();
    }
    text.chunks(BLOCK)
        .any(|block| out.is_over(BLOCK) || special(block).is_some())
}

#[cfg(test)]
mod tests {
    use super::super::rows::{push_json_string, push_xml_text};
    use super::super::text::{push_csv_term, push_tsv_term};
    use super::{BLOCK, PieceWriter};
    use jindou_model::term;
    use proptest::prelude::*;

    fn naive(text: &str, escape: impl Fn(char) -> Option<String>) -> String {
        let each = text.chars().map(|c| escape(c).unwrap_or(c.to_string()));
        each.collect()
    }

    fn json(c: char) -> Option<String> {
        Some(match c {
            '"' | '\\' => format!("\\{c}"),
            '\n' => "\\n".into(),
            '\r' => "\\r".into(),
            '\t' => "\\t".into(),
            '\0'..' ' => format!("\\u{:04x}", u32::from(c)),
            _ => return None,
        })
    }

    fn tsv(c: char) -> Option<String> {
        json(c).filter(|_| "\"\\\n\r\t".contains(c))
    }

    fn xml(c: char) -> Option<String> {
        Some(match c {
            '<' => "&lt;".into(),
            '>' => "&gt;".into(),
            '&' => "&amp;".into(),
            '"' => "&quot;".into(),
            '\'' => "&apos;".into(),
            '\t' | '\n' | '\r' => format!("&#{};", u32::from(c)),
            _ => return None,
        })
    }

    fn csv(text: &str) -> String {
        match text.contains(['"', ',', '\n', '\r']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.to_owned(),
        }
    }

    /// The text as `push` escapes it, with the written pieces joined.
    fn escaped(push: impl Fn(&mut PieceWriter<'_, '_>)) -> String {
        let (mut out, mut buffer) = (Vec::new(), Vec::new());
        let mut write_piece = |piece: &mut Vec<u8>| {
            out.append(piece);
            Ok(())
        };
        let mut pieces = PieceWriter::new(&mut buffer, &mut write_piece);
        push(&mut pieces);
        pieces.outcome().unwrap();
        out.append(&mut buffer);
        String::from_utf8(out).unwrap()
    }

    fn check(text: &str) {
        let mut cell = vec![term::STRING];
        cell.extend_from_slice(text.as_bytes());
        let quoted = |inside| format!("\"{inside}\"");
        let got = escaped(|out| push_json_string(text.as_bytes(), out));
        assert_eq!(got, quoted(naive(text, json)));
        let got = escaped(|out| push_tsv_term(&cell, out));
        assert_eq!(got, quoted(naive(text, tsv)));
        assert_eq!(escaped(|out| push_csv_term(&cell, out)), csv(text));
        let is_xml = |c: char| {
            !matches!(c, '\0'..' ' if !"\t\n\r".contains(c))
                && !matches!(c, '\u{FFFE}' | '\u{FFFF}')
        };
        if text.chars().all(is_xml) {
            let got = escaped(|out| push_xml_text(text.as_bytes(), out).unwrap());
            let inner = text.trim_matches(' ');
            let before = text.len() - text.trim_start_matches(' ').len();
            let after = text.len() - before - inner.len();
            let spaces = |n| "&#32;".repeat(n);
            assert_eq!(got, spaces(before) + &naive(inner, xml) + &spaces(after));
        }
    }

    proptest! {
        #[test]
        fn texts_are_escaped_as_by_a_naive_writer(
            text in "[ \\u{0}-\\u{1f}a-c<>&'\"\\\\,é\\u{fb01}\\u{fffd}\\u{fffe}\\u{1F600}]{0,40}",
            plain in "[ a-c<>&'\"\\\\,é\\u{ff5e}\t\n]{0,12}",
            far in 0usize..BLOCK + 40,
        ) {
            check(&text);
            check(&plain);
            check(&("a".repeat(far) + &plain + "b"));
        }
    }

    #[test]
    fn long_texts_are_escaped_as_by_a_naive_writer() {
        for text in [
            "\"",
            "a\"",
            "\u{1}",
            "é",
            "<",
            "\u{FFFD}",
            "a\u{FF5E},",
            " ",
        ] {
            check(&text.repeat(3 * BLOCK / text.len()));
            check(&("aaa".to_owned() + &text.repeat(10 * BLOCK)));
        }
    }
}
