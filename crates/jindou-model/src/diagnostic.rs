//! Errors in the text of a query or an update, with position, reason and suggested remedies, for people and for
//! editors.

use crate::scope;
use serde::Serialize;
use std::fmt;
use std::ops::Range;

/// Kind of an error, for programs that handle it; the message is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DiagnosticKind {
    /// A token that is not allowed at this position.
    Unexpected,
    /// A character or an escape that is not part of SPARQL.
    Character,
    /// A word that is not a keyword.
    UnknownWord,
    /// A bracket without its partner.
    Bracket,
    /// A string without an end.
    String,
    /// A prefix that is not declared.
    UnknownPrefix,
    /// Text between `<` and `>`, or a prefixed name, that is not a valid IRI.
    Iri,
    /// An invalid language tag.
    Language,
    /// An update in place of a query.
    UpdateNotQuery,
    /// A query in place of an update.
    QueryNotUpdate,
    /// An empty text, or only a prologue.
    Empty,
    /// Triples without a dot between them.
    MissingDot,
    /// Clauses in an order that SPARQL does not allow.
    Order,
    /// A variable of a grouped query that is neither grouped nor aggregated.
    NotGrouped,
    /// An aggregate where none is allowed.
    Aggregate,
    /// A variable that is assigned twice.
    Redefined,
    /// A label of a blank node in two scopes, or where none is allowed.
    BlankNode,
    /// A row of VALUES with too many or too few values, or a repeated variable.
    Values,
    /// A call with too many or too few arguments.
    Arguments,
    /// A variable where only constants are allowed.
    NotConstant,
    /// A number out of range.
    Number,
    /// A call of an unknown function or with a wrong number of arguments: valid SPARQL, but the query cannot run.
    Function,
    /// Another construct that SPARQL does not have, or does not allow here.
    NotSparql,
}

/// A suggested remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Suggestion {
    /// The remedy as a sentence.
    pub text: String,
    /// The change of the text that the remedy consists of; `None` if it is only described.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replacement: Option<Replacement>,
}

impl Suggestion {
    /// A remedy that is only described.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            replacement: None,
        }
    }

    /// Adds the change of the text: the bytes in `range` are replaced by `with`.
    #[must_use]
    pub fn replacing(mut self, range: Range<usize>, with: impl Into<String>) -> Self {
        self.replacement = Some(Replacement {
            start: range.start,
            end: range.end,
            with: with.into(),
        });
        self
    }
}

/// A suggested replacement for a range of the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Replacement {
    /// Offset of the first byte to replace.
    pub start: usize,
    /// Offset after the last byte to replace; equal to `start` for an insertion.
    pub end: usize,
    /// The new text.
    pub with: String,
}

/// An error in a text, with its position. Lines and columns count from 1, columns count characters, offsets count bytes
/// from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Kind of the error.
    pub kind: DiagnosticKind,
    /// Description of the error, as a sentence without a full stop.
    pub message: String,
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
    /// Line of the first character.
    pub line: u64,
    /// Column of the first character.
    pub column: u64,
    /// Line of the end.
    pub end_line: u64,
    /// Column after the last character.
    pub end_column: u64,
    /// Description of the token at this position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// Description of the tokens or constructs that would be allowed at this position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Remedies, the likeliest first.
    pub suggestions: Vec<Suggestion>,
    /// The line around the position, and the markers below it.
    #[serde(skip)]
    excerpt: (String, String),
}

/// Largest number of characters of a line in an excerpt.
const WIDTH: usize = 96;
/// Largest number of them before the position.
const BEFORE: usize = 40;

impl Diagnostic {
    /// An error at the bytes in `range`, which is extended to whole characters of `text`. O(length of the text before
    /// them).
    #[must_use]
    pub fn new(
        text: &str,
        range: Range<usize>,
        kind: DiagnosticKind,
        message: impl Into<String>,
    ) -> Self {
        let start = floor(text, range.start);
        let end = floor(text, range.end.max(start));
        let (line, column) = place(text, start);
        let (end_line, end_column) = match line_ends(text, start..end).last() {
            Some(_) => place(text, end),
            None => (line, column + text[start..end].chars().count() as u64),
        };
        Self {
            kind,
            message: message.into(),
            start,
            end,
            line,
            column,
            end_line,
            end_column,
            found: None,
            expected: None,
            suggestions: Vec::new(),
            excerpt: excerpt(text, start, end),
        }
    }

