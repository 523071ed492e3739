//! A text whose codepoint escapes outside strings and IRIs are decoded, as SPARQL 1.1 §19.2 requires, and the mapping
//! of its positions to those of the original text.

use crate::lexer::{BadToken, Lexer, TokenKind};
use std::ops::Range;

/// The text to parse, and the original text.
pub(crate) struct ParserText<'t> {
    pub original: &'t str,
    decoded: Option<DecodedEscapes>,
}

struct DecodedEscapes {
    text: String,
    /// For each escape in order: the offset after its character in `text`, and the offset after the escape in the
    /// original.
    escapes: Vec<(usize, usize)>,
}

impl<'t> ParserText<'t> {
    /// Decodes the escapes if `anywhere`. O(length).
    pub(crate) fn new(original: &'t str, anywhere: bool) -> Self {
        Self {
            original,
            decoded: if anywhere { decode(original) } else { None },
        }
    }

    pub(crate) fn text(&self) -> &str {
        self.decoded.as_ref().map_or(self.original, |d| &d.text)
    }

    /// The range in the original for a range of the text.
    pub(crate) fn range(&self, range: Range<usize>) -> Range<usize> {
        self.place(range.start)..self.place(range.end)
    }

    pub(crate) fn place(&self, at: usize) -> usize {
        let Some(d) = &self.decoded else { return at };
        let n = d.escapes.partition_point(|e| e.0 <= at);
        match n.checked_sub(1).map(|n| d.escapes[n]) {
            None => at,
            Some((decoded, original)) => original + (at - decoded),
        }
    }
}

fn decode(text: &str) -> Option<DecodedEscapes> {
    let bytes = text.as_bytes();
    let any =
        memchr::memchr_iter(b'\\', bytes).any(|i| matches!(bytes.get(i + 1), Some(b'u' | b'U')));
    if !any {
        return None;
    }
    let mut out = DecodedEscapes {
        text: String::new(),
        escapes: vec![],
    };
    let mut copied = 0;
    let mut lexer = Lexer::new(text);
    loop {
        let token = lexer.next();
        match token.kind {
            TokenKind::End => break,
            TokenKind::Bad(BadToken::Escape) => {
                let digits = if bytes[token.start + 1] == b'u' { 4 } else { 8 };
                let end = token.end + digits;
                let Some(c) = text
                    .get(token.end..end)
                    .filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
                    .and_then(|hex| u32::from_str_radix(hex, 16).ok())
                    .and_then(char::from_u32)
                else {
                    continue;
                };
                out.text.push_str(&text[copied..token.start]);
                out.text.push(c);
                out.escapes.push((out.text.len(), end));
                copied = end;
                lexer.go_on_from(end);
            }
            _ => {}
        }
    }
    if out.escapes.is_empty() {
        return None;
    }
    out.text.push_str(&text[copied..]);
    Some(out)
}
