//! Writes batches as N-Triples or, if a quad has a graph, N-Quads: one statement per line, in the canonical layout (one
//! space between terms, only necessary escapes), in UTF-8.

use jindou_model::term::{
    BLANK, DATATYPES, FIRST_DATATYPE, IRI, LANG, STRING, TRIPLE, TYPED, parts,
};
use jindou_model::{Error, Progress, QuadBatch, QuadSink, QuadSource, Result};
use std::io::Write;

const XSD: &[u8] = b"http://www.w3.org/2001/XMLSchema#";

/// The case of language tags in the output. Their meaning does not depend on it. Canonical bytes contain them in lower
/// case, while real files often do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TagCase {
    /// Lower case, as in canonical bytes.
    #[default]
    Lower,
    /// `en-us`, `en-US` or `EN-US`, chosen by the literal's text, so that the output is repeatable.
    Mixed,
}

/// Appends all quads of a batch, one per line. O(bytes).
///
/// # Errors
/// [`Error::Internal`] if a span does not contain canonical bytes; `out` may then end in an incomplete line.
pub fn write_batch(batch: &QuadBatch, out: &mut Vec<u8>) -> Result<()> {
    write_batch_as(batch, TagCase::Lower, out)
}

/// As [`write_batch`], with a choice of the case of language tags.
///
/// # Errors
/// As [`write_batch`].
pub fn write_batch_as(batch: &QuadBatch, tags: TagCase, out: &mut Vec<u8>) -> Result<()> {
    for [s, p, o, g] in &batch.quads {
        for span in [s, p, o] {
            write_term(batch.term(*span), tags, out)?;
            out.push(b' ');
        }
        if g.len > 0 {
            write_term(batch.term(*g), tags, out)?;
            out.push(b' ');
        }
        out.extend_from_slice(b".\n");
    }
    Ok(())
}

/// Appends a term, given its canonical bytes, in the form of N-Triples and SPARQL.
///
/// # Errors
/// [`Error::Internal`] if the bytes are not canonical, or contain triple terms nested more than 64 deep, which no
/// parser produces.
pub fn write_term(canonical: &[u8], tags: TagCase, out: &mut Vec<u8>) -> Result<()> {
    write_nested(canonical, tags, 64, out)
}

fn write_nested(canonical: &[u8], tags: TagCase, deeper: u32, out: &mut Vec<u8>) -> Result<()> {
    let (&tag, text) = canonical.split_first().ok_or_else(damaged)?;
    match tag {
        IRI => write_iri(text, out),
        BLANK => out.extend_from_slice(canonical),
        STRING => write_string(text, out),
        LANG => {
            let (lang, lexical) = split(text)?;
            write_string(lexical, out);
            out.push(b'@');
            write_tag(lang, lexical, tags, out);
        }
        TYPED => {
            let (datatype, lexical) = split(text)?;
            write_string(lexical, out);
            out.extend_from_slice(b"^^");
            write_iri(datatype, out);
        }
        TRIPLE => {
            let Some(jindou_model::term::Parts::Triple(inner)) = parts(canonical) else {
                return Err(damaged());
            };
            out.extend_from_slice(b"<<( ");
            for part in inner {
                write_nested(part, tags, deeper.checked_sub(1).ok_or_else(damaged)?, out)?;
                out.push(b' ');
            }
            out.extend_from_slice(b")>>");
        }
        code => {
            let at = code.checked_sub(FIRST_DATATYPE).ok_or_else(damaged)?;
            let datatype = DATATYPES.get(usize::from(at)).ok_or_else(damaged)?;
            write_string(text, out);
            out.extend_from_slice(b"^^<");
            out.extend_from_slice(XSD);
            out.extend_from_slice(datatype.as_bytes());
            out.push(b'>');
        }
    }
    Ok(())
}

fn damaged() -> Error {
    Error::Internal("a batch holds bytes that are not a term".into())
}

/// Splits at the first 0 byte.
fn split(text: &[u8]) -> Result<(&[u8], &[u8])> {
    let at = text.iter().position(|b| *b == 0).ok_or_else(damaged)?;
    Ok((&text[..at], &text[at + 1..]))
}