    /// An error that will not be shown, without line, column and excerpt. O(1).
    #[must_use]
    pub fn unplaced(range: Range<usize>, kind: DiagnosticKind, message: impl Into<String>) -> Self {
        Self {
            start: range.start,
            end: range.end,
            ..Self::new("", 0..0, kind, message)
        }
    }

    /// Adds a remedy.
    #[must_use]
    pub fn suggest(mut self, text: impl Into<String>) -> Self {
        self.suggestions.push(Suggestion::new(text));
        self
    }

    /// Adds a remedy that an editor can apply.
    #[must_use]
    pub fn replace(
        mut self,
        text: impl Into<String>,
        range: Range<usize>,
        with: impl Into<String>,
    ) -> Self {
        self.suggestions
            .push(Suggestion::new(text).replacing(range, with));
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, column {}: {}",
            self.line, self.column, self.message
        )?;
        if !self.excerpt.0.trim().is_empty() {
            write!(f, "\n  {}\n  {}", self.excerpt.0, self.excerpt.1)?;
        }
        for s in &self.suggestions {
            write!(f, "\nhelp: {}", s.text)?;
        }
        Ok(())
    }
}

/// All errors that were found in a text, at least one, in the order of their positions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Collects errors in any order.
    #[must_use]
    pub fn new(first: Diagnostic, others: impl IntoIterator<Item = Diagnostic>) -> Self {
        let mut all = vec![first];
        all.extend(others);
        all.sort_by_key(|d| d.start);
        Self(all)
    }

    /// The first error in the text.
    #[must_use]
    pub fn first(&self) -> &Diagnostic {
        &self.0[0]
    }

    /// All errors.
    #[must_use]
    pub fn all(&self) -> &[Diagnostic] {
        &self.0
    }

    /// True if the text is valid SPARQL whose only errors are calls of unknown functions.
    #[must_use]
    pub fn is_sparql(&self) -> bool {
        self.0.iter().all(|d| d.kind == DiagnosticKind::Function)
    }

    /// The headline above all errors, which says that the text is not SPARQL or that it cannot be run.
    #[doc(hidden)]
    #[must_use]
    pub fn headline(&self) -> &'static str {
        if self.is_sparql() {
            "the query cannot be run"
        } else {
            "not valid SPARQL"
        }
    }

    /// A copy of these errors, whose positions are in `longer`, with positions in `text`, which is the end of `longer`.
    #[doc(hidden)]
    #[must_use]
    pub fn moved(&self, text: &str, longer: &str) -> Self {
        let by = longer.len().saturating_sub(text.len());
        let to = |at: usize| at.saturating_sub(by);
        let moved = self.0.iter().map(|d| {
            let mut suggestions = d.suggestions.clone();
            for replacement in suggestions
                .iter_mut()
                .filter_map(|s| s.replacement.as_mut())
            {
                replacement.start = to(replacement.start);
                replacement.end = to(replacement.end);
            }
            Diagnostic {
                found: d.found.clone(),
                expected: d.expected.clone(),
                suggestions,
                ..Diagnostic::new(text, to(d.start)..to(d.end), d.kind, d.message.clone())
            }
        });
        Self(moved.collect())
    }

    /// All errors, mutable.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Diagnostic> {
        self.0.iter_mut()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{d}")?;
        }
        Ok(())
    }
}

/// The last character boundary at or before the offset.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Line and column of a byte, from 1. A line ends with LF, CR LF or CR. O(bytes before it). Line 1, column 1 if the
/// [scope] is over.
#[must_use]
pub fn place(text: &str, at: usize) -> (u64, u64) {
    if scope::is_over() {
        return (1, 1);
    }
    let at = floor(text, at);
    let mut line = 1;
    let mut from = 0;
    for i in line_ends(text, 0..at) {
        line += 1;
        from = i + 1;
    }
    (line, text[from..at].chars().count() as u64 + 1)
}

