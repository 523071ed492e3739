//! Elements that are nodes: the document's root, descriptions, and nodes in properties.

use super::attributes::{SyntaxAttributes, is_property};
use super::frames::{ElementFrame, ElementKind, ElementScope, Reifier};
use super::terms::{ElementTerm, LiteralText, RDF, shortened, word};
use super::{Meaning, ObjectPlace, StatementState, Stray};
use crate::xml::Start;
use jindou_model::Result;

/// Returns the value of a [`Meaning`], or returns from the calling function with the [`Stray`] element.
macro_rules! meant {
    ($meaning:expr) => {
        match $meaning {
            Ok(value) => value,
            Err(stray) => return Ok(Err(stray)),
        }
    };
}
pub(super) use meant;

/// True for names of the RDF namespace that a node must not have.
fn is_no_node(local: &str) -> bool {
    matches!(
        local,
        "RDF"
            | "ID"
            | "about"
            | "parseType"
            | "resource"
            | "nodeID"
            | "datatype"
            | "li"
            | "aboutEach"
            | "aboutEachPrefix"
            | "bagID"
    )
}

impl StatementState<'_, '_> {
    /// The state that the innermost element passes to its children.
    pub(super) fn scope(&self) -> ElementScope {
        match self.frames.last() {
            Some(frame) => frame.scope,
            None => ElementScope {
                bases: self.bases.len(),
                language: ElementTerm::Absent,
                direction: None,
                is_1_2: false,
            },
        }
    }

    /// A frame for an element that begins now.
    pub(super) fn frame(&self, kind: ElementKind) -> ElementFrame {
        ElementFrame {
            kind,
            scope: self.scope(),
            subject: ElementTerm::Absent,
            predicate: ElementTerm::Absent,
            last: ElementTerm::Absent,
            reifier: Reifier::NONE,
            datatype: ElementTerm::Absent,
            items: 0,
            has_node: false,
            has_text: false,
            depth: 0,
            mark: self.arena.len(),
            text: self.text.len(),
            outer_bases: self.bases.len(),
            bads: self.bads.len(),
        }
    }

    /// Processes the document's first element: `rdf:RDF`, or a node.
    pub(super) fn root(&mut self, start: &Start<'_>) -> Result<Meaning<()>> {
        let name = start.name();
        if !(name.namespace == RDF && name.local == "RDF") {
            return self.node(start);
        }
        let mut frame = self.frame(ElementKind::Root);
        let (found, scope) = meant!(self.attributes(start, frame.scope));
        if found != SyntaxAttributes::default() {
            self.refuse("rdf:RDF has an attribute of a node or property, expected only namespaces, xml:base, xml:lang, its:dir and rdf:version");
        }
        frame.scope = scope;
        self.frames.push(frame);
        Ok(Ok(()))
    }

    pub(super) fn node(&mut self, start: &Start<'_>) -> Result<Meaning<()>> {
        let name = start.name();
        if name.namespace == RDF && is_no_node(name.local) {
            return Ok(Err(Stray(format!(
                "`{}` may not be the name of a node, expected rdf:Description or a class",
                shortened(name.qualified)
            ))));
        }
        let parent = self.frames.last_mut();
        let (parent, outer) = match parent {
            Some(parent) => {
                if let Some(why) = refused(parent) {
                    return Ok(Err(Stray(why.into())));
                }
                parent.has_node = true;
                if parent.kind == ElementKind::Property {
                    self.text.truncate(parent.text);
                }
                let parent = *parent;
                (Some(parent), parent.scope)
            }
            None => (None, self.scope()),
        };
        let mut cell = ElementTerm::Absent;
        if let Some(parent) = parent
            && parent.kind == ElementKind::Collection
        {
            cell = meant!(self.next_cell(&parent)?);
        }
        let mut frame = self.frame(ElementKind::Node);
        let (found, scope) = meant!(self.attributes(start, outer));
        frame.scope = scope;
        frame.subject = meant!(self.subject(&found, &scope));
        let misplaced = [
            (found.resource, "rdf:resource"),
            (found.datatype, "rdf:datatype"),
            (found.parse_type, "rdf:parseType"),
            (found.annotation, "rdf:annotation"),
            (found.annotation_node, "rdf:annotationNodeID"),
        ];
        for (_, attribute) in misplaced.iter().filter(|(value, _)| value.is_some()) {
            self.refuse(format!(
                "{attribute} is on a node, expected it on a property"
            ));
        }
        match parent {
            Some(parent) if parent.kind == ElementKind::Property => {
                self.link(&parent, ObjectPlace::Term(frame.subject))?;
            }
            Some(parent) if parent.kind == ElementKind::Collection => {
                self.statement(cell, word::FIRST, ObjectPlace::Term(frame.subject))?;
            }
            _ => {}
        }
        if !(name.namespace == RDF && name.local == "Description") {
            let class = meant!(self.name(&name));
            self.statement(frame.subject, word::TYPE, ObjectPlace::Term(class))?;
        }
        meant!(self.attribute_properties(start, &found, frame.subject, &scope)?);
        self.frames.push(frame);
        Ok(Ok(()))
    }

