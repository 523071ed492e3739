//! Writing of text and attribute values so that every XML processor reads them back unchanged.

use crate::xml::chars::is_char;
use std::io::{self, Write};
use thiserror::Error;

/// A character that XML 1.0 cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("XML cannot express the character U+{:04X}", u32::from(*.0))]
pub struct Inexpressible(pub char);

/// Appends text of an element. Writes `&`, `<`, `>` and carriage returns as references; readers would convert the
/// latter to line feeds.
///
/// # Errors
/// Fails if a character is not allowed in XML. Text before it may have been appended.
pub fn push_text(text: &str, out: &mut String) -> Result<(), Inexpressible> {
    escape(text, out, |c| match c {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '\r' => Some("&#xD;"),
        _ => None,
    })
}

/// Appends the value of an attribute, for either kind of quotation marks. Writes white space other than blanks as
/// references, since readers would convert it to blanks.
///
/// # Errors
/// As [`push_text`].
pub fn push_value(text: &str, out: &mut String) -> Result<(), Inexpressible> {
    escape(text, out, |c| match c {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '"' => Some("&quot;"),
        '\'' => Some("&#39;"),
        '\t' => Some("&#x9;"),
        '\n' => Some("&#xA;"),
        '\r' => Some("&#xD;"),
        _ => None,
    })
}

/// The first character of a text that XML does not allow.
#[must_use]
pub fn inexpressible(text: &str) -> Option<Inexpressible> {
    let at = crate::xml::chars::first_illegal(text)?;
    text.get(at..)?.chars().next().map(Inexpressible)
}

/// A writer that replaces carriage returns by references, since readers would convert them to line feeds. For use below
/// XML writers that do not do this themselves, and for documents that have carriage returns only in text and attribute
/// values.
#[derive(Debug)]
pub struct Returns<W> {
    inner: W,
    /// False to write everything unchanged.
    is_on: bool,
}

impl<W: Write> Returns<W> {
    /// Wraps `inner`. Replaces carriage returns only if `is_on`.
    pub const fn new(inner: W, is_on: bool) -> Self {
        Self { inner, is_on }
    }

    /// The wrapped writer.
    pub fn into_inner(self) -> W {
        self.inner
    }
}

impl<W: Write> Write for Returns<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_on {
            return self.inner.write(bytes);
        }
        match memchr::memchr(b'\r', bytes) {
            Some(0) => {
                self.inner.write_all(b"&#xD;")?;
                Ok(1)
            }
            Some(at) => self.inner.write(bytes.get(..at).unwrap_or_default()),
            None => self.inner.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn escape(
    text: &str,
    out: &mut String,
    reference: impl Fn(char) -> Option<&'static str>,
) -> Result<(), Inexpressible> {
    let mut from = 0;
    for (at, c) in text.char_indices() {
        if !is_char(c) {
            return Err(Inexpressible(c));
        }
        if let Some(reference) = reference(c) {
            out.push_str(text.get(from..at).unwrap_or_default());
            out.push_str(reference);
            from = at + c.len_utf8();
        }
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::{Event, Reader, ReaderOptions};

    #[test]
    fn what_is_written_is_read_back() {
        let all = [
            "plain",
            " <a> & ]]> \"'\" ",
            "a\rb\r\nc\n\td",
            "\u{85}\u{2028}é\u{FFFD}𝄞",
            "",
        ];
        for text in all {
            let (mut inside, mut value) = (String::new(), String::new());
            push_text(text, &mut inside).unwrap();
            push_value(text, &mut value).unwrap();
            for quote in ['"', '\''] {
                let document = format!("<a b={quote}{value}{quote}>{inside}</a>");
                let mut reader =
                    Reader::new(document.as_bytes(), ReaderOptions::default()).unwrap();
                let mut read = String::new();
                loop {
                    match reader.next_event().unwrap() {
                        Event::Start(start) => {
                            assert_eq!(start.attributes().next().unwrap().value, text);
                        }
                        Event::Text(piece) => read.push_str(piece),
                        Event::Eof => break,
                        _ => {}
                    }
                }
                assert_eq!(read, text);
            }
        }
        for bad in ["\u{0}", "a\u{1F}", "\u{FFFE}", "é\u{FFFF}"] {
            let c = bad.chars().last().unwrap();
            assert_eq!(push_text(bad, &mut String::new()), Err(Inexpressible(c)));
            assert_eq!(push_value(bad, &mut String::new()), Err(Inexpressible(c)));
            assert_eq!(inexpressible(bad), Some(Inexpressible(c)));
        }
    }

    #[test]
    fn carriage_returns_become_references() {
        for (is_on, expected) in [(true, "a&#xD;\n&#xD;&#xD;b"), (false, "a\r\n\r\rb")] {
            let mut writer = Returns::new(Vec::new(), is_on);
            writer.write_all(b"a\r\n\r").unwrap();
            writer.write_all(b"\rb").unwrap();
            assert_eq!(writer.into_inner(), expected.as_bytes());
        }
    }
}
