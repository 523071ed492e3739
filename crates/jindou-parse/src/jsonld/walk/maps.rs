//! Processing of maps by language, index, type or id (steps 13.7 and 13.8 of JSON-LD 1.1 API, 5.1.2).

use super::node::Property;
use super::{KeyProperty, MapKey, Slot, Walk, Wrap};
use crate::jsonld::context::{Container, Context, Keyword, Name, Options};
use crate::jsonld::fault::{Step, bad};
use crate::jsonld::json::Json;
use std::rc::Rc;

impl<'j> Walk<'_, '_, '_, 'j> {
    /// Processes a map from languages to strings.
    pub(super) fn language_map(
        &mut self,
        property: &Property<'_, 'j>,
        slot: &Slot<'_>,
    ) -> Step<()> {
        let context = property.context;
        let direction = property.term.and_then(|term| term.direction);
        let direction = direction.unwrap_or(context.direction);
        for (key, value) in property.entry.value.members() {
            let tag = key.str().unwrap_or_default();
            let none = context.expand(tag, true, false) == Name::Keyword(Keyword::None);
            for item in value.items() {
                if item.is_null() {
                    continue;
                }
                let Some(text) = item.str() else {
                    return Err(bad(
                        item.at(),
                        "invalid language map value: expected strings in a map of languages",
                    ));
                };
                let valid = self.text(text, (!none).then_some(tag), direction);
                self.link_literal(valid, item, slot)?;
            }
        }
        Ok(())
    }

    /// Processes a map by index, type or id.
    pub(super) fn map(&mut self, property: &Property<'_, 'j>, slot: &mut Slot<'_>) -> Step<()> {
        if property.container.has(Container::GRAPH) {
            slot.wrap = Wrap::UnlessGraph;
        }
        for (key, value) in property.entry.value.members() {
            let map_key = self.map_key(property, key)?;
            let context = self.map_context(property, key)?;
            let slot = Slot {
                target: slot.target,
                graph: slot.graph,
                wrap: slot.wrap,
                active: slot.active,
                key: Some(&map_key),
            };
            self.values(value, &context, &slot)?;
        }
        Ok(())
    }

    /// The statements about its values that follow from the key of a map.
    fn map_key(&mut self, property: &Property<'_, 'j>, key: Json<'j>) -> Step<MapKey<'j>> {
        let (context, text) = (property.context, key.str().unwrap_or_default());
        let mut map_key = MapKey::default();
        let expanded = context.expand(text, true, false);
        if expanded == Name::Keyword(Keyword::None) {
            return Ok(map_key);
        }
        if property.container.has(Container::TYPE) {
            map_key.types = Some(expanded);
        } else if property.container.has(Container::ID) {
            let name = context.expand(text, false, true);
            map_key.id = Some(self.node_id(&name));
        } else if let Some(index) = property.term.and_then(|term| term.index.as_deref()) {
            let object = self.index_value(key, context, index)?;
            let predicate = match context.expand(index, true, false) {
                Name::Text(iri) if self.predicate(&iri) => Some(iri),
                _ => None,
            };
            map_key.property = Some(KeyProperty { predicate, object });
        } else {
            map_key.index = Some(key);
        }
        Ok(map_key)
    }

    /// The context for the values under a key of a map.
    fn map_context(&mut self, property: &Property<'_, 'j>, key: Json<'j>) -> Step<Rc<Context>> {
        let active = property.context;
        if !property.container.has(Container::TYPE) {
            return Ok(Rc::clone(active));
        }
        let context = active.previous.as_ref().unwrap_or(active);
        let term = context.term(key.str().unwrap_or_default());
        let Some(scoped) = term.and_then(|term| term.context.clone()) else {
            return Ok(Rc::clone(context));
        };
        let contexts = &mut self.walker.contexts;
        contexts.scoped(context, &scoped, Options::TYPE, key.at())
    }
}
