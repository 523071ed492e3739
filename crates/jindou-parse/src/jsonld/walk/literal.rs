//! Expansion of values to literals and references (JSON-LD 1.1 API, 5.3 and 8.6).

use super::object::Opened;
use super::{Graph, KeyProperty, MapKey, NodeId, Slot, Walk, Work, Wrap};
use crate::jsonld::context::{Context, Direction, Keyword, Name, TypeMapping, is_iri_or_blank};
use crate::jsonld::fault::{Step, bad};
use crate::jsonld::json::{Json, Kind, Number, canonical};
use jindou_model::term;
use oxilangtag::LanguageTag;
use oxiri::Iri;
use oxrdf::vocab::{rdf, xsd};
use std::rc::Rc;

/// The result of expanding a scalar.
enum Scalar {
    Node(NodeId),
    /// A literal. True if it is valid; then its canonical bytes are in `Walker::object`.
    Literal(bool),
}

impl<'j> Walk<'_, '_, '_, 'j> {
    /// Processes a string, number or boolean that is the value of a property.
    pub(super) fn scalar(
        &mut self,
        json: Json<'j>,
        context: &Rc<Context>,
        active: &str,
        slot: &Slot<'_>,
    ) -> Step<()> {
        let context = &self.property_scoped(context, active, json)?;
        match self.expand_scalar(json, context, active)? {
            Scalar::Literal(valid) => self.link_literal(valid, json, slot),
            Scalar::Node(id) => {
                if slot.wrap != Wrap::Never {
                    return self.wrapped(slot);
                }
                self.index(&id, slot.key.and_then(|key| key.index), slot.graph)?;
                self.key(slot, &id)?;
                self.link(slot, id.as_deref())
            }
        }
    }

    /// Completes a statement with the literal in `Walker::object` as its object.
    pub(super) fn link_literal(
        &mut self,
        valid: bool,
        json: Json<'_>,
        slot: &Slot<'_>,
    ) -> Step<()> {
        if slot.wrap != Wrap::Never {
            return self.wrapped(slot);
        }
        if slot.is_for_nodes() {
            return Err(bad(
                json.at(),
                "invalid reverse property value: a literal cannot be a subject, expected nodes",
            ));
        }
        self.no_key(slot, json.at())?;
        let object = std::mem::take(&mut self.walker.object);
        let linked = self.link(slot, valid.then_some(&object));
        self.walker.object = object;
        linked
    }

    /// Expands a scalar by the definition of its property's term.
    fn expand_scalar(&mut self, json: Json<'_>, context: &Context, active: &str) -> Step<Scalar> {
        let term = context.term(active);
        let mapping = term.and_then(|term| term.type_mapping.as_ref());
        if mapping == Some(&TypeMapping::Json) {
            self.json_literal(json)?;
            return Ok(Scalar::Literal(true));
        }
        let Some(text) = json.str() else {
            let datatype = match mapping {
                Some(TypeMapping::Iri(iri)) => Some(&**iri),
                _ => None,
            };
            return Ok(Scalar::Literal(self.literal(json, datatype)));
        };
        Ok(match mapping {
            Some(TypeMapping::Id) => {
                let name = context.expand(text, false, true);
                Scalar::Node(self.node_id(&name))
            }
            Some(TypeMapping::Vocab) => {
                let name = context.expand(text, true, true);
                Scalar::Node(self.node_id(&name))
            }
            Some(TypeMapping::Iri(iri)) => Scalar::Literal(self.literal(json, Some(iri))),
            Some(TypeMapping::Json | TypeMapping::None) | None => {
                let language = term.and_then(|term| term.language.as_ref());
                let language = language.unwrap_or(&context.language);
                let direction = term.and_then(|term| term.direction);
                let direction = direction.unwrap_or(context.direction);
                Scalar::Literal(self.text(text, language.as_deref(), direction))
            }
        })
    }

    /// Expands the key of a map as the value of a property, to canonical bytes; `None` if the result is not valid.
    pub(super) fn index_value(
        &mut self,
        key: Json<'_>,
        context: &Context,
        property: &str,
    ) -> Step<Option<Vec<u8>>> {
        Ok(match self.expand_scalar(key, context, property)? {
            Scalar::Node(id) => id.map(|id| id.to_vec()),
            Scalar::Literal(valid) => valid.then(|| self.walker.object.clone()),
        })
    }

    /// Writes the canonical bytes of a text to `Walker::object`; `false` if its language tag is not valid.
    pub(super) fn text(
        &mut self,
        text: &str,
        language: Option<&str>,
        direction: Option<Direction>,
    ) -> bool {
        let out = &mut self.walker.object;
        out.clear();
        let Some(language) = language else {
            term::push_typed(text, xsd::STRING.as_str(), out);
            return true;
        };
        if LanguageTag::parse(language).is_err() {
            return false;
        }
        match direction {
            None => term::push_lang(text, language, out),
            Some(Direction::Ltr) => term::push_lang(text, &format!("{language}--ltr"), out),
            Some(Direction::Rtl) => term::push_lang(text, &format!("{language}--rtl"), out),
        }
        true
    }

    /// Writes the canonical bytes of a literal without a language to `Walker::object`; `false` if its datatype is not
    /// an IRI.
    fn literal(&mut self, json: Json<'_>, datatype: Option<&str>) -> bool {
        if datatype.is_some_and(|iri| Iri::parse(iri).is_err()) {
            return false;
        }
        let out = &mut self.walker.object;
        out.clear();
        let mut push = |text: &str, native: &str| {
            term::push_typed(text, datatype.unwrap_or(native), out);
        };
        match json.kind() {
            Kind::True => push("true", xsd::BOOLEAN.as_str()),
            Kind::False => push("false", xsd::BOOLEAN.as_str()),
            Kind::Number => {
                let number = Number::parse(json.number().unwrap_or_default());
                let double = xsd::DOUBLE.as_str();
                match number.integer() {
                    Some(digits) if datatype != Some(double) => {
                        push(digits, xsd::INTEGER.as_str());
                    }
                    _ => push(&number.double(), double),
                }
            }
            _ => push(json.str().unwrap_or_default(), xsd::STRING.as_str()),
        }
        true
    }

    /// Writes the canonical bytes of a JSON literal to `Walker::object`.
    pub(super) fn json_literal(&mut self, json: Json<'_>) -> Step<()> {
        let mut text = String::new();
        canonical(json, &mut text).map_err(|at| {
            bad(
                at,
                "a number of a JSON literal is too large for its canonical form (RFC 8785), expected one of 64 bits",
            )
        })?;
        let out = &mut self.walker.object;
        out.clear();
        term::push_typed(&text, rdf::JSON.as_str(), out);
        Ok(())
    }

    /// Processes an object with `@value`.
    pub(super) fn value_object(
        &mut self,
        json: Json<'j>,
        opened: &Opened<'j>,
        slot: &Slot<'_>,
    ) -> Step<()> {
        let wrong = |what: &str| Err(bad(json.at(), what));
        let allowed = opened.entries.iter().all(|e| {
            matches!(
                e.name,
                Name::Keyword(
                    Keyword::Value
                        | Keyword::Type
                        | Keyword::Language
                        | Keyword::Direction
                        | Keyword::Index
                )
            )
        });
        let types = opened.get(Keyword::Type);
        let language = opened.get(Keyword::Language);
        let direction = match opened.get(Keyword::Direction) {
            None => None,
            Some(value) => match value.str() {
                Some("ltr") => Some(Direction::Ltr),
                Some("rtl") => Some(Direction::Rtl),
                _ => {
                    return wrong(
                        "invalid base direction: expected \"ltr\" or \"rtl\" as @direction",
                    );
                }
            },
        };
        if !allowed || types.is_some() && (language.is_some() || direction.is_some()) {
            return wrong(
                "invalid value object: expected only @type, or @language and @direction, and @index next to @value",
            );
        }
        if language.is_some_and(|language| language.str().is_none()) {
            return wrong("invalid language-tagged string: expected a language tag as @language");
        }
        if opened
            .get(Keyword::Index)
            .is_some_and(|index| index.str().is_none())
        {
            return wrong("invalid @index value: expected a string as @index");
        }
        let Some(value) = opened.get(Keyword::Value) else {
            return Ok(());
        };
        let datatype = match types {
            None => None,
            Some(types) => Some(self.datatype(types, opened)?),
        };
        if datatype == Some(Name::Keyword(Keyword::Json)) {
            self.json_literal(value)?;
            return self.link_literal(true, value, slot);
        }
        if matches!(value.kind(), Kind::Array | Kind::Object) {
            return wrong(
                "invalid value object value: expected a string, number, boolean or null as @value",
            );
        }
        if value.is_null() {
            return Ok(());
        }
        let valid = match datatype {
            Some(Name::Text(iri)) if is_iri_or_blank(&iri) && !iri.starts_with("_:") => {
                self.literal(value, Some(&iri))
            }
            Some(_) => {
                return wrong("invalid typed value: expected the IRI of a datatype as @type");
            }
            None => match (value.str(), language.and_then(Json::str)) {
                (None, Some(_)) => {
                    return wrong(
                        "invalid language-tagged value: expected a string as @value next to @language",
                    );
                }
                (Some(text), language) => self.text(text, language, direction),
                (None, None) => self.literal(value, None),
            },
        };
        self.link_literal(valid, value, slot)
    }

    /// The datatype of a value object.
    fn datatype(&self, types: Json<'_>, opened: &Opened<'_>) -> Step<Name> {
        let wrong = |what: &str| Err(bad(types.at(), what));
        let mut items = types.items();
        let (first, more) = (items.next(), items.next());
        let Some(text) = first.and_then(Json::str) else {
            return wrong("invalid type value: expected the IRI of a datatype as @type");
        };
        if more.is_some() {
            return wrong("invalid typed value: expected one datatype as @type");
        }
        let name = opened.type_context.expand(text, true, true);
        if let Name::Text(iri) = &name
            && (**iri == *rdf::LANG_STRING.as_str() || **iri == *rdf::DIR_LANG_STRING.as_str())
        {
            return wrong(
                "invalid typed value: a literal of this datatype has a language, expected @language instead of @type",
            );
        }
        Ok(name)
    }

    /// The node to which an `@id` refers.
    pub(super) fn own_id(&mut self, json: Json<'_>, opened: &Opened<'j>) -> Step<NodeId> {
        let Some(text) = json.str() else {
            return Err(bad(
                json.at(),
                "invalid @id value: expected an IRI or a blank node identifier as @id",
            ));
        };
        match opened.context.expand(text, false, true) {
            // The name is reserved for later versions of JSON-LD, so the `@id` is ignored.
            Name::Null if opened.entries.len() > 1 => Ok(Some(self.fresh())),
            name => Ok(self.node_id(&name)),
        }
    }

    /// Emits the statements about a node that follow from its key in a map.
    pub(super) fn key(&mut self, slot: &Slot<'_>, id: &NodeId) -> Step<()> {
        let Some(MapKey {
            types, property, ..
        }) = slot.key
        else {
            return Ok(());
        };
        if let Some(class) = types
            && let Some(class) = self.node_id(class)
        {
            self.quad(id, rdf::TYPE.as_str(), &class, slot.graph)?;
        }
        if let Some(KeyProperty {
            predicate: Some(predicate),
            object: Some(object),
        }) = property
        {
            self.quad(id, predicate, object, slot.graph)?;
        }
        Ok(())
    }

    /// Refuses the key of a map if its value is not a node, about which the key could make statements.
    pub(super) fn no_key(&self, slot: &Slot<'_>, at: u64) -> Step<()> {
        match slot.key {
            Some(MapKey {
                id: None,
                types: None,
                property: None,
                ..
            })
            | None => Ok(()),
            Some(_) => Err(bad(
                at,
                "invalid value object: expected nodes as the values of a map by @id, @type or a property",
            )),
        }
    }

    /// Emits the link to a new graph for a value that makes no statements in it.
    pub(super) fn wrapped(&mut self, slot: &Slot<'_>) -> Step<()> {
        self.wrapped_as(slot).map(drop)
    }

    /// Emits the link to a new graph, and returns the graph.
    pub(super) fn wrapped_as(&mut self, slot: &Slot<'_>) -> Step<Graph> {
        let id = match slot.key.and_then(|key| key.id.clone()) {
            Some(id) => id,
            None => Some(self.fresh()),
        };
        self.key(slot, &id)?;
        self.link(slot, id.as_deref())?;
        Ok(Graph::named(&id))
    }

    /// Processes a node's entries now, or later if the recursion is too deep.
    pub(super) fn node(&mut self, work: Work<'j>) -> Step<()> {
        if self.depth == super::MAX_DEPTH {
            self.pending.push(work);
            return Ok(());
        }
        self.depth += 1;
        let visited = self.contents(&work);
        self.depth -= 1;
        visited
    }
}
