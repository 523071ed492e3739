//! A parser for the declarations of a document type declaration.

use super::text::{DtdFault, DtdText, Result};
use super::{DeclaredAttribute, Dtd, Entity, EntityValue, Notation, collapse};
use crate::xml::chars;
use crate::xml::options::ReaderOptions;
use crate::xml::value;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The declarations, or the first error.
pub(crate) type Parsed = std::result::Result<Dtd, DtdFault>;

/// Length of the document type declaration at the beginning of `text`; `None` if it does not end in `text`. Examines
/// only as much as is needed to find its end. For text that is not well-formed, the result may be any position.
pub(crate) fn length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut inside = false;
    let behind = |at: usize, end: &str| {
        let rest = text.get(at..)?;
        rest.find(end).map(|n| at + n + end.len())
    };
    while let Some(&b) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        at = match b {
            b'"' => behind(at + 1, "\"")?,
            b'\'' => behind(at + 1, "'")?,
            b'<' if rest.starts_with(b"<!--") => behind(at + 4, "-->")?,
            b'<' if rest.starts_with(b"<?") => behind(at + 2, "?>")?,
            b'[' => {
                inside = true;
                at + 1
            }
            b']' => {
                inside = false;
                at + 1
            }
            b'>' if !inside => return Some(at + 1),
            _ => at + 1,
        };
    }
    None
}

/// Parses a document type declaration from `<!DOCTYPE` to `>`. Its line ends must be line feeds. `standalone` is the
/// value in the XML declaration.
pub(crate) fn parse(text: &str, standalone: bool, options: &ReaderOptions) -> Parsed {
    let mut parser = DtdParser {
        dtd: Dtd::default(),
        parameters: HashMap::new(),
        standalone,
        options,
        stopped: false,
        expanded: 0,
        open: Vec::new(),
    };
    let mut text = DtdText {
        text,
        at: 0,
        reference: None,
        longest_name: options.name,
        colons: !options.namespaces,
    };
    parser.doctype(&mut text)?;
    parser.dtd.held = text.at * 4 + parser.dtd.entities.len() * 128;
    Ok(parser.dtd)
}

struct DtdParser<'o> {
    dtd: Dtd,
    /// Parameter entities, to which declarations refer by `%name;`. `None` for external ones, which are not read.
    parameters: HashMap<Box<str>, Option<Box<str>>>,
    standalone: bool,
    options: &'o ReaderOptions,
    /// True if declarations are only checked and not applied from here on, because a declaration in an unread part
    /// would take precedence.
    stopped: bool,
    /// Number of bytes to which parameter entities have expanded.
    expanded: u64,
    /// Names of the parameter entities that are being read.
    open: Vec<Box<str>>,
}

