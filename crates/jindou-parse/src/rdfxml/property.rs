//! Elements that are properties: the meaning of their attributes and their content.

use super::attributes::SyntaxAttributes;
use super::frames::{ElementFrame, ElementKind, ElementScope, Reifier};
use super::node::meant;
use super::terms::{self, ElementTerm, LiteralText, RDF, shortened, word};
use super::{Capture, Meaning, ObjectPlace, StatementState, Stray};
use crate::xml::Start;
use jindou_model::{Result, term};
use std::io::Write;

const XML_LITERAL: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral";

/// True for names of the RDF namespace that a property must not have.
fn is_no_property(local: &str) -> bool {
    matches!(
        local,
        "Description"
            | "RDF"
            | "ID"
            | "about"
            | "parseType"
            | "resource"
            | "nodeID"
            | "datatype"
            | "aboutEach"
            | "aboutEachPrefix"
            | "bagID"
    )
}

impl StatementState<'_, '_> {
    pub(super) fn property(&mut self, start: &Start<'_>) -> Result<Meaning<()>> {
        let name = start.name();
        let is_rdf = name.namespace == RDF;
        if is_rdf && is_no_property(name.local) {
            return Ok(Err(Stray(format!(
                "`{}` may not be the name of a property, expected another one",
                shortened(name.qualified)
            ))));
        }
        let mut frame = self.frame(ElementKind::Property);
        let Some(parent) = self.frames.last_mut() else {
            return Ok(Ok(()));
        };
        frame.subject = parent.subject;
        let outer = parent.scope;
        let item = (is_rdf && name.local == "li").then(|| {
            parent.items += 1;
            parent.items
        });
        let (found, scope) = meant!(self.attributes(start, outer));
        frame.scope = scope;
        frame.predicate = match item {
            Some(number) => meant!(self.item(number)),
            None => meant!(self.name(&name)),
        };
        frame.reifier = meant!(self.reifier(&found, &scope));
        if found.about.is_some() {
            self.refuse("rdf:about is on a property, expected it on a node (rdf:resource names a property's value)");
        }
        if let Some(kind) = found.parse_type {
            let others = [found.resource, found.node_id, found.datatype, found.class];
            if found.properties > 0 || others.iter().any(Option::is_some) {
                self.refuse("a property has both rdf:parseType and attributes that give its value, expected one of them");
            }
            return self.parsed(kind, frame);
        }
        let is_empty = found.resource.is_some()
            || found.node_id.is_some()
            || found.class.is_some()
            || found.properties > 0;
        if !is_empty {
            if let Some(datatype) = found.datatype {
                frame.datatype = meant!(self.iri(datatype, &scope));
            }
            self.frames.push(frame);
            return Ok(Ok(()));
        }
        if found.datatype.is_some() {
            self.refuse("a property has both rdf:datatype and attributes that make its value a node, expected one of them");
        }
        if found.resource.is_some() && found.node_id.is_some() {
            self.refuse("a property has both rdf:resource and rdf:nodeID, expected one of them");
        }
        let object = match found {
            SyntaxAttributes {
                resource: Some(resource),
                ..
            } => meant!(self.iri(resource, &scope)),
            SyntaxAttributes {
                node_id: Some(label),
                ..
            } => meant!(self.labelled(label)),
            _ => meant!(self.fresh()),
        };
        frame.kind = ElementKind::Empty;
        self.link(&frame, ObjectPlace::Term(object))?;
        meant!(self.attribute_properties(start, &found, object, &scope)?);
        self.frames.push(frame);
        Ok(Ok(()))
    }

    /// The predicate of the `rdf:li` with this number.
    fn item(&mut self, number: u64) -> Meaning<ElementTerm> {
        let start = self.arena.len();
        // Writing to a Vec cannot fail.
        let _ = write!(self.arena, "<{RDF}_{number}");
        self.since(start)
    }

    fn reifier(&mut self, found: &SyntaxAttributes<'_>, scope: &ElementScope) -> Meaning<Reifier> {
        let mut reifier = Reifier::NONE;
        if let Some(id) = found.id {
            reifier.id = self.id(id, scope)?;
        }
        if let Some(iri) = found.annotation {
            reifier.annotation = self.iri(iri, scope)?;
            if found.annotation_node.is_some() {
                self.refuse("a property has both rdf:annotation and rdf:annotationNodeID, expected one of them");
            }
        } else if let Some(label) = found.annotation_node {
            reifier.annotation = self.labelled(label)?;
        }
        Ok(reifier)
    }

