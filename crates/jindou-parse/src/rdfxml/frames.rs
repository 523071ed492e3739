//! State of the open elements of an RDF/XML document.

use super::terms::ElementTerm;

/// The role of an element in RDF/XML's grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementKind {
    /// `rdf:RDF`, which contains nodes.
    Root,
    /// A node, or a property with `parseType="Resource"`, which is also a node. Contains properties.
    Node,
    /// A property that contains text or a node.
    Property,
    /// A property whose value is given by its attributes.
    Empty,
    /// A property that contains nodes, which become a list.
    Collection,
    /// A property whose content is an XML literal.
    Literal,
    /// A property that contains the one statement of a triple term.
    Triple,
    /// A property that is ignored: a triple term in a document of version 1.1.
    Ignored,
}

/// The base direction of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextDirection {
    Ltr,
    Rtl,
}

/// The state that an element passes to its children.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElementScope {
    /// Number of bases in [`super::StatementState`] that are in scope; the last one applies.
    pub(super) bases: usize,
    /// The language tag; absent if there is none.
    pub(super) language: ElementTerm,
    pub(super) direction: Option<TextDirection>,
    /// True if the document, or the element, uses RDF 1.2.
    pub(super) is_1_2: bool,
}

/// An open element.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElementFrame {
    pub(super) kind: ElementKind,
    pub(super) scope: ElementScope,
    /// If this is a node: itself. If it is a property: its subject.
    pub(super) subject: ElementTerm,
    /// The predicate, if this is a property.
    pub(super) predicate: ElementTerm,
    /// If this is a collection: the last cell of the list so far.
    pub(super) last: ElementTerm,
    pub(super) reifier: Reifier,
    pub(super) datatype: ElementTerm,
    /// If this is a node: the number of `rdf:li` in it so far.
    pub(super) items: u64,
    /// If this is a property: whether it contained a node so far, and whether it contained text.
    pub(super) has_node: bool,
    pub(super) has_text: bool,
    /// If this is an XML literal: the number of its elements that are open.
    pub(super) depth: usize,
    /// Lengths when the element began, to which its end resets them: of the arena of terms and of the text in bytes, of
    /// the list of bases, and of the list of invalid terms.
    pub(super) mark: usize,
    pub(super) text: usize,
    pub(super) outer_bases: usize,
    pub(super) bads: usize,
}

/// Names of the reifiers of a property's statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reifier {
    /// From `rdf:ID`: reification by four triples, as in RDF 1.0.
    pub(super) id: ElementTerm,
    /// From `rdf:annotation` or `rdf:annotationNodeID`.
    pub(super) annotation: ElementTerm,
}

impl Reifier {
    pub(super) const NONE: Self = Self {
        id: ElementTerm::Absent,
        annotation: ElementTerm::Absent,
    };
}
