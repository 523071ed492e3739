//! Start tags: their grammar and attributes.

use crate::xml::chars;
use crate::xml::value::{EntityExpansion, ValueFault};

/// A range of text, either in the input, relative to the tag's `<`, or in the buffer of normalised values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextPiece {
    pub(crate) in_scratch: bool,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl TextPiece {
    /// The text from `from` to the end of the buffer of normalised values.
    pub(crate) fn made(from: usize, values: &str) -> Self {
        Self {
            in_scratch: true,
            from,
            to: values.len(),
        }
    }

    pub(crate) fn written(from: usize, to: usize) -> Self {
        Self {
            in_scratch: false,
            from,
            to,
        }
    }
}

/// An attribute that was written in a tag, or has a declared default.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attr {
    pub(crate) name: TextPiece,
    /// Length of the prefix; 0 if there is none.
    pub(crate) prefix: usize,
    pub(crate) value: TextPiece,
    /// Number of the binding of the prefix.
    pub(crate) binding: u32,
    /// True if this is a declaration of a namespace.
    pub(crate) declares: bool,
}

/// The parts of a start tag except its attributes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tag {
    /// Length of the name, which follows `<`.
    pub(crate) name: usize,
    /// Length of its prefix; 0 if there is none.
    pub(crate) prefix: usize,
    /// Length of the whole tag.
    pub(crate) length: usize,
    pub(crate) is_empty: bool,
}

/// Outcome of parsing a start tag.
pub(crate) enum TagScan {
    Whole(Tag),
    /// The text ends inside of the tag.
    Short,
}

/// Parses the start tag at the beginning of `text`. Names and values are ranges of `text`, unless a value must be
/// normalised.
pub(crate) fn scan(
    text: &str,
    attributes: &mut Vec<Attr>,
    values: &mut String,
    expansion: &mut EntityExpansion<'_>,
) -> Result<TagScan, ValueFault> {
    attributes.clear();
    values.clear();
    let options = expansion.options;
    let bytes = text.as_bytes();
    let bad = |at: usize, message: &str| Err(ValueFault::new(at, message));
    let name_at = |from: usize| -> Result<usize, ValueFault> {
        let length = chars::name(text.get(from..).unwrap_or_default());
        match length > options.name {
            true => Err(ValueFault::new(
                from,
                format!("a name is longer than {} bytes, the maximum", options.name),
            )),
            false => Ok(length),
        }
    };
    let name = name_at(1)?;
    let mut at = 1 + name;
    if at >= bytes.len() {
        return Ok(TagScan::Short);
    }
    if name == 0 {
        return bad(
            1,
            "expected the name of an element after `<`: write `&lt;` for the character itself",
        );
    }
    let prefix = match options.namespaces {
        true => prefix(text.get(1..at).unwrap_or_default())
            .map_err(|message| ValueFault::new(1, message))?,
        false => 0,
    };
    loop {
        let spaces = chars::spaces(bytes.get(at..).unwrap_or_default());
        at += spaces;
        let is_empty = match bytes.get(at) {
            None => return Ok(TagScan::Short),
            Some(b'>') => false,
            Some(b'/') => match bytes.get(at + 1) {
                None => return Ok(TagScan::Short),
                Some(b'>') => true,
                Some(_) => return bad(at, "expected `/>` at the end of a tag"),
            },
            Some(_) => {
                if spaces == 0 {
                    return bad(at, "expected white space, `>` or `/>` in a tag");
                }
                match attribute(text, at, &name_at, attributes, values, expansion)? {
                    Some(behind) => at = behind,
                    None => return Ok(TagScan::Short),
                }
                if attributes.len() > options.attributes {
                    return Err(ValueFault::new(at, too_many(options.attributes)));
                }
                continue;
            }
        };
        return Ok(TagScan::Whole(Tag {
            name,
            prefix,
            length: at + 1 + usize::from(is_empty),
            is_empty,
        }));
    }
}

pub(crate) fn too_many(most: usize) -> String {
    format!("an element has more than {most} attributes, the maximum")
}

/// Parses the attribute at a position; returns the position after it, or `None` if the text ends inside of it.
#[inline]
fn attribute(
    text: &str,
    start: usize,
    name_at: &impl Fn(usize) -> Result<usize, ValueFault>,
    attributes: &mut Vec<Attr>,
    values: &mut String,
    expansion: &mut EntityExpansion<'_>,
) -> Result<Option<usize>, ValueFault> {
    let bytes = text.as_bytes();
    let bad = |at: usize, message: &str| Err(ValueFault::new(at, message));
    let length = name_at(start)?;
    let mut at = start + length;
    if at >= bytes.len() {
        return Ok(None);
    }
    if length == 0 {
        return bad(
            at,
            "expected the name of an attribute, `>` or `/>` in a tag",
        );
    }
    let name = TextPiece::written(start, at);
    let prefix = match expansion.options.namespaces {
        true => prefix(text.get(start..at).unwrap_or_default())
            .map_err(|message| ValueFault::new(start, message))?,
        false => 0,
    };
    at += chars::spaces(bytes.get(at..).unwrap_or_default());
    match bytes.get(at) {
        None => return Ok(None),
        Some(b'=') => at += 1,
        Some(_) => return bad(at, "expected `=` after the name of an attribute"),
    }
    at += chars::spaces(bytes.get(at..).unwrap_or_default());
    let quote = match bytes.get(at) {
        None => return Ok(None),
        Some(&quote @ (b'"' | b'\'')) => quote,
        Some(_) => return bad(at, "expected the value of an attribute in quotation marks"),
    };
    at += 1;
    let from = at;
    let value = loop {
        at += chars::value_stop(bytes.get(at..).unwrap_or_default());
        match bytes.get(at) {
            None => return Ok(None),
            Some(&b) if b == quote => break TextPiece::written(from, at),
            Some(b'"' | b'\'') => at += 1,
            Some(_) => {
                // In well-formed text, the value ends before the next `<`.
                let rest = bytes.get(at..).unwrap_or_default();
                match memchr::memchr2(quote, b'<', rest) {
                    None => return Ok(None),
                    Some(n) if rest.get(n) == Some(&b'<') => {
                        return bad(
                            at + n,
                            "`<` is not allowed in the value of an attribute: write `&lt;`",
                        );
                    }
                    Some(n) => at += n,
                }
                let begun = values.len();
                let literal = text.get(from..at).unwrap_or_default();
                expansion
                    .literal(literal, values)
                    .map_err(|bad| ValueFault::new(from + bad.at, bad.message))?;
                break TextPiece::made(begun, values);
            }
        }
    };
    attributes.push(Attr {
        name,
        prefix,
        value,
        binding: crate::xml::names::NONE,
        declares: false,
    });
    Ok(Some(at + 1))
}

/// Length of a name's prefix; 0 if there is none. An error if the name has more than one colon or an empty part.
#[inline]
pub(crate) fn prefix(name: &str) -> Result<usize, String> {
    let Some(colon) = memchr::memchr(b':', name.as_bytes()) else {
        return Ok(0);
    };
    let local = name.get(colon + 1..).unwrap_or_default();
    match colon > 0 && chars::is_ncname(local) {
        true => Ok(colon),
        false => Err(format!(
            "the name `{name}` is neither a prefix, a colon and a name, nor a name without a colon"
        )),
    }
}
