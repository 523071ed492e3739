//! Processing of a node's entries (step 13 of JSON-LD 1.1 API, 5.1.2).

use super::object::{Entry, Opened};
use super::{Graph, Nested, NodeId, Slot, Target, Walk, Work, Wrap};
use crate::jsonld::context::{Container, Context, Keyword, Name, Term, TypeMapping};
use crate::jsonld::fault::{Step, bad};
use crate::jsonld::json::{Json, Kind};
use oxrdf::vocab::rdf;
use std::cell::RefCell;
use std::rc::Rc;

/// An entry of a node that is a property, with what its values need.
pub(super) struct Property<'p, 'j> {
    pub(super) entry: &'p Entry<'j>,
    pub(super) context: &'p Rc<Context>,
    pub(super) key: &'j str,
    pub(super) term: Option<&'p Term>,
    pub(super) container: Container,
}

impl<'j> Walk<'_, '_, '_, 'j> {
    /// Processes a node's entries.
    pub(super) fn contents(&mut self, work: &Work<'j>) -> Step<()> {
        for entry in &work.opened.entries {
            let visited = self.entry(work, entry);
            self.skip(visited)?;
        }
        Ok(())
    }

    fn entry(&mut self, work: &Work<'j>, entry: &Entry<'j>) -> Step<()> {
        let context = entry.context.as_ref().unwrap_or(&work.opened.context);
        let value = entry.value;
        match &entry.name {
            Name::Keyword(Keyword::Type) => self.types(work, value),
            Name::Keyword(Keyword::Graph) => {
                let graph = Graph::named(&work.id);
                let slot = Slot::new(Target::Nodes, &graph, None);
                self.values(value, context, &slot)
            }
            Name::Keyword(Keyword::Included) => {
                if !value.is_array() {
                    let included = self.open(value, context, None, false)?;
                    if !included.is_described_node() && included.get(Keyword::Set).is_none() {
                        return Err(bad(
                            value.at(),
                            "invalid @included value: expected nodes in @included",
                        ));
                    }
                }
                let slot = Slot::new(Target::Nodes, &work.graph, None);
                self.values(value, context, &slot)
            }
            Name::Keyword(Keyword::Reverse) => self.reverse(work, context, value),
            Name::Keyword(Keyword::Index) if value.str().is_none() => Err(bad(
                value.at(),
                "invalid @index value: expected a string as @index",
            )),
            Name::Keyword(Keyword::Language) if value.str().is_none() => Err(bad(
                value.at(),
                "invalid language-tagged string: expected a language tag as @language",
            )),
            Name::Keyword(Keyword::Direction) if !matches!(value.str(), Some("ltr" | "rtl")) => {
                Err(bad(
                    value.at(),
                    "invalid base direction: expected \"ltr\" or \"rtl\" as @direction",
                ))
            }
            Name::Text(iri) => self.property(entry, context, iri, &work.id, &work.graph, false),
            _ => Ok(()),
        }
    }

    fn types(&mut self, work: &Work<'j>, value: Json<'j>) -> Step<()> {
        for item in value.items() {
            let Some(text) = item.str() else {
                return Err(bad(
                    item.at(),
                    "invalid type value: expected IRIs or terms as @type",
                ));
            };
            let name = work.opened.type_context.expand(text, true, true);
            if let Some(class) = self.node_id(&name) {
                self.quad(&work.id, rdf::TYPE.as_str(), &class, &work.graph)?;
            }
        }
        Ok(())
    }

    /// Processes the value of `@reverse`.
    fn reverse(&mut self, work: &Work<'j>, context: &Rc<Context>, value: Json<'j>) -> Step<()> {
        if !value.is_object() {
            return Err(bad(
                value.at(),
                "invalid @reverse value: expected an object as @reverse",
            ));
        }
        let opened: Opened<'j> = self.open(value, context, None, false)?;
        for entry in &opened.entries {
            let Name::Text(iri) = &entry.name else {
                return Err(bad(
                    entry.key.at(),
                    "invalid reverse property map: expected properties in @reverse, but no keywords",
                ));
            };
            let context = entry.context.as_ref().unwrap_or(&opened.context);
            self.property(entry, context, iri, &work.id, &work.graph, true)?;
        }
        Ok(())
    }

    /// Processes a property of a node. `flipped` is true inside of `@reverse`, where subject and object are exchanged.
    fn property(
        &mut self,
        entry: &Entry<'j>,
        context: &Rc<Context>,
        iri: &Rc<str>,
        id: &NodeId,
        graph: &Graph,
        flipped: bool,
    ) -> Step<()> {
        let predicate = self.predicate(iri).then_some(&**iri);
        let key = entry.key.str().unwrap_or_default();
        let term = context.term(key).map(|term| &**term);
        let property = Property {
            entry,
            context,
            key,
            term,
            container: term.map(|term| term.container).unwrap_or_default(),
        };
        let reverse = term.is_some_and(|term| term.reverse);
        let target = match reverse != flipped {
            false => Target::Property {
                subject: id,
                predicate,
                nodes_only: reverse,
            },
            true => Target::Reverse {
                object: id,
                predicate,
            },
        };
        let mut slot = Slot::new(target, graph, Some(key));
        self.property_values(&property, &mut slot)
    }

    fn property_values(&mut self, property: &Property<'_, 'j>, slot: &mut Slot<'_>) -> Step<()> {
        let (container, value) = (property.container, property.entry.value);
        if property
            .term
            .is_some_and(|term| term.type_mapping == Some(TypeMapping::Json))
        {
            return self.json_value(property, slot);
        }
        if value.is_object() {
            if container.has(Container::LANGUAGE) {
                return self.language_map(property, slot);
            }
            if container.has(Container::INDEX)
                || container.has(Container::TYPE)
                || container.has(Container::ID)
            {
                return self.map(property, slot);
            }
        }
        if container.has(Container::LIST) {
            return self.list_container(property, slot);
        }
        wrap_if_graph(property, slot);
        self.values(value, property.context, slot)
    }

    /// Processes a value that becomes a JSON literal.
    fn json_value(&mut self, property: &Property<'_, 'j>, slot: &mut Slot<'_>) -> Step<()> {
        let value = property.entry.value;
        self.json_literal(value)?;
        wrap_if_graph(property, slot);
        let is_list = property.container.has(Container::LIST);
        if !is_list || slot.is_lost() || slot.wrap != Wrap::Never {
            return self.link_literal(true, value, slot);
        }
        let ends = RefCell::default();
        let items = Slot::new(Target::List(&ends), slot.graph, slot.active);
        self.link_literal(true, value, &items)?;
        self.end_list(&ends, slot)
    }

    /// Processes the value of a property whose container is `@list`.
    fn list_container(&mut self, property: &Property<'_, 'j>, slot: &Slot<'_>) -> Step<()> {
        let (value, context, key) = (property.entry.value, property.context, property.key);
        if value.is_null() {
            return Ok(());
        }
        if value.is_object() {
            let opened = self.open(value, context, Some(key), false)?;
            if opened.get(Keyword::List).is_some() {
                return self.values(value, context, slot);
            }
            if let Some(values) = opened.get(Keyword::Set) {
                return self.list(values, &opened.context, Nested::Lists, slot);
            }
            let nothing = opened
                .get(Keyword::Value)
                .is_some_and(|v| v.kind() == Kind::Null);
            if nothing {
                return Ok(());
            }
        }
        self.list(value, context, Nested::Lists, slot)
    }
}

/// If the property's container is `@graph` but not a map, its values become graphs.
fn wrap_if_graph(property: &Property<'_, '_>, slot: &mut Slot<'_>) {
    let container = property.container;
    let is_map = container.has(Container::ID) || container.has(Container::INDEX);
    if container.has(Container::GRAPH) && !is_map {
        slot.wrap = Wrap::Always;
    }
}