/// Offsets of the last bytes of the line ends in a range of a text.
fn line_ends(text: &str, range: Range<usize>) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    let from = range.start;
    memchr::memchr2_iter(b'\n', b'\r', &bytes[range])
        .map(move |i| from + i)
        .filter(|&i| bytes[i] == b'\n' || bytes.get(i + 1) != Some(&b'\n'))
}

/// The line at the position, shortened around it, and a second line with markers below the range. Tabs are kept in
/// both, so that the markers are aligned; other control characters, and those that change the direction of writing, are
/// escaped.
fn excerpt(text: &str, start: usize, end: usize) -> (String, String) {
    let bytes = text.as_bytes();
    let from = memchr::memrchr2(b'\n', b'\r', &bytes[..start]).map_or(0, |i| i + 1);
    let to = memchr::memchr2(b'\n', b'\r', &bytes[start..]).map_or(text.len(), |i| start + i);
    let end = end.clamp(start, to);
    let (mut shown, mut marks) = (String::new(), String::new());
    let mut first = start;
    for _ in 0..BEFORE {
        match text[from..first].chars().next_back() {
            Some(c) => first -= c.len_utf8(),
            None => break,
        }
    }
    if first > from {
        shown.push('…');
        marks.push(' ');
    }
    for (n, (i, c)) in text[first..to].char_indices().enumerate() {
        if n == WIDTH {
            shown.push('…');
            break;
        }
        let marked = (start..end).contains(&(first + i));
        let mark = if marked { '^' } else { ' ' };
        let hidden = c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        if c == '\t' {
            shown.push('\t');
            marks.push(if marked { '^' } else { '\t' });
        } else if hidden {
            let escaped = c.escape_unicode().to_string();
            marks.extend(std::iter::repeat_n(mark, escaped.len()));
            shown.push_str(&escaped);
        } else {
            shown.push(c);
            marks.push(mark);
        }
    }
    if !marks.contains('^') {
        // An empty range between two characters, or after the last one.
        let at = text[first..start]
            .chars()
            .fold(usize::from(first > from), |n, c| {
                if c.is_control() && c != '\t' {
                    n + c.escape_unicode().count()
                } else {
                    n + 1
                }
            });
        marks = marks.chars().take(at).collect();
        marks.push('^');
    }
    marks.truncate(marks.trim_end().len());
    (shown, marks)
}

/// The first `most` characters of a text, followed by `…` if there are more.
#[must_use]
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, range: Range<usize>) -> String {
        Diagnostic::new(text, range, DiagnosticKind::Unexpected, "no").to_string()
    }

    #[test]
    fn the_place_is_shown_below_the_line() {
        assert_eq!(
            shown("SELECT *\n\tWHERE { é ?s }\n", 20..22),
            "line 2, column 11: no\n  \tWHERE { é ?s }\n  \t         ^^"
        );
        assert_eq!(shown("ab", 2..2), "line 1, column 3: no\n  ab\n    ^");
        assert_eq!(shown("", 0..0), "line 1, column 1: no");
        assert_eq!(
            shown("a\r\nbc\rde", 7..8),
            "line 3, column 2: no\n  de\n   ^"
        );
    }

    #[test]
    fn long_lines_are_shortened_and_control_characters_escaped() {
        let long = format!("{}X{}", "a".repeat(1000), "b".repeat(1000));
        let s = shown(&long, 1000..1001);
        let lines: Vec<_> = s.lines().collect();
        assert!(lines[1].chars().count() < 110, "{s}");
        assert_eq!(
            lines[1].find('X').map(|b| lines[1][..b].chars().count()),
            lines[2].find('^')
        );
        let s = shown("a\u{1b}[31m\u{202e}b", 9..10);
        assert!(s.contains("a\\u{1b}[31m\\u{202e}b"), "{s}");
        assert!(!s.contains('\u{1b}'));
        let lines: Vec<_> = s.lines().collect();
        assert_eq!(lines[1].rfind('b'), lines[2].find('^'), "{s}");
    }
}
