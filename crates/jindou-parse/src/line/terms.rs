//! Terms of a line: IRIs, blank nodes, literals.

use super::LineParser;
use super::text::{
    LineError, blanks, check_utf8, decode_char, fail, shorten, span, unescape, unexpected,
};
use crate::chars;
use jindou_model::{Span, term};
use oxrdf::vocab::rdf;

/// The content of a literal, without the datatype or language tag that may follow.
enum Lexical {
    /// A range of the block.
    Plain(usize, usize),
    /// The content had escapes, and is in [`LineParser::scratch`].
    Unescaped,
}

impl LineParser<'_> {
    #[inline]
    pub(super) fn iri(&mut self, text: &[u8], at: usize) -> Result<(Span, usize), LineError> {
        match chars::plain_iri(&text[at + 1..]) {
            Some(len) => Ok((span(at, len + 1), at + len + 2)),
            None => self.any_iri(text, at),
        }
    }

    /// Parses an IRI for which the fast check is not enough.
    #[inline(never)]
    fn any_iri(&mut self, text: &[u8], at: usize) -> Result<(Span, usize), LineError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let result = self.any_iri_in(text, at, &mut scratch);
        self.scratch = scratch;
        result
    }

    fn any_iri_in(
        &mut self,
        text: &[u8],
        at: usize,
        scratch: &mut Vec<u8>,
    ) -> Result<(Span, usize), LineError> {
        scratch.clear();
        let mut escaped = false;
        let mut i = at + 1;
        let end = loop {
            match text.get(i) {
                Some(b'>') => break i,
                Some(b'\\') => {
                    if !escaped {
                        scratch.extend_from_slice(&text[at + 1..i]);
                        escaped = true;
                    }
                    i = unescape(text, i, false, scratch)?;
                }
                None | Some(b'\n' | b'\r') => {
                    return fail(i, "the line ends inside an IRI, expected `>`");
                }
                Some(&b) => {
                    if escaped {
                        scratch.push(b);
                    }
                    i += 1;
                }
            }
        };
        let raw = if escaped {
            scratch.as_slice()
        } else {
            &text[at + 1..end]
        };
        let Ok(iri) = std::str::from_utf8(raw) else {
            return fail(
                at,
                "an IRI has bytes that are not UTF-8, expected UTF-8 text",
            );
        };
        if let Err(e) = oxiri::Iri::parse(iri) {
            let why = e.to_string();
            return fail(
                at,
                format!(
                    "`<{}>` is not a valid absolute IRI ({why}), expected one such as <http://…>",
                    shorten(iri)
                ),
            );
        }
        if !escaped {
            return Ok((span(at, end - at), end + 1));
        }
        let from = self.extra.len();
        self.extra.push(term::IRI);
        self.extra.extend_from_slice(raw);
        Ok((self.extra_span(from), end + 1))
    }

    pub(super) fn blank(&mut self, text: &[u8], at: usize) -> Result<(Span, usize), LineError> {
        if text.get(at + 1) != Some(&b':') {
            return fail(at, "found `_` without `:`, expected a blank node `_:label`");
        }
        let from = at + 2;
        let mut i = from;
        loop {
            // The first character of a label must not be a dot or a hyphen; apart from that, all positions allow the
            // same ASCII characters.
            if i > from || !matches!(text.get(i), Some(b'.' | b'-')) {
                i += chars::ascii_label(&text[i..]);
            }
            match text.get(i) {
                Some(b) if *b >= 0x80 => {
                    let Some(c) = decode_char(&text[i..]) else {
                        return fail(
                            i,
                            "a blank node label has bytes that are not UTF-8, expected UTF-8 text",
                        );
                    };
                    let ok = if i == from {
                        chars::is_label_start(c)
                    } else {
                        chars::is_label_char(c)
                    };
                    if !ok {
                        break;
                    }
                    i += c.len_utf8();
                }
                _ => break,
            }
        }
        while i > from && text[i - 1] == b'.' {
            i -= 1;
        }
        if i == from {
            return unexpected(text, from, "a blank node label after `_:`");
        }
        let label = &text[from..i];
        if self.labels.keeps(label) {
            return Ok((span(at, i - at), i));
        }
        let start = self.extra.len();
        self.labels.push(label, &mut self.extra);
        Ok((self.extra_span(start), i))
    }

    #[inline]
    pub(super) fn literal(&mut self, text: &[u8], at: usize) -> Result<(Span, usize), LineError> {
        let (lexical, end) = self.lexical(text, at)?;
        let next = blanks(text, end);
        match text.get(next) {
            Some(b'@') => self.language(text, next, &lexical),
            Some(b'^') => self.typed(text, next, &lexical),
            _ => Ok(match lexical {
                Lexical::Plain(from, to) => (span(from - 1, to - from + 1), end),
                Lexical::Unescaped => {
                    let from = self.extra.len();
                    self.extra.push(term::STRING);
                    self.extra.extend_from_slice(&self.scratch);
                    (self.extra_span(from), end)
                }
            }),
        }
    }

    /// Parses the text between the quotes; returns the position after the closing one.
    #[inline]
    fn lexical(&mut self, text: &[u8], at: usize) -> Result<(Lexical, usize), LineError> {
        let from = at + 1;
        let to = from + chars::string_stop(&text[from..]);
        if text.get(to) == Some(&b'"') {
            if !self.utf8 {
                check_utf8(text, from, to)?;
            }
            return Ok((Lexical::Plain(from, to), to + 1));
        }
        self.escaped_lexical(text, from, to)
    }

    fn escaped_lexical(
        &mut self,
        text: &[u8],
        from: usize,
        first_stop: usize,
    ) -> Result<(Lexical, usize), LineError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let (mut from, mut to) = (from, first_stop);
        let result = loop {
            if !self.utf8
                && let Err(e) = check_utf8(text, from, to)
            {
                break Err(e);
            }
            scratch.extend_from_slice(&text[from..to]);
            match text.get(to) {
                Some(b'"') => break Ok((Lexical::Unescaped, to + 1)),
                Some(b'\\') => match unescape(text, to, true, &mut scratch) {
                    Ok(next) => {
                        from = next;
                        to = from + chars::string_stop(&text[from..]);
                    }
                    Err(e) => break Err(e),
                },
                _ => {
                    break fail(
                        to,
                        "the line ends inside a literal, expected the closing `\"` (write a line end as \\n)",
                    );
                }
            }
        };
        self.scratch = scratch;
        result
    }

    fn push_lexical(&mut self, text: &[u8], lexical: &Lexical) {
        match *lexical {
            Lexical::Plain(from, to) => self.extra.extend_from_slice(&text[from..to]),
            Lexical::Unescaped => self.extra.extend_from_slice(&self.scratch),
        }
    }

    /// Parses a language tag and base direction such as `@en`, `@en-GB` or `@he--rtl`; `at` is the position of the at
    /// sign.
    fn language(
        &mut self,
        text: &[u8],
        at: usize,
        lexical: &Lexical,
    ) -> Result<(Span, usize), LineError> {
        let from = at + 1;
        let letters = |from: usize| {
            text[from..]
                .iter()
                .take_while(|b| b.is_ascii_alphabetic())
                .count()
        };
        let mut i = from + letters(from);
        if i == from {
            return unexpected(text, from, "a language tag that starts with a letter");
        }
        while text.get(i) == Some(&b'-') && text.get(i + 1).is_some_and(u8::is_ascii_alphanumeric) {
            i += 1;
            i += text[i..]
                .iter()
                .take_while(|b| b.is_ascii_alphanumeric())
                .count();
        }
        let tag = &text[from..i];
        if !chars::is_plain_language(tag) {
            // The tag consists of ASCII characters, as checked above.
            let tag = std::str::from_utf8(tag).unwrap_or_default();
            if let Err(e) = oxilangtag::LanguageTag::parse(tag) {
                return fail(
                    from,
                    format!(
                        "`{}` is not a language tag ({e}), expected one such as `en` or `de-AT`",
                        shorten(tag)
                    ),
                );
            }
        }
        let mut end = i;
        if text[i..].starts_with(b"--") {
            end = i + 2 + letters(i + 2);
            if !matches!(&text[i + 2..end], b"ltr" | b"rtl") {
                return fail(i, "unknown base direction, expected `--ltr` or `--rtl`");
            }
        }
        let start = self.extra.len();
        self.extra.push(term::LANG);
        self.extra
            .extend(text[from..end].iter().map(u8::to_ascii_lowercase));
        self.extra.push(0);
        self.push_lexical(text, lexical);
        Ok((self.extra_span(start), end))
    }

    /// Parses a datatype, `^^<datatype>`; `at` is the position of the first caret.
    fn typed(
        &mut self,
        text: &[u8],
        at: usize,
        lexical: &Lexical,
    ) -> Result<(Span, usize), LineError> {
        if text.get(at + 1) != Some(&b'^') {
            return fail(at, "found a single `^`, expected `^^` and a datatype IRI");
        }
        let iri_at = blanks(text, at + 2);
        if text.get(iri_at) != Some(&b'<') {
            return unexpected(text, iri_at, "a datatype IRI in `<…>`");
        }
        if let Some((len, prefix)) = self.datatypes.find(&text[iri_at..]) {
            let start = self.extra.len();
            self.extra.extend_from_slice(prefix);
            self.push_lexical(text, lexical);
            return Ok((self.extra_span(start), iri_at + len));
        }
        // The literal's decoded content is in `scratch`, which an IRI with escapes also needs, so it is moved out.
        let kept = std::mem::take(&mut self.scratch);
        let undo = self.extra.len();
        let iri = self.iri(text, iri_at);
        self.scratch = kept;
        let (iri, end) = iri?;
        let mut prefix = Vec::new();
        {
            let start = iri.start as usize + 1;
            let len = iri.len as usize - 1;
            let bytes = if start < self.text_len {
                &text[start..start + len]
            } else {
                &self.extra[start - self.text_len..start - self.text_len + len]
            };
            let Ok(datatype) = std::str::from_utf8(bytes) else {
                return fail(
                    iri_at,
                    "an IRI has bytes that are not UTF-8, expected UTF-8 text",
                );
            };
            if datatype == rdf::LANG_STRING.as_str() {
                return fail(
                    iri_at,
                    "a literal of datatype rdf:langString has no language, expected `\"…\"@tag`",
                );
            }
            if datatype == rdf::DIR_LANG_STRING.as_str() {
                return fail(
                    iri_at,
                    "a literal of datatype rdf:dirLangString has no base direction, expected `\"…\"@tag--ltr`",
                );
            }
            term::push_typed("", datatype, &mut prefix);
        }
        self.extra.truncate(undo);
        let start = self.extra.len();
        self.extra.extend_from_slice(&prefix);
        self.push_lexical(text, lexical);
        self.datatypes.remember(&text[iri_at..end], prefix);
        Ok((self.extra_span(start), end))
    }
}

/// The last few datatypes: each as written in the line, and as the bytes with which a canonical literal begins.
#[derive(Default)]
pub(super) struct DatatypeCache {
    entries: [(Vec<u8>, Vec<u8>); 4],
    next: usize,
}

impl DatatypeCache {
    #[inline]
    fn find(&self, text: &[u8]) -> Option<(usize, &[u8])> {
        self.entries
            .iter()
            .find(|(raw, _)| !raw.is_empty() && text.starts_with(raw))
            .map(|(raw, prefix)| (raw.len(), prefix.as_slice()))
    }

    fn remember(&mut self, raw: &[u8], prefix: Vec<u8>) {
        self.entries[self.next] = (raw.to_vec(), prefix);
        self.next = (self.next + 1) % self.entries.len();
    }
}
