//! Errors with their positions, and the statements that a lenient load skipped.

use jindou_model::sync;
use jindou_model::{Error, Location};
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of skipped statements of which the details are kept.
const REMEMBERED: usize = 10;
/// Number of characters of a message that are kept, since it may quote a term of megabytes.
const LONGEST: usize = 1000;
/// Number of characters of an excerpt on each side of the error's position.
const AROUND: usize = 60;

/// Choice between reading a file again for the line number of an error, and omitting an unknown number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineNumbers {
    Wanted,
    IfKnown,
}

/// A statement that a lenient load skipped, or that stopped a strict one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadStatement {
    /// Position of the error.
    pub at: Location,
    /// Description of the error, and of the expected syntax.
    pub message: String,
    /// The line of the error, shortened to about 120 characters around its position; `None` if it is not known.
    pub text: Option<String>,
}

impl BadStatement {
    /// A bad statement that another process reported.
    pub fn new(at: Location, message: String, text: Option<String>) -> Self {
        Self { at, message, text }
    }

    /// A bad statement, given the bytes of its line and the byte position in it.
    pub(crate) fn in_line(
        file: String,
        line: u64,
        bytes: &[u8],
        at: usize,
        message: String,
    ) -> Self {
        let before = chars(&bytes[..at.min(bytes.len())]);
        let column = before.len();
        let after = chars(&bytes[at.min(bytes.len())..]);
        let skip = column.saturating_sub(AROUND);
        let mut text: String = if skip > 0 {
            "…".into()
        } else {
            String::new()
        };
        text.extend(&before[skip..]);
        text.extend(after.iter().take(AROUND));
        if after.len() > AROUND {
            text.push('…');
        }
        let at = Location {
            file,
            line,
            column: column as u64 + 1,
        };
        Self {
            at,
            message,
            text: (!text.trim().is_empty()).then_some(text),
        }
    }
}

/// Characters of a part of a line. The caller shows only the end of a long part, but needs all characters for the
/// column.
fn chars(bytes: &[u8]) -> Vec<char> {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|c| {
            if c.is_control() && c != '\t' {
                '\u{FFFD}'
            } else {
                c
            }
        })
        .collect()
}

impl From<BadStatement> for Error {
    fn from(bad: BadStatement) -> Self {
        Self::Syntax {
            at: bad.at,
            message: bad.message,
            text: bad.text,
        }
    }
}

impl std::fmt::Display for BadStatement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.at, self.message)?;
        match &self.text {
            Some(text) => write!(f, "\n    in: {text}"),
            None => Ok(()),
        }
    }
}

/// Unread parts of documents that a lenient load had to abandon at an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// Number of documents.
    pub documents: u64,
    /// Decompressed bytes after the errors.
    pub bytes: u64,
    /// For documents in RDF/XML, the number of elements that begin in those bytes, each of which is a node or a
    /// property.
    pub elements: u64,
}

/// Report on the statements that a lenient load skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkipReport {
    /// Number of bad statements.
    pub statements: u64,
    /// The first ten bad statements, in the order of the input.
    pub first: Vec<BadStatement>,
    /// Unread parts of abandoned documents.
    pub rest: Rest,
}

impl SkipReport {
    /// Adds the report of a later run.
    pub fn add(&mut self, later: Self) {
        self.statements += later.statements;
        self.first.extend(later.first);
        self.first.truncate(REMEMBERED);
        self.rest.documents += later.rest.documents;
        self.rest.bytes += later.rest.bytes;
        self.rest.elements += later.rest.elements;
    }
}

/// The statements that were skipped so far.
#[derive(Default)]
pub(crate) struct Skipped {
    total: AtomicU64,
    first: Mutex<Vec<(u64, u64, BadStatement)>>,
    rest: Mutex<Rest>,
    /// Where all skipped statements are written when they occur, if anywhere.
    all: Mutex<Option<Box<dyn Write + Send>>>,
}

