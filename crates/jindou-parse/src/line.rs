//! The tokeniser of N-Triples and N-Quads (1.1, and 1.2's triple terms and base directions).
//!
//! It works on a block of whole lines and copies nothing that already has canonical form: an IRI
//! and a plain literal are spans of the block itself. It accepts and produces what `oxttl` does
//! (tests compare the two on valid, broken and mutated input), with one limit of our own: triple
//! terms nest at most [`MAX_NESTING`] deep.

use crate::chars;
use crate::labels::LabelScope;
use jindou_model::term;
use jindou_model::{QuadBatch, Result, Span};
use oxrdf::vocab::rdf;

/// How deep triple terms may nest: what `jindou_model::term::decode` takes apart.
pub(crate) const MAX_NESTING: usize = 64;

/// What is wrong in a line, and at which byte of the block.
#[derive(Debug)]
pub(crate) struct LineError {
    /// Byte offset into the block.
    pub(crate) at: usize,
    /// "…, expected …".
    pub(crate) message: String,
}

/// Makes the error; out of line so that the hot path stays small.
#[cold]
#[inline(never)]
fn fail<T>(at: usize, message: impl Into<String>) -> Result<T, LineError> {
    Err(LineError {
        at,
        message: message.into(),
    })
}

/// A literal's content, without the datatype or language that may follow.
enum Lexical {
    /// Bytes of the block.
    Plain(usize, usize),
    /// Escapes were resolved into [`LineParser::scratch`].
    Unescaped,
}

/// Parses blocks of lines of one document. Keep one per worker and document: it owns buffers.
pub(crate) struct LineParser<'a> {
    quads: bool,
    labels: &'a LabelScope,
    /// Canonical bytes of the graph of statements that name none; empty for the default graph.
    graph: &'a [u8],
    /// Terms that are not in the block's text; moved behind it at the end.
    extra: Vec<u8>,
    scratch: Vec<u8>,
    datatypes: DatatypeCache,
    /// Length of the block's text: where `extra` will start.
    text_len: usize,
    /// False when some byte of the block is not UTF-8; then each token is checked by itself.
    utf8: bool,
}

impl<'a> LineParser<'a> {
    pub(crate) fn new(quads: bool, labels: &'a LabelScope, graph: &'a [u8]) -> Self {
        Self {
            quads,
            labels,
            graph,
            extra: Vec::new(),
            scratch: Vec::new(),
            datatypes: DatatypeCache::default(),
            text_len: 0,
            utf8: true,
        }
    }

    /// Parses the lines in `batch.bytes[begin..]` and fills `batch.quads`. A bad line is given to
    /// `on_error`, with the text; when that returns `Ok` the line is skipped.
    pub(crate) fn parse(
        &mut self,
        batch: &mut QuadBatch,
        begin: usize,
        on_error: &mut dyn FnMut(&[u8], LineError) -> Result<()>,
    ) -> Result<()> {
        if batch.bytes.last().is_some_and(|b| *b != b'\n') {
            batch.bytes.push(b'\n');
        }
        self.utf8 = std::str::from_utf8(batch.bytes.get(begin..).unwrap_or_default()).is_ok();
        self.text_len = batch.bytes.len();
        self.extra.clear();
        batch.quads.clear();
        let graph = self.store_graph();
        self.statements(&batch.bytes, begin, graph, &mut batch.quads, on_error)?;
        batch.bytes.append(&mut self.extra);
        Ok(())
    }

    fn store_graph(&mut self) -> Span {
        if self.graph.is_empty() {
            return Span::default();
        }
        let from = self.extra.len();
        self.extra.extend_from_slice(self.graph);
        self.extra_span(from)
    }

    fn statements(
        &mut self,
        text: &[u8],
        begin: usize,
        graph: Span,
        quads: &mut Vec<[Span; 4]>,
        on_error: &mut dyn FnMut(&[u8], LineError) -> Result<()>,
    ) -> Result<()> {
        let mut at = begin;
        let mut subject = Span::default();
        let mut subject_text = 0..0;
        loop {
            while let Some(b' ' | b'\t' | b'\n' | b'\r') = text.get(at) {
                at += 1;
            }
            let Some(&first) = text.get(at) else {
                return Ok(());
            };
            if first == b'#' {
                at = line_end(text, at);
                continue;
            }
            let extra_len = self.extra.len();
            // An IRI's text ends with `>`, so equal text is the equal term, whatever follows.
            let known =
                !subject_text.is_empty() && text[at..].starts_with(&text[subject_text.clone()]);
            let parsed = if known {
                self.after_subject(text, at + subject_text.len(), subject, graph)
            } else {
                self.subject(text, at).and_then(|(s, end)| {
                    subject = s;
                    subject_text = if first == b'<' { at..end } else { 0..0 };
                    self.after_subject(text, end, s, graph)
                })
            };
            match parsed {
                Ok((quad, end)) => {
                    quads.push(quad);
                    at = end;
                }
                Err(e) => {
                    self.extra.truncate(extra_len);
                    subject_text = 0..0;
                    on_error(text, e)?;
                    at = line_end(text, at);
                }
            }
        }
    }

