//! RDF terms, and patterns of them. Texts and triple terms are shared, so cloning takes constant time.

use super::text::{Canonical, Text};
use jindou_model::term::{self, Parts};
use oxrdf::BaseDirection;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// An IRI.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamedNode(
    /// The canonical bytes: `<` and the IRI. They are always valid UTF-8.
    Text,
);

impl NamedNode {
    /// Creates an IRI from a text that is known to be valid.
    #[must_use]
    pub fn new_unchecked(iri: impl AsRef<str>) -> Self {
        let iri = iri.as_ref();
        let mut text = String::with_capacity(iri.len() + 1);
        text.push(char::from(term::IRI));
        text.push_str(iri);
        Self(Text::from(text))
    }

    /// Creates an IRI from a text that begins with `<`.
    pub(crate) fn of_canonical(text: Text) -> Self {
        Self(text)
    }

    /// The IRI.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get(1..).unwrap_or("")
    }

    /// The IRI as an owned string.
    #[must_use]
    pub fn into_string(self) -> String {
        self.as_str().to_owned()
    }

    /// The canonical bytes, which share the memory of this value. O(1).
    #[must_use]
    pub fn canonical(&self) -> Canonical {
        Canonical::of_text(&self.0)
    }

    /// The IRI with these canonical bytes; `None` if they are another term's.
    #[must_use]
    pub fn from_canonical(bytes: &Canonical) -> Option<Self> {
        if bytes.first() != Some(&term::IRI) {
            return None;
        }
        bytes.to_text().map(Self)
    }
}

impl fmt::Debug for NamedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamedNode").field(&self.as_str()).finish()
    }
}

impl fmt::Display for NamedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.as_str())
    }
}

/// A variable, without its `?`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variable(Text);

impl Variable {
    /// Creates a variable from a name that is known to be valid.
    #[must_use]
    pub fn new_unchecked(name: impl Into<Text>) -> Self {
        Self(name.into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as shared text.
    #[must_use]
    pub fn name(&self) -> &Text {
        &self.0
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Variable").field(&self.as_str()).finish()
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "?{}", self.0)
    }
}

/// A blank node.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum BlankNode {
    /// With a label that the text contains.
    Label(Text),
    /// Without a label: a unique 128-bit number, the upper half first.
    Fresh([u64; 2]),
}

impl BlankNode {
    /// Creates a blank node from a label that is known to be valid.
    #[must_use]
    pub fn new_unchecked(label: impl Into<Text>) -> Self {
        Self::Label(label.into())
    }

    /// Creates a blank node from a number that no other blank node has.
    #[must_use]
    pub fn new_from_unique_id(id: u128) -> Self {
        Self::Fresh([(id >> 64) as u64, id as u64])
    }

    /// The label, for [`Self::Fresh`] made from its number.
    #[must_use]
    pub fn label(&self) -> Cow<'_, str> {
        match self {
            Self::Label(text) => Cow::Borrowed(text),
            Self::Fresh([high, low]) => {
                Cow::Owned(format!("{:x}", u128::from(*high) << 64 | u128::from(*low)))
            }
        }
    }
}

impl fmt::Debug for BlankNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BlankNode").field(&self.label()).finish()
    }
}

impl fmt::Display for BlankNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "_:{}", self.label())
    }
}

/// A literal, stored as its canonical bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Literal(Canonical);

impl Literal {
    /// A string.
    #[must_use]
    pub fn new_simple_literal(value: impl AsRef<str>) -> Self {
        Self::new_typed_literal(value, oxrdf::vocab::xsd::STRING.as_str())
    }

    /// A literal with a datatype.
    #[must_use]
    pub fn new_typed_literal(value: impl AsRef<str>, datatype: impl AsRef<str>) -> Self {
        let mut bytes = vec![];
        term::push_typed(value.as_ref(), datatype.as_ref(), &mut bytes);
        Self(bytes.into())
    }

    /// A language-tagged string. The language may be followed by a base direction (`he--rtl`).
    #[must_use]
    pub fn new_language_tagged_literal_unchecked(
        value: impl AsRef<str>,
        language: impl AsRef<str>,
    ) -> Self {
        let mut bytes = vec![];
        term::push_lang(value.as_ref(), language.as_ref(), &mut bytes);
        Self(bytes.into())
    }

    pub(crate) fn of_canonical(bytes: Canonical) -> Self {
        Self(bytes)
    }

    /// The literal with these canonical bytes; `None` if they are another term's.
    #[must_use]
    pub fn from_canonical(bytes: &Canonical) -> Option<Self> {
        let is_other = matches!(
            bytes.first(),
            None | Some(&(term::IRI | term::BLANK | term::TRIPLE))
        );
        (!is_other).then(|| Self(bytes.clone()))
    }