    /// Begins a property with `rdf:parseType`.
    fn parsed(&mut self, kind: &str, mut frame: ElementFrame) -> Result<Meaning<()>> {
        frame.kind = match kind {
            "Resource" => {
                let node = meant!(self.fresh());
                self.link(&frame, ObjectPlace::Term(node))?;
                frame.subject = node;
                ElementKind::Node
            }
            "Collection" => ElementKind::Collection,
            "Triple" if frame.scope.is_1_2 => {
                if self.captures.len() >= crate::line::MAX_NESTING {
                    return Err(super::too_deep());
                }
                self.captures.push(Capture::default());
                ElementKind::Triple
            }
            // RDF 1.2 ignores such an element in documents of version 1.1.
            "Triple" => ElementKind::Ignored,
            // RDF/XML treats every other value like `Literal`.
            _ => ElementKind::Literal,
        };
        self.frames.push(frame);
        Ok(Ok(()))
    }

    /// Emits a property's statement, and the statements of its reifiers.
    pub(super) fn link(&mut self, property: &ElementFrame, object: ObjectPlace) -> Result<()> {
        let ElementFrame {
            subject,
            predicate,
            reifier,
            ..
        } = *property;
        self.statement(subject, predicate, object)?;
        let is_lost = [subject, predicate].into_iter().any(|t| t.lost().is_some())
            || matches!(object, ObjectPlace::Term(ElementTerm::Bad(_)));
        if is_lost {
            return Ok(());
        }
        if reifier.id.is_there() {
            self.statement(reifier.id, word::TYPE, ObjectPlace::Term(word::STATEMENT))?;
            self.statement(reifier.id, word::SUBJECT, ObjectPlace::Term(subject))?;
            self.statement(reifier.id, word::PREDICATE, ObjectPlace::Term(predicate))?;
            self.statement(reifier.id, word::OBJECT, object)?;
        }
        if reifier.annotation.is_there() {
            let mut made = Vec::new();
            let bytes = match object {
                ObjectPlace::Term(object) => object.bytes(&self.arena),
                ObjectPlace::Scratch => &self.scratch,
            };
            terms::triple(
                subject.bytes(&self.arena),
                predicate.bytes(&self.arena),
                bytes,
                &mut made,
            )?;
            let kept = std::mem::replace(&mut self.scratch, made);
            self.statement(reifier.annotation, word::REIFIES, ObjectPlace::Scratch)?;
            self.scratch = kept;
        }
        Ok(())
    }

    /// Emits the statement of a property that ends, unless its attributes or a node in it have determined the
    /// statement.
    pub(super) fn end_property(&mut self, frame: &ElementFrame) -> Result<Meaning<()>> {
        match frame.kind {
            ElementKind::Property if !frame.has_node => {
                match self.literal_of(LiteralText::From(frame.text), frame.datatype, &frame.scope) {
                    Some(bad) => self.lose_statement(bad),
                    None => self.link(frame, ObjectPlace::Scratch)?,
                }
            }
            ElementKind::Literal => {
                let text = self.literal.take();
                self.scratch.clear();
                term::push_typed(&text, XML_LITERAL, &mut self.scratch);
                self.link(frame, ObjectPlace::Scratch)?;
            }
            ElementKind::Collection => match frame.last {
                ElementTerm::Absent => self.link(frame, ObjectPlace::Term(word::NIL))?,
                last => self.statement(last, word::REST, ObjectPlace::Term(word::NIL))?,
            },
            ElementKind::Triple => {
                let capture = self.captures.pop().unwrap_or_default();
                match capture {
                    Capture { statements, .. } if statements != 1 => {
                        return Ok(Err(Stray(format!(
                            "a triple term has {statements} statements in it, expected one node with one property"
                        ))));
                    }
                    Capture { bad: Some(bad), .. } => self.lose_statement(bad),
                    Capture { term, .. } => {
                        self.scratch = term;
                        self.link(frame, ObjectPlace::Scratch)?;
                    }
                }
            }
            _ => {}
        }
        Ok(Ok(()))
    }
}