    fn subject(
        &mut self,
        found: &SyntaxAttributes<'_>,
        scope: &ElementScope,
    ) -> Meaning<ElementTerm> {
        let named = [found.id, found.about, found.node_id];
        if named.iter().flatten().count() > 1 {
            self.refuse("a node has two of rdf:ID, rdf:about and rdf:nodeID, expected at most one");
        }
        match *found {
            SyntaxAttributes { id: Some(id), .. } => self.id(id, scope),
            SyntaxAttributes {
                about: Some(about), ..
            } => self.iri(about, scope),
            SyntaxAttributes {
                node_id: Some(label),
                ..
            } => self.labelled(label),
            _ => self.fresh(),
        }
    }

    /// Emits the statements that follow from an element's class and from its property attributes.
    pub(super) fn attribute_properties(
        &mut self,
        start: &Start<'_>,
        found: &SyntaxAttributes<'_>,
        subject: ElementTerm,
        scope: &ElementScope,
    ) -> Result<Meaning<()>> {
        if let Some(class) = found.class {
            let class = meant!(self.iri(class, scope));
            self.statement(subject, word::TYPE, ObjectPlace::Term(class))?;
        }
        if found.properties == 0 {
            return Ok(Ok(()));
        }
        for a in start.attributes().filter(is_property) {
            let mark = self.arena.len();
            let predicate = meant!(self.name(&a.name));
            match self.literal_of(LiteralText::Of(a.value), ElementTerm::Absent, scope) {
                Some(bad) => self.lose_statement(bad),
                None => self.statement(subject, predicate, ObjectPlace::Scratch)?,
            }
            self.arena.truncate(mark);
        }
        Ok(Ok(()))
    }

    /// Adds a cell to the end of a collection's list; returns the cell.
    fn next_cell(&mut self, parent: &ElementFrame) -> Result<Meaning<ElementTerm>> {
        let mut cell = meant!(self.fresh());
        match parent.last {
            ElementTerm::At { start, .. } => {
                self.statement(parent.last, word::REST, ObjectPlace::Term(cell))?;
                // The new cell overwrites the one before in the arena, so that long lists need no more memory than
                // short ones.
                if let ElementTerm::At { start: new, len } = cell {
                    let from = new as usize..(new + len) as usize;
                    self.arena.copy_within(from, start as usize);
                    self.arena.truncate((start + len) as usize);
                    cell = ElementTerm::At { start, len };
                }
            }
            _ => self.link(parent, ObjectPlace::Term(cell))?,
        }
        if let Some(parent) = self.frames.last_mut() {
            parent.last = cell;
        }
        Ok(Ok(cell))
    }

    /// Omits a statement because of the invalid term with this number.
    #[cold]
    pub(super) fn lose_statement(&mut self, number: u32) {
        match self.captures.last_mut() {
            Some(capture) => {
                capture.statements += 1;
                capture.bad = Some(number);
            }
            None => self.lost.push(number),
        }
    }
}

/// The reason why a node is not allowed inside of `parent` now; `None` if it is.
fn refused(parent: &ElementFrame) -> Option<&'static str> {
    match parent.kind {
        ElementKind::Property if parent.has_text => {
            Some("an element next to text in a property, expected either text or one element")
        }
        ElementKind::Property if parent.has_node => {
            Some("a second element in a property, expected one: write the property twice")
        }
        ElementKind::Property if parent.datatype.is_there() => {
            Some("an element in a property with a datatype, expected text")
        }
        ElementKind::Triple if parent.has_node => {
            Some("a second element in a triple term, expected one node with one property")
        }
        _ => None,
    }
}
