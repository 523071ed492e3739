//! Open elements.

use super::terms::ElementTerm;

/// An element's role in the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementKind {
    /// `rdf:RDF`, which contains nodes.
    Root,
    /// A node, or a property that is one (`parseType="Resource"`), which contains properties.
    Node,
    /// A property that contains text or a node.
    Property,
    /// A property whose value is given by its attributes.
    Empty,
    /// A property that contains nodes, which form a list.
    Collection,
    /// A property that contains XML.
    Literal,
    /// A property that contains the statement of a triple term.
    Triple,
    /// A property without meaning: a triple term in a document of version 1.1.
    Ignored,
}

/// The base direction of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextDirection {
    Ltr,
    Rtl,
}

/// Properties that elements pass to their children.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElementScope {
    /// Number of bases in scope.
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
    /// Of a node: itself. Of a property: its subject.
    pub(super) subject: ElementTerm,
    /// Of a property.
    pub(super) predicate: ElementTerm,
    /// Of a collection: the list's last node so far.
    pub(super) last: ElementTerm,
    pub(super) reifier: Reifier,
    pub(super) datatype: ElementTerm,
    /// Of a node: the number of `rdf:li` in it.
    pub(super) items: u64,
    /// Of a property: whether it has contained a node, and whether text.
    pub(super) has_node: bool,
    pub(super) has_text: bool,
    /// Of a literal: number of elements open in it.
    pub(super) depth: usize,
    /// Lengths when the element began: of terms and of text in bytes, of the bases, of the invalid terms.
    pub(super) mark: usize,
    pub(super) text: usize,
    pub(super) outer_bases: usize,
    pub(super) bads: usize,
}

/// Names given to a property's statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reifier {
    /// `rdf:ID`: a statement in the sense of RDF 1.0.
    pub(super) id: ElementTerm,
    /// `rdf:annotation` or `rdf:annotationNodeID`.
    pub(super) annotation: ElementTerm,
}

impl Reifier {
    pub(super) const NONE: Self = Self {
        id: ElementTerm::Absent,
        annotation: ElementTerm::Absent,
    };
}
