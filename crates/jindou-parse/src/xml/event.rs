//! Events: what the reader returns, one at a time.

use crate::xml::names::Bindings;
use crate::xml::tag::{Attr, TextPiece};

/// A part of a document.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An element begins.
    Start(Start<'a>),
    /// An element ends.
    End {
        /// Its name as it is written, with its prefix.
        name: &'a str,
    },
    /// Text in an element. Consecutive text may come in several pieces.
    Text(&'a str),
    /// Content of a comment.
    Comment(&'a str),
    /// A processing instruction.
    Instruction {
        /// Its target.
        target: &'a str,
        /// The text after the target.
        data: &'a str,
    },
    /// A reference to an entity that was not read
    /// ([`Options::skip_external`](crate::xml::ReaderOptions::skip_external)).
    Skipped(&'a str),
    /// The document has ended and was well-formed.
    Eof,
}

/// The start of an element.
#[derive(Clone, Copy)]
pub struct Start<'a> {
    pub(crate) name: Name<'a>,
    pub(crate) attributes: &'a [Attr],
    /// The texts that the positions in `attributes` refer to: the tag, and normalised values.
    pub(crate) input: &'a str,
    pub(crate) values: &'a str,
    pub(crate) bindings: &'a Bindings,
}

/// A name with its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// The whole name as it is written.
    pub qualified: &'a str,
    /// The part before the colon; empty if there is none.
    pub prefix: &'a str,
    /// The part after the colon, or the whole name if there is no colon.
    pub local: &'a str,
    /// The namespace; empty if there is none.
    pub namespace: &'a str,
}

/// An attribute with its normalised value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Its name. A name without a prefix has no namespace.
    pub name: Name<'a>,
    /// Its value.
    pub value: &'a str,
    /// True if this is a declaration of a namespace.
    pub declares: bool,
}

impl<'a> Start<'a> {
    /// The element's name.
    #[inline]
    #[must_use]
    pub fn name(&self) -> Name<'a> {
        self.name
    }

    /// The attributes in the order of the tag, followed by those with declared defaults; without declarations of
    /// namespaces.
    #[inline]
    pub fn attributes(&self) -> impl Iterator<Item = Attribute<'a>> + use<'a> {
        self.all().filter(|a| !a.declares)
    }

    /// The attributes as in [`Self::attributes`], and the declarations of namespaces.
    #[inline]
    pub fn all(&self) -> impl Iterator<Item = Attribute<'a>> + use<'a> {
        let this = *self;
        this.attributes.iter().map(move |a| this.attribute(a))
    }

    /// True if the element declares a namespace.
    #[inline]
    #[must_use]
    pub fn has_declarations(&self) -> bool {
        self.attributes.iter().any(|a| a.declares)
    }

    /// The namespaces that the element declares: pairs of prefix (empty for the default namespace) and IRI.
    pub fn declarations(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.all().filter(|a| a.declares).map(|a| {
            let prefix = match a.name.prefix {
                "" => "",
                _ => a.name.local,
            };
            (prefix, a.value)
        })
    }

    /// The namespace to which a prefix is bound in this element, or the default namespace for the empty prefix; empty
    /// if there is none.
    #[must_use]
    pub fn namespace_of(&self, prefix: &str) -> &'a str {
        self.bindings
            .find(prefix)
            .map_or("", |n| self.bindings.uri(n))
    }

    #[inline]
    fn attribute(&self, a: &Attr) -> Attribute<'a> {
        let qualified = piece(self.input, self.values, a.name);
        Attribute {
            name: Name {
                qualified,
                prefix: &qualified[..a.prefix],
                local: local(qualified, a.prefix),
                namespace: self.bindings.uri(a.binding),
            },
            value: piece(self.input, self.values, a.value),
            declares: a.declares,
        }
    }
}

/// The part of a name after its prefix.
#[inline(always)]
pub(crate) fn local(qualified: &str, prefix: usize) -> &str {
    match prefix {
        0 => qualified,
        _ => &qualified[prefix + 1..],
    }
}

#[inline(always)]
pub(crate) fn piece<'a>(input: &'a str, values: &'a str, piece: TextPiece) -> &'a str {
    match piece.in_scratch {
        true => &values[piece.from..piece.to],
        false => &input[piece.from..piece.to],
    }
}
