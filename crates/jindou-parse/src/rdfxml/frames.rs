//! Open elements.

use super::terms::Term;

/// An element's part in the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementKind {
    /// `rdf:RDF`, in which nodes stand.
    Root,
    /// A node, or a property that is one (`parseType="Resource"`), in which properties stand.
    Node,
    /// A property with text or a node.
    Property,
    /// A property whose value is said by its attributes.
    Empty,
    /// A property with nodes that are a list.
    Collection,
    /// A property with XML.
    Literal,
    /// A property with the statement of a triple term.
    Triple,
    /// A property that says nothing: a triple term in a document of version 1.1.
    Ignored,
}

/// The base direction of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Ltr,
    Rtl,
}

/// Properties that elements hand down to those in them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    /// How many bases are in scope.
    pub(super) bases: usize,
    /// The language tag; none for the absent term.
    pub(super) language: Term,
    pub(super) direction: Option<Direction>,
    /// Whether the document, or the element, is of RDF 1.2.
    pub(super) is_1_2: bool,
}

/// An open element.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElementFrame {
    pub(super) kind: ElementKind,
    pub(super) scope: Scope,
    /// Of a node: itself. Of a property: the subject it belongs to.
    pub(super) subject: Term,
    /// Of a property.
    pub(super) predicate: Term,
    /// Of a collection: the list's last node so far.
    pub(super) last: Term,
    pub(super) reifier: Reifier,
    pub(super) datatype: Term,
    /// Of a node: how many `rdf:li` were in it.
    pub(super) items: u64,
    /// Of a property: whether a node was in it, and whether text was.
    pub(super) has_node: bool,
    pub(super) has_text: bool,
    /// Of a literal: elements open in it.
    pub(super) depth: usize,
    /// Lengths when the element began: of terms and of text in bytes, of the bases, of the invalid terms.
    pub(super) mark: usize,
    pub(super) text: usize,
    pub(super) outer_bases: usize,
    pub(super) bads: usize,
}

/// Names that a property's statement has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reifier {
    /// `rdf:ID`: a statement in the sense of RDF 1.0.
    pub(super) id: Term,
    /// `rdf:annotation` or `rdf:annotationNodeID`.
    pub(super) annotation: Term,
}

impl Reifier {
    pub(super) const NONE: Self = Self {
        id: Term::Absent,
        annotation: Term::Absent,
    };
}
