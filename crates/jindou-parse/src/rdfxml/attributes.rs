//! Attributes of RDF/XML: those of the syntax, and those that are properties.

use super::frames::{ElementScope, TextDirection};
use super::terms::{ElementTerm, RDF};
use super::{Meaning, StatementState};
use crate::xml::{Attribute, Start};

/// Namespace of the Internationalization Tag Set, which has the base direction of text.
const ITS: &str = "http://www.w3.org/2005/11/its";

/// The syntax attributes of an element, as written.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct SyntaxAttributes<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) node_id: Option<&'a str>,
    pub(super) about: Option<&'a str>,
    pub(super) resource: Option<&'a str>,
    pub(super) datatype: Option<&'a str>,
    pub(super) parse_type: Option<&'a str>,
    pub(super) annotation: Option<&'a str>,
    pub(super) annotation_node: Option<&'a str>,
    pub(super) class: Option<&'a str>,
    /// Number of attributes that are properties.
    pub(super) properties: usize,
}

/// The meaning of an attribute.
enum AttributeRole {
    Id,
    NodeId,
    About,
    Resource,
    Datatype,
    ParseType,
    Annotation,
    AnnotationNode,
    Class,
    Version,
    Language,
    Base,
    Direction,
    Property,
    Ignored,
    /// The attribute is not allowed, for this reason.
    Refused(&'static str),
}

const NO_NAMESPACE: &str = "has no namespace, expected a property's name with one, or about, ID, resource, parseType or type";
const NO_PROPERTY: &str =
    "is not allowed as an attribute; expected a property or an RDF/XML attribute";

fn role(a: &Attribute<'_>) -> AttributeRole {
    let local = a.name.local;
    match a.name.namespace {
        RDF => match local {
            "about" => AttributeRole::About,
            "resource" => AttributeRole::Resource,
            "ID" => AttributeRole::Id,
            "nodeID" => AttributeRole::NodeId,
            "datatype" => AttributeRole::Datatype,
            "parseType" => AttributeRole::ParseType,
            "type" => AttributeRole::Class,
            "annotation" => AttributeRole::Annotation,
            "annotationNodeID" => AttributeRole::AnnotationNode,
            "version" => AttributeRole::Version,
            "RDF" | "Description" | "li" | "bagID" | "aboutEach" | "aboutEachPrefix" => {
                AttributeRole::Refused(NO_PROPERTY)
            }
            _ => AttributeRole::Property,
        },
        crate::xml::XML => match local {
            "lang" => AttributeRole::Language,
            "base" => AttributeRole::Base,
            _ => AttributeRole::Ignored,
        },
        ITS if matches!(local, "dir") => AttributeRole::Direction,
        ITS if matches!(local, "version") => AttributeRole::Ignored,
        // By RDF/XML 6.1.4, these names belong to the RDF namespace even without a prefix.
        "" => match local {
            "about" => AttributeRole::About,
            "resource" => AttributeRole::Resource,
            "ID" => AttributeRole::Id,
            "parseType" => AttributeRole::ParseType,
            "type" => AttributeRole::Class,
            "bagID" | "aboutEach" | "aboutEachPrefix" => AttributeRole::Refused(NO_PROPERTY),
            _ if is_xml(local) => AttributeRole::Ignored,
            _ => AttributeRole::Refused(NO_NAMESPACE),
        },
        _ if is_xml(a.name.prefix) => AttributeRole::Ignored,
        _ => AttributeRole::Property,
    }
}

/// True for names that begin with `xml` in any case, which XML reserves.
fn is_xml(name: &str) -> bool {
    name.get(..3)
        .is_some_and(|start| start.eq_ignore_ascii_case("xml"))
}

/// True if an attribute is a property.
pub(super) fn is_property(a: &Attribute<'_>) -> bool {
    matches!(role(a), AttributeRole::Property)
}

impl StatementState<'_, '_> {
    /// Classifies an element's attributes, and determines what the element passes to its children: base, language and
    /// direction.
    pub(super) fn attributes<'a>(
        &mut self,
        start: &Start<'a>,
        outer: ElementScope,
    ) -> Meaning<(SyntaxAttributes<'a>, ElementScope)> {
        let mut found = SyntaxAttributes::default();
        let mut scope = outer;
        let (mut base, mut direction) = (None, None);
        for a in start.attributes() {
            let slot = match role(&a) {
                AttributeRole::Property => {
                    found.properties += 1;
                    continue;
                }
                AttributeRole::Ignored => continue,
                AttributeRole::Version => {
                    scope.is_1_2 = matches!(a.value.trim(), "1.2" | "1.2-basic");
                    continue;
                }
                AttributeRole::Language => {
                    scope.language = self.language(a.value)?;
                    continue;
                }
                AttributeRole::Refused(why) => {
                    self.refuse(format!(
                        "`{}` {why}",
                        super::terms::shortened(a.name.qualified)
                    ));
                    continue;
                }
                AttributeRole::Base => &mut base,
                AttributeRole::Direction => &mut direction,
                AttributeRole::Id => &mut found.id,
                AttributeRole::NodeId => &mut found.node_id,
                AttributeRole::About => &mut found.about,
                AttributeRole::Resource => &mut found.resource,
                AttributeRole::Datatype => &mut found.datatype,
                AttributeRole::ParseType => &mut found.parse_type,
                AttributeRole::Annotation => &mut found.annotation,
                AttributeRole::AnnotationNode => &mut found.annotation_node,
                AttributeRole::Class => &mut found.class,
            };
            // `about` and `rdf:about` are the same attribute.
            if slot.replace(a.value).is_some() {
                self.refuse(format!(
                    "`rdf:{}` occurs twice in a tag, expected it once",
                    a.name.local
                ));
            }
        }
        if let Some(written) = base {
            let iri = self.iri(written, &outer)?;
            let base = match iri {
                ElementTerm::Bad(number) => Err(number),
                iri => {
                    let text = iri.bytes(&self.arena).get(1..).unwrap_or_default();
                    let text = String::from_utf8_lossy(text).into_owned();
                    oxiri::Iri::parse(text).map_err(|_| 0)
                }
            };
            self.bases.truncate(outer.bases);
            self.bases.push(base);
            scope.bases = self.bases.len();
        }
        if let Some(written) = direction
            && scope.is_1_2
        {
            scope.direction = match written {
                "ltr" => Some(TextDirection::Ltr),
                "rtl" => Some(TextDirection::Rtl),
                _ => {
                    self.refuse("its:dir is neither `ltr` nor `rtl`, expected one of them");
                    outer.direction
                }
            };
        }
        Ok((found, scope))
    }
}
