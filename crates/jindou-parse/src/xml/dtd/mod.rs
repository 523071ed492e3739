//! The document type declaration's internal part: entities, and attributes' types and defaults. Nothing external is ever read.

mod parse;
mod text;

use std::collections::HashMap;

/// Declarations of a document.
#[derive(Debug, Default)]
pub(crate) struct Dtd {
    /// Name of the root element, as declared.
    pub(crate) name: String,
    pub(crate) entities: HashMap<Box<str>, Entity>,
    pub(crate) attributes: HashMap<Box<str>, Vec<DeclaredAttribute>>,
    pub(crate) notations: Vec<Notation>,
    /// Processing instructions among the declarations: target and data.
    pub(crate) instructions: Vec<(Box<str>, Box<str>)>,
    /// True if declarations may be missing, since they are in a part that is not read: then a reference to an entity
    /// that was not declared is not a fault of the document.
    pub(crate) is_partial: bool,
    /// Bytes that the declarations hold.
    pub(crate) held: usize,
}

/// An entity that documents refer to by `&name;`.
#[derive(Debug)]
pub(crate) struct Entity {
    pub(crate) value: EntityValue,
    /// True while it is being expanded.
    pub(crate) is_open: bool,
}

/// Content of an entity.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EntityValue {
    /// Its replacement text.
    Text(Box<str>),
    /// In another document, which is not read.
    External,
    /// No text at all (`NDATA`).
    Unparsed,
}

/// A declared attribute.
#[derive(Debug)]
pub(crate) struct DeclaredAttribute {
    pub(crate) name: Box<str>,
    /// True if the value is plain text (CDATA). For all other types, blanks at the ends are removed and sequences of
    /// blanks are replaced by one.
    pub(crate) is_text: bool,
    pub(crate) default: Option<Box<str>>,
}

/// A declared notation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notation {
    /// Its name.
    pub name: String,
    /// Its public identifier.
    pub public: Option<String>,
    /// Its system identifier.
    pub system: Option<String>,
}

/// The character that a predefined entity is.
pub(crate) fn predefined(name: &str) -> Option<&'static str> {
    Some(match name {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        _ => return None,
    })
}

/// Removes blanks at the ends of a normalised value, and replaces sequences of blanks by one.
pub(crate) fn collapse(value: &str, out: &mut String) {
    let mut first = true;
    for word in value.split(' ').filter(|w| !w.is_empty()) {
        if !std::mem::take(&mut first) {
            out.push(' ');
        }
        out.push_str(word);
    }
}

pub(crate) use parse::{length, parse};

#[cfg(test)]
mod tests;