impl DtdParser<'_> {
    fn doctype(&mut self, text: &mut DtdText<'_>) -> Result<()> {
        text.expect("<!DOCTYPE")?;
        text.need_spaces()?;
        self.dtd.name = text.name()?.to_owned();
        if text.spaces() && matches!(text.peek(), Some(b'S' | b'P')) {
            self.external_id(text, false)?;
            self.dtd.is_partial = !self.standalone;
            text.spaces();
        }
        if text.take("[") {
            self.subset(text)?;
            text.expect("]")?;
            text.spaces();
        }
        text.expect(">")
    }

    /// Parses declarations up to a bracket, or to the end of a parameter entity.
    fn subset(&mut self, text: &mut DtdText<'_>) -> Result<()> {
        loop {
            text.spaces();
            let start = text.at;
            match text.peek() {
                None if text.reference.is_some() => return Ok(()),
                Some(b']') if text.reference.is_none() => return Ok(()),
                Some(b'%') => self.parameter(text)?,
                Some(b'<') => {
                    if text.take("<!--") {
                        text.comment()?;
                    } else if text.take("<?") {
                        let (target, data) = text.instruction()?;
                        self.dtd.instructions.push((target.into(), data.into()));
                    } else if text.take("<!ELEMENT") {
                        element(text)?;
                    } else if text.take("<!ATTLIST") {
                        self.attributes(text)?;
                    } else if text.take("<!ENTITY") {
                        self.entity(text)?;
                    } else if text.take("<!NOTATION") {
                        self.notation(text)?;
                    } else if text.rest().starts_with("<![") {
                        return text.bad_at(start, "a conditional section is only allowed in external parts of a document type");
                    } else {
                        return text.bad_at(
                            start,
                            "expected a declaration, a comment or a processing instruction",
                        );
                    }
                }
                _ => {
                    return text
                        .bad("expected a declaration or `]` in the document type declaration");
                }
            }
        }
    }

    /// Expands a reference to a parameter entity between declarations.
    fn parameter(&mut self, text: &mut DtdText<'_>) -> Result<()> {
        let start = text.at;
        text.expect("%")?;
        let name = text.simple_name()?;
        text.expect(";")?;
        let refused = |message: String| text.bad_at(start, message);
        let value = match self.parameters.get(name) {
            Some(Some(value)) => value.clone(),
            Some(None) => {
                self.not_read();
                return Ok(());
            }
            None if self.standalone => {
                return refused(format!(
                    "the parameter entity `{name}` is not declared before its reference"
                ));
            }
            // An undeclared entity is only an error of validity here. It is treated as one that is not read.
            None => {
                self.not_read();
                return Ok(());
            }
        };
        self.dtd.is_partial |= !self.standalone;
        if self.open.iter().any(|open| **open == *name) {
            return refused(format!("the parameter entity `{name}` contains itself"));
        }
        if self.open.len() >= self.options.entities {
            return refused(format!(
                "parameter entities nest more than {} levels deep, the maximum",
                self.options.entities
            ));
        }
        self.expanded += value.len() as u64;
        if self.expanded > self.options.expansion {
            return refused(format!(
                "parameter entities expand to more than {} bytes, the maximum",
                self.options.expansion
            ));
        }
        // In its text, references to external entities are allowed as in the document.
        self.open.push(name.into());
        let mut inner = DtdText {
            text: &value,
            at: 0,
            reference: Some(text.reference.unwrap_or(start)),
            ..*text
        };
        let read = self.subset(&mut inner);
        self.open.pop();
        read.map_err(|bad| DtdFault {
            message: format!("in the parameter entity `{name}`: {}", bad.message),
            ..bad
        })
    }

    /// Records that a parameter entity is not read, which may contain declarations that take precedence over later
    /// ones.
    fn not_read(&mut self) {
        self.dtd.is_partial |= !self.standalone;
        self.stopped |= !self.standalone;
    }

    /// Parses `SYSTEM "…"` or `PUBLIC "…" "…"`. For a notation, the second part of the latter may be missing.
    fn external_id(
        &self,
        text: &mut DtdText<'_>,
        of_notation: bool,
    ) -> Result<(Option<String>, Option<String>)> {
        if text.take("SYSTEM") {
            text.need_spaces()?;
            let (_, system) = text.quoted()?;
            return Ok((None, Some(system.to_owned())));
        }
        text.expect("PUBLIC")?;
        text.need_spaces()?;
        let (from, public) = text.quoted()?;
        if let Some(at) = public.bytes().position(|b| !chars::is_public(b)) {
            return text.bad_at(
                from + at,
                "a character is not allowed in a public identifier",
            );
        }
        let public = public
            .split_ascii_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let spaced = text.spaces();
        let is_quote = matches!(text.peek(), Some(b'"' | b'\''));
        if of_notation && !is_quote {
            return Ok((Some(public), None));
        }
        if !spaced {
            return text.bad("expected white space and a system identifier");
        }
        let (_, system) = text.quoted()?;
        Ok((Some(public), Some(system.to_owned())))
    }

    fn entity(&mut self, text: &mut DtdText<'_>) -> Result<()> {
        text.need_spaces()?;
        let is_parameter = text.take("%");
        if is_parameter {
            text.need_spaces()?;
        }
        let name = text.simple_name()?;
        text.need_spaces()?;
        let value = match text.peek() {
            Some(b'"' | b'\'') => {
                let (from, literal) = text.quoted()?;
                EntityValue::Text(entity_value(text, from, literal)?.into())
            }
            _ => {
                self.external_id(text, false)?;
                let spaced = text.spaces();
                if !is_parameter && text.rest().starts_with("NDATA") {
                    if !spaced {
                        return text.bad("expected white space before `NDATA`");
                    }
                    text.expect("NDATA")?;
                    text.need_spaces()?;
                    text.simple_name()?;
                    EntityValue::Unparsed
                } else {
                    EntityValue::External
                }
            }
        };
        text.spaces();
        text.expect(">")?;
        if self.stopped {
            return Ok(());
        }
        // If an entity is declared twice, the first declaration applies.
        if is_parameter {
            let value = match value {
                EntityValue::Text(value) => Some(value),
                EntityValue::External | EntityValue::Unparsed => None,
            };
            self.parameters.entry(name.into()).or_insert(value);
        } else if let Entry::Vacant(new) = self.dtd.entities.entry(name.into()) {
            new.insert(Entity {
                value,
                is_open: false,
            });
        }
        Ok(())
    }

    fn notation(&mut self, text: &mut DtdText<'_>) -> Result<()> {
        text.need_spaces()?;
        let name = text.simple_name()?.to_owned();
        text.need_spaces()?;
        let (public, system) = self.external_id(text, true)?;
        text.spaces();
        text.expect(">")?;
        self.dtd.notations.push(Notation {
            name,
            public,
            system,
        });
        Ok(())
    }

    fn attributes(&mut self, text: &mut DtdText<'_>) -> Result<()> {
        text.need_spaces()?;
        let element = text.name()?;
        let mut declared = Vec::new();
        loop {
            let spaced = text.spaces();
            if text.take(">") {
                break;
            }
            if !spaced {
                return text.bad("expected white space or `>` in a declaration of attributes");
            }
            let name = text.name()?;
            text.need_spaces()?;
            let is_text = attribute_type(text)?;
            text.need_spaces()?;
            let mut default = None;
            if !(text.take("#REQUIRED") || text.take("#IMPLIED")) {
                if text.take("#FIXED") {
                    text.need_spaces()?;
                }
                let (from, literal) = text.quoted()?;
                default = Some(self.default_value(text, from, literal, is_text)?);
            }
            declared.push(DeclaredAttribute {
                name: name.into(),
                is_text,
                default,
            });
        }
        if self.stopped {
            return Ok(());
        }
        let of_element = self.dtd.attributes.entry(element.into()).or_default();
        let mut known: std::collections::HashSet<Box<str>> =
            of_element.iter().map(|a| a.name.clone()).collect();
        for attribute in declared {
            // If an attribute is declared twice, the first declaration applies.
            if known.insert(attribute.name.clone()) {
                of_element.push(attribute);
            }
        }
        if of_element.len() > self.options.attributes {
            return text.bad(format!(
                "more than {} attributes are declared for an element, the maximum",
                self.options.attributes
            ));
        }
        Ok(())
    }

    fn default_value(
        &mut self,
        text: &DtdText<'_>,
        from: usize,
        literal: &str,
        is_text: bool,
    ) -> Result<Box<str>> {
        let mut normal = String::new();
        let mut expansion = value::EntityExpansion {
            entities: &mut self.dtd.entities,
            is_partial: self.dtd.is_partial,
            options: self.options,
            expanded: &mut self.expanded,
            most: self.options.expansion,
        };
        if let Err(bad) = expansion.literal(literal, &mut normal) {
            return text.bad_at(from + bad.at, bad.message);
        }
        if is_text {
            return Ok(normal.into());
        }
        let mut short = String::new();
        collapse(&normal, &mut short);
        Ok(short.into())
    }
}

