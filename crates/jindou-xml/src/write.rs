//! Text that is written so that every processor reads it back as it was.

use crate::chars::is_char;
use thiserror::Error;

/// A character that XML 1.0 cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("XML cannot express the character U+{:04X}", u32::from(*.0))]
pub struct Inexpressible(pub char);

/// Appends text of an element: `&`, `<` and `>` as references, and carriage returns, which readers would take for line ends.
///
/// # Errors
/// If a character is not allowed in XML. What comes before it may have been appended.
pub fn push_text(text: &str, out: &mut String) -> Result<(), Inexpressible> {
    escape(text, out, |c| match c {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '\r' => Some("&#xD;"),
        _ => None,
    })
}

/// Appends a value of an attribute, for either kind of quotation marks: white space but the blank as references, since readers make blanks of it.
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

/// The first character of a text that XML cannot express.
#[must_use]
pub fn inexpressible(text: &str) -> Option<Inexpressible> {
    let at = crate::chars::first_illegal(text)?;
    text.get(at..)?.chars().next().map(Inexpressible)
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