fn write_iri(text: &[u8], out: &mut Vec<u8>) {
    let escaped = |b: u8| {
        b <= b' '
            || matches!(
                b,
                b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`' | b'\\'
            )
    };
    out.push(b'<');
    // The loop does not stop early: without branches, it is faster for the usual 50 bytes.
    if text.iter().fold(false, |any, &b| any | escaped(b)) {
        for &b in text {
            if escaped(b) {
                write_code(b, out)
            } else {
                out.push(b)
            }
        }
    } else {
        out.extend_from_slice(text);
    }
    out.push(b'>');
}

fn write_string(text: &[u8], out: &mut Vec<u8>) {
    let escaped = |b: u8| (b < b' ') | (b == b'"') | (b == b'\\') | (b == 0x7F);
    out.push(b'"');
    if text.iter().fold(false, |any, &b| any | escaped(b)) {
        for &b in text {
            let short = match b {
                0x08 => b'b',
                b'\t' => b't',
                b'\n' => b'n',
                0x0C => b'f',
                b'\r' => b'r',
                b'"' | b'\\' => b,
                _ if escaped(b) => {
                    write_code(b, out);
                    continue;
                }
                _ => {
                    out.push(b);
                    continue;
                }
            };
            out.extend_from_slice(&[b'\\', short]);
        }
    } else {
        out.extend_from_slice(text);
    }
    out.push(b'"');
}

/// Appends the escape `\u00XX`.
fn write_code(b: u8, out: &mut Vec<u8>) {
    let hex = |n: u8| b"0123456789ABCDEF"[usize::from(n & 15)];
    out.extend_from_slice(&[b'\\', b'u', b'0', b'0', hex(b >> 4), hex(b)]);
}

fn write_tag(tag: &[u8], lexical: &[u8], case: TagCase, out: &mut Vec<u8>) {
    // A base direction, unlike the tag, must be in lower case.
    let end = tag.windows(2).position(|w| w == b"--").unwrap_or(tag.len());
    let (tag, direction) = tag.split_at(end);
    let style = match case {
        TagCase::Lower => 0,
        TagCase::Mixed => {
            lexical
                .iter()
                .fold(0u8, |h, b| h.wrapping_mul(31).wrapping_add(*b))
                % 5
        }
    };
    match style {
        // The case that BCP 47 recommends: scripts as in `Hant`, regions as in `US`.
        1 | 2 => {
            for (i, part) in tag.split(|b| *b == b'-').enumerate() {
                if i > 0 {
                    out.push(b'-');
                }
                let upper = match part.len() {
                    _ if i == 0 => 0,
                    2 => 2,
                    4 => 1,
                    _ => 0,
                };
                out.extend(part[..upper].iter().map(u8::to_ascii_uppercase));
                out.extend_from_slice(&part[upper..]);
            }
        }
        3 => out.extend(tag.iter().map(u8::to_ascii_uppercase)),
        _ => out.extend_from_slice(tag),
    }
    out.extend_from_slice(direction);
}

struct TextSink<'a> {
    out: &'a mut dyn Write,
    tags: TagCase,
    buffer: Vec<u8>,
}

impl QuadSink for TextSink<'_> {
    fn batch(&mut self, batch: &QuadBatch) -> Result<()> {
        self.buffer.clear();
        write_batch_as(batch, self.tags, &mut self.buffer)?;
        self.out.write_all(&self.buffer).map_err(output_error)
    }
}

fn output_error(e: std::io::Error) -> Error {
    if e.kind() == std::io::ErrorKind::BrokenPipe {
        Error::SinkClosed
    } else {
        Error::io("<output>", e)
    }
}

/// Writes all quads of a source, on the calling thread, and flushes `out`. Returns the number of statements. Needs
/// memory for one batch and its text.
///
/// # Errors
/// Errors of the source; [`Error::SinkClosed`] if `out` is a pipe whose reader has closed it; [`Error::Io`] if writing
/// fails.
pub fn write_source(source: &dyn QuadSource, tags: TagCase, out: &mut dyn Write) -> Result<u64> {
    let progress = Progress::default();
    let mut sink = TextSink {
        out,
        tags,
        buffer: vec![],
    };
    source.run(0, 1, &mut sink, &progress)?;
    sink.out.flush().map_err(output_error)?;
    Ok(progress.quads.into_inner())
}