/// The replacement text of an entity: character references are expanded, references to entities are kept.
fn entity_value(text: &DtdText<'_>, from: usize, literal: &str) -> Result<String> {
    let mut out = String::with_capacity(literal.len());
    let mut at = 0;
    while let Some(n) = literal.get(at..).and_then(|rest| rest.find(['&', '%'])) {
        out.push_str(literal.get(at..at + n).unwrap_or_default());
        at += n;
        let rest = literal.get(at..).unwrap_or_default();
        if rest.starts_with('%') {
            return text.bad_at(
                from + at,
                "a reference to a parameter entity (or `%` alone) is not allowed in a value of the internal part of a document type: write `&#37;`",
            );
        }
        let reference = match value::reference(rest) {
            Ok(reference) => reference,
            Err(message) => return text.bad_at(from + at, message),
        };
        match reference.meaning {
            value::ReferenceMeaning::Character(c) => out.push(c),
            value::ReferenceMeaning::Entity(name) => {
                if !text.colons && name.contains(':') {
                    return text.bad_at(from + at, "the name of an entity may not have a colon");
                }
                out.push_str(rest.get(..reference.length).unwrap_or_default());
            }
        }
        at += reference.length;
    }
    out.push_str(literal.get(at..).unwrap_or_default());
    Ok(out)
}