    fn parts(&self) -> Parts<'_> {
        term::parts(&self.0).unwrap_or(Parts::String(""))
    }

    /// The lexical form. O(length).
    #[must_use]
    pub fn value(&self) -> &str {
        match self.parts() {
            Parts::String(value)
            | Parts::Lang(value, _)
            | Parts::Coded(value, _)
            | Parts::Typed(value, _) => value,
            Parts::Iri(_) | Parts::Blank(_) | Parts::Triple(_) => "",
        }
    }

    /// The lexical form of an `xsd:string`; `None` for other literals. O(length).
    #[must_use]
    pub fn as_plain_string(&self) -> Option<&str> {
        match self.parts() {
            Parts::String(value) => Some(value),
            _ => None,
        }
    }

    /// The language tag without the base direction; `None` for other literals. O(length).
    #[must_use]
    pub fn language(&self) -> Option<&str> {
        self.tag().map(|t| t.0)
    }

    /// The base direction; `None` for literals without one. O(length).
    #[must_use]
    pub fn direction(&self) -> Option<BaseDirection> {
        self.tag()?.1
    }

    fn tag(&self) -> Option<(&str, Option<BaseDirection>)> {
        let Parts::Lang(_, tag) = self.parts() else {
            return None;
        };
        Some(match tag.rsplit_once("--") {
            Some((language, "rtl")) => (language, Some(BaseDirection::Rtl)),
            Some((language, _)) => (language, Some(BaseDirection::Ltr)),
            None => (tag, None),
        })
    }

    /// The datatype's IRI. O(length).
    #[must_use]
    pub fn datatype(&self) -> Cow<'_, str> {
        use oxrdf::vocab::{rdf, xsd};
        match self.parts() {
            Parts::Coded(_, code) => Cow::Owned(term::datatype_iri(code).unwrap_or_default()),
            Parts::Typed(_, datatype) => Cow::Borrowed(datatype),
            Parts::Lang(..) if self.direction().is_some() => {
                Cow::Borrowed(rdf::DIR_LANG_STRING.as_str())
            }
            Parts::Lang(..) => Cow::Borrowed(rdf::LANG_STRING.as_str()),
            _ => Cow::Borrowed(xsd::STRING.as_str()),
        }
    }

    /// The canonical bytes.
    #[must_use]
    pub fn canonical(&self) -> &Canonical {
        &self.0
    }
}

impl From<bool> for Literal {
    fn from(value: bool) -> Self {
        let text = if value { "true" } else { "false" };
        Self::new_typed_literal(text, oxrdf::vocab::xsd::BOOLEAN.as_str())
    }
}

impl fmt::Debug for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Literal({self})")
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = oxrdf::LiteralRef::new_simple_literal(self.value());
        match self.parts() {
            Parts::Lang(_, tag) => write!(f, "{quoted}@{tag}"),
            Parts::Coded(..) | Parts::Typed(..) => write!(f, "{quoted}^^<{}>", self.datatype()),
            _ => write!(f, "{quoted}"),
        }
    }
}

/// An IRI or a blank node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NamedOrBlankNode {
    /// An IRI.
    NamedNode(NamedNode),
    /// A blank node.
    BlankNode(BlankNode),
}

/// An RDF term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// An IRI.
    NamedNode(NamedNode),
    /// A blank node.
    BlankNode(BlankNode),
    /// A literal.
    Literal(Literal),
    /// A triple term.
    Triple(Arc<Triple>),
}

/// A triple of terms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Triple {
    /// Subject.
    pub subject: NamedOrBlankNode,
    /// Predicate.
    pub predicate: NamedNode,
    /// Object.
    pub object: Term,
}

/// A term without blank nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GroundTerm {
    /// An IRI.
    NamedNode(NamedNode),
    /// A literal.
    Literal(Literal),
    /// A triple term.
    Triple(Arc<GroundTriple>),
}

/// A triple without blank nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroundTriple {
    /// Subject.
    pub subject: NamedNode,
    /// Predicate.
    pub predicate: NamedNode,
    /// Object.
    pub object: GroundTerm,
}

/// The name of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum GraphName {
    /// A named graph.
    NamedNode(NamedNode),
    /// The default graph.
    #[default]
    DefaultGraph,
}

/// A quad.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Quad {
    /// Subject.
    pub subject: NamedOrBlankNode,
    /// Predicate.
    pub predicate: NamedNode,
    /// Object.
    pub object: Term,
    /// Graph.
    pub graph_name: GraphName,
}

/// A quad without blank nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroundQuad {
    /// Subject.
    pub subject: NamedNode,
    /// Predicate.
    pub predicate: NamedNode,
    /// Object.
    pub object: GroundTerm,
    /// Graph.
    pub graph_name: GraphName,
}

/// An IRI or a variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NamedNodePattern {
    /// An IRI.
    NamedNode(NamedNode),
    /// A variable.
    Variable(Variable),
}

/// A term or a variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TermPattern {
    /// An IRI.
    NamedNode(NamedNode),
    /// A blank node, which acts as a variable.
    BlankNode(BlankNode),
    /// A literal.
    Literal(Literal),
    /// A triple term.
    Triple(Arc<TriplePattern>),
    /// A variable.
    Variable(Variable),
}