    /// Predicate, object, graph, dot and line end.
    #[inline]
    fn after_subject(
        &mut self,
        text: &[u8],
        at: usize,
        subject: Span,
        graph: Span,
    ) -> Result<([Span; 4], usize), LineError> {
        let (predicate, at) = self.predicate(text, blanks(text, at))?;
        let (object, at) = self.object(text, blanks(text, at), 0)?;
        let mut at = blanks(text, at);
        let mut quad = [subject, predicate, object, graph];
        if text.get(at) != Some(&b'.') {
            (quad[3], at) = self.graph_name(text, at)?;
            at = blanks(text, at);
            if text.get(at) != Some(&b'.') {
                return fail(
                    at,
                    format!(
                        "found {}, expected `.` at the end of the statement",
                        found(text, at)
                    ),
                );
            }
        }
        at = blanks(text, at + 1);
        match text.get(at) {
            Some(b'\n' | b'\r' | b'#') | None => Ok((quad, at)),
            Some(_) => fail(
                at,
                format!(
                    "found {} after the `.`, expected the end of the line: one statement a line",
                    found(text, at)
                ),
            ),
        }
    }

    fn subject(&mut self, text: &[u8], at: usize) -> Result<(Span, usize), LineError> {
        match text.get(at) {
            Some(b'<') => self.iri(text, at),
            Some(b'_') => self.blank(text, at),
            _ => fail(
                at,
                format!(
                    "found {}, expected a subject: an IRI in `<…>` or a blank node `_:label`",
                    found(text, at)
                ),
            ),
        }
    }

    #[inline]
    fn predicate(&mut self, text: &[u8], at: usize) -> Result<(Span, usize), LineError> {
        if text.get(at) == Some(&b'<') {
            return self.iri(text, at);
        }
        fail(
            at,
            format!(
                "found {}, expected a predicate: an IRI in `<…>`",
                found(text, at)
            ),
        )
    }

    #[inline]
    fn object(&mut self, text: &[u8], at: usize, depth: usize) -> Result<(Span, usize), LineError> {
        match text.get(at) {
            Some(b'<') if text[at..].starts_with(b"<<(") => self.triple_term(text, at, depth),
            Some(b'<') => self.iri(text, at),
            Some(b'"') => self.literal(text, at),
            Some(b'_') => self.blank(text, at),
            _ => fail(
                at,
                format!(
                    "found {}, expected an object: an IRI in `<…>`, a blank node `_:label`, a literal in \"…\" or a triple term `<<( … )>>`",
                    found(text, at)
                ),
            ),
        }
    }

    fn graph_name(&mut self, text: &[u8], at: usize) -> Result<(Span, usize), LineError> {
        match text.get(at) {
            Some(b'<') if self.quads => self.iri(text, at),
            Some(b'_') if self.quads => self.blank(text, at),
            _ if self.quads => fail(
                at,
                format!(
                    "found {}, expected a graph name or `.` at the end of the statement",
                    found(text, at)
                ),
            ),
            _ => fail(
                at,
                format!(
                    "found {}, expected `.` at the end of the statement",
                    found(text, at)
                ),
            ),
        }
    }

    fn triple_term(
        &mut self,
        text: &[u8],
        at: usize,
        depth: usize,
    ) -> Result<(Span, usize), LineError> {
        if depth >= MAX_NESTING {
            return fail(
                at,
                format!("triple terms nest too deep, expected at most {MAX_NESTING} levels"),
            );
        }
        let (s, next) = self.subject(text, blanks(text, at + 3))?;
        let (p, next) = self.predicate(text, blanks(text, next))?;
        let (o, next) = self.object(text, blanks(text, next), depth + 1)?;
        let next = blanks(text, next);
        if !text[next..].starts_with(b")>>") {
            return fail(
                next,
                format!(
                    "found {}, expected `)>>` at the end of the triple term",
                    found(text, next)
                ),
            );
        }
        let from = self.extra.len();
        self.extra.push(term::TRIPLE);
        for part in [s, p, o] {
            self.extra.extend_from_slice(&part.len.to_le_bytes());
            let (start, len) = (part.start as usize, part.len as usize);
            if start < self.text_len {
                self.extra.extend_from_slice(&text[start..start + len]);
            } else {
                let start = start - self.text_len;
                self.extra.extend_from_within(start..start + len);
            }
        }
        Ok((self.extra_span(from), next + 3))
    }

