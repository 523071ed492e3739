//! Start tags: the constraints that are not part of the grammar, such as unique attributes and namespaces.

use super::{OpenElement, RawEvent, Reader};
use crate::xml::dtd::{Dtd, collapse};
use crate::xml::error::Result;
use crate::xml::event::{local, piece};
use crate::xml::names::{self, NONE};
use crate::xml::tag::{self, Attr, Tag, TagScan, TextPiece};
use crate::xml::value::EntityExpansion;
use std::collections::HashSet;

/// Up to this many attributes are compared pairwise; more are looked up in a map.
const FEW: usize = 12;
/// Size in bytes from which on the memory of a tag's normalised values is released after the tag.
const LARGE: usize = 64 << 10;

impl Reader<'_> {
    pub(super) fn start_tag(&mut self) -> Result<RawEvent> {
        let tag = loop {
            let before = self.expanded;
            let most = self.most_expanded();
            let text = self.input.rest();
            let mut expansion = EntityExpansion {
                entities: &mut self.dtd.entities,
                is_partial: self.dtd.is_partial,
                options: &self.options,
                expanded: &mut self.expanded,
                most,
            };
            match tag::scan(text, &mut self.attributes, &mut self.values, &mut expansion) {
                Ok(TagScan::Whole(tag)) => break tag,
                Ok(TagScan::Short) => {
                    self.expanded = before;
                    let seen = text.len();
                    if !self.more_markup(seen)? {
                        return self.refuse("the document ends in a tag, expected `>`");
                    }
                }
                Err(bad) => return Err(self.bad(self.input.at + bad.at, bad.message)),
            }
        };
        if self.elements.len() >= self.options.depth {
            return self.refuse(format!(
                "XML elements are nested too deeply, expected at most {} levels",
                self.options.depth
            ));
        }
        // The name of an element that has ended may still be at this place.
        let name = self.open_names();
        self.names.truncate(name);
        let text = self.input.since_start();
        self.names.push_str(&text[1..1 + tag.name]);
        self.elements.push(OpenElement {
            name: name..name + tag.name,
            bindings: self.bindings.len(),
        });
        if !self.dtd.attributes.is_empty() {
            self.declared_attributes(&tag)?;
        }
        self.check_unique()?;
        let binding = match self.options.namespaces {
            true => self.resolve(&tag)?,
            false => None,
        };
        if self.values.capacity() > LARGE {
            self.charge()?;
            if self.values.len() < LARGE {
                self.values.shrink_to(LARGE);
            }
        }
        self.input.at += tag.length;
        self.ends_next = tag.is_empty;
        Ok(RawEvent::start(tag, binding))
    }

    /// Length of the names of all open elements.
    #[inline]
    pub(super) fn open_names(&self) -> usize {
        self.elements.last().map_or(0, |e| e.name.end)
    }

    /// Applies the types that are declared for an element's attributes, and adds attributes with defaults.
    #[cold]
    fn declared_attributes(&mut self, tag: &Tag) -> Result<()> {
        let Self {
            input,
            dtd: Dtd { attributes, .. },
            attributes: written,
            values,
            options,
            ..
        } = self;
        let text = input.since_start();
        let Some(declared) = attributes.get(&text[1..1 + tag.name]) else {
            return Ok(());
        };
        let count = written.len();
        for attribute in declared {
            let is_it = |a: &&mut Attr| piece(text, "", a.name) == attribute.name.as_ref();
            let found = written.iter_mut().take(count).find(is_it);
            let put = |value: &str, values: &mut String| {
                let from = values.len();
                values.push_str(value);
                TextPiece::made(from, values)
            };
            match (found, &attribute.default) {
                (Some(found), _) if !attribute.is_text => {
                    let value = piece(text, values, found.value).to_owned();
                    let from = values.len();
                    collapse(&value, values);
                    found.value = TextPiece::made(from, values);
                }
                (None, Some(default)) => {
                    let prefix = match options.namespaces {
                        true => tag::prefix(&attribute.name),
                        false => Ok(0),
                    };
                    let prefix = prefix.map_err(|message| input.fault(input.start, message))?;
                    let name = put(&attribute.name, values);
                    let value = put(default, values);
                    self.expanded += (attribute.name.len() + default.len()) as u64;
                    written.push(Attr {
                        name,
                        prefix,
                        value,
                        binding: NONE,
                        declares: false,
                    });
                }
                _ => {}
            }
        }
        if self.attributes.len() > self.options.attributes {
            return self.refuse(tag::too_many(self.options.attributes));
        }
        let most = self.most_expanded();
        match self.expanded <= most {
            true => Ok(()),
            false => self.refuse(format!("default values of attributes expand to more than {most} bytes, the maximum for a document of this length")),
        }
    }

    /// Returns an error if two attributes have the same name.
    #[inline]
    fn check_unique(&self) -> Result<()> {
        let text = self.input.since_start();
        let name = |a: &Attr| piece(text, &self.values, a.name);
        let twice = match self.attributes.len() {
            0 | 1 => return Ok(()),
            2..=FEW => {
                let mut rest = self.attributes.as_slice();
                loop {
                    let Some((first, others)) = rest.split_first() else {
                        break None;
                    };
                    if others.iter().any(|a| name(a) == name(first)) {
                        break Some(first);
                    }
                    rest = others;
                }
            }
            _ => {
                let mut seen = HashSet::with_capacity(self.attributes.len());
                self.attributes.iter().find(|a| !seen.insert(name(a)))
            }
        };
        match twice {
            None => Ok(()),
            Some(a) => self.refuse(format!("the attribute `{}` occurs twice in a tag", name(a))),
        }
    }

    /// Declares the namespaces of a tag, and resolves the prefixes in it. Returns the binding of the element's name, if
    /// it has a namespace.
    fn resolve(&mut self, tag: &Tag) -> Result<Option<u32>> {
        let Self {
            input,
            attributes,
            values,
            bindings,
            ..
        } = self;
        let text = input.since_start();
        let mut prefixed = 0;
        for a in attributes.iter_mut() {
            let name = piece(text, values, a.name);
            let prefix = match a.prefix {
                0 if name == "xmlns" => "",
                5 if name.starts_with("xmlns:") => local(name, a.prefix),
                0 => continue,
                _ => {
                    prefixed += 1;
                    continue;
                }
            };
            a.declares = true;
            let uri = piece(text, values, a.value);
            if let Some(why) = names::refused(prefix, uri) {
                return self.refuse(why);
            }
            bindings.declare(prefix, uri);
        }
        for a in attributes.iter_mut().filter(|a| a.prefix > 0) {
            if a.declares {
                continue;
            }
            let name = piece(text, values, a.name);
            let prefix = &name[..a.prefix];
            match bindings.find(prefix) {
                Some(found) => a.binding = found,
                None => {
                    let message = undeclared(prefix);
                    return self.refuse(message);
                }
            }
        }
        if prefixed > 1 {
            self.check_expanded()?;
        }
        let prefix = &self.input.since_start()[1..1 + tag.prefix];
        match self.bindings.find(prefix) {
            None if tag.prefix == 0 => Ok(None),
            None => {
                let message = undeclared(prefix);
                self.refuse(message)
            }
            found => Ok(found),
        }
    }

    /// Returns an error if two attributes have the same namespace and local name.
    fn check_expanded(&self) -> Result<()> {
        let text = self.input.since_start();
        let expanded = |a: &Attr| {
            let name = piece(text, &self.values, a.name);
            (self.bindings.uri(a.binding), local(name, a.prefix))
        };
        let prefixed = || {
            self.attributes
                .iter()
                .filter(|a| a.prefix > 0 && !a.declares)
        };
        let twice = match self.attributes.len() <= FEW {
            true => prefixed()
                .enumerate()
                .find(|(n, a)| prefixed().take(*n).any(|b| expanded(b) == expanded(a)))
                .map(|(_, a)| a),
            false => {
                let mut seen = HashSet::with_capacity(self.attributes.len());
                prefixed().find(|a| !seen.insert(expanded(a)))
            }
        };
        match twice {
            None => Ok(()),
            Some(a) => self.refuse(format!(
                "the attribute `{}` occurs twice in a tag, under two prefixes of one namespace",
                piece(text, &self.values, a.name)
            )),
        }
    }
}

fn undeclared(prefix: &str) -> String {
    format!("no namespace is declared for the prefix `{prefix}`, expected `xmlns:{prefix}=\"…\"`")
}
