//! Processing of objects: their contexts, their keys, and the decision what they are (steps 7 to 14 of JSON-LD 1.1 API,
//! 5.1.2).

use super::{Nested, Slot, Walk, Work, Wrap};
use crate::jsonld::context::{Context, Keyword, Name, Options};
use crate::jsonld::fault::{Step, bad, shorten};
use crate::jsonld::json::Json;
use std::rc::Rc;

/// An entry of an object, or of an object nested in it by `@nest`.
pub(super) struct Entry<'j> {
    pub(super) key: Json<'j>,
    pub(super) name: Name,
    pub(super) value: Json<'j>,
    /// The context of the entry, if it comes from a nested object with a context of its own.
    pub(super) context: Option<Rc<Context>>,
}

impl Entry<'_> {
    /// True for a property whose value is null, so that it has no statements.
    fn is_empty(&self) -> bool {
        self.value.is_null() || self.value.get("@value").is_some_and(Json::is_null)
    }
}

/// An object whose keys were expanded. Keys that expand to nothing are omitted.
pub(in crate::jsonld) struct Opened<'j> {
    pub(in crate::jsonld) context: Rc<Context>,
    /// The context without the scoped contexts of the object's types.
    pub(super) type_context: Rc<Context>,
    pub(super) entries: Vec<Entry<'j>>,
    keywords: Keywords,
}

/// A set of keywords.
#[derive(Clone, Copy, Default)]
struct Keywords(u32);

impl Keywords {
    fn has(self, keyword: Keyword) -> bool {
        self.0 & (1 << keyword as u32) != 0
    }
}

impl<'j> Opened<'j> {
    pub(in crate::jsonld) fn get(&self, keyword: Keyword) -> Option<Json<'j>> {
        if !self.keywords.has(keyword) {
            return None;
        }
        let entry = self
            .entries
            .iter()
            .find(|e| e.name == Name::Keyword(keyword));
        entry.map(|e| e.value)
    }

    /// True if this is a node, not a value, list or set.
    pub(super) fn is_node(&self) -> bool {
        let others = [Keyword::Value, Keyword::List, Keyword::Set];
        !others.iter().any(|&other| self.keywords.has(other))
    }

    /// True if this has `@graph` and nothing else but `@id` and `@index`.
    pub(super) fn is_graph(&self) -> bool {
        self.keywords.has(Keyword::Graph)
            && self.entries.iter().all(|e| {
                matches!(
                    e.name,
                    Name::Keyword(Keyword::Graph | Keyword::Id | Keyword::Index)
                )
            })
    }

    /// True if a document that consists of this object is equivalent to the content of its `@graph`.
    pub(in crate::jsonld) fn is_only_graph(&self) -> bool {
        self.keywords.has(Keyword::Graph)
            && self.entries.iter().all(|e| match e.name {
                Name::Keyword(Keyword::Type) => e.value.is_array() && e.value.len() == 0,
                Name::Keyword(keyword) => keyword == Keyword::Graph,
                _ => e.is_empty(),
            })
    }

    /// True if this is a node with more than an identifier.
    pub(super) fn is_described_node(&self) -> bool {
        self.is_node()
            && self.entries.iter().any(|e| match e.name {
                Name::Keyword(Keyword::Reverse) => e.value.len() > 0,
                Name::Keyword(keyword) => !matches!(keyword, Keyword::Id | Keyword::Language),
                _ => !e.is_empty(),
            })
    }

    /// The `@index` of a node.
    pub(super) fn index(&self) -> Option<Json<'j>> {
        self.get(Keyword::Index)
            .filter(|index| index.str().is_some())
    }
}