/// A term without blank nodes, or a variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GroundTermPattern {
    /// An IRI.
    NamedNode(NamedNode),
    /// A literal.
    Literal(Literal),
    /// A variable.
    Variable(Variable),
    /// A triple term.
    Triple(Arc<GroundTriplePattern>),
}

/// A graph or a variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GraphNamePattern {
    /// A named graph.
    NamedNode(NamedNode),
    /// The default graph.
    DefaultGraph,
    /// A variable.
    Variable(Variable),
}

/// A triple pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TriplePattern {
    /// Subject.
    pub subject: TermPattern,
    /// Predicate.
    pub predicate: NamedNodePattern,
    /// Object.
    pub object: TermPattern,
}

/// A triple pattern without blank nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroundTriplePattern {
    /// Subject.
    pub subject: GroundTermPattern,
    /// Predicate.
    pub predicate: NamedNodePattern,
    /// Object.
    pub object: GroundTermPattern,
}

/// A quad of a template.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuadPattern {
    /// Subject.
    pub subject: TermPattern,
    /// Predicate.
    pub predicate: NamedNodePattern,
    /// Object.
    pub object: TermPattern,
    /// Graph.
    pub graph_name: GraphNamePattern,
}

/// A quad of a template without blank nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroundQuadPattern {
    /// Subject.
    pub subject: GroundTermPattern,
    /// Predicate.
    pub predicate: NamedNodePattern,
    /// Object.
    pub object: GroundTermPattern,
    /// Graph.
    pub graph_name: GraphNamePattern,
}

/// Appends a part of a triple term's canonical bytes, preceded by the part's length.
fn part(out: &mut Vec<u8>, push: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    push(out);
    let len = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&len.to_le_bytes());
}

impl GroundTerm {
    /// Length of the canonical bytes, computed without building them.
    #[must_use]
    pub fn canonical_len(&self) -> usize {
        match self {
            Self::NamedNode(n) => n.0.len(),
            Self::Literal(l) => l.0.len(),
            Self::Triple(t) => {
                13 + t.subject.0.len() + t.predicate.0.len() + t.object.canonical_len()
            }
        }
    }

    /// The canonical bytes. They share the memory of this term, except for a triple term, whose bytes are built
    /// recursively.
    #[must_use]
    pub fn canonical(&self) -> Canonical {
        match self {
            Self::NamedNode(n) => n.canonical(),
            Self::Literal(l) => l.0.clone(),
            Self::Triple(_) => {
                let mut bytes = Vec::with_capacity(self.canonical_len());
                self.push(&mut bytes);
                bytes.into()
            }
        }
    }

    /// Appends the canonical bytes.
    pub fn push(&self, out: &mut Vec<u8>) {
        match self {
            Self::NamedNode(n) => out.extend_from_slice(n.0.as_bytes()),
            Self::Literal(l) => out.extend_from_slice(&l.0),
            Self::Triple(t) => {
                out.push(term::TRIPLE);
                part(out, |out| out.extend_from_slice(t.subject.0.as_bytes()));
                part(out, |out| out.extend_from_slice(t.predicate.0.as_bytes()));
                part(out, |out| t.object.push(out));
            }
        }
    }
}

impl TriplePattern {
    /// Length of the canonical bytes of this pattern as a triple term, computed without building them; `None` if it
    /// contains variables or blank nodes.
    #[must_use]
    pub fn canonical_len(&self) -> Option<usize> {
        let TermPattern::NamedNode(subject) = &self.subject else {
            return None;
        };
        let NamedNodePattern::NamedNode(predicate) = &self.predicate else {
            return None;
        };
        let object = match &self.object {
            TermPattern::NamedNode(n) => n.0.len(),
            TermPattern::Literal(l) => l.0.len(),
            TermPattern::Triple(t) => t.canonical_len()?,
            TermPattern::BlankNode(_) | TermPattern::Variable(_) => return None,
        };
        Some(13 + subject.0.len() + predicate.0.len() + object)
    }

    /// The canonical bytes of this pattern as a triple term; `None` if it contains variables or blank nodes. Recursive.
    #[must_use]
    pub fn canonical(&self) -> Option<Canonical> {
        let mut bytes = Vec::with_capacity(self.canonical_len()?);
        self.push(&mut bytes);
        Some(bytes.into())
    }

    fn push(&self, out: &mut Vec<u8>) {
        out.push(term::TRIPLE);
        if let TermPattern::NamedNode(n) = &self.subject {
            part(out, |out| out.extend_from_slice(n.0.as_bytes()));
        }
        if let NamedNodePattern::NamedNode(n) = &self.predicate {
            part(out, |out| out.extend_from_slice(n.0.as_bytes()));
        }
        part(out, |out| match &self.object {
            TermPattern::NamedNode(n) => out.extend_from_slice(n.0.as_bytes()),
            TermPattern::Literal(l) => out.extend_from_slice(&l.0),
            TermPattern::Triple(t) => t.push(out),
            TermPattern::BlankNode(_) | TermPattern::Variable(_) => {}
        });
    }
}