/// Parses the type of an attribute; returns true for `CDATA`.
fn attribute_type(text: &mut DtdText<'_>) -> Result<bool> {
    if text.take("CDATA") {
        return Ok(true);
    }
    // Longer names come first, since some are the beginning of others.
    let named = [
        "IDREFS", "IDREF", "ID", "ENTITIES", "ENTITY", "NMTOKENS", "NMTOKEN",
    ];
    if named.into_iter().any(|name| text.take(name)) {
        return Ok(false);
    }
    let is_notation = text.take("NOTATION");
    if is_notation {
        text.need_spaces()?;
    }
    if !text.take("(") {
        return text.bad("expected the type of an attribute: CDATA, ID, IDREF, IDREFS, ENTITY, ENTITIES, NMTOKEN, NMTOKENS, NOTATION or a list in parentheses");
    }
    loop {
        text.spaces();
        match is_notation {
            true => text.simple_name()?,
            false => text.nmtoken()?,
        };
        text.spaces();
        if text.take(")") {
            return Ok(false);
        }
        text.expect("|")?;
    }
}

/// Parses the declaration of an element after its keyword. Its content model is only checked for its syntax.
fn element(text: &mut DtdText<'_>) -> Result<()> {
    text.need_spaces()?;
    text.name()?;
    text.need_spaces()?;
    if !(text.take("EMPTY") || text.take("ANY")) {
        if !text.take("(") {
            return text
                .bad("expected the content of an element: EMPTY, ANY or a list in parentheses");
        }
        text.spaces();
        match text.take("#PCDATA") {
            true => mixed(text)?,
            false => children(text)?,
        }
    }
    text.spaces();
    text.expect(">")
}

/// Parses a content model after its `#PCDATA`.
fn mixed(text: &mut DtdText<'_>) -> Result<()> {
    let mut names = false;
    loop {
        text.spaces();
        if text.take(")") {
            break;
        }
        text.expect("|")?;
        text.spaces();
        text.name()?;
        names = true;
    }
    if !text.take("*") && names {
        return text.bad("expected `)*` after a list of text and elements");
    }
    Ok(())
}

/// Parses a content model of elements and groups after its first bracket, without recursion.
fn children(text: &mut DtdText<'_>) -> Result<()> {
    // The separator of each open group, once one was found.
    let mut open: Vec<Option<u8>> = vec![None];
    let repeated = |text: &mut DtdText<'_>| {
        if matches!(text.peek(), Some(b'?' | b'*' | b'+')) {
            text.at += 1;
        }
    };
    'part: loop {
        text.spaces();
        if text.take("(") {
            open.push(None);
            continue;
        }
        text.name()?;
        repeated(text);
        loop {
            text.spaces();
            let Some(separator) = open.last_mut() else {
                return Ok(());
            };
            match text.peek() {
                Some(b')') => {
                    text.at += 1;
                    repeated(text);
                    open.pop();
                    if open.is_empty() {
                        return Ok(());
                    }
                }
                Some(b @ (b'|' | b',')) if separator.is_none_or(|s| s == b) => {
                    *separator = Some(b);
                    text.at += 1;
                    continue 'part;
                }
                _ => {
                    return text.bad("expected `)`, or one of `|` and `,` all through a list, in the content of an element");
                }
            }
        }
    }
}
