//! Values of attributes: expands references, and replaces white space by blanks.

use crate::xml::chars;
use crate::xml::dtd::{Entity, EntityValue, predefined};
use crate::xml::options::ReaderOptions;
use std::collections::HashMap;

/// A character reference or entity reference.
pub(crate) struct Reference<'t> {
    /// Length of the reference in bytes, from `&` to `;`.
    pub(crate) length: usize,
    pub(crate) meaning: ReferenceMeaning<'t>,
}

pub(crate) enum ReferenceMeaning<'t> {
    Character(char),
    Entity(&'t str),
}

/// Parses the reference at the beginning of `text`.
pub(crate) fn reference(text: &str) -> Result<Reference<'_>, String> {
    let inside = text.get(1..).unwrap_or_default();
    if let Some(digits) = inside.strip_prefix('#') {
        let length = digits
            .bytes()
            .position(|b| !b.is_ascii_alphanumeric())
            .unwrap_or(digits.len());
        let digits = digits.get(..length).unwrap_or_default();
        let ends = inside.as_bytes().get(1 + length) == Some(&b';');
        return match chars::referred(digits) {
            Some(c) if ends => Ok(Reference {
                length: length + 3,
                meaning: ReferenceMeaning::Character(c),
            }),
            _ => Err(format!(
                "`&#{}` does not refer to a character that XML allows, expected `&#`, decimal digits (or `x` and hexadecimal ones) and `;`",
                digits.get(..digits.len().min(20)).unwrap_or_default()
            )),
        };
    }
    let length = chars::name(inside);
    if length == 0 || inside.as_bytes().get(length) != Some(&b';') {
        return Err("`&` does not begin a reference, expected `&name;` or `&#…;`: write `&amp;` for the character itself".into());
    }
    Ok(Reference {
        length: length + 2,
        meaning: ReferenceMeaning::Entity(inside.get(..length).unwrap_or_default()),
    })
}

/// Number of bytes that each reference to an entity counts in addition to the entity's own, so that empty entities
/// cannot be repeated for ever.
pub(crate) const REFERENCE: u64 = 32;

/// An error at a byte of a value.
pub(crate) struct ValueFault {
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl ValueFault {
    pub(crate) fn new(at: usize, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { at, message }
    }
}

/// The entities, and the limits on their expansion.
pub(crate) struct EntityExpansion<'e> {
    pub(crate) entities: &'e mut HashMap<Box<str>, Entity>,
    /// True if entities may be declared in a part that is not read.
    pub(crate) is_partial: bool,
    pub(crate) options: &'e ReaderOptions,
    /// Number of bytes to which entities have expanded so far, and the limit on it.
    pub(crate) expanded: &'e mut u64,
    pub(crate) most: u64,
}