impl Skipped {
    /// Records a skipped statement, at a byte offset of a document. Calls `describe` only if it is among the first ten,
    /// or if all are written. In the latter case the line number is omitted if it could only be found by reading the
    /// file again for each statement.
    pub(crate) fn add(
        &self,
        document: u64,
        offset: u64,
        describe: impl Fn(LineNumbers) -> Result<BadStatement, Error>,
    ) -> Result<(), Error> {
        self.total.fetch_add(1, Ordering::Relaxed);
        let mut all = sync::lock(&self.all);
        if let Some(out) = &mut *all {
            let bad = describe(LineNumbers::IfKnown)?;
            let written = match bad.at.line {
                0 if offset != u64::MAX => {
                    let BadStatement { at, message, text } = &bad;
                    let text = text.as_ref().map(|t| format!("\n    in: {t}"));
                    writeln!(
                        out,
                        "{}, byte {offset}: {message}{}",
                        at.file,
                        text.unwrap_or_default()
                    )
                }
                _ => writeln!(out, "{bad}"),
            };
            written.map_err(|e| Error::io("the error file", e))?;
        }
        drop(all);
        let mut first = sync::lock(&self.first);
        let at = first.partition_point(|(d, o, _)| (*d, *o) <= (document, offset));
        if at < REMEMBERED {
            let mut bad = describe(LineNumbers::Wanted)?;
            if let Some((end, _)) = bad.message.char_indices().nth(LONGEST) {
                bad.message.truncate(end);
                bad.message.push('…');
                bad.message.shrink_to_fit();
            }
            first.insert(at, (document, offset, bad));
            first.truncate(REMEMBERED);
        }
        Ok(())
    }

    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    pub(crate) fn first(&self) -> Vec<BadStatement> {
        let first = sync::lock(&self.first);
        first.iter().map(|(_, _, bad)| bad.clone()).collect()
    }

    /// Records what was left unread of an abandoned document.
    pub(crate) fn add_rest(&self, bytes: u64, elements: u64) {
        let mut rest = sync::lock(&self.rest);
        rest.documents += 1;
        rest.bytes += bytes;
        rest.elements += elements;
    }

    pub(crate) fn rest(&self) -> Rest {
        *sync::lock(&self.rest)
    }

    /// Writes all skipped statements from now on to `out`.
    pub(crate) fn write_to(&self, out: Box<dyn Write + Send>) {
        *sync::lock(&self.all) = Some(out);
    }

    /// Ends the writing started by [`Self::write_to`].
    pub(crate) fn flush(&self) -> std::io::Result<()> {
        match sync::lock(&self.all).take() {
            Some(mut out) => out.flush(),
            None => Ok(()),
        }
    }

    pub(crate) fn clear(&self) {
        self.total.store(0, Ordering::Relaxed);
        *sync::lock(&self.rest) = Rest::default();
        sync::lock(&self.first).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_long_lines_are_cut() {
        let bad = BadStatement::in_line("f".into(), 3, "aé<b".as_bytes(), 3, "m".into());
        assert_eq!(
            (bad.at.line, bad.at.column, bad.text.as_deref()),
            (3, 3, Some("aé<b"))
        );
        let long = "x".repeat(500);
        let bad = BadStatement::in_line("f".into(), 1, long.as_bytes(), 250, "m".into());
        assert_eq!(bad.at.column, 251);
        assert_eq!(bad.text.unwrap().chars().count(), 122);
    }

    #[test]
    fn the_first_in_input_order_are_kept() {
        let skipped = Skipped::default();
        for i in (0..50u64).rev() {
            let bad = BadStatement::in_line("f".into(), i, b"x", 0, "m".into());
            skipped.add(0, i, |_| Ok(bad.clone())).unwrap();
        }
        assert_eq!(skipped.total(), 50);
        assert_eq!(
            skipped
                .first()
                .iter()
                .map(|b| b.at.line)
                .collect::<Vec<_>>(),
            (0..10).collect::<Vec<_>>()
        );
    }
}
