//! The tokeniser of N-Triples and N-Quads (1.1, and 1.2's triple terms and base directions).
//!
//! Works on a block of whole lines, and copies nothing that already has canonical form: an IRI or a plain literal is a
//! span of the block. Accepts and produces the same as `oxttl` (tests compare the two on valid, broken and mutated
//! input), with one more limit: triple terms are nested at most [`MAX_NESTING`] deep.

mod terms;
mod text;

use crate::labels::LabelScope;
use jindou_model::term;
use jindou_model::{QuadBatch, Result, Span};
use terms::DatatypeCache;
pub(crate) use text::LineError;
use text::{blanks, fail, found, line_end, span, unexpected};

/// Deepest nesting of triple terms in a document.
pub(crate) const MAX_NESTING: usize = term::MAX_TRIPLE_NESTING;

/// Parses blocks of lines of one document. A worker uses one for all blocks of a document, since it owns buffers.
pub(crate) struct LineParser<'a> {
    quads: bool,
    labels: &'a LabelScope,
    /// Canonical bytes of the graph for statements that name none; empty for the default graph.
    graph: &'a [u8],
    /// Terms that are not spans of the block's text. They are appended to the text at the end.
    extra: Vec<u8>,
    scratch: Vec<u8>,
    datatypes: DatatypeCache,
    /// Length of the block's text, after which `extra` will be.
    text_len: usize,
    /// False if some byte of the block is not UTF-8. Then each token is checked separately.
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

    /// Parses the lines in `batch.bytes[begin..]` and fills `batch.quads`. Passes the text and the error of a bad line
    /// to `on_error`; if that returns `Ok`, the line is skipped.
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
            // The text of an IRI ends with `>`, so equal text is an equal term whatever follows, and the subject's span
            // is reused.
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

    /// Parses what follows the subject: predicate, object, graph, dot and line end.
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
                return unexpected(text, at, "`.` at the end of the statement");
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
            _ => unexpected(
                text,
                at,
                "a subject: an IRI in `<…>` or a blank node `_:label`",
            ),
        }
    }

    #[inline]
    fn predicate(&mut self, text: &[u8], at: usize) -> Result<(Span, usize), LineError> {
        if text.get(at) == Some(&b'<') {
            return self.iri(text, at);
        }
        unexpected(text, at, "a predicate: an IRI in `<…>`")
    }

    #[inline]
    fn object(&mut self, text: &[u8], at: usize, depth: usize) -> Result<(Span, usize), LineError> {
        match text.get(at) {
            Some(b'<') if text[at..].starts_with(b"<<(") => self.triple_term(text, at, depth),
            Some(b'<') => self.iri(text, at),
            Some(b'"') => self.literal(text, at),
            Some(b'_') => self.blank(text, at),
            _ => unexpected(
                text,
                at,
                "an object: an IRI in `<…>`, a blank node `_:label`, a literal in \"…\" or a triple term `<<( … )>>`",
            ),
        }
    }

    fn graph_name(&mut self, text: &[u8], at: usize) -> Result<(Span, usize), LineError> {
        match text.get(at) {
            Some(b'<') if self.quads => self.iri(text, at),
            Some(b'_') if self.quads => self.blank(text, at),
            _ if self.quads => {
                unexpected(text, at, "a graph name or `.` at the end of the statement")
            }
            _ => unexpected(text, at, "`.` at the end of the statement"),
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
                format!(
                    "triple terms are nested too deeply, expected at most {MAX_NESTING} levels"
                ),
            );
        }
        let (s, next) = self.subject(text, blanks(text, at + 3))?;
        let (p, next) = self.predicate(text, blanks(text, next))?;
        let (o, next) = self.object(text, blanks(text, next), depth + 1)?;
        let next = blanks(text, next);
        if !text[next..].starts_with(b")>>") {
            return unexpected(text, next, "`)>>` at the end of the triple term");
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
    fn extra_span(&self, from: usize) -> Span {
        span(self.text_len + from, self.extra.len() - from)
    }
}