impl EntityExpansion<'_> {
    /// Appends the normalised value of a literal.
    pub(crate) fn literal(&mut self, literal: &str, out: &mut String) -> Result<(), ValueFault> {
        let mut at = 0;
        loop {
            let rest = literal.get(at..).unwrap_or_default();
            let stop = chars::value_stop(rest.as_bytes());
            out.push_str(rest.get(..stop).unwrap_or_default());
            at += stop;
            let bad = |message: String| ValueFault::new(at, message);
            match rest.as_bytes().get(stop) {
                None => return Ok(()),
                Some(b'&') => {
                    let text = rest.get(stop..).unwrap_or_default();
                    let found = reference(text).map_err(bad)?;
                    match found.meaning {
                        ReferenceMeaning::Character(c) => out.push(c),
                        ReferenceMeaning::Entity(name) => self.entity(name, out).map_err(bad)?,
                    }
                    at += found.length;
                }
                Some(b'<') => return Err(bad(NO_TAGS.into())),
                Some(b'\r') => {
                    out.push(' ');
                    at += 1 + usize::from(rest.as_bytes().get(stop + 1) == Some(&b'\n'));
                }
                Some(b'\t' | b'\n') => {
                    out.push(' ');
                    at += 1;
                }
                Some(&quote) => {
                    out.push(char::from(quote));
                    at += 1;
                }
            }
        }
    }

    /// Appends the expansion of an entity in a value, without recursion.
    pub(crate) fn entity(&mut self, name: &str, out: &mut String) -> Result<(), String> {
        if let Some(text) = predefined(name) {
            out.push_str(text);
            return Ok(());
        }
        // The entities that are being expanded, each with the position of its next byte.
        let mut open: Vec<(Box<str>, usize)> = Vec::new();
        let result = self
            .enter(name, &mut open, out)
            .and_then(|()| self.expand(&mut open, out));
        for (name, _) in &open {
            self.close(name);
        }
        result
    }

    fn expand(
        &mut self,
        open: &mut Vec<(Box<str>, usize)>,
        out: &mut String,
    ) -> Result<(), String> {
        while let Some((name, at)) = open.last_mut() {
            let Some(Entity {
                value: EntityValue::Text(text),
                ..
            }) = self.entities.get(name.as_ref())
            else {
                return Ok(());
            };
            let rest = text.get(*at..).unwrap_or_default();
            let stop = chars::value_stop(rest.as_bytes());
            *self.expanded += stop as u64;
            out.push_str(rest.get(..stop).unwrap_or_default());
            *at += stop;
            let mut inner = None;
            match rest.as_bytes().get(stop) {
                None => {
                    let name = name.clone();
                    open.pop();
                    self.close(&name);
                    continue;
                }
                Some(b'&') => {
                    let found = reference(rest.get(stop..).unwrap_or_default())?;
                    *at += found.length;
                    match found.meaning {
                        ReferenceMeaning::Character(c) => out.push(c),
                        ReferenceMeaning::Entity(name) => match predefined(name) {
                            Some(text) => out.push_str(text),
                            None => inner = Some(Box::<str>::from(name)),
                        },
                    }
                }
                Some(b'<') => {
                    return Err(format!(
                        "the entity `{name}` is in a value of an attribute and has `<` in it: {NO_TAGS}"
                    ));
                }
                Some(b'\t' | b'\n' | b'\r') => {
                    out.push(' ');
                    *at += 1;
                }
                Some(&quote) => {
                    out.push(char::from(quote));
                    *at += 1;
                }
            }
            *self.expanded += 1;
            self.check()?;
            if let Some(name) = inner {
                self.enter(&name, open, out)?;
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        match *self.expanded <= self.most {
            true => Ok(()),
            false => Err(too_much(self.most)),
        }
    }

    fn enter(
        &mut self,
        name: &str,
        open: &mut Vec<(Box<str>, usize)>,
        out: &mut String,
    ) -> Result<(), String> {
        *self.expanded += REFERENCE;
        self.check()?;
        if open.len() >= self.options.entities {
            return Err(too_deep(self.options.entities));
        }
        match self.entities.get_mut(name) {
            Some(entity) if entity.is_open => Err(contains_itself(name)),
            Some(entity) => match &entity.value {
                EntityValue::Text(text) => {
                    // Most entities are plain text.
                    if chars::value_stop(text.as_bytes()) == text.len() {
                        *self.expanded += text.len() as u64;
                        out.push_str(text);
                        return Ok(());
                    }
                    entity.is_open = true;
                    open.push((name.into(), 0));
                    Ok(())
                }
                EntityValue::External => Err(format!(
                    "the external entity `{name}` is not allowed in an attribute's value"
                )),
                EntityValue::Unparsed => Err(unparsed(name)),
            },
            None => missing(name, self.is_partial, self.options),
        }
    }

    fn close(&mut self, name: &str) {
        if let Some(entity) = self.entities.get_mut(name) {
            entity.is_open = false;
        }
    }
}

/// Returns an error unless a reference to an undeclared entity is allowed.
pub(crate) fn missing(name: &str, is_partial: bool, options: &ReaderOptions) -> Result<(), String> {
    match (is_partial, options.skip_external) {
        (true, true) => Ok(()),
        (true, false) => Err(format!(
            "the entity `{name}` is not declared in the document itself, and other documents are not read: declare it in the document, or replace the reference"
        )),
        (false, _) => Err(format!("the entity `{name}` is not declared")),
    }
}

const NO_TAGS: &str = "`<` is not allowed in the value of an attribute: write `&lt;`";

pub(crate) fn contains_itself(name: &str) -> String {
    format!("the entity `{name}` contains itself")
}

pub(crate) fn unparsed(name: &str) -> String {
    format!("the entity `{name}` is not text (it has a notation) and may not be referred to")
}

pub(crate) fn too_deep(most: usize) -> String {
    format!("entities nest more than {most} levels deep, the maximum")
}

pub(crate) fn too_much(most: u64) -> String {
    format!("entities expand to more than {most} bytes, the maximum for a document of this length")
}