    #[inline]
    fn iri(&mut self, text: &[u8], at: usize) -> Result<(Span, usize), LineError> {
        match chars::plain_iri(&text[at + 1..]) {
            Some(len) => Ok((span(at, len + 1), at + len + 2)),
            None => self.any_iri(text, at),
        }
    }

    /// An IRI that needs the full check.
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

    fn blank(&mut self, text: &[u8], at: usize) -> Result<(Span, usize), LineError> {
        if text.get(at + 1) != Some(&b':') {
            return fail(at, "found `_` without `:`, expected a blank node `_:label`");
        }
        let from = at + 2;
        let mut i = from;
        loop {
            // A label does not start with a dot or a hyphen, the rest of ASCII is one class.
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
            return fail(
                from,
                format!(
                    "found {}, expected a blank node label after `_:`",
                    found(text, from)
                ),
            );
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
    fn literal(&mut self, text: &[u8], at: usize) -> Result<(Span, usize), LineError> {
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

    /// The text between the quotes; returns the position behind the closing one.
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

    /// `@en`, `@en-GB`, `@he--rtl`; `at` is the at sign.
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
            return fail(
                from,
                format!(
                    "found {}, expected a language tag that starts with a letter",
                    found(text, from)
                ),
            );
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
            // The tag is ASCII by construction.
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

    /// `^^<datatype>`; `at` is the first caret.
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
            return fail(
                iri_at,
                format!(
                    "found {}, expected a datatype IRI in `<…>`",
                    found(text, iri_at)
                ),
            );
        }
        if let Some((len, prefix)) = self.datatypes.find(&text[iri_at..]) {
            let start = self.extra.len();
            self.extra.extend_from_slice(prefix);
            self.push_lexical(text, lexical);
            return Ok((self.extra_span(start), iri_at + len));
        }
        // Escapes in the literal are in `scratch`, which an escaped datatype IRI needs as well.
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

    #[inline]
    fn extra_span(&self, from: usize) -> Span {
        span(self.text_len + from, self.extra.len() - from)
    }
}

/// The last few datatypes: their text in the line, and the bytes that start a canonical literal.
#[derive(Default)]
struct DatatypeCache {
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

#[inline]
fn span(start: usize, len: usize) -> Span {
    Span {
        start: start as u32,
        len: len as u32,
    }
}

/// The position behind spaces and tabs.
#[inline(always)]
fn blanks(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t') = text.get(at) {
        at += 1;
    }
    at
}

/// The next line feed or carriage return, or the end.
fn line_end(text: &[u8], at: usize) -> usize {
    memchr::memchr2(b'\n', b'\r', &text[at..]).map_or(text.len(), |n| at + n)
}

#[cold]
fn check_utf8(text: &[u8], from: usize, to: usize) -> Result<(), LineError> {
    match std::str::from_utf8(&text[from..to]) {
        Ok(_) => Ok(()),
        Err(e) => fail(
            from + e.valid_up_to(),
            "bytes that are not UTF-8, expected UTF-8 text",
        ),
    }
}

/// The character at the start of `bytes`, if it is UTF-8.
fn decode_char(bytes: &[u8]) -> Option<char> {
    let head = &bytes[..bytes.len().min(4)];
    match std::str::from_utf8(head) {
        Ok(s) => s.chars().next(),
        Err(e) => std::str::from_utf8(&head[..e.valid_up_to()])
            .ok()?
            .chars()
            .next(),
    }
}

/// Resolves the escape at the backslash `at` into `out`; returns the position behind it.
fn unescape(
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

/// What stands at a position, for a message.
fn found(text: &[u8], at: usize) -> String {
    match text.get(at) {
        None | Some(b'\n' | b'\r') => "the end of the line".into(),
        Some(b) if b.is_ascii_graphic() => format!("`{}`", char::from(*b)),
        Some(_) => match decode_char(&text[at..]) {
            Some(c) => format!("`{}`", c.escape_debug()),
            None => "a byte that is not UTF-8".into(),
        },
    }
}

/// At most 80 characters of a long token.
fn shorten(s: &str) -> String {
    if s.chars().count() <= 80 {
        s.to_owned()
    } else {
        s.chars().take(80).chain(['…']).collect()
    }
}
