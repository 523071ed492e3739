//! The internal subset of the document type declaration: entities, and the types and defaults of attributes. External
//! parts are never read.

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
    /// Processing instructions between the declarations: target and data.
    pub(crate) instructions: Vec<(Box<str>, Box<str>)>,
    /// True if there may be declarations in parts that are not read. Then a reference to an undeclared entity is not an
    /// error of the document.
    pub(crate) is_partial: bool,
    /// Bytes of memory in use for the declarations.
    pub(crate) held: usize,
}

/// A general entity, to which documents refer by `&name;`.
#[derive(Debug)]
pub(crate) struct Entity {
    pub(crate) value: EntityValue,
    /// True while it is being expanded, to detect entities that contain themselves.
    pub(crate) is_open: bool,
}

/// Content of an entity.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EntityValue {
    /// The entity's replacement text.
    Text(Box<str>),
    /// The text is in another document, which is not read.
    External,
    /// The entity is not text (`NDATA`).
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

/// The text of a predefined entity.
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

/// Appends a normalised value without blanks at its ends, and with one blank in place of several.
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