impl<'j> Walk<'_, '_, '_, 'j> {
    /// Processes an object. For a set, returns its values, which the caller must process instead.
    pub(super) fn object(
        &mut self,
        json: Json<'j>,
        context: &Rc<Context>,
        slot: &Slot<'_>,
    ) -> Step<Option<(Json<'j>, Rc<Context>)>> {
        self.look()?;
        let opened = self.open(json, context, slot.active, slot.key.is_some())?;
        if opened.keywords.has(Keyword::Value) {
            self.value_object(json, &opened, slot)?;
            return Ok(None);
        }
        let list = opened.get(Keyword::List);
        if let Some(values) = list.or(opened.get(Keyword::Set)) {
            let others = opened.entries.iter().any(|e| {
                !matches!(
                    e.name,
                    Name::Keyword(Keyword::List | Keyword::Set | Keyword::Index)
                )
            });
            if others || list.is_some() && opened.keywords.has(Keyword::Set) {
                return Err(bad(
                    json.at(),
                    "invalid set or list object: expected nothing but @index next to @list or @set",
                ));
            }
            if list.is_none() {
                return Ok(Some((values, opened.context)));
            }
            // A list at the top of a document belongs to no statement.
            if slot.active.is_some() {
                self.list(values, &opened.context, Nested::Lists, slot)?;
            }
            return Ok(None);
        }
        let only_language = opened
            .entries
            .iter()
            .all(|e| e.name == Name::Keyword(Keyword::Language));
        if !(only_language && opened.keywords.has(Keyword::Language)) {
            self.node_object(opened, slot)?;
        }
        Ok(None)
    }

    /// Processes a node: links it, and then processes its entries.
    fn node_object(&mut self, opened: Opened<'j>, slot: &Slot<'_>) -> Step<()> {
        let own = match opened.get(Keyword::Id) {
            None => None,
            Some(id) => Some(self.own_id(id, &opened)?),
        };
        let wraps = match slot.wrap {
            Wrap::Never => false,
            Wrap::Always => true,
            Wrap::UnlessGraph => !opened.is_graph(),
        };
        if wraps {
            let graph = self.wrapped_as(slot)?;
            if let Some(id) = &own {
                self.index(id, opened.index(), &graph)?;
            }
            let id = own.unwrap_or_else(|| Some(self.fresh()));
            return self.node(Work { opened, id, graph });
        }
        let named = own.or_else(|| slot.key.and_then(|key| key.id.clone()));
        if let Some(id) = &named {
            let of_key = || slot.key.and_then(|key| key.index);
            self.index(id, opened.index().or_else(of_key), slot.graph)?;
        }
        let id = named.unwrap_or_else(|| Some(self.fresh()));
        self.key(slot, &id)?;
        self.link(slot, id.as_deref())?;
        let graph = slot.graph.clone();
        self.node(Work { opened, id, graph })
    }

    /// Applies an object's contexts, and expands its keys.
    pub(in crate::jsonld) fn open(
        &mut self,
        json: Json<'j>,
        context: &Rc<Context>,
        active: Option<&str>,
        from_map: bool,
    ) -> Step<Opened<'j>> {
        let term = active.and_then(|active| context.term(active));
        let scoped = term.and_then(|term| term.context.clone());
        let mut context = Rc::clone(context);
        if let Some(previous) = &context.previous
            && !from_map
            && !is_value_or_reference(&context, json)
        {
            context = Rc::clone(previous);
        }
        if let Some(scoped) = scoped {
            let contexts = &mut self.walker.contexts;
            context = contexts.scoped(&context, &scoped, Options::PROPERTY, json.at())?;
        }
        if let Some(local) = json.get("@context") {
            let (local, is_new) = self.walker.contexts.local(&context, local)?;
            context = local;
            if is_new {
                self.walker.out.prefixes(context.prefixes())?;
            }
        }
        let type_context = Rc::clone(&context);
        if context.has_scoped {
            context = self.typed(context, json)?;
        }
        let mut opened = Opened {
            context,
            type_context,
            entries: Vec::with_capacity(json.len()),
            keywords: Keywords::default(),
        };
        self.entries(json, &mut opened)?;
        Ok(opened)
    }

    /// Applies the scoped context of the property `active` for its value `json`.
    pub(super) fn property_scoped(
        &mut self,
        context: &Rc<Context>,
        active: &str,
        json: Json<'j>,
    ) -> Step<Rc<Context>> {
        let term = context.term(active);
        let Some(scoped) = term.and_then(|term| term.context.clone()) else {
            return Ok(Rc::clone(context));
        };
        let contexts = &mut self.walker.contexts;
        contexts.scoped(context, &scoped, Options::PROPERTY, json.at())
    }

    /// Applies the scoped contexts of an object's types.
    fn typed(&mut self, context: Rc<Context>, json: Json<'j>) -> Step<Rc<Context>> {
        let is_type = |key: &str| {
            key == "@type"
                || context.has_type_alias
                    && context
                        .term(key)
                        .is_some_and(|term| term.name == Name::Keyword(Keyword::Type))
        };
        let mut found: Vec<(&str, Json<'j>)> = json
            .members()
            .filter_map(|(key, value)| Some((key.str()?, value)))
            .filter(|(key, _)| is_type(key))
            .collect();
        found.sort_unstable_by_key(|(key, _)| *key);
        let mut result = Rc::clone(&context);
        for (_, value) in found {
            let mut types: Vec<&str> = value.items().filter_map(Json::str).collect();
            types.sort_unstable();
            for name in types {
                if let Some(scoped) = context.term(name).and_then(|term| term.context.clone()) {
                    let contexts = &mut self.walker.contexts;
                    result = contexts.scoped(&result, &scoped, Options::TYPE, value.at())?;
                }
            }
        }
        Ok(result)
    }

    /// Adds the entries of an object, and of the objects nested in it by `@nest`.
    fn entries(&mut self, json: Json<'j>, opened: &mut Opened<'j>) -> Step<()> {
        let mut nested: Vec<(Json<'j>, Option<Rc<Context>>)> = vec![(json, None)];
        while let Some((json, own)) = nested.pop() {
            let context = own.clone().unwrap_or_else(|| Rc::clone(&opened.context));
            for (key, value) in json.members() {
                let name = context.expand(key.str().unwrap_or_default(), true, false);
                match &name {
                    Name::Null | Name::Keyword(Keyword::Context) => continue,
                    Name::Text(text) if !text.contains(':') => continue,
                    Name::Text(_) => {}
                    Name::Keyword(Keyword::Nest) => {
                        self.nest(key, value, &context, &mut nested)?;
                        continue;
                    }
                    Name::Keyword(keyword) => {
                        let many = matches!(keyword, Keyword::Type | Keyword::Included);
                        if opened.keywords.has(*keyword) && !many {
                            return Err(bad(
                                key.at(),
                                format!(
                                    "colliding keywords: \"{}\" stands for a keyword that this object has already",
                                    shorten(key.str().unwrap_or_default())
                                ),
                            ));
                        }
                        opened.keywords.0 |= 1 << *keyword as u32;
                    }
                }
                opened.entries.push(Entry {
                    key,
                    name,
                    value,
                    context: own.clone(),
                });
            }
        }
        Ok(())
    }

    /// Adds the objects in the value of a `@nest` entry to `nested`.
    fn nest(
        &mut self,
        key: Json<'j>,
        value: Json<'j>,
        context: &Rc<Context>,
        nested: &mut Vec<(Json<'j>, Option<Rc<Context>>)>,
    ) -> Step<()> {
        let own = self.property_scoped(context, key.str().unwrap_or_default(), key)?;
        for item in value.items() {
            let is_value = |(key, _): (Json<'_>, Json<'_>)| {
                let name = own.expand(key.str().unwrap_or_default(), true, false);
                name == Name::Keyword(Keyword::Value)
            };
            if !item.is_object() || item.members().any(is_value) {
                return Err(bad(
                    item.at(),
                    "invalid @nest value: expected objects without @value as the value of @nest",
                ));
            }
            nested.push((item, Some(Rc::clone(&own))));
        }
        Ok(())
    }
}

/// True for an object with `@value`, or with nothing but `@id`. The type-scoped context around it stays in force for
/// it.
fn is_value_or_reference(context: &Context, json: Json<'_>) -> bool {
    let keyword = |key: Json<'_>| context.expand(key.str().unwrap_or_default(), true, false);
    json.members()
        .any(|(key, _)| keyword(key) == Name::Keyword(Keyword::Value))
        || json.len() == 1
            && json
                .members()
                .all(|(key, _)| keyword(key) == Name::Keyword(Keyword::Id))
}
